import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from datakit.errors import ConfigError, DatakitError, InputError, IntegrityError, ManifestError
from datakit.manifest import load, save
from train.data import DataConfig, PackedSet, StepStream


def epoch(manifest: Path, **config: int) -> list:
    stream = StepStream(PackedSet.open(manifest), DataConfig(**config), seed=1)
    steps = iter(stream)
    return [b for _ in range(stream.plan.steps_per_epoch) for b in next(steps)]


def pairs(batches: list) -> list[tuple[int, int]]:
    """(input token, target token) of every label."""
    return sorted(
        (int(b.ids_BT.flatten()[p]), int(t)) for b in batches for p, t in zip(b.label_pos_L, b.targets_L, strict=True)
    )


def test_an_epoch_trains_on_exactly_the_labels_that_were_packed(pack: Callable, random_rows: Callable) -> None:
    rows = random_rows(23, 48)
    expected = sorted((ids[p], ids[p + 1]) for row in rows for ids, places in row for p in places)
    for config in ({}, {"batch_rows": 3, "grad_accum": 2}, {"shuffle_buffer": 5}):
        assert pairs(epoch(pack(rows, seq_len=48), **config)) == expected


def test_plain_text_trains_on_every_target_inside_a_sequence(pack: Callable, random_rows: Callable) -> None:
    rows = random_rows(11, 48)
    expected = sorted(pair for row in rows for ids, _ in row for pair in itertools.pairwise(ids))
    assert pairs(epoch(pack(rows, seq_len=48, labelled=False))) == expected


def test_a_bucket_has_one_shape(manifest: Path) -> None:
    shapes = {tuple(b.ids_BT.shape) for b in epoch(manifest, batch_rows=4)}
    assert shapes == {(4, 16), (4, 64)}


def test_real_tokens_are_counted_without_padding(manifest: Path) -> None:
    data = PackedSet.open(manifest)
    assert sum(b.real_tokens for b in epoch(manifest)) == int(np.minimum(data.lengths, 64).sum())


def test_a_stream_begins_at_any_step(manifest: Path) -> None:
    data = PackedSet.open(manifest)
    steps = iter(StepStream(data, DataConfig(), seed=1))
    walked = [[b.rows.tolist() for b in next(steps)] for _ in range(20)]
    resumed = iter(StepStream(data, DataConfig(), seed=1, first_step=9))
    assert [[b.rows.tolist() for b in next(resumed)] for _ in range(11)] == walked[9:]


def test_seed_and_manifest_decide_the_order(manifest: Path, pack: Callable, random_rows: Callable) -> None:
    def first(path: Path, seed: int) -> list[int]:
        return next(iter(StepStream(PackedSet.open(path), DataConfig(), seed)))[0].rows.tolist()

    assert first(manifest, 1) != first(manifest, 2)
    assert first(manifest, 1) != first(pack(random_rows(50, 64, seed=9), seq_len=64), 1)


def test_a_row_longer_than_every_bucket_is_refused_by_number(manifest: Path) -> None:
    with pytest.raises(ConfigError, match=r"row \d+ .* needs 64 positions"):
        StepStream(PackedSet.open(manifest), DataConfig(bucket_sizes=(16, 32)), seed=0)


def test_a_set_without_labels_or_rows_is_refused(pack: Callable) -> None:
    with pytest.raises(ManifestError, match="no token is a label"):
        PackedSet.open(pack([[([5, 6, 7], [])]], seq_len=16))
    with pytest.raises(ManifestError, match="no rows"):
        PackedSet.open(pack([], seq_len=16))


def test_another_stage_or_format_is_refused_by_name(manifest: Path, tmp_path: Path) -> None:
    found = load(manifest)
    for change in ({"stage": "dedup"}, {"facts": {"packed": {"prefix": "kept/train", "format": "bin"}}}):
        values = {n: getattr(found, n) for n in found.__slots__} | change
        save(tmp_path / "manifest.json", type(found)(**values), {})
        with pytest.raises(ManifestError, match=(next(iter(change)) == "stage" and "'dedup'") or "'bin'"):
            PackedSet.open(tmp_path / "manifest.json")


def test_a_packed_file_cut_short_is_refused_by_name(manifest: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(manifest.parent, tmp_path / "copy")
    ids = copy / "kept" / "train.ids2d.bin"
    ids.write_bytes(ids.read_bytes()[:-4])
    with pytest.raises(InputError, match=r"train\.ids2d\.bin"):
        PackedSet.open(copy / "manifest.json")


def test_labels_across_sequences_and_ids_outside_the_vocabulary_are_refused(pack: Callable) -> None:
    across = pack([[([5, 6, 7], [2]), ([8, 9], [0])]], seq_len=16)
    with pytest.raises(IntegrityError, match="packed row 0 has a label on padding or across two sequences"):
        epoch(across)
    outside = pack([[([5, 6, 400], [0])]], seq_len=16)
    with pytest.raises(IntegrityError, match="outside the vocabulary of 300"):
        epoch(outside)


@pytest.mark.parametrize("values", [{"batch_rows": 0}, {"bucket_sizes": (32, 16)}, {"shuffle_buffer": -1}])
def test_senseless_values_are_refused(values: dict) -> None:
    with pytest.raises(DatakitError):
        DataConfig(**values)
