"""Bytes of a file, uncompressed, block by block, to the last byte that can be had of a broken one."""

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO, Final

import pyarrow as pa

from datakit.errors import InputError
from datakit.read.files import SourceFile, open_binary

BLOCK: Final = 4 << 20
CHUNK: Final = 1 << 18
"""Compressed bytes that are decoded at once."""
MAGIC: Final = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x04\x22\x4d\x18": "lz4",
}


class BrokenStreamError(Exception):
    """A compressed stream that ends early or is damaged, raised after every byte before the damage was given."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def compression_of(head: bytes) -> str:
    """The compression that a file's first bytes name; "" for none."""
    return next((name for magic, name in MAGIC.items() if head.startswith(magic)), "")


def blocks(file: SourceFile, size: int = BLOCK) -> Iterator[bytes]:
    """The uncompressed bytes of a file, those of a plain one `size` at a time. Streams of several members or frames
    are one.

    Raises:
        BrokenStreamError: after the last good byte.
        InputError: the file cannot be opened or read.
    """
    with open_binary(file.path) as raw:
        try:
            if not file.compression:
                while block := raw.read(size):
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
_ERRORS: Final = (zlib.error, lzma.LZMAError, OSError, ValueError)


def _members(raw: BinaryIO, make: Callable[[], Any], file: SourceFile) -> Iterator[bytes]:
    """gzip, bz2 and xz. After an error the stream is read again, byte by byte where it broke, for all before that."""
    fed = done = 0

    def chunks(source: BinaryIO, until: int) -> Iterator[bytes]:
        nonlocal fed
        while data := source.read(CHUNK if fed < until else 1):
            yield data
            fed += len(data)

    try:
        for out in _inflate(chunks(raw, sys.maxsize), make):
            done += len(out)
            yield out
        return
    except _ERRORS as e:
        found, broken_at, fed = str(e), fed, 0
    except EOFError:
        raise _truncated(file) from None
    with open_binary(file.path) as again, suppress(*_ERRORS, EOFError):
        for out in _inflate(chunks(again, broken_at), make):
            if len(out) > done:
                yield out[done:]
            done = max(done - len(out), 0)
    raise _damaged(file, found)


def _inflate(chunks: Iterator[bytes], make: Callable[[], Any]) -> Iterator[bytes]:
    """Members one after another; zeros between and after them are padding.

    Raises:
        EOFError: the last member has no end.
    """
    decoder, fresh = make(), True
    for chunk in chunks:
        data = chunk
        while data := data.lstrip(b"\0") if fresh else data:
            fresh = False
            if out := decoder.decompress(data):
                yield out
            if not decoder.eof:
                break
            data, decoder, fresh = decoder.unused_data, make(), True
    if not fresh:
        raise EOFError


def _truncated(file: SourceFile) -> BrokenStreamError:
    said = f"the {file.compression} stream of {file.name} is truncated: it ends before its end mark"
    return BrokenStreamError("truncated_stream", said)


def _damaged(file: SourceFile, found: str) -> BrokenStreamError:
    return BrokenStreamError("corrupt_stream", f"the {file.compression} stream of {file.name} is damaged: {found}")


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
    raise _damaged(file, found)
