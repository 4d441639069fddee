"""Work units on a Ray cluster: the same bytes as on one machine, through losses of machines, workers and the driver."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.cluster_faults import workers
from datakit.engine.executors import Ray, _unit, code_stamp
from datakit.errors import MissingExtraError, UsageError
from tests.engine.corpus import write_corpus
from tests.object_stores import Server, use
from tests.processes import python

KILLS = 20


def test_without_ray_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"datakit\[cluster\]"):
        Ray().connect()


def test_a_worker_with_other_code_refuses(tmp_path, monkeypatch):
    monkeypatch.setenv("DATAKIT_MIRROR", "before")
    with pytest.raises(UsageError, match="another version"):
        _unit(len, (str(tmp_path), "/m", "0" * 64), "row")
    before = Path.cwd()
    try:
        assert _unit(len, (str(tmp_path), "/m", code_stamp()), "row") == 3
        assert Path.cwd() == tmp_path and os.environ["DATAKIT_MIRROR"] == "/m"
    finally:
        os.chdir(before)


def test_an_address_without_the_executor_is_refused(tmp_path):
    command = ("-m", "datakit", "dedup", "x.jsonl", "--ray-address", "auto", "--output", "out")
    assert "--executor ray" in python(*command, ends=2, cwd=tmp_path).stderr


@pytest.fixture
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An S3 server; what this test starts has the credentials for it in its environment."""
    pytest.importorskip("obstore")
    moto = pytest.importorskip("moto.server")
    with Server(moto.DomainDispatcherApplication(moto.create_backend_app)) as server:
        use(monkeypatch, server.url, tmp_path / "mirror")
        yield server.url


@pytest.fixture
def cluster(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Three raylets of one core, whose workers have the environment of the test."""
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # a cluster of this test alone, on this machine
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(2):
        made.add_node(num_cpus=1)
    yield made
    made.shutdown()


@pytest.mark.campaign
def test_a_project_on_a_store_survives_losses_of_machines_workers_and_drivers(
    cluster, endpoint, tmp_path, small_tokenizer
):
    boto3 = pytest.importorskip("boto3")
    inputs = write_corpus(tmp_path, rows=4000, files=6)
    store = boto3.client("s3", endpoint_url=endpoint)
    store.create_bucket(Bucket="corpus")

    def datakit(*args: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "datakit", *args]
        return subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)

    places = {"here": [], "s3://corpus/project": ["--executor", "ray", "--ray-address", cluster.address]}
    values = ("ingest.shard_mb=1", "filter.rules=", "pack.seq_len=256", "pack.part_tokens=99999")
    small = [word for value in values for word in ("--set", value)]
    for place in places:
        assert datakit("init", "d", *inputs, "--project", place, "--tokenizer", str(small_tokenizer)).wait() == 0
    assert datakit("run", "--project", "here", *small).wait() == 0

    picks, lost, kills = random.Random(3), 0, {"raylet": 0, "worker": 0, "driver": 0}
    command = ["run", "--project", "s3://corpus/project", *small, *places["s3://corpus/project"]]
    run = datakit(*command)
    while run.poll() != 0:
        assert run.poll() is None or lost, run.stderr.read() if run.stderr else ""
        if run.poll() is not None:  # it was joined to a raylet that was killed, and died with it
            run, lost = datakit(*command), lost - 1
        time.sleep(picks.uniform(2, 6))
        what = picks.choice(sorted(kills))
        if sum(kills.values()) == KILLS or run.poll() is not None:
            continue
        if what == "raylet":
            node = picks.choice([n for n in cluster.list_all_nodes() if not n.head])
            cluster.remove_node(node, allow_graceful=False)
            cluster.add_node(num_cpus=2 if kills[what] else 1)
        elif what == "worker" and (found := workers(cluster)):
            os.kill(picks.choice(found), signal.SIGKILL)
        elif what == "driver":
            run.send_signal(signal.SIGKILL)
            run.wait()
        else:
            continue
        kills[what], lost = kills[what] + 1, lost + 1
    print(kills)
    for stage in ("ingest", "language", "dedup", "filter", "tokenize", "pack"):
        there = store.get_object(Bucket="corpus", Key=f"project/manifests/d/{stage}.json")["Body"].read()
        assert there == (tmp_path / "here" / "manifests" / "d" / f"{stage}.json").read_bytes(), stage
    assert datakit("verify", "s3://corpus/project/manifests/d/pack.json").wait() == 0
