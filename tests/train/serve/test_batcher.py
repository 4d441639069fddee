"""The queue before the generating thread."""

import threading
import time

import pytest
import torch

from train.batching import Job, Sampling, Token
from train.model import CausalLM, ModelConfig
from train.sample import SampleConfig
from train.serve.batcher import Batcher, QueueFullError

CONFIG = ModelConfig(
    vocab_size=97, hidden_size=48, num_layers=2, num_heads=6, num_kv_heads=2, head_dim=8, intermediate_size=64,
    max_positions=256,
)  # fmt: skip


@pytest.fixture(scope="module")
def model() -> CausalLM:
    found = CausalLM(CONFIG)
    found.init_weights(torch.Generator().manual_seed(3))
    return found.eval()


class Run:
    """A batcher whose answers are collected."""

    def __init__(self, model: CausalLM, **options: int) -> None:
        self.ended, self.results = threading.Condition(), dict[int, list[Token]]()
        self.batcher = Batcher(model, self._take, **options)

    def _take(self, events: list[tuple[Job, Token]]) -> None:
        with self.ended:
            for job, token in events:
                job.receive(token)
            self.ended.notify_all()

    def job(self, name: int, prompt: list[int], new: int, seconds: float = 600) -> Job:
        tokens = self.results.setdefault(name, [])
        sampling = Sampling(config=SampleConfig(max_new_tokens=new))
        return Job(prompt, sampling, time.monotonic() + seconds, tokens.append)

    def wait(self, *names: int) -> list[list[int]]:
        with self.ended:
            done = self.ended.wait_for(lambda: all(any(t.finish for t in self.results[n]) for n in names), timeout=120)
        assert done, "no end in two minutes"
        return [[t.id for t in self.results[n] if t.id >= 0] for n in names]


def prompts_of(*lengths: int) -> list[list[int]]:
    g = torch.Generator().manual_seed(1)
    return [torch.randint(0, 97, (n,), generator=g).tolist() for n in lengths]


def test_places_become_free_when_answers_are_cancelled_or_take_too_long(model: CausalLM) -> None:
    prompts = prompts_of(50, 51, 52, 53)
    run = Run(model, slots=2, queue=2)
    jobs = [run.job(i, p, 200) for i, p in enumerate(prompts[:2])]
    jobs += [run.job(2, prompts[2], 200), run.job(3, prompts[3], 200, seconds=-1)]
    run.batcher.submit(jobs)
    with pytest.raises(QueueFullError, match="wait already"):
        run.batcher.submit([run.job(9, prompts[0], 5)])
    run.batcher.cancel(jobs[:3])
    run.wait(0, 1, 2, 3)
    assert [run.results[i][-1].finish for i in range(4)] == ["cancelled"] * 3 + ["timeout"]
    assert (run.batcher.busy, run.batcher.waiting) == (0, 0)
    run.batcher.submit([run.job(5, prompts[0], 3)])
    assert len(run.wait(5)[0]) == 3
    run.batcher.close()


def test_a_step_that_fails_ends_its_requests_and_the_next_ones_are_served(
    model: CausalLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    (prompt,) = prompts_of(10)
    run = Run(model, slots=2)
    with monkeypatch.context() as patch:
        patch.setattr(model, "forward", lambda *a: 1 / 0)
        run.batcher.submit([run.job(0, prompt, 3)])
        run.wait(0)
    assert (run.results[0][-1].finish, "ZeroDivisionError" in run.results[0][-1].message) == ("error", True)
    run.batcher.submit([run.job(1, prompt, 3)])
    assert len(run.wait(1)[0]) == 3
    run.batcher.close()
