"""Which files are read, in which order, under which names; what a broken stream gives; where files are cut."""

import bz2
import gzip
import json
import lzma
import os
import random
import sys
from itertools import pairwise

import pyarrow as pa
import pytest

from datakit.errors import InputError, LayoutError
from datakit.manifest import Count, Ledger
from datakit.read.find import HIDDEN, OURS, TWICE, UNKNOWN, find, split_of
from datakit.read.planning import plan, read_unit, units
from datakit.read.stage import Ingest, IngestConfig
from datakit.read.streams import CHUNK
from tests.files import says, user
from tests.read.conftest import jsonl

ROW = b'{"text":"t"}\n'


@pytest.fixture
def folder(tmp_path):
    names = "b/2.jsonl b/10.jsonl a.jsonl b/.hidden.jsonl b/README.md b/SHA256SUMS b/p.png b/state.json _temp/x.jsonl"
    for name in names.split():
        put(tmp_path / name)
    return tmp_path


def put(path, data=ROW):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def names(*inputs, **config):
    return [f.name for f in plan([str(i) for i in inputs], IngestConfig(**config)).files]


def test_a_folder_is_read_with_its_folders_and_without_what_is_no_data(folder):
    assert names(folder) == ["a.jsonl", "b/10.jsonl", "b/2.jsonl"]
    planned = plan([str(folder)], IngestConfig())
    skipped = [(os.path.basename(s.path), s.why) for s in planned.skipped]
    unknown = "README.md", "SHA256SUMS", "p.png", "state.json"
    assert skipped == [("_temp", HIDDEN), *((name, UNKNOWN) for name in unknown)]
    assert planned.summary[-2:] == (
        "not read (name begins with . or _): _temp",
        "not read (unknown suffix, or a file like README): README.md, SHA256SUMS, p.png, state.json",
    )


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="its file names are always Unicode")
def test_a_name_that_is_not_utf8_is_refused(tmp_path):
    with open(os.fsencode(tmp_path) + b"/caf\xe9.jsonl", "wb") as out:
        out.write(ROW)
    for named in (str(tmp_path), str(tmp_path / "*.jsonl"), os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jsonl")):
        with pytest.raises(InputError, match=r"not UTF-8.*xe9.*rename") as refused:
            plan([named], IngestConfig())
        str(refused.value).encode()


def test_order_and_repetition_of_inputs_do_not_matter(folder):
    first = names(folder / "a.jsonl", folder / "b" / "*.jsonl")
    again = names(folder / "b" / "2.jsonl", str(folder / "b") + "/../a.jsonl", folder / "b", folder / "b" / "1*")
    assert first == again == ["a.jsonl", "b/10.jsonl", "b/2.jsonl"]


@pytest.mark.parametrize("inputs", [[], ["nowhere.jsonl"], ["nowhere/*.jsonl"], ["s4://bucket/x.jsonl"], ["."]])
def test_what_is_not_there_is_refused(inputs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError):
        plan(inputs, IngestConfig())


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_file_is_refused(folder):
    (folder / "a.jsonl").chmod(0)
    with pytest.raises(InputError, match="Permission denied"):
        plan([str(folder)], IngestConfig())


def test_an_unreadable_file_of_a_folder_is_one_quarantined_record_and_the_others_are_read(read, tmp_path):
    put(tmp_path / "a.jsonl")
    bad = {
        "b.jsonl": b"\x00\xff no JSON", "c.parquet": b"no Parquet at all", "d.json": b'{"width": 5, "height": [1]}',
        "e.txt": "wide".encode("utf-16"),
    }  # fmt: skip
    for name, data in bad.items():
        put(tmp_path / name, data)
    found = read(tmp_path)
    assert len(found.rows) == 1 and found.reasons == ["unreadable_file"] * 4
    assert [f.name for f in found.plan.files if f.failure] == list(bad)
    (alarm,) = Ingest(plan=found.plan).extras(Ledger(Count())).facts["alarms"]
    assert alarm.startswith("4 files cannot be read, and are quarantined whole: b.jsonl, c.parquet, d.json, e.txt")
    assert list(Ingest(plan=found.plan).extras(Ledger(Count())).facts["layouts"]) == ["a.jsonl"]
    for name in bad:
        with pytest.raises(InputError):
            read(tmp_path / name)
    for name, why in (("a.jsonl", r"d\.json: the fields of its records fit no"), ("d.json", r"b\.jsonl: it is not")):
        (tmp_path / name).unlink()
        with pytest.raises(InputError, match=why):
            read(tmp_path)


def test_a_file_without_a_suffix_is_what_its_bytes_are(read, tmp_path):
    put(tmp_path / "a.md", b"a text")
    put(tmp_path / "NOTES", b"another text")
    put(tmp_path / "image", bytes(range(256)))
    found = read(tmp_path)
    assert found.texts == ["another text", "a text"]
    assert (found.reasons, found.bad[0]["file"]) == (["unreadable_file"], "image")
    chat = jsonl({"messages": [user("a"), says("b")]})
    put(tmp_path / "chats" / "SUMS", b"6dd2  a.jsonl\n")
    put(tmp_path / "chats" / "more", chat)
    found = read(tmp_path / "chats", kind="sft")
    assert (len(found.rows), found.reasons, found.bad[0]["file"]) == (1, ["unreadable_file"], "SUMS")
    put(tmp_path / "packed" / "data.gz", gzip.compress(chat))
    put(tmp_path / "packed" / "image.gz", gzip.compress(bytes(range(256))))
    put(tmp_path / "packed" / "all.tar.gz", b"x")
    found = read(tmp_path / "packed")
    assert (len(found.rows), found.reasons, found.bad[0]["file"]) == (1, ["unreadable_file"], "image.gz")


@pytest.mark.parametrize(("name", "split"), [
    ("how-to-train-a-dog.jsonl", ""), ("my_train.jsonl", ""), ("testing-grounds.txt", ""), ("train.extra.jsonl", ""),
    ("Train.jsonl", "train"), ("dev-0001.json.gz", "validation"), ("train.00000.jsonl", "train"), ("test1.csv", "test"),
    ("dialogues-00003-of-00014.parquet", "dialogues"), ("a/Test/part.jsonl", "test"), ("test/train.jsonl", "train"),
    ("test/data-00000-of-00002.arrow", "test"), ("test/train-00000-of-00002.parquet", "train"),
])  # fmt: skip
def test_a_file_says_its_split_where_its_name_or_its_folder_is_one(name, split):
    assert split_of(name) == split


TREE = (
    "a.jsonl", "b.jsonl", "README.md", "x.bin", "_SUCCESS", ".hid.jsonl", "_temp/p.jsonl", ".hidden/p.jsonl",
    "one/a.jsonl", "one/two/a.jsonl", "one/two/.b.jsonl", "one/_x/q.jsonl", "d.x/c.jsonl", "d.x/b1.jsonl",
)  # fmt: skip
PATTERNS = (
    "/", "/*", "/*.jsonl", "/**", "/**/*.jsonl", "/**/a.jsonl", "/*/a.jsonl", "/*/*", "/o*", "/one/**", "/[ab].jsonl",
    "/?.jsonl", "/[!a].jsonl", "/.*", "/.h*/*", "/_*", "/_*/*", "/**/two", "/**/two/*", "/o*/t*", "/*/", "/one/two/",
    "/**/.b*", "/on[e]/two/a.jsonl", "/README.md", "/*.md", "/none", "/none/*", "/**/**/a.jsonl", "/**/_x", "/o**",
)  # fmt: skip


def test_patterns_and_folders_find_the_same_files_on_a_store_as_on_a_disk(tmp_path):
    import fsspec

    memory = fsspec.filesystem("memory")
    for name in TREE:
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text("x")
        memory.pipe(f"/tree/{name}", b"x")

    def found(root: str, pattern: str) -> list[str] | str:
        try:
            return sorted(path.partition("/tree/")[2] for path, _, _ in find([f"{root}/tree{pattern}"])[0])
        except InputError:
            return "an error"

    both = {pattern: (found(str(tmp_path), pattern), found("memory:/", pattern)) for pattern in PATTERNS}
    assert {pattern: (here, there) for pattern, (here, there) in both.items() if here != there} == {}


def test_files_of_different_kinds_are_refused_by_name(read, tmp_path):
    (tmp_path / "chat.jsonl").write_bytes(jsonl({"messages": [user("hi"), says("yo")]}))
    (tmp_path / "prose.txt").write_text("Prose.\n")
    with pytest.raises(LayoutError, match=r"chat\.jsonl.*prose\.txt.*--kind"):
        read(tmp_path)
    with pytest.raises(LayoutError, match=r"--kind sft.*prose\.txt"):
        read(tmp_path / "chat.jsonl", tmp_path / "prose.txt", kind="sft")
    found = read(tmp_path, kind="sft")
    assert (len(found.rows), found.reasons, found.bad[0]["file"]) == (1, ["unreadable_file"], "prose.txt")
    assert found.bad[0]["detail"] == "it holds document rows, and conversation rows are asked for"


@pytest.mark.parametrize("code", ["int main()\n{\n  return 0;\n}\n", "[tool]\nname = 1\n", "x = (\n[1, 2],\n)\n"])
def test_a_file_that_the_user_names_is_text_whatever_brackets_its_lines_begin_with(read_bytes, code):
    assert read_bytes(code.encode(), "code.c").texts == [code]
    assert read_bytes(b'{"text": "a"}\n{"text":\n{"text": "b"}\n', "rows.dump").texts == ["a", "b"]


@pytest.mark.parametrize(("name", "data", "why"), [
    ("x.bin", bytes(range(256)), "not any format"), ("x.jsonl", b"PK\x03\x04\x00\x00\xff\xfe", "it is not JSON"),
    ("x.jsonl", b"\xff\xfe" + '{"text":"a"}\n'.encode("utf-16-le"), "UTF-16.*iconv"),
    ("x.jsonl", '\ufeff{"text":"a"}\n'.encode("utf-16-be"), "UTF-16.*iconv"),
    ("x.jsonl", b'{"text":"caf\xe9"}\n', "byte 12 of the record is 0xe9, which is not UTF-8 there.*iconv -f LATIN1"),
    ("x.jsonl", b"", "it is empty, so the kind"), ("x.parquet", b"PAR1 not at all", "not a readable parquet file"),
    ("x.zip", b'PK\x03\x04\x14\0a.jsonl{"text":"a"}\n{"text":"b"}\nPK', "not any format.*unpack an archive"),
    ("x.csv", b"text,text\na,b\n", "names column 'text' twice"), ("x.warc", b"hello\n", "it is no web archive"),
    ("x.csv", b"text,n\ra,1\rb,2\r", "its lines end with CR, .*; convert it first: tr"),
])  # fmt: skip
def test_bytes_that_are_not_what_their_name_says_are_refused_with_what_to_do(read_bytes, name, data, why):
    with pytest.raises(InputError, match=rf"{name}: .*{why}"):
        read_bytes(data, name)


def test_a_file_that_shrinks_while_it_is_read_is_told(tmp_path):
    (tmp_path / "x.jsonl").write_bytes(ROW * 100)
    planned = plan([str(tmp_path)], IngestConfig())
    cut = list(units(planned))
    (tmp_path / "x.jsonl").write_bytes(ROW)
    with pytest.raises(InputError, match="changed while it was being read"):
        list(read_unit(cut[0], planned))


def found(*inputs):
    planned = plan([str(i) for i in inputs], IngestConfig(kind="text"))
    skipped = [(os.path.basename(s.path), s.why) for s in planned.skipped]
    return [f.name for f in planned.files], skipped, planned.summary


def test_an_empty_file_is_told(tmp_path):
    put(tmp_path / "a.md", b"")
    put(tmp_path / "b.md", b"text")
    assert found(tmp_path)[2][1:] == ("a.md: empty, makes no row", "b.md: document, text")


def output(folder, name):
    """A folder as ingest leaves it, finished, interrupted or below a root."""
    run = folder / {"root": "root/data/set/ingest/0123456789abcdef"}.get(name, name)
    put(run / "kept" / "00000.jsonl")
    if name == "finished":
        put(run / "manifest.json", json.dumps({"code": {}, "format": "datakit.manifest"}, indent=1).encode())
    if name == "interrupted":
        (run / ".work").mkdir()
    if name == "root":
        put(folder / "root" / "manifests" / "set" / "ingest.json", b'{"format": "datakit.manifest"}')
    return run


@pytest.mark.parametrize("kind", ["finished", "interrupted", "root"])
def test_our_own_output_is_not_read_again_but_for_files_that_are_named(tmp_path, kind):
    put(tmp_path / "a.jsonl")
    run = output(tmp_path, kind)
    names, skipped, summary = found(tmp_path)
    assert names == ["a.jsonl"]
    assert (run.name, OURS) in skipped
    assert any("not read (written by datakit)" in line and run.name in line for line in summary)
    for pattern in ("*", "**/*.jsonl", "**"):
        assert found(tmp_path / pattern)[0] == ["a.jsonl"]
    with pytest.raises(InputError, match=f"{run.name}: written by datakit"):
        found(run)
    for named in ("00000.jsonl", "*.jsonl"):
        assert found(run / "kept" / named)[0] == ["00000.jsonl"]


@pytest.mark.parametrize("manifest", [b'{"format": "other", "files": []}', b"[1]", b"broken"])
def test_a_manifest_of_another_kind_keeps_its_folder(tmp_path, manifest):
    put(tmp_path / "set" / "manifest.json", manifest)
    put(tmp_path / "set" / "a.jsonl")
    put(tmp_path / "data" / "set" / "part" / "0123456789abcdef" / "b.jsonl")
    assert "set/a.jsonl" in found(tmp_path / "**" / "*.jsonl")[0]
    assert "data/set/part/0123456789abcdef/b.jsonl" in found(tmp_path / "**" / "*.jsonl")[0]


def test_linked_folders_and_files_are_read_once_and_circles_end(tmp_path):
    put(tmp_path / "elsewhere" / "x.jsonl")
    put(tmp_path / "apart" / "y.jsonl")
    put(tmp_path / "in" / "real" / "a.jsonl")
    for name, to in (("linked", "elsewhere"), ("again", "in/real"), ("real/up", "in"), ("a.jsonl", "in/real/a.jsonl"),
                     ("b.jsonl", "apart/y.jsonl")):  # fmt: skip
        (tmp_path / "in" / name).symlink_to(tmp_path / to)
    for named in ("in", "in/*"):
        names, skipped, _ = found(tmp_path / named)
        assert names == ["b.jsonl", "linked/x.jsonl", "real/a.jsonl"]
        assert {("again", TWICE), ("a.jsonl", TWICE)} <= set(skipped)


def compress(data: bytes, codec: str) -> bytes:
    if codec in ("zstd", "lz4"):
        out = pa.BufferOutputStream()
        with pa.CompressedOutputStream(out, codec) as stream:
            stream.write(data)
        return out.getvalue().to_pybytes()
    if codec == "bz2":
        return bz2.compress(data, 1)  # in blocks of 100 kB, so that little data has several
    return gzip.compress(data) if codec == "gzip" else lzma.compress(data, preset=0)


SUFFIX = {"gzip": "gz", "zstd": "zst", "bz2": "bz2", "xz": "xz", "lz4": "lz4"}
CODECS = pytest.mark.parametrize("codec", SUFFIX)


def records(count: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices("abcdefgh ", k=rng.randrange(10, 400))) for _ in range(count)]


def lines_of(texts: list[str]) -> bytes:
    return jsonl(*({"text": text} for text in texts))


@CODECS
def test_several_members_are_one_stream_cut_like_the_plain_file(read_bytes, codec):
    texts = records(7000)
    whole = lines_of(texts)
    cuts = [0, 7, 1000, len(whole) // 2 + 3, len(whole)]
    data = b"".join(compress(whole[a:b], codec) for a, b in pairwise(cuts))
    plain = read_bytes(whole, "data.jsonl", shard_mb=1)
    for name in ("data", "data.jsonl", f"data.jsonl.{SUFFIX[codec]}"):
        found = read_bytes(data, name, shard_mb=1)  # the first bytes name the compression, not the suffix
        assert (found.texts, found.bad, found.units) == (texts, [], plain.units) and plain.units == 2
        assert [r["row_key"] for r in found.rows] == list(range(7000))


@CODECS
def test_a_stream_truncated_at_any_byte_keeps_the_rows_before_the_cut(read_bytes, codec):
    texts = records(1500)
    whole = lines_of(texts)
    data = compress(whole, codec)
    for cut in range(8, len(data), max(len(data) // 12, 1)):
        found = read_bytes(data[:cut], f"data.jsonl.{SUFFIX[codec]}", kind="text")
        assert found.texts == texts[: len(found.texts)] and found.reasons == ["truncated_stream"]
        bad = found.bad[0]
        assert bad["line"] == len(found.texts) + 1 and "truncated" in bad["detail"]
        assert whole[bad["byte_offset"] :].startswith(bad["raw"])
    assert len(found.texts) > 500


@pytest.mark.parametrize(("data", "texts", "reasons"), [
    (gzip.compress(ROW) + bytes(512) + gzip.compress(ROW) + bytes(1 << 19), ["t", "t"], []),
    (gzip.compress(ROW) + b"rubbish", ["t"], ["corrupt_stream"]), (gzip.compress(b""), [], []),
], ids=["zeros", "rubbish", "nothing"])  # fmt: skip
def test_zeros_between_members_are_padding_and_rubbish_is_told(read_bytes, data, texts, reasons):
    found = read_bytes(data, "x.jsonl.gz", kind="text")
    assert (found.texts, found.reasons) == (texts, reasons)


@pytest.mark.parametrize("codec", ["gzip", "bz2", "xz"])
@pytest.mark.parametrize("what", ["flipped", "zeros", "cut", "no header", "a mark across two reads"])
def test_a_damaged_member_costs_itself_and_reading_goes_on_at_the_next_one(read_bytes, codec, what):
    parts = [records(60, seed) for seed in range(5)]
    packed = [compress(lines_of(texts), codec) for texts in parts]
    bad, middle = bytearray(packed[2]), len(packed[2]) // 2
    if what == "flipped":
        bad[middle] ^= 16
    elif what == "zeros":
        bad[middle : middle + 40] = bytes(40)
    elif what == "cut":  # what decodes it reads over the beginning of the next member
        del bad[middle:]
    elif what == "a mark across two reads":
        bad[middle:] = bytes(CHUNK - 1 - middle)
    else:
        bad[:4] = b"none"
    found = read_bytes(b"".join([*packed[:2], bytes(bad), *packed[3:]]), f"data.jsonl.{SUFFIX[codec]}")
    assert found.texts == parts[0] + parts[1] + parts[3] + parts[4]
    assert found.reasons == ["corrupt_stream"]
    begin, following = len(packed[0] + packed[1]), len(b"".join(packed[:2])) + len(bad)
    assert f"begins at byte {begin:,} " in found.bad[0]["detail"]
    assert f"the next one begins at byte {following:,}" in found.bad[0]["detail"]
    assert found.bad[0]["line"] == 121


def test_a_record_that_begins_in_a_damaged_member_is_quarantined_with_its_bytes(read_bytes):
    texts = records(3000)
    whole = lines_of(texts)
    packed = [gzip.compress(whole[a:b]) for a, b in pairwise([0, 300_001, 320_001, 500_001, len(whole)])]
    packed[1] = packed[1][:-8] + bytes(8)
    found = read_bytes(b"".join(packed), "data.jsonl.gz")
    before, after = whole[:300_001].count(b"\n"), whole[320_001:].count(b"\n") - 1
    assert found.texts == texts[:before] + texts[-after:]
    assert found.reasons == ["corrupt_stream", "invalid_json"]
    assert whole[found.bad[0]["byte_offset"] :].startswith(found.bad[0]["raw"]) and found.bad[0]["raw"]
    assert whole[320_001:].startswith(found.bad[1]["raw"])
    assert len({row["row_key"] for row in found.rows}) == len(found.rows)


@pytest.mark.parametrize(("name", "data"), [
    ("a.txt.gz", b"one\ntwo"), ("a.json.gz", b'[{"text": "a"}, {"text": "b"}]'), ("a.csv.gz", b"text\na\nb\n"),
])  # fmt: skip
def test_a_damaged_member_of_another_format_loses_no_record_before_it(read_bytes, name, data):
    bad = bytearray(gzip.compress(data[: len(data) // 2]))
    bad[-5] ^= 1
    found = read_bytes(gzip.compress(data) + bytes(bad), name)
    assert (found.texts, found.reasons) == ([] if "txt" in name else ["a", "b"], ["corrupt_stream"])
