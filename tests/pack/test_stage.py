"""Packed sets against a plain reference."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import datakit
from datakit.config import build, parse
from datakit.engine.store import UnitWriter
from datakit.errors import ConfigError, InputError
from datakit.manifest import Count, Ledger, Manifest, Shard, load
from datakit.pack.stage import Pack, PackConfig
from datakit.stage import Parent
from tests.pack.test_format import content
from tests.pack.token_rows import FACTS, ROW, ROWS, batch_of, fast, found_tokens, hash_of, ids_of, pack_rows, spans_of


@fast
@given(
    rows=ROWS, seq_len=st.integers(4, 50), packing=st.sampled_from(["best_fit", "wrap", "pad"]),
    overflow=st.sampled_from(["split", "truncate", "drop"]), window=st.integers(1, 200), labelled=st.booleans(),
)  # fmt: skip
def test_packing_agrees_with_the_plain_reference(tmp_path_factory, rows, seq_len, packing, overflow, window, labelled):
    overflow = "auto" if packing == "wrap" else overflow
    options = {"seq_len": seq_len, "packing": packing, "overflow": overflow, "window_tokens": window}
    result, sets = pack_rows(tmp_path_factory.mktemp("packed"), [batch_of(rows, labelled)], **options)
    packed, stride = sets["train"], seq_len + 1
    found = {(key, t): value for (key, _, t), value in found_tokens(packed).items()}
    dropped = {r for b in result.dropped for r in b.column("row_key").to_pylist()}
    for i, (length, edges) in enumerate(rows):
        labels = {t for s in spans_of(length, edges) for t in range(s["start"], s["end"])} - {0}
        cut = min(length, stride) if overflow == "truncate" else length
        stays = not (overflow == "drop" and length > stride)
        alive = [range(cut)]
        if labelled and packed.header.labelled and packing != "wrap":
            pieces = [range(a, min(a + stride, cut)) for a in range(0, cut, stride)]
            alive = [p for p in pieces if any(t in labels for t in p[1:])]
            stays = stays and bool(alive)
        assert (i in dropped) == (not stays)
        mine = {t: value for (key, t), value in found.items() if key == i}
        assert mine.keys() == ({t for p in alive for t in p} if stays else set())
        for t, (token, counts, row) in mine.items():
            assert token == ids_of(i, length)[t]
            first = t - 1 not in mine or mine[t - 1][2] != row or (packing != "wrap" and t % stride == 0)
            assert counts == ((not labelled or t in labels) and not first)
    assert result.tokens.kept == len(found)
    assert result.tokens.padding == len(packed) * stride - len(found)
    assert result.facts["packing"]["label_tokens"] == sum(counts for _, counts, _ in found.values())


@fast
@given(rows=ROWS, cuts=st.lists(st.integers(0, 25), max_size=4), packing=st.sampled_from(["best_fit", "wrap"]),
       share=st.sampled_from([0.0, 0.1, 0.9]))  # fmt: skip
def test_bytes_do_not_depend_on_batches(tmp_path_factory, rows, cuts, packing, share):
    whole = batch_of(rows)
    edges = sorted({0, len(rows), *(c for c in cuts if c < len(rows))})
    parts = [whole.slice(a, b - a) for a, b in pairwise(edges)]
    options = {"seq_len": 20, "packing": packing, "window_tokens": 60, "validation": share}
    folders = [tmp_path_factory.mktemp("packed") for _ in range(2)]
    (one, sets), (other, _) = (pack_rows(f, b, **options) for f, b in zip(folders, ([whole], parts), strict=True))
    assert one.files == other.files
    assert all((folders[0] / n).read_bytes() == (folders[1] / n).read_bytes() for n in one.files)
    gone = [[i for b in made.dropped for i in b.column("id").to_pylist()] for made in (one, other)]
    assert gone[0] == gone[1]
    for name, rows_of in sets.items():
        for key in rows_of.sources["row_key"].tolist():
            assert (int(hash_of(key)[:16], 16) / 2**64 < share) == (name == "validation")


def test_a_pair_is_never_torn_apart_and_judged_answers_are_counted(tmp_path):
    """What a row of a pair holds is what `test_inspect` compares."""
    answer, missing, silent = (9, [3, 9]), (0, []), (9, [])
    chosen, rejected = [answer, answer, missing, answer, silent], [answer, missing, answer, (40, [3, 40]), answer]
    result, sets = pack_rows(tmp_path, [batch_of(chosen, rejected=rejected)], seq_len=24, overflow="drop")
    packed, header = sets["train"], sets["train"].header
    assert (header.task, header.rows_per_unit, header.num_samples) == ("dpo", 2, 6)
    assert [packed.segments_of(row).tolist() for row in range(6)] == [[0, 9], [0, 9], [0, 9], [0], [0], [0, 9]]
    assert packed.sources["row_key"].tolist() == [0, 0, 1, 2] and packed.sources["row"].tolist() == [0, 1, 2, 5]
    assert result.rows.dropped == {"too_long": 1, "no_labels": 1}
    counts = result.facts["packing"]
    assert (counts["sequences"], counts["good_answers"], counts["bad_answers"]) == (4, 2, 2)


def test_a_pair_with_equal_sides_is_dropped(tmp_path):
    """Equal from the start, equal after the cut, equal but for one token, and equal tokens with other labels."""
    batch = batch_of([(20, [4, 20]), (40, [4, 40]), (20, [4, 20]), (20, [4, 20])], rejected=[(20, [4, 20])] * 4)
    sides = batch.column("input_ids").to_pylist()
    rejected = [sides[0], [*sides[1][:30], 7], [*sides[2][:19], 7], sides[3]]
    at = batch.schema.get_field_index("rejected_ids")
    batch = batch.set_column(at, "rejected_ids", pa.array(rejected, batch.schema.types[at]))
    spans = [[{"start": 4, "end": len(ids)}] for ids in rejected[:3]] + [[{"start": 9, "end": 20}]]
    batch = batch.set_column(at + 1, "rejected_label_spans", pa.array(spans, batch.schema.types[at + 1]))
    result, sets = pack_rows(tmp_path, [batch], seq_len=24, overflow="truncate")
    assert result.rows.dropped == {"same_answers": 2}
    assert result.tokens.dropped["same_answers"] == 40 + 40 + 31
    assert sets["train"].header.num_samples == 4


def test_plain_text_among_conversations_is_learnt_whole_but_does_not_come_first(tmp_path):
    mixed = pa.Table.from_batches([batch_of([(5, [2, 4])]), batch_of([(4, [])], False, 1)]).combine_chunks()
    _, sets = pack_rows(tmp_path / "a", mixed.to_batches(), seq_len=10)
    assert sets["train"].labels_of(0).tolist() == [1, 2, 5, 6, 7]
    with pytest.raises(InputError, match="pack conversations and plain text separately"):
        pack_rows(tmp_path / "b", [batch_of([(5, [])], False), batch_of([(5, [2, 4])], True, 1)], seq_len=10)


def test_long_documents_are_cut_or_dropped_and_counted(tmp_path):
    batch = batch_of([(30, []), (8, [])], False)
    cut, _ = pack_rows(tmp_path / "a", [batch], seq_len=20, max_doc_tokens=10)
    assert cut.tokens == Count(into=38, kept=18, dropped={"truncated": 20}, padding=3)
    gone, _ = pack_rows(tmp_path / "b", [batch], seq_len=20, max_doc_tokens=10, drop_long=True)
    assert (gone.rows.dropped, gone.tokens.dropped) == ({"too_long": 1}, {"too_long": 30})
    (dropped,) = gone.dropped
    told = [dropped.column(name).to_pylist() for name in ("stage", "detail")]
    assert told == [["pack"], ["30 tokens; max_doc_tokens is 10"]]
    gone, _ = pack_rows(tmp_path / "c", [batch], seq_len=20, overflow="drop")
    assert gone.dropped[0].column("detail").to_pylist() == ["30 tokens; a row holds 21"]


def test_empty_batches_tell_nothing_about_the_set(tmp_path):
    _, sets = pack_rows(tmp_path / "some", [batch_of([]), batch_of([(5, [2, 4])])], seq_len=10)
    assert sets["train"].header.task == "sft"
    for name, batches in {"a": [], "b": [batch_of([])], "c": [batch_of([(3, [1, 2])]).slice(0, 0)]}.items():
        result, sets = pack_rows(tmp_path / name, batches)
        assert (len(sets["train"]), result.facts["packing"]["density"]) == (0, 0.0)


def test_golden_bytes(tmp_path):
    """Two sequences in one row of bin2d, written out from the format's table alone."""
    rows = batch_of([(3, [1, 3]), (2, [1, 2])])
    result, _ = pack_rows(tmp_path, [rows], seq_len=6)

    assert content(tmp_path, "ids2d.bin") == np.array([1, 2, 3, 42, 43, 0, 0], "<i4").tobytes()
    assert content(tmp_path, "lbl.bin") == np.array([0, 1, 3], "<i4").tobytes()
    assert content(tmp_path, "lbl.idx") == np.array([0, 3], "<u8").tobytes()
    assert content(tmp_path, "seg.bin") == np.array([0, 3, 5], "<i4").tobytes()
    assert content(tmp_path, "seg.idx") == np.array([0, 3], "<u8").tobytes()
    sources = np.load(tmp_path / "kept" / "train-00000.src.npy")
    assert sources.tolist() == [(0, 0, 0, 0, 3, 0), (1, 0, 0, 1, 2, 0)]

    def files(part: str) -> dict:
        return {"bin": f"train-00000.{part}.bin", "idx": f"train-00000.{part}.idx", "dtype": "int32"}

    assert json.loads(content(tmp_path, "meta.json")) == {
        "version": 1, "format": "bin2d", "task": "sft", "num_samples": 1, "byteorder": "little", "seq_len": 6,
        "stride": 7, "ids": {"bin": "train-00000.ids2d.bin", "dtype": "int32"}, "labels": files("lbl"),
        "segments": files("seg"), "sources": "train-00000.src.npy", "pad_id": 0, "eos_id": 2, "vocab_size": 1000,
        "rows_per_unit": 1,
    }  # fmt: skip
    pack_rows(tmp_path / "half", [rows], seq_len=6, ids_dtype="uint16")
    assert content(tmp_path / "half", "ids2d.bin") == np.array([1, 2, 3, 42, 43, 0, 0], "<u2").tobytes()
    with pytest.raises(InputError, match="uint16"):
        Pack(PackConfig(ids_dtype="uint16")).run(iter(()), tmp_path, FACTS | {"vocab_size": 70_000})
    names = ("ids2d.bin", "lbl.bin", "lbl.idx", "meta.json", "seg.bin", "seg.idx", "src.npy")
    assert result.files == tuple(f"kept/train-00000.{n}" for n in names)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"seq_len": 0}, "seq_len"), ({"seq_len": ()}, "seq_len"), ({"seq_len": (512, 256)}, "ascending"),
        ({"seq_len": (256, 256)}, "ascending"), ({"seq_len": (0, 256)}, "at least 1"), ({"seq_len": 1 << 24}, "2..24"),
        ({"seq_len": (256, 512), "packing": "wrap"}, "wrap"), ({"validation": 1.0}, "below 1"),
        ({"seq_len": (256, 512), "format": "megatron"}, "megatron"), ({"validation": -0.1}, "0 or more"),
        ({"align_bos": True, "overflow": "split"}, "align_bos"), ({"window_tokens": 0}, "window_tokens"),
        ({"max_doc_tokens": -1}, "max_doc_tokens"),
        ({"drop_long": True}, "max_doc_tokens"), ({"weights": {"a": 0.0}}, "above 0"),
        ({"max_tokens": {"a": 0}}, "above 0"), ({"packing": "wrap", "overflow": "drop"}, "leave it out"),
    ],
)  # fmt: skip
def test_senseless_values_are_refused(bad, words):
    with pytest.raises(ConfigError, match=words):
        PackConfig(**bad)


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
@example([((10, [0, 10]), (3, [0, 3]))])  # the longer one fills a short row
def test_both_sides_of_a_pair_go_to_the_set_that_holds_the_longer_one(tmp_path_factory, pairs):
    chosen, rejected = [list(side) for side in zip(*pairs, strict=True)]
    batch = batch_of(chosen, rejected=rejected)
    result, sets = pack_rows(tmp_path_factory.mktemp("packed"), [batch], seq_len=(9, 29), window_tokens=20)
    keys = {name: rows.sources["row_key"].reshape(-1, 2).tolist() for name, rows in sets.items()}
    assert sum(map(len, keys.values())) == result.rows.kept
    for name, (key, other) in ((name, both) for name, found in keys.items() for both in found):
        assert key == other and (name == "train-9") == (max(n for n, _ in pairs[key]) <= 10)


def test_short_sequences_fill_the_gaps_of_longer_rows_and_the_manifest_names_every_set(tmp_path):
    lengths = np.random.default_rng(0).integers(4, 120, 3000).tolist()
    result, _ = pack_rows(tmp_path, [batch_of([(n, [1, n]) for n in lengths])], seq_len=(31, 63, 127), validation=0.5)
    packing = result.facts["packing"]
    assert packing["density"] > 0.97  # each length by itself, where no two of the longer ones share a row: 0.75
    assert list(packing["sets"]) == [f"{split}-{n}" for split in ("train", "validation") for n in (31, 63, 127)]
    assert all(found["packed_rows"] > 0 for found in packing["sets"].values())
    assert [h["prefix"] for h in result.facts["packed"]] == [f"kept/train-{n}-00000" for n in (31, 63, 127)]


@fast
@given(rows=ROWS, window=st.integers(1, 200), packing=st.sampled_from(["wrap", "best_fit", "pad"]))
def test_align_bos_cuts_and_counts(tmp_path_factory, rows, window, packing):
    options = {"seq_len": 24, "window_tokens": window, "packing": packing, "align_bos": True}
    result, sets = pack_rows(tmp_path_factory.mktemp("packed"), [batch_of(rows, labelled=False)], **options)
    assert not sets["train"].sources["start"].any()
    lost = sum(n for n, _ in rows) - result.tokens.kept
    assert result.tokens.dropped == ({"truncated": lost} if lost else {})
    for (key, _, place), (token, _, _) in found_tokens(sets["train"]).items():
        assert token == ids_of(key, place + 1)[-1]
    if packing == "wrap":  # windows change nothing: every row but the last is full
        assert all(n == 25 for n in sets["train"].real_tokens[:-1, 1])


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ({}, {"packing": "wrap", "align_bos": True}, "pack conversations with best_fit"),
        ({"labelled": False}, {"overflow": "split_turns"}, "plain text has no turns"),
        ({"rejected": [(30, [20, 30])]}, {"overflow": "split"}, "truncated or dropped, never split"),
    ],
)
def test_what_rows_of_a_kind_cannot_have_is_refused(tmp_path, rows, options, words):
    with pytest.raises(InputError, match=words):
        pack_rows(tmp_path, [batch_of([(30, [20, 30])], **rows)], **options)


@pytest.mark.campaign
def test_parts_are_within_a_tenth_of_a_percent_as_dense_as_one(shared, tmp_path):
    rows, tokenizer = [*(shared / "corpora/sft/gpteacher").glob("*.json")], str(shared / "tokenizers/minimind")
    datakit.tokenize([*map(str, rows)], tokenizer=tokenizer, output=tmp_path / "tokens")
    found = []
    for size in (1 << 26, 1 << 22):  # four windows a part, as by default
        options = {"seq_len": 512, "window_tokens": 1 << 20, "part_tokens": size}
        found.append(datakit.pack(str(tmp_path / "tokens"), **options, output=tmp_path / str(size)).ledger.tokens)
    one, many = (tokens.kept / (tokens.kept + tokens.padding) for tokens in found)
    assert many > one - 0.001 and len(load(tmp_path / str(1 << 22) / "manifest.json").facts["packed"]) > 1


def test_parts_are_even_and_end_before_they_would_have_too_many_tokens_or_too_much_padding(tmp_path):
    shards = []
    for number, lengths in enumerate(([30] * 3, [5] * 4, [1] * 2, [1])):
        with UnitWriter(tmp_path, number) as out:
            out.write("kept", batch_of([(n, [1, n]) for n in lengths], first_key=10 * number))
            shards += [Shard(**about) for about in out.close({})["shards"]]
    manifest = Manifest(
        dataset="d", kind="tokens", stage="tokenize", key="k", parents=(), config={}, code="",
        ledger=Ledger(Count()), shards=(*shards,),
    )  # fmt: skip
    source = Parent(tmp_path / "manifest.json", manifest)
    even = {"part_tokens": 112}, [[0], [1, 2, 3]]  # of 113 tokens, not 112 and 1
    for options, expected in (({}, [[0], [1, 2, 3]]), even, ({"packing": "pad"}, [[0], [1], [2, 3]])):
        stage = Pack(PackConfig(**{"seq_len": 9, "part_tokens": 60} | options)).prepare(source.rows())
        pieces = [pieces for _, pieces in stage.parts([source], None)]
        assert [[shards.index(shard) for shard in part] for part in pieces] == expected
        keys = [b.column("row_key").to_pylist() for part in pieces for b in replace(source, pieces=part).rows()]
        assert keys == [b.column("row_key").to_pylist() for b in source.rows()]


def test_seq_len_is_one_length_or_a_list_wherever_it_is_given():
    kind = PackConfig.__dataclass_fields__["seq_len"].type
    for written, told, lengths in ((512, "512", (512,)), ([256, 512], "256, 512", (256, 512))):
        assert build(PackConfig, {"seq_len": written}, "recipe").row_lengths == lengths
        assert PackConfig(seq_len=parse(told, kind, "--seq-len")).row_lengths == lengths
    with pytest.raises(ConfigError):
        parse("256,a", kind, "--seq-len")
