"""All that the trainer does on a GPU, in one command of ten minutes that needs no network.

    python bench/gpu.py --out gpu_results                           # checks, then rates; again: what is left
    python bench/gpu.py --device cpu --small --out /tmp/rehearsal   # the same on tiny models, without a GPU

Each part runs in a process of its own with a time limit. A part that fails is reported, and the rest goes on.

- A check trains four steps on the device with one setting, and compares the losses with those of the same steps in fp32
  on the CPU with the plain setting. Resumed losses must be equal; evaluation and greedy answers are compared, too.
- A rate trains a size: tokens/s, MFU (PaLM: Chowdhery et al., 2022), memory. Aims: 40% at 104M, 50% at 350M, 55% at 1B.
"""

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, where `train` would be another file
import numpy as np  # noqa: E402
import torch  # noqa: E402

from datakit.config import build, sha256_file  # noqa: E402
from datakit.manifest import Count, Ledger, Manifest, Shard, save  # noqa: E402
from datakit.pack.format import SOURCE_DTYPE, Block, Header, PackedWriter  # noqa: E402
from train import hf  # noqa: E402
from train.config import MoeConfig  # noqa: E402
from train.data import DataConfig, PackedSet  # noqa: E402
from train.device import usable_device  # noqa: E402
from train.eval import evaluate, total  # noqa: E402
from train.model import PRESETS, CausalLM, ModelConfig  # noqa: E402
from train.serve.batching import SampleConfig, jobs_of, stream  # noqa: E402
from train.sft import SFTConfig  # noqa: E402
from train.start import Trainer  # noqa: E402

Row = dict[str, Any]
VOCAB = 32768
_BIG = {"vocab_size": VOCAB, "max_positions": 4096}
SIZES: dict[str, ModelConfig] = {
    "26m": replace(PRESETS["26m"], **_BIG),
    "104m": replace(PRESETS["104m"], **_BIG),
    "350m": replace(PRESETS["26m"], **_BIG, hidden_size=1024, num_layers=24, num_heads=16, num_kv_heads=16,
                    intermediate_size=2816),
    "1b": replace(PRESETS["26m"], **_BIG, hidden_size=2048, num_layers=16, num_heads=32, intermediate_size=8192,
                  num_kv_heads=8),
}  # fmt: skip
"""Models by name; `1b` has the shape of Llama 3.2 1B."""
POSITIONS = {"26m": 65536, "104m": 65536, "350m": 65536, "1b": 32768}
"""Of a micro-batch, chosen for 80 GB; halved until it fits."""
VARIANTS: dict[str, Row] = {"default": {}, "compiled": {"loop.compile": True}}
TINY = replace(PRESETS["tiny"], vocab_size=512, max_positions=4096)
MODELS = {
    "tiny": TINY, "qk-norm": replace(TINY, qk_norm=True, family="qwen3"),
    "experts": replace(TINY, qk_norm=True, family="qwen3_moe", moe=MoeConfig(num_experts=4, experts_per_token=2)),
    "vocabulary of 152,000": replace(TINY, vocab_size=152_000),
}  # fmt: skip
CHECKS: dict[str, tuple[str, Row, float]] = {
    "fp32": ("tiny", {"loop.dtype": "fp32"}, 1e-4),
    "bf16, attention auto": ("tiny", {}, 2e-2),
    "bf16, attention grouped": ("tiny", {"labels.attention": "grouped"}, 2e-2),
    "bf16, attention masked": ("tiny", {"labels.attention": "masked"}, 2e-2),
    "bf16, attention varlen": ("tiny", {"labels.attention": "varlen"}, 2e-2),
    "bf16, every position": ("tiny", {"labels.label_only": False}, 2e-2),
    "bf16, chunks of 100 labels": ("tiny", {"labels.loss_chunk": 100}, 2e-2),
    "bf16, label buckets, compiled": ("tiny", {"data.label_bucket_sizes": (256, 512), "loop.compile": True}, 2e-2),
    "bf16, activations computed again": ("tiny", {"loop.checkpoint_every": 1}, 2e-2),
    "bf16, liger": ("tiny", {"labels.head_loss": "liger"}, 2e-2),
    "bf16, muon": ("tiny", {"optim.optimizer": "muon"}, 2e-2),
    "fp16": ("tiny", {"loop.dtype": "fp16"}, 2e-2),
    "bf16, queries and keys normed": ("qk-norm", {}, 2e-2),
    "bf16, padded batches": ("tiny", {"data.bucket_sizes": (1024,), "data.batch_rows": 3}, 2e-2),
    "bf16, a vocabulary of 152,000": ("vocabulary of 152,000", {}, 2e-2),
    "bf16, adapters": ("tiny", {"lora.lora_rank": 4}, 2e-2),
    "bf16, experts": ("experts", {}, 3e-2),
}
"""By name: the model, settings of train.sft, and the largest relative difference of a loss."""
WHOLE = ("resume", "resume, deterministic", "evaluation", "greedy answers", "two ranks")
SAME = ("optim.optimizer", "data.bucket_sizes", "data.batch_rows", "lora.lora_rank")
"""Settings that change what is computed, and so stay on the CPU, too."""
CUDA_ONLY = ("varlen", "fp16")
LIMIT_S = {"check": 150, "rate": 110}


def make_data(folder: Path, small: bool) -> None:
    """Packed sets of made text: tokens that count up, in sequences of lognormal length; of "chat" 40% are labels."""
    rng, seq_len = np.random.default_rng(0), 1024
    for name, vocab, rows in (("chat", 512, 32), ("text", 512 if small else VOCAB, 16 if small else 4096)):
        place = folder / name
        (place / "kept").mkdir(parents=True)
        labelled = name == "chat"
        task = "sft" if labelled else "pretrain"
        header = Header(task=task, seq_len=seq_len, pad_id=0, eos_id=2, vocab_size=vocab, labelled=labelled)
        writer = PackedWriter(place / "kept" / "train-00000", header)
        for number in range(rows):
            sizes = np.maximum(2, rng.lognormal(5.5, 1.0, 64)).astype(int).cumsum()
            filled = seq_len + 1 - (number % 5) * 100 * labelled  # some rows have padding
            bounds = np.r_[0, sizes[sizes < filled - 1], filled].astype(np.int32)
            lengths, starts = np.diff(bounds), bounds[:-1]
            ids = [3 + (rng.integers(0, 500) + np.arange(n)) % (vocab - 3) for n in lengths]
            place_of = np.arange(bounds[-1]) - starts.repeat(lengths)
            first = lengths * 6 // 10 if labelled else np.zeros_like(lengths)
            learnt = place_of > first.repeat(lengths)
            sources = np.zeros(len(lengths), SOURCE_DTYPE)
            sources["row_key"], sources["row"], sources["segment"] = number, number, np.arange(len(sources))
            sources["tokens"] = lengths
            ids = np.concatenate(ids).astype(np.int32)
            writer.append(Block(ids, learnt, lengths.astype(np.int64), np.array([len(lengths)]), sources))
        meta = writer.close() | {"prefix": "kept/train-00000"}
        files = sorted((place / "kept").iterdir())
        shards = tuple(Shard(f"kept/{f.name}", 0, f.stat().st_size, sha256_file(f)) for f in files)
        facts = {"packed": [meta], "tokenizer": {"vocab_size": vocab, "pad_id": 0, "eos_id": 2}}
        manifest = Manifest(dataset=name, kind="tokens", stage="pack", key=name, parents=(), config={}, code="bench",
                            ledger=Ledger(Count()), shards=shards, facts=facts)  # fmt: skip
        save(place / "manifest.json", manifest, {})


def trainer_of(
    folder: Path, data: str, out: Path, device: str, config: ModelConfig, values: Row, drawn_on: str = "cpu"
) -> Any:
    """The trainer of a run with settings, as `section.option`; a GPU draws the weights of a large model faster."""
    nested: Row = {"manifest": str(folder / data / "manifest.json"), "optim": {"lr": 1e-3, "warmup_steps": 0}}
    values = {"loop.out": str(out), "loop.device": device, "loop.steps": 4, "loop.dtype": "bf16",
              "data.batch_rows": 4, "data.shuffle_buffer": 0, "data.verify": False} | values  # fmt: skip
    for name, value in values.items():
        section, _, key = name.rpartition(".")
        nested.setdefault(section, {})[key] = value
    with torch.device(drawn_on):
        model = CausalLM(config)
    model.init_weights(torch.Generator(drawn_on).manual_seed(0))
    if values.get("lora.lora_rank"):
        nested["model"] = str(out.parent / "base")
        Path(nested["model"]).mkdir(exist_ok=True)
        hf.write_model(Path(nested["model"]), model, (), {})
    run = build(SFTConfig, nested, "bench")
    return Trainer(run, model=model)


def losses(folder: Path, device: str, model: str, values: Row, out: Path | None = None) -> list[float]:
    """The loss of each step of a run."""
    with tempfile.TemporaryDirectory() as scratch:
        place = out or Path(scratch) / "run"
        trainer_of(folder, "chat", place, device, MODELS[model], {"loop.log_every": 1} | values).fit()
        return [json.loads(line)["loss"] for line in (place / "metrics.jsonl").read_text().splitlines()]


def compared(name: str, found: list[Any], expected: list[Any], most: float) -> Row:
    """A line of the table: `found` differs from `expected` by at most `most`, relatively; 0: equal."""
    pairs = list(zip(found, expected, strict=True))
    wrong = max(abs(a - b) / max(abs(b), 1e-9) for a, b in pairs) if most else float(sum(a != b for a, b in pairs))
    return {"check": name, "difference": wrong, "tolerance": most, "ok": wrong <= most}


def check(name: str, folder: Path, device: torch.device) -> Row:
    """One check."""
    if name in CHECKS:
        model, values, most = CHECKS[name]
        if device.type == "cpu" and any(v in CUDA_ONLY for v in values.values()):
            return {"check": name, "ok": None, "remark": "needs CUDA"}
        plain = {"loop.dtype": "fp32", "labels.attention": "masked", "labels.label_only": False}
        plain |= {key: values[key] for key in SAME if key in values}
        return compared(name, losses(folder, str(device), model, values), losses(folder, "cpu", model, plain), most)
    if name.startswith("resume"):  # by default CUDA adds up in the order in which blocks finish
        same = {"loop.deterministic": "deterministic" in name}
        whole = losses(folder, str(device), "tiny", same)
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch) / "run"
            losses(folder, str(device), "tiny", same | {"loop.stop_at": 2}, out)
            found = losses(folder, str(device), "tiny", same | {"loop.resume": True}, out)
        return compared(name, found, whole, 1e-4 if device.type == "cuda" and not any(same.values()) else 0)
    model = CausalLM(TINY).eval()
    model.init_weights(torch.Generator().manual_seed(0))
    torch.nn.init.normal_(model.model.embed_tokens.weight, std=0.3, generator=torch.Generator().manual_seed(3))
    if name == "evaluation":
        data = PackedSet.open_all(folder / "chat" / "manifest.json", verify=False)[0]
        found, expected = ([total(evaluate(model.to(d), [data], DataConfig(batch_rows=4), how)).loss]
                           for d, how in ((device, "bf16"), ("cpu", "fp32")))  # fmt: skip
        return compared(name, found, expected, 1e-2)
    if name == "greedy answers":
        said = []
        for where in (device, "cpu"):
            jobs = jobs_of([[(7 * i + j) % 500 for j in range(n)] for i, n in enumerate((5, 70, 3))], frozenset(),
                           SampleConfig(max_new_tokens=24))  # fmt: skip
            list(stream(model.to(where), jobs, 2))
            said.append([job.answer for job in jobs])
        return compared(name, *said, 0)
    return two_ranks(folder, device)


def two_ranks(folder: Path, device: torch.device) -> Row:
    """Two processes beside one: with NCCL where there are two GPUs, else with gloo on the CPU."""
    where = "cuda" if device.type == "cuda" and torch.cuda.device_count() > 1 else "cpu"
    command = ["-m", "train.sft", "--manifest", str(folder / "chat" / "manifest.json"), "--preset", "tiny", "--steps"]
    command += ["4", "--dtype", "fp32", "--device", where, "--threads", "1", "--no-verify", "--out"]
    with tempfile.TemporaryDirectory() as scratch:
        found = []
        for name, start in (("one", []), ("two", ["-m", "torch.distributed.run", "--nproc-per-node", "2"])):
            done = subprocess.run([sys.executable, *start, *command, f"{scratch}/{name}"], capture_output=True,
                                  text=True, cwd=sys.path[0])  # fmt: skip
            if done.returncode:
                return {"check": "two ranks", "ok": False, "remark": done.stderr[-300:]}
            lines = Path(scratch, name, "metrics.jsonl").read_text().splitlines()
            found.append([json.loads(line)["loss"] for line in lines])
    return compared(f"two ranks on {where}", found[1], found[0], 1e-4)


def rate(name: str, folder: Path, device: torch.device, small: bool) -> Row:
    """Rates of a size with a setting; with half the rows where memory is short."""
    size, _, variant = name.partition(", ")
    rows = 2 if small else POSITIONS[size] // 1024
    while True:
        try:
            with tempfile.TemporaryDirectory() as out, contextlib.redirect_stdout(io.StringIO()):
                values = VARIANTS[variant] | {"data.batch_rows": rows, "data.bucket_sizes": (1024,)}
                config = TINY if small else SIZES[size]
                run = trainer_of(folder, "text", Path(out), str(device), config, values | {"loop.steps": 10**6},
                                 str(device))  # fmt: skip
                batches = run.batches()
                reports = [run._step(batches) for _ in range(3 if small else 25)][1 if small else 5 :]
            best = sorted(reports, key=lambda r: float(r["step_ms"]))[: len(reports) // 2 + 1]
            seconds = sum(r["step_ms"] for r in best) / 1e3
            peak = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else None
            mfus = [r["mfu"] for r in best if r["mfu"] is not None]
            real = sum(r["real_tok_s"] * r["step_ms"] for r in best) / 1e3
            return {"rate": name, "rows": rows, "tokens_per_second": real / seconds,
                    "mfu": sum(mfus) / len(mfus) if mfus else None, "step_ms": 1e3 * seconds / len(best),
                    "peak_gib": peak, "loss": reports[-1]["loss"]}  # fmt: skip
        except torch.OutOfMemoryError:
            if rows == 1:
                raise
            rows //= 2
        torch.cuda.empty_cache()


def report(rows: list[Row], machine: str) -> str:
    """The tables in Markdown."""
    checks, rates = ([r for r in rows if kind in r] for kind in ("check", "rate"))
    bad = sum(r["ok"] is False for r in checks)
    lines = [f"# {machine}", "", f"{sum(r['ok'] is True for r in checks)} checks hold, {bad} do not.", ""]
    lines += ["| check | difference | at most | |", "| --- | --- | --- | --- |"]
    for r in checks:
        verdict = {True: "equal", False: "**NOT EQUAL**", None: "skipped"}[r["ok"]]
        values = " | ".join(f"{r[k]:.1e}" if k in r else "" for k in ("difference", "tolerance"))
        lines.append(f"| {r['check']} | {values} | {verdict} {r.get('remark', '')} |")
    columns = ("tokens_per_second", "mfu", "step_ms", "peak_gib", "rows")
    lines += ["", f"| size | {' | '.join(columns)} |", "| --- " * (1 + len(columns)) + "|"]
    for r in rates:
        values = [r["remark"]] if "remark" in r else ["" if r[c] is None else f"{r[c]:,.3g}" for c in columns]
        lines.append(f"| {r['rate']} | {' | '.join(values)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run what has no result yet; returns 1 if a check does not hold or a part failed."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", required=True, type=Path, help="folder for gpu.md, gpu.json and the data")
    p.add_argument("--device", default="cuda")
    p.add_argument("--small", action="store_true", help="tiny models and data: a rehearsal")
    p.add_argument("--only", default="", help="parts with this in their kind or name: check, rate, 104m")
    p.add_argument("--part", help="one part alone, in this process")
    a, begin = p.parse_args(), time.monotonic()
    device, data, results = usable_device(a.device), a.out / "data", a.out / "gpu.json"
    names = [("check", n) for n in (*CHECKS, *WHOLE)]
    names += [("rate", f"{size}, {v}") for size in (("26m",) if a.small else SIZES) for v in VARIANTS]
    if a.part:
        kind = next(kind for kind, name in names if name == a.part)
        does = partial(rate, small=a.small) if kind == "rate" else check
        with contextlib.redirect_stdout(sys.stderr):
            row = does(a.part, data, device)
        print(json.dumps(row))
        return 0
    if not data.is_dir():
        make_data(a.out / "data.tmp", a.small)
        (a.out / "data.tmp").rename(data)
    found: Row = json.loads(results.read_text()) if results.is_file() else {}
    machine = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    options = ["--out", str(a.out), "--device", a.device, *(["--small"] if a.small else [])]

    def perform(kind: str, name: str, threads: int) -> Row | None:
        left = min(LIMIT_S[kind], 590 - (time.monotonic() - begin))
        if left < 15:
            return None
        setting = os.environ | {"PYTORCH_ALLOC_CONF": "expandable_segments:True", "OMP_NUM_THREADS": str(threads)}
        try:
            done = subprocess.run([sys.executable, __file__, *options, "--part", name], capture_output=True, text=True,
                                  timeout=left, env=setting)  # fmt: skip
        except subprocess.TimeoutExpired:
            return {kind: name, "ok": False, "remark": f"not finished within {left:.0f} s"}
        last = (done.stderr.strip().splitlines() or [""])[-1][:300]
        row: Row = json.loads(done.stdout) if not done.returncode else {kind: name, "ok": False, "remark": last}
        return row

    cores = len(os.sched_getaffinity(0))
    for kind, at_once in (("check", max(1, cores // 2)), ("rate", 1)):  # a rate is measured alone
        todo = [name for of, name in names if of == kind and name not in found and a.only in f"{kind} {name}"]
        with ThreadPoolExecutor(at_once) as pool:
            for name, row in zip(todo, pool.map(partial(perform, kind, threads=cores // at_once), todo), strict=True):
                if row is None:
                    continue
                found[name] = row
                results.write_text(json.dumps(found, indent=1) + "\n")
                print(f"{name}: {row.get('remark') or row.get('ok', 'measured')}", flush=True)
                (a.out / "gpu.md").write_text(report(list(found.values()), f"{machine}, torch {torch.__version__}"))
    return int(any(r.get("ok") is False for r in found.values()))


if __name__ == "__main__":
    sys.exit(main())
