"""Evaluation items in rows: against plain sets of n-grams, planted items of real sets, what goes and what is told."""

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest

from datakit.config import build, resolved
from datakit.data import MESSAGES
from datakit.errors import ConfigError, InputError
from datakit.filter import contamination
from datakit.filter.stage import Filter, FilterConfig
from datakit.text.words import split_words

QUESTION = "A farmer has seventeen sheep and buys four more at the market, then sells half of them. How many are left?"
ANSWER = "He has 17 + 4 = 21 sheep, sells half of them, and so about ten of the sheep are left on the farm."
PROSE = "Nothing in this text has anything to do with questions of any kind, and it goes on for quite some words."


@pytest.fixture
def items(tmp_path: Path) -> str:
    rows = [
        {"question": "Who wrote it?", "answer": "Nobody knows."},
        {"question": QUESTION, "answer": ANSWER},
        {"question": "The quick brown fox jumps over the lazy dog.", "answer": 7},
    ]
    path = tmp_path / "sheep.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


def stage(items: str | list[str], **values) -> Filter:
    files = [items] if isinstance(items, str) else items
    made = build(FilterConfig, {"rules": ["contamination"], "contamination": {"eval": files} | values}, "filter")
    return Filter(config=made)


def documents(*texts: str) -> pa.RecordBatch:
    return pa.record_batch({"text": pa.array(texts, pa.string()), "id": [f"r{i}" for i in range(len(texts))]})


def grams(text: str, size: int = 13, short: int = 8) -> set[tuple[str, ...]]:
    words = split_words(text)
    size = size if len(words) >= size else short
    return {tuple(words[i : i + size]) for i in range(len(words) - size + 1)}


def contains(text: str, gram: tuple[str, ...]) -> bool:
    words = split_words(text)
    return any(tuple(words[i : i + len(gram)]) == gram for i in range(len(words)))


def test_overlaps_are_those_of_plain_sets(tmp_path):
    rng = random.Random(3)
    vocabulary = ["a", "b", "Cé", "字", "12"]
    items = [{"question": " ".join(rng.choices(vocabulary, k=rng.randint(1, 30)))} for _ in range(40)]
    path = tmp_path / "e.json"
    path.write_text(json.dumps(items))
    config = contamination.Contamination(eval=(str(path),), ngram_words=6, short_ngram_words=3)
    texts = [" ".join(rng.choices(vocabulary, k=rng.randint(0, 60))) for _ in range(40)]
    counts = config.count(pa.array(texts))
    for row, text in enumerate(texts):
        shares = []
        for item in items:
            own = grams(item["question"], 6, 3)
            held = sum(contains(text, g) for g in own)
            shares.append(max(1, round(1000 * held / len(own))) if held else 0)
        best = max(shares)
        assert counts["contamination_prompt_overlap"][row] == best
        assert counts["contamination_prompt_item"][row] == (shares.index(best) if best else -1)


def test_an_item_is_found_whatever_its_case_and_punctuation(items):
    copies = (
        QUESTION,
        f"{PROSE}\n{QUESTION.upper()}\n{PROSE}",
        QUESTION.replace(" ", " -- "),
        PROSE,
        "",
        QUESTION[:60],
    )
    decision = stage(items).decide(documents(*copies))
    hit = "contamination.max_prompt_overlap_ratio"
    assert decision.reasons.to_pylist() == [hit, hit, hit, None, None, None]
    assert decision.detail[0].as_py() == "prompt_overlap_ratio 1.0 > 0.5"


def test_short_items_are_found_by_shorter_ngrams_and_the_shortest_not_at_all(items):
    found = stage(items).decide(
        documents("See: the quick brown fox jumps over the lazy dog!", "Who wrote it? Nobody knows.")
    )
    assert [bool(r) for r in found.reasons.to_pylist()] == [True, False]


def test_prompts_and_answers_are_told_apart(items):
    batch = documents(f"{PROSE} {ANSWER}", f"{PROSE} {QUESTION}")
    assert [bool(r) for r in stage(items).decide(batch).reasons.to_pylist()] == [False, True]
    both = stage(items, max_answer_overlap_ratio=0.5).decide(batch)
    assert both.reasons.to_pylist() == [f"contamination.max_{part}_overlap_ratio" for part in ("answer", "prompt")]


def test_every_row_that_holds_an_item_is_listed_under_it(items):
    matches = stage(items).decide(documents(PROSE, f"{QUESTION} {ANSWER}", QUESTION)).side_tables["matches"].to_pylist()
    assert {(m["item"], m["part"], m["id"], m["overlap"]) for m in matches} == {
        ("sheep.jsonl:1", "prompt", "r1", 1.0),
        ("sheep.jsonl:1", "answer", "r1", 1.0),
        ("sheep.jsonl:1", "prompt", "r2", 1.0),
    }


def test_lines_that_hold_an_item_can_be_cut(items):
    page = f"{PROSE}\n\n{QUESTION}\n{PROSE}"
    decision = stage(items, action="cut").decide(documents(page, PROSE))
    assert decision.reasons.to_pylist() == [None, None]
    assert decision.columns["text"].to_pylist() == [f"{PROSE}\n\n{PROSE}", PROSE]
    assert decision.edited.to_pylist() == [True, False]


def test_the_question_of_a_conversation_is_looked_at_and_conversations_are_never_cut(items):
    turns = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": "Ten."}]
    batch = pa.record_batch({"messages": pa.array([turns], MESSAGES), "id": ["c"]})
    for action in ("drop", "cut"):
        made = stage(items, action=action).for_kind("conversation")
        assert made.decide(batch).reasons.to_pylist() == ["contamination.max_prompt_overlap_ratio"]


def test_saved_overlaps_decide_as_the_text_did(items):
    batch = documents(QUESTION, PROSE, QUESTION[:-30])
    first = stage(items).decide(batch)
    other = stage(items, max_prompt_overlap_ratio=0.9)
    assert other.decide_again(batch, first.side_tables["signals"]) == other.decide(batch)


def test_the_files_are_known_by_name_and_hash(items):
    made = stage(items)
    assert list(made.resources()["evaluation"]) == ["sheep.jsonl"]
    assert resolved(made.config)["contamination"]["eval"] == ["sheep.jsonl"]


@pytest.mark.parametrize(
    ("content", "message"),
    [("not json", "cannot be read"), ('{"x": 1}', "no record has text"), ("", "no record has text")],
)
def test_a_file_without_items_is_an_error_before_any_work(tmp_path, content, message):
    path = tmp_path / "e.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        stage(str(path)).open()


def test_evaluation_files_must_be_named_and_be_there(tmp_path):
    with pytest.raises(InputError, match="is not there"):
        stage(str(tmp_path / "none.jsonl")).resources()
    with pytest.raises(ConfigError, match="names no evaluation files"):
        stage([]).resources()
    with pytest.raises(ConfigError, match="short_ngram_words = 20"):
        stage([], short_ngram_words=20)


def test_all_verbatim_items_of_gsm8k_are_found_and_hardly_any_row_of_its_training_set(shared):
    folder = shared / "corpora/sft/gsm8k"
    test = [json.loads(line) for line in (folder / "test.jsonl").open()]
    train = [json.loads(line) for line in (folder / "train.jsonl").open()]
    made = stage(str(folder / "test.jsonl"))
    planted = [f"{PROSE}\n{item['question']}\n{PROSE}" for item in test]
    long_enough = [len(split_words(item["question"])) >= 8 for item in test]
    found = [bool(r) for r in made.decide(documents(*planted)).reasons.to_pylist()]
    assert found == long_enough and sum(long_enough) > 1300
    clean = made.decide(documents(*(f"{row['question']}\n{row['answer']}" for row in train))).reasons
    assert len(clean) - clean.null_count <= 0.001 * len(train)
    assert len(contamination.evaluation_index((str(folder / "test.jsonl"),), 13, 8).items) == len(test)
