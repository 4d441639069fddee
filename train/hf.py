"""Hugging Face folders: config.json and what it means, and the writing of a folder; weights.py reads one.

All families are one decoder. `FAMILIES` is the table of their differences: fields of `ModelConfig` that are the same in
the whole family, keys of config.json that set a field, and names of tensors. A key that is neither there nor known to
change nothing is refused by name, unless it is empty.
"""

import contextlib
import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save_file

from datakit.errors import ConfigError, ModelError
from datakit.manifest import TOKENIZER_FILES
from train.config import MoeConfig
from train.model import CausalLM, ModelConfig
from train.rope import Rope, read_rope, scaling_of

if TYPE_CHECKING:
    from train.checkpoint import Snapshot

ACTIVATIONS = {"silu": "silu", "swish": "silu", "gelu_pytorch_tanh": "gelu_tanh", "relu2": "relu2"}
"""`hidden_act` of config.json -> `ModelConfig.activation`."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of config.json that sets a field of ModelConfig."""

    field: str
    default: Any
    """The value where the key is missing: that of transformers; `...`: there is none."""
    read: Callable[[Any], Any] = lambda value: value
    write: Callable[[Any], Any] = lambda value: value


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """How the models of one `model_type` differ from Llama."""

    architecture: str
    same: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ModelConfig, with the family's value."""
    keys: Mapping[str, Key] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Values of common keys, where config.json has none."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """The family's own names of common keys."""
    windows: int = 0
    """0: no windows; 1: every layer has one, if any; n: every layer but each n-th, unless `layer_types` says more."""
    experts: bool = False
    local_theta: float = 0.0
    """`rope_theta` of layers with a window, where they have rotary positions of their own."""


OWN = "datakit"
"""Our own `model_type`: options together that no architecture of transformers has. Only this trainer reads it."""
_ACTIVATION_NAMES = {ours: name for name, ours in reversed(ACTIVATIONS.items())}
COMMON = {
    "vocab_size": Key("vocab_size", ...), "hidden_size": Key("hidden_size", ...),
    "num_hidden_layers": Key("num_layers", ...), "num_attention_heads": Key("num_heads", ...),
    "num_key_value_heads": Key("num_kv_heads", ...), "head_dim": Key("head_dim", ...),
    "intermediate_size": Key("intermediate_size", ...), "max_position_embeddings": Key("max_positions", 2048),
    "rms_norm_eps": Key("norm_eps", 1e-6),
    "hidden_act": Key("activation", "silu", ACTIVATIONS.__getitem__, _ACTIVATION_NAMES.__getitem__),
    "tie_word_embeddings": Key("tied_embeddings", False), "torch_dtype": Key("dtype", "float32", str)}  # fmt: skip
"""Keys of every family."""
_BIASES = {"attention_bias": Key("qkv_bias", False, bool), "mlp_bias": Key("mlp_bias", False, bool)}
_ATTENTION_BIAS = {"attention_bias": _BIASES["attention_bias"]}
_SOFTCAP = {"final_logit_softcapping": Key("logit_softcap", 0.0, lambda v: float(v or 0), lambda v: v or None)}
_QUERY_SCALAR = Key("attention_scale", 256, lambda v: float(v) ** -0.5, lambda v: round(v**-2))
_OLMO = {"norm_at": "after", "qk_norm": True, "qk_norm_whole": True}
_EPS_1E5 = {"rms_norm_eps": 1e-5}
FAMILIES = {
    "llama": Family(architecture="LlamaForCausalLM", keys=_BIASES),
    "mistral": Family(architecture="MistralForCausalLM", windows=1, defaults={"sliding_window": 4096}),
    "qwen2": Family(architecture="Qwen2ForCausalLM", same={"qkv_bias": True}),
    "qwen3": Family(
        architecture="Qwen3ForCausalLM", same={"qk_norm": True}, keys=_ATTENTION_BIAS, defaults={"head_dim": 128}),
    "qwen3_moe": Family(
        architecture="Qwen3MoeForCausalLM", same={"qk_norm": True}, keys=_ATTENTION_BIAS, experts=True,
        renamed={"num_local_experts": "num_experts"}),
    "gemma3_text": Family(
        architecture="Gemma3ForCausalLM", windows=6, local_theta=1e4,
        same={"norm_at": "around", "norm_offset": 1.0, "activation": "gelu_tanh", "qk_norm": True},
        defaults={"head_dim": 256, "hidden_act": "gelu_pytorch_tanh", "sliding_window": 4096,
                  "tie_word_embeddings": True, "rms_norm_eps": 1e-6, "rope_theta": 1e6, "vocab_size": 262208,
                  "num_attention_heads": 8, "num_key_value_heads": 4, "max_position_embeddings": 131072},
        renamed={"hidden_activation": "hidden_act"},
        keys=_ATTENTION_BIAS | {"query_pre_attn_scalar": _QUERY_SCALAR} | _SOFTCAP),
    "olmo2": Family(architecture="Olmo2ForCausalLM", same=_OLMO, keys=_ATTENTION_BIAS, defaults=_EPS_1E5),
    "olmo3": Family(
        architecture="Olmo3ForCausalLM", same=_OLMO, keys=_ATTENTION_BIAS, windows=4, local_theta=5e5,
        defaults=_EPS_1E5 | {"rope_theta": 5e5, "sliding_window": 4096}),
    "smollm3": Family(
        architecture="SmolLM3ForCausalLM", keys=_BIASES, defaults={"rope_theta": 2e6, "tie_word_embeddings": True}),
    "granite": Family(
        architecture="GraniteForCausalLM",
        keys=_BIASES | {
            "embedding_multiplier": Key("embedding_scale", 1.0, float),
            "residual_multiplier": Key("residual_scale", 1.0, float),
            "attention_multiplier": Key("attention_scale", 1.0, float),
            "logits_scaling": Key("logit_divisor", 1.0, float)}),
    OWN: Family(
        architecture="DatakitForCausalLM", keys=_BIASES | {"use_qk_norm": Key("qk_norm", False, bool)} | _SOFTCAP),
}  # fmt: skip
TEXT_KEYS = ("dtype", "torch_dtype", "tie_word_embeddings", "quantization_config")
"""Keys of a model that reads images, too, which concern its text part."""
NULLABLE = ("sliding_window", "final_logit_softcapping")
"""Keys for which null is a value; for others it is as if they were missing."""
EXPERTS = {
    "num_experts": Key("num_experts", 128), "num_experts_per_tok": Key("experts_per_token", 8),
    "moe_intermediate_size": Key("expert_size", 768), "norm_topk_prob": Key("norm_topk", False),
    "router_aux_loss_coef": Key("balance_weight", 0.001)}  # fmt: skip
"""Keys of a model with experts, and the fields of MoeConfig that they set."""
NEUTRAL = re.compile(
    # names and versions; the tokenizer; training; generation; how transformers runs and what it puts out
    r"_.*|unsloth.*|transformers.*|architectures|auto_map|name|model_name|is_llama_config|task_specific_params|"
    r".*_token_id|(bos|eos|pad|unk|sep|cls)_token|tokenizer_.*|.*dropout.*|"
    r"n_ctx|max_sequence_length|sliding_window_size|id2label|label2id|num_labels|(repetition|length)_penalty|"
    r"max_window_layers|initializer_range|mup_.*|gradient_checkpointing|pretraining_tp|pruned_heads|finetuning_task|"
    r"problem_type|temperature|top_[kp]|typical_p|do_sample|num_(beams|beam_groups|return_sequences)|max_(length|new_tokens)|"
    r"use_cache|cache_implementation|attn_implementation|torchscript|is_encoder_decoder|return_dict|num_logits_to_keep|"
    r"output_(attentions|hidden_states|router_logits)|chunk_size_feed_forward"
)
"""Keys that do not change the logits: those of the base class of transformers' configurations, which no family's
mathematics reads, and notes of other programs in published folders. What is neither read nor here is refused."""
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
"""Dtypes of stored weights by their names in config.json."""


def config_from_hf(config: dict[str, Any], where: str) -> ModelConfig:
    """The model configuration of a config.json.

    Raises:
        ModelError: unknown model type, a missing size, or a key that changes the result.
    """
    if text := config.get("text_config"):  # the text part of a model that reads images, too (Gemma 3)
        config = {k: v for k, v in config.items() if k in TEXT_KEYS} | text
    kind = str(config.get("model_type", ""))
    if kind not in FAMILIES:
        raise ModelError(f"{where}: model_type {kind!r} is not supported; expected one of {', '.join(FAMILIES)}")
    family = FAMILIES[kind]
    renamed = dict(family.renamed) | {"dtype": "torch_dtype"}
    plain = {k: v for k, v in config.items() if v is not None or k in NULLABLE}
    left = dict(family.defaults) | {k: v for k, v in plain.items() if k not in renamed}
    left |= {renamed[k]: v for k, v in plain.items() if k in renamed}
    try:
        return _config(left, kind, family)
    except KeyError as e:
        raise ModelError(f"{where}: the key {e} is missing") from None
    except (ConfigError, ModelError) as e:
        raise ModelError(f"{where}: {e}") from None
    except (TypeError, ValueError, ArithmeticError, AttributeError, IndexError) as e:
        raise ModelError(f"{where}: a value has the wrong type or size ({e})") from None


def _unknown(key: str, value: Any) -> ModelError:
    return ModelError(f"{key} = {value!r} changes the result and is not implemented")


def _config(left: dict[str, Any], kind: str, family: Family) -> ModelConfig:
    """The configuration. Each key that is read is taken out of `left`; what stays there has to be neutral."""
    layers, heads, width = (left[k] for k in ("num_hidden_layers", "num_attention_heads", "hidden_size"))
    follow = {"num_key_value_heads": heads, "head_dim": width // max(1, heads), "intermediate_size": 4 * width}
    left |= {k: left.get(k) or v for k, v in follow.items()}
    if (act := left.get("hidden_act", "silu")) not in ACTIVATIONS:
        raise _unknown("hidden_act", act)
    longest = left.get("max_position_embeddings", 2048)
    values = dict(family.same)
    for name, key in (COMMON | dict(family.keys)).items():
        values[key.field] = key.read(left.pop(name) if key.default is ... else left.pop(name, key.default))
    if "attention_bias" in family.keys:
        values["output_bias"] = values["qkv_bias"]
    if kind == "gemma3_text":
        values["embedding_scale"] = width**0.5
    if kind == "smollm3":
        every, found = left.pop("no_rope_layer_interval", 4), left.pop("no_rope_layers", None)
        values["plain_layers"] = tuple(i for i in range(layers) if not (found[i] if found else (i + 1) % every))
    window, windowed = _windows(left, kind, family, layers)
    rope, window_rope = _ropes(left, family, longest)
    if family.experts:
        found = {key.field: left.pop(name, key.default) for name, key in EXPERTS.items()}
        every, plain = left.pop("decoder_sparse_step", 1), left.pop("mlp_only_layers", None) or ()
        found["dense_layers"] = tuple(sorted({i for i in range(layers) if (i + 1) % every} | set(plain)))
        values["moe"] = MoeConfig(**found)
    # the only implemented values of keys that change the logits; that of others is none, or false
    required = {"model_type": kind, "partial_rotary_factor": 1, "use_qk_norm": bool(family.same.get("qk_norm"))}
    for name, value in left.items():
        if value != required[name] if name in required else value and not NEUTRAL.fullmatch(name):
            raise _unknown(name, value)
    return ModelConfig(
        family=kind, rope=rope, window_rope=window_rope if windowed and window_rope != rope else None,
        window=window if windowed else 0, windowed_layers=windowed, **values)  # fmt: skip


def _windows(left: dict[str, Any], kind: str, family: Family, layers: int) -> tuple[int, tuple[int, ...]]:
    """The window, and the layers that have it."""
    if not family.windows:
        if set(left.get("layer_types") or ()) <= {"full_attention"}:
            left.pop("layer_types", None)
        if kind.startswith(("qwen", "smollm3")):
            left.pop("sliding_window", None)  # has an effect with use_sliding_window alone, which is refused
        return 0, ()
    window, types = left.pop("sliding_window", 0), left.pop("layer_types", None)
    patterns = left.pop("sliding_window_pattern", 0), left.pop("_sliding_window_pattern", 0)
    if not window:
        return 0, ()
    if types and family.windows > 1:
        if unknown := set(types) - {"full_attention", "sliding_attention"}:
            raise _unknown("layer_types", unknown.pop())
        return window, tuple(i for i, name in enumerate(types) if name == "sliding_attention")
    every = next(filter(None, patterns), family.windows)
    return window, tuple(i for i in range(layers) if every == 1 or (i + 1) % every)


def _ropes(left: dict[str, Any], family: Family, longest: int) -> tuple[Rope, Rope | None]:
    """The rotary positions of layers without and with a window; newer configs store them in `rope_parameters`."""
    newer, older = left.pop("rope_parameters", None), left.pop("rope_scaling", None)
    found = newer or older or {}
    nested = bool(found.keys() & {"full_attention", "sliding_attention"})
    if found and nested != bool(family.local_theta and newer):
        expected = "by kind of layer" if family.local_theta else "the same for all layers"
        raise ModelError(f"rope_parameters = {found} is not implemented; this family has one {expected}")
    theta = left.pop("rope_theta", 10000.0)
    whole = read_rope((found.get("full_attention") or {}) if nested else found, theta, longest)
    if not family.local_theta:
        return whole, None
    local = (found.get("sliding_attention") or {}) if nested else {}
    base = left.pop("rope_local_base_freq", family.local_theta)
    return whole, read_rope(local, base, longest)


def family_of(c: ModelConfig) -> str:
    """The family that expresses the model.

    Raises:
        ModelError: there is none.
    """
    for kind in dict.fromkeys((c.family, "llama", "qwen2", "qwen3", "qwen3_moe", OWN)):
        with contextlib.suppress(ModelError):
            again = config_from_hf(_written(c, kind), kind)
            if replace(again, moe=again.moe if c.moe.num_experts else c.moe) == c:
                return kind
    raise ModelError(f"no Hugging Face architecture has these options together: {c}")


def config_to_hf(c: ModelConfig, special_ids: dict[str, int | None]) -> dict[str, Any]:
    """The config.json of a model; `special_ids` are `pad_token_id`, `eos_token_id`, `bos_token_id`."""
    return _written(c, family_of(c)) | special_ids


def _written(c: ModelConfig, kind: str) -> dict[str, Any]:
    """The config.json of a model as one of this family."""
    family = FAMILIES[kind]
    plain: dict[str, Any] = {"architectures": [family.architecture], "model_type": kind}
    plain |= {name: key.write(getattr(c, key.field)) for name, key in COMMON.items()} | {"use_cache": True}
    plain |= {name: key.write(getattr(c, key.field)) for name, key in family.keys.items()}
    plain |= _ropes_written(c, family)
    plain |= {"sliding_window": c.window or None} if family.windows else {}
    if family.windows > 1:
        types = ("full_attention", "sliding_attention")
        plain["layer_types"] = [types[i in c.windowed_layers] for i in range(c.num_layers)]
    if kind == "smollm3":
        plain["no_rope_layers"] = [int(i not in c.plain_layers) for i in range(c.num_layers)]
    if family.experts:
        plain |= {name: getattr(c.moe, key.field) for name, key in EXPERTS.items()}
        plain |= {"decoder_sparse_step": 1, "mlp_only_layers": list(c.moe.dense_layers)}
    names = {common: theirs for theirs, common in family.renamed.items() if kind != "qwen3_moe"}
    return {names.get(name, name): value for name, value in plain.items()}


def _ropes_written(c: ModelConfig, family: Family) -> dict[str, Any]:
    """The keys of rotary positions, as older and newer programs read them."""
    plain: dict[str, Any] = {"rope_theta": c.rope.rope_theta}
    if scaling := scaling_of(c.rope):
        plain["rope_scaling"] = scaling
    if family.local_theta:
        local = c.window_rope or c.rope
        plain["rope_local_base_freq"] = local.rope_theta
        plain["rope_parameters"] = {
            name: {"rope_type": "default", "rope_theta": rope.rope_theta} | scaling_of(rope)
            for name, rope in (("full_attention", c.rope), ("sliding_attention", local))
        }
    return plain


BESIDE = "hidden_map."
"""What the names of parameters begin with that are trained with a model and are no part of it."""


def write_model(
    folder: Path, model: "CausalLM | Snapshot", tokenizer_files: Iterable[Path], special_ids: dict[str, int | None],
    stop_ids: Sequence[int] = (), dtype: torch.dtype | None = None,
) -> None:  # fmt: skip
    """Write config.json, model.safetensors and copies of the tokenizer's files into an existing folder.

    `stop_ids` are the tokens that end an answer, if they differ from `eos_token_id`; `dtype` is that of the files, by
    default that of the parameters. The keys of the base's generation_config.json are carried over.
    """
    config = config_to_hf(model.config, special_ids)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    generation = model.config.generation | {k: v for k, v in special_ids.items() if v is not None}
    if stop_ids and list(stop_ids) != [generation.get("eos_token_id")]:
        generation["eos_token_id"] = list(stop_ids)
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n", encoding="utf-8")
    own = {name: p for name, p in model.named_parameters() if not name.startswith(BESIDE)}
    weights = {name: p.detach().to("cpu", dtype or p.dtype).contiguous() for name, p in own.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)  # safetensors writes files that only the owner can read
    copy_files(tokenizer_files, folder)


def tokenizer_files(*folders: Path) -> list[Path]:
    """The files of a tokenizer, each in the first folder that has it; with those that only other programs read."""
    names = (*TOKENIZER_FILES, "tokenizer.model")
    places = (next((f / name for f in folders if (f / name).is_file()), None) for name in names)
    return [place for place in places if place]


def copy_files(files: Iterable[Path], folder: Path) -> None:
    """Copy files into a folder under their names, readable by others."""
    for file in files:
        shutil.copyfile(file, folder / file.name)
        (folder / file.name).chmod(0o644)
