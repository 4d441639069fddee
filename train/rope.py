"""Rotary positions of queries and keys (RoPE: Su et al., 2021), and their dictionary in config.json.

Scalings stretch them to longer sequences: each changes the frequencies of the rotated pairs, and for some kinds the
size of the rotated vectors:
- linear: every frequency divided by the factor (Chen et al., 2023)
- dynamic: no change up to the longest trained sequence; models here run no longer ones
- llama3: low frequencies divided by the factor, with a ramp up to the high ones, which stay (Llama 3.1, 2024)
- yarn: the same between two numbers of rotations, and larger vectors (Peng et al., 2023)

Shapes: B rows, T positions, H heads, E head width, P rotated pairs of a head.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from datakit.errors import ModelError

Rotary = tuple[Tensor, ...]
"""Cosine and sine tables of some positions; empty for a layer without rotary positions."""
SCALINGS: dict[str, dict[str, Any]] = {
    "default": {}, "dynamic": {"factor": None}, "linear": {"factor": None},
    "llama3": {"factor": None, "low_freq_factor": None, "high_freq_factor": None,
               "original_max_position_embeddings": 0},
    "yarn": {"factor": 0.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": True,
             "original_max_position_embeddings": 0, "attention_factor": 0.0},
}  # fmt: skip
"""The keys of each kind of rotary positions, with their defaults; None: the key must be there; 0: it has a formula."""
ROPE_KEYS = {"rope_type", "type", "rope_theta", "partial_rotary_factor", "factor", "attention_factor",
             "original_max_position_embeddings", "finetuned"}  # fmt: skip
"""Keys of all these kinds; the last says how the weights were made."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rope:
    """Rotary positions of some layers; names of config.json."""

    rope_theta: float = 10000.0
    rope_type: str = "default"
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    original_max_position_embeddings: int = 0
    attention_factor: float = 1.0
    """Factor of cosine and sine."""


def read_rope(found: Mapping[str, Any], theta: float, longest: int) -> Rope:
    """The rotary positions of a dictionary of config.json, with the values of keys beside it.

    Raises:
        ModelError: an unknown kind or key.
    """
    kind = str(found.get("rope_type", found.get("type", "default")) or "default")
    kind = "default" if kind == "mrope" else kind
    if kind not in SCALINGS:
        raise ModelError(f"rotary scaling {kind!r} changes the result and is not implemented")
    read, rope_type = SCALINGS[kind], f"rotary scaling {kind!r}"
    if unknown := sorted(k for k in found.keys() - read.keys() - ROPE_KEYS if found[k] and kind != "default"):
        raise ModelError(f"{rope_type} with {unknown[0]} = {found[unknown[0]]!r} is not implemented")
    if (share := found.get("partial_rotary_factor") or 1) != 1:
        raise ModelError(f"partial_rotary_factor = {share} is not implemented")
    if absent := [k for k, default in read.items() if default is None and found.get(k) is None]:
        raise ModelError(f"{rope_type} needs the key {absent[0]}")
    values = {k: default if found.get(k) is None else found[k] for k, default in read.items()}
    original = int(found.get("original_max_position_embeddings") or longest)
    if "original_max_position_embeddings" in read:
        values["original_max_position_embeddings"] = original
    if kind == "yarn":
        factor = values["factor"] = float(values["factor"] or longest / original)
        values["attention_factor"] = float(values["attention_factor"] or 0.1 * math.log(max(factor, 1)) + 1)
    return Rope(rope_type=kind, rope_theta=float(found.get("rope_theta", theta)), **values)


def scaling_of(rope: Rope) -> dict[str, Any]:
    """The dictionary `rope_scaling` of config.json; empty for the default."""
    names = {"rope_type", *SCALINGS[rope.rope_type]} if rope.rope_type != "default" else ()
    return {k: v for k, v in asdict(rope).items() if k in names}


@cache
def frequencies(rope: Rope, head_dim: int, device: torch.device) -> Tensor:
    """The angle of each pair at position 1, (P,), fp32."""
    exponents_P = torch.arange(0, head_dim, 2, device=device, dtype=torch.float32) / head_dim
    plain_P = rope.rope_theta**-exponents_P
    if rope.rope_type == "linear":
        return plain_P / rope.factor
    if rope.rope_type == "llama3":
        turns_P = rope.original_max_position_embeddings * plain_P / (2 * math.pi)
        low, high = rope.low_freq_factor, rope.high_freq_factor
        keep_P = ((turns_P - low) / (high - low)).clamp(0, 1)
        return plain_P * (keep_P + (1 - keep_P) / rope.factor)
    if rope.rope_type == "yarn":
        longest, scale = rope.original_max_position_embeddings, 2 * math.log(rope.rope_theta)  # pairs by their turns
        low, high = (head_dim * math.log(longest / (t * 2 * math.pi)) / scale for t in (rope.beta_fast, rope.beta_slow))
        low, high = (math.floor(low), math.ceil(high)) if rope.truncate else (low, high)
        low, high = max(low, 0), min(high, head_dim - 1)
        steps_P = torch.arange(head_dim // 2, device=device, dtype=torch.float32)
        divided_P = ((steps_P - low) / max(high - low, 0.001)).clamp(0, 1)
        return plain_P * (1 - divided_P + divided_P / rope.factor)
    return plain_P


def rotary_tables(positions_BT: Tensor, rope: Rope, head_dim: int, dtype: torch.dtype) -> Rotary:
    """Cosine and sine of each position's angles, (B, T, 1, P)."""
    angles = positions_BT[..., None, None].float() * frequencies(rope, head_dim, positions_BT.device)
    return tuple((table * rope.attention_factor).to(dtype) for table in (angles.cos(), angles.sin()))


def rotate(x_BTHE: Tensor, rotary: Rotary) -> Tensor:
    """Rotate each pair (i, i + P) by its position's angle: the half-split layout of Hugging Face checkpoints."""
    if not rotary:
        return x_BTHE
    (cos, sin), (a, b) = rotary, x_BTHE.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
