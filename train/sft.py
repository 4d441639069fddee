"""Supervised fine-tuning: cross-entropy on the tokens that the data set marks as labels.

    python -m train.sft --manifest manifests/mydata/pack.json --preset 26m --out out/run

A set of plain text works too: there, every token that follows another of its document is a label.
"""

import sys
from collections.abc import Sequence

from torch import Tensor

from train import flags
from train.attention import grouped_attention
from train.data import Batch
from train.loss import sparse_loss
from train.model import CausalLM
from train.start import RunConfig, configured, prepare


def loss(model: CausalLM, batch: Batch) -> tuple[Tensor, int]:
    """(loss_sum, count) over the batch's labels."""
    hidden_BTD = model(batch.ids_BT, batch.segments.positions_BT, grouped_attention(batch.segments))
    return sparse_loss(hidden_BTD, model.lm_head, batch.label_pos_L, batch.targets_L)


def main(argv: Sequence[str]) -> int:
    """Train; returns the exit code."""
    return prepare(configured(RunConfig, "train.sft", __doc__, argv), loss).run()


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
