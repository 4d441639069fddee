"""What the user brings: lists (`urls`, `words`) and limits (`lengths`).

The name of a list is the reason: `urls.adult`, `words.en`. Lists count by their content.

**urls.** A list is a file with a domain or a URL on each line, or a folder with files named `domains` and `urls`, as
the UT1 blacklists are published; compressed or not; `#` begins a comment. A domain stands for itself and all its
subdomains. A URL with a path stands for the pages below it: `host/a` is `host/a`, `host/a/b` and `host/a?c=d`, not
`host/ab`. Domains are compared in ASCII (RFC 3490), so that a list may have `münchen.de` or `xn--mnchen-3ya.de`. What
does not count: `www.` at a list's domain, the case of paths, a row's ports and logins, and what `text.page_urls`
ignores. The rows have their URL in a column or in `extra`. A row without one stays, and is counted.

**words.** A list is a file with an entry on each line, a word or several; `#` begins a comment. Its name is a language
code (`en`, `deu_Latn`), or `all`. A row is searched with the lists of its language, or with all where its language is
unknown. Entries match whole words, whatever their case: runs of letters, marks and digits, as dedup has them, so that
"class" holds no other word, and a phrase matches across spaces, line breaks, hyphens and punctuation. In scripts
written without spaces (Han, kana, Thai, Lao, Khmer, Burmese) each character is a word, so that an entry matches
wherever its characters follow each other. Rows and entries are compared in Unicode's NFC and case-folded: "STRASSE" is
"Straße", and it does not matter how an accent is encoded. Folding knows no language: the Turkish "I" is "i", not "ı".

A line that is no entry (two words in a list of URLs, "a$$" or an emoji in a list of words) matches nothing, and is an
alarm.

**lengths.** Characters, words and tokens are those of the part of a row that the stage looks at (`on`). A character is
a code point; words are Gopher's. Tokens are the ids of a tokenizer, without special tokens and without a chat template.
"""

import functools
import hashlib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import datakit.storage as storage
from datakit.config import file_mark, option
from datakit.data import Bools, Hashes, Integers, Numbers
from datakit.errors import ConfigError, InputError
from datakit.filter.rule_set import Measure, MeasuredRows, Report, Resources, RuleSet, Signals, short_code
from datakit.read.streams import read_whole
from datakit.text.ids import open_tokenizer, tokenizer_digest
from datakit.text.page_urls import page_form, urls_at
from datakit.text.words import compose, hash_values, hash_words

# Lists: entries of one key or of several in a row, looked up by their hash.

Keys = tuple[Hashes, Integers]
"""The hashes of the keys of some texts, and int64[N+1]: where those of each text begin."""

_FOLDER_FILES: Final = re.compile(r"(?:domains|urls)(?:\.\w+)*")


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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Lists(RuleSet):
    """Base class of rule sets with lists: for each, a row has the number of its entries, and the first one."""

    entry: ClassVar[str]
    """What stands on a line, for people."""
    told: ClassVar[str]
    """For people: `number` entries of the list `name`, the first is `entry`."""

    lists: dict[str, str] = option({}, "name = file", path=True)
    max_entries: int = option(0, "drop rows with more entries of a list")

    @classmethod
    def keys_of(cls, lines: pa.Array) -> Keys:
        """The keys of the entries of a list."""
        raise NotImplementedError

    @classmethod
    def is_entry(cls, lines: pa.Array) -> pa.Array:
        """bool[E]: which lines of a list are entries."""
        raise NotImplementedError

    def entries(self, name: str) -> EntryList:
        """The list of a name; read again only if a file changed.

        Raises:
            InputError: a file that is missing, cannot be read, or holds no entry.
        """
        path = storage.here(self.lists[name])
        inside = [f for f in path.iterdir() if _FOLDER_FILES.fullmatch(f.name)] if path.is_dir() else [path]
        if not inside or not all(file.is_file() for file in inside):
            raise InputError(f"{path}: is not there; expected a file with a {self.entry} on each line")
        return self._read(tuple(sorted(inside)), *(tuple(file_mark(file)) for file in sorted(inside)))

    @classmethod
    @functools.lru_cache(maxsize=64)
    def _read(cls, files: tuple[Path, ...], *_marks: tuple[int, ...]) -> EntryList:
        from datakit.filter import _kernels_lookup as kernels

        lines, digests = list[str](), list[str]()
        for file in files:
            raw, data = read_whole(str(file))
            digests.append(hashlib.sha256(raw).hexdigest())
            lines += data.decode("utf-8-sig", errors="replace").splitlines()
        stripped = pc.utf8_trim_whitespace(pa.array(lines, pa.string()))
        texts = pc.unique(stripped.filter(pc.invert(pc.match_substring_regex(stripped, "^(?:#|$)"))))
        good = cls.is_entry(texts)
        unreadable, texts = texts.filter(pc.invert(good)).to_pylist(), texts.filter(good)
        if not len(texts):
            raise InputError(f"{files[0]}: holds no entry; expected a {cls.entry} on each line, in UTF-8")
        hashes, starts = cls.keys_of(texts)
        sizes = np.diff(starts)
        whole = kernels.grams_of(hashes, starts, sizes)[starts[:-1]]
        different, first = np.unique(whole, return_index=True)  # two spellings of one entry: the first
        slots, order = kernels.table_of(different)
        table = slots, np.append(first, 0).astype(np.int32)[order]
        return EntryList(texts, np.unique(sizes), table, tuple(digests), tuple(unreadable))

    def resources(self) -> Resources:
        """The SHA-256 of the files of each list, how long it is, and its lines that are no entry.

        Raises:
            ConfigError: there is no list.
        """
        if not self.lists:
            raise ConfigError(f'the rule set {self.name} is on, but has no list: set {self.name}.lists.NAME = "FILE"')
        read = {name: self.entries(name) for name in self.lists}
        return Resources(
            digests={f"{self.name}_lists": {name: list(found.digests) for name, found in read.items()}},
            lines=tuple(f"{self.name}: {name} has {len(found.texts):,} entries" for name, found in read.items()),
            counters={f"{self.name}_entries_{name}": len(found.texts) for name, found in read.items()},
            alarms=tuple(
                f"{len(found.unreadable)} lines of the list {name} are no entry, and match nothing "
                f"({found.unreadable[0]!r})"
                for name, found in read.items()
                if found.unreadable
            ),
        )

    def count(self, name: str, keys: Keys, of: Bools) -> Signals:
        """How often entries of a list stand in each text, and the number of the first one found or 0.

        `keys` of the texts; `of` (bool[N]): the texts to look at.
        """
        from datakit.filter import _kernels_lookup as kernels

        found, first = self.entries(name), np.zeros(len(of), np.int64)
        hits = kernels.find(*keys, found.lengths, *found.table)
        hits = hits[of[hits[:, 0]]]
        rows, entries, _ = hits[np.argsort(-hits[:, 2], kind="stable")].T  # the first place is written last
        first[rows] = entries
        return Signals(
            {f"{self.name}_{name}": np.bincount(rows, minlength=len(of)), f"{self.name}_{name}_entry": first}
        )

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The number of entries of each list, one by one."""
        counts = rows.counted(self)
        for name in self.lists:
            number, first = counts[f"{self.name}_{name}"], counts[f"{self.name}_{name}_entry"]
            describe = functools.partial(self._describe, name, number, first)
            yield Measure("max_entries", number, label=name, describe=describe)

    def _describe(self, name: str, number: Integers, first: Integers, rows: Integers) -> list[str]:
        entries = self.entries(name).texts.take(pa.array(first[rows])).to_pylist()
        return [self.told.format(name=name, number=n, entry=e) for n, e in zip(number[rows], entries, strict=True)]


# URLs.

_ENTRY: Final = r"^(?:\w+:)?(?://)?[^\s/?#:@|^*$]*\w[^\s/?#:@|^*$]*(?:[/?#]\S*)?$"
_PLAIN: Final = r"^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_-])?$"
"""A domain that is its own page form, as nearly all lines of a published list are."""
_MAX_PARTS: Final = 32
"""Parts of a host, and of a path, that are looked at: a URL with more matches by the last parts of its host and the
first ones of its path."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Urls(_Lists):
    """The lists, and where rows have their URL."""

    name: ClassVar[str] = "urls"
    measured_with: ClassVar[tuple[str, ...]] = ("field", "lists")
    entry: ClassVar[str] = "domain or URL"
    told: ClassVar[str] = "on the list {name}: {entry}"

    lists: dict[str, str] = option(
        {}, "name = a file with a domain or URL on each line, or a folder with domains and urls (UT1)", path=True
    )
    field: str = option("url", "where a row has its URL: a column, or a field of extra; dots lead into it (meta.url)")

    def __post_init__(self) -> None:
        RuleSet.__post_init__(self)
        for name in self.lists:
            if not re.fullmatch(r"[\w-]+", name):
                raise ConfigError(f"lists: a list's name is letters, digits, _ and -; found {name!r}")

    @classmethod
    def is_entry(cls, lines: pa.Array) -> pa.Array:
        """Whether a line is a domain or a URL without a port and a login."""
        return pc.match_substring_regex(lines, _ENTRY)

    @classmethod
    def keys_of(cls, lines: pa.Array) -> Keys:
        """The form of each domain or URL."""
        others = pc.invert(pc.match_substring_regex(lines, _PLAIN))
        forms = pc.utf8_lower(pc.replace_with_mask(lines, others, page_form(lines.filter(others))))
        keys = hash_values(pc.replace_substring_regex(forms, r"^www\.([^/?]+\.)", r"\1"))
        return keys, np.arange(len(lines) + 1, dtype=np.int64)

    def signals(self, rows: MeasuredRows) -> Signals:
        """`urls_known`: 1 for a row with a URL. For each list, how many of its entries match, and the first one."""
        urls = urls_at(rows.batch, self.field)
        keys, known = _url_keys(page_form(urls)), pc.is_valid(urls).to_numpy(zero_copy_only=False)
        counts = Signals(urls_known=known.astype(np.int64))
        for name in self.lists:
            counts.update(self.count(name, keys, known))
        return counts

    def report(self, rows: MeasuredRows, stays: Bools) -> Report:
        """How many rows have no URL."""
        return Report({"urls_rows_without_url": int((rows.counted(self)["urls_known"] == 0).sum())})


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Words(_Lists):
    """The lists, and how many of their words a row may have."""

    name: ClassVar[str] = "words"
    measured_with: ClassVar[tuple[str, ...]] = ("lists",)
    entry: ClassVar[str] = "word or phrase"
    told: ClassVar[str] = "{number} of the list {name}, the first is {entry!r}"

    lists: dict[str, str] = option({}, "language = a file with a word or phrase on each line; all: any row", path=True)

    def __post_init__(self) -> None:
        RuleSet.__post_init__(self)
        for name in self.lists:
            if not re.fullmatch(r"[A-Za-z]{2,3}(?:[-_]\w+)*", name) and name != ALL:
                raise ConfigError(f"lists: expected a language code or {ALL!r}, found {name!r}")
        codes = [_code(name) for name in self.lists]
        if len(set(codes)) < len(codes):
            raise ConfigError(f"lists: two lists are of one language: {', '.join(self.lists)}")

    @classmethod
    def is_entry(cls, lines: pa.Array) -> pa.Array:
        """Whether a line has no signs that words do not have."""
        return pa.array([_is_words(line) for line in lines.to_pylist()], pa.bool_())

    @classmethod
    def keys_of(cls, lines: pa.Array) -> Keys:
        """The words of each text."""
        return hash_words(compose(lines))

    def signals(self, rows: MeasuredRows) -> Signals:
        """For each list, how many of its entries each row has, and the number of the first one."""
        counts, keys = Signals(), self.keys_of(rows.texts)
        languages = [label and _code(label) for label in rows.languages.to_pylist()]
        for name in self.lists:
            of = np.array([code in (None, "", _code(name)) or name == ALL for code in languages], np.bool_)
            counts.update(self.count(name, keys, of))
        return counts


def _code(name: str) -> str:
    return ALL if name == ALL else short_code(name)


def _is_words(line: str) -> bool:
    known = all(c.isspace() or c in _BETWEEN or unicodedata.category(c)[0] in "LMN" for c in line)
    return known and any(map(str.isalnum, line))


# Limits.

NO_LIMIT: Final = 10**9
"""More than any row has."""


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
        """`lengths_tokens`, where there is a tokenizer."""
        if not self.tokenizer:
            return Signals()
        found = open_tokenizer(self.tokenizer).encode_batch_fast(rows.texts.to_pylist(), add_special_tokens=False)
        return Signals(lengths_tokens=np.array([len(one) for one in found], np.int64))

    def measures(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The measures in the order of the fields."""
        counts = rows.counted(self)
        lengths = {"chars": rows.signals["chars"], "words": rows.signals["words"]}
        lengths |= {"tokens": counts["lengths_tokens"]} if self.tokenizer else {}
        for what, values in lengths.items():
            yield Measure(f"min_{what}", values)
            yield Measure(f"max_{what}", values)
