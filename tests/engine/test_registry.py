"""The registry and recipes. That a stage is one file and one line is tested with CONTRIBUTING.md (test_docs)."""

from typing import Literal

import pytest

import datakit.config as own_config
from datakit.config import check, options, removed
from datakit.engine.recipe import FLOW, STAGES, Recipe, load_recipe, stage_class, write_recipe
from datakit.errors import ConfigError
from tests.files import write_recipe as write_by_hand
from tests.processes import modules_after

OWN_STAGE = """
from datakit.stage import Stage
class Mine(Stage):
    name = "mine"
    def use_processes(self): return True
"""


def test_every_line_of_a_fresh_recipe_can_be_uncommented_and_there_are_at_most_sixty(tmp_path):
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
            shown = {o.name: o for o in options(stage_class(stage).Config) if o.name in table}
            assert len(shown) == len(table) >= 3 and not any(o.nested or o.advanced for o in shown.values())
            defaults = stage_class(stage).Config(**({"tokenizer": "models/a b"} if stage == "tokenize" else {}))
            assert found.config(stage) == defaults or stage == "ingest"
            assert all(shown[name].help in text for name in table if name not in values.get(stage, {}))


def test_what_was_removed_ends_with_what_to_use_instead(tmp_path, monkeypatch):
    gone = {"dedup_tea": "Use dedup with milk = true.", "filter.sugar": "Use honey.", "filter.c4.salt": "Use pepper."}
    monkeypatch.setattr(own_config, "removed", lambda: gone)
    for text, sentence in {
        "[dedup_tea]\nlemon = 1\n": "'dedup_tea' was removed. Use dedup with milk = true.",
        '[dataset]\nstages = ["ingest", "dedup_tea"]\n': "Use dedup with milk",
        "[filter]\nsugar = 1\n": "the option 'sugar' was removed. Use honey.",
        "[filter.c4]\nsalt = 1\n": "the option 'salt' was removed. Use pepper.",
    }.items():
        write_by_hand(tmp_path, text, "mine")
        with pytest.raises(ConfigError, match=sentence):
            load_recipe(tmp_path, "mine")
    (tmp_path / "hooks.py").write_text(OWN_STAGE)
    monkeypatch.setitem(gone, "Stage.use_processes", "Set holds_gil.")
    with pytest.raises(ConfigError, match=r"hooks.py:Mine: Stage.use_processes was removed. Set holds_gil."):
        Recipe(dataset="d", stages=("ingest", f"{tmp_path}/hooks.py:Mine"))
    write_by_hand(tmp_path, "[dedup_tea]\n[filter]\n", "mine")  # as in a fresh recipe
    assert load_recipe(tmp_path, "mine").tables == {}
    for key, sentence in {"sugar": "honey", "c4.salt": "pepper"}.items():
        with pytest.raises(ConfigError, match=sentence):
            load_recipe(tmp_path, "mine").config("filter", {key: "1"})


def test_a_value_of_a_command_is_not_blamed_on_the_recipe_and_a_removed_value_has_its_sentence(tmp_path):
    write_by_hand(tmp_path, "[dedup]\nthreshold = 0.8\n", "mine")
    recipe = load_recipe(tmp_path, "mine")
    with pytest.raises(ConfigError, match=r"^filter: the rule set 'regex' was removed"):
        recipe.config("filter", flags={"rules": ["regex"]})
    with pytest.raises(ConfigError, match=r"^--dpo-loss: expected one of a, b, found 'ipo'\. Give Trainer"):
        check("ipo", Literal["a", "b"], "--dpo-loss")


def test_what_is_on_the_list_of_removed_options_is_there_no_more():
    assert all(text.endswith(".") for text in removed().values())
    for stage, *path in (name.split(".") for name in removed() if not name.startswith("train.")):
        config = getattr(stage_class(stage), "Config", None) if path else None
        for key in path:
            found = {o.name: o.nested for o in options(config)} if config else {}
            config = found.get(key)
        assert config is None and (path[-1] not in found if path else stage not in STAGES), (stage, path)


@pytest.mark.parametrize(
    "stages",
    [("dedup", "ingest"), ("ingest", "dedup", "dedup"), ("ingest", "pack"), ("ingest", "tokenize", "filter"),
     ("ingest", "tokenize", "tokenizer", "pack"), ("ingest", "pack", "tokenize")],
)  # fmt: skip
def test_an_impossible_order_of_stages_is_refused(stages):
    with pytest.raises(ConfigError, match="each once, ingest first, tokenize and then pack last"):
        Recipe(dataset="d", stages=stages)


def test_a_fresh_recipe_loads_the_code_of_no_stage(tmp_path):
    write_recipe(tmp_path, "mine", "text", ["a.jsonl"], ("ingest", "filter"))
    names = "from pathlib import Path; from datakit.engine.recipe import load_recipe"
    loaded = modules_after(f"{names}; assert not load_recipe(Path({str(tmp_path)!r}), 'mine').tables")
    assert not any(name.startswith(("datakit.dedup", "datakit.filter", "datakit.pack.")) for name in loaded)
    (tmp_path / "manifests/mine/recipe.toml").write_text("[filter.gopher_quality]\nmin_wrods = 3\n")
    with pytest.raises(ConfigError, match="min_wrods"):
        load_recipe(tmp_path, "mine")
