"""Charts for HTML pages: SVG without scripts or fonts of its own, in the colours of the page, light or dark.

Matplotlib draws them. Text and axes have the page's text colour (`currentColor`), bars its accent (`--bar`), and limits
its mark (`--limit`). The same values give the same bytes.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from datakit.errors import MissingExtraError, UsageError

BINS = 50
_WIDTH, _HEIGHT = 4.6, 2.0
"""Inches, at 72 units an inch in the SVG: on a page of 400 pixels, text is as large as beside it."""
_COLOURS = {"#010203": "currentColor", "#010204": "var(--bar)", "#010205": "var(--limit)", "#010206": "var(--faint)"}
_TEXT, _BAR, _LIMIT, _FAINT = _COLOURS


@dataclass(frozen=True, slots=True)
class Histogram:
    """Values of many rows, counted, and the limit that they are compared with."""

    name: str
    counts: npt.NDArray[np.int64]
    edges: npt.NDArray[np.float64]
    """One more than counts."""
    limit: float | None = None
    logarithmic: bool = False
    outside: int = 0
    """Values beyond the last edge, which are counted in the last bin."""


def histogram(
    name: str, values: npt.NDArray[Any], limit: float | None = None, *, logarithmic: bool = False
) -> Histogram | None:
    """Count values in `BINS` bins from the least to the 99.5th percentile, further if the limit lies there.

    None where there are no finite values.
    """
    values = np.asarray(values, np.float64)
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    if logarithmic:
        low, high = max(float(values.min()), 1.0), max(float(values.max()), 2.0)
        edges = np.geomspace(low, high, BINS + 1)
        counts = np.histogram(np.clip(values, low, high), edges)[0]
        return Histogram(name, counts, edges, limit, True)
    low, high = float(values.min()), float(np.quantile(values, 0.995))
    if limit is not None and np.isfinite(limit):
        span = max(high - low, 1e-9)
        if limit - high < 2 * span and low - limit < 2 * span:  # a limit that is far away would squeeze all bars
            low, high = min(low, limit), max(high, limit)
    if high <= low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, BINS + 1)
    counts = np.histogram(np.clip(values, low, high), edges)[0]
    return Histogram(name, counts, edges, limit, outside=int((values > high).sum()))


def draw(shown: Histogram, unit: str = "rows") -> str:
    """A histogram as `<svg>`, with a line at its limit.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure, axes = _figure()
    axes.stairs(shown.counts, shown.edges, fill=True, color=_BAR)
    if shown.logarithmic:
        axes.set_xscale("log")
    if shown.limit is not None and np.isfinite(shown.limit):
        left, right = axes.get_xlim()
        if left <= shown.limit <= right:
            axes.axvline(shown.limit, color=_LIMIT, linewidth=1.6)
    axes.set_ylabel(unit, color=_TEXT, fontsize=9)
    limit = "" if shown.limit is None else f", limit {shown.limit:g}"
    return _svg(figure, f"Histogram of {shown.name}: {int(shown.counts.sum()):,} {unit}{limit}")


def bars(names: Sequence[str], values: Sequence[float], title: str) -> str:
    """Horizontal bars with their values as `<svg>`; the first name is on top."""
    figure, axes = _figure(max(_HEIGHT, 0.24 * len(names) + 0.5))
    at = np.arange(len(names))[::-1]
    axes.barh(at, values, color=_BAR, height=0.72)
    axes.set_yticks(at, [name if len(name) <= 28 else f"{name[:27]}…" for name in names])
    for place, value in zip(at, values, strict=True):
        axes.annotate(f" {value:,.4g}", (value, place), va="center", fontsize=8, color=_TEXT)
    axes.margins(x=0.16)
    return _svg(figure, title)


def save_curves(path: Path, x: Sequence[float], lines: Mapping[str, Sequence[float]], mark: float, name: str) -> None:
    """Write lines from 0 to 1 over the same places as a picture, with a mark at one of them: PNG or SVG, by the suffix.

    Raises:
        UsageError: another suffix.
        MissingExtraError: matplotlib is not installed.
    """
    if path.suffix not in (".png", ".svg"):
        raise UsageError(f"{path}: expected a name that ends in .png or .svg")
    figure, axes = _figure(3.2)
    figure.patch.set_alpha(1)
    for label, values in lines.items():
        axes.plot(x, values, label=label, linewidth=1.6)
    axes.axvline(mark, color=_TEXT, linewidth=1, linestyle="--")
    axes.set_ylim(-0.02, 1.02)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, framealpha=0)
    axes.set_xlabel(name, fontsize=9)
    figure.savefig(path, dpi=160, metadata={"Date": None} if path.suffix == ".svg" else {})


def _figure(height: float = _HEIGHT) -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("the charts of this page need matplotlib: `pip install 'datakit[plot]'`") from None
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    axes = figure.add_subplot()
    figure.patch.set_alpha(0)
    axes.patch.set_alpha(0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(_FAINT)
    axes.tick_params(colors=_TEXT, labelsize=8, length=3)
    return figure, axes


def _svg(figure: Any, label: str) -> str:
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "datakit", "axes.unicode_minus": False,
                         "text.usetex": False, "text.parse_math": False}):  # fmt: skip
        out = StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)  # it would hold for the whole page
    text = re.sub(r"font-family: [^;]*;", "", text)
    for colour, named in _COLOURS.items():
        text = text.replace(colour, named)
    text = re.sub(r'<svg [^>]*?viewBox="([^"]+)"[^>]*>', rf'<svg viewBox="\1" role="img" aria-label="{escape(label)}">',
                  text, count=1)  # fmt: skip
    return _own_names(text, label)


def _own_names(text: str, label: str) -> str:
    """The SVG with names that no other one of the page has: matplotlib numbers its parts from 1 in each figure."""
    prefix = "c" + hashlib.sha256((label + text).encode()).hexdigest()[:8]
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r'xlink:href="#([^"]+)"', rf'href="#{prefix}-\1"', text)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", text)
