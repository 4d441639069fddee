"""Loss and perplexity of a model on a packed set, for each source file.

python -m train.eval --model out/run --manifest manifests/held_out/pack.json
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from datakit.config import option
from datakit.errors import ConfigError, InputError, UsageError
from train.data.batches import DataConfig
from train.data.packed import VERIFY_HELP, PackedSet, Verify, place_of
from train.engine import checkpoint, flags
from train.engine.device import precision, usable_device
from train.engine.evaluator import Score, evaluate, total
from train.engine.start import check_fits
from train.model import lora


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalConfig:
    """Model and data."""

    model: str = option("", "checkpoint, Hugging Face folder, or a run's folder for its newest checkpoint")
    manifest: str = option("", "pack manifest to evaluate on")
    split: Literal["train", "validation"] = option("train", "part of the manifest")
    max_rows: int = option(0, "rows per row length to evaluate on, evenly spaced; 0: all")
    batch_rows: int = option(8, "packed rows per batch")
    dtype: Literal["auto", "bf16", "fp32"] = option("fp32", "arithmetic; auto: bf16 where fast")
    device: str = option("auto", "cpu, cuda, ...; auto: cuda where there is one")
    threads: int = option(0, "CPU threads; 0: all cores")
    verify: Verify = option("all", VERIFY_HELP)
    json: bool = option(False, "print the scores as one JSON object")

    def __post_init__(self) -> None:
        if not (self.model and self.manifest):
            raise UsageError("name the model with --model and a pack manifest with --manifest")
        if self.batch_rows < 1 or self.threads < 0 or self.max_rows < 0:
            raise ConfigError("batch_rows must be at least 1, threads and max_rows 0 or more")


def scores(config: EvalConfig) -> dict[str, Score]:
    """The score of each source file.

    Raises:
        DatakitError: model and data do not fit each other.
    """
    device = usable_device(config.device)
    if config.threads:
        torch.set_num_threads(config.threads)
    sets = PackedSet.open_all(
        place_of(config.manifest), "packed" if config.split == "train" else "validation", config.verify
    )
    folder = checkpoint.newest_of_run(Path(config.model))
    if sets[0].header.rows_per_unit != 1:
        raise InputError(f"{config.manifest}: has preference pairs; a loss over rejected answers is meaningless")
    model = lora.read(folder).to(device)
    for data in sets:
        check_fits(folder, model, data)
    batches = DataConfig(batch_rows=config.batch_rows)
    return evaluate(model, sets, batches, precision(config.dtype, device), config.max_rows)


def table(found: dict[str, Score]) -> str:
    """A text table: a line per source file, and one for all."""
    rows = [*found.items(), ("all", total(found))]
    wide = max(len(name) for name, _ in [*rows, ("source", None)])
    lines = [f"{'source':<{wide}}  {'label tokens':>12}  {'loss':>8}  {'perplexity':>11}"]
    lines += [f"{name:<{wide}}  {s.labels:>12,}  {s.loss:>8.4f}  {s.perplexity:>11.2f}" for name, s in rows]
    return "\n".join(lines)


def main(argv: Sequence[str], prog: str = "python -m train.eval") -> int:
    """Print the scores; returns the exit code."""
    config = flags.built(EvalConfig, flags.given(EvalConfig, prog, __doc__, argv))
    found = scores(config)
    plain = {"all": total(found).record(), "sources": {name: score.record() for name, score in found.items()}}
    print(json.dumps(plain) if config.json else table(found))
    return 0


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
