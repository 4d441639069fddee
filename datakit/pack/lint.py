"""Counts of what is wrong, or may be, with the labels of packed sets; told from the packed files alone.

What is always wrong makes training wrong without any error: labels on padding (or on a sequence's first token, which
would be predicted from another sequence), an answer whose stop token is not learnt, a row that teaches nothing, a
doubled BOS, an id that the model has no embedding for. The rest is worth a look: an answer cut off before its stop
token, a special token inside what is learnt, the share of labels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from datakit.pack.chat import ChatTokenizer
from datakit.pack.rows import Rows
from datakit.schema import RECORD_BITS

Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
BLOCK_ROWS = 4096


@dataclass(slots=True)
class Counts:
    """Of one source."""

    sequences: int = 0
    """Runs of tokens that are packed whole: a row of the dataset, a piece of one, or one side of a pair."""
    tokens: int = 0
    labels: int = 0
    rows_without_labels: int = 0
    """Rows of the dataset (sides of a pair) of which no token is a label."""
    stop_not_labelled: int = 0
    """Labelled stretches that end before their sequence does, and not with a special token."""
    labels_on_padding: int = 0
    labels_across_sequences: int = 0
    """Labels on the first token of a sequence: predicted from another one."""
    doubled_bos: int = 0
    ids_outside_vocabulary: int = 0
    truncated_answers: int = 0
    """Rows whose last labelled stretch ends where the row's packed tokens end, and not with a special token."""
    special_in_content: int = 0
    """Special tokens inside a labelled stretch, not at its end."""

    @property
    def label_share(self) -> float:
        """Labels of all real tokens."""
        return round(self.labels / self.tokens, 4) if self.tokens else 0.0

    def to_json(self) -> dict[str, Any]:
        """Every count, and the share of labels."""
        return asdict(self) | {"label_share": self.label_share}


WRONG = (
    "rows_without_labels",
    "stop_not_labelled",
    "labels_on_padding",
    "labels_across_sequences",
    "doubled_bos",
    "ids_outside_vocabulary",
)
"""Counts that are 0 in a set that is right."""


@dataclass(slots=True)
class _Pieces:
    """What must be known of all pieces before rows can be judged; one entry a piece."""

    unit: list[npt.NDArray[np.uint64]] = field(default_factory=list)
    """The row's key."""
    side: list[Int64] = field(default_factory=list)
    start: list[Int64] = field(default_factory=list)
    end: list[Int64] = field(default_factory=list)
    labels: list[Int64] = field(default_factory=list)
    open_end: list[Bools] = field(default_factory=list)
    """The last token is a label and no stop token."""


def lint_rows(sets: Sequence[Rows], tokenizer: ChatTokenizer) -> dict[int, Counts]:
    """Counts by input file, whose index begins a row's key."""
    special = np.zeros(max(tokenizer.vocab_size, 1), bool)
    special[[i for i in (*tokenizer.special.values(), tokenizer.eos_id) if i is not None]] = True
    found: dict[int, Counts] = {}
    pieces = _Pieces()
    for rows in sets:
        for block in _blocks(rows):
            labels, open_end = _lint_block(block, special, tokenizer.bos_id, found)
            _collect(pieces, block, labels if rows.header.labelled else block.end - block.start, open_end)
    if pieces.unit:
        _judge_rows(pieces, found)
    return found


@dataclass(frozen=True, slots=True)
class _Block:
    """Some packed rows: their tokens one after another, and where their sequences lie among these."""

    ids: npt.NDArray[Any]
    learnt: Bools
    start: Int64
    end: Int64
    keys: npt.NDArray[np.uint64]
    offset: Int64
    """A sequence's first token within the tokens of its own row."""
    side: Int64
    on_padding: Int64
    """Labels on padding, counted at the last sequence of their row."""
    across: Int64


def _blocks(rows: Rows) -> Iterator[_Block]:
    for first in range(0, len(rows), BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, len(rows))
        a, b = np.searchsorted(rows.sources["row"], [first, last])
        yield _block(rows, first, last, rows.sources[a:b])


def _block(rows: Rows, first: int, last: int, sources: npt.NDArray[Any]) -> _Block:
    length = rows.id_index[first:last, 1]
    base = np.cumsum(length) - length
    which = sources["row"].astype(np.int64) - first
    bounds, of_bound = _gathered(rows.segments, rows.segment_index[first:last])
    first_of_row = np.append(True, of_bound[1:] != of_bound[:-1])
    last_of_row = np.append(of_bound[1:] != of_bound[:-1], True)
    start, end = (bounds + base[of_bound])[~last_of_row], (bounds + base[of_bound])[~first_of_row]
    ids, _ = _gathered(rows.ids, rows.id_index[first:last])
    learnt, on_padding, across = np.ones(len(ids), bool), np.zeros(len(start), np.int64), np.zeros(len(start), np.int64)
    if rows.labels is not None and rows.label_index is not None:
        at, of_label = _gathered(rows.labels, rows.label_index[first:last])
        inside = (at >= 0) & (at + 1 < length[of_label])
        final = np.flatnonzero(np.append(which[1:] != which[:-1], True))
        np.add.at(on_padding, final[of_label[~inside]], 1)
        target = (at + 1 + base[of_label])[inside]
        learnt = np.zeros(len(ids), bool)
        learnt[target] = True
        across = learnt[start].astype(np.int64)
    learnt[start] = False
    side = (sources["row"] % rows.header.rows_per_unit).astype(np.int64)
    return _Block(ids, learnt, start, end, sources["row_key"], sources["start"].astype(np.int64), side,
                  on_padding, across)  # fmt: skip


def _gathered(values: npt.NDArray[Any], index: Int64) -> tuple[npt.NDArray[Any], Int64]:
    """The values of some rows one after another, and which of these rows each is of."""
    count = index[:, 1]
    which = np.repeat(np.arange(len(index)), count)
    at = np.arange(len(which)) - (np.cumsum(count) - count)[which] + index[which, 0]
    gathered = np.asarray(values[at])
    return gathered.astype(np.int64) if gathered.dtype.kind == "i" else gathered, which


def _lint_block(block: _Block, special: Bools, bos: int | None, found: dict[int, Counts]) -> tuple[Int64, Bools]:
    """Count what a sequence shows by itself; returns its labels, and whether it ends in the middle of them."""
    ids, learnt, start, end = block.ids.astype(np.int64), block.learnt, block.start, block.end
    known = (ids >= 0) & (ids < len(special))
    is_special = known & special[np.where(known, ids, 0)]
    stretch_goes_on = learnt & np.append(learnt[1:], False)  # a sequence's first token is never learnt
    ends = np.flatnonzero(learnt & ~stretch_goes_on)
    of_end = np.searchsorted(start, ends, "right") - 1
    at_end = ends == end[of_end] - 1
    unstopped = ~is_special[ends]
    labels = _per_sequence(learnt, start, end)
    open_end = np.zeros(len(start), bool)
    open_end[of_end[at_end & unstopped]] = True
    counts = {
        "sequences": np.ones(len(start), np.int64),
        "tokens": end - start,
        "labels": labels,
        "stop_not_labelled": np.bincount(of_end[unstopped & ~at_end], minlength=len(start)),
        "labels_on_padding": block.on_padding,
        "labels_across_sequences": block.across,
        "doubled_bos": _doubled(ids, start, end, bos),
        "ids_outside_vocabulary": _per_sequence(~known, start, end),
        "special_in_content": _per_sequence(is_special & stretch_goes_on, start, end),
    }
    _add(found, block.keys, counts)
    return labels, open_end


def _collect(pieces: _Pieces, block: _Block, labels: Int64, open_end: Bools) -> None:
    pieces.unit.append(np.array(block.keys))
    pieces.side.append(block.side)
    pieces.start.append(block.offset)
    pieces.end.append(block.offset + block.end - block.start)
    pieces.labels.append(labels)
    pieces.open_end.append(open_end)


def _per_sequence(flags: Bools, start: Int64, end: Int64) -> Int64:
    total: Int64 = np.concatenate([[0], np.cumsum(flags)]).astype(np.int64)
    sums: Int64 = total[end] - total[start]
    return sums


def _doubled(ids: Int64, start: Int64, end: Int64, bos: int | None) -> Int64:
    if bos is None or not len(ids):
        return np.zeros(len(start), np.int64)
    second = np.minimum(start + 1, len(ids) - 1)
    found: Int64 = ((end - start > 1) & (ids[start] == bos) & (ids[second] == bos)).astype(np.int64)
    return found


def _judge_rows(pieces: _Pieces, found: dict[int, Counts]) -> None:
    """Counts that need all pieces of a row: whether any is learnt, and whether the last one stops."""
    key, side, start, end, labels, open_end = (
        np.concatenate(getattr(pieces, n)) for n in ("unit", "side", "start", "end", "labels", "open_end")
    )
    order = np.lexsort((start, side, key))
    key, side, start, end, labels, open_end = (a[order] for a in (key, side, start, end, labels, open_end))
    new = np.append(True, (key[1:] != key[:-1]) | (side[1:] != side[:-1]))
    firsts = np.flatnonzero(new)
    goes_on = np.append(~new[1:] & (start[1:] == end[:-1]), False)
    truncated = np.add.reduceat((open_end & ~goes_on).astype(np.int64), firsts)
    mute = np.add.reduceat(labels, firsts) == 0
    counts = {"rows_without_labels": mute.astype(np.int64), "truncated_answers": (truncated > 0).astype(np.int64)}
    _add(found, key[firsts], counts)


def _add(found: dict[int, Counts], keys: npt.NDArray[np.uint64], counts: dict[str, Int64]) -> None:
    files, which = np.unique(keys >> np.uint64(RECORD_BITS), return_inverse=True)
    for name, values in counts.items():
        sums = np.bincount(which, values, len(files))
        for file, n in zip(files.tolist(), sums.tolist(), strict=True):
            own = found.setdefault(file, Counts())
            setattr(own, name, getattr(own, name) + int(n))
