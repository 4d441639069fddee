"""Forecast: what a full run of a recipe takes in time, memory and disk and what each stage drops, from a sample.

**Which rows.** Duplicates cannot be counted in a sample of single rows: of two equal rows, a sample of 1% holds both
once in 10,000 times, and no estimator repairs that (Charikar, Chaudhuri, Motwani and Narasayya, "Towards estimation
error guarantees for distinct values", 2000). So all raw files are read once, and a row is taken if the hash of its key
is small. The key is the least hash of its shingles of five words, a MinHash (Broder, 1997). Equal rows have one key:
they are taken all or none. Two rows of Jaccard similarity J have one key with probability J, so a near duplicate whose
similarity to its survivor is J counts 1/J times (Horvitz and Thompson, 1952). What compares something else (URLs,
lines, meaning) drops a share that grows with the sample: it lies between the share of the sample and the straight line
through two samples.

**Intervals** are plain bootstrap intervals at 99.9% (Efron, 1979) over 256 blocks of keys: rows that are taken together
are in one block.

**Time, memory and disk.** The real stages run on the sample and on an eighth of its rows, each in a fresh process and a
temporary project. A line through both tells the costs of a start (imports, models, kernels) from those of a megabyte of
values. Ingest is timed on as many first records of the raw files, since it reads rows that the sample leaves out.
"""

import multiprocessing
import resource
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import at_least, option, shares
from datakit.data import first_rows, splitmix64, view
from datakit.engine.executors import Local, Progress, all_cores
from datakit.engine.plan import Flow
from datakit.engine.recipe import Recipe, stage_class
from datakit.engine.runner import Run, run_stage
from datakit.engine.store import OutputLayout, UnitWriter
from datakit.errors import UsageError
from datakit.manifest import Shard, data_dir, load, load_run, save
from datakit.read.stage import Ingest
from datakit.report.finder import batches
from datakit.report.tables import lines_of, share
from datakit.stage import Parent, RawBatch

SHINGLE_WORDS = 5
SMALLER = 8
"""The second run has so many times fewer rows."""
LEAST_BYTES = 32 << 20
"""Of the raw files (uncompressed) in the sample: less is lost in the costs of a start."""
MOST_SHARE = 0.5
BLOCKS, REPLICATES = 256, 2000
TAIL = 0.0005
"""Of each end of an interval: 99.9%, so that some tens of intervals hold together."""
UNSEEN = 7.6
"""Rows that may be lost in the sample for a reason that it does not show: exp(-7.6) is `TAIL`."""
LEAST_SIMILARITY = 0.05
FLAT_BYTES = 1 << 30
"""From so many bytes of values on, memory does not grow: shards are worked on one after the other."""

Shares = npt.NDArray[np.float64]
"""float64 (1 + REPLICATES,): a number of the whole sample, then of each replicate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ForecastConfig:
    """How large the sample is."""

    share: float = option(0.01, "share of the rows in the sample, at least; small inputs need more, see --rows")
    rows: int = option(10_000, "rows in the sample, at least, as far as half of the input goes")
    seed: int = option(1, "seed of the sample")
    workers: int = option(0, "workers of the run that is forecast; 0: all cores")

    def __post_init__(self) -> None:
        shares(self, "share")
        at_least(self, 0, "rows", "workers")


# The sample.


def sample_keys(rows: pa.RecordBatch, seed: int) -> npt.NDArray[np.uint64]:
    """uint64 (rows,): evenly spread keys, equal for equal texts, and with probability J for rows of similarity J."""
    from datakit.dedup.minhash import shingle_sets
    from datakit.text.words import compose, hash_values, normalize

    if "input_ids" in rows.schema.names:
        return splitmix64(hash_values(rows.column("content_hash").cast(pa.string())) + np.uint64(seed))
    texts = compose(view(rows, "all", include_system=True, include_calls=True))
    found, keys = shingle_sets(texts, SHINGLE_WORDS, np.uint64), hash_values(normalize(texts))
    some = np.flatnonzero(np.diff(found.starts))
    if len(some):
        keys[some] = np.minimum.reduceat(splitmix64(found.hashes + np.uint64(seed)), found.starts[some])
    return splitmix64(keys + np.uint64(seed + 1))


@dataclass(frozen=True)
class SampledIngest(Ingest):
    """Ingest of the rows whose keys are among `rate` of all keys; the notes count all rows that were read."""

    rate: float = 1.0
    seed: int = 1

    def size(self) -> tuple[int, float]:
        """(about how many bytes the raw files have, uncompressed; records in a byte, from the first unit)."""
        size = sum(f.text_bytes for f in self._plan.files)
        first = next((unit for group in self.raw_groups() for unit in self.raw_units(group)), ())
        rows = sum(batch.rows.num_rows for batch in super().read(first))
        return max(1, size), rows / max(sum(segment.bytes for segment in first), 1)

    def read(self, unit: Any) -> Iterator[RawBatch]:
        """The chosen rows."""
        for batch in super().read(unit):
            read = {"rows_read": batch.rows.num_rows, "bytes_read": batch.rows.nbytes}
            keys = sample_keys(batch.rows, self.seed)
            chosen = pa.array(keys < np.uint64(min(self.rate * 2.0**64, 2.0**64 - 2048)))
            yield RawBatch(batch.rows.filter(chosen), batch.quarantined, read)


@dataclass(frozen=True, slots=True)
class _Sample:
    """The rows of the sample, as a result of ingest."""

    result: Parent
    rate: float
    row_keys: npt.NDArray[np.uint64]
    """uint64 (rows,): ascending."""
    blocks: npt.NDArray[np.int64]
    """int64 (rows,): the block of each row's key."""


def _sample(recipe: Recipe, folder: Path, config: ForecastConfig, workers: int, progress: Progress) -> _Sample:
    """Read all raw files for the sample."""
    run = Run(OutputLayout(root=folder, dataset=recipe.dataset), Local(workers), progress)
    planned, *_ = Flow(run=run, recipe=recipe).ready("ingest", {}, list(recipe.inputs))
    stage = SampledIngest(**vars(planned), seed=config.seed)
    size, rows_per_byte = stage.size()
    wanted = max(config.share, config.rows / max(rows_per_byte * size, 1.0), LEAST_BYTES / size)
    rate = min(wanted, max(MOST_SHARE, config.share))
    result = run_stage(run, replace(stage, rate=rate))
    rows, blocks = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for batch in result.rows(None):
        rows.append(batch["row_key"].to_numpy())
        blocks.append((sample_keys(batch, config.seed) >> np.uint64(16)).astype(np.int64) % BLOCKS)
    return _Sample(result, rate, np.concatenate(rows), np.concatenate(blocks))


# Measuring: the real stages on a sample, in a process of their own.


Point = tuple[float, float]
"""Bytes of values that went in, and what that cost."""


@dataclass(frozen=True, slots=True)
class _Measured:
    """What a run of all stages on a sample took."""

    results: dict[str, Parent]
    seconds: dict[str, Point]
    """By stage; "start": besides the stages. The processor time is that of all stages."""
    disk: dict[str, Point]
    """By stage, in bytes."""
    cpu_s: Point
    memory: Point
    """Bytes at the peak (of the process, and of its largest worker times the workers), by the stage that read most."""


def _measure(recipe: Recipe, folder: Path, sample: Parent, rows: int, workers: int) -> _Measured:
    """Run ingest on the first `rows` records, the other stages on so many rows of a sample; in a process of its own."""
    began, run = time.monotonic(), Run(OutputLayout(root=folder, dataset=recipe.dataset), Local(workers), Progress())
    first = Flow(run=run, recipe=recipe, flags={"ingest": {"limit": rows}})
    ingest = run_stage(run, *first.ready("ingest", {}, list(recipe.inputs)))
    done, flow = {"ingest": _head(sample, rows, run.layout)}, Flow(run=run, recipe=recipe)
    for name in recipe.stages[1:]:
        done[name] = run_stage(run, *flow.ready(name, done, []))
    seconds, disk = dict[str, Point](), dict[str, Point]()
    for name, result in (done | {"ingest": ingest}).items():
        made, files = load_run(result.path), (folder / "data" / recipe.dataset / name).rglob("*")
        sizes = {s.st_ino: s.st_size for s in (f.stat() for f in files)}  # hard links count once
        seconds[name], disk[name] = (made["bytes"], made["seconds"]), (made["bytes"], sum(sizes.values()))
    read = [size for size, _ in seconds.values()]
    seconds["start"] = 0.0, max(time.monotonic() - began - sum(cost for _, cost in seconds.values()), 0.0)
    mine, below = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu_s = mine.ru_utime + mine.ru_stime + below.ru_utime + below.ru_stime
    memory = (mine.ru_maxrss + workers * below.ru_maxrss) * (1 if sys.platform == "darwin" else 1024)
    return _Measured(done, seconds, disk, (sum(read), cpu_s), (max(read), memory))


def _head(sample: Parent, rows: int, layout: OutputLayout) -> Parent:
    """The first rows of a sample, as a result of ingest in another place."""
    path = layout.manifest("sample")
    with UnitWriter(data_dir(path, sample.manifest), 0) as out:
        for batch in first_rows(sample.rows(), rows):
            out.write("kept", batch)
        shards = tuple(Shard(**about) for about in out.close({})["shards"])
    save(path, replace(sample.manifest, shards=shards), {})
    return Parent(path, load(path))


def line_through(small: Point, large: Point, at: float) -> float:
    """The value at `at` of the line through two points (size, cost); fixed and growing costs are at least 0."""
    (x0, y0), (x1, y1) = small, large
    slope = max(y1 - y0, 0.0) / (x1 - x0) if x1 > x0 else 0.0
    fixed = y1 - slope * x1
    if fixed < 0 or (slope == 0 and y1 > 0):
        return y1 * at / x1 if x1 else y1
    return fixed + slope * at


# From the sample to the whole.


@cache
def _draws() -> npt.NDArray[np.int64]:
    """int64 (1 + REPLICATES, BLOCKS): how often each block counts: once in the sample, by chance in a replicate."""
    drawn = np.random.default_rng(0).multinomial(BLOCKS, [1 / BLOCKS] * BLOCKS, REPLICATES)
    return np.vstack([np.ones((1, BLOCKS), drawn.dtype), drawn])


def bootstrap(lost: Shares, rows: Shares) -> Shares:
    """The share that is lost of the sample and of each replicate, from float64 (BLOCKS,) numbers."""
    shares: Shares = np.minimum((_draws() @ lost) / np.maximum(_draws() @ rows, 1), 1)
    return shares


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 99.9% interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, shares: Shares, unseen: float = 0.0) -> "Estimate":
        """The value of the sample; its interval holds the replicates, and `unseen` more."""
        low, high = np.quantile(shares[1:], [TAIL, 1 - TAIL])
        return cls(float(shares[0]), float(low), float(max(high, shares[0] + unseen)))

    def __str__(self) -> str:
        """The interval."""
        return f"{self.low:,.0f} to {self.high:,.0f}"


@dataclass(frozen=True, slots=True)
class StageForecast:
    """What a stage of the full run will do."""

    stage: str
    rows: Estimate
    """That go in."""
    kept: Estimate
    dropped: dict[str, Estimate]
    """Rows by reason."""
    seconds: float
    disk: int
    """Bytes that stay on the disk, with the records that save work later."""
    tokens: int | None
    """Tokens that stay."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """What a full run of a recipe will take."""

    dataset: str
    rows: int
    """Raw records, all of which were read."""
    sample_rows: int
    workers: int
    stages: list[StageForecast]
    seconds: float
    cpu_s: float
    """Of processor time: what other work on the machine changes least."""
    memory: int
    """Bytes at the peak, of all processes."""
    disk: int
    took_s: float
    """Seconds for the forecast itself."""

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self)


def forecast(
    recipe: Recipe, root: Path, config: ForecastConfig | None = None, progress: Progress | None = None
) -> Forecast:
    """Forecast the run of a recipe of the project `root`, in a temporary folder; the project is not changed.

    Raises:
        UsageError: the recipe names no inputs.
        DatakitError: bad input or a missing model, as in the run itself.
    """
    config, progress, began = config or ForecastConfig(), progress or Progress(), time.monotonic()
    if not recipe.inputs:
        raise UsageError(f"dataset {recipe.dataset!r} names no inputs: put them into its recipe (`datakit init`)")
    workers = config.workers or all_cores()
    with tempfile.TemporaryDirectory(prefix="datakit-forecast-") as name:
        folder = Path(name)
        removed = OutputLayout(root=root, dataset=recipe.dataset).removed
        for project in ("sample", "small", "large"):
            (folder / project / "manifests" / recipe.dataset).mkdir(parents=True)
            if removed.is_file():
                shutil.copy(removed, folder / project / "manifests" / recipe.dataset)
        sample = _sample(recipe, folder / "sample", config, workers, progress)
        rows, runs = len(sample.row_keys), list[_Measured]()
        for project, some in (("small", max(rows // SMALLER, 1)), ("large", max(rows, 1))):
            progress.line(f"forecast: all stages on {some:,} rows")
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                runs.append(pool.submit(_measure, recipe, folder / project, sample.result, some, workers).result())
        made = _extrapolated(recipe, sample, runs[0], runs[1], workers)
        return replace(made, took_s=round(time.monotonic() - began, 1))


def _extrapolated(recipe: Recipe, sample: _Sample, small: _Measured, large: _Measured, workers: int) -> Forecast:
    """The full run: rows go from stage to stage, and costs follow from the bytes of the rows that arrive."""
    ingested = sample.result.manifest.ledger
    total = ingested.notes.get("rows_read", 0) + ingested.rows.quarantined
    arriving, unseen = np.full(1 + REPLICATES, float(total)), 0.0
    here = np.bincount(sample.blocks, minlength=BLOCKS).astype(np.float64)
    stages, sizes = list[StageForecast](), list[float]()
    for name in recipe.stages:
        ledger, rows, kind = large.results[name].manifest.ledger, Estimate.of(arriving, unseen), stage_class(name)
        scale = rows.value / max(ledger.rows.into, 1)
        lost, parts = _losses(name, sample, large.results[name]), dict[str, Shares]()
        for reason, (_, stand_for) in lost.items():
            parts[reason] = bootstrap(stand_for, here)
            if kind.compares_rows and name != "dedup":
                before = small.results[name].manifest.ledger.rows
                share_before = before.dropped.get(reason, 0) / max(before.into, 1)
                parts[reason] = _grown(parts[reason], share_before, sample)
        if name == "ingest":  # all records were read: these are counted, not estimated
            sizes.append(ingested.notes.get("bytes_read", 0))
            if ingested.rows.quarantined:
                parts["could not be read"] = np.full(1 + REPLICATES, ingested.rows.quarantined / total)
        else:
            sizes.append(large.seconds[name][0] * scale)
        dropped = {reason: Estimate.of(arriving * s) for reason, s in parts.items()}
        unseen = UNSEEN * rows.value / max(len(sample.row_keys), 1)
        if kind.makes_rows:
            here = here - sum((rows_lost for rows_lost, _ in lost.values()), np.zeros(BLOCKS))
            arriving = arriving * np.maximum(1 - sum(parts.values(), np.zeros(1)), 0)
        kept = Estimate.of(arriving)
        kept = replace(kept, low=max(min(kept.low, kept.value - unseen), 0.0))
        seconds = round(line_through(small.seconds[name], large.seconds[name], sizes[-1]), 2)
        disk = round(line_through(small.disk[name], large.disk[name], sizes[-1]))
        tokens = round(ledger.tokens.kept * scale) if ledger.tokens else None
        stages.append(StageForecast(name, rows, kept, dropped, seconds, disk, tokens))
    largest = max(large.memory[0], min(max(sizes), FLAT_BYTES))
    return Forecast(
        dataset=recipe.dataset,
        rows=total,
        sample_rows=len(sample.row_keys),
        workers=workers,
        stages=stages,
        seconds=round(sum(s.seconds for s in stages) + min(small.seconds["start"][1], large.seconds["start"][1]), 1),
        cpu_s=round(line_through(small.cpu_s, large.cpu_s, sum(sizes)), 1),
        memory=round(line_through(small.memory, large.memory, largest)),
        disk=sum(s.disk for s in stages),
        took_s=0.0,
    )


def _losses(name: str, sample: _Sample, result: Parent) -> dict[str, Shares]:
    """By reason: float64 (2, BLOCKS), the rows that a stage dropped and the rows that they stand for.

    A near duplicate counts 1 / similarity times, but for a row of an earlier dataset, which is always found.
    """
    found = defaultdict[str, Shares](lambda: np.zeros((2, BLOCKS)))
    for batch in batches((result.path, result.manifest), "dropped") if name != "ingest" else ():
        blocks, weights = sample.blocks[np.searchsorted(sample.row_keys, batch["row_key"])], np.ones(batch.num_rows)
        if name == "dedup" and "duplicate_in" not in batch.schema.names:
            similarity = batch["similarity"].fill_null(1.0).to_numpy(zero_copy_only=False)
            weights /= np.clip(similarity, LEAST_SIMILARITY, 1.0)
        for reason in sorted(pc.unique(batch["reason"]).to_pylist()):
            mine = pc.equal(batch["reason"], reason).to_numpy(zero_copy_only=False)
            found[reason] += [np.bincount(blocks[mine], each, BLOCKS) for each in (None, weights[mine])]
    return found


def _grown(shares: Shares, before: float, sample: _Sample) -> Shares:
    """A share that grows with the rows that are compared: between what the sample shows and the line through both."""
    slope = max(shares[0] - before, 0.0) / (sample.rate * (1 - 1 / SMALLER))
    straight = min(shares[0] + slope * (1 - sample.rate), 1.0)
    spread = np.linspace(0, straight - shares[0], REPLICATES)
    return np.concatenate([[(shares[0] + straight) / 2], np.sort(shares[1:]) + spread])


# For people.


def forecast_lines(found: Forecast) -> Iterator[str]:
    """A forecast as a table, with the reasons of drops below each stage."""
    part = share(found.sample_rows, found.rows)
    yield f"{found.dataset}: {found.rows:,} records; the sample has {found.sample_rows:,} rows ({part})"
    rows = list[Sequence[object]]()
    for s in found.stages:
        rows.append((s.stage, round(s.rows.value), round(s.kept.value), s.kept, s.seconds, s.disk / 1e6, s.tokens))
        for reason, lost in sorted(s.dropped.items(), key=lambda item: -item[1].value):
            rows.append((f"  {reason}", None, -round(lost.value), lost, None, None, None))
    yield from lines_of(["stage", "rows in", "kept", "99.9% interval", "s", "disk MB", "tokens"], rows)
    took, cpu, here = (timedelta(seconds=round(s)) for s in (found.seconds, found.cpu_s, found.took_s))
    yield f"time:   {took} (h:min:s) with {found.workers} workers, {cpu} of processor time"
    yield f"memory: {found.memory / 1e6:,.0f} MB at the peak"
    yield f"disk:   {found.disk / 1e6:,.0f} MB"
    yield f"(this forecast took {here}; other work on the machine counts: docs/looking.md)"
