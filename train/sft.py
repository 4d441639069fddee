"""Supervised fine-tuning: cross-entropy on the tokens that the data set marks as labels.

    python -m train.sft --manifest manifests/mydata/pack.json --preset 26m --out out/run

With plain text, every token after the first of its document is a label.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal

import torch
from torch import Tensor, nn

from datakit.config import section
from datakit.errors import ConfigError
from datakit.pack.format import IGNORED
from train.config import LOG, more
from train.data import Batch, Mixture
from train.loop import Loss
from train.loss import DENSE_SHARE, LossConfig, chunk_of, chunked_loss, label_states
from train.model import CausalLM
from train.start import RunConfig, command


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelConfig(LossConfig):
    """How the loss is computed; no value here changes the result."""

    head_loss: Literal["plain", "liger"] = more("plain", "liger: a fused kernel, where there is one; else plain")

    def __post_init__(self) -> None:
        LossConfig.__post_init__(self)
        if self.loss_chunk and self.head_loss != "plain":
            raise ConfigError(f"loss_chunk is only for head_loss plain: {self.head_loss} stores no logits")


FusedLoss = Callable[[Tensor, nn.Linear, Tensor], Tensor]
"""Hidden states (L, D), the head and one target each -> the summed loss."""


def liger_loss(device: torch.device) -> FusedLoss | None:
    """`head_loss` by the fused kernel of Liger (Hsu et al., 2024), which stores no logits.

    None without CUDA or the package: the plain loss, which has the same value, takes its place, and a line says so.
    """
    missing = "CUDA" if device.type != "cuda" else "" if find_spec("liger_kernel") else "the package liger-kernel"
    if missing:
        LOG.info(f"--head-loss liger needs {missing}: the plain loss, which has the same value, is used")
        return None
    import liger_kernel.transformers.fused_linear_cross_entropy as liger

    # without accum_dtype, sums of many chunks are rounded to bf16
    return over_labels(partial(liger.LigerFusedLinearCrossEntropyLoss, reduction="sum", accum_dtype=torch.float32))


def over_labels(kernel: Callable[..., Any]) -> FusedLoss:
    """A loss by `kernel(softcap=...)`, called with (weight, hidden, targets); no labels are no call."""

    def loss(hidden_LD: Tensor, head: nn.Linear, targets_L: Tensor) -> Tensor:
        if not len(targets_L):
            return hidden_LD.sum() * 0
        with torch.autocast(hidden_LD.device.type, enabled=False):
            fused = kernel(softcap=getattr(head, "softcap", None))
            return fused(head.weight.to(hidden_LD.dtype), hidden_LD, targets_L).float()

    return loss


def label_loss(config: LabelConfig, fused: FusedLoss | None = None) -> Loss:
    """The objective, computed as `config` says: (loss_sum, count) over the labels of a batch.

    `fused` is a kernel for the head and its loss. In batches in which nearly every position counts, as in pretraining,
    no hidden state is moved: the other positions have the target -100.
    """

    def batch_loss(model: CausalLM, batch: Batch) -> tuple[Tensor, int]:
        attend, head = config.attend(batch), model.lm_head
        if batch.labels >= DENSE_SHARE * batch.ids_BT.numel():
            hidden_LD = model(batch.ids_BT, batch.segments.positions_BT, attend).flatten(0, 1)
            targets_L = torch.full_like(batch.ids_BT.flatten(), IGNORED).scatter_(0, *batch.counted)
        else:
            hidden_LD, targets_L = label_states(model, batch, config, attend, filled=True), batch.targets_L
        if fused:
            return fused(hidden_LD, head, targets_L), batch.labels
        chunk = config.loss_chunk or chunk_of(head)
        return chunked_loss(hidden_LD, head, targets_L, chunk, model.compiled), batch.labels

    return batch_loss


@dataclass(frozen=True, kw_only=True, slots=True)
class SFTConfig(RunConfig):
    """Configuration of a training run on labels."""

    labels: LabelConfig = section(LabelConfig)

    def objective(self, data: Mixture, model: CausalLM, device: torch.device) -> Loss:
        """Cross-entropy on the labels."""
        fused = liger_loss(device) if self.labels.head_loss == "liger" else None
        return label_loss(self.labels, fused)


main = command(SFTConfig, __name__, __doc__)
