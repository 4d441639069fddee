import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch._dynamo.utils import counters

from datakit.pack.format import IGNORED
from train.attention import grouped_attention, masked_attention
from train.data import Batch, DataConfig, Mixture, PackedSet, StepStream, collate
from train.loss import chunked_loss, gathered, head_loss
from train.model import PRESETS, CausalLM
from train.sft import LabelConfig, label_loss
from train.stream import MicroBatch


@pytest.fixture(scope="module")
def model() -> CausalLM:
    made = CausalLM(replace(PRESETS["tiny"], vocab_size=300, num_layers=2))
    made.init_weights(torch.Generator().manual_seed(0))
    return made


def dense_loss(hidden_BTD: Tensor, head: nn.Module, label_pos_L: Tensor, targets_L: Tensor) -> tuple[Tensor, int]:
    """The reference: (loss_sum, count) from the logits of every position; unlabelled positions are ignored."""
    targets_N = torch.full((hidden_BTD.shape[:2].numel(),), IGNORED, device=hidden_BTD.device)
    targets_N[label_pos_L] = targets_L
    logits_NV = head(hidden_BTD.flatten(0, 1)).float()
    return F.cross_entropy(logits_NV, targets_N, ignore_index=IGNORED, reduction="sum"), len(targets_L)


def sparse_loss(hidden_BTD: Tensor, head: nn.Module, label_pos_L: Tensor, targets_L: Tensor) -> tuple[Tensor, int]:
    return head_loss(gathered(hidden_BTD, label_pos_L), head, targets_L)


def losses(
    model: CausalLM, batches: list[Batch], attention: Callable = grouped_attention, loss: Callable = sparse_loss
) -> tuple[float, int, list[Tensor]]:
    """Summed loss, count and gradients over batches."""
    model.zero_grad()
    total, count = 0.0, 0
    for batch in batches:
        hidden = model(batch.ids_BT, batch.segments.positions_BT, attention(batch.segments))
        loss_sum, labels = loss(hidden, model.lm_head, batch.label_pos_L, batch.targets_L)
        if labels:
            loss_sum.backward()
        total, count = total + loss_sum.item(), count + labels
    return total, count, [p.grad.clone() for p in model.parameters()]


def agree(a: tuple[float, int, list[Tensor]], b: tuple[float, int, list[Tensor]]) -> None:
    assert a[1] == b[1]
    assert a[0] / a[1] == pytest.approx(b[0] / b[1], abs=1e-5)
    for one, other in zip(a[2], b[2], strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def first_batch(manifest: Path, **config: int) -> list[Batch]:
    return next(iter(StepStream(PackedSet.open_all(manifest)[0], DataConfig(**config), seed=0)))


def test_sparse_loss_is_dense_loss(model: CausalLM, manifest: Path) -> None:
    batches = first_batch(manifest)
    agree(losses(model, batches), losses(model, batches, loss=dense_loss))


def test_training_with_grouped_attention_is_training_with_the_masked_reference(model: CausalLM, manifest: Path) -> None:
    batches = first_batch(manifest, batch_rows=16)
    agree(losses(model, batches), losses(model, batches, attention=masked_attention))


@pytest.mark.parametrize("attention", [grouped_attention, masked_attention])
@pytest.mark.parametrize("labelled", [True, False])
def test_packed_rows_and_one_sequence_a_row_give_the_same_loss_and_gradients(
    model: CausalLM, pack: Callable, random_rows: Callable, attention: Callable, labelled: bool
) -> None:
    rows = random_rows(6, 128)
    assert max(map(len, rows)) >= 4
    together = PackedSet.open_all(pack(rows, seq_len=128, labelled=labelled))[0]
    apart = PackedSet.open_all(pack([[piece] for row in rows for piece in row], seq_len=128, labelled=labelled))[0]

    def all_rows(data: PackedSet) -> list[Batch]:
        rows = len(data.lengths)
        return [collate(Mixture([data]), MicroBatch(torch.arange(rows).numpy(), 128), rows)]

    agree(losses(model, all_rows(together), attention), losses(model, all_rows(apart), attention))


def test_a_packed_sequence_has_the_loss_it_has_alone(model: CausalLM, pack: Callable, random_rows: Callable) -> None:
    row = max(random_rows(6, 128), key=len)
    assert len(row) >= 3
    data = PackedSet.open_all(pack([row], seq_len=128))[0]
    batch = collate(Mixture([data]), MicroBatch(torch.tensor([0]).numpy(), 128), 1)
    with torch.no_grad():
        hidden = model(batch.ids_BT, batch.segments.positions_BT, grouped_attention(batch.segments))
    start = 0
    for ids, places in row:
        alone = PackedSet.open_all(pack([[(ids, places)]], seq_len=128))[0]
        expected = losses(model, [collate(Mixture([alone]), MicroBatch(torch.tensor([0]).numpy(), 128), 1)])
        here = (batch.label_pos_L >= start) & (batch.label_pos_L < start + len(ids))
        found, count = sparse_loss(hidden, model.lm_head, batch.label_pos_L[here], batch.targets_L[here])
        assert count == expected[1] == len(places)
        assert found.item() == pytest.approx(expected[0], rel=1e-5)
        start += len(ids)


def test_short_rows_lose_nothing_in_a_small_bucket(model: CausalLM, pack: Callable, random_rows: Callable) -> None:
    manifest = pack([[piece] for row in random_rows(3, 64) for piece in row], seq_len=64)

    def epoch(*sizes: int) -> list[Batch]:
        stream = StepStream(PackedSet.open_all(manifest)[0], DataConfig(bucket_sizes=sizes, batch_rows=4), seed=0)
        steps = iter(stream)
        return [b for _ in range(stream.plan.steps_per_epoch) for b in next(steps)]

    assert {b.ids_BT.shape[1] for b in epoch(8, 16, 64)} == {8, 16, 64}
    agree(losses(model, epoch(8, 16, 64)), losses(model, epoch(64)))


@pytest.mark.parametrize("qk_norm", [False, True])
@pytest.mark.parametrize("chunk", [0, 1, 7, 10_000])
def test_label_only_last_layer_and_chunked_head_are_the_dense_reference(
    manifest: Path, chunk: int, qk_norm: bool
) -> None:
    size = replace(PRESETS["tiny"], vocab_size=300, num_layers=2, qk_norm=qk_norm, qkv_bias=True, output_bias=True)
    model = CausalLM(size)
    model.init_weights(torch.Generator().manual_seed(0))
    lean = label_loss(LabelConfig(label_only=True, loss_chunk=chunk))
    batches, config = first_batch(manifest, grad_accum=2), DataConfig(grad_accum=2)
    filled = StepStream(PackedSet.open_all(manifest)[0], config, seed=0, label_fill=16).batches(0)

    def found(objective: Callable, of: list[Batch] = batches) -> tuple[float, int, list[Tensor]]:
        model.zero_grad()
        total, count = 0.0, 0
        for batch in of:
            loss_sum, labels = objective(model, batch)
            loss_sum.backward()
            total, count = total + loss_sum.item(), count + labels
        return total, count, [p.grad.clone() for p in model.parameters()]

    full = label_loss(LabelConfig(label_only=False, loss_chunk=chunk))
    agree(found(lean), losses(model, batches, attention=masked_attention, loss=dense_loss))
    agree(found(full), losses(model, batches, loss=dense_loss))
    for objective in (lean, full):
        agree(found(objective, filled), losses(model, batches, loss=dense_loss))


def test_the_last_layer_computes_labels_alone(model: CausalLM, manifest: Path) -> None:
    batch = first_batch(manifest)[0]
    widths: list[list[int]] = []
    hooks = [
        layer.mlp.register_forward_hook(lambda m, x, y, w=widths: w.append(list(x[0].shape[:-1])))
        for layer in model.model.layers
    ]
    label_loss(LabelConfig())(model, batch)
    for hook in hooks:
        hook.remove()
    assert widths == [list(batch.ids_BT.shape), [len(batch.label_pos_L)]]


def test_a_frozen_head_gets_no_gradient_from_the_chunks() -> None:
    hidden = torch.randn(9, 8, requires_grad=True)
    head = torch.nn.Linear(8, 20, bias=False).requires_grad_(False)
    targets = torch.arange(9)
    total, count = chunked_loss(hidden, head, targets, 4)
    (total * 3).backward()
    chunked = hidden.grad.clone()
    hidden.grad = None
    (head_loss(hidden, head, targets)[0] * 3).backward()
    torch.testing.assert_close(chunked, hidden.grad)
    assert count == 9 and head.weight.grad is None


def test_chunks_in_half_precision_stay_as_near_as_the_whole(model: CausalLM, manifest: Path) -> None:
    batches = first_batch(manifest)
    with torch.autocast("cpu", torch.bfloat16):
        whole, chunked = (label_loss(LabelConfig(loss_chunk=c))(model, batches[0])[0].item() for c in (0, 5))
    assert chunked == pytest.approx(whole, rel=1e-3)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the compiler's own
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_a_compiled_label_only_layer_is_the_eager_one_and_is_compiled_once_for_all_counts(manifest: Path) -> None:
    config = replace(PRESETS["tiny"], vocab_size=300, num_layers=1, hidden_size=32, head_dim=8, intermediate_size=48)
    eager, compiled = CausalLM(config), CausalLM(config)
    for made in (eager, compiled):
        made.init_weights(torch.Generator().manual_seed(0))
    compiled.compile_parts()
    stream = StepStream(PackedSet.open_all(manifest)[0], DataConfig(bucket_sizes=(64,)), seed=0, label_fill=16)
    batches = [batch for step in range(5) for batch in stream.batches(step)]
    graphs = []
    for batch in sorted(batches, key=lambda b: len(b.label_pos_L)):
        found = []
        for model in (eager, compiled):
            model.zero_grad()
            loss_sum, labels = label_loss(LabelConfig())(model, batch)
            loss_sum.backward()
            found.append((loss_sum.item(), labels, [p.grad.clone() for p in model.parameters()]))
        agree(*found)
        graphs.append(counters["stats"]["unique_graphs"])
    assert len({len(b.label_pos_L) for b in batches}) > 2 and graphs[0] == graphs[-1]
