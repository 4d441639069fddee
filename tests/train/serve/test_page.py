"""The page in a real browser."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

from tests.files import says, user
from tests.train.serve.conftest import ANSWERS, TOOL, Server

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make setup-browser")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: make setup-browser")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    flags = [f"--{flag}" for flag in ("no-sandbox", "disable-gpu", "disable-background-networking", "disable-sync")]
    with tempfile.TemporaryDirectory() as home, playwright.sync_playwright() as p:
        found = p.chromium.launch(executable_path=CHROMIUM, args=flags, env={**os.environ, "HOME": home})
        yield found
        found.close()


@pytest.fixture
def page(browser: Any, server: Server, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page with the size and colours of the test's parameter; no error may appear in its console."""
    options = {"width": 1440, "dark": False, "locale": "en-US"} | getattr(request, "param", {})
    context = browser.new_context(
        viewport={"width": options["width"], "height": 900}, color_scheme="dark" if options["dark"] else "light",
        locale=options["locale"],
    )  # fmt: skip
    context.set_default_timeout(60_000)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    found, errors = context.new_page(), list[str]()
    found.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    found.on("pageerror", lambda error: errors.append(str(error)))
    found.goto(server.url)
    found.locator("h1", has_text="parrot").wait_for()
    yield found
    context.close()
    assert errors == []


def ask(page: Any, text: str) -> Any:
    page.fill("#entry", text)
    page.keyboard.press("Enter")
    page.wait_for_selector("#send:not([hidden])")
    return page.locator(".turn.assistant").last


def settings(page: Any, **values: str) -> None:
    page.click("#open-settings")
    for name, value in values.items():
        field = page.locator(f"dialog [name={name}]")
        field.select_option(value) if name in ("language", "look") else field.fill(value)
    page.click("dialog button[value=save]")
    page.evaluate("""() => new Promise(done => {  // the value is emptied once the settings are taken over
        const look = () => document.getElementById("settings").returnValue ? setTimeout(look) : done();
        look();
    })""")


def test_an_answer_streams_in_and_the_chat_is_kept(page):
    settings(page, temperature="0")
    answer = ask(page, "hello")
    assert answer.locator(".said").inner_text() == ANSWERS["hello"]
    assert re.search(r"\d+ → \d+ tokens · [\d.]+ tokens/s", answer.locator(".tools").inner_text())
    answer.get_by_role("button", name="Copy").click()
    assert page.evaluate("navigator.clipboard.readText()") == ANSWERS["hello"]
    page.reload()
    page.get_by_role("button", name="hello", exact=True).click()
    assert page.locator(".turn.assistant .said").inner_text() == ANSWERS["hello"]
    assert page.locator("dialog [name=temperature]").input_value() in ("", "0")


def test_an_answer_is_stopped_and_tried_again(page):
    settings(page, temperature="0")
    page.fill("#entry", "sing")
    page.keyboard.press("Enter")
    page.locator("#stop").wait_for()
    page.locator(".turn.assistant .said", has_text=re.compile("....")).wait_for()
    page.keyboard.press("Escape")
    page.wait_for_selector("#send:not([hidden])")
    answer = page.locator(".turn.assistant")
    assert "stopped" in answer.locator(".tools").inner_text()
    settings(page, max_tokens="8")
    answer.get_by_role("button", name="Retry").click()
    page.locator(".turn.assistant .tools", has_text="→ 8").wait_for()
    page.locator(".turn.user").get_by_role("button", name="Edit").click()
    page.locator(".turn.user textarea").fill("hello")
    settings(page, max_tokens="")
    page.locator(".turn.user").get_by_role("button", name="Send").click()
    page.locator(".turn.assistant .said", has_text="today").wait_for()
    assert page.locator(".turn").count() == 2


def test_thoughts_are_folded_and_calls_are_shown(page):
    settings(page, temperature="0", tools=json.dumps([TOOL]))
    answer = ask(page, "weather")
    assert [b.inner_text() for b in answer.locator(".call b").all()] == ["calls weather", "calls weather"]
    assert '"city": "東京"' in answer.locator(".call pre").last.inner_text()
    settings(page, tools="")
    page.click("#new")
    answer = ask(page, "think")
    assert not answer.locator(".thought").is_visible()
    answer.locator("summary").click()
    assert answer.locator(".thought").inner_text() == "Let me see."


@pytest.mark.parametrize("page", [{}, {"width": 390, "dark": True}], indirect=True)
def test_tokens_show_what_else_was_likely(page):
    settings(page, temperature="0")
    page.locator(".switch").click()
    answer = ask(page, "hello")
    token = answer.locator(".token").first
    token.hover()
    assert page.locator("#alternatives tr").count() == 5
    assert page.locator("#alternatives").inner_text().strip().startswith(token.inner_text().strip())
    inside = page.locator("#alternatives").bounding_box()
    assert inside["x"] >= 0
    assert inside["x"] + inside["width"] <= page.viewport_size["width"]


MARKUP = """# Title
A **bold** and *soft* word, `code`, https://example.org and [a link](https://example.org/a_b).
<img src=x onerror="document.title='owned'"><script>document.title='owned'</script> [bad](javascript:alert(1))

1. one
2. two
   - inner

| a | b |
|---|---|
| 1 | <b>2</b> |

> quoted

```python
print("<i>x</i>")  # **not bold**
```
```html
<svg onload=alert(1)>"""


@pytest.mark.parametrize("page", [{"dark": True}, {"width": 390}], indirect=True)
def test_markdown_is_shown_and_no_html_of_the_model_is_run(page):
    """The text is put where answers lie: this model cannot write it."""
    turns = [user("<b>show</b> all 中文"), says(MARKUP, reasoning="<i>hm</i>", done=True)]
    page.evaluate("turns => localStorage.setItem('datakit.chats', JSON.stringify([{id: '1', turns}]))", turns)
    page.reload()
    page.locator("h1", has_text="parrot").wait_for()
    if page.viewport_size["width"] < 700:
        page.click("#open-sidebar")
    page.locator("#chats .open").nth(1).click()
    said = page.locator(".turn.assistant .said")
    for selector in ("h3", "strong", "em", "p code", "ol li ul li", "td", "blockquote", ".fence pre", "details"):
        assert said.locator(selector).count(), selector
    assert said.locator("img, script, svg, td b, i").count() == 0
    links = [a.get_attribute("href") for a in said.locator("a").all()]
    assert links == ["https://example.org", "https://example.org/a_b"]
    assert "<img src=x onerror" in said.inner_text()
    assert page.locator(".turn.user .said").inner_text() == "<b>show</b> all 中文"
    assert page.title() == "parrot"
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(22, 24, 29)") == dark


@pytest.mark.parametrize("page", [{"locale": "zh-CN", "width": 390}], indirect=True)
def test_the_page_speaks_chinese_and_everything_has_a_name_for_the_keyboard(page):
    assert page.locator("#send").inner_text() == "发送"
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    settings(page, temperature="0")
    ask(page, "hello")
    page.keyboard.press("Tab")
    names = page.evaluate("""() =>
        [...document.querySelectorAll('button, input, textarea, select, a')].filter(n => n.offsetParent)
        .map(n => n.getAttribute('aria-label') || n.textContent.trim() || n.labels?.[0]?.textContent.trim() || '')""")
    assert all(names), names
    assert page.evaluate("document.activeElement !== document.body")


def test_an_error_is_shown_and_a_late_answer_about_the_model_leaves_it(page):
    late: list[Any] = []
    page.route("**/v1/models", lambda route: late.append(route))
    settings(page, tools="{not json")
    page.fill("#entry", "hello")
    page.keyboard.press("Enter")
    status = page.locator("#status", has_text="Tools")
    status.wait_for()
    with page.expect_response("**/v1/models") as answer:
        late.pop().continue_()
    answer.value.finished()
    page.evaluate("new Promise(requestAnimationFrame)")
    assert status.is_visible()
