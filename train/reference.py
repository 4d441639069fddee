"""Write the reference's log-probabilities of preference pairs, for train.dpo.

    python -m train.reference --manifest manifests/pairs/pack.json --model out/sft/checkpoints/step_00001000 \\
        --output out/reference

writes a manifest, `out/reference/manifest.json`, with the identity of the pairs and of the model. `train.dpo
--reference out/reference` then needs neither memory nor time for a second model.

Shapes: B rows, P pairs.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from datakit.config import digest, option, sha256_file
from datakit.errors import ConfigError, IntegrityError, ManifestError, UsageError
from datakit.manifest import Count, Ledger, Manifest, Shard, load, save
from train.data.batches import DataConfig, StepStream
from train.data.packed import VERIFY_HELP, PackedSet, Verify, place_of
from train.dpo import SHARD, log_probs
from train.engine import checkpoint, flags
from train.engine.device import autocast, precision, usable_device
from train.engine.start import check_fits
from train.model import hf, lora
from train.model.loss import ChunkedConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class ReferenceConfig:
    """Model, pairs and output."""

    manifest: str = option("", "pack manifest of preference pairs")
    model: str = option("", "Hugging Face folder or checkpoint of the reference model")
    output: str = option("", "output folder")
    batch_rows: int = option(8, "packed rows per batch, an even number")
    dtype: Literal["auto", "bf16", "fp32"] = option(
        "auto", "precision, best the same as in training; auto: bf16 where it is fast"
    )
    device: str = option("auto", "cpu, cuda, ...; auto: cuda where there is one")
    threads: int = option(0, "CPU threads; 0: all cores")
    verify: Verify = option("all", VERIFY_HELP)

    def __post_init__(self) -> None:
        if not (self.manifest and self.model and self.output):
            raise UsageError("name the pairs with --manifest, the reference with --model, and a folder with --output")
        if self.batch_rows < 2 or self.batch_rows % 2 or self.threads < 0:
            raise ConfigError("batch_rows must be even and at least 2, threads 0 or more")


@torch.no_grad()
def write(config: ReferenceConfig) -> Path:
    """Compute and write the log-probabilities; returns the path of the manifest.

    Raises:
        DatakitError: pairs and model do not fit each other, or values are not finite.
    """
    device = usable_device(config.device)
    if config.threads:
        torch.set_num_threads(config.threads)
    half = precision(config.dtype, device)
    data, folder = (
        PackedSet.open(place_of(config.manifest), verify=config.verify),
        checkpoint.newest_of_run(Path(config.model)),
    )
    if data.packed.header.rows_per_unit != 2:
        raise ManifestError(f"{data.manifest}: expected preference pairs, found task {data.packed.header.task!r}")
    model = lora.read(folder).to(device)
    check_fits(folder, model, data)
    found = np.full(len(data.lengths), np.nan, np.float32)
    stream = StepStream(data, DataConfig(batch_rows=config.batch_rows, shuffle_buffer=0), seed=0, flat=True)
    steps = iter(stream)
    for _ in range(stream.plan.steps_per_epoch):
        for batch in next(steps):
            with autocast(device, half):
                probs_B = log_probs(model, batch.to(device), ChunkedConfig())[0]
            found[batch.rows] = probs_B.float().cpu().numpy()
    if not np.isfinite(found).all():
        raise IntegrityError(
            f"{folder}: log-probability of packed row {int(np.isfinite(found).argmin())} is not finite"
        )
    return _saved(config, data, half, hf.fingerprint(folder), found.reshape(-1, 2))


def _saved(config: ReferenceConfig, data: PackedSet, dtype: str, model_sha256: str, found_P2: np.ndarray) -> Path:
    out = Path(config.output)
    (out / SHARD).parent.mkdir(parents=True, exist_ok=True)
    np.save(out / SHARD, found_P2)
    parent = {"manifest": "pack", "version": data.version, "sha256": sha256_file(data.manifest)}
    made = {"batch_rows": config.batch_rows, "dtype": dtype}
    values = {"model_sha256": model_sha256, "pairs": data.version} | made
    shard = Shard(SHARD, len(found_P2), (out / SHARD).stat().st_size, sha256_file(out / SHARD))
    before = load(data.manifest)
    manifest = Manifest(
        dataset=before.dataset, kind="log_probs", stage="reference", key=digest(values), parents=(parent,),
        config=made, code=before.code, shards=(shard,),
        ledger=Ledger(Count(into=len(found_P2), kept=len(found_P2))), facts={"model_sha256": model_sha256},
    )  # fmt: skip
    relative = os.path.relpath(data.manifest.resolve(), out.resolve())
    save(out / "manifest.json", manifest, {"parents": {data.version: relative}, "model": config.model})
    return out / "manifest.json"


def main(argv: Sequence[str], prog: str = "python -m train.reference") -> int:
    """Write the log-probabilities; returns the exit code."""
    config = flags.built(ReferenceConfig, flags.given(ReferenceConfig, prog, __doc__, argv))
    print(f"[train] wrote {write(config)}")
    return 0


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
