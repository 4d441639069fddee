"""The log-probabilities that preference training is held to, computed once for all or as they are needed.

    python -m train.reference --manifest manifests/pairs/pack.json --model out/sft/checkpoints/step_00001000 \\
        --output out/reference

writes a manifest of its own, `out/reference/manifest.json`, which names the pairs and the model that it belongs to, for
`train.dpo --reference`. A second model then takes no memory and no time in training.

Shapes: B rows, P pairs.
"""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from datakit.config import digest, option, sha256_file
from datakit.errors import ConfigError, IntegrityError, ManifestError, UsageError
from datakit.manifest import Count, Ledger, Manifest, Shard, data_dir, load, save
from train.data.batches import Batch, DataConfig, StepStream
from train.data.packed import Mixture, PackedSet
from train.engine import checkpoint, flags
from train.engine.device import autocast, precision, usable_device
from train.engine.start import check_fits
from train.model import hf, lora
from train.model.decoder import CausalLM
from train.model.loss import ChunkedConfig, label_states, row_log_probs

SHARD = "kept/log_probs.npy"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReferenceConfig:
    """Whose log-probabilities, and of which pairs."""

    manifest: str = option("", "the pack manifest of preference pairs")
    model: str = option("", "Hugging Face folder or checkpoint of the reference")
    output: str = option("", "folder for the result")
    batch_rows: int = option(8, "packed rows that pass through the model at once, an even number")
    dtype: Literal["auto", "bf16", "fp32"] = option("auto", "arithmetic, best the training's; auto: bf16 where fast")
    device: str = option("auto", "cpu, cuda, ...; auto: cuda where there is one")
    threads: int = option(0, "CPU threads; 0: all cores")

    def __post_init__(self) -> None:
        if not (self.manifest and self.model and self.output):
            raise UsageError("name the pairs with --manifest, the reference with --model, and a folder with --output")
        if self.batch_rows < 2 or self.batch_rows % 2 or self.threads < 0:
            raise ConfigError("batch_rows must be even and at least 2, threads 0 or more")


def frozen(folder: Path, data: PackedSet | Mixture, labels: ChunkedConfig | None = None) -> Callable[[Batch], Tensor]:
    """The model in `folder` as reference: (2P,) log-probabilities of a batch's real rows, computed each time.

    Raises:
        ModelError: it cannot be read, or does not fit the data.
    """
    model, how = lora.read(folder).requires_grad_(False), labels or ChunkedConfig()
    check_fits(folder, model, data)

    def reference(batch: Batch) -> Tensor:
        with torch.no_grad():
            return log_probs(model.to(batch.ids_BT.device), batch, how)[0][: len(batch.rows)]

    return reference


def log_probs(model: CausalLM, batch: Batch, labels: ChunkedConfig) -> tuple[Tensor, Tensor]:
    """Log-probabilities of the labels of each row, (B,), and how many they are."""
    hidden_LD, _ = label_states(model, batch, labels, labels.attend(batch))
    (rows, width), (label_pos_L, targets_L) = batch.ids_BT.shape, batch.counted
    return row_log_probs(hidden_LD, model.lm_head, targets_L, label_pos_L // width, rows, labels.loss_chunk)


def stored(manifest: Path, data: PackedSet | Mixture) -> Callable[[Batch], Tensor]:
    """What train.reference wrote as reference: (2P,) log-probabilities of a batch's real rows, looked up.

    Raises:
        ManifestError: not such a manifest, or one of other pairs; the message names both.
        IntegrityError: the numbers are not those that were written.
    """
    found = load(manifest)
    if found.stage != "reference":
        raise ManifestError(f"{manifest}: expected the manifest of train.reference, found stage {found.stage!r}")
    if (pairs := found.parents[0]["version"]) != data.version:
        raise ManifestError(
            f"{manifest} holds log-probabilities of the pairs of version {pairs}, but {data.manifest} has version "
            f"{data.version}: run train.reference on these"
        )
    file, shard = data_dir(manifest, found) / SHARD, found.shards[0]
    if not file.is_file() or sha256_file(file) != shard.sha256:
        raise IntegrityError(f"{file}: missing or damaged; expected sha256 {shard.sha256}. Run train.reference again")
    known = torch.from_numpy(np.load(file)).flatten()
    model, dtype = found.facts["model_sha256"][:12], found.config["dtype"]
    print(f"[train] reference: model {model} in {dtype}, by {manifest}", flush=True)
    return lambda batch: known[torch.from_numpy(batch.rows)].to(batch.ids_BT.device)


@torch.no_grad()
def write(config: ReferenceConfig) -> Path:
    """Compute and write everything; returns the manifest's path.

    Raises:
        DatakitError: pairs and model that do not fit each other, or values that are not finite.
    """
    device = usable_device(config.device)
    if config.threads:
        torch.set_num_threads(config.threads)
    half = precision(config.dtype, device)
    data, folder = PackedSet.open(Path(config.manifest)), checkpoint.newest_of_run(Path(config.model))
    if data.packed.header.rows_per_unit != 2:
        raise ManifestError(f"{data.manifest}: expected preference pairs, found task {data.packed.header.task!r}")
    model = lora.read(folder).to(device)
    check_fits(folder, model, data)
    found = np.full(len(data.lengths), np.nan, np.float32)
    stream = StepStream(data, DataConfig(batch_rows=config.batch_rows, shuffle_buffer=0), seed=0)
    steps = iter(stream)
    for _ in range(stream.plan.steps_per_epoch):
        for batch in next(steps):
            with autocast(device, half):
                probs_B = log_probs(model, batch.to(device), ChunkedConfig())[0]
            found[batch.rows] = probs_B[: len(batch.rows)].float().cpu().numpy()
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
    lay = os.path.relpath(data.manifest.resolve(), out.resolve())
    save(out / "manifest.json", manifest, {"parents": {data.version: lay}, "model": config.model})
    return out / "manifest.json"


def main(argv: Sequence[str], prog: str = "python -m train.reference") -> int:
    """Write the reference's log-probabilities; returns the exit code."""
    config = flags.built(ReferenceConfig, flags.given(ReferenceConfig, prog, __doc__, argv))
    print(f"[train] wrote {write(config)}")
    return 0


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
