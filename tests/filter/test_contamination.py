"""Evaluation items in rows: against a plain definition, planted items of real sets, what goes and what is told."""

import gzip
import json
import math
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datakit.data import MESSAGES
from datakit.errors import ConfigError, InputError
from datakit.filter import contamination
from datakit.filter.rule_set import MeasuredRows
from datakit.filter.stage import Filter
from datakit.manifest import Count, Ledger
from datakit.text.words import split_words
from tests.files import says, user, write_rows
from tests.filter.rows import documents, filter_of

QUESTION = "A señor has seventeen sheep and buys four more at the market, then sells half of them. How many are left?"
ANSWER = "He has 17 + 4 = 21 sheep, sells half of them, and so about ten of the sheep are left on the farm."
PROSE = "Nothing in this text has anything to do with questions of any kind, and it goes on for quite some words."


@pytest.fixture
def items(tmp_path: Path) -> str:
    rows = [
        {"question": "Who wrote it?", "answer": "Nobody knows."},
        {"question": QUESTION, "answer": ANSWER},
        {"question": "The quick brown fox jumps over the lazy dog.", "answer": 7},
    ]
    return str(write_rows(tmp_path / "sheep.jsonl", rows))


def stage(items: str | list[str], **values) -> Filter:
    files = [items] if isinstance(items, str) else items
    return filter_of("contamination", contamination={"eval": files} | values)


def test_every_row_that_holds_an_item_is_listed_under_it_with_the_passage(items):
    """Whatever its case, punctuation and Unicode form."""
    batch = documents(PROSE, f"{QUESTION} {ANSWER}", f"{PROSE}\n{QUESTION.upper()} {PROSE}", PROSE[:45], "")
    decision = stage(items).decide(batch)
    assert decision.reasons.to_pylist() == [None, *["contamination.max_match_ratio"] * 2, None, None]
    assert decision.detail[1].as_py() == "match_ratio 1.0 > 0.5"
    reasons = stage(items).decide(documents(QUESTION.replace(" ", " -- ").replace("ñ", "n\u0303"))).reasons
    assert reasons.to_pylist() == ["contamination.max_match_ratio"]
    matches = decision.side_tables["matches"].to_pylist()
    assert [(m["item"], m["part"], m["id"], m["overlap"], m["passage"]) for m in matches] == [
        ("sheep.jsonl:1", "question", "r1", 1.0, QUESTION),
        ("sheep.jsonl:1", "answer", "r1", 1.0, ANSWER),
        ("sheep.jsonl:1", "question", "r2", 1.0, QUESTION.upper()),
    ]


def test_weighted_shares_are_those_of_the_plain_definition(tmp_path):
    rng = random.Random(5)
    vocabulary = ["the", "of", "7", "sheep", "market", "river", "lantern", "字", "牛"]
    made = [{"question": " ".join(rng.choices(vocabulary, k=rng.randint(6, 30)))} for _ in range(30)]
    made.append(made[0])  # of equals the first item counts
    path, least = write_rows(tmp_path / "e.jsonl", made), 1.5
    config = contamination.Contamination(eval=(str(path),), min_rare_words=least)
    texts = [" ".join(rng.choices(vocabulary, k=rng.randint(0, 400))) for _ in range(40)]
    texts += [f"{PROSE} {item['question']} {PROSE}" for item in made]
    counts = config.signals(MeasuredRows(documents(*texts)))

    def size(words):
        return 8 if 2 * sum(w in "字牛" for w in words) > len(words) else 5

    def grams(words, n):
        return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]

    items = [split_words(item["question"]) for item in made]
    holders = {}
    for number, words in enumerate(items):
        for gram in grams(words, size(words)):
            holders.setdefault(gram, set()).add(number)
    rarity = {gram: max(0.0, 1 - math.log(len(held)) / math.log(100)) for gram, held in holders.items()}
    base = {"the": 250, "of": 250, "7": 250, "字": 400, "牛": 400}
    for row, text in enumerate(texts):
        words = split_words(text)
        has = {n: set(grams(words, n)) for n in (5, 8)}
        shares = []
        for item in items:
            n, factors, held = size(item), [0.0] * len(item), [False] * len(item)
            for at, gram in enumerate(grams(item, n)):
                for k in range(at, at + n):
                    factors[k] = max(factors[k], rarity[gram])
                    held[k] |= gram in has[n]
            weights = [round(base.get(w, 1000) * f) for w, f in zip(item, factors, strict=True)]
            matched = sum(w for w, h in zip(weights, held, strict=True) if h)
            share = 1000 * matched // max(1, sum(weights))
            enough = int(1000 * least)
            if 2 * sum(held) < len(words):
                share = share * min(4 * enough, 2 * matched + enough) // (4 * enough) if matched >= enough else 0
            shares.append(share)
        assert counts["contamination_match"][row] == max(shares), (row, text)
        assert counts["contamination_match_item"][row] == (shares.index(max(shares)) if max(shares) else -1)


@pytest.mark.parametrize(
    ("content", "message"),
    [("not json", "cannot be read"), ('{"x": 1}', "no record has a text"), ("", "cannot be read")],
)
def test_a_file_without_items_is_an_error_before_any_work(tmp_path, content, message):
    path = tmp_path / "e.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        stage(str(path)).open()
    with pytest.raises(InputError, match="no such file"):
        stage(str(tmp_path / "none.jsonl")).resources()
    with pytest.raises(ConfigError, match="names no evaluation files"):
        stage([]).resources()


def test_all_of_a_row_is_searched(items):
    call = json.dumps([{"name": "ask", "arguments": json.dumps({"text": f'He said "hm":\n{QUESTION}'})}])
    words = QUESTION.split()
    reworded = " ".join("perhaps" if i % 12 == 6 else word for i, word in enumerate(words))
    hidden = [
        [user(f"{PROSE} {reworded} {PROSE}")],
        [user(f"{' '.join(words[:10])}\n\n{PROSE}\n\n{' '.join(words[10:])}")],
        [{"role": "system", "content": QUESTION}],
        [{"role": "tool", "content": json.dumps({"result": QUESTION})}],
        [{"role": "assistant", "tool_calls": call}],
        [says("Ten.", reasoning_content=QUESTION)],
        [user(QUESTION[:60]), user(QUESTION[60:])],
        *[[user(PROSE)]] * 3,
    ]
    columns = {"messages": pa.array(hidden, MESSAGES), "id": list("abcdefghij")}
    columns["extra"] = pa.array([None] * 7 + [json.dumps({"notes": {"seen": [1, QUESTION]}}), "{}", None])
    columns["tags"] = pa.array([None] * 8 + [["b", QUESTION], []], pa.list_(pa.string()))
    reasons = stage(items).for_kind("conversation").decide(pa.record_batch(columns)).reasons
    assert reasons.is_valid().to_pylist() == [True] * 9 + [False]


def test_the_ledger_counts_the_items_and_an_item_that_cannot_be_searched_is_an_alarm(tmp_path):
    rows = [{"question": QUESTION}, {"question": "为什么天是蓝的"}, {"question": "Why?"}, {"question": QUESTION}]
    path = tmp_path / "e.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n{broken\n")
    made = stage(str(path))
    assert made.extras(Ledger(Count())).notes == {
        "evaluation_items_read": 4, "evaluation_items_searched": 2, "evaluation_items_too_short": 1,
        "evaluation_items_without_text": 1, "evaluation_lines_unreadable": 1,
    }  # fmt: skip
    alarms = " | ".join(made.extras(Ledger(Count())).facts["alarms"])
    assert "1 of 4 items of e.jsonl have no text of 5 words" in alarms and "1 lines of e.jsonl are not JSON" in alarms
    assert "too short" in alarms and "e.jsonl:1" in alarms


def test_a_changed_evaluation_file_is_read_again(tmp_path):
    path = write_rows(tmp_path / "e.jsonl", [{"question": PROSE}])
    made = stage(str(path))
    first = made.resources()
    assert made.decide(documents(QUESTION)).reasons.null_count == 1
    write_rows(path, [{"question": QUESTION}])
    assert made.resources() != first
    assert made.decide(documents(QUESTION)).reasons.null_count == 0


def test_a_window_finds_items_in_long_rows_and_ignores_words_that_are_far_apart_or_common(items, tmp_path):
    words = QUESTION.split()
    pieces = [" ".join(words[i : i + 6]) for i in range(0, len(words), 6)]
    scattered = f" {PROSE * 150} ".join(pieces)
    late = PROSE * 800 + QUESTION + PROSE * 800
    assert stage(items).decide(documents(scattered, late)).reasons.is_valid().to_pylist() == [False, True]
    path = write_rows(tmp_path / "common.jsonl", [{"question": "What is it that you do for them there?"}])
    long = "He went to the house and saw what it was. What is it that you do for them there? So they said. " * 60
    found = stage(str(path)).decide(documents(long, "What is it that you do for them there?"))
    assert found.reasons.is_valid().to_pylist() == [False, True]


# Evaluation sets as they come: every text of five words or more is a part, whatever the layout.

Q, A, SHORT = "Which planet has the most moons?", "It is Saturn, by a wide margin.", ["Mars", "Saturn"]
LAYOUTS = {
    "MMLU": ({"question": Q, "subject": "astronomy", "choices": SHORT, "answer": 1}, {"question": [Q]}),
    "ARC": ({"question": {"stem": Q, "choices": [{"text": A}, {"text": "Mars"}]}}, {"question.stem": [Q],
                                                                                   "question.choices.text": [A]}),
    "messages": ({"messages": [{"role": "user", "content": Q}, {"role": "assistant", "content": A}]},
                 {"messages.content": [Q, A]}),
    "JSON as text": ({"messages": json.dumps([{"content": Q}])}, {"messages.content": [Q]}),
    "a list of texts": (Q, {"": [Q]}),
    "Chinese": ({"题目": "哪颗行星的卫星最多"}, {"题目": ["哪颗行星的卫星最多"]}),
}  # fmt: skip


def read(path: Path, *fields: str) -> contamination.EvaluationFile:
    return contamination.EvaluationFile.of((str(path), path.name, path.stat().st_size), fields)


def parts_of(file: contamination.EvaluationFile) -> dict[str, list[str]]:
    """Of the first item: its texts by field."""
    found: dict[str, list[str]] = {}
    for field, text in file.items[0][1]:
        found.setdefault(field, []).append(text)
    return found


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_text_of_five_words_is_a_part_under_the_name_of_its_field(tmp_path, name):
    record, expected = LAYOUTS[name]
    (tmp_path / "e.jsonl").write_text(f"{json.dumps(record)}\n{json.dumps({'n': Q[::-1]})}")
    (tmp_path / "e.json").write_text(json.dumps([record, record]))
    for file in ("e.jsonl", "e.json"):
        found = read(tmp_path / file)
        assert parts_of(found) == expected and len(found.items) == 2 and found.items[0][0] == f"{file}:0"


def test_json_in_a_text_file_is_read_as_json_and_prose_is_not(tmp_path):
    rows = [{"question": f"{Q} {n}"} for n in range(3)]
    for name, text in {"lines": "\n".join(map(json.dumps, rows)), "array": json.dumps(rows, indent=1)}.items():
        (tmp_path / f"{name}.txt").write_text(text)
        found = [parts for _, parts in read(tmp_path / f"{name}.txt").items]
        assert found == [(("question", row["question"]),) for row in rows]
    (tmp_path / "prose.txt").write_text(f"[Chapter 1]\n\n{Q}\n\n{{{A}}} is in braces, and this is no JSON\n")
    found = [parts[0][1] for _, parts in read(tmp_path / "prose.txt").items]
    assert found == [Q, f"{{{A}}} is in braces, and this is no JSON"]


def test_every_format_of_a_folder_is_read(tmp_path):
    rows = [{"question": f"{Q} {n}", "answer": f"{A} {n}"} for n in range(3)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    (tmp_path / "c.csv").write_text("question,answer\n" + "".join(f'"{r["question"]}","{r["answer"]}"\n' for r in rows))
    (tmp_path / "d.json").write_text(json.dumps({name: [r[name] for r in rows] for name in ("question", "answer")}))
    (tmp_path / "e.txt").write_text("\n\n".join(r["question"] for r in rows))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.json").write_text(json.dumps({"examples": rows, "canary": "x"}))
    (tmp_path / "README.md").write_text("about")
    (tmp_path / "more.xlsx").write_bytes(b"PK")
    index = contamination.Contamination(eval=(str(tmp_path),))._index()
    files = [f for f in sorted(tmp_path.rglob("*.*")) if f.name not in ("README.md", "more.xlsx")]
    assert [parts[0][1] for file in files for _, parts in read(file).items] == [r["question"] for r in rows] * 6
    assert len(index.told.digests["evaluation"]) == 6 and len(index.items) == 18
    assert index.told.counters["evaluation_items_read"] == 18
    assert [a.split(":")[0].rsplit("/")[-1] for a in index.told.alarms] == ["more.xlsx"]


def test_a_table_is_read_as_ingest_reads_it_but_a_first_row_that_is_an_item_is_no_header(tmp_path):
    (tmp_path / "m.csv").write_text(f'"{Q}",Mars,Saturn,B\n"{Q} 2",a,b,A\n')
    assert [parts for _, parts in read(tmp_path / "m.csv").items] == [(("column 0", Q),), (("column 0", f"{Q} 2"),)]
    (tmp_path / "m.csv").write_text(f'question;answer\n"{Q}";Mars\n"{Q} 2"\n')
    file = read(tmp_path / "m.csv")
    assert [parts for _, parts in file.items] == [(("question", Q),)] and file.unreadable == 1


@pytest.mark.parametrize(("items", "counts"), [(2, True), (3, False), (299, False), (301, True)])
def test_a_text_in_more_than_one_percent_of_the_items_is_an_instruction(tmp_path, items, counts):
    rows = [{"q": f"{Q} {n}"} | ({"task": "Answer with one of the letters."} if n < 3 else {}) for n in range(items)]
    found = read(write_rows(tmp_path / "e.jsonl", rows))
    assert ("task" in parts_of(found)) == counts
    assert ("1 texts stand in many items" in found.line) != counts


def test_fields_can_be_named(tmp_path):
    (tmp_path / "e.jsonl").write_text(json.dumps({"x": {"y": Q}, "xy": f"{Q} {A}", "z": A}))
    assert parts_of(read(tmp_path / "e.jsonl", "x")) == {"x.y": [Q]}
    assert parts_of(read(tmp_path / "e.jsonl", "x.y", "z")) == {"x.y": [Q], "z": [A]}
    with pytest.raises(ConfigError, match=r"names 'w', which no evaluation file has; their fields are x\.y, xy, z"):
        stage(str(tmp_path / "e.jsonl"), eval_fields=["x.y", "w"]).open()
