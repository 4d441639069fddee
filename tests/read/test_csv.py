"""CSV: quoted cells hold anything, bad rows cost themselves, numbers of rows and lines are true. Plain text: a document
per file, line or paragraph."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def table(rows, **options):
    out = io.StringIO()
    csv.writer(out, lineterminator=options.pop("lineterminator", "\r\n"), **options).writerows(rows)
    return out.getvalue().encode()


def test_cells_become_fields_and_the_rest_goes_to_extra(read_bytes):
    data = table([["id", "text", "n"], ["a", "hello, world", "01.0"], ["", 'say "hi"\nthere', ""]])
    found = read_bytes(data, "x.csv")
    assert found.texts == ["hello, world", 'say "hi"\nthere']
    assert [r["id"] for r in found.rows] == ["a", "x.csv:1"]
    assert [r["extra"] for r in found.rows] == ['{"n":"01.0"}', '{"id":"","n":""}']


@pytest.mark.parametrize(
    ("name", "delimiter"),
    [("x.csv", ","), ("x.csv", ";"), ("x.csv", "\t"), ("x.csv", "|"), ("x.tsv", "\t"), ("x.tsv.gz", "\t")],
)
def test_the_delimiter_is_found(read_bytes, name, delimiter):
    found = read_bytes(table([["text", "b"], ["a;b,c\td", "x"]], delimiter=delimiter), name)
    assert found.texts == ["a;b,c\td"]


def test_bad_rows_are_quarantined_with_line_and_offset_and_a_quote_that_never_closes_costs_its_line(read_bytes):
    data = b'text,n\ngood,1\n"two\nlines",2\nfew\nmany,1,2\n"bad" quote,3\n\xff\xfe,4\n\n"open,2\nlast,5\n'
    found = read_bytes(data, "x.csv")
    assert found.texts == ["good", "two\nlines", "last"]
    assert [r["row_key"] for r in found.rows] == [0, 1, 7]
    assert [(b["line"], b["reason"], b["raw"]) for b in found.bad] == [
        (5, "bad_row", b"few"), (6, "bad_row", b"many,1,2"), (7, "bad_row", b'"bad" quote,3'),
        (8, "invalid_utf8", b"\xff\xfe,4"), (10, "bad_row", b'"open,2')]  # fmt: skip
    assert all(data[b["byte_offset"] :].startswith(b["raw"]) for b in found.bad)


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
cells |= st.text('",\n\r;a', max_size=6)


@settings(max_examples=150)
@given(st.lists(st.tuples(cells, cells), max_size=6), st.sampled_from(["\n", "\r\n"]))
def test_what_the_csv_module_writes_is_read_back(read_bytes, rows, end):
    data = table([["text", "n"], *rows], lineterminator=end, quoting=csv.QUOTE_ALL)
    found = read_bytes(data, "x.csv", kind="text")
    assert found.texts == [a for a, _ in rows]
    assert not found.bad


# Plain text.


def test_a_file_is_one_document_with_its_white_space(read, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\n\ntwo\n")
    (tmp_path / "b.md").write_bytes(b"\xef\xbb\xbf# Title\r\n")
    found = read(tmp_path)
    assert found.texts == ["one\n\ntwo\n", "# Title\r\n"]
    assert [r["id"] for r in found.rows] == ["a.txt:0", "b.md:0"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(("split", "texts", "numbers"), [
    ("line", ["one", "still one", "two", "dreiß"], [1, 2, 5, 7]),
    ("paragraph", ["one{}still one", "two", "dreiß"], [1, 5, 7]),
])  # fmt: skip
def test_lines_and_paragraphs_are_numbered_by_their_line(read_bytes, split, texts, numbers, end):
    data = end.join(["", "one", "still one", "", " ", "  two", "", "dreiß"]).encode()
    found = read_bytes(data, "x.txt", text_split=split)
    assert found.texts == [text.format(end) for text in texts]
    assert [r["row_key"] for r in found.rows] == numbers


@pytest.mark.parametrize(("name", "config"), [
    ("x.csv", {}), ("x.txt", {"text_split": "line"}), ("x.txt", {"text_split": "paragraph"}),
])  # fmt: skip
def test_units_are_cut_between_records(read_bytes, name, config):
    gap = "\n" if name == "x.csv" else ""  # a cell may hold new lines
    texts = [f"{i} {gap}w" + "w" * (i * 37 % 3000) for i in range(2000)]
    rows = [["text", "n"], *([text, f'"{i}"'] for i, text in enumerate(texts))]
    data = table(rows, lineterminator="\r\n\r\n")  # blank lines are no records
    data = "\n\n".join(texts).encode() if name == "x.txt" else data
    whole, cut = read_bytes(data, name, **config), read_bytes(data, name, shard_mb=1, **config)
    assert cut.units > 2
    assert cut.rows == whole.rows
    assert cut.texts == texts


def test_what_is_no_text_is_quarantined(read_bytes):
    data = b"good\nb\xe4d\nn\x00l\nfine\n"
    found = read_bytes(data, "x.txt", text_split="line")
    assert found.texts == ["good", "fine"]
    bad = [(2, "invalid_utf8", b"b\xe4d"), (3, "nul_bytes", b"n\x00l")]
    assert [(b["line"], b["reason"], b["raw"]) for b in found.bad] == bad
    assert all(data[b["byte_offset"] :].startswith(b["raw"]) for b in found.bad)
    assert read_bytes(data, "x.txt").reasons == ["nul_bytes"]


def test_a_text_larger_than_a_unit_stays_whole(read_bytes):
    text = "line\n" * (1 << 20)
    assert read_bytes(text.encode(), "x.txt", shard_mb=1).texts == [text]
