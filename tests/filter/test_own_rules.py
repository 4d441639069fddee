"""Rules, maps and stages of the user's own: reasons, errors, thresholds, keys, and what docs/extending.md shows."""

import json
import re
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import datakit
from datakit import own_code
from datakit.engine.lineage import code_hash
from datakit.engine.recipe import FLOW, STAGES, Recipe
from datakit.errors import ConfigError, InputError
from datakit.report.tuning import tune
from tests.files import says, user, write_rows
from tests.filter.rows import filter_of

TEXTS = ["short", "TODO: write the rest of this text", "a fine text that is long enough"]
PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
LEAST = 7


def batch(texts: list[str] = TEXTS) -> pa.RecordBatch:
    ids, extra = [f"r{i}" for i in range(len(texts))], ['{"stars": 1}', None, '{"stars": 5}']
    return pa.record_batch({"id": ids, "text": texts, "extra": pa.array(extra[: len(texts)], pa.string())})


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Writes a module of the user; returns its path as names have it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    known = set(sys.modules)

    def write(source: str, name: str = "own_rules_of_a_test.py") -> str:
        Path(name).write_text(source)
        own_code._module.cache_clear()
        for loaded in set(sys.modules) - known:
            if str(tmp_path) in str(vars(sys.modules[loaded]).get("__file__")):
                del sys.modules[loaded]
        return name

    yield write
    write("")


def reasons(*rules: str, rows: pa.RecordBatch | None = None, **own: dict) -> list[str | None]:
    return filter_of(*rules, own=own).decide(rows or batch()).reasons.to_pylist()


def few_stars(row: dict) -> bool | None:
    return None if row.get("stars") is None else row["stars"] > LEAST - 4


@datakit.batched
def long_enough(rows: pa.RecordBatch) -> pa.Array:
    return pc.greater(pc.utf8_length(rows["text"]), LEAST)


def test_a_row_is_kept_or_dropped_with_the_text_or_the_name_of_the_function():
    table = [{"id": i, "text": t, "stars": s} for i, t, s in zip("abc", TEXTS, (1, 4, 5), strict=True)]
    result = datakit.filter(table, rules=[few_stars, long_enough, lambda_free("todo")], workers=2)
    assert result.dropped.select(["id", "reason"]).to_pylist() == [
        {"id": "a", "reason": "few_stars"}, {"id": "b", "reason": "todo"}]  # fmt: skip
    assert result.dropped.column("detail")[0].as_py() == f"by {__name__}:few_stars"


def lambda_free(reason: str) -> Callable:
    def rule(row: dict) -> str | None:
        return reason if "TODO" in row["text"] else None

    return rule


def test_functions_that_another_made_are_told_apart_and_their_constants_enter_the_key():
    names = [own_code.name_of(lambda_free(reason)) for reason in ("one", "two", "one")]
    assert names[0] == names[2] != names[1] and reasons(*names[:2]) == [None, "one", None]
    assert reasons(names[1]) == [None, "two", None]
    assert filter_of(names[0]).for_kind("document").holds_gil is False, "no other process has them"


def says_it_all(row: dict) -> str | None:
    return row["text"] if "@" in row["text"] else None


def test_a_reason_of_the_users_function_holds_no_private_value():
    rows = [{"text": "write to anna@webmail.de please"}, {"text": "nothing here"}]
    result = datakit.filter(rows, rules=[says_it_all, "private"])
    assert result.dropped.column("reason").to_pylist() == ["write to <EMAIL> please"]
    assert result.ledger.rows.dropped == {"write to <EMAIL> please": 1}


def test_what_a_function_must_not_give_ends_with_its_row(module):
    name = module("def number(row): return 5\ndef fails(row):\n    return 1 / (len(row['text']) - 5)\n")
    with pytest.raises(InputError, match=r"number: the row 'r0': expected True or None .* found '5'"):
        reasons(f"{name}:number")
    with pytest.raises(InputError, match=rf"fails: the row 'r0': ZeroDivisionError: .*{name}, line 3"):
        reasons(f"{name}:fails")
    name = module("import datakit\n@datakit.batched\ndef one(batch): return [True]\n")
    with pytest.raises(InputError, match="expected 3 answers, one for each row; found 1"):
        reasons(f"{name}:one")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ((lambda row: True,), "expected a function with a name"), ((5,), "expected a function with a name"),
        (("absent.py:rule",), "absent.py: cannot be imported: FileNotFoundError"), (("gopher",), "unknown rule set"),
        (("datakit.config:PRESET",), "expected a function or a subclass"),
    ],
)  # fmt: skip
def test_what_is_no_rule_is_refused_before_any_work(rules, message):
    with pytest.raises(ConfigError, match=message):
        datakit.filter([{"text": "a"}], rules=[*rules])


def test_an_edit_of_the_module_or_of_one_that_it_imports_changes_the_key_and_nothing_else(module):
    source = "import json, pyarrow\nfrom own_words_of_a_test import WORDS\ndef rule(row): return not WORDS\n"
    found = list[dict]()
    for words, edited in (("()", ""), ("()", ""), ("('a',)", ""), ("('a',)", "rule.version = '2'\n")):
        module(f"WORDS = {words}\n", "own_words_of_a_test.py")
        found.append(filter_of(f"{module(source + edited)}:rule").resources())
    assert found[0] == found[1] and len({str(one) for one in found}) == 3
    assert found[0].keys() - filter_of("c4").resources().keys() == {"code of own_rules_of_a_test.py:rule"}


def test_a_default_of_an_argument_is_part_of_the_key():
    def made(least):
        def rule(row, least=least, *, most=9):
            return least <= row["stars"] <= most

        return rule

    assert own_code.code_digest(made(1)) == own_code.code_digest(made(1)) != own_code.code_digest(made(2))


def test_a_function_without_a_file_is_known_by_its_source_and_what_it_names(monkeypatch):
    monkeypatch.delattr(sys.modules[__name__], "__file__")
    first = own_code.code_digest(few_stars)
    monkeypatch.setattr(sys.modules[__name__], "LEAST", 9)
    assert own_code.code_digest(few_stars) != first
    monkeypatch.setattr(sys.modules[__name__], "LEAST", object())
    with pytest.raises(ConfigError, match="LEAST is a object: its value cannot enter the key"):
        own_code.code_digest(few_stars)


def test_the_pages_examples_run_and_tune_shows_their_thresholds(module, capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    rules, batches, mine, maps, reader = blocks
    assert all(len([line for line in block.splitlines() if line.strip()]) <= 15 for block in blocks)
    own_code._module(module(batches, "own_batched_of_a_test.py"))
    own_code._module(module(maps, "own_map_of_a_test.py"))
    assert capsys.readouterr().out == "{'long_enough': 1}\n[{'text': 'a text th'}]\n"
    module(rules, "rules.py")
    rows = pa.record_batch({"id": ["a", "b", "c"], "text": ["x TODO", "x", "y"], "stars": [5, 2, 3]})
    assert reasons("rules.py:no_todo", "rules.py:well_rated", rows=rows) == ["todo", "well_rated", None]
    module(mine, "mine.py")
    table = [{"text": "1 2 3"}, {"text": "1234567"}, {"text": "none"}]
    given = {"rules": ["mine.py:Digits", "rules.py:no_todo"], "own": {"mine.py:Digits": {"max_digits": 6}}}
    result = datakit.filter(table, **given, output="out")
    assert result.ledger.rows.dropped == {"digits.max_digits": 1}
    assert result.dropped.column("detail").to_pylist() == ["digits 7 > 6"]
    tuned = tune(Path("out/manifest.json"), (), (), 1)
    assert [(f.name, f.limit, f.drops) for f in tuned.found] == [("digits.max_digits", 6, 1)]
    assert tuned.untold == ["rules.py:no_todo"]
    for file in ("rules.py", "mine.py"):
        Path(file).unlink()
    module("")  # forgets what was loaded
    assert tune(Path("out/manifest.json"), (), (), 1).untold == given["rules"], "the code may be gone"
    module(reader, "readers.py")
    with sqlite3.connect("notes.db") as base:
        base.execute("CREATE TABLE notes (id TEXT, body TEXT)")
        base.executemany("INSERT INTO notes VALUES (?, ?)", [("a", "one text"), ("b", "another")])
    read = datakit.ingest("readers.py:notes", output="read")
    assert [(row["id"], row["text"]) for row in read] == [("a", "one text"), ("b", "another")]
    assert datakit.open("read").verify() == []


def edit(row: dict) -> dict | None:
    if row["text"] == "gone":
        return None
    return row | {"text": row["text"].upper(), "stars": row["stars"] + 1, "seen": [1]}


def test_a_map_changes_columns_and_extra_and_says_what_it_dropped():
    texts = [("a", "x", 1), ("b", "gone", 2), ("c", "Y", 3)]
    rows = [{"id": name, "text": text, "stars": stars} for name, text, stars in texts]
    result = datakit.map(rows, edit, workers=2)
    assert result.dropped.select(["id", "reason"]).to_pylist() == [{"id": "b", "reason": "edit"}]
    assert result.kept.column("text").to_pylist() == ["X", "Y"] and result.ledger.rows.edited == 2
    made = result.dataset.to_table()
    assert made.column("stars").to_pylist() == [2, 4] and made.column("extra").to_pylist() == ['{"seen":[1]}'] * 2
    again = datakit.ingest([{"id": "a", "text": "X", "stars": 2}])
    assert made.column("content_hash")[0] == again.dataset.to_table().column("content_hash")[0]


def test_a_value_that_its_column_cannot_hold_reaches_a_map_and_stays(tmp_path):
    """The column is one of whole numbers, by the first rows; a later 1.5 is in `extra`, and the column null."""
    rows = [{"id": str(i), "text": "x", "stars": i if i < 399 else 1.5} for i in range(400)]
    rows[-1]["big"] = [10**25]
    seen = list[Any]()

    def change(row: dict[str, Any]) -> dict[str, Any]:
        seen.append(row["stars"])
        return row | {"text": "y", "new": row["stars"]} | ({"stars": 7} if row["id"] == "398" else {})

    result = datakit.map(str(write_rows(tmp_path / "rows.jsonl", rows)), change, workers=1)
    made = result.dataset.to_table()
    assert sorted(seen) == sorted(row["stars"] for row in rows)
    last = made.filter(pc.equal(made.column("id"), "399")).to_pylist()[0]
    assert (last["stars"], json.loads(last["extra"])) == (None, {"stars": 1.5, "big": [10**25], "new": 1.5})
    assert made.column("stars").to_pylist()[398] == 7


def test_a_map_may_edit_inside_of_a_row():
    def shout(row: dict[str, Any]) -> dict[str, Any]:
        row["messages"][1]["content"] = row["messages"][1]["content"].upper()
        row["meta"]["seen"] = 2
        return row

    result = datakit.map([{"messages": [user("a"), says("b")], "meta": {"seen": 1}}], shout)
    made = result.dataset.to_table().to_pylist()[0]
    assert result.ledger.rows.edited == 1 and [m["content"] for m in made["messages"]] == ["a", "B"]
    assert made["meta"] == {"seen": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("5", "expected the changed row with its id and source, or None to drop it; found '5'"),
        ("row | {'id': 'other'}", "expected the changed row with its id"),
        ("row | {'messages': [{'role': 'user', 'text': 'a'}]}", "expected messages with .* found 'text'"),
        ("row | {'messages': [{'role': 'bot', 'content': 'a'}]}", "expected messages of the roles .* found 'bot'"),
        ("row | {'messages': 7}", "the row 'table:0': the column 'messages' holds list"),
        ("row | {'messages': None}", "the row 'table:0': .* it must hold a value in each row"),
        ("row | {'messages': [{'role': 'user', 'content': '\\udc00'}]}", "the row 'table:0': .* surrogates not"),
        ("row | {'n': 1.5}", "the row 'table:0': the column 'n' holds int64: expected whole numbers; found 1.5"),
        ("row | {'new': {1, 2}}", "the row 'table:0': a field without a column should hold what JSON can: .*set"),
        ("row['absent']", r"the row 'table:0': KeyError: 'absent' \\(.*, line 1\\)"),
    ],
)  # fmt: skip
def test_a_map_that_gives_no_row_ends_with_the_row(module, change, message):
    name = module(f"def change(row): return {change}")
    with pytest.raises(InputError, match=message.replace("\\\\", "\\")):
        datakit.map([{"messages": [user("a"), says("b")], "n": 1}], function=f"{name}:change")


def test_a_stage_of_the_users_own_runs_in_recipes_and_pipelines_and_an_edit_makes_it_stale(module, tmp_path):
    page = (PAGE.parents[1] / "CONTRIBUTING.md").read_text()
    (source,) = (b for b in re.findall(r"```python\n(.*?)```", page, re.S) if "class MinChars(" in b)
    Path("in.jsonl").write_text('{"text": "short"}\n{"text": "a longer text"}\n')
    known = dict(STAGES), list(FLOW)
    try:
        stages = own_code._module(module(source, "own_stages_of_a_test.py"))
        step = stages.MinChars(config=stages.MinCharsConfig(min_chars=9))
        made = datakit.Pipeline([datakit.Ingest("in.jsonl"), step, datakit.Dedup()], dataset="d", workers=1).run()
        (parent,) = made.parents
        assert parent.manifest.stage == "min_chars" and parent.ledger.rows.dropped == {"min_chars": 1}
        recipe = Recipe(dataset="d", stages=("ingest", "own_stages_of_a_test.py:MinChars"))
        assert recipe.stages == ("ingest", "min_chars")
        first = code_hash(step)
        edited = own_code._module(module(source.replace("short", "few"), "own_stages_of_a_test.py"))
        assert code_hash(edited.MinChars()) != first
        with pytest.raises(ConfigError, match="expected a subclass of datakit"):
            Recipe(dataset="d", stages=("ingest", "own_stages_of_a_test.py:MinCharsConfig"))
        with pytest.raises(ConfigError, match="called 'dedup', as one of datakit's is"):
            Recipe(dataset="d", stages=("ingest", "datakit.dedup.stage:Dedup"))
    finally:
        STAGES.clear()
        STAGES.update(known[0])
        FLOW[:] = known[1]
