"""HTML pages that need nothing else, no network and no other file.

Templates are in `templates/`. Everything that comes from data is escaped, and a content security policy lets only the
page's own script run, by its hash: the search in the samples of a report. Pages follow the reader's light or dark
setting and are readable on a telephone.
"""

import base64
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from datakit.report.finder import join_words, visible
from datakit.report.tables import cell, densities, losses, share

if TYPE_CHECKING:
    import jinja2


@cache
def templates() -> "jinja2.Environment":
    """The templates of pages, with filters; control characters in what they are given are spelled out."""
    import jinja2
    from markupsafe import Markup, escape

    made = jinja2.Environment(
        loader=jinja2.PackageLoader("datakit.report"),
        autoescape=lambda name: name is None or name.endswith((".html", ".svg")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda v: visible(v) if type(v) is str else v,
    )
    made.globals |= {"share": share, "losses": losses, "densities": densities, "join_words": join_words}
    made.filters["number"] = cell
    made.filters["percent"] = lambda v: f"{v:.1%}"
    made.filters["plain"] = lambda v: f"{v:,.0f}" if abs(v) >= 100 else f"{v:.3g}"
    made.filters["sha256"] = lambda text: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    made.filters["line"] = lambda text: " ".join(re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text).split())  # of Markdown
    made.filters["code"] = lambda text: "`" + " ".join(text.replace("`", "'").replace("|", "\\|").split()) + "`"
    made.filters["breaks"] = lambda text: Markup(str(escape(visible(text))).replace("\n", "<em>↵</em>\n"))
    return made


def render(template: str, **values: Any) -> str:
    """A page of a template."""
    return templates().get_template(template).render(values)


# Histograms.

BINS = 40
"""Of every histogram."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Values of many rows, counted in bins of one width (of one ratio, where `logarithmic`), and their limit."""

    name: str
    counts: list[int]
    low: float
    high: float
    limit: float | None = None
    logarithmic: bool = False
    outside: int = 0
    """Values beyond the last edge, which are counted in the last bin."""


def histogram(
    name: str, values: npt.NDArray[Any], limit: float | None = None, *, logarithmic: bool = False
) -> Histogram | None:
    """Count values from the least to the 99.5th percentile (or the largest, where `logarithmic`).

    The range reaches to the limit if that is near. None where there are no finite values.
    """
    values = np.asarray(values, np.float64)
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    if logarithmic:
        low = max(float(values.min()), 1.0)
        high = max(float(values.max()), 1.1 * low)  # rows may all be of one length
        edges = np.geomspace(low, high, BINS + 1)
    else:
        low, high = float(values.min()), float(np.quantile(values, 0.995))
        if limit is not None and np.isfinite(limit):
            span = max(high - low, 1e-9)
            if limit - high < 2 * span and low - limit < 2 * span:  # a limit that is far away would squeeze all bars
                low, high = min(low, limit), max(high, limit)
        if low == high:  # one value: from 0, so that a share stays one
            low, high = min(low, 0.0), max(high, 0.0) or 1.0
        edges = np.linspace(low, high, BINS + 1)
    counts = np.histogram(np.clip(values, low, high), edges)[0].tolist()
    return Histogram(name, counts, low, high, limit, logarithmic, int((values > high).sum()))
