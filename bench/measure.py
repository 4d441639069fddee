"""What the measuring scripts share: the texts of a corpus; the time, memory and disk of a command; an object store."""

import contextlib
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def lines_of(path: Path) -> list[bytes]:
    with pa.input_stream(str(path)) as stream:
        return list(stream.read().splitlines())


def texts_of(path: Path) -> list[str]:
    if path.suffix == ".parquet":
        return list(pq.read_table(path, columns=["text"]).column("text").to_pylist())
    return [json.loads(line)["text"] for line in lines_of(path)]


def timed(
    command: list[str], output: Path | None = None, cwd: Path | None = None, look: Callable[[int], object] | None = None
) -> tuple[float, float, str, str]:
    """(wall, processor) seconds of a command with all its processes, its standard output and errors.

    `look` is called with its process id, twenty times a second. The folder `output` is removed before.
    """
    if output is not None:
        shutil.rmtree(output, ignore_errors=True)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, cwd=cwd, stdout=out, stderr=errors)
        while look and process.poll() is None:
            look(process.pid)
            time.sleep(0.05)
        code, wall = process.wait(), time.perf_counter() - start
        out.seek(0)
        errors.seek(0)
        said, told = out.read(), errors.read()
    if code:
        sys.exit(f"{' '.join(command)}\n{told}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, said, told


def tree(pid: int) -> list[int]:
    """A process and its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in task.read_text().split():
                found += tree(int(child))
    return found


def processor_seconds(pid: int) -> float:
    """Of a process and all below it, also of those that ended."""
    spent = 0
    for process in tree(pid):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            spent += sum(map(int, fields[11:15]))
    return spent / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int, *measures: str) -> list[float]:
    """MB of a process tree by some measures of /proc, as `Pss`; only processes that still run."""
    sums = [0.0] * len(measures)
    for process in tree(pid):
        with contextlib.suppress(OSError):
            said = Path(f"/proc/{process}/smaps_rollup").read_text()
            for at, name in enumerate(measures):
                found = re.search(rf"^{name}:\s+(\d+)", said, re.MULTILINE)
                sums[at] += int(found[1]) * 1024 / 1e6 if found else 0
    return sums


def size_of(folder: Path) -> float:
    """MB of all files in a folder; a file with several links is counted once."""
    sizes = {}
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            sizes[path.stat().st_ino] = path.stat().st_size / 1e6 if path.is_file() else 0
    return sum(sizes.values())


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextlib.contextmanager
def object_store(folder: Path) -> Iterator[Any]:
    """A client of moto's server in a process of its own, with the bucket `corpus`; the environment names it, and a
    mirror in the folder."""
    import boto3

    port = free_port()
    serve = [sys.executable, "-m", "moto.server", "-p", str(port)]
    server = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "DATAKIT_MIRROR": str(folder / "mirror"),
    }  # fmt: skip
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):  # until it answers
            time.sleep(0.2)
        client = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
        client.create_bucket(Bucket="corpus")
        yield client
    finally:
        server.kill()
