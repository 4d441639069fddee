"""The comparison of all rows in work units, on one machine or many: sort, join, gather, decide.

Each row has keys: 64-bit hashes (a digest, LSH bands, hashes of lines). Rows that share no key, not even through other
rows, cannot decide about each other. So every stage that compares rows takes these steps, and says only what the keys
of a row are (`ShuffleStage.keys`) and what becomes of rows that are connected (`ShuffleStage.decide_rows`):

1. `sort`, a unit for each sketch file: its keys with the numbers of their rows, cut into ranges of the keys.
2. `join`, a unit for some ranges: reads its ranges of all files by their offsets, and links rows with an equal key.
3. The links are joined to components, in this process: memory for the rows that share a key with another one, not for
   all rows. Neighbouring components make groups of about `GROUP_ROWS` rows.
4. `gather`, a unit for each sketch file: the sketches of its rows in groups, by group.
5. `decide`, a unit for each group: reads its rows from all files by their offsets, and decides about them.

The decisions of all groups are then merged, in the order of row keys. No file is for one pair of a writer and a reader:
each unit writes one file of numbered parts, its record says where they are, and a reader fetches its parts of all
files. Ranges and groups depend on the rows and on constants alone, so no result depends on where units run.
"""

import hashlib
import mmap
import os
import tempfile
import threading
import weakref
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import datakit.storage as storage
from datakit.config import sha256_file
from datakit.dedup.comparison import Flags, Hashes, IndexedStage, Numbers, write_decisions
from datakit.dedup.index import EarlierRun
from datakit.errors import IntegrityError
from datakit.manifest import damaged
from datakit.stage import MAX_ALARMS, CompareUnits, SketchFile

RANGE_KEYS = 1 << 22
"""Keys that a `join` unit reads at least, where there are so many, and at most twice as many of one band."""
GROUP_ROWS = 1 << 15
"""Rows of a group, besides its last component: one component is never cut."""
BEGINNING = 1 << 31
"""Added to the row of a key that joins its row only with rows that have the key without this bit."""
_KEY_BYTES = 12  # a key and the number of its row in its file, below BEGINNING
_LINKS = 1 << 23  # links that are joined at one time
_MERGED_ROWS = 1 << 15  # of a batch of decisions
_GATHER_BYTES = 64 << 20  # of sketches that are copied before they are written
_ALIGNMENT = 64  # of parts, so that arrays over mapped parts are aligned
_SLOTS_PER_KEY = 8  # at least: then at most one key in eight is mistaken for one that occurs again


# Arrays and files in bounded memory.

ARRAY_SHARE = 64
"""An array larger than this part of the memory lies in a file: about twenty arrays are alive at one time."""
_READ_SHARE = 4  # memory of mapped sketches is released once they take this part of the memory,
_MAPPED_SHARE = 2  # or once all that is mapped takes this part
_PART_ROWS = 1 << 19


@dataclass(frozen=True, slots=True)
class Memory:
    """`bytes` that arrays may take, and the folder for larger ones. Neither changes a result.

    This is not a hard limit: temporary arrays of single steps stay in memory.
    """

    bytes: int
    folder: Path
    _arrays: weakref.WeakSet[mmap.mmap] = field(default_factory=weakref.WeakSet, repr=False, compare=False)
    _read: weakref.WeakSet[mmap.mmap] = field(default_factory=weakref.WeakSet, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    _before: int = field(default_factory=lambda: _resident_bytes() or 0, repr=False, compare=False)

    def full(self, shape: tuple[int, ...], value: int, dtype: Any) -> npt.NDArray[Any]:
        """An array filled with a value. A large one lies in a file without a name, which vanishes with the process.

        Raises:
            OSError: the disk has no space for it. (The space is allocated at once: a mapped file that finds none later
                would kill the process without a message.)
        """
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if size <= self.bytes // ARRAY_SHARE:
            return np.full(shape, value, dtype) if value else np.zeros(shape, dtype)
        with tempfile.TemporaryFile(dir=self.folder) as file:
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError as e:
                raise OSError(e.errno, e.strerror, str(self.folder)) from None
            mapped = self._mapped(file, size)
        array = np.frombuffer(mapped, dtype).reshape(shape)
        if value:  # a new file holds zeros
            array[...] = value
            _release(mapped)
        return array

    def _mapped(self, file: Any, size: int) -> mmap.mmap:
        mapped = mmap.mmap(file.fileno(), size)
        with self._lock:
            self._arrays.add(mapped)
        return mapped

    def join(self, pieces: Iterable[Sequence[npt.NDArray[Any]]], *dtypes: Any) -> list[npt.NDArray[Any]]:
        """One array for each dtype, of the pieces after one another: each piece has a part of every array.

        They lie in files without a name, so that only one piece is in memory at a time.

        Raises:
            OSError: the disk has no space for them.
        """
        with ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile(dir=self.folder)) for _ in dtypes]
            sizes = [0] * len(files)
            for piece in pieces:
                for number, (file, array, dtype) in enumerate(zip(files, piece, dtypes, strict=True)):
                    try:
                        sizes[number] += file.write(np.ascontiguousarray(array, dtype).data)
                        file.flush()
                    except OSError as e:
                        raise OSError(e.errno, e.strerror, str(self.folder)) from None
            found = zip(files, sizes, dtypes, strict=True)
            return [np.frombuffer(self._mapped(f, n), dtype) if n else np.empty(0, dtype) for f, n, dtype in found]

    def keep(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The array, moved to a file if it is large."""
        if array.nbytes <= self.bytes // ARRAY_SHARE:
            return array
        kept = self.full(array.shape, 0, array.dtype)
        kept[...] = array
        return kept

    def take(self, array: npt.NDArray[Any], at: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """`array[at]`, computed in parts; a large result lies in a file."""
        taken = self.full(at.shape, 0, array.dtype)
        for begin in range(0, len(at), _PART_ROWS):
            taken[begin : begin + _PART_ROWS] = array[at[begin : begin + _PART_ROWS]]
        return taken

    def map(self, path: Path) -> mmap.mmap:
        """The bytes of a file, mapped for reading."""
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        with self._lock:
            self._read.add(mapped)
        return mapped

    def release(self) -> None:
        """Return mapped memory to the system once it is much; later reads mostly come from the page cache.

        Files mapped for reading go first: their parts are rarely read twice, while arrays are read all the time. They
        may take their share in addition to the arrays and to what was mapped before, but at most half of `bytes`:
        much may be mapped between two calls.
        """
        with self._lock:
            read, arrays = list(self._read), list(self._arrays)
        others = self._before + sum(map(len, arrays)) + self.bytes // _READ_SHARE
        for mappings, most in ((read, min(others, self.bytes // _MAPPED_SHARE)), (arrays, self.bytes)):
            resident = _resident_bytes()
            if (sum(map(len, [*read, *arrays])) if resident is None else resident) > most:
                for mapped in mappings:
                    _release(mapped)


def _resident_bytes() -> int | None:
    """Bytes of mapped files in the memory of this process; None where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[2]) * mmap.PAGESIZE
    except OSError:
        return None


def _release(mapped: mmap.mmap) -> None:
    if hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


# Files of parts.

Part = tuple[str, int, int, int]
"""A part of a file: (path relative to the data folder, first byte, bytes, CRC-32)."""


class PartsWriter:
    """Writes one file of numbered parts; each begins at a multiple of 64 bytes."""

    def __init__(self, root: Path, path: str) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        self._open = ExitStack()
        temporary = self._open.enter_context(storage.whole_file(root / path, flush=False))
        self._file = self._open.enter_context(temporary.open("wb"))
        self._path, self._hash, self._size = path, hashlib.sha256(), 0
        self._parts: list[tuple[int, int, int, int]] = []

    def add(self, number: int, *pieces: Any) -> None:
        """Append a part of some pieces of bytes."""
        begin, crc = self._size, 0
        for piece in pieces:
            view = memoryview(piece).cast("B") if len(piece) else memoryview(b"")
            crc = zlib.crc32(view, crc)
            self._write(view)
        self._parts.append((number, begin, self._size - begin, crc))
        self._write(bytes(-self._size % _ALIGNMENT))

    def add_rows(self, number: int, batches: Sequence[pa.RecordBatch]) -> None:
        """Append a part with rows, as an Arrow IPC stream."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batches[0].schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        self.add(number, sink.getvalue())

    def _write(self, data: Any) -> None:
        self._file.write(data)
        self._hash.update(data)
        self._size += len(data)

    def close(self) -> dict[str, Any]:
        """Finish the file: its entry and its parts, as the record of a unit has them."""
        self._open.close()
        return {"files": [[self._path, self._size, self._hash.hexdigest()]], "parts": self._parts}


def parts_by_number(records: Iterable[dict[str, Any]]) -> dict[int, list[tuple[int, Part]]]:
    """From the records of units: for each part number (the place of the unit, its part), in the order of units."""
    found: dict[int, list[tuple[int, Part]]] = {}
    for place, record in enumerate(records):
        for number, begin, size, crc in record["parts"]:
            if size:
                found.setdefault(number, []).append((place, (record["files"][0][0], begin, size, crc)))
    return found


def read_parts(root: Path, parts: Sequence[Part], memory: Memory) -> Iterator[pa.Buffer]:
    """The bytes of parts: of files on this machine mapped, of others fetched from the store in ranges.

    Raises:
        IntegrityError: a part differs from what was written.
    """
    mapped: dict[str, Any] = {}
    away = [p for p in parts if not (root / p[0]).is_file()]
    fetched = memory.full((sum(size + -size % _ALIGNMENT for _, _, size, _ in away),), 0, np.uint8)
    end = 0
    for path, begin, size, crc in parts:
        if (root / path).is_file():
            if path not in mapped:
                mapped[path] = pa.py_buffer(memory.map(root / path))
            found = mapped[path].slice(begin, size)
        else:
            fetched[end : end + size] = np.frombuffer(storage.read_range(root / path, begin, size), np.uint8)
            found = pa.py_buffer(fetched).slice(end, size)
            end += size + -size % _ALIGNMENT
        if zlib.crc32(found) != crc:
            raise IntegrityError(damaged(root / path, "was changed"))
        yield found


# Rows by their sketches.


@dataclass(frozen=True, slots=True)
class SketchRows:
    """Sketches of rows. Rows are numbered through all batches, which own their memory (mapped files, mostly).

    `begins` int64 (batches + 1,): the number of each batch's first row.
    """

    batches: list[pa.RecordBatch]
    begins: Numbers

    def __len__(self) -> int:
        return int(self.begins[-1])

    def ids(self, numbers: Numbers) -> pa.Array:
        """The ids of the given rows, in that order; null for -1."""
        distinct, place = np.unique(numbers, return_inverse=True)
        known = distinct[distinct >= 0]
        cuts = np.searchsorted(known, self.begins)
        found = [
            batch.column("id").take(pa.array(known[low:high] - begin))
            for batch, begin, low, high in zip(self.batches, self.begins, cuts, cuts[1:], strict=False)
            if high > low
        ]
        unknown = pa.nulls(len(distinct) - len(known), pa.string())
        return pa.concat_arrays([unknown, *found]).take(pa.array(place))

    def column(self, name: str, memory: Memory) -> Hashes:
        """A uint64 column of all rows."""
        values = memory.full((len(self),), 0, np.uint64)
        for batch, begin in zip(self.batches, self.begins, strict=False):
            values[begin : begin + batch.num_rows] = batch.column(name).to_numpy()
        return values

    def digests(self, name: str = "digest") -> Hashes:
        """A column of 16 bytes for each row as uint64 (rows, 2); nulls have any value."""
        halves = [np.empty((0, 2), np.uint64), *(digest_halves(batch.column(name)) for batch in self.batches)]
        return np.concatenate(halves)


def open_sketches(paths: Sequence[Path], memory: Memory) -> SketchRows:
    """Map the sketches of all rows, in the order of their shards."""
    batches = [batch for path in paths for batch in _batches(memory.map(path)) if batch.num_rows]
    return SketchRows(batches, np.cumsum([0, *(batch.num_rows for batch in batches)], dtype=np.int64))


@dataclass(frozen=True, slots=True)
class GatheredRows(SketchRows):
    """The rows of one group, in the order of all rows.

    `numbers` int64 (rows,): the number of each among all rows. The first `old` rows are of earlier runs, and stay.
    """

    numbers: Numbers
    old: int


def digest_halves(column: pa.Array) -> Hashes:
    """Values of 16 bytes as uint64 (rows, 2)."""
    begin = 2 * column.offset
    return np.frombuffer(column.buffers()[1], np.uint64)[begin : begin + 2 * len(column)].reshape(-1, 2)


def first_of_equals(digests: Hashes) -> Numbers:
    """For each row the first row with the same digest (itself where it is the first).

    `digests` is uint64 (rows, 2), the two halves of 128 bits. Returns int64 (rows,).
    """
    rows = len(digests)
    order = np.argsort(digests[:, 0], kind="stable")
    ordered = digests[order]
    same_half = ordered[1:, 0] == ordered[:-1, 0]
    same = same_half & (ordered[1:, 1] == ordered[:-1, 1])
    if not np.array_equal(same, same_half):  # two digests share a half: sort by both
        order = np.lexsort((digests[:, 1], digests[:, 0]))
        ordered = digests[order]
        same = (ordered[1:] == ordered[:-1]).all(axis=1)
    begins = np.flatnonzero(np.concatenate(([True], ~same))) if rows else np.empty(0, np.int64)
    first = np.empty(rows, dtype=np.int64)
    first[order] = np.repeat(order[begins], np.diff(begins, append=rows))
    return first


@dataclass(frozen=True, slots=True)
class Source:
    """A sketch file of this run, or of the index of an earlier one. `first` is the number of its first row."""

    file: SketchFile
    first: int
    run: int = -1
    """The number of the earlier run; -1 for this one."""

    def batches(self, earlier: Sequence[EarlierRun], memory: Memory) -> Iterator[tuple[pa.RecordBatch, Any]]:
        """Its sketches, and which of the rows count, bool (rows,): those of an index that were removed since do not.

        Raises:
            IntegrityError: the file is missing, or its bytes are not those that were written.
        """
        file, removed = self.file, pa.array([], pa.string())
        if self.run >= 0:
            run = earlier[self.run]
            run.check_file(next(shard for shard in run.shards if run.folder / shard.path == file.path))
            removed = pa.array(run.removed.ids, pa.string())
        elif file.sha256:
            storage.bring(file.path, file.bytes, file.sha256)
            if file.path.stat().st_size != file.bytes or sha256_file(file.path) != file.sha256:
                raise IntegrityError(damaged(file.path, "was changed"))
        for batch in _batches(memory.map(file.path)):
            yield batch, ~pc.is_in(batch.column("id"), removed).to_numpy(zero_copy_only=False)


def _batches(mapped: mmap.mmap) -> Iterator[pa.RecordBatch]:
    reader = pa.ipc.open_file(pa.py_buffer(mapped))
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)


def sources_of(earlier: Sequence[EarlierRun], sketches: Sequence[SketchFile]) -> list[Source]:
    """The indexes of earlier runs, and then the sketch files of this one."""
    found, first = list[Source](), 0
    of_runs = [
        (run, SketchFile(e.folder / s.path, s.rows, s.bytes, s.sha256))
        for run, e in enumerate(earlier) for s in e.shards
    ]  # fmt: skip
    for run, file in (*of_runs, *((-1, file) for file in sketches)):
        found.append(Source(file, first, run))
        first += file.rows
    return found


# What a stage says, and what the units of a comparison came to.


class Decided(NamedTuple):
    """What `decide_rows` says about one group.

    decisions: batches by row_key, with columns of `DECISIONS`. counts: sums for the facts, {name: {key: count}}.
    survivors: of the rows that most others are lost for [how many, number among all rows, id], at most
    `MAX_ALARMS` + 1.
    """

    decisions: Sequence[pa.RecordBatch]
    counts: dict[str, dict[str, int]]
    survivors: list[list[Any]]


@dataclass(frozen=True, slots=True)
class Compared:
    """The records of the units: of `sort`, and of `decide`."""

    root: Path
    sorts: list[dict[str, Any]]
    decides: list[dict[str, Any]]

    @property
    def rows(self) -> int:
        """Rows of this run."""
        return sum(record["rows"] for record in self.sorts if not record["old"])

    def total(self, name: str) -> Counter[str]:
        """A sum of `ShuffleStage.totals` over this run's rows."""
        return _sum(record["totals"].get(name, {}) for record in self.sorts)

    def count(self, name: str) -> Counter[str]:
        """A sum of `Decided.counts` over all groups."""
        return _sum(record["counts"].get(name, {}) for record in self.decides)

    def survivors(self) -> list[tuple[str, int]]:
        """(id, how many are lost for it) of the rows with the most, at most `MAX_ALARMS`."""
        found = [survivor for record in self.decides for survivor in record["survivors"]]
        most = sorted(found, key=lambda survivor: (-survivor[0], survivor[1]))[:MAX_ALARMS]
        return [(name, count) for count, _, name in most]

    def decisions(self, memory: Memory) -> Iterator[pa.RecordBatch]:
        """The decisions of all groups in the order of row keys, in batches of about `_MERGED_ROWS` rows."""
        parts = [part for found in parts_by_number(self.decides).values() for _, part in found]
        opened = [pa.ipc.open_stream(part).read_next_batch() for part in read_parts(self.root, parts, memory)]
        keys = [batch.column("row_key").to_numpy() for batch in opened]
        sample = np.sort(np.concatenate([np.empty(0, np.uint64), *(k[::64] for k in keys)]))
        for low, high in pairwise([0, *sample[_MERGED_ROWS // 64 :: _MERGED_ROWS // 64].tolist(), None]):
            slices = []
            for batch, known in zip(opened, keys, strict=True):
                begin = int(np.searchsorted(known, np.uint64(low)))
                end = len(known) if high is None else int(np.searchsorted(known, np.uint64(high)))
                if end > begin:
                    slices.append(pa.Table.from_batches([batch.slice(begin, end - begin)]))
            if slices:
                table = pa.concat_tables(slices, promote_options="default").sort_by("row_key").combine_chunks()
                yield from table.to_batches(max_chunksize=table.num_rows)
            memory.release()


def _sum(counts: Iterable[dict[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for counted in counts:
        total.update(counted)
    return total


def survivors_of(rows: SketchRows, counts: Numbers) -> list[list[Any]]:
    """[count, number, id] of the rows with the largest counts, int64 (rows,), as `Decided.survivors` has them."""
    numbers = rows.numbers if isinstance(rows, GatheredRows) else np.arange(len(rows))
    most = np.flatnonzero(counts)
    most = most[np.argsort(-counts[most], kind="stable")][: MAX_ALARMS + 1]
    found = zip(counts[most].tolist(), numbers[most].tolist(), rows.ids(most).to_pylist(), strict=True)
    return [list(survivor) for survivor in found]


def counted_by(column: pa.Array) -> dict[str, int]:
    """How often each value of a column of strings occurs; null counts as "", as alarms about sources have it."""
    found = pc.value_counts(pc.fill_null(column, ""))
    return dict(zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True))


@dataclass(frozen=True)
class ShuffleStage(IndexedStage):
    """A stage that decides about rows by the keys that they share. Its config has `memory_mb`."""

    compared: Compared | None = None

    def keys(self, batch: pa.RecordBatch) -> Iterator[tuple[int, Hashes, Numbers]]:
        """(band, keys, the row of each) of a batch of sketches or of an index.

        Rows that share a key of one band, directly or through others, are decided together; so is a row by itself that
        has a key twice. Others stay as they are. A row may have `BEGINNING` added.
        """
        raise NotImplementedError(f"{type(self).__name__}.keys")

    def totals(self, batch: pa.RecordBatch) -> dict[str, dict[str, int]]:
        """What is counted of all rows: {name: {key: count}} of a batch of sketches. Default: nothing."""
        return {}

    def check_totals(self, totals: dict[str, Counter[str]]) -> None:
        """Raise a clear error, before rows are compared, where the totals of all rows make no sense. Default: none."""

    def decide_rows(self, rows: GatheredRows, memory: Memory) -> Decided:
        """Decide about the rows of one group."""
        raise NotImplementedError(f"{type(self).__name__}.decide_rows")

    def summarize(self, compared: Compared) -> dict[str, Any]:
        """The facts for the manifest, `alarms` among them."""
        raise NotImplementedError(f"{type(self).__name__}.summarize")

    def compare(self, sketches: Sequence[SketchFile], units: CompareUnits) -> Self:
        """Compare all rows, in work units."""
        return replace(self, compared=shuffle(self, sketches, units))

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write the decisions, by row_key, to `out`; returns the facts."""
        if self.compared is None:
            files = [SketchFile.of(path) for path in sketches]
            return self.compare(files, CompareUnits(out.parent, workers)).reduce(sketches, out, workers=workers)
        write_decisions(out, self.compared.decisions(Memory(self.config.memory_mb << 20, out.parent)))
        return self.summarize(self.compared)


def shuffle(stage: ShuffleStage, sketches: Sequence[SketchFile], units: CompareUnits) -> Compared:
    """Compare the rows of the sketch files, with each other and with the rows of earlier runs, in work units."""
    sources, root = sources_of(stage.earlier, sketches), units.root
    old = sum(e.rows for e in stage.earlier)
    memory = (stage.config.memory_mb << 20) // units.share
    ranges = number_of_ranges(sum(source.file.rows for source in sources))
    sorts = units.do("sort", partial(sort_unit, stage, root, ranges), sources)
    names = {name for record in sorts for name in record["totals"]}
    stage.check_totals({name: _sum(record["totals"].get(name, {}) for record in sorts) for name in sorted(names)})
    tasks = list(_join_tasks(sources, sorts))
    joins = units.do("join", partial(join_unit, root, memory, old), tasks)
    links = [part for found in parts_by_number(joins).values() for _, part in found]
    (grouped,) = units.do("group", partial(group_unit, root, sources, links), [None], here=True)
    at = parts_by_number([grouped])
    wanted = [(source, at[number][0][1]) for number, source in enumerate(sources) if number in at]
    groups = parts_by_number(units.do("gather", partial(gather_unit, root, memory), wanted))
    payloads = [[part for _, part in groups[number]] for number in sorted(groups)]
    return Compared(root, sorts, units.do("decide", partial(decide_unit, stage, root, memory, old), payloads))


# 1. Sort: the keys of each sketch file, in ranges.


def number_of_ranges(keys: int) -> int:
    """Into how many ranges (a power of two) so many keys of a band are cut, of about `RANGE_KEYS` each."""
    ranges = 1
    while ranges < 1 << 16 and keys > ranges * RANGE_KEYS:
        ranges *= 2
    return ranges


def sort_unit(stage: ShuffleStage, root: Path, ranges: int, index: int, source: Source) -> dict[str, Any]:
    """Write the keys of one sketch file: part `band * ranges + range` holds keys uint64, then row numbers uint32."""
    memory = Memory(stage.config.memory_mb << 20, root)
    keys: dict[int, list[tuple[Any, Any]]] = {}
    totals, begin = dict[str, Counter[str]](), 0
    for batch, live in source.batches(stage.earlier, memory):
        for band, hashes, rows in stage.keys(batch):
            lives = live[rows & (BEGINNING - 1)]
            keys.setdefault(band, []).append((hashes[lives], (begin + rows[lives]).astype(np.uint32)))
        for name, counts in stage.totals(batch).items() if source.run < 0 else ():
            totals.setdefault(name, Counter()).update(counts)
        begin += batch.num_rows
        memory.release()
    out = PartsWriter(root, f".work/compared/keys-{index:05d}.bin")
    for band in sorted(keys):
        hashes, rows = (np.concatenate(found) for found in zip(*keys.pop(band), strict=True))
        part = ((hashes >> np.uint64(48)) * np.uint64(ranges) >> np.uint64(16)).astype(np.uint16)
        order = np.argsort(part, kind="stable")
        cuts, hashes, rows = np.searchsorted(part[order], np.arange(ranges + 1)), hashes[order], rows[order]
        for number, (low, high) in enumerate(pairwise(cuts.tolist())):
            out.add(band * ranges + number, hashes[low:high], rows[low:high])
    counted = {name: dict(counts) for name, counts in totals.items()}
    return out.close() | {"rows": begin, "old": source.run >= 0, "totals": counted}


# 2. Join: rows with an equal key.


def _join_tasks(
    sources: Sequence[Source], sorts: Sequence[dict[str, Any]]
) -> Iterator[list[tuple[list[int], list[Part]]]]:
    """Ranges of keys, together so many that reading them pays for a unit."""
    task: list[tuple[list[int], list[Part]]] = []
    size = 0
    for _, found in sorted(parts_by_number(sorts).items()):
        task.append(([sources[place].first for place, _ in found], [part for _, part in found]))
        size += sum(part[2] for _, part in found)
        if size >= _KEY_BYTES * RANGE_KEYS:
            yield task
            task, size = [], 0
    if task:
        yield task


def join_unit(
    root: Path, memory_bytes: int, old: int, index: int, tasks: Sequence[tuple[Sequence[int], Sequence[Part]]]
) -> dict[str, Any]:
    """Link the rows that share a key; a task is one range: (the number of each file's first row, the file's part).

    Part 0 has int64 (rows, 2): each linked row, and the first row of those that it is joined with. Rows below `old` are
    of earlier runs. Keys of these alone join nothing: they are decided already.
    """
    memory, links = Memory(memory_bytes, root), [np.empty((0, 2), np.int64)]
    for firsts, parts in tasks:
        hashes, rows, whole = [np.empty(0, np.uint64)], [np.empty(0, np.int64)], [np.empty(0, np.bool_)]
        for first, part in zip(firsts, read_parts(root, parts, memory), strict=True):
            count = part.size // _KEY_BYTES
            numbers = np.frombuffer(part, np.uint32, count, 8 * count)
            hashes.append(np.frombuffer(part, np.uint64, count))
            rows.append(first + (numbers & np.uint32(BEGINNING - 1)).astype(np.int64))
            whole.append(numbers < BEGINNING)
        links.append(_linked(np.concatenate(hashes), np.concatenate(rows), np.concatenate(whole), old, memory))
        memory.release()
    out = PartsWriter(root, f".work/compared/links-{index:05d}.bin")
    out.add(0, np.ascontiguousarray(joined(np.concatenate(links))))
    return out.close()


def _linked(hashes: Hashes, rows: Numbers, whole: Flags, old: int, memory: Memory) -> Numbers:
    """int64 (links, 2): each row that has a hash again, and the first row that has it."""
    repeated = repeated_hashes(hashes, memory)
    order = repeated[np.lexsort((rows[repeated], hashes[repeated]))]
    hashes, rows = hashes[order], rows[order]
    begins = np.flatnonzero(np.concatenate(([True], hashes[1:] != hashes[:-1]))) if len(rows) else order
    sizes = np.diff(begins, append=len(rows))
    counts = np.repeat(np.logical_or.reduceat(whole[order], begins) if len(rows) else whole[order], sizes)
    first, last = np.repeat(begins, sizes), np.repeat(begins + sizes - 1, sizes)
    found = (first != np.arange(len(rows))) & (rows[last] >= old) & counts
    return np.column_stack((rows[found], rows[first][found]))


def repeated_hashes(hashes: Hashes, memory: Memory) -> npt.NDArray[np.int32]:
    """The places of the hashes that may occur again, in order: all that do and few others.

    Most rows share no hash, so that sorting all of them would be wasted.
    """
    from datakit.dedup import _kernels_shuffle as kernels

    words = 1
    while 64 * words < _SLOTS_PER_KEY * len(hashes):
        words *= 2
    seen, twice = memory.full((words,), 0, np.uint64), memory.full((words,), 0, np.uint64)
    out = memory.full((len(hashes),), 0, np.int32)
    return out[: kernels.repeated(hashes, seen, twice, out)]


# 3. Components of rows that are linked, and groups of components.


def joined(links: Numbers) -> Numbers:
    """int64 (rows, 2): each row that a link names, ascending, and the first row of its component."""
    from datakit.dedup import _kernels_shuffle as kernels

    rows, place = np.unique(links, return_inverse=True)
    place = place.reshape(-1, 2)
    first = np.arange(len(rows))
    kernels.join(np.ascontiguousarray(place[:, 0]), np.ascontiguousarray(place[:, 1]), first)
    return np.column_stack((rows, rows[first]))


def groups_of(forests: Iterable[Numbers]) -> tuple[Numbers, Numbers]:
    """(rows that are linked, ascending; the number of each one's group), from results of `joined`."""
    waiting, size = [np.empty((0, 2), np.int64)], 0
    for forest in forests:
        waiting.append(forest)
        size += len(forest)
        if size >= _LINKS:
            waiting, size = [joined(np.concatenate(waiting))], 0
    rows, first = joined(np.concatenate(waiting)).T
    _, place, sizes = np.unique(first, return_inverse=True, return_counts=True)
    before = np.cumsum(sizes) - sizes  # rows in components whose first row is before this one's
    return rows, np.unique(before // GROUP_ROWS, return_inverse=True)[1][place]


def group_unit(root: Path, sources: Sequence[Source], links: Sequence[Part], index: int, _: Any) -> dict[str, Any]:
    """Write the rows in groups of each file: part `file` holds their numbers in the file, then their groups, uint32."""
    found = read_parts(root, links, Memory(1 << 30, root))
    rows, group = groups_of(np.frombuffer(part, np.int64).reshape(-1, 2) for part in found)
    cuts = np.searchsorted(rows, [s.first for s in sources]).tolist()
    out = PartsWriter(root, f".work/compared/groups-{index:05d}.bin")
    for number, (source, low, high) in enumerate(zip(sources, cuts, [*cuts, len(rows)][1:], strict=True)):
        out.add(number, (rows[low:high] - source.first).astype(np.uint32), group[low:high].astype(np.uint32))
    return out.close()


# 4. Gather: the rows of each group.


def gather_unit(root: Path, memory_bytes: int, index: int, task: tuple[Source, Part]) -> dict[str, Any]:
    """Write the sketches of one file's rows in groups, with their number among all rows (`row`).

    Part `group` is an Arrow IPC stream; a large file has several for one group.
    """
    source, part = task
    memory = Memory(memory_bytes, root)
    (found,) = read_parts(root, [part], memory)
    numbers, groups = np.frombuffer(found, np.uint32).reshape(2, -1)
    storage.bring(source.file.path, source.file.bytes, source.file.sha256)
    out, begin = PartsWriter(root, f".work/compared/rows-{index:05d}.bin"), 0
    pieces, size = defaultdict[int, list[pa.RecordBatch]](list), 0
    for batch in _batches(memory.map(source.file.path)):
        low, high = np.searchsorted(numbers, [begin, begin + batch.num_rows])
        order = low + np.argsort(groups[low:high], kind="stable")
        taken = batch.take(pa.array(numbers[order] - begin))
        taken = taken.append_column("row", pa.array(source.first + numbers[order].astype(np.int64)))
        kinds, starts = np.unique(groups[order], return_index=True)
        for kind, first, end in zip(kinds.tolist(), starts, [*starts[1:], len(order)], strict=True):
            pieces[kind].append(taken.slice(first, end - first))
        begin, size = begin + batch.num_rows, size + taken.nbytes
        if size > _GATHER_BYTES:
            _write_groups(out, pieces)
            size = 0
        memory.release()
    _write_groups(out, pieces)
    return out.close()


def _write_groups(out: PartsWriter, pieces: dict[int, list[pa.RecordBatch]]) -> None:
    for group in sorted(pieces):
        out.add_rows(group, pieces.pop(group))


# 5. Decide.


def decide_unit(
    stage: ShuffleStage, root: Path, memory_bytes: int, old: int, index: int, parts: Sequence[Part]
) -> dict[str, Any]:
    """Decide about the rows of one group, and write the decisions."""
    stage.open()
    memory = Memory(memory_bytes, root)
    batches = [batch for part in read_parts(root, parts, memory) for batch in pa.ipc.open_stream(part)]
    numbers = np.concatenate([batch.column("row").to_numpy() for batch in batches])
    begins = np.cumsum([0, *(batch.num_rows for batch in batches)], dtype=np.int64)
    rows = GatheredRows(batches, begins, numbers, int(np.searchsorted(numbers, old)))
    decided = stage.decide_rows(rows, memory)
    out = PartsWriter(root, f".work/compared/decisions-{index:05d}.bin")
    for batch in decided.decisions:
        out.add_rows(0, [batch])
    return out.close() | {"counts": decided.counts, "survivors": decided.survivors}
