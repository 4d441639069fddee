"""peek and lint, as a user meets them."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from datakit.config import sha256_file
from datakit.manifest import load, load_run, save
from tests.cli.test_commands import chats


@pytest.fixture
def packed(datakit: Callable, project: Path) -> Path:
    chats(project / "chats.jsonl")
    with (project / "chats.jsonl").open("a") as f:
        turns = [{"role": "user", "content": "\u001b[31mred <b>\u202e"}, {"role": "assistant", "content": "a & b"}]
        f.write(json.dumps({"id": "odd", "messages": turns}) + "\n")
    assert datakit("tokenizer", "train", "chats.jsonl", "--vocab-size", "400", "--output", "tok").code == 0
    said = datakit("pack", "chats.jsonl", "--tokenizer", "tok/kept/tokenizer", "--seq-len", "128", "--output", "packed")
    assert said.code == 0, said.err
    return project / "packed"


def test_peek_shows_a_row_with_its_labels_and_sources(datakit: Callable, packed: Path) -> None:
    said = datakit("peek", "packed")
    assert said.code == 0, said.err
    assert "train: row 0 of" in said.out and "padding" in said.out
    assert "── 0  c0 (chats.jsonl)" in said.out
    assert "⟦A shard is one file" in said.out and "<|im_end|>⟧" in said.out


def test_peek_finds_the_rows_of_an_id_and_a_row_cannot_steer_the_terminal(datakit: Callable, packed: Path) -> None:
    story = datakit("explain", "odd", "--manifest", "packed/manifest.json").out
    assert re.search(
        r"(?m)^pack +kept +[1-9]\d* tokens in row \d+ of train; `datakit peek packed/manifest.json --id odd`", story
    )
    said = datakit("peek", "packed/manifest.json", "--id", "odd")
    assert said.code == 0, said.err
    assert "\\u001b[31mred <b>\\u202e" in said.out
    assert "\u202e" not in said.out


def test_peek_writes_a_page(datakit: Callable, packed: Path) -> None:
    assert datakit("peek", "packed", "--id", "odd", "--html", "row.html").code == 0
    page = Path("row.html").read_text(encoding="utf-8")
    text = re.sub(r"<[^>]*>", "", page)
    assert "[31mred &lt;b&gt;\\u202e" in text and "a &amp; b" in text
    assert page.count("<section") == page.count("</section>") > 0
    assert page.count("<mark>") == page.count("</mark>") > 1
    assert "<script" not in page and "http:" not in page and "https:" not in page


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--row", "999"], 2, "there is no row 999"),
        (["--row", "0", "--id", "c0"], 2, "not both"),
        (["--set", "nope"], 2, "there are train"),
        (["--id", "nope"], 1, "has the id 'nope'"),
    ],
)
def test_peek_says_what_is_wrong(datakit: Callable, packed: Path, args: list[str], code: int, words: str) -> None:
    said = datakit("peek", "packed", *args)
    assert (said.code, words in said.err) == (code, True), said.err


def test_peek_and_lint_take_packed_sets_alone(datakit: Callable, packed: Path) -> None:
    assert datakit("ingest", "chats.jsonl", "--output", "rows").code == 0
    for command in ("peek", "lint"):
        said = datakit(command, "rows")
        assert said.code == 1 and "expected the manifest of a pack stage, found 'ingest'" in said.err


def test_peek_without_the_tokenize_manifest_names_rows_by_place(datakit: Callable, packed: Path) -> None:
    save(packed / "manifest.json", load(packed / "manifest.json"), {})  # forgets where its parents lay
    assert "── 0  file 0, record 0" in datakit("peek", "packed").out
    assert "use --row" in datakit("peek", "packed", "--id", "c0").err
    assert "file 0" in datakit("lint", "packed").out


def test_lint_passes_a_set_that_is_right(datakit: Callable, packed: Path) -> None:
    said = datakit("lint", "packed")
    assert said.code == 0, said.err
    assert "chats.jsonl" in said.out and "no errors found" in said.out
    found = json.loads(datakit("lint", "packed", "--json").out)["chats.jsonl"]
    assert found["sequences"] == 25 and 0 < found["label_share"] < 1


def test_lint_fails_on_labels_that_were_moved(datakit: Callable, packed: Path) -> None:
    file = packed / "kept/train.lbl.bin"
    labels = np.fromfile(file, "<i4")
    (labels + 128).tofile(file)
    said = datakit("lint", "packed")
    assert said.code == 1 and "train.lbl.bin: expected sha256" in said.err.replace("\n", " "), said.err
    make_the_manifest_agree(packed, "kept/train.lbl.bin")
    said = datakit("lint", "packed")
    assert said.code == 1
    assert f"{len(labels):,} labels_on_padding" in said.err and "rows_without_labels" in said.err
    assert "WRONG" in said.out


def test_unpack_gives_each_row_back_as_text(datakit: Callable, packed: Path) -> None:
    said = datakit("unpack", "packed", "--output", "text.jsonl")
    assert said.code == 0, said.err
    rows = [json.loads(line) for line in Path("text.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [r["id"] for r in rows] == [*(f"c{i}" for i in range(24)), "odd"]
    assert rows[0]["learnt"][0].startswith("A shard is one file") and rows[-1]["learnt"] == ["a & b<|im_end|>"]
    assert len(datakit("unpack", "packed", "--limit", "2").out.splitlines()) == 2


def test_a_round_trip_is_proved_token_by_token(datakit: Callable, packed: Path) -> None:
    assert datakit("verify", "packed", "--roundtrip").code == 0
    said = datakit("pack", "chats.jsonl", "--tokenizer", "tok/kept/tokenizer", "--seq-len", "64,128", "--format", "bin",
                   "--validation", "0.3", "--output", "two")  # fmt: skip
    assert said.code == 0, said.err
    assert datakit("verify", "two", "--roundtrip").code == 0
    assert datakit("lint", "two").code == 0
    assert "validation-128: row 0" in datakit("peek", "two", "--set", "validation-128").out
    assert len(datakit("unpack", "two").out.splitlines()) == 25
    change_a_token(packed)
    said = datakit("verify", "packed", "--roundtrip")
    assert said.code == 1 and "token by token" in said.err and "with other ids" in said.err


def change_a_token(folder: Path) -> None:
    """And make the manifest agree, as a mistake in the packer would."""
    name = "kept/train.ids2d.bin"
    ids = np.fromfile(folder / name, "<i4")
    ids[5] += 1
    ids.tofile(folder / name)
    make_the_manifest_agree(folder, name)


def make_the_manifest_agree(folder: Path, name: str) -> None:
    manifest, run = load(folder / "manifest.json"), load_run(folder / "manifest.json")
    shards = tuple(replace(s, sha256=sha256_file(folder / name)) if s.path == name else s for s in manifest.shards)
    save(folder / "manifest.json", replace(manifest, shards=shards), run)


def test_a_round_trip_needs_the_tokens_that_went_in(datakit: Callable, packed: Path) -> None:
    for command in (("verify", "rows", "--roundtrip"), ("verify", "packed", "--roundtrip")):
        datakit("ingest", "chats.jsonl", "--output", "rows")
        if command[1] == "packed":
            save(packed / "manifest.json", replace(load(packed / "manifest.json"), parents=()), {})
        said = datakit(*command)
        assert said.code == 1, said.out
        assert "expected the manifest of a pack stage" in said.err or "nothing to compare" in said.err
