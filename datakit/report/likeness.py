"""Similarity of dropped rows to the rows that stayed for them, where the stage itself compared something else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import read_shard
from datakit.dedup._kernels_cluster import shared_values
from datakit.dedup.cluster import to_thousandths
from datakit.dedup.minhash import compared_texts, row_shingles, whole_text
from datakit.dedup.stage import DedupConfig
from datakit.manifest import Manifest, data_dir, tables
from datakit.text.words import normalize, split_words

_NAMES = ["row_key", "id", "reason", "duplicate_of"]


class _Text(NamedTuple):
    """The shingles of a row; where it has none, its normalised text."""

    shingles: npt.NDArray[np.uint64]
    short: str


def with_likeness(path: Path, manifest: Manifest) -> Iterator[pa.RecordBatch]:
    """The ids of the dropped rows of a stage and of the rows that stay for them, with the `similarity` of the two (null
    where no row is named): the exact Jaccard similarity of their shingles, as `dedup` computes it by default.
    """
    folder = data_dir(path, manifest)
    gone = [folder / shard.path for shard in tables(manifest, "dropped")]
    named = pa.chunked_array([b.column(0) for f in gone for b in read_shard(f, ["duplicate_of"])] or [[]], pa.string())
    stay = dict[str, _Text]()
    for shard in tables(manifest, "kept"):
        for batch in _holding(folder / shard.path, named):
            stay |= dict(zip(batch.column("id").to_pylist(), _texts(batch), strict=True))
    for file in gone:
        for batch in read_shard(file):
            of = batch.column("duplicate_of").to_pylist()
            pairs = zip(_texts(batch), map(stay.get, of), strict=True)
            similarity = pa.array([None if other is None else _similarity(one, other) for one, other in pairs], "f8")
            yield batch.select(_NAMES).append_column("similarity", similarity)


def _holding(file: Path, ids: pa.ChunkedArray) -> Iterator[pa.RecordBatch]:
    """The rows with these ids; of a shard without any of them only the ids are read."""
    if any(pc.any(pc.is_in(b.column("id"), ids)).as_py() for b in read_shard(file, ["id"])):
        for batch in read_shard(file):
            yield batch.filter(pc.is_in(batch.column("id"), ids))


def _texts(batch: pa.RecordBatch) -> Iterator[_Text]:
    config = DedupConfig()
    texts = compared_texts(batch, config)
    sets = row_shingles(texts, config.shingle_words)
    for row, text in enumerate(whole_text(texts)):
        begin, end = sets.starts[row : row + 2]
        yield _Text(sets.hashes[begin:end].copy(), "" if end > begin else text.as_py())


def _similarity(one: _Text, other: _Text) -> float:
    a, b = one.shingles, other.shingles
    if not len(a) or not len(b):
        return float(len(a) == len(b) and one.short == other.short)
    both = int(shared_values(a, b, 0))
    return float(to_thousandths(np.array(both), np.array(len(a) + len(b) - both)))


FIELDS = ("prompt", "chosen", "rejected")


@dataclass(frozen=True, slots=True)
class ShingleComparison:
    """Two texts side by side. Shingles are written as their words with a space between, in the order of the text."""

    similarity: float
    """Exact Jaccard similarity of the shingle sets, rounded to 1e-3; for texts too short for a shingle, 1 if equal."""
    equal: bool
    """The normalised texts are equal: exact duplicates."""
    shared: tuple[str, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]


def compare(first: str, second: str, shingle_words: int) -> ShingleComparison:
    """Compare two views of rows as the dedup stage does."""
    return compare_fields([first], [second], shingle_words)


def compare_fields(first: Sequence[str], second: Sequence[str], shingle_words: int) -> ShingleComparison:
    """Compare two rows as the dedup stage does: their views, or the fields of preference pairs, whose shingles are
    distinct and written with the names in `FIELDS`.
    """
    one, two = (normalize(pa.array(texts, pa.string())).to_pylist() for texts in (first, second))
    a, b = _all_shingles(one, shingle_words), _all_shingles(two, shingle_words)
    union = a.keys() | b.keys()
    shared = np.array(len(a.keys() & b.keys()))
    similarity = float(to_thousandths(shared, np.array(len(union)))) if a and b else float(one == two)
    return ShingleComparison(
        similarity=similarity,
        equal=one == two,
        shared=tuple(s for s in a if s in b),
        only_first=tuple(s for s in a if s not in b),
        only_second=tuple(s for s in b if s not in a),
    )


def _all_shingles(texts: list[str], size: int) -> dict[str, None]:
    if len(texts) == 1:
        return _shingles(texts[0], size)
    found = ((name, _shingles(text, size) or [text] * bool(text)) for name, text in zip(FIELDS, texts, strict=True))
    return dict.fromkeys(f"{name}: {shingle}" for name, shingles in found for shingle in shingles)


def _shingles(text: str, size: int) -> dict[str, None]:
    """The distinct shingles of a text, in order (a dict, because sets have no order)."""
    words = split_words(text)
    return dict.fromkeys(" ".join(words[i : i + size]) for i in range(len(words) - size + 1))
