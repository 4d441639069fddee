"""Supervised fine-tuning: cross-entropy on the tokens that the data set marks as labels.

    python -m train.sft --manifest manifests/mydata/pack.json --preset 26m --out out/run

A set of plain text works too: there, every token that follows another of its document is a label.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from torch import Tensor

from datakit.config import option, section
from datakit.errors import ConfigError
from train import flags
from train.attention import grouped_attention
from train.cuda import ATTENTIONS, CUDA_ONLY, fused_loss
from train.data import Batch
from train.loop import Loss, LossSum
from train.loss import chunked_loss, gathered, head_loss, sparse_loss
from train.model import CausalLM
from train.mtp import ahead_loss
from train.start import RunConfig, configured, prepare, usable_device


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelConfig:
    """How the loss is computed; no value changes what it is."""

    label_only: bool = option(
        True, "the last layer computes label positions alone; not with --compile, experts or tokens ahead"
    )
    loss_chunk: int = option(0, "labels whose logits are held at once, to save memory; 0: all of a micro-batch")
    head_loss: Literal["plain", "liger", "cce"] = option(
        "plain", "output head and loss in one kernel on CUDA, by liger-kernel or cut-cross-entropy where installed"
    )
    attention: Literal["grouped", "masked", "flex", "varlen"] = option(
        "grouped", "how attention stays within sequences: by groups of like length, by a mask, or by CUDA's kernels"
    )

    def __post_init__(self) -> None:
        if self.loss_chunk < 0:
            raise ConfigError(f"loss_chunk must not be negative, found {self.loss_chunk}")
        if self.loss_chunk and self.head_loss != "plain":
            raise ConfigError(f"loss_chunk is for head_loss plain: {self.head_loss} holds no logits at all")


@dataclass(frozen=True, kw_only=True, slots=True)
class SftConfig(RunConfig):
    """A training run on labels."""

    labels: LabelConfig = section(LabelConfig)


def loss(model: CausalLM, batch: Batch) -> tuple[Tensor, int]:
    """(loss_sum, count) over the batch's labels: the plain way."""
    hidden_BTD = model(batch.ids_BT, batch.segments.positions_BT, grouped_attention(batch.segments))
    return sparse_loss(hidden_BTD, model.lm_head, *batch.counted)


def label_loss(config: LabelConfig) -> Loss:
    """`loss` with the savings of `config`."""
    attention = ATTENTIONS[config.attention]

    def lean(model: CausalLM, batch: Batch) -> LossSum | tuple[Tensor, int]:
        attend, where = attention(batch.segments), (batch.ids_BT, batch.segments.positions_BT)
        if config.label_only and not model.config.reads_everything:
            return summed(model.hidden_at(*where, attend, batch.label_pos_L)[: batch.labels], model, batch)
        hidden_BTD = model(*where, attend)
        found = summed(gathered(hidden_BTD, batch.counted[0]), model, batch)
        if not model.ahead:
            return found
        ahead = ahead_loss(model, hidden_BTD, batch, attend)
        return LossSum(found[0] + ahead, found[1], {"next_loss": found[0], "ahead_loss": ahead})

    def summed(hidden_LD: Tensor, model: CausalLM, batch: Batch) -> tuple[Tensor, int]:
        if config.loss_chunk:
            return chunked_loss(hidden_LD, model.lm_head, batch.counted[1], config.loss_chunk)
        if config.head_loss != "plain":
            return fused_loss(config.head_loss, hidden_LD.device)(hidden_LD, model.lm_head, batch.counted[1])
        return head_loss(hidden_LD, model.lm_head, batch.counted[1])

    return lean


def objective(config: SftConfig) -> Loss:
    """The run's loss: compiled layers have one shape a bucket, which the labels of a batch have not.

    Raises:
        ConfigError: a kernel that the device or the installation has not.
    """
    device = usable_device(config.loop.device)
    if config.labels.attention in CUDA_ONLY and device.type != "cuda":
        raise ConfigError(f"--attention {config.labels.attention} is a kernel for CUDA; this run is on {device.type}")
    if config.labels.head_loss != "plain":
        fused_loss(config.labels.head_loss, device)
    return label_loss(replace(config.labels, label_only=config.labels.label_only and not config.loop.compile))


def main(argv: Sequence[str]) -> int:
    """Train; returns the exit code."""
    config = configured(SftConfig, "train.sft", __doc__, argv)
    return prepare(config, objective(config)).run()


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
