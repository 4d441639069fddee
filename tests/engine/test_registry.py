"""A new stage is one file and one line in the registry; its command, flags and recipe section follow."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import datakit.removed as removed
from datakit.config import options
from datakit.engine.recipe import FLOW, STAGES, config_class, load_recipe, write_recipe
from datakit.errors import ConfigError
from tests.package_copy import copy_package, run

STAGE = '''
"""Drops rows with few letters."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option
from datakit.data import view
from datakit.stage import Decision, Stage


@dataclass(frozen=True, slots=True)
class ShortConfig:
    """What is short."""

    min_letters: int = option(5, "drop rows with fewer letters")
    where: Literal["all", "answer"] = option("all", "the part of a row to look at")


@dataclass(frozen=True)
class Short(Stage):
    config: ShortConfig = field(default_factory=ShortConfig)
    name: ClassVar[str] = "short"
    Config: ClassVar[type] = ShortConfig
    help: ClassVar[str] = "Letters are what Unicode calls so."

    def decide(self, batch: pa.RecordBatch) -> Decision:
        letters = pc.count_substring_regex(view(batch, self.config.where), r"\\pL")
        few = pc.less(letters, self.config.min_letters)
        return Decision(reasons=pc.if_else(few, pa.scalar("short"), pa.scalar(None, pa.string())))
'''
LINE = '    "short": Entry("datakit.filter.short:Short", "Drop rows with few letters.", False),\n'


def test_a_stage_is_a_file_and_a_line(tmp_path: Path) -> None:
    package = copy_package(tmp_path / "copy")
    (package / "filter/short.py").write_text(STAGE)
    registry = package / "engine/recipe.py"
    text = registry.read_text()
    assert text.count('    "tokenizer": Entry(') == 1
    registry.write_text(text.replace('    "tokenizer": Entry(', LINE + '    "tokenizer": Entry('))
    rows = [{"id": f"r{n}", "text": "a" * n} for n in range(1, 10)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def datakit(*command: str) -> str:
        done = run(package, "-m", "datakit", *command, cwd=tmp_path)
        return done.stdout

    assert "Drop rows with few letters." in datakit("--help")
    shown = datakit("short", "--help")
    assert all(words in shown for words in ("--min-letters", "--where", "drop rows with fewer letters", "Unicode"))

    found = json.loads(datakit("short", "rows.jsonl", "--min-letters", "7", "--output", "alone", "--json"))
    assert found["ledger"]["rows"]["dropped"] == {"short": 6}

    recipe = tmp_path / "manifests/d/recipe.toml"
    recipe.parent.mkdir(parents=True)
    recipe.write_text('[dataset]\ninputs = ["rows.jsonl"]\nstages = ["ingest", "short"]\n[short]\nmin_letters = 3\n')
    assert json.loads(datakit("run", "--json"))["ledger"]["rows"]["dropped"] == {"short": 2}
    changed = datakit("run", "--set", "short.min_letters=4", "--json")
    assert json.loads(changed)["ledger"]["rows"]["dropped"] == {"short": 3}
    assert "the ledgers balance" in datakit("verify", "manifests/d/short.json")


def test_recipes_have_every_stage_that_makes_rows_or_a_tokenizer() -> None:
    assert {*STAGES} - {*FLOW} == {"classifier"}
    assert [name for name in FLOW if STAGES[name].default] == [
        "ingest", "language", "dedup", "filter", "tokenize", "pack"
    ]  # fmt: skip
    assert all(entry.summary.endswith(".") and len(entry.summary) < 80 for entry in STAGES.values())


def test_every_line_of_a_fresh_recipe_can_be_uncommented_and_there_are_at_most_sixty(tmp_path: Path) -> None:
    default = tuple(name for name in FLOW if STAGES[name].default)
    for number, stages in enumerate((default, ("ingest", "dedup", "tokenizer", "tokenize", "pack"))):
        values = {"tokenize": {"tokenizer": "models/a b"}}
        path = write_recipe(tmp_path, f"mine{number}", "text", ["a.jsonl", 'of "two"\\.jsonl'], stages, values)
        text = path.read_text()
        assert 40 < len(text.splitlines()) <= 60
        bare = "\n".join(line.removeprefix("# ") if " = " in line else line for line in text.splitlines())
        path.write_text(bare)
        found = load_recipe(tmp_path, f"mine{number}")
        assert found.inputs == ("a.jsonl", 'of "two"\\.jsonl')
        assert found.stages == stages and {*found.tables} == {*stages}
        for stage, table in found.tables.items():
            shown = {o.name: o for o in options(config_class(stage)) if o.name in table}
            assert len(shown) == len(table) >= 3 and not any(o.nested or o.advanced for o in shown.values())
            defaults = config_class(stage)(**({"tokenizer": "models/a b"} if stage == "tokenize" else {}))
            assert found.config(stage) == defaults or stage == "ingest"
            assert all(shown[name].help in text for name in table if name not in values.get(stage, {}))


def test_what_was_removed_ends_with_what_to_use_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(removed.STAGES, "dedup_tea", "Use dedup with milk = true.")
    monkeypatch.setitem(removed.OPTIONS, "filter", {"sugar": "Use honey.", "c4.salt": "Use pepper."})
    path = tmp_path / "manifests/mine/recipe.toml"
    path.parent.mkdir(parents=True)
    for text, sentence in {
        "[dedup_tea]\nlemon = 1\n": "'dedup_tea' was removed. Use dedup with milk = true.",
        '[dataset]\nstages = ["ingest", "dedup_tea"]\n': "Use dedup with milk",
        "[filter]\nsugar = 1\n": "the option 'sugar' was removed. Use honey.",
        "[filter.c4]\nsalt = 1\n": "the option 'salt' was removed. Use pepper.",
    }.items():
        path.write_text(text)
        with pytest.raises(ConfigError, match=sentence):
            load_recipe(tmp_path, "mine")
    path.write_text("[dedup_tea]\n[dedup_tea.milk]\n[filter.sugar]\n[filter.c4]\n")  # as recipes once were written
    assert load_recipe(tmp_path, "mine").tables == {}
    for key, sentence in {"sugar": "honey", "c4.salt": "pepper"}.items():
        with pytest.raises(ConfigError, match=sentence):
            load_recipe(tmp_path, "mine").config("filter", {key: "1"})


def test_a_fresh_recipe_loads_the_code_of_no_stage(tmp_path: Path) -> None:
    write_recipe(tmp_path, "mine", "text", ["a.jsonl"], ("ingest", "filter"))
    code = (
        "import sys; from pathlib import Path; from datakit.engine.recipe import load_recipe; "
        f"recipe = load_recipe(Path({str(tmp_path)!r}), 'mine'); assert not recipe.tables; "
        "assert not any(name.startswith(('datakit.dedup', 'datakit.filter', 'datakit.pack.')) for name in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (tmp_path / "manifests/mine/recipe.toml").write_text("[filter.gopher_quality]\nmin_wrods = 3\n")
    with pytest.raises(ConfigError, match="min_wrods"):
        load_recipe(tmp_path, "mine")
