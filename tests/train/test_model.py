import shutil
from dataclasses import replace

import pytest
import torch

from datakit.errors import ConfigError
from train.attention import Rope, Segments, grouped_attention, rotary_tables, rotate
from train.model import PRESETS, CausalLM, ModelConfig, RMSNorm

SMALL = replace(PRESETS["tiny"], vocab_size=50, num_layers=2, hidden_size=32, head_dim=8, intermediate_size=48)


def run(model: CausalLM, ids: torch.Tensor) -> torch.Tensor:
    segments = Segments.of([[0, 5, ids.shape[1]]] * ids.shape[0], ids.shape[1])
    return model(ids, segments.positions_BT, grouped_attention(segments))


def made(config: ModelConfig) -> CausalLM:
    model = CausalLM(config)
    model.init_weights(torch.Generator().manual_seed(0))
    return model


def test_rotary_scores_depend_on_distance_alone() -> None:
    q, k = torch.randn(2, 1, 1, 1, 16, dtype=torch.float64)

    def score(a: int, b: int) -> torch.Tensor:
        cos, sin = rotary_tables(torch.tensor([[a], [b]]), Rope(), 16, torch.float64)
        return (rotate(q, (cos[:1], sin[:1])) * rotate(k, (cos[1:], sin[1:]))).sum()

    torch.testing.assert_close(score(3, 1), score(13, 11), atol=1e-5, rtol=0)
    assert not torch.isclose(score(3, 1), score(3, 2))


def test_under_autocast_the_stream_is_bf16_and_close_to_fp32() -> None:
    model, ids = made(SMALL), torch.randint(0, 50, (2, 20))
    with torch.autocast("cpu", torch.bfloat16):
        low = run(model, ids)
    assert low.dtype == torch.bfloat16
    torch.testing.assert_close(low.float(), run(model, ids), atol=0.1, rtol=0.1)


def test_the_same_seed_gives_the_same_weights() -> None:
    for one, other in zip(made(SMALL).parameters(), made(SMALL).parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the compiler's own
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_a_compiled_model_is_the_eager_one() -> None:
    eager, compiled, ids = made(SMALL), made(SMALL), torch.randint(0, 50, (2, 20))
    compiled.compile_parts()
    gradients = []
    for model in (eager, compiled):
        out = run(model, ids)
        gradients.append(torch.autograd.grad(out.square().sum(), [p for p in model.parameters() if p.requires_grad]))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("change", [{"num_kv_heads": 3}, {"head_dim": 7}, {"num_layers": 0}])
def test_impossible_sizes_are_refused(change: dict) -> None:
    with pytest.raises(ConfigError):
        replace(SMALL, **change)


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("labels_alone", [False, True])
def test_activations_computed_again_give_the_same_loss_and_gradients(every: int, labels_alone: bool) -> None:
    ids, at = torch.randint(0, 50, (2, 20)), torch.tensor([3, 8, 21])
    segments = Segments.of([[0, 5, 20]] * 2, 20)
    found, runs = [], []
    for checkpoint_every in (0, every):
        model = made(SMALL)
        model.checkpoint_every = checkpoint_every
        counts = [0] * len(model.model.layers)
        for i, layer in enumerate(model.model.layers):
            layer.mlp.register_forward_pre_hook(lambda m, x, i=i, counts=counts: counts.__setitem__(i, counts[i] + 1))
        where = (ids, segments.positions_BT, grouped_attention(segments))
        out = model.hidden_at(*where, at) if labels_alone else model(*where)
        found.append([out, *torch.autograd.grad(out.square().sum(), list(model.parameters()), allow_unused=True)])
        runs.append(counts)
    assert runs == [[1, 1], [2, 2] if every == 1 else [1, 2]]
    for one, other in zip(*found, strict=True):
        assert (one is None and other is None) or torch.equal(one, other)


def norm_of(width: int, dtype: torch.dtype) -> RMSNorm:
    norm = RMSNorm(width, 1e-5).to(dtype)
    torch.nn.init.normal_(norm.weight, 1.0, 0.2, generator=torch.Generator().manual_seed(0))
    return norm


@pytest.mark.parametrize("shape", [(1, 8), (3, 5, 8), (2, 3, 4, 8)])
def test_values_and_gradients_are_those_of_the_formula(shape: tuple[int, ...]) -> None:
    norm, x = norm_of(8, torch.float64), torch.randn(shape, dtype=torch.float64, requires_grad=True)
    plain = x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * norm.weight
    slope = torch.randn_like(plain)
    expected = torch.autograd.grad(plain, (x, norm.weight), slope)
    torch.testing.assert_close(norm(x), plain)
    for found, wanted in zip(torch.autograd.grad(norm(x), (x, norm.weight), slope), expected, strict=True):
        torch.testing.assert_close(found, wanted)


def test_neither_the_input_nor_the_gradient_from_above_is_changed() -> None:
    norm, x, slope = norm_of(8, torch.float32), torch.randn(4, 8, requires_grad=True), torch.randn(4, 8)
    before = x.detach().clone(), slope.clone()
    norm(x).backward(slope)
    assert torch.equal(x.detach(), before[0]) and torch.equal(slope, before[1])


def test_under_autocast_nothing_wider_than_the_input_is_kept() -> None:
    norm, x = norm_of(64, torch.float32), torch.randn(32, 64).bfloat16().requires_grad_()
    kept: list[torch.Tensor] = []
    with (
        torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t),
        torch.autocast("cpu", torch.bfloat16),
    ):
        norm(x)
    assert sum(t.nbytes for t in kept) == x.nbytes + 64 * 2
