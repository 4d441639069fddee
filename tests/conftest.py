"""Fixtures that every test may use."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]

settings.register_profile("datakit", deadline=None)  # the first call of a kernel compiles it
settings.load_profile("datakit")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real corpora, tokenizers and models beside the repository."""
    folder = Path(os.environ.get("DATAKIT_SHARED", ROOT.parent / "shared"))
    if not (folder / "corpora").is_dir():
        pytest.skip(f"real corpora are not at {folder}")
    return folder
