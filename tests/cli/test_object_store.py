"""Results and projects on an object store, on a real server (moto) with a proxy before it that breaks requests."""

import base64
import email.utils
import hashlib
import hmac
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import datakit.dedup.shuffle as shuffle
import datakit.filter.fasttext_model as fasttext_model
import datakit.filter.perplexity as perplexity
import datakit.filter.user_rules as user_rules
import datakit.object_store as object_store
import datakit.pack.chat as chat
import datakit.read.find as find_module
import datakit.read.streams as streams
import datakit.storage as storage
import train.flags as flags
from datakit.config import option
from datakit.dedup.embedding import model_files
from datakit.dedup.stage import Dedup, DedupConfig
from datakit.errors import DatakitError, InputError, IntegrityError, UsageError
from datakit.manifest import FORMAT, load
from datakit.read.find import HIDDEN, OURS, find
from datakit.read.stage import Ingest
from datakit.read.streams import open_binary
from datakit.text.ids import tokenizer_file
from tests.cli.conftest import Said
from tests.dedup.conftest import ThreadUnits, documents, sketch_file, write
from tests.object_stores import GoogleXml, Hub, Proxy

boto3 = pytest.importorskip("boto3")
moto_server = pytest.importorskip("moto.server")
PermissionDeniedError = pytest.importorskip("obstore.exceptions").PermissionDeniedError

Datakit = Callable[..., Said]
BUCKET = "corpus"
SECRET = "a-secret-that-nobody-may-read"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    running = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def s3(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["boto3.Client"]:
    use(monkeypatch, server, tmp_path / "mirror")
    client = boto3.client("s3", endpoint_url=server)
    client.create_bucket(Bucket=BUCKET)
    yield client
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
        for found in page.get("Contents", []):
            client.delete_object(Bucket=BUCKET, Key=found["Key"])
    client.delete_bucket(Bucket=BUCKET)


def use(monkeypatch: pytest.MonkeyPatch, endpoint: str, mirror: Path) -> None:
    values = {
        "AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint, "DATAKIT_MIRROR": str(mirror),
    }  # fmt: skip
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "DATAKIT_PROJECT"):
        monkeypatch.delenv(name, raising=False)


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
        texts = [
            f"Строка {i} of file {number}: the lamp of ward {i * 7 % 13} went out at {i} o'clock." for i in range(40)
        ]
        lines = [json.dumps({"id": f"{number}-{i}", "text": t}) for i, t in enumerate([*texts, *texts[::5]])]
        path.write_text("\n".join(lines) + "\n")
        made.append(str(path))
    return made


# One stage with --output.


def test_a_result_on_a_store_has_the_bytes_of_a_local_one(
    datakit: Datakit, project: Path, s3: "boto3.Client", monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = write_rows(project)
    assert datakit("dedup", *inputs, "--output", "here").code == 0
    said = datakit("dedup", *inputs, "--output", f"s3://{BUCKET}/deep/there")
    assert said.code == 0, said.err
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
    assert "are unchanged" in datakit("verify", f"{url}/manifest.json").out
    assert "dropped" in datakit("explain", "0-40", "--manifest", url).out
    again = datakit("dedup", *inputs, "--output", url)
    assert f"up to date ({local.version})" in again.err


def test_damage_on_the_store_is_found_by_verify_and_by_the_next_reader(
    datakit: Datakit, project: Path, s3: "boto3.Client", monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"s3://{BUCKET}/out"
    assert datakit("ingest", *write_rows(project), "--output", url).code == 0
    key = "out/kept/part-00000.parquet"
    whole = body(s3, key)
    s3.put_object(Bucket=BUCKET, Key=key, Body=whole[:-1] + bytes([whole[-1] ^ 1]))
    found = datakit("verify", url)
    assert found.code == 1 and key in found.err and "sha256" in found.err
    monkeypatch.setenv("DATAKIT_MIRROR", str(project / "another machine"))
    read = datakit("dedup", url, "--output", "deduped")
    assert read.code == 1 and key in read.err and "sha256" in read.err


def test_a_mirror_without_room_is_named_and_nothing_is_sent_again(
    datakit: Datakit, project: Path, s3: "boto3.Client", monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real file system in memory, smaller than one shard."""
    rows = [json.dumps({"id": str(i), "text": random.Random(i).randbytes(2000).hex()}) for i in range(200)]
    (project / "long.jsonl").write_text("\n".join(rows))
    assert datakit("ingest", "long.jsonl", "--output", f"s3://{BUCKET}/out").code == 0
    full = project / "full"
    full.mkdir()
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
def test_what_cannot_be_written_to_is_refused_before_any_work(
    datakit: Datakit, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = write_rows(project)
    for url, expected in (
        ("hf://datasets/me/mine", "s3://"),
        (f"s3://someone:{SECRET}@{BUCKET}/x", "credentials"),
        ("s3://", "BUCKET"),
        ("s3://no-such-bucket/x", "no such bucket"),
    ):
        said = datakit("dedup", *inputs, "--output", url)
        assert said.code in (1, 2) and expected in said.err and "error in datakit" not in said.err, said.err
        assert SECRET not in said.out + said.err
    for command in ("report x.json --output", "ingest x --log", "peek x --html"):
        said = datakit(*command.split(), "s3://bucket/page")
        assert said.code == 2 and "is written to this machine's disk" in said.err
    assert sorted(p.name for p in project.iterdir() if p.name != "mirror") == [Path(p).name for p in inputs]
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    object_store.client.cache_clear()
    said = datakit("dedup", *inputs, "--output", f"s3://{BUCKET}/out")
    assert said.code == 1 and "datakit[remote]" in said.err


# A whole project.


def test_a_worker_elsewhere_fetches_the_tokenizer_that_a_recipe_trained(
    datakit: Datakit, project: Path, s3: "boto3.Client"
) -> None:
    trained = f"s3://{BUCKET}/trained"
    said = datakit("tokenizer", "train", *write_rows(project), "--vocab-size", "300", "--output", trained)
    assert said.code == 0, said.err
    folder = tokenizer_file(trained).parent  # as `Tokenize.use_earlier` names it to its units
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    shutil.rmtree(folder)
    assert tokenizer_file(folder).parent == folder
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == files and "tokenizer.json" in files


@pytest.mark.campaign
def test_a_whole_project_on_a_store(
    datakit: Datakit, project: Path, s3: "boto3.Client", small_tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in write_rows(project):
        s3.upload_file(path, BUCKET, f"raw/{Path(path).name}")
        Path(path).unlink()
    there = ["--project", f"s3://{BUCKET}/project"]
    assert datakit("init", "mine", f"s3://{BUCKET}/raw/*.jsonl", *there, "--tokenizer", small_tokenizer).code == 0
    recipe = body(s3, "project/manifests/mine/recipe.toml").decode()
    short = recipe.replace('"ingest", "language", "dedup", "filter",', '"ingest", "dedup",')
    assert short != recipe
    s3.put_object(Bucket=BUCKET, Key="project/manifests/mine/recipe.toml", Body=short.encode())
    first = datakit("run", *there)
    assert first.code == 0, first.err
    monkeypatch.setenv("DATAKIT_MIRROR", str(project / "another machine"))
    assert datakit("run", *there).err.count("up to date") == 4
    manifest = f"s3://{BUCKET}/project/manifests/mine/pack.json"
    assert "are unchanged" in datakit("verify", manifest).out
    assert "dropped" in datakit("explain", "0-40", *there).out
    assert "first version" in datakit("history", *there).out
    assert not [k for k in keys(s3) if SECRET.encode() in body(s3, k) or b"someone" in body(s3, k)]

    s3.put_object(Bucket=BUCKET, Key="raw/part-9.jsonl", Body=b'{"id": "new", "text": "A row that is new."}\n')
    before = load(storage.local(f"s3://{BUCKET}/project/manifests/mine/dedup.json"))
    assert datakit("run", *there).code == 0
    after = load(storage.local(f"s3://{BUCKET}/project/manifests/mine/dedup.json"))
    assert after.ledger.rows.kept == before.ledger.rows.kept + 1
    old = [k for k in keys(s3) if f"data/mine/dedup/{before.key[:16]}/" in k]
    assert old and "purged" in datakit("gc", "--purge", *there).out
    assert not [k for k in keys(s3) if k in old]
    assert "are unchanged" in datakit("verify", manifest).out

    rows = f"s3://{BUCKET}/project/manifests/mine/ingest.json"
    assert datakit("dedup", rows, "--limit", "7", "--output", f"s3://{BUCKET}/first").code == 0
    assert load(storage.local(f"s3://{BUCKET}/first/manifest.json")).ledger.rows.into == 7
    assert not [k for k in keys(s3) if k.startswith("first/.work")]

    from train.data import PackedSet, place_of

    monkeypatch.setenv("DATAKIT_MIRROR", str(project / "a trainer's machine"))
    rows = PackedSet.open_all(place_of(manifest))[0]
    assert len(rows.lengths) and rows.tokenizer_files[0].is_file()


def test_a_project_takes_its_tokenizer_and_an_earlier_dataset_from_the_store(
    datakit: Datakit, project: Path, s3: "boto3.Client", small_tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = write_rows(project)
    assert datakit("dedup", first, "--save-index", "--output", f"s3://{BUCKET}/old").code == 0
    s3.put_object(Bucket=BUCKET, Key="raw/again.jsonl", Body=Path(first).read_bytes().replace(b'"0-', b'"9-'))
    s3.upload_file(second, BUCKET, "raw/new.jsonl")
    for file in small_tokenizer.iterdir():
        s3.upload_file(str(file), BUCKET, f"models/small/{file.name}")
    there = ["--project", f"s3://{BUCKET}/project"]
    tokenizer = ["--tokenizer", f"s3://{BUCKET}/models/small"]
    assert datakit("init", "mine", f"s3://{BUCKET}/raw/*.jsonl", *there, *tokenizer).code == 0
    recipe = body(s3, "project/manifests/mine/recipe.toml").decode()
    short = recipe.replace('"ingest", "language", "dedup", "filter",', '"ingest", "dedup",')
    short = short.replace("\n[dedup]\n", f'\n[dedup]\nagainst = "s3://{BUCKET}/old"\n', 1)
    assert short.count("\nagainst =") == 1
    s3.put_object(Bucket=BUCKET, Key="project/manifests/mine/recipe.toml", Body=short.encode())
    said = datakit("run", *there, "--until", "tokenize")
    assert said.code == 0, said.err
    monkeypatch.setenv("DATAKIT_MIRROR", str(project / "another machine"))
    kept = load(storage.local(f"s3://{BUCKET}/project/manifests/mine/dedup.json")).ledger.rows
    assert (kept.into, kept.kept) == (96, 40)
    assert "are unchanged" in datakit("verify", f"s3://{BUCKET}/project/manifests/mine/tokenize.json").out
    assert not Path("s3:").exists()


LISTS_AND_MODELS = {
    "a tokenizer": (tokenizer_file, {"tokenizer.json": "{}", "parents/rows.parquet": "many"}, "tokenizer.json"),
    "a fastText model": (fasttext_model.find, {"model.bin": "weights"}, "model.bin"),
    "a KenLM model": (lambda name: perplexity.ModelFiles.of(name, "en").file, {"en.arpa": "grams"}, "en.arpa"),
    "embeddings": (
        lambda name: model_files(name)["weights"],
        {"model.safetensors": "tensors", "tokenizer.json": "{}"}, "model.safetensors",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS_AND_MODELS)
def test_models_are_fetched_when_they_changed(
    server: str, s3: "boto3.Client", project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    read, files, found = LISTS_AND_MODELS[name]
    given = "models" if len(files) > 1 else f"models/{found}"
    for file, content in files.items():
        s3.put_object(Bucket=BUCKET, Key=f"models/{file}", Body=content.encode())
    with Proxy(server, lambda *_: "") as proxy:
        use(monkeypatch, proxy.url, project / "mirror")
        for turn, content in enumerate((files[found], files[found], files[found][::-1])):
            s3.put_object(Bucket=BUCKET, Key=f"models/{found}", Body=content.encode())
            storage._fetched.clear()  # as in another process
            proxy.seen.clear()
            assert read(f"s3://{BUCKET}/{given}").read_text() == content
            fetched = [path for method, path, _ in proxy.seen if method == "GET" and "list-type" not in path]
            first = [file for file in files if not file.startswith("parents/")]
            assert len(fetched) == (len(first), 0, 1)[turn]
        asked = len(proxy.seen)
        assert read(f"s3://{BUCKET}/{given}").read_text() == files[found][::-1] and len(proxy.seen) == asked
        read(f"s3://{BUCKET}/{given}").unlink()  # the mirror may be removed at any time
        assert read(f"s3://{BUCKET}/{given}").read_text() == files[found][::-1]


def test_lists_and_templates_may_be_on_the_store(s3: "boto3.Client") -> None:
    s3.put_object(Bucket=BUCKET, Key="lists/bad.txt", Body=b"vile\n")
    s3.put_object(Bucket=BUCKET, Key="lists/hosts.txt", Body=b"vile.example\n")
    s3.put_object(Bucket=BUCKET, Key="lists/own.jinja", Body=b"{{ messages }}")
    words = user_rules.word_list("en", f"s3://{BUCKET}/lists/bad.txt")
    assert words == user_rules.word_list("en", str(storage.local(f"s3://{BUCKET}/lists/bad.txt")))
    assert not user_rules.blocklist(f"s3://{BUCKET}/lists/hosts.txt").unreadable
    assert chat._choose(f"s3://{BUCKET}/lists/own.jinja", {}, "") == "{{ messages }}"
    with pytest.raises(InputError, match="is not there"):
        user_rules.blocklist(f"s3://{BUCKET}/lists/none.txt")
    with pytest.raises(UsageError, match="raw inputs only"):
        user_rules.blocklist("https://host.example/list.txt")


@dataclass(frozen=True, kw_only=True)
class TrainerOptions:
    init: str = option("", "a folder")
    suites: tuple[str, ...] = option((), "files")
    prompt: str = option("", "any text")
    manifest: str = option("", "packed rows")
    out: str = option("", "a folder")


def test_the_trainer_takes_models_from_the_store_and_writes_to_the_disk(s3: "boto3.Client") -> None:
    for key in ("model/config.json", "questions.jsonl"):
        s3.put_object(Bucket=BUCKET, Key=key, Body=b"{}")
    urls = {"prompt": "s3://is a prefix", "manifest": f"s3://{BUCKET}/pack.json"}
    made = flags.built(
        TrainerOptions, {"init": f"s3://{BUCKET}/model", "suites": (f"s3://{BUCKET}/questions.jsonl",), **urls}
    )
    assert Path(made.init, "config.json").read_text() == Path(made.suites[0]).read_text() == "{}"
    assert (made.prompt, made.manifest) == tuple(urls.values())
    with pytest.raises(InputError, match=f"--init s3://{BUCKET}/none: there is nothing"):
        flags.built(TrainerOptions, {"init": f"s3://{BUCKET}/none"})
    with pytest.raises(DatakitError, match="--out s3://x/y: is written to this machine's disk"):
        flags.built(TrainerOptions, {"out": "s3://x/y"})


# Two runs, and runs that died.


def test_a_claim_of_a_dead_run_is_taken_over(
    s3: "boto3.Client", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = storage.local(f"s3://{BUCKET}/out")
    s3.put_object(Bucket=BUCKET, Key="out/.claim", Body=json.dumps({"mirror": "elsewhere", "run": "dead"}).encode())
    monkeypatch.setattr(storage, "STALE_S", 1.0)
    monkeypatch.setattr(storage, "RENEW_S", 0.5)
    begin = time.monotonic()
    with storage.Claim(folder) as claim:
        assert time.monotonic() - begin >= 1.0
        claim.check()
        s3.put_object(Bucket=BUCKET, Key="out/.claim", Body=json.dumps({"mirror": "x", "run": "another"}).encode())
        claim._thread.join()
        with pytest.raises(DatakitError, match="taken over"):
            claim.check()


@pytest.mark.parametrize(("size", "parts_from"), [(4, 1 << 30), (17 << 20, 1 << 20)], ids=["small", "in parts"])
def test_a_finished_object_is_never_replaced_by_the_same_and_a_foreign_one_is(
    s3: "boto3.Client", monkeypatch: pytest.MonkeyPatch, size: int, parts_from: int
) -> None:
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


def test_what_was_not_used_for_longest_leaves_the_mirror_when_more_is_read(
    s3: "boto3.Client", monkeypatch: pytest.MonkeyPatch
) -> None:
    content = os.urandom(1 << 20)
    digest = hashlib.sha256(content).hexdigest()
    files = {
        n: storage.local(f"s3://{BUCKET}/out/{n}") for n in ("old.bin", "older.bin", "new.bin", "more.bin", "a.json")
    }
    for name in files:
        s3.put_object(Bucket=BUCKET, Key=f"out/{name}", Body=content)

    def read(name: str, seconds_ago: float) -> None:
        storage._next_look[0] = 0.0
        storage.bring(files[name], len(content), digest)
        os.utime(files[name], times=(time.time() - seconds_ago,) * 2)

    monkeypatch.setenv("DATAKIT_MIRROR_GB", "0.0035")
    for name, seconds_ago in (("old.bin", 2000), ("older.bin", 3000), ("a.json", 9000), ("new.bin", 10)):
        read(name, seconds_ago)
    assert all(file.is_file() for file in files.values() if file.name != "more.bin")
    read("more.bin", 0)
    assert [name for name, file in files.items() if not file.is_file()] == ["older.bin"]
    monkeypatch.setenv("DATAKIT_MIRROR_GB", "0.001")
    read("older.bin", 0)
    assert [name for name, file in files.items() if not file.is_file()] == ["old.bin"]  # others were used just now
    assert files["older.bin"].read_bytes() == content


# Faults.


def test_requests_that_fail_are_sent_again(
    datakit: Datakit, project: Path, server: str, s3: "boto3.Client", monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = write_rows(project)
    assert datakit("ingest", *inputs, "--output", f"s3://{BUCKET}/calm").code == 0
    asked: Counter[tuple[str, str]] = Counter()
    faults = ["503", "cut", "late", "429", "sleep", "half"]

    def fault(method: str, path: str) -> str:
        asked[method, path] += 1
        place = len(asked) % len(faults)
        return faults[place] if asked[method, path] == 1 and (faults[place] != "half" or method == "GET") else ""

    with Proxy(server, fault) as proxy:
        use(monkeypatch, proxy.url, project / "another machine")
        said = datakit("ingest", *inputs, "--output", f"s3://{BUCKET}/rough")
        assert said.code == 0, said.err
        assert {"503", "cut", "late"} <= {f for *_, f in proxy.seen}
    assert body(s3, "rough/manifest.json") == body(s3, "calm/manifest.json")


def test_an_answer_with_a_wrong_byte_is_asked_for_again_and_then_an_error_without_credentials(
    server: str, s3: "boto3.Client", project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "ATTEMPTS", 2)
    s3.put_object(Bucket=BUCKET, Key="x/part.parquet", Body=b"whole")
    right = hashlib.sha256(b"whole").hexdigest()
    answers = iter(["wrong", "", "wrong", "wrong", "wrong", "wrong"])
    with Proxy(server, lambda method, _: next(answers) if method == "GET" else "") as proxy:
        use(monkeypatch, proxy.url, project / "another machine")
        file = storage.local(f"s3://{BUCKET}/x/part.parquet")
        assert storage.bring(file, 5, right).read_bytes() == b"whole"
        file.unlink()
        with pytest.raises(IntegrityError, match="expected sha256"):
            storage.bring(file, 5, right)
        assert not file.exists()
    with Proxy(server, lambda *_: "cut") as proxy:
        use(monkeypatch, proxy.url, project / "a third machine")
        with pytest.raises(InputError, match="run the same command again") as caught:
            storage.sizes(storage.local(f"s3://{BUCKET}/x"))
    assert SECRET not in str(caught.value)


def test_a_profile_is_used_as_other_tools_use_it(
    server: str, s3: "boto3.Client", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.put_object(Bucket=BUCKET, Key="x/part.parquet", Body=b"whole")
    own = tmp_path / "credentials"
    own.write_text(f"[lab]\naws_access_key_id = me\naws_secret_access_key = {SECRET}\nendpoint_url = {server}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(own))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_PROFILE", "lab")
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    url = f"s3://{BUCKET}/x"
    assert storage.sizes(storage.local(url)) == {"part.parquet": 5}
    assert [path for path, _, _ in find([url])[0]] == [f"{url}/part.parquet"]  # Arrow reads raw inputs
    own.write_text(f"[lab]\naws_access_key_id = me\naws_secret_access_key = {SECRET}\n")
    (tmp_path / "config").write_text(
        f"[profile lab]\nservices = local\nregion = eu-west-3\n[services local]\ns3 =\n  endpoint_url = {server}\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.delenv("AWS_REGION")

    def used() -> tuple[str, str, str]:
        session, endpoint, region = object_store.aws()
        return session.get_credentials().access_key, endpoint, region

    assert used() == ("me", server, "eu-west-3")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    assert used() == ("another", server, "eu-north-1")  # what the environment names goes first
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(DatakitError, match="nobody"):
        storage.sizes(storage.local(f"s3://{BUCKET}/x"))


def test_an_error_that_stays_is_told_at_once_and_with_what_to_do(
    server: str, s3: "boto3.Client", project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.put_object(Bucket=BUCKET, Key="x/part.parquet", Body=b"whole")
    expected = {
        "403 InvalidAccessKeyId": "credentials", "400 ExpiredToken": "have expired",
        "400 AuthorizationHeaderMalformed": "AWS_REGION", "301 PermanentRedirect": "another region",
    }  # fmt: skip
    for number, (fault, advice) in enumerate(expected.items()):
        with Proxy(server, lambda *_, fault=fault: fault) as proxy:
            use(monkeypatch, proxy.url, project / f"machine {number}")
            with pytest.raises(InputError, match=advice) as caught:
                storage.sizes(storage.local(f"s3://{BUCKET}/x"))
            assert len(proxy.seen) == 1 and SECRET not in str(caught.value)
            assert not storage.is_result(f"s3://{BUCKET}/x") or fault[0] != "4"  # no right to list its folder
    with Proxy(server, lambda *_: "" if len(proxy.seen) else "400 RequestTimeout") as proxy:
        use(monkeypatch, proxy.url, project / "another machine")
        assert storage.sizes(storage.local(f"s3://{BUCKET}/x")) == {"part.parquet": 5}


def test_errors_of_a_store_that_fsspec_reads_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionDeniedError("403 Forbidden\n\nDebug source: of many lines")

    system = SimpleNamespace(get_file_info=refuse, open_input_file=refuse)
    for module in (find_module, streams):
        monkeypatch.setattr(module, "filesystem", lambda url: (system, url.split("://")[1]))
    with pytest.raises(InputError, match=r"az://b/x: cannot be listed: 403 Forbidden$"):
        find(["az://b/x"])
    with pytest.raises(InputError, match=r"az://b/x: cannot be opened: 403 Forbidden$"):
        open_binary("az://b/x")


def test_raw_objects_are_read_under_their_own_keys(s3: "boto3.Client") -> None:
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


def test_an_object_that_changes_while_it_is_read_is_told(s3: "boto3.Client", tmp_path: Path) -> None:
    for name in ("a", "b"):
        s3.put_object(Bucket=BUCKET, Key=f"raw/{name}.jsonl", Body=b'{"text": "the old words"}\n')
    stage = Ingest().read_from([f"s3://{BUCKET}/raw"])
    stage.reduce([], tmp_path / "out", workers=1)
    s3.put_object(Bucket=BUCKET, Key="raw/b.jsonl", Body=b'{"text": "the new words"}\n')
    with pytest.raises(InputError, match=r"raw/b\.jsonl: it changed while it was read"):
        stage.reduce([], tmp_path / "out", workers=1)


def test_paths_and_urls() -> None:
    assert storage.url_of(storage.local("s3://b/a b/c=1")) == "s3://b/a b/c=1"
    assert storage.local("plain/path") == Path("plain/path") and storage.url_of("plain/path") is None
    assert storage.shown(f"see {storage.local('gs://b/x')}/y and az") == "see gs://b/x/y and az"
    for wrong in ("s3://b//x", "s3://b/../x", "s3://"):
        with pytest.raises(UsageError):
            storage.local(wrong)


# Killed.


@pytest.mark.campaign
def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bytes(
    project: Path, server: str, s3: "boto3.Client", datakit: Datakit, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = write_rows(project, 12)
    assert datakit("dedup", *inputs, "--output", "here", "--set", "ingest.shard_mb=1").code == 0
    killed = 0
    with Proxy(server, lambda *_: "sleep") as proxy:
        environment = {**os.environ, "AWS_ENDPOINT_URL": proxy.url}
        command = [sys.executable, "-m", "datakit", "dedup", *inputs, "--output", f"s3://{BUCKET}/there"]
        command += ["--set", "ingest.shard_mb=1"]
        for patience in (3, 5, 7, 9, 11, 13, 15):
            run = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                run.wait(patience)
                break
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGKILL)
                run.wait()
                killed += 1
    assert killed
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert body(s3, "there/manifest.json") == (project / "here" / "manifest.json").read_bytes()
    assert "are unchanged" in datakit("verify", f"s3://{BUCKET}/there").out
    assert not [k for k in keys(s3) if ".work" in k or ".claim" in k]


class Elsewhere(ThreadUnits):
    """Units of which each phase finds none of the files of the one before on its own disk, as on another machine."""

    def units(self, *phase: Any, **options: Any) -> list[dict[str, Any]]:
        records = super().units(*phase, **options)
        for record in records:
            storage.publish(self.data, record["files"])
            for path, _, _ in record["files"]:
                (self.data / path).unlink()
        return records


def test_units_of_a_comparison_fetch_what_other_machines_wrote(
    project: Path, s3: "boto3.Client", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shuffle, "GROUP_ROWS", 9)
    monkeypatch.setattr(shuffle, "RANGE_KEYS", 40)
    stage = Dedup(DedupConfig())
    stage.open()
    texts = [json.loads(line)["text"] for path in write_rows(project) for line in Path(path).read_text().splitlines()]
    made = []
    for root in (project / "here", storage.local(f"s3://{BUCKET}/there")):
        root.mkdir(parents=True)
        files = []
        for number, begin in enumerate(range(0, len(texts), 20)):
            batch = documents(texts).slice(begin, 20)
            path = write(stage.sketch(batch), root / f"{number}.arrow")
            files.append(sketch_file(path))
            storage.publish(root, [[path.name, files[-1].bytes, files[-1].sha256]])
        if storage.url_of(root):
            for file in files:
                file.path.unlink()
        units = Elsewhere(root, 2) if storage.url_of(root) else ThreadUnits(root, 2)
        out = root / "decisions.arrow"
        facts = stage.compare(files, units).reduce([file.path for file in files], out, workers=2)
        made.append((facts, out.read_bytes()))
    assert made[0] == made[1] and made[0][0]["candidates"]["buckets"] and len(facts["cluster_sizes"]) > 1


@pytest.mark.campaign
def test_a_dataset_of_the_hub_has_the_rows_of_its_files_and_a_split_is_read_alone(
    datakit: Datakit, project: Path
) -> None:
    pytest.importorskip("huggingface_hub")
    inputs = write_rows(project)
    files = {
        f"data/{name}-00000.jsonl": Path(path).read_bytes()
        for name, path in zip(("train", "test"), inputs, strict=True)
    }
    tries: Counter[str] = Counter()

    def busy(method: str, path: str) -> str:
        tries[path] += method == "GET" and "/resolve/" in path
        return "503" if tries[path] == 1 and path.endswith("train-00000.jsonl") else ""

    with Hub(files | {"README.md": b"# Mine"}, busy) as hub:
        own = {**os.environ, "HF_ENDPOINT": hub.url, "HF_TOKEN": SECRET, "HF_HOME": str(project / "hub")}

        def ingest(*flags: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-m", "datakit", "ingest", *flags, "--output", "there"]
            return subprocess.run(command, env=own, cwd=project, capture_output=True, text=True, check=False)

        url = "hf://datasets/me/mine"
        wrong, several, dev = ingest(f"{url}/nothing/*.jsonl"), ingest(url), ingest(url, "--split", "dev")
        train = ingest(url, "--split", "train")
    assert wrong.returncode == 1 and "nothing" in wrong.stderr and "Traceback" not in wrong.stderr
    assert several.returncode == 2 and "test (1 file), train (1 file)" in several.stderr
    assert dev.returncode == 2 and "no split dev" in dev.stderr
    assert train.returncode == 0, train.stderr
    assert datakit("ingest", inputs[0], "--output", "here").code == 0
    there, here = (load(project / name / "manifest.json") for name in ("there", "here"))
    assert there.ledger == here.ledger and tries["/datasets/me/mine/resolve/main/data/train-00000.jsonl"] > 1
    assert SECRET not in train.stderr + "".join(f.read_text() for f in (project / "there").rglob("*.json"))


AZURITE = shutil.which("azurite-blob") or os.environ.get("AZURITE_BLOB", "")


@pytest.mark.campaign
@pytest.mark.skipif(not AZURITE, reason="azurite-blob is not installed: npm install azurite, then set AZURITE_BLOB")
def test_azure_has_the_same_bytes(datakit: Datakit, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [AZURITE, "--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    running = subprocess.Popen([*command, "--blobPort", str(port)], stdout=subprocess.DEVNULL)
    account = "devstoreaccount1"
    # the account that every Azurite has, from its manual
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", account)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", key)
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"http://127.0.0.1:{port}/{account}")
    monkeypatch.setenv("DATAKIT_MIRROR", str(project / "mirror"))
    date = email.utils.formatdate(usegmt=True)
    about = f"x-ms-date:{date}\nx-ms-version:2021-08-06\n/{account}/{account}/corpus\nrestype:container"
    signed = hmac.digest(base64.b64decode(key), f"PUT{chr(10) * 12}{about}".encode(), "sha256")
    headers = {
        "x-ms-date": date, "x-ms-version": "2021-08-06", "Content-Length": "0",
        "Authorization": f"SharedKey {account}:{base64.b64encode(signed).decode()}",
    }  # fmt: skip
    url = f"http://127.0.0.1:{port}/{account}/corpus?restype=container"
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers))
                break
            except urllib.error.URLError:
                time.sleep(0.3)
        _has_the_same_bytes(datakit, project, "az://corpus")
    finally:
        running.kill()
        running.wait()


@pytest.fixture
def google(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The bucket `corpus` of Google's store."""
    gcp = pytest.importorskip("gcp_storage_emulator.server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (
        gcp.create_server("127.0.0.1", port, in_memory=True, default_bucket="corpus"),
        GoogleXml(f"http://127.0.0.1:{port}") as front,
    ):
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", front.url)
        monkeypatch.setenv("DATAKIT_MIRROR", str(project / "mirror"))
        yield


@pytest.mark.usefixtures("google")
def test_google_has_the_same_bytes(datakit: Datakit, project: Path) -> None:
    _has_the_same_bytes(datakit, project, "gs://corpus")


def _has_the_same_bytes(datakit: Datakit, project: Path, store: str) -> None:
    """Raw files are read from the store, the result has the bytes of a local one, and two runs exclude each other."""
    inputs = write_rows(project)
    raw = storage.local(f"{store}/raw/part-0.jsonl")
    raw.parent.mkdir(parents=True)
    raw.write_bytes(Path(inputs[0]).read_bytes())
    storage.put(raw)
    assert datakit("ingest", inputs[0], "--output", "here").code == 0
    said = datakit("ingest", f"{store}/raw/*.jsonl", "--output", f"{store}/out")
    assert said.code == 0, said.err
    there, here = load(storage.local(f"{store}/out/manifest.json")), load(project / "here" / "manifest.json")
    assert there.shards == here.shards
    assert "are unchanged" in datakit("verify", f"{store}/out").out
    with storage.Claim(storage.local(f"{store}/out")):
        code = f"import datakit.storage as s; s.Claim(s.local('{store}/out'))"
        other = {**os.environ, "DATAKIT_MIRROR": str(project / "another machine")}
        done = subprocess.run([sys.executable, "-c", code], env=other, capture_output=True, text=True, check=False)
        assert "UsageError" in done.stderr and "another run is writing" in done.stderr
    with storage.Claim(storage.local(f"{store}/out")):  # it is free again
        pass
