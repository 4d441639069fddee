"""Models with random weights of any size and family."""

import json
from dataclasses import fields
from pathlib import Path

import pytest

from datakit.errors import ConfigError, DatakitError, ModelError
from train import hf, sft
from train.config import MoeConfig, SizesConfig
from train.data import DataConfig, PackedSet, StepStream
from train.model import PRESETS
from train.optim import OptimConfig
from train.start import sized

PLAIN = PRESETS["tiny"]


def test_given_sizes_replace_those_of_the_preset() -> None:
    assert sized(SizesConfig(), PLAIN) == PLAIN
    found = sized(SizesConfig(hidden_size=96, num_heads=6, num_layers=3, intermediate_size=40), PLAIN)
    assert (found.hidden_size, found.head_dim, found.num_heads, found.num_kv_heads) == (96, 16, 6, 6)
    assert (found.num_layers, found.intermediate_size) == (3, 40)
    assert sized(SizesConfig(num_kv_heads=1), PLAIN).num_kv_heads == 1


def test_the_model_of_a_config_json_of_any_family_is_taken(tmp_path: Path) -> None:
    sizes = {"vocab_size": 97, "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 6}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "sliding_window": 9}
    file = tmp_path / "small.json"
    file.write_text(json.dumps(sizes | {"model_type": "gemma3_text"}))
    found = sized(SizesConfig(model_config=str(file)), PLAIN)
    assert found.family == "gemma3_text" and found.windowed_layers == (0, 1, 2, 3, 4)
    wider = sized(SizesConfig(model_config=str(file), hidden_size=64, num_heads=4, num_kv_heads=2), PLAIN)
    assert wider.embedding_scale == 8.0 and hf.family_of(wider) == "gemma3_text"


def test_sizes_that_no_model_has_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--hidden-size 100 .* --num-heads 7"):
        sized(SizesConfig(hidden_size=100, num_heads=7), PLAIN)
    with pytest.raises(ConfigError, match="expected 0 or more"):
        SizesConfig(num_layers=-1)


def test_one_number_gives_the_sizes_of_a_model(manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """nanochat's: width 64 x depth in heads of 128, and 20 tokens for each parameter that is multiplied."""
    found = sized(SizesConfig(depth=20), PLAIN)
    assert (found.num_layers, found.hidden_size, found.num_heads, found.num_kv_heads) == (20, 1280, 10, 10)
    assert found.qk_norm and not found.tied_embeddings and hf.family_of(found) == "qwen3"
    assert sized(SizesConfig(depth=5, num_kv_heads=1), PLAIN).num_kv_heads == 1
    for wrong in ({"depth": -1}, {"depth": 4, "model_config": "x.json"}):
        with pytest.raises(DatakitError, match=r"expected 0 or more|--depth and --model-config"):
            SizesConfig(**wrong)
    run = tmp_path / "run"
    common = ["--manifest", str(manifest), "--depth", "1", "--batch-rows", "25", "--tokens-per-parameter", "0.05"]
    assert sft.main([*common, "--stop-at", "1", "--out", str(run)]) == 0
    model = hf.read_model(run / "checkpoints" / "step_00000001")
    assert model.config.vocab_size == 320, "300 tokens, and padding up to a multiple of 64"
    tokens = 0.05 * (model.num_parameters() - 320 * 128)
    data = PackedSet.open_all(manifest)[0]
    epoch = StepStream(data, DataConfig(batch_rows=25), 0).plan.steps_per_epoch
    steps = json.loads((run / "run.json").read_text())["total_steps"]
    assert steps == -(-tokens * epoch // data.lengths.sum())
    assert f"{steps:,} steps" in capsys.readouterr().out
    assert sft.main([*common, "--steps", "2", "--resume", "--out", str(run)]) == 0, "--steps wins"


def test_options_that_no_architecture_has_together_are_refused(manifest: Path, tmp_path: Path) -> None:
    """Every model that is trained can be read by others."""
    sizes = {"vocab_size": 97, "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 6}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "model_type": "gemma3_text"}
    (tmp_path / "config.json").write_text(json.dumps(sizes))
    common = ["--manifest", str(manifest), "--out", str(tmp_path / "run"), "--steps", "1"]
    with pytest.raises(ModelError, match="no Hugging Face architecture has these options together"):
        sft.main([*common, "--model-config", str(tmp_path), "--num-experts", "4"])
    assert sft.main([*common, "--preset", "tiny", "--num-experts", "4"]) == 0
    assert hf.read_config(tmp_path / "run" / "checkpoints" / "step_00000001").family == "qwen3_moe"


def test_every_option_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "model.md").read_text(encoding="utf-8")
    names = [f.name.replace("_", "-") for config in (SizesConfig, MoeConfig, OptimConfig) for f in fields(config)]
    assert not [name for name in names if f"`--{name}" not in text]
