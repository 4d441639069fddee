import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from datakit.errors import InputError, IntegrityError, ModelError
from train import checkpoint
from train.checkpoint import State
from train.config import LoopConfig
from train.data import DataConfig
from train.model import PRESETS, CausalLM
from train.optim import OptimConfig, Optimizers, make_optimizer
from train.sft import LabelConfig, label_loss
from train.start import RunConfig, Trainer

loss = label_loss(LabelConfig())

SIZE = replace(PRESETS["tiny"], vocab_size=20, num_layers=1, hidden_size=16, head_dim=4, intermediate_size=24)


def state(step: int) -> State:
    facts = {"pad_id": 0, "eos_id": 2, "bos_id": None}
    return State(step=step, task="sft", manifest_version="0" * 12, tokenizer=facts, order={}, config={})


def moved(seed: int) -> tuple[CausalLM, Optimizers]:
    """A model that has taken a step."""
    model = CausalLM(SIZE)
    model.init_weights(torch.Generator().manual_seed(seed))
    optimizer = make_optimizer(model, OptimConfig())
    for p in model.parameters():
        p.grad = torch.randn(p.shape, generator=torch.Generator().manual_seed(seed))
    optimizer.step()
    return model, optimizer


def test_weights_optimizer_and_generators_come_back_as_they_were(tmp_path: Path) -> None:
    model, optimizer = moved(0)
    place = checkpoint.save(tmp_path, state(7), model, optimizer, ())
    drawn = torch.rand(3)
    other, other_optimizer = moved(1)
    assert checkpoint.check(place).step == 7
    checkpoint.restore(place, other, other_optimizer)
    assert torch.equal(torch.rand(3), drawn)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
        assert all(torch.equal(v, other_optimizer.state[two][k]) for k, v in optimizer.state[one].items())


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "config.json", "state.json"])
def test_one_changed_byte_is_found_and_the_file_named(tmp_path: Path, name: str) -> None:
    place = checkpoint.save(tmp_path, state(7), *moved(0), ())
    data = (place / name).read_bytes()
    at = data.rindex(b"7") if name == "state.json" else len(data) // 2
    (place / name).write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(IntegrityError, match=name.replace(".", r"\.")):
        checkpoint.check(place)


def test_the_newest_whole_checkpoint_is_found_and_damaged_ones_are_set_aside(tmp_path: Path) -> None:
    for step in (5, 10, 15):
        checkpoint.save(tmp_path, state(step), *moved(0), ())
    (tmp_path / "step_00000015" / "rng.safetensors").unlink()
    damaged: list[str] = []
    place, found = checkpoint.newest(tmp_path, damaged)
    assert (place.name, found.step) == ("step_00000010", 10)
    assert "step_00000015/rng.safetensors" in damaged[0]
    assert (tmp_path / "damaged.step_00000015").is_dir()


def test_nothing_but_damage_is_refused_and_nothing_at_all_is_none(tmp_path: Path) -> None:
    assert checkpoint.newest(tmp_path, []) is None
    place = checkpoint.save(tmp_path, state(5), *moved(0), ())
    (place / "state.json").write_text("{}")
    with pytest.raises(IntegrityError, match="every checkpoint is damaged"):
        checkpoint.newest(tmp_path, [])


@pytest.mark.parametrize("failing", ["save_file", "_flush"])
def test_a_full_disk_costs_no_earlier_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    checkpoint.save(tmp_path, state(5), *moved(0), ())

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, failing, full)
        with pytest.raises(InputError, match=r"step_00000010: cannot write .*No space left"):
            checkpoint.save(tmp_path, state(10), *moved(0), ())
    assert [p.name for p in tmp_path.iterdir()] == ["step_00000005"]
    checkpoint.check(tmp_path / "step_00000005")


def test_only_the_newest_are_kept_and_left_overs_go(tmp_path: Path) -> None:
    for step in (5, 10, 15):
        checkpoint.save(tmp_path, state(step), *moved(0), ())
    (tmp_path / ".step_00000020.123.tmp").mkdir()
    checkpoint.keep_newest(tmp_path, 0)
    assert len(list(tmp_path.iterdir())) == 3
    checkpoint.keep_newest(tmp_path, 2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step_00000010", "step_00000015"]


def test_a_step_that_is_saved_again_replaces_the_old_one(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, state(5), *moved(0), ())
    place = checkpoint.save(tmp_path, replace(state(5), task="pretrain"), *moved(1), ())
    assert checkpoint.check(place).task == "pretrain"
    assert [p.name for p in tmp_path.iterdir()] == ["step_00000005"]


def test_a_checkpoint_of_another_model_is_refused_by_tensor(tmp_path: Path) -> None:
    place = checkpoint.save(tmp_path, state(5), *moved(0), ())
    other = CausalLM(replace(SIZE, vocab_size=21))
    with pytest.raises(ModelError, match=r"model\.embed_tokens\.weight.*\(20, 16\).*\(21, 16\)"):
        checkpoint.restore(place, other, make_optimizer(other, OptimConfig()))


def test_nothing_in_a_checkpoint_is_a_pickle(tmp_path: Path) -> None:
    place = checkpoint.save(tmp_path, state(5), *moved(0), ())
    assert {p.suffix for p in place.iterdir()} == {".json", ".safetensors"}
    assert json.loads((place / "generation_config.json").read_text()) == {"pad_token_id": 0, "eos_token_id": 2}


def test_a_checkpoint_that_is_written_while_training_goes_on_has_the_values_of_its_step(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer waits until two more steps are done; each file is that of a run that waits for its checkpoints."""
    written, steps = checkpoint.save, threading.Semaphore(0)

    def late(folder: Path, saved: State, *rest: object) -> Path:
        if threading.current_thread() is not threading.main_thread() and saved.step == 2:
            assert steps.acquire(timeout=60) and steps.acquire(timeout=60)
        return written(folder, saved, *rest)

    def objective(*args: object) -> object:
        steps.release()
        return loss(*args)

    monkeypatch.setattr(checkpoint, "save", late)
    for name in ("waits", "goes on"):
        trainer = Trainer(
            RunConfig(
                manifest=str(manifest), preset="tiny", optim=OptimConfig(lr=1e-3),
                data=DataConfig(batch_rows=4, bucket_sizes=(64,)),
                loop=LoopConfig(
                    out=str(tmp_path / name), dtype="fp32", steps=5, save_every=2, async_save=name == "goes on"
                ),
            ),
            objective,
        )  # fmt: skip
        while steps.acquire(blocking=False):
            pass
        trainer.fit()
    for step in (2, 4, 5):
        folders = [tmp_path / name / "checkpoints" / f"step_{step:08d}" for name in ("waits", "goes on")]
        for file in folders[0].glob("*.safetensors"):
            assert file.read_bytes() == (folders[1] / file.name).read_bytes(), file.name


def test_a_checkpoint_that_could_not_be_written_in_the_background_ends_the_run(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write_model", full)
    config = RunConfig(
        manifest=str(manifest), preset="tiny", data=DataConfig(batch_rows=4, bucket_sizes=(64,)),
        loop=LoopConfig(out=str(tmp_path / "run"), steps=4, save_every=1, async_save=True),
    )  # fmt: skip
    with pytest.raises(InputError, match="No space left"):
        Trainer(config, loss).fit()
