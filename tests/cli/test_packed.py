"""peek and lint, as a user meets them."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from datakit.config import sha256_file
from datakit.manifest import load, load_run, save
from tests.cli.conftest import call, copy_of, done
from tests.cli.test_commands import chats


@pytest.fixture(scope="module")
def made(workshop: Path) -> Path:
    chats(workshop / "chats.jsonl")
    with (workshop / "chats.jsonl").open("a") as f:
        turns = [{"role": "user", "content": "\u001b[31mred <b>\u202e"}, {"role": "assistant", "content": "a & b"}]
        f.write(json.dumps({"id": "odd", "messages": turns}) + "\n")
    done("tokenizer train chats.jsonl --vocab-size 400 --output tok")
    done("pack chats.jsonl --tokenizer tok/kept/tokenizer --seq-len 128 --output packed")
    done("ingest chats.jsonl --output rows")
    return workshop


@pytest.fixture
def packed(made: Path, project: Path) -> Path:
    return copy_of(made, project) / "packed"


@pytest.mark.usefixtures("made")
def test_peek_shows_the_rows_of_a_place_and_of_an_id_and_a_row_cannot_steer_the_terminal():
    said = done("peek packed").out
    assert "train-00000: row 0 of" in said and "padding" in said and "── 0  c0 (chats.jsonl)" in said
    assert "⟦A shard is one file" in said and "<|im_end|>⟧" in said
    story = done("explain odd --manifest packed/manifest.json").out
    told = r"(?m)^pack +kept +[1-9]\d* tokens in row \d+ of train-00000; `datakit peek packed/manifest.json --id odd`"
    assert re.search(told, story)
    said = done("peek packed/manifest.json --id odd").out
    assert "\\u001b[31mred <b>\\u202e" in said and "\u202e" not in said


@pytest.mark.usefixtures("made")
def test_peek_writes_a_page(tmp_path):
    done("peek", "packed", "--id", "odd", "--html", tmp_path / "row.html")
    page = (tmp_path / "row.html").read_text(encoding="utf-8")
    text = re.sub(r"<[^>]*>", "", page)
    assert "[31mred &lt;b&gt;\\u202e" in text and "a &amp; b" in text
    assert page.count("<section") == page.count("</section>") > 0
    assert page.count("<mark>") == page.count("</mark>") > 1
    assert "<script" not in page and "http:" not in page and "https:" not in page


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("peek packed --row 999", 2, "there is no row 999"),
        ("peek packed --row 0 --id c0", 2, "not both"),
        ("peek packed --set nope", 2, "there are train"),
        ("peek packed --id nope", 1, "has the id 'nope'"),
        ("peek rows", 1, "expected the manifest of a pack stage, found 'ingest'"),
        ("lint rows", 1, "expected the manifest of a pack stage, found 'ingest'"),
        ("verify rows --roundtrip", 1, "expected the manifest of a pack stage"),
    ],
)
@pytest.mark.usefixtures("made")
def test_what_is_wrong_is_said(command, code, words):
    said = call(*command.split())
    assert (said.code, words in said.err) == (code, True), said.err


def test_without_the_tokenize_manifest_rows_are_named_by_place_and_no_round_trip_is_proved(datakit, packed):
    save(packed / "manifest.json", load(packed / "manifest.json"), {})  # forgets where its parents lay
    assert "── 0  file 0, record 0" in datakit("peek packed").out
    assert "use --row" in datakit("peek packed --id c0").err
    assert "file 0" in datakit("lint packed").out
    save(packed / "manifest.json", replace(load(packed / "manifest.json"), parents=()), {})
    datakit("verify packed --roundtrip").fails(1, "nothing to compare")


def test_lint_passes_a_set_that_is_right_and_fails_on_labels_that_were_moved(datakit, packed):
    said = done("lint packed").out
    assert "chats.jsonl" in said and "no errors found" in said
    found = json.loads(done("lint packed --json").out)["chats.jsonl"]
    assert found["sequences"] == 25 and 0 < found["label_share"] < 1
    labels = np.fromfile(packed / "kept/train-00000.lbl.bin", "<i4")
    (labels + 128).tofile(packed / "kept/train-00000.lbl.bin")
    said = datakit("lint packed")
    assert said.code == 1 and "train-00000.lbl.bin: expected sha256" in said.err.replace("\n", " "), said.err
    make_the_manifest_agree(packed, "kept/train-00000.lbl.bin")
    said = datakit("lint packed")
    assert said.code == 1 and "WRONG" in said.out
    assert f"{len(labels):,} labels_on_padding" in said.err and "rows_without_labels" in said.err


@pytest.mark.usefixtures("made")
def test_unpack_gives_each_row_back_as_text(tmp_path):
    done("unpack", "packed", "--output", tmp_path / "text.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "text.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [r["id"] for r in rows] == [*(f"c{i}" for i in range(24)), "odd"]
    assert rows[0]["learnt"][0].startswith("A shard is one file") and rows[-1]["learnt"] == ["a & b<|im_end|>"]
    assert len(done("unpack packed --limit 2").out.splitlines()) == 2


def test_a_round_trip_is_proved_token_by_token(datakit, packed):
    done("verify packed --roundtrip")
    flags = "--tokenizer tok/kept/tokenizer --seq-len 64,128 --format bin --validation 0.3"
    done(f"pack chats.jsonl {flags} --output two")
    done("verify two --roundtrip")
    done("lint two")
    assert "validation-128-00000: row 0" in datakit("peek two --set validation-128").out
    assert len(datakit("unpack two").out.splitlines()) == 25
    ids = np.fromfile(packed / "kept/train-00000.ids2d.bin", "<i4")
    ids[5] += 1
    ids.tofile(packed / "kept/train-00000.ids2d.bin")
    make_the_manifest_agree(packed, "kept/train-00000.ids2d.bin")
    datakit("verify packed --roundtrip").fails(1, "token by token", "with other ids")


def test_a_set_of_many_parts_is_looked_at_as_one(datakit, project):
    for rows, name in enumerate(("one", "two", "three"), 20):
        chats(project / f"{name}.jsonl", rows)
    done("tokenizer train one.jsonl --vocab-size 400 --output tok")
    flags = ("one.jsonl", "two.jsonl", "three.jsonl", "--tokenizer", "tok/kept/tokenizer", "--seq-len", "256")
    for place, size in (("whole", 1 << 26), ("parts", 1)):
        done("pack", *flags, "--validation", "0.2", "--part-tokens", str(size), "--output", place)
    headers = load(project / "parts/manifest.json").facts["validation"]
    assert [h["prefix"] for h in headers] == [f"kept/validation-0000{n}" for n in range(3)]
    done("verify parts --roundtrip")
    for command in ("unpack", "lint"):
        assert datakit(command, "parts").out == datakit(command, "whole").out
    assert "train-00000: row 0" in datakit("peek parts --set train").out
    assert "train-00002: row 0" in datakit("peek parts --set train-00002").out
    said = datakit("peek parts --set train-00003").err.replace("\n", " ")
    assert "no set is called 'train-00003'; there are train, validation" in said
    done("export parts --output out --format jsonl")
    rows = [p["packed_rows"] for p in load(project / "parts/manifest.json").facts["packing"]["sets"].values()]
    splits = [[*(project / "out").rglob(f"{name}*.jsonl")] for name in ("train", "validation")]
    assert [sum(file.read_bytes().count(b"\n") for file in files) for files in splits] == rows


def make_the_manifest_agree(folder: Path, name: str) -> None:
    """With a file that was changed, as a mistake in the packer would."""
    manifest, run = load(folder / "manifest.json"), load_run(folder / "manifest.json")
    shards = tuple(replace(s, sha256=sha256_file(folder / name)) if s.path == name else s for s in manifest.shards)
    save(folder / "manifest.json", replace(manifest, shards=shards), run)
