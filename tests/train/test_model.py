from dataclasses import replace

import pytest
import torch

from datakit.errors import ConfigError
from tests.train.runs import SMALL
from tests.train.test_loss import made
from train.attention import Segments, grouped_attention
from train.model import CausalLM, RMSNorm


def run(model: CausalLM, ids: torch.Tensor) -> torch.Tensor:
    segments = Segments.of([[0, 5, ids.shape[1]]] * ids.shape[0], ids.shape[1])
    return model(ids, segments.positions_BT, grouped_attention(segments))


def test_under_autocast_the_stream_is_bf16_and_close_to_fp32():
    model, ids = made(), torch.randint(0, 50, (2, 20))
    with torch.autocast("cpu", torch.bfloat16):
        low = run(model, ids)
    assert low.dtype == torch.bfloat16
    torch.testing.assert_close(low.float(), run(made(), ids), atol=0.1, rtol=0.1)  # of the same seed


@pytest.mark.parametrize("change", [{"num_kv_heads": 3}, {"head_dim": 7}, {"num_layers": 0}])
def test_impossible_sizes_are_refused(change):
    with pytest.raises(ConfigError):
        replace(SMALL, **change)


def test_activations_of_every_second_layer_are_computed_again():
    model, ids, runs = made(), torch.randint(0, 50, (2, 20)), [0, 0]
    model.checkpoint_every = 2
    for i, layer in enumerate(model.model.layers):
        layer.mlp.register_forward_pre_hook(lambda m, x, i=i: runs.__setitem__(i, runs[i] + 1))
    run(model, ids).square().sum().backward()
    assert runs == [1, 2]


def norm_of(width: int, dtype: torch.dtype) -> RMSNorm:
    norm = RMSNorm(width, 1e-5).to(dtype)
    torch.nn.init.normal_(norm.weight, 1.0, 0.2, generator=torch.Generator().manual_seed(0))
    return norm


@pytest.mark.parametrize("shape", [(1, 8), (2, 3, 4, 8)])
def test_values_and_gradients_of_a_norm_are_those_of_the_formula(shape):
    norm, x = norm_of(8, torch.float64), torch.randn(shape, dtype=torch.float64, requires_grad=True)
    plain = x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * norm.weight
    slope = torch.randn_like(plain)
    before = x.detach().clone(), slope.clone()
    expected = torch.autograd.grad(plain, (x, norm.weight), slope)
    torch.testing.assert_close(norm(x), plain)
    for found, wanted in zip(torch.autograd.grad(norm(x), (x, norm.weight), slope), expected, strict=True):
        torch.testing.assert_close(found, wanted)
    assert torch.equal(x.detach(), before[0]) and torch.equal(slope, before[1]), "nothing is changed in place"


def test_under_autocast_a_norm_keeps_nothing_wider_than_its_input():
    norm, x = norm_of(64, torch.float32), torch.randn(32, 64).bfloat16().requires_grad_()
    kept: list[torch.Tensor] = []
    with (
        torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t),
        torch.autocast("cpu", torch.bfloat16),
    ):
        norm(x)
    assert sum(t.nbytes for t in kept) == x.nbytes + 64 * 2
