import hashlib
import unicodedata
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from datakit.text.normal_form import binary_digest, digest, hash_values, normalize, stated_digest

# characters that NFC reorders, composes, replaces or leaves; every kind of white space; 1 to 4 bytes
TRICKY = "aAe\u0301\u0316\u0327\u0344\u1161\u11a8\u1100\uac00\u093c\u0928\u2126\ufb01\u0f73\U0001d15e\U0001f600한가" + (
    " \t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u1680\u2000\u2003\u2028\u202f\u205f\u3000\u200b\u180e\ufeff"
)
texts = st.lists(st.text() | st.text(alphabet=TRICKY) | st.none(), max_size=6)


def reference(text: str | None) -> str:
    return " ".join(unicodedata.normalize("NFC", text or "").split())


@given(texts)
@example(["x" * 63 + "\u0301", "\u0316\u0327\u0301" * 40, "é" * 64 + "  " + "e\u0301"])
def test_normal_form_is_nfc_with_single_spaces(rows: list[str | None]) -> None:
    assert normalize(pa.array(rows, pa.string())).to_pylist() == [reference(text) for text in rows]


def test_every_character_normalises_as_in_python() -> None:
    rows = [f"a{chr(code)}b {chr(code)}" for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    assert normalize(pa.array(rows)).to_pylist() == [reference(text) for text in rows]


def test_characters_across_the_blocks_of_the_kernel_stay_whole() -> None:
    """The byte that ends one character and the one that begins the next look like a white space character together."""
    rows = ["x" * pad + "ЂE" * 40 + "\u3000\u2003y" + "ЂE。 " * 30 for pad in range(130)]
    assert normalize(pa.array(rows)).to_pylist() == [reference(text) for text in rows]


@given(texts, st.integers(0, 3))
def test_a_slice_normalises_as_its_rows(rows: list[str | None], start: int) -> None:
    part = pa.array(rows, pa.string()).slice(start)
    assert normalize(part).to_pylist() == [reference(text) for text in rows[start:]]
    assert digest(part).to_pylist() == digest(pa.array(rows[start:], pa.string())).to_pylist()


def test_normalising_twice_changes_nothing() -> None:
    once = normalize(pa.array([TRICKY, TRICKY[::-1], "", None, " \u0301 x"]))
    assert normalize(once).equals(once)


def test_large_strings_are_taken_and_other_types_refused() -> None:
    assert normalize(pa.array([" a\n", None], pa.large_string())).to_pylist() == ["a", ""]
    with pytest.raises(TypeError, match="int64"):
        normalize(pa.array([1]))


def test_digest_is_blake2b_of_the_bytes() -> None:
    rows = ["", "é", "x" * 5000, None]
    expected = [hashlib.blake2b((text or "").encode(), digest_size=16).hexdigest() for text in rows]
    assert digest(pa.array(rows)).to_pylist() == expected
    assert [value.hex() for value in binary_digest(pa.array(rows)).to_pylist()] == expected


def test_real_books_normalise_as_in_python(shared: Path) -> None:
    rows = pq.read_table(shared / "corpora/web/classic_books_en.parquet").slice(0, 8).column("text").combine_chunks()
    assert normalize(rows).to_pylist() == [reference(text) for text in rows.to_pylist()]


def test_a_stated_digest_is_the_binary_digest():
    texts = pa.array(["x", "one", "two", "", "three"]).slice(1)
    assert stated_digest(digest(texts)) == binary_digest(texts)


def test_equal_values_hash_equally_and_others_otherwise():
    values = pa.array(["", "a", "b", "ab", "ba", "a" * 100, "a"])
    hashes = hash_values(values).tolist()
    assert hashes[1] == hashes[6]
    assert len(set(hashes)) == 6
    assert hash_values(values.slice(3, 2)).tolist() == hashes[3:5]
