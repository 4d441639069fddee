"""What the trainer's parts cost, each in a process of its own: optimizers a step, activation checkpointing a pass.

    python bench/train_parts.py --manifest /tmp/gpteacher/manifest.json

Prints seconds of processor time, the least of some repetitions on one thread, with the optimizer's state or the peak of
memory. The model is the preset 26m.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, where `train` would be another file
from train.data import Batch, PackedSet, collate  # noqa: E402
from train.model import PRESETS, CausalLM  # noqa: E402
from train.optim import OptimConfig, make_optimizer  # noqa: E402
from train.order import MicroBatch  # noqa: E402
from train.sft import LabelConfig, label_loss  # noqa: E402

OPTIMIZERS = ["adamw:fp32", "adamw:bf16", "muon:fp32", "adafactor:fp32", "lion:fp32", "lion:bf16"]
CHECKPOINTS = ["checkpoint:0", "checkpoint:2", "checkpoint:1"]


def seconds(part: Callable[[], object], times: int) -> float:
    found = []
    for _ in range(times):
        begin = time.process_time()
        part()
        found.append(time.process_time() - begin)
    return min(found)


def measure(what: str, batch: Batch) -> str:
    torch.set_num_threads(1)
    model = CausalLM(replace(PRESETS["26m"], vocab_size=6400))
    model.init_weights(torch.Generator().manual_seed(0))
    objective, (name, value) = label_loss(LabelConfig()), what.split(":")

    def once() -> None:
        with torch.autocast("cpu", torch.bfloat16):
            total, count = tuple(objective(model, batch))[:2]
        (total / count).backward()

    if name == "checkpoint":
        model.checkpoint_every = int(value)
        cost = seconds(once, 3)
        return f"{cost:.2f} s a pass, peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB"
    once()
    optimizer = make_optimizer(model, OptimConfig(optimizer=name, state_dtype=value, lr=1e-5))
    cost = seconds(optimizer.step, 4)
    state = sum(v.nbytes for s in optimizer.state.values() for v in s.values())
    return f"{cost:.3f} s a step, state {state / 2**20:.1f} MiB"


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--manifest", required=True)
    p.add_argument("--batch-rows", type=int, default=4)
    p.add_argument("--part", help="one part alone, in this process")
    a = p.parse_args()
    if a.part:
        data = PackedSet.open(Path(a.manifest))
        micro = MicroBatch(torch.arange(a.batch_rows).numpy(), data.packed.header.seq_len)
        print(f"{a.part:<16} {measure(a.part, collate(data, micro, a.batch_rows))}", flush=True)
        return
    for part in (*OPTIMIZERS, *CHECKPOINTS):
        command = [
            sys.executable,
            __file__,
            "--manifest",
            a.manifest,
            "--batch-rows",
            str(a.batch_rows),
            "--part",
            part,
        ]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
