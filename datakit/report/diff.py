"""`datakit diff`: two versions of a dataset, or two datasets: which rows one has and the other not, and why.

Rows are the same if their ids are equal; a row whose content differs is changed. Where ids are given by file and place,
rows of a file that moved are matched by their content.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
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

NO_ROW = "not in its input"
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

    first: tuple[Path, Manifest]
    second: tuple[Path, Manifest]
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
    one, other = (_Hashes.of(*_with_rows(*side)) for side in (found.first, found.second))
    place = other.places(one.ids)
    both = place >= 0
    changed = one.ids[both][one.contents[both] != other.contents[place[both]]]
    lost, gained = ~both, one.places(other.ids) < 0
    stays = lost & np.isin(one.contents, other.contents[gained])
    moved = gained & np.isin(other.contents, one.contents[lost])
    found.same = int(both.sum()) - len(changed) + int(stays.sum())
    _explain(found, "lost", one.ids[lost & ~stays], found.first, found.second, samples)
    _explain(found, "gained", other.ids[gained & ~moved], found.second, found.first, samples)
    _changed(found, changed, samples)
    found.settings = _settings(found.first[0], found.second[0])
    return found


@dataclass(frozen=True, slots=True)
class _Hashes:
    """The kept rows of a result as 64-bit hashes, in the order of the ids': 16 bytes a row, whatever the rows hold.

    That two of 10 million ids share a hash has a probability of 3 in a million.
    """

    ids: Hashes
    contents: Hashes

    @classmethod
    def of(cls, path: Path, manifest: Manifest) -> "_Hashes":
        """Read the ids and the content hashes of a result."""
        names, rows = ["id", "content_hash"], sum(shard.rows for shard in tables(manifest, "kept"))
        ids, contents, at = np.empty(rows, np.uint64), np.empty(rows, np.uint64), 0
        for shard in tables(manifest, "kept"):
            for batch in read_rows(data_dir(path, manifest), shard, names):
                part = slice(at, at := at + batch.num_rows)
                ids[part], contents[part] = (hash_values(batch.column(name)) for name in names)
        order = np.argsort(ids)
        return cls(ids[order], contents[order])

    def places(self, ids: Hashes) -> npt.NDArray[np.int64]:
        """int64 (ids,): where each id is; -1 for none."""
        return _places(self.ids, ids)


def _places(known: Hashes, ids: Hashes) -> npt.NDArray[np.int64]:
    """int64 (ids,): where each id is among the known ones, which are ascending; -1 for none."""
    if not len(known):
        return np.full(len(ids), -1)
    at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[at] == ids, at, -1)


def _with_rows(path: Path, manifest: Manifest) -> tuple[Path, Manifest]:
    """The result itself, or for a pack the rows that it was made from."""
    for place, known in [(path, manifest), *ancestors(path)]:
        if tables(known, "kept") and known.stage != "pack":
            if day := purged_on(place, known):
                raise InputError(
                    f"{place}: the shards of {known.stage} {known.version} were purged on {day}, with all its rows; "
                    "`datakit history` lists the versions that have rows"
                )
            return place, known
    raise InputError(f"{path}: the result of {manifest.stage} has no rows to compare")


def _explain(
    found: Difference, name: str, ids: Hashes, there: tuple[Path, Manifest], gone: tuple[Path, Manifest], samples: int
) -> None:
    """Why rows that one result has are not in the other; `ids` ascend."""
    number, reasons = _reasons(gone, ids)
    counts = np.bincount(number, minlength=len(reasons))
    found.counts[name] = Counter({reason: int(n) for reason, n in zip(reasons, counts, strict=True) if n})
    shown = {reasons[r]: ids[np.flatnonzero(number == r)[:samples]].tolist() for r in np.flatnonzero(counts)}
    rows = _texts(_with_rows(*there), [row for listed in shown.values() for row in listed])
    for reason, _ in found.counts[name].most_common():
        found.samples[name] += [
            DifferingRow(rows[row][0], reason, rows[row][1]) for row in shown[reason] if row in rows
        ]


def _reasons(side: tuple[Path, Manifest], ids: Hashes) -> tuple[npt.NDArray[np.int32], list[str]]:
    """(for each id the number of what a stage behind a result said of its row, what they said)."""
    links = ancestors(side[0]) if len(ids) else []
    purged = [manifest.stage for path, manifest in links if purged_on(path, manifest)]
    unknown = f"unknown, since the shards of {', '.join(reversed(purged))} were purged" if purged else NO_ROW
    number, numbers = np.zeros(len(ids), np.int32), {unknown: 0}

    def note(names: pa.Array, said: pa.Array, stage: str) -> None:
        place = _places(ids, hash_values(names))
        here = np.flatnonzero(place >= 0)
        here = here[number[place[here]] == 0]  # what the latest stage said counts
        told = said.take(pa.array(here)).to_pylist()
        number[place[here]] = [numbers.setdefault(f"{stage}: {reason}", len(numbers)) for reason in told]

    for path, manifest in links:
        if manifest.stage in purged:
            continue
        folder = data_dir(path, manifest)
        for shard in tables(manifest, "dropped"):
            for batch in read_rows(folder, shard, ["id", "reason"]):
                note(batch.column("id"), batch.column("reason"), manifest.stage)
        for shard in tables(manifest, "quarantine"):
            for batch in read_rows(folder, shard, ["file", "line", "reason"]):
                line = pc.cast(pc.subtract(batch.column("line"), 1), pa.string())
                names = pc.binary_join_element_wise(batch.column("file"), line, ":")
                note(pc.fill_null(names, ""), batch.column("reason"), f"{manifest.stage}: {UNREADABLE}")
    return number, list(numbers)


def _texts(side: tuple[Path, Manifest], ids: Sequence[int]) -> dict[int, tuple[str, str]]:
    """(id, text) of a few rows, by the hash of the id."""
    wanted, found = np.array(sorted(set(ids)), np.uint64), dict[int, tuple[str, str]]()
    path, manifest = _with_texts(side)
    for shard in tables(manifest, "kept"):
        if len(found) == len(wanted):
            break
        folder = data_dir(path, manifest)
        if not any((_places(wanted, hash_values(b.column("id"))) >= 0).any() for b in read_rows(folder, shard, ["id"])):
            continue
        for batch in read_rows(folder, shard):
            hashes = hash_values(batch.column("id"))
            here = np.flatnonzero(_places(wanted, hashes) >= 0)
            for number, row in zip(hashes[here].tolist(), batch.take(pa.array(here)).to_pylist(), strict=True):
                found[number] = (row["id"], body(row))
    return found


def _with_texts(side: tuple[Path, Manifest]) -> tuple[Path, Manifest]:
    """The last stage behind a result whose rows have text; the result itself where none has."""
    for place, known in ancestors(side[0]):
        told = known.kind in ("document", "conversation", "preference") and tables(known, "kept")
        if told and not purged_on(place, known):
            return place, known
    return side


def _changed(found: Difference, ids: Hashes, samples: int) -> None:
    counts = found.counts["changed"]
    if len(ids):
        counts["other content"] = len(ids)
    some = ids[:samples].tolist()
    one, other = (_texts(_with_rows(*side), some) for side in (found.first, found.second))
    both = [row for row in some if row in one]
    found.samples["changed"] = [
        DifferingRow(one[row][0], "other content", one[row][1], other.get(row, ("", ""))[1]) for row in both
    ]


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
