"""Writers of the formats without padding: bin, Megatron's and Parquet.

**bin** is bin2d without the stride: `P.ids.bin` holds the real tokens of all rows one after another, `P.ids.idx` the
uint64 pairs (offset, count) into it, in elements, one pair a row; all other files are bin2d's.

**megatron** is the indexed dataset that Megatron-LM reads: `P.bin` holds the tokens of all documents, and `P.idx`

    9 bytes     b"MMIDIDX\\x00\\x00"
    uint64      version, 1
    uint8       dtype of the tokens: 4 is int32, 8 is uint16
    uint64      number of sequences, S
    uint64      number of document boundaries, D = documents + 1
    int32[S]    tokens of each sequence
    int64[S]    first byte of each sequence in P.bin
    int64[D]    first sequence of each document, and S at the end

all little-endian. A packed row is one sequence and one document. It holds ids alone, so it takes plain text only.

**parquet** has a row for each packed row, in columns of lists of int32: `input_ids`; `labels`, aligned with them, -100
where nothing is learnt (the model shifts them); `position_ids`, which begin at 0 with each sequence; `seq_lens`, the
lengths of the row's sequences, and the same under TRL's name for it, `seq_lengths`: its collator looks at no other.
"""

from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from datakit.errors import InputError
from datakit.pack.format import Counts, Header, Int32, Ragged, Sidecars, Writer

MEGATRON_MAGIC = b"MMIDIDX\x00\x00"
MEGATRON_DTYPES = {"int32": 4, "uint16": 8}
IGNORED = -100
ROW_GROUP_TOKENS = 1 << 22


class RowWriter(Protocol):
    """Writes the rows of one set. `ids` is a matrix with padding (`padded`), or the real tokens one after another."""

    header: Header
    padded: bool

    def append(
        self, ids: Int32, labels: Int32 | None, label_counts: Counts | None, segments: Int32, segment_counts: Counts,
        sources: npt.NDArray[Any], /,
    ) -> None:  # fmt: skip
        """Append rows; label positions and segment boundaries are flat, with one count a row."""

    def close(self) -> Header:
        """Finish the files, the header last."""


def open_writer(prefix: Path, header: Header) -> RowWriter:
    """The writer of the header's format.

    Raises:
        InputError: the format cannot hold such rows.
    """
    kept_apart = {"megatron": header.labelled or header.rows_per_unit > 1, "parquet": header.rows_per_unit > 1}
    if kept_apart.get(header.format):
        lost = "the labels of conversations" if header.rows_per_unit == 1 else "which side of a pair a row is"
        raise InputError(f"pack: format {header.format} does not hold {lost}; use bin2d or bin")
    made: dict[str, type[RowWriter]] = {"bin2d": Writer, "bin": BinWriter, "megatron": MegatronWriter,
                                        "parquet": ParquetWriter}  # fmt: skip
    return made[header.format](prefix, header)  # type: ignore[call-arg]


def row_lengths(segments: Int32, segment_counts: Counts) -> npt.NDArray[np.int64]:
    """Real tokens of each row: its last boundary."""
    return np.asarray(segments[np.cumsum(segment_counts) - 1], np.int64)


class BinWriter:
    """Writes a set in format bin."""

    padded = False

    def __init__(self, prefix: Path, header: Header) -> None:
        self.header, self._sidecars = header, Sidecars(prefix, header)
        self._ids = Ragged(self._sidecars.create("ids.bin"), self._sidecars.create("ids.idx"), header.dtype)

    def append(
        self, ids: Int32, labels: Int32 | None, label_counts: Counts | None, segments: Int32, segment_counts: Counts,
        sources: npt.NDArray[Any],
    ) -> None:  # fmt: skip
        """Append rows."""
        self._ids.append(ids, row_lengths(segments, segment_counts))
        self._sidecars.append(labels, label_counts, segments, segment_counts, sources)

    def close(self) -> Header:
        """Finish the files, the header last."""
        self._ids.close()
        return self._sidecars.close()


class MegatronWriter:
    """Writes plain text as Megatron's indexed dataset; memory holds twelve bytes a document beside the block."""

    padded = False

    def __init__(self, prefix: Path, header: Header) -> None:
        self.header, self._sidecars, self._prefix = header, Sidecars(prefix, header), prefix
        self._ids = self._sidecars.create("bin")
        self._lengths: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)]

    def append(
        self, ids: Int32, labels: Int32 | None, label_counts: Counts | None, segments: Int32, segment_counts: Counts,
        sources: npt.NDArray[Any],
    ) -> None:  # fmt: skip
        """Append rows."""
        self._ids.write(np.ascontiguousarray(ids, self.header.dtype).tobytes())
        self._lengths.append(row_lengths(segments, segment_counts))
        self._sidecars.append(labels, label_counts, segments, segment_counts, sources)

    def close(self) -> Header:
        """Write the index; then the files beside it, the header last."""
        self._ids.close()
        lengths = np.concatenate(self._lengths)
        first_bytes = (np.cumsum(lengths) - lengths) * np.dtype(self.header.dtype).itemsize
        with Path(f"{self._prefix}.idx").open("wb") as f:
            f.write(MEGATRON_MAGIC + np.array([1], "<u8").tobytes())
            f.write(bytes([MEGATRON_DTYPES[self.header.ids_dtype]]))
            f.write(np.array([len(lengths), len(lengths) + 1], "<u8").tobytes())
            f.write(lengths.astype("<i4").tobytes() + first_bytes.astype("<i8").tobytes())
            f.write(np.arange(len(lengths) + 1, dtype="<i8").tobytes())
        return self._sidecars.close()


class ParquetWriter:
    """Writes a set as a Parquet table that Hugging Face `datasets` loads and a causal language model takes."""

    padded = False
    COLUMNS = ("input_ids", "labels", "position_ids", "seq_lens", "seq_lengths")

    def __init__(self, prefix: Path, header: Header) -> None:
        self.header, self._sidecars = header, Sidecars(prefix, header)
        schema = pa.schema([pa.field(name, pa.list_(pa.int32())) for name in self.COLUMNS])
        self._table = pq.ParquetWriter(f"{prefix}.parquet", schema, compression="zstd")
        self._schema = schema

    def append(
        self, ids: Int32, labels: Int32 | None, label_counts: Counts | None, segments: Int32, segment_counts: Counts,
        sources: npt.NDArray[Any],
    ) -> None:  # fmt: skip
        """Append rows."""
        lengths = row_lengths(segments, segment_counts)
        seq_lens, sequences = np.diff(segments), np.asarray(segment_counts) - 1
        seq_lens = np.delete(seq_lens, np.cumsum(segment_counts)[:-1] - 1)  # from one row's end to the next one's 0
        starts = np.cumsum(seq_lens) - seq_lens
        targets = np.array(ids, np.int32)
        if labels is not None and label_counts is not None and self.header.labelled:
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
        table = pa.Table.from_arrays(columns, schema=self._schema)
        rows = max(1, ROW_GROUP_TOKENS // self.header.stride)
        self._table.write_table(table, row_group_size=rows)
        self._sidecars.append(labels, label_counts, segments, segment_counts, sources)

    def close(self) -> Header:
        """Finish the files, the header last."""
        self._table.close()
        return self._sidecars.close()


def _lists(values: npt.NDArray[Any], counts: Counts) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.asarray(values, np.int32)))
