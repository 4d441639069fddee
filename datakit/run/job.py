"""One run of one stage, from its key to its manifest."""

import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from os.path import realpath, relpath
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from datakit import __version__
from datakit.config import resolved
from datakit.errors import DatakitError, UsageError
from datakit.engine.local import Local
from datakit.manifest import AGAINST, Ledger, Manifest, Shard, data_dir, find_parent, load, save, write_whole
from datakit.engine.store import Recent
from datakit.engine.lineage import code_hash, current, key_of, parent_entry
from datakit.engine.store import Place
from datakit.engine.store import Progress, Work
from datakit.engine.store import entry, read_shard

RECENT_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class Run:
    """What every stage of one command has in common."""

    place: Place
    executor: Local
    progress: Progress
    strict: bool = False
    """Stop with an error, before the manifest, where something would only be counted or warned about."""
    recent: Recent = field(default_factory=lambda: Recent(RECENT_BYTES))
    """What one stage wrote for the next one to read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One run of one stage: what it is made from and where its result goes."""

    run: Run
    stage: str
    kind: str
    config: dict[str, Any]
    parents: tuple[dict[str, Any], ...]
    lay: dict[str, dict[str, str]]
    """Where the parents lie: {"parents": {version: path}, "raw": {name: path or URL}}, for the run file."""
    resources: dict[str, Any] = field(default_factory=dict)
    started: float = field(default_factory=time.time)

    @property
    def key(self) -> str:
        """What decides "up to date"."""
        return key_of(self.stage, self.kind, self.parents, self.config, self.resources)

    @property
    def manifest(self) -> Path:
        """Where the manifest goes."""
        return self.run.place.manifest(self.stage)

    @property
    def data(self) -> Path:
        """Where the shards go."""
        return self.run.place.data(self.stage, self.key)

    def current(self) -> Manifest | None:
        """The result of an earlier run of the same key, if it is there and whole."""
        manifest = current(self.manifest, self.key)
        if manifest is not None:
            Work.sweep(self.data)
            self.run.progress.line(f"{self.stage}: up to date ({manifest.version})")
            self.insist(manifest.ledger, manifest.facts)
        return manifest

    def insist(self, ledger: Ledger, facts: dict[str, Any]) -> None:
        """With `strict`, refuse a result with quarantined records or alarms.

        Raises:
            DatakitError: there are some.
        """
        alarms = [*facts.get("alarms", [])]
        if ledger.rows.quarantined:
            alarms.append(f"{ledger.rows.quarantined} records could not be read")
        if self.run.strict and alarms:
            raise DatakitError(f"{self.stage}: {'; '.join(alarms)}. Without --strict this is counted, and goes on.")

    def work(self) -> Work:
        """Exclusive use of the data folder."""
        finished = partial(current, self.manifest, self.key)
        return Work(self.data, self.key, self.run.executor, self.run.progress, lambda: finished() is not None)

    def close(
        self, work: Work, *, ledger: Ledger, shards: list[Shard], facts: dict[str, Any], kind: str = "",
        about: dict[str, Any] | None = None,
    ) -> Path:  # fmt: skip
        """Write the manifest; the stage is complete when this returns. `about` is more for the run file."""
        assert not list(ledger.problems()), list(ledger.problems())
        self.insist(ledger, facts)
        manifest = Manifest(
            dataset=self.run.place.dataset,
            kind=kind or self.kind,
            stage=self.stage,
            key=self.key,
            parents=self.parents,
            config=self.config,
            code=code_hash(),
            ledger=ledger,
            shards=tuple(shards),
            facts=facts | ({"resources": self.resources} if self.resources else {}),
        )
        run = {
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.started)),
            "seconds": round(time.time() - self.started, 2),
            "workers": self.run.executor.workers,
            "host": platform.node(),
            "python": platform.python_version(),
            "pyarrow": pa.__version__,
            "datakit": __version__,
            "data": relpath(self.data, self.manifest.parent),
        }
        save(self.manifest, manifest, run | (about or {}) | self.lay)
        work.finish()
        return self.manifest


def begin(
    run: Run,
    stage: str,
    parents: list[Path],
    config: Any,
    resources: dict[str, Any],
    against: Sequence[Path] = (),
) -> Job:
    """The job of a stage on parent manifests, the first of which gives the kind.

    `against` are manifests whose rows are compared with.
    """
    uses = [*([""] * len(parents)), *([AGAINST] * len(against))]
    parents = [*parents, *against]
    manifests = [load(p) for p in parents]
    target = run.place.manifest(stage).parent
    for path, manifest in zip(parents, manifests, strict=True):
        if run.place.output and data_dir(path, manifest).resolve() == target.resolve():
            raise UsageError(f"--output {run.place.output}: is the folder of the input; name another")
    return Job(
        run=run,
        stage=stage,
        kind=manifests[0].kind,
        config=resolved(config),
        parents=tuple(parent_entry(*entry) for entry in zip(parents, manifests, uses, strict=True)),
        lay={"parents": {m.version: way(target, p) for p, m in zip(parents, manifests, strict=True)}},
        resources=resources,
    )


def way(folder: Path, file: Path | str) -> str:
    """The relative path from a folder to a file, past all symbolic links: a lexical one may lead elsewhere."""
    return relpath(realpath(file), realpath(folder))


def attach(data: Path, files: dict[str, bytes]) -> list[Shard]:
    """Write files that travel with a result (a tokenizer, say) and return their entries."""
    for path, content in files.items():
        write_whole(data / path, content)
    return [entry(data, path) for path in sorted(files)]


def tables(manifest: Manifest, role: str) -> tuple[Shard, ...]:
    """The shards of a role that are tables of rows, in order."""
    return tuple(s for s in manifest.of_role(role) if s.path.endswith(".parquet"))


def ancestors(path: Path, *, against: bool = False) -> list[tuple[Path, Manifest]]:
    """The manifest at `path` and those it was made from, nearest first, as far as they can be found.

    With `against`, also those whose rows were compared with.
    """
    found: dict[str, tuple[Path, Manifest]] = {}
    waiting = [path]
    while waiting:
        path = waiting.pop(0)
        manifest = load(path)
        if found.setdefault(manifest.version, (path, manifest))[0] == path:
            parents = [p for p in manifest.parents if "manifest" in p and (against or p.get("use") != AGAINST)]
            places = [find_parent(path, p) for p in parents]
            waiting += [p for p in places if p is not None]
    return list(found.values())


def duplicate_of_dropped(parents: list[Path], data: Path, made: list[Shard]) -> dict[str, int]:
    """What went earlier because rows have it that are dropped now: rows as `duplicate_of_dropped`, pieces cut out of
    texts as `cut_for_dropped`.
    """
    dropped = [data / s.path for s in made if s.role == "dropped" and s.path.endswith(".parquet")]
    ids = [b.column("id") for file in dropped for b in read_shard(file, ["id"])]
    if not ids:
        return {}
    gone, counts = pa.chunked_array(ids), {"duplicate_of_dropped": 0, "cut_for_dropped": 0}
    for path, manifest in {m.version: (p, m) for parent in parents for p, m in ancestors(parent)}.values():
        for shard in tables(manifest, "dropped") if manifest.stage.startswith("dedup") else ():
            for batch in read_shard(data_dir(path, manifest) / shard.path, _survivor_columns(manifest)):
                counts["duplicate_of_dropped"] += pc.sum(pc.is_in(_named_here(batch), gone)).as_py() or 0
        for shard in tables(manifest, "cuts"):
            for batch in read_shard(data_dir(path, manifest) / shard.path, ["duplicate_of"]):
                counts["cut_for_dropped"] += pc.sum(pc.is_in(batch.column(0), gone)).as_py() or 0
    return {name: count for name, count in counts.items() if count}


def _survivor_columns(manifest: Manifest) -> list[str]:
    """The columns that name the row which stays for a dropped one, and the dataset where it lies if it is another."""
    elsewhere = any(p.get("use") == AGAINST for p in manifest.parents)
    return ["duplicate_of", "duplicate_in"] if elsewhere else ["duplicate_of"]


def _named_here(batch: pa.RecordBatch) -> pa.Array:
    """The survivors of dropped rows; null where they lie in another dataset, whose ids are of its own."""
    if "duplicate_in" not in batch.schema.names:
        return batch.column("duplicate_of")
    return pc.if_else(pc.is_null(batch.column("duplicate_in")), batch.column("duplicate_of"), None)
