"""Manifests: canonical bytes, a ledger that balances, and verification that names whatever was changed."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from datakit.errors import IntegrityError, ManifestError, ModelError
from datakit.manifest import Count, Ledger, Manifest, Shard, load, save, tokenizer_file, verify

RAW = b'{"text": "a"}\n'


def make(root: Path) -> tuple[Path, Path]:
    """An ingest manifest with one shard and one raw input, and a child of it."""
    (root / "raw.jsonl").write_bytes(RAW)
    ingest = _save(root, "ingest", ({"raw": "raw.jsonl", "bytes": len(RAW), "sha256": _sha(RAW)},), into=3, kept=2, q=1)
    parent = {"manifest": "ingest", "version": load(ingest).version, "sha256": _sha(ingest.read_bytes())}
    return ingest, _save(root, "dedup", (parent,), into=2, kept=2, q=0)


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _save(root: Path, stage: str, parents: tuple, *, into: int, kept: int, q: int) -> Path:
    path = root / "manifests" / "d" / f"{stage}.json"
    data = root / "data" / "d" / stage / ("k" * 16)
    shards = []
    for role, rows in (("kept", kept), ("quarantine", q)):
        content = f"{stage} {role} {rows}".encode()
        if rows:
            (data / role).mkdir(parents=True)
            (data / role / "part.parquet").write_bytes(content)
            shards.append(Shard(f"{role}/part.parquet", rows, len(content), _sha(content)))
    manifest = Manifest(
        dataset="d", kind="document", stage=stage, key="k" * 64, parents=parents, config={"a": 1}, code="c",
        ledger=Ledger(Count(into=into, kept=kept, quarantined=q)), shards=tuple(shards), facts={"x": "é"},
    )  # fmt: skip
    above = {p["version"]: "ingest.json" for p in parents if "version" in p}
    save(path, manifest, {"parents": above, "raw": {"raw.jsonl": "../../raw.jsonl"}})
    return path


def problems(path: Path) -> list[str]:
    return [f"{name}: {problem}" for name, problem in verify(path) if problem]


def test_a_manifest_survives_a_round_trip_byte_for_byte(tmp_path):
    ingest, _ = make(tmp_path)
    assert load(ingest).to_bytes() == ingest.read_bytes()
    body = json.loads(ingest.read_bytes())
    assert body["ledger"]["rows"]["in"] == 3 and "first_file" not in body["shards"][0]
    version = body.pop("version")
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert version == _sha(text.encode())[:12]


def test_an_untouched_chain_has_no_problems_and_is_checked_to_the_raw_input(tmp_path):
    _, child = make(tmp_path)
    checked = list(verify(child))
    assert [p for _, p in checked if p] == []
    assert {Path(n).name for n, _ in checked} >= {"dedup.json", "ingest.json", "part.parquet", "raw.jsonl"}
    assert len(checked) == 8


def test_one_byte_changed_anywhere_is_named(tmp_path):
    ingest, child = make(tmp_path)
    files = [ingest, child, tmp_path / "raw.jsonl", *tmp_path.glob("data/d/*/*/*/part.parquet")]
    files += [p for p in tmp_path.glob("manifests/d/history/*.json") if not p.name.endswith(".run.json")]
    assert len(files) == 8
    for file in files:
        before = file.read_bytes()
        for at in range(0, len(before), max(1, len(before) // 23)):
            file.write_bytes(before[:at] + bytes([before[at] ^ 1]) + before[at + 1 :])
            found = problems(child)
            assert found and any(str(file) in p or file.name in p for p in found), (file, at, found)
        file.write_bytes(before)
    assert problems(child) == []
    files[2].unlink()
    files[3].unlink()
    assert sorted(p.split(": ")[1] for p in problems(child)) == ["missing", "raw input"]


def test_a_parent_that_was_run_again_is_found_in_history(tmp_path):
    ingest, child = make(tmp_path)
    other = load(ingest)
    save(ingest, replace(other, config={"a": 2}), {})
    assert problems(child) == []
    for old in (ingest.parent / "history").glob("ingest-*"):
        old.unlink()
    assert "run again since" in problems(child)[0]


def test_a_stage_that_took_in_more_or_less_than_its_parent_gave_is_named(tmp_path):
    ingest, child = make(tmp_path)
    for into in (1, 3):
        changed = replace(load(child), ledger=Ledger(Count(into=into, kept=into)))
        save(child, changed, {"parents": {load(ingest).version: ingest.name}})
        assert f"{ingest}: gives 2 rows, but {child} took in {into}" in problems(child)


def test_a_ledger_that_does_not_add_up_is_a_problem():
    for kept, told in ((2, 4), (4, 6)):
        count = Count(into=5, kept=kept, dropped={"x": 2})
        said = [f"ledger: 5 {unit} in, but {told} accounted for" for unit in ("rows", "tokens")]
        assert list(Ledger(count, count).problems()) == said
    assert list(Ledger(Count(into=5, kept=2, dropped={"x": 2}, quarantined=1, padding=9)).problems()) == []


@pytest.mark.parametrize("path", ["../x", "kept/../../x", "/etc/passwd", "other/x", "", "kept\\x"])
def test_a_shard_may_not_leave_its_data_folder(path):
    with pytest.raises(ManifestError, match="leaves the data folder"):
        Shard(path, 1, 1, "0")


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b'{"format": "other", "format_version": 1}'])
def test_what_is_no_manifest_is_refused(data, tmp_path):
    (tmp_path / "m.json").write_bytes(data)
    with pytest.raises(ManifestError, match=r"m\.json"):
        load(tmp_path / "m.json")


def _with_tokenizer(path: Path, data: Path, stage: str) -> Path:
    (data / "kept/tokenizer").mkdir(parents=True)
    file = data / "kept/tokenizer/tokenizer.json"
    file.write_bytes(b"{}")
    shard = Shard("kept/tokenizer/tokenizer.json", 0, 2, _sha(b"{}"))
    save(path, Manifest(dataset="d", kind="tokens", stage=stage, key="k" * 64, parents=(), config={}, code="c",
                        ledger=Ledger(Count(into=0, kept=0)), shards=(shard,), facts={}), {})  # fmt: skip
    return file


def test_a_tokenizer_is_named_by_its_file_its_folder_or_a_result_that_has_one(tmp_path):
    alone = _with_tokenizer(tmp_path / "out/manifest.json", tmp_path / "out", "pack")
    for given in (alone, alone.parent, tmp_path / "out", tmp_path / "out/manifest.json", str(tmp_path / "out")):
        assert tokenizer_file(given) == alone
    place = tmp_path / "manifests/d/tokenizer.json"  # a manifest, not a tokenizer
    of_project = _with_tokenizer(place, tmp_path / "data/d/tokenizer" / ("k" * 16), "tokenizer")
    assert tokenizer_file(place) == tokenizer_file(place.parent) == of_project
    ingest, _ = make(tmp_path)
    with pytest.raises(ModelError, match="the result of ingest has no tokenizer"):
        tokenizer_file(ingest)
    for missing in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ModelError, match="or a result that has one"):
            tokenizer_file(missing)
    alone.write_bytes(b"[]")
    with pytest.raises(IntegrityError, match="changed"):
        tokenizer_file(tmp_path / "out")
