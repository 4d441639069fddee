"""N-gram language models: estimated by modified Kneser-Ney smoothing, in memory; written and read as ARPA; scoring.

Kneser and Ney 1995; Chen and Goodman 1998 for three discounts an order, from the counts of counts; Heafield et al.
2013, Scalable Modified Kneser-Ney Language Model Estimation, for what pruning does. The model is that of KenLM's
`lmplz`, with its default of interpolation:

- Sentences begin with `<s>`, which is given, and end with `</s>`, which is predicted.
- The count of an n-gram below the highest order is the number of different words before it (n-grams that begin with
  `<s>` keep their own count).
- Discounts of 1, 2, 3 and more: k - (k + 1) Y t(k + 1) / t(k), Y = t1 / (t1 + 2 t2), where t(k) n-grams of the order
  have the count k. Where an order has no such counts, or a discount would be negative, its discounts are 0.5, 1, 1.5.
- p(w | context) = (count - discount) / total + backoff(context) * p(w | context without its first word). Below words is
  the uniform distribution over all words, `</s>` and `<unk>`; `<unk>` has that share alone.
- A pruned n-gram gives its whole count to the back-off weight of its context. Discounts come from all n-grams.

The n-grams of an order have numbers, by their words from the last to the first. An n-gram is then a pair of numbers: of
the n-gram without its first word, and of that word. So each order takes one sort of all places of the text, and what it
needs of its neighbours are sums over numbers. A text of N words takes about 50 N bytes for a sort, and 40 bytes for
each different n-gram.

To score, the model's table (`_kernels_lookup.table_of`) has every n-gram of every order by a 64-bit hash of its words,
from the last word to the first, as KenLM's probing models do (Heafield 2011): n-grams are not compared by words, since
of ten million and as many questions no two share a hash but once in 300,000 models.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.data import Bools, Floats, Hashes, Integers, Numbers
from datakit.errors import InputError, ModelError
from datakit.filter._kernels_lookup import slot_of, table_of
from datakit.kernels import kernel

MARKS: Final = ("<unk>", "<s>", "</s>")
"""The first words of the vocabulary of an estimated model, by their numbers."""
UNKNOWN, BEGIN, END = range(3)

FALLBACK: Final = [0.5, 1.0, 1.5]

_SORT_BYTES, _GRAM_BYTES = 50, 40
"""For each word of the text, and for each n-gram: see above."""
_BLOCK: Final = 1 << 16
"""N-grams that are written at once."""


# Estimating.


@dataclass(slots=True)
class _Grams:
    """The n-grams of one order, by number."""

    first: Numbers
    """The first word of each."""
    suffix: Numbers
    """The n-gram without its first word, of the order below."""
    context: Numbers
    """The n-gram without its last word, of the order below."""
    counts: Integers
    """How often each is in the text; then, below the highest order, the different words before it."""
    stays: Bools
    """Whether it is not pruned."""


def estimate(
    texts: Iterable[str], out: Path, *, order: int, min_pruned: Sequence[int] = (), memory_bytes: int = 1 << 40
) -> dict[str, Any]:
    """Write the model of texts to `out`: lines are sentences, words are between white space.

    `min_pruned[n - 1]` is the highest count at which an n-gram of order n goes; orders that it does not name have the
    last value, and words (order 1) never go. Equal texts give equal bytes. Returns facts: `sentences`; `words` of the
    text, without the ends of sentences; `left_out`, words that were one of `MARKS`; by order, the `ngrams` in the file
    and the `discounts` of counts of 1, 2, 3 and more.

    Raises:
        InputError: there is no word, or the text does not fit into the memory.
    """
    vocabulary, ids, left_out = _numbers(texts, memory_bytes)
    sentences = int(np.count_nonzero(ids == BEGIN))
    if not sentences:
        raise InputError("perplexity train: the rows hold no word to learn from")
    least = [0, *(min_pruned[n] if n < len(min_pruned) else [0, *min_pruned][-1] for n in range(1, order))]
    orders = _count(ids, len(vocabulary), least, memory_bytes)
    discounts = [discounts_of(np.bincount(np.minimum(grams.counts, 5), minlength=6)) for grams in orders]
    ngrams = [int(grams.stays.sum()) for grams in orders]
    _write_arpa(out, list(vocabulary), orders, ngrams, *_probabilities(orders, discounts))
    words = len(ids) - 2 * sentences
    return {
        "sentences": sentences, "words": words, "left_out": left_out, "ngrams": ngrams, "discounts": discounts
    }  # fmt: skip


def discounts_of(counts: Integers) -> list[float]:
    """The discounts of an order in which `counts[k]` n-grams have the count k, k from 1 to 4: of 1, 2, 3 and more.

    Chen and Goodman 1998, equation 26; `FALLBACK` where a count is missing, or a discount is none.
    """
    t = counts.astype(np.float64)
    if not t[1:4].all():
        return FALLBACK
    y = t[1] / (t[1] + 2 * t[2])
    found = [float(k - (k + 1) * y * t[k + 1] / t[k]) for k in (1, 2, 3)]
    return found if all(0 <= one <= k for k, one in enumerate(found, start=1)) else FALLBACK


def _check_memory(needed: int, memory_bytes: int, what: str) -> None:
    if needed > memory_bytes:
        raise InputError(
            f"perplexity train: {what} need {needed >> 20:,} MB, and memory_mb is {memory_bytes >> 20:,}: give more of "
            "it, fewer rows, a lower --order, or a --tokenizer with fewer words"
        )


def _numbers(texts: Iterable[str], memory_bytes: int) -> tuple[dict[str, int], Numbers, int]:
    """(numbers of words by first occurrence, the words of all sentences with `<s>` and `</s>`, words left out)."""
    vocabulary: defaultdict[str, int] = defaultdict()
    vocabulary.default_factory = vocabulary.__len__  # a new word gets the next number
    marks = {mark: vocabulary[mark] for mark in MARKS}
    ids, left_out = array("i"), 0
    for text in texts:
        for line in text.split("\n"):
            words = line.split()
            if not marks.keys().isdisjoint(words):
                left_out += len(words)
                words = [word for word in words if word not in marks]
                left_out -= len(words)
            if words:
                ids.append(BEGIN)
                ids.extend(map(vocabulary.__getitem__, words))
                ids.append(END)
        _check_memory(len(ids) * _SORT_BYTES, memory_bytes, f"{len(ids):,} words")
    return vocabulary, np.frombuffer(ids, np.int32), left_out


def _count(ids: Numbers, words: int, least: Sequence[int], memory_bytes: int) -> list[_Grams]:
    """The n-grams of each order, with their counts, from the words of all sentences."""
    every = np.arange(words, dtype=np.int32)
    zeros, counts = np.zeros(words, np.int32), np.bincount(ids, minlength=words)
    orders, held = [_Grams(every, zeros, zeros, counts, np.ones(words, np.bool_))], words
    numbers, places = ids.astype(np.int64), np.arange(len(ids))
    for n, pruned in enumerate(least[1:], start=2):
        # `numbers` has, at each place, the n-gram of the order below that ends there
        places = places[ids[places - n + 2] != BEGIN]  # those that begin after the first word of their sentence
        keys = numbers[places] * words + ids[places - n + 1]
        found, which, counts = np.unique(keys, return_inverse=True, return_counts=True)
        context = np.empty(len(found), np.int32)
        context[which] = numbers[places - 1]
        numbers[places] = which
        suffix, first = (part.astype(np.int32) for part in np.divmod(found, words))
        below = orders[-1]
        own = (below.first == BEGIN) & (n > 2)  # `<s>` is never predicted: as a word it has no count
        below.counts = np.where(own, below.counts, np.bincount(suffix, minlength=len(below.counts)))
        orders.append(_Grams(first, suffix, context, counts, counts > pruned))
        held += len(found)
        needed = held * _GRAM_BYTES + len(ids) * _SORT_BYTES
        _check_memory(needed, memory_bytes, f"{held:,} n-grams of up to {n} words")
    return orders


def _probabilities(orders: Sequence[_Grams], discounts: Sequence[Sequence[float]]) -> tuple[list[Floats], list[Floats]]:
    """By order: (the probabilities of n-grams, their back-off weights as contexts, 0 where they are none)."""
    words, taken = orders[0].counts, np.array([0.0, *discounts[0]])[np.minimum(orders[0].counts, 3)]
    total = words.sum()
    p = (words - taken) / total + taken.sum() / total / (len(words) - 1)
    p[BEGIN] = 1.0
    probabilities, weights = [p], list[Floats]()
    for grams, values in zip(orders[1:], discounts[1:], strict=True):
        taken = np.array([0.0, *values])[np.minimum(grams.counts, 3)]
        size = len(probabilities[-1])
        total = np.bincount(grams.context, grams.counts, size)
        left = np.bincount(grams.context, np.where(grams.stays, taken, grams.counts), size)
        weights.append(np.divide(left, total, out=np.zeros(size), where=total > 0))
        # shares are float32, as in lmplz
        share = ((grams.counts - taken) / total[grams.context]).astype(np.float32).astype(np.float64)
        rest = weights[-1].astype(np.float32).astype(np.float64)
        probabilities.append(share + rest[grams.context] * probabilities[-1][grams.suffix])
    return probabilities, weights


def _write_arpa(
    out: Path,
    words: list[str],
    orders: Sequence[_Grams],
    ngrams: Sequence[int],
    probabilities: Sequence[Floats],
    weights: Sequence[Floats],
) -> None:
    names, last = np.array(words, object), len(orders)
    with out.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\\data\\\n")
        file.writelines(f"ngram {n}={count}\n" for n, count in enumerate(ngrams, start=1))
        for n, grams in enumerate(orders, start=1):
            file.write(f"\n\\{n}-grams:\n")
            kept = np.flatnonzero(grams.stays)
            for begin in range(0, len(kept), _BLOCK):
                numbers = kept[begin : begin + _BLOCK]
                columns = [_logarithms(probabilities[n - 1][numbers]), _spelled(names, orders[:n], numbers)]
                columns += [_logarithms(weights[n - 1][numbers])] if n < last else []
                file.writelines("\t".join(line) + "\n" for line in zip(*columns, strict=True))
        file.write("\n\\end\\\n")


def _spelled(names: NDArray[Any], orders: Sequence[_Grams], numbers: NDArray[Any]) -> list[str]:
    """The words of n-grams of the last of the orders, by their numbers."""
    words = []
    for grams in reversed(orders):
        words.append(names[grams.first[numbers]].tolist())
        numbers = grams.suffix[numbers]
    return [" ".join(gram) for gram in zip(*words, strict=True)]


def _logarithms(values: Floats) -> list[str]:
    """Logarithms of probabilities and weights, at most 0; that of no weight is 0, too."""
    logs = np.log10(values, out=np.zeros(len(values)), where=values > 0)
    return [f"{value:.6f}" if value else "0" for value in np.minimum(logs, 0.0).round(6).tolist()]


# Scoring.

_SEED, _FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


@kernel
def longer(h, word):
    """The hash of the n-gram that has one word more, in front; never 0."""
    h = np.uint64((h ^ np.uint64(word)) * _FACTOR)
    return max(h ^ h >> np.uint64(32), np.uint64(1))


@kernel
def hashes_of(grams):
    """uint64[G]: the hashes of n-grams, int32[G, n]: their words."""
    out = np.full(len(grams), _SEED)
    for i in range(len(grams)):
        for k in range(grams.shape[1] - 1, -1, -1):
            out[i] = longer(out[i], grams[i, k])
    return out


@kernel
def score(slots, numbers, logs, order, begin, ids, offsets, totals):
    """Fill `totals` (float32[S]): the logarithm of the probability of each sentence.

    The words of sentence i, with its end, are `ids[offsets[i] : offsets[i + 1]]`; it begins after the word `begin`,
    which is not there. For each word the longest n-gram counts that ends with it and is in the model, with the back-off
    weights of all contexts that are longer than that n-gram's. Sums are float32, in KenLM's order, so that a model has
    KenLM's scores. `ids` are words that the model has by themselves. Slots and numbers: the table; logs: float32[G, 2],
    the logarithms of probability and back-off weight of n-grams by their numbers, to the base 10.
    """
    weights, before = np.zeros(order + 1, np.float32), np.zeros(order + 1, np.float32)  # by size, 1 to `order`
    for sentence in range(len(totals)):
        first, totals[sentence] = offsets[sentence], 0
        before[:] = 0  # by size: the back-off weight of the n-gram that ends with the word before
        before[1] = logs[numbers[slot_of(slots, longer(_SEED, begin))], 1]
        for i in range(first, offsets[sentence + 1]):
            context = min(order - 1, i - first + 1)  # words before this one that count, `begin` among them
            h, longest, total = _SEED, 0, np.float32(0)
            for size in range(1, context + 2):
                h = longer(h, ids[i - size + 1] if size <= i - first + 1 else begin)
                slot = slot_of(slots, h)
                weights[size] = 0
                if slots[slot] != 0:
                    longest, total, weights[size] = size, logs[numbers[slot], 0], logs[numbers[slot], 1]
            for size in range(longest, context + 1):
                total += before[size]
            totals[sentence] += total
            before[:], weights[:] = weights, 0


@dataclass(frozen=True, slots=True)
class NgramModel:
    """A model of an ARPA file."""

    order: int
    vocabulary: dict[str, int]
    """Words by number; `<unk>`, `<s>` and `</s>` are among them."""
    table: tuple[Hashes, Numbers]
    """Of the hashes of all n-grams: see above."""
    logs: NDArray[np.float32]
    """float32[G, 2]: the logarithms of probability and back-off weight of each n-gram."""

    def score(self, texts: Sequence[str]) -> tuple[Floats, Integers]:
        """(float64[N], int64[N]): the logarithm of the probability of each text to the base 10, whose lines are
        sentences, and how many words it has, with an end of each sentence; 0 and 0 without a word."""
        unknown, begin, end = (self.vocabulary[mark] for mark in MARKS)
        ids, offsets, rows = array("i"), [0], list[int]()
        for row, text in enumerate(texts):
            for line in text.split("\n"):
                if words := line.split():
                    ids.extend(map(self.vocabulary.get, words, repeat(unknown)))
                    ids.append(end)
                    offsets.append(len(ids))
                    rows.append(row)
        totals, places = np.empty(len(rows), np.float32), np.array(offsets, np.int64)
        score(*self.table, self.logs, self.order, begin, np.array(ids, np.int32), places, totals)
        of = np.array(rows, np.int64)
        sums, lengths = np.bincount(of, totals, len(texts)), np.bincount(of, np.diff(places), len(texts))
        return np.asarray(sums, np.float64), np.asarray(lengths, np.int64)


def read_arpa(path: Path) -> NgramModel:
    """The model of an ARPA file.

    Raises:
        ModelError: the file is none, or it is cut.
    """
    try:
        data = path.read_bytes()
        if data.startswith(b"mmap lm http://kheafield.com/code"):
            raise ValueError("KenLM's binary format: name the ARPA file, or call kenlm in a function of yours")
        return _parsed(data)
    except (ValueError, OSError, MemoryError) as e:
        raise ModelError(f"{path}: expected an n-gram model in the ARPA format, found: {e}") from None


def _parsed(data: bytes) -> NgramModel:
    """The format is that of SRILM's ngram-format(5): `\\data\\`, `ngram N=COUNT`, then a section for each order."""
    head, *sections = data.split(b"\n\\")
    lines = [line.partition(b"=") for line in head.split(b"\n") if line.startswith(b"ngram ")]
    counts = [int(count) for _, _, count in lines]
    names = [section[: section.find(b"\n")].strip() for section in sections]
    if not counts or names != [*(b"%d-grams:" % n for n in range(1, len(counts) + 1)), b"end\\"]:
        raise ValueError(f"sections {names} for {len(counts)} orders")
    words, hashes, every = pa.array([], pa.large_string()), list[Any](), list[Any]()
    for n, (section, count) in enumerate(zip(sections, counts, strict=False), start=1):
        spelled, logs = _fields(section.partition(b"\n")[2], count)
        if n == 1:
            words = spelled
            if MARKS[0] not in set(words.to_pylist()):  # as in KenLM, which gives it this probability
                words = pa.concat_arrays([words, pa.array(MARKS[:1], pa.large_string())])
                logs = np.concatenate([logs, np.array([[-100.0, 0.0]], np.float32)])
            flat = words
        else:
            flat = pc.split_pattern(spelled, " ").flatten()
        grams = pc.index_in(flat, words)
        if grams.null_count or len(grams) != n * len(logs):
            raise ValueError(f"{n}-grams of other sizes, or with words that are no 1-grams")
        hashes.append(hashes_of(grams.to_numpy().reshape(-1, n)))
        every.append(logs)
    vocabulary = {word: number for number, word in enumerate(words.to_pylist())}
    if len(vocabulary) != len(words) or not {*MARKS} <= vocabulary.keys():
        raise ValueError(f"words that are there twice, or no {MARKS[1]} or {MARKS[2]}")
    return NgramModel(len(counts), vocabulary, table_of(np.concatenate(hashes)), np.concatenate(every))


def _fields(section: bytes, count: int) -> tuple[pa.Array, NDArray[np.float32]]:
    """(n-grams, float32[G, 2]: logarithms of probability and back-off weight) of the lines of a section.

    Raises:
        ValueError: there are not `count` lines, or one has no number and n-gram.
    """
    lines = pc.split_pattern(pa.array([section.decode()], pa.large_string()), "\n").flatten()
    lines = lines.filter(pc.not_equal(lines, ""))
    tabs = pc.count_substring(lines, "\t").to_numpy()
    if len(lines) != count or not np.isin(tabs, (1, 2)).all():
        raise ValueError(f"{len(lines)} n-grams where {count} are announced, {(tabs == 0).sum()} without a tab")
    # those of the highest order, which are no contexts, have no weight
    zeros = pc.binary_join_element_wise(lines, *pa.array(["0", "\t"], lines.type))
    parts = pc.split_pattern(pc.if_else(pa.array(tabs == 1), zeros, lines), "\t").flatten()
    log, gram, weight = (parts.take(pa.array(np.arange(k, len(parts), 3))) for k in range(3))
    return gram, np.stack([part.cast(pa.float32()).to_numpy() for part in (log, weight)], axis=1)
