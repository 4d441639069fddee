"""No kernel reads or writes outside its arrays: all of them on hostile input, with numba's checks of bounds.

`make check-kernels` runs these. The checks are part of the compiled code, so they need a cache of their own; without
them an index that is too large would read or write what lies behind an array. An index below zero counts from the end,
as in NumPy, and is not found here.
"""

import importlib
import json
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import datakit
import datakit.engine.maintenance as maintenance
from datakit.data import string_buffers
from datakit.dedup.minhash import shingle_sets
from datakit.errors import DatakitError
from datakit.kernels import kernel_sources
from datakit.text.words import hash_words_in, normalize

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_BOUNDSCHECK") != "1", reason="make check-kernels runs these with checks of bounds"
)
STEPS = maintenance._made()["step"]
PLAIN = maintenance._made()["text"]
PIECES = [
    "", "1", '"' * 60, " ", "\n", "\t \u2028\u3000", "\u0301" * 40, "e\u0301", "\ufdfa" * 9, "İ", "ΐ", "ﬃ", "ß",
    "\u1e9e", "\x00", "\ufffd", "\U0001f468\u200d\U0001f469", "港口", "กขฃ", "한국어", "नमस्ते", "\U0010ffff", "\ue000",
    "a" * 70, ".", "...", "!?;", "{", "lorem ipsum", "javascript", "a@b.de", "https://x.y/z?q=1#f", "<|im_end|>",
    "\\ud800", "\\", "'", "[1,2", "- ", "the ", "# ", "0" * 50, "x\n\nx\n\n", "Aa1 ",
]  # fmt: skip
TEXT = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
ALONE = [piece * times for piece in PIECES for times in (1, 33)]


def rows_of(kind: str, texts: list[str]) -> Iterator[dict[str, Any]]:
    """Hostile rows of a kind, and some that stay, so that each stage has work."""
    for text in texts:
        if kind in ("documents", "lines"):
            yield {"text": text, "url": text}
        elif kind == "pairs":
            yield {"prompt": text, "chosen": PLAIN + text, "rejected": text}
        else:
            turns = [("system", text), ("user", text), ("assistant", PLAIN + text), ("user", text), ("assistant", text)]
            yield {"messages": [{"role": role, "content": content} for role, content in turns]}
    yield from maintenance._rows(kind, PLAIN)


@pytest.mark.parametrize("number", range(len(STEPS)), ids=[step["title"] for step in STEPS])
@given(texts=st.lists(TEXT, min_size=1, max_size=12))
@example(texts=ALONE)
@settings(max_examples=int(os.environ.get("DATAKIT_EXAMPLES", "4")), suppress_health_check=list(HealthCheck))
def test_every_stage_stays_within_its_arrays(number, texts, tmp_path_factory):
    root = tmp_path_factory.mktemp("step")
    for name, text in maintenance._made()["files"].items():
        Path(root, name).write_text(text, encoding="utf-8")
    said = maintenance._compile(root, number, list(rows_of(STEPS[number]["rows"], texts)))
    assert said == STEPS[number]["title"] or "is left out" in said


ALIKE = [
    ("normalize", {}), ("language", {}), ("dedup", {}), ("dedup_repeats", {"unit": "line"}),
    ("dedup_repeats", {"unit": "token"}), ("dedup_repeats", {"unit": "sentence", "digits": "zero"}),
    ("filter", {"rules": ["gopher_quality", "gopher_repetition", "c4", "fineweb", "loops", "private"]}),
]  # fmt: skip


@pytest.mark.parametrize(
    "pattern", [*PIECES[1:], "a ", "a-", "aB", "1a", "A1 ", "é", "a\n", "a. ", "a\u0301", "港 ", "\t"]
)
def test_rows_of_nothing_but_one_pattern_fill_each_buffer_as_far_as_any_text_can(pattern):
    rows = pa.table({"text": [pattern * times for times in (1, 7, 64, 333)]})
    for stage, values in ALIKE:
        with suppress(DatakitError):
            getattr(datakit, stage)(rows, workers=1, **values)
    for look in LOOKS:
        look(pa.array([pattern * 100]))


@settings(suppress_health_check=list(HealthCheck))
@given(texts=st.lists(TEXT, max_size=4), more=st.lists(st.binary(max_size=9), max_size=3))
def test_an_array_of_records_in_which_any_byte_may_be_wrong(texts, more, tmp_path_factory):
    path = tmp_path_factory.mktemp("array") / "rows.json"
    rows = json.dumps([{"text": text} for text in ("a text", *texts)]).encode()
    path.write_bytes(rows[:-1] + b",".join(more) + b"]")
    with suppress(DatakitError):
        datakit.ingest(path)


def test_a_flood_of_rows_that_differ_in_a_word():
    texts = [PLAIN * 3 + f"row {n}" for n in range(600)]
    assert datakit.dedup(pa.table({"text": texts}), threshold=0.99, workers=1).kept.num_rows > 64


def kernels() -> Iterator[tuple[str, Any]]:
    """Every compiled function of the package."""
    for path in kernel_sources():
        module = ".".join(path.relative_to(Path(datakit.__file__).parents[1]).with_suffix("").parts)
        for name, value in vars(importlib.import_module(module)).items():
            if isinstance(value, numba.core.dispatcher.Dispatcher) and value.py_func.__module__ == module:
                yield f"{module}.{name}", value


def test_every_kernel_was_reached():
    """After the tests above, in the same process: a kernel that never ran was not checked."""
    there = dict(kernels())
    reached, waiting = set[str](), [name for name, kernel in there.items() if kernel.signatures]
    while waiting:  # what a kernel calls is part of its code, which may come from the cache
        reached.add(name := waiting.pop())
        function = there[name].py_func
        called = [function.__globals__.get(used) for used in function.__code__.co_names]
        found = {other for other, kernel in there.items() if any(kernel is c for c in called)}
        waiting += found - reached
    assert sorted(there.keys() - reached) == []


LOOKS: list[Callable[[pa.Array], Any]] = [
    normalize,
    lambda texts: hash_words_in(*string_buffers(texts))[0],
    lambda texts: shingle_sets(texts, 2).hashes,
]
FAR = (1 << 31) - 400
"""Where the texts begin in a buffer that is full of nothing: offsets of 32 bits end at 2**31."""


def far(texts: list[str]) -> pa.Array:
    """Texts at the end of a sparse buffer of 2 GiB."""
    data = b"".join(text.encode() for text in texts)
    buffer = mmap.mmap(-1, FAR + len(data))
    buffer[FAR:] = data
    ends = FAR + np.cumsum([0, *(len(text.encode()) for text in texts)])
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(buffer))


@pytest.mark.parametrize("look", LOOKS)
def test_offsets_of_two_gigabytes_give_what_small_ones_give(look):
    texts = ["The harbour of the old town", "e\u0301 \ufdfa 港口", "", "1" + '"' * 60]
    near, away = look(pa.array(texts)), look(far(texts))
    assert near == away if isinstance(near, pa.Array) else np.array_equal(near, away)


def test_a_filter_looks_at_texts_behind_two_gigabytes():
    texts = ["The harbour of the old town " * 4, "e\u0301 \ufdfa 港口 " * 6]
    rules = {"rules": ["gopher_quality", "gopher_repetition", "c4", "fineweb"]}
    one, other = (datakit.filter(pa.table({"text": t}), **rules) for t in (pa.array(texts), far(texts)))
    assert one.dropped["reason"] == other.dropped["reason"]


def test_a_kernel_with_an_index_too_large_is_told():
    """The checks are on."""

    @numba.njit
    def beyond(values: Any, i: int) -> Any:
        return values[i]

    with pytest.raises(IndexError):
        beyond(np.zeros(3), 3)
