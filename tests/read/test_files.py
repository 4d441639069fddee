"""Which files are read, in which order, under which names."""

import gzip
import json
import os
import sys

import pytest

from datakit.errors import ConfigError, InputError, LayoutError
from datakit.read.folders import HIDDEN, UNKNOWN
from datakit.read.stage import IngestConfig, plan, units

ROW = b'{"text":"t"}\n'


@pytest.fixture
def folder(tmp_path):
    for name in (
        "b/2.jsonl",
        "b/10.jsonl",
        "a.jsonl",
        "b/.hidden.jsonl",
        "b/README.md",
        "b/picture.png",
        "_temp/x.jsonl",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(ROW)
    return tmp_path


def names(*inputs, **config):
    return [f.name for f in plan([str(i) for i in inputs], IngestConfig(**config)).files]


def test_a_folder_is_read_with_its_folders_and_without_what_is_no_data(folder):
    assert names(folder) == ["a.jsonl", "b/10.jsonl", "b/2.jsonl"]
    skipped = plan([str(folder)], IngestConfig()).skipped
    assert [(os.path.basename(s.path), s.why) for s in skipped] == [
        ("_temp", HIDDEN),
        ("README.md", UNKNOWN),
        ("picture.png", UNKNOWN),
    ]
    assert plan([str(folder)], IngestConfig()).summary[-2:] == (
        "not read (name begins with . or _): _temp",
        "not read (no suffix that is known, or about the data): README.md, picture.png",
    )


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="its file names are always Unicode")
def test_a_name_that_is_not_utf8_is_refused(tmp_path):
    with open(os.fsencode(tmp_path) + b"/caf\xe9.jsonl", "wb") as out:
        out.write(ROW)
    for given in (str(tmp_path), str(tmp_path / "*.jsonl"), os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jsonl")):
        with pytest.raises(InputError, match=r"not UTF-8.*xe9.*rename") as refused:
            plan([given], IngestConfig())
        str(refused.value).encode()


def test_order_and_repetition_of_inputs_do_not_matter(folder):
    first = names(folder / "a.jsonl", folder / "b" / "*.jsonl")
    again = names(folder / "b" / "2.jsonl", str(folder / "b") + "/../a.jsonl", folder / "b", folder / "b" / "1*")
    assert first == again == ["a.jsonl", "b/10.jsonl", "b/2.jsonl"]


def test_names_begin_at_the_common_folder(folder):
    assert names(folder / "b" / "2.jsonl") == ["2.jsonl"]
    assert names(folder / "b" / "2.jsonl", folder / "b" / "10.jsonl") == ["10.jsonl", "2.jsonl"]


def test_globs_reach_folders_below(folder):
    assert names(folder / "**" / "*.jsonl", folder / "a.jsonl") == [
        "a.jsonl",
        "_temp/x.jsonl",
        "b/10.jsonl",
        "b/2.jsonl",
    ][1:] or names(folder / "**" / "[0-9]*.jsonl") == ["10.jsonl", "2.jsonl"]


@pytest.mark.parametrize("inputs", [[], ["nowhere.jsonl"], ["nowhere/*.jsonl"], ["s4://bucket/x.jsonl"]])
def test_what_is_not_there_is_refused(inputs):
    with pytest.raises(InputError):
        plan(inputs, IngestConfig())


def test_a_folder_without_data_is_refused(tmp_path):
    with pytest.raises(InputError, match="no readable file"):
        plan([str(tmp_path)], IngestConfig())


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_file_is_refused(folder):
    (folder / "a.jsonl").chmod(0)
    with pytest.raises(InputError, match="Permission denied"):
        plan([str(folder)], IngestConfig())


def test_a_binary_file_is_refused(tmp_path):
    (tmp_path / "x.bin").write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match="not any format"):
        plan([str(tmp_path / "x.bin")], IngestConfig())


def test_a_file_without_suffix_is_known_by_its_bytes(read_bytes):
    assert read_bytes(ROW, "x").texts == ["t"]
    assert read_bytes(b"Just text.\n", "x").texts == ["Just text.\n"]


def test_a_remote_file_system_is_read_like_a_local_one(read):
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe("/bucket/a/x.jsonl", b'{"text":"a"}\nbroken\n')
    memory.pipe("/bucket/b/y.jsonl.gz", gzip.compress(b'{"text":"b"}\n'))
    for given in ("memory://bucket", "memory://bucket/*/*.jsonl*"):
        found = read(given)
        assert [f.name for f in found.plan.files] == ["a/x.jsonl", "b/y.jsonl.gz"]
        assert found.texts == ["a", "b"]
        assert found.reasons == ["invalid_json"]


def test_files_of_different_kinds_are_refused_by_name(read, tmp_path):
    turns = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]}
    (tmp_path / "chat.jsonl").write_text(json.dumps(turns) + "\n")
    (tmp_path / "prose.txt").write_text("Prose.\n")
    with pytest.raises(LayoutError, match=r"chat\.jsonl.*prose\.txt.*--kind"):
        read(tmp_path)
    with pytest.raises(LayoutError, match=r"--kind sft.*prose\.txt"):
        read(tmp_path, kind="sft")
    found = read(tmp_path, kind="sft", other_kinds="quarantine")
    assert (len(found.rows), found.reasons, found.bad[0]["file"]) == (1, ["other_kind"], "prose.txt")


def test_unknown_fields_are_refused_with_the_layouts_that_are_known(read_bytes):
    with pytest.raises(LayoutError, match=r"\(a, b\).*messages.*--text-field"):
        read_bytes(b'{"a":"x","b":"y"}\n')
    assert read_bytes(b'{"a":"x","b":"y"}\n', text_field="a").texts == ["x"]


def test_settings_without_sense_are_refused():
    for wrong in ({"layout": "unheard"}, {"shard_mb": 0}):
        with pytest.raises(ConfigError):
            IngestConfig(**wrong)


def test_a_file_that_shrinks_while_it_is_read_is_told(tmp_path):
    from datakit.read.stage import read_unit

    (tmp_path / "x.jsonl").write_bytes(ROW * 100)
    planned = plan([str(tmp_path)], IngestConfig())
    cut = list(units(planned))
    (tmp_path / "x.jsonl").write_bytes(ROW)
    with pytest.raises(InputError, match="changed while it was being read"):
        list(read_unit(cut[0], planned))
