"""Check on your own data and machine that every optimization gives the same result: a table of equalities.

    python bench/selfcheck.py --manifest manifests/mydata/pack.json --preset tiny

Each line compares the loss and all gradients of one step, in fp32, with a plain reference: all logits, one masked
product over whole rows, all rows at once. The exit code is 1 if a difference is too large.
"""

import contextlib
import io
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, where `train` would be another file
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402, N812
from torch import Tensor  # noqa: E402

from datakit.config import options  # noqa: E402
from datakit.errors import ConfigError  # noqa: E402
from train import flags  # noqa: E402
from train.attention import Segments, grouped_attention, masked_attention  # noqa: E402
from train.config import LoopConfig  # noqa: E402
from train.data import Batch, Mixture, StepStream, collate  # noqa: E402
from train.device import need_compiler, usable_device  # noqa: E402
from train.loop import Loss  # noqa: E402
from train.model import CausalLM  # noqa: E402
from train.ranks import Ranks  # noqa: E402
from train.sft import LabelConfig, SFTConfig, label_loss  # noqa: E402
from train.start import Trainer, configured, make_model, open_data  # noqa: E402
from train.stream import MicroBatch  # noqa: E402

TOLERANCE = 1e-5
"""Largest allowed difference of the mean loss or its gradients; the order of summing in fp32 causes less."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the table."""

    name: str
    difference: float | None
    """The largest difference; None if the check was skipped."""
    remark: str = ""

    @property
    def holds(self) -> bool:
        """Whether the difference is small enough, and a number."""
        return self.difference is None or self.difference <= TOLERANCE

    def line(self) -> str:
        """Name, difference and result."""
        if self.difference is None:
            return f"{self.name:<34}  {'':>9}  skipped: {self.remark}"
        return (
            f"{self.name:<34}  {self.difference:>9.1e}  {'equal' if self.holds else 'NOT EQUAL'} {self.remark}".rstrip()
        )


Gradients = list[Tensor]


def mean_loss(model: CausalLM, objective: Loss, batches: Sequence[Batch]) -> Gradients:
    """The mean loss over all labels of the batches, and its gradients."""
    model.zero_grad(set_to_none=True)
    total, count = torch.zeros(()), 0
    for batch in batches:
        loss_sum, labels = objective(model, batch)[:2]
        loss_sum.backward()  # type: ignore[no-untyped-call]
        total, count = total + loss_sum.detach(), count + labels
    return [total / count, *(p.grad / count for p in model.parameters() if p.grad is not None)]


def difference(a: Gradients, b: Gradients) -> float:
    """The largest difference; infinite if a value is missing or not finite."""
    if len(a) != len(b):
        return float("inf")
    found = max(float((x - y).abs().max()) for x, y in zip(a, b, strict=True))
    return found if np.isfinite(found) else float("inf")


def dense_loss(model: CausalLM, hidden_BTD: Tensor, batch: Batch) -> tuple[Tensor, int]:
    """Cross-entropy from the logits of every position."""
    label_pos_L, targets_L = batch.counted
    logits_NV = model.lm_head(hidden_BTD.flatten(0, 1)).float()
    return F.cross_entropy(logits_NV[label_pos_L], targets_L, reduction="sum"), batch.labels


def reference_loss(model: CausalLM, batch: Batch) -> tuple[Tensor, int]:
    """The reference: all logits, masked attention."""
    hidden_BTD = model(batch.ids_BT, batch.segments.positions_BT, masked_attention(batch.segments))
    return dense_loss(model, hidden_BTD, batch)


def grouped_dense(model: CausalLM, batch: Batch) -> tuple[Tensor, int]:
    """All logits, grouped attention."""
    hidden_BTD = model(batch.ids_BT, batch.segments.positions_BT, grouped_attention(batch.segments))
    return dense_loss(model, hidden_BTD, batch)


def unpacked(data: Mixture, batch: Batch) -> Batch:
    """The same sequences, one per row."""
    bounds = [owner.packed.segments_of(row) for owner, row in map(data.find, batch.rows.tolist())]
    spans = [(i, int(a), int(b)) for i, row in enumerate(bounds) for a, b in itertools.pairwise(row)]
    width, (flat_L, targets_L) = batch.ids_BT.shape[1], batch.counted
    spans = [(i, a, min(b, width)) for i, a, b in spans if a < width]
    ids_ST = torch.full((len(spans), width), data.header.pad_id)
    places, targets = [], []
    for s, (i, a, b) in enumerate(spans):
        ids_ST[s, : b - a] = batch.ids_BT[i, a:b]
        here = (flat_L >= i * width + a) & (flat_L < i * width + b)
        places.append(flat_L[here] - (i * width + a) + s * width)
        targets.append(targets_L[here])
    return replace(
        batch, ids_BT=ids_ST, segments=Segments.of([np.array([0, b - a]) for _, a, b in spans], width),
        label_pos_L=torch.cat(places), targets_L=torch.cat(targets),
    )  # fmt: skip


def line(config: object) -> list[str]:
    """The command line that produces a configuration."""
    found: list[str] = []
    for o in options(type(config)):
        value, flag = getattr(config, o.name), o.name.replace("_", "-")
        if o.nested:
            found += line(value)
        elif o.type is bool:
            found.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            found.append(f"--{flag}={','.join(map(str, value)) if isinstance(value, tuple) else value}")
    return found


def checks(config: SFTConfig) -> Iterator[Check]:
    """Run all checks.

    Raises:
        DatakitError: manifest and model do not fit each other.
    """
    data = open_data(config, Ranks(device=usable_device("cpu")))
    model = make_model(config, data)
    batches = next(iter(StepStream(data, config.data, config.loop.seed)))
    expected = mean_loss(model, reference_loss, batches)

    def compare(objective: Loss, found: Sequence[Batch] = batches) -> float:
        return difference(mean_loss(model, objective, found), expected)

    yield Check("grouped attention = masked", compare(grouped_dense))
    yield Check("chunked loss = dense", compare(label_loss(LabelConfig(label_only=False, loss_chunk=7))))
    yield Check("label-only last layer = full", compare(label_loss(LabelConfig(label_only=True))))
    yield Check("unpacked = packed", compare(label_loss(LabelConfig()), [unpacked(data, batch) for batch in batches]))
    yield Check(
        "one row at a time = all at once", compare(label_loss(LabelConfig()), list(_single_rows(data, batches)))
    )
    yield _compiled(model, expected, batches)
    yield Check("resumed = uninterrupted", _resumed(config))
    yield _two_ranks(config)


def _single_rows(data: Mixture, batches: Sequence[Batch]) -> Iterator[Batch]:
    for batch in batches:
        for row in batch.rows:
            one = collate(data, MicroBatch(np.array([row]), batch.ids_BT.shape[1]), 1)
            if len(one.targets_L):
                yield one


def _compiled(model: CausalLM, expected: Gradients, batches: Sequence[Batch]) -> Check:
    try:
        need_compiler(torch.device("cpu"))
    except ConfigError as e:
        return Check("compiled = eager", None, str(e))
    model.compile_parts()
    found = [
        mean_loss(model, objective, batches)
        for objective in map(label_loss, (LabelConfig(label_only=False), LabelConfig()))
    ]
    return Check("compiled = eager", max(difference(f, expected) for f in found))


def _resumed(config: SFTConfig) -> float:
    """The largest difference of the losses of four steps in one run, and of two runs of two steps."""
    with tempfile.TemporaryDirectory() as folder:
        whole = _losses(config, Path(folder) / "whole", [(0, False)])
        parts = _losses(config, Path(folder) / "parts", [(2, False), (0, True)])
    if len(whole) != len(parts):
        return float("inf")
    return max(abs(a - b) for a, b in zip(whole, parts, strict=True))


def _two_ranks(config: SFTConfig) -> Check:
    """The largest difference of the losses of four steps in one process, and in two ranks."""
    name = "two ranks = one"
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        return Check(name, None, "this torch has no gloo")
    with tempfile.TemporaryDirectory() as folder:
        one = _losses(config, Path(folder) / "one", [(0, False)])
        again = replace(config, loop=_brief(config, Path(folder) / "two"))
        command = [sys.executable, "-P", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        command += ["--no-python", sys.executable, "-P", "-m", "train.sft", *line(again)]
        # -P: a train.py in the user's folder would hide this package
        paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
            return Check(name, float("inf"), errors[0] if errors else f"torchrun ended with {done.returncode}")
        two = _logged(Path(folder) / "two")
    return Check(name, max(abs(a - b) for a, b in zip(one, two, strict=True)))


def _brief(config: SFTConfig, out: Path, stop_at: int = 0, resume: bool = False) -> LoopConfig:
    return LoopConfig(
        out=str(out), steps=4, stop_at=stop_at, resume=resume, dtype="fp32", device="cpu", seed=config.loop.seed
    )


def _logged(out: Path) -> list[float]:
    lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [float(json.loads(line)["loss"]) for line in lines]


def _losses(config: SFTConfig, out: Path, runs: Sequence[tuple[int, bool]]) -> list[float]:
    for stop_at, resume in runs:
        with contextlib.redirect_stdout(io.StringIO()):
            Trainer(replace(config, loop=_brief(config, out, stop_at, resume)), label_loss(config.labels)).fit()
    return _logged(out)


def main(argv: Sequence[str], prog: str = "python bench/selfcheck.py") -> int:
    """Print the table; returns 0 if every equality holds, else 1."""
    config = configured(SFTConfig, prog, __doc__, argv)
    if config.loop.threads:
        torch.set_num_threads(config.loop.threads)
    print(f"{'':<34}  largest difference (at most {TOLERANCE:.0e})", flush=True)
    failed = 0
    for check in checks(config):
        print(check.line(), flush=True)
        failed += not check.holds
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
