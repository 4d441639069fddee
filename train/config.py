"""The options of a run that belong to no single technique; the fields become flags, and arguments in Python.

Sections of a technique are beside it: `DataConfig` in the data, `OptimConfig` in optim.py, `LossConfig` in loss.py.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal

from datakit.config import Option, at_least, option, options
from datakit.errors import ConfigError, UsageError

LOG = logging.getLogger("train")
"""What the package says; commands print it."""
more = partial(option, advanced=True)
"""An option that only `--help-all` shows."""

_of_files, _in_evaluation = (partial(option, acts_with={name: ()}) for name in ("data", "eval_every"))
_of_experts, _of_adapters = (partial(more, acts_with={name: ()}) for name in ("num_experts", "lora_rank"))
"""Options that do nothing without another one: they are refused without it."""

TARGETS = ("q", "k", "v", "o", "gate", "up", "down")
"""Projections that can have an adapter; their modules are named `<target>_proj`."""


def every_option(config: type, at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], type, Option]]:
    """The options of a config and of its sections, at any depth: the sections' names, the class that has it, itself."""
    for o in options(config):
        if o.nested:
            yield from every_option(o.nested, (*at, o.name))
        else:
            yield at, config, o


def placed(config: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by the names of options, nested in the sections that have them.

    Raises:
        UsageError: a name that is no option.
    """
    found: dict[str, Any] = {}
    places = {o.name: at for at, _, o in every_option(config)}
    for name, value in values.items():
        if name not in places:
            raise UsageError(f"{config.__name__} has no option {name!r}")
        place = found
        for section in places[name]:
            place = place.setdefault(section, {})
        place[name] = value
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class QuickConfig:
    """Files to train on, instead of a manifest."""

    data: tuple[str, ...] = option((), "files with `messages`, `text`, pairs or `ids`, in any format datakit reads")
    tokenizer: str = _of_files("", "tokenizer folder for --data; default: the tokenizer of --model")
    seq_len: int = _of_files(512, "tokens to predict per packed row of --data")

    def __post_init__(self) -> None:
        at_least(self, 1, "seq_len")


@dataclass(frozen=True, kw_only=True, slots=True)
class SizesConfig:
    """Sizes of a model with random weights; 0: those of --preset."""

    hidden_size: int = more(0, "width of the residual stream")
    num_layers: int = more(0, "layers")
    num_heads: int = more(0, "query heads; each has hidden_size / num_heads values, if one of the two is given")
    num_kv_heads: int = more(0, "key/value heads; default with --num-heads: as many")
    intermediate_size: int = more(0, "inner width of the MLP")
    qk_norm: bool = more(False, "RMSNorm on the queries and keys of each head (Qwen3)")
    activation: Literal["silu", "relu2"] = more("silu", "relu2: squared ReLU (So et al., 2021)")
    logit_softcap: float = more(0.0, "logits are X * tanh(logits / X) (Gemma 2); 0: off")
    zero_init: bool = more(False, "begin with zeros in the matrices that write to the residual stream")

    def __post_init__(self) -> None:
        at_least(self, 0, "hidden_size", "num_layers", "num_heads", "num_kv_heads", "intermediate_size")
        at_least(self, 0, "logit_softcap")


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopConfig:
    """Length of the run, precision, and what is saved."""

    steps: int = option(0, "total optimizer steps, also the length of the schedule; 0: the steps of `epochs`")
    epochs: int = option(1, "passes over the data when `steps` is 0")
    stop_at: int = more(0, "stop after this step with a checkpoint, to resume later; 0: never")
    out: str = option("out/run", "folder for checkpoints, metrics.jsonl and the resolved configuration")
    resume: bool = option(False, "continue from the newest checkpoint in `out`")
    profile: int = more(0, "steps to trace, from the third on, into `out`/profile.json; 0: none")
    save_every: int = option(500, "steps between checkpoints; the last step always gets one; 0: none, for timing")
    async_save: bool = more(False, "copy checkpoints to memory and write them while training goes on")
    keep_checkpoints: int = more(3, "number of newest checkpoints to keep; 0: all")
    report_to: tuple[str, ...] = more(("auto",), "tensorboard or none; auto: tensorboard, if installed")
    log_every: int = more(10, "steps between log lines; metrics.jsonl has every step")
    seed: int = more(0, "random seed of the first weights and of the order of rows")
    dtype: Literal["auto", "bf16", "fp16", "fp32"] = option("auto", "arithmetic; weights stay fp32; auto: bf16 if fast")
    tf32: bool = more(False, "on CUDA, compute fp32 products in TF32: faster, less precise")
    deterministic: bool = more(False, "on CUDA, the same bits in each run, a resumed one too: slower; on CPU always so")
    checkpoint_every: int = more(0, "recompute activations of every N-th layer; 0: none, 1: all")
    compile: bool = option(False, "compile the layers: takes seconds per bucket; on CPU it needs a C++ compiler")
    device: str = more("auto", "cpu, cuda, ...; auto: cuda where there is one")
    threads: int = more(0, "CPU threads; 0: one for each 64 of the hidden size, as far as there are")
    step_sleep_ms: float = more(0.0, "pause after a step, to leave time for other work")
    step_sleep_every: int = more(1, "steps between such pauses", acts_with={"step_sleep_ms": ()})
    memory_limit: float = more(0.0, "most memory: up to 1 a share of what is free, above 1 GiB; 0: all")

    def __post_init__(self) -> None:
        at_least(self, 0, "steps", "stop_at", "keep_checkpoints", "threads", "checkpoint_every", "profile")
        at_least(self, 0, "step_sleep_ms", "save_every", "memory_limit")
        at_least(self, 1, "step_sleep_every", "log_every", *(() if self.steps else ("epochs",)))
        if unknown := set(self.report_to) - {"tensorboard", "auto", "none"}:
            raise ConfigError(f"report_to must be tensorboard, auto or none, found {unknown.pop()}")
        if "tensorboard" in self.report_to and find_spec("tensorboard") is None:
            raise ConfigError("--report-to tensorboard: it is not installed; pip install tensorboard")


@dataclass(frozen=True, kw_only=True, slots=True)
class MoeConfig:
    """A mixture of experts in place of every layer's MLP (Shazeer et al., 2017)."""

    num_experts: int = more(0, "experts per layer; a router picks a few for each token; 0: one MLP for all tokens")
    experts_per_token: int = _of_experts(1, "experts that a token passes through")
    expert_size: int = _of_experts(0, "inner width of an expert; 0: the MLP's, divided by experts_per_token")
    norm_topk: bool = _of_experts(True, "divide the weights of a token's experts by their sum")
    balance_weight: float = _of_experts(0.01, "weight of the loss for an equal use of experts (Switch, 2021)")
    dense_layers: tuple[int, ...] = _of_experts((), "layers without experts, counted from 0")

    def __post_init__(self) -> None:
        at_least(self, 0, "num_experts", "expert_size", "balance_weight")
        if self.num_experts and not 1 <= self.experts_per_token <= self.num_experts:
            raise ConfigError(f"experts_per_token must lie in 1..{self.num_experts}, found {self.experts_per_token}")


@dataclass(frozen=True, kw_only=True, slots=True)
class LoraConfig:
    """Which weights get adapters, and their size."""

    lora_rank: int = option(0, "rank of the adapters to train instead of the weights; 0: train the weights")
    lora_alpha: float = _of_adapters(0.0, "adapter outputs are multiplied by lora_alpha / lora_rank; 0: twice the rank")
    lora_targets: tuple[str, ...] = _of_adapters(TARGETS, "projections with an adapter")
    rslora: bool = _of_adapters(False, "divide by the root of the rank instead (rsLoRA: Kalajdzievski, 2023)")
    lora_dropout: float = _of_adapters(0.0, "share of an adapter's inputs that are set to zero in training")

    def __post_init__(self) -> None:
        at_least(self, 0, "lora_rank", "lora_alpha", "lora_dropout")
        if self.lora_dropout >= 1:
            raise ConfigError(f"lora_dropout must be below 1, found {self.lora_dropout}")
        if not self.lora_targets or set(self.lora_targets) - set(TARGETS):
            raise ConfigError(f"lora_targets: expected of {','.join(TARGETS)}, found {','.join(self.lora_targets)}")

    @property
    def scale(self) -> float:
        """Factor of the product of an adapter's matrices."""
        return self.alpha / (self.lora_rank**0.5 if self.rslora else self.lora_rank)

    @property
    def alpha(self) -> float:
        """`lora_alpha`, or its default."""
        return self.lora_alpha or 2.0 * self.lora_rank


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluatorConfig:
    """When to evaluate, and on what."""

    eval_every: int = option(0, "steps between evaluations; the last step always gets one; 0: never")
    eval_manifest: str = _in_evaluation(
        "", "evaluate on this: its validation split, else its rows; default: --manifest"
    )
    eval_rows: int = _in_evaluation(0, "rows to evaluate on, evenly spaced; 0: all", advanced=True)

    def __post_init__(self) -> None:
        at_least(self, 0, "eval_every", "eval_rows")
