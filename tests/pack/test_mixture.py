"""Limits and weights of sources: shares, nested choices, any order; and a whole run that accounts for every row."""

import hashlib
import tempfile
from collections import Counter
from pathlib import Path
from types import MappingProxyType
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import datakit
from datakit.errors import ConfigError
from datakit.pack import mixture as module
from datakit.pack.mixture import Mixture, patterns_of
from tests.cli.conftest import done
from tests.files import write_rows

ROWS = st.lists(st.tuples(st.sampled_from(["a/x", "a/y", "b"]), st.integers(0, 9), st.integers(0, 30)), min_size=1)


def batch_of(rows) -> pa.RecordBatch:
    """(source, content, tokens) of each row; the content decides the hash."""
    hashes = [hashlib.blake2b(str(text).encode(), digest_size=16).hexdigest() for _, text, _ in rows]
    sources, ids = pa.array([source for source, _, _ in rows], pa.string()), [[1] * n for _, _, n in rows]
    return pa.record_batch(
        {"source": sources, "content_hash": hashes, "input_ids": pa.array(ids, pa.list_(pa.int32()))}
    )


def kept_of(rows, max_tokens=MappingProxyType({}), weights=MappingProxyType({})) -> tuple[list, Mixture]:
    with mock.patch.object(module, "BINS", 2), tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in "ab"]
        for n, file in enumerate(files):
            file.write_bytes(module.keyed([batch_of(rows[n::2])], patterns_of(max_tokens, weights))[0].tobytes())
        mixture = Mixture.of(files, {source for source, *_ in rows}, max_tokens, weights)
    reasons = mixture.decide(batch_of(rows)).reasons.to_pylist()
    return [row for row, why in zip(rows, reasons, strict=True) if why is None], mixture


@given(ROWS, st.integers(1, 200), st.randoms())
def test_a_source_has_its_rows_with_the_smallest_hashes_up_to_its_tokens_whatever_their_order(rows, limit, random):
    rows = [*rows, ("a/x", 0, 1)]
    kept, mixture = kept_of(rows, {"a/*": limit})
    orders = {row[1]: n for row, n in zip(rows, module.order_of(batch_of(rows)["content_hash"]), strict=True)}
    mine = [(orders[text], n) for source, text, n in rows if source != "b"]
    before = {text: sum(n for other, n in mine if other <= order) for text, order in orders.items()}
    assert kept == [row for row in rows if row[0] == "b" or before[row[1]] <= limit]
    assert Counter(kept_of(random.sample(rows, len(rows)), {"a/*": limit})[0]) == Counter(kept)
    left_out = Counter(), Counter()
    assert [batch.num_rows for batch in mixture.taken([batch_of(rows)], *left_out)] == [len(kept)]
    tokens = sum(n for _, _, n in rows) - sum(n for _, _, n in kept)
    assert mixture.tokens_left_out == tokens and [count.total() for count in left_out] == [
        len(rows) - len(kept),
        tokens,
    ]


def test_weights_are_shares_of_the_largest_set_without_repeats():
    rows = [("books", i, 10) for i in range(400)] + [("web", 1000 + i, 10) for i in range(4000)]
    kept, mixture = kept_of(rows, weights={"books": 1, "web": 3})
    count = Counter(source for source, _, _ in kept)
    assert count == {"books": 400, "web": 1200}
    counts = dict(zip(module.COUNTS, (4000, 1200, 40_000, 12_000), strict=True))
    assert mixture.facts()["web"] == counts | {"share": 0.75}
    limited, _ = kept_of(rows, {"books": 1000}, {"books": 1, "web": 3})
    assert Counter(source for source, _, _ in limited) == {"books": 100, "web": 300}
    assert set(limited) < set(kept)


def test_what_matches_nothing_is_an_error_that_lists_the_sources():
    rows = [("books.jsonl", 1, 3), ("web.jsonl", 2, 3)]
    with pytest.raises(ConfigError, match=r"'book' matches no source .*; the sources are 'books\.jsonl', 'web\.jsonl'"):
        kept_of(rows, {"book": 5})
    with pytest.raises(ConfigError, match=r"the source 'web\.jsonl' has no weight"):
        kept_of(rows, weights={"books.jsonl": 1})
    with pytest.raises(ConfigError, match=r"'b\*' matches no source but those of '\*s\.jsonl', which comes first"):
        kept_of(rows, {"b*": 5}, {"*s.jsonl": 1, "web.jsonl": 1})


def test_a_source_of_which_nothing_fits_is_an_alarm():
    kept, mixture = kept_of([("a", 1, 50), ("b", 2, 5)], {"a": 10})
    assert kept == [("b", 2, 5)]
    alarm = "no row of 'a' is packed: its first row has more tokens than its limit or weight allows"
    assert list(mixture.alarms()) == [alarm]


def test_a_run_accounts_for_every_row_and_explains_those_left_out(tmp_path, trained):
    for name, many in (("books", 30), ("web", 90)):
        write_rows(tmp_path / f"{name}.jsonl", ({"text": f"{name} number {i} " + "word " * 20} for i in range(many)))
    files = [str(tmp_path / f"{name}.jsonl") for name in ("books", "web")]
    options = {"tokenizer": str(trained), "seq_len": 64, "weights": {"books*": 1.0, "web*": 1.0}}
    result = datakit.pack(files, **options, output=tmp_path / "packed")
    rows, mixture = result.ledger.rows, result.manifest.facts["mixture"]
    assert rows.into == 120 == rows.kept + sum(rows.dropped.values())
    assert mixture["books*"]["kept_rows"] == 30 and 28 <= mixture["web*"]["kept_rows"] <= 31
    assert rows.dropped == {"over_weight": 90 - mixture["web*"]["kept_rows"]}
    assert {(row["reason"], row["source"]) for row in result.dropped.to_pylist()} == {("over_weight", "web.jsonl")}
    dropped = result.dropped["id"][0].as_py()
    assert "over_weight" in str(datakit.open(tmp_path / "packed" / "manifest.json").explain(dropped))
    parts = datakit.pack(files, **options, part_tokens=1, output=tmp_path / "parts")
    assert len(parts.manifest.facts["packed"]) == 2 and parts.manifest.facts["mixture"] == mixture
    assert (parts.ledger.rows, parts.ledger.tokens.dropped) == (rows, result.ledger.tokens.dropped)
    for name in ("packed", "parts"):
        done("verify", "--roundtrip", tmp_path / name)
