from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from datakit.errors import ModelError
from train.engine.optim import WeightAverage
from train.merge import main as merge
from train.model import hf
from train.sft import main as sft


def test_an_average_is_the_plain_recursion() -> None:
    model = torch.nn.Linear(3, 2)
    average = WeightAverage(model, 0.5)
    expected = model.weight.detach().clone()
    for step in range(1, 40):
        with torch.no_grad():
            model.weight += torch.randn(2, 3, generator=torch.Generator().manual_seed(step))
        average.update(step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * model.weight.detach()
    torch.testing.assert_close(average.values["weight"], expected)


def test_inside_the_model_has_the_averages_and_outside_its_weights() -> None:
    model = torch.nn.Linear(3, 2)
    average = WeightAverage(model, 0.9)
    kept, averaged = model.weight.detach().clone() + 1, model.weight.detach().clone()
    with torch.no_grad():
        model.weight.copy_(kept)
    with average.swapped():
        assert torch.equal(model.weight, averaged)
    assert torch.equal(model.weight, kept) and torch.equal(average.values["weight"], averaged)


@pytest.mark.parametrize("adapters", [False, True])
def test_a_runs_average_becomes_a_folder_of_its_own(manifest: Path, tmp_path: Path, adapters: bool) -> None:
    flags = ["--manifest", str(manifest), "--steps", "3", "--dtype", "fp32", "--ema-decay", "0.5"]
    assert sft([*flags, "--preset", "tiny", "--out", str(tmp_path / "base")]) == 0
    run = tmp_path / "base"
    if adapters:
        run = tmp_path / "lora"
        init = str(tmp_path / "base" / "checkpoints" / "step_00000003")
        assert sft([*flags, "--init", init, "--lora-rank", "2", "--lr", "0.1", "--out", str(run)]) == 0
    for weights in ("last", "ema"):
        if adapters or weights == "ema":
            command = ["--adapter", str(run), "--weights", weights, "--output", str(tmp_path / weights)]
            assert merge(command) == 0
    last = hf.read_model(tmp_path / "last" if adapters else run / "checkpoints" / "step_00000003")
    averaged = dict(hf.read_model(tmp_path / "ema").named_parameters())
    assert any(not torch.equal(p, averaged[n]) for n, p in last.named_parameters())
    if not adapters:
        kept = load_file(run / "checkpoints" / "step_00000003" / "ema.safetensors")
        assert kept.keys() == averaged.keys() and all(torch.equal(v, averaged[n]) for n, v in kept.items())


def test_a_checkpoint_without_an_average_is_refused_by_name(manifest: Path, tmp_path: Path) -> None:
    assert sft(["--manifest", str(manifest), "--steps", "1", "--preset", "tiny", "--out", str(tmp_path / "run")]) == 0
    with pytest.raises(ModelError, match=r"has no ema\.safetensors"):
        merge(["--adapter", str(tmp_path / "run"), "--weights", "ema", "--output", str(tmp_path / "to")])
