"""The house rules: imports point down, rooms do not know each other, kernels take arrays only."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("filter", "dedup", "pack")
LEVELS = [
    {"__main__", "cli"},
    {"progress", "report"},
    {"run", "recipe"},
    {"execute", "read", *ROOMS},
    {"text", "stage", "schema", "write", "recent"},
    {"manifest", "config", "errors", "kernels", "__init__"},
]
"""From the top down: a module imports from its own level or from lower ones."""


def imports(path: Path) -> set[str]:
    """Every module that a file imports, at its top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return found


def part(module: str) -> str:
    """`datakit.pack.chat` is of the part `pack`."""
    return module.split(".")[1] if "." in module else "__init__"


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def level(name: str) -> int:
    (found,) = [i for i, names in enumerate(LEVELS) if name in names]
    return found


@pytest.mark.parametrize("path", sources("datakit"), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    own = path.relative_to(ROOT / "datakit").parts[0].removesuffix(".py")
    for module in imports(path):
        if module.split(".")[0] != "datakit" or module == "datakit.__version__":
            continue
        other = part(module)
        assert level(other) >= level(own), f"{path.relative_to(ROOT)} imports {module} from above"
        assert own == other or own not in ROOMS or other not in ROOMS, f"{own} and {other} are rooms of their own"


@pytest.mark.parametrize("path", sources("datakit"), ids=lambda p: str(p.relative_to(ROOT)))
def test_the_factory_does_not_know_the_trainer(path: Path) -> None:
    assert not {m.split(".")[0] for m in imports(path)} & {"train", "torch", "transformers"}


@pytest.mark.parametrize("path", sources("train"), ids=lambda p: str(p.relative_to(ROOT)))
def test_the_trainer_knows_the_contract_alone(path: Path) -> None:
    allowed = ("datakit.manifest", "datakit.config", "datakit.errors", "datakit.pack.format", "datakit.pack.chat")
    for module in imports(path):
        if module.split(".")[0] == "datakit":
            assert module.startswith(allowed) or module in ("datakit", "datakit.pack"), f"{path.name} imports {module}"


@pytest.mark.parametrize("path", [p for p in sources("datakit") if p.name.startswith("_kernels")], ids=lambda p: p.name)
def test_kernels_import_numba_and_numpy_alone(path: Path) -> None:
    for module in imports(path):
        top = module.split(".")[0]
        kernel = top == "datakit" and any(p.startswith("_kernels") for p in module.split("."))
        kernel = kernel or module in ("datakit.kernels", "datakit.kernels.kernel")
        assert kernel or top in ("numba", "numpy") or top in sys.stdlib_module_names, f"{path.name} imports {module}"


def test_ray_is_imported_in_one_place() -> None:
    using = [p.name for p in sources("datakit") if any(m.split(".")[0] == "ray" for m in imports(p))]
    assert using in ([], ["ray.py"])


def test_no_drawer_for_everything() -> None:
    names = {p.name for p in sources("datakit") + sources("train")}
    assert not names & {"utils.py", "util.py", "common.py", "base.py", "helpers.py", "misc.py"}
