"""A stage's code is what it runs: an edit of that makes results out of date; words and other code do not count."""

import shutil
from pathlib import Path

import pytest

from datakit.config import build
from datakit.engine import lineage as identity
from datakit.engine.recipe import STAGES, stage_class
from datakit.stage import Stage

ROOT = Path(__file__).resolve().parents[2]

DEDUP = {"dedup", "dedup_urls", "dedup_repeats", "dedup_semantic"}


def change_code(path: Path) -> None:
    """Add a statement to a module."""
    path.write_text(path.read_text(encoding="utf-8") + "\n_EDITED = 1\n", encoding="utf-8")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package, of which `identity` takes its hashes."""
    copied = tmp_path / "datakit"
    shutil.copytree(ROOT / "datakit", copied, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(identity, "PACKAGE", copied)
    return copied


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with nothing in it but what the test writes."""
    folder = tmp_path / "datakit"
    folder.mkdir()
    monkeypatch.setattr(identity, "PACKAGE", folder)
    return folder


def stages() -> dict[str, Stage]:
    return {name: stage_class(name)(config=stage_class(name).Config()) for name in STAGES}


def hashes() -> dict[str, str]:
    return {name: identity.code_hash(stage) for name, stage in stages().items()}


def changed_by(*paths: Path) -> set[str]:
    before = hashes()
    for path in paths:
        change_code(path)
    return {name for name, value in hashes().items() if value != before[name]}


def test_reports_the_command_line_and_the_flow_do_not_count(package):
    engine = [package / "engine" / f"{name}.py" for name in ("plan", "recipe", "maintenance", "executors")]
    above = [*package.glob("cli/*.py"), *package.glob("report/*.py"), package / "__init__.py", package / "__main__.py"]
    assert changed_by(*above, *engine) == set()


@pytest.mark.parametrize("path", ["engine/store.py", "engine/runner.py", "data.py", "stage.py", "config.py"])
def test_what_cuts_reads_and_writes_rows_is_code_of_all_stages(package, path):
    assert changed_by(package / path) == {*STAGES}


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("dedup/minhash.py", {"dedup", "dedup_urls"}),
        ("dedup/_kernels_repeats.py", {"dedup_repeats"}),
        ("filter/_kernels_signals.py", {"filter"}),
        ("filter/fasttext_model.py", {"language", "classify", "classifier"}),
        ("filter/perplexity.py", {"perplexity", "perplexity_model"}),
        ("pack/fit.py", {"pack"}),
        ("pack/labels.py", {"tokenize"}),
        ("read/csv.py", {"ingest"}),
        ("text/_kernels_text.py", {"ingest", "filter", "map", "normalize", "classify", "classifier", *DEDUP}),
    ],
)
def test_a_kernel_is_code_of_the_stages_that_use_it(package, path, names):
    assert changed_by(package / path) == names


def test_a_rule_set_counts_where_the_config_chooses_it(package):
    def with_rules(*rules: str) -> str:
        stage = stage_class("filter")(config=build(stage_class("filter").Config, {"rules": list(rules)}, "filter"))
        return identity.code_hash(stage.for_kind("document"))

    sets: tuple[tuple[str, ...], ...] = (("private",), ("gopher_quality",), ("fineweb", "private"), ())
    before = [with_rules(*rules) for rules in sets]
    change_code(package / "filter/private.py")
    after = [with_rules(*rules) for rules in sets]
    assert [a == b for a, b in zip(before, after, strict=True)] == [False, True, False, True]
    change_code(package / "filter/web_rules.py")  # documents have some of these rule sets by default
    assert with_rules() != after[3]


@pytest.mark.parametrize("name", STAGES)
def test_the_code_that_reads_raw_files_is_that_of_ingest_alone(name):
    found = {module.split(".")[1] for module in identity.import_closure([stage_class(name).__module__])}
    assert ("read" in found) == (name == "ingest")


def test_imports_count_wherever_they_stand(made):
    (made / "pack").mkdir()
    (made / "pack/__init__.py").write_text("import datakit.once")
    names = ("inside", "above", "method", "checked", "other", "once", "twice", "name", "unused")
    for name in names:
        (made / f"{name}.py").write_text("VALUE = 1")
    (made / "twice.py").write_text("import datakit.top")  # a circle
    (made / "top.py").write_text(
        "import os, numpy, typing\n"
        "import datakit.above\n"
        "from datakit.pack import missing\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import datakit.checked\nelse:\n    import datakit.other\n"
        "if typing.TYPE_CHECKING:\n    from datakit import checked\n"
        "def f():\n    from datakit import inside\n    from datakit.name import VALUE\n"
        "class C:\n    def f(self):\n        if self:\n            import datakit.method, datakit.twice\n"
    )
    found = identity.import_closure(["datakit.top"])
    wanted = ("top", "above", "pack", "once", "other", "inside", "name", "method", "twice")
    assert found == {f"datakit.{name}" for name in wanted}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 2"), ("x = 1", "x = 1.0"), ("x = 1", "x = '1'"), ("x = True", "x = 'True'"),
        ("x = None", "x = ..."), ("x = b'a'", "x = 'a'"), ("x = ['a', 'b']", "x = ['a'], 'b'"),
        ("def f(a, b=1): pass", "def f(a=1, b=1): pass"), ("def f(): return 'text'", "def f(): return None"),
        ("import a.b", "from a import b"), ("async def f(): pass", "def f(): pass"),
        ("if TYPE_CHECKING:\n    import a\nelse:\n    b = 1", "if TYPE_CHECKING:\n    import a\nelse:\n    b = 2"),
    ],
)  # fmt: skip
def test_other_code_has_another_hash(made, one, other):
    for name, text in (("one", one), ("other", other), ("same", f"# words\n{one}  # more words\n\n'''Text.'''\n")):
        (made / f"{name}.py").write_text(text)
    assert identity.module_hash("datakit.one") == identity.module_hash("datakit.same")
    assert identity.module_hash("datakit.one") != identity.module_hash("datakit.other")


def test_docstrings_do_not_count_wherever_they_stand(made):
    text = '"""Of the module."""\nx = 1\n"""Of a field."""\nclass C:\n    """Of a class."""\n'
    text += '    def f(self):\n        """Of a function."""\n        return "no docstring"\n'
    (made / "one.py").write_text(text)
    (made / "same.py").write_text(text.replace("Of a", "Other words of a"))
    (made / "other.py").write_text(text.replace("no docstring", "other"))
    one, same, other = (identity.module_hash(f"datakit.{name}") for name in ("one", "same", "other"))
    assert one == same != other


SYNTAX = '''
"""Syntax whose tree differs between versions of Python, or did once."""
from __future__ import annotations
import typing as t
T = t.TypeVar("T")
class Base(t.Generic[T], metaclass=type):
    field: int = 1
    "A field."
    def f(self, a, /, b: int = 2, *args: str, c=3, **more: t.Any) -> None:
        """Text."""
def g(): pass
async def h(x):
    async with x as y, x: await y
    return [i async for i in x if i]
name, width, number = "n", 10, 12_345_678_901_234_567_890
texts = (f"{name}", f"a{name!r:>{width}}b" "c" f"d{number:,.{width}f}", f"{{}}{name=}", rf"\\d{name}")
more = (f"{number:%Y-%m}", f"{name:{'>'}{width}}", f"{'nested'}" u"u", f"" "", f"""{
    name}""", "a" "b", b"\\x00\\xff", 1e300, 1j, -1, 0x_ff, "\\ud800", "\\N{BULLET}", ...)
match number:
    case {"a": [1, *rest], **others} | [] if rest: pass
    case Base(field=1) as found: pass
    case _: pass
try: pass
except* (ValueError, TypeError) as e: raise e from None
finally: del name
with (open(__file__) as one, open(__file__) as two): (x := one), [*two]
print(lambda *a, k=1: (yield), {**{}}, {1, 2}, number[1:2, ..., ::3], not number, number if name else -number)
'''


def test_the_hash_is_the_same_on_every_python(made):
    """It was taken on Python 3.11: this test is the proof on each version that it runs on."""
    (made / "syntax.py").write_text(SYNTAX)
    assert identity.module_hash("datakit.syntax") == "ac3c561b1ab810092da28f887a169927bbea9ab3be96eeb73fe8af5c13d9c52e"
