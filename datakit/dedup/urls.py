"""Rows with the URL of an earlier row: pages that were fetched more than once, whatever their text says.

`page_form` brings the URLs that lead to one page to one form. By RFC 3986, section 6: scheme and host in lower case, no
default port, percent-encoding in one way, no dot segments. And as pages are found in practice: http is https, a
fragment is a place in the page (unless it begins with ! or /, which a program in the page reads), a slash at the end
does not matter, parameters come in any order, and some parameters say where the visitor came from, not what was asked
for (`TRACKING`). Unchanged are `www.`, the case of the path, `index.html` and any other parameter; pages that differ in
these may differ.
"""

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option, shares
from datakit.data import compared_fields
from datakit.dedup.exact import Memory, SketchRows, first_equal_rows, open_rows
from datakit.dedup.stage import (
    CompareStage,
    at_least,
    check_policy,
    frequent_survivors,
    policy_order,
    policy_rank,
    source_column,
    write_decisions,
)
from datakit.errors import ConfigError
from datakit.stage import MAX_ALARMS, Decision, Losses


@dataclass(frozen=True, kw_only=True, slots=True)
class UrlsConfig:
    """Of the rows with one URL, one stays."""

    field: str = option("url", "where a row has its URL: a column, or a field of extra; dots lead into it (meta.url)")
    same: Literal["page", "exact"] = option(
        "page", "page: URLs that lead to one page are the same (scheme, fragment, tracking, ...); exact: equal ones"
    )
    policy: str = option("first", "which row of a URL stays: first, longest, or highest:<column>; ties by position")
    max_cluster_rows: int = option(1000, "raise an alarm where more rows than this have one URL")
    max_loss: float = option(0.3, "raise an alarm where all rows, or those of a source, lose more than this share")
    min_alarm_rows: int = option(20, "raise no alarm about fewer rows than this, of all or a source")
    memory_mb: int = option(
        1024, "memory for comparing all rows; larger arrays go to the disk, with the same result", result=False
    )

    def __post_init__(self) -> None:
        if not all(self.field.split(".")):
            raise ConfigError(
                f"field names a column or a field of extra, such as url or meta.url; found {self.field!r}"
            )
        at_least(1, self, "max_cluster_rows", "min_alarm_rows", "memory_mb")
        shares(self, "max_loss")
        check_policy(self.policy)


_CHECK = (
    "Check with `datakit pairs --stage dedup_urls` whether the field is the page's own address, and whether pages "
    "differ in what does not count (same = exact compares URLs as they are). If these are duplicates, raise max_loss"
)


@dataclass(frozen=True)
class DedupUrls(CompareStage):
    """Drops every row whose URL another row has that comes before it in the policy's order.

    The reason is `duplicate_url`; `duplicate_of` names the row that stays.

    Rows without a URL stay, and are counted (`no_url`).
    """

    config: UrlsConfig = field(default_factory=UrlsConfig)

    name: ClassVar[str] = "dedup_urls"
    Config: ClassVar[type] = UrlsConfig

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """`row_key`, `id`, `source`, `rank` under the policy, and the `digest` of the row's URL, null without one."""
        from datakit.text.words import binary_digest

        urls = self._urls(batch)
        digests = binary_digest(page_form(urls) if self.config.same == "page" else urls)
        return pa.record_batch(
            {
                "row_key": batch.column("row_key"),
                "id": batch.column("id"),
                "source": source_column(batch),
                "rank": policy_rank(batch, self.config.policy, lambda: _characters(batch)),
                "digest": pc.if_else(pc.is_valid(urls), digests, pa.scalar(None, digests.type)),
            }
        )

    def _urls(self, batch: pa.RecordBatch) -> pa.Array:
        """The URL of each row as it was written; null where it has none."""
        keys = self.config.field.split(".")
        found = [column for column in (_column_at(batch, [self.config.field]), _column_at(batch, keys)) if column]
        if "extra" in batch.schema.names:
            found.append([_string_at(extra, keys) for extra in batch.column("extra").to_pylist()])
        nothing = pa.nulls(batch.num_rows, pa.string())
        urls = pc.coalesce(*(pa.array(values, pa.string()) for values in found), nothing)
        return pc.if_else(pc.equal(pc.utf8_trim_whitespace(urls), ""), pa.scalar(None, pa.string()), urls)

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write the dropped rows to `out`; returns counts and alarms.

        Raises:
            ConfigError: no row has a URL.
        """
        memory = Memory(self.config.memory_mb << 20, out.parent)
        rows, losses = open_rows(sketches, memory), Losses("rows")
        order = policy_order(rows, rows.column("row_key", memory), self.config.policy)
        place = first_equal_rows(rows, order, memory)
        first = np.full(len(rows), -1)
        first[order] = np.where(place < 0, -1, order[place])
        known = int(np.count_nonzero(first >= 0))
        if len(rows) and not known:
            raise ConfigError(
                f"dedup_urls: none of {len(rows)} rows has a URL in the field {self.config.field!r}; name the field "
                "that has it (--field, or field in [dedup_urls]), or leave the stage out"
            )
        first[first == np.arange(len(rows))] = -1
        write_decisions(out, (_decide(rows, n, first, losses) for n in range(len(rows.batches))))
        repeats = np.bincount(first[first >= 0], minlength=1)
        return {
            "rows_with_url": known,
            "largest_cluster_rows": int(repeats.max()) + (len(rows) > 0),
            "alarms": [
                *self._large_clusters(rows, repeats),
                *losses.alarms(
                    self.config.max_loss, self.config.min_alarm_rows, _CHECK, frequent_survivors(rows, repeats)
                ),
            ],
        }

    def _large_clusters(self, rows: SketchRows, repeats: npt.NDArray[np.int64]) -> list[str]:
        worst = np.flatnonzero(repeats + 1 > self.config.max_cluster_rows)
        worst = worst[np.argsort(-repeats[worst], kind="stable")][:MAX_ALARMS]
        return [
            f"{repeats[row] + 1} rows have the URL of {name!r} and all but it are dropped (max_cluster_rows is "
            f"{self.config.max_cluster_rows})"
            for row, name in zip(worst, rows.ids(worst).to_pylist(), strict=True)
        ]

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Look the rows up by row_key."""
        found, urls = self.look_up(batch.column("row_key")), self._urls(batch)
        duplicate_of = found.column("duplicate_of")
        return Decision(
            reasons=found.column("reason"),
            detail=pc.binary_join_element_wise("has the URL of ", duplicate_of, ": ", urls, ""),
            drop_columns={"duplicate_of": duplicate_of},
            notes={"no_url": urls.null_count},
        )


def _characters(batch: pa.RecordBatch) -> pa.Array:
    """How many characters each row has."""
    lengths = [pc.utf8_length(text) for text in compared_fields(batch, "all", include_calls=True)]
    return functools.reduce(pc.add, lengths)


def _column_at(batch: pa.RecordBatch, keys: list[str]) -> list[str | None]:
    """The strings of a column, or of a field of a struct column; empty where there is no such column of strings."""
    if keys[0] not in batch.schema.names or keys[0] == "extra":
        return []
    column = batch.column(keys[0])
    for key in keys[1:]:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(key) < 0:
            return []
        column = pc.struct_field(column, key)
    strings: list[str | None] = column.cast(pa.string()).to_pylist() if _is_text(column.type) else []
    return strings


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string())


def _string_at(extra: str | None, keys: list[str]) -> str | None:
    """The string that a path of keys leads to in a JSON object."""
    value: Any = orjson.loads(extra) if extra else None
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def _decide(rows: SketchRows, number: int, first: npt.NDArray[np.int64], losses: Losses) -> pa.RecordBatch:
    """The decisions about one batch of sketches; `first` is the row that stays with the same URL, -1 without one."""
    batch, first = rows.batches[number], first[rows.begins[number] : rows.begins[number + 1]]
    losses.add(batch.column("source"), np.ones(len(first), np.int64), first >= 0)
    dropped = np.flatnonzero(first >= 0)
    return pa.record_batch(
        {
            "row_key": batch.column("row_key").take(pa.array(dropped)),
            "reason": pa.array(["duplicate_url"] * len(dropped), pa.string()),
            "duplicate_of": rows.ids(first[dropped]),
        }
    )


# One form for the URLs of one page.

TRACKING: Final = re.compile(
    r"utm_\w+|mtm_\w+|hsa_\w+|pk_(campaign|kwd|source|medium|content)|(fb|g|d|y|ys|tw|tt)clid|msclkid|gclsrc|gbraid|"
    r"wbraid|li_fat_id|igsh|igshid|mc_[ce]id|_ga|_gl|_hsenc|_hsmi|mkt_tok|oly_(anon|enc)_id|vero_(id|conv)|_openstat|"
    r"__twitter_impression|spm|phpsessid|jsessionid|aspsessionid\w*",
    re.IGNORECASE,
)
"""Names of parameters that say where a visitor came from, or in which session."""

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


def _each(texts: pa.Array, pattern: str, change: Callable[[str], str]) -> pa.Array:
    """The texts, with `change` applied to each of those that match an RE2 pattern."""
    mask = pc.match_substring_regex(texts, pattern)
    made = [change(text) for text in texts.filter(mask).to_pylist()]
    return pc.replace_with_mask(texts, mask, pa.array(made, pa.string()))


def _ascii_host(host: str) -> str:
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host


def _encode(text: str) -> str:
    """Percent-encoded where needed, and nowhere else; a % that encodes nothing stays."""
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
    """Without dot segments (the caller removes a slash at the end anyway). Empty segments stay."""
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
    """The parameters without those of `TRACKING`, sorted by name; those of one name stay in their order."""
    kept = [p for p in query.split("&") if p and not TRACKING.fullmatch(p.partition("=")[0])]
    return "&".join(sorted(kept, key=lambda p: p.partition("=")[0]))
