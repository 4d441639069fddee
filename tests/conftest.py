"""Fixtures that every test may use."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]

# No deadline: the first call of a kernel compiles it. All examples of a test may use the same fixtures. `make test` has
# the same examples every time, `make campaign` new ones.
PLAIN = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}
settings.register_profile("datakit", **PLAIN, derandomize=True)
settings.register_profile("campaign", **PLAIN, max_examples=1000)
settings.load_profile("datakit")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real corpora, tokenizers and models beside the repository."""
    folder = Path(os.environ.get("DATAKIT_SHARED", ROOT.parent / "shared"))
    if not (folder / "corpora").is_dir():
        pytest.skip(f"real corpora are not at {folder}")
    return folder


@pytest.fixture(scope="session")
def small_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tokenizer of 320 tokens, trained on the spot."""
    from datakit.pack.train_tokenizer import TokenizerConfig, train_tokenizer

    folder = tmp_path_factory.mktemp("tokenizer")
    text = "the quick brown fox jumps over the lazy dog 你好 世界 assistant user system tool answer question\n\n"
    for name, content in train_tokenizer([text] * 20, TokenizerConfig(vocab_size=320)).items():
        (folder / name).write_bytes(content)
    return folder
