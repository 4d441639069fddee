"""`datakit pairs`: dropped duplicates of any level beside the rows that stay for them, the least similar first."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import read_rows
from datakit.errors import InputError
from datakit.manifest import AGAINST, Manifest, Shard, ancestors, data_dir, load, tables
from datakit.report.texts import body, differences, side_by_side, visible
from datakit.text.words import normalize, split_words

LEVELS = ("dedup", "dedup_urls", "dedup_repeats", "dedup_semantic")
ORDER = [("similarity", "ascending"), ("row_key", "ascending")]
COLUMNS = ["row_key", "id", "reason", "duplicate_of", "similarity"]
FIELDS = ("prompt", "chosen", "rejected")


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
    prefixes: int
    """Conversations that are the beginning of another one."""
    near: dict[float, int]
    """Rows by similarity, rounded down to 0.05, without exact duplicates and prefixes. Where the stage did not
    compare whole texts, it is the similarity of the texts."""
    unnamed: int
    """Rows that were not dropped for one particular row."""
    others: dict[str, int]
    """Rows that other dedup levels dropped in the same history."""
    pairs: list[Pair]


def drops(path: Path, lowest: int, stage: str = "") -> Drops:
    """The `lowest` least similar pairs of a dedup level in the history of the manifest at `path`.

    The level is `stage` if that is given; else the manifest's own level, the document level, or the last one.

    Raises:
        InputError: there is no such stage.
    """
    levels = [(p, m) for p, m in ancestors(path) if m.stage in LEVELS]
    level = _level(path, levels, stage)
    chosen, exact, prefixes, unnamed, near = pa.table({}), 0, 0, 0, np.zeros(21, dtype=np.int64)
    for batch in _dropped(*level):
        named = batch.filter(pc.is_valid(batch.column("similarity")))
        is_exact = pc.equal(named.column("reason"), "exact_duplicate").to_numpy(zero_copy_only=False)
        is_prefix = pc.equal(named.column("reason"), "prefix").to_numpy(zero_copy_only=False)
        prefixes += int(is_prefix.sum())
        thousandths = np.rint(named.column("similarity").to_numpy()[~is_exact & ~is_prefix] * 1000).astype(np.int64)
        exact, unnamed = exact + int(is_exact.sum()), unnamed + batch.num_rows - named.num_rows
        near += np.bincount(thousandths // 50, minlength=21)
        chosen = pa.concat_tables([t for t in (chosen, pa.table(named)) if t.num_rows] or [pa.table(named)])
        chosen = chosen.sort_by(ORDER).slice(0, lowest)
    counts = {n / 20: int(count) for n, count in enumerate(near) if count}
    others = {m.stage: sum(m.ledger.rows.dropped.values()) for _, m in reversed(levels) if m is not level[1]}
    return Drops(level[1].stage, exact, prefixes, counts, unnamed, others, _pairs(*level, chosen.to_pylist()))


def _level(path: Path, levels: list[tuple[Path, Manifest]], stage: str) -> tuple[Path, Manifest]:
    own = load(path).stage
    for wanted in [stage] if stage else [own, "dedup", *LEVELS]:
        for level in levels:
            if level[1].stage == wanted:
                return level
    there = f"; there are {', '.join(m.stage for _, m in levels)}" if levels else ""
    raise InputError(
        f"{path}: expected the manifest of a {stage or 'dedup'} stage, or of one that came after it{there}"
    )


def _dropped(path: Path, manifest: Manifest) -> Iterator[pa.RecordBatch]:
    """The dropped rows with the similarity of each to the row that stays for it."""
    if manifest.stage not in ("dedup", "dedup_semantic"):
        yield from _with_similarity(path, manifest)
        return
    for shard in tables(manifest, "dropped"):
        yield from read_rows(data_dir(path, manifest), shard, [*COLUMNS, *_elsewhere(manifest)])


def _elsewhere(manifest: Manifest) -> list[str]:
    """The column with the run that kept the other row, where rows were compared with those of earlier runs."""
    return ["duplicate_in"] if any(p.get("use") == AGAINST for p in manifest.parents) else []


def _pairs(path: Path, manifest: Manifest, chosen: list[dict[str, Any]]) -> list[Pair]:
    gone = _rows(path, manifest, "dropped", {row["id"] for row in chosen})
    stay = dict[str | None, dict[str, dict[str, Any]]]()
    for version in sorted({row.get("duplicate_in") for row in chosen}, key=lambda version: version or ""):
        names = {row["duplicate_of"] for row in chosen if row.get("duplicate_in") == version}
        stay[version] = _rows(*_dedup_run(path, manifest, version), "kept", names)
    return [
        Pair(r["similarity"], r["reason"], gone[r["id"]], stay[r.get("duplicate_in")][r["duplicate_of"]])
        for r in chosen
    ]


def _dedup_run(path: Path, manifest: Manifest, version: str | None) -> tuple[Path, Manifest]:
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


def _rows(path: Path, manifest: Manifest, role: str, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Whole rows by id."""
    wanted, found = pa.array(sorted(ids), pa.string()), dict[str, dict[str, Any]]()
    for shard in tables(manifest, role):
        for batch in _rows_with(data_dir(path, manifest), shard, wanted):
            found |= {row["id"]: row for row in batch.to_pylist()}
    return found


def _rows_with(folder: Path, shard: Shard, ids: pa.Array | pa.ChunkedArray) -> Iterator[pa.RecordBatch]:
    """The rows of a shard with these ids; from a shard without any of them only the ids are read."""
    if any(pc.any(pc.is_in(b.column("id"), ids)).as_py() for b in read_rows(folder, shard, ["id"])):
        for batch in read_rows(folder, shard):
            yield batch.filter(pc.is_in(batch.column("id"), ids))


# Similarity, computed again as `dedup` computes it. The kernels load inside functions: `--help` and `datakit explain`
# of a row that is no duplicate do not need them.


class _Shingles(NamedTuple):
    """The shingles of a row; for a row without any, its normalised text."""

    hashes: npt.NDArray[np.uint64]
    short: str


def _with_similarity(path: Path, manifest: Manifest) -> Iterator[pa.RecordBatch]:
    """The dropped rows of a stage that compared something else than whole texts.

    `similarity` is the exact Jaccard similarity of a row's shingles and those of the row that stays for it, with the
    default configuration of `dedup`; null where the stage names no row.
    """
    folder = data_dir(path, manifest)
    gone = tables(manifest, "dropped")
    columns = ["duplicate_of", *_elsewhere(manifest)]
    named = {
        survivor for shard in gone for batch in read_rows(folder, shard, columns) for survivor in _survivors(batch)
    }
    stay = dict[tuple[str | None, str | None], _Shingles]()
    for version in {version for _, version in named}:
        place, run = _dedup_run(path, manifest, version)
        ids = pa.array(sorted(name for name, of in named if of == version and name is not None), pa.string())
        for shard in tables(run, "kept"):
            for batch in _rows_with(data_dir(place, run), shard, ids):
                survivors = ((name, version) for name in batch.column("id").to_pylist())
                stay |= dict(zip(survivors, _shingles_of_rows(batch), strict=True))
    for shard in gone:
        for batch in read_rows(folder, shard):
            pairs = zip(_shingles_of_rows(batch), map(stay.get, _survivors(batch)), strict=True)
            similarity = pa.array([None if other is None else _similarity(one, other) for one, other in pairs], "f8")
            yield batch.select([*COLUMNS[:-1], *columns[1:]]).append_column("similarity", similarity)


def _survivors(batch: pa.RecordBatch) -> Iterator[tuple[str | None, str | None]]:
    """(id, version of the earlier run that kept it) of the row that stays for each dropped row."""
    versions = batch.column("duplicate_in").to_pylist() if "duplicate_in" in batch.schema.names else repeat(None)
    return zip(batch.column("duplicate_of").to_pylist(), versions, strict=False)


def _shingles_of_rows(batch: pa.RecordBatch) -> Iterator[_Shingles]:
    from datakit.dedup.minhash import compared_texts, row_shingles, whole_text
    from datakit.dedup.stage import DedupConfig

    config = DedupConfig()
    texts = compared_texts(batch, config)
    sets = row_shingles(texts, config.shingle_words)
    for row, text in enumerate(whole_text(texts)):
        begin, end = sets.starts[row : row + 2]
        yield _Shingles(sets.hashes[begin:end].copy(), "" if end > begin else text.as_py())


def _similarity(one: _Shingles, other: _Shingles) -> float:
    if not len(one.hashes) or not len(other.hashes):
        return float(len(one.hashes) == len(other.hashes) and one.short == other.short)
    shared = len(np.intersect1d(one.hashes, other.hashes, assume_unique=True))
    return _jaccard(shared, len(one.hashes) + len(other.hashes) - shared)


def _jaccard(shared: int, union: int) -> float:
    from datakit.dedup.cluster import to_thousandths

    return float(to_thousandths(np.array(shared), np.array(union)))


@dataclass(frozen=True, slots=True)
class ShingleComparison:
    """The shingles of two texts, each written as its words with a space between, in the order of the text."""

    similarity: float
    """Exact Jaccard similarity of the shingle sets, rounded to 1e-3; for texts too short for a shingle, 1 if equal."""
    equal: bool
    """The normalised texts are equal: exact duplicates."""
    shared: tuple[str, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]


def compare(first: str, second: str, shingle_words: int) -> ShingleComparison:
    """Compare the texts of two rows as the dedup stage does."""
    return compare_fields([first], [second], shingle_words)


def compare_fields(first: Sequence[str], second: Sequence[str], shingle_words: int) -> ShingleComparison:
    """Compare two rows as the dedup stage does.

    Each is one text, or the fields of a preference pair. The shingles of fields are distinct; they are written with the
    names in `FIELDS`.
    """
    one, two = (normalize(pa.array(texts, pa.string())).to_pylist() for texts in (first, second))
    a, b = _shingles_of_fields(one, shingle_words), _shingles_of_fields(two, shingle_words)
    return ShingleComparison(
        similarity=_similarity_of(one, two, shingle_words),
        equal=one == two,
        shared=tuple(s for s in a if s in b),
        only_first=tuple(s for s in a if s not in b),
        only_second=tuple(s for s in b if s not in a),
    )


def _similarity_of(one: list[str], two: list[str], shingle_words: int) -> float:
    from datakit.dedup.minhash import row_shingles

    sets = row_shingles([pa.array(field, pa.string()) for field in zip(one, two, strict=True)], shingle_words)
    a, b = sets.hashes[: sets.starts[1]], sets.hashes[sets.starts[1] :]
    return _similarity(_Shingles(a, "\n".join(one)), _Shingles(b, "\n".join(two)))


def _shingles_of_fields(texts: list[str], size: int) -> dict[str, None]:
    if len(texts) == 1:
        return _word_shingles(texts[0], size)
    fields = ((n, _word_shingles(text, size) or [text] * bool(text)) for n, text in zip(FIELDS, texts, strict=True))
    return dict.fromkeys(f"{name}: {shingle}" for name, shingles in fields for shingle in shingles)


def _word_shingles(text: str, size: int) -> dict[str, None]:
    """The distinct shingles of a text, in order (a dict, because a set has no order)."""
    words = split_words(text)
    return dict.fromkeys(" ".join(words[i : i + size]) for i in range(len(words) - size + 1))


# As lines of text.


def listing(drops: Drops, columns: int = 0) -> Iterator[str]:
    """The drops as lines of text, with the texts of a pair in two columns if `columns` characters are enough."""
    yield _headline(drops)
    if drops.near:
        what = "near duplicates by similarity" if drops.stage == "dedup" else "by the similarity of the texts"
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


def _headline(drops: Drops) -> str:
    """How many rows were dropped, and why."""
    named = sum(drops.near.values())
    if drops.stage == "dedup":
        begin = f", and {drops.prefixes:,} conversations that others begin with" if drops.prefixes else ""
        return f"{named:,} near and {drops.exact:,} exact duplicates were dropped{begin}"
    if drops.stage == "dedup_urls":
        return f"{named:,} rows were dropped for the URL of another row"
    if drops.stage == "dedup_semantic":
        return f"{named:,} rows were dropped because another row says the same in other words"
    alone = f"; {drops.unnamed:,} of them only repeat themselves" if drops.unnamed else ""
    return (
        f"{named + drops.unnamed:,} rows were dropped because too little of their text is new{alone}. Beside each is "
        "the row that has most of its text; `datakit explain` shows what was cut out of rows that stay"
    )


def _row_name(row: dict[str, Any]) -> str:
    name, source = row["id"], row["source"]
    return visible(name if name.startswith(source) else f"{name} ({source})")
