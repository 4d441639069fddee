"""The Python API: tables in, tables out, and the decisions of the command on the same rows."""

import importlib
import inspect
import pydoc
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import datakit
from datakit.errors import ConfigError, InputError, LayoutError, UsageError
from tests.cli.conftest import done as command
from tests.files import PROSE, Exporter, says, user, write_rows
from tests.processes import modules_after, python


@pytest.fixture(scope="module")
def table() -> pa.Table:
    texts = [PROSE * 3 + str(n) for n in range(5)] + ["Snow falls on the mountains in winter. " * 9, None, ""]
    return pa.table({"text": texts, "n": range(8), "tags": [[str(n)] for n in range(8)]})


def test_a_table_comes_back_as_kept_dropped_and_quarantined_rows(table):
    with datakit.dedup(table, threshold=0.8) as result:
        assert result.kept.drop_columns(["cluster_size"]) == table.take([0, 5, 7])
        assert result.kept.column("cluster_size").to_pylist() == [5, 1, 1]
        assert datakit.dedup(result.kept).kept.column("cluster_size").to_pylist() == [1, 1, 1], "it is counted anew"
        why = ["stage", "reason", "detail", "duplicate_of", "similarity"]
        assert result.dropped.column_names == [*table.column_names, *why]
        assert result.dropped["n"].to_pylist() == [1, 2, 3, 4]
        assert result.dropped["duplicate_of"].to_pylist() == [0, 0, 0, 0]
        assert result.quarantined["row"].to_pylist() == [6]
        rows = result.kept.num_rows + result.dropped.num_rows + result.quarantined.num_rows
        assert rows == table.num_rows
        assert result.ledger.rows.dropped == {"near_duplicate": 4}
        assert {pair.dropped["id"] for pair in result.pairs()} == {f"table:{n}" for n in range(1, 5)}


def test_every_form_of_data_gives_the_decisions_of_the_command(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(table, "rows.parquet")
    write_rows(Path("rows.jsonl"), table.to_pylist())
    command("dedup rows.jsonl --output out --threshold 0.8")
    wanted = datakit.open("out").to_table("dropped").select(["reason", "similarity"])
    few = table.combine_chunks().to_batches()[0]
    for given in (table, few, table.to_reader(max_chunksize=3), Exporter(table), "rows.parquet", [Path("rows.jsonl")]):
        with datakit.dedup(given, threshold=0.8) as result:
            assert result.dropped.select(["reason", "similarity"]) == wanted
    named = pa.table({"id": ["a", "b"], "text": [PROSE, PROSE]})
    assert datakit.dedup(named).dropped["duplicate_of"].to_pylist() == ["a"]


def test_a_table_without_rows_comes_back_with_its_columns(table):
    for stage in (datakit.filter, datakit.dedup):
        assert stage(table.slice(0, 0)).kept == table.slice(0, 0)


def test_language_adds_its_columns_and_a_clash_of_names_is_an_error():
    result = datakit.language(pa.table({"text": [PROSE]}))
    assert result.kept.column_names == ["text", "lang", "lang_score", "lang_raw"]
    assert result.kept["lang"].to_pylist() == ["en"]
    with pytest.raises(ConfigError, match="'lang'"):
        _ = datakit.language(pa.table({"text": [PROSE], "lang": ["xx"]})).kept


def test_normalize_rewrites_the_text_in_its_own_column():
    table = pa.table({"n": [1, 2], "body": ["cafe\u0301  ", "plain"]})
    kept = datakit.normalize(table).kept
    assert kept.schema == table.schema
    assert kept["body"].to_pylist()[0].startswith("caf\u00e9")
    chats = pa.table({"messages": [[user("cafe\u0301"), says("Yes.")]]})
    kept = datakit.normalize(chats).kept
    assert kept.schema == chats.schema
    assert kept["messages"].to_pylist()[0][0] == user("caf\u00e9")


def test_private_values_are_gone_from_all_columns_of_kept_and_dropped_rows():
    columns = {
        "id": ["ann@corp.com", "r2", "r3"], "body": ["Write to bob@corp.com.", "nothing here", "x"], "n": [1, 2, 3],
        "who": ["eve@corp.com", None, "joe@corp.com"], "tags": [["q", "tom@corp.com"], [], None],
        "source": ["s", None, "kim@corp.com"],
    }  # fmt: skip
    table = pa.table(columns)
    result = datakit.filter(table, rules=["private", "lengths"], lengths={"min_chars": 2})
    first, second = result.kept.select(["id", "text", "n", "who", "tags"]).to_pylist()
    mended = {"id": "table:0", "text": "Write to <EMAIL>.", "n": 1, "who": "<EMAIL>", "tags": ["q", "<EMAIL>"]}
    assert first == mended
    assert second == {"id": "r2", "text": "nothing here", "n": 2, "who": None, "tags": []}
    (dropped,) = result.dropped.to_pylist()
    assert (dropped["id"], dropped["who"], dropped["reason"]) == ("r3", "<EMAIL>", "lengths.min_chars")
    assert "@" not in str([*result.kept.to_pylist(), dropped]), "where ever ingest puts a field"


def test_pack_before_and_after_its_package_is_imported(table, small_tokenizer, tmp_path):
    """The packages `dedup`, `filter` and `pack` are functions, too, whatever was imported of them."""
    few = table.slice(0, 2)
    before = datakit.pack(few, tokenizer=small_tokenizer, seq_len=32, output=tmp_path / "packed")
    importlib.import_module("datakit.pack.labels")
    after = datakit.pack(few, tokenizer=small_tokenizer, seq_len=32)
    samples = before.facts["packed"][0]["num_samples"]
    assert samples == after.facts["packed"][0]["num_samples"] > 0 and before.kept.select(few.column_names) == few
    assert (tmp_path / "packed/kept/train-00000.ids2d.bin").stat().st_size == samples * 33 * 4
    tokens = datakit.tokenize(table, tokenizer=small_tokenizer, limit=2)
    assert datakit.pack(tokens, seq_len=32).kept.num_rows == tokens.ledger.rows.kept == 2
    with pytest.raises(datakit.DatakitError, match="limit of ingest, which does not run"):
        datakit.pack(tokens, limit=1, seq_len=32)
    ids = datakit.tokenize(few, tokenizer=small_tokenizer).kept
    assert ids.column_names[: few.num_columns] == few.column_names
    assert len(ids["input_ids"][0]) > 100


def test_a_pipeline_runs_in_a_project_and_its_results_open(small_tokenizer, tmp_path):
    rows = [{"text": PROSE * 3 + f"Number {n}: {'abc ' * n}", "id": f"r{n}"} for n in range(3)]
    write_rows(tmp_path / "raw.jsonl", [*rows, {"text": PROSE * 3 + "Number 0: "}])
    steps = [
        datakit.Ingest("raw.jsonl"), datakit.Dedup(threshold=0.9), datakit.Filter(rules=["gopher_quality"]),
        datakit.Tokenize(small_tokenizer), datakit.Pack(seq_len=32),
    ]  # fmt: skip
    pipeline = datakit.Pipeline(steps, dataset="mine", project=tmp_path)
    packed = pipeline.run()
    assert packed.path == tmp_path / "manifests/mine/pack.json"
    assert packed.verify() == []
    assert [parent.manifest.stage for parent in packed.parents] == ["tokenize"]
    dedup = datakit.open(tmp_path / "manifests/mine/dedup.json")
    assert dedup.kept(["id"]).read_all().num_rows == dedup.ledger.rows.kept == dedup.to_table().num_rows
    assert "near_duplicate" in dedup.explain("raw.jsonl:3") or "exact_duplicate" in dedup.explain("raw.jsonl:3")
    with pytest.raises(InputError):
        dedup.explain("nobody")
    assert "threshold=0.9" in repr(pipeline)
    with pytest.raises(UsageError, match="Ingest"):
        datakit.Pipeline([datakit.Dedup()], dataset="mine")
    with pytest.raises(ConfigError, match="thresh"):
        datakit.Pipeline([datakit.Ingest("x"), datakit.Dedup(thresh=1)], dataset="mine")


def test_temporary_folders_go_with_close_and_exit(tmp_path):
    script = textwrap.dedent("""
        import sys
        import pyarrow as pa
        import datakit
        result = datakit.ingest(pa.table({"text": ["one", "two"]}))
        print(result.dataset.path, flush=True)
        if sys.argv[1] == "close":
            result.close()
            assert not result.dataset.path.exists()
    """)
    (tmp_path / "script.py").write_text(script)
    for way in ("close", "exit"):
        done = python(tmp_path / "script.py", way, TMPDIR=str(tmp_path))
        assert not Path(done.stdout.strip()).exists()


def test_importing_datakit_loads_the_standard_library_only_and_offers_all():
    loaded = {name.split(".")[0] for name in modules_after("import datakit") - modules_after("")}
    assert loaded <= {"datakit", *sys.stdlib_module_names}
    python("-c", "from datakit import *; import datakit; assert set(datakit.__all__) <= set(dir(datakit))")
    assert datakit.__all__ == [
        "DatakitError", "Dataset", "Dedup", "Filter", "Ingest", "Language", "Map", "Normalize", "Pack", "Pipeline",
        "Result", "Tokenize", "ablate", "batched", "dedup", "filter", "ingest", "language", "map", "normalize", "open",
        "pack", "tokenize",
    ]  # fmt: skip
    threshold = inspect.signature(datakit.language).parameters["min_score"]
    assert threshold.default == 0.65 and threshold.annotation is float and "min_score" in datakit.language.__doc__


def test_what_is_no_data_is_refused_by_type():
    assert issubclass(InputError, datakit.DatakitError)
    with pytest.raises(datakit.DatakitError, match="int cannot be read"):
        datakit.dedup(3)


def test_views_of_strings_as_polars_exports_them_and_run_end_encoded_columns_are_read():
    texts, tags = pa.array([PROSE, PROSE, "Snow."], pa.string_view()), pa.large_list(pa.string_view())
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], [1, 2])
    views = pa.table({"text": texts, "tags": pa.array([["a"], [], None], tags), "runs": runs})
    kept = datakit.dedup(Exporter(views)).kept.drop_columns(["cluster_size"])
    plain = {"text": pa.large_string(), "tags": pa.large_list(pa.large_string()), "runs": pa.int64()}
    assert (kept.schema, kept["tags"].to_pylist()) == (pa.schema(plain), [["a"], None])


def test_results_go_back_to_other_libraries_and_show_themselves_in_a_notebook(table, tmp_path):
    same = "<i>same</i> " * 9
    rows = [{"id": name, "text": text} for name, text in (("<b>", same), ("x", same), ("y", "z"))]
    result = datakit.dedup(rows, output=tmp_path / "there")
    assert len(result) == 2 and [row["id"] for row in result] == ["<b>", "y"]
    html = result._repr_html_()
    assert "exact_duplicate" in html and "33.3%" in html and "&lt;i&gt;same" in html and "<i>" not in html
    there = datakit.open(tmp_path / "there")
    assert len(there) == 2 and next(iter(there))["text"] == rows[0]["text"] and "exact_duplicate" in there._repr_html_()
    for name in ("pandas", "polars", "datasets"):
        pytest.importorskip(name)
        made = [getattr(one, f"to_{name}")() for one in (result, there)] + [getattr(result, f"to_{name}")("dropped")]
        assert [len(one) for one in made] == [2, 2, 1]
        assert list(made[0]["id"]) == ["<b>", "y"] and list(made[2]["reason"]) == ["exact_duplicate"]


def test_each_split_of_a_dataset_dict_has_a_result_of_its_own(tmp_path):
    datasets = pytest.importorskip("datasets")
    splits = {"train": ["a b", "a b", "c"], "test": ["d"]}
    data = datasets.DatasetDict({name: datasets.Dataset.from_dict({"text": texts}) for name, texts in splits.items()})
    found = datakit.dedup(data, output=tmp_path / "out")
    assert {name: len(result) for name, result in found.items()} == {"train": 2, "test": 1}
    assert len(datakit.open(tmp_path / "out" / "train")) == 2
    assert [len(r) for r in datakit.ingest(data).values()] == [3, 1]


def test_a_result_that_is_given_on_keeps_the_columns_of_its_input(table, small_tokenizer):
    with datakit.dedup(table, threshold=0.8) as first:
        changed = datakit.map(first, _next_number)
        judged = datakit.filter(changed, rules=["lengths"], lengths={"min_chars": 1})
    assert judged.kept.column_names == [*table.column_names, "extra", "cluster_size"]
    assert (judged.kept["n"].to_pylist(), judged.kept["cluster_size"].to_pylist()) == ([1, 6], [5, 1])
    assert judged.dropped.select(table.column_names) == table.slice(7) and changed.dropped.num_rows == 0
    packed = datakit.pack(datakit.tokenize(judged, tokenizer=small_tokenizer), seq_len=32)
    assert packed.kept["n"].to_pylist() == [1, 6] and packed.kept["tags"].to_pylist() == [["0"], ["5"]]
    assert datakit.dedup(judged).kept["cluster_size"].to_pylist() == [1, 1], "it is counted anew"


def _next_number(row: dict) -> dict:
    return row | {"n": row["n"] + 1, "more": True}


@pytest.mark.parametrize("stage", ["dedup", "filter", "pack", "language"])
def test_help_and_signature_of_a_stages_function_have_its_options(stage):
    function = getattr(datakit, stage)
    known = inspect.signature(function).parameters
    option = {"dedup": "threshold", "filter": "rules", "pack": "seq_len", "language": "languages"}[stage]
    assert list(known)[:2] == ["data", "output"] and known[option].annotation is not inspect.Parameter.empty
    shown = pydoc.plain(pydoc.render_doc(function))
    assert f"    {option}: " in shown and "Returns a `Result`" in shown and "--" not in function.__doc__


def test_every_stage_reads_rows_by_a_mapping_and_its_error_speaks_of_arguments():
    rows = [{"q": "what is it?", "a": "a thing"}] * 2
    assert len(datakit.dedup(rows, map={"prompt": "q", "answer": "a"})) == 1
    with pytest.raises(LayoutError) as refused:
        datakit.dedup(rows)
    said = str(refused.value)
    lines = [line.split("  (")[0].strip() for line in said.splitlines() if line.startswith("  map=")]
    assert lines[1] == 'map={"prompt": "FIELD", "answer": "FIELD"}' and "--" not in said and "recipe" not in said
    assert "roles" in said
    with pytest.raises(LayoutError, match="Name yours with map role=FIELD"):
        datakit.dedup([{"turns": [{"who": "x", "said": "a"}]}], map={"messages": "turns"})
    with pytest.raises(ConfigError, match=r"unknown argument 'treshold'; did you mean 'threshold'\?"):
        datakit.dedup(rows, treshold=0.8)
    with pytest.raises(UsageError, match="no tokenizer; give tokenizer FILE_OR_FOLDER"):
        datakit.pack(rows, map={"prompt": "q", "answer": "a"})
    filled = lines[1].replace("FIELD", "q", 1).replace("FIELD", "a")
    assert len(eval(f"datakit.dedup(rows, {filled})")) == 1
    turns = [{"turns": [{"who": "x", "said": "a"}, {"who": "y", "said": "b"}]}]
    by = {"messages": "turns", "role": "who", "content": "said"}
    with pytest.raises(LayoutError, match=r'roles=\{"x": "ROLE", "y": "ROLE"\}'):
        datakit.dedup(turns, map=by)
    assert len(datakit.dedup(turns, map=by, roles={"x": "user", "y": "assistant"})) == 1
