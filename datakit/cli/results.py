"""Commands with the config of what they make: `datakit forecast` and `datakit export`."""

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import click

import datakit.report.forecast as forecasts
from datakit.cli.flags import Answer, DatasetName, ManifestPath, command, given, of_config, project, quiet
from datakit.cli.look import stale_line
from datakit.engine.executors import Progress
from datakit.engine.plan import sections
from datakit.engine.recipe import load_recipe, which_dataset
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
