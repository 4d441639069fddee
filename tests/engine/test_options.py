"""Every option acts, or is refused: it changes the result's key, or ends in an error; what does neither is listed."""

from typing import Any, get_args

import pyarrow as pa
import pytest

import datakit
from datakit.config import Option, build, options, refuse_idle, resolved
from datakit.engine.recipe import STAGES, stage_class
from datakit.errors import ConfigError, DatakitError
from tests.files import PROSE, says, user

MEMORY_ALONE = ("dedup", "dedup_urls", "dedup_repeats", "dedup_semantic", "perplexity_model")
"""Stages whose `memory_mb` shapes memory and time, never the result: it must not enter the key."""
PLACES = {
    ("tokenize", "tokenizer"), ("tokenize", "chat_template"), ("classify", "model"),
    ("dedup_semantic", "model"), ("language", "model"), ("perplexity", "models"),
    ("perplexity_model", "tokenizer"), ("filter", "contamination.eval"), ("filter", "lengths.tokenizer"),
    ("dedup", "against"), ("dedup_urls", "against"), ("dedup_repeats", "against"), ("filter", "urls.lists"),
    ("filter", "words.lists"),
}  # fmt: skip
"""Files and manifests: the digest of their content enters the key, not their name."""
ALL = [(stage, section, o) for stage in STAGES for section, o in (
    pair for top in options(stage_class(stage).Config)
    for pair in ([(top.name, o) for o in options(top.nested)] if top.nested else [("", top)])
)]  # fmt: skip


def other_value(o: Option) -> Any:
    """A value that differs from the default."""
    kinds = (o.type, *get_args(o.type))
    if o.choices:
        return next(choice for choice in o.choices if choice != o.default)
    if isinstance(o.default, bool):
        return not o.default
    if isinstance(o.default, int | float):
        return o.default / 2 or type(o.default)(1) if isinstance(o.default, float) else o.default + 3
    if isinstance(o.default, dict):
        return {"a": dict.get({int: 1, float: 0.5}, get_args(o.type)[1], "x")}
    if isinstance(o.default, tuple):
        return o.default[:-1] or (dict.get({int: 1}, get_args(o.type)[0], "x"),)
    return 0.5 if float in kinds else 2 if int in kinds else "highest:n" if o.name == "policy" else "x"


@pytest.mark.parametrize(
    ("stage", "section", "o"), ALL, ids=[f"{s}.{n}.{o.name}".replace("..", ".") for s, n, o in ALL]
)
def test_another_value_changes_the_key_or_is_refused(stage, section, o):
    values, refused = {o.name: other_value(o)}, ""
    try:
        changed = build(stage_class(stage).Config, {section: values} if section else values, stage)
    except ConfigError as e:
        refused = str(e)
    if refused:
        assert o.name in refused or repr(other_value(o)) in refused or "'x'" in refused
        return
    plain = build(stage_class(stage).Config, {section: {}} if section else {}, stage)
    name = f"{section}.{o.name}" if section else o.name
    if o.name == "memory_mb" and stage in MEMORY_ALONE:
        assert resolved(changed) == resolved(plain)
    elif (stage, name) not in PLACES and (stage, name) != ("ingest", "kind"):
        assert resolved(changed) != resolved(plain)


@pytest.mark.parametrize("kind", ["document", "conversation", "preference"])
def test_what_an_option_acts_with_are_options_and_values_that_there_are(kind):
    for stage, section, o in ALL:
        beside = stage_class(stage).Config
        beside = next(top.nested for top in options(beside) if top.name == section) if section else beside
        names = {other.name: other for other in options(beside)}  # type: ignore[arg-type]
        for name, values in o.acts_with.items():
            assert name == "kind" or name in names
            assert name == "kind" or not names[name].choices or set(values) <= set(names[name].choices)
    refuse_idle(build(stage_class("filter").Config, {"lengths": {"tokenizer": "x", "max_tokens": 3}}, "filter"), kind)


TEXTS = pa.table({"text": [PROSE * 4, PROSE * 5]})
TALKS = pa.table({"messages": [[user("Tell me."), says(PROSE)]]})


@pytest.mark.parametrize(
    ("stage", "rows", "values", "words"),
    [
        ("dedup", TEXTS, {"match": "near"}, r"dedup\.match = 'near' .* rows of the kind conversation or preference"),
        ("dedup", TALKS, {"threshold": 0.9}, r"rows of the kind document, or match = near"),
        ("dedup", TALKS, {"keep_per_prompt": 2}, "on = prompt"),
        ("language", TEXTS, {"on": "prompt"}, "kind document"),
        ("language", TEXTS, {"min_score": 0.9}, "languages"),
        ("filter", TEXTS, {"rules": ["lengths"], "lengths": {"tokenizer": "x"}}, "tokenizer = 'x' would do nothing"),
        ("dedup_repeats", TEXTS, {"max_repeated_share": 0.5, "min_words_left": 9}, "max_repeated_share"),
        ("ingest", TEXTS, {"extractor": "trafilatura"}, "extractor = 'trafilatura'"),
        ("ingest", TEXTS, {"roles": {"a": "user"}}, "roles"),
        ("ingest", TALKS, {"text_split": "line"}, "text_split"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(stage, rows, values, words):
    with pytest.raises(DatakitError, match=words):
        getattr(datakit, stage)(rows, **values)


def test_the_same_options_act_where_they_have_what_they_need():
    result = datakit.dedup(TALKS, match="near", threshold=0.9)
    assert result.kept.num_rows == 1
    assert datakit.language(TEXTS, languages=["en"], min_score=0.1).kept.num_rows == 2
