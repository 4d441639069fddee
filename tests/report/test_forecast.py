"""`datakit forecast`: a sample that holds duplicates together, intervals, and a forecast beside the run."""

import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import datakit
import datakit.report.forecast as forecasting
from datakit.engine.recipe import Recipe
from datakit.errors import ConfigError, UsageError
from datakit.report.forecast import BLOCKS, Estimate, bootstrap, line_through, sample_keys

WORDS = [f"word{n}" for n in range(3000)]


def documents(count: int, rng: random.Random) -> list[str]:
    return [" ".join(rng.choices(WORDS, k=120)) + "." for _ in range(count)]


def rows(texts: list[str]) -> pa.RecordBatch:
    return pa.record_batch({"text": pa.array(texts)})


def test_equal_texts_have_one_key_and_similar_ones_have_it_as_often_as_they_are_similar():
    rng = random.Random(1)
    texts, similarities, changed = documents(1000, rng), [], []
    for text in texts:
        words = text.split()
        at = rng.randrange(10, 100)
        changed.append(" ".join([*words[:at], "other", *words[at + 1 :]]))
        a, b = ({tuple(t.split()[i : i + 5]) for i in range(116)} for t in (text, changed[-1]))
        similarities.append(len(a & b) / len(a | b))
    keys, others = sample_keys(rows(texts), 1), sample_keys(rows(changed), 1)
    assert np.array_equal(keys, sample_keys(rows([t.replace(" ", "  ") for t in texts]), 1))
    assert abs(float((keys == others).mean()) - sum(similarities) / len(similarities)) < 0.05
    assert len(set(keys.tolist())) == 1000
    assert abs(float((keys < 2**62).mean()) - 0.25) < 0.05  # evenly spread
    assert not np.array_equal(keys, sample_keys(rows(texts), 2))


def test_an_interval_holds_the_share_of_the_whole_in_nearly_every_sample():
    rng, inside, widths = np.random.default_rng(3), 0, []
    for share in (0.003, 0.05, 0.6):
        for _ in range(40):
            rows = rng.multinomial(800, [1 / BLOCKS] * BLOCKS)
            lost = rng.binomial(rows, share).astype(float)
            found = Estimate.of(bootstrap(lost, rows.astype(float)), forecasting.UNSEEN / 800)
            assert found.value == pytest.approx(lost.sum() / 800)
            inside += found.low <= share <= found.high
            widths.append(found.high - found.low)
    assert inside >= 118
    assert np.mean(widths[80:]) == pytest.approx(2 * 3.29 * (0.6 * 0.4 / 800) ** 0.5, rel=0.2)  # the normal's
    alike = np.zeros(BLOCKS)
    alike[:10] = 24  # 240 rows that are taken together say less than 240 others
    some = Estimate.of(bootstrap(alike, np.full(BLOCKS, 24.0)))
    assert some.high - some.low > 3 * 2 * 3.29 * (0.04 * 0.96 / 6144) ** 0.5
    none = Estimate.of(bootstrap(np.zeros(BLOCKS), np.ones(BLOCKS)), forecasting.UNSEEN / BLOCKS)
    assert none.high == pytest.approx(7.6 / 256)


def test_a_line_keeps_the_costs_of_a_start_apart_and_no_cost_is_negative():
    assert line_through((1, 3), (8, 10), 100) == pytest.approx(102)
    assert line_through((1, 1), (8, 16), 80) == pytest.approx(160)  # the start would cost less than nothing
    assert line_through((4, 2), (4, 2), 40) == pytest.approx(20)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """2,920 documents: a fifth exact and a tenth near duplicates, 20 rows all equal, some too short for the filter."""
    rng = random.Random(7)
    texts = documents(2100, rng)
    texts += rng.sample(texts, 500) + [texts[0]] * 20
    for text in rng.sample(texts[:2000], 300):
        words = text.split()
        words[rng.randrange(len(words))] = "other"
        texts.append(" ".join(words))
    texts[100:220] = [text[:40] for text in texts[100:220]]
    rng.shuffle(texts)
    for n in range(3):
        lines = [json.dumps({"text": t}) for t in texts[n::3]]
        (tmp_path / f"part-{n}.jsonl").write_text("\n".join([*lines, "{broken"]) + "\n")
    return tmp_path


def test_a_forecast_of_a_quarter_holds_what_the_run_does(project, monkeypatch):
    monkeypatch.setattr("datakit.report.forecast.LEAST_BYTES", 0)
    steps = [datakit.Ingest(str(project / "*.jsonl")), datakit.Dedup(), datakit.Filter(rules=["gopher_quality"])]
    pipeline = datakit.Pipeline(steps, dataset="d", project=project, workers=2)
    said = pipeline.forecast(share=0.3, rows=0)
    assert not (project / "data").exists()
    assert said.rows == 2923
    assert 600 < said.sample_rows < 1300
    result = pipeline.run()
    for stage, real in zip(said.stages, [*result.parents[0].parents, *result.parents, result], strict=True):
        found = real.ledger.rows
        assert stage.kept.low <= found.kept <= stage.kept.high, stage
        for reason, share in stage.dropped.items():
            n = found.quarantined if reason == "could not be read" else found.dropped.get(reason, 0)
            assert share.low <= n <= share.high, (stage.stage, reason)
        # a plain sample of 30% would see 30% of the pairs
        if stage.stage == "dedup":
            assert abs(sum(e.value for e in stage.dropped.values()) / sum(found.dropped.values()) - 1) < 0.25
    used = sum(f.stat().st_size for f in (project / "data").rglob("*") if f.is_file() and f.stat().st_nlink == 1)
    assert 0.5 < said.disk / used < 1.6


def test_wrong_values_and_a_recipe_without_inputs_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="share is a share"):
        forecasting.ForecastConfig(share=2)
    with pytest.raises(UsageError, match="names no inputs"):
        forecasting.forecast(Recipe(dataset="d"), tmp_path)
