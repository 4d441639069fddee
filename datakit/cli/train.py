"""Commands that train models for stages: `datakit classifier train` and `datakit tokenizer train`."""

import json
from pathlib import Path
from typing import Any

import click

from datakit.cli.stages import ANY_PATH, CONTEXT, config_flags, stage_command
from datakit.config import build
from datakit.engine.local import Local
from datakit.engine.progress import for_terminal
from datakit.engine.runner import Run, run_stage
from datakit.engine.store import OutputLayout
from datakit.filter.classifier import Examples, TrainClassifier
from datakit.manifest import data_dir, load


@click.group(context_settings=CONTEXT)
def tokenizer() -> None:
    """Tokenizers trained on your own data."""


tokenizer.add_command(stage_command("tokenizer"), "train")


@click.group(context_settings=CONTEXT)
def classifier() -> None:
    """Small models that tell wanted rows from unwanted rows."""


@classifier.command(context_settings=CONTEXT)
@click.argument("inputs", nargs=-1, metavar="[INPUTS]...")
@click.option("--positive", multiple=True, help="Rows like the wanted ones: files, a folder, or a manifest.")
@click.option("--negative", multiple=True, help="Rows like the unwanted ones.")
@click.option("--scores", help='With INPUTS: JSON lines {"id": ..., "score": ...} for their rows, from a larger model.')
@click.option("--min-score", type=float, default=0.5, show_default=True, help="Least score of wanted rows.")
@click.option("--dataset", default="classifier", show_default=True, help="The dataset name of the result.")
@click.option("--output", type=ANY_PATH, help="A folder for the whole result; also s3://, gs:// or az://.")
@click.option("--json", "as_json", is_flag=True, help="Print a machine-readable summary, and nothing else.")
def train(
    inputs: tuple[str, ...],
    positive: tuple[str, ...],
    negative: tuple[str, ...],
    scores: str | None,
    min_score: float,
    dataset: str,
    output: Path | None,
    as_json: bool,
    **values: Any,
) -> None:
    """Train a fastText classifier, measure it on held-out rows, and write its manifest: the --model of `classify`."""
    given = {name.removeprefix("classifier__"): value for name, value in values.items() if value is not None}
    stage = TrainClassifier(
        config=build(TrainClassifier.Config, given, "classifier train"),
        examples=Examples(positive=positive, negative=negative, rows=inputs, scores=scores or "", min_score=min_score),
    )
    layout = OutputLayout(root=Path.cwd(), dataset=dataset, output=output, final=stage.name)
    layout.check()
    progress = for_terminal(as_json)
    try:
        path = run_stage(Run(layout=layout, executor=Local(1), progress=progress), stage, stage.parents())
    finally:
        progress.close()
    _print_result(path, as_json)


train.params += config_flags("classifier")


def _print_result(path: Path, as_json: bool) -> None:
    manifest = load(path)
    model = data_dir(path, manifest) / manifest.shards[0].path
    facts = manifest.facts["classifier"]
    if as_json:
        click.echo(json.dumps({"manifest": str(path), "model": str(model), "classifier": facts}, indent=1))
        return
    dev = facts["dev"]
    held_out = sum(v for k, v in dev.items() if k not in ("precision", "recall"))
    click.echo(f"trained on {facts['rows']['positive']} positive and {facts['rows']['negative']} negative rows")
    click.echo(f"{held_out} of them held out: precision {dev['precision']}, recall {dev['recall']} at a score of 0.5")
    click.echo(f"manifest: {path}\nmodel:    {model}")
    click.echo(f"use it:   datakit classify INPUTS --model {path} --top 0.1")
