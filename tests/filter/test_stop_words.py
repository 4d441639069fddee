"""Stop words of languages other than English."""

import numpy as np
import pyarrow as pa
import pytest

from datakit.config import build
from datakit.errors import ConfigError
from datakit.filter import gopher_quality, stop_words
from datakit.filter.stage import Filter, FilterConfig
from datakit.text.words import split_words

GERMAN = "Die Katze sitzt auf dem Dach und der Hund schläft in seinem Haus, weil es heute regnet. " * 4
LISTING = "Katze Dach Hund Haus Regen Baum Wolke Fenster Garten Straße Stadt Fluss " * 5
needs_lists = pytest.mark.skipif(not stop_words.languages(), reason="the package stopwordsiso is not installed")


def decide(texts, langs, **options):
    config = build(FilterConfig, {"rules": ["gopher_quality"], "gopher_quality": options}, "filter")
    return Filter(config=config).decide(pa.record_batch({"text": texts, "lang": pa.array(langs, pa.string())}))


@needs_lists
def test_the_count_is_that_of_different_words_of_the_rows_own_list():
    import stopwordsiso

    texts = [GERMAN, GERMAN, LISTING, "l'eau et LE vin, d'abord", "", "the of and", "的 是 不"]
    langs = ["de", "deu_Latn", "de", "fr", "fr", "en", "zh"]
    expected = [len(set(split_words(t)) & set(stopwordsiso.stopwords(c))) for t, c in
                zip(texts[:5], ["de", "de", "de", "fr", "fr"], strict=True)]  # fmt: skip
    assert stop_words.count(pa.array(texts), pa.array(langs)).tolist() == [*expected, 0, 0]
    assert expected[0] > 8 and expected[3] >= 4 and expected[4] == 0


@needs_lists
def test_a_row_of_unknown_language_counts_as_the_language_it_has_most_of():
    most = max(stop_words.count(pa.array([GERMAN] * len(stop_words.languages())), pa.array(stop_words.languages())))
    assert stop_words.count(pa.array([GERMAN]), pa.nulls(1)).tolist() == [most]


@needs_lists
def test_rows_without_their_languages_stop_words_are_dropped_and_others_stay():
    indonesian = "Kami akan pergi ke pasar untuk membeli ikan dan sayur karena ibu sedang memasak di rumah. " * 5
    texts = [GERMAN, LISTING, LISTING, indonesian, indonesian, "zzyx brrk " * 30]
    decision = decide(texts, ["de", "de", "is", "id", None, None])
    assert decision.reasons.to_pylist() == [None, "gopher_quality.min_stop_words", None, None, None,
                                            "gopher_quality.min_stop_words"]  # fmt: skip
    assert decision.notes == {"min_stop_words_is_off_for_is": 1}


@needs_lists
def test_only_the_languages_asked_for_must_have_stop_words():
    texts, langs = [LISTING] * 3, ["de", "nl", "en"]
    assert decide(texts, langs, stop_words=["nl"]).reasons.is_valid().to_pylist() == [False, True, False]
    assert decide(texts, langs, stop_words=["nl"]).notes == {f"min_stop_words_is_off_for_{c}": 1 for c in ("de", "en")}
    assert decide(texts, langs, stop_words=[]).reasons.null_count == 3
    assert decide(texts, langs, min_stop_words=0).notes == {}
    again = Filter(config=build(FilterConfig, {"rules": ["gopher_quality"]}, "filter"))
    batch = pa.record_batch({"text": texts, "lang": langs})
    saved = again.decide(batch).side_tables["signals"]
    assert again.decide_again(batch.select(["text", "lang"]), saved).reasons.null_count == 0


@needs_lists
def test_every_list_has_common_words_of_its_language():
    lists, languages = stop_words.lists(), stop_words.languages()
    sizes = [int((lists.masks >> np.uint64(i) & np.uint64(1)).sum()) for i in range(len(languages))]
    assert min(sizes) >= 20 and len(languages) <= 64
    assert not {"en", "zh", "ja", "th"} & set(languages)
    for label, code in (("deu_Latn", "de"), ("pt-BR", "pt"), ("nn", "no"), ("zh", None), ("und", None), (None, None)):
        assert stop_words.language_of(label) == code


def test_a_language_without_a_list_is_refused_before_any_work():
    with pytest.raises(ConfigError, match="there is no list of stop words for 'tlh'"):
        build(gopher_quality.GopherQuality, {"stop_words": ["en", "tlh"]}, "filter")


def test_without_the_lists_the_rule_is_off_for_other_languages_and_says_so(monkeypatch):
    monkeypatch.setattr(stop_words, "languages", lambda: ())
    decision = decide([LISTING, LISTING], ["de", "en"])
    assert decision.reasons.to_pylist() == [None, "gopher_quality.min_stop_words"]
    assert decision.notes == {"min_stop_words_is_off_for_de": 1}
