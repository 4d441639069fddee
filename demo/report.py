"""The demo's report, from the manifests and metrics.jsonl: tables, and a list of problems."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from datakit.manifest import Manifest, load
from datakit.report.tables import lines_of
from demo.found import Found

STAGES = ("ingest", "language", "dedup", "filter", "tokenize", "pack")
LAST_STEPS = 10
"""The loss after training is the mean over this many steps: the loss of one step is too noisy."""


@dataclass(frozen=True, slots=True)
class Training:
    """The figures of a training run."""

    steps: int
    first_loss: float
    last_loss: float
    tokens: float
    """Real tokens that the model was trained on; padding is not counted."""
    label_tokens: int
    seconds: float

    @classmethod
    def read(cls, metrics: Path) -> "Training":
        """From a run's metrics.jsonl."""
        steps = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
        last = [step["loss"] for step in steps[-LAST_STEPS:]]
        return cls(
            steps=len(steps),
            first_loss=steps[0]["loss"],
            last_loss=sum(last) / len(last),
            tokens=sum(step["real_tok_s"] * step["step_ms"] / 1000 for step in steps),
            label_tokens=sum(step["label_tokens"] for step in steps),
            seconds=sum(step["step_ms"] for step in steps) / 1000,
        )


def load_all(folder: Path) -> list[Manifest]:
    """The manifests of the stages, in order."""
    return [load(folder / f"{stage}.json") for stage in STAGES]


def found_lines(found: Sequence[Found]) -> list[str]:
    """Planted rows, and how many of them were found."""
    rows = [(f.what, f.stage, f.planted, f.found, f.besides, "" if f.found == f.planted else "MISSED") for f in found]
    return lines_of(["what", "stage", "planted", "found", "others like it", ""], rows)


def training_lines(pack: Manifest, training: Training) -> list[str]:
    """How full the packed rows are, and the figures of the training."""
    facts, header = pack.facts["packing"], pack.facts["packed"][0]
    rows = f"{facts['packed_rows']:,} of {header['seq_len']:,} targets, {facts['sequences']:,} conversations"
    rate, labels = training.tokens / training.seconds, training.label_tokens / training.seconds
    told = {
        "packed rows": rows,
        "packing density": f"{facts['density']:.1%} real tokens, {facts['label_share']:.1%} of them labels",
        "vocabulary": f"{header['vocab_size']:,} tokens, trained on this data",
        "steps": f"{training.steps:,} in {training.seconds:,.0f} s",
        "loss": f"{training.first_loss:.3f} before, {training.last_loss:.3f} after",
        "speed": f"{rate:,.0f} tok/s, {labels:,.0f} of them labels; padding not counted",
    }
    return lines_of(["", ""], told.items())


def problems(manifests: Sequence[Manifest], found: Sequence[Found], training: Training) -> list[str]:
    """Problems: ledgers that do not balance or fit together, missed planted rows, a loss that did not fall."""
    wrong = [f"{m.stage}: {problem}" for m in manifests for problem in m.ledger.problems()]
    for before, after in itertools.pairwise(manifests):
        kept, into = before.ledger.rows.kept, after.ledger.rows.into
        if kept != into:
            wrong.append(f"{before.stage} kept {kept} rows, but {after.stage} took in {into}")
    wrong += [f"{f.stage}: of {f.planted} planted {f.what}, {f.found} found" for f in found if f.found != f.planted]
    if not training.last_loss < training.first_loss:
        wrong.append(f"the loss did not fall: {training.first_loss:.3f} before, {training.last_loss:.3f} after")
    return wrong


def place_lines(manifests: Path, out: Path) -> list[str]:
    """Where the files are."""
    places = {
        out / "raw": "the raw files",
        out / "planted.json": "what was planted in them",
        manifests / "recipe.toml": "what was asked for",
        manifests: "the manifests: what came out",
        Path("data") / manifests.name: "kept, dropped and quarantined rows, and the packed files",
        out / "packed_text": "Python's language reference, packed as plain text",
        out / "run": "checkpoint and metrics.jsonl",
    }
    return lines_of(["", ""], places.items())
