"""The thread that generates for the server: a queue before the engine."""

import logging
import threading
from collections.abc import Callable, Sequence

from datakit.errors import ConfigError
from train.model.batching import Engine, Job, Token
from train.model.decoder import CausalLM

log = logging.getLogger(__name__)


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
