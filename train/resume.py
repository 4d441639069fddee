"""Go on with a run: its earlier options, the newest intact checkpoint, and what must be the same as before."""

import itertools
import json
import shutil
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from datakit.config import digest, sha256_file
from datakit.errors import InputError, IntegrityError, ModelError, UsageError
from train.checkpoint import FORMAT, FORMAT_VERSION, State, rng_file, steps, trained
from train.config import LOG
from train.hf import config_from_hf, config_to_hf
from train.model import CausalLM, ModelConfig
from train.ranks import Ranks, like
from train.weights import adapters, read_config, read_weights

if TYPE_CHECKING:
    from train.start import RunConfig


def with_earlier(path: Path, values: dict[str, Any]) -> dict[str, Any]:
    """The options that a run was started with, as its run.json at `path` has them, overridden by `values`.

    Raises:
        InputError: it is unreadable.
    """
    try:
        old: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["config"]
        old["loop"] = {k: v for k, v in old["loop"].items() if k not in ("resume", "stop_at")}
    except FileNotFoundError:
        return values
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise InputError(f"{path}: unreadable ({e!r}); delete it and give all options again") from None
    return _merged(old, values)


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`base` overridden by `over`, section by section."""
    both = base | over
    return both | {k: _merged(base[k], v) for k, v in over.items() if isinstance(v, dict) and k in base}


def resumed(
    config: "RunConfig", ranks: Ranks, state: State, model: CausalLM, optimizer: torch.optim.Optimizer, steps: int
) -> State:
    """Load the newest checkpoint, if there is one; returns its state.

    Raises:
        ModelError: it does not fit the run.
        UsageError: it is beyond the last of the run's `steps`.
    """
    found = ranks.by_first(lambda: newest(Path(config.loop.out) / "checkpoints"))
    if found is None:
        LOG.info(f"nothing to resume in {config.loop.out}: starting from the first step")
        return state
    path, old = found
    _check_same(path, old, state, model.config)
    if config.needs_data and bool(old.stop_ids) != bool(state.stop_ids):
        learnt = "labels" if old.stop_ids else "every token"
        raise UsageError(f"{path} was trained on {learnt}: resume it with the command that began the run")
    if old.step > steps:
        raise UsageError(
            f"{config.loop.out}: the run is at step {old.step}, and is now to end at step {steps}: train on with "
            f"--steps above {old.step}, or begin another run with another --out"
        )
    was, now = _options(old), _options(state)
    for name in sorted(k for k in was.keys() & now.keys() - {"out", "resume", "stop_at"} if was[k] != now[k]):
        LOG.info(f"note: --{name.replace('_', '-')} was {was[name]!r}, and is {now[name]!r} from now on")
    restore(path, model, optimizer, ranks.rank)
    LOG.info(f"resumed from {path}")
    return replace(state, step=old.step, loop=old.loop)


def _options(state: State) -> dict[str, Any]:
    """The options of the run by name, without their sections."""
    parts = (found if isinstance(found, dict) else {name: found} for name, found in state.config.items())
    return {name: value for part in parts for name, value in part.items()}


def _check_same(path: Path, old: State, new: State, model: ModelConfig) -> None:
    """Refuse to resume with another order of rows, tokenizer, model, base model or optimizer."""
    pairs: list[tuple[str, Any, Any]] = [("manifest version", old.manifest_version, new.manifest_version)]
    pairs += [(f"tokenizer {k}", old.tokenizer.get(k), v) for k, v in new.tokenizer.items()]
    pairs += [(k, old.order.get(k), v) for k, v in new.order.items()]
    pairs += [("a LoRA base of sha256", old.base_sha256, new.base_sha256)]
    # of adapters the tensors do not tell the scale
    was, now = _options(old), _options(new)
    pairs += [(k, was[k], now[k]) for k in ("optimizer", "weights_dtype", "lora_alpha", "rslora")]
    if (path / "config.json").is_file():  # of adapters the base decides
        then, here = read_config(path), config_from_hf(config_to_hf(model, {}), str(path))
        here = replace(here, moe=replace(here.moe, balance_weight=then.moe.balance_weight))  # may change, as rates may
        pairs += [(f.name, getattr(then, f.name), getattr(here, f.name)) for f in fields(then) if f.compare]
    for name, given, found in pairs:
        if given != found:
            advice = f"resume with the same value, or start another run with --model {path} and another --out"
            raise ModelError(f"{path} was trained with {name} {given!r}, and this run has {found!r}: {advice}")


def newest(folder: Path) -> tuple[Path, State] | None:
    """The newest intact checkpoint; None if there are no checkpoints.

    Newer damaged ones are renamed to `damaged.step_...`, and the reasons are logged. Without an intact one all stay
    where they are, so that the next `--resume` does not take the run for one that has yet to begin.

    Raises:
        IntegrityError: there are checkpoints, but all are damaged.
    """
    damaged = dict[Path, str]()
    for path in steps(folder):
        try:
            state = check(path)
        except IntegrityError as e:
            damaged[path] = str(e)
            continue
        for newer, problem in damaged.items():
            LOG.info(f"skipped a damaged checkpoint: {problem}")
            shutil.rmtree(folder / f"damaged.{newer.name}", ignore_errors=True)
            newer.rename(folder / f"damaged.{newer.name}")
        return path, state
    if damaged:
        advice = "restore these files, or begin again with another --out"
        raise IntegrityError(f"{folder}: every checkpoint is damaged: {'; '.join(damaged.values())}; {advice}")
    return None


def restore(path: Path, model: CausalLM, optimizer: torch.optim.Optimizer, rank: int = 0) -> None:
    """Load weights, optimizer state and generator states of a checked checkpoint.

    A rank that was not there when it was written keeps its own generator states.

    Raises:
        ModelError: the checkpoint belongs to a model with other tensors.
    """
    parameters, found = trained(model), set[str]()
    adapted = (path / "adapter_model.safetensors").is_file()
    weights = iter(adapters(path)[0].items()) if adapted else read_weights(path)
    file = path / "beside.safetensors"
    beside = load_file(file).items() if file.is_file() else ()
    for name, value in itertools.chain(weights, beside):  # one at a time: a rank with slices has no room for all
        _check_shape(path, name, value, parameters.get(name))
        with torch.no_grad():
            parameters[name].copy_(like(parameters[name], value))
        found.add(name)
    for name in parameters.keys() - found:
        _check_shape(path, name, None, parameters[name])
    fused = {p for group in optimizer.param_groups if group.get("fused") for p in group["params"]}
    with safe_open(path / "optimizer.safetensors", "pt") as values:
        for key in values.keys():  # noqa: SIM118
            name, _, part = key.rpartition("/")
            value, parameter = values.get_tensor(key), parameters[name]
            if value.ndim == 0:  # the step; bitsandbytes counts it as an int, a fused kernel on the device
                counted = value.to(parameter.device) if parameter in fused else value
                optimizer.state[parameter][part] = counted if value.is_floating_point() else value.item()
            else:
                optimizer.state[parameter][part] = like(parameter, value.to(parameter.device))
    if not (path / rng_file(rank)).is_file():
        return
    rng = load_file(path / rng_file(rank))
    torch.set_rng_state(rng["cpu"])
    if "cuda" in rng and torch.cuda.is_available():
        torch.cuda.set_rng_state(rng["cuda"])


def _check_shape(path: Path, name: str, there: Tensor | None, here: Tensor | None) -> None:
    shapes = [None if tensor is None else tuple(tensor.shape) for tensor in (there, here)]
    if shapes[0] != shapes[1]:
        where = f"{path}: tensor {name!r} has shape {shapes[0]} in the checkpoint"
        raise ModelError(f"{where} and {shapes[1]} in this run's model; resume with the model of the first start")


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
