"""What the dedup stage can be told."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from datakit.config import option
from datakit.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class DedupConfig:
    """Exact, then near duplicates by MinHash LSH: which rows count as the same, and which of them stays."""

    on: Literal["all", "prompt", "answer"] = option("all", "the part of a conversation or preference pair to compare")
    include_system: bool = option(False, "compare system prompts, tool schemas and tool results too")
    shingle_words: int = option(5, "words in a shingle")
    num_bands: int = option(14, "bands of the signature; rows that share one are compared")
    rows_per_band: int = option(8, "MinHash values in a band")
    threshold: float = option(0.75, "least Jaccard similarity of the shingle sets of near duplicates")
    cluster: Literal["star", "components"] = option(
        "star", "star: each dropped row is similar to the row that stays; components: to some row of a chain to it"
    )
    policy: str = option("first", "which duplicate stays: first, longest, or highest:<column>; ties by position")
    seed: int = option(1, "seed of the permutations, as datasketch takes it")
    max_cluster_rows: int = option(1000, "raise an alarm where one row stands for more rows than this")

    def __post_init__(self) -> None:
        for name in ("shingle_words", "num_bands", "rows_per_band", "max_cluster_rows"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, found {getattr(self, name)}")
        if not 0.0 < self.threshold <= 1.0 or round(self.threshold, 3) != self.threshold:
            raise ConfigError(f"threshold must lie in (0, 1], with at most three decimals; found {self.threshold}")
        if not 0 <= self.seed < 1 << 32:
            raise ConfigError(f"seed must lie in [0, 2**32), found {self.seed}")
        if self.policy not in ("first", "longest") and not self.score_column:
            raise ConfigError(f"policy must be first, longest or highest:<column>, found {self.policy!r}")

    @property
    def num_perm(self) -> int:
        """MinHash values per row: all bands of the signature."""
        return self.num_bands * self.rows_per_band

    @property
    def score_column(self) -> str:
        """The column of `highest:<column>`; "" for another policy."""
        return self.policy.removeprefix("highest:") if self.policy.startswith("highest:") else ""

    @property
    def least(self) -> Fraction:
        """The threshold as the exact ratio that counts of shingles are compared with."""
        return Fraction(round(self.threshold * 1000), 1000)
