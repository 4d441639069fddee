"""How much of each source is lost, and the alarm where that is too much."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

MOST = 10
"""Sources that are told one by one, the worst first; the others are counted."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Amounts (words, rows) by source: before, and what of them is lost."""

    what: str
    whole: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)

    def add(self, source: pa.Array, whole: npt.NDArray[Any], lost: npt.NDArray[Any]) -> None:
        """Count the amounts of some rows; rows without a source count as one."""
        columns = {"source": pc.fill_null(source, ""), "whole": whole.astype(np.int64), "lost": lost.astype(np.int64)}
        sums = pa.table(columns).group_by("source").aggregate([("whole", "sum"), ("lost", "sum")])
        for row in sums.to_pylist():
            self.whole[row["source"]] += row["whole_sum"]
            self.lost[row["source"]] += row["lost_sum"]

    def alarms(self, most: float) -> list[str]:
        """A sentence for each source that loses more than a share of what it had."""
        shares = {name: round(self.lost[name] / n, 3) for name, n in self.whole.items() if n}
        worst = sorted((-share, name) for name, share in shares.items() if share > most)
        told = [
            f"the source {name!r} loses {self.lost[name]} of its {self.whole[name]} {self.what} ({-share:.1%}; "
            f"max_source_loss is {most:.1%})"
            for share, name in worst[:MOST]
        ]
        return told + ([f"{len(worst) - MOST} more sources lose more than that"] if len(worst) > MOST else [])
