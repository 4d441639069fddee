"""Forecast: what a full run of a recipe takes in time, memory and disk and what each stage drops, from a sample.

**Which rows.** Duplicates cannot be counted in a sample of single rows: of two equal rows, a sample of 1% holds both
once in 10,000 times, and no estimator repairs that (Charikar, Chaudhuri, Motwani and Narasayya, "Towards estimation
error guarantees for distinct values", 2000). So all raw files are read once, and a row is taken if the hash of its key
is small. The key is the least hash of its shingles of five words, a MinHash (Broder, 1997). Equal rows have one key:
they are taken all or none. Two rows of Jaccard similarity J have one key with probability J, so a near duplicate whose
similarity to its survivor is J counts 1/J times (Horvitz and Thompson, 1952; coordinated samples: Cohen and Kaplan,
2013). A key is taken or not, whatever file it stands in: keys are a simple random sample of all keys, and that rows of
one file are alike does no harm. Stages that compare something else (URLs, lines, passages, meaning) are run on two
nested samples: the share that they drop grows with the sample and is concave in its size, so it lies between the share
of the larger sample and the straight line through both.

**Intervals** of shares are Wilson's (1927) at 99.9%, with the number of rows divided by the design effect of the keys
(Kish, 1965): how many of the rows that a reason drops share the key of such a row on average, itself counted.

**Time and disk.** The real stages run on the sample and on an eighth of it, each in a fresh process and a temporary
project. A line through both tells the costs of a start (imports, models, kernels) from the costs of a megabyte of
values. Ingest is timed on whole units of the raw files, since it reads rows that the sample leaves out.
"""

import math
import multiprocessing
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option
from datakit.data import read_rows, view
from datakit.engine.executors import Local, Progress, all_cores
from datakit.engine.plan import Flow
from datakit.engine.recipe import Recipe, stage_class
from datakit.engine.runner import CACHE_BYTES, Run, run_stage
from datakit.engine.store import OutputLayout
from datakit.errors import ConfigError, UsageError
from datakit.manifest import Manifest, data_dir, load, load_run, tables
from datakit.read.files import SourceFile
from datakit.read.stage import UNPACKED_RATIO, Ingest
from datakit.stage import Decision, Parent, RawBatch, RawGroup, Stage

SHINGLE_WORDS = 5
SMALLER = 8
"""The second sample is so many times smaller."""
LEAST_BYTES = 32 << 20
"""Of the raw files (uncompressed) in the sample: less is lost in the costs of a start."""
MOST_SHARE = 0.5
Z = 3.29
"""Of the normal distribution: 99.9%, so that some tens of intervals hold together."""
LEAST_SIMILARITY = 0.05
MOST_PAIRS = 2000
"""Duplicates of a reason whose similarity is computed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ForecastConfig:
    """How large the sample is."""

    share: float = option(0.01, "share of the rows in the sample, at least; small inputs need more, see --rows")
    rows: int = option(10_000, "rows in the sample, at least, as far as half of the input goes")
    seed: int = option(1, "seed of the sample")
    workers: int = option(0, "workers of the run that is forecast; 0: all cores")

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ConfigError(f"share is {self.share}; it should be above 0 and at most 1")
        for name, value in {"rows": self.rows, "workers": self.workers}.items():
            if value < 0:
                raise ConfigError(f"{name} is {value}; it should be at least 0")


# The sample.


def sample_keys(rows: pa.RecordBatch, seed: int) -> npt.NDArray[np.uint64]:
    """uint64 (rows,): evenly spread keys, equal for equal texts, and with probability J for rows of similarity J."""
    from datakit.dedup.minhash import shingle_sets
    from datakit.text.words import compose, hash_values, normalize

    if "input_ids" in rows.schema.names:
        return _mixed(hash_values(rows.column("content_hash").cast(pa.string())), seed)
    texts = compose(view(rows, "all", include_system=True, include_calls=True))
    found, keys = shingle_sets(texts, SHINGLE_WORDS), hash_values(normalize(texts))
    some = np.flatnonzero(np.diff(found.starts))
    if len(some):
        keys[some] = np.minimum.reduceat(_mixed(found.hashes, seed), found.starts[some])
    return _mixed(keys, seed + 1)


def _mixed(hashes: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint64]:
    """Another order of 64-bit hashes for each seed: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014)."""
    made = hashes + np.uint64((0x9E3779B97F4A7C15 * (2 * seed + 1)) % (1 << 64))
    made = (made ^ (made >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    made = (made ^ (made >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return made ^ (made >> np.uint64(31))


def _chosen(rows: pa.RecordBatch, rate: float, seed: int) -> pa.Array:
    return pa.array(sample_keys(rows, seed) < np.uint64(min(rate * 2.0**64, 2.0**64 - 2048)))


def _raw_bytes(files: Sequence[SourceFile]) -> int:
    """The bytes of raw files, uncompressed, roughly."""
    return max(1, sum(f.bytes * (UNPACKED_RATIO if f.compression else 1) for f in files))


@dataclass(frozen=True)
class SampledIngest(Ingest):
    """Ingest of about `share` of the raw bytes, and of these the rows whose keys are among `rate` of all keys.

    The ledger's notes count all rows that were read, and their bytes.
    """

    share: float = 1.0
    rate: float = 1.0
    seed: int = 1
    unit_bytes: int = 0
    """Raw bytes that are read into one shard; 0: those of a usual unit."""

    def size(self) -> tuple[int, float]:
        """(about how many bytes the raw files have, uncompressed; records in a byte, from the first unit)."""
        units = (unit for files in super().raw_groups() for unit in super(SampledIngest, self).raw_units(files))
        first = next(units, None)
        rows = sum(batch.rows.num_rows for batch in super().read(first)) if first is not None else 0
        return _raw_bytes(self._plan.files), rows / max(first.bytes, 1) if first is not None else 0.0

    def raw_groups(self) -> Sequence[RawGroup]:
        """One group of all files: it has no names, so that no other run takes its units."""
        return [RawGroup(0, (), None)]

    def raw_units(self, group: RawGroup) -> Iterator[tuple[Any, ...]]:
        """Usual units, some together; of a share, the first ones of a file, or those of every so many small files."""
        waiting, size, credit = [], 0, 0.0
        for files in super().raw_groups():
            planned = self._plan.files[files.first_file : files.first_file + len(files.files)]
            credit += self.share * _raw_bytes(planned)
            for unit in super().raw_units(files) if credit > 0 or self.share == 1 else ():
                waiting.append(unit)
                size, credit = size + unit.bytes, credit - unit.bytes
                if size >= self.unit_bytes:
                    yield tuple(waiting)
                    waiting, size = [], 0
                if credit <= 0 and self.share < 1:
                    break
        if waiting:
            yield tuple(waiting)

    def read(self, unit: Any) -> Iterator[RawBatch]:
        """The chosen rows."""
        for part in unit:
            for batch in super().read(part):
                rows, notes = batch.rows, {"rows_read": batch.rows.num_rows, "bytes_read": batch.rows.nbytes}
                if self.rate < 1:
                    rows = rows.filter(_chosen(rows, self.rate, self.seed))
                yield RawBatch(rows, batch.quarantined, notes)


@dataclass(frozen=True, kw_only=True, slots=True)
class SubsampleConfig:
    """Which keys stay."""

    rate: float = 1.0
    seed: int = 1


@dataclass(frozen=True)
class Subsample(Stage):
    """The rows of a sample whose keys are among `rate` of all keys; takes the place of ingest."""

    name: ClassVar[str] = "ingest"
    Config: ClassVar[type] = SubsampleConfig
    config: SubsampleConfig = field(default_factory=SubsampleConfig)

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Compare keys."""
        chosen = _chosen(batch, self.config.rate, self.config.seed)
        nothing = pa.scalar(None, pa.string())
        return Decision(reasons=pc.if_else(chosen, nothing, pa.scalar("not in the sample")))


# Measuring: the real stages on a sample, in a process of their own.


@dataclass(frozen=True, slots=True)
class StageCost:
    """What one stage of a run on a sample took."""

    values: int
    """Bytes of values that went in."""
    seconds: float
    disk: int


@dataclass(frozen=True, slots=True)
class SampleRun:
    """A run of all stages on a sample."""

    stages: dict[str, StageCost]
    manifests: dict[str, Path]
    start_s: float
    """Seconds outside of stages."""
    cpu_s: float
    memory: int
    disk_peak: int


def _run_sample(recipe: Recipe, folder: Path, sample: Path, share: float, workers: int) -> dict[str, Path]:
    """Run ingest on a share of the raw files, then the other stages on a sample; in a process of its own."""
    layout = OutputLayout(root=folder, dataset=recipe.dataset)
    run = Run(layout, Local(workers), Progress())
    flow = Flow(run=run, recipe=recipe)
    stage, *_ = flow.ready("ingest", {}, list(recipe.inputs))
    ingest = run_stage(run, SampledIngest(**vars(stage), share=share))
    done = {"ingest": sample}
    for name in recipe.stages[1:]:
        done[name] = run_stage(run, *flow.ready(name, done, []))
    return done | {"ingest": ingest}


def _measure(recipe: Recipe, folder: Path, sample: Path, share: float, workers: int) -> SampleRun:
    begin, cpu, memory, disk = time.monotonic(), _cpu_below(), 0, 0
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        future = pool.submit(_run_sample, recipe, folder, sample, share, workers)
        while not future.done():
            memory, disk = max(memory, _memory_below()), max(disk, _disk(folder))
            time.sleep(0.05)
        manifests = future.result()
    wall, stages = time.monotonic() - begin, {}
    for name, path in manifests.items():
        run = load_run(path)
        used = _disk(folder / "data" / recipe.dataset / name)
        stages[name] = StageCost(int(run["bytes"]), float(run["seconds"]), used)
    start = max(wall - sum(m.seconds for m in stages.values()), 0.0)
    return SampleRun(stages, manifests, start, _cpu_below() - cpu, memory, max(disk, _disk(folder)))


def _cpu_below() -> float:
    """Seconds of processor time of all processes below this one that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _disk(folder: Path) -> int:
    """Bytes of all files below a folder; hard links count once."""
    found: dict[int, int] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                about = os.stat(os.path.join(place, name), follow_symlinks=False)
            except FileNotFoundError:  # a temporary file
                continue
            found[about.st_ino] = about.st_size
    return sum(found.values())


def _memory_below() -> int:
    """Bytes that the processes below this one have in memory; 0 where the system does not tell."""
    parents, sizes = dict[int, int](), dict[int, int]()
    for entry in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        try:
            fields = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split() if entry.isdigit() else []
        except OSError:
            continue
        if fields:
            parents[int(entry)], sizes[int(entry)] = int(fields[1]), int(fields[21])
    mine, total, page = {os.getpid()}, 0, os.sysconf("SC_PAGESIZE")
    for pid in sorted(parents):  # a child has a higher number than its parent, but for a wrap around
        if parents[pid] in mine:
            mine.add(pid)
            total += sizes[pid] * page
    return total


# From samples to the whole.


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 99.9% interval."""

    value: float
    low: float
    high: float

    def times(self, other: "Estimate") -> "Estimate":
        """The product; its interval has those of both."""
        return Estimate(self.value * other.value, self.low * other.low, self.high * other.high)

    def rest(self) -> "Estimate":
        """What is left of a share."""
        return Estimate(1 - self.value, 1 - self.high, 1 - self.low)


def wilson(found: float, of: float, design_effect: float = 1.0, weight: float = 1.0) -> Estimate:
    """The share `weight * found / of` of a sample with its interval (Wilson, 1927).

    The lower end has no weight: few rows of large weights say little, and what was found is there.
    """
    if not of:
        return Estimate(0.0, 0.0, 1.0)
    n, p = of / design_effect, found / of
    middle, half = p + Z * Z / (2 * n), Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    low, high = ((middle + sign * half) / (1 + Z * Z / n) for sign in (-1, 1))
    return Estimate(min(weight * p, 1.0), max(low, 0.0) if found else 0.0, min(weight * high, 1.0))


def line_through(small: tuple[float, float], large: tuple[float, float], at: float) -> float:
    """The value at `at` of the line through two points (size, cost); fixed and growing costs are at least 0."""
    (x0, y0), (x1, y1) = small, large
    slope = max(y1 - y0, 0.0) / (x1 - x0) if x1 > x0 else 0.0
    fixed = y1 - slope * x1
    if fixed < 0 or (slope == 0 and y1 > 0):
        return y1 * at / x1 if x1 else y1
    return fixed + slope * at


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
    disk_peak: int
    """Bytes while it runs."""
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
        sample = _sample(recipe, folder, config, workers, progress)
        runs = []
        for project, rows, share in (
            ("small", sample.small, sample.rate / SMALLER), ("large", sample.large, sample.rate),
        ):  # fmt: skip
            progress.line(f"forecast: all stages on {load(rows).ledger.rows.kept:,} rows")
            runs.append(_measure(recipe, folder / project, rows, share, workers))
        made = _extrapolated(recipe, sample, runs[0], runs[1], workers)
        return replace(made, took_s=round(time.monotonic() - began, 1))


@dataclass(frozen=True, slots=True)
class _Sample:
    """Two nested samples of rows, as results of ingest."""

    rate: float
    """The share of the keys in the larger sample."""
    large: Path
    small: Path
    row_keys: npt.NDArray[np.uint64]
    """uint64 (rows,): of the rows of the larger sample, ascending."""
    keys: npt.NDArray[np.uint64]
    """uint64 (rows,): their keys."""

    def design_effects(self, lost: Iterable[pa.RecordBatch]) -> dict[str, float]:
        """By reason, and for all as "": how many lost rows share the key of a lost row on average, itself counted."""
        found: dict[str, list[npt.NDArray[np.uint64]]] = {"": []}
        for batch in lost:
            at = np.searchsorted(self.row_keys, batch.column("row_key").to_numpy())
            keys, reasons = self.keys[at], batch.column("reason").to_numpy(zero_copy_only=False)
            found[""].append(keys)
            for reason in set(reasons.tolist()):
                found.setdefault(reason, []).append(keys[reasons == reason])
        return {reason: _mean_group(np.concatenate(parts)) for reason, parts in found.items() if parts}


def _mean_group(keys: npt.NDArray[np.uint64]) -> float:
    sizes = np.unique(keys, return_counts=True)[1].astype(np.float64)
    return float((sizes**2).sum() / sizes.sum()) if len(sizes) else 1.0


def _sample(recipe: Recipe, folder: Path, config: ForecastConfig, workers: int, progress: Progress) -> _Sample:
    """Read all raw files for the samples."""
    run = Run(OutputLayout(root=folder / "sample", dataset=recipe.dataset), Local(workers), progress)
    planned, *_ = Flow(run=run, recipe=recipe).ready("ingest", {}, list(recipe.inputs))
    stage = SampledIngest(**vars(planned), seed=config.seed)
    size, rows_per_byte = stage.size()
    wanted = max(config.share, config.rows / max(rows_per_byte * size, 1.0), LEAST_BYTES / size)
    rate = min(wanted, max(MOST_SHARE, config.share))
    units = workers * max(1, math.ceil(rate * size / (workers * (16 << 20))))  # no worker waits for another
    large = run_stage(run, replace(stage, rate=rate, unit_bytes=size // units))
    layout = OutputLayout(root=folder / "smaller", dataset=recipe.dataset)
    parts = Subsample(SubsampleConfig(rate=rate / SMALLER, seed=config.seed))
    small = run_stage(Run(layout, Local(workers), Progress()), parts, [Parent(large, load(large))])
    keys = [np.empty(0, np.uint64), *(sample_keys(batch, config.seed) for batch in _rows(large, "kept"))]
    places = [np.empty(0, np.uint64), *(b.column("row_key").to_numpy() for b in _rows(large, "kept", ["row_key"]))]
    return _Sample(rate, large, small, np.concatenate(places), np.concatenate(keys))


def _rows(path: Path, role: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    manifest = load(path)
    for shard in tables(manifest, role):
        yield from read_rows(data_dir(path, manifest), shard, columns)


def _extrapolated(recipe: Recipe, sample: _Sample, small: SampleRun, large: SampleRun, workers: int) -> Forecast:
    """The full run: rows go from stage to stage, and costs follow from the bytes of the rows that arrive."""
    first = load(sample.large).ledger
    rows = first.notes.get("rows_read", 0) + first.rows.quarantined
    stages, arriving, sizes = list[StageForecast](), Estimate(rows, rows, rows), list[float]()
    for name in recipe.stages:
        ledger = load(sample.large if name == "ingest" else large.manifests[name]).ledger
        before, after = small.stages[name], large.stages[name]
        values = first.notes.get("bytes_read", 0) if name == "ingest" else after.values * arriving.value
        values /= 1 if name == "ingest" else max(ledger.rows.into, 1)
        dropped, lost = _losses(name, sample, small, large)
        kept = arriving.times(lost.rest()) if stage_class(name).makes_rows else arriving
        scale = arriving.value / max(ledger.rows.into, 1)
        stages.append(
            StageForecast(
                stage=name,
                rows=arriving,
                kept=kept,
                dropped={reason: arriving.times(share) for reason, share in dropped.items()},
                seconds=round(line_through((before.values, before.seconds), (after.values, after.seconds), values), 2),
                disk=round(line_through((before.values, before.disk), (after.values, after.disk), values)),
                tokens=round(ledger.tokens.kept * scale) if ledger.tokens else None,
            )
        )
        arriving = kept
        sizes.append(values)
    parts = [[m.values for m in run.stages.values()] for run in (small, large)]
    most = max(max(parts[1]), min(max(sizes), CACHE_BYTES))
    memory = line_through((max(parts[0]), small.memory), (max(parts[1]), large.memory), most)
    cpu_s = line_through((sum(parts[0]), small.cpu_s), (sum(parts[1]), large.cpu_s), sum(sizes))
    disk, sampled_disk = sum(s.disk for s in stages), sum(m.disk for m in large.stages.values())
    return Forecast(
        dataset=recipe.dataset,
        rows=rows,
        sample_rows=load(sample.large).ledger.rows.kept,
        workers=workers,
        stages=stages,
        seconds=round(sum(s.seconds for s in stages) + min(small.start_s, large.start_s), 1),
        cpu_s=round(cpu_s, 1),
        memory=round(memory),
        disk=disk,
        disk_peak=round(disk * max(large.disk_peak / max(sampled_disk, 1), 1.0)),
        took_s=0.0,
    )


def _losses(name: str, sample: _Sample, small: SampleRun, large: SampleRun) -> tuple[dict[str, Estimate], Estimate]:
    """The shares of a stage's rows that it drops: by reason, and together."""
    path = sample.large if name == "ingest" else large.manifests[name]
    manifest = load(path)
    rows = manifest.ledger.rows
    counts = {"": sum(rows.dropped.values())} | rows.dropped  # "": all of them
    into = rows.into - rows.quarantined
    effects = sample.design_effects(_rows(path, "dropped", ["row_key", "reason"])) if name != "ingest" else {}
    weights = dict.fromkeys(counts, 1.0)
    if name == "dedup":
        weights |= _weights(sample, path, manifest)
        weights[""] = sum(weights[reason] * n for reason, n in rows.dropped.items()) / max(counts[""], 1)
    found = {reason: wilson(n, into, effects.get(reason, 1.0), weights[reason]) for reason, n in counts.items()}
    if stage_class(name).compares_rows and name not in ("ingest", "dedup"):
        before = load(small.manifests[name]).ledger.rows
        earlier = {"": sum(before.dropped.values())} | before.dropped
        found = {r: _grown(share, earlier.get(r, 0) / max(before.into, 1), sample) for r, share in found.items()}
    lost = found.pop("")
    if name == "ingest" and rows.quarantined:  # all records were read: this is counted, not estimated
        share = rows.quarantined / (manifest.ledger.notes.get("rows_read", 0) + rows.quarantined)
        found["could not be read"] = Estimate(share, share, share)
        lost = Estimate(*(min(x + share, 1.0) for x in (lost.value, lost.low, lost.high)))
    return found, lost


def _grown(share: Estimate, before: float, sample: _Sample) -> Estimate:
    """A share that grows with the rows that are compared: between what the sample shows and the line through both."""
    slope = max(share.value - before, 0.0) / (sample.rate * (1 - 1 / SMALLER))
    straight = min(share.value + slope * (1 - sample.rate), 1.0)
    return Estimate((share.value + straight) / 2, share.low, max(share.high, straight))


def _weights(sample: _Sample, path: Path, manifest: Manifest) -> dict[str, float]:
    """How many rows of the full run a dropped row of the sample stands for beyond others, by reason: the mean of 1/J.

    A row that is dropped for a row of an earlier dataset is always found: it counts once.
    """
    from datakit.dedup.minhash import shingle_sets
    from datakit.text.words import compose

    pairs: dict[str, list[tuple[str, str]]] = {}
    for batch in _rows(path, "dropped", ["id", "reason", "duplicate_of"]):
        for row in batch.to_pylist():
            known = pairs.setdefault(row["reason"], [])
            if len(known) < MOST_PAIRS:
                known.append((row["id"], row["duplicate_of"]))
    near = {name for reason, found in pairs.items() if reason != "exact_duplicate" for pair in found for name in pair}
    wanted, sets = pa.array(sorted(near), pa.string()), dict[str, npt.NDArray[np.uint64]]()
    for batch in _rows(sample.large, "kept") if near else ():
        some = batch.filter(pc.is_in(batch.column("id"), wanted))
        found = shingle_sets(compose(view(some, "all", include_system=True, include_calls=True)), SHINGLE_WORDS)
        for n, row_id in enumerate(some.column("id").to_pylist()):
            sets[row_id] = found.hashes[found.starts[n] : found.starts[n + 1]]
    weights = dict.fromkeys(manifest.ledger.rows.dropped, 1.0)
    for reason, found_pairs in pairs.items():
        alike = [_similarity(sets[a], sets[b]) for a, b in found_pairs if a in sets and b in sets]
        weights[reason] = sum(1 / max(j, LEAST_SIMILARITY) for j in alike) / len(alike) if alike else 1.0
    return weights


def _similarity(a: npt.NDArray[np.uint64], b: npt.NDArray[np.uint64]) -> float:
    """Jaccard similarity of two sets of shingles; 1 where there are none, since only equal texts share a key then."""
    both = len(np.intersect1d(a, b, assume_unique=True))
    return both / (len(a) + len(b) - both) if len(a) and len(b) else 1.0


# For people.


def forecast_lines(found: Forecast) -> Iterator[str]:
    """A forecast as a table, with the reasons of drops below each stage."""
    share = found.sample_rows / max(found.rows, 1)
    yield f"{found.dataset}: {found.rows:,} records; the sample has {found.sample_rows:,} rows ({share:.1%})"
    yield f"{'stage':<17}{'rows in':>13}{'kept':>13}{'99.9% interval':>29}{'s':>9}{'disk MB':>10}"
    for s in found.stages:
        yield (
            f"{s.stage:<17}{s.rows.value:>13,.0f}{s.kept.value:>13,.0f}{_interval(s.kept):>29}"
            f"{s.seconds:>9,.1f}{s.disk / 1e6:>10,.1f}"
        )
        for reason, rows in sorted(s.dropped.items(), key=lambda item: -item[1].value):
            yield f"  -{'':>14}{rows.value:>13,.0f}{_interval(rows):>29}  {reason}"
        if s.tokens is not None:
            yield f"  tokens{'':>9}{s.tokens:>13,}"
    yield f"time:   {_duration(found.seconds)} with {found.workers} workers, {_duration(found.cpu_s)} of processor time"
    yield f"memory: {found.memory / 1e6:,.0f} MB at the peak"
    yield f"disk:   {found.disk / 1e6:,.0f} MB, {found.disk_peak / 1e6:,.0f} MB while it runs"
    yield f"(this forecast took {_duration(found.took_s)}; other work on the machine counts: docs/looking.md)"


def _interval(rows: Estimate) -> str:
    return f"{rows.low:,.0f} to {rows.high:,.0f}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
