"""Write a Hugging Face folder: LoRA adapters merged into their base model, or the mean of a run's checkpoints.

python -m train.merge --adapter out/lora --output out/merged
python -m train.merge --adapter out/run --average 3 --output out/averaged
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from datakit.config import option
from datakit.errors import InputError, ModelError, UsageError
from train import checkpoint, flags, hf, lora
from train.model import CausalLM


@dataclass(frozen=True, kw_only=True, slots=True)
class MergeConfig:
    """What to merge, and where to write it."""

    adapter: str = option("", "checkpoint of adapters, PEFT folder, or folder of a run for its newest checkpoint")
    average: int = option(0, "mean of the weights of this many newest checkpoints of a run; 0: its newest one alone")
    base: str = option("", "folder of the base model, if it has moved")
    output: str = option("", "folder for the merged model")

    def __post_init__(self) -> None:
        if not (self.adapter and self.output):
            raise UsageError("name the adapters with --adapter and a folder with --output")
        if self.average < 0:
            raise UsageError(f"average must be 0 or more, found {self.average}")


def merge(config: MergeConfig) -> Path:
    """Write the merged model; returns its folder.

    Raises:
        ModelError: no adapters there, or not their base model.
        InputError: the output folder is not empty.
    """
    folder, out = checkpoint.newest_of_run(Path(config.adapter)), Path(config.output)
    adapted = (folder / lora.CONFIG).is_file()
    if not (adapted or config.average):
        raise ModelError(f"{folder}: has no {lora.CONFIG}, so there are no adapters to merge")
    if out.exists() and any(out.iterdir()):
        raise InputError(f"{out}: is not empty; name another --output")
    base = Path(config.base or lora.settings_of(folder)["base_model_name_or_path"]) if adapted else folder
    model = _mean(config, base) if config.average else lora.read(folder, base)
    out.mkdir(parents=True, exist_ok=True)
    special = json.loads((base / "config.json").read_text(encoding="utf-8"))
    ids = {name: special.get(name) for name in ("pad_token_id", "eos_token_id", "bos_token_id")}
    files, stops = hf.tokenizer_files(folder, base), hf.saved_state(folder).get("stop_ids", ())
    hf.write_model(out, model, files, ids, stops, hf.DTYPES.get(model.config.dtype))
    return out


@torch.no_grad()
def _mean(config: MergeConfig, base: Path) -> CausalLM:
    """The mean of the newest checkpoints, adapters merged (Izmailov et al., 2018), one in memory beside the mean.

    Raises:
        InputError: the run has fewer checkpoints.
    """
    folders = checkpoint.steps(Path(config.adapter) / "checkpoints")[: config.average]
    if len(folders) < config.average:
        raise InputError(
            f"{config.adapter}: has {len(folders)} checkpoints, and --average wants {config.average}; keep more of a "
            f"run with --keep-checkpoints"
        )
    model = lora.read(folders[0], base)
    for number, folder in enumerate(folders[1:], start=2):
        other = dict(lora.read(folder, base).named_parameters())
        for name, parameter in model.named_parameters():
            parameter.lerp_(other[name], 1 / number)
    return model


def main(argv: Sequence[str], prog: str = "python -m train.merge") -> int:
    """Merge; returns the exit code."""
    config = flags.built(MergeConfig, flags.given(MergeConfig, prog, __doc__, argv))
    print(f"[train] wrote {merge(config)}")
    return 0


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
