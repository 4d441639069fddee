"""A tokenizer with its chat template: messages -> text -> ids.

The trainer imports this module, too: it needs jinja2 and tokenizers only.

Special tokens (`<|im_start|>`: added tokens marked `special`, and those that the settings name, such as `eos_token`)
are recognised only in the template's own text. In the text of messages they are plain text. For this, the tokenizer is
loaded with each special token spelled as a pair of reserved code points, and the rendering is rewritten so that only
the template's own tokens have this spelling. All other added tokens (`<think>`, Gemma's newlines) are recognised
wherever they occur, as the model's own tokenizer does. The whole text is then encoded in one call, with normalisation
and merges across the borders of messages. So the ids equal those of the unmodified tokenizer whenever no message spells
a special token.

To tell the two apart, the text of messages enters the template as `Tracked`: a `str` with spans (start, end, tag) that
say where its characters come from. Each string operation of a template passes the spans on: a user's `<|im_end|>` stays
ten characters of the user. If the origin of a result is not known, its text gets the tag `UNKNOWN`, and the row is
refused.
"""

import datetime
import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from jinja2 import Template, TemplateError, meta, nodes
from tokenizers import Encoding, Tokenizer

import datakit.storage as storage
from datakit.errors import ConfigError, ModelError
from datakit.manifest import tokenizer_file
from datakit.pack.template import BUILT_IN, MARK, OPEN, Sandbox, TooSlowError, Watch
from datakit.pack.tracked import (
    CONTENT,
    FIELDS,
    REASONING,
    TOOLS,
    WIDTH,
    Sealed,
    SealedJson,
    Span,
    Tracked,
    cut,
    of,
    plain_json,
    track,
)

RESERVED = "\ufdd0"
"""A Unicode noncharacter; with a private-use character after it, it spells a special token."""
FIRST_PRIVATE, PRIVATE = 0xF0000, 65534

Message = Mapping[str, Any]


class RenderError(ModelError):
    """A template fails on some messages, or refuses them; the text says why."""


THOUGHT_KEYS = ("reasoning_content", "reasoning", "thinking")
"""Names of a message's thought: data sets and templates use all three."""


@dataclass(frozen=True, slots=True)
class Reads:
    """How a template reads messages."""

    thought_keys: tuple[str, ...] = THOUGHT_KEYS[:1]
    """The fields in which it looks for a thought."""
    splits_thoughts: bool = True
    """It renders a thought in content (`<think>`) as it renders one in a field; otherwise it is moved there."""
    shows: tuple[bool, bool] = (True, True)
    """It renders the thought of the last turn: one in a field, one in content."""
    parts: bool = False
    """Content is a list of typed parts, as in templates for images."""
    arguments_as_text: bool = False
    """The arguments of tool calls are JSON text, as in OpenAI's API; otherwise objects."""

    def content(self, text: str) -> Any:
        """The content of a message."""
        return [{"type": "text", "text": text}] if self.parts else text


def _inside(content: str) -> tuple[int, int, int, int] | None:
    """A thought in content: where `<think>` begins, the thought's first and last character and the end of `</think>`.

    Some data sets leave `<think>` out, because the prompt has it: the thought then begins with the content.
    """
    find = content.where if isinstance(content, Sealed) else content.find
    close = find("</think>")
    if close < 0:
        return None
    tag = find("<think>", 0, close)
    thought = cut(content, tag + len("<think>") if tag >= 0 else 0, close)
    start = close - len(thought.lstrip())
    return max(tag, 0), start, start + len(thought.strip()), close + len("</think>")


def thought_of(message: Message) -> str:
    """The thought of an assistant's message, from its own field or from `<think>` in its content; "" if it has none."""
    given = next((str(message[k]) for k in THOUGHT_KEYS if message.get(k)), "")
    content = message.get("content") or ""
    inside = _inside(content) if message["role"] == "assistant" else None
    return given.strip() or (cut(content, *inside[1:3]) if inside else "")


def answer_of(message: Message) -> str:
    """The content of a message without a thought."""
    content: str = message.get("content") or ""
    inside = _inside(content) if message["role"] == "assistant" else None
    return cut(content, 0, inside[0]) + cut(content, inside[3], len(content)).lstrip() if inside else content


def _fields(message: Message, reads: Reads) -> dict[str, Any]:
    """A message as a template gets it: only the fields that are set, calls as objects, "" for missing content.

    The thought stands under the first of `THOUGHT_KEYS`.
    """
    seen: dict[str, Any] = {"role": message["role"] or "", "content": message.get("content") or ""}
    for name in ("name", "tool_call_id"):
        if message.get(name) is not None:
            seen[name] = message[name]
    thought = next((message[k] for k in THOUGHT_KEYS if message.get(k) is not None), None)
    if thought is None and not reads.splits_thoughts and seen["content"].lstrip().startswith("<think>"):
        thought, seen["content"] = thought_of(message) or None, answer_of(message)
    if thought is not None:
        seen[THOUGHT_KEYS[0]] = thought
    calls = message.get("tool_calls")
    if calls:
        calls = _json(calls, "tool_calls") if isinstance(calls, str) else calls
        seen["tool_calls"] = [_call(c, reads.arguments_as_text) for c in calls]
    return seen


def _call(call: Any, as_text: bool) -> Any:
    """A tool call with its arguments as an object, as most templates expect, or as JSON text, as in OpenAI's API."""
    if not isinstance(call, dict):
        return call
    if isinstance(call.get("function"), dict):
        return call | {"function": _call(call["function"], as_text)}
    if as_text:
        given = call.get("arguments")
        if isinstance(given, SealedJson):
            return call | {"arguments": given.given()}
        return call if isinstance(given, str) else call | {"arguments": plain_json(given)}
    try:
        parsed = json.loads(call["arguments"])
    except (KeyError, TypeError, ValueError):
        return call
    return call | {"arguments": parsed} if isinstance(parsed, dict) else call


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as e:
        raise RenderError(f"{where} is not JSON: {e}") from None


def _shown(fields: dict[str, Any], reads: Reads) -> dict[str, Any]:
    """The fields under the names, and with the content, that the template reads."""
    thought = fields.pop(THOUGHT_KEYS[0], None)
    more = {} if thought is None else dict.fromkeys(reads.thought_keys, thought)
    return fields | {"content": reads.content(fields["content"])} | more


def plain_messages(messages: Sequence[Message], reads: Reads = Reads()) -> list[dict[str, Any]]:
    """Messages as a template gets them."""
    return [_shown(_fields(m, reads), reads) for m in messages]


def tracked_messages(messages: Sequence[Message], reads: Reads = Reads()) -> list[dict[str, Any]]:
    """The same messages, with each string tagged by message and field.

    A role that is a plain word gets no tag: templates build markers from it (`<|` + role + `|>`).
    """
    seen = []
    for i, message in enumerate(messages):
        base = 1 + i * WIDTH
        tagged = {k: track(v, base + FIELDS.index(k)) for k, v in _fields(message, reads).items()}
        if message["role"].isidentifier():
            tagged["role"] = message["role"]
        content = str(tagged["content"])
        if message["role"] == "assistant" and (inside := _inside(content)):
            _, a, b, _ = inside
            edges = ((0, a, base + CONTENT), (a, b, base + REASONING), (b, len(content), base + CONTENT))
            spans = [span for span in edges if span[0] < span[1]]
            tagged["content"] = (
                Sealed(content, spans, content.holes) if isinstance(content, Sealed) else Tracked(content, spans)
            )
        seen.append(_shown(tagged, reads))
    return seen


def plain_tools(tools: Any) -> Any:
    """Tools as a template gets them; None if there are none."""
    return (_json(tools, "tools") if isinstance(tools, str) else tools) or None


def tracked_tools(tools: Any) -> Any:
    """The same tools, with the tag `TOOLS`."""
    return track(plain_tools(tools), TOOLS)


@dataclass(frozen=True, slots=True)
class Rendering:
    """Messages as text."""

    text: str
    spans: tuple[Span, ...] = ()
    """Where the text of messages is, if they were tracked."""
    generated: tuple[tuple[int, int], ...] = ()
    """Start and end of the `{% generation %}` blocks, in characters of `text`."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The special tokens that the template wrote, and the text with exactly these in reserved spelling."""

    text: str
    tokens: tuple[tuple[int, int, int], ...]
    """Start and end in the rendering, and id."""

    def place(self, characters: Sequence[int]) -> list[int]:
        """Positions in `text` of characters of the rendering that are not inside a special token."""
        ends = [end for _, end, _ in self.tokens]
        shifts = [0, *accumulate(2 - (end - start) for start, end, _ in self.tokens)]
        return [at + shifts[bisect_right(ends, at)] for at in characters]


def untagged(rendering: Rendering) -> Iterable[tuple[int, int]]:
    """Start and end of each part of the rendering that is the template's own text."""
    at = 0
    for start, end, _ in rendering.spans:
        if start > at:
            yield at, start
        at = max(at, end)
    if at < len(rendering.text):
        yield at, len(rendering.text)


def unmarked(text: str) -> Rendering:
    """The rendering, with the marks of `{% generation %}` blocks removed from its text."""
    if not isinstance(text, Tracked):
        return Rendering(text)
    kept, spans, opened, generated = [], [], [], []
    at = shift = 0
    for start, end, tag in text.spans:
        if tag != MARK:
            spans.append((start - shift, end - shift, tag))
            continue
        kept.append(str.__getitem__(text, slice(at, start)))
        if str.__getitem__(text, start) == OPEN:
            opened.append(start - shift)
        elif opened:
            generated.append((opened.pop(), start - shift))
        at, shift = end, shift + 1
    kept.append(str.__getitem__(text, slice(at, None)))
    return Rendering("".join(kept), tuple(spans), tuple(generated))


class ChatTokenizer:
    """A `tokenizer.json` with its chat template."""

    def __init__(
        self, definition: bytes, settings: Mapping[str, Any], chat_template: str, where: str,
        variables: Mapping[str, Any] = MappingProxyType({}), template_where: str = "",
    ) -> None:  # fmt: skip
        self.settings, self.template_source, self.where = dict(settings), chat_template, where
        self.template_where = f"the chat template {template_where}" if template_where else f"{where}: the chat template"
        """Names the template in errors."""
        self.variables = dict(settings.get("chat_template_kwargs") or {}) | dict(variables)
        """What every rendering gets besides the messages; stored with the tokenizer, so that generation has it, too."""
        self.definition = definition
        self.sha256 = hashlib.sha256(definition).hexdigest()
        self.template_sha256 = hashlib.sha256(chat_template.encode()).hexdigest()
        spec = _parsed(definition, where)
        self._added = _added_tokens(spec, settings)
        self._spelled = {t["content"]: RESERVED + chr(FIRST_PRIVATE + i) for i, t in enumerate(self._special())}
        self._prompts: dict[str, str] = {}
        self._load(spec)
        self.tokens = {k: _text(settings.get(k)) for k in ("bos_token", "eos_token", "pad_token", "unk_token")}
        self.bos_id, self.eos_id, self.pad_id = (self._id(f"{k}_token") for k in ("bos", "eos", "pad"))
        by_itself = json.dumps(self.tokens["bos_token"]) in json.dumps(spec.get("post_processor"))
        self.adds_bos = self.bos_id is not None and bool(by_itself or settings.get("add_bos_token"))
        """Whether other programs put the bos token before a text. As in transformers 5 the post-processor does so, even
        where the settings say no."""
        self._pattern = re.compile("|".join(sorted(map(re.escape, self.special), key=len, reverse=True)) or r"(?!)")
        try:
            self._template: Template = Sandbox().from_string(chat_template)
        except TemplateError as e:
            raise ModelError(f"{self.template_where} does not compile: {e}") from None
        self._check_variables(variables)
        try:
            with Watch() as watch:
                watch.begin(1)
                self.reads = self._probed()
        except TooSlowError:
            raise ModelError(f"{self.template_where} takes too long for a question and an answer") from None

    def _check_variables(self, given: Mapping[str, Any]) -> None:
        """Refuse a variable that the template never reads: it would change nothing.

        Raises:
            ConfigError: there is one; with those that the template reads.
        """
        if not given.keys() - {"today"}:
            return
        tree = Sandbox().parse(self.template_source)
        read = meta.find_undeclared_variables(tree)
        for name in sorted(given.keys() - read - {"today"}):
            made = {found.name for found in tree.find_all(nodes.Name) if found.ctx == "store"}
            asked = set(re.findall(r"(\w+) is (?:not )?defined", self.template_source))
            own = (read - made) | (read & asked)
            own -= {"messages", "tools", "documents", "add_generation_prompt", *NAMED, *Sandbox().globals}
            known = f"it reads {', '.join(sorted(own))}" if own else "it reads none"
            raise ConfigError(f"{self.template_where} has no variable {name} (--template-var); {known}")

    def _probed(self) -> Reads:
        """How the template reads messages, found by rendering probes."""
        keys = tuple(k for k in THOUGHT_KEYS if re.search(rf"(\.|['\"]){k}\b", self.template_source))
        reads = Reads(keys or THOUGHT_KEYS[:1])
        question: list[Message] = [{"role": "user", "content": "?"}]
        if not self._try(question, reads).spans and self._try(question, replace(reads, parts=True)).spans:
            reads = replace(reads, parts=True)
        apart = self._try([*question, {"role": "assistant", "content": "!", "reasoning_content": "hm"}], reads)
        inside = self._try([*question, {"role": "assistant", "content": "<think>\nhm\n</think>\n\n!"}], reads)
        shows, shows_inside = (any((t - 1) % WIDTH == REASONING for *_, t in r.spans) for r in (apart, inside))
        splits = not shows or apart.text == inside.text
        return replace(reads, splits_thoughts=splits, shows=(shows, shows_inside if splits else shows))

    def _try(self, messages: Sequence[Message], reads: Reads) -> Rendering:
        try:
            return self.render(tracked_messages(messages, reads))
        except RenderError:
            return Rendering("")

    @classmethod
    def load(
        cls, path: Path | str, chat_template: str = "", variables: Mapping[str, Any] = MappingProxyType({})
    ) -> Self:
        """Load a tokenizer: a `tokenizer.json`, a folder with one, or a result that has one.

        `chat_template` is the name of a built-in template, a file, or "" for the tokenizer's own (if it has none,
        `chatml`). `variables` are the template's, for example `enable_thinking`.

        Raises:
            ModelError: a file is missing or cannot be used, or the template does not compile.
        """
        file = tokenizer_file(path)
        settings: dict[str, Any] = {}
        for name in ("special_tokens_map.json", "tokenizer_config.json"):
            beside = file.with_name(name)
            if beside.is_file():
                settings |= _parsed(beside.read_bytes(), str(beside))
        own = file.with_name("chat_template.jinja")
        if own.is_file():
            settings["chat_template"] = own.read_text(encoding="utf-8")
        source = _choose(chat_template, settings, str(file))
        return cls(file.read_bytes(), settings, source, str(file), variables, chat_template)

    def _special(self) -> list[dict[str, Any]]:
        return [t for t in self._added if t["special"]]

    def _load(self, spec: dict[str, Any]) -> None:
        model = spec.get("model") or {}
        unknown = _unknown(model)  # before `_bare` respells it
        if len(self._spelled) > PRIVATE:
            raise ModelError(f"{self.where}: {len(self._spelled)} special tokens; at most {PRIVATE} are supported")
        try:
            self.encoder = Tokenizer.from_str(json.dumps(self._bare(spec)))
        except Exception as e:  # the library raises plain Exception
            raise ModelError(f"{self.where}: this tokenizer.json cannot be used; tokenizers says: {e}") from None
        numbers = {token.content: number for number, token in self.encoder.get_added_tokens_decoder().items()}
        contents = [t["content"] for t in self._added]
        self.added: dict[str, int] = {c: numbers[self._spelled.get(c, c)] for c in contents}
        """Added tokens and their ids: those that the library gives, which differ from the file's if it skips ids."""
        self.special = {content: self.added[content] for content in self._spelled}
        self.unknown_id = None if unknown is None else self.special.get(unknown, self.encoder.token_to_id(unknown))
        """The id for text that the vocabulary does not have; None where there is none, as in most byte-level models."""
        steps = json.dumps([spec.get("normalizer"), spec.get("pre_tokenizer")])
        has_bytes = model.get("byte_fallback") or '"ByteLevel"' in steps
        self.drops_unknown = "merges" in model and unknown is None and not has_bytes
        """Whether characters that the vocabulary does not have vanish without a token."""
        self.structural_ids = frozenset(self.special.values()) - {self.unknown_id}
        """Ids that plain text never encodes to: those of special tokens, without the one for unknown text."""
        vocab = model.get("vocab") or {}
        ids = vocab.values() if isinstance(vocab, dict) else range(len(vocab))
        self.vocab_size = max([*ids, *numbers.values()], default=-1) + 1

    @cached_property
    def _decoder(self) -> Tokenizer:
        """The unmodified tokenizer. Only decoding needs it, and loading it is slow."""
        return Tokenizer.from_str(json.dumps(_parsed(self.definition, self.where) | {"added_tokens": self._added}))

    @property
    def added_ids(self) -> frozenset[int]:
        """The ids of all added tokens, special or not."""
        return frozenset(self.added.values())

    def _bare(self, spec: dict[str, Any]) -> dict[str, Any]:
        """The definition of `encoder`, made from a parsed `tokenizer.json`, whose vocabulary is changed in place.

        Special tokens have reserved spelling, also in the vocabulary: they keep their ids, and plain text cannot reach
        them. No padding, truncation or tokens of the post-processor: the template defines the whole text.
        """
        model = spec.get("model") or {}
        vocab, merges, unknown = model.get("vocab"), model.get("merges"), model.get("unk_token")
        if isinstance(vocab, dict):
            moved = self._spelled.keys() & vocab.keys()
            for content in moved:
                vocab[self._spelled[content]] = vocab.pop(content)
            if moved and merges:
                pairs = (m.split(" ", 1) if isinstance(m, str) else m for m in merges)
                merges = [(a, b) for a, b in pairs if not (a in moved or b in moved or a + b in moved)]
        elif vocab:  # Unigram: a list of (token, score)
            vocab = [[self._spelled.get(token, token), score] for token, score in vocab]
        changed = {"vocab": vocab, "merges": merges, "unk_token": self._spelled.get(unknown or "", unknown)}
        added = [t | {"content": self._spelled.get(t["content"], t["content"])} for t in self._added]
        bare = {"truncation": None, "padding": None, "post_processor": None, "added_tokens": added}
        return spec | bare | {"model": model | {k: v for k, v in changed.items() if k in model}}

    def spec(self) -> dict[str, Any]:
        """The definition of `encoder`: special tokens in reserved spelling, added tokens with their ids."""
        spec = self._bare(_parsed(self.definition, self.where))
        spec["added_tokens"] = [t | {"id": self.encoder.token_to_id(t["content"])} for t in spec["added_tokens"]]
        return spec

    def _id(self, name: str) -> int | None:
        text = self.tokens[name]
        found = None if text is None else self.added.get(text, self.encoder.token_to_id(text))
        if text is not None and found is None:
            raise ModelError(f"{self.where}: {name} is {text!r}, which is not in the vocabulary")
        return found

    def render(
        self, messages: Sequence[Message], tools: Any = None, add_generation_prompt: bool = False, **variables: Any
    ) -> Rendering:
        """Render messages as `plain_messages` or `tracked_messages` makes them.

        `variables` are the template's, over those of the tokenizer; `today` (a date as 2025-07-31) is what
        `strftime_now` formats.

        Raises:
            RenderError: the template refuses these messages or fails on them.
        """
        given: dict[str, Any] = {k: v for k, v in self.tokens.items() if v is not None}
        given |= {"messages": messages, "tools": tools, "documents": None} | self.variables | variables
        try:
            if "today" in given:
                given["strftime_now"] = datetime.date.fromisoformat(given["today"]).strftime
            text = self._template.render(given, add_generation_prompt=add_generation_prompt)
        except (
            TemplateError,
            TypeError,
            ValueError,
            LookupError,
            AttributeError,
            ArithmeticError,
            RecursionError,
        ) as e:
            raise RenderError(f"{type(e).__name__}: {e}") from None
        return unmarked(text)

    def rendered(
        self, messages: Sequence[Message], tools: Any = None, **variables: Any
    ) -> tuple[Rendering, list[dict[str, Any]], Reads]:
        """Render messages of a data set; returns also the tracked messages, and how the template read them.

        If a template fails on tool calls with arguments as objects, it gets them as JSON (DeepSeek-V3's needs this).

        Raises:
            RenderError: the template refuses these messages or fails on them.
        """
        reads, tracked = self.reads, tracked_messages(messages, self.reads)
        try:
            return self.render(tracked, tracked_tools(tools), **variables), tracked, reads
        except RenderError:
            if not any(m.get("tool_calls") for m in messages):
                raise
        reads = replace(reads, arguments_as_text=True)
        tracked = tracked_messages(messages, reads)
        return self.render(tracked, tracked_tools(tools), **variables), tracked, reads

    def prompt_after(self, role: str, **variables: Any) -> str:
        """The text that `add_generation_prompt` adds after a message of that role, found by rendering probes."""
        key = json.dumps([role, variables], sort_keys=True)
        if key not in self._prompts:
            turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
            last = {"role": role, "content": "."}
            probe = {"user": turns[:1], "assistant": turns, "system": [last]}.get(role, [*turns, last])
            shown = plain_messages(probe, self.reads)
            try:
                base, asked = (self.render(shown, None, asking, **variables).text for asking in (False, True))
            except RenderError:
                base = asked = ""
            ends = next((c for c in self.special if base.endswith(c) and not asked.startswith(base)), "")
            base = base.removesuffix(ends)  # Phi-3 ends a conversation with a token that no turn has
            self._prompts[key] = asked[len(base) :] if asked.startswith(base) else ""
        return self._prompts[key]

    @cached_property
    def _probe(self) -> tuple[Rendering, int, int] | None:
        """A question, an answer and a question; the end of the answer's text and the start of the text after it."""
        turns = [{"role": r, "content": c} for r, c in (("user", "?"), ("assistant", "!"), ("user", "."))]
        try:
            rendering = self.render(tracked_messages(turns, self.reads))
        except RenderError:
            return None
        said, asked = (next((b for _, b, tag in rendering.spans if of(tag) == i), 0) for i in (1, 2))
        return rendering, said, asked - 1

    @cached_property
    def turn_end(self) -> tuple[int, ...]:
        """The special token that ends an assistant's turn, and `eos_token` if it directly follows.

        Found by rendering probe messages; empty if the template refuses them.
        """
        if self._probe is None:
            return ()
        rendering, said, asked = self._probe
        found = [t for t in self.structure(rendering).tokens if said <= t[0] < asked]
        doubled = len(found) > 1 and found[1][0] == found[0][1] and found[1][2] == self.eos_id
        return tuple(token for _, _, token in found[: 1 + doubled])

    @cached_property
    def ends_with_question(self) -> bool:
        """Whether only the header of the next question ends an answer, directly after its text (GLM-4.5)."""
        if self._probe is None:
            return False
        rendering, said, asked = self._probe
        tokens = [t for t in self.structure(rendering).tokens if said <= t[0] < asked]
        return len(tokens) == 1 and tokens[0][0] == said

    @cached_property
    def answer_header(self) -> str:
        """The text before an answer, as far as the generation prompt has it; "" if the template shows neither."""
        if self._probe is None:
            return ""
        rendering, said, _ = self._probe
        asked = next((b for _, b, tag in rendering.spans if of(tag) == 0), 0)
        between = rendering.text[asked : said - 1]
        prompt = self.prompt_after("user")
        found = (between[at:] for at in range(len(between)) if prompt)
        return next((prompt if rest.startswith(prompt) else rest for rest in found if rest.startswith(prompt)
                     or prompt.startswith(rest)), "")  # fmt: skip

    def structure(self, rendering: Rendering) -> Structure:
        """Find the special tokens in the template's own text (text without a tag)."""
        tokens: list[tuple[int, int, int]] = []
        for start, end in untagged(rendering):
            for m in self._pattern.finditer(rendering.text, start, end):
                tokens.append((m.start(), m.end(), self.special[m.group()]))
        parts, at = [], 0
        for start, end, _ in tokens:
            parts += [rendering.text[at:start], self._spelled[rendering.text[start:end]]]
            at = end
        return Structure("".join([*parts, rendering.text[at:]]), tuple(tokens))

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Encode texts with special tokens in reserved spelling.

        Raises:
            ModelError: the library fails on a text, which it does where a tokenizer lacks a token for unknown text.
        """
        return self._encoded(self.encoder.encode_batch, texts)

    def encode_fast(self, texts: Sequence[str]) -> list[Encoding]:
        """`encode` for ids alone: the encodings know no offsets."""
        return self._encoded(self.encoder.encode_batch_fast, texts)

    def _encoded(self, encode: Callable[..., list[Encoding]], texts: Sequence[str]) -> list[Encoding]:
        try:
            return encode(texts, add_special_tokens=False)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as e:  # the library raises plain Exception, and its panics are none
            if len(texts) > 1:
                return [made for text in texts for made in self._encoded(encode, [text])]
            raise ModelError(
                f"{self.where}: this tokenizer.json has no tokens for a text that begins {texts[0][:80]!r}; tokenizers "
                f"says: {e}. Give it an unknown token or bytes as tokens, or drop such texts before"
            ) from None

    def encode_text(self, text: str) -> list[int]:
        """The ids of plain text; no part of it becomes a special token."""
        ids: list[int] = self.encode([text])[0].ids
        return ids

    def encode_document(self, text: str) -> list[int]:
        """The ids of plain text as other programs read it: after the bos token, where the tokenizer adds one."""
        return [*([self.bos_id] if self.adds_bos and self.bos_id is not None else []), *self.encode_text(text)]

    def encode_prompt(self, messages: Sequence[Message], tools: Any = None, **variables: Any) -> list[int]:
        """The ids of a conversation, with the generation prompt for the assistant's next turn.

        Raises:
            RenderError: the template refuses these messages or fails on them.
        """
        rendering, _, _ = self.rendered(messages, tools, **variables | {"add_generation_prompt": True})
        return self.encode_text(self.structure(rendering).text)

    def encode_trusted(self, text: str) -> list[int]:
        """The ids of text that is not a user's: added tokens in it are tokens."""
        return self.encode_text(self.structure(unmarked(text)).text)

    def stop_ids(self) -> list[int]:
        """The ids that stop generation, ascending: `eos_token`, and the special token that ends an assistant's turn."""
        return sorted({i for i in (*self.turn_end[-1:], self.eos_id) if i is not None})

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = False) -> str:
        """The text of ids."""
        text: str = self._decoder.decode([int(i) for i in ids], skip_special_tokens=skip_special_tokens)
        return text

    def token(self, token_id: int) -> str | None:
        """The token of an id, as the vocabulary spells it; None for an unknown id."""
        found: str | None = self._decoder.id_to_token(int(token_id))
        return found

    def facts(self) -> dict[str, Any]:
        """Hashes, vocabulary size and special ids, for manifests."""
        return {
            "sha256": self.sha256,
            "chat_template_sha256": self.template_sha256,
            "vocab_size": self.vocab_size,
            "bos_id": self.bos_id,
            "eos_id": self.eos_id,
            "pad_id": self.eos_id if self.pad_id is None else self.pad_id,
        }

    def files(self) -> dict[str, bytes]:
        """The two files from which `load` makes the same tokenizer with the same template, by name."""
        settings = self.settings | {"chat_template": self.template_source}
        if self.variables:
            settings["chat_template_kwargs"] = self.variables
        config = json.dumps(settings, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
        return {"tokenizer.json": self.definition, "tokenizer_config.json": config.encode()}


def _parsed(content: bytes, where: str) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except ValueError as e:
        raise ModelError(f"{where}: expected JSON, found {e}") from None
    if not isinstance(value, dict):
        raise ModelError(f"{where}: expected a JSON object, found {type(value).__name__}")
    return value


FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
"""An added token that is given by its text alone, as transformers reads it."""
NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def _added_tokens(spec: dict[str, Any], settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The added tokens, as transformers loads them: those of tokenizer.json, then those that only the settings have.

    A token that the settings name (`eos_token`) is special, also where it is not marked so.
    """
    found = {t["content"]: FLAGS | {"special": False} | t for t in spec.get("added_tokens") or []}
    decoder = settings.get("added_tokens_decoder") or {}
    for _, token in sorted(decoder.items(), key=lambda item: int(item[0])):
        found[token["content"]] = FLAGS | {"id": 0, "special": False} | found.get(token["content"], {}) | token
    more = (settings.get(k) or [] for k in ("additional_special_tokens", "extra_special_tokens"))
    for token in (t for group in more for t in (group.values() if isinstance(group, Mapping) else group)):
        if (content := _text(token)) and content not in found:
            found[content] = {"id": 0, "content": content} | FLAGS
    vocab = (spec.get("model") or {}).get("vocab")
    for name in (_text(settings.get(k)) for k in NAMED):
        if name in found:
            found[name] = found[name] | {"special": True}
        elif name and isinstance(vocab, dict) and name in vocab:
            found[name] = {"id": 0, "content": name} | FLAGS
    return list(found.values())


def _choose(asked: str, settings: Mapping[str, Any], where: str) -> str:
    """The source of the template."""
    if asked in BUILT_IN:
        return BUILT_IN[asked]
    if asked:
        if not (file := storage.here(asked)).is_file():
            raise ModelError(f"chat template {asked!r}: expected a file or one of {', '.join(BUILT_IN)}")
        return file.read_text(encoding="utf-8")
    own = settings.get("chat_template")
    if isinstance(own, list):
        named = {t["name"]: t["template"] for t in own}
        if "default" not in named:
            raise ModelError(f"{where}: its templates are {', '.join(named)}, none is `default`; give --chat-template")
        own = named["default"]
    return str(own) if own else BUILT_IN["chatml"]


def _unknown(model: Mapping[str, Any]) -> str | None:
    """The token for unknown text: Unigram gives its index, the others its spelling."""
    index = model.get("unk_id")
    return model.get("unk_token") if index is None else model["vocab"][index][0]


def _text(token: Any) -> str | None:
    """The text of a special token, which configs give as a string or as an AddedToken object."""
    return token.get("content") if isinstance(token, Mapping) else token
