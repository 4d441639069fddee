"""Merge adapters into their base model: `train.export` by its older name.

python -m train.merge --model out/lora --output out/merged
"""

from train import flags
from train.export import ExportConfig, main

__all__ = ["ExportConfig", "main"]
flags.started(main, __name__)
