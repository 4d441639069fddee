"""Units of work: done once, resumed where they stopped, discarded when the key changes, never shared by two runs."""

import hashlib
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from datakit.engine.executors import Local, Progress, Result, Work, working
from datakit.errors import UsageError


def open_work(data: Path, key: str = "k") -> AbstractContextManager[Work]:
    return working(data, key, Local(1), Progress())


def test_units_that_are_done_are_not_done_again_but_for_those_that_were_changed(tmp_path):
    calls: list[int] = []

    def work(index: int, payload: str) -> Result:
        calls.append(index)
        if payload == "stop":
            raise KeyboardInterrupt
        path = f"kept/{index}"
        (tmp_path / "kept").mkdir(exist_ok=True)
        (tmp_path / path).write_text(payload)
        return {"files": [[path, len(payload), hashlib.sha256(payload.encode()).hexdigest()]], "rows": index + 100}

    with open_work(tmp_path) as first, pytest.raises(KeyboardInterrupt):
        first.units("x", work, [(0, "a"), (1, "bb"), (2, "d"), (3, "stop")], title="x")
    (tmp_path / "kept/1").write_text("bc")  # not the bytes that its record says
    record = tmp_path / ".work/x/00002.json"
    record.write_bytes(record.read_bytes().replace(b"102", b"902"))
    with open_work(tmp_path) as second:
        results = second.units("x", work, [(0, "a"), (1, "bb"), (2, "d"), (3, "ccc")], title="x")
        second.finish()
    assert calls == [0, 1, 2, 3, 1, 2, 3]
    assert [r["rows"] for r in results] == [100, 101, 102, 103]
    assert not (tmp_path / ".work").exists()


@pytest.mark.parametrize("key", [b"two", b"\xff\x00", b""])
def test_another_key_discards_what_lies_there(tmp_path, key):
    def work(index: int, _: None) -> Result:
        return {"rows": index}

    with open_work(tmp_path, "one") as first:
        first.units("x", work, [(0, None)], title="x")
        (tmp_path / "kept").mkdir()
        (tmp_path / "kept/old").write_text("old")
        (tmp_path / "manifest.json").write_text("{}")
    if key != b"two":  # the file was damaged
        (tmp_path / ".work/key").write_bytes(key)
    with open_work(tmp_path, "two" if key == b"two" else "one"):
        assert not (tmp_path / "kept").exists()
        assert not (tmp_path / "manifest.json").exists()
        assert not (tmp_path / ".work/x").exists()


def test_files_that_an_interrupted_write_left_are_removed(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/.part-00000.parquet.123.tmp").write_text("half")
    with open_work(tmp_path):
        assert list(tmp_path.rglob(".*.tmp")) == []


def test_what_a_run_killed_while_it_finished_left_is_swept_and_nothing_else(tmp_path):
    with open_work(tmp_path) as work:
        (tmp_path / "kept").mkdir()
        (tmp_path / "kept/part").write_text("whole")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("shutil.rmtree", lambda *_, **__: None)  # killed before anything could be removed
            work.finish()
    assert (tmp_path / ".done/key").exists()
    (tmp_path / ".work").mkdir()
    Work.sweep(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept/part").read_text() == "whole"


def test_two_runs_do_not_write_to_one_folder(tmp_path):
    with open_work(tmp_path), pytest.raises(UsageError, match="another run is writing"), open_work(tmp_path):
        pass
