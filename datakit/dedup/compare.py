"""The comparison of all rows in work units: the decisions of `cluster`, on one machine or many.

Rows that share no digest and no band, not even through other rows, cannot decide about each other. So:

1. `sort`, a unit for each sketch file: its keys (digest and bands), cut into ranges of their values.
2. `bucket`, a unit for some ranges: reads its ranges of all files by their offsets, and links rows with an equal key.
3. The links are joined to components, in this process: memory for the rows that share a key with another row, not for
   all rows. Neighbouring components make groups of about `GROUP_ROWS` rows.
4. `gather`, a unit for each sketch file: the sketches of its rows in groups, sorted by group.
5. `decide`, a unit for each group: reads its rows from all files by their offsets, and compares them (`cluster`).
6. The decisions of all groups are merged, in the order of row keys.

No file is for one pair of a writer and a reader (`part_files`). Ranges and groups depend on the rows and on constants
alone, so results do not depend on where units run.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import datakit.storage as storage
from datakit.config import sha256_file
from datakit.dedup.alike import KEYS
from datakit.dedup.cluster import decide, size_histogram
from datakit.dedup.exact import Memory, SketchRows, first_of_equals
from datakit.dedup.minhash import repeated_hashes, sketches_of
from datakit.dedup.part_files import Part, PartsWriter, Source, by_number, number_of_ranges, read_parts, sources_of
from datakit.dedup.stage import NO_CHAINS, Dedup, score_column
from datakit.errors import ConfigError
from datakit.stage import MAX_ALARMS, CompareUnits, Losses, SketchFile

if TYPE_CHECKING:
    from datakit.dedup.cluster import Verdict

RANGE_KEYS = 1 << 22
"""Keys that a `bucket` unit reads at least, where there are so many, and at most twice as many of one band."""
GROUP_ROWS = 1 << 15
"""Rows of a group, besides its last component: one component is never cut."""
_GATHER_BYTES = 64 << 20  # of shingles that are copied at one time
_MERGED_ROWS = 1 << 15  # of a batch of decisions
_LINKS = 1 << 23  # links that are joined at one time


# 1. The keys of each sketch file, in ranges.


def sort_unit(stage: Dedup, root: Path, ranges: int, index: int, source: Source) -> dict[str, Any]:
    """Write the keys of one sketch file: part `band * ranges + range` holds hashes uint64 and row numbers uint32.

    Band 0 is the digest. The keys of the beginnings of conversations are those of the band of whole ones.
    """
    memory = Memory(stage.config.memory_mb << 20, root)
    keys: dict[int, list[tuple[Any, Any]]] = {}
    totals, begin, ranked = {"source": Counter[str](), "lang": Counter[str]()}, 0, False
    for batch, live in source.batches(stage.earlier, memory):
        if "prefixes" in batch.schema.names and stage.config.cluster != "star":
            raise ConfigError(NO_CHAINS)
        for band, hashes, rows in _keys(batch, live):
            keys.setdefault(band, []).append((hashes, (begin + rows).astype(np.uint32)))
        for name in totals if source.run < 0 else ():
            for entry in pc.value_counts(batch.column(name).drop_null()).to_pylist():
                totals[name][entry["values"]] += entry["counts"]
        ranked |= (
            "rank" in batch.schema.names and not pc.all(pc.is_null(batch.column("rank"), nan_is_null=True)).as_py()
        )
        begin += batch.num_rows
        memory.release()
    out = PartsWriter(root, f".work/compared/keys-{index:05d}.bin")
    for band in sorted(keys):
        out.add_ranges(band * ranges, ranges, *(np.concatenate(found) for found in zip(*keys.pop(band), strict=True)))
    counts = {name: dict(counted) for name, counted in totals.items()}
    return out.close() | {"numbers": begin, "old": source.run >= 0, "ranked": ranked, "totals": counts}


def _keys(batch: pa.RecordBatch, live: npt.NDArray[np.bool_]) -> Iterator[tuple[int, Any, Any]]:
    """(band, hashes uint64, rows int64) of the `live` rows of a batch of sketches."""
    digest = batch.column("digest")
    halves = np.frombuffer(digest.buffers()[1], np.uint64)[: 2 * len(digest)].reshape(-1, 2)
    rows = np.flatnonzero(live & digest.is_valid().to_numpy(zero_copy_only=False))
    yield 0, halves[rows, 0], rows
    lengths = pc.fill_null(pc.list_value_length(batch.column("shingles")), 0).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(live & (lengths > 0))
    bands = sum(name.startswith("band") for name in batch.schema.names)
    for band in range(bands):
        yield 1 + band, batch.column(f"band{band}").to_numpy()[rows], rows
    if "prefixes" in batch.schema.names:
        prefixes = batch.column("prefixes")
        counts = pc.fill_null(pc.list_value_length(prefixes), 0).to_numpy(zero_copy_only=False)
        owners = np.repeat(np.arange(batch.num_rows), counts)
        kept = live[owners] & (lengths[owners] > 0)
        yield KEYS, prefixes.flatten().to_numpy()[kept], owners[kept]


# 2. Rows with an equal key.


def bucket_unit(
    root: Path, memory_bytes: int, old: int, index: int, tasks: Sequence[tuple[Sequence[int], Sequence[Part]]]
) -> dict[str, Any]:
    """Link the rows that share a key; a task is one range: (the number of each file's first row, the file's part).

    Part 0 has links int64 (links, 2): a row, and the first row that it is joined with. Rows below `old` are of earlier
    runs. Keys of these alone join nothing: they are decided already.
    """
    memory = Memory(memory_bytes, root)
    links = [np.empty((0, 2), np.int64)]
    for firsts, parts in tasks:
        hashes, rows = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
        for first, part in zip(firsts, read_parts(root, parts, memory), strict=True):
            count = part.size // 12
            hashes.append(np.frombuffer(part, np.uint64, count))
            rows.append(first + np.frombuffer(part, np.uint32, count, 8 * count).astype(np.int64))
        links.append(_linked(np.concatenate(hashes), np.concatenate(rows), old, memory))
        memory.release()
    out = PartsWriter(root, f".work/compared/links-{index:05d}.bin")
    out.add(0, np.ascontiguousarray(_forest(np.concatenate(links))))
    return out.close()


def _linked(hashes: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64], old: int, memory: Memory) -> npt.NDArray[Any]:
    """int64 (links, 2): each row that shares its hash with others and is not their first, and that first one."""
    repeated = repeated_hashes(hashes, memory)
    hashes, rows = hashes[repeated], rows[repeated]
    order = np.lexsort((rows, hashes))
    hashes, rows = hashes[order], rows[order]
    begins = np.flatnonzero(np.concatenate(([True], hashes[1:] != hashes[:-1]))) if len(rows) else order
    sizes = np.diff(begins, append=len(rows))
    first, last = np.repeat(begins, sizes), np.repeat(begins + sizes - 1, sizes)
    found = (rows != rows[first]) & (rows[last] >= old)
    return np.column_stack((rows[found], rows[first][found]))


def _forest(links: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """int64 (rows, 2): each linked row but the first of its component, and that first one; ascending.

    Labels are hooked and shortened until nothing changes (FastSV: Zhang, Azad and Hu, 2020).
    """
    rows, place = np.unique(links, return_inverse=True)
    one, other = place.reshape(-1, 2).T
    label = np.arange(len(rows))
    while True:
        above = label[label]
        for a, b in ((one, other), (other, one)):
            np.minimum.at(label, label[a], above[b])
            np.minimum.at(label, a, above[b])
        label = np.minimum(label, label[label])
        if np.array_equal(label[label], above):
            break
    joined = np.flatnonzero(label != np.arange(len(rows)))
    return np.column_stack((rows[joined], rows[label[joined]]))


# 3. Components, and groups of them.


def groups_of(forests: Iterable[npt.NDArray[Any]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(rows that share a key with another one, ascending; the number of each one's group)."""
    joined, waiting, size = np.empty((0, 2), np.int64), list[npt.NDArray[Any]](), 0
    for forest in forests:
        waiting.append(forest)
        size += len(forest)
        if size >= _LINKS:
            joined, waiting, size = _forest(np.concatenate([joined, *waiting])), [], 0
    joined = _forest(np.concatenate([joined, *waiting]))
    roots, sizes = np.unique(joined[:, 1], return_counts=True)
    before = np.cumsum(sizes + 1) - sizes - 1  # rows in components whose first row is before this one's
    group = np.unique(before // GROUP_ROWS, return_inverse=True)[1]
    rows = np.concatenate([roots, joined[:, 0]])
    numbers = np.concatenate([group, group[np.searchsorted(roots, joined[:, 1])]])
    order = np.argsort(rows)
    return rows[order], numbers[order]


def _assign(root: Path, sources: Sequence[Source], linked: Sequence[Part], index: int, _: Any) -> dict[str, Any]:
    """Write the rows in groups of each file: its part holds row numbers and group numbers, uint32 each."""
    memory = Memory(1 << 30, root)
    forests = (np.frombuffer(part, np.int64).reshape(-1, 2) for part in read_parts(root, linked, memory))
    rows, group = groups_of(forests)
    cuts = np.searchsorted(rows, [s.first for s in sources]).tolist()
    out = PartsWriter(root, f".work/compared/groups-{index:05d}.bin")
    for number, (source, low, high) in enumerate(zip(sources, cuts, [*cuts, len(rows)][1:], strict=True)):
        out.add(number, (rows[low:high] - source.first).astype(np.uint32), group[low:high].astype(np.uint32))
    largest = int(np.bincount(group).max(initial=0))
    return out.close() | {"groups": int(group.max(initial=-1)) + 1, "rows": len(rows), "largest": largest}


# 4. The rows of each group.


def gather_unit(root: Path, memory_bytes: int, index: int, task: tuple[Source, Part]) -> dict[str, Any]:
    """Write the sketches of one file's rows in groups, an Arrow IPC stream a group, with their number (`row`).

    Of rows with the same digest, one has the shingles.
    """
    source, part = task
    memory = Memory(memory_bytes, root)
    (found,) = read_parts(root, [part], memory)
    numbers, groups = np.frombuffer(found, np.uint32).reshape(2, -1)
    file = storage.bring(source.file.path, source.file.bytes, source.file.sha256)
    reader = pa.ipc.open_file(pa.py_buffer(memory.map(file)))
    batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
    begins = np.cumsum([0, *(batch.num_rows for batch in batches)])
    out = PartsWriter(root, f".work/compared/rows-{index:05d}.bin")
    turns = max(1, -(-source.file.bytes // _GATHER_BYTES))
    present = np.unique(groups)
    for some in np.array_split(present, min(turns, max(len(present), 1))):
        mine = np.flatnonzero(np.isin(groups, some))
        by_group = mine[np.argsort(groups[mine], kind="stable")]
        pieces: dict[int, list[pa.RecordBatch]] = {}
        for batch, low, high in zip(batches, begins, begins[1:], strict=False):
            here = by_group[(numbers[by_group] >= low) & (numbers[by_group] < high)]
            if not len(here):
                continue
            taken = batch.take(pa.array(numbers[here] - low))
            taken = taken.append_column("row", pa.array(source.first + numbers[here].astype(np.int64)))
            kinds, starts = np.unique(groups[here], return_index=True)
            for kind, begin, end in zip(kinds.tolist(), starts, [*starts[1:], len(here)], strict=True):
                pieces.setdefault(kind, []).append(taken.slice(begin, end - begin))
            memory.release()
        for kind in some.tolist():
            out.add(kind, _stream(_once(pa.Table.from_batches(pieces.pop(kind)))))
    return out.close()


def _once(rows: pa.Table) -> pa.RecordBatch:
    """The rows as one batch, the shingles of each digest in the first row that has some."""
    (batch,) = rows.combine_chunks().to_batches()
    digest, shingles = batch.column("digest"), batch.column("shingles")
    has = shingles.is_valid().to_numpy(zero_copy_only=False) & digest.is_valid().to_numpy(zero_copy_only=False)
    at = np.flatnonzero(has)
    halves = np.frombuffer(b"".join(digest.take(pa.array(at)).to_pylist()), np.uint64).reshape(-1, 2)
    again = at[first_of_equals(halves) != np.arange(len(at))]
    if len(again):
        mask = np.zeros(batch.num_rows, np.bool_)
        mask[again] = True
        kept = pc.if_else(pa.array(mask), pa.scalar(None, shingles.type), shingles)
        batch = batch.set_column(batch.schema.get_field_index("shingles"), "shingles", kept)
    return batch


def _stream(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


# 5. The decisions of each group.


def decide_unit(
    stage: Dedup, root: Path, memory_bytes: int, old: int, threads: int, index: int, parts: Sequence[Part]
) -> dict[str, Any]:
    """Compare the rows of one group; writes their decisions, and returns counts and what alarms are made from.

    `threads` compare the rows of a group that one large component made large.
    """
    stage.open()
    memory = Memory(memory_bytes, root)
    found = (pa.ipc.open_stream(buffer) for buffer in read_parts(root, parts, memory))
    batches = [batch for reader in found for batch in reader]
    rows = SketchRows(batches, np.cumsum([0, *(b.num_rows for b in batches)], dtype=np.int64))
    numbers = np.concatenate([b.column("row").to_numpy() for b in batches])
    before = int(np.searchsorted(numbers, old))
    own = threads if len(rows) > 2 * GROUP_ROWS else 1  # others run beside a small group, and a large one would be last
    verdict = decide(sketches_of(rows, memory), before, stage.config, memory, own, stage.by_field)
    decisions = stage.decisions_of(verdict, numbers, before)
    path = f".work/compared/decisions-{index:05d}.arrow"
    target = root / path
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    with pa.OSFile(str(temporary), "wb") as file, pa.ipc.new_file(file, decisions.schema) as writer:
        writer.write_batch(decisions)
    temporary.rename(target)
    return {"files": [[path, target.stat().st_size, sha256_file(target)]], **_counted(stage, verdict, numbers, before)}


def _counted(stage: Dedup, verdict: "Verdict", numbers: npt.NDArray[np.int64], before: int) -> dict[str, Any]:
    """The facts of one group, and what is known of its rows that others are dropped for."""
    lost = verdict.survivor >= 0
    counters: dict[str, Counter[str]] = {"source": Counter(), "lang": Counter()}
    for batch, begin in zip(verdict.sketches.batches, verdict.sketches.begins, strict=False):
        for name in counters.keys() & set(batch.schema.names):  # the rows of an index have neither
            gone = batch.column(name).filter(pa.array(lost[begin : begin + batch.num_rows])).drop_null()
            for entry in pc.value_counts(gone).to_pylist():
                counters[name][entry["values"]] += entry["counts"]
    counts = verdict.cluster_rows
    most = np.flatnonzero(counts)
    most = most[np.lexsort((numbers[most], -counts[most]))][: MAX_ALARMS + 1]
    ids = verdict.sketches.ids(most).to_pylist()
    sizes, times = np.unique(counts[before:][counts[before:] > 0] + 1, return_counts=True)
    return {
        "facts": verdict.facts,
        "largest": int(counts.max(initial=0)) + 1,
        "dropped": int(lost.sum()),
        "lost": {name: dict(counted) for name, counted in counters.items()},
        "survivors": [[int(counts[row]), int(numbers[row]), name] for row, name in zip(most, ids, strict=True)],
        "large": int((counts >= stage.config.max_cluster_rows).sum()),
        "sizes": [[int(size), int(n)] for size, n in zip(sizes, times, strict=True)],
    }


# All steps.


@dataclass(frozen=True, slots=True)
class Compared:
    """What the units of a comparison came to: the records of `sort` and of `decide`."""

    root: Path
    sorts: list[dict[str, Any]]
    decides: list[dict[str, Any]]

    def losses(self, name: str) -> Losses:
        """Rows in all and dropped rows, by source or language."""
        found = Losses("rows")
        for record in self.sorts:
            found.whole.update(record["totals"][name])
        for record in self.decides:
            found.lost.update(record["lost"][name])
        return found

    def survivors(self) -> list[list[Any]]:
        """[rows that are dropped for it, its number, its id] of the rows with the most, at most `MAX_ALARMS`."""
        found = [survivor for record in self.decides for survivor in record["survivors"]]
        return sorted(found, key=lambda survivor: (-survivor[0], survivor[1]))[:MAX_ALARMS]

    def facts(self) -> dict[str, Any]:
        """Counts of pairs and of clusters, for the manifest."""
        counts, sizes = Counter[str](), Counter[int]()
        for record in self.decides:
            counts.update(record["facts"])
            sizes.update(dict(record["sizes"]))
        largest = max((record["facts"]["largest_bucket_rows"] for record in self.decides), default=0)
        rows = sum(record["numbers"] for record in self.sorts if not record["old"])
        kept = rows - sum(record["dropped"] for record in self.decides)
        dropped_for = np.repeat(np.array([*sizes], np.int64), np.array([*sizes.values()], np.int64)) - 1
        names = ("buckets", "largest_bucket_rows", "pairs_in_buckets", "pairs_compared", "entries_visited",
                 "pairs_similar")  # fmt: skip
        return {
            "candidates": {name: largest if name == "largest_bucket_rows" else counts[name] for name in names},
            "largest_cluster_rows": max((record["largest"] for record in self.decides), default=int(rows > 0)),
            "cluster_sizes": size_histogram(dropped_for, kept),
        }


def compare(stage: Dedup, sketches: Sequence[SketchFile], units: CompareUnits) -> Compared:
    """Compare all rows of the sketch files, with each other and with the rows of earlier runs, in work units."""
    sources, root = sources_of(stage.earlier, sketches), units.root
    old = sum(e.rows for e in stage.earlier)
    ranges = number_of_ranges(sum(source.file.rows for source in sources), RANGE_KEYS)
    own_memory = (stage.config.memory_mb << 20) // units.share
    sorts = units.do("sort", partial(sort_unit, stage, root, ranges), sources)
    if (column := score_column(stage.config.policy)) and sorts and not any(record["ranked"] for record in sorts):
        raise ConfigError(f"policy {stage.config.policy!r}: no row has a number in the column {column!r}")
    tasks = list(_bucket_tasks(sources, sorts))
    linked = units.do("bucket", partial(bucket_unit, root, own_memory, old), tasks)
    parts = [part for found in by_number(linked).values() for _, part in found]
    (grouped,) = units.do("group", partial(_assign, root, sources, parts), [None], here=True)
    at = by_number([grouped])
    gathers = units.do(
        "gather", partial(gather_unit, root, own_memory),
        [(source, at[number][0][1]) for number, source in enumerate(sources) if number in at],
    )  # fmt: skip
    groups = by_number(gathers)
    payloads = [[part for _, part in groups[number]] for number in sorted(groups)]
    decides = units.do("decide", partial(decide_unit, stage, root, own_memory, old, units.share), payloads)
    return Compared(root, sorts, decides)


def _bucket_tasks(
    sources: Sequence[Source], sorts: Sequence[dict[str, Any]]
) -> Iterator[list[tuple[list[int], list[Part]]]]:
    """Ranges of keys, together so many that reading them pays for a unit."""
    task: list[tuple[list[int], list[Part]]] = []
    size = 0
    for _, found in sorted(by_number(sorts).items()):
        task.append(([sources[place].first for place, _ in found], [part for _, part in found]))
        size += sum(part[2] for _, part in found)
        if size >= 12 * RANGE_KEYS:
            yield task
            task, size = [], 0
    if task:
        yield task


# 6. One file of decisions.


def merged(compared: Compared, memory: Memory) -> Iterator[pa.RecordBatch]:
    """The decisions of all groups in the order of row keys, in batches of about `_MERGED_ROWS` rows."""
    opened = []
    for record in compared.decides:
        ((path, size, sha256),) = record["files"]
        file = storage.bring(compared.root / path, size, sha256)
        opened.append(pa.ipc.open_file(pa.py_buffer(memory.map(file))).get_batch(0))
    keys = [batch.column("row_key").to_numpy() for batch in opened]
    sample = np.sort(np.concatenate([np.empty(0, np.uint64), *(k[::64] for k in keys)]))
    cuts = [0, *sample[_MERGED_ROWS // 64 :: _MERGED_ROWS // 64].tolist(), None]
    for low, high in pairwise(cuts):
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
