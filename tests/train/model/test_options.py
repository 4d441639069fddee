"""Every option of the model: on and off, packed and unpacked, saved and loaded, resumed."""

import json
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
from train.merge import main as merge
from train.model import hf
from train.model.attention import Segments, grouped_attention, masked_attention
from train.model.decoder import PRESETS, CausalLM, ModelConfig, ModelOptions, ahead_loss
from train.model.experts import MoeConfig
from train.model.loss import dense_loss
from train.model.sample import PromptCache, SampleConfig, generate
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
    "paired_layers": {"paired_layers": (0, 2)},
    "partial_key_offset": {"partial_key_offset": True},
    "smear": {"smear": True},
    "bigram_buckets": {"bigram_buckets": 40},
    "backout": {"backout": True},
    "everything": {
        "logit_softcap": 5.0, "relu2": True, "value_embeddings": 1, "mtp_depth": 1, "paired_layers": (1, 2),
        "partial_key_offset": True, "smear": True, "bigram_buckets": 64, "backout": True,
    },
}  # fmt: skip
LOOKING_BACK = ["paired_layers", "partial_key_offset", "smear", "bigram_buckets", "everything"]
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
    """Two prompts of unlike lengths, with a cache or, where an option looks back, without."""
    model, prompts = made(config), [[5, 9, 13, 4], [7, 8]]
    found = list(generate(model, prompts, frozenset(), SampleConfig(max_new_tokens=8)))
    for number, prompt in enumerate(prompts):
        ids = list(prompt)
        for tokens in found:
            assert logits(model, torch.tensor([ids]))[0, -1].argmax() == tokens[number]
            ids.append(tokens[number])


def test_a_cache_refuses_by_name_what_it_does_not_hold(config: ModelConfig) -> None:
    model, cache = made(config), PromptCache(torch.zeros(1, dtype=torch.long), 4)
    if config.looks_back:
        with pytest.raises(ModelError, match=f"cache does not hold what .*{next(iter(config.options.changed()))}"):
            model(torch.tensor([[5]]), torch.tensor([[0]]), cache)


def test_those_that_look_back_are_known() -> None:
    assert [name for name, config in CONFIGS.items() if config.looks_back] == LOOKING_BACK


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


FLAGS = ["--logit-softcap", "5", "--smear", "--bigram-buckets", "64", "--mtp-depth", "1", "--value-embeddings", "1"]


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
    with pytest.raises(UsageError, match="the one of --init has its own"):
        sft(["--manifest", str(manifest), "--init", str(last), "--smear", "--out", str(tmp_path / "no")])


def test_averages_of_a_model_with_options_need_our_layout(manifest: Path, tmp_path: Path) -> None:
    common = ["--manifest", str(manifest), "--preset", "tiny", "--steps", "1", "--out", str(tmp_path / "run")]
    assert sft([*common, "--smear", "--ema-decay", "0.9"]) == 0
    command = ["--adapter", str(tmp_path / "run"), "--weights", "ema", "--output", str(tmp_path / "to")]
    with pytest.raises(ModelError, match="no Hugging Face architecture has smear"):
        merge(command)
    assert merge([*command, "--own-layout"]) == 0
    assert hf.read_config(tmp_path / "to").options.smear


@pytest.mark.parametrize("share", [0.5, 0.0])
def test_a_head_is_untied_late_and_a_resumed_run_knows(manifest: Path, tmp_path: Path, share: float) -> None:
    common = ["--manifest", str(manifest), "--preset", "tiny", "--steps", "6", "--dtype", "fp32", "--ema-decay", "0.5"]
    common += ["--untie-at", str(share)]
    assert sft([*common, "--out", str(tmp_path / "whole"), "--save-every", "3"]) == 0
    for stop in (2, 3, 4, 0):
        assert sft([*common, "--out", str(tmp_path / "parts"), "--stop-at", str(stop), "--resume"]) == 0
    one, other = (tmp_path / n / "checkpoints" / "step_00000006" for n in ("whole", "parts"))
    tied = [hf.read_config(tmp_path / "whole" / "checkpoints" / f"step_0000000{i}").tied_embeddings for i in (3, 6)]
    assert tied == [True, share == 0]
    models = [hf.read_model(place) for place in (one, other)]
    for a, b in zip(*(m.parameters() for m in models), strict=True):
        assert torch.equal(a, b)
    if share:
        assert not torch.equal(models[0].lm_head.weight, models[0].model.embed_tokens.weight)
    assert (one / "ema.safetensors").read_bytes() == (other / "ema.safetensors").read_bytes()


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


def test_paired_heads_are_one_attention_over_both_heads_keys() -> None:
    """Head h and head h + H/2 of a token stand at places 2t and 2t + 1 of one sequence."""
    config = replace(SMALL, num_layers=1, options=ModelOptions(paired_layers=(0,)))
    model, width = made(config), 10
    layer, x = model.model.layers[0], torch.randn(1, width, 32)
    segments = Segments.of([[0, width]], width)
    positions = torch.stack((2 * segments.positions_BT, 2 * segments.positions_BT + 1), -1)
    q, k, v = layer.before(x, model.rotary(positions, x.dtype))
    _, rotary, passage = model._begin(
        torch.zeros(1, width, dtype=torch.long), segments.positions_BT, grouped_attention(segments)
    )
    assert torch.equal(rotary[True][0], model.rotary(positions, x.dtype)[0])
    found = passage(q, k, v, 0)
    for t in range(width):
        for a in (0, 1):
            for pair in (0, 1):  # 4 query heads make 2 pairs; 2 key/value heads make 1
                seen = [(s, b) for s in range(width) for b in (0, 1) if 2 * s + b <= 2 * t + a]
                scores = torch.stack([q[0, t, a, pair] @ k[0, s, b, 0] for s, b in seen]) / 8**0.5
                expected = scores.softmax(0) @ torch.stack([v[0, s, b, 0] for s, b in seen])
                torch.testing.assert_close(found[0, t, a * 2 + pair], expected, atol=1e-5, rtol=1e-4)


def test_bigrams_and_smears_stay_within_their_sequence() -> None:
    config = replace(SMALL, options=ModelOptions(bigram_buckets=40, smear=True))
    model, ids = made(config), torch.tensor([[7, 8, 9, 7, 8, 0]])
    segments = Segments.of([[0, 3, 5]], 6)
    _, _, passage = model._begin(ids, segments.positions_BT, grouped_attention(segments))
    buckets = passage._bigram_ids()[0].tolist()
    expected = [((36313 * b) ^ (27191 * a)) % 39 for a, b in ((7, 8), (8, 9))]
    assert buckets[:5] == [39, *expected, 39, expected[0]] and buckets[5] == 39
    x = model.model.embed_tokens(ids)
    smeared = passage.begin(x)[0]
    gate = model.extras.smear_gate(x[..., :12]).sigmoid()[0]
    for t, before in enumerate([None, 0, 1, None, 3]):
        added = 0 if before is None else model.extras.smear_scale * gate[t] * x[0, before]
        torch.testing.assert_close(smeared[t], x[0, t] + added)


def test_a_key_without_position_is_the_token_befores() -> None:
    model = made(CONFIGS["partial_key_offset"])
    segments = Segments.of([[0, 3, 6]], 6)
    seen = []

    def attend(q: Tensor, k: Tensor, v: Tensor, layer: int) -> Tensor:
        seen.append(k)
        return q

    attention = grouped_attention(segments)
    attention._attend = attend
    _, rotary, passage = model._begin(torch.zeros(1, 6, dtype=torch.long), segments.positions_BT, attention)
    q, k, v = model.model.layers[0].before(torch.randn(1, 6, 32), rotary[False])
    passage(q, k, v, 0)
    still, moving = [2, 3, 6, 7], [0, 1, 4, 5]  # of 8: the pairs are (i, i + 4), and half of the pairs do not turn
    source = [0, 0, 1, 3, 3, 4]
    assert torch.equal(seen[0][..., moving], k[..., moving])
    assert torch.equal(seen[0][..., still], k[:, source][..., still])
    bare = model.model.layers[0].self_attn.k_proj
    torch.testing.assert_close(rotary[False][1][..., 2:], torch.zeros(1, 6, 1, 2))
    assert bare.weight.shape == (16, 32)


def test_values_are_mixed_from_tables_that_first_and_last_layers_share() -> None:
    config = replace(SMALL, num_layers=5, options=ModelOptions(value_embeddings=2))
    assert [made(config).extras.value_table(i) for i in range(5)] == [0, 1, None, 0, 1]


def test_the_layer_ahead_predicts_the_token_after_the_next(batches: tuple) -> None:
    model, batch = made(replace(SMALL, options=ModelOptions(mtp_depth=1, mtp_weight=1.0))), batches[1]
    segments, (ahead,) = batch.segments, model.ahead
    attend = masked_attention(segments)
    hidden = model(batch.ids_BT, segments.positions_BT, attend)
    shifted = F.pad(hidden, (0, 0, 1, 0))[:, :-1]
    stream = ahead.proj(
        torch.cat((ahead.hidden_norm(shifted), ahead.token_norm(model.model.embed_tokens(batch.ids_BT))), -1)
    )
    states = ahead.norm(ahead.block(stream, model.rotary(segments.positions_BT, stream.dtype), attend))
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
        ({"paired_layers": (3,)}, "paired_layers"),
        ({"value_embeddings": 2}, "value_embeddings"),
        ({"bigram_buckets": 1}, "bigram_buckets"),
        ({"untie_at": 1.0}, "untie_at"),
        ({"logit_softcap": -1.0}, "negative"),
    ],
)
def test_impossible_options_are_refused(values: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(SMALL, options=ModelOptions(**values))


def test_unknown_options_of_a_folder_are_refused(tmp_path: Path) -> None:
    hf.write_model(tmp_path, made(CONFIGS["smear"]), (), {}, own=True)
    config = json.loads((tmp_path / "config.json").read_text())
    config["datakit"]["options"]["warp"] = True
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="warp"):
        hf.read_config(tmp_path)
