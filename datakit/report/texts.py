"""The text of rows for a terminal: one text, or two texts with their differences marked. White space does not count."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from io import StringIO
from typing import Any

import click

LINE_WIDTH = 400
"""Characters of a row that are shown on one line."""

MOST_TOKENS = 2000
"""Words of each text that are compared at one time: the time grows with the square. The next ones follow where the
texts were last equal."""

_MOST_WINDOWS = 30
"""How often that is done."""

_LONG = 200_000
"""Characters of both texts from which on their equal ends are cut off before they are split into words."""

_LONGEST = 2_000_000
"""Characters of a text that are compared after that."""

_MARGIN = 20_000
"""Characters of the equal ends that are kept as context."""

_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORDS = re.compile(rf"[{_SPACELESS}]|[^\s{_SPACELESS}]+")
_TOO_LONG = "… the rest is too long to compare"


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


# Two texts below one another.


def differences(one: str, other: str, *, context: int = 8, most_changes: int = 12, most_words: int = 40) -> list[str]:
    """A line for each place where the texts differ, with `context` words before and after it.

    `[-...-]` is only in `one`, `{+...+}` only in `other` (red and green on a terminal). At most `most_changes` places
    are shown, and at most `most_words` of each run of words.
    """
    if one == other:
        return ["the texts are equal"]
    lines = [_marked_line(change, most_words) for change in _changes(one, other, context)]
    rest = len(lines) - most_changes
    more = [f"and {rest} more places"] if rest > 0 else []
    return lines[:most_changes] + more or ["the texts differ only in white space"]


Change = tuple[list[str], list[str], list[str], list[str]]
"""Words before the change, words only in `one`, words only in `other`, words after the change."""
Stretch = tuple[list[str], list[str]]
"""Words of `one` and words of `other`; both are the same where the texts are equal."""


@dataclass(frozen=True, slots=True)
class _TokenPair:
    """The tokens of two texts, and how many tokens at each end are equal."""

    a: list[str]
    b: list[str]
    equal_at_start: int
    equal_at_end: int

    @classmethod
    def split(cls, one: str, other: str, pattern: re.Pattern[str]) -> "_TokenPair":
        """Split both texts into the matches of a pattern."""
        a, b = pattern.findall(one), pattern.findall(other)
        shorter = min(len(a), len(b))
        start = next((i for i in range(shorter) if a[i] != b[i]), shorter)
        end = next((i for i in range(shorter - start) if a[-1 - i] != b[-1 - i]), shorter - start)
        return cls(a, b, start, end)

    def _windows(self) -> Iterator[list[tuple[bool, int, int, int, int]] | None]:
        """Stretches of both texts (equal, begin and end in each), `MOST_TOKENS` tokens at one time; None at last
        where it ends before the texts do."""
        i = j = self.equal_at_start
        ends = len(self.a) - self.equal_at_end, len(self.b) - self.equal_at_end
        for _ in range(_MOST_WINDOWS):
            while i < ends[0] and j < ends[1] and self.a[i] == self.b[j]:
                i, j = i + 1, j + 1
            x, y = self.a[i : min(i + MOST_TOKENS, ends[0])], self.b[j : min(j + MOST_TOKENS, ends[1])]
            codes = SequenceMatcher(None, x, y, autojunk=False).get_opcodes()
            found = [(tag == "equal", i + p, i + q, j + r, j + t) for tag, p, q, r, t in codes]
            if (i + len(x), j + len(y)) == ends:
                yield found
                return
            last = max((n for n, stretch in enumerate(found) if stretch[0]), default=len(found) - 1)
            yield found[: last + 1]
            _, _, i, _, j = found[last]
        yield None

    def changes(self, context: int) -> Iterator[Change]:
        """The changes between the equal ends."""
        for window in self._windows():
            for equal, i, i_end, j, j_end in window or ():
                if not equal:
                    before = self.a[max(i - context, 0) : i]
                    yield before, self.a[i:i_end], self.b[j:j_end], self.a[i_end : i_end + context]
            if window is None:
                yield [], [], [], [_TOO_LONG]

    def hunks(self, context: int) -> Iterator[list[Stretch]]:
        """The changes as stretches; changes that are closer than twice the context form one hunk."""
        hunk: list[Stretch] = []
        for window in self._windows():
            for equal, i, i_end, j, j_end in window or ():
                if not equal:
                    before = self.a[max(i - context, 0) : i]
                    hunk = hunk or [(before, before)]
                    hunk.append((self.a[i:i_end], self.b[j:j_end]))
                elif i_end - i > 2 * context and hunk:
                    yield [*hunk, (self.a[i : i + context], self.b[j : j + context])]
                    hunk = []
                elif hunk:
                    hunk.append((self.a[i:i_end], self.b[j:j_end]))
            if window is None:
                yield from [hunk] if hunk else []
                hunk = []
                yield [([_TOO_LONG], [_TOO_LONG])]
        if hunk:
            after = self.a[len(self.a) - self.equal_at_end :][:context]
            yield [*hunk, (after, after)]


def _changes(one: str, other: str, context: int) -> Iterator[Change]:
    one, other, complete = _cut_equal_ends(one, other)
    if not complete:
        yield [], [], [], [_TOO_LONG]
    yield from _TokenPair.split(one, other, _WORDS).changes(context)


def hunks(one: str, other: str, context: int) -> Iterator[list[Stretch]]:
    """The places where two texts differ, with `context` words around each; a stretch whose sides differ is a change."""
    one, other, complete = _cut_equal_ends(one, other)
    if not complete:
        yield [([_TOO_LONG], [_TOO_LONG])]
    yield from _TokenPair.split(one, other, _WORDS).hunks(context)


def _cut_equal_ends(one: str, other: str) -> tuple[str, str, bool]:
    """Long texts without most of their equal ends, and whether all that differs is still there."""
    if len(one) + len(other) < _LONG:
        return one, other, True
    start = _equal_characters(one, other, min(len(one), len(other)))
    end = _equal_characters(one, other, min(len(one), len(other)) - start, at_end=True)
    cut, rest = max(start - _MARGIN, 0), max(end - _MARGIN, 0)
    one, other = one[cut : len(one) - rest], other[cut : len(other) - rest]
    return one[:_LONGEST], other[:_LONGEST], max(len(one), len(other)) <= _LONGEST


def _equal_characters(one: str, other: str, most: int, *, at_end: bool = False) -> int:
    """How many characters the texts share at their start or end: a binary search that compares whole slices."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if at_end:
            same = one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]
        else:
            same = one[low:middle] == other[low:middle]
        low, high = (middle, high) if same else (low, middle - 1)
    return low


def _near_the_difference(ours: list[str], theirs: list[str]) -> tuple[list[str], list[str]]:
    """The words, without the equal beginning of long first words, so that what differs is in sight."""
    if not ours or not theirs or min(len(ours[0]), len(theirs[0])) < LINE_WIDTH:
        return ours, theirs
    same = _equal_characters(ours[0], theirs[0], min(len(ours[0]), len(theirs[0]))) - LINE_WIDTH // 10
    if same <= 0:
        return ours, theirs
    return ["…" + ours[0][same:], *ours[1:]], ["…" + theirs[0][same:], *theirs[1:]]


def _marked_line(change: Change, most_words: int) -> str:
    before, ours, theirs, after = change
    ours, theirs = _near_the_difference(ours, theirs)
    parts = [join_words(before, len(before))] if before else []
    parts += [click.style(f"[-{join_words(ours, most_words)}-]", fg="red")] if ours else []
    parts += [click.style(f"{{+{join_words(theirs, most_words)}+}}", fg="green")] if theirs else []
    parts += [join_words(after, len(after))] if after else []
    return " ".join(parts)


# Two texts in two columns.

LEAST_COLUMNS = 60
"""In fewer characters, each column would be too narrow to read."""

_MOST_STRETCH_WORDS = 200
"""Words of one stretch that are shown."""


def side_by_side(
    one: str, other: str, name: str, other_name: str, columns: int, *, context: int = 25, most_places: int = 12
) -> list[str]:
    """Lines of a table in two columns: a row for each place where the texts differ, with `context` words around it.

    The marks are those of `differences`. Empty if `columns` characters are too few, or if the words do not differ.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    found = list(hunks(one, other, context)) if columns >= LEAST_COLUMNS else []
    if not found:
        return []

    def cell(hunk: list[Stretch], side: int, begin: str, end: str, color: str) -> Text:
        parts = []
        for stretch in hunk:
            if stretch[side]:
                words = join_words(_near_the_difference(*stretch)[side], _MOST_STRETCH_WORDS)
                parts.append(Text(words) if stretch[0] == stretch[1] else Text(f"{begin}{words}{end}", color))
        return Text(" ").join(parts)

    table = Table(show_lines=True, width=columns, expand=True)
    for title in (name, other_name):
        table.add_column(Text(visible(title)[:2000]), ratio=1, overflow="fold")
    for hunk in found[:most_places]:
        table.add_row(cell(hunk, 0, "[-", "-]", "red"), cell(hunk, 1, "{+", "+}", "green"))
    if len(found) > most_places:
        table.add_row(Text(f"and {len(found) - most_places} more places"), Text())
    page = StringIO()
    Console(file=page, width=columns, force_terminal=True, color_system="standard", legacy_windows=False).print(table)
    return page.getvalue().splitlines()
