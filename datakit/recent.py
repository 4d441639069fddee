"""Rows that were just written, kept in memory for the stage that reads them next."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from datakit.write import read_shard


class Recent:
    """The newest shards that this process wrote, as long as they take less than `room` bytes.

    What a stage compressed a moment ago the next one need not decompress. Batches are those that reading gives, one a
    row group, so results do not depend on what is still here. Worker processes get an empty one that keeps nothing.
    """

    def __init__(self, room: int) -> None:
        self._room, self._filled = room, 0
        self._shards: dict[Path, tuple[pa.RecordBatch, ...]] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type["Recent"], tuple[int]]:
        return Recent, (0,)

    def keep(self, path: Path, groups: Sequence[pa.RecordBatch]) -> None:
        """Take in the row groups of a shard that is complete; the oldest shards make room."""
        size = _bytes(groups)
        if size > self._room:
            return
        with self._lock:
            self._forget(path)
            while self._filled + size > self._room:
                self._forget(next(iter(self._shards)))
            self._shards[path] = tuple(groups)
            self._filled += size

    def rename(self, source: Path, target: Path) -> None:
        """A shard has been given another place."""
        with self._lock:
            groups = self._forget(source)
            self._forget(target)
            if groups:
                self._shards[target] = groups
                self._filled += _bytes(groups)

    def read(self, path: Path) -> Iterator[pa.RecordBatch]:
        """The rows of a shard, one batch a row group.

        Raises:
            InputError: it is on the disk only, and missing or damaged there.
        """
        with self._lock:
            groups = self._shards.get(path)
        yield from groups or read_shard(path)

    def _forget(self, path: Path) -> tuple[pa.RecordBatch, ...]:
        groups = self._shards.pop(path, ())
        self._filled -= _bytes(groups)
        return groups


def _bytes(groups: Sequence[pa.RecordBatch]) -> int:
    return sum(g.nbytes for g in groups)
