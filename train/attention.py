"""Causal attention that never crosses the sequences packed in one row.

The model calls an `Attend` with queries, keys and values. All implementations for training give the same result:
- `masked_attention` is the reference: one masked product over whole rows.
- `grouped_attention` computes no products between sequences: sequences are gathered into groups of similar length,
  each group is one batched call, and the results are scattered back.
- `varlen_attention` is a CUDA kernel.
`auto_attention` chooses between them. `batching.SlotCache` is the implementation for generation.

Shapes: B rows, T positions, N = B*T flat positions, S sequences of a group, W the group's width in positions,
H query heads, K key/value heads, R = H/K query heads per key/value head, E head width, P rotated pairs of a head.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from datakit.errors import ConfigError

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
    groups: tuple[tuple[int, int], ...]
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


def attend_by_mask(q_BHQE: Tensor, k_BKSE: Tensor, v_BKSE: Tensor, mask: Tensor | None) -> Tensor:
    """Attention where a boolean mask is true, (B, H, Q, E); without a mask everywhere.

    Queries may be grouped: K heads in place of H, each with the queries of its H / K heads, position by position.
    """
    return F.scaled_dot_product_attention(q_BHQE, k_BKSE, v_BKSE, attn_mask=mask, enable_gqa=True)


def masked_attention(segments: Segments) -> Attend:
    """The reference: a query sees its own sequence up to itself; padding sees only padding."""
    masks = dict[int, Tensor]()

    def attend(q_BTHE: Tensor, k_BTKE: Tensor, v_BTKE: Tensor, scores: Scores) -> Tensor:
        q, k, v = (x.transpose(1, 2) for x in (q_BTHE, k_BTKE, v_BTKE))
        if scores.window not in masks:  # one for all layers of a kind
            masks[scores.window] = segments.mask(scores.window)
        return attend_by_mask(q, k, v, masks[scores.window]).transpose(1, 2)

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
    `scaled_dot_product_attention`, which keeps none.
    """
    width, heads = q_SWHE.shape[1], q_SWHE.shape[2] // k_SWKE.shape[2]
    window = scores.window if width > scores.window else 0
    short = width <= (PRODUCT_WIDTH if q_SWHE.dtype == torch.float32 else HALF_PRODUCT_WIDTH)
    product = short and q_SWHE.device.type == "cpu"
    q, k, v = (x.transpose(1, 2) for x in (q_SWHE, k_SWKE, v_SWKE))
    if not (product or window):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2)
    if (key := (width, window)) not in masks:
        at_W = torch.arange(width, device=q.device)
        seen_WW = sees(at_W, at_W, window)
        added_WW = torch.zeros(width, width, dtype=q.dtype, device=q.device).masked_fill(~seen_WW, -math.inf)
        masks[key] = added_WW.repeat(heads, 1)[None] if product else seen_WW
    if product:
        return _product(q_SWHE, k_SWKE, v_SWKE, masks[key])
    return attend_by_mask(q, k, v, masks[key]).transpose(1, 2)


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
    return _Move.apply(x, source, target, length)  # type: ignore[no-untyped-call]


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

    `other` is for fp32, which the kernel does not have.

    Raises:
        ConfigError: fp32, and no other.
    """
    from torch.nn.attention.varlen import varlen_attn

    bounds, longest = sequence_bounds(segments)

    def attend(q_BTHE: Tensor, k_BTKE: Tensor, v_BTKE: Tensor, scores: Scores) -> Tensor:
        if q_BTHE.dtype not in (torch.bfloat16, torch.float16):
            if other is not None:
                return other(q_BTHE, k_BTKE, v_BTKE, scores)
            raise ConfigError(f"--attention varlen needs bf16 or fp16, found {q_BTHE.dtype}: use --dtype bf16")
        q, k, v = (x.flatten(0, 1) for x in (q_BTHE, k_BTKE, v_BTKE))
        window, grouped = (scores.window - 1, 0), q.shape[1] != k.shape[1]
        out: Any = varlen_attn(q, k, v, bounds, bounds, longest, longest, window_size=window, enable_gqa=grouped)
        return out.view_as(q_BTHE)

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
