"""Checkpoints: `out/<run>/checkpoints/step_00000100/`, a Hugging Face folder from which training can resume.

    config.json, model.safetensors, tokenizer files   the model; any reader of Hugging Face folders loads it
    optimizer.safetensors, rng.safetensors            `<parameter>/<state>` and generator states; no pickles
    adapter_config.json, adapter_model.safetensors    with LoRA, instead of the model: only the adapters
    beside.safetensors                                what is trained with the model and is no part of it (distillation)
    state.json                                        the step, the run's settings and data, SHA-256 of every file

A checkpoint is written to a temporary folder, flushed to disk, then renamed. After a crash an incomplete checkpoint has
only its temporary name. A checkpoint that was damaged later does not match its checksums.

Rank 0 alone writes, from a `Snapshot`, and any number of ranks can resume.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from datakit.config import digest, sha256_file
from datakit.errors import InputError
from datakit.manifest import hub_folder
from datakit.storage import flush_folder as flush  # files, too
from datakit.storage import here
from train import hf
from train.hf import copy_files, write_model
from train.model import CausalLM, ModelConfig
from train.ranks import Ranks, whole_of

if TYPE_CHECKING:
    from train.lora import Adapters

FORMAT = "train.checkpoint"
FORMAT_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """Contents of state.json."""

    step: int
    """Optimizer steps taken."""
    task: str
    """Task of the packed data: `pretrain` for plain text, `sft`, ..."""
    manifest_version: str
    tokenizer: dict[str, Any]
    """Tokenizer facts of the pack manifest: hashes, vocabulary size, special ids."""
    order: dict[str, Any]
    """The settings that decide which rows make which step."""
    config: dict[str, Any]
    """The run's resolved configuration."""
    stop_ids: tuple[int, ...] = ()
    """Tokens that end an answer; empty for plain text."""
    base_sha256: str = ""
    """With LoRA: the fingerprint of the base model."""
    loop: dict[str, Any] = field(default_factory=dict)
    """More state of the loop: loss scale, balance loss."""
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 by file name."""


def trained(model: nn.Module) -> dict[str, nn.Parameter]:
    """The trainable parameters, by name."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a checkpoint has of a step: trained parameters, optimizer state and generator states, whole, on rank 0.

    Where ranks have slices (FSDP), these are gathered tensor by tensor, and rank 0 holds them all on the CPU until they
    are written: with AdamW in fp32 12 bytes a parameter, 12 GB for a model of a billion. A third of it rank 0 has held
    before, when it made or read the model. In return one process writes one set of files, and no rank waits for
    another while it does.
    """

    config: ModelConfig
    parameters: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    """By `<parameter>/<state>`."""
    rng: list[dict[str, Tensor]]
    """The generator states of each rank."""

    @classmethod
    def of(
        cls, model: CausalLM, optimizer: torch.optim.Optimizer, ranks: Ranks | None = None, copied: bool = False
    ) -> Self:
        """The values of now; all `ranks` must call this, and it is empty on others than rank 0.

        Without `copied` they share the memory of the model, where that is on the CPU.
        """
        ranks, states = ranks or Ranks(), {"cpu": torch.get_rng_state()}
        if torch.cuda.is_available():
            states["cuda"] = torch.cuda.get_rng_state()
        found = cls(model.config, {}, {}, ranks.gathered(states))
        for name, p in trained(model).items():
            for key, value in {"": p, **optimizer.state[p]}.items():
                whole = whole_of(torch.as_tensor(value).detach())
                if ranks.first:
                    # all parameters share the code tables of 8-bit state, and safetensors refuses shared memory
                    whole = whole.to("cpu", copy=copied or key.startswith("qmap")).contiguous()
                    place, at = (found.optimizer, f"{name}/{key}") if key else (found.parameters, name)
                    place[at] = whole
        return found

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Like `nn.Module.named_parameters`."""
        return iter(self.parameters.items())


def save(
    folder: Path, state: State, found: Snapshot, tokenizer_files: tuple[Path, ...], adapters: "Adapters | None" = None
) -> Path:
    """Write the checkpoint of `state.step` under `folder` and return its path; with `adapters` only these are written.

    Raises:
        InputError: the disk is full or the folder is not writable; earlier checkpoints are unchanged.
    """
    path = folder / f"step_{state.step:08d}"
    temporary, old = (folder / f".{path.name}.{end}" for end in ("tmp", "old"))
    try:
        for place in (temporary, old):
            shutil.rmtree(place, ignore_errors=True)
        temporary.mkdir(parents=True)
        if adapters:
            adapters.write(temporary, found.parameters)
            copy_files(tokenizer_files, temporary)
        else:
            special = {f"{name}_token_id": state.tokenizer.get(f"{name}_id") for name in ("pad", "eos", "bos")}
            write_model(temporary, found, tokenizer_files, special, state.stop_ids)
        if beside := {name: value for name, value in found.parameters.items() if name.startswith(hf.BESIDE)}:
            save_file(beside, temporary / "beside.safetensors")
        save_file(found.optimizer, temporary / "optimizer.safetensors")
        for rank, states in enumerate(found.rng):
            save_file(states, temporary / rng_file(rank))
        files = {file.name: _finished(file) for file in sorted(temporary.iterdir())}
        body = {"format": FORMAT, "format_version": FORMAT_VERSION} | asdict(state) | {"files": files}
        text = json.dumps(body | {"checksum": digest(body)}, indent=1, sort_keys=True) + "\n"
        (temporary / "state.json").write_text(text, encoding="utf-8")
        flush(temporary / "state.json")
        flush(temporary)
        if path.exists():  # damaged, or the run was resumed from an earlier step
            path.rename(old)
        temporary.rename(path)
        flush(folder)
        shutil.rmtree(old, ignore_errors=True)
    except (OSError, SafetensorError) as e:
        shutil.rmtree(temporary, ignore_errors=True)
        raise InputError(f"{path}: cannot write the checkpoint ({e}); free some space, then use --resume") from None
    return path


def _finished(file: Path) -> str:
    """Flush a file that is readable by others to disk; returns its SHA-256."""
    file.chmod(0o644)  # safetensors writes files that only the owner can read
    flush(file)
    return sha256_file(file)


def rng_file(rank: int) -> str:
    """The file with the generator states of a rank: each rank draws its own numbers (dropout, answers of GRPO)."""
    return f"rng-{rank:05d}.safetensors" if rank else "rng.safetensors"


def find_model(name: str) -> Path:
    """The folder of a model: a folder as it is, the newest checkpoint of a run, or a model of the Hugging Face cache.

    A folder or run on an object store (`s3://...`) is fetched to the mirror.

    Raises:
        ModelError: there is no such folder, and the cache does not have the model; with the line that fetches it.
    """
    folder = here(name)
    if not folder.exists() and "/" in name and (found := hub_folder(name, "config.json")):
        return found
    return next(iter(steps(folder / "checkpoints")), folder)


def steps(folder: Path) -> list[Path]:
    """The checkpoints under a folder, newest first, not verified."""
    return sorted(folder.glob("step_" + "[0-9]" * 8), reverse=True)


def keep_newest(folder: Path, count: int) -> None:
    """Remove all but the newest `count` checkpoints (0 keeps all), and incomplete ones of killed runs."""
    for path in (*(steps(folder)[count:] if count else ()), *folder.glob(".step_*")):
        shutil.rmtree(path, ignore_errors=True)
