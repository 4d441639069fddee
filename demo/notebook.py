"""Run docs/notebook.ipynb from top to bottom and keep what each cell shows, as Jupyter does it.

python -m demo.notebook
"""

import ast
import contextlib
import io
import json
import linecache
import sys
from pathlib import Path
from typing import Any, Final

NOTEBOOK: Final = Path(__file__).resolve().parents[1] / "docs/notebook.ipynb"


def ran(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of its cells: what they print, and the value of a last expression."""
    space: dict[str, Any] = {"__name__": "notebook"}
    cells, number = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            cell = cell | {"execution_count": number, "outputs": _outputs("".join(cell["source"]), space, number)}
        cells.append(cell)
    return notebook | {"cells": cells}


def _outputs(source: str, space: dict[str, Any], number: int) -> list[dict[str, Any]]:
    name = f"<cell {number}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)  # what `inspect` reads
    tree, printed, value = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), space)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), space)
    said, outputs = printed.getvalue(), list[dict[str, Any]]()
    if said:
        outputs.append({"name": "stdout", "output_type": "stream", "text": said.splitlines(keepends=True)})
    if value is not None:
        shown = {"text/plain": [repr(value)]}
        if (html := getattr(value, "_repr_html_", None)) is not None:
            shown["text/html"] = html().splitlines(keepends=True)
        outputs.append({"data": shown, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return outputs


def main() -> int:
    """Run it and write it; returns the exit code."""
    made = ran(json.loads(NOTEBOOK.read_text(encoding="utf-8")))
    NOTEBOOK.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
