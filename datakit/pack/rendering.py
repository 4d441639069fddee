"""What a chat template made of messages: the text, where the row's own text stands in it, and its structure."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from datakit.pack.provenance import Span, Tracked
from datakit.pack.sandbox import MARK, OPEN


@dataclass(frozen=True, slots=True)
class Rendering:
    """What a template made of messages."""

    text: str
    spans: tuple[Span, ...] = ()
    """Where text of the row stands, if the messages were tracked."""
    generated: tuple[tuple[int, int], ...] = ()
    """`{% generation %}` blocks, in characters of `text`."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The added tokens that a template itself wrote, and the text with these (and only these) in reserved spelling."""

    text: str
    tokens: tuple[tuple[int, int, int], ...]
    """Start and end in the rendering, and id."""

    def place(self, characters: Sequence[int]) -> list[int]:
        """Where characters of the rendering, not inside a structural token, stand in `text`."""
        ends = [end for _, end, _ in self.tokens]
        shifts = [0, *accumulate(2 - (end - start) for start, end, _ in self.tokens)]
        return [at + shifts[bisect_right(ends, at)] for at in characters]


def untagged(rendering: Rendering) -> Iterable[tuple[int, int]]:
    """The stretches that the template wrote."""
    at = 0
    for start, end, _ in rendering.spans:
        if start > at:
            yield at, start
        at = max(at, end)
    if at < len(rendering.text):
        yield at, len(rendering.text)


def unmarked(text: str) -> Rendering:
    """Take the generation marks out of a rendering."""
    if not isinstance(text, Tracked):
        return Rendering(text)
    kept, spans, opened, generated = [], [], [], []
    at = shift = 0
    for start, end, tag in text.spans:
        if tag != MARK:
            spans.append((start - shift, end - shift, tag))
            continue
        kept.append(str.__getitem__(text, slice(at, start)))
        if str.__getitem__(text, start) == OPEN:
            opened.append(start - shift)
        elif opened:
            generated.append((opened.pop(), start - shift))
        at, shift = end, shift + 1
    kept.append(str.__getitem__(text, slice(at, None)))
    return Rendering("".join(kept), tuple(spans), tuple(generated))
