"""Compares the planted rows with the rows that stages dropped, by the plan, the manifests and the dropped rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from datakit.manifest import data_dir, load

Plan = dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class Found:
    """One kind of planted fault: how many there are, how many its stage found, and what else the stage dropped."""

    what: str
    stage: str
    planted: int
    found: int
    besides: int
    """Rows that the stage dropped for the same reasons, and that were not planted."""


def compare(plan: Plan, manifests: Path) -> list[Found]:
    """Compare every kind of planted fault with the rows that its stage dropped."""
    bad = list(rows(manifests / "ingest.json", "quarantine", ("file", "line")))
    planted = {(line["file"], line["line"]) for line in plan["broken_lines"]}
    hits = sum((row["file"].rsplit("/", 1)[-1], row["line"]) in planted for row in bad)
    compared = [Found("broken lines", "ingest", len(planted), hits, len(bad) - hits)]
    for what, stage, reasons in (
        ("other_languages", "language", ()),
        ("exact_duplicates", "dedup", ("exact_duplicate",)),
        ("near_duplicates", "dedup", ("near_duplicate",)),
        ("boilerplate", "filter", ()),
    ):
        compared.append(of_stage(what, plan[what], stage, reasons, manifests))
    return compared


def of_stage(what: str, plants: Sequence[Any], stage: str, reasons: Sequence[str], manifests: Path) -> Found:
    """Planted rows that a stage must drop: for one of the reasons, if any are given, and as a copy of the right row."""
    dropped = {
        row["id"]: row.get("duplicate_of")
        for row in rows(manifests / f"{stage}.json", "dropped", ("id", "reason", "duplicate_of"))
        if not reasons or row["reason"] in reasons
    }
    wanted = dict((p["id"], p["of"]) if isinstance(p, dict) else (p, None) for p in plants)
    hits = sum(ident in dropped and of in (None, dropped[ident]) for ident, of in wanted.items())
    return Found(what.replace("_", " "), stage, len(wanted), hits, len(dropped.keys() - wanted.keys()))


def rows(path: Path, role: str, columns: Sequence[str]) -> Iterable[dict[str, Any]]:
    """Some columns of the rows that a stage wrote in a role (kept, dropped, ...); missing columns are left out."""
    manifest = load(path)
    for shard in manifest.of_role(role):
        file = pq.ParquetFile(data_dir(path, manifest) / shard.path)
        yield from file.read(columns=[c for c in columns if c in file.schema_arrow.names]).to_pylist()
