"""Models with random weights of any size."""

from dataclasses import fields
from pathlib import Path

import pytest

from datakit.errors import ConfigError
from train import sft, weights
from train.config import MoeConfig, SizesConfig
from train.model import PRESETS
from train.optim import OptimConfig
from train.start import sized

PLAIN = PRESETS["tiny"]


def test_given_sizes_replace_those_of_the_preset():
    assert sized(SizesConfig(), PLAIN) == PLAIN
    found = sized(SizesConfig(hidden_size=96, num_heads=6, num_layers=3, intermediate_size=40), PLAIN)
    assert (found.hidden_size, found.head_dim, found.num_heads, found.num_kv_heads) == (96, 16, 6, 6)
    assert (found.num_layers, found.intermediate_size) == (3, 40)
    assert sized(SizesConfig(num_kv_heads=1), PLAIN).num_kv_heads == 1


def test_sizes_that_no_model_has_together_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"--hidden-size 100 .* --num-heads 7"):
        sized(SizesConfig(hidden_size=100, num_heads=7), PLAIN)
    with pytest.raises(ConfigError, match="expected 0 or more"):
        SizesConfig(num_layers=-1)


def test_experts_make_a_model_that_others_read(manifest, tmp_path):
    common = ["--manifest", str(manifest), "--out", str(tmp_path / "run"), "--steps", "1"]
    assert sft.main([*common, "--preset", "tiny", "--num-experts", "4"]) == 0
    assert weights.read_config(tmp_path / "run" / "checkpoints" / "step_00000001").family == "qwen3_moe"


def test_every_option_is_documented():
    text = (Path(__file__).parents[2] / "docs" / "model.md").read_text(encoding="utf-8")
    names = [f.name.replace("_", "-") for config in (SizesConfig, MoeConfig, OptimConfig) for f in fields(config)]
    assert not [name for name in names if f"`--{name}" not in text]
