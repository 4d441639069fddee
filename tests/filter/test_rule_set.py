"""The signal pass against the same definitions in plain Python, and stop words of languages other than English."""

import collections
import itertools
import re
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datakit.filter import rule_set
from datakit.filter.rule_set import Signals, count_signals
from datakit.text.words import split_words
from tests.filter.rows import documents, filter_of

STOP_WORDS = {"the", "be", "to", "of", "and", "that", "have", "with"}
WORD_CHARACTERS = "LMN"
BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


def kind(c: str) -> str:
    return unicodedata.category(c)[0]


def flagged(c: str, flag: int) -> bool:
    return bool(rule_set.character_classes()[ord(c)] & flag)


def spaceless(c: str) -> bool:
    return flagged(c, rule_set.UNSEGMENTED)


def is_wide(c: str) -> bool:
    return spaceless(c) and ord(c) >= 0x2E80


def words_of(text: str) -> list[str]:
    words = []
    for token in text.split():
        broken = any(map(spaceless, token))
        for alone, run in itertools.groupby(token, spaceless):
            piece = "".join(run)
            if alone:
                words += piece
            elif not broken or any(kind(c) in WORD_CHARACTERS for c in piece):
                words.append(piece)
    return words


def lines_of(text: str) -> tuple[list[str], list[str]]:
    lines, paragraphs, open_paragraph = [], [], []
    raw = text.splitlines(keepends=True)
    for line in [*raw, ""]:
        if line.strip():
            lines.append(line.rstrip())
            open_paragraph.append(line)
        elif open_paragraph:
            paragraphs.append("".join(open_paragraph).rstrip())
            open_paragraph = []
    return lines, paragraphs


def duplicates(elements: list) -> tuple[int, int]:
    extra = [e for i, e in enumerate(elements) if e in elements[:i]]
    return len(extra), sum(map(len, extra))


def top_ngram(text: str, words: list[str], n: int) -> int:
    grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    count = collections.Counter(grams)
    if not count or max(count.values()) < 2:
        return 0
    gram, times = count.most_common(1)[0]
    place, gaps, spans = 0, [], {}
    for i, word in enumerate(words):
        found = text.index(word, place)
        gaps.append(bool(re.search(r"\s", text[place:found])))
        place = found + len(word)
        if i >= n - 1:
            spans.setdefault(tuple(words[i - n + 1 : i + 1]), sum(gaps[i - n + 2 : i + 1]))
    return min(len(text), times * (sum(map(len, gram)) + spans[gram]))


def dup_ngrams(words: list[str], n: int) -> int:
    grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    seen, extra, i = set(), 0, 0
    while i < len(grams):
        if grams[i] in seen:
            extra += sum(map(len, grams[i]))
            i += n
        else:
            seen.add(grams[i])
            i += 1
    return extra


def reference(text: str) -> dict[str, int]:
    words = words_of(text)
    lines, paragraphs = lines_of(text)
    characters_alone = [w for w in words if len(w) == 1 and spaceless(w)]
    spaced = [w for w in words if not (len(w) == 1 and spaceless(w))]
    letters = [[c for c in w if kind(c) == "L" or (spaceless(c) and kind(c) == "M")] for w in words]
    kana_han = [w for w in characters_alone if ord(w) >= 0x2E80]
    symbols = [w for w in words if not any(kind(c) in WORD_CHARACTERS for c in w)]
    bare = {
        re.sub(r"^[^0-9A-Za-z]+|[^0-9A-Za-z]+$", "", w).lower()
        for w, found in zip(words, letters, strict=True)
        if found and len(w) <= 40 and all(c.isascii() for c in found)
    }
    starts = [(s[0], s[1:2]) for line in lines for s in [line.lstrip()]]
    expected = {
        "chars": len(text),
        "words": len(words),
        "unsegmented_words": len(characters_alone),
        "kana_han_words": len(kana_han),
        "spaced_chars": sum(kind(c) != "M" for w in spaced for c in w),
        "spaced_marks": sum(kind(c) == "M" or "가" <= c <= "힣" for w in spaced for c in w),
        "symbol_words": len(symbols),
        "symbol_chars": sum(map(len, symbols)),
        "alpha_words": sum(map(bool, letters)),
        "foreign_words": sum(any(not c.isascii() for c in found) for found in letters),
        "hashes": text.count("#"),
        "ellipses": text.count("...") + text.count("…"),
        "stop_words": len(bare & STOP_WORDS),
        "all_lines": len(text.splitlines()),
        "lines": len(lines),
        "bullet_lines": sum(a in "•‣◦●▪" or (a in "-*" and b in ("", " ", "\t")) for a, b in starts),
        "ellipsis_lines": sum(line.endswith(("...", "…")) for line in lines),
        "terminal_lines": sum(flagged(line[-1], rule_set.TERMINAL) for line in lines),
        "short_lines": sum(len(line) + 2 * sum(map(is_wide, line)) <= 30 for line in lines),
        "line_breaks": sum(line != line.rstrip(BREAKS) for line in text.splitlines(True)),
        "paragraphs": len(paragraphs),
    }
    expected["dup_lines"], expected["dup_line_chars"] = duplicates(lines)
    expected["dup_paragraphs"], expected["dup_paragraph_chars"] = duplicates(paragraphs)
    step = 1 if 2 * len(characters_alone) <= len(words) else 2 if 2 * len(kana_han) > len(characters_alone) else 4
    expected |= {f"top_{n}gram_chars": top_ngram(text, words, n * step) for n in (2, 3, 4)}
    for n in range(5, 11):
        expected[f"dup_{n}gram_chars"] = dup_ngrams(words, n * step)
    return expected


def row(signals: Signals, i: int) -> dict[str, int]:
    return {name: int(values[i]) for name, values in signals.items()}


EDGES = [
    "", " ", "\n", "\n\n\n", "\r\n\r\n", "\r", "a", "#", "…", "...", "......", "-", "- ", "\u0301", "😀", "😀😀 😀\n😀",
    "中", "中中", "你好，世界。hello世界 API, 中", "ภาษาไทย ไม่มีช่องว่าง", "one\r\ntwo\r\n\r\none\r\ntwo\r\n", "a\rb\ra",
    "a\u2028b\u2029a\x85b", "  indented\nindented  \nindented", "the (The) “THE” 'of' thé",
    "- one\n* two\n-three\n**four\n• five\n•\n-\n", "x" * 5000, "a b c d e f g h i j k l " * 3,
    "a a a a a a a a a a a a a a a a a a a a a",
    "to be or not to be that is the question to be or not to be that is the question",
    "\ufeff\u200bzero width\u00a0no-break\u3000wide", "\U0010fffd\U000e0001 private and tags", "a\0b \0",
    "a\x0bb\x0cc\x1cd\x1de\x1ef\x1fg\x85h",
    "a a\0 a\0\0 a a\0", "seven77 eight888 nine99999 sixteen characte seventeen.charac eight888 nine99999",
    "tail of the", "\tindented\ttwice\t\n\t\n \u3000 \nend\u3000\n", "…\n...\na..\na...\na....\na... \na...\u3000",
]  # fmt: skip


@pytest.mark.parametrize("text", EDGES, ids=range(len(EDGES)))
def test_every_signal_equals_the_plain_definition(text):
    assert row(count_signals(pa.array([text])), 0) == reference(text)


PIECES = st.sampled_from(
    ["the", "The,", "of", "be", "a", "b", "to", "x1", "12", "#", "...", "…", "-", "* ", "• ", "été", "слово", "العربية",
     "中文", "字", "、", "。", "ひらがな", "カ", "ไทย", "ြ", "한국어", "e\u0301", "😀", " ", " ", " ", "  ", "\n", "\n",
     "\n\n", "\r\n", "\r", "\t", "\u3000", "\u2028", ".", "!", "”"]
)  # fmt: skip


REPETITIVE = st.builds(
    lambda letters, times: " ".join(["".join(letters)] * times),
    st.lists(st.sampled_from("ab ") | st.sampled_from("中文") | st.sampled_from("กข"), min_size=50, max_size=400),
    st.integers(1, 4),
)


@settings(max_examples=150)
@example(["-\r\n", "-\u3000", " *\u00a0\n"])
@given(st.lists(st.lists(PIECES, max_size=60).map("".join) | st.text(max_size=80), max_size=4) | st.tuples(REPETITIVE))
def test_any_text_measures_as_the_plain_definition_says(texts):
    """Wherever it begins in the batch, and whatever is around it; a null is an empty text."""
    expected = [reference(t) for t in texts]
    for before in ([], ["x"], ["x" * 7, None], ["x y" * 5]):
        signals = count_signals(pa.array([*before, *texts, None, "z"], pa.string()).slice(len(before)))
        assert [row(signals, i) for i in range(len(texts) + 1)] == [*expected, reference("")]
    zero = count_signals(pa.array(["", "a 1 2"])).ratio("alpha_words", "words")
    assert zero.tolist() == [0.0, 0.333]


def test_many_different_words_and_lines_measure_as_the_plain_definition_says():
    words = [f"{n:x}" for n in range(3000)]
    text = "\n".join(" ".join(words[i : i + 3]) for i in range(0, len(words), 3))
    assert row(count_signals(pa.array([text + "\n" + text])), 0) == reference(text + "\n" + text)


# Stop words of languages other than English.

GERMAN = "Die Katze sitzt auf dem Dach und der Hund schläft in seinem Haus, weil es heute regnet. " * 4
LISTING = "Katze Dach Hund Haus Regen Baum Wolke Fenster Garten Straße Stadt Fluss " * 5


def decide(texts, langs, **options):
    return filter_of("gopher_quality", gopher_quality=options).decide(documents(*texts, lang=langs))


def test_the_count_is_that_of_different_words_of_the_rows_own_list():
    import stopwordsiso

    texts = [GERMAN, GERMAN, LISTING, "l'eau et LE vin, tre\u0300s", "", "the of and", "的 是 不"]
    langs = ["de", "deu_Latn", "de", "fr", "fr", "en", "zh"]
    expected = [len(set(split_words(unicodedata.normalize("NFC", t))) & set(stopwordsiso.stopwords(c))) for t, c in
                zip(texts[:5], ["de", "de", "de", "fr", "fr"], strict=True)]  # fmt: skip
    assert rule_set.count_stop_words(pa.array(texts), pa.array(langs)).tolist() == [*expected, 0, 0]
    assert expected[0] > 8 and expected[3] >= 4 and expected[4] == 0
    languages = rule_set.stop_word_languages()
    most = max(rule_set.count_stop_words(pa.array([GERMAN] * len(languages)), pa.array(languages)))
    assert rule_set.count_stop_words(pa.array([GERMAN]), pa.nulls(1)).tolist() == [most]  # unknown: what it has most of


def test_rows_without_their_languages_stop_words_are_dropped_and_others_stay():
    indonesian = "Kami akan pergi ke pasar untuk membeli ikan dan sayur karena ibu sedang memasak di rumah. " * 5
    texts = [GERMAN, LISTING, LISTING, indonesian, indonesian, "zzyx brrk " * 30]
    decision = decide(texts, ["de", "de", "is", "id", None, None])
    assert decision.reasons.to_pylist() == [None, "gopher_quality.min_stop_words", None, None, None,
                                            "gopher_quality.min_stop_words"]  # fmt: skip
    assert decision.notes == {"min_stop_words_is_off_for_is": 1}
    assert decide([LISTING] * 3, ["de", "is", "en"], min_stop_words=0).notes == {}


def test_every_list_has_common_words_of_its_language():
    (_, _, masks), languages = rule_set.stop_word_lists(), rule_set.stop_word_languages()
    sizes = [int((masks >> np.uint64(i) & np.uint64(1)).sum()) for i in range(len(languages))]
    assert min(sizes) >= 20 and len(languages) <= 64
    assert not {"en", "zh", "ja", "th"} & set(languages)
    number = {code: place for place, code in enumerate(languages)} | {None: rule_set.UNKNOWN_LANGUAGE}
    labels = {
        "deu_Latn": "de", "pt-BR": "pt", "nn": "no", "nob": "no", "arb": "ar", "fil": "tl", "ekk": "et", None: None,
    }  # fmt: skip
    assert rule_set.language_numbers(pa.array(list(labels))).tolist() == [number[code] for code in labels.values()]
    assert set(rule_set.language_numbers(pa.array(["zh", "und", "tlh", "x y"])).tolist()) == {rule_set.NO_LIST}
