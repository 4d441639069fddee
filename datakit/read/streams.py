"""Bytes of input files: opened wherever they lie, decompressed past damage, cut into segments of whole records."""

import bz2
import glob
import lzma
import os
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, NamedTuple, cast

import numpy as np
import pyarrow as pa

from datakit.data import RECORD_BITS
from datakit.errors import InputError, MissingExtraError
from datakit.object_store import arrow_s3, first_line, fsspec_store, reading_errors
from datakit.storage import SCHEMES, is_url

RECORD_BYTES: Final = 256 << 20
"""Bytes of the longest record. The offsets of an Arrow string array end at 2 GiB."""


UNPACKED_RATIO: Final = 5
"""Bytes of text for each byte of a compressed file, roughly."""
EXPANSION_FROM: Final = 64 << 20
EXPANSION: Final = 300
"""A compressed file may grow to so many times its size, and to 64 MiB always."""
BLOCK: Final = 4 << 20
CHUNK: Final = 1 << 16
"""Compressed bytes that are decompressed at once."""
HELD: Final = 1 << 16
"""Bytes before damage that are not certain, since a member's checksum comes after its bytes: at least so many are given
up, and members of up to so many whole."""
MAGIC: Final = {
    "gzip": b"\x1f\x8b\x08",
    "zstd": b"\x28\xb5\x2f\xfd",
    "bz2": b"BZh",
    "xz": b"\xfd7zXZ\x00",
    "lz4": b"\x04\x22\x4d\x18",
}
_DECODERS: Final[dict[str, Callable[[], Any]]] = {
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "bz2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(memlimit=1 << 30),  # `xz -9` needs 65 MiB
}
_ERRORS: Final = (zlib.error, lzma.LZMAError, OSError, ValueError)
DOCUMENT: Final = "document"
"""The layout of texts."""
BOM: Final = b"\xef\xbb\xbf"
PIECE: Final = 1 << 18
Spans = np.ndarray[Any, Any]
_CREDENTIALS = re.compile(r"^(s3|gs|az|https?)://[^/]*@")


class RecordError(Exception):
    """A record that cannot become a row. `reason` is one word that is counted, `detail` a sentence for people."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


def too_long() -> RecordError:
    """What is wrong with a record of more than `RECORD_BYTES`."""
    return RecordError("too_long", f"the record has more than {RECORD_BYTES >> 20} MiB, the most that are read")


def refuse_twice(columns: Sequence[str], where: str) -> None:
    """Refuse columns of which two have one name.

    Raises:
        InputError: two have.
    """
    twice = next((name for name in columns if columns.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{where} names column {twice!r} twice; rename one of them")


def expands_too_far(name: str, read: int, made: int) -> RecordError | None:
    """What is wrong if `read` bytes of a file have become too many."""
    if made <= EXPANSION_FROM + EXPANSION * read:
        return None
    return RecordError(
        "too_large_unpacked",
        f"{read:,} bytes of {name} became {made:,} bytes, more than {EXPANSION} times as many; what follows is not "
        "read. If the file is good, decompress it first",
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """Where records hold what a row is made of: a line of the table in `layouts.table`, or what one file has of it.

    Of a file, `name` is "" if no record could be read.
    """

    name: str = ""
    kind: str = ""
    holds: Callable[[Any], bool] = bool
    """Whether the value of a required field is what this layout has there."""
    required: Mapping[str, str] = field(default_factory=dict)
    """Our name -> its source; a record without one of these is quarantined."""
    optional: Mapping[str, str] = field(default_factory=dict)
    unless: tuple[str, ...] = ()
    """A record that has one of these fields is something else."""
    beside: tuple[str, ...] = ()
    """Fields of a file's first records that the layout does not read. They are kept beside the row."""
    later: Mapping[str, str] = field(default_factory=dict)
    """Source -> our name: what a record has of an optional name where it has nothing under the file's own source."""

    @property
    def text_field(self) -> str:
        """The field of a document's text; "" for other layouts."""
        return self.required["text"] if self.name == DOCUMENT else ""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One input file, and how it is read."""

    path: str
    """An absolute path, or a URL; for a table in memory its name."""
    name: str
    """The path relative to the common parent folder of all inputs, so that the folder can be moved."""
    format: str
    """"jsonl", "json" (an array), "json_objects", "csv", "text", "html", "warc", "parquet", "arrow", "arrow_stream",
    "table" or, with a `failure`, "unreadable"."""
    compression: str
    bytes: int
    header: tuple[str, ...] = ()
    """Column names of a CSV file."""
    delimiter: str = ","
    """The character between the cells of a CSV file."""
    text_split: str = "file"
    """What is one document in a plain text file: "file", "line" or "paragraph"."""
    table: pa.Table | None = None
    """The table in memory that is read instead of a file."""
    layout: Layout = Layout()
    """Where its records hold what rows are made of."""
    limit: int = 1 << RECORD_BITS
    """Records with this number and later ones are not read."""
    failure: str = ""
    """Why nothing of it can be read: the file is one record, which is quarantined."""

    @property
    def text_bytes(self) -> int:
        """Roughly how many bytes of text it holds."""
        return self.bytes * (UNPACKED_RATIO if self.compression else 1)


# Open: local or remote.


def open_binary(path: str) -> BinaryIO:
    """Open a local file or a URL for reading.

    Raises:
        InputError: it cannot be opened; the message says why.
    """
    try:
        if is_url(path):
            system, inner = filesystem(path)
            return cast(BinaryIO, system.open_input_file(inner))
        return open(path, "rb")
    except reading_errors() as e:
        raise InputError(f"{path}: cannot be opened: {getattr(e, 'strerror', '') or first_line(e)}") from e


def filesystem(url: str) -> tuple[Any, str]:
    """(Arrow file system, path in it) of a URL. Arrow itself reads s3, gs and hdfs, obstore az, fsspec all others.

    Raises:
        InputError: the URL's scheme is unknown, or the URL holds credentials.
        MissingExtraError: a package for that scheme is not installed.
    """
    from pyarrow import fs

    if found := _CREDENTIALS.match(url):
        raise InputError(f"{found[1]}://...: names credentials; give them by the environment or a profile")
    scheme, path = url.split("://", 1)
    bucket, stored = path.split("/")[0], scheme in SCHEMES
    if stored and (not bucket or glob.has_magic(bucket)):
        raise InputError(f"{url}: expected {scheme}://BUCKET/..., with the name of one bucket")
    try:
        if scheme == "az" or (scheme == "gs" and os.environ.get("STORAGE_EMULATOR_HOST")):
            return fs.PyFileSystem(fs.FSSpecHandler(fsspec_store(url))), path.rstrip("/")
        if scheme == "s3" and (options := arrow_s3()):
            return fs.S3FileSystem(**options), path.rstrip("/")
        if stored:  # of the bucket alone: in a URI `%`, `#` and `?` mean something else than in a key
            return fs.FileSystem.from_uri(f"{scheme}://{bucket}")[0], path.rstrip("/")
        if scheme == "hdfs":
            return cast(tuple[Any, str], fs.FileSystem.from_uri(url))
        from fsspec.core import url_to_fs

        found, path = url_to_fs(url)
    except ImportError as e:
        raise MissingExtraError(f"{url}: a package for this kind of URL is missing: {e}") from e
    except (OSError, ValueError) as e:
        raise InputError(f"{url}: no file system for it: {e}") from e
    return fs.PyFileSystem(fs.FSSpecHandler(found)), path


# Decompress: members one after another, past those that are damaged.


def named_by(magic: Mapping[str, bytes], head: bytes) -> str:
    """The format or compression by a file's first bytes; "" for none of these."""
    return next((name for name, mark in magic.items() if head.startswith(mark)), "")


def blocks(file: SourceFile, size: int = BLOCK) -> Iterator[bytes | RecordError]:
    """The uncompressed bytes of a file, for a file without compression `size` bytes at a time; and what is wrong where
    bytes of a compressed one are missing, between two blocks or at its end.

    Several compressed members or frames, one after another, are read as one stream. A damaged member of gzip, bz2 or xz
    costs itself only: reading goes on at the next one. In other streams, what follows damage is lost.

    Raises:
        InputError: the file cannot be opened or read.
    """
    with open_binary(file.path) as raw:
        try:
            if not file.compression:
                while block := raw.read(size):
                    yield block
                return
            made, maker = 0, _DECODERS.get(file.compression)
            for found in _members(raw, maker, file) if maker else _frames(raw, file):
                made += len(found) if isinstance(found, bytes) else 0
                read = file.bytes if raw.closed else raw.tell()
                if bomb := expands_too_far(file.name, read, made):
                    yield bomb
                    return
                yield found
        except reading_errors() as e:
            raise InputError(f"{file.path}: cannot be read: {first_line(e)}") from e


def read_whole(path: str) -> tuple[bytes, bytes]:
    """(a file's bytes, the same decompressed), for lists, which fit in memory.

    Raises:
        InputError: the file cannot be opened, read or decompressed.
    """
    with open_binary(path) as opened:
        raw = opened.read()
    compression, whole = named_by(MAGIC, raw[:8]), bytearray()
    if not compression:
        return raw, raw
    for block in blocks(SourceFile(path, path, "", compression, len(raw))):
        if isinstance(block, RecordError):
            raise InputError(f"{path}: cannot be decompressed: {block.detail}")
        whole += block
    return raw, bytes(whole)


def _members(raw: BinaryIO, make: Callable[[], Any], file: SourceFile) -> Iterator[bytes | RecordError]:
    """gzip, bz2, xz. `HELD` bytes are kept back until more of their member follow, or its end is good.

    The file is read from its beginning to its end without a step back, which on an object store is a request of its
    own; but after damage the next member is looked for from the beginning of the damaged one, since its decoder may
    have read over it.
    """
    data = b""  # what was read and not decoded
    while True:
        while not (data := data.lstrip(b"\0")):  # zeros between and behind members are padding
            if not (data := raw.read(PIECE)):
                return
        begin, decoder, held, size = raw.tell() - len(data), make(), deque[bytes](), 0
        try:
            while not decoder.eof and (data := data or raw.read(PIECE)):
                piece, data = data[:CHUNK], data[CHUNK:]
                for out in _decompress(decoder, piece):
                    held.append(out)
                    size += len(out)
                    while size - len(held[0]) >= HELD:
                        size -= len(held[0])
                        yield held.popleft()
        except _ERRORS as e:
            end, data = _next_member(raw, begin + 1, file.compression, make), b""
            goes_on = f"the next one begins at byte {end:,}" if end >= 0 else "what follows is lost"
            where = f"in the member that begins at byte {begin:,} ({e}); {goes_on}"
            yield RecordError("corrupt_stream", f"the {file.compression} stream of {file.name} is damaged, {where}")
            if end < 0:
                return
            raw.seek(end)
            continue
        yield from held
        if not decoder.eof:
            yield _truncated(file)
            return
        data = decoder.unused_data + data


def _decompress(decoder: Any, data: bytes) -> Iterator[bytes]:
    """What some bytes of one member become, at most `BLOCK` bytes at a time: a few bytes can become gigabytes."""
    while True:
        out = decoder.decompress(data, BLOCK)
        if out:
            yield out
        data = getattr(decoder, "unconsumed_tail", b"")  # zlib's alone; the others keep it
        if decoder.eof or (len(out) < BLOCK and not data):
            return


def _next_member(raw: BinaryIO, begin: int, compression: str, make: Callable[[], Any]) -> int:
    """Where the next member begins: the bytes of its mark, and `CHUNK` bytes that can be decoded; -1 without one."""
    magic, window, base = MAGIC[compression], b"", begin
    while True:
        raw.seek(base + len(window))
        if not (data := raw.read(CHUNK)):
            return -1
        window += data
        for mark in re.finditer(re.escape(magic), window):
            raw.seek(base + mark.start())
            with suppress(*_ERRORS):
                if make().decompress(raw.read(CHUNK), CHUNK):
                    return base + mark.start()
        rest = window[-len(magic) :]  # a mark may be cut
        base, window = base + len(window) - len(rest), rest


def _frames(raw: BinaryIO, file: SourceFile) -> Iterator[bytes | RecordError]:
    """zstd and lz4, by Arrow, in reads of `HELD` bytes: damage costs the read that it is in."""
    try:
        stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), file.compression)
        while block := stream.read(HELD):
            yield block
    except (OSError, pa.ArrowException) as e:
        found = f"the {file.compression} stream of {file.name} is damaged: {e}; what follows is lost"
        yield _truncated(file) if "runcated" in str(e) else RecordError("corrupt_stream", found)


def _truncated(file: SourceFile) -> RecordError:
    said = f"the {file.compression} stream of {file.name} is truncated: it ends before its end mark"
    return RecordError("truncated_stream", said)


# Cut: into segments that end where records end.


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of one file that holds whole records.

    Its bytes are `data`; for an uncompressed local file the worker reads the range `start:stop` itself. Columnar files
    have `groups` instead.
    """

    file: int
    first_record: int
    records: int
    """How many numbers of records it takes up; in files of lines that is a line each, also a blank one."""
    first_line: int
    start: int
    stop: int
    data: bytes | None = None
    spans: Any = None
    """int64[records, 2] of JSON values: start and stop in the segment's bytes. Of a web archive a list: start, stop,
    and what is wrong with the record or ""."""
    groups: tuple[int, int] | None = None
    """Row groups (Parquet), record batches (Arrow) or slices of a table, half open."""
    failure: RecordError | None = None
    """Why its bytes are one record that cannot be read whole."""

    @property
    def bytes(self) -> int:
        """Uncompressed bytes."""
        return self.stop - self.start


Remaining = Callable[[], int]
"""How many bytes the current unit still takes; below 1: it is full, cut at the next record."""


class SegmentEnd(NamedTuple):
    """Where a segment may end: its bytes, and the records in it (None: as many as lines)."""

    stop: int
    records: int | None = None
    spans: Any = None


FindEnd = Callable[[bytearray, int, bool], SegmentEnd | None]
"""(bytes that begin with a record, wanted bytes, whether the file ends here) -> the first end of a record at or after
the wanted bytes; None if more bytes are needed."""

LINE_BEGIN: Final = re.compile(rb"\n")
MARK_BYTES: Final = 16
"""Bytes that may hold the beginning of a mark which ends in the next block."""


class StreamCutter:
    """Cuts a file, or only its first bytes `head`, that is read once from its beginning to its end.

    `buffer` holds the bytes of the file from `base` on; they begin with record number `record`, line `line`. A byte
    order mark is skipped. A record that is too long, or that damage cuts, is a segment with a failure. Behind a long
    one the next record stands after a match of `begin`; without such a mark the rest of the file is not read. Behind
    damage the next member is taken to begin with a record.
    """

    def __init__(
        self,
        file: SourceFile,
        index: int,
        remaining: Remaining,
        find_end: FindEnd,
        begin: re.Pattern[bytes] | None = None,
        head: bytes | None = None,
    ) -> None:
        self.file, self.index, self.remaining, self.find_end, self.begin = file, index, remaining, find_end, begin
        self.blocks = blocks(file) if head is None else iter([head])
        # workers read parts of plain files themselves: here, or on an object store
        self.keep = bool(file.compression or head) or (is_url(file.path) and file.path.split("://")[0] not in SCHEMES)
        self.buffer, self.base, self.record, self.line = bytearray(), 0, 0, 0
        self.wait = 0
        """The end of a long record is searched again only when so many bytes are there: linear time in all."""
        self.skipping = False
        """Whether the bytes belong to a record that is too long."""

    def run(self) -> Iterator[Segment]:
        """All segments."""
        for block in self.blocks:
            if isinstance(block, RecordError):
                yield from self._whole_records()
                yield self._lost(block, bytes(self.buffer))
                self.skipping = False
                if self.begin is None:
                    return
                continue
            self.buffer += block
            if self.base == 0 and self.buffer.startswith(BOM):
                self._drop(len(BOM))
            yield from self._cut(at_end=False)
            if self.skipping and self.begin is None:
                return
        yield from self._cut(at_end=True)

    def _cut(self, at_end: bool) -> Iterator[Segment]:
        """The segments that the buffer holds whole."""
        if self.skipping:
            self._skip()
        while self.buffer and not self.skipping:
            wanted = self.remaining()
            if not at_end and len(self.buffer) <= max(wanted, self.wait):
                return
            most = max(wanted, 0) + RECORD_BYTES
            if end := self.find_end(self.buffer, max(wanted, 1), at_end):
                yield self._segment(end)
            elif len(self.buffer) <= most:
                self.wait = min(2 * len(self.buffer), most)
                return
            else:
                yield from self._whole_records()
                if len(self.buffer) > RECORD_BYTES:
                    lost = "" if self.begin else "; nothing tells where the next one begins, and the rest is not read"
                    yield self._lost(RecordError("too_long", too_long().detail + lost), b"")
                    self.skipping = True

    def _whole_records(self) -> Iterator[Segment]:
        """Segments of one record each, while the buffer holds any whole one: what goes on behind them is damaged, or
        too long."""
        while self.buffer and not self.skipping and (end := self.find_end(self.buffer, 1, False)):
            yield self._segment(end)

    def _segment(self, end: SegmentEnd) -> Segment:
        array = np.frombuffer(self.buffer, np.uint8, end.stop)  # counts ten times as fast as the buffer itself
        lines = sum(int(np.count_nonzero(array[at : at + PIECE] == 10)) for at in range(0, end.stop, PIECE))
        del array  # the buffer is shortened
        records = lines + (self.buffer[end.stop - 1] != ord("\n")) if end.records is None else end.records
        lines = records if self.file.format == "warc" else lines  # the place in an archive is the record's number
        data = bytes(memoryview(self.buffer)[: end.stop]) if self.keep else None
        made = Segment(self.index, self.record, records, self.line, self.base, self.base + end.stop, data, end.spans)
        self._drop(end.stop, records, lines)
        return made

    def _lost(self, why: RecordError, raw: bytes) -> Segment:
        """The whole buffer as one record that is not read; `raw` is kept of it."""
        stop = self.base + len(raw)
        made = Segment(self.index, self.record, 1, self.line, self.base, stop, raw, failure=why)
        self._drop(len(self.buffer), 1, 1)
        return made

    def _skip(self) -> None:
        """Drop the bytes before the next record, as far as it is in sight."""
        found = self.begin.search(self.buffer) if self.begin else None
        self.skipping = found is None
        self._drop(found.end() if found else max(len(self.buffer) - MARK_BYTES, 0))

    def _drop(self, size: int, records: int = 0, lines: int = 0) -> None:
        """Begin the buffer behind some of its bytes, which are so many records and lines."""
        del self.buffer[:size]
        self.base, self.record, self.line, self.wait = self.base + size, self.record + records, self.line + lines, 0


def line_end(data: bytearray, wanted: int, at_end: bool) -> SegmentEnd | None:
    """A `FindEnd`: the first line end; at the file's end also the last byte."""
    found = data.find(b"\n", wanted - 1)
    stop = found + 1 if found >= 0 else len(data)
    return SegmentEnd(stop) if found >= 0 or at_end else None


def whole_file(data: bytearray, wanted: int, at_end: bool) -> SegmentEnd | None:
    """A `FindEnd`: the file is one record."""
    return SegmentEnd(len(data), 1) if at_end else None
