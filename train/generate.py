"""Generate text, with the chat template of the training.

python -m train.generate --model out/run --prompt "Hello"
python -m train.generate --model out/run --chat
python -m train.generate --model out/run --input prompts.jsonl --output answers.jsonl
"""

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TextIO

import torch
from torch import nn

from datakit.config import option, section
from datakit.errors import ConfigError, InputError, ModelError, UsageError
from datakit.pack.chat import ChatTokenizer
from train import checkpoint, flags, hf, lora
from train.device import allow_tf32, usable_device
from train.model import CausalLM
from train.serve.batching import SampleConfig, answers, prompt_ids, stream_text


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerateConfig:
    """Model, prompts and output."""

    model: str = option("out/run", "checkpoint, adapters, Hugging Face folder, or a run for its newest checkpoint")
    tokenizer: str = option("", "tokenizer.json or its folder, if it is not in the folder of the model")
    prompt: str = option("", "user message; for a plain-text model, the start of the text")
    chat: bool = option(False, "chat in the terminal; /reset starts a new conversation, /quit ends")
    input: str = option("", 'JSONL file with one prompt per line: {"prompt": ...} or {"messages": [...]}')
    output: str = option("", "file for the lines of --input with their `completion`; default: the terminal")
    batch_rows: int = option(8, "lines of --input per batch")
    system: str = option("", "system message before the conversation")
    plain: bool = option(False, "continue the prompt as plain text, without template (always for plain-text models)")
    stop: tuple[str, ...] = option((), "stop strings: an answer ends before the first one; \\n is a new line")
    dtype: Literal["auto", "fp32", "bf16"] = option("auto", "dtype of the weights; auto: bf16 on CUDA, else fp32")
    tf32: bool = option(False, "on CUDA, compute fp32 products in TF32, as in training", advanced=True)
    device: str = option("auto", "cpu, cuda, ...; auto: cuda where there is one")
    threads: int = option(0, "CPU threads; 0: all cores")
    sample: SampleConfig = section(SampleConfig)

    def __post_init__(self) -> None:
        if (bool(self.prompt), self.chat, bool(self.input)).count(True) != 1:
            raise UsageError("give exactly one of --prompt, --chat and --input")
        if self.batch_rows < 1 or self.threads < 0 or (self.output and not self.input):
            raise ConfigError("batch_rows must be at least 1, threads 0 or more, and --output goes with --input")

    @property
    def stops(self) -> list[str]:
        """The stop strings, with \\n replaced by new lines."""
        return [s.replace("\\n", "\n") for s in self.stop]


@dataclass(frozen=True, slots=True)
class Generator:
    """A model with its tokenizer and chat template."""

    model: CausalLM
    tokenizer: ChatTokenizer
    config: GenerateConfig
    plain: bool
    """Do not use the chat template."""

    @classmethod
    def of(cls, config: GenerateConfig) -> "Generator":
        """Load the model of a configuration.

        Raises:
            DatakitError: no model there, or --chat with a plain-text model.
        """
        device = usable_device(config.device, config.threads)
        model, tokenizer, state = load(config.model, config.tokenizer)
        plain = config.plain or state.get("task") == "pretrain"
        if plain and config.chat:
            raise UsageError(f"{config.model}: a plain-text model has no chat turns; use --prompt")
        allow_tf32(config.tf32)
        half = config.dtype == "bf16" or (config.dtype == "auto" and device.type == "cuda")
        return cls(ready(model, device, half), tokenizer, config, plain)

    def prompt_of(self, said: str | Sequence[dict[str, Any]], where: str = "the prompt") -> list[int]:
        """The prompt ids for a text or a conversation.

        Raises:
            UsageError: an empty prompt, or no room for an answer.
        """
        if isinstance(said, str) and not self.plain:
            said = [{"role": "user", "content": said}]
        asked = said if isinstance(said, str) or self.plain else self.with_system(said)
        return prompt_ids(self.tokenizer, asked, self.plain, self.model.config.context, where)

    def with_system(self, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """A conversation that begins with a system message: its own, or that of the configuration, if there is one."""
        own = bool(messages) and messages[0].get("role") == "system"
        system = [{"role": "system", "content": self.config.system}] if self.config.system and not own else []
        return [*system, *messages]

    def stream(self, prompt: Sequence[int]) -> Iterator[str]:
        """Yield the answer in pieces of text."""
        pieces = stream_text(self.model, self.tokenizer, [prompt], self.config.sample, self.config.stops)
        return (piece for _, piece in pieces)

    def answers(self, prompts: Sequence[Sequence[int]]) -> list[str]:
        """The answers to several prompts, generated together."""
        return answers(self.model, self.tokenizer, prompts, self.config.sample, self.config.stops)


def load(model: Path | str, tokenizer: str = "", base: str = "") -> tuple[CausalLM, ChatTokenizer, dict[str, Any]]:
    """Load model, tokenizer and state.json (empty if there is none) of a folder, and check that they fit.

    If the folder holds adapters, `base` is their model, where it is not where it lay in training; a tokenizer that is
    not beside them is the base's.

    Raises:
        ModelError: no model there, or other tokenizer files than in training.
    """
    folder = checkpoint.find_model(str(model))
    if not folder.is_dir():
        raise ModelError(f"{model}: no such folder; expected a checkpoint, a run or a Hugging Face folder")
    place = checkpoint.find_model(tokenizer) if tokenizer else folder
    if not tokenizer and not (folder / "tokenizer.json").is_file():
        place = Path(base) if base else lora.base_of(folder)
    found = ChatTokenizer.load(place)
    state = hf.saved_state(folder)
    trained = state.get("tokenizer", {})
    for name, own in (("sha256", found.sha256), ("chat_template_sha256", found.template_sha256)):
        if trained.get(name, own) != own:
            raise ModelError(
                f"{folder}: trained with a tokenizer of {name} {trained[name]}, but the files in {place} "
                f"give {own}; restore tokenizer.json and tokenizer_config.json of the training"
            )
    whole = lora.read(folder, Path(base) if base else None).eval()
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


def answer_file(generator: Generator, config: GenerateConfig) -> None:
    """Answer every line of the file `input`, in order.

    Raises:
        InputError: a line is not a prompt; the message names it. Or there is none.
    """
    rows = list(prompt_rows(Path(config.input)))
    if not rows:
        raise InputError(f"{config.input}: has no prompts")
    prompts = [generator.prompt_of(said, where) for where, _, said in rows]
    with contextlib.ExitStack() as stack:
        out: TextIO = sys.stdout
        if config.output:
            Path(config.output).parent.mkdir(parents=True, exist_ok=True)
            out = stack.enter_context(Path(config.output).open("w", encoding="utf-8"))
        for at in range(0, len(rows), config.batch_rows):
            here = slice(at, at + config.batch_rows)
            for (_, row, _), answer in zip(rows[here], generator.answers(prompts[here]), strict=True):
                print(json.dumps(row | {"completion": answer}, ensure_ascii=False), file=out, flush=True)


def prompt_rows(path: Path) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """(file:line, the row, its prompt) of every line of a JSONL file with `prompt` or `messages`.

    Raises:
        InputError: a line is not a prompt; the message names it.
    """
    for number, line in enumerate(path.read_bytes().splitlines(), 1):  # bytes: U+2028 ends no line of JSON
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as e:
            raise InputError(f"{path}:{number}: it is not JSON: {e}") from None
        fields = row if isinstance(row, dict) else {}
        said = fields.get("messages", fields.get("prompt"))
        if said is None:
            found = f"the fields {', '.join(fields)}" if fields else str(row)[:60]
            raise InputError(f"{path}:{number}: expected an object with `prompt` or `messages`, found {found}")
        yield f"{path}:{number}", row, said


def chat(generator: Generator) -> None:
    """Chat in the terminal until /quit or end of input."""
    messages: list[dict[str, Any]] = []
    sign = "> " if sys.stdin.isatty() else ""
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while (said := input(sign).strip()) != "/quit":
            if said == "/reset":
                messages = []
                continue
            if said:
                messages.append({"role": "user", "content": said})
                messages.append({"role": "assistant", "content": _answer(generator, messages)})
    if sign:
        print()


def _answer(generator: Generator, messages: list[dict[str, Any]]) -> str:
    """Print and return the answer; Ctrl-C ends it early. First turns are dropped if the conversation is too long."""
    answer, most = "", generator.model.config.context
    room = most - min(generator.config.sample.max_new_tokens, most // 2)
    while len(generator.tokenizer.encode_prompt(generator.with_system(messages))) > room and len(messages) > 1:
        print("(the first turn is dropped: the conversation is longer than the model allows)", flush=True)
        del messages[:2]
    with contextlib.suppress(KeyboardInterrupt):
        for piece in generator.stream(generator.prompt_of(messages)):
            print(piece, end="", flush=True)
            answer += piece
    print()
    return answer


def main(argv: Sequence[str], prog: str = "python -m train.generate") -> int:
    """Generate and print; returns the exit code."""
    config = flags.built(GenerateConfig, flags.given(GenerateConfig, prog, __doc__, argv))
    generator = Generator.of(config)
    if config.chat:
        chat(generator)
    elif config.input:
        answer_file(generator, config)
    else:
        for piece in generator.stream(generator.prompt_of(config.prompt)):
            print(piece, end="", flush=True)
        print()
    return 0


if __name__ == "__main__":
    sys.exit(flags.guarded(main))
