"""Rows with the URL of an earlier row: pages that were fetched more than once, whatever became of their text."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from datakit.dedup.cutting import source
from datakit.dedup.decisions import look_up, write
from datakit.dedup.exact import first_of_equals
from datakit.dedup.levels import UrlsConfig
from datakit.dedup.losses import Losses
from datakit.dedup.memory import Memory, in_range
from datakit.dedup.rows import Rows, open_rows
from datakit.dedup.url_form import page_form
from datakit.errors import ConfigError
from datakit.stage import Decision
from datakit.text.normal_form import binary_digest

_DIGEST_BYTES = 96  # a row takes while digests are sorted: the digest twice, its place, the order, ...


@dataclass(frozen=True)
class DedupUrls:
    """Drops every row whose URL an earlier row has; the reason is `duplicate_url`, `duplicate_of` names that row.

    Rows without a URL stay, and are counted (`no_url`).
    """

    config: UrlsConfig = field(default_factory=UrlsConfig)
    decisions: Path | None = None
    name: ClassVar[str] = "dedup_urls"
    holds_gil: ClassVar[bool] = False

    def resources(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def open(self) -> None:
        """Nothing to load."""

    def sketch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """`row_key`, `id`, `source`, and the `digest` of the row's URL, null without one."""
        urls = self._urls(batch)
        digests = binary_digest(page_form(urls) if self.config.same == "page" else urls)
        return pa.record_batch(
            {
                "row_key": batch.column("row_key"),
                "id": batch.column("id"),
                "source": source(batch),
                "digest": pc.if_else(pc.is_valid(urls), digests, pa.scalar(None, digests.type)),
            }
        )

    def reduce(self, sketches: Sequence[Path], out: Path, *, workers: int) -> dict[str, Any]:
        """Write the dropped rows to `out`; returns counts and alarms.

        Raises:
            ConfigError: no row has a URL.
        """
        rows, losses = open_rows(sketches), Losses("rows")
        memory = Memory(self.config.memory_mb << 20, out.parent)
        survivor, known = _first_of_url(rows, memory)
        if len(rows) and not known:
            raise ConfigError(
                f"dedup_urls: none of {len(rows)} rows has a URL in the field {self.config.field!r}; name the field "
                "that has it (--field, or field in [dedup_urls]), or leave the stage out"
            )
        write(out, (_decide(rows, n, survivor, losses) for n in range(len(rows.batches))))
        repeats = np.bincount(survivor[survivor >= 0], minlength=1)
        return {
            "rows_with_url": known,
            "largest_cluster_rows": int(repeats.max()) + (len(rows) > 0),
            "alarms": self._crowds(rows, repeats) + losses.alarms(self.config.max_source_loss),
        }

    def bind(self, out: Path) -> Self:
        """The stage that carries out the decisions in `out`."""
        return replace(self, decisions=out)

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Look the rows up by row_key."""
        assert self.decisions is not None, "decide needs the decisions of reduce: call bind first"
        found, urls = look_up(self.decisions, batch.column("row_key")), self._urls(batch)
        reasons, duplicate_of = found.column("reason"), found.column("duplicate_of")
        detail = pc.binary_join_element_wise("has the URL of ", duplicate_of, ": ", urls, "")
        return Decision(
            reasons=reasons,
            detail=detail,
            drop_columns={"duplicate_of": duplicate_of},
            notes={"no_url": urls.null_count},
        )

    def _urls(self, batch: pa.RecordBatch) -> pa.Array:
        """The URL of each row as it was written; null where it has none."""
        names, head = batch.schema.names, self.config.field
        if head in names and head != "extra":
            urls = batch.column(head).cast(pa.string())
        elif "extra" in names:
            way = head.split(".")
            urls = pa.array([_follow(extra, way) for extra in batch.column("extra").to_pylist()], pa.string())
        else:
            urls = pa.nulls(batch.num_rows, pa.string())
        return pc.if_else(pc.equal(pc.utf8_trim_whitespace(urls), ""), pa.scalar(None, pa.string()), urls)

    def _crowds(self, rows: Rows, repeats: npt.NDArray[np.int64]) -> list[str]:
        worst = np.flatnonzero(repeats + 1 > self.config.max_cluster_rows)
        worst = worst[np.argsort(-repeats[worst], kind="stable")][:10]
        return [
            f"{repeats[row] + 1} rows have the URL of {name!r} and all but it are dropped (max_cluster_rows is "
            f"{self.config.max_cluster_rows}); look whether the field is the page's own address"
            for row, name in zip(worst, rows.ids(worst).to_pylist(), strict=True)
        ]


def _follow(extra: str | None, way: list[str]) -> str | None:
    """The string that a path of keys leads to in a JSON object."""
    value: Any = orjson.loads(extra) if extra else None
    for key in way:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def _first_of_url(rows: Rows, memory: Memory) -> tuple[npt.NDArray[np.int64], int]:
    """(for each row the first with its URL, -1 where that is itself or it has none; how many have one)."""
    survivor, known = memory.full((len(rows),), -1, np.int64), 0
    ranges = memory.ranges(len(rows) * _DIGEST_BYTES)
    for part in range(ranges):
        numbers, digests = [np.empty(0, np.int64)], [np.empty((0, 2), np.uint64)]
        for batch, begin in zip(rows.batches, rows.begins, strict=False):
            column = batch.column("digest")
            words = np.frombuffer(column.buffers()[1], np.uint64)[: 2 * len(column)].reshape(-1, 2)
            chosen = in_range(words[:, 0], part, ranges)
            chosen = chosen[column.is_valid().to_numpy(zero_copy_only=False)[chosen]]
            numbers.append(begin + chosen)
            digests.append(words[chosen])
        places = np.concatenate(numbers)
        first = places[first_of_equals(np.concatenate(digests))]
        repeated = first != places
        survivor[places[repeated]] = first[repeated]
        known += len(places)
    return survivor, known


def _decide(rows: Rows, number: int, survivor: npt.NDArray[np.int64], losses: Losses) -> pa.RecordBatch:
    batch = rows.batches[number]
    first = survivor[rows.begins[number] : rows.begins[number + 1]]
    losses.add(batch.column("source"), np.ones(len(first), np.int64), first >= 0)
    dropped = np.flatnonzero(first >= 0)
    return pa.record_batch(
        {
            "row_key": batch.column("row_key").take(pa.array(dropped)),
            "reason": pa.array(["duplicate_url"] * len(dropped), pa.string()),
            "duplicate_of": rows.ids(first[dropped]),
        }
    )
