"""Optimizers, learning rates and parameter groups."""

from importlib.util import find_spec

import pytest
import torch

from datakit.errors import ConfigError, ModelError
from tests.train.runs import fitted, losses, same_weights, small_model
from train.model import CausalLM
from train.optim import OptimConfig, learning_rate, make_optimizer, peak_rate
from train.updates import Lion, Muon, orthogonal

WITH_PACKAGE = pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed")
OPTIMIZERS = ["adamw", "muon", "lion", "adafactor", pytest.param("adamw8bit", marks=WITH_PACKAGE)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_learns_with_its_default_rate_and_resumes_exactly(manifest, tmp_path, name):
    options = {"optimizer": name, "warmup_steps": 2, "steps": 16, "lr": 0.0}
    whole = fitted(manifest, tmp_path / "whole", **options)
    found = losses(tmp_path / "whole")
    assert sum(found[-4:]) / 4 < found[0] - 0.2
    fitted(manifest, tmp_path / "parts", **options, stop_at=13)
    parts = fitted(manifest, tmp_path / "parts", **options, resume=True)
    assert losses(tmp_path / "parts") == found
    same_weights(whole.model, parts.model)


def test_another_optimizer_is_refused(manifest, tmp_path):
    fitted(manifest, tmp_path, optimizer="muon", stop_at=1)
    with pytest.raises(ModelError, match="optimizer 'muon', and this run has 'adamw'"):
        fitted(manifest, tmp_path, optimizer="adamw", resume=True)


def test_lion_steps_by_the_sign_of_its_mean():
    """The formulas of the paper, step by step in fp64."""
    generator = torch.Generator().manual_seed(1)
    p = torch.nn.Parameter(torch.randn(5, 3, generator=generator, dtype=torch.float64))
    lion = Lion([{"params": [p], "lr": 0.01, "weight_decay": 0.1}], betas=(0.9, 0.99))
    expected, mean = p.detach().clone(), torch.zeros_like(p)
    for _ in range(4):
        p.grad = torch.randn(5, 3, generator=generator, dtype=torch.float64)
        lion.step()
        expected -= 0.01 * (torch.sign(0.9 * mean + 0.1 * p.grad) + 0.1 * expected)
        mean = 0.99 * mean + 0.01 * p.grad
        torch.testing.assert_close(p.detach(), expected)


def test_muon_of_many_matrices_is_torchs_of_each(monkeypatch):
    g = torch.Generator().manual_seed(0)
    shapes, kinds = [(12, 8), (8, 12), (12, 8), (8, 8), (12, 8)], []
    start = [torch.randn(shape, generator=g) for shape in shapes]
    grads = [[torch.randn(shape, generator=g) for shape in shapes] for _ in range(3)]
    monkeypatch.setattr(Muon, "together", 2)
    for own in (True, False):
        params = [torch.nn.Parameter(p.clone()) for p in start]
        group = {"params": params, "kind": "matrix", "lr": 0.02, "weight_decay": 0.1}
        theirs = {"momentum": 0.9, "adjust_lr_fn": "match_rms_adamw"}
        optimizer = Muon([group], 0.9) if own else torch.optim.Muon([group], **theirs)
        for step in grads:
            for p, grad in zip(params, step, strict=True):
                p.grad = grad.clone()
            optimizer.step()
        kinds.append(params)
    for found, expected in zip(*kinds, strict=True):
        torch.testing.assert_close(found, expected, atol=2e-3, rtol=0)  # torch's products are in bf16
    values = torch.linalg.svdvals(orthogonal(torch.stack([start[0], start[2]])).float())
    assert values.min() > 0.6 and values.max() < 1.3


def small(**options: object) -> tuple[CausalLM, torch.optim.Optimizer]:
    """A model and its optimizer."""
    model = small_model(tied_embeddings=False)
    return model, make_optimizer(model, OptimConfig(**options))


def test_matrices_and_an_untied_head_have_weight_decay():
    model, optimizer = small(weight_decay=0.3)
    decayed = {id(p) for g in optimizer.param_groups for p in g["params"] if g["weight_decay"]}
    expected = {n for n, _ in model.named_parameters() if n.endswith("_proj.weight") or n == "lm_head.weight"}
    assert {n for n, p in model.named_parameters() if id(p) in decayed} == expected


def test_muon_moves_the_layers_matrices_and_adamw_the_rest():
    model, optimizer = small(optimizer="muon")
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    muon, adamw = (
        {n for n, p in model.named_parameters() if state in optimizer.state[p]}
        for state in ("momentum_buffer", "exp_avg_sq")
    )
    assert muon | adamw == {n for n, _ in model.named_parameters()}
    assert all(n.endswith("_proj.weight") for n in muon) and not any(n.endswith("_proj.weight") for n in adamw)
    assert adamw >= {"model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"}


@WITH_PACKAGE
def test_state_in_8_bits_takes_a_quarter_and_nearly_the_same_course(manifest, tmp_path):
    found = {}
    for name in ("adamw", "adamw8bit"):
        state = fitted(manifest, tmp_path / name, optimizer=name, steps=8).optimizer.state
        tensors = [v for s in state.values() for k, v in s.items() if "exp_avg" in k or "state" in k]
        found[name] = sum(v.nbytes for v in tensors), losses(tmp_path / name)
    assert found["adamw8bit"][0] < found["adamw"][0] * 0.26  # tensors under 4,096 values stay in fp32
    assert found["adamw8bit"][1] != found["adamw"][1]
    assert found["adamw8bit"][1] == pytest.approx(found["adamw"][1], rel=0.02)


@pytest.mark.parametrize("values", [{"beta1": 1.0}, {"decay_ratio": 0.0}, {"weight_decay": -1.0}])
def test_impossible_settings_are_refused(values):
    with pytest.raises(ConfigError, match=next(iter(values))):
        OptimConfig(**values)


def rates(steps: int, **options: object) -> list[float]:
    config = OptimConfig(lr=1.0, **options)
    return [learning_rate(config, step, steps) for step in range(1, steps + 1)]


def test_schedules_warm_up_linearly_and_end_at_their_minimum():
    cosine = rates(20, min_lr_ratio=0.1, warmup_steps=4)
    assert cosine[:4] == [0.25, 0.5, 0.75, 1.0] and cosine[3:] == sorted(cosine[3:], reverse=True)
    assert cosine[11] == pytest.approx(0.55) and cosine[-1] == pytest.approx(0.1)  # half way down the cosine
    wsd = rates(40, schedule="wsd", min_lr_ratio=0.0, warmup_steps=4, decay_ratio=0.25)
    assert wsd[:4] == cosine[:4] and set(wsd[3:30]) == {1.0}
    assert wsd[30:] == pytest.approx([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0])
    longer = rates(90, schedule="wsd", min_lr_ratio=0.0, warmup_steps=4, decay_ratio=0.25)
    assert longer[:30] == wsd[:30], "before the decay the course is the same, however long the run"
    assert rates(5, schedule="constant", warmup_steps=2) == [0.5, 1.0, 1.0, 1.0, 1.0]
    assert rates(5)[0] > 0


def test_the_rate_where_none_is_named_follows_the_width_and_the_optimizer():
    assert (peak_rate(OptimConfig(), 512, 1.0), peak_rate(OptimConfig(), 128, 1.0)) == (5e-4, 2e-3)
    assert peak_rate(OptimConfig(optimizer="muon"), 512, 0.2) == pytest.approx(1e-4)
    assert peak_rate(OptimConfig(optimizer="lion"), 512, 1.0) == pytest.approx(1e-4)
    assert peak_rate(OptimConfig(lr=0.1), 512, 0.2) == 0.1
