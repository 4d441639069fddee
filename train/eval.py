"""Scores of a model: loss and perplexity on a packed set by source file, and suites of questions.

python -m train.eval --model out/run --manifest manifests/held_out/pack.json
python -m train.eval --model out/run --suites arc_easy.jsonl,gsm8k.jsonl

Suites are the user's files in the layouts of ARC, HellaSwag, MMLU, C-Eval and GSM8K (train/suites.py).
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from datakit.config import option
from datakit.errors import ConfigError, InputError, UsageError
from train import checkpoint, flags, lora
from train.data import VERIFY_HELP, DataConfig, PackedSet, place_of
from train.device import allow_tf32, precision, usable_device
from train.evaluator import Score, evaluate, total
from train.generate import load
from train.start import check_fits
from train.suites import SuiteScore, read_suites, suite_score


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalConfig:
    """Model and data."""

    model: str = option("", "checkpoint, Hugging Face folder, or a run's folder for its newest checkpoint")
    manifest: str = option("", "pack manifest to evaluate on")
    suites: tuple[str, ...] = option((), "files of questions: multiple choice, or answers to generate (GSM8K)")
    shots: int = option(0, "solved questions before each question of a suite")
    shots_from: str = option("", "file with the solved questions")
    suite_tokens: int = option(256, "maximum tokens of a generated answer")
    split: Literal["train", "validation"] = option("train", "part of the manifest")
    max_rows: int = option(0, "rows per row length to evaluate on, evenly spaced; 0: all")
    batch_rows: int = option(8, "packed rows per batch")
    dtype: Literal["auto", "bf16", "fp32"] = option("auto", "arithmetic; auto: bf16 on CUDA, else fp32")
    tf32: bool = option(False, "on CUDA, compute fp32 products in TF32, as in training")
    attention: Literal["auto", "grouped", "masked", "flex", "varlen"] = option("auto", "as in training")
    device: str = option("auto", "cpu, cuda, ...; auto: cuda where there is one")
    threads: int = option(0, "CPU threads; 0: all cores")
    verify: bool = option(True, VERIFY_HELP)
    json: bool = option(False, "print the scores as one JSON object")

    def __post_init__(self) -> None:
        if not self.model or not (self.manifest or self.suites):
            raise UsageError("name the model with --model, and a pack manifest with --manifest or files with --suites")
        if min(self.batch_rows, self.suite_tokens) < 1 or min(self.threads, self.max_rows, self.shots) < 0:
            raise ConfigError("batch_rows and suite_tokens must be at least 1; threads, max_rows and shots 0 or more")


def scores(config: EvalConfig) -> dict[str, Score]:
    """The score of each source file.

    Raises:
        DatakitError: model and data do not fit each other.
    """
    device = usable_device(config.device, config.threads)
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
    return evaluate(model, sets, batches, arithmetic(config, device), config.max_rows, attention=config.attention)


def arithmetic(config: EvalConfig, device: torch.device) -> str:
    """The precision of the products, as `precision`; sets TF32."""
    allow_tf32(config.tf32)
    return precision(config.dtype if config.dtype != "auto" or device.type == "cuda" else "fp32", device)


def suite_scores(config: EvalConfig) -> dict[str, SuiteScore]:
    """The scores of each suite, by the name of its file.

    Raises:
        DatakitError: no model there, or a file that is no suite.
    """
    if not config.suites:
        return {}
    device = usable_device(config.device, config.threads)
    shots_from = Path(config.shots_from) if config.shots_from else None
    found = read_suites(config.suites, config.shots, shots_from)
    model, tokenizer, _ = load(Path(config.model))
    model, half = model.to(device), arithmetic(config, device)
    return {s.name: suite_score(model, s, tokenizer, half, new_tokens=config.suite_tokens) for s in found}


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
    plain: dict[str, Any] = {}
    if config.manifest:
        found = scores(config)
        plain = {"all": total(found).record(), "sources": {name: one.record() for name, one in found.items()}}
        print("" if config.json else table(found), end="" if config.json else "\n")
    suites = {name: one.record() for name, one in suite_scores(config).items()}
    if config.json:
        print(json.dumps(plain | ({"suites": suites} if suites else {})))
    for name, record in () if config.json else suites.items():
        values = "  ".join(f"{k} {v:.4f}" if isinstance(v, float) else f"{k} {v}" for k, v in record.items())
        print(f"{name}  {values}")
    return 0


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
