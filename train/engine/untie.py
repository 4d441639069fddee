"""Late untying of the head: a model trains with one matrix for embeddings and logits, and ends with two.

The head begins as a copy, with the optimizer's state of the embeddings, so that nothing jumps (modded-nanogpt).
"""

from pathlib import Path

from datakit.errors import ConfigError
from train.engine.optim import OptimConfig, Optimizers, WeightAverage, group_of
from train.model import hf
from train.model.decoder import CausalLM

EMBED, HEAD = "model.embed_tokens.weight", "lm_head.weight"


def first_step(untie_at: float, total_steps: int, model: CausalLM, adapted: bool) -> int:
    """The step, from 1, that begins with a head of its own; 0: none does.

    Raises:
        ConfigError: there is nothing to untie.
    """
    if not untie_at:
        return 0
    if adapted or not model.config.tied_embeddings:
        raise ConfigError("untie_at: needs a model whose head is its embedding matrix, and no adapters")
    return max(1, round(untie_at * total_steps)) + 1


def untie(model: CausalLM, optimizer: Optimizers, config: OptimConfig, average: WeightAverage | None) -> None:
    """Give the head a matrix of its own, in place, everywhere."""
    head = model.untie()
    optimizer.add(group_of("head", [head], config), like=model.model.embed_tokens.weight)
    if average:
        average.add(HEAD, head, like=EMBED)


def is_untied(place: Path, model: CausalLM) -> bool:
    """Whether a checkpoint's head was untied, and the model's is not yet."""
    whole = (place / "config.json").is_file()  # else it holds adapters
    return whole and model.config.tied_embeddings and not hf.read_config(place).tied_embeddings
