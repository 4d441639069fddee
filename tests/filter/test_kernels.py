"""Kernels are compiled once, whatever the arrays look like: a second compile costs seconds in the middle of a run."""

import json

import numpy as np
import pyarrow as pa
import pytest

from datakit.data import string_array
from datakit.filter import _kernels_c4, _kernels_lookup, _kernels_signals, fasttext_model
from datakit.filter.language import Language
from datakit.filter.stage import Filter
from datakit.text import _kernels_text
from datakit.text.words import hash_values, normalize
from tests.filter.rows import filter_of

TEXT = "Zwölf Boxkämpfer jagen Viktor. Sie laufen quer über den Deich!\nEnd of the first line {and} [12] a sheep."
ARRAYS = {
    "from Python": pa.array([TEXT, "short", None]),
    "empty": pa.array([], pa.string()),
    "only nulls": pa.nulls(2, pa.string()),
    "a slice": pa.array(["x", TEXT, "y"]).slice(1, 1),
    "made by a kernel": string_array(np.frombuffer(bytearray(b"abc def"), np.uint8), np.array([0, 3, 7])),
}
CALLED = [
    _kernels_signals.measure, _kernels_c4.scan, _kernels_lookup.find, _kernels_lookup.rolling,
    _kernels_lookup.table_of, _kernels_lookup.count_stop_words, fasttext_model.predict,
    _kernels_text.collapse_spaces, _kernels_text.may_not_be_nfc, _kernels_text.hash_values,
    _kernels_text.hash_all_words,
]  # fmt: skip


@pytest.fixture(scope="module")
def stage(tmp_path_factory) -> Filter:
    items = tmp_path_factory.mktemp("items") / "items.jsonl"
    items.write_text(json.dumps({"question": TEXT}) + "\n")
    return filter_of("gopher_quality", "contamination", "c4", contamination={"eval": [str(items)]})


@pytest.mark.parametrize("name", ARRAYS)
def test_no_kernel_is_compiled_for_a_second_type(stage, name):
    batch = pa.record_batch({"text": ARRAYS[name]})
    stage.decide(batch)
    Language().decide(batch)
    hash_values(normalize(ARRAYS[name]))
    assert {k.py_func.__name__: len(k.signatures) for k in CALLED if len(k.signatures) > 1} == {}
