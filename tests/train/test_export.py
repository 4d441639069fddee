"""Folders for other programs."""

import json
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from datakit.errors import InputError, ModelError
from datakit.pack.chat import ChatTokenizer
from train import hf
from train.export import ExportConfig, export, modelfile, ollama_template
from train.generate import load
from train.model import CausalLM, ModelConfig
from train.serve.batching import stop_ids_of

SMALL = ModelConfig(
    vocab_size=320,
    hidden_size=16,
    num_layers=1,
    num_heads=2,
    num_kv_heads=1,
    head_dim=8,
    intermediate_size=16,
    max_positions=64,
)


@pytest.fixture
def model_folder(tmp_path: Path, tokenizer_folder: Path) -> Path:
    folder, model = tmp_path / "model", CausalLM(SMALL)
    folder.mkdir()
    model.init_weights(torch.Generator().manual_seed(0))
    hf.write_model(
        folder, model, [tokenizer_folder / n for n in ("tokenizer.json", "tokenizer_config.json")], {"eos_token_id": 2}
    )
    return folder


def go(template: str, messages: list[dict[str, str]]) -> str:
    """What Ollama's template language makes of the few forms that are used."""
    system = next((m["content"] for m in messages if m["role"] == "system"), "")
    first, otherwise, user, answer = re.fullmatch(
        r"\{\{ if \.System \}\}(.*)\{\{ else \}\}(.*)\{\{ end \}\}\{\{ range \.Messages \}\}"
        r'\{\{ if eq \.Role "user" \}\}(.*)\{\{ else if eq \.Role "assistant" \}\}(.*)\{\{ end \}\}\{\{ end \}\}',
        template, re.DOTALL,
    ).groups()  # fmt: skip
    text = first.replace("{{ .System }}", system) if system else otherwise
    for m in messages:
        form = {"user": user, "assistant": answer}.get(m["role"], "")
        text += form.replace("{{ .Content }}", m["content"])
    return text.replace('{{ "{{" }}', "{{")


@pytest.mark.parametrize("system", [True, False])
def test_the_template_for_ollama_gives_the_same_prompt(tokenizer_folder: Path, system: bool) -> None:
    tokenizer = ChatTokenizer.load(tokenizer_folder)
    messages = [{"role": "system", "content": "Be kind."}] * system
    messages += [
        {"role": r, "content": c} for r, c in (("user", "Hi"), ("assistant", "Hello {{ x }}"), ("user", "Why?"))
    ]
    assert go(ollama_template(tokenizer), messages) == tokenizer.render(messages, add_generation_prompt=True).text


def test_a_modelfile_names_folder_template_stops_and_context(tokenizer_folder: Path) -> None:
    text = modelfile(ChatTokenizer.load(tokenizer_folder), 64)
    assert text.startswith('FROM ./model.gguf\nTEMPLATE """')
    assert text.endswith('PARAMETER num_ctx 64\nPARAMETER stop "<|im_end|>"\n')


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{% for m in messages %}{{ m.content }}{{ loop.index }}{% endfor %}", "does more than put text around turns"),
        ("{% for m in messages %}{{ m.content }}{{ messages[0].role }}|{% endfor %}", "does more"),
        ("{% for m in messages %}{{ m.role }}{% endfor %}", "refuses a plain conversation"),
    ],
)
def test_a_template_that_does_more_is_refused(tokenizer_folder: Path, tmp_path: Path, template: str, said: str) -> None:
    (tmp_path / "tokenizer.json").write_bytes((tokenizer_folder / "tokenizer.json").read_bytes())
    settings = json.loads((tokenizer_folder / "tokenizer_config.json").read_text()) | {"chat_template": template}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(ModelError, match=said):
        ollama_template(ChatTokenizer.load(tmp_path))


def test_the_folder_holds_the_same_weights_and_nothing_is_overwritten(model_folder: Path, tmp_path: Path) -> None:
    out = export(ExportConfig(model=str(model_folder), output=str(tmp_path / "out")))
    before, after = (dict(hf.read_model(f).named_parameters()) for f in (model_folder, out))
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"} <= {
        f.name for f in out.iterdir()
    }
    with pytest.raises(InputError, match="not empty"):
        export(ExportConfig(model=str(model_folder), output=str(out)))


def test_a_published_folder_keeps_all_its_stop_tokens(model_folder: Path, tmp_path: Path) -> None:
    (model_folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, 7], "top_p": 0.9}))
    stops = set(ChatTokenizer.load(model_folder).stop_ids()) | {2, 7}
    export(ExportConfig(model=str(model_folder), output=str(tmp_path / "out")))
    said = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert (said["eos_token_id"], said["top_p"]) == (sorted(stops), 0.9)
    model, tokenizer, _ = load(model_folder)
    assert stop_ids_of(model, tokenizer) == stops, "generation ends where transformers ends it"


@pytest.mark.parametrize(
    ("asked", "expected"), [("base", torch.bfloat16), ("fp32", torch.float32), ("fp16", torch.float16)]
)
def test_weights_get_the_dtype_of_the_base_unless_another_is_asked_for(
    model_folder: Path, tmp_path: Path, asked: str, expected: torch.dtype
) -> None:
    file = model_folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"torch_dtype": "bfloat16"}))
    out = export(ExportConfig(model=str(model_folder), output=str(tmp_path / "out"), export_dtype=asked))
    assert {t.dtype for t in load_file(out / "model.safetensors").values()} == {expected}
    assert json.loads((out / "config.json").read_text())["torch_dtype"] == str(expected).removeprefix("torch.")
    assert (out / "model.safetensors").stat().st_mode & 0o777 == 0o644


def test_ollama_gets_one_file_and_a_modelfile_that_names_it(model_folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="GGUF files need the package gguf")
    out = export(ExportConfig(model=str(model_folder), output=str(tmp_path / "out"), to="ollama"))
    assert {f.name for f in out.iterdir()} == {"model.gguf", "Modelfile"}
    assert (out / "Modelfile").read_text().startswith("FROM ./model.gguf\n")
