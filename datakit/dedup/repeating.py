"""The stages `dedup_lines` and `dedup_spans`: sketch the units of every row, find what is said again, cut it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datakit.dedup.cutting import Cutting, source, text_bytes
from datakit.dedup.decisions import decided, write
from datakit.dedup.losses import Losses
from datakit.dedup.memory import Memory
from datakit.dedup.repeats import Repeats, find_repeats
from datakit.dedup.rows import Rows, lists, open_rows
from datakit.dedup.units import hash_spans

_UNIT_BYTES = {"line": 40, "paragraph": 200, "sentence": 60}  # of English prose and documentation, rather too few
_DISK_BYTES = 28  # a unit: hash and words in the sketch; words, group and place while all are compared
_ROW_BYTES = 60  # of a sketch besides its units


class Repeating(Cutting):
    """What the two share; `span` is how many units in a row are compared as one, `reason` why a row is dropped."""

    reason: ClassVar[str]

    @property
    def span(self) -> int:
        """How many units in a row are compared as one."""
        raise NotImplementedError

    def forecast(self, files: Sequence[Path]) -> str:
        """How much disk the units of these shards will take while they are compared."""
        rows, size = text_bytes(files)
        disk = rows * _ROW_BYTES + size // _UNIT_BYTES[self.unit] * _DISK_BYTES
        return f"{rows:,} rows, about {disk / 1e6:,.0f} MB of disk while their {self.unit}s are compared"

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """`row_key`, `id` and `source`; `hashes` of the spans of each row, and the `words` of its units."""
        spans = hash_spans(batch.column("text"), self.unit, self.span, self.config.min_words, self.config.digits)
        return pa.record_batch(
            {
                "row_key": batch.column("row_key"),
                "id": batch.column("id"),
                "source": source(batch),
                "hashes": lists(spans.hashes, spans.row_starts),
                "words": lists(spans.words, spans.row_starts),
            }
        )

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write what is cut and dropped to `out`; returns counts and alarms."""
        rows, losses = open_rows(sketches), Losses("words")
        memory = Memory(self.config.memory_mb << 20, out.parent)
        repeats = find_repeats(rows, self.span, self.config.min_words_left, memory, workers)
        write(out, (self._decide(rows, n, repeats, losses) for n in range(len(rows.batches))))
        words = {"words": losses.whole.total(), "words_lost": losses.lost.total()}
        return repeats.facts | words | {"alarms": losses.alarms(self.config.max_source_loss)}

    def _decide(self, rows: Rows, number: int, repeats: Repeats, losses: Losses) -> pa.RecordBatch:
        """The decisions about one batch of sketches; what its sources lose is counted on the way."""
        batch, begin, end = rows.batches[number], rows.begins[number], rows.begins[number + 1]
        units = repeats.row_starts[begin : end + 1]
        found, words = repeats.found[units[0] : units[-1]], repeats.words[units[0] : units[-1]]
        dropped, units = repeats.dropped[begin:end], units - units[0]
        row_of = np.repeat(np.arange(end - begin), np.diff(units))
        cut = found >= 0
        cuts, in_row, left = (
            np.bincount(row_of, weight, end - begin).astype(np.int64)
            for weight in (cut, words, np.where(cut, 0, words))
        )
        losses.add(batch.column("source"), in_row, in_row - np.where(dropped, 0, left))
        cut &= ~dropped[row_of]

        def tell(row: int) -> str:
            total = units[row + 1] - units[row]
            return f"{cuts[row]} of its {total} {self.unit}s stand before it, {left[row]} words are new"

        made, touched = decided(batch.column("row_key"), self.reason, dropped, units, cut, tell)
        stays_in = pa.ListArray.from_arrays(made.column("cut").offsets, rows.ids(found[cut].astype(np.int64)))
        duplicate_of = rows.ids(_most_of(found, row_of, dropped, begin)[touched])
        return made.append_column("duplicate_of", duplicate_of).append_column("stays_in", stays_in)


def _most_of(
    found: npt.NDArray[Any], row_of: npt.NDArray[np.int64], dropped: npt.NDArray[np.bool_], first: int
) -> npt.NDArray[np.int64]:
    """For each row that is dropped the other row that has most of its units, the earlier of two; -1 without one."""
    most = np.full(len(dropped), -1, np.int64)
    chosen = (found >= 0) & dropped[row_of] & (found != row_of + first)
    pairs, counts = np.unique(np.stack([row_of[chosen], found[chosen]]), axis=1, return_counts=True)
    order = np.lexsort((pairs[1], -counts, pairs[0]))
    row, at = np.unique(pairs[0][order], return_index=True)
    most[row] = pairs[1][order][at]
    return most
