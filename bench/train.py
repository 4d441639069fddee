"""Training speed on packed conversations, alone or side by side with TRL's SFTTrainer on the same sequences.

    datakit pack ../shared/corpora/sft/gpteacher/{codegen,roleplay}*.json --tokenizer ../shared/tokenizers/minimind \\
        --seq-len 512 --output gpteacher
    datakit pack ... --packing pad --output gpteacher_padded
    python bench/train.py --manifest gpteacher/manifest.json --padded gpteacher_padded/manifest.json \\
        --of each --steps 3 --warmup 1 --rounds 2
    python bench/train.py --manifest gpteacher/manifest.json --of ours,compiled,packed,longest,fixed \\
        --trl PYTHON --peer ../shared/peers/trl_sft.py --rounds 2
    python bench/train.py --manifest gpteacher/manifest.json --of "ours,by hand,by hand in fp32" --rounds 5

Contenders take turns, each in a process of its own, `--rounds` times; the table has the best round of each (what the
machine can do), its steps' medians, and the peak of its resident memory. Rates count tokens three ways: all, real,
label. A setting of ours is also compared with the first one of the same round, by the wall and by seconds of processor
time. `PYTHON` is an interpreter of an environment with trl (bench/peers/requirements-trl.txt). `by hand` is
bench/peers/hand_loop.py.
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
    "compiled": {"loop.compile": True},
    "rows of 4 x 2": {"data.batch_rows": 4, "data.grad_accum": 2},
    "rows of 2 x 4": {"data.batch_rows": 2, "data.grad_accum": 4},
    "rows of 1 x 8": {"data.batch_rows": 1, "data.grad_accum": 8},
    "compiled, 2 x 4": {"loop.compile": True, "data.batch_rows": 2, "data.grad_accum": 4},
    "one sequence a row": {"padded": True},
    "one sequence a row, widths of 64, 128, ...": {"padded": True, "data.bucket_sizes": (64, 128, 256, 384, 512)},
    "fp32": {"loop.dtype": "fp32"},
    "every position in the last layer": {"labels.label_only": False},
    "masked attention": {"labels.attention": "masked"},
    "chunks of 512 labels": {"labels.loss_chunk": 512},
    "AdamW not fused": {"fused": False},
    "no batches ahead": {"data.num_workers": 0},
    "all activations computed again": {"loop.checkpoint_every": 1},
}
"""Settings of train.sft by name; the first is its default, the others change one thing."""
TRL: dict[str, list[str]] = {
    "packed": ["--mode", "packed", "--batch-size", "1", "--accum", "8"],
    "longest": ["--mode", "padded", "--pad", "longest", "--batch-size", "8"],
    "fixed": ["--mode", "padded", "--pad", "fixed", "--batch-size", "8"],
}
"""TRL's: its best, sequences packed into rows that pass one at a time; padded to the longest, or to seq_len."""


def ours(a: argparse.Namespace, values: dict[str, Any]) -> dict[str, Any]:
    """Rates of `steps` optimizer steps after `warmup`, in this process, on the rows of the others: in their order."""
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, where `train` would be this very file
    from train.config import LoopConfig
    from train.data import DataConfig
    from train.optim import OptimConfig
    from train.sft import LabelConfig, SFTConfig
    from train.start import Trainer

    def given(section: str) -> dict[str, Any]:
        return {k.split(".")[1]: v for k, v in values.items() if k.startswith(f"{section}.")}

    with tempfile.TemporaryDirectory() as out:
        config = SFTConfig(
            manifest=a.padded if values.get("padded") else a.manifest, preset=a.preset,
            data=DataConfig(**{"batch_rows": 8, "shuffle_buffer": 0} | given("data")),
            labels=LabelConfig(**given("labels")),
            loop=LoopConfig(out=out, steps=a.warmup + a.steps, threads=a.threads, **given("loop")),
            optim=OptimConfig(lr=5e-4, warmup_steps=0, min_lr_ratio=1.0, weight_decay=0.0),
        )  # fmt: skip
        trainer = Trainer(config)
        if not values.get("fused", True):
            for group in trainer.optimizer.param_groups:
                group |= {"fused": False, "foreach": True}
        batches, reports, cpu = trainer.batches(), [], []
        for _ in range(a.warmup + a.steps):
            before = time.process_time()
            reports.append(trainer._step(batches))
            cpu.append(time.process_time() - before)
    measured = reports[a.warmup :]
    rates = [[r["all_tok_s"], r["real_tok_s"], r["label_tok_s"]] for r in measured]
    return {
        "rates": [statistics.median(r) for r in zip(*rates, strict=True)],
        "label_per_cpu_s": sum(r["label_tokens"] for r in measured) / sum(cpu[a.warmup :]),
        "losses": [r["loss"] for r in reports],
    }


HAND = {"by hand": ["--dtype", "bf16"], "by hand compiled": ["--compile"], "by hand in fp32": ["--dtype", "fp32"]}
"""A loop that a skilled user writes: a transformers model, dense block mask, bf16, label-only head, fused AdamW."""


def model_for_hand(a: argparse.Namespace, folder: str) -> None:
    """The model of ours with random weights as a Hugging Face folder."""
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from train import hf
    from train.data import Mixture
    from train.sft import SFTConfig
    from train.start import make_model

    config = SFTConfig.of(manifest=a.manifest, preset=a.preset)
    hf.write_model(Path(folder), make_model(config, Mixture.open([Path(a.manifest)])), (), {})


def sequences(manifest: str) -> Iterator[dict[str, list[int]]]:
    """Every packed sequence on its own, labels aligned with its ids as TRL wants them."""
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    import numpy as np

    from train.data import PackedSet

    data = PackedSet.open_all(Path(manifest))[0]
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
    lines: list[dict[str, Any]] = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    losses = {"losses": [line["loss"] for line in lines if "loss" in line], "lines": lines}
    return losses | lines[-1] | {"peak_mib": usage.ru_maxrss // 1024, "cpu_s": usage.ru_utime + usage.ru_stime}


def contender(a: argparse.Namespace, name: str, data: str) -> dict[str, Any]:
    """One turn of a contender."""
    if name in OURS:
        given = ["--manifest", a.manifest, "--padded", a.padded, "--preset", a.preset, "--threads", str(a.threads)]
        given += ["--steps", str(a.steps), "--warmup", str(a.warmup), "--one", name]
        return timed([sys.executable, __file__, *given], a.threads)
    threads, steps = ["--threads", str(a.threads or os.cpu_count())], ["--steps", str(a.steps)]
    if name in HAND:
        meta = min((Path(a.manifest).parent / "kept").glob("train*.meta.json"))
        script, prefix = Path(__file__).parent / "peers" / "hand_loop.py", str(meta).removesuffix(".meta.json")
        command = [a.trl or sys.executable, str(script), f"{data}.model", prefix, *threads, *HAND[name]]
        found = timed([*command, "--steps", str(a.steps + a.warmup)], 0)
        measured = found["lines"][a.warmup :]
        rate = statistics.median(line["label_tok_s"] for line in measured)
        per_cpu_s = sum(line["labels"] for line in measured) / sum(line["cpu_s"] for line in measured)
        return found | {"rates": [float("nan"), float("nan"), rate], "label_per_cpu_s": per_cpu_s}
    given = ["--data", data, "--tokenizer", str(Path(a.manifest).parent / "kept" / "tokenizer"), "--seq-len", "512"]
    found = timed([a.trl, a.peer, *given, *steps, "--warmup", str(a.warmup), *threads, *TRL[name]], 0)
    return found | {"rates": found["tok_s_median_all_real_label"], "losses": [found["loss_first"], found["loss_last"]]}


def table(turns: list[dict[str, Any]]) -> str:
    """The best round of each contender, beside the first setting of ours: the median of the ratios of their rounds."""
    head = ["", "all tok/s", "real tok/s", "label tok/s", "by the wall", "label tok/CPU s", "by CPU", "peak MiB"]
    head.append("loss: first, last")
    lines = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    firsts = {t["round"]: t for t in turns if t["name"] == next(iter(OURS))}
    for name in dict.fromkeys(t["name"] for t in turns):
        mine = [t for t in turns if t["name"] == name]
        best = max(mine, key=lambda t: t["rates"][2])
        pairs = [(t, firsts[t["round"]]) for t in mine if t["round"] in firsts]
        wall = statistics.median(t["rates"][2] / f["rates"][2] for t, f in pairs) if pairs else float("nan")
        cells = [f"{r:,.0f}" for r in best["rates"]] + [f"{wall:.2f}"]
        if "label_per_cpu_s" in best:
            each = [t["label_per_cpu_s"] / f["label_per_cpu_s"] for t, f in pairs]
            most = max(t["label_per_cpu_s"] for t in mine)
            cells += [f"{most:,.0f}", f"{statistics.median(each):.2f}" if each else ""]
        else:
            cells += ["", ""]
        cells += [f"{min(t['peak_mib'] for t in mine):,}", f"{best['losses'][0]:.2f}, {best['losses'][-1]:.2f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--manifest", required=True)
    p.add_argument("--padded", default="", help="the same sequences packed with --packing pad")
    p.add_argument("--of", default="ours,compiled", help=f"`each`, or some of {', '.join([*OURS, *TRL, *HAND])}")
    p.add_argument("--one", choices=list(OURS), help=argparse.SUPPRESS)
    p.add_argument("--preset", default="26m")
    p.add_argument("--steps", type=int, default=8)
    p.add_argument("--warmup", type=int, default=3)
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--trl", help="interpreter of an environment with trl")
    p.add_argument("--peer", default="../shared/peers/trl_sft.py")
    return p


def chosen(a: argparse.Namespace) -> list[str]:
    """The contenders that take turns."""
    # names of settings hold commas, so they are found in what was asked for
    names = list(OURS) if a.of == "each" else [n for n in [*OURS, *TRL, *HAND] if n in a.of.split(",") or n == a.of]
    return [n for n in names if a.padded or not OURS.get(n, {}).get("padded")]


def main() -> None:
    a = parser().parse_args()
    if a.one:
        print(json.dumps(ours(a, OURS[a.one])))
        return
    names, turns = chosen(a), list[dict[str, Any]]()
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        if set(names) & set(TRL):
            command = [sys.executable, "-c", "import sys, runpy; runpy.run_path(sys.argv[1])['dump'](*sys.argv[2:])"]
            subprocess.run([*command, __file__, a.manifest, file.name], check=True)
        if set(names) & set(HAND):
            Path(f"{file.name}.model").mkdir()
            model_for_hand(a, f"{file.name}.model")
        for number in range(a.rounds):
            for name in names:
                turns.append({"name": name, "round": number} | contender(a, name, file.name))
                print(json.dumps(turns[-1]), file=sys.stderr, flush=True)
    print(table(turns))


def dump(manifest: str, path: str) -> None:
    """Write the sequences of a manifest as JSONL."""
    with open(path, "w") as f:
        f.writelines(json.dumps(s) + "\n" for s in sequences(manifest))


if __name__ == "__main__":
    main()
