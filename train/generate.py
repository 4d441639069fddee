"""Generate text with the template that the model was trained with.

    python -m train.generate --checkpoint out/run --prompt "Hello"

Shapes: B rows (1 here), T positions, V vocabulary.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from datakit.config import option
from datakit.errors import ConfigError, ModelError, UsageError
from datakit.pack.chat import ChatTokenizer
from train import checkpoint, flags, lora
from train.attention import CachedAttention
from train.model import CausalLM


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerateConfig:
    """What to say, and how freely."""

    checkpoint: str = option("out/run", "checkpoint, Hugging Face folder, or a run's folder for its newest checkpoint")
    prompt: str = option("", "what the user says; of a model of plain text, how the text begins")
    system: str = option("", "system message before it")
    plain: bool = option(False, "continue the prompt as text, without the chat template (always so after plain text)")
    max_new_tokens: int = option(128, "tokens to generate at most")
    temperature: float = option(0.0, "0: always the likeliest token")
    top_p: float = option(1.0, "sample from the likeliest tokens that together have this probability")
    seed: int = option(0, "decides the sampling")

    def __post_init__(self) -> None:
        if not self.prompt:
            raise UsageError("say something with --prompt")
        if self.temperature < 0 or not 0 < self.top_p <= 1 or self.max_new_tokens < 1:
            raise ConfigError("temperature must not be negative, top_p within 0..1, max_new_tokens at least 1")


@torch.inference_mode()
def generate(model: CausalLM, prompt: Sequence[int], stop_ids: frozenset[int], config: GenerateConfig) -> Iterator[int]:
    """Token ids after `prompt`, without the stop token; ends at one, at `max_new_tokens` or at the model's length."""
    generator = torch.Generator().manual_seed(config.seed)
    cache, new = CachedAttention(), list(prompt)
    for _ in range(min(config.max_new_tokens, model.config.max_positions - len(prompt))):
        positions_BT = torch.arange(cache.length, cache.length + len(new))[None]
        hidden_BTD = model(torch.tensor([new]), positions_BT, cache)
        token = _choose(model.lm_head(hidden_BTD[0, -1]).float(), config, generator)
        if token in stop_ids:
            return
        yield token
        new = [token]


def _choose(logits_V: Tensor, config: GenerateConfig, generator: torch.Generator) -> int:
    """The likeliest token, or one from the nucleus (Holtzman et al., 2020)."""
    if config.temperature == 0:
        return int(logits_V.argmax())
    ranked_V, ids_V = (logits_V / config.temperature).softmax(-1).sort(descending=True)
    outside = ranked_V.cumsum(-1) - ranked_V >= config.top_p
    return int(ids_V[torch.multinomial(ranked_V.masked_fill(outside, 0), 1, generator=generator)])


def load(folder: Path) -> tuple[CausalLM, ChatTokenizer, dict[str, Any]]:
    """Model, tokenizer and state.json (empty if there is none) of a folder, checked against each other.

    Raises:
        ModelError: no model there, or tokenizer files that are not those of the training.
    """
    folder = checkpoint.newest_of_run(folder)
    tokenizer = ChatTokenizer.load(folder)
    try:
        state: dict[str, Any] = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        state = {}
    trained = state.get("tokenizer", {})
    for name, found in (("sha256", tokenizer.sha256), ("chat_template_sha256", tokenizer.template_sha256)):
        if trained.get(name, found) != found:
            raise ModelError(
                f"{folder}: trained with a tokenizer of {name} {trained[name]}, but the files there give {found}; "
                f"put back tokenizer.json and tokenizer_config.json as they were in training"
            )
    model = lora.read(folder).eval()
    if tokenizer.vocab_size > model.config.vocab_size:
        raise ModelError(
            f"{folder}: the tokenizer has {tokenizer.vocab_size} tokens, the model {model.config.vocab_size}"
        )
    return model, tokenizer, state


def main(argv: Sequence[str]) -> int:
    """Print the answer; returns the exit code."""
    values = flags.given(GenerateConfig, "python -m train.generate", (__doc__ or "").split("\n")[0], argv)
    config = flags.built(GenerateConfig, values)
    model, tokenizer, state = load(Path(config.checkpoint))
    if config.plain or state.get("task") == "pretrain":
        prompt = tokenizer.encode_text(config.prompt)
    else:
        system = [{"role": "system", "content": config.system}] if config.system else []
        prompt = tokenizer.encode_prompt([*system, {"role": "user", "content": config.prompt}])
    if len(prompt) >= model.config.max_positions:
        raise UsageError(f"the prompt has {len(prompt)} tokens, the model's length is {model.config.max_positions}")
    stop_ids = frozenset(tokenizer.stop_ids())
    ids = list(generate(model, prompt, stop_ids, config))
    print(tokenizer.decode(ids, skip_special_tokens=True))
    return 0


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
