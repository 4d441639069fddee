"""The Llama/Qwen3 family by configuration: RMSNorm, RoPE, grouped-query attention, SwiGLU or experts.

Modules carry the names that Hugging Face checkpoints use, so a state dict needs no translation. What Llama has not is
in `options`; a model without options never calls it.

Shapes: B rows, T positions, D hidden, H query heads, K key/value heads, E head width, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from datakit.config import option
from datakit.errors import ConfigError, ModelError
from train.model.attention import Attend, SegmentAttention, move_rows
from train.model.experts import MoE, MoeConfig, Project
from train.model.loss import sparse_loss

if TYPE_CHECKING:
    from train.data.batches import Batch

SMEAR_WIDTH = 12
"""Leading dimensions that a smear gate reads."""
TRAINING_ONLY = ("zero_init", "untie_at")
"""Options that are no part of a trained model's mathematics."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelOptions:
    """What a model that starts from random weights has beyond its preset."""

    zero_init: bool = option(
        False, "projections into the stream begin at zero, so layers do (Fixup: Zhang et al., 2019)"
    )
    untie_at: float = option(
        0.0, "share of the steps after which a tied head becomes a matrix of its own (modded-nanogpt); 0: never"
    )
    logit_softcap: float = option(0.0, "logits are held within this by a tanh (Gemma 2, 2024); 0: they are free")
    relu2: bool = option(False, "squared ReLU without a gate in place of SwiGLU (Primer: So et al., 2021)")
    value_embeddings: int = option(
        0, "tables of values by token, mixed into those of the first and the last n layers (modded-nanogpt)"
    )
    mtp_depth: int = option(0, "further tokens that are predicted ahead in training, a layer each (DeepSeek-V3, 2024)")
    mtp_weight: float = option(0.3, "weight of their losses")
    paired_layers: tuple[int, ...] = option(
        (), "layers whose heads attend in pairs to each other's keys, from 0 (modded-nanogpt)"
    )
    partial_key_offset: bool = option(
        False, "half of each key has no position and is the token before's: induction in one layer (modded-nanogpt)"
    )
    smear: bool = option(False, "a gate adds the embedding of the token before (modded-nanogpt)")
    bigram_buckets: int = option(0, "hashed embeddings of this and the last token, added in each layer; 0: none")
    backout: bool = option(False, "a share of the middle of the stream is taken out at its end (modded-nanogpt)")

    def __post_init__(self) -> None:
        numbers = (self.logit_softcap, self.value_embeddings, self.mtp_depth, self.mtp_weight)
        if min(numbers) < 0 or not 0 <= self.untie_at < 1:
            raise ConfigError("options of the model must not be negative, and untie_at must be less than 1")
        if self.bigram_buckets and self.bigram_buckets < 2:
            raise ConfigError(f"bigram_buckets must be 0 or at least 2, found {self.bigram_buckets}")

    def changed(self) -> dict[str, Any]:
        """The options of a model's mathematics that are not Llama's, by name."""
        plain = asdict(ModelOptions())
        return {k: v for k, v in asdict(self).items() if v != plain[k] and k not in TRAINING_ONLY}

    @property
    def looks_back(self) -> bool:
        """Whether more than keys and values of earlier tokens is needed, which no key/value cache holds."""
        return bool(self.smear or self.bigram_buckets or self.partial_key_offset or self.paired_layers)

    def check(self, c: "ModelConfig") -> None:
        """Refuse what a model's sizes do not allow.

        Raises:
            ConfigError: naming the option.
        """
        if self.paired_layers and (c.num_kv_heads % 2 or max(self.paired_layers) >= c.num_layers):
            raise ConfigError(f"paired_layers {self.paired_layers}: needs even key/value heads, and layers that exist")
        if self.partial_key_offset and c.head_dim % 4:
            raise ConfigError(f"partial_key_offset: needs a head_dim of a multiple of 4, found {c.head_dim}")
        if 2 * self.value_embeddings > c.num_layers:
            raise ConfigError(f"value_embeddings {self.value_embeddings}: more than half of {c.num_layers} layers")


class SoftcappedHead(nn.Linear):
    """An output head whose logits are softcap * tanh(logits / softcap)."""

    def __init__(self, in_features: int, out_features: int, softcap: float) -> None:
        super().__init__(in_features, out_features, bias=False)
        self.softcap = softcap

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., V)."""
        return self.softcap * torch.tanh(super().forward(x) / self.softcap)


class Extras(nn.Module):
    """The parameters of the options, and what they do on the way through the layers."""

    def __init__(self, c: "ModelConfig") -> None:
        super().__init__()
        o = self.options = c.options
        if o.smear:
            self.smear_gate = nn.Linear(min(SMEAR_WIDTH, c.hidden_size), 1, bias=False)
            self.smear_scale = nn.Parameter(torch.zeros(1))
        if o.bigram_buckets:
            self.bigrams = nn.Embedding(o.bigram_buckets, c.hidden_size)
            self.bigram_scale = nn.Parameter(torch.full((c.num_layers,), 0.1))
        if o.value_embeddings:
            width = c.num_kv_heads * c.head_dim
            self.values = nn.ModuleList(nn.Embedding(c.vocab_size, width) for _ in range(o.value_embeddings))
            self.value_mix = nn.Parameter(torch.full((c.num_layers, 2), 0.5))
        if o.backout:
            self.backout_scale = nn.Parameter(torch.full((1,), 0.2))
        self.num_layers = c.num_layers

    @staticmethod
    def needed(o: ModelOptions) -> bool:
        """Whether a model with these options has such parameters or detours."""
        return bool(o.value_embeddings or o.backout or o.looks_back)

    def value_table(self, layer: int) -> int | None:
        """The table of values that a layer uses: the first n layers each their own, the last n the same again."""
        n, first_of_last = self.options.value_embeddings, self.num_layers - self.options.value_embeddings
        return layer if layer < n else layer - first_of_last if first_of_last <= layer < self.num_layers else None


class Passage:
    """One pass of a batch through the layers of a model with options: an `Attend` between its layers' projections."""

    def __init__(self, extras: Extras, ids_BT: Tensor, attend: Attend) -> None:
        if extras.options.looks_back and not isinstance(attend, SegmentAttention):
            names = ", ".join(extras.options.changed())
            raise ModelError(f"a key/value cache does not hold what {names} need: compute the whole prefix again")
        self.extras, self.options, self.ids_BT, self._attend = extras, extras.options, ids_BT, attend
        self._bigram_BTD: Tensor | None = None
        self._middle_BTD: Tensor | None = None

    @property
    def _segments(self) -> SegmentAttention:
        assert isinstance(self._attend, SegmentAttention)
        return self._attend

    def begin(self, x_BTD: Tensor) -> Tensor:
        """The embeddings as the first layer is to see them."""
        if self.options.bigram_buckets:
            self._bigram_BTD = self.extras.bigrams(self._bigram_ids()).to(x_BTD.dtype)
        if not self.options.smear:
            return x_BTD
        gate_BT1 = self.extras.smear_gate(x_BTD[..., : self.extras.smear_gate.in_features]).sigmoid()
        before_BTD = self._segments.previous(x_BTD, torch.zeros_like(x_BTD))
        smeared: Tensor = x_BTD + self.extras.smear_scale.to(x_BTD.dtype) * gate_BT1 * before_BTD
        return smeared

    def _bigram_ids(self) -> Tensor:
        """A bucket for each pair of neighbours; the last one for a token without one before it."""
        last = self.options.bigram_buckets - 1
        before_BT = self._segments.previous(self.ids_BT, self.ids_BT)
        hashed_BT = ((36313 * self.ids_BT) ^ (27191 * before_BT)) % last
        return hashed_BT.masked_fill(self._segments.segments.positions_BT == 0, last)

    def enter(self, x_BTD: Tensor, layer: int) -> Tensor:
        """The stream as a layer is to see it."""
        if self.options.backout and layer == self.extras.num_layers // 2:
            self._middle_BTD = x_BTD
        if self._bigram_BTD is not None:
            x_BTD = x_BTD + self.extras.bigram_scale[layer].to(x_BTD.dtype) * self._bigram_BTD
        return x_BTD

    def leave(self, x: Tensor, at_L: Tensor | None = None) -> Tensor:
        """The stream as the final norm is to see it: (B, T, D), or (L, D) at flat positions."""
        if self._middle_BTD is None:
            return x
        middle = self._middle_BTD
        if at_L is not None:
            middle = move_rows(middle.flatten(0, 1), at_L, torch.arange(len(at_L)).to(at_L), len(at_L))
        left: Tensor = x - self.extras.backout_scale.to(x.dtype) * middle
        return left

    def __call__(self, q_BTHE: Tensor, k_BTKE: Tensor, v_BTKE: Tensor, layer: int) -> Tensor:
        """The attended values, (B, T, H, E); of a paired layer the arguments are (B, T, 2, H/2, E)."""
        q, k, v = q_BTHE, k_BTKE, v_BTKE
        if (table := self.extras.value_table(layer)) is not None and self.options.value_embeddings:
            mix = self.extras.value_mix[layer].to(v.dtype)
            v = mix[0] * v + mix[1] * self.extras.values[table](self.ids_BT).to(v.dtype).view_as(v)
        if self.options.partial_key_offset:
            k = torch.where(_still(k), self._segments.previous(k, k), k)
        if layer not in self.options.paired_layers:
            return self._attend(q, k, v, layer)
        attended = self._segments.doubled(q.flatten(1, 2), k.flatten(1, 2), v.flatten(1, 2), layer)
        return attended.reshape(q.shape).flatten(2, 3)


def _still(k: Tensor) -> Tensor:
    """The dimensions of keys that have no position: the slower half of the pairs (i, i + E/2)."""
    width = k.shape[-1]
    return torch.arange(width, device=k.device) % (width // 2) >= width // 4


class RMSNorm(nn.Module):
    """Scale to unit root mean square, then by a learned weight (Zhang and Sennrich, 2019)."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x: Tensor) -> Tensor:
        """The same shape and dtype."""
        # with an fp32 weight, half-precision input would miss the fused kernel
        weight = self.weight.to(x.dtype)
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return F.rms_norm(x, weight.shape, weight, self.eps)
        normed: Tensor = _OnCpu.apply(x, weight, self.eps)  # type: ignore[no-untyped-call]
        return normed


class _OnCpu(torch.autograd.Function):
    """torch's own on CPU keeps its input and output in fp32 for the backward pass; this keeps the input as it is."""

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
    """Computes silu(gate) again in the backward pass rather than keep it."""

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
        """What its matrices, in any form, make of x."""
        return down(gated(gate(x), up(x)))

    def forward(self, x_BTD: Tensor) -> Tensor:
        """What the layer adds to the stream, (B, T, D)."""
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
        """What its matrices, in any form, make of x."""
        return down(F.relu(up(x)).square())

    def forward(self, x_BTD: Tensor) -> Tensor:
        """What the layer adds to the stream, (B, T, D)."""
        return self.through(x_BTD, self.up_proj, self.down_proj)


def mlp_of(hidden_size: int, inner_size: int, layer: int, moe: MoeConfig, relu2: bool) -> nn.Module:
    """A layer's MLP or experts."""
    mlp = SquaredReLU if relu2 else MLP
    if not moe.sparse(layer):
        return mlp(hidden_size, inner_size)
    return MoE(hidden_size, moe.inner_size(inner_size), moe, mlp)


class Ahead(nn.Module):
    """A layer that looks one token further."""

    def __init__(self, block: nn.Module, c: "ModelConfig") -> None:
        super().__init__()
        self.hidden_norm, self.token_norm, self.norm = (RMSNorm(c.hidden_size, c.norm_eps) for _ in range(3))
        self.proj = nn.Linear(2 * c.hidden_size, c.hidden_size, bias=False)
        self.block = block

    def forward(self, hidden_BTD: Tensor, embedded_BTD: Tensor, rotary: Any, attend: SegmentAttention) -> Tensor:
        """Hidden states (B, T, D), each made of the one before it and its own token."""
        before_BTD = attend.previous(hidden_BTD, torch.zeros_like(hidden_BTD))
        both = self.hidden_norm(before_BTD), self.token_norm(embedded_BTD)
        out: Tensor = self.norm(self.block(self.proj(torch.cat(both, -1)), rotary, attend))
        return out


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """What the mathematics depends on; the defaults are Llama's."""

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
    """RMSNorm on each head's queries and keys (Qwen3)."""
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
            raise ConfigError(f"model: num_heads {self.num_heads} is no multiple of num_kv_heads {self.num_kv_heads}")
        if self.head_dim % 2:
            raise ConfigError(f"model: rotary positions need an even head_dim, found {self.head_dim}")
        self.options.check(self)

    @property
    def looks_back(self) -> bool:
        """Whether generating needs the whole prefix again at each token, since keys and values do not hold enough."""
        return self.options.looks_back

    @property
    def reads_everything(self) -> bool:
        """Whether a loss needs the last layer at positions that are no labels: routers there, or the tokens ahead."""
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


def rotary_tables(
    positions_BT: Tensor, head_dim: int, theta: float, dtype: torch.dtype, half: bool = False
) -> tuple[Tensor, Tensor]:
    """Cosine and sine of each position's angles, (B, T, 1, E/2) (RoPE: Su et al., 2021); `half`: slow ones are 0."""
    exponents = torch.arange(0, head_dim, 2, device=positions_BT.device, dtype=torch.float32) / head_dim
    speeds = theta**-exponents
    if half:
        speeds[len(speeds) // 2 :] = 0
    angles = positions_BT[..., None, None].float() * speeds
    return angles.cos().to(dtype), angles.sin().to(dtype)


Rotary = dict[bool, tuple[Tensor, Tensor]]
"""Tables for layers whose heads are paired (True) and for the others."""


def rotate(x_BTHE: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair (i, i + E/2) by its position's angle: the half-split layout of Hugging Face checkpoints."""
    a, b = x_BTHE.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Attention(nn.Module):
    """Projections of grouped-query attention (Ainslie et al., 2023); who looks at whom is the `Attend`'s business."""

    def __init__(self, c: ModelConfig, layer: int) -> None:
        super().__init__()
        self.head_dim, self.qk_norm, self.paired = c.head_dim, c.qk_norm, layer in c.options.paired_layers
        self.q_proj = nn.Linear(c.hidden_size, c.num_heads * c.head_dim, bias=c.qkv_bias)
        self.k_proj = nn.Linear(c.hidden_size, c.num_kv_heads * c.head_dim, bias=c.qkv_bias)
        self.v_proj = nn.Linear(c.hidden_size, c.num_kv_heads * c.head_dim, bias=c.qkv_bias)
        self.o_proj = nn.Linear(c.num_heads * c.head_dim, c.hidden_size, bias=c.output_bias)
        if c.qk_norm:
            self.q_norm, self.k_norm = (RMSNorm(c.head_dim, c.norm_eps) for _ in range(2))

    def forward(self, x_BTD: Tensor, rotary: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, T, H, E), keys and values (B, T, K, E), with their positions turned in."""
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
        heads: Tensor = x.unflatten(-1, (2, -1, self.head_dim) if self.paired else (-1, self.head_dim))  # type: ignore[no-untyped-call]
        return heads


class Block(nn.Module):
    """One layer: attention, then MLP, each on a normalised copy of the stream and added to it.

    `before` and `after` are the parts with the same shapes in every batch of a bucket, which compile well; the
    attention between them has shapes of its own in every batch.
    """

    def __init__(self, c: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.input_layernorm = RMSNorm(c.hidden_size, c.norm_eps)
        self.self_attn = Attention(c, layer)
        self.post_attention_layernorm = RMSNorm(c.hidden_size, c.norm_eps)
        self.mlp = mlp_of(c.hidden_size, c.intermediate_size, layer, c.moe, c.options.relu2)
        self._before, self._after = self.before, self.after
        self._queries, self._keys_values, self._after_at = self.queries, self.keys_values, self.after

    def forward(self, x_BTD: Tensor, rotary: tuple[Tensor, Tensor], attend: Attend) -> Tensor:
        """The stream after this layer."""
        return self._after(x_BTD, attend(*self._before(x_BTD, rotary), self.layer))

    def before(self, x_BTD: Tensor, rotary: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values."""
        qkv: tuple[Tensor, Tensor, Tensor] = self.self_attn(self.input_layernorm(x_BTD), rotary)
        return qkv

    def after(self, x_BTD: Tensor, attended_BTHE: Tensor) -> Tensor:
        """The stream with the attention's and the MLP's part added."""
        x_BTD = x_BTD + self.self_attn.o_proj(attended_BTHE.flatten(-2))
        stream: Tensor = x_BTD + self.mlp(self.post_attention_layernorm(x_BTD))
        return stream

    def at(self, x_BTD: Tensor, rotary: tuple[Tensor, Tensor], attend: Attend, at_L: Tensor, rows_L: Tensor) -> Tensor:
        """The stream after this layer at flat positions `at_L` alone, (L, D); `rows_L` counts 0..L-1.

        Only keys and values are needed of every position.
        """
        labels = len(at_L)
        x_LD = move_rows(x_BTD.flatten(0, 1), at_L, rows_L, labels)
        k_BTKE, v_BTKE = self._keys_values(x_BTD, rotary)
        q_LHE = self._queries(x_LD, tuple(table.flatten(0, 1)[at_L] for table in rotary))
        q_NHE = move_rows(q_LHE, rows_L, at_L, x_BTD.shape[:2].numel())
        attended_BTHE = attend(q_NHE.view(*x_BTD.shape[:2], *q_NHE.shape[1:]), k_BTKE, v_BTKE, self.layer)
        return self._after_at(x_LD, move_rows(attended_BTHE.flatten(0, 1), at_L, rows_L, labels))

    def queries(self, x_LD: Tensor, rotary: tuple[Tensor, ...]) -> Tensor:
        """Those of some positions, (L, H, E)."""
        return self.self_attn.queries(self.input_layernorm(x_LD), rotary)

    def keys_values(self, x_BTD: Tensor, rotary: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Those of all positions, two of (B, T, K, E)."""
        return self.self_attn.keys_values(self.input_layernorm(x_BTD), rotary)

    def compile_parts(self) -> None:
        """Compile what lies around the attention, once for every bucket; layers share the result.

        What sees labels alone is compiled once for all numbers of them.
        """
        self._before = torch.compile(self.before, dynamic=False)
        self._keys_values = torch.compile(self.keys_values, dynamic=False)
        self._queries = torch.compile(self.queries, dynamic=True)
        if not isinstance(self.mlp, MoE):  # experts get other numbers of tokens in every batch
            self._after = torch.compile(self.after, dynamic=False)
            self._after_at = torch.compile(self.after, dynamic=True)


class Decoder(nn.Module):
    """Embedding, layers and final norm."""

    def __init__(self, c: ModelConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(c.vocab_size, c.hidden_size)
        self.layers = nn.ModuleList(Block(c, i) for i in range(c.num_layers))
        self.norm = RMSNorm(c.hidden_size, c.norm_eps)


class CausalLM(nn.Module):
    """A decoder and its output head. `forward` stops before the head: a loss gathers what it needs first."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        sizes, o = (config.hidden_size, config.vocab_size), config.options
        self.lm_head = SoftcappedHead(*sizes, o.logit_softcap) if o.logit_softcap else nn.Linear(*sizes, bias=False)
        self.extras = Extras(config) if Extras.needed(o) else None
        self.ahead = nn.ModuleList(Ahead(Block(config, config.num_layers + i), config) for i in range(o.mtp_depth))
        if config.tied_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight
        self.checkpoint_every = 0
        """Every N-th layer keeps no activations for the backward pass, but computes them again; 0: none."""

    def forward(self, ids_BT: Tensor, positions_BT: Tensor, attend: Attend) -> Tensor:
        """Hidden states after the final norm, (B, T, D), in autocast's dtype where that is on."""
        x_BTD, rotary, attend = self._begin(ids_BT, positions_BT, attend)
        for block in self.model.layers:
            x_BTD = self._run(block, block, x_BTD, rotary, attend)
        hidden_BTD: Tensor = self.model.norm(attend.leave(x_BTD) if isinstance(attend, Passage) else x_BTD)
        return hidden_BTD

    def hidden_at(self, ids_BT: Tensor, positions_BT: Tensor, attend: Attend, at_L: Tensor) -> Tensor:
        """`forward` at flat positions `at_L` alone, each at most once, (L, D).

        The last layer computes queries, MLP and norms there only: an exact saving, since nothing reads the rest.
        """
        x_BTD, rotary, attend = self._begin(ids_BT, positions_BT, attend)
        *blocks, last = self.model.layers
        for block in blocks:
            x_BTD = self._run(block, block, x_BTD, rotary, attend)
        assert isinstance(last, Block)
        x_LD = self._run(last, last.at, x_BTD, rotary, attend, at_L, torch.arange(len(at_L)).to(at_L))
        hidden_LD: Tensor = self.model.norm(attend.leave(x_LD, at_L) if isinstance(attend, Passage) else x_LD)
        return hidden_LD

    def _run(
        self, block: nn.Module, part: Callable[..., Tensor], x_BTD: Tensor, rotary: Rotary, attend: Attend, *at: Tensor
    ) -> Tensor:
        """A layer's `part`, its activations kept for the backward pass or computed again there (Chen et al., 2016)."""
        assert isinstance(block, Block)
        if isinstance(attend, Passage):
            x_BTD = attend.enter(x_BTD, block.layer)
        tables = rotary[block.self_attn.paired]
        if not (self.checkpoint_every and torch.is_grad_enabled() and (block.layer + 1) % self.checkpoint_every == 0):
            return part(x_BTD, tables, attend, *at)
        again: Tensor = checkpoint(part, x_BTD, tables, attend, *at, use_reentrant=False, preserve_rng_state=False)
        return again

    def _begin(self, ids_BT: Tensor, positions_BT: Tensor, attend: Attend) -> tuple[Tensor, Rotary, Attend]:
        """The embedded stream, and what the layers need beside it."""
        x_BTD = self.model.embed_tokens(ids_BT)
        x_BTD = x_BTD.to(_compute_dtype(x_BTD))  # autocast leaves embeddings in fp32, and the stream with them
        rotary = {False: self.rotary(positions_BT, x_BTD.dtype)}
        if self.extras is None:
            return x_BTD, rotary, attend
        if self.config.options.paired_layers:
            twice_BT2 = torch.stack((2 * positions_BT, 2 * positions_BT + 1), -1)
            rotary[True] = self.rotary(twice_BT2, x_BTD.dtype)
        passage = Passage(self.extras, ids_BT, attend)
        return passage.begin(x_BTD), rotary, passage

    def rotary(self, positions_BT: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The tables of positions."""
        c = self.config
        return rotary_tables(positions_BT, c.head_dim, c.rope_theta, dtype, c.options.partial_key_offset)

    def compile_parts(self) -> None:
        """Compile every layer when it is first used; costs seconds for each bucket."""
        for block in self.model.layers:
            assert isinstance(block, Block)
            block.compile_parts()

    @torch.no_grad()
    def init_weights(self, generator: torch.Generator) -> None:
        """Normal(0, 0.02), by sqrt(2 x layers) smaller where a layer writes to the stream (Radford et al., 2019)."""
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                out = name.endswith(("o_proj", "down_proj"))
                std = 0.02 / (2 * self.config.num_layers) ** 0.5 if out else 0.02
                if out and self.config.options.zero_init:
                    std = 0.0
                nn.init.normal_(module.weight, std=std, generator=generator)
                if isinstance(module, nn.Linear) and module.bias is not None:
                    nn.init.zeros_(module.bias)

    def untie(self) -> nn.Parameter:
        """Give a tied head a matrix of its own, equal to the embeddings for now."""
        self.lm_head.weight = weight = nn.Parameter(self.model.embed_tokens.weight.detach().clone())
        self.config = replace(self.config, tied_embeddings=False)
        return weight

    def leave_out_ahead(self) -> None:
        """Go on without the layers for tokens ahead."""
        self.ahead = nn.ModuleList()
        self.config = replace(self.config, options=replace(self.config.options, mtp_depth=0))

    def num_parameters(self) -> int:
        """Parameters, a tied matrix counted once."""
        return sum(p.numel() for p in self.parameters())

    def flops_per_token(self, context: float) -> float:
        """Operations to train on one token that attends to `context` tokens (PaLM: Chowdhery et al., 2022)."""
        c = self.config
        tables = [m for m in self.modules() if isinstance(m, nn.Embedding)][
            c.tied_embeddings :
        ]  # looked up, not multiplied
        idle = [sum(p.numel() for p in m.experts.parameters()) for m in self.modules() if isinstance(m, MoE)]
        share = 1 - c.moe.experts_per_token / max(1, c.moe.num_experts)
        matmul = self.num_parameters() - sum(t.weight.numel() for t in tables) - share * sum(idle)
        return 6.0 * matmul + 12.0 * c.num_layers * c.num_heads * c.head_dim * context


def _compute_dtype(x: Tensor) -> torch.dtype:
    kind: Any = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


def ahead_loss(model: "CausalLM", hidden_BTD: Tensor, batch: "Batch", attend: SegmentAttention) -> Tensor:
    """`mtp_weight` times the mean, over the layers ahead, of their summed losses; `hidden_BTD` is the model's result.

    A label counts in layer k if k tokens of its sequence stand before the token that predicts it.
    """
    o, positions_BT = model.config.options, batch.segments.positions_BT
    embedded_BTD = model.model.embed_tokens(batch.ids_BT).to(hidden_BTD.dtype)
    rotary, total = model.rotary(positions_BT, hidden_BTD.dtype), hidden_BTD.new_zeros((), dtype=torch.float32)
    label_pos_L, targets_L = batch.counted
    places_L = positions_BT.flatten()[label_pos_L]
    for depth, layer in enumerate(model.ahead, start=1):
        hidden_BTD = layer(hidden_BTD, embedded_BTD, rotary, attend)
        here = places_L >= depth
        total = total + sparse_loss(hidden_BTD, model.lm_head, label_pos_L[here], targets_L[here])[0]
    return total * (o.mtp_weight / o.mtp_depth)
