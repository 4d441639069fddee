"""What of a row is compared: its normalised text and the shingles of it; of a preference pair, each side by itself.

A pair whose answers changed places teaches the contrary, so the shingles of the prompt and of both answers are told
apart, and rows are duplicates only if their answers alone are similar enough too, whatever the length of the prompt.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.dedup.config import DedupConfig
from datakit.dedup.minhash import ShingleSets, shingle_sets
from datakit.text.normal_form import compose, hash_values, normalize
from datakit.data import sides

_SIDE_SHIFT = np.uint64(62)  # the two highest bits of a hash are the number of its side
_SALTS = np.arange(3, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # signatures are made of the low bits


def has_sides(kind: str, on: str) -> bool:
    """Whether rows of a kind are compared side by side."""
    return kind == "preference" and on != "prompt"


def compared(batch: pa.RecordBatch, config: DedupConfig) -> list[pa.Array]:
    """The text of each row in NFC; of preference pairs the prompts, the chosen answers and the rejected ones, each in
    its normal form, by which the short ones are compared. (White space is in no word, so a text may keep its own.)"""
    texts = sides(batch, config.on, config.include_system, include_calls=True)
    return [compose(texts[0])] if len(texts) == 1 else [normalize(t) for t in texts]


def whole(texts: Sequence[pa.Array]) -> pa.Array:
    """One normalised text a row, equal for rows that are equal on every side: none has a line break of its own."""
    return normalize(texts[0]) if len(texts) == 1 else pc.binary_join_element_wise(*texts, "\n")


def sets_of(texts: Sequence[pa.Array], shingle_words: int) -> ShingleSets:
    """The set of shingle hashes of each row.

    Those of side n have n in their two highest bits, and are mixed with it. A side with fewer words than a shingle
    counts as one, by its text; an empty one not at all.
    """
    if len(texts) == 1:
        return shingle_sets(texts[0], shingle_words)
    rows, hashes = [], []
    for side, text in enumerate(texts):
        found = shingle_sets(text, shingle_words)
        sizes = np.diff(found.starts)
        short = np.flatnonzero((sizes == 0) & (pc.binary_length(text).to_numpy() > 0))
        rows.append(np.concatenate([np.repeat(np.arange(len(sizes)), sizes), short]))
        mixed = np.concatenate([found.hashes, hash_values(text.take(pa.array(short)))]) ^ _SALTS[side]
        hashes.append(mixed << np.uint64(2) >> np.uint64(2) | np.uint64(side) << _SIDE_SHIFT)
    row, made = np.concatenate(rows), np.concatenate(hashes)
    order = np.lexsort((made, row))
    row, made = row[order], made[order]
    fresh = np.ones(len(row), np.bool_)
    fresh[1:] = (row[1:] != row[:-1]) | (made[1:] != made[:-1])
    counts = np.bincount(row[fresh], minlength=len(texts[0]))
    return ShingleSets(made[fresh], np.concatenate(([0], np.cumsum(counts))))
