"""Kernels for CUDA: here their refusals, what of them runs without, and, where there is CUDA, their equality."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from datakit.errors import ConfigError
from train.attention import Segments, sequence_bounds
from train.loss import head_loss
from train.model import SoftcappedHead
from train.sft import LabelConfig, liger_loss, over_labels
from train.sft import main as sft

SEGMENTS = Segments.of([[0, 5, 20], [0, 17], [0, 0]], 32)


def test_bounds_of_sequences_cover_every_position_once():
    bounds, longest = sequence_bounds(SEGMENTS)
    # rows of 32: two sequences and padding, one and padding, padding alone; one sequence without a position is left
    assert bounds.tolist() == [0, 5, 20, 32, 49, 64, 96]
    assert bounds.dtype == torch.int32 and longest == 32
    assert sequence_bounds(Segments.of([[0, 5]], 64))[1] == 59, "the padding is longer than the sequence"


def test_what_surrounds_a_kernel_gives_it_the_softcap_and_keeps_empty_batches_from_it():
    def kernel(softcap: float | None) -> Callable[..., torch.Tensor]:
        def loss(weight: torch.Tensor, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            logits = hidden @ weight.T
            logits = softcap * torch.tanh(logits / softcap) if softcap else logits
            return F.cross_entropy(logits, targets, reduction="sum")

        return loss

    hidden = torch.randn(9, 16, requires_grad=True)
    for head in (SoftcappedHead(16, 20, 2.0), torch.nn.Linear(16, 20, bias=False)):
        found = over_labels(kernel)(hidden, head, torch.arange(9))
        torch.testing.assert_close(found, head_loss(hidden, head, torch.arange(9)))
    total = over_labels(kernel)(hidden[:0], head, torch.arange(0))
    total.backward()
    assert total.item() == 0


@pytest.mark.skipif(torch.cuda.is_available(), reason="has CUDA")
def test_without_cuda_its_attention_is_refused_and_ligers_loss_falls_back_with_a_line(manifest, tmp_path, caplog):
    options = ["--manifest", str(manifest), "--preset", "tiny", "--out", str(tmp_path / "run")]
    with pytest.raises(ConfigError, match="--attention varlen is a CUDA kernel"):
        sft([*options, "--attention", "varlen"])
    assert not (tmp_path / "run").exists()
    caplog.set_level("INFO", "train")
    assert liger_loss(torch.device("cpu")) is None
    assert "needs CUDA: the plain loss, which has the same value, is used" in caplog.text
    with pytest.raises(ConfigError, match="loss_chunk is only for head_loss plain"):
        LabelConfig(loss_chunk=4, head_loss="liger")
