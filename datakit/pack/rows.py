"""Packed sets as rows of real tokens, whatever their format: for the tools that look at them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from datakit.errors import ManifestError
from datakit.manifest import Manifest, data_dir, load
from datakit.pack.chat import ChatTokenizer
from datakit.pack.format import Header, Packed

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one packed set, over flat (memory-mapped) arrays. An index holds (offset, count), one pair a row."""

    name: str
    """The last part of the set's prefix: `train`, `validation`, `train-256`."""
    header: Header
    ids: npt.NDArray[Any]
    id_index: Int64
    """Real tokens only; padding is left out."""
    segments: npt.NDArray[np.int32]
    segment_index: Int64
    labels: npt.NDArray[np.int32] | None
    """Positions of targets, as in bin2d; None for plain text."""
    label_index: Int64 | None
    sources: npt.NDArray[Any]
    """SOURCE_DTYPE records in order of (row, segment)."""

    def __len__(self) -> int:
        return len(self.id_index)

    def ids_of(self, row: int) -> npt.NDArray[Any]:
        """The real tokens of a row."""
        return _part(self.ids, self.id_index, row)

    def segments_of(self, row: int) -> npt.NDArray[np.int32]:
        """Boundaries of a row's sequences: the first is 0, the last is where real tokens end."""
        return _part(self.segments, self.segment_index, row)

    def labels_of(self, row: int) -> npt.NDArray[np.int32] | None:
        """Label positions of a row, ascending; None for plain text."""
        if self.labels is None or self.label_index is None:
            return None
        return _part(self.labels, self.label_index, row)

    def padding_of(self, row: int) -> int:
        """Tokens that only fill the row; 0 in formats that hold none."""
        return self.header.stride - int(self.id_index[row, 1]) if self.header.format == "bin2d" else 0


def _part(values: npt.NDArray[Any], index: Int64, row: int) -> npt.NDArray[Any]:
    offset, count = map(int, index[row])
    return values[offset : offset + count]


def headers(manifest: Manifest, where: str) -> Iterator[dict[str, Any]]:
    """The header of each set that a pack manifest names: training sets by row length, then the validation sets.

    Raises:
        ManifestError: not the manifest of a pack stage.
    """
    if manifest.stage != "pack" or "packed" not in manifest.facts:
        raise ManifestError(f"{where}: expected the manifest of a pack stage, found {manifest.stage!r}")
    for name in ("packed", "validation"):
        packed = manifest.facts.get(name)
        if packed is not None:
            yield from packed.get("buckets", [packed])


def open_rows(folder: Path, header: dict[str, Any]) -> Rows:
    """Open a set by its header in a manifest; `folder` is the manifest's data folder.

    Raises:
        InputError: a file is missing or its size does not fit the header.
    """
    prefix = folder / header["prefix"]
    return _bin2d(prefix)


def _bin2d(prefix: Path) -> Rows:
    packed = Packed.open(prefix)
    index = np.asarray(packed.segment_index).astype(np.int64)
    lengths = np.asarray(packed.segments)[index.sum(1) - 1].astype(np.int64) if len(index) else np.empty(0, np.int64)
    starts = np.arange(len(index)) * packed.header.stride
    return Rows(
        name=prefix.name,
        header=packed.header,
        ids=packed.ids.reshape(-1),
        id_index=np.stack([starts, lengths], axis=1),
        segments=packed.segments,
        segment_index=index,
        labels=packed.labels,
        label_index=None if packed.label_index is None else np.asarray(packed.label_index).astype(np.int64),
        sources=packed.sources,
    )


def open_all(path: Path) -> tuple[list[Rows], ChatTokenizer]:
    """Every set of a pack manifest, and the tokenizer that travels with them.

    Raises:
        ManifestError: not the manifest of a pack stage.
        InputError: a file is missing or its size does not fit the header.
        ModelError: the tokenizer cannot be used.
    """
    manifest = load(path)
    folder = data_dir(path, manifest)
    sets = [open_rows(folder, header) for header in headers(manifest, str(path))]
    files = manifest.facts.get("tokenizer", {}).get("files")
    if not files:
        raise ManifestError(f"{path}: names no tokenizer files; pack the set again")
    return sets, ChatTokenizer.load((folder / files[0]).parent)
