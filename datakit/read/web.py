"""Web pages: WARC and WET archives, HTML files, and HTML in a field of a record; each page becomes a document.

An archive is cut at the borders of its records. In a `.warc.gz` each record is a gzip member, so that a unit is a range
of the file's bytes, and a damaged member costs itself only: the next one is found by its first bytes. A member may hold
several records; they stay in one unit. Other archives are cut in their uncompressed bytes, by the length that each
record states; a record whose length is wrong ends where the next one begins. A page is refused by its bytes, tags and
depth before a tree is built of it. These limits, and not a clock, decide what a page may cost, so that the rows do not
depend on the machine.
"""

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Literal

import numpy as np

from datakit.errors import InputError, MissingExtraError
from datakit.read.extraction import Extraction, ExtractionError, PageTimeoutError
from datakit.read.files import (
    CHUNK,
    BrokenStreamError,
    Remaining,
    Segment,
    SourceFile,
    blocks,
    open_binary,
)
from datakit.read.layouts.record import Fields, MisfitError
from datakit.read.row_builder import Cells, Position, RowBuilder

FORMATS: Final = ("warc", "html")
TITLE: Final = "title"
COLUMNS: Final = ("url", "date", "mime", "title")
"""What is known of a page besides its text."""
HTML: Final = ("text/html", "application/xhtml+xml")
BLOCK: Final = 1 << 20
"""Bytes of pages that are read between two looks at the size of the batch."""
HEADER_BYTES: Final = 1 << 16
"""Bytes of the longest header of a record."""
MOST_REPLACED: Final = 1000
"""One wrong character in so many is replaced; a page with more of them is not in the charset that it names."""

GOOD, DAMAGED, TRUNCATED, TOO_LONG = range(4)
_SAID: Final = {
    DAMAGED: ("corrupt_record", "the record is damaged: its end is not where its header or its compression says"),
    TRUNCATED: ("truncated_record", "the file ends inside of this record"),
    TOO_LONG: ("too_long", "the record is longer than max_record_mb allows"),
}
"""What is wrong with a record whose end was not found -> (reason, detail)."""

_BEGIN: Final = b"WARC/"
_VERSION: Final = re.compile(rb"WARC/[01]\.\d+\r?\n")
_HEADER_END: Final = re.compile(rb"\r?\n\r?\n")
_LENGTH: Final = re.compile(rb"(?i)\ncontent-length:[ \t]*(\d{1,15})[ \t]*\r?\n")
_MEMBER: Final = b"\x1f\x8b\x08"
FED: Final = 1 << 16
"""Compressed bytes that a decoder gets at once: what it leaves of them is copied."""
_FAR: Final = 16
"""Bytes that may hold the beginning of a mark that ends in the next block."""

Spans = np.ndarray[Any, Any]


def check(extractor: str) -> None:
    """See that the packages for web pages are installed.

    Raises:
        MissingExtraError: one of them is missing.
    """
    try:
        import fastwarc.warc  # noqa: F401
        import resiliparse.extract.html2text  # noqa: F401

        if extractor == "trafilatura":
            import trafilatura  # noqa: F401
    except ImportError as e:
        raise MissingExtraError(f"web pages need the package {e.name}: install datakit[web]") from None


def begins_archive(head: bytes) -> bool:
    """Whether a file is a web archive, whatever its name."""
    return _VERSION.match(head) is not None


def check_head(file: SourceFile, head: bytes) -> None:
    """Refuse a file that is no web archive, although its name says so.

    Raises:
        InputError: it is none.
    """
    if file.format == "warc" and head and _BEGIN not in head:
        raise InputError(f"{file.path}: it is no web archive (WARC): it begins with {head[:24]!r}")


# Cut: archives at the borders of their records, where these are found in the bytes.


@dataclass(frozen=True, slots=True)
class _ArchiveRecord:
    """A record of an archive: where it starts and stops, whether it is whole, and its size when uncompressed."""

    start: int
    stop: int
    state: int
    unpacked: int
    raw: bytes | bytearray | memoryview = b""
    records: int = 1
    """Of a gzip member: how many records it holds."""


def cut(file: SourceFile, index: int, remaining: Remaining) -> Iterator[Segment]:
    """Cut an archive between records. `Segment.spans` has for each record its start, its stop and what is wrong.

    Where records are gzip members, it has this for each member, whatever the number of records in it.

    Raises:
        InputError: the file cannot be opened or read.
    """
    members = file.compression == "gzip" and _has_member_for_each_record(file)
    keep = not file.is_local or (bool(file.compression) and not members)
    limit = file.limits.record_bytes
    found, failure = (_members(file, limit) if members else _stream(blocks(file), limit)), None
    spans, data, first, number, unpacked, end = list[tuple[int, int, int]](), bytearray(), 0, 0, 0, 0

    def segment() -> Segment:
        base = spans[0][0]
        array = np.array(spans, np.int64) - np.array([base, base, 0])
        stop, kept = spans[-1][1], bytes(data) if keep else None
        return Segment(index, first, first, base, stop, kept, array, unpacked=unpacked, members=members)

    try:
        for record in found:
            end = record.stop
            if record.state == TOO_LONG:  # its bytes were not kept
                if spans:
                    yield segment()
                why = "too_long", file.limits.too_long(record.stop - record.start)
                yield Segment(index, number, number, record.start, record.start, b"", failure=why)
                first = number = number + 1
                unpacked, spans, data = 0, [], bytearray()
                continue
            spans.append((record.start, record.stop, record.state))
            number, unpacked = number + record.records, unpacked + record.unpacked
            if keep:
                data += record.raw
            if unpacked >= remaining():
                yield segment()
                first, unpacked, spans, data = number, 0, [], bytearray()
    except BrokenStreamError as e:
        failure = e.reason, e.detail
    if spans:
        yield segment()
    if failure:
        yield Segment(index, number, number, end, end, b"", failure=failure)


def _has_member_for_each_record(file: SourceFile) -> bool:
    """Whether the first gzip member of a file ends with its first record; a damaged one says nothing against it."""
    with open_binary(file.path) as opened:
        decoder, out = zlib.decompressobj(wbits=31), bytearray()
        while not decoder.eof and (block := opened.read(CHUNK)):
            try:
                out += decoder.decompress(block, HEADER_BYTES + CHUNK - len(out))
            except zlib.error:
                return True
            header = _HEADER_END.search(out)
            length = _LENGTH.search(out, 0, header.end()) if header else None
            if header and length and len(out) > header.end() + int(length[1]) + 8:
                return False
            if len(out) >= HEADER_BYTES:
                return True
    return True


def _stream(source: Iterator[bytes], limit: int) -> Iterator[_ArchiveRecord]:
    """The records of uncompressed bytes, which `source` gives in blocks of any size.

    Raises:
        BrokenStreamError: a compressed stream is damaged; raised after the last whole record.
    """
    buffer, base, pos, lost, failure, at_end = bytearray(), 0, 0, -1, None, False
    while not at_end or pos < len(buffer):
        step = _next_record(buffer, pos, limit if lost < 0 else -1, at_end) if pos < len(buffer) else None
        if step is None and at_end:
            break
        if step is None:
            if lost >= 0 or len(buffer) - pos > limit + HEADER_BYTES:  # a record that is too long: its bytes go
                lost = base + pos if lost < 0 else lost
                pos = max(pos, len(buffer) - _FAR)
            del buffer[:pos]
            base, pos = base + pos, 0
            try:
                block = next(source, b"")
            except BrokenStreamError as e:
                block, failure = b"", e
            at_end = not block
            buffer += block
            continue
        size, state = step
        if lost >= 0 or state == TOO_LONG:
            yield _ArchiveRecord(base + pos if lost < 0 else lost, base + pos + size, TOO_LONG, 0)
            lost = -1
        else:
            with memoryview(buffer) as view:
                raw = bytes(view[pos : pos + size])
            yield _ArchiveRecord(base + pos, base + pos + size, state, size, raw)
        pos += size
    if failure is not None:
        raise failure


def _next_record(data: bytearray, pos: int, limit: int, at_end: bool) -> tuple[int, int] | None:
    """(bytes, state) of the record at `pos`; None if more bytes are needed.

    A record is good if its header states a length, and after so many bytes and the line ends behind them the next
    record begins, or the file ends. Else it ends where the next line begins that may be the first of a record.
    """
    state = DAMAGED
    if data.startswith(_BEGIN, pos):
        header = _HEADER_END.search(data, pos, pos + HEADER_BYTES)
        if header is None and not at_end and len(data) - pos < HEADER_BYTES:
            return None
        length = _LENGTH.search(data, pos, header.end()) if header else None
        if header and length and int(length[1]) <= limit:
            stop = header.end() + int(length[1])
            while stop < len(data) and data[stop] in b"\r\n":
                stop += 1
            if not at_end and stop + len(_BEGIN) > len(data):
                return None
            if data.startswith(_BEGIN, stop) or stop == len(data):
                return stop - pos, GOOD
            state = TRUNCATED if stop > len(data) else DAMAGED
        elif header is None and at_end:
            state = TRUNCATED
    found = data.find(b"\n" + _BEGIN, pos + 1)
    while found >= 0 and not _VERSION.match(data, found + 1):
        found = data.find(b"\n" + _BEGIN, found + 1)
    if found < 0 and not at_end:
        return None
    size, state = (found + 1 - pos, DAMAGED) if found >= 0 else (len(data) - pos, state)
    return size, TOO_LONG if size > limit + HEADER_BYTES else state


class _Window:
    """A moving part of a file's bytes; all places are counted from the beginning of the file."""

    def __init__(self, opened: BinaryIO) -> None:
        self.opened = opened
        self.data = bytearray()
        self.base = 0

    @property
    def end(self) -> int:
        return self.base + len(self.data)

    def more(self) -> bool:
        """Read another block; False at the end of the file."""
        block = self.opened.read(CHUNK)
        self.data += block
        return bool(block)

    def drop(self, at: int) -> None:
        """Forget the bytes before this place."""
        del self.data[: at - self.base]
        self.base = max(self.base, at)

    def part(self, start: int, stop: int) -> bytes:
        with memoryview(self.data) as view:
            return bytes(view[start - self.base : stop - self.base])


def _members(file: SourceFile, limit: int) -> Iterator[_ArchiveRecord]:
    """The records of an archive whose records are gzip members: places in the compressed file.

    Raises:
        BrokenStreamError: the file grows beyond its limit.
    """
    with open_binary(file.path) as opened:
        window, at, made = _Window(opened), 0, 0
        while True:
            window.drop(at)
            if not window.data and not window.more():
                return
            if padding := len(window.data) - len(window.data.lstrip(b"\0")):  # between and after members
                at += padding
                continue
            stop, unpacked, records, state = _member(window, file, made)
            made += unpacked
            if state != GOOD:
                stop, state = _next_member(window, at, limit, state)
            raw = b"" if file.is_local or state == TOO_LONG else window.part(at, stop)
            yield _ArchiveRecord(at, stop, state, unpacked, raw, records)
            at = stop


def _member(window: _Window, file: SourceFile, before: int) -> tuple[int, int, int, int]:
    """(its end, uncompressed bytes, records, state) of the member that the window begins with.

    A member that is not good counts as one record. `before`: uncompressed bytes of the members before it.

    Raises:
        BrokenStreamError: the file grows beyond its limit.
    """
    limit, decoder, fed, made, records, state = file.limits.record_bytes, _decoder(), window.base, 0, 0, GOOD

    def blocks_of_member() -> Iterator[bytes]:
        nonlocal fed, made, state
        while not decoder.eof:
            if fed == window.end and not window.more():
                state = TRUNCATED
                return
            piece = window.part(fed, min(fed + FED, window.end))
            fed += len(piece)
            for block in _unpacked(decoder, piece):
                made += len(block)
                file.limits.check_expansion(file.name, window.end, before + made)
                if not records and made - len(block) > limit + HEADER_BYTES:
                    state = TOO_LONG
                    return
                yield block

    try:
        for _ in _stream(blocks_of_member(), limit):
            records += 1
    except zlib.error:
        state = DAMAGED
    return fed - len(decoder.unused_data), made, records if state == GOOD else 1, state


def _decoder() -> Any:
    return zlib.decompressobj(wbits=31)


def _unpacked(decoder: Any, piece: bytes) -> Iterator[bytes]:
    """The uncompressed bytes of a piece of a member, in blocks that are not empty."""
    while piece and not decoder.eof:
        if block := decoder.decompress(piece, CHUNK):
            yield block
        piece = decoder.unconsumed_tail


def _next_member(window: _Window, at: int, limit: int, state: int) -> tuple[int, int]:
    """(where the next member begins that holds a record, state) after the member at `at`, whose end is not known."""
    seek = at + 1
    while True:
        found = window.data.find(_MEMBER, seek - window.base)
        if found < 0:
            seek = max(seek, window.end - len(_MEMBER) + 1)
            if seek - at > limit:
                window.drop(seek)
                state = TOO_LONG
            if not window.more():
                return window.end, state
            continue
        found += window.base
        while window.end - found < FED and window.more():
            pass
        try:
            head = zlib.decompressobj(wbits=31).decompress(window.part(found, found + FED), len(_BEGIN))
        except zlib.error:
            head = b""
        if head == _BEGIN:
            return found, DAMAGED if state == TRUNCATED else state
        seek = found + 1


# Read: the pages of a unit.


def read(file: SourceFile, data: bytes, segment: Segment, builder: RowBuilder) -> Iterator[None]:
    """Give the pages of a segment to the builder. Records that are no pages are counted in its notes."""
    pages = builder.pages
    assert pages is not None
    if file.format == "html":
        yield
        if not segment.failure:
            _add(builder, segment.first_record, segment.start, data, lambda: pages.of_file(data, file.path))
        return
    if segment.spans is None:  # a failure without records
        return
    pending, verify = BLOCK, not file.compression
    for number, (start, raw, state) in enumerate(
        _records(data, segment, file.limits.record_bytes), segment.first_record
    ):
        pending += len(raw)
        if pending >= BLOCK:
            pending = 0
            yield

        def fields(
            raw: bytes = raw, state: int = state, name: str = f"{file.path}: record {number + 1}"
        ) -> Fields | str:
            if state != GOOD:
                raise MisfitError(*_SAID[state])
            return pages.of_record(raw, name, verify)

        _add(builder, number, segment.start + start, raw, fields)


def _records(data: bytes, segment: Segment, limit: int) -> Iterator[tuple[int, bytes, int]]:
    """(start in the segment, bytes, state) of each record; records of a good gzip member have its start."""
    assert segment.spans is not None
    for start, stop, state in segment.spans.tolist():
        raw = data[start:stop]
        if segment.members and state == GOOD:
            for record in _stream(_unpacked(_decoder(), raw), limit):
                yield start, bytes(record.raw), record.state
        else:
            yield start, raw, state


def _add(builder: RowBuilder, number: int, offset: int, raw: bytes, fields: Callable[[], Fields | str]) -> None:
    """Add the page that `fields` returns, or count what it says the record is instead; quarantine what it refuses."""
    if builder.last is not None and number >= builder.last:
        return
    try:
        found = fields()
        if isinstance(found, str):
            builder.notes[found] = builder.notes.get(found, 0) + 1
        else:
            builder.add(found, number, Cells(found), len(found["text"]))
    except MisfitError as e:
        builder.quarantine(Position(number, number, offset), e, raw)


@dataclass(frozen=True, slots=True)
class PageLimits:
    """What a page may cost; see `IngestConfig`."""

    bytes: int = 8 << 20
    tags: int = 200_000
    depth: int = 512
    timeout_s: float = 120
    on_timeout: Literal["error", "quarantine"] = "error"


class Pages:
    """Makes documents of pages, with one extractor.

    `resiliparse`: the main content, as in Bevendorff et al. (2018). `trafilatura`: Barbaresi (2021), with its setting
    for precision, without comments. Both look at one page only: nothing is remembered from page to page.
    """

    def __init__(self, extractor: str, limits: PageLimits | None = None) -> None:
        check(extractor)
        self.limits = limits or PageLimits()
        self.extraction = Extraction(extractor)

    def of_record(self, raw: bytes, name: str, verify: bool) -> Fields | str:
        """The fields of the page in a record of an archive, or the note that counts a record of another kind.

        `verify`: compare the digest that the record states, where no compression has a checksum of its own.

        Raises:
            MisfitError: the record is damaged, or its page is refused.
        """
        from fastwarc.warc import WarcRecord, WarcRecordType

        try:
            record = WarcRecord.from_bytes(raw)
            if verify and "WARC-Block-Digest" in record.headers and not record.verify_block_digest(consume=False):
                raise MisfitError("digest_mismatch", "the bytes of the record are not those of its WARC-Block-Digest")
            kind, headers = record.record_type, record.headers
            if kind in (WarcRecordType.unknown, WarcRecordType.no_type):
                raise MisfitError("unknown_type", f"its WARC-Type is {headers.get('WARC-Type')!r}")
            if kind not in (WarcRecordType.response, WarcRecordType.resource, WarcRecordType.conversion):
                return "archive_records"
            mime, charset = str(headers.get("Content-Type") or ""), None
            if kind == WarcRecordType.response:
                if "http" not in mime.lower():
                    return "other_mimes"
                record.parse_http(auto_decode="all")
                if record.http_headers is None:
                    raise MisfitError("corrupt_record", "its HTTP headers cannot be read")
                if record.http_headers.status_code != 200:
                    return "answers_not_ok"
                mime, charset = record.http_headers.get("Content-Type") or "", record.http_charset
            body = record.reader.read()
        except (OSError, ValueError, EOFError) as e:
            raise MisfitError("corrupt_record", f"the record cannot be read: {e}") from None
        plain = mime.split(";")[0].strip().lower() or _mime_of(body)
        if plain not in (*HTML, "text/plain"):
            return "other_mimes"
        url = (headers.get("WARC-Target-URI") or "").strip("<>")
        if plain in HTML:
            text, title = self.of_html(body, f"{name}, {url}", charset)
        else:
            text, title = self._plain(body, charset), None
        own = (headers.get("WARC-Record-ID") or "").strip("<>")
        date = headers.get("WARC-Date")
        return {"text": text, "id": own, "url": url or None, "date": date, "mime": plain, "title": title}

    def of_file(self, raw: bytes, name: str) -> Fields:
        """The fields of an HTML file; its URL is the one that the page calls canonical.

        Raises:
            MisfitError: the page is refused.
        """
        text, title = self.of_html(raw, name)
        found = _CANONICAL.search(raw)
        url = found[1].decode(errors="replace") if found else None
        return {"text": text, "url": url, "date": None, "mime": HTML[0], "title": title}

    def of_html(self, page: bytes | str, name: str, charset: str | None = None) -> tuple[str, str | None]:
        """(text, title) of a page; the title is None without one. `name` is for messages.

        Raises:
            MisfitError: the page is beyond a limit, in no charset that it can be read in, or has no text.
            InputError: it took too long, and that is an error.
        """
        raw = page.encode() if isinstance(page, str) else page
        self._check(raw)
        html = page if isinstance(page, str) else decoded_page(page, charset)
        try:
            text, title = self.extraction.text_of(html, self.limits.timeout_s)
        except ExtractionError as e:
            raise MisfitError("extraction_failed", str(e)) from None
        except PageTimeoutError:
            said = f"the page took more than the {self.limits.timeout_s:g} s that page_timeout_s allows"
            if self.limits.on_timeout == "quarantine":
                raise MisfitError("page_timeout", said) from None
            raise InputError(
                f"{name}: {said}. Lower max_page_tags or max_page_mb, which decide alike on every machine; or set "
                "on_timeout to quarantine, and the rows depend on the speed of the machine"
            ) from None
        if not text or not text.strip():
            raise MisfitError("no_text", "the extractor finds no text in the page")
        return text, title

    def _plain(self, raw: bytes, charset: str | None) -> str:
        self._check_bytes(len(raw))
        text = decoded_page(raw, charset or "utf-8")
        if not text.strip():
            raise MisfitError("no_text", "the record has no text")
        if "\0" in text:
            raise MisfitError("nul_bytes", "the record holds NUL: this is no plain text")
        return text

    def _check_bytes(self, size: int) -> None:
        if size > self.limits.bytes:
            raise MisfitError(
                "page_too_long", f"the page has {size:,} bytes, and max_page_mb allows {self.limits.bytes >> 20} MiB"
            )

    def _check(self, raw: bytes) -> None:
        """Refuse a page by its bytes, its tags and their depth."""
        from datakit.read import _kernels_web as kernels

        self._check_bytes(len(raw))
        data = np.frombuffer(raw, np.uint8)
        tags, depth = kernels.tags_and_depth(data, _VOID, _RAW, _FOREIGN, self.limits.depth)
        if depth > self.limits.depth:
            raise MisfitError(
                "page_too_deep", f"its elements are nested more than max_page_depth ({self.limits.depth})"
            )
        if tags > self.limits.tags:
            raise MisfitError(
                "page_too_many_tags", f"it has {tags:,} tags, more than max_page_tags ({self.limits.tags:,})"
            )


def _names(words: str) -> Spans:
    return np.array([int.from_bytes(w.encode()[:8].lower(), "big") for w in words.split()], np.uint64)


_VOID: Final = _names(
    "area base br col embed hr img input link meta param source track wbr "
    "p li dt dd tr td th thead tbody tfoot colgroup option optgroup rb rp rt rtc html head body"
)
_RAW: Final = _names("script style textarea title xmp iframe noembed noframes")
_FOREIGN: Final = _names("svg math foreignobject")
_CANONICAL: Final = re.compile(
    rb"""(?i)<link\s[^<>]*?rel=["']?canonical["']?\s[^<>]*?href=["']?(https?://[^\s"'<>]{1,2000})"""
)


# Charsets.


def _mime_of(body: bytes) -> str:
    """The type of a body whose headers name none: HTML if it begins like it."""
    return HTML[0] if re.match(rb"(?i)\s*<(!doctype html|html|head|body)\b", body[:1024]) else ""


def decoded_page(raw: bytes, charset: str | None = None) -> str:
    """The characters of a page in the first charset that it can be read in without an error.

    These are tried: its byte order mark, UTF-8, `charset` (of the HTTP header), that of a `meta` tag, and the one that
    its bytes look like. UTF-8 comes before what the page says, since other charsets are hardly ever valid UTF-8.
    If all fail, single wrong characters are replaced in the charset that the page names.

    Raises:
        MisfitError: the page has many bytes that are no characters in the charset that it names.
    """
    from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

    for mark, name in _MARKS:
        if raw.startswith(mark):
            return _replaced(raw[len(mark) :], name)
    try:
        if b"\x1b$" not in raw:  # ISO-2022-JP has 7-bit bytes only
            return raw.decode()
    except UnicodeDecodeError:
        pass
    named = [map_encoding_to_html5(charset, fallback_utf8=False)] if charset else []
    if meta := _META.search(raw, 0, 4096):
        named.append(map_encoding_to_html5(meta[1].decode("ascii"), fallback_utf8=False))
    looks = detect_encoding(raw, from_html_meta=False)
    for wanted in [*named, looks]:
        try:
            if wanted and not (wanted.startswith("utf-16") and raw.count(0) == 0):
                return raw.decode(_WIDER.get(wanted, wanted))
        except (UnicodeDecodeError, LookupError):
            continue
    best = next((n for n in (*named, looks) if n), None) or "utf-8"
    return _replaced(raw, _WIDER.get(best, best))


_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_META: Final = re.compile(rb"""(?i)<meta[^>]*?charset\s*=\s*["']?\s*([a-z0-9_:.-]{2,40})""")
_WIDER: Final = {"gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949"}
"""Charset -> the larger one that the web means by its name (WHATWG Encoding)."""


def _replaced(raw: bytes, name: str) -> str:
    text = raw.decode(name, errors="replace")
    wrong = text.count("\ufffd")
    if wrong > max(1, len(text) // MOST_REPLACED):
        raise MisfitError("wrong_charset", f"{wrong:,} of {len(text):,} characters are not {name}")
    return text
