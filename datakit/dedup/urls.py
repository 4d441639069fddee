"""Rows with the URL of an earlier row: pages that were fetched more than once, whatever their text says.

`text.page_urls` says when two URLs are the same.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import at_least, option
from datakit.dedup.comparison import (
    POLICY,
    CompareOptions,
    Hashes,
    IndexOptions,
    Numbers,
    blocks,
    check_policy,
    cluster_facts,
    lost_rows,
    policy_order,
    row_columns,
    sums_of,
)
from datakit.dedup.shuffle import Compared, Decided, IndexedStage, Memory, Rows, digest_halves
from datakit.errors import ConfigError
from datakit.stage import Decision
from datakit.text.page_urls import page_form, urls_at
from datakit.text.words import binary_digest


@dataclass(frozen=True, kw_only=True, slots=True)
class UrlsConfig(IndexOptions):
    """Of the rows with one URL, one stays."""

    field: str = option("url", "where a row has its URL: a column, or a field of extra; dots lead into it (meta.url)")
    same: Literal["page", "exact"] = option(
        "page", "page: URLs that lead to one page are the same (scheme, fragment, tracking, ...); exact: equal ones"
    )
    policy: str = option("first", POLICY)
    max_cluster_rows: int = option(1000, "raise an alarm where more rows than this have one URL")

    def __post_init__(self) -> None:
        if not all(self.field.split(".")):
            raise ConfigError(
                f"field names a column or a field of extra, such as url or meta.url; found {self.field!r}"
            )
        CompareOptions.__post_init__(self)
        at_least(self, 1, "max_cluster_rows")
        check_policy(self)


_LARGE = "{} rows have the URL of {!r} and all but it are dropped (max_cluster_rows is {})"
_CHECK = (
    "Check with `datakit pairs --stage dedup_urls` whether the field is the page's own address, and whether pages "
    "differ in what does not count (same = exact compares URLs as they are). If these are duplicates, raise max_loss"
)


@dataclass(frozen=True)
class DedupUrls(IndexedStage):
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
        own = {"digest": pc.if_else(pc.is_valid(urls), digests, pa.scalar(None, digests.type))}
        return pa.record_batch(row_columns(batch, self.config.policy) | own)

    def keys(self, batch: pa.RecordBatch) -> Iterator[tuple[int, Hashes, Numbers]]:
        """Half of the digest of each row that has a URL."""
        digest = batch.column("digest")
        rows = np.flatnonzero(digest.is_valid().to_numpy(zero_copy_only=False))
        yield 0, digest_halves(digest)[rows, 0], rows

    def totals(self, batch: pa.RecordBatch) -> dict[str, dict[str, int]]:
        """The rows by source, and those that have a URL."""
        known, sources = len(batch) - batch.column("digest").null_count, batch.column("source")
        return {"source": sums_of(sources, np.ones(len(batch))), "url": {"rows": known}}

    def check_totals(self, sums: dict[str, Counter[str]]) -> None:
        """Raise a ConfigError where no row has a URL, or a number in the policy's column."""
        super().check_totals(sums)
        rows = sums["rows"]["all"]
        if rows and not sums["url"]["rows"]:
            raise ConfigError(
                f"dedup_urls: none of {rows} rows has a URL in the field {self.config.field!r}; name the "
                "field that has it (--field, or field in [dedup_urls]), or leave the stage out"
            )

    def decide_rows(self, rows: Rows, memory: Memory) -> Decided:
        """Decide about the rows of one group: the first of each URL stays."""
        from datakit.dedup.minhash import first_of_equals

        order = policy_order(rows, self.config.policy, memory)
        first = first_of_equals(memory.take(rows.column("digest", memory), order), memory.full)
        survivor = memory.full(order.shape, -1, np.int64)
        for block in blocks(len(order), rows.old):
            own = first[block]
            survivor[order[block]] = np.where(own == np.arange(block.start, block.stop), -1, order[own])
        stands_for, counts = lost_rows(rows, survivor, ("source",), self.config.max_cluster_rows, memory)
        dropped = self.drops(rows, survivor, memory)
        decisions = (pa.record_batch(of | {"reason": pa.repeat("duplicate_url", len(gone))}) for gone, of in dropped)
        return Decided(decisions, stands_for, counts)

    def summarize(self, compared: Compared) -> dict[str, Any]:
        """Counts and alarms."""
        facts = cluster_facts(compared, self.config, _LARGE, "URLs stand for more rows than that", _CHECK)
        return {"rows_with_url": compared.sums["url"]["rows"]} | facts

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Look the rows up by row_key."""
        found, urls = self.look_up(batch.column("row_key")), urls_at(batch, self.config.field)
        of, where = found.column("duplicate_of"), self.in_which(found)
        return Decision(
            reasons=found.column("reason"),
            detail=pc.binary_join_element_wise("has the URL of ", of, where, ": ", urls, ""),
            drop_columns=self.survivor_columns(found),
            notes={"no_url": urls.null_count},
        )
