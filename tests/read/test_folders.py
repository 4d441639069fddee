"""What is left out below a folder, and what is read through links."""

import json
import os

import pytest

from datakit.errors import InputError
from datakit.read.folders import OURS, TWICE
from datakit.read.stage import IngestConfig, plan

ROW = b'{"text":"t"}\n'


def put(path, data=ROW):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def found(*inputs):
    planned = plan([str(i) for i in inputs], IngestConfig(kind="text"))
    return (
        [f.name for f in planned.files],
        [(os.path.basename(s.path), s.why) for s in planned.skipped],
        planned.summary,
    )


def output(folder, name):
    """A folder as ingest leaves it, finished, interrupted or below a root."""
    run = folder / {"root": "root/data/set/ingest/0123456789abcdef"}.get(name, name)
    put(run / "kept" / "00000.jsonl")
    put(run / "quarantine" / "00000.jsonl")
    if name == "finished":
        put(run / "manifest.json", json.dumps({"code": {}, "format": "datakit.manifest"}, indent=1).encode())
    if name == "interrupted":
        (run / ".work").mkdir()
    if name == "root":
        put(folder / "root" / "manifests" / "set" / "ingest.json", b'{"format": "datakit.manifest"}')
    return run


@pytest.mark.parametrize("kind", ["finished", "interrupted", "root"])
def test_our_own_output_is_not_read_again(tmp_path, kind):
    put(tmp_path / "a.jsonl")
    run = output(tmp_path, kind)
    names, skipped, summary = found(tmp_path)
    assert names == ["a.jsonl"]
    assert (run.name, OURS) in skipped
    assert any("not read (written by datakit)" in line and run.name in line for line in summary)
    for pattern in ("*", "**/*.jsonl", "**"):
        assert found(tmp_path / pattern)[0] == ["a.jsonl"]


def test_our_output_as_the_only_input_is_refused_and_its_files_by_name_are_read(tmp_path):
    run = output(tmp_path, "finished")
    with pytest.raises(InputError, match="finished was written by datakit"):
        found(run)
    assert found(run / "kept" / "00000.jsonl")[0] == ["00000.jsonl"]
    assert found(run / "kept" / "*.jsonl")[0] == ["00000.jsonl"]


@pytest.mark.parametrize("manifest", [b'{"format": "other", "files": []}', b"[1]", b"broken"])
def test_a_manifest_of_another_kind_keeps_its_folder(tmp_path, manifest):
    put(tmp_path / "set" / "manifest.json", manifest)
    put(tmp_path / "set" / "a.jsonl")
    put(tmp_path / "data" / "set" / "part" / "0123456789abcdef" / "b.jsonl")
    assert "set/a.jsonl" in found(tmp_path / "**" / "*.jsonl")[0]
    assert "data/set/part/0123456789abcdef/b.jsonl" in found(tmp_path / "**" / "*.jsonl")[0]


def test_linked_folders_are_read_once_and_circles_end(tmp_path):
    put(tmp_path / "elsewhere" / "x.jsonl")
    put(tmp_path / "in" / "real" / "a.jsonl")
    for name, to in (
        ("linked", tmp_path / "elsewhere"),
        ("again", tmp_path / "in" / "real"),
        ("real/up", tmp_path / "in"),
    ):
        (tmp_path / "in" / name).symlink_to(to)
    for given in ("in", "in/*"):
        names, skipped, _ = found(tmp_path / given)
        assert names == ["linked/x.jsonl", "real/a.jsonl"]
        assert ("again", TWICE) in skipped


def test_a_link_to_nowhere_is_refused(tmp_path):
    (tmp_path / "a.jsonl").symlink_to(tmp_path / "gone")
    with pytest.raises(InputError, match=r"a\.jsonl: cannot be read"):
        found(tmp_path)
