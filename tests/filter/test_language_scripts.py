"""Labels that no letter of a row bears out."""

import unicodedata

import numpy as np
import orjson
import pyarrow as pa
import pytest

from datakit.filter import fasttext_model, models
from datakit.filter.fasttext_model import Prediction
from datakit.filter.language import Language
from datakit.filter.scripts import _LANGUAGES, corrected, of_label

AMHARIC = "ሁሉም የሰው ልጆች ነጻ ሆነው ይወለዳሉ።"
CHEROKEE = "ᏂᎦᏓ ᎠᏂᏴᏫ ᏂᎨᎫᏓᎸᎾ"


@pytest.fixture(scope="module")
def lid():
    return fasttext_model.load(models.find("lid.176"))


def said(*labels: str | None) -> Prediction:
    return Prediction(pa.array(labels, pa.string()), np.full(len(labels), 0.9, np.float32))


@pytest.mark.parametrize(
    ("label", "scripts"),
    [
        ("en", {"Latin"}),
        ("ru", {"Cyrillic"}),
        ("sr", {"Cyrillic", "Latin"}),
        ("ja", {"Han", "Hiragana", "Katakana"}),
        ("eng_Latn", {"Latin"}),
        ("cmn_Hani", {"Han"}),
        ("jpn_Jpan", {"Han", "Hiragana", "Katakana"}),
        ("zxx_Zzzz", set()),
        ("positive", set()),
    ],
)
def test_a_label_tells_its_scripts(label, scripts):
    assert of_label(label) == scripts


def test_every_script_is_one_that_unicode_and_the_regular_expressions_know():
    names = {c: unicodedata.name(c, "") for c in map(chr, range(0x20000))}
    for script in _LANGUAGES:
        shown = {"Han": "CJK"}.get(script, script.upper())
        assert any(name.startswith(shown) for name in names.values())
        assert pa.compute.count_substring_regex(pa.array(["a"]), rf"\p{{{script}}}")[0].as_py() in (0, 1)


def test_a_label_in_another_script_gives_way_to_the_best_one_in_the_rows_own(lid):
    texts = pa.array([AMHARIC, "Where is the station?", "Где находится вокзал?", "어디에 있습니까?"])
    found = corrected(lid, texts, said("ru", "zh", "fr", "ja"), 0)
    assert found.labels.to_pylist() == ["am", "en", "ru", "ko"]
    assert found.scores.tolist() == [
        lid.probability(texts, label)[i] for i, label in enumerate(found.labels.to_pylist())
    ]


def test_any_other_label_stays_with_its_score(lid):
    texts = pa.array([AMHARIC, CHEROKEE, "123", "Добар дан", "Dobar dan", "東京", "русский text", "x"])
    before = said("am", "ru", "ru", "sr", "sr", "ja", "en", None)
    after = corrected(lid, texts, before, 0)
    assert after.labels.to_pylist() == before.labels.to_pylist()
    assert after.scores.tolist() == before.scores.tolist()


def test_the_best_label_among_some_is_that_of_the_highest_probability(lid):
    texts = pa.array(["Wo ist der Bahnhof?", "¿Dónde está la estación?", "", "Где вокзал?"])
    allowed = np.array([label in ("de", "es", "uk", "nl") for label in lid.labels])
    found = lid.predict(texts, 0, allowed)
    scores = {label: lid.probability(texts, label) for label in ("de", "es", "uk", "nl")}
    for i, label in enumerate(found.labels.to_pylist()):
        assert scores[label][i] == max(s[i] for s in scores.values()) == found.scores[i]


def test_no_language_is_told_worse_than_by_the_model_alone(shared):
    with pa.input_stream(str(shared / "corpora/language/udhr_paragraphs.jsonl.zst")) as stream:
        rows = [
            r for r in map(orjson.loads, stream.read().splitlines()) if r["iso639_3"] in ("amh", "kor", "khm", "ell")
        ]
    gold = [{"amh": "am", "kor": "ko", "khm": "km", "ell": "el"}[r["iso639_3"]] for r in rows]
    columns = Language().decide(pa.record_batch({"text": [r["text"] for r in rows]})).columns
    ours, raw = columns["lang"].to_pylist(), columns["lang_raw"].to_pylist()
    assert all(o == g for o, r, g in zip(ours, raw, gold, strict=True) if r == g)
    assert sum(map(str.__eq__, ours, gold)) > sum(map(str.__eq__, raw, gold))
