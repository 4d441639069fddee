"""`datakit tokenizer`: train one on a dataset."""

from typing import Any

import click

from datakit.cli.flags import StageCommand, common, stage_flags
from datakit.cli.stages import CONTEXT, Inputs, do


@click.group(context_settings=CONTEXT)
def tokenizer() -> None:
    """Tokenizers made from your own data."""


@tokenizer.command(cls=StageCommand, context_settings=CONTEXT)
@Inputs
@common
@stage_flags("tokenizer")
def train(inputs: tuple[str, ...], **flags: Any) -> None:
    """Train a byte-level BPE tokenizer on files or on a dataset's newest rows; it is used where none is named."""
    do("tokenizer", inputs, **flags)
