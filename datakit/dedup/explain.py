"""Why two texts count as duplicates or do not, in words instead of hashes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from datakit.dedup.star import to_thousandths
from datakit.text.normal_form import normalize
from datakit.text.words import split_words

SIDES = ("prompt", "chosen", "rejected")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two texts side by side. Shingles are written as their words with a space between, in the order of the text."""

    similarity: float
    """Exact Jaccard similarity of the shingle sets, rounded to 1e-3; for texts too short for a shingle, 1 if equal."""
    equal: bool
    """The normalised texts are equal: exact duplicates."""
    shared: tuple[str, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]


def compare(first: str, second: str, shingle_words: int) -> Comparison:
    """Compare two views of rows as the dedup stage does."""
    return compare_sides([first], [second], shingle_words)


def compare_sides(first: Sequence[str], second: Sequence[str], shingle_words: int) -> Comparison:
    """Compare two rows as the dedup stage does: their views, or of preference pairs the `text.view.sides`, whose
    shingles are told apart: they are written with `SIDES`.
    """
    one, two = (normalize(pa.array(texts, pa.string())).to_pylist() for texts in (first, second))
    a, b = _all_shingles(one, shingle_words), _all_shingles(two, shingle_words)
    union = a.keys() | b.keys()
    shared = np.array(len(a.keys() & b.keys()))
    similarity = float(to_thousandths(shared, np.array(len(union)))) if a and b else float(one == two)
    return Comparison(
        similarity=similarity,
        equal=one == two,
        shared=tuple(s for s in a if s in b),
        only_first=tuple(s for s in a if s not in b),
        only_second=tuple(s for s in b if s not in a),
    )


def _all_shingles(sides: list[str], size: int) -> dict[str, None]:
    if len(sides) == 1:
        return _shingles(sides[0], size)
    found = ((name, _shingles(text, size) or [text] * bool(text)) for name, text in zip(SIDES, sides, strict=True))
    return dict.fromkeys(f"{name}: {shingle}" for name, shingles in found for shingle in shingles)


def _shingles(text: str, size: int) -> dict[str, None]:
    """The distinct shingles of a text, in order (a dict, because sets have no order)."""
    words = split_words(text)
    return dict.fromkeys(" ".join(words[i : i + size]) for i in range(len(words) - size + 1))
