"""N-gram models beside plain Python (estimates, scores, ARPA files read and written)."""

import itertools
import math
import random
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datakit.errors import InputError, ModelError
from datakit.filter.ngram_model import FALLBACK, discounts_of, estimate, read_arpa

END, UNK, BEGIN = "</s>", "<unk>", "<s>"
WORDS = st.sampled_from(["a", "b", "c", "ü", "木", "unheard", UNK, "\x1b", "a\u200b"])


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
        discounts.append([0, *discounts_of(np.array([0, t[1], t[2], t[3], t[4]]))])
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


class ByHand:
    """An ARPA file as dictionaries, with back-off as its format says."""

    def __init__(self, path: Path) -> None:
        self.grams = {}
        for line in path.read_text().split("\n"):
            if "\t" in line:
                p, words, *weight = line.split("\t")
                self.grams[tuple(words.split(" "))] = float(p), float(weight[0]) if weight else 0.0
        self.order = max(map(len, self.grams))

    def log10(self, context, word):
        if (*context, word) in self.grams:
            return self.grams[*context, word][0]
        return self.grams.get(context, (0, 0))[1] + self.log10(context[1:], word)

    def score(self, text):
        total = 0.0
        for line in text.split("\n"):
            words = [w if (w,) in self.grams else UNK for w in line.split()]
            words = [BEGIN, *words, END] if words else []
            for i in range(1, len(words)):
                total += self.log10(tuple(words[max(i + 1 - self.order, 0) : i]), words[i])
        return total


def lines_of(seed, sentences, words=40):
    rng = random.Random(seed)
    names = [f"w{i}" for i in range(words)]
    weights = [1 / (i + 1) for i in range(words)]
    return [" ".join(rng.choices(names, weights, k=rng.randint(1, 9))) for _ in range(sentences)]


def made(lines, folder, order, pruned=()):
    path = folder / "model.arpa"
    return estimate(["\n".join(lines)], path, order=order, min_pruned=pruned), path


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for gram, (p, weight) in expected.items():
        assert found[gram][0] == pytest.approx(math.log10(p), abs=2e-6), gram
        assert found[gram][1] == pytest.approx(min(math.log10(weight), 0) if weight else 0, abs=2e-6), gram


@pytest.mark.parametrize(("order", "pruned"), [(2, ()), (3, (0, 0, 1)), (4, ()), (5, (0, 1, 2))])
def test_the_model_is_that_of_plain_python(tmp_path, order, pruned):
    lines = lines_of(order, 300)
    facts, path = made(lines, tmp_path, order, pruned)
    expected = plain_model(lines, order, pruned)
    assert_equal(ByHand(path).grams, expected)
    assert (facts["sentences"], facts["words"]) == (300, sum(len(line.split()) for line in lines))
    assert facts["ngrams"] == [sum(len(g) == n for g in expected) for n in range(1, order + 1)]
    assert facts["discounts"][1] != FALLBACK


@settings(max_examples=25)
@given(st.lists(st.lists(st.sampled_from("abcü木"), min_size=1, max_size=6), min_size=1, max_size=8), st.integers(2, 5))
def test_small_texts_are_those_of_plain_python(tmp_path_factory, sentences, order):
    lines = [" ".join(words) for words in sentences]
    _, path = made(lines, tmp_path_factory.mktemp("small"), order)
    assert_equal(ByHand(path).grams, plain_model(lines, order))


def test_marks_in_the_text_are_left_out_and_lines_without_words_are_no_sentences(tmp_path):
    facts = estimate(["", "a <s> b\n\n  \n<unk>", "</s> c"], tmp_path / "m", order=2)
    assert (facts["sentences"], facts["words"], facts["left_out"]) == (2, 3, 3)
    assert facts["discounts"] == [FALLBACK] * 2
    assert discounts_of(np.array([0, 100, 1, 50, 1])) == FALLBACK  # the second would be negative
    assert_equal(ByHand(tmp_path / "m").grams, plain_model(["a b", "c"], 2))


def test_a_text_without_words_or_larger_than_the_memory_is_refused(tmp_path):
    with pytest.raises(InputError, match="no word to learn from"):
        estimate([" \n"], tmp_path / "m", order=3)
    for memory, what in ((100, "words need"), (1_000_000, "n-grams of up to 3 words need")):
        with pytest.raises(InputError, match=f"{what} .*MB, and memory_mb is .*lower --order"):
            estimate(["\n".join(lines_of(0, 2000, 500))], tmp_path / "m", order=5, memory_bytes=memory)


@settings(max_examples=40)
@given(texts=st.lists(st.lists(st.lists(WORDS, max_size=8), max_size=4), max_size=5))
@pytest.mark.parametrize("order", [2, 3, 5])
def test_scores_are_those_of_the_file_by_hand(order, texts, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp() / f"scored{order}"
    if not folder.is_dir():
        folder.mkdir()
        sentences = itertools.product(["a", "b", "c", "ü"], repeat=4)
        made([" ".join(words) for words in itertools.islice(sentences, 0, None, 3)], folder, order, (0, 0, 1))
    path = folder / "model.arpa"
    lines = ["\n".join(" ".join(words) for words in text) for text in texts]
    scores, lengths = read_arpa(path).score(lines)
    assert scores.tolist() == pytest.approx([ByHand(path).score(text) for text in lines], abs=1e-4)
    assert lengths.tolist() == [sum(len(words) + 1 for words in text if words) for text in texts]


def test_a_model_without_unknown_words_and_without_some_suffixes_is_read(tmp_path):
    """As SRILM writes them: no `<unk>`, no weights where there are none, a trigram whose bigram was pruned."""
    path = tmp_path / "m.arpa"
    path.write_text(
        "\\data\\\nngram 1=4\nngram 2=1\nngram 3=1\n\n\\1-grams:\n-99\t<s>\t-0.5\n-0.7\ta\t-0.25\n-1\tb\n-2\t</s>\n\n"
        "\\2-grams:\n-0.3\ta b\t-0.125\n\n\\3-grams:\n-0.2\ta b a\n\n\\end\\\n"
    )
    scores, lengths = read_arpa(path).score(["a b a", "b x", ""])
    a, b, third, end = -0.5 - 0.7, -0.3, -0.2, -0.25 - 2
    assert scores.tolist() == pytest.approx([a + b + third + end, (-0.5 - 1) - 100 - 2, 0], rel=1e-6)
    assert lengths.tolist() == [4, 3, 0]


GOOD = "\\data\\\nngram 1=3\n\n\\1-grams:\n-1\t<s>\n-1\t</s>\n-1\ta\n\n\\end\\\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        *(("1=3\n\n\\1-grams:\n-1\t<s>\n-1\t</s>\n-1\ta\n", f"1=3\nngram 2=1\n\n\\1-grams:\n-1\t<s>\n-1\t</s>\n-1\ta\n"
           f"\n\\2-grams:\n-1\t{gram}\n", "2-grams of other sizes, or with words that are no 1-grams")
          for gram in ("a b", "a a a", "a")),
        (GOOD, "hello", "sections"), ("\\end\\", "", "sections"),
        ("ngram 1=3", "ngram 1=4", "3 n-grams where 4 are announced"), ("ngram 1=3", "ngram 1=x", "invalid literal"),
        ("-1\ta", "a", "3 n-grams where 3 are announced, 1 without a tab"),
        ("-1\ta", "x\ta", "Failed to parse string: 'x'"),
        ("</s>", "a", "words that are there twice"), ("</s>", "b", "no <s> or </s>"),
        ("1=3\n", "1=3\nngram 2=1\n\n\\2-grams:\n-1\ta b\n", "sections"),
        ("\\end\\", "\\2-grams:\n-1\ta b\n\n\\end\\", "sections"), ("-1\ta", "-1\t\udcff", "can't decode"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused(tmp_path, old, new, message):
    (tmp_path / "m.arpa").write_text(GOOD.replace(old, new), errors="surrogateescape")
    said = rf"(?s)m\.arpa: expected an n-gram model in the ARPA format, found: .*{message}"
    with pytest.raises(ModelError, match=said):
        read_arpa(tmp_path / "m.arpa")
