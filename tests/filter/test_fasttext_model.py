"""Our reading of fastText models against the fasttext module: the same label, the same score."""

import random
import re
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datakit.errors import ModelError
from datakit.filter import fasttext_model
from datakit.filter.language import find
from tests.fasttext_models import train
from tests.processes import python

WORDS = {
    "one": ["alpha", "beta", "gamma", "délta", "épsilon", "zeta", "the"],
    "two": ["альфа", "бета", "гамма", "дельта", "zeta", "и", "the"],
    "three": ["阿尔法", "贝塔", "伽马", "德尔塔", "x", "zeta", "ａ"],
    "four_Latn": ["lorem", "ipsum", "dolor", "sit", "amet", "a", "the"],
    "five": ["1", "22", "333", "4-4", "5.5", "𝔸𝔹", "😀"],
}


def line(text: str) -> str:
    """A row as one line, for the module's reader, which stops at a new line and at the word `</s>`."""
    return re.sub(r"(?<![^\0\t\v\f\r ])</s>(?![^\0\t\v\f\r ])", " ", text.replace("\n", " ")) + "\n"


def reference(model, texts: list[str]) -> tuple[list[str | None], np.ndarray]:
    labels, scores = model.f.multilinePredict([line(t) for t in texts], 1, 0.0, "strict")
    best = [found[0].removeprefix("__label__") if found else None for found in labels]
    return best, np.array([found[0] if len(found) else 0.0 for found in scores])


def assert_same(path, model, texts: list[str]) -> None:
    """Labels and scores are equal to the last bit; of a part of an array with a null, too."""
    ours, array = fasttext_model.load(path), pa.array([*texts, None], pa.string())
    (found, found_scores), (labels, scores) = ours.predict(array), reference(model, texts)
    assert found.to_pylist()[:-1] == labels
    assert found_scores.tolist()[:-1] == scores.tolist()
    assert ours.predict(array.slice(len(texts) - 1))[1].tolist() == found_scores.tolist()[-2:]


def corpus(lines: int, seed: int) -> list[tuple[str, str]]:
    rng = random.Random(seed)
    rows = []
    for _ in range(lines):
        label = rng.choices(list(WORDS), weights=[9, 5, 3, 2, 1])[0]
        rows.append((label, " ".join(rng.choices(WORDS[label], k=rng.randint(1, 12)))))
    return rows


TEXTS = [
    *(text for _, text in corpus(200, 2)),
    *("", " ", "\0", "a\0b", "</s>", "alpha</s>beta", "<", "</s", "__label__one", "__label__new alpha", "__label_"),
    *("alphabeta", "x" * 600, "é" * 3000 + " alpha", "альфа\u2028бета", "\x85", "tab\tnew\nline\r\n", "\u3000阿尔法"),
    " ".join(["alpha gamma unseen"] * 4000),
]

KINDS = {
    "softmax": {"loss": "softmax"},
    "softmax_chars": {"loss": "softmax", "minn": 2, "maxn": 4, "bucket": 5000},
    "softmax_single_chars": {"loss": "softmax", "minn": 1, "maxn": 1, "bucket": 300, "dim": 20},
    "hs_chars_words": {"loss": "hs", "minn": 1, "maxn": 3, "wordNgrams": 3, "bucket": 4000, "dim": 19},
    "softmax_words": {"loss": "softmax", "minn": 0, "maxn": 5, "wordNgrams": 2, "bucket": 3000, "dim": 33},
    "many_labels": {"loss": "softmax", "minn": 2, "maxn": 3, "bucket": 3000, "epoch": 2},
    "many_labels_hs": {"loss": "hs", "minn": 2, "maxn": 3, "bucket": 3000, "epoch": 2},
}
QUANTIZED = [
    ("softmax_words", {}), ("softmax_chars", {"qnorm": True}), ("hs_chars_words", {"cutoff": 400}),
    ("many_labels_hs", {"cutoff": 400, "qnorm": True}),
]  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a model of each kind."""
    folder = tmp_path_factory.mktemp("fasttext")
    (folder / "few.txt").write_text("".join(f"__label__{label} {text}\n" for label, text in corpus(600, 1)))
    many = [f"__label__l{i} w{i} w{i % 50} the{i % 7}\n" for i in range(300) for _ in range(2 + i % 3)]
    (folder / "many.txt").write_text("".join(many))
    defaults = {"dim": 16, "epoch": 8, "minn": 0, "maxn": 0}
    lines = {kind: "many.txt" if kind.startswith("many") else "few.txt" for kind in KINDS}
    train(folder, {kind: (lines[kind], defaults | options) for kind, options in KINDS.items()})
    return folder


def module_model(path):
    import fasttext

    return fasttext.load_model(str(path))


def quantized(trained, kind, path, **options):
    model = module_model(trained / f"{kind}.bin")
    lines = trained / ("many.txt" if kind.startswith("many") else "few.txt")
    model.quantize(input=str(lines), thread=1, verbose=0, dsub=3, **options)
    model.save_model(str(path))
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_a_bin_file_gives_the_modules_answers(kind, trained):
    path = trained / f"{kind}.bin"
    assert_same(path, module_model(path), TEXTS)


@pytest.mark.parametrize(("kind", "how"), QUANTIZED, ids=[kind for kind, _ in QUANTIZED])
def test_an_ftz_file_gives_the_modules_answers(kind, how, trained, tmp_path):
    model = quantized(trained, kind, tmp_path / "m.ftz", **how)
    assert_same(tmp_path / "m.ftz", model, [*TEXTS, "w1 w2 the3", "w299 w49 the5 unseen w"])


@pytest.mark.parametrize("kind", ["softmax_chars", "hs_chars_words"])
def test_the_probability_of_a_label_is_the_modules(kind, trained):
    path = trained / f"{kind}.bin"
    ours = fasttext_model.load(path)
    labels, scores = module_model(path).f.multilinePredict([line(t) for t in TEXTS], -1, -1.0, "strict")
    rows = [dict(zip(names, values, strict=True)) for names, values in zip(labels, scores, strict=True)]
    for label in WORDS:
        wanted = [row.get(f"__label__{label}", 0.0) for row in rows]
        np.testing.assert_allclose(ours.predict(pa.array(TEXTS), label)[1], wanted, rtol=0, atol=2e-5)


@pytest.fixture(scope="module")
def lid():
    import fasttext

    path = find("lid.176")
    return path, fasttext.load_model(str(path))


@settings(max_examples=200)
@given(texts=st.lists(st.text(max_size=60) | st.sampled_from(TEXTS[:40]), min_size=1, max_size=5))
def test_any_text_gives_the_modules_answer(lid, texts):
    assert_same(*lid, texts)


WORD_SIZES = [1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 511, 1023, 1024, 1025, 4000, 4094, 4095, 4096, 4097, 9000]


def test_words_of_any_size_at_any_place_give_the_modules_answer(lid):
    """Around the size of a piece of text, too, which ends with a word."""
    letters = "abcdefghijklmnopqrstuvwxyz" * 400
    words = [letters[i : i + n] for i, n in enumerate(WORD_SIZES)]
    words += ["слово" * n for n in (1, 2, 3, 4, 7, 60, 102, 103, 900)] + ["x" * 1030 + "é"]
    gaps = [" ", "  ", "\x85", "\u2028", "</s>", "\t\n", "\x01", "<", "</s", "â", "\u2027", "\0"]
    texts = ["".join(w + gaps[(i + k) % len(gaps)] for i, w in enumerate(words)) for k in range(len(gaps))]
    texts += [w + gap for w in words for gap in gaps] + [gap + w for w in words[:9] for gap in gaps]
    assert_same(*lid, texts)
    assert_same(*lid, [texts[0]])


def test_any_damage_is_an_error_and_never_a_crash(trained, tmp_path):
    """The kernels rely on what is checked: kept n-grams lie within buckets and rows, counts below that of a node."""

    def refused(data: bytes, at: int, form: str, value: int, message: str) -> None:
        damaged = bytearray(data)
        struct.pack_into(form, damaged, at, value)
        (tmp_path / "d").write_bytes(damaged)
        with pytest.raises(ModelError, match=message):
            fasttext_model.load(tmp_path / "d")

    tree = (trained / "many_labels_hs.bin").read_bytes()
    for count in (10**15, -1):
        refused(tree, tree.index(b"__label__l7\0") + len(b"__label__l7\0"), "<q", count, "impossible counts")
    quantized(trained, "softmax_chars", tmp_path / "m.ftz", cutoff=400, qnorm=True)
    whole = (tmp_path / "m.ftz").read_bytes()
    for size in [0, 3, 8, 40, 60, 80, 200, len(whole) // 2, len(whole) - 1]:
        part = tmp_path / f"{size}.ftz"
        part.write_bytes(whole[:size])
        with pytest.raises(ModelError, match=r"\.ftz: expected a fastText model trained to classify"):
            fasttext_model.load(part)
    kept = whole.index(b"__label__five\0") + len(b"__label__five\0") + 9  # behind the last label, its count and kind
    for offset, value in ((0, 5000), (0, -1), (4, 400), (4, -1)):
        refused(whole, kept + offset, "<i", value, r"an input matrix of .* and 5000 hashed n-grams")
    quantized(trained, "many_labels", tmp_path / "m.ftz", qout=True)
    with pytest.raises(ModelError, match="a quantized output matrix; quantize without qout"):
        fasttext_model.load(tmp_path / "m.ftz")
    rng = random.Random(4)
    for i in range(80):
        damaged = bytearray(whole)
        at = rng.randrange(120) if i % 2 else rng.randrange(len(whole))
        damaged[at] = rng.randrange(256)
        (tmp_path / f"d{i}.ftz").write_bytes(damaged)
        try:
            found = fasttext_model.load(tmp_path / f"d{i}.ftz")
        except ModelError:
            continue
        found.predict(pa.array(TEXTS[:20]))


@pytest.mark.parametrize(
    ("at", "form", "value", "message"),
    [
        (8 + 7 * 4, "<i", 2, "word vectors"), (8 + 6 * 4, "<i", 4, "the loss 4"),
        (0, "<i", 1, "begins with other bytes"), (4, "<i", 11, "format version 11"), (8, "<i", 17, "matrices of"),
        (8 + 5 * 4, "<i", 65, "n-grams of 2..4 characters and 65 words"),
        (8 + 8 * 4, "<i", 1 << 30, "and 1073741824 hashed n-grams"), (8 + 8 * 4, "<i", -1, "and -1 hashed n-grams"),
        (8 + 8 * 4, "<i", 0, "no bucket for them"),
        (8 + 9 * 4, "<i", -1, "n-grams of -1..4 characters"),
        (64, "<i", 1 << 30, "a dictionary of 1073741824 entries"),
    ],
)  # fmt: skip
def test_a_number_that_does_not_fit_is_refused_by_name(trained, tmp_path, at, form, value, message):
    data = bytearray((trained / "softmax_chars.bin").read_bytes())
    struct.pack_into(form, data, at, value)
    (tmp_path / "m.bin").write_bytes(data)
    with pytest.raises(ModelError, match=message):
        fasttext_model.load(tmp_path / "m.bin")


HOSTILE = """
import sys
from pathlib import Path
import numpy as np, pyarrow as pa
from datakit.filter import fasttext_model
rng = np.random.default_rng(0)
rows = [b"", b" ", b"x", b"\\x80", b"\\xff" * 9, b"\\xe4\\xbd", b" \\x80 \\x80", b"a\\xc3", bytes(range(256))]
rows += [b" " * 9000, b"</s>", b"__label__", b"__label__one x", b"w " * 5000, b"w" * 9000, b"w" * 4094 + b" \\x80" * 9]
rows += [b"\\xf0\\x9f\\x98\\x80" * 1100]
sizes = [*range(1, 40), 500, 9000]
rows += [rng.integers(0, 256, size, np.uint8).tobytes() for size in sizes]
rows += [rng.choice(np.frombuffer(b"a \\x80\\xc3\\n\\0", np.uint8), size).tobytes() for size in sizes]
offsets = np.cumsum([0] + [len(row) for row in rows]).astype(np.int32)
texts = pa.StringArray.from_buffers(len(rows), pa.py_buffer(offsets), pa.py_buffer(b"".join(rows)))
for path in map(Path, sys.argv[1:]):
    model = fasttext_model.load(path)
    whole = model.predict(texts)[1]
    alone = [model.predict(texts.slice(i, 1))[1][0] for i in range(0, len(rows), 5)]
    assert np.array_equal(whole[::5], alone, equal_nan=True), path
    model.predict(texts, model.labels[-1])
print("done")
"""


def test_bytes_of_any_kind_stay_within_the_kernels_arrays(trained, lid):
    """With numba's checks of bounds: no byte that is read or written lies outside; and rows do not touch each other."""
    paths = [lid[0], *(trained / f"{kind}.bin" for kind in ("softmax_single_chars", "hs_chars_words", "softmax_words"))]
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(trained / "checked")}
    assert python("-c", HOSTILE, *paths, **checked).stdout == "done\n"
