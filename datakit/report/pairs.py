"""Dropped duplicates of any level beside the rows that stay for them, the most doubtful first."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import read_shard
from datakit.errors import InputError
from datakit.manifest import AGAINST, Manifest, ancestors, data_dir, load, tables
from datakit.report.differences import differences
from datakit.report.origins import visible
from datakit.report.rows import body
from datakit.report.side_by_side import side_by_side

LEVELS = ("dedup", "dedup_urls", "dedup_lines", "dedup_spans", "dedup_ngrams")
ORDER = [("similarity", "ascending"), ("row_key", "ascending")]
COLUMNS = ["row_key", "id", "reason", "duplicate_of", "similarity"]


@dataclass(frozen=True, slots=True)
class Pair:
    """A dropped row and the one that stays for it. `dropped` and `stays` are whole rows."""

    similarity: float
    reason: str
    dropped: dict[str, Any]
    stays: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The pair with both texts, as JSON."""
        sides = {name: {"id": row["id"], "source": row["source"], "text": body(row)}
                 for name, row in (("dropped", self.dropped), ("stays", self.stays))}  # fmt: skip
        return {"similarity": self.similarity, "reason": self.reason} | sides


@dataclass(frozen=True, slots=True)
class Drops:
    """What a stage dropped, and some pairs.

    `near` counts rows by similarity, rounded down to 0.05, without exact duplicates; where the stage compared
    something else than whole texts, it is that of the texts. `unnamed` rows went for no other in particular. `others`
    are rows that other levels of dedup dropped in the same history.
    """

    stage: str
    exact: int
    near: dict[float, int]
    unnamed: int
    others: dict[str, int]
    pairs: list[Pair]


def drops(path: Path, lowest: int, stage: str = "") -> Drops:
    """The `lowest` least similar drops of a level of dedup that the manifest at `path` is of, or was made from.

    That is `stage` if one is given; else that of the manifest itself, the document level, or the last one.

    Raises:
        InputError: no such stage is there.
    """
    levels = [(p, m) for p, m in ancestors(path) if m.stage in LEVELS]
    found = _level(path, levels, stage)
    chosen, exact, unnamed, near = pa.table({}), 0, 0, np.zeros(21, dtype=np.int64)
    for batch in _dropped(*found):
        named = batch.filter(pc.is_valid(batch.column("similarity")))
        is_exact = pc.equal(named.column("reason"), "exact_duplicate").to_numpy(zero_copy_only=False)
        thousandths = np.rint(named.column("similarity").to_numpy()[~is_exact] * 1000).astype(np.int64)
        exact, unnamed = exact + int(is_exact.sum()), unnamed + batch.num_rows - named.num_rows
        near += np.bincount(thousandths // 50, minlength=21)
        chosen = pa.concat_tables([t for t in (chosen, pa.table(named)) if t.num_rows] or [pa.table(named)])
        chosen = chosen.sort_by(ORDER).slice(0, lowest)
    counts = {n / 20: int(count) for n, count in enumerate(near) if count}
    others = {m.stage: sum(m.ledger.rows.dropped.values()) for _, m in reversed(levels) if m is not found[1]}
    return Drops(found[1].stage, exact, counts, unnamed, others, _pairs(*found, chosen.to_pylist()))


def _level(path: Path, levels: list[tuple[Path, Manifest]], stage: str) -> tuple[Path, Manifest]:
    own = load(path).stage
    for wanted in [stage] if stage else [own, "dedup", *LEVELS]:
        for one in levels:
            if one[1].stage == wanted:
                return one
    there = f"; there are {', '.join(m.stage for _, m in levels)}" if levels else ""
    raise InputError(
        f"{path}: expected the manifest of a {stage or 'dedup'} stage, or of one that came after it{there}"
    )


def _dropped(path: Path, manifest: Manifest) -> Iterator[pa.RecordBatch]:
    if manifest.stage != "dedup":
        from datakit.report.likeness import with_likeness  # brings the kernels

        yield from with_likeness(path, manifest)
        return
    elsewhere = ["duplicate_in"] if any(p.get("use") == AGAINST for p in manifest.parents) else []
    for shard in tables(manifest, "dropped"):
        yield from read_shard(data_dir(path, manifest) / shard.path, [*COLUMNS, *elsewhere])


def _pairs(path: Path, manifest: Manifest, chosen: list[dict[str, Any]]) -> list[Pair]:
    gone = _rows(path, manifest, "dropped", {row["id"] for row in chosen})
    stay = dict[str | None, dict[str, dict[str, Any]]]()
    for there in sorted({row.get("duplicate_in") for row in chosen}, key=lambda version: version or ""):
        names = {row["duplicate_of"] for row in chosen if row.get("duplicate_in") == there}
        stay[there] = _rows(*_dedup_run(path, manifest, there), "kept", names)
    return [
        Pair(r["similarity"], r["reason"], gone[r["id"]], stay[r.get("duplicate_in")][r["duplicate_of"]])
        for r in chosen
    ]


def _dedup_run(path: Path, manifest: Manifest, version: str | None) -> tuple[Path, Manifest]:
    """The run that kept a survivor: this one (None), or an earlier one that it was run against.

    Raises:
        InputError: its manifest is not where it was.
    """
    for found in [(path, manifest)] if version is None else ancestors(path, against=True):
        if version in (None, found[1].version):
            return found
    raise InputError(f"{path}: rows were dropped for rows of the dedup {version}, whose manifest is not where it was")


def _rows(path: Path, manifest: Manifest, role: str, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Whole rows by id; ids alone are read of the shards that hold none of them."""
    wanted, found = pa.array(sorted(ids), pa.string()), dict[str, dict[str, Any]]()
    for shard in tables(manifest, role):
        file = data_dir(path, manifest) / shard.path
        if not any(pc.any(pc.is_in(b.column("id"), wanted)).as_py() for b in read_shard(file, ["id"])):
            continue
        for batch in read_shard(file):
            hits = batch.filter(pc.is_in(batch.column("id"), wanted))
            found |= {row["id"]: row for row in hits.to_pylist()}
    return found


def listing(drops: Drops, columns: int = 0) -> Iterator[str]:
    """The drops as lines of text, in two columns where `columns` characters are enough for them."""
    yield _told(drops)
    if drops.near:
        what = "near duplicates by similarity" if drops.stage == "dedup" else "by the similarity of the texts"
        yield f"{what}: " + ", ".join(f"{s:.2f}: {n:,}" for s, n in drops.near.items())
    if any(drops.others.values()):
        told = ", ".join(f"{stage} {count:,}" for stage, count in drops.others.items() if count)
        yield f"other levels dropped rows too (--stage shows them): {told}"
    for pair in drops.pairs:
        yield ""
        yield f"{pair.similarity:.3f}  [-{_called(pair.dropped)}-] was dropped, {{+{_called(pair.stays)}+}} stays"
        texts = body(pair.dropped), body(pair.stays)
        beside = side_by_side(*texts, _called(pair.dropped), _called(pair.stays), columns - 7)
        yield from (f"       {line}" for line in beside or differences(*texts))


def _told(drops: Drops) -> str:
    """How many rows went, and for what; for which row, where that cannot be told."""
    named = sum(drops.near.values())
    if drops.stage == "dedup":
        return f"{named:,} near and {drops.exact:,} exact duplicates were dropped"
    if drops.stage == "dedup_urls":
        return f"{named:,} rows were dropped for the URL of another row"
    if drops.stage == "dedup_ngrams":
        return (
            f"{drops.unnamed:,} rows were dropped for n-grams that earlier rows have: no pairs, since a Bloom filter "
            "knows that it has seen an n-gram, not in which row"
        )
    alone = f"; {drops.unnamed:,} of them repeat themselves alone" if drops.unnamed else ""
    return (
        f"{named + drops.unnamed:,} rows were dropped because too little of them is new{alone}. Beside each is the row "
        "that has most of what it says; `datakit explain` tells what was cut out of rows that stay"
    )


def _called(row: dict[str, Any]) -> str:
    name, source = row["id"], row["source"]
    return visible(name if name.startswith(source) else f"{name} ({source})")
