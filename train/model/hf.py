"""Read and write Hugging Face folders: config.json, model.safetensors (or its sharded index), tokenizer files.

Llama, Mistral, Qwen2, Qwen3 and Qwen3-MoE are one model with a few switches. An unknown key of config.json could change
the result, so it is refused by name unless it is empty. A model with options that none of these families has is written
with `model_type` "datakit" and its options under that key, so that no other reader loads it as another model.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from datakit.config import build, digest, sha256_file
from datakit.errors import ConfigError, ModelError
from train.model.decoder import CausalLM, ModelConfig, ModelOptions, without_removed
from train.model.experts import MoeConfig


@dataclass(frozen=True, slots=True)
class _Family:
    architecture: str
    qk_norm: bool
    qkv_bias: Callable[[dict[str, Any]], bool]
    output_bias: Callable[[dict[str, Any]], bool]
    experts: bool = False


def _configured(config: dict[str, Any]) -> bool:
    return bool(config.get("attention_bias", False))


FAMILIES = {
    "llama": _Family("LlamaForCausalLM", False, _configured, _configured),
    "mistral": _Family("MistralForCausalLM", False, lambda c: False, lambda c: False),
    "qwen2": _Family("Qwen2ForCausalLM", False, lambda c: True, lambda c: False),
    "qwen3": _Family("Qwen3ForCausalLM", True, _configured, _configured),
    "qwen3_moe": _Family("Qwen3MoeForCausalLM", True, _configured, _configured, experts=True),
}
OWN = "datakit"
"""The `model_type` of models without a Hugging Face architecture, and the key of their options."""
# fmt: off
READ = frozenset({
    "model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
    "head_dim", "attention_bias", "intermediate_size", "max_position_embeddings", "rope_theta", "rope_parameters",
    "rope_scaling", "rms_norm_eps", "tie_word_embeddings",
})
# fmt: on
"""Keys that set fields of ModelConfig."""
EXPERTS: dict[str, Any] = {
    "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768, "norm_topk_prob": False,
    "decoder_sparse_step": 1, "mlp_only_layers": None, "router_aux_loss_coef": 0.001,
}  # fmt: skip
"""Keys of a model with experts, with the defaults of transformers."""
# fmt: off
NEUTRAL = frozenset({
    "architectures", "bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "torch_dtype", "dtype",
    "transformers_version", "initializer_range", "use_cache", "_name_or_path", "max_window_layers",
    "attention_dropout", "output_attentions", "output_hidden_states", "return_dict", "id2label", "label2id",
    "problem_type", "is_encoder_decoder", "chunk_size_feed_forward", "_attn_implementation_autoset",
    "tokenizer_class", "bos_token", "eos_token", "num_labels", "output_router_logits",
})
# fmt: on
"""Keys that do not change the logits."""
REQUIRED = {
    "hidden_act": "silu",
    "mlp_bias": False,
    "pretraining_tp": 1,
    "partial_rotary_factor": 1.0,
    "use_sliding_window": False,
}
"""Keys that change the logits, with the only implemented value."""
AVERAGE = "ema.safetensors"
"""File of the averaged weights in a checkpoint."""
BESIDE = "beside."
"""Prefix of parameters that are trained with a model but do not belong to it; they are never exported."""


def config_from_hf(config: dict[str, Any], where: str) -> ModelConfig:
    """The model configuration of a config.json.

    Raises:
        ModelError: unknown model type, a missing size, a removed option, or a key that changes the result.
    """
    own = config.get(OWN, {}) if config.get("model_type") == OWN else None
    family = FAMILIES.get(config.get("model_type", "")) if own is None else _own_family(own)
    if family is None:
        raise ModelError(
            f"{where}: model_type {config.get('model_type')!r} is not supported; expected one of {', '.join(FAMILIES)}"
        )
    if family.experts and "num_local_experts" in config:  # the name in newer files
        config = {"num_experts": config["num_local_experts"]} | config
        del config["num_local_experts"]
    for key, value in config.items():
        if not (key == OWN and own is not None) and not (key in EXPERTS and family.experts):
            _check_key(key, value, config, where)
    try:
        return ModelConfig(
            vocab_size=config["vocab_size"],
            hidden_size=config["hidden_size"],
            num_layers=config["num_hidden_layers"],
            num_heads=config["num_attention_heads"],
            num_kv_heads=config.get("num_key_value_heads") or config["num_attention_heads"],
            head_dim=config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"],
            intermediate_size=config["intermediate_size"],
            max_positions=config.get("max_position_embeddings", 2048),
            rope_theta=_rope_theta(config, where),
            norm_eps=config.get("rms_norm_eps", 1e-6),
            qk_norm=family.qk_norm,
            qkv_bias=family.qkv_bias(config),
            output_bias=family.output_bias(config),
            tied_embeddings=config.get("tie_word_embeddings", False),
            moe=_experts(config) if family.experts else build(MoeConfig, (own or {}).get("moe", {}), where),
            options=build(ModelOptions, without_removed((own or {}).get("options", {}), where), where),
        )
    except KeyError as e:
        raise ModelError(f"{where}: the key {e} is missing") from None
    except ConfigError as e:
        raise ModelError(str(e)) from None


def _own_family(own: dict[str, Any]) -> _Family:
    qkv_bias, output_bias = bool(own.get("qkv_bias")), bool(own.get("output_bias"))
    return _Family(OWN, bool(own.get("qk_norm")), lambda c: qkv_bias, lambda c: output_bias)


def _experts(config: dict[str, Any]) -> MoeConfig:
    found = {key: config.get(key, default) for key, default in EXPERTS.items()}
    layers, every = range(config["num_hidden_layers"]), found["decoder_sparse_step"]
    dense = {i for i in layers if (i + 1) % every} | set(found["mlp_only_layers"] or ())
    return MoeConfig(
        num_experts=found["num_experts"],
        experts_per_token=found["num_experts_per_tok"],
        expert_size=found["moe_intermediate_size"],
        norm_topk=found["norm_topk_prob"],
        balance_weight=found["router_aux_loss_coef"],
        dense_layers=tuple(sorted(dense)),
    )


def _check_key(key: str, value: Any, config: dict[str, Any], where: str) -> None:
    if key in READ or key in NEUTRAL:
        return
    if key == "sliding_window":
        fits = value is None or config.get("use_sliding_window") is False
    elif key == "layer_types":
        fits = value is None or set(value) == {"full_attention"}
    elif key in REQUIRED:
        fits = value == REQUIRED[key]
    else:
        fits = value in (None, False, 0, "", [], {})
    if not fits:
        raise ModelError(f"{where}: {key} = {value!r} changes the result and is not implemented")


def _rope_theta(config: dict[str, Any], where: str) -> float:
    """The base of the rotary angles; newer configs store it in `rope_parameters`."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default" or set(rope) - {"rope_type", "type", "rope_theta"}:
        raise ModelError(f"{where}: rotary scaling {rope!r} changes the result and is not implemented")
    return float(rope.get("rope_theta", config.get("rope_theta", 10000.0)))


def foreign(c: ModelConfig) -> list[str]:
    """Options of a model that no Hugging Face architecture has, by name."""
    found = sorted(c.options.changed())
    if c.qkv_bias != c.output_bias and (c.qk_norm or c.output_bias or c.moe.num_experts):
        found.append("these attention biases")
    if c.moe.shared_expert_size:
        found.append("shared_expert_size")
    if c.moe.num_experts and not c.qk_norm:
        found.append("num_experts without qk_norm")
    return found


def config_to_hf(c: ModelConfig, special_ids: dict[str, int | None], own: bool = False) -> dict[str, Any]:
    """The config.json of a model; `special_ids` are `pad_token_id`, `eos_token_id`, `bos_token_id`.

    Raises:
        ModelError: no Hugging Face architecture has the model's options, and `own` is not set.
    """
    options = foreign(c)
    if options and not own:
        raise ModelError(
            f"no Hugging Face architecture has {', '.join(options)}: only our own layout can store this model"
        )
    kind = "qwen3_moe" if c.moe.num_experts else "qwen3" if c.qk_norm else "llama"
    kind = OWN if options else "qwen2" if c.qkv_bias != c.output_bias else kind
    plain: dict[str, Any] = {
        "architectures": [FAMILIES[kind].architecture if kind != OWN else "DatakitForCausalLM"],
        "model_type": kind,
        "vocab_size": c.vocab_size,
        "hidden_size": c.hidden_size,
        "num_hidden_layers": c.num_layers,
        "num_attention_heads": c.num_heads,
        "num_key_value_heads": c.num_kv_heads,
        "head_dim": c.head_dim,
        "intermediate_size": c.intermediate_size,
        "max_position_embeddings": c.max_positions,
        "rope_theta": c.rope_theta,
        "rms_norm_eps": c.norm_eps,
        "hidden_act": "silu",
        "tie_word_embeddings": c.tied_embeddings,
        "torch_dtype": "float32",
        "use_cache": True,
    }
    if kind == OWN:
        plain[OWN] = {"qk_norm": c.qk_norm, "qkv_bias": c.qkv_bias, "output_bias": c.output_bias}
        plain[OWN] |= {"moe": asdict(c.moe), "options": c.options.changed()}
    elif kind != "qwen2":
        plain["attention_bias"] = c.qkv_bias
    if kind == "qwen3_moe":
        plain |= _experts_to_hf(c)
    return plain | special_ids


def _experts_to_hf(c: ModelConfig) -> dict[str, Any]:
    m = c.moe
    values = (
        m.num_experts, m.experts_per_token, m.inner_size(c.intermediate_size), m.norm_topk, 1, list(m.dense_layers),
        m.balance_weight,
    )  # fmt: skip
    return dict(zip(EXPERTS, values, strict=True))


def read_model(folder: Path, device: torch.device | str = "cpu") -> CausalLM:
    """Read the model of a folder, with fp32 weights.

    Raises:
        ModelError: a file is missing or damaged, or the weights do not fit the configuration.
    """
    model = CausalLM(read_config(folder))
    expected = dict(model.named_parameters())
    found = dict(_read_weights(folder))
    if model.config.tied_embeddings:
        found.pop("lm_head.weight", None)
    wrong = sorted(expected.keys() ^ found.keys()) or [n for n, p in expected.items() if p.shape != found[n].shape]
    if wrong:
        shapes = [tuple(t[wrong[0]].shape) if wrong[0] in t else "no such tensor" for t in (expected, found)]
        raise ModelError(f"{folder}: tensor {wrong[0]!r}: expected {shapes[0]} by config.json, found {shapes[1]}")
    check_sound(folder, ("config.json", "model.safetensors"), found)
    with torch.no_grad():
        for name, parameter in expected.items():
            parameter.copy_(found[name])
    return model.to(device)


def check_sound(folder: Path, names: Sequence[str], tensors: Mapping[str, Tensor]) -> None:
    """Refuse weights with another checksum than in the checkpoint's state.json, and weights that are not finite.

    Raises:
        ModelError: naming the file, or the tensor.
    """
    try:
        saved = json.loads((folder / "state.json").read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):  # not one of our checkpoints
        saved = {}
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


def read_config(folder: Path) -> ModelConfig:
    """The configuration of a folder.

    Raises:
        ModelError: no readable config.json, or one that is not implemented.
    """
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        if (folder / "adapter_config.json").is_file():
            raise ModelError(f"{folder}: holds only LoRA adapters; merge them with train.merge first") from None
        raise ModelError(f"{path}: cannot read it ({e}); expected a folder with a Hugging Face model") from None
    return config_from_hf(config, str(path))


def _read_weights(folder: Path) -> Iterable[tuple[str, Tensor]]:
    """Every tensor of model.safetensors, or of the shards in its index."""
    index = folder / "model.safetensors.index.json"
    try:
        names = (
            {"model.safetensors"} if not index.is_file() else set(json.loads(index.read_bytes())["weight_map"].values())
        )
        for name in sorted(names):
            with safe_open(folder / Path(name).name, "pt") as f:
                yield from ((key, f.get_tensor(key)) for key in f.keys())  # noqa: SIM118
    except (OSError, ValueError, KeyError, SafetensorError) as e:
        raise ModelError(f"{folder}: cannot read the weights ({e}); expected model.safetensors") from None


@torch.no_grad()
def read_average(folder: Path, parameters: Mapping[str, Tensor]) -> None:
    """Copy the averaged weights of a checkpoint into a model's parameters.

    Raises:
        ModelError: the checkpoint has none.
    """
    if not (folder / AVERAGE).is_file():
        raise ModelError(f"{folder}: has no {AVERAGE}; train with --ema-decay to keep averaged weights")
    found = load_file(folder / AVERAGE)
    for name, parameter in parameters.items():
        parameter.copy_(found[name])


class Weights(Protocol):
    """Interface of a model to save."""

    @property
    def config(self) -> ModelConfig:
        """Its configuration."""
        ...

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Like `nn.Module.named_parameters`."""
        ...


def write_model(
    folder: Path,
    model: Weights,
    tokenizer_files: Iterable[Path],
    special_ids: dict[str, int | None],
    stop_ids: Sequence[int] = (),
    own: bool = False,
) -> None:
    """Write config.json, model.safetensors and copies of the tokenizer's files into an existing folder.

    `stop_ids` are the tokens that end an answer, if they differ from `eos_token_id`.

    Raises:
        ModelError: see `config_to_hf`.
    """
    config = json.dumps(config_to_hf(model.config, special_ids, own), indent=2) + "\n"
    (folder / "config.json").write_text(config, encoding="utf-8")
    ids: dict[str, Any] = {k: v for k, v in special_ids.items() if v is not None}
    if stop_ids and list(stop_ids) != [ids.get("eos_token_id")]:
        ids["eos_token_id"] = list(stop_ids)
    (folder / "generation_config.json").write_text(json.dumps(ids, indent=2) + "\n", encoding="utf-8")
    weights = {n: p.detach().cpu().contiguous() for n, p in model.named_parameters() if not n.startswith(BESIDE)}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    copy_files(tokenizer_files, folder)


def copy_files(files: Iterable[Path], folder: Path) -> None:
    """Copy files into a folder and keep their names."""
    for file in files:
        shutil.copyfile(file, folder / file.name)
