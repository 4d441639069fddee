"""Lines, paragraphs and sentences of texts: where they lie, and hashes that are equal where their words are.

Units compare by their words, as documents do (`text.words`): NFC, case-folded, without punctuation and white space.
A line ends where `str.splitlines` ends one, a paragraph at a blank line, a sentence at its mark (of any script, with
the quotes and brackets behind it) and at the end of its line. Marks of scripts written without spaces need no space
behind them. Thai and Lao mark no sentence's end: there a sentence is a line.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.native import Kernels
from datakit.text.characters import BREAKS, QUOTES, TERMINALS, row_chunks, string_array, string_buffers
from datakit.text.normal_form import compose
from datakit.text.words import hash_words_in

Unit = Literal["line", "paragraph", "sentence"]
NONE: Final = np.uint64(2**64 - 1)
"""The hash of a span that is not compared."""

SPACE, BREAK, TERMINAL, CLOSER, OPENER, ALONE = (1 << bit for bit in range(6))
"""What a character is: white space, the end of a line or of a sentence, what may stand behind the latter, what of that
may also open the next one, an end that needs no space behind it."""

_kernels = Kernels("datakit.dedup._kernels_units")
_MODES: Final = {"line": 0, "paragraph": 1, "sentence": 2}
_BRACKETS: Final = ")]}\u300b\u300d\u300f\u3011\uff09\uff3d"
_OPENERS: Final = "“‘"  # they close in other languages
_ALONE: Final = "\u104a\u104b\u17d4\u17d5\u3002\uff01\uff1f\uff61"
_CHUNK_BYTES: Final = 1 << 20


@lru_cache(maxsize=1)
def flags() -> npt.NDArray[np.uint8]:
    """uint8[0x110000]: what each code point is to the kernels. Read-only."""
    table = np.zeros(0x110000, np.uint8)
    table[[c for c in range(0x3001) if chr(c).isspace()]] = SPACE
    marks = {
        BREAK: BREAKS,
        TERMINAL: TERMINALS,
        CLOSER: QUOTES + _BRACKETS,
        OPENER: _OPENERS,
        ALONE: _ALONE,
    }
    for flag, chars in marks.items():
        table[[ord(c) for c in chars]] |= np.uint8(flag)
    table.setflags(write=False)
    return table


@dataclass(frozen=True, slots=True)
class Units:
    """Bytes of a string array's buffer that the units fill: unit u is `data[starts[u]:ends[u]]`.

    int64 each; those of row i are numbered from `row_starts[i]` to `row_starts[i + 1]`.
    """

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    row_starts: npt.NDArray[np.int64]


def find_units(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], unit: Unit) -> Units:
    """The units of texts, given as `string_buffers` gives them."""
    most = (offsets[-1] - offsets[0]) // 2 + len(offsets)
    starts, ends, row_starts = np.empty(most, np.int64), np.empty(most, np.int64), np.empty_like(offsets)
    _kernels.find_units(data, offsets, flags(), _MODES[unit], starts, ends, row_starts)
    return Units(starts[: row_starts[-1]].copy(), ends[: row_starts[-1]].copy(), row_starts)


@dataclass(frozen=True, slots=True)
class Spans:
    """Of each unit: the hash of the span that begins with it (uint64; NONE where none is compared), its words (uint32).

    Those of row i are `[row_starts[i], row_starts[i + 1])`.
    """

    hashes: npt.NDArray[np.uint64]
    words: npt.NDArray[np.uint32]
    row_starts: npt.NDArray[np.int64]


def hash_spans(texts: pa.Array, unit: Unit, span: int, min_words: int, digits: str) -> Spans:
    """Hash every `span` units in a row of each text that have at least `min_words` words together.

    With `digits` "zero" every decimal digit counts as 0.
    """
    texts = compose(texts)
    if digits == "zero":
        texts = pc.replace_substring_regex(texts, r"\p{Nd}", "0")
    data, offsets = string_buffers(texts)
    parts = [
        _spans_of(data, offsets[begin : end + 1], unit, span, min_words)
        for begin, end in row_chunks(offsets, _CHUNK_BYTES)
    ]
    sizes = np.concatenate([np.diff(p.row_starts) for p in parts]) if parts else np.empty(0, np.int64)
    return Spans(
        np.concatenate([p.hashes for p in parts]) if parts else np.empty(0, np.uint64),
        np.concatenate([p.words for p in parts]) if parts else np.empty(0, np.uint32),
        np.concatenate(([0], np.cumsum(sizes))),
    )


def _spans_of(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], unit: Unit, span: int, min_words: int
) -> Spans:
    units = find_units(data, offsets, unit)
    words, word_starts = words_of(data, offsets, units)
    hashes, counts = np.empty(len(units.starts), np.uint64), np.empty(len(units.starts), np.uint32)
    _kernels.hash_units(words, word_starts, hashes, counts)
    spans = np.empty_like(hashes)
    _kernels.hash_spans(hashes, counts, units.row_starts, span, min_words, spans)
    return Spans(spans, counts, units.row_starts)


def words_of(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], units: Units
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The hashes of the words of all units, and where each unit's begin (units + 1)."""
    # between two units there is white space alone, which has no words
    return hash_words_in(data, np.append(units.starts, offsets[-1]))


class _Text(NamedTuple):
    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]


class _Bounds(NamedTuple):
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    row_starts: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cut:
    """Texts without some of their units. Of each cut unit: its bytes, and at which byte of its row they stood."""

    texts: pa.Array
    pieces: pa.Array
    places: npt.NDArray[np.int64]


def cut_units(texts: pa.Array, unit: Unit, rows: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> Cut:
    """Cut units out of texts: unit `numbers[k]` of the text `rows[k]`, in ascending order of both.

    The text that is left and the pieces have all bytes between them; white space around a cut goes with the piece, so
    that what is left reads as if it had never been there: paragraphs stay apart, lines keep their indentation.
    """
    data, offsets = string_buffers(texts)
    units = find_units(data, offsets, unit)
    cut = np.zeros(len(units.starts), np.bool_)
    cut[units.row_starts[rows] + numbers] = True
    size = offsets[-1] - offsets[0]
    kept, gone = np.empty(size, np.uint8), np.empty(size, np.uint8)
    kept_offsets, gone_offsets = np.empty_like(offsets), np.zeros(len(rows) + 1, np.int64)
    places = np.empty(len(rows), np.int64)
    found = _Bounds(units.starts, units.ends, units.row_starts)
    _kernels.cut_units(_Text(data, offsets), flags(), found, cut, kept, kept_offsets, gone, gone_offsets, places)
    made = string_array(kept[: kept_offsets[-1]], kept_offsets)
    return Cut(made, string_array(gone[: gone_offsets[-1]], gone_offsets), places)
