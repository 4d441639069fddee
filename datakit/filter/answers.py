"""Rules for answers. `empty_answer`: there is no text to learn from. `loops`: a model repeats itself without end.

`empty_answer` looks at conversations and preference pairs. A conversation is measured by the shortest turn of its
assistant (a turn that calls a tool needs no text); without such a turn it counts as 0 characters. A preference pair is
measured by its shorter answer; the empty side of a judged answer is none. Documents have no answers and are not judged.
Reasoning at the beginning of a content is no answer (`<think>...</think>`, once or several times; also without
`<think>`, which the prompt may have), an empty list of calls is no call, and characters without width count as white
space.

Gopher's repetition rules are for web pages. Short and technical answers naturally repeat a little of themselves (a
worked sum, a tool call in the question's words, the chorus of a song), and those rules drop one in eight answers of
GSM8K. `loops` looks only for repetition that no good answer has: long n-grams, a large share. It measures the same as
`gopher_repetition.max_dup_10gram_char_ratio` with extra copies, with a threshold for answers instead of pages. A model
may also repeat a few characters without a space ("aaaa", "hahaha", one emoji): that is one word, or a few, and
`max_loop_char_ratio` sees it. A stretch counts from 200 bytes on, if it repeats a unit of at most 64 bytes ten times or
more: a ruled line in a table is shorter. Duplicate 10-grams count from 500 characters on: a poem or song of a few
verses may repeat a third of itself. A model may also say the same turn again and again: `max_equal_turns` counts the
most frequent turn of the assistant with at least 10 characters.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option
from datakit.data import Bools, Integers, string_buffers
from datakit.filter.rule_set import Measure, MeasuredRows, RuleSet, Signals
from datakit.text.words import hash_values, normalize

_INVISIBLE = r"\s\p{Z}\p{Cf}\p{Cc}\x{115f}\x{1160}\x{2800}\x{3164}\x{ffa0}"
_THOUGHTS = rf"(?s)\A(?:[{_INVISIBLE}]*<think>.*?(?:</think>|\z))+"
_THOUGHT_OF_PROMPT = r"(?s)\A.*?</think>"
_NO_CALLS = r"^\s*(?:\[\s*\]|null)?\s*$"
_MARGINS = rf"\A[{_INVISIBLE}]+|[{_INVISIBLE}]+\z"
"""RE2: white space, controls, and what has no width or no ink (zero-width spaces, fillers, blank Braille)."""

_MIN_DUP_CHARS, _MIN_TURN_CHARS = 500, 10

_UNLIMITED = np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True, slots=True)
class EmptyAnswer(RuleSet):
    """How short an answer may be."""

    name: ClassVar[str] = "empty_answer"
    measured_with: ClassVar[tuple[str, ...]] = ()

    min_answer_chars: int = option(1, "drop rows with an answer of fewer characters, white space around it not counted")

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The characters of each row's shortest answer; a row whose answers are all tool calls is not judged."""
        counts = rows.counted(self)
        if "answer_chars" in counts:
            shortest = counts["answer_chars"]
            yield Measure("min_answer_chars", shortest, shortest < _UNLIMITED)

    def signals(self, rows: MeasuredRows) -> Signals:
        """`answer_chars`: characters of the shortest answer, of conversations and preference pairs."""
        fields = [rows.batch.column(n) for n in ("messages", "chosen", "rejected") if n in rows.batch.schema.names]
        if not fields:
            return Signals()
        chars = np.array([_shortest(m) for m in fields])
        empty = np.array([pc.equal(pc.list_value_length(m), 0).to_numpy(zero_copy_only=False) for m in fields])
        return Signals(answer_chars=np.where(empty & ~empty.all(axis=0), _UNLIMITED, chars).min(axis=0))


def _shortest(messages: pa.ListArray) -> Integers:
    """int64[N]: characters of the shortest assistant turn of each list<message>, 0 for a list without one."""
    turns = messages.flatten()
    said = pc.struct_field(turns, "content")
    begins = pc.fill_null(pc.match_substring(said, "<think>"), False)
    ends = pc.and_not(pc.fill_null(pc.match_substring(said, "</think>"), False), begins)
    for thinks, pattern in ((begins, _THOUGHTS), (ends, _THOUGHT_OF_PROMPT)):  # patterns are slow on other scripts
        if pc.any(thinks).as_py():
            said = pc.replace_with_mask(said, thinks, pc.replace_substring_regex(said.filter(thinks), pattern, ""))
    chars = pc.fill_null(pc.utf8_length(pc.replace_substring_regex(said, _MARGINS, "")), 0)
    given = pc.struct_field(turns, "tool_calls")
    calls = pc.and_not(given.is_valid(), pc.fill_null(pc.match_substring_regex(given, _NO_CALLS), True))
    size = pc.if_else(calls, _UNLIMITED, pc.cast(chars, pa.int64())).to_numpy()
    row, answer = turns_of(messages, "assistant")
    shortest = np.full(len(messages), _UNLIMITED)
    np.minimum.at(shortest, row[answer], size[answer])
    shortest[np.setdiff1d(np.arange(len(messages)), row[answer])] = 0
    return shortest


def turns_of(messages: pa.ListArray, *roles: str) -> tuple[Integers, Bools]:
    """(the row of each message of a list<message>, int64[M]; bool[M]: messages with one of the roles)."""
    lengths = pc.fill_null(pc.list_value_length(messages), 0).to_numpy(zero_copy_only=False)
    said = pc.is_in(pc.struct_field(messages.flatten(), "role"), pa.array(roles))
    return np.repeat(np.arange(len(messages)), lengths), said.to_numpy(zero_copy_only=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Loops(RuleSet):
    """How much of a text may be repeated runs of ten words, or of a few characters, and how often a turn may come."""

    name: ClassVar[str] = "loops"
    shared: ClassVar[bool] = True
    measured_with: ClassVar[tuple[str, ...]] = ()

    max_dup_10gram_char_ratio: float = option(0.3, "drop rows with a larger share of characters in repeated 10-grams")

    max_loop_char_ratio: float = option(0.3, "drop rows with a larger share of bytes that repeat a few characters")

    max_equal_turns: int = option(3, "drop conversations in which the assistant says one turn more often")

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The shares of duplicate 10-grams and of loops of characters, then equal turns."""
        repeated, counts = rows.signals.ratio("dup_10gram_chars", "chars"), rows.counted(self)
        long = rows.signals["dup_10gram_chars"] >= _MIN_DUP_CHARS
        yield Measure("max_dup_10gram_char_ratio", repeated, long)
        yield Measure("max_loop_char_ratio", counts.ratio("loop_bytes", "text_bytes"))
        if "equal_turns" in counts:
            yield Measure("max_equal_turns", counts["equal_turns"])

    def signals(self, rows: MeasuredRows) -> Signals:
        """`loop_bytes`: bytes in stretches that repeat a few characters; `text_bytes`: all bytes.

        Of conversations also `equal_turns`: how often the most frequent answer comes.
        """
        from datakit.filter._kernels_signals import loop_bytes

        data, offsets = string_buffers(rows.texts)
        counts = Signals(loop_bytes=loop_bytes(data, offsets), text_bytes=np.diff(offsets))
        if "messages" in rows.batch.schema.names:
            counts["equal_turns"] = _equal_turns(rows.batch.column("messages"))
        return counts


def _equal_turns(messages: pa.ListArray) -> Integers:
    """int64[N]: how often each list<message> has its most frequent assistant turn; short turns do not count."""
    said = normalize(pc.struct_field(messages.flatten(), "content"))
    row, answer = turns_of(messages, "assistant")
    of = answer & pc.greater_equal(pc.utf8_length(said), _MIN_TURN_CHARS).to_numpy(zero_copy_only=False)
    pairs = np.stack([row[of].astype(np.uint64), hash_values(said.filter(pa.array(of)))])
    different, times = np.unique(pairs, axis=1, return_counts=True)
    most = np.zeros(len(messages), np.int64)
    np.maximum.at(most, different[0].astype(np.int64), times)
    return most
