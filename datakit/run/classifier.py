"""Runs the training of a classifier: rows of both sides from files or manifests, a model, its manifest."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from os.path import relpath
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from datakit.config import resolved
from datakit.errors import InputError, UsageError
from datakit.filter import fasttext_model
from datakit.filter.classifier import POSITIVE, Quality, TrainConfig, held_out, quality, train, write_examples
from datakit.manifest import Count, Ledger, Shard, data_dir, load
from datakit.read.files import open_binary
from datakit.read.planning import Plan, plan, read_unit, units
from datakit.read.stage import IngestConfig
from datakit.engine.runner import Job, Run, tables
from datakit.engine.lineage import RawHashes, parent_entry
from datakit.engine.store import Result
from datakit.data import view
from datakit.engine.store import entry, read_shard

STAGE: Final = "classifier"
MODEL: Final = "kept/model.bin"


@dataclass(frozen=True, kw_only=True, slots=True)
class Examples:
    """What a classifier learns from: two sides, or rows and a score for each."""

    positive: tuple[str, ...] = ()
    """Files, folders, globs, or one manifest."""
    negative: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    scores: str = ""
    """JSON lines with `id` and `score`, of `rows`."""
    min_score: float = 0.5
    """Rows with this score and more are positive."""

    def __post_init__(self) -> None:
        if bool(self.scores) == bool(self.positive or self.negative) or bool(self.scores) != bool(self.rows):
            raise UsageError("give --positive and --negative, or input files and --scores for their rows")
        if not self.scores and not (self.positive and self.negative):
            raise UsageError("a classifier needs both sides: --positive and --negative")


def train_classifier(run: Run, examples: Examples, config: TrainConfig) -> Path:
    """Train a classifier; returns its manifest, which the classify stage takes as its model.

    Raises:
        InputError: no rows on a side, no row that a score is for, or a line of scores that is none.
        ModelError: training failed.
    """
    sides = [_Side(i) for i in (examples.positive, examples.negative, examples.rows) if i]
    scores = _scores(Path(examples.scores)) if examples.scores else None
    job = _job(run, examples, config, sides)
    if job.current():
        return job.manifest
    with job.work() as work:

        def make(_: int, __: Any) -> Result:
            return _make(job, sides, scores, examples.min_score, config, work.folder)

        (result,) = work.phase("train", make, [(0, None)], title=STAGE, units=1)
        counts, total = result["facts"]["rows"], result["rows"]
        dropped = {"no_score": total - sum(counts.values())} if total > sum(counts.values()) else {}
        rows = Count(into=total, kept=sum(counts.values()), dropped=dropped)
        shards = [Shard(**s) for s in result["shards"]]
        return job.close(work, ledger=Ledger(rows), shards=shards, facts={"classifier": result["facts"]})


class _Side:
    """The rows of some inputs: a manifest's kept ones, or raw files read as ingest reads them."""

    def __init__(self, inputs: Sequence[str]) -> None:
        first = Path(inputs[0])
        self.manifest = load(first) if len(inputs) == 1 and _is_manifest(first) else None
        self.path = first
        self.plan: Plan | None = None if self.manifest else plan(inputs, IngestConfig(other_kinds="quarantine"))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, in their order."""
        if self.manifest is not None:
            for shard in tables(self.manifest, "kept"):
                yield from read_shard(data_dir(self.path, self.manifest) / shard.path)
        else:
            assert self.plan is not None
            for unit in units(self.plan):
                yield from (batch.rows for batch in read_unit(unit, self.plan))

    def parents(self, hashes: RawHashes, target: Path) -> tuple[list[dict[str, Any]], dict[str, dict[str, str]]]:
        """How the model's manifest names them, and where they lie."""
        if self.manifest is not None:
            lay = {"parents": {self.manifest.version: relpath(self.path, target)}}
            return [parent_entry(self.path, self.manifest)], lay
        assert self.plan is not None
        remote = [f.name for f in self.plan.files if not f.is_local]
        if remote:
            raise UsageError(f"{remote[0]}: is remote; ingest it first, and give its manifest")
        raw = {f.name: f.path for f in self.plan.files}
        entries = [{"raw": f.name, "bytes": f.bytes, "sha256": hashes.of(Path(f.path))} for f in self.plan.files]
        return entries, {"raw": {name: relpath(path, target) for name, path in raw.items()}}


def _is_manifest(path: Path) -> bool:
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open("rb") as f:
        head = f.read(4096)
    return head.startswith(b"{\n ") and b'"code": "' in head


def _job(run: Run, examples: Examples, config: TrainConfig, sides: Sequence[_Side]) -> Job:
    hashes, target = RawHashes(), run.place.manifest(STAGE).parent
    parents: list[dict[str, Any]] = []
    lay: dict[str, dict[str, str]] = {"parents": {}, "raw": {}}
    for side in sides:
        entries, places = side.parents(hashes, target)
        parents += entries
        for kind, found in places.items():
            lay[kind] |= found
    if examples.scores:
        path = Path(examples.scores)
        parents.append({"raw": path.name, "bytes": path.stat().st_size, "sha256": hashes.of(path)})
        lay["raw"][path.name] = relpath(path, target)
    hashes.save()
    names = [e.get("raw") for e in parents if "raw" in e]
    if len(set(names)) != len(names):
        raise UsageError(f"two files of the examples have the name {next(n for n in names if names.count(n) > 1)!r}")
    settled = resolved(config) | ({"min_score": examples.min_score} if examples.scores else {})
    return Job(run=run, stage=STAGE, kind="model", config=settled, parents=tuple(parents), lay=lay)


def _make(
    job: Job,
    sides: Sequence[_Side],
    scores: Mapping[str, float] | None,
    min_score: float,
    config: TrainConfig,
    folder: Path,
) -> Result:
    """Write the examples, train, measure."""
    lines, total, counts = folder / "examples.txt", 0, {"positive": 0, "negative": 0}
    dev: list[tuple[pa.Array, NDArray[np.bool_]]] = []
    with lines.open("w", encoding="utf-8") as out:
        for batch, positive in _labelled(sides, scores, min_score):
            total += batch.num_rows
            known = positive >= 0
            batch, wanted = batch.filter(pa.array(known)), positive[known] == 1
            counts["positive"] += int(wanted.sum())
            counts["negative"] += int((~wanted).sum())
            out_of, texts = held_out(batch.column("content_hash"), config), view(batch)
            dev.append((texts.filter(pa.array(out_of)), wanted[out_of]))
            write_examples(texts.filter(pa.array(~out_of)), wanted[~out_of], config, out)
    for side, count in counts.items():
        if not count:
            raise InputError(f"the classifier has no {side} rows to learn from, of {total} rows: {counts}")
    aside = folder / "model.bin"
    train(lines, aside, config)
    facts = {"labels": ["positive", "negative"], "rows": counts, "dev": _measure(aside, dev).to_json()}
    (job.data / MODEL).parent.mkdir(parents=True, exist_ok=True)
    aside.replace(job.data / MODEL)
    lines.unlink()
    shard = entry(job.data, MODEL)
    return {"shards": [asdict(shard)], "files": [[shard.path, shard.bytes]], "rows": total, "facts": facts}


def _labelled(
    sides: Sequence[_Side], scores: Mapping[str, float] | None, min_score: float
) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int8]]]:
    """Batches, and for each row 1 positive, 0 negative, -1 unknown."""
    if scores is None:
        for wanted, side in zip((1, 0), sides, strict=True):
            for batch in side.batches():
                yield batch, np.full(batch.num_rows, wanted, np.int8)
        return
    for batch in itertools.chain.from_iterable(side.batches() for side in sides):
        found = [scores.get(i) for i in batch.column("id").to_pylist()]
        yield batch, np.array([-1 if s is None else int(s >= min_score) for s in found], np.int8)


def _measure(model: Path, dev: Sequence[tuple[pa.Array, NDArray[np.bool_]]]) -> Quality:
    """The model on the rows that were held out, each read whole, as the classify stage reads it."""
    loaded = fasttext_model.read(model)
    scored = [loaded.probability(texts, POSITIVE) for texts, _ in dev]
    empty = np.empty(0, np.float32)
    return quality(
        np.minimum(np.concatenate([empty, *scored]).astype(np.float64), 1.0).round(3),
        np.concatenate([np.empty(0, np.bool_), *(positive for _, positive in dev)]),
    )


def _scores(path: Path) -> dict[str, float]:
    """The scores of a file of JSON lines, by row id.

    Raises:
        InputError: the file is missing, or a line holds no id and number.
    """
    found: dict[str, float] = {}
    try:
        with open_binary(str(path)) as file:
            data = file.read()
    except OSError as e:
        raise InputError(f"{path}: cannot read the scores: {e}") from None
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            value = orjson.loads(line) if line.strip() else None
            if value is not None:
                found[str(value["id"])] = float(value["score"])
        except (ValueError, TypeError, KeyError):
            raise InputError(
                f'{path}, line {number}: expected an id and a number, as {{"id": "a.jsonl:7", "score": 0.8}}, '
                f"found {line[:80].decode(errors='replace')}"
            ) from None
    return found
