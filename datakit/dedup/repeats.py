"""Lines, paragraphs and spans of sentences that occur again, over all rows: every occurrence but the first is cut.

`dedup_lines` (CCNet: Wenzek et al. 2020) compares lines or paragraphs. CCNet compares hashes of lines in lower case
without punctuation and accents, with 0 for every digit. Ours are compared by their words: accents count, and so do
digits unless `digits = "zero"`. CCNet looks within chunks of its data; here a line stays in the first kept row of all
that has it, so that nothing disappears altogether.

`dedup_spans` (C4: Raffel et al. 2020, section 2.2) compares runs of sentences. The paper discards "all but one of any
three-sentence span occurring more than once in the data set"; TFDS does so line by line, datatrove for every three
consecutive sentences. Ours are every three consecutive sentences of one text, compared by their words. A span is cut
only where it can still be read whole, in a kept row or earlier in its own.

Rows are processed in the order of their keys, after those of earlier runs, which keep what they have. A span is cut
where an earlier kept row has it, or where the row itself had it before; so what is cut can always be read in the row
that is named. A row that keeps too little is dropped whole. It then owns nothing: what it had first stays in the next
row that has it.

Hashes have 64 bits: among 10^9 different spans, the probability that any two have the same hash is 0.03. On the disk a
unit takes 12 bytes in the sketches, 12 more while the rows that share one are sought (`sharing`), and in these rows 20
to 28 more while they are decided about; in memory, 8 for each different span that is repeated.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option, shares
from datakit.data import row_chunks, string_array, string_buffers
from datakit.dedup.exact import Memory, in_range, parts
from datakit.dedup.index import AllRows, index_rows
from datakit.dedup.sharing import SharedRows, SharingStage
from datakit.dedup.stage import (
    IndexedStage,
    at_least,
    frequent_survivors,
    source_column,
    text_bytes,
    write_decisions,
)
from datakit.errors import UsageError
from datakit.stage import Decision, Losses
from datakit.text.words import BREAKS, QUOTES, TERMINALS, character_table

Unit = Literal["line", "paragraph", "sentence"]

CUTS = "cuts"
"""The role of the tables that record what was cut."""

MIN_ALARM_WORDS: Final = 100
"""Fewer words, of all rows or a source, raise no alarm."""

CHECK_CUTS: Final = (
    "Check with `datakit explain` what was cut out of such rows, and with `datakit pairs` which rows were dropped. If "
    "that text should stay, raise min_words or leave the stage out; if not, raise max_loss"
)

_CHUNK_BYTES: Final = 1 << 20
_SORT_BYTES: Final = 64  # per span while its range is looked through: place, hash, order, number, slots of the table
_PART: Final = 1 << 10  # spans whose hashes go through one hash table
_UNIT_BYTES: Final = {"line": 40, "paragraph": 200, "sentence": 60}  # of English prose and documentation; a low guess
_DISK_BYTES: Final = 52  # per unit: hash, words; hash and row again; in rows that share one both again, group, place
_ROW_BYTES: Final = 60  # of a sketch besides its units


@dataclass(frozen=True, kw_only=True, slots=True)
class CuttingConfig:
    """What all stages that cut pieces out of texts have."""

    min_words_left: int = option(50, "drop a row that was cut and keeps fewer words than this")
    max_loss: float = option(0.3, "raise an alarm where all rows, or those of a source, lose more of their words")
    memory_mb: int = option(
        1024, "memory for comparing all rows; larger arrays go to the disk, with the same result", result=False
    )
    save_index: bool = option(False, "write the index that a later run needs for --against")
    against: str = option(
        "", "also remove what rows have that an earlier run of the stage kept: its manifest, run with save_index",
        result=False,
    )  # fmt: skip

    def __post_init__(self) -> None:
        at_least(0, self, "min_words_left")
        at_least(1, self, "memory_mb")
        shares(self, "max_loss")


@dataclass(frozen=True, kw_only=True, slots=True)
class LinesConfig(CuttingConfig):
    """Lines or paragraphs that occur in an earlier row, or earlier in their row, are cut out of the text."""

    unit: Literal["line", "paragraph"] = option("line", "what is compared; a paragraph ends at a blank line")
    min_words: int = option(5, "do not compare units of fewer words: headings, brackets, code that all files share")
    digits: Literal["as_written", "zero"] = option("as_written", "zero: units that differ in digits alone are the same")

    def __post_init__(self) -> None:
        CuttingConfig.__post_init__(self)
        at_least(1, self, "min_words")


@dataclass(frozen=True, kw_only=True, slots=True)
class SpansConfig(CuttingConfig):
    """Runs of sentences that occur in an earlier row, or earlier in their row, are cut out of the text."""

    span_sentences: int = option(3, "consecutive sentences that are compared as one")
    min_words: int = option(10, "do not compare spans of fewer words")
    digits: Literal["as_written", "zero"] = option("as_written", "zero: spans that differ in digits alone are the same")

    def __post_init__(self) -> None:
        CuttingConfig.__post_init__(self)
        at_least(1, self, "span_sentences", "min_words")


# Units: lines, paragraphs and sentences. They are compared by their words, as documents are (`text.words`): NFC,
# case-folded, without punctuation and white space. A line ends where `str.splitlines` ends one, a paragraph at a blank
# line, a sentence at its mark (of any script, with the quotes and brackets after it) and at the end of its line. A full
# stop ends no sentence after an initial or an abbreviation ("Mr. J. R. Smith", "U.S. Rev. Stat. § 12"). Marks of
# scripts written without spaces need no space after them. Thai and Lao mark no end of a sentence: there it is a line.

_MODES: Final = {"line": 0, "paragraph": 1, "sentence": 2}
_BRACKETS: Final = ")]}\u300b\u300d\u300f\u3011\uff09\uff3d"
_OPENERS: Final = "“‘"  # they close in other languages
_ALONE: Final = "\u104a\u104b\u17d4\u17d5\u3002\uff01\uff1f\uff61"


@lru_cache(maxsize=1)
def flags() -> npt.NDArray[np.uint8]:
    """uint8[0x110000]: what each code point is to the kernels. Read-only."""
    from datakit.dedup import _kernels_repeats as kernels

    table = np.zeros(0x110000, np.uint8)
    table[[c for c in range(0x3001) if chr(c).isspace()]] = kernels.SPACE
    # letters that no normal form changes, and the Kelvin sign, which NFC makes a K: units do not depend on the form
    table[[*range(0x41, 0x5B), *range(0x61, 0x7B), 0x212A]] |= np.uint8(kernels.LETTER)
    marks = {
        kernels.BREAK: BREAKS,
        kernels.TERMINAL: TERMINALS,
        kernels.CLOSER: QUOTES + _BRACKETS,
        kernels.OPENER: _OPENERS,
        kernels.ALONE: _ALONE,
    }
    for flag, chars in marks.items():
        table[[ord(c) for c in chars]] |= np.uint8(flag)
    table.setflags(write=False)
    return table


# Abbreviations whose full stop ends no sentence: titles, forms of address, courts and statutes, months.
_GOES_ON: Final = (
    "mr mrs ms messrs mme mlle dr prof rev hon gen col maj capt cmdr lt sgt cpl adm sen rep gov pres supt st ste mt ft "
    "vs cf eg ie stat cir ct supp app cong const dept univ assn bros esq ph jan feb mar apr jun jul aug "
    "sep sept oct nov dec sr sra srta dra hr fr frau herr dipl bzw ca evtl ggf vgl mgr ing sig dott"
)
# And those that end none before a number or a small letter.
_MAY_GO_ON: Final = (
    "etc usw viz approx inc ltd corp co no nos nr art arts sec secs para paras p pp fig figs vol vols ch chap eq ex pt "
    "col ver num"
)


@lru_cache(maxsize=1)
def abbreviations() -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """(words of up to eight letters, the last letter in the lowest byte, ascending; what a full stop means after each).

    1: the sentence goes on; 2: it does before a digit or a small letter.
    """
    found = dict.fromkeys(_MAY_GO_ON.split(), 2) | dict.fromkeys(_GOES_ON.split(), 1)
    packed = {int.from_bytes(bytes(ord(c) & 255 | 0x20 for c in word)): kind for word, kind in found.items()}
    words = sorted(packed)
    return np.array(words, np.uint64), np.array([packed[word] for word in words], np.int64)


class Units(NamedTuple):
    """Bytes of a string array's buffer that the units fill: unit u is `data[starts[u]:ends[u]]`.

    int64 each; those of row i are numbered from `row_starts[i]` to `row_starts[i + 1]`.
    """

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    row_starts: npt.NDArray[np.int64]


def find_units(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], unit: Unit) -> Units:
    """The units of texts, given as `string_buffers` gives them."""
    from datakit.dedup import _kernels_repeats as kernels

    most = (offsets[-1] - offsets[0]) // 2 + len(offsets)
    starts, ends, row_starts = np.empty(most, np.int64), np.empty(most, np.int64), np.empty_like(offsets)
    kernels.find_units(data, offsets, flags(), abbreviations(), _MODES[unit], starts, ends, row_starts)
    return Units(starts[: row_starts[-1]].copy(), ends[: row_starts[-1]].copy(), row_starts)


def words_of(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], units: Units
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The hashes of the words of all units, and where each unit's begin (units + 1)."""
    from datakit.text.words import hash_words_in

    # between two units there is only white space, which has no words
    return hash_words_in(data, np.append(units.starts, offsets[-1]))


class Spans(NamedTuple):
    """For each unit: the hash of the span that begins with it (uint64; NONE where it is not compared), its words
    (uint32). Those of row i are `[row_starts[i], row_starts[i + 1])`.
    """

    hashes: npt.NDArray[np.uint64]
    words: npt.NDArray[np.uint32]
    row_starts: npt.NDArray[np.int64]


def hash_spans(texts: pa.Array, unit: Unit, span: int, min_words: int, digits: str) -> Spans:
    """Hash every `span` consecutive units of each text that have at least `min_words` words together.

    With `digits` "zero" every decimal digit counts as 0.
    """
    from datakit.dedup import _kernels_repeats as kernels
    from datakit.text.words import compose

    texts = compose(texts)
    if digits == "zero":
        texts = pc.replace_substring_regex(texts, r"\p{Nd}", "0")
    data, offsets = string_buffers(texts)
    hashes, counts, sizes = [np.empty(0, np.uint64)], [np.empty(0, np.uint32)], [np.empty(0, np.int64)]
    for begin, end in row_chunks(offsets, _CHUNK_BYTES):
        units = find_units(data, offsets[begin : end + 1], unit)
        words, word_starts = words_of(data, offsets[begin : end + 1], units)
        of_unit, in_unit = np.empty(len(units.starts), np.uint64), np.empty(len(units.starts), np.uint32)
        kernels.hash_units(words, word_starts, of_unit, in_unit)
        of_span = np.empty_like(of_unit)
        kernels.hash_spans(of_unit, in_unit, units.row_starts, span, min_words, of_span)
        hashes.append(of_span)
        counts.append(in_unit)
        sizes.append(np.diff(units.row_starts))
    row_starts = np.concatenate(([0], np.cumsum(np.concatenate(sizes))))
    return Spans(np.concatenate(hashes), np.concatenate(counts), row_starts)


# Columns of sketches that are lists of numbers.


def list_column(numbers: npt.NDArray[Any], begins: npt.NDArray[np.int64]) -> pa.Array:
    """The large_list array whose row i is `numbers[begins[i]:begins[i + 1]]`."""
    kind = pa.large_list(pa.field("item", pa.from_numpy_dtype(numbers.dtype), nullable=False))
    return pa.LargeListArray.from_arrays(pa.array(begins), pa.array(numbers), type=kind)


def list_values(batch: pa.RecordBatch, name: str) -> npt.NDArray[Any]:
    """All values of a column of lists of numbers, without a copy."""
    return np.asarray(batch.column(name).flatten().to_numpy())


def list_starts(batch: pa.RecordBatch, name: str) -> npt.NDArray[np.int64]:
    """Where the list of each row begins in `list_values` (rows + 1)."""
    offsets: npt.NDArray[np.int64] = batch.column(name).offsets.to_numpy()
    return np.asarray(offsets - offsets[0], np.int64)


def sums_of_lists(batch: pa.RecordBatch, name: str) -> npt.NDArray[np.int64]:
    """The sum of the list of each row."""
    until = np.concatenate(([0], np.cumsum(list_values(batch, name), dtype=np.int64)))
    return np.asarray(np.diff(until[list_starts(batch, name)]))


# Repeats: from the hashes of all rows to what is cut where.


@dataclass(frozen=True, slots=True)
class Repeats:
    """`found` (units): the number of the row that a cut unit stays in, -1 where it is not cut. `dropped` bool (rows,).

    `words` uint32 (units,). The units of row i are `[row_starts[i], row_starts[i + 1])`.
    """

    row_starts: npt.NDArray[np.int64]
    words: npt.NDArray[np.uint32]
    found: npt.NDArray[Any]
    dropped: npt.NDArray[np.bool_]
    facts: dict[str, Any]


def find_repeats(rows: AllRows, span: int, min_words_left: int, memory: Memory, workers: int) -> Repeats:
    """Compare the sketches of all rows, which have the columns `hashes` (of spans) and `words` (of units).

    The rows of indexes come first. They only have the `hashes` of the spans that are whole in them.
    """
    from datakit.dedup import _kernels_repeats as kernels

    units = [list_values(batch, "hashes") for batch in rows.batches]
    begins = np.cumsum([0, *map(len, units)])
    row_starts = memory.full((len(rows) + 1,), begins[-1], np.int64)
    words = memory.full((begins[-1],), 0, np.uint32)
    for batch, row, begin, end in zip(rows.batches, rows.begins, begins, begins[1:], strict=False):
        row_starts[row : row + batch.num_rows + 1] = begin + list_starts(batch, "hashes")
        if row >= rows.old:
            words[begin:end] = list_values(batch, "words")
    groups, count, _ = groups_of_equals(units, begins, memory, workers)
    owner = memory.full((count,), -1, number_type(len(rows)))
    found = memory.full((begins[-1],), -1, number_type(len(rows)))
    dropped = np.zeros(len(rows), np.bool_)
    kernels.settle(row_starts, groups, rows.live, np.arange(rows.old), owner)
    kernels.choose(row_starts, words, groups, span, min_words_left, rows.old, owner, found, dropped)
    return Repeats(row_starts, words, found, dropped, {"spans_repeated": count})


def number_type(count: int) -> Any:
    """The integer type that holds numbers below `count`."""
    return np.int32 if count < 1 << 31 else np.int64


def groups_of_equals(
    units: list[npt.NDArray[np.uint64]], begins: npt.NDArray[np.int64], memory: Memory, workers: int
) -> tuple[npt.NDArray[Any], int, int]:
    """(for each span the number of its group of equal spans, -1 where it has no equal; groups; spans compared).

    By ranges of the hashes, each of which is one task.
    """
    total = int(begins[-1])
    groups = memory.full((total,), -1, number_type(total))
    ranges = max(
        memory.ranges(total * workers * _SORT_BYTES), 1 if total < 1 << 16 else 1 << (workers - 1).bit_length()
    )
    count = compared = 0
    with ThreadPoolExecutor(workers) as pool:
        found = _ahead(pool, lambda n: _equals_in_range(units, begins, n, ranges), ranges, workers)
        for places, numbers, repeated, spans in found:
            groups[places] = count + numbers
            count += repeated
            compared += spans
    return groups, count, compared


def whole_runs(
    cut: npt.NDArray[np.bool_],
    unit_starts: npt.NDArray[np.int64],
    run_starts: npt.NDArray[np.int64],
    size: int,
) -> npt.NDArray[np.bool_]:
    """Which runs of `size` consecutive units have no cut unit; run j of a row begins with its unit j.

    Those of row i are numbered from `run_starts[i]` on, its units from `unit_starts[i]` on. A run at the end of its row
    ends there.
    """
    before = np.concatenate(([0], np.cumsum(cut)))
    row_of = np.repeat(np.arange(len(run_starts) - 1), np.diff(run_starts))
    first = unit_starts[row_of] + np.arange(len(row_of)) - run_starts[row_of]
    ends = unit_starts[row_of + 1]
    first = np.minimum(first, ends)  # the n-grams of several fields may be more than the words
    whole: npt.NDArray[np.bool_] = before[np.minimum(first + size, ends)] == before[first]
    return whole


def with_values(batch: pa.RecordBatch, name: str, chosen: npt.NDArray[np.bool_]) -> pa.RecordBatch:
    """The batch with those values of a column of lists of numbers that are chosen."""
    before = np.concatenate(([0], np.cumsum(chosen)))
    made = list_column(list_values(batch, name)[chosen], before[list_starts(batch, name)])
    return batch.set_column(batch.schema.get_field_index(name), name, made)


def _ahead(pool: ThreadPoolExecutor, work: Any, tasks: int, ahead: int) -> Iterator[Any]:
    """Results in order, with at most `ahead` tasks started at a time: each holds memory until it is taken."""
    waiting = [pool.submit(work, n) for n in range(min(ahead, tasks))]
    for n in range(tasks):
        yield waiting.pop(0).result()
        if n + ahead < tasks:
            waiting.append(pool.submit(work, n + ahead))


def _equals_in_range(
    units: list[npt.NDArray[np.uint64]], begins: npt.NDArray[np.int64], part: int, ranges: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int, int]:
    """(places of spans that have an equal, the number of each one's group, how many groups, how many spans)."""
    from datakit.dedup import _kernels_repeats as kernels
    from datakit.dedup._kernels_minhash import NONE

    chosen = [in_range(hashes, part, ranges) for hashes in units]
    chosen = [rows[hashes[rows] != NONE] for rows, hashes in zip(chosen, units, strict=True)]
    empty = np.empty(0, np.int64)
    places = np.concatenate([empty, *(begin + rows for begin, rows in zip(begins, chosen, strict=False))])
    hashes = np.concatenate([empty.view(np.uint64), *(h[rows] for h, rows in zip(units, chosen, strict=True))])
    bits = max(len(hashes) // _PART, 1).bit_length()
    starts, order = np.empty((1 << bits) + 1, np.int64), np.empty(len(hashes), number_type(len(hashes)))
    numbers, table = np.empty(len(hashes), np.int64), np.empty(4 * len(hashes) + 4, np.int64)
    count = kernels.number_equals(hashes, bits, starts, order, table, numbers)
    repeated = numbers >= 0
    return places[repeated], numbers[repeated], count, len(hashes)


# Cutting: what is decided about rows, carried out in their texts, and recorded.


def decisions_about(
    row_key: pa.Array,
    reason: str,
    dropped: npt.NDArray[np.bool_],
    unit_starts: npt.NDArray[np.int64],
    cut: npt.NDArray[np.bool_],
    detail: Callable[[int], str],
) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]]:
    """(decisions about the rows of a batch that are dropped or lose units; the numbers of these rows).

    The units of row i are `[unit_starts[i], unit_starts[i + 1])`; `cut` marks those that kept rows lose. `detail(i)`
    says why row i is dropped.
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
        "detail": pa.array([detail(row) if dropped[row] else None for row in rows.tolist()], pa.string()),
        "cut": lists,
    }
    return pa.record_batch(columns), rows


def units_cut(decided: pa.RecordBatch, unit_starts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """bool (units,): what the column `cut` of the decisions about some rows says about the units of these rows."""
    cut = np.zeros(unit_starts[-1], np.bool_)
    lengths = pc.fill_null(pc.list_value_length(decided.column("cut")), 0).to_numpy(zero_copy_only=False)
    numbers = decided.column("cut").flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    cut[np.repeat(unit_starts[:-1], lengths) + numbers] = True
    return cut


@dataclass(frozen=True, slots=True)
class Cut:
    """Texts without some of their units. For each cut unit: its bytes, and the byte of its row where they were."""

    texts: pa.Array
    pieces: pa.Array
    places: npt.NDArray[np.int64]


def cut_decided(texts: pa.Array, unit: Unit, changed: pa.RecordBatch) -> Cut:
    """Cut the units out of texts that the column `cut` of the decisions about their rows names."""
    lengths = pc.list_value_length(changed.column("cut")).to_numpy(zero_copy_only=False)
    numbers = changed.column("cut").flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    return cut_units(texts, unit, np.repeat(np.arange(changed.num_rows), lengths), numbers)


def cut_units(texts: pa.Array, unit: Unit, rows: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> Cut:
    """Cut units out of texts: unit `numbers[k]` of the text `rows[k]`, in ascending order of both.

    The remaining text and the pieces have all bytes between them. White space around a cut goes with the piece, so that
    the remaining text reads as if the piece had never been there: paragraphs stay apart, lines keep their indentation.
    """
    from datakit.dedup import _kernels_repeats as kernels

    data, offsets = string_buffers(texts)
    units = find_units(data, offsets, unit)
    cut = np.zeros(len(units.starts), np.bool_)
    cut[units.row_starts[rows] + numbers] = True
    size = offsets[-1] - offsets[0]
    kept, gone = np.empty(size, np.uint8), np.empty(size, np.uint8)
    kept_offsets, gone_offsets = np.empty_like(offsets), np.zeros(len(rows) + 1, np.int64)
    places = np.empty(len(rows), np.int64)
    kernels.cut_units(data, offsets, flags(), units, cut, kept, kept_offsets, gone, gone_offsets, places)
    made = string_array(kept[: kept_offsets[-1]], kept_offsets)
    return Cut(made, string_array(gone[: gone_offsets[-1]], gone_offsets), places)


@dataclass(frozen=True)
class CuttingStage(IndexedStage):
    """What the stages that cut pieces out of texts share.

    A kept row that loses some of its units is edited: it gets a new `content_hash`, and for each of them a row in the
    table `cuts`: `row_key`, `id`, `start` (the byte of the row's text where the piece was), `text` (the piece),
    `duplicate_of` (the id of the row that still has it; null where it is not known) and, with earlier runs,
    `duplicate_in`. With the pieces put back, the text
    is as it was. Dropped rows keep their text.
    """

    @property
    def unit(self) -> str:
        """What is cut, in one word."""
        raise NotImplementedError

    def cut(self, texts: pa.Array, changed: pa.RecordBatch) -> Cut:
        """Cut out of texts what the decisions about their rows say."""
        raise NotImplementedError

    def for_kind(self, kind: str) -> Self:
        """The stage for rows of a kind: documents only.

        Raises:
            UsageError: a conversation or preference pair; a model should not learn half an answer.
        """
        if kind != "document":
            raise UsageError(
                f"{self.name} cuts pieces out of texts, and these rows are of the kind {kind}: an answer without some "
                f"of its {self.unit}s teaches what nobody said. Use dedup with --on answer, or dedup_ngrams, which "
                "drops such rows whole; leave this stage out of the recipe"
            )
        return self

    def open(self) -> None:
        """Build the tables of characters and load the kernels."""
        character_table()
        flags()

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Look the rows up by row_key, and cut."""
        found = self.look_up(batch.column("row_key"))
        reasons = found.column("reason")
        edited = pc.and_(pc.is_null(reasons), pc.greater(pc.fill_null(pc.list_value_length(found.column("cut")), 0), 0))
        columns, cuts = self._edit(batch, found, edited) if pc.any(edited).as_py() else ({}, None)
        bytes_cut = int(pc.sum(pc.binary_length(cuts.column("text"))).as_py()) if cuts else 0
        return Decision(
            reasons=reasons,
            detail=found.column("detail"),
            columns=columns,
            drop_columns=self.survivor_columns(found),
            side_tables={CUTS: cuts} if cuts else {},
            notes={f"{self.unit}s_cut": cuts.num_rows if cuts else 0, "bytes_cut": bytes_cut},
            edited=edited,
        )

    def _edit(
        self, batch: pa.RecordBatch, found: pa.RecordBatch, edited: pa.Array
    ) -> tuple[dict[str, pa.Array], pa.RecordBatch]:
        """(the columns that change, the table of what is cut)."""
        from datakit.text.words import digest, normalize

        changed = found.filter(edited)
        lengths = pc.list_value_length(changed.column("cut")).to_numpy(zero_copy_only=False)
        rows = np.repeat(np.arange(changed.num_rows), lengths)
        cut = self.cut(batch.column("text").filter(edited), changed)
        columns = {"text": pc.replace_with_mask(batch.column("text"), edited, cut.texts)}
        if "content_hash" in batch.schema.names:
            made = digest(normalize(cut.texts))
            columns["content_hash"] = pc.replace_with_mask(batch.column("content_hash"), edited, made)
        before = batch.select(["row_key", "id"]).filter(edited).take(pa.array(rows))
        names = {"duplicate_of": "kept_in"} | ({"duplicate_in": "kept_in_run"} if self.earlier else {})
        survivors = {name: changed.column(column).flatten() for name, column in names.items()}
        cuts = {
            "row_key": before.column("row_key"),
            "id": before.column("id"),
            "start": pa.array(cut.places),
            "text": cut.pieces,
        } | {name: ids if len(ids) else pa.nulls(len(rows), pa.string()) for name, ids in survivors.items()}
        return columns, pa.record_batch(cuts)

    def kept_in(self, rows: AllRows, survivors: npt.NDArray[np.int64], offsets: pa.Array) -> dict[str, pa.Array]:
        """The columns of decisions that name the row that still has each cut piece; a list for each row that is cut."""
        columns = {"kept_in": rows.ids(survivors)}
        if self.earlier:
            columns["kept_in_run"] = self.versions_of(rows.among_all(survivors))
        return {name: pa.ListArray.from_arrays(offsets, values) for name, values in columns.items()}


# The stages.


@dataclass(frozen=True)
class RepeatsStage(SharingStage, CuttingStage):
    """What `dedup_lines` and `dedup_spans` share."""

    reason: ClassVar[str]
    """Why a row is dropped."""

    @property
    def unit(self) -> Unit:
        """What is cut."""
        raise NotImplementedError

    def cut(self, texts: pa.Array, changed: pa.RecordBatch) -> Cut:
        """Cut units."""
        return cut_decided(texts, self.unit, changed)

    @property
    def span(self) -> int:
        """How many consecutive units are compared as one."""
        raise NotImplementedError

    def forecast(self, shards: Sequence[Path]) -> str:
        """The disk space for the units of these shards while they are compared."""
        rows, size = text_bytes(shards)
        disk = rows * _ROW_BYTES + size // _UNIT_BYTES[self.unit] * _DISK_BYTES
        line = f"{rows:,} rows, about {disk / 1e6:,.0f} MB of disk while their {self.unit}s are compared"
        return line + self.forecast_earlier()

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """`row_key`, `id` and `source`; `hashes` of the spans of each row, and the `words` of its units."""
        spans = hash_spans(batch.column("text"), self.unit, self.span, self.config.min_words, self.config.digits)
        return pa.record_batch(
            {
                "row_key": batch.column("row_key"),
                "id": batch.column("id"),
                "source": source_column(batch),
                "hashes": list_column(spans.hashes, spans.row_starts),
                "words": list_column(spans.words, spans.row_starts),
            }
        )

    def values(self, batch: pa.RecordBatch) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """The hashes of the spans that are compared."""
        from datakit.dedup._kernels_minhash import NONE

        hashes = list_values(batch, "hashes")
        rows = np.repeat(np.arange(batch.num_rows), np.diff(list_starts(batch, "hashes")))
        return hashes[hashes != NONE], rows[hashes != NONE]

    def amounts(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """The words of each row."""
        return sums_of_lists(batch, "words")

    def counts(self, batch: pa.RecordBatch) -> dict[str, int]:
        """The units."""
        return {"units": len(list_values(batch, "words"))}

    def index(self, sketches: pa.RecordBatch) -> pa.RecordBatch:
        """Of each kept row in a batch of sketches the `hashes` of the spans that are whole in it."""
        from datakit.dedup._kernels_minhash import NONE

        decided, starts = self.look_up(sketches.column("row_key")), list_starts(sketches, "hashes")
        whole = whole_runs(units_cut(decided, starts), starts, starts, self.span)
        whole &= list_values(sketches, "hashes") != NONE
        made = with_values(sketches.drop_columns(["words"]), "hashes", whole)
        return index_rows(made, decided.column("reason").is_null())

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write what is cut and dropped to `out`; returns counts and alarms.

        Raises:
            IntegrityError: an index is damaged.
        """
        memory = Memory(self.config.memory_mb << 20, out.parent)
        shared = self.shared_with(sketches, out, workers)
        rows, losses = shared.rows(memory), Losses("words")
        repeats = find_repeats(rows, self.span, self.config.min_words_left, memory, workers)
        write_decisions(out, (self._decide(rows, n, repeats, losses) for n in rows.new))
        losses.whole.update(shared.amounts())
        words = {"words": losses.whole.total(), "words_lost": losses.lost.total()}
        survivors = frequent_survivors(rows, _counts_of_owners(repeats.found))
        alarms = losses.alarms(self.config.max_loss, MIN_ALARM_WORDS, CHECK_CUTS, survivors, f"{self.unit}s")
        units = {"units": shared.counts()["units"], "spans_compared": shared.values}
        return units | repeats.facts | words | {"alarms": alarms}

    def _decide(self, rows: SharedRows, number: int, repeats: Repeats, losses: Losses) -> pa.RecordBatch:
        """The decisions about one batch of sketches; `losses` counts what its sources lose."""
        batch, begin, end = rows.batches[number], rows.begins[number], rows.begins[number + 1]
        units = repeats.row_starts[begin : end + 1]
        found, words = repeats.found[units[0] : units[-1]], repeats.words[units[0] : units[-1]]
        dropped, units = repeats.dropped[begin:end], units - units[0]
        row_of = np.repeat(np.arange(end - begin), np.diff(units))
        cut = found >= 0
        cuts, in_row, left = (
            np.bincount(row_of, weight, end - begin).astype(np.int64)
            for weight in (cut, words, np.where(cut, 0, words))
        )
        losses.add(batch.column("source"), np.zeros_like(in_row), in_row - np.where(dropped, 0, left))
        cut &= ~dropped[row_of]

        def detail(row: int) -> str:
            total = units[row + 1] - units[row]
            return f"{cuts[row]} of its {total} {self.unit}s stand before it, {left[row]} words are new"

        made, touched = decisions_about(batch.column("row_key"), self.reason, dropped, units, cut, detail)
        survivors = most_of(found, row_of, dropped, begin)[touched]
        columns = {"duplicate_of": rows.ids(survivors), "duplicate_in": self.versions_of(rows.among_all(survivors))}
        columns |= self.kept_in(rows, found[cut].astype(np.int64), made.column("cut").offsets)
        for name, column in columns.items():
            made = made.append_column(name, column)
        return made


def _counts_of_owners(found: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """For each row how many units were cut elsewhere because it has them, int64; it may be shorter than the rows."""
    counts = np.zeros(1, np.int64)
    for part in parts(len(found)):
        more = np.bincount(found[part][found[part] >= 0], minlength=len(counts))
        more[: len(counts)] += counts
        counts = more
    return counts


def most_of(
    found: npt.NDArray[Any],
    row_of: npt.NDArray[np.int64],
    dropped: npt.NDArray[np.bool_],
    first: int,
    weights: npt.NDArray[np.int64] | None = None,
) -> npt.NDArray[np.int64]:
    """For each dropped row the other row that has most of its units (by weight), the earlier of two; -1 without one."""
    most = np.full(len(dropped), -1, np.int64)
    chosen = (found >= 0) & dropped[row_of] & (found != row_of + first)
    pairs, inverse = np.unique(np.stack([row_of[chosen], found[chosen]]), axis=1, return_inverse=True)
    counts = np.bincount(inverse.ravel(), None if weights is None else weights[chosen], pairs.shape[1])
    order = np.lexsort((pairs[1], -counts, pairs[0]))
    row, at = np.unique(pairs[0][order], return_index=True)
    most[row] = pairs[1][order][at]
    return most


@dataclass(frozen=True)
class DedupLines(RepeatsStage):
    """Cuts duplicate lines or paragraphs; rows that keep too little are dropped as `duplicate_lines`."""

    config: LinesConfig = field(default_factory=LinesConfig)

    name: ClassVar[str] = "dedup_lines"
    help: ClassVar[str] = "The cut text is recorded in cuts/."
    Config: ClassVar[type] = LinesConfig
    reason: ClassVar[str] = "duplicate_lines"

    @property
    def unit(self) -> Unit:
        """Line or paragraph."""
        return self.config.unit

    @property
    def span(self) -> int:
        """Each is compared by itself."""
        return 1


@dataclass(frozen=True)
class DedupSpans(RepeatsStage):
    """Cuts duplicate spans of sentences; rows that keep too little are dropped as `duplicate_spans`."""

    config: SpansConfig = field(default_factory=SpansConfig)

    name: ClassVar[str] = "dedup_spans"
    help: ClassVar[str] = "The cut text is recorded in cuts/."
    Config: ClassVar[type] = SpansConfig
    reason: ClassVar[str] = "duplicate_spans"

    @property
    def unit(self) -> Unit:
        """What spans are made of, and what is cut."""
        return "sentence"

    @property
    def span(self) -> int:
        """Sentences that are compared as one."""
        return self.config.span_sentences
