"""Reinforcement learning with rewards that can be checked, by GRPO (Shao et al., 2024).

    python -m train.grpo --prompts train.jsonl --reward exact --model out/sft --out out/grpo

A line of the prompts is `{"prompt": ...}` or `{"messages": [...]}`, with what the reward needs: `answer` for `exact`,
`tests` for `tests`. A reward is a number for a text that the model wrote to a prompt. A step takes `--batch-rows` x
`--grad-accum` prompts, and the model answers each `--group-size` times. The advantage of an answer is its reward minus
the mean of its group, divided by the group's standard deviation, so no model has to predict rewards. Each step has new
answers, so the ratio of new to old probabilities is 1 and needs no clipping. With `--kl-beta`, the distance from the
model of --model is added to the loss.

The answers depend on the seed, the step and the weights alone, so a run resumes exactly.

Shapes: P prompts, G answers of a prompt, A = P*G answers, L label tokens of a micro-batch.
"""

import contextlib
import inspect
import itertools
import json
import math
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from datakit.config import at_least, option, section, sha256_file
from datakit.errors import ConfigError, InputError, UsageError
from datakit.own_code import find
from datakit.pack.format import SOURCE_DTYPE, Header, Packed, index_of
from datakit.storage import here
from train import checkpoint, hf, lora
from train.data import Batch, Mixture, PackedSet, Row, flat_batch
from train.device import autocast
from train.dpo import packed_rows
from train.eval import untouched
from train.generate import load, prompt_rows
from train.loop import LossSum
from train.loss import label_log_probs
from train.model import CausalLM
from train.serve.batching import Job, Sampling, prompt_ids, stop_ids_of, stream
from train.start import RunConfig, Trainer, command
from train.weights import read_model


@dataclass(frozen=True, kw_only=True, slots=True)
class RolloutConfig:
    """Prompts, answers and rewards."""

    prompts: str = option("", "JSONL file with a prompt, and what its reward needs, on each line")
    reward: tuple[str, ...] = option((), "exact, tests or FILE.py:FUNCTION(text, row); several add up")
    allow_code_execution: bool = option(False, "let `tests` run code that the model wrote, with all that you may do")
    group_size: int = option(8, "answers to each prompt")
    max_new_tokens: int = option(256, "maximum tokens of an answer")
    temperature: float = option(1.0, "sampling temperature")
    kl_beta: float = option(0.0, "weight of the distance from the model of --model; 0: no reference is needed")
    scale_rewards: bool = option(True, "divide advantages by the standard deviation of their group")
    micro_tokens: int = option(16384, "tokens of a micro-batch of answers, at most")
    slots: int = option(32, "answers generated at a time")

    def __post_init__(self) -> None:
        at_least(self, 2, "group_size")
        at_least(self, 1, "max_new_tokens", "micro_tokens", "slots")
        at_least(self, 0, "kl_beta")
        if self.temperature <= 0:
            raise ConfigError(f"temperature must be positive, found {self.temperature}")
        if "tests" in self.reward and not self.allow_code_execution:
            raise UsageError("--reward tests runs code that a model wrote (docs/runs.md): add --allow-code-execution")


@dataclass(frozen=True, kw_only=True, slots=True)
class GrpoConfig(RunConfig):
    """Configuration of a run on prompts."""

    trained_share: ClassVar[float] = 0.02
    needs_data: ClassVar[bool] = False
    needs_model: ClassVar[str] = "GRPO needs answers that are sometimes right"
    rollout: RolloutConfig = section(RolloutConfig)

    def __post_init__(self) -> None:
        RunConfig.__post_init__(self)
        if not (self.rollout.prompts and self.rollout.reward):
            raise UsageError("name a file of prompts with --prompts and a reward with --reward, such as --reward exact")
        if self.ranks.fsdp:
            raise UsageError("--fsdp: the ranks generate different answers, so each needs the whole model: remove it")
        if self.manifest or self.quick.data:
            raise UsageError("GRPO trains on the prompts of --prompts: remove --manifest and --data")


Reward = Callable[[str, Mapping[str, Any]], float]
"""(text, row) -> reward; the row is the prompt's line with all its fields."""
ANSWER = re.compile(r"####|\\boxed\s*\{")
"""What stands before an answer: the mark of GSM8K, or LaTeX's box."""
NUMBER = re.compile(r"(?<![A-Za-z0-9_^/.,])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![A-Za-z0-9_^/]|[.,]\d)")
"""A number that is no part of a word, a power or a fraction."""
FIELDS = {"exact": "answer", "tests": "tests"}
"""The field of a row that a reward needs; functions of the user read what they like."""


def reward_of(spec: str) -> Reward:
    """The reward that a specification names.

    `exact` looks for the row's `answer` in the text (see `is_answer`); `tests` runs the code in the text with the row's
    `tests`; `FILE.py:NAME` calls a function of the user with (text, row).

    Raises:
        ConfigError: none of these, or a file or function that cannot be used.
    """
    if spec == "exact":
        return lambda text, row: float(is_answer(text, needed(row, "answer")))
    if spec == "tests":
        return lambda text, row: _solved(code_in(text), needed(row, "tests"))
    if ".py:" in spec:
        return _function(spec)
    raise ConfigError(f"--reward {spec}: expected exact, tests or FILE.py:NAME")


def needed(row: Mapping[str, Any], name: str, where: str = "a prompt") -> str:
    """The text of a field: a text, a number, or for tests also a list of texts, which are lines.

    Raises:
        InputError: there is none; an empty one would be passed by every answer.
    """
    found = row.get(name)
    text = "\n".join(map(str, found)) if name == "tests" and isinstance(found, list) else found
    if isinstance(text, bool) or not isinstance(text, str | int | float) or not str(text).strip():
        raise InputError(f"{where}: its reward needs a text in the field {name!r}; found {str(found)[:60]!r}")
    return str(text)


def is_answer(text: str, wanted: str) -> bool:
    """Whether the final answer of a text is the wanted one, of which what follows its last `####` counts.

    A wanted number may have another form in the text (1,200 and 1200.0) and words behind it ("5 apples"). Anything else
    must be equal but for case, white space, and what is around it: dollar signs, stars, `\\text{}`.

    The final answer of a text is what follows the last `ANSWER`: the rest of the line (`####`), or what the braces hold
    (`\\boxed`). In a text without one it is the last number if a number is wanted, else the whole text.
    """
    wanted = _bare(wanted.rpartition("####")[2])
    is_number = NUMBER.fullmatch(wanted) is not None
    if (found := _marked(text)) is None:
        numbers = NUMBER.findall(text) if is_number else []
        found = numbers[-1] if numbers else text
    found = _bare(found)
    numbers = NUMBER.findall(found)
    if is_number and len(numbers) == 1 and found.startswith(numbers[0]):
        return float(numbers[0].replace(",", "")) == float(wanted.replace(",", ""))
    return "".join(found.split()).casefold() == "".join(wanted.split()).casefold()


def _marked(text: str) -> str | None:
    """What a text marks as its answer: see `is_answer`; None without a mark."""
    last = next(reversed([*ANSWER.finditer(text)]), None)
    if last is None:
        return None
    rest = text[last.end() :].lstrip(" *:\n")
    if last[0] == "####":
        return rest.partition("\n")[0]
    depths = itertools.accumulate((c == "{") - (c == "}") for c in rest)
    return rest[: next((i for i, depth in enumerate(depths) if depth < 0), len(rest))]


def _bare(text: str) -> str:
    """Without `\\text{}`, and without white space, dollar signs, stars and full stops around it."""
    return re.sub(r"\\text\s*\{([^{}]*)\}", r"\1", text).strip(" \t\n$*.\\")


def code_in(text: str) -> str:
    """The last fenced block of a text; without one, the text."""
    blocks = re.findall(r"```(?:python|py)?\n(.*?)(?:```|\Z)", text, re.DOTALL)
    return str(blocks[-1]) if blocks else text


def _solved(code: str, tests: str) -> float:
    solved = passes(code, tests)
    if solved and _passed_by_nothing(tests):
        raise InputError(f"--reward tests: these pass without any code, so they test nothing: {tests[:300]!r}")
    return float(solved)


def passes(code: str, tests: str, timeout_s: float = 5.0) -> bool:
    """Whether `tests` end without an error after `code`, both Python, in a process of their own.

    The process has an empty folder, no environment, and limits of time, memory (1 GiB) and file size (1 MiB). It may
    read and connect to what this user may; and code that shares a process with its tests can deceive them.
    """
    token = secrets.token_hex(16)  # the code cannot end well by leaving early: this is written after the tests
    asked = json.dumps([code, tests, token, math.ceil(timeout_s)]).encode()
    script = f"{inspect.getsource(_judge)}\n_judge()"
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
        given.write(asked)
        given.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", script], stdin=given, stdout=said, stderr=subprocess.DEVNULL, cwd=folder,
            env={}, start_new_session=True)  # fmt: skip
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with the processes that it started
            process.wait()
        said.seek(0)
        return process.returncode == 0 and said.read(len(token) + 1) == token.encode()


_passed_by_nothing = cache(partial(passes, ""))
"""Whether tests end without an error when there is no code."""


def _judge() -> None:
    """What the process of `passes` runs, as source: the limits, the code, then its tests; an error ends it badly.

    It starts once for each answer, so it imports the standard library alone. Functions `test...` that the tests define
    are called, as pytest does it.
    """
    import json
    import os
    import resource
    import sys

    code, tests, token, seconds = json.load(sys.stdin)
    answer, nothing = os.dup(1), os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1):
        os.dup2(nothing, handle)
    for name, most in {"CPU": seconds, "AS": 1 << 30, "FSIZE": 1 << 20, "NPROC": 0, "CORE": 0}.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
    space: dict[str, object] = {"__name__": "answer"}
    exec(compile(code, "answer", "exec"), space)
    before = set(space)
    exec(compile(tests, "tests", "exec"), space)
    for name in space.keys() - before:
        if name.startswith("test") and callable(test := space[name]):
            test()
    os.write(answer, token.encode())
    os._exit(0)


def _function(spec: str) -> Reward:
    """A function of the user's file; an error in it ends the run, with its own traceback."""
    if not callable(function := find(spec, "")):
        raise ConfigError(f"--reward {spec}: expected a function, found {function!r}")

    def reward(text: str, row: Mapping[str, Any]) -> float:
        found = function(text, row)
        with contextlib.suppress(TypeError, ValueError):
            if math.isfinite(value := float(found)):
                return value
        returned = f"returned {found!r} for the text {text[:200]!r}"
        raise InputError(f"--reward {spec}: {returned}; expected a finite number")

    return reward


def advantages(rewards_PG: Tensor, scale: bool) -> Tensor:
    """Rewards minus the mean of their group, divided by its standard deviation if `scale`; (P, G)."""
    centred_PG = rewards_PG - rewards_PG.mean(1, keepdim=True)
    return centred_PG / (rewards_PG.std(1, keepdim=True) + 1e-4) if scale else centred_PG


@dataclass(slots=True)
class Rollout:
    """What the loss needs to know of a micro-batch of answers."""

    advantage_A: Tensor
    weight: float
    """Of each token, so that the sum over tokens, divided by the answers of the step, is the loss."""
    reference_L: Tensor | None = None
    logged: Mapping[str, Tensor] = field(default_factory=dict)
    """Sums of rewards and the like over the answers."""


def token_losses(logp_L: Tensor, advantage_L: Tensor, reference_L: Tensor | None, beta: float) -> tuple[Tensor, Tensor]:
    """Loss of each token, and its distance from the reference (Schulman, 2020), both (L,)."""
    loss_L = -(logp_L - logp_L.detach()).exp() * advantage_L  # the ratio is 1, its gradient is that of logp
    if reference_L is None:
        return loss_L, torch.zeros_like(loss_L)
    behind_L = reference_L - logp_L
    distance_L = behind_L.exp() - behind_L - 1
    return loss_L + beta * distance_L, distance_L


class GrpoTrainer(Trainer):
    """A run on prompts: the model answers those of each step, and learns from the rewards."""

    def __init__(self, config: GrpoConfig) -> None:
        """Read model and prompts.

        Raises:
            DatakitError: they do not fit each other; a line is no prompt, too long, or lacks what its reward needs.
        """
        folder = checkpoint.find_model(config.model)
        model, self.tokenizer, state = load(folder)
        plain, self.settings = state.get("task") == "pretrain", config.rollout
        data = self._read(folder, model.config.max_positions, plain)
        config = replace(config, data=replace(config.data, bucket_sizes=(data.header.seq_len,)))
        self.rollouts: dict[tuple[int, ...], Rollout] = {}
        """Of each micro-batch of the step, by the numbers of its answers."""
        self.stops = stop_ids_of(model, self.tokenizer)
        self.rewards = [reward_of(spec) for spec in config.rollout.reward]
        super().__init__(config, self.token_loss, Mixture((data,)), model.train())
        self.state = replace(self.state, stop_ids=() if plain else tuple(sorted(self.stops)))
        own = config.rollout.kl_beta and not config.lora.lora_rank  # adapters are trained over the reference
        self.reference = read_model(folder).requires_grad_(False).to(self.device) if own else self.model

    def _read(self, folder: Path, room: int, plain: bool) -> PackedSet:
        """The prompts as rows, for the tokenizer in `folder`; each leaves at least one of `room` positions."""
        path, facts = here(self.settings.prompts), self.tokenizer.facts()
        lines = prompt_rows(path)
        for where, row, _ in lines:
            for name in FIELDS.keys() & {*self.settings.reward}:
                needed(row, FIELDS[name], where)
        self.lines, asked = [row for _, row, _ in lines], partial(prompt_ids, self.tokenizer)
        self.prompts = [asked(said, plain, room, where, tools=row.get("tools")) for where, row, said in lines]
        counts = np.array(list(map(len, self.prompts)), np.int64)
        header = Header(
            task="pretrain" if plain else "sft", format="bin", num_samples=len(counts), labelled=False,
            seq_len=max(1, int(counts.max()) - 1), pad_id=facts["pad_id"] or 0, eos_id=facts["eos_id"] or 0,
            vocab_size=facts["vocab_size"])  # fmt: skip
        packed = Packed(
            header, np.concatenate(self.prompts).astype(header.dtype),
            np.stack([np.zeros_like(counts), counts], 1).astype(np.int32).ravel(),
            index_of(np.full(len(counts), 2)).astype(np.uint64), None, None, np.empty(0, SOURCE_DTYPE))  # fmt: skip
        return PackedSet(path, sha256_file(path)[:12], packed, facts, tuple(hf.tokenizer_files(folder)))

    def token_loss(self, model: CausalLM, batch: Batch) -> LossSum:
        """The objective: (loss_sum, answers); logs rewards, lengths and the distance from the reference."""
        rollout, logp_L = self.rollouts[tuple(batch.rows.tolist())], self._log_probs(model, batch)
        advantage_L, weight = rollout.advantage_A[packed_rows(batch)], rollout.weight
        loss_L, distance_L = token_losses(logp_L, advantage_L, rollout.reference_L, self.settings.kl_beta)
        logged = {"kl": distance_L.sum().detach() * weight}
        return LossSum(loss_L.sum() * weight, len(batch.rows), {**rollout.logged, **logged})

    def _log_probs(self, model: CausalLM, batch: Batch) -> Tensor:
        """Log-probability of each token of the answers at the sampling temperature, (L,)."""
        return label_log_probs(model, batch, self.config.labels, self.settings.temperature)

    def batches(self) -> Iterator[list[Batch]]:
        """Steps of answers, which are generated when the step is asked for."""
        stream = self.stream
        for step in itertools.count(self.state.step):
            micros, _ = stream.plan.share(step, stream.rank, stream.ranks)
            yield self._answered([int(row) for micro in micros for row in micro.rows], step)

    def _answered(self, rows: list[int], number: int) -> list[Batch]:
        """Micro-batches of the answers to the prompts in some rows; `number` counts the times of answering."""
        config, size, device = self.settings, self.settings.group_size, self.device
        owners_A = [row for row in rows for _ in range(size)]
        answers = self._generated(owners_A, number)
        counts_A = torch.tensor([len(answer) for answer in answers])
        rewards_A = torch.tensor(self._rewards(answers, owners_A), dtype=torch.float32)
        rewards_PG = rewards_A.view(-1, size)
        advantage_A = advantages(rewards_PG, config.scale_rewards).flatten()
        answers_all, tokens_all = self.ranks.summed([len(answers), int(counts_A.sum())]).tolist()
        unended_A = torch.tensor([answer[-1] not in self.stops for answer in answers])
        logged = {"reward": rewards_A, "reward_std": rewards_PG.std(1).repeat_interleave(size)}
        logged |= {"answer_tokens": counts_A.float(), "unended": unended_A.float()}
        weight = answers_all / tokens_all  # tokens of a step weigh alike (DAPO: Yu et al., 2025)
        batches, self.rollouts = [], {}
        whole = list[Row]()
        for row, answer in zip(owners_A, answers, strict=True):
            size = len(ids := np.array(self.prompts[row] + answer))
            whole.append(Row(ids, np.array([0, size]), np.arange(size - len(answer) - 1, size - 1)))
        # a rank without a prompt, at the end of an epoch, has one empty micro-batch: others wait for its gradients
        for part in by_size([len(row.ids) for row in whole], config.micro_tokens) or [[]]:
            rows_of_part = [whole[i] for i in part]
            batch = flat_batch(rows_of_part, np.array(part), self.stream.data.header.pad_id).to(device)
            sums = {name: value_A[part].sum().to(device) for name, value_A in logged.items()}
            self.rollouts[tuple(part)] = Rollout(advantage_A[part].to(device), weight, self._reference(batch), sums)
            batches.append(batch)
        return batches

    def _generated(self, owners_A: list[int], number: int) -> list[list[int]]:
        """An answer to the prompt in each row, with its stop token if it is not cut at its maximum length."""
        config, jobs = self.settings, list[Job]()
        plain = Sampling(max_new_tokens=config.max_new_tokens, temperature=config.temperature, stop_ids=self.stops)
        for i, row in enumerate(owners_A):
            seed = np.random.SeedSequence([self.loop.seed, number, row, i % config.group_size])
            one = int(seed.generate_state(1, np.uint64)[0] >> np.uint64(1))
            jobs.append(Job(self.prompts[row], replace(plain, seed=one)))
        with untouched(self.model, self.precision):
            list(stream(self.model, jobs, config.slots))  # to the end of all answers
        return [job.answer for job in jobs]

    def _rewards(self, answers: list[list[int]], owners_A: list[int]) -> list[float]:
        """The sum of the rewards of each answer to the prompt in its row."""
        decode, lines = self.tokenizer.decode, [self.lines[row] for row in owners_A]
        texts = [decode([t for t in answer if t not in self.stops], skip_special_tokens=True) for answer in answers]
        with ThreadPoolExecutor() as pool:  # tests are processes; functions of the user may need the main thread
            mapped = [pool.map if spec == "tests" else map for spec in self.settings.reward]
            each = [list(m(reward, texts, lines)) for m, reward in zip(mapped, self.rewards, strict=True)]
        return [sum(values) for values in zip(*each, strict=True)]

    @torch.no_grad()
    def _reference(self, batch: Batch) -> Tensor | None:
        """Log-probabilities of the reference, where they are needed."""
        if not self.settings.kl_beta:
            return None
        with autocast(self.device, self.precision), lora.disabled(self.reference):
            return self._log_probs(self.reference, batch)


def by_size(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Numbers of neighbouring items whose sizes add up to `most` at the most; an item that is larger is alone."""
    found, room = list[list[int]](), 0
    for i, size in enumerate(sizes):
        if not found or size > room:
            found.append([])
            room = most
        found[-1].append(i)
        room -= size
    return found


main = command(GrpoConfig, __name__, __doc__, GrpoTrainer)
