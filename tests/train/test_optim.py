import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from datakit.errors import ConfigError, ModelError
from train.config import LoopConfig
from train.data import DataConfig
from train.model import PRESETS, CausalLM
from train.optim import Lion, OptimConfig, learning_rate, make_optimizer, peak_rate
from train.sft import LabelConfig, label_loss
from train.start import RunConfig, Trainer

loss = label_loss(LabelConfig())

WITH_PACKAGE = pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed")
OPTIMIZERS = ["adamw", "muon", "lion", "adafactor", pytest.param("adamw8bit", marks=WITH_PACKAGE)]
SIZE = replace(PRESETS["tiny"], vocab_size=20, num_layers=1, hidden_size=16, head_dim=4, intermediate_size=24)


def run(manifest: Path, out: Path, optim: OptimConfig, **loop: object) -> Trainer:
    trainer = Trainer(
        RunConfig(
            manifest=str(manifest), preset="tiny", optim=optim, data=DataConfig(batch_rows=4, bucket_sizes=(64,)),
            loop=LoopConfig(out=str(out), **{"dtype": "fp32", "steps": 4} | loop),
        ),
        loss,
    )  # fmt: skip
    trainer.fit()
    return trainer


def losses(out: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (out / "metrics.jsonl").read_text().splitlines()]


def small(tied: bool = True) -> CausalLM:
    model = CausalLM(replace(SIZE, tied_embeddings=tied))
    model.init_weights(torch.Generator().manual_seed(0))
    return model


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_learns_with_the_rate_it_is_given_by_default(manifest: Path, tmp_path: Path, name: str) -> None:
    run(manifest, tmp_path, OptimConfig(optimizer=name, warmup_steps=2), steps=24)
    found = losses(tmp_path)
    assert sum(found[-4:]) / 4 < found[0] - 0.3


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_resumed_run_is_the_uninterrupted_one(manifest: Path, tmp_path: Path, name: str) -> None:
    optim = OptimConfig(optimizer=name)
    whole = run(manifest, tmp_path / "whole", optim)
    run(manifest, tmp_path / "parts", optim, stop_at=2)
    parts = run(manifest, tmp_path / "parts", optim, resume=True)
    assert losses(tmp_path / "whole") == losses(tmp_path / "parts")
    for one, other in zip(whole.model.parameters(), parts.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_another_optimizer_does_not_go_on_from_a_checkpoint(manifest: Path, tmp_path: Path) -> None:
    run(manifest, tmp_path, OptimConfig(optimizer="muon"), stop_at=1)
    with pytest.raises(ModelError, match="the optimizer 'muon', and this run has 'adamw'"):
        run(manifest, tmp_path, OptimConfig(), resume=True)


def test_lion_steps_by_the_sign_of_its_mean() -> None:
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


def test_muon_moves_the_layers_matrices_and_adamw_the_rest() -> None:
    model = small(tied=False)
    muon, adamw = make_optimizer(model, OptimConfig(optimizer="muon")).parts
    names = {id(p): n for n, p in model.named_parameters()}
    assert {names[id(p)] for g in muon.param_groups for p in g["params"]} == {
        n for n in names.values() if n.endswith("_proj.weight")
    }
    rest = {names[id(p)] for g in adamw.param_groups for p in g["params"]}
    assert rest >= {"model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"}


def test_an_update_of_muon_has_singular_values_near_one() -> None:
    """Five Newton-Schulz steps bring them to about 0.7..1.2, whatever the gradient's were."""
    weight = torch.nn.Parameter(torch.zeros(16, 24))
    model = torch.nn.Linear(24, 16, bias=False)
    model.weight = weight
    optimizer = make_optimizer(model, OptimConfig(optimizer="muon", weight_decay=0.0))
    optimizer.set_rate(1.0)
    weight.grad = torch.randn(16, 24, generator=torch.Generator().manual_seed(0)) * 1e-3
    optimizer.step()
    values = torch.linalg.svdvals(weight.detach()) / (0.2 * 24**0.5)
    assert values.min() > 0.5 and values.max() < 1.3


@WITH_PACKAGE
def test_state_in_8_bits_takes_a_quarter_and_nearly_the_same_course(manifest: Path, tmp_path: Path) -> None:
    found = {}
    for name in ("adamw", "adamw8bit"):
        trainer = run(manifest, tmp_path / name, OptimConfig(optimizer=name), steps=8)
        tensors = [v for s in trainer.optimizer.state.values() for k, v in s.items() if "exp_avg" in k or "state" in k]
        found[name] = sum(v.nbytes for v in tensors), losses(tmp_path / name)
    assert found["adamw8bit"][0] < found["adamw"][0] * 0.26  # tensors under 4,096 values stay in fp32
    assert found["adamw8bit"][1] != found["adamw"][1]
    assert found["adamw8bit"][1] == pytest.approx(found["adamw"][1], rel=0.02)


@pytest.mark.parametrize("kind", ["embed", "head", "matrix", "scalar"])
def test_a_kind_of_parameter_moves_by_its_own_multiple(kind: str) -> None:
    model = small(tied=False)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    optimizer = make_optimizer(model, OptimConfig(lr=0.01, **{f"{kind}_lr_ratio": 0.0}))
    optimizer.set_rate(0.01)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    still = {n for n, p in model.named_parameters() if torch.equal(p, before[n])}
    expected = {
        "embed": {"model.embed_tokens.weight"},
        "head": {"lm_head.weight"},
        "matrix": {n for n in before if n.endswith("_proj.weight")},
        "scalar": {n for n in before if "norm" in n},
    }
    assert still == expected[kind]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"beta1": 1.0}, "beta1"),
        ({"decay_ratio": 0.0}, "decay_ratio"),
        ({"embed_lr_ratio": -1.0}, "embed_lr_ratio = -1.0"),
    ],
)
def test_impossible_settings_are_refused(values: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        OptimConfig(**values)


def test_a_rate_for_a_head_that_is_the_embedding_is_refused(manifest: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="head_lr_ratio"):
        run(manifest, tmp_path, OptimConfig(head_lr_ratio=0.5))


def test_wsd_is_stable_and_then_a_line_down() -> None:
    config = OptimConfig(lr=1.0, schedule="wsd", min_lr_ratio=0.0, warmup_steps=4, decay_ratio=0.25)
    rates = [learning_rate(config, s, 40) for s in range(1, 41)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert set(rates[3:30]) == {1.0}
    assert rates[30:] == pytest.approx([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0])


def test_wsd_takes_the_same_course_before_its_decay_however_long_the_run() -> None:
    config = OptimConfig(lr=1.0, schedule="wsd", warmup_steps=4)
    assert [learning_rate(config, s, 50) for s in range(1, 41)] == [learning_rate(config, s, 90) for s in range(1, 41)]


def test_a_constant_schedule_stays_at_its_peak() -> None:
    config = OptimConfig(lr=1.0, schedule="constant", warmup_steps=2)
    assert [learning_rate(config, s, 5) for s in range(1, 6)] == [0.5, 1.0, 1.0, 1.0, 1.0]


def test_muon_begins_with_the_rate_of_adamw_and_a_given_rate_wins() -> None:
    assert peak_rate(OptimConfig(optimizer="muon"), 512, 1.0) == 5e-4
    assert peak_rate(OptimConfig(lr=0.3), 512, 1.0) == 0.3
