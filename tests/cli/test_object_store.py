"""Results and projects on object stores, on a real server (moto) that breaks requests where a test says so."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import datakit.dedup.shuffle as shuffle
import datakit.filter.language as language
import datakit.filter.perplexity as perplexity
import datakit.filter.user_rules as user_rules
import datakit.object_store as object_store
import datakit.pack.chat as chat
import datakit.read.find as find_module
import datakit.read.streams as streams
import datakit.storage as storage
import train.flags as flags
from datakit.data import row_groups
from datakit.dedup.embedding import model_files
from datakit.dedup.stage import Dedup, DedupConfig
from datakit.engine.maintenance import remove_data
from datakit.errors import DatakitError, InputError, IntegrityError, ModelError, UsageError
from datakit.manifest import FORMAT, Manifest, load
from datakit.pack.stage import Pack, PackConfig
from datakit.read.find import HIDDEN, OURS, find
from datakit.read.stage import Ingest
from datakit.read.streams import open_binary
from datakit.stage import Parent
from datakit.text.ids import tokenizer_file
from tests.cli.conftest import Said, done
from tests.dedup.conftest import ThreadUnits, documents, sketch_file, write
from tests.files import write_rows as write_lines
from tests.object_stores import SECRET, Google, Hub, Server, use
from tests.processes import python
from train.checkpoint import find_model
from train.data import PackedSet
from train.generate import GenerateConfig

boto3 = pytest.importorskip("boto3")
moto = pytest.importorskip("moto.server")
PermissionDeniedError = pytest.importorskip("obstore.exceptions").PermissionDeniedError

Datakit = Callable[..., Said]
BUCKET = "corpus"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(moto.DomainDispatcherApplication(moto.create_backend_app)) as found:
        yield found


@pytest.fixture
def s3(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["boto3.Client"]:
    use(monkeypatch, server.url, tmp_path / "mirror")
    client = boto3.client("s3", endpoint_url=server.url)
    client.create_bucket(Bucket=BUCKET)
    yield client
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
        for found in page.get("Contents", []):
            client.delete_object(Bucket=BUCKET, Key=found["Key"])
    client.delete_bucket(Bucket=BUCKET)


def keys(client: "boto3.Client", prefix: str = "") -> list[str]:
    found = client.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
    return [o["Key"] for o in found]


def body(client: "boto3.Client", key: str) -> bytes:
    return bytes(client.get_object(Bucket=BUCKET, Key=key)["Body"].read())


def write_rows(folder: Path, files: int = 2) -> list[str]:
    """Files of short documents; every fifth one stands twice."""
    made = []
    for number in range(files):
        path = folder / f"part-{number}.jsonl"
        said = "the lamp of ward {} went out at {} o'clock."
        texts = [f"Строка {i} of file {number}: {said.format(i * 7 % 13, i)}" for i in range(40)]
        rows = ({"id": f"{number}-{i}", "text": text} for i, text in enumerate([*texts, *texts[::5]]))
        made.append(str(write_lines(path, rows)))
    return made


# One stage with --output.


def test_a_result_on_a_store_has_the_bytes_of_a_local_one(datakit, project, s3, monkeypatch):
    inputs = write_rows(project)
    assert datakit("dedup", *inputs, "--output", "here").code == 0
    said = done("dedup", *inputs, "--output", f"s3://{BUCKET}/deep/there")
    assert f"s3://{BUCKET}/deep/there/manifest.json" in said.out and "mirror" not in said.out + said.err
    local = load(project / "here" / "manifest.json")
    assert body(s3, "deep/there/manifest.json") == (project / "here" / "manifest.json").read_bytes()
    for shard in local.shards:
        assert hashlib.sha256(body(s3, f"deep/there/{shard.path}")).hexdigest() == shard.sha256
    assert not [k for k in keys(s3) if ".work" in k or ".claim" in k]
    assert not Path("s3:").exists()

    monkeypatch.setenv("DATAKIT_MIRROR", str(project / "another machine"))
    url = f"s3://{BUCKET}/deep/there"
    assert "exact_duplicate" in datakit("show", url).out
    assert "are unchanged" in datakit(f"verify {url}/manifest.json").out
    assert "dropped" in datakit("explain", "0-40", "--manifest", url).out
    again = datakit("dedup", *inputs, "--output", url)
    assert f"up to date ({local.version})" in again.err


def test_damage_on_the_store_is_found_by_verify_and_by_the_next_reader(datakit, project, s3, monkeypatch):
    url = f"s3://{BUCKET}/out"
    assert datakit("ingest", *write_rows(project), "--output", url).code == 0
    key = "out/kept/part-00000.parquet"
    whole = body(s3, key)
    s3.put_object(Bucket=BUCKET, Key=key, Body=whole[:-1] + bytes([whole[-1] ^ 1]))
    datakit("verify", url).fails(1, key, "sha256")
    monkeypatch.setenv("DATAKIT_MIRROR", str(project / "another machine"))
    datakit("dedup", url, "--output", "deduped").fails(1, key, "sha256")


def test_a_mirror_without_room_is_named_and_nothing_is_sent_again(datakit, project, s3, monkeypatch):
    """A real file system in memory, smaller than one shard."""
    full = project / "full"
    full.mkdir()
    (project / "long.jsonl").write_text(json.dumps({"text": os.urandom(400_000).hex()}))
    assert datakit(f"ingest long.jsonl --output s3://{BUCKET}/out").code == 0
    monkeypatch.setenv("DATAKIT_MIRROR", str(full))
    script = f"mount -t tmpfs -o size=128k tmpfs {full} || exit 77; {sys.executable} -m datakit"
    for command in (f"verify s3://{BUCKET}/out", f"ingest {project}/long.jsonl --output s3://{BUCKET}/new"):
        own = ["unshare", "--map-root-user", "--mount", "sh", "-c", f"{script} {command}"]
        done = subprocess.run(own, capture_output=True, text=True)
        if done.returncode == 77 or "unshare" in done.stderr:
            pytest.skip("a file system cannot be mounted here")
        assert done.returncode == 1 and "No space left on device on this machine's disk" in done.stderr, done.stderr
        assert f"below {full} ($DATAKIT_MIRROR" in done.stderr and "attempts" not in done.stderr
    assert "new/manifest.json" not in keys(s3)


@pytest.mark.usefixtures("s3")
def test_what_cannot_be_written_to_is_refused_before_any_work(datakit, project, monkeypatch):
    dedup = ("dedup", *write_rows(project), "--output")
    for url, expected in (
        ("hf://datasets/me/mine", "s3://"), (f"s3://someone:{SECRET}@{BUCKET}/x", "credentials"),
        ("s3://", "BUCKET"), ("s3://no-such-bucket/x", "no such bucket"),
    ):  # fmt: skip
        said = datakit(*dedup, url)
        assert said.code in (1, 2) and expected in said.err and "error in datakit" not in said.err, said.err
        assert SECRET not in said.out + said.err
    for command in ("report x.json --output", "peek x --html"):
        datakit(*command.split(), "s3://bucket/page").fails(2, "is written to this machine's disk")
    assert {p.name for p in project.iterdir()} - {"mirror"} == {"part-0.jsonl", "part-1.jsonl"}
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    object_store.client.cache_clear()
    datakit(*dedup, f"s3://{BUCKET}/out").fails(1, "datakit[remote]")


# A whole project.


def test_a_worker_elsewhere_fetches_the_tokenizer_that_a_recipe_trained(datakit, project, s3):
    trained = f"s3://{BUCKET}/trained"
    assert datakit("tokenizer", "train", *write_rows(project), "--vocab-size", "300", "--output", trained).code == 0
    folder = tokenizer_file(trained).parent  # as `Tokenize.use_results` names it to its units
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    shutil.rmtree(folder)
    assert tokenizer_file(folder).parent == folder
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == files and "tokenizer.json" in files


def test_a_whole_project_is_on_a_store_with_its_tokenizer_and_an_earlier_dataset(
    datakit, project, s3, small_tokenizer, monkeypatch
):
    first, second = write_rows(project)
    there, manifests = ["--project", f"s3://{BUCKET}/project"], f"s3://{BUCKET}/project/manifests/mine"

    def deduped() -> Manifest:
        done("run", *there)
        return load(storage.local(f"{manifests}/dedup.json"))

    assert datakit("dedup", first, "--save-index", "--output", f"s3://{BUCKET}/old").code == 0
    s3.put_object(Bucket=BUCKET, Key="raw/again.jsonl", Body=Path(first).read_bytes().replace(b'"0-', b'"9-'))
    s3.upload_file(second, BUCKET, "raw/new.jsonl")
    for file in small_tokenizer.iterdir():
        s3.upload_file(str(file), BUCKET, f"models/small/{file.name}")
    named = f"s3://{BUCKET}/raw/*.jsonl", *there, "--tokenizer", f"s3://{BUCKET}/models/small"
    assert datakit("init", "mine", *named).code == 0
    recipe = body(s3, key := "project/manifests/mine/recipe.toml").decode()
    recipe = recipe.replace('"ingest", "language", "dedup", "filter",', '"ingest", "dedup",')
    recipe = recipe.replace("\n[dedup]\n", f'\n[dedup]\nagainst = "s3://{BUCKET}/old"\n', 1)
    s3.put_object(Bucket=BUCKET, Key=key, Body=recipe.encode())
    before = deduped()
    assert (before.ledger.rows.into, before.ledger.rows.kept) == (96, 40)
    monkeypatch.setenv("DATAKIT_MIRROR", str(project / "another machine"))
    assert datakit("run", *there).err.count("up to date") == 4
    s3.put_object(Bucket=BUCKET, Key="raw/part-9.jsonl", Body=b'{"id": "new", "text": "A row that is new."}\n')
    assert deduped().ledger.rows.kept == 41
    old = {k for k in keys(s3) if f"data/mine/dedup/{before.key[:16]}/" in k}
    assert old and "purged" in datakit("gc", "--purge", *there).out and not old & {*keys(s3)}
    assert "are unchanged" in datakit(f"verify {manifests}/pack.json").out
    assert not [k for k in keys(s3) if SECRET.encode() in body(s3, k) or b"someone" in body(s3, k)]
    assert not Path("s3:").exists()
    monkeypatch.setenv("DATAKIT_MIRROR", str(project / "a trainer's machine"))
    rows = PackedSet.open_all(storage.pull_result(f"{manifests}/pack.json"))[0]
    assert len(rows.lengths) and rows.tokenizer_files[0].is_file()


def test_of_a_shard_on_a_store_the_footer_alone_is_read(datakit, project, s3, monkeypatch):
    assert datakit("ingest", write_rows(project)[0], "--output", f"s3://{BUCKET}/rows").code == 0
    monkeypatch.setenv("DATAKIT_MIRROR", str(project / "another machine"))
    folder = storage.local(f"s3://{BUCKET}/rows")
    (shard,) = load(folder / "manifest.json").of_role("kept")
    assert row_groups(folder, shard, ["text"]) == [(shard.rows, shard.rows)]
    assert not (folder / shard.path).exists()


@pytest.mark.parametrize("given", ["models", "models/model.bin"])
def test_what_a_user_names_is_fetched_when_it_changed(server, s3, project, monkeypatch, given):
    url, found = f"s3://{BUCKET}/{given}", "" if "." in given else "model.bin"
    for file in ("model.bin", "config.json", "parents/rows.parquet"):
        s3.put_object(Bucket=BUCKET, Key=f"models/{file}", Body=b"old")
    with Server(server.app) as broken:
        use(monkeypatch, broken.url, project / "mirror")
        for content, fetched in ((b"old", 1 if "." in given else 2), (b"old", 0), (b"new", 1)):
            s3.put_object(Bucket=BUCKET, Key="models/model.bin", Body=content)
            storage._fetched.clear()  # as in another process
            broken.seen.clear()
            assert (storage.here(url) / found).read_bytes() == content
            assert sum(method == "GET" and "list-type" not in path for method, path, _ in broken.seen) == fetched
        asked = len(broken.seen)
        assert (storage.here(url) / found).read_bytes() == b"new" and len(broken.seen) == asked
        (storage.here(url) / found).unlink()  # the mirror may be removed at any time
        assert (storage.here(url) / found).read_bytes() == b"new"


def test_models_lists_and_templates_may_be_on_the_store(s3):
    contents = {"bad.txt": "vile", "hosts.txt": "vile.example", "own.jinja": "{{ messages }}", "tokenizer.json": "{}"}
    for name, content in (contents | dict.fromkeys(("model.bin", "en.arpa", "model.safetensors"), "weights")).items():
        s3.put_object(Bucket=BUCKET, Key=f"lists/{name}", Body=content.encode())
    there = f"s3://{BUCKET}/lists"
    assert tokenizer_file(there).read_text() == "{}"
    models = language.find(f"{there}/model.bin"), perplexity.ModelFiles.of(f"{there}/en.arpa", "en").file
    assert {path.read_text() for path in (*models, model_files(there)["weights"])} == {"weights"}
    words = user_rules.Words(lists={"en": f"{there}/bad.txt"}).entries("en")
    local = str(storage.local(f"{there}/bad.txt"))
    assert words == user_rules.Words(lists={"en": local}).entries("en")
    assert not user_rules.Urls(lists={"a": f"{there}/hosts.txt"}).entries("a").unreadable
    assert chat._choose(f"{there}/own.jinja", {}, "") == "{{ messages }}"
    with pytest.raises(InputError, match="is not there"):
        user_rules.Urls(lists={"a": f"{there}/none.txt"}).entries("a")
    with pytest.raises(UsageError, match="raw inputs only"):
        user_rules.Urls(lists={"a": "https://host.example/list.txt"}).entries("a")


def test_the_trainer_takes_models_from_the_store_and_writes_to_the_disk(s3):
    s3.put_object(Bucket=BUCKET, Key="model/config.json", Body=b"{}")
    assert (find_model(f"s3://{BUCKET}/model") / "config.json").read_text() == "{}"
    with pytest.raises(ModelError, match=f"s3://{BUCKET}/none: no model there"):
        GenerateConfig(model=f"s3://{BUCKET}/none", prompt="x").loaded()
    with pytest.raises(UsageError, match="--output s3://x/y: is written to this machine's disk"):
        flags.given(GenerateConfig, "generate", "", ["--output", "s3://x/y"])


# Two runs, and runs that died.


def test_a_folder_is_of_the_run_that_began_last(s3):
    folder = storage.local(f"s3://{BUCKET}/out")
    s3.put_object(Bucket=BUCKET, Key="out/.claim", Body=b"of a run that was killed")
    claim = storage.Claim(folder)
    claim.check(now=True)
    assert not remove_data(folder)
    s3.put_object(Bucket=BUCKET, Key="out/.claim", Body=b"of a later run")
    claim.check()
    with pytest.raises(DatakitError, match="a later run has taken over this folder"):
        claim.check(now=True)
    claim.release()
    assert body(s3, "out/.claim") == b"of a later run"


@pytest.mark.parametrize(("size", "parts_from"), [(4, 1 << 30), (17 << 20, 1 << 20)], ids=["small", "in parts"])
def test_a_finished_object_is_never_replaced_by_the_same_and_a_foreign_one_is(s3, monkeypatch, size, parts_from):
    monkeypatch.setattr(storage, "MULTIPART_FROM", parts_from)
    folder, content = storage.local(f"s3://{BUCKET}/out"), os.urandom(size)
    (folder / "kept").mkdir(parents=True)
    (folder / "kept/rows").write_bytes(content)
    unit = [["kept/rows", size, hashlib.sha256(content).hexdigest()]]
    storage.publish(folder, unit)
    first = s3.head_object(Bucket=BUCKET, Key="out/kept/rows")
    assert ("-2" in first["ETag"]) == (size > 4) and body(s3, "out/kept/rows") == content
    storage.publish(folder, unit)
    assert s3.head_object(Bucket=BUCKET, Key="out/kept/rows")["LastModified"] == first["LastModified"]
    assert not storage._create(folder / "kept/rows", size) and keys(s3) == ["out/kept/rows"]
    s3.put_object(Bucket=BUCKET, Key="out/kept/rows", Body=b"of a killed run")
    storage.publish(folder, unit)
    assert body(s3, "out/kept/rows") == content


def test_what_was_not_used_for_longest_leaves_the_mirror_when_more_is_read(s3, monkeypatch):
    content, names = os.urandom(1 << 20), ("old.bin", "older.bin", "new.bin", "more.bin", "a.json")
    files = {name: storage.local(f"s3://{BUCKET}/out/{name}") for name in names}
    for name in files:
        s3.put_object(Bucket=BUCKET, Key=f"out/{name}", Body=content)

    def left(name: str, seconds_ago: float, gigabytes: str) -> set[str]:
        """The files that are not there any more, after one is read."""
        monkeypatch.setenv("DATAKIT_MIRROR_GB", gigabytes)
        storage._next_look[0] = 0.0
        storage.bring(files[name], len(content), hashlib.sha256(content).hexdigest())
        os.utime(files[name], times=(time.time() - seconds_ago,) * 2)
        return {name for name, file in files.items() if not file.is_file()}

    for name, seconds_ago in (("old.bin", 2000), ("older.bin", 3000), ("a.json", 9000)):
        left(name, seconds_ago, "0.0035")
    assert left("new.bin", 10, "0.0035") == {"more.bin"}
    assert left("more.bin", 0, "0.0035") == {"older.bin"}
    assert left("older.bin", 0, "0.001") == {"old.bin"}, "others were used just now"


# Faults.


def test_requests_that_fail_are_sent_again(datakit, project, server, s3, monkeypatch):
    inputs = write_rows(project)
    assert datakit("ingest", *inputs, "--output", f"s3://{BUCKET}/calm").code == 0
    asked: Counter[tuple[str, str]] = Counter()
    faults = ["503", "cut", "late", "429", "sleep", "half"]

    def fault(method: str, path: str) -> str:
        asked[method, path] += 1
        place = len(asked) % len(faults)
        return faults[place] if asked[method, path] == 1 and (faults[place] != "half" or method == "GET") else ""

    with Server(server.app, fault) as broken:
        use(monkeypatch, broken.url, project / "another machine")
        done("ingest", *inputs, "--output", f"s3://{BUCKET}/rough")
        assert {"503", "cut", "late"} <= {f for *_, f in broken.seen}
    assert body(s3, "rough/manifest.json") == body(s3, "calm/manifest.json")


def test_an_answer_with_a_wrong_byte_is_asked_for_again_and_then_an_error_without_credentials(
    server, s3, project, monkeypatch
):
    monkeypatch.setattr(object_store, "ATTEMPTS", 2)
    s3.put_object(Bucket=BUCKET, Key="x/part.parquet", Body=b"whole")
    right = hashlib.sha256(b"whole").hexdigest()
    answers = iter(["wrong", "", "wrong", "wrong", "wrong", "wrong"])
    with Server(server.app, lambda method, _: next(answers) if method == "GET" else "") as broken:
        use(monkeypatch, broken.url, project / "another machine")
        file = storage.local(f"s3://{BUCKET}/x/part.parquet")
        assert storage.bring(file, 5, right).read_bytes() == b"whole"
        file.unlink()
        with pytest.raises(IntegrityError, match="expected sha256"):
            storage.bring(file, 5, right)
        assert not file.exists()
    with Server(server.app, lambda *_: "cut") as broken:
        use(monkeypatch, broken.url, project / "a third machine")
        with pytest.raises(InputError, match="run the same command again") as caught:
            storage.sizes(storage.local(f"s3://{BUCKET}/x"))
    assert SECRET not in str(caught.value)


def test_a_profile_is_used_as_other_tools_use_it(server, s3, tmp_path, monkeypatch):
    def used() -> tuple[str, str, str]:
        session, endpoint, region = object_store.aws()
        return session.get_credentials().access_key, endpoint, region

    s3.put_object(Bucket=BUCKET, Key="x/part.parquet", Body=b"whole")
    config, url = tmp_path / "config", f"s3://{BUCKET}/x"
    keys = f"[profile lab]\naws_access_key_id = me\naws_secret_access_key = {SECRET}\nregion = eu-west-3\n"
    services = f"services = local\n[services local]\ns3 =\n  endpoint_url = {server.url}\n"
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_PROFILE", "lab")
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name)
    for endpoint in (f"endpoint_url = {server.url}\n", services):
        config.write_text(keys + endpoint)
        assert used() == ("me", server.url, "eu-west-3")
    assert storage.sizes(storage.local(url)) == {"part.parquet": 5}
    assert [path for path, _, _ in find([url])[0]] == [f"{url}/part.parquet"]  # Arrow reads raw inputs
    for name, value in (("AWS_ACCESS_KEY_ID", "you"), ("AWS_SECRET_ACCESS_KEY", SECRET), ("AWS_REGION", "eu-north-1")):
        monkeypatch.setenv(name, value)
    assert used() == ("you", server.url, "eu-north-1")  # what the environment names goes first
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(DatakitError, match="nobody"):
        storage.sizes(storage.local(url))


def test_an_error_that_stays_is_told_at_once_and_with_what_to_do(server, s3, project, monkeypatch):
    s3.put_object(Bucket=BUCKET, Key="x/part.parquet", Body=b"whole")
    expected = {
        "403 InvalidAccessKeyId": "credentials", "400 ExpiredToken": "have expired",
        "400 AuthorizationHeaderMalformed": "AWS_REGION", "301 PermanentRedirect": "another region",
    }  # fmt: skip
    for number, (fault, advice) in enumerate(expected.items()):
        with Server(server.app, lambda *_, fault=fault: fault) as broken:
            use(monkeypatch, broken.url, project / f"machine {number}")
            with pytest.raises(InputError, match=advice) as caught:
                storage.sizes(storage.local(f"s3://{BUCKET}/x"))
            assert len(broken.seen) == 1 and SECRET not in str(caught.value)
            assert not storage.is_result(f"s3://{BUCKET}/x") or fault[0] != "4"  # no right to list its folder
    with Server(server.app, lambda *_: "" if len(broken.seen) else "400 RequestTimeout") as broken:
        use(monkeypatch, broken.url, project / "another machine")
        assert storage.sizes(storage.local(f"s3://{BUCKET}/x")) == {"part.parquet": 5}


def test_errors_of_a_store_that_fsspec_reads_are_told(monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionDeniedError("403 Forbidden\n\nDebug source: of many lines")

    system = SimpleNamespace(get_file_info=refuse, open_input_file=refuse)
    for read, module, said in ((find, find_module, "listed"), (open_binary, streams, "opened")):
        monkeypatch.setattr(module, "filesystem", lambda url: (system, url.split("://")[1]))
        with pytest.raises(InputError, match=rf"az://b/x: cannot be {said}: 403 Forbidden$"):
            read(["az://b/x"] if read is find else "az://b/x")


def test_raw_objects_are_read_under_their_own_keys(s3):
    names = ["x.jsonl", "x.jsonl#2.jsonl", "y%41.jsonl", "[1].jsonl", "yA.jsonl", "a b+c.jsonl", "é?.jsonl"]
    for name in names:
        s3.put_object(Bucket=BUCKET, Key=f"raw/{name}", Body=json.dumps({"text": f"the row of {name}"}).encode())
    s3.put_object(Bucket=BUCKET, Key="raw/_temporary/0.jsonl", Body=b'{"text": "of a job that failed"}')
    s3.put_object(Bucket=BUCKET, Key="raw/out/manifest.json", Body=json.dumps({"format": FORMAT}).encode())
    s3.put_object(Bucket=BUCKET, Key="raw/out/kept/part-00000.parquet", Body=b"rows")
    found, skipped = find([f"S3A://{BUCKET}/raw"])
    texts = {name: json.loads(open_binary(path).read())["text"] for path, name, _ in found}
    assert texts == {name: f"the row of {name}" for name in names}
    assert {s.path.rpartition("/")[2]: s.why for s in skipped} == {"_temporary": HIDDEN, "out": OURS}
    for name in names[1:4:2]:
        assert [path for path, _, _ in find([f"s3://{BUCKET}/raw/{name}"])[0]] == [f"s3://{BUCKET}/raw/{name}"]
    for wrong, expected in (
        ("s3://no-such-bucket/*", "no such bucket"), ("s3://*/x", "one bucket"),
        (f"s3://{BUCKET}/none", "no such file"), (f"s3://{BUCKET}/none/*", "no file matches"),
        (f"s3://{BUCKET}/x?secret_key={SECRET}", "environment"),
        (f"s3://{BUCKET}/x?X-Amz-Date=1&X-Amz-Signature={SECRET}", "environment"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=expected) as caught:
            find([wrong])
        assert SECRET not in str(caught.value)
    with pytest.raises(InputError, match=r"gs://b/out\?\.\.\.: settings and signatures"):
        storage.local(f"gs://b/out?X-Goog-Signature={SECRET}")
    s3.put_object(Bucket=BUCKET, Key="raw//x.jsonl", Body=b'{"text": "of a folder without a name"}')
    with pytest.raises(InputError, match=r"raw//x\.jsonl: a key with an empty part"):
        find([f"s3://{BUCKET}/raw"])


def test_an_object_that_changes_while_it_is_read_is_told(s3, tmp_path):
    for name in ("a", "b"):
        s3.put_object(Bucket=BUCKET, Key=f"raw/{name}.jsonl", Body=b'{"text": "the old words"}\n')
    stage = Ingest().read_from([f"s3://{BUCKET}/raw"])
    stage.reduce([], tmp_path / "out", workers=1)
    s3.put_object(Bucket=BUCKET, Key="raw/b.jsonl", Body=b'{"text": "the new words"}\n')
    with pytest.raises(InputError, match=r"raw/b\.jsonl: it changed while it was read"):
        stage.reduce([], tmp_path / "out", workers=1)


def test_paths_and_urls():
    assert storage.url_of(storage.local("s3://b/a b/c=1")) == "s3://b/a b/c=1"
    assert storage.local("plain/path") == Path("plain/path") and storage.url_of("plain/path") is None
    assert storage.shown(f"see {storage.local('gs://b/x')}/y and az") == "see gs://b/x/y and az"
    for wrong in ("s3://b//x", "s3://b/../x", "s3://"):
        with pytest.raises(UsageError):
            storage.local(wrong)


class Elsewhere(ThreadUnits):
    """Units of which each phase finds none of the files of the one before on its own disk, as on another machine."""

    def units(self, *phase: Any, **options: Any) -> list[dict[str, Any]]:
        records = super().units(*phase, **options)
        for record in records:
            storage.publish(self.data, record["files"])
            for path, _, _ in record["files"]:
                (self.data / path).unlink()
        return records


def test_units_of_a_comparison_fetch_what_other_machines_wrote(project, s3, monkeypatch):
    monkeypatch.setattr(shuffle, "GROUP_ROWS", 9)
    monkeypatch.setattr(shuffle, "RANGE_KEYS", 40)
    stage = Dedup(DedupConfig())
    stage.open()
    texts = [json.loads(line)["text"] for path in write_rows(project) for line in Path(path).read_text().splitlines()]
    made = []
    for root, units in ((project / "here", ThreadUnits), (storage.local(f"s3://{BUCKET}/there"), Elsewhere)):
        root.mkdir(parents=True)
        shards = {f"{begin}.arrow": documents(texts).slice(begin, 20) for begin in range(0, len(texts), 20)}
        files = [sketch_file(write(stage.sketch(shard), root / name)) for name, shard in shards.items()]
        for file in files if units is Elsewhere else ():
            storage.publish(root, [[file.path.name, file.bytes, file.sha256]])
            file.path.unlink()
        out = root / "decisions.arrow"
        facts = stage.compare(files, units(root, 2)).reduce([file.path for file in files], out, workers=2)
        made.append((facts, out.read_bytes()))
    assert made[0] == made[1] and made[0][0]["candidates"]["buckets"] and len(facts["cluster_sizes"]) > 1


def test_a_mixture_is_chosen_from_what_other_machines_wrote(project, s3, small_tokenizer):
    url = f"s3://{BUCKET}/rows"
    done("tokenize", *write_rows(project), "--tokenizer", small_tokenizer, "--output", url)
    source = Parent(path := storage.local(url) / "manifest.json", load(path))
    pack, chosen = Pack(PackConfig(weights={"part-0*": 1, "part-1*": 2})), []
    for root, units in ((project / "here", ThreadUnits), (storage.local(f"s3://{BUCKET}/there"), Elsewhere)):
        root.mkdir(parents=True)
        chosen.append([part.mixture for part, _ in pack.parts([source], units(root, 2))])
    assert chosen[0] == chosen[1] and chosen[0][0].tokens_left_out


@pytest.mark.campaign
def test_a_dataset_of_the_hub_has_the_rows_of_its_files_and_a_split_is_read_alone(datakit, project):
    pytest.importorskip("huggingface_hub")
    inputs, url = write_rows(project), "hf://datasets/me/mine"
    files = {f"data/{n}-00000.jsonl": Path(p).read_bytes() for n, p in zip(("train", "test"), inputs, strict=True)}
    tries: Counter[str] = Counter()

    def busy(method: str, path: str) -> str:
        tries[path] += method == "GET" and "/resolve/" in path
        return "503" if tries[path] == 1 and path.endswith("train-00000.jsonl") else ""

    def ingest(ends: int, *flags: str) -> str:
        return python("-m", "datakit", "ingest", *flags, "--output", "there", ends=ends, cwd=project, **own).stderr

    with Server(Hub(files | {"README.md": b"# Mine"}), busy) as hub:
        own = {"HF_ENDPOINT": hub.url, "HF_TOKEN": SECRET, "HF_HOME": str(project / "hub")}
        wrong, several, dev = ingest(1, f"{url}/nothing/*.jsonl"), ingest(2, url), ingest(2, url, "--split", "dev")
        train = ingest(0, url, "--split", "train")
    assert "nothing" in wrong and "Traceback" not in wrong
    assert "test (1 file), train (1 file)" in several and "no split dev" in dev
    assert datakit("ingest", inputs[0], "--output", "here").code == 0
    there, here = (load(project / name / "manifest.json") for name in ("there", "here"))
    assert there.ledger == here.ledger and tries["/datasets/me/mine/resolve/main/data/train-00000.jsonl"] > 1
    assert SECRET not in train + "".join(f.read_text() for f in (project / "there").rglob("*.json"))


def test_google_has_the_same_bytes(datakit, project, monkeypatch):
    """Raw files are read from the store, the result has the bytes of a local one, and two runs exclude each other."""
    monkeypatch.setenv("DATAKIT_MIRROR", str(project / "mirror"))
    inputs, out = write_rows(project), storage.local("gs://corpus/out")
    assert datakit("ingest", inputs[0], "--output", "here").code == 0
    with Server(Google()) as google:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", google.url)
        storage.write_whole(storage.local("gs://corpus/raw/part-0.jsonl"), Path(inputs[0]).read_bytes())
        done("ingest", "gs://corpus/raw/*.jsonl", "--output", "gs://corpus/out")
        assert load(out / "manifest.json").shards == load(project / "here" / "manifest.json").shards
        assert "are unchanged" in datakit("verify gs://corpus/out").out
