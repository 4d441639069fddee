"""Commands that look at results and change none: from verify, show and explain to report, diff and unpack."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

import datakit.storage as storage
from datakit.cli.flags import Answer, DatasetName, File, InProject, ManifestPath, command, project
from datakit.engine.plan import why_stale_result
from datakit.engine.recipe import FLOW, which_dataset
from datakit.errors import InputError, IntegrityError, UsageError
from datakit.manifest import ancestors, load, purged_on
from datakit.manifest import verify as verify_manifest

if TYPE_CHECKING:
    from datakit.pack.format import Packed

LISTED = 10
"""Inputs and files of a result that are listed, unless all are asked for."""
NO_ROWS = ("classifier", "tokenizer", "perplexity_model")
"""Stages whose results are models."""
_SET = "Which set, as `validation` or `train-256`, or which part of it, as `train-00003`"


def stale_line(manifest: Path) -> Iterator[str]:
    """A line where a result is not what a run would make now."""
    if why := why_stale_result(manifest):
        dataset = manifest.parent.name
        yield f"STALE: {manifest}: {why}; `datakit run --dataset {dataset}` brings it up to date"


def results_of(root: Path, dataset: str | None) -> list[Path]:
    """The newest manifests of a dataset whose results are rows, in the order of the stages.

    Raises:
        UsageError: there are none.
    """
    name = which_dataset(root, dataset)
    paths = [root / "manifests" / name / f"{stage}.json" for stage in FLOW if stage not in NO_ROWS]
    if there := [path for path in paths if path.is_file()]:
        return there
    raise UsageError(f"dataset {name!r} has no results: run it first, with `datakit run --dataset {name}`")


# One result: verify, show, explain, pairs.


@command(json="a summary", project=True)
def verify(
    manifest: ManifestPath,
    *,
    roundtrip: Annotated[bool, "For a packed set: also compare every token and label with its source."] = False,
) -> tuple[object, ...]:
    """Recompute every checksum and count of MANIFEST and of all that it was made from, back to the raw inputs."""
    from datakit.engine.store import inspect

    checked = list(verify_manifest(manifest, inspect))
    if roundtrip and not any(problem for _, problem in checked):
        from datakit.report.peek import roundtrip_problem

        checked.append((f"{manifest}, token by token", roundtrip_problem(manifest)))
    lines = [*stale_line(manifest), *(name for name, _ in checked if "were purged on" in name)]
    lines.append(f"{manifest}: all {len(checked)} files and manifests are unchanged, and the ledgers balance")
    return _judged(checked, f"{manifest}: {{}} files and manifests fail", lines)


def _judged(checked: list[tuple[str, str | None]], said: str, lines: list[str]) -> tuple[object, ...]:
    """What a check says: a summary, the lines that hold if there are no problems, else an error."""
    problems = [(name, problem) for name, problem in checked if problem]
    summary = {"checked": len(checked), "problems": problems}
    if not problems:
        return summary, lines
    listed = "\n".join(f"  {name}: {problem}" for name, problem in problems)
    return summary, (), IntegrityError(f"{said.format(f'{len(problems)} of {len(checked)}')}:\n{listed}")


@command(json="the manifest")
def show(
    manifest: ManifestPath,
    *,
    rows: Annotated[int, "Rows of each role to show"] = 3,
    verbose: Annotated[bool, "-v/--verbose: List all inputs and files."] = False,
) -> Answer:
    """Show a manifest: ledger, shards, facts, and some kept, dropped and quarantined rows."""
    from datakit.report.tables import about_files, ledger_lines, sample_lines

    found = load(manifest)
    lines = [*ledger_lines(found), *stale_line(manifest), *about_files(found, None if verbose else LISTED)]
    if purged := purged_on(manifest, found):
        lines.append(f"  its shards were purged on {purged}: no row can be shown")
    else:
        lines += sample_lines((manifest, found), rows)
        lines += [click.style(f"ALARM {alarm}", fg="red") for alarm in found.facts.get("alarms", [])]
    return json.loads(found.to_bytes()), lines


@command(project=True)
def explain(row_id: str, *, dataset: DatasetName = None, manifest: InProject = None) -> Iterable[str]:
    """Show what each stage did with the row ROW_ID, and for a duplicate the row that stayed.

    Text of one row only is marked as [-...-] or {+...+}; white space does not count.
    """
    from datakit.report.compare import story

    paths = [manifest] if manifest else results_of(project(), dataset)
    lines = story(row_id, list(paths))
    if not lines:
        stages = f"the results of {paths[0].parent.name}" if len(paths) > 1 else str(paths[0])
        ids = f"`datakit show {os.path.relpath(paths[0])}` lists some ids"
        raise InputError(f"no row has the id {row_id!r} in {stages}; {ids}")
    return [*lines, *stale_line(paths[-1])]


@command(json="the counts and the pairs")
def pairs(
    manifest: ManifestPath,
    *,
    stage: Annotated[str, "The level: dedup, dedup_urls, dedup_repeats, dedup_semantic."] = "",
    lowest: Annotated[int, "How many pairs to show"] = 10,
) -> Answer:
    """Show the rows that dedup dropped beside the rows that stay for them, the least similar first.

    MANIFEST is of a dedup stage of any level, or of a later stage: then --stage names the level [default: dedup]. For
    rows that were dropped for their URL or their lines, the similarity is computed here; beside a row that repeats
    others is the one that has most of its text. Text of the dropped row only is marked as [-...-], text of the row that
    stays only as {+...+}; white space does not count.
    """
    from datakit.report.compare import drops, listing

    found = drops(manifest, lowest, stage)
    return found | {"pairs": [pair.to_json() for pair in found["pairs"]]}, listing(found)


# Datasets: status, history, report, diff.


@command(json="the states", project=True)
def status(*, dataset: Annotated[str | None, "Only this dataset."] = None) -> Answer:
    """Show every dataset of the project: its stages with rows, sizes and what is stale, and what `gc` would free."""
    from datakit.report.tables import state_lines, states

    found = states(project(), which_dataset(project(), dataset) if dataset else None)
    if not found:
        raise UsageError("manifests/ holds no dataset: `datakit init NAME FILES...` begins one")
    return found, (line for one in found for line in state_lines(one))


@command(json="the versions", project=True)
def history(*, dataset: DatasetName = None, stage: Annotated[str | None, "Only this stage."] = None) -> Answer:
    """Show the versions of each stage of a dataset, the oldest first: when each was made, and what changed.

    A * marks the current version.
    """
    from datakit.report.tables import version_lines, versions

    name = which_dataset(project(), dataset)
    found = versions(project(), name, stage)
    if not found:
        raise UsageError(f"manifests/{name}/history holds no version{f' of {stage}' if stage else ''}")
    return found, version_lines(found)


@command(project=True)
def report(
    manifest: ManifestPath | None = None,
    *,
    dataset: DatasetName = None,
    output: Annotated[File | None, "The page [default: NAME-report.html]"] = None,
) -> Iterator[str]:
    """Write one HTML page about a dataset: funnel, drops, signals, lengths, samples, doubtful duplicates, lineage.

    The page needs no network and no other file. MANIFEST is a result instead of the dataset's last one.
    """
    from datakit.report.survey import report as page_of

    path = manifest or results_of(project(), dataset)[-1]
    yield from stale_line(path)
    page = page_of(path).encode()
    target = output or Path(f"{load(path).dataset}-report.html")
    storage.write_whole(target.absolute(), page)
    yield f"wrote {target} ({len(page):,} bytes)"


@command(json="the difference", project=True)
def diff(
    first: str,
    second: str,
    *,
    stage: Annotated[str | None, "The stage that is compared [default: the last one that both have]"] = None,
    samples: Annotated[int, "Rows that are shown of each reason."] = 3,
) -> Answer:
    """Show how two results differ: rows gained, lost and changed, by stage and reason, settings and inputs.

    FIRST and SECOND are manifests (also old ones: manifests/NAME/history/STAGE-VERSION.json), names of datasets, or
    versions as `datakit history` lists them.
    """
    import datakit.report.compare as compare

    for name in [stage] if stage else reversed([stage for stage in FLOW if stage not in NO_ROWS]):
        one, other = (_manifest_of(project(), given, name) for given in (first, second))
        if one and other:
            break
    else:
        raise UsageError(
            f"{first}, {second}: expected two manifests, datasets or versions with the stage {stage or 'of one name'}; "
            "`datakit status` lists the datasets, `datakit history` their versions"
        )
    found = compare.diff(one, other, samples)
    return found, compare.diff_lines(found)


def _manifest_of(root: Path, given: str, stage: str) -> Path | None:
    """The manifest that an argument names: a file, a folder with one, a dataset's stage, or a version."""
    if storage.is_url(given):
        return storage.pull_result(given)
    for path in (Path(given), Path(given) / "manifest.json", root / "manifests" / given / f"{stage}.json"):
        if path.is_file():
            return path
    if not re.fullmatch("[0-9a-f]{4,12}", given):
        return None
    found = {p.name: p for p in (root / "manifests").glob(f"*/history/*-{given}*.json") if ".run." not in p.name}
    return next(iter(found.values())) if len(found) == 1 else None


# The filter's thresholds: tune.


@command(json="everything", project=True)
def tune(
    thresholds: tuple[str, ...] = (),
    *,
    dataset: DatasetName = None,
    manifest: InProject = None,
    sets: Annotated[tuple[str, ...], "--set KEY=VALUE: Another limit, as for `datakit filter --set`."] = (),
    groups: Annotated[int, "Languages and sources to show"] = 5,
    examples: Annotated[int, "Rows on each side of a limit"] = 2,
) -> Answer:
    """Show what each threshold of the last filter run drops by itself, and what other limits would drop.

    For each threshold: the share of dropped rows, by language and source too, other limits with their shares, and rows
    just inside and just outside the limit. Only saved signals are read, and the text of the rows that are shown.
    THRESHOLDS are RULE_SET or RULE_SET.THRESHOLD of rule sets that were on.
    """
    import datakit.report.tuning as tuning

    path = manifest or project() / "manifests" / which_dataset(project(), dataset) / "filter.json"
    found = tuning.tune(path, thresholds, sets, examples)
    return found.to_json(), tuning.tuning_lines(found, groups)


# Packed sets: peek, lint, unpack.


@command()
def peek(
    manifest: ManifestPath,
    *,
    row: Annotated[int | None, "The packed row to show [default: 0]"] = None,
    row_id: Annotated[str | None, "--id: Show every packed row that holds tokens of the row with this id."] = None,
    name: Annotated[str | None, f"--set: {_SET} [default: the first, or all with --id]"] = None,
    html: Annotated[File | None, "Write an HTML page instead."] = None,
) -> Iterable[str]:
    """Show a packed row as text: targets in green, each sequence with its source row, the padding."""
    from datakit.pack.inspect import open_all
    from datakit.pack.inspect import peek as open_row
    from datakit.report.peek import Origins, lines, page

    if row is not None and row_id is not None:
        raise UsageError("peek shows --row or --id, not both")
    sets, tokenizer = open_all(manifest)
    origins, sets = Origins(manifest), _chosen(sets, name)
    wanted = [(sets[0], row or 0)] if row_id is None else origins.packed_rows(sets, row_id)
    for rows, at in wanted:
        if at >= len(rows):
            there = f"{rows.name} has {len(rows):,} rows, counted from 0"
            raise UsageError(f"{manifest}: {there}; there is no row {at}")
    looks = [(rows.name, len(rows), open_row(rows, tokenizer, at)) for rows, at in wanted]
    names = origins.names({sequence.row_key for *_, look in looks for sequence in look.sequences})
    if html is None:
        return lines(looks, names)
    html.write_text(page(str(manifest), looks, names), "utf-8")
    return [f"wrote {html}"]


def _chosen(sets: "list[Packed]", name: str | None) -> "list[Packed]":
    from datakit.pack.format import set_of

    found = [s for s in sets if name in (None, s.name, set_of(s.name))]
    if not found:
        there = dict.fromkeys(set_of(s.name) for s in sets)
        raise UsageError(f"no set is called {name!r}; there are {', '.join(there)}")
    return found


@command(json="the counts")
def lint(manifest: ManifestPath) -> tuple[object, ...]:
    """Count by source what is wrong, or may be wrong, with a packed set's labels; fail if something is wrong."""
    from datakit.pack.inspect import WRONG, lint_rows, open_all
    from datakit.report.peek import Origins, lint_lines

    names = Origins(manifest).sources()
    by_source = {names.get(f, f"file {f}"): counts for f, counts in sorted(lint_rows(*open_all(manifest)).items())}
    notes = [m.ledger.notes for _, m in ancestors(manifest) if m.stage == "tokenize"]
    lines = [*lint_lines(by_source), *(f"tokenize: {n:,} rows {what}" for told in notes for what, n in told.items())]
    wrong = [f"{s}: {n:,} {w}" for s, c in by_source.items() for w in WRONG if (n := getattr(c, w))]
    error = IntegrityError(f"{manifest}: labels or tokens are wrong: {'; '.join(wrong)}")
    return {s: c.to_json() for s, c in by_source.items()}, lines, *([error] if wrong else [])


@command()
def unpack(
    manifest: ManifestPath,
    *,
    name: Annotated[str | None, f"--set: {_SET} [default: all]"] = None,
    output: Annotated[File | None, "A JSONL file [default: the terminal]"] = None,
    limit: Annotated[int | None, "Only the first rows, so many."] = None,
) -> Iterable[str]:
    """Turn a packed set back into text: one JSON line a row, with the parts that the model learns to write."""
    from datakit.pack.inspect import open_all
    from datakit.report.peek import unpacked

    sets, tokenizer = open_all(manifest)
    rows = islice(unpacked(manifest, _chosen(sets, name), tokenizer), limit)
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    if output is None:
        return lines
    with output.open("w", encoding="utf-8") as f:
        count = sum(1 for line in lines if f.write(line + "\n"))
    return [f"wrote {count:,} rows to {output}"]
