"""Several row lengths at once, a validation split, and rows that begin where sequences do."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datakit.config import build, parse
from datakit.errors import ConfigError, InputError
from datakit.pack.fit import fit
from datakit.pack.stage import PackConfig, held_out_rows
from datakit.recipe import template
from tests.pack.token_rows import batch_of, found_tokens, hash_of, ids_of, pack_rows, spans_of

ROW = st.tuples(st.integers(1, 60), st.lists(st.integers(0, 60), max_size=6, unique=True).map(sorted))
ROWS = st.lists(ROW, min_size=1, max_size=30)
fast = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)


@fast
@given(rows=ROWS, packing=st.sampled_from(["best_fit", "pad"]), window=st.integers(1, 300),
       overflow=st.sampled_from(["auto", "split", "drop"]))  # fmt: skip
def test_each_length_makes_a_set_and_every_token_has_one_place(tmp_path_factory, rows, packing, window, overflow):
    lengths = (9, 19, 39)
    options = {"packing": packing, "window_tokens": window, "overflow": overflow}
    folders = [tmp_path_factory.mktemp("packed") for _ in range(2)]
    result, sets = pack_rows(folders[0], [batch_of(rows)], seq_len=lengths, **options)
    assert list(sets) == ["train-9", "train-19", "train-39"]
    found = [found_tokens(s) for s in sets.values()]
    together = {k: v[:2] for f in found for k, v in f.items()}
    assert len(together) == sum(map(len, found)) == result.tokens.kept
    one, alone = pack_rows(folders[1], [batch_of(rows)], seq_len=39, **options)
    assert together == {k: v[:2] for k, v in found_tokens(alone["train"]).items()}
    assert (one.tokens.dropped, one.rows) == (result.tokens.dropped, result.rows)
    for shorter, rows_of in zip((0, 9, 19), sets.values(), strict=True):
        for row in range(len(rows_of)):
            assert max(np.diff(rows_of.segments_of(row))) > shorter + (shorter > 0)


@fast
@given(pairs=st.lists(st.tuples(ROW, ROW), min_size=1, max_size=12))
def test_both_sides_of_a_pair_go_to_the_set_that_holds_the_longer_one(tmp_path_factory, pairs):
    chosen, rejected = [list(side) for side in zip(*pairs, strict=True)]
    batch = batch_of(chosen, rejected=rejected)
    result, sets = pack_rows(tmp_path_factory.mktemp("packed"), [batch], seq_len=(9, 29), window_tokens=60)
    kept = {}
    for rows in sets.values():
        keys = rows.sources["row_key"].reshape(-1, 2)
        assert (keys[:, 0] == keys[:, 1]).all()
        assert (rows.sources["row"] == np.arange(len(rows))).all()
        kept |= {int(k): rows.name for k in keys[:, 0]}
    assert len(kept) == result.rows.kept
    for key, name in kept.items():
        assert name == ("train-9" if max(n for n, _ in pairs[key]) <= 10 else "train-29")


def test_short_sequences_fill_the_gaps_of_longer_rows(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(int(n), [1, int(n)]) for n in rng.integers(4, 120, 3000)]
    result, _ = pack_rows(tmp_path, [batch_of(rows)], seq_len=(31, 63, 127))
    assert result.facts["density"] > 0.97  # each length by itself, where no two of the longer ones share a row: 0.75
    assert {n: s["packed_rows"] > 0 for n, s in result.facts["sets"].items()} == dict.fromkeys(
        ["train-31", "train-63", "train-127"], True
    )


def test_a_manifest_of_several_lengths_names_every_header(tmp_path):
    result, _ = pack_rows(tmp_path, [batch_of([(5, [1, 5]), (30, [1, 30])])], seq_len=(9, 39), validation=0.5)
    assert [h["prefix"] for h in result.header["buckets"]] == ["kept/train-9", "kept/train-39"]
    assert [h["stride"] for h in result.sets["validation"]["buckets"]] == [10, 40]
    assert "prefix" not in result.header  # a reader that knows one set alone must not take a part for the whole
    assert sum(f.endswith(".meta.json") for f in result.files) == 4


@fast
@given(rows=ROWS, cuts=st.lists(st.integers(0, 30), max_size=4), share=st.sampled_from([0.1, 0.5, 0.9]))
def test_the_validation_split_is_told_by_content_alone(tmp_path_factory, rows, cuts, share):
    batch = batch_of(rows)
    edges = sorted({0, len(rows), *(c for c in cuts if c < len(rows))})
    parts = [batch.slice(a, b - a) for a, b in pairwise(edges)]
    options = {"seq_len": 24, "validation": share, "overflow": "drop"}
    folders = [tmp_path_factory.mktemp("packed") for _ in range(2)]
    result, sets = pack_rows(folders[0], [batch], **options)
    again, _ = pack_rows(folders[1], parts, **options)
    for name in result.files:
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()
    gone = [[i for b in r.dropped for i in b.column("id").to_pylist()] for r in (result, again)]
    assert gone[0] == gone[1]
    for name, rows_of in sets.items():
        for key in rows_of.sources["row_key"].tolist():
            assert (int(hash_of(key)[:16], 16) / 2**64 < share) == (name == "validation")
    assert result.tokens.kept == sum(len(found_tokens(s)) for s in sets.values())


def test_about_the_share_that_was_asked_for_is_held_out():
    hashes = [hash_of(i) for i in range(20_000)]
    held_out = held_out_rows(batch_of([(1, [])] * 20_000).column("content_hash"), 0.01)
    assert 150 < held_out.sum() < 250
    assert held_out.tolist() == [int(h[:16], 16) < int(0.01 * 2**64) for h in hashes]


def test_a_share_that_grows_only_adds_rows():
    hashes = batch_of([(1, [])] * 2000).column("content_hash")
    assert not (held_out_rows(hashes, 0.1) & ~held_out_rows(hashes, 0.2)).any()
    assert not held_out_rows(hashes, 0.0).any()


def aligned_by_hand(lengths: list[int], stride: int) -> list[list[tuple[int, int]]]:
    """Rows of (sequence, tokens of it)."""
    rows, left = [], 0
    for i, n in enumerate(lengths):
        if left == 0:
            rows.append([])
            left = stride
        rows[-1].append((i, min(n, left)))
        left -= min(n, left)
    return rows


@given(st.lists(st.integers(1, 90), max_size=40), st.integers(1, 60))
def test_aligned_rows_begin_where_sequences_do(lengths, stride):
    found = fit(np.array(lengths, np.int64), stride, "concat", align_bos=True)
    rows = [[] for _ in range(found.num_rows)]
    for row, sequence, n in zip(found.row, found.sequence, found.length, strict=True):
        rows[row].append((int(sequence), int(n)))
    assert rows == aligned_by_hand(lengths, stride)
    assert not found.offset.any()


@fast
@given(rows=ROWS, window=st.integers(1, 200), packing=st.sampled_from(["concat", "best_fit", "pad"]))
def test_align_bos_cuts_and_counts(tmp_path_factory, rows, window, packing):
    options = {"seq_len": 24, "window_tokens": window, "packing": packing, "align_bos": True}
    result, sets = pack_rows(tmp_path_factory.mktemp("packed"), [batch_of(rows, labelled=False)], **options)
    assert not sets["train"].sources["start"].any()
    lost = sum(n for n, _ in rows) - result.tokens.kept
    assert result.tokens.dropped == ({"truncated": lost} if lost else {})
    for (key, _, place), (token, _, _) in found_tokens(sets["train"]).items():
        assert token == ids_of(key, place + 1)[-1]
    if packing == "concat":  # windows change nothing: every row but the last is full
        assert all(n == 25 for n in sets["train"].id_index[:-1, 1])


def test_conversations_are_not_cut_to_begin_the_next_row_with_another(tmp_path):
    with pytest.raises(InputError, match="pack conversations with best_fit"):
        pack_rows(tmp_path, [batch_of([(30, [20, 30])])], packing="concat", align_bos=True)


@pytest.mark.parametrize(
    "bad",
    [
        {"seq_len": ()}, {"seq_len": (512, 256)}, {"seq_len": (256, 256)}, {"seq_len": (0, 256)},
        {"seq_len": (256, 512), "packing": "concat"}, {"seq_len": (256, 512), "format": "megatron"},
        {"validation": 1.0}, {"validation": -0.1}, {"align_bos": True, "overflow": "split"},
        {"format": "parquet", "ids_dtype": "uint16"},
    ],
)  # fmt: skip
def test_senseless_values_are_refused(bad):
    with pytest.raises(ConfigError):
        PackConfig(**bad)


def test_seq_len_is_one_length_or_a_list_wherever_it_is_given():
    assert build(PackConfig, {"seq_len": 512}, "recipe").row_lengths == (512,)
    assert build(PackConfig, {"seq_len": [256, 512]}, "recipe").row_lengths == (256, 512)
    kind = PackConfig.__dataclass_fields__["seq_len"].type
    assert parse("512", kind, "--seq-len") == 512
    assert parse("256, 512", kind, "--seq-len") == (256, 512)
    for wrong in ("a", "256,a"):
        with pytest.raises(ConfigError):
            parse(wrong, kind, "--seq-len")
    with pytest.raises(ConfigError):
        build(PackConfig, {"seq_len": "512"}, "recipe")
    assert "# seq_len = 1024" in template("d", "text", ["x"], ("pack",))


def test_spans_of_the_tests_own_rows_are_what_they_say():
    assert spans_of(5, [1, 3, 4, 9]) == [{"start": 1, "end": 3}]
