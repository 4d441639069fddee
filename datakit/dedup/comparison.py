"""What the stages of this package share: the decisions file, `--against`, policies, and small checks of options."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import datakit.storage as storage
from datakit.dedup.index import EarlierRun, earlier_runs, fingerprint, index_rows, run_of
from datakit.errors import ConfigError, IntegrityError, UsageError
from datakit.stage import Parent, Stage
from datakit.text.words import UNICODE_VERSION

if TYPE_CHECKING:
    from datakit.dedup.shuffle import SketchRows

Hashes = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def exact_ratio(threshold: float) -> Fraction:
    """A threshold as a ratio that counts are compared with, without rounding.

    Raises:
        ConfigError: it lies outside (0, 1] or has more than three decimals.
    """
    if not 0.0 < threshold <= 1.0 or round(threshold, 3) != threshold:
        raise ConfigError(f"threshold must lie in (0, 1], with at most three decimals; found {threshold}")
    return Fraction(round(threshold * 1000), 1000)


# What all stages of this package share: decisions by row key, and alarms about sources.

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
class CompareStage(Stage):
    """A map -> reduce -> map stage: `reduce` writes a decisions file, `bind` names it, `decide` looks rows up in it."""

    config: Any
    decisions: Path | None = None

    compares_rows: ClassVar[bool] = True

    def bind(self, out: Path) -> Self:
        """The stage that applies the decisions in `out`."""
        return replace(self, decisions=out)

    def look_up(self, row_key: pa.Array) -> pa.RecordBatch:
        """The decisions about rows; null in every column for a row that stays unchanged."""
        assert self.decisions is not None, "bind comes before decide"
        wanted = row_key.to_numpy()
        reader = pa.ipc.open_file(pa.memory_map(str(self.decisions)))
        batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        near = pa.Table.from_batches(
            [b for b in batches if _overlap(b.column("row_key").to_numpy(), wanted)], DECISIONS
        )
        known = near.column("row_key").to_numpy()
        at = np.searchsorted(known, wanted)
        hit = at < len(known)
        hit[hit] = known[at[hit]] == wanted[hit]
        found = near.take(pa.array(at, mask=~hit)).combine_chunks()
        columns = [pa.concat_arrays(c.chunks) if c.num_chunks else pa.array([], c.type) for c in found.columns]
        return pa.record_batch(columns, names=DECISIONS.names)

    def decided_about(self, row_keys: Hashes) -> pa.RecordBatch | None:
        """The decisions about the rows with these keys."""
        return self.look_up(pa.array(row_keys)).drop_columns(["row_key"])

    def unchanged(self, row_keys: Hashes) -> bool:
        """Whether the rows with these keys, ascending, all stay as they are: no decision is about them."""
        found = self.look_up(pa.array(row_keys))
        return bool(found.column("row_key").null_count == len(row_keys))


@dataclass(frozen=True)
class IndexedStage(CompareStage):
    """A stage whose result can hold an index of its kept rows, and whose rows are compared with such indexes.

    Its config has `save_index` and `against`. `earlier` are the runs whose rows are compared with too, oldest first.
    `duplicate_in` is then the version of the run that kept the other row, null for this run.
    """

    earlier: tuple[EarlierRun, ...] = ()

    probe_kinds: ClassVar[tuple[str, ...]] = ("document",)
    """The kinds of rows that `probe` takes."""

    def compare_with(self, target: Path, kind: str) -> tuple[Self, tuple[Parent, ...]]:
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
        return replace(self, earlier=earlier_runs(parent, self.for_kind(kind), kind)), (parent,)

    def resources(self) -> dict[str, Any]:
        """The Unicode version of words and normal forms, which is the interpreter's; the earlier runs."""
        against = [
            {"version": e.version, "rows": e.kept - len(e.removed.ids), "removed": len(e.removed.ids),
             "removed_sha256": e.removed.sha256} for e in self.earlier
        ]  # fmt: skip
        return {"unicode": UNICODE_VERSION} | ({"against": against} if against else {})

    def probe(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """What the index makes of the probe texts in the rows, for its fingerprint."""
        return self.sketch(rows)

    def facts(self) -> dict[str, Any]:
        """The fingerprint of the index, where one is written."""
        return {"index": {"fingerprint": fingerprint(self)}} if self.config.save_index else {}

    def forecast_earlier(self) -> str:
        """The end of the forecast's line: the indexes that are read."""
        line = ""
        for e in self.earlier:
            size = sum(s.bytes for s in e.shards) / 1e6
            gone = f", {len(e.removed.ids):,} of them removed since" if e.removed.ids else ""
            line += f"; against {e.name}: {e.kept:,} rows{gone} ({size:,.0f} MB)"
        return line

    def versions_of(self, rows: Numbers) -> pa.Array:
        """The version of the earlier run that each row is of, by its number; null for this run's rows and for -1."""
        versions = pa.array([*(e.version for e in self.earlier), None], pa.string())
        run = np.searchsorted(np.cumsum([e.rows for e in self.earlier]), rows, side="right")
        return versions.take(pa.array(np.where(rows < 0, len(self.earlier), run)))

    def survivor_columns(self, found: pa.RecordBatch) -> dict[str, pa.Array]:
        """From decisions: the columns of dropped rows that name the row that stays."""
        names = ("duplicate_of", "duplicate_in") if self.earlier else ("duplicate_of",)
        return {name: found.column(name) for name in names}

    def in_which(self, versions: pa.Array) -> pa.Array:
        """The name of the run that kept the other row, where it is an earlier one."""
        known = pa.array([e.version for e in self.earlier], pa.string())
        words = pa.array(["", *(f" in {e.name}" for e in self.earlier)])
        return words.take(pc.add(pc.fill_null(pc.index_in(versions, known), -1), 1))

    def decided_about(self, row_keys: Hashes) -> pa.RecordBatch | None:
        """The decisions about the rows with these keys; without earlier runs dropped rows have no `duplicate_in`."""
        found = super().decided_about(row_keys)
        return found if found is None or self.earlier else found.drop_columns(["duplicate_in", "kept_in_run"])

    @property
    def saves_index(self) -> bool:
        """Whether the result holds an index of its kept rows."""
        return bool(self.config.save_index)

    def index(self, sketches: pa.RecordBatch) -> pa.RecordBatch:
        """The index of the kept rows of a batch of sketches."""
        return index_rows(sketches, self.look_up(sketches.column("row_key")).column("reason").is_null())


def check_indexed(config: Any, names: Sequence[str], kept: Sequence[str]) -> None:
    """Raise ConfigError where a config has or reads an index, and the values of `names` are not those of `kept`."""
    found = [getattr(config, name) for name in names]
    for name, value in (("save_index", config.save_index), ("against", config.against)):
        if value and found != [*kept]:
            needed, have = (
                " and ".join(f"{n} {v}" for n, v in zip(names, values, strict=True)) for values in (kept, found)
            )
            raise ConfigError(f"{name}: rows of earlier runs must stay, so it needs {needed}; found {have}")


def _overlap(keys: Hashes, wanted: Hashes) -> bool:
    return len(keys) > 0 and len(wanted) > 0 and bool(keys[0] <= wanted.max() and keys[-1] >= wanted.min())


def write_decisions(out: Path, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a decisions file; columns that a batch does not have are null."""
    with (
        storage.whole_file(out, flush=False) as temporary,
        pa.OSFile(str(temporary), "wb") as file,
        pa.ipc.new_file(file, DECISIONS) as writer,
    ):
        for batch in batches:
            columns = [batch.column(f.name).cast(f.type) if f.name in batch.schema.names
                       else pa.nulls(batch.num_rows, f.type) for f in DECISIONS]  # fmt: skip
            writer.write_batch(pa.record_batch(columns, schema=DECISIONS))


# Policies: which of the rows that count as one stays.


def check_policy(policy: str) -> None:
    """Raise ConfigError where a policy is none of first, longest, highest:<column>."""
    if policy not in ("first", "longest") and not score_column(policy):
        raise ConfigError(f"policy must be first, longest or highest:<column>, found {policy!r}")


def score_column(policy: str) -> str:
    """The column of `highest:<column>`; "" for another policy."""
    return policy.removeprefix("highest:") if policy.startswith("highest:") else ""


def check_ranked(policy: str, totals: dict[str, Counter[str]]) -> None:
    """Raise ConfigError where the policy's column holds no number in any row; `totals` has them as `ranked`."""
    if (column := score_column(policy)) and totals and not totals["ranked"]["rows"]:
        raise ConfigError(f"policy {policy!r}: no row has a number in the column {column!r}")


def ranked(batch: pa.RecordBatch) -> dict[str, int]:
    """The rows of a batch of sketches that have a number in the policy's column."""
    return {"rows": pc.sum(pc.is_finite(batch.column("rank"))).as_py() or 0}


def policy_rank(batch: pa.RecordBatch, policy: str, lengths: Callable[[], pa.Array]) -> pa.Array:
    """float64 for each row; of rows that count as one the highest stays, and null counts as lowest.

    `lengths` gives the characters of each row. The column of a score may be a field of `extra`, where ingest keeps the
    user's own.
    """
    column = score_column(policy)
    if policy == "longest":
        return lengths().cast(pa.float64())
    if column in batch.schema.names:
        kind = batch.schema.field(column).type
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        return batch.column(column).cast(pa.float64()) if numeric else pa.nulls(len(batch), pa.float64())
    if not column or "extra" not in batch.schema.names:
        return pa.nulls(len(batch), pa.float64())
    return pa.array([_number(extra, column) for extra in batch.column("extra").to_pylist()], pa.float64())


def _number(extra: str | None, name: str) -> float | None:
    value: Any = orjson.loads(extra).get(name) if extra else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def policy_order(rows: "SketchRows", row_key: Hashes, policy: str, begin: int = 0) -> Numbers:
    """Numbers of the rows from `begin` on in the policy's order, ties by row_key; sketches have a column `rank`."""
    if policy == "first":
        keys = row_key[begin:]
        in_order = bool((keys[1:] > keys[:-1]).all())  # as ingest numbers them
        return np.arange(begin, begin + len(keys)) if in_order else begin + np.argsort(keys, kind="stable")
    ranks = [batch.column("rank").to_numpy(zero_copy_only=False) for batch in rows.batches]
    return np.lexsort((row_key, -np.concatenate([np.empty(0, np.float64), *ranks])))  # NaN sorts last


def source_column(batch: pa.RecordBatch, name: str = "source") -> pa.Array:
    """A column of strings (the source) of each row; null where the rows have no such column."""
    return batch.column(name).cast(pa.string()) if name in batch.schema.names else pa.nulls(len(batch), pa.string())


def text_bytes(files: Sequence[Path]) -> tuple[int, int]:
    """(rows, bytes of their columns before compression) of Parquet shards, for a forecast: footers are not checked yet.

    Raises:
        IntegrityError: a footer cannot be read.
    """
    try:
        shards = [pq.read_metadata(file) for file in files]
    except (OSError, pa.ArrowException) as e:
        raise IntegrityError(
            f"{files[0].parent}: a shard there has no readable footer ({e}). Run its stage again"
        ) from None
    sizes = (shard.row_group(n).total_byte_size for shard in shards for n in range(shard.num_row_groups))
    return sum(shard.num_rows for shard in shards), sum(sizes)


def in_key_order(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Decisions about different rows as one batch, in the order of their keys."""
    table = pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="default")
    (made,) = table.sort_by("row_key").combine_chunks().to_batches(max_chunksize=max(table.num_rows, 1)) or [
        pa.RecordBatch.from_pylist([], table.schema)
    ]
    return made
