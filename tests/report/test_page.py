"""The report and the difference of a dataset: what they say, and the page in a real browser."""

import json
import os
import re
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from datakit.manifest import load
from datakit.report import survey
from datakit.report.page import histogram, templates
from tests.cli.conftest import Said, call, done
from tests.engine.corpus import RECIPE, write_corpus
from tests.files import write_recipe

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
TAKEN = "document.title='taken'"
HOSTILE = f'<script>{TAKEN}</script> <img src=x onerror="{TAKEN}"> \u202e\u0007 </p></section>'
PICTURES = os.environ.get("DATAKIT_PICTURES", "")
"""A folder for pictures of the page, for people to look at."""


@pytest.fixture(scope="module")
def finished(workshop: Path) -> tuple[Path, Said]:
    """A packed dataset with hostile rows, and what the run said."""
    write_corpus(workshop / "raw", rows=80, files=2)
    with (workshop / "raw/part-1.jsonl").open("a") as file:
        file.write(json.dumps({"id": HOSTILE, "text": HOSTILE}) + "\n")
    write_recipe(workshop, RECIPE)
    return workshop, done("run --dataset d")


@pytest.fixture
def project(finished: tuple[Path, Said]) -> Path:
    return finished[0]


def test_a_run_ends_with_the_funnel_and_what_to_look_at_next(finished):
    project, said = finished
    lines = said.out.splitlines()
    head = next(n for n, line in enumerate(lines) if " / pack  version" in line)
    assert lines[0].split() == ["stage", "rows", "in", "kept", "tokens", "in", "kept", "s", "MB/s", "dropped"]
    stages = [line.split()[0] for line in lines[1:head]]
    assert stages == ["ingest", "language", "dedup", "filter", "tokenizer", "tokenize", "pack"]
    ingest, dedup = (next(line for line in lines if line.startswith(f"{stage} ")) for stage in ("ingest", "dedup"))
    assert ingest.split()[:4] == ["ingest", "83", "81", "97.6%"] and ingest.endswith("2 could not be read")
    rows, tokens = (load(project / f"manifests/d/{s}.json").ledger for s in ("dedup", "pack"))
    reasons = {reason: str(n) for reason, n in rows.rows.dropped.items()}
    assert dict(reversed(part.split(" ")) for part in dedup.split("  ")[-1].strip().split(", ")) == reasons
    assert f"{tokens.tokens.into:,}" in next(line for line in lines if line.startswith("pack "))
    assert "  datakit pairs manifests/d/dedup.json    # dropped duplicates beside the rows that stay" in lines
    funnel = json.loads(done("run --dataset d --json").out)["funnel"]
    assert [s["stage"] for s in funnel] == stages and funnel[0]["seconds"] > 0 and funnel[0]["mb_per_s"] > 0


@pytest.fixture(scope="module")
def page(finished: tuple[Path, Said]) -> Path:
    done("report --dataset d --output page.html")
    return finished[0] / "page.html"


def test_a_limit_is_shown_where_it_acts_and_rows_are_counted_where_a_file_has_rows(project):
    language = load(project / "manifests/d/language.json")
    listed = replace(language, config=language.config | {"languages": ["en"]})
    assert not survey._acts(replace(language, config=language.config | {"languages": []}), "min_score")
    assert survey._acts(listed, "min_score") and survey._acts(load(project / "manifests/d/dedup.json"), "threshold")
    said = done("show manifests/d/pack.json").out
    assert re.search(r"ids2d\.bin +[\d,]+ +bytes", said) and " 0  rows" not in said


def test_the_page_says_what_the_ledgers_say_and_loads_nothing(project, page):
    html = page.read_text()
    for stage in ("ingest", "language", "dedup", "filter", "tokenize", "pack"):
        rows = load(project / f"manifests/d/{stage}.json").ledger.rows
        (bar,) = re.findall(rf'<div class="name">{stage}</div>\n<div class="what">(.*?)</div></div>', html, re.S)
        assert f"<b>{rows.kept:,}</b> of {rows.into:,} rows" in bar
        lost = re.findall(r'<i class="lost\d" .*? title="([\d,]+) ([^"]+)"', bar)
        unread = {"could not be read": rows.quarantined} if rows.quarantined else {}
        assert {reason: int(n) for n, reason in lost} == rows.dropped | unread
    assert "HTTP" not in html.upper().replace("HTTP-EQUIV", "") and "@import" not in html
    assert html.count("<svg ") >= 12 and "near_duplicate" in html and "min_words" in html
    assert "label share" in html and load(project / "manifests/d/ingest.json").version in html


def test_data_cannot_write_into_the_page(page):
    html = page.read_text()
    assert html.count("<script>") == 1 and "<img" not in html and "&lt;img src=x" in html
    assert not re.search(r"[\u202a-\u202e\u0000-\u0008]", html) and "\\u202e" in html


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: make setup-browser")
def test_the_page_opens_without_errors_wide_and_narrow_light_and_dark(page):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make setup-browser")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with tempfile.TemporaryDirectory() as home, playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=flags, env={**os.environ, "HOME": home})
        for width, scheme in ((1280, "light"), (400, "dark")):
            _look(browser, page, width, scheme)
        browser.close()


def _look(browser: Any, page: Path, width: int, scheme: str) -> None:
    said, asked = list[str](), list[str]()
    shown = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    shown.set_default_timeout(60_000)
    shown.on("console", lambda message: said.append(message.text))
    shown.on("pageerror", lambda error: said.append(str(error)))
    shown.on("request", lambda request: asked.append(request.url))
    shown.goto(page.as_uri())
    assert shown.evaluate("document.documentElement.scrollWidth") <= width  # only tables scroll, in their own frames
    assert shown.evaluate("document.documentElement.scrollHeight") <= 6000  # until something is opened
    assert shown.evaluate("document.querySelector('#funnel').getBoundingClientRect().bottom") <= 900
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


def test_the_difference_of_two_versions_names_rows_reasons_and_settings(project, page):
    first = load(project / "manifests/d/filter.json")
    (project / "raw/part-0.jsonl").open("a").write(json.dumps({"id": "new", "text": "A new row. " * 40}) + "\n")
    sets = "--set filter.gopher_quality.min_words=300 --set filter.gopher_repetition.max_dup_line_char_ratio=1"
    done(f"filter --dataset d {sets}")
    second = load(project / "manifests/d/filter.json")
    found = json.loads(done("diff", first.version, second.version, "--json").out)
    assert [found[k]["version"] for k in ("first", "second")] == [first.version, second.version]
    assert found["same"] + found["lost"]["rows"] == first.ledger.rows.kept
    assert found["same"] + found["gained"]["rows"] == second.ledger.rows.kept
    assert found["lost"]["rows"] and set(found["lost"]["by_reason"]) == {"filter: gopher_quality.min_words"}
    assert found["lost"]["samples"][0]["text"].startswith("Row ")
    assert any("part-0.jsonl" in line for line in found["settings"]["ingest"])
    assert any("300" in line for line in found["settings"]["filter"])
    assert "(in the second)" in done("diff", first.version, "d", "--stage", "filter").out
    assert call("diff nothing d").code == 2


def test_rows_of_one_content_are_the_same_under_other_ids(datakit, tmp_path):
    for name, ids in (("one", ("a", "b", "c")), ("two", ("x", "b", "y", "z"))):
        rows = [json.dumps({"id": i, "text": f"text number {n}"}) for n, i in enumerate(ids)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows).replace("number 2", f"of {name}") + "\n")
        done("ingest", tmp_path / f"{name}.jsonl", "--output", tmp_path / name)
    found = json.loads(done("diff", tmp_path / "one", tmp_path / "two", "--json").out)
    assert found["same"] == 2 and found["changed"]["rows"] == 0
    assert [{s["id"] for s in found[kind]["samples"]} for kind in ("lost", "gained")] == [{"c"}, {"y", "z"}]


def test_a_histogram_counts_every_value_and_shows_a_limit_that_is_near():
    values = np.concatenate([np.arange(1000), [10_000.0, np.nan]])
    made = histogram("words", values, 1200)
    assert made is not None and sum(made.counts) == 1001 and made.outside == 1 and made.high == 1200
    page = str(templates().get_template("macros.html").module.chart(made))
    assert "limit 1200, 1,001 rows, 1 beyond the right end" in page
    assert re.findall(r"<span>([\d,]+)</span>", page) == ["0", "600", "1,200"]
    heights = [100 - float(y) for y in re.findall(r"V([\d.]+)h1", page)]
    assert len(heights) == len(made.counts) and max(heights) == 96 and heights[-2] == 0
    same = histogram("characters", np.full(9, 377.0), logarithmic=True)
    assert same is not None and sum(same.counts) == 9, "rows of one length"
    assert f'd="M{float(len(heights))} 0V100"' in page
    far = histogram("words", values, 1e9)
    assert far is not None and far.high < 1000
    assert 'class="limit"' not in str(templates().get_template("macros.html").module.chart(far))
    assert histogram("none", np.array([np.nan])) is None
    equal = histogram("same", np.ones(5))
    assert equal is not None and sum(equal.counts) == 5 and (equal.low, equal.high) == (0, 1)
    lengths = histogram("characters", np.array([1, 10, 10, 1000]), logarithmic=True)
    assert lengths is not None and lengths.outside == 0
    page = str(templates().get_template("macros.html").module.chart(lengths))
    assert re.findall(r"<span>([\d.e+]+)</span>", page)[:2] == ["1", "31.6"]


@pytest.mark.parametrize(("size", "rows", "chosen"), [(10, 10, [0, 1, 2, 3, 4, 5]), (10, 30, [1, 4]), (90, 1, [3])])
def test_a_sample_is_of_shards_spread_evenly(monkeypatch, size, rows, chosen):
    shards = [SimpleNamespace(number=n, bytes=size, rows=rows) for n in range(6)]
    for name, value in (("SAMPLE_BYTES", 90), ("SAMPLE_ROWS", 60), ("tables", lambda *_: shards)):
        monkeypatch.setattr(survey, name, value)
    monkeypatch.setattr(survey, "data_dir", lambda *_: "")
    monkeypatch.setattr(survey, "read_rows", lambda _, shard: [shard.number])
    assert list(survey._spread(("", None), "kept")) == chosen
