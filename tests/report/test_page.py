"""The report and the difference of a dataset: what they say, and the page in a real browser."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from datakit.cli.main import main
from datakit.manifest import load
from datakit.report.page import templates
from datakit.report.survey import histogram
from tests.engine.corpus import RECIPE, write_corpus

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
HOSTILE = (
    "<script>document.title='taken'</script> <img src=x onerror=\"document.title='taken'\"> \u202e\u0007 </p></section>"
)
PICTURES = os.environ.get("DATAKIT_PICTURES", "")
"""A folder for pictures of the page, for people to look at."""


def call(*args: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(args))
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A packed dataset with hostile rows, with a second version of its filter."""
    root = tmp_path_factory.mktemp("page")
    write_corpus(root / "raw", rows=120, files=2)
    with (root / "raw/part-1.jsonl").open("a") as file:
        file.write(json.dumps({"id": HOSTILE, "text": HOSTILE}) + "\n")
    (root / "manifests/d").mkdir(parents=True)
    (root / "manifests/d/recipe.toml").write_text(RECIPE)
    before = os.getcwd()
    os.chdir(root)
    assert call("run", "--dataset", "d") == 0
    yield root
    os.chdir(before)


@pytest.fixture(scope="module")
def page(project: Path) -> Path:
    assert call("report", "--dataset", "d", "--output", "page.html") == 0
    return project / "page.html"


def test_the_page_says_what_the_ledgers_say_and_loads_nothing(project: Path, page: Path) -> None:
    html = page.read_text()
    for stage in ("ingest", "language", "dedup", "filter", "tokenize", "pack"):
        rows = load(project / f"manifests/d/{stage}.json").ledger.rows
        (bar,) = re.findall(rf'<div class="name">{stage}</div>\n<div class="what">(.*?)</div></div>', html, re.S)
        assert f"<b>{rows.kept:,}</b> of {rows.into:,} rows" in bar
        lost = re.findall(r'<i class="lost\d" .*? title="([\d,]+) ([^"]+)"', bar)
        assert {reason: int(n) for n, reason in lost} == rows.dropped | (
            {"could not be read": rows.quarantined} if rows.quarantined else {}
        )
    assert "HTTP" not in html.upper().replace("HTTP-EQUIV", "") and "@import" not in html
    assert html.count("<svg ") >= 12 and "near_duplicate" in html and "min_words" in html
    assert "label share" in html and load(project / "manifests/d/ingest.json").version in html


def test_data_cannot_write_into_the_page(page: Path) -> None:
    html = page.read_text()
    assert html.count("<script>") == 1 and "<img" not in html and "&lt;img src=x" in html
    assert not re.search(r"[\u202a-\u202e\u0000-\u0008]", html) and "\\u202e" in html


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: make setup-browser")
def test_the_page_opens_without_errors_wide_and_narrow_light_and_dark(page: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make setup-browser")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with tempfile.TemporaryDirectory() as home, playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=flags, env={**os.environ, "HOME": home})
        for width, scheme in ((1280, "light"), (400, "dark")):
            _look(browser, page, width, scheme)
        browser.close()


def _look(browser: Any, page: Path, width: int, scheme: str) -> None:
    said: list[str] = []
    asked: list[str] = []
    shown = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    shown.set_default_timeout(60_000)
    shown.on("console", lambda message: said.append(message.text))
    shown.on("pageerror", lambda error: said.append(str(error)))
    shown.on("request", lambda request: asked.append(request.url))
    shown.goto(page.as_uri())
    assert shown.evaluate("document.documentElement.scrollWidth") <= width  # only tables scroll, in their own frames
    colour = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", colour)[:3])) < 200) == (scheme == "dark")
    total = shown.locator("#all .sample").count()
    shown.click("#all > summary")
    shown.fill("#search", "near_duplicate")
    found = shown.locator("#all .sample:visible").count()
    assert 0 < found < total and shown.inner_text("#shown") == f"{found} of {total}"
    assert shown.title() == "d / pack" and said == [] and all(url.startswith(("file:", "data:")) for url in asked)
    if PICTURES:
        shown.screenshot(path=Path(PICTURES) / f"report-{width}.png", full_page=True)
    shown.close()


def test_the_difference_of_two_versions_names_rows_reasons_and_settings(
    project: Path, page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = load(project / "manifests/d/filter.json")
    (project / "raw/part-0.jsonl").open("a").write(json.dumps({"id": "new", "text": "A new row. " * 40}) + "\n")
    assert call("filter", "--dataset", "d", "--set", "filter.gopher_quality.min_words=300", "--set",
                "filter.gopher_repetition.max_dup_line_char_ratio=1") == 0  # fmt: skip
    second = load(project / "manifests/d/filter.json")
    capsys.readouterr()
    assert call("diff", first.version, second.version, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    kept = [found["first"], found["second"]]
    assert [k["version"] for k in kept] == [first.version, second.version]
    assert found["same"] + found["lost"]["rows"] == first.ledger.rows.kept
    assert found["same"] + found["gained"]["rows"] == second.ledger.rows.kept
    assert found["lost"]["rows"] and set(found["lost"]["by_reason"]) == {"filter: gopher_quality.min_words"}
    assert found["lost"]["samples"][0]["text"].startswith("Row ")
    assert any("part-0.jsonl" in line for line in found["settings"]["ingest"])
    assert any("300" in line for line in found["settings"]["filter"])
    assert call("diff", first.version, second.version, "--html", "diff.html") == 0
    assert "gopher_quality.min_words" in (project / "diff.html").read_text()
    assert call("diff", first.version, "d", "--stage", "filter") == 0
    assert call("diff", "nothing", "d") == 2


def test_a_histogram_counts_every_value_and_shows_a_limit_that_is_near() -> None:
    values = np.concatenate([np.arange(1000), [10_000.0, np.nan]])
    made = histogram("words", values, 1200)
    assert made is not None and sum(made.counts) == 1001 and made.outside == 1 and made.high == 1200
    page = str(templates().get_template("macros.html").module.chart(made))
    assert "limit 1200, 1,001 rows, 1 beyond the right end" in page
    assert re.findall(r"<span>([\d,]+)</span>", page) == ["0", "600", "1,200"]
    heights = [100 - float(y) for y in re.findall(r"V([\d.]+)h1", page)]
    assert len(heights) == len(made.counts) and max(heights) == 96 and heights[-2] == 0
    assert f'd="M{float(len(heights))} 0V100"' in page
    far = histogram("words", values, 1e9)
    assert far is not None and far.high < 1000
    assert 'class="limit"' not in str(templates().get_template("macros.html").module.chart(far))
    assert histogram("none", np.array([np.nan])) is None
    equal = histogram("same", np.ones(5))
    assert equal is not None and sum(equal.counts) == 5 and equal.low < 1 < equal.high
    lengths = histogram("characters", np.array([1, 10, 10, 1000]), logarithmic=True)
    assert lengths is not None
    page = str(templates().get_template("macros.html").module.chart(lengths))
    assert re.findall(r"<span>([\d.e+]+)</span>", page)[:2] == ["1", "31.6"]
