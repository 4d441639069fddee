"""`datakit diff`: two versions of a dataset, or two datasets: which rows one has and the other not, and why.

Rows are the same if their ids are equal; a row whose content differs is changed. Where ids are given by file and place,
rows of a file that moved are matched by their content.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from datakit.data import read_rows
from datakit.engine.lineage import config_differences, raw_differences
from datakit.errors import InputError
from datakit.manifest import Manifest, ancestors, data_dir, load, tables
from datakit.report.page import table, text, whole_page
from datakit.report.texts import body, differences, shorten, visible

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


@dataclass(slots=True)
class Difference:
    """How the kept rows of two results differ."""

    first: tuple[Path, Manifest]
    second: tuple[Path, Manifest]
    same: int = 0
    counts: dict[str, Counter[str]] = field(
        default_factory=lambda: {n: Counter() for n in ("gained", "lost", "changed")}
    )
    """"gained", "lost" and "changed" rows by why the other result does not have them."""
    samples: dict[str, list[DifferingRow]] = field(
        default_factory=lambda: {n: [] for n in ("gained", "lost", "changed")}
    )
    settings: dict[str, list[str]] = field(default_factory=dict)
    """By stage: inputs and settings that differ."""

    def to_json(self) -> dict[str, Any]:
        """The difference as JSON."""
        named = {n: {"dataset": m.dataset, "stage": m.stage, "version": m.version, "manifest": str(p)} for n, (p, m) in
                 (("first", self.first), ("second", self.second))}  # fmt: skip
        rows = {
            name: {
                "rows": counts.total(),
                "by_reason": dict(counts.most_common()),
                "samples": [{"id": s.id, "why": s.why, "text": s.text, "other": s.other} for s in self.samples[name]],
            }
            for name, counts in self.counts.items()
        }
        return named | {"same": self.same, **rows, "settings": self.settings}


def diff(first: Path, second: Path, samples: int = 3) -> Difference:
    """Compare the kept rows of two results; `samples` rows are shown for each reason.

    Raises:
        InputError: one of them has no rows with ids (a pack: the rows that it was made from are compared).
        IntegrityError: a shard is missing or damaged.
    """
    found = Difference((first, load(first)), (second, load(second)))
    one, other = (_kept(*_with_rows(*side)) for side in (found.first, found.second))
    joined = one.join(other, "id", join_type="full outer", right_suffix="_2")
    both = joined.filter(pc.and_(pc.is_valid(joined["hash"]), pc.is_valid(joined["hash_2"])))
    changed = both.filter(pc.not_equal(both["hash"], both["hash_2"])).column("id")
    lost = joined.filter(pc.is_null(joined["hash_2"])).select(["id", "hash"])
    gained = joined.filter(pc.is_null(joined["hash"])).select(["id", "hash_2"])
    moved = pc.is_in(gained["hash_2"], pc.unique(lost["hash"]))
    stays = pc.is_in(lost["hash"], pc.unique(gained["hash_2"]))
    found.same = both.num_rows - len(changed) + int(pc.sum(stays).as_py() or 0)
    _explain(found, "lost", lost["id"].filter(pc.invert(stays)), found.first, found.second, samples)
    _explain(found, "gained", gained["id"].filter(pc.invert(moved)), found.second, found.first, samples)
    _changed(found, changed, samples)
    found.settings = _settings(found.first[0], found.second[0])
    return found


def _with_rows(path: Path, manifest: Manifest) -> tuple[Path, Manifest]:
    """The result itself, or for a pack the rows that it was made from."""
    for place, known in [(path, manifest), *ancestors(path)]:
        if tables(known, "kept") and known.stage != "pack":
            return place, known
    raise InputError(f"{path}: the result of {manifest.stage} has no rows to compare")


def _kept(path: Path, manifest: Manifest) -> pa.Table:
    names = ["id", "content_hash"]
    parts = [b.select(names) for s in tables(manifest, "kept") for b in read_rows(data_dir(path, manifest), s, names)]
    return pa.Table.from_batches(parts).rename_columns(["id", "hash"])


def _explain(
    found: Difference,
    name: str,
    ids: pa.ChunkedArray,
    there: tuple[Path, Manifest],
    gone: tuple[Path, Manifest],
    samples: int,
) -> None:
    """Why rows that one result has are not in the other."""
    why = _reasons(gone, ids)
    counts = found.counts[name]
    shown: dict[str, list[str]] = {}
    for row_id in ids.to_pylist():
        reason = why.get(row_id, NO_ROW)
        counts[reason] += 1
        if len(listed := shown.setdefault(reason, [])) < samples:
            listed.append(row_id)
    rows = _texts(_with_rows(*there), [row_id for listed in shown.values() for row_id in listed])
    for reason, _ in counts.most_common():
        found.samples[name] += [DifferingRow(i, reason, rows.get(i, "")) for i in shown[reason]]


def _reasons(side: tuple[Path, Manifest], ids: pa.ChunkedArray) -> dict[str, str]:
    """What each stage behind a result said of some rows."""
    wanted, why = ids.combine_chunks() if len(ids) else pa.array([], pa.string()), dict[str, str]()
    for path, manifest in ancestors(side[0]):
        for shard in tables(manifest, "dropped") if len(wanted) else ():
            for batch in read_rows(data_dir(path, manifest), shard, ["id", "reason"]):
                some = batch.filter(pc.is_in(batch.column("id"), wanted))
                for row_id, reason in zip(some["id"].to_pylist(), some["reason"].to_pylist(), strict=True):
                    why.setdefault(row_id, f"{manifest.stage}: {reason}")
        for shard in tables(manifest, "quarantine") if len(wanted) else ():
            for batch in read_rows(data_dir(path, manifest), shard):
                for row in batch.select(["file", "line", "reason"]).to_pylist():
                    why.setdefault(
                        f"{row['file']}:{row['line'] - 1}", f"{manifest.stage}: {UNREADABLE}: {row['reason']}"
                    )
    return why


def _texts(side: tuple[Path, Manifest], ids: Iterable[str]) -> dict[str, str]:
    wanted, found = pa.array(sorted(set(ids)), pa.string()), dict[str, str]()
    path, manifest = _with_texts(side)
    for shard in tables(manifest, "kept"):
        if len(found) == len(wanted):
            break
        names = [b.column("id") for b in read_rows(data_dir(path, manifest), shard, ["id"])]
        if any(pc.any(pc.is_in(column, wanted)).as_py() for column in names):
            for batch in read_rows(data_dir(path, manifest), shard):
                rows = batch.filter(pc.is_in(batch.column("id"), wanted)).to_pylist()
                found |= {row["id"]: body(row) for row in rows}
    return found


def _with_texts(side: tuple[Path, Manifest]) -> tuple[Path, Manifest]:
    """The last stage behind a result whose rows have text; the result itself where none has."""
    for place, known in ancestors(side[0]):
        if known.kind in ("document", "conversation", "preference") and tables(known, "kept"):
            return place, known
    return side


def _changed(found: Difference, ids: pa.ChunkedArray, samples: int) -> None:
    counts = found.counts["changed"]
    if len(ids):
        counts["other content"] = len(ids)
    some = ids.slice(0, samples).to_pylist()
    one, other = (_texts(_with_rows(*side), some) for side in (found.first, found.second))
    found.samples["changed"] = [DifferingRow(i, "other content", one.get(i, ""), other.get(i, "")) for i in some]


def _settings(first: Path, second: Path) -> dict[str, list[str]]:
    one, other = ({m.stage: m for _, m in reversed(ancestors(path))} for path in (first, second))
    found: dict[str, list[str]] = {}
    for stage in dict.fromkeys([*one, *other]):
        if stage not in one or stage not in other:
            found[stage] = ["is in the second only" if stage not in one else "is in the first only"]
            continue
        a, b = one[stage], other[stage]
        said = [*raw_differences(a.parents, b.parents), *config_differences(a.config, b.config)]
        said += ["other models, or another list of removed rows"] * (
            a.facts.get("resources") != b.facts.get("resources")
        )
        said += ["another version of the code"] * (a.code != b.code)
        if said:
            found[stage] = said
    return found


# For people.


def diff_lines(found: Difference) -> Iterator[str]:
    """The difference as lines of text."""
    for name, (path, manifest) in (("first ", found.first), ("second", found.second)):
        rows = manifest.ledger.rows.kept
        yield f"{name}  {manifest.dataset} / {manifest.stage}  version {manifest.version}  {rows:,} rows  {path}"
    for stage, said in found.settings.items():
        yield from (f"  {stage}: {line}" for line in said)
    yield f"  {found.same:>14,}  rows are the same"
    for name, counts in found.counts.items():
        yield f"  {counts.total():>14,}  {name}"
        for why, n in counts.most_common():
            yield f"    {n:>12,}  {_why(name, why)}"
            for sample in found.samples[name]:
                if sample.why == why:
                    yield f"                  {visible(sample.id)}: {visible(shorten(sample.text, 120))}"
                    if sample.other:
                        yield from (
                            f"                    {line}" for line in differences(sample.text, sample.other)[:4]
                        )


def _why(name: str, why: str) -> str:
    side = {"gained": "first", "lost": "second"}.get(name)
    return why if side is None else f"{why} (in the {side})"


def diff_page(found: Difference) -> str:
    """The difference as an HTML page."""
    parts = ["<h1>Two results</h1>"]
    sides = [
        [n, text(f"{m.dataset} / {m.stage}"), f"<code>{m.version}</code>", f"{m.ledger.rows.kept:,}", text(p)]
        for n, (p, m) in (("first", found.first), ("second", found.second))
    ]
    parts.append(table(["", "result", "version", "rows", "manifest"], sides, (3,)))
    parts.append("<h2>Settings and inputs</h2>")
    said = [[text(stage), text(line)] for stage, lines in found.settings.items() for line in lines]
    parts.append(table(["stage", "difference"], said) if said else '<p class="faint">They are equal.</p>')
    parts.append(f"<h2>Rows</h2><p>{found.same:,} rows are the same.</p>")
    counted = [[name, text(_why(name, w)), f"{n:,}"] for name, c in found.counts.items() for w, n in c.most_common()]
    parts.append(table(["", "why", "rows"], counted, (2,)))
    for name, samples in found.samples.items():
        if samples:
            parts.append(f"<h2>Samples: {name}</h2>")
        for s in samples:
            other = f'<p dir="auto"><ins>{text(shorten(s.other, 700))}</ins></p>' if s.other else ""
            parts.append(
                f'<div class="sample"><span class="tag">{text(_why(name, s.why))}</span> <code>{text(s.id)}</code>'
                f'<p dir="auto">{text(shorten(s.text, 700))}</p>{other}</div>'
            )
    return whole_page("Two results", "\n".join(parts))
