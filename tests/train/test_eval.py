"""Losses by source: each is what the loss of its own sequences alone would be."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from datakit.config import sha256_file
from datakit.errors import DatakitError, InputError, UsageError
from datakit.manifest import load, save
from train import eval as evaluation
from train import sft, weights
from train.data import DataConfig, PackedSet, StepStream
from train.eval import FILE_BITS, Score, evaluate, total


def of_two_files(data: PackedSet) -> PackedSet:
    """The same set as if every odd sequence had come from a second file."""
    sources = np.array(data.packed.sources)
    sources["row_key"] += (sources["segment"] % 2).astype(np.uint64) << np.uint64(FILE_BITS)
    return replace(data, packed=replace(data.packed, sources=sources))


def test_the_total_is_the_training_loss(base, manifest):
    model, data = weights.read_model(base), PackedSet.open_all(manifest)[0]
    found = total(evaluate(model, [data], DataConfig(), "fp32"))
    steps, loss = iter(stream := StepStream(data, DataConfig(), seed=0)), sft.label_loss(sft.LabelConfig())
    sums = [loss(model, b) for _ in range(stream.plan.steps_per_epoch) for b in next(steps)]
    assert found.labels == sum(count for _, count in sums) == len(data.packed.labels)
    assert found.loss_sum == pytest.approx(sum(s.item() for s, _ in sums), rel=1e-5)


@pytest.mark.parametrize("labelled", [True, False])
def test_a_source_has_the_loss_of_its_sequences_alone(base, pack, random_rows, labelled):
    rows, model, batches = random_rows(9, 64), weights.read_model(base), DataConfig(batch_rows=4)
    data = PackedSet.open_all(pack(rows, seq_len=64, labelled=labelled))[0]
    found = evaluate(model, [of_two_files(data)], batches, "fp32")
    assert sorted(found) == ["file 0", "file 1"]
    for which, score in enumerate(found.values()):
        alone = [[piece] for row in rows for i, piece in enumerate(row) if i % 2 == which]
        alone_set = PackedSet.open_all(pack(alone, seq_len=64, labelled=labelled))[0]
        expected = total(evaluate(model, [alone_set], batches, "fp32"))
        assert score.labels == expected.labels > 0
        assert score.loss == pytest.approx(expected.loss, abs=1e-5)


def test_rows_in_several_parts_have_the_scores_of_the_same_rows_in_one(base, pack, random_rows):
    rows, model = random_rows(11, 64), weights.read_model(base)
    sets = [[of_two_files(s) for s in PackedSet.open_all(pack(rows, seq_len=64, parts=n))] for n in (1, 4)]
    for most in (0, 4):
        one, many = (evaluate(model, found, DataConfig(batch_rows=2), "fp32", most) for found in sets)
        assert one == many and len(one) == 2


def test_the_command_prints_a_table_or_json(short_run, manifest, capsys):
    asked = ["--model", str(short_run), "--manifest", str(manifest), "--threads", "1"]
    assert evaluation.main(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["source", "label", "tokens", "loss", "perplexity"]
    assert evaluation.main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["all"]["perplexity"] == pytest.approx(math.exp(found["all"]["loss"]))
    assert lines[-1].split()[2] == f"{found['all']['loss']:.4f}"


def test_names_come_from_the_raw_files_at_the_end_of_the_chain(base, manifest, tmp_path):
    raw = tuple({"raw": f"{name}.jsonl", "bytes": 1, "sha256": "0" * 64} for name in "ab")
    first = replace(load(manifest), stage="ingest", parents=raw, facts={})
    save(tmp_path / "ingest.json", first, {})
    parent = {"manifest": "ingest", "version": first.version, "sha256": sha256_file(tmp_path / "ingest.json")}
    own = replace(load(manifest), parents=({"manifest": "tokenizer", "version": "x", "sha256": "y"}, parent))
    save(tmp_path / "manifest.json", own, {"parents": {first.version: "ingest.json"}})
    data = replace(of_two_files(PackedSet.open_all(manifest)[0]), manifest=tmp_path / "manifest.json")
    found = evaluate(weights.read_model(base), [data], DataConfig(batch_rows=4), "fp32")
    assert sorted(found) == ["a.jsonl", "b.jsonl"]


def test_what_cannot_be_scored_is_refused(short_run, pack, random_rows):
    pairs = pack([[row[0]] for row in random_rows(4, 64)], seq_len=64, rows_per_unit=2)
    with pytest.raises(InputError, match="preference pairs"):
        evaluation.main(["--model", str(short_run), "--manifest", str(pairs)])
    with pytest.raises(DatakitError):
        evaluation.main(["--model", str(short_run), "--manifest", str(pack(random_rows(2, 4096), seq_len=4096))])
    with pytest.raises(UsageError):
        evaluation.main([])


def test_a_hopeless_model_has_an_infinite_perplexity_and_no_labels_no_loss():
    assert Score(1, 1e6).record()["perplexity"] == math.inf
    assert math.isnan(Score(0, 0.0).loss)
