"""Rows of other scripts, real ones, are found and kept as English ones are."""

from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from datakit.report.compare import text_similarity
from datakit.text.words import split_words
from tests.dedup.conftest import deduplicate

DECLARATIONS = {"English": "eng", "Chinese": "cmn_hans", "Traditional Chinese": "cmn_hant", "Japanese": "jpn",
                "Thai": "tha", "Arabic": "arb", "Hindi": "hin"}  # fmt: skip
LEAST_WORDS = 120


@pytest.fixture(scope="module")
def articles(shared: Path) -> dict[str, list[str]]:
    """The Universal Declaration of Human Rights by language, cut into rows of at least `LEAST_WORDS` words."""
    rows: dict[str, list[str]] = {name: [""] for name in DECLARATIONS}
    files = {file: name for name, file in DECLARATIONS.items()}
    with pa.input_stream(str(shared / "corpora/language/udhr_paragraphs.jsonl.zst"), compression="zstd") as file:
        for line in file.read().splitlines():
            paragraph = orjson.loads(line)
            if name := files.get(paragraph["file"]):
                rows[name][-1] += paragraph["text"] + "\n"
                if len(split_words(rows[name][-1])) >= LEAST_WORDS:
                    rows[name].append("")
    return {name: made[:-1] for name, made in rows.items()}


def one_word_changed(text: str) -> str:
    """The text with its middle word (a character, in scripts without spaces) put twice; the edges stay."""
    half = len(text) // 2
    if " " in text[half:] and len(split_words(text[half:].split()[1])) == 1:
        at = text.index(" ", half)
        word = text[at:].split()[0]
    else:
        at = len(text) - len(text[half:].lstrip())
        word = text[at]
    return text[:at] + " " + word + text[at:]


@pytest.mark.parametrize("name", DECLARATIONS)
def test_planted_duplicates_are_found_and_distinct_rows_stay(articles: dict[str, list[str]], name: str) -> None:
    rows = articles[name]
    assert len(rows) >= 7
    near, equal = [one_word_changed(text) for text in rows], [f" {text}\n" for text in rows]
    outcome = deduplicate([*rows, *near, *equal])
    assert outcome.kept == [str(i) for i in range(len(rows))]
    for i in range(len(rows)):
        assert outcome.rows[str(len(rows) + i)][:2] == ("near_duplicate", str(i))
        assert outcome.rows[str(len(rows) + i)][2] == text_similarity(near[i], rows[i], 5) > 0.85
        assert outcome.rows[str(2 * len(rows) + i)] == ("exact_duplicate", str(i), 1.0)


def test_languages_in_one_dataset_do_not_meet(articles: dict[str, list[str]]) -> None:
    rows = [text for made in articles.values() for text in made]
    assert deduplicate(rows).rows == {}
