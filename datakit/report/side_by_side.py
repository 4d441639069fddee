"""Two texts in two columns, with what only one of them has marked; for a terminal."""

from io import StringIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from datakit.report.differences import Stretch, hunks, said

LEAST_COLUMNS = 60
"""Below it two columns hold too few words each to be read."""

_MOST_WORDS = 200
"""Of a stretch that one text alone has, shown."""


def side_by_side(
    one: str, other: str, name: str, other_name: str, columns: int, *, context: int = 25, most_places: int = 12
) -> list[str]:
    """Lines with a row for each place where the texts differ, `context` words around it on either side.

    What one side alone has is marked as in `differences`, in color where the terminal has it. Empty if `columns`
    characters are too few, or where the texts do not differ in words.
    """
    if columns < LEAST_COLUMNS:
        return []
    found = list(hunks(one, other, context))
    if not found:
        return []
    table = Table(show_lines=True, width=columns, expand=True)
    for title in (name, other_name):
        table.add_column(Text(said([title], 1)), ratio=1, overflow="fold")
    for hunk in found[:most_places]:
        table.add_row(_cell(hunk, 0, "[-", "-]", "red"), _cell(hunk, 1, "{+", "+}", "green"))
    if len(found) > most_places:
        table.add_row(Text(f"and {len(found) - most_places} more places"), Text())
    page = StringIO()
    Console(file=page, width=columns, force_terminal=True, color_system="standard", legacy_windows=False).print(table)
    return page.getvalue().splitlines()


def _cell(hunk: list[Stretch], side: int, begin: str, end: str, color: str) -> Text:
    parts = []
    for stretch in hunk:
        if stretch[side]:
            words = said(stretch[side], _MOST_WORDS)
            parts.append(Text(words) if stretch[0] == stretch[1] else Text(f"{begin}{words}{end}", color))
    return Text(" ").join(parts)
