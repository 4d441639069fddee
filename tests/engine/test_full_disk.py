"""A disk that runs full, for real: a small file system in memory."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.corpus import write_corpus

DRIVER = """
import contextlib, gc, hashlib, io, subprocess, sys
from pathlib import Path
from datakit.cli.main import main

where = Path("full")
where.mkdir()

def dedup():
    said, code = io.StringIO(), 0
    flags = ["--dataset", "d", "--kind", "text", "--output", "full/out", "--memory-mb", "1"]
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            main([*sys.argv[1].split(), "raw/part-0.jsonl", "--workers", "2", *flags])
        except SystemExit as e:
            code = e.code
    return code, said.getvalue()

def made():
    files = [p for p in sorted(where.rglob("*")) if p.is_file() and not p.name.endswith(".run.json")]
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}

def mount(options):
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", where], check=True)

def leave():
    gc.collect()  # what an error left mapped keeps the file system busy
    subprocess.run(["umount", where], check=True)

mount("size=1g")
assert dedup()[0] == 0
whole = made()
leave()
stopped = set()
for size in map(int, sys.argv[2:]):
    mount(f"size={size}k")
    code, said = dedup()
    mount("remount,size=1g")
    last = said.splitlines()[-1]
    assert code == 1, (size, said)
    assert "No space left on device. Finished" in last, (size, said)
    assert not (where / "out/manifest.json").exists(), size
    stopped.add(last.split(": ")[1])
    code, said = dedup()
    assert code == 0 and made() == whole, (size, said)
    leave()
print("\\n".join(sorted(stopped)))
"""


def driven(folder: Path, *args: object, prefix: tuple[str, ...] = ()) -> list[str]:
    """Where the runs stopped."""
    write_corpus(folder / "raw", rows=800, files=1)
    command = [*prefix, sys.executable, "-c", DRIVER, *map(str, args)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("command", "sizes", "phases"),
    [
        ("dedup --save-index", (200, 900, 1500, 2000), {"read", "sketch", "index"}),
        ("dedup-repeats", (600, 900, 1200, 1500), {"sketch", "sort", "out"}),
    ],
)
def test_a_full_disk_is_a_clear_error_at_every_phase_and_the_run_goes_on_after(tmp_path, command, sizes, phases):
    own = ("unshare", "--map-root-user", "--mount")
    tried = subprocess.run([*own, "mount", "-t", "tmpfs", "tmpfs", tmp_path], capture_output=True)
    if tried.returncode:
        pytest.skip("a file system cannot be mounted here")
    stopped = driven(tmp_path, command, *sizes, prefix=own)
    assert {Path(place).name for place in stopped} >= phases
