"""Rows of results for people: a role, rows by id, a row on one line, and two texts with their differences marked."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import read_rows
from datakit.manifest import Manifest, data_dir, tables

LINE_WIDTH = 400
"""Characters of a row that are shown on one line."""

Link = tuple[Path, Manifest]
"""A result: where its manifest lies, and the manifest."""


def batches(link: Link, role: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a role of a result, some columns (None: all).

    Raises:
        IntegrityError: a shard is missing or damaged.
    """
    for shard in tables(link[1], role):
        yield from read_rows(data_dir(*link), shard, columns)


def find(link: Link, role: str, ids: Collection[str]) -> list[dict[str, Any]]:
    """Whole rows of a result by id; from a shard without any of them only the ids are read."""
    wanted = pa.array(sorted(ids), pa.string())
    found = list[dict[str, Any]]()
    for shard in tables(link[1], role) if ids else ():
        if any(pc.any(pc.is_in(b["id"], wanted)).as_py() for b in read_rows(data_dir(*link), shard, ["id"])):
            for batch in read_rows(data_dir(*link), shard):
                found += batch.filter(pc.is_in(batch["id"], wanted)).to_pylist()
    return found


def first_of(before: pa.Table | None, rows: pa.RecordBatch, columns: Sequence[str], most: int) -> pa.Table:
    """The first `most` of the rows that were first before and of new ones, in the order of some columns."""
    both = [pa.table(rows)] if before is None else [before, pa.table(rows)]
    return pa.concat_tables(both).sort_by([(column, "ascending") for column in columns]).slice(0, most)


def body(row: dict[str, Any]) -> str:
    """The text of a row of any kind."""
    if "raw" in row:
        return bytes(row["raw"][:LINE_WIDTH]).decode("utf-8", errors="backslashreplace")
    if row.get("text") is not None:
        return str(row["text"])
    if row.get("input_ids") is not None:
        return f"{len(row['input_ids'])} tokens: {row['input_ids'][:40]}"
    lines = []
    for name in ("prompt", "messages", "chosen", "rejected"):
        prefix = "" if name in ("messages", "prompt") else f"{name} "
        for message in row.get(name) or []:
            lines.append(f"{prefix}{message['role']}: {message['content'] or message['tool_calls'] or ''}")
    return "\n".join(lines)


def some_of(names: Iterable[str], most: int) -> str:
    """The first `most` names in one phrase."""
    first = list(islice(names, most + 1))
    return ", ".join([*first[:most], "..."] if len(first) > most else first)


def row_name(row_id: str, source: str) -> str:
    """An id, and the source where the id does not begin with it."""
    return visible(row_id if row_id.startswith(source) else f"{row_id} ({source})")


def shorten(text: str, width: int = LINE_WIDTH) -> str:
    """One line of at most `width` characters, as `visible` shows them; ↵ stands for a line's end."""
    line = visible(text[: 2 * width].replace("\r\n", "\n").replace("\n", "↵"))
    return line if len(line) <= width else line[: width - 1] + "…"


def visible(text: str) -> str:
    """The text with control and direction characters spelled out, so that a row cannot control a terminal or a page."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\u{ord(c):04x}" for c in text)


# Two texts with their differences marked. White space does not count.

MOST_TOKENS = 2000
"""Words of each text that are compared at one time: the time grows with the square. The next ones follow where the
texts were last equal."""
_MOST_WINDOWS = 30
"""How often that is done."""
_LONGEST = 10_000_000
"""Characters of a text that are compared."""
_MOST_STRETCHES = 24
"""Of one place: a longer one is cut."""

_UNSEGMENTED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORDS = re.compile(rf"[{_UNSEGMENTED}]|[^\s{_UNSEGMENTED}]{{1,100}}")
"""Longer words (as of base64) are compared in pieces, so that the place where they differ is in sight."""
_TOO_LONG = "… the rest is too long to compare"

Stretch = tuple[list[str], list[str]]
"""Words of two texts; both are the same where the texts are equal."""


def join_words(words: Sequence[str], most: int) -> str:
    """The first `most` words as text that is safe on a terminal."""
    rest = f" … {len(words) - most:,} more" if len(words) > most else ""
    return visible(" ".join(words[:most])[:2000]) + rest


def hunks(one: str, other: str, context: int) -> Iterator[list[Stretch]]:
    """The places where two texts differ, with `context` words around each; a stretch whose sides differ is a change.

    Changes that are closer than twice the context form one hunk.
    """
    hunk, before = list[Stretch](), list[str]()
    for ours, theirs in _stretches(one, other):
        if len(hunk) > _MOST_STRETCHES:
            yield hunk
            hunk = []
        if ours != theirs:
            hunk = hunk or [(before, before)]
            hunk.append((ours, theirs))
            continue
        if hunk and len(ours) > 2 * context:
            yield [*hunk, (ours[:context], ours[:context])]
            hunk = []
        elif hunk:
            hunk.append((ours, theirs))
        before = ours[len(ours) - min(context, len(ours)) :]
    if hunk and hunk[-1][0] == hunk[-1][1]:
        after = hunk.pop()[0][:context]
        hunk.append((after, after))
    if hunk:
        yield hunk


def _stretches(one: str, other: str) -> Iterator[Stretch]:
    """Equal and different stretches of both texts, in order."""
    a, b = _WORDS.findall(one[:_LONGEST]), _WORDS.findall(other[:_LONGEST])
    i = j = 0
    for _ in range(_MOST_WINDOWS):
        # What is equal from here on is passed by at once, however long it is.
        left = min(len(a) - i, len(b) - j)
        equal = next((n for n in range(left) if a[i + n] != b[j + n]), left)
        if equal:
            yield a[i : i + equal], b[j : j + equal]
            i, j = i + equal, j + equal
        x, y = a[i : i + MOST_TOKENS], b[j : j + MOST_TOKENS]
        codes = SequenceMatcher(None, x, y, autojunk=False).get_opcodes()
        if i + len(x) < len(a) or j + len(y) < len(b):
            # What stands behind the last equal words of a window is seen again in the next one.
            last = max((n for n, code in enumerate(codes) if code[0] == "equal"), default=len(codes) - 1)
            codes = codes[: last + 1]
        for _, begin, end, other_begin, other_end in codes:
            yield x[begin:end], y[other_begin:other_end]
        if not codes:
            break
        i, j = i + codes[-1][2], j + codes[-1][4]
    if i < len(a) or j < len(b) or max(len(one), len(other)) > _LONGEST:
        yield [], [_TOO_LONG]


def differences(one: str, other: str, *, context: int = 8, most_changes: int = 12, most_words: int = 40) -> list[str]:
    """A line for each place where the texts differ, with `context` words before and after it.

    `[-...-]` is only in `one`, `{+...+}` only in `other` (red and green on a terminal). At most `most_changes` places
    are shown, and at most `most_words` of each run of words.
    """
    if one == other:
        return ["the texts are equal"]
    lines, found = list[str](), list(hunks(one, other, context))
    for hunk in found[:most_changes]:
        marks = list[str]()
        for ours, theirs in hunk:
            if ours == theirs:
                marks.append(join_words(ours, len(ours)))
                continue
            if ours:
                marks.append(click.style(f"[-{join_words(ours, most_words)}-]", fg="red"))
            if theirs:
                marks.append(click.style(f"{{+{join_words(theirs, most_words)}+}}", fg="green"))
        lines.append(" ".join(filter(None, marks)))
    if len(found) > most_changes:
        lines.append(f"and {len(found) - most_changes} more places")
    return lines or ["the texts differ only in white space"]
