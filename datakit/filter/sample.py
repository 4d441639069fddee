"""A share of the rows, drawn by the hash of each row's content.

The draw of a row depends on its content and the seed alone. So more rows, other files or another order change nothing
for a row; a smaller share is part of a larger one; and rows of equal content stay or go together. It is a draw of rows:
sources of long rows keep about the same share of text, not exactly.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from datakit.config import option
from datakit.errors import ConfigError
from datakit.filter.rule_set import Measure, MeasuredRows, RuleSet, Signals
from datakit.text.words import binary_digest, stated_digest

_BITS: Final = 53
"""Of a draw: as many as a float holds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowSample(RuleSet):
    """How large the share is."""

    name: ClassVar[str] = "sample"
    counts: ClassVar[bool] = True

    share: float = option(1.0, "the share of rows that stays")
    sources: dict[str, float] = option({}, "source = share, for sources with a share of their own")
    seed: int = option(0, "another seed draws other rows")

    def check(self) -> None:
        """Refuse what is no share."""
        for name, share in {"share": self.share, **{f"sources.{n}": s for n, s in self.sources.items()}}.items():
            if not 0 <= share <= 1:
                raise ConfigError(f"{name} is a share and lies in [0, 1], found {share}")

    def counted_with(self) -> dict[str, Any]:
        """The seed."""
        return {"seed": self.seed}

    def count_rows(self, rows: MeasuredRows) -> Signals:
        """`sample_draw`: an integer below 2**53 for each row, as likely as any other."""
        if "content_hash" in rows.batch.schema.names:
            digests = stated_digest(rows.batch.column("content_hash"))
        else:
            digests = binary_digest(rows.whole_rows)
        words = np.frombuffer(digests.buffers()[1], np.uint64)[::2][: len(digests)]
        return Signals({"sample_draw": (_mixed(words, self.seed) >> np.uint64(64 - _BITS)).astype(np.int64)})

    def measure(self, rows: MeasuredRows) -> Iterator[Measure]:
        """The draws, as numbers above 0 and at most 1. A row of a source with its own share counts as 0 or 2."""
        draws = (rows.counted(self)["sample_draw"] + 1) / 2**_BITS
        values, own = draws.copy(), np.zeros(len(draws), np.bool_)
        for source, share in self.sources.items():
            of = pc.fill_null(pc.equal(rows.batch.column("source"), source), False).to_numpy(zero_copy_only=False)
            values[of] = np.where(draws[of] <= share, 0, 2)
            own |= of

        def says(which: NDArray[np.int64]) -> list[str]:
            sources = rows.batch.column("source").take(which).to_pylist() if own.any() else []
            return [
                f"draw {draws[row]:.6f} > {self.sources[sources[at]] if own[row] else self.share}"
                f"{f', the share of {sources[at]}' if own[row] else ''}"
                for at, row in enumerate(which.tolist())
            ]

        yield Measure("share", values, says=says)

    def notes(self, rows: MeasuredRows, stays: NDArray[np.bool_]) -> dict[str, int]:
        """The rows of each source with a share of its own: 0 shows a misspelt name."""
        sources = rows.batch.column("source") if self.sources else None
        return {f"sample_rows_of_{n}": pc.sum(pc.equal(sources, n)).as_py() or 0 for n in self.sources}


def _mixed(words: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Words that depend on every bit of the given ones and of the seed: splitmix64's finalizer (Steele et al. 2014)."""
    mixed = words ^ (np.uint64(seed % 2**64) * np.uint64(0x9E3779B97F4A7C15))
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ mixed >> np.uint64(31))
