import unicodedata

from datakit.text.characters import (
    CCC_SHIFT,
    FOLD_SHIFT,
    LETTER,
    MARK,
    NOT_NFC,
    NUMBER,
    SPACE,
    SPACELESS,
    WORD,
    character_table,
    entry,
)

TABLE = character_table()
ENTRIES = dict(
    zip(map(chr, range(0x110000)), TABLE.entries.reshape(-1, 256)[TABLE.pages].reshape(-1).tolist(), strict=True)
)
EVERY = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
SPACELESS_NAMES = ("CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA")
SPACELESS_NAMES += ("THAI", "LAO", "KHMER", "MYANMAR", "HENTAIGANA")


def test_one_entry_is_that_of_the_table() -> None:
    assert all(entry(c) == ENTRIES[c] for c in EVERY[::257])


def test_words_are_letters_marks_and_numbers() -> None:
    flags = {"L": WORD | LETTER, "M": WORD | MARK, "N": WORD | NUMBER}
    expected = [flags.get(unicodedata.category(c)[0], 0) for c in EVERY]
    assert [ENTRIES[c] & (WORD | LETTER | MARK | NUMBER) for c in EVERY] == expected


def test_white_space_is_pythons() -> None:
    assert [c for c in EVERY if bool(ENTRIES[c] & SPACE) != c.isspace()] == []


def test_case_folds_as_in_python_and_keeps_words_words() -> None:
    folds = TABLE.folds.tolist()
    for c in EVERY:
        row = ENTRIES[c] >> FOLD_SHIFT
        folded = "".join(chr(code) for code in folds[row] if code >= 0) if row else c
        assert folded == c.casefold()
        assert all(ENTRIES[f] & (WORD | SPACELESS) == ENTRIES[c] & (WORD | SPACELESS) for f in folded), hex(ord(c))


def test_characters_of_scripts_without_spaces_stand_alone() -> None:
    named = [c for c in EVERY if ENTRIES[c] & WORD and unicodedata.name(c, "").startswith(SPACELESS_NAMES)]
    assert len(named) > 90_000
    assert [c for c in named if not ENTRIES[c] & SPACELESS] == []
    others = {c for c in EVERY if ENTRIES[c] & SPACELESS}.difference(named)

    assert len(others) < 60, "iteration marks, Hangzhou numerals and the like"


def test_what_nfc_changes_is_marked() -> None:
    changed = [c for c in EVERY if unicodedata.normalize("NFC", c) != c]
    assert [c for c in changed if not ENTRIES[c] & NOT_NFC] == []
    composing = ["\u0301", "\u1161", "\u11a8", "\u093c", "\u3099", "\U000110ba"]
    assert all(ENTRIES[c] & NOT_NFC for c in composing)
    assert not any(ENTRIES[c] & NOT_NFC for c in "aé中\u0e31\u0651")


def test_combining_classes_are_pythons() -> None:
    assert [c for c in EVERY if ENTRIES[c] >> CCC_SHIFT & 0xFF != unicodedata.combining(c)] == []
