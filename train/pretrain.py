"""Pretraining: cross-entropy on every token that follows another of its sequence.

    python -m train.pretrain --manifest manifests/mydata/pack.json --preset 26m --out out/base

With conversations, every token is a label, also user turns and template tokens. For the answers only, use train.sft.
"""

from typing import ClassVar

from train.sft import SFTConfig
from train.start import command


class PretrainConfig(SFTConfig):
    """Configuration of a training run on every token."""

    every_token: ClassVar[bool] = True


main = command(PretrainConfig, __name__, __doc__)
