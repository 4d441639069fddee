"""Supervised fine-tuning: cross-entropy on the tokens that the data set marks as labels.

    python -m train.sft --manifest manifests/mydata/pack.json --preset 26m --out out/run

With plain text, every token after the first of its document is a label.
"""

import sys
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from datakit.config import section
from datakit.errors import ConfigError
from train import flags
from train.config import more
from train.data import Batch, Mixture
from train.device import usable_device
from train.loop import Loss
from train.loss import DENSE_SHARE, ChunkedConfig, FusedLoss, chunked_loss, label_states, liger_loss
from train.model import CausalLM
from train.start import RunConfig, command


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelConfig(ChunkedConfig):
    """How the loss is computed; no value here changes the result."""

    head_loss: Literal["plain", "liger"] = more("plain", "liger: a fused kernel, where there is one; else plain")

    def __post_init__(self) -> None:
        ChunkedConfig.__post_init__(self)
        if self.loss_chunk and self.head_loss != "plain":
            raise ConfigError(f"loss_chunk is only for head_loss plain: {self.head_loss} stores no logits")


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
            return fused(hidden_LD, head, targets_L), batch.labels
        return chunked_loss(hidden_LD, head, targets_L, config.chunk(head), model.compiled), batch.labels

    return batch_loss


@dataclass(frozen=True, kw_only=True, slots=True)
class SFTConfig(RunConfig):
    """Configuration of a training run on labels."""

    labels: LabelConfig = section(LabelConfig)

    def objective(self, data: Mixture, model: CausalLM) -> Loss:
        """Cross-entropy on the labels.

        Raises:
            ConfigError: an attention kernel that this device does not have.
        """
        device = usable_device(self.loop.device)
        return label_loss(self.labels.on(device), liger_loss(device) if self.labels.head_loss == "liger" else None)


main = command(SFTConfig, "sft", __doc__)

if __name__ == "__main__":
    sys.exit(flags.guarded(main))
