"""The 4-gram model equals a plain-Python reference."""

import math
import random
from collections import Counter, defaultdict

import numpy as np
import pytest

from train.local_model import ORDER, LocalModel

VOCAB = 7


def reference(train: list[list[int]], held: list[list[int]]) -> list[float]:
    counts: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for sequence in train:
        for i, token in enumerate(sequence):
            for n in range(min(i, ORDER - 1) + 1):
                counts[tuple(sequence[i - n : i])][token] += 1

    def p(history: tuple[int, ...], token: int) -> float:
        lower = p(history[1:], token) if history else 1 / VOCAB
        seen = counts.get(history)
        if not seen:
            return lower
        return (seen[token] + len(seen) * lower) / (seen.total() + len(seen))

    return [-math.log2(p(tuple(s[max(0, i - ORDER + 1) : i]), s[i])) for s in held for i in range(len(s))]


def flat(sequences: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate(sequences), np.cumsum([0, *map(len, sequences)])[:-1]


@pytest.mark.parametrize("seed", range(20))
def test_bits_equal_a_plain_computation(seed):
    rng = random.Random(seed)
    train, held = (
        [rng.choices(range(VOCAB), range(1, VOCAB + 1), k=rng.randint(1, 9)) for _ in range(rng.randint(1, 12))]
        for _ in range(2)
    )
    found = LocalModel.fit(*flat(train), VOCAB).bits(*flat(held))
    assert found.tolist() == pytest.approx(reference(train, held))
