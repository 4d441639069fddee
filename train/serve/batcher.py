"""The thread that generates for the server: a queue before the engine, and the sampling that requests ask for.

Shapes: V vocabulary.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from datakit.errors import ConfigError
from train.batching import Engine, Job, Sampling, Token
from train.model import CausalLM

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RequestSampling(Sampling):
    """What OpenAI's API adds: penalties on the answer's own tokens, biases, and log-probabilities."""

    presence_penalty: float = 0.0
    """Subtracted once from the logits of tokens that the answer contains."""
    frequency_penalty: float = 0.0
    """Subtracted for each time that the answer contains the token."""
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    logprobs: int = -1
    """Report the log-probability of each token, and those of this many most likely ones; -1: none."""

    @property
    def alike(self) -> bool:
        """Not where one of the additions is asked for."""
        changed = self.presence_penalty or self.frequency_penalty or self.logit_bias or self.logprobs >= 0
        return not changed and super().alike

    def scores(self, job: Job, logits_V: Tensor) -> Tensor:
        """The logits to sample from, (V,)."""
        scores_V = super().scores(job, logits_V)
        if self.presence_penalty or self.frequency_penalty:
            for token, count in Counter(job.answer).items():
                scores_V[token] -= self.presence_penalty + count * self.frequency_penalty
        for token, bias in self.logit_bias.items():
            scores_V[token] += bias
        return scores_V

    def token(self, job: Job, logits_V: Tensor) -> Token:
        """The next token of one answer, with its log-probability where it is asked for."""
        chosen = super().token(job, logits_V).id
        if self.logprobs < 0:
            return Token(chosen)
        logprobs_V = logits_V.log_softmax(-1)
        top = logprobs_V.topk(min(self.logprobs, len(logprobs_V)))
        ranked = zip(top.indices.tolist(), top.values.tolist(), strict=True)
        return Token(chosen, max(float(logprobs_V[chosen]), -9999.0), tuple((i, max(p, -9999.0)) for i, p in ranked))


class QueueFullError(Exception):
    """Too many requests wait already."""


class Batcher:
    """An engine, the thread in which it runs, and the queue before it.

    `deliver` gets the tokens of a step, all at once and in the generating thread; it calls `Job.receive` wherever the
    program wants it.
    """

    def __init__(
        self,
        model: CausalLM,
        deliver: Callable[[list[tuple[Job, Token]]], None],
        slots: int = 16,
        context: int = 0,
        queue: int = 64,
    ) -> None:
        if queue < 0:
            raise ConfigError(f"expected a queue of 0 or more, found {queue}")
        self.engine, self.deliver, self.queue = Engine(model, slots, context), deliver, queue
        self._arrived: list[Job] = []
        self._wake, self._closed = threading.Condition(), False
        self._thread = threading.Thread(target=self._run, name="generate", daemon=True)
        self._thread.start()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue the answers of one request.

        Raises:
            QueueFullError: they do not fit into the queue beside those that wait; none is queued.
        """
        with self._wake:
            if self.waiting + len(jobs) > max(len(self.engine.free) + self.queue, 1):
                raise QueueFullError(f"{self.waiting} requests wait already")
            self._arrived.extend(jobs)
            self._wake.notify()

    @staticmethod
    def cancel(jobs: Sequence[Job]) -> None:
        """End answers that nobody waits for any more; their slots become free before the next step."""
        for job in jobs:
            job.cancelled = True

    def close(self) -> None:
        """End every answer and stop the thread."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        self._thread.join()

    @property
    def alive(self) -> bool:
        """Whether the thread still generates."""
        return self._thread.is_alive()

    @property
    def waiting(self) -> int:
        """Answers that wait for a slot."""
        return len(self._arrived) + len(self.engine.waiting)

    @property
    def busy(self) -> int:
        """Slots in use."""
        return len(self.engine.slots) - len(self.engine.free)

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._closed or self._arrived or self.engine.busy)
                self.engine.waiting.extend(self._arrived)
                self._arrived.clear()
            if self._closed:
                break
            try:
                events = self.engine.turn()
            except Exception as e:  # a server goes on; the requests under way are told
                log.exception("a step failed")
                events = self.engine.fail(f"{type(e).__name__}: {e}", waiting=False)
            if events:
                self.deliver(events)
        self.deliver(self.engine.fail("the server stops", waiting=True))
