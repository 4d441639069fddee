"""What Ray costs: the whole line with `--executor ray` beside the local one, on the same cores of this machine.

    python bench/cluster.py ../shared/tokenizers/smollm FILE... [--workers 2] [--runs 2]

Runs alternate. Seconds of a stage are those of its manifest. The cluster is started before the clock; its worker
processes start within the first stage, as in each command. Processor seconds are of the command and all processes that
it started, the cluster's own included. Manifests must be equal, byte for byte.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import processor_seconds

STAGES = ("ingest", "language", "dedup", "filter", "tokenize", "pack")


def one(executor: str, workers: int, project: Path) -> None:
    """Run the project; prints the seconds of its stages, wall and processor seconds, as JSON."""
    from datakit.cli.main import main

    if executor == "ray":
        import ray

        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
    began, before = time.perf_counter(), processor_seconds(os.getpid())
    try:
        main(["run", "--project", str(project), "--executor", executor, "--workers", str(workers)])
    except SystemExit as e:
        if e.code:
            raise
    wall, spent = time.perf_counter() - began, processor_seconds(os.getpid()) - before
    manifests = project / "manifests" / "bench"
    seconds = {s: json.loads((manifests / f"{s}.run.json").read_text())["seconds"] for s in STAGES}
    bytes_of = [hashlib.sha256((manifests / f"{s}.json").read_bytes()).hexdigest() for s in STAGES]
    print("\n" + json.dumps({"stages": seconds, "wall": wall, "processor": spent, "manifests": bytes_of}), flush=True)


def begun(tokenizer: Path, files: list[Path], folder: Path) -> Path:
    """A new project of the files."""
    command = [sys.executable, "-m", "datakit", "init", "bench", *map(str, files), "--project", str(folder)]
    subprocess.run([*command, "--tokenizer", str(tokenizer)], check=True, stdout=subprocess.DEVNULL)
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        one(asked.one, asked.workers, asked.tokenizer)
        return 0
    megabytes = sum(file.stat().st_size for file in asked.files) / 1e6
    print(f"{megabytes:.0f} MB, {asked.workers} workers", *STAGES, "wall", "processor s", sep="\t", flush=True)
    manifests = set()
    for executor in ("local", "ray") * asked.runs:
        with tempfile.TemporaryDirectory() as folder:
            project = begun(asked.tokenizer.resolve(), [f.resolve() for f in asked.files], Path(folder) / "project")
            command = [sys.executable, __file__, "--one", executor, "--workers", str(asked.workers), str(project)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        times = [*found["stages"].values(), found["wall"], found["processor"]]
        print(executor, *(f"{s:.1f}" for s in times), sep="\t", flush=True)
        manifests.add(tuple(found["manifests"]))
    if len(manifests) > 1:
        print("manifests differ")
    return int(len(manifests) > 1)


if __name__ == "__main__":
    sys.exit(main())
