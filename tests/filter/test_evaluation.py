"""Evaluation sets as they come: layouts of the usual suites, unknown fields, formats, and what cannot be searched."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datakit.errors import ConfigError, InputError
from datakit.filter.evaluation import evaluation_sets

Q, A, C = "Which planet has the most moons?", "It is Saturn, by a wide margin.", ["Mars", "Saturn"]
LAYOUTS = {
    "MMLU": ({"question": Q, "subject": "astronomy", "choices": C, "answer": 1}, {"choices": C, "answer": ["1"]}),
    "ARC": ({"id": "a", "question": Q, "choices": {"text": C, "label": ["A", "B"]}, "answerKey": "B"}, {"choices": C}),
    "ARC, nested": ({"question": {"stem": Q, "choices": [{"text": t, "label": "A"} for t in C]}}, {"choices": C}),
    "HellaSwag": ({"ind": 1, "activity_label": "Space", "ctx": Q, "endings": C, "label": "1"}, {"choices": C}),
    "GSM8K": ({"question": Q, "answer": A}, {"answer": [A]}),
    "HumanEval": ({"task_id": "x/1", "prompt": Q, "canonical_solution": A, "entry_point": "f"}, {"answer": [A]}),
    "MBPP": ({"task_id": 1, "text": Q, "code": A, "test_list": ["assert f()"]}, {"answer": [A, "assert f()"]}),
    "IFEval": ({"key": 1, "prompt": Q, "instruction_id_list": ["a:b"], "kwargs": [{"n": 2}]}, {}),
    "MT-Bench": ({"question_id": 8, "category": "stem", "turns": [Q], "reference": [A]}, {"answer": [A]}),
    "GPQA": ({"Question": Q, "Correct Answer": A, "Incorrect Answer 1": C[0]}, {"answer": [A], "choices": C[:1]}),
    "C-Eval": ({"id": 0, "question": Q, "A": C[0], "B": C[1], "answer": "B"}, {"choices": C, "answer": ["B"]}),
    "TruthfulQA": ({"question": Q, "best_answer": A, "incorrect_answers": C}, {"answer": [A], "choices": C}),
    "WinoGrande": ({"sentence": Q, "option1": C[0], "option2": C[1]}, {"choices": C}),
    "BoolQ": ({"question": Q, "passage": A, "answer": True}, {"passage": [A]}),
    "PIQA": ({"goal": Q, "sol1": C[0], "sol2": C[1], "label": 0}, {"choices": C}),
    "BBH": ({"input": Q, "target": A}, {"answer": [A]}),
    "messages": (
        {"messages": [{"role": "user", "content": Q}, {"role": "assistant", "content": A}]},
        {"answer": [A]},
    ),
    "ShareGPT": ({"conversations": [{"from": "human", "value": Q}, {"from": "gpt", "value": A}]}, {"answer": [A]}),
    "JSON as text": ({"messages": json.dumps([{"role": "user", "content": Q}])}, {}),
    "unknown names": ({"Frage": Q, "Nr": 3}, {}),
    "unknown names, short": ({"Frage": "Wer?", "Nr": 3}, {}),
    "a list of texts": (Q, {}),
}


def parts_of(item) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for part in item.parts:
        found.setdefault(part.kind, []).extend(part.texts)
    return found


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_layouts_of_the_usual_suites_are_known(tmp_path, name):
    record, expected = LAYOUTS[name]
    for file, content in (("e.jsonl", json.dumps(record)), ("e.json", json.dumps([record, record]))):
        (tmp_path / file).write_text(content)
        (item, *_) = evaluation_sets((str(tmp_path / file),), ()).items
        asked = ["Wer?"] if name.endswith("short") else [Q]
        assert parts_of(item) == {"question": asked} | expected


def test_items_below_a_passage_are_items_of_their_own(tmp_path):
    asked = [
        {"question": Q, "id": "1", "answers": [{"text": "Saturn", "answer_start": 5}]},
        {"question": "Why?", "id": "2"},
    ]
    squad = {"version": "2", "data": [{"title": "T", "paragraphs": [{"context": A, "qas": asked}]}]}
    (tmp_path / "squad.json").write_text(json.dumps(squad))
    first, second = evaluation_sets((str(tmp_path),), ()).items
    assert (first.name, second.name) == ("squad.json:0.0", "squad.json:0.1")
    assert parts_of(first) == {"question": [Q], "passage": [A], "answer": ["Saturn"]}
    assert parts_of(second) == {"question": ["Why?"], "passage": [A]}


def test_every_format_of_a_folder_is_read(tmp_path):
    rows = [{"question": f"{Q} {n}", "answer": A} for n in range(3)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    (tmp_path / "c.csv").write_text("question,answer\n" + "".join(f'"{r["question"]}","{A}"\n' for r in rows))
    (tmp_path / "d.json").write_text(json.dumps({"question": [r["question"] for r in rows], "answer": [A] * 3}))
    (tmp_path / "e.txt").write_text("\n\n".join(r["question"] for r in rows))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.json").write_text(json.dumps({"examples": rows, "canary": "x"}))
    (tmp_path / "README.md").write_text("about")
    (tmp_path / "more.xlsx").write_bytes(b"PK")
    sets = evaluation_sets((str(tmp_path),), ())
    assert [i.parts[0].texts for i in sets.items] == [(r["question"],) for r in rows] * 6
    assert len(sets.digests) == 6 and sets.read == 18
    assert [a.split(":")[0].rsplit("/")[-1] for a in sets.alarms] == ["more.xlsx"]


def test_a_csv_file_of_mmlu_has_no_header(tmp_path):
    (tmp_path / "m.csv").write_text(f'"{Q}",Mars,Saturn,Venus,"None, in fact",B\n"{Q} 2",a,b,c,d,A\n')
    items = evaluation_sets((str(tmp_path / "m.csv"),), ()).items
    assert [parts_of(i)["question"] for i in items] == [[Q], [f"{Q} 2"]]
    assert parts_of(items[0])["choices"] == ["Mars", "Saturn", "Venus", "None, in fact"]


def test_long_texts_of_unknown_fields_are_searched_and_named(tmp_path):
    (tmp_path / "e.jsonl").write_text(json.dumps({"question": Q, "Szenario": A, "Kürzel": "ab"}))
    sets = evaluation_sets((str(tmp_path),), ())
    assert parts_of(sets.items[0]) == {"question": [Q], "other": [A]}
    assert "not known: Szenario" in sets.lines[0]


def test_fields_can_be_named(tmp_path):
    (tmp_path / "e.jsonl").write_text(json.dumps({"x": {"y": Q}, "z": A, "note": "short"}))
    sets = evaluation_sets((str(tmp_path),), ("x.y", "answer=z"))
    assert parts_of(sets.items[0]) == {"question": [Q], "answer": [A]}
    with pytest.raises(ConfigError, match="names 'w', which no evaluation file has"):
        evaluation_sets((str(tmp_path),), ("x.y", "w"))
    with pytest.raises(ConfigError, match="names the part 'reply'"):
        evaluation_sets((str(tmp_path),), ("reply=z",))


@pytest.mark.parametrize("rows", [[{"score": 3}], [{"id": "q1", "label": 1}], [None], []])
def test_a_file_without_any_text_is_an_error_that_names_the_fields(tmp_path: Path, rows):
    (tmp_path / "e.json").write_text(json.dumps(rows))
    with pytest.raises(InputError, match=r"no record has text to search.*--eval-field"):
        evaluation_sets((str(tmp_path),), ())
