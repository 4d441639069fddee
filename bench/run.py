"""`make bench`: every side-by-side comparison, one after another, on the corpora beside the repository.

    python bench/run.py [NAME...] [--shared FOLDER]     # NAME: dedup, recall, filters, language, line, tokenize

Peers get an environment of their own, bench/peers/.venv, from the pinned requirements; it is made once.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEER = HERE / "peers" / ".venv" / "bin" / "python"

NODEJS = ["web/nodejs_v12_35_locales.jsonl.zst", "web/nodejs_13_versions_en.jsonl.zst"]
ENGLISH = ["web/rust_book_en.jsonl.zst", "web/electron_8_langs.jsonl.zst"]
COMPARISONS: dict[str, tuple[str, list[str], list[str], bool]] = {
    "dedup": ("dedup.py", ["command"], NODEJS, True),
    "recall": ("dedup.py", ["recall"], [NODEJS[1], "neardup/nodejs_versions_pairs.jsonl.zst"], False),
    "kernel": ("dedup.py", ["kernel"], NODEJS, False),
    "filters": ("filters.py", [], ENGLISH, True),
    "language": ("language.py", ["speed"], ["web"], False),
    "line": ("line.py", ["--megabytes", "8", "../tokenizers/smollm"], [*NODEJS, *ENGLISH], True),
    "tokenize": ("bpe.py", ["../tokenizers/smollm", "--corpora"], ENGLISH, False),
}
"""By name: script, its first arguments, its corpora, whether it needs the peers' environment."""


def peer_python() -> str:
    """The interpreter of the peers' environment, made where it is missing."""
    if not PEER.exists():
        print("making an environment for the peers ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(PEER.parents[1])], check=True)
        pinned = HERE / "peers" / "requirements-datatrove.txt"
        subprocess.run([str(PEER), "-m", "pip", "install", "--quiet", "-r", str(pinned)], check=True)
    return str(PEER)


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
        script, first, files, needs_peer = COMPARISONS[name]
        places = [str(corpora / f) if f.startswith("../") else f for f in first]
        call = [sys.executable, str(HERE / script), *places, *(str(corpora / f) for f in files)]
        call += ["--peer", peer_python()] if needs_peer else []
        print(f"\n== {name}", flush=True)
        failed |= subprocess.run(call, env=os.environ | {"DATAKIT_SHARED": str(asked.shared)}, check=False).returncode
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
