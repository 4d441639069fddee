"""The text of rows for a terminal: one text, or two texts with their differences marked. White space does not count."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Any

import click

LINE_WIDTH = 400
"""Characters of a row that are shown on one line."""
MOST_TOKENS = 2000
"""Words of each text that are compared at one time: the time grows with the square. The next ones follow where the
texts were last equal."""
_MOST_WINDOWS = 30
"""How often that is done."""
_LONGEST = 10_000_000
"""Characters of a text that are compared."""
_MOST_STRETCHES = 24
"""Of one place: a longer one is cut."""
LEAST_COLUMNS = 60
"""In fewer characters, each of two columns would be too narrow to read."""

_UNSEGMENTED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORDS = re.compile(rf"[{_UNSEGMENTED}]|[^\s{_UNSEGMENTED}]+")
_TOO_LONG = "… the rest is too long to compare"

Stretch = tuple[list[str], list[str]]
"""Words of two texts; both are the same where the texts are equal."""


# One text.


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


def shorten(text: str, width: int = LINE_WIDTH) -> str:
    """One line of at most `width` characters, as `visible` shows them; ↵ stands for a line's end."""
    line = visible(text[: 2 * width].replace("\r\n", "\n").replace("\n", "↵"))
    return line if len(line) <= width else line[: width - 1] + "…"


def visible(text: str) -> str:
    """The text with control and direction characters spelled out, so that a row cannot control a terminal or a page."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\u{ord(c):04x}" for c in text)


def join_words(words: Sequence[str], most: int) -> str:
    """The first `most` words as text that is safe on a terminal."""
    rest = f" … {len(words) - most:,} more" if len(words) > most else ""
    return visible(" ".join(words[:most])[:2000]) + rest


# Two texts.


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
    if hunk:
        yield hunk if hunk[-1][0] != hunk[-1][1] else [*hunk[:-1], (hunk[-1][0][:context],) * 2]


def _stretches(one: str, other: str) -> Iterator[Stretch]:
    """Equal and different stretches of both texts, in order."""
    a, b = _WORDS.findall(one[:_LONGEST]), _WORDS.findall(other[:_LONGEST])
    shorter = min(len(a), len(b))
    tail = next((n for n in range(shorter) if a[-1 - n] != b[-1 - n]), shorter)
    i = j = 0
    ends = len(a) - tail, len(b) - tail
    for _ in range(_MOST_WINDOWS):
        equal = next((n for n in range(min(ends[0] - i, ends[1] - j)) if a[i + n] != b[j + n]), None)
        equal = min(ends[0] - i, ends[1] - j) if equal is None else equal
        if equal > 0:
            yield a[i : i + equal], b[j : j + equal]
            i, j = i + equal, j + equal
        x, y = a[i : min(i + MOST_TOKENS, ends[0])], b[j : min(j + MOST_TOKENS, ends[1])]
        codes = SequenceMatcher(None, x, y, autojunk=False).get_opcodes()
        if not (whole := (i + len(x), j + len(y)) == ends):  # what stands behind the last equal words is seen again
            last = max((n for n, code in enumerate(codes) if code[0] == "equal"), default=len(codes) - 1)
            codes = codes[: last + 1]
        yield from ((x[p:q], y[r:t]) for _, p, q, r, t in codes)
        if whole:
            yield from [(a[ends[0] :], b[ends[1] :])] if tail else []
            break
        i, j = i + codes[-1][2], j + codes[-1][4]
    if len(one) > _LONGEST or len(other) > _LONGEST or ((i, j) < ends and not whole):
        yield [], [_TOO_LONG]


def _marks(hunk: Sequence[Stretch], most_words: int) -> Iterator[tuple[str, str]]:
    """(side, marked text): `[-...-]` stands in the first text only, `{+...+}` in the second, "" is the side of both."""
    for ours, theirs in hunk:
        if ours == theirs:
            yield from [("", join_words(ours, len(ours)))] if ours else []
            continue
        ours, theirs = _near_the_difference(ours, theirs)
        yield from [("one", f"[-{join_words(ours, most_words)}-]")] if ours else []
        yield from [("other", f"{{+{join_words(theirs, most_words)}+}}")] if theirs else []


def _near_the_difference(ours: list[str], theirs: list[str]) -> Stretch:
    """The words, without the equal beginning of long first words, so that what differs is in sight."""
    if not ours or not theirs or min(len(ours[0]), len(theirs[0])) < LINE_WIDTH:
        return ours, theirs
    same = next((n for n, (a, b) in enumerate(zip(ours[0], theirs[0], strict=False)) if a != b), LINE_WIDTH)
    cut = max(same - LINE_WIDTH // 10, 0)
    mark = "…" if cut else ""
    return [mark + ours[0][cut:], *ours[1:]], [mark + theirs[0][cut:], *theirs[1:]]


_COLOURS = {"": None, "one": "red", "other": "green"}


def differences(one: str, other: str, *, context: int = 8, most_changes: int = 12, most_words: int = 40) -> list[str]:
    """A line for each place where the texts differ, with `context` words before and after it.

    `[-...-]` is only in `one`, `{+...+}` only in `other` (red and green on a terminal). At most `most_changes` places
    are shown, and at most `most_words` of each run of words.
    """
    if one == other:
        return ["the texts are equal"]
    found = list(hunks(one, other, context))
    lines = [
        " ".join(click.style(text, fg=_COLOURS[side]) if side else text for side, text in _marks(hunk, most_words))
        for hunk in found[:most_changes]
    ]
    more = [f"and {len(found) - most_changes} more places"] if len(found) > most_changes else []
    return lines + more or ["the texts differ only in white space"]


def side_by_side(
    one: str, other: str, name: str, other_name: str, columns: int, *, context: int = 25, most_places: int = 12
) -> list[str]:
    """Lines of a table in two columns: a row for each place where the texts differ, with `context` words around it.

    The marks are those of `differences`. Empty if `columns` characters are too few, or if the words do not differ.
    """
    from rich.table import Table
    from rich.text import Text

    from datakit.report.tables import rendered

    found = hunks(one, other, context) if columns >= LEAST_COLUMNS else iter(())
    table = Table(show_lines=True, width=columns, expand=True)
    for title in (name, other_name):
        table.add_column(Text(visible(title)[:2000]), ratio=1, overflow="fold")
    for hunk in islice(found, most_places):
        parts = list(_marks(hunk, 200))
        cells = ([Text(text, _COLOURS[s] or "") for s, text in parts if s in ("", side)] for side in ("one", "other"))
        table.add_row(*(Text(" ").join(cell) for cell in cells))
    if more := sum(1 for _ in found):
        table.add_row(Text(f"and {more} more places"), Text())
    return rendered(table, columns, colours=True) if table.row_count else []
