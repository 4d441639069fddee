"""The dedup stage: sketch every row, compare all sketches, split.

`minhash` says what the sketch of a document holds, `turn_digests` that of a conversation or preference pair; `shuffle`
brings together the rows that may be duplicates, `cluster` decides which of them stay, and `index` loads the earlier
runs that rows are compared with.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import OF_DOCUMENTS, OF_TURNS, at_least, option
from datakit.dedup.comparison import (
    MIN_ALARM_ROWS,
    POLICY,
    CompareOptions,
    Hashes,
    IndexOptions,
    Numbers,
    blocks,
    check_policy,
    cluster_facts,
    exact_ratio,
    lost_rows,
    sums_of,
)
from datakit.dedup.shuffle import (
    BEGINNING,
    Compared,
    Decided,
    IndexedStage,
    Memory,
    Rows,
    digest_halves,
)
from datakit.errors import ConfigError
from datakit.stage import Decision, worst_first
from datakit.text.words import character_table

if TYPE_CHECKING:
    from datakit.dedup.cluster import Verdict

_FINEWEB = {"threshold": 0.75, "num_bands": 14, "rows_per_band": 8}  # Penedo et al., 2024
_SHINGLES = {**OF_DOCUMENTS, "match": ("near",)}  # rows that are compared by them
_RECALL = 0.95  # of pairs at the threshold: what bands are chosen for
_MAX_VALUES = 256  # of a chosen signature: more rows in a band need many more bands


@dataclass(frozen=True, kw_only=True, slots=True)
class DedupConfig(IndexOptions):
    """Exact, then near duplicates by MinHash LSH: which rows count as duplicates, and which of them stays."""

    threshold: float = option(
        0.75, "least Jaccard similarity of the shingle sets of near duplicates", acts_with=_SHINGLES
    )
    shingle_words: int = option(
        5, "words in a shingle; a shorter text is a duplicate only of an equal one", acts_with=_SHINGLES
    )
    policy: str = option("first", POLICY)
    match: Literal["exact", "loose", "near"] = option(
        "exact",
        "which conversations and pairs are duplicates. exact: roles, tools and turns are equal but for white space and "
        "Unicode form; loose: also but for letter case and sentence marks, except between backticks; near: each turn "
        "is similar by --threshold, but one changed word may change an answer",
        acts_with=OF_TURNS,
    )
    on: Literal["all", "prompt", "answer"] = option(
        "all", "the part of a conversation or preference pair to compare", acts_with=OF_TURNS
    )
    include_system: bool = option(
        True, "of conversations, compare system prompts, tool schemas and tool results too", acts_with=OF_TURNS
    )
    prefix: bool = option(True, "also drop a conversation that another one begins with", acts_with=OF_TURNS)
    keep_per_prompt: int = option(
        1,
        "with --on prompt: how many answers of a question stay, the first by the policy",
        acts_with={"on": ("prompt",)},
    )
    save_duplicates: bool = option(False, "write the ids of the rows that each kept row stands for: column duplicates")
    num_bands: int = option(
        0,
        "bands of the signature; rows that share one are compared. 0: 14 at threshold 0.75, else for a recall of 0.95",
        advanced=True,
    )
    rows_per_band: int = option(
        0, "MinHash values in a band; 0: 8 at threshold 0.75, else for a recall of 0.95", advanced=True
    )
    seed: int = option(1, "seed of the permutations, as datasketch takes it", advanced=True, acts_with=_SHINGLES)
    max_cluster_rows: int = option(
        1000, "raise an alarm where more rows than this are dropped for one row", advanced=True
    )

    def __post_init__(self) -> None:
        CompareOptions.__post_init__(self)
        at_least(self, 1, "shingle_words", "max_cluster_rows", "keep_per_prompt")
        at_least(self, 0, "num_bands", "rows_per_band")
        exact_ratio(self.threshold)
        if not 0 <= self.seed < 1 << 32:
            raise ConfigError(f"seed must lie in [0, 2**32), found {self.seed}")
        check_policy(self)
        bands = chosen_bands(self.threshold, self.num_bands, self.rows_per_band)
        for name, number in zip(("num_bands", "rows_per_band"), bands, strict=True):
            object.__setattr__(self, name, number)  # so that manifests name them

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


# The dedup stage.

_CHECK = (
    "Check with `datakit pairs` whether these rows are duplicates, or only share a template, a prompt or a long "
    "passage; then compare less of them (on), or raise threshold. If they are duplicates, raise max_loss"
)
_LARGE = (
    "{} rows count as one: all but {!r} are dropped as its duplicates (max_cluster_rows is {}); look whether they "
    "share boilerplate"
)
_LOOSER = "stay_but_for_loose"  # the ledger's note about them
_NOTES = {_LOOSER: 'more rows would be dropped with match = "loose": only letter case or sentence marks differ'}


@dataclass(frozen=True)
class Dedup(IndexedStage):
    """Drops every row that is a duplicate, and names the row that stays (`duplicate_of`, `similarity`).

    Reasons of documents are `exact_duplicate` (the normalised text is equal) and `near_duplicate`. Conversations and
    preference pairs are compared turn by turn (`by_turn`); they have `loose_duplicate` and `prefix` too (see
    `turn_digests`).
    """

    config: DedupConfig
    by_turn: bool = False

    name: ClassVar[str] = "dedup"
    help: ClassVar[str] = "A near duplicate is dropped if its exact similarity to a row that stays reaches --threshold."
    Config: ClassVar[type] = DedupConfig
    note_lines: ClassVar[Mapping[str, str]] = MappingProxyType(_NOTES)

    def for_kind(self, kind: str) -> Self:
        """The stage for rows of a kind: all but documents are compared turn by turn."""
        made = replace(self, by_turn=kind != "document")
        return made if made.compares_shingles else replace(made, key_bytes=16)  # a digest for each turn

    @property
    def compares_shingles(self) -> bool:
        """Whether rows are compared by their shingles."""
        return not self.by_turn or self.config.match == "near"

    def describe(self) -> tuple[str, ...]:
        """What counts as equal, and the expected recall of the bands."""
        how = {"exact": "equal", "loose": "equal but for letter case and sentence marks", "near": "similar"}
        line = f"{self.name}: roles and tools must be equal, and every turn {how[self.config.match]}"
        recall = f"{self.name}: {self.config.expected_recall()}"
        return (line,) * self.by_turn + (recall,) * self.compares_shingles

    def open(self) -> None:
        """Draw the permutations, build the character table, load the kernels."""
        from datakit.dedup.minhash import permutations

        permutations(self.config.num_perm, self.config.seed)
        character_table()

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What rows are compared by: digests, bands and shingles of each."""
        from datakit.dedup import minhash, turn_digests

        return (minhash if "text" in batch.schema.names else turn_digests).sketch(batch, self.config)

    def keys(self, batch: pa.RecordBatch) -> Iterator[tuple[int, Hashes, Numbers]]:
        """Half of each digest, the prefixes of conversations, the loose digest, and the bands."""
        rows, names = np.arange(batch.num_rows), batch.schema.names
        loose = self.config.match == "loose" and "loose" in names
        yield 0, digest_halves(batch.column("loose" if loose else "digest"))[:, 0], rows
        if "loose" in names and not loose:  # so that their number can be told
            yield 1, digest_halves(batch.column("loose"))[:, 0], rows
        if "prefixes" in names:
            lists = batch.column("prefixes")
            owners = np.repeat(rows, pc.list_value_length(lists).to_numpy(zero_copy_only=False))
            yield 0, digest_halves(lists.flatten())[:, 0], owners + BEGINNING
        if "shingles" in names:
            described = np.flatnonzero(batch.column("shingles").is_valid().to_numpy(zero_copy_only=False))
            for band in range(self.config.num_bands):
                yield 2 + band, batch.column(f"band{band}").to_numpy()[described], described

    def totals(self, batch: pa.RecordBatch) -> dict[str, dict[str, int]]:
        """Rows by source and language."""
        one = np.ones(batch.num_rows)
        return {name: sums_of(batch.column(name), one) for name in ("source", "lang")}

    def decide_rows(self, rows: Rows, memory: Memory) -> Decided:
        """The decisions about one group, and what is known of the rows that others are dropped for."""
        from datakit.dedup.cluster import decide

        verdict = decide(rows, self.config, memory)
        most = self.config.max_cluster_rows
        sizes, counts = lost_rows(rows, verdict.survivor, ("source", "lang"), most, memory)
        dropped_for = Counter[str]()  # rows by how many others are dropped for them
        for block in blocks(len(sizes), rows.old):
            for size, kept in zip(*np.unique(sizes[block], return_counts=True), strict=True):
                dropped_for[str(size)] += int(kept)
        del dropped_for["0"]
        counts |= {
            "candidates": verdict.facts,
            "largest_bucket": {str(verdict.facts["largest_bucket_rows"]): 1},
            "sizes": dropped_for,
        }
        return Decided(self._decisions(rows, verdict, sizes, memory), sizes, counts)

    def _decisions(self, rows: Rows, verdict: "Verdict", sizes: Numbers, memory: Memory) -> Iterator[pa.RecordBatch]:
        """The decisions: why rows are dropped, and what kept rows stand for."""
        from datakit.dedup.cluster import REASONS

        reasons = pa.array(REASONS)
        for gone, named in self.drops(rows, verdict.survivor, memory):
            why = {
                "reason": reasons.take(pa.array(verdict.reason[gone])),
                "similarity": verdict.similarity[gone] / 1000,
            }
            yield pa.record_batch(named | why)
        row_key = rows.column("row_key", memory)
        if self.config.save_duplicates:  # the rows that others stay for, by these others
            gone = memory.hold(np.flatnonzero(verdict.survivor >= rows.old))
            order = np.lexsort((memory.take(row_key, gone), memory.take(verdict.survivor, gone)))
            gone = memory.take(gone, order)
            stays = memory.take(verdict.survivor, gone)
        for block in blocks(len(row_key), rows.old):
            told = block.start + np.flatnonzero((sizes[block] > 0) | verdict.looser[block])
            stay = {
                "row_key": pa.array(row_key[told]),
                "cluster_size": pa.array(sizes[told] + 1),
                "looser": pa.array(verdict.looser[told]),
            }
            if self.config.save_duplicates:
                ids = rows.ids(gone[slice(*np.searchsorted(stays, (block.start, block.stop)))])
                starts = pa.array(np.concatenate(([0], np.cumsum(sizes[told]))), pa.int32())
                stay["duplicates"] = pa.ListArray.from_arrays(starts, ids, mask=pa.array(sizes[told] == 0))
            yield pa.record_batch(stay)
            memory.release()

    def summarize(self, compared: Compared) -> dict[str, Any]:
        """The LSH parameters, counts of pairs and clusters, and alarms, also about languages that are nearly lost."""
        from datakit.dedup.cluster import FACTS, size_histogram

        config, sums, found = self.config, compared.sums, dict[str, Any]()
        if self.compares_shingles:
            bands = (config.num_bands, config.rows_per_band)
            found["lsh"] = {
                "num_perm": config.num_perm,
                "num_bands": config.num_bands,
                "rows_per_band": config.rows_per_band,
                "seed": config.seed,
                "expected_recall": {f"{config.threshold:g}": candidate_probability(config.threshold, *bands)},
                "candidate_probability": {f"{n / 20:.2f}": candidate_probability(n / 20, *bands) for n in range(21)},
            }
        largest = max(map(int, sums["largest_bucket"]), default=0)
        kept = sums["rows"]["all"] - sums["lost_source"].total()
        found["candidates"] = {name: sums["candidates"][name] for name in FACTS} | {"largest_bucket_rows": largest}
        found["cluster_sizes"] = size_histogram({int(size): rows for size, rows in sums["sizes"].items()}, kept)
        found |= cluster_facts(compared, config, _LARGE, "rows stand for more rows than that", _CHECK)
        vanished = [
            f"the language {name!r} vanishes: each of its {rows} rows is dropped as the duplicate of a row in another "
            "language"
            for name, rows in sorted(sums["lang"].items(), key=lambda item: (-item[1], item[0]))
            if name and sums["lost_lang"][name] == rows >= MIN_ALARM_ROWS
        ]
        found["alarms"] += worst_first(vanished, "languages vanish")
        return found

    def decided_about(self, row_keys: Hashes) -> pa.RecordBatch:
        """The decisions about the rows with these keys: every row that stays gets the size of its cluster."""
        found = super().decided_about(row_keys)
        size = pc.fill_null(found.column("cluster_size"), 1)
        return found.set_column(found.schema.get_field_index("cluster_size"), "cluster_size", size)

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Look the rows up by row_key."""
        found = self.look_up(batch.column("row_key"))
        similarity = found.column("similarity")
        detail = pc.binary_join_element_wise(
            pa.scalar("duplicate of "), found.column("duplicate_of"), self.in_which(found),
            pa.scalar(", similarity "), similarity.cast(pa.string()), pa.scalar(""),
        )  # fmt: skip
        stays, size = found.column("reason").is_null(), found.column("cluster_size")
        columns = {"cluster_size": pc.if_else(stays, pc.fill_null(size, 1), pa.scalar(None, size.type))}
        if self.config.save_duplicates:
            columns["duplicates"] = found.column("duplicates")
        return Decision(
            reasons=found.column("reason"),
            detail=detail,
            columns=columns,
            drop_columns={"duplicate_of": found.column("duplicate_of"), "similarity": similarity}
            | self.survivor_columns(found),
            notes={_LOOSER: pc.sum(found.column("looser")).as_py() or 0},
        )
