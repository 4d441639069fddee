"""Write a model for other programs, with adapters merged: a Hugging Face folder, a GGUF file, or that with a Modelfile.

python -m train.export --checkpoint out/run --output mymodel --to gguf
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from datakit.config import option
from datakit.errors import InputError, ModelError, UsageError
from datakit.manifest import tokenizer_file
from datakit.pack.chat import ChatTokenizer, RenderError
from train import checkpoint, flags, gguf, hf
from train.batching import stop_ids_of
from train.generate import load

DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportConfig:
    """What to export, and where."""

    checkpoint: str = option("out/run", "checkpoint, Hugging Face folder, or a run's folder for its newest checkpoint")
    tokenizer: str = option("", "folder of the tokenizer, if it is not in the folder of the model")
    output: str = option("", "folder to write")
    to: Literal["hf", "gguf", "ollama"] = option("hf", "hf: Hugging Face; gguf: for llama.cpp; ollama: and a Modelfile")
    export_dtype: Literal["base", "fp32", "bf16", "fp16"] = option(
        "base", "dtype of the weights; base: the one that config.json of the model named at the start of its training"
    )

    def __post_init__(self) -> None:
        if not self.output:
            raise UsageError("name a folder with --output")


def export(config: ExportConfig) -> Path:
    """Write the folder; returns it.

    Raises:
        ModelError: no model there, or the other program cannot run it or use its template.
        InputError: the output folder is not empty.
    """
    folder, out = checkpoint.newest_of_run(Path(config.checkpoint)), Path(config.output)
    if out.exists() and any(out.iterdir()):
        raise InputError(f"{out}: is not empty; name another --output")
    beside = tokenizer_file(config.tokenizer).parent if config.tokenizer else folder
    model, tokenizer, state = load(folder, beside)
    plain, stops = state.get("task") == "pretrain", sorted(state.get("stop_ids", stop_ids_of(model, tokenizer)))
    text = modelfile(tokenizer, model.config.max_positions, plain) if config.to == "ollama" else ""
    name = model.config.dtype if config.export_dtype == "base" else DTYPES[config.export_dtype]
    if name not in hf.DTYPES:
        raise ModelError(f"dtype {name!r}: expected one of {', '.join(hf.DTYPES)}; name one with --export-dtype")
    dtype, model.config = hf.DTYPES[name], replace(model.config, dtype=name)
    if hf.family_of(model.config) == hf.OWN:
        c = model.config
        raise ModelError(
            f"{config.checkpoint}: no model of transformers has these options together: logit_softcap "
            f"{c.logit_softcap}, activation {c.activation}, qk_norm {c.qk_norm}; train.generate and train.serve run it"
        )
    out.mkdir(parents=True, exist_ok=True)
    if config.to == "hf":
        ids = {"pad_token_id": tokenizer.pad_id, "eos_token_id": tokenizer.eos_id, "bos_token_id": tokenizer.bos_id}
        hf.write_model(out, model, hf.tokenizer_files(beside), ids, stops, dtype=dtype)
    else:
        for note in gguf.write(out / "model.gguf", model, tokenizer, stops, dtype, chat=not plain):
            print(f"[train] note: {note}", flush=True)
    if text:
        (out / "Modelfile").write_text(text, encoding="utf-8")
    return out


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
    turns = [
        {"role": role, "content": f"<<{at}>>"} for at, role in enumerate(("system", *("user", "assistant") * 2, "user"))
    ]
    try:
        with_system, without = _pieces(tokenizer, turns), _pieces(tokenizer, turns[1:])
    except RenderError as e:
        raise ModelError(f"{tokenizer.where}: the chat template refuses a plain conversation ({e})") from None
    begin, after_system, after_user, after_answer, *_ = with_system
    usual = [after_user, after_answer] * 2 + [after_user]
    if with_system != [begin, after_system, *usual] or without != [without[0], *usual]:
        raise ModelError(
            f"{tokenizer.where}: the chat template does more than put text around turns, and Ollama's form cannot say "
            f"that; use --to hf, and python -m train.serve to chat"
        )
    said = "{{ .Content }}"
    first = "{{ if .System }}" + _quoted(begin) + "{{ .System }}" + _quoted(after_system)
    each = '{{ if eq .Role "user" }}' + said + _quoted(after_user)
    each += '{{ else if eq .Role "assistant" }}' + said + _quoted(after_answer) + "{{ end }}"
    return first + "{{ else }}" + _quoted(without[0]) + "{{ end }}{{ range .Messages }}" + each + "{{ end }}"


def _pieces(tokenizer: ChatTokenizer, turns: Sequence[dict[str, Any]]) -> list[str]:
    """The text before the first turn's content, between contents, and after the last."""
    rest, found = tokenizer.render(turns, add_generation_prompt=True).text, []
    for turn in turns:
        piece, marker, rest = rest.partition(turn["content"])
        if not marker:
            raise RenderError("a turn's content is not in the text")
        found.append(piece)
    return [*found, rest]


def _quoted(text: str) -> str:
    """Text that Ollama's template language takes as it is."""
    return text.replace("{{", '{{ "{{" }}')


def main(argv: Sequence[str], prog: str = "python -m train.export") -> int:
    """Export; returns the exit code."""
    config = flags.built(ExportConfig, flags.given(ExportConfig, prog, __doc__, argv))
    out = export(config)
    print(f"[train] wrote {out}")
    if config.to == "gguf":
        print(f"[train] next: llama-cli --model {out / 'model.gguf'}")
    if config.to == "ollama":
        print(f"[train] next: ollama create {out.resolve().name} -f {out / 'Modelfile'}")
    return 0


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
