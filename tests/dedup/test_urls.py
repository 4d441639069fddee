"""One row for each page: which URLs are the same, which rows stay."""

import json
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datakit.dedup.urls import DedupUrls, UrlsConfig
from datakit.errors import ConfigError
from datakit.text.page_urls import page_form
from tests.dedup.conftest import Outcome, documents, run_stage


def form(url: str | None) -> str | None:
    return page_form(pa.array([url], pa.string()))[0].as_py()


def urls(found: list[Any], cut: int = 1000, workers: int = 2, **config: Any) -> Outcome:
    field = config.get("field", "url")
    extra = [None if url is None else json.dumps({field: url}) for url in found]
    rows = documents(["text"] * len(found), extra=pa.array(extra, pa.string()), source=pa.array(["s"] * len(found)))
    return run_stage(DedupUrls(UrlsConfig(**config)), rows, cut=cut, workers=workers)


@pytest.mark.parametrize(
    "same",
    [
        ["http://Example.com", "https://example.com/", "HTTPS://EXAMPLE.com:443#top", "example.com", "//example.com/ "],
        ["https://a.b/x/./y/../z", "https://a.b/x/z/", "http://a.b:80/x/z"],
        ["https://a.b/?b=2&a=1", "https://a.b?a=1&b=2&utm_source=mail&fbclid=9", "https://a.b/?a=1&&b=2&"],
        ["https://a.b/%7Eme/%c3%bc%2f", "https://a.b/~me/ü%2F"],
        ["https://a.b/p;jsessionid=4F2A", "https://a.b/p?PHPSESSID=1&gclid=2"],
        ["https://bücher.example/x", "https://xn--bcher-kva.example/x"],
    ],
)  # fmt: skip
def test_urls_of_one_page_are_the_same(same):
    assert len({form(url) for url in same}) == 1


def test_urls_of_other_pages_are_not():
    others = [
        "https://a.b/x", "https://a.b/X", "https://www.a.b/x", "https://a.b/x/index.html", "https://a.b/x?page=2",
        "https://a.b/x?page=3", "https://a.b/x?tag=1&tag=2", "https://a.b/x?tag=2&tag=1", "ftp://a.b/x", "https://a.b:8080/x",
        "https://a.b/x#!/one", "https://a.b/x#!/two", "https://a.b/x%2Fy", "https://a.b/x/y", "https://a.b//x",
    ]  # fmt: skip
    assert len({form(url) for url in others}) == len(others)


@given(st.text(alphabet="aB/.%2F?&=;~ü \n\x00#!", max_size=30))
def test_the_form_of_a_form_is_itself(rest):
    once = form(f"https://a.b/{rest}")
    assert form(f"https://{once}") == once


def test_the_first_row_of_a_page_stays_and_is_named():
    outcome = urls(["https://a.b/x", None, "http://a.b/x/", "", "https://a.b/y", "https://a.b/x#2", 7], cut=2)
    assert outcome.rows == dict.fromkeys("25", ("duplicate_url", "0"))
    assert outcome.details == {"2": "has the URL of 0: http://a.b/x/", "5": "has the URL of 0: https://a.b/x#2"}
    assert outcome.notes["no_url"] == 3 and outcome.facts["rows_with_url"] == 4


def test_exact_urls_differ_in_every_byte():
    assert set(urls(["https://a.b/x", "http://a.b/x", "https://a.b/x"], same="exact").rows) == {"2"}


@pytest.mark.parametrize(("field", "extra"), [("meta.url", {"meta": {"url": "a.b"}}), ("link", {"link": "a.b"})])
def test_a_url_is_found_where_the_field_says(field, extra):
    rows = documents(["x", "y"], extra=pa.array([json.dumps(extra)] * 2))
    assert set(run_stage(DedupUrls(UrlsConfig(field=field)), rows).rows) == {"1"}
    column = documents(["x", "y"], **{field: pa.array(["a.b/1", "a.b/1"])})
    assert "." in field or set(run_stage(DedupUrls(UrlsConfig(field=field)), column).rows) == {"1"}


def test_a_field_that_no_row_has_is_refused():
    with pytest.raises(ConfigError, match="none of 2 rows has a URL in the field 'uri'"):
        run_stage(DedupUrls(UrlsConfig(field="uri")), documents(["x", "y"]))
    assert run_stage(DedupUrls(), documents([])).kept == []
    with pytest.raises(ConfigError, match="field names a column"):
        UrlsConfig(field="meta..url")


def test_each_url_goes_to_the_first_row_that_has_it():
    rng = random.Random(1)
    found = [f"https://site{rng.randrange(40)}.org/{rng.randrange(90)}" for _ in range(3000)]
    first = {url: str(row) for row, url in reversed(list(enumerate(found)))}
    expected = {str(row): first[url] for row, url in enumerate(found) if first[url] != str(row)}
    assert urls(found, 777, 3, memory_mb=1).dropped_for == expected


def test_many_rows_of_one_url_raise_an_alarm():
    alarms = urls(["https://a.b/"] * 5, max_cluster_rows=4).facts["alarms"]
    assert "5 rows have the URL of '0' and all but it are dropped (max_cluster_rows is 4)" in alarms[0]
    assert len(alarms) == 1, "too few rows for an alarm about their share"
    (alarm,) = urls(["https://a.b/", "https://a.b/c"] * 10).facts["alarms"]
    said = "18 of all 20 rows are lost (90.0%; max_loss is 30.0%). Most rows are lost for: '0' 9, '1' 9"
    assert alarm.startswith(said)


def test_the_policy_says_which_row_of_a_url_stays():
    extra = [json.dumps({"url": "a.b", "score": score}) for score in (1, 3, None, 3)]
    rows = documents(["x", "yy", "zzzz", "w"], extra=pa.array(extra))
    for policy, stays in (("first", "0"), ("longest", "2"), ("highest:score", "1")):
        outcome = run_stage(DedupUrls(UrlsConfig(policy=policy)), rows, cut=3)
        assert outcome.kept == [stays] and set(outcome.dropped_for.values()) == {stays}
