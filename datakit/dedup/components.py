"""Connected components of the candidates (union-find): the field's clustering, kept for comparison with star."""

import numpy as np
import numpy.typing as npt

from datakit.dedup.lsh import Buckets
from datakit.native import Kernels

_kernels_components = Kernels("datakit.dedup._kernels_components")


def first_of_component(buckets: Buckets) -> npt.NDArray[np.int64]:
    """For each row the first row that a chain of shared bands leads to (itself where there is none), int64 (rows,).

    Candidates are not verified here: a chain may join rows that have nothing in common.
    """
    first: npt.NDArray[np.int64] = np.arange(buckets.of_row.shape[1])
    _kernels_components.first_of_component(buckets.of_row, np.full(len(buckets.sizes), -1), first)
    return first
