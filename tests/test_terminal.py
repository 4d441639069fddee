"""What is printed: no control characters from data, JSON stays JSON, our own colours stay."""

import io
import json
import sys

from hypothesis import given
from hypothesis import strategies as st

from datakit.terminal import PrintableStream, guarded_output, printable

BAD = [*range(9), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F]
BAD += [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]


@given(st.text())
def test_no_control_character_is_left(text):
    shown = printable(text)
    assert not {chr(c) for c in BAD} & set(shown)
    assert shown.encode().decode() == shown


def test_every_control_character_is_spelled_out_and_no_other():
    for code in BAD:
        assert printable(f"a{chr(code)}b") == f"a\\u{code:04x}b"
    assert printable("a\tb\nc \u00e9\u4e2d\U0001f600\u00a0") == "a\tb\nc \u00e9\u4e2d\U0001f600\u00a0"


def test_json_with_control_characters_has_the_same_values():
    value = {"a\u202e": "\x1b[2J \x9b31m \u2066"}
    assert json.loads(printable(json.dumps(value, ensure_ascii=False))) == value


def test_only_plain_colours_pass_a_stream():
    stream = io.StringIO()
    PrintableStream(stream).write("\x1b[31mred\x1b[0m \x1b[2J\x1b[8m\x1b]0;title\x07")
    assert stream.getvalue() == "\x1b[31mred\x1b[0m \\u001b[2J\\u001b[8m\\u001b]0;title\\u0007"


def test_everything_that_is_printed_passes(capsys):
    before = sys.stdout
    with guarded_output():
        print("\x1b[2J\u202e", file=sys.stdout)
        print("\x07", file=sys.stderr)
    assert sys.stdout is before
    assert capsys.readouterr() == ("\\u001b[2J\\u202e\n", "\\u0007\n")
