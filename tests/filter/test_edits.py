"""Edited rows are the rows that ingest would have made of the edited text; awkward rows are no trouble to any rule."""

import json
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datakit.config import build
from datakit.execute.local import Local
from datakit.filter.stage import Filter, FilterConfig
from datakit.manifest import data_dir, load
from datakit.progress import Quiet
from datakit.recipe import load_recipe
from datakit.run.flow import Flow
from datakit.run.job import Run
from datakit.run.place import Place

SAID = "Please write to {} about the matter. "
ROWS = {
    "document": {"text": SAID},
    "conversation": {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": SAID}]},
    "preference": {"prompt": "Whom?", "chosen": SAID, "rejected": "I do not know."},
}


def rows(root: Path, kind: str, who: str, *stages: str) -> pa.Table:
    raw = root / f"{kind}-{len(stages)}.jsonl"
    raw.write_text("\n".join(json.dumps(ROWS[kind]).replace("{}", w) for w in (who, "nobody")))
    place = Place(root=root, dataset=f"{kind}{len(stages)}", output=None, final="")
    recipe = load_recipe(root, place.dataset)
    run, path = Run(place=place, executor=Local(1), progress=Quiet()), raw
    for stage in ("ingest", *stages):
        sets = {"filter": {"rules": "private"}} if stage == "filter" else {}
        path = Flow(run=run, recipe=recipe, sets=sets).stage(stage, [str(path)])
    return pq.read_table(data_dir(path, load(path)) / "kept")


@pytest.mark.parametrize("kind", ROWS)
def test_an_edited_row_has_the_hash_that_ingest_would_give_it(tmp_path, kind):
    edited = rows(tmp_path, kind, "joe@firma.de", "filter")
    fresh = rows(tmp_path, kind, "<EMAIL>")
    assert edited["content_hash"].to_pylist() == fresh["content_hash"].to_pylist()


AWKWARD = ["", " ", "\n" * 5000, "\r\n" * 50, "a", "😀", "😀" * 5000, "\u200d", "{" * 3000, "[" * 3000, "." * 3000,
           "@" * 3000, "x" * 300_000, "a " * 100_000, "字" * 50_000, "1" * 50_000, "\x00", "\u2028" * 100,
           "e\u0301" * 1000]  # fmt: skip


def test_awkward_rows_are_no_trouble_to_any_rule(tmp_path):
    items = tmp_path / "items.jsonl"
    items.write_text(json.dumps({"question": "a " * 20}))
    names = [
        "gopher_quality",
        "gopher_repetition",
        "c4",
        "fineweb",
        "loops",
        "empty_answer",
        "contamination",
        "private",
    ]
    limits = {"min_words": 0, "max_words": 10**9}
    for rules in [[name] for name in names] + [names]:
        values = (
            {"rules": rules, "contamination": {"eval": [str(items)]}} if "contamination" in rules else {"rules": rules}
        )
        values |= {"gopher_quality": limits} if "gopher_quality" in rules else {}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            stage = Filter(config=build(FilterConfig, values, "filter"))
            together = stage.decide(pa.record_batch({"text": AWKWARD}))
            assert len(together.reasons) == len(AWKWARD)
            assert stage.decide(pa.record_batch({"text": pa.array([None, ""], pa.string())})).reasons is not None
