"""The perplexity stage: its texts, its percentiles, and KenLM's scores beside an ARPA file read by hand."""

import importlib.util
import itertools
import math
import re
import sys
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datakit.config import build
from datakit.errors import ConfigError, MissingExtraError, ModelError
from datakit.filter import perplexity as module
from datakit.filter.perplexity import Perplexity, PerplexityConfig, by_language, perplexity, plain_text, raw_text

needs_kenlm = pytest.mark.skipif(importlib.util.find_spec("kenlm") is None, reason="the extra kenlm is not installed")

UNIGRAMS = {"<unk>": (-2.0, 0), "<s>": (0, -0.3), "</s>": (-1.0, 0), "the": (-0.5, -0.2), "cat": (-1.5, -0.4)}
BIGRAMS = {("<s>", "the"): -0.25, ("the", "cat"): -0.125, ("cat", "</s>"): -0.75}


class ByHand:
    """A bigram model with back-off, as its ARPA file says."""

    def score(self, line: str) -> float:
        words, total = ["<s>", *(w if w in UNIGRAMS else "<unk>" for w in line.split()), "</s>"], 0.0
        for before, word in itertools.pairwise(words):
            seen = BIGRAMS.get((before, word))
            total += seen if seen is not None else UNIGRAMS[before][1] + UNIGRAMS[word][0]
        return total


@pytest.fixture
def arpa(tmp_path):
    lines = ["\\data\\", f"ngram 1={len(UNIGRAMS)}", f"ngram 2={len(BIGRAMS)}", "", "\\1-grams:"]
    lines += [f"{score}\t{word}\t{back}" for word, (score, back) in UNIGRAMS.items()]
    lines += ["", "\\2-grams:", *(f"{score}\t{' '.join(words)}" for words, score in BIGRAMS.items()), "", "\\end\\", ""]
    path = tmp_path / "tiny.arpa"
    path.write_text("\n".join(lines))
    return path


def rows(texts, langs=None) -> pa.RecordBatch:
    keys = pa.array(range(len(texts)), pa.uint64())
    return pa.record_batch({"row_key": keys, "text": pa.array(texts), "lang": pa.array(langs or ["en"] * len(texts))})


def run(batch, folder, monkeypatch, **config):
    """The decisions of the stage under the model by hand."""
    monkeypatch.setattr(module, "_load", lambda _: ByHand())
    monkeypatch.chdir(folder)
    for name in ("a", "b"):
        (folder / name).touch()
    stage = Perplexity(config=build(PerplexityConfig, {"models": ["en=a"]} | config, "perplexity"))
    files = []
    for i in range(2):
        sketch = stage.sketch(batch.slice(i * 5, 5 if i == 0 else None))
        files.append(folder / f"{i}.arrow")
        with pa.OSFile(str(files[-1]), "wb") as f, pa.ipc.new_file(f, sketch.schema) as writer:
            writer.write_batch(sketch)
    facts = stage.reduce(files, folder / "out.arrow", workers=1)["perplexity"]
    return stage.bind(folder / "out.arrow").decide(batch), facts


def test_the_length_counts_words_and_line_ends_over_all_lines():
    both = perplexity("the cat\n\nthe dog", ByHand(), plain_text)
    score = ByHand().score("the cat") + ByHand().score("the dog")
    assert both == round(10 ** (-score / 6), 3)
    assert math.isnan(perplexity(" \n\n", ByHand(), plain_text))


def test_a_text_is_made_plain_as_the_models_were_trained():
    assert plain_text("  Élan: 2024年，“Größe”… \x07ok ").strip() == 'elan: 0000年,"große"... ok'
    assert perplexity("THE CAT", ByHand(), plain_text) < perplexity("THE CAT", ByHand(), raw_text)


def by_hand(line):
    """CCNet's normal form of a line, step by step."""
    parts = unicodedata.normalize("NFD", line.strip().lower())
    bare = re.sub(r"\d", "0", "".join(c for c in parts if unicodedata.category(c) != "Mn"))
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", "", bare.translate(str.maketrans(module._PUNCTUATION)))


@given(st.text(max_size=60) | st.text(st.characters(codec="ascii"), max_size=60))
def test_a_text_is_made_plain_line_by_line(text):
    expected = [by_hand(line).split() for line in text.splitlines()]
    assert [line.split() for line in plain_text(text).split("\n")] == (expected or [[]])
    raw = [line.replace("\0", " ").split() for line in text.splitlines()]
    assert [line.split(" ") if line else [] for line in raw_text(text).split("\n")] == (raw or [[]])


def test_rows_fall_into_thirds_of_their_language(tmp_path, monkeypatch):
    texts = ["the cat"] * 3 + ["the the"] * 3 + ["dog dog dog"] * 4 + ["le chat", "", "die Katze"]
    langs = ["en"] * 10 + ["fr", "en", None]
    decision, facts = run(rows(texts, langs), tmp_path, monkeypatch)
    expected = ["head"] * 3 + ["middle"] * 3 + ["tail"] * 4 + [None] * 3
    assert decision.columns["perplexity_bucket"].to_pylist() == expected
    assert decision.reasons.to_pylist() == [None] * 6 + ["perplexity.tail"] * 4 + [None] * 3
    limit = facts["up_to"]["en"]["middle"]
    assert decision.detail[6].as_py() == f"perplexity {decision.columns['perplexity'][6].as_py():g} > {limit:g}"
    assert facts["not_measured"] == {"en": 1, "fr": 1, "unknown": 1}
    assert list(facts["up_to"]["en"]) == ["head", "middle"]
    assert decision.notes == {"perplexity_not_measured": 3}


def test_a_model_without_a_language_serves_the_others_each_by_its_own_percentiles(tmp_path, monkeypatch):
    texts = ["the cat", "dog", "the dog"] * 4
    decision, facts = run(
        rows(texts, ["en"] * 6 + ["de"] * 6), tmp_path, monkeypatch, models=["en=a", "b"], keep=["tail"]
    )
    assert sorted(facts["up_to"]) == ["de", "en"]
    buckets = decision.columns["perplexity_bucket"].to_pylist()
    assert buckets[:6] == buckets[6:] == ["head", "tail", "middle"] * 2
    assert decision.reasons.to_pylist()[:3] == ["perplexity.head", None, "perplexity.middle"]
    ranges = [detail.split(" ", 2)[2] for detail in decision.detail.drop_null().to_pylist()[:2]]
    cut = facts["up_to"]["en"]
    assert ranges == [f"<= {cut['head']:g}", f"in {cut['head']:g} to {cut['middle']:g}"]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(1, 98))
def test_at_least_the_percentile_is_head_and_equal_rows_are_together(lengths, percentile):
    values = np.array(lengths, float)
    cut = np.sort(values)[math.ceil(percentile * len(values) / 100) - 1]
    assert (values <= cut).mean() >= percentile / 100 and (values < cut).mean() < percentile / 100


def test_without_kenlm_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "kenlm", None)
    with pytest.raises(MissingExtraError, match=r"datakit\[kenlm\]"):
        Perplexity(config=PerplexityConfig(models=("en=a.arpa",))).resources()


def test_values_that_make_no_sense_are_refused():
    for values, message in (
        ({"keep": ["best"]}, "unknown bucket 'best'; there are head, middle, tail"),
        ({"keep": []}, "no bucket would stay"),
        ({"head_percentile": 70}, "head_percentile = 70, middle_percentile = 60"),
        ({"models": ["en=a", "en=b"]}, "two models for en: a and b"),
        ({"models": ["en=a"], "sentencepiece": ["de=b"]}, "sentencepiece: de: there is no such model"),
    ):
        with pytest.raises(ConfigError, match=message):
            build(PerplexityConfig, values, "perplexity")
    with pytest.raises(ConfigError, match="needs KenLM models"):
        Perplexity().resources()
    assert by_language(["en=a/b.arpa", "eng_Latn=c", "x=1/y.bin"]) == {
        "en": "a/b.arpa", "eng_Latn": "c", "": "x=1/y.bin",
    }  # fmt: skip


@needs_kenlm
def test_kenlm_scores_as_the_file_says(arpa):
    model = module._load(str(arpa))
    for text in ("the cat", "cat the", "dog", "the the the cat cat dog", "The CAT\nthe cat\n"):
        assert perplexity(text, model, plain_text) == pytest.approx(perplexity(text, ByHand(), plain_text), rel=1e-5)


@needs_kenlm
def test_a_file_that_is_no_model_is_refused_before_any_work(tmp_path):
    (tmp_path / "bad.arpa").write_text("hello")
    stage = Perplexity(config=PerplexityConfig(models=(f"en={tmp_path / 'bad.arpa'}",)))
    assert stage.resources()["models"]["en"]["name"] == "bad.arpa"
    with pytest.raises(ModelError, match=r"bad\.arpa: expected a KenLM model"):
        stage.open()
    with pytest.raises(ModelError, match="the model for en is not there"):
        Perplexity(config=PerplexityConfig(models=("en=nothing.arpa",))).resources()


@needs_kenlm
def test_the_command_line_keeps_the_rows_that_the_model_knows(arpa, tmp_path, monkeypatch, capsys):
    from datakit.cli.main import main
    from datakit.manifest import load

    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.jsonl").write_text("".join(f'{{"text": "{"the cat " * (i % 7)} dog"}}\n' for i in range(50)))
    monkeypatch.setattr(sys, "argv", ["datakit", "perplexity", "d.jsonl", "--models", str(arpa)])
    with pytest.raises(SystemExit) as done:
        main()
    assert not done.value.code, capsys.readouterr().err
    made = load(tmp_path / "manifests/d/perplexity.json")
    assert made.ledger.rows.dropped.keys() == {"perplexity.tail"} and made.ledger.rows.kept >= 30
    assert made.config["models"] == ["tiny.arpa"] and made.facts["perplexity"]["up_to"].keys() == {"unknown"}
