"""Conversations longer than a row: cut between turns, the system prompt repeated, every token counted."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datakit.pack.fit import split_turns
from datakit.pack.format import Packed
from datakit.pack.inspect import packed_rows, prove
from datakit.pack.stage import Pack, PackConfig
from datakit.pack.tokenize import Tokenize, TokenizeConfig
from datakit.stage import split
from tests.files import says, user
from tests.pack.by_hand import label, labelled_ids
from tests.pack.token_rows import FACTS, batch_of, pack_rows


def exchange(i, words=3):
    return [user(f"question {i} " + "why " * words), says(f"answer {i} " + "because " * words)]


def joined_turns(exchanges):
    return [message for pair in exchanges for message in pair]


def tokens_of(tokenizer, messages):
    """Ids, which are learnt, label spans, and where users' turns begin."""
    row = label(tokenizer, messages)
    ids, spans = labelled_ids(tokenizer, row)
    learnt = np.zeros(len(ids), bool)
    for a, b in spans:
        learnt[a:b] = True
    starts = [len(tokenizer.encode_text(row.text[:at])) for at in row.turn_starts]
    return np.array(ids), learnt, spans, np.array(starts, np.int64)


def joined(ids, piece):
    return np.concatenate([ids[a:b] for a, b in piece])


def test_pieces_are_what_the_template_writes_for_the_same_turns(small):
    system, exchanges = [{"role": "system", "content": "the quick fox"}], [exchange(i) for i in range(5)]
    ids, learnt, _, starts = tokens_of(small, system + joined_turns(exchanges))
    alone = [tokens_of(small, system + joined_turns(exchanges[a:b]))[0] for a, b in ((0, 2), (2, 4), (4, 5))]
    pieces, lost = split_turns(learnt, starts, max(map(len, alone)))
    assert [joined(ids, p).tolist() for p in pieces] == [a.tolist() for a in alone]
    assert (lost, len(pieces[0])) == (Counter(), 1)


def test_a_long_answer_is_split_with_its_prompt(small):
    row = [*exchange(0), user("hi"), says("fox " * 400), *exchange(2)]
    ids, learnt, spans, starts = tokens_of(small, row)
    pieces, lost = split_turns(learnt, starts, 400)
    assert not lost
    own = [piece[-1] for piece in pieces]
    assert own == sorted(own) and sum(b - a for a, b in own) == len(ids)
    inner = [piece for piece in pieces if len(piece) > 1]
    assert inner and all(piece[-2][1] == spans[1][0] for piece in inner if piece[-1][0] > spans[1][0])


def test_an_answer_is_split_only_where_its_prompt_leaves_space_for_it():
    learnt, starts = np.arange(100) >= 50, np.array([0])
    split = [((0, 66),), *(((0, 50), own) for own in ((66, 82), (82, 98), (98, 100)))]
    assert split_turns(learnt, starts, 66) == (split, Counter())
    assert split_turns(learnt, starts, 65) == ([], Counter(long_prompt=100))


def test_a_row_without_users_turns_is_truncated():
    pieces, lost = split_turns(np.ones(50, bool), np.empty(0, np.int64), 40)
    assert (pieces, lost) == ([((0, 40),)], Counter(truncated=10))


@settings(max_examples=40)
@given(words=st.lists(st.integers(0, 30), min_size=1, max_size=7), seq_len=st.integers(20, 150), system=st.booleans())
def test_every_token_is_packed_once_or_counted(trained, conversations, tmp_path_factory, words, seq_len, system):
    head = [{"role": "system", "content": "fox"}] if system else []
    turns = [exchange(i, n) for i, n in enumerate(words)]
    stage = Tokenize(TokenizeConfig(tokenizer=str(trained)))
    given = conversations([head + joined_turns(turns[:k]) for k in (1, len(words))])
    batch, _ = split(given, stage.decide(given), "tokenize")
    out = tmp_path_factory.mktemp("out")
    made = Pack(PackConfig(seq_len=seq_len)).prepare(iter([batch])).run([batch], out, FACTS)
    assert made.tokens.balance == 0 and made.rows.balance == 0
    sets = [Packed.open(out / made.facts["sets"][0][1]["prefix"])]
    assert list(prove(sets, [batch], made.rows, made.tokens)) == []
    assert all(piece.learnt.any() for _, _, pieces in packed_rows(sets) for piece in pieces)


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
def test_the_alarm_counts_the_tokens_that_rows_are_too_short_for(tmp_path, name, overflow):
    batch = SETS[name]
    packed, _ = pack_rows(tmp_path / "a", [batch], seq_len=128, overflow=overflow)
    (alarm,) = packed.facts["alarms"]
    assert f"{sum(packed.tokens.dropped.values()):,} of {packed.tokens.into:,} tokens" in alarm
    assert "longer --seq-len" in alarm


def test_alarms_are_for_what_rows_are_too_short_for(tmp_path):
    long, answers = batch_of([(600, []), (20, [])], False), SETS["answers at the end"]
    quiet = [
        (DOCUMENTS, {"seq_len": 128, "overflow": "split"}), (long, {"seq_len": 64, "max_doc_tokens": 50}),
        (long, {"seq_len": 64, "max_doc_tokens": 50, "drop_long": True}),
    ]  # fmt: skip
    for number, (batch, options) in enumerate(quiet):
        assert "alarms" not in pack_rows(tmp_path / str(number), [batch], **options)[0].facts
    options = {"seq_len": 64, "max_doc_tokens": 500, "overflow": "truncate"}
    assert pack_rows(tmp_path / "cut", [long], **options)[0].facts["alarms"]
    packed, _ = pack_rows(tmp_path / "pieces", [answers], seq_len=128, overflow="split")
    (alarm,) = packed.facts["alarms"]
    assert f"{packed.tokens.dropped['no_labels']:,} of 1,540 tokens" in alarm and "split_turns" in alarm
