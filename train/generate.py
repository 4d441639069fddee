"""Generate text, with the chat template of the training.

python -m train.generate --model out/run --prompt "Hello"
python -m train.generate --model out/run --input prompts.jsonl --output answers.jsonl
"""

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TextIO

import torch
from torch import nn

from datakit.config import at_least, option, section
from datakit.errors import ConfigError, InputError, ModelError, UsageError
from datakit.pack.chat import ChatTokenizer
from datakit.storage import here
from train import checkpoint, flags
from train.device import allow_tf32, usable_device
from train.lora import CONFIG
from train.model import CausalLM
from train.serve.batching import SampleConfig, TextStream, jobs_of, prompt_ids, stop_ids_of, stream
from train.weights import base_of, read_model, saved_state


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceConfig:
    """A model that is not trained, and where it runs."""

    model: str = option("out/run", "checkpoint, adapters, Hugging Face folder, or a run for its newest checkpoint")
    dtype: Literal["auto", "fp32", "bf16"] = option("auto", "precision of the model; auto: bf16 on CUDA, else fp32")
    tf32: bool = option(False, "on CUDA, compute fp32 products in TF32, as in training", advanced=True)
    device: str = option("auto", "cpu, cuda, ...; auto: cuda where there is one")
    threads: int = option(0, "CPU threads; 0: all cores")

    def __post_init__(self) -> None:
        at_least(self, 0, "threads")

    def used(self) -> torch.device:
        """The device, with its threads and precision set."""
        allow_tf32(self.tf32)
        return usable_device(self.device, self.threads)

    def half(self, device: torch.device) -> bool:
        """Whether the precision is bf16."""
        return self.dtype == "bf16" or (self.dtype == "auto" and device.type == "cuda")


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadConfig(DeviceConfig):
    """A model that speaks."""

    tokenizer: str = option("", "tokenizer.json or its folder, if it is not in the folder of the model")

    def loaded(self) -> tuple[CausalLM, ChatTokenizer, dict[str, Any]]:
        """What `load` reads, with the model ready on the device.

        Raises:
            DatakitError: no model there, or it does not fit its tokenizer or adapters.
        """
        device = self.used()
        model, tokenizer, state = load(self.model, self.tokenizer)
        return ready(model, device, self.half(device)), tokenizer, state


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerateConfig(LoadConfig):
    """Model, prompts and output."""

    prompt: str = option("", "user message; for a plain-text model, the start of the text")
    input: str = option("", 'JSONL file with one prompt per line: {"prompt": ...} or {"messages": [...]}, and tools')
    output: str = option("", "file for the lines of --input with their `completion`; default: the terminal")
    batch_rows: int = option(8, "lines of --input per batch")
    system: str = option("", "system message before the conversation")
    plain: bool = option(False, "continue the prompt as plain text, without template (always for plain-text models)")
    stop: tuple[str, ...] = option((), "stop strings: an answer ends before the first one; \\n is a new line")
    sample: SampleConfig = section(SampleConfig)

    def __post_init__(self) -> None:
        LoadConfig.__post_init__(self)
        at_least(self, 1, "batch_rows")
        if bool(self.prompt) == bool(self.input):
            raise UsageError("give either --prompt or --input; python -m train.serve has a page to chat on")
        if self.output and not self.input:
            raise ConfigError("--output goes with --input")


class Generator:
    """A model with its tokenizer and chat template."""

    def __init__(self, config: GenerateConfig) -> None:
        """Load the model of a configuration.

        Raises:
            DatakitError: no model there.
        """
        self.model, self.tokenizer, state = config.loaded()
        self.config, self.plain = config, config.plain or state.get("task") == "pretrain"

    def prompt_of(self, said: str | Sequence[Any], where: str = "the prompt", tools: Any = None) -> list[int]:
        """The prompt ids for a text, or a conversation with its tools; the system message of the configuration comes
        before a conversation that has none.

        Raises:
            UsageError: an empty prompt, or no room for an answer.
        """
        context, system = self.model.config.max_positions, self.config.system
        return prompt_ids(self.tokenizer, said, self.plain, context, where, system, tools)

    def stream(self, prompts: Sequence[Sequence[int]]) -> Iterator[tuple[int, str]]:
        """Yield (number of the prompt, piece of its answer); an answer ends before the first stop string."""
        stops = [s.replace("\\n", "\n") for s in self.config.stop]
        jobs = jobs_of(prompts, stop_ids_of(self.model, self.tokenizer), self.config.sample)
        decode = partial(self.tokenizer.decode, skip_special_tokens=True)
        texts = {job: (i, TextStream(decode, stops)) for i, job in enumerate(jobs)}
        for job, token in stream(self.model, jobs):
            i, text = texts[job]
            if text.ended:
                continue
            piece = "" if token.id < 0 or token.finish == "stop" else text.add(token.id)
            yield i, piece + (text.end() if token.finish else "")
            job.cancelled = text.ended


def load(model: Path | str, tokenizer: str = "", base: str = "") -> tuple[CausalLM, ChatTokenizer, dict[str, Any]]:
    """Load model, tokenizer and state.json (empty if there is none) of a folder, and check that they fit.

    If the folder holds adapters, `base` is their model, where it is not where it lay in training; a tokenizer that is
    not beside them is the base's.

    Raises:
        ModelError: no model there, or other tokenizer files than in training.
    """
    folder = checkpoint.find_model(str(model))
    if not any((folder / name).is_file() for name in ("config.json", CONFIG)):
        raise ModelError(f"{model}: no model there; expected a checkpoint, a run with one or a Hugging Face folder")
    place = checkpoint.find_model(tokenizer) if tokenizer else folder
    if not tokenizer and not (folder / "tokenizer.json").is_file():
        place = checkpoint.find_model(base) if base else base_of(folder)
    found = ChatTokenizer.load(place)
    state = saved_state(folder)
    trained = state.get("tokenizer", {})
    for name, own in (("sha256", found.sha256), ("chat_template_sha256", found.template_sha256)):
        if trained.get(name, own) != own:
            restore = f"but the files in {place} give {own}: restore those of the training"
            raise ModelError(f"{folder}: trained with a tokenizer of {name} {trained[name]}, {restore}")
    whole = read_model(folder, checkpoint.find_model(base) if base else None).eval()
    if found.vocab_size > whole.config.vocab_size:
        raise ModelError(f"{folder}: tokenizer of {found.vocab_size} tokens, model of {whole.config.vocab_size}")
    return whole, found, state


def ready(model: CausalLM, device: torch.device, half: bool) -> CausalLM:
    """The model on a device in fp32 or bf16, its matrices laid out for products with few rows.

    On CPU one row is bound by reading the matrix. A matrix that is higher than wide is read 1.4 to 1.9 times as fast
    when its columns are contiguous (MKL, measured with 1 to 64 rows); others are faster as they are.
    """
    model = model.to(device, torch.bfloat16 if half else torch.float32)
    for layer in model.modules():
        if device.type == "cpu" and isinstance(layer, nn.Linear) and layer.out_features > layer.in_features:
            layer.weight.data = layer.weight.data.t().contiguous().t()
    return model


def answer_file(generator: Generator) -> None:
    """Answer every line of the file `input`, in order.

    Raises:
        InputError: a line is not a prompt; the message names it.
    """
    config = generator.config
    rows = prompt_rows(here(config.input))
    prompts = [generator.prompt_of(said, where, row.get("tools")) for where, row, said in rows]
    with contextlib.ExitStack() as stack:
        out: TextIO = sys.stdout
        if config.output:
            Path(config.output).parent.mkdir(parents=True, exist_ok=True)
            out = stack.enter_context(Path(config.output).open("w", encoding="utf-8"))
        for at in range(0, len(rows), config.batch_rows):
            batch = slice(at, at + config.batch_rows)
            answers = [""] * len(prompts[batch])
            for i, piece in generator.stream(prompts[batch]):
                answers[i] += piece
            for (_, row, _), answer in zip(rows[batch], answers, strict=True):
                print(json.dumps(row | {"completion": answer}, ensure_ascii=False), file=out, flush=True)


def prompt_rows(path: Path) -> list[tuple[str, dict[str, Any], Any]]:
    """(file:line, the row, its prompt) of every line of a JSONL file with `prompt` or `messages`.

    Raises:
        InputError: a line is not a prompt; the message names it. Or there is none.
    """
    rows = list[tuple[str, dict[str, Any], Any]]()
    for number, line in enumerate(path.read_bytes().splitlines(), 1):  # bytes: U+2028 ends no line of JSON
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            json.dumps(row, ensure_ascii=False).encode()  # half of a surrogate pair is no character
        except ValueError as e:
            raise InputError(f"{path}:{number}: it is not JSON: {e}") from None
        said = row.get("messages", row.get("prompt")) if isinstance(row, dict) else None
        if not (isinstance(said, str) or (isinstance(said, list) and said and all(map(_is_turn, said)))):
            expected = "`prompt`, a text, or `messages`, a list of objects whose `role` and `content` are texts"
            found = json.dumps(row, ensure_ascii=False)[:80]
            raise InputError(f"{path}:{number}: expected an object with {expected}; found {found}")
        rows.append((f"{path}:{number}", row, said))
    if not rows:
        raise InputError(f"{path}: has no prompts")
    return rows


def _is_turn(turn: object) -> bool:
    return isinstance(turn, dict) and all(isinstance(turn.get(name), str) for name in ("role", "content"))


def generate(config: GenerateConfig) -> None:
    """Answer the prompt or the file of prompts."""
    generator = Generator(config)
    if config.input:
        return answer_file(generator)
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C ends the answer early
        for _, piece in generator.stream([generator.prompt_of(config.prompt)]):
            print(piece, end="", flush=True)
    print()


main = flags.command(GenerateConfig, __name__, __doc__, generate)
