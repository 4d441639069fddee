"""Checkpoints: `out/<run>/checkpoints/step_00000100/`, a Hugging Face folder from which training can resume.

    config.json, model.safetensors, tokenizer files   the model; any reader of Hugging Face folders loads it
    optimizer.safetensors, rng.safetensors            `<parameter>/<state>` and generator states; no pickles
    adapter_config.json, adapter_model.safetensors    with LoRA, instead of the model: only the adapters
    state.json                                        the step, the run's settings and data, SHA-256 of every file

A checkpoint is written to a temporary folder, flushed to disk, then renamed. After a crash an incomplete checkpoint has
only its temporary name. A checkpoint that was damaged later does not match its checksums. Checkpoints hold whole
tensors; with FSDP the slices are gathered on rank 0.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule

from datakit.config import digest, sha256_file
from datakit.errors import InputError, IntegrityError, ModelError
from train.engine.distributed import fill, like, whole_of
from train.engine.optim import Optimizers
from train.model import lora
from train.model.decoder import CausalLM
from train.model.hf import Weights, WholeModel, copy_files, read_weights, write_model
from train.model.lora import Adapters, trained

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


def unshard(model: CausalLM, optimizer: Optimizers, copied: bool = False) -> tuple[Weights, Any]:
    """Model and optimizer with whole tensors; with FSDP or `copied` on rank 0, in CPU memory of their own.

    With FSDP all ranks must call this; the other ranks get empty tensors. Only trained parameters are copied.
    """
    if not (isinstance(model, FSDPModule) or copied):
        return model, optimizer
    parameters, state = {}, {}
    for name, p in trained(model).items():
        parameters[name] = nn.Parameter(_on_first(p.detach()))
        state[parameters[name]] = {k: _on_first(torch.as_tensor(v)) for k, v in optimizer.state.get(p, {}).items()}
    return WholeModel(model.config, parameters), SimpleNamespace(state=state)


def _on_first(value: Tensor) -> Tensor:
    """A copy of the whole tensor on rank 0, an empty tensor on the other ranks."""
    found = whole_of(value)
    first = not dist.is_initialized() or dist.get_rank() == 0
    return found.to("cpu", copy=found is value) if first else found.new_empty(0)


def save(
    folder: Path, state: State, model: Weights, optimizer: Optimizers, tokenizer_files: tuple[Path, ...],
    adapters: Adapters | None = None,
    rng: dict[str, Tensor] | None = None,
) -> Path:  # fmt: skip
    """Write the checkpoint of `state.step` under `folder` and return its path; with `adapters` only these are written.

    `rng` has the generator states of that step, by default those of now.

    Raises:
        InputError: the disk is full or the folder is not writable; earlier checkpoints are unchanged.
    """
    path = folder / f"step_{state.step:08d}"
    temporary = folder / f".{path.name}.{os.getpid()}.tmp"
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        if adapters:
            adapters.write(temporary, model)
            copy_files(tokenizer_files, temporary)
        else:
            special = {f"{name}_token_id": state.tokenizer.get(f"{name}_id") for name in ("pad", "eos", "bos")}
            write_model(temporary, model, tokenizer_files, special, state.stop_ids)
        save_file(_optimizer_tensors(model, optimizer), temporary / "optimizer.safetensors")
        save_file(rng or rng_tensors(), temporary / "rng.safetensors")
        _seal(temporary, state)
    except (OSError, SafetensorError) as e:
        shutil.rmtree(temporary, ignore_errors=True)
        raise InputError(
            f"{path}: cannot write the checkpoint ({e}); free some space and continue with --resume"
        ) from None
    if path.exists():  # damaged, or the run was resumed from an earlier step
        path.rename(folder / f".{path.name}.{os.getpid()}.old")
    temporary.rename(path)
    _flush(folder)
    shutil.rmtree(folder / f".{path.name}.{os.getpid()}.old", ignore_errors=True)
    return path


def _seal(folder: Path, state: State) -> None:
    """Write state.json with the checksums of all files, and flush everything to disk."""
    files = {f.name: sha256_file(f) for f in sorted(folder.iterdir())}
    body = {"format": FORMAT, "format_version": FORMAT_VERSION} | asdict(state) | {"files": files}
    text = json.dumps(body | {"checksum": digest(body)}, indent=1, sort_keys=True) + "\n"
    (folder / "state.json").write_text(text, encoding="utf-8")
    for file in folder.iterdir():
        file.chmod(0o644)  # safetensors writes files that only the owner can read
        _flush(file)
    _flush(folder)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _optimizer_tensors(model: Weights, optimizer: Optimizers) -> dict[str, torch.Tensor]:
    found: dict[str, Tensor] = {}
    for name, parameter in trained(model).items():
        for key, value in optimizer.state[parameter].items():
            own = torch.as_tensor(value).detach().cpu().contiguous()
            # all parameters share the code tables of 8-bit state, and safetensors refuses shared memory
            found[f"{name}/{key}"] = own.clone() if key.startswith("qmap") else own
    return found


def rng_tensors() -> dict[str, Tensor]:
    """The states of the random generators."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def restore(path: Path, model: CausalLM, optimizer: Optimizers) -> None:
    """Load weights, optimizer state and generator states of a checked checkpoint.

    Raises:
        ModelError: the checkpoint belongs to a model with other tensors.
    """
    parameters = trained(model)
    adapted = (path / lora.WEIGHTS).is_file()
    weights = lora.tensors(path)[0] if adapted else dict(read_weights(path))
    wrong = [n for n in parameters.keys() | weights.keys() if _shape(parameters, n) != _shape(weights, n)]
    if wrong:
        name = min(wrong)
        raise ModelError(
            f"{path}: tensor {name!r} has shape {_shape(weights, name)} in the checkpoint and "
            f"{_shape(parameters, name)} in this run's model; resume with the model of the first start"
        )
    for name, parameter in parameters.items():
        fill(parameter, weights[name])
    for key, value in load_file(path / "optimizer.safetensors").items():
        name, _, part = key.rpartition("/")
        parameter = parameters[name]
        if value.ndim == 0:  # the step; bitsandbytes counts it as an int
            optimizer.state[parameter][part] = value if value.is_floating_point() else value.item()
        else:
            optimizer.state[parameter][part] = like(parameter, value.to(parameter.device))
    rng = load_file(path / "rng.safetensors")
    torch.set_rng_state(rng["cpu"])
    if "cuda" in rng and torch.cuda.is_available():
        torch.cuda.set_rng_state(rng["cuda"])


def _shape(tensors: Mapping[str, Any], name: str) -> tuple[int, ...] | None:
    return tuple(tensors[name].shape) if name in tensors else None


def check(path: Path) -> State:
    """Verify all files of a checkpoint and return its state.

    Raises:
        IntegrityError: a file is missing or damaged; the message names it.
    """
    try:
        body = json.loads((path / "state.json").read_text(encoding="utf-8"))
        checksum = body.pop("checksum")
        intact = digest(body) == checksum
        found = (body.pop("format"), body.pop("format_version"))
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as e:
        raise IntegrityError(f"{path / 'state.json'}: unreadable ({e!r})") from None
    if not intact or found != (FORMAT, FORMAT_VERSION):
        raise IntegrityError(f"{path / 'state.json'}: changed after it was written, or of an unknown version {found}")
    for name, expected in body["files"].items():
        file = path / name
        if not file.is_file() or sha256_file(file) != expected:
            raise IntegrityError(f"{file}: missing or damaged; expected sha256 {expected}")
    return State(**body)


def newest_of_run(folder: Path) -> Path:
    """The newest checkpoint of a run's folder, not verified; any other folder is returned unchanged."""
    found = steps(folder / "checkpoints")
    return found[0] if found else folder


def steps(folder: Path) -> list[Path]:
    """The checkpoints under a folder, newest first, not verified."""
    return sorted(folder.glob("step_" + "[0-9]" * 8), reverse=True)


def newest(folder: Path, damaged: list[str]) -> tuple[Path, State] | None:
    """The newest intact checkpoint; None if there are no checkpoints.

    Newer damaged ones are renamed to `damaged.step_...`, and the reasons are added to `damaged`.

    Raises:
        IntegrityError: there are checkpoints, but all are damaged.
    """
    for path in steps(folder):
        try:
            return path, check(path)
        except IntegrityError as e:
            damaged.append(str(e))
            shutil.rmtree(folder / f"damaged.{path.name}", ignore_errors=True)
            path.rename(folder / f"damaged.{path.name}")
    if damaged:
        raise IntegrityError(f"{folder}: every checkpoint is damaged: {'; '.join(damaged)}")
    return None


def keep_newest(folder: Path, count: int) -> None:
    """Remove all but the newest `count` checkpoints (0 keeps all), and incomplete ones of killed runs."""
    for path in (*(steps(folder)[count:] if count else ()), *folder.glob(".step_*")):
        shutil.rmtree(path, ignore_errors=True)
