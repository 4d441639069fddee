import hashlib
import json
import pickle

import pyarrow as pa
import pytest

from datakit.data import SPANS, tokens
from datakit.errors import ConfigError, ModelError
from datakit.pack.encode import Choice
from datakit.pack.tokenize import Tokenize, TokenizeConfig
from datakit.stage import split

SAY = {"role": "assistant", "content": "fine"}
ASK = {"role": "user", "content": "how are you"}


@pytest.fixture(params=["fastokens", "tokenizers"])
def stage(request, trained) -> Tokenize:
    return Tokenize(TokenizeConfig(tokenizer=str(trained)), choice=Choice(request.param))


def kept_and_dropped(stage, batch):
    kept, dropped = split(batch, stage.decide(batch), stage.name)
    return kept.select(stage.kept_columns(kept.schema.names)), dropped


def test_documents_end_with_eos_and_all_of_them_is_learnt(stage, small, documents):
    kept, _ = kept_and_dropped(stage, documents(["the fox", "你好"]))
    assert kept.column("input_ids").to_pylist() == [[*small.encode_text(t), 2] for t in ("the fox", "你好")]
    assert kept.column("label_spans").null_count == 2
    assert kept.column("segment_source").to_pylist() == ["text", "text"]
    assert [f.name for f in kept.schema] == tokens().names
    assert [f.type for f in kept.schema] == tokens().types


def test_documents_can_begin_with_bos_and_end_without_eos(trained, small, documents):
    stage = Tokenize(TokenizeConfig(tokenizer=str(trained), add_bos=True, add_eos=False))
    kept, _ = kept_and_dropped(stage, documents(["the fox"]))
    assert kept.column("input_ids").to_pylist() == [[1, *small.encode_text("the fox")]]


def test_special_tokens_in_a_document_are_text(stage, documents):
    kept, _ = kept_and_dropped(stage, documents(["a<|im_end|>b<|endoftext|>"]))
    ids = kept.column("input_ids")[0].as_py()
    assert ids[-1] == 2
    assert min(ids[:-1]) > 2


def test_ids_equal_the_librarys_on_plain_text(stage, small, documents):
    from tokenizers import Tokenizer

    texts = ["the lazy dog\n\n 12 345", "Ünïcödé 🦊 e\u0301", "\t \u3000tabs", "\ufdd0 alone is text", "x" * 5000]
    library = Tokenizer.from_str(small.definition.decode())
    kept, _ = kept_and_dropped(stage, documents(texts))
    assert [r[:-1] for r in kept.column("input_ids").to_pylist()] == [library.encode(t).ids for t in texts]


def test_rows_without_anything_are_dropped_with_the_reason(stage, documents, conversations):
    _, dropped = kept_and_dropped(stage, documents(["", "x"]))
    assert dropped.column("reason").to_pylist() == ["empty"]
    batch = conversations([[], [ASK], [ASK, SAY | {"weight": 0.0}], [ASK, SAY]])
    kept, dropped = kept_and_dropped(stage, batch)
    assert dropped.column("reason").to_pylist() == ["empty", "no_labels", "no_labels"]
    assert kept.column("id").to_pylist() == ["r3"]
    assert dropped.column("messages").to_pylist()[1] == batch.column("messages")[1].as_py()


def test_reserved_code_points_are_refused_and_not_mistaken(stage, documents, conversations):
    _, dropped = kept_and_dropped(stage, documents(["a\ufdd0\ue001b"]))
    assert dropped.column("reason").to_pylist() == ["reserved_code_point"]
    _, dropped = kept_and_dropped(stage, conversations([[ASK | {"content": "\ufdd0\ue001"}, SAY]]))
    assert dropped.column("reason").to_pylist() == ["reserved_code_point"]


def test_a_broken_row_costs_one_row(stage, conversations):
    rows = [[ASK, SAY | {"tool_calls": "{broken"}], [ASK, SAY]]
    kept, dropped = kept_and_dropped(stage, conversations(rows))
    assert dropped.column("reason").to_pylist() == ["template_error"]
    assert "tool_calls is not JSON" in dropped.column("detail")[0].as_py()
    assert kept.num_rows == 1


def test_half_a_character_in_json_costs_one_row(stage, conversations):
    calls = '[{"name": "f", "arguments": {"a": "\\ud800"}}]'
    _, dropped = kept_and_dropped(stage, conversations([[ASK, SAY | {"tool_calls": calls}], [ASK, SAY]]))
    assert dropped.column("reason").to_pylist() == ["lone_surrogate"]


def test_a_template_that_hides_who_speaks_is_refused_before_any_row(trained, conversations, documents, tmp_path):
    (tmp_path / "t.jinja").write_text("{% for m in messages %}{{ m.role + ': ' + m.content + '\\n' }}{% endfor %}")
    stage = Tokenize(TokenizeConfig(tokenizer=str(trained), chat_template=str(tmp_path / "t.jinja")))
    with pytest.raises(ModelError, match="cannot be used to train: no special token ends turn 1"):
        stage.decide(conversations([[ASK, SAY]]))
    assert kept_and_dropped(stage, documents(["text needs no template"]))[0].num_rows == 1


def test_pairs_are_labelled_on_the_answers_only_and_go_together(stage, small, pairs):
    prompt = [ASK, SAY, ASK]
    rows = [(prompt, [SAY], [{"role": "assistant", "content": "no"}]), (prompt, [SAY], [ASK])]
    kept, dropped = kept_and_dropped(stage, pairs(rows))
    assert kept.schema.names == tokens(preference=True).names
    assert dropped.column("reason").to_pylist() == ["no_labels"]
    for ids, spans, answer in (("input_ids", "label_spans", "fine"), ("rejected_ids", "rejected_label_spans", "no")):
        (span,) = kept.column(spans)[0].as_py()
        learnt = kept.column(ids)[0].as_py()[span["start"] : span["end"]]
        assert small.decode(learnt) == answer + "<|im_end|>"


def token_rows(rows, spans) -> pa.RecordBatch:
    columns = {"row_key": pa.array(range(len(rows)), pa.uint64()), "input_ids": pa.array(rows, pa.list_(pa.int32()))}
    made = [None if s is None else [{"start": a, "end": b} for a, b in s] for s in spans]
    more = {"label_spans": pa.array(made, SPANS), "segment_source": pa.array(["text"] * len(rows))}
    return pa.record_batch(columns | more)


def test_rows_with_ids_are_checked_and_stay_as_they_are(stage, small):
    top = small.vocab_size
    rows = [[1, 2], [1, top], [-1], [], [5, 6, 7], [5, 6], [5, 6]]
    spans = [None, None, None, None, [(1, 2)], [(1, 3)], [(0, 1)]]
    batch = token_rows(rows, spans)
    decision = stage.decide(batch)
    outside = "id_out_of_vocabulary"
    expected = [None, outside, outside, "empty", None, "bad_label_spans", "no_labels"]
    assert decision.reasons.to_pylist() == expected
    assert stage.decide(batch.slice(1, 3)).reasons.to_pylist() == expected[1:4]


def test_results_do_not_depend_on_batches(stage, conversations):
    batch = conversations([[ASK, SAY | {"content": "x" * n}] for n in range(7)])
    whole, _ = kept_and_dropped(stage, batch)
    parts = [kept_and_dropped(stage, batch.slice(i, 2))[0] for i in range(0, 7, 2)]
    assert pa.Table.from_batches(parts).combine_chunks().equals(pa.Table.from_batches([whole]).combine_chunks())


def test_the_stage_pickles_small_and_tells_its_resources(stage, small):
    stage.open()
    copy = pickle.loads(pickle.dumps(stage))
    assert len(pickle.dumps(stage)) < 2000
    settings = hashlib.sha256(small.files()["tokenizer_config.json"]).hexdigest()
    assert copy.resources() == {"tokenizer": small.facts() | {"settings_sha256": settings}}
    assert small.facts()["vocab_size"] == 320
    assert (small.facts()["pad_id"], small.facts()["eos_id"]) == (0, 2)


def test_the_files_that_travel_give_the_same_tokenizer(stage, small, tmp_path):
    from datakit.pack.chat import ChatTokenizer

    for name, content in stage.files().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert ChatTokenizer.load(tmp_path / "kept/tokenizer").facts() == small.facts()


def test_missing_things_are_named_before_any_work(tmp_path, trained):
    with pytest.raises(ModelError, match="give --tokenizer"):
        Tokenize(TokenizeConfig()).open()
    with pytest.raises(ModelError, match=r"expected a tokenizer\.json"):
        Tokenize(TokenizeConfig(tokenizer=str(tmp_path))).open()
    with pytest.raises(ModelError, match="expected a file or one of chatml"):
        Tokenize(TokenizeConfig(tokenizer=str(trained), chat_template="nope")).open()
    (tmp_path / "tokenizer.json").write_bytes((trained / "tokenizer.json").read_bytes())
    with pytest.raises(ModelError, match="no eos_token"):
        Tokenize(TokenizeConfig(tokenizer=str(tmp_path))).open()
    with pytest.raises(ConfigError):
        TokenizeConfig(min_label_tokens=-1)


@pytest.mark.parametrize("name", ["minimind", "smollm", "qwen2"])
def test_real_tokenizers_neither_truncate_nor_pad(real, name, documents):
    """SmolLM's file asks for truncation to 192 tokens and padding."""
    from tokenizers import Tokenizer

    library = Tokenizer.from_file(str(real(name) / "tokenizer.json"))
    library.no_truncation()
    library.no_padding()
    texts = ["word " * 1000, "短", "e\u0301 naïve 12345\r\n\r\n  x"]
    for engine in ("fastokens", "tokenizers"):
        stage = Tokenize(TokenizeConfig(tokenizer=str(real(name))), choice=Choice(engine))
        kept, _ = kept_and_dropped(stage, documents(texts))
        assert [r[:-1] for r in kept.column("input_ids").to_pylist()] == [library.encode(t).ids for t in texts]


def test_settings_may_hold_tokens_as_objects_and_templates_by_name(trained, tmp_path):
    settings = json.loads((trained / "tokenizer_config.json").read_bytes())
    settings["eos_token"] = {"content": "<|im_end|>", "special": True}
    settings["chat_template"] = [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}]
    (tmp_path / "tokenizer.json").write_bytes((trained / "tokenizer.json").read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    from datakit.pack.chat import ChatTokenizer

    found = ChatTokenizer.load(tmp_path)
    assert found.eos_id == 2
    assert found.template_source == "D"
    (tmp_path / "chat_template.jinja").write_text("J")
    assert ChatTokenizer.load(tmp_path / "tokenizer.json").template_source == "J"
