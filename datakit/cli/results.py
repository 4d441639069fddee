"""Commands with the config of what they make: `datakit forecast` and `datakit export`."""

import os
import shlex
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import click

import datakit.engine.ablate as engine
import datakit.report.forecast as forecasts
import datakit.storage as storage
from datakit.cli.flags import Answer, DatasetName, ManifestPath, command, given, of_config, project, quiet
from datakit.cli.look import stale_line
from datakit.engine.executors import Progress
from datakit.engine.plan import sections
from datakit.engine.recipe import load_recipe, which_dataset
from datakit.manifest import load
from datakit.report.export import ExportConfig
from datakit.report.export import export as export_rows


@command(json="the forecast", project=True, more=of_config(forecasts.ForecastConfig))
def forecast(
    *,
    dataset: DatasetName = None,
    sets: Annotated[tuple[str, ...], "--set KEY=VALUE: Any config value, as for `datakit run`."] = (),
    **values: Any,
) -> Answer:
    """Say what a full run will take in time, memory and disk, and what each stage will drop.

    All raw files are read once, and rows are chosen by hashes of their texts, so that the duplicates of a chosen row
    are chosen too. The real stages run on the sample in a temporary folder; the project stays as it is. The sample has
    at least --rows rows and 32 MB, as far as half of the input goes. Drops have a 99.9% interval.
    """
    recipe = load_recipe(project(), which_dataset(project(), dataset)).changed(sections(sets, None))
    with closing(Progress(shown=not quiet())) as progress:
        found = forecasts.forecast(recipe, project(), forecasts.ForecastConfig(**given(values)), progress)
    return found.to_json(), forecasts.forecast_lines(found)


@command(project=True)
def ablate(*, dataset: DatasetName = None, workers: Annotated[int, "Workers; 0: all cores"] = 0) -> Iterator[str]:
    """Make the packed sets that lack one stage of a recipe each, to ask what each stage brings.

    The arms are the dataset itself (`all`), DATASET-without-STAGE for each stage that can be left out, and DATASET-raw
    without all of these, with one tokenizer: the recipe's. What arms share is done once, and what is up to date is
    skipped. An arm that holds the same as an earlier one is left out. The rows must be plain text. The last line is the
    command that trains and compares them.
    """
    found = dict[str, str]()
    for name, path in engine.ablate(dataset, project=project(), workers=workers, progress=True).items():
        ledger, found[name] = load(path).ledger, storage.url_of(path) or os.path.relpath(path)
        tokens = ledger.tokens.kept if ledger.tokens else 0
        yield f"{name:<24}{ledger.rows.kept:>12,} rows{tokens:>16,} tokens"
    if len(found) == 1:
        yield "nothing to compare: no stage that can be left out changed anything"
        return
    arms = " ".join(shlex.quote(f"{name}={path}") for name, path in found.items())
    yield f"next: datakit-train compare --arms {arms} --heldout NAME=FILE.jsonl"


@command(json="what was written", more=of_config(ExportConfig))
def export(
    manifest: ManifestPath,
    *,
    output: Annotated[Path, "The folder: new, or empty."],
    **values: Any,
) -> Answer:
    """Write the kept rows of MANIFEST into a folder for others: data, a dataset card (README.md) and SHA256SUMS.

    Rows have your own columns again, without those that datakit made. A packed set becomes rows of input_ids, labels
    and position_ids, with each of its sets as a split. The folder appears when it is complete.
    """
    for line in stale_line(manifest):
        click.echo(line, err=True)
    config = ExportConfig(**given(values))
    made = export_rows(manifest, output, config)
    lines = [f"{split.name}: {split.rows:,} rows in {len(split.files)} files" for split in made.splits]
    lines.append(f"columns: {', '.join(made.columns)}")
    if not config.license:
        lines.append("the card states no license: --license NAME names it")
    needs = ", with the package zstandard," if made.format.endswith(".zst") else ""
    lines.append(f'wrote {output}: datasets.load_dataset("{output}"){needs} reads it')
    splits = {s.name: {"rows": s.rows, "files": s.files} for s in made.splits}
    return {"folder": str(output), "splits": splits, "columns": made.columns}, lines
