"""`datakit forecast` beside the full run: time, memory, disk, and what each stage drops.

    python bench/forecast.py FOLDER --tokenizer DIR text=english/*.jsonl sft=chats.jsonl

For each KIND=FILES, a fresh project of FOLDER gets a recipe; it is forecast, then run, with the same workers. Before
that both run on the first file alone, so that kernels are compiled. Time and disk should be within 20%, and the counts
of rows that each stage keeps and drops, by reason, within their intervals; reasons that the sample does not show should
drop few rows. Other work on the machine shows as an error of the time, so the load is printed.
"""

import argparse
import glob
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any


def _cpu_below() -> float:
    """Seconds of processor time of all processes below this one that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _memory_below() -> int:
    """Bytes that the processes below this one have in memory."""
    mine, total = {os.getpid()}, 0
    for entry in sorted(int(p.name) for p in Path("/proc").glob("[0-9]*")):  # a child mostly has the higher number
        try:
            fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[1]) in mine:
            mine.add(entry)
            total += int(fields[21]) * os.sysconf("SC_PAGESIZE")
    return total


def _disk(folder: Path) -> int:
    """Bytes of all files below a folder; hard links count once."""
    return sum({s.st_ino: s.st_size for s in (f.stat() for f in folder.rglob("*") if f.is_file())}.values())


def datakit(project: Path, *args: str) -> tuple[str, float, float, int]:
    """(standard output, seconds, seconds of processor time, bytes of memory at the peak) of a command in a project."""
    begin, cpu, peak, done = time.monotonic(), _cpu_below(), 0, threading.Event()
    command = subprocess.Popen(
        [sys.executable, "-m", "datakit", *args], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.05):
            peak = max(peak, _memory_below())

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, errors = command.communicate()
    done.set()
    watcher.join()
    if command.returncode:
        sys.exit(f"datakit {' '.join(args)}: {errors[-2000:]}")
    return out, time.monotonic() - begin, _cpu_below() - cpu, peak


def compare(project: Path, kind: str, files: list[str], tokenizer: Path, options: list[str]) -> list[str]:
    """Forecast and run a project; the lines of the table."""
    for name in ("manifests", "data"):
        shutil.rmtree(project / name, ignore_errors=True)
    datakit(project, "init", "d", *files, "--kind", kind, "--tokenizer", str(tokenizer))
    said = json.loads(datakit(project, "forecast", "--dataset", "d", "--json", *options)[0])
    load = os.getloadavg()[0]
    sets = [word for word in options if word == "--set" or "=" in word]
    out, seconds, cpu_s, memory = datakit(project, "run", "--dataset", "d", "--json", *sets)
    funnel = json.loads(out)["funnel"]
    lines = [
        f"{project.name}: {said['rows']:,} records, {said['sample_rows']:,} in the sample, "
        f"forecast in {said['took_s']} s, load {load:.1f}"
    ]
    disk = _disk(project / "data")
    for what, expected, found, unit in (
        ("time", said["seconds"], seconds, "s"),
        ("CPU", said["cpu_s"], cpu_s, "s"),
        ("memory", said["memory"] / 1e6, memory / 1e6, "MB"),
        ("disk", said["disk"] / 1e6, disk / 1e6, "MB"),
    ):
        lines.append(
            f"  {what:<8}{expected:>12,.1f} {unit:<3} run {found:>12,.1f} {unit:<3} {expected / found - 1:+.1%}"
        )
    inside = outside = unseen = 0
    for stage, real in zip(said["stages"], funnel, strict=True):
        rows = real["ledger"]["rows"]
        counts: dict[str, Any] = rows["dropped"] | (
            {"could not be read": rows["quarantined"]} if rows["quarantined"] else {}
        )
        found = {"kept": (stage["kept"], rows["kept"])} | {
            r: (e, counts.get(r, 0)) for r, e in stage["dropped"].items()
        }
        unseen += sum(n for reason, n in counts.items() if reason not in stage["dropped"])
        for reason, (e, n) in found.items():
            if e["low"] - 0.5 <= n <= e["high"] + 0.5:
                inside += 1
            else:
                outside += 1
                lines.append(
                    f"  OUTSIDE {stage['stage']} {reason}: {n:,} is not in {e['low']:,.0f} to {e['high']:,.0f}"
                )
        lines.append(
            f"  {stage['stage']:<12} kept {stage['kept']['value']:>10,.0f} run {rows['kept']:>10,}   "
            f"{stage['seconds']:>7,.1f} s run {real['seconds']:>7,.1f} s   {stage['disk'] / 1e6:>8,.1f} MB run "
            f"{_disk(project / 'data/d' / stage['stage']) / 1e6:>8,.1f} MB"
        )
    lines.append(
        f"  {inside} counts within their intervals, {outside} outside; {unseen} rows dropped for other reasons"
    )
    return lines


def main() -> None:
    """Compare all corpora."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--options", nargs="*", default=[], help="of forecast, as --options=--seed --options=2")
    parser.add_argument("corpora", nargs="+", metavar="KIND=FILES")
    given = parser.parse_args()
    for number, corpus in enumerate(given.corpora):
        kind, _, pattern = corpus.partition("=")
        files = [str(Path(name).resolve()) for part in pattern.split(",") for name in sorted(glob.glob(part))]
        for name, some in (("warm", files[:1]), (f"{number}-{kind}", files)):
            project = given.folder.resolve() / name
            project.mkdir(parents=True, exist_ok=True)
            lines = compare(project, kind, some, given.tokenizer.resolve(), given.options)
        print("\n".join(lines), flush=True)


if __name__ == "__main__":
    main()
