"""Passages that occur again, across rows and within one: every occurrence but the first is cut, or the row is dropped.

A window is n consecutive units of a text: one line or paragraph (CCNet: Wenzek et al. 2020), three sentences (C4:
Raffel et al. 2020, section 2.2), 50 tokens (Lee et al. 2022). Windows are equal if their words are (`text.words`: NFC,
case-folded, without punctuation and white space). A unit is cut if it lies in a window that equals one which begins
earlier, in row order and then position, and stays whole: none of its units is cut, and its row is not dropped. So
everything that is cut can still be read, at least a window of it at a time, in the row that is named. Of a passage that
repeats itself within its own length, the first window stays. A row that keeps too little is dropped. It then owns
nothing: what it had first stays in the next row that has it.

With `max_repeated_share` nothing is cut: a row is dropped if more than that share of its words lies in windows of
earlier rows that stay. Conversations and preference pairs are only treated so; an answer without some of its lines
would teach what nobody said.

Lee et al. build a suffix array, which needs 5 to 9 bytes of memory for each byte of text, and all text at one time.
Winnowing (Schleimer, Wilkerson, Aiken 2003) needs neither and misses nothing:

1. `sketch`: each row by itself, as the hashes of its units.
2. Of every window the run of `window // 2` tokens in it with the least hash is its anchor. Equal windows have equal
   anchors, and neighbours mostly share theirs: about one token in thirteen begins an anchor. (Windows of lines,
   paragraphs and sentences are few: each is its own.) A row whose anchors occur nowhere else stays as it is.
3. `reduce`: of the other rows, windows with a repeated anchor are hashed whole. One pass over their units, in row
   order, decides what is cut.

Anchors of 64 bits only choose what is compared. What counts as equal are 128 bits of a window: two polynomials over the
64-bit hashes of its words, with different odd bases. The last step of both hashes loses nothing, so two windows that
differ in one word are different unless these two words have one 64-bit hash; others differ but with a probability of
2^-128.

On the disk a sketch takes 20 bytes for a line, paragraph or sentence, 8 for a token; its anchor 12 more while the rows
that share one are sought. Rows that share one take their sketch again, and 13 bytes for each unit besides, and 40 for
each unit in a window with a repeated anchor. In memory are 8 bytes for each different window that is repeated, in a
file if they are many.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import OF_TURNS, at_least, option, shares
from datakit.data import compared_fields, row_chunks, string_buffers
from datakit.dedup.comparison import CompareOptions, Flags, Hashes, IndexOptions, Numbers, blocks, row_columns, sums_of
from datakit.dedup.cuts import Unit, bounds, comparable, decided_runs, edit, flags
from datakit.dedup.shuffle import Compared, Decided, IndexedStage, Memory, Rows
from datakit.errors import ConfigError
from datakit.stage import Decision, Losses
from datakit.text.words import character_table, hash_words_in

CUTS = "cuts"
"""The role of the tables that record what was cut."""

MIN_ALARM_WORDS: Final = 100
"""Fewer words, of all rows or a source, raise no alarm."""

_CHECK: Final = (
    "Check with `datakit explain` what was cut out of such rows, and with `datakit pairs` which rows were dropped. If "
    "that text should stay, raise min_words or window, or leave the stage out; if not, raise max_loss"
)
_WINDOW: Final = {"line": 1, "paragraph": 1, "sentence": 3, "token": 50}
_MIN_WORDS: Final = {"line": 5, "paragraph": 5, "sentence": 10, "token": 1}
_DROP_SHARE: Final = 0.8  # of conversations and preference pairs, as DataComp-LM drops documents by their n-grams
_CHUNK_BYTES: Final = 1 << 20
_PART: Final = 1 << 10  # windows whose hashes go through one hash table
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)  # odd, so that different values stay different
_SALTS: Final = np.arange(3, dtype=np.uint64) * _SPREAD  # of the fields of a row


@dataclass(frozen=True, kw_only=True, slots=True)
class RepeatsConfig(IndexOptions):
    """Passages that stand in an earlier row, or earlier in their row, are cut out of the text."""

    unit: Unit = option("line", "what passages are made of; a paragraph ends at a blank line, a token is a word")
    window: int = option(
        0, "consecutive units that are compared as one; 0: 1 line or paragraph, 3 sentences, 50 tokens"
    )
    min_words: int = option(
        0, "do not compare windows of fewer words: headings, brackets, code that all files share; 0: 5, of sentences 10"
    )
    max_repeated_share: float = option(
        0.0, "cut nothing; drop rows of whose words a larger share lies in windows of earlier rows (conversations: 0.8)"
    )
    min_words_left: int = option(
        50, "drop a row that was cut and keeps fewer words than this", acts_with={"max_repeated_share": (0.0,)}
    )
    on: Literal["all", "prompt", "answer"] = option(
        "all", "the part of a conversation or preference pair to compare", acts_with=OF_TURNS
    )
    digits: Literal["as_written", "zero"] = option(
        "as_written",
        "zero: lines, paragraphs and sentences that differ in digits alone are the same",
        acts_with={"unit": ("line", "paragraph", "sentence")},
    )

    def __post_init__(self) -> None:
        CompareOptions.__post_init__(self)
        at_least(self, 0, "window", "min_words", "min_words_left")
        shares(self, "max_repeated_share")
        for name, defaults in (("window", _WINDOW), ("min_words", _MIN_WORDS)):
            object.__setattr__(self, name, getattr(self, name) or defaults[self.unit])  # so that manifests name them
        if self.unit == "token":
            at_least(self, 2, "window")
            if self.digits != "as_written":
                raise ConfigError(f"digits = {self.digits!r} does not go with unit = {self.unit!r}")


# Sketches: the hashes of a row's units.


class Units(NamedTuple):
    """Units of rows: those of row i are `[row_starts[i], row_starts[i + 1])`. One entry for each unit:

    hashes uint64; checks uint64, the second half of the hash; words uint32. Tokens have neither checks nor words (the
    arrays are empty): each is one word, whose 64 bits stand for both halves.
    """

    hashes: Hashes
    checks: Hashes
    words: npt.NDArray[np.uint32]
    row_starts: Numbers

    def columns(self) -> dict[str, pa.Array]:
        """The columns of sketches."""
        made = dict[str, pa.Array]()
        for name in _COLUMNS:
            numbers = getattr(self, name)
            starts = self.row_starts if len(numbers) else np.zeros_like(self.row_starts)
            kind = pa.large_list(pa.field("item", pa.from_numpy_dtype(numbers.dtype), nullable=False))
            made[name] = pa.LargeListArray.from_arrays(pa.array(starts), pa.array(numbers), type=kind)
        return made

    @classmethod
    def of(cls, sketches: pa.RecordBatch) -> "Units":
        """From the columns of sketches, without a copy."""
        offsets = sketches.column("hashes").offsets.to_numpy()
        hashes, checks, words = (sketches.column(name).flatten().to_numpy() for name in _COLUMNS)
        return cls(hashes, checks, words, np.asarray(offsets - offsets[0], np.int64))

    def taken(self, at: Numbers, row_starts: Numbers) -> "Units":
        """Some of the units, as the units of other rows."""
        checks, words = (self.checks[at], self.words[at]) if len(self.words) else (self.checks, self.words)
        return Units(self.hashes[at], checks, words, row_starts)

    def totals(self) -> Numbers:
        """The words of each row."""
        if not len(self.words):
            return np.diff(self.row_starts)
        return np.asarray(np.diff(np.concatenate(([0], np.cumsum(self.words, dtype=np.int64)))[self.row_starts]))


_COLUMNS: Final = ("hashes", "checks", "words")
_NONE = np.empty(0, np.uint64)
_NO_COUNTS = np.empty(0, np.uint32)


def hash_units(texts: pa.Array, unit: Unit, digits: str = "as_written") -> Units:
    """The units of each text. With `digits` "zero" every decimal digit counts as 0."""
    texts = comparable(texts, unit)
    if digits == "zero":
        texts = pc.replace_substring_regex(texts, r"\p{Nd}", "0")
    data, offsets = string_buffers(texts)
    found = [Units(_NONE, _NONE, _NO_COUNTS, np.zeros(1, np.int64))]
    found += [_hash_chunk(data, offsets[begin : end + 1], unit) for begin, end in row_chunks(offsets, _CHUNK_BYTES)]
    hashes, checks, words, row_starts = zip(*found, strict=True)
    sizes = np.concatenate([np.diff(starts) for starts in row_starts])
    starts = np.concatenate(([0], np.cumsum(sizes)))
    return Units(np.concatenate(hashes), np.concatenate(checks), np.concatenate(words), starts)


def _hash_chunk(data: npt.NDArray[np.uint8], offsets: Numbers, unit: Unit) -> Units:
    from datakit.dedup import _kernels_repeats as kernels

    if unit == "token":
        hashes, row_starts = hash_words_in(data, offsets)
        return Units(hashes, _NONE, _NO_COUNTS, row_starts)
    units = bounds(data, offsets, unit)
    # between two units there is only white space, which has no words
    words, starts = hash_words_in(data, np.append(units.starts, offsets[-1]))
    count = len(units.starts)
    made = Units(np.empty(count, np.uint64), np.empty(count, np.uint64), np.empty(count, np.uint32), units.row_starts)
    kernels.hash_units(words, starts, made.hashes, made.checks, made.words)
    return made


def units_of_rows(batch: pa.RecordBatch, config: RepeatsConfig) -> Units:
    """The units of each row, those of several fields (prompt, chosen, rejected) after one another. Equal units of
    different fields differ."""
    fields = compared_fields(batch, config.on)
    count, options = len(fields), (config.unit, config.digits)
    if count == 1:
        return hash_units(fields[0], *options)
    by_row = np.arange(count * len(batch)).reshape(count, -1).T.ravel()
    units = hash_units(pa.concat_arrays(fields).take(pa.array(by_row)), *options)
    salts = np.tile(_SALTS[:count], len(batch)).repeat(np.diff(units.row_starts))
    checks = units.checks ^ salts if len(units.checks) else units.checks
    return Units(units.hashes ^ salts, checks, units.words, units.row_starts[::count].copy())


def anchors_of(units: Units, config: RepeatsConfig) -> tuple[Hashes, npt.NDArray[np.uint32], Numbers]:
    """The anchors of the windows of some rows, as the kernel `winnow` makes them; NONE for one of too few words.

    (hashes, the first window of each, how many each row has)
    """
    from datakit.dedup import _kernels_repeats as kernels
    from datakit.text._kernels_text import NONE

    hashes, firsts = np.empty(len(units.hashes), np.uint64), np.empty(len(units.hashes), np.uint32)
    starts, size = np.empty_like(units.row_starts), config.window
    short = size // 2 if config.unit == "token" else size
    kernels.winnow(units.hashes, units.row_starts, size, short, hashes, firsts, starts)
    hashes, firsts, counts = hashes[: starts[-1]], firsts[: starts[-1]], np.diff(starts)
    if len(units.words):
        until = np.concatenate(([0], np.cumsum(units.words, dtype=np.int64)))
        begins = np.repeat(units.row_starts[:-1], counts) + firsts
        hashes[until[begins + size] - until[begins] < config.min_words] = NONE
    return hashes, firsts, counts


# Repeats: from the sketches of rows that share anchors to what is cut where.


class Found(NamedTuple):
    """Runs of repeated units of some rows, int64 (runs,) each: the row, its first unit, its end, the row that has the
    units, and their words."""

    rows: Numbers
    firsts: Numbers
    ends: Numbers
    owners: Numbers
    words: Numbers


@dataclass(frozen=True, slots=True)
class Repeats:
    """The units that lie in windows of repeated anchors, and what is decided about them.

    Those of row i are `[row_starts[i], row_starts[i + 1])`. `unit_of` int32: their numbers in the row; `weights`
    uint32: their words; `owner_of`: the number of the row that a repeated unit stays in, else -1. `totals` int64
    (rows,): the words of each row. `dropped` bool (rows,).
    """

    row_starts: Numbers
    unit_of: npt.NDArray[np.int32]
    weights: npt.NDArray[np.uint32]
    owner_of: Numbers
    totals: Numbers
    dropped: Flags
    facts: dict[str, int]

    def runs(self, begin: int, end: int) -> Found:
        """The runs of the rows from `begin` to `end`, numbered from 0 on."""
        low, high = self.row_starts[begin], self.row_starts[end]
        owner_of, unit_of = self.owner_of[low:high], self.unit_of[low:high].astype(np.int64)
        rows = np.repeat(np.arange(end - begin), np.diff(self.row_starts[begin : end + 1]))
        joined = np.zeros(len(rows) + 1, np.bool_)  # whether unit i belongs to the run of the one before it
        joined[1:-1] = (rows[1:] == rows[:-1]) & (owner_of[1:] == owner_of[:-1]) & (unit_of[1:] == unit_of[:-1] + 1)
        firsts = np.flatnonzero((owner_of >= 0) & ~joined[:-1])
        lasts = np.flatnonzero((owner_of >= 0) & ~joined[1:])
        until = np.concatenate(([0], np.cumsum(self.weights[low:high], dtype=np.int64)))
        words = until[lasts + 1] - until[firsts]
        return Found(rows[firsts], unit_of[firsts], unit_of[lasts] + 1, owner_of[firsts], words)


def find_repeats(rows: Rows, config: RepeatsConfig, memory: Memory) -> Repeats:
    """Compare the sketches of rows. Those of earlier runs come first: they are passages between what was cut there, and
    nothing is cut out of them."""
    from datakit.dedup import _kernels_repeats as kernels
    from datakit.text._kernels_text import NONE

    def parts() -> Iterator[tuple[Units, tuple[Any, Any]]]:
        for batch, part in zip(rows.batches, pairwise(rows.begins), strict=True):
            yield Units.of(batch), part
            memory.release()

    size, most, last = config.window, sum(len(units.hashes) for units, _ in parts()), 0
    anchors, firsts, chosen = (memory.full((most,), 0, kind) for kind in (np.uint64, np.uint32, np.bool_))
    anchor_counts = memory.full(rows.numbers.shape, 0, np.int64)
    for one, (begin, end) in parts():
        hashes, windows, anchor_counts[begin:end] = anchors_of(one, config)
        anchors[last : last + len(hashes)], firsts[last : last + len(hashes)] = hashes, windows
        last += len(hashes)
    anchors, chosen, starts = anchors[:last], chosen[:last], memory.sums(anchor_counts)
    if config.unit == "token":
        np.greater_equal(equal_windows(anchors, anchors, memory)[0], 0, out=chosen)
    else:  # each is a window: those of too few words are left out
        np.not_equal(anchors, NONE, out=chosen)
    counts, totals = (memory.full(rows.numbers.shape, 0, np.int64) for _ in range(2))
    kinds = (np.int32, np.uint64, np.uint64, np.uint32)
    for one, (begin, end) in parts():
        totals[begin:end] = one.totals()
        nothing = (np.empty(0, kind) for kind in kinds)
        kernels.find_candidates(one, firsts, starts[begin : end + 1], chosen, size, counts[begin:end], *nothing)
    row_starts = memory.sums(counts)
    unit_of, hashes, checks, weights = made = [memory.full((int(row_starts[-1]),), 0, kind) for kind in kinds]
    for one, (begin, end) in parts():
        own = (array[row_starts[begin] : row_starts[end]] for array in made)
        kernels.find_candidates(one, firsts, starts[begin : end + 1], chosen, size, counts[begin:end], *own)
    groups, repeated, compared = equal_windows(hashes, checks, memory)
    owner, owner_of = (memory.full((count,), -1, np.int64) for count in (repeated, len(hashes)))
    first_of_texts, dropped = _first_of_texts(rows), memory.full(rows.numbers.shape, 0, np.bool_)
    for block in reversed([*blocks(rows.old)]):  # in reverse, so that of rows of earlier runs the first one owns
        low, high = row_starts[block.start], row_starts[block.stop]
        known = np.flatnonzero(groups[low:high] >= 0)[::-1]
        owner[groups[low + known]] = np.repeat(first_of_texts[block], counts[block])[known]
    share = Fraction(config.max_repeated_share).limit_denominator(1000).as_integer_ratio()
    for block in blocks(len(rows.numbers), rows.old):
        kernels.choose(
            row_starts[: block.stop + 1], groups, weights, totals, size, config.min_words_left, share, block.start,
            owner, owner_of, dropped,
        )  # fmt: skip
        memory.release()
    facts = {"windows_compared": compared, "windows_repeated": repeated}
    return Repeats(row_starts, unit_of, weights, owner_of, totals, dropped, facts)


def equal_windows(hashes: Hashes, checks: Hashes, memory: Memory) -> tuple[Numbers, int, int]:
    """(the number of the group of each of some equal windows, -1 for one without an equal; groups; windows)."""
    from datakit.dedup import _kernels_repeats as kernels

    starts = np.zeros((1 << max(len(hashes) // _PART, 1).bit_length()) + 2, np.int64)
    order, numbers = (memory.full(hashes.shape, value, np.int64) for value in (0, -1))
    largest = kernels.divide(hashes, starts, order)  # one part has all values that are equal
    table = memory.full((4 << largest.bit_length(),), 0, np.int64)
    return numbers, *kernels.number_equals(hashes, checks, starts, order, table, numbers)


def _first_of_texts(rows: Rows) -> Numbers:
    """For each row of an index the first of those that are of the same text, int64 (old,)."""
    first = np.arange(rows.old)
    for batch, begin in zip(rows.batches, rows.begins[rows.begins < rows.old], strict=False):
        keys = batch.column("row_key").to_numpy()
        first[begin + 1 : begin + len(keys)][keys[1:] == keys[:-1]] = 0
    return np.maximum.accumulate(first)


# The stage.


@dataclass(frozen=True)
class DedupRepeats(IndexedStage):
    """Cuts repeated passages, or drops rows that mostly consist of them; the reason is `duplicate_passages`.

    A kept row that loses a passage is edited: it gets a new `content_hash`, and its pieces are recorded in `cuts`.
    Dropped rows keep their text.
    """

    config: RepeatsConfig = field(default_factory=RepeatsConfig)

    name: ClassVar[str] = "dedup_repeats"
    help: ClassVar[str] = "The cut text is recorded in cuts/."
    Config: ClassVar[type] = RepeatsConfig

    def for_kind(self, kind: str) -> Self:
        """The stage for rows of a kind: nothing is cut out of conversations and preference pairs.

        A unit of 20 bytes has a key; of tokens, of 8 bytes, a window has about four (see `winnow`).
        """
        made = replace(self, key_bytes=2 * self.config.window if self.config.unit == "token" else 20)
        if kind == "document" or self.config.max_repeated_share:
            return made
        return replace(made, config=replace(self.config, max_repeated_share=_DROP_SHARE))

    def open(self) -> None:
        """Build the tables of characters."""
        character_table()
        flags()

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The `row_columns`; the `hashes`, `checks` and `words` of each row's units."""
        return pa.record_batch(row_columns(batch) | units_of_rows(batch, self.config).columns())

    def keys(self, batch: pa.RecordBatch) -> Iterator[tuple[int, Hashes, Numbers]]:
        """The anchors: equal windows have equal ones."""
        from datakit.text._kernels_text import NONE

        hashes, _, counts = anchors_of(Units.of(batch), self.config)
        rows = np.repeat(np.arange(batch.num_rows), counts)
        compared = hashes != NONE
        yield 0, hashes[compared] * _SPREAD, rows[compared]  # anchors are mostly small; ranges of keys are cut evenly

    def totals(self, batch: pa.RecordBatch) -> dict[str, dict[str, int]]:
        """The words by source, and the units."""
        units = Units.of(batch)
        return {"words": sums_of(batch.column("source"), units.totals()), "units": {"all": len(units.hashes)}}

    def index(self, sketches: pa.RecordBatch) -> pa.RecordBatch:
        """Of each kept row in a batch of sketches what lies between its cuts and holds a window, each as a row.

        A row without any has one without units.
        """
        decided, units = self.look_up(sketches.column("row_key")), Units.of(sketches)
        stays = decided.column("reason").is_null().to_numpy(zero_copy_only=False)
        runs, rows = decided_runs(decided), np.arange(len(stays))
        before = np.searchsorted(runs.rows, rows)  # the first run of each row
        begins = np.insert(runs.ends, before, 0)  # a passage begins with its row, and behind each cut
        ends = np.insert(runs.firsts, np.searchsorted(runs.rows, rows, side="right"), np.diff(units.row_starts))
        row_of = np.sort(np.concatenate([rows, runs.rows]), kind="stable")
        long = ends - begins >= self.config.window
        alone = np.zeros(len(row_of), np.bool_)
        alone[before + rows] = np.bincount(row_of[long], minlength=len(stays)) == 0
        chosen = (long | alone) & stays[row_of]
        begins, row_of, lengths = begins[chosen], row_of[chosen], np.where(long, ends - begins, 0)[chosen]
        starts = np.concatenate(([0], np.cumsum(lengths)))
        at = np.arange(starts[-1]) + np.repeat(units.row_starts[row_of] + begins - starts[:-1], lengths)
        head = {name: sketches.column(name).take(pa.array(row_of)) for name in ("row_key", "id")}
        return pa.record_batch(head | units.taken(at, starts).columns())

    def decide_rows(self, rows: Rows, memory: Memory) -> Decided:
        """Decide about the rows of one group."""
        repeats, lost = find_repeats(rows, self.config, memory), Counter[str]()
        passages = memory.full(rows.numbers.shape, 0, np.int64)
        decisions = self._decisions(rows, repeats, passages, lost, memory)
        return Decided(decisions, passages, {"lost": lost, "facts": repeats.facts})

    def _decisions(
        self, rows: Rows, repeats: Repeats, passages: Numbers, lost: Counter[str], memory: Memory
    ) -> Iterator[pa.RecordBatch]:
        """The decisions, batch by batch; counts the passages that each row is named for, and the words that are lost by
        source."""
        for batch, (begin, end) in zip(rows.batches, pairwise(rows.begins), strict=True):
            if begin < rows.old:
                continue
            runs, dropped, total = repeats.runs(begin, end), repeats.dropped[begin:end], repeats.totals[begin:end]
            repeated = np.bincount(runs.rows, runs.words, end - begin).astype(np.int64)
            np.add.at(passages, runs.owners, 1)
            lost.update(sums_of(batch.column("source"), np.where(dropped, total, repeated)))
            changed, cut = np.flatnonzero(repeated), ~dropped[runs.rows]
            stays, none = pa.array(~dropped[changed]), pa.scalar(None, pa.string())
            known, all_of, new = (pa.array(n[changed]).cast(pa.string()) for n in (repeated, total, total - repeated))
            detail = [known, " of its ", all_of, " words stand before it, ", new, " are new", ""]
            columns = {
                "row_key": batch.column("row_key").take(pa.array(changed)),
                "reason": pc.if_else(stays, none, "duplicate_passages"),
                "detail": pc.if_else(stays, none, pc.binary_join_element_wise(*detail)),
            } | self.survivors_named(rows, _most_of(runs, dropped, begin)[changed])
            kept_in = self.survivors_named(rows, runs.owners[cut])
            lists = {
                "cut": pa.array(runs.firsts[cut], pa.int32()),
                "cut_end": pa.array(runs.ends[cut], pa.int32()),
                "kept_in": kept_in["duplicate_of"],
                "kept_in_run": kept_in["duplicate_in"],
            }
            ends = np.cumsum([0, *np.bincount(runs.rows[cut], minlength=len(dropped))[changed]])
            offsets = pa.array(ends, pa.int32())
            columns |= {name: pa.ListArray.from_arrays(offsets, column) for name, column in lists.items()}
            yield pa.record_batch(columns)
            memory.release()

    def summarize(self, compared: Compared) -> dict[str, Any]:
        """Counts and alarms."""
        sums = compared.sums
        losses = Losses("words", sums["words"], sums["lost"])
        return {
            "units": sums["units"]["all"],
            "windows_compared": sums["facts"]["windows_compared"],
            "windows_repeated": sums["facts"]["windows_repeated"],
            "words": losses.whole.total(),
            "words_lost": losses.lost.total(),
            "alarms": losses.alarms(self.config.max_loss, MIN_ALARM_WORDS, _CHECK, compared.survivors, "passages"),
        }

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Look the rows up by row_key, and cut."""
        found, unit = self.look_up(batch.column("row_key")), self.config.unit
        runs = decided_runs(found)
        edited = pa.array(np.bincount(runs.rows, minlength=batch.num_rows) > 0)
        columns, tables, bytes_cut = dict[str, pa.Array](), dict[str, pa.RecordBatch](), 0
        if len(runs.rows):
            columns, cuts = edit(batch, found, edited, unit)
            bytes_cut = int(pc.sum(pc.binary_length(cuts.column("text"))).as_py() or 0)
            tables = {CUTS: cuts}
        return Decision(
            reasons=found.column("reason"),
            detail=found.column("detail"),
            columns=columns,
            drop_columns=self.survivor_columns(found),
            side_tables=tables,
            notes={f"{unit}s_cut": int((runs.ends - runs.firsts).sum()), "bytes_cut": bytes_cut},
            edited=edited,
        )


def _most_of(runs: Found, dropped: Flags, begin: int) -> Numbers:
    """For each row the other row that has most of its words, the earlier of two; -1 where it is not dropped, or only
    repeats itself. The first row has the number `begin`."""
    most = np.full(len(dropped), -1, np.int64)
    chosen = dropped[runs.rows] & (runs.owners != runs.rows + begin)
    pairs, place = np.unique(np.stack([runs.rows[chosen], runs.owners[chosen]]), axis=1, return_inverse=True)
    words = np.bincount(place.ravel(), runs.words[chosen], pairs.shape[1])
    order = np.lexsort((pairs[1], -words, pairs[0]))
    row, first = np.unique(pairs[0][order], return_index=True)
    most[row] = pairs[1][order][first]
    return most
