"""`datakit pairs`: dropped duplicates of any level beside the rows that stay for them, the least similar first."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import read_rows
from datakit.errors import InputError
from datakit.manifest import Manifest, ancestors, data_dir, load, tables
from datakit.report.texts import body, differences, side_by_side, visible
from datakit.text.words import normalize, split_words

LEVEL = "dedup"
"""What the names of all levels of dedup begin with."""
ORDER = [("similarity", "ascending"), ("row_key", "ascending")]
COLUMNS = ["row_key", "id", "reason", "duplicate_of", "similarity", "duplicate_in"]
EQUAL = ["exact_duplicate", "loose_duplicate", "prefix"]
"""Reasons of rows that are no near duplicates: of what was compared, both have the same."""
SHINGLE_WORDS = 5
"""Of the similarity that is computed here, where the stage compared something else than whole texts."""
MOST_COMPARED = 2000
"""Rows of such a stage whose similarity is computed."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A dropped row and the row that stays for it. `dropped` and `stays` are whole rows."""

    similarity: float
    reason: str
    dropped: dict[str, Any]
    stays: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The pair with both texts, as JSON."""
        both = {"dropped": self.dropped, "stays": self.stays}
        rows = {name: {"id": row["id"], "source": row["source"], "text": body(row)} for name, row in both.items()}
        return {"similarity": self.similarity, "reason": self.reason} | rows


@dataclass(frozen=True, slots=True)
class Drops:
    """Counts of the rows that a stage dropped, and some pairs."""

    stage: str
    exact: int
    loose: int
    """Conversations that differ in letter case and the marks of sentences alone."""
    prefixes: int
    """Conversations that are the beginning of another one."""
    near: dict[float, int]
    """Rows by similarity, rounded down to 0.05, without exact duplicates and prefixes. Where the stage did not
    compare whole texts, it is the similarity of the texts of some rows."""
    named: int
    """Rows that were dropped for one particular row."""
    unnamed: int
    """Rows that were not dropped for one particular row."""
    others: dict[str, int]
    """Rows that other dedup levels dropped in the same history."""
    pairs: list[Pair]

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON."""
        names = ("stage", "exact", "loose", "prefixes", "named", "unnamed", "others")
        near = {f"{similarity:.2f}": n for similarity, n in self.near.items()}
        return {n: getattr(self, n) for n in names} | {"near": near, "pairs": [pair.to_json() for pair in self.pairs]}


def drops(path: Path, lowest: int, stage: str = "") -> Drops:
    """The `lowest` least similar pairs of a dedup level in the history of the manifest at `path`.

    The level is `stage` if that is given; else the manifest's own level, the document level, or the last one. Where a
    stage gives no similarity, that of the texts is computed for its first `MOST_COMPARED` rows.

    Raises:
        InputError: there is no such stage.
    """
    levels = [(p, m) for p, m in ancestors(path) if m.stage.startswith(LEVEL)]
    level = _level(path, levels, stage)
    chosen, unmeasured, named_rows = pa.table({}), list[dict[str, Any]](), 0
    reasons, near = Counter[str](), Counter[float]()
    for batch in _dropped(*level):
        named = batch.filter(pc.is_valid(batch.column("duplicate_of")))
        named_rows += named.num_rows
        known = pc.is_valid(named.column("similarity"))
        unmeasured += named.filter(pc.invert(known))[: MOST_COMPARED - len(unmeasured)].to_pylist()
        measured = named.filter(known)
        equal = pc.is_in(measured.column("reason"), pa.array(EQUAL))
        reasons.update(measured.column("reason").filter(equal).to_pylist())
        near.update(map(_floor, measured.column("similarity").filter(pc.invert(equal)).to_pylist()))
        chosen = pa.concat_tables([t for t in (chosen, pa.table(measured)) if t.num_rows] or [pa.table(measured)])
        chosen = chosen.sort_by(ORDER).slice(0, lowest)
    pairs = _pairs(*level, [*chosen.to_pylist(), *unmeasured])
    near.update(_floor(pair.similarity) for pair in pairs[chosen.num_rows :])
    pairs = sorted(pairs, key=lambda pair: pair.similarity)[:lowest]  # stable: rows of one similarity stay in order
    return Drops(
        stage=level[1].stage,
        **{name: reasons[reason] for reason, name in zip(EQUAL, ("exact", "loose", "prefixes"), strict=True)},
        near=dict(sorted(near.items())),
        named=named_rows,
        unnamed=sum(level[1].ledger.rows.dropped.values()) - named_rows,
        others={m.stage: sum(m.ledger.rows.dropped.values()) for _, m in reversed(levels) if m is not level[1]},
        pairs=pairs,
    )


def _floor(similarity: float) -> float:
    """The similarity, rounded down to 0.05."""
    return round(similarity * 1000) // 50 / 20


def _dropped(path: Path, manifest: Manifest) -> Iterator[pa.RecordBatch]:
    """The dropped rows without their texts; `similarity` is null where the stage gives none."""
    for shard in tables(manifest, "dropped"):
        for batch in read_rows(data_dir(path, manifest), shard):
            if "similarity" not in batch.schema.names:
                batch = batch.append_column("similarity", pa.nulls(batch.num_rows, pa.float64()))
            yield batch.select([name for name in COLUMNS if name in batch.schema.names])


def _level(path: Path, levels: list[tuple[Path, Manifest]], stage: str) -> tuple[Path, Manifest]:
    for wanted in [stage] if stage else [load(path).stage, "dedup", *(m.stage for _, m in levels)]:
        for level in levels:
            if level[1].stage == wanted.replace("-", "_"):
                return level
    there = f"; there are {', '.join(m.stage for _, m in levels)}" if levels else ""
    raise InputError(f"{path}: expected the manifest of a {stage or LEVEL} stage, or of one that came after it{there}")


def _pairs(path: Path, manifest: Manifest, chosen: list[dict[str, Any]]) -> list[Pair]:
    gone = rows_by_id(path, manifest, "dropped", (row["id"] for row in chosen))
    stay = dict[tuple[str | None, str], dict[str, Any]]()
    for version in dict.fromkeys(row.get("duplicate_in") for row in chosen):
        names = (row["duplicate_of"] for row in chosen if row.get("duplicate_in") == version)
        found = rows_by_id(*_run(path, manifest, version), "kept", names)
        stay |= {(version, name): row for name, row in found.items()}
    pairs = []
    for r in chosen:
        one, other = gone[r["id"]], stay[r.get("duplicate_in"), r["duplicate_of"]]
        known = r["similarity"]
        measured = text_similarity(body(one), body(other), SHINGLE_WORDS) if known is None else known
        pairs.append(Pair(measured, r["reason"], one, other))
    return pairs


def _run(path: Path, manifest: Manifest, version: str | None) -> tuple[Path, Manifest]:
    """The run that kept a row: this one (None), or an earlier one that it was run against.

    Raises:
        InputError: its manifest is not where it was.
    """
    for found in [(path, manifest)] if version is None else ancestors(path, against=True):
        if version in (None, found[1].version):
            return found
    raise InputError(
        f"{path}: rows were dropped for rows of the {manifest.stage} {version}, whose manifest is not where it was"
    )


def rows_by_id(path: Path, manifest: Manifest, role: str, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Some whole rows of a result by id; from a shard without any of them only the ids are read."""
    wanted, folder = pa.array(sorted(set(ids)), pa.string()), data_dir(path, manifest)
    found = dict[str, dict[str, Any]]()
    for shard in tables(manifest, role) if len(wanted) else ():
        if any(pc.any(pc.is_in(b.column("id"), wanted)).as_py() for b in read_rows(folder, shard, ["id"])):
            for batch in read_rows(folder, shard):
                found |= {row["id"]: row for row in batch.filter(pc.is_in(batch.column("id"), wanted)).to_pylist()}
    return found


# Similarity, where the stage itself compared something else.


def text_similarity(first: str, second: str, shingle_words: int) -> float:
    """Exact Jaccard similarity of the shingles of two documents, as the dedup stage computes it, rounded to 1e-3.

    Of texts that are too short for a shingle it is 1 if they are equal, else 0.
    """
    shared, union, equal = shared_shingles(first, second, shingle_words)
    return (2000 * shared + union) // (2 * union) / 1000 if union else float(equal)  # halves up


def shared_shingles(first: str, second: str, shingle_words: int) -> tuple[int, int, bool]:
    """How many shingles two documents share, how many there are in both, and whether the compared texts are equal."""
    one, two = normalize(pa.array([first, second], pa.string())).to_pylist()
    a, b = _shingles(one, shingle_words), _shingles(two, shingle_words)
    return len(a & b), len(a | b), one == two


def _shingles(text: str, size: int) -> set[tuple[str, ...]]:
    words = split_words(text)
    return {tuple(words[i : i + size]) for i in range(len(words) - size + 1)}


# As lines of text.


def listing(drops: Drops, columns: int = 0) -> Iterator[str]:
    """The drops as lines of text, with the texts of a pair in two columns if `columns` characters are enough."""
    yield _headline(drops)
    if drops.near:
        some = f" (the first {MOST_COMPARED:,} rows)" if drops.named > MOST_COMPARED else ""
        what = "near duplicates by similarity" if drops.stage == "dedup" else f"by the similarity of the texts{some}"
        yield f"{what}: " + ", ".join(f"{s:.2f}: {n:,}" for s, n in drops.near.items())
    if any(drops.others.values()):
        others = ", ".join(f"{stage} {count:,}" for stage, count in drops.others.items() if count)
        yield f"other levels dropped rows too (--stage shows them): {others}"
    for pair in drops.pairs:
        name, other_name = _row_name(pair.dropped), _row_name(pair.stays)
        texts = body(pair.dropped), body(pair.stays)
        yield ""
        yield f"{pair.similarity:.3f}  [-{name}-] was dropped, {{+{other_name}+}} stays"
        two_columns = side_by_side(*texts, name, other_name, columns - 7)
        yield from (f"       {line}" for line in two_columns or differences(*texts))


_WHY = {
    "dedup_urls": "for the URL of another row",
    "dedup_semantic": "because another row says the same in other words",
}


def _headline(drops: Drops) -> str:
    """How many rows were dropped, and why."""
    if drops.stage == "dedup":
        named = sum(drops.near.values())
        begin = f", and {drops.loose:,} that differ in case and sentence marks alone" if drops.loose else ""
        begin += f", and {drops.prefixes:,} conversations that others begin with" if drops.prefixes else ""
        return f"{named:,} near and {drops.exact:,} exact duplicates were dropped{begin}"
    if drops.stage in _WHY:
        return f"{drops.named:,} rows were dropped {_WHY[drops.stage]}"
    alone = f"; {drops.unnamed:,} of them only repeat themselves" if drops.unnamed else ""
    total = drops.named + drops.unnamed
    return (
        f"{total:,} rows were dropped because too little of their text is new{alone}. Beside each is "
        "the row that has most of its text; `datakit explain` shows what was cut out of rows that stay"
    )


def _row_name(row: dict[str, Any]) -> str:
    name, source = row["id"], row["source"]
    return visible(name if name.startswith(source) else f"{name} ({source})")
