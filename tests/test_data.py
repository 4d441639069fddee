"""The row kinds: their columns are a contract."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datakit import data as schema
from datakit.text.words import normalize

COMMON = ["row_key", "id", "content_hash", "source", "lang", "lang_score", "extra"]


@pytest.mark.parametrize(
    ("kind", "own"),
    [
        ("document", ["text"]),
        ("conversation", ["messages", "tools"]),
        ("preference", ["prompt", "chosen", "rejected", "tools"]),
        ("tokens", ["input_ids", "label_spans", "segment_source", "turn_starts"]),
        ("tokens_preference", ["input_ids", "label_spans", "segment_source", "rejected_ids", "rejected_label_spans"]),
    ],
)
def test_every_kind_has_the_common_columns_first(kind, own):
    assert schema.of_kind(kind).names == COMMON + own


def test_a_row_key_orders_by_file_and_then_by_record():
    keys = [schema.row_key(f, r) for f in (0, 1, 2**24 - 1) for r in (0, 1, 2**40 - 1)]
    assert keys == sorted(keys)
    assert len(set(keys)) == 9
    assert keys[-1] == 2**64 - 1


def test_a_message_has_the_fields_a_chat_template_reads():
    names = ["role", "content", "name", "reasoning_content", "tool_calls", "tool_call_id", "weight"]
    assert [f.name for f in schema.MESSAGE] == names
    assert schema.of_kind("conversation").field("messages").type == pa.list_(schema.MESSAGE)


PART = st.text(st.sampled_from("a1234 \n\x01\x02\x03\x04"), max_size=4)
TURNS = st.lists(st.tuples(PART, PART, PART, PART, PART, PART), max_size=3)


def plain(value: object) -> object:
    """A structure with its texts as `content_hash` sees them: white space is one blank, and none at the ends."""
    return " ".join(value.split()) if isinstance(value, str) else [plain(x) for x in value]  # type: ignore[attr-defined]


def text_of_hash(text: str) -> str | None:
    return normalize(pa.array([text]))[0].as_py()


@given(TURNS, PART, TURNS, PART)
def test_conversations_have_one_text_for_their_hash_exactly_if_they_have_one_structure(one, tools, other, tools_too):
    mine, theirs = schema.conversation_view(one, tools), schema.conversation_view(other, tools_too)
    same = text_of_hash(mine) == text_of_hash(theirs)
    assert same == (plain([one, tools]) == plain([other, tools_too]))


@given(st.lists(TURNS, min_size=3, max_size=3), PART, st.permutations(range(3)), st.data())
def test_pairs_have_one_text_for_their_hash_exactly_if_they_have_one_structure(sides, tools, order, data):
    other = [sides[i] for i in order]
    others = [other, [*other[:2], [*other[2], ("",) * 6]], [other[0] + other[1], [], other[2]]]
    changed = data.draw(st.sampled_from(others))
    same = text_of_hash(schema.preference_view(sides, tools)) == text_of_hash(schema.preference_view(changed, tools))
    assert same == (plain([sides, tools]) == plain([changed, tools]))
