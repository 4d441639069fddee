"""The trainer from Python: what it returns, writes beside the checkpoints, and does not do by itself."""

import logging
import re

import pytest

from datakit.errors import ConfigError, ModelError, UsageError
from tests.train.runs import losses, records
from train import SFTConfig, Trainer
from train.checkpoint import find_model
from train.log import COLUMNS, Record, curve, line


def test_a_run_from_python_returns_its_losses_and_prints_nothing(manifest, tmp_path, capfd):
    logging.getLogger("train").handlers.clear()  # as where no command ran before
    config = SFTConfig.of(manifest=str(manifest), preset="tiny", steps=3, batch_rows=4, out=str(tmp_path))
    found = Trainer(config).fit()
    assert found.metrics == records(tmp_path) and found.losses == losses(tmp_path)
    assert (found.step, found.model.config.num_layers, found.stopped_by) == (len(found.losses), 4, None)
    assert tuple(capfd.readouterr()) == ("", "")
    page = (tmp_path / "loss.html").read_text()
    assert page.count("<path") == 2 and "step 1 to 3" in page


def test_options_are_named_flat_and_wrong_ones_are_refused(manifest, tmp_path):
    assert SFTConfig.of(manifest="m", lr=0.5, steps=7).loop.steps == 7
    with pytest.raises(UsageError, match="has no option 'stepz'"):
        SFTConfig.of(manifest="m", stepz=7)
    with pytest.raises(ConfigError, match="steps"):
        SFTConfig.of(manifest="m", steps="many")
    config = SFTConfig.of(manifest=str(manifest), preset="tiny", steps=1, lr=0.5, out=str(tmp_path))
    Trainer(config).fit()
    with pytest.raises(UsageError, match="holds a run"):
        Trainer(config)
    again = SFTConfig.of(out=str(tmp_path), resume=True, steps=2)
    assert (again.optim.lr, again.preset, again.manifest, again.loop.steps) == (0.5, "tiny", str(manifest), 2)


def test_a_model_is_found_by_folder_run_or_name(tmp_path, monkeypatch):
    for step in (3, 12):
        (tmp_path / "run" / "checkpoints" / f"step_{step:08d}").mkdir(parents=True)
    assert find_model(str(tmp_path / "run")).name == "step_00000012"
    assert find_model(str(tmp_path)) == tmp_path
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(ModelError, match=r"fetches it: `hf download Qwen/Qwen3-0\.6B"):
        find_model("Qwen/Qwen3-0.6B")
    place = tmp_path / "hub" / "models--Qwen--Qwen3-0.6B"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("abc\n")
    (place / "snapshots" / "abc").mkdir(parents=True)
    (place / "snapshots" / "abc" / "config.json").write_text("{}")
    assert find_model("Qwen/Qwen3-0.6B") == place / "snapshots" / "abc"


def record(step: int, loss: float, **more: float) -> Record:
    plain = {"step": step, "epoch": 1, "loss": loss, "lr": 1e-3, "grad_norm": 1.0, "label_tokens": 5, "step_ms": 1e4}
    return plain | {"all_tok_s": 1e6, "real_tok_s": 1e6, "label_tok_s": 1e5, "data_wait": 0.1, "mfu": None} | more


LINE = re.compile(
    r"^\[train\] step=\d+ epoch=\d+/\d+ loss=\d+\.\d{4} lr=\d\.\d\de-\d\d tok/s=\d+ \| step_ms=\d+ eta=\d"
)
"""The beginning is that of MiniLLM."""


def test_lines_are_at_most_a_hundred_characters_and_keep_what_an_objective_logs():
    shown = line(record(12345, 10.0, reward_margin=0.123456, reward_accuracy=0.75, mfu=0.4), 12, 400_000)
    assert "reward_margin=0.1235" in shown and "reward_accuracy=0.75" in shown and "mfu=40.0%" in shown
    assert LINE.match(line(record(1, 2.5), 12, 20))
    assert max(map(len, shown.splitlines())) <= COLUMNS and "eta=4days,15:06:40" in shown


def test_the_curve_leaves_out_steps_without_labels_and_has_a_dot_for_each_evaluation():
    records = [record(1, 4.0), record(2, 0.0, label_tokens=0), record(3, 2.0)]
    found = curve(records, [{"step": 3, "loss": 3.0, "label_tokens": 9}])
    assert 'd="M1,4 3,2"' in found and 'd="M1,4 3,3"' in found and 'd="M3,3h0"' in found and "loss 4 to 2" in found
    assert curve([record(1, 0.0, label_tokens=0)]) == ""
