"""Two texts with their differences marked, below one another or in two columns. White space does not count."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import click

from datakit.report.finder import LINE_WIDTH, visible
from datakit.report.tables import rendered

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


_COLOURS = {"one": "red", "other": "green"}


def _marks(hunk: Sequence[Stretch], most_words: int) -> Iterator[tuple[str, str]]:
    """(side, marked text): `[-...-]` stands in the first text only, `{+...+}` in the second, "" is the side of both."""
    for ours, theirs in hunk:
        if ours == theirs:
            yield "", join_words(ours, len(ours))
            continue
        ours, theirs = _near_the_difference(ours, theirs)
        if ours:
            yield "one", f"[-{join_words(ours, most_words)}-]"
        if theirs:
            yield "other", f"{{+{join_words(theirs, most_words)}+}}"


def _near_the_difference(ours: list[str], theirs: list[str]) -> Stretch:
    """The words, without the equal beginning of long first words, so that what differs is in sight."""
    if not ours or not theirs or min(len(ours[0]), len(theirs[0])) < LINE_WIDTH:
        return ours, theirs
    pairs = enumerate(zip(ours[0], theirs[0], strict=False))
    same = next((n for n, (mine, yours) in pairs if mine != yours), LINE_WIDTH)
    if same <= LINE_WIDTH // 10:
        return ours, theirs
    cut = same - LINE_WIDTH // 10
    return ["…" + ours[0][cut:], *ours[1:]], ["…" + theirs[0][cut:], *theirs[1:]]


def compared(one: str, other: str, names: tuple[str, str], columns: int) -> list[str]:
    """The differences in two columns if `columns` characters are enough for that, else below one another."""
    return side_by_side(one, other, *names, columns) or differences(one, other)


def differences(one: str, other: str, *, context: int = 8, most_changes: int = 12, most_words: int = 40) -> list[str]:
    """A line for each place where the texts differ, with `context` words before and after it.

    `[-...-]` is only in `one`, `{+...+}` only in `other` (red and green on a terminal). At most `most_changes` places
    are shown, and at most `most_words` of each run of words.
    """
    if one == other:
        return ["the texts are equal"]
    lines = []
    found = list(hunks(one, other, context))
    for hunk in found[:most_changes]:
        marks = (click.style(t, fg=_COLOURS[s]) if s else t for s, t in _marks(hunk, most_words))
        lines.append(" ".join(filter(None, marks)))
    if len(found) > most_changes:
        lines.append(f"and {len(found) - most_changes} more places")
    return lines or ["the texts differ only in white space"]


def side_by_side(
    one: str, other: str, name: str, other_name: str, columns: int, *, context: int = 25, most_places: int = 12
) -> list[str]:
    """Lines of a table in two columns: a row for each place where the texts differ, with `context` words around it.

    The marks are those of `differences`. Empty if `columns` characters are too few, or if the words do not differ.
    """
    from rich.table import Table
    from rich.text import Text

    found = list(hunks(one, other, context)) if columns >= LEAST_COLUMNS else []
    table = Table(show_lines=True, width=columns, expand=True)
    for title in (name, other_name):
        table.add_column(Text(visible(title)[:2000]), ratio=1, overflow="fold")
    for hunk in found[:most_places]:
        cells = {"one": Text(), "other": Text()}
        for side, text in _marks(hunk, 200):
            for name in filter(None, [side] if side else cells):
                cells[name].append(" " if cells[name] and text else "").append(text, _COLOURS.get(side))
        table.add_row(*cells.values())
    if len(found) > most_places:
        table.add_row(f"and {len(found) - most_places} more places", "")
    return rendered(table, columns, colours=True) if found else []
