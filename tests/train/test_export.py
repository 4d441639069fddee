"""Folders for other programs."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from datakit.errors import InputError
from datakit.pack.chat import ChatTokenizer
from tests.train.runs import small_model
from train import hf, weights
from train.export import ExportConfig, export
from train.generate import load
from train.serve.batching import stop_ids_of


@pytest.fixture
def model_folder(tmp_path: Path, tokenizer_folder: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    hf.write_model(folder, small_model(vocab_size=320), [*tokenizer_folder.iterdir()], {"eos_token_id": 2})
    return folder


def test_the_folder_holds_the_same_weights_and_nothing_is_overwritten(model_folder, tmp_path):
    out = export(ExportConfig(model=str(model_folder), output=str(tmp_path / "out")))
    before, after = (dict(weights.read_model(f).named_parameters()) for f in (model_folder, out))
    assert all(torch.equal(before[name], after[name]) for name in before)
    files = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"}
    assert files <= {f.name for f in out.iterdir()}
    with pytest.raises(InputError, match="not empty"):
        export(ExportConfig(model=str(model_folder), output=str(out)))


def test_a_published_folder_keeps_all_its_stop_tokens(model_folder, tmp_path):
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
def test_weights_get_the_dtype_of_the_base_unless_another_is_asked_for(model_folder, tmp_path, asked, expected):
    file = model_folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"torch_dtype": "bfloat16"}))
    out = export(ExportConfig(model=str(model_folder), output=str(tmp_path / "out"), export_dtype=asked))
    assert {t.dtype for t in load_file(out / "model.safetensors").values()} == {expected}
    assert json.loads((out / "config.json").read_text())["torch_dtype"] == str(expected).removeprefix("torch.")
    assert (out / "model.safetensors").stat().st_mode & 0o777 == 0o644
