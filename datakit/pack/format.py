"""bin2d, version 1: rows of packed tokens in flat little-endian files, readable by any memory map. numpy only.

For a prefix P and N rows of `stride = seq_len + 1` tokens:

    P.ids2d.bin          int32 or uint16, N x stride
    P.lbl.bin, .lbl.idx  int32 label positions of all rows; uint64 pairs (offset, count), one a row. A position p
                         indexes the targets ids[1:]: the model reads ids[p] and must predict ids[p + 1]
    P.seg.bin, .seg.idx  the same layout for the boundaries of the packed sequences: the first is 0, the last is
                         where real tokens end
    P.src.npy            one SOURCE_DTYPE record a sequence
    P.meta.json          the header; written last, so that its existence means the set is whole
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self

import numpy as np
import numpy.typing as npt

from datakit.errors import InputError

Int32 = npt.NDArray[np.int32]
UInt64 = npt.NDArray[np.uint64]

SOURCE_DTYPE = np.dtype([("row_key", "<u8"), ("start", "<u8"), ("row", "<u8"), ("segment", "<u4"), ("tokens", "<u4")])
"""Who is where: the row's key, the sequence's first token within the row's tokens, packed row, segment, tokens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """The values of `P.meta.json`."""

    task: Literal["pretrain", "sft", "dpo", "r1"]
    seq_len: int
    """Targets in a row; a row holds one token more."""
    pad_id: int
    eos_id: int
    vocab_size: int
    num_samples: int = 0
    labelled: bool = True
    """False for plain text: every real target counts and there are no label files."""
    ids_dtype: Literal["int32", "uint16"] = "int32"
    rows_per_unit: int = 1
    """2 for preference sets: rows 2i and 2i + 1 are the chosen and the rejected side of pair i."""
    format: Literal["bin2d"] = "bin2d"

    def __post_init__(self) -> None:
        if self.ids_dtype == "uint16" and self.vocab_size > 1 << 16:
            raise InputError(f"bin2d: uint16 ids hold a vocabulary of at most 65536, found {self.vocab_size}")

    @property
    def stride(self) -> int:
        """Tokens in a row."""
        return self.seq_len + 1

    def to_json(self, name: str) -> dict[str, Any]:
        """The header as the meta file holds it; `name` is the prefix's last part."""
        labels = {"bin": f"{name}.lbl.bin", "idx": f"{name}.lbl.idx", "dtype": "int32"}
        return {
            "version": 1,
            "format": "bin2d",
            "task": self.task,
            "num_samples": self.num_samples,
            "byteorder": "little",
            "seq_len": self.seq_len,
            "stride": self.stride,
            "ids": {"bin": f"{name}.ids2d.bin", "dtype": self.ids_dtype},
            "labels": labels if self.labelled else None,
            "segments": {"bin": f"{name}.seg.bin", "idx": f"{name}.seg.idx", "dtype": "int32"},
            "sources": f"{name}.src.npy",
            "pad_id": self.pad_id,
            "eos_id": self.eos_id,
            "vocab_size": self.vocab_size,
            "rows_per_unit": self.rows_per_unit,
        }

    @classmethod
    def from_json(cls, meta: dict[str, Any], where: str) -> Self:
        """Read a meta file's values.

        Raises:
            InputError: not bin2d version 1, or a value is missing.
        """
        found = {k: meta.get(k) for k in ("format", "version", "byteorder")}
        if found != {"format": "bin2d", "version": 1, "byteorder": "little"}:
            raise InputError(f"{where}: expected bin2d, version 1, little-endian; found {found}")
        try:
            return cls(
                task=meta["task"], seq_len=meta["seq_len"], num_samples=meta["num_samples"],
                labelled=meta["labels"] is not None, ids_dtype=meta["ids"]["dtype"],
                pad_id=meta["pad_id"], eos_id=meta["eos_id"], vocab_size=meta["vocab_size"],
                rows_per_unit=meta.get("rows_per_unit", 1),
            )  # fmt: skip
        except (KeyError, TypeError) as e:
            raise InputError(f"{where}: the bin2d header lacks or mistypes {e}; pack the set again") from None


class Writer:
    """Writes one bin2d set, block by block; memory holds one block and the source records."""

    def __init__(self, prefix: Path, header: Header) -> None:
        self.prefix, self.header = prefix, header
        prefix.parent.mkdir(parents=True, exist_ok=True)
        self._ids = self._create("ids2d.bin")
        self._segments = _Ragged(self._create("seg.bin"), self._create("seg.idx"))
        self._labels = _Ragged(self._create("lbl.bin"), self._create("lbl.idx")) if header.labelled else None
        self._sources: list[npt.NDArray[Any]] = []
        self._rows = 0

    def _create(self, suffix: str) -> BinaryIO:
        return Path(f"{self.prefix}.{suffix}").open("wb")

    def append(
        self,
        ids_NS: Int32,
        labels: Int32 | None,
        label_counts: npt.NDArray[np.integer[Any]] | None,
        segments: Int32,
        segment_counts: npt.NDArray[np.integer[Any]],
        sources: npt.NDArray[Any],
    ) -> None:
        """Append N rows; label positions and segment boundaries are flat, with one count a row."""
        assert ids_NS.ndim == 2 and ids_NS.shape[1] == self.header.stride, ids_NS.shape
        self._ids.write(np.ascontiguousarray(ids_NS, np.dtype(self.header.ids_dtype).newbyteorder("<")).tobytes())
        self._segments.append(segments, segment_counts)
        if self._labels is not None:
            assert labels is not None and label_counts is not None
            self._labels.append(labels, label_counts)
        self._sources.append(np.asarray(sources, SOURCE_DTYPE))
        self._rows += len(ids_NS)

    def close(self) -> Header:
        """Finish the files, the header last, and return it with the number of rows."""
        for part in (self._ids, self._segments, self._labels):
            if part is not None:
                part.close()
        np.save(f"{self.prefix}.src.npy", np.concatenate([np.empty(0, SOURCE_DTYPE), *self._sources]))
        header = Header(**(asdict(self.header) | {"num_samples": self._rows}))
        meta = json.dumps(header.to_json(self.prefix.name), indent=1, sort_keys=True) + "\n"
        Path(f"{self.prefix}.meta.json").write_text(meta, encoding="utf-8")
        return header

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()


class _Ragged:
    """A flat int32 file and its uint64 (offset, count) index."""

    def __init__(self, values: BinaryIO, index: BinaryIO) -> None:
        self._values, self._index, self._offset = values, index, 0

    def append(self, values: Int32, counts: npt.NDArray[np.integer[Any]]) -> None:
        index = np.empty((len(counts), 2), "<u8")
        ends = np.cumsum(counts, dtype=np.uint64)
        index[:, 1] = counts
        index[:, 0] = self._offset + ends - index[:, 1]
        assert len(values) == (int(ends[-1]) if len(ends) else 0)
        self._values.write(np.ascontiguousarray(values, "<i4").tobytes())
        self._index.write(index.tobytes())
        self._offset += len(values)

    def close(self) -> None:
        self._values.close()
        self._index.close()


@dataclass(frozen=True, slots=True)
class Packed:
    """A bin2d set, memory-mapped."""

    header: Header
    ids: npt.NDArray[Any]
    """(num_samples, stride)."""
    segments: Int32
    segment_index: UInt64
    """(num_samples, 2): offset and count into `segments`."""
    labels: Int32 | None
    label_index: UInt64 | None
    """(num_samples, 2): offset and count into `labels`; None for plain text."""
    sources: npt.NDArray[Any]
    """SOURCE_DTYPE records in order of (row, segment)."""

    @classmethod
    def open(cls, prefix: Path) -> Self:
        """Map the set of a prefix (`P`, `P.meta.json` or `P.ids2d.bin` name the same set).

        Raises:
            InputError: a file is missing or its size does not fit the header.
        """
        name = prefix.name
        for suffix in (".meta.json", ".ids2d.bin"):
            name = name.removesuffix(suffix)
        meta_path = prefix.with_name(f"{name}.meta.json")
        try:
            meta = json.loads(meta_path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as e:
            raise InputError(f"{meta_path}: cannot read the bin2d header ({e}); was it packed to its end?") from None
        header = Header.from_json(meta, str(meta_path))
        rows, folder = header.num_samples, prefix.parent
        segment_index = _map(folder / meta["segments"]["idx"], "<u8", (rows, 2))
        label_index = _map(folder / meta["labels"]["idx"], "<u8", (rows, 2)) if header.labelled else None
        return cls(
            header=header,
            ids=_map(folder / meta["ids"]["bin"], f"<{np.dtype(header.ids_dtype).str[1:]}", (rows, header.stride)),
            segments=_map(folder / meta["segments"]["bin"], "<i4", (_total(segment_index),)),
            segment_index=segment_index,
            labels=None if label_index is None else _map(folder / meta["labels"]["bin"], "<i4", (_total(label_index),)),
            label_index=label_index,
            sources=np.load(folder / meta["sources"], mmap_mode="r", allow_pickle=False),
        )

    def labels_of(self, row: int) -> Int32 | None:
        """Label positions of a row, ascending; None for plain text."""
        if self.labels is None or self.label_index is None:
            return None
        offset, count = map(int, self.label_index[row])
        return self.labels[offset : offset + count]

    def segments_of(self, row: int) -> Int32:
        """Boundaries of a row's sequences: the first is 0, the last is where real tokens end."""
        offset, count = map(int, self.segment_index[row])
        return self.segments[offset : offset + count]


def _total(index: UInt64) -> int:
    return int(index[-1].sum()) if len(index) else 0


def _map(path: Path, dtype: str, shape: tuple[int, ...]) -> Any:
    expected = int(np.prod(shape)) * np.dtype(dtype).itemsize
    found = path.stat().st_size if path.is_file() else None
    if found != expected:
        raise InputError(f"{path}: expected {expected} bytes for {shape} of {dtype}, found {found}; pack the set again")
    return np.memmap(path, dtype, "r", shape=shape) if expected else np.empty(shape, dtype)
