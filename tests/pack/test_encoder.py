"""fastokens gives the ids of `tokenizers` on hostile text, or `tokenizers` encodes."""

import copy
import itertools
import json
from bisect import bisect_left
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import normalizers

from datakit.pack.chat import FLAGS, ChatTokenizer
from datakit.pack.tokenize import AWKWARD, PASSAGE_CHARS, Encoder, sample
from datakit.pack.train_tokenizer import TokenizerConfig, train_tokenizer
from tests.pack.by_hand import saved

HEAD = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
TAIL = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = HEAD + r"\p{N}|" + TAIL
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
    "qwen2": lambda spec: changed(spec, pre_tokenizer=split_by(QWEN2), normalizer={"type": "NFC"}),
    "bytes missing": without_bytes,
}


def encoder_of(spec, folder) -> Encoder:
    folder.mkdir(exist_ok=True)
    return Encoder(ChatTokenizer.load(saved(folder, spec, eos_token="<|im_end|>")))


@pytest.fixture(scope="session", params=VARIANTS)
def encoder(request, trained_spec, tmp_path_factory):
    return encoder_of(VARIANTS[request.param](trained_spec), tmp_path_factory.mktemp("variant"))


def rows_of(encoder, texts):
    ids, offsets = encoder.fast(texts)
    return [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]


def expected(encoder, texts):
    return [e.ids for e in encoder.tokenizer.encoder.encode_batch_fast(texts, add_special_tokens=False)]


HOSTILE = [*AWKWARD, "'ſ", "'lL", "''", "’s", "²", "〇", "Ab", "é", "\u0301", "<|im_end|>", "<", "the", " tokenizer"]
CHARACTERS = st.characters(exclude_categories=["Cs"])
TEXTS = st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(CHARACTERS, max_size=4)), max_size=12).map("".join)


@pytest.mark.parametrize("encoder", ["qwen2"], indirect=True)
def test_every_code_point_is_classed_as_the_library_does(encoder):
    codes = [c for c in range(0x34000) if not 0xD800 <= c < 0xE000]
    rest = [*range(0x34000, 0x110000, 37), *range(0xE0000, 0xE0200)]  # planes of private use, and unassigned ones
    texts = ["".join(f"a{chr(c)}1" for c in codes[i : i + 997]) for i in range(0, len(codes), 997)]
    texts += ["".join(map(chr, rest[i : i + 4001])) for i in range(0, len(rest), 4001)]
    for i in range(0, len(texts), 50):
        assert rows_of(encoder, texts[i : i + 50]) == expected(encoder, texts[i : i + 50])


@settings(max_examples=40)
@given(texts=st.lists(TEXTS, min_size=1, max_size=6))
def test_placed_tokens_end_where_the_librarys_do(encoder, texts):
    """Every character of every text is a place; those of texts that NFC changes come from `tokenizers`."""
    of_text = np.concatenate([np.full(len(text) + 1, i) for i, text in enumerate(texts)])
    places = np.concatenate([np.arange(len(text) + 1) for text in texts])
    library = encoder.tokenizer.encoder
    ids, offsets, found = encoder.encode(texts, places, of_text)
    for i, encoding in enumerate(library.encode_batch(texts, add_special_tokens=False)):
        assert ids[offsets[i] : offsets[i + 1]].tolist() == encoding.ids
        starts = [start for start, _ in encoding.offsets]
        assert found[of_text == i].tolist() == [bisect_left(starts, n) for n in range(len(texts[i]) + 1)]


def test_bytes_that_add_up_are_no_place_where_they_are_others(trained_spec, tmp_path):
    """NFC makes one of these characters longer and the other shorter."""
    encoder = encoder_of(VARIANTS["qwen2"](trained_spec), tmp_path)
    text = "\u0958" + "e\u0301" * 3
    assert len(normalizers.NFC().normalize_str(text).encode()) == len(text.encode())
    found = encoder.encode([text, "plain"], np.array([5, 5]), np.arange(2)).tokens.tolist()
    starts = [[a for a, _ in e.offsets] for e in encoder.tokenizer.encode([text, "plain"])]
    assert found == [bisect_left(own, 5) for own in starts]


def test_all_texts_of_a_batch_have_a_share_in_the_sample():
    few, many, long = ["ab"], [f"{i:04}" * 50 for i in range(10_000)], ["a" * 100_000 + "b" * 100_000] * 10
    assert sample([]) == [] and sample(few) == few
    places = [int(text[:4]) for text in sample(many)]
    assert len(places) == 4 and {b - a for a, b in itertools.pairwise(places)} == {2560}
    half = PASSAGE_CHARS // 2
    assert sample(long) == ["a" * half + "b" * half] * 5


def test_one_other_id_sends_the_batch_to_the_library(trained_spec, tmp_path, monkeypatch):
    encoder = encoder_of(trained_spec, tmp_path)
    right = encoder.fast
    encoder.fast = lambda texts: (found := right(texts)) and (found[0] + ("b" in texts[0]), found[1])
    for text in "ab":
        assert encoder.encode([text]).ids.tolist() == encoder.tokenizer.encode_text(text)


def with_added(spec, *tokens):
    first = len(spec["model"]["vocab"]) + 10
    more = [FLAGS | {"id": first + i, "special": False} | token for i, token in enumerate(tokens)]
    return changed(spec, added_tokens=spec["added_tokens"] + more)


@pytest.mark.parametrize(
    ("tokens", "is_fast"),
    [
        ([{"content": "<tool>"}, {"content": "\n"}, {"content": "\n\n"}, {"content": "  ", "normalized": True}], True),
        ([{"content": "call"}, {"content": "quokka", "single_word": True, "normalized": True}], False),
    ],
)
def test_texts_of_added_tokens_are_compared_when_a_tokenizer_is_loaded(trained_spec, tmp_path, tokens, is_fast):
    encoder = encoder_of(with_added(trained_spec, *tokens), tmp_path)
    assert (encoder.fast is not None) == is_fast


def test_a_text_of_the_comparison_on_which_the_library_fails_ends_no_run(trained_spec, tmp_path):
    """`tokenizers` panics where an added token of white space takes the white space around it."""
    token = {"content": "\n\n", "lstrip": True, "rstrip": True}
    encoder = encoder_of(with_added(trained_spec, token, {"content": "  ", "lstrip": True}), tmp_path)
    assert encoder.fast is None and len(encoder.encode(["plain"]).ids)


def test_a_tokenizer_that_fastokens_does_not_read_goes_to_the_library(trained_spec, tmp_path):
    encoder = encoder_of(changed(trained_spec, normalizer={"type": "Nmt"}), tmp_path)
    assert encoder.fast is None and len(encoder.encode(["plain"]).ids)
