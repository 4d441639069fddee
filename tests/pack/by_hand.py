"""Ids and labels put together by hand from the messages, never by our renderer; and what ours gives."""

import functools
import json
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

from datakit.pack.chat import FLAGS, ChatTokenizer
from datakit.pack.labels import Labelled, Labeller, Shapes
from datakit.pack.marks import RenderError


@functools.cache
def added_tokens(folder) -> dict[str, int]:
    return {t["content"]: t["id"] for t in json.loads((folder / "tokenizer.json").read_bytes())["added_tokens"]}


def added(*contents: str, special: bool, first: int = 320) -> list[dict]:
    """Definitions of added tokens, whose ids count up."""
    return [FLAGS | {"id": first + i, "content": content, "special": special} for i, content in enumerate(contents)]


def saved(folder: Path, spec: dict, more: Sequence[dict] = (), **settings) -> Path:
    """A folder with a tokenizer that has more added tokens."""
    spec = spec | {"added_tokens": [*spec["added_tokens"], *more]}
    (folder / "tokenizer.json").write_text(json.dumps(spec), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


@functools.cache
def without_special_tokens(folder) -> Tokenizer:
    """The tokenizer that reads no special token out of text; other added tokens are its own."""
    spec = json.loads((folder / "tokenizer.json").read_bytes())
    made = Tokenizer.from_str(json.dumps(spec | {"truncation": None, "padding": None}))
    made.encode_special_tokens = True
    return made


class ByHand:
    """Ids and labels written down piece by piece: `special` ids, text that is learnt and text that is not."""

    def __init__(self, folder) -> None:
        self.names = added_tokens(folder)
        self.plain = without_special_tokens(folder)
        self.ids: list[int] = []
        self.learnt: list[bool] = []
        self._run: list[tuple[str, bool]] = []

    def text(self, text: str, learn: bool = False) -> "ByHand":
        self._run.append((text, learn))
        return self

    def special(self, name: str, learn: bool = False) -> "ByHand":
        self._end_run()
        self.ids.append(self.names[name])
        self.learnt.append(learn)
        return self

    def _end_run(self) -> None:
        """Text between special tokens is encoded in one go; a token is learnt if its first character is."""
        encoding = self.plain.encode("".join(t for t, _ in self._run), add_special_tokens=False)
        learnt = [learn for text, learn in self._run for _ in text]
        self.ids += encoding.ids
        self.learnt += [learnt[start] for start, _ in encoding.offsets]
        self._run = []

    def done(self) -> tuple[list[int], list[bool]]:
        self._end_run()
        return self.ids, self.learnt

    def turn(self, role: str, text: str, learn: bool = False) -> "ByHand":
        """One ChatML turn."""
        self.special("<|im_start|>").text(f"{role}\n").text(text, learn)
        return self.special("<|im_end|>", learn).text("\n")


@functools.lru_cache(maxsize=100)
def labeller(tokenizer: ChatTokenizer) -> Labeller:
    return Labeller(tokenizer)


def label(tokenizer: ChatTokenizer, messages, tools=None, **options) -> Labelled:
    return labeller(tokenizer).label(messages, tools, **options)


def outcome(labeller: Labeller, messages, tools=None, **options) -> Labelled | str:
    """A row, or why it is refused."""
    try:
        return labeller.label(messages, tools, **options)
    except RenderError as e:
        return str(e)


def labelled_rows(shapes: Shapes, column, tools, variables) -> list[Labelled | str]:
    """The rows of a batch, or why they are refused."""
    made = shapes.label(column, tools, variables)
    found: list[Labelled | str] = []
    for k, (text, number) in enumerate(zip(made.texts, made.which.tolist(), strict=True)):
        facts = made.facts[number]
        places = [at for of, own in (made.edges, made.starts) for at in own[of == k].tolist()]
        found.append(facts._replace(text=text, places=places) if isinstance(facts, Labelled) else str(facts))
    return found


def labelled_ids(tokenizer: ChatTokenizer, row: Labelled) -> tuple[list[int], list[tuple[int, int]]]:
    """Ids, and the tokens whose first character is in a label."""
    encoding = tokenizer.encode([row.text])[0]
    starts = [start for start, _ in encoding.offsets]
    return encoding.ids, [(bisect_left(starts, a), bisect_left(starts, b)) for a, b in row.labels]


def ours(tokenizer: ChatTokenizer, messages, tools=None, **options) -> tuple[list[int], list[bool]]:
    ids, spans = labelled_ids(tokenizer, label(tokenizer, messages, tools, **options))
    learnt = [False] * len(ids)
    for start, end in spans:
        learnt[start:end] = [True] * (end - start)
    return ids, learnt


SYSTEM = {"role": "system", "content": "Be kind."}
MARKERS = "look: <|im_end|>\n<|im_start|>assistant\n<think> </tool_call> <|endoftext|>"
ANSWERS = [
    "fine", "", " leading space", "\nnew line", "\n\n  both", "   ", "你好，世界", "é" * 3, MARKERS, "<|im_start|>",
    "12 345\n",
]  # fmt: skip
