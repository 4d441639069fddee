"""Commands of classifiers: `datakit classifier train` and `datakit classifier curve`."""

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

from datakit.cli.flags import Answer, File, ManifestPath, command, config_flags, project, quiet, stage_values
from datakit.cli.stages import OUTPUT
from datakit.config import build
from datakit.engine.executors import Local, Progress
from datakit.engine.runner import Run, run_stage
from datakit.engine.store import OutputLayout
from datakit.errors import UsageError
from datakit.filter.classifier import Examples, TrainClassifier, measured
from datakit.manifest import data_dir, load

_SCORES = 'JSON lines {"id": ..., "score": ...} for their rows, from a larger model.'


@command(json="a machine-readable summary", project=True, more=config_flags("classifier"))
def train(
    inputs: tuple[str, ...] = (),
    *,
    output: Annotated[Path | None, OUTPUT] = None,
    positive: Annotated[tuple[str, ...], "Rows like the wanted ones: files, a folder, or a manifest."] = (),
    negative: Annotated[tuple[str, ...], "Rows like the unwanted ones."] = (),
    scores: Annotated[str, f"With INPUTS: {_SCORES}"] = "",
    min_score: Annotated[float, "Least score of wanted rows."] = 0.5,
    dataset: Annotated[str, "The dataset name of the result."] = "classifier",
    **values: Any,
) -> Answer:
    """Train a fastText classifier, measure it on held-out rows, and write its manifest: the --model of `classify`."""
    flags, _ = stage_values(values)
    stage = TrainClassifier(
        config=build(TrainClassifier.Config, flags.get("classifier", {}), "classifier train"),
        examples=Examples(positive=positive, negative=negative, rows=inputs, scores=scores, min_score=min_score),
    )
    layout = OutputLayout(root=project(), dataset=dataset, output=output, final=stage.name)
    layout.check()
    with closing(Progress(shown=not quiet())) as progress:
        made = run_stage(Run(layout=layout, executor=Local(1), progress=progress), stage, stage.parents())
    path, manifest = made.path, made.manifest
    model, facts = data_dir(path, manifest) / manifest.shards[0].path, manifest.facts["classifier"]
    dev, rows = facts["dev"], facts["rows"]
    both = f"precision {dev['precision']}, recall {dev['recall']}"
    lines = [f"trained on {rows['positive']} positive and {rows['negative']} negative rows"]
    lines.append(f"{dev['rows']} of them held out: {both} at a score of 0.5")
    if best := dev.get("best_f1"):
        both = f"precision {best['precision']}, recall {best['recall']}"
        lines.append(f"AUC {dev['auc']}; the best F1 is {best['f1']} at a score of {best['min_score']}: {both}")
    use = f"use it:   datakit classify INPUTS --model {path} --top 0.1, or --min-score 0.9"
    lines += [f"manifest: {path}", f"model:    {model}", use]
    return {"manifest": str(path), "model": str(model), "classifier": facts}, lines


@command(json="all thresholds")
def curve(
    manifest: ManifestPath, *, plot: Annotated[File | None, "Write a picture, too: an SVG file."] = None
) -> Answer:
    """Show what each threshold keeps of the rows that the training of MANIFEST held out, and how well."""
    from datakit.report.page import render
    from datakit.report.tables import lines_of

    made = load(manifest)
    if made.stage != TrainClassifier.name:
        raise UsageError(f"{manifest}: expected the manifest of a classifier, found that of the stage {made.stage}")
    points, best = measured(made)
    if not points:
        raise UsageError(f"{manifest}: no rows of both sides were held out; train with --dev 0.1 and rows of both")
    rows = []
    for p in (p for p in points if round(p["min_score"] * 100) % 5 == 0 or p["min_score"] == best):
        precision = "-" if p["precision"] is None else f"{p['precision']:.3f}"
        shown = f"{p['min_score']:.2f}", f"{p['kept']:.1%}", precision, f"{p['recall']:.3f}", f"{p['f1']:.3f}"
        rows.append((*shown, "best F1" if p["min_score"] == best else ""))
    lines = lines_of(["score", "keeps", "precision", "recall", "F1", ""], rows)
    if plot is not None:
        if plot.suffix != ".svg":
            raise UsageError(f"{plot}: expected a name that ends in .svg")
        plot.write_text(render("curves.svg", points=points, best=best), encoding="utf-8")
        lines.append(f"wrote {plot}")
    return {"best": best, "points": points}, lines
