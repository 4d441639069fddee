"""One step and many: sums, clipping, schedules, precision, steps without labels, runs for timing."""

import json
from dataclasses import asdict

import pytest
import torch

from datakit.errors import DatakitError, UsageError
from tests.train.runs import Spoiled, fitted, label_sum, losses, records, same_weights, trainer
from train.loop import LossSum
from train.updates import LossScale


@pytest.mark.parametrize("moe", [{}, {"num_experts": 4, "expert_size": 32, "balance_weight": 1.0}])
def test_accumulation_changes_nothing(pack, random_rows, tmp_path, moe):
    """Micro-batches have very different numbers of labels, so a mean of means would differ."""
    manifest, found = pack(random_rows(21, 64), seq_len=64), []  # a step of 7 rows; every seventh row is short
    for rows, accum in ((7, 1), (1, 7)):
        out = tmp_path / str(rows)
        one = fitted(manifest, out, batch_rows=rows, grad_accum=accum, steps=3, warmup_steps=0, **moe)
        found.append((one, records(out)))
    for whole, split in zip(found[0][1], found[1][1], strict=True):
        assert whole["label_tokens"] == split["label_tokens"]
        for name in ("loss", "grad_norm", *(("balance_loss", "busiest_expert") if moe else ())):
            assert whole[name] == pytest.approx(split[name], rel=1e-4)
    same_weights(found[0][0].model, found[1][0].model, atol=3e-5, rtol=1e-3)
    if moe:
        assert found[0][0].objective.balance.shares == found[1][0].objective.balance.shares


def test_a_loss_that_is_not_finite_stops_the_run_and_names_the_rows(manifest, tmp_path):
    calls = []

    def spoiled(*args):
        loss_sum, count = label_sum(*args)
        calls.append(args[1].rows.tolist())
        return (loss_sum * float("nan") if len(calls) == 2 else loss_sum), count

    run = trainer(manifest, tmp_path / "run", spoiled, save_every=1)
    with pytest.raises(DatakitError, match=r"step 2: loss nan .* also in .*not_finite_step_00000002.json") as stopped:
        run.fit()
    (rows,) = json.loads((tmp_path / "run" / "not_finite_step_00000002.json").read_text())["rows"]
    assert rows["manifest"] == str(manifest) and sorted(rows["packed_rows"]) == sorted(calls[1])
    assert {key // 100 for key in rows["row_keys"]} == set(calls[1]), "a row_key is a hundred times the packed row here"
    assert str(rows["packed_rows"]) in str(stopped.value) and str(rows["row_keys"]) in str(stopped.value)
    assert [p.name for p in (tmp_path / "run" / "checkpoints").iterdir()] == ["step_00000001"]
    assert all(p.isfinite().all() for p in run.model.parameters())


def test_a_loss_function_that_returns_no_sum_with_its_count_is_refused(manifest, tmp_path):
    loss = torch.ones((), requires_grad=True)
    assert LossSum.of((loss, torch.tensor(2))).divisor == 2
    for found in (loss, None, (loss,), (loss.detach(), 2), (loss.expand(3), 2), (loss, "2"), (loss, 2, {"kl": 0.5})):
        with pytest.raises(UsageError, match=r"expected \(loss_sum, count\)"):
            LossSum.of(found)
    run = trainer(manifest, tmp_path, lambda *args: (label_sum(*args)[0].item(), 9))
    with pytest.raises(UsageError, match=r"a number; found \(\d+\.\d+, 9\)"):
        run.fit()


def test_gradients_are_clipped_to_the_norm(manifest, tmp_path):
    run = trainer(manifest, tmp_path / "run")
    (count, *_), _ = run._backward(next(iter(run.stream)))
    assert run._scale_gradients(torch.tensor(float(count))).item() > 1.0
    after = torch.nn.utils.get_total_norm([p.grad for p in run.model.parameters()]).item()
    assert after == pytest.approx(1.0, rel=1e-4)


def test_a_step_without_labels_is_counted_and_changes_nothing(pack, tmp_path):
    rows = [[(list(range(5, 15)), list(range(9)) if i % 2 else [])] for i in range(4)]
    options = {"batch_rows": 1, "shuffle_buffer": 0, "bucket_sizes": (), "warmup_steps": 0}
    fitted(pack(rows, seq_len=16), tmp_path, **options)
    found = records(tmp_path)
    assert [r["label_tokens"] for r in found] == [0, 9, 0, 9]
    assert all((r["loss"], r["grad_norm"]) == (0.0, 0.0) for r in found[::2])
    assert [r.get("steps_without_labels") for r in found] == [1.0, 1.0, 2.0, 2.0]
    assert found[3]["loss"] < found[1]["loss"]


def test_a_run_for_timing_saves_nothing_and_pauses_as_often_as_asked(manifest, tmp_path, monkeypatch, caplog):
    pauses: list[float] = []
    caplog.set_level("INFO", "train")
    monkeypatch.setattr("train.loop.time.sleep", pauses.append)
    fitted(manifest, tmp_path / "run", steps=7, save_every=0, step_sleep_ms=5.0, step_sleep_every=3)
    assert not (tmp_path / "run" / "checkpoints").exists()
    assert pauses == [0.005, 0.005]
    assert "peak memory of the first step: " in caplog.text


def test_a_growing_batch_resumes_exactly_and_its_sums_are_right(manifest, tmp_path):
    growing = {"batch_rows": 8, "batch_size_schedule": ("0:2", "3:4"), "steps": 6}
    fitted(manifest, tmp_path / "whole", **growing)
    fitted(manifest, tmp_path / "parts", **growing, stop_at=2)
    fitted(manifest, tmp_path / "parts", **growing, resume=True)
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    fitted(manifest, tmp_path / "small", batch_rows=2, steps=6)
    whole, small = records(tmp_path / "whole"), records(tmp_path / "small")
    assert [r["loss"] for r in whole[:3]] == pytest.approx([r["loss"] for r in small[:3]], abs=1e-6)
    assert whole[3]["label_tokens"] == sum(r["label_tokens"] for r in small[3:5])
    assert whole[3]["loss"] != whole[2]["loss"]


def test_the_scale_halves_at_an_overflow_and_doubles_after_2000_steps():
    scale, expected, since = LossScale(1024.0), 1024.0, 0
    for step in range(4500):
        finite = step not in (3, 4, 2600)
        assert scale.overflowed(finite) != finite
        since = since + 1 if finite else 0
        expected /= 1 if finite else 2
        if since == 2000:
            expected, since = expected * 2, 0
        assert (scale.scale, scale.steps_since) == (expected, since)
        if step in (1000, 4000):  # as in a checkpoint
            scale = LossScale(**json.loads(json.dumps(asdict(scale))))
    assert scale.overflows == 3


def test_fp16_follows_fp32(manifest, tmp_path):
    for dtype in ("fp16", "fp32"):
        fitted(manifest, tmp_path / dtype, dtype=dtype)
    low, full = records(tmp_path / "fp16"), records(tmp_path / "fp32")
    assert [r["loss"] for r in low] == pytest.approx([r["loss"] for r in full], rel=1e-2)
    assert [r["grad_norm"] for r in low] == pytest.approx([r["grad_norm"] for r in full], rel=5e-2)
    assert low[0]["loss_scale"] == 16 and low[-1]["overflows"] == 0 and "loss_scale" not in full[0]


def test_an_overflow_skips_the_step_halves_the_scale_and_is_resumed(manifest, tmp_path):
    run = trainer(manifest, tmp_path, dtype="fp16", stop_at=2)
    run.loss_scale = LossScale(2.0**40)  # fp16 ends at 65,504
    before = [p.detach().clone() for p in run.model.parameters()]
    run.fit()
    assert all(torch.equal(a, b) for a, b in zip(before, run.model.parameters(), strict=True))
    again = trainer(manifest, tmp_path, dtype="fp16", resume=True)
    assert again.loss_scale == LossScale(2.0**38, steps_since=0, overflows=2)


def test_gradients_that_no_scale_mends_stop_the_run(manifest, tmp_path):
    def broken(*args: object) -> tuple:
        total, count = label_sum(*args)
        return Spoiled.apply(total, float("nan")), count

    run = trainer(manifest, tmp_path, broken, dtype="fp16", steps=10)
    run.loss_scale = LossScale(LossScale.smallest * 8)
    with pytest.raises(DatakitError, match="not finite"):
        run.fit()
    assert (run.state.step, run.loss_scale.overflows) == (3, 3)
