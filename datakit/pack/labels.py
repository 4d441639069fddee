"""Finds the tokens of a conversation that the model must produce: in the rendered text, not by markers among the ids.

An assistant turn is labelled from the first character after its role header (the text that `add_generation_prompt`
adds) to the end of its end-of-turn token. If a template has `{% generation %}` blocks, they mark the start of the turn.
Otherwise the messages before the turn are rendered with `add_generation_prompt`; the result must be a prefix of the
whole rendering, and the turn starts after it. The end of the label is the first special token after the turn's last
character, whose position is known from the spans of `Tracked` text. A row whose labels are not certain is refused.

Rendering all messages before each of n turns would take O(n**2). So only the last turn is found in this way, and other
turns only if the template's text between the turn and the previous message has not occurred before.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise, takewhile
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from datakit.pack.chat import (
    FIRST_PRIVATE,
    PRIVATE,
    RESERVED,
    THOUGHT_KEYS,
    ChatTokenizer,
    Message,
    Reads,
    RenderError,
    Rendering,
    Structure,
    answer_of,
    plain_messages,
    plain_tools,
    thought_of,
    tracked_messages,
    tracked_tools,
)
from datakit.pack.tracked import CONTENT, REASONING, TOOL_CALLS, TOOLS, UNKNOWN, WIDTH, of

Chars = tuple[int, int]
Spans = list[Chars]


class RowError(Exception):
    """A row cannot be rendered or labelled: `reason` is counted in the ledger, `detail` says more."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class Labelled:
    """A rendered row."""

    text: str
    """The rendering with the template's special tokens in reserved spelling, ready to encode."""
    labels: tuple[Chars, ...]
    """Half-open ranges of characters of `text`."""
    structural: int
    """Number of special tokens that the template wrote, without those that stand for unknown text."""
    thoughts_not_rendered: int = 0
    """Thoughts of the assistant that the template leaves out."""
    thoughts_stripped: int = 0
    """Those of them that it leaves out of earlier turns alone, as it is made to."""
    ended: bool = True
    """False if no special token ends the last turn."""


def label(
    tokenizer: ChatTokenizer,
    messages: Sequence[Message],
    tools: Any = None,
    *,
    train_on: Literal["all", "last"] = "all",
    first: int = 0,
    variables: Mapping[str, Any] = MappingProxyType({}),
) -> Labelled:
    """Render messages and label the assistant's turns, from message number `first` on.

    `train_on = "last"` labels only the last turn. Messages of weight 0 have no labels. `variables` are the template's.

    Raises:
        RowError: the template fails on the row, leaves out a part of it, or does not show where a turn is.
    """
    said = [i for i, m in enumerate(messages) if m["role"] == "assistant" and i >= first]
    wanted = [i for i in (said[-1:] if train_on == "last" else said) if messages[i].get("weight") != 0]
    try:
        whole, given, reads = tokenizer.rendered(messages, tools, **variables)
        _check_complete(tokenizer, whole, given, messages, tools, variables)
        structure = tokenizer.structure(whole)
        turns = _Turns(
            tokenizer, whole, structure, given, plain_messages(messages, reads), plain_tools(tools), variables
        )
        found = [span for i in reversed(wanted) for span in reversed(turns.spans(i))][::-1]
        spans = [(a, b) for a, b in found if a < b]  # an empty answer before another one, without an end of its own
        structure.text.encode()
    except RenderError as e:
        raise RowError("template_error", str(e)) from None
    except UnicodeEncodeError as e:
        raise RowError("lone_surrogate", f"the JSON of a tool or a call escapes half a character: {e}") from None
    structural = sum(token in tokenizer.structural_ids for _, _, token in structure.tokens)
    placed = structure.place([edge for span in spans for edge in span])
    missing, stripped = _thoughts(reads, whole, messages)
    return Labelled(
        structure.text,
        tuple(zip(placed[::2], placed[1::2], strict=True)),
        structural,
        missing,
        stripped,
        turns.ended,
    )


def _thoughts(reads: Reads, whole: Rendering, messages: Sequence[Message]) -> tuple[int, int]:
    """The thoughts that are not in the rendering: those that the template never shows, and those that it strips.

    It strips a thought of an earlier turn if it would show it in the last.
    """
    missing = [i for i, m in enumerate(messages) if m["role"] == "assistant" and thought_of(m)]
    if not missing:
        return 0, 0
    seen = {of(tag) for _, _, tag in whole.spans if (tag - 1) % WIDTH == REASONING}
    last = max(i for i, m in enumerate(messages) if m["role"] == "assistant")
    missing = [i for i in missing if i not in seen]
    in_field = (any(messages[i].get(k) for k in THOUGHT_KEYS) for i in missing)
    stripped = sum(i < last and reads.shows[not field] for i, field in zip(missing, in_field, strict=True))
    return len(missing) - stripped, stripped


def _check_complete(
    tokenizer: ChatTokenizer, whole: Rendering, given: list[dict[str, Any]], messages: Sequence[Message], tools: Any,
    variables: Mapping[str, Any],
) -> None:  # fmt: skip
    """Refuse a row if a message, its calls or the tools are not in the rendering."""
    seen = {tag for _, _, tag in whole.spans}
    if UNKNOWN in seen:
        raise RowError("labels_uncertain", "the template builds text in a way whose origin cannot be followed")
    if plain_tools(tools) and TOOLS not in seen:
        raise RowError("template_drops_tools", "the row has tools, and the template renders none of them")
    for i, message in enumerate(given):
        base = 1 + i * WIDTH
        if base + CONTENT not in seen and answer_of(messages[i]).strip():
            probe = message | {"content": tokenizer.reads.content("probe")}
            changed = tokenizer.render([*given[:i], probe, *given[i + 1 :]], tracked_tools(tools), **variables)
            _missing(message["role"], i, changed.text != whole.text)
        if "tool_calls" in message and base + TOOL_CALLS not in seen:
            raise RowError("template_drops_tools", f"message {i} calls tools, and the template leaves the calls out")
        if len(calls := message.get("tool_calls", ())) > 1:  # gpt-oss renders the first one alone
            fewer = [*given[:i], message | {"tool_calls": calls[:-1]}, *given[i + 1 :]]
            with suppress(RenderError):  # it misses the call for a result
                if tokenizer.render(fewer, tracked_tools(tools), **variables).text == whole.text:
                    detail = f"message {i} has {len(calls)} calls, and the template leaves out the last"
                    raise RowError("template_drops_tools", detail)


def _missing(role: str, i: int, matters: bool) -> None:
    """Refuse a message without spans: the template leaves it out, or renders it in a way that hides its origin."""
    if matters:
        raise RowError("labels_uncertain", f"message {i} ({role}) is rendered, but its text cannot be told apart")
    raise RowError("template_drops_message", f"message {i} ({role}) is not in the rendering")


class _Turns:
    """Finds assistant turns in a rendering."""

    def __init__(
        self, tokenizer: ChatTokenizer, whole: Rendering, structure: Structure, given: list[dict[str, Any]],
        messages: list[dict[str, Any]], tools: Any, variables: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.tokenizer, self.whole, self.given, self.messages, self.tools = tokenizer, whole, given, messages, tools
        self.variables = variables
        self.ended = True
        """False if no special token ends the last turn."""
        self.ends = structure.tokens
        self.own: defaultdict[int, list[Chars]] = defaultdict(list)
        """By message: start and end of its text, in order."""
        for a, b, tag in whole.spans:
            self.own[of(tag)].append((a, b))
        numbers = range(len(messages))
        self.until = [0, *accumulate((max((b for _, b in self.own[k]), default=0) for k in numbers), max)]
        """By message i: the end of the text of the messages before it."""
        starts = (min((a for a, _ in self.own[k]), default=len(whole.text)) for k in reversed(numbers))
        self.since = [*list(accumulate(starts, min))[::-1], len(whole.text)]
        """By message i: the start of the text of message i and all messages after it."""
        self.answers = [i for i, m in enumerate(messages) if m["role"] == "assistant"]
        self.headers: dict[str, int] = {}
        """The template's text between the previous message and a turn -> the offset in it at which the turn starts."""

    def spans(self, i: int) -> list[Chars]:
        """The characters of turn `i`, from the end of its header to the end of its end token.

        With `{% generation %}` blocks these may be several ranges: a tool's result stands between two.
        """
        own = self.own[i]
        if not self.whole.generated:
            start = self._found(i)
            return [(start, self._bounded(i, start, own, None))]
        *before, (a, b) = self._blocks(i)
        start = self._behind_header(i, (a, b), own) if not before else a
        if before:
            before[0] = (self._behind_header(i, before[0], own), before[0][1])
        end = self._bounded(i, start, own, b)
        return [*before, (start, min(end, b) if before else end)]

    def _bounded(self, i: int, start: int, own: list[Chars], block: int | None) -> int:
        """The end of turn `i`, whose last range starts at `start`; `block` is the end of its generation block."""
        last = max((b for _, b in own if b > start), default=start)
        if bisect_left(self.ends, (start, 0, 0)) < bisect_left(self.ends, (last, 0, 0)):
            last = self._last_alone(i, start, last)
        try:
            end = self._end(i, last)
            inside = bisect_right(self.whole.spans, start, key=lambda span: span[1])  # the first that ends after start
            while inside < len(self.whole.spans) and self.whole.spans[inside][0] < end:
                if of(self.whole.spans[inside][2]) != i:
                    raise RowError("labels_uncertain", f"turn {i} runs into another message before its end token")
                inside += 1
        except RowError:
            if block is None:
                raise
            return block
        return end

    def _blocks(self, i: int) -> list[Chars]:
        """The generation blocks of turn `i`, joined where one begins at the end of the other."""
        found = [block for block, owner in self._owners if owner == i]
        if not found:
            raise RowError("labels_uncertain", f"the template marks no generation block for turn {i}")
        joined = found[:1]
        for a, b in found[1:]:
            joined[-1:] = [(joined[-1][0], b)] if a == joined[-1][1] else [joined[-1], (a, b)]
        outside = [t for a, b, t in self.whole.spans if of(t) == i and not any(a >= s and b <= e for s, e in joined)]
        # A tool's result may repeat the name of the call (gpt-oss); answers and thoughts must be inside.
        if any((t - 1) % WIDTH != TOOL_CALLS for t in outside) and len(joined) == 1:
            raise RowError("labels_uncertain", f"turn {i} is partly outside its generation block")
        return joined

    @cached_property
    def _owners(self) -> list[tuple[Chars, int]]:
        """The generation blocks that have text, each with its turn; -1 for one that belongs to none.

        A block without a message's text belongs to the turn of the block that it touches, or to an empty answer.
        """
        found: list[tuple[Chars, int]] = []
        for a, b in self.whole.generated:
            inside = [k for k in self.answers for s, e in self.own[k] if s < b and e > a]
            empty = [k for k in self.answers if not self.own[k] and self.until[k] <= a and b <= self.since[k + 1]]
            touched = found[-1][1] if found and found[-1][0][1] == a else -1
            owner = inside[0] if inside else touched if touched >= 0 or len(empty) != 1 else empty[0]
            if a < b:
                found.append(((a, b), owner))
        return found

    def _behind_header(self, i: int, block: Chars, own: list[Chars]) -> int:
        """The start of a block's text after the generation prompt, which some templates put into the block."""
        prompt = self.tokenizer.prompt_after(self.messages[i - 1]["role"], **self.variables) if i else ""
        start, first = block[0], min((a for a, _ in own if a >= block[0]), default=block[1])
        for at in range(max(start - len(prompt), 0) + 1, start + 1) if prompt else ():
            if start < at + len(prompt) <= first and self.whole.text.startswith(prompt, at):
                return at + len(prompt)
        return start

    def _last_alone(self, i: int, start: int, last: int) -> int:
        """The end of the text of turn `i`, found by rendering it without the messages after it.

        The next header may repeat a part of the turn: gpt-oss writes the name of the called function into the header of
        the result.
        """
        alone = self.tokenizer.render(self.given[: i + 1], self.tools, **self.variables)
        found = max((b for _, b, tag in alone.spans if of(tag) == i and b > start), default=start)
        return found if found < last and alone.text[:found] == self.whole.text[:found] else last

    def _end(self, i: int, last: int) -> int:
        """The end of the end token of turn `i`, whose text ends at `last`.

        The end token is the one that ends a plain answer, too. If it does not occur before the next message (a call may
        end with another token), it is the first special token.
        """
        at = bisect_left(self.ends, (last, 0, 0))
        if at == len(self.ends):
            if not self.tokenizer.ends_with_question or i != self.answers[-1]:
                raise RowError("labels_uncertain", f"no special token ends turn {i}: the model could not learn to stop")
            self.ended = False  # GLM-4.5 ends an answer with the header of the next question
            return max(last, len(self.whole.text.rstrip()))
        until = self.since[i + 1] if i + 1 < len(self.messages) else len(self.whole.text)
        near = takewhile(lambda k: self.ends[k][0] < until, range(at, len(self.ends)))
        usual = self.tokenizer.turn_end
        at = next((k for k in near if self.ends[k][2] in usual[:1]), at)
        begin, end, token = self.ends[at]
        header = self.tokenizer.answer_header.lstrip()
        if header and begin < until and self.whole.text.startswith(header, begin):
            return last  # the next message is an answer, too, and the token begins its header
        for start, behind, following in self.ends[at + 1 : at + 2]:
            if (token, following) == usual and start == end:
                return behind
        return end

    def _found(self, i: int) -> int:
        """The start of turn `i`: known from a turn with the same text before it, or found by rendering."""
        if not (self.own[i] and self.own[i - 1]):  # an empty message has no position
            return self._start(i)
        first, last = self.until[i], self.since[i]
        between = self.whole.text[first:last]
        if between in self.headers:
            return first + self.headers[between]
        start = self._start(i)
        if first <= start <= last:
            self.headers[between] = start - first
        return start

    def _start(self, i: int) -> int:
        """The start of turn `i`: after the messages before it, or else after the header of answers."""
        if not i:
            return self._after_header(i, "a conversation that begins with an answer shows no header of answers")
        try:
            return self._after_messages(i)
        except RenderError as e:  # the template refuses the messages without the turn
            return self._after_header(i, f"the messages before turn {i} cannot be rendered without it: {e}")
        except RowError as e:
            return self._after_header(i, e.detail)

    def _after_header(self, i: int, why: str) -> int:
        """The start of turn `i` after the header of answers, which must occur once between its neighbours' texts."""
        header = self.tokenizer.answer_header
        first, last = self.until[i], self.since[i]
        between = self.whole.text[first:last]
        if not header.strip() or between.count(header) != 1:
            raise RowError("labels_uncertain", why)
        return first + between.index(header) + len(header)

    def _after_messages(self, i: int) -> int:
        """The start of turn `i`, found by rendering the messages before it."""
        text = self.whole.text
        asked = self._before(i, True)
        prompt = self.tokenizer.prompt_after(self.messages[i - 1]["role"], **self.variables) if i else ""
        if prompt and asked.endswith(prompt) and text.startswith(asked):
            return len(asked)
        base = self._before(i, False)
        if asked != base and text.startswith(asked):  # also if a template adds text after the last turn
            return len(asked)
        if not text.startswith(base):
            return self._behind_prompt(i, f"the messages before turn {i} are rendered differently without it")
        if asked == base:
            return self._unasked(i, len(base))
        # The prompt has text that the turn does not have (an empty thought): the header is their common prefix.
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, asked, strict=False)))
        shared = min([shared, *(a for a, _, _ in self.whole.spans if a >= len(base))])
        shared = next((s for s, e, _ in self.ends if s < shared < e), shared)
        shared = self._whole_tokens(shared)
        if shared <= len(base):
            return self._behind_prompt(i, f"turn {i} does not begin as add_generation_prompt says it does")
        return shared

    def _whole_tokens(self, at: int) -> int:
        """`at`, or the start of the added token that is not special (`<think>`) and has `at` inside."""
        longest = max(map(len, self.tokenizer.added), default=0)
        for start in range(max(at - longest + 1, 0), at):
            for end in range(at + 1, start + longest + 1):
                if self.whole.text[start:end] in self.tokenizer.added:
                    return start
        return at

    def _behind_prompt(self, i: int, why: str) -> int:
        """The start of turn `i` if the earlier messages are rendered differently without it (Qwen3's thoughts).

        The turn starts after the generation prompt, which must occur exactly once in the template's text between the
        previous message and the turn.
        """
        prompt = self.tokenizer.prompt_after(self.messages[i - 1]["role"], **self.variables) if i else ""
        first, last = self.until[i], self.since[i]
        between = self.whole.text[first:last]
        if not prompt or between.count(prompt) != 1:
            raise RowError("labels_uncertain", why)
        return first + between.index(prompt) + len(prompt)

    def _before(self, i: int, prompt: bool) -> str:
        return self.tokenizer.render(self.messages[:i], self.tools, prompt, **self.variables).text

    def _unasked(self, i: int, base: int) -> int:
        """The start of turn `i` if `add_generation_prompt` adds nothing: after the turn's header, if it has one."""
        probe = [
            *([{"role": "user"}] * i),
            {"role": "assistant", "content": "probe"},
        ]  # without calls and their markers
        shown = [*self.given[:i], tracked_messages(probe, self.tokenizer.reads)[i]]
        rendering = self.tokenizer.render(shown, self.tools, **self.variables)
        own = [a for a, _, tag in rendering.spans if of(tag) == i and a >= base]
        lead = rendering.text[base : min(own, default=base)]
        return base + len(lead) if lead.strip() and self.whole.text.startswith(lead, base) else base


def plain_ids(text: str, ids: list[int]) -> list[int]:
    """Check the ids of a plain text, and return them.

    Raises:
        RowError: there are no ids, or the text contains the reserved spelling of a special token.
    """
    if not ids:
        raise RowError("empty", "no text")
    if RESERVED in text:
        _refuse_reserved(text)
    return ids


def _refuse_reserved(text: str) -> None:
    """Refuse a text with the reserved code points that spell added tokens."""
    last = chr(FIRST_PRIVATE + PRIVATE)
    if any(chr(FIRST_PRIVATE) <= follower[:1] < last for follower in text.split(RESERVED)[1:]):
        raise RowError("reserved_code_point", "the text has U+FDD0 before a private-use character")


def labelled_ids(
    tokenizer: ChatTokenizer, row: Labelled, encoding: Any, min_label_tokens: int
) -> tuple[npt.NDArray[np.int32], Spans]:
    """The ids of a rendered row, int32, and its label spans in tokens, from an encoding of `tokenizers`.

    Raises:
        RowError: there are too few label tokens, or the text contains the reserved spelling of a special token.
    """
    ids = np.array(encoding.ids, np.int32)
    spans = [_token_span(encoding, *span) for span in row.labels]
    _check(tokenizer, row, ids, spans, min_label_tokens)
    return ids, spans


def labelled_bytes(
    tokenizer: ChatTokenizer,
    row: Labelled,
    ids: npt.NDArray[np.int32],
    ends: npt.NDArray[np.int64],
    min_label_tokens: int,
) -> tuple[npt.NDArray[np.int32], Spans]:
    """The same as `labelled_ids`, from ids and the byte offset in the text at which each token ends.

    Raises:
        RowError: there are too few label tokens, or the text contains the reserved spelling of a special token.
    """
    starts = np.concatenate([[0], ends[:-1]])
    edges = bytes_before(row.text, [c for span in row.labels for c in span])
    found: list[int] = np.searchsorted(starts, edges).tolist()
    spans = list(zip(found[::2], found[1::2], strict=True))
    _check(tokenizer, row, ids, spans, min_label_tokens)
    return ids, spans


def bytes_before(text: str, characters: Sequence[int]) -> list[int]:
    """The byte offset of each of some ascending character offsets."""
    parts = (text[a:b] for a, b in pairwise([0, *characters]))
    return list(accumulate(len(part.encode()) for part in parts))


def _check(
    tokenizer: ChatTokenizer, row: Labelled, ids: npt.NDArray[np.int32], spans: Spans, min_label_tokens: int
) -> None:
    """Refuse a row whose special tokens are not those that the template wrote, or with too few label tokens."""
    found = sum(i in tokenizer.structural_ids for i in ids.tolist())
    if found != row.structural:
        reason = f"the template wrote {row.structural} special tokens, the text encodes to {found}"
        raise RowError("reserved_code_point", reason)
    # The first token of a sequence is never a target.
    if sum(b - max(a, 1) for a, b in spans) < max(min_label_tokens, 0):
        raise RowError("no_labels", f"fewer than {min_label_tokens} label tokens in {len(row.labels)} labelled turns")


def _token_span(encoding: Any, start: int, end: int) -> tuple[int, int]:
    """The tokens whose first character is in [start, end)."""
    # a tokenizer may skip white space, and join an accent to the letter before it
    first = next(t for t in map(encoding.char_to_token, range(start, end)) if t is not None)
    last = next(t for t in map(encoding.char_to_token, reversed(range(start, end))) if t is not None)
    return first + (encoding.token_to_chars(first)[0] < start), last + 1
