"""Commands that train models for stages: `datakit classifier train`, `tokenizer train` and `perplexity train`."""

from pathlib import Path
from typing import Any

import click

import datakit.cli.flags as cli
from datakit.cli.flags import CONTEXT, say, say_json
from datakit.cli.stages import stage_command
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


def perplexity_train() -> click.Command:
    """`datakit perplexity train`."""
    return stage_command("perplexity_model")


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
@click.option("--output", type=cli.ANY_PATH, help="A folder for the whole result; also s3://, gs:// or az://.")
@cli.json_flag("a machine-readable summary")
def train(
    inputs: tuple[str, ...], positive: tuple[str, ...], negative: tuple[str, ...], scores: str | None, min_score: float,
    dataset: str, output: Path | None, as_json: bool, **values: Any,
) -> None:  # fmt: skip
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


train.params += cli.config_flags("classifier")


def _print_result(path: Path, as_json: bool) -> None:
    manifest = load(path)
    model = data_dir(path, manifest) / manifest.shards[0].path
    facts = manifest.facts["classifier"]
    if as_json:
        say_json({"manifest": str(path), "model": str(model), "classifier": facts})
        return
    dev = facts["dev"]
    lines = [
        f"trained on {facts['rows']['positive']} positive and {facts['rows']['negative']} negative rows",
        f"{dev['rows']} of them held out: precision {dev['precision']}, recall {dev['recall']} at a score of 0.5",
    ]
    if best := dev.get("best_f1"):
        both = f"precision {best['precision']}, recall {best['recall']}"
        lines.append(f"AUC {dev['auc']}; the best F1 is {best['f1']} at a score of {best['min_score']}: {both}")
    use = f"use it:   datakit classify INPUTS --model {path} --top 0.1, or --min-precision 0.9"
    say([*lines, f"manifest: {path}", f"model:    {model}", use])


@classifier.command(context_settings=CONTEXT)
@cli.manifest_argument
@click.option("--plot", type=cli.HERE, help="Write a picture, too: an SVG file.")
@cli.json_flag("all thresholds")
def curve(manifest: Path, plot: Path | None, as_json: bool) -> None:
    """Show what each threshold keeps of the rows that the training of MANIFEST held out, and how well."""
    from datakit.report.page import render
    from datakit.report.tables import lines_of

    made = load(manifest)
    if made.stage != TrainClassifier.name:
        raise UsageError(f"{manifest}: expected the manifest of a classifier, found that of the stage {made.stage}")
    measured = Measured.of(made.facts["classifier"])
    points = list(measured.points)
    if not points:
        raise UsageError(f"{manifest}: no rows of both sides were held out; train with --dev 0.1 and rows of both")
    if plot is not None:
        if plot.suffix != ".svg":
            raise UsageError(f"{plot}: expected a name that ends in .svg")
        plot.write_text(render("curves.svg", points=points, best=measured.best), encoding="utf-8")
    if as_json:
        say_json({"best": measured.best, "points": points})
        return
    rows = [
        (f"{p['min_score']:.2f}", f"{p['kept']:.1%}", "-" if p["precision"] is None else f"{p['precision']:.3f}",
         f"{p['recall']:.3f}", f"{p['f1']:.3f}", "best F1" if p["min_score"] == measured.best else "")
        for p in points if round(p["min_score"] * 100) % 5 == 0 or p["min_score"] == measured.best
    ]  # fmt: skip
    say(lines_of(["score", "keeps", "precision", "recall", "F1", ""], rows))
    say([f"wrote {plot}"] if plot is not None else [])
