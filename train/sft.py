"""Supervised fine-tuning: cross-entropy on the tokens that the data set marks as labels.

    python -m train.sft --manifest manifests/mydata/pack.json --preset 26m --out out/run

With plain text, every token after the first of its document is a label.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from datakit.config import option, section
from datakit.errors import ConfigError
from train import flags
from train.data import Batch
from train.device import usable_device
from train.loop import Loss
from train.loss import (
    DENSE_SHARE,
    ChunkedConfig,
    FusedLoss,
    chunked_loss,
    head_loss,
    label_states,
    liger_loss,
)
from train.model import CausalLM
from train.start import RunConfig, configured, finish, prepare


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelConfig(ChunkedConfig):
    """How the loss is computed; no value here changes the result, except z_loss."""

    head_loss: Literal["plain", "liger"] = option(
        "plain", "liger: a fused kernel, where there is CUDA and liger-kernel; else plain"
    )
    z_loss: float = option(0.0, "weight of log(Z)^2, such as 1e-4, against drifting logits (PaLM, 2022); 0: off")

    def __post_init__(self) -> None:
        ChunkedConfig.__post_init__(self)
        if self.z_loss < 0 or (self.z_loss and self.head_loss != "plain"):
            raise ConfigError("z_loss must not be negative, and is only for head_loss plain")
        if self.loss_chunk and self.head_loss != "plain":
            raise ConfigError(f"loss_chunk is only for head_loss plain: {self.head_loss} stores no logits")


@dataclass(frozen=True, kw_only=True, slots=True)
class SftConfig(RunConfig):
    """Configuration of a training run on labels."""

    labels: LabelConfig = section(LabelConfig)


def label_loss(config: LabelConfig, fused: FusedLoss | None = None) -> Loss:
    """The objective, computed as `config` says: (loss_sum, count) over the labels of a batch.

    `fused` is a kernel for the head and its loss. In batches in which nearly every position counts, as in pretraining,
    no hidden state is moved: the other positions have the target -100.
    """

    def batch_loss(model: CausalLM, batch: Batch) -> tuple[Tensor, int]:
        attend, head = config.attend(batch), model.lm_head
        if batch.labels >= DENSE_SHARE * batch.ids_BT.numel():
            hidden_LD = model(batch.ids_BT, batch.segments.positions_BT, attend).flatten(0, 1)
            targets_L = batch.every_target()
        else:
            hidden_LD, targets_L = label_states(model, batch, config, attend, filled=True), batch.targets_L
        if fused:
            return fused(hidden_LD, head, targets_L)[0], batch.labels
        if (chunk := config.chunk(head)) < len(targets_L):
            return chunked_loss(hidden_LD, head, targets_L, chunk, config.z_loss)[0], batch.labels
        return head_loss(hidden_LD, head, targets_L, config.z_loss)[0], batch.labels

    return batch_loss


def objective(config: SftConfig) -> Loss:
    """The loss of the run.

    Raises:
        ConfigError: an attention kernel that this device does not have.
    """
    device = usable_device(config.loop.device)
    return label_loss(config.labels.on(device), liger_loss(device) if config.labels.head_loss == "liger" else None)


def main(argv: Sequence[str], prog: str = "python -m train.sft") -> int:
    """Train; returns the exit code."""
    config = configured(SftConfig, prog, __doc__, argv)
    return finish(prepare(config, objective(config)), prog)


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
