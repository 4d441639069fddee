"""Pictures and pages for people: figures by matplotlib as inline SVG, in pages of one file for light and dark screens.

A figure is drawn in the colours of `INK`; the page puts CSS variables in their places, so that one SVG serves both
schemes. Nothing is loaded from elsewhere: a page has its styles and figures inside, and its policy forbids the rest.
"""

import io
import itertools
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from datakit.errors import MissingExtraError, UsageError
from datakit.report.texts import visible

INK: Final = {"--ink": "#101112", "--stays": "#2f7fc0", "--drops": "#d9822b", "--third": "#4b9b6e"}
"""By the name of a CSS variable: the colour to draw with, which is also that of light screens and of other files."""

_DARK: Final = {"--ink": "#d8d8d8", "--stays": "#5aa7e6", "--drops": "#f0a050", "--third": "#6cc795"}
_WIDTH_INCHES: Final = 5.2
"""At this width a letter of 9 points is as large on a screen of 400 pixels."""


def _figure(height: float) -> Any:
    """An empty figure and its axes.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("pictures need matplotlib: install datakit[plot]") from None
    figure = Figure(figsize=(_WIDTH_INCHES, height), layout="constrained")
    axes = figure.subplots()
    axes.patch.set_alpha(0)
    axes.spines[["top", "right"]].set_visible(False)
    for spine in axes.spines.values():
        spine.set_color(INK["--ink"])
    axes.tick_params(colors=INK["--ink"], labelsize=9)
    return figure, axes


def _label(axes: Any, x: str, y: str) -> None:
    axes.set_xlabel(x, color=INK["--ink"], fontsize=9)
    axes.set_ylabel(y, color=INK["--ink"], fontsize=9)


def histogram(edges: Sequence[float], stays: Sequence[int], drops: Sequence[int], limit: float, name: str) -> Any:
    """A figure: how many rows have which value, those that a threshold drops in another colour, and the threshold.

    `edges` are those of the bins, one more than `stays` and `drops`. A limit outside of them is named at its side. Rows
    are on a logarithmic scale where the largest bin has more than 100 times the rows of the middle one.
    """
    figure, axes = _figure(1.9)
    widths = [b - a for a, b in itertools.pairwise(edges)]
    axes.bar(edges[:-1], stays, widths, align="edge", color=INK["--stays"], label="stays")
    axes.bar(edges[:-1], drops, widths, bottom=stays, align="edge", color=INK["--drops"], label="drops")
    if edges[0] <= limit <= edges[-1]:
        axes.axvline(limit, color=INK["--ink"], linewidth=1.2, linestyle="--")
    else:
        right = limit > edges[-1]
        place, side = (0.99, "right") if right else (0.01, "left")
        text = f"limit {limit:g} →" if right else f"← limit {limit:g}"
        axes.text(place, 0.9, text, transform=axes.transAxes, ha=side, color=INK["--ink"], fontsize=9)
    axes.yaxis.get_major_locator().set_params(integer=True)
    filled = sorted(a + b for a, b in zip(stays, drops, strict=True) if a + b)
    if filled and filled[-1] > 100 * filled[len(filled) // 2]:
        axes.set_yscale("log")
    _label(axes, name, "rows")
    return figure


def curves(x: Sequence[float], lines: Mapping[str, Sequence[float]], mark: float | None, name: str) -> Any:
    """A figure of lines from 0 to 1 over the same places `x`, each with its name, and a mark at one place."""
    figure, axes = _figure(3.2)
    colours = [INK["--stays"], INK["--drops"], INK["--third"], INK["--ink"]]
    for (label, values), colour, style in zip(lines.items(), colours, ("-", "-", "--", ":"), strict=False):
        axes.plot(x, values, style, color=colour, label=label, linewidth=1.6)
    if mark is not None:
        axes.axvline(mark, color=INK["--ink"], linewidth=1, linestyle="--")
    axes.set_ylim(-0.02, 1.02)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=9, framealpha=0, labelcolor=INK["--ink"])
    _label(axes, name, "")
    return figure


def save(figure: Any, path: Path) -> None:
    """Write a figure as PNG or SVG, by the file's suffix.

    Raises:
        UsageError: another suffix.
    """
    if path.suffix not in (".png", ".svg"):
        raise UsageError(f"{path}: expected a name that ends in .png or .svg")
    figure.savefig(path, dpi=160, **_without_date(path.suffix[1:]))


def svg(figure: Any, title: str) -> str:
    """A figure as an `<svg>` element for a page, which scales with its place; `title` says in words what it shows.

    The same figure gives the same text: names inside it depend on the title.
    """
    from matplotlib import rc_context

    out = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        figure.savefig(out, transparent=True, **_without_date("svg"))
    found = out.getvalue()
    found = found[found.index("<svg") :]
    for name, colour in INK.items():
        found = found.replace(colour, f"var({name})")
    found = re.sub(r'(?<=<svg )(?:height|width)="[^"]*" |(?: width| height)="[^"]*pt"', "", found, count=2)
    found = re.sub(r"<metadata>.*?</metadata>", "", found, flags=re.DOTALL)
    # ids are unique in a page only with a prefix of their own
    prefix = re.sub(r"\W+", "-", title)
    found = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{prefix}-", found)
    return found.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)


def _without_date(kind: str) -> dict[str, Any]:
    return {"format": kind, "metadata": {"Date": None} if kind == "svg" else {"Software": None}}


_STYLE: Final = """\
:root { color-scheme: light dark; LIGHT }
@media (prefers-color-scheme: dark) { :root { DARK } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 80rem; margin: 1.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.2rem; overflow-wrap: anywhere; } h2 { font-size: 1rem; margin: 0 0 .3rem; overflow-wrap: anywhere; }
p { margin: .3rem 0; } .more { opacity: .75; font-size: .85rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .15rem .7rem .15rem 0; white-space: nowrap; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; } a { color: inherit; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(22rem, 100%), 1fr)); gap: 1.2rem; }
.cards > section { border: 1px solid #8884; border-radius: .4rem; padding: .8rem; min-width: 0; }
svg { width: 100%; height: auto; display: block; } svg text { font-family: system-ui, sans-serif; }
b.stays { color: var(--stays); } b.drops { color: var(--drops); }
"""


def page(title: str, body: Sequence[str]) -> str:
    """A page of one file; `body` are HTML parts, whose texts are escaped already."""
    light, dark = ("; ".join(f"{k}: {v}" for k, v in colours.items()) for colours in (INK, _DARK))
    head = escape(visible(title))
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en"><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{head}</title>\n<style>\n{_STYLE.replace('LIGHT', light).replace('DARK', dark)}</style>",
            f"<h1>{head}</h1>",
            *body,
            "</html>\n",
        ]
    )


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in a box that scrolls by itself on narrow screens; cells are HTML."""
    made = ["".join(f"<th>{cell}</th>" for cell in header)]
    made += ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    return '<div class="wide"><table>' + "\n".join(f"<tr>{row}</tr>" for row in made) + "</table></div>"
