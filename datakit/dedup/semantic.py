"""Rows that say the same in other words: SemDeDup (Abbas et al., 2023), with cosines that are verified.

1. Every row is sketched by itself, as the vectors of its parts (`embedding`), or the one vector of a column of the
   user's. A document is one part. Of a conversation every turn of the user and of the assistant is one; of a preference
   pair prompt, chosen and rejected.
2. k-means on a sample makes cells. By the mean of its parts a row lies in its `probes` nearest ones.
3. Two rows are duplicates if they have as many parts, and the cosine of every part with its counterpart, rounded to
   1e-3, reaches `threshold`: the least similar turn decides. What is no part (roles, system prompts, tool results and
   calls) must be equal. A row is dropped exactly if a row before it in the policy's order is such a duplicate, and
   stays; the first such row is named (`star`).
4. Each cell is a unit of work. It decides as if there were no other rows, and links what it would drop with what stays
   for it. Rows that are linked, also through others, are then decided about together, whatever their cells.

So a pair is missed where its rows share no cell and no chain of links joins them; seldom where both have other rows in
their cell, which are dropped in another. `star` compares a row with all rows that stay while these are few; more are
put into cells of their own, where it can miss a pair, too.

SemDeDup looks at one cell for each row, so it misses pairs that a border divides. It keeps the row that is farthest
from the centroid, and drops rows that are similar to rows that are dropped too; here every dropped row is similar to
a row that stays. Vectors are integers (see `_kernels_semantic`). So sums are exact, and bytes do not depend on
the number of threads; a BLAS would not promise that.
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice, pairwise
from typing import Any, ClassVar, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import OF_TURNS, at_least, option, sha256_file
from datakit.data import compared_fields
from datakit.dedup.comparison import (
    MIN_ALARM_ROWS,
    POLICY,
    CompareOptions,
    Hashes,
    Numbers,
    check_policy,
    exact_ratio,
    policy_order,
    row_columns,
    sums_of,
)
from datakit.dedup.embedding import load_model, model_files, to_vectors
from datakit.dedup.shuffle import (
    Compared,
    Decided,
    Memory,
    Part,
    Parts,
    Rows,
    ShuffleStage,
    Source,
    joined,
    parts_by_number,
    rows_in,
    stream_of,
    summed,
)
from datakit.errors import ConfigError, InputError
from datakit.stage import CompareUnits, Decision, Losses
from datakit.text.words import UNICODE_VERSION, normalize

_FEW_ROWS: Final = 8192  # so many are one cell, and beside so many that stay a row is compared with all of them
_CELL_ROWS: Final = 1024  # of more rows, cells have at least so many on average
_MOST_CELLS: Final = 1024  # that are learned in the driver, whatever the number of rows
_SAMPLE_ROWS: Final = 64  # for each cell, of which k-means learns
_ROUNDS: Final = 10  # of k-means
_SEED: Final = 1  # of the sample that k-means begins with
_BLOCK_ROWS: Final = 1 << 14  # rows after which memory may be released
_TASK_ROWS: Final = 256
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)  # odd
_CONTEXT_ROLES: Final = ("system", "developer", "tool", "function")

VECTORS = pa.large_list(pa.field("item", pa.int16(), nullable=False))


@dataclass(frozen=True, kw_only=True, slots=True)
class SemanticConfig(CompareOptions):
    """Rows that say the same in other words: which model compares them, and how similar they must be."""

    model: str = option("", "folder of a static model (sentence-transformers, model2vec); none: wordllama's", path=True)
    column: str = option("", "in place of a model: a column with a vector for each row, a list of numbers")
    threshold: float = option(0.9, "least cosine of the vectors of duplicates, in every part; it depends on the model")
    on: Literal["all", "prompt", "answer"] = option(
        "all", "the part of a conversation or preference pair to compare", acts_with=OF_TURNS
    )
    policy: str = option("first", POLICY)
    cells: int = option(
        0,
        "cells of k-means; 0: one for 8,192 rows, else at most one for 1,024 rows, their root, and 1,024",
        advanced=True,
    )
    probes: int = option(
        2, "cells that a row is compared in; more find more pairs across borders, and take longer", advanced=True
    )

    def __post_init__(self) -> None:
        CompareOptions.__post_init__(self)
        at_least(self, 1, "probes")
        at_least(self, 0, "cells")
        exact_ratio(self.threshold)
        check_policy(self)
        if self.model and self.column:
            raise ConfigError(f"model is {self.model!r} and column {self.column!r}: vectors come from one of them")


_CHECK = (
    "Check with `datakit pairs --stage dedup_semantic` whether these rows say the same, or only speak of the same; "
    "then raise threshold or name a better model. If they are duplicates, raise max_loss"
)


# Sketches.


def parts_of(batch: pa.RecordBatch, config: SemanticConfig) -> tuple[list[list[str]], Hashes]:
    """(the parts of each row that are compared by meaning, a hash of what must be equal besides)."""
    if "messages" not in batch.schema.names:
        fields = compared_fields(batch, config.on)
        texts = zip(*(column.to_pylist() for column in fields), strict=True)
        return [list(row) for row in texts], np.zeros(len(batch), np.uint64)
    tools = batch.column("tools").to_pylist() if "tools" in batch.schema.names else [None] * len(batch)
    rows, contexts = list[list[str]](), list[list[str | None]]()
    for turns, schemas in zip(batch.column("messages").to_pylist(), tools, strict=True):
        parts, context = list[str](), [schemas]
        for turn in turns or ():
            said = "\n\n".join(filter(None, (turn.get("reasoning_content"), turn.get("content"))))
            if turn["role"] in _CONTEXT_ROLES:
                context += [turn["role"], said]
            elif config.on == "all" or (turn["role"] == "assistant") == (config.on == "answer"):
                parts.append(said)
                context += [turn["role"], turn.get("tool_calls")]
        rows.append(parts)
        contexts.append(context)
    normal = iter(normalize(pa.array(chain.from_iterable(contexts), pa.string())).to_pylist())
    return rows, np.array([_hash_of(islice(normal, len(context))) for context in contexts], np.uint64)


def _hash_of(texts: Iterable[str]) -> int:
    """64 bits of some texts, each with its length before it. (Rows with equal ones must also be similar.)"""
    made = hashlib.blake2b(digest_size=8)
    for data in map(str.encode, texts):
        made.update(len(data).to_bytes(8, "little") + data)
    return int.from_bytes(made.digest(), "little")


def _column_of_vectors(batch: pa.RecordBatch, name: str) -> npt.NDArray[np.int16]:
    """The user's vectors; zero for a row without one.

    Raises:
        InputError: there is no such column of numbers, a vector has a value that is no finite number, or vectors have
            different lengths.
    """
    kind = batch.schema.field(name).type if name in batch.schema.names else pa.null()
    listed = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if not listed or not (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)):
        raise InputError(f"dedup_semantic: the column {name!r} must hold a list of numbers in each row; it is {kind}")
    column = batch.column(name)
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    widths = np.unique(lengths[lengths > 0])
    if len(widths) > 1:
        raise InputError(f"dedup_semantic: vectors of the column {name!r} have {widths[0]} and {widths[1]} numbers")
    numbers = column.flatten().cast(pa.float64()).to_numpy(zero_copy_only=False)  # NaN for null
    made = np.zeros((len(batch), int(widths[0]) if len(widths) else 0))
    made[lengths > 0] = numbers.reshape(-1, made.shape[1] or 1)
    if len(strange := np.flatnonzero(~np.isfinite(made).all(axis=1))):
        where = f"dedup_semantic: the row {batch.column('id')[int(strange[0])].as_py()!r}"
        raise InputError(
            f"{where}: expected finite numbers in the column {name!r}; found null, NaN or infinity among them. Give it "
            "null instead of a vector: it then stays, and is not compared"
        )
    return to_vectors(made)


# The comparison of all rows.


class SemanticRows(NamedTuple):
    """Rows in the policy's order. vectors int16 (parts, width): those of row i are `vectors[starts[i]:starts[i + 1]]`;
    starts int64 (rows + 1,); context uint64 (rows,); threshold: in thousandths.
    """

    vectors: npt.NDArray[np.int16]
    starts: Numbers
    context: Hashes
    threshold: int


def number_of_cells(rows: int, asked: int) -> int:
    """How many cells so many rows are put into; `asked` is `SemanticConfig.cells`."""
    if asked:
        return max(min(asked, rows), 1)
    return 1 if rows <= _FEW_ROWS else min(rows // _CELL_ROWS, math.isqrt(rows), _MOST_CELLS)


def star(rows: SemanticRows, probes: int, memory: Memory) -> tuple[Numbers, Numbers, int]:
    """Who stays of rows in the policy's order: a row is dropped exactly if an earlier row that stays is a duplicate.

    Once more than `_FEW_ROWS` rows stay, these and the following ones are put into cells, and a row is compared with
    those that stay in its `probes` nearest cells. It takes time for the rows times those that they are compared with.

    (int64 (rows,), the row that stays for each, -1 where it stays; int64 (rows,), the similarity in thousandths; how
    many comparisons that took)
    """
    from datakit.dedup import _kernels_semantic as kernels

    count, compared = len(rows.context), 0
    survivor, shared = memory.full((count,), -1, np.int64), memory.full((count,), 0, np.int64)
    cells, kept = (memory.full(shape, 0, np.int32) for shape in ((count, 1), (count,)))
    begins, ends = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for begin, end in _ranges(0, count, _BLOCK_ROWS):
        compared += kernels.decide(rows, cells, begins, ends, kept, begin, end, survivor, shared)
        memory.release()
        if len(begins) == 1 and ends[0] > _FEW_ROWS and end < count:
            stay, means = kept[: ends[0]].copy(), _means(rows, memory)
            centroids = _centroids(memory.take(means, stay), number_of_cells(len(stay), 0), memory)
            cells = _nearest(means, centroids, probes, memory)
            sizes, home = np.bincount(cells[:, 0], minlength=len(centroids)), cells[stay, 0]
            begins, filled = np.cumsum(sizes) - sizes, np.bincount(home, minlength=len(centroids))
            ends = begins + filled
            places = np.repeat(begins - (np.cumsum(filled) - filled), filled) + np.arange(len(stay))
            kept[places] = stay[np.argsort(home, kind="stable")]
    return survivor, shared, compared


def _ranges(begin: int, end: int, size: int) -> list[tuple[int, int]]:
    return [(low, min(low + size, end)) for low in range(begin, end, size)]


def _means(rows: SemanticRows, memory: Memory) -> npt.NDArray[np.int16]:
    """The mean of the parts of each row: int16 (rows, width)."""
    from datakit.dedup import _kernels_semantic as kernels

    count = len(rows.context)
    if len(rows.vectors) == count:  # each has one part
        return rows.vectors
    means = memory.full((count, rows.vectors.shape[1]), 0, np.int16)
    for begin, end in _ranges(0, count, _BLOCK_ROWS):
        starts = rows.starts[begin : end + 1]
        sums = np.zeros((end - begin, means.shape[1]))
        of = np.repeat(np.arange(end - begin), np.diff(starts))
        kernels.sum_vectors(rows.vectors[starts[0] : starts[-1]], of, sums)
        kernels.round_vectors(sums, means[begin:end])
        memory.release()
    return means


def _nearest(
    means: npt.NDArray[np.int16], centroids: npt.NDArray[np.int16], probes: int, memory: Memory, spread: Any = map
) -> npt.NDArray[np.int32]:
    """The nearest cells of each row, the nearest first: int32 (rows, probes). `spread` is `map`, or a pool's."""
    from datakit.dedup import _kernels_semantic as kernels

    found = memory.full((len(means), min(probes, len(centroids))), 0, np.int32)
    if len(centroids) > 1:
        for block in _ranges(0, len(means), _BLOCK_ROWS):
            parts = _ranges(*block, _TASK_ROWS)
            list(spread(lambda part: kernels.nearest_cells(means, centroids, *part, found), parts))
            memory.release()
    return found


def _centroids(means: npt.NDArray[np.int16], cells: int, memory: Memory, spread: Any = map) -> npt.NDArray[np.int16]:
    """Spherical k-means (Dhillon and Modha, 2001) on a sample: int16 (cells, width), of length 32767; fewer where some
    are equal.

    Assignments and sums are those of integers, so the order of the rows within a sum does not matter.
    """
    from datakit.dedup import _kernels_semantic as kernels

    rng = np.random.default_rng(_SEED)
    chosen = np.sort(rng.choice(len(means), min(len(means), _SAMPLE_ROWS * cells), replace=False))
    sample = memory.take(means, chosen)
    centroids = sample[np.sort(rng.choice(len(sample), min(cells, len(sample)), replace=False))]
    for _ in range(_ROUNDS):
        home = _nearest(sample, centroids, 1, memory, spread)[:, 0].astype(np.int64)
        sums, fresh = np.zeros(centroids.shape), centroids.copy()  # an empty cell keeps its centroid
        kernels.sum_vectors(sample, home, sums)
        kernels.round_vectors(sums, fresh)
        if np.array_equal(fresh, centroids):
            break
        centroids = fresh
    return np.unique(centroids, axis=0)


# Work units: a sample of the rows, the cells of each row, the links in each cell.


def sample_unit(share: float, source: Source, memory: Memory, _: dict[str, Any]) -> Parts:
    """The sketches of a share of one file's rows: part 0 is an Arrow IPC stream, with the rows' numbers (`row`). A hash
    of its key says whether a row is one of them."""
    found, begin = list[pa.RecordBatch](), source.first
    for batch in source.batches(memory):
        mixed = batch.column("row_key").to_numpy() * _SPREAD
        mixed = (mixed ^ mixed >> np.uint64(32)) * _SPREAD
        chosen = np.flatnonzero(mixed >> np.uint64(11) < share * 2**53)
        found.append(batch.take(pa.array(chosen)).append_column("row", pa.array(begin + chosen)))
        begin += batch.num_rows
        memory.release()
    if found:
        yield 0, stream_of(found)


def place_unit(stage: "DedupSemantic", source: Source, memory: Memory, record: dict[str, Any]) -> Parts:
    """The cells of one sketch file's rows: part 0 holds numbers of rows in the file, ascending, then the cells of each,
    uint32. Rows without vectors have none."""
    begin, totals = 0, defaultdict[str, Counter[str]](Counter)
    numbers, cells = list[Any](), list[Any]()
    for batch in source.batches(memory):
        every = np.arange(batch.num_rows)
        rows, order = stage.rows(Rows([batch], np.array([0, batch.num_rows]), every), every, memory)
        nearest = _nearest(_means(rows, memory), stage.centroids, stage.config.probes, memory)
        numbers.append(np.repeat(begin + order, nearest.shape[1]))
        cells.append(nearest.ravel())
        stage.counted(batch, totals)
        begin += batch.num_rows
        memory.release()
    yield 0, np.concatenate([np.empty(0), *numbers, *cells]).astype(np.uint32).view(np.uint8)
    record["sums"] = totals


def cell_unit(stage: "DedupSemantic", parts: Sequence[Part], memory: Memory, record: dict[str, Any]) -> Parts:
    """The links of one cell, as `joined` gives them."""
    rows = rows_in(parts, memory)
    survivor, _, compared = stage.stars(rows, memory)
    dropped = np.flatnonzero(survivor >= 0)
    links = np.column_stack((rows.numbers[dropped], rows.numbers[survivor[dropped]]))
    yield 0, joined(links).ravel().view(np.uint8)
    record["sums"] = {"facts": {"cells": 1, "pairs_compared": compared}}


# The stage.


@dataclass(frozen=True)
class DedupSemantic(ShuffleStage):
    """Drops every row that says in other words what a row before it in the policy's order says (`semantic_duplicate`).

    `duplicate_of` names the row that stays, `similarity` is the least cosine of the parts. Rows that the model cannot
    read stay; the manifest counts them (`rows_not_read`).
    """

    config: SemanticConfig = field(default_factory=SemanticConfig)
    centroids: Any = field(default=None, compare=False)
    """int16 (cells, width): the middles of the cells, once rows are compared."""

    name: ClassVar[str] = "dedup_semantic"
    help: ClassVar[str] = (
        "A model of embeddings compares the rows; it cannot tell everything apart: see docs/dedup_levels.md."
    )
    Config: ClassVar[type] = SemanticConfig

    def resources(self) -> dict[str, Any]:
        """The files of the model and their SHA-256.

        Raises:
            MissingExtraError: the package of the default model is not installed.
            ModelError: the folder is missing, or has no model of a known kind.
        """
        files = {} if self.config.column else model_files(self.config.model)
        found = {name: {"file": path.name, "sha256": sha256_file(path)} for name, path in files.items()}
        return {"model": found, "unicode": UNICODE_VERSION}

    def open(self) -> None:
        """Load the model."""
        if not self.config.column:
            load_model(self.config.model)

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The `row_columns`, the hash of its `context`, the number of its `parts` and their `vectors`.

        There are none where a row has no text, or text that the model cannot read.
        """
        texts, context = parts_of(batch, self.config)
        if self.config.column:
            vectors = _column_of_vectors(batch, self.config.column)
            read, counts = np.ones(len(batch), np.bool_), np.ones(len(batch), np.int64)
        else:
            vectors, read = load_model(self.config.model).embed(list(chain.from_iterable(texts)))
            counts = np.array(list(map(len, texts)), np.int64)
        row = np.repeat(np.arange(len(batch)), counts)
        silent = ~vectors.any(axis=1)
        compared = np.bincount(row[~silent], minlength=len(batch)) > 0
        compared &= np.bincount(row[~read], minlength=len(batch)) == 0
        vectors[silent, :1] = 32767  # a part without text has a vector of its own, which is like no other
        wanted = compared[row]
        ends = np.cumsum([0, *np.where(compared, counts * vectors.shape[1], 0)])
        lists = pa.LargeListArray.from_arrays(pa.array(ends), pa.array(vectors[wanted].ravel()), VECTORS)
        return pa.record_batch(
            row_columns(batch, self.config.policy)
            | {"context": pa.array(context), "parts": pa.array(counts * compared, pa.uint64()), "vectors": lists}
        )

    def totals(self, batch: pa.RecordBatch) -> dict[str, dict[str, int]]:
        """Rows by source, and those that are not compared."""
        unread = int((batch.column("parts").to_numpy() == 0).sum())
        sources = sums_of(batch.column("source"), np.ones(batch.num_rows))
        return {"source": sources, "unread": {"rows": unread}}

    def links(self, sources: Sequence[Source], work: CompareUnits) -> tuple[list[dict[str, Any]], list[Part]]:
        """The links of all cells, which are work units."""
        count, middles = sum(s.file.rows for s in sources), np.zeros((1, 0), np.int16)
        cells = number_of_cells(count, self.config.cells)
        if cells > 1:
            share = _SAMPLE_ROWS * cells / count
            samples = self.units(work, "sample", partial(sample_unit, share), sources)
            own = Memory((self.config.memory_mb << 20) // work.share, work.data)
            found = rows_in([part for _, part in parts_by_number(samples).get(0, [])], own)
            rows, read = self.rows(found, np.arange(len(found.numbers)), own)
            if len(read):
                with ThreadPoolExecutor(work.workers) as pool:
                    middles = _centroids(_means(rows, own), cells, own, pool.map)
        stage = replace(self, centroids=middles)
        places = self.units(work, "place", partial(place_unit, stage), sources)
        self.check_totals(summed(places))
        wanted = [(sources[number], part) for number, part in parts_by_number(places).get(0, [])]
        linked = self.units(work, "cell", partial(cell_unit, stage), self.gathered(work, "collect", wanted))
        return [*places, *linked], [part for _, part in parts_by_number(linked).get(0, [])]

    def stars(self, found: Rows, memory: Memory) -> tuple[Numbers, Numbers, int]:
        """For rows that are decided about together, what `star` says, by their numbers."""
        order = policy_order(found, self.config.policy, memory)
        rows, order = self.rows(found, order, memory)
        survivor, similarity, compared = star(rows, self.config.probes, memory)
        first, near = np.full(len(found.numbers), -1), np.zeros(len(found.numbers), np.int64)
        dropped = survivor >= 0
        first[order[dropped]] = order[survivor[dropped]]
        near[order[dropped]] = similarity[dropped]
        return first, near, compared

    def decide_rows(self, rows: Rows, memory: Memory) -> Decided:
        """The decisions about linked rows."""
        first, near, _ = self.stars(rows, memory)
        gone = np.flatnonzero(first >= 0)
        decisions = {
            "row_key": rows.column("row_key", memory)[gone],
            "reason": pa.array(["semantic_duplicate"] * len(gone), pa.string()),
            "duplicate_of": rows.ids(first[gone]),
            "similarity": near[gone] / 1000,
        }
        counts = {"lost": sums_of(rows.values("source"), first >= 0)}
        return Decided([pa.record_batch(decisions)], np.bincount(first[gone], minlength=len(rows.numbers)), counts)

    def summarize(self, compared: Compared) -> dict[str, Any]:
        """Counts and alarms."""
        sums, survivors = compared.sums, compared.survivors
        unread, rows = sums["unread"]["rows"], sums["rows"]["all"]
        losses = Losses("rows", sums["source"], sums["lost"])
        alarms = losses.alarms(self.config.max_loss, MIN_ALARM_ROWS, _CHECK, survivors)
        if rows >= MIN_ALARM_ROWS and unread > self.config.max_loss * rows:
            alarms.insert(0, (
                f"{unread} of {rows} rows are not compared: they have no text, or the model does not "
                "know a quarter of their tokens. Name a model for their languages (model)"
            ))  # fmt: skip
        return {name: sums["facts"][name] for name in ("cells", "pairs_compared")} | {
            "rows_not_read": unread,
            "largest_cluster_rows": survivors[0][1] + 1 if survivors else int(rows > 0),
            "alarms": alarms,
        }

    def rows(self, found: Rows, order: Numbers, memory: Memory) -> tuple[SemanticRows, Numbers]:
        """(the rows that have vectors, in an order; their numbers)."""
        parts = found.column("parts", memory).astype(np.int64)
        lengths = [pc.list_value_length(batch.column("vectors")).to_numpy() for batch in found.batches]
        widths = np.concatenate([[0], *lengths])[1:][parts > 0] // parts[parts > 0]
        if self.centroids is not None and len(self.centroids) > 1:
            widths = np.append(widths, self.centroids.shape[1])
        widths = np.unique(widths)
        if len(widths) > 1:
            raise InputError(f"dedup_semantic: vectors of the column {self.config.column!r} differ in their lengths")
        order = order[parts[order] > 0]
        starts = memory.sums(parts[order])
        vectors = memory.full((int(starts[-1]), int(widths.max(initial=1))), 0, np.int16)
        begin_of = np.zeros(len(found.numbers), np.int64)
        begin_of[order] = starts[:-1]
        for batch, (begin, end) in zip(found.batches, pairwise(found.begins), strict=True):
            own = memory.sums(parts[begin:end])
            at = np.arange(own[-1]) + np.repeat(begin_of[begin:end] - own[:-1], parts[begin:end])
            vectors[at] = batch.column("vectors").flatten().to_numpy().reshape(-1, vectors.shape[1])
            memory.release()
        context = memory.take(found.column("context", memory), order)
        return SemanticRows(vectors, starts, context, round(self.config.threshold * 1000)), order

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
