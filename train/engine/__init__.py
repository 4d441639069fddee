"""The training run: start, loop, optimizers, checkpoints, ranks and logs."""
