"""Two texts with their differences marked. White space does not count."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import click

from datakit.report.finder import visible

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
