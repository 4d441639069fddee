"""The demo's report, from the manifests and metrics.jsonl: tables, and a list of problems."""

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from rich.text import Text

from datakit.manifest import Count, Manifest, load
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


def ledger_table(manifests: Sequence[Manifest]) -> Table:
    """Rows and tokens of each stage: in, kept, and dropped by reason."""
    table = Table(title="What became of every row and token", title_justify="left", expand=False)
    table.add_column("stage")
    for name in ("in", "kept", "out"):
        table.add_column(name, justify="right")
    table.add_column("why")
    for manifest in manifests:
        for unit, count in (("", manifest.ledger.rows), ("tokens", manifest.ledger.tokens)):
            if count is not None:
                table.add_row(f"  {unit}" if unit else manifest.stage, *_cells(count))
        table.add_section()
    return table


def _cells(count: Count) -> tuple[str, str, str, str]:
    gone = sum(count.dropped.values()) + count.quarantined
    why = reasons(count.dropped) + ([f"{count.quarantined:,} broken"] if count.quarantined else [])
    return f"{count.into:,}", f"{count.kept:,}", f"{gone:,}" if gone else "", "\n".join(why)


def reasons(dropped: Mapping[str, int]) -> list[str]:
    """Reasons with their counts, the largest first; a rule set's thresholds are listed below its sum."""
    sums, parts = Counter[str](), defaultdict[str, Counter[str]](Counter)
    for reason, n in sorted(dropped.items()):
        name, _, threshold = reason.partition(".")
        sums[name] += n
        if threshold:
            parts[name][threshold] += n
    lines = []
    for name, n in sums.most_common():
        lines.append(f"{n:,} {name}")
        lines += [f"  {part:,} {threshold}" for threshold, part in parts[name].most_common()]
    return lines


def found_table(found: Sequence[Found]) -> Table:
    """Planted rows, and how many of them were found."""
    table = Table(title="Planted on purpose, and found", title_justify="left")
    table.add_column("what")
    table.add_column("stage")
    for name in ("planted", "found", "others like it"):
        table.add_column(name, justify="right")
    for one in found:
        style = None if one.found == one.planted else "bold red"
        table.add_row(one.what, one.stage, str(one.planted), str(one.found), str(one.besides), style=style)
    return table


def training_table(pack: Manifest, training: Training) -> Table:
    """How full the packed rows are, and the figures of the training."""
    facts, header = pack.facts["packing"], pack.facts["packed"]
    table = Table(title="Packed and trained", title_justify="left", show_header=False)
    rate = training.tokens / training.seconds
    for name, value in (
        (
            "packed rows",
            f"{facts['packed_rows']:,} of {header['seq_len']:,} targets, {facts['sequences']:,} conversations",
        ),
        ("packing density", f"{facts['density']:.1%} real tokens, {facts['label_share']:.1%} of them labels"),
        ("vocabulary", f"{header['vocab_size']:,} tokens, trained on this data"),
        ("steps", f"{training.steps:,} in {training.seconds:,.0f} s"),
        ("loss", f"{training.first_loss:.3f} before, {training.last_loss:.3f} after"),
        (
            "speed",
            f"{rate:,.0f} tok/s, {training.label_tokens / training.seconds:,.0f} of them labels; padding not counted",
        ),
    ):
        table.add_row(name, value)
    return table


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


def answers_table(answers: dict[str, str]) -> Table:
    """The model's answers to questions from its training data. Such a small model recites, and makes mistakes."""
    title = "Questions and answers (such a small model can only recite its training data)"
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="bold", max_width=30, overflow="fold")
    table.add_column(overflow="fold")  # Chinese has no spaces to break a line at
    for prompt, answer in answers.items():
        table.add_row(Text(prompt), Text(answer))
        table.add_section()
    return table


def places_table(manifests: Path, out: Path) -> Table:
    """Where the files are."""
    table = Table(title="Where the files are", title_justify="left", show_header=False)
    for place, what in (
        (out / "raw", "the raw files"),
        (out / "planted.json", "what was planted in them"),
        (manifests / "recipe.toml", "what was asked for"),
        (manifests, "the manifests: what came out"),
        (Path("data") / manifests.name, "kept, dropped and quarantined rows, and the packed files"),
        (out / "packed_text", "Python's language reference, packed as plain text"),
        (out / "run", "checkpoint and metrics.jsonl"),
    ):
        table.add_row(Text(str(place)), what)
    return table
