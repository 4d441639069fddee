"""Generation: answers together are those of each alone; sampling as transformers has it; text that comes in pieces."""

import copy
import threading
import time
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from datakit.errors import ConfigError
from tests.train.generation import generate
from tests.train.runs import small_model
from train.generate import ready
from train.model import CausalLM
from train.serve import batching
from train.serve.batching import Job, SampleConfig, Sampling, TextStream, Token


@pytest.fixture(scope="module")
def model() -> CausalLM:
    found = small_model(3, vocab_size=97, hidden_size=48, num_heads=6, intermediate_size=64, max_positions=512)
    with torch.no_grad():
        for p in found.parameters():  # far from uniform, so that a wrong position or mask changes the ids
            p.mul_(3)
    return found.eval()


class Run:
    """An engine whose answers are collected."""

    def __init__(self, model: CausalLM, **options: int) -> None:
        self.results = dict[int, list[Token]]()
        self.engine = batching.Engine(model, **options)

    def job(self, name: int, prompt: list[int], **sampling: object) -> Job:
        tokens = self.results.setdefault(name, [])
        return Job(prompt, Sampling(**sampling), receive=tokens.append)

    def answer(self, *jobs: Job) -> list[list[int]]:
        self.engine.waiting.extend(jobs)
        while self.engine.busy:
            self.engine.turn()
        return [job.answer for job in jobs]


def sampled(new: int, temperature: float = 0.0, seed: int = 0, **more: object) -> dict:
    return {"max_new_tokens": new, "temperature": temperature, "seed": seed, "top_p": 0.95, **more}


def prompts_of(*lengths: int) -> list[list[int]]:
    g = torch.Generator().manual_seed(1)
    return [torch.randint(0, 97, (n,), generator=g).tolist() for n in lengths]


def same(found: list[Token], expected: list[Token]) -> None:
    """Equal tokens, and log-probabilities but for the last bits: sums depend on the rows of a product."""
    assert [(t.id, t.finish) for t in found] == [(t.id, t.finish) for t in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-4)
        assert dict(one.top) == pytest.approx(dict(other.top), abs=1e-4)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_answer_is_the_same_whatever_else_is_served(model, temperature, monkeypatch):
    """With prompts below, at and above the tokens that are read between two steps."""
    monkeypatch.setattr(batching, "PROMPT_TOKENS", 64)
    prompts = prompts_of(1, 2, 63, 64, 65, 128, 137, 7, 30, 31, 5, 6, 8, 9, 10, 11, 12, 40)
    asked = [sampled(20 + i, temperature, seed=i, logprobs=2) for i in range(len(prompts))]
    together = Run(model, slots=18)
    together.answer(*(together.job(i, prompt, **asked[i]) for i, prompt in enumerate(prompts)))
    for i, prompt in enumerate(prompts):
        run = Run(model, slots=1)
        run.answer(run.job(0, prompt, **asked[i]))
        same(together.results[i], run.results[0])


def test_a_lone_answer_costs_one_row_and_others_add_theirs(model, monkeypatch):
    """A step has the rows of the answers under way, whatever the number of slots."""
    rows, forward = list[int](), model.forward
    monkeypatch.setattr(model, "forward", lambda ids, *more: rows.append(len(ids)) or forward(ids, *more))
    run, (one, two) = Run(model, slots=16), prompts_of(5, 6)
    run.answer(run.job(0, one, **sampled(4)))
    assert rows == [1] * 4  # the prompt, which gives the first token, and three steps
    rows.clear()
    run.answer(run.job(1, one, **sampled(6)), run.job(2, two, **sampled(3)))
    assert rows == [1, 1, 2, 2, 1, 1, 1]


def test_matrices_laid_out_for_few_rows_give_the_same_answers(model):
    laid, prompts = ready(copy.deepcopy(model), torch.device("cpu"), half=False), prompts_of(5, 30)
    high = [m.weight for m in laid.modules() if isinstance(m, torch.nn.Linear) and m.out_features > m.in_features]
    assert len(high) == 2 * 2 + 1 and all(w.stride(0) == 1 for w in high), "gate, up, and the head"
    assert laid.lm_head.weight is laid.model.embed_tokens.weight
    config = SampleConfig(max_new_tokens=20)
    assert generate(laid, prompts, frozenset(), config) == generate(model, prompts, frozenset(), config)
    assert ready(laid, torch.device("cpu"), half=True).lm_head.weight.dtype == torch.bfloat16


def test_what_prompts_share_is_computed_once_and_changes_nothing(model):
    shared, *ends = prompts_of(128, 5, 6, 7)
    prompts = [shared + end for end in ends]
    run = Run(model, slots=2)
    for i, prompt in enumerate(prompts):
        run.answer(run.job(i, prompt, **sampled(10, logprobs=0)))
    assert run.engine.reused_tokens == 2 * 128  # all but the first
    run.answer(*(run.job(10 + i, prompt, **sampled(10, logprobs=0)) for i, prompt in enumerate(prompts)))
    for i, prompt in enumerate(prompts):
        fresh = Run(model, slots=1)
        fresh.answer(fresh.job(0, prompt, **sampled(10, logprobs=0)))
        same(run.results[i], fresh.results[0])
        same(run.results[10 + i], fresh.results[0])


def test_a_conversation_goes_on_from_what_its_slot_holds(model):
    """The answer's keys and values are kept too, all but those of its last token."""
    (prompt, more) = prompts_of(20, 5)
    run = Run(model, slots=1)
    (answer,) = run.answer(run.job(0, prompt, **sampled(10)))
    turn = run.job(1, [*prompt, *answer, *more], **sampled(10))
    (found,) = run.answer(turn)
    assert turn.reused == 20 + 9
    assert found == generate(model, [[*prompt, *answer, *more]], frozenset(), SampleConfig(max_new_tokens=10))[0]
    again = run.job(2, prompt, **sampled(10))
    assert run.answer(again) == [answer] and again.reused == 19, "the last token of a prompt is read: it has the logits"


def test_attention_of_all_slots_at_once_gives_the_same(model, monkeypatch):
    """The way that a GPU takes, on CPU."""
    prompts = prompts_of(3, 69, 30)
    expected = generate(model, prompts, frozenset(), SampleConfig(max_new_tokens=30))
    one_by_one = batching.SlotCache.attention
    chosen = lambda self, slots, new: self.together(slots) if new == 1 else one_by_one(self, slots, new)  # noqa: E731
    monkeypatch.setattr(batching.SlotCache, "attention", chosen)
    assert generate(model, prompts, frozenset(), SampleConfig(max_new_tokens=30)) == expected


def test_an_answer_ends_at_a_stop_id_at_its_length_and_at_the_end_of_the_context(model):
    (prompt,) = prompts_of(10)
    run = Run(model, slots=2, context=32)
    long, short = run.answer(run.job(0, prompt, **sampled(100)), run.job(1, prompt, **sampled(4)))
    assert (len(long), run.results[0][-1].finish) == (22, "length")
    assert (short, run.results[1][-1].finish) == (long[:4], "length")
    at = long.index(long[5])
    assert run.answer(run.job(2, prompt, **sampled(100, stop_ids=frozenset({long[5]})))) == [long[: at + 1]]
    assert run.results[2][-1].finish == "stop"


def test_penalties_and_biases_change_the_answer_as_they_say(model):
    (prompt,) = prompts_of(10)
    run = Run(model, slots=4)
    biased, alternating, different, plain, _ = run.answer(
        run.job(0, prompt, **sampled(20, logit_bias={5: 1000.0})),
        run.job(1, prompt, **sampled(20, logit_bias={5: 1000.0}, frequency_penalty=600.0)),
        run.job(2, prompt, **sampled(20, presence_penalty=1e6)),
        run.job(3, prompt, **sampled(20)),
        run.job(4, prompt, **sampled(1, logprobs=0, logit_bias={5: 1000.0})),
    )
    assert run.results[4][0].logprob < -0.1, "the logits are reported as the model gave them"
    assert biased == [5] * 20 and len(set(different)) == 20
    assert alternating[:2] == [5, 5] and set(alternating[2:]) != {5}
    assert plain == generate(model, [prompt], frozenset(), SampleConfig(max_new_tokens=20))[0]


class Served:
    """A batcher whose answers are collected."""

    def __init__(self, model: CausalLM, **options: int) -> None:
        self.ended, self.results = threading.Condition(), dict[int, list[Token]]()
        self.batcher = batching.Batcher(model, **options)

    def job(self, name: int, prompt: list[int], new: int, seconds: float = 600) -> Job:
        tokens = self.results.setdefault(name, [])

        def receive(token: Token) -> None:
            with self.ended:
                tokens.append(token)
                self.ended.notify_all()

        return Job(prompt, Sampling(max_new_tokens=new), time.monotonic() + seconds, receive)

    def wait(self, *names: int) -> list[list[int]]:
        with self.ended:
            done = self.ended.wait_for(lambda: all(any(t.finish for t in self.results[n]) for n in names), timeout=120)
        assert done, "no end in two minutes"
        return [[t.id for t in self.results[n] if t.id >= 0] for n in names]


def test_places_become_free_when_answers_are_cancelled_or_take_too_long(model):
    prompts = prompts_of(50, 51, 52, 53)
    run = Served(model, slots=2, queue=2)
    jobs = [run.job(i, p, 400) for i, p in enumerate(prompts[:2])]
    jobs += [run.job(2, prompts[2], 200), run.job(3, prompts[3], 200, seconds=-1)]
    run.batcher.submit(jobs)
    with pytest.raises(batching.QueueFullError, match="wait already"):
        run.batcher.submit([run.job(9, prompts[0], 5)])
    for job in jobs[:3]:
        job.cancelled = True
    run.wait(0, 1, 2, 3)
    assert [run.results[i][-1].finish for i in range(4)] == ["cancelled"] * 3 + ["timeout"]
    assert (len(run.batcher.engine.free), run.batcher.waiting) == (2, 0)
    run.batcher.submit([run.job(5, prompts[0], 3)])
    assert len(run.wait(5)[0]) == 3
    run.batcher.close()


@pytest.mark.parametrize("part", ["forward", "copy"])
def test_a_step_that_fails_ends_its_requests_and_the_next_ones_are_served(model, monkeypatch, part):
    (prompt,) = prompts_of(10)
    run = Served(model, slots=1)
    with monkeypatch.context() as patch:
        patch.setattr(model if part == "forward" else batching.SlotCache, part, lambda *a: 1 / 0)
        run.batcher.submit([run.job(0, prompt, 3)])
        run.wait(0)
    assert (run.results[0][-1].finish, "ZeroDivisionError" in run.results[0][-1].message) == ("error", True)
    run.batcher.submit([run.job(1, prompt, 3)])
    assert len(run.wait(1)[0]) == 3
    run.batcher.close()


def reference(logits_BV: torch.Tensor, c: SampleConfig) -> torch.Tensor:
    transformers = pytest.importorskip("transformers")
    steps = [transformers.TopKLogitsWarper(c.top_k)] if c.top_k else []
    steps += [transformers.TopPLogitsWarper(c.top_p)] if c.top_p < 1 else []
    steps += [transformers.MinPLogitsWarper(c.min_p)] if c.min_p else []
    for step in steps:
        logits_BV = step(None, logits_BV)
    return logits_BV.softmax(-1)


def test_what_is_left_out_is_what_transformers_leaves_out():
    """Each row by its own settings, all rows together."""
    values = [{"top_k": 5}, {"top_p": 0.7}, {"min_p": 0.1}, {"top_k": 40, "top_p": 0.9, "min_p": 0.02}, {}]
    configs = [SampleConfig(**v) for v in (*values, {"top_p": 1e-6}, {"top_k": 1}, {"top_k": 500})]
    logits_NV = torch.randn(len(configs), 100, generator=torch.Generator().manual_seed(0)) * 3
    expected = [reference(row[None], config)[0] for row, config in zip(logits_NV, configs, strict=True)]
    torch.testing.assert_close(batching.filtered(logits_NV, configs).softmax(-1), torch.stack(expected))


def test_repetition_counts_as_transformers_has_it():
    transformers = pytest.importorskip("transformers")
    logits_BV = torch.randn(4, 20, generator=torch.Generator().manual_seed(1))
    ids_BT = logits_BV.topk(2).indices
    expected = transformers.RepetitionPenaltyLogitsProcessor(9.0)(ids_BT, logits_BV.clone())
    sampling = Sampling(repetition_penalty=9.0)
    for ids, row in zip(ids_BT.tolist(), logits_BV, strict=True):
        sampling.edit(ids[:1], ids[1:], row)
    torch.testing.assert_close(logits_BV, expected)


def test_draws_follow_the_probabilities():
    logits_BV = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log().expand(4000, 4)
    found = batching.drawn(logits_BV, [torch.Generator().manual_seed(i) for i in range(4000)])
    np.testing.assert_allclose(np.bincount(found, minlength=4) / 4000, [0.5, 0.3, 0.15, 0.05], atol=0.03)


@pytest.mark.parametrize(
    "values", [{"temperature": -1}, {"top_p": 0.0}, {"min_p": 1.1}, {"repetition_penalty": 0.0}, {"top_k": -1}]
)
def test_values_without_a_meaning_are_refused(values):
    with pytest.raises(ConfigError):
        SampleConfig(**values)


def decode_bytes(ids: Sequence[int]) -> str:
    return bytes(ids).decode(errors="replace")


@settings(max_examples=200)
@given(st.text("abé語😀", max_size=30), st.lists(st.text("abé語", min_size=1, max_size=3), max_size=3))
def test_a_stream_gives_the_text_up_to_the_first_stop_string(text, stop):
    """Bytes one by one, so that most tokens end within a character."""
    stream, said = TextStream(decode_bytes, stop), ""
    for byte in text.encode():
        said += stream.add(byte)
        assert "\ufffd" not in said
        if stream.ended:
            break
    said += stream.end()
    # the first to be complete wins, and of those complete at once the one that begins first
    ends = [(text.find(s) + len(s), text.find(s)) for s in stop if s in text]
    assert said == (text[: min(ends)[1]] if ends else text)


def test_a_character_that_never_ends_is_given_at_the_end():
    stream = TextStream(decode_bytes)
    assert [stream.add(b) for b in b"a" + "語".encode()[:2]] == ["a", "", ""]
    assert stream.end() == "\ufffd"
