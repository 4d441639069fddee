"""What the dedup stage can be told."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from datakit.config import option
from datakit.dedup.parameters import best_bands
from datakit.errors import ConfigError

_DEFAULT_BANDS, _DEFAULT_ROWS = 14, 8  # FineWeb's (Penedo et al., 2024)


@dataclass(frozen=True, kw_only=True, slots=True)
class DedupConfig:
    """Exact, then near duplicates by MinHash LSH: which rows count as the same, and which of them stays."""

    on: Literal["all", "prompt", "answer"] = option("all", "the part of a conversation or preference pair to compare")
    include_system: bool = option(False, "compare system prompts, tool schemas and tool results too")
    shingle_words: int = option(5, "words in a shingle")
    num_bands: int = option(_DEFAULT_BANDS, "bands of the signature; rows that share one are compared")
    rows_per_band: int = option(_DEFAULT_ROWS, "MinHash values in a band")
    max_num_perm: int = option(
        0, "choose num_bands and rows_per_band for the threshold, of at most so many MinHash values; 0: as given"
    )
    false_negative_weight: float = option(
        0.9, "when choosing them: how much a missed pair weighs; a needless comparison weighs what is left to 1"
    )
    threshold: float = option(0.75, "least Jaccard similarity of the shingle sets of near duplicates")
    cluster: Literal["star", "components"] = option(
        "star", "star: each dropped row is similar to the row that stays; components: to some row of a chain to it"
    )
    policy: str = option("first", "which duplicate stays: first, longest, or highest:<column>; ties by position")
    seed: int = option(1, "seed of the permutations, as datasketch takes it")
    max_cluster_rows: int = option(1000, "raise an alarm where one row stands for more rows than this")
    max_source_loss: float = option(0.75, "raise an alarm where a source loses more than this share of its rows")
    min_alarm_rows: int = option(20, "raise no alarm about a source or a language of fewer rows than this")
    memory_mb: int = option(
        1024, "memory for comparing all rows; what takes more is put on the disk, with the same result", result=False
    )
    save_signatures: bool = option(
        False, "write each row's MinHash values to the column minhash, as datasketch.LeanMinHash serialises them"
    )
    save_index: bool = option(
        False, "write what a later run --against this one needs to know of its rows; takes 1.1 to 2.7 times their text"
    )
    against: str = option(
        "", "also drop what repeats a row that an earlier dedup kept: its manifest, run with save_index", result=False
    )

    def __post_init__(self) -> None:
        for name in ("shingle_words", "num_bands", "rows_per_band", "max_cluster_rows", "min_alarm_rows", "memory_mb"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, found {getattr(self, name)}")
        if not 0.0 < self.threshold <= 1.0 or round(self.threshold, 3) != self.threshold:
            raise ConfigError(f"threshold must lie in (0, 1], with at most three decimals; found {self.threshold}")
        if not 0 <= self.seed < 1 << 32:
            raise ConfigError(f"seed must lie in [0, 2**32), found {self.seed}")
        if self.policy not in ("first", "longest") and not self.score_column:
            raise ConfigError(f"policy must be first, longest or highest:<column>, found {self.policy!r}")
        for name in ("max_source_loss", "false_negative_weight"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"{name} is a share and lies in [0, 1], found {getattr(self, name)}")
        if self.max_num_perm:
            self._choose_bands()
        for name in ("save_index", "against"):
            if getattr(self, name) and (self.cluster, self.policy) != ("star", "first"):
                raise ConfigError(
                    f"{name}: earlier rows can only stay as they are with cluster star and policy first; found cluster "
                    f"{self.cluster} and policy {self.policy}"
                )

    def _choose_bands(self) -> None:
        """Put the chosen numbers in the place of the given ones, so that manifests name them."""
        if self.max_num_perm < 2:
            raise ConfigError(f"max_num_perm must be 0, or at least 2 values to choose from; found {self.max_num_perm}")
        chosen = best_bands(self.threshold, self.max_num_perm, self.false_negative_weight)
        given = (self.num_bands, self.rows_per_band)
        if given not in (chosen, (_DEFAULT_BANDS, _DEFAULT_ROWS)):
            raise ConfigError(
                f"max_num_perm asks to choose num_bands and rows_per_band ({chosen[0]} and {chosen[1]}), but "
                f"{given[0]} and {given[1]} are given: leave out the one or the other"
            )
        object.__setattr__(self, "num_bands", chosen[0])
        object.__setattr__(self, "rows_per_band", chosen[1])

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
