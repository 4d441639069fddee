"""Evaluation sets as they come: every text of five words or more is a part, whatever the layout; formats, alarms."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datakit.errors import ConfigError, InputError
from datakit.filter.evaluation import evaluation_sets

Q, A, SHORT = "Which planet has the most moons?", "It is Saturn, by a wide margin.", ["Mars", "Saturn"]
LAYOUTS = {
    "MMLU": ({"question": Q, "subject": "astronomy", "choices": SHORT, "answer": 1}, {"question": [Q]}),
    "ARC": ({"question": {"stem": Q, "choices": [{"text": A}, {"text": "Mars"}]}}, {"question.stem": [Q],
                                                                                   "question.choices.text": [A]}),
    "GSM8K": ({"question": Q, "answer": A}, {"question": [Q], "answer": [A]}),
    "MT-Bench": ({"question_id": 8, "turns": [Q, A], "reference": None}, {"turns": [Q, A]}),
    "messages": ({"messages": [{"role": "user", "content": Q}, {"role": "assistant", "content": A}]},
                 {"messages.content": [Q, A]}),
    "JSON as text": ({"messages": json.dumps([{"content": Q}])}, {"messages.content": [Q]}),
    "another language": ({"Frage": Q, "Nr": 3}, {"Frage": [Q]}),
    "a list of texts": (Q, {"": [Q]}),
    "Chinese": ({"题目": "哪颗行星的卫星最多"}, {"题目": ["哪颗行星的卫星最多"]}),
}  # fmt: skip


def parts_of(item) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for field, text in item.parts:
        found.setdefault(field, []).append(text)
    return found


def read(path: Path, *fields: str):
    return evaluation_sets((str(path),), fields)


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_text_of_five_words_is_a_part_under_the_name_of_its_field(tmp_path, name):
    record, expected = LAYOUTS[name]
    (tmp_path / "e.jsonl").write_text(f"{json.dumps(record)}\n{json.dumps({'n': Q[::-1]})}")
    (tmp_path / "e.json").write_text(json.dumps([record, record]))
    for file, items in (("e.jsonl", 2), ("e.json", 2)):
        sets = read(tmp_path / file)
        assert parts_of(sets.items[0]) == expected
        assert len(sets.items) == items and sets.items[0].name == f"{file}:0"


def test_every_format_of_a_folder_is_read(tmp_path):
    rows = [{"question": f"{Q} {n}", "answer": f"{A} {n}"} for n in range(3)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    (tmp_path / "c.csv").write_text("question,answer\n" + "".join(f'"{r["question"]}","{r["answer"]}"\n' for r in rows))
    (tmp_path / "d.json").write_text(json.dumps({name: [r[name] for r in rows] for name in ("question", "answer")}))
    (tmp_path / "e.txt").write_text("\n\n".join(r["question"] for r in rows))
    with pa.OSFile(str(tmp_path / "f.arrow"), "wb") as file:
        table = pa.Table.from_pylist(rows)
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.json").write_text(json.dumps({"examples": rows, "canary": "x"}))
    (tmp_path / "README.md").write_text("about")
    (tmp_path / "more.xlsx").write_bytes(b"PK")
    sets = read(tmp_path)
    assert [item.parts[0][1] for item in sets.items] == [r["question"] for r in rows] * 7
    assert len(sets.digests) == 7 and sets.read == 21 and sets.without_text == 0
    assert [a.split(":")[0].rsplit("/")[-1] for a in sets.alarms] == ["more.xlsx"]


def test_a_csv_file_whose_first_row_is_an_item_has_no_header(tmp_path):
    (tmp_path / "m.csv").write_text(f'"{Q}",Mars,Saturn,B\n"{Q} 2",a,b,A\n')
    items = read(tmp_path / "m.csv").items
    assert [item.parts for item in items] == [(("column 0", Q),), (("column 0", f"{Q} 2"),)]


@pytest.mark.parametrize(("items", "counts"), [(2, True), (3, False), (299, False), (301, True)])
def test_a_text_in_more_than_one_percent_of_the_items_is_an_instruction(tmp_path, items, counts):
    rows = [{"q": f"{Q} {n}"} | ({"task": "Answer with one of the letters."} if n < 3 else {}) for n in range(items)]
    (tmp_path / "e.jsonl").write_text("\n".join(map(json.dumps, rows)))
    sets = read(tmp_path)
    assert ("task" in parts_of(sets.items[0])) == counts
    assert ("1 texts stand in many items" in sets.lines[0]) != counts


def test_fields_can_be_named(tmp_path):
    (tmp_path / "e.jsonl").write_text(json.dumps({"x": {"y": Q}, "xy": f"{Q} {A}", "z": A}))
    assert parts_of(read(tmp_path, "x").items[0]) == {"x.y": [Q]}
    assert parts_of(read(tmp_path, "x.y", "z").items[0]) == {"x.y": [Q], "z": [A]}
    with pytest.raises(ConfigError, match=r"names 'w', which no evaluation file has; their fields are x\.y, xy, z"):
        read(tmp_path, "x.y", "w")


def test_what_cannot_be_searched_is_counted_and_an_alarm(tmp_path):
    (tmp_path / "e.jsonl").write_text(f"{json.dumps({'q': Q})}\n{json.dumps({'q': 'Why?', 'id': 3})}\n{{broken\n\n")
    sets = read(tmp_path)
    assert (sets.read, sets.without_text, sets.unreadable, len(sets.items)) == (2, 1, 1, 1)
    first, second = sets.alarms
    assert first.startswith("1 of 2 items of e.jsonl have no text of 5 words") and first.endswith("the fields are q")
    assert second == "1 lines of e.jsonl are not JSON, and were not searched"


@pytest.mark.parametrize(
    "rows", [[{"score": 3}], [{"id": "q1", "label": 1}], [None], [], [{"q": "four words are few"}]]
)
def test_a_file_without_any_long_text_is_an_error_that_names_the_fields(tmp_path: Path, rows):
    (tmp_path / "e.json").write_text(json.dumps(rows))
    with pytest.raises(InputError, match=r"no record has a text of 5 words to search; its fields are"):
        read(tmp_path)
