import json
import shutil
from pathlib import Path

import pytest
import torch

from datakit.errors import ModelError
from train.attention import Segments, masked_attention
from train.generate import GenerateConfig, generate, load, main
from train.sft import main as sft


@pytest.fixture(scope="module")
def run(manifest: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("generate") / "run"
    assert sft(["--manifest", str(manifest), "--out", str(out), "--preset", "tiny", "--steps", "5"]) == 0
    return out


def test_the_cache_changes_nothing(run: Path) -> None:
    model, _, _ = load(run)
    prompt = [5, 9, 13, 4]
    found = list(generate(model, prompt, frozenset(), GenerateConfig(prompt="-", max_new_tokens=24)))
    ids = list(prompt)
    for _ in range(24):
        segments = Segments.of([[0, len(ids)]], len(ids))
        with torch.no_grad():
            hidden = model(torch.tensor([ids]), segments.positions_BT, masked_attention(segments))
        ids.append(int(model.lm_head(hidden[0, -1]).argmax()))
    assert found == ids[4:]


def test_it_stops_at_the_end_token_and_at_the_models_length(run: Path) -> None:
    model, _, _ = load(run)
    config = GenerateConfig(prompt="-", max_new_tokens=5)
    said = list(generate(model, [5, 9], frozenset(), config))
    assert list(generate(model, [5, 9], frozenset({said[2]}), config)) == said[: said.index(said[2])]
    assert len(list(generate(model, [5] * 2046, frozenset(), config))) == 2


def test_sampling_repeats_with_its_seed_and_a_small_nucleus_is_greedy(run: Path) -> None:
    model, _, _ = load(run)

    def said(**values: float) -> list[int]:
        return list(generate(model, [5, 9], frozenset(), GenerateConfig(prompt="-", max_new_tokens=16, **values)))

    assert said(temperature=1.5, seed=1) == said(temperature=1.5, seed=1)
    assert said(temperature=1.5, seed=1) != said(temperature=1.5, seed=2)
    assert said(temperature=1.5, top_p=1e-6) == said()


def test_it_answers_through_the_template_of_the_training(run: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["--checkpoint", str(run), "--prompt", "the cat", "--max_new_tokens", "4"]) == 0
    newest = run / "checkpoints" / "step_00000005"
    model, tokenizer, _ = load(newest)
    prompt = tokenizer.encode_prompt([{"role": "user", "content": "the cat"}])
    assert tokenizer.decode(prompt) == "<|im_start|>user\nthe cat<|im_end|>\n<|im_start|>assistant\n"
    said = list(generate(model, prompt, frozenset({2}), GenerateConfig(prompt="-", max_new_tokens=4)))
    assert capsys.readouterr().out == tokenizer.decode(said, skip_special_tokens=True) + "\n"


@pytest.mark.parametrize("name", ["sha256", "chat_template_sha256"])
def test_tokenizer_files_other_than_those_of_the_training_are_refused(run: Path, tmp_path: Path, name: str) -> None:
    copy = Path(shutil.copytree(run / "checkpoints" / "step_00000005", tmp_path / "copy"))
    if name == "sha256":
        (copy / "tokenizer.json").write_text((copy / "tokenizer.json").read_text() + "\n")
    else:
        settings = json.loads((copy / "tokenizer_config.json").read_text())
        settings["chat_template"] = "{{ messages[0].content }}"
        (copy / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(ModelError, match=rf"of {name} [0-9a-f]{{64}}, but the files there give [0-9a-f]{{64}}"):
        load(copy)


def test_transformers_loads_a_checkpoint_as_it_is(run: Path) -> None:
    transformers = pytest.importorskip("transformers")
    folder = run / "checkpoints" / "step_00000005"
    theirs, (ours, _, _) = transformers.AutoModelForCausalLM.from_pretrained(folder), load(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = tokenizer.apply_chat_template([{"role": "user", "content": "hello"}], add_generation_prompt=True)
    ids = ids["input_ids"] if not isinstance(ids, list) else ids
    expected = theirs.generate(torch.tensor([ids]), max_new_tokens=8, do_sample=False)[0, len(ids) :].tolist()
    stop = frozenset({2})
    found = list(generate(ours, ids, stop, GenerateConfig(prompt="-", max_new_tokens=8)))
    assert found == [i for i in expected if i not in stop]
