"""Adapters: what they leave unchanged, what they save, and that merging them changes no logit."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from datakit.errors import ModelError
from tests.train.runs import as_flags, losses, small_model
from tests.train.runs import logits as logits_of
from train import checkpoint, hf, lora, merge, sft, weights
from train.attention import Segments, grouped_attention
from train.data import PackedSet
from train.generate import load
from train.generate import main as generate
from train.lora import LoraConfig, LoraLinear
from train.model import PRESETS, CausalLM
from train.weights import check_fits

IDS = torch.arange(3, 23)[None]
logits = partial(logits_of, ids_BT=IDS)


@pytest.fixture
def model() -> CausalLM:
    return small_model(qkv_bias=True)


def spoiled(model: CausalLM) -> None:
    with torch.no_grad():
        for p in checkpoint.trained(model).values():
            p.add_(torch.randn(p.shape, generator=torch.Generator().manual_seed(p.numel())) * 0.1)


def test_new_adapters_change_nothing_and_are_the_formula_on_their_targets_alone(model):
    before, base = logits(model), model.model.layers[0].self_attn.q_proj
    lora.attach(model, LoraConfig(lora_rank=4, lora_alpha=12.0, lora_targets=("q", "down")), torch.Generator())
    torch.testing.assert_close(logits(model), before, atol=0, rtol=0)
    spoiled(model)
    assert (logits(model) - before).abs().max() > 1e-2
    adapters, adapted, x = checkpoint.trained(model), model.model.layers[0].self_attn.q_proj, torch.randn(5, 32)
    assert len(adapters) == 2 * 2 * 2 and all(".q_proj.lora_" in n or ".down_proj.lora_" in n for n in adapters)
    expected = base(x) + 3.0 * x @ adapted.lora_A.T @ adapted.lora_B.T
    torch.testing.assert_close(adapted(x), expected, atol=1e-4, rtol=1e-4)


def train(manifest: Path, base: Path, out: Path, *more: str, main: Callable = sft.main) -> Path:
    options = as_flags(manifest=manifest, init=base, out=out, lora_rank=4, lr=1e-2, steps=14, dtype="fp32", threads=1)
    assert main([*options, *more]) == 0
    return out


@pytest.fixture(scope="module")
def run(manifest: Path, base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(manifest, base, tmp_path_factory.mktemp("lora") / "run")


def test_a_run_saves_adapters_alone_and_leaves_the_base_as_it_was(run, base):
    place = run / "checkpoints" / "step_00000014"
    names = {p.name for p in place.iterdir()}
    assert {"adapter_config.json", "adapter_model.safetensors", "tokenizer.json", "state.json"} <= names
    assert not names & {"model.safetensors", "config.json"}
    first, second = (sum(losses(run)[i : i + 7]) for i in (0, 7))  # two epochs of the same rows
    assert second < first
    assert weights.adapters(place)[1] == weights.fingerprint(base)
    assert json.loads((place / "state.json").read_text())["config"]["lora"]["lora_rank"] == 4


def test_a_merged_folder_is_the_adapted_model_for_every_reader(run, base, tmp_path, capsys):
    out = tmp_path / "merged"
    assert merge.main(["--model", str(run), "--output", str(out)]) == 0
    model, _, _ = load(run)  # the adapters over their base
    torch.testing.assert_close(logits(weights.read_model(out)), logits(model), atol=1e-5, rtol=1e-5)
    assert (logits(model) - logits(weights.read_model(base))).abs().max() > 1e-3
    special = [json.loads((d / "config.json").read_text())["eos_token_id"] for d in (base, out)]
    assert special[0] == special[1] is not None
    stored = {t.dtype for t in load_file(out / "model.safetensors").values()}
    assert stored == {hf.DTYPES[json.loads((out / "config.json").read_text())["torch_dtype"]]}
    said = []
    for folder in (run, out):
        capsys.readouterr()
        assert generate(["--model", str(folder), "--prompt", "hello", "--max-new-tokens", "5"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]


def test_peft_computes_the_same(run, base):
    peft = pytest.importorskip("peft", reason="peft is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    plain = transformers.AutoModelForCausalLM.from_pretrained(base)
    theirs = peft.PeftModel.from_pretrained(plain, run / "checkpoints" / "step_00000014")
    with torch.no_grad():
        found = theirs(IDS).logits
    torch.testing.assert_close(logits(load(run)[0]), found, atol=1e-4, rtol=1e-4)


def test_dropout_acts_in_training_alone_and_resumes_exactly(manifest, base, tmp_path):
    more = ["--lora-dropout", "0.3", "--steps", "4", "--checkpoint-every", "1"]
    whole = train(manifest, base, tmp_path / "whole", *more)
    plain = train(manifest, base, tmp_path / "plain", *more[2:])
    cut = train(manifest, base, tmp_path / "cut", *more, "--stop-at", "2")
    with pytest.raises(ModelError, match=r"was trained with lora_alpha 0\.0, and this run has 64\.0"):
        sft.main(["--resume", "--out", str(cut), "--lora-alpha", "64"])
    assert sft.main(["--resume", "--out", str(cut)]) == 0
    assert losses(whole) == losses(cut) != losses(plain)
    settings = json.loads((whole / "checkpoints" / "step_00000004" / "adapter_config.json").read_text())
    assert settings["lora_dropout"] == 0.3


def test_layers_computed_again_drop_the_same_inputs(model):
    lora.attach(model, LoraConfig(lora_rank=4, lora_dropout=0.5), torch.Generator().manual_seed(0))
    spoiled(model)
    found = []
    for every in (0, 1):
        model.checkpoint_every = every
        torch.manual_seed(1)
        model(IDS, torch.arange(20)[None], grouped_attention(Segments.of([[0, 20]], 20))).square().sum().backward()
        found.append([p.grad.clone() for p in checkpoint.trained(model).values()])
        model.zero_grad()
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_adapters_are_read_by_the_root_of_the_rank_and_by_a_pattern_of_modules(base, tmp_path):
    config = LoraConfig(lora_rank=16, lora_alpha=8.0, rslora=True, lora_targets=("q", "down"))
    assert (config.scale, LoraConfig(lora_rank=16, lora_alpha=8.0).scale) == (2.0, 0.5)
    model, file = weights.read_model(base), tmp_path / lora.CONFIG
    lora.attach(model, config, torch.Generator().manual_seed(0))
    spoiled(model)
    lora.Adapters(config, base, weights.fingerprint(base)).write(tmp_path, checkpoint.trained(model))
    settings = json.loads(file.read_text())
    assert settings["use_rslora"] is True
    whole_names = [name.removesuffix(".lora_A") for name in checkpoint.trained(model) if name.endswith("A")]
    for named in (settings["target_modules"], r".*\.(q_proj|down_proj)", whole_names):
        file.write_text(json.dumps(settings | {"target_modules": named}))
        torch.testing.assert_close(logits(weights.read_model(tmp_path)), logits(model), atol=1e-4, rtol=1e-4)
    file.write_text(json.dumps(settings | {"target_modules": ["q_proj", "down_proj", "up_proj"]}))
    with pytest.raises(ModelError, match="up_proj"):
        weights.read_model(tmp_path)


def test_adapters_of_some_layers_with_ranks_of_their_own_are_read(base, tmp_path):
    model = weights.read_model(base)
    layers = [layer.self_attn for layer in model.model.layers]
    layers[1].q_proj = LoraLinear(layers[1].q_proj, 4, scale=8 / 4)
    layers[1].v_proj = LoraLinear(layers[1].v_proj, 2, scale=8 / 2)
    layers[0].v_proj = LoraLinear(layers[0].v_proj, 2, scale=8 / 2)
    adapters = {n: p for n, p in model.named_parameters() if "lora_" in n}
    for p in adapters.values():
        torch.nn.init.normal_(p, std=0.05)
    save_file({f"base_model.model.{n}.weight": p.detach() for n, p in adapters.items()}, tmp_path / lora.WEIGHTS)
    settings = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "base_model_name_or_path": str(base),
                "target_modules": ["self_attn.q_proj", "v_proj"], "layers_to_transform": None, "peft_version": "0.21.2",
                "rank_pattern": {"v_proj": 2}, "alpha_pattern": {}, "megatron_core": "m",
                "qalora_group_size": 16, "init_lora_weights": True, "bias": "none"}  # fmt: skip
    file = tmp_path / lora.CONFIG
    file.write_text(json.dumps(settings))
    torch.testing.assert_close(logits(weights.read_model(tmp_path)), logits(model), atol=1e-5, rtol=1e-5)
    for key, value in {"alora_invocation_tokens": [5], "alpha_pattern": {"v_proj": 32}, "init_lora_weights": "pissa",
                       "use_new_idea": True, "peft_type": "ADALORA", "bias": "all"}.items():  # fmt: skip
        file.write_text(json.dumps(settings | {key: value}))
        with pytest.raises(ModelError, match=f"{key} = .* changes the result"):
            weights.read_model(tmp_path)
    file.write_text(json.dumps(settings))
    adapters["model.embed_tokens.lora_embedding_A"] = torch.zeros(4, 300)
    save_file({f"base_model.model.{n}": p.detach() for n, p in adapters.items()}, tmp_path / lora.WEIGHTS)
    with pytest.raises(ModelError, match=r"embed_tokens.lora_embedding_A' does not fit the attention and MLP matrices"):
        weights.read_model(tmp_path)


def test_another_base_is_refused_with_both_hashes(run, base, manifest, tmp_path):
    other = Path(shutil.copytree(base, tmp_path / "other"))
    model = weights.read_model(other)
    with torch.no_grad():
        model.model.norm.weight.add_(1)
    hf.write_model(other, model, [], {})
    (other / "state.json").unlink()
    hashes = (weights.fingerprint(base), weights.fingerprint(other))
    with pytest.raises(ModelError) as merging:
        weights.read_model(run / "checkpoints" / "step_00000014", other)
    out = Path(shutil.copytree(run, tmp_path / "run"))
    with pytest.raises(ModelError) as resuming:
        sft.main(["--resume", "--out", str(out), "--init", str(other)])
    for stopped in (merging, resuming):
        assert all(h in str(stopped.value) for h in hashes)


def test_a_folder_that_describes_no_adapters_is_refused(tmp_path):
    (tmp_path / "adapter_config.json").write_text('{"r": 4}')
    with pytest.raises(ModelError, match="expected the configuration of a LoRA adapter"):
        merge.main(["--model", str(tmp_path), "--output", str(tmp_path / "merged")])


def test_adapters_without_a_tokenizer_have_that_of_their_base(manifest, base, tmp_path):
    """The model may then have more embeddings than the tokenizer has tokens, as Qwen's have."""
    data = PackedSet.open_all(manifest, "packed", False)[0]
    large = CausalLM(replace(PRESETS["tiny"], vocab_size=data.header.vocab_size + 20, num_layers=2))
    (tmp_path / "base").mkdir()
    hf.write_model(tmp_path / "base", large, hf.tokenizer_files(base), {})
    settings = {"lora_alpha": 8, "target_modules": [], "base_model_name_or_path": str(tmp_path / "base")}
    (tmp_path / lora.CONFIG).write_text(json.dumps(settings))
    check_fits(tmp_path, large, data)
    (tmp_path / "base" / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match=r"base/tokenizer.json has 44136fa355b3678a"):
        check_fits(tmp_path, large, data)
