"""Strings with origins: every operation gives what `str` gives, and origins are never mixed up."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datakit.pack.tracked import UNKNOWN, WIDTH, Tracked, concat, join, opaque, tags, track

TEXT = st.text(alphabet="ab \n<>/ẞİ", max_size=12)

OPERATIONS = {
    "strip": lambda s: s.strip(),
    "lstrip new lines": lambda s: s.lstrip("\n"),
    "rstrip letters": lambda s: s.rstrip("ab"),
    "split": lambda s: "|".join(s.split()),
    "split on": lambda s: s.split("<")[-1],
    "split twice": lambda s: s.split("a", 1)[0],
    "rsplit": lambda s: s.rsplit("b", 1)[-1],
    "rsplit white space": lambda s: s.rsplit(None, 1)[-1] if s.split() else "",
    "splitlines": lambda s: s.splitlines()[-1] if s else "",
    "splitlines keeping ends": lambda s: s.splitlines(True)[0] if s else "",
    "partition": lambda s: s.partition("<")[2],
    "rpartition": lambda s: s.rpartition(">")[0],
    "replace": lambda s: s.replace("a", "xyz"),
    "replace once": lambda s: s.replace("b", "", 1),
    "slice": lambda s: s[1:-1],
    "index": lambda s: s[-1] if s else "",
    "step": lambda s: s[::-1],
    "add": lambda s: s + "!" + s,
    "radd": lambda s: "!" + s,
    "multiply": lambda s: s * 2,
    "removeprefix": lambda s: s.removeprefix("a"),
    "removesuffix": lambda s: s.removesuffix("a"),
    "join": lambda s: s.join(["x", "y"]),
    "iterate": lambda s: "".join(s),
    "lower": lambda s: s.lower(),
    "upper": lambda s: s.upper(),
    "capitalize": lambda s: s.capitalize(),
    "title": lambda s: s.title(),
    "str": lambda s: str(s),
}


@pytest.mark.parametrize("name", OPERATIONS)
@given(text=TEXT)
def test_every_operation_gives_the_text_that_str_gives(name, text):
    assert OPERATIONS[name](track(text, 3)) == OPERATIONS[name](text)


def letters_by_origin(text: Tracked) -> None:
    """Every lower-case letter came from the row, every upper-case letter from the template."""
    tagged = {i for start, end, _ in text.spans for i in range(start, end)}
    for i, c in enumerate(text):
        if c in string.ascii_letters:
            assert (i in tagged) == c.islower(), (str.__str__(text), text.spans)


PARTS = st.lists(st.tuples(st.booleans(), st.text(alphabet="ab c\n", max_size=6)), min_size=1, max_size=6)
FOLLOWED = [
    lambda s: s.strip(),
    lambda s: s.lstrip("\n "),
    lambda s: s.split("a")[-1],
    lambda s: join("-", s.split("b")),
    lambda s: join("X", s.split()),
    lambda s: s.replace("c", "Q"),
    lambda s: s[1:],
    lambda s: s[:-1] + "END",
    lambda s: "HEAD" + s,
    lambda s: s.partition("B")[2],
    lambda s: concat([s.rpartition(" ")[0], "Z", s]),
    lambda s: join(s, ["P", "R"]),
    lambda s: concat(s.splitlines(True)),
]


@given(parts=PARTS, chosen=st.lists(st.sampled_from(FOLLOWED), max_size=4))
def test_a_chain_of_operations_never_mixes_up_origins(parts, chosen):
    text = concat([track(p, 5) if row else p.upper() for row, p in parts])
    for operation in chosen:
        text = operation(text if isinstance(text, Tracked) else Tracked(text))
    letters_by_origin(text if isinstance(text, Tracked) else Tracked(text))


def test_two_rows_text_keep_their_tags():
    text = join(", ", [track("one", 1), "AND", track("two", 2)])
    assert text == "one, AND, two"
    assert text.spans == ((0, 3, 1), (10, 13, 2))


def test_what_cannot_be_followed_carries_its_only_origin_or_unknown():
    assert opaque("xy", track("a", 4)).spans == ((0, 2, 4),)
    assert opaque("xy", [track("a", 4)], {"k": track("b", 4 + WIDTH)}).spans == ((0, 2, UNKNOWN),)
    assert opaque("xy", [track("a", 4)], {"k": track("b", 3)}).spans == ((0, 2, 3),)  # two fields of one message
    assert opaque("xy", "a") == "xy"
    assert not isinstance(opaque("xy", "a"), Tracked)


def test_keys_and_values_of_json_are_tracked_and_plain_lookups_still_work():
    value = track({"name": "f", "arguments": {"n": 1, "s": ["x"]}}, 7)
    assert value["arguments"]["s"] == ["x"]
    assert tags(value) == {7}
