"""Do the defaults help? Trains on what they keep and on what they do not, from packages of Debian and npm alone.

    python bench/curation.py OUT [--tokens 3M --seeds 5 --jobs 2] [--peer bench/peers/.venv-datatrove/bin/python]
    python bench/curation.py OUT --small        # a rehearsal of the whole in minutes
    python bench/curation.py OUT --arms         # the arms alone, for bench/evidence.py

`curation.txt` names the packages and their versions. The pool is documentation as it is found in the wild: pages with
their navigation, generated reference, handbooks and manuals in many languages, changelogs, licences in near copies,
READMEs. Held-out sets and the tokenizer's text are of other packages, chosen before anything is filtered; nothing is
tuned on them. A step whose result lies in OUT is not done again, and a killed comparison goes on.
"""

import argparse
import gzip
import hashlib
import json
import random
import re
import subprocess
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[0] = str(HERE.parent)  # not this folder, where `train` would be another file


MEGABYTES = {"html": 10.0, "reference": 8, "handbook": 10, "manual": 7, "changelog": 3, "licence": 1, "readme": 1}
"""Of the pool, by kind of document: 40 together. Other kinds stay out of it."""
NAMES = {"changelog": r"change|news|history", "licence": r"copyright|licen[cs]e|copying", "readme": r"readme|.*\.md$"}
"""What a document of a kind is called."""
NEUTRAL_MEGABYTES = 4.0
MAX_CHARS = 10_000
"""A longer document is cut there, so that no single one is a large part of a run's text."""
PASSAGES, PASSAGE_CHARS, OF_A_PAGE = 90, 1_200, 3
"""Of a held-out set: passages, their length, and at most so many of one page."""
PROSE_CHARS = 200
"""A paragraph of a held-out set of prose has so many characters or more."""
RECIPE = """[dataset]
kind = "text"
inputs = ["{out}/pool.jsonl"]
stages = {stages}
[tokenize]
tokenizer = "{out}/tokenizer/kept/tokenizer"
[pack]
seq_len = 256
"""
ENGLISH = '[language]\nlanguages = ["en"]\n'
ARMS: dict[str, tuple[tuple[str, ...], str]] = {
    "raw": ((), ""),
    "language": (("language",), ENGLISH),
    "dedup": (("dedup",), ""),
    "filter": (("filter",), ""),
    "filter-short": (("filter",), "[filter.gopher_quality]\nmin_words = 0\n"),
    "filter-symbols": (("filter",), "[filter.gopher_quality]\nmin_alpha_word_ratio = 0.0\n"),
    "english": (("language", "dedup", "filter"), ENGLISH),
    "all": (("language", "dedup", "filter"), ""),
}
"""Stages of each arm, and what its recipe changes. `all` has the defaults, which label languages and keep all of them;
`filter-short` and `filter-symbols` lack one limit each that removes many pages of this pool."""

# Packages.


def fetch(kind: str, package: str, folder: Path) -> Path:
    """The archive of a package, from its registry where it is not there yet."""
    name, _, version = package.rpartition("=" if kind == "deb" else "@")
    pattern = f"{name}_{version.replace(':', '%3a')}_*.deb"
    pattern = pattern if kind == "deb" else f"{name.lstrip('@').replace('/', '-')}-{version}.tgz"
    if not (found := list(folder.glob(pattern))):
        command = ["apt-get", "download"] if kind == "deb" else ["npm", "pack", "--silent"]
        subprocess.run([*command, package], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        found = list(folder.glob(pattern))
    return found[0]


def members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a package, with their paths in it."""
    command = ["dpkg-deb", "--fsys-tarfile"] if archive.suffix == ".deb" else ["gzip", "-dc"]
    with subprocess.Popen([*command, str(archive)], stdout=subprocess.PIPE) as process:
        stream = tarfile.open(fileobj=process.stdout, mode="r|")  # noqa: SIM115 (closed with the process)
        for member in stream:
            if member.isfile() and member.size < 5_000_000:
                yield member.name, stream.extractfile(member).read()


def kind_of(path: str) -> str:
    """The kind of a document by its path; empty for what is none."""
    name = path.lower().removesuffix(".gz").rpartition("/")[2]
    if "/man/" in path:
        return "manual"
    if name.endswith((".html", ".htm", ".xhtml")):
        return "html"
    by_name = (kind for kind, rule in NAMES.items() if re.match(rule, name))
    return "code" if name.endswith((".c", ".cpp")) else next(by_name, "")


def table() -> Iterator[tuple[str, str, str, str, str]]:
    for line in (HERE / "curation.txt").read_text().splitlines():
        if not line.startswith("#"):
            role, kind, registry, package, *paths = line.split(" ")
            yield role, kind, registry, package, "".join(paths)


# Texts.


class Page(HTMLParser):
    """The text of a page with all its navigation, as a simple script would take it; and its paragraphs."""

    BREAKS = re.compile("p|div|li|tr|h[1-5]|pre|br|dt|dd|table|ul|ol|section|nav|title|td")

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.parts, self.hidden, self.paragraphs, self.inside = list[str](), "", [""], False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.hidden = self.hidden or (tag if tag in ("script", "style") else "")
        if self.BREAKS.fullmatch(tag):
            self.parts.append("\n")
            self.inside = tag == "p"
            self.paragraphs.append("")

    def handle_endtag(self, tag: str) -> None:
        self.hidden = "" if tag == self.hidden else self.hidden
        self.inside = self.inside and not self.BREAKS.fullmatch(tag)

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(data)
            if self.inside:
                self.paragraphs[-1] += data

    def text(self, prose: bool) -> str:
        if prose:
            found = (re.sub(r"\s+", " ", p).strip() for p in self.paragraphs)
            return "\n".join(p for p in found if len(p) >= PROSE_CHARS)
        lines = (re.sub(r"[ \t]+", " ", line).strip() for line in "".join(self.parts).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def text_of(path: str, data: bytes, prose: bool = False) -> str:
    """The text of a document."""
    said = (gzip.decompress(data) if path.endswith(".gz") else data).decode("utf-8", "replace")
    if kind_of(path) == "manual":  # without requests, comments and changes of the font
        said = re.sub(r"\\f[A-Z]|\\&", "", re.sub(r"^[.'](\\\".*|[A-Z][A-Z] ?|[a-z]+.*)", "", said, flags=re.M))
        said = re.sub(r"\n{3,}", "\n\n", said.replace("\\-", "-")).strip()
    return Page(said).text(prose) if kind_of(path) == "html" else "" if prose else said


def documents(out: Path) -> dict[str, dict[str, list[tuple[str, bytes]]]]:
    """By role, by kind: the paths and bytes of documents, in an order that their paths decide."""
    found: dict[str, dict[str, list[tuple[str, bytes]]]] = defaultdict(lambda: defaultdict(list))
    (out / "packages").mkdir(parents=True, exist_ok=True)
    for role, kind, registry, package, paths in table():
        for path, data in members(fetch(registry, package, out / "packages")):
            # a package that has a kind counts for its pages or manuals alone
            own = kind_of(path)
            if own and re.search(paths, path) and (kind == "-" or own in ("html", "manual")):
                found[role][kind if own == "html" and kind != "-" else own].append((f"{package}/{path}", data))
    for kinds in found.values():
        for some in kinds.values():
            some.sort(key=lambda one: hashlib.sha256(one[0].encode()).digest())
    return found


def write(path: Path, rows: Sequence[dict[str, str]]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    size = sum(len(r["text"].encode()) for r in rows) / 1e6
    print(f"{path.name}: {len(rows):,} documents, {size:.2f} MB", flush=True)


def taken(some: list[tuple[str, bytes]], kind: str, megabytes: float) -> Iterator[dict[str, str]]:
    """The first documents of a kind, up to a size."""
    left = megabytes * 1e6
    for path, data in some:
        if left > 0 and len(text := text_of(path, data)[:MAX_CHARS].strip()) > 20:
            left -= len(text.encode())
            yield {"id": path.replace(" ", "_"), "kind": kind, "text": text}


def passages(some: list[tuple[str, bytes]], count: float, prose: bool) -> Iterator[dict[str, str]]:
    """Passages of documents, a few of each and in their order."""
    for path, data in some:
        text = text_of(path, data, prose)
        pieces = [text[i : i + PASSAGE_CHARS].strip() for i in range(0, len(text), PASSAGE_CHARS)]
        for piece in [p for p in pieces if len(p) > PASSAGE_CHARS // 2][:OF_A_PAGE]:
            if (count := count - 1) >= 0:
                yield {"id": path, "text": piece}


def build(out: Path, share: float) -> None:
    """The pool, the tokenizer and the held-out sets."""
    found = documents(out)
    pool = [row for kind, mb in MEGABYTES.items() for row in taken(found["pool"][kind], kind, mb * share)]
    for kind in MEGABYTES:
        print(f"  {kind}: {sum(row['kind'] == kind for row in pool):,}")
    for name in ("books", "prose", "reference"):
        kinds = found[name] if name == "reference" else {"html": found[name]["html"]}
        rows = [r for some in kinds.values() for r in passages(some, PASSAGES / len(kinds), name != "reference")]
        write(out / "held" / f"{name}.jsonl", rows)
    whole = sum(MEGABYTES.values())
    shares = {kind: PASSAGES * mb // whole for kind, mb in MEGABYTES.items()}
    wild = [row for kind, count in shares.items() for row in passages(found["wild"][kind], count, False)]
    write(out / "held" / "wild.jsonl", wild)
    kinds = found["tokenizer"]
    write(out / "neutral.jsonl", [r for k in kinds for r in taken(kinds[k], k, NEUTRAL_MEGABYTES / len(kinds))])
    random.Random(0).shuffle(pool)
    write(out / "pool.jsonl", pool)  # last: it says that all of them are there


# Arms and their comparison.


def python(*args: object) -> None:
    subprocess.run([sys.executable, "-m", *map(str, args)], check=True, cwd=HERE.parent)


def arms_of(out: Path, peer: str) -> dict[str, Path]:
    """The pack manifest of each arm, raw first and all last; what datatrove keeps is in OUT/peer."""
    python("datakit", "tokenizer", "train", out / "neutral.jsonl", "--kind", "text", "--vocab-size", 2048, "--output",
           out / "tokenizer", "--workers", 1)  # fmt: skip
    for name, (stages, more) in ARMS.items():
        path = out / "manifests" / name / "recipe.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(RECIPE.format(out=out, stages=json.dumps(["ingest", *stages, "tokenize", "pack"])) + more)
        python("datakit", "run", name, "--project", out, "--workers", 1)
    if peer and not (out / "peer" / "filter").is_dir():
        (out / "peer" / "raw").mkdir(parents=True, exist_ok=True)
        (out / "peer" / "raw" / "pool.jsonl").write_bytes((out / "pool.jsonl").read_bytes())
        from datakit.filter.language import find

        given = [out / "peer/raw", out / "peer", 1, out / "tokenizer/kept/tokenizer/tokenizer.json", find("lid.176")]
        subprocess.run([peer, str(HERE / "peers/line_datatrove.py"), *map(str, given)], check=True)
    return {name: out / "manifests" / name / "pack.json" for name in ARMS}


def main() -> None:
    text = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=text, allow_abbrev=False)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tokens", default="3M")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--peer", default="", help="a python with datatrove")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--arms", action="store_true")
    asked, options = parser.parse_known_args()  # others are options of train.compare, as --no-rates
    out = asked.out.resolve()
    if not (out / "pool.jsonl").is_file():
        build(out, 0.1 if asked.small else 1.0)
    arms = arms_of(out, asked.peer)
    if asked.arms:
        return
    tokens, seeds = ("30k", 1) if asked.small else (asked.tokens, asked.seeds)
    options += ["--aa", "0", "--no-rates"] if asked.small else []
    named = [f"{name}={path}" for name, path in arms.items()]
    held = [f"{name}={out / 'held' / name}.jsonl" for name in ("prose", "books", "reference", "wild")]
    given = ["--tokens", tokens, "--seeds", seeds, "--jobs", asked.jobs, "--out", out / "compare", *options]
    python("train.compare", "--arms", *named, "--heldout", *held, "--preset", "tiny", "--primary", "all:prose", *given)


if __name__ == "__main__":
    main()
