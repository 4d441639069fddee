"""Rule sets with what the user brings: blocklists of URLs, word lists, limits of length."""

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datakit.config import resolved
from datakit.errors import ConfigError, InputError
from datakit.filter.rule_set import count_signals
from datakit.filter.stage import RULE_SETS, Filter, rule_set_class
from datakit.manifest import Count, Ledger
from datakit.text.words import split_words
from tests.filter.rows import documents, filter_of


def stage(name: str, **values: Any) -> Filter:
    return filter_of(name, **{name: values})


def reasons(made: Filter, **columns: Any) -> list[str | None]:
    rows = len(next(iter(columns.values())))
    given = {"id": [str(i) for i in range(rows)], "text": ["some text"] * rows, "source": ["s"] * rows} | columns
    return made.decide(pa.record_batch(given)).reasons.to_pylist()


# urls


@pytest.fixture
def lists(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "ut1").mkdir()
    domains = "bad.example\nmünchen-bad.de\nwww.evil.org\n192.0.2.7\nHTTP://Loud.org/\n\n# good.org\n"
    (tmp_path / "ut1/domains").write_text(domains, encoding="utf-8")
    (tmp_path / "ut1/urls").write_text("good.org/~bad\nshop.org/a?id=3\n")
    (tmp_path / "ut1/expressions").write_text("(not a list)")
    (tmp_path / "ads.gz").write_bytes(gzip.compress(b"ads.net\n0.0.0.0 a.net\n||b.io^\n*.c.com\nd.com:81\nu@e.com\n"))
    return {"adult": str(tmp_path / "ut1"), "ads": str(tmp_path / "ads.gz")}


URLS = {
    "http://bad.example/": "adult", "https://a.b.BAD.example:8080/x": "adult", "u:p@bad.example": "adult",
    "http://notbad.example": None, "http://bad.example.org": None, "http://evil.org/a": "adult",
    "http://xn--mnchen-bad-eeb.de": "adult", "https://www.münchen-bad.de/z": "adult", "http://192.0.2.7:80/": "adult",
    "http://2.192.0.2.7.example/": None, "http://good.org/": None, "http://good.org/~Bad/x": "adult",
    "http://good.org/~badger": None, "http://m.shop.org/a?id=3": "adult", "http://shop.org/a?id=4": None,
    "ads.net": "ads", "sub.ads.net/": "ads", "HTTP://LOUD.org/?q": "adult", "http://x/?u=bad.example": None, "": None,
    "http://": None, "about:blank": None,
}  # fmt: skip


def test_domains_cover_subdomains_paths_the_pages_below_and_rows_without_url_are_counted(lists):
    urls = [url.replace("xn--mnchen-bad-eeb", "münchen-bad".encode("idna").decode()) for url in URLS]
    made = stage("urls", lists=lists)
    expected = [name and f"urls.{name}" for name in URLS.values()]
    assert reasons(made, url=pa.array([*urls, None])) == [*expected, None]
    in_extra = ['{"meta": {"url": "http://a.bad.example"}}', '{"meta": 1}', None]
    assert reasons(stage("urls", lists=lists, field="meta.url"), extra=in_extra) == ["urls.adult", None, None]
    found = made.decide(pa.record_batch({"id": ["1", "2"], "text": ["", ""], "url": ["x.bad.example/y", None]}))
    assert found.detail[0].as_py() == "on the list adult: bad.example" and found.notes["urls_rows_without_url"] == 1


def test_lists_count_by_content_and_lines_that_are_no_entry_are_an_alarm(lists, tmp_path):
    made = stage("urls", lists=lists)
    (alarm,) = made.extras(Ledger(Count())).facts["alarms"]
    assert alarm == "5 lines of the list ads are no entry, and match nothing ('0.0.0.0 a.net')"
    copy = tmp_path / "other" / "ads.gz"
    copy.parent.mkdir()
    copy.write_bytes(Path(lists["ads"]).read_bytes())
    moved = stage("urls", lists=lists | {"ads": str(copy)})
    assert (moved.resources(), resolved(moved.config)) == (made.resources(), resolved(made.config))
    copy.write_bytes(gzip.compress(b"other.net\n"))
    assert moved.resources() != made.resources()
    assert reasons(moved, url=["ads.net", "www.other.net"]) == [None, "urls.ads"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("urls", None, "list: is not there"), ("urls", "# nothing\n\n", "holds no entry; expected a domain or URL"),
        ("words", "caf\xe9", "holds no entry; expected a word or phrase on each line, in UTF-8"),
    ],
)  # fmt: skip
def test_lists_that_are_missing_or_hold_no_entry_are_named(name, content, message, tmp_path):
    with pytest.raises(ConfigError, match="no list"):
        stage(name).open()
    if content:
        (tmp_path / "list").write_text(content, encoding="latin-1")
    with pytest.raises(InputError, match=message):
        stage(name, lists={"en": str(tmp_path / "list")}).open()


# words


@pytest.fixture
def bad_words(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "en").write_text("ass\nhot dog\n# comment\na$$\n", encoding="utf-8")
    (tmp_path / "zh").write_text("傻瓜\n", encoding="utf-8")
    return {"en": str(tmp_path / "en"), "zh": str(tmp_path / "zh")}


# fmt: off
WORDS = [
    ("a classic Ass.", "en", "en"), ("class, assess", "en", None), ("Hot-\nDog", "eng_Latn", "en"),
    ("a cat", "en", None),
    ("你是傻瓜吗", "zh", "zh"), ("你是傻瓜吗", "cmn_Hans", "zh"), ("你是傻瓜吗", "en", None),
    ("你是傻瓜吗", None, "zh"),
    ("傻的瓜", "zh", None), ("ass", "de", None), ("", "en", None), (None, None, None),
]
# fmt: on


def test_listed_words_match_whole_words_of_the_rows_language(bad_words):
    texts, languages, expected = zip(*WORDS, strict=True)
    found = reasons(stage("words", lists=bad_words), text=pa.array(texts), lang=pa.array(languages, pa.string()))
    assert found == [name and f"words.{name}" for name in expected]
    made = stage("words", lists={"all": bad_words["en"]}, max_entries=1)
    found_all = made.decide(documents("a hot dog and an ass", "ass", lang=["de", "xx"]))
    assert found_all.reasons.to_pylist() == ["words.all", None]
    assert found_all.detail[0].as_py() == "2 of the list all, the first is 'hot dog'"
    with pytest.raises(ConfigError, match="two lists are of one language"):
        stage("words", lists={"de": "x", "deu_Latn": "y"})
    (alarm,) = made.extras(Ledger(Count())).facts["alarms"]
    assert "1 lines of the list all are no entry, and match nothing ('a$$')" in alarm


# fmt: off
SPELLINGS = [
    ("straße", "de", "STRASSE", True), ("STRASSE", "de", "Die Straße.", True), ("strasse", "de", "STRAẞE", True),
    ("straße", "de", "Strase", False), ("café", "fr", "un cafe\u0301 noir", True), ("cafe\u0301", "fr", "CAFÉ", True),
    ("café", "fr", "cafe", False), ("ΣΊΣΥΦΟΣ", "el", "σίσυφος", True), ("गधा", "hi", "वह गधा है", True),
    ("ขี้", "th", "มันขี้เกียจ", True), ("गध", "hi", "वह गधा है", False), ("sik", "tr", "SIK sık", True),
]
# fmt: on


@pytest.mark.parametrize(("entry", "language", "text", "listed"), SPELLINGS)
def test_listed_words_match_in_every_case_and_unicode_form(tmp_path, entry, language, text, listed):
    (tmp_path / "list").write_text(f"unseen\n{entry}\n", encoding="utf-8")
    texts, languages = [text, text, "nothing else", None], [language, None, language, None]
    found = stage("words", lists={language: str(tmp_path / "list")}).decide(documents(*texts, lang=languages))
    said = f"1 of the list {language}, the first is {entry!r}" if listed else None
    assert found.detail.to_pylist() == [said, said, None, None]


@settings(max_examples=40)
@given(st.lists(st.sampled_from(["a", "b", "ab", "傻", "瓜", " ", "-", "\n", "."]), max_size=14).map("".join))
def test_listed_words_equal_a_search_in_plain_python(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "list.txt"
    entries = ["a b", "ab", "傻瓜", "瓜 a b"]
    if not path.exists():
        path.write_text("\n".join(entries), encoding="utf-8")
    words, expected = split_words(text), 0
    for entry in map(split_words, entries):
        expected += sum(words[i : i + len(entry)] == entry for i in range(len(words)))
    counted = stage("words", lists={"all": str(path)}).decide(documents(text))
    assert counted.side_tables["signals"].column("words_all")[0].as_py() == expected


# lengths


def test_rows_outside_the_limits_are_dropped(small_tokenizer):
    texts = ["", "one", "one two three", "x" * 50, "你好吗"]
    assert reasons(stage("lengths", min_chars=1, max_chars=40), text=texts) == [
        "lengths.min_chars", None, None, "lengths.max_chars", None]  # fmt: skip
    few = "lengths.min_words"
    assert reasons(stage("lengths", min_words=2), text=texts) == [few, few, None, few, None]
    counted = reasons(stage("lengths", max_tokens=20, tokenizer=str(small_tokenizer)), text=texts)
    assert counted == [None, None, None, "lengths.max_tokens", None]
    with pytest.raises(ConfigError, match="need a tokenizer"):
        stage("lengths", max_tokens=20)


@pytest.mark.parametrize("saved", [True, False])
def test_shared_signals_are_counted_only_for_rule_sets_that_need_them(bad_words, lists, saved, monkeypatch):
    values = {"words": {"lists": bad_words}, "urls": {"lists": lists}, "lengths": {"max_chars": 3}}
    counted, batch = [], documents("hot dog", url=["a.org"], source=["s"])
    monkeypatch.setattr("datakit.filter.rule_set.count_signals", lambda t: counted.append(t) or count_signals(t))
    for name in RULE_SETS.keys() - {"contamination"}:
        found = filter_of(name, **{name: values.get(name, {})}, signals=saved).decide(batch)
        needed = rule_set_class(name).shared
        assert bool(counted) == needed, name
        if saved:
            assert ("chars" in found.side_tables["signals"].schema.names) == needed, name
        counted.clear()
