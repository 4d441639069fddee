"""The training loop: steps, accumulation, clipping, schedule, precision, logs and checkpoints.

An objective is a function `loss(model, batch) -> (loss_sum, count)`, with more sums to log if it has any. All sums are
divided by the count of the whole optimizer step, so the result does not depend on the split into micro-batches.
"""

import contextlib
import json
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from numbers import Real
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from datakit.errors import DatakitError, UsageError
from datakit.storage import locked, write_whole
from train import checkpoint
from train.config import LOG
from train.data import Batch, StepStream
from train.device import autocast, need_compiler, peak_mib, precision
from train.log import Log, Record, mark, peak_flops
from train.model import CausalLM
from train.optim import learning_rate
from train.ranks import Ranks, own_part, whole_of

if TYPE_CHECKING:
    from train.lora import Adapters
    from train.start import RunConfig
    from train.updates import LossScale


class LossSum(NamedTuple):
    """The result of an objective for a micro-batch."""

    loss_sum: Tensor
    divisor: int
    """The count to divide by: label tokens, or pairs."""
    logged: Mapping[str, Tensor] = MappingProxyType({})
    """More sums; their means are logged under these names."""

    @classmethod
    def of(cls, found: Any) -> Self:
        """What a loss function returned.

        Raises:
            UsageError: it is none of this form.
        """
        with contextlib.suppress(TypeError, AttributeError):
            loss_sum, count, logged = made = cls(*found)
            sums = all(isinstance(value, Tensor) and value.numel() == 1 for value in (loss_sum, *logged.values()))
            if sums and isinstance(count, Real | Tensor) and (loss_sum.requires_grad or not count):
                return made
        expected = "(loss_sum, count) or a LossSum: a tensor with one value and its gradient, and a number"
        raise UsageError(f"the loss function of this run: expected {expected}; found {found!r}")


Loss = Callable[[CausalLM, Batch], LossSum | tuple[Tensor, int]]


class Objective(nn.Module):
    """The model with its loss and the balance loss of its experts: what a step runs, and what ranks share."""

    def __init__(self, model: CausalLM, loss: Loss, state: Mapping[str, Any]) -> None:
        """`state` comes from a checkpoint."""
        super().__init__()
        self.model, self.loss, moe, self.balance = model, loss, model.config.moe, None
        if moe.num_experts and moe.balance_weight:
            from train.experts import Balance

            self.balance = Balance(model, moe.balance_weight, state.get("balance"))

    def forward(self, batch: Batch) -> tuple[Tensor, int, dict[str, Tensor]]:
        """The summed loss, its count, and sums to log."""
        loss_sum, count, logged = LossSum.of(self.loss(self.model, batch))
        sums = {"loss": loss_sum, **logged}
        if self.balance:
            sums["balance_loss"] = self.balance.loss(batch)
            sums["loss"] = loss_sum = loss_sum + sums["balance_loss"]
        return loss_sum, count, {name: value.detach().double() for name, value in sums.items()}


@dataclass(frozen=True, slots=True)
class Fit:
    """The result of a run."""

    model: CausalLM
    metrics: list[Record]
    """The records of metrics.jsonl; on other ranks than 0 it is empty."""
    step: int
    """The last step."""
    stopped_by: signal.Signals | None = None
    """The signal that stopped the run, if one did."""

    @property
    def losses(self) -> list[float]:
        """The loss of each step."""
        return [record["loss"] for record in self.metrics]


@dataclass(kw_only=True)
class Loop:
    """One run: model, data, optimizer and state."""

    model: CausalLM
    optimizer: torch.optim.Optimizer
    loss: Loss
    stream: StepStream
    config: "RunConfig"
    state: checkpoint.State
    """State after the last finished step."""
    total_steps: int
    device: torch.device
    adapters: "Adapters | None" = None
    """Adapters that are trained instead of the weights."""
    ranks: Ranks = field(default_factory=Ranks)
    evaluate: Callable[[CausalLM, int], Record] | None = None
    """Evaluates on all ranks and logs; returns the record of a step for eval.jsonl."""
    at_end: Callable[[], object] = lambda: None
    """Called when `fit` ends, also by an error."""

    def __post_init__(self) -> None:
        self.loop, self.out = self.config.loop, Path(self.config.loop.out)
        self.checkpoints = self.out / "checkpoints"
        self.signal: signal.Signals | None = None
        """The signal that stops the run."""
        if self.loop.compile:
            need_compiler(self.device)
            self.model.compile_parts(static=bool(self.stream.config.label_bucket_sizes))
        self.model.checkpoint_every = self.loop.checkpoint_every
        self.saver = ThreadPoolExecutor(1)
        self.saving: Future[None] | None = None
        """The checkpoint that is written in the background, or was."""
        self.peak = peak_flops(self.device)
        self.objective = Objective(self.model, self.loss, self.state.loop)
        shares = self.ranks.size > 1 and not self.config.ranks.fsdp
        self.parallel = self.ranks.data_parallel(self.objective) if shares else None
        self.precision = precision(self.loop.dtype, self.device)
        self.loss_scale: LossScale | None = None
        if self.precision == "fp16":
            from train import updates

            self.loss_scale = updates.LossScale(**self.state.loop.get("loss_scale", {}))
        self.empty_steps: int = self.state.loop.get("empty_steps", 0)
        """Steps without a label on any rank: their rows change nothing."""

    def fit(self) -> Fit:
        """Train to `total_steps`, or until a signal.

        Raises:
            DatakitError: a loss or gradient that is not finite; another rank that ended.
        """
        log: Log | None = None
        with self._heeding(), self.ranks.network_errors(), contextlib.ExitStack() as closing:
            closing.callback(self.at_end)
            self.ranks.by_first(lambda: closing.enter_context(locked(self.out, required=False)))
            steps = self.batches()
            if self.ranks.first:
                log = Log(self.loop, self.state.step)
                closing.enter_context(log.closing)
            first, done = self.state.step + 1, self.state.step >= self.total_steps
            while not done:
                record = self._step(steps)
                step = self.state.step
                if step == first:
                    LOG.info(f"peak memory of the first step: {peak_mib(self.device):,.0f} MiB")
                done = step in (self.total_steps, self.loop.stop_at) or self.stopping
                if log:
                    log.write(record)
                    if step % self.loop.log_every == 0 or done or step == first:
                        log.show(record, self.total_steps, self.stream.plan.epoch_of(self.total_steps - 1) + 1)
                if self.evaluate and (done or step % self.config.evaluator.eval_every == 0):
                    self.ranks.reshard(self.model)
                    record = self.evaluate(self.model, step)  # on every rank, so that no rank waits
                    self.ranks.reshard(self.model)
                    if log:
                        log.evaluated(step, record)
                if self.loop.save_every and (step % self.loop.save_every == 0 or done):
                    self._save()
                if not done and step % self.loop.step_sleep_every == 0:
                    time.sleep(self.loop.step_sleep_ms / 1e3)
            self._written()
        return Fit(self.model, log.metrics.records if log else [], self.state.step, self.signal)

    def batches(self) -> Iterator[list[Batch]]:
        """The micro-batches of each step on the device, from the next one on."""
        self.stream.first_step = self.state.step
        return ([batch.to(self.device) for batch in step] for step in self.stream)

    @contextlib.contextmanager
    def _heeding(self) -> Iterator[None]:
        """Inside the context the first SIGINT or SIGTERM lets the current step be finished and saved.

        Only the main thread can catch signals; the old handlers come back afterwards.
        """

        def note(number: int, frame: FrameType | None) -> None:
            if self.signal is not None:
                raise KeyboardInterrupt
            self.signal = signal.Signals(number)
            LOG.info("%s: stopping after this step (again to stop at once)", self.signal.name)

        caught = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
        old = {s: signal.signal(s, note) for s in caught}
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)

    def _step(self, steps: Iterator[list[Batch]]) -> Record:
        """One optimizer step. The host waits for the device once: for the sums of the step and the gradient's norm."""
        step, begin = self.state.step + 1, time.perf_counter()
        lr = learning_rate(self.config.optim, step, self.total_steps)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        with mark("data", self.device):
            batches = next(steps)
        data_seconds = time.perf_counter() - begin
        numbers, sums = self._backward(batches)
        balance = self.objective.balance
        found = self.ranks.summed(numbers, [*sums.values()] + ([balance.counted()] if balance else []))
        norm = self._scale_gradients(found[0])
        *values, grad_norm = torch.cat((found, norm.detach().double().view(1))).tolist()  # the one wait of a step
        (count, stopped, all_tokens, real, labels, flops), values = values[:6], values[6:]
        self.stopping = stopped > 0  # a signal to one rank stops all after the same step
        self.signal = self.signal or (signal.SIGTERM if self.stopping else None)
        means = {name: total / max(1, count) for name, total in zip(sums, values, strict=False)}
        loss = means.pop("loss")
        finite = math.isfinite(grad_norm)
        skip = count == 0 or (self.loss_scale is not None and self.loss_scale.overflowed(finite))
        if not (math.isfinite(loss) and (finite or skip)):
            self._refuse(step, loss, grad_norm)
        with mark("optimizer", self.device):
            if not skip:  # else the step changes nothing but its number
                self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        self.empty_steps += count == 0
        self.state = replace(self.state, step=step)
        means |= {"steps_without_labels": float(self.empty_steps)} if self.empty_steps else {}
        if self.loss_scale:
            means |= {"loss_scale": self.loss_scale.scale, "overflows": float(self.loss_scale.overflows)}
        if balance:
            balance.finish(int(count), values[len(sums) :])
            means["busiest_expert"] = balance.busiest()
        seconds, epoch = time.perf_counter() - begin, self.stream.plan.epoch_of(step - 1) + 1
        speeds = {"all_tok_s": all_tokens / seconds, "real_tok_s": real / seconds, "label_tok_s": labels / seconds}
        return {
            "step": step, "epoch": epoch, "loss": loss, "lr": lr, "grad_norm": grad_norm,
            "label_tokens": int(labels), **speeds, "step_ms": seconds * 1e3, "data_wait": data_seconds / seconds,
            "mfu": flops / seconds / self.peak / self.ranks.size if self.peak else None, **means}  # fmt: skip

    def _backward(self, batches: list[Batch]) -> tuple[list[float], dict[str, Tensor]]:
        """Run forward and backward on all micro-batches.

        Returns numbers of this rank: the count, whether it is to stop, tokens (all, real, labels), operations; and the
        sums of the objective on the device, that of the loss first.
        """
        total, sums = 0, {"loss": torch.zeros((), dtype=torch.float64, device=self.device)}
        for batch in batches:
            last = batch is batches[-1]
            waits = contextlib.nullcontext() if last or self.parallel is None else self.parallel.no_sync()
            if self.config.ranks.fsdp_keep_gradients:
                self.ranks.sum_in_last(self.model, last)
            with waits:  # gradients are summed over the ranks in the last micro-batch
                with autocast(self.device, self.precision), mark("forward", self.device):
                    loss_sum, count, found = (self.parallel or self.objective)(batch)
                if count or self.objective.balance or self.ranks.size > 1:  # every rank must take part in the sums
                    with mark("backward", self.device):
                        (loss_sum * self.loss_scale.scale if self.loss_scale else loss_sum).backward()
            total += count
            for name, value in found.items():
                sums[name] = sums.get(name, 0.0) + value  # no wait for the device
        return [total, self.signal is not None, *self._amounts(batches)], sums

    def _scale_gradients(self, count: Tensor) -> Tensor:
        """Divide gradients by the step's count and clip them; returns the norm before clipping, on the device."""
        grads = [p.grad for p in self.model.parameters() if p.grad is not None]
        if not grads:
            return count.new_zeros(())
        # in fp32: foreach kernels take a factor of another dtype gradient by gradient
        factor = (1 / (count.clamp(min=1) * (self.loss_scale.scale if self.loss_scale else 1.0))).float()
        norm = whole_of(torch.nn.utils.get_total_norm(grads)) * factor
        if most := self.config.optim.max_grad_norm:
            factor = factor * (most / (norm + 1e-6)).clamp(max=1.0)
        torch._foreach_mul_([own_part(g) for g in grads], factor)
        return norm

    def _refuse(self, step: int, loss: float, grad_norm: float) -> None:
        described = self.stream.data.describe(np.concatenate([m.rows for m in self.stream.plan.step(step - 1)]))
        path = self.out / f"not_finite_step_{step:08d}.json"
        values = {"step": step, "loss": str(loss), "grad_norm": str(grad_norm), "rows": described}
        if self.ranks.first:
            write_whole(path, json.dumps(values, indent=1).encode() + b"\n")
        raise DatakitError(
            f"step {step}: loss {loss} with gradient norm {grad_norm} is not finite, so the run stops before the "
            f"weights are damaged (last good step: {step - 1}). Its packed rows, and the row_key of their source rows, "
            f"also in {path}: {described}. Try a lower --lr or --dtype fp32, or look at these rows"
        )

    def _amounts(self, batches: list[Batch]) -> tuple[int, int, int, float]:
        """Positions, real tokens, labels and operations of this rank's micro-batches."""
        real = sum(b.real_tokens for b in batches)
        groups, window = [g for b in batches for g in b.segments.groups], self.model.config.window
        whole, far = (sum(s * max(0, w - n) ** 2 for s, w in groups) / (2 * max(1, real)) for n in (0, window))
        flops = self.model.flops_per_token(whole, far) * real
        return sum(b.ids_BT.numel() for b in batches), real, sum(b.labels for b in batches), flops

    def _save(self) -> None:
        self._written()
        loop_state: dict[str, Any] = {"loss_scale": asdict(self.loss_scale)} if self.loss_scale else {}
        loop_state |= {"balance": self.objective.balance.state()} if self.objective.balance else {}
        loop_state |= {"empty_steps": self.empty_steps} if self.empty_steps else {}
        state = replace(self.state, loop=loop_state)
        found = checkpoint.Snapshot.of(self.model, self.optimizer, self.ranks, self.loop.async_save)

        def write() -> None:
            folder = checkpoint.save(self.checkpoints, state, found, self.stream.data.tokenizer_files, self.adapters)
            checkpoint.keep_newest(self.checkpoints, self.loop.keep_checkpoints)
            LOG.info(f"saved {folder}")

        if not self.loop.async_save:
            self.ranks.by_first(write)
        elif self.ranks.first:
            self.saving = self.saver.submit(write)

    def _written(self) -> None:
        """Wait for the checkpoint that is written in the background; if that failed, every rank raises the error."""
        if self.loop.async_save:
            self.ranks.by_first(lambda: self.saving and self.saving.result())
