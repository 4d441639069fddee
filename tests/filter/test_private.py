"""Private values: what is one, what only looks like one, and what becomes of rows that hold them."""

import importlib
import json
import re
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datakit.config import build
from datakit.data import MESSAGES
from datakit.errors import ConfigError
from datakit.filter import private, private_numbers
from datakit.filter.private import FINDERS, find, luhn
from datakit.filter.stage import Filter, FilterConfig

KEY = "sk-" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zC"
VALUES = [
    ("email", "jane.doe+news@mail.company.co.uk"),
    ("email", "x_1@firma.de"),
    ("ip", "93.184.216.34"),
    ("ip", "2606:2800:220:1:248:1893:25c8:1946"),
    ("card", "4111 1111 1111 1111"),
    ("card", "5500-0000-0000-0004"),
    ("card", "378282246310005"),
    ("iban", "DE89 3704 0044 0532 0130 00"),
    ("iban", "GB82WEST12345698765432"),
    ("national_id", "11010519491231002X"),
    ("national_id", "12345678Z"),
    ("national_id", "X1234567L"),
    ("phone", "+44 20 7946 0958"),
    ("phone", "+1 (212) 736-5000"),
    ("phone", "(212) 736-5000"),
    ("phone", "212-736-5000"),
    ("key", KEY),
    ("key", "AKIA" + "Z7QK3M5PX2WD9RTB"),
    ("key", "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"),
]
LOOKALIKES = [
    "me@example.com and you@sub.example.org and root@localhost",
    "git@github.com:a/b.git, an image@2x.png, user@host, @mention, a@b, npm i left-pad@1.3.0",
    "127.0.0.1 192.168.1.20 10.0.0.1 172.16.3.4 169.254.1.1 224.0.0.114 0.0.0.0 255.255.255.0 198.51.100.7",
    "V8 is at 5.0.71.32, version 10.15.63.20, v1.2.3.4, Chrome/76.0.3809.146, 1.2.3.4.5, 999.1.1.1, numpy==1.2.3.4",
    "12:30:45 std::vector a::b::c 00:1B:44:11:3A:B7 fe80::1",
    "4111 1111 1111 1112, 1234567890123456, 0.4111111111111111, 0000000000000000, id=41111111111111110000000",
    "DE89 3704 0044 0532 0130 01 and AB12 CDEF GHIJ KLMN",
    "110105194912310021 12345678A 2023-12-01 20231201123045 1,234,567,890",
    "555-0123 (212) 555-0123 1-2-3 2020-2021 100 200 300 13800138000 phone 5 +1 +12 3",
    "AKIAIOSFODNN7EXAMPLE sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx sk-learn ghp_short sk-1234567890",
]


@pytest.mark.parametrize(("kind", "value"), VALUES)
def test_a_private_value_is_found_wherever_it_stands(kind, value):
    for line in (value, f"Here: {value}.", f"({value})", f"“{value}”，", f"a {value} b"):
        begin = line.index(value)
        assert find(line, tuple(FINDERS)) == [(begin, begin + len(value), kind)], line


@pytest.mark.parametrize("line", LOOKALIKES)
def test_what_only_looks_private_stays(line):
    assert [line[a:b] for a, b, _ in find(line, tuple(FINDERS))] == []


def test_numbers_behind_a_word_for_phones_are_phones():
    assert find("电话：13800138000", ("phone",)) == [(3, 14, "phone")]
    assert find("Tel. 030 1234 5678", ("phone",)) == [(5, 18, "phone")]


def test_small_addresses_need_a_word_that_says_so():
    assert find("the server at 8.8.4.4 answers", ("ip",)) == [(14, 21, "ip")]
    assert find("it is 8.8.4.4 now", ("ip",)) == []


@given(st.integers(0, 10**15))
def test_luhn_catches_every_single_wrong_digit(number):
    digits = next(f"{number}{c}" for c in range(10) if luhn(f"{number}{c}"))
    for i, d in enumerate(digits):
        assert not luhn(digits[:i] + str((int(d) + 1) % 10) + digits[i + 1 :])


@given(st.text(max_size=200) | st.text("0123456789.-+ @:abAB()", max_size=120))
def test_found_values_are_in_order_and_apart_and_what_arrow_finds_suspicious(line):
    found = find(line, tuple(FINDERS))
    assert all(0 <= a < b <= len(line) for a, b, _ in found)
    assert all(b <= c for (_, b, _), (c, _, _) in pairwise(found))
    if found and "\n" not in line:
        assert private.Private().replace(line)[1]


@pytest.mark.parametrize("around", ["{}", "{}\n", "a\nb {} c\n\nd", "说：{}。\n再见"])
def test_the_kernel_passes_every_line_that_holds_a_value(around):
    texts = [around.format(value) for _, value in VALUES]
    made = stage().decide(pa.record_batch({"text": texts})).columns["text"].to_pylist()
    assert made == [around.format(f"<{kind.upper()}>") for kind, _ in VALUES]


def stage(**values) -> Filter:
    return Filter(config=build(FilterConfig, {"rules": ["private"], "private": values}, "filter"))


_SAYINGS = [
    "password",
    "Passwort:",
    "PASS",
    " pw=",
    "mot de passe : ",
    "şifre ",
    "пароль",
    "密码是",
    "pwd",
    "Kennwort ist ",
]
_VALUES = [
    "hunter2!!x",
    "Xk9#mmQ2",
    " ",
    ": ",
    "=",
    "pass",
    " for the router: ",
    "İ",
    "ſ",
    ",",
    "'",
    "a",
    "passpass: a1!b2?c3",
]


_NAMES = ["api_key", "Token: ", "BEARER ", "secret", "toKen=", "access key ", "auth-key: ", "sk-", "ghp_", "eyJ", "SG."]
_RUNS = ["A1b2C3d4E5f6G7h8I9j0", "aaaaaaaaaaaaa", "+1 (415) ", "555-2671", "12345678:", "(", ".", "-", "/", "é", "0"]


_ANY_CASE = [form for word in private._PASSWORD_WORDS for form in (word, word.upper(), word.capitalize(), word.title())]


@settings(max_examples=60)
@given(
    st.lists(
        st.text(max_size=60)
        | st.sampled_from([v for _, v in VALUES])
        | st.text("019.@:-+ aA\n", max_size=40)
        | st.sampled_from(_ANY_CASE + _SAYINGS + _VALUES + _NAMES + _RUNS)
        | st.from_regex(private._PREFIXED, fullmatch=True)
        | st.from_regex(private._WEBHOOK, fullmatch=True),
        max_size=5,
    )
)
@example(["hf_QwErTyUiOpAsDfGhJkLzXcVbNmQwErTyUiOp"])  # letters only
@example(["glpat-abcdefghijklmnopqrst"])
@example(["пароль:", "Zx9!kd82"])
@example(["ПАРОЛЬ:", "Zx9!kd82", "ŞİFRE:", "Zx9!kd82"])
@example(["PW is", "Zx9!kd82"])
def test_the_kernel_misses_nothing_that_the_slow_way_finds(pieces):
    text = " ".join(pieces)
    rules = private.Private()
    slow, counts = rules.replace(text)
    (fast,) = rules._editor({})(pa.array([text]), np.zeros(1, np.int64), "text").to_pylist()
    assert fast == slow, counts


@given(st.lists(st.sampled_from(_SAYINGS + _VALUES + _NAMES + _RUNS), max_size=12))
@example([" pw=", "hunter2!!x"])
@example(["mot de passe : ", "hunter2!!x", " ", "пароль", ": ", "Xk9#mmQ2"])
@example(["toKen=", "A1b2C3d4E5f6G7h8I9j0"])
@example(["api_key", "=", "A1b2C3d4E5f6G7h8I9j0", " bearer ", "A1b2C3d4E5f6G7h8I9j0"])
@example(["ghp_", "A1b2C3d4E5f6G7h8I9j0" * 2, " ", "+1 (415) ", "555-2671"])
@example(["ſ", "secret", "=", "A1b2C3d4E5f6G7h8I9j0"])
def test_patterns_are_tried_where_a_word_begins_and_nowhere_else(pieces):
    text = "".join(pieces)
    for words, pattern in (
        (private._PASSWORD_WORDS, private._PASSWORD),
        (private._ASSIGNED_WORDS, private._ASSIGNED),
        (private._BEARER_WORDS, private._BEARER),
    ):
        tried = [found.span() for found in private._beginning(words, pattern, text)]
        assert tried == [found.span() for found in pattern.finditer(text)]
    for pattern, before in ((private._PREFIXED, "(?<![A-Za-z0-9_-])"), (private._PHONE, "")):
        everywhere = re.compile(before + "(?:" + pattern.pattern.split("(?:", 1)[1], re.ASCII)
        assert [found.span() for found in pattern.finditer(text)] == [f.span() for f in everywhere.finditer(text)]


_SAYS = [n.says for n in private_numbers.NUMBERS if n.says]
_WORDS_BEFORE = [
    "SSN",
    "social  security",
    "İd",
    "ıd",
    "Personnummer",
    "cédula",
    "c.c.",
    "T.C.",
    "איד תעודת",
    "TIN_",
    "é",
]


@given(
    st.lists(st.sampled_from([*_WORDS_BEFORE, "ID", "aadhar", "паспорт", "Emšo", " ", "-", "x", "_", "1"]), max_size=6)
)
def test_a_text_without_words_for_numbers_has_no_number_that_needs_one(pieces):
    text = "".join(pieces)
    if not private_numbers._says_number(text):
        assert not any(says.search(text) for says in _SAYS)


def test_values_become_placeholders_and_are_counted():
    pem = f"-----BEGIN RSA PRIVATE KEY-----\n{'MIIE' * 30}\n-----END RSA PRIVATE KEY-----"
    texts = ["Write to a@firma.de or b@firma.de.\nOr call +44 20 7946 0958.", "nothing", f"key:\n{pem}\nend"]
    decision = stage().decide(pa.record_batch({"text": texts}))
    assert decision.reasons.to_pylist() == [None] * 3
    assert decision.columns["text"].to_pylist() == [
        "Write to <EMAIL> or <EMAIL>.\nOr call <PHONE>.",
        "nothing",
        "key:\n<KEY>\nend",
    ]
    assert decision.edited.to_pylist() == [True, False, True]
    assert {k: v for k, v in decision.notes.items() if v} == {
        "private_email": 2,
        "private_phone": 1,
        "private_key": 1,
    }


def test_rows_with_private_values_can_be_dropped():
    texts = ["a@firma.de", "a@firma.de b@firma.de", "none"]
    decision = stage(action="drop", max_values=1).decide(pa.record_batch({"text": texts}))
    assert decision.reasons.to_pylist() == [None, "private.max_values", None]
    assert "text" not in decision.columns


def test_only_the_types_asked_for_are_looked_for():
    (made,) = stage(types=["ip"]).decide(pa.record_batch({"text": ["a@firma.de 93.184.216.34"]})).columns["text"]
    assert made.as_py() == "a@firma.de <IP>"


def test_every_turn_of_a_conversation_is_mended_and_the_rest_stays_as_it_is():
    turns = [
        {"role": "user", "content": "I am a@firma.de", "name": "joe"},
        {"role": "assistant", "content": None, "reasoning_content": f"The key is {KEY}", "tool_calls": "[]"},
    ]
    other = [{"role": "user", "content": "Hi"}]
    messages = pa.array([other, None, turns, []], MESSAGES)
    batch = pa.record_batch({"messages": messages, "id": list("abcd"), "content_hash": ["h"] * 4})
    decision = stage().decide(batch)
    made = decision.columns["messages"]
    assert made.type == messages.type
    assert decision.edited.to_pylist() == [False, False, True, False]
    (user, assistant), before = made[2].as_py(), messages[2].as_py()
    assert user == before[0] | {"content": "I am <EMAIL>"}
    assert assistant == before[1] | {"reasoning_content": "The key is <KEY>"}
    assert [made[i].as_py() for i in (0, 1, 3)] == [messages[i].as_py() for i in (0, 1, 3)]


def test_unknown_types_are_refused():
    with pytest.raises(ConfigError, match=r"types = \['name'\]: expected some of password, key"):
        stage(types=["name"])


def test_long_lines_of_digits_and_letters_are_no_trap():  # a quadratic pattern would take hours
    lines = [
        "1" * 100_000,
        "a." * 50_000 + "@",
        "1 " * 50_000,
        "A1B2 " * 20_000,
        "1:" * 50_000,
        "x@" * 50_000,
        "1." * 50_000,
    ]
    rules = private.Private()
    assert all(isinstance(rules.replace(line)[0], str) for line in lines)


def test_all_text_of_a_row_is_mended_and_what_is_counted_is_what_was_replaced():
    mail, call = (
        "bo.li@web.de",
        {"name": "send", "arguments": json.dumps({"to": "bo.li@web.de", "n": 12345678901234567890})},
    )
    turns = [
        {"role": "system", "content": f"Admin: {mail}"},
        {"role": "user", "content": f"{mail} {mail}", "name": "bo"},
        {"role": "assistant", "content": None, "tool_calls": json.dumps([call])},
        {"role": "tool", "content": json.dumps({"found": mail, "phone": "9876543210"})},
    ]
    columns = {
        "messages": pa.array([turns], MESSAGES),
        "tools": [json.dumps([{"description": f"asks {mail}"}])],
        "extra": [
            '{"a": 1.50, "big": 123456789012345678901234, "by": {"mail": "bo.li@web.de"}, "card": 4111111111111111}'
        ],
        "author": [mail],
        "content_hash": ["h"],
        "id": ["r"],
    }
    decision = stage().decide(pa.record_batch(columns))
    made = {n: c.to_pylist()[0] for n, c in decision.columns.items()}
    assert "web.de" not in json.dumps(made) and "9876543210" not in json.dumps(made)
    assert made["extra"] == (
        '{"a": 1.50, "big": 123456789012345678901234, "by": {"mail": "<EMAIL>"}, "card": "<CARD>"}'
    )
    assert json.loads(json.loads(made["messages"][2]["tool_calls"])[0]["arguments"]) == {
        "to": "<EMAIL>",
        "n": 12345678901234567890,
    }
    assert {k: v for k, v in decision.notes.items() if v} == {"private_email": 8, "private_phone": 1, "private_card": 1}
    assert made["content_hash"] != "h" and decision.edited.to_pylist() == [True]


def test_values_hidden_outside_of_the_prose_drop_a_row():
    rows = pa.record_batch({"text": ["a", "b"], "extra": ['{"by": "bo.li@web.de"}', None]})
    assert stage(action="drop").decide(rows).reasons.to_pylist() == ["private.max_values", None]


def test_rows_that_another_rule_drops_are_mended_too():
    rules = {"rules": ["gopher_quality", "private"]}
    made = Filter(config=build(FilterConfig, rules, "filter")).decide(pa.record_batch({"text": ["bo.li@web.de"]}))
    assert made.reasons.to_pylist() == ["gopher_quality.min_words"]
    assert made.columns["text"].to_pylist() == ["<EMAIL>"]


def test_made_up_values_are_the_same_for_the_same_value_and_nobodys():
    texts = [f"{value} and {value}" for _, value in VALUES] + ["x@firma.de", "y@firma.de"]
    one, other = (
        stage(replacement="fake", seed=seed).decide(pa.record_batch({"text": texts})).columns["text"].to_pylist()
        for seed in (1, 2)
    )
    assert all(a != b for a, b in zip(one, other, strict=True))
    for text in one[:-2]:
        first, second = text.split(" and ")
        assert first == second
    assert one[-1] != one[-2]
    assert not stage().decide(pa.record_batch({"text": one})).columns


def test_the_benchmark_is_large_and_met():
    bench = importlib.import_module("bench.private")
    values = strings = 0
    for name in bench.SETS:
        recall, wrong, negatives = bench.judge(name, False)
        assert {kind: share for kind, (n, of) in recall.items() if (share := n / of) < 0.97} == {}
        assert wrong <= 0.01 * negatives
        values, strings = values + sum(of for _, of in recall.values()), strings + negatives
    assert values >= 600 and strings >= 600
