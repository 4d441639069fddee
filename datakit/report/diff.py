"""`datakit diff`: two versions of a dataset, or two datasets: which rows one has and the other not, and why.

Rows are the same if their ids are equal; a row whose content differs is changed. Where ids are given by file and place,
rows of a file that moved are matched by their content.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import read_rows
from datakit.errors import InputError
from datakit.manifest import Manifest, ancestors, data_dir, load, purged_on, tables
from datakit.report.history import setting_differences
from datakit.report.page import render
from datakit.report.tables import head_line, lines_of
from datakit.report.texts import body, differences, shorten, visible
from datakit.text.words import hash_values

Hashes = npt.NDArray[np.uint64]
"""64-bit hashes of ids, or of contents."""

Side = tuple[Path, Manifest]
NO_ROW = "not in its input"
OTHER = "other content"
UNREADABLE = "could not be read"


@dataclass(frozen=True, slots=True)
class DifferingRow:
    """A row that only one of two results has, or that they have with different content."""

    id: str
    why: str
    """What became of it in the result without it: `stage: reason`, or that it was not in its input."""
    text: str
    other: str = ""
    """For a changed row: its text in the second result."""


KINDS = ("gained", "lost", "changed")


@dataclass(slots=True)
class Difference:
    """How the kept rows of two results differ."""

    first: Side
    second: Side
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
    rows = [_with_rows(*side) for side in (found.first, found.second)]
    (ids, contents), (other_ids, other_contents) = (_hashes(*side) for side in rows)
    place = _places(other_ids, ids)
    both = place >= 0
    changed = ids[both][contents[both] != other_contents[place[both]]]
    lost, gained = ~both, _places(ids, other_ids) < 0
    stays = lost & np.isin(contents, other_contents[gained])  # under another id
    moved = gained & np.isin(other_contents, contents[lost])
    found.same = int(both.sum()) - len(changed) + int(stays.sum())
    for name, gone, here, missing in (("gained", other_ids[gained & ~moved], found.second, found.first),
                                      ("lost", ids[lost & ~stays], found.first, found.second)):  # fmt: skip
        reasons = _reasons(missing, gone)
        numbers = {reason: np.flatnonzero(reasons == reason) for reason in dict.fromkeys(reasons.tolist())}
        found.counts[name] = Counter({reason: len(at) for reason, at in numbers.items()})
        shown = {reason: gone[at[:samples]].tolist() for reason, at in numbers.items()}
        texts = _texts(here, [row for listed in shown.values() for row in listed])
        for reason, _ in found.counts[name].most_common():
            found.samples[name] += [DifferingRow(texts[r][0], reason, texts[r][1]) for r in shown[reason] if r in texts]
    if len(changed):
        found.counts["changed"][OTHER] = len(changed)
        one, other = (_texts(side, changed[:samples].tolist()) for side in (found.first, found.second))
        found.samples["changed"] = [DifferingRow(one[r][0], OTHER, one[r][1], other[r][1]) for r in one if r in other]
    found.settings = _settings(first, second)
    return found


def _hashes(path: Path, manifest: Manifest) -> tuple[Hashes, Hashes]:
    """The ids and the contents of the kept rows, in the order of the ids': 16 bytes a row, whatever the rows hold.

    That two of 10 million ids share a hash has a probability of 3 in a million.
    """
    shards = tables(manifest, "kept")
    made = np.empty((2, sum(shard.rows for shard in shards)), np.uint64)
    at = 0
    for shard in shards:
        for batch in read_rows(data_dir(path, manifest), shard, ["id", "content_hash"]):
            made[:, at : at + batch.num_rows] = [hash_values(batch.column(n)) for n in ("id", "content_hash")]
            at += batch.num_rows
    ids, contents = made[:, np.argsort(made[0])]
    return ids, contents


def _places(known: Hashes, ids: Hashes) -> npt.NDArray[np.int64]:
    """int64 (ids,): where each id is among the known ones, which are ascending; -1 for none."""
    if not len(known):
        return np.full(len(ids), -1)
    at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[at] == ids, at, -1)


def _with_rows(path: Path, manifest: Manifest) -> Side:
    """The result itself, or for a pack the rows that it was made from."""
    for place, known in ancestors(path):
        if tables(known, "kept") and known.stage != "pack":
            if day := purged_on(place, known):
                raise InputError(
                    f"{place}: the shards of {known.stage} {known.version} were purged on {day}, with all its rows; "
                    "`datakit history` lists the versions that have rows"
                )
            return place, known
    raise InputError(f"{path}: the result of {manifest.stage} has no rows to compare")


def _reasons(side: Side, ids: Hashes) -> npt.NDArray[Any]:
    """object (ids,): what the latest stage that says something of it says of each row; `ids` ascend."""
    links = [link for link in ancestors(side[0]) if len(ids)]
    purged = [manifest.stage for path, manifest in links if purged_on(path, manifest)]
    unknown = f"unknown, since the shards of {', '.join(reversed(purged))} were purged" if purged else NO_ROW
    said = np.full(len(ids), None, dtype=object)
    for path, manifest in links:
        if manifest.stage in purged:
            continue
        for names, reasons in _dropped(path, manifest):
            place = _places(ids, hash_values(names))
            here = np.flatnonzero(place >= 0)
            here = here[said[place[here]] == None]  # noqa: E711  (each of them)
            said[place[here]] = [f"{manifest.stage}: {reason}" for reason in reasons.take(pa.array(here)).to_pylist()]
    said[said == None] = unknown  # noqa: E711
    return said


def _dropped(path: Path, manifest: Manifest) -> Iterator[tuple[pa.Array, pa.Array]]:
    """(ids, reasons) of the rows that a stage dropped, or could not read."""
    folder = data_dir(path, manifest)
    for shard in tables(manifest, "dropped"):
        for batch in read_rows(folder, shard, ["id", "reason"]):
            yield batch.column("id"), batch.column("reason")
    for shard in tables(manifest, "quarantine"):
        for batch in read_rows(folder, shard, ["file", "line", "reason"]):
            line = pc.cast(pc.subtract(batch.column("line"), 1), pa.string())
            names = pc.binary_join_element_wise(batch.column("file"), line, ":")
            unread = pc.binary_join_element_wise(UNREADABLE, batch.column("reason"), ": ")
            yield pc.fill_null(names, ""), unread


def _texts(side: Side, ids: list[int]) -> dict[int, tuple[str, str]]:
    """(id, text) of a few rows, by the hash of the id: from the last stage behind a result whose rows have text."""
    wanted, found = np.array(sorted(set(ids)), np.uint64), dict[int, tuple[str, str]]()
    links = [(p, m) for p, m in ancestors(side[0]) if tables(m, "kept") and not purged_on(p, m)]
    with_text = [link for link in links if link[1].kind in ("document", "conversation", "preference")]
    path, manifest = next(iter(with_text or links or [side]))
    for shard in tables(manifest, "kept") if len(wanted) else ():
        for batch in read_rows(data_dir(path, manifest), shard):
            hashes = hash_values(batch.column("id"))
            here = np.flatnonzero(_places(wanted, hashes) >= 0)
            rows = batch.take(pa.array(here)).to_pylist()
            found |= {int(number): (row["id"], body(row)) for number, row in zip(hashes[here], rows, strict=True)}
        if len(found) == len(wanted):
            break
    return found


def _settings(first: Path, second: Path) -> dict[str, list[str]]:
    one, other = ({m.stage: m for _, m in reversed(ancestors(path))} for path in (first, second))
    found: dict[str, list[str]] = {}
    for stage in dict.fromkeys([*one, *other]):
        if stage not in one or stage not in other:
            found[stage] = ["is in the second only" if stage not in one else "is in the first only"]
        elif said := list(setting_differences(one[stage], other[stage], [])):
            found[stage] = said
    return found


# For people.


def diff_lines(found: Difference) -> Iterator[str]:
    """The difference as lines of text."""
    for name, (path, manifest) in (("first ", found.first), ("second", found.second)):
        yield f"{name}  {head_line(manifest)}  {manifest.ledger.rows.kept:,} rows  {path}"
    for stage, said in found.settings.items():
        yield from (f"  {stage}: {line}" for line in said)
    counts = [(found.same, "rows are the same")]
    counts += [(counted.total(), name) for name, counted in found.counts.items()]
    yield from lines_of(["", ""], counts, 2)
    for name, counted in found.counts.items():
        for why, n in counted.most_common():
            yield f"  {name}: {n:,}  {_why(name, why)}"
            for sample in (s for s in found.samples[name] if s.why == why):
                yield f"    {visible(sample.id)}: {shorten(sample.text, 120)}"
                marked = differences(sample.text, sample.other)[:4] if sample.other else []
                yield from (f"      {line}" for line in marked)


def _why(name: str, why: str) -> str:
    side = {"gained": "first", "lost": "second"}.get(name)
    return why if side is None else f"{why} (in the {side})"


def diff_page(found: Difference) -> str:
    """The difference as an HTML page."""
    sides = [
        (name, f"{m.dataset} / {m.stage}", m.version, m.ledger.rows.kept, str(path))
        for name, (path, m) in (("first", found.first), ("second", found.second))
    ]
    groups = {
        name: [
            {"id": s.id, "why": _why(name, s.why), "text": shorten(s.text, 700), "other": shorten(s.other, 700)}
            for s in samples
        ]
        for name, samples in found.samples.items()
    }
    return render(
        "diff.html",
        title="Two results",
        sides=sides,
        same=found.same,
        settings=[(stage, line) for stage, lines in found.settings.items() for line in lines],
        counts=[(name, _why(name, why), n) for name, c in found.counts.items() for why, n in c.most_common()],
        groups=list(groups.items()),
    )
