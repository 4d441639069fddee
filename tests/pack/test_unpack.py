"""What was packed is all there, and whatever is not is found."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datakit.manifest import Count
from datakit.pack.rows import open_rows
from datakit.pack.stage import Pack, PackConfig
from datakit.pack.tokenize import Tokenize, TokenizeConfig
from datakit.pack.unpack import Index, prove, texts
from datakit.stage import split
from tests.pack.token_rows import batch_of, pack_rows

ROW = st.tuples(st.integers(1, 60), st.lists(st.integers(0, 60), max_size=6, unique=True).map(sorted))
ROWS = st.lists(ROW, min_size=1, max_size=20)
fast = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=80)


@st.composite
def options(draw, labelled: bool) -> dict:
    packing = draw(st.sampled_from(["best_fit", "pad", "concat"]))
    align_bos = draw(st.booleans()) and not (labelled and packing == "concat")
    formats = ["bin2d", "bin", "parquet"] + ([] if labelled else ["megatron"])
    form = draw(st.sampled_from(formats))
    several = packing != "concat" and form != "megatron"
    return {
        "packing": packing,
        "align_bos": align_bos,
        "format": form,
        "seq_len": draw(st.sampled_from([(9, 19), 24] if several else [24])),
        "overflow": draw(st.sampled_from(["auto", "truncate", "drop"] + ([] if align_bos else ["split"]))),
        "validation": draw(st.sampled_from([0.0, 0.4])),
        "window_tokens": draw(st.integers(1, 200)),
        "max_doc_tokens": draw(st.sampled_from([0, 30])),
    }


@fast
@given(rows=ROWS, labelled=st.booleans(), data=st.data())
def test_nothing_differs_however_rows_are_packed(tmp_path_factory, rows, labelled, data):
    batch = batch_of(rows, labelled)
    result, sets = pack_rows(tmp_path_factory.mktemp("packed"), [batch], **data.draw(options(labelled)))
    index = Index(list(sets.values()))
    assert list(prove(index, [batch.slice(0, 3), batch.slice(3)], result.rows, result.tokens)) == []


@fast
@given(pairs=st.lists(st.tuples(ROW, ROW), min_size=1, max_size=10), seq_len=st.sampled_from([(9, 29), 24]))
def test_nothing_differs_in_pairs(tmp_path_factory, pairs, seq_len):
    chosen, rejected = [list(side) for side in zip(*pairs, strict=True)]
    batch = batch_of(chosen, rejected=rejected)
    result, sets = pack_rows(tmp_path_factory.mktemp("packed"), [batch], seq_len=seq_len)
    assert list(prove(Index(list(sets.values())), [batch], result.rows, result.tokens)) == []


BATCH = batch_of([(8, [2, 6]), (30, [1, 30]), (5, [2, 5])])


@pytest.fixture
def packed(tmp_path):
    result, sets = pack_rows(tmp_path, [BATCH], seq_len=24, overflow="split", packing="pad")
    return result, sets["train"]


def findings(result, rows, **changed) -> list[str]:
    return list(prove(Index([replace(rows, **changed)]), [BATCH], result.rows, result.tokens))


def test_another_id_is_found(packed):
    result, rows = packed
    ids = np.array(rows.ids)
    ids[3] += 1
    first, second, _ = findings(result, rows, ids=ids)
    assert first == "row r0: tokens 0 to 8 are packed under other ids"
    assert second.startswith("tokens kept: the ledger says 43, a comparison token by token finds 35")


def test_a_label_that_moved_is_found(packed):
    result, rows = packed
    labels = np.array(rows.labels)
    labels[0] -= 1
    assert findings(result, rows, labels=labels)[0] == "row r0: tokens 0 to 8 have other labels than they were given"


def test_a_piece_that_is_not_there_is_found(packed):
    result, rows = packed
    found = findings(result, rows, sources=rows.sources[:-1])
    assert found == [
        "rows dropped: the ledger says 0, a comparison token by token finds 1",
        "tokens kept: the ledger says 43, a comparison token by token finds 38",
        "tokens dropped or cut: the ledger says 0, a comparison token by token finds 5",
    ]


def test_a_piece_that_is_there_twice_is_found(packed):
    result, rows = packed
    found = findings(result, rows, sources=np.concatenate([rows.sources[:1], rows.sources]))
    assert found == ["row r0: tokens 0 to 8 are packed twice"]


def test_a_row_that_nobody_gave_is_found(packed):
    result, rows = packed
    sources = np.array(rows.sources)
    sources["row_key"][-1] = 99
    assert findings(result, rows, sources=sources)[0].startswith("row key 99: is packed")


def test_a_ledger_that_does_not_fit_is_found(packed):
    result, rows = packed
    (found,) = prove(Index([rows]), [BATCH], result.rows, replace(result.tokens, into=44))
    assert found == "tokens in: the ledger says 44, a comparison token by token finds 43"


def test_nothing_packed_from_nothing_is_right():
    assert list(prove(Index([]), [], Count(), Count())) == []
    assert list(Index([]).rows()) == []


@pytest.mark.parametrize(
    "config",
    [
        {"seq_len": 20}, {"seq_len": 20, "packing": "concat"}, {"seq_len": (8, 40)}, {"format": "megatron"},
        {"seq_len": 20, "format": "bin", "ids_dtype": "uint16"}, {"seq_len": 20, "format": "parquet"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("add_bos", [False, True])
def test_documents_come_back_as_they_were(trained, small, documents, tmp_path, config, add_bos):
    given = ["the quick fox", "<|im_end|> is text", " leading\n\n", "你好 🙂 é\ufffd", "dog " * 60, "a"]
    stage = Tokenize(TokenizeConfig(tokenizer=str(trained), add_bos=add_bos))
    batch = documents(given)
    kept, _ = split(batch, stage.decide(batch), "tokenize")
    result = Pack(PackConfig(**config)).run([kept], tmp_path, small.facts())
    headers = result.header.get("buckets", [result.header])
    found = list(texts(Index([open_rows(tmp_path, h) for h in headers]), small))
    assert [row["text"] for row in found] == given
    assert all(row["learnt"] is None and row["missing"] == 0 for row in found)


def test_conversations_come_back_with_what_is_learnt(trained, small, conversations, tmp_path):
    stage = Tokenize(TokenizeConfig(tokenizer=str(trained)))
    turns = [
        {"role": r, "content": c} for r, c in (("user", "q"), ("assistant", "a"), ("user", "r"), ("assistant", ""))
    ]
    batch = conversations([turns])
    kept, _ = split(batch, stage.decide(batch), "tokenize")
    result = Pack(PackConfig(seq_len=100)).run([kept], tmp_path, small.facts())
    (row,) = texts(Index([open_rows(tmp_path, result.header)]), small)
    assert row["text"].startswith("<|im_start|>user\nq<|im_end|>\n")
    assert row["learnt"] == ["a<|im_end|>", "<|im_end|>"]
    assert row["tokens"] == len(kept.column("input_ids")[0])


def test_tokens_missing_before_the_last_piece_are_counted(tmp_path, small):
    _, sets = pack_rows(tmp_path, [batch_of([(30, [1, 5, 20, 30])])], seq_len=9, overflow="split")
    (row,) = texts(Index(list(sets.values())), small)
    assert (row["tokens"], row["missing"]) == (20, 10)  # the middle piece has no labels, so it was not packed
