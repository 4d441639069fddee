"""Models with random weights of any size and family."""

import json
from pathlib import Path

import pytest

from datakit.errors import ConfigError
from train.engine.start import SizesConfig
from train.model import hf
from train.model.decoder import PRESETS

PLAIN = PRESETS["tiny"]


def test_given_sizes_replace_those_of_the_preset() -> None:
    assert SizesConfig().applied(PLAIN) == PLAIN
    found = SizesConfig(hidden_size=96, num_heads=6, num_layers=3, intermediate_size=40).applied(PLAIN)
    assert (found.hidden_size, found.head_dim, found.num_heads, found.num_kv_heads) == (96, 16, 6, 6)
    assert (found.num_layers, found.intermediate_size) == (3, 40)
    assert SizesConfig(num_kv_heads=1).applied(PLAIN).num_kv_heads == 1


def test_the_model_of_a_config_json_of_any_family_is_taken(tmp_path: Path) -> None:
    sizes = {"vocab_size": 97, "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 6}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "sliding_window": 9}
    file = tmp_path / "small.json"
    file.write_text(json.dumps(sizes | {"model_type": "gemma3_text"}))
    found = SizesConfig(model_config=str(file)).applied(PLAIN)
    assert found.family == "gemma3_text" and found.windowed_layers == (0, 1, 2, 3, 4)
    wider = SizesConfig(model_config=str(file), hidden_size=64, num_heads=4, num_kv_heads=2).applied(PLAIN)
    assert wider.embedding_scale == 8.0 and not hf.foreign(wider)


def test_sizes_that_no_model_has_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--hidden-size 100 .* --num-heads 7"):
        SizesConfig(hidden_size=100, num_heads=7).applied(PLAIN)
    with pytest.raises(ConfigError, match="negative"):
        SizesConfig(num_layers=-1)
