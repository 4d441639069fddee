"""What a person should see before the duplicates are gone: one row for many, a source or a language nearly lost."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from datakit.dedup.config import DedupConfig
from datakit.dedup.sketches import Sketches

MOST = 10
"""Alarms of one sort that are told one by one, the worst first; the others are counted."""


def alarms(
    sketches: Sketches,
    survivor: npt.NDArray[np.int64],
    cluster_rows: npt.NDArray[np.int64],
    config: DedupConfig,
) -> list[str]:
    """A sentence for each thing that looks wrong.

    `survivor` int64 (rows,) is the row that stays for each, -1 where it stays itself; `cluster_rows` int64 counts how
    many rows each row stays for, besides itself.
    """
    dropped = survivor >= 0
    return [
        *_told(_large_clusters(sketches, cluster_rows, config), "rows stand for more rows than that"),
        *_told(_lost_sources(sketches, dropped, config), "sources lose more than that"),
        *_told(_lost_languages(sketches, dropped, config), "languages vanish"),
    ]


def _told(sentences: Iterator[str], more: str) -> Iterator[str]:
    found = list(sentences)
    yield from found[:MOST]
    if len(found) > MOST:
        yield f"{len(found) - MOST} more {more}"


def _large_clusters(sketches: Sketches, cluster_rows: npt.NDArray[np.int64], config: DedupConfig) -> Iterator[str]:
    large = np.flatnonzero(cluster_rows >= config.max_cluster_rows)
    large = large[np.argsort(-cluster_rows[large], kind="stable")]
    for number, row in enumerate(large):
        name = sketches.ids(large[number : number + 1])[0].as_py() if number < MOST else ""
        yield (
            f"{cluster_rows[row] + 1} rows count as one: all but {name!r} are dropped as its duplicates "
            f"(max_cluster_rows is {config.max_cluster_rows}); look whether they share boilerplate"
        )


def _lost_sources(sketches: Sketches, dropped: npt.NDArray[np.bool_], config: DedupConfig) -> Iterator[str]:
    rows, lost = sketches.count("source", np.ones_like(dropped)), sketches.count("source", dropped)
    shares = {name: round(lost[name] / n, 3) for name, n in rows.items() if n >= config.min_alarm_rows}
    for name, share in sorted(shares.items(), key=lambda item: (-item[1], item[0])):
        if share > config.max_source_loss:
            yield (
                f"the source {name!r} loses {lost[name]} of its {rows[name]} rows ({share:.1%}; max_source_loss is "
                f"{config.max_source_loss:.1%}); `datakit pairs` shows for which rows"
            )


def _lost_languages(sketches: Sketches, dropped: npt.NDArray[np.bool_], config: DedupConfig) -> Iterator[str]:
    rows, lost = sketches.count("lang", np.ones_like(dropped)), sketches.count("lang", dropped)
    for name in sorted(rows, key=lambda name: (-rows[name], name)):
        if lost[name] == rows[name] >= config.min_alarm_rows:
            yield (
                f"the language {name!r} vanishes: each of its {rows[name]} rows is dropped as the duplicate of a row "
                "in another language"
            )
