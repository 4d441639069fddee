"""Private values leave the filter stage by no door: values in every place of a row, all that is written after."""

import json
from pathlib import Path

import pyarrow.parquet as pq

from tests.files import PROSE, write_recipe, write_rows

MAIL, PHONE = "anna.smith@web.de", "+49 30 901820"
RECIPE = """[dataset]
kind = "text"
inputs = ["in.jsonl"]
stages = ["ingest", "dedup", "filter", "tokenizer", "tokenize", "pack"]
[filter]
rules = ["gopher_quality", "private"]
[tokenizer]
vocab_size = 300
[pack]
seq_len = 64
"""


def row(number: int, **more: object) -> dict[str, object]:
    text = f"{PROSE} Row {number}. Write to {MAIL} or call {PHONE} about {'the wall ' * number}."
    places = {"bio": MAIL, "author": {"id": MAIL, "phones": [PHONE]}, "tags": [MAIL, "x"]}
    return {"text": text, "id": f"r{number}", "url": f"https://a.org/{MAIL}", **places, **more}


def written(folder: Path) -> str:
    """Everything in the files of a folder, as text."""
    texts = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        table = pq.read_table(path) if path.suffix == ".parquet" else None
        texts.append(str(table.schema.names) + str(table.to_pylist()) if table else path.read_bytes().decode("latin-1"))
    return "\n".join(texts)


def raw_rows() -> str:
    rows = [row(n * n) for n in range(1, 6)] + [row(49, id=MAIL), row(64, meta=json.dumps({MAIL: PHONE}))]
    # one more type for `odd` puts it into `extra`; one row is a duplicate, one is too short for the rules
    rows += [row(81, odd={MAIL: [PHONE]}), row(100, odd=3), row(1, id="again"), {"text": f"Ask {MAIL}", "id": "short"}]
    return "\n".join([*map(json.dumps, rows), '{"text": broken ' + MAIL]) + "\n"


def test_no_file_page_or_line_after_the_rule_holds_a_value(datakit, project):
    (project / "in.jsonl").write_text(raw_rows())
    write_recipe(project, RECIPE, "p")
    (project / "out").mkdir()
    said = ""
    for command in (
        "run --dataset p", "report --dataset p --output out/report.html", "show manifests/p/filter.json", "status",
        "peek manifests/p/pack.json", "history --dataset p",
        "export manifests/p/filter.json --output out/rows", "export manifests/p/pack.json --output out/packed",
        "verify manifests/p/pack.json", "tune --manifest manifests/p/filter.json",
    ):  # fmt: skip
        done = datakit(*command.split())
        assert done.code == 0, (command, done.err)
        said += done.out + done.err
    after = ["data/p/filter", "data/p/tokenizer", "data/p/tokenize", "data/p/pack", "manifests", "out"]
    everything = said + "".join(written(project / name) for name in after)
    assert "<EMAIL>" in everything and "<PHONE>" in everything and "gopher_quality" in everything
    assert "&lt;EMAIL&gt;" in (project / "out/report.html").read_text(), "samples, also those of earlier stages"
    assert [secret for secret in (MAIL, "anna", "901820") if secret in everything] == []
    assert "earlier stages (parents/" in said
    assert MAIL in written(project / "data/p/ingest"), "the parents hold the rows as they were"


def test_a_value_in_the_name_of_a_column_is_refused_without_it(datakit, project):
    write_rows(project / "in.jsonl", [{"text": PROSE, "who": {MAIL: 1}}])
    command = ("filter", "in.jsonl", "--rules", "private", "--output", "out")
    refused, done = datakit(*command), datakit(*command, "--set", "ingest.columns=json")
    assert (refused.code, done.code) == (1, 0) and "holds a value (email)" in refused.err
    assert MAIL not in refused.err + done.err + done.out + written(project / "out/kept")
