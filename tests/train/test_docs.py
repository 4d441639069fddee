from dataclasses import fields
from pathlib import Path

import pytest

from train.config import MoeConfig, SizesConfig
from train.optim import OptimConfig

PAGE = Path(__file__).parents[2] / "docs" / "model.md"


@pytest.mark.parametrize("config", [SizesConfig, MoeConfig, OptimConfig])
def test_every_option_is_documented(config: type) -> None:
    text = PAGE.read_text(encoding="utf-8")
    missing = [f.name for f in fields(config) if f"`--{f.name.replace('_', '-')}" not in text]
    assert not missing
