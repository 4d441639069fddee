"""The bench for a GPU, rehearsed on the CPU: its data, its checks, its tables, and parts that fail."""

import contextlib
import io
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bench import gpu
from datakit.errors import DatakitError

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gpu") / "data"
    gpu.make_data(folder, True)
    return folder


@pytest.mark.parametrize("name", ["fp32", "bf16, attention varlen"])
def test_checks_hold_on_the_cpu(data, name):
    row = gpu.check(name, data, CPU)
    assert row["ok"] is (None if "varlen" in name else True), row


def test_a_difference_is_a_line_of_the_table():
    near, far = (gpu.compared(n, [1.0, x], [1.0, 1.0], 0.1) for n, x in (("near", 1.05), ("far", 2.0)))
    assert near["ok"] and not far["ok"] and far["difference"] == pytest.approx(1.0)
    assert not gpu.compared("nan", [float("nan")], [1.0], 0.1)["ok"]
    assert gpu.compared("ids", [[1, 2]], [[1, 2]], 0)["ok"] and not gpu.compared("ids", [[1, 2]], [[1, 3]], 0)["ok"]
    slow = {"rate": "26m, default", "remark": "no memory"}
    text = gpu.report([near, far, {"check": "varlen", "ok": None, "remark": "needs CUDA"}, slow], "a machine")
    assert "1 checks hold, 1 do not" in text and "| 26m, default | no memory |" in text and "**NOT EQUAL**" in text


def test_operations_count_the_causal_half_what_a_window_shows_and_no_look_ups():
    c = gpu.SIZES["104m"]
    with torch.device("meta"):
        model, windows = gpu.CausalLM(c), gpu.CausalLM(replace(c, window=128, windowed_layers=(0, 2, 4)))
    per_layer = c.hidden_size * (2 * c.num_heads + 2 * c.num_kv_heads) * c.head_dim
    per_layer += 3 * c.hidden_size * c.intermediate_size
    norms = (2 * c.num_layers + 1) * c.hidden_size
    matrices = c.num_layers * per_layer + c.vocab_size * c.hidden_size + norms
    attention = 12 * c.num_layers * c.num_heads * c.head_dim * 1000 / 2
    assert model.flops_per_token(500) == pytest.approx(6 * matrices + attention)
    model.requires_grad_(False)
    assert model.flops_per_token(500) == pytest.approx(4 * matrices + attention)
    less = windows.flops_per_token(500) - windows.flops_per_token(500, 400)
    assert less == pytest.approx(12 * 3 * c.num_heads * c.head_dim * 400)


def test_the_command_reports_a_part_that_dies_and_goes_on(data, tmp_path, monkeypatch):
    broken = tmp_path / "data"
    shutil.copytree(data, broken)
    (broken / "chat" / "manifest.json").unlink()
    options = ["--device", "cpu", "--small", "--out", str(tmp_path), "--only", "e"]
    known = {name: {"check": name, "ok": True} for name in (*gpu.CHECKS, *gpu.WHOLE) if name != "resume"}
    (tmp_path / "gpu.json").write_text(json.dumps(known | {"26m, compiled": {"rate": "26m, compiled", "remark": "-"}}))

    def here(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        """A part in this process; an error ends it as it would end its own."""
        monkeypatch.setattr(sys, "argv", command[1:])
        with contextlib.redirect_stdout(io.StringIO()) as said:
            try:
                return subprocess.CompletedProcess(command, gpu.main(), said.getvalue(), "")
            except DatakitError as e:
                return subprocess.CompletedProcess(command, 1, "", str(e))

    monkeypatch.setattr(gpu.subprocess, "run", here)
    monkeypatch.setattr(sys, "argv", ["gpu.py", *options])
    assert gpu.main() == 1
    found = json.loads((tmp_path / "gpu.json").read_text())
    assert "manifest.json" in found["resume"]["remark"] and found["26m, default"]["tokens_per_second"] > 0
    assert "| resume |" in (tmp_path / "gpu.md").read_text()
