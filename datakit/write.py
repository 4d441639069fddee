"""Record batches into Parquet shards: written aside, flushed, renamed whole, with the checksums a manifest holds."""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from datakit.config import canonical, sha256_file
from datakit.errors import InputError
from datakit.manifest import Shard

if TYPE_CHECKING:
    from datakit.recent import Recent

ROW_GROUP_BYTES = 16 << 20
ROW_GROUP_ROWS = 1 << 16
ALL_VALID = memoryview(b"\x01" * (1 << 20))
"""What is hashed as the validity of values without nulls, so that no array is made of them."""


class ContentHash:
    """SHA-256 over the values of a table: equal for equal values, however they are chunked, encoded or compressed.

    Every node of the schema's tree (validity, lengths, values) is hashed as one stream over all rows; the digest is
    over the column names, types and the nodes' digests.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = [(f.name, _kind(f.type)) for f in schema]
        self._nodes: dict[str, Any] = {}
        self.bytes = 0
        """How much has been hashed: the size of the values, the same wherever they come from."""

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch; its columns are those of the schema, in that order."""
        for (name, _), column in zip(self._schema, batch.columns, strict=True):
            self._add(name, column)

    def hexdigest(self) -> str:
        """64 hex digits."""
        nodes = {path: node.hexdigest() for path, node in self._nodes.items()}
        return hashlib.sha256(canonical({"schema": self._schema, "nodes": nodes})).hexdigest()

    def _feed(self, path: str, data: Any) -> None:
        self.bytes += memoryview(data).nbytes
        self._nodes.setdefault(path, hashlib.sha256()).update(data)

    def _add(self, path: str, array: pa.Array) -> None:
        kind = array.type
        if len(array) == 0:
            return
        if array.null_count:
            self._feed(f"{path}?", np.asarray(pc.is_valid(array).to_numpy(zero_copy_only=False), np.uint8))
        else:
            for first in range(0, len(array), len(ALL_VALID)):
                self._feed(f"{path}?", ALL_VALID[: len(array) - first])
        if pa.types.is_struct(kind):
            for field, child in zip(kind, array.flatten(), strict=True):
                self._add(f"{path}.{field.name}", child)
        elif pa.types.is_list(kind):
            lengths = pc.fill_null(pc.list_value_length(array), 0)
            self._feed(f"{path}#", np.asarray(lengths, "<i8"))
            self._add(f"{path}[]", array.flatten())
        elif pa.types.is_string(kind) or pa.types.is_binary(kind):
            self._add_bytes(path, array if array.null_count == 0 else pc.fill_null(array, pa.scalar("").cast(kind)))
        elif not pa.types.is_null(kind):
            filled = array if array.null_count == 0 else pc.fill_null(array, pa.scalar(0).cast(kind))
            self._feed(path, np.ascontiguousarray(filled.to_numpy(zero_copy_only=False)))

    def _add_bytes(self, path: str, array: pa.Array) -> None:
        _, offsets, data = array.buffers()
        ends = np.frombuffer(offsets, "<i4")[array.offset : array.offset + len(array) + 1]
        self._feed(f"{path}#", np.diff(ends).astype("<i8"))
        if data is not None:
            self._feed(path, memoryview(data)[ends[0] : ends[-1]])


def _kind(kind: pa.DataType) -> str:
    """A type's name without the name of a list's child, which Parquet changes."""
    if pa.types.is_list(kind):
        return f"list<{_kind(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{f.name}: {_kind(f.type)}' for f in kind)}>"
    return str(kind)


def stored(kind: pa.DataType) -> pa.DataType:
    """The type as Parquet gives it back: a list's child is called `element` there."""
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_name("element").with_type(stored(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(stored(f.type)) for f in kind])
    return kind


class ShardWriter:
    """Writes one shard. Row groups are cut by data: after the batch that reaches 16 MiB of values or 65,536 rows.

    `recent` is told of the row groups of a shard that is complete.
    """

    def __init__(self, folder: Path, path: str, schema: pa.Schema, recent: "Recent | None" = None) -> None:
        self._path, self._target, self.rows = path, folder / path, 0
        self._target.parent.mkdir(parents=True, exist_ok=True)
        self._aside = self._target.with_name(f".{self._target.name}.{os.getpid()}.tmp")
        self._schema = pa.schema([f.with_type(stored(f.type)) for f in schema])
        self._hash = ContentHash(self._schema)
        self._writer = pq.ParquetWriter(self._aside, self._schema, compression="zstd", **_encodings(self._schema))
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = self._flushed = 0
        self._recent, self._groups = recent, list[pa.RecordBatch]()

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; the batch's columns are taken by name and cast to the shard's schema."""
        if batch.num_rows == 0:
            return
        columns = [batch.column(f.name).cast(f.type) for f in self._schema]
        batch = pa.record_batch(columns, schema=self._schema)
        self._hash.update(batch)
        self.rows += batch.num_rows
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        if self._pending_rows >= ROW_GROUP_ROWS or self._hash.bytes - self._flushed >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            group = pa.Table.from_batches(self._pending)
            self._writer.write_table(group, row_group_size=max(1, self._pending_rows))
            if self._recent:
                self._groups += group.combine_chunks().to_batches()
        self._pending, self._pending_rows, self._flushed = [], 0, self._hash.bytes

    def close(self) -> Shard:
        """Finish the shard under its name and return its entry."""
        self._flush()
        self._writer.close()
        shard = settle(self._aside, self._target, self._path, self.rows, self._hash.hexdigest())
        if self._recent and self._groups:
            self._recent.keep(self._target, self._groups)
        return shard

    def abandon(self) -> None:
        """Remove what was written."""
        self._writer.close()
        self._aside.unlink(missing_ok=True)


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    """Parquet options for a schema with token ids: their bytes are split by significance, which zstd packs smaller and
    three times as fast as a dictionary's indices."""
    ids = [f.name for f in schema if f.type == stored(pa.list_(pa.int32()))]
    if not ids:
        return {}
    others = [name for name in schema.names if name not in ids]
    split_bytes = {f"{name}.list.element": "BYTE_STREAM_SPLIT" for name in ids}
    return {"use_dictionary": others, "write_statistics": others, "column_encoding": split_bytes}


def entry(folder: Path, path: str) -> Shard:
    """The entry of a file that is no table of rows."""
    file = folder / path
    return Shard(path=path, rows=0, bytes=file.stat().st_size, sha256=sha256_file(file))


def settle(aside: Path, target: Path, path: str, rows: int, content: str | None) -> Shard:
    """Flush a finished file to the disk, rename it to its place and return its entry."""
    digest, size = sha256_file(aside), aside.stat().st_size
    put(aside, target)
    return Shard(path=path, rows=rows, bytes=size, sha256=digest, content_sha256=content)


def put(aside: Path, target: Path) -> None:
    """Flush a finished file to the disk and rename it to its place."""
    with aside.open("rb") as f:
        os.fsync(f.fileno())
    aside.rename(target)


def take_over(source: Path, target: Path) -> None:
    """Give a finished file a second place, where the file system can without a copy."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        target.hardlink_to(source)
    except OSError:  # a file system without hard links
        aside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        shutil.copyfile(source, aside)
        put(aside, target)


class Split:
    """The shards of one work unit: kept rows always, dropped and quarantined rows where there are any."""

    def __init__(self, folder: Path, index: int, recent: "Recent | None" = None) -> None:
        self._folder, self._name, self._writers = folder, f"part-{index:05d}.parquet", dict[str, ShardWriter]()
        self._recent = recent

    def write(self, role: str, batch: pa.RecordBatch) -> None:
        """Append rows to the shard of a role; only `kept` is made for no rows."""
        if batch.num_rows == 0 and role != "kept":
            return
        if role not in self._writers:
            self._writers[role] = ShardWriter(
                self._folder, f"{role}/{self._name}", batch.schema, self._recent if role == "kept" else None
            )
        self._writers[role].write(batch)

    def rows(self, role: str) -> int:
        """Rows written to a role so far."""
        return self._writers[role].rows if role in self._writers else 0

    def __enter__(self) -> Self:
        return self

    def close(self) -> list[Shard]:
        """Finish all shards."""
        return [self._writers[role].close() for role in sorted(self._writers)]

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for writer in self._writers.values():
                writer.abandon()


def read_shard(path: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a shard, one batch a row group.

    Raises:
        InputError: missing, or not a Parquet file.
    """
    try:
        file = pq.ParquetFile(path, memory_map=True)
    except (OSError, pa.ArrowInvalid) as e:
        raise InputError(f"{path}: cannot read the shard ({e}); `datakit verify` names what is damaged") from None
    with file:
        if file.num_row_groups == 0:
            yield _empty(file.schema_arrow, columns)
        for group in range(file.num_row_groups):
            try:
                rows = file.read_row_group(group, columns=columns)
            except (OSError, pa.ArrowException) as e:
                raise InputError(f"{path}: row group {group} is damaged ({e}); `datakit verify` tells more") from None
            yield from rows.combine_chunks().to_batches()


def _empty(schema: pa.Schema, columns: list[str] | None) -> pa.RecordBatch:
    fields = [schema.field(c) for c in columns or schema.names]
    return pa.record_batch([pa.array([], f.type) for f in fields], schema=pa.schema(fields))


def inspect(file: Path, shard: Shard) -> Iterator[str]:
    """What differs between a shard's values and its entry: rows, content (for `manifest.verify`)."""
    try:
        rows, digest = content_of(read_shard(file))
    except (InputError, pa.ArrowException) as e:
        yield f"cannot be read: {e}"
        return
    if rows != shard.rows:
        yield f"expected {shard.rows} rows, found {rows}"
    if digest != shard.content_sha256:
        yield f"expected content_sha256 {shard.content_sha256}, found {digest}"


def content_of(batches: Iterable[pa.RecordBatch]) -> tuple[int, str]:
    """Rows and content hash of batches of one schema."""
    rows, content = 0, None
    for batch in batches:
        content = content or ContentHash(batch.schema)
        content.update(batch)
        rows += batch.num_rows
    return rows, "" if content is None else content.hexdigest()
