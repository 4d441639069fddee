"""Fixtures that every test may use."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real corpora, tokenizers and models beside the repository."""
    folder = Path(os.environ.get("DATAKIT_SHARED", ROOT.parent / "shared"))
    if not (folder / "corpora").is_dir():
        pytest.skip(f"real corpora are not at {folder}")
    return folder
