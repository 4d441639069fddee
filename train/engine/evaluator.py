"""What is looked at while a run trains: the loss on rows that it never trains on, and what the model says.

Nothing of it changes the training: no weight, no gradient, no generator.
"""

import contextlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812

from datakit.config import option
from datakit.errors import ConfigError, InputError, ManifestError, UsageError
from datakit.manifest import Manifest, find_parent, load
from datakit.pack.chat import ChatTokenizer
from train.data.batches import Batch, DataConfig, StepStream
from train.data.order import Int64
from train.data.packed import Mixture, PackedSet
from train.engine.device import AUTOCAST
from train.model.attention import grouped_attention
from train.model.decoder import CausalLM
from train.model.sample import SampleConfig, TextStream, generate

FILE_BITS = 40
"""A row_key is the raw file's number, shifted left by this, and the record's number in it."""


@dataclass(frozen=True, slots=True)
class Score:
    """Label tokens and their summed loss, in nats."""

    labels: int
    loss_sum: float

    @property
    def loss(self) -> float:
        """Mean over the label tokens; NaN without any."""
        return self.loss_sum / self.labels if self.labels else math.nan

    @property
    def perplexity(self) -> float:
        """The loss's exponential: as unsure as among so many equally likely tokens."""
        return math.exp(self.loss) if self.loss < 700 else math.inf

    def record(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {"label_tokens": self.labels, "loss": self.loss, "perplexity": self.perplexity}


def evaluate(
    model: CausalLM, sets: Sequence[PackedSet], batches: DataConfig, precision: str, max_rows: int = 0
) -> dict[str, Score]:
    """The score of every source file, by its name; every row once, in the file's order.

    Of `batches` the sizes count; `max_rows` of each set are predicted, whole batches from all over it; 0: all.
    """
    found = dict[str, Score]()
    for data in sets:
        for name, score in _of_set(model, data, batches, precision, max_rows).items():
            before = found.get(name, Score(0, 0.0))
            found[name] = Score(before.labels + score.labels, before.loss_sum + score.loss_sum)
    return {name: found[name] for name in sorted(found)}


@torch.no_grad()
def _of_set(model: CausalLM, data: PackedSet, batches: DataConfig, precision: str, max_rows: int) -> dict[str, Score]:
    device = next(model.parameters()).device
    sizes = tuple(s for s in batches.bucket_sizes if s <= data.header.seq_len)
    sizes = sizes if sizes and sizes[-1] == data.header.seq_len else ()
    one = DataConfig(batch_rows=batches.batch_rows, bucket_sizes=sizes, order="sequential", num_workers=0)
    stream = StepStream(data, one, seed=0)
    files = data.packed.sources["row_key"] >> np.uint64(FILE_BITS)
    names, found, steps = _file_names(data.manifest), dict[str, Score](), stream.plan.steps_per_epoch
    some = min(steps, -(-max_rows // one.batch_rows)) if max_rows else steps
    for batch in (batch for i in range(some) for batch in stream.batches(i * steps // some)):
        with torch.autocast(device.type, AUTOCAST.get(precision), enabled=precision in AUTOCAST):
            losses_L = _losses(model, batch.to(device))
        file_L = files[_sequence_of_labels(data, batch)].astype(int)
        for file in np.unique(file_L).tolist():
            name = names[file] if file < len(names) else f"file {file}"
            before, losses = found.get(name, Score(0, 0.0)), losses_L[file_L == file]
            found[name] = Score(before.labels + len(losses), before.loss_sum + float(losses.sum()))
    return found


def total(scores: dict[str, Score]) -> Score:
    """The score of all sources together."""
    return Score(sum(s.labels for s in scores.values()), sum(s.loss_sum for s in scores.values()))


def _losses(model: CausalLM, batch: Batch) -> np.ndarray[Any, np.dtype[np.float64]]:
    attend = grouped_attention(batch.segments)
    hidden_LD = model.hidden_at(batch.ids_BT, batch.segments.positions_BT, attend, batch.label_pos_L)
    losses_L = F.cross_entropy(model.lm_head(hidden_LD).float(), batch.targets_L, reduction="none")
    found: np.ndarray[Any, np.dtype[np.float64]] = losses_L.cpu().numpy().astype(np.float64)
    return found


def _sequence_of_labels(data: PackedSet, batch: Batch) -> Int64:
    """Of each label of a batch, the place of its sequence among the set's source records, (L,)."""
    width, flat_L = batch.ids_BT.shape[1], batch.label_pos_L.numpy()
    firsts = np.searchsorted(data.packed.sources["row"], batch.rows)
    found = np.empty(len(flat_L), np.int64)
    for i, row in enumerate(batch.rows):
        here = flat_L // width == i
        bounds = data.packed.segments_of(int(row))
        found[here] = firsts[i] + np.searchsorted(bounds, flat_L[here] % width, side="right") - 1
    return found


def _file_names(manifest: Path) -> list[str]:
    """The raw files that a packed set was made of, by number; empty where its parents are not at hand."""
    for _, found in _ancestors(manifest):
        if raw := [parent["raw"] for parent in found.parents if "raw" in parent]:
            return raw
    return []


def _ancestors(path: Path) -> Iterator[tuple[Path, Manifest]]:
    place: Path | None = path
    while place is not None and place.is_file():
        found = load(place)
        yield place, found
        parents = [p for p in found.parents if p.get("manifest") not in (None, "tokenizer")]
        place = find_parent(place, parents[0]) if parents else None


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchConfig:
    """When to look, and at what."""

    eval_every: int = option(0, "steps between evaluations, the last step has one too; 0: never")
    eval_manifest: str = option(
        "", "pack manifest to predict: its validation split, else its rows; none: the training manifest's split"
    )
    eval_rows: int = option(0, "rows that are predicted, from all over the set; 0: all")
    sample_prompts: str = option("", "text file of prompts, one a line, that are answered at every evaluation")
    sample_tokens: int = option(64, "tokens of an answer at most")
    sample_temperature: float = option(0.0, "of the answers; 0: always the likeliest token")

    def __post_init__(self) -> None:
        if min(self.eval_every, self.eval_rows, self.sample_temperature) < 0 or self.sample_tokens < 1:
            raise ConfigError(
                "eval_every, eval_rows and sample_temperature must not be negative, sample_tokens at least 1"
            )
        if (self.eval_manifest or self.sample_prompts) and not self.eval_every:
            raise UsageError("say how often to look with --eval-every")


def validation_sets(config: WatchConfig, data: Mixture, max_positions: int) -> list[PackedSet]:
    """What is predicted: the validation split of `eval_manifest`, else its rows, else the training manifests' splits.

    Raises:
        ManifestError: another tokenizer than the training's.
        InputError: there is no split, what is there are preference pairs, or rows longer than the model.
    """
    manifests = [Path(config.eval_manifest)] if config.eval_manifest else data.manifests
    found = [s for m in manifests if "validation" in load(m).facts for s in PackedSet.open_all(m, "validation")]
    if not found and config.eval_manifest:
        found = PackedSet.open_all(manifests[0])
    if not found:
        raise InputError(
            f"{data.name}: has no validation split; pack with --validation 0.01, or name rows with --eval-manifest"
        )
    for one in found:
        if one.header.rows_per_unit != 1:
            raise InputError(
                f"{one.manifest}: holds preference pairs, and a loss over rejected answers says nothing: name text or "
                f"conversations with --eval-manifest"
            )
        if one.header.seq_len > max_positions:
            raise InputError(
                f"{one.manifest}: rows of {one.header.seq_len} tokens; the model's length is {max_positions}"
            )
        for name in ("sha256", "vocab_size"):
            if (theirs := one.tokenizer.get(name)) != (ours := data.tokenizer.get(name)):
                raise ManifestError(
                    f"{one.manifest} was made with a tokenizer of {name} {theirs!r}, and {data.name} with {ours!r}: "
                    f"make both with one tokenizer"
                )
    return found


@dataclass(frozen=True, slots=True)
class Prompts:
    """What the model is asked, and how."""

    texts: tuple[str, ...]
    ids: tuple[list[int], ...]
    tokenizer: ChatTokenizer
    config: SampleConfig

    @classmethod
    def read(cls, config: WatchConfig, data: Mixture, max_positions: int) -> "Prompts":
        """The prompts of a file, through the template of the training data where that holds conversations.

        Raises:
            InputError: no prompt in it, or one that leaves no room for an answer.
        """
        path = Path(config.sample_prompts)
        texts = tuple(line for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
        if not texts:
            raise InputError(f"{path}: holds no prompt; expected one a line")
        tokenizer = ChatTokenizer.load(data.tokenizer_files[0].parent)
        plain = data.header.task == "pretrain"
        ids = tuple(
            tokenizer.encode_text(t) if plain else tokenizer.encode_prompt([{"role": "user", "content": t}])
            for t in texts
        )
        if (longest := max(map(len, ids))) >= max_positions:
            raise InputError(f"{path}: a prompt of {longest} tokens; the model's length is {max_positions}")
        sample = SampleConfig(max_new_tokens=config.sample_tokens, temperature=config.sample_temperature)
        return cls(texts, ids, tokenizer, sample)

    def answers(self, model: CausalLM) -> list[str]:
        """What the model says to each."""
        streams = [TextStream(lambda ids: self.tokenizer.decode(ids, skip_special_tokens=True)) for _ in self.ids]
        said = [""] * len(streams)
        for tokens in generate(model, self.ids, frozenset(self.tokenizer.stop_ids()), self.config):
            for i, token in enumerate(tokens):
                said[i] += "" if token is None else streams[i].add(token)
        return [begun + stream.end() for begun, stream in zip(said, streams, strict=True)]


@dataclass(frozen=True, slots=True)
class Watch:
    """The evaluations of a run."""

    config: WatchConfig
    sets: list[PackedSet]
    batches: DataConfig
    precision: str
    prompts: Prompts | None

    @classmethod
    def of(cls, config: WatchConfig, data: Mixture, batches: DataConfig, precision: str, length: int) -> "Watch":
        """The evaluations of a run on `data`, of a model of `length` positions.

        Raises:
            DatakitError: rows or prompts that do not fit it.
        """
        prompts = Prompts.read(config, data, length) if config.sample_prompts else None
        return cls(config, validation_sets(config, data, length), batches, precision, prompts)

    def due(self, step: int, done: bool) -> bool:
        """Whether to look after this step."""
        return done or step % self.config.eval_every == 0

    def look(self, model: CausalLM, step: int) -> dict[str, Any]:
        """Evaluate and print; the step's record for eval.jsonl."""
        with untouched(model):
            found = evaluate(model, self.sets, self.batches, self.precision, self.config.eval_rows)
            answers = self.prompts.answers(model) if self.prompts else []
        said = list(zip(self.prompts.texts, answers, strict=True)) if self.prompts else []
        everything = total(found)
        for name, score in [("all", everything), *(found.items() if len(found) > 1 else ())]:
            print(_line(step, name, score), flush=True)
        for prompt, answer in said:
            texts = (json.dumps(t, ensure_ascii=False) for t in (prompt, answer))
            print(f"[sample] step={step} {' -> '.join(texts)}", flush=True)
        return _record(step, everything, found, said)


def _line(step: int, name: str, score: Score) -> str:
    return (
        f"[eval] step={step} source={name} loss={score.loss:.4f} perplexity={score.perplexity:.2f} "
        f"label_tokens={score.labels}"
    )


def _record(step: int, everything: Score, found: dict[str, Score], said: list[tuple[str, str]]) -> dict[str, Any]:
    sources = {name: score.record() for name, score in found.items()}
    samples = [{"prompt": prompt, "completion": answer} for prompt, answer in said]
    return {"step": step} | everything.record() | {"sources": sources, "samples": samples}


@contextlib.contextmanager
def untouched(model: CausalLM) -> Iterator[None]:
    """Within, the model is as in use; afterwards its mode and the generators are as before."""
    training, devices = model.training, range(torch.cuda.device_count())
    model.eval()
    try:
        # a compiled layer would be compiled again for every length of a prompt
        with torch.random.fork_rng(devices), torch.compiler.set_stance("force_eager"):
            yield
    finally:
        model.train(training)
