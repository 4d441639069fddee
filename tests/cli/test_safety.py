"""The command line never loses a user's files, names a result that does not exist, or uses a stale result."""

import os
import threading
from pathlib import Path

import pytest

import datakit.engine.lineage as lineage
import datakit.engine.runner as runner
from datakit.config import sha256_file
from datakit.engine.executors import Local, Progress, working
from datakit.engine.lineage import file_hashes
from datakit.manifest import load
from tests.engine.corpus import results, write_project
from tests.files import flip, write_rows


def texts(path: Path, rows: int = 4) -> Path:
    return write_rows(path, ({"text": f"text number {n}"} for n in range(rows)))


def test_gc_leaves_the_users_own_files_and_a_run_that_is_going_on_alone(datakit, project):
    own = texts(project / "data/raw/2024/jan/a.jsonl")
    assert datakit("ingest data/raw --dataset x").code == 0
    folder = project / "data/x/ingest/0123456789abcdef"
    (folder / "kept").mkdir(parents=True)
    with working(folder, "k", Local(1), Progress()):
        assert "in use" in datakit("gc").out and folder.is_dir(), "a run that is going on"
    assert datakit("gc").out.count("removed") == 1 and not folder.exists() and own.is_file()


@pytest.mark.parametrize("name", ["..", "a/b", "../q", "history", "", "*", ".hidden"])
def test_a_name_that_is_no_folders_is_refused(datakit, project, name):
    texts(project / "a.jsonl")
    for args in (["ingest", "a.jsonl", "--dataset", name], ["init", name, "a.jsonl"], ["run", "--dataset", name]):
        if not name and args[0] != "init":
            continue  # no name at all is another matter
        datakit(*args).fails(2, "is no name for a dataset")
    assert sorted(p.name for p in project.iterdir()) == ["a.jsonl"]


def test_an_output_folder_is_named_by_no_manifest_and_may_be_a_link(datakit, project):
    texts(project / "a.jsonl")
    (project / "far/deep").mkdir(parents=True)
    (project / "link").symlink_to(project / "far/deep")
    for name in ("one", "link"):
        assert datakit("ingest", "a.jsonl", "--output", name).code == 0
    assert (project / "one/manifest.json").read_bytes() == (project / "link/manifest.json").read_bytes()
    assert datakit("verify link").code == 0
    assert datakit("dedup one --output unique").code == 0
    assert load(project / "unique/manifest.json").parents[0]["manifest"] == "ingest"
    write_rows(project / "site/manifest.json", [{"name": "my web app"}])
    own = write_rows(project / "site/kept/p.txt", ["mine"])
    assert datakit("ingest a.jsonl --output site").code == 2 and own.is_file()


def test_a_run_that_another_one_overtook_deletes_nothing(tmp_path):
    (tmp_path / "kept").mkdir()
    with (
        pytest.raises(Exception, match="has just finished"),
        working(tmp_path, "k", Local(1), Progress(), lambda: True),
    ):
        pass
    assert (tmp_path / "kept").is_dir()


def test_duplicates_of_dropped_rows_are_counted_once_whatever_the_paths_to_them(datakit, project):
    said = {"role": "assistant", "content": "the same answer, in words that say the same thing, given again and again"}
    write_rows(project / "in.jsonl", [{"messages": [{"role": "user", "content": "q?"}, said]}] * 8)
    assert datakit("init x in.jsonl").code == 0
    sets = ["pack.seq_len=8", "pack.overflow=drop", "tokenizer.vocab_size=300"]
    made = datakit("run", "--dataset", "x", *(a for s in sets for a in ("--set", s)), "--allow-empty")
    assert made.code == 0, made.err
    ledger = load(project / "manifests/x/pack.json").ledger
    assert sum(ledger.rows.dropped.values()) == 1
    assert ledger.notes == {"duplicate_of_dropped": 7}


def test_a_file_that_changes_while_it_is_read_is_refused(datakit, project, monkeypatch):
    path = texts(project / "a.jsonl")
    hashed = runner.file_hashes

    def then_append(files: dict[Path, str]) -> dict[Path, str]:
        found = hashed(files)
        with path.open("a") as f:
            f.write('{"text": "late"}\n')
        return found

    monkeypatch.setattr(runner, "file_hashes", then_append)
    datakit("ingest a.jsonl --output o").fails(1, "changed while it was read")
    assert not (project / "o/manifest.json").exists()


def test_a_file_whose_times_were_set_back_is_hashed_again(project, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(project / "cache"))
    path = texts(project / "a.jsonl")
    stat, first = path.stat(), file_hashes({path: ""})[path]
    path.write_text(path.read_text().replace("number 0", "number 9"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert file_hashes({path: ""})[path] != first


@pytest.mark.parametrize("damage", ["one bit", "cut", "not a database", "a folder"])
def test_a_damaged_cache_of_hashes_is_no_error_and_begins_again(project, monkeypatch, damage):
    monkeypatch.setenv("XDG_CACHE_HOME", str(project / "cache"))
    path, cache = texts(project / "a.jsonl"), project / "cache/datakit/known.sqlite"
    right = sha256_file(path)
    assert hash_of(path) == right
    data = bytearray(cache.read_bytes())
    data[50] ^= 255
    cache.unlink()
    damaged = {"one bit": data, "cut": data[:5000]}.get(damage, b"{}" * 4000)
    cache.mkdir() if damage == "a folder" else cache.write_bytes(damaged)
    assert [hash_of(path) for _ in range(3)] == [right] * 3
    if damage != "a folder":
        monkeypatch.setattr("datakit.engine.lineage.sha256_file", lambda _: "read again")
        assert hash_of(path) == right  # remembered


def hash_of(path: Path) -> str:
    """The hash of a file, as a new process finds it."""
    lineage._table.cache_clear()
    return file_hashes({path: ""})[path]


def test_files_that_are_gone_are_forgotten_where_there_are_too_many(project, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(project / "cache"))
    monkeypatch.setattr("datakit.engine.lineage.MOST_ENTRIES", 2)
    kept, gone = texts(project / "a.jsonl"), [texts(project / f"{i}.jsonl") for i in range(3)]
    right, *_ = [hash_of(path) for path in (kept, *gone)]
    for path in gone[:2]:
        path.unlink()
    monkeypatch.setattr("datakit.engine.lineage.sha256_file", lambda path: "read again")
    assert hash_of(kept) == right
    assert lineage._query("SELECT count(*) FROM known") == [(2,)]


def test_a_changed_file_is_made_again_and_damage_that_left_no_mark_is_found_when_it_is_read(
    datakit, project, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(project / "cache"))
    write_project(project, rows=40, files=1)
    assert datakit("run --until dedup").code == 0
    whole = results(project)
    for file in sorted(project.glob("data/d/*/*/*/*.parquet")):
        before = file.stat()
        flip(file)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    said = datakit("run --until dedup")
    assert said.code == 0 and said.err.count("was changed after it was written") >= 3
    assert results(project) == whole
    (file,) = project.glob("data/d/dedup/*/kept/*.parquet")
    flip(file)
    manifest = load(project / "manifests/d/dedup.json")  # as a bit that decays on the disk: size and times stay
    file_hashes({file.parents[1] / s.path: s.sha256 for s in manifest.shards})
    for command in ("show", "explain r0 --manifest"):
        datakit(*command.split(), "manifests/d/dedup.json").fails(1, "expected sha256")
    datakit("run --until filter").fails(1, f"{file}: expected sha256", "Run `datakit run` again")
    assert not (project / "manifests/d/filter.json").exists()
    assert datakit("run --until filter").code == 0
    assert datakit("verify manifests/d/filter.json").code == 0


def test_values_for_a_stage_that_does_not_run_are_refused(datakit, project):
    write_project(project, rows=40, files=1)
    assert datakit("run --until filter").code == 0
    datakit("dedup --set filter.rules=nope").fails(2, "does not run in this command")
    said = datakit("dedup manifests/d/filter.json --split train")
    said.fails(2, "split of ingest, which does not run in this command")


def test_going_on_from_an_older_result_is_told(datakit, project):
    write_project(project, rows=40, files=1)
    assert datakit("run --until dedup").code == 0
    with (project / "raw/part-0.jsonl").open("a") as f:
        f.write('{"id": "new", "text": "one more"}\n')
    assert datakit("ingest").code == 0
    assert "the version of ingest is" in datakit("filter").err


def test_no_room_for_a_thread_is_out_of_memory_and_no_mistake_of_ours(datakit, project):
    texts(project / "a.jsonl")
    before = threading.stack_size(1 << 46)  # more than there are addresses
    try:
        said = datakit("dedup a.jsonl --output o --workers 2")
    finally:
        threading.stack_size(before)
    assert said.code == 1 and "out of memory. Finished work is kept" in said.err
