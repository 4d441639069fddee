"""Pictures of runs."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from datakit.errors import ConfigError, InputError
from train import plot


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    record = {"lr": 1e-3, "real_tok_s": 1000.0, "label_tok_s": 400.0}
    lines = [json.dumps(record | {"step": s, "loss": 9 / s if s != 5 else float("nan")}) for s in range(1, 41)]
    (folder / "metrics.jsonl").write_text("\n".join([*lines, '{"step": 41, "lo']))
    (folder / "eval.jsonl").write_text("".join(json.dumps({"step": s, "loss": 8 / s}) + "\n" for s in (20, 40)))
    return folder


def test_a_run_is_drawn_as_png_and_svg(run: Path, capsys: pytest.CaptureFixture) -> None:
    pytest.importorskip("matplotlib")
    assert plot.main([str(run)]) == 0
    png, svg = (run / f"plot.{kind}" for kind in ("png", "svg"))
    assert capsys.readouterr().out.split() == [str(png), str(svg)]
    assert png.read_bytes().startswith(b"\x89PNG")
    assert all(word in svg.read_text() for word in ("learning rate", "tok/s", "validation"))
    assert plot.main([str(run), str(run), "--output", str(run / "deep" / "both")]) == 0
    assert f"{run}: training" in (run / "deep" / "both.svg").read_text()


def test_series_leave_out_what_is_no_number_and_what_a_crash_cut_short(run: Path) -> None:
    found = plot.records(run / "metrics.jsonl")
    steps, values = plot.series(found, "loss")
    assert steps.tolist() == [s for s in range(1, 41) if s != 5]
    assert values[0] == 9.0
    assert plot.series(found, "mfu")[0].tolist() == []


@pytest.mark.parametrize("length", [0, 1, 2, 3, 250])
def test_smoothing_is_the_mean_around_each_step(length: int) -> None:
    values = np.random.default_rng(0).normal(size=length)
    half = max(1, round(length * plot.SMOOTHING))
    expected = [values[max(0, i - half) : i + half + 1].mean() for i in range(length)]
    np.testing.assert_allclose(plot.smoothed(values), expected)


def test_what_is_no_run_is_refused(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(InputError, match=r"nowhere/metrics\.jsonl: cannot read it"):
        plot.main([str(tmp_path / "nowhere")])
    assert not (tmp_path / "nowhere").exists()
    (run / "metrics.jsonl").write_text("")
    with pytest.raises(InputError, match="has no steps yet"):
        plot.main([str(run)])
    (run / "metrics.jsonl").write_text('x\n{"step": 1}\n')
    with pytest.raises(InputError, match=r"metrics\.jsonl:1"):
        plot.main([str(run)])


def test_without_matplotlib_it_says_what_to_install(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ConfigError, match=r"pip install 'datakit\[plot\]'"):
        plot.main([str(run)])
