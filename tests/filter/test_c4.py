"""C4's line rules against the same definitions in plain Python, and what they do to rows."""

import dataclasses
import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datakit.filter import _kernels_c4, rule_set
from datakit.filter.web_rules import C4
from tests.files import says, user
from tests.filter.rows import conversations, documents, filter_of
from tests.filter.test_rule_set import flagged, spaceless

CITATION = re.compile(r"\[\d*]|\[edit]|\[citation needed]", re.IGNORECASE)
POLICIES = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")
QUOTES = "\"'”’»›」』｣“‘"
CLOSING = QUOTES + ")]"


def lower(text: str) -> str:
    return "".join(c.lower() if c.isascii() else c for c in text)


def words_of(line: str) -> list[str]:
    runs = [(alone, "".join(run)) for token in line.split() for alone, run in itertools.groupby(token, spaceless)]
    return [word for alone, run in runs for word in (run if alone else [run])]


def sentences_of(line: str) -> int:
    count, said, before = 0, False, ""
    for c in [*line, "\n"]:
        if c.isspace():
            bare = before.rstrip(CLOSING)
            if said and bare and flagged(bare[-1], rule_set.TERMINAL):
                count, said = count + 1, False
        elif flagged(c, rule_set.TERMINAL) and ord(c) > 0x3000:
            count, said = count + said, False
        elif c.isascii() or c not in QUOTES:
            said = True
        before = before if c.isspace() else before + c
    return count + said


def finished(line: str) -> bool:
    line = line.rstrip()
    while found := re.search(f"(?:{CITATION.pattern}) *$", line, re.IGNORECASE):
        line = line[: found.start()].rstrip(" ")
    return bool(line.strip()) and not line.endswith("...") and flagged(line[-1], rule_set.TERMINAL | rule_set.QUOTE)


def verdict(line: str, config: C4) -> str:
    words = words_of(line)
    if max(map(len, words)) > config.max_line_word_chars:
        return "c4_long_word_lines"
    if config.line_end == "sentence" and not finished(line):
        return "c4_unfinished_lines"
    if len(words) < config.min_line_words:
        return "c4_few_word_lines"
    if "javascript" in lower(line):
        return "c4_javascript_lines"
    if any(p in lower(line) for p in POLICIES):
        return "c4_policy_lines"
    return "c4_kept_lines"


def reference(text: str, config: C4) -> dict[str, int]:
    counts = dict.fromkeys(_kernels_c4.COUNTS, 0)
    counts["c4_curly_brackets"] = text.count("{")
    for line in text.splitlines():
        words, found = words_of(line), lower(line).count("lorem ipsum")
        counts["c4_lorem_ipsum"] += found
        if not words:
            continue
        what = verdict(line, config)
        counts["c4_words"] += len(words)
        counts["c4_unmarked_words"] += sum(spaceless(c) and ord(c) < 0x0F00 for c in line)
        counts["c4_lines"] += 1
        counts["c4_kept_lines"] += what == "c4_kept_lines"
        if what in ("c4_javascript_lines", "c4_policy_lines", "c4_kept_lines"):
            counts["c4_judged_lorem_ipsum"] += found
        if what in ("c4_policy_lines", "c4_kept_lines"):
            counts["c4_judged_curly_brackets"] += line.count("{")
        if what == "c4_kept_lines":
            counts["c4_sentences"] += sentences_of(line)
            counts["c4_citations"] += len(CITATION.findall(line))
    return counts


def signals(texts: list[str], config: C4) -> rule_set.Signals:
    return config.signals(rule_set.MeasuredRows(documents(*texts)))


def counted(text: str, config: C4) -> dict[str, int]:
    return {name: int(values[0]) for name, values in signals([text], config).items()}


def edited(text: str, **values) -> str:
    edits = C4(**values).edit(documents(text), np.ones(1, np.bool_))
    return edits.columns["text"][0].as_py() if edits else text


LINES = [
    "", "The first sentence. The second one! And a third?", "He said \"no.\" Then (he left.) 'Why?'", "No end",
    "It trails off...", "Too short.", "This line speaks of JavaScript and must go.",
    "We use cookies, and our Terms of Use say so.", "See the privacy policy of this page.",
    "A site uses cookies for the use of cookies.", "Lorem ipsum dolor sit amet.", "if (a) { return b; }",
    "Cited twice.[1][23] And here.[citation needed]", "Cited behind a space. [edit]",
    "今天天气很好。我们去公园玩吧！「好的。」他说。",
    "これは文です。次の文？！", "ภาษาไทยไม่มีจุดจบประโยค", "यह एक वाक्य है। यह दूसरा है।", "x" * 1001 + " is a long word.",
    "x" * 1000 + " is a word.", "Wow ! Really ?", "... ... ...", "“Quoted,” she said, “and done.”",
    "javascrip privacy polic cookie cookies vjkfp lorem ipsu", "[", "[12", "{", "]", "\x85 \x1c",
]  # fmt: skip


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_every_count_of_a_line_equals_the_plain_definition(line):
    assert counted(line, C4()) == reference(line, C4())


PIECES = st.sampled_from(
    [*LINES, "the", "page.", "end", " ", " ", "\n", "\n", "\r\n", "\r", "\n\n", "\u2028", "。", "！", "」", "”", '"',
     ")", "[1]", "[edit]", "{", "javascript", "use cookies", "lorem ipsum", "字", "ไ", "é", "😀", "...",
     "?", "\t", "\u3000"]
)  # fmt: skip
CONFIGS = st.builds(
    C4,
    min_line_words=st.integers(0, 6),
    max_line_word_chars=st.sampled_from([1, 10, 1000]),
    line_end=st.sampled_from(["sentence", "any"]),
)


@settings(max_examples=150)
@given(st.lists(PIECES, max_size=25).map("".join) | st.text(max_size=60), CONFIGS)
def test_any_text_counts_as_the_plain_definition_says(text, config):
    assert counted(text, config) == reference(text, config)


@given(st.lists(PIECES, max_size=25).map("".join), CONFIGS)
def test_a_cut_text_has_exactly_the_lines_that_stay(text, config):
    counts = reference(text, config)
    loses = counts["c4_kept_lines"] < counts["c4_lines"] or counts["c4_citations"]
    made = edited(text, **dataclasses.asdict(config))
    if not loses or 2 * counts["c4_unmarked_words"] > counts["c4_words"]:
        assert made == text
        return
    stays = [line for line in text.splitlines() if words_of(line) and verdict(line, config) == "c4_kept_lines"]
    without = [CITATION.sub("", line).split() for line in stays]
    assert [line.split() for line in made.split("\n") if line.strip()] == [line for line in without if line]
    assert "\n\n\n" not in made


PHRASES = "javascript", "lorem ipsum", "terms of use", "privacy policy", "cookie policy", "uses cookies", "use cookies"


@pytest.mark.parametrize("phrase", [*PHRASES, "use of cookies"])
def test_a_phrase_is_found_wherever_it_stands(phrase):
    texts = [f"{'x' * n} {phrase.title()} {'y' * 40}." for n in range(140)] + [" " * n + phrase for n in range(70)]
    counts = signals(texts, C4())
    for i, text in enumerate(texts):
        expected = reference(text, C4())
        assert {n: int(counts[n][i]) for n in expected} == expected, text


THAI = "ภาษาไทยไม่มีจุดจบประโยค\nบรรทัดที่สอง"
BREAKS = "  Indented lines stay.\r\n\r\n\r\nSo do their breaks.  \r\n"


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("The first is a sentence.\nno end\n\n\nmenu\n\nThe second is one too.\nAnd so is this.\n",
         "The first is a sentence.\n\nThe second is one too.\nAnd so is this."),
        (BREAKS, BREAKS), (THAI, THAI),
        ("It is known [12] to be so. [edit] And [x] stays [citation needed].",
         "It is known  to be so.  And [x] stays ."),
    ],
)  # fmt: skip
def test_what_stays_of_a_text(text, made):
    assert edited(text) == made


def test_a_page_goes_for_a_bracket_anywhere_and_with_lines_only_where_text_may_stay():
    """Thai needs no sentences; conversations are judged and never cut."""
    turns = [user("q"), says("Sentences are here. " * 5 + "\nmenu")]
    said = conversations(turns, turns[:1])
    stage = filter_of("c4")
    decision = stage.decide(said)
    assert decision.reasons.to_pylist() == [None, "c4.min_sentences"] and "messages" not in decision.columns
    assert stage.decide(documents(THAI)).reasons.to_pylist() == [None]
    prose = "This is a sentence of a page. " * 5
    for where, reason in (("page", "c4.max_curly_brackets"), ("lines", None)):
        decision = filter_of("c4", c4={"where": where}).decide(documents(prose + "\nfunction f() {"))
        assert decision.reasons.to_pylist() == [reason]


def test_rows_that_stay_are_cut_and_counted_as_edited_and_dropped_ones_stay_whole():
    prose = "This is a sentence of a page. " * 5
    texts = [prose + "\nmenu", prose, "menu\nonly"]
    decision = filter_of("c4").decide(documents(*texts))
    assert decision.edited.to_pylist() == [True, False, False]
    assert decision.columns["text"].to_pylist() == [prose.rstrip(), prose, texts[2]]
