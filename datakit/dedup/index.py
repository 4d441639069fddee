"""The index of a run: what a later one must know of the rows that this one kept to find them again in new ones.

Per shard one Arrow IPC file with the id, digest, bands and set of shingles of each kept row, in row order.
"""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import sha256_file
from datakit.dedup.config import DedupConfig
from datakit.dedup.removed import Removed
from datakit.dedup.sketches import Sketches, sketch
from datakit.errors import IntegrityError
from datakit.manifest import Shard
from datakit.data import MESSAGES

_NOT_NEEDED = ("source", "lang", "rank")  # alarms are about new rows, and policy `first` ranks nothing

_PROBES = (
    "The quick brown fox jumps over the lazy dog, and then: it does so again! Straße, ﬁne, I\u0307stanbul 2026 \u00bd",
    "我们正在寻找一种更好的方法 ภาษาไทยเขียนติดกัน 日本語の文章も一文字ずつ カタカナ ကမ္ဘာ ភាសាខ្មែរ ພາສາລາວ",
    "كلمةٌ عربية طويلة جدا في جملة واحدة e\u0301te\u0301 हिन्दी में लिखा हुआ एक वाक्य है",
    "too short",
)
"""Texts that tell whether two versions of our code see the same words and shingles."""


def index_rows(sketches: pa.RecordBatch, kept: npt.NDArray[np.bool_]) -> pa.RecordBatch:
    """What the index says of the kept rows of a batch of sketches.

    A row that policy `first` keeps is the first of its text, so its sketch holds the shingles.
    """
    return sketches.drop_columns([n for n in _NOT_NEEDED if n in sketches.schema.names]).filter(pa.array(kept))


@lru_cache(maxsize=8)
def fingerprint(config: DedupConfig) -> str:
    """Changes when what rows are compared by does: the words, shingles, permutations and digests that code makes."""
    keys = pa.array(range(len(_PROBES)), pa.uint64())
    asked = [[{"role": "user", "content": text}] for text in _PROBES]
    said = [[{"role": "assistant", "content": text[::-1]}] for text in _PROBES]
    talks = [one + other for one, other in zip(asked, said, strict=True)]
    pair = {"prompt": asked, "chosen": said, "rejected": said[::-1]}
    kinds = {"text": pa.array(_PROBES)}, {"messages": talks}, pair
    total = hashlib.sha256()
    for columns in kinds:
        typed = {n: pa.array(v, MESSAGES) if isinstance(v, list) else v for n, v in columns.items()}
        made = sketch(pa.record_batch({"row_key": keys, "id": [str(k) for k in keys]} | typed), config)
        total.update(repr(made.drop_columns(_NOT_NEEDED).to_pydict()).encode())
    return total.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Earlier:
    """A dataset that new rows are compared with: the index of its dedup run, and which of its rows count no more."""

    name: str
    """The dataset and the version, for people."""
    version: str
    folder: Path
    shards: tuple[Shard, ...]
    """The files of the index, relative to the folder."""
    removed: Removed

    @property
    def rows(self) -> int:
        """Rows in the index, removed ones included."""
        return sum(shard.rows for shard in self.shards)

    @property
    def paths(self) -> list[Path]:
        """The index files, in row order."""
        return [self.folder / shard.path for shard in self.shards]

    def check(self, workers: int) -> None:
        """Compare every byte of the index with the checksums in its manifest, before any of it is believed.

        Raises:
            IntegrityError: a file is missing, cut or changed.
        """
        with ThreadPoolExecutor(workers) as pool:
            for shard, problem in zip(self.shards, pool.map(self._problem, self.shards), strict=True):
                if problem:
                    raise IntegrityError(
                        f"{self.folder / shard.path}: {problem}; the index of {self.name} is damaged. Restore the "
                        "file, or run that dedup again with save_index"
                    )

    def _problem(self, shard: Shard) -> str:
        file = self.folder / shard.path
        if not file.is_file():
            return "missing"
        if file.stat().st_size != shard.bytes:
            return f"expected {shard.bytes} bytes, found {file.stat().st_size}"
        found = sha256_file(file)
        return "" if found == shard.sha256 else f"expected sha256 {shard.sha256}, found {found}"

    def ids(self) -> Iterator[pa.Array]:
        """The ids in the index, file by file."""
        for path in self.paths:
            with pa.memory_map(str(path)) as file:
                reader = pa.ipc.open_file(file)
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number).column("id")


def live_rows(sketches: Sketches, earlier: tuple[Earlier, ...]) -> npt.NDArray[np.int64]:
    """The numbers of the earlier rows that still count, in order; the sketches begin with all rows of all indexes."""
    live, begin = [np.empty(0, np.int64)], 0
    for one in earlier:
        rows = np.arange(begin, begin + one.rows)
        if one.removed.ids:
            gone = pa.array(one.removed.ids, pa.string())
            rows = rows[~_among(sketches, begin, begin + one.rows, gone)]
        live.append(rows)
        begin += one.rows
    return np.concatenate(live)


def _among(sketches: Sketches, begin: int, end: int, ids: pa.Array) -> npt.NDArray[np.bool_]:
    found = [
        pc.is_in(batch.column("id"), ids).to_numpy(zero_copy_only=False)
        for batch, first in zip(sketches.batches, sketches.begins, strict=True)
        if begin <= first < end
    ]
    return np.concatenate(found) if found else np.empty(0, np.bool_)
