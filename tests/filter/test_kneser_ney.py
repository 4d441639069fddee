"""The n-gram model beside plain Python: probabilities, their sum, and that memory and threads change nothing."""

import itertools
import math
import random
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datakit.errors import InputError
from datakit.filter import _kernels_kneser_ney as kernels
from datakit.filter.kneser_ney import FALLBACK, Vocabulary, discounts_of, estimate

END, UNK, BEGIN = "</s>", "<unk>", "<s>"


def plain_model(lines, order, pruned=()):
    """{n-gram: (probability, back-off weight)} of modified Kneser-Ney, by dictionaries."""
    least = [0, *[(list(pruned) + [pruned[-1] if pruned else 0] * order)[n] for n in range(1, order)]]
    actual, left = Counter(), defaultdict(set)
    for line in lines:
        words = [BEGIN, *line.split(), END]
        for n in range(1, order + 1):
            for i in range(len(words) - n + 1):
                actual[tuple(words[i : i + n])] += 1
                if i:
                    left[tuple(words[i : i + n])].add(words[i - 1])
    actual.pop((BEGIN,))
    counts = {g: c if len(g) == order or g[0] == BEGIN else len(left[g]) for g, c in actual.items()}
    discounts = []
    for n in range(1, order + 1):
        t = Counter(c for g, c in counts.items() if len(g) == n)
        discounts.append([0, *(discounts_of(np.array([0, t[1], t[2], t[3], t[4]])) or FALLBACK)])
    stays = {g for g, c in actual.items() if c > least[len(g) - 1]}
    total, weight = Counter(), Counter()
    for gram, count in counts.items():
        total[gram[:-1]] += count
        weight[gram[:-1]] += discounts[len(gram) - 1][min(count, 3)] if gram in stays else count
    words = [w for (w,) in (g for g in counts if len(g) == 1)] + [UNK]
    found = {}
    for gram in sorted(stays | {(UNK,)}, key=len):
        count, context = counts.get(gram, 0), gram[:-1]
        lower = found[gram[1:]] if len(gram) > 1 else 1 / len(words)
        share = (count - discounts[len(gram) - 1][min(count, 3)]) / total[context]
        found[gram] = share + weight[context] / total[context] * lower
    found[BEGIN,] = 1.0
    return {g: (p, weight[g] / total[g] if total[g] else 1.0) for g, p in found.items()}


def read_arpa(path):
    found, order = {}, 0
    for line in path.read_text().splitlines():
        if line.endswith("-grams:"):
            order = int(line[1:-7])
        elif "\t" in line:
            p, words, *weight = line.split("\t")
            assert len(words.split(" ")) == order
            found[tuple(words.split(" "))] = (float(p), float(weight[0]) if weight else 0.0)
    return found


def lines_of(seed, sentences, words=40):
    rng = random.Random(seed)
    names = [f"w{i}" for i in range(words)]
    weights = [1 / (i + 1) for i in range(words)]
    return [" ".join(rng.choices(names, weights, k=rng.randint(1, 9))) for _ in range(sentences)]


def made(lines, folder, order, pruned=(), memory=1 << 20, threads=1, name="model.arpa"):
    texts = ["\n".join(lines).encode()]
    facts = estimate(
        texts, folder / name, order=order, min_pruned=pruned, folder=folder, memory_bytes=memory, threads=threads
    )
    return facts, folder / name


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for gram, (p, weight) in expected.items():
        assert found[gram][0] == pytest.approx(math.log10(p), abs=2e-6), gram
        assert found[gram][1] == pytest.approx(min(math.log10(weight), 0) if weight else 0, abs=2e-6), gram


@pytest.mark.parametrize("order", [2, 3, 4, 5])
@pytest.mark.parametrize("pruned", [(), (0, 0, 1), (0, 1, 2)])
def test_the_model_is_that_of_plain_python(tmp_path, order, pruned):
    lines = lines_of(order, 300)
    facts, path = made(lines, tmp_path, order, pruned)
    assert_equal(read_arpa(path), plain_model(lines, order, pruned))
    assert (facts.sentences, facts.words) == (300, sum(len(line.split()) for line in lines))
    assert 2 not in facts.fallback
    assert {p.name for p in tmp_path.iterdir()} == {"model.arpa"}


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "c", "ü", "木"]), min_size=1, max_size=6), min_size=1, max_size=8),
    st.integers(2, 5),
)
def test_small_texts_are_those_of_plain_python(tmp_path_factory, sentences, order):
    lines = [" ".join(words) for words in sentences]
    _, path = made(lines, tmp_path_factory.mktemp("small"), order)
    assert_equal(read_arpa(path), plain_model(lines, order))


def test_memory_and_threads_change_no_byte(tmp_path):
    lines = lines_of(1, 3000, 300)
    _, whole = made(lines, tmp_path, 3, memory=1 << 26)
    for i, (memory, threads) in enumerate([(1, 1), (1, 3), (200_000, 2)]):
        _, path = made(lines, tmp_path, 3, memory=memory, threads=threads, name=f"{i}.arpa")
        assert path.read_bytes() == whole.read_bytes()
    assert_equal(read_arpa(whole), plain_model(lines, 3))


@pytest.mark.parametrize("pruned", [(), (0, 1)])
def test_the_words_after_a_context_have_a_probability_of_one(tmp_path, pruned):
    lines = lines_of(3, 200, 12)
    model = read_arpa(made(lines, tmp_path, 3, pruned)[1])
    words = [w for (w,) in (g for g in model if len(g) == 1) if w != BEGIN]

    def p(context, word):
        if (*context, word) in model:
            return model[*context, word][0]
        return model.get(context, (0, 0))[1] + p(context[1:], word)

    for context in itertools.islice((g for g in model if len(g) < 3 and g[-1] != END), 40):
        assert sum(10 ** p(context, w) for w in words) == pytest.approx(1, abs=1e-4), context


def test_marks_in_the_text_are_left_out_and_lines_without_words_are_no_sentences(tmp_path):
    texts = [b"", b"a <s> b\n\n  \n<unk>", b"</s> c"]
    facts = estimate(texts, tmp_path / "m", order=2, folder=tmp_path, memory_bytes=1)
    assert (facts.sentences, facts.words, facts.left_out) == (2, 3, 3)
    assert facts.fallback == (1, 2)
    assert_equal(read_arpa(tmp_path / "m"), plain_model(["a b", "c"], 2))


def test_a_text_without_words_is_refused(tmp_path):
    with pytest.raises(InputError, match="no word to learn from"):
        estimate([b" \n"], tmp_path / "m", order=3, folder=tmp_path, memory_bytes=1)


def test_words_of_any_length_and_text_cut_anywhere_have_one_number_each():
    vocabulary = Vocabulary()
    words = ["a" * n for n in (1, 7, 8, 9, 3000)] + ["木" * 500, "é"]
    numbers = []
    for _ in range(2):
        for word in words:
            found, _ = vocabulary.numbers(f"{word} ".encode())
            numbers.append(found.tolist())
    assert numbers == [[i] for i in range(3, 3 + len(words))] * 2
    text = vocabulary.blob[: vocabulary.offsets[vocabulary.words]].tobytes().decode()
    assert text == "<unk><s></s>" + "".join(words)
    assert vocabulary.numbers(b"a\n")[0].tolist() == [3, kernels.END]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**64 - 1)), max_size=200))
def test_sorting_is_that_of_python(pairs):
    records = np.array([(high, low, 1) for high, low in pairs], np.uint64).reshape(-1, 3)
    spare = np.empty_like(records)
    found = spare if kernels.sort(records, spare, 66) else records
    assert [(int(h), int(lo)) for h, lo, _ in found] == sorted(pairs)
    found = found[: kernels.add_equal(found)]
    assert {(int(h), int(lo)): int(n) for h, lo, n in found} == Counter(pairs)
