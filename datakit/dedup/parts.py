"""Texts as the n-grams of their words, and how many words each of their parts has."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datakit.dedup.units import Unit, Units, find_units, words_of
from datakit.native import Kernels
from datakit.text.characters import row_chunks, string_buffers
from datakit.text.normal_form import compose

_kernels = Kernels("datakit.dedup._kernels_bloom")
_CHUNK_BYTES = 1 << 20
_SALTS = np.arange(3, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of row i have `words[part_starts[i]:part_starts[i + 1]]` words each (uint32). Its n-grams (uint64), one
    for each word that enough words follow, are `hashes[hash_starts[i]:hash_starts[i + 1]]`.
    """

    words: npt.NDArray[np.uint32]
    part_starts: npt.NDArray[np.int64]
    hashes: npt.NDArray[np.uint64]
    hash_starts: npt.NDArray[np.int64]


def hash_ngrams(texts: pa.Array, part: Unit | None, ngram_words: int) -> Parts:
    """Hash every `ngram_words` words in a row of each text; with `part` None a text is one part."""
    data, offsets = string_buffers(compose(texts))
    chunks = [_parts(data, offsets[b : e + 1], part, ngram_words) for b, e in row_chunks(offsets, _CHUNK_BYTES)]
    return Parts(
        np.concatenate([np.empty(0, np.uint32), *(c.words for c in chunks)]),
        _joined([c.part_starts for c in chunks]),
        np.concatenate([np.empty(0, np.uint64), *(c.hashes for c in chunks)]),
        _joined([c.hash_starts for c in chunks]),
    )


def hash_sides(sides: Sequence[pa.Array], ngram_words: int) -> Parts:
    """The n-grams of each side of a row by itself, told apart by the side; a row is one part (`text.view.sides`)."""
    found = [hash_ngrams(texts, None, ngram_words) for texts in sides]
    if len(found) == 1:
        return found[0]
    rows = [np.repeat(np.arange(len(one.words)), np.diff(one.hash_starts)) for one in found]
    hashes = np.concatenate([one.hashes ^ salt for one, salt in zip(found, _SALTS, strict=True)])
    return Parts(
        words=np.sum([one.words for one in found], axis=0, dtype=np.uint32),
        part_starts=found[0].part_starts,
        hashes=hashes[np.argsort(np.concatenate(rows), kind="stable")],
        hash_starts=np.sum([one.hash_starts for one in found], axis=0, dtype=np.int64),
    )


def _joined(starts: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return np.cumsum(np.concatenate([[0], *map(np.diff, starts)]), dtype=np.int64)


def _parts(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], part: Unit | None, ngram_words: int) -> Parts:
    whole = Units(offsets[:-1], offsets[1:], np.arange(len(offsets)))
    units = find_units(data, offsets, part) if part else whole
    words, word_starts = words_of(data, offsets, units)
    hashes, hash_starts = np.empty(len(words) + 1, np.uint64), np.empty_like(offsets)
    _kernels.hash_ngrams(words, word_starts[units.row_starts], ngram_words, hashes, hash_starts)
    return Parts(
        np.diff(word_starts).astype(np.uint32), units.row_starts, hashes[: hash_starts[-1]].copy(), hash_starts
    )
