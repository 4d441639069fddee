"""An exponential moving average of the weights, which often generalises better than the last ones (Polyak, 1992)."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from datakit.errors import ModelError
from train.slices import fill, local

FILE = "ema.safetensors"


class WeightAverage:
    """The averages of a model's trained parameters, by name, in fp32."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self._parameters: dict[str, Tensor] = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self.values: dict[str, Tensor] = {n: p.detach().clone() for n, p in self._parameters.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after step 1, 2, ...; early averages forget sooner, so that first weights do not stay."""
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(local(self.values.values()), local(self._parameters.values()), 1 - decay)

    def add(self, name: str, parameter: Tensor, like: str) -> None:
        """Take in a parameter that begins as a copy of another."""
        self._parameters[name], self.values[name] = parameter, self.values[like].clone()

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Within, the model has the averages as its weights."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for name, p in self._parameters.items():
            kept = p.detach().clone()
            p.copy_(self.values[name])
            self.values[name].copy_(kept)

    @staticmethod
    @torch.no_grad()
    def load(folder: Path, parameters: Mapping[str, Tensor]) -> None:
        """Copy a checkpoint's averages into a model's parameters of the same names.

        Raises:
            ModelError: it has none.
        """
        if not (folder / FILE).is_file():
            raise ModelError(f"{folder}: has no {FILE}; averages are kept by a run with --ema-decay")
        found = load_file(folder / FILE)
        for name, parameter in parameters.items():
            parameter.copy_(found[name])

    def save(self, folder: Path) -> None:
        """Write the averages into a checkpoint's folder."""
        save_file({n: v.cpu().contiguous() for n, v in self.values.items()}, folder / FILE)

    def restore(self, folder: Path) -> None:
        """Put a checkpoint's averages back; one without any begins with its weights."""
        found = load_file(folder / FILE) if (folder / FILE).is_file() else self._parameters
        for name, value in self.values.items():
            fill(value, found[name].detach())
