"""Private values: what is one, what only looks like one, and what becomes of rows that hold them."""

import importlib
import json
import re
from itertools import pairwise

import phonenumbers
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from datakit.data import MESSAGES
from datakit.filter.private import KINDS, NATIONAL_NUMBERS, SECRETS, cleaner
from tests.filter.rows import documents, filter_of

KEY = "sk-" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zC"
VALUES = [
    ("email", "jane.doe+news@mail.company.co.uk"), ("email", "x_1@firma.de"), ("email", "иван@почта.рф"),
    ("email", "bob@müller.de"), ("ip", "93.184.216.34"), ("ip", "2606:2800:220:1:248:1893:25c8:1946"),
    ("card", "4111 1111 1111 1111"), ("card", "5500-0000-0000-0004"), ("card", "378282246310005"),
    ("card", "3782 822463 10005"), ("iban", "DE89 3704 0044 0532 0130 00"), ("iban", "GB82WEST12345698765432"),
    ("phone", "+44 20 7946 0958"), ("phone", "+1 (212) 736-5000"), ("phone", "(212) 736-5000"),
    ("phone", "212-736-5000"), ("key", KEY), ("key", "AKIA" + "Z7QK3M5PX2WD9RTB"),
    ("key", "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"),
    ("key", "123456789:" + "AAF-x_yz1B2c3D4e5F6g7H8i9J0k1L2m3N4"),
]  # fmt: skip
LOOKALIKES = [
    "me@example.com and you@sub.example.org and root@localhost and a@host.test",
    "git@github.com:a/b.git, an image@2x.png, user@host, @mention, a@b, npm i left-pad@1.3.0",
    "127.0.0.1 192.168.1.20 10.0.0.1 172.16.3.4 169.254.1.1 224.0.0.114 0.0.0.0 255.255.255.0 198.51.100.7",
    "V8 is at 5.0.71.32, version 10.15.63.20, v1.2.3.4, Chrome/76.0.203.146, 1.2.3.4.5, 999.1.1.1, numpy==1.2.103.4",
    "12:30:45 std::vector a::b::c 00:1B:44:11:3A:B7 fe80::1",
    "4111 1111 1111 1112, 1234567890123456, 0.4111111111111111, 0000000000000000, id=41111111111111110000000",
    "DE89 3704 0044 0532 0130 01 and AB12 CDEF GHIJ KLMN",
    "110105194912310021 12345678Z X1234567L 2023-12-01 20231201123045 1,234,567,890",
    "the cc 450000 engine, AB123456C is the part number, SSN 000-12-3456",
    "the order 123-45-6789 was sent",
    "555-0123 (212) 555-0123 1-2-3 2020-2021 100 200 300 13800138000 phone 5 +1 +12 3",
    "+999 123 456 789",
    "AKIAIOSFODNN7EXAMPLE sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx sk-learn ghp_short sk-1234567890",
    "api_key = os.environ.get_the_key_of_the_service, token: aB1c2aB1c2aB1c2aB1c2, sk-fading-circle-in-the-page",
    "http://user:${PASSWORD}@host.de/ and http://host:8080/a@b and ://:@",
]
NATIONAL = {
    "us.ssn": "536-90-4399", "ca.sin": "130 692 544", "gb.nhs": "9434765870", "fr.nir": "2 95 10 99 126 111 93",
    "de.idnr": "36 574 261 809", "it.codicefiscale": "RCCMNL83S18D969H", "es.dni": "54362315K", "es.nie": "X2482300W",
    "nl.bsn": "1112.22.333", "be.nn": "85.07.30-033 28", "pl.pesel": "44051401359", "se.personnummer": "880320-0016",
    "fi.hetu": "131052-308T", "tr.tckimlik": "17291716060", "br.cpf": "390.533.447-05",
    "mx.curp": "BOXW310820HNERXN09",
    "za.idnr": "7503305044089", "in_.aadhaar": "234123412346", "cn.ric": "360426199101010071",
    "kr.rrn": "971013-9019902",
}  # fmt: skip
"""The examples of python-stdnum's documentation."""


def found_in(line: str, *types: str, **options) -> list[tuple[str, str]]:
    patterns, regions = tuple(options.get("patterns", {}).items()), options.get("regions", ("US",))
    made = cleaner(types or tuple(KINDS), patterns, regions)
    return [(kind, line[a:b]) for a, b, kind in made.find(line, options.get("context", ""))]


def cleaned(*texts: str | None, **values) -> list[str | None]:
    batch = documents(*texts)
    return filter_of("private", private=values).decide(batch).columns.get("text", batch.column("text")).to_pylist()


@pytest.mark.parametrize(("kind", "value"), VALUES)
def test_a_private_value_is_found_wherever_it_stands(kind, value):
    for line in (value, f"Here: {value}.", f"({value})", f"“{value}”，", f"a {value} b", f"12 {value} 7"):
        assert found_in(line) == [(kind, value)], line


@pytest.mark.parametrize("line", LOOKALIKES)
def test_what_only_looks_private_stays(line):
    assert found_in(line) == []


@pytest.mark.parametrize("module", NATIONAL_NUMBERS)
def test_a_national_number_counts_beside_each_word_that_names_it_and_nowhere_else(module):
    number, checks = NATIONAL[module], importlib.import_module(f"stdnum.{module}")
    assert checks.is_valid(number)
    assert found_in(f"It is {number} here") == []
    wrong = number[:-1] + ("0" if number[-1] != "0" else "1")
    for word in NATIONAL_NUMBERS[module].replace(r"\.?", "").replace(r"\w*", "").split("|"):
        word = re.sub(r"\[(.).\]", r"\1", word)
        for line in (f"{word} {number}", f"my {word.upper()}: {number}, and more 12", f"{number} ({word})"):
            assert found_in(line) == [("national_id", number)], line
        assert found_in(f"x{word}y {number}") == [] or not word.isascii()
        assert checks.is_valid(wrong) or found_in(f"{word} {wrong}") == []
        assert found_in(f"{word} {'.' * 50} {number} {'.' * 30} {word}") == []


@pytest.mark.parametrize(
    ("line", "value"),
    [("电话：13800138000", "13800138000"), ("Tel. 030 1234 5678", "030 1234 5678"), ("phone (06) 12 34 56 78",
     "(06) 12 34 56 78"), ("teléfono: 91 123 45 67", "91 123 45 67"), ("a phone call of 30 12", None),
     ("tell me 030 1234 5678", None), ("030 1234 5678 is my phone", None)],
)  # fmt: skip
def test_numbers_behind_a_word_for_phones_are_phones(line, value):
    assert found_in(line, "phone") == ([("phone", value)] if value else [])


@given(st.sampled_from(sorted(phonenumbers.SUPPORTED_REGIONS)))
def test_example_numbers_of_all_countries_are_found_in_the_international_form(region):
    number = phonenumbers.example_number(region)
    form = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.INTERNATIONAL)
    fictional = re.search(r"555-01\d\d$", form)
    assert found_in(f"Reach us: {form}.", "phone") == ([] if fictional else [("phone", form)])


def test_passwords_are_found_in_urls_keys_behind_their_names_and_numbers_by_words_and_regions():
    assert found_in("the server at 8.8.4.4 answers") == [("ip", "8.8.4.4")]
    assert found_in("it is 8.8.4.4 now") == []
    line = "01 44 27 13 55 and 0144 27 1355 and 212-736-5000"
    assert found_in(line, regions=("FR",)) == [("phone", "01 44 27 13 55")]
    assert found_in(line, regions=("FR", "US")) == [("phone", "01 44 27 13 55"), ("phone", "212-736-5000")]
    assert found_in("postgres://joe:hunter2x@db.firma.de/x") == [("password", "hunter2x")]
    for line in ('api_key = "A1b2C3d4E5f6G7h8I9j0"', "Token: A1b2C3d4E5f6G7h8I9j0", "secret=>A1b2C3d4E5f6G7h8I9j0"):
        assert found_in(line) == [("key", "A1b2C3d4E5f6G7h8I9j0")], line
    assert found_in("A1b2C3d4E5f6G7h8I9j0") == []


_TEXTS = (
    st.text(max_size=60)
    | st.text("019.@:-+ aA()\u00a0", max_size=60)
    | st.sampled_from([v for _, v in VALUES] + list(NATIONAL.values()))
    | st.sampled_from(
        [" tel ", "SSN: ", "api_key=", "ip ", "://a:", "@", " ", "token: ", "BSN ", "phone", ".", "ſ", "İ"]
    )
    | st.sampled_from(SECRETS).flatmap(lambda s: st.from_regex(re.compile("".join(s), re.ASCII), fullmatch=True))
)


@given(st.lists(_TEXTS, max_size=6))
@example(["hf_", "QwErTyUiOpAsDfGhJkLzXcVbNmQwErTyUiOp"])
@example(["tel (12) (34) (56) 7"])
def test_found_values_are_in_order_and_apart_each_hint_matches_and_cutting_leaves_the_rest(pieces):
    line = "".join(pieces).replace("\n", " ")
    every = cleaner(tuple(KINDS), (), ("US", "FR"))
    found = every.find(line)
    assert all(0 <= a < b <= len(line) for a, b, _ in found)
    assert all(b <= c for (_, b, _), (c, _, _) in pairwise(found))
    for name, kind in KINDS.items():
        alone = [(m.start(), m.end()) for m in kind.pattern.finditer(line)]
        assert not alone or name in ("national_id", "phone", "key", "ip") or re.search(kind.hint, line)
    (made,) = cleaned(line, phone_regions=["US", "FR"])
    tags = "|".join(f"<{name.upper()}>" for name in KINDS)
    assert cleaned(made, phone_regions=["US", "FR"]) == [made] or not found
    rest = [line[a:b] for a, b in zip([0, *(b for _, b, _ in found)], [*(a for a, _, _ in found), None], strict=True)]
    assert made == line if not found else re.split(tags, made) == rest or re.search(tags, line)


def test_long_lines_of_digits_and_letters_are_no_trap():  # a quadratic pattern would take hours
    lines = ["1" * 100_000, "a." * 50_000 + "@", "1 " * 20_000, "A1B2 " * 10_000, "1:" * 50_000, "x@" * 50_000,
             "1." * 50_000, "a@a." * 30_000, "token" * 20_000, "eyJ" * 30_000, "-----BEGIN PRIVATE KEY-----" * 4000,
             "://a:" * 20_000, "key=" * 20_000]  # fmt: skip
    assert all(isinstance(made, str) for made in cleaned(*lines))


def test_values_become_placeholders_and_are_counted():
    assert cleaned() == [] and cleaned(None, "", "\n") == [None, "", "\n"]
    assert cleaned("a\n-----BEGIN PRIVATE KEY-----\nMIIE\nAB12==\n\n# b") == ["a\n<KEY># b"]  # without an end
    assert cleaned("a@firma.de 93.184.216.34", types=["ip"]) == ["a@firma.de <IP>"]
    made = cleaned("staff 4711-AB, a@firma.de", types=["email"], patterns={"staff_id": r"\d{4}-[A-Z]{2}"})
    assert made == ["staff <STAFF_ID>, <EMAIL>"]
    pem = f"-----BEGIN RSA PRIVATE KEY-----\n{'MIIE' * 30}\n-----END RSA PRIVATE KEY-----"
    texts = ["Write to a@firma.de or b@firma.de.\nOr call +44 20 7946 0958.", "nothing", f"key:\n{pem}\nend"]
    decision = filter_of("private").decide(documents(*texts))
    assert decision.reasons.to_pylist() == [None] * 3
    mended = ["Write to <EMAIL> or <EMAIL>.\nOr call <PHONE>.", "nothing", "key:\n<KEY>\nend"]
    assert decision.columns["text"].to_pylist() == mended
    assert decision.edited.to_pylist() == [True, False, True]
    assert {k: v for k, v in decision.notes.items() if v} == {"private_email": 2, "private_phone": 1, "private_key": 1}


def test_all_text_of_a_row_is_mended_and_what_is_counted_is_what_was_replaced():
    mail = "bo.li@web.de"
    call = {"name": "send", "arguments": json.dumps({"to": mail, "n": 12345678901234567890})}
    turns = [
        {"role": "system", "content": f"Admin: {mail}"},
        {"role": "user", "content": f"{mail} {mail}", "name": mail},
        {"role": "assistant", "content": None, "tool_calls": json.dumps([call])},
        {"role": "tool", "content": json.dumps({"found": mail, "phone": "9876543210"})},
        {"role": "user", "content": "Hi", "reasoning_content": "x", "tool_calls": "[]"},
    ]
    extra = '{"a": 1.50, "big": 123456789012345678901234, "by": {"mail": "bo.li@web.de"}, "card": 4111111111111111, '
    extra += '"bo.li\\u0040web.de": "admin", "li@web.de": 1, "phone": ["9876543210"]}'
    columns = {
        "messages": pa.array([turns], MESSAGES), "tools": [json.dumps([{"description": f"asks {mail}"}])],
        "extra": [extra], "author": pa.array([{"id": mail, "name": "Bo"}]), "phone": ["9876543210"], "bio": [mail],
        "content_hash": ["h"], "id": [f"{mail}#2"], "source": ["rows.jsonl"],
        "row_key": pa.array([(3 << 40) | 7], pa.uint64()),
    }  # fmt: skip
    decision = filter_of("private", private={"exclude": ["bio"]}).decide(pa.record_batch(columns))
    made = {n: c.to_pylist()[0] for n, c in decision.columns.items()}
    assert made["messages"][4] == pa.array([turns], MESSAGES)[0][4].as_py()
    assert "web.de" not in json.dumps(made) and "9876543210" not in json.dumps(made) and "bio" not in made
    assert made["extra"] == (
        '{"a": 1.50, "big": 123456789012345678901234, "by": {"mail": "<EMAIL>"}, "card": "<CARD>", '
        '"<EMAIL>": "admin", "<EMAIL>#2": 1, "phone": ["<PHONE>"]}'
    )
    (call,) = json.loads(made["messages"][2]["tool_calls"])
    assert json.loads(call["arguments"]) == {"to": "<EMAIL>", "n": 12345678901234567890}
    assert made["author"] == {"id": "<EMAIL>", "name": "Bo"} and made["id"] == "rows.jsonl:7"
    counts = {k: v for k, v in decision.notes.items() if v}
    assert counts == {"private_email": 12, "private_phone": 3, "private_card": 1}
    assert made["content_hash"] != "h" and decision.edited.to_pylist() == [True]


def test_passages_and_details_beside_the_rows_are_mended(tmp_path):
    item = "Please write to bo.li@web.de about the old stone bridge"
    (tmp_path / "e.jsonl").write_text(json.dumps({"q": item}))
    (tmp_path / "words").write_text("212-736-5000\n")
    about = {
        "contamination": {"eval": [str(tmp_path / "e.jsonl")]},
        "words": {"lists": {"all": str(tmp_path / "words")}},
    }
    made = filter_of("words", "contamination", "private", **about).decide(documents(item, "call 212-736-5000"))
    assert made.side_tables["matches"].column("passage").to_pylist() == [item.replace("bo.li@web.de", "<EMAIL>")]
    assert "<PHONE>" in made.detail[1].as_py() and "5000" not in str(made.detail.to_pylist())
