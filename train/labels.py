"""The hidden states that a loss reads: at the labels of a batch alone, by the attention that was chosen.

Shapes: B rows, T positions, L labels, D hidden.
"""

from dataclasses import dataclass
from typing import Literal, TypeVar

from torch import Tensor

from datakit.config import option
from datakit.errors import ConfigError
from train.attention import SegmentAttention
from train.cuda import ATTENTIONS, CUDA_ONLY
from train.data import Batch
from train.device import usable_device
from train.loop import LoopConfig
from train.loss import gathered
from train.model import CausalLM


@dataclass(frozen=True, kw_only=True, slots=True)
class StatesConfig:
    """How the loss is computed; no value changes what it is."""

    label_only: bool = option(True, "the last layer computes label positions alone; not with experts or tokens ahead")
    attention: Literal["grouped", "masked", "flex", "varlen"] = option(
        "grouped", "how attention stays within sequences: by groups of like length, by a mask, or by CUDA's kernels"
    )

    def attend(self, batch: Batch) -> SegmentAttention:
        """Attention within the sequences of a batch."""
        return ATTENTIONS[self.attention](batch.segments)


@dataclass(frozen=True, kw_only=True, slots=True)
class ChunkedConfig(StatesConfig):
    """How the loss is computed; no value changes what it is."""

    loss_chunk: int = option(0, "labels whose logits are held at once, to save memory; 0: all of a micro-batch")

    def __post_init__(self) -> None:
        if self.loss_chunk < 0:
            raise ConfigError(f"loss_chunk must not be negative, found {self.loss_chunk}")


C = TypeVar("C", bound=StatesConfig)


def usable(config: C, loop: LoopConfig) -> C:
    """The configuration, which goes with the run's.

    Raises:
        ConfigError: a kernel that the device has not.
    """
    device = usable_device(loop.device)
    if config.attention in CUDA_ONLY and device.type != "cuda":
        raise ConfigError(f"--attention {config.attention} is a kernel for CUDA; this run is on {device.type}")
    return config


def label_states(
    model: CausalLM,
    batch: Batch,
    config: StatesConfig,
    attend: SegmentAttention,
    everywhere: bool = False,
    filled: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Hidden states at the labels, (L, D), and those of all positions, (B, T, D), where they were computed.

    They are if `everywhere` asks for them, or the model's own losses do. With `filled`, L counts the filling of
    `label_pos_L` too.
    """
    where = batch.ids_BT, batch.segments.positions_BT
    if config.label_only and not everywhere and not model.config.reads_everything:
        hidden_LD = model.hidden_at(*where, attend, batch.label_pos_L)
        return hidden_LD if filled else hidden_LD[: batch.labels], None
    hidden_BTD = model(*where, attend)
    return gathered(hidden_BTD, batch.label_pos_L if filled else batch.counted[0]), hidden_BTD
