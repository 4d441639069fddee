import pytest

from datakit.pack.peek import peek, pieces
from datakit.pack.rows import open_rows
from datakit.pack.stage import Pack, PackConfig
from datakit.pack.tokenize import Tokenize, TokenizeConfig
from datakit.stage import split


@pytest.fixture
def packed(trained, small, tmp_path):
    """Tokenizes and packs a batch; returns its rows."""

    def make(batch, **config):
        stage = Tokenize(TokenizeConfig(tokenizer=str(trained)))
        kept, _ = split(batch, stage.decide(batch), "tokenize")
        result = Pack(PackConfig(**config)).run([kept], tmp_path, small.facts())
        return open_rows(tmp_path, result.header)

    return make


def chat(question: str, answer: str) -> list[dict]:
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]


def test_a_packed_row_reads_as_its_conversations(packed, small, conversations):
    look = peek(packed(conversations([chat("hi", "yes"), chat("b", "")]), seq_len=100), small, 0)
    assert [(r.segment, r.learnt, r.text) for s in look.sequences for r in s.runs] == [
        (0, False, "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"),
        (0, True, "yes<|im_end|>"),
        (0, False, "\n"),
        (1, False, "<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\n"),
        (1, True, "<|im_end|>"),
        (1, False, "\n"),
    ]
    assert [(s.row_key, s.start) for s in look.sequences] == [(0, 0), (1, 0)]
    assert look.tokens + look.padding == 101
    assert look.labels == sum(r.tokens for s in look.sequences for r in s.runs if r.learnt)


def test_a_row_that_is_not_there_is_an_error(packed, small, conversations):
    rows = packed(conversations([chat("hi", "yes")]), seq_len=100)
    for row in (-1, 1):
        with pytest.raises(IndexError):
            peek(rows, small, row)


def test_plain_text_is_learnt_whole_but_for_its_first_token(packed, small, documents):
    (sequence,) = peek(packed(documents(["the quick fox"]), seq_len=30), small, 0).sequences
    first, rest = sequence.runs
    assert (first.learnt, first.tokens, rest.learnt) == (False, 1, True)
    assert first.text + rest.text == "the quick fox<|im_end|>"


def test_pieces_of_a_split_row_say_where_they_begin(packed, small, documents):
    rows = packed(documents(["the lazy dog " * 20]), seq_len=9, packing="pad")
    looks = [peek(rows, small, i) for i in range(len(rows))]
    assert [look.sequences[0].start for look in looks] == list(range(0, 10 * len(rows), 10))


@pytest.mark.parametrize("text", ["the 你好 🙂 é dog", "🙂🙂", "\ufffd", "", "a\ufffd\ufffdb", "🏳️‍🌈 <|im_end|>"])
def test_pieces_make_up_the_text_and_hold_whole_characters(small, text):
    ids = small.encoder.encode(text, add_special_tokens=False).ids
    found = pieces(small, ids)
    assert "".join(p.text for p in found) == text
    assert [i for p in found for i in p.ids] == ids
    if "\ufffd" not in text:
        assert not any("\ufffd" in p.text for p in found)


def test_an_edge_tears_a_character_apart_but_loses_no_id(small):
    ids = small.encoder.encode("🙂", add_special_tokens=False).ids
    found = pieces(small, ids, frozenset({1}))
    assert found[0].ids == (ids[0],)
    assert [i for p in found for i in p.ids] == ids


def test_added_tokens_are_told_from_text_that_spells_them(small):
    end = small.eos_id
    spelled = small.encoder.encode("<|im_end|>", add_special_tokens=False).ids
    found = pieces(small, [end, *spelled, end])
    assert [p.added for p in found] == [True, *[False] * (len(found) - 2), True]
    assert "".join(p.text for p in found) == "<|im_end|>" * 3
