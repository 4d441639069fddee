"""Rules for the trainer's own code: what it imports, how its modules are named, how it starts."""

import ast
import logging
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from tests.processes import modules_after, python
from train import flags
from train.__main__ import COMMANDS, main, run
from train.sft import SFTConfig

TRAIN = Path(__file__).resolve().parents[2] / "train"
MODULES = sorted(TRAIN.rglob("*.py"))
BLOCKED = ("pyarrow", "numba", "fasttext", "ray", "datasketch", "orjson", "stopwordsiso", "fsspec")
ALLOWED = ("datakit.absent", "datakit.command", "datakit.manifest", "datakit.pack.format", "datakit.pack.chat",
           "datakit.config", "datakit.errors", "datakit.own_code", "datakit.terminal", "datakit.storage",
           "datakit.object_store")  # fmt: skip
CORE = ("config", "stream", "attention", "loss", "rope", "model", "experts", "hf", "data", "device", "ranks",
        "distributed", "updates", "optim", "checkpoint", "lora", "weights", "resume")  # fmt: skip
"""The core from the bottom up: at its top each imports only from those before it, and from its own folder."""


def imported(tree: ast.AST) -> set[str]:
    """Modules that a file imports when it runs, at its top or in functions; not under TYPE_CHECKING."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        found |= imported(node)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(TRAIN)))
def test_imports_point_down_and_only_to_the_contract(path):
    room = path.relative_to(TRAIN).parts[0].removesuffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = {name for node in tree.body if isinstance(node, ast.ImportFrom) for name in imported(ast.Module([node], []))}
    for module in imported(tree):
        if module.startswith("datakit"):
            assert f"{module}.".startswith(tuple(f"{name}." for name in ALLOWED)), f"{path.name} imports {module}"
        elif module.startswith("train.") and room in CORE and module in top:
            names = module.split(".")[1:]
            assert {*names[:2]} & {*CORE[: CORE.index(room) + 1]}, f"{path.name} imports {module}"


def test_everything_starts_and_trains_without_the_factorys_libraries(manifest, tmp_path):
    extra = {TRAIN / "serve" / f"{name}.py" for name in ("requests", "server")}  # need `serve`
    modules = [p for p in MODULES if p not in extra]
    names = [".".join(("train", *p.relative_to(TRAIN).with_suffix("").parts)) for p in modules]
    names = [name.removesuffix(".__init__") for name in names]
    python(
        "-c",
        f"""
import importlib, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {BLOCKED!r}:
            raise ImportError(name + " is blocked")
sys.meta_path.insert(0, Blocked())
from train import sft
options = ["--manifest", {str(manifest)!r}, "--out", {str(tmp_path / "run")!r}, "--preset", "tiny", "--steps", "1"]
assert sft.main(options) == 0
lazy = {{"train.lora", "train.experts", "train.eval", "train.generate", "train.grpo"}} & sys.modules.keys()
assert not lazy, lazy
for name in {names!r}:
    importlib.import_module(name)
from train import generate
assert generate.main(["--model", {str(tmp_path / "run")!r}, "--prompt", "hello", "--max-new-tokens", "2"]) == 0
used = {{".".join(n.split(".")[:2]) for n in sys.modules if n.startswith("datakit.")}}
allowed = {{".".join(n.split(".")[:2]) for n in {ALLOWED!r}}}
assert used <= allowed, used - allowed
""",
    )


def test_without_torch_a_command_says_what_to_install():
    code = """
import importlib.util, runpy, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name == "torch" else found(name, *a)
sys.argv = ["-m"]
runpy.run_module("train.sft", run_name="__main__", alter_sys=True)
"""
    said = python("-c", code, ends=1).stderr
    assert said.startswith("error: training needs torch") and said.count("\n") == 1


def test_the_list_of_commands_needs_no_torch():
    assert "torch" not in modules_after("import train.__main__ as m\nm.run(['--help'])")


def test_the_command_lists_what_there_is_refuses_the_rest_and_returns_a_commands_exit_code(capsys, monkeypatch):
    assert (run(["--help"]), run([])) == (0, 2)
    listed = capsys.readouterr().out
    assert all(listed.count(f"\n  {name} ") == 2 for name in COMMANDS)
    for argv, said in (
        (["dance"], "no command 'dance'. Expected one of pretrain, sft,"),
        (["kto"], "Use train.dpo with --dpo-loss apo_zero"),
        (["sft"], "--manifest"),
    ):
        monkeypatch.setattr(sys, "argv", ["datakit-train", *argv])
        assert main() == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "option", "code", "said"),
    [
        ("sft", "--help", 0, "Usage: python -m train.sft"),
        ("grpo", "--bacth-rows", 2, "--batch-rows"),
        ("dpo", "--lr=-1", 2, "error: options.optim: lr = -1.0: expected 0 or more"),
        ("serve", "--help", 0, "Usage: python -m train.serve"),
    ],
)
def test_help_and_wrong_options_need_no_torch(name, option, code, said):
    done = python("-X", "importtime", "-m", f"train.{name}", option, ends=code)
    assert said in done.stdout + done.stderr
    assert "torch._C" not in done.stderr and "numpy" in done.stderr


def test_a_removed_module_says_what_to_use_instead():
    said = python("-m", "train.memory", ends=1).stderr
    assert said.startswith("error: train.memory is gone. The run prints")


@pytest.mark.parametrize("command", [["-m", "train.sft"], ["-m", "train", "sft"]])
def test_an_interrupt_while_torch_is_imported_ends_quietly(command):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs ignore it
    process = subprocess.Popen([sys.executable, *command, "--manifest", "none"], **pipes, preexec_fn=heard)
    maps = Path(f"/proc/{process.pid}/maps")
    for _ in range(6000):
        if "libtorch" in maps.read_text():
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == b""
    assert process.returncode == 130


def shown(capsys: pytest.CaptureFixture, *argv: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        run([*argv])
    assert stopped.value.code == 0
    return capsys.readouterr().out


def test_help_has_a_short_page_and_one_with_everything(capsys):
    first = shown(capsys, "sft", "--help")
    assert 10 <= first.count("\n  --") <= 30 and "--batch-rows" in first and "--help-all shows " in first
    assert "--shuffle-buffer" not in first and "--rank-timeout-s" not in first
    everything = shown(capsys, "sft", "--help-all")
    assert all(f"--{name}" in everything for name in ("rank-timeout-s", "lora-rank", "shuffle-buffer"))
    assert "\nWhich weights get adapters" in everything and "shows" not in everything
    for name in COMMANDS:
        assert shown(capsys, name, "--help").startswith(f"Usage: datakit-train {name} ")


def test_options_have_other_names(capsys):
    """`--learning-rate` is `--lr`, and earlier names of `--model` still work."""
    argv = ["--learning_rate", "0.5", "--init", "here", "--manifest", "a", "--manifest", "b,c", "--no-label-only"]
    logging.getLogger("train").handlers.clear()  # as in a fresh process
    found = flags.given(SFTConfig, "sft", "", argv)
    named = {"optim": {"lr": 0.5}, "model": "here", "manifest": ("a", "b", "c"), "labels": {"label_only": False}}
    assert found == named
    assert capsys.readouterr().out == "[train] note: --init is called --model now\n"
