"""Runs `datakit` in this process, in a folder of its own."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from datakit.cli.main import main


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def datakit(project: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def call(*args: object) -> Said:
        code = 0
        capsys.readouterr()
        with contextlib.suppress(SystemExit):
            try:
                main([str(a) for a in args])
            except SystemExit as e:
                code = int(e.code or 0)
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return call
