"""`python -m train.generate`: answers alone, together, streamed, in a conversation; the same as transformers gives."""

import json
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from datakit.errors import ConfigError, InputError, ModelError, UsageError
from datakit.pack.chat import ChatTokenizer, RenderError
from tests.files import says, user, write_rows
from tests.train.generation import generate
from train.generate import GenerateConfig, Generator, load, main, prompt_rows
from train.model import CausalLM
from train.serve.batching import SampleConfig
from train.sft import main as sft


def one(model: CausalLM, prompt: list[int], stop: frozenset[int] = frozenset(), **values: float) -> list[int]:
    return generate(model, [prompt], stop, SampleConfig(**({"max_new_tokens": 16} | values)))[0]


def test_it_answers_through_the_template_of_the_training(short_run, base, capsys):
    assert main(["--model", str(short_run), "--prompt", "the cat", "--max_new_tokens", "4"]) == 0
    model, tokenizer, _ = load(base)
    prompt = tokenizer.encode_prompt([user("the cat")])
    assert tokenizer.decode(prompt) == "<|im_start|>user\nthe cat<|im_end|>\n<|im_start|>assistant\n"
    said = one(model, prompt, frozenset({2}), max_new_tokens=4)
    assert capsys.readouterr().out == tokenizer.decode(said, skip_special_tokens=True) + "\n"


def test_a_stop_string_ends_the_answer(short_run, capsys):
    plain = ["--model", str(short_run), "--prompt", "hello", "--max-new-tokens", "30", "--temperature", "1.2"]
    assert main(plain) == 0
    whole = capsys.readouterr().out[:-1]
    at = whole.index(whole[8:11])
    assert main([*plain, "--stop", f"never-said,{whole[8:11]}"]) == 0
    assert capsys.readouterr().out[:-1] == whole[:at]


def test_lines_of_a_file_are_answered_in_order_and_a_bad_one_is_named(short_run, tmp_path, capsys, monkeypatch):
    rows = [{"prompt": "hello", "id": 7}, {"messages": [user("the mat sat on")]}]
    rows += [{"prompt": "on the mat " * i} for i in range(1, 4)]
    source, target = tmp_path / "in.jsonl", tmp_path / "deep" / "out.jsonl"
    write_rows(source, rows)
    options = ["--model", str(short_run), "--max-new-tokens", "8"]
    assert main([*options, "--input", str(source), "--output", str(target), "--batch-rows", "2"]) == 0
    found = [json.loads(line) for line in target.read_text().splitlines()]
    assert [{k: v for k, v in row.items() if k != "completion"} for row in found] == rows
    capsys.readouterr()
    for row, answer in zip(rows, found, strict=True):
        said = row["prompt"] if "prompt" in row else row["messages"][0]["content"]
        assert main([*options, "--prompt", said]) == 0
        assert capsys.readouterr().out == answer["completion"] + "\n"
    source.write_text('{"prompt": "x"}\n\n{"text": "y"}\n')
    with pytest.raises(InputError, match=r'in\.jsonl:3: expected an object with .*; found {"text": "y"}$'):
        main([*options, "--input", str(source)])
    for said in ("7", "[]", '["hi"]', '[{"role": "user", "content": [{"type": "text", "text": "hi"}]}]'):
        source.write_text(f'{{"messages": {said}}}\n')
        with pytest.raises(InputError, match=r"in\.jsonl:1: expected an object with .* `messages`, a list of objects"):
            main([*options, "--input", str(source)])
    for line in (b'{"prompt": "caf\xe9"}\n', b'{"prompt": "\\ud800"}\n'):
        source.write_bytes(line)
        with pytest.raises(InputError, match=r"in\.jsonl:1: it is not JSON: 'utf-8' codec"):
            main([*options, "--input", str(source)])
    source.write_text('\ufeff{"prompt": "a\u2028b"}\n{"prompt": "c"}\n', encoding="utf-8")
    assert [said for _, _, said in prompt_rows(source)] == ["a\u2028b", "c"]
    source.write_text("\n")
    with pytest.raises(InputError, match="has no prompts"):
        main([*options, "--input", str(source)])
    monkeypatch.setattr(ChatTokenizer, "encode_prompt", Mock(side_effect=RenderError("roles must alternate")))
    source.write_text('{"prompt": "c"}\n')
    with pytest.raises(UsageError, match=r"in\.jsonl:1: the chat template refuses this conversation: .*roles must"):
        main([*options, "--input", str(source)])


def test_a_tokenizer_elsewhere_is_named_and_a_folder_that_is_not_there_too(short_run, base, tmp_path, capsys):
    bare = Path(shutil.copytree(base, tmp_path / "bare"))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (bare / name).unlink()
    said = ["--prompt", "hello", "--max-new-tokens", "4"]
    with pytest.raises(ModelError, match="Give --tokenizer"):
        main(["--model", str(bare), *said])
    with pytest.raises(ModelError, match="no model there"):
        main(["--model", str(tmp_path / "nowhere"), *said])
    capsys.readouterr()
    answers = []
    for more in (["--model", str(base)], ["--model", str(bare), "--tokenizer", str(short_run)]):
        assert main([*more, *said]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]


def test_what_makes_no_sense_together_is_refused(short_run):
    for options in ([], ["--prompt", "x", "--input", "x"]):
        with pytest.raises(UsageError, match="either --prompt or --input"):
            main(["--model", str(short_run), *options])
    with pytest.raises(ConfigError, match="batch_rows = 0: expected 1 or more"):
        main(["--model", str(short_run), "--prompt", "x", "--batch-rows", "0"])
    with pytest.raises(ConfigError, match="--output goes with --input"):
        main(["--model", str(short_run), "--prompt", "x", "--output", "y"])
    with pytest.raises(UsageError, match="2047 leave room"):
        main(["--model", str(short_run), "--prompt", "the cat sat on the mat " * 400])


def test_a_model_of_plain_text_continues_text(pack, random_rows, tmp_path):
    manifest, out = pack(random_rows(8, 64), seq_len=64, labelled=False), tmp_path / "run"
    assert sft(["--manifest", str(manifest), "--out", str(out), "--preset", "tiny", "--steps", "1"]) == 0
    generator = Generator(GenerateConfig(model=str(out), prompt="-"))
    assert generator.prompt_of("the cat") == generator.tokenizer.encode_text("the cat")


@pytest.mark.parametrize("name", ["sha256", "chat_template_sha256"])
def test_tokenizer_files_other_than_those_of_the_training_are_refused(base, tmp_path, name):
    copy = Path(shutil.copytree(base, tmp_path / "copy"))
    if name == "sha256":
        (copy / "tokenizer.json").write_text((copy / "tokenizer.json").read_text() + "\n")
    else:
        settings = json.loads((copy / "tokenizer_config.json").read_text())
        settings["chat_template"] = "{{ messages[0].content }}"
        (copy / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(ModelError, match=rf"of {name} [0-9a-f]{{64}}, but the files in .* give [0-9a-f]{{64}}"):
        load(copy)


def test_transformers_loads_a_checkpoint_as_it_is_and_says_the_same(base):
    transformers = pytest.importorskip("transformers")
    theirs, (ours, mine, _) = transformers.AutoModelForCausalLM.from_pretrained(base), load(base)
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id) == (2, 0)
    messages = [user("hello"), says("cat"), user("the mat")]
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True)
    ids = ids["input_ids"] if not isinstance(ids, list) else ids
    assert ids == mine.encode_prompt(messages)
    assert mine.stop_ids() == [theirs.generation_config.eos_token_id]
    for prompt in (ids, mine.encode_prompt(messages[:1])):
        expected = theirs.generate(torch.tensor([prompt]), max_new_tokens=8, do_sample=False)[0, len(prompt) :].tolist()
        found = one(ours, prompt, frozenset(mine.stop_ids()), max_new_tokens=8)
        assert found == [i for i in expected if i not in mine.stop_ids()]


def test_a_turn_that_ends_otherwise_than_a_text_is_told_to_whoever_generates(pack, tokenizer_folder, tmp_path):
    """The end of a turn and the end of a text both end an answer, so transformers must be told of both."""
    transformers = pytest.importorskip("transformers")
    manifest = pack([[([5, 6, 7, 8], [1, 2])]] * 4, seq_len=16)
    settings = manifest.parent / "kept" / "tokenizer" / "tokenizer_config.json"
    settings.write_text(settings.read_text().replace('"eos_token": "<|im_end|>"', '"eos_token": "<|endoftext|>"'))
    out = tmp_path / "run"
    flags = ["--manifest", str(manifest), "--out", str(out), "--preset", "tiny", "--steps", "1"]
    assert sft([*flags, "--no-verify"]) == 0  # the settings are no longer those of the manifest
    folder = out / "checkpoints" / "step_00000001"
    assert transformers.GenerationConfig.from_pretrained(folder).eos_token_id == [0, 2]
    assert load(folder)[1].stop_ids() == [0, 2]


def test_a_system_message_comes_first_unless_there_is_one(short_run):
    generator = Generator(GenerateConfig(model=str(short_run), prompt="-", system="be kind"))
    turns = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hello"}]
    generator.tokenizer = type(generator.tokenizer).load(generator.tokenizer.where, "chatml")  # it shows tools
    encode, tools = generator.tokenizer.encode_prompt, [{"name": "f"}]
    assert generator.prompt_of("hello") == generator.prompt_of(turns[1:]) == generator.prompt_of(turns) == encode(turns)
    assert generator.prompt_of("hello", tools=tools) == encode(turns, tools) != encode(turns)
