"""What one unit of a stage does: read a part of raw files, sketch a shard, write its index, or split it by decisions.

A unit is a pure function of its input and the stage. It writes its files and returns a record of them
(`engine.store`); where an earlier run did the same, it takes the files of that run.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import datakit.storage as storage
from datakit.data import content_of, first_rows, read_rows
from datakit.engine.store import SKETCHES, EarlierUnits, Result, UnitWriter, check_intact, link_or_copy, unit_result
from datakit.errors import IntegrityError
from datakit.manifest import Count, Shard
from datakit.stage import Losses, RawGroup, Stage, split


@dataclass(frozen=True, slots=True)
class ShardRows:
    """The rows of one shard that come in: all, or the first `limit`."""

    shard: Shard
    limit: int = 0
    quarantined: Shard | None = None
    """Of raw files: the records of the same unit that could not be read."""

    @property
    def num_rows(self) -> int:
        """How many rows come in."""
        return self.limit or self.shard.rows

    def rows(self, folder: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows, one batch a row group."""
        batches = read_rows(folder, self.shard, columns)
        return first_rows(batches, self.limit) if self.limit else batches

    def parts(self) -> list[Any]:
        """What a unit's key says of its input."""
        return [self.shard.sha256, self.limit, self.quarantined and self.quarantined.sha256]


@dataclass(frozen=True, slots=True)
class RawPart:
    """The input of one read unit: a part of a group of raw files."""

    group: RawGroup
    number: int
    key: str
    """Of the group's units; empty where its files are not known by name."""
    unit: Any = None
    """None where an earlier run read the group: its files are opened only if that run's are damaged."""


@dataclass(frozen=True, slots=True)
class SavedTables:
    """The tables that an earlier run of a stage saved: other thresholds need no new measurements."""

    version: str
    folder: Path
    shards: dict[str, Shard]
    """By path."""
    role: str

    def rows(self, index: int, wanted: int) -> pa.Table | None:
        """The rows saved beside shard number `index`; None where they are damaged, since they can be measured again."""
        shard = self.shards.get(f"{self.role}/part-{index:05d}.parquet")
        if shard is None or shard.rows != wanted:
            return None
        try:
            return pa.Table.from_batches(read_rows(self.folder, shard))
        except IntegrityError:
            return None


@dataclass(frozen=True, slots=True)
class UnitWork:
    """The units of one run of a stage, in whatever process they run. Small and picklable."""

    stage: Stage
    source: Path
    """The folder of the shards that come in."""
    data: Path
    earlier: EarlierUnits
    saved: SavedTables | None = None

    def read(self, index: int, part: RawPart) -> Result:
        """Read one part of the raw files into staged shards, and sketch its rows; or take both from an earlier run."""
        stage, first_file, unit = self.stage, part.group.first_file, part.unit
        if unit is None:
            if taken := self.earlier.take("read", part.key, part.number, self.data, index, first_file):
                return taken
            unit = next(islice(stage.raw_units(part.group), part.number, None))
        count, size, notes, losses = Count(), 0, Counter[str](), Losses("records")
        with UnitWriter(self.data, index, ".work/staged/", first_file) as out:
            for batch in stage.read(unit):
                out.write("kept", batch.rows)
                out.write("quarantine", batch.quarantined)
                if stage.compares_rows:
                    out.write(SKETCHES, stage.sketch(batch.rows))
                rows, bad = batch.rows.num_rows, batch.quarantined.num_rows
                count = count.plus(Count(into=rows + bad, kept=rows, quarantined=bad))
                size += batch.rows.nbytes
                notes.update(batch.notes)
                losses.add(batch.rows.column("source"), np.ones(rows), np.zeros(rows))
                losses.add(batch.quarantined.column("file"), np.ones(bad), np.ones(bad))
            return unit_result(
                out.close(), out.files, count, size,
                key=part.key, first_file=first_file, notes=dict(notes), losses=losses.to_json(),
            )  # fmt: skip

    def sketch(self, index: int, piece: ShardRows) -> Result:
        """Sketch the rows of one shard into an Arrow IPC file, or take the sketches of an earlier run."""
        key, first_file = self.earlier.key("sketch", piece.parts()), piece.shard.first_file or 0
        if taken := self.earlier.take("sketch", key, 0, self.data, index, first_file):
            return taken
        self.stage.open()
        count, size = Count(), 0
        with UnitWriter(self.data, index) as out:
            for batch in piece.rows(self.source):
                out.write(SKETCHES, self.stage.sketch(batch))
                count, size = count.plus(Count(into=batch.num_rows)), size + batch.nbytes
            return unit_result(out.close(), out.files, count, size, key=key, first_file=first_file)

    def index(self, index: int, sketches: Sequence[Any]) -> Result:
        """Write what later runs need to detect duplicates of the kept rows of one shard, from their sketches."""
        check_intact(self.data, sketches)
        with UnitWriter(self.data, index) as out, pa.memory_map(str(self.data / sketches[0])) as source:
            reader = pa.ipc.open_file(source)
            for number in range(reader.num_record_batches):
                out.write("index", self.stage.index(reader.get_batch(number)))
            (shard,) = out.close()
            return unit_result([shard], out.files, Count(into=shard.rows), shard.bytes)

    def split(self, index: int, piece: ShardRows) -> Result:
        """Decide about the rows of one shard and write kept rows, dropped rows and side tables.

        Rows that all stay as they are, or about which an earlier run decided the same, are linked.
        """
        stage, parts, key = self.stage, piece.parts(), ""
        first_file = piece.shard.first_file or 0
        if stage.compares_rows:
            keys = np.concatenate([b.column("row_key").to_numpy() for b in piece.rows(self.source, ["row_key"])])
            if not piece.limit and stage.unchanged(keys):
                return self._link(index, piece)
            if (decided := stage.decided_about(keys)) is not None:
                key = self.earlier.key("split", *parts, content_of([decided])[1])
        else:
            key = self.earlier.key("split", *parts)
        if taken := self.earlier.take("split", key, 0, self.data, index, first_file):
            return taken
        stage.open()
        saved = self.saved.rows(index, piece.num_rows) if self.saved else None
        count, tokens, size, notes, losses = Count(), None, 0, Counter[str](), Losses("rows")
        with UnitWriter(self.data, index, first_file=first_file) as out:
            for batch in piece.rows(self.source):
                if saved is None or not batch.num_rows:
                    decision = stage.decide(batch)
                else:
                    (known,) = saved.slice(count.into, batch.num_rows).combine_chunks().to_batches()
                    decision = stage.decide_again(batch, known)
                kept, dropped = split(batch, decision, stage.name)
                columns = stage.kept_columns(kept.schema.names)
                out.write("kept", kept.select(columns))
                out.write("dropped", dropped)
                for role, table in decision.side_tables.items():
                    out.write(role, table)
                count = count.plus(_count(batch, kept, dropped, decision.edited))
                notes.update(decision.notes)
                lost = decision.reasons.is_valid().to_numpy(zero_copy_only=False)
                losses.add(batch.column("source"), np.ones(batch.num_rows), lost)
                size += batch.nbytes
                if "input_ids" in columns:
                    made, gone = tokens_in(kept), tokens_in(dropped)
                    reasons = {"row_dropped": gone} if gone else {}
                    tokens = (tokens or Count()).plus(Count(into=made + gone, kept=made, dropped=reasons))
            result = unit_result(
                out.close(), out.files, count, size,
                key=key, first_file=first_file, tokens=tokens and tokens.to_json(),
                notes=dict(notes), measured=stage.measured(), losses=losses.to_json(),
            )  # fmt: skip
        return self._with_quarantine(result, piece)

    def _link(self, index: int, piece: ShardRows) -> Result:
        """Keep all rows of a shard as they are: link its file, which was compared with its checksum for the keys."""
        shard = replace(piece.shard, path=f"kept/part-{index:05d}.parquet")
        link_or_copy(self.source / piece.shard.path, self.data / shard.path)
        count, files = Count(into=shard.rows, kept=shard.rows), [[shard.path, shard.bytes, shard.sha256]]
        return self._with_quarantine(unit_result([shard], files, count, shard.bytes, linked=True), piece)

    def _with_quarantine(self, result: Result, piece: ShardRows) -> Result:
        """A result with the shard of what could not be read, which stays as it is."""
        if (shard := piece.quarantined) is not None:
            file = storage.bring(self.source / shard.path, shard.bytes, shard.sha256)
            link_or_copy(file, self.data / shard.path)
            result["files"].append([shard.path, shard.bytes, shard.sha256])
            result["shards"].append(asdict(shard))
        return result


def _count(batch: pa.RecordBatch, kept: pa.RecordBatch, dropped: pa.RecordBatch, edited: pa.Array | None) -> Count:
    reasons = Counter(dropped.column("reason").to_pylist())
    changed = 0
    if edited is not None:
        ids = batch.column("row_key").filter(edited)
        changed = pc.sum(pc.is_in(kept.column("row_key"), ids)).as_py() or 0
    return Count(into=batch.num_rows, kept=kept.num_rows, dropped=dict(sorted(reasons.items())), edited=changed)


def tokens_in(batch: pa.RecordBatch) -> int:
    """Tokens in the rows of a batch, both sides of preference pairs; 0 where there are no ids."""
    columns = [c for c in ("input_ids", "rejected_ids") if c in batch.schema.names]
    return sum(pc.sum(pc.list_value_length(batch.column(c))).as_py() or 0 for c in columns)
