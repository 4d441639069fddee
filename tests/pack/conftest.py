"""A small tokenizer trained on the spot, and real ones where they lie beside the repository."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from datakit.data import MESSAGES
from datakit.pack.chat import ChatTokenizer
from tests.pack.by_hand import added, saved


@pytest.fixture(scope="session")
def trained(small_tokenizer: Path) -> Path:
    return small_tokenizer


@pytest.fixture(scope="session")
def small(trained: Path) -> ChatTokenizer:
    return ChatTokenizer.load(trained)


@pytest.fixture(scope="session")
def load() -> Callable[[Path], ChatTokenizer]:
    """Loads each real tokenizer once."""
    return functools.cache(ChatTokenizer.load)


@pytest.fixture(scope="session")
def real(shared: Path) -> Callable[[str], Path]:
    return lambda name: shared / "tokenizers" / name


@pytest.fixture
def with_added(trained: Path, tmp_path: Path) -> Callable[..., ChatTokenizer]:
    """The small tokenizer with more added tokens, not special ones, and a template."""

    def make(template: str = "", *contents: str, special: bool = False) -> ChatTokenizer:
        spec, settings = (json.loads((trained / f"tokenizer{end}.json").read_bytes()) for end in ("", "_config"))
        settings |= {"chat_template": template or settings["chat_template"]}
        return ChatTokenizer.load(saved(tmp_path, spec, added(*contents, special=special), **settings))

    return make


def common(rows: int) -> dict[str, pa.Array]:
    return {
        "row_key": pa.array(range(rows), pa.uint64()),
        "id": pa.array([f"r{i}" for i in range(rows)]),
        "content_hash": pa.array(["0" * 32] * rows),
        "source": pa.array(["test"] * rows),
        "lang": pa.nulls(rows, pa.string()),
        "lang_score": pa.nulls(rows, pa.float32()),
        "extra": pa.nulls(rows, pa.string()),
    }


@pytest.fixture(scope="session")
def conversations() -> Callable[..., pa.RecordBatch]:
    def make(rows: list[list[dict[str, Any]]], tools: list[str | None] | None = None) -> pa.RecordBatch:
        columns = {"messages": pa.array(rows, MESSAGES), "tools": pa.array(tools or [None] * len(rows), pa.string())}
        return pa.record_batch(common(len(rows)) | columns)

    return make


@pytest.fixture(scope="session")
def documents() -> Callable[..., pa.RecordBatch]:
    return lambda texts: pa.record_batch(common(len(texts)) | {"text": pa.array(texts, pa.string())})


@pytest.fixture(scope="session")
def pairs() -> Callable[..., pa.RecordBatch]:
    def make(rows: list[tuple[Any, Any, Any]]) -> pa.RecordBatch:
        names = ("prompt", "chosen", "rejected")
        sides = {name: pa.array([r[i] for r in rows], MESSAGES) for i, name in enumerate(names)}
        return pa.record_batch(common(len(rows)) | sides | {"tools": pa.nulls(len(rows), pa.string())})

    return make
