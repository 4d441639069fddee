"""Packed sets, batches and streams: what is trained on is what was packed; what cannot be is refused by row."""

import itertools
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from datakit.errors import ConfigError, DatakitError, InputError, IntegrityError, ManifestError
from datakit.manifest import load, save
from tests.files import flip
from train.data import Batch, DataConfig, Mixture, PackedSet, StepStream
from train.stream import MicroBatch


def epoch(*manifests: Path, **config: object) -> list[Batch]:
    stream = StepStream(Mixture.open(manifests), DataConfig(**config), seed=1)
    steps = iter(stream)
    return [b for _ in range(stream.plan.steps_per_epoch) for b in next(steps)]


def pairs(batches: list[Batch]) -> list[tuple[int, int]]:
    """(input token, target token) of every label."""
    return sorted(
        (int(b.ids_BT.flatten()[p]), int(t)) for b in batches for p, t in zip(b.label_pos_L, b.targets_L, strict=True)
    )


def labels_of(rows: list) -> list[tuple[int, int]]:
    return sorted((ids[p], ids[p + 1]) for row in rows for ids, places in row for p in places)


def rows_of(batches: list[Batch]) -> list[int]:
    return [row for b in batches for row in b.rows.tolist()]


def equal(one: list[Batch], other: list[Batch]) -> bool:
    """Every tensor, row number and group."""
    tensors = [[(b.ids_BT, b.label_pos_L, b.targets_L, *(getattr(b.segments, n) for n in b.segments.__slots__[:-1]))
                for b in batches] for batches in (one, other)]  # fmt: skip
    same = all(torch.equal(x, y) for a, b in zip(*tensors, strict=True) for x, y in zip(a, b, strict=True))
    groups = [[b.segments.groups for b in batches] for batches in (one, other)]
    return same and rows_of(one) == rows_of(other) and groups[0] == groups[1]


def test_an_epoch_trains_on_exactly_the_labels_that_were_packed(pack, random_rows):
    rows = random_rows(23, 48)
    for config in ({}, {"batch_rows": 3, "grad_accum": 2}, {"shuffle_buffer": 5}):
        assert pairs(epoch(pack(rows, seq_len=48), **config)) == labels_of(rows)
    every = sorted(pair for row in rows for ids, _ in row for pair in itertools.pairwise(ids))
    assert pairs(epoch(pack(rows, seq_len=48, labelled=False))) == every


def test_a_bucket_has_one_shape_and_padding_is_not_counted(manifest):
    batches = epoch(manifest, batch_rows=4)
    assert {tuple(b.ids_BT.shape) for b in batches} == {(4, 16), (4, 64)}
    lengths = PackedSet.open_all(manifest)[0].lengths
    assert sum(b.real_tokens for b in batches) == int(np.minimum(lengths, 64).sum())
    with pytest.raises(ConfigError, match=r"row \d+ .* needs 64 positions"):
        epoch(manifest, bucket_sizes=(16, 32))


def test_seed_and_manifest_decide_the_order(manifest, pack, random_rows):
    other = pack(random_rows(50, 64, seed=9), seq_len=64)
    first = [
        next(iter(StepStream(PackedSet.open_all(path)[0], DataConfig(), seed)))[0].rows.tolist()
        for path, seed in ((manifest, 1), (manifest, 2), (other, 1))
    ]
    assert first[0] != first[1] and first[0] != first[2]


def test_what_is_no_training_set_is_refused_by_name(pack, manifest, tmp_path):
    for rows, said in (([[([5, 6, 7], [])]], "no token is a label"), ([], "has no rows")):
        with pytest.raises(ManifestError, match=said):
            PackedSet.open_all(pack(rows, seq_len=16))
    for change, said in (
        ({"stage": "dedup"}, "'dedup'"),
        ({"facts": {"packed": [{"prefix": "kept/train", "format": "megatron"}]}}, "'megatron'"),
    ):
        save(tmp_path / "manifest.json", replace(load(manifest), **change), {})
        with pytest.raises(ManifestError, match=said):
            PackedSet.open_all(tmp_path / "manifest.json")


def test_damage_of_any_file_of_a_packed_set_is_refused(manifest, tmp_path):
    copy = shutil.copytree(manifest.parent, tmp_path / "copy") / "manifest.json"
    PackedSet.open_all(copy)  # what was intact before is no excuse
    for shard in (s for s in load(copy).shards if s.bytes):
        file = copy.parent / shard.path
        flip(file)
        with pytest.raises(IntegrityError, match=f"{shard.path}: expected sha256 {shard.sha256}"):
            PackedSet.open_all(copy)
        flip(file)
    assert PackedSet.open_all(copy)[0].header == PackedSet.open_all(manifest)[0].header
    ids = copy.parent / "kept" / "train-00000.ids2d.bin"
    ids.write_bytes(ids.read_bytes()[:-4])
    with pytest.raises(IntegrityError, match=r"train-00000\.ids2d\.bin: expected \d+ bytes, found \d+.*again"):
        PackedSet.open_all(copy)
    with pytest.raises(InputError, match=r"train-00000\.ids2d\.bin"):
        PackedSet.open_all(copy, verify=False)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"batch_rows": 0}, "batch_rows"), ({"bucket_sizes": (32, 16)}, "ascending"),
        ({"batch_size_schedule": ("4",)}, "expected STEP:ROWS"), ({"batch_size_schedule": ("9:2", "3:4")}, "ascend"),
    ],
)  # fmt: skip
def test_senseless_values_are_refused(values, said):
    with pytest.raises(DatakitError, match=said):
        DataConfig(**values)


def plainly(data: PackedSet, rows: list[int], width: int) -> tuple[list, list, list, list]:
    """Ids, labels as (position, target), positions and sequence numbers of rows, token by token."""
    ids, labels, positions, numbers = [], [], [], []
    for i, row in enumerate(rows):
        tokens, bounds = data.packed.ids[row].tolist(), data.packed.segments_of(row).tolist()
        ids.append(tokens[:width])
        learnt = data.packed.labels_of(row)
        inside = [p for a, b in itertools.pairwise(bounds) for p in range(a, b - 1)]
        labels += [(i * width + p, tokens[p + 1]) for p in (inside if learnt is None else learnt.tolist())]
        places = [(p - a, n + 1) for n, (a, b) in enumerate(itertools.pairwise(bounds)) for p in range(a, b)][:width]
        places += [(0, 0)] * (width - len(places))
        positions.append([p for p, _ in places])
        numbers.append([n for _, n in places])
    return ids, labels, positions, numbers


@pytest.mark.parametrize("labelled", [True, False])
def test_a_batch_is_what_its_rows_say_token_by_token_in_both_formats(pack, random_rows, labelled):
    packed = [pack(random_rows(12, 48), 48, labelled=labelled, format=name) for name in ("bin2d", "bin")]
    strided, ragged = (PackedSet.open_all(manifest)[0] for manifest in packed)
    rows = [7, 2, 11, 6]
    found = [[StepStream(data, DataConfig(), 0).batch(MicroBatch(np.array(rows), 48), 5)] for data in (strided, ragged)]
    assert (strided.packed.ids.ndim, ragged.packed.ids.ndim) == (2, 1) and equal(*found)
    (batch,), (ids, labels, positions, numbers) = found[0], plainly(strided, rows, 48)
    assert batch.ids_BT.tolist() == [*ids, [0] * 48], "a missing row is padding"
    assert list(zip(batch.label_pos_L.tolist(), batch.targets_L.tolist(), strict=True)) == labels
    assert batch.segments.positions_BT.tolist() == [*positions, [0] * 48]
    assert batch.segments.sequence_BT.tolist() == [*numbers, [0] * 48]


def lengths_of(pack: Callable, parts: list[tuple[list, int]]) -> Path:
    """A pack manifest of several row lengths, each with rows of its own."""
    made = [pack(rows, seq_len=seq_len) for rows, seq_len in parts]
    found, headers = load(made[0]), []
    for path, (_, seq_len) in zip(made, parts, strict=True):
        for file in (path.parent / "kept").glob("train-*"):
            target = made[0].parent / "kept" / file.name.replace("train-", f"train-{seq_len}-")
            text = file.read_bytes()
            target.write_bytes(text.replace(b'"train-', f'"train-{seq_len}-'.encode()) if "meta" in file.name else text)
        headers.append(load(path).facts["packed"][0] | {"prefix": f"kept/train-{seq_len}-00000"})
    save(made[0], replace(found, facts=found.facts | {"packed": headers}), {})
    return made[0]


def test_several_row_lengths_are_one_set_and_each_is_a_bucket(pack, random_rows):
    parts = [(random_rows(9, 24, seed=3), 24), (random_rows(7, 48, seed=4), 48)]
    manifest = lengths_of(pack, parts)
    batches = epoch(manifest, batch_rows=4)
    assert {tuple(b.ids_BT.shape) for b in batches} == {(4, 24), (4, 48)}
    # rows of both lengths are in one micro-batch where the user's buckets say so
    for found in (batches, epoch(manifest, batch_rows=4, bucket_sizes=(64,))):
        assert pairs(found) == labels_of([row for rows, _ in parts for row in rows])
    told = Mixture.open([manifest]).describe(np.array([8, 9]))
    assert [(part["seq_len"], part["packed_rows"]) for part in told] == [(24, [8]), (48, [0])]


@pytest.mark.parametrize("seq_len", [24, 48])
def test_rows_in_several_parts_are_trained_on_like_the_same_rows_in_one(pack, random_rows, seq_len):
    rows, other = random_rows(23, seq_len), pack(random_rows(9, 48, seed=5), seq_len=48)
    one, many = (pack(rows, seq_len=seq_len, parts=parts) for parts in (1, 4))
    assert len(PackedSet.open_all(many)) == 4
    whole, parts = ([replace(s, version="1") for s in Mixture.open([m, other]).sets] for m in (one, many))
    for config in ({}, {"shuffle_buffer": 5}, {"weights": (1.0, 2.0)}, {"batch_size_schedule": ("0:2", "3:4")}):
        streams = [StepStream(Mixture(sets), DataConfig(batch_rows=4, **config), seed=1) for sets in (whole, parts)]
        for step in (0, 1, 7, 11):
            assert equal(*(stream.batches(step) for stream in streams))


def test_several_manifests_are_one_epoch_or_a_weighted_mix(manifest, pack, random_rows):
    other = pack(random_rows(20, 40, seed=5), seq_len=64)
    assert sorted(rows_of(epoch(manifest, other))) == list(range(70))
    data = Mixture.open([manifest, other])
    mix = StepStream(data, DataConfig(weights=(1.0, 3.0)), seed=1)
    rows = np.array([r for s in range(4 * mix.plan.steps_per_epoch) for r in rows_of(mix.batches(s))])
    tokens = np.bincount(rows >= 50, weights=data.lengths[rows])
    assert tokens[1] / tokens.sum() == pytest.approx(0.75, abs=0.03)
    with pytest.raises(ConfigError, match="expected one per manifest, 2 in all, found 1"):
        StepStream(data, DataConfig(weights=(1.0,)), seed=1)


def test_manifests_that_mean_different_things_are_refused_with_both_values(manifest, pack, random_rows):
    for options, said in (
        ({"vocab_size": 310}, r"vocab_size 300, but .* has 310"),
        ({"rows_per_unit": 2}, r"rows_per_unit 1, but .* has 2"),
    ):
        with pytest.raises(ManifestError, match=said):
            Mixture.open([manifest, pack(random_rows(4, 64), seq_len=64, **options)])
    with pytest.raises(ConfigError, match="one manifest twice"):
        Mixture.open([manifest, manifest])
    one = PackedSet.open_all(manifest)[0]
    other = replace(one, manifest=Path("other.json"), tokenizer=one.tokenizer | {"sha256": "abc"})
    with pytest.raises(ManifestError, match=f"tokenizer sha256 '{one.tokenizer['sha256']}', but other.json has 'abc'"):
        Mixture((one, other))


def test_labels_are_padded_to_a_bucket_and_beyond_the_largest_to_a_sixteenth(manifest):
    data, sizes = Mixture.open([manifest]), set()
    plain = StepStream(data, DataConfig(batch_rows=4), seed=1)
    steps = range(plain.plan.steps_per_epoch)
    counts = sorted({b.labels for step in steps for b in plain.batches(step)})
    exact = (counts[1], counts[-2])  # numbers that batches have, and one that has more
    padded, filled = (
        StepStream(data, DataConfig(batch_rows=4, label_bucket_sizes=buckets), seed=1, fill=True)
        for buckets in (exact, ())
    )
    streams = plain, padded, filled
    for one, *others in (x for step in steps for x in zip(*(s.batches(step) for s in streams), strict=True)):
        sixteenth = -(-one.ids_BT.numel() // 16)
        rounded = -(-max(one.labels, 1) // sixteenth) * sixteenth
        for other, buckets in zip(others, (exact, ()), strict=True):
            wanted = next((s for s in buckets if s >= one.labels), rounded)
            sizes.add(size := len(other.targets_L))
            assert size == min(wanted, one.ids_BT.numel()) == len(set(other.label_pos_L.tolist()))
            assert all(a.equal(b) for a, b in zip(one.counted, other.counted, strict=True))
            assert (other.targets_L[one.labels :] == -100).all()
    assert {*exact} <= sizes


def test_files_in_memory_and_workers_give_the_same_batches(manifest, pack):
    mapped, read = (Mixture.open([manifest], memory=memory) for memory in (False, True))
    assert not mapped.sets[0].packed.ids.flags.owndata and read.sets[0].packed.ids.flags.owndata
    expected = epoch(manifest, num_workers=0, grad_accum=2)
    plain = StepStream(read, DataConfig(grad_accum=2), seed=1)
    assert equal([b for step in range(plain.plan.steps_per_epoch) for b in plain.batches(step)], expected)
    for config in ({"num_workers": 1}, {"num_workers": 3, "prefetch_steps": 4}):
        assert equal(epoch(manifest, grad_accum=2, **config), expected)


@pytest.mark.parametrize(
    "pieces",
    [*([([5, 6, 7, 8], learnt)] for learnt in ([2, 1], [1, 1], [-2, 1], [3], [4])), [([5, 6], [1]), ([8, 9], [0])]],
)
def test_labels_that_cannot_be_are_refused_by_row(pack, pieces):
    good = [([5, 6, 7, 8], [1, 2])]
    with pytest.raises(IntegrityError, match="packed row 1 has a label twice, out of order, on padding or across two"):
        epoch(pack([good, pieces, good], seq_len=16))


@pytest.mark.parametrize("workers", [0, 2])
def test_the_error_of_a_row_comes_with_its_step(pack, workers):
    rows = [[([5, 6, 400 if i == 4 else 7], [0])] for i in range(6)]
    config = DataConfig(batch_rows=1, shuffle_buffer=0, num_workers=workers)
    steps = iter(StepStream(PackedSet.open_all(pack(rows, seq_len=16))[0], config, seed=0))
    assert [b.rows.tolist() for _ in range(4) for b in next(steps)] == [[0], [1], [2], [3]]
    with pytest.raises(IntegrityError, match="packed row 4 lies outside the vocabulary of 300"):
        next(steps)
