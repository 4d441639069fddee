"""Two texts with their differences marked."""

import click
import pytest

from datakit.report.finder import body, differences, shorten


def shown(one: str, other: str, **most: int) -> list[str]:
    return [click.unstyle(line) for line in differences(one, other, **most)]


@pytest.mark.parametrize(
    ("one", "other", "lines"),
    [
        ("a b c d", "a b x d", ["a b [-c-] {+x+} d"]), ("a b c", "a b c d", ["a b c {+d+}"]), ("a b", "b", ["[-a-] b"]),
        ("", "a", ["{+a+}"]), ("a b", "a\n b", ["the texts differ only in white space"]),
        ("a", "a", ["the texts are equal"]), ("我们去学校", "我们回学校", ["我 们 [-去-] {+回+} 学 校"]),
        ("x \x1b[31m", "y \x1b[31m", ["[-x-] {+y+} \\u001b[31m"]),
    ],
)  # fmt: skip
def test_what_one_text_alone_has_is_marked(one, other, lines):
    assert shown(one, other) == lines


def test_marks_have_their_colors():
    assert differences("a b", "a c") == ["a \x1b[31m[-b-]\x1b[0m \x1b[32m{+c+}\x1b[0m"]


def test_long_texts_show_every_place_where_they_differ():
    lines = [f"line {n} of many with some words" for n in range(1500)]
    other = list(lines)
    other[7], other[1400] = "line 7 of many with other words", "line 1400 of many words"
    del other[700]
    assert shown("\n".join(lines), "\n".join(other), context=2) == [
        "many with [-some-] {+other+} words line",
        "words line [-700 of many with some words line-] 701 of",
        "of many [-with some-] words line",
    ]


def test_texts_that_have_nothing_in_common_show_how_they_begin_and_long_words_where_they_differ():
    one, other = (" ".join(f"{letter}{n}" for n in range(40_000)) for letter in "ab")
    lines = shown(one, other, most_words=2)
    assert lines[0].startswith("[-a0 a1 … ") and "{+b0 b1 … " in lines[0]
    one, other = "x" * 200_000, "x" * 150_000 + "y" * 50_000
    (line,) = shown(one, other)
    assert line.startswith("xxxx") and "[-xxxx" in line and "{+yyyy" in line and len(line) < 5500


def test_a_row_is_one_line_without_control_characters():
    assert shorten('He said "hi"\r\nand\\n\x1b[31mleft.') == 'He said "hi"↵and\\n\\u001b[31mleft.'
    assert shorten(body({"raw": b'{"a":"\xff\xc3\xa9"}'})) == '{"a":"\\xffé"}'


def test_only_some_of_many_places_and_words_are_shown():
    one = " ".join(f"w{n} the very same" for n in range(30))
    lines = shown(one, one.replace("w", "v"), context=1, most_changes=2)
    assert len(lines) == 3 and lines[-1] == "and 28 more places"
    assert "more places" not in shown(one, one.replace("w", "v"), context=2)[-1], "near places are one"
    assert shown("start " + "x " * 50, "start", most_words=3) == ["start [-x x x … 47 more-]"]


def test_a_change_in_texts_of_megabytes_is_found_at_once():
    many = "many equal words " * 100_000
    lines = shown("a " + many + "the end", "b " + many + "an end")
    assert lines[:2] == [
        "[-a-] {+b+} many equal words many equal words many equal",
        "equal words many equal words many equal words [-the-] {+an+} end",
    ]
    assert shown(many, many + " ") == ["the texts differ only in white space"]
