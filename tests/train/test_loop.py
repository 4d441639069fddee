import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from datakit.errors import DatakitError
from train.config import LoopConfig
from train.data import DataConfig
from train.optim import OptimConfig, learning_rate, make_optimizer, peak_rate
from train.sft import LabelConfig, label_loss
from train.start import RunConfig, Trainer

loss = label_loss(LabelConfig())


def trainer(manifest: Path, out: Path, batch_rows: int, grad_accum: int, objective: Callable = loss, **loop) -> Trainer:
    return Trainer(
        RunConfig(
            manifest=str(manifest), preset="tiny", optim=OptimConfig(lr=1e-3),
            data=DataConfig(batch_rows=batch_rows, grad_accum=grad_accum, bucket_sizes=(64,)),
            loop=LoopConfig(out=str(out), dtype="fp32", **{"steps": 3} | loop),
        ),
        objective,
    )  # fmt: skip


def test_accumulation_changes_nothing(pack: Callable, random_rows: Callable, tmp_path: Path) -> None:
    """Micro-batches have very different numbers of labels, so a mean of means would differ."""
    rows = random_rows(21, 64)  # a step of 7 rows; every seventh row is short
    manifest = pack([*rows], seq_len=64)
    found = []
    for batch_rows, grad_accum in ((7, 1), (1, 7)):
        one = trainer(manifest, tmp_path / f"run{batch_rows}", batch_rows, grad_accum)
        one.fit()
        found.append((one, (tmp_path / f"run{batch_rows}" / "metrics.jsonl").read_text()))
    records = [[json.loads(line) for line in text.splitlines()] for _, text in found]
    for whole, split in zip(*records, strict=True):
        assert whole["label_tokens"] == split["label_tokens"]
        assert whole["loss"] == pytest.approx(split["loss"], abs=1e-5)
        assert whole["grad_norm"] == pytest.approx(split["grad_norm"], rel=1e-4)
    for a, b in zip(found[0][0].model.parameters(), found[1][0].model.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-4)


def test_a_loss_that_is_not_finite_stops_the_run_and_names_the_rows(manifest: Path, tmp_path: Path) -> None:
    calls = []

    def spoiled(*args):
        loss_sum, count = loss(*args)
        calls.append(args[1].rows.tolist())
        return (loss_sum * float("nan") if len(calls) == 2 else loss_sum), count

    run = trainer(manifest, tmp_path / "run", 4, 1, spoiled, save_every=1)
    with pytest.raises(DatakitError, match="step 2: loss nan") as stopped:
        run.fit()
    assert str(calls[1]) in str(stopped.value)
    assert str(calls[1][0] * 100) in str(stopped.value)  # a row_key of that packed row
    assert [p.name for p in (tmp_path / "run" / "checkpoints").iterdir()] == ["step_00000001"]
    assert all(p.isfinite().all() for p in run.model.parameters())


def test_gradients_are_clipped_to_the_norm(manifest: Path, tmp_path: Path) -> None:
    run = trainer(manifest, tmp_path / "run", 4, 1)
    batches = next(iter(run.stream))
    (count, *_), _ = run._backward(batches)
    before = run._scale_gradients(torch.tensor(float(count))).item()
    after = torch.nn.utils.get_total_norm([p.grad for p in run.model.parameters()]).item()
    assert before > 1.0
    assert after == pytest.approx(1.0, rel=1e-4)


def test_a_step_without_labels_is_counted_and_changes_nothing(pack: Callable, tmp_path: Path) -> None:
    """It was "loss nan": its sums were divided by a count of 0."""
    rows = [[(list(range(5, 15)), list(range(9)))] if i % 2 else [(list(range(5, 15)), [])] for i in range(4)]
    run = Trainer(
        RunConfig(
            manifest=str(pack(rows, seq_len=16)), preset="tiny", optim=OptimConfig(lr=1e-3, warmup_steps=0),
            data=DataConfig(batch_rows=1, shuffle_buffer=0), loop=LoopConfig(out=str(tmp_path), dtype="fp32", steps=4),
        ),
        loss,
    )  # fmt: skip
    run.fit()
    records = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [r["label_tokens"] for r in records] == [0, 9, 0, 9]
    assert [r["loss"] for r in records[::2]] == [0.0, 0.0] and [r["grad_norm"] for r in records[::2]] == [0.0, 0.0]
    assert [r.get("steps_without_labels") for r in records] == [1.0, 1.0, 2.0, 2.0]
    assert records[3]["loss"] < records[1]["loss"]


def test_a_run_for_timing_saves_nothing_and_pauses_as_often_as_asked(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pauses: list[float] = []
    caplog.set_level("INFO", "train")
    monkeypatch.setattr("train.loop.time.sleep", pauses.append)
    run = trainer(manifest, tmp_path / "run", 4, 1, steps=7, save_every=0, step_sleep_ms=5, step_sleep_every=3)
    run.fit()
    assert not (tmp_path / "run" / "checkpoints").exists()
    assert pauses == [0.005, 0.005]
    assert "peak memory of the first step: " in caplog.text


def test_a_growing_batch_resumes_exactly_and_its_sums_are_right(manifest: Path, tmp_path: Path) -> None:
    def run(out: Path, rows: int, schedule: tuple[str, ...], **loop: object) -> list[dict]:
        Trainer(
            RunConfig(
                manifest=str(manifest), preset="tiny", optim=OptimConfig(lr=1e-3),
                data=DataConfig(batch_rows=rows, batch_size_schedule=schedule, bucket_sizes=(64,)),
                loop=LoopConfig(out=str(out), **{"dtype": "fp32", "steps": 6} | loop),
            ),
            loss,
        ).fit()  # fmt: skip
        return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]

    whole = run(tmp_path / "whole", 8, ("0:2", "3:4"))
    run(tmp_path / "parts", 8, ("0:2", "3:4"), stop_at=2)
    assert [r["loss"] for r in run(tmp_path / "parts", 8, ("0:2", "3:4"), resume=True)] == [r["loss"] for r in whole]
    small = run(tmp_path / "small", 2, ())
    assert [r["loss"] for r in whole[:3]] == pytest.approx([r["loss"] for r in small[:3]], abs=1e-6)
    assert whole[3]["label_tokens"] == sum(r["label_tokens"] for r in small[3:5])
    assert whole[3]["loss"] != whole[2]["loss"]


def test_the_schedule_warms_up_linearly_and_ends_at_its_minimum() -> None:
    config = OptimConfig(lr=1.0, min_lr_ratio=0.1, warmup_steps=4)
    rates = [learning_rate(config, s, 20) for s in range(1, 21)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert rates[3:] == sorted(rates[3:], reverse=True)
    assert rates[11] == pytest.approx(0.55)  # half way down the cosine
    assert rates[-1] == pytest.approx(0.1)
    assert learning_rate(OptimConfig(lr=1.0), 1, 5) > 0


def test_the_rate_where_none_is_named_follows_the_width() -> None:
    assert peak_rate(OptimConfig(), 512, 1.0) == 5e-4
    assert peak_rate(OptimConfig(), 128, 1.0) == 2e-3
    assert peak_rate(OptimConfig(), 512, 0.2) == pytest.approx(1e-4)
    assert peak_rate(OptimConfig(lr=0.1), 512, 0.2) == 0.1


def test_norms_and_embeddings_do_not_decay(manifest: Path, tmp_path: Path) -> None:
    model = trainer(manifest, tmp_path / "run", 4, 1).model
    groups = make_optimizer(model, OptimConfig(weight_decay=0.3)).param_groups
    names = {id(p): n for n, p in model.named_parameters()}
    decayed = {names[id(p)] for g in groups for p in g["params"] if g["weight_decay"]}
    assert decayed == {n for n in names.values() if n.endswith("_proj.weight")}
    assert sum(len(g["params"]) for g in groups) == len(names)
