"""Every stage, one line each. A new stage is one file and one line here; its command, recipe section and flags follow.

The registry holds import paths, so that `datakit --help` loads no stage.
"""

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datakit.stage import Stage


@dataclass(frozen=True, slots=True)
class Entry:
    """A stage: where its class is, its line in `datakit --help`, and whether recipes have it without naming it."""

    path: str
    summary: str
    default: bool = True


STAGES: dict[str, Entry] = {
    "ingest": Entry("datakit.read.stage:Ingest", "Read raw files into rows; quarantine what cannot be read."),
    "normalize": Entry("datakit.filter.normalize:Normalize", "Repair encodings, characters and white space.", False),
    "language": Entry("datakit.filter.language:Language", "Label each row's language; keep the languages you list."),
    "dedup_urls": Entry("datakit.dedup.urls:DedupUrls", "Drop rows with the URL of an earlier row.", False),
    "dedup": Entry("datakit.dedup.stage:Dedup", "Drop exact and verified near duplicates."),
    "dedup_lines": Entry("datakit.dedup.repeats:DedupLines", "Cut lines or paragraphs of earlier rows.", False),
    "dedup_spans": Entry("datakit.dedup.repeats:DedupSpans", "Cut runs of sentences of earlier rows.", False),
    "dedup_ngrams": Entry("datakit.dedup.ngrams:DedupNgrams", "Drop or cut texts with n-grams of earlier rows.", False),
    "filter": Entry("datakit.filter.stage:Filter", "Drop rows that fail the quality rules."),
    "classify": Entry("datakit.filter.classifier:Classify", "Keep the rows that a classifier scores best.", False),
    "perplexity": Entry(
        "datakit.filter.perplexity:Perplexity", "Keep the rows that a language model knows best.", False
    ),
    "tokenizer": Entry("datakit.pack.train_tokenizer:TrainTokenizer", "Train a tokenizer on the dataset.", False),
    "tokenize": Entry("datakit.pack.tokenize:Tokenize", "Turn rows into token ids and label spans."),
    "pack": Entry("datakit.pack.stage:Pack", "Fit token sequences into rows and write the trainer's format."),
    "classifier": Entry("datakit.filter.classifier:TrainClassifier", "Train a classifier from examples.", False),
}
"""In the order that data usually flows."""

FLOW: tuple[str, ...] = tuple(name for name in STAGES if name != "classifier")
"""The stages that a recipe can have; a classifier is trained by a command of its own."""


def stage_class(name: str) -> "type[Stage]":
    """The class of a stage, imported when it is asked for."""
    module, attribute = STAGES[name].path.split(":")
    found: type[Stage] = getattr(importlib.import_module(module), attribute)
    return found


def config_class(name: str) -> type:
    """The config class of a stage."""
    return stage_class(name).Config


def make_stage(name: str, config: Any) -> "Stage":
    """A stage with its config."""
    make: Any = stage_class(name)
    stage: Stage = make(config=config)
    return stage
