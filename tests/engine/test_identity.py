"""A stage's code is what it runs: an edit of that makes results out of date; words and other code do not count."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from datakit.config import build
from datakit.engine import lineage as identity
from datakit.engine.recipe import STAGES, config_class, make_stage, stage_class
from datakit.stage import Stage
from tests.package_copy import ROOT, change_code, copy_package, reword, run

DEDUP = {"dedup", "dedup_urls", "dedup_repeats", "dedup_semantic"}
OTHER_ROOMS = {
    "dedup": {"filter", "pack", "read"},
    "filter": {"dedup", "pack"},
    "pack": {"dedup", "filter", "read"},
    "read": {"dedup", "filter", "pack"},
}
READERS = {"classify", "classifier"}
"""The stages outside of `read` that read raw files: a classifier learns from them."""


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
    return {name: make_stage(name, config_class(name)()) for name in STAGES}


def hashes() -> dict[str, str]:
    return {name: identity.code_hash(stage) for name, stage in stages().items()}


def changed_by(*paths: Path) -> set[str]:
    before = hashes()
    for path in paths:
        change_code(path)
    return {name for name, value in hashes().items() if value != before[name]}


def test_comments_and_docstrings_do_not_count(package: Path) -> None:
    before = hashes()
    kinds = Counter(kind for path in sorted(package.rglob("*.py")) for kind in reword(path))
    assert min(kinds[k] for k in ("Module", "ClassDef", "FunctionDef", "field")) > 20
    assert hashes() == before


def test_reports_the_command_line_and_the_flow_do_not_count(package: Path) -> None:
    engine = [package / "engine" / f"{name}.py" for name in ("plan", "recipe", "maintenance", "executors")]
    above = [*package.glob("cli/*.py"), *package.glob("report/*.py"), package / "__init__.py", package / "__main__.py"]
    assert changed_by(*above, *engine) == set()


@pytest.mark.parametrize("path", ["engine/store.py", "engine/runner.py", "data.py", "stage.py", "config.py"])
def test_what_cuts_reads_and_writes_rows_is_code_of_all_stages(package: Path, path: str) -> None:
    assert changed_by(package / path) == {*STAGES}


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("dedup/_kernels_minhash.py", {"dedup", "dedup_repeats"}),
        ("dedup/_kernels_repeats.py", {"dedup_repeats"}),
        ("filter/_kernels_signals.py", {"filter"}),
        ("filter/_kernels_fasttext.py", {"language", *READERS}),
        ("filter/perplexity.py", {"perplexity", "perplexity_model"}),
        ("pack/_kernels_fit.py", {"pack"}),
        ("pack/labels.py", {"tokenize"}),
        ("read/csv.py", {"ingest", *READERS}),
        ("text/_kernels_text.py", {"ingest", "filter", "normalize", *READERS, *DEDUP}),
    ],
)
def test_a_kernel_is_code_of_the_stages_that_use_it(package: Path, path: str, names: set[str]) -> None:
    assert changed_by(package / path) == names


def test_a_rule_set_counts_where_the_config_chooses_it(package: Path) -> None:
    def with_rules(*rules: str) -> str:
        stage = make_stage("filter", build(config_class("filter"), {"rules": list(rules)}, "filter"))
        return identity.code_hash(stage.for_kind("document"))

    sets: tuple[tuple[str, ...], ...] = (("private",), ("gopher_quality",), ("fineweb", "private"), ())
    before = [with_rules(*rules) for rules in sets]
    change_code(package / "filter/private.py")
    after = [with_rules(*rules) for rules in sets]
    assert [a == b for a, b in zip(before, after, strict=True)] == [False, True, False, True]
    change_code(package / "filter/web_rules.py")  # documents have some of these rule sets by default
    assert with_rules() != after[3]


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_has_no_code_of_other_rooms(name: str) -> None:
    kind = stage_class(name)
    found = {module.split(".")[1] for module in identity.import_closure([kind.__module__])}
    assert not found & {"engine", "report", "cli", "api"}
    assert not found & OTHER_ROOMS[kind.__module__.split(".")[1]]
    assert ("read" in found) == (name in {"ingest", *READERS})


def test_imports_count_wherever_they_stand(made: Path) -> None:
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
        ("x = 1", "x = 2"),
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = '1'"),
        ("x = True", "x = 'True'"),
        ("x = None", "x = ..."),
        ("x = b'a'", "x = 'a'"),
        ("x = ['a', 'b']", "x = ['a'], 'b'"),
        ("def f(a, b=1): pass", "def f(a=1, b=1): pass"),
        ("def f(): return 'text'", "def f(): return None"),
        ("import a.b", "from a import b"),
        ("if TYPE_CHECKING:\n    import a\nelse:\n    b = 1", "if TYPE_CHECKING:\n    import a\nelse:\n    b = 2"),
        ("async def f(): pass", "def f(): pass"),
    ],
)
def test_other_code_has_another_hash(made: Path, one: str, other: str) -> None:
    for name, text in (("one", one), ("other", other), ("same", f"# words\n{one}  # more words\n\n'''Text.'''\n")):
        (made / f"{name}.py").write_text(text)
    assert identity.module_hash("datakit.one") == identity.module_hash("datakit.same")
    assert identity.module_hash("datakit.one") != identity.module_hash("datakit.other")


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


def interpreters() -> dict[str, str]:
    """The Pythons from 3.11 on the PATH."""
    paths = [path for minor in range(11, 20) if (path := shutil.which(f"python3.{minor}"))]
    found = {}
    for path in paths:
        asked = subprocess.run([path, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True)
        if asked.returncode == 0 and (version := tuple(map(int, asked.stdout.split()))) >= (3, 11):
            found[".".join(map(str, version))] = path
    return found


HASHES = """
import json, sys
from pathlib import Path
from datakit.engine import lineage as identity

found = {}
for folder in sys.argv[1:]:
    identity.PACKAGE = Path(folder)
    for path in Path(folder).rglob("*.py"):
        name = ".".join(path.relative_to(identity.PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        found[name] = identity.module_hash(name), sorted(identity.import_closure([name]))
print(json.dumps(found, sort_keys=True))
"""


def every_hash(python: str | Path, folders: Sequence[Path]) -> dict[str, object]:
    """What a Python without any package, which needs the standard library only, says of every module."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(python), "-S", "-c", HASHES, *map(str, folders)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The package, and every syntax there is."""
    made = tmp_path_factory.mktemp("syntax") / "datakit"
    made.mkdir()
    (made / "syntax.py").write_text(SYNTAX)
    return [ROOT / "datakit", made]


@pytest.fixture(scope="module")
def hashes_here(folders: list[Path]) -> dict[str, object]:
    return every_hash(sys.executable, folders)


@pytest.mark.parametrize("version", sorted({"3.11", "3.12", "3.13", "3.14"} - {f"3.{sys.version_info.minor}"}))
def test_the_hash_is_the_same_on_every_python(
    folders: list[Path], hashes_here: dict[str, object], version: str
) -> None:
    known = interpreters()
    if version not in known:
        pytest.skip(f"no Python {version} on this machine; there are {', '.join(known)}")
    found = every_hash(known[version], folders)
    assert len(found) > 80
    assert {name: value for name, value in found.items() if value != hashes_here[name]} == {}


RECIPE = """
[dataset]
inputs = ["rows.jsonl"]
stages = ["ingest", "filter", "tokenizer", "tokenize", "pack"]
[filter]
rules = ["loops"]
[tokenizer]
vocab_size = 300
[pack]
seq_len = 64
"""


@pytest.mark.campaign
def test_a_run_repeats_what_an_edit_concerns(tmp_path: Path) -> None:
    package, project = copy_package(tmp_path / "copy"), tmp_path / "project"
    (project / "manifests/d").mkdir(parents=True)
    (project / "manifests/d/recipe.toml").write_text(RECIPE)
    words = "Ships come into the harbour when the wind is fair and the water is high enough for them."
    rows = [{"id": f"r{n}", "text": f"{words} Row {n}. {words[n:]}"} for n in range(30)]
    (project / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def repeated() -> list[str]:
        done = run(package, "-m", "datakit", "run", "--dataset", "d", cwd=project)
        said = done.stdout + done.stderr
        return [s for s in ("ingest", "filter", "tokenizer", "tokenize", "pack") if f"{s}: up to date" not in said]

    assert repeated() == ["ingest", "filter", "tokenizer", "tokenize", "pack"]
    for path in {*package.rglob("*.py")} - {*package.rglob("_kernels*.py")}:  # numba would compile those again
        reword(path)
    for path in (*package.glob("report/*.py"), package / "cli/stages.py", package / "dedup/stage.py"):
        change_code(path)
    assert repeated() == []
    change_code(package / "filter/answers.py")
    assert repeated() == ["filter", "tokenizer", "tokenize", "pack"]
    change_code(package / "filter/private.py")  # a rule set that is not on
    assert repeated() == []
    change_code(package / "engine/store.py")
    assert repeated() == ["ingest", "filter", "tokenizer", "tokenize", "pack"]
    change_code(package / "pack/_kernels_fit.py")
    assert repeated() == ["pack"]
