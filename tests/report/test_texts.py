"""Two texts with their differences marked, below one another and in two columns."""

import click
import pytest

from datakit.report.finder import body, shorten
from datakit.report.texts import LEAST_COLUMNS, differences, side_by_side


@pytest.mark.parametrize(
    ("one", "other", "lines"),
    [
        ("a b c d", "a b x d", ["a b [-c-] {+x+} d"]),
        ("a b c", "a b c d", ["a b c {+d+}"]),
        ("a b", "b", ["[-a-] b"]),
        ("", "a", ["{+a+}"]),
        ("a b", "a\n b", ["the texts differ only in white space"]),
        ("a", "a", ["the texts are equal"]),
        ("我们去学校", "我们回学校", ["我 们 [-去-] {+回+} 学 校"]),
        ("x \x1b[31m", "y \x1b[31m", ["[-x-] {+y+} \\u001b[31m"]),
    ],
)
def test_what_one_text_alone_has_is_marked(one: str, other: str, lines: list[str]) -> None:
    assert [click.unstyle(line) for line in differences(one, other)] == lines


def test_long_texts_show_every_place_where_they_differ() -> None:
    lines = [f"line {n} of many with some words" for n in range(3000)]
    other = list(lines)
    other[7], other[2900] = "line 7 of many with other words", "line 2900 of many words"
    del other[1500]
    assert [click.unstyle(line) for line in differences("\n".join(lines), "\n".join(other), context=2)] == [
        "many with [-some-] {+other+} words line",
        "words line [-1500 of many with some words line-] 1501 of",
        "of many [-with some-] words line",
    ]


def test_texts_of_200000_characters_that_have_nothing_in_common_show_how_they_begin() -> None:
    one, other = " ".join(f"a{n}" for n in range(40_000)), " ".join(f"b{n}" for n in range(40_000))
    shown = [click.unstyle(line) for line in differences(one, other, most_words=2)]
    assert shown[0].startswith("[-a0 a1 … ") and "{+b0 b1 … " in shown[0]
    assert len(columns_of(one, other, 100)) > 5
    one, other = "x" * 200_000, "x" * 150_000 + "y" * 50_000
    (shown,) = [click.unstyle(line) for line in differences(one, other)]
    assert shown.startswith("[-…xxxx") and "{+…xxxx" in shown and "xyyy" in shown


def test_a_row_is_one_line_without_control_characters() -> None:
    assert shorten('He said "hi"\r\nand\\n\x1b[31mleft.') == 'He said "hi"↵and\\n\\u001b[31mleft.'
    assert shorten(body({"raw": b'{"a":"\xff\xc3\xa9"}'})) == '{"a":"\\xffé"}'


def test_only_some_of_many_places_and_words_are_shown() -> None:
    one = " ".join(f"w{n} the very same" for n in range(30))
    shown = differences(one, one.replace("w", "v"), context=1, most_changes=2)
    assert len(shown) == 3 and shown[-1] == "and 28 more places"
    shown = differences("start " + "x " * 50, "start", most_words=3)
    assert click.unstyle(shown[0]) == "start [-x x x … 47 more-]"


def test_a_change_in_texts_of_megabytes_is_found_at_once() -> None:
    many = "many equal words " * 300_000
    shown = differences(many + "the end", many + "an end")
    assert len(shown) == 1 and click.unstyle(shown[0]).endswith("words [-the-] {+an+} end")
    shown = differences("one " + many, "two " + many)
    assert len(shown) == 1 and click.unstyle(shown[0]).startswith("[-one-] {+two+} many equal")
    shown = differences("a " + many + "the end", "b " + many + "an end")
    assert [click.unstyle(line) for line in shown][:2] == [
        "[-a-] {+b+} many equal words many equal words many equal",
        "equal words many equal words many equal words [-the-] {+an+} end",
    ]
    assert differences(many, many + " ") == ["the texts differ only in white space"]


def columns_of(one: str, other: str, columns: int = 80, **more: int) -> list[str]:
    lines = [click.unstyle(line) for line in side_by_side(one, other, "this", "that", columns, **more)]
    assert {len(line) for line in lines} <= {columns}
    return lines


def test_each_text_has_its_column_and_its_marks() -> None:
    lines = columns_of("one two three four", "one two 3 four five")
    assert [cell.strip() for cell in lines[1].split("┃")[1:3]] == ["this", "that"]
    cells = [[c.strip() for c in line.split("│")[1:3]] for line in lines if line.startswith("│")]
    assert cells == [["one two [-three-] four", "one two {+3+} four {+five+}"]]


def test_marks_have_their_colors() -> None:
    page = "\n".join(side_by_side("a b", "a c", "this", "that", 80))
    assert "\x1b[31m[-b-]" in page and "\x1b[32m{+c+}" in page


@pytest.mark.parametrize("columns", [0, LEAST_COLUMNS - 1])
def test_a_narrow_page_and_texts_that_differ_in_only_white_space_have_no_columns(columns: int) -> None:
    assert side_by_side("a", "b", "this", "that", columns) == side_by_side("a b", "a\nb", "this", "that", 80) == []


def test_only_some_of_many_places_are_shown() -> None:
    one = " ".join(f"w{n} the very same" for n in range(30))
    lines = columns_of(one, one.replace("w", "v"), context=1, most_places=2)
    assert sum("[-" in line for line in lines) == 2 and any("and 28 more places" in line for line in lines)
    lines = columns_of(one, one.replace("w", "v"), context=2)
    assert "more places" not in "".join(lines), "near places are one"


def test_neither_markup_nor_control_characters_reach_the_terminal() -> None:
    page = "\n".join(side_by_side("[bold]x[/bold] \x1b[5m", "[bold]y[/bold] \x1b[5m", "[i]", "b\nc", 80))
    assert "[bold]x[/bold]" in click.unstyle(page) and "\\u001b[5m" in page and "\x1b[5m" not in page


def test_wide_characters_keep_the_columns_straight() -> None:
    lines = [click.unstyle(line) for line in side_by_side("我们去学校" * 30, "我们回学校" * 30, "a", "b", 70)]
    assert sum("我" in line for line in lines) > 3 and all(line[-1] in "┓┃┩│┤┘" for line in lines)
