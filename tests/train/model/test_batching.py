"""Answers generated together are those that each request gets alone."""

import threading
import time

import pytest
import torch

from train.model.batching import CHUNK, Batcher, Job, QueueFullError, Sampling, Token
from train.model.decoder import CausalLM, ModelConfig
from train.model.sample import SampleConfig, generate

CONFIG = ModelConfig(
    vocab_size=97, hidden_size=48, num_layers=2, num_heads=6, num_kv_heads=2, head_dim=8, intermediate_size=64,
    max_positions=256,
)  # fmt: skip


@pytest.fixture(scope="module")
def model() -> CausalLM:
    found = CausalLM(CONFIG)
    found.init_weights(torch.Generator().manual_seed(3))
    with torch.no_grad():
        for p in found.parameters():  # far from uniform, so that a wrong position or mask changes the ids
            p.mul_(3)
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

    def job(self, name: int, prompt: list[int], seconds: float = 600, **sampling: object) -> Job:
        tokens = self.results.setdefault(name, [])
        return Job(prompt, Sampling(**sampling), time.monotonic() + seconds, tokens.append)

    def wait(self, *names: int) -> list[list[int]]:
        with self.ended:
            done = self.ended.wait_for(lambda: all(any(t.finish for t in self.results[n]) for n in names), timeout=120)
        assert done, "no end in two minutes"
        return [[t.id for t in self.results[n] if t.id >= 0] for n in names]


def sampled(new: int, temperature: float = 0.0, seed: int = 0, **more: object) -> dict:
    return {"config": SampleConfig(max_new_tokens=new, temperature=temperature, seed=seed, top_p=0.95), **more}


def prompts_of(*lengths: int) -> list[list[int]]:
    g = torch.Generator().manual_seed(1)
    return [torch.randint(0, 97, (n,), generator=g).tolist() for n in lengths]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_answer_does_not_depend_on_what_else_is_served(model: CausalLM, temperature: float) -> None:
    """Equal to the bit: log-probabilities too."""
    prompts = prompts_of(
        1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 9, 7, 30, 31, 5, 6, 8, 9, 10, 11, 12, 40
    )
    asked = [sampled(20 + i, temperature, seed=i, logprobs=2) for i in range(len(prompts))]
    alone = []
    for i, prompt in enumerate(prompts):
        run = Run(model, slots=1)
        run.batcher.submit([run.job(0, prompt, **asked[i])])
        run.wait(0)
        alone.append(run.results[0])
        run.batcher.close()
    together = Run(model, slots=18)
    together.batcher.submit([together.job(i, prompt, **asked[i]) for i, prompt in enumerate(prompts)])
    together.wait(*range(len(prompts)))
    together.batcher.close()
    assert [together.results[i] for i in range(len(prompts))] == alone


def test_greedy_answers_are_those_of_generate(model: CausalLM) -> None:
    prompts = prompts_of(3, CHUNK, 100, 17)
    run = Run(model, slots=3)
    run.batcher.submit([run.job(i, prompt, **sampled(40)) for i, prompt in enumerate(prompts)])
    found = run.wait(0, 1, 2, 3)
    run.batcher.close()
    expected = [
        [step[0] for step in generate(model, [p], frozenset(), SampleConfig(max_new_tokens=40))] for p in prompts
    ]
    assert found == expected


def test_what_prompts_share_is_computed_once_and_changes_nothing(model: CausalLM) -> None:
    shared, *ends = prompts_of(2 * CHUNK, 5, 6, 7)
    prompts = [shared + end for end in ends]
    run = Run(model, slots=2)
    for i, prompt in enumerate(prompts):
        run.batcher.submit([run.job(i, prompt, **sampled(10, logprobs=0))])
        run.wait(i)
    run.batcher.submit([run.job(10 + i, prompt, **sampled(10, logprobs=0)) for i, prompt in enumerate(prompts)])
    run.wait(10, 11, 12)
    assert run.batcher.reused_tokens == 5 * 2 * CHUNK  # all but the first
    run.batcher.close()
    for i, prompt in enumerate(prompts):
        fresh = Run(model, slots=1)
        fresh.batcher.submit([fresh.job(0, prompt, **sampled(10, logprobs=0))])
        fresh.wait(0)
        fresh.batcher.close()
        assert fresh.results[0] == run.results[i] == run.results[10 + i]


def test_attention_of_all_slots_at_once_gives_the_same(model: CausalLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way that a GPU takes, on CPU."""
    prompts = prompts_of(3, CHUNK + 5, 30)
    found = []
    for one_by_one in (True, False):
        monkeypatch.setattr("train.model.batching.SlotCache.one_by_one", one_by_one)
        run = Run(model, slots=3)
        run.batcher.submit([run.job(i, prompt, **sampled(30)) for i, prompt in enumerate(prompts)])
        found.append(run.wait(0, 1, 2))
        run.batcher.close()
    assert found[0] == found[1]


def test_an_answer_ends_at_a_stop_id_at_its_length_and_at_the_end_of_the_context(model: CausalLM) -> None:
    (prompt,) = prompts_of(10)
    run = Run(model, slots=2, context=32)
    run.batcher.submit([run.job(0, prompt, **sampled(100)), run.job(1, prompt, **sampled(4))])
    long, short = run.wait(0, 1)
    assert (len(long), run.results[0][-1].finish) == (22, "length")
    assert (short, run.results[1][-1].finish) == (long[:4], "length")
    at = long.index(long[5])
    run.batcher.submit([run.job(2, prompt, **sampled(100, stop_ids=frozenset({long[5]})))])
    assert run.wait(2) == [long[: at + 1]]
    assert run.results[2][-1].finish == "stop"
    run.batcher.close()


def test_penalties_and_biases_change_the_answer_as_they_say(model: CausalLM) -> None:
    (prompt,) = prompts_of(10)
    run = Run(model, slots=4)
    run.batcher.submit([
        run.job(0, prompt, **sampled(20, logit_bias={5: 1000.0})),
        run.job(1, prompt, **sampled(20, logit_bias={5: 1000.0}, frequency_penalty=600.0)),
        run.job(2, prompt, **sampled(20, presence_penalty=1e6)),
    ])  # fmt: skip
    biased, alternating, different = run.wait(0, 1, 2)
    run.batcher.close()
    assert biased == [5] * 20
    assert alternating[:2] == [5, 5]
    assert set(alternating[2:]) != {5}
    assert len(set(different)) == 20


def test_places_become_free_when_answers_are_cancelled_or_take_too_long(model: CausalLM) -> None:
    prompts = prompts_of(50, 51, 52, 53)
    run = Run(model, slots=2, queue=2)
    jobs = [run.job(i, p, **sampled(200)) for i, p in enumerate(prompts[:2])]
    jobs += [run.job(2, prompts[2], **sampled(200)), run.job(3, prompts[3], seconds=-1, **sampled(200))]
    run.batcher.submit(jobs)
    with pytest.raises(QueueFullError, match="wait already"):
        run.batcher.submit([run.job(9, prompts[0], **sampled(5))])
    run.batcher.cancel(jobs[:3])
    run.wait(0, 1, 2, 3)
    assert [run.results[i][-1].finish for i in range(4)] == ["cancelled"] * 3 + ["timeout"]
    assert (run.batcher.busy, len(run.batcher.waiting)) == (0, 0)
    run.batcher.submit([run.job(5, prompts[0], **sampled(3))])
    assert len(run.wait(5)[0]) == 3
    run.batcher.close()


def test_a_step_that_fails_ends_its_requests_and_the_next_ones_are_served(
    model: CausalLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    (prompt,) = prompts_of(10)
    run = Run(model, slots=2)
    with monkeypatch.context() as patch:
        patch.setattr(model, "forward", lambda *a: 1 / 0)
        run.batcher.submit([run.job(0, prompt, **sampled(3))])
        run.wait(0)
    assert (run.results[0][-1].finish, "ZeroDivisionError" in run.results[0][-1].message) == ("error", True)
    run.batcher.submit([run.job(1, prompt, **sampled(3))])
    assert len(run.wait(1)[0]) == 3
    run.batcher.close()
