import pytest

from datakit.report.differences import differences


@pytest.mark.parametrize(
    ("one", "other", "lines"),
    [
        ("a b c d", "a b x d", ["a b [-c-] {+x+} d"]),
        ("a b c", "a b c d", ["a b c {+d+}"]),
        ("a b", "b", ["[-a-] b"]),
        ("", "a", ["{+a+}"]),
        ("a b", "a\n b", ["the texts differ in white space alone"]),
        ("a", "a", ["the texts are equal"]),
        ("我们去学校", "我们回学校", ["我 们 [-去-] {+回+} 学 校"]),
        ("x \x1b[31m", "y \x1b[31m", ["[-x-] {+y+} \\u001b[31m"]),
    ],
)
def test_what_one_text_alone_has_is_marked(one: str, other: str, lines: list[str]) -> None:
    assert [click_free(line) for line in differences(one, other)] == lines


def click_free(line: str) -> str:
    return line.replace("\x1b[31m", "").replace("\x1b[32m", "").replace("\x1b[0m", "")


def test_long_texts_are_compared_by_lines_then_words() -> None:
    lines = [f"line {n} of many with some words" for n in range(3000)]
    other = list(lines)
    other[7], other[2900] = "line 7 of many with other words", "line 2900 of many words"
    del other[1500]
    assert [click_free(line) for line in differences("\n".join(lines), "\n".join(other))] == [
        "line 7 of many with [-some-] {+other+} words",
        "[-line 1500 of many with some words-]",
        "… and what is behind it, which is too long to compare",
    ]
    other = ["line 0 is new", *lines[1:1899], "the end"]
    shown = [click_free(line) for line in differences("\n".join(lines[:1900]), "\n".join(other))]
    assert shown == [
        "line 0 [-of many with some words-] {+is new+}",
        "[-line 1899 of many with some words-] {+the end+}",
    ]


def test_only_some_of_many_places_and_words_are_shown() -> None:
    one = " ".join(f"w{n} same" for n in range(30))
    shown = differences(one, one.replace("w", "v"), most_changes=2)
    assert len(shown) == 3 and shown[-1] == "and 28 more places"
    shown = differences("start " + "x " * 50, "start", most_words=3)
    assert click_free(shown[0]) == "start [-x x x … 47 more-]"


def test_a_change_in_texts_of_megabytes_is_found_at_once() -> None:
    many = "many equal words " * 300_000
    shown = differences(many + "the end", many + "an end")
    assert len(shown) == 1 and click_free(shown[0]).endswith("words [-the-] {+an+} end")
    shown = differences("one " + many, "two " + many)
    assert len(shown) == 1 and click_free(shown[0]).startswith("[-one-] {+two+} many equal")
    shown = differences("a " + many + "the end", "b " + many + "an end")
    assert [click_free(line) for line in shown][:2] == [
        "… and what is behind it, which is too long to compare",
        "[-a-] {+b+} many equal words many equal words many equal",
    ]
    assert differences(many, many + " ") == ["the texts differ in white space alone"]
