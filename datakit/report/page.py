"""HTML pages that need nothing else, no network and no other file.

Templates are in `templates/`. Everything that comes from data is escaped, and a content security policy lets only the
page's own script run, by its hash: the search in the samples of a report. Pages follow the reader's light or dark
setting and are readable on a telephone.
"""

import base64
import hashlib
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from datakit.report.finder import visible
from datakit.report.tables import cell, densities, losses, share
from datakit.report.texts import join_words

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
