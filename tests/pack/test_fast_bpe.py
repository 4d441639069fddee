"""The kernels' ids are the library's: on hostile strings, for every pipeline they know, on real text.

bench/bpe.py compares every row of every corpus.
"""

import copy
import itertools
import json
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

from datakit.pack import fast_bpe, tokenize
from datakit.pack._kernels_bpe import LONG_BYTES, SHORT_BYTES
from datakit.pack._kernels_bpe_merge import SCAN_BYTES
from datakit.pack._kernels_bpe_seams import APART, PART, WHOLE, seam_kind
from datakit.pack.bpe_pipeline import REGEXES, NotRecognised, recognise
from datakit.pack.fast_bpe import FastBpe
from datakit.pack.tokenize import Tokenize, TokenizeConfig
from datakit.pack.train_tokenizer import TokenizerConfig, train_tokenizer

GPT2, LLAMA3, QWEN2 = REGEXES
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
    vocab = {t: i for t, i in model["vocab"].items() if not gone & set(t)}
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


@pytest.fixture(scope="session", params=VARIANTS)
def pair(request, trained_spec):
    """The fast path of a tokenizer, and the library's."""
    spec = VARIANTS[request.param](trained_spec)
    library = Tokenizer.from_str(json.dumps(spec))
    fast = FastBpe.of(spec, library)
    assert isinstance(fast, FastBpe), fast
    return fast, library


def rows_of(fast, texts, **around):
    ids, offsets = fast.encode(pa.array(texts, pa.string()), **around)
    return [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]


def expected(library, texts):
    return [e.ids for e in library.encode_batch_fast(texts, add_special_tokens=False)]


AWKWARD = [
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
TEXTS = st.lists(st.one_of(st.sampled_from(AWKWARD), st.text(CHARACTERS, max_size=4)), max_size=12).map("".join)


@settings(max_examples=40)
@given(texts=st.lists(TEXTS, min_size=1, max_size=6))
def test_ids_are_the_librarys_on_hostile_text(pair, texts):
    fast, library = pair
    assert rows_of(fast, texts) == expected(library, texts)


@pytest.mark.parametrize("pair", ["ours", "qwen2"], indirect=True)
def test_every_code_point_is_classed_as_the_library_does(pair):
    fast, library = pair
    codes = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    texts = ["".join(f"a{chr(c)}1" for c in codes[i : i + 997]) for i in range(0, 0x34000, 997)]
    texts += ["".join(map(chr, codes[i : i + 4001])) for i in range(0x34000, len(codes), 4001)]
    for i in range(0, len(texts), 50):
        assert rows_of(fast, texts[i : i + 50]) == expected(library, texts[i : i + 50])


def test_two_awkward_strings_in_every_order(pair):
    fast, library = pair
    texts = [a + b + c for a in AWKWARD for b in AWKWARD for c in ("", "a")]
    assert rows_of(fast, texts) == expected(library, texts)


@pytest.mark.parametrize("n", [SHORT_BYTES, LONG_BYTES, SCAN_BYTES, 300])
def test_pieces_around_every_limit(pair, n):
    fast, library = pair
    texts = [unit * k for unit in ("a", "ab", "the", "東", "東京", "-") for k in range(n // 4 - 3, n + 3)]
    assert rows_of(fast, texts) == expected(library, texts)


def test_a_piece_of_a_million_bytes_takes_no_quadratic_time(pair):
    fast, library = pair
    text = ["the" * 100_000 + "東京" * 20_000]
    assert rows_of(fast, text) == expected(library, text)


def test_a_full_cache_changes_nothing(monkeypatch, trained_spec):
    monkeypatch.setattr(fast_bpe, "SHORT_SLOTS", 8)
    monkeypatch.setattr(fast_bpe, "LONG_SLOTS", 4)
    library = Tokenizer.from_str(json.dumps(trained_spec))
    fast = FastBpe.of(trained_spec, library)
    rng = np.random.default_rng(0)
    words = Path(__file__).read_text(encoding="utf-8").split()
    texts = [" ".join(rng.choice(words, 50)) for _ in range(40)]
    assert rows_of(fast, texts) == expected(library, texts)
    assert fast.tally.misses > 0.5 * fast.tally.pieces


def test_a_cache_never_grows(trained_spec):
    """Whatever was encoded, a thread's cache is what its slots take; and threads one after another share one."""
    fast = FastBpe.of(trained_spec, Tokenizer.from_str(json.dumps(trained_spec)))
    rng = np.random.default_rng(0)
    sizes = []
    for n in (1, 30_000):
        words = ["".join(map(chr, rng.integers(0x4E00, 0x9FFF, k))) for k in rng.integers(1, 40, n)]
        fast.encode(pa.array([" ".join(words)]))
        assert fast._caches.qsize() == 1
        cache = fast._caches.get_nowait()
        sizes.append(sum(a.nbytes for a in cache))
        fast._caches.put(cache)
    assert sizes[0] == sizes[1] < 11 << 20
    assert fast.tally.misses > 30_000


def test_ids_are_put_around_rows_with_text_alone(pair):
    fast, library = pair
    (first, last) = expected(library, ["ab", "b"])
    assert rows_of(fast, ["ab", "", None, "b"], before=[1], after=[2, 3]) == [
        [1, *first, 2, 3],
        [],
        [],
        [1, *last, 2, 3],
    ]


def test_a_slice_of_a_column_is_its_own(pair):
    fast, library = pair
    texts = ["zero", "ein Text", "dos", "三つ", ""]
    ids, offsets = fast.encode(pa.array(texts).slice(1, 3))
    assert [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)] == expected(library, texts[1:4])


@settings(max_examples=40)
@given(texts=st.lists(TEXTS, min_size=1, max_size=6))
def test_aligned_tokens_end_where_the_librarys_do(pair, texts):
    fast, library = pair
    ids, offsets, ends, aligned = fast.encode_aligned(pa.array(texts, pa.string()))
    for i, (text, encoding) in enumerate(
        zip(texts, library.encode_batch(texts, add_special_tokens=False), strict=True)
    ):
        own = slice(offsets[i], offsets[i + 1])
        changed = fast.nfc and normalizers.NFC().normalize_str(text) != text
        assert ids[own].tolist() == ([] if changed else encoding.ids)
        assert not (changed and aligned[i])
        assert aligned[i] or changed or fast.merges.lacking
        if aligned[i]:
            starts = [0, *ends[own].tolist()][: len(encoding)]
            in_chars = [len(text.encode()[:start].decode(errors="ignore")) for start in starts]
            assert in_chars == [start for start, _ in encoding.offsets]


def around_seams(tokens):
    """(what tokens hold of the character before a seam, and of the one behind), over all seams inside tokens."""
    for token in tokens:
        leads = [i for i, byte in enumerate(token) if byte & 0xC0 != 0x80]
        edges = [0] * (leads[:1] != [0]) + leads + [len(token)]
        for left, seam, right in zip(edges, edges[1:], edges[2:], strict=False):
            yield token[left:seam], token[seam:right]


def whole(part: bytes) -> bool:
    return len(part.decode(errors="ignore")) == 1


@pytest.mark.parametrize("pair", ["ours"], indirect=True)
def test_a_piece_is_cut_only_where_no_token_reaches_across(pair, trained_spec):
    tokens = [a + b for a, b in recognise(trained_spec).merges]
    seams, held = pair[0].seams, set(around_seams(tokens))
    partial = [(a, b) for a, b in held if not (whole(a) and whole(b))]
    known = sorted({c for token in tokens for c in token.decode(errors="ignore")} | set("语한🦊é"))
    known += [chr(ord(c) ^ 1) for c in known if ord(c) > 127]
    wasted = 0
    for a, b in itertools.product(known, repeat=2):
        before, behind = a.encode(), b.encode()
        text, codes = np.frombuffer(before + behind + bytes(3), np.uint8), np.array([ord(a), ord(b)])
        entries = seams.entries[seams.pages[codes >> 8].astype(np.int64) << 8 | codes & 255]
        found = seam_kind(text, 0, len(before), tuple(codes), tuple(entries), seams)
        assert (found == PART) == any(before.endswith(p) and behind.startswith(q) for p, q in partial)
        assert found != APART or (before, behind) not in held
        wasted += found == WHOLE and (before, behind) not in held
    assert partial and wasted < 0.05 * len(known) ** 2


def test_threads_share_tables_and_not_caches(pair):
    fast, library = pair
    texts = [TEXT[i:] + TEXT[:i] for i in range(60)]
    wanted, found = expected(library, texts), queue.SimpleQueue()
    threads = [threading.Thread(target=lambda: found.put(rows_of(fast, texts))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found.get() == wanted for _ in threads)


@pytest.mark.parametrize("kind", ["documents", "conversations"])
def test_the_stage_gives_the_same_with_and_without_kernels(request, monkeypatch, trained, kind):
    texts = [TEXT * 2, "", "a\ufdd0\ue001", "<|im_end|>", "e\u0301", "\ufdd0", "東京" * 40]
    ask, say = {"role": "user", "content": "?"}, {"role": "assistant"}
    rows = texts if kind == "documents" else [[ask, say | {"content": text}] for text in texts]
    batch, found = request.getfixturevalue(kind)(rows), []
    for enough in (0, 1 << 40):
        monkeypatch.setattr(tokenize, "ENOUGH_BYTES", enough)
        found.append(Tokenize(TokenizeConfig(tokenizer=str(trained))).for_kind(kind[:-1]).decide(batch))
    assert found[0].reasons.equals(found[1].reasons) and found[0].detail.equals(found[1].detail)
    assert found[0].columns == found[1].columns
    assert found[0].reasons.null_count >= 5


def test_the_stage_tells_by_what_text_was_encoded(monkeypatch, trained_spec, documents, conversations, tmp_path):
    """A conversation that NFC changes needs the library, which alone knows where its tokens come from."""
    monkeypatch.setattr(tokenize, "ENOUGH_BYTES", 0)
    ask, say = {"role": "user", "content": "?"}, {"role": "assistant"}
    folder = tmp_path / "qwen2"
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps(VARIANTS["qwen2"](trained_spec)), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<|im_end|>"}', encoding="utf-8")
    stage = Tokenize(TokenizeConfig(tokenizer=str(folder)))
    stage.decide(documents(["a b", "e\u0301", ""]))
    assert stage.measured() == {"pieces": 3, "misses": 2, "library_rows": 0, "library_ids": 0}
    decision = stage.decide(conversations([[ask, say | {"content": text}] for text in ("a b", "e\u0301")]))
    found = stage.measured()
    assert (found["library_rows"], found["library_ids"]) == (1, len(decision.columns["input_ids"][1]))
    assert "the kernels" in stage.told(found) and "not in the normal form" in stage.told(found)
    assert set(stage.measured().values()) == {0}
    assert stage.told({"pieces": 1000, "library_rows": 1, "library_ids": 10}).endswith("1 rows by the library")


def test_the_stage_says_why_the_library_encodes(trained_spec, documents, tmp_path):
    spec = changed(trained_spec, normalizer={"type": "NFKC"})
    (tmp_path / "tokenizer.json").write_text(json.dumps(spec), encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<|im_end|>"}', encoding="utf-8")
    stage = Tokenize(TokenizeConfig(tokenizer=str(tmp_path)))
    stage.decide(documents(["a b"]))
    assert stage.told(stage.measured()).endswith("do not know this tokenizer, the normalizer is [{'type': 'NFKC'}]")


def test_documents_run_in_threads_where_the_tokenizer_is_recognised(trained):
    stage = Tokenize(TokenizeConfig(tokenizer=str(trained)))
    assert not stage.for_kind("document").holds_gil
    assert stage.for_kind("conversation").holds_gil


def test_normal_forms_keep_added_tokens_apart(trained_spec):
    """NFC composes `>` and U+0338; an added token is found before that can happen."""
    spec = VARIANTS["qwen2"](trained_spec)
    library = Tokenizer.from_str(json.dumps(spec))
    fast = FastBpe.of(spec, library)
    texts = [
        "<|im_end|>\u0338",
        "e\u0301<|im_end|>e\u0301",
        "e\u0301>\u0338",
        "\u037e<\u2000|im_end|>",
        "\u1fef e\u0301\u0323",
    ]
    assert rows_of(fast, texts) == expected(library, texts)
    assert fast.tally.library_rows == 2


REFUSED = {
    "dropout": {"model": {"dropout": 0.1}},
    "byte_fallback": {"model": {"byte_fallback": True}},
    "end_of_word_suffix": {"model": {"end_of_word_suffix": "</w>"}},
    "more than 1048575 tokens": {"model": {"vocab": {"a": 1 << 20}}},
    "model is WordPiece": {"model": {"type": "WordPiece"}},
    "the model has novelty": {"model": {"novelty": 1}},
    "the file has novelty": {"novelty": 1},
    "truncation": {"truncation": {"max_length": 5}},
    "normalizer": {"normalizer": {"type": "NFKC"}},
    "adds a space": {"pre_tokenizer": byte_level(add_prefix_space=True)},
    "the regex is": {"pre_tokenizer": split_by(GPT2.replace("'s", "'S"))},
    "last pre-tokenizer": {"pre_tokenizer": None},
    "a pre-tokenizer is": {
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, byte_level()]}
    },
    "has lstrip": {"added_tokens": [{"id": 0, "content": "<x>", "lstrip": True}]},
    "found after normalisation": {
        "normalizer": {"type": "NFC"}, "added_tokens": [{"id": 0, "content": "<x>", "normalized": True}]
    },
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_not_known_exactly_is_left_to_the_library(trained_spec, why):
    with pytest.raises(NotRecognised, match=why):
        recognise(changed(trained_spec, **REFUSED[why]))


@pytest.mark.parametrize("name", ["minimind", "smollm", "qwen2"])
def test_real_tokenizers_on_real_text(shared, real, load, name):
    """The reserved spelling of added tokens is what the stage encodes with."""
    tokenizer = load(real(name))
    fast = FastBpe.of(tokenizer.spec(), tokenizer.encoder)
    assert isinstance(fast, FastBpe), fast
    corpora = shared / "corpora"
    texts = pq.read_table(corpora / "web/classic_books_en.parquet", columns=["text"])["text"][:1].to_pylist()
    for path in ("language/udhr_paragraphs.jsonl.zst", "web/react_docs_zh.jsonl.zst", "web/electron_8_langs.jsonl.zst"):
        with pa.input_stream(str(corpora / path)) as stream:
            lines = stream.read().splitlines()
        texts += [json.loads(line)["text"] for line in lines[:: max(1, len(lines) // 150)]][:150]
    texts += [text[: len(text) // 2] + tokenizer._spelled[min(tokenizer._spelled)] + text for text in texts[1:50]]
    texts = [text[:10_000] for text in texts]
    assert rows_of(fast, texts) == expected(tokenizer.encoder, texts)
    assert fast.tally.fast_share == 1
