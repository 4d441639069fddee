"""Runs `datakit` in this process, in a folder of its own; projects that are made once and copied."""

import contextlib
import io
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from datakit.cli.main import main


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    def fails(self, code: int, *words: str) -> "Said":
        """The command ended with this code, and its error has these words."""
        assert self.code == code and all(word in self.err for word in words), self.err
        return self


def call(*args: object) -> Said:
    """What the command says, of which a text alone is the words; pytest's own capture would end with each test."""
    code, out, err = 0, io.StringIO(), io.StringIO()
    words = [str(a) for a in args] if len(args) > 1 else str(args[0]).split()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(words)
        except SystemExit as e:
            code = int(e.code or 0)
    return Said(code, out.getvalue(), err.getvalue())


def done(*args: object) -> Said:
    """The same of a command that must succeed."""
    said = call(*args)
    assert said.code == 0, said.err
    return said


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder to make things in that all tests of a module look at."""
    folder = tmp_path_factory.mktemp("workshop")
    with contextlib.chdir(folder):
        yield folder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def copy_of(made: Path, project: Path) -> Path:
    """A copy of what was made once, in which the test runs."""
    shutil.copytree(made, project, dirs_exist_ok=True)
    return project


@pytest.fixture
def datakit(project: Path) -> Callable[..., Said]:
    return call
