"""Connected components of the candidates (union-find): the field's clustering, kept for comparison with star."""

import numpy as np
import numpy.typing as npt

from datakit.dedup import _kernels_components
from datakit.dedup.lsh import Buckets


def first_of_component(buckets: Buckets) -> npt.NDArray[np.int64]:
    """For each row the first row that a chain of shared bands leads to (itself where there is none), int64 (rows,).

    Candidates are not verified here: a chain may join rows that have nothing in common.
    """
    first: npt.NDArray[np.int64] = _kernels_components.first_of_component(buckets.of_row, len(buckets.sizes))
    return first
