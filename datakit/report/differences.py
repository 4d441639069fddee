"""Two texts as one, with what only one of them has marked; white space does not count."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import click

from datakit.report.origins import visible

MOST_TOKENS = 2000
"""Beyond it lines are compared first, and words within those that differ: the time grows faster than the texts."""

_LONG = 200_000
"""Characters from which on a text is cut down to what is near the differences before it is split into words."""

_LONGEST = 2_000_000
"""Characters of it that are looked at then."""

_MARGIN = 20_000
"""Characters of the equal ends that are left for context."""

_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORDS = re.compile(rf"[{_SPACELESS}]|[^\s{_SPACELESS}]+")
_TOO_LONG = "… and what is behind it, which is too long to compare"
_LINES = re.compile(r"\S[^\n]*")


def differences(one: str, other: str, *, context: int = 8, most_changes: int = 12, most_words: int = 40) -> list[str]:
    """A line for each place where the texts differ, with `context` words around it.

    `[-...-]` is in `one` alone, `{+...+}` in `other` alone (red and green on a terminal). At most `most_changes` places
    are shown, and of each run of words the first `most_words`.
    """
    if one == other:
        return ["the texts are equal"]
    lines = [_line(place, most_words) for place in _places(one, other, context)]
    rest = len(lines) - most_changes
    more = [f"and {rest} more places"] if rest > 0 else []
    return lines[:most_changes] + more or ["the texts differ in white space alone"]


Tokens = list[str]
Place = tuple[Tokens, Tokens, Tokens, Tokens]
"""What stands before, what `one` has, what `other` has, what stands behind."""
Stretch = tuple[Tokens, Tokens]
"""What `one` has and what `other` has there; where the two are equal, they are the same."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The tokens of two texts, and how many at either end are the same."""

    a: Tokens
    b: Tokens
    before: int
    behind: int

    @classmethod
    def of(cls, one: str, other: str, pattern: re.Pattern[str]) -> "Sides":
        """The tokens that a pattern finds."""
        a, b = pattern.findall(one), pattern.findall(other)
        shorter = min(len(a), len(b))
        before = next((i for i in range(shorter) if a[i] != b[i]), shorter)
        behind = next((i for i in range(shorter - before) if a[-1 - i] != b[-1 - i]), shorter - before)
        return cls(a, b, before, behind)

    @property
    def differing(self) -> int:
        """Tokens of the longer text that are left between the equal ends."""
        return max(len(self.a), len(self.b)) - self.before - self.behind

    def places(self, context: int) -> Iterator[Place]:
        """Where the texts differ, within the first `MOST_TOKENS` of what is between the equal ends."""
        x, y = (t[self.before : len(t) - self.behind][:MOST_TOKENS] for t in (self.a, self.b))
        whole = self.differing <= MOST_TOKENS
        for tag, i, i_end, j, j_end in SequenceMatcher(None, x, y, autojunk=False).get_opcodes():
            start, end = self.before + i, self.before + i_end
            if tag != "equal" and (whole or i_end < len(x) or j_end < len(y)):
                yield self.a[max(start - context, 0) : start], x[i:i_end], y[j:j_end], self.a[end : end + context]
        if not whole:
            yield [], [], [], [_TOO_LONG]

    def hunks(self, context: int) -> Iterator[list[Stretch]]:
        """The same by stretches: places nearer to each other than twice the context are one hunk."""
        begin, behind = max(self.before - context, 0), max(self.behind - context, 0)
        x, y = (t[begin : len(t) - behind][: MOST_TOKENS + 2 * context] for t in (self.a, self.b))
        if x != y:
            for group in SequenceMatcher(None, x, y, autojunk=False).get_grouped_opcodes(context):
                yield [(x[i:i_end], y[j:j_end]) for _, i, i_end, j, j_end in group]
        if self.differing > MOST_TOKENS:
            yield [([_TOO_LONG], [_TOO_LONG])]


def _places(one: str, other: str, context: int) -> Iterator[Place]:
    one, other, whole = _cut_down(one, other)
    if not whole:
        yield [], [], [], [_TOO_LONG]
    words = Sides.of(one, other, _WORDS)
    if words.differing <= MOST_TOKENS:
        yield from words.places(context)
        return
    for _, ours, theirs, behind in Sides.of(one, other, _LINES).places(0):
        if behind:
            yield [], [], [], behind
        yield from Sides.of("\n".join(ours), "\n".join(theirs), _WORDS).places(context)


def hunks(one: str, other: str, context: int) -> Iterator[list[Stretch]]:
    """Where two texts differ, each place with `context` words around it on either side, in stretches."""
    one, other, whole = _cut_down(one, other)
    if not whole:
        yield [([_TOO_LONG], [_TOO_LONG])]
    words = Sides.of(one, other, _WORDS)
    if words.differing <= MOST_TOKENS:
        yield from words.hunks(context)
        return
    for _, ours, theirs, behind in Sides.of(one, other, _LINES).places(0):
        if behind:
            yield [(behind, behind)]
        yield from Sides.of("\n".join(ours), "\n".join(theirs), _WORDS).hunks(context)


def _cut_down(one: str, other: str) -> tuple[str, str, bool]:
    """Long texts without most of their equal ends: (the one, the other, whether all that differs is left)."""
    if len(one) + len(other) < _LONG:
        return one, other, True
    before = _equal_characters(one, other, min(len(one), len(other)))
    behind = _equal_characters(one, other, min(len(one), len(other)) - before, at_end=True)
    start, rest = max(before - _MARGIN, 0), max(behind - _MARGIN, 0)
    one, other = one[start : len(one) - rest], other[start : len(other) - rest]
    return one[:_LONGEST], other[:_LONGEST], max(len(one), len(other)) <= _LONGEST


def _equal_characters(one: str, other: str, most: int, *, at_end: bool = False) -> int:
    """How many characters the texts share at their beginning or end, by halves: each is compared as a whole."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if at_end:
            same = one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]
        else:
            same = one[low:middle] == other[low:middle]
        low, high = (middle, high) if same else (low, middle - 1)
    return low


def _line(place: Place, most_words: int) -> str:
    before, ours, theirs, behind = place
    parts = [said(before, len(before))] if before else []
    parts += [click.style(f"[-{said(ours, most_words)}-]", fg="red")] if ours else []
    parts += [click.style(f"{{+{said(theirs, most_words)}+}}", fg="green")] if theirs else []
    parts += [said(behind, len(behind))] if behind else []
    return " ".join(parts)


def said(words: Sequence[str], most: int) -> str:
    """The first `most` words as text that a terminal can show."""
    rest = f" … {len(words) - most:,} more" if len(words) > most else ""
    return visible(" ".join(words[:most])[:2000]) + rest
