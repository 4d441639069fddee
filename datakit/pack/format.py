"""File formats of packed sets: bin2d, bin, megatron and parquet; their header, writer and reader.

The trainer imports this module: it needs numpy only, and loads pyarrow inside the functions that write Parquet.

**bin2d**, version 1, holds rows of equal length in flat little-endian files that can be memory-mapped. For a prefix P
and N rows of `stride = seq_len + 1` tokens:

    P.ids2d.bin          int32 or uint16, N x stride
    P.lbl.bin, .lbl.idx  int32 label positions of all rows; uint64 pairs (offset, count), one per row. A position p
                         indexes the targets ids[1:]: the model reads ids[p] and must predict ids[p + 1]
    P.seg.bin, .seg.idx  the same layout for the boundaries of the packed sequences: the first is 0, the last is
                         the number of real tokens (padding follows). The row of a pair's missing side has 0 alone
    P.src.npy            one SOURCE_DTYPE record per sequence
    P.meta.json          the header. It is written last: if it exists, the set is complete

**bin** is bin2d without the stride: `P.ids.bin` holds the real tokens of all rows one after another, `P.ids.idx` the
uint64 pairs (offset, count) into it, in elements, one pair per row. The other files are the same as in bin2d.

**megatron** is the indexed dataset that Megatron-LM reads: `P.bin` holds the tokens of all documents, and `P.idx`

    9 bytes     b"MMIDIDX\\x00\\x00"
    uint64      version, 1
    uint8       dtype of the tokens: 4 is int32, 8 is uint16
    uint64      number of sequences, S
    uint64      number of document boundaries, D = documents + 1
    int32[S]    tokens of each sequence
    int64[S]    first byte of each sequence in P.bin
    int64[D]    first sequence of each document, and S at the end

all little-endian. A packed row is one sequence and one document. The format has no labels, so it takes plain text only.

**parquet** has one table row per packed row, and columns of type list of int32: `input_ids`; `labels`, aligned with the
ids, -100 where a token is no label (the model shifts them); `position_ids`, which start at 0 in each sequence;
`seq_lens`, the lengths of the row's sequences; and `seq_lengths`, the same column under the name that TRL's collator
reads.
"""

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Self

import numpy as np
import numpy.typing as npt

from datakit.errors import InputError

if TYPE_CHECKING:  # the trainer reads packed sets without pyarrow
    import pyarrow as pa

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.integer[Any]]

SOURCE_DTYPE = np.dtype(
    [("row_key", "<u8"), ("start", "<u8"), ("row", "<u8"), ("segment", "<u4"), ("tokens", "<u4"), ("head", "<u4")]
)
"""Where a sequence comes from and where it is: the row's key; the offset, in the tokens of that row, of its first token
behind its head; the packed row; the index of the sequence in the packed row; the number of tokens; how many of them are
its head, which repeats earlier tokens of the row (a system prompt, see `cut`)."""

Format = Literal["bin2d", "bin", "megatron", "parquet"]
IDS: dict[str, dict[str, str]] = {
    "bin2d": {"bin": "ids2d.bin"},
    "bin": {"bin": "ids.bin", "idx": "ids.idx"},
    "megatron": {"bin": "bin", "idx": "idx"},
    "parquet": {"parquet": "parquet"},
}
"""File suffixes of the ids, by format and by key in the header."""
MEGATRON_MAGIC = b"MMIDIDX\x00\x00"
MEGATRON_DTYPES = {"int32": 4, "uint16": 8}
"""Megatron's codes for the dtype of the tokens."""
IGNORED = -100
"""Label of a token that is not learnt; PyTorch's cross entropy ignores it."""
TABLE_COLUMNS = ("input_ids", "labels", "position_ids", "seq_lens", "seq_lengths")
"""The columns of format parquet."""
ROW_GROUP_TOKENS = 1 << 22
"""Tokens in a row group of the Parquet table, at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """The values of `P.meta.json`."""

    task: Literal["pretrain", "sft", "dpo", "r1"]
    seq_len: int
    """Targets in a row; a row holds one more token."""
    pad_id: int
    eos_id: int
    vocab_size: int
    num_samples: int = 0
    labelled: bool = True
    """False for plain text: every real target is a label, and there are no label files."""
    ids_dtype: Literal["int32", "uint16"] = "int32"
    rows_per_unit: int = 1
    """2 for preference sets: rows 2i and 2i + 1 are the chosen and the rejected side of pair i. One may be missing."""
    format: Format = "bin2d"

    def __post_init__(self) -> None:
        if self.ids_dtype == "uint16" and self.vocab_size > 1 << 16:
            raise InputError(f"uint16 ids need a vocabulary of at most 65536 tokens, found {self.vocab_size}")

    @property
    def stride(self) -> int:
        """Tokens in a row, `seq_len + 1`; the maximum in formats without padding."""
        return self.seq_len + 1

    @property
    def dtype(self) -> str:
        """numpy dtype of the ids in the file, little-endian."""
        return "<u2" if self.ids_dtype == "uint16" else "<i4"

    def to_json(self, name: str) -> dict[str, Any]:
        """The content of the meta file; `name` is the last part of the prefix."""
        labels = {"bin": f"{name}.lbl.bin", "idx": f"{name}.lbl.idx", "dtype": "int32"}
        segments = {"bin": f"{name}.seg.bin", "idx": f"{name}.seg.idx", "dtype": "int32"}
        inside = self.format == "parquet"  # labels and segments are columns of the table
        return {
            "version": 1,
            "format": self.format,
            "task": self.task,
            "num_samples": self.num_samples,
            "byteorder": "little",
            "seq_len": self.seq_len,
            **({"stride": self.stride} if self.format == "bin2d" else {}),
            "ids": {k: f"{name}.{suffix}" for k, suffix in IDS[self.format].items()} | {"dtype": self.ids_dtype},
            "labels": (labels if not inside else {"column": "labels"}) if self.labelled else None,
            "segments": segments if not inside else {"column": "seq_lens"},
            "sources": f"{name}.src.npy",
            "pad_id": self.pad_id,
            "eos_id": self.eos_id,
            "vocab_size": self.vocab_size,
            "rows_per_unit": self.rows_per_unit,
        }

    @classmethod
    def from_json(cls, meta: dict[str, Any], where: str) -> Self:
        """The header in a meta file; `where` names the file in errors.

        Raises:
            InputError: it is not version 1 of a known format, or a value is missing.
        """
        name = meta.get("format")
        found = {k: meta.get(k) for k in ("version", "byteorder")}
        if name not in IDS or found != {"version": 1, "byteorder": "little"}:
            formats = ", ".join(IDS)
            raise InputError(f"{where}: expected version 1 of {formats}, little-endian; found {name!r}, {found}")
        try:
            return cls(
                task=meta["task"], seq_len=meta["seq_len"], num_samples=meta["num_samples"],
                labelled=meta["labels"] is not None, ids_dtype=meta["ids"]["dtype"],
                pad_id=meta["pad_id"], eos_id=meta["eos_id"], vocab_size=meta["vocab_size"],
                rows_per_unit=meta.get("rows_per_unit", 1), format=name,
            )  # fmt: skip
        except (KeyError, TypeError) as e:
            raise InputError(f"{where}: the {name} header lacks or mistypes {e}; pack the set again") from None


class PackedWriter:
    """Writes the rows of one set, block by block. Memory holds one block, the lengths of rows and the source
    records."""

    def __init__(self, prefix: Path, header: Header) -> None:
        """Create the files `P.*` of the set.

        Raises:
            InputError: the format cannot store labels or preference pairs, and the set has them.
        """
        refused = {"megatron": header.labelled or header.rows_per_unit > 1, "parquet": header.rows_per_unit > 1}
        if refused.get(header.format):
            lost = "the labels of conversations" if header.rows_per_unit == 1 else "which side of a pair a row is"
            raise InputError(f"pack: format {header.format} does not store {lost}; use bin2d or bin")
        self.prefix, self.header = prefix, header
        self.padded = header.format == "bin2d"
        """True: `ids` is int32 (N, stride), filled up with `pad_id`. False: `ids` is int32 (real tokens of N rows,)."""
        prefix.parent.mkdir(parents=True, exist_ok=True)
        self._segments: _Ragged | None = None
        self._labels: _Ragged | None = None
        self._sources = [np.empty(0, SOURCE_DTYPE)]
        self._lengths = [np.empty(0, np.int64)]
        if header.format == "parquet":  # labels and segments are columns of the table
            import pyarrow.parquet as pq

            self._table: Any = pq.ParquetWriter(f"{prefix}.parquet", training_schema(), compression="zstd")
            return
        self._ids: BinaryIO = Path(f"{prefix}.{IDS[header.format]['bin']}").open("wb")  # noqa: SIM115
        self._segments = _Ragged(prefix, "seg")
        self._labels = _Ragged(prefix, "lbl") if header.labelled else None

    def append(
        self, ids: Int32, labels: Int32 | None, label_counts: Counts | None, segments: Int32, segment_counts: Counts,
        sources: npt.NDArray[Any],
    ) -> None:  # fmt: skip
        """Append N rows. `labels` (label positions) and `segments` (boundaries) are flat, with one count per row;
        `sources` is SOURCE_DTYPE, one record per sequence."""
        assert not self.padded or (ids.ndim == 2 and ids.shape[1] == self.header.stride), ids.shape
        self._lengths.append(row_lengths(segments, segment_counts))
        self._sources.append(np.asarray(sources, SOURCE_DTYPE))
        if self._segments is None:
            labels = labels if self.header.labelled else None
            table = training_table(ids, labels, label_counts, segments, segment_counts)
            self._table.write_table(table, row_group_size=max(1, ROW_GROUP_TOKENS // self.header.stride))
            return
        self._ids.write(np.ascontiguousarray(ids, self.header.dtype).tobytes())
        self._segments.append(segments, segment_counts)
        if self._labels is not None:
            assert labels is not None and label_counts is not None
            self._labels.append(labels, label_counts)

    def close(self) -> Header:
        """Finish the files, the header last, and return it with the number of rows."""
        lengths = np.concatenate(self._lengths)
        if self._segments is None:
            self._table.close()
        else:
            self._ids.close()
            self._segments.close()
        if self._labels is not None:
            self._labels.close()
        if self.header.format == "bin":
            Path(f"{self.prefix}.ids.idx").write_bytes(_index_of(lengths).astype("<u8").tobytes())
        if self.header.format == "megatron":
            self._write_megatron_index(lengths)
        np.save(f"{self.prefix}.src.npy", np.concatenate(self._sources))
        header = replace(self.header, num_samples=len(lengths))
        meta = json.dumps(header.to_json(self.prefix.name), indent=1, sort_keys=True) + "\n"
        Path(f"{self.prefix}.meta.json").write_text(meta, encoding="utf-8")
        return header

    def _write_megatron_index(self, lengths: Int64) -> None:
        first_bytes = (np.cumsum(lengths) - lengths) * np.dtype(self.header.dtype).itemsize
        with Path(f"{self.prefix}.idx").open("wb") as f:
            f.write(MEGATRON_MAGIC + np.array([1], "<u8").tobytes())
            f.write(bytes([MEGATRON_DTYPES[self.header.ids_dtype]]))
            f.write(np.array([len(lengths), len(lengths) + 1], "<u8").tobytes())
            f.write(lengths.astype("<i4").tobytes() + first_bytes.astype("<i8").tobytes())
            f.write(np.arange(len(lengths) + 1, dtype="<i8").tobytes())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()


class _Ragged:
    """Writes `P.NAME.bin`, int32 values, and `P.NAME.idx`, their uint64 pairs (offset, count), in elements."""

    def __init__(self, prefix: Path, name: str) -> None:
        self._values, self._index = (Path(f"{prefix}.{name}.{suffix}").open("wb") for suffix in ("bin", "idx"))  # noqa: SIM115
        self._offset = 0

    def append(self, values: npt.NDArray[Any], counts: Counts) -> None:
        """Append the values of N rows, flat, with one count per row."""
        index = _index_of(counts)
        assert len(values) == index[:, 1].sum()
        index[:, 0] += self._offset
        self._values.write(np.ascontiguousarray(values, "<i4").tobytes())
        self._index.write(index.astype("<u8").tobytes())
        self._offset += len(values)

    def close(self) -> None:
        """Close both files."""
        self._values.close()
        self._index.close()


def _index_of(counts: Counts) -> Int64:
    """Offsets and counts of parts that follow each other, int64 (N, 2)."""
    sizes = np.asarray(counts).astype(np.int64)
    return np.stack([np.cumsum(sizes) - sizes, sizes], axis=1)


def row_lengths(segments: Int32, segment_counts: Counts) -> Int64:
    """Real tokens of each row, int64 (N,): the last boundary of the row."""
    return np.asarray(segments[np.cumsum(segment_counts) - 1], np.int64)


def training_table(
    ids: npt.NDArray[Any], labels: npt.NDArray[Any] | None, label_counts: Counts | None,
    segments: npt.NDArray[Any], segment_counts: Counts,
) -> "pa.Table":  # fmt: skip
    """N packed rows as the columns of format parquet; see `PackedWriter.append` for the arrays. Without `labels`, each
    token but the first of a sequence is a label."""
    import pyarrow as pa

    lengths = row_lengths(segments, segment_counts)
    seq_lens, sequences = np.diff(segments), np.asarray(segment_counts) - 1
    seq_lens = np.delete(seq_lens, np.cumsum(segment_counts)[:-1] - 1)  # the differences between two rows
    starts = np.cumsum(seq_lens) - seq_lens
    targets = np.array(ids, np.int32)
    if labels is not None and label_counts is not None:
        base = np.repeat(np.cumsum(lengths) - lengths, label_counts)
        learnt = np.zeros(len(ids), bool)
        learnt[base + labels + 1] = True
        targets[~learnt] = IGNORED
    targets[starts] = IGNORED
    columns = [
        _lists(ids, lengths), _lists(targets, lengths),
        _lists(np.arange(len(ids)) - np.repeat(starts, seq_lens), lengths),
        *[_lists(seq_lens, sequences)] * 2,
    ]  # fmt: skip
    return pa.Table.from_arrays(columns, schema=training_schema())


def training_schema() -> "pa.Schema":
    """The columns of format parquet."""
    import pyarrow as pa

    return pa.schema([pa.field(name, pa.list_(pa.int32())) for name in TABLE_COLUMNS])


def _lists(values: npt.NDArray[Any], counts: Counts) -> "pa.Array":
    import pyarrow as pa

    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.asarray(values, np.int32)))


@dataclass(frozen=True)
class Packed:
    """A packed set of any format, over memory-mapped arrays (parquet: loaded into memory)."""

    header: Header
    ids: npt.NDArray[Any]
    """int32 or uint16: (num_samples, stride) in bin2d, else the real tokens of all rows, flat."""
    segments: Int32
    """Boundaries of the sequences of all rows, flat."""
    segment_index: UInt64
    """(num_samples, 2): offset and count in `segments`."""
    labels: Int32 | None
    """Label positions of all rows, flat; None for plain text."""
    label_index: UInt64 | None
    """(num_samples, 2): offset and count in `labels`; None for plain text."""
    sources: npt.NDArray[Any]
    """SOURCE_DTYPE records, one per sequence, ordered by (row, segment)."""
    ids_index: UInt64 | None = None
    """(num_samples, 2): offset and count in flat `ids`; None for bin2d."""
    name: str = ""
    """The last part of the set's prefix: `train`, `validation`, `train-256`."""

    @classmethod
    def open(cls, prefix: Path) -> Self:
        """Map the set with a prefix P; `P`, `P.meta.json` and `P.ids2d.bin` name the same set.

        Raises:
            InputError: a file is missing, or its size does not match the header.
        """
        name = prefix.name
        for suffix in (".meta.json", ".ids2d.bin"):
            name = name.removesuffix(suffix)
        meta_path = prefix.with_name(f"{name}.meta.json")
        try:
            meta = json.loads(meta_path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as e:
            raise InputError(f"{meta_path}: cannot read the header of the set ({e}); did packing finish?") from None
        header, folder = Header.from_json(meta, str(meta_path)), prefix.parent
        sources = np.load(folder / meta["sources"], mmap_mode="r", allow_pickle=False)
        if header.format == "parquet":
            arrays = _read_table(folder / meta["ids"]["parquet"], header)
            return cls(header=header, sources=sources, name=name, **arrays)

        def ragged(files: dict[str, str]) -> tuple[Int32, UInt64]:
            index = map_file(folder / files["idx"], "<u8", (header.num_samples, 2))
            return map_file(folder / files["bin"], "<i4", (int(index[-1].sum()) if len(index) else 0,)), index

        segments, segment_index = ragged(meta["segments"])
        labels, label_index = ragged(meta["labels"]) if header.labelled else (None, None)
        shape, ids_index = (header.num_samples, header.stride), None
        if header.format != "bin2d":
            lengths = row_lengths(segments, segment_index[:, 1]) if len(segments) else np.empty(0, np.int64)
            shape, ids_index = (int(lengths.sum()),), _index_of(lengths).astype(np.uint64)  # type: ignore[assignment]
        ids = map_file(folder / meta["ids"]["bin"], header.dtype, shape)
        return cls(header, ids, segments, segment_index, labels, label_index, sources, ids_index, name)

    def __len__(self) -> int:
        return len(self.segment_index)

    @cached_property
    def real_tokens(self) -> Int64:
        """Where the real tokens of each row are in `ids`, flat: offset and count, int64 (rows, 2)."""
        if self.ids_index is not None:
            return np.asarray(self.ids_index).astype(np.int64)
        lengths = row_lengths(self.segments, self.segment_index[:, 1]) if len(self) else np.empty(0, np.int64)
        return np.stack([np.arange(len(self)) * self.header.stride, lengths], axis=1)

    def ids_of(self, row: int) -> npt.NDArray[Any]:
        """The real tokens of a row."""
        offset, count = map(int, self.real_tokens[row])
        return self.ids.reshape(-1)[offset : offset + count]

    def labels_of(self, row: int) -> Int32 | None:
        """Label positions of a row, int32, ascending; None for plain text."""
        if self.labels is None or self.label_index is None:
            return None
        offset, count = map(int, self.label_index[row])
        return self.labels[offset : offset + count]

    def segments_of(self, row: int) -> Int32:
        """Boundaries of a row's sequences, int32: the first is 0, the last is the number of real tokens."""
        offset, count = map(int, self.segment_index[row])
        return self.segments[offset : offset + count]


def _read_table(file: Path, header: Header) -> dict[str, Any]:
    """The arrays of a set in format parquet, by the fields of `Packed`."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(file)
    except (OSError, pa.ArrowException) as e:
        raise InputError(f"{file}: cannot read the packed table ({e}); pack the set again") from None
    ids, targets, lengths = (table.column(c).combine_chunks() for c in ("input_ids", "labels", "seq_lens"))
    ids_index = _index_of(pc.list_value_length(ids).to_numpy())
    counts = pc.list_value_length(lengths).to_numpy()
    ends = np.cumsum(lengths.flatten().to_numpy()) - np.repeat(ids_index[:, 0], counts)
    segments = np.insert(ends, np.cumsum(counts) - counts, 0).astype(np.int32)
    labels = label_index = None
    if header.labelled:
        learnt = targets.flatten().to_numpy() != IGNORED
        row = np.repeat(np.arange(len(ids_index)), ids_index[:, 1])[learnt]
        labels = (np.flatnonzero(learnt) - ids_index[row, 0] - 1).astype(np.int32)
        label_index = _index_of(np.bincount(row, minlength=len(ids_index))).astype(np.uint64)
    return {
        "ids": ids.flatten().to_numpy(),
        "ids_index": ids_index.astype(np.uint64),
        "segments": segments,
        "segment_index": _index_of(counts + 1).astype(np.uint64),
        "labels": labels,
        "label_index": label_index,
    }


def map_file(path: Path, dtype: str, shape: tuple[int, ...]) -> Any:
    """A read-only memory map of a file.

    Raises:
        InputError: the file is missing, or its size is not that of `shape` and `dtype`.
    """
    expected = int(np.prod(shape)) * np.dtype(dtype).itemsize
    found = path.stat().st_size if path.is_file() else None
    if found != expected:
        raise InputError(f"{path}: expected {expected} bytes for {shape} of {dtype}, found {found}; pack the set again")
    try:
        return np.memmap(path, dtype, "r", shape=shape) if expected else np.empty(shape, dtype)
    except OSError as e:
        raise InputError(
            f"{path}: cannot be mapped into memory ({e.strerror or e}); its file system may not allow that, or a limit "
            "on memory is too low (ulimit -v). Copy the packed set to a local disk"
        ) from None
