"""What lint found, as a table: a line a source, and below it what is wrong or worth a look."""

from collections.abc import Iterator

from datakit.pack.inspect import WRONG, LintCounts

WORTH_A_LOOK = ("truncated_answers", "special_in_content")


def table(by_source: dict[str, LintCounts]) -> Iterator[str]:
    """Lines of text."""
    width = max((len(s) for s in by_source), default=6)
    yield f"{'source':<{width}} {'sequences':>12} {'tokens':>16} {'labels':>16} {'share':>7}"
    for source, c in by_source.items():
        yield f"{source:<{width}} {c.sequences:>12,} {c.tokens:>16,} {c.labels:>16,} {c.label_share:>7.1%}"
        for names, mark in ((WRONG, "WRONG"), (WORTH_A_LOOK, "look at")):
            yield from (f"  {mark:<8} {n:>12,} {name}" for name in names if (n := getattr(c, name)))
    if not any(getattr(c, name) for c in by_source.values() for name in WRONG):
        yield "nothing that is always wrong was found"
