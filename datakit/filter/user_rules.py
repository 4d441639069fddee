"""What the user brings: lists (`urls`, `words`), patterns (`regex`), limits (`lengths`) and shares (`sample`).

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
wherever its characters follow each other. An entry with signs that words do not have ("a$$", an emoji) matches
nothing, and is an alarm: `regex` finds it. Rows and entries are compared in Unicode's NFKC and case-folded: "STRASSE"
is "Straße", full-width letters and ligatures are their plain letters, and it does not matter how an accent is
encoded. The Turkish capital "İ" is "i". A list of Turkish or Azerbaijani (`tr`, `az`) reads a capital "I" as "ı", as
these languages do (Unicode's SpecialCasing), and every other list as "i"; "ı" and "i" themselves are two letters in
all lists.

**regex.** Patterns are RE2 (Cox 2010), which Arrow runs over whole columns. RE2 has no look-around and no
back-references; in return every pattern takes time linear in the text, so that none can hang a run. (?i) before a
pattern ignores case; (?m) makes ^ and $ match at every line.

**lengths.** Characters, words and tokens are those of the part of a row that the stage looks at (`on`), turns those of
the whole conversation: a turn is a message of the user or the assistant. A character is a code point; words are
Gopher's. Tokens are the ids of a tokenizer, without special tokens and without a chat template.

**sample.** A sample is drawn by the hash of each row's content and the seed alone. So more rows, other files or another
order change nothing for a row; a smaller share is part of a larger one; and rows of equal content stay or go together.
It is a draw of rows: sources of long rows keep about the same share of text, not exactly.
"""

import functools
import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import datakit.storage as storage
from datakit.config import OF_TURNS, file_mark, option
from datakit.data import Bools, Hashes, Integers, Numbers, splitmix64
from datakit.errors import ConfigError, InputError
from datakit.filter.answers import turns_of
from datakit.filter.rule_set import Measure, MeasuredRows, Report, Resources, RuleSet, Signals, short_code
from datakit.read.streams import read_whole
from datakit.text.ids import open_tokenizer, tokenizer_digest
from datakit.text.page_urls import page_form, urls_at
from datakit.text.words import binary_digest, hash_values, hash_words, stated_digest

# Lists: entries of one key or of several in a row, looked up by their hash.

Keys = tuple[Hashes, Integers]
"""The hashes of the keys of some texts, and int64[N+1]: where those of each text begin."""


class EntryList(NamedTuple):
    """A list, ready to be looked up."""

    texts: pa.Array
    """string[E]: the entries."""
    lengths: Integers
    """int64[L]: the different numbers of keys of entries."""
    table: tuple[Hashes, Numbers]
    """The slots and numbers of their hashes: see `_kernels_lookup.table_of`."""
    digests: tuple[str, ...]
    """SHA-256 of each file."""
    unreadable: tuple[str, ...]
    """The lines that are no entry."""

    @classmethod
    def of(cls, texts: pa.Array, keys: Keys, digests: Sequence[str], unreadable: Sequence[str]) -> "EntryList":
        """The list of entries with these keys."""
        from datakit.filter import _kernels_lookup as kernels

        hashes, starts = keys
        sizes = np.diff(starts)
        whole = kernels.grams_of(hashes, starts, sizes)[starts[:-1]]
        different, first = np.unique(whole, return_index=True)  # two spellings of one entry: the first
        slots, order = kernels.table_of(different)
        table = slots, np.append(first, 0).astype(np.int32)[order]
        return cls(texts, np.unique(sizes), table, tuple(digests), tuple(unreadable))

    def matches(self, keys: Keys, of: Bools) -> tuple[Integers, Integers]:
        """(how often entries stand in each text, the number of the first one found or 0), int64[N] each.

        `keys` of the texts; `of` (bool[N]): the texts to look at.
        """
        from datakit.filter import _kernels_lookup as kernels

        first, hits = np.zeros(len(of), np.int64), kernels.find(*keys, self.lengths, *self.table)
        hits = hits[of[hits[:, 0]]]
        rows, entries, _ = hits[np.argsort(-hits[:, 2], kind="stable")].T  # the first place is written last
        first[rows] = entries
        return np.bincount(rows, minlength=len(of)), first


def _files(path: str, expected: str, folder: re.Pattern[str] | None = None) -> tuple[Path, ...]:
    """The files of a list: the file, or what is called like `folder` in a folder.

    Raises:
        InputError: there is none.
    """
    place = storage.here(path)
    inside = place.iterdir() if folder and place.is_dir() else [place]
    files = tuple(sorted(f for f in inside if f == place or (folder and folder.fullmatch(f.name))))
    if not files or not all(file.is_file() for file in files):
        raise InputError(f"{path}: is not there; expected {expected}")
    return files


@dataclass(frozen=True, kw_only=True, slots=True)
class _Lists(RuleSet):
    """Base class of rule sets with lists: for each, a row has the number of its entries, and the first one."""

    told: ClassVar[str]
    """For people: `number` entries of the list `name`, the first is `entry`."""

    lists: dict[str, str] = option({}, "name = file", path=True)

    def entries(self, name: str) -> EntryList:
        """The list of a name; read again only if a file changed.

        Raises:
            InputError: a file that is missing, cannot be read, or holds no entry.
        """
        raise NotImplementedError

    def loaded(self) -> dict[str, EntryList]:
        """All lists, by name.

        Raises:
            ConfigError: there is no list.
        """
        if not self.lists:
            raise ConfigError(f'the rule set {self.name} is on, but has no list: set {self.name}.lists.NAME = "FILE"')
        return {name: self.entries(name) for name in self.lists}

    def resources(self) -> Resources:
        """The SHA-256 of the files of each list, how long it is, and its lines that are no entry."""
        read = self.loaded()
        return Resources(
            digests={f"{self.name}_lists": {name: list(found.digests) for name, found in read.items()}},
            lines=tuple(f"{self.name}: {name} has {len(found.texts):,} entries" for name, found in read.items()),
            counters={f"{self.name}_entries_{name}": len(found.texts) for name, found in read.items()},
            alarms=tuple(
                f"{len(found.unreadable)} lines of the list {name} are no entry, and match nothing "
                f"({found.unreadable[0]})"
                for name, found in read.items()
                if found.unreadable
            ),
        )

    def listed(self, rows: MeasuredRows, threshold: str) -> Iterator[Measure]:
        """The number of entries of each list, one by one."""
        counts = rows.counted(self)
        for name in self.lists:
            number, first = counts[f"{self.name}_{name}"], counts[f"{self.name}_{name}_entry"]
            describe = functools.partial(self._describe, name, number, first)
            yield Measure(threshold, number, label=name, describe=describe)

    def _describe(self, name: str, number: Integers, first: Integers, rows: Integers) -> list[str]:
        entries = self.entries(name).texts.take(pa.array(first[rows])).to_pylist()
        return [self.told.format(name=name, number=n, entry=e) for n, e in zip(number[rows], entries, strict=True)]


# URLs.

_FOLDER_FILES: Final = re.compile(r"(?:domains|urls)(?:\.\w+)*")
_PLAIN: Final = r"^[a-z0-9_][a-z0-9_.-]*$"
_HOSTS_FILE: Final = re.compile(r"(?:0\.0\.0\.0|127\.0\.0\.1|::1?|fe80::\S*|ff\d\d::\S*)\s+(\S+)(?:\s*#.*)?")
_OWN_NAMES: Final = ("localhost", "localhost.localdomain", "local", "broadcasthost", "0.0.0.0")
_MAX_PARTS: Final = 32
"""Parts of a host, and of a path, that are looked at: a URL with more matches by the last parts of its host and the
first ones of its path."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Urls(_Lists):
    """The lists, and where rows have their URL."""

    name: ClassVar[str] = "urls"
    measured_with: ClassVar[tuple[str, ...]] = ("field", "lists")
    told: ClassVar[str] = "on the list {name}: {entry}"

    lists: dict[str, str] = option(
        {}, "name = a file with a domain or URL on each line, or a folder with domains and urls (UT1)", path=True
    )
    allow: str = option("", "such a file or folder: rows whose URL is on it stay, whatever the lists say", path=True)
    field: str = option("url", "where a row has its URL: a column, or a field of extra; dots lead into it (meta.url)")
    max_entries: int = option(0, "drop rows whose URL is matched by more entries of a list", advanced=True)
    min_urls: int = option(0, "1: drop rows without a URL")

    def __post_init__(self) -> None:
        RuleSet.__post_init__(self)
        for name in self.lists:
            if not re.fullmatch(r"[\w-]+", name):
                raise ConfigError(f"lists: a list's name is letters, digits, _ and -; found {name!r}")

    def loaded(self) -> dict[str, EntryList]:
        """The lists, and that of URLs that stay; with `min_urls` there may be none."""
        lists = {} if self.min_urls and not self.lists else _Lists.loaded(self)
        return lists | ({"allow": blocklist(self.allow)} if self.allow else {})

    def entries(self, name: str) -> EntryList:
        """The domains and URLs of a list."""
        return blocklist(self.lists[name])

    def signals(self, rows: MeasuredRows) -> Signals:
        """`urls_known`: 1 for a row with a URL. For each list, how many of its entries match, and the first one."""
        urls = urls_at(rows.batch, self.field)
        keys, known = _url_keys(page_form(urls)), pc.is_valid(urls).to_numpy(zero_copy_only=False)
        looked_at = np.ones(len(urls), np.bool_)
        if self.allow:
            looked_at = blocklist(self.allow).matches(keys, looked_at)[0] == 0
        counts = Signals(urls_known=known.astype(np.int64))
        for name in self.lists:
            found = self.entries(name).matches(keys, looked_at)
            counts[f"urls_{name}"], counts[f"urls_{name}_entry"] = found
        return counts

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The lists, one by one, then whether there is a URL."""
        yield from self.listed(rows, "max_entries")
        yield Measure("min_urls", rows.counted(self)["urls_known"])

    def report(self, rows: MeasuredRows, stays: Bools) -> Report:
        """How many rows have no URL."""
        return Report({"urls_rows_without_url": int((rows.counted(self)["urls_known"] == 0).sum())})


def blocklist(path: str) -> EntryList:
    """Read a list; read again only if a file changed.

    Raises:
        InputError: the file or folder is missing, cannot be read, or holds no domain.
    """
    expected = "a file with a domain or URL on each line, or a folder with files named domains or urls"
    files = _files(path, expected, _FOLDER_FILES)
    return _blocklist(files, *(tuple(file_mark(file)) for file in files))


@functools.lru_cache(maxsize=16)
def _blocklist(files: tuple[Path, ...], *_marks: tuple[int, ...]) -> EntryList:
    texts, digests, unreadable = [], [], list[str]()
    for file in files:
        raw, data = read_whole(str(file))
        digests.append(hashlib.sha256(raw).hexdigest())
        lines = pa.array(data.decode("utf-8-sig", errors="replace").splitlines(), pa.string())
        plain = pc.match_substring_regex(lines, _PLAIN)
        texts.append(pc.replace_substring_regex(lines.filter(plain), r"^www\.(.+\.)|\.$", r"\1"))
        found = list[str]()
        for number in pc.indices_nonzero(pc.invert(plain)).to_pylist():
            line = lines[number].as_py()
            if (entry := _url_entry(line)) is None:
                unreadable.append(f"line {number + 1}: {line[:80]!r}")
            else:
                found.append(entry)
        made = page_form(pa.array(found, pa.string()))
        texts.append(pc.utf8_lower(pc.replace_substring_regex(made, r"^www\.([^/?]+\.)", r"\1")))
    entries = pc.unique(pa.concat_arrays(texts))
    entries = entries.filter(pc.not_equal(entries, ""))
    if not len(entries):
        raise InputError(f"{files[0]}: holds no domain and no URL; expected one on each line")
    keys = hash_values(entries), np.arange(len(entries) + 1, dtype=np.int64)
    return EntryList.of(entries, keys, digests, unreadable)


def _url_entry(line: str) -> str | None:
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


def _url_keys(forms: pa.Array) -> Keys:
    """What may stand on a list for URLs in their page form.

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
_BETWEEN: Final = frozenset("'’.,-‐‑·・_")
"""What an entry may hold beside letters, marks, digits and white space, and still match word by word."""
_DOTLESS: Final = frozenset({"tr", "az"})
"""Languages whose capital "I" is that of "ı"."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Words(_Lists):
    """The lists, and how many of their words a row may have."""

    name: ClassVar[str] = "words"
    measured_with: ClassVar[tuple[str, ...]] = ("lists",)
    told: ClassVar[str] = "{number} of the list {name}, the first is {entry!r}"

    lists: dict[str, str] = option({}, "language = a file with a word or phrase on each line; all: any row", path=True)
    max_listed_words: int = option(0, "drop rows with more words of a list")

    def __post_init__(self) -> None:
        RuleSet.__post_init__(self)
        for name in self.lists:
            if not re.fullmatch(r"[A-Za-z]{2,3}(?:[-_]\w+)*", name) and name != ALL:
                raise ConfigError(f"lists: expected a language code or {ALL!r}, found {name!r}")
        codes = [_code(name) for name in self.lists]
        if len(set(codes)) < len(codes):
            raise ConfigError(f"lists: two lists are of one language: {', '.join(self.lists)}")

    def entries(self, name: str) -> EntryList:
        """The words and phrases of the list of a language."""
        return word_list(name, self.lists[name])

    def signals(self, rows: MeasuredRows) -> Signals:
        """For each list, how many of its entries each row has, and the number of the first one."""
        keys = {dotless: hash_words(comparable(rows.texts, dotless)) for dotless in set(map(_is_dotless, self.lists))}
        counts, languages = Signals(), [label and _code(label) for label in rows.languages.to_pylist()]
        for name in self.lists:
            of = np.array([code in (None, "", _code(name)) or name == ALL for code in languages], np.bool_)
            found = self.entries(name).matches(keys[_is_dotless(name)], of)
            counts[f"words_{name}"], counts[f"words_{name}_entry"] = found
        return counts

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The lists, one by one."""
        return self.listed(rows, "max_listed_words")


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


def word_list(name: str, path: str) -> EntryList:
    """Read the list of a language; read again only if the file changed.

    Raises:
        InputError: the file is missing, cannot be read, or holds no word.
    """
    (file,) = _files(path, "a file with a word or phrase on each line")
    return _word_list(file, _is_dotless(name), *file_mark(file))


@functools.lru_cache(maxsize=64)
def _word_list(path: Path, dotless: bool, *_mark: int) -> EntryList:
    raw, data = read_whole(str(path))
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as e:
        raise InputError(f"{path}: is not UTF-8 ({e.reason} at byte {e.start}); save the list as UTF-8") from None
    entries = list(dict.fromkeys(line for raw_line in lines if (line := raw_line.strip()) and line[0] != "#"))
    forms = dict(zip(entries, comparable(pa.array(entries, pa.string()), dotless).to_pylist(), strict=True))
    texts = [e for e, form in forms.items() if _is_words(form)]
    if not texts:
        raise InputError(f"{path}: holds no word; expected a word or phrase on each line")
    keys = hash_words(pa.array([forms[entry] for entry in texts], pa.string()))
    unreadable = [repr(entry) for entry in entries if entry not in set(texts)]
    return EntryList.of(pa.array(texts, pa.string()), keys, [hashlib.sha256(raw).hexdigest()], unreadable)


def _is_words(form: str) -> bool:
    known = all(c.isspace() or c in _BETWEEN or unicodedata.category(c)[0] in "LMN" for c in form)
    return known and any(map(str.isalnum, form))


# Patterns.


@dataclass(frozen=True, kw_only=True, slots=True)
class Regex(RuleSet):
    """Patterns by name, and how often they may match."""

    name: ClassVar[str] = "regex"
    measured_with: ClassVar[tuple[str, ...]] = ("drop", "keep")

    drop: dict[str, str] = option({}, "name = pattern (RE2): rows that match are dropped")
    keep: dict[str, str] = option({}, "name = pattern (RE2): rows that match none of them are dropped")
    max_drop_matches: int = option(
        0, "drop rows in which one pattern of drop matches more often", acts_with={"drop": ()}
    )
    min_keep_matches: int = option(
        1, "drop rows in which the patterns of keep match less often, all together", acts_with={"keep": ()}
    )

    def __post_init__(self) -> None:
        RuleSet.__post_init__(self)
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


# Limits and shares.

NO_LIMIT: Final = 10**9
"""More than any row has."""

_BITS: Final = 53
"""Of a draw: as many as a float holds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lengths(RuleSet):
    """The shortest and the longest rows; nothing is limited by default."""

    name: ClassVar[str] = "lengths"
    shared: ClassVar[bool] = True
    measured_with: ClassVar[tuple[str, ...]] = ("tokenizer",)

    min_chars: int = option(0, "drop rows with fewer characters")
    max_chars: int = option(NO_LIMIT, "drop rows with more characters")
    min_words: int = option(0, "drop rows with fewer words")
    max_words: int = option(NO_LIMIT, "drop rows with more words")
    min_tokens: int = option(0, "drop rows with fewer tokens")
    max_tokens: int = option(NO_LIMIT, "drop rows with more tokens")
    min_turns: int = option(0, "drop conversations with fewer turns", acts_with=OF_TURNS)
    max_turns: int = option(NO_LIMIT, "drop conversations with more turns", acts_with=OF_TURNS)
    tokenizer: str = option(
        "",
        "a tokenizer.json or its folder; what tokens are counted with",
        path=True,
        acts_with={"min_tokens": (), "max_tokens": ()},
    )

    def __post_init__(self) -> None:
        RuleSet.__post_init__(self)
        if (self.min_tokens > 0 or self.max_tokens < NO_LIMIT) and not self.tokenizer:
            raise ConfigError("min_tokens and max_tokens need a tokenizer: name its tokenizer.json or folder")

    def resources(self) -> Resources:
        """The tokenizer.

        Raises:
            ModelError: the file is missing or no tokenizer.
        """
        return Resources({"lengths_tokenizer": tokenizer_digest(self.tokenizer)} if self.tokenizer else {})

    def signals(self, rows: MeasuredRows) -> Signals:
        """`lengths_tokens` where there is a tokenizer, `lengths_turns` of rows with turns."""
        counts = Signals()
        if self.tokenizer:
            found = open_tokenizer(self.tokenizer).encode_batch_fast(rows.texts.to_pylist(), add_special_tokens=False)
            counts["lengths_tokens"] = np.array([len(one) for one in found], np.int64)
        for name in [n for n in ("messages", "prompt") if n in rows.batch.schema.names]:
            row, said = turns_of(rows.batch.column(name), "user", "assistant")
            turns = np.bincount(row[said], minlength=rows.batch.num_rows).astype(np.int64)
            counts["lengths_turns"] = turns + (name == "prompt")  # the answers of a preference pair are one turn
        return counts

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The measures in the order of the fields."""
        counts = rows.counted(self)
        lengths = {"chars": rows.signals["chars"], "words": rows.signals["words"]}
        lengths |= {n: counts[f"lengths_{n}"] for n in ("tokens", "turns") if f"lengths_{n}" in counts}
        for what, values in lengths.items():
            yield Measure(f"min_{what}", values)
            yield Measure(f"max_{what}", values)


@dataclass(frozen=True, kw_only=True, slots=True)
class RowSample(RuleSet):
    """How large the share is."""

    name: ClassVar[str] = "sample"
    measured_with: ClassVar[tuple[str, ...]] = ("seed",)

    share: float = option(1.0, "the share of rows that stays")
    sources: dict[str, float] = option({}, "source = share, for sources with a share of their own")
    seed: int = option(0, "another seed draws other rows", advanced=True, acts_with={"share": (), "sources": ()})

    def __post_init__(self) -> None:
        RuleSet.__post_init__(self)
        for name, share in {"share": self.share, **self.sources}.items():
            if not 0 <= share <= 1:
                raise ConfigError(f"{name} is a share and lies in [0, 1], found {share}")

    def signals(self, rows: MeasuredRows) -> Signals:
        """`sample_draw`: an integer below 2**53 for each row, as likely as any other."""
        if "content_hash" in rows.batch.schema.names:
            digests = stated_digest(rows.batch.column("content_hash"))
        else:
            digests = binary_digest(rows.whole_rows)
        words = np.frombuffer(digests.buffers()[1], np.uint64)[::2][: len(digests)]
        return Signals(sample_draw=(_mixed(words, self.seed) >> np.uint64(64 - _BITS)).astype(np.int64))

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The draws, as numbers above 0 and at most 1. A row of a source with its own share counts as 0 or 2."""
        draws = (rows.counted(self)["sample_draw"] + 1) / 2**_BITS
        sources = rows.batch.column("source") if self.sources else pa.nulls(len(draws), pa.string())
        names: list[str] = pc.fill_null(sources, "").to_pylist()
        shares = np.array([self.sources.get(name, self.share) for name in names], np.float64)
        own = np.array([name in self.sources for name in names], np.bool_)

        def describe(which: Integers) -> list[str]:
            of = [f", the share of {names[row]}" if own[row] else "" for row in which]
            return [f"draw {draws[row]:.6f} > {shares[row]}{said}" for row, said in zip(which, of, strict=True)]

        yield Measure("share", np.where(own, 2.0 * (draws > shares), draws), describe=describe)

    def report(self, rows: MeasuredRows, stays: Bools) -> Report:
        """The rows of each source with a share of its own: 0 shows a misspelt name."""
        sources = rows.batch.column("source") if self.sources else None
        return Report({f"sample_rows_of_{n}": pc.sum(pc.equal(sources, n)).as_py() or 0 for n in self.sources})


def _mixed(words: Hashes, seed: int) -> Hashes:
    """Words that depend on every bit of the given ones and of the seed."""
    golden = 0x9E3779B97F4A7C15
    return splitmix64((words ^ np.uint64(seed * golden % 2**64)) - np.uint64(golden))  # which adds that number first
