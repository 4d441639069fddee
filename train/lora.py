"""Low-rank adapters (LoRA: Hu et al., 2021): small trained matrices next to frozen weights, saved separately.

An adapter folder has the layout of the PEFT library: adapter_config.json names the folder of the base model,
adapter_model.safetensors holds `<layer>.lora_A.weight` (rank, in) and `<layer>.lora_B.weight` (out, rank).
"""

import contextlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812
from safetensors.torch import save_file
from torch import Tensor, nn

from train.config import LoraConfig
from train.model import CausalLM

RATE_RATIO = 10.0
"""Default peak learning rate, as a multiple of that for weights (Schulman et al., 2025): adapters start at zero."""
CONFIG, WEIGHTS, PREFIX = "adapter_config.json", "adapter_model.safetensors", "base_model.model."


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
    names = {f"{target}_proj" for target in config.lora_targets}  # not `gate`, which is a router
    for parent in [*model.model.layers.modules()]:
        for name, layer in [*parent.named_children()]:
            if isinstance(layer, nn.Linear) and name in names:
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
        # one key: safetensors writes several in any order, and peft reads none
        save_file(found, folder / WEIGHTS, metadata={"base_sha256": self.base_sha256})
