"""The bench for a GPU, rehearsed on the CPU: its data, its checks, its tables, and parts that fail."""

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch

SCRIPT = Path(__file__).parents[2] / "bench" / "gpu.py"
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def gpu() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gpu_bench", SCRIPT)
    assert spec and spec.loader
    module, path = importlib.util.module_from_spec(spec), list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = path
    return module


@pytest.fixture(scope="module")
def data(gpu: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gpu") / "data"
    gpu.make_data(folder, True)
    return folder


@pytest.mark.parametrize("name", ["batches", "experts", "fused-losses", "objectives", "generation"])
def test_checks_hold_on_the_cpu(gpu: ModuleType, data: Path, name: str) -> None:
    rows = list(gpu.CHECKS[name](CPU, data))
    assert rows and not [row for row in rows if row["ok"] is False]


def test_a_difference_and_an_error_are_lines_of_the_table(gpu: ModuleType) -> None:
    near, far, broken = (
        gpu.check("near", 0.1, lambda: [torch.ones(3)], [1.05 * torch.ones(3)]),
        gpu.check("far", 0.1, lambda: [torch.ones(3)], lambda: [2 * torch.ones(3)]),
        gpu.check("broken", 0.1, lambda: [torch.ones(3) @ torch.ones(4)], [torch.ones(3)]),
    )
    assert near["ok"] and not far["ok"] and far["difference"] == pytest.approx(0.5)
    assert not broken["ok"] and broken["remark"].startswith("RuntimeError at test_gpu_bench.py")
    assert gpu.error([torch.tensor([float("nan")])], [torch.ones(1)]) == float("inf")
    slow = {"size": "26m", "seq_len": 64, "variant": "default", "error": "no memory"}
    text = gpu.report({"check:x": [near, far, broken], "rate:y": [slow]}, {"torch": "2"}, ["rate:z"])
    assert "1 checks hold, 2 do not" in text and "| no memory |" in text and "rate:z: no time was left" in text


def test_rates_are_measured_and_a_setting_that_fails_is_told(
    gpu: ModuleType, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variants = {"default": {}, "impossible": {"loop.steps": -1}}
    monkeypatch.setattr(gpu, "VARIANTS", variants)
    one, other = gpu.rates("rate:tiny:64", CPU, data, True)
    assert one["tokens_per_second"] > 0 and one["mfu"] is None and 0 <= one["data_wait"] < 1 and one["steps"] == 2
    assert "steps" in other["error"]


def test_operations_count_the_causal_half_and_no_look_ups(gpu: ModuleType) -> None:
    c = gpu.SIZES["104m"]
    with torch.device("meta"):
        model = gpu.CausalLM(c)
    per_layer = c.hidden_size * (2 * c.num_heads + 2 * c.num_kv_heads) * c.head_dim
    per_layer += 3 * c.hidden_size * c.intermediate_size
    norms = (2 * c.num_layers + 1) * c.hidden_size
    matrices = c.num_layers * per_layer + c.vocab_size * c.hidden_size + norms
    attention = 12 * c.num_layers * c.num_heads * c.head_dim * 1000 / 2
    assert model.flops_per_token(500) == pytest.approx(6 * matrices + attention)
    model.requires_grad_(False)
    assert model.flops_per_token(500) == pytest.approx(4 * matrices + attention)


def test_layers_with_a_window_count_what_it_shows(gpu: ModuleType) -> None:
    c = replace(gpu.SIZES["104m"], window=128, windowed_layers=(0, 2, 4))
    with torch.device("meta"):
        less = gpu.CausalLM(c).flops_per_token(500) - gpu.CausalLM(c).flops_per_token(500, 400)
    assert less == pytest.approx(12 * 3 * c.num_heads * c.head_dim * 400)


def test_the_command_reports_a_part_that_dies_and_goes_on(gpu: ModuleType, data: Path, tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to(data)
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "check:model.jsonl").write_text(
        json.dumps({"part": "check:model", "error": "it died"}) + "\n"
    )
    options = ["--device", "cpu", "--small", "--out", str(tmp_path), "--only", "e", "--seconds", "10"]
    done = subprocess.run([sys.executable, str(SCRIPT), *options], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stderr
    text, found = (tmp_path / "gpu.md").read_text(), json.loads((tmp_path / "gpu.json").read_text())
    assert "- check:model: it died" in text and "check:model" not in found["left"]
    assert "check:experts" in found["left"], "no part starts that cannot end in time"
