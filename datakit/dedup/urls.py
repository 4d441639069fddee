"""Rows with the URL of an earlier row: pages that were fetched more than once, whatever became of their text.

One form for the URLs that lead to one page.

By RFC 3986, section 6: scheme and host in lower case, no default port, percent-encoding in one way, no dot segments.
And as pages are found in practice: http is https, a fragment is a place in the page (unless it begins with ! or /,
which a program in the page reads), a slash at the end says nothing, parameters come in any order, and some parameters
tell where the visitor came from, not what was asked for (`TRACKING`). Not touched: `www.`, the case of the path,
`index.html`, any other parameter; pages that differ in these may differ.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option
from datakit.dedup.exact import Memory, Rows, first_of_equals, in_range, open_rows
from datakit.dedup.stage import MEMORY, Losses, check_values, look_up, source, write
from datakit.errors import ConfigError
from datakit.stage import Decision, Stage
from datakit.text.normal_form import binary_digest


@dataclass(frozen=True, kw_only=True, slots=True)
class UrlsConfig:
    """Rows with the URL of an earlier row are dropped."""

    field: str = option("url", "where a row has its URL: a column, or a field of extra; dots lead into it (meta.url)")
    same: Literal["page", "exact"] = option(
        "page", "page: URLs that lead to one page are the same (scheme, fragment, tracking, ...); exact: equal ones"
    )
    max_cluster_rows: int = option(1000, "raise an alarm where more rows than this have one URL")
    max_source_loss: float = option(0.75, "raise an alarm where a source loses more than this share of its rows")
    memory_mb: int = option(1024, MEMORY, result=False)

    def __post_init__(self) -> None:
        if not all(self.field.split(".")):
            raise ConfigError(
                f"field names a column or a field of extra, such as url or meta.url; found {self.field!r}"
            )
        check_values(self)


_DIGEST_BYTES = 96  # a row takes while digests are sorted: the digest twice, its place, the order, ...


@dataclass(frozen=True)
class DedupUrls(Stage):
    """Drops every row whose URL an earlier row has; the reason is `duplicate_url`, `duplicate_of` names that row.

    Rows without a URL stay, and are counted (`no_url`).
    """

    config: UrlsConfig = field(default_factory=UrlsConfig)
    decisions: Path | None = None
    name: ClassVar[str] = "dedup_urls"
    Config: ClassVar[type] = UrlsConfig
    compares_rows: ClassVar[bool] = True

    def resources(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def open(self) -> None:
        """Nothing to load."""

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """`row_key`, `id`, `source`, and the `digest` of the row's URL, null without one."""
        urls = self._urls(batch)
        digests = binary_digest(page_form(urls) if self.config.same == "page" else urls)
        return pa.record_batch(
            {
                "row_key": batch.column("row_key"),
                "id": batch.column("id"),
                "source": source(batch),
                "digest": pc.if_else(pc.is_valid(urls), digests, pa.scalar(None, digests.type)),
            }
        )

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write the dropped rows to `out`; returns counts and alarms.

        Raises:
            ConfigError: no row has a URL.
        """
        rows, losses = open_rows(sketches), Losses("rows")
        memory = Memory(self.config.memory_mb << 20, out.parent)
        survivor, known = _first_of_url(rows, memory)
        if len(rows) and not known:
            raise ConfigError(
                f"dedup_urls: none of {len(rows)} rows has a URL in the field {self.config.field!r}; name the field "
                "that has it (--field, or field in [dedup_urls]), or leave the stage out"
            )
        write(out, (_decide(rows, n, survivor, losses) for n in range(len(rows.batches))))
        repeats = np.bincount(survivor[survivor >= 0], minlength=1)
        return {
            "rows_with_url": known,
            "largest_cluster_rows": int(repeats.max()) + (len(rows) > 0),
            "alarms": self._crowds(rows, repeats) + losses.alarms(self.config.max_source_loss),
        }

    def bind(self, out: Path) -> Self:
        """The stage that carries out the decisions in `out`."""
        return replace(self, decisions=out)

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Look the rows up by row_key."""
        assert self.decisions is not None, "decide needs the decisions of reduce: call bind first"
        found, urls = look_up(self.decisions, batch.column("row_key")), self._urls(batch)
        reasons, duplicate_of = found.column("reason"), found.column("duplicate_of")
        detail = pc.binary_join_element_wise("has the URL of ", duplicate_of, ": ", urls, "")
        return Decision(
            reasons=reasons,
            detail=detail,
            drop_columns={"duplicate_of": duplicate_of},
            notes={"no_url": urls.null_count},
        )

    def _urls(self, batch: pa.RecordBatch) -> pa.Array:
        """The URL of each row as it was written; null where it has none."""
        names, head = batch.schema.names, self.config.field
        if head in names and head != "extra":
            urls = batch.column(head).cast(pa.string())
        elif "extra" in names:
            way = head.split(".")
            urls = pa.array([_follow(extra, way) for extra in batch.column("extra").to_pylist()], pa.string())
        else:
            urls = pa.nulls(batch.num_rows, pa.string())
        return pc.if_else(pc.equal(pc.utf8_trim_whitespace(urls), ""), pa.scalar(None, pa.string()), urls)

    def _crowds(self, rows: Rows, repeats: npt.NDArray[np.int64]) -> list[str]:
        worst = np.flatnonzero(repeats + 1 > self.config.max_cluster_rows)
        worst = worst[np.argsort(-repeats[worst], kind="stable")][:10]
        return [
            f"{repeats[row] + 1} rows have the URL of {name!r} and all but it are dropped (max_cluster_rows is "
            f"{self.config.max_cluster_rows}); look whether the field is the page's own address"
            for row, name in zip(worst, rows.ids(worst).to_pylist(), strict=True)
        ]


def _follow(extra: str | None, way: list[str]) -> str | None:
    """The string that a path of keys leads to in a JSON object."""
    value: Any = orjson.loads(extra) if extra else None
    for key in way:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def _first_of_url(rows: Rows, memory: Memory) -> tuple[npt.NDArray[np.int64], int]:
    """(for each row the first with its URL, -1 where that is itself or it has none; how many have one)."""
    survivor, known = memory.full((len(rows),), -1, np.int64), 0
    ranges = memory.ranges(len(rows) * _DIGEST_BYTES)
    for part in range(ranges):
        numbers, digests = [np.empty(0, np.int64)], [np.empty((0, 2), np.uint64)]
        for batch, begin in zip(rows.batches, rows.begins, strict=False):
            column = batch.column("digest")
            words = np.frombuffer(column.buffers()[1], np.uint64)[: 2 * len(column)].reshape(-1, 2)
            chosen = in_range(words[:, 0], part, ranges)
            chosen = chosen[column.is_valid().to_numpy(zero_copy_only=False)[chosen]]
            numbers.append(begin + chosen)
            digests.append(words[chosen])
        places = np.concatenate(numbers)
        first = places[first_of_equals(np.concatenate(digests))]
        repeated = first != places
        survivor[places[repeated]] = first[repeated]
        known += len(places)
    return survivor, known


def _decide(rows: Rows, number: int, survivor: npt.NDArray[np.int64], losses: Losses) -> pa.RecordBatch:
    batch = rows.batches[number]
    first = survivor[rows.begins[number] : rows.begins[number + 1]]
    losses.add(batch.column("source"), np.ones(len(first), np.int64), first >= 0)
    dropped = np.flatnonzero(first >= 0)
    return pa.record_batch(
        {
            "row_key": batch.column("row_key").take(pa.array(dropped)),
            "reason": pa.array(["duplicate_url"] * len(dropped), pa.string()),
            "duplicate_of": rows.ids(first[dropped]),
        }
    )


TRACKING: Final = re.compile(
    r"utm_\w+|mtm_\w+|hsa_\w+|pk_(campaign|kwd|source|medium|content)|(fb|g|d|y|ys|tw|tt)clid|msclkid|gclsrc|gbraid|"
    r"wbraid|li_fat_id|igsh|igshid|mc_[ce]id|_ga|_gl|_hsenc|_hsmi|mkt_tok|oly_(anon|enc)_id|vero_(id|conv)|_openstat|"
    r"__twitter_impression|spm|phpsessid|jsessionid|aspsessionid\w*",
    re.IGNORECASE,
)
"""Names of parameters that say who came from where, or in which session."""

_PARTS: Final = (
    r"(?s)^(?:(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?//)?(?P<host>[^/?#]*)(?P<path>[^?#]*)"
    r"(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?$"
)
_UNRESERVED: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")


def page_form(urls: pa.Array) -> pa.Array:
    """URLs (strings) in the form that is equal for URLs of one page; null stays null."""
    parts = pc.extract_regex(pc.utf8_trim_whitespace(urls), _PARTS)
    scheme, host, path, query, fragment = (
        pc.fill_null(pc.struct_field(parts, name), "") for name in ("scheme", "host", "path", "query", "fragment")
    )
    scheme = pc.utf8_lower(scheme)
    web = pc.is_in(scheme, pa.array(["", "http", "https"]))
    scheme = pc.if_else(web, "", pc.binary_join_element_wise(scheme, "://", ""))
    host = pc.replace_substring_regex(
        pc.utf8_lower(_each(host, r"[^\x00-\x7f]", _ascii_host)), r"\.?(:(80|443)?)?$", ""
    )
    path = pc.replace_substring_regex(path, r"(?i);jsessionid=[^/]*$", "")
    path = pc.utf8_rtrim(_each(_each(path, r"[%]|[^\x21-\x7e]", _encode), r"/\.", _no_dots), "/")
    query = _each(_each(query, r"[%]|[^\x21-\x7e]", _encode), ".", _parameters)
    query = pc.if_else(pc.equal(query, ""), "", pc.binary_join_element_wise("?", query, ""))
    place = pc.if_else(pc.match_substring_regex(fragment, "^[!/]"), pc.binary_join_element_wise("#", fragment, ""), "")
    made = pc.binary_join_element_wise(scheme, host, path, query, place, "")
    return pc.if_else(pc.is_valid(urls), made, pa.scalar(None, pa.string()))


def _each(texts: pa.Array, pattern: str, mend: Callable[[str], str]) -> pa.Array:
    """The texts with those that match an RE2 pattern mended, one by one."""
    mask = pc.match_substring_regex(texts, pattern)
    made = [mend(text) for text in texts.filter(mask).to_pylist()]
    return pc.replace_with_mask(texts, mask, pa.array(made, pa.string()))


def _ascii_host(host: str) -> str:
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host


def _encode(text: str) -> str:
    """Percent-encoded where it must be, and nowhere else; a stray % stays."""
    made, data, i = [], text.encode(), 0
    while i < len(data):
        byte, escaped = data[i], re.fullmatch(rb"%[0-9A-Fa-f]{2}", data[i : i + 3])
        if escaped:
            byte, i = int(escaped[0][1:], 16), i + 2
        plain = byte in _UNRESERVED or (not escaped and 0x21 <= byte <= 0x7E)
        made.append(chr(byte) if plain else f"%{byte:02X}")
        i += 1
    return "".join(made)


def _no_dots(path: str) -> str:
    """Without dot segments; a slash at the end goes later in any case. Empty segments stay."""
    if not re.search(r"/\.{1,2}(/|$)", path):
        return path
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            kept = kept[:-1] if len(kept) > 1 else kept
        elif segment != ".":
            kept.append(segment)
    return "/".join(kept)


def _parameters(query: str) -> str:
    """The parameters but those of `TRACKING`, by name; those of one name in their order."""
    kept = [p for p in query.split("&") if p and not TRACKING.fullmatch(p.partition("=")[0])]
    return "&".join(sorted(kept, key=lambda p: p.partition("=")[0]))
