"""Lint finds each thing that is broken on purpose; peek shows rows as text; unpack finds every token again."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datakit.manifest import Count
from datakit.pack.format import SOURCE_DTYPE, Header, Packed
from datakit.pack.inspect import LintCounts, lint_rows, packed_rows, peek, pieces, prove, texts, training_tables
from datakit.pack.stage import Pack, PackConfig
from datakit.pack.tokenize import Tokenize, TokenizeConfig
from datakit.stage import split
from tests.files import says, user
from tests.pack.token_rows import ROW, ROWS, batch_of, fast, pack_rows

LABELLED = [
    {}, {"packing": "wrap", "format": "bin"}, {"packing": "pad", "overflow": "truncate", "max_doc_tokens": 30},
    {"format": "bin", "seq_len": (9, 19)}, {"align_bos": True, "format": "bin"}, {"overflow": "drop"},
    {"overflow": "split", "packing": "pad"},
]  # fmt: skip
PLAIN = [*LABELLED, {"format": "megatron"}, {"packing": "wrap", "align_bos": True, "max_doc_tokens": 30}]


@fast
@given(rows=ROWS, labelled=st.booleans(), data=st.data(), window=st.integers(1, 200), share=st.sampled_from([0.0, 0.4]))
def test_nothing_differs_however_rows_are_packed(tmp_path_factory, rows, labelled, data, window, share):
    batch, options = batch_of(rows, labelled), data.draw(st.sampled_from(LABELLED if labelled else PLAIN))
    config = {"seq_len": 24, "window_tokens": window, "validation": share} | options
    result, sets = pack_rows(tmp_path_factory.mktemp("packed"), [batch], **config)
    index = list(sets.values())
    assert list(prove(index, [batch.slice(0, 3), batch.slice(3)], result.rows, result.tokens)) == []


@fast
@given(
    pairs=st.lists(st.tuples(ROW, ROW) | st.tuples(st.just((0, [])), ROW), min_size=1, max_size=10),
    seq_len=st.sampled_from([(9, 29), 24]),
)
def test_nothing_differs_in_pairs(tmp_path_factory, pairs, seq_len):
    chosen, rejected = [list(side) for side in zip(*pairs, strict=True)]
    batch = batch_of(chosen, rejected=rejected)
    result, sets = pack_rows(tmp_path_factory.mktemp("packed"), [batch], seq_len=seq_len)
    assert list(prove(list(sets.values()), [batch], result.rows, result.tokens)) == []


BATCH = batch_of([(8, [2, 6]), (30, [1, 30]), (5, [2, 5])])


@pytest.fixture
def cut_set(tmp_path):
    result, sets = pack_rows(tmp_path, [BATCH], seq_len=24, overflow="split", packing="pad")
    return result, sets["train"]


def changed(array, at, by):
    array = np.array(array)
    array[at] += by
    return array


def with_key(sources, key):
    sources = np.array(sources)
    sources["row_key"][-1] = key
    return sources


@pytest.mark.parametrize(
    ("harm", "found"),
    [
        (lambda rows: {"ids": changed(rows.ids, (0, 3), 1)}, ["row r0: tokens 0 to 8 are packed with other ids",
         "tokens kept: the ledger says 43, a comparison token by token finds 35"]),
        (lambda rows: {"labels": changed(rows.labels, 0, -1)}, ["row r0: tokens 0 to 8 are packed with other labels"]),
        (lambda rows: {"sources": rows.sources[:-1]},
         ["rows dropped: the ledger says 0, a comparison token by token finds 1",
          "tokens kept: the ledger says 43, a comparison token by token finds 38",
          "tokens dropped or cut: the ledger says 0, a comparison token by token finds 5"]),
        (lambda rows: {"sources": np.concatenate([rows.sources[:1], rows.sources])},
         ["row r0: tokens 0 to 8 are packed twice"]),
        (lambda rows: {"sources": with_key(rows.sources, 99)}, ["row key 99: is packed, but the tokenized set has no"]),
        (lambda rows: {"segments": changed(rows.segments, 1, -1)},
         ["tokens kept: the ledger says 43, a comparison token by token finds 42"]),
    ],
)  # fmt: skip
def test_what_differs_is_found(cut_set, harm, found):
    result, rows = cut_set
    told = list(prove([replace(rows, **harm(rows))], [BATCH], result.rows, result.tokens))
    assert [line[: len(start)] for line, start in zip(told, found, strict=False)] == found


def test_a_ledger_that_does_not_fit_is_found_and_nothing_from_nothing_is_right(cut_set):
    result, rows = cut_set
    (found,) = prove([rows], [BATCH], result.rows, replace(result.tokens, into=44))
    assert found == "tokens in: the ledger says 44, a comparison token by token finds 43"
    assert list(prove([], [], Count(), Count())) == []


@pytest.fixture
def packed(trained, small, tmp_path):
    """Tokenizes and packs a batch; returns the sets."""

    def make(batch, add_bos=False, **config):
        stage = Tokenize(TokenizeConfig(tokenizer=str(trained), add_bos=add_bos))
        kept, _ = split(batch, stage.decide(batch), "tokenize")
        facts = Pack(PackConfig(**config)).prepare(iter([kept])).run(iter([kept]), tmp_path, small.facts()).facts
        return [Packed.open(tmp_path / header["prefix"]) for _, header, _ in facts["sets"]]

    return make


@pytest.mark.parametrize(
    "config",
    [
        {"seq_len": 20}, {"seq_len": 20, "packing": "wrap"}, {"seq_len": (8, 40)}, {"format": "megatron"},
        {"seq_len": 20, "format": "bin", "ids_dtype": "uint16"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("add_bos", [False, True])
def test_documents_come_back_as_they_were(packed, small, documents, config, add_bos):
    given = ["the quick fox", "<|im_end|> is text", " leading\n\n", "你好 🙂 é\ufffd", "dog " * 60, "a"]
    found = list(texts(packed(documents(given), add_bos, **config), small))
    assert [row["text"] for row in found] == given
    assert all(row["learnt"] is None and row["missing"] == 0 for row in found)


def test_conversations_come_back_with_what_is_learnt(packed, small, conversations):
    (rows,) = packed(conversations([[user("q"), says("a"), user("r"), says("")]]), seq_len=100)
    (row,) = texts([rows], small)
    assert row["text"].startswith("<|im_start|>user\nq<|im_end|>\n")
    assert row["learnt"] == ["a<|im_end|>", "<|im_end|>"]
    assert row["tokens"] == rows.sources["tokens"].sum()


def test_tokens_missing_before_the_last_piece_are_counted(tmp_path, small):
    _, sets = pack_rows(tmp_path, [batch_of([(30, [1, 5, 20, 30])])], seq_len=9, overflow="split")
    (row,) = texts(list(sets.values()), small)
    assert (row["tokens"], row["missing"]) == (20, 10)  # the middle piece has no labels, so it was not packed


# A piece is (ids, tokens of it that are targets, row key, its first token within its row).
BEGIN, END, SEQ_LEN = 1, 2, 20
GOOD = ([BEGIN, 50, 51, 60, 61, END, 70], [3, 4, 5], 0, 0)
FILE = 1 << 40


@pytest.fixture
def linted(small):
    """Lints packed rows that are put together here, as no writer would."""

    def make(*rows, labelled=True, pairs=False, extra=()):
        header = Header(
            task="sft", seq_len=SEQ_LEN, pad_id=0, eos_id=END, vocab_size=320, num_samples=len(rows),
            labelled=labelled, rows_per_unit=2 if pairs else 1,
        )  # fmt: skip
        ids = np.zeros((len(rows), SEQ_LEN + 1), np.int32)
        bounds, labels, sources = [], [], []
        for number, own in enumerate(rows):
            ends = np.cumsum([0] + [len(piece[0]) for piece in own]).tolist()
            ids[number, : ends[-1]] = [i for piece in own for i in piece[0]]
            bounds.append(ends)
            labels.append([at + t - 1 for at, piece in zip(ends, own, strict=False) for t in piece[1]] + list(extra))
            sources += [(key, start, number, at, len(i), 0) for at, (i, _, key, start) in enumerate(own)]
        (segments, segment_index), (positions, label_index) = ragged(bounds), ragged(labels)
        plain = (positions, label_index) if labelled else (None, None)
        return lint_rows([Packed(header, ids, segments, segment_index, *plain, np.array(sources, SOURCE_DTYPE))], small)

    return make


def ragged(lists):
    counts = np.array([len(own) for own in lists], np.int64)
    index = np.stack([np.cumsum(counts) - counts, counts], 1).astype(np.uint64)
    return np.array([n for own in lists for n in own], np.int32), index


def problems(found: dict[int, LintCounts]) -> dict[str, int]:
    (counts,) = found.values()
    plain = {f.name: getattr(counts, f.name) for f in fields(counts)}
    return {n: v for n, v in plain.items() if v and n not in ("sequences", "tokens", "labels")}


def test_a_set_that_is_right(linted):
    found = linted([GOOD, (*GOOD[:2], 1, 0)], [(*GOOD[:2], FILE, 0)])
    assert found == {0: LintCounts(sequences=2, tokens=14, labels=6), 1: LintCounts(sequences=1, tokens=7, labels=3)}
    assert found[0].label_share == 0.4286


BROKEN = {
    "rows_without_labels": ([GOOD, ([BEGIN, 50, END], [], 1, 0)], ()),
    "stop_not_labelled": ([([BEGIN, 50, 60, END, 70], [2], 0, 0)], ()),
    "labels_on_padding": ([GOOD], (6,)),
    "labels_across_sequences": ([GOOD, ([END, 50, END], [0, 1, 2], 1, 0)], ()),
    "doubled_bos": ([([BEGIN, BEGIN, 60, END], [2, 3], 0, 0)], ()),
    "ids_outside_vocabulary": ([([BEGIN, 320, 60, END], [2, 3], 0, 0)], ()),
    "truncated_answers": ([([BEGIN, 50, 60, 61], [2, 3], 0, 0), (*GOOD[:2], 1, 0)], ()),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_check_finds_what_it_is_for_and_nothing_else(linted, name):
    pieces, extra = BROKEN[name]
    assert problems(linted(pieces, extra=extra)) == {name: 1}


@pytest.mark.parametrize("position", [-1, 6, SEQ_LEN - 1])
def test_labels_on_padding_are_found_up_to_the_rows_end(linted, position):
    assert problems(linted([GOOD], extra=(position,))) == {"labels_on_padding": 1}
    assert problems(linted([([BEGIN, -7, 60, END], [2, 3], 0, 0)])) == {"ids_outside_vocabulary": 1}
    assert linted() == {}


def test_a_row_in_pieces_is_judged_whole(linted):
    first = ([BEGIN, 50, 60, 61], [2, 3], 0, 0)
    assert problems(linted([first], [([62, END, 70], [1], 0, 4)])) == {}
    assert problems(linted([first], [([70, 71], [], 0, 6)])) == {"truncated_answers": 1}  # a piece between is gone
    assert problems(linted([([BEGIN, 50], [], 0, 0)], [([60, END], [1], 0, 2)])) == {}


def test_a_missing_side_is_no_row(tmp_path):
    _, sets = pack_rows(tmp_path, [batch_of([(8, [2, 8])] * 2, rejected=[(0, []), (6, [3, 6])])], seq_len=24)
    (rows,) = sets.values()
    assert [(key, side) for key, side, _ in packed_rows([rows])] == [(0, 0), (1, 0), (1, 1)]
    (table,) = training_tables(rows)
    assert [len(ids) for ids in table["input_ids"].to_pylist()] == [8, 0, 8, 6]
    assert table["seq_lens"].to_pylist() == [[8], [], [8], [6]]


def test_each_side_of_a_pair_is_judged_by_itself(linted):
    assert problems(linted([GOOD], [(*GOOD[:2], 0, 0)], pairs=True)) == {}
    assert problems(linted([], [GOOD], pairs=True)) == {}
    assert problems(linted([GOOD], [([BEGIN, 50, 60], [], 0, 0)], pairs=True)) == {"rows_without_labels": 1}


def test_plain_text_has_no_labels_to_miss(linted):
    assert problems(linted([([50, 51, END], [], 0, 0), ([END], [], 1, 0)], labelled=False)) == {}
    assert problems(linted([([50, 51], [], 0, 0)], labelled=False)) == {"truncated_answers": 1}


def test_blocks_of_rows_do_not_matter(linted, monkeypatch):
    rows = [[GOOD, ([BEGIN, 50, 60], [2], 1, 0)], [(*GOOD[:2], FILE, 0)], [([BEGIN, BEGIN, END], [1, 2], 2, 0)]] * 3
    whole = linted(*rows)
    monkeypatch.setattr("datakit.pack.inspect.BLOCK_ROWS", 2)
    assert linted(*rows) == whole


def text_of(found) -> str:
    return "".join(piece.text for piece in found)


def test_a_packed_row_reads_as_its_conversations(packed, small, conversations):
    (rows,) = packed(conversations([[user("hi"), says("yes")], [user("b"), says("")]]), seq_len=100)
    look = peek(rows, small, 0)
    assert [(r.learnt, text_of(r.pieces)) for s in look.sequences for r in s.runs] == [
        (False, "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"), (True, "yes<|im_end|>"), (False, "\n"),
        (False, "<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\n"), (True, "<|im_end|>"), (False, "\n"),
    ]  # fmt: skip
    assert [(s.row_key, s.start) for s in look.sequences] == [(0, 0), (1, 0)]
    assert look.tokens + look.padding == 101
    assert look.labels == sum(len(p.ids) for s in look.sequences for r in s.runs if r.learnt for p in r.pieces)


def test_plain_text_is_learnt_whole_but_for_the_first_token_of_each_piece(packed, small, documents):
    (rows,) = packed(documents(["the quick fox " * 3]), seq_len=9, packing="pad")
    looks = [peek(rows, small, i).sequences[0] for i in range(len(rows))]
    assert [look.start for look in looks] == list(range(0, 10 * len(rows), 10))
    assert all([(r.learnt, len(r.pieces) == 1) for r in look.runs] == [(False, True), (True, False)] for look in looks)
    for row in (-1, len(rows)):
        with pytest.raises(IndexError):
            peek(rows, small, row)


@pytest.mark.parametrize("text", ["the 你好 🙂 é dog", "🙂🙂", "\ufffd", "", "a\ufffd\ufffdb", "🏳️‍🌈 <|im_end|>"])
def test_pieces_make_up_the_text_and_hold_whole_characters(small, text):
    ids = small.encoder.encode(text, add_special_tokens=False).ids
    found = list(pieces(small, ids, [False] * len(ids)))
    assert text_of(found) == text
    assert [i for p in found for i in p.ids] == ids
    if "\ufffd" not in text:
        assert not any("\ufffd" in p.text for p in found)


def test_added_tokens_are_told_from_text_that_spells_them_and_a_label_tears_a_character_apart(small):
    ids = small.encode_text("🙂")
    assert next(pieces(small, ids, [False, *[True] * (len(ids) - 1)])).ids == (ids[0],)
    end = small.eos_id
    spelled = small.encoder.encode("<|im_end|>", add_special_tokens=False).ids
    found = list(pieces(small, [end, *spelled, end], [True] * (len(spelled) + 2)))
    assert [p.added for p in found] == [True, *[False] * (len(found) - 2), True]
    assert text_of(found) == "<|im_end|>" * 3
