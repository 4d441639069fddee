"""LSH parameters for a threshold."""

from functools import lru_cache


@lru_cache(maxsize=8)
def best_bands(threshold: float, max_num_perm: int, false_negative_weight: float) -> tuple[int, int]:
    """(num_bands, rows_per_band) of at most `max_num_perm` values that err least, as `datasketch.MinHashLSH` has it.

    The error is the weighted sum of the area under the probability curve below the threshold (pairs compared in vain)
    and of the area over it above the threshold (pairs missed).
    """
    from datasketch import MinHashLSH  # brings scipy: 0.4 s that only a choice has to pay

    weights = (round(1.0 - false_negative_weight, 9), false_negative_weight)
    chosen = MinHashLSH(threshold=threshold, num_perm=max_num_perm, weights=weights)
    return chosen.b, chosen.r
