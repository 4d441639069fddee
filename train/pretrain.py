"""Pretraining: cross-entropy on every token that follows another of its sequence.

    python -m train.pretrain --manifest manifests/mydata/pack.json --preset 26m --out out/base

With conversations, every token is a label, also user turns and template tokens. For the answers only, use train.sft.
"""

import sys
from collections.abc import Sequence

from train import flags
from train.sft import SftConfig, objective
from train.start import configured, finish, open_data, prepare


def main(argv: Sequence[str], prog: str = "python -m train.pretrain") -> int:
    """Train; returns the exit code."""
    config = configured(SftConfig, prog, __doc__, argv)
    return finish(prepare(config, objective(config), open_data(config).unlabelled()), prog)


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
