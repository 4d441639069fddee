"""Answers as tokens, for tests that compare them with another program's."""

from collections.abc import Sequence

from train.model import CausalLM
from train.serve.batching import SampleConfig, jobs_of, stream


def generate(
    model: CausalLM, prompts: Sequence[Sequence[int]], stop_ids: frozenset[int], config: SampleConfig
) -> list[list[int]]:
    """The answer to each prompt, generated together, without the stop token that ended it."""
    jobs = jobs_of(prompts, stop_ids, config)
    for _ in stream(model, jobs):
        pass
    return [job.answer[: len(job.answer) - (job.answer[-1] in stop_ids)] for job in jobs]
