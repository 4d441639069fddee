"""The evidence for the defaults, in steps: prepared on one machine, performed on another, told on the first.

    python bench/evidence.py prepare OUT BUNDLE              # OUT: what bench/curation.py made
    python bench/evidence.py attempt BUNDLE                  # twenty steps of each size: does the machine do it?
    python bench/evidence.py perform BUNDLE RUNS --jobs 15   # RUNS: a folder
    python bench/evidence.py tell BUNDLE RUNS                # tables, pages, pictures, calibration and power, into RUNS

The second machine needs torch and this checkout, not the factory's other dependencies. `runs.jsonl` has a line
for each finished run, so a time limit loses nothing: the most important runs come first, and `tell` takes the seeds
that all arms of a part have.
"""

import argparse
import gzip
import inspect
import itertools
import json
import logging
import lzma
import os
import pickle
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, where `train` would be another file
import numpy as np  # noqa: E402
import torch.nn.attention.varlen as varlen  # noqa: E402

from datakit.errors import DatakitError  # noqa: E402
from datakit.pack.chat import ChatTokenizer  # noqa: E402
from train import compare  # noqa: E402
from train.attention import ATTENTIONS  # noqa: E402
from train.compare import Arm, CompareConfig, HeldOut, Run  # noqa: E402

Row = dict[str, Any]
SETS = ("prose", "books", "reference", "wild", "copies")
MAIN = ("raw", "language", "dedup", "filter", "filter-short", "filter-symbols", "english", "all")
PARTS: dict[str, tuple[tuple[str, ...], Row]] = {
    "main": (MAIN, {"tokens": "3M", "seeds": 8, "aa": 8}),
    "calibration": (("raw",), {"tokens": "1M", "seeds": 20}),
    "power": (("raw", "shuffled-5%", "shuffled-20%", "permuted"), {"tokens": "3M", "seeds": 8}),
    "peer": (("raw", "language", "english", "datatrove"), {"tokens": "1.2M", "seeds": 8}),
    "26m": (("raw", "all"), {"tokens": "3M", "seeds": 5, "preset": "26m"}),
    "6M": (("raw", "dedup", "filter", "all"), {"tokens": "6M", "seeds": 5}),
    "rates": (("raw", "all"), {"tokens": "3M", "seeds": 2, "rates": True}),
    "again": (MAIN, {"tokens": "3M", "seeds": 16}),
}
"""Arms and options of each part, the most important first; runs that an earlier part has are made once. The seeds from
8 on of `again` are fresh: a change that the first ones suggest is measured on them."""
VIEWS: dict[str, tuple[str, tuple[str, ...]]] = {
    "evidence": ("main", ("raw", "all")),
    "defaults": ("main", ("raw", "language", "dedup", "filter", "english", "all")),
    "within-english": ("main", ("language", "english")),
    "peer": ("peer", ("raw", "language", "datatrove", "english")),
    "peer-alone": ("peer", ("datatrove", "english")),
    "limits": ("main", ("filter", "filter-short", "filter-symbols")),
    "limits-again": ("again", ("filter", "filter-short", "filter-symbols")),
    "defaults-again": ("again", ("raw", "language", "dedup", "filter", "english", "all")),
    "power": ("power", ("raw", "permuted", "shuffled-5%", "shuffled-20%")),
    "26m": ("26m", ("raw", "all")),
    "6M": ("6M", ("raw", "dedup", "filter", "all")),
    "rates": ("rates", ("raw", "all")),
}
"""Comparisons that are told: the part, and its arms, the one to compare with first and that of the primary last."""
COPIES, COPY_CHARS = 80, 1_200
"""Held-out passages of documents that have copies in training: of clusters of three near duplicates or more."""

if "enable_gqa" not in inspect.signature(varlen.varlen_attn).parameters:  # torch before 2.13: repeat keys and values
    older = varlen.varlen_attn

    def varlen_attn(q: Any, k: Any, v: Any, *rest: Any, enable_gqa: bool = False, **more: Any) -> Any:
        k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
        return older(q, k, v, *rest, **more)

    varlen.varlen_attn = varlen_attn
if os.environ.get("ATTENTION"):  # here, since the processes of runs import this file
    ATTENTIONS["auto"] = ATTENTIONS[os.environ["ATTENTION"]]


class Kept(Run):
    """A run whose failure is a result, so that the others go on."""

    def result(self) -> Row:
        try:
            return super().result()
        except DatakitError as e:
            return {"arm": self.arm, "seed": self.seed, "kind": self.kind, "failed": str(e)}


@dataclass(frozen=True, slots=True)
class Bundle:
    """All that runs need. Arms have no rows, only documents, which are shared where they are equal."""

    arms: dict[str, Arm]
    clusters: list[list[str]]
    held: list[HeldOut]
    start_id: int

    @classmethod
    def load(cls, path: Path) -> "Bundle":
        with lzma.open(path) as f:
            return cls(*pickle.load(f))

    def runs(self, part: str) -> Iterator[Run]:
        """The runs of a part; the arm `permuted` is `raw` with its rows in another order."""
        names, options = PARTS[part]
        arms = [self.arms[name] for name in names if name in self.arms]
        for run in compare.plan(config_of(names, options), arms, self.clusters, self.held, self.start_id):
            data = replace(run.data, version="1") if run.arm == "permuted" else run.data
            yield Kept(**{f.name: getattr(run, f.name) for f in fields(run)} | {"data": data})


def config_of(names: Sequence[str], options: Row) -> CompareConfig:
    """A part's configuration; files were read when the bundle was made."""
    two = names if len(names) > 1 else (*names, "nothing")
    given = {"arms": tuple(f"{n}=-" for n in two), "heldout": tuple(f"{n}=-" for n in SETS)}
    return CompareConfig(**given, **{"aa": 0, "rates": False} | options)


def prepare(out: Path, target: Path) -> None:
    """The bundle of what bench/curation.py left in a folder."""
    paths = {p.parent.name: p for p in (out / "manifests").glob("*/pack.json") if p.parent.name in MAIN}
    named = tuple(f"{n}={paths[n]}" for n in MAIN if n in paths)
    config = CompareConfig(arms=named, heldout=tuple(f"{n}={out / 'held' / n}.jsonl" for n in SETS[:-1]))
    arms = {arm.name: arm for arm in compare.open_arms(config)}
    raw = arms["raw"]
    tokenizer = ChatTokenizer.load(raw.data.tokenizer_files[0].parent)
    start_id = tokenizer.bos_id if tokenizer.bos_id is not None else raw.data.header.eos_id

    def made(name: str, docs: dict[str, np.ndarray]) -> Arm:
        return replace(raw, name=name, docs=docs)

    def like(text: str, other: np.ndarray) -> np.ndarray:
        """The ids of a text, ended as another document is."""
        ids = tokenizer.encode_text(text)
        return np.array([*ids, *other[-1:][other[-1:] == raw.data.header.eos_id]], np.uint16)

    def text_of(ids: np.ndarray) -> str:
        return tokenizer.encoder.decode(ids.tolist())

    if (peer := out / "peer" / "filter").is_dir():
        rows = [json.loads(line)["id"] for line in (out / "pool.jsonl").read_text().splitlines()]
        prefix = next(iter(raw.docs)).partition(":")[0]
        number = {name: f"{prefix}:{i}" for i, name in reversed([*enumerate(rows)])}
        lines = [line for p in sorted(peer.glob("*.gz")) for line in gzip.decompress(p.read_bytes()).splitlines()]
        kept = {number[row["id"]]: row["text"] for row in map(json.loads, lines)}
        arms["datatrove"] = made("datatrove", {n: like(t, raw.docs[n]) for n, t in kept.items() if n in raw.docs})
    clusters, held = compare.prepare(config, [*arms.values()], tokenizer)
    names = {name: name for name in raw.docs}
    clusters = [[names.get(name, name) for name in cluster] for cluster in clusters]
    # a copy that dedup dropped, so that its arms have the one that it kept
    copies = [[n for n in c if n in raw.docs and n not in arms["dedup"].docs] for c in clusters if len(c) > 2]
    copies = [c for c in copies if c]
    chosen = [c[-1] for c in random.Random(0).sample(copies, min(COPIES, len(copies)))]
    texts = [text_of(raw.docs[name])[:COPY_CHARS] for name in chosen]
    ids = [np.array(tokenizer.encode_text(text), np.int64) for text in texts]
    held.append(HeldOut("copies", ids, np.array([len(t.encode()) for t in texts], np.int64), 0))
    shared = {name: ids.astype(np.uint16) for name, ids in raw.docs.items()}
    arrays = ("ids", "segments", "segment_index", "sources")
    empty = {name: getattr(raw.data.packed, name)[:0].copy() for name in arrays}
    nothing = replace(raw.data.packed, **empty)
    for name, arm in arms.items():
        docs = {names[n]: shared[n] if np.array_equal(ids, shared[n]) else ids.astype(np.uint16)
                for n, ids in arm.docs.items() if n not in chosen}  # fmt: skip
        arms[name] = Arm(name, replace(arm.data, packed=nothing), docs)
    raw = arms["raw"]
    for percent in (5, 20):
        docs = dict(raw.docs)
        for name in (n for n in docs if random.Random(n).random() < percent / 100):
            words = text_of(docs[name]).split()
            random.Random(name).shuffle(words)
            docs[name] = like(" ".join(words), docs[name])
        arms[f"shuffled-{percent}%"] = made(f"shuffled-{percent}%", docs)
    arms["permuted"] = made("permuted", raw.docs)
    for arm in arms.values():
        print(f"{arm.name}: {len(arm.docs):,} documents, {arm.tokens:,} tokens")
    for h in held:
        print(f"{h.name}: {len(h.ids)} documents, {sum(map(len, h.ids)):,} tokens, {h.removed} removed as overlap")
    target.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(target, "wb", preset=4) as f:
        pickle.dump((arms, clusters, held, start_id), f)


def attempt(bundle: Bundle, presets: Sequence[str]) -> None:
    """Train twenty steps of each size and score them, with the seconds."""
    for preset in presets:
        config = config_of(("raw", "all"), {"tokens": "42k", "seeds": 1, "preset": preset})
        run = next(compare.plan(config, [bundle.arms["raw"]], bundle.clusters, bundle.held, bundle.start_id))
        begin = time.perf_counter()
        bits = run.result()["bits"]["prose"]
        print(f"{preset}: {time.perf_counter() - begin:.1f} s, {sum(bits):.0f} bits of prose", flush=True)


def perform(bundle: Bundle, folder: Path, jobs: int) -> None:
    """Make the runs that are not there yet; `plan.json` says which line of runs.jsonl is which run."""
    folder.mkdir(parents=True, exist_ok=True)
    named = list[list[Any]]()
    first, last = [*PARTS][:-1], [*PARTS][-1:]
    for parts in (first, last):  # the draws of the last part take seconds for which the others need not wait
        found = dict[str, Run]()
        for part, run in ((name, run) for name in parts for run in bundle.runs(name)):
            key = run.key
            named.append([part, run.arm, run.seed, run.kind, key])
            found.setdefault(key, run)
        (folder / "plan.json").write_text(json.dumps(named))
        compare.perform([*found.values()], folder / "runs.jsonl", jobs)


def results_of(folder: Path) -> dict[str, dict[tuple[str, int, str], Row]]:
    """By part: the result of each finished run, by arm, seed and kind."""
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines() if line.endswith("}")]
    by_key = {line["key"]: line["result"] for line in lines}
    found: dict[str, dict[tuple[str, int, str], Row]] = {part: {} for part in PARTS}
    for part, arm, seed, kind, key in json.loads((folder / "plan.json").read_text()):
        if "bits" in by_key.get(key, {}):
            found[part][arm, seed, kind] = by_key[key]
    return found


def seeds_of(found: dict[tuple[str, int, str], Row], arms: Sequence[str], first: int = 0) -> int:
    """How many seeds in turn, from `first` on, all of the arms have."""
    return next(n for n in itertools.count() if any((arm, first + n, "main") not in found for arm in arms))


def tell(bundle: Bundle, folder: Path) -> None:
    """Tables, pages and figures of all views that have runs, and what calibration says."""
    results, lines = results_of(folder), list[str]()
    for view, (part, names) in VIEWS.items():
        first = 8 if view.endswith("-again") else 0
        rows = results[part].items()
        own = {(arm, seed - first, kind): row | {"seed": seed - first} for (arm, seed, kind), row in rows}
        arms = [replace(bundle.arms[name], name=name) for name in names if (name, 0, "main") in own]
        if len(arms) < 2 or not (seeds := seeds_of(own, [arm.name for arm in arms])):
            continue
        aa = next(n for n in itertools.count() if (arms[0].name, n, "aa") not in own) if not first else 0
        options = PARTS[part][1] | {"seeds": seeds, "aa": aa}
        complete = all((a.name, s, k) in own for a in (arms[0], arms[-1]) for s in (0, 1) for k in ("x0.333", "x3"))
        config = config_of([arm.name for arm in arms], options | {"rates": complete})
        run = next(bundle.runs(part))
        summary = compare.summary(config, arms, bundle.held, [run], [*own.values()])
        (folder / f"{view}.json").write_text(json.dumps(summary, indent=1) + "\n")
        (folder / f"{view}.html").write_text(compare.page(summary))
        (folder / f"{view}.svg").write_text(compare.differences(summary) + "\n")
        lines += [f"# {view}: {seeds} seeds", compare.table(summary), "", markdown(summary), ""]
    lines += calibration(bundle, results["calibration"])
    (folder / "told.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def markdown(summary: Row) -> str:
    """A table of arms by held-out sets: bits per byte, and the difference to the first arm with its interval."""
    sets = summary["sets"]
    lines = ["| arm | " + " | ".join(s["name"] for s in sets) + " |", "| --- |" + " --- |" * len(sets)]
    for name in summary["holds_for"]["arms"]:
        cells = list[str]()
        for s in sets:
            row = s["arms"][name]
            one = row.get("difference")
            half = "" if not one or one["interval"] is None else f" ± {one['interval'][1] - one['mean']:.4f}"
            weak = "" if row["past_local"] else " (4-gram)"
            cells.append((f"{one['mean']:+.4f}{half}" if one else f"{row['mean']:.4f}") + weak)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def calibration(bundle: Bundle, found: dict[tuple[str, int, str], Row]) -> Iterator[str]:
    """Of 100 resampled A/A comparisons of five pairs, how many intervals contain zero."""
    rows, rng = [row for (_, _, kind), row in sorted(found.items()) if kind == "main"], np.random.default_rng(0)
    for h in bundle.held if len(rows) > 9 else ():
        bits = np.array([sum(row["bits"][h.name]) for row in rows]) / h.bytes.sum()
        pairs = [bits[rng.permutation(len(bits))[:10]].reshape(2, 5) for _ in range(100)]
        intervals = [compare.paired((a - b).tolist())["interval"] for a, b in pairs]
        zero = sum(a <= 0 <= b for a, b in intervals)
        yield f"A/A on {h.name}: {zero} of 100 intervals contain zero; {len(rows)} runs, sd {bits.std(ddof=1):.4f}"


def main() -> None:
    text = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=text, allow_abbrev=False)
    parser.add_argument("what", choices=("prepare", "attempt", "perform", "tell"))
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--tokens", default="", help="of every run, for a rehearsal")
    parser.add_argument("--presets", nargs="+", default=["tiny", "26m"], help="that `attempt` tries")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(relativeCreated)d ms %(message)s")
    if asked.what == "prepare":
        return prepare(asked.paths[0].resolve(), asked.paths[1])
    for _, options in PARTS.values():
        options |= {"tokens": asked.tokens} if asked.tokens else {}
    bundle = Bundle.load(asked.paths[0])
    if asked.what == "attempt":
        return attempt(bundle, asked.presets)
    return perform(bundle, asked.paths[1], asked.jobs) if asked.what == "perform" else tell(bundle, asked.paths[1])


if __name__ == "__main__":
    main()
