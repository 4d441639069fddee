"""The comparison of all rows in work units, on one machine or many: sort, join, gather, decide.

Each row has keys: 64-bit hashes (a digest, LSH bands, hashes of lines). Rows that share no key, not even through other
rows, cannot decide about each other. So every stage that compares rows takes these steps, and says only what the keys
of a row are (`ShuffleStage.keys`) and what becomes of rows that are connected (`ShuffleStage.decide_rows`):

1. `sort`, a unit for each sketch file: its keys with the numbers of their rows, cut into ranges of the keys. Rows of
   the file with an equal key are linked at once, and the first of them alone goes on: so a key that all rows have, as
   boilerplate has, takes a place for each file, not for each row.
2. `join`, a unit for some ranges: reads its ranges of all files by their offsets, and links rows with an equal key.
3. The links are joined to components, in this process: memory for the rows that share a key with another one, not for
   all rows. Neighbouring components make groups of about `GROUP_ROWS` rows.
4. `gather`, a unit for each sketch file: the sketches of its rows in groups, by group.
5. `decide`, a unit for each group: reads its rows from all files by their offsets, and decides about them.

The decisions of all groups are then merged, in the order of row keys. No file is for one pair of a writer and a reader:
each unit writes one file of numbered parts, its record says where they are, and a reader fetches its parts of all
files. Ranges and groups depend on the rows and on constants alone, so no result depends on where units run.
"""

import mmap
import os
import tempfile
import weakref
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import datakit.storage as storage
from datakit.dedup.comparison import Flags, Hashes, Numbers, blocks, score_column
from datakit.dedup.index import INDEX_VERSION, EarlierRun, earlier_runs, run_of
from datakit.errors import ConfigError, IntegrityError, UsageError
from datakit.manifest import AGAINST, Ledger, check_file, damaged, digest_of_work
from datakit.stage import MAX_ALARMS, CompareUnits, Extras, Parent, SketchFile, Stage
from datakit.text.words import UNICODE_VERSION

RANGE_KEYS = 1 << 22
"""Keys of a range of one band, about, and keys that a `join` unit reads, where there are so many."""
GROUP_ROWS = 1 << 15
"""Rows of a group, besides its last component: one component is never cut."""
BEGINNING = 1 << 31
"""Added to the row of a key that joins its row only with rows that have the key without this bit."""
_KEY_BYTES = 12  # a key and the number of its row in its file, below BEGINNING
_OWN_LINKS = -1  # the number of the part with the links of one file
_MERGED_ROWS = 1 << 15  # of a batch of decisions
_GATHER_BYTES = 64 << 20  # of sketches that are copied before they are written
_LINKS = 1 << 21  # links that are joined at one time
_NOT_INDEXED = ("source", "lang", "rank")  # alarms are about new rows, and policy `first` needs no rank
_ALIGNMENT = 64  # of parts, so that arrays over mapped parts are aligned


# Arrays and files in bounded memory.

ARRAY_SHARE = 64
"""An array larger than this part of the memory lies in a file: about twenty arrays are alive at one time."""


class Memory:
    """`bytes` that the arrays of one unit may take, and the folder for larger ones. Neither changes a result.

    This is not a hard limit: temporary arrays of single steps stay in memory.
    """

    def __init__(self, bytes: int, folder: Path) -> None:
        self.bytes, self.folder = bytes, folder
        self._arrays, self._read = weakref.WeakSet[mmap.mmap](), weakref.WeakSet[mmap.mmap]()
        self._libraries = _resident_bytes()  # they are mapped files, too

    def full(self, shape: tuple[int, ...], value: int, dtype: Any) -> npt.NDArray[Any]:
        """An array filled with a value. A large one lies in a file without a name, which vanishes with the process.

        Raises:
            OSError: the disk has no space for it. (All is allocated at once: a mapped file that finds none later would
                kill the process.)
        """
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if size <= self.bytes // ARRAY_SHARE:
            return np.full(shape, value, dtype) if value else np.zeros(shape, dtype)
        with tempfile.TemporaryFile(dir=self.folder) as file:
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError as e:
                raise OSError(e.errno, e.strerror, str(self.folder)) from None
            mapped = mmap.mmap(file.fileno(), size)
        self.release()
        self._arrays.add(mapped)
        array = np.frombuffer(mapped, dtype).reshape(shape)
        if value:  # a new file holds zeros
            array[...] = value
        return array

    def take(self, array: npt.NDArray[Any], at: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """`array[at]`; a large result lies in a file."""
        taken = self.full((len(at), *array.shape[1:]), 0, array.dtype)
        return np.take(array, at, axis=0, out=taken, mode="clip")  # any other mode needs a second copy

    def hold(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A copy of an array; a large one lies in a file."""
        held = self.full(array.shape, 0, array.dtype)
        held[...] = array
        return held

    def sums(self, counts: Numbers) -> Numbers:
        """int64 (n + 1,): where each of some lists of these lengths begins, one after another, and where all end."""
        starts = self.full((len(counts) + 1,), 0, np.int64)
        np.cumsum(counts, out=starts[1:])
        return starts

    def map(self, path: Path) -> mmap.mmap:
        """The bytes of a file, mapped for reading."""
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._read.add(mapped)
        return mapped

    def release(self) -> None:
        """Return mapped memory to the system once it is much; later reads mostly come from the page cache.

        Files mapped for reading go first, once half of `bytes` is mapped: their parts are rarely read twice, while
        arrays are read all the time.
        """
        for mappings, most in ((self._read, self.bytes // 2), (self._arrays, self.bytes)):
            if _resident_bytes() - self._libraries <= most:
                break
            for mapped in mappings:
                mapped.madvise(mmap.MADV_DONTNEED)


def _resident_bytes() -> int:
    """Bytes of mapped files in the memory of this process; 0 where the system does not say, and takes them itself."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[2]) * mmap.PAGESIZE
    except OSError:
        return 0


# Files of parts.

Part = tuple[str, int, int, int]
"""A part of a file: (path relative to the data folder, first byte, bytes, CRC-32)."""


Parts = Iterator[tuple[int, Any]]
"""What a unit of a comparison makes: numbered parts, each bytes or an array of bytes."""


def run_unit(
    root: Path,
    memory_bytes: int,
    name: str,
    make: Callable[[Any, Memory, dict[str, Any]], Parts],
    index: int,
    task: Any,
) -> dict[str, Any]:
    """Write the parts that `make(task, memory, record)` yields to one file, each at a multiple of 64 bytes.

    Returns the record of the unit: the entry of the file and its parts, and what `make` adds to it.
    """
    path, size = f".work/compared/{name}-{index:05d}.bin", 0
    record = dict[str, Any](parts=[])
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    with storage.whole_file(root / path, flush=False) as temporary:
        with temporary.open("wb") as file:
            for number, data in make(task, Memory(memory_bytes, root), record):
                if len(data):
                    record["parts"].append((number, size, len(data), zlib.crc32(data)))
                for piece in (data, bytes(-len(data) % _ALIGNMENT)):
                    file.write(piece)
                    size += len(piece)
        record["files"] = [[path, size, digest_of_work(temporary, root)]]
    return record


def stream_of(batches: Sequence[pa.RecordBatch]) -> pa.Buffer:
    """Rows as the bytes of a part: an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def parts_by_number(records: Iterable[dict[str, Any]]) -> dict[int, list[tuple[int, Part]]]:
    """From the records of units: for each part number (the place of the unit, its part), in the order of units."""
    found: dict[int, list[tuple[int, Part]]] = {}
    for place, record in enumerate(records):
        for number, *where in record["parts"]:
            found.setdefault(number, []).append((place, (record["files"][0][0], *where)))
    return found


def read_parts(parts: Sequence[Part], memory: Memory) -> Iterator[pa.Buffer]:
    """The bytes of parts: of files on this machine mapped, of others fetched from the store in ranges.

    Raises:
        IntegrityError: a part differs from what was written.
    """
    root, mapped = memory.folder, dict[str, pa.Buffer]()
    for path, begin, size, crc in parts:
        if (root / path).is_file():
            if path not in mapped:
                mapped[path] = pa.py_buffer(memory.map(root / path))
            found = mapped[path].slice(begin, size)
        else:
            fetched = memory.full((size,), 0, np.uint8)
            fetched[:] = np.frombuffer(storage.read_range(root / path, begin, size), np.uint8)
            found = pa.py_buffer(fetched)
        if zlib.crc32(found) != crc:
            raise IntegrityError(damaged(root / path, "was changed"))
        memory.release()
        yield found


# Rows by their sketches.


@dataclass(frozen=True, slots=True)
class Rows:
    """Sketches of rows, in batches that own their memory (mapped files, mostly).

    `begins` int64 (batches + 1,): the first row of each batch. `numbers` int64 (rows,): the number of each row among
    all rows, ascending. The first `old` rows are of earlier runs, and stay; no batch has both.
    """

    batches: list[pa.RecordBatch]
    begins: Numbers
    numbers: Numbers
    old: int = 0

    def ids(self, rows: Numbers) -> pa.Array:
        """The ids of the given rows, in that order; null for -1."""
        known = np.unique(rows[rows >= 0])
        cuts = np.searchsorted(known, self.begins)
        found = [pa.array([], pa.string())]
        for number in np.flatnonzero(np.diff(cuts)):
            at = known[cuts[number] : cuts[number + 1]] - self.begins[number]
            found.append(self.batches[number].column("id").take(pa.array(at)))
        return pa.concat_arrays(found).take(pa.array(np.searchsorted(known, rows), mask=rows < 0))

    def values(self, name: str, begin: int = 0) -> pa.ChunkedArray:
        """A column of the rows from `begin` on, with which a batch begins."""
        batches = zip(self.batches, self.begins, strict=False)
        return pa.chunked_array(batch.column(name) for batch, first in batches if first >= begin)

    def column(self, name: str, memory: Memory, dtype: Any = np.uint64) -> npt.NDArray[Any]:
        """A column of all rows: uint64 (rows, 2) where it holds digests, else (rows,) of a type; null is NaN."""
        digests = pa.types.is_fixed_size_binary(self.batches[0].schema.field(name).type)
        values = memory.full((len(self.numbers), 2) if digests else self.numbers.shape, 0, dtype)
        for batch, begin in zip(self.batches, self.begins, strict=False):
            own = batch.column(name)
            values[begin : begin + len(own)] = digest_halves(own) if digests else own.to_numpy(zero_copy_only=False)
            memory.release()
        return values


def digest_halves(column: pa.Array) -> Hashes:
    """Values of 16 bytes as uint64 (rows, 2)."""
    begin = 2 * column.offset
    return np.frombuffer(column.buffers()[1], np.uint64)[begin : begin + 2 * len(column)].reshape(-1, 2)


@dataclass(frozen=True, slots=True)
class Source:
    """A sketch file of this run, or of the index of an earlier one. `first` is the number of its first row."""

    file: SketchFile
    first: int
    of: str = ""
    """The name of the earlier run; empty for this one."""

    def batches(self, memory: Memory) -> Iterator[pa.RecordBatch]:
        """Its sketches; every byte is compared with its checksum before any of it is used.

        Raises:
            IntegrityError: the file is missing, or its bytes are not those that were written.
        """
        path = self.file.path
        try:
            check_file(path.parent, path.name, self.file.bytes, self.file.sha256)
        except IntegrityError as e:
            if not self.of:
                raise
            # a run of the new dataset makes no index of the old one
            raise IntegrityError(f"{e}. The file is of the index of {self.of}; run that dedup again") from None
        yield from batches_of(path, memory)


def batches_of(path: Path, memory: Memory) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow IPC file, which is mapped."""
    reader = pa.ipc.open_file(pa.py_buffer(memory.map(path)))
    yield from map(reader.get_batch, range(reader.num_record_batches))


# What a stage says, and what the units of a comparison came to.


class Decided(NamedTuple):
    """What `decide_rows` says about one group.

    decisions: batches with columns of `DECISIONS`, made one after another; what follows is whole when the last is made.
    stands_for int64 (rows,): how many rows or passages are lost for each row. counts: sums for the facts, {name: {key:
    count}}.
    """

    decisions: Iterable[pa.RecordBatch]
    stands_for: Numbers
    counts: dict[str, dict[str, int]]


class Compared(NamedTuple):
    """What the units of a comparison came to. `root`: the folder of their files."""

    root: Path
    sums: dict[str, Counter[str]]
    """`ShuffleStage.counted` of this run's rows, and `Decided.counts` of all groups."""
    survivors: list[tuple[str, int]]
    """(id, how many are lost for it) of the rows with the most, at most `MAX_ALARMS`."""
    decisions: list[Part]


def summed(records: Iterable[dict[str, Any]]) -> dict[str, Counter[str]]:
    """What units counted, together."""
    total = defaultdict[str, Counter[str]](Counter)
    for record in records:
        for name, counts in record.get("sums", {}).items():
            total[name].update(counts)
    return total


def merged(parts: Sequence[Part], memory: Memory) -> Iterator[pa.RecordBatch]:
    """The decisions of all groups in the order of row keys, in batches of about `_MERGED_ROWS` rows."""
    opened = [pa.ipc.open_stream(part).read_next_batch() for part in read_parts(parts, memory)]
    keys = [batch.column("row_key").to_numpy() for batch in opened]
    sample = np.sort(np.concatenate([np.empty(0, np.uint64), *(k[::64] for k in keys)]))
    begins = [0] * len(opened)
    for high in [*sample[_MERGED_ROWS // 64 :: _MERGED_ROWS // 64], None]:
        ends = [len(known) if high is None else int(np.searchsorted(known, high)) for known in keys]
        slices = [b.slice(begin, end - begin) for b, begin, end in zip(opened, begins, ends, strict=True)]
        tables = [pa.Table.from_batches([part]) for part in slices if part.num_rows]
        if tables:
            table = pa.concat_tables(tables, promote_options="default").sort_by("row_key").combine_chunks()
            yield from table.to_batches(max_chunksize=table.num_rows)
        begins = ends
        memory.release()


# The decisions, and the stage that makes and applies them.

DECISIONS = pa.schema(
    [
        pa.field("row_key", pa.uint64(), nullable=False),
        pa.field("reason", pa.string()),  # null: the row stays
        pa.field("detail", pa.string()),
        pa.field("duplicate_of", pa.string()),  # the id of the row that a dropped row duplicates
        pa.field("similarity", pa.float64()),
        pa.field("duplicate_in", pa.string()),  # the version of the earlier run that kept that row; null: this run
        pa.field("cut", pa.list_(pa.int32())),  # numbers of the units that are cut out of a row that stays
        pa.field("cut_end", pa.list_(pa.int32())),  # for runs of units: where each ends
        pa.field("kept_in", pa.list_(pa.string())),  # for each of them the id of a row that still has it, if known
        pa.field("kept_in_run", pa.list_(pa.string())),  # and the version of the earlier run that kept that row
        pa.field("cluster_size", pa.int64()),  # of a row that stays: how many rows it stands for; null: itself
        pa.field("duplicates", pa.list_(pa.string())),  # and the ids of the others, where they are asked for
        pa.field("looser", pa.bool_()),  # of a row that stays: another setting of dedup would drop it
    ]
)
"""The decisions file: one row for each row that is dropped or changed, in the order of their keys."""


@dataclass(frozen=True)
class ShuffleStage(Stage):
    """A stage that decides about groups of linked rows, by default of those that share keys.

    `earlier` are the runs whose rows are compared with too, oldest first. `reduce` writes a decisions file, `bind`
    names it, `decide` looks rows up in it. `key_bytes` of a sketch file hold one key of a band or less, which tells how
    many ranges of keys there are; 0: a row has one.
    """

    config: Any
    earlier: tuple[EarlierRun, ...] = ()
    compared: Compared | None = None
    decisions: Path | None = None
    key_bytes: int = 0

    compares_rows: ClassVar[bool] = True

    # What a stage says.

    def keys(self, batch: pa.RecordBatch) -> Iterator[tuple[int, Hashes, Numbers]]:
        """(band, keys, the row of each) of a batch of sketches or of an index.

        Rows that share a key of one band, directly or through others, are decided together; so is a row by itself that
        has a key twice. Others stay as they are. A row may have `BEGINNING` added.
        """
        raise NotImplementedError(f"{type(self).__name__}.keys")

    def totals(self, batch: pa.RecordBatch) -> dict[str, dict[str, int]]:
        """What is counted of all rows: {name: {key: count}} of a batch of sketches. Default: nothing."""
        return {}

    def check_totals(self, sums: dict[str, Counter[str]]) -> None:
        """Raise a clear error, before rows are compared, where the totals of all rows make no sense. Default: where no
        row has a number in the column of the policy."""
        policy = getattr(self.config, "policy", "first")
        if (column := score_column(policy)) and sums["rows"]["all"] and not sums["rows"]["ranked"]:
            raise ConfigError(f"policy {policy!r}: no row has a number in the column {column!r}")

    def decide_rows(self, rows: Rows, memory: Memory) -> Decided:
        """Decide about the rows of one group."""
        raise NotImplementedError(f"{type(self).__name__}.decide_rows")

    def summarize(self, compared: Compared) -> dict[str, Any]:
        """The facts for the manifest, `alarms` among them."""
        raise NotImplementedError(f"{type(self).__name__}.summarize")

    # The comparison.

    def compare(self, sketches: Sequence[SketchFile], work: CompareUnits) -> Self:
        """Compare the rows of the sketch files, with each other and with the rows of earlier runs, in work units."""
        files = [
            (e.name, SketchFile(e.folder / s.path, s.rows, s.bytes, s.sha256)) for e in self.earlier for s in e.shards
        ]
        files += [("", file) for file in sketches]
        firsts = np.cumsum([0, *(file.rows for _, file in files)]).tolist()
        sources = [Source(file, first, name) for (name, file), first in zip(files, firsts, strict=False)]
        counts, links = self.links(sources, work)
        grouped = self.units(work, "group", partial(group_unit, sources), [links], here=True)
        wanted = [(sources[number], part) for number, ((_, part),) in sorted(parts_by_number(grouped).items())]
        old, groups = sum(e.rows for e in self.earlier), self.gathered(work, "gather", wanted)
        decides = self.units(work, "decide", partial(decide_unit, self, old), groups)
        survivors = sorted((s for record in decides for s in record["survivors"]), key=lambda s: (-s[0], s[1]))
        most = [(name, count) for count, _, name in survivors[:MAX_ALARMS]]
        decisions = [part for _, part in parts_by_number(decides).get(0, [])]
        return replace(self, compared=Compared(work.data, summed([*counts, *decides]), most, decisions))

    def links(self, sources: Sequence[Source], work: CompareUnits) -> tuple[list[dict[str, Any]], list[Part]]:
        """(the records of units that counted all rows, parts with links as `joined` gives them).

        Default: the rows that share a key, by `sort` and `join`.
        """
        old, ranges = sum(e.rows for e in self.earlier), 1
        keys = sum(s.file.bytes // self.key_bytes if self.key_bytes else s.file.rows for s in sources)
        while ranges < 1 << 16 and keys > ranges * RANGE_KEYS:
            ranges *= 2
        sorts = self.units(work, "sort", partial(sort_unit, self, ranges), sources)
        self.check_totals(summed(sorts))
        parts = parts_by_number(sorts)
        links = [part for _, part in parts.pop(_OWN_LINKS, [])]
        joins = self.units(work, "join", partial(join_unit, old), [*_join_tasks(sources, parts)])
        return sorts, links + [part for _, part in parts_by_number(joins).get(0, [])]

    def units(
        self, work: CompareUnits, name: str, make: Any, tasks: Sequence[Any], here: bool = False
    ) -> list[dict[str, Any]]:
        """The records of one unit for each task, as `run_unit` gives them."""
        memory = (self.config.memory_mb << 20) // work.share
        return work.units(name, partial(run_unit, work.data, memory, name, make), [*enumerate(tasks)], here=here)

    def gathered(self, work: CompareUnits, name: str, wanted: Sequence[tuple[Source, Part]]) -> list[list[Part]]:
        """The parts with the rows of each group, by `gather_unit`."""
        groups = parts_by_number(self.units(work, name, gather_unit, wanted))
        return [[part for _, part in groups[number]] for number in sorted(groups)]

    def counted(self, batch: pa.RecordBatch, sums: dict[str, Counter[str]]) -> None:
        """Add the `totals` of a batch of sketches, the number of its rows and of those with a number in the policy's
        column."""
        ranked = pc.sum(pc.is_finite(batch.column("rank"))).as_py() or 0
        for name, counts in (self.totals(batch) | {"rows": {"all": batch.num_rows, "ranked": ranked}}).items():
            sums[name].update(counts)

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write the decisions, by row_key, to `out`; returns the facts. Columns that a stage does not say are null."""
        assert self.compared is not None, "compare comes before reduce"
        memory = Memory(self.config.memory_mb << 20, self.compared.root)
        with (
            storage.whole_file(out, flush=False) as temporary,
            pa.OSFile(str(temporary), "wb") as file,
            pa.ipc.new_file(file, DECISIONS) as writer,
        ):
            for batch in merged(self.compared.decisions, memory):
                columns = [batch.column(f.name).cast(f.type) if f.name in batch.schema.names
                           else pa.nulls(batch.num_rows, f.type) for f in DECISIONS]  # fmt: skip
                writer.write_batch(pa.record_batch(columns, schema=DECISIONS))
        return self.summarize(self.compared)

    # What was decided.

    def bind(self, out: Path) -> Self:
        """The stage that applies the decisions in `out`."""
        return replace(self, decisions=out)

    def look_up(self, row_key: pa.Array) -> pa.RecordBatch:
        """The decisions about rows; null in every column for a row that stays unchanged.

        Without earlier runs there are no columns about them.
        """
        assert self.decisions is not None, "bind comes before decide"
        wanted = row_key.to_numpy()
        low, high = wanted.min(initial=np.iinfo(np.uint64).max), wanted.max(initial=0)
        near = list[pa.RecordBatch]()
        reader = pa.ipc.open_file(pa.memory_map(str(self.decisions)))
        for batch in map(reader.get_batch, range(reader.num_record_batches)):
            keys = batch.column("row_key").to_numpy()  # in order, in the batch and from one to the next
            if keys[0] <= high and keys[-1] >= low:
                near.append(batch)
        table = pa.Table.from_batches(near, DECISIONS).to_struct_array()
        found = pa.RecordBatch.from_struct_array(table.combine_chunks())
        found = found if self.earlier else found.drop_columns(["duplicate_in", "kept_in_run"])
        return found.take(pc.index_in(row_key, value_set=found.column("row_key")))

    def decided_about(self, row_keys: Hashes) -> pa.RecordBatch:
        """The decisions about the rows with these keys."""
        return self.look_up(pa.array(row_keys)).drop_columns(["row_key"])


@dataclass(frozen=True)
class IndexedStage(ShuffleStage):
    """A stage whose result can hold an index of its kept rows, which later runs compare with.

    Its config has the fields of `IndexOptions`. With `earlier` runs `duplicate_in` is the version of the run that kept
    the other row, null for this run.
    """

    def use_results(self, earlier: Mapping[str, Parent], target: Path, kind: str) -> tuple[Self, tuple[Parent, ...]]:
        """The stage with the runs that `against` names, and the manifest of the newest."""
        if not self.config.against:
            return self, ()
        parent = run_of(storage.local(self.config.against), self.name)
        place = parent.path.resolve()
        if target.resolve() in (place, place.parent.parent / f"{parent.manifest.stage}.json"):
            raise UsageError(
                f"--against {self.config.against}: is the result that this run writes, so every row would be a "
                "duplicate of itself. Give this run another --dataset or --output"
            )
        return replace(self, earlier=earlier_runs(parent, self.for_kind(kind), kind)), (replace(parent, use=AGAINST),)

    def resources(self) -> dict[str, Any]:
        """The Unicode version of words and normal forms, which is the interpreter's; the earlier runs."""
        against = [{"version": e.version, "rows": e.kept} for e in self.earlier]
        return {"unicode": UNICODE_VERSION} | ({"against": against} if against else {})

    def extras(self, ledger: Ledger) -> Extras:
        """The version of the index, where one is written."""
        return Extras({"index": {"version": INDEX_VERSION}} if self.config.save_index else {})

    def survivors_named(self, rows: Rows, at: Numbers) -> dict[str, pa.Array]:
        """The columns of decisions that name a row of a group as the one that stays; null for -1."""
        versions = pa.array([*(e.version for e in self.earlier), None], pa.string())
        run = np.searchsorted(np.cumsum([e.rows for e in self.earlier]), rows.numbers[at], side="right")
        of_which = versions.take(pa.array(np.where(at < 0, len(self.earlier), run)))
        return {"duplicate_of": rows.ids(at), "duplicate_in": of_which}

    def drops(self, rows: Rows, survivor: Numbers, memory: Memory) -> Iterator[tuple[Numbers, dict[str, Any]]]:
        """The rows of a group that others stay for, in blocks, with the columns of decisions that say which."""
        row_key = rows.column("row_key", memory)
        for block in blocks(len(survivor), rows.old):
            gone = block.start + np.flatnonzero(survivor[block] >= 0)
            yield gone, {"row_key": row_key[gone]} | self.survivors_named(rows, survivor[gone])
            memory.release()

    def survivor_columns(self, found: pa.RecordBatch) -> dict[str, pa.Array]:
        """From decisions: the columns of dropped rows that name the row that stays."""
        return {name: found.column(name) for name in ("duplicate_of", "duplicate_in") if name in found.schema.names}

    def in_which(self, found: pa.RecordBatch) -> pa.Array:
        """From decisions: the name of the run that kept the other row, where it is an earlier one."""
        if not self.earlier:
            return pa.repeat("", found.num_rows)
        known = pa.array([e.version for e in self.earlier], pa.string())
        words = pa.array(["", *(f" in {e.name}" for e in self.earlier)])
        return words.take(pc.add(pc.fill_null(pc.index_in(found.column("duplicate_in"), known), -1), 1))

    @property
    def saves_index(self) -> bool:
        """Whether the result holds an index of its kept rows."""
        return bool(self.config.save_index)

    def index(self, sketches: pa.RecordBatch) -> pa.RecordBatch:
        """The index of the kept rows of a batch of sketches.

        A row that policy `first` keeps is the first one with its text, so its sketch holds the shingles.
        """
        kept = self.look_up(sketches.column("row_key")).column("reason").is_null()
        return sketches.drop_columns([n for n in _NOT_INDEXED if n in sketches.schema.names]).filter(kept)


# 1. Sort: the keys of each sketch file, in ranges.


def sort_unit(stage: ShuffleStage, ranges: int, source: Source, memory: Memory, record: dict[str, Any]) -> Parts:
    """The keys of one sketch file: part `band * ranges + range` holds keys uint64, then row numbers uint32.

    Each key is there once, for the first row that has it; the links between these and others, as `joined` gives them,
    are part `_OWN_LINKS`. Of an earlier run all keys are there, since they do not join its rows.
    """
    keys = defaultdict[int, list[tuple[Any, Any]]](list)
    totals, begin, links = defaultdict[str, Counter[str]](Counter), 0, [np.empty((0, 2), np.int64)]
    for batch in source.batches(memory):
        for band, hashes, rows in stage.keys(batch):
            keys[band].append((hashes, (begin + rows).astype(np.uint32)))
        if not source.of:
            stage.counted(batch, totals)
        begin += batch.num_rows
        memory.release()
    for band in sorted(keys):
        hashes, rows = (np.concatenate(found) for found in zip(*keys.pop(band), strict=True))
        if not source.of:
            row, whole = (rows & np.uint32(BEGINNING - 1)).astype(np.int64), rows < BEGINNING
            again, first = linked(hashes, row, whole, 0)
            links.append(source.first + np.column_stack((row[again], row[first])))
            rows[first] = row[first]  # a row that has the whole key is linked with it
            hashes, rows = np.delete(hashes, again), np.delete(rows, again)
        part = ((hashes >> np.uint64(48)) * np.uint64(ranges) >> np.uint64(16)).astype(np.uint16)
        order = np.argsort(part, kind="stable")
        cuts, hashes, rows = np.searchsorted(part[order], np.arange(ranges + 1)), hashes[order], rows[order]
        for number, (low, high) in enumerate(pairwise(cuts.tolist())):
            own = (hashes[low:high], rows[low:high])
            yield band * ranges + number, np.concatenate([array.view(np.uint8) for array in own])
    yield _OWN_LINKS, joined(np.concatenate(links)).ravel().view(np.uint8)
    record["sums"] = totals


# 2. Join: rows with an equal key.


def _join_tasks(
    sources: Sequence[Source], keys: dict[int, list[tuple[int, Part]]]
) -> Iterator[list[tuple[list[int], list[Part]]]]:
    """Ranges of keys, together so many that reading them pays for a unit."""
    task: list[tuple[list[int], list[Part]]] = []
    size = 0
    for _, found in sorted(keys.items()):
        task.append(([sources[place].first for place, _ in found], [part for _, part in found]))
        size += sum(part[2] for _, part in found)
        if size >= _KEY_BYTES * RANGE_KEYS:
            yield task
            task, size = [], 0
    if task:
        yield task


def join_unit(
    old: int, ranges: Sequence[tuple[Sequence[int], Sequence[Part]]], memory: Memory, _: dict[str, Any]
) -> Parts:
    """Link the rows that share a key; a range is (the number of each file's first row, the file's part).

    Part 0 has int64 (rows, 2): each linked row, and the first row of those that it is joined with. Rows below `old` are
    of earlier runs. Keys of these alone join nothing: they are decided already.
    """
    links = [np.empty((0, 2), np.int64)]
    for firsts, parts in ranges:
        hashes, rows, whole = list[Hashes](), list[Numbers](), list[Flags]()
        for begin, part in zip(firsts, read_parts(parts, memory), strict=True):
            count = part.size // _KEY_BYTES
            numbers = np.frombuffer(part, np.uint32, count, 8 * count)
            hashes.append(np.frombuffer(part, np.uint64, count))
            rows.append(begin + (numbers & np.uint32(BEGINNING - 1)).astype(np.int64))
            whole.append(numbers < BEGINNING)
        row = np.concatenate(rows)
        again, first = linked(np.concatenate(hashes), row, np.concatenate(whole), old)
        links.append(np.column_stack((row[again], row[first])))
        memory.release()
    yield 0, joined(np.concatenate(links)).ravel().view(np.uint8)


def linked(hashes: Hashes, rows: Numbers, whole: Flags, old: int) -> tuple[Numbers, Numbers]:
    """(the places of rows that have a hash again, for each of them the place of the first row that has it)."""
    order = np.argsort(hashes)
    again = hashes[order[1:]] == hashes[order[:-1]]
    order = order[np.append(again, False) | np.append(False, again)] if len(order) else order  # most have no other
    order = order[np.lexsort((rows[order], hashes[order]))]
    _, first, key, sizes = np.unique(hashes[order], return_index=True, return_inverse=True, return_counts=True)
    joins = np.bincount(key, whole[order], len(first)) > 0
    joins &= rows[order][first + sizes - 1] >= old
    known = joins[key] & (first[key] != np.arange(len(order)))
    return order[known], order[first][key[known]]


# 3. Components of rows that are linked, and groups of components.


def joined(links: Numbers) -> Numbers:
    """int64 (rows, 2): each row that a link names, ascending, and the first row of its component."""
    rows, place = np.unique(links, return_inverse=True)
    place, first = place.reshape(-1, 2), np.arange(len(rows))
    # Each first row that is linked with an earlier one goes to that. Of two such rounds every component that is not
    # whole loses half of its first rows, so their number grows with the logarithm of the rows.
    while len(place := place[place[:, 0] != place[:, 1]]):
        np.minimum.at(first, place.max(axis=1), place.min(axis=1))
        while (first[first] != first).any():
            first = first[first]
        place = first[place]
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


def group_unit(sources: Sequence[Source], links: Sequence[Part], memory: Memory, _: dict[str, Any]) -> Parts:
    """The rows in groups of each file: part `file` holds their numbers in the file, then their groups, uint32."""
    found = read_parts(links, memory)
    rows, group = groups_of(np.frombuffer(part, np.int64).reshape(-1, 2) for part in found)
    cuts = np.searchsorted(rows, [*(source.first for source in sources), np.iinfo(np.int64).max])
    for number, (source, (low, high)) in enumerate(zip(sources, pairwise(cuts), strict=True)):
        both = np.concatenate([rows[low:high] - source.first, group[low:high]])
        yield number, both.astype(np.uint32).view(np.uint8)


# 4. Gather: the rows of each group.


def gather_unit(task: tuple[Source, Part], memory: Memory, _: dict[str, Any]) -> Parts:
    """The sketches of one file's rows in groups, with their number among all rows (`row`); which rows those are is a
    part that `group_unit` writes for the file.

    Part `group` is an Arrow IPC stream; a large file has several for one group.
    """
    source, part = task
    (found,) = read_parts([part], memory)
    numbers, groups = np.frombuffer(found, np.uint32).reshape(2, -1)
    storage.bring(source.file.path, source.file.bytes, source.file.sha256)
    pieces, begin, size = defaultdict[int, list[pa.RecordBatch]](list), 0, 0
    for batch in batches_of(source.file.path, memory):
        low, high = np.searchsorted(numbers, [begin, begin + batch.num_rows])
        order = low + np.argsort(groups[low:high], kind="stable")
        taken = batch.take(pa.array(numbers[order] - begin))
        taken = taken.append_column("row", pa.array(source.first + numbers[order].astype(np.int64)))
        kinds, starts = np.unique(groups[order], return_index=True)
        for kind, (first, end) in zip(kinds.tolist(), pairwise([*starts, len(order)]), strict=True):
            pieces[kind].append(taken.slice(first, end - first))
        begin, size = begin + batch.num_rows, size + taken.nbytes
        if size > _GATHER_BYTES:
            yield from _emptied(pieces)
            size = 0
        memory.release()
    yield from _emptied(pieces)


def _emptied(pieces: dict[int, list[pa.RecordBatch]]) -> Parts:
    """The rows of each group as a part; nothing is left in `pieces`."""
    for group in sorted(pieces):
        yield group, stream_of(pieces.pop(group))


def rows_in(parts: Sequence[Part], memory: Memory, old: int = 0) -> Rows:
    """The rows of parts with sketches, as a `gather` unit writes them; those below `old` are of earlier runs."""
    streams = (pa.ipc.open_stream(part) for part in read_parts(parts, memory))
    batches = [batch for stream in streams for batch in stream if batch.num_rows]
    begins = np.cumsum([0, *(batch.num_rows for batch in batches)], dtype=np.int64)
    numbers = memory.full((int(begins[-1]),), 0, np.int64)
    for batch, begin in zip(batches, begins, strict=False):
        numbers[begin : begin + batch.num_rows] = batch.column("row").to_numpy()
    return Rows(batches, begins, numbers, int(np.searchsorted(numbers, old)))


# 5. Decide.


def decide_unit(stage: ShuffleStage, old: int, parts: Sequence[Part], memory: Memory, record: dict[str, Any]) -> Parts:
    """Decide about the rows of one group: part 0 is an Arrow IPC stream of one batch of decisions, by row_key; a group
    may have several.

    `survivors` of the record are [how many are lost for it, number, id] of the rows with the most.
    """
    stage.open()
    rows = rows_in(parts, memory, old)
    decided = stage.decide_rows(rows, memory)
    for batch in decided.decisions:
        yield 0, stream_of([batch.sort_by("row_key")])
    most = np.empty(0, np.int64)
    for block in blocks(len(decided.stands_for)):
        most = np.append(most, block.start + np.flatnonzero(decided.stands_for[block]))
        most = most[np.argsort(-decided.stands_for[most], kind="stable")][:MAX_ALARMS]
    about = (decided.stands_for[most].tolist(), rows.numbers[most].tolist(), rows.ids(most).to_pylist())
    record |= {"sums": decided.counts, "survivors": list(zip(*about, strict=True))}
