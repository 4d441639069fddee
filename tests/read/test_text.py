"""Plain text: a document per file, line or paragraph."""

import pytest


def test_a_file_is_one_document_with_its_white_space(read, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\n\ntwo\n")
    (tmp_path / "b.md").write_bytes(b"\xef\xbb\xbf# Title\r\n")
    found = read(tmp_path)
    assert found.texts == ["one\n\ntwo\n", "# Title\r\n"]
    assert [r["id"] for r in found.rows] == ["a.txt:0", "b.md:0"]


def test_lines_are_numbered_by_line(read_bytes):
    found = read_bytes("eins\n\n  zwei \r\ndreiß".encode(), "x.txt", text_split="line")
    assert found.texts == ["eins", "zwei", "dreiß"]
    assert [r["row_key"] for r in found.rows] == [0, 2, 3]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_paragraphs_end_at_blank_lines_and_are_numbered_by_line(read_bytes, end):
    data = end.join([b"", b"one", b"still one", b"", b" ", b"  two", b"", b"three"]) + end
    found = read_bytes(data, "x.txt", text_split="paragraph")
    assert [t.split() for t in found.texts] == [["one", "still", "one"], ["two"], ["three"]]
    assert [r["row_key"] for r in found.rows] == [1, 5, 7]


@pytest.mark.parametrize("split", ["line", "paragraph"])
def test_units_are_cut_between_documents(read_bytes, split):
    texts = [f"{i} w" + "w" * (i * 37 % 3000) for i in range(2000)]
    data = "\n\n".join(texts).encode()
    whole, cut = read_bytes(data, "x.txt", text_split=split), read_bytes(data, "x.txt", text_split=split, shard_mb=1)
    assert cut.units > 2
    assert cut.rows == whole.rows
    assert cut.texts == texts


def test_what_is_no_text_is_quarantined(read_bytes):
    data = b"good\nb\xe4d\nn\x00l\nfine\n"
    found = read_bytes(data, "x.txt", text_split="line")
    assert found.texts == ["good", "fine"]
    assert [(b["line"], b["reason"], b["raw"]) for b in found.bad] == [
        (2, "invalid_utf8", b"b\xe4d"),
        (3, "nul_bytes", b"n\x00l"),
    ]
    assert all(data[b["byte_offset"] :].startswith(b["raw"]) for b in found.bad)
    assert read_bytes(data, "x.txt").reasons == ["nul_bytes"]


def test_a_blank_file_holds_no_document(read_bytes):
    for data in (b"", b" \n\t\n"):
        found = read_bytes(data, "x.txt")
        assert (found.rows, found.bad) == ([], [])


def test_a_text_larger_than_a_unit_stays_whole(read_bytes):
    text = "line\n" * (1 << 20)
    assert read_bytes(text.encode(), "x.txt", shard_mb=1).texts == [text]
