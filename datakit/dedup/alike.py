"""Conversations are compared turn by turn, by the words that count; so are short texts, formulas and code.

Two conversations are duplicates if they have the same roles in the same order and every turn is alike its counterpart.
Two turns are alike if the same words that count stand in the same order. Context that both have, however long, says
nothing: one other word is a difference. What does not count:

- politeness (`politeness`): formulas, and clauses that only have words of politeness, unless a turn is about them:
  inside of a clause, in quotes, after a colon, in a question after a line break; articles and particles;
- letter case, white space, and punctuation. Signs count: `+ = < % $` always, `- * / .` between operands. In a formula
  or code (at least one sign for four words; `compare = "characters"`: everywhere) all signs count but `.,:?!` before a
  space, and so do capitals, except the first one of a sentence. If a line goes in after one that ends in a colon, as
  in Python, the levels of indentation count, by order and not by width. In the midst of prose a piece of code counts
  in the same way: between backticks, or with a sign of code (`f(*args)`, `ls -S`, `$HOME`). In prose capitals say
  nothing, but two different ones do in words of fewer than four letters (Co and CO, MW and mW);
- spelling: accents, British spelling and one typing error in a word, if the other word is none of `lookalikes`; see
  `edits_of_spelling`. A word may stand twice. Numbers, signs and the calls of tools have one spelling.

The share of words that are spelled alike must reach `threshold`; in turns of fewer words than a shingle, of letters. A
long answer in prose may lack, add or replace a word that is no number, sign, negation or name: each counts as 8
misspelled words (about as many shingles change), a replaced one as 16. A system prompt, the result of a tool and its
call are turns too. Texts are first normalised by NFKC, but 5² is not 52.

The decision about two rows depends on these two rows alone. So it does not change with the dataset around them, and
`--against` gives what a joint run gives. A conversation that is the beginning of another is its prefix.

Rows are found by keys, not by MinHash bands: hashes of the first or the last letters of all words (a misspelled word
shares one of them), questions and answers apart; of long answers two minima of the hashes of their words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import Offsets, row_chunks, string_buffers
from datakit.dedup import _kernels_streams as kernels
from datakit.dedup.exact import Memory, SketchRows
from datakit.dedup.politeness import phrase_table
from datakit.dedup.spelling import signs, spelled_out
from datakit.dedup.stage import DedupConfig
from datakit.text.words import character_table, normalize

KEYS = 10
"""Hashes by which a row is found: 9 of which similar rows share one, and that of the whole row for prefixes."""

ANSWER, PROSE, CODE = 0x41, 0x50, 0x43
"""Modes of segments, as the kernels name them."""

_CHUNK_BYTES = 1 << 20
# The segments of a conversation: what each message says, thinks and calls.


@dataclass(frozen=True, slots=True)
class Segments:
    """The texts of some conversations, one after another.

    texts and labels: string arrays (segments,); modes uint8 (segments,) and message_starts bool (segments,) as the
    kernel takes them; row_starts int64 (rows + 1,).
    """

    texts: pa.Array
    labels: pa.Array
    modes: npt.NDArray[np.uint8]
    message_starts: npt.NDArray[np.bool_]
    row_starts: npt.NDArray[np.int64]


_CONTEXT = pa.array(["system", "developer", "tool", "function"])


def segments(batch: pa.RecordBatch, config: DedupConfig) -> Segments:
    """What is compared of each conversation of a batch: the turns that `on` asks for, in order.

    With `include_system` also system prompts, tool results and the schemas of tools, except for `on = "answer"`. The
    calls of tools belong to the turn that makes them, their arguments included.
    """
    messages = batch.column("messages")
    turns = messages.flatten()
    lengths = pc.fill_null(pc.list_value_length(messages), 0).to_numpy(zero_copy_only=False)
    row = np.repeat(np.arange(len(batch)), lengths)
    role = pc.fill_null(pc.struct_field(turns, "role"), "")
    said = pc.equal(role, "assistant").to_numpy(zero_copy_only=False)
    context = pc.is_in(role, _CONTEXT).to_numpy(zero_copy_only=False)
    wanted = {"all": ~context, "prompt": ~said & ~context, "answer": said}[config.on]
    if config.include_system and config.on != "answer":
        wanted |= context
    present = {field.name for field in turns.type}

    def values(name: str) -> pa.Array:
        return pc.fill_null(pc.struct_field(turns, name), "") if name in present else pa.array([""] * len(turns))

    named = pc.if_else(pa.array(context), pc.binary_join_element_wise(role, values("name"), ":"), role)
    parts = [
        (values("reasoning_content"), pc.binary_join_element_wise(role, "reasoning", "."), 0),
        (values("content"), named, 1),
        (values("tool_calls"), pc.binary_join_element_wise(role, "calls", "."), 2),
    ]
    modes = np.where(said, ANSWER, PROSE).astype(np.uint8)
    chosen = [
        np.flatnonzero(wanted & ((place == 1) | (pc.binary_length(text).to_numpy(zero_copy_only=False) > 0)))
        for text, _, place in parts
    ]
    number = np.concatenate([3 * at + place for at, (_, _, place) in zip(chosen, parts, strict=True)])
    texts = pa.concat_arrays([text.take(pa.array(at)) for at, (text, _, _) in zip(chosen, parts, strict=True)])
    labels = pa.concat_arrays([label.take(pa.array(at)) for at, (_, label, _) in zip(chosen, parts, strict=True)])
    order = np.argsort(number, kind="stable")
    number, texts, labels = number[order], texts.take(pa.array(order)), labels.take(pa.array(order))
    of_row, mode = row[number // 3], np.where(number % 3 == 2, CODE, modes[number // 3]).astype(np.uint8)
    fresh = np.ones(len(number), np.bool_)
    fresh[1:] = number[1:] // 3 != number[:-1] // 3
    if config.include_system and config.on != "answer" and "tools" in batch.schema.names:
        tools = pc.fill_null(batch.column("tools"), "")
        having = np.flatnonzero(pc.binary_length(tools).to_numpy(zero_copy_only=False) > 0)
        of_row = np.concatenate([having, of_row])
        order = np.argsort(of_row, kind="stable")
        texts = pa.concat_arrays([tools.take(pa.array(having)), texts]).take(pa.array(order))
        labels = pa.concat_arrays([pa.array(["tools"] * len(having), pa.string()), labels]).take(pa.array(order))
        mode = np.concatenate([np.full(len(having), CODE, np.uint8), mode])[order]
        fresh, of_row = np.concatenate([np.ones(len(having), np.bool_), fresh])[order], of_row[order]
    starts = np.searchsorted(of_row, np.arange(len(batch) + 1)).astype(np.int64)
    return Segments(texts.cast(pa.string()), labels.cast(pa.string()), mode, fresh, starts)


def whole_conversations(found: Segments) -> pa.Array:
    """One normalised text for each row, equal for rows whose turns, their indentation, and roles are equal."""
    texts = pc.binary_join_element_wise(found.labels, with_indentation(found.texts), "\x01")
    lists = pa.ListArray.from_arrays(pa.array(found.row_starts.astype(np.int32)), texts)
    return pc.binary_join(lists, "\x02")


def with_indentation(texts: pa.Array) -> pa.Array:
    """Each text as `normalize` has it, and where its indentation changes, as Python reads it."""
    normal = normalize(texts)
    data, offsets = string_buffers(texts)
    hashes = np.zeros(len(texts), np.uint64)
    kernels.indentation_hashes(data, offsets, hashes)
    if not hashes.any():
        return normal
    marks = pc.binary_join_element_wise("\x03", pa.array(hashes).cast(pa.string()), "")
    return pc.binary_join_element_wise(normal, pc.if_else(pa.array(hashes == 0), "", marks), "")


# Streams and keys.


@dataclass(frozen=True, slots=True)
class Streams:
    """The words that count of each row, as the kernels compare them, and the hashes by which rows are found.

    values uint64: the streams of all rows, that of row i at `starts[i]:starts[i + 1]`, int64; empty where no word
    counts. keys uint64 (rows, KEYS). prefixes uint64: the key of each proper beginning of a row that ends with a
    message, at `prefix_starts[i]:prefix_starts[i + 1]`.
    """

    values: npt.NDArray[np.uint64]
    starts: npt.NDArray[np.int64]
    keys: npt.NDArray[np.uint64]
    prefixes: npt.NDArray[np.uint64]
    prefix_starts: npt.NDArray[np.int64]


def streams(found: Segments, compare: str) -> Streams:
    """The streams of some conversations."""
    table, characters, phrases = character_table(), signs(), phrase_table()
    data, offsets = string_buffers(spelled_out(found.texts))
    labels, label_offsets = string_buffers(found.labels)
    how = np.array([compare != "words", compare == "characters"], np.int64)
    rows = len(found.row_starts) - 1
    keys = np.zeros((rows, KEYS), np.uint64)
    values, sizes = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    prefixes, counts = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for begin, end in row_chunks(offsets[found.row_starts], _CHUNK_BYTES):
        first, last = found.row_starts[begin], found.row_starts[end]
        room = TurnBuffers.of(offsets[first : last + 1])
        size = int(offsets[last] - offsets[first])
        names = int(label_offsets[last] - label_offsets[first])
        out = np.empty(12 * size + names + 4 * int(last - first) + 16 * (end - begin), np.uint8)
        starts, prefix_starts = (np.empty(end - begin + 1, np.int64) for _ in range(2))
        made = np.empty(int(last - first) + 1, np.uint64)
        kernels.write_streams(
            data, offsets[first : last + 1], labels, label_offsets[first : last + 1], found.modes[first:last],
            found.row_starts[begin : end + 1] - first, found.message_starts[first:last], how,
            characters.canon, characters.classes, table.pages, table.entries, table.folds,
            phrases.keys, phrases.values, phrases.bits, phrases.same, phrases.forms, *room.arrays, out, starts,
            keys[begin:end], made, prefix_starts,
        )  # fmt: skip
        values.append(out[: starts[-1]].view(np.uint64).copy())
        sizes.append(np.diff(starts) >> 3)
        prefixes.append(made[: prefix_starts[-1]].copy())
        counts.append(np.diff(prefix_starts))
    return Streams(
        np.concatenate(values), _starts(sizes), keys, np.concatenate(prefixes), _starts(counts)
    )  # fmt: skip


def _starts(sizes: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(np.concatenate(sizes))))


@dataclass(frozen=True, slots=True)
class TurnBuffers:
    """TurnBuffers buffers of the kernels: folded text, tokens, and what is known of each token."""

    arrays: tuple[npt.NDArray[np.uint8], ...]

    @classmethod
    def of(cls, offsets: Offsets) -> "TurnBuffers":
        """Large enough for the longest text."""
        longest = int(np.diff(offsets).max(initial=0)) + 16
        tokens = np.empty((longest, 6), np.int32)
        marks = (np.empty(longest, np.uint8), np.empty(longest, np.uint16), np.empty(longest, np.uint64))
        return cls((np.empty(3 * longest, np.uint8), tokens, *marks))  # type: ignore[arg-type]


# Prefixes.


class Longer(NamedTuple):
    """For each row the rows that may go on after it, ascending: `rows[begin:end]`.

    begin and end int64 (rows,), rows int32.
    """

    begin: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int32]


_BITS_PER_KEY = 16  # at least, of the filter of keys


def longer_conversations(sketches: SketchRows, compared: npt.NDArray[np.int64], memory: Memory) -> Longer:
    """The conversations that may begin with another one, for the rows `compared`, by their place there.

    A key of a proper beginning equals the key of a whole row where the two are alike.
    """
    whole = memory.take(sketches.column(f"band{KEYS - 1}", memory), compared)
    filter_words = 1
    while 64 * filter_words < _BITS_PER_KEY * len(whole):
        filter_words *= 2
    table = memory.full((filter_words,), 0, np.uint64)
    kernels.mark_keys(whole, table)
    place = memory.full((len(sketches),), -1, np.int32)
    place[compared] = np.arange(len(compared), dtype=np.int32)
    keys, rows = [np.empty(0, np.uint64)], [np.empty(0, np.int32)]
    for batch, begin in zip(sketches.batches, sketches.begins, strict=False):
        lists = batch.column("prefixes")
        ends = np.frombuffer(lists.buffers()[1], np.int64)[: len(lists) + 1]
        found = lists.values.to_numpy()[: ends[-1]]
        seen = np.empty(len(found), np.bool_)
        kernels.seen_keys(found, table, seen)
        owner = np.repeat(place[begin : begin + len(batch)], np.diff(ends))
        seen &= owner >= 0
        keys.append(found[seen])
        rows.append(owner[seen])
    known, owners = memory.keep(np.concatenate(keys)), memory.keep(np.concatenate(rows))
    order = np.lexsort((owners, known))
    known, owners = memory.take(known, order), memory.take(owners, order)
    return Longer(
        np.searchsorted(known, whole, "left").astype(np.int64),
        np.searchsorted(known, whole, "right").astype(np.int64),
        owners,
    )


# Short texts, formulas and code of other rows.

_MOST_BYTES, _SIGN_SHARE = 2048, 40
"""A document longer than this is compared by its words; a shorter one may be code with one sign for so many bytes."""


def may_be_indented(texts: pa.Array) -> npt.NDArray[np.bool_]:
    """bool (rows,): texts that may be code whose indentation says something."""
    data, offsets = string_buffers(texts)
    likely, hashes = np.empty(len(texts), np.bool_), np.empty(len(texts), np.uint64)
    kernels.may_have_signs(data, offsets, _MOST_BYTES, _SIGN_SHARE, likely)
    if likely.any():
        kernels.indentation_hashes(data, offsets, hashes)
        likely &= hashes != 0
    return likely


def sign_sets(
    texts: pa.Array, short: npt.NDArray[np.bool_], compare: str, shingle_words: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Sets of shingles in which signs, numbers and negations count: (rows that have one, hashes, (begin, end) of each).

    `short` bool (rows,): texts of fewer words than a shingle. They are compared by pairs of letters; others, if they
    are formulas or code, by shingles of words and signs. Texts whose numbers, signs or negations differ share nothing.
    """
    data, offsets = string_buffers(texts)
    wanted = short.copy()
    if compare == "characters":
        wanted[:] = True
    elif compare == "auto":
        likely = np.empty(len(texts), np.bool_)
        kernels.may_have_signs(data, offsets, _MOST_BYTES, _SIGN_SHARE, likely)
        wanted |= likely
    rows = np.flatnonzero(wanted)
    if not len(rows):
        return rows, np.empty(0, np.uint64), np.empty((0, 2), np.int64)
    data, offsets = string_buffers(spelled_out(texts.take(pa.array(rows))))
    table, characters, phrases = character_table(), signs(), phrase_table()
    room, longest = TurnBuffers.of(offsets), int(np.diff(offsets).max()) + 16
    out, starts = (
        np.empty(int(offsets[-1] - offsets[0]) + 2 * len(rows) + 8, np.uint64),
        np.empty((len(rows), 2), np.int64),
    )
    kernels.sign_sets(
        data, offsets, short[rows], np.array([compare != "words", compare == "characters"], np.int64), shingle_words,
        characters.canon, characters.classes, table.pages, table.entries, table.folds,
        phrases.keys, phrases.values, phrases.bits, *room.arrays, np.empty(6 * longest, np.uint64), out, starts,
    )  # fmt: skip
    having = starts[:, 1] > starts[:, 0]
    return rows[having], out, starts[having]
