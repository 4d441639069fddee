"""What `datakit tune` shows of the filter's thresholds: lines for a terminal, and a page with histograms."""

from collections.abc import Iterator, Sequence

from datakit.filter.thresholds import Finding
from datakit.report.charts import draw, histogram
from datakit.report.page import table, text, whole_page


def summary_lines(found: Sequence[Finding], total: int) -> Iterator[str]:
    """A table of the thresholds, the one that drops most first; `total` is the number of rows."""
    if not found:
        yield "no threshold judges by a signal that is saved here; if the filter stage is stale, run it again"
        return
    width = max(len(f.name) for f in found)
    yield f"{'threshold':<{width}}  {'limit':>10}  {'drops':>12}  {'':>6}  {'drops first':>12}"
    for f in _most_first(found):
        yield f"{f.name:<{width}}  {f.limit:>10g}  {f.drops:>12,}  {share(f.drops, total):>6}  {f.first:>12,}"


def finding_lines(finding: Finding, total: int, groups: int, texts: dict[str, str]) -> list[str]:
    """Lines about one threshold; `texts` are those of some rows by id, `groups` the languages and sources to show."""
    lines = [
        f"{finding.name} = {finding.limit}",
        f"  drops     {finding.drops:>12,} of {total:,} rows ({share(finding.drops, total)}); "
        f"{finding.first:,} that no earlier threshold drops",
    ]
    if finding.rows < total:
        lines.append(f"  skips     {total - finding.rows:>12,} rows that the threshold does not judge")
    if finding.limits:
        lines.append("  a limit of  " + ", ".join(f"{v:g} drops {s:.1%}" for v, s in finding.limits.items()))
    for column, counts in finding.groups.items():
        if shown := _groups(counts, groups):
            lines.append(f"  {column:<9} {shown}")
    for side, rows in (("stays", finding.inside), ("drops", finding.outside)):
        lines += [f"  {side}  {value:g}  {row_id}: {texts.get(row_id, '')}" for row_id, value in rows]
    return lines


def tuning_page(title: str, found: Sequence[Finding], total: int, groups: int, texts: dict[str, str]) -> str:
    """The page: the table, then a card with a histogram for each threshold, the one that drops most first.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    order = _most_first(found)
    rows = [
        [f'<a href="#{f.name}">{f.name}</a>', f"{f.limit:g}", f"{f.drops:,}", share(f.drops, total), f"{f.first:,}"]
        for f in order
    ]
    body = [
        f"<h1>{text(title)}</h1>",
        f"<p>{total:,} rows. Each threshold by itself; the line in a histogram is its limit.</p>",
        table(["threshold", "limit", "drops", "share", "drops first"], rows, range(1, 5)),
        '<div class="grid">',
        *(_card(f, total, groups, texts) for f in order),
        "</div>",
    ]
    return whole_page(title, "\n".join(body))


def _card(finding: Finding, total: int, groups: int, texts: dict[str, str]) -> str:
    about = [f"drops {finding.drops:,} ({share(finding.drops, total)})"]
    about += [f"{finding.first:,} that no earlier threshold drops"]
    if finding.rows < total:
        about.append(f"does not judge {total - finding.rows:,}")
    more = []
    if finding.limits:
        more.append("A limit of " + ", ".join(f"{v:g} drops {s:.1%}" for v, s in finding.limits.items()))
    more += [f"By {column}: {shown}" for column, counts in finding.groups.items() if (shown := _groups(counts, groups))]
    for side, rows in (("Stays", finding.inside), ("Drops", finding.outside)):
        more += [f"{side}, {value:g}: {row_id}: {texts.get(row_id, '')}" for row_id, value in rows]
    lines = "\n".join(f'<p class="faint">{text(line)}</p>' for line in more)
    chart = histogram(finding.name, finding.values, finding.limit)
    return (
        f'<div class="card" id="{finding.name}"><h3>{finding.name} = {finding.limit:g}</h3>\n'
        f"<p>{'; '.join(about)}</p>\n"
        f"{draw(chart) if chart else ''}\n{lines}</div>"
    )


def _most_first(found: Sequence[Finding]) -> list[Finding]:
    return sorted(found, key=lambda f: -f.drops)


def _groups(counts: dict[str, tuple[int, int]], most: int) -> str:
    shown = list(counts.items())[:most]
    if not shown:
        return ""
    rest = f", and {len(counts) - most} more" if len(counts) > most else ""
    return ", ".join(f"{key} {share(drops, rows)} of {rows:,}" for key, (rows, drops) in shown) + rest


def share(part: int, whole: int) -> str:
    """A part as a percentage."""
    return f"{part / whole:.1%}" if whole else "0%"
