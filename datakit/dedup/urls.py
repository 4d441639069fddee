"""Rows with the URL of an earlier row: pages that were fetched more than once, whatever their text says.

`text.page_urls` says when two URLs are the same.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import option, shares
from datakit.data import compared_fields
from datakit.dedup.comparison import (
    at_least,
    check_indexed,
    check_policy,
    frequent_survivors,
    policy_order,
    policy_rank,
    source_column,
    text_bytes,
    write_decisions,
)
from datakit.dedup.exact import first_equal_rows
from datakit.dedup.sharing import SharedRows, SharingStage
from datakit.dedup.shuffle import Memory, SketchRows
from datakit.errors import ConfigError
from datakit.stage import MAX_ALARMS, Decision, Losses
from datakit.text.page_urls import page_form, urls_at


@dataclass(frozen=True, kw_only=True, slots=True)
class UrlsConfig:
    """Of the rows with one URL, one stays."""

    field: str = option("url", "where a row has its URL: a column, or a field of extra; dots lead into it (meta.url)")
    same: Literal["page", "exact"] = option(
        "page", "page: URLs that lead to one page are the same (scheme, fragment, tracking, ...); exact: equal ones"
    )
    policy: str = option("first", "which row of a URL stays: first, longest, or highest:<column>; ties by position")
    max_cluster_rows: int = option(1000, "raise an alarm where more rows than this have one URL")
    max_loss: float = option(0.3, "raise an alarm where all rows, or those of a source, lose more than this share")
    min_alarm_rows: int = option(20, "raise no alarm about fewer rows than this, of all or a source")
    memory_mb: int = option(
        1024, "memory for comparing all rows; larger arrays go to the disk, with the same result", result=False
    )
    save_index: bool = option(False, "write the index that a later run needs for --against; about 40 bytes a row")
    against: str = option(
        "", "also drop rows with a URL that an earlier dedup_urls kept: its manifest, run with save_index", result=False
    )

    def __post_init__(self) -> None:
        if not all(self.field.split(".")):
            raise ConfigError(
                f"field names a column or a field of extra, such as url or meta.url; found {self.field!r}"
            )
        at_least(1, self, "max_cluster_rows", "min_alarm_rows", "memory_mb")
        shares(self, "max_loss")
        check_policy(self.policy)
        check_indexed(self, ("policy",), ("first",))


_CHECK = (
    "Check with `datakit pairs --stage dedup_urls` whether the field is the page's own address, and whether pages "
    "differ in what does not count (same = exact compares URLs as they are). If these are duplicates, raise max_loss"
)


@dataclass(frozen=True)
class DedupUrls(SharingStage):
    """Drops every row whose URL another row has that comes before it in the policy's order.

    The reason is `duplicate_url`; `duplicate_of` names the row that stays.

    Rows without a URL stay, and are counted (`no_url`).
    """

    config: UrlsConfig = field(default_factory=UrlsConfig)

    name: ClassVar[str] = "dedup_urls"
    Config: ClassVar[type] = UrlsConfig

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """`row_key`, `id`, `source`, `rank` under the policy, and the `digest` of the row's URL, null without one."""
        from datakit.text.words import binary_digest

        urls = urls_at(batch, self.config.field)
        digests = binary_digest(page_form(urls) if self.config.same == "page" else urls)
        return pa.record_batch(
            {
                "row_key": batch.column("row_key"),
                "id": batch.column("id"),
                "source": source_column(batch),
                "rank": policy_rank(batch, self.config.policy, lambda: _characters(batch)),
                "digest": pc.if_else(pc.is_valid(urls), digests, pa.scalar(None, digests.type)),
            }
        )

    def values(self, batch: pa.RecordBatch) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """Half of the digest of each row that has a URL."""
        digest = batch.column("digest")
        rows = np.flatnonzero(digest.is_valid().to_numpy(zero_copy_only=False))
        halves = np.frombuffer(digest.buffers()[1], np.uint64)[::2][digest.offset :]
        return halves[rows], rows

    def counts(self, batch: pa.RecordBatch) -> dict[str, int]:
        """The rows that have a URL."""
        return {"with_url": len(batch) - batch.column("digest").null_count}

    def probe(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The digests of the probe URLs; settings must match anyway, so that the field does not matter."""
        return replace(self, config=replace(self.config, field="url")).sketch(rows)

    def forecast(self, shards: Sequence[Path]) -> str:
        """The rows, and the indexes that are read."""
        return f"{text_bytes(shards)[0]:,} rows{self.forecast_earlier()}" if self.earlier else ""

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write the dropped rows to `out`; returns counts and alarms.

        Raises:
            ConfigError: no row has a URL.
            IntegrityError: an index is damaged.
        """
        memory = Memory(self.config.memory_mb << 20, out.parent)
        shared = self.shared_with(sketches, out, workers)
        rows, losses = shared.rows(memory), Losses("rows")
        order = policy_order(rows, rows.column("row_key", memory), self.config.policy, rows.old)
        order = np.concatenate([np.arange(rows.old), order])
        place = first_equal_rows(rows, order, memory)
        first = np.full(len(rows), -1)
        first[order] = np.where(place < 0, -1, order[place])
        known, new = shared.counts()["with_url"], shared.amounts().total()
        if new and not known:
            raise ConfigError(
                f"dedup_urls: none of {new} rows has a URL in the field {self.config.field!r}; name the field "
                "that has it (--field, or field in [dedup_urls]), or leave the stage out"
            )
        first[first == np.arange(len(rows))] = -1
        write_decisions(out, (self._decide(rows, n, first, losses) for n in rows.new))
        losses.whole.update(shared.amounts())
        repeats = np.bincount(first[first >= 0], minlength=1)
        return {
            "rows_with_url": known,
            "largest_cluster_rows": int(repeats.max()) + (new > 0),
            "alarms": [
                *self._large_clusters(rows, repeats),
                *losses.alarms(
                    self.config.max_loss, self.config.min_alarm_rows, _CHECK, frequent_survivors(rows, repeats)
                ),
            ],
        }

    def _large_clusters(self, rows: SketchRows, repeats: npt.NDArray[np.int64]) -> list[str]:
        worst = np.flatnonzero(repeats + 1 > self.config.max_cluster_rows)
        worst = worst[np.argsort(-repeats[worst], kind="stable")][:MAX_ALARMS]
        return [
            f"{repeats[row] + 1} rows have the URL of {name!r} and all but it are dropped (max_cluster_rows is "
            f"{self.config.max_cluster_rows})"
            for row, name in zip(worst, rows.ids(worst).to_pylist(), strict=True)
        ]

    def _decide(self, rows: SharedRows, number: int, first: npt.NDArray[np.int64], losses: Losses) -> pa.RecordBatch:
        """The decisions about one batch of sketches; `first` is the row that stays with the same URL, else -1."""
        batch, first = rows.batches[number], first[rows.begins[number] : rows.begins[number + 1]]
        losses.add(batch.column("source"), np.zeros(len(first), np.int64), first >= 0)
        dropped = np.flatnonzero(first >= 0)
        return pa.record_batch(
            {
                "row_key": batch.column("row_key").take(pa.array(dropped)),
                "reason": pa.array(["duplicate_url"] * len(dropped), pa.string()),
                "duplicate_of": rows.ids(first[dropped]),
                "duplicate_in": self.versions_of(rows.among_all(first[dropped])),
            }
        )

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Look the rows up by row_key."""
        found, urls = self.look_up(batch.column("row_key")), urls_at(batch, self.config.field)
        of, where = found.column("duplicate_of"), self.in_which(found.column("duplicate_in"))
        return Decision(
            reasons=found.column("reason"),
            detail=pc.binary_join_element_wise("has the URL of ", of, where, ": ", urls, ""),
            drop_columns=self.survivor_columns(found),
            notes={"no_url": urls.null_count},
        )


def _characters(batch: pa.RecordBatch) -> pa.Array:
    """How many characters each row has."""
    lengths = [pc.utf8_length(text) for text in compared_fields(batch, "all", include_calls=True)]
    return functools.reduce(pc.add, lengths)
