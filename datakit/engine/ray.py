"""The executor of a cluster: Ray hands out work units. The only file that imports Ray.

A unit's key and its stage go to a worker, its record comes back. Rows never pass through Ray: workers read and write
the project's storage, which all machines must see under the same paths: an object store, or a shared file system.
Nothing is kept in actors, so a driver that died is started again, anywhere, with the same project, and goes on by the
records.

A unit whose machine or process died is handed out again. An error of the work itself is not: it would come again.
"""

import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from datakit.engine.local import all_cores
from datakit.errors import DatakitError, MissingExtraError, UsageError
from datakit.storage import mirror

T = TypeVar("T")
R = TypeVar("R")

RETRIES = 20
"""How often a unit is handed out again after its machine or process died."""
UNIT_MEMORY = 1 << 30
"""Bytes of memory that a unit asks for: a shard of about 256 MB, decompressed, and what is written of it."""
SLOW_S = 120.0
"""A unit that runs for longer is named, again and again in this interval."""
STARTING_S = 20.0
"""Seconds after which units are said to wait for a machine that can take them."""


@dataclass(frozen=True, slots=True)
class Ray:
    """The workers of a Ray cluster, one core and `UNIT_MEMORY` each. Results do not depend on them."""

    address: str = ""
    """Of the cluster's head, or "auto"; empty: RAY_ADDRESS, else a Ray of its own on this machine."""
    workers: int = 0
    """Threads of what runs in the driver."""

    @property
    def share(self) -> int:
        """One: each unit has a process of its own."""
        return 1

    def connect(self) -> "Ray":
        """Join the cluster, or start one on this machine.

        Raises:
            MissingExtraError: Ray is not installed.
            UsageError: there is no cluster at the address.
        """
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
        except ImportError:
            raise MissingExtraError("--executor ray needs the package ray: pip install 'datakit[cluster]'") from None
        if not ray.is_initialized():
            try:
                if address := self.address or os.environ.get("RAY_ADDRESS"):
                    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
                else:
                    ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
            except Exception as e:  # Ray has no common class for these
                where = f"--ray-address {address}: no Ray cluster answers there" if address else "Ray does not start"
                raise UsageError(
                    f"{where} ({str(e).splitlines()[0]}). Start a cluster with `ray start --head`, and name it with "
                    "--ray-address auto. If it asks for a token: RAY_AUTH_MODE=token, and the token of its head in "
                    "~/.ray/auth_token or RAY_AUTH_TOKEN"
                ) from None
        return Ray(self.address, self.workers or all_cores())

    def map(self, work: Callable[[T], R], tasks: Iterable[T], *, processes: bool) -> Iterator[R]:
        """Yield results of `work` over tasks as they become ready; tasks are drawn as the cluster has room for them.

        Raises:
            DatakitError: an error of the work, or a unit whose worker died more than `RETRIES` times.
        """
        import ray

        remote = ray.remote(_unit).options(
            num_cpus=1, memory=UNIT_MEMORY, max_retries=RETRIES, retry_exceptions=False, scheduling_strategy="SPREAD"
        )
        shared, here = ray.put(work), _Here.now()
        waiting, running = iter(tasks), dict[Any, float]()
        said = time.monotonic()
        while True:
            # the cluster may have grown, or have no machine at all until units wait for one
            room = max(2, 2 * int(ray.cluster_resources().get("CPU", 0))) - len(running)
            running |= {remote.remote(shared, here, task): time.monotonic() for task in islice(waiting, max(0, room))}
            if not running:
                return
            done, _ = ray.wait(list(running), num_returns=1, timeout=5.0)
            for reference in done:
                del running[reference]
                yield _result(reference)
            oldest = max((time.monotonic() - began for began in running.values()), default=0.0)
            since = time.monotonic() - said
            if oldest > STARTING_S and since > STARTING_S and not done and not _has_room(ray.nodes()):
                line = "units wait: no machine of the cluster has a core and 1 GiB of memory for one; see `ray status`"
            elif oldest > SLOW_S and since > SLOW_S:
                line = f"{len(running)} units are at work or wait for a core; the oldest one for {oldest:,.0f} s"
            else:
                continue
            said = time.monotonic()
            logging.getLogger("datakit.engine.ray").info(line)


def _has_room(nodes: Iterable[dict[str, Any]]) -> bool:
    """Whether a unit fits on one of a cluster's machines, once that has nothing else to do."""
    own = [node["Resources"] for node in nodes if node["Alive"]]
    return any(has.get("CPU", 0) >= 1 and has.get("memory", 0) >= UNIT_MEMORY for has in own)


@dataclass(frozen=True, slots=True)
class _Here:
    """What a worker must have in common with the driver."""

    folder: str
    mirror: str
    code: str

    @classmethod
    def now(cls) -> "_Here":
        return cls(os.getcwd(), str(mirror()), code_stamp())

    def enter(self) -> None:
        """Make this process like the driver: relative paths of configs, the place of the mirror.

        Raises:
            UsageError: the worker has another version of datakit.
        """
        if code_stamp() != self.code:
            raise UsageError(
                f"the worker on {os.uname().nodename} runs another version of datakit than the driver; install the "
                "same one on all machines"
            )
        if os.path.isdir(self.folder):
            os.chdir(self.folder)
        os.environ["DATAKIT_MIRROR"] = self.mirror  # paths of the mirror are the same on all machines


@cache
def code_stamp() -> str:
    """A hash of all modules of datakit: workers with other code would make other bytes."""
    total, root = hashlib.sha256(), Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        total.update(f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return total.hexdigest()


def _unit(work: Callable[[T], R], here: _Here, task: T) -> R:
    here.enter()
    return work(task)


def _result(reference: Any) -> Any:
    import ray

    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as e:
        raise e.cause if isinstance(e.cause, BaseException) else DatakitError(str(e)) from None
    except ray.exceptions.RayError as e:
        raise DatakitError(
            f"a unit was lost {RETRIES} times with its worker ({type(e).__name__}; out of memory, perhaps). Finished "
            "work is kept: run the same command again to go on, with larger machines or a smaller shard_mb"
        ) from None
