"""Compressed files: several members are one stream, and a broken one gives all that stood before the break."""

import bz2
import gzip
import json
import lzma
import random
from itertools import pairwise

import pyarrow as pa
import pytest


def compress(data: bytes, codec: str) -> bytes:
    if codec in ("zstd", "lz4"):
        out = pa.BufferOutputStream()
        with pa.CompressedOutputStream(out, codec) as stream:
            stream.write(data)
        return out.getvalue().to_pybytes()
    return {"gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[codec](data)


SUFFIX = {"gzip": "gz", "zstd": "zst", "bz2": "bz2", "xz": "xz", "lz4": "lz4"}
CODECS = pytest.mark.parametrize("codec", SUFFIX)


def records(count: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices("abcdefgh ", k=rng.randrange(10, 400))) for _ in range(count)]


def jsonl(texts: list[str]) -> bytes:
    return b"".join(json.dumps({"text": t}).encode() + b"\n" for t in texts)


@CODECS
def test_several_members_are_one_stream(read_bytes, codec):
    texts = records(3000)
    whole = jsonl(texts)
    cuts = [0, 7, 1000, len(whole) // 2 + 3, len(whole)]
    data = b"".join(compress(whole[a:b], codec) for a, b in pairwise(cuts))
    found = read_bytes(data, f"data.jsonl.{SUFFIX[codec]}")
    assert found.texts == texts
    assert not found.bad


@CODECS
@pytest.mark.parametrize("name", ["data", "data.jsonl"])
def test_the_first_bytes_name_the_compression_not_the_suffix(read_bytes, codec, name):
    assert read_bytes(compress(jsonl(["a"]), codec), name).texts == ["a"]


@CODECS
def test_a_truncated_stream_keeps_the_rows_before_the_cut(read_bytes, codec):
    texts = records(20_000 if codec == "bz2" else 5000)
    data = compress(jsonl(texts), codec)
    found = read_bytes(data[: len(data) * 2 // 3], f"data.jsonl.{SUFFIX[codec]}")
    assert found.texts == texts[: len(found.texts)]
    assert len(found.texts) > 500
    (bad,) = found.bad
    assert (bad["reason"], bad["line"]) == ("truncated_stream", len(found.texts) + 1)
    assert "truncated" in bad["detail"]
    assert jsonl(texts)[bad["byte_offset"] :].startswith(bad["raw"])


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_a_stream_truncated_at_any_byte_loses_no_whole_line(read_bytes, codec):
    texts = records(40)
    data = compress(jsonl(texts), codec)
    for cut in range(8, len(data), max(len(data) // 60, 1)):
        found = read_bytes(data[:cut], f"data.jsonl.{SUFFIX[codec]}", kind="text")
        assert found.texts == texts[: len(found.texts)]
        assert found.reasons == ["truncated_stream"]


@CODECS
def test_damage_in_the_middle_is_quarantined_and_rows_before_it_survive(read_bytes, codec):
    texts = records(20_000 if codec == "bz2" else 5000)
    data = bytearray(compress(jsonl(texts), codec))
    data[len(data) * 3 // 4 : len(data) * 3 // 4 + 64] = bytes(64)
    found = read_bytes(bytes(data), f"data.jsonl.{SUFFIX[codec]}")
    assert found.bad
    assert {b["reason"] for b in found.bad} <= {"corrupt_stream", "truncated_stream", "invalid_json", "invalid_utf8"}
    assert found.bad[-1]["reason"] in ("corrupt_stream", "truncated_stream")
    assert len(found.texts) > 200
    assert found.texts[:200] == texts[:200]


def test_zeros_between_and_after_gzip_members_are_padding(read_bytes):
    data = gzip.compress(jsonl(["a"])) + bytes(512) + gzip.compress(jsonl(["b"])) + bytes(1 << 19)
    assert read_bytes(data, "x.jsonl.gz").texts == ["a", "b"]


def test_rubbish_after_a_gzip_member_is_told(read_bytes):
    found = read_bytes(gzip.compress(jsonl(["a"])) + b"rubbish", "x.jsonl.gz")
    assert (found.texts, found.reasons) == (["a"], ["corrupt_stream"])


def test_an_empty_member_holds_no_rows(read_bytes):
    assert read_bytes(gzip.compress(b""), "x.jsonl.gz", kind="text").rows == []


@CODECS
def test_units_of_a_stream_equal_those_of_the_plain_file(read_bytes, codec):
    texts = records(8000)
    plain = read_bytes(jsonl(texts), "data.jsonl", shard_mb=1)
    packed = read_bytes(compress(jsonl(texts), codec), f"data.jsonl.{SUFFIX[codec]}", shard_mb=1)
    assert plain.units == packed.units == 2
    assert [r["row_key"] for r in plain.rows] == [r["row_key"] for r in packed.rows]
    assert packed.texts == texts
