"""Rows that share a value: `dedup_urls`, `dedup_lines`, `dedup_spans` and `dedup_substrings` decide about no others.

A value is a hash of 64 bits: of a URL, a line, a span of sentences, an anchor. A row stays as it is if nobody else has
any of its values, and if it has none of them twice. So all rows are compared in work units, on one machine or many:

1. `sort`, a unit for each sketch file: its values with their rows, cut into ranges of the values.
2. `match`, a unit for some ranges: reads its ranges of all files by their offsets, and writes for each file the rows
   with a value that occurs again, here or elsewhere.
3. `gather`, a unit for each sketch file: the sketches of these rows.

One process then decides about the gathered rows, in their order (`reduce` of the stages): the decision about a row may
depend on those about all rows before it. Its work is proportional to the rows that share something, not to all.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import datakit.storage as storage
from datakit.config import sha256_file
from datakit.dedup.comparison import IndexedStage
from datakit.dedup.exact import AllRows, open_rows
from datakit.dedup.shuffle import Memory, Part, PartsWriter, Source, read_parts, repeated_hashes, sources_of
from datakit.dedup.shuffle import parts_by_number as by_number
from datakit.stage import CompareUnits, SketchFile

RANGE_VALUES = 1 << 22
"""Values that a `match` unit reads, at most about."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # odd, so that different values stay different; anchors are mostly small


@dataclass(frozen=True, slots=True)
class SharedRows(AllRows):
    """The sketches of the rows that share a value. They are numbered anew; `numbers` int64 (rows,): among all rows."""

    numbers: npt.NDArray[np.int64]

    def among_all(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The numbers of some rows among all; -1 stays."""
        return np.where(rows < 0, -1, self.numbers[rows]) if len(self.numbers) else rows


@dataclass(frozen=True, slots=True)
class Shared:
    """What the units came to: the records of `sort` and of `gather`."""

    root: Path
    sorts: list[dict[str, Any]]
    gathers: list[dict[str, Any]]

    def amounts(self) -> Counter[str]:
        """The amounts of this run's rows by source, as `SharingStage.amounts` gives them."""
        return self._sum("amounts", (record for record in self.sorts if not record["old"]))

    def counts(self) -> Counter[str]:
        """Of this run's rows what `SharingStage.counts` gives."""
        return self._sum("counts", (record for record in self.sorts if not record["old"]))

    @property
    def values(self) -> int:
        """Values of all rows, those of earlier runs included."""
        return sum(record["values"] for record in self.sorts)

    @staticmethod
    def _sum(name: str, records: Iterable[dict[str, Any]]) -> Counter[str]:
        total: Counter[str] = Counter()
        for record in records:
            total.update(record[name])
        return total

    def rows(self, memory: Memory) -> SharedRows:
        """Map the gathered sketches; those of earlier runs come first."""
        files = [
            (record["old"], storage.bring(self.root / path, size, sha256))
            for record in self.gathers
            for path, size, sha256 in record["files"]
        ]
        before = open_rows([file for old, file in files if old], memory, by_key=False)
        here = open_rows([file for old, file in files if not old], memory)
        batches = [*before.batches, *here.batches]
        numbers = [np.empty(0, np.int64), *(batch.column("row").to_numpy() for batch in batches)]
        begins = np.concatenate([before.begins[:-1], len(before) + here.begins])
        return SharedRows(batches, begins, len(before), np.ones(len(before), np.bool_), np.concatenate(numbers))


@dataclass(frozen=True)
class SharingStage(IndexedStage):
    """A stage that decides about rows by the values that they share."""

    shared: Shared | None = None

    def values(self, batch: pa.RecordBatch) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """(the values of all rows of a batch of sketches, or of an index; the row of each)."""
        raise NotImplementedError(f"{type(self).__name__}.values")

    def amounts(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """How much each row of a batch of sketches holds of what the alarms count as lost. Default: 1."""
        return np.ones(batch.num_rows, np.int64)

    def counts(self, batch: pa.RecordBatch) -> dict[str, int]:
        """What is counted of a batch of sketches, for the facts. Default: nothing."""
        return {}

    def compare(self, sketches: Sequence[SketchFile], units: CompareUnits) -> Self:
        """Find the rows that share a value, in work units."""
        return replace(self, shared=share(self, sketches, units))

    def shared_with(self, sketches: Sequence[Path], out: Path, workers: int) -> Shared:
        """What `compare` found; without it, found here."""
        if self.shared is not None:
            return self.shared
        return share(self, [SketchFile.of(path) for path in sketches], CompareUnits(out.parent, workers))


def share(stage: SharingStage, sketches: Sequence[SketchFile], units: CompareUnits) -> Shared:
    """Find the rows that share a value, of the sketch files and of the indexes of earlier runs."""
    sources, root = sources_of(stage.earlier, sketches), units.root
    memory = (stage.config.memory_mb << 20) // units.share
    size = sum(source.file.bytes for source in sources)  # a guess of the values that depends on the files alone
    ranges = number_of_ranges(size // 16, RANGE_VALUES)
    sorts = units.do("sort", partial(sort_unit, stage, root, ranges), sources)
    found = [list(parts) for _, parts in sorted(by_number(sorts).items())]
    matches = by_number(units.do("match", partial(match_unit, root, memory), found))
    wanted = [(sources[place], [part for _, part in parts]) for place, parts in sorted(matches.items())]
    return Shared(root, sorts, units.do("gather", partial(gather_unit, stage, root, memory), wanted))


def sort_unit(stage: SharingStage, root: Path, ranges: int, index: int, source: Source) -> dict[str, Any]:
    """Write the values of one sketch file: part `range` holds hashes uint64 and row numbers uint32."""
    memory = Memory(stage.config.memory_mb << 20, root)
    hashes, rows, begin = [np.empty(0, np.uint64)], [np.empty(0, np.uint32)], 0
    amounts, counts = Counter[str](), Counter[str]()
    for batch, live in source.batches(stage.earlier, memory):
        values, row_of = stage.values(batch)
        if not live.all():
            values, row_of = values[live[row_of]], row_of[live[row_of]]
        hashes.append(values * _SPREAD)
        rows.append((begin + row_of).astype(np.uint32))
        if source.run < 0:
            by_source = {"source": pc.fill_null(batch.column("source"), ""), "amount": stage.amounts(batch)}
            for entry in pa.table(by_source).group_by("source").aggregate([("amount", "sum")]).to_pylist():
                amounts[entry["source"]] += entry["amount_sum"]
            counts.update(stage.counts(batch))
        begin += batch.num_rows
        memory.release()
    out = PartsWriter(root, f".work/compared/values-{index:05d}.bin")
    _add_ranges(out, ranges, np.concatenate(hashes), np.concatenate(rows))
    about = {"old": source.run >= 0, "values": sum(map(len, hashes)), "amounts": dict(amounts), "counts": dict(counts)}
    return out.close() | about


def match_unit(root: Path, memory_bytes: int, index: int, found: Sequence[tuple[int, Part]]) -> dict[str, Any]:
    """Write the rows with a value that occurs again: part `file` holds their numbers in that file, uint32.

    `found` is one range: (the number of the file, its part).
    """
    memory = Memory(memory_bytes, root)
    hashes, rows = list[Any](), list[Any]()
    for buffer in read_parts(root, [part for _, part in found], memory):
        count = buffer.size // 12
        hashes.append(np.frombuffer(buffer, np.uint64, count))
        rows.append(np.frombuffer(buffer, np.uint32, count, 8 * count))
    again = np.zeros(sum(map(len, hashes)), np.bool_)
    again[_repeated(np.concatenate(hashes), memory)] = True
    out, end = PartsWriter(root, f".work/compared/matches-{index:05d}.bin"), 0
    for (place, _), own in zip(found, rows, strict=True):
        chosen = np.unique(own[again[end : end + len(own)]])
        if len(chosen):
            out.add(place, chosen)
        end += len(own)
    return out.close()


def _repeated(hashes: npt.NDArray[np.uint64], memory: Memory) -> npt.NDArray[np.int64]:
    """Where the hashes are that occur more than once."""
    suspects = repeated_hashes(hashes, memory)
    order = np.argsort(hashes[suspects])
    ordered = hashes[suspects][order]
    same = np.zeros(len(ordered) + 1, np.bool_)
    same[1:-1] = ordered[1:] == ordered[:-1]
    return np.asarray(suspects[order[same[1:] | same[:-1]]])


def gather_unit(
    stage: SharingStage, root: Path, memory_bytes: int, index: int, wanted: tuple[Source, Sequence[Part]]
) -> dict[str, Any]:
    """Write the sketches of the rows of one file that share a value, with their number among all (`row`)."""
    source, parts = wanted
    memory = Memory(memory_bytes, root)
    found = [np.frombuffer(part, np.uint32) for part in read_parts(root, parts, memory)]
    numbers = np.unique(np.concatenate(found)).astype(np.int64)
    storage.bring(source.file.path, source.file.bytes, source.file.sha256)
    reader = pa.ipc.open_file(pa.py_buffer(memory.map(source.file.path)))
    path = f".work/compared/shared-{index:05d}.arrow"
    target = root / path
    temporary = target.with_name(f".{target.name}.tmp")
    schema = reader.schema.append(pa.field("row", pa.int64()))
    begin = 0
    with pa.OSFile(str(temporary), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for batch in (reader.get_batch(number) for number in range(reader.num_record_batches)):
            low, high = np.searchsorted(numbers, [begin, begin + batch.num_rows])
            if high > low:
                taken = batch.take(pa.array(numbers[low:high] - begin))
                writer.write_batch(taken.append_column("row", pa.array(source.first + numbers[low:high])))
            begin += batch.num_rows
            memory.release()
    temporary.rename(target)
    return {"files": [[path, target.stat().st_size, sha256_file(target)]], "old": source.run >= 0}


def _add_ranges(self: PartsWriter, ranges: int, hashes: npt.NDArray[np.uint64], rows: npt.NDArray[np.uint32]) -> None:
    """Append a part for each of `ranges` ranges of the hashes, numbered: the hashes in it, and the
    row of each."""
    part = (hashes >> np.uint64(48)).astype(np.uint16) // np.uint16((1 << 16) // ranges) if ranges > 1 else None
    order = slice(None) if part is None else np.argsort(part, kind="stable")
    cuts = [0, len(rows)] if part is None else np.searchsorted(part[order], np.arange(ranges + 1)).tolist()
    hashes, rows = hashes[order], rows[order]
    for number in range(ranges):
        low, high = cuts[number], cuts[number + 1]
        self.add(number, np.ascontiguousarray(hashes[low:high]), np.ascontiguousarray(rows[low:high]))


def number_of_ranges(keys: int, of_range: int) -> int:
    """Into how many ranges (a power of two) so many keys are cut, of about `of_range` keys each."""
    ranges = 1
    while ranges < 1 << 16 and keys > ranges * of_range:
        ranges *= 2
    return ranges
