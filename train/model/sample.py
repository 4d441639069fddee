"""Token after token: a key/value cache for prompts of any lengths at once, and the choice of the next token.

Shapes: B prompts, T new positions, S positions seen, H query heads, K key/value heads, E head width, V vocabulary.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from datakit.config import option
from datakit.errors import ConfigError
from train.model.attention import Segments, grouped_attention
from train.model.decoder import CausalLM


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleConfig:
    """How freely to choose, and when to stop."""

    max_new_tokens: int = option(128, "tokens to generate at most")
    temperature: float = option(0.0, "0: always the likeliest token")
    top_k: int = option(0, "sample from so many of the likeliest tokens; 0: from all")
    top_p: float = option(1.0, "sample from the likeliest tokens that together have this probability")
    min_p: float = option(0.0, "leave out tokens less likely than this share of the likeliest's probability")
    repetition_penalty: float = option(1.0, "above 1: tokens that the prompt or the answer holds become less likely")
    seed: int = option(0, "decides the sampling")

    def __post_init__(self) -> None:
        if self.temperature < 0 or self.max_new_tokens < 1 or self.top_k < 0:
            raise ConfigError("temperature and top_k must not be negative, max_new_tokens at least 1")
        if not 0 < self.top_p <= 1 or not 0 <= self.min_p <= 1 or self.repetition_penalty <= 0:
            raise ConfigError("top_p must lie in 0..1 (0 excluded), min_p in 0..1, repetition_penalty above 0")


class PromptCache:
    """Attention that keeps keys and values, so that a token costs one position; prompts are padded on the left."""

    def __init__(self, padding_B: Tensor, room: int) -> None:
        """`padding_B` is the number of padding positions before each prompt, `room` the positions there will be."""
        self.padding_B, self.room, self.length = padding_B, room, 0
        self._kept: dict[int, tuple[Tensor, Tensor]] = {}

    def __call__(self, q_BTHE: Tensor, k_BTKE: Tensor, v_BTKE: Tensor, layer: int) -> Tensor:
        """Attend to all that is kept and to the new positions up to each query, never to padding."""
        begin, end = self.length, self.length + q_BTHE.shape[1]
        if layer not in self._kept:
            shape = (k_BTKE.shape[0], self.room, *k_BTKE.shape[2:])
            self._kept[layer] = k_BTKE.new_empty(shape), v_BTKE.new_empty(shape)
        for kept, new in zip(self._kept[layer], (k_BTKE, v_BTKE), strict=True):
            kept[:, begin:end] = new
        q, k, v = (x.transpose(1, 2) for x in (q_BTHE, *(kept[:, :end] for kept in self._kept[layer])))
        mask_BTS = self._mask(begin, end)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask_BTS[:, None], enable_gqa=True).transpose(1, 2)

    def _mask(self, begin: int, end: int) -> Tensor:
        key_S = torch.arange(end, device=self.padding_B.device)
        causal_TS = key_S <= key_S[begin:, None]
        itself_TS = key_S == key_S[begin:, None]  # padding sees itself: a row of nothing would be NaN
        return (causal_TS & (key_S >= self.padding_B[:, None, None])) | itself_TS

    def positions(self, new: int) -> Tensor:
        """Positions of the next `new` tokens of each prompt, (B, T)."""
        columns_T = torch.arange(self.length, self.length + new, device=self.padding_B.device)
        return (columns_T - self.padding_B[:, None]).clamp(min=0)


@torch.inference_mode()
def generate(
    model: CausalLM, prompts: Sequence[Sequence[int]], stop_ids: frozenset[int], config: SampleConfig
) -> Iterator[list[int | None]]:
    """The next token of every prompt, again and again; None from where a prompt's answer has ended.

    An answer ends at a stop token, which is not given, at `max_new_tokens` or at the model's length. What a prompt
    gives does not depend on those beside it: each has a generator of its own, seeded by the seed and its place.
    """
    device = next(model.parameters()).device
    lengths = [len(p) for p in prompts]
    rooms = [min(config.max_new_tokens, model.config.max_positions - n) for n in lengths]
    widest = max(lengths)
    new_BT = torch.tensor([[0] * (widest - len(p)) + list(p) for p in prompts], device=device)
    padding_B = torch.tensor([widest - n for n in lengths], device=device)
    last = _recomputed(model, padding_B) if model.config.looks_back else _cached(model, padding_B, widest + max(rooms))
    seen_BV = torch.zeros(len(prompts), model.config.vocab_size, dtype=torch.bool, device=device)
    for seen_V, prompt in zip(seen_BV, prompts, strict=True):
        seen_V[torch.tensor(list(prompt), device=device)] = True
    generators = [torch.Generator().manual_seed(config.seed + i) for i in range(len(prompts))]
    for made in range(max(rooms)):
        chosen = choose(model.lm_head(last(new_BT)).float(), seen_BV, config, generators)
        rooms = [0 if token in stop_ids else room for token, room in zip(chosen, rooms, strict=True)]
        if max(rooms) <= made:
            return
        yield [token if made < room else None for token, room in zip(chosen, rooms, strict=True)]
        new_BT = torch.tensor(chosen, device=device)[:, None]
        seen_BV.scatter_(1, new_BT, True)


Last = Callable[[Tensor], Tensor]
"""The next tokens of all prompts (B, T) -> the hidden states of their last ones, (B, D)."""


def _cached(model: CausalLM, padding_B: Tensor, room: int) -> Last:
    cache = PromptCache(padding_B, room)

    def last(new_BT: Tensor) -> Tensor:
        hidden_BTD: Tensor = model(new_BT, cache.positions(new_BT.shape[1]), cache)
        cache.length += new_BT.shape[1]
        return hidden_BTD[:, -1]

    return last


def _recomputed(model: CausalLM, padding_B: Tensor) -> Last:
    """Of a model that looks at neighbouring tokens otherwise than by attention, which a cache of keys does not hold."""
    rows: list[Tensor] = []

    def last(new_BT: Tensor) -> Tensor:
        if rows:
            rows[:] = [torch.cat(pair) for pair in zip(rows, new_BT, strict=True)]
        else:
            rows.extend(row[n:] for row, n in zip(new_BT, padding_B.tolist(), strict=True))
        lengths = [len(row) for row in rows]
        segments = Segments.of([[0, n] for n in lengths], max(lengths)).to(new_BT.device)
        ids_BT = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        hidden_BTD: Tensor = model(ids_BT, segments.positions_BT, grouped_attention(segments))
        return hidden_BTD[torch.arange(len(rows)), torch.tensor(lengths) - 1]

    return last


def choose(
    logits_BV: Tensor, seen_BV: Tensor, config: SampleConfig, generators: Sequence[torch.Generator]
) -> list[int]:
    """The likeliest token of each row, or one drawn from what the configuration leaves."""
    if config.repetition_penalty != 1:  # CTRL: Keskar et al., 2019
        smaller_BV = torch.where(
            logits_BV > 0, logits_BV / config.repetition_penalty, logits_BV * config.repetition_penalty
        )
        logits_BV = torch.where(seen_BV, smaller_BV, logits_BV)
    if config.temperature == 0:
        return logits_BV.argmax(-1).tolist()
    probabilities_BV = kept(logits_BV / config.temperature, config).softmax(-1).cpu()
    return [
        int(torch.multinomial(row_V, 1, generator=generator))
        for row_V, generator in zip(probabilities_BV, generators, strict=True)
    ]


def kept(logits_BV: Tensor, config: SampleConfig) -> Tensor:
    """The logits, minus infinity for what top-k, then top-p, then min-p leave out; the likeliest always stays."""
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
    """Text of tokens as it becomes certain: whole characters, and nothing of a stop string."""

    def __init__(self, decode: Callable[[Sequence[int]], str], stop: Sequence[str] = ()) -> None:
        self.decode, self.stop, self.ids, self.given, self.ended = decode, tuple(stop), list[int](), 0, False

    def add(self, token: int) -> str:
        """The text that this token makes certain; `ended` is true from the first stop string on."""
        self.ids.append(token)
        text = self.decode(self.ids)
        found = [at for at in (text.find(s) for s in self.stop) if at >= 0]
        if found:
            self.ended = True
            return self._upto(text, min(found))
        whole = text.rstrip("\ufffd")  # what the beginning of a character decodes to
        return self._upto(text, len(whole) - self._begun(whole))

    def end(self) -> str:
        """What was held back and did not become a stop string."""
        text = self.decode(self.ids)
        return "" if self.ended else self._upto(text, len(text))

    def _begun(self, text: str) -> int:
        """Characters at the end with which a stop string may begin."""
        longest = max((len(s) for s in self.stop), default=1) - 1
        lengths = (n for n in range(min(longest, len(text)), 0, -1) if any(s.startswith(text[-n:]) for s in self.stop))
        return next(lengths, 0)

    def _upto(self, text: str, end: int) -> str:
        new = text[self.given : max(end, self.given)]
        self.given += len(new)
        return new
