import pytest
import torch

from train.model.decoder import RMSNorm


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
