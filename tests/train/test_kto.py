"""KTO: the field's formula, mismatched answers, steps that do not depend on their split."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.train.runs import records
from train import kto
from train.data import DataConfig, Mixture, StepStream
from train.dpo import log_probs, packed_rows
from train.kto import JudgedConfig, KtoLoss, answer_losses
from train.model import PRESETS, CausalLM

Row = list[tuple[list[int], list[int]]]


def answers(count: int, seq_len: int) -> list[Row]:
    """Prompts with a good answer, a bad one or both; a side without an answer has the prompt alone, or nothing."""
    rng, rows = np.random.default_rng(1), []
    for i in range(count):
        prompt = rng.integers(3, 300, int(rng.integers(3, seq_len // 3))).tolist()
        for side, direction in enumerate((1, -1)):
            length = int(rng.integers(3, seq_len // 2)) if i % 3 in (side, 2) else 0
            answer = ((prompt[-1] + direction * np.arange(1, length + 1)) % 297 + 3).tolist()
            side_rows = [(prompt + answer, list(range(len(prompt) - 1, len(prompt) + length - 1)))]
            rows.append(side_rows if length or i % 4 == 0 else [])
    return rows


def has_answer(row: Row) -> bool:
    return bool(row and row[0][1])


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return answers(12, 48)


@pytest.fixture(scope="module")
def judged(pack: Callable, rows: list[Row]) -> Path:
    return pack(rows, seq_len=48, rows_per_unit=2)


def test_the_loss_is_trls() -> None:
    """KTOTrainer's `kto`, with the divergence of the batch."""
    g = torch.Generator().manual_seed(0)
    policy, ref, kl = torch.randn(9, generator=g) * 5, torch.randn(9, generator=g) * 5, torch.tensor(0.7)
    good = torch.tensor([True, False, True, False, False, True, True, False, True])
    config = JudgedConfig(beta=0.3, good_weight=1.5, bad_weight=0.5)
    losses, rewards = answer_losses(policy, ref, good, kl, config)
    chosen, rejected = (policy - ref)[good], (policy - ref)[~good]
    torch.testing.assert_close(losses[good], 1.5 * (1 - torch.sigmoid(0.3 * (chosen - kl))))
    torch.testing.assert_close(losses[~good], 0.5 * (1 - torch.sigmoid(0.3 * (kl - rejected))))
    torch.testing.assert_close(rewards, 0.3 * (policy - ref))


def test_a_prompt_gets_an_answer_of_the_next_pair_that_has_one(judged: Path, rows: list[Row]) -> None:
    data = Mixture.open([judged])
    objective = KtoLoss(JudgedConfig(), lambda model, batch: torch.zeros(len(batch.rows)), data)
    (batch, *_) = StepStream(data, DataConfig(batch_rows=8), seed=0, flat=True).batches(0)
    made = objective.mismatched(batch)
    expected, numbers = [], [r for r in batch.rows.tolist() if has_answer(rows[r])]
    for row in numbers:
        (ids, places), pair = rows[row][0], row - row % 2
        pairs = [*range(pair + 2, len(rows), 2), *range(0, pair, 2)]
        after = [p + side for p in pairs for side in (row % 2, 1 - row % 2)]
        other_ids, other_places = next(rows[r][0] for r in after if has_answer(rows[r]))
        expected += [ids[: places[0] + 1] + other_ids[other_places[0] + 1 :]]
    assert made.rows.tolist() == numbers
    assert made.ids_BT[0, : made.real_tokens].tolist() == [i for ids in expected for i in ids[:49]]
    counts = [len(e) - rows[r][0][1][0] - 1 for e, r in zip(expected, numbers, strict=True)]
    assert torch.bincount(packed_rows(made)).tolist() == counts

    model = CausalLM(replace(PRESETS["tiny"], vocab_size=300))
    objective.reference = lambda model, batch: torch.full((len(batch.rows),), -1e5)
    objective.begin(model, [batch], list)
    with torch.no_grad():
        mean = float(log_probs(model, made, objective.labels)[0].mean())
    assert float(objective.divergence) == pytest.approx(mean + 1e5)
    assert objective.good_share == sum(r % 2 == 0 for r in numbers) / len(numbers)


def run(judged: Path, base: Path, out: Path, *more: str) -> list[dict]:
    options = ["--dtype", "fp32", "--lr", "1e-3", "--warmup-steps", "0", "--init", str(base), "--out", str(out)]
    assert kto.main(["--manifest", str(judged), *options, *more]) == 0
    return records(out)


def test_splitting_a_step_changes_nothing_and_answers_are_told_apart(judged: Path, base: Path, tmp_path: Path) -> None:
    size = ["--steps", "4", "--bucket-sizes", "48"]
    whole = run(judged, base, tmp_path / "whole", *size, "--batch-rows", "24")
    split = run(judged, base, tmp_path / "split", *size, "--batch-rows", "8", "--grad-accum", "3")
    assert whole[0]["loss"] == pytest.approx(0.5)
    for one, other in zip(whole, split, strict=True):
        for name in ("loss", "divergence", "reward_good", "reward_bad"):
            assert one[name] == pytest.approx(other[name], abs=2e-4), name
    assert whole[-1]["loss"] < whole[0]["loss"]
    assert whole[-1]["reward_good"] > whole[-1]["reward_bad"]
