"""The classifier: trained from examples, the same bytes each time; rows above a threshold, or the best share of all."""

import itertools
import json
import math
import random
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import datakit
from datakit.cli.main import main
from datakit.config import build
from datakit.errors import ConfigError, InputError, ManifestError, ModelError
from datakit.filter.classifier import Classify, ClassifyConfig, TrainConfig, auc, best_f1, held_out, pieces, point
from datakit.filter.fasttext_model import load as load_model
from datakit.manifest import data_dir, load, verify
from tests.dedup.conftest import documents as rows
from tests.dedup.conftest import write as write_batch
from tests.files import write_rows

STORY = [
    "she", "walked", "along", "the", "river", "and", "told", "old", "man", "about", "her", "long", "journey", "home",
    "while", "evening", "fell",
]  # fmt: skip
LISTING = [
    "param", "returns", "string", "number", "boolean", "options", "callback", "deprecated", "since", "version",
    "see", "also", "type",
]  # fmt: skip
FAST = {"bucket": 2000, "epochs": 5, "dev": 0.25}


def write(path, words: list[str], rows: int, seed: int):
    rng = random.Random(seed)
    texts = [" ".join(rng.choices([*words, "the", "a", "of"], k=rng.randint(10, 40))) for _ in range(rows)]
    return write_rows(path, ({"id": f"{path.stem}{i}", "text": text} for i, text in enumerate(texts)))


def trained(folder, files: list[str], **values) -> Path:
    datakit.classifier(files, output=folder, **(FAST | values))
    return folder / "manifest.json"


@pytest.fixture(scope="module")
def examples(tmp_path_factory) -> list[str]:
    folder = tmp_path_factory.mktemp("examples")
    return [str(write(folder / "good.jsonl", STORY, 150, 1)), str(write(folder / "bad.jsonl", LISTING, 200, 2))]


@pytest.fixture(scope="module")
def manifest(examples, tmp_path_factory):
    return trained(tmp_path_factory.mktemp("trained") / "m", examples, positive=["good.*"])


def mixed(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(STORY + LISTING, [rng.random()] * len(STORY) + [0.4] * len(LISTING), k=12))
            for _ in range(count)]  # fmt: skip


def classify(manifest, **config) -> Classify:
    stage = Classify(config=build(ClassifyConfig, {"model": str(manifest)} | config, "classify"))
    stage.open()
    return stage.for_kind("document")


def reduced(stage: Classify, batches: list[pa.RecordBatch], folder) -> Classify:
    files = [write_batch(stage.sketch(batch), folder / f"{i}.arrow") for i, batch in enumerate(batches)]
    stage.reduce(files, folder / "cut.arrow", workers=1)
    return stage.bind(folder / "cut.arrow")


def test_a_model_is_trained_and_measured_on_rows_it_has_not_seen(manifest):
    made = load(manifest)
    facts = made.facts["classifier"]
    dev = facts["dev"]
    assert facts["rows"] == {"positive": 150, "negative": 200}
    assert dev["best_f1"]["precision"] > 0.95 and dev["best_f1"]["recall"] > 0.95
    assert 50 < dev["rows"] < 130 and dev["auc"] > 0.98
    assert [p["min_score"] for p in dev["thresholds"]] == [n / 20 for n in range(21)]
    assert dev["thresholds"][0]["kept"] == dev["thresholds"][0]["recall"] == 1 and not dev["thresholds"][20]["kept"]
    assert all(problem is None for _, problem in verify(manifest))


def test_the_same_examples_give_the_same_bytes(examples, manifest, tmp_path):
    again = load(trained(tmp_path / "again", examples, positive=["good.*"]))
    assert again.version == load(manifest).version
    assert again.shards[0].sha256 == load(manifest).shards[0].sha256


def test_scores_of_rows_train_it_and_rows_without_a_score_are_counted(examples, tmp_path):
    texts = [Path(name).read_text().splitlines() for name in examples]
    rows = [json.loads(line) | {"stars": side} for side, lines in zip((9.0, 1.5), texts, strict=True) for line in lines]
    for row in rows[270:]:
        del row["stars"]
    write_rows(tmp_path / "rows.jsonl", rows)
    inputs = {"files": [str(tmp_path / "rows.jsonl")], "score_field": "stars", "min_score": 9}
    made = load(trained(tmp_path / "m", **inputs))
    assert made.facts["classifier"]["rows"] == {"positive": 150, "negative": 120}
    assert made.ledger.rows.dropped == {"no_score": 80}
    assert made.facts["classifier"]["dev"]["best_f1"]["precision"] > 0.95
    write_rows(tmp_path / "rows.jsonl", [{"text": "a", "stars": 0.5}, {"text": "b", "id": "x", "stars": "five"}])
    with pytest.raises(InputError, match="the row 'x': stars: expected a number, found 'five'"):
        trained(tmp_path / "n", **inputs)


def test_the_command_line_trains_shows_thresholds_and_filters(examples, tmp_path, monkeypatch, capsys):
    """Without held-out rows nothing is measured, and half is the threshold."""
    monkeypatch.chdir(tmp_path)
    train = ["classifier", "train", *examples, "--positive", "good.jsonl", "--bucket", "2000", "--epochs", "2"]
    for dev in ("0.1", "0"):
        with pytest.raises(SystemExit) as done:
            main([*train, "--dev", dev, "--output", f"m{dev}"])
        assert not done.value.code
        said = capsys.readouterr().out
        assert ("AUC" in said) == (re.search(r"(?m)^ *0\.55 +[\d.]+ +[\d.]+ ", said) is not None) == (dev == "0.1")
    assert classify("m0").threshold == 0.5 != classify("m0.1").threshold
    assert load(tmp_path / "m0/manifest.json").facts["classifier"]["dev"] == {"rows": 0, "auc": None}


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({}, ConfigError, "positive, score_field: expected one"),
        ({"positive": ["good.*"], "score_field": "x"}, ConfigError, "positive, score_field: expected one"),
        ({"positive": ["other.jsonl"]}, InputError, r"no positive rows .* of 350 rows: .*'other\.jsonl'"),
        ({"score_field": "x"}, InputError, "no positive rows"), ({"positive": ["*"]}, InputError, "no negative rows"),
    ],
)  # fmt: skip
def test_one_side_alone_is_refused(examples, tmp_path, values, error, message):
    with pytest.raises(error, match=message):
        trained(tmp_path / "m", examples, **values)


def test_a_threshold_keeps_what_scores_enough(manifest):
    stage, texts = classify(manifest, min_score=0.7), mixed(200, 3)
    raw = load_model(stage._path()).predict(pa.array(texts), "positive")[1].astype(float)
    scores = np.minimum(raw, 1).round(3)
    decision = stage.decide(rows(texts))
    assert [r is None for r in decision.reasons.to_pylist()] == (scores >= 0.7).tolist()
    assert set(decision.reasons.drop_null().to_pylist()) == {"classifier.min_score"}
    assert decision.columns["classifier_score"].to_pylist() == pytest.approx(scores.tolist())
    low = decision.detail.drop_null()[0].as_py()
    assert low == f"score {scores[scores < 0.7][0]:g} < 0.7"


@pytest.mark.parametrize("top", [0.001, 0.5, 1.0])
def test_a_share_keeps_the_best_rows_whatever_the_batches(manifest, top, tmp_path):
    stage, texts = classify(manifest, top=top), mixed(150, 4) + ["", "", "the", "the"] * 10
    whole = rows(texts)
    bound = reduced(stage, [whole.slice(0, 70), whole.slice(70, 1), whole.slice(71)], tmp_path)
    decision = bound.decide(whole)
    assert top == 1 or ", not among the best " in decision.detail.drop_null()[0].as_py()
    scores = decision.columns["classifier_score"].to_numpy()
    stays = pc.is_null(decision.reasons).to_numpy(zero_copy_only=False)
    best = sorted(range(len(texts)), key=lambda i: (-scores[i], i))[: math.ceil(top * len(texts))]
    assert sorted(np.flatnonzero(stays).tolist()) == sorted(best)
    both = reduced(classify(manifest, top=top, min_score=0.5), [whole], tmp_path).decide(whole)
    assert pc.is_null(both.reasons).to_pylist() == (stays & (scores >= 0.5)).tolist()
    parts = [bound.decide(whole.slice(i, 13)).reasons.to_pylist() for i in range(0, len(texts), 13)]
    assert list(itertools.chain.from_iterable(parts)) == decision.reasons.to_pylist()


def test_rows_are_scored_once(manifest, tmp_path, monkeypatch):
    assert not classify(manifest).compares_rows
    whole = rows(mixed(60, 6))
    expected = classify(manifest).decide(whole).columns["classifier_score"]
    bound = reduced(classify(manifest, top=0.5), [whole.slice(30), whole.slice(0, 30)], tmp_path)
    monkeypatch.setattr(Classify, "_scores", None)
    assert bound.decide(whole).columns["classifier_score"].equals(expected)
    assert bound.decide(whole.slice(7, 9)).columns["classifier_score"].equals(expected.slice(7, 9))
    empty = whole.slice(0, 0)
    monkeypatch.undo()
    assert len(reduced(classify(manifest, top=0.5), [empty], tmp_path).decide(empty).reasons) == 0


def test_rows_are_decided_anew_where_the_last_score_that_stays_moved(manifest, tmp_path):
    """The detail of a dropped row names that score, so what an earlier run wrote about the row is no longer true."""
    whole, few = rows(mixed(60, 6)), rows(mixed(60, 6)[:20])
    found = []
    for name, batch in (("whole", whole), ("few", few)):
        (tmp_path / name).mkdir()
        stage = reduced(classify(manifest, top=0.5), [batch], tmp_path / name)
        found.append((stage.decide(few).detail, stage.decided_about(few.column("row_key").to_numpy())))
    assert found[0][0] != found[1][0] and found[0][1] != found[1][1]


def test_the_model_and_its_label_are_checked_before_any_work(manifest, tmp_path):
    with pytest.raises(ConfigError, match="needs a model"):
        Classify().open()
    with pytest.raises(ConfigError, match="no label 'positiv'; did you mean positive"):
        classify(manifest, label="positiv")
    with pytest.raises(ConfigError, match="top is a share"):
        build(ClassifyConfig, {"top": 10}, "classify")
    (tmp_path / "m.json").write_text("{}")
    with pytest.raises(ManifestError):
        classify(tmp_path / "m.json")
    with pytest.raises(ModelError, match="no such file"):
        classify(tmp_path / "nothing.bin")


def test_the_model_and_its_threshold_enter_the_key(manifest):
    model, dev = load(manifest).shards[0], load(manifest).facts["classifier"]["dev"]
    named = {"model": {"name": "model.bin", "sha256": model.sha256}}
    assert classify(manifest).resources() == named | {"min_score": dev["best_f1"]["min_score"]}
    assert classify(manifest, top=0.5).resources()["min_score"] == 0
    alone = data_dir(manifest, load(manifest)) / model.path
    assert classify(alone).resources() == named | {"min_score": 0.5}
    assert classify(manifest, label="negative").resources() == named | {"min_score": 0.5}


ROWS = st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=60)


def arrays(rows):
    return np.array([s / 20 for s, _ in rows], float), np.array([p for _, p in rows], bool)


@given(ROWS)
def test_auc_is_the_share_of_pairs_in_order(rows):
    wanted, other = [s for s, p in rows if p], [s for s, p in rows if not p]
    pairs = [(a > b) + (a == b) / 2 for a in wanted for b in other]
    assert auc(*arrays(rows)) == (pytest.approx(sum(pairs) / len(pairs), abs=6e-5) if pairs else None)


@given(ROWS, st.integers(0, 20))
def test_a_threshold_counts_the_rows_that_it_keeps(rows, least):
    found = point(*arrays(rows), least / 20)
    kept, wanted = [p for s, p in rows if s >= least], sum(p for _, p in rows)
    assert found["min_score"] == least / 20 and found["kept"] == pytest.approx(len(kept) / len(rows) if rows else 0)
    assert found["precision"] == (sum(kept) / len(kept) if kept else None)
    assert found["recall"] == (sum(kept) / wanted if wanted else None)
    assert found["f1"] == pytest.approx(2 * sum(kept) / (len(kept) + wanted) if kept or wanted else 0)


def test_the_best_f1_is_the_threshold_where_no_score_is_given(manifest):
    dev = load(manifest).facts["classifier"]["dev"]
    assert classify(manifest).threshold == dev["best_f1"]["min_score"] != 0.5
    assert dev["best_f1"]["f1"] >= max(p["f1"] for p in dev["thresholds"])
    apart = [point(*arrays([(4, False), (6, False), (14, True), (16, True)]), n / 100) for n in range(101)]
    assert best_f1(apart)["min_score"] == 0.51  # in the middle of equal ones


@given(st.lists(st.text("0123456789abcdef", min_size=32, max_size=32), max_size=50))
def test_what_is_held_out_depends_on_the_content_alone(hashes):
    config = TrainConfig(dev=0.3)
    together = held_out(pa.array(hashes, pa.string()), config)
    assert [bool(held_out(pa.array([h]), config)[0]) for h in hashes] == together.tolist()
    assert not held_out(pa.array(hashes, pa.string()), TrainConfig(dev=0.0)).any()


@given(st.text(max_size=300), st.integers(1, 20), st.integers(1, 5))
def test_pieces_are_short_lines_out_of_the_text(text, size, most):
    found = list(pieces(text, size, most))
    line = " ".join(text.split())
    assert len(found) == min(most, math.ceil(len(line) / size))
    assert all(0 < len(p) <= size and p in line and len(p.splitlines()) <= 1 for p in found)
    if len(found) < most:
        assert "".join(found) == line
