import click
import pytest

from datakit.report.side_by_side import LEAST_COLUMNS, side_by_side


def shown(one: str, other: str, columns: int = 80, **more: int) -> list[str]:
    lines = [click.unstyle(line) for line in side_by_side(one, other, "this", "that", columns, **more)]
    assert {len(line) for line in lines} <= {columns}
    return lines


def test_each_text_has_its_column_and_its_marks() -> None:
    lines = shown("one two three four", "one two 3 four five")
    assert [cell.strip() for cell in lines[1].split("┃")[1:3]] == ["this", "that"]
    cells = [[c.strip() for c in line.split("│")[1:3]] for line in lines if line.startswith("│")]
    assert cells == [["one two [-three-] four", "one two {+3+} four {+five+}"]]


def test_marks_have_their_colors() -> None:
    page = "\n".join(side_by_side("a b", "a c", "this", "that", 80))
    assert "\x1b[31m[-b-]" in page and "\x1b[32m{+c+}" in page


@pytest.mark.parametrize("columns", [0, LEAST_COLUMNS - 1])
def test_a_narrow_page_has_no_columns(columns: int) -> None:
    assert side_by_side("a", "b", "this", "that", columns) == []


def test_texts_that_differ_in_white_space_alone_need_none() -> None:
    assert side_by_side("a b", "a\nb", "this", "that", 80) == []


def test_only_some_of_many_places_are_shown() -> None:
    one = " ".join(f"w{n} the very same" for n in range(30))
    lines = shown(one, one.replace("w", "v"), context=1, most_places=2)
    assert sum("[-" in line for line in lines) == 2 and any("and 28 more places" in line for line in lines)
    lines = shown(one, one.replace("w", "v"), context=2)
    assert "more places" not in "".join(lines), "near places are one"


def test_neither_markup_nor_control_characters_reach_the_terminal() -> None:
    page = "\n".join(side_by_side("[bold]x[/bold] \x1b[5m", "[bold]y[/bold] \x1b[5m", "[i]", "b\nc", 80))
    assert "[bold]x[/bold]" in click.unstyle(page) and "\\u001b[5m" in page and "\x1b[5m" not in page


def test_wide_characters_keep_the_columns_straight() -> None:
    lines = [click.unstyle(line) for line in side_by_side("我们去学校" * 30, "我们回学校" * 30, "a", "b", 70)]
    assert sum("我" in line for line in lines) > 3 and all(line[-1] in "┓┃┩│┤┘" for line in lines)


def test_long_texts_are_compared_by_lines_then_words() -> None:
    lines = [f"line {n} of many with some words" for n in range(1900)]
    other = ["line 0 is new", *lines[1:], "the end"]
    cells = [
        [c.strip() for c in line.split("│")[1:3]]
        for line in shown("\n".join(lines), "\n".join(other), 100)
        if "│" in line
    ]
    assert cells == [["line 0 [-of many with some words-]", "line 0 {+is new+}"], ["", "{+the end+}"]]
