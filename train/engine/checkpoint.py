"""Checkpoints: `out/<run>/checkpoints/step_00000100/`, a Hugging Face folder that training can go on from.

    config.json, model.safetensors, tokenizer files   loads as it is with any reader of that layout
    optimizer.safetensors, rng.safetensors            `<parameter>/<state>` and generator states; nothing is pickled
    beside.safetensors                                what is trained with the model and is no part of it
    adapter_config.json, adapter_model.safetensors    of a run with LoRA instead of the model: the adapters alone
    ema.safetensors                                   averaged weights, of a run that keeps them
    state.json                                        the step, what the run was made of, every file's SHA-256

A checkpoint is written aside, flushed to the disk and renamed whole; one that a crash cut short has no such name, and
one that was damaged later does not match its checksums.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from datakit.config import digest, sha256_file
from datakit.errors import InputError, IntegrityError, ModelError
from train.engine.distributed import fill, like
from train.engine.optim import Optimizers, WeightAverage
from train.model import lora
from train.model.decoder import CausalLM
from train.model.hf import BESIDE, Weights, copy_files, write_model
from train.model.lora import Adapters, trained

FORMAT = "train.checkpoint"
FORMAT_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """What state.json holds beside the checksums."""

    step: int
    """Optimizer steps taken."""
    task: str
    """The packed set's: `pretrain` for plain text, `sft`, ..."""
    manifest_version: str
    tokenizer: dict[str, Any]
    """The pack manifest's facts: hashes, vocabulary size, special ids."""
    order: dict[str, Any]
    """What decides which rows make which step."""
    config: dict[str, Any]
    """The run's resolved configuration."""
    stop_ids: tuple[int, ...] = ()
    """Tokens that end an answer; empty for plain text."""
    base_sha256: str = ""
    """Of a run with LoRA: the fingerprint of the model that its adapters belong to."""
    loop: dict[str, Any] = field(default_factory=dict)
    """What else the loop goes on from."""
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 by file name."""

    def moved(self, step: int) -> "State":
        """The same run at another step."""
        return replace(self, step=step)


def save(
    folder: Path,
    state: State,
    model: Weights,
    optimizer: Optimizers,
    tokenizer_files: tuple[Path, ...],
    adapters: Adapters | None = None,
    average: WeightAverage | None = None,
) -> Path:
    """Write the checkpoint of `state.step` under `folder` and return where it lies; of `adapters` it holds these alone.

    Raises:
        InputError: the disk is full or the folder cannot be written; earlier checkpoints are untouched.
    """
    place = folder / f"step_{state.step:08d}"
    aside = folder / f".{place.name}.{os.getpid()}.tmp"
    try:
        _write(aside, state, model, optimizer, tokenizer_files, adapters, average)
    except (OSError, SafetensorError) as e:
        shutil.rmtree(aside, ignore_errors=True)
        raise InputError(f"{place}: cannot write the checkpoint ({e}); make room and go on with --resume") from None
    if place.exists():  # damaged, or the run was resumed from before it
        place.rename(folder / f".{place.name}.{os.getpid()}.old")
    aside.rename(place)
    _flush(folder)
    shutil.rmtree(folder / f".{place.name}.{os.getpid()}.old", ignore_errors=True)
    return place


def _write(
    aside: Path,
    state: State,
    model: Weights,
    optimizer: Optimizers,
    tokenizer_files: tuple[Path, ...],
    adapters: Adapters | None,
    average: WeightAverage | None,
) -> None:
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    if adapters:
        adapters.write(aside, model)
        copy_files(tokenizer_files, aside)
    else:
        special = {k: state.tokenizer.get(k[:-9] + "_id") for k in _SPECIAL}
        write_model(aside, model, tokenizer_files, special, state.stop_ids, own=True)
    if beside := {n: p.detach().cpu().contiguous() for n, p in trained(model).items() if n.startswith(BESIDE)}:
        save_file(beside, aside / "beside.safetensors")
    save_file(_optimizer_tensors(model, optimizer), aside / "optimizer.safetensors")
    save_file(_rng_tensors(), aside / "rng.safetensors")
    if average:
        average.save(aside)
    files = {f.name: sha256_file(f) for f in sorted(aside.iterdir())}
    body = {"format": FORMAT, "format_version": FORMAT_VERSION} | asdict(state) | {"files": files}
    text = json.dumps(body | {"checksum": digest(body)}, indent=1, sort_keys=True) + "\n"
    (aside / "state.json").write_text(text, encoding="utf-8")
    for file in aside.iterdir():
        file.chmod(0o644)  # the library that writes tensors hides them from others
        _flush(file)
    _flush(aside)


_SPECIAL = ("pad_token_id", "eos_token_id", "bos_token_id")


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _optimizer_tensors(model: Weights, optimizer: Optimizers) -> dict[str, torch.Tensor]:
    return {
        f"{name}/{key}": value.detach().cpu().contiguous()
        for name, parameter in trained(model).items()
        for key, value in optimizer.state[parameter].items()
    }


def _rng_tensors() -> dict[str, torch.Tensor]:
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def restore(place: Path, model: CausalLM, optimizer: Optimizers) -> None:
    """Put a checked checkpoint's weights, optimizer state and generator states back.

    Raises:
        ModelError: it is of a model with other tensors.
    """
    parameters = trained(model)
    adapted = (place / lora.WEIGHTS).is_file()
    weights = lora.tensors(place)[0] if adapted else load_file(place / "model.safetensors")
    if (beside := place / "beside.safetensors").is_file():
        weights |= load_file(beside)
    wrong = [n for n in parameters.keys() | weights.keys() if _shape(parameters, n) != _shape(weights, n)]
    if wrong:
        name = min(wrong)
        raise ModelError(
            f"{place}: tensor {name!r} has shape {_shape(weights, name)} in the checkpoint and "
            f"{_shape(parameters, name)} in this run's model; resume with the model that it was started with"
        )
    for name, parameter in parameters.items():
        fill(parameter, weights[name])
    for key, value in load_file(place / "optimizer.safetensors").items():
        name, _, part = key.rpartition("/")
        parameter = parameters[name]
        alone = part == "step" and value.ndim == 0
        optimizer.state[parameter][part] = value if alone else like(parameter, value.to(parameter.device))
    rng = load_file(place / "rng.safetensors")
    torch.set_rng_state(rng["cpu"])
    if "cuda" in rng and torch.cuda.is_available():
        torch.cuda.set_rng_state(rng["cuda"])


def _shape(tensors: Mapping[str, Any], name: str) -> tuple[int, ...] | None:
    return tuple(tensors[name].shape) if name in tensors else None


def check(place: Path) -> State:
    """The state of a checkpoint whose files are all as they were written.

    Raises:
        IntegrityError: a file is missing or damaged; the message names it.
    """
    try:
        body = json.loads((place / "state.json").read_text(encoding="utf-8"))
        checksum = body.pop("checksum")
        intact = digest(body) == checksum
        found = (body.pop("format"), body.pop("format_version"))
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as e:
        raise IntegrityError(f"{place / 'state.json'}: unreadable ({e!r})") from None
    if not intact or found != (FORMAT, FORMAT_VERSION):
        raise IntegrityError(f"{place / 'state.json'}: changed after it was written, or of another version {found}")
    for name, expected in body["files"].items():
        file = place / name
        if not file.is_file() or sha256_file(file) != expected:
            raise IntegrityError(f"{file}: missing or damaged; expected sha256 {expected}")
    return State(**body)


def newest_of_run(folder: Path) -> Path:
    """The newest checkpoint of a run's folder, unchecked; any other folder is itself."""
    found = steps(folder / "checkpoints")
    return found[0] if found else folder


def steps(folder: Path) -> list[Path]:
    """The checkpoints under a folder, newest first, checked or not."""
    return sorted(folder.glob("step_" + "[0-9]" * 8), reverse=True)


def newest(folder: Path, damaged: list[str]) -> tuple[Path, State] | None:
    """The newest checkpoint that is whole; None where there is none.

    Damaged ones on the way are renamed to `damaged.step_...` and told in `damaged`.

    Raises:
        IntegrityError: there are checkpoints, and all are damaged.
    """
    for place in steps(folder):
        try:
            return place, check(place)
        except IntegrityError as e:
            damaged.append(str(e))
            shutil.rmtree(folder / f"damaged.{place.name}", ignore_errors=True)
            place.rename(folder / f"damaged.{place.name}")
    if damaged:
        raise IntegrityError(f"{folder}: every checkpoint is damaged: {'; '.join(damaged)}")
    return None


def keep_newest(folder: Path, count: int) -> None:
    """Remove all but the newest `count` checkpoints (0 keeps all), and what a killed run left half written."""
    for place in (*(steps(folder)[count:] if count else ()), *folder.glob(".step_*")):
        shutil.rmtree(place, ignore_errors=True)
