import shutil
from dataclasses import replace

import pytest
import torch

from datakit.errors import ConfigError
from train.attention import Segments, grouped_attention
from train.model import PRESETS, CausalLM, ModelConfig, rotary_tables, rotate

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
        cos, sin = rotary_tables(torch.tensor([[a], [b]]), 16, 1e4, torch.float64)
        return (rotate(q, cos[:1], sin[:1]) * rotate(k, cos[1:], sin[1:])).sum()

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
