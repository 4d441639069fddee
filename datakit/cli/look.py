"""Commands that change nothing: verify, status, history, forecast, show, explain, pairs, tune."""

import difflib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import click

import datakit.storage as storage
from datakit.cli.keep import ids_in
from datakit.cli.stages import ANY_PATH, CONTEXT, HERE, in_project, ledger_lines, project
from datakit.config import assign, build
from datakit.engine.recipe import FLOW, which_dataset
from datakit.errors import InputError, IntegrityError, UsageError
from datakit.manifest import Manifest, data_dir, load, purged_on
from datakit.manifest import verify as verify_manifest

if TYPE_CHECKING:
    import pyarrow as pa

    from datakit.filter.rule_set import RuleSet

F = TypeVar("F", bound=Callable[..., Any])


LISTED = 10
"""Inputs and files of a result that are listed, unless all are asked for."""

# Arguments that several commands have.


def _manifest_file(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """A manifest, also by the folder that holds it (`--output`)."""
    return storage.pull_result(path) if path is not None else None


manifest_argument = click.argument("manifest", type=ANY_PATH, callback=_manifest_file)


def manifest_option(help: str) -> Callable[[F], F]:
    """`--manifest`, instead of the manifests of a dataset."""
    return click.option("--manifest", type=ANY_PATH, callback=_manifest_file, help=help)


def json_flag(what: str) -> Callable[[F], F]:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help=f"Print {what} as JSON, and nothing else.")


columns_option = click.option(
    "--columns",
    type=click.IntRange(0),
    help="Characters of a line: from 72 on, two texts stand in two columns; 0: never [default: the terminal's width]",
)


def _columns(given: int | None) -> int:
    """Characters of a line: as given, or of the terminal; 0 for a file or a pipe."""
    if given is not None:
        return given
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


# Results: verify, show, explain, pairs.


@in_project
@click.command(context_settings=CONTEXT)
@click.argument("manifest", type=ANY_PATH, callback=_manifest_file, required=False)
@click.option("--roundtrip", is_flag=True, help="For a packed set: also compare every token and label with its source.")
@click.option(
    "--absent", type=click.File("rb"), metavar="IDS",
    help="Instead: prove that no file below data/ holds the rows with these ids, one on each line of IDS.",
)  # fmt: skip
@click.option("--dataset", help="With --absent: look at this dataset only.")
@json_flag("a summary")
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
    problems = [(name, problem) for name, problem in checked if problem]
    if as_json:
        click.echo(json.dumps({"checked": len(checked), "problems": problems}, ensure_ascii=False, indent=1))
    if problems:
        lines = "\n".join(f"  {name}: {problem}" for name, problem in problems)
        raise IntegrityError(f"{manifest}: {len(problems)} of {len(checked)} files and manifests fail:\n{lines}")
    if not as_json:
        click.echo("".join(stale_line(manifest)), nl=False)
        click.echo("".join(f"{name}\n" for name, _ in checked if "were purged on" in name), nl=False)
        click.echo(f"{manifest}: all {len(checked)} files and manifests are unchanged, and the ledgers balance")


@in_project
@click.command(context_settings=CONTEXT)
@click.option("--dataset", help="Only this dataset.")
@json_flag("the states")
def status(dataset: str | None, as_json: bool) -> None:
    """Show every dataset of the project: its stages with rows, sizes and what is stale, and what `gc` would free."""
    from datakit.report.history import state_lines, states

    root = project()
    found = states(root, which_dataset(root, dataset) if dataset else None)
    if not found:
        raise UsageError("manifests/ holds no dataset: `datakit init NAME FILES...` begins one")
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        click.echo("\n".join(line for one in found for line in state_lines(one)))


@in_project
@click.command(context_settings=CONTEXT)
@click.option("--dataset", help="The dataset's name.")
@click.option("--stage", help="Only this stage.")
@json_flag("the versions")
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
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        click.echo("\n".join(version_lines(found)))


@in_project
@click.command(context_settings=CONTEXT)
@click.option("--dataset", help="The dataset's name.")
@click.option("--share", type=float, default=0.01, show_default=True, help="Share of the rows in the sample, at least.")
@click.option("--rows", type=click.IntRange(0), default=10_000, show_default=True, help="Rows in it, at least.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the sample.")
@click.option("--workers", type=click.IntRange(1), help="Workers of the run [default: all cores]")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="Any config value, as for `datakit run`.")
@json_flag("the forecast")
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
    if as_json:
        click.echo(json.dumps(found.to_json(), ensure_ascii=False, indent=1))
    else:
        click.echo("\n".join(forecast_lines(found)))


def stale_line(manifest: Path) -> Iterator[str]:
    """A line where a result is not what a run would make now."""
    from datakit.engine.plan import why_stale_result

    if why := why_stale_result(manifest):
        dataset = manifest.parent.name
        yield f"STALE: {manifest}: {why}; `datakit run --dataset {dataset}` brings it up to date\n"


def _verify_absent(ids: BinaryIO, dataset: str | None, as_json: bool) -> None:
    from datakit.read.removal import absent, not_listed

    wanted = ids_in(ids)
    checked = list(absent(project(), wanted, dataset))
    problems = [(name, problem) for name, problem in checked if problem]
    if as_json:
        click.echo(json.dumps({"checked": len(checked), "problems": problems}, ensure_ascii=False, indent=1))
    if problems:
        lines = "\n".join(f"  {name}: {problem}" for name, problem in problems)
        raise IntegrityError(
            f"{len(problems)} of {len(checked)} files may hold the rows. After `datakit remove`, run the dataset, then "
            f"`datakit gc --purge`:\n{lines}"
        )
    if not checked:
        raise UsageError("data/ holds no files to look at")
    if not as_json:
        click.echo(
            f"none of {len(wanted):,} ids is in any of {len(checked):,} files below data/; raw files, exports and "
            "--output folders were not looked at"
        )
        if strange := not_listed(project(), wanted, dataset):
            click.echo(
                f"{len(strange):,} ids are on no list of removed rows, so that only their spelling was looked for: "
                f"{', '.join(map(repr, strange[:3]))}{', ...' * (len(strange) > 3)}"
            )


@click.command(context_settings=CONTEXT)
@manifest_argument
@click.option("--rows", type=click.IntRange(0), default=3, help="Rows of each role to show [default: 3]")
@click.option("-v", "--verbose", is_flag=True, help="List all inputs and files.")
@json_flag("the manifest")
def show(manifest: Path, rows: int, verbose: bool, as_json: bool) -> None:
    """Show a manifest: ledger, shards, facts, and some kept, dropped and quarantined rows."""
    found = load(manifest)
    if as_json:
        click.echo(found.to_bytes().decode(), nl=False)
        return
    click.echo("\n".join(ledger_lines(found)))
    click.echo("".join(stale_line(manifest)), nl=False)
    parents = [
        f"  {p.get('use', 'from'):<9} {p.get('raw') or p['manifest']}  {p.get('version', p['sha256'][:12])}"
        + (f", its first {p['limit']:,} rows" if "limit" in p else "")
        for p in found.parents
    ]
    shards = [f"  {s.path:<32} {s.rows:>12,} rows {s.bytes:>16,} bytes" for s in found.shards]
    for lines, what in ((parents, "inputs"), (shards, f"files, {sum(s.bytes for s in found.shards):,} bytes in all")):
        shown = lines if verbose else lines[:LISTED]
        click.echo("".join(f"{line}\n" for line in shown), nl=False)
        if len(lines) > len(shown):
            click.echo(f"  ... {len(lines) - len(shown):,} more {what} (--verbose lists them)")
    if purged := purged_on(manifest, found):
        click.echo(f"  its shards were purged on {purged}: no row can be shown")
        return
    for line in _first_rows(found, data_dir(manifest, found), rows):
        click.echo(line)
    click.echo("".join(click.style(f"ALARM {a}\n", fg="red") for a in found.facts.get("alarms", [])), nl=False)


def _first_rows(manifest: Manifest, folder: Path, rows: int) -> Iterator[str]:
    """The first `rows` rows of each role, shortened."""
    from datakit.data import read_rows
    from datakit.report.texts import body, shorten

    for role in ("kept", "dropped", "quarantine"):
        left = rows
        for shard in manifest.of_role(role):
            if left == 0 or not shard.path.endswith(".parquet"):
                continue
            for batch in read_rows(folder, shard):
                for row in batch.slice(0, left).to_pylist():
                    line = f", line {row['line']}" if row.get("line") is not None else ""
                    why = f"{line}  [{row['reason']}] {row.get('detail') or ''}" if row.get("reason") else ""
                    yield f"--- {role}: {row.get('id') or row.get('file')}{why}"
                    yield "    " + shorten(body(row))
                    left -= 1
                if left == 0:
                    break


@in_project
@click.command(context_settings=CONTEXT)
@click.argument("row_id")
@click.option("--dataset", help="The dataset's name.")
@manifest_option("Search the history of this manifest instead.")
@columns_option
def explain(row_id: str, dataset: str | None, manifest: Path | None, columns: int | None) -> None:
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
    lines = story(row_id, paths, _columns(columns))
    if not lines:
        stages = f"the {len(paths)} results of {paths[0].parent.name}" if len(paths) > 1 else str(paths[0])
        raise InputError(
            f"no row has the id {row_id!r} in {stages}; `datakit show {os.path.relpath(paths[0])}` lists some ids"
        )
    click.echo("\n".join(lines))
    latest = max(paths, key=lambda path: FLOW.index(path.stem) if path.stem in FLOW else -1)
    click.echo("".join(stale_line(latest)), nl=False)


@click.command(context_settings=CONTEXT)
@manifest_argument
@click.option("--stage", default="", help="The level: dedup, dedup_urls, dedup_repeats, dedup_semantic.")
@click.option("--lowest", type=click.IntRange(0), default=10, help="How many pairs to show [default: 10]")
@columns_option
@json_flag("the counts and the pairs")
def pairs(manifest: Path, stage: str, lowest: int, columns: int | None, as_json: bool) -> None:
    """Show the rows that dedup dropped beside the rows that stay for them, the least similar first.

    MANIFEST is of a dedup stage of any level, or of a later stage: then --stage names the level [default: dedup]. For
    rows that were dropped for their URL or their lines, the similarity is computed here. N-grams name no row. Text of
    the dropped row only is marked as [-...-], text of the row that stays only as {+...+}; white space does not count.
    """
    from datakit.report.pairs import drops, listing

    found = drops(manifest, lowest, stage)
    if not as_json:
        click.echo("\n".join(listing(found, _columns(columns))))
        return
    near = {f"{similarity:.2f}": n for similarity, n in found.near.items()}
    counts = {"stage": found.stage, "exact": found.exact, "prefixes": found.prefixes, "near": near}
    counts["unnamed"] = found.unnamed
    summary = counts | {"others": found.others, "pairs": [pair.to_json() for pair in found.pairs]}
    click.echo(json.dumps(summary, ensure_ascii=False, indent=1))


# The filter's thresholds: tune.


@in_project
@click.command(context_settings=CONTEXT)
@click.argument("thresholds", nargs=-1, metavar="[RULE_SET[.THRESHOLD]]...")
@click.option("--dataset", help="The dataset's name.")
@manifest_option("A filter manifest instead.")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="Another limit, as for `datakit filter --set`.")
@click.option("--groups", type=click.IntRange(0), default=5, help="Languages and sources to show [default: 5]")
@click.option("--examples", type=click.IntRange(0), default=2, help="Rows on each side of a limit [default: 2]")
@click.option("--html", type=HERE, help="Write a page with a histogram for each threshold.")
@json_flag("everything")
def tune(
    thresholds: tuple[str, ...],
    dataset: str | None,
    manifest: Path | None,
    sets: tuple[str, ...],
    groups: int,
    examples: int,
    html: Path | None,
    as_json: bool,
) -> None:
    """Show what each threshold of the last filter run drops by itself, and what other limits would drop.

    For each threshold: the share of dropped rows, by language and source too, other limits with their shares, and rows
    just inside and just outside the limit. Only saved signals are read, and the text of the rows that are shown.
    RULE_SET may name rule sets that were not on, if the run measured what they need.
    """
    from datakit.filter.thresholds import findings
    from datakit.report.tuning import finding_lines, summary_lines, tuning_page

    root = project()
    path = manifest or root / "manifests" / which_dataset(root, dataset) / "filter.json"
    if not path.is_file():
        raise UsageError(f"{path}: is not there; run `datakit filter` first: it measures the rows")
    filtered = load(path)
    folder = data_dir(path, filtered)
    signals = _signals(path, filtered, folder)
    wanted = tuple(t.replace("-", "_") for t in thresholds)
    listed = [
        f
        for f in findings(signals, _rule_sets(filtered, wanted, sets), examples)
        if not wanted or any(f.name == t or f.name.startswith(f"{t}.") for t in wanted)
    ]
    if as_json:
        shown = [{name: value for name, value in asdict(f).items() if name != "values"} for f in listed]
        click.echo(json.dumps(shown, ensure_ascii=False, indent=1))
        return
    texts = _texts(filtered, folder, {row_id for f in listed for row_id, _ in (*f.inside, *f.outside)})
    if html is not None:
        title = f"{filtered.dataset} / {filtered.stage} {filtered.version}"
        html.write_text(tuning_page(title, listed, signals.num_rows, groups, texts), encoding="utf-8")
        click.echo(f"wrote {html}")
        return
    click.echo("\n".join(summary_lines(listed, signals.num_rows)))
    shown_sets = {f.name.partition(".")[0] for f in listed}
    if without := [r for r in filtered.config["rules"] if r not in shown_sets and not wanted]:
        click.echo(f"not in the table, since its saved signals do not tell: {', '.join(without)}")
    click.echo()
    for finding in listed:
        click.echo("\n".join(finding_lines(finding, signals.num_rows, groups, texts)))


def _signals(path: Path, manifest: Manifest, folder: Path) -> "pa.Table":
    import pyarrow as pa

    from datakit.data import read_rows

    shards = manifest.of_role("signals")
    if not shards:
        raise UsageError(f"{path}: holds no signals; run `datakit filter` with --signals on an input with rows")
    return pa.Table.from_batches([b for s in shards for b in read_rows(folder, s)])


def _rule_sets(manifest: Manifest, wanted: tuple[str, ...], sets: tuple[str, ...]) -> "list[RuleSet]":
    """The rule sets of the run, then others that were asked for, with the run's limits and `--set` values."""
    from datakit.filter.stage import FilterConfig, rule_set_class

    values = dict(manifest.config) | {"rules": []}
    for text in sets:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text}: expected key=value")
        assign(values, FilterConfig, key.removeprefix("filter."), value)
    config = build(FilterConfig, values, "filter")
    asked = [t.partition(".")[0] for t in wanted]
    for threshold in wanted:
        _check_threshold(threshold)
    found = []
    for name in dict.fromkeys([*manifest.config["rules"], *asked]):
        rule_set_class(name)  # refuses an unknown name
        rule_set = config.rule_set(name)
        if _was_measured(rule_set, manifest.facts["saved"]):
            found.append(rule_set)
        elif name in asked:
            raise UsageError(
                f"{name}: was not measured with these values; run `datakit filter` with this rule set first"
            )
    return found


def _check_threshold(wanted: str) -> None:
    """Refuse the name of a rule set or a threshold that does not exist, and name the nearest one."""
    from datakit.filter.stage import RULE_SETS, rule_set_class

    rules, dot, _ = wanted.partition(".")
    known, asked, what = list(RULE_SETS), rules, "rule set"
    if rules in RULE_SETS and dot:
        known, asked, what = [f"{rules}.{f.name}" for f in fields(rule_set_class(rules))], wanted, "threshold"
    if asked not in known:
        near = difflib.get_close_matches(asked, known, n=1, cutoff=0.0)
        raise UsageError(f"{wanted}: there is no such {what}; did you mean {near[0]}?")


def _was_measured(rule_set: "RuleSet", saved: dict[str, Any]) -> bool:
    """Whether the run counted all that the rule set's thresholds need."""
    own = json.loads(json.dumps(rule_set.counted_with()))
    shared = not rule_set.shared or saved.get("shared", False)
    return shared and (not rule_set.counts or saved["counted"].get(rule_set.name) == own)


def _texts(manifest: Manifest, folder: Path, ids: set[str]) -> dict[str, str]:
    """The text of a few rows by id, each on one line."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from datakit.data import read_rows
    from datakit.report.texts import body, shorten

    wanted, found = pa.array(sorted(ids), pa.string()), dict[str, str]()
    for shard in (*manifest.of_role("kept"), *manifest.of_role("dropped")):
        if len(found) == len(ids):
            break
        for batch in read_rows(folder, shard):
            rows = batch.filter(pc.is_in(batch.column("id"), wanted)).to_pylist()
            found |= {row["id"]: shorten(body(row), 160) for row in rows}
    return found
