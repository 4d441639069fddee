import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datakit.errors import ConfigError, InputError
from datakit.manifest import Count
from datakit.pack.format import Packed
from datakit.pack.stage import Pack, PackConfig
from tests.pack.token_rows import FACTS, batch_of, ids_of, spans_of

ROW = st.tuples(st.integers(1, 40), st.lists(st.integers(0, 40), max_size=6, unique=True).map(sorted))
ROWS = st.lists(ROW, min_size=1, max_size=25)


def pack(tmp_path_factory, batches, **config):
    out = tmp_path_factory.mktemp("packed")
    result = Pack(PackConfig(**config)).run(iter(batches), out, FACTS)
    assert result.rows.balance == 0
    assert result.tokens.balance == 0
    return result, Packed.open(out / "kept" / "train"), out


def packed_tokens(packed: Packed):
    """(row_key, place in its row's tokens) -> (id, is it a target that counts, packed row, place)."""
    found = {}
    for row in range(packed.header.num_samples):
        segments = packed.segments_of(row)
        labels = packed.labels_of(row)
        sources = packed.sources[packed.sources["row"] == row]
        assert segments[0] == 0
        assert len(sources) == len(segments) - 1
        assert (packed.ids[row, segments[-1] :] == packed.header.pad_id).all()
        for source, a, b in zip(sources, segments[:-1], segments[1:], strict=True):
            assert source["tokens"] == b - a
            for t in range(a, b):
                counts = t > a and (labels is None or t - 1 in labels)
                key = (int(source["row_key"]), int(source["start"]) + int(t - a))
                assert key not in found
                found[key] = (int(packed.ids[row, t]), bool(counts), row, int(t))
        if labels is not None:  # no label on padding, none that predicts the first token of a sequence
            assert len(labels) == sum(k[1] for k in found.values() if k[2] == row)
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    rows=ROWS, seq_len=st.integers(4, 50), packing=st.sampled_from(["best_fit", "concat", "pad"]),
    overflow=st.sampled_from(["split", "truncate", "drop"]), window=st.integers(1, 200), labelled=st.booleans(),
)  # fmt: skip
def test_packing_agrees_with_the_plain_reference(tmp_path_factory, rows, seq_len, packing, overflow, window, labelled):
    options = {"seq_len": seq_len, "packing": packing, "overflow": overflow, "window_tokens": window}
    result, packed, _ = pack(tmp_path_factory, [batch_of(rows, labelled)], **options)
    found = packed_tokens(packed)
    if packed.header.num_samples == 0:
        assert not found
    dropped = {r for b in result.dropped for r in b.column("row_key").to_pylist()}
    stride = seq_len + 1
    for i, (length, edges) in enumerate(rows):
        labels = {t for s in spans_of(length, edges) for t in range(s["start"], s["end"])} - {0}
        cut = min(length, stride) if overflow == "truncate" and packing != "concat" else length
        stays = not (overflow == "drop" and packing != "concat" and length > stride)
        if labelled and packed.header.labelled and packing != "concat":
            pieces = [range(a, min(a + stride, cut)) for a in range(0, cut, stride)]
            alive = [p for p in pieces if any(t in labels for t in p[1:])]
            stays = stays and bool(alive)
        else:
            alive = [range(cut)]
        assert (i in dropped) == (not stays)
        expected = {(i, t) for p in alive for t in p} if stays else set()
        mine = {key: value for key, value in found.items() if key[0] == i}
        assert mine.keys() == expected
        for (_, t), (token, counts, _, place) in mine.items():
            assert token == ids_of(i, length)[t]
            first = place == 0 or t == 0 or found[(i, t)][3] in segment_starts(packed, found[(i, t)][2])
            assert counts == ((not labelled or t in labels) and not first)
    assert result.tokens.kept == len(found)
    assert result.tokens.padding == packed.header.num_samples * stride - len(found)
    assert result.facts["label_tokens"] == sum(v[1] for v in found.values())


def segment_starts(packed: Packed, row: int) -> set[int]:
    return set(packed.segments_of(row)[:-1].tolist())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(rows=ROWS, cuts=st.lists(st.integers(0, 25), max_size=4), packing=st.sampled_from(["best_fit", "concat"]))
def test_bytes_do_not_depend_on_batches(tmp_path_factory, rows, cuts, packing):
    whole = batch_of(rows)
    edges = sorted({0, len(rows), *(c for c in cuts if c < len(rows))})
    parts = [whole.slice(a, b - a) for a, b in pairwise(edges)]
    folders = [
        pack(tmp_path_factory, b, seq_len=20, packing=packing, window_tokens=60)[2] / "kept" for b in ([whole], parts)
    ]
    files = [sorted(f.name for f in folder.iterdir()) for folder in folders]
    assert files[0] == files[1]
    assert all((folders[0] / n).read_bytes() == (folders[1] / n).read_bytes() for n in files[0])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    pairs=st.lists(st.tuples(ROW, ROW), min_size=1, max_size=12), overflow=st.sampled_from(["auto", "split", "drop"])
)
def test_a_pair_is_never_torn_apart(tmp_path_factory, pairs, overflow):
    chosen, rejected = [list(side) for side in zip(*pairs, strict=True)]
    batch = batch_of(chosen, rejected=rejected)
    result, packed, _ = pack(tmp_path_factory, [batch], seq_len=24, overflow=overflow, window_tokens=50)
    header = packed.header
    assert (header.task, header.rows_per_unit) == ("dpo", 2)
    assert header.num_samples == 2 * result.rows.kept
    dropped = {r for b in result.dropped for r in b.column("row_key").to_pylist()}
    stays = [i for i in range(len(pairs)) if i not in dropped]
    for unit, i in enumerate(stays):
        for side, (length, edges) in enumerate(pairs[i]):
            row, cut = 2 * unit + side, min(length, 25)
            expected = ids_of(i, length, (1, 500)[side])[:cut]
            assert packed.ids[row, :cut].tolist() == expected
            assert packed.segments_of(row).tolist() == [0, cut]
            labels = {t - 1 for s in spans_of(length, edges) for t in range(s["start"], s["end"]) if 0 < t < cut}
            assert set(packed.labels_of(row).tolist()) == labels
            assert labels
    for i in dropped:
        whole = [
            len({t for s in spans_of(n, e) for t in range(s["start"], s["end"]) if 0 < t < 25}) for n, e in pairs[i]
        ]
        assert min(whole) == 0 or (overflow == "drop" and max(n for n, _ in pairs[i]) > 25)


def test_plain_text_among_conversations_is_learnt_whole(tmp_path_factory):
    mixed = pa.Table.from_batches([batch_of([(5, [2, 4])]), batch_of([(4, [])], False, 1)]).combine_chunks()
    _, packed, _ = pack(tmp_path_factory, mixed.to_batches(), seq_len=10)
    assert packed.labels_of(0).tolist() == [1, 2, 5, 6, 7]


def test_conversations_behind_plain_text_are_refused(tmp_path_factory):
    with pytest.raises(InputError, match="pack conversations and plain text apart"):
        pack(tmp_path_factory, [batch_of([(5, [])], False), batch_of([(5, [2, 4])], True, 1)], seq_len=10)


def test_long_documents_are_cut_or_dropped_and_counted(tmp_path_factory):
    rows = [(30, []), (8, [])]
    cut, _, _ = pack(tmp_path_factory, [batch_of(rows, False)], seq_len=20, max_doc_tokens=10)
    assert cut.tokens == Count(into=38, kept=18, dropped={"truncated": 20}, padding=3)
    gone, _, _ = pack(tmp_path_factory, [batch_of(rows, False)], seq_len=20, max_doc_tokens=10, drop_long=True)
    assert gone.rows.dropped == {"too_long": 1}
    assert gone.tokens.dropped == {"too_long": 30}
    (dropped,) = gone.dropped
    assert dropped.column("detail").to_pylist() == ["30 tokens; max_doc_tokens is 10"]
    assert dropped.column("stage").to_pylist() == ["pack"]


def test_auto_splits_text_and_truncates_conversations(tmp_path_factory):
    text, _, _ = pack(tmp_path_factory, [batch_of([(30, [])], False)], seq_len=20)
    talk, _, _ = pack(tmp_path_factory, [batch_of([(30, [3, 30])])], seq_len=20)
    assert (text.tokens.kept, talk.tokens.kept) == (30, 21)
    assert talk.tokens.dropped == {"truncated": 9}


def test_an_empty_first_batch_tells_nothing_about_the_set(tmp_path_factory):
    batches = [batch_of([]), batch_of([(5, [2, 4])])]
    assert pack(tmp_path_factory, batches, seq_len=10)[1].header.task == "sft"


def test_nothing_gives_an_empty_set(tmp_path_factory):
    for batches in ([], [batch_of([])], [batch_of([(3, [1, 2])]).slice(0, 0)]):
        result, packed, _ = pack(tmp_path_factory, batches)
        assert packed.header.num_samples == 0
        assert result.facts["density"] == 0.0


def test_golden_bytes(tmp_path_factory):
    """Two sequences in one row of bin2d, written out from the format's table alone."""
    rows = batch_of([(3, [1, 3]), (2, [1, 2])])
    result, _, out = pack(tmp_path_factory, [rows], seq_len=6)

    def content(name: str) -> bytes:
        return (out / "kept" / f"train.{name}").read_bytes()

    assert content("ids2d.bin") == np.array([1, 2, 3, 42, 43, 0, 0], "<i4").tobytes()
    assert content("lbl.bin") == np.array([0, 1, 3], "<i4").tobytes()
    assert content("lbl.idx") == np.array([0, 3], "<u8").tobytes()
    assert content("seg.bin") == np.array([0, 3, 5], "<i4").tobytes()
    assert content("seg.idx") == np.array([0, 3], "<u8").tobytes()
    sources = np.load(out / "kept" / "train.src.npy")
    assert sources.tolist() == [(0, 0, 0, 0, 3), (1, 0, 0, 1, 2)]
    assert json.loads(content("meta.json")) == {
        "version": 1,
        "format": "bin2d",
        "task": "sft",
        "num_samples": 1,
        "byteorder": "little",
        "seq_len": 6,
        "stride": 7,
        "ids": {"bin": "train.ids2d.bin", "dtype": "int32"},
        "labels": {"bin": "train.lbl.bin", "idx": "train.lbl.idx", "dtype": "int32"},
        "segments": {"bin": "train.seg.bin", "idx": "train.seg.idx", "dtype": "int32"},
        "sources": "train.src.npy",
        "pad_id": 0,
        "eos_id": 2,
        "vocab_size": 1000,
        "rows_per_unit": 1,
    }
    names = ("ids2d.bin", "lbl.bin", "lbl.idx", "meta.json", "seg.bin", "seg.idx", "src.npy")
    assert result.files == [f"kept/train.{n}" for n in names]


def test_uint16_halves_the_ids(tmp_path_factory):
    _, packed, out = pack(tmp_path_factory, [batch_of([(5, [])], False)], seq_len=9, ids_dtype="uint16")
    assert (out / "kept" / "train.ids2d.bin").stat().st_size == 20
    assert packed.ids[0, :5].tolist() == ids_of(0, 5)
    with pytest.raises(InputError, match="uint16"):
        Pack(PackConfig(ids_dtype="uint16")).run([], out, FACTS | {"vocab_size": 70_000})


@pytest.mark.parametrize("bad", [{"seq_len": 0}, {"max_doc_tokens": -1}, {"drop_long": True}, {"window_tokens": 0}])
def test_senseless_values_are_refused(bad):
    with pytest.raises(ConfigError):
        PackConfig(**bad)
