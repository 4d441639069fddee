"""Every saving has the loss and the gradients of the plainest way: all logits, one mask, sequences packed or alone."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch._dynamo.utils import counters

from tests.train.generation import generate
from tests.train.runs import logits, small_model
from train.attention import masked_attention
from train.config import MoeConfig
from train.data import Batch, DataConfig, Mixture, PackedSet, StepStream
from train.loss import chunked_loss, head_loss
from train.model import CausalLM
from train.serve.batching import SampleConfig
from train.sft import LabelConfig, label_loss
from train.stream import MicroBatch

KINDS = {
    "plain": {},
    "norms and biases": {"qk_norm": True, "qkv_bias": True, "output_bias": True, "activation": "relu2"},
    "soft cap": {"logit_softcap": 2.0, "tied_embeddings": False},
    "experts": {"moe": MoeConfig(num_experts=4, experts_per_token=2, expert_size=16)},
}


def made(**kind: object) -> CausalLM:
    """A model whose scales and biases, which begin at one and zero, are all at work."""
    model, generator = small_model(**kind), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            p += 0.05 * torch.randn(p.shape, generator=generator)
    return model


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest) -> CausalLM:
    return made(**KINDS[request.param])


def plainest(model: CausalLM, batch: Batch) -> tuple[Tensor, int]:
    """The logits of every position, whole rows under one mask."""
    hidden_BTD = model(batch.ids_BT, batch.segments.positions_BT, masked_attention(batch.segments))
    logits_NV, (label_pos_L, targets_L) = model.lm_head(hidden_BTD.flatten(0, 1)).float(), batch.counted
    return F.cross_entropy(logits_NV[label_pos_L], targets_L, reduction="sum"), batch.labels


def gradients(model: CausalLM, objective: Callable, batches: Sequence[Batch]) -> list[Tensor]:
    """The mean loss over the labels of all batches, and its gradients."""
    model.zero_grad()
    found = [objective(model, batch)[:2] for batch in batches]
    loss = sum(loss for loss, _ in found) / sum(count for _, count in found)
    loss.backward()
    return [loss.detach(), *(torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in model.parameters())]


def agree(one: list[Tensor], other: list[Tensor]) -> None:
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-3)


def whole(manifest: Path) -> Batch:
    """All rows of a set as one batch."""
    found = StepStream(data := Mixture.open([manifest]), DataConfig(), seed=0)
    return found.batch(MicroBatch(np.arange(len(data.lengths)), data.header.seq_len), len(data.lengths))


def stream(manifest: Path, steps: int = 1, fill: bool = False, **config: object) -> Iterator[Batch]:
    found = StepStream(PackedSet.open_all(manifest)[0], DataConfig(**config), seed=0, fill=fill)
    return (batch for step in range(steps or found.plan.steps_per_epoch) for batch in found.batches(step))


@pytest.mark.parametrize("labelled", [True, False])
def test_packed_sequences_have_the_loss_and_gradients_they_have_alone(model, pack, random_rows, labelled):
    rows = random_rows(5, 64)
    assert max(map(len, rows)) >= 3
    alone = [[piece] for row in rows for piece in row]
    packed, one_a_row = (whole(pack(r, seq_len=64, labelled=labelled)) for r in (rows, alone))
    expected = gradients(model, plainest, [one_a_row])
    agree(gradients(model, plainest, [packed]), expected)
    agree(gradients(model, label_loss(LabelConfig(attention="grouped")), [packed]), expected)


@pytest.mark.parametrize("attention", ["grouped", "masked"])
@pytest.mark.parametrize("chunk", [0, 1, 7])
@pytest.mark.parametrize("label_only", [True, False])
def test_every_saving_gives_the_plainest_loss_and_gradients(model, manifest, chunk, label_only, attention):
    objective = label_loss(LabelConfig(label_only=label_only, loss_chunk=chunk, attention=attention))
    batches = list(stream(manifest, grad_accum=2))
    expected = gradients(model, plainest, batches)
    agree(gradients(model, objective, batches), expected)
    agree(gradients(model, objective, list(stream(manifest, grad_accum=2, fill=True))), expected)
    model.checkpoint_every = 1
    agree(gradients(model, objective, batches), expected)


def test_short_rows_lose_nothing_in_a_small_bucket(pack, random_rows):
    manifest = pack([[piece] for row in random_rows(3, 64) for piece in row], seq_len=64)
    small, large = (list(stream(manifest, 0, bucket_sizes=sizes)) for sizes in ((8, 16, 64), (64,)))
    assert {b.ids_BT.shape[1] for b in small} == {8, 16, 64}
    model = made()
    agree(*(gradients(model, label_loss(LabelConfig()), batches) for batches in (small, large)))


def test_the_last_layer_computes_labels_alone(manifest):
    (batch,), model = stream(manifest), made()
    widths: list[list[int]] = []
    for layer in model.model.layers:
        layer.mlp.register_forward_hook(lambda m, x, y: widths.append(list(x[0].shape[:-1])))
    label_loss(LabelConfig())(model, batch)
    assert widths == [list(batch.ids_BT.shape), [len(batch.label_pos_L)]]


def test_a_frozen_head_gets_no_gradient_from_the_chunks():
    hidden, targets = torch.randn(9, 8, requires_grad=True), torch.arange(9)
    head = torch.nn.Linear(8, 20, bias=False).requires_grad_(False)
    found = [torch.autograd.grad(3 * loss(hidden, head, targets, *chunk), hidden)[0]
             for loss, chunk in ((chunked_loss, (4,)), (head_loss, ()))]  # fmt: skip
    torch.testing.assert_close(*found)
    assert head.weight.grad is None


def test_half_precision_is_near_in_chunks_too(model, manifest):
    (batch,) = stream(manifest)
    expected = plainest(model, batch)[0].item()
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        low, chunked = (label_loss(LabelConfig(loss_chunk=c))(model, batch)[0].item() for c in (0, 5))
    assert low == pytest.approx(expected, rel=3e-2) and chunked == pytest.approx(low, rel=1e-3)


def test_generating_says_what_the_whole_text_says_and_no_token_sees_a_later_one(model):
    """Two prompts of different lengths, in one batch with a cache."""
    prompts = [[5, 9, 13, 4], [7, 8]]
    for prompt, answer in zip(prompts, generate(model, prompts, frozenset(), SampleConfig(max_new_tokens=6))):  # noqa: B905
        said = logits(model, torch.tensor([[*prompt, *answer]]), masked_attention)
        assert said[0, len(prompt) - 1 : -1].argmax(-1).tolist() == answer
        changed = logits(model, torch.tensor([[*prompt, *answer[:-1], 0]]), masked_attention)
        torch.testing.assert_close(changed[:, :-1], said[:, :-1])
        assert not model.config.logit_softcap or 0 < said.abs().max() <= 2.0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the compiler's own
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_a_compiled_model_is_the_eager_one_and_is_compiled_once_for_all_label_counts(manifest):
    eager, compiled = made(), made()
    compiled.compile_parts()
    batches = sorted(stream(manifest, 5, True, bucket_sizes=(64,)), key=lambda b: len(b.label_pos_L))
    graphs = []
    for batch in batches:
        agree(*(gradients(model, label_loss(LabelConfig()), [batch]) for model in (eager, compiled)))
        graphs.append(counters["stats"]["unique_graphs"])
    assert len({len(b.label_pos_L) for b in batches}) > 1 and graphs[0] == graphs[-1]
    everywhere = label_loss(LabelConfig(label_only=False))
    agree(*(gradients(model, everywhere, batches[:1]) for model in (eager, compiled)))
