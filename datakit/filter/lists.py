"""Lists of the user. `urls`: blocklists of domains and URLs. `words`: word lists by language. `regex`: patterns.

The name of a list or pattern is the reason: `urls.adult`, `words.en`, `regex.cookies`. Lists count by their content.

**urls.** A list is a file with a domain or a URL on each line, or a folder with files named `domains` and `urls`, as
the UT1 blacklists are published; hosts files and filters like `||domain^` are read, too; compressed or not. A domain
stands for itself and all its subdomains. A URL with a path stands for the pages below it: `host/a` is `host/a`,
`host/a/b` and `host/a?c=d`, not `host/ab`. Domains are compared in ASCII (RFC 3490), so that a list may have
`münchen.de` or `xn--mnchen-3ya.de`. What does not count: `www.` at a list's domain, the case of paths, ports, logins,
and what `text.page_urls` ignores. The rows have their URL in a column or in `extra`. A row without one stays, and is
counted.

**words.** A list is a file with an entry on each line, a word or several; `#` begins a comment. Its name is a language
code (`en`, `deu_Latn`), or `all`. A row is searched with the lists of its language, or with all where its language is
unknown. Entries match whole words, whatever their case: runs of letters, marks and digits, as dedup has them, so that
"class" holds no other word, and a phrase matches across spaces, line breaks, hyphens and punctuation. In scripts
written without spaces (Han, kana, Thai, Lao, Khmer, Burmese) each character is a word, so that an entry matches
wherever its characters follow each other. An entry with signs that words do not have ("a$$", an emoji) must stand as it
is, with no letter beside it. Rows and entries are compared in Unicode's NFKC and case-folded: "STRASSE" is "Straße",
full-width letters and ligatures are their plain letters, and it does not matter how an accent is encoded. The Turkish
capital "İ" is "i". A list of Turkish or Azerbaijani (`tr`, `az`) reads a capital "I" as "ı", as these languages do
(Unicode's SpecialCasing), and every other list as "i"; "ı" and "i" themselves are two letters in all lists.

**regex.** Patterns are RE2 (Cox 2010), which Arrow runs over whole columns. RE2 has no look-around and no
back-references; in return every pattern takes time linear in the text, so that none can hang a run. (?i) before a
pattern ignores case; (?m) makes ^ and $ match at every line.
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
from datakit.filter.rule_set import Measure, MeasuredRows, Report, Resources, RuleSet, Signals
from datakit.filter.stop_words import short_code
from datakit.read.streams import read_whole
from datakit.text.page_urls import page_form, urls_at
from datakit.text.words import hash_values, hash_words

# URLs.

_FOLDER_FILES: Final = re.compile(r"(?:domains|urls)(?:\.\w+)*")
_PLAIN: Final = r"^[a-z0-9_][a-z0-9_.-]*$"
_HOSTS_FILE: Final = re.compile(r"(?:0\.0\.0\.0|127\.0\.0\.1|::1?|fe80::\S*|ff\d\d::\S*)\s+(\S+)(?:\s*#.*)?")
_OWN_NAMES: Final = ("localhost", "localhost.localdomain", "local", "broadcasthost", "0.0.0.0")
_MAX_PARTS: Final = 32
"""Parts of a host, and of a path, that are looked at: a URL with more matches by the last parts of its host and the
first ones of its path."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Urls(RuleSet):
    """The lists, and where rows have their URL."""

    name: ClassVar[str] = "urls"
    measured_with: ClassVar[tuple[str, ...]] = ("field", "lists")

    lists: dict[str, str] = option(
        {}, "name = a file with a domain or URL on each line, or a folder with domains and urls (UT1)", path=True
    )
    allow: str = option("", "such a file or folder: rows whose URL is on it stay, whatever the lists say", path=True)
    field: str = option("url", "where a row has its URL: a column, or a field of extra; dots lead into it (meta.url)")
    max_entries: int = option(0, "drop rows whose URL is matched by more entries of a list")
    min_urls: int = option(0, "1: drop rows without a URL")

    def check(self) -> None:
        """Refuse names that cannot be a reason."""
        for name in self.lists:
            if not re.fullmatch(r"[\w-]+", name):
                raise ConfigError(f"lists: a list's name is letters, digits, _ and -; found {name!r}")

    def resources(self) -> Resources:
        """The SHA-256 of the files of each list, how long it is, and its lines that are no domain and no URL.

        Raises:
            ConfigError: there is no list.
            InputError: a file that is missing, cannot be read, or holds no domain.
        """
        if not self.lists and not self.min_urls:
            raise ConfigError('the rule set urls is on, but has no list: set urls.lists.NAME = "FILE"')
        given = self.lists | ({"allow": self.allow} if self.allow else {})
        read = {name: blocklist(path) for name, path in given.items()}
        return Resources(
            digests={"blocklists": {name: found.digests for name, found in read.items()}},
            lines=tuple(f"urls: {name} has {len(read[name].texts):,} domains and URLs" for name in self.lists),
            counters={f"urls_entries_{name}": len(read[name].texts) for name in self.lists},
            alarms=tuple(
                f"{len(found.unreadable)} lines of the list {name} are no domain and no URL, and block nothing "
                f"({found.unreadable[0]})"
                for name, found in read.items()
                if found.unreadable
            ),
        )

    def signals(self, rows: MeasuredRows) -> Signals:
        """`urls_known`: 1 for a row with a URL. For each list, how many of its entries match, and the first one."""
        urls = urls_at(rows.batch, self.field)
        hashes, bounds = _keys(page_form(urls))
        counts = Signals(urls_known=pc.is_valid(urls).to_numpy(zero_copy_only=False).astype(np.int64))
        allowed = np.zeros(len(urls), np.bool_)
        if self.allow:
            allowed = blocklist(self.allow).matches(hashes, bounds)[0] > 0
        for name in self.lists:
            number, first = blocklist(self.lists[name]).matches(hashes, bounds)
            counts[f"urls_{name}"] = np.where(allowed, 0, number)
            counts[f"urls_{name}_entry"] = first
        return counts

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The lists, one by one, then whether there is a URL."""
        counts = rows.counted(self)
        for name, path in self.lists.items():
            describe = functools.partial(self._entries, name, path, counts[f"urls_{name}_entry"])
            yield Measure("max_entries", counts[f"urls_{name}"], label=name, describe=describe)
        yield Measure("min_urls", counts["urls_known"])

    def report(self, rows: MeasuredRows, stays: NDArray[np.bool_]) -> Report:
        """How many rows have no URL."""
        return Report({"urls_rows_without_url": int((rows.counted(self)["urls_known"] == 0).sum())})

    @staticmethod
    def _entries(name: str, path: str, entries: NDArray[np.int64], which: NDArray[np.int64]) -> list[str]:
        found = blocklist(path).texts.take(pa.array(entries[which])).to_pylist()
        return [f"on the list {name}: {text}" for text in found]


@dataclass(frozen=True, slots=True)
class Blocklist:
    """The entries of a list, in ascending order of their hashes."""

    texts: pa.Array
    """string[E]: domains, and URLs as `host/path`."""
    hashes: NDArray[np.uint64]
    """uint64[E]"""
    digests: list[str]
    """SHA-256 of each file."""
    unreadable: tuple[str, ...]
    """The lines that are no entry."""

    def matches(
        self, keys: NDArray[np.uint64], bounds: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(how many entries are among the keys of each row, the first such entry or 0), int64[N] each.

        keys uint64[K], and int64[N+1]: where those of each row begin.
        """
        at = np.minimum(np.searchsorted(self.hashes, keys), len(self.hashes) - 1)
        hits = np.flatnonzero(self.hashes[at] == keys)
        rows = np.searchsorted(bounds, hits, "right") - 1
        number, first = np.bincount(rows, minlength=len(bounds) - 1), np.zeros(len(bounds) - 1, np.int64)
        first[rows[::-1]] = at[hits[::-1]]
        return number.astype(np.int64), first


def blocklist(path: str) -> Blocklist:
    """Read a list; read again only if a file changed.

    Raises:
        InputError: the file or folder is missing, cannot be read, or holds no domain.
    """
    place = storage.here(path)
    files = sorted(f for f in place.iterdir() if _FOLDER_FILES.fullmatch(f.name)) if place.is_dir() else [place]
    if not files:
        raise InputError(f"{path}: a folder without a file named domains or urls; name the list's file itself")
    for file in files:
        if not file.is_file():
            raise InputError(f"{file}: is not there; expected a file with a domain or URL on each line")
    return _blocklist(tuple(map(str, files)), tuple(tuple(file_mark(f)) for f in files))


@functools.lru_cache(maxsize=16)
def _blocklist(files: tuple[str, ...], _marks: Any) -> Blocklist:
    texts, digests, unreadable = [], [], list[str]()
    for file in files:
        raw, data = read_whole(file)
        digests.append(hashlib.sha256(raw).hexdigest())
        lines = pa.array(data.decode("utf-8-sig", errors="replace").splitlines(), pa.string())
        plain = pc.match_substring_regex(lines, _PLAIN)
        texts.append(pc.replace_substring_regex(lines.filter(plain), r"^www\.(.+\.)|\.$", r"\1"))
        others = {n: lines[n].as_py() for n in pc.indices_nonzero(pc.invert(plain)).to_pylist()}
        found = {n: _entry(line) for n, line in others.items()}
        unreadable += [f"line {n + 1}: {others[n][:80]!r}" for n, entry in found.items() if entry is None]
        made = page_form(pa.array([entry for entry in found.values() if entry], pa.string()))
        texts.append(pc.utf8_lower(pc.replace_substring_regex(made, r"^www\.([^/?]+\.)", r"\1")))
    entries = pc.unique(pa.concat_arrays(texts))
    entries = entries.filter(pc.not_equal(entries, ""))
    if not len(entries):
        raise InputError(f"{files[0]}: holds no domain and no URL; expected one on each line")
    hashes = hash_values(entries)
    order = np.argsort(hashes, kind="stable")
    return Blocklist(entries.take(pa.array(order)), hashes[order], digests, tuple(unreadable))


def _entry(line: str) -> str | None:
    """The domain or URL of a line that is more than a plain domain; "" for none, None for what cannot be read."""
    line = line.strip()
    if not line or line[0] in "#!" or re.fullmatch(r"\[Adblock.*\]", line):
        return ""
    host = _HOSTS_FILE.fullmatch(line)
    if host:
        return "" if host[1] in _OWN_NAMES else host[1]
    filtered = re.fullmatch(r"\|\|([^\s/^$*|]+)\^?(?:\$\S*)?", line)
    line = filtered[1] if filtered else re.sub(r"\s+#.*", "", line)
    line = re.sub(r"^(?:\*?\.)(?=[^.])", "", line)
    line = re.sub(r"^(\w+://)?[^/@\s]+@", r"\1", line)
    return line if re.fullmatch(r"(?:\w+:)?(?://)?[^\s/?#|^*$]*\w[^\s/?#|^*$]*(?:[/?#]\S*)?", line) else None


def _keys(forms: pa.Array) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The hashes of what may stand on a list for URLs in their page form, and int64[N+1]: where those of each begin.

    Of `a.b.c/d/e?f`: the domains a.b.c, b.c and c, each with "", /d, /d/e and /d/e?f.
    """
    keys, bounds = list[str](), [0]
    for form in pc.fill_null(pc.utf8_lower(forms), "").to_pylist():
        host, _, _ = form.partition("/")[0].partition("?")
        path, mark, query = form[len(host) :].partition("?")
        host = re.sub(r":\d*$|\.$", "", host.rpartition("@")[2])
        labels = [host] if re.fullmatch(r"[\d.]+|\[.*", host) else host.split(".")[-_MAX_PARTS:]
        domains = [".".join(labels[i:]) for i in range(len(labels))] if host else []
        ends = [path[: cut.start()] for cut in re.finditer("/|$", path)][: _MAX_PARTS + 1]
        ends += [path + mark + query] if mark else []
        keys += [domain + end for domain in domains for end in ends]
        bounds.append(len(keys))
    return hash_values(pa.array(keys, pa.string())), np.array(bounds, np.int64)


# Words.

ALL: Final = "all"
_BETWEEN: Final = re.compile(r"[\w\s'’.,\-‐‑·・]*")
"""What an entry may hold beside words and still match word by word."""
_NO_WORD: Final = r"[^\pL\pM\pN_]"
_DOTLESS: Final = frozenset({"tr", "az"})
"""Languages whose capital "I" is that of "ı"."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Words(RuleSet):
    """The lists, and how many of their words a row may have."""

    name: ClassVar[str] = "words"
    measured_with: ClassVar[tuple[str, ...]] = ("lists",)

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

    def resources(self) -> Resources:
        """The SHA-256 of each list, and how long it is.

        Raises:
            ConfigError: there is no list.
            InputError: a file that is missing, cannot be read, or holds no word.
        """
        if not self.lists:
            raise ConfigError('the rule set words is on, but has no list: set words.lists.LANGUAGE = "FILE"')
        read = {name: word_list(name, path) for name, path in self.lists.items()}
        return Resources(
            digests={"word_lists": {name: found.digest for name, found in read.items()}},
            counters={f"words_entries_{name}": len(found.texts) for name, found in read.items()},
        )

    def signals(self, rows: MeasuredRows) -> Signals:
        """`words_all`: words of each row; for each list, how many entries it has, and the number of the first one."""
        texts = {dotless: comparable(rows.texts, dotless) for dotless in {False, *map(_is_dotless, self.lists)}}
        words = {dotless: hash_words(text) for dotless, text in texts.items()}
        counts = Signals(words_all=np.diff(words[False][1]))
        languages = [label and _code(label) for label in rows.languages.to_pylist()]
        for name, path in self.lists.items():
            of = np.flatnonzero([code in (None, "", _code(name)) or name == ALL for code in languages])
            dotless = _is_dotless(name)
            found = word_list(name, path).matches(texts[dotless], *words[dotless], of)
            counts[f"words_{name}"], counts[f"words_{name}_entry"] = found
        return counts

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The lists, one by one: numbers, then shares."""
        counts = rows.counted(self)
        for name, path in self.lists.items():
            number = counts[f"words_{name}"]
            describe = functools.partial(self._entries, name, path, number, counts[f"words_{name}_entry"])
            yield Measure("max_listed_words", number, label=name, describe=describe)
            listed = np.minimum(counts.ratio(f"words_{name}", "words_all"), 1.0)
            yield Measure("max_listed_word_ratio", listed, label=name, describe=describe)

    @staticmethod
    def _entries(
        name: str, path: str, number: NDArray[np.int64], entries: NDArray[np.int64], which: NDArray[np.int64]
    ) -> list[str]:
        texts = word_list(name, path).texts
        return [f"{number[row]} of the list {name}, the first is {texts[entries[row]]!r}" for row in which.tolist()]


def _code(name: str) -> str:
    return ALL if name == ALL else short_code(name)


def _is_dotless(name: str) -> bool:
    return _code(name) in _DOTLESS


def comparable(texts: pa.Array, dotless: bool) -> pa.Array:
    """Texts (string[N] without nulls) in NFKC, "İ" as "i"; `dotless`: "I" as "ı". Words are case-folded by their hash.

    A small "i" with a dot above it, which software for other languages makes of "İ", is "i" too.
    """
    plain = pc.string_is_ascii(texts)
    if not pc.all(plain).as_py():
        others = pc.invert(plain)
        made = [unicodedata.normalize("NFKC", text) for text in texts.filter(others).to_pylist()]
        made = [text.replace("İ", "i").replace("i\u0307", "i") for text in made]
        texts = pc.replace_with_mask(texts, others, pa.array(made, texts.type))
    return pc.replace_substring(texts, "I", "ı") if dotless else texts


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


def word_list(name: str, path: str) -> WordList:
    """Read the list of a language; read again only if the file changed.

    Raises:
        InputError: the file is missing, cannot be read, or holds no word.
    """
    file = storage.here(path)
    if not file.is_file():
        raise InputError(f"{path}: is not there; expected a file with a word or phrase on each line")
    return _word_list(str(file), _is_dotless(name), tuple(file_mark(file)))


@functools.lru_cache(maxsize=64)
def _word_list(path: str, dotless: bool, _mark: Any) -> WordList:
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
    escaped = [re.sub(r"\W", lambda sign: f"\\x{{{ord(sign[0]):x}}}", compared[e].casefold()) for e in literals]
    return WordList(
        texts=(*texts, *literals),
        lengths=np.unique(sizes),
        slots=slots,
        numbers=np.append(which, 0).astype(np.int32)[order],
        literals=tuple(f"(?:^|{_NO_WORD}){entry}(?:{_NO_WORD}|$)" for entry in escaped),
        digest=hashlib.sha256(raw).hexdigest(),
    )


# Patterns.


@dataclass(frozen=True, kw_only=True, slots=True)
class Regex(RuleSet):
    """Patterns by name, and how often they may match."""

    name: ClassVar[str] = "regex"
    measured_with: ClassVar[tuple[str, ...]] = ("drop", "keep")

    drop: dict[str, str] = option({}, "name = pattern (RE2): rows that match are dropped")
    keep: dict[str, str] = option({}, "name = pattern (RE2): rows that match none of them are dropped")
    max_drop_matches: int = option(0, "drop rows in which one pattern of drop matches more often")
    min_keep_matches: int = option(1, "drop rows in which the patterns of keep match less often, all together")

    def check(self) -> None:
        """Refuse patterns that RE2 does not know, and names that cannot be a reason."""
        for what, patterns in (("drop", self.drop), ("keep", self.keep)):
            for name, pattern in patterns.items():
                if not re.fullmatch(r"[\w-]+", name) or (what, name) == ("drop", "keep"):
                    raise ConfigError(f"{what}: a pattern's name is letters, digits, _ and -, and not keep: {name!r}")
                try:
                    pc.count_substring_regex(pa.array([""]), pattern)
                except pa.ArrowInvalid as e:
                    why = str(e).partition(": ")[2] or e
                    raise ConfigError(
                        f"{what}.{name} = {pattern!r}: is no RE2 pattern ({why}). RE2 has no look-around, no "
                        "back-references and at most 1000 repetitions, so that no pattern can hang"
                    ) from None

    def resources(self) -> Resources:
        """None.

        Raises:
            ConfigError: there is no pattern.
        """
        if not self.drop and not self.keep:
            raise ConfigError('the rule set regex is on, but has no pattern: set regex.drop.NAME = "PATTERN"')
        return Resources()

    def signals(self, rows: MeasuredRows) -> Signals:
        """`regex_drop_NAME`, `regex_keep_NAME`: how often each pattern matches, without overlap."""
        return Signals(
            {
                f"regex_{what}_{name}": pc.count_substring_regex(rows.texts, pattern).to_numpy().astype(np.int64)
                for what, patterns in (("drop", self.drop), ("keep", self.keep))
                for name, pattern in patterns.items()
            }
        )

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The patterns of `drop`, one by one, then those of `keep` together."""
        counts = rows.counted(self)
        for name in self.drop:
            yield Measure("max_drop_matches", counts[f"regex_drop_{name}"], label=name)
        if self.keep:
            together = np.sum([counts[f"regex_keep_{name}"] for name in self.keep], axis=0)
            yield Measure("min_keep_matches", together, label="keep")
