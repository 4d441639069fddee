"""Bytes of a file, uncompressed, block by block, to the last byte that can be had of a broken one."""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO, Final, Protocol

import pyarrow as pa

from datakit.errors import InputError
from datakit.read.files import SourceFile, open_binary

BLOCK: Final = 4 << 20
MAGIC: Final = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x04\x22\x4d\x18": "lz4",
}


class BrokenStream(Exception):
    """A compressed stream that ends early or is damaged, raised after every byte before the damage was given."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class _Decompressor(Protocol):
    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int = ...) -> bytes: ...


def compression_of(head: bytes) -> str:
    """The compression that a file's first bytes name; "" for none."""
    return next((name for magic, name in MAGIC.items() if head.startswith(magic)), "")


def blocks(file: SourceFile) -> Iterator[bytes]:
    """The uncompressed bytes of a file. Streams of several members or frames are one.

    Raises:
        BrokenStream: after the last good byte.
        InputError: the file cannot be opened or read.
    """
    with open_binary(file.path) as raw:
        try:
            if not file.compression:
                while block := raw.read(BLOCK):
                    yield block
            elif file.compression in _MAKERS:
                yield from _members(raw, _MAKERS[file.compression], file)
            else:
                yield from _frames(raw, file)
        except OSError as e:
            raise InputError(f"{file.path}: cannot be read: {e}") from e


_MAKERS: Final[dict[str, Callable[[], Any]]] = {
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "bz2": bz2.BZ2Decompressor,
    "xz": lzma.LZMADecompressor,
}


def _members(raw: BinaryIO, make: Callable[[], Any], file: SourceFile) -> Iterator[bytes]:
    """gzip, bz2 and xz: members one after another; zeros between or after them are padding."""
    decoder, pending, fresh = make(), b"", True
    while True:
        data = pending or raw.read(1 << 18)
        pending = b""
        if fresh:
            data = data.lstrip(b"\0") or (raw.read(1 << 18).lstrip(b"\0") if data else b"")
        if not data:
            if not fresh:
                raise _truncated(file)
            return
        fresh = False
        try:
            out = decoder.decompress(data)
        except (zlib.error, OSError, lzma.LZMAError, EOFError) as e:
            yield from _salvage(make, decoder, data)
            raise BrokenStream("corrupt_stream", f"{file.name}: the {file.compression} data is damaged: {e}") from None
        if out:
            yield out
        if decoder.eof:
            pending, decoder, fresh = decoder.unused_data, make(), True


def _salvage(make: Callable[[], Any], decoder: Any, data: bytes) -> Iterator[bytes]:
    """Nothing by default: what a decoder gave before it failed on `data` was given already."""
    return iter(())


def _truncated(file: SourceFile) -> BrokenStream:
    said = f"{file.name}: the {file.compression} stream is truncated: it ends before its end mark"
    return BrokenStream("truncated_stream", said)


def _frames(raw: BinaryIO, file: SourceFile) -> Iterator[bytes]:
    """zstd and lz4 through Arrow. On an error the stream is read again in small steps, up to the last good byte."""
    codec, done = file.compression, 0
    try:
        stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), codec)
        while block := stream.read(BLOCK):
            done += len(block)
            yield block
        return
    except (OSError, pa.ArrowException) as e:
        found = str(e)
    with open_binary(file.path) as again:
        stream = pa.CompressedInputStream(pa.PythonFile(again, mode="r"), codec)
        left = done
        while left:
            left -= len(stream.read(min(left, BLOCK)))
        rest = bytearray()
        with suppress(OSError, pa.ArrowException):
            while byte := stream.read(1):
                rest += byte
    if rest:
        yield bytes(rest)
    if "runcated" in found:
        raise _truncated(file)
    raise BrokenStream("corrupt_stream", f"{file.name}: the {codec} data is damaged: {found}")
