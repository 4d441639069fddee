"""The URL of a row, and the one form of all URLs that lead to one page.

`page_form` brings the URLs that lead to one page to one form. By RFC 3986, section 6: scheme and host in lower case, no
default port, percent-encoding in one way, no dot segments. And as pages are found in practice: http is https, a
fragment is a place in the page (unless it begins with ! or /, which a program in the page reads), a slash at the end
does not matter, parameters come in any order, and some parameters say where the visitor came from, not what was asked
for (`TRACKING`). Unchanged are `www.`, the case of the path, `index.html` and any other parameter; pages that differ in
these may differ.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc


def urls_at(batch: pa.RecordBatch, field: str) -> pa.Array:
    """string[N]: the URL of each row as it was written; null where it has none.

    `field` is a column, or a field of `extra`; dots lead into it (`meta.url`).
    """
    keys = field.split(".")
    found = [column for column in (_column_at(batch, [field]), _column_at(batch, keys)) if column]
    if "extra" in batch.schema.names:
        found.append([_string_at(extra, keys) for extra in batch.column("extra").to_pylist()])
    nothing = pa.nulls(batch.num_rows, pa.string())
    urls = pc.coalesce(*(pa.array(values, pa.string()) for values in found), nothing)
    return pc.if_else(pc.equal(pc.utf8_trim_whitespace(urls), ""), pa.scalar(None, pa.string()), urls)


def _column_at(batch: pa.RecordBatch, keys: list[str]) -> list[str | None]:
    """The strings of a column, or of a field of a struct column; empty where there is no such column of strings."""
    if keys[0] not in batch.schema.names or keys[0] == "extra":
        return []
    column = batch.column(keys[0])
    for key in keys[1:]:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(key) < 0:
            return []
        column = pc.struct_field(column, key)
    strings: list[str | None] = column.to_pylist() if column.type in (pa.string(), pa.large_string()) else []
    return strings


def _string_at(extra: str | None, keys: list[str]) -> str | None:
    """The string that a path of keys leads to in a JSON object."""
    value: Any = orjson.loads(extra) if extra else None
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


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
