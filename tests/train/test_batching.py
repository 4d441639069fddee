"""Answers generated together are those that each request gets alone."""

import pytest
import torch

from tests.train.generation import generate
from train.batching import CHUNK, Engine, Job, Token
from train.model import CausalLM, ModelConfig
from train.sample import SampleConfig
from train.serve.batcher import RequestSampling

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
    """An engine whose answers are collected."""

    def __init__(self, model: CausalLM, **options: int) -> None:
        self.results = dict[int, list[Token]]()
        self.engine = Engine(model, **options)

    def job(self, name: int, prompt: list[int], **sampling: object) -> Job:
        tokens = self.results.setdefault(name, [])
        return Job(prompt, RequestSampling(**sampling), receive=tokens.append)

    def answer(self, *jobs: Job) -> list[list[int]]:
        self.engine.waiting.extend(jobs)
        while self.engine.busy:
            for job, token in self.engine.turn():
                job.receive(token)
        return [job.answer for job in jobs]


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
        run.answer(run.job(0, prompt, **asked[i]))
        alone.append(run.results[0])
    together = Run(model, slots=18)
    together.answer(*(together.job(i, prompt, **asked[i]) for i, prompt in enumerate(prompts)))
    assert [together.results[i] for i in range(len(prompts))] == alone


def test_fewer_answers_than_a_tile_are_the_same(model: CausalLM) -> None:
    """`generate` pads to as many answers as there are."""
    prompts = prompts_of(3, CHUNK, 100, 17)
    run = Run(model, slots=3)
    found = run.answer(*(run.job(i, prompt, **sampled(40)) for i, prompt in enumerate(prompts)))
    config = SampleConfig(max_new_tokens=40)
    assert found == [generate(model, [prompt], frozenset(), config)[0] for prompt in prompts]
    assert found == generate(model, prompts, frozenset(), config)


def test_what_prompts_share_is_computed_once_and_changes_nothing(model: CausalLM) -> None:
    shared, *ends = prompts_of(2 * CHUNK, 5, 6, 7)
    prompts = [shared + end for end in ends]
    run = Run(model, slots=2)
    for i, prompt in enumerate(prompts):
        run.answer(run.job(i, prompt, **sampled(10, logprobs=0)))
    run.answer(*(run.job(10 + i, prompt, **sampled(10, logprobs=0)) for i, prompt in enumerate(prompts)))
    assert run.engine.reused_tokens == 5 * 2 * CHUNK  # all but the first
    for i, prompt in enumerate(prompts):
        fresh = Run(model, slots=1)
        fresh.answer(fresh.job(0, prompt, **sampled(10, logprobs=0)))
        assert fresh.results[0] == run.results[i] == run.results[10 + i]


def test_attention_of_all_slots_at_once_gives_the_same(model: CausalLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way that a GPU takes, on CPU."""
    prompts = prompts_of(3, CHUNK + 5, 30)
    found = []
    for one_by_one in (True, False):
        monkeypatch.setattr("train.batching.SlotCache.one_by_one", one_by_one)
        run = Run(model, slots=3)
        found.append(run.answer(*(run.job(i, prompt, **sampled(30)) for i, prompt in enumerate(prompts))))
    assert found[0] == found[1]


def test_an_answer_ends_at_a_stop_id_at_its_length_and_at_the_end_of_the_context(model: CausalLM) -> None:
    (prompt,) = prompts_of(10)
    run = Run(model, slots=2, context=32)
    long, short = run.answer(run.job(0, prompt, **sampled(100)), run.job(1, prompt, **sampled(4)))
    assert (len(long), run.results[0][-1].finish) == (22, "length")
    assert (short, run.results[1][-1].finish) == (long[:4], "length")
    at = long.index(long[5])
    assert run.answer(run.job(2, prompt, **sampled(100, stop_ids=frozenset({long[5]})))) == [long[: at + 1]]
    assert run.results[2][-1].finish == "stop"


def test_penalties_and_biases_change_the_answer_as_they_say(model: CausalLM) -> None:
    (prompt,) = prompts_of(10)
    run = Run(model, slots=4)
    biased, alternating, different = run.answer(
        run.job(0, prompt, **sampled(20, logit_bias={5: 1000.0})),
        run.job(1, prompt, **sampled(20, logit_bias={5: 1000.0}, frequency_penalty=600.0)),
        run.job(2, prompt, **sampled(20, presence_penalty=1e6)),
    )
    assert biased == [5] * 20
    assert alternating[:2] == [5, 5]
    assert set(alternating[2:]) != {5}
    assert len(set(different)) == 20
