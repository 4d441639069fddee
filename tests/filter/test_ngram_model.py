"""`perplexity train`: from rows to a model, with the settings that tell the perplexity stage how to read."""

import importlib.util
import json
import math

import pytest

import datakit
from datakit.config import build
from datakit.errors import ConfigError, ModelError
from datakit.filter import perplexity as scoring
from datakit.filter.ngram_model import NgramModelConfig
from datakit.filter.perplexity import ModelFiles, Perplexity, PerplexityConfig, perplexity, sentence_reader
from datakit.manifest import load

needs_kenlm = pytest.mark.skipif(importlib.util.find_spec("kenlm") is None, reason="the extra kenlm is not installed")

TEXTS = ["The cat sat on the mat.\nThe dog sat, too.", "A cat is no dog in 1984.", "\n\n", "Élan, said the dog."] * 5


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return path


@pytest.fixture(scope="module")
def model(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "model"
    datakit.perplexity_model(str(rows), order=3, output=folder)
    return folder


class FromArpa:
    """Scores as the ARPA file says, with back-off."""

    def __init__(self, path):
        self.grams = {}
        for line in path.read_text().splitlines():
            if "\t" in line:
                p, words, *weight = line.split("\t")
                self.grams[tuple(words.split())] = float(p), float(weight[0]) if weight else 0.0
        self.order = max(map(len, self.grams))

    def p(self, context, word):
        if (*context, word) in self.grams:
            return self.grams[*context, word][0]
        return self.grams.get(context, (0, 0))[1] + self.p(context[1:], word)

    def score(self, line):
        words = ["<s>", *(w if (w,) in self.grams else "<unk>" for w in line.split()), "</s>"]
        return sum(
            self.p(tuple(words[max(i + 1 - self.order, 0) : i]), words[i]) for i in range(1, len(words))
        )  # fmt: skip


def test_a_model_is_trained_on_the_lines_as_they_are_scored(model):
    grams = FromArpa(model / "kept/model.arpa").grams
    assert ("in", "0000.", "</s>") in grams and ("<s>", "elan,") in grams and ("the",) in grams
    facts = load(model / "manifest.json").facts["ngram_model"]
    assert facts["sentences"] == 20 and facts["ngrams"][0] == sum(len(g) == 1 for g in grams)


def test_text_like_that_of_the_model_has_a_lower_perplexity(model):
    arpa = FromArpa(model / "kept/model.arpa")
    read = sentence_reader("plain", None)
    known, new = (perplexity(text, arpa, read) for text in ("the cat sat on the mat.", "mat dog cat sat in the on"))
    assert known < new / 3 and math.isfinite(new)


@needs_kenlm
def test_kenlm_reads_the_model(model):
    loaded, arpa, read = scoring._load(str(model / "kept/model.arpa")), FromArpa(model / "kept/model.arpa"), str
    for text in ("the cat sat", "a dog on the mat.", "nothing known"):
        assert perplexity(text, loaded, read) == pytest.approx(perplexity(text, arpa, read), rel=1e-4)


def test_the_perplexity_stage_takes_the_folder_and_reads_as_the_model_was_trained(
    rows, model, small_tokenizer, tmp_path, monkeypatch
):
    ids = tmp_path / "ids"
    datakit.perplexity_model(str(rows), order=2, text="raw", tokenizer=str(small_tokenizer), output=ids)
    monkeypatch.setattr(scoring, "_load", lambda file: FromArpa(ModelFiles.of(file, "").file))
    stage = Perplexity(config=PerplexityConfig(models=(f"en={ids}", f"de={model}/manifest.json")))
    read = stage._model("en")[1]
    tokenizer = scoring.load_tokenizer(small_tokenizer / "tokenizer.json")
    assert read("The cat\n\nsat") == "\n".join(
        " ".join(map(str, tokenizer.encode(line, add_special_tokens=False).ids)) for line in ("The cat", "sat")
    )
    grams = FromArpa(ids / "kept/model.arpa").grams
    assert {w for (w,) in (g for g in grams if len(g) == 1)} >= set(read(TEXTS[0]).split())
    assert stage._model("de")[1]("Élan 5") == "elan 0"
    monkeypatch.setattr(scoring, "_kenlm", lambda: None)
    assert stage.resources()["models"]["en"].keys() == {"name", "sha256", "text", "tokenizer"}
    with pytest.raises(ConfigError, match="sentencepiece: en: the model has a tokenizer"):
        Perplexity(config=PerplexityConfig(models=(f"en={ids}",), sentencepiece=("en=x",))).resources()


def test_what_is_no_model_is_refused(rows, model, tmp_path):
    with pytest.raises(ModelError, match=r"expected a model of `perplexity train`, found the stage ingest"):
        ModelFiles.of(str(model / "parents/ingest"), "en")
    with pytest.raises(ModelError, match="nothing: expected a tokenizer"):
        datakit.perplexity_model(str(rows), tokenizer="nothing", output=tmp_path / "x")
    (tmp_path / "bad.json").write_text("hello")
    with pytest.raises(ModelError, match=r"bad\.json: expected a tokenizer"):
        datakit.perplexity_model(str(rows), tokenizer=str(tmp_path / "bad.json"), output=tmp_path / "x")
    for values, message in (
        ({"order": 6}, "order = 6: expected 2 to 5"),
        ({"prune": [1]}, "words are never dropped"),
        ({"prune": [0, 2, 1]}, "none lower than the one before"),
        ({"memory_mb": 0}, "memory_mb = 0"),
    ):
        with pytest.raises(ConfigError, match=message):
            build(NgramModelConfig, values, "perplexity_model")
