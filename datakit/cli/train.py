"""Commands that train models for stages: `datakit classifier train`, `tokenizer train` and `perplexity train`."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from datakit.cli.look import manifest_argument
from datakit.cli.stages import ANY_PATH, CONTEXT, HERE, config_flags, stage_command
from datakit.config import build
from datakit.engine.executors import Local, for_terminal
from datakit.engine.runner import Run, run_stage
from datakit.engine.store import OutputLayout
from datakit.errors import UsageError
from datakit.filter.classifier import Examples, Measured, TrainClassifier
from datakit.manifest import data_dir, load


@click.group(context_settings=CONTEXT)
def tokenizer() -> None:
    """Tokenizers trained on your own data."""


tokenizer.add_command(stage_command("tokenizer"), "train")

perplexity_train = stage_command("perplexity_model")


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
    click.echo(f"trained on {facts['rows']['positive']} positive and {facts['rows']['negative']} negative rows")
    click.echo(
        f"{dev['rows']} of them held out: precision {dev['precision']}, recall {dev['recall']} at a score of 0.5"
    )
    if best := dev.get("best_f1"):
        click.echo(
            f"AUC {dev['auc']}; the best F1 is {best['f1']} at a score of {best['min_score']}: precision "
            f"{best['precision']}, recall {best['recall']}"
        )
    if fitted := dev.get("calibration"):
        before, after = fitted.get("error_before"), fitted.get("error_after")
        error = "" if before is None else f": calibration error {before} before, {after} after"
        click.echo(f"scores are calibrated by Platt's sigmoid{error}")
    click.echo(f"manifest: {path}\nmodel:    {model}")
    click.echo(f"use it:   datakit classify INPUTS --model {path} --top 0.1, or --min-precision 0.9")


@classifier.command(context_settings=CONTEXT)
@manifest_argument
@click.option("--plot", type=HERE, help="Write a picture too: .png or .svg.")
@click.option("--json", "as_json", is_flag=True, help="Print all thresholds as JSON, and nothing else.")
def curve(manifest: Path, plot: Path | None, as_json: bool) -> None:
    """Show what each threshold keeps of the rows that the training of MANIFEST held out, and how well."""
    made = load(manifest)
    if made.stage != TrainClassifier.name:
        raise UsageError(f"{manifest}: expected the manifest of a classifier, found that of the stage {made.stage}")
    measured = Measured.of(made.facts["classifier"])
    if not measured.points:
        raise UsageError(f"{manifest}: no rows of both sides were held out; train with --dev 0.1 and rows of both")
    if plot is not None:
        from datakit.report.charts import save_curves

        points = measured.points
        lines = {
            "precision": [p.precision if p.precision is not None else math.nan for p in points],
            "recall": [p.recall or 0.0 for p in points],
            "F1": [p.f1 for p in points],
            "rows that stay": [p.kept for p in points],
        }
        save_curves(plot, [p.min_score for p in points], lines, measured.best, "lowest score that stays")
    if as_json:
        listed = [
            asdict(p) | {"kept": p.kept, "precision": p.precision, "recall": p.recall, "f1": p.f1}
            for p in measured.points
        ]
        click.echo(json.dumps({"best": measured.best, "points": listed}, indent=1))
        return
    click.echo(f"{'score':>6}  {'keeps':>6}  {'precision':>9}  {'recall':>6}  {'F1':>5}")
    for p in measured.points:
        if round(p.min_score * 100) % 5 == 0 or p.min_score == measured.best:
            precision = "-" if p.precision is None else f"{p.precision:.3f}"
            mark = "  best F1" if p.min_score == measured.best else ""
            click.echo(f"{p.min_score:>6.2f}  {p.kept:>6.1%}  {precision:>9}  {p.recall:>6.3f}  {p.f1:>5.3f}{mark}")
    if plot is not None:
        click.echo(f"wrote {plot}")
