"""The n-gram models of `datakit perplexity train` beside KenLM's lmplz: the same text, values, time and memory.

    python bench/perplexity.py build folder/                         # lmplz from the sdist of kenlm
    python bench/perplexity.py compare folder/lmplz FILES... --order 5 --prune 0,0,1 --megabytes 20
    python bench/perplexity.py speed folder/lmplz FILES... --order 5

`build` needs a C++ compiler, cmake and Debian's libboost-all-dev. Both sides read the lines that `plain_text` makes;
the time to make them is not counted. `compare` reads both ARPA files whole into memory.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

from datakit.filter.perplexity import plain_text

OURS = """
import sys
from pathlib import Path
from datakit.filter.ngram_model import estimate
text, out, order, prune = sys.argv[1:]
with open(text, encoding="utf-8") as lines:
    estimate(lines, Path(out), order=int(order), min_pruned=tuple(map(int, filter(None, prune.split(",")))))
"""


def build(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", "kenlm", "kenlm==0.3.0"]
    subprocess.run([*pip, "--dest", str(folder)], check=True)
    (archive,) = folder.glob("kenlm-*.tar.gz")
    with tarfile.open(archive) as f:
        f.extractall(folder, filter="data")
    source = next(p for p in folder.glob("kenlm-*") if p.is_dir())
    made = folder / "build"
    subprocess.run(["cmake", "-S", str(source), "-B", str(made), "-DCMAKE_BUILD_TYPE=Release"], check=True)
    subprocess.run(["cmake", "--build", str(made), "--target", "lmplz", "-j2"], check=True)
    (made / "bin" / "lmplz").rename(folder / "lmplz")


def lines(files: list[Path], most: int) -> Iterator[bytes]:
    """Sentences of the files' texts, up to a number of bytes."""
    for path in files:
        with path.open("rb") as f:
            for row in f:
                for line in plain_text(orjson.loads(row)["text"]).split("\n"):
                    words = line.split()
                    if words:
                        made = " ".join(words).encode() + b"\n"
                        most -= len(made)
                        if most < 0:
                            return
                        yield made


def measured(command: list[str], **options) -> tuple[float, float, int]:
    """(wall seconds, CPU seconds, peak MiB) of a command."""
    start = time.monotonic()
    process = subprocess.Popen(command, **options)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command[0]} failed")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss >> 10


def read_arpa(path: Path) -> dict[bytes, tuple[float, float]]:
    found = {}
    with path.open("rb") as f:
        for line in f:
            p, tab, rest = line.rstrip(b"\n").partition(b"\t")
            if tab:
                words, _, weight = rest.partition(b"\t")
                found[words] = float(p), float(weight or 0)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["build", "compare", "speed"])
    parser.add_argument("where", type=Path, help="a folder to build in, or lmplz")
    parser.add_argument("files", nargs="*", type=Path, help="JSON lines with `text`")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--prune", default="", help="as 0,0,1")
    parser.add_argument("--megabytes", type=float, default=1e6, help="text to read at most")
    args = parser.parse_args()
    if args.what == "build":
        build(args.where)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text, ours, theirs = folder / "text", folder / "ours.arpa", folder / "theirs.arpa"
        with text.open("wb") as f:
            f.writelines(lines(args.files, int(args.megabytes * 1e6)))
        size = text.stat().st_size / 1e6
        mine = measured([sys.executable, "-c", OURS, str(text), str(ours), str(args.order), args.prune])
        lmplz = [str(args.where), "-o", str(args.order), "-S", "1G", "-T", str(folder)]
        lmplz += ["--discount_fallback", *(["--prune", *args.prune.split(",")] if args.prune else [])]
        with text.open("rb") as source, theirs.open("wb") as out:
            other = measured(lmplz, stdin=source, stdout=out, stderr=subprocess.DEVNULL)
        for side, (wall, cpu, peak), path in (("ours", mine, ours), ("lmplz", other, theirs)):
            print(f"{side}: {size:.1f} MB, order {args.order}, {wall:.1f} s wall, {cpu:.1f} CPU s, "
                  f"{size / cpu:.2f} MB per CPU second, {size / wall:.2f} MB/s, peak {peak} MiB, "
                  f"file {path.stat().st_size / 1e6:.0f} MB", flush=True)  # fmt: skip
        if args.what == "compare":
            one, two = read_arpa(ours), read_arpa(theirs)
            apart = [max(abs(a - b) for a, b in zip(one[g], two[g], strict=True)) for g in one.keys() & two.keys()]
            print(f"{len(one)} and {len(two)} n-grams, {len(one.keys() ^ two.keys())} in one of them only; "
                  f"values differ by at most {max(apart):.1e}")  # fmt: skip


if __name__ == "__main__":
    main()
