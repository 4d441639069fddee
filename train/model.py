"""The Llama/Qwen3 family by configuration: RMSNorm, RoPE, grouped-query attention, SwiGLU or experts.

Modules carry the names that Hugging Face checkpoints use, so a state dict needs no translation. What Llama has not is
in `options`; a model without options never calls it.

Shapes: B rows, T positions, D hidden, H query heads, K key/value heads, E head width, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from datakit.errors import ConfigError
from train.attention import Attend, move_rows
from train.mlp import MoE, MoeConfig, mlp_of
from train.mtp import Ahead
from train.norm import RMSNorm
from train.options import Extras, ModelOptions, Passage, SoftcappedHead


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
