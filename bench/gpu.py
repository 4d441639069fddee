"""All that the trainer does on a GPU, in one command of at most nine minutes that needs no network.

    python bench/gpu.py --out gpu_results            # checks first, then rates; again: what is left
    python bench/gpu.py --out gpu_results --only rate:104m
    python bench/gpu.py --device cpu --small --out /tmp/rehearsal

It needs torch 2.11 or later, numpy and safetensors. It writes its own packed data (about 25 MiB), runs each part in a
process of its own with a time limit, and writes `gpu.json` and `gpu.md` into --out. A part that fails is reported, and
the rest goes on; a part that has a result is not run again, so a second call does what the first had no time for.

- `check:NAME` compares what runs on the device with the same on CPU in fp32. Several run at a time.
- `rate:SIZE:SEQ_LEN` and `saving:NAME` train on plain text, one process at a time: tokens per second, MFU, peak memory,
  waiting for data. A variant that runs out of memory is tried again with half the rows.

MFU is Model FLOPs Utilization (PaLM: Chowdhery et al., 2022): 6 operations for each parameter that is multiplied (not
the embedding's look-ups), and attention over the tokens that a token sees, so the causal half; divided by the peak of
dense bf16 products from the data sheet.
"""

import argparse
import contextlib
import io
import json
import math
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, where `train` would be another file
import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from datakit.config import build, sha256_file  # noqa: E402
from datakit.errors import DatakitError  # noqa: E402
from datakit.manifest import Count, Ledger, Manifest, Shard, save  # noqa: E402
from datakit.pack.format import SOURCE_DTYPE, Header, PackedWriter  # noqa: E402
from train import distill, dpo  # noqa: E402
from train.data.batches import Batch, DataConfig, StepStream  # noqa: E402
from train.data.packed import Mixture, PackedSet  # noqa: E402
from train.engine.device import autocast, usable_device  # noqa: E402
from train.engine.distributed import GradientSum, Ranks, RanksConfig, shard, whole_of  # noqa: E402
from train.engine.log import peak_flops  # noqa: E402
from train.engine.loop import LossScale, Trainer  # noqa: E402
from train.engine.optim import OptimConfig, make_optimizer  # noqa: E402
from train.engine.start import prepare  # noqa: E402
from train.model.attention import ATTENTIONS, CUDA_ONLY, Scores, Segments, masked_attention  # noqa: E402
from train.model.batching import jobs_of, stream  # noqa: E402
from train.model.decoder import MLP, PRESETS, CausalLM, ModelConfig  # noqa: E402
from train.model.experts import MoE, MoeConfig  # noqa: E402
from train.model.loss import head_loss, liger_loss  # noqa: E402
from train.model.sample import SampleConfig  # noqa: E402
from train.sft import LabelConfig, SftConfig, label_loss, objective  # noqa: E402

Row = dict[str, Any]
VOCAB = 32768
TINY = replace(PRESETS["tiny"], vocab_size=512, max_positions=4096)
SIZES: dict[str, ModelConfig] = {
    "26m": replace(PRESETS["26m"], vocab_size=VOCAB, max_positions=4096),
    "104m": replace(PRESETS["104m"], vocab_size=VOCAB, max_positions=4096),
    "350m": replace(
        PRESETS["26m"], vocab_size=VOCAB, max_positions=4096, hidden_size=1024, num_layers=24, num_heads=16,
        num_kv_heads=16, head_dim=64, intermediate_size=2816,
    ),
    "1b": replace(
        PRESETS["26m"], vocab_size=VOCAB, max_positions=4096, hidden_size=2048, num_layers=16, num_heads=32,
        num_kv_heads=8, head_dim=64, intermediate_size=8192,
    ),
}  # fmt: skip
"""Models by name; `1b` has the shape of Llama 3.2 1B."""
TOKENS = {"26m": 65536, "104m": 65536, "350m": 32768, "1b": 16384}
"""Positions of a micro-batch, chosen for 80 GB."""
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "compiled": {"loop.compile": True},
    "varlen": {"labels.attention": "varlen"},
    "varlen, compiled": {"labels.attention": "varlen", "loop.compile": True},
    "varlen, compiled, chunks of 4096": {
        "labels.attention": "varlen", "loop.compile": True, "labels.loss_chunk": 4096,
    },
}  # fmt: skip
"""Settings of a rate, as options of train.pretrain."""
SAVINGS: dict[str, dict[str, Any]] = {
    "none": {"labels.label_only": False},
    "label only": {},
    "attention grouped": {"labels.attention": "grouped"},
    "attention masked": {"labels.attention": "masked"},
    "attention flex": {"labels.attention": "flex"},
    "attention varlen": {"labels.attention": "varlen"},
    "chunks of 4096 labels": {"labels.loss_chunk": 4096},
    "head liger": {"labels.head_loss": "liger"},
    "all activations computed again": {"loop.checkpoint_every": 1},
    "no batches ahead": {"data.num_workers": 0},
    "state in 8 bits": {"optim.optimizer": "adamw8bit"},
    "muon": {"optim.optimizer": "muon"},
    "fp16": {"loop.dtype": "fp16"},
    "fp32": {"loop.dtype": "fp32"},
    "fp32, tf32": {"loop.dtype": "fp32", "loop.tf32": True},
}
"""One setting changed at a time, on labelled conversations."""
LIMITS = {"check": 150, "rate": 150, "saving": 200}
"""Seconds that a process of a part may take."""


# ---- data ----


def make_data(folder: Path, small: bool) -> None:
    """Packed sets of made text: tokens that count up, in documents whose lengths are lognormal, as on the web."""
    rng = np.random.default_rng(0)
    lengths = (64, 128) if small else (1024, 4096)
    vocab, tokens = (512, 20_000) if small else (VOCAB, 4_200_000)
    for seq_len in lengths:
        documents = np.maximum(2, rng.lognormal(math.log(min(500, seq_len / 2)), 1.2, tokens // 200)).astype(int)
        for name, labelled in (("text", False), ("chat", True)):
            rows = tokens // seq_len // (4 if labelled else 1)
            _write(folder / f"{name}-{seq_len}", seq_len, _wrapped(documents, seq_len + 1, rows), labelled, vocab, rng)
    pair = [[int(n)] for n in rng.integers(8, lengths[0] // 2, 64)]
    _write(folder / "pairs", lengths[0], pair, True, vocab, rng, 2)


def _wrapped(documents: np.ndarray, stride: int, rows: int) -> list[list[int]]:
    """Document lengths cut into rows of `stride` tokens; a document goes on in the next row."""
    ends = np.unique(np.r_[np.cumsum(documents), np.arange(1, rows + 1) * stride])
    ends = ends[ends <= rows * stride]
    sizes, row = np.diff(np.r_[0, ends]), (ends - 1) // stride
    found: list[list[int]] = [[] for _ in range(rows)]
    for size, at in zip(sizes.tolist(), row.tolist(), strict=True):
        found[at].append(size)
    return found


def _write(
    folder: Path, seq_len: int, rows: list[list[int]], labelled: bool, vocab: int, rng: np.random.Generator,
    rows_per_unit: int = 1,
) -> None:  # fmt: skip
    (folder / "kept").mkdir(parents=True)
    task = "dpo" if rows_per_unit == 2 else "sft" if labelled else "pretrain"
    header = Header(
        task=task, seq_len=seq_len, pad_id=0, eos_id=2, vocab_size=vocab, labelled=labelled, ids_dtype="uint16",
        rows_per_unit=rows_per_unit,
    )  # fmt: skip
    with PackedWriter(folder / "kept" / "train", header) as writer:
        for number, sizes in enumerate(rows):
            bounds = np.cumsum([0, *sizes]).astype(np.int32)
            ids = np.zeros((1, seq_len + 1), np.int32)
            starts = rng.integers(0, vocab - 3, len(sizes))
            ids[0, : bounds[-1]] = np.concatenate(
                [3 + (s + np.arange(n)) % (vocab - 3) for s, n in zip(starts, sizes, strict=True)]
            )
            # the last 40 % of each sequence are labels
            spans = [np.arange(b + int(n * 0.6), b + n - 1) for b, n in zip(bounds, sizes, strict=False) if n > 1]
            labels = np.concatenate(spans or [np.empty(0)]).astype(np.int32) if labelled else None
            sources = np.zeros(len(sizes), SOURCE_DTYPE)
            sources["row_key"], sources["row"], sources["segment"] = number, number, np.arange(len(sizes))
            sources["tokens"] = sizes
            counts = None if labels is None else np.array([len(labels)])
            writer.append(ids, labels, counts, bounds, np.array([len(bounds)]), sources)
    meta = json.loads((folder / "kept" / "train.meta.json").read_text())
    files = sorted(f for f in (folder / "kept").iterdir())
    shards = tuple(Shard(str(f.relative_to(folder)), 0, f.stat().st_size, sha256_file(f)) for f in files)
    facts = {"packed": meta | {"prefix": "kept/train"}, "tokenizer": {"vocab_size": vocab, "pad_id": 0, "eos_id": 2}}
    manifest = Manifest(
        dataset=folder.name, kind="tokens", stage="pack", key=sha256_file(files[0]), parents=(), config={},
        code="bench", ledger=Ledger(Count()), shards=shards, facts=facts,
    )  # fmt: skip
    save(folder / "manifest.json", manifest, {})


# ---- checks: the device beside the CPU ----


CPU = torch.device("cpu")


def error(found: Sequence[Tensor], expected: Sequence[Tensor]) -> float:
    """The largest relative error of tensors, as |a - b| / |b| in the Frobenius norm."""
    pairs = [(a.detach().cpu().double(), b.detach().cpu().double()) for a, b in zip(found, expected, strict=True)]
    errors = [float((a - b).norm() / b.norm().clamp(min=1e-12)) for a, b in pairs]
    return max(e if math.isfinite(e) else math.inf for e in errors)


def relative(found: Sequence[float], expected: Sequence[float]) -> float:
    """The largest relative error of losses."""
    errors = [abs(a - b) / abs(b) for a, b in zip(found, expected, strict=True)]
    return max(e if math.isfinite(e) else math.inf for e in errors)


def unlike(found: Sequence[Any], expected: Sequence[Any]) -> float:
    """The number of entries that differ."""
    return float(sum(a != b for a, b in zip(found, expected, strict=True)))


def check(
    name: str, most: float, found: Callable[[], Any], expected: Any, measure: Callable[[Any, Any], float] = error
) -> Row:
    """One line of the table: a difference of at most `most` holds. An error becomes a line, and the rest goes on.

    `expected` is a value, or a function that makes it.
    """
    row: Row = {"check": name, "difference": None, "tolerance": most, "ok": False, "remark": ""}
    try:
        wanted = expected() if callable(expected) else expected
        difference = measure(found(), wanted)
    except Exception as e:
        last = traceback.extract_tb(e.__traceback__)[-1]
        first_line = (str(e).strip().splitlines() or [""])[0][:300]
        return row | {"remark": f"{type(e).__name__} at {Path(last.filename).name}:{last.lineno}: {first_line}"}
    return row | {"difference": difference, "ok": difference <= most}


def skipped(name: str, why: str) -> Row:
    return {"check": name, "difference": None, "tolerance": None, "ok": None, "remark": f"skipped: {why}"}


def runs_on(attention: str, device: torch.device, dtype: str) -> str:
    """Why an attention does not run here; empty if it does."""
    if attention in CUDA_ONLY and device.type != "cuda":
        return "a CUDA kernel"
    return "for half precision" if attention == "varlen" and dtype == "fp32" else ""


def check_attention(device: torch.device, folder: Path) -> Iterator[Row]:
    """Every attention, output and gradients, beside the masked one on CPU in fp32; inputs are exact in bf16."""
    segments = Segments.of([[0, 5, 20, 90], [0, 17, 128], [0, 0], [0, 128]], 128)
    for width in (32, 64, 96, 128):
        expected = attended(masked_attention, segments, width, CPU, torch.float32)
        for name, make in ATTENTIONS.items():
            for dtype, kind, most in (("bf16", torch.bfloat16, 2e-2), ("fp32", torch.float32, 1e-4)):
                title = f"attention {name}, heads of {width}, {dtype}"
                if why := runs_on(name, device, dtype):
                    yield skipped(title, why)
                else:
                    yield check(title, most, partial(attended, make, segments, width, device, kind), expected)


def attended(make: Any, segments: Segments, width: int, device: torch.device, dtype: torch.dtype) -> list[Tensor]:
    """Output at real positions, and gradients of queries, keys and values."""
    g = torch.Generator().manual_seed(width)
    plain = [torch.randn(4, 128, h, width, generator=g).bfloat16() for h in (4, 2, 2)]
    weight = torch.randn(4, 128, 4, width, generator=g).to(device)
    inputs = [x.to(device, dtype).requires_grad_() for x in plain]
    out = make(segments.to(device))(*inputs, Scores())
    real = (segments.sequence_BT > 0).to(device)
    chosen = torch.where(real[..., None, None], out.float(), 0)
    return [chosen, *torch.autograd.grad((chosen * weight).sum(), inputs)]


def first_batches(folder: Path, name: str, rows: int = 8) -> tuple[PackedSet, list[Batch]]:
    """A set, and the micro-batches of its first step, on the CPU."""
    data = PackedSet.open_all(next(folder.glob(f"{name}*")) / "manifest.json", verify=False)[0]
    return data, StepStream(data, DataConfig(batch_rows=rows, num_workers=0), seed=0).batches(0)


def tiny(vocab_size: int) -> CausalLM:
    """A small model with the same weights each time."""
    model = CausalLM(replace(TINY, vocab_size=vocab_size))
    model.init_weights(torch.Generator().manual_seed(0))
    return model


def gradients(model: CausalLM, loss: Any, batch: Batch, dtype: str, device: torch.device) -> list[Tensor]:
    """The mean loss, and the gradients of all parameters."""
    model = model.to(device)
    model.zero_grad(set_to_none=True)
    with autocast(device, dtype):
        loss_sum, count = tuple(loss(model, batch.to(device)))[:2]
    (loss_sum / count).backward()
    return [loss_sum.detach() / count, torch.cat([p.grad.float().flatten() for p in model.parameters()])]


def check_model(device: torch.device, folder: Path) -> Iterator[Row]:
    """Loss and gradients of a whole model with each setting of the loss."""
    data, (batch, *_) = first_batches(folder, "chat-")
    model = tiny(data.header.vocab_size)
    plainest = label_loss(LabelConfig(label_only=False, attention="masked"))
    expected = gradients(model, plainest, batch, "fp32", CPU)
    settings: dict[str, dict[str, Any]] = {f"attention {name}": {"attention": name} for name in ATTENTIONS}
    settings |= {"every position": {"label_only": False}, "chunks of 100 labels": {"loss_chunk": 100}}
    for name, values in settings.items():
        for dtype, most in (("bf16", 3e-2), ("fp32", 2e-4)):
            title = f"model, {name}, {dtype}"
            if why := runs_on(values.get("attention", ""), device, dtype):
                yield skipped(title, why)
                continue
            yield check(title, most, partial(setting_gradients, model, values, batch, dtype, device), expected)
    model.checkpoint_every = 1
    found = partial(setting_gradients, model, {}, batch, "fp32", device)
    yield check("model, all activations computed again, fp32", 2e-4, found, expected)


def setting_gradients(
    model: CausalLM, values: dict[str, Any], batch: Batch, dtype: str, device: torch.device
) -> list[Tensor]:
    return gradients(model, label_loss(LabelConfig(**values)), batch, dtype, device)


def check_fused_losses(device: torch.device, folder: Path) -> Iterator[Row]:
    """Kernels for head and loss, where their packages are installed."""
    g = torch.Generator().manual_seed(0)
    hidden, weight = (torch.randn(n, 128, generator=g).bfloat16() for n in (700, 5000))
    targets = torch.randint(0, 5000, (700,), generator=g)

    def through(loss: Any, to: torch.device, dtype: torch.dtype) -> list[Tensor]:
        x, head = hidden.to(to, dtype).requires_grad_(), nn.Linear(128, 5000, bias=False)
        head.weight = nn.Parameter(0.05 * weight.to(to, dtype))
        total = loss(x, head, targets.to(to))[0]
        return [total, *torch.autograd.grad(total, (x, head.weight))]

    title = "head loss liger, bf16"
    try:
        loss = liger_loss(device)
    except DatakitError as e:  # not installed, or not this device
        yield skipped(title, str(e))
        return
    expected = partial(through, head_loss, CPU, torch.float32)
    yield check(title, 3e-2, partial(through, loss, device, torch.bfloat16), expected)


def check_experts(device: torch.device, folder: Path) -> Iterator[Row]:
    """Experts in bf16, on CUDA one grouped product for all, beside the CPU; one expert gets no token."""
    g = torch.Generator().manual_seed(0)
    c = replace(PRESETS["tiny"], hidden_size=64, moe=MoeConfig(num_experts=8, experts_per_token=2, expert_size=96))
    layer = MoE(c, partial(MLP, c))
    for p in layer.parameters():
        p.data = 0.1 * torch.randn(p.shape, generator=g).bfloat16().float()
    x, chosen = torch.randn(300, 64, generator=g).bfloat16(), torch.randint(0, 7, (300, 2), generator=g)

    def through(to: torch.device, dtype: torch.dtype) -> list[Tensor]:
        own = MoE(c, partial(MLP, c))
        own.load_state_dict(layer.state_dict())
        own = own.to(to, dtype)
        out = own._apply_experts(x.to(to, dtype), chosen.to(to))
        out.float().square().sum().backward()
        return [out, torch.cat([p.grad.float().flatten() for p in own.experts.parameters()])]

    found = partial(through, device, torch.bfloat16)
    yield check("experts, bf16", 3e-2, found, partial(through, CPU, torch.float32))


def check_batches(device: torch.device, folder: Path) -> Iterator[Row]:
    """Batches that were copied from pinned memory while the device worked are those that are made on the CPU."""
    data, _ = first_batches(folder, "chat-")
    config = DataConfig(batch_rows=8, num_workers=2)

    def wrong() -> list[bool]:
        stream = StepStream(data, config, seed=0, pin=device.type == "cuda", label_fill=16)
        on_device, on_cpu = stream.on(device), StepStream(data, config, seed=0, label_fill=16).on(CPU)
        busy, found = torch.randn(2048 if device.type == "cuda" else 8, 64, device=device), []
        for _ in range(min(40, stream.plan.steps_per_epoch)):
            busy = (busy @ busy.T @ busy).tanh()  # work that the copies overlap with
            for a, b in zip(next(on_device), next(on_cpu), strict=True):
                pairs = [(a.ids_BT, b.ids_BT), (a.label_pos_L, b.label_pos_L), (a.targets_L, b.targets_L)]
                pairs += [(a.segments.positions_BT, b.segments.positions_BT)]
                pairs += [(a.segments.sequence_BT, b.segments.sequence_BT)]
                found += [not torch.equal(x.cpu(), y) for x, y in pairs]
        return found

    yield check("batches through pinned memory", 0, lambda: sum(wrong()), 0, lambda a, b: float(a - b))


def started(
    folder: Path, name: str, out: Path, device: str, steps: int, values: dict[str, Any], model: CausalLM | None = None
) -> Trainer:
    """A run on the first set of a name; `values` are options, such as `loop.dtype`."""
    manifest = next(folder.glob(f"{name}*")) / "manifest.json"
    plain = {
        "loop.out": str(out), "loop.steps": steps, "loop.device": device, "loop.dtype": "fp32", "data.batch_rows": 8,
        "data.verify": False, "optim.lr": 1e-3, "optim.warmup_steps": 0, "track.report_to": ("none",),
    }  # fmt: skip
    nested: dict[str, Any] = {"manifest": str(manifest)}
    for key, value in (plain | values).items():
        section, _, option = key.partition(".")
        nested.setdefault(section, {})[option] = value
    config = build(SftConfig, nested, "options")
    data = Mixture.open([manifest], verify=False)
    data = data.unlabelled() if name.startswith("text") else data
    return prepare(config, objective(config), data, model or tiny(data.header.vocab_size))


def losses(
    folder: Path, device: torch.device, steps: int, values: dict[str, Any], scale: float | None = None
) -> list[float]:
    """The losses of a short run of train.sft; `scale` is the first scale of the loss in fp16."""
    with tempfile.TemporaryDirectory() as out, contextlib.redirect_stdout(io.StringIO()):
        trainer = started(folder, "chat-", Path(out), device.type, steps, values)
        if scale:
            trainer.loss_scale = LossScale(trainer.device, scale)
        batches = trainer.stream.on(trainer.device)
        return [trainer._step(batches).loss for _ in range(steps)]


def check_training(device: torch.device, folder: Path) -> Iterator[Row]:
    """Losses of six steps in each precision and with each optimizer, beside fp32 on CPU."""
    cpu = losses(folder, CPU, 6, {})
    cases: list[tuple[str, dict[str, Any], float]] = [
        ("fp32", {}, 1e-3),
        ("bf16", {"loop.dtype": "bf16"}, 2e-2),
        ("fp16", {"loop.dtype": "fp16"}, 2e-2),
        ("two micro-batches", {"data.batch_rows": 4, "data.grad_accum": 2}, 1e-3),
    ]
    for name, values, most in cases:
        yield check(f"training, {name}", most, partial(losses, folder, device, 6, values), cpu, relative)
    overflow = partial(losses, folder, device, 4, {"loop.dtype": "fp16"}, 2.0**60)
    first = [cpu[0]] * 4  # every step is skipped, so the model stays as it is, and only the rows differ
    yield check("training, fp16, steps that overflow are skipped", 0.1, overflow, first, relative)
    found, expected = (partial(losses, folder, d, 4, {"optim.optimizer": "muon"}) for d in (device, CPU))
    yield check("training, muon", 5e-3, found, expected, relative)


def check_compile(device: torch.device, folder: Path) -> Iterator[Row]:
    """Compiled layers beside eager ones, with every attention that the device has."""
    dtype = "bf16" if device.type == "cuda" else "fp32"
    for attention in ATTENTIONS if device.type == "cuda" else ("grouped",):  # on CPU compiling takes long
        values = {"loop.dtype": dtype, "labels.attention": attention}
        found = partial(losses, folder, device, 4, values | {"loop.compile": True})
        yield check(f"compiled, {attention}", 1e-2, found, partial(losses, folder, device, 4, values), relative)


def check_ranks(device: torch.device, folder: Path) -> Iterator[Row]:
    """nccl (gloo on CPU) with one rank: collectives, summed gradients, a sharded model, a sharded run that resumes."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    os.environ |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
    os.environ["MASTER_PORT"] = str(port)
    device = usable_device(device.type)
    ranks = Ranks.join(device, RanksConfig(rank_timeout_s=60))
    data, (batch, *_) = first_batches(folder, "chat-")
    vocab, loss = data.header.vocab_size, label_loss(LabelConfig())
    expected = gradients(tiny(vocab), loss, batch, "fp32", CPU)

    def collectives() -> list[Any]:
        found, told = torch.arange(4.0, device=device), [{"a": 1}]
        torch.distributed.all_reduce(found)
        torch.distributed.broadcast_object_list(told, 0, device=device)
        return [*found.tolist(), *told]

    def summed() -> list[Tensor]:
        model = tiny(vocab).to(device)
        sums = GradientSum(ranks, model)
        sums.last_pass()
        mean = gradients(model, loss, batch, "fp32", device)[0]
        sums.finish()
        return [mean, torch.cat([p.grad.flatten() for p in model.parameters()])]

    def sharded() -> list[Tensor]:
        model = tiny(vocab)
        shard(ranks, model)
        loss_sum, count = tuple(loss(model, batch.to(device)))[:2]
        (loss_sum / count).backward()
        grads = [whole_of(p.grad).float().flatten() for p in model.parameters()]
        return [loss_sum.detach() / count, torch.cat(grads)]

    def run(name: str, stops: Sequence[int]) -> list[float]:
        with tempfile.TemporaryDirectory() as out, contextlib.redirect_stdout(io.StringIO()):
            for stop in stops:
                values = {"ranks.fsdp": True, "loop.stop_at": stop, "loop.resume": stop != stops[0]}
                started(folder, "chat-", Path(out), device.type, 6, values).run()
            return [json.loads(line)["loss"] for line in (Path(out) / "metrics.jsonl").read_text().splitlines()]

    backend = torch.distributed.get_backend()
    yield check(f"collectives, {backend}", 0, collectives, [0.0, 1.0, 2.0, 3.0, {"a": 1}], unlike)
    yield check("gradients summed over ranks", 2e-4, summed, expected)
    yield check("sharded model", 2e-4, sharded, expected)
    yield check("sharded run resumes", 1e-4, partial(run, "cut", [2, 4]), partial(run, "whole", [4]), relative)
    torch.distributed.destroy_process_group()


def check_objectives(device: torch.device, folder: Path) -> Iterator[Row]:
    """Loss and gradients of preference training and of distillation."""
    data, (batch, *_) = first_batches(folder, "pairs")
    reference, policy = (tiny(data.header.vocab_size) for _ in range(2))
    g = torch.Generator().manual_seed(1)
    for p in policy.parameters():
        p.data += 0.02 * torch.randn(p.shape, generator=g)
    pairs = dpo.DpoLoss(
        dpo.PairConfig(), lambda _, b: dpo.log_probs(reference, b, dpo.ChunkedConfig())[0].detach()[: len(b.rows)]
    )
    teacher = distill.DistillLoss(distill.TeacherConfig(teacher="-"), reference)
    for name, loss in (("dpo", pairs), ("distill", teacher)):

        def through(to: torch.device, loss: Any = loss) -> list[Tensor]:
            reference.to(to)
            return gradients(policy, loss, batch, "fp32", to)

        expected = through(CPU)
        yield check(f"{name}, fp32", 5e-4, partial(through, device), expected)


def check_generation(device: torch.device, folder: Path) -> Iterator[Row]:
    """Greedy tokens beside the CPU's; sampling repeats by its seed."""
    model = tiny(512).eval()
    nn.init.normal_(model.model.embed_tokens.weight, std=0.3, generator=torch.Generator().manual_seed(3))
    prompts = [[(7 * i + j) % 500 for j in range(n)] for i, n in enumerate((5, 70, 130, 3, 64))]
    greedy = SampleConfig(max_new_tokens=24)

    def answered(to: torch.device, sample: SampleConfig, slots: int) -> list[list[int]]:
        jobs = jobs_of(prompts, frozenset(), sample)
        for _ in stream(model.to(to), jobs, slots):
            pass
        return [job.answer for job in jobs]

    sampled = SampleConfig(max_new_tokens=24, temperature=1.0, top_p=0.9)
    for name, slots in (("all answers at once", 5), ("fewer slots than answers", 3)):
        found, expected = (partial(answered, d, greedy, slots) for d in (device, CPU))
        yield check(f"generation, greedy, {name}", 0, found, expected, unlike)
    again = partial(answered, device, sampled, 5)
    yield check("generation, sampled, repeats", 0, again, again, unlike)


def check_optimizers(device: torch.device, folder: Path) -> Iterator[Row]:
    """Weights after three steps of each optimizer with given gradients, beside the CPU's."""

    def weights(name: Any, to: torch.device) -> list[Tensor]:
        model = tiny(512).to(to)
        optimizer = make_optimizer(model, OptimConfig(optimizer=name, lr=1e-2))
        optimizer.set_rate(1e-2)
        for step in range(3):
            g = torch.Generator().manual_seed(step)
            for p in model.parameters():
                p.grad = torch.randn(p.shape, generator=g).to(to)
            optimizer.step()
        return [p.detach() for p in model.parameters()]

    names = {"adamw": 1e-4, "muon": 2e-2} | ({"adamw8bit": 2e-2} if find_spec("bitsandbytes") else {})
    for name, most in names.items():
        found, expected = (partial(weights, name, d) for d in (device, CPU))
        yield check(name, most, found, expected)


CHECKS: dict[str, Callable[[torch.device, Path], Iterator[Row]]] = {
    "attention": check_attention,
    "model": check_model,
    "fused-losses": check_fused_losses,
    "experts": check_experts,
    "batches": check_batches,
    "training": check_training,
    "compile": check_compile,
    "ranks": check_ranks,
    "objectives": check_objectives,
    "generation": check_generation,
    "optimizers": check_optimizers,
}


# ---- rates ----


def rate(
    folder: Path, device: torch.device, small: bool, size: str, seq_len: int, data: str, name: str,
    values: dict[str, Any],
) -> Row:  # fmt: skip
    """Train some steps with a setting; with half the rows where memory is short."""
    config = TINY if small else SIZES[size]
    rows = 4 if small else max(1, TOKENS[size] // seq_len)
    while True:
        try:
            return {"size": size, "seq_len": seq_len, "variant": name} | _rate(
                folder, device, small, config, f"{data}-{seq_len}", rows, values
            )
        except torch.OutOfMemoryError:
            if rows == 1:
                raise
            rows //= 2
        torch.cuda.empty_cache()


def _rate(
    folder: Path, device: torch.device, small: bool, config: ModelConfig, data: str, rows: int, values: dict[str, Any]
) -> Row:
    warmup, least, seconds = (1, 2, 0.0) if small else (3, 5, 3.0)
    cuda = device.type == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    with torch.device(device):
        model = CausalLM(config)
    model.init_weights(torch.Generator(device).manual_seed(0))
    with tempfile.TemporaryDirectory() as out, contextlib.redirect_stdout(io.StringIO()):
        options = {"loop.dtype": "bf16", "data.batch_rows": rows, "data.bucket_sizes": (int(data.split("-")[1]),)}
        begin = time.perf_counter()
        trainer = started(folder, data, Path(out), device.type, 10**6, options | values, model)
        batches = trainer.stream.on(trainer.device)
        for _ in range(warmup):
            trainer._step(batches)
        warm = time.perf_counter() - begin
        reports, began = [], time.perf_counter()
        while len(reports) < least or (time.perf_counter() - began < seconds and len(reports) < 50):
            reports.append(trainer._step(batches))
        if cuda:
            torch.cuda.synchronize()
        wall = time.perf_counter() - began
    real = sum(r.real_tokens for r in reports)
    peak = peak_flops(device)
    owner = trainer.stream.data.sets[0]
    packed, some = owner.packed, min(256, len(owner.lengths))
    lengths = np.concatenate([np.diff(packed.segments_of(row)) for row in range(some)]).astype(float)
    context = float((lengths * (lengths + 1) / 2).sum() / lengths.sum())
    flops = model.flops_per_token(context) * real / wall
    return {
        "rows": rows, "tokens_per_second": real / wall, "mfu": flops / peak if peak else None, "tflops": flops / 1e12,
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if cuda else None,
        "step_ms": statistics.median(r.seconds for r in reports) * 1e3,
        "data_wait": sum(r.data_seconds for r in reports) / wall, "warmup_s": warm, "steps": len(reports),
        "loss": reports[-1].loss,
    }  # fmt: skip


def rates(part: str, device: torch.device, folder: Path, small: bool) -> Iterator[Row]:
    """The rows of a part `rate:SIZE:SEQ_LEN` or `saving:SIZE:SEQ_LEN`."""
    kind, size, seq_len = part.split(":")
    variants, data = (VARIANTS, "text") if kind == "rate" else (SAVINGS, "chat")
    for name, values in variants.items():
        only_cuda = values.get("labels.attention") in CUDA_ONLY or "labels.head_loss" in values or "loop.tf32" in values
        if device.type != "cuda" and (only_cuda or "loop.compile" in values or values.get("loop.dtype") == "fp16"):
            continue
        try:
            yield rate(folder, device, small, size, int(seq_len), data, name, values)
        except Exception as e:
            message = (str(e).strip().splitlines() or [""])[0][:300]
            yield {"size": size, "seq_len": int(seq_len), "variant": name, "error": f"{type(e).__name__}: {message}"}
        if device.type == "cuda":
            torch._dynamo.reset()
            torch.cuda.empty_cache()


# ---- parts and their processes ----


def parts(small: bool) -> list[str]:
    """All parts, the most important first."""
    checks = [f"check:{name}" for name in CHECKS]
    if small:
        return [*checks, "rate:tiny:64", "saving:tiny:64"]
    timed = [f"rate:{size}:1024" for size in ("104m", "350m", "1b", "26m")]
    timed += [f"rate:{size}:4096" for size in ("350m", "1b", "104m", "26m")]
    return [*checks, *timed, "saving:104m:1024", "saving:350m:4096"]


def run_part(a: argparse.Namespace) -> None:
    """The rows of one part, each written as soon as it is known, so that a time limit loses none."""
    device = usable_device(a.device)
    torch.set_num_threads(1 if a.small else 4)
    kind, name = a.part.split(":", 1)
    data = Path(a.out) / "data"
    found = CHECKS[name](device, data) if kind == "check" else rates(a.part, device, data, a.small)
    with (Path(a.out) / "parts" / f"{a.part}.jsonl").open("a") as f:
        for row in found:
            f.write(json.dumps({"part": a.part} | row) + "\n")
            f.flush()


def finish(a: argparse.Namespace, part: str, limit: float) -> None:
    """Run a part in a process of its own; what goes wrong becomes a row."""
    out = Path(a.out)
    command = [sys.executable, __file__, "--part", part, "--device", a.device, "--out", a.out]
    command += ["--small"] if a.small else []
    environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str((out / "compiled").resolve())}
    environment["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
    begin, said = time.monotonic(), ""
    with (out / "parts" / f"{part}.log").open("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
        try:
            code = process.wait(limit)
            log.seek(0)
            said = (log.read().strip().splitlines() or [""])[-1]
            problem = f"the process ended with {code}: {said[:300]}" if code else ""
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            problem = f"not finished within {limit:.0f} s"
    row = {"part": part, "seconds": round(time.monotonic() - begin, 1)} | ({"error": problem} if problem else {})
    with (out / "parts" / f"{part}.jsonl").open("a") as f:
        f.write(json.dumps(row) + "\n")
    print(f"{part}: {problem or 'done'} ({row['seconds']} s)", flush=True)


def gathered(out: Path, small: bool) -> dict[str, list[Row]]:
    """The rows of every part that was run."""
    files = {part: out / "parts" / f"{part}.jsonl" for part in parts(small)}
    return {part: [json.loads(line) for line in f.read_text().splitlines()] for part, f in files.items() if f.is_file()}


def machine(device: torch.device) -> Row:
    about = {"torch": torch.__version__, "python": platform.python_version(), "device": device.type}
    if device.type != "cuda":
        return about
    peak, memory = peak_flops(device), torch.cuda.get_device_properties(device).total_memory
    return about | {"name": torch.cuda.get_device_name(device), "cuda": torch.version.cuda,
                    "peak_tflops": peak and peak / 1e12, "memory_gib": memory / 2**30}  # fmt: skip


def report(found: dict[str, list[Row]], about: Row, left: list[str]) -> str:
    """The tables in Markdown."""
    rows = [row for part in found.values() for row in part]
    checks = [r for r in rows if "check" in r]
    lines = ["# " + ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in about.items()), ""]
    wrong = [r for r in checks if r["ok"] is False]
    lines += [f"{sum(r['ok'] is True for r in checks)} checks hold, {len(wrong)} do not, "
              f"{sum(r['ok'] is None for r in checks)} were skipped.", ""]  # fmt: skip
    lines += ["| check | difference | at most | |", "| --- | --- | --- | --- |"]
    for r in [*wrong, *(r for r in checks if r["ok"] is not False)]:
        sizes = ("" if r[k] is None else f"{r[k]:.1e}" for k in ("difference", "tolerance"))
        verdict = {True: "equal", False: "**NOT EQUAL**", None: ""}[r["ok"]]
        lines.append(f"| {r['check']} | {' | '.join(sizes)} | {verdict} {r['remark']} |")
    columns = ["tokens_per_second", "mfu", "tflops", "peak_gib", "step_ms", "data_wait", "rows", "warmup_s"]
    lines += ["", f"| size | seq_len | variant | {' | '.join(columns)} |", "| --- " * (3 + len(columns)) + "|"]
    for r in rows:
        if "variant" in r:
            values = [r["error"]] if "error" in r else [_shown(c, r[c]) for c in columns]
            lines.append(f"| {r['size']} | {r['seq_len']} | {r['variant']} | {' | '.join(values)} |")
    problems = [f"- {r['part']}: {r['error']}" for r in rows if "error" in r and "variant" not in r]
    lines += ["", *problems, *(f"- {part}: no time was left; the same command runs it" for part in left)]
    return "\n".join(lines) + "\n"


def _shown(column: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.1%}" if column in ("mfu", "data_wait") else f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def main() -> int:
    """Run what has no result yet; returns 1 if a check does not hold or a part failed."""
    begin = time.monotonic()
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", required=True, help="folder for gpu.md, gpu.json, the data and the logs of parts")
    p.add_argument("--device", default="cuda")
    p.add_argument("--small", action="store_true", help="tiny models and data: a rehearsal")
    p.add_argument("--only", default="", help="parts that have this in their name, such as rate:104m")
    p.add_argument("--seconds", type=float, default=520.0, help="time for everything")
    p.add_argument("--part", help="one part alone, in this process")
    a = p.parse_args()
    if a.part:
        run_part(a)
        return 0
    out, device = Path(a.out), usable_device(a.device)
    (out / "parts").mkdir(parents=True, exist_ok=True)
    if not (out / "data").is_dir():
        make_data(out / "data.tmp", a.small)
        (out / "data.tmp").rename(out / "data")
    wanted = [part for part in parts(a.small) if a.only in part and not (out / "parts" / f"{part}.jsonl").is_file()]
    left: list[str] = []

    def one(part: str) -> None:
        limit = min(LIMITS[part.split(":")[0]], a.seconds - (time.monotonic() - begin) - 5)
        if limit < 20:
            left.append(part)
        else:
            finish(a, part, limit)

    together = 4 if device.type == "cuda" else 1
    with ThreadPoolExecutor(together) as pool:
        list(pool.map(one, [part for part in wanted if part.startswith("check:")]))
    for part in wanted:
        if not part.startswith("check:"):
            one(part)
    found, about = gathered(out, a.small), machine(device)
    (out / "gpu.json").write_text(json.dumps({"machine": about, "parts": found, "left": left}, indent=1) + "\n")
    (out / "gpu.md").write_text(report(found, about, left))
    failed = [r for part in found.values() for r in part if r.get("ok") is False or "error" in r]
    print(f"{out / 'gpu.md'}: {len(failed)} problems, {len(left)} parts left", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
