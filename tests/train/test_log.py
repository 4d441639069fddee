"""Where the numbers go: TensorBoard, a terminal, a trace."""

import json
from pathlib import Path

import pytest

from datakit.errors import ConfigError
from tests.train.runs import as_flags, records
from train.config import LoopConfig
from train.sft import main


def train(manifest: Path, out: Path, *more: str) -> None:
    plain = as_flags(manifest=manifest, out=out, preset="tiny", steps=4, threads=1, batch_rows=4)
    assert main([*plain, *more]) == 0


def test_a_tracker_that_is_not_installed_is_refused_by_name(monkeypatch, manifest, tmp_path):
    monkeypatch.setattr("train.log.find_spec", lambda name: None)
    monkeypatch.setattr("train.config.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="--report-to tensorboard: it is not installed; pip install tensorboard"):
        LoopConfig(report_to=("tensorboard",))
    with pytest.raises(ConfigError, match="found mlflow"):
        LoopConfig(report_to=("mlflow",))
    train(manifest, tmp_path / "run")
    assert not (tmp_path / "run" / "tensorboard").exists()


def test_tensorboard_has_the_steps_and_a_resumed_run_replaces_those_after_its_checkpoint(manifest, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    out = tmp_path / "run"
    train(manifest, out, "--stop-at", "2", "--eval-every", "2", "--eval-manifest", str(manifest))
    assert main(["--resume", "--out", str(out)]) == 0
    found = EventAccumulator(str(out / "tensorboard")).Reload()
    told = {e.step: e.value for e in found.Scalars("train/loss")}
    assert told == pytest.approx({r["step"]: r["loss"] for r in records(out)})
    assert [e.step for e in found.Scalars("eval/loss")] == [2, 4]


def test_a_profile_has_its_steps_and_the_parts_of_each(manifest, tmp_path, capsys):
    train(manifest, tmp_path / "run", "--profile", "2")
    place = tmp_path / "run" / "profile.json"
    assert f"profile: {place}" in capsys.readouterr().out
    names = [e.get("name", "") for e in json.loads(place.read_text())["traceEvents"]]
    assert [sum(n == part for n in names) for part in ("data", "forward", "backward", "optimizer")] == [2, 2, 2, 2]
    assert sum(n.startswith("ProfilerStep#") for n in names) == 2
