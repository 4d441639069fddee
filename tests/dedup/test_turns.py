"""Conversations and preference pairs: which differences count, and that no two structures share a digest."""

import re
import unicodedata
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datakit.config import build
from datakit.dedup import turn_digests as kernels
from datakit.dedup.cluster import least_similar_turn
from datakit.dedup.stage import Dedup, DedupConfig
from datakit.dedup.turn_digests import TURN_SHIFT, digests_of, plain, turns_of
from datakit.errors import ConfigError
from datakit.text import words
from datakit.text.words import PAUSES, TERMINALS, character_table, entry, hash_values, split_words
from tests.dedup.conftest import Messages, conversations, deduplicate, pair, preferences, talk
from tests.dedup.runs import Runs
from tests.files import says, user

BREAKS = "\n\v\f\r\x85\u2028\u2029"
CODE = re.compile(r"(?<!`)(`+)(?!`).*?((?<!`)\1(?!`)|\Z)", re.DOTALL)


# The form by which texts are equal, in plain Python.


def exact_form(text: str) -> str:
    return spaced(unicodedata.normalize("NFC", text))


def spaced(text: str) -> str:
    out, run = "", ""
    for char in text:
        if char.isspace():
            run = char if char in BREAKS else run + char
            continue
        columns = 0
        for space in run[1:] if run and run[0] in BREAKS else "":
            columns = (columns // 4 + 1) * 4 if space == "\t" else columns + 1
        out += ("\n" + " " * columns if columns else " " if run else "") * bool(out) + char
        run = ""
    return out


def is_kind(char: str, kinds: str) -> bool:
    return unicodedata.category(char).startswith(tuple(kinds.split()))


def loose_form(text: str) -> str:
    text = exact_form(text)
    code = {at for span in CODE.finditer(text) for at in range(*span.span())}
    kept = made = ""
    for at, char in enumerate(text):
        last = next((c for c in reversed(kept) if c in "` \n" or is_kind(c, "L M N Ps Pe")), " ")
        after = re.sub(MARKS_AND_MORE, "", text[at:])[:1]
        spaceless = [entry(c) & words.SPACELESS for c in kept if entry(c) & words.WORD][-1:] == [words.SPACELESS]
        ends = spaceless or not after.strip() or entry(after) & words.SPACELESS
        end = "".join(c if c == "`" or is_kind(c, "L M Pe Pi Pf") or c in "\"'" else " " for c in kept).split(" ")[-1]
        factorial = char in "!！" and not spaceless and sum(is_kind(c, "L") + 2 * (c == "`") for c in end) < 2
        mark = char in TERMINALS + PAUSES and (is_kind(last, "L M N Pe") or last == "`") and ends and not factorial
        if at in code or not (mark or char in "¿¡"):
            kept, made = kept + char, made + (char if at in code else char.casefold())
    return spaced(made)


CLOSING = "".join(map(chr, filter(lambda code: is_kind(chr(code), "Pe Pi Pf"), range(1 << 16))))
MARKS_AND_MORE = f"^[{re.escape(TERMINALS + PAUSES + CLOSING)}\"'*_]*"
alphabet = st.sampled_from([*"aB7- \t\n.,!?;\"')(*%`=ß中，。！７’¿\u00e9\u0301\u3000\u2028"])


@given(st.lists(st.text(alphabet, max_size=30), max_size=5))
@example(
    ["a\n\tb", "5!", "Ab!", "a?!", '(Ab)."', "**Ab:** a", "中，中", "中，7", "a，a", "\n a", "a\n \n b", "``A`` A. `A"]
)
def test_texts_are_equal_by_the_form_that_plain_python_makes(texts):
    array = pa.array(texts, pa.string())
    assert plain(array, False).to_pylist() == [exact_form(text) for text in texts]
    assert plain(array, True).to_pylist() == [loose_form(text) for text in texts]


@pytest.mark.parametrize(
    ("one", "other", "match"),
    [
        ("a  b\n\nc", " a b\u3000c\r\n", "exact"), ("caf\u00e9", "cafe\u0301", "exact"),
        ("if a:\n\tb", "if a:\n    b", "exact"), ("What is up?", "what is UP", "loose"),
        ("你好，世界！", "你好世界", "loose"), ("Well... yes?!", "well yes", "loose"),
        ("¿Cómo estás?", "cómo estás", "loose"), ("كيف حالك؟", "كيف حالك", "loose"), ("यह ठीक है।", "यह ठीक है", "loose"),
        ("**Note:** $X$ is `A`.", "**note** $x$ is `A`", "loose"), ("50%, (C++).", "50% (c++)?", "loose"),
        ("你好,世界", "你好，世界", "loose"), ("Is it `A`?", "Is it `a`?", ""), ("one two", "one too", ""),
        ("```\nx = 5.\n```", "```\nx = 5\n```", ""), ("if a:\n  b", "if a:\nb", ""), ("What is 5!", "What is 5", ""),
        ("Solve n!", "Solve n", ""), ("-5", "5", ""), ("C", "C++", ""), ("a ? b : c", "a b c", ""), ("a.b", "ab", ""),
        ("3.5", "35", ""), ("1..5", "1.5", ""), (".NET", "NET", ""), ("A、B", "AB", ""),
    ],
)  # fmt: skip
def test_what_counts_between_two_turns(one, other, match):
    rows = conversations(talk(one, "Yes"), talk(other, "Yes"))
    dropped = {how for how in ("exact", "loose") if deduplicate(rows, match=how).rows}
    assert dropped == {"exact": {"exact", "loose"}, "loose": {"loose"}, "": set()}[match]
    assert deduplicate(rows).notes.get("stay_but_for_loose", 0) == (match == "loose")


# Digests.

texts = st.sampled_from(["", "a", "b", "ab", "a:", "1:a", "user", "0:4:"])
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "tool"]), "content": texts},
    optional={"name": texts, "reasoning_content": texts, "tool_calls": texts},
)
talks = st.lists(messages, max_size=4)


def structure(row: Messages) -> tuple[Any, ...]:
    names = ("role", "name", "reasoning_content", "content", "tool_calls")
    return tuple(tuple(message.get(name) or "" for name in names) for message in row)


def digests(batch: pa.RecordBatch, **config: Any) -> list[bytes]:
    found, _ = digests_of(turns_of(batch, DedupConfig(**config)), False)
    return [row.tobytes() for row in found]


@given(st.lists(st.lists(talks, min_size=3, max_size=3), min_size=2, max_size=6))
def test_rows_share_a_digest_exactly_if_they_have_one_structure(rows):
    for batch, sides in ((preferences(rows), 3), (conversations(*(row[0] for row in rows)), 1)):
        found = digests(batch)
        made = [[structure(side) for side in row[:sides]] for row in rows]
        assert [[one == other for other in found] for one in found] == [[a == b for b in made] for a in made]


@given(talks, talks)
def test_the_state_after_a_turn_is_the_digest_of_the_row_up_to_there(one, other):
    _, every = digests_of(turns_of(conversations(one, other), DedupConfig()), False)
    beginnings = [row[: end + 1] for row in (one, other) for end in range(len(row))]
    assert [state.tobytes() for state in every] == digests(conversations(*beginnings))


# What is compared of a row.


def test_rows_that_share_a_context_and_differ_in_question_or_answer_all_stay():
    context = " ".join(f"word{n}" for n in range(400))
    rows = conversations(
        talk(f"{context} What is the capital of France?", "Paris."),
        talk(f"{context} What is the capital of Spain?", "Paris."),
        talk(f"{context} What is the capital of France?", "Lyon."),
        talk("What is the capital of France?", "Paris.", system=context),
        talk("What is the capital of Spain?", "Paris.", system=context),
    )
    for match in ("exact", "loose"):
        assert deduplicate(rows, match=match).rows == {}
    assert deduplicate(rows, match="near").kept == ["0", "2", "3", "4"], "one word of 400 is above any threshold"


def test_system_prompts_tools_and_calls_count():
    call, other = (says("", tool_calls=f'[{{"name": "{name}"}}]') for name in ("up", "down"))
    result = [{"role": "tool", "name": name, "content": "1"} for name in ("up", "down")]
    go = user("Go")
    rows = conversations(
        [go, call], [go, other], [go, call, result[0]], [go, call, result[1]], talk("Go", "A", system="1"),
        talk("Go", "A", system="2"), talk("Go", "A"), talk("Go", "A"), tools=["", "", "", "", "", "", "x", "y"],
    )  # fmt: skip
    assert deduplicate(rows, prefix=False).rows == {}
    assert deduplicate(rows, prefix=False, include_system=False).kept == ["0", "1", "4"]
    assert deduplicate(rows, on="prompt").kept == ["0", "2", "3", "4", "5", "6", "7"]
    assert deduplicate(rows, on="prompt", include_system=False).kept == ["0"]
    assert deduplicate(rows, on="answer").kept == ["0", "1", "4"]


def test_a_conversation_that_another_begins_with_is_dropped_for_the_longest():
    turns = ["What?", "That.", "And?", "Nothing.", "Bye", "Bye"]
    rows = conversations(*(talk(*turns[:n]) for n in (2, 2, 6, 4, 1)), talk(*turns[:3], "Else"), talk("Hm", "That."))
    expected = dict.fromkeys("0134", ("prefix", "2", 1.0))
    for cut in (1, 3, 10):
        assert deduplicate(rows, cut=cut).rows == expected
    assert deduplicate(rows, prefix=False).rows == {"1": ("exact_duplicate", "0", 1.0)}
    assert deduplicate(rows, on="prompt").kept == ["0", "2", "3", "6"]
    cased = conversations(talk("what", "that"), talk(*turns))
    assert deduplicate(cased).rows == {}
    assert deduplicate(cased, match="loose").rows == {"0": ("prefix", "1", 1.0)}


def test_rows_that_share_a_beginning_only_are_not_even_compared():
    rows = [talk(f"Question {n}", "Answer", system="The same for all") for n in range(50)]
    outcome = deduplicate(conversations(*rows))
    assert outcome.rows == {} and outcome.groups == 0
    assert deduplicate(conversations(*rows, rows[3][:2])).rows == {"50": ("prefix", "3", 1.0)}


def test_so_many_answers_of_a_prompt_stay():
    rows = [talk("Why?", answer) for answer in ("A", "B", "B", "C", "D")] + [talk("Who?", "A"), talk("why", "E")]
    scores = pa.array([1.0, 2.0, 2.0, 5.0, 4.0, 0.0, 3.0])
    batch = conversations(*rows).append_column("score", scores)
    best = deduplicate(batch, on="prompt", keep_per_prompt=2, policy="highest:score")
    assert best.kept == ["3", "4", "5", "6"]
    assert best.rows["0"] == best.rows["1"] == ("exact_duplicate", "3", 1.0)
    assert deduplicate(batch, on="prompt", keep_per_prompt=3).kept == ["0", "1", "3", "5", "6"]
    assert deduplicate(batch, on="prompt", keep_per_prompt=3).rows["2"] == ("exact_duplicate", "1", 1.0)
    assert deduplicate(batch, on="prompt", keep_per_prompt=2, match="loose").kept == ["0", "1", "5"]
    with pytest.raises(ConfigError, match="keep_per_prompt"):
        build(DedupConfig, {"keep_per_prompt": 2}, "dedup")


def test_of_equal_rows_the_policy_chooses():
    batch = conversations(*[talk("Why?", "So.")] * 3, talk("why", "So")).append_column("score", pa.array([1, 3, 2, 9]))
    assert deduplicate(batch, policy="highest:score").rows == dict.fromkeys("02", ("exact_duplicate", "1", 1.0))
    loose = deduplicate(batch, match="loose", policy="highest:score")
    assert loose.rows == dict.fromkeys("012", ("loose_duplicate", "3", 1.0))
    assert deduplicate(batch, match="loose").rows["1"] == ("exact_duplicate", "0", 1.0)
    assert deduplicate(batch, match="loose").rows["3"] == ("loose_duplicate", "0", 1.0)


def test_a_pair_is_one_row_and_its_answers_may_not_change_places():
    first, spaced = pair("Why?", "So.", "No."), pair("Why?", "So. ", "No.")
    batch = preferences([first, spaced, pair("Why?", "No.", "So."), pair("Who?", "So.", "No."), pair("", "", "")])
    assert deduplicate(batch).rows == {"1": ("exact_duplicate", "0", 1.0)}
    assert deduplicate(batch, on="prompt").kept == ["0", "3", "4"]
    assert deduplicate(batch, on="answer").kept == ["0", "2", "4"]


# Near duplicates.


def word_sets(turn: str) -> set[Any]:
    words = split_words(turn)
    return {tuple(words[i : i + 5]) for i in range(len(words) - 4)} or {exact_form(turn)}


def least_similarity(one: tuple[str, ...], other: tuple[str, ...]) -> Fraction:
    sets = ((word_sets(a), word_sets(b)) for a, b in zip(one, other, strict=True))
    return min(Fraction(len(a & b), len(a | b)) for a, b in sets)


pool = [" ".join(f"w{n if n % k else n + 99}" for n in range(1, 40)) for k in (99, 9, 17, 31)]
pool += [" ".join(f"v{n}" for n in range(30)), "Yes.", "yes", "Yes. ", "no one at all here", ""]


@given(st.lists(st.tuples(st.sampled_from(pool), st.sampled_from(pool)), min_size=1, max_size=8))
@settings(max_examples=30)
def test_the_least_similar_turn_decides(rows):
    """Every band is one value, so that nearly all similar rows are candidates."""
    batch = conversations(*(talk(*row) for row in rows))
    outcome = deduplicate(batch, match="near", num_bands=100, rows_per_band=1, prefix=False)
    kept: list[int] = []
    for n, row in enumerate(rows):
        similar = [(k, least_similarity(row, rows[k])) for k in kept]
        found = [(k, s) for k, s in similar if (s >= Fraction(3, 4) and len(split_words(" ".join(row))) >= 5) or s == 1]
        equal = [k for k in kept if [exact_form(t) for t in rows[k]] == [exact_form(t) for t in row]]
        if not found and not equal:
            kept.append(n)
            assert str(n) in outcome.kept
        elif equal:
            assert outcome.rows[str(n)] == ("exact_duplicate", str(equal[0]), 1.0)
        else:
            (k, similarity) = found[0]
            assert outcome.rows[str(n)] == ("near_duplicate", str(k), int(similarity * 1000 + Fraction(1, 2)) / 1000)


def test_near_duplicates_have_equal_roles_calls_and_numbers_of_turns():
    long, near = pool[0], pool[3]
    answers = user(near), says(near, tool_calls="[1]"), says(near, reasoning_content=long)
    others = [[user(long), answer] for answer in answers]
    rows = conversations(talk(long, long), talk(near, near), talk(long, near, ""), *others, tools=[""] * 6)
    assert set(deduplicate(rows, match="near", num_bands=100, rows_per_band=1).rows) == {"1"}
    pairs = preferences([pair(long, *sides) for sides in ((long, pool[4]), (near, pool[4]), (pool[4], long))])
    assert set(deduplicate(pairs, match="near", num_bands=100, rows_per_band=1).rows) == {"1"}


def test_a_prefix_of_a_row_that_is_dropped_goes_to_the_row_that_stays():
    rows = conversations(talk(pool[0], "Yes", "Go on", "No"), talk(pool[3], "Yes", "Go on", "No"), talk(pool[3], "Yes"))
    found = deduplicate(rows, match="near", num_bands=100, rows_per_band=1).rows
    assert {name: fate[:2] for name, fate in found.items()} == {"1": ("near_duplicate", "0"), "2": ("prefix", "0")}
    assert found["1"][2] == found["2"][2] < 1


some_sets = st.lists(st.frozensets(st.integers(0, 6), max_size=5), min_size=1, max_size=4)


@given(some_sets, some_sets, st.sampled_from([Fraction(1, 2), Fraction(3, 4), Fraction(1)]))
def test_the_kernel_finds_the_least_similar_turn(one, other, least):
    def laid_out(turns: list[frozenset[int]]) -> np.ndarray:
        return np.array([t << TURN_SHIFT | v for t, turn in enumerate(turns) for v in sorted(turn)], np.uint64)

    pairs = [(a, b) for a, b in zip(one, other, strict=False) if a | b]
    pairs += [(turn, frozenset()) for turn in [*one[len(other) :], *other[len(one) :]] if turn]
    shares = [Fraction(len(a & b), len(a | b)) for a, b in pairs]
    expected = int(min(shares, default=Fraction(1)) * 1000 + Fraction(1, 2))
    found = least_similar_turn(laid_out(one), laid_out(other), least.numerator, least.denominator)
    assert found == (expected if min(shares, default=Fraction(1)) >= least else -1)


# Across runs.


@pytest.mark.parametrize("config", [{}, {"match": "loose"}, {"match": "near"}, {"on": "prompt", "keep_per_prompt": 2}])
@given(st.lists(st.lists(st.lists(st.sampled_from(["Yes.", "yes", "No", pool[0], pool[3]]), max_size=3), max_size=6),
                min_size=2, max_size=3))  # fmt: skip
@settings(max_examples=12)
def test_runs_against_each_other_end_like_one_over_all_rows(tmp_path_factory, config, parts):
    """Without prefixes: a row of an earlier run stays, even where a longer one comes later."""
    stage = Dedup(DedupConfig(prefix=False, **config)).for_kind("conversation")
    names = [[f"{n}:{i}" for i in range(len(part))] for n, part in enumerate(parts)]
    runs, apart = Runs(tmp_path_factory.mktemp("apart"), stage), {}
    for part, ids in zip(parts, names, strict=True):
        apart |= runs.add(conversations(*(talk(*row) for row in part), ids=ids), 3)
    joint = conversations(*(talk(*row) for part in parts for row in part), ids=[name for ids in names for name in ids])
    assert apart == Runs(tmp_path_factory.mktemp("joint"), stage).add(joint, 4)


def test_a_row_of_an_earlier_run_stays_though_a_new_one_begins_with_it(tmp_path):
    runs = Runs(tmp_path, Dedup(DedupConfig()).for_kind("conversation"))
    assert runs.add(conversations(talk("Why?", "So."), ids=["0:0"])) == {}
    new = conversations(talk("Why?", "So."), talk("Why?", "So.", "And?", "No."), ids=["1:0", "1:1"])
    assert runs.add(new) == {"1:0": ("exact_duplicate", "0:0", 1.0)}


def test_the_table_has_the_flags_that_the_kernel_repeats():
    repeated = kernels._WORD, kernels._SPACELESS, kernels._SPACE, kernels._LETTER, kernels._ACCENT, kernels._FOLD_SHIFT
    assert repeated == (words.WORD, words.SPACELESS, words.SPACE, words.LETTER, words.MARK, words.FOLD_SHIFT)
    assert entry("a") & words.LETTER and len(character_table().folds) and len(hash_values(pa.array(["a"]))) == 1
