"""Training speed on packed conversations, alone or side by side with TRL's SFTTrainer on the same tokens.

    datakit pack ../shared/corpora/sft/gpteacher/{codegen,roleplay}*.json --tokenizer ../shared/tokenizers/minimind \\
        --seq-len 512 --output /tmp/gpteacher
    python bench/train.py --manifest /tmp/gpteacher/manifest.json [--trl PYTHON --peer ../shared/peers/trl_sft.py]

Prints one JSON line a trainer: tokens a second counted three ways (all, real, label), as the median of the steps, and
label tokens a second of CPU time and thread, which a busy machine disturbs less. `PYTHON` is an interpreter of an
environment with trl; it is given the very sequences of the manifest, and its best setting, packed rows one at a time
with accumulation.
"""

import argparse
import itertools
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, where `train` would be this very file
from train.data import DataConfig, PackedSet  # noqa: E402
from train.loop import LoopConfig, Trainer  # noqa: E402
from train.optim import OptimConfig  # noqa: E402
from train.sft import LabelConfig, SftConfig, objective  # noqa: E402
from train.start import prepare  # noqa: E402


def measure(config: SftConfig, trainer: Trainer, warmup: int, steps: int) -> dict[str, Any]:
    """Rates of `steps` optimizer steps after `warmup`."""
    batches = trainer.stream.packets()
    rates, losses, cpu = [], [], []
    for step in range(warmup + steps):
        before = time.process_time()
        report = trainer._step(batches)
        losses.append(report.loss)
        if step >= warmup:
            seconds = report.seconds
            rates.append([n / seconds for n in (report.all_tokens, report.real_tokens, report.label_tokens)])
            cpu.append(report.label_tokens / (time.process_time() - before))
    middle = [round(statistics.median(r), 1) for r in zip(*rates, strict=True)]
    return {
        "trainer": "train.sft", "compile": trainer.loop.compile, "dtype": trainer.precision, "steps": steps,
        "label_only": config.labels.label_only and not config.loop.compile, "loss_chunk": config.labels.loss_chunk,
        "threads": torch.get_num_threads(), "params": trainer.model.num_parameters(),
        "tok_s_median_all_real_label": middle, "label_tok_per_cpu_s": round(statistics.median(cpu), 1),
        "loss_first": round(losses[0], 4), "loss_last": round(losses[-1], 4),
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }  # fmt: skip


def sequences(data: PackedSet) -> Iterator[dict[str, list[int]]]:
    """Every packed sequence on its own, labels aligned with its ids as TRL wants them."""
    for row in range(data.packed.header.num_samples):
        ids = np.asarray(data.packed.ids[row], np.int64)
        labels = np.full(len(ids), -100)
        targets = np.asarray(data.packed.labels_of(row)) + 1
        labels[targets] = ids[targets]
        bounds = data.packed.segments_of(row).tolist()
        for a, b in itertools.pairwise(bounds):
            yield {"input_ids": ids[a:b].tolist(), "labels": labels[a:b].tolist()}


def peer(a: argparse.Namespace, data: PackedSet, tokenizer: Path) -> dict[str, Any]:
    """TRL on the same sequences, in its own environment and process."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(s) + "\n" for s in sequences(data))
        file.flush()
        command = [a.trl, a.peer, "--data", file.name, "--tokenizer", str(tokenizer), "--mode", "packed"]
        command += [
            "--batch-size",
            "1",
            "--accum",
            str(a.batch_rows),
            "--steps",
            str(a.steps),
            "--warmup",
            str(a.warmup),
        ]
        command += ["--seq-len", str(data.packed.header.seq_len), "--threads", str(torch.get_num_threads())]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--manifest", required=True)
    p.add_argument("--preset", default="26m")
    p.add_argument("--batch-rows", type=int, default=8)
    p.add_argument("--steps", type=int, default=12)
    p.add_argument("--warmup", type=int, default=3)
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--compile", action="store_true")
    p.add_argument("--no-label-only", action="store_true", help="the last layer computes every position")
    p.add_argument("--loss-chunk", type=int, default=0, help="labels whose logits are held at once; 0: all")
    p.add_argument("--trl", help="interpreter of an environment with trl")
    p.add_argument("--peer", default="../shared/peers/trl_sft.py")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as out:
        config = SftConfig(
            manifest=a.manifest, preset=a.preset, data=DataConfig(batch_rows=a.batch_rows),
            optim=OptimConfig(warmup_steps=0, min_lr_ratio=1.0, weight_decay=0.0),
            loop=LoopConfig(out=out, steps=a.warmup + a.steps, compile=a.compile, threads=a.threads),
            labels=LabelConfig(label_only=not a.no_label_only, loss_chunk=a.loss_chunk),
        )  # fmt: skip
        trainer = prepare(config, objective(config))
        ours = measure(config, trainer, a.warmup, a.steps)
    print(json.dumps(ours), flush=True)
    if a.trl:
        theirs = peer(a, trainer.stream.data, trainer.stream.data.tokenizer_files[0].parent)
        ratio = ours["tok_s_median_all_real_label"][2] / theirs["tok_s_median_all_real_label"][2]
        print(json.dumps(theirs))
        print(f"label tokens/s: {ratio:.2f} times TRL {theirs['trl']}'s", file=sys.stderr)


if __name__ == "__main__":
    main()
