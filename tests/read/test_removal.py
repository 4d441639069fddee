"""Removed rows: gone from every file of every stage, wherever else their content stands, and only they."""

import json
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datakit.errors import IntegrityError, UsageError
from datakit.manifest import Manifest, load, load_run
from datakit.read.removal import RemovalList, remove
from tests.cli.conftest import datakit, done, project
from tests.engine.corpus import WORDS
from tests.files import rows_of, write_recipe, write_rows

__all__ = ["datakit", "project"]

SECRET = "Jane Roe lives at 12 Elm Street and called about her invoice on Monday, which nobody else needs to know."
RECIPE = """
[dataset]
kind = "text"
inputs = ["raw/*"]
stages = ["ingest", "dedup", "tokenizer", "tokenize", "pack"]
[dedup]
save_index = true
[tokenizer]
vocab_size = 600
[pack]
seq_len = 256
"""


def write(root: Path) -> None:
    """Three files; the secret stands in the first under an id of the user, in the last one as a line without an id."""
    rng = random.Random(3)
    texts = [" ".join(rng.choices(WORDS, k=30)) + f" in row {n} of this small file." for n in range(24)]
    rows = [{"id": f"u{n}", "text": text} for n, text in enumerate(texts)]
    rows[5] = {"id": "jane", "text": SECRET, "phone": "555-0100"}
    rows[20] = {"text": SECRET + "  "}  # equal after normalisation
    for file in range(3):
        write_rows(root / f"raw/{file}.jsonl", rows[file * 8 : file * 8 + 8])
    write_recipe(root, RECIPE)


def ingested(root: Path) -> Manifest:
    return load(root / "manifests/d/ingest.json")


def holders(root: Path) -> list[str]:
    """The files below `data/` that hold the id or words of the secret, in whatever column."""
    found = []
    for file in sorted((root / "data").rglob("*")):
        if file.suffix == ".parquet":
            content = json.dumps(pq.read_table(file).to_pylist(), default=str)
        else:
            content = file.read_bytes().decode(errors="replace") if file.is_file() else ""
        if "jane" in content or "Elm Street" in content or "2.jsonl:4" in content:
            found.append(str(file))
    return found


def test_a_removed_row_is_gone_from_every_file_and_the_proof_says_so(datakit, project):
    write(project)
    (project / "ids").write_text("jane\n")
    assert datakit("run --dataset d").code == 0
    assert len(holders(project)) > 5
    said = datakit("remove", "ids", "--dataset", "d", "--why", "asked by Jane Roe on the phone")
    assert said.code == 0 and "2 rows have their content" in said.out
    listed = (project / "manifests/d/removed.jsonl").read_text()
    assert "jane" not in listed and "on the phone" in listed
    assert datakit("run --dataset d").code == 0
    made = ingested(project)
    assert made.ledger.rows.dropped == {"removed": 2} and made.ledger.rows.kept == 22
    gone = rows_of(project / "manifests/d/ingest.json", "dropped")
    assert all(row["reason"] == "removed" and row["id"].startswith("removed:") for row in gone)
    assert [row["text"] for row in gone] == ["", ""]
    assert datakit("verify manifests/d/pack.json").code == 0
    assert datakit("gc --purge").code == 0
    assert holders(project) == []
    said = done("explain u1 --dataset d")
    old = next(p for p in (project / "manifests/d/history").glob("dedup-*.json") if "purged" in load_run(p))
    said = datakit("diff", old, "manifests/d/dedup.json")
    assert said.code == 1 and "were purged on 2" in said.err and "damaged" not in said.err
    (project / "strange").write_bytes(b"caf\xe9\n")
    assert "byte 3 is not UTF-8" in datakit("remove strange --dataset d --why x").err


def test_the_list_stays_in_force_and_the_reason_shapes_nothing(datakit, project):
    write(project)
    assert datakit("ingest --dataset d").code == 0
    remove(project, "d", ["jane"], "one reason")
    assert datakit("ingest --dataset d").code == 0
    version = ingested(project).version
    listed = project / "manifests/d/removed.jsonl"
    listed.write_text(listed.read_text().replace("one reason", "another one"))
    assert "up to date" in datakit("ingest --dataset d").err
    shutil.copy(project / "raw/0.jsonl", project / "raw/new.jsonl")  # the same content under another id
    assert datakit("ingest --dataset d").code == 0
    assert ingested(project).ledger.rows.dropped == {"removed": 3}
    (project / "raw/new.jsonl").unlink()
    assert datakit("ingest --dataset d").code == 0
    assert ingested(project).version == version
    found = remove(project, "d", ["jane", "u1", "nobody"], "again")
    assert (found.added, found.before, found.unknown) == (1, 1, ("nobody",))
    with pytest.raises(UsageError, match="nobody"):
        remove(project, "d", ["nobody"], "x")


def test_a_list_that_is_damaged_or_without_its_salt_is_refused_and_the_columns_of_pairs_are_blanked(datakit, project):
    write(project)
    assert datakit("ingest --dataset d").code == 0
    remove(project, "d", ["jane"], "x")
    listed, salt = project / "manifests/d/removed.jsonl", project / "manifests/removal.salt"
    whole = salt.read_text()
    salt.write_text("00" * 32)
    assert datakit("run --dataset d").code == 1
    salt.write_text(whole)
    found = RemovalList.load(listed)
    columns = {"id": ["a", "b"], "messages": [[{"content": "x"}]] * 2, "row_key": pa.array([0, 1], "uint64")}
    batch = pa.record_batch(columns)
    made = found.blank(batch, pa.array([False, True]), batch["id"])
    assert made["messages"].to_pylist() == [[{"content": "x"}], None] and made["id"][1].as_py().startswith("removed:")
    listed.write_text(listed.read_text()[:-20])
    with pytest.raises(IntegrityError, match="damaged"):
        RemovalList.load(listed)
