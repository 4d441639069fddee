"""The decoder: the Llama/Qwen3 family by configuration, with a few optional parts.

RMSNorm, rotary positions, grouped-query attention, SwiGLU or experts. Modules have the names of Hugging Face
checkpoints, so a state dict needs no translation. `ModelOptions` adds parts that Llama does not have; all are off by
default. Every part that reads another token stays within that token's sequence, so packing changes nothing.

Shapes: B rows, T positions, L labels, D hidden, H query heads, K key/value heads, E head width, V vocabulary.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from datakit.config import option
from datakit.errors import ConfigError
from train.model.attention import Attend, move_rows
from train.model.experts import MoE, MoeConfig, Project
from train.model.loss import sparse_loss

if TYPE_CHECKING:
    from train.data.batches import Batch

REMOVED_OPTIONS = ("untie_at", "paired_layers", "partial_key_offset", "smear", "bigram_buckets", "backout")
"""Options of earlier versions that no longer exist."""


def without_removed(options: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Saved options of the model, without removed ones that were switched off.

    Raises:
        ConfigError: a removed option was in use.
    """
    for name in REMOVED_OPTIONS:
        if options.get(name):  # 0, False and () switched it off
            raise ConfigError(removed_option(name, where))
    return {name: value for name, value in options.items() if name not in REMOVED_OPTIONS}


def removed_option(name: str, where: str) -> str:
    """The message for a removed option that is still in use."""
    names = ", ".join(REMOVED_OPTIONS)
    return (
        f"{where}: the model option {name} was removed, like all of {names}: this version cannot train or run a model "
        f"with it; use the version of datakit that made the model, or train a model without it"
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelOptions:
    """Options for a model that starts from random weights, besides its preset."""

    zero_init: bool = option(
        False, "output projections of attention and MLP start at zero, so each layer starts as identity (Fixup, 2019)"
    )
    logit_softcap: float = option(0.0, "logits are softcap * tanh(logits / softcap) (Gemma 2, 2024); 0: off")
    relu2: bool = option(False, "squared ReLU without a gate in place of SwiGLU (Primer: So et al., 2021)")
    value_embeddings: int = option(
        0, "tables of values by token, mixed into the values of the first n and the last n layers (modded-nanogpt)"
    )
    mtp_depth: int = option(0, "extra tokens predicted ahead in training, one layer each (DeepSeek-V3, 2024)")
    mtp_weight: float = option(0.3, "weight of the losses of tokens ahead")

    def __post_init__(self) -> None:
        if min(self.logit_softcap, self.value_embeddings, self.mtp_depth, self.mtp_weight) < 0:
            raise ConfigError("options of the model must not be negative")

    def changed(self) -> dict[str, Any]:
        """Options that make the model different from Llama, by name; `zero_init` only sets the first weights."""
        plain = asdict(ModelOptions())
        return {k: v for k, v in asdict(self).items() if v != plain[k] and k != "zero_init"}


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """Everything that the model's mathematics depends on; the defaults are Llama's."""

    vocab_size: int
    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    max_positions: int = 2048
    """Longest sequence, in tokens."""
    rope_theta: float = 10000.0
    norm_eps: float = 1e-5
    qk_norm: bool = False
    """RMSNorm on the queries and keys of each head (Qwen3)."""
    qkv_bias: bool = False
    output_bias: bool = False
    """Bias of the attention's output projection."""
    tied_embeddings: bool = True
    """The output head is the embedding matrix."""
    moe: MoeConfig = field(default_factory=MoeConfig)
    options: ModelOptions = field(default_factory=ModelOptions)

    def __post_init__(self) -> None:
        if min(self.vocab_size, self.hidden_size, self.num_layers, self.num_kv_heads, self.max_positions) < 1:
            raise ConfigError(f"model: sizes must be at least 1, found {self}")
        if self.num_heads % self.num_kv_heads:
            raise ConfigError(
                f"model: num_heads {self.num_heads} is not a multiple of num_kv_heads {self.num_kv_heads}"
            )
        if self.head_dim % 2:
            raise ConfigError(f"model: rotary positions need an even head_dim, found {self.head_dim}")
        if 2 * self.options.value_embeddings > self.num_layers:
            raise ConfigError(
                f"value_embeddings {self.options.value_embeddings}: more than half of {self.num_layers} layers"
            )

    @property
    def needs_all_positions(self) -> bool:
        """Whether the loss needs the last layer at unlabelled positions: for routers, or for tokens ahead."""
        return self.moe.num_experts > 0 or self.options.mtp_depth > 0


_26M = ModelConfig(
    vocab_size=6400, hidden_size=512, num_layers=8, num_heads=8, num_kv_heads=2, head_dim=64, intermediate_size=1408
)
PRESETS = {
    "tiny": replace(_26M, hidden_size=128, num_layers=4, num_heads=4, head_dim=32, intermediate_size=384),
    "26m": _26M,
    # minimind-3
    "64m": replace(
        _26M,
        hidden_size=768,
        num_heads=8,
        num_kv_heads=4,
        head_dim=96,
        intermediate_size=2432,
        qk_norm=True,
        rope_theta=1e6,
        norm_eps=1e-6,
    ),
    # the width and depth of minimind2
    "104m": replace(_26M, hidden_size=768, num_layers=16, head_dim=96, intermediate_size=2048, rope_theta=1e6),
}
"""Model sizes by name; the vocabulary is replaced by the data's."""


class RMSNorm(nn.Module):
    """Divide by the root mean square, then multiply by a learned weight (Zhang and Sennrich, 2019)."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x: Tensor) -> Tensor:
        """The same shape and dtype."""
        # the fused kernel needs input and weight of one dtype
        weight = self.weight.to(x.dtype)
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return F.rms_norm(x, weight.shape, weight, self.eps)
        normed: Tensor = _CpuRMSNorm.apply(x, weight, self.eps)  # type: ignore[no-untyped-call]
        return normed


class _CpuRMSNorm(torch.autograd.Function):
    """torch's own saves input and output in fp32 on CPU; this saves the input in its own dtype."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight_D: Tensor, eps: float) -> Tensor:
        ctx.save_for_backward(x, weight_D)
        ctx.eps = eps
        return F.rms_norm(x, weight_D.shape, weight_D, eps)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight_D = ctx.saved_tensors
        with torch.autocast("cpu", enabled=False):
            kind = torch.promote_types(x.dtype, torch.float32)
            grad, wide = grads[0].to(kind), x.to(kind)
            scale = wide.square().mean(-1, keepdim=True).add_(ctx.eps).rsqrt_()
            normed, weighted = wide * scale, grad * weight_D
            grad_D = (grad * normed).flatten(0, -2).sum(0)
            along = (weighted * normed).mean(-1, keepdim=True)
            return weighted.sub_(normed.mul_(along)).mul_(scale).to(x.dtype), grad_D.to(weight_D.dtype), None


def gated(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up."""
    if gate.device.type != "cpu" or torch.compiler.is_compiling():
        return F.silu(gate) * up
    product: Tensor = _Gated.apply(gate, up)  # type: ignore[no-untyped-call]
    return product


class _Gated(torch.autograd.Function):
    """Recomputes silu(gate) in the backward pass instead of saving it."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        ctx.save_for_backward(gate, up)
        return F.silu(gate).mul_(up)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        gate, up = ctx.saved_tensors
        return torch.ops.aten.silu_backward(grads[0] * up, gate), F.silu(gate).mul_(grads[0])


class MLP(nn.Module):
    """SwiGLU (Shazeer, 2020)."""

    matrices = ("gate_proj", "up_proj", "down_proj")

    def __init__(self, hidden_size: int, inner_size: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, inner_size, bias=False)
        self.up_proj = nn.Linear(hidden_size, inner_size, bias=False)
        self.down_proj = nn.Linear(inner_size, hidden_size, bias=False)

    @staticmethod
    def through(x: Tensor, gate: Project, up: Project, down: Project) -> Tensor:
        """Apply the projections, which may be layers or grouped products, to x."""
        return down(gated(gate(x), up(x)))

    def forward(self, x_BTD: Tensor) -> Tensor:
        """The layer's addition to the residual stream, (B, T, D)."""
        return self.through(x_BTD, self.gate_proj, self.up_proj, self.down_proj)


class SquaredReLU(nn.Module):
    """Two matrices and no gate: down(relu(up(x))^2) (Primer: So et al., 2021)."""

    matrices = ("up_proj", "down_proj")

    def __init__(self, hidden_size: int, inner_size: int) -> None:
        super().__init__()
        self.up_proj = nn.Linear(hidden_size, inner_size, bias=False)
        self.down_proj = nn.Linear(inner_size, hidden_size, bias=False)

    @staticmethod
    def through(x: Tensor, up: Project, down: Project) -> Tensor:
        """Apply the projections, which may be layers or grouped products, to x."""
        return down(F.relu(up(x)).square())

    def forward(self, x_BTD: Tensor) -> Tensor:
        """The layer's addition to the residual stream, (B, T, D)."""
        return self.through(x_BTD, self.up_proj, self.down_proj)


def mlp_of(hidden_size: int, inner_size: int, layer: int, moe: MoeConfig, relu2: bool) -> nn.Module:
    """The MLP or the experts of a layer."""
    mlp = SquaredReLU if relu2 else MLP
    if not moe.sparse(layer):
        return mlp(hidden_size, inner_size)
    return MoE(hidden_size, moe.inner_size(inner_size), moe, mlp)


def rotary_tables(positions_BT: Tensor, head_dim: int, theta: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosine and sine of each position's angles, (B, T, 1, E/2) (RoPE: Su et al., 2021)."""
    exponents = torch.arange(0, head_dim, 2, device=positions_BT.device, dtype=torch.float32) / head_dim
    angles = positions_BT[..., None, None].float() * theta**-exponents
    return angles.cos().to(dtype), angles.sin().to(dtype)


Rotary = tuple[Tensor, Tensor]
"""Cosine and sine tables of a batch's positions."""


def rotate(x_BTHE: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate each pair (i, i + E/2) by its position's angle: the half-split layout of Hugging Face checkpoints."""
    a, b = x_BTHE.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Attention(nn.Module):
    """Projections of grouped-query attention (Ainslie et al., 2023); an `Attend` does the attention itself."""

    def __init__(self, c: ModelConfig) -> None:
        super().__init__()
        self.head_dim, self.qk_norm = c.head_dim, c.qk_norm
        self.q_proj = nn.Linear(c.hidden_size, c.num_heads * c.head_dim, bias=c.qkv_bias)
        self.k_proj = nn.Linear(c.hidden_size, c.num_kv_heads * c.head_dim, bias=c.qkv_bias)
        self.v_proj = nn.Linear(c.hidden_size, c.num_kv_heads * c.head_dim, bias=c.qkv_bias)
        self.o_proj = nn.Linear(c.num_heads * c.head_dim, c.hidden_size, bias=c.output_bias)
        if c.qk_norm:
            self.q_norm, self.k_norm = (RMSNorm(c.head_dim, c.norm_eps) for _ in range(2))

    def forward(self, x_BTD: Tensor, rotary: Rotary) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, T, H, E), keys and values (B, T, K, E); queries and keys are rotated."""
        return self.queries(x_BTD, rotary), *self.keys_values(x_BTD, rotary)

    def queries(self, x: Tensor, rotary: tuple[Tensor, ...]) -> Tensor:
        """(..., D) -> (..., H, E)."""
        q = self._heads(self.q_proj(x))
        return rotate(self.q_norm(q) if self.qk_norm else q, *rotary)

    def keys_values(self, x: Tensor, rotary: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """(..., D) -> two of (..., K, E)."""
        k, v = (self._heads(project(x)) for project in (self.k_proj, self.v_proj))
        return rotate(self.k_norm(k) if self.qk_norm else k, *rotary), v

    def _heads(self, x: Tensor) -> Tensor:
        heads: Tensor = x.unflatten(-1, (-1, self.head_dim))  # type: ignore[no-untyped-call]
        return heads


class Block(nn.Module):
    """One layer: attention, then MLP; each reads the normalised residual stream and adds to it.

    `before` and `after` have the same shapes in every batch of a bucket, so they are the parts to compile. The shapes
    of the attention between them differ from batch to batch.
    """

    def __init__(self, c: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.input_layernorm = RMSNorm(c.hidden_size, c.norm_eps)
        self.self_attn = Attention(c)
        self.post_attention_layernorm = RMSNorm(c.hidden_size, c.norm_eps)
        self.mlp = mlp_of(c.hidden_size, c.intermediate_size, layer, c.moe, c.options.relu2)
        self._before, self._after = self.before, self.after
        self._queries, self._keys_values, self._after_at = self.queries, self.keys_values, self.after

    def forward(self, x_BTD: Tensor, rotary: Rotary, attend: Attend) -> Tensor:
        """The stream after this layer."""
        return self._after(x_BTD, attend(*self._before(x_BTD, rotary), self.layer))

    def before(self, x_BTD: Tensor, rotary: Rotary) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values."""
        qkv: tuple[Tensor, Tensor, Tensor] = self.self_attn(self.input_layernorm(x_BTD), rotary)
        return qkv

    def after(self, x_BTD: Tensor, attended_BTHE: Tensor) -> Tensor:
        """The stream after attention and MLP are added."""
        x_BTD = x_BTD + self.self_attn.o_proj(attended_BTHE.flatten(-2))
        stream: Tensor = x_BTD + self.mlp(self.post_attention_layernorm(x_BTD))
        return stream

    def at(self, x_BTD: Tensor, rotary: Rotary, attend: Attend, at_L: Tensor, rows_L: Tensor) -> Tensor:
        """The stream after this layer at flat positions `at_L` only, (L, D); `rows_L` is 0..L-1.

        Keys and values are still computed at every position.
        """
        labels = len(at_L)
        x_LD = move_rows(x_BTD.flatten(0, 1), at_L, rows_L, labels)
        k_BTKE, v_BTKE = self._keys_values(x_BTD, rotary)
        q_LHE = self._queries(x_LD, tuple(table.flatten(0, 1)[at_L] for table in rotary))
        q_NHE = move_rows(q_LHE, rows_L, at_L, x_BTD.shape[:2].numel())
        attended_BTHE = attend(q_NHE.view(*x_BTD.shape[:2], *q_NHE.shape[1:]), k_BTKE, v_BTKE, self.layer)
        return self._after_at(x_LD, move_rows(attended_BTHE.flatten(0, 1), at_L, rows_L, labels))

    def queries(self, x_LD: Tensor, rotary: tuple[Tensor, ...]) -> Tensor:
        """Queries of some positions, (L, H, E)."""
        return self.self_attn.queries(self.input_layernorm(x_LD), rotary)

    def keys_values(self, x_BTD: Tensor, rotary: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Keys and values of all positions, each (B, T, K, E)."""
        return self.self_attn.keys_values(self.input_layernorm(x_BTD), rotary)

    def compile_parts(self) -> None:
        """Compile the parts around the attention, once per bucket; layers share the result.

        Parts that run at label positions only are compiled once for all label counts.
        """
        self._before = torch.compile(self.before, dynamic=False)
        self._keys_values = torch.compile(self.keys_values, dynamic=False)
        self._queries = torch.compile(self.queries, dynamic=True)
        if not isinstance(self.mlp, MoE):  # the number of tokens per expert differs in every batch
            self._after = torch.compile(self.after, dynamic=False)
            self._after_at = torch.compile(self.after, dynamic=True)


class ValueEmbeddings(nn.Module):
    """Tables of values by token, mixed into the attention values of the first and last layers (modded-nanogpt).

    With n tables, layer i of the first n uses table i, and layer i of the last n uses table i again.
    """

    def __init__(self, c: ModelConfig) -> None:
        super().__init__()
        self.num_layers, tables = c.num_layers, c.options.value_embeddings
        self.values = nn.ModuleList(nn.Embedding(c.vocab_size, c.num_kv_heads * c.head_dim) for _ in range(tables))
        self.value_mix = nn.Parameter(torch.full((c.num_layers, 2), 0.5))

    def table(self, layer: int) -> int | None:
        """The table that a layer uses."""
        n, first_of_last = len(self.values), self.num_layers - len(self.values)
        return layer if layer < n else layer - first_of_last if first_of_last <= layer < self.num_layers else None

    def mixed(self, attend: Attend, ids_BT: Tensor) -> Attend:
        """`attend`, with the tables mixed into the values of each layer that has one."""

        def attend_mixed(q_BTHE: Tensor, k_BTKE: Tensor, v_BTKE: Tensor, layer: int) -> Tensor:
            if (table := self.table(layer)) is not None:
                mix = self.value_mix[layer].to(v_BTKE.dtype)
                v_BTKE = mix[0] * v_BTKE + mix[1] * self.values[table](ids_BT).to(v_BTKE.dtype).view_as(v_BTKE)
            return attend(q_BTHE, k_BTKE, v_BTKE, layer)

        return attend_mixed


class SoftcappedHead(nn.Linear):
    """An output head with logits softcap * tanh(logits / softcap)."""

    def __init__(self, in_features: int, out_features: int, softcap: float) -> None:
        super().__init__(in_features, out_features, bias=False)
        self.softcap = softcap

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., V)."""
        return self.softcap * torch.tanh(super().forward(x) / self.softcap)


class Ahead(nn.Module):
    """One layer of multi-token prediction (DeepSeek-V3, 2024): used in training only, to predict one token further.

    It combines the hidden state of the token before with this token's embedding. Its output predicts the next token,
    which is one token further ahead for that earlier hidden state.
    """

    def __init__(self, block: nn.Module, c: ModelConfig) -> None:
        super().__init__()
        self.hidden_norm, self.token_norm, self.norm = (RMSNorm(c.hidden_size, c.norm_eps) for _ in range(3))
        self.proj = nn.Linear(2 * c.hidden_size, c.hidden_size, bias=False)
        self.block = block

    def forward(
        self, hidden_BTD: Tensor, embedded_BTD: Tensor, positions_BT: Tensor, rotary: Rotary, attend: Attend
    ) -> Tensor:
        """Hidden states (B, T, D); the first token of a sequence has zeros as the state before it."""
        shifted_BTD = torch.cat((hidden_BTD[:, :1], hidden_BTD[:, :-1]), 1)
        before_BTD = torch.where((positions_BT == 0)[..., None], torch.zeros_like(hidden_BTD), shifted_BTD)
        both = self.hidden_norm(before_BTD), self.token_norm(embedded_BTD)
        out: Tensor = self.norm(self.block(self.proj(torch.cat(both, -1)), rotary, attend))
        return out


class Decoder(nn.Module):
    """Embedding, layers and final norm."""

    def __init__(self, c: ModelConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(c.vocab_size, c.hidden_size)
        self.layers = nn.ModuleList(Block(c, i) for i in range(c.num_layers))
        self.norm = RMSNorm(c.hidden_size, c.norm_eps)


class CausalLM(nn.Module):
    """A decoder and its output head. `forward` stops before the head, so that a loss can gather labels first."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        sizes, o = (config.hidden_size, config.vocab_size), config.options
        self.lm_head = SoftcappedHead(*sizes, o.logit_softcap) if o.logit_softcap else nn.Linear(*sizes, bias=False)
        self.extras = ValueEmbeddings(config) if o.value_embeddings else None  # the name is part of checkpoints
        self.ahead = nn.ModuleList(Ahead(Block(config, config.num_layers + i), config) for i in range(o.mtp_depth))
        if config.tied_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight
        self.checkpoint_every = 0
        """Every N-th layer recomputes its activations in the backward pass; 0: none."""

    def forward(self, ids_BT: Tensor, positions_BT: Tensor, attend: Attend) -> Tensor:
        """Hidden states after the final norm, (B, T, D), in autocast's dtype where that is on."""
        x_BTD, rotary, attend = self._embed(ids_BT, positions_BT, attend)
        for block in self.model.layers:
            x_BTD = self._run(block, block, x_BTD, rotary, attend)
        hidden_BTD: Tensor = self.model.norm(x_BTD)
        return hidden_BTD

    def hidden_at(self, ids_BT: Tensor, positions_BT: Tensor, attend: Attend, at_L: Tensor) -> Tensor:
        """`forward` at flat positions `at_L` only, each at most once, (L, D).

        The last layer computes queries, MLP and norms at these positions only. The result is exact.
        """
        x_BTD, rotary, attend = self._embed(ids_BT, positions_BT, attend)
        *blocks, last = self.model.layers
        for block in blocks:
            x_BTD = self._run(block, block, x_BTD, rotary, attend)
        assert isinstance(last, Block)
        x_LD = self._run(last, last.at, x_BTD, rotary, attend, at_L, torch.arange(len(at_L)).to(at_L))
        hidden_LD: Tensor = self.model.norm(x_LD)
        return hidden_LD

    def _run(
        self, block: nn.Module, part: Callable[..., Tensor], x_BTD: Tensor, rotary: Rotary, attend: Attend, *at: Tensor
    ) -> Tensor:
        """Run `part` of a layer, with activation checkpointing where it is on (Chen et al., 2016)."""
        assert isinstance(block, Block)
        if not (self.checkpoint_every and torch.is_grad_enabled() and (block.layer + 1) % self.checkpoint_every == 0):
            return part(x_BTD, rotary, attend, *at)
        again: Tensor = checkpoint(part, x_BTD, rotary, attend, *at, use_reentrant=False, preserve_rng_state=False)
        return again

    def _embed(self, ids_BT: Tensor, positions_BT: Tensor, attend: Attend) -> tuple[Tensor, Rotary, Attend]:
        """The embedded tokens (B, T, D), the rotary tables, and the attention that the layers call."""
        x_BTD = self.model.embed_tokens(ids_BT)
        x_BTD = x_BTD.to(_compute_dtype(x_BTD))  # autocast leaves embeddings, and so the whole stream, in fp32
        attend = self.extras.mixed(attend, ids_BT) if self.extras is not None else attend
        return x_BTD, self.rotary(positions_BT, x_BTD.dtype), attend

    def rotary(self, positions_BT: Tensor, dtype: torch.dtype) -> Rotary:
        """The rotary tables of these positions."""
        return rotary_tables(positions_BT, self.config.head_dim, self.config.rope_theta, dtype)

    def compile_parts(self) -> None:
        """Compile every layer at its first use; costs seconds per bucket."""
        for block in self.model.layers:
            assert isinstance(block, Block)
            block.compile_parts()

    @torch.no_grad()
    def init_weights(self, generator: torch.Generator) -> None:
        """Normal(0, 0.02), divided by sqrt(2 x layers) where a layer writes to the stream (Radford et al., 2019)."""
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                out = name.endswith(("o_proj", "down_proj"))
                std = 0.02 / (2 * self.config.num_layers) ** 0.5 if out else 0.02
                if out and self.config.options.zero_init:
                    std = 0.0
                nn.init.normal_(module.weight, std=std, generator=generator)
                if isinstance(module, nn.Linear) and module.bias is not None:
                    nn.init.zeros_(module.bias)

    def drop_ahead(self) -> None:
        """Remove the layers for tokens ahead."""
        self.ahead = nn.ModuleList()
        self.config = replace(self.config, options=replace(self.config.options, mtp_depth=0))

    def num_parameters(self) -> int:
        """Number of parameters; a tied matrix counts once."""
        return sum(p.numel() for p in self.parameters())

    def flops_per_token(self, context: float) -> float:
        """Operations to train on one token that attends to `context` tokens (PaLM: Chowdhery et al., 2022)."""
        c = self.config
        embeddings = [m for m in self.modules() if isinstance(m, nn.Embedding)]
        lookups = embeddings[1:] if c.tied_embeddings else embeddings  # a tied matrix is multiplied, in the head
        idle = [sum(p.numel() for p in m.experts.parameters()) for m in self.modules() if isinstance(m, MoE)]
        share = 1 - c.moe.experts_per_token / max(1, c.moe.num_experts)
        matmul = self.num_parameters() - sum(t.weight.numel() for t in lookups) - share * sum(idle)
        return 6.0 * matmul + 12.0 * c.num_layers * c.num_heads * c.head_dim * context


def _compute_dtype(x: Tensor) -> torch.dtype:
    kind: Any = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


def ahead_loss(model: CausalLM, hidden_BTD: Tensor, batch: "Batch", attend: Attend) -> Tensor:
    """`mtp_weight` times the mean, over the layers ahead, of their summed losses; `hidden_BTD` is the model's output.

    A label counts in layer k if its position in its sequence is at least k.
    """
    o, positions_BT = model.config.options, batch.segments.positions_BT
    embedded_BTD = model.model.embed_tokens(batch.ids_BT).to(hidden_BTD.dtype)
    rotary, total = model.rotary(positions_BT, hidden_BTD.dtype), hidden_BTD.new_zeros((), dtype=torch.float32)
    label_pos_L, targets_L = batch.counted
    positions_L = positions_BT.flatten()[label_pos_L]
    for depth, layer in enumerate(model.ahead, start=1):
        hidden_BTD = layer(hidden_BTD, embedded_BTD, positions_BT, rotary, attend)
        here = positions_L >= depth
        total = total + sparse_loss(hidden_BTD, model.lm_head, label_pos_L[here], targets_L[here])[0]
    return total * (o.mtp_weight / o.mtp_depth)
