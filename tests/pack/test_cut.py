"""Conversations longer than a row: cut between turns, the system prompt repeated, every token counted."""

import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datakit.data import SPANS
from datakit.manifest import Count
from datakit.pack.cut import TurnMarks, split_turns
from datakit.pack.inspect import TokenIndex, open_rows, prove
from datakit.pack.labels import label, labelled_ids
from datakit.pack.stage import Pack, PackConfig, seq_len_for, seq_len_to_cut
from tests.pack.token_rows import FACTS, batch_of, ids_of, pack_rows


def exchange(i, words=3):
    return [
        {"role": "user", "content": f"question {i} " + "why " * words},
        {"role": "assistant", "content": f"answer {i} " + "because " * words},
    ]


def joined_turns(exchanges):
    return [message for pair in exchanges for message in pair]


def tokens_of(tokenizer, messages):
    row = label(tokenizer, messages)
    ids, spans = labelled_ids(tokenizer, row, tokenizer.encode([row.text])[0], 1)
    learnt = np.zeros(len(ids), bool)
    for a, b in spans:
        learnt[a:b] = True
    return ids, learnt, spans


def joined(ids, piece):
    return np.concatenate([*(ids[a:b] for a, b in piece.head), ids[piece.start : piece.end]])


def test_pieces_are_what_the_template_writes_for_the_same_turns(small, trained):
    system, exchanges = [{"role": "system", "content": "the quick fox"}], [exchange(i) for i in range(5)]
    ids, learnt, _ = tokens_of(small, system + joined_turns(exchanges))
    alone = [tokens_of(small, system + joined_turns(exchanges[a:b]))[0] for a, b in ((0, 2), (2, 4), (4, 5))]
    stride = max(map(len, alone))
    marks = TurnMarks.of(trained)
    pieces, lost, _ = split_turns(ids, learnt, stride, marks, "split")
    assert [joined(ids, p).tolist() for p in pieces] == [a.tolist() for a in alone]
    assert (lost, pieces[0].head_tokens) == (Counter(), 0)


def test_a_long_answer_is_split_with_its_prompt_or_dropped(small, trained):
    messages = [*exchange(0), *exchange(1, words=60), *exchange(2)]
    ids, learnt, spans = tokens_of(small, messages)
    marks = TurnMarks.of(trained)
    stride = 60
    pieces, lost, needs = split_turns(ids, learnt, stride, marks, "drop")
    assert split_turns(ids, learnt, max(needs), marks, "drop")[1] == {}
    assert split_turns(ids, learnt, max(needs) - 1, marks, "drop")[1] == lost
    assert lost["long_answer"] == len(ids) - sum(p.end - p.start for p in pieces)
    assert not any(p.start < spans[1][1] and spans[1][0] < p.end for p in pieces)
    wide = 400
    assert len(split_turns(ids, learnt, len(ids), marks, "split")[0]) == 1
    ids, learnt, spans = tokens_of(small, [*exchange(0), {"role": "user", "content": "hi"},
                                           {"role": "assistant", "content": "fox " * 400}, *exchange(2)])  # fmt: skip
    pieces, lost, _ = split_turns(ids, learnt, wide, marks, "split")
    assert not lost
    assert [(p.start, p.end) for p in pieces] == sorted((p.start, p.end) for p in pieces)
    assert sum(p.end - p.start for p in pieces) == len(ids)
    inner = [p for p in pieces if p.head]
    assert inner and all(p.head[-1][1] == spans[1][0] for p in inner if p.start > spans[1][0])


@pytest.mark.parametrize("long_answer", ["split", "drop"])
def test_a_system_prompt_that_is_lost_with_the_first_exchange_counts_for_the_row_length(small, trained, long_answer):
    system = {"role": "system", "content": "fox " * 50}
    ids, learnt, _ = tokens_of(small, [system, *exchange(0, words=60), *exchange(1)])
    marks = TurnMarks.of(trained)
    for stride in (40, 80, 120, 200):
        _, lost, needs = split_turns(ids, learnt, stride, marks, long_answer)
        assert sum(needs.values()) == sum(lost.values()) and all(need > stride for need in needs)
    assert split_turns(ids, learnt, 40, marks, long_answer)[1]


def test_a_tool_result_that_looks_like_a_users_turn_is_not_cut_from_its_call(real, load):
    folder = real("minimind")
    if not folder.is_dir():
        pytest.skip("no such tokenizer beside the repository")
    marks, tokenizer = TurnMarks.of(folder), load(folder)
    call = {
        "role": "assistant",
        "content": "",
        "tool_calls": '[{"type":"function","function":{"name":"f","arguments":{}}}]',
    }
    messages = [exchange(0)[0], call, {"role": "tool", "content": "3"}, {"role": "assistant", "content": "it is 3"}]
    ids, _, _ = tokens_of(tokenizer, [*messages, *exchange(1)])
    assert len(marks.starts(ids)) == 2


@settings(max_examples=40, deadline=None)
@given(
    words=st.lists(st.integers(0, 30), min_size=1, max_size=7),
    seq_len=st.integers(20, 150),
    long_answer=st.sampled_from(["split", "drop"]),
    system=st.booleans(),
)
def test_every_token_is_packed_once_or_counted_and_no_piece_is_cut_inside_an_answer(
    small, trained, tmp_path_factory, words, seq_len, long_answer, system
):
    head = [{"role": "system", "content": "fox"}] if system else []
    turns = [exchange(i, n) for i, n in enumerate(words)]
    rows = [tokens_of(small, head + joined_turns(turns[:k])) for k in (1, len(words))]
    batch = pa.record_batch(
        {
            "row_key": pa.array([0, 1], pa.uint64()),
            "id": ["a", "b"],
            "content_hash": ["0" * 16] * 2,
            "source": ["s"] * 2,
            "input_ids": pa.array([r[0].tolist() for r in rows], pa.list_(pa.int32())),
            "label_spans": pa.array([[{"start": a, "end": b} for a, b in r[2]] for r in rows], SPANS),
        }
    )
    out = tmp_path_factory.mktemp("out")
    made = Pack(PackConfig(seq_len=seq_len, long_answer=long_answer)).run([batch], out, FACTS, trained)
    assert made.tokens.balance == 0 and made.rows.balance == 0
    sets = [open_rows(out, made.header)]
    rows_in, tokens_in = Count(**vars_of(made.rows)), Count(**vars_of(made.tokens))
    assert list(prove(TokenIndex(sets), [batch], rows_in, tokens_in)) == []
    for _, _, pieces in TokenIndex(sets).rows():
        for piece in pieces:
            assert piece.learnt.any()
            if long_answer == "drop":  # each piece ends where an answer ends
                assert piece.learnt[-2:].any()


def vars_of(count):
    return {"into": count.into, "kept": count.kept, "dropped": count.dropped, "padding": count.padding}


def test_the_alarm_names_the_row_length_that_keeps_enough():
    needs = Counter({10: 900, 1000: 10_000})
    assert seq_len_for(needs, 0.95, total=10_900) == 1024
    assert seq_len_for(Counter({100: 100_000, 5000: 5000}), 0.95, total=105_000) == 128
    # half of 704 tokens: 64 and 288
    assert seq_len_to_cut(Counter({(1, 64): 1, (1, 640): 1}), 0.5) == 320
    assert seq_len_to_cut(Counter({(1, 64): 1, (600, 640): 1}), 0.5) == 640, "nothing of the second before its label"


LENGTHS = (20, 30, 40, 150, 200, 400, 700)
DOCUMENTS = batch_of([(n, []) for n in LENGTHS], False)
ANSWERS = [(n, [n - 9, n]) for n in LENGTHS]
SETS = {
    "documents": DOCUMENTS,
    "answers at the end": batch_of(ANSWERS),
    "pairs": batch_of(ANSWERS, rejected=[(n + 50, [n - 9, n + 50]) for n in LENGTHS]),
    "pairs of one side": batch_of(ANSWERS, rejected=[(0, []) for _ in LENGTHS]),
}


@pytest.mark.parametrize("overflow", ["drop", "truncate"])
@pytest.mark.parametrize("name", list(SETS))
def test_the_row_length_of_the_alarm_keeps_what_it_says(tmp_path, name, overflow):
    batch = SETS[name]
    packed, _ = pack_rows(tmp_path / "a", [batch], seq_len=128, overflow=overflow)
    (alarm,) = packed.alarms
    assert f"{sum(packed.tokens.dropped.values()):,} of {packed.tokens.into:,} tokens" in alarm
    for length, share in re.findall(r"(\d+) (?:would keep )?(\d\d)%", alarm):
        again, _ = pack_rows(tmp_path / length, [batch], seq_len=int(length), overflow=overflow)
        assert again.tokens.kept >= int(share) / 100 * again.tokens.into
        shorter, _ = pack_rows(tmp_path / f"{length}-", [batch], seq_len=int(length) - 64, overflow=overflow)
        assert shorter.tokens.kept < int(share) / 100 * shorter.tokens.into


def test_pieces_without_a_label_raise_an_alarm_and_pieces_of_documents_do_not(tmp_path):
    assert not pack_rows(tmp_path / "a", [DOCUMENTS], seq_len=128, overflow="split")[0].alarms
    packed, _ = pack_rows(tmp_path / "b", [SETS["answers at the end"]], seq_len=128, overflow="split")
    assert f"{packed.tokens.dropped['no_labels']:,} of 1,540 tokens" in packed.alarms[0]
    assert "split_turns" in packed.alarms[0]


def test_what_max_doc_tokens_cuts_is_no_alarm(tmp_path):
    batch = batch_of([(600, []), (20, [])], False)
    assert not pack_rows(tmp_path / "a", [batch], seq_len=64, max_doc_tokens=50)[0].alarms
    assert not pack_rows(tmp_path / "b", [batch], seq_len=64, max_doc_tokens=50, drop_long=True)[0].alarms
    assert pack_rows(tmp_path / "c", [batch], seq_len=64, max_doc_tokens=500, overflow="truncate")[0].alarms


def test_transformers_flattening_collator_reads_one_sequence_a_row_and_keeps_their_boundaries(tmp_path):
    transformers = pytest.importorskip("transformers")
    rows = [(9, [3, 9]), (4, [1, 4]), (6, [2, 5])]
    pack_rows(tmp_path, [batch_of(rows)], seq_len=20, format="parquet", packing="pad")
    table = pq.read_table(tmp_path / "kept" / "train.parquet").to_pylist()
    features = [{"input_ids": r["input_ids"], "labels": r["labels"]} for r in table]
    made = transformers.DataCollatorWithFlattening()(features)
    assert made["position_ids"][0].tolist() == [t for n, _ in rows for t in range(n)]
    assert made["labels"][0].tolist() == [x for r in table for x in [-100, *r["labels"][1:]]]
    assert made["input_ids"][0].tolist() == [x for i, (n, _) in enumerate(rows) for x in ids_of(i, n)]
