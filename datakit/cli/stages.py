"""Commands that make data: init, run and one for each stage."""

import json
from pathlib import Path
from typing import Any

import click

from datakit.cli.flags import StageCommand, common, flow, stage_flags
from datakit.cli.tables import ledger_lines
from datakit.manifest import data_dir, load
from datakit.engine.recipe import OFF, STAGES, load_recipe, write_recipe

CONTEXT = {"token_normalize_func": lambda t: t.replace("_", "-"), "max_content_width": 110}
Inputs = click.argument("inputs", nargs=-1, metavar="[INPUTS]...")


def _report(path: Path, as_json: bool) -> None:
    manifest = load(path)
    if as_json:
        summary = {
            "manifest": str(path),
            "data": str(data_dir(path, manifest)),
            "dataset": manifest.dataset,
            "stage": manifest.stage,
            "version": manifest.version,
            "ledger": manifest.ledger.to_json(),
            "facts": manifest.facts,
        }
        click.echo(json.dumps(summary, ensure_ascii=False, indent=1))
    else:
        click.echo("\n".join([*ledger_lines(manifest), f"manifest: {path}", f"data:     {data_dir(path, manifest)}"]))


def do(stage: str | None, inputs: tuple[str, ...], until: str | None = None, **flags: Any) -> None:
    """Run one stage, or with `stage` None a whole recipe, and report on it."""
    made, progress = flow(stage, inputs, until=until, **flags)
    try:
        path = made.all(until) if stage is None else made.stage(stage, inputs)
    finally:
        progress.close()
    _report(path, flags["as_json"])


@click.command(context_settings=CONTEXT)
@click.argument("dataset")
@click.argument("inputs", nargs=-1, required=True)
@click.option(
    "--kind", type=click.Choice(["auto", "text", "sft", "preference"]), default="auto", help="The rows' kind."
)
@click.option("--tokenizer", help="A tokenizer's file or folder; without one the recipe trains one on the dataset.")
def init(dataset: str, inputs: tuple[str, ...], kind: str, tokenizer: str | None) -> None:
    """Begin DATASET: write manifests/DATASET/recipe.toml with every option, its help and its default."""
    stages = tuple(s for s in STAGES if s not in OFF or (s == "tokenizer" and not tokenizer))
    path = write_recipe(Path.cwd(), dataset, kind, list(inputs), stages)
    if tokenizer:
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace('# tokenizer = ""', f"tokenizer = {json.dumps(tokenizer)}"), encoding="utf-8")
    load_recipe(Path.cwd(), dataset)
    click.echo(f"wrote {path.relative_to(Path.cwd())}: read it, then `datakit run --dataset {dataset}`")


@click.command(cls=StageCommand, context_settings=CONTEXT)
@common
@click.option("--until", type=click.Choice(STAGES), help="The last stage to run.")
def run(until: str | None, **flags: Any) -> None:
    """Run every stage of a dataset in its recipe's order; what is up to date is skipped."""
    do(None, (), until, **flags)


@click.command(cls=StageCommand, context_settings=CONTEXT)
@Inputs
@common
@stage_flags("ingest")
def ingest(inputs: tuple[str, ...], **flags: Any) -> None:
    """Read raw files, folders or globs into rows. What cannot be read is quarantined and counted."""
    do("ingest", inputs, **flags)


@click.command(cls=StageCommand, context_settings=CONTEXT)
@Inputs
@common
@stage_flags("normalize")
def normalize(inputs: tuple[str, ...], **flags: Any) -> None:
    """Mend encodings, characters and white space; every row stays, what changed is counted."""
    do("normalize", inputs, **flags)


@click.command(cls=StageCommand, context_settings=CONTEXT)
@Inputs
@common
@stage_flags("language")
def language(inputs: tuple[str, ...], **flags: Any) -> None:
    """Name each row's language; keep the languages asked for."""
    do("language", inputs, **flags)


@click.command(cls=StageCommand, context_settings=CONTEXT)
@Inputs
@common
@stage_flags("dedup")
def dedup(inputs: tuple[str, ...], **flags: Any) -> None:
    """Drop exact duplicates, and near duplicates whose true similarity to a row that stays reaches the threshold."""
    do("dedup", inputs, **flags)


@click.command(cls=StageCommand, context_settings=CONTEXT)
@Inputs
@common
@stage_flags("dedup_urls")
def dedup_urls(inputs: tuple[str, ...], **flags: Any) -> None:
    """Drop rows with the URL of an earlier row."""
    do("dedup_urls", inputs, **flags)


@click.command(cls=StageCommand, context_settings=CONTEXT)
@Inputs
@common
@stage_flags("dedup_lines")
def dedup_lines(inputs: tuple[str, ...], **flags: Any) -> None:
    """Cut lines or paragraphs of texts that stand in an earlier row; what was cut is recorded in cuts/."""
    do("dedup_lines", inputs, **flags)


@click.command(cls=StageCommand, context_settings=CONTEXT)
@Inputs
@common
@stage_flags("dedup_spans")
def dedup_spans(inputs: tuple[str, ...], **flags: Any) -> None:
    """Cut runs of three sentences that stand in an earlier row; what was cut is recorded in cuts/."""
    do("dedup_spans", inputs, **flags)


@click.command(cls=StageCommand, context_settings=CONTEXT)
@Inputs
@common
@stage_flags("dedup_ngrams")
def dedup_ngrams(inputs: tuple[str, ...], **flags: Any) -> None:
    """Drop rows, and cut lines of texts, whose n-grams mostly stand in earlier rows (a Bloom filter knows them)."""
    do("dedup_ngrams", inputs, **flags)


@click.command("filter", cls=StageCommand, context_settings=CONTEXT)
@Inputs
@common
@stage_flags("filter")
@click.option("--eval", "evals", multiple=True, help="Files of evaluation items: drop rows that hold some (also a,b).")
def filter_(inputs: tuple[str, ...], evals: tuple[str, ...], sets: tuple[str, ...], **flags: Any) -> None:
    """Drop rows that fail the quality rules; thresholds are set like --set gopher_quality.min_words=30."""
    named = (f"contamination.eval={','.join(evals)}",) if evals else ()
    do("filter", inputs, sets=(*sets, *named), **flags)


@click.command(cls=StageCommand, context_settings=CONTEXT)
@Inputs
@common
@stage_flags("classify")
def classify(inputs: tuple[str, ...], **flags: Any) -> None:
    """Score rows with a classifier; keep those above a threshold, or the best share of all (--top 0.1)."""
    do("classify", inputs, **flags)


@click.command(cls=StageCommand, context_settings=CONTEXT)
@Inputs
@common
@stage_flags("perplexity")
def perplexity(inputs: tuple[str, ...], **flags: Any) -> None:
    """Measure rows with n-gram models of their language; drop the tail (CCNet). Run the language stage before it."""
    do("perplexity", inputs, **flags)


@click.command(cls=StageCommand, context_settings=CONTEXT)
@Inputs
@common
@stage_flags("tokenize")
def tokenize(inputs: tuple[str, ...], **flags: Any) -> None:
    """Turn rows into token ids, and label spans on exactly what the assistant says."""
    do("tokenize", inputs, **flags)


@click.command(cls=StageCommand, context_settings=CONTEXT)
@Inputs
@common
@stage_flags("pack")
@stage_flags("tokenize", only=("tokenizer", "chat_template"))
def pack(inputs: tuple[str, ...], **flags: Any) -> None:
    """Fit token sequences into rows of seq_len + 1 and write the trainer's format. Raw files are tokenized first."""
    do("pack", inputs, **flags)
