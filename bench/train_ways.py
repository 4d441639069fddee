"""What each saving is worth: forward and backward passes of the same rows, ways taking turns in one process.

    python bench/train_ways.py --manifest /tmp/gpteacher/manifest.json

Prints a table of the least seconds of processor time on one thread, and how often the default could have passed in the
same time. Turns in one process on the same rows are what a crowded machine disturbs least; bench/train.py --of each
compares whole runs, with their memory. The model is the preset 26m in bf16.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, where `train` would be another file
from bench.selfcheck import grouped_dense, reference_loss, unpacked  # noqa: E402
from train.data.batches import Batch, collate  # noqa: E402
from train.data.order import MicroBatch  # noqa: E402
from train.data.packed import Mixture  # noqa: E402
from train.engine.loop import Loss  # noqa: E402
from train.model.decoder import PRESETS, CausalLM  # noqa: E402
from train.sft import LabelConfig, label_loss  # noqa: E402


def rows_of(data: Mixture, rows: Sequence[int]) -> Batch:
    return collate(data, MicroBatch(np.array(rows), data.header.seq_len), len(rows))


def passed(model: CausalLM, loss: Loss, batches: Sequence[Batch], dtype: torch.dtype | None = torch.bfloat16) -> None:
    for batch in batches:
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            total = loss(model, batch)[0]
        total.backward()  # type: ignore[no-untyped-call]
    model.zero_grad(set_to_none=True)


def made(compiled: bool = False, checkpoint_every: int = 0) -> CausalLM:
    model = CausalLM(replace(PRESETS["26m"], vocab_size=6400))
    model.init_weights(torch.Generator().manual_seed(0))
    model.checkpoint_every = checkpoint_every
    if compiled:
        model.compile_parts()
    return model


def ways(data: Mixture, rows: int) -> dict[str, Callable[[], None]]:
    """Passes by name; the first is the default, the others change one thing."""
    together, each = [rows_of(data, range(rows))], [rows_of(data, [row]) for row in range(rows)]
    halves = [rows_of(data, range(at, at + rows // 2)) for at in (0, rows // 2)]
    apart, model, lean = [unpacked(data, together[0])], made(), label_loss(LabelConfig())
    narrow = [unpacked(data, batch) for batch in each]
    whole = label_loss(LabelConfig(label_only=False))
    return {
        "default": partial(passed, model, lean, together),
        "compiled": partial(passed, made(compiled=True), lean, together),
        "rows in two halves": partial(passed, model, lean, halves),
        "rows one by one": partial(passed, model, lean, each),
        "one sequence a row, padded to 512": partial(passed, model, lean, apart),
        "the same, the sequences of one packed row at a time": partial(passed, model, lean, narrow),
        "fp32": partial(passed, model, lean, together, None),
        "every position in the last layer": partial(passed, model, whole, together),
        "every logit": partial(passed, model, grouped_dense, together),
        "masked attention": partial(passed, model, label_loss(LabelConfig(attention="masked")), together),
        "every logit, masked attention": partial(passed, model, reference_loss, together),
        "every logit, masked attention, fp32": partial(passed, model, reference_loss, together, None),
        "chunks of 512 labels": partial(passed, model, label_loss(LabelConfig(loss_chunk=512)), together),
        "all activations computed again": partial(passed, made(checkpoint_every=1), lean, together),
    }


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--manifest", required=True)
    p.add_argument("--rows", type=int, default=4)
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--seconds", type=float, default=220.0, help="no round begins after so many, by the wall")
    a = p.parse_args()
    torch.set_num_threads(1)
    found = ways(Mixture.open([Path(a.manifest)]), a.rows)
    costs: dict[str, list[float]] = {name: [] for name in found}
    start = time.monotonic()
    for turn in range(a.rounds + 1):  # the first compiles and warms up
        if turn > 1 and time.monotonic() - start > a.seconds:
            break
        for name, way in found.items():
            begin = time.process_time()
            way()
            if turn:
                costs[name].append(time.process_time() - begin)
    first = min(costs["default"])
    print(f"{len(costs['default'])} rounds of {a.rows} rows\n\n| | CPU s a pass | in defaults |\n| --- | --- | --- |")
    for name, all_costs in costs.items():
        print(f"| {name} | {min(all_costs):.2f} | {min(all_costs) / first:.2f} |")


if __name__ == "__main__":
    main()
