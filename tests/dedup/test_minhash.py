import random
import tempfile
from pathlib import Path

import datasketch
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from datakit.dedup import minhash
from datakit.dedup.minhash import ShingleSets, find_buckets, first_of_equals, permutations, shingle_sets, signatures
from datakit.dedup.shuffle import Memory, digest_halves
from datakit.text.words import split_words

MEMORY = Memory(256, Path(tempfile.gettempdir()))
small_bands = arrays(np.uint64, st.tuples(st.integers(0, 20), st.integers(1, 4)), elements=st.integers(0, 4))


def reference_shingles(text: str, size: int) -> set[tuple[str, ...]]:
    words = split_words(text)
    return {tuple(words[i : i + size]) for i in range(len(words) - size + 1)}


def datasketch_values(hashes: np.ndarray, num_perm: int, seed: int) -> list[int]:
    sketch = datasketch.MinHash(num_perm, seed=seed, scheme="affine32", hashfunc=lambda h: h)
    if len(hashes):
        sketch.update_batch([int(h) & 0xFFFFFFFF for h in hashes])
    return sketch.hashvalues.tolist()


def row(sets: ShingleSets, i: int) -> np.ndarray:
    return sets.hashes[sets.starts[i] : sets.starts[i + 1]]


def check_signatures(texts: list[str], num_perm: int = 112, seed: int = 1) -> None:
    sets = shingle_sets(pa.array(texts, pa.string()), 5)
    values = signatures(sets, num_perm, seed)
    for i in range(len(texts)):
        assert values[i].tolist() == datasketch_values(row(sets, i), num_perm, seed)


@pytest.mark.parametrize(("num_perm", "seed"), [(112, 1), (1, 0), (256, 2**32 - 1)])
def test_permutations_are_datasketchs(num_perm, seed):
    expected = datasketch.MinHash(num_perm, seed=seed, scheme="affine32").permutations
    assert np.array_equal(np.array(permutations(num_perm, seed)), expected)


@given(st.lists(st.text(alphabet="ab c中文 ไ\n.", max_size=80), max_size=6), st.integers(1, 7))
def test_sets_are_the_distinct_shingles(texts, size):
    sets, wide = (shingle_sets(pa.array(texts, pa.string()), size, dtype) for dtype in (np.uint32, np.uint64))
    expected = [reference_shingles(text, size) for text in texts]
    assert np.diff(sets.starts).tolist() == [len(shingles) for shingles in expected]
    for i in range(len(texts)):
        for found in (sets, wide):
            assert (np.diff(row(found, i).astype(object)) > 0).all(), "ascending and distinct"
        assert {*row(sets, i).tolist()} == {value & 0xFFFFFFFF for value in row(wide, i).tolist()}
    assert len({*sets.hashes.tolist()}) == len({shingle for shingles in expected for shingle in shingles})


@given(st.lists(st.sampled_from([0, 1, 2**31, 2**32 - 2, 2**32 - 1, 2**32]) | st.integers(0, 2**64 - 1), max_size=20))
def test_a_set_has_the_value_too_that_marks_free_slots(values):
    table, out = (np.empty(size, np.uint32) for size in (3 * len(values), len(values) + 1))
    count = minhash._sorted_set(np.array(values, np.uint64), len(values), table, out)
    assert out[:count].tolist() == sorted({value & 0xFFFFFFFF for value in values})


def test_signatures_are_datasketchs_on_sets_of_every_size():
    rng = random.Random(0)
    lengths = [0, 3, 5, 6, 20, 35, 36, 37, 100, 4099, 4100, 4101, 9000]
    check_signatures([" ".join(f"w{rng.randrange(10**6)}" for _ in range(n)) for n in lengths], num_perm=113)


@given(st.lists(st.text(alphabet="abc 中文ไéß\n", max_size=60), max_size=4), st.integers(0, 2**32 - 1))
def test_signatures_are_datasketchs_in_any_language(texts, seed):
    check_signatures(texts, num_perm=16, seed=seed)


def test_bands_are_equal_exactly_where_all_their_values_are():
    values = np.tile(np.arange(24, dtype=np.uint32), (26, 1))
    values[range(1, 25), range(24)] += 100
    values[25] = values[25].reshape(3, 8)[:, ::-1].ravel()
    bands = np.empty((26, 3), np.uint64)
    minhash._write_band_hashes(values, 8, bands)
    differ = [[False] * 3, *([n // 8 == band for band in range(3)] for n in range(24)), [True] * 3]
    assert (bands != bands[0]).tolist() == differ


@given(small_bands)
def test_rows_share_a_bucket_exactly_where_they_share_a_band(bands):
    of_row, sizes = find_buckets(bands.T, bands.T.shape, MEMORY)
    for row in range(len(bands)):
        for band in range(bands.shape[1]):
            fellows = bands[:, band] == bands[row, band]
            bucket = of_row[band, row]
            if fellows.sum() == 1:
                assert bucket == -1
            else:
                assert np.array_equal(np.argwhere(of_row == bucket)[:, 1], np.flatnonzero(fellows))
                assert sizes[bucket] == fellows.sum()


@given(st.lists(st.sampled_from([b"a" * 16, b"a" * 8 + b"b" * 8, b"b" * 8 + b"a" * 8]), max_size=20), st.integers(0, 5))
def test_the_first_of_equals_is_found(digests, begin):
    found = first_of_equals(digest_halves(pa.array(digests, pa.binary(16)).slice(begin)))
    assert found.tolist() == [digests[begin:].index(digest) for digest in digests[begin:]]
