"""Exported folders, read by Hugging Face `datasets` and by plain Python."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import datakit as dk
from datakit.errors import ConfigError, DatakitError, UsageError
from tests.cli.conftest import done
from tests.files import flip, says, user, write_rows
from tests.processes import python

TALK = [user("Where is the harbour?"), says("Behind the old town.")]
CALL = [user("Wie wird das Wetter?"), says("", tool_calls=[{"type": "function", "function": {"name": "weather"}}])]
CALL += [{"role": "tool", "content": "rain", "tool_call_id": "c1"}, says("Es regnet.")]
ROWS: dict[str, list[dict[str, Any]]] = {
    "document": [
        {"id": "a", "text": "Das Tor war offen.", "n": 1, "tags": ["x", "y"], "big": 12345678901234567890123},
        {"id": "b", "text": "桜が咲いている。", "n": 2, "tags": [], "odd": "2020-01-01", "mixed": 1},
        {"id": "c", "text": "\u0000 \u202e <b>", "n": None, "mixed": "one", "lang": "mine", "ratio": 0.1},
    ],
    "conversation": [{"messages": TALK, "score": 0.5}, {"messages": CALL, "score": 1, "tools": [{"name": "weather"}]}],
    "preference": [{"prompt": "Say hello.", "chosen": "Hello there.", "rejected": "Go away.", "judge": "j1"}] * 2,
    "tokens": [{"input_ids": [5, 6, 7], "labels": [-100, 6, 7]}, {"input_ids": [8, 9], "labels": [-100, 9]}],
}


def made(tmp_path: Path, rows: list[dict[str, Any]], **values: Any) -> dk.Result:
    return dk.ingest(write_rows(tmp_path / "mine.jsonl", rows), output=tmp_path / "result", dataset="mine", **values)


@pytest.fixture(scope="module")
def hugging_face(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], dict[str, list[dict[str, Any]]]]:
    """Loads a folder as its users do, in a process of its own."""
    pytest.importorskip("datasets", reason="the library datasets is not installed: pip install datasets")
    home = tmp_path_factory.mktemp("hf")
    code = """
import datasets, json, sys
datasets.disable_progress_bars()
for folder in sys.argv[1:]:
    found = datasets.load_dataset(folder)
    print(json.dumps({name: split.to_list() for name, split in found.items()}, default=str))
"""

    def load(*folders: Path) -> list[dict[str, list[dict[str, Any]]]]:
        done = python("-c", code, *folders, cwd=home, HF_HOME=str(home), HF_HUB_OFFLINE="1")
        return [json.loads(line) for line in done.stdout.splitlines()]

    return load


def test_datasets_reads_every_kind_of_rows_in_every_format(tmp_path, hugging_face):
    folders = []
    for kind, rows in ROWS.items():
        (tmp_path / kind).mkdir()
        # `datasets` reads no JSON numbers beyond 64 bits
        result = made(tmp_path / kind, [{k: v for k, v in row.items() if k not in ("big", "mixed")} for row in rows])
        assert result.manifest.kind == kind
        for name in ("parquet", "jsonl.gz"):
            folders.append(result.export(tmp_path / kind / name, format=name))
    loaded = hugging_face(*folders)
    assert [list(found) for found in loaded] == [["train"]] * len(folders)
    documents, _, talks, _, pairs, _, tokens, _ = (found["train"] for found in loaded)
    assert [row["text"] for row in documents] == [row["text"] for row in ROWS["document"]]
    assert [row["n"] for row in documents] == [1, 2, None]
    assert documents[1]["tags"] == [] and documents[2]["ratio"] == 0.1
    assert [row["score"] for row in talks] == [0.5, 1.0]
    assert talks[0]["messages"][0]["content"] == TALK[0]["content"]
    assert set(talks[0]["messages"][0]) == {"role", "content", "tool_calls", "tool_call_id"}  # what any message has
    assert pairs[0]["chosen"] == [says("Hello there.")] and pairs[0]["judge"] == "j1"
    assert [row["input_ids"] for row in tokens] == [[5, 6, 7], [8, 9]]


def test_json_lines_are_the_lines_that_came_in(tmp_path):
    rows = [{"id": "x", **row} for row in ROWS["conversation"]]
    result = made(tmp_path, [*rows, {"id": "y", "messages": TALK, "long": 3.14159265358979323846, "score": None}])
    result.export(tmp_path / "out", format="jsonl.zst")
    (file,) = (tmp_path / "out/data").iterdir()
    lines = pa.input_stream(str(file), compression="zstd").read().decode().splitlines()
    assert [json.loads(line)["messages"] for line in lines] == [TALK, CALL, TALK]
    assert json.loads(lines[1])["tools"] == ROWS["conversation"][1]["tools"]


def test_numbers_texts_and_names_that_clash_keep_every_character(tmp_path):
    given = (
        '{"id":"a","text":"t","big":12345678901234567890123,"x":0.10000000000000000001,"extra":{"id":[1]},"source":5}'
    )
    (tmp_path / "raw.jsonl").write_text(given + "\n")
    result = dk.ingest(tmp_path / "raw.jsonl", output=tmp_path / "result")
    result.export(tmp_path / "plain", format="jsonl")
    line = (tmp_path / "plain/data/train-00000-of-00001.jsonl").read_text()
    assert "12345678901234567890123" in line and json.loads(line) == json.loads(given)
    result.export(tmp_path / "more", format="jsonl", add=["source"])
    line = (tmp_path / "more/data/train-00000-of-00001.jsonl").read_text()
    assert json.loads(line)["source"] == "raw.jsonl" and json.loads(line)["extra"]["source"] == 5
    result.export(tmp_path / "table", format="parquet")
    table = pq.read_table(tmp_path / "table/data")
    left = json.loads(table["extra"][0].as_py())
    assert left["big"] == 12345678901234567890123 and "lang" not in table.column_names


def test_fields_of_several_types_stay_json_in_parquet(tmp_path):
    made(tmp_path, ROWS["document"]).export(tmp_path / "out")
    table = pq.read_table(tmp_path / "out/data")
    assert [json.loads(e or "{}").get("mixed") for e in table["extra"].to_pylist()] == [None, 1, "one"]
    assert json.loads(table["extra"][2].as_py())["mixed"] == "one"
    assert json.loads(table["extra"][2].as_py())["lang"] == "mine", "a name of ours"


def test_the_text_has_the_name_of_its_field_again(tmp_path):
    rows = [{"content": "Ein Satz.", "url": "u"}, {"content": "Noch einer.", "url": "v"}]
    made(tmp_path, rows).export(tmp_path / "out", format="jsonl")
    lines = (tmp_path / "out/data/train-00000-of-00001.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"id": f"mine.jsonl:{n}", **row} for n, row in enumerate(rows)]


def test_files_are_cut_by_data_and_checksums_hold(tmp_path, monkeypatch):
    monkeypatch.setattr("datakit.report.export.FILE_BYTES", 1_000_000)
    rows = [{"id": f"r{n}", "text": f"{n} " + "word " * 60_000} for n in range(6)]
    result = made(tmp_path, rows, shard_mb=1)
    result.export(tmp_path / "out", license="cc-by-4.0")
    names = sorted(p.name for p in (tmp_path / "out/data").iterdir())
    assert len(names) > 1 and names[0] == f"train-00000-of-{len(names):05d}.parquet"
    for line in (tmp_path / "out/SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == digest
    found = pa.concat_tables(pq.read_table(tmp_path / "out/data" / n) for n in names)
    assert found["id"].to_pylist() == [row["id"] for row in rows]
    result.export(tmp_path / "again", license="cc-by-4.0")
    files = [{p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in
             (tmp_path / "out", tmp_path / "again")]  # fmt: skip
    assert files[0] == files[1]


def test_the_card_says_what_was_done_and_data_cannot_write_into_it(tmp_path):
    write_rows(tmp_path / "raw/a`|<script>.jsonl", [{"text": "One two three."}, {"text": "One two three."}])
    result = dk.dedup(str(tmp_path / "raw/*"), output=tmp_path / "result", dataset="A-title_b", shingle_words=3)
    result.export(tmp_path / "out", license="apache-2.0")
    card = (tmp_path / "out/README.md").read_text()
    assert "license: apache-2.0" in card and "| dedup | 2 | 1 | 1 exact_duplicate |" in card
    assert "[dedup]\nshingle_words = 3" in card and "num_examples: 1" in card and "n<1K" in card
    assert "# A-title\\_b" in card and "`a'\\|<script>.jsonl`" in card


@pytest.mark.parametrize("row", [
    {"prompt": "hi", "completion": "yo", "label": True}, {"prompt": TALK[:1], "completion": TALK[1:], "kto_tag": 0},
    {"prompt": "hi", "chosen": [user("hi"), says("yo")], "rejected": [user("hi"), says("no")], "messages": TALK},
])  # fmt: skip
@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_exported_pairs_and_judged_answers_are_read_again(tmp_path, row, format):
    result = made(tmp_path, [row, row | {"id": "b"}], kind="preference")
    result.export(tmp_path / "out", format=format)
    (file,) = (tmp_path / "out/data").iterdir()
    again, names = dk.ingest(file, kind="preference").kept, ["id", "prompt", "chosen", "rejected", "tools"]
    assert again.select(names).equals(result.kept.select(names))


def test_no_folder_is_left_by_an_export_that_fails(tmp_path):
    result = made(tmp_path, ROWS["document"])
    (shard,) = (tmp_path / "result/kept").iterdir()
    whole = shard.read_bytes()
    flip(shard)
    with pytest.raises(DatakitError, match="sha256"):
        result.export(tmp_path / "out")
    assert not (tmp_path / "out").exists() and not (tmp_path / ".out.export").exists()
    shard.write_bytes(whole)
    (tmp_path / ".out.export").mkdir()
    (tmp_path / ".out.export/left").write_text("of an export that was killed")
    assert sorted(p.name for p in result.export(tmp_path / "out").iterdir()) == ["README.md", "SHA256SUMS", "data"]
    with pytest.raises(UsageError, match="is not empty"):
        result.export(tmp_path / "out")
    with pytest.raises(UsageError, match="this machine's disk; copy the folder"):
        result.export("s3://bucket/out")
    with pytest.raises(ConfigError, match="expected one of parquet, jsonl"):
        result.export(tmp_path / "new", format="csv")
    with pytest.raises(UsageError, match="no column 'speed'"):
        result.export(tmp_path / "new", add=["speed"])


def test_no_rows_are_exported_as_no_rows(tmp_path):
    result = dk.filter([{"text": "x"}], output=tmp_path / "r", rules=["gopher_quality"])
    assert result.ledger.rows.kept == 0
    result.export(tmp_path / "out")
    assert pq.read_table(tmp_path / "out/data").num_rows == 0


def test_the_command_exports_a_packed_set(project, datakit, hugging_face, small_tokenizer):
    rows = [{"messages": [TALK[0], says(f"Answer {n}. " * 9)]} for n in range(30)]
    write_rows(project / "chats.jsonl", rows)
    flags = ("--seq-len", "128", "--validation", "0.2", "--output", "packed")
    assert datakit("pack", "chats.jsonl", "--tokenizer", small_tokenizer, *flags).code == 0
    said = datakit("export packed --output out --format jsonl")
    assert said.code == 0 and "states no license" in said.out, said.err
    (found,) = hugging_face(project / "out")
    assert set(found) == {"train", "validation"}
    row = found["train"][0]
    assert len(row["labels"]) == len(row["input_ids"]) == sum(row["seq_lens"])
    assert all(label in (i, -100) for i, label in zip(row["input_ids"], row["labels"], strict=True))
    assert row["position_ids"][0] == 0 and -100 in row["labels"]
    done("tokenizer train chats.jsonl --vocab-size 300 --output tokenizer")
    datakit("export tokenizer --output no").fails(1, "has no rows to export")
