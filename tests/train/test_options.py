"""A capped head and experts: packed and unpacked, in half precision, generating, resumed."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from datakit.errors import UsageError
from tests.train.generation import generate
from train.attention import Segments, masked_attention
from train.config import MoeConfig
from train.data import Batch, Mixture, PackedSet, collate
from train.model import PRESETS, CausalLM, ModelConfig
from train.serve.batching import SampleConfig
from train.sft import LabelConfig, label_loss
from train.sft import main as sft
from train.stream import MicroBatch

SMALL = replace(
    PRESETS["tiny"], vocab_size=300, num_layers=3, hidden_size=32, head_dim=8, num_heads=4, num_kv_heads=2,
    intermediate_size=48,
)  # fmt: skip
CONFIGS = {
    "logit_softcap": replace(SMALL, logit_softcap=2.0),
    "experts": replace(SMALL, moe=MoeConfig(num_experts=4, experts_per_token=2, expert_size=16), qk_norm=True),
}


def made(config: ModelConfig) -> CausalLM:
    """A model whose scales, which begin near zero, are all at work."""
    model = CausalLM(config)
    generator = torch.Generator().manual_seed(0)
    model.init_weights(generator)
    with torch.no_grad():
        for p in model.parameters():
            p += 0.1 * torch.randn(p.shape, generator=generator)
    return model


@pytest.fixture(scope="module", params=CONFIGS)
def config(request: pytest.FixtureRequest) -> ModelConfig:
    return CONFIGS[request.param]


@pytest.fixture(scope="module")
def batches(pack: Callable, random_rows: Callable) -> tuple[Batch, Batch]:
    """The same sequences, several a row and one a row."""
    rows = random_rows(5, 64)
    assert max(map(len, rows)) >= 3
    sets = [PackedSet.open_all(pack(r, seq_len=64))[0] for r in (rows, [[piece] for row in rows for piece in row])]
    found = [collate(Mixture([s]), MicroBatch(torch.arange(len(s.lengths)).numpy(), 64), len(s.lengths)) for s in sets]
    return found[0], found[1]


def gradients(model: CausalLM, loss: Tensor) -> list[Tensor]:
    found = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return [loss.detach()] + [torch.zeros_like(p) if g is None else g for g, p in zip(found, model.parameters())]  # noqa: B905


def plainest(model: CausalLM, batch: Batch) -> Tensor:
    attend = masked_attention(batch.segments)
    hidden = model(batch.ids_BT, batch.segments.positions_BT, attend)
    logits = model.lm_head(hidden.flatten(0, 1)).float()  # of every position
    return F.cross_entropy(logits[batch.label_pos_L], batch.targets_L)


def equal(one: list[Tensor], other: list[Tensor]) -> None:
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-3)


def test_packed_sequences_have_the_loss_and_gradients_they_have_alone(config: ModelConfig, batches: tuple) -> None:
    model = made(config)
    equal(*(gradients(model, plainest(model, batch)) for batch in batches))


@pytest.mark.parametrize("chunk", [0, 7])
@pytest.mark.parametrize("label_only", [True, False])
def test_every_saving_gives_the_plainest_loss_and_gradients(
    config: ModelConfig, batches: tuple, chunk: int, label_only: bool
) -> None:
    model, batch = made(config), batches[0]
    total, count = label_loss(LabelConfig(label_only=label_only, loss_chunk=chunk))(model, batch)[:2]
    equal(gradients(model, total / count), gradients(model, plainest(model, batch)))


def test_activations_computed_again_change_nothing(config: ModelConfig, batches: tuple) -> None:
    model, batch = made(config), batches[0]
    expected = gradients(model, plainest(model, batch))
    model.checkpoint_every = 1
    equal(gradients(model, plainest(model, batch)), expected)


def test_no_token_sees_a_later_one(config: ModelConfig) -> None:
    model, ids = made(config), torch.randint(0, 300, (1, 20), generator=torch.Generator().manual_seed(0))
    changed = ids.clone()
    changed[0, 12] = (ids[0, 12] + 1) % 300
    one, other = (logits(model, x) for x in (ids, changed))
    assert torch.equal(one[:, :12], other[:, :12])
    assert not torch.allclose(one[:, 12:], other[:, 12:])


def logits(model: CausalLM, ids: Tensor) -> Tensor:
    segments = Segments.of([[0, ids.shape[1]]] * ids.shape[0], ids.shape[1])
    with torch.no_grad():
        return model.lm_head(model(ids, segments.positions_BT, masked_attention(segments)))


def test_half_precision_is_near(config: ModelConfig, batches: tuple) -> None:
    model, batch = made(config), batches[0]
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        low = label_loss(LabelConfig())(model, batch)
    assert (low[0] / low[1]).item() == pytest.approx(plainest(model, batch).item(), rel=3e-2)


def test_generating_says_what_the_whole_text_says(config: ModelConfig) -> None:
    """Two prompts of different lengths, in one batch with a cache."""
    model, prompts = made(config), [[5, 9, 13, 4], [7, 8]]
    found = generate(model, prompts, frozenset(), SampleConfig(max_new_tokens=8))
    for prompt, answer in zip(prompts, found, strict=True):
        ids = list(prompt)
        assert len(answer) == 8
        for token in answer:
            assert logits(model, torch.tensor([ids]))[0, -1].argmax() == token
            ids.append(token)


@pytest.mark.parametrize("flags", [["--hidden-size", "64"], ["--num-experts", "4"]])
def test_a_run_with_options_resumes_exactly(manifest: Path, tmp_path: Path, flags: list[str]) -> None:
    common = ["--manifest", str(manifest), "--preset", "tiny", "--steps", "4", "--dtype", "fp32", *flags]
    assert sft([*common, "--out", str(tmp_path / "whole")]) == 0
    assert sft([*common, "--out", str(tmp_path / "parts"), "--stop-at", "2"]) == 0
    assert sft([*common, "--out", str(tmp_path / "parts"), "--resume"]) == 0
    one, other = ((tmp_path / n / "metrics.jsonl").read_text().splitlines() for n in ("whole", "parts"))
    assert [json.loads(x)["loss"] for x in one] == [json.loads(x)["loss"] for x in other]
    last = tmp_path / "parts" / "checkpoints" / "step_00000004"
    assert sft(["--manifest", str(manifest), "--init", str(last), "--steps", "1", "--out", str(tmp_path / "on")]) == 0
    with pytest.raises(UsageError, match=r"a --model has its own in config\.json"):
        sft(["--manifest", str(manifest), "--init", str(last), *flags, "--out", str(tmp_path / "no")])


def test_logits_stay_within_the_cap() -> None:
    model = made(CONFIGS["logit_softcap"])
    with torch.no_grad():
        model.lm_head.weight *= 100
    found = logits(model, torch.randint(0, 300, (1, 9)))
    assert 1.9 < found.abs().max() <= 2.0
