"""What fits: GiB of weights, gradients, optimizer state and saved activations, by method and GPU.

    python -m train.memory --init FOLDER --seq-len 4096
    python -m train.memory --seq-len 2048

Without --init the table is of sizes from scratch. The formula counts the tensors of one rank at the end of the forward
pass, when most are in memory: one sequence in each row, every position a label, attention that keeps no scores.
What the allocator, kernels and the driver take is not in it, so a tenth of a GPU and 1 GiB are left free.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import torch

from datakit.config import option
from datakit.errors import ConfigError
from train.engine import checkpoint, flags
from train.model import hf, lora
from train.model.decoder import PRESETS, CausalLM, ModelConfig, of_depth

GPUS = (8, 16, 24, 48, 80, 141)
"""GiB of the usual GPUs."""
GIB = 1 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryConfig:
    """Model, batch and settings."""

    init: str = option("", "Hugging Face folder, checkpoint or run; default: sizes from scratch")
    seq_len: int = option(2048, "positions of a row")
    batch_rows: int = option(1, "rows of a micro-batch")
    lora_rank: int = option(16, "rank of adapters, on every projection")
    dtype: Literal["bf16", "fp32"] = option("bf16", "precision of the arithmetic")
    checkpoint_every: int = option(0, "recompute the activations of every N-th layer; 0: none, 1: all")
    loss_chunk: int = option(0, "labels with logits in memory at once; 0: all")
    ranks: int = option(1, "ranks that share weights, gradients and state (--fsdp)")

    def __post_init__(self) -> None:
        if min(self.seq_len, self.batch_rows, self.lora_rank, self.ranks) < 1:
            raise ConfigError("seq_len, batch_rows, lora_rank and ranks must be at least 1")
        if min(self.checkpoint_every, self.loss_chunk) < 0:
            raise ConfigError("checkpoint_every and loss_chunk must be 0 or more")


@dataclass(frozen=True, slots=True)
class Method:
    """Bytes of a parameter, and which parameters are trained."""

    flags: str
    weights: float = 4.0
    gradients: float = 4.0
    state: float = 8.0
    matrix_state: float = 8.0
    """Of the matrices of the layers."""
    adapters: bool = False
    packed: bool = False
    """The matrices of the layers are in NF4: a scale of 8 bits for 64 weights, of 32 bits for 256 scales."""


METHODS = (
    Method("--optimizer adamw"),
    Method("--optimizer muon", matrix_state=4.0),
    Method("--optimizer adamw8bit", state=2.0, matrix_state=2.0),
    Method("--weights-dtype bf16", weights=2.0, gradients=2.0, state=4.0, matrix_state=4.0),
    Method("--lora-rank", adapters=True),
    Method("--lora-rank --weights-dtype bf16", weights=2.0, adapters=True),
    Method("--lora-rank --qlora --weights-dtype bf16", weights=2.0, adapters=True, packed=True),
)
NF4_BYTES = 0.5 + 1 / 64 + 4 / (64 * 256)


@dataclass(frozen=True, slots=True)
class Counts:
    """Parameters of a model by kind."""

    matrices: int
    """Projections of the layers, experts included."""
    others: int
    adapter_widths: int
    """Inputs and outputs of all projections: parameters of adapters of rank 1."""

    @classmethod
    def of(cls, config: ModelConfig) -> "Counts":
        """Count without weights."""
        with torch.device("meta"):
            model = CausalLM(config)
        found = [p for name, p in model.named_parameters() if name.endswith("_proj.weight")]
        matrices = sum(p.numel() for p in found)
        return cls(matrices, model.num_parameters() - matrices, sum(sum(p.shape) for p in found))

    @property
    def all(self) -> int:
        """All parameters."""
        return self.matrices + self.others


class Memory(NamedTuple):
    """Bytes of a rank."""

    weights: float
    gradients: float
    state: float
    activations: float


def memory(config: ModelConfig, counts: Counts, method: Method, run: MemoryConfig) -> Memory:
    """The bytes of a rank with this method."""
    adapters = counts.adapter_widths * run.lora_rank
    trained = adapters if method.adapters else counts.all
    matrices = counts.matrices * (NF4_BYTES if method.packed else method.weights)
    weights = matrices + counts.others * method.weights + (4 * adapters if method.adapters else 0)
    full = counts.matrices * method.matrix_state + counts.others * method.state
    state = 8 * trained if method.adapters else full
    gradients = 4 * trained if method.adapters else method.gradients * trained
    weights, gradients, state = (x / run.ranks for x in (weights, gradients, state))
    return Memory(weights, gradients, state, activations(config, counts, method, run))


def activations(c: ModelConfig, counts: Counts, method: Method, run: MemoryConfig) -> float:
    """Bytes that the forward pass keeps for the backward pass.

    Of each layer and position: the stream before both norms and both results, queries, keys, values, the attended
    values twice, gate and up, and their product. Of a label: its logits in fp32, and the head's input.
    """
    size, tokens = 2 if run.dtype == "bf16" else 4, run.seq_len * run.batch_rows
    heads, keys = c.num_heads * c.head_dim, 2 * c.num_kv_heads * c.head_dim
    inner = (3 if c.gated else 2) * c.intermediate_size
    if c.moe.num_experts:
        active = c.moe.experts_per_token
        inner = active * (3 * c.moe.inner_size(c.intermediate_size) + 2 * c.hidden_size)
    norms = 6 if c.norm_at == "around" else 4
    layer = norms * c.hidden_size + 3 * heads + keys + inner
    layer += (heads + keys // 2) if c.qk_norm else 0
    if method.adapters:
        layer += 7 * run.lora_rank
    again = c.num_layers // run.checkpoint_every if run.checkpoint_every else 0
    live = c.num_layers - again + (1 if again else 0)  # one is computed again at a time
    kept = live * layer + again * c.hidden_size
    logits = tokens * c.vocab_size * 4
    if run.loss_chunk:  # the gradient of the head is made in the forward pass
        logits = min(run.loss_chunk, tokens) * c.vocab_size * 8 + size * c.vocab_size * c.hidden_size
    cast = 0.0
    if method.packed or (method.adapters and size == method.weights):
        cast = 2.0 * counts.adapter_widths * run.lora_rank
    elif size != method.weights:  # copies in bf16; not of embeddings, which are looked up
        head = 0 if run.loss_chunk else c.vocab_size * c.hidden_size
        cast = 2.0 * (counts.matrices * live / c.num_layers + head)
    return size * tokens * (kept + 3 * c.hidden_size + c.head_dim) + logits + cast


def rows_that_fit(config: ModelConfig, counts: Counts, method: Method, run: MemoryConfig, gib: int) -> int:
    """The most rows of a micro-batch on a GPU of `gib`; 0 if not even one fits."""
    one, two = (sum(memory(config, counts, method, replace(run, batch_rows=n))) for n in (1, 2))
    free = gib * GIB * 0.9 - GIB
    return 0 if one > free else 1 + int((free - one) / (two - one))


def table(name: str, config: ModelConfig, run: MemoryConfig) -> str:
    """The table of a model: GiB of each method, and the rows of a micro-batch that fit on each GPU."""
    counts = Counts.of(config)
    head = ["method", "weights", "gradients", "state", "activations", "GiB", *(f"{g}" for g in GPUS)]
    rows = [head]
    for method in METHODS:
        found = memory(config, counts, method, run)
        fit = (rows_that_fit(config, counts, method, run, gib) for gib in GPUS)
        label = method.flags.replace("--lora-rank", f"--lora-rank {run.lora_rank}")
        rows.append([label, *(f"{x / GIB:.2f}" for x in (*found, sum(found))), *(str(n) if n else "-" for n in fit)])
    wide = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = ["  ".join([row[0].ljust(wide[0]), *map(str.rjust, row[1:], wide[1:])]) for row in rows]
    title = (
        f"{name}: {counts.all / 1e6:,.1f}M parameters, {run.batch_rows} x {run.seq_len} positions, {run.dtype}; GiB of "
        f"each part, and the rows of a micro-batch that fit on a GPU of 8 to 141 GiB"
    )
    return "\n".join([title, *lines])


def main(argv: Sequence[str], prog: str = "python -m train.memory") -> int:
    """Print the tables; returns the exit code."""
    run = flags.built(MemoryConfig, flags.given(MemoryConfig, prog, __doc__, argv))
    if run.init:
        models = {run.init: hf.read_config(lora.base_of(checkpoint.newest_of_run(Path(run.init))))}
    else:
        models = {name: PRESETS[name] for name in ("26m", "104m")}
        models |= {f"depth {d}": replace(of_depth(d), vocab_size=32768) for d in (12, 20, 26, 32)}
    print("\n\n".join(table(name, config, run) for name, config in models.items()))
    return 0


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
