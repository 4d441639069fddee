"""Rows that say the same in other words: SemDeDup (Abbas et al., 2023), with cosines that are verified.

1. Every row is sketched by itself: the vectors of its parts (`embedding`), and its facts: numbers, signs, negations and
   names. A document is one part. Of a conversation every message of the user and of the assistant is a part, and all
   that the user says and all that the assistant says are two more; of a preference pair prompt, chosen and rejected.
2. k-means puts the rows into cells. A row is compared with the kept rows of its `probes` nearest cells.
3. Two rows are duplicates if the cosine of every part with its counterpart, rounded to 1e-3, reaches `threshold`, and
   so does the Jaccard similarity of the facts of every part `min_shared_facts`. What is no part (roles, system prompts,
   tool results, calls) must be equal. A row is dropped exactly if a row before it in the policy's order is such a
   duplicate, lies in one of its cells, and stays; the first such row is named.

SemDeDup looks at one cell for each row, so it misses pairs that a border divides. It keeps the row that is farthest
from the centroid, and drops rows that are similar to rows that are dropped too; here every dropped row is similar to
a row that stays. Vectors are integers (see `_kernels_semantic`). So sums are exact, and bytes do not depend on
the number of threads; a BLAS would not promise that.
"""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option, sha256_file, shares
from datakit.data import compared_fields, string_buffers
from datakit.dedup.exact import Memory, SketchRows, open_rows
from datakit.dedup.stage import (
    CompareStage,
    DedupConfig,
    at_least,
    check_policy,
    exact_ratio,
    frequent_survivors,
    policy_order,
    policy_rank,
    source_column,
    text_bytes,
    write_decisions,
)
from datakit.stage import Decision, Losses
from datakit.text.words import UNICODE_VERSION, character_table, hash_values, normalize

_FEW_ROWS = 8192  # so many are one cell: every row is compared with every other
_CELL_ROWS = 1024  # of more rows, cells have at least so many on average
_SAMPLE_ROWS = 64  # for each cell, of which k-means learns
_ROUNDS = 10  # of k-means
_BLOCK_ROWS, _BLOCKS = 1 << 14, 64  # rows that are decided at one time; in a large set a 64th of them
_TASK_ROWS = 256
_MAX_PARTS = 1 << 16  # facts name their part in 16 bits

VECTORS = pa.large_list(pa.field("item", pa.int16(), nullable=False))
FACTS = pa.large_list(pa.field("item", pa.uint64(), nullable=False))


@dataclass(frozen=True, kw_only=True, slots=True)
class SemanticConfig:
    """Rows that say the same in other words: which model compares them, and how much alike they must be."""

    model: str = option(
        "",
        "folder of a model (sentence-transformers, model2vec); none: that of wordllama (English)",
        path=True,
    )
    threshold: float = option(0.9, "least cosine of the vectors of duplicates, in every part; it depends on the model")
    min_shared_facts: float = option(
        0.9, "least share of numbers, names, negations and signs that both have, in every part; 0: do not look at them"
    )
    on: Literal["all", "prompt", "answer"] = option("all", "the part of a conversation or preference pair to compare")
    include_system: bool = option(True, "of conversations, system prompts, tool schemas and results must be equal")
    cells: int = option(0, "cells of k-means; 0: one for 8,192 rows, else at most one for 1,024 rows and their root")
    probes: int = option(4, "cells that a row is compared in; more find more pairs across borders, and take longer")
    policy: str = option("first", "which duplicate stays: first, longest, or highest:<column>; ties by position")
    seed: int = option(1, "seed of the sample that k-means begins with")
    max_loss: float = option(0.3, "raise an alarm where all rows, or those of a source, lose more than this share")
    min_alarm_rows: int = option(20, "raise no alarm about fewer rows than this, of all or a source")
    memory_mb: int = option(
        1024, "memory for comparing all rows; larger arrays go to the disk, with the same result", result=False
    )

    def __post_init__(self) -> None:
        at_least(1, self, "probes", "min_alarm_rows", "memory_mb")
        at_least(0, self, "cells", "seed")
        exact_ratio(self.threshold)
        if self.min_shared_facts:
            exact_ratio(self.min_shared_facts)
        shares(self, "max_loss")
        check_policy(self.policy)


_CHECK = (
    "Check with `datakit pairs --stage dedup_semantic` whether these rows say the same, or only speak of the same; "
    "then raise threshold or name a better model. If they are duplicates, raise max_loss"
)


# The parts of rows.


@dataclass(frozen=True, slots=True)
class Parts:
    """The texts of some rows that are compared by meaning, and what must be equal.

    texts (parts,); row and side int64 (parts,): the row of each and the side that it belongs to, one of `sides`.
    context uint64 (rows,): a hash of what must be equal.
    """

    texts: pa.Array
    row: npt.NDArray[np.int64]
    side: npt.NDArray[np.int64]
    sides: int
    context: npt.NDArray[np.uint64]


def parts_of(batch: pa.RecordBatch, config: SemanticConfig) -> Parts:
    """The parts of the rows of a batch."""
    if "messages" in batch.schema.names:
        return _parts_of_turns(batch, config)
    fields = compared_fields(batch, config.on, include_calls=True)
    row = np.tile(np.arange(len(batch)), len(fields))
    side = np.repeat(np.arange(len(fields)), len(batch))
    return Parts(pa.concat_arrays(fields), row, side, len(fields), np.zeros(len(batch), np.uint64))


def _parts_of_turns(batch: pa.RecordBatch, config: SemanticConfig) -> Parts:
    from datakit.dedup.alike import ANSWER, CODE, segments

    found = segments(batch, DedupConfig(on=config.on, include_system=config.include_system))
    row = np.repeat(np.arange(len(batch)), np.diff(found.row_starts))
    fixed = pc.match_substring(found.labels, ":").to_numpy(zero_copy_only=False) | (found.modes == CODE)
    fixed |= pc.equal(found.labels, "tools").to_numpy(zero_copy_only=False)
    texts = pc.if_else(pa.array(fixed), normalize(found.texts), "")
    lists = pa.ListArray.from_arrays(
        pa.array(found.row_starts.astype(np.int32)), pc.binary_join_element_wise(found.labels, texts, "\x01")
    )
    side = (
        np.where(found.modes == ANSWER, 1, 0)[~fixed] if config.on == "all" else np.zeros(int((~fixed).sum()), np.int64)
    )
    context = hash_values(pc.binary_join(lists, "\x02"))
    return Parts(found.texts.filter(pa.array(~fixed)), row[~fixed], side, 2 if config.on == "all" else 1, context)


# The comparison of all rows.


class SemanticRows(NamedTuple):
    """Rows in the policy's order. Arrays (rows,).

    address uint64 and length int64: where a row's vectors lie, and how many numbers they have; context uint64;
    fact_address uint64, fact_length int64: its facts. The first `sides * width` numbers are the vectors of the sides.
    threshold: in thousandths. least_product: the least product of two vectors that reaches it. fact_numerator 0: facts
    do not count. settled: how many of the first rows stay without a comparison.
    """

    address: Any
    length: Any
    context: Any
    fact_address: Any
    fact_length: Any
    width: int
    threshold: int
    least_product: int
    fact_numerator: int
    fact_denominator: int
    settled: int


class KeptRows(NamedTuple):
    """Kept rows by cell: those of a cell have the places `begins[cell]:ends[cell]`, int64 (cells,), in order.

    fresh int64 (cells,): where those of the present block begin. owners int32 (rows,), vectors int16 (rows, numbers).
    """

    begins: Any
    fresh: Any
    ends: Any
    owners: Any
    vectors: Any


@dataclass(frozen=True, slots=True)
class SemanticClusters:
    """survivor int64 (rows,): the row that stays for each, -1 where it stays; similarity int64 in thousandths."""

    survivor: npt.NDArray[np.int64]
    similarity: npt.NDArray[np.int64]
    cells: int
    pairs_compared: int


def number_of_cells(rows: int, asked: int) -> int:
    """How many cells so many rows are put into; `asked` is `SemanticConfig.cells`."""
    if asked:
        return max(min(asked, rows), 1)
    return 1 if rows <= _FEW_ROWS else min(rows // _CELL_ROWS, math.isqrt(rows))


def star(
    rows: SemanticRows, sides: int, config: SemanticConfig, memory: Memory, workers: int, block_rows: int = 0
) -> SemanticClusters:
    """Who stays: a row is dropped exactly if an earlier kept row of its cells is a duplicate."""
    from datakit.dedup import _kernels_semantic as kernels

    count = len(rows.address)
    vectors = memory.full((count, sides * rows.width), 0, np.int16)
    block_rows = block_rows or max(_BLOCK_ROWS, -(-count // _BLOCKS))
    with ThreadPoolExecutor(workers) as pool:
        for block in _ranges(0, count, block_rows):
            list(pool.map(lambda part: kernels.copy_sides(rows, *part, vectors), _ranges(*block, _TASK_ROWS)))
            memory.release()
        centroids = _centroids(vectors, sides, number_of_cells(count, config.cells), config.seed, memory, pool)
        cells = _nearest(vectors, sides, centroids, min(config.probes, len(centroids)), memory, pool)
        sizes = np.bincount(cells[:, 0], minlength=len(centroids))
        begins = np.cumsum(sizes) - sizes
        kept = KeptRows(
            begins,
            begins.copy(),
            begins.copy(),
            memory.full((count,), 0, np.int32),
            memory.full(vectors.shape, 0, np.int16),
        )
        survivor, shared = memory.full((count,), -1, np.int64), memory.full((count,), 0, np.int64)

        def look_back(numbers: npt.NDArray[np.int64]) -> int:
            found: int = kernels.look_back(rows, vectors, cells, kept, numbers, survivor, shared)
            return found

        compared = 0
        for begin, end in _ranges(0, count, block_rows):
            later = np.arange(max(begin, rows.settled), end)
            later = later[np.argsort(cells[later, 0], kind="stable")]  # neighbours look at the same cells
            compared += sum(pool.map(look_back, [later[a:b] for a, b in _ranges(0, len(later), _TASK_ROWS)]))
            compared += kernels.decide_block(rows, vectors, cells, kept, begin, end, survivor, shared)
            memory.release()
    return SemanticClusters(survivor, shared, len(centroids), compared)


def _ranges(begin: int, end: int, size: int) -> list[tuple[int, int]]:
    return [(low, min(low + size, end)) for low in range(begin, end, size)]


def _nearest(
    vectors: npt.NDArray[np.int16], sides: int, centroids: npt.NDArray[np.int16], probes: int, memory: Memory, pool: Any
) -> npt.NDArray[np.int32]:
    """The nearest cells of each row, the nearest first: int32 (rows, probes)."""
    from datakit.dedup import _kernels_semantic as kernels

    found, width = memory.full((len(vectors), probes), 0, np.int32), vectors.shape[1] // sides

    def some(part: tuple[int, int]) -> None:
        kernels.nearest_cells(vectors, sides, width, centroids, *part, found)

    if len(centroids) > 1:
        for block in _ranges(0, len(vectors), _BLOCK_ROWS):
            list(pool.map(some, _ranges(*block, _TASK_ROWS)))
            memory.release()
    return found


def _centroids(
    vectors: npt.NDArray[np.int16], sides: int, cells: int, seed: int, memory: Memory, pool: Any
) -> npt.NDArray[np.int16]:
    """Spherical k-means (Dhillon and Modha, 2001) on a sample: int16 (cells, sides * width), each side of length 32767.

    Assignments and sums are those of integers, so the order of the rows within a sum does not matter.
    """
    from datakit.dedup import _kernels_semantic as kernels

    rng = np.random.default_rng(seed)
    if cells <= 1:
        return np.zeros((1, vectors.shape[1]), np.int16)
    chosen = np.sort(rng.choice(len(vectors), min(len(vectors), _SAMPLE_ROWS * cells), replace=False))
    sample = memory.keep(vectors[chosen])
    centroids = sample[np.sort(rng.choice(len(sample), cells, replace=False))]
    width = vectors.shape[1] // sides
    for _ in range(_ROUNDS):
        home = _nearest(sample, sides, centroids, 1, memory, pool)[:, 0].astype(np.int64)
        sums = np.zeros(centroids.shape, np.int64)
        kernels.sum_vectors(sample, home, sums)
        made = np.zeros((cells * sides, width), np.int16)
        kernels.round_vectors(sums.reshape(-1, width).astype(np.float64), made)
        empty = np.bincount(home, minlength=cells) == 0
        fresh = np.where(empty[:, None], centroids, made.reshape(centroids.shape))
        if np.array_equal(fresh, centroids):
            break
        centroids = fresh
    return centroids


# The stage.


@dataclass(frozen=True)
class DedupSemantic(CompareStage):
    """Drops every row that says in other words what a row before it in the policy's order says (`semantic_duplicate`).

    `duplicate_of` names the row that stays, `similarity` is the least cosine of the parts. Rows that the model cannot
    read stay; the manifest counts them (`rows_not_read`).
    """

    config: SemanticConfig = field(default_factory=SemanticConfig)
    sides: int = 1

    name: ClassVar[str] = "dedup_semantic"
    help: ClassVar[str] = (
        "A model of embeddings compares the rows; it cannot tell everything apart: see docs/dedup_levels.md."
    )
    Config: ClassVar[type] = SemanticConfig

    def for_kind(self, kind: str) -> Self:
        """The stage for rows of a kind, which have one, two or three sides."""
        sides = {
            "conversation": 2 if self.config.on == "all" else 1,
            "preference": 1 if self.config.on == "prompt" else 3,
        }
        return replace(self, sides=sides.get(kind, 1))

    def resources(self) -> dict[str, Any]:
        """The files of the model and their SHA-256; the Unicode version of facts.

        Raises:
            MissingExtraError: the package of the default model is not installed.
            ModelError: the folder is missing, or has no model of a known kind.
        """
        from datakit.dedup.embedding import model_files

        files = {
            name: {"file": path.name, "sha256": sha256_file(path)}
            for name, path in model_files(self.config.model).items()
        }
        return {"model": files, "unicode": UNICODE_VERSION}

    def open(self) -> None:
        """Load the model."""
        from datakit.dedup.embedding import load_model

        load_model(self.config.model)
        character_table()

    def forecast(self, shards: Sequence[Path]) -> str:
        """The disk space for the vectors of rows, and of the comparison of all of them."""
        from datakit.dedup.embedding import load_model

        rows, _ = text_bytes(shards)
        vector = load_model(self.config.model).embed([""])[0].nbytes
        size = rows * (3 * self.sides * vector + 100)
        return f"{rows:,} rows, about {size / 1e6:,.0f} MB of disk while they are compared (conversations: more)"

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """`row_key`, `id`, `source`, `rank`, the hash of its `context`, its `vectors` and `facts`.

        `vectors` has those of the sides, then those of the parts, unless each side is one part; it is empty where a
        row has no text, or text that the model cannot read.
        """
        from datakit.dedup import _kernels_semantic as kernels
        from datakit.dedup.embedding import load_model

        parts, rows = parts_of(batch, self.config), len(batch)
        order = np.argsort(parts.row, kind="stable")
        row, side, texts = parts.row[order], parts.side[order], parts.texts.take(pa.array(order))
        vectors, read = load_model(self.config.model).embed(texts.to_pylist())
        silent = ~vectors.any(axis=1)
        of_side = row * parts.sides + side
        sums = np.zeros((rows * parts.sides, vectors.shape[1]), np.int64)
        kernels.sum_vectors(vectors, np.where(silent, -1, of_side), sums)
        by_side = np.zeros(sums.shape, np.int16)
        kernels.round_vectors(sums.astype(np.float64), by_side)
        heard = by_side.any(axis=1).reshape(rows, parts.sides).any(axis=1)
        counts = np.bincount(row, minlength=rows)
        heard &= (np.bincount(row[~read], minlength=rows) == 0) & (counts < _MAX_PARTS)
        for some in (by_side, vectors):  # what has no text has a vector of its own, which is like no other
            some[~some.any(axis=1), 0] = 32767
        alone = (np.bincount(of_side, minlength=rows * parts.sides).reshape(rows, parts.sides) == 1).all(axis=1)
        wanted = np.concatenate([np.repeat(heard, parts.sides), (heard & ~alone)[row]])
        owner = np.concatenate([np.repeat(np.arange(rows), parts.sides), row])[wanted]
        made = np.concatenate([by_side, vectors])[wanted][np.argsort(owner, kind="stable")]
        ends = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=rows) * vectors.shape[1])))
        first = np.concatenate(([0], np.cumsum(counts)))
        return pa.record_batch(
            {
                "row_key": batch.column("row_key"),
                "id": batch.column("id"),
                "source": source_column(batch),
                "rank": policy_rank(batch, self.config.policy, lambda: _characters(texts, row, rows)),
                "context": pa.array(parts.context),
                "vectors": pa.LargeListArray.from_arrays(pa.array(ends), pa.array(made.ravel()), type=VECTORS),
                "facts": _facts(texts, row, np.arange(len(row)) - first[row], heard),
            }
        )

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write the dropped rows to `out`; returns counts and alarms."""
        memory = Memory(self.config.memory_mb << 20, out.parent)
        found = open_rows(sketches, memory)
        order = policy_order(found, found.column("row_key", memory), self.config.policy)
        address, length = _places(found, "vectors", 2, memory)
        order = order[length[order] > 0]
        rows = self._rows(found, order, address, length, memory)
        clusters = star(rows, self.sides, self.config, memory, workers)
        first, near = np.full(len(found), -1), np.zeros(len(found), np.int64)
        dropped = clusters.survivor >= 0
        first[order[dropped]] = order[clusters.survivor[dropped]]
        near[order[dropped]] = clusters.similarity[dropped]
        losses = Losses("rows")
        write_decisions(out, (_decisions(found, n, first, near, losses) for n in range(len(found.batches))))
        stands_for = np.bincount(first[first >= 0], minlength=1)
        return {
            "cells": clusters.cells,
            "pairs_compared": clusters.pairs_compared,
            "rows_not_read": len(found) - len(order),
            "largest_cluster_rows": int(stands_for.max()) + (len(found) > 0),
            "alarms": [*self._unread(len(found), len(found) - len(order)), *losses.alarms(
                self.config.max_loss, self.config.min_alarm_rows, _CHECK, frequent_survivors(found, stands_for)
            )],
        }  # fmt: skip

    def _rows(
        self, found: SketchRows, order: npt.NDArray[np.int64], address: Any, length: Any, memory: Memory
    ) -> SemanticRows:
        from datakit.dedup.embedding import load_model

        fact_address, fact_length = _places(found, "facts", 8, memory)
        threshold, share = (
            round(self.config.threshold * 1000),
            Fraction(round(self.config.min_shared_facts * 1000), 1000),
        )
        return SemanticRows(
            address=memory.take(address, order),
            length=memory.take(length, order),
            context=memory.take(found.column("context", memory), order),
            fact_address=memory.take(fact_address, order),
            fact_length=memory.take(fact_length, order),
            width=load_model(self.config.model).embed([""])[0].shape[1],
            threshold=threshold,
            least_product=-(-(2 * threshold - 1) * 32767**2 // 2000),
            fact_numerator=share.numerator,
            fact_denominator=share.denominator,
            settled=0,
        )

    def _unread(self, rows: int, unread: int) -> list[str]:
        if rows < self.config.min_alarm_rows or unread <= self.config.max_loss * rows:
            return []
        return [
            f"{unread} of {rows} rows are not compared: they have no text, or the model does not know a quarter of "
            "their tokens. Name a model for their languages (model)"
        ]

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Look the rows up by row_key."""
        found = self.look_up(batch.column("row_key"))
        duplicate_of, similarity = found.column("duplicate_of"), found.column("similarity")
        return Decision(
            reasons=found.column("reason"),
            detail=pc.binary_join_element_wise(
                "says what ", duplicate_of, " says, similarity ", similarity.cast(pa.string()), ""
            ),
            drop_columns={"duplicate_of": duplicate_of, "similarity": similarity},
        )


def _characters(texts: pa.Array, row: npt.NDArray[np.int64], rows: int) -> pa.Array:
    lengths = pc.utf8_length(texts).to_numpy(zero_copy_only=False)
    return pa.array(np.bincount(row, lengths, minlength=rows))


def _facts(
    texts: pa.Array, row: npt.NDArray[np.int64], part: npt.NDArray[np.int64], heard: npt.NDArray[np.bool_]
) -> pa.Array:
    """For each row the sorted set of hashes of its facts, with the number of the part in the highest bits."""
    from datakit.dedup import _kernels_semantic as kernels
    from datakit.dedup.alike import TurnBuffers
    from datakit.dedup.politeness import phrase_table
    from datakit.dedup.spelling import signs, spelled_out

    data, offsets = string_buffers(spelled_out(texts))
    table, characters, phrases, room = character_table(), signs(), phrase_table(), TurnBuffers.of(offsets)
    made, starts = (
        np.empty(int(offsets[-1] - offsets[0]) + 4 * len(texts) + 4, np.uint64),
        np.empty(len(texts) + 1, np.int64),
    )
    kernels.find_facts(
        data, offsets, part, characters.canon, characters.classes, table.pages, table.entries, table.folds,
        phrases.keys, phrases.values, phrases.bits, *room.arrays[:2], made, starts,
    )  # fmt: skip
    of_row = np.repeat(row, np.diff(starts))
    made, of_row = made[: starts[-1]][heard[of_row]], of_row[heard[of_row]]
    order = np.lexsort((made, of_row))
    made, of_row = made[order], of_row[order]
    fresh = np.ones(len(made), np.bool_)
    fresh[1:] = (made[1:] != made[:-1]) | (of_row[1:] != of_row[:-1])
    ends = np.concatenate(([0], np.cumsum(np.bincount(of_row[fresh], minlength=len(heard)))))
    return pa.LargeListArray.from_arrays(pa.array(ends), pa.array(made[fresh]), type=FACTS)


def _places(
    rows: SketchRows, name: str, width: int, memory: Memory
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Where the list of each row in a column lies, and its length; numbers take `width` bytes."""
    address, length = (memory.full((len(rows),), 0, dtype) for dtype in (np.uint64, np.int64))
    for batch, begin in zip(rows.batches, rows.begins, strict=False):
        lists, at = batch.column(name), slice(begin, begin + batch.num_rows)
        starts = np.frombuffer(lists.buffers()[1], np.int64)[: len(lists) + 1]
        values = lists.values.buffers()[1]
        address[at] = (values.address if values is not None else 0) + starts[:-1] * width
        length[at] = np.diff(starts)
    return address, length


def _decisions(
    rows: SketchRows, number: int, first: npt.NDArray[np.int64], near: npt.NDArray[np.int64], losses: Losses
) -> pa.RecordBatch:
    """The decisions about one batch of sketches; `first` is the row that stays for each, -1 where it stays itself."""
    batch, at = rows.batches[number], slice(rows.begins[number], rows.begins[number + 1])
    gone = np.flatnonzero(first[at] >= 0)
    losses.add(batch.column("source"), np.ones(batch.num_rows, np.int64), first[at] >= 0)
    return pa.record_batch(
        {
            "row_key": batch.column("row_key").take(pa.array(gone)),
            "reason": pa.array(["semantic_duplicate"] * len(gone), pa.string()),
            "duplicate_of": rows.ids(first[at][gone]),
            "similarity": near[at][gone] / 1000,
        }
    )
