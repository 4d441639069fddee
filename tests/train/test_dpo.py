"""Preference training: the loss by hand and by the field's formula, pairs that stay together, references."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from datakit.errors import DatakitError, InputError
from tests.train.runs import as_flags, logits, losses, records
from train import dpo, weights
from train.attention import masked_attention
from train.data import DataConfig, Mixture, PackedSet, StepStream
from train.dpo import PairConfig, answer_losses, preference_loss
from train.loss import LossConfig, token_log_probs
from train.model import CausalLM

BETA = 0.3


def pairs(count: int, seq_len: int, seed: int = 0) -> list[list[tuple[list[int], list[int]]]]:
    """Prompts with two answers: the chosen one counts up, the rejected one down. Answers differ in length."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        prompt = rng.integers(3, 300, int(rng.integers(3, seq_len // 3))).tolist()
        for direction in (1, -1):
            length = int(rng.integers(3, seq_len // 2))
            answer = ((prompt[-1] + direction * np.arange(1, length + 1)) % 297 + 3).tolist()
            rows.append([(prompt + answer, list(range(len(prompt) - 1, len(prompt) + length - 1)))])
    return rows


@pytest.fixture(scope="module")
def pair_rows() -> list:
    return pairs(13, 64)


@pytest.fixture(scope="module")
def pair_manifest(pack: Callable, pair_rows: list) -> Path:
    return pack(pair_rows, seq_len=64, rows_per_unit=2)


def test_judged_answers_without_their_other_side_are_refused(pack, pair_rows, base):
    alone = pack([*pair_rows[:4], pair_rows[4], []], seq_len=64, rows_per_unit=2)
    with pytest.raises(InputError, match=r"1 of 3 pairs have one answer alone.*--dpo-loss apo_zero"):
        dpo.main(["--manifest", str(alone), "--init", str(base), "--out", str(alone.parent / "never")])


def run(manifest: Path, base: Path, out: Path, *more: str) -> list[dict]:
    options = as_flags(manifest=manifest, init=base, out=out, dtype="fp32", batch_rows=4, lr=1e-4, threads=1)
    assert dpo.main([*options, "--warmup-steps=0", *more]) == 0
    return records(out)


def by_hand(model: CausalLM, ids: list[int], places: list[int]) -> float:
    """The log-probability of one sequence's labels, from the logits of that sequence alone."""
    log_probs = logits(model, torch.tensor([ids]), masked_attention)[0].log_softmax(-1)
    return sum(log_probs[p, ids[p + 1]].item() for p in places)


@pytest.mark.parametrize("kind", ["sigmoid", "sigmoid_norm"])
@pytest.mark.parametrize("flat", [False, True])
@torch.no_grad()
def test_the_loss_is_the_formula_worked_out_by_hand(pair_manifest, pair_rows, base, kind, flat):
    """`-logsigmoid(beta * delta)`, as DPOTrainer has it in `sigmoid`, and over averages in `sigmoid_norm`."""
    old, new = weights.read_model(base), weights.read_model(base)
    for p in new.parameters():
        p.add_(torch.randn(p.shape, generator=torch.Generator().manual_seed(p.numel())) * 0.01)
    data = PackedSet.open_all(pair_manifest)[0]
    run = dpo.DPOConfig(manifest="-", model=str(base))
    reference = dpo.reference_of(run, "", Mixture((data,)))
    objective = preference_loss(PairConfig(beta=BETA, dpo_loss=kind), reference, LossConfig())
    config = DataConfig(batch_rows=8, grad_accum=9, bucket_sizes=(64,))
    batches = next(iter(StepStream(data, config, seed=0, flat=flat)))
    seen = []
    for batch in batches:
        found, expected, margins = objective(new, batch), 0.0, []
        seen += batch.rows.tolist()
        for chosen, rejected in batch.rows.reshape(-1, 2):
            assert chosen % 2 == 0 and rejected == chosen + 1
            ratios = []
            for row in (chosen, rejected):
                ids, places = pair_rows[row][0]
                ratio = by_hand(new, ids, places) - by_hand(old, ids, places)
                ratios.append(ratio / len(places) if kind == "sigmoid_norm" else ratio)
            margins.append(BETA * (ratios[0] - ratios[1]))
            expected += np.log1p(np.exp(-margins[-1]))
        assert found.divisor == len(margins)
        assert found.loss_sum.item() == pytest.approx(expected, abs=1e-4)
        assert found.logged["reward_margin"].item() == pytest.approx(sum(margins), abs=1e-4)
        assert found.logged["reward_accuracy"].item() == sum(m > 0 for m in margins)
    assert sorted(seen) == list(range(len(pair_rows)))


def test_flat_batches_have_the_sequences_alone_and_hardly_any_padding(pair_manifest, pair_rows):
    data = PackedSet.open_all(pair_manifest)[0]
    config = DataConfig(batch_rows=8, grad_accum=9, bucket_sizes=(64,))
    rows, flat = (next(iter(StepStream(data, config, seed=0, flat=f))) for f in (False, True))
    for one, other in zip(rows, flat, strict=True):
        assert other.ids_BT.shape[0] == 1 and one.rows.tolist() == other.rows.tolist()
        expected = [(ids, ids[p + 1]) for row in one.rows for ids, places in [pair_rows[row][0]] for p in places]
        assert other.counted[1].tolist() == [target for _, target in expected]
        assert other.ids_BT[0, : other.real_tokens].tolist() == [i for r in one.rows for i in pair_rows[r][0][0]]
        assert (other.targets_L[other.labels :] == -100).all()
        assert len(other.label_pos_L.unique()) == len(other.label_pos_L)
        assert dpo.packed_rows(other).tolist() == dpo.packed_rows(one).tolist()
    assert sum(b.ids_BT.numel() for b in flat) < 0.8 * sum(b.ids_BT.numel() for b in rows)


def test_training_prefers_the_chosen_side_and_says_so(pair_manifest, base, tmp_path, capsys):
    records = run(pair_manifest, base, tmp_path / "run", "--epochs", "3", "--lr", "3e-4")
    assert records[0]["loss"] == pytest.approx(np.log(2), abs=1e-6) and records[0]["reward_margin"] == 0.0
    epochs = records[:7], records[-7:]
    first, last = (np.mean([r["reward_accuracy"] for r in epoch]) for epoch in epochs)
    assert last > max(first, 0.8) and records[-1]["loss"] < records[0]["loss"]
    assert "reward_margin=" in capsys.readouterr().out


def test_adapters_off_are_the_reference_in_place_of_a_second_model(pair_manifest, base, tmp_path, monkeypatch):
    adapters = ["--lora-rank", "4", "--lr", "1e-3", "--steps", "6"]
    two = run(pair_manifest, base, tmp_path / "two", "--reference", str(base), *adapters)
    monkeypatch.setattr(dpo, "read_fitting", lambda *a: pytest.fail("a second model was read"))
    one = run(pair_manifest, base, tmp_path / "one", *adapters)
    for name in ("loss", "reward_margin", "reward_chosen", "grad_norm"):
        assert [r[name] for r in one] == pytest.approx([r[name] for r in two], abs=1e-5)
    assert max(abs(r["reward_margin"]) for r in one) > 0.001, "the adapters are trained, so policy and reference differ"


def test_a_run_resumes_exactly_and_its_split_and_the_way_of_its_logits_change_nothing(pair_manifest, base, tmp_path):
    size = ["--steps", "4", "--bucket-sizes", "64", "--reference", str(base)]
    whole = run(pair_manifest, base, tmp_path / "whole", *size, "--batch-rows", "8")
    run(pair_manifest, base, tmp_path / "cut", *size, "--batch-rows", "8", "--stop-at", "2")
    assert dpo.main(["--resume", "--out", str(tmp_path / "cut")]) == 0
    assert losses(tmp_path / "cut") == [r["loss"] for r in whole]
    other = ["--batch-rows", "2", "--grad-accum", "4", "--loss-chunk", "5", "--no-label-only", "--attention", "masked"]
    for a, b in zip(whole, run(pair_manifest, base, tmp_path / "split", *size, *other), strict=True):
        assert a["loss"] == pytest.approx(b["loss"], abs=1e-5)
        assert a["reward_margin"] == pytest.approx(b["reward_margin"], abs=1e-4)


def test_the_logits_of_a_chunk_alone_are_there_at_a_time():
    head, weights = torch.nn.Linear(8, 20, bias=False), torch.tensor([1.0, 1, 1, -2, -2, 0.5, 0.5])
    hidden, targets, seen = torch.randn(7, 8, requires_grad=True), torch.arange(7), []
    head.register_forward_hook(lambda m, x, y: seen.append(len(y)))
    found = []
    for chunk in (0, 3):
        hidden.grad, head.weight.grad = None, None
        log_probs = token_log_probs(hidden, head, targets, chunk)
        (log_probs * weights).sum().backward()
        found.append([log_probs, hidden.grad, head.weight.grad])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
    assert seen[0] == 7 and max(seen[1:]) == 3


def test_what_does_not_fit_is_refused(pair_manifest, manifest, base, tmp_path):
    init = ("--init", str(base))
    for data, more, said in (
        (pair_manifest, (), "--model"), (manifest, init, r"train\.pretrain"),
        (pair_manifest, (*init, "--batch-rows", "3"), "multiple"),
        (pair_manifest, (*init, "--beta", "-1"), r"beta = -1\.0: expected 0 or more"),
        (pair_manifest, (*init, "--attention", "varlen"), "--attention varlen is a CUDA kernel"),
    ):  # fmt: skip
        with pytest.raises(DatakitError, match=said):
            dpo.main(["--manifest", str(data), "--out", str(tmp_path / "run"), *more])


def test_the_loss_of_judged_answers_is_trls():
    """`apo_zero_unpaired` of KTOTrainer."""
    g = torch.Generator().manual_seed(0)
    policy, ref = torch.randn(9, generator=g) * 5, torch.randn(9, generator=g) * 5
    good = torch.tensor([True, False, True, False, False, True, True, False, True])
    config = PairConfig(beta=BETA, good_weight=1.5, bad_weight=0.5, dpo_loss="apo_zero")
    losses, signed = answer_losses(policy, ref, good, config)
    torch.testing.assert_close(losses[good], 1.5 * (1 - torch.sigmoid(BETA * (policy - ref)[good])))
    torch.testing.assert_close(losses[~good], 0.5 * torch.sigmoid(BETA * (policy - ref)[~good]))
    torch.testing.assert_close(signed, BETA * (policy - ref) * torch.where(good, 1, -1))


def test_judged_answers_train_alone_and_splitting_a_step_changes_nothing(pack, base, tmp_path):
    """Every third pair has both sides, the others one answer; a missing side has its prompt alone, or nothing."""
    rows = pairs(12, 48)
    for i in range(12):
        if i % 3 < 2:
            ids, places = rows[2 * i + i % 3][0]
            rows[2 * i + i % 3] = [(ids[: places[0] + 1], [])] if i % 4 == 0 else []
    judged = pack(rows, seq_len=48, rows_per_unit=2)
    options = as_flags(steps=4, bucket_sizes=48, lr=1e-3, dpo_loss="apo_zero")
    whole = run(judged, base, tmp_path / "whole", *options, "--batch-rows", "24")
    split = run(judged, base, tmp_path / "split", *options, "--batch-rows", "8", "--grad-accum", "3")
    assert whole[0]["loss"] == pytest.approx(0.5)
    for one, other in zip(whole, split, strict=True):
        for name in ("loss", "reward_margin", "reward_accuracy"):
            assert one[name] == pytest.approx(other[name], abs=2e-4), name
    assert whole[-1]["loss"] < whole[0]["loss"] and whole[-1]["reward_margin"] > 0
