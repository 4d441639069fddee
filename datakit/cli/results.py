"""Commands that make something of results: files for others, a comparison, a page."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import datakit.cli.flags as cli
import datakit.storage as storage
from datakit.cli.flags import CONTEXT, say, say_json
from datakit.cli.look import stale_line
from datakit.engine.recipe import FLOW, which_dataset
from datakit.errors import UsageError
from datakit.manifest import load

if TYPE_CHECKING:
    from datakit.report.export import Exported

_FSSPEC = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs"}
"""What `datasets` reads an object store with."""


@click.command(context_settings=CONTEXT)
@cli.manifest_argument
@click.option(
    "--output", required=True, type=cli.ANY_PATH, help="The folder: new, or empty; also s3://, gs:// or az://."
)
@click.option(
    "--format", default="parquet", type=click.Choice(["parquet", "jsonl", "jsonl.gz", "jsonl.zst"]), show_default=True,
    help="Format of the files; `datasets.load_dataset` reads the folder (jsonl.zst: with the package zstandard).",
)  # fmt: skip
@click.option("--add", multiple=True, metavar="COLUMN", help="A column that datakit made, as lang (also a,b), or all.")
@click.option("--license", default="", help="The license, as the Hub names it: apache-2.0, cc-by-4.0, ...")
@click.option("--title", default="", help="The card's title [default: the dataset's name]")
@click.option(
    "--file-mb", default=500, type=click.IntRange(1), show_default=True, help="Megabytes of values in a file."
)
@cli.json_flag("what was written")
def export(manifest: Path, output: Path, add: tuple[str, ...], as_json: bool, **values: Any) -> None:
    """Write the kept rows of MANIFEST into a folder for others: data, a dataset card (README.md) and SHA256SUMS.

    Rows have your own columns again, without those that datakit made. A packed set becomes rows of input_ids, labels
    and position_ids, with each of its sets as a split. The folder appears when it is complete.
    """
    from datakit.report.export import ExportConfig
    from datakit.report.export import export as export_rows

    columns = tuple(name.strip() for given in add for name in given.split(",") if name.strip())
    click.echo("".join(f"{line}\n" for line in stale_line(manifest)), nl=False, err=as_json)
    made = export_rows(manifest, output, ExportConfig(add=columns, **values))
    if as_json:
        splits = {s.name: {"rows": s.rows, "files": s.files} for s in made.splits}
        say_json({"folder": str(output), "splits": splits, "columns": made.columns})
        return
    say(f"{split.name}: {split.rows:,} rows in {len(split.files)} files" for split in made.splits)
    say([f"columns: {', '.join(made.columns)}"])
    say([] if values["license"] else ["the card states no license: --license NAME names it"])
    click.echo(f"wrote {output}: {_loading(storage.url_of(output), output, made)} reads it")


def _loading(url: str | None, output: Path, made: "Exported") -> str:
    """The call that reads an export; `datasets` does not look for a card in the folders of an object store."""
    if url is None:
        return f'datasets.load_dataset("{output}")' + ", with the package zstandard," * made.format.endswith(".zst")
    files = {split.name: f"{url}/data/{split.name}-*" for split in made.splits}
    reader, library = made.format.split(".")[0].replace("jsonl", "json"), _FSSPEC[url.split("://")[0]]
    return f'datasets.load_dataset("{reader}", data_files={json.dumps(files)}), after pip install {library},'


@click.command(context_settings=CONTEXT)
@click.argument("first")
@click.argument("second")
@click.option("--stage", help="The stage that is compared [default: the last one that both have]")
@click.option(
    "--samples", type=click.IntRange(0), default=3, show_default=True, help="Rows that are shown of each reason."
)
@click.option("--html", type=cli.HERE, help="Write an HTML page instead.")
@cli.json_flag("the difference")
def diff(first: str, second: str, stage: str | None, samples: int, html: Path | None, as_json: bool) -> None:
    """Show how two results differ: rows gained, lost and changed, by stage and reason, settings and inputs.

    FIRST and SECOND are manifests (also old ones: manifests/NAME/history/STAGE-VERSION.json), names of datasets, or
    versions as `datakit history` lists them.
    """
    from datakit.report.diff import diff as compare
    from datakit.report.diff import diff_lines, diff_page

    found = compare(*_both(first, second, stage), samples)
    if html is not None:
        html.write_text(diff_page(found), "utf-8")
    if as_json:
        say_json(found.to_json())
    else:
        say(diff_lines(found) if html is None else [f"wrote {html}"])


def _both(first: str, second: str, stage: str | None) -> tuple[Path, Path]:
    """The manifests of two results; of datasets, the last stage that both have."""
    for name in [stage] if stage else reversed(FLOW):
        one, other = (_manifest_of(Path.cwd(), given, name) for given in (first, second))
        if one and other and name != "tokenizer":
            return one, other
    raise UsageError(
        f"{first}, {second}: expected two manifests, datasets or versions with the stage {stage or 'of one name'}; "
        "`datakit status` lists the datasets, `datakit history` their versions"
    )


def _manifest_of(root: Path, given: str, stage: str) -> Path | None:
    """The manifest that an argument names: a file, a folder with one, a dataset's stage, or a version."""
    if storage.is_url(given):
        return storage.pull_result(storage.local(given))
    for path in (Path(given), Path(given) / "manifest.json", root / "manifests" / given / f"{stage}.json"):
        if path.is_file():
            return path
    if not re.fullmatch("[0-9a-f]{4,12}", given):
        return None
    found = {p.name: p for p in (root / "manifests").glob(f"*/history/*-{given}*.json") if ".run." not in p.name}
    return next(iter(found.values())) if len(found) == 1 else None


@click.command(context_settings=CONTEXT)
@cli.optional_manifest
@cli.dataset_option
@click.option("--output", type=cli.HERE, help="The page [default: NAME-report.html]")
def report(manifest: Path | None, dataset: str | None, output: Path | None) -> None:
    """Write one HTML page about a dataset: funnel, drops, signals, lengths, samples, doubtful duplicates, lineage.

    The page needs no network and no other file. MANIFEST is a result instead of the dataset's last one.
    """
    from datakit.report.page import report as page_of

    path = manifest or _last_result(Path.cwd(), which_dataset(Path.cwd(), dataset))
    say(stale_line(path))
    page = page_of(path).encode()
    target = output or Path(f"{load(path).dataset}-report.html")
    storage.write_whole(target.absolute(), page)
    click.echo(f"wrote {target} ({len(page):,} bytes)")


def _last_result(root: Path, dataset: str) -> Path:
    for stage in reversed([s for s in FLOW if s != "tokenizer"]):
        if (path := root / "manifests" / dataset / f"{stage}.json").is_file():
            return path
    raise UsageError(f"dataset {dataset!r} has no results: run it first, with `datakit run --dataset {dataset}`")
