"""The dedup stage: sketch every row, compare all sketches, split. And what all stages of this package share.

`minhash` describes what a sketch holds, `cluster` decides which rows stay, `index` loads the earlier runs that rows are
compared with. URLs, lines, spans and n-grams have stages of their own (`urls`, `repeats`, `ngrams`); they use the
decisions file and the alarms of this file.
"""

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import datakit.storage as storage
from datakit.config import option, shares
from datakit.dedup.exact import Memory, SketchRows
from datakit.dedup.index import EarlierRun, earlier_runs, fingerprint, index_rows, run_of
from datakit.errors import ConfigError, IntegrityError, UsageError
from datakit.stage import MAX_ALARMS, CompareUnits, Decision, Parent, SketchFile, Stage, worst_first
from datakit.text.words import UNICODE_VERSION, character_table

if TYPE_CHECKING:
    from datakit.dedup.cluster import Verdict
    from datakit.dedup.compare import Compared

_FINEWEB = {"threshold": 0.75, "num_bands": 14, "rows_per_band": 8}  # Penedo et al., 2024
_RECALL = 0.95  # of pairs at the threshold: what bands are chosen for
_MAX_VALUES = 256  # of a chosen signature: more rows in a band need many more bands


@dataclass(frozen=True, kw_only=True, slots=True)
class DedupConfig:
    """Exact, then near duplicates by MinHash LSH: which rows count as duplicates, and which of them stays."""

    on: Literal["all", "prompt", "answer"] = option("all", "the part of a conversation or preference pair to compare")
    include_system: bool = option(True, "of conversations, compare system prompts, tool schemas and tool results too")
    keep_per_prompt: int = option(1, "with --on prompt: how many answers of a question stay, the first by the policy")
    compare: Literal["auto", "words", "characters"] = option(
        "auto", "words: without signs; characters: with them; auto: with them where formulas or code need them"
    )
    shingle_words: int = option(5, "words in a shingle")
    num_bands: int = option(
        0,
        "bands of the signature; rows that share one are compared. 0: 14 at threshold 0.75, else for a recall of 0.95",
    )
    rows_per_band: int = option(0, "MinHash values in a band; 0: 8 at threshold 0.75, else for a recall of 0.95")
    threshold: float = option(0.75, "least Jaccard similarity of the shingle sets of near duplicates")
    cluster: Literal["star", "components"] = option(
        "star",
        "star: each dropped row is similar to the row that stays; components: to some row of a chain of similar rows",
    )
    policy: str = option("first", "which duplicate stays: first, longest, or highest:<column>; ties by position")
    seed: int = option(1, "seed of the permutations, as datasketch takes it")
    max_cluster_rows: int = option(1000, "raise an alarm where more rows than this are dropped for one row")
    max_loss: float = option(0.3, "raise an alarm where all rows, or those of a source, lose more than this share")
    min_alarm_rows: int = option(20, "raise no alarm about fewer rows than this, of all, a source or a language")
    memory_mb: int = option(
        1024, "memory for comparing all rows; larger arrays go to the disk, with the same result", result=False
    )
    save_signatures: bool = option(
        False, "write each row's MinHash values to the column minhash, as datasketch.LeanMinHash serialises them"
    )
    save_duplicates: bool = option(False, "write the ids of the rows that each kept row stands for: column duplicates")
    save_index: bool = option(
        False, "write the index that a later run needs for --against; it takes 1.1 to 2.7 times the size of the text"
    )
    against: str = option(
        "", "also drop duplicates of rows that an earlier dedup kept: its manifest, run with save_index", result=False
    )

    def __post_init__(self) -> None:
        at_least(1, self, "shingle_words", "max_cluster_rows", "min_alarm_rows", "memory_mb", "keep_per_prompt")
        at_least(0, self, "num_bands", "rows_per_band")
        if self.keep_per_prompt > 1 and self.on != "prompt":
            raise ConfigError(f"keep_per_prompt is {self.keep_per_prompt}: it needs on = 'prompt', found {self.on!r}")
        exact_ratio(self.threshold)
        shares(self, "max_loss")
        if not 0 <= self.seed < 1 << 32:
            raise ConfigError(f"seed must lie in [0, 2**32), found {self.seed}")
        check_policy(self.policy)
        bands = chosen_bands(self.threshold, self.num_bands, self.rows_per_band)
        for name, number in zip(("num_bands", "rows_per_band"), bands, strict=True):
            object.__setattr__(self, name, number)  # so that manifests name them
        check_indexed(self, ("cluster", "policy"), ("star", "first"))

    @property
    def num_perm(self) -> int:
        """MinHash values per row: all bands of the signature."""
        return self.num_bands * self.rows_per_band

    def expected_recall(self) -> str:
        """A line about the share of similar pairs that the bands find; a warning where that is less than promised."""
        at = [self.threshold, *(s / 100 for s in range(5, 100, 5) if self.threshold < s / 100 < self.threshold + 0.11)]
        found = {s: candidate_probability(s, self.num_bands, self.rows_per_band) for s in at}
        bands = f"{self.num_bands} bands of {self.rows_per_band} MinHash values"
        line = "expected recall " + ", ".join(f"{p:.3f} at similarity {s:g}" for s, p in found.items())
        served = found[self.threshold] >= _RECALL
        if served or {name: getattr(self, name) for name in _FINEWEB} == _FINEWEB:
            return f"{bands}: {line}"
        num_bands, rows_per_band = chosen_bands(self.threshold)
        return (
            f"WARNING: {bands} find too few pairs for the threshold {self.threshold:g}: {line}. Leave num_bands and "
            f"rows_per_band out ({num_bands} and {rows_per_band} are then used), or give more bands of fewer values"
        )


def candidate_probability(similarity: float, num_bands: int, rows_per_band: int) -> float:
    """P(two rows of this Jaccard similarity share a band) = 1 - (1 - s^r)^b, rounded to 1e-3."""
    return round(1.0 - (1.0 - similarity**rows_per_band) ** num_bands, 3)


def chosen_bands(threshold: float, num_bands: int = 0, rows_per_band: int = 0) -> tuple[int, int]:
    """(num_bands, rows_per_band): those that are given (not 0), and the others for the threshold.

    At 0.75 these are FineWeb's. Else the longest bands that find a pair at the threshold with a probability of 0.95
    and need at most 256 values in all: longer bands cause fewer needless comparisons.
    """
    if threshold == _FINEWEB["threshold"]:
        return num_bands or int(_FINEWEB["num_bands"]), rows_per_band or int(_FINEWEB["rows_per_band"])
    if rows_per_band:
        return num_bands or _bands_needed(threshold, rows_per_band), rows_per_band
    longest = 1
    while longest < _MAX_VALUES // (num_bands or 1):
        needed = _bands_needed(threshold, longest + 1)
        if needed > num_bands if num_bands else needed * (longest + 1) > _MAX_VALUES:
            break
        longest += 1
    return num_bands or _bands_needed(threshold, longest), longest


def _bands_needed(threshold: float, rows_per_band: int) -> int:
    """The least number of bands that find a pair at the threshold with a probability of 0.95."""
    missed = 1.0 - threshold**rows_per_band
    return math.ceil(round(math.log(1.0 - _RECALL) / math.log(missed), 9)) if missed else 1


def at_least(least: int, config: Any, *names: str) -> None:
    """Raise ConfigError where a value of the config is smaller than `least`."""
    for name in names:
        if getattr(config, name) < least:
            raise ConfigError(f"{name} must be at least {least}, found {getattr(config, name)}")


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

    def decided_about(self, row_keys: npt.NDArray[np.uint64]) -> pa.RecordBatch | None:
        """The decisions about the rows with these keys."""
        return self.look_up(pa.array(row_keys)).drop_columns(["row_key"])

    def unchanged(self, row_keys: npt.NDArray[np.uint64]) -> bool:
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

    def versions_of(self, rows: npt.NDArray[np.int64]) -> pa.Array:
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

    def decided_about(self, row_keys: npt.NDArray[np.uint64]) -> pa.RecordBatch | None:
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


def _overlap(keys: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]) -> bool:
    return len(keys) > 0 and len(wanted) > 0 and bool(keys[0] <= wanted.max() and keys[-1] >= wanted.min())


def write_decisions(out: Path, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a decisions file; columns that a batch does not have are null."""
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    with pa.OSFile(str(temporary), "wb") as file, pa.ipc.new_file(file, DECISIONS) as writer:
        for batch in batches:
            columns = [batch.column(f.name).cast(f.type) if f.name in batch.schema.names
                       else pa.nulls(batch.num_rows, f.type) for f in DECISIONS]  # fmt: skip
            writer.write_batch(pa.record_batch(columns, schema=DECISIONS))
    temporary.rename(out)


def frequent_survivors(rows: SketchRows, counts: npt.NDArray[np.int64]) -> list[tuple[str, int]]:
    """(id, count) of the rows with the largest counts, at most `MAX_ALARMS`; counts int64 (rows,) may be shorter."""
    most = np.flatnonzero(counts)
    most = most[np.argsort(-counts[most], kind="stable")][:MAX_ALARMS]
    return list(zip(rows.ids(most).to_pylist(), counts[most].tolist(), strict=True))


# Policies: which of the rows that count as one stays.


def check_policy(policy: str) -> None:
    """Raise ConfigError where a policy is none of first, longest, highest:<column>."""
    if policy not in ("first", "longest") and not score_column(policy):
        raise ConfigError(f"policy must be first, longest or highest:<column>, found {policy!r}")


def score_column(policy: str) -> str:
    """The column of `highest:<column>`; "" for another policy."""
    return policy.removeprefix("highest:") if policy.startswith("highest:") else ""


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


def policy_order(
    rows: SketchRows, row_key: npt.NDArray[np.uint64], policy: str, begin: int = 0, *, whole: bool = True
) -> npt.NDArray[np.int64]:
    """Numbers of the rows from `begin` on in the policy's order, ties by row_key; sketches have a column `rank`.

    Raises:
        ConfigError: the rows are all rows (`whole`), and the policy's column holds no number in any of them.
    """
    if policy == "first":
        keys = row_key[begin:]
        in_order = bool((keys[1:] > keys[:-1]).all())  # as ingest numbers them
        return np.arange(begin, begin + len(keys)) if in_order else begin + np.argsort(keys, kind="stable")
    ranks = [batch.column("rank").to_numpy(zero_copy_only=False) for batch in rows.batches]
    rank = np.concatenate([np.empty(0, np.float64), *ranks])
    if whole and len(rank) and np.isnan(rank).all():
        raise ConfigError(f"policy {policy!r}: no row has a number in the column {score_column(policy)!r}")
    return np.lexsort((row_key, -rank))  # NaN sorts last


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


# The dedup stage.

_CHECK = (
    "Check with `datakit pairs` whether these rows are duplicates, or only share a template, a prompt or a long "
    "passage; then compare less of them (on), or raise threshold. If they are duplicates, raise max_loss"
)
NO_CHAINS = (
    "cluster must be star for conversations: each dropped one is compared, turn by turn, with the one that stays"
)

_SIGNATURES = "minhash"  # the column of saved signatures
_ROW_BYTES = 80  # of a sketch, besides bands and shingles: key, id, source, digest, ...
_TEXT_RATIO = 1.6  # bytes of shingle hashes per byte of English prose, rounded up; twice that in scripts without spaces


@dataclass(frozen=True)
class Dedup(IndexedStage):
    """Drops every row that is a duplicate, and names the row that stays (`duplicate_of`, `similarity`).

    Reasons are `exact_duplicate` (the normalised text is equal) and `near_duplicate`. `by_field` is set for preference
    pairs, whose fields are compared by themselves too; `of_turns` for conversations, which have the reason `prefix` too
    (see `alike`).
    """

    config: DedupConfig
    by_field: bool = False
    of_turns: bool = False
    compared: "Compared | None" = None

    name: ClassVar[str] = "dedup"
    help: ClassVar[str] = "A near duplicate is dropped if its exact similarity to a row that stays reaches --threshold."
    Config: ClassVar[type] = DedupConfig
    probe_kinds: ClassVar[tuple[str, ...]] = ("document", "conversation", "preference")

    def for_kind(self, kind: str) -> Self:
        """The stage for rows of a kind: the fields of preference pairs are compared by themselves too."""
        if kind == "conversation" and self.config.cluster != "star":
            raise ConfigError(NO_CHAINS)
        by_field = kind == "preference" and self.config.on != "prompt"
        return replace(self, by_field=by_field, of_turns=kind == "conversation")

    def describe(self) -> tuple[str, ...]:
        """The expected recall of the bands."""
        if self.of_turns:
            return (f"{self.name}: conversations are compared turn by turn, by the words that count",)
        return (f"{self.name}: {self.config.expected_recall()}",)

    def open(self) -> None:
        """Draw the permutations, build the character table, load the kernels."""
        from datakit.dedup.minhash import permutations

        permutations(self.config.num_perm, self.config.seed)
        character_table()

    def facts(self) -> dict[str, Any]:
        """The format of the column of signatures, and the fingerprint of the index, where they are written."""
        found = super().facts()
        if self.config.save_signatures:
            found["signatures"] = {"column": _SIGNATURES, "format": "datasketch.LeanMinHash", "byteorder": "<"}
        return found

    def forecast(self, shards: Sequence[Path]) -> str:
        """The disk space for the sketches of the rows and for the comparison of all of them."""
        rows, text = text_bytes(shards)
        sketches = rows * (_ROW_BYTES + 8 * self.config.num_bands) + int(_TEXT_RATIO * text)
        keys = rows * 12 * (self.config.num_bands + 1)
        disk = 2 * sketches + keys  # the sketches of rows that share a key are written again, group by group
        line = f"{rows:,} rows, at most about {disk / 1e6:,.0f} MB of disk while they are compared"
        if self.config.save_index:
            line += f", and up to {sketches / 1e6:,.0f} MB for the index, which stays"
        return line + self.forecast_earlier()

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Digest, bands and shingles of each row."""
        from datakit.dedup.minhash import sketch

        return sketch(batch, self.config)

    def probe(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Sketches, and a digest of the lists of words that decide between turns: no few texts can hold all of them."""
        from datakit.dedup.politeness import lists_digest

        return self.sketch(rows).append_column("lists", pa.array([lists_digest()] * rows.num_rows))

    def compare(self, sketches: Sequence[SketchFile], units: CompareUnits) -> Self:
        """Compare all rows, in work units."""
        from datakit.dedup.compare import compare

        return replace(self, compared=compare(self, sketches, units))

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write the dropped rows, by row_key, to `out`; returns the LSH parameters, counts of pairs and alarms."""
        from datakit.dedup.cluster import lsh_facts
        from datakit.dedup.compare import merged

        if self.compared is None:
            files = [SketchFile.of(path) for path in sketches]
            return self.compare(files, CompareUnits(out.parent, workers)).reduce(sketches, out, workers=workers)
        write_decisions(out, merged(self.compared, Memory(self.config.memory_mb << 20, out.parent)))
        return {"lsh": lsh_facts(self.config)} | self.compared.facts() | {"alarms": _alarms(self.compared, self.config)}

    def decisions_of(self, verdict: "Verdict", numbers: npt.NDArray[np.int64], old: int) -> pa.RecordBatch:
        """The decisions about one group of rows, by row_key.

        numbers int64 (rows,): each row's number among all; the first `old` rows of the group are of earlier runs.
        """
        rows = np.flatnonzero(verdict.survivor >= 0)
        reasons = pa.array(["near_duplicate", "exact_duplicate", "prefix"]).take(
            pa.array(np.where(verdict.prefix[rows], 2, verdict.exact[rows]))
        )
        dropped = pa.record_batch(
            {
                "row_key": verdict.sketches.row_key[rows],
                "reason": reasons,
                "duplicate_of": verdict.sketches.ids(verdict.survivor[rows]),
                "similarity": verdict.similarity[rows],
                "duplicate_in": self.versions_of(numbers[verdict.survivor[rows]]),
            }
        )
        return in_key_order([dropped, _stands_for(verdict, old, self.config.save_duplicates)])

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Look the rows up by row_key."""
        found = self.look_up(batch.column("row_key"))
        similarity = found.column("similarity")
        detail = pc.binary_join_element_wise(
            pa.scalar("duplicate of "), found.column("duplicate_of"), self.in_which(found.column("duplicate_in")),
            pa.scalar(", similarity "), similarity.cast(pa.string()), pa.scalar(""),
        )  # fmt: skip
        stays, size = found.column("reason").is_null(), found.column("cluster_size")
        columns = {"cluster_size": pc.if_else(stays, pc.fill_null(size, 1), pa.scalar(None, size.type))}
        if self.config.save_duplicates:
            columns["duplicates"] = found.column("duplicates")
        if self.config.save_signatures:
            from datakit.dedup.minhash import saved_signatures

            columns[_SIGNATURES] = saved_signatures(batch, self.config)
        return Decision(
            reasons=found.column("reason"),
            detail=detail,
            columns=columns,
            drop_columns={"duplicate_of": found.column("duplicate_of"), "similarity": similarity}
            | self.survivor_columns(found),
        )

    def unchanged(self, row_keys: npt.NDArray[np.uint64]) -> bool:
        """No: kept rows get the size of their cluster."""
        return False


def _stands_for(verdict: "Verdict", old: int, with_ids: bool) -> pa.RecordBatch:
    """The sizes of the clusters of this run's rows that others are dropped for, and perhaps the ids of the others."""
    rows = old + np.flatnonzero(verdict.cluster_rows[old:])
    counts = verdict.cluster_rows[rows]
    columns = {"row_key": pa.array(verdict.sketches.row_key[rows]), "cluster_size": pa.array(counts + 1)}
    if with_ids:
        dropped = np.flatnonzero(verdict.survivor >= old)
        dropped = dropped[np.lexsort((verdict.sketches.row_key[dropped], verdict.survivor[dropped]))]
        starts = pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32())
        columns["duplicates"] = pa.ListArray.from_arrays(starts, verdict.sketches.ids(dropped))
    return pa.record_batch(columns)


def in_key_order(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Decisions about different rows as one batch, in the order of their keys."""
    table = pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="default")
    (made,) = table.sort_by("row_key").combine_chunks().to_batches(max_chunksize=max(table.num_rows, 1)) or [
        pa.RecordBatch.from_pylist([], table.schema)
    ]
    return made


def _alarms(compared: "Compared", config: DedupConfig) -> list[str]:
    """Alarms about rows with many duplicates, and about sources and languages that are nearly lost."""
    sources, languages = (compared.losses(name) for name in ("source", "lang"))
    vanished = [
        f"the language {name!r} vanishes: each of its {rows} rows is dropped as the duplicate of a row in another "
        "language"
        for name, rows in sorted(languages.whole.items(), key=lambda item: (-item[1], item[0]))
        if languages.lost[name] == rows >= config.min_alarm_rows
    ]
    survivors = [(name, count) for count, _, name in compared.survivors()]
    large = [
        f"{count + 1} rows count as one: all but {name!r} are dropped as its duplicates (max_cluster_rows is "
        f"{config.max_cluster_rows}); look whether they share boilerplate"
        for name, count in survivors if count >= config.max_cluster_rows
    ]  # fmt: skip
    large += [""] * (sum(record["large"] for record in compared.decides) - len(large))
    return [
        *worst_first(large, "rows stand for more rows than that"),
        *sources.alarms(config.max_loss, config.min_alarm_rows, _CHECK, survivors),
        *worst_first(vanished, "languages vanish"),
    ]
