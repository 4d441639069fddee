"""The documentation's examples run as they stand."""

import doctest
import json
import re
import shutil

import pytest

from datakit.cli.main import commands
from tests.processes import ROOT, python

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
IMAGINED = {"datakit/filter/min_chars.py"}
"""Files of examples."""


def test_the_python_page_says_what_happens():
    done = doctest.testfile(str(DOCS / "python.md"), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert done.attempted > 15
    assert done.failed == 0


def test_the_notebook_runs_from_top_to_bottom_in_a_script_without_a_main_guard(tmp_path):
    cells = json.loads((DOCS / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) > 4
    (tmp_path / "notebook.py").write_text("\n\n".join(code), encoding="utf-8")
    python("notebook.py", cwd=tmp_path)


def test_the_notebook_shows_what_its_cells_give_today():
    code = "import json; from demo.notebook import *; print(json.dumps(ran(json.loads(NOTEBOOK.read_text('utf-8')))))"
    stored = json.loads((DOCS / "notebook.ipynb").read_text(encoding="utf-8"))
    assert json.loads(python("-c", code).stdout) == stored, "python -m demo.notebook writes it anew"
    assert sum(len(cell.get("outputs", ())) for cell in stored["cells"]) >= 7


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_files_and_commands_that_a_page_names_exist(page):
    text = page.read_text(encoding="utf-8")
    for path in re.findall(r"`((?:datakit|train|tests|bench|demo|requirements)/[\w./]*)`", text):
        assert path in IMAGINED or (ROOT / path).exists(), f"{page.name} names {path}"
    named = set(re.findall(r"`datakit ([a-z][a-z_-]+)", text))
    for block in re.findall(r"^```\n(.*?)^```", text, re.S | re.M):
        named |= set(re.findall(r"^datakit ([a-z][a-z_-]+)", block, re.M))
    assert {name.replace("_", "-") for name in named} - {name.split()[0] for name in commands()} == set()


def test_every_page_is_in_the_index():
    linked = set(re.findall(r"\]\(([^)#:]+)\)", (DOCS / "README.md").read_text(encoding="utf-8")))
    assert linked == {p.name for p in DOCS.glob("*.*") if p.suffix in (".md", ".ipynb")} - {"README.md"}


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_a_stage_is_one_file_and_one_line_as_contributing_says(tmp_path):
    file, line = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.S)
    shutil.copytree(ROOT / "datakit", tmp_path / "datakit")
    (tmp_path / "datakit/filter/min_chars.py").write_text(file, encoding="utf-8")
    registry = tmp_path / "datakit/engine/recipe.py"
    begin = "STAGES: dict[str, Entry] = {\n"
    registry.write_text(registry.read_text(encoding="utf-8").replace(begin, begin + line), encoding="utf-8")
    (tmp_path / "rows.txt").write_text("short\n" + "long " * 40, encoding="utf-8")
    flags = ["--min-chars", "50", "--set", "ingest.text_split=line", "--output", "out", "--json"]
    call, copy = ("-m", "datakit", "min-chars"), {"cwd": tmp_path, "PYTHONPATH": ""}
    rows = json.loads(python(*call, "rows.txt", *flags, **copy).stdout)["ledger"]["rows"]
    assert (rows["kept"], rows["dropped"]) == (1, {"min_chars": 1})
    assert "--min-chars" in python(*call, "--help", **copy).stdout
