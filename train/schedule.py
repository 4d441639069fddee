"""The learning rate of each step."""

import math

from train.optim import OptimConfig


def learning_rate(config: OptimConfig, step: int, total_steps: int) -> float:
    """The rate of step 1..total_steps: linear warmup, then the schedule's course down to `min_lr_ratio` of the peak.

    cosine: half a cosine (SGDR: Loshchilov and Hutter, 2017). wsd: the peak until the last `decay_ratio` of the steps,
    then a line down (Hu et al., 2024; Hägele et al., 2024), so that a checkpoint from before the decay can go on to
    more steps. constant: the peak to the end.
    """
    warmup = min(100, total_steps // 10) if config.warmup_steps < 0 else config.warmup_steps
    if step <= warmup:
        return config.lr * step / warmup
    if config.schedule == "constant":
        return config.lr
    low = config.min_lr_ratio
    if config.schedule == "wsd":
        decay = max(1, min(round(total_steps * config.decay_ratio), total_steps - warmup))
        return config.lr * (low + (1 - low) * max(0.0, min(1.0, (total_steps - step) / decay)))
    progress = min(1.0, (step - warmup) / max(1, total_steps - warmup))
    return config.lr * (low + (1 - low) * (1 + math.cos(math.pi * progress)) / 2)
