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
from train.data import DataConfig, Mixture, PackedSet, StepStream, collate
from train.stream import MicroBatch


def epoch(manifest: Path, **config: int) -> list:
    stream = StepStream(PackedSet.open_all(manifest)[0], DataConfig(**config), seed=1)
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
    data = PackedSet.open_all(manifest)[0]
    assert sum(b.real_tokens for b in epoch(manifest)) == int(np.minimum(data.lengths, 64).sum())


def test_a_stream_begins_at_any_step(manifest: Path) -> None:
    data = PackedSet.open_all(manifest)[0]
    steps = iter(StepStream(data, DataConfig(), seed=1))
    walked = [[b.rows.tolist() for b in next(steps)] for _ in range(20)]
    resumed = iter(StepStream(data, DataConfig(), seed=1, first_step=9))
    assert [[b.rows.tolist() for b in next(resumed)] for _ in range(11)] == walked[9:]


def test_seed_and_manifest_decide_the_order(manifest: Path, pack: Callable, random_rows: Callable) -> None:
    def first(path: Path, seed: int) -> list[int]:
        return next(iter(StepStream(PackedSet.open_all(path)[0], DataConfig(), seed)))[0].rows.tolist()

    assert first(manifest, 1) != first(manifest, 2)
    assert first(manifest, 1) != first(pack(random_rows(50, 64, seed=9), seq_len=64), 1)


def test_a_row_longer_than_every_bucket_is_refused_by_number(manifest: Path) -> None:
    with pytest.raises(ConfigError, match=r"row \d+ .* needs 64 positions"):
        StepStream(PackedSet.open_all(manifest)[0], DataConfig(bucket_sizes=(16, 32)), seed=0)


def test_a_set_without_labels_or_rows_is_refused(pack: Callable) -> None:
    with pytest.raises(ManifestError, match="no token is a label"):
        PackedSet.open_all(pack([[([5, 6, 7], [])]], seq_len=16))[0]
    with pytest.raises(ManifestError, match="has no rows"):
        PackedSet.open_all(pack([], seq_len=16))[0]


def test_another_stage_or_format_is_refused_by_name(manifest: Path, tmp_path: Path) -> None:
    found = load(manifest)
    for change in ({"stage": "dedup"}, {"facts": {"packed": {"prefix": "kept/train", "format": "megatron"}}}):
        save(tmp_path / "manifest.json", replace(found, **change), {})
        with pytest.raises(ManifestError, match=(next(iter(change)) == "stage" and "'dedup'") or "'megatron'"):
            PackedSet.open_all(tmp_path / "manifest.json")[0]


def test_a_packed_file_cut_short_is_refused_by_name(manifest: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(manifest.parent, tmp_path / "copy")
    ids = copy / "kept" / "train.ids2d.bin"
    ids.write_bytes(ids.read_bytes()[:-4])
    with pytest.raises(IntegrityError, match=r"train\.ids2d\.bin: expected \d+ bytes, found \d+.*again"):
        PackedSet.open_all(copy / "manifest.json")[0]
    with pytest.raises(InputError, match=r"train\.ids2d\.bin"):
        PackedSet.open_all(copy / "manifest.json", verify=False)


def test_a_flipped_bit_in_any_file_of_a_packed_set_is_refused(manifest: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(manifest.parent, tmp_path / "copy")
    PackedSet.open_all(copy / "manifest.json")[0]  # what was intact before is no excuse
    for shard in (s for s in load(copy / "manifest.json").shards if s.bytes):
        file = copy / shard.path
        data = file.read_bytes()
        file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(IntegrityError, match=f"{shard.path}: expected sha256 {shard.sha256}"):
            PackedSet.open_all(copy / "manifest.json")
        file.write_bytes(data)
    assert PackedSet.open_all(copy / "manifest.json")[0].header == PackedSet.open_all(manifest)[0].header


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
def test_a_batch_is_what_its_rows_say_token_by_token(pack: Callable, random_rows: Callable, labelled: bool) -> None:
    data = PackedSet.open_all(pack(random_rows(12, 48), seq_len=48, labelled=labelled))[0]
    rows = [7, 2, 11, 6]
    batch = collate(Mixture([data]), MicroBatch(np.array(rows), 48), 4)
    ids, labels, positions, numbers = plainly(data, rows, 48)
    assert batch.ids_BT.tolist() == ids
    assert list(zip(batch.label_pos_L.tolist(), batch.targets_L.tolist(), strict=True)) == labels
    assert batch.segments.positions_BT.tolist() == positions
    assert batch.segments.sequence_BT.tolist() == numbers


def lengths_of(pack: Callable, parts: list[tuple[list, int]]) -> Path:
    """A pack manifest of several row lengths, each with rows of its own."""
    made = [pack(rows, seq_len=seq_len) for rows, seq_len in parts]
    found, headers = load(made[0]), []
    for path, (_, seq_len) in zip(made, parts, strict=True):
        for file in (path.parent / "kept").glob("train.*"):
            target = made[0].parent / "kept" / file.name.replace("train.", f"train-{seq_len}.")
            text = file.read_bytes()
            target.write_bytes(text.replace(b'"train.', f'"train-{seq_len}.'.encode()) if "meta" in file.name else text)
        headers.append(load(path).facts["packed"] | {"prefix": f"kept/train-{seq_len}"})
    facts = found.facts | {"packed": {"format": "bin2d in several row lengths", "buckets": headers}}
    changed = replace(found, facts=facts)
    save(made[0], changed, {})
    return made[0]


def test_several_row_lengths_are_one_set_and_each_is_a_bucket(pack: Callable, random_rows: Callable) -> None:
    parts = [(random_rows(9, 24, seed=3), 24), (random_rows(7, 48, seed=4), 48)]
    data = Mixture.open([lengths_of(pack, parts)])
    assert len(data.sets) == 2
    stream = StepStream(data, DataConfig(batch_rows=4), seed=1)
    steps = iter(stream)
    batches = [b for _ in range(stream.plan.steps_per_epoch) for b in next(steps)]
    assert {tuple(b.ids_BT.shape) for b in batches} == {(4, 24), (4, 48)}
    expected = sorted((ids[p], ids[p + 1]) for rows, _ in parts for row in rows for ids, places in row for p in places)
    assert pairs(batches) == expected
    # rows of both lengths in one micro-batch, where the user's buckets say so
    wide = StepStream(data, DataConfig(batch_rows=4, bucket_sizes=(64,)), seed=1)
    assert pairs([b for s in range(wide.plan.steps_per_epoch) for b in wide.batches(s)]) == expected
    told = data.describe(np.array([8, 9]))
    assert [(part["seq_len"], part["packed_rows"]) for part in told] == [(24, [8]), (48, [0])]


def test_several_manifests_are_one_epoch_or_a_weighted_mix(
    manifest: Path, pack: Callable, random_rows: Callable
) -> None:
    rows = random_rows(20, 64, seed=5)
    data = Mixture.open([manifest, pack(rows, seq_len=64)])
    whole = StepStream(data, DataConfig(), seed=1)
    seen = [r for s in range(whole.plan.steps_per_epoch) for b in whole.batches(s) for r in b.rows]
    assert sorted(seen) == list(range(70))
    mix = StepStream(data, DataConfig(weights=(1.0, 3.0)), seed=1)
    steps = 4 * mix.plan.steps_per_epoch
    tokens = np.bincount(
        [r >= 50 for s in range(steps) for b in mix.batches(s) for r in b.rows],
        weights=[data.lengths[r] for s in range(steps) for b in mix.batches(s) for r in b.rows],
    )
    assert tokens[1] / tokens.sum() == pytest.approx(0.75, abs=0.03)
    with pytest.raises(ConfigError, match="expected one per manifest, 2 in all, found 1"):
        StepStream(data, DataConfig(weights=(1.0,)), seed=1)


def test_manifests_that_mean_different_things_are_refused_with_both_values(
    manifest: Path, pack: Callable, random_rows: Callable
) -> None:
    with pytest.raises(ManifestError, match=r"vocab_size 300, but .* has 310"):
        Mixture.open([manifest, pack(random_rows(3, 64), seq_len=64, vocab_size=310)])
    with pytest.raises(ManifestError, match=r"rows_per_unit 1, but .* has 2"):
        Mixture.open([manifest, pack(random_rows(4, 64), seq_len=64, rows_per_unit=2)])
    with pytest.raises(ConfigError, match="one manifest twice"):
        Mixture.open([manifest, manifest])
    one = PackedSet.open_all(manifest)[0]
    other = replace(one, manifest=Path("other.json"), tokenizer=one.tokenizer | {"sha256": "abc"})
    with pytest.raises(ManifestError, match=f"tokenizer sha256 '{one.tokenizer['sha256']}', but other.json has 'abc'"):
        Mixture((one, other))


def test_labels_are_filled_up_to_shares_of_the_positions(manifest: Path) -> None:
    data = PackedSet.open_all(manifest)[0]
    plain, filled = (StepStream(data, DataConfig(), seed=1, label_fill=fill) for fill in (0, 16))
    for step in range(plain.plan.steps_per_epoch):
        for one, two in zip(plain.batches(step), filled.batches(step), strict=True):
            share = one.ids_BT.numel() // 16
            assert len(two.targets_L) == -(-one.labels // share) * share
            assert all(a.equal(b) for a, b in zip(one.counted, two.counted, strict=True))
            assert (two.targets_L[two.labels :] == -100).all()
            assert len(set(two.label_pos_L.tolist())) == len(two.label_pos_L)


def tensors(batches: list) -> list[list]:
    return [[b.ids_BT.tolist(), b.label_pos_L.tolist(), b.targets_L.tolist(), b.rows.tolist()] for b in batches]


@pytest.mark.parametrize("config", [{"num_workers": 1}, {"num_workers": 3, "prefetch_steps": 4}])
def test_workers_change_nothing(manifest: Path, config: dict) -> None:
    expected = tensors(epoch(manifest, num_workers=0, grad_accum=2))
    assert tensors(epoch(manifest, grad_accum=2, **config)) == expected


@pytest.mark.parametrize("ranks", [1, 3])
def test_threads_prepare_steps_of_a_mixture(pack: Callable, random_rows: Callable, ranks: int) -> None:
    data = Mixture.open([pack(random_rows(40, 48, seed=s), seq_len=48) for s in (1, 2)])
    stream = StepStream(
        data, DataConfig(batch_rows=3, grad_accum=2, num_workers=2), seed=3, rank=ranks - 1, ranks=ranks
    )
    steps, total = iter(stream), 3 * stream.plan.steps_per_epoch
    assert [tensors(next(steps)) for _ in range(total)] == [tensors(stream.batches(s)) for s in range(total)]


def test_the_error_of_a_row_comes_with_its_step(pack: Callable) -> None:
    rows = [[([5, 6, 400 if i == 4 else 7], [0])] for i in range(6)]
    for workers in (0, 1):
        config = DataConfig(batch_rows=1, shuffle_buffer=0, num_workers=workers)
        steps = iter(StepStream(PackedSet.open_all(pack(rows, seq_len=16))[0], config, seed=0))
        assert [b.rows.tolist() for _ in range(4) for b in next(steps)] == [[0], [1], [2], [3]]
        with pytest.raises(IntegrityError, match="packed row 4 lies outside the vocabulary of 300"):
            next(steps)


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        ([([5, 6, 7, 8], [2, 1])], "twice, or labels that are not ascending"),
        ([([5, 6, 7, 8], [1, 1])], "twice, or labels that are not ascending"),
        ([([5, 6, 7, 8], [-1, 1])], "on padding or across two sequences"),
        ([([5, 6, 7, 8], [3])], "on padding or across two sequences"),
        ([([5, 6, 7, 8], [4])], "on padding or across two sequences"),
        ([([5, 6, 7, 8], [1]), ([5, 6], [0, 12])], "on padding or across two sequences"),
    ],
)
def test_labels_that_cannot_be_are_refused_by_row(pack: Callable, pieces: list, said: str) -> None:
    good = [([5, 6, 7, 8], [1, 2])]
    with pytest.raises(IntegrityError, match=f"packed row 1 has a label {said}"):
        epoch(pack([good, pieces, good], seq_len=16))


def test_a_workers_error_reaches_the_loop(pack: Callable) -> None:
    with pytest.raises(IntegrityError, match="outside the vocabulary"):
        epoch(pack([[([5, 6, 400], [0])]], seq_len=16), num_workers=2)


def test_ranks_see_every_row_of_every_step_between_them(manifest: Path) -> None:
    data, config = PackedSet.open_all(manifest)[0], DataConfig(batch_rows=4, grad_accum=3)
    whole = StepStream(data, config, seed=1)
    for ranks in (2, 4):
        parts = [StepStream(data, config, seed=1, rank=r, ranks=ranks) for r in range(ranks)]
        for step in range(2 * whole.plan.steps_per_epoch):
            seen = [r for part in parts for b in part.batches(step) for r in b.rows]
            assert sorted(seen) == sorted(r for b in whole.batches(step) for r in b.rows)
            assert len({len(part.batches(step)) for part in parts}) == 1


def equal_batches(one: list, other: list) -> bool:
    names = ("ids_BT", "label_pos_L", "targets_L")
    same = [all(torch.equal(getattr(a, n), getattr(b, n)) for n in names) for a, b in zip(one, other, strict=True)]
    return all(same) and [a.segments.groups for a in one] == [b.segments.groups for b in other]


@pytest.mark.parametrize("labelled", [True, False])
def test_rows_without_padding_give_the_batches_of_rows_with_a_stride(
    pack: Callable, random_rows: Callable, labelled: bool
) -> None:
    """Format bin beside bin2d, in buckets; the same order, since the order hangs on the manifest's version."""
    rows = random_rows(23, 48)
    sets = [PackedSet.open_all(pack(rows, 48, labelled=labelled, format=name))[0] for name in ("bin2d", "bin")]
    assert [s.packed.ids.ndim for s in sets] == [2, 1]
    assert all(sets[0].packed.ids_of(r).tolist() == sets[1].packed.ids_of(r).tolist() for r in range(23))
    micros = [MicroBatch(np.arange(i, min(23, i + 4)), 48) for i in range(0, 23, 4)]
    assert equal_batches(*([collate(Mixture([s]), m, 4) for m in micros] for s in sets))


def test_files_in_memory_give_the_same_batches(manifest: Path) -> None:
    mapped, read = (Mixture.open([manifest], in_memory=memory) for memory in (False, True))
    assert not mapped.sets[0].packed.ids.flags.owndata and read.sets[0].packed.ids.flags.owndata
    one, other = (StepStream(data, DataConfig(), seed=1) for data in (mapped, read))
    for step in range(4):
        assert equal_batches(one.batches(step), other.batches(step))


def test_labels_are_padded_to_a_bucket_and_beyond_the_largest_to_a_sixteenth(manifest: Path) -> None:
    data = Mixture.open([manifest])
    config = DataConfig(batch_rows=4, label_bucket_sizes=(48, 96))
    streams = StepStream(data, config, seed=1, label_fill=16), StepStream(data, DataConfig(batch_rows=4), seed=1)
    sizes = set()
    for step in range(streams[1].plan.steps_per_epoch):
        for padded, plain in zip(*(s.batches(step) for s in streams), strict=True):
            count, size = plain.labels, len(padded.targets_L)
            sixteenth = -(-padded.ids_BT.numel() // 16)
            wanted = next((s for s in (48, 96) if s >= count), -(-max(count, 1) // sixteenth) * sixteenth)
            assert size == min(wanted, padded.ids_BT.numel()) and padded.labels == count
            assert torch.equal(padded.counted[1], plain.targets_L) and (padded.targets_L[count:] == -100).all()
            assert len(set(padded.label_pos_L.tolist())) == size
            sizes.add(size)
    assert {48, 96} <= sizes


def test_ranks_share_steps_of_a_schedule(manifest: Path) -> None:
    data, config = Mixture.open([manifest]), DataConfig(batch_size_schedule=("0:2", "3:6"), grad_accum=2)
    alone = StepStream(data, config, seed=1)
    shares = [StepStream(data, config, seed=1, rank=rank, ranks=2) for rank in range(2)]
    for step in range(8):
        rows = sorted(row for s in shares for b in s.batches(step) for row in b.rows.tolist())
        assert rows == sorted(alone.rows_of(step).tolist())
        assert max(len(b.rows) for b in alone.batches(step)) <= (2 if step < 3 else 6)
    with pytest.raises(ConfigError, match="expected STEP:ROWS"):
        DataConfig(batch_size_schedule=("4",))
    with pytest.raises(ConfigError, match="steps must ascend"):
        DataConfig(batch_size_schedule=("9:2", "3:4"))
