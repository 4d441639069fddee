"""Conversations and preference pairs are compared turn by turn: two rows are equal if their roles, tools and turns are.

Each turn has one digest, of its role, its name, its texts and the calls of tools in it, each with its length before it.
The digests are chained, so that the state after each turn stands for the beginning of the row up to there. One turn
more or less, or a text that moved from one turn to another, makes another digest; a context that rows share, however
long, says nothing.

`match = "exact"`: two texts are equal that differ in Unicode form (NFC) and white space only; indentation counts.
`match = "loose"`: but for code between backticks, letter case and sentence marks at the ends of words do not count
either.
`match = "near"`: rows whose text shares a band of MinHash values are compared, turn by turn, by the Jaccard similarity
of their shingles, and the least similar turn decides. A turn shorter than a shingle has one value, its own hash, so it
must be equal. The number of the turn is in the high bits of its values, so that the set of a row holds all of its
turns.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import Bytes, string_array, string_buffers
from datakit.dedup.comparison import Hashes, Numbers, row_columns, string_column
from datakit.dedup.minhash import ShingleSets, bands_of, shingle_sets, text_of
from datakit.dedup.shuffle import digest_halves
from datakit.dedup.stage import DedupConfig
from datakit.kernels import kernel
from datakit.text._kernels_text import decode, finalize, fold_expanding
from datakit.text.words import (
    PAUSES,
    TERMINALS,
    binary_digest,
    character_table,
    compose,
    hash_values,
    normalize,
)

DIGESTS = pa.large_list(pa.field("item", pa.binary(16), nullable=False))
TURN_SHIFT = 48
"""The bits of a shingle's hash in the set of a row; the number of its turn is above them."""

_MAX_TURNS = (1 << 64 - TURN_SHIFT) - 2  # later ones share a number: unsorted, they may seem less similar
_CONTEXT = pa.array(["system", "developer", "tool", "function"])
TEXTS = ("role", "name", "reasoning_content", "content", "tool_calls")


@dataclass(frozen=True, slots=True)
class RowTurns:
    """The turns of some rows, one after another; those of row i are from `starts[i]` to `starts[i + 1]`.

    field int64 (turns,): 0 for a conversation or the prompt of a pair, 1 for the chosen answer, 2 for the rejected one.
    The others are string arrays (turns,). tools: the schemas of each row, a string array (rows,).
    """

    starts: Numbers
    field: Numbers
    tools: pa.Array
    role: pa.Array
    name: pa.Array
    reasoning_content: pa.Array
    content: pa.Array
    tool_calls: pa.Array


def turns_of(batch: pa.RecordBatch, config: DedupConfig) -> RowTurns:
    """What is compared of each row: the turns that `on` asks for, in order.

    With `include_system` also system prompts, tool results and the schemas of tools; the latter not of answers alone.
    """
    conversation = "messages" in batch.schema.names
    columns = ["messages"] if conversation else ["prompt", "chosen", "rejected"]
    asked = {"all": columns, "prompt": columns[:1], "answer": columns[-2:]}[config.on]
    parts = [batch.column(name) for name in asked]
    turns = pa.concat_arrays([part.flatten() for part in parts])
    counts = [pc.fill_null(pc.list_value_length(part), 0).to_numpy(zero_copy_only=False) for part in parts]
    row = np.concatenate([np.repeat(np.arange(len(batch)), count) for count in counts])
    field = np.repeat([columns.index(name) for name in asked], [int(count.sum()) for count in counts])
    role = pc.fill_null(pc.struct_field(turns, "role"), "")
    context = pc.is_in(role, _CONTEXT).to_numpy(zero_copy_only=False)
    wanted = ~context
    if conversation and config.on != "all":
        said = pc.equal(role, "assistant").to_numpy(zero_copy_only=False)
        wanted &= said if config.on == "answer" else ~said
    if config.include_system and not (conversation and config.on == "answer"):
        wanted |= context
    order = np.flatnonzero(wanted)
    order = order[np.argsort(row[order], kind="stable")]
    texts = {name: _strings(turns, name, order) for name in TEXTS}
    tools = pa.array([""] * len(batch), pa.string())
    if "tools" in batch.schema.names and config.include_system and config.on != "answer":
        tools = pc.fill_null(batch.column("tools"), "").cast(pa.string())
    starts = np.searchsorted(row[order], np.arange(len(batch) + 1)).astype(np.int64)
    return RowTurns(starts, field[order], tools=tools, **texts)


def _strings(turns: pa.Array, name: str, order: Numbers) -> pa.Array:
    """A field of the chosen turns as strings; "" where it is null or missing."""
    if turns.type.get_field_index(name) < 0:
        return pa.array([""] * len(order), pa.string())
    return pc.fill_null(pc.struct_field(turns, name), "").cast(pa.string()).take(pa.array(order))


# The form by which texts are equal.

_WORD, _SPACELESS, _SPACE, _LETTER, _ACCENT = 1, 2, 4, 16, 32  # as in words.CharacterTable
_FOLD_SHIFT = 16
_TAB = 4  # columns
_BACKTICK = 0x60

# Kinds of characters beside those of the table: the end of a line; a sentence mark; what may stand between a word and
# its sentence mark (a quote, a closing bracket, Markdown's emphasis); what may not; and Spanish's marks before a word.
_BREAK, _MARK, _QUOTE, _CLOSING, _EMPHASIS, _OPENING, _INVERTED = 1, 2, 4, 8, 16, 32, 64


@lru_cache(maxsize=1)
def kind_table() -> Bytes:
    """uint8[0x110000], read-only: the kind of every code point, 0 for most."""
    table = np.zeros(0x110000, np.uint8)
    by_category = {"Pi": _QUOTE, "Pf": _QUOTE, "Ps": _OPENING, "Pe": _CLOSING}
    table[: 1 << 16] = [by_category.get(unicodedata.category(chr(code)), 0) for code in range(1 << 16)]
    for kind, chars in (
        (_BREAK, "\n\v\f\r\x85\u2028\u2029"),
        (_MARK, TERMINALS + PAUSES),
        (_QUOTE, "\"'"),
        (_EMPHASIS, "*_"),
        (_INVERTED, "¿¡"),
    ):
        table[[ord(char) for char in chars]] = kind
    table.setflags(write=False)
    return table


@kernel
def _entry(code, pages, entries):  # type: ignore[no-untyped-def]
    return np.int64(entries[np.int64(pages[code >> 8]) << 8 | code & 255])


@kernel(inner=True)
def _tail(data, i, end, pages, entries, kinds):  # type: ignore[no-untyped-def]
    """(the first byte from i on of something else than sentence marks, quotes, emphasis and closing brackets; whether
    the word before them ends there: at white space, at a script that is written without spaces, or at the end)."""
    while i < end:
        code, width = decode(data, i, end)
        if not kinds[code] & (_MARK | _QUOTE | _EMPHASIS | _CLOSING):
            return i, _entry(code, pages, entries) & (_SPACE | _SPACELESS) > 0
        i += width
    return end, True


@kernel
def _plain(data, i, end, loose, pages, entries, folds, kinds, out, at):  # type: ignore[no-untyped-def]
    """Write one text as `_plain_turns` says; returns where it ends."""
    start, gap, columns = at, 0, 0  # gap: 1 after white space, 2 after a line break, with `columns` behind it
    ticks, opened = 0, 0  # backticks right before this place, and those that opened the code here
    word, spaceless, letters = False, False, 0  # a word stands before; its script has no spaces; its last letters
    tail, ends = i, False  # what follows this place, as `_tail` says; the same for all marks before `tail`
    while i < end:
        code, width = decode(data, i, end)
        entry, kind = _entry(code, pages, entries), kinds[code]
        begin, i = i, i + width
        if ticks and code != _BACKTICK:
            opened = 0 if opened == ticks else opened if opened else ticks
            word, letters, ticks = True, 2, 0
        if entry & _SPACE:
            if kind == _BREAK:
                gap, columns = 2, 0
            else:
                gap = max(gap, 1)
                columns = (columns // _TAB + 1) * _TAB if code == 0x09 else columns + 1
            word, letters = False, 0
            continue
        ticks += loose and code == _BACKTICK
        prose = loose and opened == 0
        if prose and kind == _MARK and word:
            if begin >= tail:
                tail, ends = _tail(data, i, end, pages, entries, kinds)
            factorial = letters < 2 and not spaceless and (code == 0x21 or code == 0xFF01)
            if (ends or spaceless) and not factorial:
                continue
        elif prose and kind == _INVERTED:
            continue
        if gap and at > start:
            out[at] = 0x0A if gap == 2 and columns else 0x20
            at += 1
            for _ in range(columns if gap == 2 else 0):
                out[at] = 0x20
                at += 1
        gap = 0
        fold = entry >> _FOLD_SHIFT
        if prose and fold:
            at = fold_expanding(fold, folds, out, at)
        else:
            for k in range(begin, i):
                out[at] = data[k]
                at += 1
        if entry & _WORD:
            word, spaceless = True, entry & _SPACELESS > 0
        elif kind & (_CLOSING | _OPENING):
            word = kind == _CLOSING
        if entry & _LETTER:
            letters += 1
        elif not (entry & _ACCENT or kind & (_QUOTE | _CLOSING)):
            letters = 0
    return at


@kernel
def _plain_turns(data, offsets, loose, pages, entries, folds, kinds, out, out_offsets):  # type: ignore[no-untyped-def]
    """Each text with its white space as single spaces, but for the indentation of its lines.

    A line break before white space is a line feed and as many spaces as there are columns: so lines without indentation
    may be broken anywhere, and no other text has a line feed. White space at both ends is left out.

    With `loose` a text is case-folded and loses the sentence marks at the ends of words, but for code: from a run of
    backticks to the next run of as many (CommonMark's rule), or to the end. A mark is at the end of a word if `_tail`
    says so or if the word is of a script without spaces; so 3.5, 1,000 and a.b keep theirs, and so does a mark behind
    white space, as in `a ? b : c`. An exclamation mark after a digit or a single letter may be a factorial and stays.
    All this depends on the result without `loose` alone: texts that are equal stay equal.

    `out` holds 4 times the bytes of the texts: a tab becomes 4 spaces, folding makes at most three bytes of one.
    """
    at = 0
    for row in range(len(offsets) - 1):
        out_offsets[row] = at
        at = _plain(data, offsets[row], offsets[row + 1], loose, pages, entries, folds, kinds, out, at)
    out_offsets[len(offsets) - 1] = at


def plain(texts: pa.Array, loose: bool) -> pa.Array:
    """Each text in the form that is equal for texts that count as equal: see `_plain_turns`."""
    table = character_table()
    data, offsets = string_buffers(compose(texts))
    # virtual memory for the largest result: only what is written is ever taken
    out, ends = np.empty(4 * int(offsets[-1] - offsets[0]) + 4, np.uint8), np.empty_like(offsets)
    _plain_turns(data, offsets, loose, table.pages, table.entries, table.folds, kind_table(), out, ends)
    return string_array(out[: ends[-1]].copy(), ends)


# Digests.


@kernel
def _chain(digests, starts, states, every):  # type: ignore[no-untyped-def]
    """Chain the digests of turns, uint64 (turns, 2). `states` uint64 (rows, 2) holds where each row begins, and becomes
    its digest; `every` uint64 (turns, 2) becomes the state after each turn.

    The turns of row r are those from `starts[r]` to `starts[r + 1]`. A step is a bijection of the state for one turn,
    and of the turn for one state: two rows that differ in one turn alone never meet.
    """
    for row in range(len(starts) - 1):
        a, b = states[row, 0], states[row, 1]
        for turn in range(starts[row], starts[row + 1]):
            a = finalize(a ^ digests[turn, 0]) + b
            b = finalize(b ^ digests[turn, 1]) + a
            every[turn, 0], every[turn, 1] = a, b
        states[row, 0], states[row, 1] = a, b


def chained(turns: RowTurns, parts: Sequence[pa.Array]) -> tuple[Hashes, Hashes]:
    """(the digest of each row, the state after each turn), uint64 (n, 2); the digest of a turn is of some string
    arrays.

    A turn is hashed as its field and the lengths of its parts, each with a colon behind it, and then the parts. So no
    text can be taken for the end of one part and the beginning of another.
    """
    lengths = [pa.array(turns.field), *(pc.binary_length(part) for part in parts)]
    head = pc.binary_join_element_wise(*(length.cast(pa.string()) for length in lengths), "", ":")
    digests = digest_halves(binary_digest(pc.binary_join_element_wise(head, *parts, "")))
    states, every = digest_halves(binary_digest(turns.tools)).copy(), np.empty_like(digests)
    _chain(np.ascontiguousarray(digests), turns.starts, states, every)
    return states, every


def digests_of(turns: RowTurns, loose: bool) -> tuple[Hashes, Hashes]:
    """The digests of rows, and of their beginnings, as `chained` gives them."""
    texts = plain(turns.reasoning_content, loose), plain(turns.content, loose)
    return chained(turns, [turns.role, turns.name, *texts, turns.tool_calls])


def sketch(batch: pa.RecordBatch, config: DedupConfig) -> pa.RecordBatch:
    """For each row its `row_columns`, its number of `turns`, its digests `digest` (exact) and `loose`.

    Where they are needed also `whole`, the digest of everything in the row (to keep several answers of a prompt),
    `prefixes`, the digests of the proper beginnings of a conversation, and the bands and `shingles` of near duplicates.
    """
    turns = turns_of(batch, config)
    exact, loose = (digests_of(turns, how) for how in (False, True))
    head = row_columns(batch, config.policy, lambda: pc.utf8_length(normalize(text_of(batch, config))))
    columns = head | {
        "lang": string_column(batch, "lang"),
        "turns": pa.array(np.diff(turns.starts).astype(np.uint64)),
        "digest": _binary(exact[0]),
        "loose": _binary(loose[0]),
    }
    if config.keep_per_prompt > 1:
        everything = replace(config, on="all", keep_per_prompt=1, include_system=True)
        columns["whole"] = _binary(digests_of(turns_of(batch, everything), False)[0])
    if config.prefix and config.on == "all" and "messages" in batch.schema.names:
        inner = np.ones(len(exact[1]), np.bool_)
        inner[turns.starts[1:][np.diff(turns.starts) > 0] - 1] = False  # the last turn of a row ends the whole of it
        states = (loose if config.match == "loose" else exact)[1][inner]
        ends = np.concatenate(([0], np.cumsum(np.maximum(np.diff(turns.starts) - 1, 0))))
        columns["prefixes"] = pa.LargeListArray.from_arrays(pa.array(ends), _binary(states), type=DIGESTS)
    if config.match == "near":
        columns |= _near_columns(batch, turns, config)
    return pa.record_batch(columns)


def _binary(halves: Hashes) -> pa.Array:
    data = pa.py_buffer(np.ascontiguousarray(halves))
    return pa.Array.from_buffers(pa.binary(16), len(halves), [None, data])


def _near_columns(batch: pa.RecordBatch, turns: RowTurns, config: DedupConfig) -> dict[str, pa.Array]:
    """The bands of each row's text, and the `shingles` of its turns; null where the text is shorter than a shingle.

    What must be equal is mixed into the bands: rows of other roles, calls or tools share none.
    """
    found = shingle_sets(text_of(batch, config), config.shingle_words)
    frame = chained(turns, [turns.role, turns.name, turns.tool_calls])[0]
    bands = bands_of(found, config) ^ frame[:, :1]
    sets, starts = sets_of_turns(turns, config.shingle_words), turns.starts
    lengths = sets.starts[starts[1:] * 2] - sets.starts[starts[:-1] * 2]
    long = np.diff(found.starts) > 0
    kept = ShingleSets(
        sets.hashes[np.repeat(long, lengths)], np.concatenate(([0], np.cumsum(np.where(long, lengths, 0))))
    )
    named = {f"band{n}": pa.array(np.ascontiguousarray(band)) for n, band in enumerate(bands.T)}
    return named | {"shingles": kept.lists()}


def sets_of_turns(turns: RowTurns, shingle_words: int) -> ShingleSets:
    """Two sets for each turn, of its reasoning and of its content; each value has the number of its set in the row
    above `TURN_SHIFT`, so that the sets of a row, one after another, are one ascending set."""
    number = len(turns.content)
    place = np.arange(2 * number).reshape(2, number).T.ravel()  # reasoning and content of each turn side by side
    texts = pa.concat_arrays([turns.reasoning_content, turns.content]).take(pa.array(place))
    found = shingle_sets(compose(texts), shingle_words, np.uint64)
    sizes = np.diff(found.starts)
    short = (sizes == 0) & ((place >= number) | (pc.binary_length(texts).to_numpy() > 0))
    starts = np.concatenate(([0], np.cumsum(sizes + short)))
    values, of_short = np.empty(starts[-1], np.uint64), np.zeros(starts[-1], np.bool_)
    of_short[starts[:-1][short]] = True
    values[of_short] = hash_values(plain(texts.filter(pa.array(short)), False))
    values[~of_short] = found.hashes
    at = np.arange(2 * number) - np.repeat(2 * turns.starts[:-1], 2 * np.diff(turns.starts))
    above = np.minimum(np.repeat(at, np.diff(starts)), _MAX_TURNS).astype(np.uint64) << np.uint64(TURN_SHIFT)
    return ShingleSets(values >> np.uint64(64 - TURN_SHIFT) | above, starts)
