"""Real corpora: every file is recognised, every record is a row."""

from collections import Counter

import pytest

SFT = {
    "gpteacher/codegen-instruct.json": ("alpaca", 4535), "gsm8k/test.jsonl": ("question_answer", 1319),
    "gpteacher/roleplay-simple-deduped-roleplay-instruct.json": ("alpaca", 1923),
    "llamafactory/alpaca_en_demo.json": ("alpaca", 999), "llamafactory/alpaca_zh_demo.json": ("alpaca", 1000),
    "llamafactory/glaive_toolcall_en_demo.json": ("sharegpt", 300), "sharegpt_zh_1k.jsonl": ("sharegpt", 1000),
    "llamafactory/glaive_toolcall_zh_demo.json": ("sharegpt", 300), "llamafactory/identity.json": ("alpaca", 91),
    "llamafactory/reason_tool_use_demo_50.jsonl": ("messages", 50), "llamafactory/v1_sft_demo.jsonl": ("messages", 500),
    "minillm/identity_cn_sample.jsonl": ("minimind", 2), "minillm/identity_conversations.jsonl": ("minimind", 6),
}  # fmt: skip
OTHERS = [
    ("sft/llamafactory/c4_demo.jsonl", "document", "document", 300),
    ("sft/llamafactory/wiki_demo.txt", "document", "document", 1),
    ("sft/minillm/preference_cn_sample.jsonl", "preference", "pairs", 2),
    ("preference/dpo_zh_500.jsonl.gz", "preference", "pairs", 500),
    ("preference/hh_rlhf_harmless_test.jsonl.gz", "preference", "transcripts", 2312),
    ("preference/llamafactory/dpo_en_demo.json.gz", "preference", "pairs", 300),
    ("preference/llamafactory/kto_en_demo.json", "conversation", "messages", 300),
    ("preference/llamafactory/v1_dpo_demo.jsonl", "preference", "pairs", 10),
]


def test_every_conversation_file_is_recognised_and_counted(shared, read):
    found = read(*(shared / "corpora" / "sft" / name for name in SFT))
    assert found.plan.kind == "conversation"
    counts = Counter(row["source"] for row in found.rows)
    assert {f.name: (f.layout.name, counts[f.name]) for f in found.plan.files} == SFT
    assert not found.bad
    assert len({r["row_key"] for r in found.rows}) == len(found.rows)


@pytest.mark.parametrize(("name", "kind", "layout", "count"), OTHERS)
def test_every_other_file_is_recognised_and_counted(shared, read, name, kind, layout, count):
    found = read(shared / "corpora" / name)
    assert (found.plan.kind, found.plan.files[0].layout.name, len(found.rows), found.bad) == (kind, layout, count, [])
