"""Evaluation sets: their items, prompt and answer told apart, and an index of their word n-grams."""

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from datakit.config import sha256_file
from datakit.errors import InputError
from datakit.text.words import hash_words

PROMPTS = ("question", "prompt", "instruction", "problem", "query", "input", "text", "goal", "ctx", "sentence")
ANSWERS = ("answer", "output", "completion", "response", "solution", "target", "canonical_solution")
"""Where an item's prompt and answer stand: all of these that hold text, joined in this order."""

PARTS = ("prompt", "answer")


@dataclass(frozen=True, slots=True)
class Index:
    """The n-grams of the items of some files. A part is the prompt or the answer of one item."""

    slots: NDArray[np.uint64]
    numbers: NDArray[np.int32]
    """The table of n-gram hashes that `_kernels_contamination.find` takes."""
    lengths: NDArray[np.int64]
    """Words of an n-gram: the sizes there are."""
    gram_parts: NDArray[np.int64]
    """The parts that hold n-gram i: `gram_parts[gram_starts[i]:gram_starts[i + 1]]`."""
    gram_starts: NDArray[np.int64]
    grams: NDArray[np.int64]
    """By part: how many different n-grams it has; 0 for one with too few words."""
    sizes: NDArray[np.int64]
    """By part: the words of its n-grams."""
    items: tuple[str, ...]
    """By item: `<file name>:<record>`, records counted from 0. Item i has the parts 2i (prompt) and 2i + 1 (answer)."""


@functools.lru_cache(maxsize=4)
def index(files: tuple[str, ...], words: int, short_words: int) -> Index:
    """The index of evaluation files: n-grams of `words` words, of `short_words` in parts with fewer words.

    Raises:
        InputError: a file that cannot be read, or holds no item with text.
    """
    from datakit.filter import _kernels_contamination

    names, texts = [], []
    for file in files:
        items = list(_items(Path(file)))
        names += [f"{Path(file).name}:{record}" for record, _, _ in items]
        texts += [text for _, *parts in items for text in parts]
    hashes, starts = hash_words(pa.array(texts, pa.string()))
    counts = np.diff(starts)
    sizes = np.where(counts >= words, words, short_words)
    grams = [
        np.unique(_kernels_contamination.rolling(hashes[begin:end], size))
        for (begin, end), size in zip(pairwise(starts.tolist()), sizes.tolist(), strict=True)
    ]
    held = np.array([len(g) for g in grams], np.int64)
    part = np.repeat(np.arange(len(grams)), held)
    keys, inverse = np.unique(np.concatenate([*grams, np.empty(0, np.uint64)]), return_inverse=True)
    slots, numbers = _kernels_contamination.table_of(keys)
    gram_starts = np.searchsorted(np.sort(inverse), np.arange(len(keys) + 1))
    lengths = np.unique(sizes[held > 0]).astype(np.int64)
    return Index(
        slots, numbers, lengths, part[np.argsort(inverse, kind="stable")], gram_starts, held, sizes, tuple(names)
    )


def digests(files: tuple[str, ...]) -> dict[str, str]:
    """SHA-256 of each file, by its name.

    Raises:
        InputError: a file that is not there, or two of one name.
    """
    found: dict[str, str] = {}
    for file in files:
        path = Path(file)
        if not path.is_file():
            raise InputError(f"{file}: the evaluation file is not there; contamination.eval names files")
        if path.name in found:
            raise InputError(f"{file}: two evaluation files are named {path.name}; results could not tell them apart")
        found[path.name] = sha256_file(path)
    return found


def _items(path: Path) -> Iterator[tuple[int, str, str]]:
    """(record, prompt, answer) of each item of a JSONL file or JSON array, compressed or not."""
    try:
        with pa.input_stream(str(path)) as stream:
            raw = stream.read()
        records = (
            json.loads(raw) if raw.lstrip()[:1] == b"[" else [json.loads(s) for s in raw.splitlines() if s.strip()]
        )
    except (OSError, ValueError) as e:
        raise InputError(f"{path}: cannot be read as JSON lines or a JSON array of evaluation items: {e}") from None
    found = 0
    for record, item in enumerate(records):
        prompt, answer = _part(item, PROMPTS), _part(item, ANSWERS)
        if prompt or answer:
            found += 1
            yield record, prompt, answer
    if not found:
        raise InputError(
            f"{path}: no record has text in a field that evaluation items have: {', '.join(PROMPTS + ANSWERS)}"
        )


def _part(item: Any, names: tuple[str, ...]) -> str:
    values = [item.get(name) for name in names] if isinstance(item, dict) else [item] if names is PROMPTS else []
    return "\n".join(v for v in values if isinstance(v, str) and v.strip())
