"""The normalize stage: what is mended, what stays as it was, what is counted."""

import sys
import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datakit.config import build
from datakit.data import MESSAGES
from datakit.errors import ConfigError
from datakit.filter.normalize import Normalize, NormalizeConfig

pytest.importorskip("ftfy", reason="the extra normalize is not installed")


def mended(text: str, **values) -> str:
    decision = Normalize(config=build(NormalizeConfig, values, "n")).decide(pa.record_batch({"text": [text]}))
    assert decision.reasons.null_count == 1
    (made,) = decision.columns["text"].to_pylist() if "text" in decision.columns else [text]
    assert decision.edited.to_pylist() == [made != text]
    return made


@pytest.mark.parametrize(
    ("broken", "right"),
    [
        ("schÃ¶n und grÃ¼n", "schön und grün"),
        ("It\u00e2\u20ac\u2122s a \u00e2\u20ac\u0153quote\u00e2\u20ac\u009d", "It’s a “quote”"),
        ("ÐŸÑ€Ð¸Ð²ÐµÑ‚", "Привет"), ("e\u0301te\u0301", "été"), ("a\x00b\x07c\ufeff\u2060d", "abcd"),
        ("one\r\ntwo\rthree\u2028four", "one\ntwo\nthree\nfour"),
        ("page\x0cpage\x0b\u2029line", "page\npage\n\nline"),
        ("\x1b[1;31mred\x1b[0m \x1b]0;title\x07\x1b[?25lok\x1b(B \x1b[2Jend", "red ok end"),
        ("```html  \r\n&lt;p&gt;  \r\n\n\n\n\n```", "```html\n&lt;p&gt;\n\n\n```"),
        ("ends in blanks  \t\nand\u00a0\n\n\n\n\n\nmore ", "ends in blanks\nand\n\n\nmore"),
    ],
)  # fmt: skip
def test_what_is_broken_is_mended(broken, right):
    assert mended(broken) == right
    assert mended(right) == right


@pytest.mark.parametrize(
    "text",
    ["", "plain", "schön ÄÖÜ façade", "Привет, мир", "日本語 中文", "  indented\n\tlines\n\n\nstay",
     "ភាសា\u200bខ្មែរ", "👩\u200d🚀 emoji", "नमस्ते", "می\u200cخواهم"],
)  # fmt: skip
def test_good_text_comes_back_byte_for_byte(text):
    assert mended(text) == text


@given(st.text(max_size=60) | st.text("aé\u0301Ã¶\r\n \t\u00a0\u0085\ufeff", max_size=40))
def test_the_result_is_composed_free_of_controls_and_does_not_change_again(text):
    made = mended(text)
    assert unicodedata.is_normalized("NFC", made) or mended(made) == made
    assert not any(unicodedata.category(c) == "Cc" and c not in "\n\t" for c in made)
    assert "\r" not in made and not any(line != line.rstrip() for line in made.split("\n"))


def test_each_change_can_be_left_out():
    text = "schÃ¶n e\u0301\x07 \r\n"
    assert mended(text, encoding="keep", nfc=False, control="keep", white_space="keep") == text
    assert mended(text, nfc=False, control="keep", white_space="keep") == "schön e\u0301\x07 \r\n"


def test_the_ledger_counts_rows_by_kind_of_change():
    batch = pa.record_batch({"text": ["schÃ¶n\x07", "e\u0301", "good", None], "content_hash": list("abcd")})
    decision = Normalize().decide(batch)
    counts = {"encoding": 1, "control": 1, "nfc": 1, "white_space": 0}
    assert decision.notes == {f"normalize_{k}": v for k, v in counts.items()}
    assert decision.edited.to_pylist() == [True, True, False, False]
    assert decision.columns["text"].to_pylist() == ["schön", "é", "good", None]
    assert decision.columns["content_hash"].to_pylist()[2:] == ["c", "d"]


def test_conversations_are_mended_turn_by_turn():
    turns = [{"role": "user", "content": "schÃ¶n"}, {"role": "assistant", "content": "good"}]
    decision = Normalize().decide(pa.record_batch({"messages": pa.array([turns], MESSAGES)}))
    assert [t["content"] for t in decision.columns["messages"][0].as_py()] == ["schön", "good"]


def test_without_ftfy_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "ftfy", None)
    with pytest.raises(ConfigError, match=r"install datakit\[normalize\], or set encoding"):
        Normalize().open()
    Normalize(config=NormalizeConfig(encoding="keep")).open()
