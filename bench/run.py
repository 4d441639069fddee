"""`make bench`: every side-by-side comparison, one after another, on the corpora beside the repository.

    python bench/run.py [NAME...] [--shared FOLDER]     # NAME: dedup, recall, filters, language, line, ...

Peers get environments of their own, bench/peers/.venv-NAME, from the pinned requirements; they are made once.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

NODEJS = ["web/nodejs_v12_35_locales.jsonl.zst", "web/nodejs_13_versions_en.jsonl.zst"]
CUT = ["--cut", "3000", "--first", "6668"]
"""20,004 documents of the three files, 58 MB."""
BOOKS = "web/classic_books_en.parquet"
ENGLISH = ["web/rust_book_en.jsonl.zst", "web/electron_8_langs.jsonl.zst"]
DEDUP_PEERS = {"--peer": "datatrove", "--memory-peer": "inmemory", "--daft": "daft"}
COMPARISONS: dict[str, tuple[str, list[str], list[str], dict[str, str]]] = {
    "dedup": ("dedup.py", ["command", *CUT], [*NODEJS, BOOKS], DEDUP_PEERS),
    "recall": ("dedup_recall.py", [], [NODEJS[1], "neardup/nodejs_versions_pairs.jsonl.zst"], {}),
    "kernel": ("dedup.py", ["kernel", *CUT], [*NODEJS, BOOKS], {"--memory-peer": "inmemory"}),
    "filters": ("filters.py", [], ENGLISH, {"--peer": "datatrove"}),
    "language": ("language.py", ["speed"], ["web"], {}),
    "line": ("line.py", ["--megabytes", "8", "../tokenizers/smollm"], [*NODEJS, *ENGLISH], {"--peer": "datatrove"}),
    "loader": ("loader.py", ["../tokenizers/smollm"], [*NODEJS, *ENGLISH], {"--peer": "loader"}),
    "tokenize": ("encode.py", ["../tokenizers/smollm", "--corpora"], ENGLISH, {}),
}
"""By name: script, its first arguments, its corpora, flags that take the python of a peers' environment, and which."""


def peer_python(name: str) -> str:
    """The interpreter of a peers' environment, made where it is missing."""
    folder = HERE / "peers" / f".venv-{name}"
    python = str(folder / "bin" / "python")
    if not (folder / "bin" / "made").exists():
        print(f"making an environment for {name} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pinned = HERE / "peers" / f"requirements-{name}.txt"
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", str(pinned)], check=True)
        (folder / "bin" / "made").touch()
    return python


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(COMPARISONS)}; all by default")
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("DATAKIT_SHARED", "../shared")))
    asked = parser.parse_args()
    unknown = set(asked.names) - COMPARISONS.keys()
    if unknown:
        parser.error(f"no comparison is called {sorted(unknown)[0]}; there are {', '.join(COMPARISONS)}")
    corpora = asked.shared / "corpora"
    if not corpora.is_dir():
        print(f"the corpora are not at {corpora}: name their folder with --shared, or DATAKIT_SHARED", file=sys.stderr)
        return 1
    failed = 0
    for name in asked.names or COMPARISONS:
        script, first, files, peers = COMPARISONS[name]
        places = [str(corpora / f) if f.startswith("../") else f for f in first]
        call = [sys.executable, str(HERE / script), *places, *(str(corpora / f) for f in files)]
        call += [word for flag, peer in peers.items() for word in (flag, peer_python(peer))]
        print(f"\n== {name}", flush=True)
        failed |= subprocess.run(call, env=os.environ | {"DATAKIT_SHARED": str(asked.shared)}, check=False).returncode
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
