from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from datakit.errors import ConfigError
from tests.train.runs import SMALL, small_model
from train.attention import grouped_attention
from train.config import MoeConfig
from train.data import DataConfig, PackedSet, StepStream
from train.experts import Balance, MoE
from train.lora import LoraConfig, attach
from train.model import MLP, CausalLM


def experts(inner_size: int, moe: MoeConfig, **differences: object) -> MoE:
    """A layer of width 16 whose experts have this inner width."""
    c = replace(SMALL, hidden_size=16, moe=replace(moe, expert_size=inner_size), **differences)
    return MoE(c, partial(MLP, c))


def one_by_one(layer: MoE, x_ND: torch.Tensor) -> torch.Tensor:
    """Each expert gathers its tokens and adds what it makes of them: the plainest way over whole tensors."""
    weights_NA, chosen_NA = layer.gate(x_ND).softmax(-1).topk(layer.config.experts_per_token, -1)
    weights_NA = weights_NA / weights_NA.sum(-1, keepdim=True) if layer.config.norm_topk else weights_NA
    out_ND = torch.zeros_like(x_ND)
    for number, expert in enumerate(layer.experts):
        token, place = (chosen_NA == number).nonzero(as_tuple=True)
        out_ND = out_ND.index_add(0, token, expert(x_ND[token]) * weights_NA[token, place, None])
    return out_ND


@pytest.mark.parametrize("kind", [{}, {"activation": "gelu_tanh"}])
@pytest.mark.parametrize("norm_topk", [True, False])
@pytest.mark.parametrize("tokens", [1, 50])  # with one token most experts have none
def test_segments_and_one_product_for_all_experts_give_what_one_by_one_does(kind, tokens, norm_topk):
    """Value and all gradients; the product for all is what CUDA takes."""
    layer = experts(24, MoeConfig(num_experts=5, experts_per_token=2, norm_topk=norm_topk), **kind)
    found = []
    for way in (one_by_one, "segmented", "grouped"):
        x_ND = torch.randn(tokens, 16, generator=torch.Generator().manual_seed(1), requires_grad=True)
        layer.zero_grad()
        layer._can_group = lambda x_MD, way=way: way == "grouped"
        out_ND = one_by_one(layer, x_ND) if way is one_by_one else layer(x_ND)
        out_ND.square().sum().backward()
        found.append([out_ND, x_ND.grad, *(p.grad.clone() for p in layer.parameters())])
    for other in found[1:]:
        for mine, expected in zip(other, found[0], strict=True):
            torch.testing.assert_close(mine, expected, atol=1e-5, rtol=1e-5)


def test_adapters_of_experts_are_not_passed_by(monkeypatch):
    model = small_model(moe=MoeConfig(num_experts=4, expert_size=16))
    layer = model.model.layers[0].mlp
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    on_gpu = SimpleNamespace(is_cuda=True, dtype=torch.bfloat16, device=torch.device("cpu"))
    assert layer._can_group(on_gpu)
    attach(model, LoraConfig(lora_rank=2), torch.Generator())
    assert not layer._can_group(on_gpu)
    assert type(layer.gate) is torch.nn.Linear, "the router has none, as PEFT understands `gate_proj`"


def test_the_balance_loss_is_transformers_when_the_step_before_was_like_this_one(manifest):
    pytest.importorskip("transformers")
    from transformers.models.qwen3_moe.modeling_qwen3_moe import load_balancing_loss_func

    (batch,) = next(iter(StepStream(PackedSet.open_all(manifest)[0], DataConfig(bucket_sizes=(80,)), seed=0)))
    model = small_model(num_layers=1, moe=MoeConfig(num_experts=4, experts_per_token=2, expert_size=16))
    balance = Balance(model, 1.0)
    for _ in range(2):
        model(batch.ids_BT, batch.segments.positions_BT, grouped_attention(batch.segments))
        found = balance.loss(batch)
        balance.finish(batch.labels, balance.counted().tolist())
    probs = model.model.layers[0].mlp.routed[0]
    mask = (batch.segments.sequence_BT > 0).long()
    assert mask.min() == 0  # there is padding, which counts nowhere
    expected = load_balancing_loss_func((probs.log(),), num_experts=4, top_k=2, attention_mask=mask)
    assert found.item() / batch.labels == pytest.approx(expected.item(), rel=1e-5)
    found.backward()
    assert model.model.layers[0].mlp.gate.weight.grad.abs().max() > 0 and balance.busiest() > 1


def test_a_token_costs_the_operations_of_its_experts_alone():
    def flops(**moe: int) -> float:
        with torch.device("meta"):
            return CausalLM(replace(SMALL, moe=MoeConfig(**moe))).flops_per_token(10)

    router = 6 * 2 * 32 * 8
    assert flops(num_experts=8, experts_per_token=2, expert_size=24) == pytest.approx(flops() + router)


@pytest.mark.parametrize("values", [{"experts_per_token": 5}, {"experts_per_token": 0}, {"expert_size": -1}])
def test_impossible_mixtures_are_refused(values):
    with pytest.raises(ConfigError):
        MoeConfig(**{"num_experts": 4} | values)
