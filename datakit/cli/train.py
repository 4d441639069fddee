"""The command `datakit classifier train`."""

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

from datakit.cli.flags import Answer, command, config_flags, project, quiet, stage_values
from datakit.cli.stages import OUTPUT
from datakit.config import build
from datakit.engine.executors import Local, Progress
from datakit.engine.runner import Run, run_stage
from datakit.engine.store import OutputLayout
from datakit.filter.classifier import Examples, TrainClassifier
from datakit.manifest import data_dir
from datakit.report.tables import lines_of


@command(json="a machine-readable summary", project=True, more=config_flags("classifier"))
def train(
    inputs: tuple[str, ...] = (),
    *,
    output: Annotated[Path | None, OUTPUT] = None,
    positive: Annotated[tuple[str, ...], "Rows like the wanted ones: files, a folder, or a manifest."] = (),
    negative: Annotated[tuple[str, ...], "Rows like the unwanted ones."] = (),
    score_field: Annotated[str, "With INPUTS: the field of their rows with a score, from a larger model."] = "",
    min_score: Annotated[float, "Least score of wanted rows."] = 0.5,
    dataset: Annotated[str, "The dataset name of the result."] = "classifier",
    **values: Any,
) -> Answer:
    """Train a fastText classifier, measure it on held-out rows, and write its manifest: the --model of `classify`."""
    flags, _ = stage_values(values)
    stage = TrainClassifier(
        config=build(TrainClassifier.Config, flags.get("classifier", {}), "classifier train"),
        examples=Examples(positive=positive, negative=negative, rows=inputs, score=score_field, min_score=min_score),
    )
    layout = OutputLayout(root=project(), dataset=dataset, output=output, final=stage.name)
    layout.check()
    with closing(Progress(shown=not quiet())) as progress:
        made = run_stage(Run(layout=layout, executor=Local(1), progress=progress), stage, stage.parents())
    path, manifest = made.path, made.manifest
    model, facts = data_dir(path, manifest) / manifest.shards[0].path, manifest.facts["classifier"]
    dev, rows = facts["dev"], facts["rows"]
    lines = [f"trained on {rows['positive']} positive and {rows['negative']} negative rows"]
    if best := dev.get("best_f1"):
        at = f"the best F1 is {best['f1']} at a score of {best['min_score']}"
        lines.append(f"{dev['rows']} of them held out: AUC {dev['auc']}; {at}")
        points = sorted([*dev["thresholds"], best], key=lambda p: float(p["min_score"]))
        lines += lines_of([*best], [["-" if v is None else f"{v:g}" for v in p.values()] for p in points])
    use = f"use it:   datakit classify INPUTS --model {path} --top 0.1, or --min-score 0.9"
    lines += [f"manifest: {path}", f"model:    {model}", use]
    return {"manifest": str(path), "model": str(model), "classifier": facts}, lines
