"""A set that is right, and then each thing that lint finds, broken on purpose."""

from dataclasses import fields

import numpy as np
import pytest

from datakit.pack.format import SOURCE_DTYPE, Header, Writer
from datakit.pack.lint import WRONG, Counts, lint_rows
from datakit.pack.rows import open_rows

# A piece is (ids, tokens of it that are targets, row key, its first token within its row).
BEGIN, END, SEQ_LEN = 1, 2, 20
GOOD = ([BEGIN, 50, 51, 60, 61, END, 70], [3, 4, 5], 0, 0)
FILE = 1 << 40


@pytest.fixture
def linted(small, tmp_path):
    """Writes packed rows with the format's writer and lints them."""

    def make(*packed, labelled=True, pairs=False, extra=(), vocab_size=320):
        header = Header(
            task="sft", seq_len=SEQ_LEN, pad_id=0, eos_id=END, vocab_size=vocab_size, labelled=labelled,
            rows_per_unit=2 if pairs else 1,
        )  # fmt: skip
        with Writer(tmp_path / "kept" / "train", header) as writer:
            for number, pieces in enumerate(packed):
                write(writer, number, pieces, extra)
        return lint_rows([open_rows(tmp_path, header.to_json("train") | {"prefix": "kept/train"})], small)

    return make


def write(writer: Writer, number: int, pieces, extra) -> None:
    bounds = np.cumsum([0] + [len(p[0]) for p in pieces])
    ids = np.zeros((1, SEQ_LEN + 1), np.int32)
    ids[0, : bounds[-1]] = [i for p in pieces for i in p[0]]
    labels = [b + t - 1 for b, p in zip(bounds, pieces, strict=False) for t in p[1]] + list(extra)
    sources = np.zeros(len(pieces), SOURCE_DTYPE)
    sources["row_key"], sources["start"] = [p[2] for p in pieces], [p[3] for p in pieces]
    sources["row"], sources["segment"], sources["tokens"] = number, range(len(pieces)), np.diff(bounds)
    labels = np.array(labels, np.int32)
    writer.append(
        ids, labels, np.array([len(labels)]), bounds.astype(np.int32), np.array([len(bounds)]), sources
    )  # fmt: skip


def problems(found: dict[int, Counts]) -> dict[str, int]:
    (counts,) = found.values()
    plain = {f.name: getattr(counts, f.name) for f in fields(counts)}
    return {n: v for n, v in plain.items() if v and n not in ("sequences", "tokens", "labels")}


def test_a_set_that_is_right(linted):
    found = linted([GOOD, (*GOOD[:2], 1, 0)], [(*GOOD[:2], FILE, 0)])
    assert found == {0: Counts(sequences=2, tokens=14, labels=6), 1: Counts(sequences=1, tokens=7, labels=3)}
    assert found[0].label_share == 0.4286


BROKEN = {
    "rows_without_labels": ([GOOD, ([BEGIN, 50, END], [], 1, 0)], ()),
    "stop_not_labelled": ([([BEGIN, 50, 60, END, 70], [2], 0, 0)], ()),
    "labels_on_padding": ([GOOD], (6,)),
    "labels_across_sequences": ([GOOD, ([END, 50, END], [0, 1, 2], 1, 0)], ()),
    "doubled_bos": ([([BEGIN, BEGIN, 60, END], [2, 3], 0, 0)], ()),
    "ids_outside_vocabulary": ([([BEGIN, 320, 60, END], [2, 3], 0, 0)], ()),
    "truncated_answers": ([([BEGIN, 50, 60, 61], [2, 3], 0, 0)], ()),
    "special_in_content": ([([BEGIN, 50, END, 60, END], [2, 3, 4], 0, 0)], ()),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_check_finds_what_it_is_for_and_nothing_else(linted, name):
    pieces, extra = BROKEN[name]
    assert problems(linted(pieces, extra=extra)) == {name: 1}


def test_every_count_that_is_wrong_has_a_test():
    counts = {f.name for f in fields(Counts)} - {"sequences", "tokens", "labels"}
    assert counts == set(BROKEN) > set(WRONG)


@pytest.mark.parametrize("position", [-1, 6, SEQ_LEN - 1])
def test_labels_on_padding_are_found_up_to_the_rows_end(linted, position):
    assert problems(linted([GOOD], extra=(position,))) == {"labels_on_padding": 1}


def test_an_id_below_0_is_outside_the_vocabulary(linted):
    assert problems(linted([([BEGIN, -7, 60, END], [2, 3], 0, 0)])) == {"ids_outside_vocabulary": 1}


def test_a_row_in_pieces_is_judged_whole(linted):
    first = ([BEGIN, 50, 60, 61], [2, 3], 0, 0)
    assert problems(linted([first], [([62, END, 70], [1], 0, 4)])) == {}
    assert problems(linted([first], [([70, 71], [], 0, 6)])) == {"truncated_answers": 1}  # a piece between is gone
    assert problems(linted([([BEGIN, 50], [], 0, 0)], [([60, END], [1], 0, 2)])) == {}


def test_each_side_of_a_pair_is_judged_by_itself(linted):
    assert problems(linted([GOOD], [(*GOOD[:2], 0, 0)], pairs=True)) == {}
    assert problems(linted([GOOD], [([BEGIN, 50, 60], [], 0, 0)], pairs=True)) == {"rows_without_labels": 1}


def test_plain_text_has_no_labels_to_miss(linted):
    assert problems(linted([([50, 51, END], [], 0, 0), ([END], [], 1, 0)], labelled=False)) == {}
    assert problems(linted([([50, 51], [], 0, 0)], labelled=False)) == {"truncated_answers": 1}


def test_an_empty_set_has_no_findings(linted):
    assert linted() == {}


def test_blocks_of_rows_do_not_matter(linted, monkeypatch):
    rows = [[GOOD, ([BEGIN, 50, 60], [2], 1, 0)], [(*GOOD[:2], FILE, 0)], [([BEGIN, BEGIN, END], [1, 2], 2, 0)]] * 3
    whole = linted(*rows)
    monkeypatch.setattr("datakit.pack.lint.BLOCK_ROWS", 2)
    assert linted(*rows) == whole
