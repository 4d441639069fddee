"""Distillation: its loss is the dense one written here; a student learns and resumes."""

from pathlib import Path

import pytest
import torch

from datakit.errors import ConfigError, ModelError, UsageError
from tests.train.runs import as_flags, losses, records, small_model
from train import distill
from train.attention import masked_attention
from train.data import Batch, DataConfig, PackedSet, StepStream
from train.distill import TeacherConfig, distill_loss
from train.hf import write_model
from train.loss import LossConfig
from train.model import CausalLM
from train.weights import read_model


def made(seed: int, **size: float) -> CausalLM:
    model = small_model(seed, **size)
    with torch.no_grad():
        model.lm_head.weight *= 20  # so that the two are sure of different tokens
    return model


@pytest.fixture(scope="module")
def batch(manifest: Path) -> Batch:
    return next(iter(StepStream(PackedSet.open_all(manifest)[0], DataConfig(batch_rows=5), seed=0)))[0]


def hidden_of(model: CausalLM, batch: Batch) -> torch.Tensor:
    """The states of the labels."""
    states = model(batch.ids_BT, batch.segments.positions_BT, masked_attention(batch.segments))
    return states.flatten(0, 1)[batch.label_pos_L]


def dense(student: CausalLM, teacher: CausalLM, batch: Batch, config: TeacherConfig) -> torch.Tensor:
    """The whole loss from all logits of all positions, by the formulas."""
    s, t = (m.lm_head(hidden_of(m, batch)) for m in (student, teacher))
    ce = -s.softmax(-1).gather(1, batch.targets_L[:, None]).log().sum()
    s, t = (x[:, : min(s.shape[1], t.shape[1])] for x in (s, t))
    p, q = (t / config.temperature).softmax(-1), (s / config.temperature).softmax(-1)
    return config.alpha * ce + (1 - config.alpha) * config.temperature**2 * (p * (p / q).log()).sum()


def gradients(model: CausalLM, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    model.zero_grad()
    loss.backward()
    return {n: p.grad.clone() for n, p in model.named_parameters()}


@pytest.mark.parametrize(
    ("values", "softcap"), [({}, 0.0), ({"temperature": 3.0, "alpha": 0.2}, 0.0), ({"alpha": 0.0}, 0.0), ({}, 2.0)]
)
@pytest.mark.parametrize("labels", [LossConfig(loss_chunk=7), LossConfig(label_only=False, attention="masked")])
def test_the_loss_and_its_gradients_are_the_dense_ones(batch, values, softcap, labels):
    """Through the soft cap of a student's head, too."""
    config = TeacherConfig(teacher="-", **values)
    student = made(0, logit_softcap=softcap)
    teacher = made(1, hidden_size=48, head_dim=12, vocab_size=384).requires_grad_(False)
    expected = dense(student, teacher, batch, config)
    objective = distill_loss(config, teacher, labels)
    found, count, logged = objective(student, batch)
    assert count == len(batch.targets_L)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)
    assert logged["kl"] > 0
    ours = gradients(student, found / count)
    for name, grad in gradients(student, dense(student, teacher, batch, config) / count).items():
        torch.testing.assert_close(ours[name], grad, rtol=1e-4, atol=1e-6, msg=name)


def test_in_bf16_the_loss_is_near_that_in_fp32(batch):
    student, teacher = made(0), made(1).requires_grad_(False)
    objective = distill_loss(TeacherConfig(teacher="-"), teacher, LossConfig())
    whole = objective(student, batch).loss_sum
    with torch.autocast("cpu", torch.bfloat16):
        half = objective(student, batch).loss_sum
    torch.testing.assert_close(half, whole, rtol=0.02, atol=0)


def test_never_more_than_a_chunk_of_logits_is_held(batch, monkeypatch):
    seen, whole = list[int](), distill.label_losses
    monkeypatch.setattr(distill, "label_losses", lambda s, t, y, c: seen.append(len(s)) or whole(s, t, y, c))
    distill_loss(TeacherConfig(teacher="-"), made(1), LossConfig(loss_chunk=16))(made(0), batch)
    assert max(seen) == 16 and sum(seen) == len(batch.targets_L)


def student(manifest: Path, init: Path, out: Path, *more: str) -> list[dict]:
    options = as_flags(manifest=manifest, out=out, init=init, steps=6, dtype="fp32", batch_rows=4, lr=1e-3)
    assert distill.main([*options, *more]) == 0
    return records(out)


@pytest.fixture(scope="module")
def narrow(manifest: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A student of another width, as a folder."""
    folder = tmp_path_factory.mktemp("narrow")
    write_model(folder, made(3), PackedSet.open_all(manifest)[0].tokenizer_files, {})
    return folder


@pytest.mark.parametrize("width", [32, 48])
def test_hidden_states_are_compared_as_the_formulas_say(batch, width):
    """MSE and 1 - cosine over labels, through a map only where the widths differ; gradients reach the map."""
    config = TeacherConfig(teacher="-", hidden_mse_weight=0.5, hidden_cosine_weight=2.0)
    student, teacher = made(0), made(1, hidden_size=width, head_dim=width // 4).requires_grad_(False)
    distill.with_hidden_map(student, teacher, seed=3)
    assert (student.hidden_map is None) == (width == student.config.hidden_size)
    with_hidden = distill_loss(config, teacher, LossConfig())(student, batch)
    plain = distill_loss(TeacherConfig(teacher="-"), teacher, LossConfig())(student, batch)
    s, t = hidden_of(student, batch), hidden_of(teacher, batch)
    s = s if student.hidden_map is None else s @ student.hidden_map.weight.T
    mse = ((s - t) ** 2).sum() / width
    cosine = (1 - (s * t).sum(1) / (s.norm(dim=1) * t.norm(dim=1))).sum()
    torch.testing.assert_close(with_hidden.loss_sum, plain.loss_sum + 0.5 * mse + 2.0 * cosine, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(with_hidden.logged["hidden_mse"], mse.detach(), rtol=1e-5, atol=1e-4)
    if student.hidden_map is not None:
        assert gradients(student, with_hidden.loss_sum)["hidden_map.weight"].abs().max() > 0


def test_the_map_of_hidden_states_is_resumed_and_no_part_of_the_model(manifest, short_run, narrow, tmp_path):
    options = ["--teacher", str(short_run), "--lr", "1e-2", "--hidden-mse-weight", "1", "--hidden-cosine-weight", "1"]
    whole = student(manifest, narrow, tmp_path / "whole", *options)
    assert whole[-1]["hidden_cosine"] < whole[0]["hidden_cosine"] and whole[-1]["kl"] < whole[0]["kl"]
    student(manifest, narrow, tmp_path / "parts", *options, "--stop-at", "3")
    place = tmp_path / "parts" / "checkpoints" / "step_00000003"
    assert (place / "beside.safetensors").is_file()
    assert read_model(place).hidden_map is None
    assert distill.main(["--resume", "--out", str(tmp_path / "parts")]) == 0
    assert losses(tmp_path / "parts") == [r["loss"] for r in whole]


def test_a_teacher_of_another_tokenizer_or_a_smaller_vocabulary_is_refused(
    manifest, pack, random_rows, narrow, tmp_path
):
    data = PackedSet.open_all(manifest)[0]
    other, out = tmp_path / "other", tmp_path / "out"
    other.mkdir()
    write_model(other, made(1, vocab_size=280), data.tokenizer_files, {})
    options = as_flags(manifest=manifest, init=narrow, out=out, steps=1)
    with pytest.raises(ModelError, match=r"vocabulary of 300, but the model in .* has 280"):
        distill.main([*options, "--teacher", str(other)])
    (other / "tokenizer.json").write_text((other / "tokenizer.json").read_text() + " ")
    with pytest.raises(ModelError, match=r"model's own tokenizer .*`datakit pack ROWS --tokenizer .*other`"):
        distill.main([*options, "--teacher", str(other)])
    with pytest.raises(UsageError, match="--teacher"):
        distill.main(options)
    plain = as_flags(manifest=manifest, out=out, preset="tiny", teacher=narrow, attention="varlen")
    with pytest.raises(ConfigError, match="--attention varlen is a CUDA kernel"):
        distill.main(plain)
