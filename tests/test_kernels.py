"""Kernels are compiled once and cached: never a stale one, and no crash where the cache cannot be written."""

import json
import shutil
from pathlib import Path

import pytest

from tests.files import says, user, write_rows
from tests.processes import ROOT, python

SCALE = """
from datakit.kernels import kernel


@kernel(inline="always")
def factor():
    return 3


@kernel
def scale(value):
    return value * factor()
"""
SUMS = """
import numpy as np

from datakit.made.scaling import scale
from datakit.kernels import kernel


@kernel
def total(values):
    found = 0
    for i in range(len(values)):
        found += scale(values[i])
    return found


@kernel(error_model="numpy")
def share(values, whole):
    return total(values) / whole
"""
CALL = """
import json, logging
import numpy as np
from numba.core import event

class Handler(logging.Handler):
    def emit(self, record):
        told.append(record.getMessage())

class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass

compiled, told = [], []
event.register("numba:compile", Listener())
logging.getLogger("datakit").addHandler(Handler())
logging.getLogger("datakit").setLevel(logging.INFO)
from datakit.made import sums
values = np.arange(5, dtype=np.int64)
print(json.dumps([int(sums.total(values)), float(sums.share(values, 0.0)), len(compiled), len(told)]))
"""
RIGHT = [30, float("inf")]
COMPILED = 3
"""Functions that are compiled; one more is inlined."""


def write_package(folder: Path) -> Path:
    """The package's part for kernels, and two files of kernels: one imports the other."""
    made = folder / "datakit"
    (made / "made").mkdir(parents=True)
    for name in ("__init__.py", "kernels.py"):
        shutil.copy(ROOT / "datakit" / name, made / name)
    (made / "made/__init__.py").touch()
    (made / "made/scaling.py").write_text(SCALE)
    (made / "made/sums.py").write_text(SUMS)
    return made


def run(package: Path, code: str, **environment: str) -> str:
    """What is printed in the end by code that uses a copy of the package."""
    made = python("-c", code, cwd=package.parent, PYTHONPATH=str(package.parent), **environment)
    return made.stdout.splitlines()[-1]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return write_package(tmp_path)


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = write_package(tmp_path_factory.mktemp("compiled"))
    assert call(made) == (RIGHT, COMPILED)
    return made


@pytest.fixture
def compiled(compiled_once: Path, tmp_path: Path) -> Path:
    """A package whose kernels were compiled in a process before: a copy, with all times."""
    return Path(shutil.copytree(compiled_once, tmp_path / "datakit"))


def call(package: Path, **environment: str) -> tuple[list[float], int]:
    """(what the kernels return, how many functions were compiled)."""
    *found, compiled, told = json.loads(run(package, CALL, **environment))
    assert told == (compiled > 0)
    return found, compiled


def entries(package: Path) -> list[Path]:
    return sorted(path for ending in ("nbi", "nbc") for path in (package / "made/__pycache__").glob(f"*.{ending}"))


@pytest.mark.parametrize(
    ("file", "old", "new", "value"),
    [
        ("sums.py", "found = 0", "found = 5", 35),
        ("scaling.py", "return 3", "return 4", 40),  # inlined into a function of the same file
        ("scaling.py", "value * factor()", "value + factor()", 25),
    ],
)
def test_an_edit_is_seen_wherever_it_is(compiled, file, old, new, value):
    path, before = compiled / "made" / file, set(entries(compiled))
    path.write_text("# a line above moves every function to another line\n" + path.read_text().replace(old, new))
    assert call(compiled) == ([value, float("inf")], COMPILED)
    made = {entry: entry.read_bytes() for entry in entries(compiled)}
    assert len(made) == len(before) > 4 and {*made} != before, "entries of other sources go"
    assert call(compiled) == ([value, float("inf")], 0)
    assert {entry: entry.read_bytes() for entry in entries(compiled)} == made


def test_a_damaged_stamp_is_written_again(compiled):
    stamp = compiled / "made/__pycache__/datakit-kernels.stamp"
    whole = stamp.read_bytes()
    stamp.write_bytes(b"\xff\xfe")
    assert call(compiled) == (RIGHT, COMPILED)
    assert stamp.read_bytes() == whole


def test_without_a_folder_to_write_to_kernels_are_compiled_in_memory(package, tmp_path):
    """Files stand where the cache folders should be."""
    file = tmp_path / "file"
    file.touch()
    (package / "made/__pycache__").write_text("a file")
    nowhere = {"HOME": str(file), "XDG_CACHE_HOME": str(file), "TMPDIR": str(tmp_path), "NUMBA_CACHE_DIR": str(file)}
    assert call(package, **nowhere) == (RIGHT, COMPILED)
    assert (package / "made/__pycache__").is_file()


def test_the_users_cache_serves_a_read_only_install(package, tmp_path):
    (package / "made/__pycache__").write_text("a file")
    home = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home/cache")}
    assert call(package, **home) == (RIGHT, COMPILED)
    assert call(package, **home) == (RIGHT, 0)
    path = package / "made/scaling.py"
    path.write_text(path.read_text().replace("return 3", "return 4"))
    assert call(package, **home) == ([40, float("inf")], COMPILED)


def test_kernels_run_as_python_where_numba_is_switched_off(package):
    assert json.loads(run(package, CALL.replace("0.0", "2.0"), NUMBA_DISABLE_JIT="1")) == [30, 15.0, 0, 0]
    locks = f"{CALL}\nprint([f.targetoptions['nogil'] for f in (sums.total, sums.scale)])"
    assert run(package, locks) == "[True, True]"


RUN = """
import json, sys
from datakit.cli.main import main
from datakit.engine import maintenance

maintenance.all_cores = lambda: 1  # so that it compiles in this process, where what it made can be seen

def call(line):
    try:
        main(line.split(" "))
    except SystemExit as e:
        assert e.code in (None, 0, 3), line  # 3: all rows were dropped

def compiled():
    modules = [m for name, m in sys.modules.items() if name.startswith("datakit.")]
    found = {f for m in modules for f in vars(m).values() if hasattr(f, "py_func")}
    return {f"{f.py_func.__qualname__}{s}" for f in found for s in f.signatures}

call("compile")
before = compiled()
for line in sys.stdin.read().splitlines():
    call(line)
print(json.dumps([len(before), sorted(compiled() - before)]))
"""
RULES = "gopher_quality,gopher_repetition,c4,fineweb,private,contamination"
TEXTS = (
    "Der Hafen der alten Stadt wurde im Jahr der großen Flut gebaut. Niemand glaubte, dass man ihn brauchen würde. ",
    "旧城的港口建于大洪水那一年。没有人认为会再次需要它。后来铁路来了，商人们也来了。",
    "The harbour was built in the year of the flood, and nobody thought that it would be needed! Call 555-0134. ",
)


def write_data(folder: Path) -> None:
    """Documents in three languages, conversations, preference pairs: of other sizes than `datakit compile` has."""
    texts = [" ".join(f"{TEXTS[n % 3]}{n * k} {'é' * k}." for k in range(1 + n % 7)) for n in range(90)]
    texts += [*texts[7:30:2], "", " ", "a", "\x00 ok"]
    documents = [{"id": f"d{n}", "text": t, "url": f"http://h/{n // 2}"} for n, t in enumerate(texts)]
    turns = [user(TEXTS[2]), says(TEXTS[1])]
    talks = [{"messages": [*turns, user(f"{n}?"), turns[1]]} for n in range(40)]
    pairs = [{"prompt": f"{n}", "chosen": TEXTS[n % 3], "rejected": TEXTS[n % 2] + "."} for n in range(40)]
    items = [{"question": TEXTS[2], "answer": "Yes."}, {"question": TEXTS[1], "answer": "42"}]
    named = {"documents": documents, "later": documents[::-2], "talks": talks, "pairs": pairs, "items": items}
    for name, rows in named.items():
        write_rows(folder / f"{name}.jsonl", rows)


def test_after_datakit_compile_no_run_compiles(tmp_path):
    """What is called for the same types needs no second compile, whatever the cache held before this test."""
    write_data(tmp_path)
    lines = ["dedup documents.jsonl --set save_index=true --output documents"]
    lines += ["dedup later.jsonl --against documents --output later"]
    lines += [f"{s} documents.jsonl --output {s}" for s in ("dedup-urls", "normalize")]
    lines += [f"dedup-repeats documents.jsonl --unit {unit} --output {unit}" for unit in ("line", "sentence", "token")]
    lines += ["dedup-repeats talks.jsonl --workers 1 --unit token --output shares"]
    lines += [f"filter documents.jsonl --eval items.jsonl --rules {RULES} --output filter"]
    lines += ["language documents.jsonl --workers 1 --output language"]
    for name in ("documents", "talks", "pairs"):
        lines += [f"dedup {name}.jsonl --workers 1 --output dedup-{name}"]
        lines += [f"filter {name}.jsonl --output filter-{name}"]
        lines += [f"tokenizer train {name}.jsonl --vocab-size 400 --output tokenizer-{name}"]
        lines += [f"tokenize {name}.jsonl --tokenizer tokenizer-{name}/kept/tokenizer --output tokens-{name}"]
        lines += [f"pack tokens-{name} --seq-len {n} --output packed-{name}-{n}" for n in (33, 128)]
    done = python("-c", RUN, cwd=tmp_path, given="\n".join(lines), PYTHONPATH=str(ROOT))
    count, new = json.loads(done.stdout.splitlines()[-1])
    assert count > 30 and new == []
