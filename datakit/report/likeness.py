"""How similar texts are to those of the rows that they were dropped for, where a stage compared something else."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.dedup.config import DedupConfig
from datakit.dedup.sides import compared, sets_of, whole
from datakit.dedup.star import to_thousandths
from datakit.manifest import Manifest, data_dir
from datakit.native import Kernels
from datakit.engine.runner import tables
from datakit.data import read_shard

_kernels = Kernels("datakit.dedup._kernels_sets")
_NAMES = ["row_key", "id", "reason", "duplicate_of"]


class _Text(NamedTuple):
    """The shingles of a row; where it has none, its normalised text."""

    shingles: npt.NDArray[np.uint64]
    short: str


def with_likeness(path: Path, manifest: Manifest) -> Iterator[pa.RecordBatch]:
    """The names of the dropped rows of a stage and of those that stay, with the `similarity` of the two (null where no
    row is named): exact Jaccard similarity of their shingles, as `dedup` counts it with its defaults.
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
    """The rows of these ids; ids alone are read of a shard that holds none of them."""
    if any(pc.any(pc.is_in(b.column("id"), ids)).as_py() for b in read_shard(file, ["id"])):
        for batch in read_shard(file):
            yield batch.filter(pc.is_in(batch.column("id"), ids))


def _texts(batch: pa.RecordBatch) -> Iterator[_Text]:
    config = DedupConfig()
    texts = compared(batch, config)
    sets = sets_of(texts, config.shingle_words)
    for row, text in enumerate(whole(texts)):
        begin, end = sets.starts[row : row + 2]
        yield _Text(sets.hashes[begin:end].copy(), "" if end > begin else text.as_py())


def _similarity(one: _Text, other: _Text) -> float:
    a, b = one.shingles, other.shingles
    if not len(a) or not len(b):
        return float(len(a) == len(b) and one.short == other.short)
    both = int(_kernels.shared_values(a, b, 0))
    return float(to_thousandths(np.array(both), np.array(len(a) + len(b) - both)))
