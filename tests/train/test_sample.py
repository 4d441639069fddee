"""The choice of the next token against transformers' own processors, and text that comes piece by piece."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from datakit.errors import ConfigError
from train.batching import Job, Sampling
from train.sample import SampleConfig, TextStream, drawn, filtered


def reference(logits_BV: torch.Tensor, c: SampleConfig) -> torch.Tensor:
    transformers = pytest.importorskip("transformers")
    steps = [transformers.TemperatureLogitsWarper(c.temperature)]
    steps += [transformers.TopKLogitsWarper(c.top_k)] if c.top_k else []
    steps += [transformers.TopPLogitsWarper(c.top_p)] if c.top_p < 1 else []
    steps += [transformers.MinPLogitsWarper(c.min_p)] if c.min_p else []
    for step in steps:
        logits_BV = step(None, logits_BV)
    return logits_BV.softmax(-1)


@pytest.mark.parametrize(
    "values",
    [
        {"top_k": 5},
        {"top_p": 0.7},
        {"min_p": 0.1},
        {"top_k": 40, "top_p": 0.9, "min_p": 0.02, "temperature": 1.7},
        {"top_p": 1e-6},
        {"top_k": 1},
    ],
)
def test_what_is_left_out_is_what_transformers_leaves_out(values: dict) -> None:
    config = SampleConfig(**({"temperature": 0.8} | values))
    logits_BV = torch.randn(6, 100, generator=torch.Generator().manual_seed(0)) * 3
    found = filtered(logits_BV / config.temperature, config).softmax(-1)
    torch.testing.assert_close(found, reference(logits_BV, config))


def test_repetition_counts_as_transformers_has_it() -> None:
    transformers = pytest.importorskip("transformers")
    logits_BV = torch.randn(4, 20, generator=torch.Generator().manual_seed(1))
    ids_BT = logits_BV.topk(2).indices
    expected = transformers.RepetitionPenaltyLogitsProcessor(9.0)(ids_BT, logits_BV.clone()).argmax(-1)
    sampling = Sampling(config=SampleConfig(repetition_penalty=9.0))
    found = [sampling.token(Job(ids, sampling), row).id for ids, row in zip(ids_BT.tolist(), logits_BV, strict=True)]
    assert found == expected.tolist()
    assert logits_BV.argmax(-1).tolist() != expected.tolist()  # else nothing was tested


def test_draws_follow_the_probabilities() -> None:
    logits_BV = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log().expand(4000, 4)
    generators = [torch.Generator().manual_seed(i) for i in range(4000)]
    found = drawn(logits_BV, generators)
    shares = np.bincount(found, minlength=4) / 4000
    np.testing.assert_allclose(shares, [0.5, 0.3, 0.15, 0.05], atol=0.03)


@pytest.mark.parametrize(
    "values", [{"temperature": -1}, {"top_p": 0.0}, {"min_p": 1.1}, {"repetition_penalty": 0.0}, {"top_k": -1}]
)
def test_values_without_a_meaning_are_refused(values: dict) -> None:
    with pytest.raises(ConfigError):
        SampleConfig(**values)


def decode_bytes(ids: Sequence[int]) -> str:
    return bytes(ids).decode(errors="replace")


@settings(max_examples=200, deadline=None)
@given(
    st.text(alphabet="abé語😀", max_size=30), st.lists(st.text(alphabet="abé語", min_size=1, max_size=3), max_size=3)
)
def test_a_stream_gives_the_text_up_to_the_first_stop_string(text: str, stop: list[str]) -> None:
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


def test_a_character_that_never_ends_is_given_at_the_end() -> None:
    stream = TextStream(decode_bytes)
    assert [stream.add(b) for b in b"a" + "語".encode()[:2]] == ["a", "", ""]
    assert stream.end() == "\ufffd"
