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
from train.data.batches import Batch
from train.engine import flags
from train.engine.device import usable_device
from train.engine.loop import Loss
from train.engine.start import RunConfig, configured, finish, prepare
from train.model.decoder import CausalLM
from train.model.loss import ChunkedConfig, chunked_loss, head_loss, label_states, liger_loss


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelConfig(ChunkedConfig):
    """How the loss is computed; no value here changes the result, except z_loss."""

    head_loss: Literal["plain", "liger"] = option("plain", "liger: a fused kernel on CUDA, needs liger-kernel")
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


def label_loss(config: LabelConfig) -> Loss:
    """The objective, computed as `config` says: (loss_sum, count) over the labels of a batch."""

    def batch_loss(model: CausalLM, batch: Batch) -> tuple[Tensor, int]:
        hidden_LD = label_states(model, batch, config, config.attend(batch), filled=True)
        if config.loss_chunk:
            hidden_LD, targets_L = hidden_LD[: batch.labels], batch.counted[1]
            return chunked_loss(hidden_LD, model.lm_head, targets_L, config.loss_chunk, config.z_loss)
        if config.head_loss != "plain":
            return liger_loss(hidden_LD.device)(hidden_LD[: batch.labels], model.lm_head, batch.counted[1])
        return head_loss(hidden_LD, model.lm_head, batch.targets_L, config.z_loss)[0], batch.labels  # padding: loss 0

    return batch_loss


def objective(config: SftConfig) -> Loss:
    """The loss of the run.

    Raises:
        ConfigError: a kernel that this device or installation does not have.
    """
    labels = config.labels.on(usable_device(config.loop.device))
    if labels.head_loss != "plain":
        liger_loss(usable_device(config.loop.device))
    return label_loss(labels)


def main(argv: Sequence[str], prog: str = "python -m train.sft") -> int:
    """Train; returns the exit code."""
    config = configured(SftConfig, prog, __doc__, argv)
    return finish(prepare(config, objective(config)), prog)


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
