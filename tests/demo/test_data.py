import csv
import filecmp
import gzip
import io
import itertools
import json

import pytest

from datakit.text.words import split_words
from demo import make_data, plants
from demo.make_data import authored, read_jsonl

GOOD = [(path.name, row) for path in authored() for row in read_jsonl(path)]
ROLES = {"system": {"user"}, "user": {"assistant"}, "assistant": {"user", "tool"}, "tool": {"assistant"}}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    make_data.make(folder)
    return folder


def rows_of(path):
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    text = data.decode()
    rows = csv.DictReader(io.StringIO(text)) if path.suffix == ".csv" else map(json.loads, text.splitlines())
    return list(rows)


def test_every_conversation_is_whole():
    assert len(GOOD) >= 200
    for _, row in GOOD:
        said = plants.turns(row)
        assert said[0][0] in ("system", "user") and said[-1][0] == "assistant", row["id"]
        assert all(after[0] in ROLES[before[0]] for before, after in itertools.pairwise(said)), row["id"]
        assert all(content is None or (content.strip() == content and content) for _, content in said), row["id"]


def test_a_tool_call_names_a_tool_that_is_offered_and_is_answered():
    for row in (row for _, row in GOOD if "tools" in row):
        offered = {t["function"]["name"]: t["function"]["parameters"]["required"] for t in row["tools"]}
        calls = [call for m in row["messages"] for call in m.get("tool_calls", ())]
        assert [m["tool_call_id"] for m in row["messages"] if m["role"] == "tool"] == [c["id"] for c in calls]
        for call in calls:
            assert set(json.loads(call["function"]["arguments"])) == set(offered[call["function"]["name"]])


def test_no_two_conversations_are_alike():
    assert len({row["id"] for _, row in GOOD}) == len(GOOD)
    texts = {row["id"]: plants.text(row) for _, row in GOOD}
    assert len({" ".join(t.split()) for t in texts.values()}) == len(texts)
    shingled = [(ident, s) for ident, t in texts.items() if (s := plants.shingles(t))]
    for i, (one, first) in enumerate(shingled):
        for other, second in shingled[i + 1 :]:
            assert len(first & second) < 0.3 * len(first | second), (one, other)


def test_the_same_installation_gives_the_same_bytes(made, tmp_path):
    make_data.make(tmp_path)
    names = [str(p.relative_to(made)) for p in sorted(made.rglob("*")) if p.is_file()]
    same, different, missing = filecmp.cmpfiles(made, tmp_path, names, shallow=False)
    assert (sorted(same), different, missing) == (names, [], [])


def test_documentation_becomes_many_different_questions(made):
    asked = [row for path in sorted((made / "raw").glob("pydoc_*")) for row in rows_of(path)]
    assert len(asked) > 150
    assert len({row["id"] for row in asked}) == len(asked)
    textwrap = next(row for row in asked if row["id"] == "py-textwrap.dedent")
    (_, question), (_, answer) = plants.turns(textwrap)
    assert "textwrap.dedent" in question
    assert answer.startswith("textwrap.dedent(text)\n\nRemove any common leading whitespace")


def test_a_missing_standard_library_costs_only_its_documentation(tmp_path):
    plan = make_data.make(tmp_path / "made", stdlib=tmp_path / "nowhere")
    assert len(plan["exact_duplicates"]) == plants.EXACT
    assert len(rows_of(tmp_path / "made" / "raw" / "pydoc_methods.jsonl")) > 50  # those built into the interpreter


def test_the_plan_says_what_is_in_the_files(made):
    plan, raw = json.loads((made / "planted.json").read_text()), made / "raw"
    rows = {row["id"]: row for path in raw.iterdir() if "export" not in path.name for row in rows_of(path)}
    for copy in plan["exact_duplicates"]:
        assert plants.text(rows[copy["id"]]).split() == plants.text(rows[copy["of"]]).split()
    for copy in plan["near_duplicates"]:
        one, other = (shingles(plants.text(rows[copy[k]])) for k in ("id", "of"))
        assert round(len(one & other) / len(one | other), 3) == copy["similarity"] > plants.SURE
    assert {i for i in rows if i.startswith("lang-")} == set(plan["other_languages"])
    assert {i for i in rows if i.startswith("web-")} == set(plan["boilerplate"])


def shingles(text):
    """As datakit sees words, not as the demo does."""
    words = split_words(text)
    return {tuple(words[i : i + 5]) for i in range(len(words) - 4)}


def test_broken_lines_are_broken_and_their_neighbours_are_not(made):
    plan = json.loads((made / "planted.json").read_text())["broken_lines"]
    for file in {line["file"] for line in plan}:
        lines = (made / "raw" / file).read_bytes().splitlines()
        bad = {line["line"] for line in plan if line["file"] == file}
        assert {i for i, line in enumerate(lines, 1) if not is_conversation(line)} == bad
        assert len(lines) - len(bad) == make_data.EXPORTED


def is_conversation(line):
    try:
        return all(isinstance(content.encode(), bytes) for _, content in plants.turns(json.loads(line)))
    except (ValueError, KeyError, TypeError, AttributeError):
        return False
