"""Low-rank adapters (LoRA: Hu et al., 2021): small trained matrices next to frozen weights, saved separately.

An adapter folder has the layout of the PEFT library: adapter_config.json names the folder of the base model,
adapter_model.safetensors holds `<layer>.lora_A.weight` (rank, in) and `<layer>.lora_B.weight` (out, rank).
"""

import contextlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from datakit.errors import ModelError
from train import hf
from train.config import LoraConfig
from train.model import CausalLM

RATE_RATIO = 10.0
"""Default peak learning rate, as a multiple of that for weights (Schulman et al., 2025): adapters start at zero."""
CONFIG, WEIGHTS, PREFIX = "adapter_config.json", "adapter_model.safetensors", "base_model.model."
NEUTRAL = re.compile(
    r"r|lora_(alpha|dropout)|use_rslora|rank_pattern|(target|exclude)_modules|layers_(to_transform|pattern)|"
    r"base_model.*|task_type|inference_mode|auto_mapping|revision|peft_version|runtime_config|eva_config|megatron_core|"
    r"ensure_weight_tying|qalora_group_size|unsloth.*|_.*"
)
"""Keys of adapter_config.json that are obeyed, or change nothing; all others are refused, unless they are empty."""
NO_CHANGE = {"peft_type": ("LORA",), "bias": ("none",), "init_lora_weights": (True, "gaussian", "eva", "orthogonal")}
"""Values of other keys that change nothing; other initial weights are taken out of the base (PiSSA, OLoRA)."""


class LoraLinear(nn.Linear):
    """A frozen linear layer and its adapter: y = W x + scale * B A x; B starts at zero."""

    def __init__(self, base: nn.Linear, rank: int, scale: float, dropout: float = 0.0) -> None:
        super().__init__(base.in_features, base.out_features, bias=base.bias is not None, device="meta")
        self.weight, self.bias, self.scale, self.enabled = base.weight, base.bias, scale, True
        self.dropout = dropout
        self.lora_A = nn.Parameter(torch.zeros(rank, base.in_features, device=base.weight.device))  # until `attach`
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank, device=base.weight.device))

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        base = F.linear(x, self.weight, self.bias)
        if not self.enabled:
            return base
        a, b = self.lora_A.to(x.dtype), self.lora_B.to(x.dtype)
        kept = F.dropout(x, self.dropout, self.training) if self.dropout else x
        return base + self.scale * F.linear(F.linear(kept, a), b)


def attach(model: CausalLM, config: LoraConfig, generator: torch.Generator) -> None:
    """Freeze a model and add adapters to its targets, in place; outputs do not change before training."""
    model.requires_grad_(False)
    for parent, name, layer in _projections(model):
        if name in {f"{target}_proj" for target in config.lora_targets}:  # not `gate`, which is a router
            adapted = LoraLinear(layer, config.lora_rank, config.scale, config.lora_dropout)
            nn.init.kaiming_uniform_(adapted.lora_A, a=math.sqrt(5), generator=generator)
            setattr(parent, name, adapted)


@contextlib.contextmanager
def disabled(model: nn.Module) -> Iterator[None]:
    """Inside the context the model is its base, without adapters: the reference of preference training."""
    layers = [m for m in model.modules() if isinstance(m, LoraLinear)]
    for layer in layers:
        layer.enabled = False
    try:
        yield
    finally:
        for layer in layers:
            layer.enabled = True


def _projections(model: CausalLM) -> list[tuple[nn.Module, str, nn.Linear]]:
    found = ((parent, *child) for parent in model.model.layers.modules() for child in parent.named_children())
    return [(parent, name, layer) for parent, name, layer in found if isinstance(layer, nn.Linear)]


@dataclass(frozen=True, slots=True)
class Adapters:
    """Adapter settings for a checkpoint."""

    config: LoraConfig
    base: Path
    base_sha256: str

    def write(self, folder: Path, parameters: Mapping[str, Tensor]) -> None:
        """Write adapter_config.json and adapter_model.safetensors."""
        settings = {
            "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": str(self.base.resolve()),
            "r": self.config.lora_rank, "lora_alpha": self.config.alpha, "lora_dropout": self.config.lora_dropout,
            "target_modules": sorted(f"{t}_proj" for t in self.config.lora_targets), "bias": "none",
            "fan_in_fan_out": False, "inference_mode": True, "use_rslora": self.config.rslora}  # fmt: skip
        (folder / CONFIG).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        found = {f"{PREFIX}{name}.weight": value.detach() for name, value in parameters.items()}
        save_file(found, folder / WEIGHTS, metadata={"format": "pt", "base_sha256": self.base_sha256})


def tensors(folder: Path) -> tuple[dict[str, Tensor], str]:
    """The adapters of a folder by parameter name, and the fingerprint of their base model ("" if unknown).

    Raises:
        ModelError: the file is missing or damaged.
    """
    try:
        with safe_open(folder / WEIGHTS, "pt") as f:
            found = {k.removeprefix(PREFIX).removesuffix(".weight"): f.get_tensor(k) for k in f.keys()}  # noqa: SIM118
            base_sha256 = (f.metadata() or {}).get("base_sha256", "")
    except (OSError, SafetensorError) as e:
        raise ModelError(f"{folder / WEIGHTS}: cannot read the adapters ({e})") from None
    hf.check_sound(folder, (CONFIG, WEIGHTS), found)
    return found, base_sha256


@torch.no_grad()
def read(folder: Path, base: Path | None = None) -> CausalLM:
    """Read the model of a folder, with fp32 weights. Adapters are merged into their base.

    `base` is the folder of the base model if it has moved.

    Raises:
        ModelError: a file is missing or damaged, or the adapters were trained on another base.
    """
    if not (folder / CONFIG).is_file():
        return hf.read_model(folder)
    settings = settings_of(folder)
    base = base or Path(settings["base_model_name_or_path"])
    found, expected = tensors(folder)
    if expected and base.is_dir() and (sha256 := hf.fingerprint(base)) != expected:
        raise ModelError(f"{folder}: the adapters belong to the model {expected}, but the model in {base} is {sha256}")
    model = hf.read_model(base)
    layers = {name.removesuffix(".weight"): p for name, p in model.model.layers.named_parameters("model.layers")}
    left, met = set(found), set[str]()
    for name in [name.removesuffix(".lora_A") for name in found if name.endswith(".lora_A")]:
        a, b, weight = found[f"{name}.lora_A"], found.get(f"{name}.lora_B"), layers.get(name)
        if b is not None and weight is not None and (len(b), *a.shape[::-1]) == (*weight.shape, b.shape[1]):
            scale = float(settings["lora_alpha"]) / (len(a) ** 0.5 if settings["use_rslora"] else len(a))
            weight.add_(scale * b.to(weight) @ a.to(weight))
            left -= {f"{name}.lora_A", f"{name}.lora_B"}
            met.add(name)
    named = () if settings.get("exclude_modules") else settings["target_modules"]
    there, used = ({n.split(".", i)[-1] for n in group for i in range(n.count(".") + 1)} for group in (layers, met))
    lost = () if isinstance(named, str) else set(named) & there - used  # a pattern is what it met
    if wrong := [*sorted(left), *sorted(lost)]:
        raise ModelError(f"{folder / WEIGHTS}: {wrong[0]!r} does not fit the attention and MLP matrices of {base}")
    return model


def base_of(folder: Path) -> Path:
    """The folder of the base model, for adapters; else the same folder."""
    adapted = (folder / CONFIG).is_file()
    return Path(settings_of(folder)["base_model_name_or_path"]) if adapted else folder


def settings_of(folder: Path) -> dict[str, Any]:
    """What adapter_config.json says, checked."""
    path, needed = folder / CONFIG, {"lora_alpha", "target_modules", "base_model_name_or_path"}
    try:
        settings = {"use_rslora": False} | dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as e:
        raise ModelError(f"{path}: cannot read it ({e!r}); expected the configuration of a LoRA adapter") from None
    for key, value in sorted(settings.items(), key=lambda item: item[0] != "peft_type"):
        if value and not (NEUTRAL.fullmatch(key) or value in NO_CHANGE.get(key, ())):
            raise ModelError(f"{path}: {key} = {value!r} changes the result and is not implemented")
    if absent := sorted(needed - settings.keys()):
        raise ModelError(f"{path}: has no {absent[0]!r}; expected the configuration of a LoRA adapter")
    return settings
