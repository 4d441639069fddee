"""Web pages: archives, HTML files and HTML in a field, with damage, limits and charsets."""

import gc
import gzip
import io
import random
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from datakit.errors import InputError, MissingExtraError
from datakit.read import extract, web
from datakit.read.stage import Ingest, IngestConfig
from datakit.read.streams import RecordError

pytest.importorskip("fastwarc")
pytest.importorskip("resiliparse")

from fastwarc.stream_io import GzipWriter
from fastwarc.warc import WarcRecord, WarcRecordType

from tests.read.conftest import limit_records

WORDS = ("harbour", "railway", "council", "merchant", "winter", "grain", "wall", "town", "flood")


def page(n, repeat=1):
    rng = random.Random(n)
    said = " ".join(rng.choice(WORDS) for _ in range(60)) * repeat
    return (
        f"<!doctype html><html><head><title>Page {n}</title><script>var a = '<div>';</script></head><body>"
        f"<nav><a href=/>Home</a></nav><main><h1>Report {n}</h1><p>{said}.</p><p>The end of {n}.</p></main>"
    )


def record(kind, body, n, mime=None):
    made, out = WarcRecord(), io.BytesIO()
    made.init_headers(record_type=kind, record_urn=f"uuid:00000000-0000-4000-8000-{n:012d}".encode())
    made.headers["WARC-Target-URI"] = f"https://example.org/{n}"
    made.headers["WARC-Date"] = f"2024-05-01T00:00:{n % 60:02d}Z"
    if mime:
        made.headers["Content-Type"] = mime
    made.set_bytes_content(body)
    made.write(out, checksum_data=True)
    return out.getvalue()


ANSWER = (WarcRecordType.response, "application/http; msgtype=response")


def response(html, n, header="text/html; charset=utf-8", status="200 OK"):
    body = html.encode() if isinstance(html, str) else html
    http = f"HTTP/1.1 {status}\r\nContent-Type: {header}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    return record(ANSWER[0], http + body, n, ANSWER[1])


def archive(count=40, repeat=1):
    """The records of a crawl: for each page a request, the answer and metadata."""
    made = [record(WarcRecordType.warcinfo, b"software: test\r\n", 0, "application/warc-fields")]
    for n in range(1, count + 1):
        made += [
            record(WarcRecordType.request, b"GET / HTTP/1.1\r\n\r\n", 3 * n, "application/http; msgtype=request"),
            response(page(n, repeat), 3 * n + 1),
            record(WarcRecordType.metadata, b"a: b\r\n", 3 * n + 2, "application/warc-fields"),
        ]
    return made


def members(records):
    return b"".join(gzip.compress(r, mtime=0) for r in records)


def kept(found):
    return [(r["id"], r["text"], r["url"], r["date"], r["mime"], r["title"]) for r in found.rows]


@pytest.fixture
def typed(read_bytes):
    return lambda data, name, **config: read_bytes(data, name, **{"columns": "typed"} | config)


@pytest.fixture
def small_records(monkeypatch):
    """Records of at most 1 MiB."""
    limit_records(monkeypatch)


def test_pages_of_an_archive_are_documents_with_their_columns(typed):
    found = typed(members(archive(3)), "crawl.warc.gz")
    assert [r["url"] for r in found.rows] == [f"https://example.org/{3 * n + 1}" for n in (1, 2, 3)]
    first = found.rows[0]
    assert first["id"] == "urn:uuid:00000000-0000-4000-8000-000000000004"
    assert (first["title"], first["mime"], first["date"]) == ("Page 1", "text/html", "2024-05-01T00:00:04Z")
    assert first["text"].startswith("Report 1") and first["text"].rstrip().endswith("The end of 1.")
    assert "var a" not in first["text"]
    assert [r["row_key"] for r in found.rows] == [2, 5, 8]  # records count from the first of the file
    assert found.notes["archive_records"] == 7 and found.bad == []


def test_how_an_archive_is_compressed_and_cut_does_not_change_its_pages(typed):
    records = archive(40, repeat=120)
    plain, out = b"".join(records), io.BytesIO()
    wanted = typed(plain, "a.warc")
    assert len(wanted.rows) == 40 and wanted.units == 1
    with GzipWriter(out) as writer:
        writer.write(plain)
    rng, mixed, at = random.Random(8), records[:1], 1  # members of several records, and an empty one
    while at < len(records):
        mixed.append(b"".join(records[at : (to := at + rng.randrange(1, 9))]))
        at = to
    mixed.insert(3, b"")
    forms = [plain, members(records), gzip.compress(plain, mtime=0), pa.compress(plain, "zstd", asbytes=True),
             out.getvalue(), members(records) + bytes(512), members(mixed)]  # fmt: skip
    for number, data in enumerate(forms):
        found = typed(data, "a.warc" if number % 2 else "a.bin", shard_mb=1)
        assert kept(found) == kept(wanted) and found.units > 1, number
        assert [r["row_key"] for r in found.rows] == [r["row_key"] for r in wanted.rows], number
        assert (found.notes, found.bad) == (wanted.notes, []), number
    first = len(records[0])  # it may end where the next one is not in sight
    ends = [web.records_end(bytearray(plain[: first + more]), 1, False) for more in range(-3, 6)]
    assert [end and end.stop for end in ends] == [None] * 3 + [first] + [None] * 4 + [first]


def test_other_types_and_other_answers_are_counted_and_no_rows(typed):
    records = [
        response(b"\x89PNG", 1, header="image/png"),
        response(page(2), 2, status="404 Not Found"),
        response(page(3), 3, header="application/xhtml+xml"),
        record(WarcRecordType.resource, page(4).encode(), 4, "text/html"),
        record(WarcRecordType.revisit, b"", 5),
        record(WarcRecordType.conversion, "Grüße.\n第二行。\n".encode(), 7, "text/plain"),
        record(ANSWER[0], b"HTTP/1.1 200 OK\nContent-Type: text/html\n\n" + page(8).encode(), 8, ANSWER[1]),  # no CR
    ]
    found = typed(members(records), "crawl.warc.wet.gz")
    assert [r["url"][-1] for r in found.rows] == ["3", "4", "7"] and found.reasons == ["corrupt_record"]
    assert (found.rows[2]["text"], found.rows[2]["mime"]) == ("Grüße.\n第二行。\n", "text/plain")
    assert dict(found.notes) == {"other_mimes": 1, "answers_not_ok": 1, "archive_records": 1}


def test_encoded_bodies_are_decoded(typed):
    html = page(1).encode()
    packed = gzip.compress(html)
    http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked"
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in (packed[:50], packed[50:])) + b"0\r\n\r\n"
    found = typed(record(ANSWER[0], http + b"\r\n\r\n" + chunks, 1, ANSWER[1]), "a.warc")
    assert found.rows[0]["text"] == typed(response(html, 1), "b.warc").rows[0]["text"]


# Damage.


@pytest.mark.parametrize("name", ["a.warc.gz", "a.warc"])
def test_a_cut_archive_loses_its_last_record_only(typed, name):
    records = archive(10)
    data = members(records) if name.endswith("gz") else b"".join(records)
    whole = kept(typed(data, name))
    size = len(members(records[-2:]) if name.endswith("gz") else b"".join(records[-2:]))
    found = typed(data[: len(data) - size - 30], name)  # inside of the last page's metadata, request or answer
    assert kept(found) == whole[:9]
    assert found.reasons in ([["truncated_record"], ["corrupt_record"]] if name == "a.warc" else [["truncated_stream"]])
    plain = b"".join(records)
    assert found.bad[0]["raw"] and plain[found.bad[0]["byte_offset"] :].startswith(found.bad[0]["raw"])


def test_a_wrong_or_long_record_costs_no_other_in_its_member(typed, small_records):
    records = archive(6)
    wanted = kept(typed(members(records), "a.warc.gz"))
    records[5] = records[5].replace(b"Content-Length: ", b"Content-Length: 9", 1)
    records[11] = response(b"<html>" + b"\n".join(random.Random(1).randbytes(1000) for _ in range(2500)), 99)
    data = members(records[:2]) + gzip.compress(b"".join(records[2:]), mtime=0)
    found = typed(data, "a.warc.gz")
    assert kept(found) == [row for at, row in enumerate(wanted) if at not in (1, 3)]
    assert found.reasons == ["corrupt_record", "too_long"]
    assert found.bad[0]["raw"] == records[5]
    assert [r["row_key"] for r in found.rows] == [2, 8, 14, 17]
    packed = gzip.compress(records[1] + records[2])  # damage in the compressed bytes costs the member
    broken = packed[:-6] + bytes([packed[-6] ^ 1]) + packed[-5:]
    lost = typed(members(records[:1]) + broken + members(records[3:5]), "b.warc.gz")
    assert (lost.texts, lost.reasons) == ([], ["corrupt_stream"])
    assert f"begins at byte {len(members(records[:1]))}" in lost.bad[0]["detail"]


@pytest.mark.parametrize("name", ["a.warc.gz", "a.warc"])
def test_a_flipped_byte_costs_one_record_at_most(typed, name):
    records = archive(12)
    data = members(records) if name.endswith("gz") else b"".join(records)
    whole = kept(typed(data, name))
    rng = random.Random(5)
    for _ in range(25):
        at = rng.randrange(len(data))
        broken = bytearray(data)
        broken[at] ^= 1 << rng.randrange(8)
        found = typed(bytes(broken), name)
        lost = [row for row in whole if row not in kept(found)]
        new = [row for row in kept(found) if row not in whole]
        assert len(lost) <= 1, at
        assert len(new) <= len(lost), at  # a flip in a header that no checksum covers, as in the date
        assert len(found.rows) + len(found.bad) + sum(found.notes.values()) == len(records), at
        for bad in found.bad:
            assert bytes(broken)[bad["byte_offset"] :].startswith(bad["raw"])


# Charsets.


@pytest.mark.parametrize(
    ("charset", "header", "text"),
    [
        ("utf-8", "text/html; charset=iso-8859-1", "Grüße, café naïve, 港口"),  # the header is wrong
        ("utf-8", "text/html", "Grüße, café naïve, 港口"),
        ("cp1252", "text/html; charset=ISO-8859-1", "Grüße – café “naïve”"),
        ("cp1251", 'text/html; charset="windows-1251"', "Гавань старого города построили давно"),
        ("gb18030", "text/html; charset=gb2312", "港口建于大洪水之年㐀"),
        ("cp932", "text/html; charset=Shift_JIS", "港は大洪水の年に建てられた①"),
        ("iso2022_jp", "text/html; charset=iso-2022-jp", "港は大洪水の年に建てられた"),
        ("euc_kr", "text/html; charset=euc-kr", "항구는 대홍수의 해에 지어졌다"),
        ("utf-16", "text/html", "Grüße, 港口"),
    ],
)
def test_pages_are_read_in_the_charset_that_fits(typed, charset, header, text):
    html = f"<html><body><main><p>{text}</p></main></body></html>"
    found = typed(response(html.encode(charset), 1, header=header), "a.warc")
    assert [r["text"].strip() for r in found.rows] == [text]


def test_bytes_in_no_charset_that_is_named_are_quarantined_and_single_ones_replaced(typed):
    latin = "<html><body><p>Grüße aus dem schönen Hafen für alle".encode("cp1252")
    for header in ("text/html", "text/html; charset=utf-8", "text/html; charset=utf-16", "text/html; charset=none"):
        assert typed(response(latin, 1, header=header), "a.warc").reasons == ["wrong_charset"]
    broken = ("<body><main><p>" + "港口建于大洪水之年。" * 200).encode().replace("洪".encode(), b"\xe6\xb4", 1)
    text = typed(response(broken, 1), "b.warc").texts[0]
    assert text.count("\ufffd") == 1 and "港口建于大" in text


# HTML files and fields.


@pytest.mark.parametrize("named", ['<meta charset="windows-1251">', '<?xml version="1.0" encoding="windows-1251"?>'])
def test_html_files_are_documents(typed, named):
    link = '<head><link rel="canonical" href="https://example.org/one">'
    (row,) = typed((named + page(1).replace("<head>", link) + "Гавань").encode("cp1251"), "a.html").rows
    found = (row["id"], row["title"], row["url"], row["mime"])
    assert found == ("a.html:0", "Page 1", "https://example.org/one", "text/html")
    assert row["text"].startswith("Report 1") and "Гавань" in row["text"]


@pytest.mark.parametrize(
    ("link", "url"),
    [
        ("<link href=https://example.org/a rel=canonical>", "https://example.org/a"),
        ("<LINK HREF='https://example.org/?a=1&amp;b=2' hreflang=en REL='alternate Canonical'>", "https://example.org/?a=1&b=2"),
        ("<!-- <link rel=canonical href=https://example.org/no> -->", None),
        ("<link rel=canonical href=/relative>", None),
        ("<link rel=canonicals href=https://example.org/no>", None),
    ],
)  # fmt: skip
def test_the_canonical_url_is_what_a_parser_sees(typed, link, url):
    (row,) = typed(page(1).replace("<head>", f"<head>{link}").encode(), "a.html").rows
    assert row.get("url") == url


# Limits.


def test_a_page_without_text_is_quarantined(typed):
    for html in ("", " \n", "<html><body><nav>Home</nav><img src=a.png></body></html>", "<script>var a;</script>"):
        found = typed(response(html, 1), "a.warc")
        assert (found.rows, found.reasons) == ([], ["no_text"]), html
        assert found.bad[0]["raw"] == response(html, 1)
    assert typed(page(1).encode() + b"<nav>" * 10, "a.html").reasons == []


@pytest.mark.parametrize(("html", "reason"), [
    ("<div>" * 20_000 + "deep", "page_too_deep"), ("<b><i><div>" * 5_000 + "deep", "page_too_deep"),
    ("<ul><li>" * 20_000 + "deep", "page_too_deep"), ("<svg>" + "<td>" * 20_000 + "deep", "page_too_deep"),
    ("<p>wide</p>" * 100_001, "page_too_many_tags"), ("<p>" + "long " * 2_000_000, "page_too_long"),
])  # fmt: skip
def test_a_page_beyond_a_limit_is_refused_before_it_is_parsed(typed, html, reason):
    assert typed(response(html, 1), "a.warc").reasons == [reason]


@pytest.mark.parametrize("inside", [
    "<p>", "<br>", "<img alt=''>", "<td>", "<!-- <div> -->", "<a title='<div>'>x</a>", "<script>'<div>'</script>",
    "<svg><path d=''/><path d=''></path></svg>", "<DIV></div >",
])  # fmt: skip
def test_pages_that_only_look_deep_are_read(typed, inside):
    html = "<html><body><main><p>The harbour of the town.</p>" + inside * 2000 + "</main></body></html>"
    assert typed(html.encode(), "a.html").reasons == []


@pytest.mark.parametrize("on_timeout", ["error", "quarantine"])
def test_an_extractor_that_hangs_in_its_own_code_is_ended(on_timeout, monkeypatch):
    """resiliparse needs minutes for so many elements inside of one another, and keeps the interpreter."""
    monkeypatch.setattr(web, "MAX_DEPTH", 1 << 20)
    pages = web.Pages("resiliparse", 0.5, on_timeout)
    began = time.monotonic()
    expected, said = {"error": (InputError, r"crawl: record 3: the page took more than the 0.5 s.*on_timeout"),
                      "quarantine": (RecordError, "page_timeout")}[on_timeout]  # fmt: skip
    with pytest.raises(expected, match=said):
        pages.of_html(b"<div>" * 60_000 + b"text", "crawl: record 3")
    assert time.monotonic() - began < 30
    assert pages.of_html(page(1).encode(), "crawl: record 4")[0]


def test_a_page_is_read_again_if_its_process_was_killed_and_a_process_ends_with_its_pages():
    pages = web.Pages("resiliparse")
    wanted = pages.of_html(page(1).encode(), "crawl: record 1")
    first = pages.extraction._running[0]
    first.kill()
    first.wait()
    assert pages.of_html(page(1).encode(), "crawl: record 1") == wanted
    process = pages.extraction._running[0]
    assert process.pid != first.pid
    del pages
    gc.collect()
    assert process.poll() is not None
    pages = web.Pages("resiliparse")
    pages.extraction.extractor = "none"
    with pytest.raises(InputError, match=r"extractor none does not start: it ended with code 1"):
        pages.of_html(page(1).encode(), "crawl: record 1")


def test_a_page_that_always_ends_its_process_is_quarantined(monkeypatch, tmp_path):
    source = Path(extract.__file__).read_text(encoding="utf-8")
    ends = "def resiliparse(html, tree):\n    'ends' in html and __import__('os').abort()\n    return html\n\n\n"
    ends += "def _was(html"
    (tmp_path / "ends.py").write_text(source.replace("def resiliparse(html", ends, 1), encoding="utf-8")
    monkeypatch.setattr(extract, "__file__", str(tmp_path / "ends.py"))
    pages = web.Pages("resiliparse")
    assert pages.of_html(b"<p>fine", "a")[0]
    with pytest.raises(RecordError, match=r"extraction_failed: the extractor's process ended with signal SIGABRT"):
        pages.of_html(b"<p>ends", "a")
    assert pages.of_html(b"<p>fine", "a")[0]


def test_a_missing_package_is_named_with_the_file_that_needs_it(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("a text")
    (tmp_path / "b.html").write_text(page(1))
    monkeypatch.setitem(sys.modules, "fastwarc.warc", None)
    with pytest.raises(MissingExtraError, match=r"b\.html: HTML and WARC need .*fastwarc.*'datakit\[web\]'"):
        Ingest(IngestConfig()).read_from([str(tmp_path)])
