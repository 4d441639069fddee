"""Web pages: WARC and WET archives and HTML files; each page becomes a document.

An archive is cut at the borders of its records, by the length that each record states; a record whose length is wrong
ends where the next one begins. In a `.warc.gz` each record is a gzip member, and a damaged one costs itself only (see
`streams.blocks`). A page is refused by its bytes, tags and depth. These limits, and not a clock, decide what a page may
cost, so that the rows do not depend on the machine.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Final

import numpy as np

from datakit.errors import InputError, MissingExtraError
from datakit.read.extract import TIMEOUT, Extraction, Page
from datakit.read.record import Fields, Record, parsed
from datakit.read.streams import RECORD_BYTES, RecordError, Segment, SegmentEnd, SourceFile

FORMATS: Final = ("warc", "html")
COLUMNS: Final = ("url", "date", "mime", "title")
"""What is known of a page besides its text."""
HTML: Final = ("text/html", "application/xhtml+xml")
MAX_BYTES: Final = 8 << 20
MAX_TAGS: Final = 100_000
MAX_DEPTH: Final = 512
"""What a page may have: bytes, start tags, elements inside of one another."""
HEADER_BYTES: Final = 1 << 16
"""Bytes of the longest header of a record."""
MAX_REPLACED: Final = 1000
"""One wrong character in so many is replaced; a page with more of them is not in the charset that it names."""

DAMAGED, TRUNCATED = "corrupt_record", "truncated_record"
_SAID: Final = {
    DAMAGED: "the record is damaged: its end is not where its header says",
    TRUNCATED: "the file ends inside of this record",
}
"""What is wrong with a record whose end was not found: reason -> detail."""

BEGIN: Final = b"WARC/"
VERSION: Final = re.compile(rb"WARC/[01]\.\d+\r?\n")
"""How a web archive begins, whatever its name."""
RECORD_BEGIN: Final = re.compile(rb"\n(?=WARC/[01]\.\d+\r?\n)")
_HEADER_END: Final = re.compile(rb"\r?\n\r?\n")
_LENGTH: Final = re.compile(rb"(?i)\ncontent-length:[ \t]*(\d{1,15})[ \t]*\r?\n")


def check(extractor: str, path: str = "web pages") -> None:
    """See that the packages are installed that read the file `path`, which has web pages.

    Raises:
        MissingExtraError: one of them is missing.
    """
    try:
        import fastwarc.warc  # noqa: F401
        import resiliparse.extract.html2text  # noqa: F401

        if extractor == "trafilatura":
            import trafilatura  # noqa: F401
    except ImportError as e:
        why = f"HTML and WARC need the package {e.name}: pip install 'datakit[web]', or leave such files out"
        raise MissingExtraError(f"{path}: {why}") from None


# Cut: archives at the borders of their records.


def records_end(data: bytearray, wanted: int, at_end: bool) -> SegmentEnd | None:
    """A `FindEnd`. `Segment.spans` has for each record its start, its stop and what is wrong."""
    spans, pos = list[tuple[int, int, str]](), 0
    while pos < len(data) and pos < wanted:
        found = _next_record(data, pos, at_end)
        if found is None:
            return None
        spans.append((pos, pos + found[0], found[1]))
        pos += found[0]
    if pos < wanted and not at_end:
        return None
    return SegmentEnd(pos, len(spans), spans)


def _next_record(data: bytearray, pos: int, at_end: bool) -> tuple[int, str] | None:
    """(bytes of the record at `pos`, what is wrong with it or ""); None if more bytes are needed.

    A record is good if its header states a length, and after so many bytes and the line ends behind them the next
    record begins, or the bytes end. Else it ends where the next line begins that may be the first of a record.
    """
    wrong = DAMAGED
    if data.startswith(BEGIN, pos):
        header = _HEADER_END.search(data, pos, pos + HEADER_BYTES)
        if header is None and not at_end and len(data) - pos < HEADER_BYTES:
            return None
        length = _LENGTH.search(data, pos, header.end()) if header else None
        if header and length and int(length[1]) <= RECORD_BYTES:
            body_end = stop = header.end() + int(length[1])
            while stop < len(data) and data[stop] in b"\r\n":
                stop += 1
            whole = stop == len(data) and data.endswith(b"\r\n\r\n", body_end)  # as the standard has it
            if not at_end and not whole and stop + len(BEGIN) > len(data):
                return None
            if data.startswith(BEGIN, stop) or stop == len(data):
                return stop - pos, ""
            wrong = TRUNCATED if stop > len(data) else DAMAGED
        elif header is None and at_end:
            wrong = TRUNCATED
    if found := RECORD_BEGIN.search(data, pos + 1):
        return found.end() - pos, DAMAGED
    return (len(data) - pos, wrong) if at_end else None


# Read: the pages of a unit.


def read(file: SourceFile, data: bytes, segment: Segment, pages: "Pages") -> Iterator[Record]:
    """The pages of a segment. Records that are no pages are counted."""
    for number, (start, stop, wrong) in enumerate(segment.spans or [(0, len(data), "")], segment.first_record):
        parse = partial(_page, file, number, wrong, pages)
        yield parsed(data[start:stop], parse, number, number, segment.start + start)


def _page(file: SourceFile, number: int, wrong: str, pages: "Pages", raw: bytes) -> Fields | str:
    if file.format == "html":  # its URL is the one that the page calls canonical
        page = pages.of_html(raw, file.path)
        return {"text": page.text, "url": page.url, "date": None, "mime": HTML[0], "title": page.title}
    if wrong:
        raise RecordError(wrong, _SAID[wrong])
    return pages.of_record(raw, f"{file.path}: record {number + 1}", verify=not file.compression)


class Pages:
    """Makes documents of pages, with one extractor.

    `resiliparse`: the main content, as in Bevendorff et al. (2018). `trafilatura`: Barbaresi (2021), with its setting
    for precision, without comments. Both look at one page only: nothing is remembered from page to page.
    """

    def __init__(self, extractor: str, timeout_s: float = 120, on_timeout: str = "error") -> None:
        check(extractor)
        self.timeout_s, self.on_timeout = timeout_s, on_timeout
        self.extraction = Extraction(extractor)

    def of_record(self, raw: bytes, name: str, verify: bool) -> Fields | str:
        """The fields of the page in a record of an archive, or the note that counts a record of another kind.

        `verify`: compare the digest that the record states, where no compression has a checksum of its own.

        Raises:
            RecordError: the record is damaged, or its page is refused.
        """
        from fastwarc.warc import WarcRecord, WarcRecordType

        try:
            record = WarcRecord.from_bytes(raw)
            if verify and "WARC-Block-Digest" in record.headers and not record.verify_block_digest(consume=False):
                raise RecordError("digest_mismatch", "the bytes of the record are not those of its WARC-Block-Digest")
            kind, headers = record.record_type, record.headers
            if kind in (WarcRecordType.unknown, WarcRecordType.no_type):
                raise RecordError("unknown_type", f"its WARC-Type is {headers.get('WARC-Type')!r}")
            if kind not in (WarcRecordType.response, WarcRecordType.resource, WarcRecordType.conversion):
                return "archive_records"
            mime, charset = str(headers.get("Content-Type") or ""), None
            if kind == WarcRecordType.response:
                if "http" not in mime.lower():
                    return "other_mimes"
                record.parse_http(auto_decode="all")
                head = record.http_headers
                if head is not None and head.status_code != 200:
                    return "answers_not_ok"
                if head is None or not head.asdict():  # the parser finds none in lines that end without a CR
                    raise RecordError("corrupt_record", "its HTTP headers cannot be read")
                mime, charset = head.get("Content-Type") or "", record.http_charset
            body = record.reader.read()
        except (OSError, ValueError, EOFError) as e:
            raise RecordError("corrupt_record", f"the record cannot be read: {e}") from None
        plain = mime.split(";")[0].strip().lower() or _mime_of(body)
        if plain not in (*HTML, "text/plain"):
            return "other_mimes"
        url = (headers.get("WARC-Target-URI") or "").strip("<>")
        if plain in HTML:
            text, title, _ = self.of_html(body, f"{name}, {url}", charset)
        else:
            text, title = self._plain(body, charset), None
        own = (headers.get("WARC-Record-ID") or "").strip("<>")
        date = headers.get("WARC-Date")
        return {"text": text, "id": own, "url": url or None, "date": date, "mime": plain, "title": title}

    def of_html(self, html: bytes, name: str, charset: str | None = None) -> Page:
        """What is taken from a page. `name` is for messages.

        Raises:
            RecordError: the page is beyond a limit, in no charset that it can be read in, or has no text.
            InputError: it took too long, and that is an error.
        """
        looks_deep, text = self._check(html), decoded_page(html, charset)
        page, reason, failed = self.extraction.page(text, self.timeout_s, MAX_DEPTH if looks_deep else 0)
        if reason == TIMEOUT and self.on_timeout == "error":
            raise InputError(
                f"{name}: {failed}. Raise it; or set on_timeout to quarantine, and the rows depend on the speed of the "
                "machine"
            )
        if reason:
            raise RecordError(reason, failed)
        if not page.text.strip():
            raise RecordError("no_text", "the extractor finds no text in the page")
        return page

    def _plain(self, raw: bytes, charset: str | None) -> str:
        self._check_bytes(len(raw))
        text = decoded_page(raw, charset or "utf-8")
        if not text.strip():
            raise RecordError("no_text", "the record has no text")
        if "\0" in text:
            raise RecordError("nul_bytes", "the record holds NUL: this is no plain text")
        return text

    def _check_bytes(self, size: int) -> None:
        if size > MAX_BYTES:
            raise RecordError("page_too_long", f"the page has {size:,} bytes, more than {MAX_BYTES >> 20} MiB")

    def _check(self, raw: bytes) -> bool:
        """Refuse a page by its bytes and its tags; whether its tree may be too deep.

        It is not where fewer start tags than that wait for an end tag at any place: most pages' trees need no look.
        """
        self._check_bytes(len(raw))
        data = np.frombuffer(raw + b" ", np.uint8)
        after = data[np.flatnonzero(data[:-1] == ord("<")) + 1]
        letters = ((after | 32) >= ord("a")) & ((after | 32) <= ord("z"))
        if (tags := int(np.count_nonzero(letters))) > MAX_TAGS:
            raise RecordError("page_too_many_tags", f"it has {tags:,} tags, more than {MAX_TAGS:,}")
        waiting = np.cumsum(letters.astype(np.int64) - (after == ord("/")))
        return bool(len(waiting)) and int(waiting.max()) > MAX_DEPTH


# Charsets.


def _mime_of(body: bytes) -> str:
    """The type of a body whose headers name none: HTML if it begins like it."""
    return HTML[0] if re.match(rb"(?i)\s*<(!doctype html|html|head|body)\b", body[:1024]) else ""


def decoded_page(raw: bytes, charset: str | None = None) -> str:
    """The characters of a page in the charset that it names: by its byte order mark, by being UTF-8, by `charset` (of
    the HTTP header), or by a `meta` tag or the XML declaration; the first of these that can be read without an error.

    UTF-8 comes before what the page says, since other charsets are hardly ever valid UTF-8. If all fail, single wrong
    characters are replaced in the first charset that is named, or in UTF-8.

    Raises:
        RecordError: the page has many bytes that are no characters in that charset.
    """
    from resiliparse.parse.encoding import map_encoding_to_html5

    for mark, name in _MARKS:
        if raw.startswith(mark):
            return _replaced(raw[len(mark) :], name)
    meta = _META.search(raw, 0, 4096)
    names = [name.strip("\"'") for name in (charset, meta and meta[1].decode()) if name]
    said = [map_encoding_to_html5(name, fallback_utf8=False) for name in names]
    # ISO-2022-JP has 7-bit bytes only, and UTF-16 without its mark is none
    named = [_WIDER.get(name, name) for name in said if name and not name.startswith("utf-16")]
    for name in ["utf-8"] * (b"\x1b$" not in raw) + named:
        with suppress(UnicodeDecodeError, LookupError):
            return raw.decode(name)
    return _replaced(raw, (*named, "utf-8")[0])


_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_META: Final = re.compile(rb"""(?i)<(?:meta[^>]*?charset|\?xml[^>]*?encoding)\s*=\s*["']?\s*([a-z0-9_:.-]{2,40})""")
_WIDER: Final = {"gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949"}
"""Charset -> the larger one that the web means by its name (WHATWG Encoding)."""


def _replaced(raw: bytes, name: str) -> str:
    text = raw.decode(name, errors="replace")
    wrong = text.count("\ufffd")
    if wrong > max(1, len(text) // MAX_REPLACED):
        raise RecordError("wrong_charset", f"{wrong:,} of {len(text):,} characters are not {name}")
    return text
