import json
import re
from itertools import pairwise
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from datakit.errors import ModelError
from tests.train.generation import generate
from tests.train.runs import logits, random_model
from train import attention, checkpoint, hf, lora, weights
from train.attention import Segments, grouped_attention, masked_attention
from train.hf import config_from_hf, config_to_hf, write_model
from train.model import PRESETS, CausalLM
from train.serve.batching import SampleConfig
from train.weights import fingerprint, read_model

SMALL = {
    "vocab_size": 97, "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64,
}  # fmt: skip
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
EXPERTS = {"num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
GEMMA = {"head_dim": 16, "sliding_window": 9, "query_pre_attn_scalar": 11}
KINDS = {
    "LlamaConfig": {"tie_word_embeddings": True},
    "LlamaConfig with biases": {
        "attention_bias": True, "mlp_bias": True, "rope_theta": 5e5, "tie_word_embeddings": False,
    },
    "LlamaConfig relu2": {"hidden_act": "relu2"},
    "LlamaConfig llama3": {"rope_theta": 5e5, "rope_scaling": LLAMA3},
    "LlamaConfig yarn": {"rope_scaling": YARN},
    "LlamaConfig linear": {"rope_scaling": {"type": "linear", "factor": 3.0}},
    "LlamaConfig dynamic": {"rope_scaling": {"type": "dynamic", "factor": 3.0}},
    "MistralConfig": {"sliding_window": None},
    "MistralConfig windows": {"sliding_window": 9},
    "Qwen2Config": {"tie_word_embeddings": False},
    "Qwen3Config": {"head_dim": 16, "tie_word_embeddings": True},
    "Qwen3MoeConfig": {"head_dim": 16} | EXPERTS,
    "Qwen3MoeConfig of some layers": {
        "head_dim": 8, "num_experts": 4, "num_experts_per_tok": 3, "moe_intermediate_size": 16,
        "norm_topk_prob": True, "decoder_sparse_step": 2, "tie_word_embeddings": True,
    },
    "Gemma3TextConfig with a soft cap": GEMMA | {"final_logit_softcapping": 1.5},
    "Gemma3TextConfig": GEMMA | {"sliding_window_pattern": 3, "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
    "Olmo2Config": {},
    "Olmo3Config": {"num_hidden_layers": 4, "sliding_window": 9, "rope_scaling": YARN},
    "SmolLM3Config": {"num_hidden_layers": 4, "tie_word_embeddings": True, "pad_token_id": 0},
    "GraniteConfig": {
        "embedding_multiplier": 12.0, "residual_multiplier": 0.22, "attention_multiplier": 0.1, "logits_scaling": 4.0,
    },
}  # fmt: skip


def made(name: str) -> Any:
    """A random model of transformers', with norms and biases that are not at their start values."""
    transformers = pytest.importorskip("transformers")
    config = getattr(transformers, name.split()[0])(**SMALL | KINDS[name])
    return random_model(config, attn_implementation="eager").eval()


@pytest.mark.parametrize("name", KINDS)
@torch.no_grad()
def test_logits_equal_those_of_transformers_read_and_written(name, tmp_path):
    reference, ids = made(name), torch.randint(0, 97, (3, 40))
    reference.save_pretrained(tmp_path / "theirs")
    ours, expected = read_model(tmp_path / "theirs"), reference(ids).logits
    torch.testing.assert_close(logits(ours, ids), expected, atol=1e-4, rtol=1e-4)
    (tmp_path / "ours").mkdir()
    write_model(tmp_path / "ours", ours, (), {"pad_token_id": 0, "eos_token_id": 2, "bos_token_id": None})
    again, loading = type(reference).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(loading.values())
    torch.testing.assert_close(again(ids).logits, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_survives_config_json(name):
    assert config_from_hf(config_to_hf(PRESETS[name], {}), "here") == PRESETS[name]


@pytest.mark.parametrize(
    "change",
    [
        {"rope_scaling": {"rope_type": "spiral", "factor": 4.0}},
        {"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0}},
        {"rope_scaling": {"rope_type": "linear", "factor": 8.0, "twist": 3}},
        {"hidden_act": "gelu"}, {"embedding_multiplier": 2.0}, {"sliding_window": 128},
        {"final_logit_softcapping": 30.0}, {"use_sliding_window": True}, {"temperature_of_scores": 2.0},
        {"num_experts": 4}, {"quantization_config": {"bits": 4}}, {"layer_types": ["sliding_attention"] * 3},
        {"model_type": "gemma"},
    ],
)  # fmt: skip
def test_a_key_that_changes_the_mathematics_is_refused_by_name(change):
    config = config_to_hf(PRESETS["tiny"], {}) | change
    with pytest.raises(ModelError, match=r"spiral|low_freq_factor|twist|" + next(iter(change))):
        config_from_hf(config, "here")


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("olmo3", {"rope_parameters": {"rope_type": "default", "rope_theta": 5e3}}),
        ("gemma3_text", {"rope_scaling": {"full_attention": {"rope_type": "linear", "factor": 2.0}}}),
        ("olmo2", {"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 2.0}}}),
    ],
)
def test_rotary_positions_in_the_form_of_another_family_are_refused(kind, change):
    """transformers reads over them without a word."""
    with pytest.raises(ModelError, match=r"rope_parameters = .* is not implemented; this family has one"):
        config_from_hf(SMALL | {"model_type": kind} | change, "here")


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("llama", {"unsloth_fixed": True, "_name_or_path": "x", "temperature": 0.6, "auto_map": {"a": 1}}),
        ("llama", {"attention_dropout": 0.1, "rope_scaling": {}, "sep_token_id": 4, "is_llama_config": True}),
        ("gemma3_text", {"attn_logit_softcapping": None, "sliding_window_size": 4096}),
        ("qwen3_moe", {"use_qk_norm": True, "qkv_bias": False, "shared_expert_intermediate_size": 0}),  # Qwen3-Coder
        ("llama", {"max_sequence_length": 2048, "rope_scaling": {"type": "linear", "factor": 2, "finetuned": True}}),
    ],
)
def test_keys_of_published_folders_that_change_nothing_are_read_over(kind, more):
    plain = SMALL | {"model_type": kind}
    plain |= {"rope_scaling": {"type": "linear", "factor": 2}} if more.get("rope_scaling") else {}
    assert config_from_hf(plain | more, "here") == config_from_hf(plain, "here")
    for key, value in (("use_qk_norm", kind == "llama"), ("partial_rotary_factor", 0.5)):
        with pytest.raises(ModelError, match=key):
            config_from_hf(plain | {key: value}, "here")


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_size": "32"}, {"num_hidden_layers": 2.5}, {"rope_scaling": ["linear"]}, {"rope_theta": "x"},
        {"hidden_act": ["silu"]}, {"max_position_embeddings": {}}, {"model_type": ["llama"]}, {"layer_types": 3},
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_refused_by_its_file(change, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(SMALL | {"model_type": "llama"} | change))
    with pytest.raises(ModelError, match=r"config\.json: "):
        weights.read_config(tmp_path)
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(ModelError, match=r"config\.json: cannot read it"):
        weights.read_config(tmp_path)


@pytest.mark.parametrize("kind", [kind for kind in hf.FAMILIES if kind != hf.OWN])
def test_a_missing_key_has_the_value_of_transformers(kind):
    transformers = pytest.importorskip("transformers")
    whole = json.loads(transformers.AutoConfig.for_model(kind).to_json_string(use_diff=False))
    expected = config_from_hf(whole, "here")
    for key in ("rms_norm_eps", "layer_norm_epsilon", "num_experts_per_tok", "tie_word_embeddings", "hidden_act"):
        less = {k: v for k, v in whole.items() if k != key}
        assert config_from_hf(less, "here") == expected, key


@pytest.mark.parametrize("name", [n for n in KINDS if n not in ("MistralConfig", "Qwen3MoeConfig of some layers")])
@torch.no_grad()
def test_every_family_packs_generates_serves_and_takes_adapters(name, tmp_path, monkeypatch):
    """Rows of several sequences as each alone; greedy ids of transformers; adapters that merge."""
    theirs = made(name)
    theirs.save_pretrained(tmp_path)
    model = read_model(tmp_path).eval()
    ids, bounds = torch.randint(3, 97, (1, 60), generator=torch.Generator().manual_seed(1)), [0, 11, 12, 60]
    alone = torch.cat([logits(model, ids[:, a:b]) for a, b in pairwise(bounds)], 1)
    segments = Segments.of([bounds], 60)
    for width, make in ((10**6, grouped_attention), (0, grouped_attention), (0, masked_attention)):
        monkeypatch.setattr(attention, "PRODUCT_WIDTH", width)
        packed = model.lm_head(model(ids, segments.positions_BT, make(segments)))
        torch.testing.assert_close(packed, alone, atol=1e-4, rtol=1e-4)
    prompt = ids[0, :20].tolist()
    expected = theirs.generate(ids[:, :20], max_new_tokens=24, do_sample=False, eos_token_id=96, pad_token_id=0)
    config = SampleConfig(max_new_tokens=24)
    said = generate(model, [prompt[:7], prompt], frozenset({96}), config)[1]
    assert said == [token for token in expected[0, 20:].tolist() if token != 96]
    lora.attach(model, lora.LoraConfig(lora_rank=2), torch.Generator().manual_seed(0))
    with torch.enable_grad():
        logits_of = model.lm_head(model(ids, segments.positions_BT, grouped_attention(segments)))
        logits_of.square().sum().backward()
    for parameter in checkpoint.trained(model).values():
        assert parameter.grad is not None and parameter.grad.isfinite().all()
        parameter -= 1e-3 * parameter.grad / (parameter.grad.norm() + 1e-9)
    adapted = logits(model, ids)
    (tmp_path / "adapters").mkdir()
    adapters = lora.Adapters(lora.LoraConfig(lora_rank=2), tmp_path, fingerprint(tmp_path))
    adapters.write(tmp_path / "adapters", checkpoint.trained(model))
    torch.testing.assert_close(logits(weights.read_model(tmp_path / "adapters"), ids), adapted, atol=1e-4, rtol=1e-4)


def test_the_text_part_of_a_model_that_reads_images_is_taken(tmp_path):
    """In both layouts of names, that of the hub and that which transformers writes now."""
    transformers = pytest.importorskip("transformers")
    text = SMALL | GEMMA | {"num_hidden_layers": 6}
    sight = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
             "image_size": 28, "patch_size": 14}  # fmt: skip
    torch.manual_seed(0)
    config = transformers.Gemma3Config(text_config=text, vision_config=sight, mm_tokens_per_image=4)
    theirs = transformers.Gemma3ForConditionalGeneration(config).eval()
    theirs.save_pretrained(tmp_path)
    ids = torch.randint(0, 97, (2, 30))
    with torch.no_grad():
        expected = theirs(input_ids=ids).logits
    weights = load_file(tmp_path / "model.safetensors")
    assert any("vision_tower" in name for name in weights)
    inside = re.compile(r"^(model\.)?language_model\.(model\.)?")
    for prefix in ("language_model.model.", "model.language_model."):
        save_file({inside.sub(prefix, name): t for name, t in weights.items()}, tmp_path / "model.safetensors")
        model = read_model(tmp_path)
        torch.testing.assert_close(logits(model, ids), expected, atol=1e-4, rtol=1e-4)
    (tmp_path / "out").mkdir()
    write_model(tmp_path / "out", model, (), {})
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert type(again).__name__ == "Gemma3ForCausalLM"
    with torch.no_grad():
        torch.testing.assert_close(again(ids).logits, expected, atol=1e-4, rtol=1e-4)
    body = json.loads((tmp_path / "config.json").read_text()) | {"quantization_config": {"bits": 4}}
    with pytest.raises(ModelError, match="quantization_config"):
        config_from_hf(body, "here")


def test_weights_in_shards_are_read(tmp_path):
    transformers = pytest.importorskip("transformers")
    theirs = random_model(transformers.LlamaConfig(**SMALL))
    theirs.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len([*tmp_path.glob("model-*.safetensors")]) > 2 and not (tmp_path / "model.safetensors").exists()
    ids = torch.randint(0, 97, (1, 9))
    with torch.no_grad():
        torch.testing.assert_close(logits(read_model(tmp_path), ids), theirs(ids).logits, atol=1e-4, rtol=1e-4)


def test_missing_and_misshapen_tensors_are_refused_by_name(tmp_path):
    write_model(tmp_path, CausalLM(config_from_hf(SMALL | {"model_type": "llama"}, "here")), (), {})
    weights = load_file(tmp_path / "model.safetensors")
    norm = weights.pop("model.norm.weight")
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match=r"model\.norm\.weight.*no such tensor"):
        read_model(tmp_path)
    save_file(weights | {"model.norm.weight": norm[:5]}, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match=r"model\.norm\.weight.*\(32,\).*\(5,\)"):
        read_model(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(ModelError, match="cannot read the weights"):
        read_model(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": []}')
    with pytest.raises(ModelError, match="cannot read the weights"):
        read_model(tmp_path)
