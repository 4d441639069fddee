"""Rows beside one another: `datakit pairs`, `datakit explain` and `datakit diff`.

pairs    the rows that a dedup level dropped, beside the rows that stay for them, the least similar first
explain  where one row came from, which stage dropped it and why, and which row was kept instead
diff     which rows one of two results has and the other not, and why
"""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import RECORD_BITS
from datakit.engine.lineage import what_changed
from datakit.engine.recipe import stage_class
from datakit.errors import InputError
from datakit.manifest import ancestors, check_shards, data_dir, load, purged_on, tables
from datakit.report.finder import Link, batches, body, find, row_name, shorten, visible
from datakit.report.page import render
from datakit.report.tables import head_line, lines_of
from datakit.report.texts import compared, differences
from datakit.text.words import hash_values, normalize, split_words

# Similarity of texts, as the dedup stage computes it.


def shared_shingles(first: str, second: str, shingle_words: int) -> tuple[int, int, bool]:
    """How many shingles two documents share, how many there are in both, and whether the compared texts are equal."""
    one, two = normalize(pa.array([first, second], pa.string())).to_pylist()
    a, b = _shingles(one, shingle_words), _shingles(two, shingle_words)
    return len(a & b), len(a | b), one == two


def _shingles(text: str, size: int) -> set[tuple[str, ...]]:
    words = split_words(text)
    return {tuple(words[i : i + size]) for i in range(len(words) - size + 1)}


def text_similarity(first: str, second: str, shingle_words: int) -> float:
    """Exact Jaccard similarity of the shingles of two documents, rounded to 1e-3.

    Of texts that are too short for a shingle it is 1 if they are equal, else 0.
    """
    shared, union, equal = shared_shingles(first, second, shingle_words)
    return (2000 * shared + union) // (2 * union) / 1000 if union else float(equal)  # halves up


# Pairs.

LEVEL = "dedup"
"""What the names of all levels of dedup begin with."""
ORDER = [("similarity", "ascending"), ("row_key", "ascending")]
COLUMNS = ("row_key", "id", "reason", "duplicate_of", "similarity", "duplicate_in")
EQUAL = {"exact_duplicate": "exact", "loose_duplicate": "loose", "prefix": "prefixes"}
"""Reasons of rows that are no near duplicates (of what was compared, both have the same), and their names in counts."""
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
    equal: dict[str, int]
    """Exact duplicates, conversations that differ in case and sentence marks alone (loose), and those that are the
    beginning of another one (prefixes)."""
    near: dict[float, int]
    """The other rows by similarity, rounded down to 0.05. Where the stage did not compare whole texts, it is the
    similarity of the texts of some rows."""
    named: int
    """Rows that were dropped for one particular row."""
    unnamed: int
    """Rows that were not dropped for one particular row."""
    others: dict[str, int]
    """Rows that other dedup levels dropped in the same history."""
    pairs: list[Pair]

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON."""
        counts = {"stage": self.stage, **self.equal, "named": self.named, "unnamed": self.unnamed}
        near = {f"{similarity:.2f}": n for similarity, n in self.near.items()}
        return counts | {"others": self.others, "near": near, "pairs": [pair.to_json() for pair in self.pairs]}


def drops(path: Path, lowest: int, stage: str = "") -> Drops:
    """The `lowest` least similar pairs of a dedup level in the history of the manifest at `path`.

    The level is `stage` if that is given; else the manifest's own level, the document level, or the last one. Where a
    stage gives no similarity, that of the texts is computed for its first `MOST_COMPARED` rows.

    Raises:
        InputError: there is no such stage.
    """
    levels = {m.stage: (p, m) for p, m in reversed(ancestors(path)) if m.stage.startswith(LEVEL)}
    level = _level(path, levels, stage.replace("-", "_"))
    lost = {name: sum(m.ledger.rows.dropped.values()) for name, (_, m) in levels.items()}
    counts, near, named = dict.fromkeys(EQUAL.values(), 0), Counter[float](), 0
    chosen, unmeasured = list[dict[str, Any]](), list[dict[str, Any]]()
    for batch in _named(level):
        named += batch.num_rows
        known = pc.is_valid(batch["similarity"])
        unmeasured += batch.filter(pc.invert(known))[: MOST_COMPARED - len(unmeasured)].to_pylist()
        measured = pa.table(batch.filter(known))
        for row in measured.select(["reason", "similarity"]).to_pylist():
            if row["reason"] in EQUAL:
                counts[EQUAL[row["reason"]]] += 1
            else:
                near[_floor(row["similarity"])] += 1
        chosen += measured.sort_by(ORDER).slice(0, lowest).to_pylist()
        chosen = sorted(chosen, key=lambda row: (row["similarity"], row["row_key"]))[:lowest]
    pairs = _pairs(level, chosen + unmeasured)
    near.update(_floor(pair.similarity) for pair in pairs[len(chosen) :])
    return Drops(
        stage=level[1].stage,
        equal=counts,
        near=dict(sorted(near.items())),
        named=named,
        unnamed=lost.pop(level[1].stage) - named,
        others=lost,
        pairs=sorted(pairs, key=lambda pair: pair.similarity)[:lowest],
    )


def _floor(similarity: float) -> float:
    """The similarity, rounded down to 0.05."""
    return round(similarity * 1000) // 50 / 20


def _level(path: Path, levels: dict[str, Link], stage: str) -> Link:
    for wanted in [stage] if stage else [load(path).stage, LEVEL, *reversed(levels)]:
        if wanted in levels:
            return levels[wanted]
    there = f"; there are {', '.join(reversed(levels))}" if levels else ""
    raise InputError(f"{path}: expected the manifest of a {stage or LEVEL} stage, or of one that came after it{there}")


def _named(level: Link) -> Iterator[pa.RecordBatch]:
    """The rows that were dropped for another one, without their texts; `similarity` is null where none was measured."""
    for batch in batches(level, "dropped"):
        if "similarity" not in batch.schema.names:
            batch = batch.append_column("similarity", pa.nulls(batch.num_rows, pa.float64()))
        batch = batch.select([name for name in COLUMNS if name in batch.schema.names])
        yield batch.filter(pc.is_valid(batch["duplicate_of"]))


def _pairs(level: Link, chosen: list[dict[str, Any]]) -> list[Pair]:
    gone = {row["id"]: row for row in find(level, "dropped", {row["id"] for row in chosen})}
    stay = dict[tuple[str | None, str], dict[str, Any]]()
    for version in {row.get("duplicate_in") for row in chosen}:
        names = {row["duplicate_of"] for row in chosen if row.get("duplicate_in") == version}
        run = level if version is None else _earlier(level, version)
        if run is None:
            what = f"rows were dropped for rows of the {level[1].stage} {version}"
            raise InputError(f"{level[0]}: {what}, whose manifest is not where it was")
        stay |= {(version, row["id"]): row for row in find(run, "kept", names)}
    pairs = []
    for row in chosen:
        one, other = gone[row["id"]], stay[row.get("duplicate_in"), row["duplicate_of"]]
        similarity = row["similarity"]
        if similarity is None:
            similarity = text_similarity(body(one), body(other), SHINGLE_WORDS)
        pairs.append(Pair(similarity, row["reason"], one, other))
    return pairs


def _earlier(link: Link, version: str) -> Link | None:
    """A result that a stage was run against; None if its manifest is not where it was."""
    return next((found for found in ancestors(link[0], against=True) if found[1].version == version), None)


def listing(drops: Drops, columns: int = 0) -> Iterator[str]:
    """The drops as lines of text, with the texts of a pair in two columns if `columns` characters are enough."""
    yield _headline(drops)
    if drops.near:
        some = f" (the first {MOST_COMPARED:,} rows)" if drops.named > MOST_COMPARED else ""
        what = "near duplicates by similarity" if drops.stage == LEVEL else f"by the similarity of the texts{some}"
        yield f"{what}: " + ", ".join(f"{s:.2f}: {n:,}" for s, n in drops.near.items())
    if any(drops.others.values()):
        others = ", ".join(f"{stage} {count:,}" for stage, count in drops.others.items() if count)
        yield f"other levels dropped rows too (--stage shows them): {others}"
    for pair in drops.pairs:
        gone, kept = pair.dropped, pair.stays
        names = row_name(gone["id"], gone["source"]), row_name(kept["id"], kept["source"])
        yield f"\n{pair.similarity:.3f}  [-{names[0]}-] was dropped, {{+{names[1]}+}} stays"
        for line in compared(body(gone), body(kept), names, columns - 7):
            yield f"       {line}"


_WHY = {
    "dedup_urls": "for the URL of another row",
    "dedup_semantic": "because another row says the same in other words",
}


def _headline(drops: Drops) -> str:
    """How many rows were dropped, and why."""
    if drops.stage == LEVEL:
        said = f"{sum(drops.near.values()):,} near and {drops.equal['exact']:,} exact duplicates were dropped"
        if loose := drops.equal["loose"]:
            said += f", and {loose:,} that differ in case and sentence marks alone"
        if prefixes := drops.equal["prefixes"]:
            said += f", and {prefixes:,} conversations that others begin with"
        return said
    if drops.stage in _WHY:
        return f"{drops.named:,} rows were dropped {_WHY[drops.stage]}"
    alone = f"; {drops.unnamed:,} of them only repeat themselves" if drops.unnamed else ""
    return (
        f"{drops.named + drops.unnamed:,} rows were dropped because too little of their text is new{alone}. Beside "
        "each is the row that has most of its text; `datakit explain` shows what was cut out of rows that stay"
    )


# Explain.

MOST_CUTS = 20
"""Cut pieces of a row that are shown; the others are counted."""
MOST_MATCHES = 5
"""Evaluation items that a row matches and that are shown, the largest share first; the others are counted."""
_MOST_CHARACTERS = 10_000_000
"""Longer texts (both together) are not compared by shingles: that takes some hundred bytes a word."""
INDENT = " " * 10

_SAID = {
    "language": ("lang_score", "{lang} {lang_score:.3f}"),
    "classify": ("classifier_score", "score {classifier_score:.3f}"),
    "perplexity": ("perplexity", "{perplexity_bucket}, perplexity {perplexity:g}"),
}
"""By stage: the column that it made, and what is said of a row that has a value there."""

Found = tuple[str, dict[str, Any]]
"""What a result has of a row: "kept", "dropped" or "quarantined", and the row."""


def story(row_id: str, paths: list[Path], columns: int = 0) -> list[str]:
    """Lines about the row with an id, stage by stage; empty if no stage knows the id.

    `paths` are manifests; the stages are those behind the one with the longest history. The text of a dropped duplicate
    is compared with the text of the kept row, in two columns if `columns` characters are enough.
    """
    chains = [ancestors(path) for path in paths]
    longest = max(chains, key=lambda chain: (len(chain), chain[0][0].stat().st_mtime_ns))
    order = [link for link in reversed(longest) if stage_class(link[1].stage).makes_rows]
    lines, text, row_key, known, role = list[str](), "", -1, False, ""
    for link in order:
        stage = f"{link[1].stage:<9}"
        if day := purged_on(*link):
            lines.append(f"{stage} its shards were purged on {day}")
            continue
        found = _find(link, row_id)
        if found is None:
            lines += [f"{stage} {line}" for line in _packed(link, row_id, row_key) or _not_taken(link, role)]
            role = ""
            continue
        role, row = found
        known, text, row_key = True, text or body(row), row.get("row_key", -1)
        lines.append(f"{stage} {role}{_facts(link[1].stage, row)}")
        more = [*(_cuts(link, row_id) if role == "kept" else ()), *_matches(link, row_id)]
        if row.get("duplicate_of"):
            more += _survivor(link, row, text, order, columns)
        lines += [INDENT + line for line in more]
    if text:
        lines.insert(0, f"{row_id}\n  {shorten(text, 1000)}")
    return lines if known else []


def _find(link: Link, row_id: str) -> Found | None:
    for role in ("kept", "dropped"):
        for row in find(link, role, [row_id]):
            return role, row
    for batch in batches(link, "quarantine"):
        for row in batch.to_pylist():
            if row_id == f"{row['file']}:{row['line'] - 1}":  # the id that it would have got
                return "quarantined", row
    return None


def _not_taken(link: Link, role: str) -> list[str]:
    """A line for a stage that took in only the first rows of those that the stage before kept, and not this one."""
    limits = [parent["limit"] for parent in link[1].parents if "limit" in parent and role == "kept"]
    return [f"not among the first {limit:,} rows, which came in (--limit)" for limit in limits]


def _packed(link: Link, row_id: str, row_key: int) -> list[str]:
    """A line for the packed rows of each set that hold tokens of the row with a key; none for another stage."""
    from datakit.pack.inspect import headers

    path, manifest = link
    folder, shards, lines = data_dir(path, manifest), {s.path: s for s in manifest.shards}, []
    for header in headers(manifest, str(path)) if manifest.stage == "pack" else ():
        file = f"{header['prefix']}.src.npy"
        check_shards(folder, [shards[file]])
        found = np.load(folder / file, mmap_mode="r", allow_pickle=False)
        mine = found[found["row_key"] == row_key]
        if len(mine):
            rows = [f"{row:,}" for row in dict.fromkeys(mine["row"].tolist())]
            listed = ", ".join(rows[:MOST_CUTS]) + ", ..." * (len(rows) > MOST_CUTS)
            tokens, name = int((mine["tokens"] - mine["head"]).sum()), PurePath(header["prefix"]).name
            peek = f"`datakit peek {os.path.relpath(path)} --id {row_id}` shows them"
            lines.append(f"kept  {tokens:,} tokens in row {listed} of {name}; {peek}")
    return lines


def _facts(stage: str, row: dict[str, Any]) -> str:
    """What the stage says about the row."""
    if "raw" in row:
        where = f"{row['file']}, line {row['line']}, byte {row['byte_offset']}"
        return f"  [{row['reason']}] {row['detail'] or ''}: {where}"
    if row.get("reason") and row.get("stage") == stage:
        return f"  [{row['reason']}] {row.get('detail') or ''}"
    if stage == "ingest":
        return f"  from {row['source']}, record {row['row_key'] & ((1 << RECORD_BITS) - 1)}"
    if stage == "tokenize" and row.get("input_ids") is not None:
        return f"  {len(row['input_ids'])} tokens"
    column, said = _SAID.get(stage, ("", ""))
    return "  " + said.format(**row) if row.get(column) is not None else ""


def _cuts(link: Link, row_id: str) -> Iterator[str]:
    """A line for each piece that the stage cut out of the row: its place, and the row that still has it."""
    pieces = find(link, "cuts", [row_id])
    for piece in pieces[:MOST_CUTS]:
        kept = f", stays in {visible(piece['duplicate_of'])}" if piece["duplicate_of"] else ""
        if piece.get("duplicate_in"):
            kept += f" of {link[1].stage} {piece['duplicate_in']}"
        yield f"cut at byte {piece['start']}{kept}: {shorten(piece['text'].strip(), 100)}"
    if len(pieces) > MOST_CUTS:
        yield f"and {len(pieces) - MOST_CUTS} more pieces"


def _matches(link: Link, row_id: str) -> Iterator[str]:
    """A line for each evaluation item that the row matches: the item, its file, how much of it, and the passage."""
    found = sorted(find(link, "matches", [row_id]), key=lambda match: -match["overlap"])
    for match in found[:MOST_MATCHES]:
        file, _, record = match["item"].rpartition(":")
        part = f"{match['overlap']:.0%} of the {match['part']} of item {record} of {visible(file)}"
        yield f"holds {part}: {shorten(match['passage'], 200)}"
    if len(found) > MOST_MATCHES:
        yield f"and parts of {len(found) - MOST_MATCHES} more items"


def _survivor(link: Link, row: dict[str, Any], text: str, order: list[Link], columns: int) -> Iterator[str]:
    """Lines about the row that was kept instead of a duplicate, and how the two texts differ."""
    name, version, where, results = row["duplicate_of"], row.get("duplicate_in"), "", order
    if version:
        earlier = _earlier(link, version)
        results = [earlier] if earlier else []
        where = f" in {earlier[1].dataset} ({earlier[1].stage} {version})" if earlier else ""
    kept = [(result[1].stage, *found) for result in results if not purged_on(*result)
            if (found := _find(result, name))]  # fmt: skip
    if not kept:
        yield f"{name} stayed in the {link[1].stage} {version}, whose manifest or shards are not where they were"
        return
    said = f"{name} stayed{where}"
    for stage, role, there in kept:
        if role == "dropped":
            said += f", but was dropped later by {stage}: [{there['reason']}] {there['detail'] or ''}"
    if row.get("similarity") is not None:  # it is null for a row that was dropped for its URL or its lines
        whole = next((there for stage, role, there in kept if (stage, role) == ("dedup", "kept")), None)
        size = link[1].config.get("shingle_words", SHINGLE_WORDS)
        said += f"; similarity {row['similarity']}{_of_what(row, whole, size)}"
    yield said
    other = body(kept[0][2])
    lines = compared(text, other, (row["id"], name), columns - 12)
    if lines[0][:1] not in "┏╭":
        yield "[-this row-], {+that row+}:"
    yield from (f"  {line}" for line in lines)


def _of_what(row: dict[str, Any], kept: dict[str, Any] | None, size: int) -> str:
    """What the similarity is of: the shingles that two documents share, counted again in their texts, or a turn."""
    if "text" not in row:
        return ", that of the least similar turn" if row["similarity"] < 1 else ""
    if kept is None or len(row["text"]) + len(kept["text"]) > _MOST_CHARACTERS:
        return ""
    shared, union, equal = shared_shingles(row["text"], kept["text"], size)
    return (
        ": the compared texts are equal" if equal else f": {shared:,} of {union:,} shingles of {size} words are in both"
    )


# Diff. Rows are the same if their ids are equal; a row whose content differs is changed. Where ids are given by file
# and place, rows of a file that moved are matched by their content.

Hashes = npt.NDArray[np.uint64]
"""64-bit hashes of ids, or of contents."""

NO_ROW = "not in its input"
OTHER = "other content"
UNREADABLE = "could not be read"
KINDS = ("gained", "lost", "changed")


@dataclass(frozen=True, slots=True)
class DifferingRow:
    """A row that only one of two results has, or that they have with different content."""

    id: str
    why: str
    """What became of it in the result without it: `stage: reason`, or that it was not in its input."""
    text: str
    other: str = ""
    """For a changed row: its text in the second result."""


@dataclass(slots=True)
class Difference:
    """How the kept rows of two results differ."""

    first: Link
    second: Link
    same: int = 0
    counts: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in KINDS})
    """"gained", "lost" and "changed" rows by why the other result does not have them."""
    samples: dict[str, list[DifferingRow]] = field(default_factory=lambda: {name: [] for name in KINDS})
    settings: dict[str, list[str]] = field(default_factory=dict)
    """By stage: inputs and settings that differ."""

    def to_json(self) -> dict[str, Any]:
        """The difference as JSON."""
        made: dict[str, Any] = {"same": self.same, "settings": self.settings}
        for name, (path, m) in (("first", self.first), ("second", self.second)):
            made[name] = {"dataset": m.dataset, "stage": m.stage, "version": m.version, "manifest": str(path)}
        for name, counts in self.counts.items():
            samples = list(map(asdict, self.samples[name]))
            made[name] = {"rows": counts.total(), "by_reason": dict(counts.most_common()), "samples": samples}
        return made


def diff(first: Path, second: Path, samples: int = 3) -> Difference:
    """Compare the kept rows of two results; `samples` rows are shown for each reason.

    Raises:
        InputError: one of them has no rows with ids (a pack: the rows that it was made from are compared), or they
            were purged.
        IntegrityError: a shard is missing or damaged.
    """
    found = Difference((first, load(first)), (second, load(second)))
    (ids, contents), (other_ids, other_contents) = (_hashes(_with_rows(path)) for path in (first, second))
    both, here, there = np.intersect1d(ids, other_ids, return_indices=True)
    lost, gained = np.ones(len(ids), np.bool_), np.ones(len(other_ids), np.bool_)
    lost[here] = gained[there] = False
    moved = gained & np.isin(other_contents, contents[lost])
    stays = lost & np.isin(contents, other_contents[gained])  # under another id
    changed = both[contents[here] != other_contents[there]]
    found.same = len(both) - len(changed) + int(stays.sum())
    _compare(found, "gained", other_ids[moved < gained], found.second, found.first, samples)
    _compare(found, "lost", ids[stays < lost], found.first, found.second, samples)
    if len(changed):
        found.counts["changed"][OTHER] = len(changed)
        one, other = (_texts(side, changed[:samples]) for side in (found.first, found.second))
        found.samples["changed"] = [DifferingRow(one[r][0], OTHER, one[r][1], other[r][1]) for r in one if r in other]
    stages, others = ({m.stage: m for _, m in reversed(ancestors(path))} for path in (first, second))
    for stage in stages | others:
        if stage not in stages or stage not in others:
            found.settings[stage] = [f"is in the {'first' if stage in stages else 'second'} only"]
        else:
            new = others[stage]
            said = what_changed(stages[stage], new.parents, new.config, new.facts.get("resources", {}), new.code)
            # what it was made from has lines of its own
            if own := [sentence for sentence in said if not sentence.startswith("the version of ")]:
                found.settings[stage] = own
    return found


def _compare(found: Difference, kind: str, ids: Hashes, having: Link, missing: Link, samples: int) -> None:
    """Add the rows that only the result `having` has."""
    reasons = _reasons(missing, ids)
    found.counts[kind] = Counter(reasons.tolist())
    shown = {reason: ids[reasons == reason][:samples].tolist() for reason, _ in found.counts[kind].most_common()}
    texts = _texts(having, np.array([row for rows in shown.values() for row in rows], np.uint64))
    for reason, rows in shown.items():
        found.samples[kind] += [DifferingRow(texts[r][0], reason, texts[r][1]) for r in rows if r in texts]


def _hashes(link: Link) -> tuple[Hashes, Hashes]:
    """The ids and the contents of the kept rows, in the order of the ids': 16 bytes a row, whatever the rows hold.

    That two of 10 million ids share a hash has a probability of 3 in a million.
    """
    made, at = np.empty((2, sum(shard.rows for shard in tables(link[1], "kept"))), np.uint64), 0
    for batch in batches(link, "kept", ["id", "content_hash"]):
        made[:, at : at + batch.num_rows] = [hash_values(batch[name]) for name in ("id", "content_hash")]
        at += batch.num_rows
    ids, contents = made[:, np.argsort(made[0])]
    return ids, contents


def _with_rows(path: Path) -> Link:
    """The result itself, or for a pack the rows that it was made from."""
    for place, known in ancestors(path):
        if tables(known, "kept") and known.stage != "pack":
            if day := purged_on(place, known):
                raise InputError(
                    f"{place}: the shards of {known.stage} {known.version} were purged on {day}, with all its rows; "
                    "`datakit history` lists the versions that have rows"
                )
            return place, known
    raise InputError(f"{path}: the result of {load(path).stage} has no rows to compare")


def _reasons(side: Link, ids: Hashes) -> npt.NDArray[Any]:
    """object (ids,): what the latest stage that says something of it says of each row; `ids` ascend."""
    links = ancestors(side[0]) if len(ids) else []
    purged = [manifest.stage for path, manifest in links if purged_on(path, manifest)]
    said = np.full(len(ids), "", dtype=object)
    for link in links:
        for names, reasons in _dropped(link) if link[1].stage not in purged else ():
            hashes = hash_values(names)
            place = np.minimum(np.searchsorted(ids, hashes), len(ids) - 1)
            # A later stage, which was asked first, has the last word.
            here = np.flatnonzero((ids[place] == hashes) & (said[place] == ""))
            said[place[here]] = [f"{link[1].stage}: {reason}" for reason in reasons.take(pa.array(here)).to_pylist()]
    unknown = f"unknown, since the shards of {', '.join(reversed(purged))} were purged" if purged else NO_ROW
    said[said == ""] = unknown
    return said


def _dropped(link: Link) -> Iterator[tuple[pa.Array, pa.Array]]:
    """(ids, reasons) of the rows that a stage dropped, or could not read."""
    for batch in batches(link, "dropped", ["id", "reason"]):
        yield batch["id"], batch["reason"]
    for batch in batches(link, "quarantine", ["file", "line", "reason"]):
        line = pc.cast(pc.subtract(batch["line"], 1), pa.string())
        names = pc.binary_join_element_wise(batch["file"], line, ":")
        yield pc.fill_null(names, ""), pc.binary_join_element_wise(UNREADABLE, batch["reason"], ": ")


def _texts(side: Link, wanted: Hashes) -> dict[int, tuple[str, str]]:
    """(id, text) of a few rows, by the hash of the id: from the last stage behind a result whose rows have text."""
    links = [link for link in ancestors(side[0]) if tables(link[1], "kept") and not purged_on(*link)]
    with_text = [link for link in links if link[1].kind in ("document", "conversation", "preference")]
    link, ids = next(iter(with_text or links or [side])), list[str]()
    for batch in batches(link, "kept", ["id"]) if len(wanted) else ():
        ids += batch["id"].filter(pa.array(np.isin(hash_values(batch["id"]), wanted))).to_pylist()
    rows = {row["id"]: (row["id"], body(row)) for row in find(link, "kept", ids)}
    return dict(zip(hash_values(pa.array(rows, pa.string())).tolist(), rows.values(), strict=True))


def diff_lines(found: Difference) -> Iterator[str]:
    """The difference as lines of text."""
    for name, (path, manifest) in (("first ", found.first), ("second", found.second)):
        yield f"{name}  {head_line(manifest)}  {manifest.ledger.rows.kept:,} rows  {path}"
    for stage, said in found.settings.items():
        yield from (f"  {stage}: {line}" for line in said)
    counts = [(found.same, "rows are the same"), *((counted.total(), name) for name, counted in found.counts.items())]
    yield from lines_of(["", ""], counts, 2)
    for name, counted in found.counts.items():
        for why, n in counted.most_common():
            yield f"  {name}: {n:,}  {_why(name, why)}"
            for sample in (s for s in found.samples[name] if s.why == why):
                yield f"    {visible(sample.id)}: {shorten(sample.text, 120)}"
                if sample.other:
                    yield from (f"      {line}" for line in differences(sample.text, sample.other)[:4])


def _why(name: str, why: str) -> str:
    side = {"gained": " (in the first)", "lost": " (in the second)"}
    return why + side.get(name, "")


def diff_page(found: Difference) -> str:
    """The difference as an HTML page."""
    return render("diff.html", title="Two results", found=found, shorten=shorten, why=_why)
