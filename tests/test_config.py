"""Configuration: recipe tables, flags and --set fill the same fields, and wrong values are refused by name."""

import hashlib
import io
import random
from dataclasses import dataclass
from typing import Literal

import pytest

import datakit.config as module
from datakit.config import build, digest_of, option, parse
from datakit.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    min_words: int = option(50, "words at least")

    def __post_init__(self) -> None:
        if self.min_words < 0:
            raise ConfigError(f"min_words: expected 0 or more, found {self.min_words}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    threshold: float = option(0.75, "similarity at least")
    policy: Literal["first", "longest"] = option("first", "who stays")
    languages: tuple[str, ...] = option((), "languages that are kept")
    strict: bool = option(False, "stop at the first problem")
    model: str = option("", "a model's file", path=True)
    on: Literal["all", "prompt"] | None = option(None, "the part to look at")
    rule: Rule = module.section(Rule, "a rule")


def test_values_of_a_recipe_reach_their_fields():
    made = build(Example, {"threshold": 1, "languages": ["en", "zh"], "rule": {"min-words": 3}}, "recipe [x]")
    assert made == Example(threshold=1.0, languages=("en", "zh"), rule=Rule(min_words=3))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"treshold": 1.0}, r"unknown key 'treshold'; did you mean 'threshold'\? known keys are threshold"),
        ({"threshold": "high"}, r"recipe\.threshold: expected float, found 'high'"),
        ({"threshold": True}, r"recipe\.threshold: expected float, found True"),
        ({"policy": "last"}, r"expected one of first, longest, found 'last'"),
        ({"languages": "en"}, r"expected a list, found 'en'"),
        ({"languages": [1]}, r"languages\[0\]: expected str, found 1"),
        ({"rule": 3}, r"recipe\.rule: expected a table of keys, found 3"),
        ({"rule": {"min_words": -1}}, r"recipe\.rule: min_words: expected 0 or more, found -1"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(values, message):
    with pytest.raises(ConfigError, match=message):
        build(Example, values, "recipe")


def test_set_reaches_nested_fields_and_parses_by_type():
    values: dict = {}
    for key, text in {"rule.min_words": "30", "languages": "en, zh", "strict": "true", "threshold": "0.5"}.items():
        module.assign(values, Example, key, text)
    assert values == {"rule": {"min_words": 30}, "languages": ("en", "zh"), "strict": True, "threshold": 0.5}


@pytest.mark.parametrize(("key", "text"), [("nope", "1"), ("rule", "1"), ("threshold.x", "1"), ("strict", "yes")])
def test_set_refuses_what_is_no_field_or_no_value(key, text):
    with pytest.raises(ConfigError, match="--set"):
        module.assign({}, Example, key, text)


def test_an_empty_value_of_an_optional_field_is_none():
    assert build(Example, {"on": ""}, "recipe").on is None
    assert parse("", {o.name: o.type for o in module.options(Example)}["on"], "--on") is None


def test_commas_in_brackets_separate_nothing():
    texts = r"exact, regex:^\d{1,3}$,regex:[,;](a,b),tests"
    assert parse(texts, tuple[str, ...], "--reward") == ("exact", r"regex:^\d{1,3}$", "regex:[,;](a,b)", "tests")
    assert parse("0.7,0.3", tuple[float, ...], "--weights") == (0.7, 0.3)
    assert parse("lang=en/*=3,b=.5", dict[str, float], "--weights") == {"lang=en/*": 3, "b": 0.5}


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity"])
def test_a_number_that_is_not_finite_is_refused(text):
    with pytest.raises(ConfigError, match="--threshold: expected a finite number, found"):
        parse(text, float, "--threshold")
    with pytest.raises(ConfigError, match="threshold: expected a finite number, found"):
        build(Example, {"threshold": float(text)}, "recipe")


def test_a_path_enters_the_resolved_config_by_its_name_alone():
    assert module.resolved(Example(model="/somewhere/deep/lid.176.ftz"))["model"] == "lid.176.ftz"


def test_canonical_json_is_the_same_for_equal_values_and_refuses_nan():
    assert module.canonical({"b": 1, "a": "é"}) == '{"a":"é","b":1}'.encode()
    assert module.digest({"a": 1, "b": 2}) == module.digest({"b": 2, "a": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        module.canonical(float("nan"))


@pytest.mark.parametrize("size", [0, 1, 4096, (1 << 20) - 1, 1 << 20, (3 << 20) + 5])
def test_crc_tells_every_change_of_bytes_and_sha256_is_the_same_with_it(size):
    data = random.Random(size).randbytes(size)
    others = [data + b"\0", data[:-1] + bytes([data[-1] ^ 1])] if data else [b"\0"]
    if size > 8192:  # a flipped bit, a block that was never written, two that are exchanged, two numbers too
        others += [data[:5000] + bytes([data[5000] ^ 16]) + data[5001:], data[:4096] + bytes(4096) + data[8192:]]
        others += [data[4096:8192] + data[:4096] + data[8192:], data[8:16] + data[:8] + data[16:]]
    assert len({digest_of(io.BytesIO(each), module.CRC) for each in (data, *others)}) == 1 + len(others)
    for each in (data, *others, data):
        assert digest_of(io.BytesIO(each)) == hashlib.sha256(each).hexdigest()
        assert digest_of(io.BytesIO(each), hashlib.sha256(data).hexdigest()) == hashlib.sha256(each).hexdigest()


def test_a_value_that_shapes_no_result_enters_no_manifest():
    @dataclass(frozen=True, kw_only=True, slots=True)
    class Costs:
        memory_mb: int = option(1, "memory", result=False)
        threshold: float = option(0.5, "threshold")

    assert module.resolved(Costs(memory_mb=9)) == {"threshold": 0.5}


def test_options_of_its_own_come_before_those_that_a_config_inherits():
    @dataclass(frozen=True, kw_only=True, slots=True)
    class Stricter(Rule):
        max_words: int = option(90, "words at most")

    assert [o.name for o in module.options(Stricter)] == ["max_words", "min_words"]
