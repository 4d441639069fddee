import pytest

from datakit.pack.format import Packed
from datakit.pack.peek import peek
from datakit.pack.stage import Pack, PackConfig
from datakit.pack.tokenize import Tokenize, TokenizeConfig
from datakit.stage import split


def test_a_packed_row_reads_as_its_conversations(trained, small, conversations, tmp_path):
    rows = [
        [{"role": "user", "content": q}, {"role": "assistant", "content": a}] for q, a in (("hi", "yes"), ("b", ""))
    ]
    stage = Tokenize(TokenizeConfig(tokenizer=str(trained)))
    batch = conversations(rows)
    kept, _ = split(batch, stage.decide(batch), "tokenize")
    Pack(PackConfig(seq_len=100)).run([kept], tmp_path, small.facts())
    packed = Packed.open(tmp_path / "kept" / "train")
    assert [(r.segment, r.learnt, r.text) for r in peek(packed, small, 0)] == [
        (0, False, "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"),
        (0, True, "yes<|im_end|>"),
        (0, False, "\n"),
        (1, False, "<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\n"),
        (1, True, "<|im_end|>"),
        (1, False, "\n"),
    ]
    assert sum(r.tokens for r in peek(packed, small, 0)) == packed.segments_of(0)[-1]
    with pytest.raises(IndexError):
        peek(packed, small, 1)


def test_plain_text_is_learnt_whole_but_for_its_first_token(trained, small, documents, tmp_path):
    stage = Tokenize(TokenizeConfig(tokenizer=str(trained)))
    batch = documents(["the quick fox"])
    kept, _ = split(batch, stage.decide(batch), "tokenize")
    Pack(PackConfig(seq_len=30)).run([kept], tmp_path, small.facts())
    first, rest = peek(Packed.open(tmp_path / "kept" / "train"), small, 0)
    assert (first.learnt, first.tokens, rest.learnt) == (False, 1, True)
    assert first.text + rest.text == "the quick fox<|im_end|>"
