"""Direct preference optimization: a chosen answer becomes likelier, beside a rejected one, than a reference has it.

    python -m train.dpo --manifest manifests/pairs/pack.json --init out/sft/checkpoints/step_00001000 --out out/dpo

Both sides of a pair pass through the model together. The reference is the model that training starts from, or the one
that --reference names; it stays in memory, unless train.reference has written its log-probabilities into a manifest.

Shapes: B rows, P = B/2 pairs, L labels.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from datakit.config import option, section
from datakit.errors import ConfigError, UsageError
from train.data.batches import Batch
from train.engine import checkpoint, flags
from train.engine.device import usable_device
from train.engine.loop import LossSum
from train.engine.start import RunConfig, configured, open_data, prepare
from train.model.decoder import CausalLM
from train.model.loss import ChunkedConfig, check_device
from train.reference import frozen, log_probs, stored


@dataclass(frozen=True, kw_only=True, slots=True)
class PairConfig:
    """What is made of a pair."""

    beta: float = option(0.1, "how strongly the model is held to the reference; larger holds it closer")
    dpo_loss: Literal["sigmoid", "sigmoid_norm"] = option(
        "sigmoid", "sigmoid_norm: log-probabilities a label token, so that long answers do not weigh more"
    )
    reference: str = option("", "a model's folder, or what train.reference wrote; none: the model of --init")

    def __post_init__(self) -> None:
        if self.beta <= 0:
            raise ConfigError(f"beta must be positive, found {self.beta}")


@dataclass(frozen=True, kw_only=True, slots=True)
class DpoConfig(RunConfig):
    """A training run on preference pairs."""

    rows_per_unit: ClassVar[int] = 2
    trained_rate: ClassVar[float] = 1e-6
    """Pairs are soon told apart, and fluency is soon lost: a tenth of fine-tuning's."""
    pairs: PairConfig = section(PairConfig)
    labels: ChunkedConfig = section(ChunkedConfig)

    def __post_init__(self) -> None:
        RunConfig.__post_init__(self)
        if not self.init:
            raise UsageError("name a trained model with --init: random weights have no preferences to improve")


Reference = Callable[[Batch], Tensor]
"""The reference's log-probability of the labels of each real row of a batch, (2P,)."""


def pair_losses(
    policy_2P: Tensor, reference_2P: Tensor, labels_2P: Tensor, config: PairConfig
) -> tuple[Tensor, Tensor]:
    """Losses (P,) and rewards (P, 2), of chosen and rejected, by the rows' log-probabilities and label counts.

    -log sigmoid of the difference of rewards, which are beta times the log-ratios (Rafailov et al., 2023);
    `sigmoid_norm` divides each ratio by its answer's label tokens (Lambert et al., 2024).
    """
    ratios_2P = policy_2P - reference_2P
    if config.dpo_loss == "sigmoid_norm":
        ratios_2P = ratios_2P / labels_2P.clamp(min=1)
    rewards_P2 = config.beta * ratios_2P.view(-1, 2)
    return -F.logsigmoid(rewards_P2[:, 0] - rewards_P2[:, 1]), rewards_P2.detach()


@dataclass(frozen=True, slots=True)
class DpoLoss:
    """The objective: (loss_sum, pairs), with rewards, their margin and the share of pairs in the right order."""

    config: PairConfig
    reference: Reference
    labels: ChunkedConfig = field(default_factory=ChunkedConfig)

    def __call__(self, model: CausalLM, batch: Batch) -> LossSum:
        """Sums over the batch's pairs."""
        rows = len(batch.rows)
        policy_B, labels_B = log_probs(model, batch, self.labels)
        losses_P, rewards_P2 = pair_losses(policy_B[:rows], self.reference(batch), labels_B[:rows], self.config)
        chosen_P, rejected_P = rewards_P2.unbind(1)
        logged = {
            "reward_margin": chosen_P - rejected_P,
            "reward_accuracy": (chosen_P > rejected_P).float(),
            "reward_chosen": chosen_P,
            "reward_rejected": rejected_P,
        }
        return LossSum(losses_P.sum(), len(losses_P), {name: value.sum() for name, value in logged.items()})


def main(argv: Sequence[str], prog: str = "python -m train.dpo") -> int:
    """Train; returns the exit code."""
    config = configured(DpoConfig, prog, __doc__, argv)
    data, place = open_data(config), checkpoint.newest_of_run(Path(config.pairs.reference or config.init))
    labels = check_device(config.labels, usable_device(config.loop.device))
    if (place / "manifest.json").is_file() and not (place / "config.json").is_file():
        place = place / "manifest.json"
    reference = stored(place, data) if place.is_file() else frozen(place, data, labels)
    return prepare(config, DpoLoss(config.pairs, reference, labels), data).run()


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
