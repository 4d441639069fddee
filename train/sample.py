"""Sampling: the choice of the next token, and the text of tokens that come one by one.

Shapes: B rows, V vocabulary.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from datakit.config import option
from datakit.errors import ConfigError
from train.serve.answer_parts import start_of


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleConfig:
    """Sampling of the next token, and the length limit."""

    max_new_tokens: int = option(128, "maximum number of tokens to generate")
    temperature: float = option(0.0, "0: always the most likely token")
    top_k: int = option(0, "sample from this many most likely tokens; 0: from all")
    top_p: float = option(1.0, "sample from the most likely tokens with this total probability")
    min_p: float = option(0.0, "drop tokens below this share of the highest probability")
    repetition_penalty: float = option(1.0, "above 1: tokens of the prompt and the answer become less likely")
    seed: int = option(0, "random seed of the sampling")

    def __post_init__(self) -> None:
        if self.temperature < 0 or self.max_new_tokens < 1 or self.top_k < 0:
            raise ConfigError("temperature and top_k must not be negative, max_new_tokens at least 1")
        if not 0 < self.top_p <= 1 or not 0 <= self.min_p <= 1 or self.repetition_penalty <= 0:
            raise ConfigError("top_p must lie in 0..1 (0 excluded), min_p in 0..1, repetition_penalty above 0")


def drawn(logits_BV: Tensor, generators: Sequence[torch.Generator]) -> list[int]:
    """A token of each row's distribution, by one number from the row's own generator.

    The number is looked up in the cumulative distribution on the device, so only the chosen tokens come to the host.
    """
    numbers = torch.cat([torch.rand(1, generator=g, dtype=torch.float64) for g in generators]).to(logits_BV.device)
    cumulative_BV = logits_BV.double().softmax(-1).cumsum(-1)
    wanted_B1 = numbers[:, None] * cumulative_BV[:, -1:]
    return torch.searchsorted(cumulative_BV, wanted_B1, right=True).clamp_(max=logits_BV.shape[-1] - 1)[:, 0].tolist()


def filtered(logits_BV: Tensor, config: SampleConfig) -> Tensor:
    """The logits, with minus infinity for tokens dropped by top-k, top-p or min-p; the most likely one always stays."""
    if 0 < config.top_k < logits_BV.shape[-1]:
        logits_BV = logits_BV.masked_fill(logits_BV < logits_BV.topk(config.top_k).values[:, -1:], -math.inf)
    if config.top_p < 1:  # nucleus sampling: Holtzman et al., 2020
        ranked_BV, ids_BV = logits_BV.softmax(-1).sort(descending=True, stable=True)
        outside_BV = ranked_BV.cumsum(-1) - ranked_BV >= config.top_p
        logits_BV = logits_BV.masked_fill(outside_BV.scatter(1, ids_BV, outside_BV), -math.inf)
    if config.min_p > 0:  # Nguyen et al., 2024
        floor_B1 = logits_BV.max(-1, keepdim=True).values + math.log(config.min_p)
        logits_BV = logits_BV.masked_fill(logits_BV < floor_B1, -math.inf)
    return logits_BV


class TextStream:
    """Decode a stream of tokens to text: only complete characters, and no part of a stop string.

    Only the last few tokens are decoded again for each token, so the work grows with the length of the answer, not
    with its square. The token before the new ones is decoded with them, because some tokenizers write the first token
    of a text without its space.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], stop: Sequence[str] = ()) -> None:
        self.decode, self.stop, self.ended = decode, tuple(s for s in stop if s), False
        self._window: list[int] = []
        """The last tokens: those whose text is known, then those that are an incomplete character so far."""
        self._told, self._known, self._held = 0, "", ""

    def add(self, token: int) -> str:
        """The new text that no later token can change; sets `ended` at the first stop string."""
        self._window.append(token)
        text = self.decode(self._window)
        if text.endswith("\ufffd"):  # an incomplete character decodes to this
            return ""
        new = text[len(self._known) :]
        del self._window[: self._told]
        self._told, self._known = len(self._window), self.decode(self._window)
        return self._release(new)

    def end(self) -> str:
        """The rest of the text at the end of the stream."""
        rest = "" if self.ended else self._release(self.decode(self._window)[len(self._known) :])
        rest, self._held = rest + self._held, ""
        return rest

    def _release(self, new: str) -> str:
        """Add text; returns what no stop string can include any more."""
        text = self._held + new
        if found := [at for at in (text.find(s) for s in self.stop) if at >= 0]:
            self.ended, self._held = True, ""
            return text[: min(found)]
        sure = len(text) - max((start_of(s, text) for s in self.stop), default=0)
        self._held = text[sure:]
        return text[:sure]
