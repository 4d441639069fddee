"""From the sketches of all rows to who stays: exact duplicates first, then near ones among what is left."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from datakit.dedup.alarms import alarms
from datakit.dedup.config import DedupConfig
from datakit.dedup.exact import first_of_equals
from datakit.dedup.index import Earlier, live_rows
from datakit.dedup.lsh import Buckets, candidate_probability, find_buckets
from datakit.dedup.memory import Memory, parts
from datakit.dedup.sketches import Sketches, open_sketches
from datakit.dedup.star import Clusters, components, star
from datakit.errors import ConfigError

_DIGEST_BYTES = 96  # a row takes while digests are sorted: the digest twice, its place, the order, ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of each row, in the order of the sketches.

    `survivor` int64 (rows,): the row that stays in its place, -1 where it stays itself. `similarity` float64 (rows,).
    `exact` bool (rows,): the survivor's text is equal. Rows of indexes come first, and stay.
    """

    sketches: Sketches
    survivor: npt.NDArray[np.int64]
    similarity: npt.NDArray[np.float64]
    exact: npt.NDArray[np.bool_]
    facts: dict[str, Any]


def decide_all(
    paths: Sequence[Path],
    config: DedupConfig,
    memory: Memory,
    workers: int,
    earlier: tuple[Earlier, ...] = (),
    sided: bool = False,
) -> Verdict:
    """Compare all rows of the sketch files, with each other and with the rows of earlier runs.

    `sided`: the rows are preference pairs, whose answers must be similar too (`sides`).

    Rows with equal text form a group, which its first row in the policy's order stands for. Those first rows are
    compared by `star` or `components`. Where the first row of a group is dropped, its copies are near duplicates of the
    same survivor, with the same similarity: every row that is named stays.

    Raises:
        ConfigError: the policy's column holds no number in any row.
        IntegrityError: an index is damaged.
    """
    for one in earlier:
        one.check(workers)
    sketches = open_sketches([*(path for one in earlier for path in one.paths), *paths], memory)
    old = live_rows(sketches, earlier)
    order = memory.keep(np.concatenate([old, _policy_order(sketches, config, sum(one.rows for one in earlier))]))
    first = _first_of_equals(sketches, order, memory)
    stands_for, clusters, buckets = _near(sketches, order, len(old), first, config, memory, workers, sided)
    survivor, similarity, exact = _carried_over(sketches, order, first, stands_for, clusters, memory)
    cluster_rows = np.bincount(survivor[survivor >= 0], minlength=1)
    facts = _facts(config, buckets, clusters) | {
        "largest_cluster_rows": int(cluster_rows.max(initial=0)) + (len(order) > 0),
        "alarms": alarms(sketches, survivor, cluster_rows, config),
    }
    memory.release()
    return Verdict(sketches, survivor, similarity, exact, facts)


def _carried_over(
    sketches: Sketches,
    order: npt.NDArray[np.int64],
    first: npt.NDArray[np.int64],
    stands_for: npt.NDArray[np.int64],
    clusters: Clusters,
    memory: Memory,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """From the rows that stand for groups to all rows, and from the policy's order to that of the sketches."""
    last, likeness = memory.full(order.shape, -1, np.int64), memory.full(order.shape, 1, np.float64)
    for part in parts(len(stands_for)):
        near = clusters.survivor[part]
        last[stands_for[part]] = np.where(near < 0, -1, stands_for[near])
        likeness[stands_for[part]] = clusters.similarity[part]
    rows = sketches.row_key.shape  # more than are in order where rows were removed from an index
    survivor, similarity = memory.full(rows, -1, np.int64), memory.full(rows, 1, np.float64)
    exact = np.zeros(rows, np.bool_)
    for part in parts(len(order)):
        row, group = order[part], first[part]
        near = last[group]
        place = np.where(near < 0, group, near)
        survivor[row] = np.where(place == np.arange(part.start, part.stop), -1, order[place])
        similarity[row], exact[row] = likeness[group], near < 0
    return survivor, similarity, exact


def _policy_order(sketches: Sketches, config: DedupConfig, old: int) -> npt.NDArray[np.int64]:
    """Numbers of all but the first `old` rows in the policy's order, ties by row_key."""
    if config.policy == "first":
        keys = sketches.row_key[old:]
        in_order = bool((keys[1:] > keys[:-1]).all())  # as ingest numbers them
        return np.arange(old, old + len(keys)) if in_order else old + np.argsort(keys, kind="stable")
    rank = sketches.ranks()
    if len(rank) and np.isnan(rank).all():
        raise ConfigError(f"policy {config.policy!r}: no row has a number in the column {config.score_column!r}")
    return np.lexsort((sketches.row_key, -rank))  # NaN sorts last


def _first_of_equals(sketches: Sketches, order: npt.NDArray[np.int64], memory: Memory) -> npt.NDArray[np.int64]:
    """For each row in the policy's order the first with the same text, int64 (rows,), by ranges of the digests."""
    place, first = memory.full(sketches.row_key.shape, -1, np.int64), memory.full(order.shape, 0, np.int64)
    for part in parts(len(order)):
        place[order[part]] = np.arange(part.start, part.stop)
    ranges = memory.ranges(len(order) * _DIGEST_BYTES)
    for number in range(ranges):
        rows, digests = sketches.digests(number, ranges)
        places = place[rows]
        by_place = np.argsort(places)
        by_place = by_place[np.searchsorted(places[by_place], 0) :]  # rows that were removed from an index have none
        places = places[by_place]
        first[places] = places[first_of_equals(digests[by_place])]
        memory.release()
    return first


def _near(
    sketches: Sketches,
    order: npt.NDArray[np.int64],
    old: int,
    first: npt.NDArray[np.int64],
    config: DedupConfig,
    memory: Memory,
    workers: int,
    sided: bool,
) -> tuple[npt.NDArray[np.int64], Clusters, Buckets]:
    """(the first rows of groups that have shingles, numbered in the policy's order; what became of them; buckets).

    The first `old` rows in that order stay.
    """
    copy = memory.full(order.shape, -1, np.int64)  # any copy of a text may be the one whose shingles were kept
    for part in reversed(parts(len(order))):
        described = part.start + np.flatnonzero(sketches.length[order[part]] > 0)[::-1]
        copy[first[described]] = described  # the first of them is written last
    groups = memory.keep(np.flatnonzero(copy >= 0))
    where = memory.take(order, memory.take(copy, groups))
    del copy
    buckets = find_buckets(lambda n: sketches.band(n, where, memory), config.num_bands, len(where), memory, workers)
    memory.release()
    address, length = memory.take(sketches.address, where), memory.take(sketches.length, where)
    if config.cluster == "star":
        settled = int(np.searchsorted(groups, old))
        buckets.leave_settled(settled)
        return (
            groups,
            star(buckets, address, length, config.least, memory, settled=settled, sided=sided, workers=workers),
            buckets,
        )
    return groups, components(buckets, address, length, memory), buckets


def _facts(config: DedupConfig, buckets: Buckets, clusters: Clusters) -> dict[str, Any]:
    return {
        "lsh": {
            "num_perm": config.num_perm,
            "num_bands": config.num_bands,
            "rows_per_band": config.rows_per_band,
            "seed": config.seed,
            "candidate_probability": {
                f"{s / 100:.2f}": candidate_probability(s / 100, config.num_bands, config.rows_per_band)
                for s in range(0, 101, 5)
            },
        },
        "candidates": {
            "buckets": len(buckets.sizes),
            "largest_bucket_rows": int(buckets.sizes.max(initial=0)),
            "pairs_in_buckets": buckets.pairs,
            "pairs_compared": clusters.pairs_compared,
            "entries_visited": clusters.entries_visited,
            "pairs_similar": int((clusters.survivor >= 0).sum()),
        },
    }
