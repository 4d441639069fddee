"""Which lines, paragraphs or spans of sentences are said again, over all rows: from hashes to what is cut where.

Rows are gone through in the order of their keys. A span is cut where a row before it that stays has it, or where the
row itself has had it; so what is cut can always be read in the row that is named. A row of which too little is left is
dropped whole, and then stands for nothing: what it had first stays in the next row that has it.

Hashes are of 64 bits: in 10^9 different spans, one is expected to be taken for another with probability 0.03. On the
disk a unit takes 12 bytes in the sketches, and while they are compared 8 to 16 more; in memory, 8 for each different
span that is repeated.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from datakit.dedup.memory import Memory, in_range
from datakit.dedup.rows import Rows, starts, values
from datakit.dedup.units import NONE
from datakit.native import Kernels

_kernels = Kernels("datakit.dedup._kernels_repeats")
_SORT_BYTES = 48  # a span takes while its range is sorted: place, hash, order, both in that order, what is equal


@dataclass(frozen=True, slots=True)
class Repeats:
    """`found` (units): the number of the row that a cut unit stays in, -1 where it is not cut. `dropped` bool (rows,).

    `words` uint32 (units,). The units of row i are `[row_starts[i], row_starts[i + 1])`.
    """

    row_starts: npt.NDArray[np.int64]
    words: npt.NDArray[np.uint32]
    found: npt.NDArray[Any]
    dropped: npt.NDArray[np.bool_]
    facts: dict[str, Any]


def find_repeats(rows: Rows, span: int, min_words_left: int, memory: Memory, workers: int) -> Repeats:
    """Go through sketches with the columns `hashes` (of spans) and `words` (of units)."""
    units = [values(batch, "hashes") for batch in rows.batches]
    begins = np.cumsum([0, *map(len, units)])
    row_starts = memory.full((len(rows) + 1,), begins[-1], np.int64)
    words = memory.full((begins[-1],), 0, np.uint32)
    for batch, row, begin, end in zip(rows.batches, rows.begins, begins, begins[1:], strict=False):
        row_starts[row : row + batch.num_rows + 1] = begin + starts(batch, "hashes")
        words[begin:end] = values(batch, "words")
    groups, count, compared = _groups(units, begins, memory, workers)
    owner = memory.full((count,), -1, _index(len(rows)))
    found = memory.full((begins[-1],), -1, _index(len(rows)))
    dropped = np.zeros(len(rows), np.bool_)
    _kernels.choose(row_starts, words, groups, span, min_words_left, owner, found, dropped)
    facts = {"units": int(begins[-1]), "spans_compared": compared, "spans_repeated": count}
    return Repeats(row_starts, words, found, dropped, facts)


def _index(count: int) -> Any:
    return np.int32 if count < 1 << 31 else np.int64


def _groups(
    units: list[npt.NDArray[np.uint64]], begins: npt.NDArray[np.int64], memory: Memory, workers: int
) -> tuple[npt.NDArray[Any], int, int]:
    """(for each span the number of its group, -1 where it has no equal; how many groups; how many spans).

    By ranges of the hashes, each a task of its own.
    """
    total = int(begins[-1])
    groups = memory.full((total,), -1, _index(total))
    ranges = max(memory.ranges(total * workers * _SORT_BYTES), 1 if total < 1 << 16 else _power_of_two(workers))
    count = compared = 0
    with ThreadPoolExecutor(workers) as pool:
        for places, numbers, repeated, spans in _ahead(
            pool, lambda n: _group(units, begins, n, ranges), ranges, workers
        ):
            groups[places] = count + numbers
            count += repeated
            compared += spans
    return groups, count, compared


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


def _ahead(pool: ThreadPoolExecutor, work: Any, tasks: int, ahead: int) -> Iterator[Any]:
    """Results in order, of no more than `ahead` tasks begun at a time: each holds memory until it is taken."""
    waiting = [pool.submit(work, n) for n in range(min(ahead, tasks))]
    for n in range(tasks):
        yield waiting.pop(0).result()
        if n + ahead < tasks:
            waiting.append(pool.submit(work, n + ahead))


def _group(
    units: list[npt.NDArray[np.uint64]], begins: npt.NDArray[np.int64], part: int, ranges: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int, int]:
    """(places of spans that have an equal, the number of each one's group, how many groups, how many spans)."""
    chosen = [in_range(hashes, part, ranges) for hashes in units]
    chosen = [rows[hashes[rows] != NONE] for rows, hashes in zip(chosen, units, strict=True)]
    empty = np.empty(0, np.int64)
    places = np.concatenate([empty, *(begin + rows for begin, rows in zip(begins, chosen, strict=False))])
    hashes = np.concatenate([empty.view(np.uint64), *(h[rows] for h, rows in zip(units, chosen, strict=True))])
    order = np.argsort(hashes)
    hashes, places = hashes[order], places[order]
    fresh = np.ones(len(hashes), np.bool_)
    fresh[1:] = hashes[1:] != hashes[:-1]
    alone = fresh & np.append(fresh[1:], True)
    numbers = np.cumsum(fresh & ~alone) - 1
    return places[~alone], numbers[~alone], int((fresh & ~alone).sum()), len(hashes)
