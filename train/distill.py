"""Distillation: a student learns the next-token distribution of a teacher, in addition to the labels.

    python -m train.distill --manifest manifests/mydata/pack.json --teacher out/teacher --preset tiny --out out/student

The loss of a label is alpha * CE + (1 - alpha) * T^2 * KL(teacher || student), both distributions at temperature T
(Hinton et al., 2015); T^2 keeps the scale of the gradient. --hidden-mse-weight and --hidden-cosine-weight add the
distance of the last hidden states at each label, through a learned linear map where the widths differ (as in FitNets:
Romero et al., 2015). The map is trained and saved beside the student, and is no part of it.

Shapes: L labels, C labels of a chunk, D hidden, V vocabulary.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from datakit.config import at_least, option, section
from datakit.errors import ConfigError, UsageError
from train.config import more
from train.data import Batch, Mixture
from train.loop import Loss, LossSum
from train.loss import LossConfig, chunked_sum, label_states
from train.model import CausalLM
from train.start import RunConfig, command
from train.weights import read_fitting

CHUNK = 512
"""Labels with logits of student and teacher in memory at once, where `loss_chunk` does not say it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TeacherConfig:
    """Teacher and weights of the losses; the defaults are minimind's."""

    teacher: str = option("", "Hugging Face folder or checkpoint of the teacher; it must have the same tokenizer")
    alpha: float = option(0.5, "weight of the cross-entropy; the divergence from the teacher has weight 1 - alpha")
    temperature: float = option(1.5, "temperature of both distributions")
    hidden_mse_weight: float = more(0.0, "weight of the mean squared difference of the last hidden states")
    hidden_cosine_weight: float = more(0.0, "weight of 1 - cosine of the last hidden states")

    def __post_init__(self) -> None:
        at_least(self, 0, "hidden_mse_weight", "hidden_cosine_weight", "alpha")
        if self.alpha > 1 or self.temperature <= 0:
            raise ConfigError("alpha must be in 0..1, temperature positive")

    @property
    def compares_hidden(self) -> bool:
        """Whether hidden states are compared."""
        return bool(self.hidden_mse_weight or self.hidden_cosine_weight)


def label_losses(
    logits_CV: Tensor, teacher_CV: Tensor, targets_C: Tensor, config: TeacherConfig
) -> tuple[Tensor, Tensor]:
    """Summed cross-entropy, and T^2 times the summed divergence at temperature T; logits in fp32.

    Vocabularies may be padded differently: the divergence is over the ids that both have.
    """
    shared = min(logits_CV.shape[-1], teacher_CV.shape[-1])
    logp_CV, wanted_CV = ((x[:, :shared] / config.temperature).log_softmax(-1) for x in (logits_CV, teacher_CV))
    divergence = F.kl_div(logp_CV, wanted_CV, reduction="sum", log_target=True)
    return F.cross_entropy(logits_CV, targets_C, reduction="sum"), divergence * config.temperature**2


def hidden_distances(student_LD: Tensor, teacher_LD: Tensor) -> tuple[Tensor, Tensor]:
    """Sums over labels of the mean squared difference over D, and of 1 - cosine; in fp32."""
    a_LD, b_LD = student_LD.float(), teacher_LD.float()
    return (a_LD - b_LD).square().mean(-1).sum(), (1 - F.cosine_similarity(a_LD, b_LD, dim=-1)).sum()


def with_hidden_map(student: CausalLM, teacher: CausalLM, seed: int) -> None:
    """Give the student a map of its hidden states to the teacher's width where the widths differ."""
    width, theirs = student.config.hidden_size, teacher.config.hidden_size
    if width != theirs:
        student.hidden_map = nn.Linear(width, theirs, bias=False)
        nn.init.normal_(student.hidden_map.weight, std=width**-0.5, generator=torch.Generator().manual_seed(seed))


def distill_loss(config: TeacherConfig, teacher: CausalLM, labels: LossConfig) -> Loss:
    """The objective: (loss_sum, label tokens); logs cross-entropy and divergence per label token."""

    def batch_loss(model: CausalLM, batch: Batch) -> LossSum:
        attend = labels.attend(batch)
        with torch.no_grad():
            teacher_LD = label_states(teacher, batch, labels, attend)
        hidden_LD = label_states(model, batch, labels, attend)
        head, targets_L = teacher.lm_head, batch.counted[1]

        def both(logits_CV: Tensor, part: slice) -> tuple[Tensor, Tensor, Tensor]:
            half = teacher_LD.dtype != head.weight.dtype  # the sum over labels runs without autocast
            with torch.autocast(teacher_LD.device.type, teacher_LD.dtype, enabled=half):
                teacher_CV = head(teacher_LD[part]).float()
            with torch.enable_grad():
                logits_CV = logits_CV.float().requires_grad_()
                ce, kl = label_losses(logits_CV, teacher_CV, targets_L[part], config)
                loss = config.alpha * ce + (1 - config.alpha) * kl
            (slope_CV,) = torch.autograd.grad(loss, logits_CV)
            return loss.detach(), torch.stack((ce, kl)).detach(), slope_CV

        loss_sum, sums = chunked_sum(hidden_LD, model.lm_head, labels.loss_chunk or CHUNK, both)
        logged = dict(zip(("ce", "kl"), sums.unbind(), strict=True))
        if config.compares_hidden:
            student_LD = hidden_LD if model.hidden_map is None else model.hidden_map(hidden_LD)
            mse, cosine = hidden_distances(student_LD, teacher_LD)
            loss_sum = loss_sum + config.hidden_mse_weight * mse + config.hidden_cosine_weight * cosine
            logged |= {"hidden_mse": mse.detach(), "hidden_cosine": cosine.detach()}
        return LossSum(loss_sum, batch.labels, logged)

    return batch_loss


@dataclass(frozen=True, kw_only=True, slots=True)
class DistillConfig(RunConfig):
    """Configuration of a training run with a teacher."""

    distill: TeacherConfig = section(TeacherConfig)

    def __post_init__(self) -> None:
        RunConfig.__post_init__(self)
        if not self.distill.teacher:
            raise UsageError("name the folder of the teacher with --teacher")
        if self.distill.compares_hidden and (self.lora.lora_rank or self.ranks.fsdp):
            raise UsageError("--hidden-mse-weight and --hidden-cosine-weight do not go with --lora-rank or --fsdp")

    def objective(self, data: Mixture, model: CausalLM, device: torch.device) -> Loss:
        """The loss beside the teacher; a student of another width gets a map of its hidden states."""
        teacher = read_fitting(self.distill.teacher, data).requires_grad_(False).eval().to(device)
        if self.distill.compares_hidden:
            with_hidden_map(model, teacher, self.loop.seed)
        return distill_loss(self.distill, teacher, self.labels)


main = command(DistillConfig, __name__, __doc__)
