"""The language stage: fastText's answer as it is, our policy on top."""

import pickle
import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.json
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datakit.config import build, resolved
from datakit.errors import ConfigError
from datakit.filter import fasttext_model
from datakit.filter.language import Language, LanguageConfig, converted, segments
from tests.fasttext_models import train

SENTENCES = {
    "en": "The quick brown fox jumps over the lazy dog while the children are watching from the window.",
    "de": "Der Zug nach Hamburg fährt heute leider erst eine halbe Stunde später ab als geplant.",
    "fr": "Nous avons visité le musée hier après-midi, puis nous sommes rentrés à la maison.",
    "es": "Mi hermana vive en una casa pequeña cerca del mar con sus dos perros.",
    "ru": "Завтра утром мы поедем на дачу, если не будет дождя.",
    "zh": "今天天气很好，我们一起去公园散步吧。",
    "ja": "昨日の夜は雨が降っていたので、家で本を読みました。",
    "ko": "내일은 친구들과 함께 산에 올라갈 예정입니다.",
    "ar": "ذهبت إلى السوق صباح اليوم واشتريت بعض الفواكه الطازجة.",
    "hi": "कल हम सब मिलकर बाज़ार जाएँगे और नई किताबें खरीदेंगे।",
    "th": "วันนี้อากาศดีมาก เราไปเดินเล่นที่สวนสาธารณะกันเถอะ",
    "el": "Το καλοκαίρι πηγαίνουμε συχνά στη θάλασσα με τους φίλους μας.",
}


def documents(*texts: str) -> pa.RecordBatch:
    return pa.record_batch({"text": pa.array(texts, pa.string())})


@pytest.fixture(scope="module")
def stage() -> Language:
    made = Language()
    made.open()
    return made


@pytest.fixture(scope="module")
def reference():
    import fasttext

    return fasttext.load_model(str(fasttext_model.find("lid.176")))


def test_sentences_get_their_language(stage):
    decision = stage.decide(documents(*SENTENCES.values()))
    assert decision.columns["lang"].to_pylist() == list(SENTENCES)
    assert min(decision.columns["lang_score"].to_pylist()) > 0.6
    assert decision.reasons.null_count == len(SENTENCES)


def test_rows_without_letters_are_undetermined_whatever_the_model_says(stage):
    texts = ["", " \n\r\n ", "12345 67", "😀🎉", "--- *** ===", "\u0301", "①②"]
    decision = stage.decide(documents(*texts))
    assert decision.columns["lang"].to_pylist() == ["und"] * len(texts)
    assert decision.columns["lang_score"].to_pylist() == [0.0] * len(texts)
    assert decision.columns["lang_raw"].null_count == 0


def test_the_whole_row_counts_whatever_breaks_its_lines(stage):
    german = SENTENCES["de"].replace(" ", "{}")
    breaks = ["\n", "\r\n", "\r", "\x0b", "\x0c", "\n\n", " </s> "]
    decision = stage.decide(documents(*(german.format(*[b] * german.count("{}")) for b in breaks)))
    assert decision.columns["lang"].to_pylist() == ["de"] * len(breaks)
    assert len(set(decision.columns["lang_score"].to_pylist())) == 1


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=100) | st.sampled_from(list(SENTENCES.values())))
def test_every_row_with_a_letter_has_the_models_answer(reference, text):
    (label,), (score,) = reference.predict(text.replace("\n", " "))
    columns = Language().decide(documents(text)).columns
    raw, score = label.removeprefix("__label__"), np.float32(np.round(np.float64(min(np.float32(score), 1)), 3))
    assert columns["lang_raw"].to_pylist() == [raw]
    letters = any(unicodedata.category(c).startswith("L") for c in text)
    expected = (raw, score) if letters else ("und", 0)
    assert (columns["lang"][0].as_py(), columns["lang_score"][0].as_py()) == expected


def test_listed_languages_stay_and_the_others_say_why_they_go():
    stage = Language(config=LanguageConfig(languages=("de", "en"), min_score=0.65))
    stage.open()
    decision = stage.decide(documents(SENTENCES["de"], SENTENCES["fr"], "", "ok", SENTENCES["en"]))
    reasons, detail = decision.reasons.to_pylist(), decision.detail.to_pylist()
    assert reasons[:3] == [None, "language", "language"]
    assert reasons[4] is None
    assert detail[0] is None
    assert detail[1].startswith("fr 0.9")
    assert detail[2].startswith("und 0 not in ")


def test_a_listed_language_with_a_low_score_says_so():
    strict = Language(config=LanguageConfig(languages=("en",), min_score=1.0))
    strict.open()
    decision = strict.decide(documents("They went to the station in the morning."))
    assert decision.columns["lang"].to_pylist() == ["en"]
    assert decision.reasons.to_pylist() == ["language_score"]


def test_a_row_with_just_the_least_score_stays(stage):
    score = round(stage.decide(documents(SENTENCES["fr"])).columns["lang_score"][0].as_py(), 3)
    for least, reason in ((score, None), (score + 0.0005, "language_score")):
        listed = Language(config=LanguageConfig(languages=("fr",), min_score=least))
        assert listed.decide(documents(SENTENCES["fr"])).reasons.to_pylist() == [reason]


def test_und_can_be_listed_and_then_needs_no_score():
    stage = Language(config=LanguageConfig(languages=("und",)))
    assert stage.decide(documents("1234")).reasons.to_pylist() == [None]


def test_no_rows_are_no_trouble(stage):
    decision = stage.decide(documents())
    assert len(decision.reasons) == 0
    assert decision.columns["lang"].type == pa.string()
    assert decision.columns["lang_score"].type == pa.float32()


def test_an_unknown_language_is_refused_before_any_work():
    with pytest.raises(ConfigError, match=r"no label 'deu'; did you mean .*de"):
        Language(config=LanguageConfig(languages=("deu",))).open()


def test_a_senseless_score_is_refused():
    with pytest.raises(ConfigError, match=r"min_score is a share and lies in .*, found 65"):
        build(LanguageConfig, {"min_score": 65}, "language")


def test_the_stage_travels_to_other_processes(stage):
    copy = pickle.loads(pickle.dumps(stage))
    assert copy == stage
    assert copy.decide(documents(SENTENCES["fr"])).columns["lang"].to_pylist() == ["fr"]
    assert resolved(copy.config)["model"] == "lid.176"


def test_the_model_enters_the_key_by_its_checksum(stage):
    assert stage.resources() == {"model": {"name": "lid.176", "sha256": fasttext_model.SHA256}}


def test_a_model_of_the_users_own_decides(tmp_path):
    lines = [f"__label__{x}_Latn {w} {w}\n" for x, w in (("aaa", "foo"), ("bbb", "bar")) for _ in range(50)]
    (tmp_path / "train.txt").write_text("".join(lines))
    train(tmp_path, {"own": ("train.txt", {"epoch": 20, "minn": 2, "maxn": 3, "bucket": 1000})})
    stage = Language(config=LanguageConfig(model=str(tmp_path / "own.bin"), languages=("bbb_Latn",), min_score=0.5))
    stage.open()
    decision = stage.decide(documents("foo foo", "bar bar"))
    assert decision.columns["lang_raw"].to_pylist() == ["aaa_Latn", "bbb_Latn"]
    assert decision.reasons.to_pylist() == ["language", None]
    assert stage.resources()["model"]["name"] == "own.bin"


def test_labels_of_both_models_become_one_code():
    pairs = {
        "en": ("eng", "en"), "eng_Latn": ("eng", "en"), "zh": ("zho", "zh"), "cmn_Hani": ("cmn", "cmn-Hani"),
        "als": ("gsw", "gsw"), "als_Latn": ("als", "als-Latn"), "sh": ("hbs", "sr-Latn"), "tl": ("tgl", "fil"),
        "srp_Cyrl": ("srp", "sr-Cyrl"), "zho_Hant": ("zho", "zh-Hant"), "und": ("und", "und"), "nah": ("nah", "nah"),
        "other": ("other", "other"), "__x": ("__x", "__x"), "zxx_Zzzz": ("zxx", "zxx"),
    }  # fmt: skip
    assert {label: (converted(label, "iso639_3"), converted(label, "bcp47")) for label in pairs} == pairs
    assert all(converted(label, "model") == label for label in pairs)


def test_every_label_of_the_model_has_its_own_code(stage):
    labels = stage._model().labels
    for code in ("iso639_3", "bcp47"):
        found = [converted(label, code) for label in labels]
        shared = {name for name in found if found.count(name) > 1}
        assert shared <= {"sr-Latn"}, shared
    assert all(len(converted(label, "iso639_3")) == 3 for label in labels)


def test_languages_are_listed_by_either_name_and_the_row_has_the_mapped_one():
    batch = documents(SENTENCES["de"], SENTENCES["fr"], SENTENCES["en"], "12345")
    stage = Language(config=LanguageConfig(lang_map="iso639_3", languages=("deu", "en")))
    stage.open()
    decision = stage.decide(batch)
    assert decision.columns["lang"].to_pylist() == ["deu", "fra", "eng", "und"]
    assert decision.columns["lang_raw"].to_pylist()[:3] == ["de", "fr", "en"]
    assert decision.reasons.to_pylist() == [None, "language", None, "language"]
    assert decision.detail[1].as_py().startswith("fra 0.")


def test_a_mixed_row_has_the_share_of_each_language():
    stage = Language(config=LanguageConfig(segment_chars=80))
    mixed = "\n".join([SENTENCES["en"]] * 3 + [SENTENCES["ru"]] * 3)
    shares = stage.decide(documents(mixed, SENTENCES["de"], "", "7")).columns["lang_shares"].to_pylist()
    english, russian = (sum(map(str.isalpha, SENTENCES[code])) * 3 for code in ("en", "ru"))
    assert [part["lang"] for part in shares[0]] == ["en", "ru"]
    assert shares[0][0]["share"] == pytest.approx(english / (english + russian), abs=0.05)
    assert shares[1:] == [[{"lang": "de", "share": 1.0}], [], []]
    assert "lang_shares" not in Language().decide(documents("a")).columns


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("x" * 12 + ". y\n" + "z" * 30, "x" * 12 + ". y\n"),
        ("x" * 12 + ". y " + "z" * 30, "x" * 12 + "."),
        ("x" * 12 + " y " + "z" * 30, "x" * 12 + " y "),
        ("x" * 42, "x" * 20),
    ],
)
def test_a_segment_ends_with_a_line_a_sentence_a_word_or_its_size(text, first):
    assert segments(text, 20)[0] == first


@given(st.text("ab. \n。", max_size=400), st.integers(20, 90))
def test_segments_are_the_text_in_parts_of_about_a_size(text, chars):
    parts = segments(text, chars)
    assert "".join(parts) == text
    assert all(chars // 2 <= len(part) <= chars * 3 // 2 for part in parts[:-1]) and len(parts[-1]) <= chars * 3 // 2
