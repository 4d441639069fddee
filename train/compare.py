"""Does a recipe help? Trains the same small model on several packed sets (arms), and compares them on held-out texts.

    python -m train.compare --arms raw=raw/pack.json,ours=ours/pack.json --heldout books=books.jsonl --out out/compare

Model, first weights, tokenizer, token budget and optimizer are the same in every arm. A seed draws one random order of
near-duplicate clusters of the union of the arms, and each arm takes what it has of it until the budget is full: single
documents are never drawn, which would thin out duplicates. Only a cluster that would fill much of the budget by itself
is drawn in pieces, which are still full of copies. So arms are paired by seed, and the differences between
arms have less noise than the arms. The metric is bits per byte of whole held-out texts (docs/evidence.md).
"""

import hashlib
import html
import json
import math
import multiprocessing
import os
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from datakit.config import at_least, build, canonical, digest, option, section
from datakit.errors import ConfigError, InputError, ManifestError, UsageError
from datakit.pack.chat import ChatTokenizer
from datakit.pack.format import SOURCE_DTYPE, index_of
from datakit.storage import locked, pull_result, write_whole
from train import flags
from train.attention import ATTENTIONS
from train.config import LOG, SizesConfig, more, placed
from train.data import Mixture, PackedSet, Row, flat_batch
from train.device import precision
from train.eval import FILE_BITS, raw_files, untouched
from train.local_model import LocalModel
from train.loss import chunk_of, token_log_probs
from train.model import PRESETS, CausalLM
from train.optim import OptimConfig, peak_rate
from train.pretrain import PretrainConfig
from train.start import Trainer, run_factory, sized
from train.stream import Int64

Float64 = npt.NDArray[np.float64]

MAX_HELD_TOKENS, MIN_HELD_DOCS = 75_000, 60
"""Bounds of a held-out set: it is scored after every run, and its documents carry the second interval."""
MIN_SEEDS = 5
"""Fewer differences have no interval: with two, Student's t is 12.7 standard errors wide, with five 2.8."""
SCORED = 16
"""Windows of a held-out text that are predicted together."""
CURVE_POINTS = 5
"""A run is scored so often on the set of the primary comparison, for the picture."""
PIECES = 50
"""A cluster with more tokens than this part of the budget is drawn in pieces."""
AA_SEED = 1_000_003
"""Added to the seed of the draw, not to that of the weights, in the second run of an A/A pair."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CompareConfig:
    """Arms, held-out sets, size and budget."""

    arms: tuple[str, ...] = option((), "NAME=MANIFEST of each packed set, the one to compare with first")
    heldout: tuple[str, ...] = option((), "NAME=FILE of each held-out set: JSON lines with `text`")
    preset: Literal["tiny", "26m", "64m", "104m"] = option("tiny", "size of the model")
    sizes: SizesConfig = section(SizesConfig)
    tokens: str = option("", "training tokens of a run, as 3M; empty: 60% of the smallest arm; one epoch at most")
    seeds: int = option(5, "paired draws; below five there are no intervals")
    primary: str = option("", "ARM:SET of the one comparison that is not corrected; empty: last arm, first set")
    optimizer: Literal["muon", "adamw"] = option("muon", "AdamW is still on its first plateau at small budgets")
    batch_rows: int = option(8, "packed rows per step")
    aa: int = more(2, "pairs of runs that differ by their draw alone, of the first arm: the noise; at most one a seed")
    rates: bool = more(True, "first and last arm also with a third and three times of the learning rate, two seeds")
    unpaired: bool = more(False, "compare arms of different raw files: only equal and similar texts are paired")
    jobs: int = more(0, "single-thread processes side by side; 0: as many as there are cores")
    out: str = option("out/compare", "folder for runs.jsonl, compare.json and compare.html; finished runs are kept")

    def __post_init__(self) -> None:
        at_least(self, 1, "seeds", "batch_rows")
        at_least(self, 0, "aa", "jobs")
        if len(_named(self.arms, "arms")) < 2 or not _named(self.heldout, "heldout"):
            raise UsageError("name two arms or more with --arms NAME=MANIFEST,..., and a set with --heldout NAME=FILE")
        arm, name = self.primary_pair
        if arm not in [*_named(self.arms, "arms")][1:] or name not in _named(self.heldout, "heldout"):
            raise ConfigError(
                f"--primary {self.primary}: expected ARM:SET, of an arm behind the first and a held-out set"
            )
        budget_of(self.tokens)

    @property
    def aa_pairs(self) -> int:
        """A/A pairs that run: at most one a seed."""
        return min(self.aa, self.seeds)

    @property
    def primary_pair(self) -> tuple[str, str]:
        """The arm and the held-out set of the primary comparison."""
        last, first = [*_named(self.arms, "arms")][-1], next(iter(_named(self.heldout, "heldout")))
        arm, _, name = self.primary.partition(":")
        return (arm, name) if self.primary else (last, first)


def _named(given: Sequence[str], flag: str) -> dict[str, str]:
    """The values of NAME=VALUE, by name.

    Raises:
        UsageError: no name, or one name twice.
    """
    parts = [text.partition("=") for text in given]
    found = {name: value for name, _, value in parts}
    if len(found) < len(given) or not all(name and value for name, _, value in parts):
        raise UsageError(f"--{flag}: expected NAME=PATH with different names, found {', '.join(given)}")
    return found


def budget_of(text: str) -> int:
    """The number in `3M`, `500k` or `20000`; 0 for an empty text.

    Raises:
        ConfigError: not a positive number.
    """
    factor = {"k": 1_000, "m": 1_000_000}.get(text[-1:].lower(), 1)
    number = text[:-1] if factor > 1 else text
    try:
        found = round(float(number or "0") * factor)
    except (ValueError, OverflowError):
        found = -1
    if found < 0 or (text and not found):
        raise ConfigError(f"--tokens {text}: expected a positive number, as 3M, 500k or 20000")
    return found


# ---------------------------------------------------------------------- documents


@dataclass(frozen=True, slots=True)
class Arm:
    """The documents of a packed set."""

    name: str
    data: PackedSet
    docs: dict[str, Int64]
    """The tokens of each document, by id; ids are the same in all arms that read the same raw files."""

    @property
    def tokens(self) -> int:
        """Tokens of all documents."""
        return sum(map(len, self.docs.values()))


def documents(sets: Sequence[PackedSet], names: Sequence[str]) -> dict[str, Int64]:
    """The documents of packed rows: the sequences of each source row, in the order of the text. A part has whole ones.

    An id is the name of the raw file and the number of the record in it.
    """
    found = dict[str, list[Int64]]()
    for packed in (data.packed for data in sets):
        sources = packed.sources
        for i in np.lexsort((sources["start"], sources["row_key"])):
            key, row, segment = (int(sources[i][field]) for field in ("row_key", "row", "segment"))
            a, b = packed.segments_of(row)[segment : segment + 2]
            name = f"{names[key >> FILE_BITS]}:{key & ((1 << FILE_BITS) - 1)}"
            found.setdefault(name, []).append(np.asarray(packed.ids_of(row)[a:b], np.int64))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def open_arms(config: CompareConfig) -> list[Arm]:
    """The arms, after checks.

    Raises:
        ManifestError: tokenizers or row lengths differ, or arms have labels.
        InputError: arms have no documents in common.
    """
    arms = list[Arm]()
    for name, given in _named(config.arms, "arms").items():
        sets, raw = PackedSet.open_all(pull_result(given)), raw_files(pull_result(given))
        data = sets[0]
        if len({s.header.seq_len for s in sets}) > 1 or data.packed.labels is not None or data.header.rows_per_unit > 1:
            raise ManifestError(f"{data.manifest}: an arm is plain text in rows of one length; pack it so")
        first = arms[0].data if arms else data
        for what, ours, theirs in (
            ("tokenizer", first.tokenizer["sha256"], data.tokenizer["sha256"]),
            ("seq_len", first.header.seq_len, data.header.seq_len),
        ):
            if ours != theirs:
                raise ManifestError(f"arms must have one {what}: {first.manifest} has {ours}, {data.manifest} {theirs}")
        if not raw and not config.unpaired:
            raise InputError(f"{data.manifest}: its parent manifests are missing, so its documents have no common ids")
        files = int(max(s.packed.sources["row_key"].max() for s in sets) >> np.uint64(FILE_BITS)) + 1
        alone = [f"{name}/{i}" for i in range(files)]
        arms.append(Arm(name, data, documents(sets, alone if config.unpaired else [r["sha256"] for r in raw])))
        if not config.unpaired and not arms[0].docs.keys() & arms[-1].docs.keys():
            raise InputError(
                f"{arms[0].name} and {name} have no document in common: they were not made from the same raw files. "
                "--unpaired compares them all the same, with wider intervals, because a seed then draws other documents"
            )
    return arms


def _deduped(rows: Sequence[tuple[str, str]], folder: Path, *options: str) -> list[dict[str, Any]]:
    """The rows (id, text) that `datakit dedup` keeps, with the ids of the `duplicates` that each stands for."""
    if not rows:  # dedup could not tell their kind
        return []
    folder.mkdir()
    lines = (json.dumps({"id": name, "text": text}) + "\n" for name, text in rows)
    (folder / "rows.jsonl").write_text("".join(lines), encoding="utf-8")
    result = folder / "result"
    run_factory("dedup", str(folder / "rows.jsonl"), "--output", str(result), "--max-loss", "1", "--workers", "1",
             "--allow-empty", "--save-duplicates", *options)  # fmt: skip
    if not json.loads((result / "manifest.json").read_bytes())["ledger"]["rows"]["kept"]:
        return []
    run_factory("export", str(result / "manifest.json"), "--output", str(folder / "export"), "--format", "jsonl",
             "--add", "duplicates")  # fmt: skip
    files = sorted((folder / "export" / "data").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").split("\n") if line]


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A held-out set, without what the arms have of it."""

    name: str
    ids: list[Int64]
    """The tokens of each document."""
    bytes: Int64
    """UTF-8 bytes of each document's text."""
    removed: int
    """Documents that are near duplicates of one in an arm, or of an earlier one of the set."""


def prepare(
    config: CompareConfig, arms: Sequence[Arm], tokenizer: ChatTokenizer
) -> tuple[list[list[str]], list[HeldOut]]:
    """The near-duplicate clusters of the union of the arms, and the held-out sets.

    Raises:
        InputError: a held-out set is unreadable, too small or too large.
    """
    union = {name: ids for arm in reversed(arms) for name, ids in arm.docs.items()}
    names = sorted(union)
    held = list[HeldOut]()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        # a document may be an empty text, which dedup does not read: it is a cluster of its own
        texts = [(str(i), tokenizer.encoder.decode(union[name].tolist())) for i, name in enumerate(names)]
        kept = _deduped([pair for pair in texts if pair[1].strip()], folder / "union", "--save-index")
        clusters = [[int(row["id"]), *map(int, row["duplicates"] or ())] for row in kept]
        alone = set(range(len(names))) - {i for cluster in clusters for i in cluster}
        clusters = sorted(map(sorted, [*clusters, *([i] for i in alone)]))
        index = str(folder / "union" / "result" / "manifest.json")
        for name, path in _named(config.heldout, "heldout").items():
            given = list(_texts(Path(path)))
            rest = _deduped([(str(i), t) for i, t in enumerate(given)], folder / f"held{len(held)}", "--against", index)
            own = [given[i] for i in sorted(int(row["id"]) for row in rest)]
            ids = [np.array(tokenizer.encode_text(text), np.int64) for text in own]
            tokens = sum(map(len, ids))
            if len(own) < MIN_HELD_DOCS or tokens > MAX_HELD_TOKENS:
                raise InputError(
                    f"{path}: has {len(own)} documents and {tokens:,} tokens without the {len(given) - len(own)} that "
                    f"an arm or the set has too; expected {MIN_HELD_DOCS} documents or more, and at most "
                    f"{MAX_HELD_TOKENS:,} tokens"
                )
            sizes = np.array([len(text.encode()) for text in own], np.int64)
            held.append(HeldOut(name, ids, sizes, len(given) - len(own)))
            LOG.info(f"held-out {name}: {len(own)} documents, {tokens:,} tokens, {held[-1].removed} removed as overlap")
    return [[names[i] for i in cluster] for cluster in clusters], held


def _texts(path: Path) -> Iterator[str]:
    """The texts of a file of JSON lines, but for empty ones.

    Raises:
        InputError: a line is no object with a `text`.
    """
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        try:
            text = json.loads(line)["text"] if line.strip() else ""
            if text.strip():
                yield text
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise InputError(f"{path}: line {number}: expected an object with `text` ({e!r})") from None


# ---------------------------------------------------------------------- runs


def pieces(clusters: Iterable[Sequence[str]], arms: Sequence[Arm], most: int) -> Iterator[list[str]]:
    """The clusters, of which those with more than `most` tokens are cut into pieces of about as many.

    A cluster with a tenth of an arm would else be most of a small budget in some draws, and nothing in the others.
    """
    size_of = {name: len(ids) for arm in reversed(arms) for name, ids in arm.docs.items()}
    for cluster in clusters:
        piece, size = list[str](), 0
        for name in cluster:
            if size >= most:
                yield piece
                piece, size = [], 0
            piece.append(name)
            size += size_of.get(name, 0)
        yield piece


def draw(arm: Arm, clusters: Sequence[Sequence[str]], seed: int, rows: int, start_id: int) -> PackedSet:
    """The arm's documents in the order of `seed`, in `rows` full rows; a document begins with the start token.

    The order is that of all clusters, so arms that have the same clusters get them in the same rows. Training shuffles
    the rows, alike in all arms: a document is longer than a step, and copies side by side would be learnt by heart.
    """
    stride, parts, size = arm.data.header.stride, list[Int64](), 0
    for i in np.random.default_rng(seed).permutation(len(clusters)):
        for name in clusters[i]:
            if name in arm.docs and size < rows * stride:
                ids = arm.docs[name]
                parts.append(ids if ids[0] == start_id else np.append(start_id, ids))
                size += len(parts[-1])
    ids = np.concatenate(parts)[: rows * stride]
    starts = np.cumsum([0, *map(len, parts)])
    cuts = np.union1d(starts[starts < len(ids)], np.arange(0, len(ids) + 1, stride))
    lengths = np.diff(cuts)
    row_of = cuts[:-1] // stride
    counts = np.bincount(row_of, minlength=rows)
    sources = np.zeros(len(lengths), SOURCE_DTYPE)
    sources["row"], sources["tokens"] = row_of, lengths
    sources["segment"] = np.arange(len(lengths)) - np.repeat(np.cumsum(counts) - counts, counts)
    ends = cuts[1:] - row_of * stride
    segments = np.insert(ends, np.cumsum(counts) - counts, 0).astype(np.int32)
    packed = replace(
        arm.data.packed, header=replace(arm.data.header, num_samples=rows, format="bin", labelled=False),
        ids=ids.astype(arm.data.header.dtype), segments=segments, segment_index=index_of(counts + 1).astype(np.uint64),
        labels=None, label_index=None, sources=sources)  # fmt: skip
    return replace(arm.data, packed=packed, version="0")  # the version decides how rows are shuffled: in all arms alike


@dataclass(frozen=True, slots=True)
class Run:
    """One training run: everything that decides its result."""

    arm: str
    seed: int
    """Of the weights, and of the draw but in the second run of an A/A pair."""
    kind: str
    """`main`, `aa`, or the multiple of the learning rate: `x0.333`, `x3`."""
    data: PackedSet
    config: PretrainConfig
    held: list[HeldOut]
    start_id: int
    watched: str
    """The held-out set that is scored during the run, too."""

    @property
    def key(self) -> str:
        """A digest of all that the result depends on."""
        arrays = [self.data.packed.ids, self.data.packed.segments, *(a for h in self.held for a in h.ids)]
        loop = self.config.loop
        what = [self.arm, self.seed, self.kind, self.start_id, self.config.preset, repr(self.config.sizes),
                repr(self.config.optim), repr(self.config.data), loop.seed, loop.dtype,
                [h.name for h in self.held], self.watched, torch.__version__]  # fmt: skip
        return digest([*what, *(hashlib.sha256(np.asarray(a, np.int64).tobytes()).hexdigest() for a in arrays)])

    def result(self) -> dict[str, Any]:
        """Train and score, in one thread; bits of each held-out document, by set."""
        torch.set_num_threads(1)
        with tempfile.TemporaryDirectory() as out:
            config = replace(self.config, loop=replace(self.config.loop, out=out))
            trainer, curve = Trainer(config, data=Mixture([self.data])), list[list[float]]()
            step_tokens = config.data.batch_rows * self.data.header.stride

            def watch(model: CausalLM, step: int) -> dict[str, Any]:
                ids = next(h.ids for h in self.held if h.name == self.watched)
                bits = sum(float(bits_of(model, doc, self.start_id, self.data.header).sum()) for doc in ids)
                curve.append([min(step * step_tokens, len(self.data.packed.ids)), bits])
                return {"step": step, "loss": bits, "perplexity": bits}  # for a log that nobody reads

            # set here, since the trainer itself would look for a validation split
            every = -(-trainer.total_steps // CURVE_POINTS)
            trainer.config = replace(trainer.config, evaluator=replace(config.evaluator, eval_every=every))
            trainer.evaluate = watch
            fit = trainer.fit()
        if fit.stopped_by:
            raise KeyboardInterrupt  # a run that a signal stopped has no result
        model = fit.model
        ids = np.asarray(self.data.packed.ids, np.int64)
        starts = np.append(0, np.cumsum(self.data.packed.sources["tokens"].astype(np.int64)))[:-1]
        local = LocalModel.fit(ids, starts, self.data.header.vocab_size)
        bits, local_bits = {}, {}
        for held in self.held:
            bits[held.name] = [float(bits_of(model, doc, self.start_id, self.data.header).sum()) for doc in held.ids]
            whole = [np.append(self.start_id, doc) for doc in held.ids]
            firsts = np.cumsum([0, *map(len, whole)])[:-1]
            found = local.bits(np.concatenate(whole), firsts)
            found[firsts] = 0  # the start token is given
            local_bits[held.name] = float(found.sum())
        return {"arm": self.arm, "seed": self.seed, "kind": self.kind, "bits": bits, "local_bits": local_bits,
                "curve": curve}  # fmt: skip


def windows(length: int, size: int) -> list[tuple[int, int, int]]:
    """How a text of `length` tokens behind a start token is predicted with at most `size` inputs, each token once.

    A window (first, stop, scored) has the inputs first..stop - 1 and predicts first + 1..stop, of which those behind
    `scored` count. But for the first window, every counted token has half a window or more before it.
    """
    found, done = list[tuple[int, int, int]](), 0
    while done < length:
        stop = min(length, max(size, done + max(1, size // 2)))
        found.append((max(0, stop - size), stop, done))
        done = stop
    return found


@torch.no_grad()
def bits_of(model: CausalLM, ids: Int64, start_id: int, header: Any) -> Float64:
    """The bits that a model needs for each token of a text, the first one included, (len(ids),)."""
    whole, parts = np.append(start_id, ids), list[Float64]()
    device, cut = next(model.parameters()).device, windows(len(ids), header.seq_len)
    with untouched(model, precision("auto", device)):
        for i in range(0, len(cut), SCORED):
            some = cut[i : i + SCORED]
            rows = [
                Row(whole[first : stop + 1], np.array([0, stop + 1 - first]), np.arange(done - first, stop - first))
                for first, stop, done in some
            ]
            batch = flat_batch(rows, np.arange(len(some)), header.pad_id).to(device)
            attend = ATTENTIONS["auto"](batch.segments)
            hidden_LD = model(batch.ids_BT, batch.segments.positions_BT, attend, batch.label_pos_L)
            logp_L = token_log_probs(hidden_LD, model.lm_head, batch.targets_L, chunk_of(model.lm_head))
            parts.append(-logp_L[: batch.labels].cpu().double().numpy() / math.log(2))
    return np.concatenate([np.empty(0), *parts])


def plan(config: CompareConfig, arms: Sequence[Arm], clusters: Sequence[Sequence[str]], held: list[HeldOut],
         start_id: int) -> Iterator[Run]:  # fmt: skip
    """The runs of a comparison.

    Raises:
        ConfigError: the budget is more than an arm has, or less than a step.
    """
    smallest = min(arms, key=lambda arm: arm.tokens)
    stride = smallest.data.header.stride
    rows = (budget_of(config.tokens) or smallest.tokens * 6 // 10) // stride
    if not config.batch_rows <= rows <= smallest.tokens // stride:
        raise ConfigError(
            f"--tokens: {rows * stride:,} tokens are less than a step of {config.batch_rows} rows, or more than the "
            f"one epoch of arm {smallest.name} ({smallest.tokens:,}); give less, or arms with more text"
        )
    drawn = [*pieces(clusters, arms, rows * stride // PIECES)]
    width = sized(config.sizes, PRESETS[config.preset]).hidden_size
    rate = peak_rate(OptimConfig(optimizer=config.optimizer), width, 1.0)

    def run(arm: Arm, seed: int, kind: str = "main", moved: int = 0, ratio: float = 1.0) -> Run:
        data = draw(arm, drawn, seed + moved, rows, start_id)
        values = {"manifest": str(arm.data.manifest), "preset": config.preset, "optimizer": config.optimizer,
                  "lr": rate * ratio, "seed": seed, "batch_rows": config.batch_rows, "shuffle_buffer": rows,
                  "num_workers": 0, "threads": 1, "save_every": 0, "report_to": ("none",)}  # fmt: skip
        own = replace(PretrainConfig.of(**values), sizes=config.sizes)
        return Run(arm.name, seed, kind, data, own, held, start_id, config.primary_pair[1])

    for seed in range(config.seeds):
        yield from (run(arm, seed) for arm in arms)
    yield from (run(arms[0], seed, "aa", AA_SEED) for seed in range(config.aa_pairs))
    for arm in (arms[0], arms[-1]) if config.rates else ():
        for seed in range(min(2, config.seeds)):
            yield from (run(arm, seed, f"x{ratio:.3g}", 0, ratio) for ratio in (1 / 3, 3.0))


def _end_with_parent() -> None:
    """Let this process end when the comparison is killed: nobody would take its result."""

    def wait() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def perform(runs: Sequence[Run], path: Path, jobs: int) -> list[dict[str, Any]]:
    """The results of the runs, in their order; finished ones are taken from the lines of `path`.

    A line that a killed process left unfinished is passed over, and its run made again.
    """
    found = dict[str, dict[str, Any]]()
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    for line in text.split("\n"):
        try:
            record = json.loads(line)
            found[record["key"]] = record["result"]
        except (ValueError, KeyError, TypeError):
            continue
    keys = [run.key for run in runs]
    waiting = [(key, run) for key, run in zip(keys, runs, strict=True) if key not in found]
    LOG.info(f"{len(runs)} runs, {len(runs) - len(waiting)} of them finished earlier")
    if waiting:
        workers = min(jobs or len(os.sched_getaffinity(0)), len(waiting))
        spawned = multiprocessing.get_context("spawn")
        with path.open("a", encoding="utf-8") as f, ProcessPoolExecutor(workers, spawned, _end_with_parent) as pool:
            f.write("\n" if text and not text.endswith("\n") else "")
            futures = {pool.submit(run.result): (key, run) for key, run in waiting}
            try:
                for n, future in enumerate(as_completed(futures), 1):
                    key, run = futures[future]
                    found[key] = future.result()
                    f.write(canonical({"key": key, "result": found[key]}).decode() + "\n")
                    f.flush()
                    os.fsync(f.fileno())
                    LOG.info(f"run {n}/{len(waiting)}: arm {run.arm}, seed {run.seed}, {run.kind}")
            except BaseException:  # do not make runs that nobody would write down
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return [found[key] for key in keys]


# ---------------------------------------------------------------------- statistics


def t_within(t: float, df: int) -> float:
    """P(|T| <= t) of Student's t with a whole number of degrees of freedom (Abramowitz and Stegun, 26.7.3 and 4)."""
    theta = math.atan2(t, math.sqrt(df))
    term = total = math.cos(theta) if df % 2 else 1.0
    for k in range(3 if df % 2 else 2, df - 1, 2):
        term *= (k - 1) / k * math.cos(theta) ** 2
        total += term
    if df % 2 == 0:
        return math.sin(theta) * total
    return 2 / math.pi * (theta + (math.sin(theta) * total if df > 1 else 0.0))


def t_quantile(within: float, df: int) -> float:
    """The t with `t_within(t, df) == within`, by bisection."""
    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if t_within(middle, df) < within else (low, middle)
    return high


def holm(p: Sequence[float]) -> list[float]:
    """The p-values corrected for their number (Holm, 1979), in the order given."""
    corrected, highest = [0.0] * len(p), 0.0
    for rank, i in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        highest = max(highest, min(1.0, p[i] * (len(p) - rank)))
        corrected[i] = highest
    return corrected


def paired(differences: Sequence[float]) -> dict[str, Any]:
    """Mean, and from `MIN_SEEDS` on the 95% interval, p and the smallest effect that was likely to be seen.

    That effect would have been found with a probability of about 80%: (t(95%) + t(80%, one side)) standard errors.
    """
    n, mean = len(differences), float(np.mean(differences))
    found: dict[str, Any] = {"by_seed": list(differences), "mean": mean}
    if n < MIN_SEEDS:
        return found | {"interval": None, "p": None, "smallest_effect": None}
    error = float(np.std(differences, ddof=1)) / math.sqrt(n)
    half = t_quantile(0.95, n - 1) * error
    p = 1 - t_within(abs(mean) / error, n - 1) if error else float(mean == 0)
    smallest = half + t_quantile(0.6, n - 1) * error
    return found | {"interval": [mean - half, mean + half], "p": p, "smallest_effect": smallest}


def over_documents(differences: Float64, sizes: Int64) -> list[float]:
    """The 95% interval of sum(differences) / sum(sizes) over other documents of the kind (linearized ratio)."""
    n, ratio = len(sizes), float(differences.sum() / sizes.sum())
    rest = differences - ratio * sizes
    half = t_quantile(0.95, n - 1) * math.sqrt(n / (n - 1) * float((rest**2).sum())) / float(sizes.sum())
    return [ratio - half, ratio + half]


def summary(config: CompareConfig, arms: Sequence[Arm], held: Sequence[HeldOut], runs: Sequence[Run],
            results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:  # fmt: skip
    """All figures of a comparison, as in compare.json. Differences are bits per byte: below 0, the arm is better."""
    by = {(r["arm"], r["seed"], r["kind"]): r for r in results}
    first, seeds, sets = arms[0].name, range(config.seeds), list[dict[str, Any]]()
    main = [*config.primary_pair]
    for h in held:
        size = int(h.bytes.sum())

        def bpb(arm: str, seed: int, kind: str = "main", name: str = h.name, size: int = size) -> float:
            return float(sum(by[arm, seed, kind]["bits"][name])) / size

        rows, weak = dict[str, Any](), list[str]()
        for arm in arms:
            own = [bpb(arm.name, seed) for seed in seeds]
            local = [by[arm.name, seed, "main"]["local_bits"][h.name] / size for seed in seeds]
            past = all(a < b for a, b in zip(own, local, strict=True))
            weak += [] if past else [arm.name]
            rows[arm.name] = {"bits_per_byte": own, "mean": float(np.mean(own)), "local": local, "past_local": past}
            if h.name == main[1]:
                points = zip(*(by[arm.name, seed, "main"]["curve"] for seed in seeds), strict=True)
                rows[arm.name]["curve"] = [[at[0][0], [bits / size for _, bits in at]] for at in points]
            if arm.name != first:
                bits = [np.array([by[a, s, "main"]["bits"][h.name] for s in seeds]) for a in (arm.name, first)]
                rows[arm.name] |= {
                    "difference": paired([bpb(arm.name, s) - bpb(first, s) for s in seeds]),
                    "over_documents": over_documents((bits[0] - bits[1]).mean(0), h.bytes),
                }
        last, turned, rates = arms[-1].name, False, dict[str, list[float]]()
        for kind in ("x0.333", "x3") if config.rates else ():
            rates[kind] = [bpb(last, s, kind) - bpb(first, s, kind) for s in range(min(2, config.seeds))]
            turned |= float(np.mean(rates[kind])) * rows[last]["difference"]["mean"] < 0
        sets.append({
            "name": h.name, "documents": len(h.ids), "tokens": sum(map(len, h.ids)), "bytes": size,
            "removed": h.removed, "arms": rows, "not_past_local": weak, "rates": rates, "sign_turns": turned,
            "aa": [bpb(first, s, "aa") - bpb(first, s) for s in range(config.aa_pairs)],
        })  # fmt: skip
    others = [one for s in sets for name, row in s["arms"].items() if name != first and [name, s["name"]] != main
              for one in [row["difference"]] if one["p"] is not None]  # fmt: skip
    for one, p in zip(others, holm([one["p"] for one in others]), strict=True):
        one["p_holm"] = p
    holds = {
        "arms": {a.name: {"version": a.data.version, "documents": len(a.docs), "tokens": a.tokens} for a in arms},
        "tokens": len(runs[0].data.packed.ids), "preset": config.preset, "optimizer": config.optimizer,
        "seeds": config.seeds, "lr": runs[0].config.optim.lr, "unpaired": config.unpaired, "primary": main,
    }  # fmt: skip
    return {"holds_for": holds, "sets": sets}


# ---------------------------------------------------------------------- what is shown


def verdict(found: Mapping[str, Any], past: bool, primary: bool) -> str:
    """What one difference says, in words."""
    if not past:
        return "not past local statistics: not ranked"
    if found["interval"] is None:
        return f"too few seeds for an interval ({MIN_SEEDS} are needed)"
    p = found["p"] if primary else found["p_holm"]
    if p < 0.05:
        return ("better" if found["mean"] < 0 else "worse") + f", p = {p:.2g}{'' if primary else ' (Holm)'}"
    return f"no difference seen; likely to be seen from {found['smallest_effect']:.3f} on"


def table(found: Mapping[str, Any]) -> str:
    """The result as text."""
    holds, lines = found["holds_for"], list[str]()
    first = next(iter(holds["arms"]))
    for s in found["sets"]:
        lines += [f"{s['name']}: {s['documents']} documents, {s['tokens']:,} tokens, {s['removed']} removed as overlap"]
        for name, row in s["arms"].items():
            line = f"  {name:<16} {row['mean']:.4f} bits per byte"
            if one := row.get("difference"):
                primary, past = [name, s["name"]] == holds["primary"], not {first, name} & {*s["not_past_local"]}
                interval = "" if one["interval"] is None else " [{:+.4f}, {:+.4f}]".format(*one["interval"])
                documents_ = "documents [{:+.4f}, {:+.4f}]".format(*row["over_documents"])
                named = ", primary" * primary
                line += f"  {one['mean']:+.4f}{interval}, {documents_}{named}: {verdict(one, past, primary)}"
            elif not row["past_local"]:
                line += "  (not past local statistics)"
            lines.append(line)
        lines += [f"  A/A pairs: {', '.join(f'{x:+.4f}' for x in s['aa'])}"] if s["aa"] else []
        lines += ["  with another learning rate the sign turns: do not rank these arms"] if s["sign_turns"] else []
    lines.append(
        f"This holds for this pool, preset {holds['preset']}, {holds['tokens']:,} tokens and {holds['optimizer']}. "
        "Models of this size were never shown to predict large ones."
    )
    return "\n".join(lines)


COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Of arms, told apart by people who do not see all colours (Okabe and Ito, 2008); the first seven differ."""


def curves(arms: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The lines of a picture of bits per byte against tokens: each arm's mean over seeds, in a band of all seeds."""
    points = [(tokens, bits) for row in arms.values() for tokens, by_seed in row["curve"] for bits in by_seed]
    last, low, high = max(x for x, _ in points), min(y for _, y in points), max(y for _, y in points)

    def at(tokens: float, bits: float) -> str:
        return f"{60 + 560 * tokens / last:.1f},{20 + 260 * (high - bits) / ((high - low) or 1):.1f}"

    for bits in (low, high):
        yield f'<text x="4" y="{at(0, bits).partition(",")[2]}">{bits:.3f}</text>'
    yield f'<text x="560" y="310">{last:,.0f} tokens</text>'
    for i, (name, row) in enumerate(arms.items()):
        color, curve = COLORS[i % len(COLORS)], row["curve"]
        band = [at(x, min(y)) for x, y in curve] + [at(x, max(y)) for x, y in reversed(curve)]
        yield f'<polygon points="{" ".join(band)}" fill="{color}" fill-opacity="0.15"/>'
        line = " ".join(at(x, sum(y) / len(y)) for x, y in curve)
        yield f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>'
        yield f'<text x="635" y="{30 + 18 * i}" fill="{color}">{html.escape(name)}</text>'


def differences(found: Mapping[str, Any]) -> str:
    """The differences to the first arm with their intervals, as an SVG picture."""
    rows = [(f"{name} on {s['name']}", row["difference"]) for s in found["sets"]
            for name, row in s["arms"].items() if "difference" in row]  # fmt: skip
    reach = max((abs(x) for _, one in rows for x in (*one["by_seed"], *(one["interval"] or ()))), default=0) or 1.0

    def at(x: float) -> float:
        return round(500 + 260 * x / reach, 1)

    height = 30 * len(rows) + 20
    drawn = [f'<line x1="500" x2="500" y1="0" y2="{height - 20}" stroke="#888"/>']
    for x in (-reach, 0, reach):
        drawn.append(f'<text x="{at(x)}" y="{height - 4}" text-anchor="middle">{x:+.2f}</text>')
    for i, (label, one) in enumerate(rows):
        y = 15 + 30 * i
        drawn.append(f'<text x="4" y="{y + 4}">{html.escape(label)}</text>')
        for a, b in [one["interval"]] if one["interval"] else []:
            drawn.append(f'<line x1="{at(a)}" x2="{at(b)}" y1="{y}" y2="{y}" stroke="#06c" stroke-width="4"/>')
        drawn += [f'<circle cx="{at(x)}" cy="{y}" r="3" fill="#c60"/>' for x in one["by_seed"]]
    head = '<svg xmlns="http://www.w3.org/2000/svg" style="background:#fff" width="800"'
    return f'{head} height="{height}" font-size="13">{"".join(drawn)}</svg>'


def page(found: Mapping[str, Any]) -> str:
    """One HTML page: bits per byte against tokens, the differences with their intervals, and the table."""
    watched = next(s for s in found["sets"] if s["name"] == found["holds_for"]["primary"][1])
    return (
        "<!doctype html><meta charset=utf-8><title>Comparison</title>"
        f"<h1>Bits per byte of {html.escape(watched['name'])} against tokens</h1><p>Lower is better. A line is the "
        f'mean over seeds, its band all seeds.</p><svg width="800" height="320" font-size="13">'
        f"{''.join(curves(watched['arms']))}</svg>"
        "<h1>Differences to the first arm, in bits per byte</h1><p>Left is better. A point is a seed, a line the 95% "
        f"interval over seeds.</p>{differences(found)}<pre>{html.escape(table(found))}</pre>\n"
    )


# ---------------------------------------------------------------------- the command


def compare(config: CompareConfig) -> dict[str, Any]:
    """Train and compare; writes runs.jsonl, compare.json and compare.html into `out`, and returns the figures.

    Raises:
        DatakitError: arms, held-out sets and budget do not fit each other; another process works in `out`.
    """
    out, arms = Path(config.out), open_arms(config)
    with locked(out, required=False):
        tokenizer = ChatTokenizer.load(arms[0].data.tokenizer_files[0].parent)
        start_id = tokenizer.bos_id if tokenizer.bos_id is not None else arms[0].data.header.eos_id
        clusters, held = prepare(config, arms, tokenizer)
        runs = list(plan(config, arms, clusters, held, start_id))
        found = summary(config, arms, held, runs, perform(runs, out / "runs.jsonl", config.jobs))
        write_whole(out / "compare.json", canonical(found) + b"\n")
        write_whole(out / "compare.html", page(found).encode())
    return found


def compare_arms(arms: Mapping[str, str | Path], heldout: Mapping[str, str | Path], **options: Any) -> dict[str, Any]:
    """`compare` from Python, with paths by name and the options of the command; see there.

    Call it under `if __name__ == "__main__":`, because runs are processes that import the script.
    """
    given = {key: tuple(f"{k}={v}" for k, v in d.items()) for key, d in (("arms", arms), ("heldout", heldout))}
    return compare(build(CompareConfig, placed(CompareConfig, given | options), "options"))


def main(argv: Sequence[str], prog: str = "python -m train.compare") -> int:
    """Compare; returns the exit code."""
    found = compare(flags.built(CompareConfig, flags.given(CompareConfig, prog, __doc__, argv)))
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
