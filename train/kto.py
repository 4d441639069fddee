"""Kahneman-Tversky optimization (KTO): good answers become more probable, bad ones less, without pairs.

    python -m train.kto --manifest manifests/judged/pack.json --model out/sft --out out/kto

The data are packed preferences: each chosen side is a good answer, each rejected side a bad one. One side may be
missing: `datakit pack judged.jsonl --kind preference` makes such pairs of prompt, completion and label.

Shapes: A answers of a batch, L labels.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from datakit.config import at_least, option, section
from train import flags
from train.data import Batch, Mixture, flat_batch
from train.dpo import PreferenceConfig, Reference, log_probs, reference_of
from train.loop import LossSum
from train.loss import ChunkedConfig
from train.model import CausalLM
from train.start import LOG, command
from train.stream import Int64


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedConfig:
    """The loss of an answer."""

    beta: float = option(0.1, "strength of the link to the reference; larger values keep the model closer")
    good_weight: float = option(1.0, "weight of good answers; with few of them, raise it until both sides weigh alike")
    bad_weight: float = option(1.0, "weight of bad answers")
    reference: str = option("", "folder of the reference model; default: the model of --model")

    def __post_init__(self) -> None:
        at_least(self, 0, "beta", "good_weight", "bad_weight")


def answer_losses(
    policy_A: Tensor, reference_A: Tensor, good_A: Tensor, divergence: Tensor, config: JudgedConfig
) -> tuple[Tensor, Tensor]:
    """Losses and rewards, both (A,), from log-probabilities of answers (Ethayarajh et al., 2024).

    A good answer's loss is 1 - sigmoid(reward - beta z), a bad one's 1 - sigmoid(beta z - reward), where the reward is
    beta times the log-ratio to the reference, and `divergence` is z: how far the model has moved from the reference.
    """
    rewards_A = config.beta * (policy_A - reference_A)
    beyond_A = torch.where(good_A, 1.0, -1.0) * (rewards_A - config.beta * divergence)
    weight_A = torch.where(good_A, config.good_weight, config.bad_weight)
    return weight_A * (1 - beyond_A.sigmoid()), rewards_A.detach()


@dataclass(slots=True)
class KtoLoss:
    """The objective: (loss_sum, answers); logs rewards, and how far the model is from the reference.

    The distance z is the mean log-ratio of answers that belong to other prompts: each prompt of the step, with an
    answer of the next pair that has one. It is never negative, and has no gradient. It is computed for the whole step
    before its first micro-batch, so that micro-batches and ranks change nothing.
    """

    config: JudgedConfig
    reference: Reference
    data: Mixture
    labels: ChunkedConfig = field(default_factory=ChunkedConfig)
    divergence: Tensor = field(default_factory=lambda: torch.zeros(()))
    good_share: float = 0.5
    """Share of the step's answers that are good."""

    @torch.no_grad()
    def begin(self, model: CausalLM, batches: Sequence[Batch], sums: Callable[[Any], Sequence[float]]) -> None:
        """Compute z over all batches of the step; `sums` adds over the ranks."""
        found = np.zeros(3)  # log-ratios, answers, good ones
        for batch in batches:
            made = self.mismatched(batch)
            ratio = log_probs(model, made, self.labels)[0] - self.reference(model, made)
            found += float(ratio.sum()), len(made.rows), (made.rows % 2 == 0).sum()
        ratio_sum, total, good = sums(found.tolist())
        self.divergence = torch.tensor(max(0.0, ratio_sum / max(1.0, total)))
        self.good_share = good / max(1.0, total)

    def mismatched(self, batch: Batch) -> Batch:
        """The prompts of a batch's answers, each with an answer of the next pair that has one, if possible its side."""
        prompts = [row for row in batch.rows.tolist() if self._row(row)[1]]
        made = [self._joined(row) for row in prompts]
        labels = [np.arange(begin - 1, len(ids) - 1) for ids, begin in made]
        flat = flat_batch([ids for ids, _ in made], labels, np.array(prompts, np.int64), self.data.header.pad_id)
        return flat.to(batch.ids_BT.device)

    def _joined(self, row: int) -> tuple[Int64, int]:
        """The prompt of a row with another answer, and where the answer begins."""
        (ids, begin), other, total = self._row(row), row + 2, len(self.data.lengths)
        while not (found := self._row(other % total))[1]:
            other = other ^ 1 if other % 2 == row % 2 else (other ^ 1) + 2
        joined = np.concatenate([ids[:begin], found[0][found[1] :]])
        return joined[: self.data.header.seq_len + 1], begin

    def _row(self, row: int) -> tuple[Int64, int]:
        """The tokens of a row, and the first one of its answer; 0 without an answer."""
        owner, own = self.data.find(row)
        labels, ids = owner.packed.labels_of(own), owner.packed.ids_of(own).astype(np.int64)
        return ids, int(labels[0]) + 1 if labels is not None and len(labels) else 0

    def __call__(self, model: CausalLM, batch: Batch) -> LossSum:
        """Sums over the answers of the batch."""
        policy_R, labels_R = log_probs(model, batch, self.labels)
        answered_R = labels_R > 0
        good_A = torch.from_numpy(batch.rows % 2 == 0).to(policy_R.device)[answered_R]
        reference_A = self.reference(model, batch)[answered_R]
        z = self.divergence.to(policy_R.device)
        losses_A, rewards_A = answer_losses(policy_R[answered_R], reference_A, good_A, z, self.config)
        logged = {"divergence": z * len(losses_A), "reward_good": rewards_A[good_A].sum() / max(self.good_share, 1e-9)}
        logged["reward_bad"] = rewards_A[~good_A].sum() / max(1 - self.good_share, 1e-9)
        return LossSum(losses_A.sum(), len(losses_A), logged)


@dataclass(frozen=True, kw_only=True, slots=True)
class KTOConfig(PreferenceConfig):
    """Configuration of a training run on judged answers."""

    judged: JudgedConfig = section(JudgedConfig)

    def objective(self, data: Mixture, model: CausalLM) -> KtoLoss:
        """The loss of answers, with its reference; logs how many answers are good and bad.

        Ethayarajh et al. want weight x number of the good answers at 1 to 4/3 times that of the bad ones.
        """
        index = np.concatenate([s.packed.label_index for s in data.sets if s.packed.label_index is not None])
        good, bad = (index[:, 1].reshape(-1, 2) > 0).sum(0).tolist()
        LOG.info(f"kto: {good:,} good, {bad:,} bad answers; --good-weight {bad / max(1, good):.2g} weighs them alike")
        reference = reference_of(self, self.judged.reference, data, self.labels)
        return KtoLoss(self.judged, reference, data, self.labels)


main = command(KTOConfig, "kto", __doc__)

if __name__ == "__main__":
    sys.exit(flags.guarded(main))
