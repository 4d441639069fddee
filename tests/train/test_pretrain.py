"""Pretraining: every token counts, whatever the data set marks; and torch that is not there."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from train import pretrain, sft


def run(main: Callable, manifest: Path, out: Path) -> list[dict]:
    options = ["--preset", "tiny", "--steps", "6", "--dtype", "fp32", "--threads", "1", "--batch-rows", "4"]
    assert main(["--manifest", str(manifest), "--out", str(out), *options]) == 0
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def test_every_token_of_conversations_counts(pack: Callable, random_rows: Callable, tmp_path: Path) -> None:
    rows = random_rows(8, 64)
    records = run(pretrain.main, pack(rows, seq_len=64), tmp_path / "run")
    targets = sum(len(ids) - 1 for row in rows for ids, _ in row)
    steps_an_epoch = sum(r["epoch"] == 1 for r in records)
    assert sum(r["label_tokens"] for r in records[:steps_an_epoch]) == targets
    assert records[-1]["loss"] < records[0]["loss"]


def test_plain_text_trains_as_with_sft(pack: Callable, random_rows: Callable, tmp_path: Path) -> None:
    manifest = pack(random_rows(8, 64), seq_len=64, labelled=False)
    ours, theirs = run(pretrain.main, manifest, tmp_path / "a"), run(sft.main, manifest, tmp_path / "b")
    assert [r["loss"] for r in ours] == [r["loss"] for r in theirs]


@pytest.mark.parametrize("module", ["train.sft", "train.dpo"])
def test_without_torch_a_command_says_what_to_install(module: str) -> None:
    code = f"""
import importlib.util, runpy, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name == "torch" else found(name, *a)
sys.argv = ["-m"]
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("error: training needs torch") and done.stderr.count("\n") == 1
