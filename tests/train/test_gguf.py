"""GGUF files: what is in them, and what a real llama.cpp makes of them (where the packages are installed)."""

import json
import shutil
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from datakit.errors import ModelError
from datakit.pack.chat import ChatTokenizer
from tests.train.generation import generate
from tests.train.runs import random_model
from train import hf
from train.attention import Segments, masked_attention
from train.config import MoeConfig
from train.export import CONTROL, NORMAL, UNUSED, write_gguf
from train.export import main as export
from train.model import PRESETS, CausalLM
from train.rope import Rope
from train.serve.batching import SampleConfig

reader = pytest.importorskip("gguf", reason="GGUF files need the package gguf")
SMALL = {
    "vocab_size": 320, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256,
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "LlamaConfig": {"tie_word_embeddings": True},
    "LlamaConfig with biases": {"attention_bias": True, "mlp_bias": True, "rope_theta": 5e5},
    "MistralConfig": {"sliding_window": None},
    "Qwen2Config": {"tie_word_embeddings": False},
    "Qwen3Config": {"head_dim": 32},
}  # fmt: skip


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path, tokenizer_folder: Path) -> Path:
    """A folder with a random model of transformers', none of whose parameters is at its start value."""
    transformers = pytest.importorskip("transformers")
    settings = SMALL | deepcopy(KINDS[request.param])  # transformers changes what it is given
    config = getattr(transformers, request.param.split()[0])(**settings)
    random_model(config).save_pretrained(tmp_path / "model")
    spec = json.loads((tokenizer_folder / "tokenizer.json").read_text())
    texts = sorted(spec["model"]["vocab"], key=spec["model"]["vocab"].get)
    words = [
        *texts[:3],
        "q",
        "z",
        "qz",
        *(f"q{i}q" for i in range(6, len(texts))),
    ]  # llama.cpp leaves parts of characters out of its list
    spec["model"] |= {"vocab": {word: i for i, word in enumerate(words)}, "merges": [["q", "z"]]}
    with_tokenizer(tmp_path / "model", tokenizer_folder)
    (tmp_path / "model" / "tokenizer.json").write_text(json.dumps(spec))
    return tmp_path / "model"


def with_tokenizer(folder: Path, tokenizer: Path) -> Path:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((tokenizer / name).read_bytes())
    return folder


def exported(folder: Path, out: Path, *more: str) -> Path:
    assert export(["--model", str(folder), "--output", str(out), "--to", "gguf", *more]) == 0
    return out / "model.gguf"


STOPS = frozenset({0, 2})
"""The ids of <|endoftext|> and <|im_end|>."""


def said(file: Path, prompts: Sequence[list[int] | str], count: int) -> list[list[tuple[int, float]]]:
    """What llama.cpp answers to prompts (ids or text), greedily, in fp32: ids with their log-probabilities."""
    llama = pytest.importorskip("xllamacpp", reason="no llama.cpp here: pip install xllamacpp")
    p = llama.CommonParams()
    p.model.path, p.n_ctx, p.n_parallel, p.warmup, p.verbosity, p.n_gpu_layers = str(file), 256, 1, False, -1, 0
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
    p.cache_type_k = p.cache_type_v = llama.ggml_type.GGML_TYPE_F32
    p.flash_attn_type = llama.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    server = llama.Server(p)
    wanted = {"n_predict": count, "temperature": 0.0, "top_k": 1, "logprobs": 1}
    answers = [server.handle_completions(wanted | {"prompt": prompt}) for prompt in prompts]
    tokens = [[(t["id"], t["logprob"]) for t in a["choices"][0]["logprobs"]["content"]] for a in answers]
    return [one[:-1] if one[-1][0] in STOPS else one for one in tokens]


def ours(folder: Path, prompts: Sequence[Sequence[int]], count: int) -> list[list[tuple[int, float]]]:
    model = hf.read_model(folder).eval()
    found = []
    for prompt in prompts:
        ids = generate(model, [prompt], STOPS, SampleConfig(max_new_tokens=count))[0]
        whole = torch.tensor([[*prompt, *ids]])
        segments = Segments.of([[0, whole.shape[1]]], whole.shape[1])
        with torch.no_grad():
            logits = model.lm_head(model(whole, segments.positions_BT, masked_attention(segments)))[0]
        logp = logits.log_softmax(-1)[len(prompt) - 1 : -1].gather(1, torch.tensor(ids)[:, None])[:, 0]
        found.append(list(zip(ids, logp.tolist(), strict=True)))
    return found


def equal(found: list[list[tuple[int, float]]], expected: list[list[tuple[int, float]]], apart: float = 2e-3) -> None:
    assert [[i for i, _ in one] for one in found] == [[i for i, _ in one] for one in expected]
    assert sum(map(len, expected)) >= 5
    for one, other in zip(found, expected, strict=True):
        assert one == [(i, pytest.approx(p, abs=apart)) for i, p in other]


@pytest.mark.parametrize("folder", KINDS, indirect=True)
def test_llama_cpp_gives_the_same_greedy_ids(folder: Path, tmp_path: Path) -> None:
    prompts = torch.randint(3, 300, (2, 20), generator=torch.Generator().manual_seed(1)).tolist()
    equal(said(exported(folder, tmp_path / "out"), prompts, 24), ours(folder, prompts, 24))


@pytest.mark.parametrize("folder", ["Qwen3Config"], indirect=True)
def test_the_file_has_tokenizer_template_and_sizes(
    folder: Path, tokenizer_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    with_tokenizer(folder, tokenizer_folder)
    file = exported(folder, tmp_path / "out", "--export-dtype", "fp16")
    found = reader.GGUFReader(file)
    said = {name: field.contents() for name, field in found.fields.items()}
    own = ChatTokenizer.load(tokenizer_folder)
    assert said["tokenizer.chat_template"] == own.template_source and said["tokenizer.ggml.pre"] == "gpt-2"
    assert said["tokenizer.ggml.eos_token_id"] == 2 and not said["tokenizer.ggml.add_bos_token"]
    assert said["tokenizer.ggml.tokens"][:3] == ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    assert said["tokenizer.ggml.tokens"][-1] == "[PAD319]" and said["tokenizer.ggml.token_type"][-1] == UNUSED
    assert said["tokenizer.ggml.token_type"][:4] == [CONTROL] * 3 + [NORMAL]
    assert said["qwen3.attention.key_length"] == 32 and said["general.file_type"] == 1
    kinds = {t.name: t.tensor_type.name for t in found.tensors}
    assert kinds["blk.0.attn_q.weight"] == "F16" and kinds["blk.3.attn_q_norm.weight"] == "F32"
    assert file.stat().st_mode & 0o777 == 0o644 and "note:" not in capsys.readouterr().out
    spec = json.loads((folder / "tokenizer.json").read_text())
    split = {"type": "Split", "pattern": {"Regex": "[a-z]+"}, "behavior": "Isolated", "invert": False}
    spec["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, spec["pre_tokenizer"]]}
    (folder / "tokenizer.json").write_text(json.dumps(spec))
    exported(folder, tmp_path / "again")
    assert "note: this pre-tokenizer is unknown" in capsys.readouterr().out


TINY = replace(PRESETS["tiny"], vocab_size=320, num_layers=2)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (replace(TINY, family="smollm3", plain_layers=(1,)), "the family smollm3"),
        (replace(TINY, family="qwen3", qk_norm=True, qkv_bias=True, output_bias=True), "qkv_bias in qwen3"),
        (replace(TINY, family="mistral", window=9, windowed_layers=(0, 1)), "a window of 9"),
        (replace(TINY, activation="relu2"), "the activation relu2"),
        (replace(TINY, rope=Rope(rope_type="linear", factor=2.0)), "the rotary scaling linear"),
        (replace(TINY, rope=Rope(partial_rotary_factor=0.5)), "no Hugging Face architecture has these options"),
        (replace(TINY, moe=MoeConfig(num_experts=4), qk_norm=True), "the family qwen3_moe"),
        (TINY, "a tokenizer that is no BPE over bytes"),
    ],
)
def test_a_model_that_llama_cpp_would_run_wrongly_is_refused(
    config: Any, message: str, tokenizer_folder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(tokenizer_folder, tmp_path / "tokenizer"))
    if config is TINY:
        spec = json.loads((folder / "tokenizer.json").read_text()) | {"pre_tokenizer": None}
        (folder / "tokenizer.json").write_text(json.dumps(spec))
    with pytest.raises(ModelError, match=message):
        write_gguf(tmp_path / "x.gguf", CausalLM(config), ChatTokenizer.load(folder), [], torch.float32)
