"""Write a model for other programs, adapters merged: a Hugging Face folder, a GGUF file, or that with a Modelfile.

    python -m train.export --model out/run --output mymodel --to gguf
    python -m train.export --model out/run --average 3 --output averaged

GGUF (for llama.cpp, Ollama, LM Studio) is written here for models as this trainer makes them, with tokenizers that no
other converter knows; the package `gguf` names the tensors. Other families, scaled rotary positions and SentencePiece's
tokenizers go through llama.cpp's own converter, from a Hugging Face folder.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from datakit.config import option
from datakit.errors import InputError, MissingExtraError, ModelError, UsageError
from datakit.pack.chat import ChatTokenizer, RenderError
from train import checkpoint, flags, hf, lora
from train.generate import load
from train.model import CausalLM, ModelConfig
from train.serve.batching import stop_ids_of

DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportConfig:
    """What to export, and where."""

    model: str = option("out/run", "checkpoint, adapters, Hugging Face folder, or a run for its newest checkpoint")
    output: str = option("", "folder to write")
    to: Literal["hf", "gguf", "ollama"] = option("hf", "hf: Hugging Face; gguf: for llama.cpp; ollama: and a Modelfile")
    average: int = option(0, "mean of the weights of this many newest checkpoints of a run; 0: its newest one alone")
    base: str = option("", "folder of the base model of adapters, if it has moved")
    tokenizer: str = option("", "tokenizer.json or its folder, if it is not in the folder of the model")
    export_dtype: Literal["base", "fp32", "bf16", "fp16"] = option(
        "base", "dtype of the weights; base: the one that config.json of the model named at the start of its training"
    )

    def __post_init__(self) -> None:
        if not self.output or self.average < 0:
            raise UsageError("name a folder with --output; --average must be 0 or more")


def export(config: ExportConfig) -> Path:
    """Write the folder; returns it.

    Raises:
        ModelError: no model there, or the other program cannot run it or use its template.
        InputError: the output folder is not empty.
    """
    out = Path(config.output)
    if out.exists() and any(out.iterdir()):
        raise InputError(f"{out}: is not empty; name another --output")
    model, tokenizer, state = load(config.model, config.tokenizer, config.base)
    if config.average:
        average(model, config)
    plain, stops = state.get("task") == "pretrain", sorted(state.get("stop_ids", stop_ids_of(model, tokenizer)))
    text = modelfile(tokenizer, model.config.max_positions, plain) if config.to == "ollama" else ""
    name = model.config.dtype if config.export_dtype == "base" else DTYPES[config.export_dtype]
    if name not in hf.DTYPES:
        raise ModelError(f"dtype {name!r}: expected one of {', '.join(hf.DTYPES)} with --export-dtype")
    model.config = replace(model.config, dtype=name)
    if hf.family_of(c := model.config) == hf.OWN:
        together = f"logit_softcap {c.logit_softcap}, activation {c.activation}, qk_norm {c.qk_norm}"
        raise ModelError(f"{config.model}: no model of transformers has these options together: {together}")
    out.mkdir(parents=True, exist_ok=True)
    if config.to == "hf":
        ids = {"pad_token_id": tokenizer.pad_id, "eos_token_id": tokenizer.eos_id, "bos_token_id": tokenizer.bos_id}
        hf.write_model(out, model, hf.tokenizer_files(Path(tokenizer.where).parent), ids, stops, dtype=hf.DTYPES[name])
    else:
        write_gguf(out / "model.gguf", model, tokenizer, stops, hf.DTYPES[name], chat=not plain)
    if text:
        (out / "Modelfile").write_text(text, encoding="utf-8")
    return out


@torch.no_grad()
def average(model: CausalLM, config: ExportConfig) -> None:
    """Make the newest checkpoint the mean of the newest ones (Izmailov et al., 2018); two are in memory at a time.

    Raises:
        InputError: the run has fewer checkpoints.
    """
    folders = checkpoint.steps(Path(config.model) / "checkpoints")[: config.average]
    if len(folders) < config.average:
        keep = f"--average wants {config.average}: keep more with --keep-checkpoints"
        raise InputError(f"{config.model}: has {len(folders)} checkpoints, and {keep}")
    for number, folder in enumerate(folders[1:], start=2):
        other = dict(lora.read(folder, Path(config.base) if config.base else None).named_parameters())
        for name, parameter in model.named_parameters():
            parameter.lerp_(other[name], 1 / number)


def modelfile(tokenizer: ChatTokenizer, context: int, plain: bool = False) -> str:
    """A Modelfile for the folder in which it lies.

    Raises:
        ModelError: the chat template does more than put text around turns, which Ollama's form cannot say.
    """
    template = "{{ .Prompt }}" if plain else ollama_template(tokenizer)
    if '"""' in template:
        raise ModelError(f'{tokenizer.where}: the chat template holds """, which ends one of a Modelfile; use --to hf')
    stops = [text for text in map(tokenizer.token, tokenizer.stop_ids()) if text is not None]
    lines = ["FROM ./model.gguf", f'TEMPLATE """{template}"""', f"PARAMETER num_ctx {context}"]
    return "\n".join([*lines, *(f"PARAMETER stop {json.dumps(s, ensure_ascii=False)}" for s in stops)]) + "\n"


def ollama_template(tokenizer: ChatTokenizer) -> str:
    """The chat template in the form of Ollama, found by rendering probes: the text before, between and after turns.

    Raises:
        ModelError: longer conversations are not made of the same pieces.
    """
    roles = ("system", *("user", "assistant") * 2, "user")
    turns = [{"role": role, "content": f"<<{at}>>"} for at, role in enumerate(roles)]
    try:
        begin, after_system, *pieces = _pieces(tokenizer, turns)
        alone, *bare = _pieces(tokenizer, turns[1:])
    except RenderError as e:
        raise ModelError(f"{tokenizer.where}: the chat template refuses a plain conversation ({e})") from None
    after_user, after_answer = pieces[:2]
    if not pieces == bare == [after_user, after_answer] * 2 + [after_user]:
        does = "the chat template does more than put text around turns, which Ollama's form cannot say"
        raise ModelError(f"{tokenizer.where}: {does}; use --to hf, and python -m train.serve to chat")
    begin, after_system, after_user, after_answer, alone = (
        text.replace("{{", '{{ "{{" }}') for text in (begin, after_system, after_user, after_answer, alone)
    )
    return (
        f"{{{{ if .System }}}}{begin}{{{{ .System }}}}{after_system}{{{{ else }}}}{alone}{{{{ end }}}}"
        f'{{{{ range .Messages }}}}{{{{ if eq .Role "user" }}}}{{{{ .Content }}}}{after_user}'
        f'{{{{ else if eq .Role "assistant" }}}}{{{{ .Content }}}}{after_answer}{{{{ end }}}}{{{{ end }}}}'
    )


def _pieces(tokenizer: ChatTokenizer, turns: Sequence[dict[str, Any]]) -> list[str]:
    """The text before the first turn's content, between contents, and after the last."""
    text = tokenizer.render(turns, add_generation_prompt=True).text
    if re.findall(r"<<\d>>", text) != [turn["content"] for turn in turns]:
        raise RenderError("the text does not have the content of each turn once, in order")
    return re.split(r"<<\d>>", text)


ARCHITECTURES = {"llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}
"""llama.cpp's names of the families that are written here."""
FILE_TYPES = {torch.float32: ("F32", 0), torch.float16: ("F16", 1), torch.bfloat16: ("BF16", 32)}
"""Type of the matrices, and `general.file_type`."""
PRE_TOKENIZERS = {
    r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+": "qwen2",
    r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+": "llama-bpe",
}
"""Part of the pattern that cuts text into words -> llama.cpp's name of the pattern."""
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5
"""Kinds of tokens."""


def write_gguf(
    path: Path, model: CausalLM, tokenizer: ChatTokenizer, stop_ids: list[int], dtype: torch.dtype, chat: bool = True
) -> None:
    """Write the file, with matrices of `dtype`, and with the chat template if `chat` is set.

    Raises:
        ModelError: llama.cpp would run this model otherwise, or it is not one that is written here.
        MissingExtraError: the package gguf is not installed.
    """
    try:
        gguf: Any = import_module("gguf")
    except ModuleNotFoundError:
        raise MissingExtraError("GGUF needs the package gguf: pip install 'datakit[gguf]'") from None
    c, kind = model.config, hf.family_of(model.config)
    name = ARCHITECTURES.get(kind, "")
    if wrong := _beyond(c, name, tokenizer) if name else f"the family {kind}":
        converter = "use --to hf, then llama.cpp's convert_hf_to_gguf.py on the folder"
        raise ModelError(f"{wrong} is not written as GGUF here: {converter}")
    file_type, number = FILE_TYPES[dtype]
    writer = gguf.GGUFWriter(path, name)
    types = {str: "STRING", bool: "BOOL", int: "UINT32", float: "FLOAT32", list: "ARRAY"}
    keys = {"general.file_type": number} | {f"{name}.{key}": value for key, value in _sizes(c).items()}
    keys |= {f"tokenizer.{key}": value for key, value in _vocabulary(tokenizer, c.vocab_size, stop_ids).items()}
    keys |= {"tokenizer.chat_template": tokenizer.template_source} if chat else {}
    for key, value in keys.items():
        writer.add_key_value(key, value, gguf.GGUFValueType[types[type(value)]])
    names = gguf.get_tensor_name_map({v: k for k, v in gguf.MODEL_ARCH_NAMES.items()}[name], c.num_layers)
    for ours, tensor in _tensors(model, name):
        part, dot, what = ours.rpartition(".")
        stored = gguf.GGMLQuantizationType["F32" if tensor.ndim == 1 else file_type]
        values = gguf.quants.quantize(tensor.contiguous().numpy(), stored)
        writer.add_tensor(f"{names.get_name(part) or part}{dot}{what}", values, raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    path.chmod(0o644)


def _beyond(c: ModelConfig, name: str, tokenizer: ChatTokenizer) -> str:
    """What llama.cpp's architecture of this name would compute otherwise, or what is not written; empty if nothing."""
    spec = json.loads(tokenizer.definition)
    known = {"llama": ("qkv_bias", "output_bias", "mlp_bias"), "qwen2": ("qkv_bias",)}.get(name, ())
    found: dict[str, Any] = {
        f"{bias} in {name}": getattr(c, bias) and bias not in known for bias in ("qkv_bias", "output_bias", "mlp_bias")
    } | {
        f"a window of {c.window}": c.windowed_layers,
        f"the activation {c.activation}": c.activation != "silu",
        f"the rotary scaling {c.rope.rope_type}": c.rope.rope_type != "default",
        "a tokenizer that is no BPE over bytes":
            spec["model"]["type"] != "BPE" or "ByteLevel" not in json.dumps(spec.get("pre_tokenizer")),
    }  # fmt: skip
    return next((what for what, there in found.items() if there), "")


def _sizes(c: ModelConfig) -> dict[str, Any]:
    """Keys of the architecture."""
    return {
        "vocab_size": c.vocab_size, "context_length": c.max_positions, "embedding_length": c.hidden_size,
        "block_count": c.num_layers, "feed_forward_length": c.intermediate_size, "attention.head_count": c.num_heads,
        "attention.head_count_kv": c.num_kv_heads, "attention.key_length": c.head_dim,
        "attention.value_length": c.head_dim, "attention.layer_norm_rms_epsilon": float(c.norm_eps),
        "rope.dimension_count": c.head_dim, "rope.freq_base": float(c.rope.rope_theta),
    }  # fmt: skip


def _tensors(model: CausalLM, name: str) -> Iterator[tuple[str, Tensor]]:
    """The tensors in fp32 as llama.cpp wants their values."""
    c = model.config
    for ours, parameter in model.named_parameters():
        tensor = parameter.detach().float()
        # values that llama.cpp's `llama` rotates together are neighbours; here they are half a head apart
        if name == "llama" and (side := re.search(r"\.([qk])_proj\.", ours)):
            heads = c.num_heads if side[1] == "q" else c.num_kv_heads
            tensor = tensor.view(heads, 2, -1, *tensor.shape[1:]).transpose(1, 2).reshape(tensor.shape)
        yield ours, tensor


def _vocabulary(tokenizer: ChatTokenizer, vocab_size: int, stop_ids: list[int]) -> dict[str, Any]:
    """Keys of the tokenizer, a BPE over bytes."""
    spec = json.loads(tokenizer.definition)
    tokens = [tokenizer.token(i) for i in range(vocab_size)]
    kinds: dict[str | None, int] = {None: UNUSED}
    kinds |= {token: CONTROL if token in tokenizer.special else USER_DEFINED for token in tokenizer.added}
    found: dict[str, Any] = {
        "ggml.model": "gpt2", "ggml.add_bos_token": tokenizer.adds_bos,
        "ggml.tokens": [f"[PAD{i}]" if token is None else token for i, token in enumerate(tokens)],
        "ggml.token_type": [kinds.get(token, NORMAL) for token in tokens],
        "ggml.merges": [m if isinstance(m, str) else " ".join(m) for m in spec["model"].get("merges") or ()],
        "ggml.pre": _pre_tokenizer(spec["pre_tokenizer"]),
    }  # fmt: skip
    if found["ggml.pre"] == "default":
        print("[train] note: this pre-tokenizer is unknown, so llama.cpp may cut text into other tokens")
    turn_end = next((i for i in stop_ids if i != tokenizer.eos_id), None)
    ids = {"bos": tokenizer.bos_id, "eos": tokenizer.eos_id, "eot": turn_end, "padding": tokenizer.pad_id}
    return found | {f"ggml.{name}_token_id": i for name, i in ids.items() if i is not None}


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


def main(argv: Sequence[str], prog: str = "python -m train.export") -> int:
    """Export; returns the exit code."""
    config = flags.built(ExportConfig, flags.given(ExportConfig, prog, __doc__, argv))
    out = export(config)
    print(f"[train] wrote {out}")
    if config.to == "gguf":
        print(f"[train] next: llama-cli --model {out / 'model.gguf'}")
    elif config.to == "ollama":
        print(f"[train] next: ollama create {out.resolve().name} -f {out / 'Modelfile'}")
    return 0


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
