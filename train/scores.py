"""How well a model predicts a packed set: loss and perplexity, of each source file and of all.

Shapes: L labels, S sequences of the set.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812

from datakit.manifest import Manifest, find_parent, load
from train.attention import grouped_attention
from train.data import Batch, DataConfig, PackedSet, StepStream
from train.model import CausalLM
from train.order import Int64
from train.precision import AUTOCAST

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
