"""The stage from rows to ids and labels."""

import hashlib
import json
import pickle
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from datakit.data import SPANS, tokens
from datakit.errors import ConfigError, ModelError, UsageError
from datakit.manifest import Count, Ledger, load
from datakit.pack.chat import ChatTokenizer, built_in
from datakit.pack.marks import FIRST_PRIVATE, RESERVED
from datakit.pack.tokenize import Tokenize, TokenizeConfig
from datakit.stage import split, with_columns
from tests.files import says, user
from tests.object_stores import Hub, Server
from tests.pack.by_hand import added, saved
from tests.processes import python

SAY, ASK = says("fine"), user("how are you")


@pytest.fixture(params=[False, True], ids=["fastokens", "tokenizers"])
def stage(request, trained) -> Tokenize:
    return Tokenize(TokenizeConfig(tokenizer=str(trained)), little=request.param)


def kept_and_dropped(stage, batch):
    return split(batch, stage.decide(batch), stage.name)


def alarms(stage, ledger):
    return stage.extras(ledger).facts.get("alarms", [])


def test_documents_end_with_eos_and_all_of_them_is_learnt(stage, small, documents):
    kept, _ = kept_and_dropped(stage, documents(["the fox", "你好"]))
    assert kept.column("input_ids").to_pylist() == [[*small.encode_text(t), 2] for t in ("the fox", "你好")]
    assert kept.column("label_spans").null_count == 2
    assert kept.column("segment_source").to_pylist() == ["text", "text"]
    other = Tokenize(replace(stage.config, add_bos=True, add_eos=False), little=stage.little)
    ids = kept_and_dropped(other, documents(["the fox<|im_end|>"]))[0].column("input_ids")[0].as_py()
    assert ids == [1, *small.encode_text("the fox<|im_end|>")] and 2 not in ids
    assert [f.name for f in kept.schema] == tokens().names
    assert [f.type for f in kept.schema] == tokens().types


def test_rows_without_anything_are_dropped_with_the_reason(stage, documents, conversations):
    _, dropped = kept_and_dropped(stage, documents(["", "x"]))
    assert dropped.column("reason").to_pylist() == ["empty"]
    batch = conversations([[], [ASK], [ASK, SAY | {"weight": 0.0}], [ASK, SAY]])
    kept, dropped = kept_and_dropped(stage, batch)
    assert dropped.column("reason").to_pylist() == ["empty", "no_labels", "no_labels"]
    assert kept.column("id").to_pylist() == ["r3"]
    assert dropped.column("messages").to_pylist()[1] == batch.column("messages")[1].as_py()


RESERVED_TEXT = RESERVED + chr(FIRST_PRIVATE + 1)
HALF = '[{"name": "f", "arguments": {"a": "\\ud800"}}]'


@pytest.mark.parametrize(
    ("turns", "reason"),
    [
        ([ASK, SAY | {"tool_calls": "{broken"}], "template_error"),
        ([ASK, SAY | {"tool_calls": HALF}], "lone_surrogate"),
        ([ASK | {"content": RESERVED_TEXT}, SAY], "reserved_code_point"),
    ],
)
def test_a_broken_row_costs_one_row(stage, documents, conversations, turns, reason):
    kept, dropped = kept_and_dropped(stage, conversations([turns, [ASK, SAY]]))
    assert (kept.column("id").to_pylist(), dropped.column("reason").to_pylist()) == (["r1"], [reason])
    kept, dropped = kept_and_dropped(stage, documents([f"a{RESERVED_TEXT}b", "x"]))
    assert (kept.num_rows, dropped.column("reason").to_pylist()) == (1, ["reserved_code_point"])


def test_a_template_that_hides_who_speaks_is_refused_before_any_row(trained, conversations, documents, tmp_path):
    (tmp_path / "t.jinja").write_text("{% for m in messages %}{{ m.role + ': ' + m.content + '\\n' }}{% endfor %}")
    stage = Tokenize(TokenizeConfig(tokenizer=str(trained), chat_template=str(tmp_path / "t.jinja")))
    with pytest.raises(ModelError, match="cannot be used to train: no special token ends turn 1"):
        stage.decide(conversations([[ASK, SAY]]))
    assert kept_and_dropped(stage, documents(["text needs no template"]))[0].num_rows == 1


def test_pairs_are_labelled_on_the_answers_only_and_kept_or_dropped_whole(stage, small, pairs):
    prompt, no = [ASK, SAY, ASK], [says("no")]
    rows = [(prompt, [SAY], no), (prompt, [SAY], [ASK]), ([ASK], [SAY], []), ([ASK], [], no), ([ASK], [], [])]
    kept, dropped = kept_and_dropped(stage, pairs(rows))
    assert kept.schema.names == tokens(preference=True).names
    assert kept.column("id").to_pylist() == ["r0", "r2", "r3"]
    assert dropped.column("reason").to_pylist() == ["no_labels", "empty"]
    found = []
    for name, spans in (("input_ids", "label_spans"), ("rejected_ids", "rejected_label_spans")):
        both = zip(kept.column(name).to_pylist(), kept.column(spans).to_pylist(), strict=True)
        found.append([small.decode(i for s in own for i in ids[s["start"] : s["end"]]) for ids, own in both])
    assert found == [["fine<|im_end|>", "fine<|im_end|>", ""], ["no<|im_end|>", "", "no<|im_end|>"]]


def test_rows_with_ids_are_checked_and_stay_as_they_are(stage, small):
    top = small.vocab_size
    rows = [[1, 2], [1, top], [-1], [], [5, 6, 7], [5, 6], [5, 6]]
    spans = [None] * 4 + [[{"start": a, "end": b}] for a, b in ((1, 2), (1, 3), (0, 1))]
    columns = {"row_key": pa.array(range(7), pa.uint64()), "input_ids": pa.array(rows, pa.list_(pa.int32()))}
    batch = pa.record_batch(columns | {"label_spans": pa.array(spans, SPANS), "segment_source": ["text"] * 7})
    outside = "id_out_of_vocabulary"
    expected = [None, outside, outside, "empty", None, "bad_label_spans", "no_labels"]
    assert stage.decide(batch).reasons.to_pylist() == expected
    assert stage.decide(batch.slice(1, 3)).reasons.to_pylist() == expected[1:4]


def test_the_stage_pickles_small_and_its_files_give_the_same_tokenizer(stage, small, tmp_path):
    stage.open()
    copy = pickle.loads(pickle.dumps(stage))
    assert len(pickle.dumps(stage)) < 2000
    settings = hashlib.sha256(small.files()["tokenizer_config.json"]).hexdigest()
    assert copy.resources() == {"tokenizer": small.facts() | {"settings_sha256": settings}}
    for name, content in stage.extras(Ledger(Count())).files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert ChatTokenizer.load(tmp_path / "kept/tokenizer").facts() == small.facts()
    assert small.facts()["vocab_size"] == 320
    assert (small.facts()["pad_id"], small.facts()["eos_id"]) == (0, 2)


def test_missing_things_are_named_before_any_work(tmp_path, trained):
    with pytest.raises(UsageError, match="give --tokenizer"):
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


@pytest.mark.parametrize("name", ["trained", "smollm"])
def test_ids_equal_the_librarys_on_plain_text(request, real, documents, name):
    """SmolLM's file asks for truncation to 192 tokens and padding."""
    folder = request.getfixturevalue("trained") if name == "trained" else real(name)
    library = Tokenizer.from_file(str(folder / "tokenizer.json"))
    library.no_truncation()
    library.no_padding()
    texts = ["the lazy dog\n\n 12 345", "Ünïcödé 🦊 e\u0301", "\t \u3000tabs\r\n", "\ufdd0 is text", "word " * 1000]
    for little in (False, True):
        stage = Tokenize(TokenizeConfig(tokenizer=str(folder)), little=little)
        kept, _ = kept_and_dropped(stage, documents(texts))
        assert [r[:-1] for r in kept.column("input_ids").to_pylist()] == [library.encode(t).ids for t in texts]


def test_settings_may_hold_tokens_as_objects_and_templates_by_name(trained, tmp_path):
    spec, end = json.loads((trained / "tokenizer.json").read_bytes()), {"content": "<|im_end|>", "special": True}
    templates = [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}]
    found = ChatTokenizer.load(saved(tmp_path, spec, eos_token=end, chat_template=templates))
    assert found.eos_id == 2
    assert found.template_source == "D"
    (tmp_path / "chat_template.jinja").write_text("J")
    assert ChatTokenizer.load(tmp_path / "tokenizer.json").template_source == "J"


CHATML = built_in("chatml")


@pytest.mark.parametrize("kind", ["documents", "conversations"])
def test_the_stage_gives_the_same_with_both_libraries(request, trained, kind):
    texts = ["1 pieces, we'LL say; 東京は\r\n" * 4, "", "a\ufdd0\ue001", "<|im_end|>", "e\u0301", "\ufdd0", "東京" * 40]
    rows = texts if kind == "documents" else [[user("?"), says(text)] for text in texts]
    batch, config = request.getfixturevalue(kind)(rows), TokenizeConfig(tokenizer=str(trained))
    one, other = (Tokenize(config, kind[:-1], little).decide(batch) for little in (False, True))
    assert one.reasons.equals(other.reasons) and one.detail.equals(other.detail) and one.columns == other.columns
    assert one.reasons.null_count >= 5


def test_documents_run_in_threads_where_fastokens_encodes(stage, documents, conversations, monkeypatch):
    monkeypatch.setattr("datakit.pack.tokenize.SMALL_BYTES", 10**6 if stage.little else 10)
    for kind, batch in (("document", documents(["the fox"])), ("conversation", conversations([[ASK, SAY]]))):
        prepared = stage.for_kind(kind).prepare(iter([batch]))
        assert prepared.holds_gil == (prepared.little or kind == "conversation") and prepared.little == stage.little


def closed_vocabulary(folder: Path, model: dict) -> Path:
    """A tokenizer of whole words, with `</s>`, `<unk>` and what `model` adds."""
    pieces = ["</s>", "<unk>", "\u2581", "\u2581the", "\u2581fox", *"<|_>imstarendulhfox\n"]
    vocab = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    made = {"vocab": [[p, -float(i)] for p, i in vocab.items()] if model["type"] == "Unigram" else vocab} | model
    spec = {"version": "1.0", "normalizer": None, "post_processor": None, "decoder": None, "model": made}
    spec |= {"pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"}}
    folder.mkdir()
    return saved(folder, spec | {"added_tokens": added("</s>", "<unk>", special=True, first=0)}, eos_token="</s>")


@pytest.mark.parametrize(
    "model", [{"type": "Unigram", "unk_id": 1}, {"type": "WordLevel", "unk_token": "<unk>"}], ids=lambda m: m["type"]
)
def test_text_that_the_vocabulary_does_not_have_is_counted(tmp_path, documents, conversations, model):
    stage = Tokenize(TokenizeConfig(tokenizer=str(closed_vocabulary(tmp_path / "closed", model))))
    decision = stage.decide(documents(["the fox", "the 狐 fox", "</s> the"]))
    assert decision.notes == {"unknown_tokens": 2}
    assert 1 in kept_and_dropped(stage, documents(["the 狐 fox"]))[0].column("input_ids")[0].as_py()
    assert kept_and_dropped(stage, conversations([[ASK, SAY]]))[1].num_rows == (model["type"] == "WordLevel")
    ledger = Ledger(Count(into=3, kept=3), Count(into=100, kept=100), decision.notes)
    assert "of 100 tokens are unknown" in alarms(stage, ledger)[0]
    assert not alarms(stage, Ledger(Count(into=3, kept=3), Count(into=1000, kept=1000), decision.notes))


def test_a_text_for_which_the_library_has_no_tokens_is_named(tmp_path, documents):
    folder = closed_vocabulary(tmp_path / "closed", {"type": "Unigram", "unk_id": None})
    stage = Tokenize(TokenizeConfig(tokenizer=str(folder)))
    assert len(kept_and_dropped(stage, documents(["the fox"]))[0]) == 1
    with pytest.raises(ModelError, match=r"no tokens for a text that begins 'the 狐'.*`unk_id` is missing\. Give it"):
        stage.decide(documents(["the fox", "the 狐"]))
    stage = Tokenize(TokenizeConfig(tokenizer=str(closed_vocabulary(tmp_path / "x", {"type": "BPE", "merges": []}))))
    assert "vanish" in alarms(stage, Ledger(Count(into=1, kept=1), Count(into=9, kept=9)))[0]


THINKS = "{%- for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content and loop.last %}{{ '[' + m.reasoning_content + ']' }}{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"  # noqa: E501
TWO_THOUGHTS = [ASK, SAY | {"reasoning_content": "one"}, ASK, SAY | {"reasoning_content": "two"}]


def thinking_stage(with_added, tmp_path, **options) -> Tokenize:
    with_added(THINKS)
    return Tokenize(TokenizeConfig(tokenizer=str(tmp_path), **options))


def test_thoughts_that_a_template_strips_are_counted(with_added, tmp_path, conversations):
    stage = thinking_stage(with_added, tmp_path)
    assert stage.decide(conversations([TWO_THOUGHTS, [ASK, SAY]])).notes == {"reasoning_stripped": 1}
    stage = Tokenize(TokenizeConfig(tokenizer=str(tmp_path), chat_template="plain")).for_kind("conversation")
    decision = stage.decide(conversations([TWO_THOUGHTS, [ASK, SAY]]))
    assert decision.notes == {"reasoning_not_rendered": 1}
    ledger = Ledger(Count(into=2, kept=2), None, decision.notes)
    assert "1 of 2 rows" in alarms(stage, ledger)[0]
    assert not alarms(stage, few := Ledger(Count(into=200, kept=200), None, decision.notes))
    (tmp_path / "spaced.jinja").write_text(built_in("plain").replace("t:'", "t: '").replace("' ' + ", ""))
    spaced = replace(stage, config=replace(stage.config, chat_template=str(tmp_path / "spaced.jinja")))
    assert "ends inside of a token" in alarms(spaced, few)[0]


def test_every_turn_makes_a_sequence_of_each_answer_as_the_model_would_have_seen_it(
    with_added, tmp_path, conversations
):
    stage = thinking_stage(with_added, tmp_path, thinking="every_turn")
    silent = SAY | {"weight": 0}
    rows = [TWO_THOUGHTS, [ASK, SAY], [ASK, SAY, ASK, silent], [ASK, silent, ASK]]
    kept, dropped = kept_and_dropped(stage, conversations(rows))
    assert dropped.column("reason").to_pylist() == ["no_labels"]
    decode = stage.tokenizer.decode
    ids, starts = kept.column("input_ids")[0].as_py(), kept.column("sequence_starts").to_pylist()
    assert [len(s) for s in starts] == [2, 1, 1]
    one, _ = kept_and_dropped(stage, conversations([[*TWO_THOUGHTS[:3], SAY | {"weight": 0}]]))
    assert decode(one.column("input_ids")[0].as_py()).endswith(f"[one]{SAY['content']}<|im_end|>\n")
    first, second = ids[: starts[0][1]], ids[starts[0][1] :]
    assert decode(first).endswith(f"[one]{SAY['content']}<|im_end|>\n")
    assert decode(second).startswith(decode(first).replace("[one]", ""))
    assert decode(second).endswith(f"[two]{SAY['content']}<|im_end|>\n")
    spans = kept.column("label_spans")[0].as_py()
    learnt = [decode(ids[s["start"] : s["end"]]) for s in spans]
    assert learnt == [f"[{thought}]{SAY['content']}<|im_end|>" for thought in ("one", "two")]


def test_variables_that_are_no_object_and_thoughts_are_counted_once_a_row(with_added, tmp_path, conversations, pairs):
    stage = thinking_stage(with_added, tmp_path)
    extra = ['{"chat_template_kwargs": "loud=1"}', '{"chat_template_kwargs": [1]}', '{"chat_template_kwargs": "{}"}']
    batch = with_columns(conversations([[ASK, SAY]] * 3), {"extra": pa.array(extra)})
    assert stage.decide(batch).notes == {"chat_template_kwargs_ignored": 2}
    thought = SAY | {"reasoning_content": "one"}
    sides = ([thought, ASK, SAY], [thought, ASK, SAY])
    batch = pairs([([ASK], *sides), ([ASK], [SAY], [SAY]), ([], [], [thought, ASK, SAY])])
    assert stage.decide(batch).notes == {"reasoning_stripped": 2}


def test_rows_whose_answers_have_other_weights_than_0_and_1_are_counted(with_added, tmp_path, conversations, pairs):
    stage = thinking_stage(with_added, tmp_path)
    half = SAY | {"weight": 0.5}
    rows = [[ASK, half, ASK, half], [ASK | {"weight": 0.5}, SAY], [ASK, SAY | {"weight": 1}], [ASK, half], []]
    assert stage.decide(conversations(rows)).notes == {"loss_weights_rounded": 2}
    assert stage.decide(pairs([([ASK], [half], [half]), ([ASK], [SAY], [SAY])])).notes == {"loss_weights_rounded": 1}


def test_variables_of_the_template_and_of_the_row(with_added, tmp_path, conversations):
    loud = "{% if loud %}<|im_start|>system\n{{ loud }} {{ strftime_now('%d.%m.%Y') }}<|im_end|>\n{% endif %}"
    with_added(loud + CHATML)
    stage = Tokenize(TokenizeConfig(tokenizer=str(tmp_path), template_var={"loud": "yes", "today": "2025-12-31"}))
    batch = conversations([[ASK, SAY], [ASK, SAY], [ASK, SAY]])
    extra = [None, '{"chat_template_kwargs": {"loud": false}}', '{"chat_template_kwargs": {"loud": "VERY"}}']
    batch = with_columns(batch, {"extra": pa.array(extra, pa.string())})
    kept, _ = kept_and_dropped(stage, batch)
    texts = [stage.tokenizer.decode(ids) for ids in kept.column("input_ids").to_pylist()]
    assert ["yes 31.12.2025" in t for t in texts] == [True, False, False]
    assert "VERY 31.12.2025" in texts[2] and "system" not in texts[1]
    settings = json.loads(stage.tokenizer.files()["tokenizer_config.json"])
    assert settings["chat_template_kwargs"] == {"loud": "yes", "today": "2025-12-31"}
    with pytest.raises(ConfigError, match="today: expected a date"):
        TokenizeConfig(template_var={"today": "tomorrow"})


NEVER_ENDS = "{% for a in range(9999) %}{% for b in range(9999) %}{% set x = a %}{% endfor %}{% endfor %}"


def test_a_template_that_fails_on_every_row_stops_the_run_and_one_that_never_ends_costs_its_row(
    with_added, tmp_path, conversations, monkeypatch
):
    monkeypatch.setattr("datakit.pack.chat.MAX_STEPS", 10_000)
    with_added("{% for m in messages %}{{ raise_exception('no chat here') }}{% endfor %}")
    stage = Tokenize(TokenizeConfig(tokenizer=str(tmp_path)))
    with pytest.raises(ModelError, match="fails on every row: TemplateError: no chat here"):
        stage.prepare(iter([conversations([[ASK, SAY]])] * 2))
    with_added(CHATML + "{% if messages[0].content == 'loop' %}" + NEVER_ENDS + "{% endif %}")
    stage = Tokenize(TokenizeConfig(tokenizer=str(tmp_path)))
    loops = [ASK | {"content": "loop"}, SAY]
    stage.prepare(iter([conversations([loops]), conversations([[ASK, SAY]])]))
    _, dropped = kept_and_dropped(stage, conversations([[ASK, SAY], loops]))
    assert dropped.column("id").to_pylist() == ["r1"]
    assert "through its loops more than 10,000 times" in dropped.column("detail")[0].as_py()
    with_added(CHATML + NEVER_ENDS)
    stage = Tokenize(TokenizeConfig(tokenizer=str(tmp_path)))
    with pytest.raises(ModelError, match="fails on every row: the template goes through its loops"):
        stage.prepare(iter([conversations([[ASK, SAY]])]))


# One bad row never ends a run.

WITHOUT_ENDS = """{% for m in messages %}{% if m.role == 'assistant' %}<|im_start|>assistant
{% generation %}{{ m.content }}{% endgeneration %}{% else %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>{% endif %}{% endfor %}"""
PIECES = st.sampled_from(
    ["", " ", "\n", "a", "fine", "<think>", "</think>", "<|im_end|>", "<|im_start|>assistant\n", "\u0301", "{{ x }}",
     "\x00", RESERVED, chr(FIRST_PRIVATE), "\U0001f600", "{% generation %}", "<tool_call>", "\u2028"]
)  # fmt: skip
SAID = st.lists(PIECES, max_size=4).map("".join)
CALLS = st.sampled_from(
    [None, "[]", "[1]", "{broken", '"text"', HALF, '[{"function": {"name": "f", "arguments": "{}"}}]', '[{"name": ""}]']
)
TURN = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "assistant", "system", "tool"]), "content": st.none() | SAID},
    optional=dict.fromkeys(("reasoning_content", "name", "tool_call_id"), SAID)
    | {"tool_calls": CALLS, "weight": st.just(0.0)},
)
TALK = st.lists(TURN, max_size=4)


@pytest.fixture(scope="module", params=["chatml", "plain", "a generation block without an end"])
def hostile(request, trained, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("template") / "without_ends.jinja"
    path.write_text(WITHOUT_ENDS)
    return request.param if request.param in ("chatml", "plain") else str(path)


@given(
    talks=st.lists(TALK, min_size=1, max_size=4), sides=st.tuples(TALK, TALK, TALK), tools=CALLS, texts=st.lists(SAID),
    train_on=st.sampled_from(["all", "last"]), thinking=st.sampled_from(["last", "every_turn"]),
)  # fmt: skip
@example(
    talks=[[ASK, SAY | {"content": " "}]], sides=([ASK | {"reasoning_content": "a"}], [], [ASK]), tools=None,
    texts=[" "], train_on="all", thinking="last",
)  # fmt: skip
@settings(max_examples=40)
def test_whatever_a_row_holds_it_is_kept_or_dropped_with_a_reason(
    trained, hostile, conversations, pairs, documents, talks, sides, tools, texts, train_on, thinking
):
    options = {"train_on": train_on, "thinking": thinking, "min_label_tokens": 0}
    stage = Tokenize(TokenizeConfig(tokenizer=str(trained), chat_template=hostile, **options), little=True)
    for batch in (conversations(talks, [tools] * len(talks)), pairs([sides]), documents(texts)):
        kept, dropped = kept_and_dropped(stage, batch)
        assert kept.num_rows + dropped.num_rows >= batch.num_rows and dropped.column("reason").null_count == 0
        found = set(kept.column("id").to_pylist()) | set(dropped.column("id").to_pylist())
        assert found >= {f"r{i}" for i in range(batch.num_rows) if thinking == "last"}


def test_a_tokenizer_of_the_hub_is_fetched_once_and_its_revision_is_in_the_manifest(trained, tmp_path, monkeypatch):
    pytest.importorskip("huggingface_hub")
    (tmp_path / "in.jsonl").write_text('{"text": "one two"}\n')
    files = {file.name: file.read_bytes() for file in Path(trained).iterdir()} | {"model.safetensors": b"not fetched"}
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))

    def tokenize(name: str, output: str, ends: int = 0) -> CompletedProcess[str]:
        command = ("-m", "datakit", "tokenize", "in.jsonl", "--tokenizer", name, "--output", output)
        return python(*command, ends=ends, cwd=tmp_path)

    with Server(Hub(files)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        tokenize("me/mine", "first")
        absent = tokenize("me/other", "absent", ends=1)
    tokenize("me/mine", "again")  # the server is gone
    tagged = tokenize("me/mine@v2", "tagged", ends=1)
    assert not list((tmp_path / "hub").rglob("model.safetensors"))
    one, two = (load(tmp_path / name / "manifest.json") for name in ("first", "again"))
    assert one.facts["tokenizer"]["revision"] == "f" * 40 and one.key == two.key
    for failed, line in ((absent, "hf download me/other"), (tagged, "hf download me/mine --revision v2")):
        assert line in failed.stderr and "Traceback" not in failed.stderr
