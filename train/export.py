"""Write a model as a Hugging Face folder for other programs, with adapters merged.

    python -m train.export --model out/run --output mymodel

llama.cpp's `convert_hf_to_gguf.py` makes GGUF files of such a folder, for llama.cpp, Ollama and LM Studio.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from datakit.config import option
from datakit.errors import InputError, ModelError, UsageError
from train import flags, hf
from train.generate import load
from train.serve.batching import stop_ids_of

DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportConfig:
    """What to export, and where."""

    model: str = option("out/run", "checkpoint, adapters, Hugging Face folder, or a run for its newest checkpoint")
    output: str = option("", "folder to write")
    base: str = option("", "folder of the base model of adapters, if it has moved")
    tokenizer: str = option("", "tokenizer.json or its folder, if it is not in the folder of the model")
    export_dtype: Literal["base", "fp32", "bf16", "fp16"] = option("base", "dtype of the files; base: the base model's")

    def __post_init__(self) -> None:
        if not self.output:
            raise UsageError("name a folder with --output")


def export(config: ExportConfig) -> Path:
    """Write the folder; returns it.

    Raises:
        ModelError: no model there, or no model of transformers has its options.
        InputError: the output folder is not empty.
    """
    out = Path(config.output)
    if out.exists() and any(out.iterdir()):
        raise InputError(f"{out}: is not empty; name another --output")
    model, tokenizer, state = load(config.model, config.tokenizer, config.base)
    stops = sorted(state.get("stop_ids", stop_ids_of(model, tokenizer)))
    name = model.config.dtype if config.export_dtype == "base" else DTYPES[config.export_dtype]
    if name not in hf.DTYPES:
        raise ModelError(f"dtype {name!r}: expected one of {', '.join(hf.DTYPES)} with --export-dtype")
    model.config = replace(model.config, dtype=name)
    if hf.family_of(c := model.config) == hf.OWN:
        together = f"logit_softcap {c.logit_softcap}, activation {c.activation}, qk_norm {c.qk_norm}"
        raise ModelError(f"{config.model}: no model of transformers has these options together: {together}")
    out.mkdir(parents=True, exist_ok=True)
    ids = {"pad_token_id": tokenizer.pad_id, "eos_token_id": tokenizer.eos_id, "bos_token_id": tokenizer.bos_id}
    hf.write_model(out, model, hf.tokenizer_files(Path(tokenizer.where).parent), ids, stops, dtype=hf.DTYPES[name])
    return out


main = flags.command(ExportConfig, __name__, __doc__, lambda config: print(f"[train] wrote {export(config)}"))
