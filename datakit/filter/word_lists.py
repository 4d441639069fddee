"""Word lists by language, such as lists of bad words: rows with a listed word are dropped.

A list is the user's file with an entry on each line, a word or several; `#` begins a comment. Its name is a language
code (`en`, `deu_Latn`), or `all`. A row is searched with the lists of its language, or with all
where its language is unknown. The name of the list is the reason: `words.en`.

Entries match whole words, whatever their case: runs of letters, marks and digits, as dedup has them, so that "class"
holds no other word, and a phrase matches across spaces, line breaks, hyphens and punctuation. In scripts written
without spaces (Han, kana, Thai, Lao, Khmer, Burmese) each character is a word, so that an entry matches wherever its
characters follow each other. An entry with signs that words do not have ("a$$", an emoji) must stand as it is, with no
letter beside it.

Rows and entries are compared in Unicode's NFKC and case-folded: "STRASSE" is "Straße", full-width letters and ligatures
are their plain letters, and it does not matter how an accent is encoded. The Turkish capital "İ" is "i". A list of
Turkish or Azerbaijani (`tr`, `az`) reads a capital "I" as "ı", as these languages do, and every other list as "i"; "ı"
and "i" themselves are two letters in all lists.
"""

import functools
import hashlib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import datakit.storage as storage
from datakit.config import file_mark, option
from datakit.errors import ConfigError, InputError
from datakit.filter.rule_set import Measure, MeasuredRows, RuleSet, Signals, short_code
from datakit.read.streams import read_whole
from datakit.text.words import hash_words

ALL: Final = "all"
_BETWEEN: Final = re.compile(r"[\w\s'’.,\-‐‑·・]*")
"""What an entry may hold beside words and still match word by word."""
_NO_WORD: Final = r"[^\pL\pM\pN_]"
_DOTLESS: Final = frozenset({"tr", "az"})
"""Languages whose capital "I" is that of "ı"."""
_OTHER_CODES: Final = {"aze": "az", "azj": "az", "azb": "az"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Words(RuleSet):
    """The lists, and how many of their words a row may have."""

    name: ClassVar[str] = "words"
    counts: ClassVar[bool] = True

    lists: dict[str, str] = option({}, "language = a file with a word or phrase on each line; all: any row", path=True)
    max_listed_words: int = option(0, "drop rows with more words of a list")
    max_listed_word_ratio: float = option(1.0, "drop rows with a larger share of such words")

    def check(self) -> None:
        """Refuse names that cannot be a language, and two lists of one language."""
        for name in self.lists:
            if not re.fullmatch(r"[A-Za-z]{2,3}(?:[-_]\w+)*", name) and name != ALL:
                raise ConfigError(f"lists: expected a language code or {ALL!r}, found {name!r}")
        codes = [_code(name) for name in self.lists]
        if len(set(codes)) < len(codes):
            raise ConfigError(f"lists: two lists are of one language: {', '.join(self.lists)}")

    def resources(self) -> dict[str, Any]:
        """The SHA-256 of each list.

        Raises:
            ConfigError: there is no list.
            InputError: a file that is missing, cannot be read, or holds no word.
        """
        if not self.lists:
            raise ConfigError('the rule set words is on, but has no list: set words.lists.LANGUAGE = "FILE"')
        return {"word_lists": {name: _list_of(name, path).digest for name, path in self.lists.items()}}

    def open(self) -> None:
        """Read the lists."""
        self.resources()

    def ledger(self) -> dict[str, int]:
        """How long each list is."""
        return {f"words_entries_{name}": len(_list_of(name, path).texts) for name, path in self.lists.items()}

    def counted_with(self) -> dict[str, Any]:
        """The languages; the lists are among the resources."""
        return {"lists": sorted(self.lists)}

    def count_rows(self, rows: MeasuredRows) -> Signals:
        """`words_all`: words of each row; for each list, how many entries it has, and the number of the first one."""
        given = pc.fill_null(rows.texts, "")
        texts = {False: comparable(given, dotless=False)}
        words = {False: hash_words(texts[False])}
        counts = {"words_all": np.diff(words[False][1])}
        languages = [label and _code(label) for label in rows.languages.to_pylist()]
        for name, path in self.lists.items():
            if (dotless := _code(name) in _DOTLESS) and True not in texts:
                texts[True] = comparable(given, dotless)
                words[True] = hash_words(texts[True])
            of = np.flatnonzero([code in (None, "", _code(name)) or name == ALL for code in languages])
            number, first = _word_list(path, dotless).matches(texts[dotless], *words[dotless], of)
            counts |= {f"words_{name}": number, f"words_{name}_entry": first}
        return Signals(counts)

    def measure(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The lists, one by one: numbers, then shares."""
        counts = rows.counted(self)
        for name, path in self.lists.items():
            number = counts[f"words_{name}"]
            says = functools.partial(_says, path, name, number, counts[f"words_{name}_entry"])
            yield Measure("max_listed_words", number, label=name, says=says)
            listed = counts.ratio(f"words_{name}", "words_all")
            yield Measure("max_listed_word_ratio", np.minimum(listed, 1.0), label=name, says=says)


def _code(name: str) -> str:
    code = short_code(name)
    return ALL if name == ALL else _OTHER_CODES.get(code, code)


def comparable(texts: pa.Array, dotless: bool) -> pa.Array:
    """Texts (string[N] without nulls) in NFKC, "İ" as "i"; `dotless`: "I" as "ı". Words are case-folded by their hash.

    A small "i" with a dot above it, which software for other languages makes of "İ", is "i" too.
    """
    plain = pc.string_is_ascii(texts)
    if not pc.all(plain).as_py():
        others = pc.invert(plain)
        made = [_dotted(unicodedata.normalize("NFKC", text)) for text in texts.filter(others).to_pylist()]
        texts = pc.replace_with_mask(texts, others, pa.array(made, texts.type))
    return pc.replace_substring(texts, "I", "ı") if dotless else texts


def _dotted(text: str) -> str:
    return text.replace("İ", "i").replace("i\u0307", "i")


def _list_of(name: str, path: str) -> "WordList":
    return _word_list(path, _code(name) in _DOTLESS)


def _says(
    path: str, name: str, number: NDArray[np.int64], entries: NDArray[np.int64], which: NDArray[np.int64]
) -> list[str]:
    texts = _list_of(name, path).texts
    return [f"{number[row]} of the list {name}, the first is {texts[entries[row]]!r}" for row in which.tolist()]


@dataclass(frozen=True, slots=True)
class WordList:
    """A list, ready to be looked up."""

    texts: tuple[str, ...]
    """The entries, in their order; those that match word by word first."""
    lengths: NDArray[np.int64]
    """int64[L]: the different numbers of words of such entries."""
    slots: NDArray[np.uint64]
    numbers: NDArray[np.int32]
    """The table of their hashes."""
    literals: tuple[str, ...]
    """RE2 patterns of the other entries, case-folded."""
    digest: str

    def matches(
        self, texts: pa.Array, hashes: NDArray[np.uint64], starts: NDArray[np.int64], of: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(how often entries stand in each text, the number of the first one found), int64[N] each.

        `texts`: as `comparable` makes them. hashes uint64[W] and starts int64[N+1]: the words of the texts;
        `of` int64[R]: the texts to look at.
        """
        from datakit.filter import _kernels_lookup

        number, first = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64)
        rows, keys, places = _kernels_lookup.find(hashes, starts, self.lengths, self.slots, self.numbers)
        wanted = np.isin(rows, of)
        rows, keys, places = rows[wanted], keys[wanted], places[wanted]
        order = np.argsort(-places, kind="stable")
        np.add.at(number, rows, 1)
        first[rows[order]] = keys[order]
        folded = [text.casefold() for text in texts.take(pa.array(of)).to_pylist()] if self.literals else []
        looked_at = pa.array(folded, texts.type)
        for at, pattern in enumerate(self.literals, start=len(self.texts) - len(self.literals)):
            found = pc.count_substring_regex(looked_at, pattern).to_numpy().astype(np.int64)
            first[of[(found > 0) & (number[of] == 0)]] = at
            number[of] += found
        return number, first


def _word_list(path: str, dotless: bool) -> WordList:
    """Read a list; read again only if the file changed. `dotless`: its capital "I" is that of "ı".

    Raises:
        InputError: the file is missing, cannot be read, or holds no word.
    """
    file = storage.here(path)
    if not file.is_file():
        raise InputError(f"{path}: is not there; expected a file with a word or phrase on each line")
    return _read(str(file), dotless, tuple(file_mark(file)))


@functools.lru_cache(maxsize=64)
def _read(path: str, dotless: bool, _mark: Any) -> WordList:
    from datakit.filter import _kernels_lookup

    raw, data = read_whole(path)
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as e:
        raise InputError(f"{path}: is not UTF-8 ({e.reason} at byte {e.start}); save the list as UTF-8") from None
    entries = list(dict.fromkeys(line for raw_line in lines if (line := raw_line.strip()) and line[0] != "#"))
    if not entries:
        raise InputError(f"{path}: holds no word; expected a word or phrase on each line")
    compared = dict(zip(entries, comparable(pa.array(entries, pa.string()), dotless).to_pylist(), strict=True))
    texts = [e for e, form in compared.items() if _BETWEEN.fullmatch(form) and re.search(r"[^\W_]", form)]
    literals = [entry for entry in entries if entry not in set(texts)]
    hashes, starts = hash_words(pa.array([compared[entry] for entry in texts], pa.string()))
    sizes = np.diff(starts)
    phrases = [_kernels_lookup.rolling(hashes[starts[i] : starts[i + 1]], sizes[i])[0] for i in range(len(texts))]
    keys, which = np.unique(np.array(phrases, np.uint64), return_index=True)  # two spellings of one phrase: the first
    slots, order = _kernels_lookup.table_of(keys)
    patterns = [rf"(?:^|{_NO_WORD}){_escaped(compared[entry].casefold())}(?:{_NO_WORD}|$)" for entry in literals]
    return WordList(
        texts=(*texts, *literals),
        lengths=np.unique(sizes),
        slots=slots,
        numbers=np.append(which, 0).astype(np.int32)[order],
        literals=tuple(patterns),
        digest=hashlib.sha256(raw).hexdigest(),
    )


def _escaped(entry: str) -> str:
    """An RE2 pattern for a text as it is."""
    return "".join(c if c.isalnum() else f"\\x{{{ord(c):x}}}" for c in entry)
