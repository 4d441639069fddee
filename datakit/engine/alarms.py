"""Alarms: what is so unusual about a stage's result that somebody should look at it, and what `--strict` does then.

An alarm never changes a result. It is printed when its stage ends and again at the end of the command, and it is in the
manifest's facts. Under `--strict`, alarms and quarantined records end the command with code 3 after the manifest of
their stage is written: the result can be looked at, and no later stage runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from datakit.data import read_rows
from datakit.errors import AlarmError, DatakitError, ManifestError
from datakit.manifest import Ledger, Manifest, data_dir, load, tables
from datakit.stage import Losses, Stage

LEAST_ROWS = 20
"""Of all rows or of a source: a share of fewer rows says little."""
_CHECK = "Check with `datakit show` which reasons drop them, and some of the rows; then change settings, or max_loss"
_UNREAD = "`datakit show` on the manifest of ingest lists some of the records and what is wrong with them"


def loss_alarms(stage: Stage, losses: Sequence[Mapping[str, Sequence[int]]]) -> list[str]:
    """Alarms about what a stage that decides row by row drops, or what ingest cannot read; `losses` are those of its
    units: (all, lost) rows by source. Stages that compare rows raise theirs in `reduce`."""
    total = Losses("records" if stage.work_unit == "raw" else "rows")
    for unit in losses:
        for source, (whole, lost) in unit.items():
            total.whole[source] += whole
            total.lost[source] += lost
    return total.alarms(stage.max_loss, LEAST_ROWS, _UNREAD if stage.work_unit == "raw" else _CHECK)


def result_alarms(stage: Stage, ledger: Ledger, known: Sequence[str]) -> Iterator[str]:
    """Alarms about the result as a whole; `known` are those that were raised already."""
    rows = ledger.rows
    if stage.makes_rows and rows.into and not rows.kept and not (known and rows.into >= LEAST_ROWS):
        yield f"keeps none of its {rows.into:,} rows"
    elif stage.work_unit == "raw" and not rows.into:
        yield "found no rows in the input files"
    elif stage.work_unit == "all" and not known:  # others look at each source
        yield from loss_alarms(stage, [{"": (rows.into, rows.into - rows.kept)}])
    yield from stage.alarms(ledger)


def stop_if_strict(strict: bool, path: Path, manifest: Manifest) -> None:
    """With `strict`, end the command after the result at `path` if it has quarantined records or alarms.

    Raises:
        AlarmError: there are some.
    """
    if not strict:
        return
    alarms = [*manifest.facts.get("alarms", [])]
    if bad := manifest.ledger.rows.quarantined:
        alarms.append(
            f"{bad:,} record{'s' * (bad != 1)} could not be read, the first of them {_first_bad(path, manifest)}"
        )
    if alarms:
        raise AlarmError(
            f"{manifest.stage}: {'; '.join(alarms)}. The result is written ({path}); without --strict the command goes "
            "on.",
            path,
        )


def _first_bad(path: Path, manifest: Manifest) -> str:
    shard = tables(manifest, "quarantine")[0]
    row = next(batch.slice(0, 1).to_pylist()[0] for batch in read_rows(data_dir(path, manifest), shard))
    where = f"{row['file']}, line {row['line']}, byte {row['byte_offset']}"
    return f"{where}: {row['reason']}: {row['detail']} (found {bytes(row['raw'])[:80]!r})"


def refuse_empty(target: Path, allow_empty: bool, stage: Stage, ledger: Ledger) -> None:
    """Keep a result that trainers read from being replaced by one without rows.

    Raises:
        DatakitError: it would be.
    """
    if allow_empty or not stage.guards_rows or ledger.rows.kept or not target.is_file():
        return
    try:
        old = load(target)
    except ManifestError:
        return  # damaged: nothing can be read from it
    if old.ledger.rows.kept:
        raise DatakitError(
            f"{target}: holds {old.ledger.rows.kept:,} rows (version {old.version}), and this run kept none, so it "
            "stays as it is. Look at what the earlier stages dropped; --allow-empty replaces it"
        )
