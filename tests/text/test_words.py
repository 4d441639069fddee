import hashlib
import re
import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.json
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import datakit.text.words as module
from datakit.text.words import digest, hash_words, normalize

# The properties of characters.

TABLE = module.character_table()
ENTRIES = dict(
    zip(map(chr, range(0x110000)), TABLE.entries.reshape(-1, 256)[TABLE.pages].reshape(-1).tolist(), strict=True)
)
EVERY = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def test_words_are_letters_marks_and_numbers():
    flags = {"L": module.WORD | module.LETTER, "M": module.WORD | module.MARK, "N": module.WORD | module.NUMBER}
    expected = [flags.get(unicodedata.category(c)[0], 0) for c in EVERY]
    assert [ENTRIES[c] & (module.WORD | module.LETTER | module.MARK | module.NUMBER) for c in EVERY] == expected


def test_what_composes_with_the_character_before_is_marked():
    composing = ["\u0301", "\u1161", "\u11a8", "\u093c", "\u3099", "\U000110ba"]
    assert all(ENTRIES[c] & module.NOT_NFC for c in composing)
    assert not any(ENTRIES[c] & module.NOT_NFC for c in "aé中\u0e31\u0651")


def test_combining_classes_are_pythons():
    assert [c for c in EVERY if ENTRIES[c] >> module.CCC_SHIFT & 0xFF != unicodedata.combining(c)] == []


# The normal form and its digest.

# characters that NFC reorders, composes, replaces or leaves; every kind of white space; 1 to 4 bytes
TRICKY = "aAe\u0301\u0316\u0327\u0344\u1161\u11a8\u1100\uac00\u093c\u0928\u2126\ufb01\u0f73\U0001d15e\U0001f600한가" + (
    " \t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u1680\u2000\u2003\u2028\u202f\u205f\u3000\u200b\u180e\ufeff"
)
texts = st.lists(st.text() | st.text(alphabet=TRICKY) | st.none(), max_size=6)


def normal_form(text: str | None) -> str:
    return " ".join(unicodedata.normalize("NFC", text or "").split())


@given(texts)
@example(["x" * 63 + "\u0301", "\u0316\u0327\u0301" * 40, "é" * 64 + "  " + "e\u0301"])
def test_normal_form_is_nfc_with_single_spaces(rows):
    assert normalize(pa.array(rows, pa.string())).to_pylist() == [normal_form(text) for text in rows]


def test_no_character_that_the_quick_check_passes_decides_about_nfc():
    from datakit.text._kernels_text import _may_compose

    decide = [c for c in EVERY if ENTRIES[c] & module.NOT_NFC or unicodedata.combining(c)]
    assert [c for c in decide if not _may_compose.py_func(np.uint8(c.encode()[0]))] == []


def test_every_character_normalises_as_in_python():
    rows = [f"a{c}b {c}" for c in EVERY]
    assert normalize(pa.array(rows)).to_pylist() == [normal_form(text) for text in rows]


def test_characters_across_the_blocks_of_the_kernel_stay_whole():
    """The byte that ends one character and the one that begins the next look like a white space character together."""
    rows = ["x" * pad + "ЂE" * 40 + "\u3000\u2003y" + "ЂE。 " * 30 for pad in range(130)]
    assert normalize(pa.array(rows)).to_pylist() == [normal_form(text) for text in rows]


@given(texts, st.integers(0, 3))
def test_a_slice_normalises_as_its_rows(rows, start):
    part = pa.array(rows, pa.string()).slice(start)
    assert normalize(part).to_pylist() == [normal_form(text) for text in rows[start:]]
    assert digest(part).to_pylist() == digest(pa.array(rows[start:], pa.string())).to_pylist()


def test_large_strings_are_taken_and_other_types_refused():
    assert normalize(pa.array([" a\n", None], pa.large_string())).to_pylist() == ["a", ""]
    with pytest.raises(TypeError, match="int64"):
        normalize(pa.array([1]))


def test_digest_is_blake2b_of_the_bytes_of_the_normal_form():
    rows = ["", "é", "x" * 5000, None]
    expected = [hashlib.blake2b((text or "").encode(), digest_size=16).hexdigest() for text in rows]
    assert digest(pa.array(["\n ", " e\u0301 ", *rows[2:]])).to_pylist() == expected
    large = [f"{n} " + "x\n" * 100_000 for n in range(12)]  # more than is hashed at one time
    assert digest(pa.array(large)).to_pylist() == digest(normalize(pa.array(large))).to_pylist()
    assert [value.hex() for value in module.binary_digest(pa.array(rows)).to_pylist()] == expected
    assert module.stated_digest(digest(pa.array(rows)).slice(1)) == module.binary_digest(pa.array(rows)).slice(1)


def test_equal_values_hash_equally_and_others_otherwise():
    values = pa.array(["", "a", "b", "ab", "ba", "a" * 100, "a"])
    hashes = module.hash_values(values).tolist()
    assert hashes[1] == hashes[6]
    assert len(set(hashes)) == 6
    assert module.hash_values(values.slice(3, 2)).tolist() == hashes[3:5]


# Words.

SPACELESS_CHARACTERS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3021-\u3029\u3031-\u303c\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff\uff66-\uff9f\U00016fe2-\U00016fe4\U00016ff0-\U00016ff1"
    "\U0001aff0-\U0001b16f\U00020000-\U0003ffff]"
)
ALPHABET = (
    "abzAZ019_-. \nßŉİǰΐﬃԱևЖжÉé\u0301Σςσأحनिﬀ中文かカーไทย ລາວខ្មែរမြန်\U00020000\U0001f600\U0001d400Ａ①ⅷ\u200d\ufe0f"
)


def cut_words(text: str) -> list[str]:
    """Words by the definition: fold, then cut at what is no letter, mark or number, and around spaceless characters."""
    kept = "".join(c if unicodedata.category(c)[0] in "LMN" else " " for c in text.casefold())
    return SPACELESS_CHARACTERS.sub(lambda m: f" {m.group()} " if m.group() != " " else " ", kept).split(" ")


def reference_words(text: str) -> list[str]:
    return [word for word in cut_words(text) if word]


def check_hashes(rows: list[str]) -> None:
    """Equal words have equal hashes, different words different ones, and every row has as many as it has words."""
    hashes, starts = hash_words(pa.array(rows, pa.string()))
    words = [word for text in rows for word in reference_words(text)]
    assert np.diff(starts).tolist() == [len(reference_words(text)) for text in rows]
    assert len({*zip(words, hashes.tolist(), strict=True)}) == len({*words}) == len({*hashes.tolist()})


@given(st.lists(st.text(alphabet=ALPHABET) | st.text(), max_size=6))
def test_kernel_splits_and_folds_like_the_definition(rows):
    assert [module.split_words(text) for text in rows] == [reference_words(text) for text in rows]
    check_hashes(rows)


def test_every_character_of_unicode():
    """All that are assigned, and every 61st of the others, which are all alike."""
    check_hashes([f"x{c}y {c}" for c in EVERY if unicodedata.category(c) not in ("Cn", "Co") or ord(c) % 61 == 0])


def test_long_words_order_and_accents_matter_and_case_does_not():
    check_hashes(["abcdefgh abcdefghi abcdefg h", "abcdefghabcdefgh abcdefgh", "a" * 10_000, "a" * 9_999 + "b"])
    hashes, _ = hash_words(pa.array(["STRASSE Straße strasse", "cafe café CAFÉ"]))
    assert hashes[0] == hashes[1] == hashes[2]
    assert hashes[3] != hashes[4] == hashes[5]


def test_slices_and_nulls():
    rows = pa.array(["one two", None, "", "three"])
    assert hash_words(rows)[1].tolist() == [0, 2, 2, 2, 3]
    assert hash_words(rows.slice(3))[0].tolist() == hash_words(rows)[0].tolist()[2:]
