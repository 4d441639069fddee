"""Two source trees of datakit side by side: the whole line, dedup, tokenize and `--help` on English text.

    python bench/house.py make CORPORA FOLDER --megabytes 400
    python bench/house.py time FOLDER --base TREE --new TREE --tokenizers minimind=DIR qwen2=DIR [--parts run,dedup]

`make` writes FOLDER/part-*.jsonl: passages of English books, documentation and web pages. The corpora hold about 60 MB
of them, so they are used several times, each time with 18% of the words replaced by words of the same texts; such
copies share few shingles. On top of that 3% of the documents are exact copies of earlier ones, 12% are near copies
with up to 2% of their words replaced.

`time` runs each command for the one tree, then for the other, and turns the order around in every round; the best
round counts, for wall clock and processor time separately. Each tree is imported by PYTHONPATH and has a scratch folder
of its own. Before the first round every command runs once on a small part of the input, so that kernels and bytecode
are compiled. Before each timed command the input files get a new mtime, so that no cached digest saves their hashing,
and the results of the previous round are removed. Parts:

    run        `datakit run`: all six stages, four rule sets, the tokenizer named with --line-tokenizer
    dedup      `datakit dedup FILES --output`
    tokenize   `datakit tokenize` of all texts, after an ingest that is not timed, with every tokenizer
    help       `datakit --help`, ten times a round
"""

import argparse
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

STAGES = ("ingest", "language", "dedup", "filter", "tokenize", "pack")
RULES = "filter.rules=gopher_quality,gopher_repetition,c4,fineweb"
PARTS = ("run", "dedup", "tokenize", "help")
BOUNDS = {"run": 0.88, "dedup": 1.15, "tokenize": 0.4}
"""The largest wall ratios that the work on the house allows."""
HELP_S = 0.15
WARM_MB = 4
FILES = 8
ENGLISH = {
    "web/classic_books_en.parquet": ("", 1),
    "web/nodejs_13_versions_en.jsonl.zst": ("en_v12.x", 3),
    "web/rust_book_en.jsonl.zst": ("", 3),
    "web/fastapi_docs_13_langs.jsonl.gz": ("en", 3),
    "web/electron_8_langs.jsonl.zst": ("en-US", 3),
    "web/opensource_guide_28_langs.jsonl.gz": ("en", 3),
    "sft/llamafactory/c4_demo.jsonl": ("", 3),
    "sft/llamafactory/wiki_demo.txt": ("", 3),
}
"""The files with English texts, the `lang` of the rows that are used (all if empty), and how often a round uses them:
books are most of the text, but shall not be most of the documents."""
EXACT, NEAR = 0.03, 0.12
REPLACED, NEAR_REPLACED = 0.18, 0.02
"""Shares of the words that are replaced in a copy, and at most in a near copy. A word is part of five shingles: with
18% replaced, (1 - 0.18)^5 = 0.37 of them stay, a Jaccard similarity of 0.23; with 2% it is 0.83."""


# ------------------------------------------------------------------------------------------------------ the input


def texts_of(path: Path, lang: str) -> Iterator[str]:
    """The English texts of a corpus file."""
    if path.suffix == ".parquet":
        yield from pq.read_table(path, columns=["text"]).column("text").to_pylist()
        return
    with pa.input_stream(str(path)) as stream:
        lines = stream.read().split(b"\n")
    for line in filter(None, lines):
        if path.suffix == ".txt":
            yield line.decode()
        else:
            row = json.loads(line)
            if not lang or row.get("lang") == lang:
                yield row["text"]


def passages(text: str, rng: random.Random) -> Iterator[str]:
    """A text cut at blank lines into pieces of 1 to 10 thousand characters, as web pages have; short texts whole.

    The lines of a paragraph of prose are joined, as a page has them.
    """
    wanted, found, size = rng.uniform(1e3, 1e4), list[str](), 0
    for paragraph in re.split(r"\n\s*\n", text.replace("\r\n", "\n")):
        prose = "\n" in paragraph and not re.search(r"(?m)^(\s{2,}|[-*+#>|`]|\d+\.)", paragraph)
        found.append(" ".join(paragraph.split("\n")) if prose else paragraph.strip("\n"))
        size += len(paragraph)
        if size >= wanted:
            yield "\n\n".join(found)
            wanted, found, size = rng.uniform(1e3, 1e4), [], 0
    if size >= 200:
        yield "\n\n".join(found)


def replaced(text: str, share: float, words: list[str], rng: random.Random) -> str:
    """The text with a share of its words replaced; punctuation and white space stay."""
    parts = re.split(r"([A-Za-z]+)", text)  # words at the odd places
    for at in rng.sample(range(1, len(parts), 2), int(share * (len(parts) // 2))):
        word = rng.choice(words)
        parts[at] = word.capitalize() if parts[at][0].isupper() else word
    return "".join(parts)


def make(corpora: Path, folder: Path, megabytes: float) -> None:
    """Write the documents, about so many megabytes of JSON lines; the same for the same corpora."""
    rng = random.Random(11)
    pool, uses = list[str](), list[int]()
    for name, (lang, times) in ENGLISH.items():
        found = [p for text in texts_of(corpora / name, lang) for p in passages(text, rng)]
        pool += found
        uses += [at for at in range(len(pool) - len(found), len(pool)) for _ in range(times)]
        print(f"{name}: {len(found)} passages, {sum(map(len, found)) / 1e6:.1f} MB, {times} times a round")
    words = [w.lower() for p in rng.sample(pool, min(len(pool), 2000)) for w in re.findall(r"[A-Za-z]+", p)]
    folder.mkdir(parents=True)
    total = {"documents": 0, "bytes": 0, "exact": 0, "near": 0, "rounds": 0}
    limit, order, earlier, seen = megabytes * 1e6 / FILES, list[int](), list[str](), set[int]()
    for number in range(FILES):
        written = 0
        with (folder / f"part-{number}.jsonl").open("wb") as file:
            while written < limit:
                draw = rng.random()
                if earlier and draw < EXACT:
                    text, kind = rng.choice(earlier), "exact"
                elif earlier and draw < EXACT + NEAR:
                    share = rng.uniform(0.002, NEAR_REPLACED)
                    text, kind = replaced(rng.choice(earlier), share, words, rng), "near"
                else:
                    if not order:
                        order, total["rounds"] = rng.sample(uses, len(uses)), total["rounds"] + 1
                    at, kind = order.pop(), ""
                    text = replaced(pool[at], REPLACED, words, rng) if at in seen else pool[at]
                    seen.add(at)
                    if len(earlier) < 20_000:
                        earlier.append(text)
                    else:
                        earlier[rng.randrange(len(earlier))] = text
                document = total["documents"]
                row = {
                    "id": f"d{document:07d}",
                    "url": f"https://example.com/{document % 997}/{document}",
                    "text": text,
                }
                written += file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
                total["documents"] += 1
                if kind:
                    total[kind] += 1
        total["bytes"] += written
    (folder / "made.json").write_text(json.dumps(total) + "\n")
    print(f"{folder}: {total}")


# ------------------------------------------------------------------------------------------------------ the timing


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """A source tree, the python that runs it, and the folder it works in."""

    name: str
    path: Path
    python: Path
    folder: Path
    workers: int

    def call(self, args: list[str], folder: Path | None = None) -> tuple[float, float]:
        """(wall, processor) seconds of a command with all its processes; ends the program where it fails."""
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env |= {"PYTHONPATH": str(self.path), "NO_COLOR": "1"}
        command, folder = [str(self.python), "-m", "datakit", *args], folder or self.folder
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            sys.exit(f"{self.name}: {' '.join(command)}\n{done.stderr}")
        return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def check(self) -> None:
        """End the program where the tree is not what would be imported."""
        code = "import datakit; print(datakit.__file__)"
        env = os.environ | {"PYTHONPATH": str(self.path)}
        said = subprocess.run([self.python, "-c", code], cwd=self.folder, env=env, capture_output=True, text=True)
        if not said.stdout.startswith(str(self.path)):
            sys.exit(f"{self.name}: datakit is imported from {said.stdout.strip() or said.stderr}, not {self.path}")


@dataclass(slots=True)
class Best:
    """The best wall clock and processor seconds of each command and tree, and what the commands kept."""

    seconds: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    kept: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, what: str, tree: str, wall: float, cpu: float) -> None:
        """Count one run."""
        before = self.seconds.get((what, tree), (wall, cpu))
        self.seconds[what, tree] = min(before[0], wall), min(before[1], cpu)


def ledger(path: Path) -> str:
    """What a manifest kept, for the comparison of both trees."""
    rows = json.loads(path.read_text(encoding="utf-8"))["ledger"]
    tokens = f", {rows['tokens']['kept']} tokens" if rows["tokens"] else ""
    return f"{rows['rows']['kept']} rows{tokens}"


def fresh(files: list[Path]) -> None:
    """Make cached digests of the files stale, and let no earlier write disturb what comes."""
    for file in files:
        os.utime(file)
    os.sync()


def begin(tree: Tree, files: list[Path], tokenizer: Path) -> Path:
    """An empty project with a dataset of these files."""
    project = tree.folder / "project"
    shutil.rmtree(project, ignore_errors=True)
    project.mkdir()
    tree.call(["init", "line", *map(str, files), "--kind", "text", "--tokenizer", str(tokenizer)], project)
    return project


def whole_line(tree: Tree, files: list[Path], tokenizer: Path) -> tuple[float, float, str]:
    """All six stages with all four rule sets."""
    project = begin(tree, files, tokenizer)
    fresh(files)
    wall, cpu = tree.call(["run", "--dataset", "line", "--workers", str(tree.workers), "--set", RULES], project)
    manifests = project / "manifests" / "line"
    kept = "; ".join(f"{stage} {ledger(manifests / f'{stage}.json')}" for stage in STAGES)
    seconds = {s: json.loads((manifests / f"{s}.run.json").read_text()).get("seconds") for s in STAGES}
    print(f"    stages of {tree.name}: " + ", ".join(f"{s} {v}" for s, v in seconds.items()), flush=True)
    shutil.rmtree(project)
    return wall, cpu, kept


def dedup(tree: Tree, files: list[Path]) -> tuple[float, float, str]:
    """The stage as a command of its own."""
    output = tree.folder / "unique"
    shutil.rmtree(output, ignore_errors=True)
    fresh(files)
    args = ["dedup", *map(str, files), "--kind", "text", "--workers", str(tree.workers), "--output", str(output)]
    wall, cpu = tree.call(args)
    kept = ledger(output / "manifest.json")
    shutil.rmtree(output)
    return wall, cpu, kept


class Tokenizing:
    """A dataset that is read once; its tokens are made and removed again and again."""

    def __init__(self, tree: Tree, files: list[Path], tokenizer: Path) -> None:
        self.tree, self.project = tree, tree.folder / "tokens"
        shutil.rmtree(self.project, ignore_errors=True)
        self.project.mkdir()
        tree.call(["init", "t", *map(str, files), "--kind", "text", "--tokenizer", str(tokenizer)], self.project)
        recipe = self.project / "manifests" / "t" / "recipe.toml"
        stages = 'stages = ["ingest", "tokenize"]'
        recipe.write_text(re.sub(r"(?m)^stages = .*$", stages, recipe.read_text(encoding="utf-8"), count=1))
        ingest = ["run", "--dataset", "t", "--until", "ingest", "--workers", str(tree.workers)]
        tree.call(ingest, self.project)

    def run(self, tokenizer: Path) -> tuple[float, float, str]:
        """Tokenize everything anew."""
        manifest = self.project / "manifests" / "t" / "tokenize.json"
        for path in manifest.parent.rglob("tokenize*.json"):
            path.unlink()
        shutil.rmtree(self.project / "data" / "t" / "tokenize", ignore_errors=True)
        os.sync()
        args = ["tokenize", "--dataset", "t", "--tokenizer", str(tokenizer), "--workers", str(self.tree.workers)]
        wall, cpu = self.tree.call(args, self.project)
        return wall, cpu, ledger(manifest)


def warm_files(files: list[Path], folder: Path) -> list[Path]:
    """The first megabytes of each input file, as files of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for file in files[:2]:
        with file.open("rb") as source:
            lines = source.readlines(WARM_MB * 1_000_000 // 2)
        made.append(folder / file.name)
        made[-1].write_bytes(b"".join(lines))
    return made


def rounds(trees: list[Tree], files: list[Path], args: argparse.Namespace, best: Best, timed: bool) -> None:
    """Run the parts: once to warm up, or so many rounds with their times."""
    tokenizers, line = args.tokenizers, args.tokenizers[args.line_tokenizer]
    for part in args.parts:
        reading = {t.name: Tokenizing(t, files, line) for t in trees} if part == "tokenize" else {}
        for number in range(args.rounds if timed else 1):
            for what in tokenizers if part == "tokenize" else [""]:
                for tree in trees if number % 2 == 0 else trees[::-1]:
                    runs: list[tuple[float, float, str]] = []
                    if part == "run":
                        runs.append(whole_line(tree, files, line))
                    elif part == "dedup":
                        runs.append(dedup(tree, files))
                    elif part == "tokenize":
                        runs.append(reading[tree.name].run(tokenizers[what]))
                    else:
                        runs += [(*tree.call(["--help"]), "") for _ in range(10)]
                    name = f"{part} {what}".strip()
                    for wall, cpu, kept in runs if timed else []:
                        best.add(name, tree.name, wall, cpu)
                        best.kept[name, tree.name] = kept
                    if timed:
                        wall, cpu = min(r[0] for r in runs), min(r[1] for r in runs)
                        load = os.getloadavg()[0]
                        said = f"round {number + 1} {name:<18} {tree.name:<5} {wall:8.2f} s, {cpu:8.2f} CPU s"
                        print(f"{said}, load {load:.1f}", flush=True)
        for one in reading.values():
            shutil.rmtree(one.project)


def report(best: Best, megabytes: float) -> int:
    """Print the best times and their ratios; 1 where a bound is broken or the trees did not keep the same."""
    wrong = 0
    print(f"\n{'':<18} {'base s':>8} {'new s':>8} {'ratio':>6} {'base CPU':>9} {'new CPU':>8} {'ratio':>6}   new MB/s")
    for what in dict.fromkeys(w for w, _ in best.seconds):
        (base, base_cpu), (new, new_cpu) = best.seconds[what, "base"], best.seconds[what, "new"]
        bound = BOUNDS.get(what.split()[0])
        met = new / base <= bound if bound else new <= HELP_S
        limit = f"at most {bound}" if bound else f"at most {HELP_S} s"
        speed = f"{megabytes / new:8.1f}" if bound else " " * 8
        print(
            f"{what:<18} {base:8.2f} {new:8.2f} {new / base:6.2f} {base_cpu:9.2f} {new_cpu:8.2f} "
            f"{new_cpu / base_cpu:6.2f}   {speed}   {limit}: {'met' if met else 'NOT MET'}"
        )
        kept = best.kept[what, "base"], best.kept[what, "new"]
        if kept[0] != kept[1]:
            print(f"    DIFFERENT RESULTS: base kept {kept[0]}; new kept {kept[1]}")
        wrong |= not met or kept[0] != kept[1]
    return int(wrong)


def compare(args: argparse.Namespace) -> int:
    """Warm both trees up, run the rounds, and report."""
    files = sorted(args.folder.resolve().glob("*.jsonl"))
    megabytes = sum(f.stat().st_size for f in files) / 1e6
    shutil.rmtree(args.scratch, ignore_errors=True)
    given = (("base", args.base, args.base_python), ("new", args.new, args.new_python))
    trees = []
    for name, path, python in given:
        folder = args.scratch.resolve() / name
        folder.mkdir(parents=True)
        trees.append(Tree(name=name, path=path.resolve(), python=python, folder=folder, workers=args.workers))
        trees[-1].check()
    said = f"{megabytes:.1f} MB in {len(files)} files, {args.workers} workers, {os.cpu_count()} cores"
    print(f"{said}, load {os.getloadavg()[0]:.1f}; base {args.base}, new {args.new}", flush=True)
    best = Best()
    rounds(trees, warm_files(files, args.scratch.resolve() / "warm"), args, best, timed=False)
    print("warm", flush=True)
    rounds(trees, files, args, best, timed=True)
    shutil.rmtree(args.scratch)
    return report(best, megabytes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(dest="what", required=True)
    making = what.add_parser("make", help="write the input")
    making.add_argument("corpora", type=Path)
    making.add_argument("folder", type=Path)
    making.add_argument("--megabytes", type=float, default=400)
    timing = what.add_parser("time", help="time both trees on it")
    timing.add_argument("folder", type=Path)
    timing.add_argument("--base", type=Path, required=True, help="the source tree that the other is compared with")
    timing.add_argument("--new", type=Path, required=True)
    timing.add_argument("--base-python", type=Path, default=Path(sys.executable))
    timing.add_argument("--new-python", type=Path, default=Path(sys.executable))
    timing.add_argument("--tokenizers", nargs="+", required=True, metavar="NAME=FOLDER")
    timing.add_argument("--line-tokenizer", default="qwen2", help="the one of the part run")
    timing.add_argument("--parts", default=",".join(PARTS), help=f"of {','.join(PARTS)}")
    timing.add_argument("--rounds", type=int, default=3)
    timing.add_argument("--workers", type=int, default=2)
    timing.add_argument("--scratch", type=Path, default=Path("/tmp/datakit-house"), help="removed before and after")
    args = parser.parse_args()
    if args.what == "make":
        make(args.corpora, args.folder, args.megabytes)
        return 0
    args.tokenizers = {n: Path(p).resolve() for n, _, p in (t.partition("=") for t in args.tokenizers)}
    args.parts = args.parts.split(",")
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"no part is called {sorted(unknown)[0]}; there are {', '.join(PARTS)}")
    if args.line_tokenizer not in args.tokenizers:
        parser.error(f"--tokenizers does not name {args.line_tokenizer}, which --line-tokenizer asks for")
    return compare(args)


if __name__ == "__main__":
    sys.exit(main())
