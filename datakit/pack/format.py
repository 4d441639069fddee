"""File formats of packed sets: bin2d, bin and megatron; their header, writer and reader.

The trainer imports this module: it needs numpy only, and loads pyarrow inside the functions that make tables.

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

**Tables** (`Block.table`), which `datakit export` writes, have one row per packed row, and columns of type list of
int32: `input_ids`; `labels`, aligned with the ids, -100 where a token is no label (the model shifts them);
`position_ids`, which start at 0 in each sequence; `seq_lens`, the lengths of the row's sequences; and `seq_lengths`,
the same column under the name that TRL's collator reads.
"""

import json
import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt

from datakit.errors import InputError

if TYPE_CHECKING:  # the trainer reads packed sets without pyarrow
    import pyarrow as pa

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]
Records = npt.NDArray[Any]
"""A structured array: one record of named numbers per item."""

SOURCE_DTYPE = np.dtype(
    [("row_key", "<u8"), ("start", "<u8"), ("row", "<u8"), ("segment", "<u4"), ("tokens", "<u4"), ("head", "<u4")]
)
"""Where a sequence comes from and where it is: the row's key; the offset, in the tokens of that row, of its first token
behind its head; the packed row; the index of the sequence in the packed row; the number of tokens; how many of them are
its head, which repeats earlier tokens of the row (a system prompt, see `fit`)."""

Task = Literal["pretrain", "sft", "dpo"]
Packing = Literal["best_fit", "wrap", "pad"]
Overflow = Literal["split_turns", "split", "truncate", "drop", "stream"]
"""What becomes of sequences longer than a row; `stream`: they are cut when they are joined into rows."""
Format = Literal["bin2d", "bin", "megatron"]
IDS: dict[str, dict[str, str]] = {
    "bin2d": {"bin": "ids2d.bin"},
    "bin": {"bin": "ids.bin", "idx": "ids.idx"},
    "megatron": {"bin": "bin", "idx": "idx"},
}
"""File suffixes of the ids, by format and by key in the header."""
STORED = ("format", "task", "num_samples", "seq_len", "pad_id", "eos_id", "vocab_size", "rows_per_unit")
"""Fields of `Header` that stand in the meta file as they are."""
MEGATRON_MAGIC = b"MMIDIDX\x00\x00"
MEGATRON_DTYPES = {"int32": 4, "uint16": 8}
"""Megatron's codes for the dtype of the tokens."""
IGNORED = -100
"""Label of a token that is not learnt; PyTorch's cross entropy ignores it."""
TABLE_COLUMNS = ("input_ids", "labels", "position_ids", "seq_lens", "seq_lengths")
"""The columns of tables."""


def headers(facts: dict[str, Any], split: str) -> list[dict[str, Any]]:
    """The header of each part of a split (`packed` or `validation`), with its `prefix`, from the facts of a manifest.

    In packs from before there were parts, a split is one header, or has `buckets` for several row lengths.
    """
    found = facts.get(split, [])
    return found if isinstance(found, list) else found.get("buckets", [found])


def set_of(name: str) -> str:
    """The set of a part: `train-256` of `train-256-00003`, from the last part of its prefix."""
    return re.sub(r"-\d{5}$", "", name)


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
    def padded(self) -> bool:
        """Whether each row takes `stride` tokens in the file."""
        return self.format == "bin2d"

    @property
    def dtype(self) -> str:
        """numpy dtype of the ids in the file, little-endian."""
        return "<u2" if self.ids_dtype == "uint16" else "<i4"

    def to_json(self, name: str) -> dict[str, Any]:
        """The content of the meta file; `name` is the last part of the prefix."""

        def files(part: str) -> dict[str, str]:
            return {"bin": f"{name}.{part}.bin", "idx": f"{name}.{part}.idx", "dtype": "int32"}

        ids = {key: f"{name}.{suffix}" for key, suffix in IDS[self.format].items()}
        plain: dict[str, Any] = {key: getattr(self, key) for key in STORED}
        plain |= {"version": 1, "byteorder": "little", "sources": f"{name}.src.npy"}
        plain["ids"] = ids | {"dtype": self.ids_dtype}
        plain["labels"] = files("lbl") if self.labelled else None
        plain["segments"] = files("seg")
        if self.padded:
            plain["stride"] = self.stride
        return plain

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
            plain = {key: meta[key] for key in STORED}
            return cls(labelled=meta["labels"] is not None, ids_dtype=meta["ids"]["dtype"], **plain)
        except (KeyError, TypeError) as e:
            raise InputError(f"{where}: the {name} header lacks or mistypes {e}; pack the set again") from None


# ---------------------------------------------------------------------- rows in memory


@dataclass(frozen=True, slots=True)
class Block:
    """Some packed rows without padding: sequences one after another. What is written, and what is read back."""

    ids: Int32
    """The tokens of all sequences."""
    learnt: Bools
    """True for label tokens. In a correct set the first token of a sequence is none."""
    lengths: Int64
    """Tokens of each sequence."""
    counts: Int64
    """Sequences of each row; 0 for the missing side of a pair."""
    sources: Records
    """`SOURCE_DTYPE` records, one per sequence."""

    @property
    def starts(self) -> Int64:
        """The first token of each sequence."""
        return starts_of(self.lengths)

    @property
    def row_lengths(self) -> Int64:
        """Tokens of each row."""
        ends = np.append(0, np.cumsum(self.lengths))[np.cumsum(self.counts)]
        lengths: Int64 = np.diff(ends, prepend=0)
        return lengths

    def segments(self) -> tuple[Int32, Int64]:
        """The boundaries of the sequences in each row (0 and the ends), flat, and how many each row has."""
        row_starts = starts_of(self.row_lengths).repeat(self.counts)
        ends = self.starts + self.lengths - row_starts
        return np.insert(ends, starts_of(self.counts), 0).astype(np.int32), self.counts + 1

    def label_positions(self) -> tuple[Int32, Int64]:
        """The positions of the labels in each row, flat, and how many each row has."""
        at, starts = np.flatnonzero(self.learnt), starts_of(self.row_lengths)
        counts = np.diff(np.searchsorted(at, np.append(starts, len(self.ids))))
        return (at - starts.repeat(counts) - 1).astype(np.int32), counts

    def padded(self, stride: int, pad_id: int) -> Int32:
        """The ids in rows of `stride` tokens, filled up with `pad_id`."""
        ids_NS = np.full((len(self.counts), stride), pad_id, np.int32)
        lengths = self.row_lengths
        for row, start, length in zip(ids_NS, starts_of(lengths).tolist(), lengths.tolist(), strict=True):
            row[:length] = self.ids[start : start + length]
        return ids_NS

    def table(self) -> "pa.Table":
        """The rows as a table."""
        import pyarrow as pa

        def lists(values: npt.NDArray[Any], counts: Int64) -> pa.Array:
            offsets = np.append(0, np.cumsum(counts)).astype(np.int32)
            return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.asarray(values, np.int32)))

        learnt, rows = self.learnt.copy(), self.row_lengths
        learnt[self.starts] = False
        targets = np.where(learnt, self.ids, IGNORED)
        positions = np.arange(len(self.ids)) - self.starts.repeat(self.lengths)
        lengths = lists(self.lengths, self.counts)
        columns = [lists(values, rows) for values in (self.ids, targets, positions)]
        return pa.Table.from_arrays([*columns, lengths, lengths], schema=training_schema())


def training_schema() -> "pa.Schema":
    """The columns of tables."""
    import pyarrow as pa

    return pa.schema([pa.field(name, pa.list_(pa.int32())) for name in TABLE_COLUMNS])


def starts_of(lengths: Int64) -> Int64:
    """Where parts of these lengths begin, if they follow each other."""
    return np.cumsum(lengths) - lengths


def gather(values: npt.NDArray[Any], starts: Int64, lengths: Int64) -> npt.NDArray[Any]:
    """Copies of parts of an array, one after another."""
    values = np.asarray(values)  # slices of a memory map are slow to make
    parts = [values[a:b] for a, b in zip(starts.tolist(), (starts + lengths).tolist(), strict=True)]
    return np.concatenate([values[:0], *parts])


# ---------------------------------------------------------------------- the writer


class _Column:
    """A file of values, and how many each row has."""

    def __init__(self, file: str, dtype: str) -> None:
        self.file, self.dtype, self.counts = Path(file).open("wb"), dtype, [np.empty(0, np.int64)]  # noqa: SIM115

    def append(self, values: npt.NDArray[Any], counts: Int64) -> None:
        self.file.write(np.ascontiguousarray(values, self.dtype))  # type: ignore[arg-type]  # a buffer, not copied
        self.counts.append(counts)

    def close(self, index: str = "") -> None:
        """Finish the file, and write its uint64 pairs (offset, count) into the file `index`."""
        self.file.close()
        if index:
            Path(index).write_bytes(index_of(np.concatenate(self.counts)).astype("<u8").tobytes())


class PackedWriter:
    """Writes the rows of one set, block by block. Memory holds one block, the lengths of rows and the source
    records."""

    def __init__(self, prefix: Path, header: Header) -> None:
        """Create the files `P.*` of the set.

        Raises:
            InputError: the format cannot store labels or preference pairs, and the set has them.
        """
        if header.format == "megatron" and (header.labelled or header.rows_per_unit > 1):
            lost = "the labels of conversations" if header.rows_per_unit == 1 else "which side of a pair a row is"
            raise InputError(f"pack: format megatron does not store {lost}; use bin2d or bin")
        prefix.parent.mkdir(parents=True, exist_ok=True)
        self.prefix, self.header = prefix, header
        self.num_rows = self.num_tokens = self.num_labels = self.num_sequences = self.num_chosen = 0
        self._sources = [np.empty(0, SOURCE_DTYPE)]
        self._ids = _Column(f"{prefix}.{IDS[header.format]['bin']}", header.dtype)
        self._segments = _Column(f"{prefix}.seg.bin", "<i4")
        self._labels = _Column(f"{prefix}.lbl.bin", "<i4") if header.labelled else None

    def append(self, block: Block) -> None:
        """Append rows."""
        header = self.header
        self.num_rows += len(block.counts)
        self.num_tokens += len(block.ids)
        self.num_labels += int(block.learnt.sum())
        self.num_sequences += len(block.sources)
        self.num_chosen += int((block.sources["row"] % 2 == 0).sum())  # of pairs, the even rows
        self._sources.append(block.sources)
        ids = block.padded(header.stride, header.pad_id) if header.padded else block.ids
        self._ids.append(ids, block.row_lengths)
        self._segments.append(*block.segments())
        if self._labels is not None:
            self._labels.append(*block.label_positions())

    def close(self) -> dict[str, Any]:
        """Finish the files, the header last; returns what it holds."""
        header = replace(self.header, num_samples=self.num_rows)
        self._ids.close(f"{self.prefix}.ids.idx" if header.format == "bin" else "")
        self._segments.close(f"{self.prefix}.seg.idx")
        if self._labels is not None:
            self._labels.close(f"{self.prefix}.lbl.idx")
        if header.format == "megatron":
            self._write_megatron_index()
        np.save(f"{self.prefix}.src.npy", np.concatenate(self._sources))
        meta = header.to_json(self.prefix.name)
        text = json.dumps(meta, indent=1, sort_keys=True) + "\n"
        Path(f"{self.prefix}.meta.json").write_text(text, encoding="utf-8")
        return meta

    def _write_megatron_index(self) -> None:
        lengths = np.concatenate(self._ids.counts)
        first_bytes = starts_of(lengths) * np.dtype(self.header.dtype).itemsize
        with Path(f"{self.prefix}.idx").open("wb") as f:
            f.write(MEGATRON_MAGIC + np.array([1], "<u8").tobytes())
            f.write(bytes([MEGATRON_DTYPES[self.header.ids_dtype]]))
            f.write(np.array([len(lengths), len(lengths) + 1], "<u8").tobytes())
            f.write(lengths.astype("<i4").tobytes() + first_bytes.astype("<i8").tobytes())
            f.write(np.arange(len(lengths) + 1, dtype="<i8").tobytes())


def index_of(counts: Int64) -> Int64:
    """Offsets and counts of parts that follow each other, int64 (N, 2)."""
    return np.stack([starts_of(counts), counts], axis=1)


# ---------------------------------------------------------------------- the reader


@dataclass(frozen=True)
class Packed:
    """A packed set of any format, over memory-mapped arrays."""

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
    sources: Records
    """SOURCE_DTYPE records, one per sequence, ordered by (row, segment)."""
    name: str = ""
    """The last part of the prefix: `train-00000`, `validation-00002`, `train-256-00000`."""

    @classmethod
    def open(cls, prefix: Path) -> Self:
        """Map the set with a prefix P; `P`, `P.meta.json` and, for bin2d, `P.ids2d.bin` name the same set.

        Raises:
            InputError: a file is missing, or its size does not match the header.
        """
        name, folder = prefix.name.removesuffix(".meta.json").removesuffix(".ids2d.bin"), prefix.parent
        meta_path = folder / f"{name}.meta.json"
        try:
            meta = json.loads(meta_path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as e:
            raise InputError(f"{meta_path}: cannot read the header of the set ({e}); did packing finish?") from None
        header = Header.from_json(meta, str(meta_path))
        sources = np.load(folder / meta["sources"], mmap_mode="r", allow_pickle=False)

        def ragged(part: str) -> tuple[Int32, UInt64]:
            """Values of all rows, flat, and their index."""
            index = map_file(folder / meta[part]["idx"], "<u8", (header.num_samples, 2))
            size = int(index[-1].sum()) if len(index) else 0
            return map_file(folder / meta[part]["bin"], "<i4", (size,)), index

        segments, segment_index = ragged("segments")
        labels, label_index = ragged("labels") if header.labelled else (None, None)
        shape = (header.num_samples, header.stride) if header.padded else (int(sources["tokens"].sum()),)
        ids = map_file(folder / meta["ids"]["bin"], header.dtype, shape)
        return cls(header, ids, segments, segment_index, labels, label_index, sources, name)

    def __len__(self) -> int:
        return len(self.segment_index)

    @cached_property
    def real_tokens(self) -> Int64:
        """Where the real tokens of each row are in `ids`, flat: offset and count, int64 (rows, 2)."""
        ends = self.segment_index.sum(axis=1).astype(np.int64)
        lengths = np.asarray(self.segments[ends - 1], np.int64)  # the last boundary of each row
        padded = self.ids.ndim == 2
        return np.stack([np.arange(len(self)) * self.header.stride if padded else starts_of(lengths), lengths], axis=1)

    def block(self, first: int, stop: int) -> Block:
        """The rows from `first` up to `stop`. Labels on padding are left out."""
        some = slice(first, stop)
        counts = self.segment_index[some, 1].astype(np.int64) - 1
        bounds = gather(self.segments, *self.segment_index[some].astype(np.int64).T)
        lengths = np.delete(np.diff(bounds), np.cumsum(counts + 1)[:-1] - 1)  # the steps between two rows
        ids = gather(self.ids.reshape(-1), *self.real_tokens[some].T).astype(np.int32)
        a, b = np.searchsorted(self.sources["row"], [first, stop])
        learnt = np.full(len(ids), self.labels is None)
        block = Block(ids, learnt, lengths.astype(np.int64), counts, self.sources[a:b])
        learnt[block.starts] = False
        if self.labels is not None and self.label_index is not None:
            index, rows = self.label_index[some].astype(np.int64), block.row_lengths
            at, of_row = gather(self.labels, *index.T) + 1, np.arange(len(rows)).repeat(index[:, 1])
            real = (at > 0) & (at < rows[of_row])
            learnt[(at + starts_of(rows)[of_row])[real]] = True
        return block

    def ids_of(self, row: int) -> npt.NDArray[Any]:
        """The real tokens of a row."""
        return _part(self.ids.reshape(-1), self.real_tokens, row)

    def labels_of(self, row: int) -> Int32 | None:
        """Label positions of a row, int32, ascending; None for plain text."""
        return None if self.labels is None else _part(self.labels, self.label_index, row)

    def segments_of(self, row: int) -> Int32:
        """Boundaries of a row's sequences, int32: the first is 0, the last is the number of real tokens."""
        return _part(self.segments, self.segment_index, row)


def _part(values: npt.NDArray[Any], index: Any, row: int) -> npt.NDArray[Any]:
    """The values of a row, from its offset and count."""
    offset, count = index[row].tolist()
    return values[offset : offset + count]


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
