"""The dedup stage: sketch every row, compare all sketches, split. And what all stages of this package share.

`minhash` describes what a sketch holds, `cluster` decides which rows stay, `index` loads the earlier runs that rows are
compared with. URLs, lines, spans and n-grams have stages of their own (`urls`, `repeats`, `ngrams`); they use the
decisions file and the alarms of this file.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from datakit.config import option
from datakit.dedup.exact import ARRAY_SHARE, Memory
from datakit.errors import ConfigError, UsageError
from datakit.stage import Decision, Parent, Stage
from datakit.text.words import UNICODE_VERSION, character_table

if TYPE_CHECKING:
    from datakit.dedup.cluster import Verdict
    from datakit.dedup.index import EarlierRun

_DEFAULT_BANDS, _DEFAULT_ROWS = 14, 8  # FineWeb's (Penedo et al., 2024)


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
    num_bands: int = option(_DEFAULT_BANDS, "bands of the signature; rows that share one are compared")
    rows_per_band: int = option(_DEFAULT_ROWS, "MinHash values in a band")
    max_num_perm: int = option(
        0, "choose num_bands and rows_per_band for the threshold, with at most this many MinHash values; 0: as given"
    )
    false_negative_weight: float = option(
        0.9, "for that choice: the weight of missed pairs; needless comparisons have the rest to 1"
    )
    threshold: float = option(0.75, "least Jaccard similarity of the shingle sets of near duplicates")
    cluster: Literal["star", "components"] = option(
        "star", "star: each dropped row is similar to the row that stays; components: to some row of a chain to it"
    )
    policy: str = option("first", "which duplicate stays: first, longest, or highest:<column>; ties by position")
    seed: int = option(1, "seed of the permutations, as datasketch takes it")
    max_cluster_rows: int = option(1000, "raise an alarm where more rows than this are dropped for one row")
    max_source_loss: float = option(0.75, "raise an alarm where a source loses more than this share of its rows")
    min_alarm_rows: int = option(20, "raise no alarm about a source or a language of fewer rows than this")
    memory_mb: int = option(
        1024, "memory for comparing all rows; larger arrays go to the disk, with the same result", result=False
    )
    save_signatures: bool = option(
        False, "write each row's MinHash values to the column minhash, as datasketch.LeanMinHash serialises them"
    )
    save_index: bool = option(
        False, "write the index that a later run needs for --against; it takes 1.1 to 2.7 times the size of the text"
    )
    against: str = option(
        "", "also drop duplicates of rows that an earlier dedup kept: its manifest, run with save_index", result=False
    )

    def __post_init__(self) -> None:
        at_least(1, self, "shingle_words", "num_bands", "rows_per_band", "max_cluster_rows", "min_alarm_rows")
        at_least(1, self, "memory_mb", "keep_per_prompt")
        if self.keep_per_prompt > 1 and self.on != "prompt":
            raise ConfigError(f"keep_per_prompt is {self.keep_per_prompt}: it needs on = 'prompt', found {self.on!r}")
        exact_ratio(self.threshold)
        shares(self, "max_source_loss", "false_negative_weight")
        if not 0 <= self.seed < 1 << 32:
            raise ConfigError(f"seed must lie in [0, 2**32), found {self.seed}")
        if self.policy not in ("first", "longest") and not self.score_column:
            raise ConfigError(f"policy must be first, longest or highest:<column>, found {self.policy!r}")
        if self.max_num_perm:
            self._choose_bands()
        for name, value in (("save_index", self.save_index), ("against", self.against)):
            if value and (self.cluster, self.policy) != ("star", "first"):
                raise ConfigError(
                    f"{name}: rows of earlier runs must stay, so it needs cluster star and policy first; found cluster "
                    f"{self.cluster} and policy {self.policy}"
                )

    def _choose_bands(self) -> None:
        """Replace the given numbers by the chosen ones, so that manifests name them."""
        if self.max_num_perm < 2:
            raise ConfigError(f"max_num_perm must be 0, or at least 2 values to choose from; found {self.max_num_perm}")
        chosen = best_bands(self.threshold, self.max_num_perm, self.false_negative_weight)
        given = (self.num_bands, self.rows_per_band)
        if given not in (chosen, (_DEFAULT_BANDS, _DEFAULT_ROWS)):
            raise ConfigError(
                f"max_num_perm asks to choose num_bands and rows_per_band ({chosen[0]} and {chosen[1]}), but "
                f"{given[0]} and {given[1]} are given: leave out one or the other"
            )
        object.__setattr__(self, "num_bands", chosen[0])
        object.__setattr__(self, "rows_per_band", chosen[1])

    @property
    def num_perm(self) -> int:
        """MinHash values per row: all bands of the signature."""
        return self.num_bands * self.rows_per_band

    @property
    def score_column(self) -> str:
        """The column of `highest:<column>`; "" for another policy."""
        return self.policy.removeprefix("highest:") if self.policy.startswith("highest:") else ""


@lru_cache(maxsize=8)
def best_bands(threshold: float, max_num_perm: int, false_negative_weight: float) -> tuple[int, int]:
    """(num_bands, rows_per_band) with at most `max_num_perm` values and the least error, from `datasketch.MinHashLSH`.

    The error is a weighted sum of two areas: under the probability curve below the threshold (needless comparisons),
    and over the curve above the threshold (missed pairs).
    """
    from datasketch import MinHashLSH  # imports scipy: 0.4 s, needed for this choice only

    weights = (round(1.0 - false_negative_weight, 9), false_negative_weight)
    chosen = MinHashLSH(threshold=threshold, num_perm=max_num_perm, weights=weights)
    return chosen.b, chosen.r


def at_least(least: int, config: Any, *names: str) -> None:
    """Raise ConfigError where a value of the config is smaller than `least`."""
    for name in names:
        if getattr(config, name) < least:
            raise ConfigError(f"{name} must be at least {least}, found {getattr(config, name)}")


def shares(config: Any, *names: str) -> None:
    """Raise ConfigError where a value of the config lies outside [0, 1]."""
    for name in names:
        if not 0.0 <= getattr(config, name) <= 1.0:
            raise ConfigError(f"{name} is a share and lies in [0, 1], found {getattr(config, name)}")


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
        pa.field("kept_in", pa.list_(pa.string())),  # for each of them the id of a row that still has it, if known
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


MAX_ALARMS = 10
"""Alarms of one kind that are listed, the worst first; the others are counted."""


def worst_first(sentences: Iterable[str], more: str) -> Iterator[str]:
    """The first `MAX_ALARMS` sentences, and how many more there are."""
    found = list(sentences)
    yield from found[:MAX_ALARMS]
    if len(found) > MAX_ALARMS:
        yield f"{len(found) - MAX_ALARMS} more {more}"


@dataclass(frozen=True, slots=True)
class Losses:
    """Amounts (`what`: rows or words) by source: in total, and lost."""

    what: str
    whole: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)

    def add(self, source: pa.Array, whole: npt.NDArray[Any], lost: npt.NDArray[Any]) -> None:
        """Count the amounts of some rows; rows without a source count as the source ""."""
        columns = {"source": pc.fill_null(source, ""), "whole": whole.astype(np.int64), "lost": lost.astype(np.int64)}
        sums = pa.table(columns).group_by("source").aggregate([("whole", "sum"), ("lost", "sum")])
        for row in sums.to_pylist():
            self.whole[row["source"]] += row["whole_sum"]
            self.lost[row["source"]] += row["lost_sum"]

    def alarms(self, max_loss: float, least: int = 1, hint: str = "") -> list[str]:
        """A sentence for each source of at least `least` rows or words that loses more than a share of them."""
        found = {name: round(self.lost[name] / n, 3) for name, n in self.whole.items() if n >= least}
        sentences = [
            f"the source {name!r} loses {self.lost[name]} of its {self.whole[name]} {self.what} ({share:.1%}; "
            f"max_source_loss is {max_loss:.1%}){hint}"
            for name, share in sorted(found.items(), key=lambda item: (-item[1], item[0]))
            if share > max_loss
        ]
        return list(worst_first(sentences, "sources lose more than that"))


def source_column(batch: pa.RecordBatch, name: str = "source") -> pa.Array:
    """A column of strings (the source) of each row; null where the rows have no such column."""
    return batch.column(name).cast(pa.string()) if name in batch.schema.names else pa.nulls(len(batch), pa.string())


def text_bytes(files: Sequence[Path]) -> tuple[int, int]:
    """(rows, bytes of their columns before compression) of Parquet shards."""
    shards = [pq.read_metadata(file) for file in files]
    sizes = (shard.row_group(n).total_byte_size for shard in shards for n in range(shard.num_row_groups))
    return sum(shard.num_rows for shard in shards), sum(sizes)


# The dedup stage.

_SIGNATURES = "minhash"  # the column of saved signatures
_ROW_BYTES = 80  # of a sketch, besides bands and shingles: key, id, source, digest, ...
_TEXT_RATIO = 1.6  # bytes of shingle hashes per byte of English prose, rounded up; twice that in scripts without spaces


@dataclass(frozen=True)
class Dedup(CompareStage):
    """Drops every row that is a duplicate, and names the row that stays (`duplicate_of`, `similarity`).

    Reasons are `exact_duplicate` (the normalised text is equal) and `near_duplicate`. `earlier` are runs whose rows are
    compared with too, oldest first; `duplicate_in` is then the version of the dedup run that kept the row, null for
    this run. `by_field` is set for preference pairs, whose fields are compared by themselves too.
    """

    config: DedupConfig
    earlier: "tuple[EarlierRun, ...]" = ()
    by_field: bool = False

    name: ClassVar[str] = "dedup"
    help: ClassVar[str] = "A near duplicate is dropped if its exact similarity to a row that stays reaches --threshold."
    Config: ClassVar[type] = DedupConfig

    def compare_with(self, target: Path, kind: str) -> tuple[Self, tuple[Parent, ...]]:
        """The stage with the runs that `against` names, and the manifest of the newest."""
        if not self.config.against:
            return self, ()
        from datakit.dedup.index import dedup_of, earlier_runs

        parent = dedup_of(Path(self.config.against))
        place = parent.path.resolve()
        if target.resolve() in (place, place.parent.parent / f"{parent.manifest.stage}.json"):
            raise UsageError(
                f"--against {self.config.against}: is the result that this run writes, so every row would be a "
                "duplicate of itself. Give this run another --dataset or --output"
            )
        return replace(self, earlier=earlier_runs(parent, self.config, kind)), (parent,)

    def for_kind(self, kind: str) -> Self:
        """The stage for rows of a kind: the fields of preference pairs are compared by themselves too."""
        return replace(self, by_field=kind == "preference" and self.config.on != "prompt")

    def resources(self) -> dict[str, Any]:
        """The Unicode version of words and normal forms, which is the interpreter's; the earlier runs."""
        against = [
            {"version": e.version, "rows": e.rows - len(e.removed.ids), "removed": len(e.removed.ids),
             "removed_sha256": e.removed.sha256} for e in self.earlier
        ]  # fmt: skip
        return {"unicode": UNICODE_VERSION} | ({"against": against} if against else {})

    def open(self) -> None:
        """Draw the permutations, build the character table, load the kernels."""
        from datakit.dedup.minhash import permutations

        permutations(self.config.num_perm, self.config.seed)
        character_table()

    def facts(self) -> dict[str, Any]:
        """The format of the column of signatures, and the fingerprint of the index, where they are written."""
        found: dict[str, Any] = {}
        if self.config.save_signatures:
            found["signatures"] = {"column": _SIGNATURES, "format": "datasketch.LeanMinHash", "byteorder": "<"}
        if self.config.save_index:
            from datakit.dedup.index import fingerprint

            found["index"] = {"fingerprint": fingerprint(self.config)}
        return found

    def forecast(self, shards: Sequence[Path]) -> str:
        """The disk space for the sketches of the rows and for the comparison of all of them."""
        rows, text = text_bytes(shards)
        sketches = rows * (_ROW_BYTES + 8 * self.config.num_bands) + int(_TEXT_RATIO * text)
        tables = rows * (2 * 4 * self.config.num_bands + 150)  # the buckets of each row, the rows of each bucket, ...
        on_disk = 4 * self.config.num_bands * rows > (self.config.memory_mb << 20) // ARRAY_SHARE
        disk = sketches + (tables if on_disk else 0)
        line = f"{rows:,} rows, about {disk / 1e6:,.0f} MB of disk while they are compared"
        if self.config.save_index:
            line += f", and up to {sketches / 1e6:,.0f} MB for the index, which stays"
        for e in self.earlier:
            size = sum(s.bytes for s in e.shards) / 1e6
            gone = f", {len(e.removed.ids):,} of them removed since" if e.removed.ids else ""
            line += f"; against {e.name}: {e.rows:,} rows{gone} ({size:,.0f} MB)"
        return line

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Digest, bands and shingles of each row."""
        from datakit.dedup.minhash import sketch

        return sketch(batch, self.config)

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write the dropped rows, by row_key, to `out`; returns the LSH parameters, counts of pairs and alarms."""
        from datakit.dedup.cluster import decide_all

        memory = Memory(self.config.memory_mb << 20, out.parent)
        verdict = decide_all(sketches, self.config, memory, workers, self.earlier, self.by_field)
        write_decisions(out, [_dropped(verdict, self.earlier)])
        return verdict.facts | {"alarms": _alarms(verdict, self.config)}

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Look the rows up by row_key."""
        found = self.look_up(batch.column("row_key"))
        names = ("duplicate_of", "similarity", "duplicate_in")
        duplicate_of, similarity, duplicate_in = (found.column(name) for name in names)
        detail = pc.binary_join_element_wise(
            pa.scalar("duplicate of "), duplicate_of, self._in(duplicate_in), pa.scalar(", similarity "),
            similarity.cast(pa.string()), pa.scalar(""),
        )  # fmt: skip
        columns = {}
        if self.config.save_signatures:
            from datakit.dedup.minhash import saved_signatures

            columns = {_SIGNATURES: saved_signatures(batch, self.config)}
        return Decision(
            reasons=found.column("reason"),
            detail=detail,
            columns=columns,
            drop_columns={"duplicate_of": duplicate_of, "similarity": similarity}
            | ({"duplicate_in": duplicate_in} if self.earlier else {}),
        )

    def _in(self, versions: pa.Array) -> pa.Array:
        """The name of the run that kept the other row, where it is an earlier one."""
        known = pa.array([e.version for e in self.earlier], pa.string())
        words = pa.array(["", *(f" in {e.name}" for e in self.earlier)])
        return words.take(pc.add(pc.fill_null(pc.index_in(versions, known), -1), 1))

    def unchanged(self, row_keys: npt.NDArray[np.uint64]) -> bool:
        """Whether the rows with these keys, ascending, all stay as they are."""
        return (
            not self.config.save_signatures and pc.all(pc.is_null(self.look_up(pa.array(row_keys))["reason"])).as_py()
        )

    @property
    def saves_index(self) -> bool:
        """Whether the result holds an index of its kept rows."""
        return self.config.save_index

    def index(self, sketches: pa.RecordBatch) -> pa.RecordBatch:
        """The index of the kept rows of a batch of sketches."""
        from datakit.dedup.index import index_rows

        return index_rows(sketches, self.look_up(sketches.column("row_key")).column("reason").is_null())


def _dropped(verdict: "Verdict", earlier: "tuple[EarlierRun, ...]") -> pa.RecordBatch:
    """The decisions about the dropped rows, in the order of their keys."""
    rows = np.flatnonzero(verdict.survivor >= 0)
    rows = rows[np.argsort(verdict.sketches.row_key[rows], kind="stable")]
    versions = pa.array([*(e.version for e in earlier), None], pa.string())
    run = np.searchsorted(np.cumsum([e.rows for e in earlier]), verdict.survivor[rows], side="right")
    reasons = pa.array(["near_duplicate", "exact_duplicate", "prefix"]).take(
        pa.array(np.where(verdict.prefix[rows], 2, verdict.exact[rows]))
    )
    return pa.record_batch(
        {
            "row_key": verdict.sketches.row_key[rows],
            "reason": reasons,
            "duplicate_of": verdict.sketches.ids(verdict.survivor[rows]),
            "similarity": verdict.similarity[rows],
            "duplicate_in": versions.take(pa.array(run)),
        }
    )


def _alarms(verdict: "Verdict", config: DedupConfig) -> list[str]:
    """Alarms about rows with many duplicates, and about sources and languages that are nearly lost."""
    sources, languages = Losses("rows"), Losses("rows")
    for batch, begin in zip(verdict.sketches.batches, verdict.sketches.begins, strict=False):
        for losses, name in ((sources, "source"), (languages, "lang")):
            if name in batch.schema.names:  # the rows of an index have neither
                values, there = batch.column(name), batch.column(name).is_valid()
                lost = (verdict.survivor[begin : begin + batch.num_rows] >= 0)[there.to_numpy(zero_copy_only=False)]
                losses.add(values.filter(there), np.ones(len(lost), np.int64), lost)
    vanished = [
        f"the language {name!r} vanishes: each of its {rows} rows is dropped as the duplicate of a row in another "
        "language"
        for name, rows in sorted(languages.whole.items(), key=lambda item: (-item[1], item[0]))
        if languages.lost[name] == rows >= config.min_alarm_rows
    ]
    hint = "; `datakit pairs` shows for which rows"
    return [
        *worst_first(_large_clusters(verdict, config), "rows stand for more rows than that"),
        *sources.alarms(config.max_source_loss, config.min_alarm_rows, hint),
        *worst_first(vanished, "languages vanish"),
    ]


def _large_clusters(verdict: "Verdict", config: DedupConfig) -> Iterator[str]:
    large = np.flatnonzero(verdict.cluster_rows >= config.max_cluster_rows)
    large = large[np.argsort(-verdict.cluster_rows[large], kind="stable")]
    listed = verdict.sketches.ids(large[:MAX_ALARMS]).to_pylist()
    for row, name in zip(large, listed + [""] * (len(large) - len(listed)), strict=True):
        yield (
            f"{verdict.cluster_rows[row] + 1} rows count as one: all but {name!r} are dropped as its duplicates "
            f"(max_cluster_rows is {config.max_cluster_rows}); look whether they share boilerplate"
        )
