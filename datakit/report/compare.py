"""Rows beside one another: `datakit pairs`, `datakit explain` and `datakit diff`.

pairs    the rows that a dedup level dropped, beside the rows that stay for them, the least similar first
explain  where one row came from, which stage dropped it and why, and which row was kept instead
diff     which rows one of two results has and the other not, and why
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from datakit.report.finder import Link, batches, body, differences, find, first_of, row_name, shorten, some_of, visible
from datakit.report.tables import lines_of
from datakit.text.words import hash_values, normalize, split_words

# Pairs.

LEVEL = "dedup"
"""What the names of all levels of dedup begin with."""
COLUMNS = ("row_key", "id", "reason", "duplicate_of", "similarity", "duplicate_in")
SHINGLE_WORDS = 5
"""Of the similarity that is computed here, where the stage compared something else than whole texts."""
MOST_COMPARED = 2000
"""Rows of such a stage whose similarity is computed."""


def text_similarity(first: str, second: str, shingle_words: int) -> float:
    """Exact Jaccard similarity of the shingles of two documents as dedup computes it, rounded to 1e-3, halves up.

    Of texts that are too short for a shingle it is 1 if they are equal, else 0.
    """
    texts, sets = normalize(pa.array([first, second], pa.string())).to_pylist(), []
    for words in map(split_words, texts):
        sets.append({tuple(words[i : i + shingle_words]) for i in range(len(words) - shingle_words + 1)})
    shared, union = len(sets[0] & sets[1]), len(sets[0] | sets[1])
    return (2000 * shared + union) // (2 * union) / 1000 if union else float(texts[0] == texts[1])


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


def drops(path: Path, lowest: int, stage: str = "") -> dict[str, Any]:
    """The `lowest` least similar pairs of a dedup level in the history of the manifest at `path`.

    The level is `stage` if that is given; else the manifest's own level, the document level, or the last one.

    Returns "stage" and what it "dropped" by reason; "named": rows that were dropped for one particular row (the others
    only repeat themselves); "similarities": these rows by similarity, rounded down to 0.05 (where the stage gives none,
    that of the texts, of the first `MOST_COMPARED` rows); "others": rows that other levels dropped in the same history;
    "pairs": list of `Pair`.

    Raises:
        InputError: there is no such stage.
    """
    levels = {m.stage: (p, m) for p, m in reversed(ancestors(path)) if m.stage.startswith(LEVEL)}
    choice = [stage.replace("-", "_")] if stage else [load(path).stage, LEVEL, *reversed(levels)]
    level = next((levels[name] for name in choice if name in levels), None)
    if level is None:
        there = f"; there are {', '.join(reversed(levels))}" if levels else ""
        raise InputError(f"{path}: expected the manifest of a {choice[0] if stage else LEVEL} stage, or of one that "
                         f"came after it{there}")  # fmt: skip
    named, found, least, unmeasured = 0, Counter[float](), None, list[dict[str, Any]]()
    for batch in batches(level, "dropped"):
        if "similarity" not in batch.schema.names:
            batch = batch.append_column("similarity", pa.nulls(batch.num_rows, pa.float64()))
        batch = batch.select([name for name in COLUMNS if name in batch.schema.names])
        batch = batch.filter(pc.is_valid(batch["duplicate_of"]))
        named += batch.num_rows
        known = pc.is_valid(batch["similarity"])
        unmeasured += batch.filter(pc.invert(known))[: MOST_COMPARED - len(unmeasured)].to_pylist()
        measured = batch.filter(known)
        found.update(map(_floor, measured["similarity"].to_pylist()))
        least = first_of(least, measured, ("similarity", "row_key"), lowest)
    chosen = least.to_pylist() if least is not None else []
    pairs = _pairs(level, chosen + unmeasured)
    found.update(_floor(pair.similarity) for pair in pairs[len(chosen) :])
    lost = {name: sum(m.ledger.rows.dropped.values()) for name, (_, m) in levels.items()}
    return {
        "stage": level[1].stage,
        "dropped": level[1].ledger.rows.dropped,
        "named": named,
        "others": {name: n for name, n in lost.items() if n and name != level[1].stage},
        "similarities": {f"{similarity:.2f}": n for similarity, n in sorted(found.items())},
        "pairs": sorted(pairs, key=lambda pair: pair.similarity)[:lowest],
    }


def _floor(similarity: float) -> float:
    """The similarity, rounded down to 0.05."""
    return round(similarity * 1000) // 50 / 20


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


def listing(found: dict[str, Any]) -> Iterator[str]:
    """What `drops` found as lines of text."""
    total, named, similarities = sum(found["dropped"].values()), found["named"], found["similarities"]
    why = ", ".join(f"{n:,} {reason}" for reason, n in Counter(found["dropped"]).most_common())
    alone = f"; {total - named:,} of them only repeat themselves" if named < total else ""
    yield f"{found['stage']} dropped {total:,} rows{f': {why}' if why else ''}{alone}"
    if similarities:
        some = f" of the first {MOST_COMPARED:,}" if sum(similarities.values()) < named else ""
        yield f"similarities{some}: " + ", ".join(f"{s}: {n:,}" for s, n in similarities.items())
    if found["others"]:
        others = ", ".join(f"{stage} {n:,}" for stage, n in found["others"].items())
        yield f"other levels dropped rows too (--stage shows them): {others}"
    for pair in found["pairs"]:
        gone, kept = pair.dropped, pair.stays
        names = row_name(gone["id"], gone["source"]), row_name(kept["id"], kept["source"])
        yield f"\n{pair.similarity:.3f}  [-{names[0]}-] was dropped, {{+{names[1]}+}} stays"
        yield from (f"       {line}" for line in differences(body(gone), body(kept)))


# Explain.

MOST_PIECES = 20
"""Cut pieces of a row, evaluation items that it matches, and packed rows that are shown; the others are counted."""
INDENT = " " * 10
NO_FACTS = {"id", "row_key", "content_hash", "text", "extra", "raw", "stage", "reason", "detail", "duplicate_of",
            "duplicate_in", "similarity"}  # fmt: skip
"""Columns that say nothing of a row that is not shown anyway."""


def story(row_id: str, paths: list[Path]) -> list[str]:
    """Lines about the row with an id, stage by stage; empty if no stage knows the id.

    `paths` are manifests; the stages are those behind the one with the longest history. The text of a dropped duplicate
    is compared with the text of the kept row.
    """
    chains = [ancestors(path) for path in paths]
    longest = max(chains, key=lambda chain: (len(chain), chain[0][0].stat().st_mtime_ns))
    order = [link for link in reversed(longest) if stage_class(link[1].stage).makes_rows]
    lines, text, role, seen = list[str](), "", "", dict[str, Any]()
    for link in order:
        stage = f"{link[1].stage:<9}"
        if day := purged_on(*link):
            lines.append(f"{stage} its shards were purged on {day}")
            continue
        role, row = _find(link, row_id)
        if not role:
            lines += [f"{stage} {line}" for line in _packed(link, row_id, seen.get("row_key", -1))]
            continue
        lines.append(f"{stage} {role}  {_facts(row, seen)}")
        seen, text = row, text or body(row)
        lines += [INDENT + line for line in _pieces(link, row_id)]
        if row.get("duplicate_of"):
            lines += [INDENT + line for line in _survivor(link, row, text, order)]
    if text:
        lines.insert(0, f"{row_id}\n  {shorten(text, 1000)}")
    return lines if seen else []


def _find(link: Link, row_id: str) -> tuple[str, dict[str, Any]]:
    """What a result has of a row: "kept", "dropped" or "quarantined", and the row; "" where it has nothing."""
    for role in ("kept", "dropped"):
        for row in find(link, role, [row_id]):
            return role, row
    for batch in batches(link, "quarantine"):
        for row in batch.to_pylist():
            if row_id == f"{row['file']}:{row['line'] - 1}":  # the id that it would have got
                return "quarantined", row
    return "", {}


def _packed(link: Link, row_id: str, row_key: int) -> Iterator[str]:
    """A line for the packed rows of each part that hold tokens of the row with a key; none for another stage."""
    from datakit.pack.inspect import headers_of

    path, manifest = link
    folder, shards = data_dir(path, manifest), {s.path: s for s in manifest.shards}
    for header in headers_of(manifest, str(path)) if manifest.stage == "pack" else ():
        file = f"{header['prefix']}.src.npy"
        check_shards(folder, [shards[file]])
        found = np.load(folder / file, mmap_mode="r", allow_pickle=False)
        mine = found[found["row_key"] == row_key]
        if len(mine):
            listed = some_of((f"{row:,}" for row in dict.fromkeys(mine["row"].tolist())), MOST_PIECES)
            tokens, name = int((mine["tokens"] - mine["head"]).sum()), PurePath(header["prefix"]).name
            peek = f"`datakit peek {os.path.relpath(path)} --id {row_id}` shows them"
            yield f"kept  {tokens:,} tokens in row {listed} of {name}; {peek}"


def _facts(row: dict[str, Any], before: dict[str, Any]) -> str:
    """Why the row was dropped, and what the stage added to it or changed in it, but for its text."""
    new = {name: value for name, value in row.items() if name not in NO_FACTS and value != before.get(name)}
    if "row_key" in row and not before:
        new["record"] = row["row_key"] & ((1 << RECORD_BITS) - 1)
    why = f"[{row['reason']}] {row.get('detail') or ''}" if row.get("reason") else ""
    return f"{why}  {_said(new)}".strip()


def _said(values: dict[str, Any]) -> str:
    """The numbers and words among some values; of lists their lengths."""
    said = list[str]()
    for name, value in values.items():
        if isinstance(value, list):
            said.append(f"{len(value):,} {name}")
        elif value is not None:
            said.append(f"{name} {value:g}" if isinstance(value, float) else f"{name} {shorten(str(value), 200)}")
    return ", ".join(said)


def _pieces(link: Link, row_id: str) -> Iterator[str]:
    """A line for each piece that the stage cut out of the row, and for each evaluation item that the row matches."""
    for role in ("cuts", "matches"):
        pieces = find(link, role, [row_id])
        for piece in pieces[:MOST_PIECES]:
            yield f"{role}: {_said({name: value for name, value in piece.items() if name not in ('id', 'row_key')})}"
        if len(pieces) > MOST_PIECES:
            yield f"and {len(pieces) - MOST_PIECES} more {role}"


def _survivor(link: Link, row: dict[str, Any], text: str, order: Sequence[Link]) -> Iterator[str]:
    """Lines about the row that was kept instead of a duplicate, and how the two texts differ."""
    name, version, where = row["duplicate_of"], row.get("duplicate_in"), ""
    if version:
        earlier = _earlier(link, version)
        order = [earlier] if earlier else []
        where = f" in {earlier[1].dataset} ({earlier[1].stage} {version})" if earlier else ""
    found = [(result[1].stage, *_find(result, name)) for result in order if not purged_on(*result)]
    kept = [(stage, role, there) for stage, role, there in found if role]
    if not kept:
        yield f"{name} stayed in the {link[1].stage} {version}, whose manifest or shards are not where they were"
        return
    said = f"{name} stayed{where}"
    for stage, role, there in kept:
        if role == "dropped":
            said += f", but was dropped later by {stage}: [{there['reason']}] {there['detail'] or ''}"
    if row.get("similarity") is not None:  # it is null for a row that was dropped for its URL or its lines
        turn = ", that of the least similar turn" if "text" not in row and row["similarity"] < 1 else ""
        said += f"; similarity {row['similarity']}{turn}"
    yield said
    yield "[-this row-], {+that row+}:"
    yield from (f"  {line}" for line in differences(text, body(kept[0][2])))


# Diff. Rows are the same if their ids are equal; a row whose content differs is changed. Where ids are given by file
# and place, rows of a file that moved are matched by their content.

Hashes = npt.NDArray[np.uint64]
"""64-bit hashes of ids, or of contents."""

NO_ROW = "not in its input"
OTHER = "other content"
UNREADABLE = "could not be read"
MISSING_IN = {"gained": " (in the first)", "lost": " (in the second)", "changed": ""}
"""Where the reason holds for which the other result does not have a row that one has, or has it with other content."""


def diff(first: Path, second: Path, samples: int = 3) -> dict[str, Any]:
    """Compare the kept rows of two results; `samples` rows are shown for each reason.

    Returns, as JSON has it: "first" and "second" (which results these are); "same" (number of rows); "settings" (what
    differs, by stage); and for "gained", "lost" and "changed" rows their number ("rows"), the numbers by what the other
    result says of them ("by_reason": `stage: reason`, or that they were not in its input), and "samples".

    Raises:
        InputError: one of them has no rows with ids (a pack: the rows that it was made from are compared), or they
            were purged.
        IntegrityError: a shard is missing or damaged.
    """
    one, other = ((path, load(path)) for path in (first, second))
    (ids, contents), (other_ids, other_contents) = (_hashes(_with_rows(path)) for path in (first, second))
    both, here, there = np.intersect1d(ids, other_ids, return_indices=True)
    lost, gained = np.ones(len(ids), np.bool_), np.ones(len(other_ids), np.bool_)
    lost[here] = gained[there] = False
    moved = gained & np.isin(other_contents, contents[lost])
    stays = lost & np.isin(contents, other_contents[gained])  # under another id
    changed = both[contents[here] != other_contents[there]]
    gone, new = ids[stays < lost], other_ids[moved < gained]
    return {
        name: {"dataset": m.dataset, "stage": m.stage, "version": m.version, "rows": m.ledger.rows.kept,
               "manifest": str(path)}
        for name, (path, m) in {"first": one, "second": other}.items()
    } | {
        "same": len(both) - len(changed) + int(stays.sum()),
        "settings": _settings(first, second),
        "gained": _differing(new, _reasons(one, new), other, samples),
        "lost": _differing(gone, _reasons(other, gone), one, samples),
        "changed": _differing(changed, np.full(len(changed), OTHER, object), one, samples, other),
    }  # fmt: skip


def _settings(first: Path, second: Path) -> dict[str, list[str]]:
    """By stage: inputs and settings that differ."""
    stages, others = ({m.stage: m for _, m in reversed(ancestors(path))} for path in (first, second))
    found = dict[str, list[str]]()
    for stage in stages | others:
        if stage not in stages or stage not in others:
            found[stage] = [f"is in the {'first' if stage in stages else 'second'} only"]
            continue
        new = others[stage]
        said = what_changed(stages[stage], new.parents, new.config, new.facts.get("resources", {}), new.code)
        # what it was made from has lines of its own
        if own := [sentence for sentence in said if not sentence.startswith("the version of ")]:
            found[stage] = own
    return found


def _differing(
    ids: Hashes, reasons: npt.NDArray[Any], having: Link, samples: int, also: Link | None = None
) -> dict[str, Any]:
    """Rows that a result has: how many for each reason, and some with their texts, and the texts of another result."""
    counts = dict(Counter(reasons.tolist()).most_common())
    shown = [(int(row), why) for why in counts for row in ids[reasons == why][:samples]]
    wanted = np.array([row for row, _ in shown], np.uint64)
    texts, others = _texts(having, wanted), _texts(also, wanted) if also else {}
    rows = [
        {"id": texts[row][0], "why": why, "text": texts[row][1], "other": others[row][1] if also else ""}
        for row, why in shown
        if row in texts and (also is None or row in others)
    ]
    return {"rows": len(ids), "by_reason": counts, "samples": rows}


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
        for names, why in _dropped(link) if link[1].stage not in purged else ():
            hashes = hash_values(names)
            place = np.minimum(np.searchsorted(ids, hashes), len(ids) - 1)
            # A later stage, which was asked first, has the last word.
            here = np.flatnonzero((ids[place] == hashes) & (said[place] == ""))
            said[place[here]] = [f"{link[1].stage}: {reason}" for reason in why.take(pa.array(here)).to_pylist()]
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


def diff_lines(found: dict[str, Any]) -> Iterator[str]:
    """The difference as lines of text."""
    sides = [(name, found[name]) for name in ("first", "second")]
    head = ["", "dataset", "stage", "version", "rows", "manifest"]
    yield from lines_of(head, [(name, *(side[column] for column in head[1:])) for name, side in sides])
    for stage, said in found["settings"].items():
        yield from (f"  {stage}: {line}" for line in said)
    yield from lines_of(
        ["", ""], [(found["same"], "rows are the same"), *((found[k]["rows"], k) for k in MISSING_IN)], 2
    )
    for kind, where in MISSING_IN.items():
        for why, n in found[kind]["by_reason"].items():
            yield f"  {kind}: {n:,}  {why}{where}"
            for sample in (s for s in found[kind]["samples"] if s["why"] == why):
                yield f"    {visible(sample['id'])}: {shorten(sample['text'], 120)}"
                if sample["other"]:
                    yield from (f"      {line}" for line in differences(sample["text"], sample["other"])[:4])
