"""The perplexity stage and the training of its models: texts, percentiles, settings, the models that it reads."""

import math
import re
import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import datakit
from datakit.config import build
from datakit.errors import ConfigError, ModelError
from datakit.filter import perplexity as module
from datakit.filter.ngram_model import read_arpa
from datakit.filter.perplexity import Perplexity, PerplexityConfig, perplexities, plain_text
from datakit.manifest import load
from datakit.text.ids import open_tokenizer
from tests.dedup.conftest import documents
from tests.dedup.conftest import write as write_batch
from tests.files import write_rows

ARPA = (
    "\\data\\\nngram 1=5\nngram 2=3\n\n\\1-grams:\n-2.0\t<unk>\t0\n0\t<s>\t-0.3\n-1.0\t</s>\n-0.5\tthe\t-0.2\n"
    "-1.5\tcat\t-0.4\n\n\\2-grams:\n-0.25\t<s> the\n-0.125\tthe cat\n-0.75\tcat </s>\n\n\\end\\\n"
)
THE_CAT, THE_DOG = -0.25 - 0.125 - 0.75, -0.25 + (-0.2 - 2.0) - 1.0
TEXTS = ["The cat sat on the mat.\nThe dog sat, too.", "A cat is no dog in 1984.", "\n\n", "Élan, said the dog."] * 5


@pytest.fixture
def arpa(tmp_path):
    path = tmp_path / "tiny.arpa"
    path.write_text(ARPA)
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a model of `TEXTS`."""
    folder = tmp_path_factory.mktemp("trained")
    rows = write_rows(folder / "rows.jsonl", ({"text": text} for text in TEXTS))
    datakit.perplexity_model(str(rows), order=3, output=folder / "model")
    return folder / "model"


def rows(texts, langs=None) -> pa.RecordBatch:
    return documents(texts, lang=pa.array(langs or ["en"] * len(texts)))


def run(batch, folder, **config):
    """The decisions of the stage under the small model."""
    (folder / "a").write_text(ARPA)
    named = dict.fromkeys(config.pop("models", ["en"]), str(folder / "a"))
    stage = Perplexity(config=build(PerplexityConfig, {"models": named} | config, "perplexity"))
    parts = batch.slice(0, 5), batch.slice(5)
    files = [write_batch(stage.sketch(part), folder / f"{i}.arrow") for i, part in enumerate(parts)]
    facts = stage.reduce(files, folder / "out.arrow", workers=1)["perplexity"]
    return stage.bind(folder / "out.arrow").decide(batch), facts


def test_the_length_counts_words_and_line_ends_over_all_lines(arpa):
    found = perplexities(["the cat\n\nthe dog", " \n\n", "THE CAT"], read_arpa(arpa), plain_text)
    assert found[0] == pytest.approx(10 ** (-(THE_CAT + THE_DOG) / 6), abs=1e-3)
    assert math.isnan(found[1]) and found[0] == round(found[0], 3)
    assert found[2] < perplexities(["THE CAT"], read_arpa(arpa), str)[0]


def by_hand(line):
    """CCNet's normal form of a line, step by step."""
    parts = unicodedata.normalize("NFD", line.strip().lower())
    bare = re.sub(r"\d", "0", "".join(c for c in parts if unicodedata.category(c) != "Mn"))
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", "", bare.translate(str.maketrans(module._PUNCTUATION)))


@given(st.text(max_size=60) | st.text(st.characters(codec="ascii"), max_size=60))
def test_a_text_is_made_plain_line_by_line(text):
    expected = [by_hand(line).split() for line in text.splitlines()]
    assert [line.split() for line in plain_text(text).split("\n")] == (expected or [[]])
    assert plain_text("  Élan: 2024年，“Größe”… \x07ok ").strip() == 'elan: 0000年,"große"... ok'


def test_rows_fall_into_thirds_of_their_language(tmp_path):
    texts = ["the cat"] * 3 + ["the the"] * 3 + ["dog dog dog"] * 4 + ["le chat", "", "die Katze"]
    langs = ["en"] * 10 + ["fr", "en", None]
    decision, facts = run(rows(texts, langs), tmp_path)
    expected = ["head"] * 3 + ["middle"] * 3 + ["tail"] * 4 + [None] * 3
    assert decision.columns["perplexity_bucket"].to_pylist() == expected
    assert decision.reasons.to_pylist() == [None] * 6 + ["perplexity.tail"] * 4 + [None] * 3
    limit = facts["up_to"]["en"]["middle"]
    assert decision.detail[6].as_py() == f"perplexity {decision.columns['perplexity'][6].as_py():g} > {limit:g}"
    assert facts["not_measured"] == {"en": 1, "fr": 1, "unknown": 1}
    assert list(facts["up_to"]["en"]) == ["head", "middle"]
    assert decision.notes == {"perplexity_not_measured": 3}


def test_a_model_without_a_language_serves_the_others_each_by_its_own_percentiles(tmp_path):
    texts = ["the cat", "dog", "the dog"] * 4
    decision, facts = run(rows(texts, ["en"] * 6 + ["de"] * 6), tmp_path, models=["en", "all"], keep=["tail"])
    assert sorted(facts["up_to"]) == ["de", "en"]
    buckets = decision.columns["perplexity_bucket"].to_pylist()
    assert buckets[:6] == buckets[6:] == ["head", "tail", "middle"] * 2
    assert decision.reasons.to_pylist()[:3] == ["perplexity.head", None, "perplexity.middle"]
    ranges = [detail.split(" ", 2)[2] for detail in decision.detail.drop_null().to_pylist()[:2]]
    cut = facts["up_to"]["en"]
    assert ranges == [f"<= {cut['head']:g}", f"in {cut['head']:g} to {cut['middle']:g}"]


def test_values_that_make_no_sense_are_refused():
    for config, values, message in (
        (PerplexityConfig, {"keep": ["best"]}, "expected one of head, middle, tail, found 'best'"),
        (PerplexityConfig, {"keep": []}, "no bucket would stay"),
        (PerplexityConfig, {"head_percentile": 70}, "head_percentile = 70, middle_percentile = 60"),
        (PerplexityConfig, {"models": "a.arpa"}, "expected LANGUAGE=MODEL or all=MODEL"),
        (module.NgramModelConfig, {"order": 6}, "order = 6: expected 2 to 5"),
        (module.NgramModelConfig, {"prune": [1]}, "words are never dropped"),
        (module.NgramModelConfig, {"prune": [0, 2, 1]}, "none lower than the one before"),
        (module.NgramModelConfig, {"memory_mb": 0}, "memory_mb = 0"),
    ):
        with pytest.raises(ConfigError, match=message):
            build(config, values, "a section")
    with pytest.raises(ConfigError, match="needs n-gram models"):
        Perplexity().resources()


def test_a_file_that_is_no_model_is_refused_before_any_work(tmp_path):
    (tmp_path / "bad.arpa").write_text("hello")
    stage = Perplexity(config=PerplexityConfig(models={"en": str(tmp_path / "bad.arpa")}))
    assert stage.resources()["models"]["en"]["name"] == "bad.arpa"
    with pytest.raises(ModelError, match=r"bad\.arpa: expected an n-gram model in the ARPA format"):
        stage.open()
    with pytest.raises(ModelError, match="the model for en is not there"):
        Perplexity(config=PerplexityConfig(models={"en": "nothing.arpa"})).resources()
    (tmp_path / "bad.arpa").write_bytes(b"mmap lm http://kheafield.com/code format version 5\n\0")
    with pytest.raises(ModelError, match=r"bad\.arpa: .* found: KenLM's binary format: name the ARPA file"):
        stage.open()


# Training.


def test_a_model_is_trained_on_the_lines_as_they_are_scored(trained):
    text = (trained / module.MODEL).read_text()
    assert "in 0000. </s>\n" in text and "\t<s> elan,\t" in text
    facts = load(trained / "manifest.json").facts["ngram_model"]
    assert facts["sentences"] == 20 and f"ngram 3={facts['ngrams'][2]}\n" in text
    stage = Perplexity(config=PerplexityConfig(models={"all": str(trained)}))
    stage.open()
    known, new = perplexities(["The cat sat on the mat.", "mat dog cat sat in the on"], *stage._model("all"))
    assert known < new / 3 and math.isfinite(new)
    found = datakit.perplexity(str(trained.parent / "rows.jsonl"), models={"all": str(trained)}, keep=["tail"])
    assert found.manifest.facts["perplexity"]["up_to"].keys() == {"unknown"} and found.kept.num_rows < 20


def test_the_perplexity_stage_takes_the_folder_and_reads_as_the_model_was_trained(trained, small_tokenizer, tmp_path):
    ids, source = tmp_path / "ids", str(trained.parent / "rows.jsonl")
    datakit.perplexity_model(source, order=2, tokenizer=str(small_tokenizer), output=ids)
    stage = Perplexity(config=PerplexityConfig(models={"en": str(ids), "de": f"{trained}/manifest.json"}))
    model, read = stage._model("en")
    tokenizer = open_tokenizer(str(small_tokenizer))
    lines = [tokenizer.encode(line, add_special_tokens=False).ids for line in ("the cat", "sat")]
    assert read("The cat\n\nsat") == "\n".join(" ".join(map(str, ids)) for ids in lines)
    assert model.vocabulary.keys() >= set(read(TEXTS[0]).split())
    assert stage._model("de")[1]("Élan 5") == "elan 0"
    assert stage.resources()["models"]["en"].keys() == {"name", "sha256", "tokenizer"}


def test_what_is_no_model_is_refused(trained, tmp_path):
    with pytest.raises(ModelError, match=r"expected a model of `perplexity train`, found the stage ingest"):
        module.ModelFiles.of(str(trained / "parents/ingest"), "en")
    source = str(trained.parent / "rows.jsonl")
    with pytest.raises(ModelError, match="nothing: expected a tokenizer"):
        datakit.perplexity_model(source, tokenizer="nothing", output=tmp_path / "x")
    (tmp_path / "bad.json").write_text("hello")
    with pytest.raises(ModelError, match=r"bad\.json: cannot be read as a tokenizer"):
        datakit.perplexity_model(source, tokenizer=str(tmp_path / "bad.json"), output=tmp_path / "x")
