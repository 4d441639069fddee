"""Looking at a run while it trains: true numbers, and no trace of it in what is trained."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from datakit.errors import ConfigError, InputError, ManifestError
from tests.train.runs import as_flags, losses, records
from train import eval as evaluation
from train import sft


@pytest.fixture(scope="module")
def split(pack: Callable, random_rows: Callable) -> Path:
    return pack(random_rows(30, 64), seq_len=64, validation=random_rows(9, 64, seed=5))


def train(manifest: Path, out: Path, *more: str) -> list[float]:
    plain = {"preset": "tiny", "steps": 6, "threads": 1, "dtype": "fp32", "batch_rows": 4, "save_every": 2}
    assert sft.main([*as_flags(manifest=manifest, out=out, **plain, keep_checkpoints=0), *more]) == 0
    return losses(out)


looks = partial(records, name="eval")


@pytest.fixture(scope="module")
def watched(split: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("watched") / "run"
    train(split, out, "--eval-every", "4")
    return out


@pytest.mark.parametrize("options", [[], ["--num-experts", "4"]])
def test_looking_changes_nothing_of_the_training(split, tmp_path, options):
    blind = train(split, tmp_path / "blind", *options)
    assert blind == train(split, tmp_path / "seeing", *options, "--eval-every", "2")
    states = [tmp_path / name / "checkpoints" / "step_00000006" for name in ("blind", "seeing")]
    for name in ("model.safetensors", "optimizer.safetensors", "rng.safetensors"):
        assert (states[0] / name).read_bytes() == (states[1] / name).read_bytes()


def test_the_loss_is_that_of_train_eval_on_the_checkpoint(watched, split):
    assert [r["step"] for r in looks(watched)] == [4, 6]  # every fourth step, and the last
    for record in looks(watched):
        folder = watched / "checkpoints" / f"step_{record['step']:08d}"
        options = {"model": str(folder), "manifest": str(split), "dtype": "fp32"}
        (score,) = evaluation.scores(evaluation.EvalConfig(**options)).values()
        assert (record["label_tokens"], record["loss"]) == (score.labels, score.loss)
        assert record["sources"] == {"file 0": score.record()}


def test_a_resumed_run_keeps_its_habits_and_repeats_no_record(split, tmp_path):
    out = tmp_path / "run"
    train(split, out, "--eval-every", "2", "--stop-at", "3")
    assert [r["step"] for r in looks(out)] == [2, 3]
    (out / "checkpoints" / "step_00000003" / "model.safetensors").unlink()
    assert sft.main(["--resume", "--out", str(out)]) == 0
    assert [r["step"] for r in looks(out)] == [2, 4, 6]


def test_rows_that_do_not_fit_are_refused(watched, manifest, split, pack, random_rows, tmp_path):
    def refused(error: type, words: str, *more: str, on: Path = split) -> None:
        with pytest.raises(error, match=words):
            train(on, tmp_path / "run", *more)
        assert not (tmp_path / "run").exists()

    refused(InputError, "no validation split", "--eval-every", "2", on=manifest)
    refused(ConfigError, "it acts only with eval_every", "--eval-manifest", str(split))
    pairs = pack(random_rows(4, 64), seq_len=64, rows_per_unit=2)
    refused(InputError, "preference pairs", "--eval-every", "2", "--eval-manifest", str(pairs))
    other = pack(random_rows(4, 64), seq_len=64, vocab_size=301)
    refused(ManifestError, "vocab_size 301, and .* with 300", "--eval-every", "2", "--eval-manifest", str(other))
    assert train(manifest, tmp_path / "run", "--eval-every", "6", "--eval-manifest", str(split), "--eval-rows", "4")
    assert 0 < looks(tmp_path / "run")[0]["label_tokens"] < looks(watched)[0]["label_tokens"]
