"""Recall: the share of pairs that become candidates (before verification), by similarity, and the probability curve.

    python bench/dedup_recall.py TEXTS.jsonl.zst PAIRS.jsonl.zst [--seeds 1000]

PAIRS has lines {"a": id, "b": id, "jaccard_word5": ...}. Pairs that share documents are not independent: one seed moves
many of them together. So the standard error is taken from seed to seed, and the runs are also cut into groups of 20
seeds, to see how often 20 are enough to be within 0.01 of the curve everywhere.

All values of a signature are drawn in the same way, so each way to group them into bands makes a pair a candidate with
the same probability. "regrouped" is the mean over all these ways. It follows from the number of equal values (Rao and
Blackwell: the same expectation, less variance). It needs no other seeds and no more values.
"""

import argparse
import json
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import comb
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from measure import lines_of

from datakit.dedup.cluster import shared_values
from datakit.dedup.minhash import bands_of, shingle_sets, signatures
from datakit.dedup.stage import DedupConfig
from datakit.text.words import normalize


@dataclass(frozen=True)
class Bin:
    """Pairs of one range of similarities; `share` of them became candidates, where the curve gives `expected`."""

    low: float
    pairs: int
    documents: int
    share: float
    expected: float
    standard_error: float


@dataclass(frozen=True)
class Recall:
    """`found` bool (seeds, pairs): whether the pair shares a band; `regrouped` float64 (seeds, pairs): the share of
    all groupings of the same values in which it does. The other arrays are (pairs,).
    """

    found: npt.NDArray[np.bool_]
    regrouped: npt.NDArray[np.float64]
    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    similarity: npt.NDArray[np.float64]
    stated: npt.NDArray[np.float64]
    theory: npt.NDArray[np.float64]

    def bins(self, seeds: int | None = None, begin: int = 0, *, regrouped: bool = False) -> list[Bin]:
        """Per 0.05 of similarity, over `seeds` seeds from number `begin` on; the error is that of their mean."""
        seen = self.regrouped if regrouped else self.found
        chosen = seen[begin : begin + (seeds or len(seen))]
        made = []
        for low in range(20):
            inside = np.minimum((self.similarity * 20).astype(np.int64), 19) == low
            by_seed, spread = chosen[:, inside].mean(axis=1), seen[:, inside].mean(axis=1).std(ddof=1)
            documents = len(np.union1d(self.first[inside], self.second[inside]))
            share, expected, error = by_seed.mean(), self.theory[inside].mean(), spread / np.sqrt(len(chosen))
            made.append(Bin(low / 20, int(inside.sum()), documents, float(share), float(expected), float(error)))
        return made


def chance_of_a_band(num_bands: int, rows_per_band: int) -> npt.NDArray[np.float64]:
    """For each number of equal values the share of all ways to group the values into bands that make some band equal.

    float64 (num_perm + 1,). By inclusion and exclusion over the bands.
    """
    values, each = num_bands * rows_per_band, rows_per_band

    def term(equal: int, bands: int) -> Fraction:
        ways = comb(num_bands, bands) * comb(values - bands * each, equal - bands * each)
        return -((-1) ** bands) * Fraction(ways, comb(values, equal))

    sums = (sum(term(equal, bands) for bands in range(1, equal // each + 1)) for equal in range(values + 1))
    return np.array([float(found) for found in sums])


def measure(texts_path: Path, pairs_path: Path, seeds: int) -> Recall:
    """Sign the documents with seeds 1, 2, ... and look which pairs share a band."""
    texts = {row["id"]: row["text"] for row in map(json.loads, lines_of(texts_path))}
    pairs = [json.loads(line) for line in lines_of(pairs_path)]
    config, number = DedupConfig(), {name: i for i, name in enumerate(texts)}
    sets = shingle_sets(normalize(pa.array(texts.values(), pa.string())), config.shingle_words)
    first, second = (np.array([number[pair[side]] for pair in pairs]) for side in "ab")
    rows = [sets.hashes[begin:end] for begin, end in zip(sets.starts, sets.starts[1:], strict=False)]
    shared = np.array([shared_values(rows[i], rows[j], 0) for i, j in zip(first, second, strict=True)])
    length = np.diff(sets.starts)
    similarity = shared / (length[first] + length[second] - shared)
    found, regrouped = np.empty((seeds, len(pairs)), np.bool_), np.empty((seeds, len(pairs)))
    chance = chance_of_a_band(config.num_bands, config.rows_per_band)
    for seed in range(seeds):
        values = signatures(sets, config.num_perm, seed + 1)
        bands = bands_of(sets, replace(config, seed=seed + 1))
        found[seed] = (bands[first] == bands[second]).any(axis=1)
        regrouped[seed] = chance[(values[first] == values[second]).sum(axis=1)]
    stated = np.array([pair["jaccard_word5"] for pair in pairs])
    theory = 1 - (1 - similarity**config.rows_per_band) ** config.num_bands
    return Recall(found, regrouped, first, second, similarity, stated, theory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--seeds", type=int, default=1000)
    args = parser.parse_args()
    recall = measure(args.texts, args.pairs, args.seeds)
    off = abs(recall.similarity - recall.stated).max()
    print(f"{len(recall.stated)} pairs; our exact similarity differs from the stated by {off:.5f}")
    columns = (f" {name}   off      se" for name in (f"{args.seeds} seeds", "20 seeds", "regrouped"))
    print("similarity  pairs documents  theory |" + " |".join(columns))
    for whole, twenty, smooth in zip(recall.bins(), recall.bins(20), recall.bins(20, regrouped=True), strict=True):
        found = ((whole, 10), (twenty, 8), (smooth, 9))
        cells = (f" {b.share:{w}.3f} {b.share - b.expected:+.4f} {b.standard_error:.4f}" for b, w in found)
        bounds = f"{whole.low:.2f}-{whole.low + 0.05:.2f}"
        print(f"{bounds} {whole.pairs:7} {whole.documents:9} {whole.expected:7.3f} |" + " |".join(cells))
    for regrouped, seeds in product((False, True), (20, 50, 100, 200)):
        worst = [
            max(abs(b.share - b.expected) for b in recall.bins(seeds, begin, regrouped=regrouped))
            for begin in range(0, args.seeds - seeds + 1, seeds)
        ]
        if worst:
            within = sum(w <= 0.01 for w in worst)
            groups = f"groups of {seeds} seeds{', regrouped' * regrouped}"
            bins = f"worst bin {np.median(worst):.4f} in the median group, {max(worst):.4f} in the worst"
            print(f"{groups}: {within} of {len(worst)} within 0.01 in every bin; {bins}")


if __name__ == "__main__":
    main()
