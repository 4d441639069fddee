"""A tokenizer with its chat template: messages -> text -> ids.

The trainer imports this module, too: it needs jinja2 and tokenizers only.

**Special tokens** (`<|im_start|>`: added tokens marked `special`, and those that the settings name, such as
`eos_token`) are recognised only in the template's own text. In the text of messages they are plain text. For this, the
tokenizer is loaded with each special token spelled as a pair of reserved code points, and the rendering is rewritten so
that only the template's own tokens have this spelling. All other added tokens (`<think>`, Gemma's newlines) are
recognised wherever they occur, as the model's own tokenizer does. The whole text is then encoded in one call, so the
ids equal those of the unmodified tokenizer whenever no message spells a special token.

`marks` tells the two apart: the texts go into the template between marks.
"""

import datetime
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from jinja2 import Template, TemplateError, meta, nodes
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Encoding, Tokenizer

import datakit.pack.marks as marks
import datakit.storage as storage
from datakit.errors import ConfigError, ModelError
from datakit.manifest import tokenizer_file
from datakit.pack.marks import PRIVATE, RESERVED, Marker, Message, Rendering, TemplateTraits, UncertainError
from datakit.pack.marks import RenderError as RenderError

BUILT_IN = ("chatml", "llama3", "plain")
"""Names of the templates in the folder `templates`."""
TODAY = datetime.date(2024, 7, 26)
"""The date that `strftime_now` formats: Llama 3.1's fallback. With the real date, tokens would change every day."""
MAX_STEPS = 2_000_000
"""A template may go through its loops so many times for one conversation, about a second; then it is stopped. Steps are
counted, not seconds, so that it depends on the row alone."""
FAILURES = (TemplateError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What a template raises on messages that it does not expect."""


# ---------------------------------------------------------------------- rendering


class Generation(Extension):
    """`{% generation %} ... {% endgeneration %}`: marks the text of the assistant."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        """Wrap the body of the block in a call of `_marked`."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_marked"), [], [], body).set_lineno(line)

    def _marked(self, caller: Callable[[], str]) -> str:
        return marks.BLOCK + caller() + marks.END_BLOCK


class Sandbox(ImmutableSandboxedEnvironment):
    """jinja2's sandbox with what chat templates expect of transformers. Each pass of a loop calls `_step`."""

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, LoopControlExtension])
        self.filters["tojson"] = marks.tojson
        self.globals |= {"raise_exception": _raise, "strftime_now": TODAY.strftime, "_step": lambda: True}

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for loop in tree.find_all(nodes.For):
            step = nodes.Call(nodes.Name("_step", "load"), [], [], None, None)
            loop.body.insert(0, nodes.ExprStmt(step))
            if loop.test is not None:  # `for x in y if test` may pass all items by
                loop.test = nodes.And(step, loop.test)
        return tree


def _raise(message: str) -> None:
    raise TemplateError(message)


def _steps() -> Callable[[], bool]:
    """Counts the passes of a template's loops, and stops it after `MAX_STEPS`."""
    left = itertools.count(MAX_STEPS, -1)

    def step() -> bool:
        if not next(left):
            raise RenderError(f"the template goes through its loops more than {MAX_STEPS:,} times")
        return True

    return step


@dataclass(frozen=True, slots=True)
class MarkedRow:
    """A conversation that was rendered with marks, and equals its plain rendering without them."""

    tokenizer: "ChatTokenizer"
    rendering: Rendering
    marker: Marker
    traits: TemplateTraits
    messages: list[dict[str, Any]]
    """As the template gets them, with marks."""
    tools: Any
    """The same of tools; None if there are none."""
    variables: Mapping[str, Any]

    @property
    def owners(self) -> list[tuple[int, str]]:
        """By number of a mark: the message (-1: tools) and the kind of text."""
        return self.marker.owners

    def render(self, messages: Sequence[Message], asks: bool = False, with_tools: bool = True) -> Rendering:
        """A rendering of other marked messages, with the row's tools and variables."""
        return self.tokenizer.render(messages, self.tools if with_tools else None, asks, **self.variables)

    def tail(self, messages: list[dict[str, Any]], number: int, asks: bool = False, until: int = -1) -> str:
        """The text behind the marked text of a number, up to that of another one, in a rendering of marked messages."""
        found = self.render(messages, asks)
        start = max((end for _, end, n in found.spans if n == number), default=0)
        return found.text[start : next((a for a, _, n in found.spans if n == until), len(found.text))]


@dataclass(frozen=True, slots=True)
class Probe:
    """What the rendering of a question, an answer and a question shows of a template."""

    turn_end: tuple[int, ...] = ()
    """The special token that ends an assistant's turn, and `eos_token` if it directly follows."""
    answer_header: str = ""
    """The text before an answer, as far as the generation prompt has it."""
    question_header: str = ""
    """The text before a question that follows an answer, from its first special token on; "" if it has none."""
    ends_with_question: bool = False
    """Only the header of the next question ends an answer (GLM-4.5)."""


# ---------------------------------------------------------------------- the tokenizer


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
        spec = _read_json(definition, where)
        self._added = _added_tokens(spec, settings)
        special = [t["content"] for t in self._added if t["special"]]
        self._spelled = {name: RESERVED + chr(marks.FIRST_PRIVATE + i) for i, name in enumerate(special)}
        self._load(spec)
        self.tokens = {k: _text(settings.get(k)) for k in ("bos_token", "eos_token", "pad_token", "unk_token")}
        self.bos_id, self.eos_id, self.pad_id = (self._id(f"{k}_token") for k in ("bos", "eos", "pad"))
        by_itself = json.dumps(self.tokens["bos_token"]) in json.dumps(spec.get("post_processor"))
        self.adds_bos = self.bos_id is not None and bool(by_itself or settings.get("add_bos_token"))
        """Whether other programs put the bos token before a text. As in transformers 5 the post-processor does so, even
        where the settings say no."""
        self.special_text, self._added_text = _any_of(self.special), _any_of(self.added)
        environment = Sandbox()
        try:
            tree = environment.parse(chat_template)
            self._template: Template = environment.from_string(chat_template)
        except TemplateError as e:
            raise ModelError(f"{self.template_where} does not compile: {e}") from None
        self.constants = frozenset(c.value for c in tree.find_all(nodes.Const) if isinstance(c.value, str))
        """Every string in the template."""
        self._check_variables(tree, variables)
        self.traits = self._probed()

    @classmethod
    def load(
        cls, path: Path | str, chat_template: str = "", variables: Mapping[str, Any] = MappingProxyType({})
    ) -> Self:
        """Load a tokenizer: a `tokenizer.json`, a folder with one, or a result that has one.

        `chat_template` is the name of a built-in template, a file, or "" for the tokenizer's own (if it has none,
        `chatml`). `variables` are the template's, for example `enable_thinking`.

        Raises:
            ModelError: a file is missing or cannot be used, or the template does not compile.
            ConfigError: the template never reads one of the variables.
        """
        file = tokenizer_file(path)
        settings: dict[str, Any] = {}
        for name in ("special_tokens_map.json", "tokenizer_config.json"):
            beside = file.with_name(name)
            if beside.is_file():
                settings |= _read_json(beside.read_bytes(), str(beside))
        own = file.with_name("chat_template.jinja")
        if own.is_file():
            settings["chat_template"] = own.read_text(encoding="utf-8")
        source = _choose(chat_template, settings, str(file))
        return cls(file.read_bytes(), settings, source, str(file), variables, chat_template)

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
        vocab = model.get("vocab") or {}
        ids = vocab.values() if isinstance(vocab, dict) else range(len(vocab))
        self.vocab_size = max([*ids, *numbers.values()], default=-1) + 1

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
        spec = self._bare(_read_json(self.definition, self.where))
        spec["added_tokens"] = [t | {"id": self.encoder.token_to_id(t["content"])} for t in spec["added_tokens"]]
        return spec

    def _id(self, name: str) -> int | None:
        text = self.tokens[name]
        found = None if text is None else self.added.get(text, self.encoder.token_to_id(text))
        if text is not None and found is None:
            raise ModelError(f"{self.where}: {name} is {text!r}, which is not in the vocabulary")
        return found

    # The template.

    def _check_variables(self, tree: nodes.Template, given: Mapping[str, Any]) -> None:
        """Refuse a variable that the template never reads: it would change nothing."""
        read = meta.find_undeclared_variables(tree)
        for name in sorted(given.keys() - read - {"today"}):
            own = read - {"messages", "tools", "documents", "add_generation_prompt", *NAMED, *Sandbox().globals}
            known = f"it reads {', '.join(sorted(own))}" if own else "it reads none"
            raise ConfigError(f"{self.template_where} has no variable {name} (--template-var); {known}")

    def _probed(self) -> TemplateTraits:
        """How the template reads messages, found by rendering probes."""
        keys = tuple(k for k in marks.THOUGHT_KEYS if re.search(rf"(\.|['\"]){k}\b", self.template_source))
        traits = TemplateTraits(keys or marks.THOUGHT_KEYS[:1])
        question: list[Message] = [{"role": "user", "content": "?"}]

        def tried(messages: list[Message], traits: TemplateTraits) -> tuple[str, set[str]]:
            """The text, and the kinds of the texts that are in it."""
            marker = Marker(self.special_text)
            try:
                found = self.render(marker.messages(messages, traits))
            except RenderError:
                return "", set()
            return found.text, {marker.owners[number][1] for _, _, number in found.spans}

        if not tried(question, traits)[1] and tried(question, replace(traits, parts=True))[1]:
            traits = replace(traits, parts=True)
        apart, seen = tried([*question, {"role": "assistant", "content": "!", "reasoning_content": "hm"}], traits)
        inside, _ = tried([*question, {"role": "assistant", "content": "<think>\nhm\n</think>\n\n!"}], traits)
        shows, shows_inside = "thought" in seen, "hm" in inside
        splits = not shows or apart == inside
        return replace(traits, splits_thoughts=splits, shows=(shows, shows_inside if splits else shows))

    def render(
        self, messages: Sequence[Message], tools: Any = None, add_generation_prompt: bool = False, **variables: Any
    ) -> Rendering:
        """Render messages, as `plain_messages` or `marked_messages` makes them.

        `variables` are the template's, over those of the tokenizer; `today` (a date as 2025-07-31) is what
        `strftime_now` formats.

        Raises:
            RenderError: the template refuses these messages or fails on them, or goes through its loops more than
                `MAX_STEPS` times.
        """
        given: dict[str, Any] = {k: v for k, v in self.tokens.items() if v is not None}
        given |= {"messages": messages, "tools": tools, "documents": None} | self.variables | variables
        given |= {"add_generation_prompt": add_generation_prompt, "_step": _steps()}
        try:
            if "today" in given:
                given["strftime_now"] = datetime.date.fromisoformat(given["today"]).strftime
            text = self._template.render(given)
        except FAILURES as e:
            raise RenderError(f"{type(e).__name__}: {e}") from None
        return marks.unmarked(text)

    def marked(self, messages: Sequence[Message], tools: Any = None, asks: bool = False, **variables: Any) -> MarkedRow:
        """Render the messages of a data set with as many marks as the template passes on.

        If a template fails on tool calls with arguments as objects, it gets them as JSON (DeepSeek-V3's needs this).

        Raises:
            RenderError: the template refuses these messages or fails on them, or does not pass their texts on.
        """
        if marks.RESERVED_TEXT.search(json.dumps([messages, tools], ensure_ascii=False)):
            raise RenderError("the text has reserved code points (U+FDD0 to U+FDD7)", "reserved_code_point")
        shown_tools, has_calls = marks.plain_tools(tools), any(m.get("tool_calls") for m in messages)
        for traits in (self.traits, replace(self.traits, arguments_as_text=True)):
            try:
                fields = [traits.fields(m) for m in messages]
                plain = self.render([traits.message(f) for f in fields], shown_tools, asks, **variables)
                break
            except RenderError:
                if not has_calls or traits.arguments_as_text:
                    raise
        for level in range(3):
            marker = Marker(self.special_text, level)
            given, given_tools = [marker.message(f, i, traits) for i, f in enumerate(fields)], marker.tools(shown_tools)
            try:
                found = self.render(given, given_tools, asks, **variables)
            except RenderError:
                continue
            if found.text == plain.text and found.generated == plain.generated:
                if RESERVED in found.text and marks.RESERVED_SPELLING.search(found.text):  # texts of two messages meet
                    raise RenderError("U+FDD0 comes before a private-use character", "reserved_code_point")
                return MarkedRow(self, found, marker, traits, given, given_tools, variables)
        raise UncertainError("the template does not pass on texts as they are")

    @cached_property
    def probe(self) -> Probe:
        """Found by rendering; empty if the template refuses a question, an answer and a question."""
        turns = [{"role": k, "content": c} for k, c in (("user", "?"), ("assistant", "!"), ("user", "."))]
        try:
            row = self.marked(turns)
            (_, asked, _), (first, last, _), (question, _, _) = row.rendering.spans
            with_prompt, without = (row.tail(row.messages[:1], 0, asks) for asks in (True, False))
        except (RenderError, ValueError):
            return Probe()
        text, gap = row.rendering.text, row.rendering.text[asked:first]
        begin = self.uncut(gap, common_prefix(gap, without))
        header = gap[begin : self.behind_prompt(gap, with_prompt, without) or begin]
        ends = [token for token in self.special_tokens(row.rendering) if last <= token[0] < question]
        ids = [self.special[content] for _, _, content in ends]
        doubled = len(ends) > 1 and ends[1][0] == ends[0][1] and ids[1] == self.eos_id
        opening = ends[1 + doubled :]
        question_header = text[opening[0][0] : question].rstrip() if opening else ""
        return Probe(tuple(ids[: 1 + doubled]), header, question_header, len(ends) == 1 and ends[0][0] == last)

    def behind_prompt(self, gap: str, asked: str, base: str) -> int | None:
        """Where the generation prompt ends in the text before an answer, `gap`; None if it does not begin there.

        The prompt is what `asked` has more than `base`. It may have added tokens more than the answer's header has: an
        empty thought, where the turn has one with text.
        """
        at = self.uncut(gap, common_prefix(asked, gap))
        begins = at > self.uncut(gap, common_prefix(base, gap))
        return at if begins and not self._added_text.sub("", asked[at:]).strip() else None

    def special_tokens(self, rendering: Rendering) -> list[tuple[int, int, str]]:
        """The special tokens in the template's own text: start, end and content."""
        found: list[tuple[int, int, str]] = []
        at, end = 0, len(rendering.text)
        for start, behind, _ in [*rendering.spans, (end, end, 0)]:
            # texts inside of a marked text end before it: there is nothing from `at` to their start
            found += [(m.start(), m.end(), m[0]) for m in self.special_text.finditer(rendering.text, at, start)]
            at = max(at, behind)
        return found

    def spelled(self, text: str, tokens: Iterable[tuple[int, int, str]]) -> str:
        """A text with these of its special tokens in reserved spelling."""
        parts, at = [], 0
        for start, end, content in tokens:
            parts += [text[at:start], self._spelled[content]]
            at = end
        return "".join([*parts, text[at:]])

    def uncut(self, text: str, at: int) -> int:
        """`at`, or the start of the added token that has it inside."""
        return next((m.start() for m in self._added_text.finditer(text) if m.start() < at < m.end()), at)

    # Ids.

    def encode(self, texts: Sequence[str], offsets: bool = True) -> list[Encoding]:
        """Encode texts with special tokens in reserved spelling. Without `offsets` it takes less time.

        Raises:
            ModelError: the library fails on a text, which it does where a tokenizer lacks a token for unknown text.
        """
        encode = self.encoder.encode_batch if offsets else self.encoder.encode_batch_fast
        try:
            made: list[Encoding] = encode(texts, add_special_tokens=False)
            return made
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as e:  # the library raises plain Exception, and its panics are none
            if len(texts) > 1:
                return [encoding for text in texts for encoding in self.encode([text], offsets)]
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
            RenderError: the template refuses these messages or fails on them, or changes a text that spells a special
                token, which then cannot be told from the template's own.
        """
        try:
            found = self.marked(messages, tools, True, **variables).rendering
        except RenderError as e:
            if e.reason != "labels_uncertain" or self.special_text.search(json.dumps([messages, tools])):
                raise
            found = self.render(
                marks.plain_messages(messages, self.traits), marks.plain_tools(tools), True, **variables
            )
        return self.encode_text(self.spelled(found.text, self.special_tokens(found)))

    def encode_trusted(self, text: str) -> list[int]:
        """The ids of text that is not a user's: added tokens in it are tokens."""
        return self.encode_text(self.spelled(text, self.special_tokens(Rendering(text, [], []))))

    def stop_ids(self) -> list[int]:
        """The ids that stop generation, ascending: `eos_token`, and the special token that ends an assistant's turn."""
        return sorted({i for i in (*self.probe.turn_end[-1:], self.eos_id) if i is not None})

    @cached_property
    def _decoder(self) -> Tokenizer:
        """The unmodified tokenizer. Only decoding needs it, and loading it is slow."""
        return Tokenizer.from_str(json.dumps(_read_json(self.definition, self.where) | {"added_tokens": self._added}))

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


def common_prefix(a: str, b: str) -> int:
    """The number of characters at the start that two texts share."""
    return next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _read_json(content: bytes, where: str) -> dict[str, Any]:
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
    if asked and asked not in BUILT_IN:
        if not (file := storage.here(asked)).is_file():
            raise ModelError(f"chat template {asked!r}: expected a file or one of {', '.join(BUILT_IN)}")
        return file.read_text(encoding="utf-8")
    own = None if asked else settings.get("chat_template")
    if isinstance(own, list):
        named = {t["name"]: t["template"] for t in own}
        if "default" not in named:
            raise ModelError(f"{where}: its templates are {', '.join(named)}, none is `default`; give --chat-template")
        own = named["default"]
    return str(own) if own else built_in(asked or "chatml")


def built_in(name: str) -> str:
    """The source of a built-in template."""
    return (Path(__file__).parent / "templates" / f"{name}.jinja").read_text(encoding="utf-8")


def _unknown(model: Mapping[str, Any]) -> str | None:
    """The token for unknown text: Unigram gives its index, the others its spelling."""
    index = model.get("unk_id")
    return model.get("unk_token") if index is None else model["vocab"][index][0]


def _text(token: Any) -> str | None:
    """The text of a special token, which configs give as a string or as an AddedToken object."""
    return token.get("content") if isinstance(token, Mapping) else token


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    """Finds any of some texts, the longest first; nothing if there are none."""
    return re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))) or r"(?!)")
