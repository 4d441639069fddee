"""What the trainer's parts cost, each in a process of its own: optimizers a step; checkpointing and experts a pass.

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
from functools import partial
from pathlib import Path

import torch

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, where `train` would be another file
from train.data.batches import Batch, collate  # noqa: E402
from train.data.order import MicroBatch  # noqa: E402
from train.data.packed import PackedSet  # noqa: E402
from train.engine.optim import OptimConfig, make_optimizer  # noqa: E402
from train.model.decoder import (  # noqa: E402
    MLP,
    PRESETS,
    CausalLM,
)
from train.model.experts import MoE, MoeConfig  # noqa: E402
from train.sft import LabelConfig, label_loss  # noqa: E402

OPTIMIZERS = ["adamw", "adamw8bit", "muon"]
EXPERTS = ["experts:4x1", "experts:8x2", "experts:32x4", "experts:64x8"]
CHECKPOINTS = ["checkpoint:0", "checkpoint:2", "checkpoint:1"]


def seconds(part: Callable[[], object], times: int) -> float:
    found = []
    for _ in range(times):
        begin = time.process_time()
        part()
        found.append(time.process_time() - begin)
    return min(found)


def experts(sizes: str) -> str:
    """A layer of the preset's width whose active experts have its MLP's size together, on 2,048 tokens in bf16."""
    number, active = map(int, sizes.split("x"))
    layer = MoE(512, 1408 // active, MoeConfig(num_experts=number, experts_per_token=active), MLP)
    x_ND = torch.randn(2048, 512, dtype=torch.bfloat16, requires_grad=True)

    def once(way: str) -> None:
        layer._can_group = lambda x_MD: way == "one product"  # type: ignore[method-assign]
        with torch.autocast("cpu", torch.bfloat16):
            out_ND = one_by_one(layer, x_ND) if way == "one by one" else layer(x_ND)
        out_ND.float().square().mean().backward()

    found: dict[str, list[float]] = {"one by one": [], "segments": [], "one product": []}
    for _ in range(7):
        for way, costs in found.items():
            costs.append(seconds(partial(once, way), 1))
    return ", ".join(f"{way} {min(costs):.3f}" for way, costs in found.items()) + " s a pass"


def one_by_one(layer: MoE, x_ND: torch.Tensor) -> torch.Tensor:
    """The plain way: each expert gathers its tokens and adds what it makes of them."""
    weights_NA, chosen_NA = layer.gate(x_ND).float().softmax(-1).topk(layer.config.experts_per_token, -1)
    weights_NA = weights_NA / weights_NA.sum(-1, keepdim=True)
    out_ND = torch.zeros_like(x_ND)
    for number, expert in enumerate(layer.experts):
        token, place = (chosen_NA == number).nonzero(as_tuple=True)
        out_ND = out_ND.index_add(0, token, expert(x_ND[token]) * weights_NA[token, place, None].to(x_ND.dtype))
    return out_ND


def measure(what: str, batch: Batch) -> str:
    torch.set_num_threads(1)
    if what in EXPERTS:
        return experts(what.split(":")[1])
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
    optimizer = make_optimizer(model, OptimConfig(optimizer=name, lr=1e-5))
    cost = seconds(optimizer.step, 4)
    state = sum(v.nbytes for s in optimizer.state.values() for v in s.values() if isinstance(v, torch.Tensor))
    return f"{cost:.3f} s a step, state {state / 2**20:.1f} MiB"


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--manifest", required=True)
    p.add_argument("--batch-rows", type=int, default=4)
    p.add_argument("--of", default="", help="the parts that have this in their name, such as `adamw` or 8x2")
    p.add_argument("--part", help="one part alone, in this process")
    a = p.parse_args()
    if a.part:
        data = PackedSet.open_all(Path(a.manifest))[0]
        micro = MicroBatch(torch.arange(a.batch_rows).numpy(), data.packed.header.seq_len)
        print(f"{a.part:<18} {measure(a.part, collate(data, micro, a.batch_rows))}", flush=True)
        return
    for part in (p for p in (*OPTIMIZERS, *CHECKPOINTS, *EXPERTS) if a.of in p):
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
