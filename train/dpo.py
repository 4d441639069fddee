"""Preference training: chosen answers become more probable than rejected ones (DPO: Rafailov et al., 2023; APO-zero).

    python -m train.dpo --manifest manifests/pairs/pack.json --model out/sft/checkpoints/step_00001000 --out out/dpo

Both sides of a pair are in the same micro-batch, which is one row of sequences without padding. The reference is the
model of --model, or the one of --reference, and stays in memory; with adapters it is their base.

APO-zero (D'Oosterlinck et al., 2024) judges each side by itself, so that one may be missing: `datakit pack judged.jsonl
--kind preference` makes such pairs of prompt, completion and label. It is the loss of KTO (Ethayarajh et al., 2024)
with the reference point 0: no second pass over answers of other prompts.

Shapes: B rows, P = B/2 pairs, L labels.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from datakit.config import at_least, option, section
from datakit.errors import InputError
from train.config import LOG, more
from train.data import Batch, Mixture
from train.loop import Loss, LossSum
from train.lora import disabled
from train.loss import LossConfig, label_log_probs
from train.model import CausalLM
from train.start import RunConfig, command
from train.weights import read_fitting

_judged = partial(more, acts_with={"dpo_loss": ("apo_zero",)})


@dataclass(frozen=True, kw_only=True, slots=True)
class PairConfig:
    """The loss of a pair, or of an answer."""

    dpo_loss: Literal["sigmoid", "sigmoid_norm", "apo_zero"] = option(
        "sigmoid",
        "sigmoid: DPO; sigmoid_norm: per label token, so that long answers weigh no more; apo_zero: answers one by one",
    )
    beta: float = option(0.1, "strength of the link to the reference; larger values keep the model closer")
    good_weight: float = _judged(1.0, "apo_zero: weight of good answers; if they are few, raise it")
    bad_weight: float = _judged(1.0, "apo_zero: weight of bad answers")
    reference: str = more("", "folder of the reference model; default: the model of --model")

    def __post_init__(self) -> None:
        at_least(self, 0, "beta", "good_weight", "bad_weight")


def log_probs(model: CausalLM, batch: Batch, labels: LossConfig) -> tuple[Tensor, Tensor]:
    """Summed log-probabilities of the labels of each packed row of `batch.rows` (fp32), and their number, both (2P,).

    Both are zero for a row without labels.
    """
    logp_L, row_L = label_log_probs(model, batch, labels), packed_rows(batch)
    counts = row_L.new_zeros(len(batch.rows)).scatter_add_(0, row_L, torch.ones_like(row_L))  # bincount waits
    return logp_L.new_zeros(len(batch.rows)).index_add(0, row_L, logp_L), counts


def packed_rows(batch: Batch) -> Tensor:
    """For each label its packed row, as an index of `batch.rows`, (L,).

    In a flat batch, which is one row, these are the sequences; else each row has one sequence.
    """
    label_pos_L, width = batch.counted[0], batch.ids_BT.shape[1]
    return label_pos_L // width + batch.segments.sequence_BT.flatten()[label_pos_L] - 1


def reference_of(config: RunConfig, folder: str, data: Mixture) -> CausalLM | None:
    """The model in `folder`, by default that of --model; None for adapters: the trained model with its adapters off.

    Raises:
        ModelError: the model cannot be read, or does not fit the data.
    """
    if config.lora.lora_rank and not folder:
        return None
    return read_fitting(folder or config.model, data).requires_grad_(False).eval()


def pair_losses(policy_2P: Tensor, reference_2P: Tensor, count_2P: Tensor, config: PairConfig) -> tuple[Tensor, Tensor]:
    """Losses (P,) and rewards (P, 2) of chosen and rejected, from log-probabilities and label counts of rows.

    The loss is -log sigmoid(chosen reward - rejected reward); a reward is beta times the log-ratio to the reference
    (Rafailov et al., 2023). `sigmoid_norm` divides each ratio by the label tokens of its answer (Lambert et al., 2024).
    """
    ratios_2P = policy_2P - reference_2P
    if config.dpo_loss == "sigmoid_norm":
        ratios_2P = ratios_2P / count_2P.clamp(min=1)
    rewards_P2 = config.beta * ratios_2P.view(-1, 2)
    return -F.logsigmoid(rewards_P2[:, 0] - rewards_P2[:, 1]), rewards_P2.detach()


def answer_losses(policy_R: Tensor, reference_R: Tensor, good_R: Tensor, config: PairConfig) -> tuple[Tensor, Tensor]:
    """APO-zero's losses, and rewards with the sign of the judgement, both (R,), from log-probabilities of rows.

    A good answer's loss is 1 - sigmoid(reward), a bad one's 1 - sigmoid(-reward); a reward is as in `pair_losses`.
    """
    signed_R = torch.where(good_R, config.beta, -config.beta) * (policy_R - reference_R)
    return torch.where(good_R, config.good_weight, config.bad_weight) * (1 - signed_R.sigmoid()), signed_R.detach()


def preference_loss(config: PairConfig, reference: CausalLM | None, labels: LossConfig) -> Loss:
    """The objective: (loss_sum, pairs), or answers; logs rewards, their margin, and the share that is right."""

    def batch_loss(model: CausalLM, batch: Batch) -> LossSum:
        policy_2P, count_2P = log_probs(model, batch, labels)
        base = model if reference is None else reference.to(batch.ids_BT.device)
        with torch.no_grad(), disabled(base):
            base_2P = log_probs(base, batch, labels)[0]
        if config.dpo_loss == "apo_zero":
            answered_R, good_R = count_2P > 0, torch.from_numpy(batch.rows % 2 == 0).to(policy_2P.device)
            losses_R, signed_R = answer_losses(policy_2P, base_2P, good_R, config)
            right = {"reward_margin": signed_R, "reward_accuracy": (signed_R > 0).float()}
            sums = {name: (value_R * answered_R).sum() for name, value_R in right.items()}
            return LossSum((losses_R * answered_R).sum(), int(answered_R.sum()), sums)
        losses_P, rewards_P2 = pair_losses(policy_2P, base_2P, count_2P, config)
        chosen_P, rejected_P = rewards_P2.unbind(1)
        logged = {"reward_margin": chosen_P - rejected_P, "reward_accuracy": (chosen_P > rejected_P).float(),
                  "reward_chosen": chosen_P, "reward_rejected": rejected_P}  # fmt: skip
        return LossSum(losses_P.sum(), len(losses_P), {name: value.sum() for name, value in logged.items()})

    return batch_loss


@dataclass(frozen=True, kw_only=True, slots=True)
class DPOConfig(RunConfig):
    """Configuration of a training run on packed preferences."""

    rows_per_unit: ClassVar[int] = 2
    flat_rows: ClassVar[bool] = True
    trained_share: ClassVar[float] = 0.02
    """A tenth of fine-tuning: pairs are separated after few steps, and a higher rate damages the model."""
    needs_model: ClassVar[str] = "preference training on random weights is useless"
    pairs: PairConfig = section(PairConfig)

    def objective(self, data: Mixture, model: CausalLM, device: torch.device) -> Loss:
        """The loss of pairs, with its reference; for APO-zero it logs how many answers are good and bad.

        Ethayarajh et al. want weight x number of the good answers at 1 to 4/3 times that of the bad ones.

        Raises:
            InputError: a pair has one answer alone, and the loss is not APO-zero.
            ModelError: the reference does not fit.
        """
        index = np.concatenate([s.packed.label_index for s in data.sets if s.packed.label_index is not None])
        answered_P2 = index[:, 1].reshape(-1, 2) > 0
        if self.pairs.dpo_loss == "apo_zero":
            good, bad = answered_P2.sum(0).tolist()
            alike = f"--good-weight {bad / max(1, good):.2g} weighs them alike"
            LOG.info(f"apo_zero: {good:,} good and {bad:,} bad answers; {alike}")
        elif alone := int((~answered_P2).any(1).sum()):
            pairs = f"{alone:,} of {len(answered_P2):,} pairs have one answer alone"
            raise InputError(f"{data.name}: {pairs}: --dpo-loss apo_zero trains on answers that are judged one by one")
        return preference_loss(self.pairs, reference_of(self, self.pairs.reference, data), self.labels)


main = command(DPOConfig, __name__, __doc__)
