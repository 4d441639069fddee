"""The dedup stage: sketch every row, decide over all of them, split; and what all stages of this room share."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from datakit.errors import ConfigError
from datakit.stage import Decision, Stage
from datakit.text.characters import UNICODE_VERSION, character_table

if TYPE_CHECKING:
    from datakit.dedup.cluster import Verdict
    from datakit.dedup.index import Earlier
    from datakit.dedup.minhash import Sketches


_DEFAULT_BANDS, _DEFAULT_ROWS = 14, 8  # FineWeb's (Penedo et al., 2024)


@lru_cache(maxsize=8)
def best_bands(threshold: float, max_num_perm: int, false_negative_weight: float) -> tuple[int, int]:
    """(num_bands, rows_per_band) of at most `max_num_perm` values that err least, as `datasketch.MinHashLSH` has it.

    The error is the weighted sum of the area under the probability curve below the threshold (pairs compared in vain)
    and of the area over it above the threshold (pairs missed).
    """
    from datasketch import MinHashLSH  # brings scipy: 0.4 s that only a choice has to pay

    weights = (round(1.0 - false_negative_weight, 9), false_negative_weight)
    chosen = MinHashLSH(threshold=threshold, num_perm=max_num_perm, weights=weights)
    return chosen.b, chosen.r


@dataclass(frozen=True, kw_only=True, slots=True)
class DedupConfig:
    """Exact, then near duplicates by MinHash LSH: which rows count as the same, and which of them stays."""

    on: Literal["all", "prompt", "answer"] = option("all", "the part of a conversation or preference pair to compare")
    include_system: bool = option(False, "compare system prompts, tool schemas and tool results too")
    shingle_words: int = option(5, "words in a shingle")
    num_bands: int = option(_DEFAULT_BANDS, "bands of the signature; rows that share one are compared")
    rows_per_band: int = option(_DEFAULT_ROWS, "MinHash values in a band")
    max_num_perm: int = option(
        0, "choose num_bands and rows_per_band for the threshold, of at most so many MinHash values; 0: as given"
    )
    false_negative_weight: float = option(
        0.9, "when choosing them: how much a missed pair weighs; a needless comparison weighs what is left to 1"
    )
    threshold: float = option(0.75, "least Jaccard similarity of the shingle sets of near duplicates")
    cluster: Literal["star", "components"] = option(
        "star", "star: each dropped row is similar to the row that stays; components: to some row of a chain to it"
    )
    policy: str = option("first", "which duplicate stays: first, longest, or highest:<column>; ties by position")
    seed: int = option(1, "seed of the permutations, as datasketch takes it")
    max_cluster_rows: int = option(1000, "raise an alarm where one row stands for more rows than this")
    max_source_loss: float = option(0.75, "raise an alarm where a source loses more than this share of its rows")
    min_alarm_rows: int = option(20, "raise no alarm about a source or a language of fewer rows than this")
    memory_mb: int = option(
        1024, "memory for comparing all rows; what takes more is put on the disk, with the same result", result=False
    )
    save_signatures: bool = option(
        False, "write each row's MinHash values to the column minhash, as datasketch.LeanMinHash serialises them"
    )
    save_index: bool = option(
        False, "write what a later run --against this one needs to know of its rows; takes 1.1 to 2.7 times their text"
    )
    against: str = option(
        "", "also drop what repeats a row that an earlier dedup kept: its manifest, run with save_index", result=False
    )

    def __post_init__(self) -> None:
        for name in ("shingle_words", "num_bands", "rows_per_band", "max_cluster_rows", "min_alarm_rows", "memory_mb"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, found {getattr(self, name)}")
        if not 0.0 < self.threshold <= 1.0 or round(self.threshold, 3) != self.threshold:
            raise ConfigError(f"threshold must lie in (0, 1], with at most three decimals; found {self.threshold}")
        if not 0 <= self.seed < 1 << 32:
            raise ConfigError(f"seed must lie in [0, 2**32), found {self.seed}")
        if self.policy not in ("first", "longest") and not self.score_column:
            raise ConfigError(f"policy must be first, longest or highest:<column>, found {self.policy!r}")
        for name in ("max_source_loss", "false_negative_weight"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"{name} is a share and lies in [0, 1], found {getattr(self, name)}")
        if self.max_num_perm:
            self._choose_bands()
        for name in ("save_index", "against"):
            if getattr(self, name) and (self.cluster, self.policy) != ("star", "first"):
                raise ConfigError(
                    f"{name}: earlier rows can only stay as they are with cluster star and policy first; found cluster "
                    f"{self.cluster} and policy {self.policy}"
                )

    def _choose_bands(self) -> None:
        """Put the chosen numbers in the place of the given ones, so that manifests name them."""
        if self.max_num_perm < 2:
            raise ConfigError(f"max_num_perm must be 0, or at least 2 values to choose from; found {self.max_num_perm}")
        chosen = best_bands(self.threshold, self.max_num_perm, self.false_negative_weight)
        given = (self.num_bands, self.rows_per_band)
        if given not in (chosen, (_DEFAULT_BANDS, _DEFAULT_ROWS)):
            raise ConfigError(
                f"max_num_perm asks to choose num_bands and rows_per_band ({chosen[0]} and {chosen[1]}), but "
                f"{given[0]} and {given[1]} are given: leave out the one or the other"
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

    @property
    def least(self) -> Fraction:
        """The threshold as the exact ratio that counts of shingles are compared with."""
        return Fraction(round(self.threshold * 1000), 1000)


_SIGNATURES = "minhash"
"""The column of signatures, as `datasketch.LeanMinHash.deserialize(value, "<")` takes them."""

_ROW_BYTES = 80  # of a sketch, besides bands and shingles: key, id, source, digest, ...
_TEXT_RATIO = (
    1.6  # bytes of shingle hashes to bytes of English prose, rounded up; scripts without spaces need twice that
)

_SCHEMA = pa.schema(
    [
        pa.field("row_key", pa.uint64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("duplicate_of", pa.string(), nullable=False),
        pa.field("similarity", pa.float64(), nullable=False),
        pa.field("duplicate_in", pa.string()),
    ]
)


@dataclass(frozen=True)
class Dedup(Stage):
    """Drops every row that repeats another, and names the row that stays (`duplicate_of`, `similarity`).

    Reasons are `exact_duplicate` (the normalised text is equal) and `near_duplicate`. `decisions` is the file that
    `reduce` wrote, in the stage that `bind` returns. `earlier` are datasets whose rows are compared with too, oldest
    first; `duplicate_in` is then the version of the dedup run that kept the survivor, null where it was this one.
    `sided` is set for preference pairs (`sides`).
    """

    config: DedupConfig
    decisions: Path | None = None
    earlier: "tuple[Earlier, ...]" = ()
    sided: bool = False

    name: ClassVar[str] = "dedup"
    Config: ClassVar[type] = DedupConfig
    compares_rows: ClassVar[bool] = True

    def for_kind(self, kind: str) -> Self:
        """The stage for rows of a kind: the answers of preference pairs are compared by themselves too."""
        return replace(self, sided=kind == "preference" and self.config.on != "prompt")

    def resources(self) -> dict[str, Any]:
        """The Unicode version that words and normal forms follow, which is the interpreter's; the earlier datasets."""
        against = [
            {"version": e.version, "rows": e.rows - len(e.removed.ids), "removed": len(e.removed.ids),
             "removed_sha256": e.removed.sha256} for e in self.earlier
        ]  # fmt: skip
        return {"unicode": UNICODE_VERSION} | ({"against": against} if against else {})

    def facts(self) -> dict[str, Any]:
        """How to read the column of signatures, and what the index was made by, where there is one."""
        signatures = {"column": _SIGNATURES, "format": "datasketch.LeanMinHash", "byteorder": "<"}
        index = {}
        if self.config.save_index:
            from datakit.dedup.index import fingerprint

            index = {"fingerprint": fingerprint(self.config)}
        return ({"signatures": signatures} if self.config.save_signatures else {}) | ({"index": index} if index else {})

    def open(self) -> None:
        """Build the character tables of this process."""
        character_table()

    def forecast(self, files: Sequence[Path]) -> str:
        """How much disk the sketches of the rows of these shards will take, and the comparison of all of them."""
        shards = [pq.read_metadata(file) for file in files]
        rows = sum(shard.num_rows for shard in shards)
        text = sum(shard.row_group(n).total_byte_size for shard in shards for n in range(shard.num_row_groups))
        tables = rows * (2 * 4 * self.config.num_bands + 150)  # the buckets of each row, the rows of each bucket, ...
        disk = rows * (_ROW_BYTES + 8 * self.config.num_bands) + int(_TEXT_RATIO * text)
        disk += tables if 4 * self.config.num_bands * rows > (self.config.memory_mb << 20) // ARRAY_SHARE else 0
        told = f"{rows:,} rows, about {disk / 1e6:,.0f} MB of disk while they are compared"
        if self.config.save_index:
            index = rows * (_ROW_BYTES + 8 * self.config.num_bands) + int(_TEXT_RATIO * text)
            told += f", and up to {index / 1e6:,.0f} MB for the index, which stays"
        for e in self.earlier:
            size = sum(s.bytes for s in e.shards) / 1e6
            gone = f", {len(e.removed.ids):,} of them removed since" if e.removed.ids else ""
            told += f"; against {e.name}: {e.rows:,} rows{gone} ({size:,.0f} MB)"
        return told

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Digest, bands and shingles of each row."""
        from datakit.dedup.minhash import sketch

        return sketch(batch, self.config)

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write the dropped rows, by row_key, to `out`; returns the LSH parameters, counts of pairs and alarms."""
        from datakit.dedup.cluster import decide_all

        memory = Memory(self.config.memory_mb << 20, out.parent)
        verdict = decide_all(sketches, self.config, memory, workers, self.earlier, self.sided)
        aside = out.with_name(f".{out.name}.{os.getpid()}.tmp")
        with pa.OSFile(str(aside), "wb") as file, pa.ipc.new_file(file, _SCHEMA) as writer:
            writer.write_table(_dropped(verdict, self.earlier))
        aside.rename(out)
        return verdict.facts

    def bind(self, out: Path) -> Self:
        """The stage that carries out the decisions in `out`."""
        return replace(self, decisions=out)

    @property
    def saves_index(self) -> bool:
        """Whether `index` is to be called, and what it returns is to be kept."""
        return self.config.save_index

    def index(self, sketches: pa.RecordBatch) -> pa.RecordBatch:
        """What a later run needs to know of the kept rows of a batch of sketches."""
        from datakit.dedup.index import index_rows

        return index_rows(sketches, self._found(sketches).column("reason").is_null().to_numpy())

    def unchanged(self, keys: npt.NDArray[np.uint64]) -> bool:
        """Whether rows with these keys, ascending, all stay, and as they are."""
        return not self.config.save_signatures and not np.isin(keys, self._decisions().column("row_key")).any()

    def _decisions(self) -> pa.Table:
        assert self.decisions is not None, "decide needs the decisions of reduce: call bind first"
        with pa.memory_map(str(self.decisions)) as file:
            return pa.ipc.open_file(file).read_all()

    def _found(self, batch: pa.RecordBatch) -> pa.Table:
        """The decision about each row, by row_key; null where it stays."""
        table = self._decisions()
        keys = table.column("row_key").to_numpy()
        wanted = batch.column("row_key").to_numpy()
        at = np.searchsorted(keys, wanted)
        hit = at < len(keys)
        hit[hit] = keys[at[hit]] == wanted[hit]
        return table.take(pa.array(at, mask=~hit)).combine_chunks()

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Look the rows up by row_key."""
        found = self._found(batch)
        reasons, duplicate_of, similarity, there = (found.column(name).combine_chunks() for name in _SCHEMA.names[1:])
        detail = pc.binary_join_element_wise(
            pa.scalar("duplicate of "), duplicate_of, self._in(there), pa.scalar(", similarity "),
            similarity.cast(pa.string()), pa.scalar(""),
        )  # fmt: skip
        columns = {}
        if self.config.save_signatures:
            from datakit.dedup.minhash import saved_signatures

            columns = {_SIGNATURES: saved_signatures(batch, self.config)}
        return Decision(
            reasons=reasons,
            detail=detail,
            columns=columns,
            drop_columns={"duplicate_of": duplicate_of, "similarity": similarity}
            | ({"duplicate_in": there} if self.earlier else {}),
        )

    def _in(self, versions: pa.Array) -> pa.Array:
        """Where survivors of other datasets lie, in words."""
        known = pa.array([e.version for e in self.earlier], pa.string())
        words = pa.array(["", *(f" in {e.name}" for e in self.earlier)])
        return words.take(pc.add(pc.fill_null(pc.index_in(versions, known), -1), 1))


def _dropped(verdict: "Verdict", earlier: "tuple[Earlier, ...]") -> pa.Table:
    rows = np.flatnonzero(verdict.survivor >= 0)
    rows = rows[np.argsort(verdict.sketches.row_key[rows], kind="stable")]
    versions = pa.array([*(e.version for e in earlier), None], pa.string())
    there = np.searchsorted(np.cumsum([e.rows for e in earlier]), verdict.survivor[rows], side="right")
    reasons = pa.array(["near_duplicate", "exact_duplicate"]).take(pa.array(verdict.exact[rows].astype(np.int8)))
    return pa.table(
        {
            "row_key": verdict.sketches.row_key[rows],
            "reason": reasons,
            "duplicate_of": verdict.sketches.ids(verdict.survivor[rows]),
            "similarity": verdict.similarity[rows],
            "duplicate_in": versions.take(pa.array(there)),
        },
        schema=_SCHEMA,
    )


MOST = 10
"""Alarms of one sort that are told one by one, the worst first; the others are counted."""


def alarms(
    sketches: "Sketches",
    survivor: npt.NDArray[np.int64],
    cluster_rows: npt.NDArray[np.int64],
    config: DedupConfig,
) -> list[str]:
    """A sentence for each thing that looks wrong.

    `survivor` int64 (rows,) is the row that stays for each, -1 where it stays itself; `cluster_rows` int64 counts how
    many rows each row stays for, besides itself.
    """
    dropped = survivor >= 0
    return [
        *_told(_large_clusters(sketches, cluster_rows, config), "rows stand for more rows than that"),
        *_told(_lost_sources(sketches, dropped, config), "sources lose more than that"),
        *_told(_lost_languages(sketches, dropped, config), "languages vanish"),
    ]


def _told(sentences: Iterator[str], more: str) -> Iterator[str]:
    found = list(sentences)
    yield from found[:MOST]
    if len(found) > MOST:
        yield f"{len(found) - MOST} more {more}"


def _large_clusters(sketches: "Sketches", cluster_rows: npt.NDArray[np.int64], config: DedupConfig) -> Iterator[str]:
    large = np.flatnonzero(cluster_rows >= config.max_cluster_rows)
    large = large[np.argsort(-cluster_rows[large], kind="stable")]
    for number, row in enumerate(large):
        name = sketches.ids(large[number : number + 1])[0].as_py() if number < MOST else ""
        yield (
            f"{cluster_rows[row] + 1} rows count as one: all but {name!r} are dropped as its duplicates "
            f"(max_cluster_rows is {config.max_cluster_rows}); look whether they share boilerplate"
        )


def _lost_sources(sketches: "Sketches", dropped: npt.NDArray[np.bool_], config: DedupConfig) -> Iterator[str]:
    rows, lost = sketches.count("source", np.ones_like(dropped)), sketches.count("source", dropped)
    shares = {name: round(lost[name] / n, 3) for name, n in rows.items() if n >= config.min_alarm_rows}
    for name, share in sorted(shares.items(), key=lambda item: (-item[1], item[0])):
        if share > config.max_source_loss:
            yield (
                f"the source {name!r} loses {lost[name]} of its {rows[name]} rows ({share:.1%}; max_source_loss is "
                f"{config.max_source_loss:.1%}); `datakit pairs` shows for which rows"
            )


def _lost_languages(sketches: "Sketches", dropped: npt.NDArray[np.bool_], config: DedupConfig) -> Iterator[str]:
    rows, lost = sketches.count("lang", np.ones_like(dropped)), sketches.count("lang", dropped)
    for name in sorted(rows, key=lambda name: (-rows[name], name)):
        if lost[name] == rows[name] >= config.min_alarm_rows:
            yield (
                f"the language {name!r} vanishes: each of its {rows[name]} rows is dropped as the duplicate of a row "
                "in another language"
            )


SOURCE_LOSS = "raise an alarm where a source loses more than this share of its words"
MEMORY = "memory in MB for comparing all rows; what takes more is put on the disk, with the same result"


_LEAST = {
    "min_words": 1,
    "min_words_left": 0,
    "span_sentences": 1,
    "ngram_words": 1,
    "max_cluster_rows": 1,
    "memory_mb": 1,
}


def check_values(config: Any) -> None:
    """Refuse values that are too small, and shares outside [0, 1]."""
    for name, least in _LEAST.items():
        if getattr(config, name, least) < least:
            raise ConfigError(f"{name} must be at least {least}, found {getattr(config, name)}")
    if not 0.0 <= config.max_source_loss <= 1.0:
        raise ConfigError(f"max_source_loss is a share and lies in [0, 1], found {config.max_source_loss}")


DECISIONS = pa.schema(
    [
        pa.field("row_key", pa.uint64(), nullable=False),
        pa.field("reason", pa.string()),  # null: the row stays
        pa.field("detail", pa.string()),
        pa.field("duplicate_of", pa.string()),  # of a row that is dropped for another
        pa.field("cut", pa.list_(pa.int32())),  # numbers of the units that a row that stays loses
        pa.field("stays_in", pa.list_(pa.string())),  # the ids of the rows that still have them, where they are known
    ]
)


def write(out: Path, batches: Iterable[pa.RecordBatch]) -> None:
    """Write decisions, rows in the order of their keys; columns that are not given are null."""
    aside = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    with pa.OSFile(str(aside), "wb") as file, pa.ipc.new_file(file, DECISIONS) as writer:
        for batch in batches:
            columns = [batch.column(f.name).cast(f.type) if f.name in batch.schema.names
                       else pa.nulls(batch.num_rows, f.type) for f in DECISIONS]  # fmt: skip
            writer.write_batch(pa.record_batch(columns, schema=DECISIONS))
    aside.rename(out)


def decided(
    row_key: pa.Array,
    reason: str,
    dropped: npt.NDArray[np.bool_],
    unit_starts: npt.NDArray[np.int64],
    cut: npt.NDArray[np.bool_],
    tell: Callable[[int], str],
) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]]:
    """(decisions about the rows of a batch that are dropped or lose units; the numbers of these rows).

    The units of row i are `[unit_starts[i], unit_starts[i + 1])`; `cut` marks those that rows which stay lose.
    `tell(i)` says why row i is dropped.
    """
    row_of = np.repeat(np.arange(len(dropped)), np.diff(unit_starts))
    cuts = np.bincount(row_of[cut], minlength=len(dropped))
    rows = np.flatnonzero((cuts > 0) | dropped)
    numbers = (np.arange(len(cut)) - unit_starts[row_of])[cut]
    lists = pa.ListArray.from_arrays(
        pa.array(np.concatenate(([0], np.cumsum(cuts[rows]))), pa.int32()), pa.array(numbers, pa.int32())
    )
    columns = {
        "row_key": row_key.take(pa.array(rows)),
        "reason": pa.array([reason if dropped[row] else None for row in rows], pa.string()),
        "detail": pa.array([tell(row) if dropped[row] else None for row in rows.tolist()], pa.string()),
        "cut": lists,
    }
    return pa.record_batch(columns), rows


def look_up(path: Path, row_key: pa.Array) -> pa.RecordBatch:
    """The decisions of rows; null in every column for a row that is not touched."""
    wanted = row_key.to_numpy()
    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
    near = pa.Table.from_batches([b for b in batches if _may_hold(b.column("row_key").to_numpy(), wanted)], DECISIONS)
    known = near.column("row_key").to_numpy()
    at = np.searchsorted(known, wanted)
    hit = at < len(known)
    hit[hit] = known[at[hit]] == wanted[hit]
    found = near.take(pa.array(at, mask=~hit)).combine_chunks()
    columns = [pa.concat_arrays(c.chunks) if c.num_chunks else pa.array([], c.type) for c in found.columns]
    return pa.record_batch(columns, names=DECISIONS.names)


def _may_hold(keys: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]) -> bool:
    return len(keys) > 0 and len(wanted) > 0 and bool(keys[0] <= wanted.max() and keys[-1] >= wanted.min())


@dataclass(frozen=True, slots=True)
class Losses:
    """Amounts (words, rows) by source: before, and what of them is lost."""

    what: str
    whole: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)

    def add(self, source: pa.Array, whole: npt.NDArray[Any], lost: npt.NDArray[Any]) -> None:
        """Count the amounts of some rows; rows without a source count as one."""
        columns = {"source": pc.fill_null(source, ""), "whole": whole.astype(np.int64), "lost": lost.astype(np.int64)}
        sums = pa.table(columns).group_by("source").aggregate([("whole", "sum"), ("lost", "sum")])
        for row in sums.to_pylist():
            self.whole[row["source"]] += row["whole_sum"]
            self.lost[row["source"]] += row["lost_sum"]

    def alarms(self, most: float) -> list[str]:
        """A sentence for each source that loses more than a share of what it had."""
        shares = {name: round(self.lost[name] / n, 3) for name, n in self.whole.items() if n}
        worst = sorted((-share, name) for name, share in shares.items() if share > most)
        told = [
            f"the source {name!r} loses {self.lost[name]} of its {self.whole[name]} {self.what} ({-share:.1%}; "
            f"max_source_loss is {most:.1%})"
            for share, name in worst[:MOST]
        ]
        return told + ([f"{len(worst) - MOST} more sources lose more than that"] if len(worst) > MOST else [])


def source(batch: pa.RecordBatch) -> pa.Array:
    """The source of each row; null where rows have none."""
    names = batch.schema.names
    return batch.column("source").cast(pa.string()) if "source" in names else pa.nulls(len(batch), pa.string())


def text_bytes(files: Sequence[Path]) -> tuple[int, int]:
    """(rows, bytes of their columns before compression) of Parquet shards."""
    shards = [pq.read_metadata(file) for file in files]
    sizes = (shard.row_group(n).total_byte_size for shard in shards for n in range(shard.num_row_groups))
    return sum(shard.num_rows for shard in shards), sum(sizes)
