"""For `make docs`: writes the options of every stage below docs/reference/stages.md, from the stages' own configs."""

from typing import Any

from datakit.config import Option, options
from datakit.engine.recipe import STAGES, stage_class


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """mkdocs calls it with each page's text."""
    if page.file.src_uri != "reference/stages.md":
        return markdown
    return markdown + "\n".join(line for name in STAGES for line in _lines(name))


def _lines(stage: str) -> list[str]:
    found = _table(options(stage_class(stage).Config))
    nested = [(o.name, o.help, options(o.nested)) for o in options(stage_class(stage).Config) if o.nested]
    for name, summary, inner in nested:
        found += [f"### {stage}.{name}", "", summary, "", *_table(inner)]
    return [f"## {stage}", "", STAGES[stage].summary, "", *found]


def _table(found: list[Option]) -> list[str]:
    rows = [(f"`{o.name}`", f"`{_default(o)}`", _help(o)) for o in found if not o.nested]
    head = ["| option | default | |", "| --- | --- | --- |"] if rows else []
    return [*head, *(f"| {' | '.join(row)} |" for row in rows), ""]


def _default(o: Option) -> str:
    return repr(list(o.default) if isinstance(o.default, tuple) else o.default)


def _help(o: Option) -> str:
    one_of = f" (one of {', '.join(f'`{c}`' for c in o.choices)})" if o.choices else ""
    return o.help.replace("|", "\\|").replace("<", "&lt;") + one_of
