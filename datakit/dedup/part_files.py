"""Files of parts: how the work units of a comparison hand rows to each other.

No file is for one pair of a writer and a reader: each unit writes one file of numbered parts, its record says where
they are, and a reader fetches its parts of all files by their offsets.
"""

import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import datakit.storage as storage
from datakit.config import sha256_file
from datakit.dedup.exact import Memory
from datakit.errors import IntegrityError
from datakit.manifest import changed
from datakit.stage import SketchFile

if TYPE_CHECKING:
    from datakit.dedup.index import EarlierRun

_ALIGNMENT = 64

Part = tuple[str, int, int, int]
"""A part of a file: (path relative to the data folder, first byte, bytes, CRC-32)."""


# Sketch files, in the order of their rows.


@dataclass(frozen=True, slots=True)
class Source:
    """A sketch file of this run, or of the index of an earlier one. `first` is the number of its first row."""

    file: SketchFile
    first: int
    run: int = -1
    """The number of the earlier run; -1 for this one."""

    def batches(
        self, earlier: Sequence["EarlierRun"], memory: Memory
    ) -> Iterator[tuple[pa.RecordBatch, npt.NDArray[np.bool_]]]:
        """Its sketches, and which of the rows count: those of an index that were removed since do not.

        Raises:
            IntegrityError: the file is missing, or its bytes are not those that were written.
        """
        file, removed = self.file, pa.array([], pa.string())
        if self.run >= 0:
            run = earlier[self.run]
            run.check_file(next(shard for shard in run.shards if run.folder / shard.path == file.path))
            removed = pa.array(run.removed.ids, pa.string())
        elif file.sha256:
            storage.bring(file.path, file.bytes, file.sha256)
            if file.path.stat().st_size != file.bytes or sha256_file(file.path) != file.sha256:
                raise IntegrityError(changed(file.path))
        reader = pa.ipc.open_file(pa.py_buffer(memory.map(file.path)))
        for number in range(reader.num_record_batches):
            batch, live = reader.get_batch(number), np.ones(reader.get_batch(number).num_rows, np.bool_)
            if len(removed):
                live = ~pc.is_in(batch.column("id"), removed).to_numpy(zero_copy_only=False)
            yield batch, live


def sources_of(earlier: Sequence["EarlierRun"], sketches: Sequence[SketchFile]) -> list[Source]:
    """The indexes of earlier runs, and then the sketch files of this one."""
    found, first = list[Source](), 0
    of_runs = [
        (run, SketchFile(e.folder / s.path, s.rows, s.bytes, s.sha256))
        for run, e in enumerate(earlier) for s in e.shards
    ]  # fmt: skip
    for run, file in (*of_runs, *((-1, file) for file in sketches)):
        found.append(Source(file, first, run))
        first += file.rows
    return found


# Files of parts.


class PartsWriter:
    """Writes one file of numbered parts; each begins at a multiple of 64 bytes."""

    def __init__(self, root: Path, path: str) -> None:
        self._path, self._target = path, root / path
        self._target.parent.mkdir(parents=True, exist_ok=True)
        self._temporary = self._target.with_name(f".{self._target.name}.{os.getpid()}.tmp")
        self._file, self._hash, self._size = self._temporary.open("wb"), hashlib.sha256(), 0
        self._parts: list[tuple[int, int, int, int]] = []

    def add(self, number: int, *pieces: Any) -> None:
        """Append a part of some pieces of bytes."""
        begin, crc = self._size, 0
        for piece in pieces:
            view = memoryview(piece).cast("B") if len(piece) else memoryview(b"")
            crc = zlib.crc32(view, crc)
            self._write(view)
        self._parts.append((number, begin, self._size - begin, crc))
        self._write(bytes(-self._size % _ALIGNMENT))

    def add_ranges(self, first: int, ranges: int, hashes: npt.NDArray[np.uint64], rows: npt.NDArray[np.uint32]) -> None:
        """Append a part for each of `ranges` ranges of the hashes, numbered from `first` on: the hashes in it, and the
        row of each."""
        part = (hashes >> np.uint64(48)).astype(np.uint16) // np.uint16((1 << 16) // ranges) if ranges > 1 else None
        order = slice(None) if part is None else np.argsort(part, kind="stable")
        cuts = [0, len(rows)] if part is None else np.searchsorted(part[order], np.arange(ranges + 1)).tolist()
        hashes, rows = hashes[order], rows[order]
        for number in range(ranges):
            low, high = cuts[number], cuts[number + 1]
            self.add(first + number, np.ascontiguousarray(hashes[low:high]), np.ascontiguousarray(rows[low:high]))

    def _write(self, data: Any) -> None:
        self._file.write(data)
        self._hash.update(data)
        self._size += len(data)

    def close(self) -> dict[str, Any]:
        """Finish the file: its entry and its parts, as the record of a unit has them."""
        self._file.close()
        self._temporary.rename(self._target)
        return {"files": [[self._path, self._size, self._hash.hexdigest()]], "parts": self._parts}


def by_number(records: Iterable[dict[str, Any]]) -> dict[int, list[tuple[int, Part]]]:
    """From the records of units: for each part number (the place of the unit, its part), in the order of units."""
    found: dict[int, list[tuple[int, Part]]] = {}
    for place, record in enumerate(records):
        for number, begin, size, crc in record["parts"]:
            if size:
                found.setdefault(number, []).append((place, (record["files"][0][0], begin, size, crc)))
    return found


def read_parts(root: Path, parts: Sequence[Part], memory: Memory) -> Iterator[pa.Buffer]:
    """The bytes of parts: of files on this machine mapped, of others fetched from the store in ranges.

    Raises:
        IntegrityError: a part differs from what was written.
    """
    mapped: dict[str, Any] = {}
    away = [p for p in parts if not (root / p[0]).is_file()]
    fetched = memory.full((sum(size + -size % _ALIGNMENT for _, _, size, _ in away),), 0, np.uint8)
    end = 0
    for path, begin, size, crc in parts:
        if (root / path).is_file():
            if path not in mapped:
                mapped[path] = pa.py_buffer(memory.map(root / path))
            found = mapped[path].slice(begin, size)
        else:
            fetched[end : end + size] = np.frombuffer(storage.read_range(root / path, begin, size), np.uint8)
            found = pa.py_buffer(fetched).slice(end, size)
            end += size + -size % _ALIGNMENT
        if zlib.crc32(found) != crc:
            raise IntegrityError(changed(root / path))
        yield found


def number_of_ranges(keys: int, of_range: int) -> int:
    """Into how many ranges (a power of two) so many keys are cut, of about `of_range` keys each."""
    ranges = 1
    while ranges < 1 << 16 and keys > ranges * of_range:
        ranges *= 2
    return ranges
