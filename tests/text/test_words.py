import re
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.json
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datakit.text.words import hash_words, split_words

SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3021-\u3029\u3031-\u303c\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff\uff66-\uff9f\U00016fe2-\U00016fe4\U00016ff0-\U00016ff1"
    "\U0001aff0-\U0001b16f\U00020000-\U0003ffff]"
)
ALPHABET = (
    "abzAZ019_-. \nßŉİǰΐﬃԱևЖжÉé\u0301Σςσأحनिﬀ中文かカーไทย ລາວខ្មែរမြန်\U00020000\U0001f600\U0001d400Ａ①ⅷ\u200d\ufe0f"
)


def reference(text: str) -> list[str]:
    """Words by the definition: fold, then cut at what is no letter, mark or number, and around spaceless characters."""
    kept = "".join(c if unicodedata.category(c)[0] in "LMN" else " " for c in text.casefold())
    return SPACELESS.sub(lambda m: f" {m.group()} " if m.group() != " " else " ", kept).split(" ")


def reference_words(text: str) -> list[str]:
    return [word for word in reference(text) if word]


def check_hashes(rows: list[str]) -> None:
    """Equal words have equal hashes, different words different ones, and every row has as many as it has words."""
    hashes, starts = hash_words(pa.array(rows, pa.string()))
    words = [word for text in rows for word in reference_words(text)]
    assert np.diff(starts).tolist() == [len(reference_words(text)) for text in rows]
    assert len({*zip(words, hashes.tolist(), strict=True)}) == len({*words}) == len({*hashes.tolist()})


@given(st.lists(st.text(alphabet=ALPHABET) | st.text(), max_size=6))
def test_kernel_splits_and_folds_like_the_definition(rows: list[str]) -> None:
    assert [split_words(text) for text in rows] == [reference_words(text) for text in rows]
    check_hashes(rows)


def test_every_character_of_unicode() -> None:
    """All that are assigned, and every 61st of the others, which are all alike."""
    every = (chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    check_hashes([f"x{c}y {c}" for c in every if unicodedata.category(c) not in ("Cn", "Co") or ord(c) % 61 == 0])


def test_long_words_are_told_apart() -> None:
    check_hashes(
        ["abcdefgh abcdefghi abcdefghij abcdefg h", "abcdefghabcdefgh abcdefgh", "a" * 10_000, "a" * 9_999 + "b"]
    )


def test_case_does_not_matter_but_order_and_accents_do() -> None:
    hashes, _ = hash_words(pa.array(["STRASSE Straße strasse", "cafe café CAFÉ"]))
    assert hashes[0] == hashes[1] == hashes[2]
    assert hashes[3] != hashes[4] == hashes[5]


@pytest.mark.parametrize("text", ["今日は\u3000カー", "ภาษาไทย", "ພາສາ", "ភាសា", "မြန်မာ"])
def test_scripts_without_spaces_have_a_word_for_each_character(text: str) -> None:
    assert split_words(text) == [c for c in text if c != "\u3000"]


def test_arabic_and_hindi_words_keep_their_marks() -> None:
    assert split_words("السَّلامُ عليكم، नमस्ते दुनिया।") == ["السَّلامُ", "عليكم", "नमस्ते", "दुनिया"]


def test_slices_and_nulls() -> None:
    rows = pa.array(["one two", None, "", "three"])
    assert hash_words(rows)[1].tolist() == [0, 2, 2, 2, 3]
    assert hash_words(rows.slice(3))[0].tolist() == hash_words(rows)[0].tolist()[2:]


def test_448_languages(shared: Path) -> None:
    with pa.input_stream(str(shared / "corpora/language/udhr_paragraphs.jsonl.zst"), compression="zstd") as file:
        table = pyarrow.json.read_json(file)
    check_hashes(table.column("text").to_pylist()[::4])
