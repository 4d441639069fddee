"""Read the model of a folder: a Hugging Face model, a checkpoint, or adapters, which are merged into their base.

The layouts are those of transformers, which hf.py knows, and of the PEFT library, which lora.py writes.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from datakit.config import digest, sha256_file
from datakit.errors import ModelError
from train.checkpoint import find_model
from train.hf import config_from_hf, tokenizer_files
from train.lora import CONFIG, PREFIX, WEIGHTS
from train.model import CausalLM, ModelConfig

if TYPE_CHECKING:
    from train.data import Mixture

NEUTRAL = re.compile(
    r"r|lora_(alpha|dropout)|use_rslora|rank_pattern|(target|exclude)_modules|layers_(to_transform|pattern)|"
    r"base_model.*|task_type|inference_mode|auto_mapping|revision|peft_version|runtime_config|eva_config|megatron_core|"
    r"ensure_weight_tying|qalora_group_size|unsloth.*|_.*"
)
"""Keys of adapter_config.json that are obeyed, or change nothing; all others are refused, unless they are empty."""
NO_CHANGE = {"peft_type": ("LORA",), "bias": ("none",), "init_lora_weights": (True, "gaussian", "eva", "orthogonal")}
"""Values of other keys that change nothing; other initial weights are taken out of the base (PiSSA, OLoRA)."""
UNUSED = re.compile(r"lm_head\.weight|.*rotary_emb\.inv_freq|(model\.)?(vision_tower|multi_modal_projector)\..*")
"""Tensors of files that a model may not need: a tied head, tables of older programs, and what reads images."""
TEXT_PART = re.compile(r"^(model\.)?language_model\.(?:model\.)?")
"""What the names of the text part begin with in a model that reads images, too."""


@torch.no_grad()
def read_model(folder: Path, base: Path | None = None) -> CausalLM:
    """Read the model of a folder, with fp32 weights on the CPU. Adapters are merged into their base.

    One tensor at a time is in memory besides the model. `base` is the folder of the base model if it has moved.

    Raises:
        ModelError: a file is missing or damaged, the weights do not fit the configuration, or the adapters were trained
            on another base.
    """
    if (folder / CONFIG).is_file():
        return _merged(folder, base)
    with torch.device("meta"):
        model = CausalLM(read_config(folder))
    found = {name: t.to("cpu", torch.float32).contiguous() for name, t in read_weights(folder)}
    check_sound(folder, ("config.json", *(f.name for f in folder.glob("model*.safetensors"))), found)
    model.load_state_dict(found, strict=False, assign=True)
    model.tie()
    return model


def read_fitting(name: str, data: "Mixture") -> CausalLM:
    """The model of a folder, a run or a name, for these data.

    Raises:
        ModelError: it cannot be read, or does not fit the data.
    """
    place = find_model(name)
    model = read_model(place)
    check_fits(place, model, data)
    return model


def check_fits(folder: Path, model: CausalLM, data: "Mixture") -> None:
    """Check that the data fit the model in `folder`.

    It may have more embeddings than the tokenizer, which adapters may have left to their base, has tokens.

    Raises:
        ModelError: they do not fit; the message has both values.
    """
    files = tokenizer_files(folder, base_of(folder))
    file, where = next((f for f in files if f.name == "tokenizer.json"), None), f"the model in {folder}"
    found, tokenizer = sha256_file(file) if file else None, data.tokenizer.get("sha256")
    have, need = model.config.vocab_size, data.header.vocab_size
    longest, most = data.header.seq_len, model.config.max_positions
    other = None not in (found, tokenizer) and found != tokenizer
    recipe = f'tokenizer = "{folder}" under [tokenize] of the recipe, without the stage tokenizer'
    advice = (
        f"pack with the model's own tokenizer ({recipe}; or `datakit pack ROWS --tokenizer {folder}`); transformers' "
        "resize_token_embeddings makes room for new tokens"
    )
    for wrong, what, theirs, place, ours, what_to_do in (
        (other, "a tokenizer of sha256", tokenizer, file, found, advice),
        (have < need or (have != need and not found), "a vocabulary of", need, where, have, advice),
        (most < longest, "sequences of up to", longest, where, most, "pack with a smaller --seq-len"),
    ):
        if wrong:
            raise ModelError(f"{data.manifest} has {what} {theirs}, but {place} has {ours}: {what_to_do}")


def _text_name(name: str) -> str:
    """The name that a tensor would have without the parts for images."""
    found = TEXT_PART.sub("", name)
    return name if found == name else found if found.startswith("lm_head") else f"model.{found}"


def read_weights(folder: Path) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a folder under our names, in the files' dtype.

    Raises:
        ModelError: a tensor is missing, has another shape, or is not of the model in config.json.
    """
    config = read_config(folder)
    with torch.device("meta"):
        shapes = {name: tuple(p.shape) for name, p in CausalLM(config).named_parameters()}
    files = _open_weights(folder)
    for name, shape in shapes.items():
        file, key = files.get(name, (None, name))
        found = file.get_tensor(key) if file else None
        if found is None or tuple(found.shape) != shape:
            what = "no such tensor" if found is None else tuple(found.shape)
            raise ModelError(f"{folder}: tensor {name!r}: expected {shape} by config.json, found {what}")
        yield name, found
    if wrong := sorted(key for key in files.keys() - shapes.keys() if not UNUSED.fullmatch(key)):
        raise ModelError(f"{folder}: tensor {wrong[0]!r}: expected no such tensor by config.json")


def read_config(folder: Path) -> ModelConfig:
    """The configuration of a folder; of adapters, that of their base.

    Raises:
        ModelError: no readable config.json, or one that is not implemented.
    """
    if (base := base_of(folder)) != folder:
        return read_config(base)
    path, beside = folder / "config.json", folder / "generation_config.json"
    config = _json(path, "a folder with a Hugging Face model")
    generation = _json(beside, "settings of generation, or no such file") if beside.is_file() else {}
    return replace(config_from_hf(config, str(path)), generation=generation)


def _json(path: Path, expected: str) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        ModelError: it cannot be read, or holds no object.
    """
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as e:
        raise ModelError(f"{path}: cannot read it ({e}); expected {expected}") from None


def _open_weights(folder: Path) -> dict[str, tuple[Any, str]]:
    """The open file of every tensor, and its name there; of model.safetensors, or of the shards in its index."""
    index, names = folder / "model.safetensors.index.json", {"model.safetensors"}
    try:
        if index.is_file():
            names = set(json.loads(index.read_bytes())["weight_map"].values())
        opened: list[Any] = [safe_open(folder / Path(name).name, "pt") for name in sorted(names)]
        return {_text_name(key): (f, key) for f in opened for key in f.keys()}  # noqa: SIM118
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as e:
        raise ModelError(f"{folder}: cannot read the weights ({e}); expected model.safetensors") from None


def check_sound(folder: Path, names: Sequence[str], tensors: Mapping[str, Tensor]) -> None:
    """Refuse weights with another checksum than in the checkpoint's state.json, and weights that are not finite.

    Raises:
        ModelError: naming the file, or the tensor.
    """
    saved = saved_state(folder).get("files", {})
    for name in names:
        if name in saved and sha256_file(folder / name) != saved[name]:
            raise ModelError(f"{folder / name}: changed or damaged since it was saved; expected sha256 {saved[name]}")
    for name, tensor in tensors.items():
        if wrong := int((~tensor.isfinite()).sum()):
            raise ModelError(f"{folder}: tensor {name!r}: {wrong} of {tensor.numel()} values are not finite numbers")


def fingerprint(folder: Path) -> str:
    """SHA-256 over configuration and weights or adapters, 64 hex digits."""
    names = ("config.json", "model*.safetensors", "adapter_config.json", "adapter_model.safetensors")
    return digest({f.name: sha256_file(f) for name in names for f in folder.glob(name)})


def saved_state(folder: Path) -> dict[str, Any]:
    """The state.json of a checkpoint; empty for a folder of another program.

    Raises:
        ModelError: it is damaged.
    """
    path = folder / "state.json"
    return _json(path, "the state of a checkpoint: it was changed or damaged since") if path.is_file() else {}


def adapters(folder: Path) -> tuple[dict[str, Tensor], str]:
    """The adapters of a folder by parameter name, and the fingerprint of their base model ("" if unknown).

    Raises:
        ModelError: the file is missing or damaged.
    """
    try:
        with safe_open(folder / WEIGHTS, "pt") as f:
            found = {k.removeprefix(PREFIX).removesuffix(".weight"): f.get_tensor(k) for k in f.keys()}  # noqa: SIM118
            base_sha256 = (f.metadata() or {}).get("base_sha256", "")
    except (OSError, SafetensorError) as e:
        raise ModelError(f"{folder / WEIGHTS}: cannot read the adapters ({e})") from None
    check_sound(folder, (CONFIG, WEIGHTS), found)
    return found, base_sha256


def _merged(folder: Path, base: Path | None) -> CausalLM:
    """The base model with the adapters of a folder."""
    settings = settings_of(folder)
    base = base or Path(settings["base_model_name_or_path"])
    found, expected = adapters(folder)
    if expected and base.is_dir() and (sha256 := fingerprint(base)) != expected:
        raise ModelError(f"{folder}: the adapters belong to the model {expected}, but the model in {base} is {sha256}")
    model = read_model(base)
    layers = {name.removesuffix(".weight"): p for name, p in model.model.layers.named_parameters("model.layers")}
    left, met = set(found), set[str]()
    for name in [name.removesuffix(".lora_A") for name in found if name.endswith(".lora_A")]:
        a, b, weight = found[f"{name}.lora_A"], found.get(f"{name}.lora_B"), layers.get(name)
        if b is not None and weight is not None and (len(b), *a.shape[::-1]) == (*weight.shape, b.shape[1]):
            scale = float(settings["lora_alpha"]) / (len(a) ** 0.5 if settings["use_rslora"] else len(a))
            weight.add_(scale * b.to(weight) @ a.to(weight))
            left -= {f"{name}.lora_A", f"{name}.lora_B"}
            met.add(name)
    named = () if settings.get("exclude_modules") else settings["target_modules"]
    there, used = ({n.split(".", i)[-1] for n in group for i in range(n.count(".") + 1)} for group in (layers, met))
    lost = () if isinstance(named, str) else set(named) & there - used  # a pattern is what it met
    if wrong := [*sorted(left), *sorted(lost)]:
        raise ModelError(f"{folder / WEIGHTS}: {wrong[0]!r} does not fit the attention and MLP matrices of {base}")
    return model


def base_of(folder: Path) -> Path:
    """The folder of the base model, for adapters; else the same folder."""
    adapted = (folder / CONFIG).is_file()
    return Path(settings_of(folder)["base_model_name_or_path"]) if adapted else folder


def settings_of(folder: Path) -> dict[str, Any]:
    """What adapter_config.json says, checked."""
    path, needed = folder / CONFIG, {"lora_alpha", "target_modules", "base_model_name_or_path"}
    settings = {"use_rslora": False} | _json(path, "the configuration of a LoRA adapter")
    for key, value in sorted(settings.items(), key=lambda item: item[0] != "peft_type"):
        if value and not (NEUTRAL.fullmatch(key) or value in NO_CHANGE.get(key, ())):
            raise ModelError(f"{path}: {key} = {value!r} changes the result and is not implemented")
    if absent := sorted(needed - settings.keys()):
        raise ModelError(f"{path}: has no {absent[0]!r}; expected the configuration of a LoRA adapter")
    return settings
