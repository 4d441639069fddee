"""Every option of the model: on and off, packed and unpacked, saved and loaded, resumed."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from datakit.errors import ConfigError, ModelError, UsageError
from train.data.batches import Batch, collate
from train.data.order import MicroBatch
from train.data.packed import PackedSet
from train.engine import flags
from train.merge import main as merge
from train.model import hf
from train.model.attention import Segments, masked_attention
from train.model.decoder import PRESETS, REMOVED_OPTIONS, CausalLM, ModelConfig, ModelOptions, ahead_loss
from train.model.experts import MoeConfig
from train.model.loss import dense_loss
from train.model.sample import SampleConfig, generate
from train.sft import LabelConfig, label_loss
from train.sft import main as sft

SMALL = replace(
    PRESETS["tiny"], vocab_size=300, num_layers=3, hidden_size=32, head_dim=8, num_heads=4, num_kv_heads=2,
    intermediate_size=48,
)  # fmt: skip
OPTIONS: dict[str, dict] = {
    "logit_softcap": {"logit_softcap": 2.0},
    "relu2": {"relu2": True},
    "value_embeddings": {"value_embeddings": 1},
    "mtp_depth": {"mtp_depth": 2},
    "everything": {"logit_softcap": 5.0, "relu2": True, "value_embeddings": 1, "mtp_depth": 1},
}  # fmt: skip
EXPERTS = MoeConfig(num_experts=4, experts_per_token=2, expert_size=16, shared_expert_size=8)
CONFIGS = {name: replace(SMALL, options=ModelOptions(**values)) for name, values in OPTIONS.items()} | {
    "experts": replace(SMALL, moe=EXPERTS)
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
    sets = [PackedSet.open(pack(r, seq_len=64)) for r in (rows, [[piece] for row in rows for piece in row])]
    found = [collate(s, MicroBatch(torch.arange(len(s.lengths)).numpy(), 64), len(s.lengths)) for s in sets]
    return found[0], found[1]


def gradients(model: CausalLM, loss: Tensor) -> list[Tensor]:
    found = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return [loss.detach()] + [torch.zeros_like(p) if g is None else g for g, p in zip(found, model.parameters())]  # noqa: B905


def plainest(model: CausalLM, batch: Batch) -> Tensor:
    attend = masked_attention(batch.segments)
    hidden = model(batch.ids_BT, batch.segments.positions_BT, attend)
    total, count = dense_loss(hidden, model.lm_head, batch.label_pos_L, batch.targets_L)
    return (total + (ahead_loss(model, hidden, batch, attend) if model.ahead else 0)) / count


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


@pytest.mark.parametrize("name", [n for n in OPTIONS if n not in ("mtp_depth", "relu2")])
def test_an_option_changes_what_the_same_weights_compute(name: str) -> None:
    """Tokens ahead leave the next one's logits alone, and the squared ReLU has other weights."""
    model, plain = made(CONFIGS[name]), CausalLM(replace(SMALL, options=ModelOptions(relu2=name == "everything")))
    weights = model.state_dict()
    plain.load_state_dict({k: weights[k] for k in plain.state_dict()})
    ids = torch.randint(0, 300, (1, 20), generator=torch.Generator().manual_seed(0))
    assert not torch.allclose(logits(model, ids), logits(plain, ids), atol=1e-3)


def test_half_precision_is_near(config: ModelConfig, batches: tuple) -> None:
    model, batch = made(config), batches[0]
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        low = label_loss(LabelConfig())(model, batch)
    assert (low[0] / low[1]).item() == pytest.approx(plainest(model, batch).item(), rel=3e-2)


def test_generating_says_what_the_whole_text_says(config: ModelConfig) -> None:
    """Two prompts of different lengths, in one batch with a cache."""
    model, prompts = made(config), [[5, 9, 13, 4], [7, 8]]
    found = list(generate(model, prompts, frozenset(), SampleConfig(max_new_tokens=8)))
    for number, prompt in enumerate(prompts):
        ids = list(prompt)
        for tokens in found:
            assert logits(model, torch.tensor([ids]))[0, -1].argmax() == tokens[number]
            ids.append(tokens[number])


def test_a_saved_model_is_the_same_when_loaded_and_is_no_one_elses(config: ModelConfig, tmp_path: Path) -> None:
    model = made(config)
    with pytest.raises(ModelError, match=r"no Hugging Face architecture has .*only our own layout"):
        hf.write_model(tmp_path, model, (), {})
    hf.write_model(tmp_path, model, (), {}, own=True)
    again = hf.read_model(tmp_path)
    assert again.config == config
    ids = torch.randint(0, 300, (1, 20))
    assert torch.equal(logits(model, ids), logits(again, ids))
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == "datakit"
    transformers = pytest.importorskip("transformers")
    with pytest.raises(ValueError, match="datakit"):
        transformers.AutoConfig.from_pretrained(tmp_path)


FLAGS = ["--logit-softcap", "5", "--relu2", "--mtp-depth", "1", "--value-embeddings", "1"]


@pytest.mark.parametrize("flags", [FLAGS, ["--num-experts", "4", "--shared-expert-size", "8"]])
def test_a_run_with_options_resumes_exactly(manifest: Path, tmp_path: Path, flags: list[str]) -> None:
    common = ["--manifest", str(manifest), "--preset", "tiny", "--steps", "4", "--dtype", "fp32", *flags]
    assert sft([*common, "--out", str(tmp_path / "whole")]) == 0
    assert sft([*common, "--out", str(tmp_path / "parts"), "--stop-at", "2"]) == 0
    assert sft([*common, "--out", str(tmp_path / "parts"), "--resume"]) == 0
    one, other = ((tmp_path / n / "metrics.jsonl").read_text().splitlines() for n in ("whole", "parts"))
    assert [json.loads(x)["loss"] for x in one] == [json.loads(x)["loss"] for x in other]
    last = tmp_path / "parts" / "checkpoints" / "step_00000004"
    assert sft(["--manifest", str(manifest), "--init", str(last), "--steps", "1", "--out", str(tmp_path / "on")]) == 0
    with pytest.raises(UsageError, match="the model of --init has its own"):
        sft(["--manifest", str(manifest), "--init", str(last), "--relu2", "--out", str(tmp_path / "no")])


def test_averages_of_a_model_with_options_need_our_layout(manifest: Path, tmp_path: Path) -> None:
    common = ["--manifest", str(manifest), "--preset", "tiny", "--steps", "1", "--out", str(tmp_path / "run")]
    assert sft([*common, "--relu2", "--ema-decay", "0.9"]) == 0
    command = ["--adapter", str(tmp_path / "run"), "--weights", "ema", "--output", str(tmp_path / "to")]
    with pytest.raises(ModelError, match="no Hugging Face architecture has relu2"):
        merge(command)
    assert merge([*command, "--own-layout"]) == 0
    assert hf.read_config(tmp_path / "to").options.relu2


def test_layers_begin_by_adding_nothing() -> None:
    model = CausalLM(replace(SMALL, options=ModelOptions(zero_init=True)))
    model.init_weights(torch.Generator().manual_seed(0))
    ids = torch.randint(0, 300, (1, 9))
    stream = model.model.norm(model.model.embed_tokens(ids))
    torch.testing.assert_close(logits(model, ids), model.lm_head(stream).detach())
    assert hf.foreign(model.config) == []


def test_logits_stay_within_the_cap() -> None:
    model = made(CONFIGS["logit_softcap"])
    with torch.no_grad():
        model.lm_head.weight *= 100
    found = logits(model, torch.randint(0, 300, (1, 9)))
    assert 1.9 < found.abs().max() <= 2.0


def test_values_are_mixed_from_tables_that_first_and_last_layers_share() -> None:
    config = replace(SMALL, num_layers=5, options=ModelOptions(value_embeddings=2))
    assert [made(config).extras.table(i) for i in range(5)] == [0, 1, None, 0, 1]


def test_the_layer_ahead_predicts_the_token_after_the_next(batches: tuple) -> None:
    model, batch = made(replace(SMALL, options=ModelOptions(mtp_depth=1, mtp_weight=1.0))), batches[1]
    segments, (ahead,) = batch.segments, model.ahead
    attend = masked_attention(segments)
    hidden = model(batch.ids_BT, segments.positions_BT, attend)
    shifted = F.pad(hidden, (0, 0, 1, 0))[:, :-1]
    stream = ahead.proj(
        torch.cat((ahead.hidden_norm(shifted), ahead.token_norm(model.model.embed_tokens(batch.ids_BT))), -1)
    )
    states = ahead.norm(ahead.block(stream, model.ropes(segments.positions_BT, stream.dtype), attend))
    width, expected = batch.ids_BT.shape[1], 0.0
    for place, target in zip(batch.label_pos_L.tolist(), batch.targets_L.tolist(), strict=True):
        if place % width:  # one sequence a row: its first token has none before it
            expected += F.cross_entropy(
                model.lm_head(states[place // width, place % width]), torch.tensor(target)
            ).item()
    assert ahead_loss(model, hidden, batch, attend).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"value_embeddings": 2}, "value_embeddings"),
        ({"logit_softcap": -1.0}, "negative"),
    ],
)
def test_impossible_options_are_refused(values: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(SMALL, options=ModelOptions(**values))


def test_unknown_options_of_a_folder_are_refused(tmp_path: Path) -> None:
    hf.write_model(tmp_path, made(CONFIGS["relu2"]), (), {}, own=True)
    config = json.loads((tmp_path / "config.json").read_text())
    config["datakit"]["options"]["warp"] = True
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="warp"):
        hf.read_config(tmp_path)


REMOVED = {
    "untie_at": 0.5, "paired_layers": [1], "partial_key_offset": True, "smear": True, "bigram_buckets": 64,
    "backout": True,
}  # fmt: skip


def test_these_are_the_options_that_were_removed() -> None:
    assert tuple(REMOVED) == REMOVED_OPTIONS


@pytest.mark.parametrize("name", REMOVED)
def test_a_removed_option_is_refused_by_one_sentence(
    name: str, manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the command line, in the folder of a model, and in a run to resume."""
    flag, value = f"--{name.replace('_', '-')}", REMOVED[name]
    said = f"the model option {name} was removed, like all of {', '.join(REMOVED)}"
    argv = ["--manifest", str(manifest), flag, *([] if value is True else [str(value)]), "--out", str(tmp_path / "run")]
    monkeypatch.setattr(sys, "argv", ["train.sft", *argv])
    assert flags.guarded(sft) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {flag}: {said}") and error.count("\n") == 1

    folder = tmp_path / "model"
    folder.mkdir()
    hf.write_model(folder, made(CONFIGS["logit_softcap"]), (), {}, own=True)
    config = json.loads((folder / "config.json").read_text())
    config["datakit"]["options"][name] = value
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=f"config.json: {said}"):
        sft(["--manifest", str(manifest), "--init", str(folder), "--out", str(tmp_path / "run")])

    earlier = {"config": {"manifest": str(manifest), "options": {name: value}, "loop": {}}}
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "run.json").write_text(json.dumps(earlier))
    with pytest.raises(ConfigError, match=f"run.json: {said}"):
        sft(["--resume", "--out", str(tmp_path / "old")])


def test_a_run_of_an_earlier_version_without_removed_options_resumes(manifest: Path, tmp_path: Path) -> None:
    """Its run.json has every removed option, switched off, and an earlier name of a section."""
    out = tmp_path / "run"
    common = ["--manifest", str(manifest), "--preset", "tiny", "--steps", "2", "--out", str(out)]
    assert sft([*common, "--stop-at", "1", "--eval-every", "1", "--eval-manifest", str(manifest)]) == 0
    run = json.loads((out / "run.json").read_text())
    run["config"]["options"] |= {
        "untie_at": 0.0, "paired_layers": [], "partial_key_offset": False, "smear": False, "bigram_buckets": 0,
        "backout": False,
    }  # fmt: skip
    run["config"]["watch"] = run["config"].pop("evaluator")
    (out / "run.json").write_text(json.dumps(run))
    assert sft(["--resume", "--out", str(out)]) == 0
    assert len((out / "eval.jsonl").read_text().splitlines()) == 2
