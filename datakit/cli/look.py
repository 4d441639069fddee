"""Commands that change nothing: verify, status, history, forecast, show, explain, pairs, tune, peek, lint, unpack."""

import json
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

import datakit.cli.flags as cli
from datakit.cli.flags import CONTEXT, project, say, say_json
from datakit.cli.keep import ids_in, some_of
from datakit.engine.recipe import FLOW, which_dataset
from datakit.errors import InputError, IntegrityError, UsageError
from datakit.manifest import Manifest, ancestors, data_dir, load, purged_on
from datakit.manifest import verify as verify_manifest

if TYPE_CHECKING:
    from datakit.pack.format import Packed

LISTED = 10
"""Inputs and files of a result that are listed, unless all are asked for."""

# Results: verify, show, explain, pairs.


@cli.in_project
@click.command(context_settings=CONTEXT)
@cli.optional_manifest
@click.option("--roundtrip", is_flag=True, help="For a packed set: also compare every token and label with its source.")
@click.option(
    "--absent", type=click.File("rb"), metavar="IDS",
    help="Instead: prove that no file below data/ holds the rows with these ids, one on each line of IDS.",
)  # fmt: skip
@click.option("--dataset", help="With --absent: look at this dataset only.")
@cli.json_flag("a summary")
def verify(manifest: Path | None, roundtrip: bool, absent: BinaryIO | None, dataset: str | None, as_json: bool) -> None:
    """Recompute every checksum and count of MANIFEST and of all that it was made from, back to the raw inputs.

    With --absent, look into every shard, index and sketch of every version instead, by id, and for rows on the list of
    removed rows by content too. A packed file passes if the tokenized rows that it was made from are there and pass.
    """
    if absent is not None:
        _verify_absent(absent, dataset, as_json)
        return
    if manifest is None:
        raise UsageError("name a manifest to verify, or give --absent IDS")
    from datakit.engine.store import inspect

    checked = list(verify_manifest(manifest, inspect))
    if roundtrip and not any(problem for _, problem in checked):
        from datakit.report.peek import roundtrip_problem

        checked.append((f"{manifest}, token by token", roundtrip_problem(manifest)))
    _judge(checked, f"{manifest}: {{}} files and manifests fail", as_json)
    if not as_json:
        say([*stale_line(manifest), *(name for name, _ in checked if "were purged on" in name)])
        click.echo(f"{manifest}: all {len(checked)} files and manifests are unchanged, and the ledgers balance")


def _judge(checked: list[tuple[str, str | None]], said: str, as_json: bool) -> None:
    """Print problems, or a summary as JSON.

    Raises:
        IntegrityError: there are problems.
    """
    problems = [(name, problem) for name, problem in checked if problem]
    if as_json:
        say_json({"checked": len(checked), "problems": problems})
    if problems:
        lines = "\n".join(f"  {name}: {problem}" for name, problem in problems)
        raise IntegrityError(f"{said.format(f'{len(problems)} of {len(checked)}')}:\n{lines}")


def _verify_absent(ids: BinaryIO, dataset: str | None, as_json: bool) -> None:
    from datakit.read.removal import absent, not_listed

    wanted = ids_in(ids)
    checked = list(absent(project(), wanted, dataset))
    run = "After `datakit remove`, run the dataset, then `datakit gc --purge`"
    _judge(checked, f"{{}} files may hold the rows. {run}", as_json)
    if not checked:
        raise UsageError("data/ holds no files to look at")
    if as_json:
        return
    click.echo(
        f"none of {len(wanted):,} ids is in any of {len(checked):,} files below data/; raw files, exports and "
        "--output folders were not looked at"
    )
    if strange := not_listed(project(), wanted, dataset):
        click.echo(
            f"{len(strange):,} ids are on no list of removed rows, so that only their spelling was looked for: "
            f"{some_of(strange)}"
        )


def stale_line(manifest: Path) -> Iterator[str]:
    """A line where a result is not what a run would make now."""
    from datakit.engine.plan import why_stale_result

    if why := why_stale_result(manifest):
        dataset = manifest.parent.name
        yield f"STALE: {manifest}: {why}; `datakit run --dataset {dataset}` brings it up to date"


@click.command(context_settings=CONTEXT)
@cli.manifest_argument
@click.option("--rows", type=click.IntRange(0), default=3, help="Rows of each role to show [default: 3]")
@click.option("-v", "--verbose", is_flag=True, help="List all inputs and files.")
@cli.json_flag("the manifest")
def show(manifest: Path, rows: int, verbose: bool, as_json: bool) -> None:
    """Show a manifest: ledger, shards, facts, and some kept, dropped and quarantined rows."""
    from datakit.report.tables import ledger_lines, lines_of

    found = load(manifest)
    if as_json:
        click.echo(found.to_bytes().decode(), nl=False)
        return
    say([*ledger_lines(found), *stale_line(manifest)])
    parents = [
        (p.get("use", "from"), p.get("raw") or p["manifest"], p.get("version", p["sha256"][:12]),
         f"its first {p['limit']:,} rows" if "limit" in p else "")
        for p in found.parents
    ]  # fmt: skip
    shards = [(shard.path, shard.rows, "rows", shard.bytes, "bytes") for shard in found.shards]
    size = sum(shard.bytes for shard in found.shards)
    for listed, what in ((parents, "inputs"), (shards, f"files, {size:,} bytes in all")):
        shown = listed if verbose else listed[:LISTED]
        say(lines_of([""] * len(listed[0]), shown, indent=2) if shown else ())
        if more := len(listed) - len(shown):
            click.echo(f"  ... {more:,} more {what} (--verbose lists them)")
    if purged := purged_on(manifest, found):
        click.echo(f"  its shards were purged on {purged}: no row can be shown")
        return
    say(_first_rows(found, data_dir(manifest, found), rows))
    say(click.style(f"ALARM {alarm}", fg="red") for alarm in found.facts.get("alarms", []))


def _first_rows(manifest: Manifest, folder: Path, rows: int) -> Iterator[str]:
    """The first `rows` rows of each role, shortened."""
    from datakit.data import first_rows, read_rows
    from datakit.report.texts import body, shorten

    for role in ("kept", "dropped", "quarantine"):
        shards = (shard for shard in manifest.of_role(role) if shard.path.endswith(".parquet"))
        batches = first_rows((batch for shard in shards for batch in read_rows(folder, shard)), rows) if rows else ()
        for row in (row for batch in batches for row in batch.to_pylist()):
            line = f", line {row['line']}" if row.get("line") is not None else ""
            why = f"{line}  [{row['reason']}] {row.get('detail') or ''}" if row.get("reason") else ""
            yield f"--- {role}: {row.get('id') or row.get('file')}{why}"
            yield "    " + shorten(body(row))


@cli.in_project
@click.command(context_settings=CONTEXT)
@click.argument("row_id")
@cli.dataset_option
@cli.manifest_option("Search the history of this manifest instead.")
@cli.columns_option
def explain(row_id: str, dataset: str | None, manifest: Path | None, columns: int) -> None:
    """Show what each stage did with the row ROW_ID, and for a duplicate the row that stayed.

    Text of one row only is marked as [-...-] or {+...+}; white space does not count.
    """
    from datakit.report.explain import story

    paths = [manifest] if manifest else []
    if manifest is None:
        root = project()
        folder = root / "manifests" / which_dataset(root, dataset)
        paths = sorted(p for p in folder.glob("*.json") if not p.name.endswith(".run.json"))
        if not paths:
            raise UsageError(f"{folder}: holds no manifests; has the dataset been run?")
    lines = story(row_id, paths, columns)
    if not lines:
        stages = f"the {len(paths)} results of {paths[0].parent.name}" if len(paths) > 1 else str(paths[0])
        raise InputError(
            f"no row has the id {row_id!r} in {stages}; `datakit show {os.path.relpath(paths[0])}` lists some ids"
        )
    latest = max(paths, key=lambda path: FLOW.index(path.stem) if path.stem in FLOW else -1)
    say([*lines, *stale_line(latest)])


@click.command(context_settings=CONTEXT)
@cli.manifest_argument
@click.option("--stage", default="", help="The level: dedup, dedup_urls, dedup_repeats, dedup_semantic.")
@click.option("--lowest", type=click.IntRange(0), default=10, help="How many pairs to show [default: 10]")
@cli.columns_option
@cli.json_flag("the counts and the pairs")
def pairs(manifest: Path, stage: str, lowest: int, columns: int, as_json: bool) -> None:
    """Show the rows that dedup dropped beside the rows that stay for them, the least similar first.

    MANIFEST is of a dedup stage of any level, or of a later stage: then --stage names the level [default: dedup]. For
    rows that were dropped for their URL or their lines, the similarity is computed here. Text of the dropped row only
    is marked as [-...-], text of the row that stays only as {+...+}; white space does not count.
    """
    from datakit.report.pairs import drops, listing

    found = drops(manifest, lowest, stage)
    say_json(found.to_json()) if as_json else say(listing(found, columns))


# Datasets: status, history, forecast.


@cli.in_project
@click.command(context_settings=CONTEXT)
@click.option("--dataset", help="Only this dataset.")
@cli.json_flag("the states")
def status(dataset: str | None, as_json: bool) -> None:
    """Show every dataset of the project: its stages with rows, sizes and what is stale, and what `gc` would free."""
    from datakit.report.history import state_lines, states

    root = project()
    found = states(root, which_dataset(root, dataset) if dataset else None)
    if not found:
        raise UsageError("manifests/ holds no dataset: `datakit init NAME FILES...` begins one")
    say_json(found) if as_json else say(line for one in found for line in state_lines(one))


@cli.in_project
@click.command(context_settings=CONTEXT)
@cli.dataset_option
@click.option("--stage", help="Only this stage.")
@cli.json_flag("the versions")
def history(dataset: str | None, stage: str | None, as_json: bool) -> None:
    """Show the versions of each stage of a dataset, the oldest first: when each was made, and what changed.

    A * marks the current version.
    """
    from datakit.report.history import version_lines, versions

    root = project()
    name = which_dataset(root, dataset)
    found = versions(root, name, stage)
    if not found:
        raise UsageError(f"manifests/{name}/history holds no version{f' of {stage}' if stage else ''}")
    say_json(found) if as_json else say(version_lines(found))


@cli.in_project
@click.command(context_settings=CONTEXT)
@cli.dataset_option
@click.option("--share", type=float, default=0.01, show_default=True, help="Share of the rows in the sample, at least.")
@click.option("--rows", type=click.IntRange(0), default=10_000, show_default=True, help="Rows in it, at least.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the sample.")
@click.option("--workers", type=click.IntRange(1), help="Workers of the run [default: all cores]")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="Any config value, as for `datakit run`.")
@cli.json_flag("the forecast")
def forecast(dataset: str | None, workers: int | None, sets: tuple[str, ...], as_json: bool, **values: Any) -> None:
    """Say what a full run will take in time, memory and disk, and what each stage will drop.

    All raw files are read once, and rows are chosen by hashes of their texts, so that the duplicates of a chosen row
    are chosen too. The real stages run on the sample in a temporary folder; the project stays as it is. The sample has
    at least --rows rows and 32 MB, as far as half of the input goes. Drops have a 99.9% interval.
    """
    from datakit.engine.executors import for_terminal
    from datakit.engine.plan import sections
    from datakit.engine.recipe import load_recipe
    from datakit.report.forecast import ForecastConfig, forecast_lines
    from datakit.report.forecast import forecast as forecast_of

    root = project()
    recipe, progress = load_recipe(root, which_dataset(root, dataset)), for_terminal(as_json)
    try:
        config = ForecastConfig(workers=workers or 0, **values)
        found = forecast_of(recipe.changed(sections(sets, None)), root, config, progress)
    finally:
        progress.close()
    say_json(found.to_json()) if as_json else say(forecast_lines(found))


# The filter's thresholds: tune.


@cli.in_project
@click.command(context_settings=CONTEXT)
@click.argument("thresholds", nargs=-1, metavar="[RULE_SET[.THRESHOLD]]...")
@cli.dataset_option
@cli.manifest_option("A filter manifest instead.")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="Another limit, as for `datakit filter --set`.")
@click.option("--groups", type=click.IntRange(0), default=5, help="Languages and sources to show [default: 5]")
@click.option("--examples", type=click.IntRange(0), default=2, help="Rows on each side of a limit [default: 2]")
@click.option("--html", type=cli.HERE, help="Write a page with a histogram for each threshold.")
@cli.json_flag("everything")
def tune(
    thresholds: tuple[str, ...], dataset: str | None, manifest: Path | None, sets: tuple[str, ...], groups: int,
    examples: int, html: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Show what each threshold of the last filter run drops by itself, and what other limits would drop.

    For each threshold: the share of dropped rows, by language and source too, other limits with their shares, and rows
    just inside and just outside the limit. Only saved signals are read, and the text of the rows that are shown.
    RULE_SET may name rule sets that were not on, if the run measured what they need.
    """
    from datakit.report.tuning import tune as tuned
    from datakit.report.tuning import tuning_lines, tuning_page

    root = project()
    path = manifest or root / "manifests" / which_dataset(root, dataset) / "filter.json"
    found = tuned(path, thresholds, sets, examples)
    if as_json:
        say_json(found.to_json())
    elif html is not None:
        html.write_text(tuning_page(found, groups), encoding="utf-8")
        click.echo(f"wrote {html}")
    else:
        say(tuning_lines(found, groups))


# Packed sets: peek, lint, unpack.


@click.command(context_settings=CONTEXT)
@cli.manifest_argument
@click.option("--row", type=click.IntRange(0), help="The packed row to show [default: 0]")
@click.option("--id", "row_id", help="Show every packed row that holds tokens of the row with this id.")
@click.option("--set", "name", help="Which set, as `validation` or `train-256` [default: the first, or all with --id]")
@click.option("--html", type=cli.HERE, help="Write an HTML page instead.")
def peek(manifest: Path, row: int | None, row_id: str | None, name: str | None, html: Path | None) -> None:
    """Show a packed row as text: targets in green, each sequence with its source row, the padding."""
    from datakit.pack.inspect import open_all
    from datakit.pack.inspect import peek as open_row
    from datakit.report.peek import Origins, lines, page

    if row is not None and row_id is not None:
        raise UsageError("peek shows --row or --id, not both")
    sets, tokenizer = open_all(manifest)
    origins, sets = Origins.of(manifest), _chosen(sets, name)
    wanted = [(sets[0], row or 0)] if row_id is None else origins.packed_rows(sets, row_id)
    for rows, number in wanted:
        if number >= len(rows):
            there = f"{rows.name} has {len(rows):,} rows, counted from 0"
            raise UsageError(f"{manifest}: {there}; there is no row {number}")
    looks = [(rows, open_row(rows, tokenizer, number)) for rows, number in wanted]
    names = origins.names({s.row_key for _, look in looks for s in look.sequences})
    if html is None:
        say(line for rows, look in looks for line in lines(look, rows.name, names, len(rows)))
    else:
        html.write_text(page(str(manifest), [(rows.name, len(rows), look) for rows, look in looks], names), "utf-8")
        click.echo(f"wrote {html}")


def _chosen(sets: "list[Packed]", name: str | None) -> "list[Packed]":
    found = [s for s in sets if name in (None, s.name)]
    if not found:
        raise UsageError(f"no set is called {name!r}; there are {', '.join(s.name for s in sets)}")
    return found


@click.command(context_settings=CONTEXT)
@cli.manifest_argument
@cli.json_flag("the counts")
def lint(manifest: Path, as_json: bool) -> None:
    """Count by source what is wrong, or may be wrong, with a packed set's labels; fail if something is wrong."""
    from datakit.pack.inspect import WRONG, lint_rows, open_all
    from datakit.report.peek import Origins, lint_lines

    sets, tokenizer = open_all(manifest)
    findings = lint_rows(sets, tokenizer)
    names = Origins.of(manifest).sources()
    by_source = {names.get(file, f"file {file}"): counts for file, counts in sorted(findings.items())}
    if as_json:
        say_json({s: c.to_json() for s, c in by_source.items()})
    else:
        notes = [m.ledger.notes for _, m in ancestors(manifest) if m.stage == "tokenize"]
        say(lint_lines(by_source))
        say(f"tokenize: {count:,} rows {name}" for counts in notes for name, count in counts.items())
    wrong = [f"{s}: {n:,} {w}" for s, c in by_source.items() for w in WRONG if (n := getattr(c, w))]
    if wrong:
        raise IntegrityError(f"{manifest}: labels or tokens are wrong: {'; '.join(wrong)}")


@click.command(context_settings=CONTEXT)
@cli.manifest_argument
@click.option("--set", "name", help="Which set, as `validation` or `train-256` [default: all]")
@click.option("--output", type=cli.HERE, help="A JSONL file [default: the terminal]")
@click.option("--limit", type=click.IntRange(0), help="Only the first rows, so many.")
def unpack(manifest: Path, name: str | None, output: Path | None, limit: int | None) -> None:
    """Turn a packed set back into text: one JSON line a row, with the parts that the model learns to write."""
    from datakit.pack.inspect import open_all
    from datakit.report.peek import unpacked

    sets, tokenizer = open_all(manifest)
    rows = islice(unpacked(manifest, _chosen(sets, name), tokenizer), limit)
    lines: Iterable[str] = (json.dumps(row, ensure_ascii=False) for row in rows)
    if output is None:
        for line in lines:
            click.echo(line)
        return
    with output.open("w", encoding="utf-8") as f:
        count = sum(1 for line in lines if f.write(line + "\n"))
    click.echo(f"wrote {count:,} rows to {output}")
