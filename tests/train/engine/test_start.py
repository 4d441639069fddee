import importlib.util
import json
from pathlib import Path

import pytest
import torch

from datakit.errors import InputError, MissingExtraError, UsageError
from datakit.manifest import load
from train import merge, sft
from train.engine.start import QuickConfig, pack_files
from train.model import hf


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    rows = [
        {"messages": [{"role": "user", "content": f"hello {i}"}, {"role": "assistant", "content": "the cat sat"}]}
        for i in range(20)
    ]
    (tmp_path / "chats.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows) + "not json\n")
    return tmp_path / "chats.jsonl"


def test_files_are_packed_on_the_fly_and_trained_on(
    chats: Path, tokenizer_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    options = ["--data", str(chats), "--tokenizer", str(tokenizer_folder), "--seq-len", "64", "--preset", "tiny"]
    options += ["--batch-rows", "2", "--threads", "1", "--steps", "2", "--out", str(tmp_path / "run")]
    assert sft.main(options) == 0
    said = capsys.readouterr().out
    assert "step=2 " in said and "1 records could not be read" in said, "the line that is not JSON is told of"
    manifest = load(tmp_path / "run" / "data" / "manifest.json")
    assert manifest.stage == "pack" and manifest.facts["packed"]["seq_len"] == 64
    state = json.loads((tmp_path / "run" / "checkpoints" / "step_00000002" / "state.json").read_text())
    assert state["manifest_version"] == manifest.version


def test_files_that_cannot_be_packed_are_refused_in_the_packers_words(tmp_path: Path, tokenizer_folder: Path) -> None:
    (tmp_path / "odd.jsonl").write_text('{"nonsense": 1}\n')
    with pytest.raises(InputError, match="fit no known layout"):
        pack_files(
            QuickConfig(data=(str(tmp_path / "odd.jsonl"),), tokenizer=str(tokenizer_folder)), "", tmp_path / "run"
        )


def test_what_is_missing_is_named(chats: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="--tokenizer"):
        pack_files(QuickConfig(data=(str(chats),)), "", tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyarrow" else name)
    with pytest.raises(MissingExtraError, match="needs pyarrow: install datakit"):
        pack_files(QuickConfig(data=(str(chats),)), "some/model", tmp_path)
    with pytest.raises(UsageError, match="or files with --data"):
        sft.main(["--out", str(tmp_path)])


def test_a_run_ends_with_the_next_command(manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    options = ["--manifest", str(manifest), "--preset", "tiny", "--steps", "2", "--out", str(tmp_path / "run")]
    for more, said in (
        (["--stop-at", "1"], f"datakit-train sft --out {tmp_path / 'run'} --resume"),
        (["--resume"], f"datakit-train generate --checkpoint {tmp_path / 'run'} --chat"),
    ):
        assert sft.main([*options, *more], "datakit-train sft") == 0
        assert capsys.readouterr().out.splitlines()[-1] == f"[train] next: {said}"


def test_the_mean_of_checkpoints_is_written(manifest: Path, tmp_path: Path) -> None:
    options = ["--manifest", str(manifest), "--preset", "tiny", "--steps", "3", "--save-every", "1"]
    assert sft.main([*options, "--out", str(tmp_path / "run")]) == 0
    assert merge.main(["--adapter", str(tmp_path / "run"), "--average", "2", "--output", str(tmp_path / "mean")]) == 0
    models = [hf.read_model(tmp_path / "run" / "checkpoints" / f"step_0000000{i}") for i in (2, 3)]
    for (name, found), one, other in zip(
        hf.read_model(tmp_path / "mean").named_parameters(), *(m.parameters() for m in models), strict=True
    ):
        torch.testing.assert_close(found, (one + other) / 2, msg=name)
    with pytest.raises(InputError, match="has 3 checkpoints, and --average wants 4"):
        merge.main(["--adapter", str(tmp_path / "run"), "--average", "4", "--output", str(tmp_path / "more")])
