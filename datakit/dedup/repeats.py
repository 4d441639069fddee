"""Duplicate lines or paragraphs over the whole data set (CCNet: Wenzek et al. 2020): each stays where it stood first.

CCNet compares hashes of lines in lower case without punctuation and accents, with 0 for every digit. Ours are compared
by their words (`units`): accents count, and so do digits unless `digits = "zero"`. CCNet looks within chunks of its
data; here a line stays in the first row of all that has it and stays itself, so that nothing vanishes altogether.

Duplicate spans of sentences over the whole data set (C4: Raffel et al. 2020, section 2.2): all but one are cut.

The paper discards "all but one of any three-sentence span occurring more than once in the data set"; TFDS does so line
by line, datatrove for every three sentences in a row. Ours are every three sentences in a row of one text, compared by
their words (`units`). A span is cut only where it can still be read whole, in a row that stays or earlier in its own.

Lines, paragraphs and sentences of texts: where they lie, and hashes that are equal where their words are.

Units compare by their words, as documents do (`text.words`): NFC, case-folded, without punctuation and white space.
A line ends where `str.splitlines` ends one, a paragraph at a blank line, a sentence at its mark (of any script, with
the quotes and brackets behind it) and at the end of its line. Marks of scripts written without spaces need no space
behind them. Thai and Lao mark no sentence's end: there a sentence is a line.

Which lines, paragraphs or spans of sentences are said again, over all rows: from hashes to what is cut where.

Rows are gone through in the order of their keys. A span is cut where a row before it that stays has it, or where the
row itself has had it; so what is cut can always be read in the row that is named. A row of which too little is left is
dropped whole, and then stands for nothing: what it had first stays in the next row that has it.

Hashes are of 64 bits: in 10^9 different spans, one is expected to be taken for another with probability 0.03. On the
disk a unit takes 12 bytes in the sketches, and while they are compared 8 to 16 more; in memory, 8 for each different
span that is repeated.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option
from datakit.dedup.exact import Memory, Rows, in_range, lists, open_rows, starts, values
from datakit.dedup.stage import MEMORY, SOURCE_LOSS, Losses, check_values, decided, look_up, source, text_bytes, write
from datakit.errors import UsageError
from datakit.native import Kernels
from datakit.stage import Decision, Stage
from datakit.text.characters import (
    BREAKS,
    QUOTES,
    TERMINALS,
    UNICODE_VERSION,
    character_table,
    row_chunks,
    string_array,
    string_buffers,
)
from datakit.text.normal_form import compose, digest, normalize
from datakit.text.words import hash_words_in


@dataclass(frozen=True, kw_only=True, slots=True)
class LinesConfig:
    """Lines or paragraphs that stand in an earlier row, or earlier in their row, are cut out of the text."""

    unit: Literal["line", "paragraph"] = option("line", "what is compared; a paragraph ends at a blank line")
    min_words: int = option(5, "leave units of fewer words alone: headings, brackets, code that all files share")
    digits: Literal["as_written", "zero"] = option("as_written", "zero: units that differ in digits alone are the same")
    min_words_left: int = option(50, "drop a row that was cut and keeps fewer words than this")
    max_source_loss: float = option(0.75, SOURCE_LOSS)
    memory_mb: int = option(1024, MEMORY, result=False)

    def __post_init__(self) -> None:
        check_values(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class SpansConfig:
    """Runs of sentences that stand in an earlier row, or earlier in their row, are cut out of the text."""

    span_sentences: int = option(3, "sentences in a row that are compared as one")
    min_words: int = option(10, "leave spans of fewer words alone")
    digits: Literal["as_written", "zero"] = option("as_written", "zero: spans that differ in digits alone are the same")
    min_words_left: int = option(50, "drop a row that was cut and keeps fewer words than this")
    max_source_loss: float = option(0.75, SOURCE_LOSS)
    memory_mb: int = option(1024, MEMORY, result=False)

    def __post_init__(self) -> None:
        check_values(self)


Unit = Literal["line", "paragraph", "sentence"]
NONE: Final = np.uint64(2**64 - 1)
"""The hash of a span that is not compared."""

SPACE, BREAK, TERMINAL, CLOSER, OPENER, ALONE = (1 << bit for bit in range(6))
"""What a character is: white space, the end of a line or of a sentence, what may stand behind the latter, what of that
may also open the next one, an end that needs no space behind it."""

_kernels = Kernels("datakit.dedup._kernels_repeats")
_MODES: Final = {"line": 0, "paragraph": 1, "sentence": 2}
_BRACKETS: Final = ")]}\u300b\u300d\u300f\u3011\uff09\uff3d"
_OPENERS: Final = "“‘"  # they close in other languages
_ALONE: Final = "\u104a\u104b\u17d4\u17d5\u3002\uff01\uff1f\uff61"
_CHUNK_BYTES: Final = 1 << 20


@lru_cache(maxsize=1)
def flags() -> npt.NDArray[np.uint8]:
    """uint8[0x110000]: what each code point is to the kernels. Read-only."""
    table = np.zeros(0x110000, np.uint8)
    table[[c for c in range(0x3001) if chr(c).isspace()]] = SPACE
    marks = {
        BREAK: BREAKS,
        TERMINAL: TERMINALS,
        CLOSER: QUOTES + _BRACKETS,
        OPENER: _OPENERS,
        ALONE: _ALONE,
    }
    for flag, chars in marks.items():
        table[[ord(c) for c in chars]] |= np.uint8(flag)
    table.setflags(write=False)
    return table


@dataclass(frozen=True, slots=True)
class Units:
    """Bytes of a string array's buffer that the units fill: unit u is `data[starts[u]:ends[u]]`.

    int64 each; those of row i are numbered from `row_starts[i]` to `row_starts[i + 1]`.
    """

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    row_starts: npt.NDArray[np.int64]


def find_units(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], unit: Unit) -> Units:
    """The units of texts, given as `string_buffers` gives them."""
    most = (offsets[-1] - offsets[0]) // 2 + len(offsets)
    starts, ends, row_starts = np.empty(most, np.int64), np.empty(most, np.int64), np.empty_like(offsets)
    _kernels.find_units(data, offsets, flags(), _MODES[unit], starts, ends, row_starts)
    return Units(starts[: row_starts[-1]].copy(), ends[: row_starts[-1]].copy(), row_starts)


@dataclass(frozen=True, slots=True)
class Spans:
    """Of each unit: the hash of the span that begins with it (uint64; NONE where none is compared), its words (uint32).

    Those of row i are `[row_starts[i], row_starts[i + 1])`.
    """

    hashes: npt.NDArray[np.uint64]
    words: npt.NDArray[np.uint32]
    row_starts: npt.NDArray[np.int64]


def hash_spans(texts: pa.Array, unit: Unit, span: int, min_words: int, digits: str) -> Spans:
    """Hash every `span` units in a row of each text that have at least `min_words` words together.

    With `digits` "zero" every decimal digit counts as 0.
    """
    texts = compose(texts)
    if digits == "zero":
        texts = pc.replace_substring_regex(texts, r"\p{Nd}", "0")
    data, offsets = string_buffers(texts)
    parts = [
        _spans_of(data, offsets[begin : end + 1], unit, span, min_words)
        for begin, end in row_chunks(offsets, _CHUNK_BYTES)
    ]
    sizes = np.concatenate([np.diff(p.row_starts) for p in parts]) if parts else np.empty(0, np.int64)
    return Spans(
        np.concatenate([p.hashes for p in parts]) if parts else np.empty(0, np.uint64),
        np.concatenate([p.words for p in parts]) if parts else np.empty(0, np.uint32),
        np.concatenate(([0], np.cumsum(sizes))),
    )


def _spans_of(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], unit: Unit, span: int, min_words: int
) -> Spans:
    units = find_units(data, offsets, unit)
    words, word_starts = words_of(data, offsets, units)
    hashes, counts = np.empty(len(units.starts), np.uint64), np.empty(len(units.starts), np.uint32)
    _kernels.hash_units(words, word_starts, hashes, counts)
    spans = np.empty_like(hashes)
    _kernels.hash_spans(hashes, counts, units.row_starts, span, min_words, spans)
    return Spans(spans, counts, units.row_starts)


def words_of(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], units: Units
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The hashes of the words of all units, and where each unit's begin (units + 1)."""
    # between two units there is white space alone, which has no words
    return hash_words_in(data, np.append(units.starts, offsets[-1]))


class _Text(NamedTuple):
    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]


class _Bounds(NamedTuple):
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    row_starts: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cut:
    """Texts without some of their units. Of each cut unit: its bytes, and at which byte of its row they stood."""

    texts: pa.Array
    pieces: pa.Array
    places: npt.NDArray[np.int64]


def cut_units(texts: pa.Array, unit: Unit, rows: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> Cut:
    """Cut units out of texts: unit `numbers[k]` of the text `rows[k]`, in ascending order of both.

    The text that is left and the pieces have all bytes between them; white space around a cut goes with the piece, so
    that what is left reads as if it had never been there: paragraphs stay apart, lines keep their indentation.
    """
    data, offsets = string_buffers(texts)
    units = find_units(data, offsets, unit)
    cut = np.zeros(len(units.starts), np.bool_)
    cut[units.row_starts[rows] + numbers] = True
    size = offsets[-1] - offsets[0]
    kept, gone = np.empty(size, np.uint8), np.empty(size, np.uint8)
    kept_offsets, gone_offsets = np.empty_like(offsets), np.zeros(len(rows) + 1, np.int64)
    places = np.empty(len(rows), np.int64)
    found = _Bounds(units.starts, units.ends, units.row_starts)
    _kernels.cut_units(_Text(data, offsets), flags(), found, cut, kept, kept_offsets, gone, gone_offsets, places)
    made = string_array(kept[: kept_offsets[-1]], kept_offsets)
    return Cut(made, string_array(gone[: gone_offsets[-1]], gone_offsets), places)


_SORT_BYTES = 48  # a span takes while its range is sorted: place, hash, order, both in that order, what is equal


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


def find_repeats(rows: Rows, span: int, min_words_left: int, memory: Memory, workers: int) -> Repeats:
    """Go through sketches with the columns `hashes` (of spans) and `words` (of units)."""
    units = [values(batch, "hashes") for batch in rows.batches]
    begins = np.cumsum([0, *map(len, units)])
    row_starts = memory.full((len(rows) + 1,), begins[-1], np.int64)
    words = memory.full((begins[-1],), 0, np.uint32)
    for batch, row, begin, end in zip(rows.batches, rows.begins, begins, begins[1:], strict=False):
        row_starts[row : row + batch.num_rows + 1] = begin + starts(batch, "hashes")
        words[begin:end] = values(batch, "words")
    groups, count, compared = _groups(units, begins, memory, workers)
    owner = memory.full((count,), -1, _number_type(len(rows)))
    found = memory.full((begins[-1],), -1, _number_type(len(rows)))
    dropped = np.zeros(len(rows), np.bool_)
    _kernels.choose(row_starts, words, groups, span, min_words_left, owner, found, dropped)
    facts = {"units": int(begins[-1]), "spans_compared": compared, "spans_repeated": count}
    return Repeats(row_starts, words, found, dropped, facts)


def _number_type(count: int) -> Any:
    return np.int32 if count < 1 << 31 else np.int64


def _groups(
    units: list[npt.NDArray[np.uint64]], begins: npt.NDArray[np.int64], memory: Memory, workers: int
) -> tuple[npt.NDArray[Any], int, int]:
    """(for each span the number of its group, -1 where it has no equal; how many groups; how many spans).

    By ranges of the hashes, each a task of its own.
    """
    total = int(begins[-1])
    groups = memory.full((total,), -1, _number_type(total))
    ranges = max(memory.ranges(total * workers * _SORT_BYTES), 1 if total < 1 << 16 else _power_of_two(workers))
    count = compared = 0
    with ThreadPoolExecutor(workers) as pool:
        for places, numbers, repeated, spans in _ahead(
            pool, lambda n: _group(units, begins, n, ranges), ranges, workers
        ):
            groups[places] = count + numbers
            count += repeated
            compared += spans
    return groups, count, compared


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


def _ahead(pool: ThreadPoolExecutor, work: Any, tasks: int, ahead: int) -> Iterator[Any]:
    """Results in order, of no more than `ahead` tasks begun at a time: each holds memory until it is taken."""
    waiting = [pool.submit(work, n) for n in range(min(ahead, tasks))]
    for n in range(tasks):
        yield waiting.pop(0).result()
        if n + ahead < tasks:
            waiting.append(pool.submit(work, n + ahead))


def _group(
    units: list[npt.NDArray[np.uint64]], begins: npt.NDArray[np.int64], part: int, ranges: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int, int]:
    """(places of spans that have an equal, the number of each one's group, how many groups, how many spans)."""
    chosen = [in_range(hashes, part, ranges) for hashes in units]
    chosen = [rows[hashes[rows] != NONE] for rows, hashes in zip(chosen, units, strict=True)]
    empty = np.empty(0, np.int64)
    places = np.concatenate([empty, *(begin + rows for begin, rows in zip(begins, chosen, strict=False))])
    hashes = np.concatenate([empty.view(np.uint64), *(h[rows] for h, rows in zip(units, chosen, strict=True))])
    order = np.argsort(hashes)
    hashes, places = hashes[order], places[order]
    fresh = np.ones(len(hashes), np.bool_)
    fresh[1:] = hashes[1:] != hashes[:-1]
    alone = fresh & np.append(fresh[1:], True)
    numbers = np.cumsum(fresh & ~alone) - 1
    return places[~alone], numbers[~alone], int((fresh & ~alone).sum()), len(hashes)


CUTS = "cuts"
"""The role of the tables that record what was cut."""


@dataclass(frozen=True)
class Cutting(Stage):
    """What the stages `dedup_lines`, `dedup_spans` and `dedup_ngrams` share; `decisions` is what `reduce` wrote.

    A row that stays without some of its units is edited: it gets a new `content_hash`, and a row in the table `cuts`
    for each of them: `row_key`, `id`, `start` (the byte of the row's text at which the piece stood), `text` (the
    piece), `duplicate_of` (the id of the row that still has it; null where it is not known). With the pieces put
    back, the text is as it was. Rows that are dropped keep their text.
    """

    config: Any
    decisions: Path | None = None
    name: ClassVar[str]
    compares_rows: ClassVar[bool] = True

    @property
    def unit(self) -> Unit:
        """What is cut."""
        raise NotImplementedError

    def for_kind(self, kind: str) -> Self:
        """The stage for rows of a kind: texts alone.

        Raises:
            UsageError: a conversation or preference pair; half an answer is not to be learned from.
        """
        if kind != "document":
            raise UsageError(
                f"{self.name} cuts pieces out of texts, and these rows are of the kind {kind}: an answer without some "
                f"of its {self.unit}s teaches what nobody said. Use dedup with --on answer, or dedup_ngrams, which "
                "drops such rows whole; leave this stage out of the recipe"
            )
        return self

    def resources(self) -> dict[str, Any]:
        """The Unicode version that words follow; it is the interpreter's."""
        return {"unicode": UNICODE_VERSION}

    def open(self) -> None:
        """Build the character table of this process."""
        character_table()

    def bind(self, out: Path) -> Self:
        """The stage that carries out the decisions in `out`."""
        return replace(self, decisions=out)

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Look the rows up by row_key, and cut."""
        assert self.decisions is not None, "decide needs the decisions of reduce: call bind first"
        found = look_up(self.decisions, batch.column("row_key"))
        reasons = found.column("reason")
        edited = pc.and_(pc.is_null(reasons), pc.greater(pc.fill_null(pc.list_value_length(found.column("cut")), 0), 0))
        columns, cuts = self._edit(batch, found, edited) if pc.any(edited).as_py() else ({}, None)
        bytes_cut = int(pc.sum(pc.binary_length(cuts.column("text"))).as_py()) if cuts else 0
        return Decision(
            reasons=reasons,
            detail=found.column("detail"),
            columns=columns,
            drop_columns={"duplicate_of": found.column("duplicate_of")},
            side_tables={CUTS: cuts} if cuts else {},
            notes={f"{self.unit}s_cut": cuts.num_rows if cuts else 0, "bytes_cut": bytes_cut},
            edited=edited,
        )

    def _edit(
        self, batch: pa.RecordBatch, found: pa.RecordBatch, edited: pa.Array
    ) -> tuple[dict[str, pa.Array], pa.RecordBatch]:
        touched = found.filter(edited)
        lengths = pc.list_value_length(touched.column("cut")).to_numpy(zero_copy_only=False)
        rows = np.repeat(np.arange(touched.num_rows), lengths)
        numbers = touched.column("cut").flatten().to_numpy(zero_copy_only=False).astype(np.int64)
        cut = cut_units(batch.column("text").filter(edited), self.unit, rows, numbers)
        columns = {"text": pc.replace_with_mask(batch.column("text"), edited, cut.texts)}
        if "content_hash" in batch.schema.names:
            made = digest(normalize(cut.texts))
            columns["content_hash"] = pc.replace_with_mask(batch.column("content_hash"), edited, made)
        before = batch.select(["row_key", "id"]).filter(edited).take(pa.array(rows))
        stays_in = touched.column("stays_in").flatten()
        cuts = {
            "row_key": before.column("row_key"),
            "id": before.column("id"),
            "start": pa.array(cut.places),
            "text": cut.pieces,
            "duplicate_of": stays_in if len(stays_in) else pa.nulls(len(rows), pa.string()),
        }
        return columns, pa.record_batch(cuts)


_UNIT_BYTES = {"line": 40, "paragraph": 200, "sentence": 60}  # of English prose and documentation, rather too few
_DISK_BYTES = 28  # a unit: hash and words in the sketch; words, group and place while all are compared
_ROW_BYTES = 60  # of a sketch besides its units


class Repeating(Cutting):
    """What the two share; `span` is how many units in a row are compared as one, `reason` why a row is dropped."""

    reason: ClassVar[str]

    @property
    def span(self) -> int:
        """How many units in a row are compared as one."""
        raise NotImplementedError

    def forecast(self, files: Sequence[Path]) -> str:
        """How much disk the units of these shards will take while they are compared."""
        rows, size = text_bytes(files)
        disk = rows * _ROW_BYTES + size // _UNIT_BYTES[self.unit] * _DISK_BYTES
        return f"{rows:,} rows, about {disk / 1e6:,.0f} MB of disk while their {self.unit}s are compared"

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """`row_key`, `id` and `source`; `hashes` of the spans of each row, and the `words` of its units."""
        spans = hash_spans(batch.column("text"), self.unit, self.span, self.config.min_words, self.config.digits)
        return pa.record_batch(
            {
                "row_key": batch.column("row_key"),
                "id": batch.column("id"),
                "source": source(batch),
                "hashes": lists(spans.hashes, spans.row_starts),
                "words": lists(spans.words, spans.row_starts),
            }
        )

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write what is cut and dropped to `out`; returns counts and alarms."""
        rows, losses = open_rows(sketches), Losses("words")
        memory = Memory(self.config.memory_mb << 20, out.parent)
        repeats = find_repeats(rows, self.span, self.config.min_words_left, memory, workers)
        write(out, (self._decide(rows, n, repeats, losses) for n in range(len(rows.batches))))
        words = {"words": losses.whole.total(), "words_lost": losses.lost.total()}
        return repeats.facts | words | {"alarms": losses.alarms(self.config.max_source_loss)}

    def _decide(self, rows: Rows, number: int, repeats: Repeats, losses: Losses) -> pa.RecordBatch:
        """The decisions about one batch of sketches; what its sources lose is counted on the way."""
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
        losses.add(batch.column("source"), in_row, in_row - np.where(dropped, 0, left))
        cut &= ~dropped[row_of]

        def tell(row: int) -> str:
            total = units[row + 1] - units[row]
            return f"{cuts[row]} of its {total} {self.unit}s stand before it, {left[row]} words are new"

        made, touched = decided(batch.column("row_key"), self.reason, dropped, units, cut, tell)
        stays_in = pa.ListArray.from_arrays(made.column("cut").offsets, rows.ids(found[cut].astype(np.int64)))
        duplicate_of = rows.ids(_most_of(found, row_of, dropped, begin)[touched])
        return made.append_column("duplicate_of", duplicate_of).append_column("stays_in", stays_in)


def _most_of(
    found: npt.NDArray[Any], row_of: npt.NDArray[np.int64], dropped: npt.NDArray[np.bool_], first: int
) -> npt.NDArray[np.int64]:
    """For each row that is dropped the other row that has most of its units, the earlier of two; -1 without one."""
    most = np.full(len(dropped), -1, np.int64)
    chosen = (found >= 0) & dropped[row_of] & (found != row_of + first)
    pairs, counts = np.unique(np.stack([row_of[chosen], found[chosen]]), axis=1, return_counts=True)
    order = np.lexsort((pairs[1], -counts, pairs[0]))
    row, at = np.unique(pairs[0][order], return_index=True)
    most[row] = pairs[1][order][at]
    return most


@dataclass(frozen=True)
class DedupLines(Repeating):
    """Cuts duplicate lines or paragraphs; rows of which too little is left are dropped as `duplicate_lines`."""

    Config: ClassVar[type] = LinesConfig
    config: LinesConfig = field(default_factory=LinesConfig)
    name: ClassVar[str] = "dedup_lines"
    reason: ClassVar[str] = "duplicate_lines"

    @property
    def unit(self) -> Unit:
        """Line or paragraph."""
        return self.config.unit

    @property
    def span(self) -> int:
        """Each is compared alone."""
        return 1


@dataclass(frozen=True)
class DedupSpans(Repeating):
    """Cuts duplicate spans of sentences; rows of which too little is left are dropped as `duplicate_spans`."""

    Config: ClassVar[type] = SpansConfig
    config: SpansConfig = field(default_factory=SpansConfig)
    name: ClassVar[str] = "dedup_spans"
    reason: ClassVar[str] = "duplicate_spans"

    @property
    def unit(self) -> Unit:
        """What spans are made of, and what is cut."""
        return "sentence"

    @property
    def span(self) -> int:
        """Sentences that are compared as one."""
        return self.config.span_sentences
