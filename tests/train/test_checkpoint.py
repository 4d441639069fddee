import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from datakit.errors import InputError, IntegrityError, ModelError
from tests.train.runs import fitted, label_sum, same_weights, small_model, trainer
from train import checkpoint, resume
from train.checkpoint import Snapshot, State
from train.model import CausalLM
from train.optim import OptimConfig, make_optimizer


def state(step: int) -> State:
    facts = {"pad_id": 0, "eos_id": 2, "bos_id": None}
    return State(step=step, task="sft", manifest_version="0" * 12, tokenizer=facts, order={}, config={})


def moved(seed: int) -> tuple[CausalLM, torch.optim.Optimizer]:
    """A model that has taken a step."""
    model = small_model(seed)
    optimizer = make_optimizer(model, OptimConfig())
    for p in model.parameters():
        p.grad = torch.randn(p.shape, generator=torch.Generator().manual_seed(seed))
    optimizer.step()
    return model, optimizer


def saved(folder: Path, *steps: int) -> Path:
    """The last of these checkpoints."""
    return [checkpoint.save(folder, state(step), Snapshot.of(*moved(0)), ()) for step in steps][-1]


def full(*args: object) -> None:
    raise OSError(28, "No space left on device")


def test_weights_optimizer_and_generators_come_back_as_they_were(tmp_path):
    (model, optimizer), (other, other_optimizer) = moved(0), moved(1)
    place = checkpoint.save(tmp_path, state(7), Snapshot.of(model, optimizer), ())
    drawn = torch.rand(3)
    assert resume.check(place).step == 7
    resume.restore(place, other, other_optimizer)
    assert torch.equal(torch.rand(3), drawn)
    same_weights(model, other)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert all(torch.equal(v, other_optimizer.state[two][k]) for k, v in optimizer.state[one].items())
    assert {p.suffix for p in place.iterdir()} == {".json", ".safetensors"}, "no pickles"
    assert json.loads((place / "generation_config.json").read_text()) == {"pad_token_id": 0, "eos_token_id": 2}
    for name, value, shapes in (("vocab_size", 301, r"\(300, 32\).*\(301, 32\)"), ("num_layers", 3, r"None .*\)")):
        model = small_model(**{name: value})
        with pytest.raises(ModelError, match=rf"tensor 'model\..* has shape {shapes} in this run"):
            resume.restore(place, model, make_optimizer(model, OptimConfig()))


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "config.json", "state.json"])
def test_one_changed_byte_is_found_and_the_file_named(tmp_path, name):
    place = saved(tmp_path, 7)
    data = (place / name).read_bytes()
    at = data.rindex(b"7") if name == "state.json" else len(data) // 2
    (place / name).write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(IntegrityError, match=name.replace(".", r"\.")):
        resume.check(place)


def test_the_newest_whole_checkpoint_is_found_and_damaged_ones_are_set_aside(tmp_path, caplog):
    caplog.set_level("INFO", "train")
    assert resume.newest(tmp_path) is None
    (saved(tmp_path, 10, 15) / "rng.safetensors").unlink()
    place, found = resume.newest(tmp_path)
    assert (place.name, found.step) == ("step_00000010", 10)
    assert "step_00000015/rng.safetensors" in caplog.text
    assert (tmp_path / "damaged.step_00000015").is_dir()
    (place / "state.json").write_text("{}")
    for _ in range(2):  # a second attempt does not begin at the first step
        with pytest.raises(IntegrityError, match="every checkpoint is damaged"):
            resume.newest(tmp_path)


@pytest.mark.parametrize("failing", ["save_file", "flush"])
def test_a_full_disk_costs_no_earlier_checkpoint(tmp_path, monkeypatch, failing):
    saved(tmp_path, 5)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, failing, full)
        with pytest.raises(InputError, match=r"step_00000010: cannot write .*No space left"):
            saved(tmp_path, 10)
    assert [p.name for p in tmp_path.iterdir()] == ["step_00000005"]
    resume.check(tmp_path / "step_00000005")


def test_a_step_saved_again_replaces_the_old_one_only_the_newest_are_kept_and_left_overs_go(tmp_path):
    saved(tmp_path, 5, 10, 15)
    again = checkpoint.save(tmp_path, replace(state(15), task="pretrain"), Snapshot.of(*moved(1)), ())
    assert resume.check(again).task == "pretrain"
    (tmp_path / ".step_00000020.123.tmp").mkdir()
    checkpoint.keep_newest(tmp_path, 0)
    assert len(list(tmp_path.iterdir())) == 3
    checkpoint.keep_newest(tmp_path, 2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step_00000010", "step_00000015"]


def test_a_checkpoint_that_is_written_while_training_goes_on_has_the_values_of_its_step(
    manifest, tmp_path, monkeypatch
):
    """The writer waits until two more steps are done; each file is that of a run that waits for its checkpoints."""
    written, steps = checkpoint.save, threading.Semaphore(0)

    def late(folder: Path, saved: State, *rest: object) -> Path:
        if threading.current_thread() is not threading.main_thread() and saved.step == 2:
            assert all(steps.acquire(timeout=60) for _ in range(4)), "two steps before it, and two after"
        return written(folder, saved, *rest)

    def objective(*args: object) -> object:
        steps.release()
        return label_sum(*args)

    monkeypatch.setattr(checkpoint, "save", late)
    for name in ("waits", "goes on"):
        run = trainer(manifest, tmp_path / name, objective, steps=5, save_every=2, async_save=name == "goes on")
        while steps.acquire(blocking=False):
            pass
        run.fit()
    for step in (2, 4, 5):
        folders = [tmp_path / name / "checkpoints" / f"step_{step:08d}" for name in ("waits", "goes on")]
        for file in folders[0].glob("*.safetensors"):
            assert file.read_bytes() == (folders[1] / file.name).read_bytes(), file.name


def test_a_checkpoint_that_could_not_be_written_in_the_background_ends_the_run(manifest, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "write_model", full)
    with pytest.raises(InputError, match="No space left"):
        fitted(manifest, tmp_path, save_every=1, async_save=True)
