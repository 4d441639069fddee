"""Which tokens of a conversation the model must produce. Found in the rendering, never by scanning ids for markers.

An assistant turn is labelled from the first character after the role header (what `add_generation_prompt` renders,
wherever a template puts it) to the end of its end-of-turn token. A template with `{% generation %}` blocks says itself
where the turn begins. For any other, the header is found by rendering the messages before the turn with
`add_generation_prompt`, which must be a prefix of the whole rendering; the end is the first special token after the
turn's last character, which is known by provenance. A row without certain labels is refused.

Rendering the messages before each of n turns would cost n**2. So this is done for the last turn, and for other turns
only where the template's text between the turn and the message before it is new.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, takewhile
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from datakit.pack.chat import (
    CONTENT,
    FIRST_PRIVATE,
    PRIVATE,
    REASONING,
    RESERVED,
    TOOL_CALLS,
    TOOLS,
    UNKNOWN,
    WIDTH,
    ChatTokenizer,
    Message,
    RenderError,
    Rendering,
    Structure,
    of,
    plain_messages,
    plain_tools,
    tracked_messages,
    tracked_tools,
)

Chars = tuple[int, int]
Spans = list[Chars]


class RowError(Exception):
    """A row that cannot be rendered or labelled: `reason` for the ledger, `detail` for people."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class Labelled:
    """A rendered row."""

    text: str
    """With the template's added tokens in reserved spelling: ready to encode."""
    labels: tuple[Chars, ...]
    """Half-open ranges of characters of `text`."""
    structural: int
    """How many added tokens the template wrote."""


def label(
    tokenizer: ChatTokenizer,
    messages: Sequence[Message],
    tools: Any = None,
    *,
    train_on: Literal["all", "last"] = "all",
    first: int = 0,
) -> Labelled:
    """Render messages and mark the text of the assistant's turns, from turn number `first` on.

    Raises:
        RowError: the template fails on the row, leaves out a part of it, or does not show whose text is whose.
    """
    said = [i for i, m in enumerate(messages) if m["role"] == "assistant" and i >= first]
    wanted = [i for i in (said[-1:] if train_on == "last" else said) if messages[i].get("weight") != 0]
    try:
        whole, given, plain = _rendered(tokenizer, messages, tools)
        _check_complete(tokenizer, whole, given, tools)
        structure = tokenizer.structure(whole)
        turns = _Turns(tokenizer, whole, structure, given, plain, plain_tools(tools))
        spans = [turns.span(i) for i in reversed(wanted)][::-1]
        structure.text.encode()
    except RenderError as e:
        raise RowError("template_error", str(e)) from None
    except UnicodeEncodeError as e:
        raise RowError("lone_surrogate", f"the JSON of a tool or a call escapes half a character: {e}") from None
    placed = structure.place([edge for span in spans for edge in span])
    return Labelled(structure.text, tuple(zip(placed[::2], placed[1::2], strict=True)), len(structure.tokens))


def _rendered(
    tokenizer: ChatTokenizer, messages: Sequence[Message], tools: Any
) -> tuple[Rendering, list[dict[str, Any]], list[dict[str, Any]]]:
    """The rendering, and the messages as the template saw them, tagged and plain.

    A template that fails on calls whose arguments are objects may want them as JSON (DeepSeek-V3's does).
    """
    for as_text in (False, True):
        given = tracked_messages(messages, as_text)
        try:
            whole = tokenizer.render(given, tracked_tools(tools))
        except RenderError:
            if as_text or not any("tool_calls" in m for m in given):
                raise
        else:
            break
    return whole, given, plain_messages(messages, as_text)


def _check_complete(tokenizer: ChatTokenizer, whole: Rendering, given: list[dict[str, Any]], tools: Any) -> None:
    """Every message, its calls and the tools must be somewhere in the rendering."""
    seen = {tag for _, _, tag in whole.spans}
    if UNKNOWN in seen:
        raise RowError("labels_uncertain", "the template builds text in a way whose origin cannot be followed")
    if plain_tools(tools) and TOOLS not in seen:
        raise RowError("template_drops_tools", "the row has tools, and the template renders none of them")
    for i, message in enumerate(given):
        base = 1 + i * WIDTH
        if message["content"].strip() and not seen & {base + CONTENT, base + REASONING}:
            _missing(tokenizer, whole, given, tools, i)
        if "tool_calls" in message and base + TOOL_CALLS not in seen:
            raise RowError("template_drops_tools", f"message {i} calls tools, and the template leaves the calls out")


def _missing(tokenizer: ChatTokenizer, whole: Rendering, given: list[dict[str, Any]], tools: Any, i: int) -> None:
    """Refuse a message that leaves no trace: left out by the template, or rendered in a way that hides its origin."""
    role, probe = given[i]["role"], given[i] | {"content": "probe"}
    changed = tokenizer.render([*given[:i], probe, *given[i + 1 :]], tracked_tools(tools)).text != whole.text
    if changed:
        raise RowError("labels_uncertain", f"message {i} ({role}) is rendered, but its text cannot be told apart")
    raise RowError("template_drops_message", f"message {i} ({role}) is not in the rendering")


class _Turns:
    """Finds assistant turns in a rendering."""

    def __init__(
        self, tokenizer: ChatTokenizer, whole: Rendering, structure: Structure, given: list[dict[str, Any]],
        messages: list[dict[str, Any]], tools: Any,
    ) -> None:  # fmt: skip
        self.tokenizer, self.whole, self.given, self.messages, self.tools = tokenizer, whole, given, messages, tools
        self.structure = structure
        ends = set(tokenizer.special.values()) | {tokenizer.eos_id}
        self.ends = [found for found in structure.tokens if found[2] in ends]
        self.own: defaultdict[int, list[Chars]] = defaultdict(list)
        """Where the text of each message stands, in order."""
        for a, b, tag in whole.spans:
            self.own[of(tag)].append((a, b))
        numbers = range(len(messages))
        self.until = [0, *accumulate((max((b for _, b in self.own[k]), default=0) for k in numbers), max)]
        """Where the text of the messages before number i ends."""
        starts = (min((a for a, _ in self.own[k]), default=len(whole.text)) for k in reversed(numbers))
        self.since = list(accumulate(starts, min))[::-1]
        """Where the text of message i, and of those behind it, begins."""
        self.answers = [i for i, m in enumerate(messages) if m["role"] == "assistant"]
        self.headers: dict[str, int] = {}
        """Template text between a turn's message and the one before it -> where in it the turn begins."""

    def span(self, i: int) -> Chars:
        """The characters of turn `i`, from behind its header to the end of its end token."""
        own = self.own[i]
        start = self._marked(i, own) if self.whole.generated else self._found(i)
        last = max((b for _, b in own if b > start), default=start)
        if bisect_left(self.ends, (start, 0, 0)) < bisect_left(self.ends, (last, 0, 0)):
            last = self._last_alone(i, start, last)
        end = self._end(i, last)
        inside = bisect_right(self.whole.spans, start, key=lambda span: span[1])  # the first that ends behind the start
        while inside < len(self.whole.spans) and self.whole.spans[inside][0] < end:
            if of(self.whole.spans[inside][2]) != i:
                raise RowError("labels_uncertain", f"turn {i} runs into another message before its end token")
            inside += 1
        return start, end

    def _marked(self, i: int, own: list[Chars]) -> int:
        """Where the generation block of turn `i` begins: blocks and assistant turns come in the same order."""
        before = bisect_left(self.answers, i)
        blocks = self.whole.generated
        if len(blocks) != len(self.answers):  # a block more for what ends the conversation, say
            blocks = tuple(block for block in blocks if own and block[0] <= own[0][0] < block[1])
            before = 0
        if not blocks:
            raise RowError("labels_uncertain", f"the template marks no generation block for turn {i}")
        if any(a < blocks[before][0] or b > blocks[before][1] for a, b in own):
            raise RowError("labels_uncertain", f"turn {i} is partly outside its generation block")
        return self._behind_header(i, blocks[before], own)

    def _behind_header(self, i: int, block: Chars, own: list[Chars]) -> int:
        """Where a block begins to say more than the generation prompt, which some templates put into it."""
        prompt = self.tokenizer.prompt_after(self.messages[i - 1]["role"]) if i else ""
        start, first = block[0], min((a for a, _ in own), default=block[1])
        for at in range(max(start - len(prompt), 0) + 1, start + 1) if prompt else ():
            if start < at + len(prompt) <= first and self.whole.text.startswith(prompt, at):
                return at + len(prompt)
        return start

    def _last_alone(self, i: int, start: int, last: int) -> int:
        """Where the text of turn `i` ends if nothing follows it: the next header may say its text again, as gpt-oss
        names a called function in that of the result."""
        alone = self.tokenizer.render(self.given[: i + 1], self.tools)
        found = max((b for _, b, tag in alone.spans if of(tag) == i and b > start), default=start)
        return found if found < last and alone.text[:found] == self.whole.text[:found] else last

    def _end(self, i: int, last: int) -> int:
        """Where the end token of turn `i`, whose text ends at `last`, ends: the one that ends a plain answer too, or
        the first special token if that does not occur before the next message (a call that another one ends)."""
        at = bisect_left(self.ends, (last, 0, 0))
        if at == len(self.ends):
            raise RowError("labels_uncertain", f"no special token ends turn {i}: the model could not learn to stop")
        until = self.since[i + 1] if i + 1 < len(self.messages) else len(self.whole.text)
        near = takewhile(lambda k: self.ends[k][0] < until, range(at, len(self.ends)))
        usual = self.tokenizer.turn_end
        at = next((k for k in near if self.ends[k][2] in usual[:1]), at)
        _, end, token = self.ends[at]
        for start, behind, following in self.ends[at + 1 : at + 2]:
            if (token, following) == usual and start == end:
                return behind
        return end

    def _found(self, i: int) -> int:
        """Where turn `i` begins: known from a turn with the same words before it, or by rendering."""
        if not (self.own[i] and self.own[i - 1]):  # between others, an empty message cannot be told from the next
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
        """Where turn `i` begins, found by rendering what comes before it."""
        text = self.whole.text
        asked = self._before(i, True)
        prompt = self.tokenizer.prompt_after(self.messages[i - 1]["role"]) if i else ""
        if prompt and asked.endswith(prompt) and text.startswith(asked):
            return len(asked)
        base = self._before(i, False)
        if asked != base and text.startswith(asked):  # also where a conversation ends with more than its last turn
            return len(asked)
        if not text.startswith(base):
            return self._behind_prompt(i, f"the messages before turn {i} are rendered differently without it")
        if asked == base:
            return self._unasked(i, len(base))
        # A prompt that says more than the turn does (an empty thought, say): the header is what they share.
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, asked, strict=False)))
        shared = min([shared, *(a for a, _, _ in self.whole.spans if a >= len(base))])
        shared = next((s for s, e, _ in self.structure.tokens if s < shared < e), shared)
        if shared <= len(base):
            return self._behind_prompt(i, f"turn {i} does not begin as add_generation_prompt says it does")
        return shared

    def _behind_prompt(self, i: int, why: str) -> int:
        """Where turn `i` begins if what comes before is rendered in other words without it (Qwen3's thoughts).

        That is behind the generation prompt, if the template's text between the turn and the message before it has
        the prompt exactly once.
        """
        prompt = self.tokenizer.prompt_after(self.messages[i - 1]["role"]) if i else ""
        first, last = self.until[i], self.since[i]
        between = self.whole.text[first:last]
        if not prompt or between.count(prompt) != 1:
            raise RowError("labels_uncertain", why)
        return first + between.index(prompt) + len(prompt)

    def _before(self, i: int, prompt: bool) -> str:
        return self.tokenizer.render(self.messages[:i], self.tools, add_generation_prompt=prompt).text

    def _unasked(self, i: int, base: int) -> int:
        """The start where `add_generation_prompt` adds nothing: behind a header, if the turn brings one."""
        probe = [*self.messages[:i], {"role": "assistant", "content": "probe"}]  # a call's marks are no header
        rendering = self.tokenizer.render([*self.given[:i], tracked_messages(probe)[i]], self.tools)
        own = [a for a, _, tag in rendering.spans if of(tag) == i and a >= base]
        lead = rendering.text[base : min(own, default=base)]
        return base + len(lead) if lead.strip() and self.whole.text.startswith(lead, base) else base


def plain_ids(tokenizer: ChatTokenizer, text: str, ids: list[int]) -> list[int]:
    """The ids of a text, checked.

    Raises:
        RowError: there are none, or the text cannot be kept apart from added tokens.
    """
    if not ids:
        raise RowError("empty", "no text")
    if RESERVED in text:
        _refuse_reserved(text)
    if tokenizer.spelled_by_model:
        _refuse_spelled(tokenizer, ids)
    return ids


def _refuse_reserved(text: str) -> None:
    """The tokenizer's added tokens are spelled in code points that no text has: a text that has them is refused."""
    last = chr(FIRST_PRIVATE + PRIVATE)
    if any(chr(FIRST_PRIVATE) <= follower[:1] < last for follower in text.split(RESERVED)[1:]):
        raise RowError("reserved_code_point", "the text has U+FDD0 before a private-use character")


def _refuse_spelled(tokenizer: ChatTokenizer, ids: Sequence[int]) -> None:
    found = tokenizer.spelled_by_model.intersection(ids)
    if found:
        raise RowError("special_token_in_content", f"the model reads {tokenizer.token(min(found))!r} out of plain text")


def labelled_ids(
    tokenizer: ChatTokenizer, row: Labelled, encoding: Any, min_label_tokens: int
) -> tuple[npt.NDArray[np.int32], Spans]:
    """The ids of a rendered row and its label spans in tokens, from the library's encoding.

    Raises:
        RowError: too few labels, or text that cannot be kept apart from added tokens.
    """
    ids = np.array(encoding.ids, np.int32)
    added = _added(tokenizer, row, ids)
    spans = [_token_span(encoding, *span) for span in row.labels]
    return _settled(tokenizer, row, ids, added, spans, min_label_tokens)


def labelled_bytes(
    tokenizer: ChatTokenizer,
    row: Labelled,
    ids: npt.NDArray[np.int32],
    ends: npt.NDArray[np.int64],
    min_label_tokens: int,
) -> tuple[npt.NDArray[np.int32], Spans]:
    """The same from ids, which are changed in place, and the byte of the row's text that each of them ends at.

    Raises:
        RowError: too few labels, or text that cannot be kept apart from added tokens.
    """
    added = _added(tokenizer, row, ids)
    starts = np.concatenate([[0], ends[:-1]])
    edges = _bytes_before(row.text, [c for span in row.labels for c in span])
    found: list[int] = np.searchsorted(starts, edges).tolist()
    spans = list(zip(found[::2], found[1::2], strict=True))
    return _settled(tokenizer, row, ids, added, spans, min_label_tokens)


def _bytes_before(text: str, characters: Sequence[int]) -> list[int]:
    """How many bytes of a text stand before each of ascending characters."""
    parts = (text[a:b] for a, b in pairwise([0, *characters]))
    return list(accumulate(len(part.encode()) for part in parts))


def _added(tokenizer: ChatTokenizer, row: Labelled, ids: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Where added tokens stand: no more and no fewer than the template wrote."""
    added = np.flatnonzero(ids >= tokenizer.first_added)
    if len(added) != row.structural:
        reason = f"the template wrote {row.structural} added tokens, the text encodes to {len(added)}"
        raise RowError("reserved_code_point", reason)
    if tokenizer.spelled_by_model:
        _refuse_spelled(tokenizer, ids.tolist())
    return added


def _settled(
    tokenizer: ChatTokenizer,
    row: Labelled,
    ids: npt.NDArray[np.int32],
    added: npt.NDArray[np.int64],
    spans: Spans,
    min_label_tokens: int,
) -> tuple[npt.NDArray[np.int32], Spans]:
    """Added tokens under their own numbers, labels counted."""
    # The first token of a sequence is never a target.
    if sum(b - max(a, 1) for a, b in spans) < max(min_label_tokens, 0):
        raise RowError("no_labels", f"fewer than {min_label_tokens} label tokens in {len(row.labels)} labelled turns")
    ids[added] = [tokenizer.real_ids[i] for i in ids[added].tolist()]
    return ids, spans


def _token_span(encoding: Any, start: int, end: int) -> tuple[int, int]:
    """The tokens whose first character lies in [start, end), which ends with an end token's last character."""
    found = (encoding.char_to_token(c) for c in range(start, end))  # a tokenizer may skip white space
    first, last = next(t for t in found if t is not None), encoding.char_to_token(end - 1)
    return first + (encoding.token_to_chars(first)[0] < start), last + 1
