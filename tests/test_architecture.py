"""The rules of the house: imports point down, rooms do not know each other, what `--help` and configs may load."""

import ast
import dataclasses
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from datakit.engine.recipe import STAGES, stage_class
from datakit.kernels import kernel_sources
from datakit.stage import Stage
from tests.processes import ROOT, modules_after

LEVELS = (
    {"__main__", "cli"},
    {"api"},
    {"report"},
    {"engine"},
    {"filter", "dedup", "pack"},
    {"read"},
    {"text", "stage", "data"},
    {"manifest", "config", "errors", "terminal", "kernels", "storage", "object_store", "absent", "own_code", "command"},
)
"""From the top down: a module imports from its own level or from lower ones."""
ROOMS = {"filter", "dedup", "pack"}
"""Each is imported by nothing on its level or below, and by nothing in the engine."""
DRAWERS = {"utils", "util", "common", "base", "helpers", "helper", "misc", "tools", "shared", "core", "types"}
GONE = {
    "native", "cached", "recent", "aside", "place", "levels", "losses", "parameters", "saved", "rows",
    "parts", "decisions",
}  # fmt: skip
"""Names that do not say what a file holds."""
ONE_IN_EACH_PACKAGE = {"stage", "__init__", "__main__"}
BY_NAME = {
    ("datakit/engine/recipe.py", "importlib.import_module(module)"): "a stage's class, by its path in the registry",
    ("datakit/engine/lineage.py", "node"): "the fields of a syntax tree",
    ("datakit/filter/stage.py", "self"): "the section of FilterOptions that has a rule set's name",
}
"""The calls of `getattr` that remain in the engine and the filter: (file, first argument) -> what it reads."""


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


DATAKIT = sources("datakit")
KERNELS = {*kernel_sources()} - {ROOT / "datakit/kernels.py"}


def imports(path: Path) -> Iterator[str]:
    """Every module and name that a file imports, at its top or inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{relative(path)}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def level(part: str) -> int:
    (found,) = (i for i, parts in enumerate(LEVELS) if part in parts)
    return found


def test_every_part_has_a_level():
    parts = {path.relative_to(ROOT / "datakit").parts[0].removesuffix(".py") for path in DATAKIT}
    assert parts - {"__init__"} <= set().union(*LEVELS)


@pytest.mark.parametrize("path", [p for p in DATAKIT if p != ROOT / "datakit/__init__.py"], ids=relative)
def test_imports_point_down_and_to_what_the_file_may_know(path):
    own, found = path.relative_to(ROOT / "datakit").parts[0].removesuffix(".py"), {*imports(path)}
    for module in found:
        if module.split(".")[0] != "datakit" or module in ("datakit.__version__", "datakit.StagePackage"):
            continue
        assert "." in module, f"name the module of datakit that is needed: {module}"
        other = module.split(".")[1]
        assert level(other) >= level(own), f"{module} is above"
        if other != own:
            assert not {own, other} <= ROOMS, f"{module}: {own} and {other} must not know it"
            assert own != "engine" or other not in ROOMS, f"{module}: the engine knows Stage only"
    libraries = {module.split(".")[0] for module in found}
    assert not libraries & {"train", "torch", "transformers"}, "the factory does not know the trainer"
    assert ("ray" in libraries) == (path.name == "executors.py")
    assert "numba" not in libraries or path in KERNELS or path.name == "kernels.py"


@pytest.mark.parametrize("path", sorted(KERNELS), ids=relative)
def test_a_kernel_uses_names_of_kernel_files_alone(path):
    """So the stamp over these files says whether a compiled kernel is still right."""
    defined, foreign, waiting = dict[str, ast.stmt](), set[str](), list[ast.stmt]()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("datakit."):
            for alias in node.names:
                files = {ROOT / f"{m.replace('.', '/')}.py" for m in (node.module, f"{node.module}.{alias.name}")}
                foreign |= {alias.asname or alias.name} if not files & KERNELS else set()
        elif isinstance(node, ast.FunctionDef):
            defined[node.name] = node
            waiting += [node] * any("kernel" in ast.unparse(d) for d in node.decorator_list)
        elif isinstance(node, ast.Assign):
            defined |= {name.id: node for t in node.targets for name in ast.walk(t) if isinstance(name, ast.Name)}
    assert waiting, "kernels"
    used = set[str]()
    while waiting:
        names = {name.id for name in ast.walk(waiting.pop()) if isinstance(name, ast.Name)} - used
        used |= names
        waiting += [defined[name] for name in names & defined.keys()]
    assert used & foreign - {"kernel"} == set()


def test_nothing_but_kernels_names_an_inner_kernel():
    """Called from Python it would end the process, as it has no way in from there."""
    for path in KERNELS:
        body = ast.parse(path.read_text(encoding="utf-8")).body
        made = {n: " ".join(map(ast.unparse, n.decorator_list)) for n in body if isinstance(n, ast.FunctionDef)}
        inner = {node.name for node, decorators in made.items() if "inner=True" in decorators}
        others = [node for node in body if "kernel" not in made.get(node, "")]
        assert not inner & {name.id for node in others for name in ast.walk(node) if isinstance(name, ast.Name)}
        full = {f"{'.'.join(path.relative_to(ROOT).with_suffix('').parts)}.{name}" for name in inner}
        callers = [p for p in (*DATAKIT, *sources("tests"), *sources("bench")) if full & {*imports(p)}]
        assert {*callers} <= KERNELS


def test_the_package_itself_imports_the_standard_library_only():
    tree = ast.parse((ROOT / "datakit/__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        assert all(name.split(".")[0] in sys.stdlib_module_names for name in names), names


@pytest.mark.parametrize("package", ["datakit", "train"])
def test_a_name_stands_for_one_module_and_one_class(package):
    """A rule for modules and classes alone: `text` is a package, and a module of `read`."""
    names = [path.stem for path in sources(package)]
    assert not set(names) & (DRAWERS | GONE)
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in sources(package))
    classes = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    counts = Counter(name for name in names if name not in ONE_IN_EACH_PACKAGE) + classes
    assert [name for name, count in counts.items() if count > 1] == []


def test_the_engine_and_the_filter_find_nothing_by_name():
    """Stages and rule sets have base classes: every hook is there, with a default."""
    found = {}
    for path in [*sources("datakit/engine"), *sources("datakit/filter"), ROOT / "datakit/stage.py"]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
                found[relative(path), ast.unparse(node.args[0])] = node.lineno
    assert {at: line for at, line in found.items() if at not in BY_NAME} == {}


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_is_what_the_registry_says(name):
    kind = stage_class(name)
    assert issubclass(kind, Stage) and kind is not Stage
    assert kind.name == name
    assert dataclasses.is_dataclass(kind.Config) and vars(kind.Config)["__dataclass_params__"].frozen
    stage = stage_class(name)(config=kind.Config())
    assert isinstance(stage, kind) and stage.config == kind.Config()


CONFIGS = "from datakit.engine.recipe import STAGES, stage_class\nfor name in STAGES:\n    stage_class(name).Config()"
STAGE_FILES = {"datakit.stage", *(entry.path.partition(":")[0] for entry in STAGES.values())}
HEAVY = {"pyarrow", "numba", "numpy", "fasttext", "torch", "ray"}


@pytest.mark.parametrize(
    ("code", "slow"),
    [
        (CONFIGS, {"numba", "fasttext", "torch"}), ("import datakit.pack.chat", HEAVY),
        ("from datakit.cli.main import main; main(['--help'])", HEAVY | STAGE_FILES | {"rich", "tokenizers", "jinja2"}),
    ],
)  # fmt: skip
def test_what_starts_often_loads_nothing_slow(code, slow):
    """`datakit run` with everything up to date, the trainer's server, `--help`."""
    loaded = modules_after(code)
    assert "datakit" in loaded and not loaded & slow
