"""Suites of questions: multiple choice by likelihood, and answers that are generated and compared.

A file is recognised by the fields of its first line, JSON or JSON lines as the suites are published:

    ARC             question, choices {text, label}, answerKey
    HellaSwag       ctx (or ctx_a, ctx_b), endings, label
    MMLU            question, choices (a list, or by letter), answer (a number or a letter)
    C-Eval, CMMLU   question (or Question), A, B, C, D, answer (or Answer)
    GSM8K           question, answer with `#### 18`

Prompts and scores are those of lm-evaluation-harness (Gao et al., 2023): `acc` takes the choice with the highest summed
log-probability, `acc_norm` divides it by the characters of the choice. Of a generated answer, `strict_match` compares
what follows the first `####`, `flexible_extract` the last number, and `exact` what rewards find (`answer_in`).

Shapes: A sequences of a batch.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from datakit.errors import InputError
from datakit.pack.chat import ChatTokenizer
from train.attention import ATTENTIONS
from train.batching import answers
from train.data import flat_batch
from train.device import autocast
from train.loss import gathered, row_log_probs
from train.model import CausalLM
from train.rewards import answer_in, same_answer
from train.sample import SampleConfig
from train.stream import by_size

LETTERS = list("ABCDEFGHIJ")
STOPS = ("Question:", "</s>", "<|im_end|>")
"""A generated answer ends before the first of these."""
EXTRACTS = {"strict_match": (r"#### (-?[0-9.,]+)", 0), "flexible_extract": (r"-?[$0-9.,]{2,}|-?[0-9]+", -1)}
"""The harness's filters of GSM8K: a pattern, and which of its matches is the answer."""


@dataclass(frozen=True, slots=True)
class Item:
    """A question, with its choices and the number of the right one; or, without choices, with its right answer."""

    prompt: str
    choices: tuple[str, ...] = ()
    """Each with the space before it, which `acc_norm` does not count."""
    right: int = -1
    answer: str = ""
    shown: str = ""
    """The question with its right answer, as an example before other questions."""
    head: str = ""
    """What stands before the examples."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The questions of a file."""

    name: str
    layout: str
    items: list[Item]

    @classmethod
    def read(cls, path: Path, shots: int = 0, shots_from: Path | None = None) -> "Suite":
        """Read a file; the first `shots` items of `shots_from` stand before each question, solved.

        Raises:
            InputError: it cannot be read, or its layout is unknown.
        """
        rows = _rows(path)
        layout = next((name for name, (fits, _) in LAYOUTS.items() if fits(rows[0][1])), "")
        if not layout:
            raise InputError(f"{path}: fields {', '.join(rows[0][1])}: expected those of {', '.join(LAYOUTS)}")
        items = [_item(path, number, row, LAYOUTS[layout][1]) for number, row in rows]
        if shots and shots_from is None:
            raise InputError(f"{path}: --shots needs --shots-from: questions with answers, not those that are scored")
        solved = cls.read(shots_from).items[:shots] if shots and shots_from else []
        if len(solved) < shots:
            raise InputError(f"{shots_from}: has {len(solved)} questions, and --shots wants {shots}")
        before = "".join(f"{item.shown}\n\n" for item in solved)
        return cls(path.stem, layout, [replace(i, prompt=i.head + before + i.prompt) for i in items])


def read_suites(files: Sequence[str], shots: int = 0, shots_from: Path | None = None) -> list[Suite]:
    """The suites of some files; files of one name are called by their paths, so that all are reported."""
    found = [Suite.read(Path(file), shots, shots_from) for file in files]
    names = [suite.name for suite in found]
    return [replace(s, name=f) if names.count(s.name) > 1 else s for s, f in zip(found, files, strict=True)]


def _rows(path: Path) -> list[tuple[int, dict[str, Any]]]:
    data = path.read_bytes()  # as bytes, since U+2028 and the like end lines of text, and JSON may hold them
    lines = ((n, json.loads(line)) for n, line in enumerate(data.splitlines(), 1) if line.strip())
    try:
        array = data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        rows = list(enumerate(json.loads(data), 1) if array else lines)
    except ValueError as e:
        raise InputError(f"{path}: expected JSON or JSON lines ({e})") from None
    wrong = [f"item {n} is {str(row)[:60]}" for n, row in rows if not isinstance(row, dict)]
    if wrong or not rows:
        raise InputError(f"{path}: {(wrong or ['has no questions'])[0]}; expected a JSON object per line")
    return rows


def _item(path: Path, number: int, row: Mapping[str, Any], make: Callable[[Mapping[str, Any]], Item]) -> Item:
    try:
        item = make(row)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as e:
        raise InputError(f"{path}: item {number} lacks its question, its choices or its answer ({e!r})") from None
    if item.choices and not 0 <= item.right < len(item.choices):
        raise InputError(f"{path}: item {number} has {len(item.choices)} choices, and none is the answer")
    return item


def _text(value: Any) -> str:
    """A text or a number as a text; anything else, such as null, would become a question or an answer in words."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
        raise ValueError(f"expected a text, found {value!r}")
    return str(value)


def _arc(row: Mapping[str, Any]) -> Item:
    labels = list(row["choices"]["label"])
    choices = tuple(f" {text}" for text, _ in zip(row["choices"]["text"], labels, strict=True))
    right, prompt = labels.index(str(row["answerKey"])), f"Question: {_text(row['question'])}\nAnswer:"
    return Item(prompt, choices, right, shown=prompt + choices[right])


def _hellaswag(row: Mapping[str, Any]) -> Item:
    context = f"{row['ctx_a']} {row['ctx_b'].capitalize()}" if row.get("ctx_b") else row.get("ctx") or row["ctx_a"]
    prompt = _clean(f"{row['activity_label']}: {context}" if "activity_label" in row else context)
    choices = tuple(f" {_clean(ending)}" for ending in row["endings"])
    return Item(prompt, choices, int(row["label"]), shown=prompt + choices[int(row["label"])])


def _clean(text: str) -> str:
    """WikiHow's marks out of a text, as the harness does it."""
    return re.sub(r"\[.*?\]", "", text.strip().replace(" [title]", ". ")).replace("  ", " ")


def _lettered(question: str, choices: Sequence[Any], right: int, ask: str, head: str) -> Item:
    listed = "".join(f"\n{letter}. {text}" for letter, text in zip(LETTERS, choices, strict=False))
    prompt = f"{_text(question).strip()}{listed}\n{ask}"
    letters = tuple(f" {letter}" for letter in LETTERS[: len(choices)])
    return Item(prompt, letters, right, shown=prompt + letters[right], head=head)


def _mmlu(row: Mapping[str, Any]) -> Item:
    answer, choices = str(row["answer"]).strip().removesuffix(".0"), row["choices"]
    right = LETTERS.index(answer) if answer in LETTERS else int(answer)
    choices = [choices[letter] for letter in LETTERS[: len(choices)]] if isinstance(choices, dict) else choices
    subject = str(row.get("subject", "")).replace("_", " ")
    about = f" about {subject}" if subject else ""
    head = f"The following are multiple choice questions (with answers){about}.\n\n"
    return _lettered(row["question"], choices, right, "Answer:", head)


def _ceval(row: Mapping[str, Any]) -> Item:
    question, answer = (_text(row.get(name, row.get(name.capitalize()))) for name in ("question", "answer"))
    choices = [row[letter] for letter in LETTERS if letter in row]
    subject = str(row.get("subject", ""))
    head = f"以下是中国关于{subject}的单项选择题，请选出其中的正确答案。\n\n" if subject else ""
    return _lettered(question, choices, LETTERS.index(answer.strip()), "答案：", head)


def _gsm8k(row: Mapping[str, Any]) -> Item:
    prompt, answer = f"Question: {_text(row['question'])}\nAnswer:", _text(row["answer"])
    return Item(prompt, answer=answer, shown=f"{prompt} {answer}")


LAYOUTS: dict[str, tuple[Callable[[Mapping[str, Any]], bool], Callable[[Mapping[str, Any]], Item]]] = {
    "arc": (lambda r: isinstance(r.get("choices"), dict) and "answerKey" in r, _arc),
    "hellaswag": (lambda r: "endings" in r and "label" in r, _hellaswag),
    "mmlu": (lambda r: isinstance(r.get("choices"), list | dict) and "answer" in r, _mmlu),
    "ceval": (lambda r: {"A", "B"} <= r.keys(), _ceval),
    "gsm8k": (lambda r: {"question", "answer"} <= r.keys() and not r.keys() & {"choices", "options"}, _gsm8k),
}
"""Layouts by name: how a row of it is recognised, and how it becomes an item. The first that fits is taken."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteScore:
    """The scores of a suite."""

    layout: str
    items: int
    metrics: dict[str, float]
    """Shares of the items: `acc`, `acc_norm` for choices, `exact` and the names of EXTRACTS for generated answers."""

    def record(self) -> dict[str, Any]:
        """As a JSON object; `stderr` is the standard error of the first score."""
        p = next(iter(self.metrics.values()))
        error = (p * (1 - p) / max(1, self.items - 1)) ** 0.5
        return {"layout": self.layout, "items": self.items} | self.metrics | {"stderr": error}


def suite_score(
    model: CausalLM, suite: Suite, tokenizer: ChatTokenizer, precision: str, tokens: int = 4096, new_tokens: int = 256
) -> SuiteScore:
    """The scores of a model; batches have up to `tokens` tokens, generated answers up to `new_tokens`.

    A prompt that is too long for the model loses its beginning, as in the harness.
    """
    if not suite.items[0].choices:
        return _generated(model, suite, tokenizer, tokens, new_tokens)
    most = model.config.max_positions
    pairs = [_encoded(tokenizer, item.prompt, c, most) for item in suite.items for c in item.choices]
    sums = log_probs_of(model, pairs, precision, tokens)
    right, right_norm, at = 0, 0, 0
    for item in suite.items:
        own = np.array(sums[at : at + len(item.choices)])
        at += len(item.choices)
        right += int(own.argmax()) == item.right
        right_norm += int((own / [max(1, len(c) - 1) for c in item.choices]).argmax()) == item.right
    n = len(suite.items)
    return SuiteScore(layout=suite.layout, items=n, metrics={"acc": right / n, "acc_norm": right_norm / n})


def _encoded(tokenizer: ChatTokenizer, prompt: str, choice: str, most: int) -> tuple[list[int], int]:
    """Tokens of prompt and choice, and where the choice begins; spaces at the prompt's end belong to the choice."""
    whole, begin = tokenizer.encode_document(prompt + choice), len(tokenizer.encode_document(prompt.rstrip()))
    cut = max(0, len(whole) - most - 1)  # the model does not read the last token
    return whole[cut:], max(1, begin - cut)


@torch.no_grad()
def log_probs_of(
    model: CausalLM, pairs: Sequence[tuple[list[int], int]], precision: str, tokens: int = 4096
) -> list[float]:
    """The summed log-probability of each continuation: (ids, where it begins); each sequence is read by itself."""
    device, found = next(model.parameters()).device, [0.0] * len(pairs)
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i][0]))
    for places in by_size([len(pairs[i][0]) for i in order], tokens):
        part = [order[place] for place in places]
        labels = [np.arange(pairs[k][1] - 1, len(pairs[k][0]) - 1) for k in part]
        batch = flat_batch([np.array(pairs[k][0]) for k in part], labels, np.array(part), 0).to(device)
        with autocast(device, precision):
            hidden_BTD = model(batch.ids_BT, batch.segments.positions_BT, ATTENTIONS["grouped"](batch.segments))
            label_pos_L, targets_L = batch.counted
            row_L = batch.segments.sequence_BT.flatten()[label_pos_L] - 1
            sums_A, _ = row_log_probs(gathered(hidden_BTD, label_pos_L), model.lm_head, targets_L, row_L, len(part))
        for k, value in zip(part, sums_A.tolist(), strict=True):
            found[k] = value
    return found


def _generated(model: CausalLM, suite: Suite, tokenizer: ChatTokenizer, tokens: int, new_tokens: int) -> SuiteScore:
    """The share of items whose generated answer is right: greedy, up to the next question."""
    context = model.config.context
    new_tokens = min(new_tokens, context // 2)
    prompts = [tokenizer.encode_document(item.prompt)[-(context - new_tokens) :] for item in suite.items]
    slots = max(1, tokens // (max(map(len, prompts)) + new_tokens))
    texts = answers(model, tokenizer, prompts, SampleConfig(max_new_tokens=new_tokens), STOPS, slots)
    pairs = [(text, item.answer) for text, item in zip(texts, suite.items, strict=True)]
    right = {"exact": sum(same_answer(answer_in(text), answer_in(answer)) for text, answer in pairs)}
    for name, (pattern, which) in EXTRACTS.items():
        said = [(re.findall(pattern, text) or ["[invalid]"])[which] for text, _ in pairs]
        right[name] = sum(_bare(one) == _bare(answer) for one, (_, answer) in zip(said, pairs, strict=True))
    return SuiteScore(layout=suite.layout, items=len(texts), metrics={k: n / len(texts) for k, n in right.items()})


def _bare(answer: str) -> str:
    """What the harness compares: the text after the last `####`, without commas, dollars and a full stop at its end."""
    return re.sub(r"\.$", "", re.sub(r"(?s).*#### ", "", re.sub(r"[,$]", "", answer.strip()))).lower()
