"""Rows with the URL of an earlier row: pages that were fetched more than once, whatever their text says.

`text.page_urls` says when two URLs are the same.
"""

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import at_least, option, shares
from datakit.data import compared_fields
from datakit.dedup.comparison import (
    check_indexed,
    check_policy,
    check_ranked,
    policy_order,
    policy_rank,
    ranked,
    source_column,
    text_bytes,
)
from datakit.dedup.shuffle import (
    Compared,
    Decided,
    GatheredRows,
    Memory,
    ShuffleStage,
    counted_by,
    digest_halves,
    first_of_equals,
    survivors_of,
)
from datakit.errors import ConfigError
from datakit.stage import Decision, Losses, worst_first
from datakit.text.page_urls import page_form, urls_at
from datakit.text.words import binary_digest


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
        at_least(self, 1, "max_cluster_rows", "min_alarm_rows", "memory_mb")
        shares(self, "max_loss")
        check_policy(self.policy)
        check_indexed(self, ("policy",), ("first",))


_CHECK = (
    "Check with `datakit pairs --stage dedup_urls` whether the field is the page's own address, and whether pages "
    "differ in what does not count (same = exact compares URLs as they are). If these are duplicates, raise max_loss"
)


@dataclass(frozen=True)
class DedupUrls(ShuffleStage):
    """Drops every row whose URL another row has that comes before it in the policy's order.

    The reason is `duplicate_url`; `duplicate_of` names the row that stays.

    Rows without a URL stay, and are counted (`no_url`).
    """

    config: UrlsConfig = field(default_factory=UrlsConfig)

    name: ClassVar[str] = "dedup_urls"
    Config: ClassVar[type] = UrlsConfig

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """`row_key`, `id`, `source`, `rank` under the policy, and the `digest` of the row's URL, null without one."""
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

    def keys(self, batch: pa.RecordBatch) -> Iterator[tuple[int, npt.NDArray[np.uint64], npt.NDArray[np.int64]]]:
        """Half of the digest of each row that has a URL."""
        digest = batch.column("digest")
        rows = np.flatnonzero(digest.is_valid().to_numpy(zero_copy_only=False))
        yield 0, digest_halves(digest)[rows, 0], rows

    def totals(self, batch: pa.RecordBatch) -> dict[str, dict[str, int]]:
        """The rows by source, and those that have a URL."""
        known = len(batch) - batch.column("digest").null_count
        return {"source": counted_by(batch.column("source")), "url": {"rows": known}, "ranked": ranked(batch)}

    def check_totals(self, totals: dict[str, Counter[str]]) -> None:
        """Raise a ConfigError where no row has a URL, or a number in the policy's column."""
        check_ranked(self.config.policy, totals)
        if totals.get("source") and not totals["url"]["rows"]:
            raise ConfigError(
                f"dedup_urls: none of {totals['source'].total()} rows has a URL in the field {self.config.field!r}; "
                "name the field that has it (--field, or field in [dedup_urls]), or leave the stage out"
            )

    def probe(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The digests of the probe URLs; settings must match anyway, so that the field does not matter."""
        return replace(self, config=replace(self.config, field="url")).sketch(rows)

    def forecast(self, shards: Sequence[Path]) -> str:
        """The rows, and the indexes that are read."""
        return f"{text_bytes(shards)[0]:,} rows{self.forecast_earlier()}" if self.earlier else ""

    def decide_rows(self, rows: GatheredRows, memory: Memory) -> Decided:
        """Decide about the rows of one group: the first of each URL stays."""
        row_key = rows.column("row_key", memory)
        order = policy_order(rows, row_key, self.config.policy, rows.old)
        order = np.concatenate([np.arange(rows.old), order])
        first = np.empty_like(order)
        first[order] = order[first_of_equals(rows.digests()[order])]
        dropped = np.flatnonzero((first != np.arange(len(rows))) & (np.arange(len(rows)) >= rows.old))
        gone = np.bincount(dropped, minlength=len(rows)) > 0
        lost = [
            counted_by(batch.column("source").filter(pa.array(gone[begin : begin + batch.num_rows])))
            for batch, begin in zip(rows.batches, rows.begins, strict=False)
            if begin >= rows.old
        ]
        sizes = np.bincount(first[dropped], minlength=len(rows))
        decisions = {
            "row_key": row_key[dropped],
            "reason": pa.array(["duplicate_url"] * len(dropped), pa.string()),
            "duplicate_of": rows.ids(first[dropped]),
            "duplicate_in": self.versions_of(rows.numbers[first[dropped]]),
        }
        counts = {
            "lost": dict(sum(map(Counter, lost), Counter[str]())),
            "large": {"rows": int((sizes >= self.config.max_cluster_rows).sum())},
        }
        return Decided([pa.record_batch(decisions)], counts, survivors_of(rows, sizes))

    def summarize(self, compared: Compared) -> dict[str, Any]:
        """Counts and alarms."""
        config, survivors = self.config, compared.survivors()
        losses = Losses("rows", compared.total("source"), compared.count("lost"))
        large = [
            f"{count + 1} rows have the URL of {name!r} and all but it are dropped (max_cluster_rows is "
            f"{config.max_cluster_rows})"
            for name, count in survivors if count >= config.max_cluster_rows
        ]  # fmt: skip
        large += [""] * (compared.count("large")["rows"] - len(large))
        return {
            "rows_with_url": compared.total("url")["rows"],
            "largest_cluster_rows": survivors[0][1] + 1 if survivors else int(compared.rows > 0),
            "alarms": [
                *worst_first(large, "URLs stand for more rows than that"),
                *losses.alarms(config.max_loss, config.min_alarm_rows, _CHECK, survivors),
            ],
        }

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
