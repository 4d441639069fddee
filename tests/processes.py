"""Python in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

ROOT = Path(__file__).resolve().parents[1]


def python(
    *command: object, ends: int | None = 0, cwd: Path = ROOT, given: str = "", **environment: str
) -> CompletedProcess[str]:
    """Run Python, which must end with the code `ends` (None: with any); what a run that does not said is in the error.

    `given` is its standard input, `environment` what it has beside that of the test.
    """
    options = {"cwd": cwd, "env": os.environ | environment, "input": given, "timeout": 1800}
    done = subprocess.run([sys.executable, *map(str, command)], **options, capture_output=True, text=True)
    assert ends in (None, done.returncode), f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


def modules_after(code: str) -> set[str]:
    """The modules that are loaded after some code."""
    told = python("-c", f"import atexit, sys\natexit.register(lambda: print(*sys.modules))\n{code}").stdout
    return {*told.splitlines()[-1].split()}
