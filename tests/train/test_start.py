import importlib.util
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from datakit.errors import ConfigError, InputError, MissingExtraError, ModelError, UsageError
from datakit.manifest import load
from tests.files import says, user
from tests.train.runs import as_flags, losses
from train import distill, pretrain, sft
from train.config import QuickConfig
from train.export import ExportConfig, export
from train.start import Trainer, pack_files


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    rows = [json.dumps({"messages": [user(f"hello {i}"), says("the cat sat")]}) for i in range(20)]
    (tmp_path / "chats.jsonl").write_text("\n".join([*rows, "not json"]) + "\n")
    return tmp_path / "chats.jsonl"


def test_files_are_packed_on_the_fly_and_trained_on(chats, tokenizer_folder, tmp_path, capsys):
    options = {"seq_len": 64, "preset": "tiny", "batch_rows": 2, "threads": 1, "steps": 2, "out": tmp_path / "run"}
    assert sft.main(as_flags(data=chats, tokenizer=tokenizer_folder, **options)) == 0
    said = capsys.readouterr().out
    assert "step=2 " in said and "1 records could not be read" in said, "the line that is not JSON is told of"
    manifest = load(tmp_path / "run" / "data" / "manifest.json")
    assert manifest.stage == "pack" and manifest.facts["packed"][0]["seq_len"] == 64
    state = json.loads((tmp_path / "run" / "checkpoints" / "step_00000002" / "state.json").read_text())
    assert state["manifest_version"] == manifest.version


def test_files_that_cannot_be_packed_are_refused_in_the_packers_words(tmp_path, tokenizer_folder):
    (tmp_path / "odd.jsonl").write_text('{"nonsense": 1}\n')
    config = QuickConfig(data=(str(tmp_path / "odd.jsonl"),), tokenizer=str(tokenizer_folder))
    with pytest.raises(InputError, match="fit no known layout"):
        pack_files(config, "", tmp_path / "run")


def test_what_is_missing_is_named(chats, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="--tokenizer"):
        pack_files(QuickConfig(data=(str(chats),)), "", tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyarrow" else name)
    with pytest.raises(MissingExtraError, match="needs pyarrow: install datakit"):
        pack_files(QuickConfig(data=(str(chats),)), "some/model", tmp_path)
    for argv, said in (([], "or files with --data"), (["--data", "a", "--eval-every", "2"], "with --eval-manifest")):
        with pytest.raises(UsageError, match=said):
            sft.main([*argv, "--out", str(tmp_path)])


def test_a_run_ends_with_the_next_command(manifest, tmp_path, capsys):
    options = ["--manifest", str(manifest), "--preset", "tiny", "--steps", "2", "--out", str(tmp_path / "run")]
    for more, said in (
        (["--stop-at", "1"], f"datakit-train sft --out {tmp_path / 'run'} --resume"),
        (["--resume"], f"datakit-train generate --model {tmp_path / 'run'} --prompt Hello"),
    ):
        assert sft.main([*options, *more], "datakit-train sft") == 0
        assert capsys.readouterr().out.splitlines()[-1] == f"[train] next: {said}"


def test_a_folder_without_a_run_is_not_resumed(tmp_path):
    with pytest.raises(UsageError, match="typo: holds no run to resume"):
        sft.main(["--out", str(tmp_path / "typo"), "--resume"])
    (tmp_path / "run.json").write_text('{"config": {}}')
    with pytest.raises(InputError, match=r"run\.json: unreadable .* delete it"):
        sft.main(["--out", str(tmp_path), "--resume"])


def test_a_run_beyond_its_last_step_is_not_resumed_and_what_changes_is_said(manifest, tmp_path, capsys):
    options = ["--manifest", str(manifest), "--preset", "tiny", "--out", str(tmp_path / "run")]
    assert sft.main([*options, "--steps", "3"]) == 0
    with pytest.raises(UsageError, match=r"is at step 3, and is now to end at step 2: train on with --steps above 3"):
        sft.main([*options, "--steps", "2", "--resume"])
    assert sft.main([*options, "--steps", "3", "--resume"]) == 0
    assert "note" not in capsys.readouterr().out
    assert sft.main([*options, "--steps", "4", "--resume", "--weight-decay", "0.1"]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if "note" in line]
    assert said == [f"[train] note: --{name} from now on" for name in (
        "steps was 3, and is 4", "weight-decay was 0.01, and is 0.1")]  # fmt: skip
    with pytest.raises(UsageError, match="was trained on labels: resume it with the command that began the run"):
        pretrain.main([*options, "--steps", "5", "--resume"])
    with pytest.raises(UsageError, match="run: holds a run of another command, or of an earlier version with another"):
        distill.main([*options, "--steps", "4", "--resume", "--teacher", str(tmp_path / "run")])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"logit_softcap": 3.0}, r"logit_softcap 0\.0, and this run has 3\.0"),
        ({"activation": "relu2"}, "activation 'silu', and this run has 'relu2'"),
        ({"hidden_size": 64}, "hidden_size 128, and this run has 64"),
        ({"weights_dtype": "bf16"}, "weights_dtype 'fp32', and this run has 'bf16'"),
    ],
)
def test_a_run_is_not_resumed_as_another_model(manifest, tmp_path, changed, said):
    common = {"manifest": str(manifest), "preset": "tiny", "steps": 2, "out": str(tmp_path)}
    Trainer(sft.SFTConfig.of(**common, stop_at=1)).fit()
    with pytest.raises(ModelError, match=f"was trained with {said}"):
        Trainer(sft.SFTConfig.of(**common, **changed, resume=True))


def test_what_no_run_can_have_is_refused_before_it_starts(manifest, tmp_path):
    common = {"manifest": str(manifest), "preset": "tiny", "steps": 1, "out": str(tmp_path)}
    (tmp_path / "file").touch()
    for error, match, more in (
        (ConfigError, r"dense_layers \(-1,\): expected of 0\.\.3", {"num_experts": 2, "dense_layers": (-1,)}),
        (InputError, "file: cannot make this folder", {"out": str(tmp_path / "file")}),
        (ConfigError, "--device cuda:9: cannot be used here", {"device": "cuda:9"}),
    ):
        with pytest.raises(error, match=match):
            Trainer(sft.SFTConfig.of(**common | more))


@pytest.mark.parametrize(
    ("idle", "needed"),
    [
        ({"seq_len": 64}, "data"), ({"lora_alpha": 4.0}, "lora_rank"), ({"experts_per_token": 2}, "num_experts"),
        ({"eval_rows": 9}, "eval_every"), ({"decay_ratio": 0.5}, "schedule = wsd"),
        ({"min_lr_ratio": 0.5, "schedule": "constant"}, "schedule = cosine or wsd"),
        ({"beta1": 0.5, "optimizer": "adafactor"}, "optimizer = adamw or"),
    ],
)  # fmt: skip
def test_an_option_that_would_do_nothing_is_refused(idle, needed):
    with pytest.raises(ConfigError, match=f"{next(iter(idle))} = .* would do nothing: it acts only with {needed}"):
        sft.SFTConfig.of(manifest="pack.json", **idle)


def test_weights_in_bf16_take_half_and_resume_exactly(manifest, tmp_path):
    common = ["--manifest", str(manifest), "--preset", "tiny", "--steps", "4", "--weights-dtype", "bf16"]
    assert sft.main([*common, "--out", str(tmp_path / "whole")]) == 0
    assert sft.main([*common, "--out", str(tmp_path / "parts"), "--stop-at", "2"]) == 0
    assert sft.main([*common, "--out", str(tmp_path / "parts"), "--resume"]) == 0
    last = [tmp_path / name / "checkpoints" / "step_00000004" for name in ("whole", "parts")]
    weights = [load_file(folder / "model.safetensors") for folder in last]
    states = load_file(last[0] / "optimizer.safetensors")
    assert {t.dtype for t in (*weights[0].values(), *(s for s in states.values() if s.ndim))} == {torch.bfloat16}
    assert all(torch.equal(t, weights[1][name]) for name, t in weights[0].items())
    assert losses(tmp_path / "whole")[-1] < losses(tmp_path / "whole")[0]
    adapters = ["--init", str(last[0]), "--lora-rank", "2", *common[:2], "--steps", "1", *common[-2:]]
    assert sft.main([*adapters, "--out", str(tmp_path / "lora")]) == 0
    trained = load_file(tmp_path / "lora" / "checkpoints" / "step_00000001" / "adapter_model.safetensors")
    assert {t.dtype for t in trained.values()} == {torch.float32}
    with pytest.raises(ConfigError, match="arithmetic in bf16"):
        sft.main([*common, "--dtype", "fp32", "--out", str(tmp_path / "no")])


def test_what_a_base_says_about_generation_is_carried_over(manifest, tmp_path):
    plain = ["--manifest", str(manifest), "--steps", "1", "--out"]
    assert sft.main([*plain, str(tmp_path / "base"), "--preset", "tiny"]) == 0
    base = tmp_path / "base" / "checkpoints" / "step_00000001"
    said = json.loads((base / "generation_config.json").read_text())
    (base / "generation_config.json").write_text(json.dumps(said | {"top_p": 0.8, "eos_token_id": [1, 2]}))
    assert sft.main([*plain, str(tmp_path / "run"), "--init", str(base)]) == 0
    out = export(ExportConfig(model=str(tmp_path / "run"), output=str(tmp_path / "out")))
    assert json.loads((out / "generation_config.json").read_text()) == said | {"top_p": 0.8}, "its own stop tokens"
    assert "chat_template" in json.loads((out / "tokenizer_config.json").read_text())
    assert all(f.stat().st_mode & 0o777 == 0o644 for f in out.iterdir())
