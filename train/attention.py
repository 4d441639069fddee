"""Causal attention that never crosses the sequences packed in one row; rotary positions of queries and keys.

The model calls an `Attend` with queries, keys and values. All implementations for training give the same result:
- `masked_attention` is the reference: one masked product over whole rows.
- `grouped_attention` computes no products between sequences: sequences are gathered into groups of similar length,
  each group is one batched call, and the results are scattered back.
- `varlen_attention` is a CUDA kernel.
`auto_attention` chooses between them. `batching.SlotCache` is the implementation for generation.

Rotary positions (RoPE: Su et al., 2021) come last in the file. Scalings stretch them to longer sequences: each changes
the frequencies of the rotated pairs, and for some kinds the size of the rotated vectors:
- linear: every frequency divided by the factor (Chen et al., 2023)
- dynamic: no change up to the longest trained sequence; models here run no longer ones
- llama3: low frequencies divided by the factor, with a ramp up to the high ones, which stay (Llama 3.1, 2024)
- yarn: the same between two numbers of rotations, and larger vectors (Peng et al., 2023)
- longrope: searched divisors for each frequency, one list for short and one for long sequences (Ding et al., 2024)

Shapes: B rows, T positions, N = B*T flat positions, S sequences of a group, W the group's width in positions,
H query heads, K key/value heads, R = H/K query heads per key/value head, E head width, P rotated pairs of a head.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from datakit.errors import ConfigError

Int64 = npt.NDArray[np.int64]
Groups = tuple[tuple[int, int], ...]
GROUP_WIDTH = 32
"""Lengths are rounded up to a multiple of this, and equal ones make a group; the value was measured on CPU."""
PRODUCT_WIDTH, HALF_PRODUCT_WIDTH = 64, 512
"""Up to these widths, in fp32 and in bf16, a product with its score matrices is as fast on CPU as SDPA, or faster."""


@dataclass(frozen=True, slots=True)
class Scores:
    """How one layer scores its keys."""

    layer: int = 0
    window: int = 0
    """Keys that a query sees, itself included; 0: all before it."""
    softcap: float = 0.0
    """Scores are softcap * tanh(score / softcap); 0: off."""


Attend = Callable[[Tensor, Tensor, Tensor, Scores], Tensor]
"""Attention of one layer: queries (B, T, H, E), keys and values (B, T, K, E) -> the attended values, (B, T, H, E)."""


@dataclass(frozen=True, slots=True)
class Segments:
    """The sequences packed in a batch, and their groups for attention. Tensors are int64."""

    positions_BT: Tensor
    """Position within its sequence; 0 on padding."""
    sequence_BT: Tensor
    """Number of the sequence in its row, from 1; 0 on padding."""
    tokens_N: Tensor
    """Flat positions of the real tokens, group by group."""
    slots_N: Tensor
    """The place of each in the concatenated groups."""
    groups: Groups
    """(S, W) of each group."""

    @classmethod
    def of(cls, bounds: Sequence[Sequence[int] | np.ndarray[Any, Any]], width: int) -> "Segments":
        """Segments of rows cut to `width` positions; a row's `bounds` go from 0 to the end of its tokens."""
        cut = [np.minimum(np.asarray(b, np.int64), width) for b in bounds]
        empty = np.empty(0, np.int64)
        starts = np.concatenate([empty, *(b[:-1] + row * width for row, b in enumerate(cut))])
        lengths = np.concatenate([empty, *map(np.diff, cut)])
        numbers = np.concatenate([empty, *(np.arange(1, len(b)) for b in cut)])
        widths = -(-lengths // GROUP_WIDTH) * GROUP_WIDTH
        order = np.argsort(widths, kind="stable")  # groups follow each other with ascending width
        order = order[lengths[order] > 0]  # a sequence whose only token is a target has no input position
        starts, lengths, numbers, widths = (x[order] for x in (starts, lengths, numbers, widths))
        kinds, counts = np.unique(widths, return_counts=True)
        offset = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)  # within the sequence
        tokens = offset + np.repeat(starts, lengths)
        slots = offset + np.repeat(np.cumsum(widths) - widths, lengths)
        positions, sequence = np.zeros((2, len(bounds) * width), np.int64)
        positions[tokens], sequence[tokens] = offset, np.repeat(numbers, lengths)
        found = (positions.reshape(-1, width), sequence.reshape(-1, width), tokens, slots)
        positions_BT, sequence_BT, tokens_N, slots_N = map(torch.from_numpy, found)
        groups = tuple(zip(counts.tolist(), kinds.tolist(), strict=True))
        return cls(positions_BT, sequence_BT, tokens_N, slots_N, groups)

    def mask(self, window: int = 0) -> Tensor:
        """Whether a query sees a key, bool (B, 1, T, T): its own sequence up to itself; padding sees only padding."""
        same_BTT = self.sequence_BT[:, :, None] == self.sequence_BT[:, None, :]
        at_T = torch.arange(self.sequence_BT.shape[1], device=self.sequence_BT.device)
        return (same_BTT & sees(at_T, at_T, window))[:, None]


def sees(query_Q: Tensor, key_S: Tensor, window: int) -> Tensor:
    """Whether a query sees a key, by their positions, (..., Q, S): those up to itself, within the window."""
    distance_QS = query_Q[..., None] - key_S[..., None, :]
    return (distance_QS >= 0) & (distance_QS < window) if window else distance_QS >= 0


def attend_by_mask(q_BHQE: Tensor, k_BKSE: Tensor, v_BKSE: Tensor, mask: Tensor | None, how: Scores) -> Tensor:
    """Attention where a boolean mask is true, (B, H, Q, E); without a mask everywhere.

    Queries may be grouped: K heads in place of H, each with the queries of its H / K heads, position by position.
    """
    if not how.softcap:
        return F.scaled_dot_product_attention(q_BHQE, k_BKSE, v_BKSE, attn_mask=mask, enable_gqa=True)
    k, v = (x.repeat_interleave(q_BHQE.shape[1] // x.shape[1], 1) for x in (k_BKSE, v_BKSE))
    scores = q_BHQE @ k.transpose(-1, -2) * q_BHQE.shape[-1] ** -0.5
    scores = how.softcap * torch.tanh(scores / how.softcap)
    scores = scores if mask is None else scores.masked_fill(~mask, -math.inf)
    weights: Tensor = scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
    return weights.to(v.dtype) @ v


def masked_attention(segments: Segments) -> Attend:
    """The reference: a query sees its own sequence up to itself; padding sees only padding."""
    masks = dict[int, Tensor]()

    def attend(q_BTHE: Tensor, k_BTKE: Tensor, v_BTKE: Tensor, scores: Scores) -> Tensor:
        q, k, v = (x.transpose(1, 2) for x in (q_BTHE, k_BTKE, v_BTKE))
        if scores.window not in masks:  # one for all layers of a kind
            masks[scores.window] = segments.mask(scores.window)
        return attend_by_mask(q, k, v, masks[scores.window], scores).transpose(1, 2)

    return attend


def grouped_attention(segments: Segments) -> Attend:
    """One batched call for each group of sequences of like length; padding positions give zeros."""
    sizes = [s * w for s, w in segments.groups]
    masks: Masks = {}

    def attend(q_BTHE: Tensor, k_BTKE: Tensor, v_BTKE: Tensor, scores: Scores) -> Tensor:
        if not sizes:  # an empty micro-batch; other ranks wait for its gradients
            return (q_BTHE + k_BTKE.sum() + v_BTKE.sum()) * 0
        grouped = []
        for x in (q_BTHE, k_BTKE, v_BTKE):
            slots = move_rows(x.flatten(0, 1), segments.tokens_N, segments.slots_N, sum(sizes))
            parts = zip(torch.split(slots, sizes), segments.groups, strict=True)
            grouped.append([part.view(*group, *part.shape[1:]) for part, group in parts])
        out = [_causal(q, k, v, scores, masks).flatten(0, 1) for q, k, v in zip(*grouped, strict=True)]
        places = q_BTHE.shape[:2].numel()
        return move_rows(torch.cat(out), segments.slots_N, segments.tokens_N, places).view_as(q_BTHE)

    return attend


Masks = dict[tuple[int, int], Tensor]
"""Masks of a batch by width and window."""


def _causal(q_SWHE: Tensor, k_SWKE: Tensor, v_SWKE: Tensor, scores: Scores, masks: Masks) -> Tensor:
    """Causal attention of sequences of one width, (S, W, H, E).

    Short sequences on CPU use one product that keeps its score matrices, because it is faster there. Others use
    `scaled_dot_product_attention`, which keeps none; with a soft cap they are made again in the backward pass.
    """
    width, heads = q_SWHE.shape[1], q_SWHE.shape[2] // k_SWKE.shape[2]
    window = scores.window if width > scores.window else 0
    short = width <= (PRODUCT_WIDTH if q_SWHE.dtype == torch.float32 else HALF_PRODUCT_WIDTH)
    product = short and q_SWHE.device.type == "cpu" and not scores.softcap
    q, k, v = (x.transpose(1, 2) for x in (q_SWHE, k_SWKE, v_SWKE))
    if not (product or window or scores.softcap):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2)
    if (key := (width, window)) not in masks:
        at_W = torch.arange(width, device=q.device)
        seen_WW = sees(at_W, at_W, window)
        added_WW = torch.zeros(width, width, dtype=q.dtype, device=q.device).masked_fill(~seen_WW, -math.inf)
        masks[key] = added_WW.repeat(heads, 1)[None] if product else seen_WW
    if product:
        return _product(q_SWHE, k_SWKE, v_SWKE, masks[key])
    if short or not scores.softcap:
        return attend_by_mask(q, k, v, masks[key], scores).transpose(1, 2)
    again = (q, k, v, masks[key], scores)
    found: Tensor = checkpoint(attend_by_mask, *again, use_reentrant=False, preserve_rng_state=False)
    return found.transpose(1, 2)


def _product(q_SWHE: Tensor, k_SWKE: Tensor, v_SWKE: Tensor, mask_1QW: Tensor) -> Tensor:
    """The R query heads of a key/value head share one product; `mask_1QW` is (1, R*W, W), added to the scores."""
    S, W, H, E = q_SWHE.shape
    K = k_SWKE.shape[2]
    R = H // K
    q = q_SWHE.view(S, W, K, R, E).permute(0, 2, 3, 1, 4).reshape(S * K, R * W, E)
    k, v = (x.transpose(1, 2).reshape(S * K, W, E) for x in (k_SWKE, v_SWKE))
    weights = torch.baddbmm(mask_1QW, q, k.transpose(1, 2), alpha=E**-0.5).softmax(-1)
    out = torch.bmm(weights.to(v.dtype), v)
    return out.view(S, K, R, W, E).permute(0, 3, 1, 2, 4).reshape(S, W, H, E)


def move_rows(x: Tensor, source: Tensor, target: Tensor, length: int) -> Tensor:
    """Copy rows `source` of x to rows `target` of a zero tensor with `length` rows; every row is used at most once.

    The gradient is the copy back. The gradient of plain indexing would be a scatter-add, which is slower.
    """
    return _Move.apply(x, source, target, length)  # type: ignore[no-untyped-call,no-any-return]


def taken(x_BTD: Tensor, at_L: Tensor) -> Tensor:
    """The rows at flat positions, each at most once, (L, ...)."""
    return move_rows(x_BTD.flatten(0, 1), at_L, torch.arange(len(at_L), device=at_L.device), len(at_L))


def put(x_LD: Tensor, at_L: Tensor, shape: torch.Size) -> Tensor:
    """Zeros of (B, T, ...), `shape` their (B, T), with rows at flat positions."""
    rows_L = torch.arange(len(at_L), device=at_L.device)
    return move_rows(x_LD, rows_L, at_L, shape.numel()).view(*shape, *x_LD.shape[1:])


class _Move(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, source: Tensor, target: Tensor, length: int) -> Tensor:
        ctx.save_for_backward(source, target)
        ctx.length = x.shape[0]
        return _moved(x, source, target, length)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        source, target = ctx.saved_tensors
        return _moved(grads[0], target, source, ctx.length), None, None, None


def _moved(x: Tensor, source: Tensor, target: Tensor, length: int) -> Tensor:
    return x.new_zeros((length, *x.shape[1:])).index_copy_(0, target, x.index_select(0, source))


def varlen_attention(segments: Segments, other: Attend | None = None) -> Attend:
    """FlashAttention over concatenated sequences of any length (Dao, 2023); bf16 or fp16, on CUDA.

    `other` is for fp32 and for soft caps, which the kernel does not have.

    Raises:
        ConfigError: one of these, and no other.
    """
    from torch.nn.attention.varlen import varlen_attn

    bounds, longest = sequence_bounds(segments)

    def attend(q_BTHE: Tensor, k_BTKE: Tensor, v_BTKE: Tensor, scores: Scores) -> Tensor:
        if q_BTHE.dtype not in (torch.bfloat16, torch.float16) or scores.softcap:
            if other is not None:
                return other(q_BTHE, k_BTKE, v_BTKE, scores)
            raise ConfigError(
                f"--attention varlen needs bf16 or fp16 and a model without a soft cap; found {q_BTHE.dtype} "
                f"and a soft cap of {scores.softcap}: use --dtype bf16, or --attention auto"
            )
        q, k, v = (x.flatten(0, 1) for x in (q_BTHE, k_BTKE, v_BTKE))
        window, grouped = (scores.window - 1, 0), q.shape[1] != k.shape[1]
        out: Any = varlen_attn(
            q, k, v, bounds, bounds, longest, longest, window_size=window, enable_gqa=grouped)  # fmt: skip
        attended: Tensor = out.view_as(q_BTHE)
        return attended

    return attend


def auto_attention(segments: Segments) -> Attend:
    """`varlen_attention` on CUDA where it fits; else `grouped_attention`."""
    grouped = grouped_attention(segments)
    return varlen_attention(segments, grouped) if segments.positions_BT.is_cuda else grouped


def sequence_bounds(segments: Segments) -> tuple[Tensor, int]:
    """Flat starts of all sequences, then the number of positions (int32, S + B + 1), and a bound of their lengths.

    The padding at the end of a row is one sequence more. S + B is the most that there can be, and known on the host, so
    that it need not wait for the device; what is left over are sequences without a position at the end.
    """
    sequence_BT = segments.sequence_BT
    rows, width = sequence_BT.shape
    begins_BT = torch.ones_like(sequence_BT, dtype=torch.bool)
    begins_BT[:, 1:] = sequence_BT[:, 1:] != sequence_BT[:, :-1]
    most, places = sum(s for s, _ in segments.groups) + rows, rows * width
    starts = torch.nonzero_static(begins_BT.flatten(), size=most, fill_value=places).flatten()
    padding = min(width, places - len(segments.tokens_N))
    longest = max((min(w, width) for _, w in segments.groups), default=1)
    return F.pad(starts, (0, 1), value=places).int(), max(longest, padding)


ATTENTIONS: dict[str, Callable[[Segments], Attend]] = {
    "auto": auto_attention, "grouped": grouped_attention, "masked": masked_attention, "varlen": varlen_attention,
}  # fmt: skip


Rotary = tuple[Tensor, ...]
"""Cosine and sine tables of some positions; empty for a layer without rotary positions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rope:
    """Rotary positions of some layers; names of config.json."""

    rope_theta: float = 10000.0
    rope_type: str = "default"
    partial_rotary_factor: float = 1.0
    """Share of a head that is rotated."""
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    short_factor: tuple[float, ...] = ()
    long_factor: tuple[float, ...] = ()
    original_max_position_embeddings: int = 0
    attention_factor: float = 1.0
    """Factor of cosine and sine."""


@cache
def frequencies(rope: Rope, head_dim: int, device: torch.device, long: bool = False) -> Tensor:
    """The angle of each pair at position 1, (P,), fp32."""
    width = int(head_dim * rope.partial_rotary_factor)  # values of a head that are rotated
    exponents_P = torch.arange(0, width, 2, device=device, dtype=torch.float32) / width
    plain_P = rope.rope_theta**-exponents_P
    if rope.rope_type == "linear":
        return plain_P / rope.factor
    if rope.rope_type == "llama3":
        turns_P = rope.original_max_position_embeddings * plain_P / (2 * math.pi)
        low, high = rope.low_freq_factor, rope.high_freq_factor
        keep_P = ((turns_P - low) / (high - low)).clamp(0, 1)
        return plain_P * (keep_P + (1 - keep_P) / rope.factor)
    if rope.rope_type == "yarn":
        longest, spread = rope.original_max_position_embeddings, 2 * math.log(rope.rope_theta)  # pairs by their turns
        low, high = (width * math.log(longest / (t * 2 * math.pi)) / spread for t in (rope.beta_fast, rope.beta_slow))
        low, high = (math.floor(low), math.ceil(high)) if rope.truncate else (low, high)
        low, high = max(low, 0), min(high, width - 1)
        steps_P = torch.arange(width // 2, device=device, dtype=torch.float32)
        divided_P = ((steps_P - low) / max(high - low, 0.001)).clamp(0, 1)
        return plain_P * (1 - divided_P + divided_P / rope.factor)
    if rope.rope_type == "longrope":
        return plain_P / torch.tensor(rope.long_factor if long else rope.short_factor, device=device)
    return plain_P


def rotary_tables(positions_BT: Tensor, rope: Rope, head_dim: int, dtype: torch.dtype) -> Rotary:
    """Cosine and sine of each position's angles, (B, T, 1, P)."""
    frequencies_P = frequencies(rope, head_dim, positions_BT.device)
    if rope.rope_type == "longrope":
        long_BT11 = (_lengths(positions_BT) > rope.original_max_position_embeddings)[..., None, None]
        frequencies_P = torch.where(long_BT11, frequencies(rope, head_dim, positions_BT.device, True), frequencies_P)
    angles = positions_BT[..., None, None].float() * frequencies_P
    cos, sin = angles.cos(), angles.sin()
    if rope.attention_factor != 1:
        cos, sin = cos * rope.attention_factor, sin * rope.attention_factor
    return cos.to(dtype), sin.to(dtype)


def _lengths(positions_BT: Tensor) -> Tensor:
    """The length of each position's sequence as far as it is in the row; a sequence begins at position 0, (B, T)."""
    begins_BT = positions_BT == 0
    begins_BT[:, 0] = True
    number_N = begins_BT.flatten().cumsum(0) - 1
    flat_N = positions_BT.flatten()
    return flat_N.new_zeros(len(flat_N)).scatter_reduce(0, number_N, flat_N + 1, "amax")[number_N].view_as(positions_BT)


def rotate(x_BTHE: Tensor, rotary: Rotary) -> Tensor:
    """Rotate each pair (i, i + P) by its position's angle: the half-split layout of Hugging Face checkpoints."""
    if not rotary:
        return x_BTHE
    cos, sin = rotary
    pairs = cos.shape[-1]
    a, b, rest = x_BTHE[..., :pairs], x_BTHE[..., pairs : 2 * pairs], x_BTHE[..., 2 * pairs :]
    turned = (a * cos - b * sin, b * cos + a * sin)
    return torch.cat((*turned, rest) if rest.shape[-1] else turned, -1)
