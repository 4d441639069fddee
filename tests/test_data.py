"""The row kinds: their columns are a contract."""

import pyarrow as pa
import pytest

from datakit import data as schema

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
