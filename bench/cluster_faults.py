"""A cluster that loses machines, workers and drivers: the line on three raylets over an S3 server, beside a local run.

    python bench/cluster_faults.py ../shared/tokenizers/smollm FILE... [--rows 2000000] [--kills 20]

Rows are made from the sentences of the files (JSONL with `text`): a tenth repeats an earlier row exactly, a tenth with
one word changed; a fifth have an address that another row has, and many share sentences. The S3 server is moto's, in a
process of its own. Raylets, workers and the driver get SIGKILL in turn, at random times; a driver that died is started
again. At the end the manifests must be those of the local run, byte for byte, and `verify` must find every file
unchanged.
"""

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

DEDUPS = ("dedup_urls", "dedup", "dedup_repeats")
STAGES = ("ingest", "language", *DEDUPS, "filter", "tokenize", "pack")
FILES = 8


def write_rows(sources: list[Path], rows: int, folder: Path) -> list[str]:
    """So many rows of about 500 bytes in `FILES` files."""
    picks, sentences = random.Random(11), list[str]()
    for source in sources:
        for line in source.open(encoding="utf-8"):
            found = re.split(r"(?<=[.!?])\s+", json.loads(line)["text"])
            sentences += [s for s in found if 60 <= len(s) <= 200 and "\n" not in s]
            if len(sentences) > 400_000:
                break
    texts: list[str] = []
    made = []
    for number in range(FILES):
        made.append(str(folder / f"part-{number}.jsonl"))
        with Path(made[-1]).open("w", encoding="utf-8") as out:
            for i in range(rows // FILES):
                kind = picks.random()
                if kind < 0.2 and texts:
                    text = picks.choice(texts)
                    if kind < 0.1:
                        words = text.split(" ")  # a line break stays within its word
                        words[picks.randrange(len(words))] = "otherwise"
                        text = " ".join(words)
                else:
                    text = "\n".join(picks.choices(sentences, k=5))
                    if picks.random() < 0.05:
                        texts.append(text)
                url = f"https://site{picks.randrange(rows // 20)}.example/{picks.randrange(100)}"
                out.write(json.dumps({"id": f"{number}-{i}", "text": text, "url": url}) + "\n")
    return made


def workers(cluster: Any) -> list[int]:
    """The processes in which units run: children of the cluster's raylets."""
    raylets = {info.process.pid for node in cluster.list_all_nodes() for info in node.all_processes["raylet"]}
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        if name.startswith("ray::") and int(rest.split()[1]) in raylets:
            found.append(int(path.parent.name))
    return found


def survive(cluster: Any, command: list[str], kills: int, seconds: float, log: Path) -> dict[str, int]:
    """Run a command to its end through so many kills, about `seconds` apart; returns how often what was killed."""
    picks, done = random.Random(3), {"raylet": 0, "worker": 0, "driver": 0}
    starts = 0
    with log.open("ab") as out:
        run = subprocess.Popen(command, stdout=out, stderr=out)
        while run.poll() != 0:
            if run.poll() is not None:  # a driver that was killed, or was joined to a raylet that was
                starts += 1
                if starts > 3 * kills + 3:
                    raise SystemExit(f"it ended with {run.returncode} {starts} times: see {log}")
                run = subprocess.Popen(command, stdout=out, stderr=out)
            time.sleep(picks.uniform(0.5, 1.5) * seconds)
            if sum(done.values()) >= kills or run.poll() is not None:
                continue
            what = min(done, key=lambda name: (done[name], picks.random()))
            if what == "raylet":
                cluster.remove_node(picks.choice([n for n in cluster.list_all_nodes() if not n.head]), False)
                cluster.add_node(num_cpus=1)
            elif what == "driver":
                run.send_signal(signal.SIGKILL)
                run.wait()
            elif found := workers(cluster):
                os.kill(picks.choice(found), signal.SIGKILL)
            else:
                continue
            done[what] += 1
            print(f"{time.strftime('%H:%M:%S')}  killed a {what}: {done}", flush=True)
    return done | {"starts": starts + 1}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=20.0, help="between two kills, about")
    asked = parser.parse_args()
    from measure import object_store
    from ray.cluster_utils import Cluster

    folder = Path(tempfile.mkdtemp(prefix="cluster-faults-"))
    inputs = write_rows(asked.files, asked.rows, folder)
    megabytes = sum(Path(path).stat().st_size for path in inputs) / 1e6
    print(f"{asked.rows:,} rows, {megabytes:.0f} MB, in {folder}", flush=True)
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    serving = contextlib.ExitStack()
    store = serving.enter_context(object_store(folder))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        spread = ["--executor", "ray", "--ray-address", cluster.address]
        places = {str(folder / "here"): [], "s3://corpus/project": spread}
        datakit = [sys.executable, "-m", "datakit"]
        log = folder / "log.txt"
        for place, how in places.items():
            begin = [*datakit, "init", "d", *inputs, "--project", place, "--tokenizer", str(asked.tokenizer.resolve())]
            subprocess.run(begin, check=True, stdout=subprocess.DEVNULL)
            if not how:
                recipe = folder / "here/manifests/d/recipe.toml"
                levels = ", ".join(f'"{stage}"' for stage in DEDUPS)
                longer = recipe.read_text().replace('"dedup", "filter"', f'{levels}, "filter"')
                recipe.write_text(longer)
            else:
                store.put_object(Bucket="corpus", Key="project/manifests/d/recipe.toml", Body=longer.encode())
            began = time.perf_counter()
            command = [*datakit, "run", "--project", place, *how]
            kills = survive(cluster, command, asked.kills if how else 0, asked.seconds, log)
            print(f"{place}: {time.perf_counter() - began:.0f} s; {kills}", flush=True)
        differ = []
        for stage in STAGES:
            there = store.get_object(Bucket="corpus", Key=f"project/manifests/d/{stage}.json")["Body"].read()
            here = (folder / "here" / "manifests" / "d" / f"{stage}.json").read_bytes()
            differ += [stage] if there != here else []
            rows = json.loads(here)["ledger"]["rows"]
            print(f"{stage}: {rows['in']:,} rows in, {rows['kept']:,} kept; {'DIFFERS' if there != here else 'equal'}")
        checked = subprocess.run([*datakit, "verify", "s3://corpus/project/manifests/d/pack.json"], check=False)
        return int(bool(differ) or checked.returncode != 0)
    finally:
        cluster.shutdown()
        serving.close()


if __name__ == "__main__":
    sys.exit(main())
