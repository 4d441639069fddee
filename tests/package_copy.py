"""A copy of the package `datakit` that a test may edit, and commands that run in it."""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def copy_package(folder: Path) -> Path:
    """Copy the sources to `folder/datakit` with what numba has compiled of them; returns that folder."""
    target = folder / "datakit"
    shutil.copytree(ROOT / "datakit", target, ignore=shutil.ignore_patterns("*.pyc", "*.tmp*"))
    return target


def run(package: Path, *command: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python on a copy of the package; the output of a run that fails is in the error."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=cwd or package.parent,
        env=os.environ | {"PYTHONPATH": str(package.parent)} | environment,
        capture_output=True,
        text=True,
        timeout=580,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


def change_code(path: Path) -> None:
    """Add a statement to a module."""
    path.write_text(path.read_text(encoding="utf-8") + "\n_EDITED = 1\n", encoding="utf-8")


def docstrings(tree: ast.AST) -> Iterator[tuple[str, ast.Expr]]:
    """Every docstring of a module, with the type of the node that it stands in; "field" for one below a field."""
    for node in ast.walk(tree):
        body = node.body if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) else []
        for before, statement in zip([None, *body], body, strict=False):
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield "field" if isinstance(before, ast.AnnAssign) else type(node).__name__, statement


def reword(path: Path) -> list[str]:
    """Replace every docstring of a module and add comments; returns the docstrings' types."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = sorted(docstrings(ast.parse("\n".join(lines))), key=lambda d: -d[1].lineno)
    for _, node in found:
        before = lines[node.lineno - 1].encode()[: node.col_offset].decode()
        after = lines[node.end_lineno - 1].encode()[node.end_col_offset :].decode()
        lines[node.lineno - 1 : node.end_lineno] = [
            f'{before}"""Other words,',
            f'in two lines."""{after}  # and a comment',
        ]
    path.write_text("# A comment.\n\n\n" + "\n".join(lines) + "\n# The end.\n", encoding="utf-8")
    return [kind for kind, _ in found]
