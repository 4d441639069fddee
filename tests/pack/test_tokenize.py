"""The stage from rows to ids; fastokens gives the library's ids on hostile text, and where it does not, the identity
gate sends all to the library."""

import copy
import hashlib
import itertools
import json
import pickle
import queue
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, normalizers

from datakit.data import SPANS, tokens
from datakit.errors import ConfigError, ModelError, UsageError
from datakit.manifest import Count, Ledger
from datakit.pack import tokenize
from datakit.pack.chat import FIRST_PRIVATE, RESERVED, ChatTokenizer
from datakit.pack.template import CHATML
from datakit.pack.tokenize import (
    AWKWARD,
    Encoder,
    EngineChoice,
    Sample,
    Tokenize,
    TokenizeConfig,
    choose_engine,
    surround,
)
from datakit.pack.train_tokenizer import TokenizerConfig, train_tokenizer
from datakit.stage import split, with_column

SAY = {"role": "assistant", "content": "fine"}
ASK = {"role": "user", "content": "how are you"}


@pytest.fixture(params=["fastokens", "tokenizers"])
def stage(request, trained) -> Tokenize:
    return Tokenize(TokenizeConfig(tokenizer=str(trained)), choice=EngineChoice(request.param))


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
    _, dropped = kept_and_dropped(stage, documents([f"a{RESERVED}{chr(FIRST_PRIVATE + 1)}b"]))
    assert dropped.column("reason").to_pylist() == ["reserved_code_point"]
    _, dropped = kept_and_dropped(stage, conversations([[ASK | {"content": RESERVED + chr(FIRST_PRIVATE + 1)}, SAY]]))
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


def test_a_side_without_an_answer_has_no_tokens_and_one_side_must_have_some(stage, small, pairs):
    alone = [([ASK], [SAY], []), ([ASK], [], [SAY]), ([ASK], [], []), ([ASK], [ASK], [])]
    kept, dropped = kept_and_dropped(stage, pairs(alone))
    assert dropped.column("reason").to_pylist() == ["empty", "no_labels"]
    assert [[len(ids) > 0 for ids in kept.column(name).to_pylist()] for name in ("input_ids", "rejected_ids")] == [
        [True, False],
        [False, True],
    ]
    assert [kept.column(n).null_count for n in ("label_spans", "rejected_label_spans")] == [0, 0]
    ids, (span,) = kept.column("rejected_ids")[1].as_py(), kept.column("rejected_label_spans")[1].as_py()
    assert small.decode(ids[span["start"] : span["end"]]) == "fine<|im_end|>"


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
    for name, content in stage.files().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert ChatTokenizer.load(tmp_path / "kept/tokenizer").facts() == small.facts()


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


@pytest.mark.parametrize("name", ["minimind", "smollm", "qwen2"])
def test_real_tokenizers_neither_truncate_nor_pad(real, name, documents):
    """SmolLM's file asks for truncation to 192 tokens and padding."""
    library = Tokenizer.from_file(str(real(name) / "tokenizer.json"))
    library.no_truncation()
    library.no_padding()
    texts = ["word " * 1000, "短", "e\u0301 naïve 12345\r\n\r\n  x"]
    for engine in ("fastokens", "tokenizers"):
        stage = Tokenize(TokenizeConfig(tokenizer=str(real(name))), choice=EngineChoice(engine))
        kept, _ = kept_and_dropped(stage, documents(texts))
        assert [r[:-1] for r in kept.column("input_ids").to_pylist()] == [library.encode(t).ids for t in texts]


def test_settings_may_hold_tokens_as_objects_and_templates_by_name(trained, tmp_path):
    settings = json.loads((trained / "tokenizer_config.json").read_bytes())
    settings["eos_token"] = {"content": "<|im_end|>", "special": True}
    settings["chat_template"] = [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}]
    (tmp_path / "tokenizer.json").write_bytes((trained / "tokenizer.json").read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    found = ChatTokenizer.load(tmp_path)
    assert found.eos_id == 2
    assert found.template_source == "D"
    (tmp_path / "chat_template.jinja").write_text("J")
    assert ChatTokenizer.load(tmp_path / "tokenizer.json").template_source == "J"


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
HEAD = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
TAIL = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3, QWEN2 = HEAD + r"\p{N}{1,3}|" + TAIL, HEAD + r"\p{N}|" + TAIL
TEXT = (
    "The tokenizer's job: 1234567 pieces, we'LL say; über 東京は日本の首都です。 ได้ยินเสียง\r\n\r\n"
    "\tdef f(x):\n        return x\n"
)


def byte_level(**more):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True} | more


def split_by(regex):
    split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [split, byte_level(use_regex=False)]}


@pytest.fixture(scope="session")
def trained_spec() -> dict:
    own = Path(__file__).read_text(encoding="utf-8")
    files = train_tokenizer([TEXT * 3, own, own.upper()], TokenizerConfig(vocab_size=700))
    return json.loads(files["tokenizer.json"])


def changed(spec, **parts):
    made = copy.deepcopy(spec)
    made["model"] |= parts.pop("model", {})
    return made | parts


def without_bytes(spec):
    """As SmolLM: a few bytes are no token, and the library leaves them out of the text."""
    model = spec["model"]
    gone = {"e", "x", "æ", "Ģ", "Ġ"}
    merges = [m for m in model["merges"] if not gone & set("".join(m))]
    left = sorted((i, t) for t, i in model["vocab"].items() if not gone & set(t))
    vocab = {t: i for i, (_, t) in enumerate(left)}
    return changed(spec, model={"merges": merges, "vocab": vocab})


VARIANTS = {
    "ours": lambda spec: spec,
    "gpt2": lambda spec: changed(spec, pre_tokenizer=byte_level()),
    "gpt2 as Split": lambda spec: changed(spec, pre_tokenizer=split_by(GPT2)),
    "llama3": lambda spec: changed(spec, pre_tokenizer=split_by(LLAMA3)),
    "qwen2": lambda spec: changed(spec, pre_tokenizer=split_by(QWEN2), normalizer={"type": "NFC"}),
    "ignore_merges": lambda spec: changed(spec, model={"ignore_merges": True, "merges": spec["model"]["merges"][:150]}),
    "bytes missing": without_bytes,
}


def encoder_of(spec, folder) -> Encoder:
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(spec), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<|im_end|>"}', encoding="utf-8")
    return Encoder(ChatTokenizer.load(folder))


@pytest.fixture(scope="session", params=VARIANTS)
def encoder(request, trained_spec, tmp_path_factory):
    return encoder_of(VARIANTS[request.param](trained_spec), tmp_path_factory.mktemp("variant"))


def rows_of(encoder, texts):
    ids, offsets = encoder.encode(texts, "fastokens")
    return [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]


def expected(encoder, texts):
    return [e.ids for e in encoder.tokenizer.encoder.encode_batch_fast(texts, add_special_tokens=False)]


HOSTILE = [
    *(" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\x85", "\x1c", "\x00", "\u200b", "\ufeff"),
    *("'s", "'S", "'ſ", "'ll", "'lL", "'Re", "'K", "'", "''", "’s"),
    *("1", "12345", "٣", "²", "½", "Ⅷ", "〇", "一", "𝟘", "१२"),
    *(
        "a",
        "Ab",
        "é",
        "e\u0301",
        "ß",
        "中文字",
        "首都です",
        "ไทยนี้",
        "한국",
        "\u1112\u1161\u11ab",
        "हिन्दी",
        "🦊",
        "👩‍👩‍👧",
        "🇩🇪",
    ),
    *("\u0301", "\u0345\u0334", "\u0334\u0345", "\u212b", "\u0958", "\ufdd0\ue001", "\U00010ffff"[:1], "\U0010ffff"),
    *("!", "...", "--------", "======", "://", "_", "#", "\\", '"', "<|im_end|>", "<|im_start|>", "<|im_", "|>", "<"),
    *("the", "return", " tokenizer", "x" * 40, "=" * 70, " " * 50, "日本の首都です東京は" * 4, "aaaaab" * 12),
]
CHARACTERS = st.characters(exclude_categories=["Cs"])
TEXTS = st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(CHARACTERS, max_size=4)), max_size=12).map("".join)


@settings(max_examples=40)
@given(texts=st.lists(TEXTS, min_size=1, max_size=6))
def test_ids_are_the_librarys_on_hostile_text(encoder, texts):
    assert rows_of(encoder, texts) == expected(encoder, texts)


@pytest.mark.parametrize("encoder", ["ours", "qwen2"], indirect=True)
def test_every_code_point_is_classed_as_the_library_does(encoder):
    codes = [c for c in range(0x34000) if not 0xD800 <= c < 0xE000]
    rest = [*range(0x34000, 0x110000, 37), *range(0xE0000, 0xE0200)]  # planes of private use, and unassigned ones
    texts = ["".join(f"a{chr(c)}1" for c in codes[i : i + 997]) for i in range(0, len(codes), 997)]
    texts += ["".join(map(chr, rest[i : i + 4001])) for i in range(0, len(rest), 4001)]
    for i in range(0, len(texts), 50):
        assert rows_of(encoder, texts[i : i + 50]) == expected(encoder, texts[i : i + 50])


def test_two_awkward_strings_in_every_order(encoder):
    texts = [a + b + c for a in HOSTILE for b in HOSTILE for c in ("", "a")]
    assert rows_of(encoder, texts) == expected(encoder, texts)


@pytest.mark.parametrize("n", [16, 64, 300])
def test_long_pieces(encoder, n):
    texts = [unit * k for unit in ("a", "ab", "the", "東", "東京", "-") for k in range(n // 4 - 3, n + 3)]
    assert rows_of(encoder, texts) == expected(encoder, texts)


def test_a_piece_of_a_million_bytes_takes_no_quadratic_time(encoder):
    text = ["the" * 100_000 + "東京" * 20_000]
    assert rows_of(encoder, text) == expected(encoder, text)


@settings(max_examples=40)
@given(texts=st.lists(TEXTS, min_size=1, max_size=6))
def test_placed_tokens_end_where_the_librarys_do(encoder, texts):
    ids, offsets, ends, placed = encoder.encode_placed(texts)
    library = encoder.tokenizer.encoder
    nfc, lacking = library.normalizer is not None, library.token_to_id("x") is None
    for i, encoding in enumerate(library.encode_batch(texts, add_special_tokens=False)):
        own, text = slice(offsets[i], offsets[i + 1]), texts[i]
        changed = nfc and normalizers.NFC().normalize_str(text) != text
        assert not (changed and placed[i])
        assert placed[i] or changed or lacking
        if placed[i]:
            assert ids[own].tolist() == encoding.ids
            starts = [0, *ends[own].tolist()][: len(encoding)]
            in_chars = [len(text.encode()[:start].decode(errors="ignore")) for start in starts]
            assert in_chars == [start for start, _ in encoding.offsets]


def test_bytes_that_add_up_are_no_place_where_they_are_others(trained_spec, tmp_path):
    """NFC makes one of these characters longer and the other shorter."""
    encoder = encoder_of(VARIANTS["qwen2"](trained_spec), tmp_path)
    text = "\u0958" + "e\u0301" * 3
    assert len(normalizers.NFC().normalize_str(text).encode()) == len(text.encode())
    assert encoder.encode_placed([text, "plain"])[3].tolist() == [False, True]


@pytest.mark.parametrize("length", [2, 1000])
def test_ids_are_put_around_rows_with_text_alone(length):
    row = list(range(10, 10 + length))
    ids, offsets = surround(np.array(row * 2, np.int32), np.array([0, length, length, 2 * length]), [1], [2, 3])
    assert [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)] == [[1, *row, 2, 3], [], [1, *row, 2, 3]]


def test_threads_share_an_encoder(encoder):
    texts = [TEXT[i:] + TEXT[:i] for i in range(60)]
    wanted, found = expected(encoder, texts), queue.SimpleQueue()
    threads = [threading.Thread(target=lambda: found.put(rows_of(encoder, texts))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found.get() == wanted for _ in threads)


def test_added_tokens_are_found_before_normal_forms(trained_spec, tmp_path):
    """NFC composes `>` and U+0338; an added token is found before that can happen."""
    encoder = encoder_of(VARIANTS["qwen2"](trained_spec), tmp_path)
    end = encoder.tokenizer._spelled["<|im_end|>"]
    texts = [f"{end}\u0338", f"e\u0301{end}e\u0301", "e\u0301>\u0338", "\u037e<\u2000|im_end|>", "\u1fef e\u0301\u0323"]
    assert rows_of(encoder, texts) == expected(encoder, texts)


def sampled(documents, cuts=(), first_key=0) -> Sample:
    """A sample of documents that come in batches."""
    sample, keys = Sample(), np.arange(first_key, first_key + len(documents), dtype=np.uint64)
    edges = [0, *cuts, len(documents)]
    for a, b in itertools.pairwise(edges):
        own = documents[a:b]
        sample.add(keys[a:b], sum(map(len, own)), lambda which, own=own: [[own[i]] for i in which])
    return sample


def test_the_sample_is_from_the_whole_input_whatever_the_batches():
    documents = [f"document {i} " * (i % 700) for i in range(3000)]
    whole = sampled(documents).texts()
    assert whole == sampled(documents, (1, 500, 501, 2999)).texts()
    assert sum(len(t) for t in whole) <= tokenize.SAMPLE_BYTES and max(map(len, whole)) <= tokenize.PASSAGE_CHARS
    numbers = sorted(int(t.removeprefix("document ").split()[0]) for t in whole if t.startswith("document "))
    assert min(numbers) < 300 and max(numbers) > 2700
    assert any(t and not t.startswith("document") for t in whole)


MUCH = ["the quick brown fox, 東京 12345\n" * 100] * 200


def test_the_gate_takes_fastokens_where_ids_are_equal(encoder):
    assert choose_engine(encoder, sampled(MUCH)) == EngineChoice("fastokens", "", len(AWKWARD) + 200)


def test_little_text_is_not_worth_loading_fastokens(encoder):
    assert choose_engine(encoder, sampled(MUCH[:2])) == EngineChoice("tokenizers", "there is little text")


def test_one_other_id_sends_everything_to_the_library(trained_spec, tmp_path, monkeypatch):
    encoder = encoder_of(trained_spec, tmp_path)
    right = encoder.encode

    def wrong(texts, engine):
        ids, offsets = right(texts, engine)
        ids = ids.copy()
        ids[-1] += 1
        return ids, offsets

    monkeypatch.setattr(encoder, "encode", wrong)
    choice = choose_engine(encoder, sampled(MUCH))
    assert choice.engine == "tokenizers" and "other ids than tokenizers for '" in choice.reason


def test_a_tokenizer_that_fastokens_does_not_read_goes_to_the_library(trained_spec, tmp_path):
    encoder = encoder_of(changed(trained_spec, normalizer={"type": "Nmt"}), tmp_path)
    choice = choose_engine(encoder, sampled(MUCH))
    assert choice.engine == "tokenizers" and choice.reason.startswith("fastokens does not read this tokenizer: ")


@pytest.fixture
def written(trained_spec, tmp_path):
    """A stage whose tokenizer normalises, and a folder for its choice."""
    encoder_of(VARIANTS["qwen2"](trained_spec), tmp_path / "tokenizer")
    return Tokenize(TokenizeConfig(tokenizer=str(tmp_path / "tokenizer"))), tmp_path


def test_the_choice_is_made_once_for_a_run(written, documents, monkeypatch):
    stage, folder = written
    batch = documents(MUCH)
    prepared = stage.prepare(lambda groups: iter([batch]), folder)
    assert prepared.choice.engine == "fastokens"
    monkeypatch.setattr(tokenize, "AWKWARD", ())
    again = stage.prepare(lambda groups: pytest.fail("the rows are not read again"), folder)
    assert again.choice == prepared.choice


QUESTION, ANSWER = {"role": "user", "content": "?"}, {"role": "assistant"}


def test_conversations_and_pairs_are_sampled_as_they_are_rendered(written, conversations, pairs):
    stage, folder = written
    rows = [[QUESTION, ANSWER | {"content": text * 20}] for text in MUCH[:20]]
    broken = [[QUESTION, ANSWER | {"content": "\ufdd0\ue001"}], []]
    assert stage.prepare(lambda groups: iter([conversations(rows + broken)]), folder).choice.rows == len(AWKWARD) + 21
    (folder / "encoder.json").unlink()
    given = [([QUESTION], [ANSWER | {"content": text * 20}], [ANSWER | {"content": "no"}]) for text in MUCH[:20]]
    assert stage.prepare(lambda groups: iter([pairs(given)]), folder).choice.rows == len(AWKWARD) + 40


@pytest.mark.parametrize("kind", ["documents", "conversations"])
def test_the_stage_gives_the_same_with_both_libraries(request, trained, kind):
    texts = [TEXT * 2, "", "a\ufdd0\ue001", "<|im_end|>", "e\u0301", "\ufdd0", "東京" * 40]
    rows = texts if kind == "documents" else [[QUESTION, ANSWER | {"content": text}] for text in texts]
    batch, found = request.getfixturevalue(kind)(rows), []
    for engine in ("fastokens", "tokenizers"):
        found.append(Tokenize(TokenizeConfig(tokenizer=str(trained)), kind[:-1], EngineChoice(engine)).decide(batch))
    assert found[0].reasons.equals(found[1].reasons) and found[0].detail.equals(found[1].detail)
    assert found[0].columns == found[1].columns
    assert found[0].reasons.null_count >= 5


def test_the_stage_counts_rows_by_library(written, documents, conversations):
    """A conversation that NFC changes needs `tokenizers`, which knows where its tokens come from."""
    stage, folder = written
    stage = stage.prepare(lambda groups: iter([documents(MUCH)]), folder)
    stage.decide(documents(["a b", "e\u0301", ""]))
    assert stage.measured() == {"fast_rows": 3, "library_rows": 0}
    stage.decide(conversations([[QUESTION, ANSWER | {"content": text}] for text in ("a b", "e\u0301")]))
    found = stage.measured()
    assert found == {"fast_rows": 1, "library_rows": 1}
    assert stage.summary(found) == "1 rows encoded by fastokens, 1 by tokenizers"
    assert set(stage.measured().values()) == {0}


def test_the_stage_says_why_the_library_encodes(written, documents):
    stage, folder = written
    stage = stage.prepare(lambda groups: iter([documents(["a b"])]), folder)
    stage.decide(documents(["a b"]))
    assert stage.summary(stage.measured()).endswith("1 by tokenizers (there is little text)")


def test_documents_run_in_threads_where_fastokens_encodes(trained):
    stage = Tokenize(TokenizeConfig(tokenizer=str(trained)), choice=EngineChoice("fastokens"))
    assert not stage.for_kind("document").use_processes()
    assert stage.for_kind("conversation").use_processes()
    assert Tokenize(stage.config).for_kind("document").use_processes()


@pytest.mark.parametrize("name", ["minimind", "smollm", "qwen2"])
def test_real_tokenizers_on_real_text(shared, real, load, name):
    """The reserved spelling of added tokens is what the stage encodes with."""
    encoder = Encoder(load(real(name)))
    spelled = encoder.tokenizer._spelled
    corpora = shared / "corpora"
    texts = pq.read_table(corpora / "web/classic_books_en.parquet", columns=["text"])["text"][:1].to_pylist()
    for path in ("language/udhr_paragraphs.jsonl.zst", "web/react_docs_zh.jsonl.zst", "web/electron_8_langs.jsonl.zst"):
        with pa.input_stream(str(corpora / path)) as stream:
            lines = stream.read().splitlines()
        texts += [json.loads(line)["text"] for line in lines[:: max(1, len(lines) // 60)]][:60]
    texts += [text[: len(text) // 2] + spelled[min(spelled)] + text for text in texts[1:50]]
    texts = [text[:6_000] for text in texts]
    assert rows_of(encoder, texts) == expected(encoder, texts)
    assert choose_engine(encoder, sampled(texts * 3)).engine == "fastokens"


THINKS = "{%- for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content and loop.last %}{{ '[' + m.reasoning_content + ']' }}{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"  # noqa: E501
TWO_THOUGHTS = [ASK, SAY | {"reasoning_content": "one"}, ASK, SAY | {"reasoning_content": "two"}]


def thinking_stage(with_added, tmp_path, **options) -> Tokenize:
    with_added(THINKS)
    return Tokenize(TokenizeConfig(tokenizer=str(tmp_path), **options))


def test_thoughts_that_a_template_strips_are_counted(with_added, tmp_path, conversations):
    stage = thinking_stage(with_added, tmp_path)
    decision = stage.decide(conversations([TWO_THOUGHTS, [ASK, SAY]]))
    assert decision.notes == {"reasoning_stripped": 1}
    stage = Tokenize(TokenizeConfig(tokenizer=str(tmp_path), chat_template="plain"))
    decision = stage.decide(conversations([TWO_THOUGHTS, [ASK, SAY]]))
    assert decision.notes == {"reasoning_not_rendered": 1}
    ledger = Ledger(Count(into=2, kept=2), None, decision.notes)
    assert "1 of 2 rows" in stage.alarms(ledger)[0]
    assert not stage.alarms(Ledger(Count(into=200, kept=200), None, decision.notes))


def test_every_turn_makes_a_sequence_of_each_answer_as_the_model_would_have_seen_it(
    with_added, tmp_path, conversations
):
    stage = thinking_stage(with_added, tmp_path, thinking="every_turn")
    kept, _ = kept_and_dropped(stage, conversations([TWO_THOUGHTS, [ASK, SAY], [ASK, SAY, ASK, SAY | {"weight": 0}]]))
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
    batch = with_column(conversations([[ASK, SAY]] * 3), "extra", pa.array(extra))
    assert stage.decide(batch).notes == {"chat_template_kwargs_ignored": 2}
    thought = SAY | {"reasoning_content": "one"}
    sides = ([thought, ASK, SAY], [thought, ASK, SAY])
    batch = pairs([([ASK], *sides), ([ASK], [SAY], [SAY]), ([], [], [thought, ASK, SAY])])
    assert stage.decide(batch).notes == {"reasoning_stripped": 1}


def test_rows_whose_answers_have_other_weights_than_0_and_1_are_counted(with_added, tmp_path, conversations, pairs):
    stage = thinking_stage(with_added, tmp_path)
    half = SAY | {"weight": 0.5}
    rows = [[ASK, half, ASK, half], [ASK | {"weight": 0.5}, SAY], [ASK, SAY | {"weight": 1}], [ASK, half], []]
    assert stage.decide(conversations(rows)).notes == {"loss_weights_rounded": 2}
    assert stage.decide(pairs([([ASK], [half], [half]), ([ASK], [SAY], [SAY])])).notes == {"loss_weights_rounded": 1}


def test_variables_of_the_template_and_of_the_row(with_added, tmp_path, conversations):
    with_added(
        "{% if loud %}<|im_start|>system\n{{ loud }} {{ strftime_now('%d.%m.%Y') }}<|im_end|>\n{% endif %}" + CHATML
    )
    stage = Tokenize(TokenizeConfig(tokenizer=str(tmp_path), template_var={"loud": "yes", "today": "2025-12-31"}))
    batch = conversations([[ASK, SAY], [ASK, SAY], [ASK, SAY]])
    extra = [None, '{"chat_template_kwargs": {"loud": false}}', '{"chat_template_kwargs": {"loud": "VERY"}}']
    batch = with_column(batch, "extra", pa.array(extra, pa.string()))
    kept, _ = kept_and_dropped(stage, batch)
    texts = [stage.tokenizer.decode(ids) for ids in kept.column("input_ids").to_pylist()]
    assert ["yes 31.12.2025" in t for t in texts] == [True, False, False]
    assert "VERY 31.12.2025" in texts[2] and "system" not in texts[1]
    settings = json.loads(stage.tokenizer.files()["tokenizer_config.json"])
    assert settings["chat_template_kwargs"] == {"loud": "yes", "today": "2025-12-31"}
    with pytest.raises(ConfigError, match="today: expected a date"):
        TokenizeConfig(template_var={"today": "tomorrow"})


NEVER_ENDS = "{% for a in range(9999) %}{% for b in range(9999) %}{% set x = a %}{% endfor %}{% endfor %}"


def test_a_template_that_fails_on_every_row_or_never_ends_stops_the_run(
    with_added, tmp_path, conversations, monkeypatch
):
    monkeypatch.setattr("datakit.pack.template.ROW_SECONDS", 0.2)
    with_added("{% for m in messages %}{{ raise_exception('no chat here') }}{% endfor %}")
    stage = Tokenize(TokenizeConfig(tokenizer=str(tmp_path)))
    with pytest.raises(ModelError, match="fails on every row: TemplateError: no chat here"):
        stage.prepare(lambda _: iter([conversations([[ASK, SAY]])]), tmp_path)
    with_added(CHATML + "{% if messages[0].content == 'loop' %}" + NEVER_ENDS + "{% endif %}")
    stage = Tokenize(TokenizeConfig(tokenizer=str(tmp_path)))
    with pytest.raises(ModelError, match="takes too long for the row r1"):
        stage.decide(conversations([[ASK, SAY], [ASK | {"content": "loop"}, SAY]]))
    with pytest.raises(ModelError, match="takes too long for a question"):
        with_added(CHATML + NEVER_ENDS)
