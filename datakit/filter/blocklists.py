"""Blocklists of domains and URLs: rows whose URL is on a list of the user are dropped.

A list is a file with a domain or a URL on each line, or a folder with files named `domains` and `urls`, as the UT1
blacklists are published; hosts files and filters like `||domain^` are read, too; compressed or not. The name of a list
is the reason: `urls.adult`.

A domain stands for itself and all its subdomains. A URL with a path stands for the pages below it: `host/a` is
`host/a`, `host/a/b` and `host/a?c=d`, not `host/ab`. Domains are compared in ASCII (RFC 3490), so that a list may have
`münchen.de` or `xn--mnchen-3ya.de`. What does not count: `www.` at a list's domain, the case of paths, ports, logins,
and what `text.page_urls` ignores. The rows have their URL in a column or in `extra`. A row without one stays, and is
counted.
"""

import functools
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import datakit.storage as storage
from datakit.config import file_mark, option
from datakit.errors import ConfigError, InputError
from datakit.filter.rule_set import Measure, MeasuredRows, RuleSet, Signals
from datakit.read.streams import read_whole
from datakit.text.page_urls import page_form, urls_at
from datakit.text.words import hash_values

_FOLDER_FILES: Final = re.compile(r"(?:domains|urls)(?:\.\w+)*")
_PLAIN: Final = r"^[a-z0-9_][a-z0-9_.-]*$"
_HOSTS_FILE: Final = re.compile(r"(?:0\.0\.0\.0|127\.0\.0\.1|::1?|fe80::\S*|ff\d\d::\S*)\s+(\S+)(?:\s*#.*)?")
_OWN_NAMES: Final = ("localhost", "localhost.localdomain", "local", "broadcasthost", "0.0.0.0")
_MOST_PARTS: Final = 32
"""Parts of a host, and of a path, that are looked at: a URL with more matches by the last parts of its host and the
first ones of its path."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Urls(RuleSet):
    """The lists, and where rows have their URL."""

    name: ClassVar[str] = "urls"
    counts: ClassVar[bool] = True

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

    def resources(self) -> dict[str, Any]:
        """The SHA-256 of the files of each list.

        Raises:
            ConfigError: there is no list.
            InputError: a file that is missing, cannot be read, or holds no domain.
        """
        if not self.lists and not self.min_urls:
            raise ConfigError('the rule set urls is on, but has no list: set urls.lists.NAME = "FILE"')
        lists = {name: self._list(name).digests for name in self.lists}
        return {"blocklists": lists | ({"allow": blocklist(self.allow).digests} if self.allow else {})}

    def open(self) -> None:
        """Read the lists."""
        self.resources()

    def describe(self) -> tuple[str, ...]:
        """How long each list is."""
        return tuple(f"urls: {name} has {len(self._list(name).texts):,} domains and URLs" for name in self.lists)

    def ledger(self) -> dict[str, int]:
        """How long each list is."""
        return {f"urls_entries_{name}": len(self._list(name).texts) for name in self.lists}

    def alarms(self) -> Iterator[str]:
        """Lines of lists that are no domain and no URL."""
        for found in [self._list(name) for name in self.lists] + ([blocklist(self.allow)] if self.allow else []):
            if found.unreadable:
                file, number, line = found.unreadable[0]
                yield (
                    f"{len(found.unreadable)} lines of {Path(file).name} are no domain and no URL, and block nothing "
                    f"(line {number}: {line[:80]!r})"
                )

    def counted_with(self) -> dict[str, Any]:
        """The field; the lists are among the resources."""
        return {"field": self.field, "lists": sorted(self.lists)}

    def count_rows(self, rows: MeasuredRows) -> Signals:
        """`urls_known`: 1 for a row with a URL. For each list, how many of its entries match, and the first one."""
        urls = urls_at(rows.batch, self.field)
        hashes, bounds = _keys(page_form(urls))
        counts = {"urls_known": pc.is_valid(urls).to_numpy(zero_copy_only=False).astype(np.int64)}
        allowed = np.zeros(len(urls), np.bool_)
        if self.allow:
            allowed = blocklist(self.allow).matches(hashes, bounds)[0] > 0
        for name in self.lists:
            number, first = self._list(name).matches(hashes, bounds)
            counts[f"urls_{name}"] = np.where(allowed, 0, number)
            counts[f"urls_{name}_entry"] = first
        return Signals(counts)

    def measure(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The lists, one by one, then whether there is a URL."""
        counts = rows.counted(self)
        for name in self.lists:
            entries = counts[f"urls_{name}_entry"]
            says = functools.partial(_says, lambda name=name: self._list(name).texts, name, entries)
            yield Measure("max_entries", counts[f"urls_{name}"], label=name, says=says)
        yield Measure("min_urls", counts["urls_known"])

    def notes(self, rows: MeasuredRows, stays: NDArray[np.bool_]) -> dict[str, int]:
        """How many rows have no URL."""
        return {"urls_rows_without_url": int((rows.counted(self)["urls_known"] == 0).sum())}

    def _list(self, name: str) -> "Blocklist":
        return blocklist(self.lists[name])


def _says(texts: Any, name: str, entries: NDArray[np.int64], which: NDArray[np.int64]) -> list[str]:
    return [f"on the list {name}: {text}" for text in texts().take(pa.array(entries[which])).to_pylist()]


@dataclass(frozen=True, slots=True)
class Blocklist:
    """The entries of a list, in ascending order of their hashes."""

    texts: pa.Array
    """string[E]: domains, and URLs as `host/path`."""
    hashes: NDArray[np.uint64]
    """uint64[E]"""
    digests: list[str]
    """SHA-256 of each file."""
    unreadable: tuple[tuple[str, int, str], ...]
    """(file, line number, line) of lines that are no entry."""

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
    texts, digests, unreadable = [], [], []
    for file in files:
        raw, data = read_whole(file)
        digests.append(hashlib.sha256(raw).hexdigest())
        lines = pa.array(data.decode("utf-8-sig", errors="replace").splitlines(), pa.string())
        plain = pc.match_substring_regex(lines, _PLAIN)
        texts.append(pc.replace_substring_regex(lines.filter(plain), r"^www\.(.+\.)|\.$", r"\1"))
        others, numbers = lines.filter(pc.invert(plain)).to_pylist(), pc.indices_nonzero(pc.invert(plain)).to_pylist()
        found = [_entry(line) for line in others]
        unreadable += [
            (file, n + 1, line) for n, line, entry in zip(numbers, others, found, strict=True) if entry is None
        ]
        made = page_form(pa.array([entry for entry in found if entry], pa.string()))
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
    keys: list[str] = []
    bounds = [0]
    for form in pc.fill_null(pc.utf8_lower(forms), "").to_pylist():
        host, slash, path = form.partition("/") if "/" in form else form.partition("?")
        host = re.sub(r":\d*$|\.$", "", host.rpartition("@")[2])
        if host:
            labels = host.split(".")[-_MOST_PARTS:]
            numeric = re.fullmatch(r"[\d.]+|\[.*", host)
            domains = [host] if numeric else [".".join(labels[i:]) for i in range(len(labels))]
            ends = [""]
            if slash:
                before, mark, _ = path.partition("?") if slash == "/" else ("", "", "")
                parts = before.split("/")[:_MOST_PARTS]
                ends += ["/" + "/".join(parts[: i + 1]) for i in range(len(parts))] if slash == "/" else []
                ends += [slash + path] if mark or slash == "?" else []
            keys += [domain + end for domain in domains for end in ends]
        bounds.append(len(keys))
    return hash_values(pa.array(keys, pa.string())), np.array(bounds, np.int64)
