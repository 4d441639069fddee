"""Options of the model beyond Llama's mathematics, each off by default; most were found by modded-nanogpt's speedruns.

Whatever looks at a neighbouring token looks within its own sequence, so packing changes nothing.

Shapes: B rows, T positions, L labels, D hidden, H query heads, K key/value heads, E head width.
"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from datakit.config import option
from datakit.errors import ConfigError, ModelError
from train.attention import Attend, SegmentAttention, move_rows

if TYPE_CHECKING:
    from train.model import ModelConfig

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
