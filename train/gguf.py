"""Write a model as one GGUF file, which llama.cpp, Ollama and LM Studio read: sizes, tokenizer, chat template, weights.

The package `gguf` names the tensors. `ARCHITECTURES` has what llama.cpp does otherwise than Hugging Face, and what it
takes for granted: a model that it would run wrongly is refused by name.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from datakit.errors import MissingExtraError, ModelError
from datakit.pack.chat import ChatTokenizer
from train import hf
from train.attention import enlarged, frequencies
from train.model import CausalLM, ModelConfig


@dataclass(frozen=True, slots=True)
class Architecture:
    """How llama.cpp runs a family."""

    name: str
    paired: bool = False
    """Values that are rotated together are neighbours; in Hugging Face folders they are half a head apart."""
    period: int = 0
    """Every n-th layer has no window; 0: it has no windows."""
    plain_period: int = 0
    """Every n-th layer has no rotary positions."""
    biases: str = ""
    """Fields of ModelConfig with biases that it reads."""
    wide_at: int = 0
    """Gemmas with this number of layers divide scores by the root of width / heads, the others by that of the head."""


_ANY = "qkv_bias output_bias mlp_bias"
ARCHITECTURES = {
    "llama": Architecture("llama", paired=True, biases=_ANY),
    "mistral": Architecture("llama", paired=True, biases=_ANY),
    "smollm3": Architecture("smollm3", paired=True, plain_period=4),
    "granite": Architecture("granite", paired=True, biases=_ANY),
    "qwen2": Architecture("qwen2", biases="qkv_bias"), "qwen3": Architecture("qwen3"),
    "qwen3_moe": Architecture("qwen3moe"), "gemma2": Architecture("gemma2", period=2, wide_at=46),
    "gemma3_text": Architecture("gemma3", period=6, wide_at=62), "phi3": Architecture("phi3"),
    "olmo2": Architecture("olmo2"), "olmo3": Architecture("olmo2", period=4), "gpt2": Architecture("gpt2", biases=_ANY),
}  # fmt: skip
"""By `model_type` of config.json."""
FILE_TYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
NUMBERS = {"F32": 0, "F16": 1, "BF16": 32}
"""`general.file_type` by the type of the matrices."""
PRE_TOKENIZERS = {
    r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+": "qwen2",
    r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+": "llama-bpe",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+": "gpt-4o",
}
"""Part of the pattern that cuts text into words -> llama.cpp's name of the pattern."""
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""Kinds of tokens."""


def write(
    path: Path, model: CausalLM, tokenizer: ChatTokenizer, stop_ids: list[int], dtype: torch.dtype, chat: bool = True
) -> list[str]:
    """Write the file, with matrices of `dtype`, and with the chat template if `chat` is set; returns warnings.

    Raises:
        MissingExtraError: the package `gguf` is not installed.
        ModelError: llama.cpp does not run such a model, or would run it wrongly.
    """
    try:
        gguf = import_module("gguf")
    except ImportError:
        raise MissingExtraError("GGUF files need the package gguf: pip install 'datakit[gguf]'") from None
    c, warnings = model.config, list[str]()
    kind = hf.family_of(c)
    if wrong := _beyond(c, ARCHITECTURES[kind]) if kind in ARCHITECTURES else kind:
        raise ModelError(f"cannot write this model as GGUF: its form here does not know {wrong}: use --to hf")
    arch, context = ARCHITECTURES[kind], c.max_positions
    if c.windowed_layers and not arch.period and c.window < context:
        context = c.window
        warnings.append(f"llama.cpp has no windows here, so the context is cut to the window of {context:,} tokens")
    writer = gguf.GGUFWriter(path, arch.name)

    def add(name: str, value: Any) -> None:
        types = {str: "STRING", bool: "BOOL", int: "UINT32", float: "FLOAT32", list: "ARRAY"}
        writer.add_key_value(name, value, gguf.GGUFValueType[types[type(value)]])

    for name, value in _sizes(c, arch, context):
        add(f"{arch.name}.{name}", value)
    add("general.file_type", NUMBERS[FILE_TYPES[dtype]])
    for name, value in _tokenizer(tokenizer, c.vocab_size, stop_ids, warnings):
        add(f"tokenizer.{name}", value)
    if chat:
        add("tokenizer.chat_template", tokenizer.template_source)
    names = gguf.get_tensor_name_map({v: k for k, v in gguf.MODEL_ARCH_NAMES.items()}[arch.name], c.num_layers)
    for name, tensor in _tensors(model, kind, arch):
        part, dot, what = name.rpartition(".")
        full = f"{names.get_name(part) or part}{dot}{what}"
        small = tensor.ndim == 1 or part.endswith(("mlp.gate", "transformer.wpe"))
        stored = gguf.GGMLQuantizationType["F32" if small else FILE_TYPES[dtype]]
        writer.add_tensor(full, gguf.quants.quantize(tensor.float().contiguous().numpy(), stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    path.chmod(0o644)
    return warnings


def _beyond(c: ModelConfig, arch: Architecture) -> str:
    """What llama.cpp does not know of a model; empty if it knows all."""
    layers, rope = range(c.num_layers), c.rope
    if c.plain_layers != tuple(i for i in layers if arch.plain_period and (i + 1) % arch.plain_period == 0):
        return f"its layers without rotary positions, {c.plain_layers}"
    if arch.period and not (c.windowed_layers and _period(c, arch)):
        return f"its layers with a window, {c.windowed_layers}"
    if arch.name == "gemma2" and not (c.attention_softcap and c.logit_softcap):
        return "a Gemma 2 without soft caps"
    if c.moe.num_experts and (c.moe.dense_layers or not c.moe.norm_topk):
        return "layers without experts beside others, or norm_topk_prob false"
    if found := [n for n in _ANY.split() if getattr(c, n) and n not in arch.biases]:
        return f"{found[0]} in {arch.name}"
    local = c.window_rope or rope
    reads = {"llama3": ("llama",), "longrope": ("phi3",)}.get(rope.rope_type, (arch.name,))
    apart = local.rope_theta != rope.rope_theta and arch.name != "gemma3"
    if arch.name not in reads or not rope.truncate or apart or (c.window_rope and local.rope_type != "default"):
        return f"these rotary positions ({rope.rope_type}) in {arch.name}"
    return ""


def _period(c: ModelConfig, arch: Architecture) -> int:
    """Every n-th layer has no window; 0 if that does not describe the layers, or llama.cpp has another n."""
    periods: list[int] = [arch.period, *(range(2, 1 + c.num_layers) if arch.name == "gemma3" else ())]
    for n in periods:
        if c.windowed_layers == tuple(i for i in range(c.num_layers) if (i + 1) % n):
            return n
    return 0


def _sizes(c: ModelConfig, arch: Architecture, context: int) -> Iterator[tuple[str, Any]]:
    """Keys of the architecture."""
    yield from {
        "vocab_size": c.vocab_size, "context_length": context, "embedding_length": c.hidden_size,
        "block_count": c.num_layers, "feed_forward_length": c.intermediate_size, "attention.head_count": c.num_heads,
        "attention.head_count_kv": c.num_kv_heads, "attention.key_length": c.head_dim,
        "attention.value_length": c.head_dim,
        f"attention.layer_norm_{'rms_' if c.norm == 'rms' else ''}epsilon": float(c.norm_eps),
    }.items()  # fmt: skip
    if c.moe.num_experts:
        yield "expert_count", c.moe.num_experts
        yield "expert_used_count", c.moe.experts_per_token
        yield "expert_feed_forward_length", c.moe.inner_size(c.intermediate_size)
    if arch.period:
        yield "attention.sliding_window", c.window
        if (n := _period(c, arch)) != arch.period:
            yield "attention.sliding_window_pattern", n
    if c.attention_softcap:
        yield "attn_logit_softcapping", float(c.attention_softcap)
    if c.logit_softcap:
        yield "final_logit_softcapping", float(c.logit_softcap)
    if arch.name == "granite":
        yield "embedding_scale", float(c.embedding_scale)
        yield "residual_scale", float(c.residual_scale)
        yield "attention.scale", float(c.attention_scale or c.head_dim**-0.5)
        yield "logit_scale", float(c.logit_divisor)
    if not c.learned_positions:
        yield "rope.dimension_count", c.rope.width(c.head_dim)
        yield "rope.freq_base", float(c.rope.rope_theta)
        if arch.period:
            yield "rope.freq_base_swa", float((c.window_rope or c.rope).rope_theta)
        yield from _scaling(c)


def _scaling(c: ModelConfig) -> Iterator[tuple[str, Any]]:
    """Keys of the scaling of rotary positions; those of `llama3` are a tensor."""
    r = c.rope
    if r.rope_type in ("linear", "yarn"):
        yield "rope.scaling.type", r.rope_type
        yield "rope.scaling.factor", float(r.factor)
    if r.rope_type in ("yarn", "longrope"):
        yield "rope.scaling.original_context_length", r.original_max_position_embeddings
        usual = enlarged("yarn", r.factor, r.original_max_position_embeddings, {}) if r.rope_type == "yarn" else 1.0
        yield "rope.scaling.attn_factor", r.attention_factor / usual
    if r.rope_type == "yarn":
        yield "rope.scaling.yarn_beta_fast", float(r.beta_fast)
        yield "rope.scaling.yarn_beta_slow", float(r.beta_slow)


def _tensors(model: CausalLM, kind: str, arch: Architecture) -> Iterator[tuple[str, Tensor]]:
    """The tensors as llama.cpp wants their values, under the names of the family's files."""
    c, experts = model.config, dict[str, list[Tensor]]()
    for name, found in hf.file_tensors(dict(model.named_parameters()), kind, torch.float32).items():
        tensor = found.T if (pattern := hf.FAMILIES[kind].transposed) and re.search(pattern, name) else found
        if c.norm_offset and "norm" in name:
            tensor = tensor + c.norm_offset
        if arch.wide_at and f".q_{'norm' if c.qk_norm else 'proj'}." in name:
            own = c.num_layers == arch.wide_at
            tensor = tensor * (c.attention_scale * (c.hidden_size / c.num_heads if own else c.head_dim) ** 0.5)
        if arch.paired and (side := re.search(r"\.([qk])_proj\.", name)):
            heads = c.num_heads if side[1] == "q" else c.num_kv_heads
            tensor = tensor.view(heads, 2, -1, *tensor.shape[1:]).transpose(1, 2).reshape(tensor.shape)
        together = re.sub(r"\.experts\.\d+\.", ".experts.", name)
        if together == name:
            yield name, tensor
            continue
        experts.setdefault(together, []).append(tensor)
        if len(experts[together]) == c.moe.num_experts:
            yield together, torch.stack(experts.pop(together))
    if c.rope.rope_type == "llama3":
        plain = c.rope.rope_theta ** -(torch.arange(0, c.head_dim, 2, dtype=torch.float32) / c.head_dim)
        yield "rope_freqs.weight", plain / frequencies(c.rope, c.head_dim, plain.device)
    if c.rope.rope_type == "longrope":
        yield "rope_factors_long.weight", torch.tensor(c.rope.long_factor)
        yield "rope_factors_short.weight", torch.tensor(c.rope.short_factor)


def _tokenizer(
    tokenizer: ChatTokenizer, vocab_size: int, stop_ids: list[int], warnings: list[str]
) -> Iterator[tuple[str, Any]]:
    """Keys of the tokenizer: BPE over bytes as `gpt2`, BPE like that of SentencePiece as `llama`, Unigram as `t5`."""
    spec = json.loads(tokenizer.definition)
    model, pre = spec["model"], spec.get("pre_tokenizer") or {}
    merges = [m if isinstance(m, str) else " ".join(m) for m in model.get("merges") or ()]
    by_bytes = model["type"] == "BPE" and "ByteLevel" in json.dumps(pre)
    tokens = [tokenizer.token(i) for i in range(vocab_size)]
    kinds = [_kind(tokenizer, token, model.get("unk_token"), by_bytes) for token in tokens]
    yield "ggml.model", "gpt2" if by_bytes else "llama" if model["type"] == "BPE" else "t5"
    yield "ggml.tokens", [f"[PAD{i}]" if token is None else token for i, token in enumerate(tokens)]
    yield "ggml.token_type", kinds
    if by_bytes:
        yield "ggml.merges", merges
        yield "ggml.pre", (name := _pre_tokenizer(pre))
        if name == "default":
            warnings.append("this pre-tokenizer is unknown, so llama.cpp may cut text into other tokens")
    else:
        ranks: dict[str, float] = {}
        for rank, merge in enumerate(merges):
            ranks.setdefault(merge.replace(" ", ""), -float(rank))
        ranks |= {token: float(score) for token, score in model["vocab"]} if model["type"] == "Unigram" else {}
        yield "ggml.scores", [ranks.get(token or "", -1e9) for token in tokens]
        prefix = re.compile(r'"Prepend"|"prepend_scheme": "(first|always)"')
        yield "ggml.add_space_prefix", bool(prefix.search(json.dumps([spec.get("normalizer"), pre])))
    yield "ggml.add_bos_token", tokenizer.adds_bos
    turn_end = next((i for i in stop_ids if i != tokenizer.eos_id), None)
    ids = {"bos": tokenizer.bos_id, "eos": tokenizer.eos_id, "eot": turn_end, "padding": tokenizer.pad_id}
    yield from ((f"ggml.{name}_token_id", i) for name, i in ids.items() if i is not None)


def _kind(tokenizer: ChatTokenizer, token: str | None, unknown: str | None, by_bytes: bool) -> int:
    if token is None:
        return UNUSED
    if token == unknown:
        return UNKNOWN
    if token in tokenizer.added:
        return CONTROL if token in tokenizer.special else USER_DEFINED
    return BYTE if not by_bytes and re.fullmatch(r"<0x[0-9A-F]{2}>", token) else NORMAL


def _pre_tokenizer(pre: dict[str, Any]) -> str:
    """llama.cpp's name for how text is cut into words; `default` if it has none."""
    steps = pre.get("pretokenizers") or [pre]
    kinds = [step["type"] for step in steps]
    if kinds == ["ByteLevel"] and steps[0].get("use_regex", True):
        return "gpt-2"
    if kinds == ["Digits", "ByteLevel"] and steps[0]["individual_digits"]:
        return "smollm"
    pattern = (steps[0].get("pattern") or {}).get("Regex", "")
    return next((name for part, name in PRE_TOKENIZERS.items() if part in pattern), "default")
