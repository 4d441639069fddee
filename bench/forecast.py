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
import shutil
import sys
from pathlib import Path
from typing import Any

from measure import memory_of, size_of, timed


def datakit(project: Path, *args: str) -> tuple[str, float, float, float]:
    """(standard output, seconds, seconds of processor time, MB of memory at the peak) of a command in a project."""
    peak = [0.0]
    command = [sys.executable, "-m", "datakit", *args]
    seconds, cpu, out, _ = timed(command, None, project, lambda pid: peak.extend(memory_of(pid, "Rss")))
    return out, seconds, cpu, max(peak)


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
    records = f"{said['rows']:,} records, {said['sample_rows']:,} in the sample"
    lines = [f"{project.name}: {records}, forecast in {said['took_s']} s, load {load:.1f}"]
    disk = size_of(project / "data")
    for what, expected, found, unit in (
        ("time", said["seconds"], seconds, "s"),
        ("CPU", said["cpu_s"], cpu_s, "s"),
        ("memory", said["memory"] / 1e6, memory, "MB"),
        ("disk", said["disk"] / 1e6, disk, "MB"),
    ):
        numbers = f"{expected:>12,.1f} {unit:<3} run {found:>12,.1f} {unit:<3} {expected / found - 1:+.1%}"
        lines.append(f"  {what:<8}{numbers}")
    inside = outside = unseen = 0
    for stage, real in zip(said["stages"], funnel, strict=True):
        rows = real["ledger"]["rows"]
        unread = {"could not be read": rows["quarantined"]} if rows["quarantined"] else {}
        counts: dict[str, Any] = rows["dropped"] | unread
        found = {r: (e, counts.get(r, 0)) for r, e in stage["dropped"].items()}
        found["kept"] = (stage["kept"], rows["kept"])
        unseen += sum(n for reason, n in counts.items() if reason not in stage["dropped"])
        for reason, (e, n) in found.items():
            if e["low"] - 0.5 <= n <= e["high"] + 0.5:
                inside += 1
            else:
                outside += 1
                interval = f"{e['low']:,.0f} to {e['high']:,.0f}"
                lines.append(f"  OUTSIDE {stage['stage']} {reason}: {n:,} is not in {interval}")
        kept = f"kept {stage['kept']['value']:>10,.0f} run {rows['kept']:>10,}"
        times = f"{stage['seconds']:>7,.1f} s run {real['seconds']:>7,.1f} s"
        sizes = f"{stage['disk'] / 1e6:>8,.1f} MB run {size_of(project / 'data/d' / stage['stage']):>8,.1f} MB"
        lines.append(f"  {stage['stage']:<12} {kept}   {times}   {sizes}")
    counted = f"{inside} counts within their intervals, {outside} outside"
    return [*lines, f"  {counted}; {unseen} rows dropped for other reasons"]


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
