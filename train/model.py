"""One decoder for all model families: `ModelConfig` says how a model differs from Llama.

Grouped-query attention, then an MLP or experts. The differences are fields: norms and their places, rotary positions,
windows, activation, biases, scalings and soft caps; the table in `hf.py` has their values for each family. Modules have
the names of Hugging Face checkpoints. Attention stays within a token's sequence, so packing changes nothing.

Shapes: B rows, T positions, L labels, D hidden, H query heads, K key/value heads, E head width, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from datakit.errors import ConfigError
from train.attention import Attend, Scores, put, taken
from train.config import MoeConfig
from train.rope import Rope, Rotary, rotary_tables, rotate


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
    family: str = field(default="llama", compare=False)
    """The `model_type` of config.json: names of keys and tensors; it changes no result."""
    dtype: str = field(default="float32", compare=False)
    """The dtype that config.json names: that of exported weights; it changes no result."""
    generation: dict[str, Any] = field(default_factory=dict, compare=False)
    """generation_config.json, such as sampling defaults; only carried over."""
    rope: Rope = field(default_factory=Rope)
    window_rope: Rope | None = None
    """Rotary positions of layers with a window, if they differ (Gemma 3)."""
    plain_layers: tuple[int, ...] = ()
    """Layers without rotary positions (SmolLM 3)."""
    window: int = 0
    """Keys that a query sees in the layers with a window, itself included."""
    windowed_layers: tuple[int, ...] = ()
    norm_eps: float = 1e-5
    norm_offset: float = 0.0
    """Added to the weights of norms (Gemma)."""
    norm_at: Literal["before", "after", "around"] = "before"
    """Norms before attention and MLP (Llama), on their results (OLMo 2), or both (Gemma 3)."""
    qk_norm: bool = False
    """RMSNorm on the queries and keys of each head (Qwen3)."""
    qk_norm_whole: bool = False
    """Over all heads together, not over each (OLMo 2)."""
    qkv_bias: bool = False
    output_bias: bool = False
    """Bias of the attention's output projection."""
    mlp_bias: bool = False
    activation: Literal["silu", "gelu_tanh", "relu2"] = "silu"
    attention_scale: float = 0.0
    """Factor of the products of queries and keys; 0: 1 / sqrt(head_dim)."""
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    """Factor of what attention and MLP add to the stream."""
    logit_divisor: float = 1.0
    logit_softcap: float = 0.0
    """Logits are softcap * tanh(logits / softcap) (Gemma 2); 0: off."""
    tied_embeddings: bool = True
    """The output head is the embedding matrix."""
    moe: MoeConfig = field(default_factory=MoeConfig)
    """With the width of an expert, where the options leave it open."""

    def __post_init__(self) -> None:
        sizes = self.vocab_size, self.hidden_size, self.num_layers, self.num_heads, self.num_kv_heads, self.head_dim
        if any(type(size) is not int or size < 1 for size in (*sizes, self.intermediate_size, self.max_positions)):
            raise ConfigError(f"model: sizes must be whole numbers from 1 on, found {self}")
        if self.num_heads % self.num_kv_heads:
            raise ConfigError(f"model: num_heads {self.num_heads} is no multiple of num_kv_heads {self.num_kv_heads}")
        if self.head_dim % 2:
            raise ConfigError(f"model: rotary positions need an even head_dim, found {self.head_dim}")
        if self.windowed_layers and self.window < 1:
            raise ConfigError(f"model: layers {self.windowed_layers} need a window, found {self.window}")
        if set(self.moe.dense_layers) - set(range(self.num_layers)):
            raise ConfigError(f"model: dense_layers {self.moe.dense_layers}: expected of 0..{self.num_layers - 1}")
        if self.moe.num_experts and not self.moe.expert_size:
            width = self.intermediate_size // self.moe.experts_per_token
            object.__setattr__(self, "moe", replace(self.moe, expert_size=width))


_26M = ModelConfig(
    vocab_size=6400, hidden_size=512, num_layers=8, num_heads=8, num_kv_heads=2, head_dim=64, intermediate_size=1408
)
PRESETS = {
    "tiny": replace(_26M, hidden_size=128, num_layers=4, num_heads=4, head_dim=32, intermediate_size=384),
    "26m": _26M,
    "64m": replace(  # minimind-3
        _26M, hidden_size=768, num_kv_heads=4, head_dim=96, intermediate_size=2432, qk_norm=True, family="qwen3",
        rope=Rope(rope_theta=1e6), norm_eps=1e-6),
    "104m": replace(  # the width and depth of minimind2
        _26M, hidden_size=768, num_layers=16, head_dim=96, intermediate_size=2048, rope=Rope(rope_theta=1e6)),
}  # fmt: skip
"""Model sizes by name; the vocabulary is replaced by the data's."""


class RMSNorm(nn.Module):
    """Divide by the root mean square, then multiply by a learned weight (Zhang and Sennrich, 2019)."""

    def __init__(self, width: int, eps: float, offset: float = 0.0) -> None:
        super().__init__()
        self.weight, self.eps, self.offset = nn.Parameter(torch.full((width,), 1 - offset)), eps, offset

    def forward(self, x: Tensor) -> Tensor:
        """The same shape and dtype."""
        # the fused kernel needs input and weight of one dtype
        weight = (self.weight + self.offset if self.offset else self.weight).to(x.dtype)
        if x.device.type != "cpu" or torch.compiler.is_compiling() or not torch.is_grad_enabled():
            with torch.autocast(x.device.type, enabled=False):  # autocast of CUDA would make it fp32, and all after it
                return F.rms_norm(x, weight.shape, weight, self.eps)
        return _CpuRMSNorm.apply(x, weight, self.eps)  # type: ignore[no-untyped-call]


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
    if gate.device.type != "cpu" or torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return F.silu(gate) * up
    return _Gated.apply(gate, up)  # type: ignore[no-untyped-call]


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


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "relu2": lambda x: F.relu(x).square(),  # So et al., 2021
}


class MLP(nn.Module):
    """down(act(gate(x)) * up(x)) (SwiGLU: Shazeer, 2020)."""

    matrices = ("gate_proj", "up_proj", "down_proj")

    def __init__(self, c: ModelConfig, inner_size: int) -> None:
        super().__init__()
        self.activation = c.activation
        for name in self.matrices:
            sizes = (inner_size, c.hidden_size) if name == "down_proj" else (c.hidden_size, inner_size)
            self.add_module(name, nn.Linear(*sizes, bias=c.mlp_bias))

    def through(self, x: Tensor, *projections: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply the projections, which may be layers or grouped products, to x."""
        (gate, up, down), activation = projections, ACTIVATIONS[self.activation]
        return down(gated(gate(x), up(x)) if self.activation == "silu" else activation(gate(x)) * up(x))

    def forward(self, x_BTD: Tensor) -> Tensor:
        """The layer's addition to the residual stream, (B, T, D)."""
        return self.through(x_BTD, *(self._modules[name] for name in self.matrices))  # type: ignore[arg-type]


def norm_of(c: ModelConfig, width: int) -> RMSNorm:
    """A norm over `width` values."""
    return RMSNorm(width, c.norm_eps, c.norm_offset)


Ropes = dict[str, Rotary]
"""The tables of a batch's positions, for layers with a window and for the others."""


class Attention(nn.Module):
    """Projections of grouped-query attention (Ainslie et al., 2023); an `Attend` does the attention itself."""

    def __init__(self, c: ModelConfig) -> None:
        super().__init__()
        self.head_dim, self.whole = c.head_dim, c.qk_norm_whole
        # attention itself divides by sqrt(head_dim); queries make up for another scale
        self.scale = c.attention_scale * c.head_dim**0.5 if c.attention_scale else 1.0
        self.q_proj = nn.Linear(c.hidden_size, c.num_heads * c.head_dim, bias=c.qkv_bias)
        self.k_proj = nn.Linear(c.hidden_size, c.num_kv_heads * c.head_dim, bias=c.qkv_bias)
        self.v_proj = nn.Linear(c.hidden_size, c.num_kv_heads * c.head_dim, bias=c.qkv_bias)
        self.o_proj = nn.Linear(c.num_heads * c.head_dim, c.hidden_size, bias=c.output_bias)
        if c.qk_norm:
            heads = (c.num_heads, c.num_kv_heads) if c.qk_norm_whole else (1, 1)
            self.q_norm, self.k_norm = (norm_of(c, n * c.head_dim) for n in heads)

    def forward(self, x: Tensor, name: Literal["q", "k", "v"], rotary: Rotary = ()) -> Tensor:
        """The heads of one projection, (..., D) -> (..., H, E), with the norm that the model has; rotated."""
        project: nn.Module = getattr(self, f"{name}_proj")
        norm = self._modules.get(f"{name}_norm")
        x = project(x)
        x = norm(x) if norm is not None and self.whole else x
        heads: Tensor = x.unflatten(-1, (-1, self.head_dim))
        heads = rotate(norm(heads) if norm is not None and not self.whole else heads, rotary)
        return heads * self.scale if name == "q" and self.scale != 1 else heads


NORMS: dict[str, tuple[str, str, str, str]] = {
    "before": ("input_layernorm", "", "post_attention_layernorm", ""),
    "after": ("", "post_attention_layernorm", "", "post_feedforward_layernorm"),
    "around": (
        "input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm",
    )}  # fmt: skip
"""Names of the norms before and after the attention, before and after the MLP."""


class Block(nn.Module):
    """One layer: attention, then MLP; each reads the residual stream and adds to it.

    `before` and `after` have the same shapes in every batch of a bucket, so they are the parts to compile. The shapes
    of the attention between them differ from batch to batch.
    """

    def __init__(self, c: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer, self.scale, self.norms = layer, c.residual_scale, NORMS[c.norm_at]
        windowed = layer in c.windowed_layers
        self.scores = Scores(layer, c.window if windowed else 0)
        self.rope = "" if layer in c.plain_layers else "window" if windowed else "whole"
        self.self_attn = Attention(c)
        self.routed = bool(c.moe.num_experts) and layer not in c.moe.dense_layers
        if self.routed:
            from train.experts import MoE  # only where a model has them

            self.mlp: nn.Module = MoE(c, partial(MLP, c))
        else:
            self.mlp = MLP(c, c.intermediate_size)
        for name in filter(None, self.norms):
            self.add_module(name, norm_of(c, c.hidden_size))

    def _norm(self, place: int, x: Tensor) -> Tensor:
        norm = self._modules.get(self.norms[place])
        return x if norm is None else norm(x)

    def _added(self, x: Tensor, update: Tensor) -> Tensor:
        return x + update if self.scale == 1 else x + self.scale * update

    def forward(self, x_BTD: Tensor, ropes: Ropes, attend: Attend, at_L: Tensor | None = None) -> Tensor:
        """The stream after this layer; with `at_L` at these flat positions only, (L, D).

        Keys and values are computed at every position, too.
        """
        rotary = ropes.get(self.rope, ())
        if at_L is None:
            return self.after(x_BTD, attend(*self.before(x_BTD, rotary), self.scores))
        x_LD = taken(x_BTD, at_L)
        k_BTKE, v_BTKE = self.keys_values(x_BTD, rotary)
        q_LHE = self.queries(x_LD, tuple(table.flatten(0, 1)[at_L] for table in rotary))
        q_BTHE = put(q_LHE, at_L, x_BTD.shape[:2])
        return self.after_at(x_LD, taken(attend(q_BTHE, k_BTKE, v_BTKE, self.scores), at_L))

    def before(self, x_BTD: Tensor, rotary: Rotary) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, T, H, E), keys and values (B, T, K, E)."""
        x_BTD, project = self._norm(0, x_BTD), self.self_attn
        return project(x_BTD, "q", rotary), project(x_BTD, "k", rotary), project(x_BTD, "v")

    def queries(self, x_LD: Tensor, rotary: Rotary) -> Tensor:
        """Queries of some positions, (L, H, E)."""
        return self.self_attn(self._norm(0, x_LD), "q", rotary)

    def keys_values(self, x_BTD: Tensor, rotary: Rotary) -> tuple[Tensor, Tensor]:
        """Keys and values of all positions."""
        x_BTD = self._norm(0, x_BTD)
        return self.self_attn(x_BTD, "k", rotary), self.self_attn(x_BTD, "v")

    def after(self, x: Tensor, attended: Tensor) -> Tensor:
        """The stream (..., D) after attention (..., H, E) and MLP are added."""
        x = self._added(x, self._norm(1, self.self_attn.o_proj(attended.flatten(-2))))
        return self._added(x, self._norm(3, self.mlp(self._norm(2, x))))

    after_at = after

    def compile_parts(self, static: bool) -> None:
        """Compile the parts around the attention, once per bucket; layers share the result.

        Parts that run at label positions are compiled for each label count if these are `static`, else once for all.
        """
        dynamic = {"before": False, "keys_values": False, "queries": not static}
        if not self.routed:  # the number of tokens per expert differs in every batch
            dynamic |= {"after": False, "after_at": not static}
        for name, many in dynamic.items():
            setattr(self, name, torch.compile(getattr(self, name), dynamic=many))


class SoftcappedHead(nn.Linear):
    """An output head with logits softcap * tanh(logits / softcap)."""

    def __init__(self, in_features: int, out_features: int, softcap: float) -> None:
        super().__init__(in_features, out_features, bias=False)
        self.softcap = softcap

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., V)."""
        return self.softcap * torch.tanh(super().forward(x) / self.softcap)


class Embedding(nn.Embedding):
    """torch's, without random values on the device `meta`: there torch imports its compiler for them, a second."""

    def reset_parameters(self) -> None:
        """Fill the table with random values."""
        if not self.weight.is_meta:
            super().reset_parameters()


class Decoder(nn.Module):
    """Embedding, layers and final norm."""

    def __init__(self, c: ModelConfig) -> None:
        super().__init__()
        self.embed_tokens = Embedding(c.vocab_size, c.hidden_size)
        self.layers = nn.ModuleList(Block(c, i) for i in range(c.num_layers))
        self.norm = norm_of(c, c.hidden_size)


class CausalLM(nn.Module):
    """A decoder and its output head. `forward` stops before the head, so that a loss can gather labels first."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        sizes, cap = (config.hidden_size, config.vocab_size), config.logit_softcap
        self.lm_head = SoftcappedHead(*sizes, cap) if cap else nn.Linear(*sizes, bias=False)
        self.tie()
        self.checkpoint_every = 0
        """Every N-th layer recomputes its activations in the backward pass; 0: none."""
        self.compiled = ""
        """How the head and its loss are compiled, `static` or `dynamic` in the number of labels; empty: not at all."""
        self.hidden_map: nn.Linear | None = None
        """Distillation's map of hidden states to the teacher's width: trained and saved, no part of the model."""

    def tie(self) -> None:
        """Make the output head the embedding matrix, if the model is tied."""
        if self.config.tied_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, ids_BT: Tensor, positions_BT: Tensor, attend: Attend, at_L: Tensor | None = None) -> Tensor:
        """Hidden states after the final norm, (B, T, D), in autocast's dtype where that is on.

        With `at_L` at these flat positions only, each at most once, (L, D): the last layer computes queries, MLP and
        norms there alone, which changes no value. Logits that are divided are divided here, before the head.
        """
        x_BTD, ropes = self._embed(ids_BT, positions_BT)
        *blocks, last = self.model.layers
        for block in blocks:
            x_BTD = self._run(block, x_BTD, ropes, attend)
        hidden: Tensor = self.model.norm(self._run(last, x_BTD, ropes, attend, at_L))
        return hidden if self.config.logit_divisor == 1 else hidden / self.config.logit_divisor

    def _run(self, block: Any, *given: Any) -> Tensor:
        """Run a layer, with activation checkpointing where it is on (Chen et al., 2016)."""
        again = self.checkpoint_every and torch.is_grad_enabled() and (block.layer + 1) % self.checkpoint_every == 0
        return checkpoint(block, *given, use_reentrant=False) if again else block(*given)

    def _embed(self, ids_BT: Tensor, positions_BT: Tensor) -> tuple[Tensor, Ropes]:
        """The embedded tokens (B, T, D), and the rotary tables."""
        x_BTD, c = self.model.embed_tokens(ids_BT), self.config
        if c.embedding_scale != 1:
            # rounded like the weights, as a number: a tensor would be copied to the device in each pass
            x_BTD = x_BTD * torch.tensor(c.embedding_scale, dtype=x_BTD.dtype, device="cpu").item()
        kind: Any = x_BTD.device.type
        if torch.is_autocast_enabled(kind):  # it leaves embeddings, and so the whole stream, in fp32
            x_BTD = x_BTD.to(torch.get_autocast_dtype(kind))
        whole = rotary_tables(positions_BT, c.rope, c.head_dim, x_BTD.dtype)
        other = rotary_tables(positions_BT, c.window_rope, c.head_dim, x_BTD.dtype) if c.window_rope else whole
        return x_BTD, {"whole": whole, "window": other}

    def compile_parts(self, static: bool = False) -> None:
        """Compile every layer at its first use; it takes seconds per bucket.

        `static`: compile once for each number of labels, which is right where there are few numbers (label buckets).
        """
        self.compiled = "static" if static else "dynamic"
        blocks: Any = self.model.layers
        for block in blocks:
            block.compile_parts(static)

    @torch.no_grad()
    def init_weights(self, generator: torch.Generator, zero: bool = False) -> None:
        """Normal(0, 0.02), divided by sqrt(2 x layers) where a layer writes to the stream (Radford et al., 2019).

        With `zero` that is 0: at first, no layer changes the stream (muP: Yang et al., 2022).
        """
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                out = name.endswith(("o_proj", "down_proj"))
                std = 0.02 * (1 / (2 * self.config.num_layers) ** 0.5 if out else 1)
                nn.init.normal_(module.weight, std=0.0 if zero and out else std, generator=generator)
                if isinstance(module, nn.Linear) and module.bias is not None:
                    nn.init.zeros_(module.bias)

    def flops_per_token(self, context: float, far: float = 0.0) -> float:
        """Operations to train on a token that sees `context` tokens, `far` beyond a window (Chowdhery et al., 2022)."""
        c = self.config
        used, seen = c.moe.experts_per_token / max(1, c.moe.num_experts), context * c.num_layers
        flops = 12.0 * c.num_heads * c.head_dim * (seen - far * len(c.windowed_layers))
        for name, p in self.named_parameters():  # a frozen matrix has no gradient of its own
            head = c.tied_embeddings and name == "model.embed_tokens.weight"  # multiplied; other tables are looked up
            share = used if ".experts." in name else head or not name.startswith("model.embed_")
            flops += (6 if p.requires_grad else 4) * share * p.numel()
        return flops
