"""Packed sets as rows of real tokens, whatever their format: for the tools that look at them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from datakit.errors import InputError, ManifestError
from datakit.manifest import Manifest, data_dir, load
from datakit.pack.chat import ChatTokenizer
from datakit.pack.format import IDS, Header, Packed, map_file, total
from datakit.pack.writers import IGNORED

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
    if header["format"] == "bin2d":
        return _bin2d(prefix)
    if header["format"] not in IDS:
        raise InputError(f"{prefix}: expected a format of {', '.join(IDS)}, found {header['format']!r}")
    known = Header.from_json(header, f"{prefix}.meta.json", header["format"])
    return _parquet(prefix, header, known) if known.format == "parquet" else _flat(prefix, header, known)


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


def _flat(prefix: Path, meta: dict[str, Any], header: Header) -> Rows:
    """bin and megatron: ids one after another, the rest beside them."""
    segments, segment_index = _ragged(prefix.parent, meta["segments"], header.num_samples)
    labels, label_index = _ragged(prefix.parent, meta["labels"], header.num_samples) if header.labelled else (None,) * 2
    lengths = np.asarray(segments[segment_index.sum(1) - 1]).astype(np.int64)
    id_index = np.stack([np.cumsum(lengths) - lengths, lengths], axis=1)
    ids = map_file(prefix.parent / meta["ids"]["bin"], header.dtype, (int(lengths.sum()),))
    sources = np.load(prefix.parent / meta["sources"], mmap_mode="r", allow_pickle=False)
    return Rows(prefix.name, header, ids, id_index, segments, segment_index, labels, label_index, sources)


def _ragged(folder: Path, files: dict[str, str], rows: int) -> tuple[npt.NDArray[np.int32], Int64]:
    index = map_file(folder / files["idx"], "<u8", (rows, 2))
    return map_file(folder / files["bin"], "<i4", (total(index),)), np.asarray(index).astype(np.int64)


def _parquet(prefix: Path, meta: dict[str, Any], header: Header) -> Rows:
    """Parquet: the table in memory."""
    file = prefix.parent / meta["ids"]["parquet"]
    try:
        table = pq.read_table(file)
    except (OSError, pa.ArrowException) as e:
        raise InputError(f"{file}: cannot read the packed table ({e}); pack the set again") from None
    ids, targets, lengths = (table.column(c).combine_chunks() for c in ("input_ids", "labels", "seq_lens"))
    id_index, flat = _index(pc.list_value_length(ids).to_numpy()), ids.flatten().to_numpy()
    counts = pc.list_value_length(lengths).to_numpy()
    segment_index = _index(counts + 1)
    ends = np.cumsum(lengths.flatten().to_numpy()) - np.repeat(id_index[:, 0], counts)
    segments = np.insert(ends, np.cumsum(counts) - counts, 0).astype(np.int32)
    labels = label_index = None
    if header.labelled:
        learnt = targets.flatten().to_numpy() != IGNORED
        row = np.repeat(np.arange(len(id_index)), id_index[:, 1])[learnt]
        labels = (np.flatnonzero(learnt) - id_index[row, 0] - 1).astype(np.int32)
        label_index = _index(np.bincount(row, minlength=len(id_index)))
    sources = np.load(prefix.parent / meta["sources"], mmap_mode="r", allow_pickle=False)
    return Rows(prefix.name, header, flat, id_index, segments, segment_index, labels, label_index, sources)


def _index(counts: npt.NDArray[Any]) -> Int64:
    lengths = counts.astype(np.int64)
    return np.stack([np.cumsum(lengths) - lengths, lengths], axis=1)


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
