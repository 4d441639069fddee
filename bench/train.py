"""Training speed on packed conversations, alone or side by side with TRL's SFTTrainer on the same sequences.

    datakit pack ../shared/corpora/sft/gpteacher/{codegen,roleplay}*.json --tokenizer ../shared/tokenizers/minimind \\
        --seq-len 512 --output /tmp/gpteacher
    python bench/train.py --manifest /tmp/gpteacher/manifest.json --of each
    python bench/train.py --manifest /tmp/gpteacher/manifest.json --of ours,compiled,packed,longest,fixed \\
        --trl PYTHON --peer ../shared/peers/trl_sft.py --rounds 2

Contenders take turns, each in a process of its own, `--rounds` times; the table has the best round of each (what the
machine can do), its steps' medians, and the peak of its resident memory. Rates count tokens three ways: all, real,
label. `PYTHON` is an interpreter of an environment with trl (bench/peers/requirements-trl.txt).
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OURS: dict[str, dict[str, Any]] = {
    "ours": {},
    "compiled": {"compile": True},
    "rows of 2 x 4": {"batch_rows": 2, "grad_accum": 4},
    "rows of 1 x 8": {"batch_rows": 1, "grad_accum": 8},
    "compiled, 2 x 4": {"compile": True, "batch_rows": 2, "grad_accum": 4},
    "fp32": {"dtype": "fp32"},
    "every position in the last layer": {"label_only": False},
    "every logit": {"objective": "grouped_dense"},
    "every logit, masked attention": {"objective": "plainest"},
    "chunks of 512 labels": {"loss_chunk": 512},
}
"""Settings of train.sft by name; the first is its default, the others change one thing."""
TRL: dict[str, list[str]] = {
    "packed": ["--mode", "packed", "--batch-size", "1", "--accum", "8"],
    "longest": ["--mode", "padded", "--pad", "longest", "--batch-size", "8"],
    "fixed": ["--mode", "padded", "--pad", "fixed", "--batch-size", "8"],
}
"""TRL's: its best, sequences packed into rows that pass one at a time; padded to the longest, or to seq_len."""


def ours(a: argparse.Namespace, values: dict[str, Any]) -> dict[str, Any]:
    """Rates of `steps` optimizer steps after `warmup`, in this process."""
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, where `train` would be this very file
    from train import selfcheck
    from train.data import DataConfig
    from train.loop import LoopConfig
    from train.optim import OptimConfig
    from train.sft import LabelConfig, SftConfig, objective
    from train.start import prepare

    data = DataConfig(batch_rows=values.get("batch_rows", 8), grad_accum=values.get("grad_accum", 1))
    labels = LabelConfig(label_only=values.get("label_only", True), loss_chunk=values.get("loss_chunk", 0))
    with tempfile.TemporaryDirectory() as out:
        loop = LoopConfig(
            out=out, steps=a.warmup + a.steps, compile=values.get("compile", False), threads=a.threads,
            dtype=values.get("dtype", "auto"),
        )  # fmt: skip
        optim = OptimConfig(lr=5e-4, warmup_steps=0, min_lr_ratio=1.0, weight_decay=0.0)
        config = SftConfig(manifest=a.manifest, preset=a.preset, data=data, optim=optim, loop=loop, labels=labels)
        loss = getattr(selfcheck, values["objective"]) if "objective" in values else objective(config)
        trainer = prepare(config, loss)
        batches, reports, cpu = trainer.stream.on(trainer.device), [], []
        for _ in range(a.warmup + a.steps):
            before = time.process_time()
            reports.append(trainer._step(batches))
            cpu.append(time.process_time() - before)
    measured = reports[a.warmup :]
    rates = [[n / r.seconds for n in (r.all_tokens, r.real_tokens, r.label_tokens)] for r in measured]
    return {
        "rates": [statistics.median(r) for r in zip(*rates, strict=True)],
        "label_per_cpu_s": sum(r.label_tokens for r in measured) / sum(cpu[a.warmup :]),
        "losses": [r.loss for r in reports],
    }


def theirs(found: dict[str, Any]) -> dict[str, Any]:
    """The same of what TRL's script prints."""
    return {"rates": found["tok_s_median_all_real_label"], "losses": [found["loss_first"], found["loss_last"]]}


def sequences(manifest: str) -> Iterator[dict[str, list[int]]]:
    """Every packed sequence on its own, labels aligned with its ids as TRL wants them."""
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    import numpy as np

    from train.data import PackedSet

    data = PackedSet.open(Path(manifest))
    for row in range(data.packed.header.num_samples):
        ids = np.asarray(data.packed.ids[row], np.int64)
        labels = np.full(len(ids), -100)
        targets = np.asarray(data.packed.labels_of(row)) + 1
        labels[targets] = ids[targets]
        for a, b in itertools.pairwise(data.packed.segments_of(row).tolist()):
            yield {"input_ids": ids[a:b].tolist(), "labels": labels[a:b].tolist()}


def timed(command: list[str], threads: int) -> dict[str, Any]:
    """The JSON that a process prints last, with its peak memory; this process is small, so it hides none of it."""
    environment = os.environ | ({"OMP_NUM_THREADS": str(threads)} if threads else {})
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)}: ended with status {status}")
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found | {"peak_mib": usage.ru_maxrss // 1024, "cpu_s": usage.ru_utime + usage.ru_stime}


def contender(a: argparse.Namespace, name: str, data: str) -> dict[str, Any]:
    """One turn of a contender."""
    if name in OURS:
        given = ["--manifest", a.manifest, "--preset", a.preset, "--threads", str(a.threads)]
        given += ["--steps", str(a.steps), "--warmup", str(a.warmup), "--one", name]
        return timed([sys.executable, __file__, *given], a.threads)
    given = ["--data", data, "--tokenizer", str(Path(a.manifest).parent / "kept" / "tokenizer"), "--seq-len", "512"]
    given += ["--steps", str(a.steps), "--warmup", str(a.warmup), "--threads", str(a.threads or os.cpu_count())]
    found = timed([a.trl, a.peer, *given, *TRL[name]], 0)
    return theirs(found) | {k: found[k] for k in ("peak_mib", "cpu_s")}


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--manifest", required=True)
    p.add_argument("--of", default="ours,compiled", help=f"`each`, or some of {', '.join([*OURS, *TRL])}")
    p.add_argument("--one", choices=list(OURS), help=argparse.SUPPRESS)
    p.add_argument("--preset", default="26m")
    p.add_argument("--steps", type=int, default=8)
    p.add_argument("--warmup", type=int, default=3)
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--trl", help="interpreter of an environment with trl")
    p.add_argument("--peer", default="../shared/peers/trl_sft.py")
    a = p.parse_args()
    if a.one:
        print(json.dumps(ours(a, OURS[a.one])))
        return
    # names of settings hold commas, so they are found in what was asked for
    names = list(OURS) if a.of == "each" else [n for n in [*OURS, *TRL] if n in a.of.split(",") or n == a.of]
    rounds: dict[str, list[dict[str, Any]]] = {n: [] for n in names}
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        if set(names) & set(TRL):
            command = [sys.executable, "-c", "import sys, runpy; runpy.run_path(sys.argv[1])['dump'](*sys.argv[2:])"]
            subprocess.run([*command, __file__, a.manifest, file.name], check=True)
        for _ in range(a.rounds):
            for name in names:
                found = contender(a, name, file.name)
                rounds[name].append(found)
                print(json.dumps({"name": name} | found), file=sys.stderr, flush=True)
    print(
        "| | all tok/s | real tok/s | label tok/s | peak MiB | loss: first, last |\n"
        "| --- | --- | --- | --- | --- | --- |"
    )
    for name, turns in rounds.items():
        best = max(turns, key=lambda t: t["rates"][2])
        every, real, label = (f"{r:,.0f}" for r in best["rates"])
        losses = f"{best['losses'][0]:.2f}, {best['losses'][-1]:.2f}"
        print(f"| {name} | {every} | {real} | {label} | {min(t['peak_mib'] for t in turns):,} | {losses} |")


def dump(manifest: str, path: str) -> None:
    """Write the sequences of a manifest as JSONL."""
    with open(path, "w") as f:
        f.writelines(json.dumps(s) + "\n" for s in sequences(manifest))


if __name__ == "__main__":
    main()
