"""Loss and perplexity on held-out rows, by source file: a command, and the same during a run.

    python -m train.eval --model out/run --manifest manifests/held_out/pack.json

Evaluation does not change the training: weights, gradients and random generators stay as they are. Benchmarks such as
MMLU or GSM8K are lm-evaluation-harness's on an exported folder (docs/runs.md).

Shapes: L labels.
"""

import contextlib
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from datakit.config import at_least, option, section
from datakit.errors import InputError, ManifestError, UsageError
from datakit.manifest import find_parent, load
from datakit.storage import pull_result
from train import flags
from train.config import LOG, EvaluatorConfig
from train.data import VERIFY_HELP, Batch, DataConfig, Mixture, PackedSet, StepStream
from train.device import autocast, precision
from train.generate import DeviceConfig
from train.loss import LossConfig, label_log_probs
from train.model import CausalLM
from train.ranks import Ranks
from train.stream import Int64
from train.weights import read_fitting

if TYPE_CHECKING:
    from train.start import RunConfig

FILE_BITS = 40
"""A row_key is (number of the raw file << FILE_BITS) + number of the record in the file."""


@dataclass(frozen=True, slots=True)
class Score:
    """Number of label tokens, and their summed loss in nats."""

    labels: int = 0
    loss_sum: float = 0.0

    def __add__(self, other: "Score") -> "Score":
        return Score(self.labels + other.labels, self.loss_sum + other.loss_sum)

    @property
    def loss(self) -> float:
        """Mean over the label tokens; NaN if there are none."""
        return self.loss_sum / self.labels if self.labels else math.nan

    def record(self) -> dict[str, Any]:
        """As a JSON object; the perplexity is exp(loss)."""
        perplexity = math.exp(self.loss) if not self.loss >= 700 else math.inf
        return {"label_tokens": self.labels, "loss": self.loss, "perplexity": perplexity}


def evaluate(
    model: CausalLM, sets: Sequence[PackedSet], batches: DataConfig, how: str, max_rows: int = 0,
    ranks: Ranks | None = None, labels: LossConfig | None = None,
) -> dict[str, Score]:  # fmt: skip
    """The score of every source file, by name; every row is predicted once, in file order.

    `batches` gives the batch and bucket sizes, `how` the precision, `labels` how losses are computed. With `max_rows`,
    evenly spaced batches with about that many rows of each set are predicted; 0: all rows. Ranks share the batches, and
    all get the whole result. As in training, the logits of a chunk of labels are in memory at a time.
    """
    found, ranks, labels = defaultdict[str, Score](Score), ranks or Ranks(), labels or LossConfig()
    whole = [Mixture([*parts]) for _, parts in groupby(sets, lambda part: (part.manifest, part.header.seq_len))]
    parts = [_of_set(model, data, batches, how, max_rows, ranks, labels) for data in whole]
    for own in ranks.gathered(parts):
        for name, score in (pair for of_set in own for pair in of_set.items()):
            found[name] += score
    return {name: found[name] for name in sorted(found)}


@torch.no_grad()
def _of_set(
    model: CausalLM, data: Mixture, batches: DataConfig, how: str, max_rows: int, ranks: Ranks, labels: LossConfig
) -> dict[str, Score]:
    device = next(model.parameters()).device
    sizes = tuple(s for s in batches.bucket_sizes if s <= data.header.seq_len)
    sizes = sizes if sizes and sizes[-1] == data.header.seq_len else ()
    one = DataConfig(batch_rows=batches.batch_rows, bucket_sizes=sizes, shuffle_buffer=0, num_workers=0)
    stream = StepStream(data, one, seed=0)
    names, found = [entry["raw"] for entry in raw_files(data.manifest)], defaultdict[str, Score](Score)
    steps = stream.plan.steps_per_epoch
    some = min(steps, -(-max_rows // one.batch_rows)) if max_rows else steps
    for turn in range(-(-some // ranks.size)):
        i = turn * ranks.size + ranks.rank
        (batch,) = stream.batches(min(i, some - 1) * steps // some)
        with autocast(device, how):
            losses_L = -label_log_probs(model, batch.to(device), labels).cpu().double().numpy()
        if i >= some:  # with a sharded model all ranks must run as often
            continue
        file_L = _files_of_labels(data, batch)
        for file in np.unique(file_L).tolist():
            name = names[file] if file < len(names) else f"file {file}"
            losses = losses_L[file_L == file]
            found[name] += Score(len(losses), float(losses.sum()))
    return found


def total(scores: dict[str, Score]) -> Score:
    """The score over all sources."""
    return sum(scores.values(), Score())


def _files_of_labels(data: Mixture, batch: Batch) -> Int64:
    """The number of the raw file that each label's sequence comes from, (L,)."""
    at_L = batch.label_pos_L.numpy()
    number_L = batch.segments.sequence_BT.flatten()[batch.label_pos_L].numpy() - 1  # in its row
    found = np.empty(len(at_L), np.int64)
    for i, (part, row) in enumerate(map(data.find, batch.rows.tolist())):
        here = at_L // batch.ids_BT.shape[1] == i
        first = int(part.packed.segment_index[row, 0]) - row  # each row has one boundary more than sequences
        found[here] = part.packed.sources["row_key"][first + number_L[here]] >> np.uint64(FILE_BITS)
    return found


def raw_files(manifest: Path) -> list[dict[str, Any]]:
    """The entries of a packed set's raw files (`raw`, `bytes`, `sha256`), by number; empty if a parent is missing."""
    path: Path | None = manifest
    while path is not None and path.is_file():
        found = load(path)
        if raw := [parent for parent in found.parents if "raw" in parent]:
            return raw
        parents = [p for p in found.parents if p.get("manifest") not in (None, "tokenizer")]
        path = find_parent(path, parents[0]) if parents else None
    return []


def validation_sets(config: EvaluatorConfig, data: Mixture, max_positions: int, verify: bool) -> list[PackedSet]:
    """The sets to evaluate on: the validation split of `eval_manifest`, else its rows, else the training data's splits.

    Raises:
        ManifestError: not the tokenizer of the training data.
        InputError: no validation split, preference pairs, or rows longer than the model allows.
    """
    if config.eval_manifest:
        found = held_out(pull_result(config.eval_manifest), verify)
    else:  # these were checked with the training data
        found = [s for m in data.manifests if "validation" in load(m).facts for s in held_out(m, verify=False)]
    if not found:
        raise InputError(f"{data.name}: has no validation split; pack with --validation 0.01, or set --eval-manifest")
    for one in found:
        if one.header.seq_len > max_positions:
            raise InputError(f"{one.manifest}: rows of {one.header.seq_len} tokens; the model allows {max_positions}")
        for name in ("sha256", "vocab_size"):
            if (theirs := one.tokenizer.get(name)) != (ours := data.tokenizer.get(name)):
                raise ManifestError(f"{one.manifest}: a tokenizer of {name} {theirs!r}, and {data.name} with {ours!r}")
    return found


def held_out(manifest: Path, verify: bool, split: str = "auto") -> list[PackedSet]:
    """The rows of a split; `auto` is the validation split, if there is one, else all rows.

    Raises:
        InputError: preference pairs.
    """
    whole = split == "train" or (split == "auto" and "validation" not in load(manifest).facts)
    found = PackedSet.open_all(manifest, "packed" if whole else "validation", verify)
    if found[0].header.rows_per_unit != 1:
        raise InputError(f"{manifest}: holds preference pairs; a loss over rejected answers is meaningless")
    return found


def evaluator(
    config: "RunConfig", data: Mixture, max_positions: int, ranks: Ranks
) -> Callable[[CausalLM, int], dict[str, Any]]:
    """What evaluates a model of a run on `data` at a step: it logs the losses, and returns the record for eval.jsonl.

    Raises:
        DatakitError: rows do not fit the model, which has `max_positions`.
    """
    given = validation_sets(config.evaluator, data, max_positions, config.data.verify)
    sets = Mixture(given).unlabelled().sets if config.every_token else given  # what is trained is what is measured
    how, rows = precision(config.loop.dtype, ranks.device), config.evaluator.eval_rows

    def of_step(model: CausalLM, step: int) -> dict[str, Any]:
        with untouched(model, how):
            found = evaluate(model, sets, config.data, how, rows, ranks, config.labels)
        sources, everything = {name: score.record() for name, score in found.items()}, total(found).record()
        for name, score in ({"all": everything} | (sources if len(sources) > 1 else {})).items():
            numbers = f"loss={score['loss']:.4f} perplexity={score['perplexity']:.2f}"
            LOG.info(f"[eval] step={step} source={name} {numbers} label_tokens={score['label_tokens']}")
        return {"step": step, **everything, "sources": sources}

    return of_step


@contextlib.contextmanager
def untouched(model: CausalLM, precision: str) -> Iterator[None]:
    """Eval mode and autocast inside the context; the model's mode and the random generators are restored afterwards."""
    training, devices = model.training, range(torch.cuda.device_count())
    model.eval()
    try:
        # compiled layers would be compiled again for every prompt length
        half = autocast(next(model.parameters()).device, precision)
        with torch.random.fork_rng(devices), torch.compiler.set_stance("force_eager"), half:
            yield
    finally:
        model.train(training)


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalConfig(DeviceConfig):
    """Model and data."""

    manifest: str = option("", "pack manifest to evaluate on")
    split: Literal["auto", "train", "validation"] = option("auto", "part of the manifest; auto: validation, if any")
    max_rows: int = option(0, "rows per row length to evaluate on, evenly spaced; 0: all")
    batch_rows: int = option(8, "packed rows per batch")
    labels: LossConfig = section(LossConfig)
    verify: bool = option(True, VERIFY_HELP)
    json: bool = option(False, "print the scores as one JSON object")

    def __post_init__(self) -> None:
        DeviceConfig.__post_init__(self)
        at_least(self, 1, "batch_rows")
        at_least(self, 0, "max_rows")
        if not self.manifest:
            raise UsageError("name a pack manifest with --manifest, and the model with --model")


def scores(config: EvalConfig) -> dict[str, Score]:
    """The score of each source file.

    Raises:
        DatakitError: model and data do not fit each other.
    """
    device = config.used()
    sets = held_out(pull_result(config.manifest), config.verify, config.split)
    model = read_fitting(config.model, Mixture(sets)).to(device)
    how = "bf16" if config.half(device) else "fp32"
    return evaluate(model, sets, DataConfig(batch_rows=config.batch_rows), how, config.max_rows, None, config.labels)


def table(found: dict[str, dict[str, Any]]) -> str:
    """A text table: a line for each record."""
    wide = max(map(len, [*found, "source"]))
    lines = [f"{'source':<{wide}}  {'label tokens':>12}  {'loss':>8}  {'perplexity':>11}"]
    for name, s in found.items():
        lines.append(f"{name:<{wide}}  {s['label_tokens']:>12,}  {s['loss']:>8.4f}  {s['perplexity']:>11.2f}")
    return "\n".join(lines)


def report(config: EvalConfig) -> None:
    """Print the scores."""
    found = scores(config)
    sources, everything = {name: one.record() for name, one in found.items()}, total(found).record()
    print(json.dumps({"all": everything, "sources": sources}) if config.json else table(sources | {"all": everything}))


main = flags.command(EvalConfig, __name__, __doc__, report)
