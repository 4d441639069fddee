"""The end of a command: the funnel, alarms, what comes next; and results without rows."""

from pathlib import Path

from datakit.manifest import load
from tests.files import write_recipe, write_rows


def texts(path: Path, rows: int, bad: int = 0) -> None:
    good = [{"text": f"The {n * 7919}th sentence is about harbours."} for n in range(rows)]
    write_rows(path, [*good, *["no record"] * bad])


def test_a_stage_that_keeps_nothing_is_the_last_line_in_red(datakit, project):
    texts(project / "a.jsonl", 3)
    said = datakit("filter", "a.jsonl", "--rules", "gopher_quality", "--dataset", "d")
    said.fails(3, "the result is written, and holds no rows")
    assert said.out.splitlines()[-1] == "ALARM filter: keeps none of its 3 rows"
    accepted = datakit("filter", "a.jsonl", "--rules", "gopher_quality", "--dataset", "d", "--allow-empty")
    assert accepted.code == 0
    assert load(project / "manifests/d/filter.json").facts["alarms"] == ["keeps none of its 3 rows"]


def test_records_that_cannot_be_read_are_a_loss_of_their_file(datakit, project):
    texts(project / "good.jsonl", 300)
    texts(project / "bad.jsonl", 10, bad=30)
    said = datakit("ingest", "good.jsonl", "bad.jsonl", "--dataset", "d")
    assert said.code == 0 and "the source 'bad.jsonl' loses 30 of its 40 records (75.0%" in said.out
    assert "of all" not in said.out


def test_no_rows_replace_no_pack_with_rows(datakit, project, small_tokenizer):
    texts(project / "a.jsonl", 40)
    recipe = '[dataset]\nkind = "text"\ninputs = ["a.jsonl"]\nstages = ["ingest", "filter", "tokenize", "pack"]\n'
    recipe += '[filter]\nrules = ["gopher_quality"]\n[pack]\nseq_len = 64\n'
    write_recipe(project, f'{recipe}[tokenize]\ntokenizer = "{small_tokenizer}"\n')
    rules = ("run", "--dataset", "d", "--set", "filter.gopher_quality.min_stop_words=0", "--set")
    assert datakit(*rules, "filter.gopher_quality.min_words=1").code == 0
    first = load(project / "manifests/d/pack.json")
    assert first.ledger.rows.kept == 40
    nothing = (*rules, "filter.gopher_quality.min_words=100")
    said = datakit(*nothing)
    assert said.code == 1 and "holds 40 rows" in said.err and "--allow-empty" in said.err, said.err + said.out
    assert load(project / "manifests/d/pack.json") == first
    emptied = datakit(*nothing, "--allow-empty")
    assert emptied.code == 0 and "datakit peek" not in emptied.out
    assert load(project / "manifests/d/pack.json").ledger.rows.kept == 0
