"""Each format read back by a reader written here from the format's table, or by a library that knows it."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datakit.errors import InputError
from datakit.pack.format import Header, Packed
from datakit.pack.inspect import training_tables
from tests.pack.token_rows import ROWS, batch_of, fast, found_tokens, ids_of, pack_rows

TWO = [(3, [1, 3]), (2, [1, 2])]


def content(folder, name: str) -> bytes:
    return (folder / "kept" / f"train-00000.{name}").read_bytes()


def read_bin(folder):
    """Rows of (ids, labels, boundaries) from the table of format bin alone."""
    meta = json.loads(content(folder, "meta.json"))
    assert (meta["format"], meta["version"], meta["byteorder"]) == ("bin", 1, "little")
    assert "stride" not in meta

    def ragged(entry, dtype):
        if entry is None:
            return [None] * meta["num_samples"]
        values = np.fromfile(folder / "kept" / entry["bin"], dtype)
        index = np.fromfile(folder / "kept" / entry["idx"], "<u8").reshape(-1, 2)
        assert len(index) == meta["num_samples"]
        return [values[int(o) : int(o + n)].tolist() for o, n in index]

    dtype = {"int32": "<i4", "uint16": "<u2"}[meta["ids"]["dtype"]]
    return list(zip(ragged(meta["ids"], dtype), ragged(meta["labels"], "<i4"), ragged(meta["segments"], "<i4"),
                    strict=True))  # fmt: skip


def read_megatron(folder):
    """Documents of tokens, from the layout of the index alone."""
    index, at = content(folder, "idx"), 34
    assert index[:9] == b"MMIDIDX\x00\x00"
    assert int.from_bytes(index[9:17], "little") == 1
    dtype = {4: "<i4", 8: "<u2"}[index[17]]
    sequences, documents = np.frombuffer(index, "<u8", 2, 18).tolist()
    lengths = np.frombuffer(index, "<i4", sequences, at)
    pointers = np.frombuffer(index, "<i8", sequences, at + 4 * sequences)
    bounds = np.frombuffer(index, "<i8", documents, at + 12 * sequences)
    assert len(index) == at + 12 * sequences + 8 * documents
    tokens = content(folder, "bin")
    read = [np.frombuffer(tokens, dtype, n, p).tolist() for n, p in zip(lengths, pointers, strict=True)]
    return [sum((read[i] for i in range(a, b)), []) for a, b in zip(bounds[:-1], bounds[1:], strict=True)]  # noqa: RUF017, RUF007


@fast
@given(rows=ROWS, packing=st.sampled_from(["best_fit", "wrap", "pad"]), labelled=st.booleans(),
       window=st.integers(1, 200))  # fmt: skip
def test_bin_and_tables_hold_what_bin2d_holds(tmp_path_factory, rows, packing, labelled, window):
    options = {"packing": packing, "window_tokens": window, "seq_len": 24}
    folders = {name: tmp_path_factory.mktemp(name) for name in ("bin2d", "bin")}
    made = {n: pack_rows(f, [batch_of(rows, labelled)], format=n, **options) for n, f in folders.items()}
    sets = {n: s["train"] for n, (_, s) in made.items()}
    expected = found_tokens(sets["bin2d"])
    assert expected == found_tokens(sets["bin"])
    counts = [r.tokens.kept for r, _ in made.values()]
    assert counts == [len(expected)] * 2
    assert made["bin"][0].tokens.padding == 0
    plain = [
        (s.ids_of(i).tolist(), None if s.labels is None else s.labels_of(i).tolist(), s.segments_of(i).tolist())
        for s in [sets["bin2d"]]
        for i in range(len(s))
    ]
    assert read_bin(folders["bin"]) == plain
    for rows_of in sets.values():
        check_table([row for table in training_tables(rows_of) for row in table.to_pylist()], plain)


def check_table(table, plain) -> None:
    assert len(table) == len(plain)
    for row, (ids, labels, bounds) in zip(table, plain, strict=True):
        lengths = np.diff(bounds).tolist()
        places = [p for n in lengths for p in range(n)]
        assert row["input_ids"] == ids
        assert row["seq_lens"] == row["seq_lengths"] == lengths
        assert row["position_ids"] == places
        learnt = {p + 1 for p in labels} if labels is not None else {t for t in range(len(ids)) if places[t]}
        assert row["labels"] == [i if t in learnt else -100 for t, i in enumerate(ids)]


@fast
@given(rows=ROWS, window=st.integers(1, 100), dtype=st.sampled_from(["int32", "uint16"]))
def test_megatron_holds_whole_documents_in_order(tmp_path_factory, rows, window, dtype):
    options = {"format": "megatron", "seq_len": 8, "window_tokens": window, "ids_dtype": dtype}
    folder = tmp_path_factory.mktemp("megatron")
    result, sets = pack_rows(folder, [batch_of(rows, labelled=False)], **options)
    assert read_megatron(folder) == [ids_of(i, n) for i, (n, _) in enumerate(rows)]
    assert result.tokens.dropped == {}
    assert result.facts["packing"]["density"] == 1.0  # whole documents have no row to fill
    assert len(found_tokens(sets["train"])) == result.tokens.kept


@pytest.mark.parametrize(
    ("rejected", "words"), [(None, "the labels of conversations"), ([(7, [2, 7])], "which side of a pair")]
)
def test_a_format_that_would_lose_something_is_refused(tmp_path, rejected, words):
    with pytest.raises(InputError, match=words):
        pack_rows(tmp_path, [batch_of([(5, [2, 5])], rejected=rejected)], format="megatron")


@pytest.mark.parametrize(("format", "file"), [("bin", "ids.bin"), ("bin", "seg.idx"), ("megatron", "bin")])
def test_a_file_that_is_cut_short_is_named(tmp_path, format, file):
    result, _ = pack_rows(tmp_path, [batch_of(TWO, labelled=False)], seq_len=6, format=format)
    whole = content(tmp_path, file)
    (tmp_path / "kept" / f"train-00000.{file}").write_bytes(whole[:-2])
    with pytest.raises(InputError, match=file):
        Packed.open(tmp_path / result.facts["packed"][0]["prefix"])


def test_a_set_of_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(InputError, match="found 'other'"):
        Header.from_json({"format": "other"}, "train.meta.json")
