"""The index of a dedup run, and `--against`: comparing new rows with the kept rows of earlier runs.

A run with `save_index` writes, for each shard, one Arrow IPC file with the id of each kept row and what others are
compared by, in row order: the digest, bands and shingles of a document, the hashes of the lines that were not cut out
of it, ... A later run loads the indexes of an earlier run and of all runs which that one was compared with, checks that
the settings match, and compares its rows with theirs. Rows that an earlier dataset has lost since are listed in a file
beside its index, and left out.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

import datakit.storage as storage
from datakit.config import digest, resolved
from datakit.data import MESSAGES, read_shard
from datakit.errors import ConfigError, InputError, IntegrityError
from datakit.manifest import (
    AGAINST,
    COMPARED_WITH,
    Shard,
    ancestors,
    check_shards,
    data_dir,
    find_parent,
    load,
    tables,
)
from datakit.stage import Parent

if TYPE_CHECKING:
    from datakit.dedup.shuffle import ShuffleStage

_NOT_NEEDED = ("source", "lang", "rank")  # alarms are about new rows, and policy `first` needs no rank

_SHORT = (
    "The quick brown fox jumps over the lazy dog, and then: it does so again! Straße, ﬁne, I\u0307stanbul 2026 \u00bd",
    "我们正在寻找一种更好的方法 ภาษาไทยเขียนติดกัน 日本語の文章も一文字ずつ カタカナ ကမ္ဘာ ភាសាខ្មែរ ພາສາລາວ",
    "كلمةٌ عربية طويلة جدا في جملة واحدة e\u0301te\u0301 हिन्दी में लिखा हुआ एक वाक्य है",
    "too short",
    "for Row in rows:\n    if Row.ok and x != -1:\n        Sum += f(*args) ** 2\n        log('-C', $HOME, a?.b ?? X)\n",
    "The `List` and the `list`; CO and Co, MW and mW: 3 x^2 + 4y = 12, and not 3 x + 4y^2 = 12.",
)
_PROBES = (*_SHORT, "\n\n".join(f"{text} And so it goes on, as before. Then 1, 2, 3 more!" for text in _SHORT * 2))
"""Texts that show whether two versions of our code find the same words and shingles."""

_URLS = (
    "HTTP://www.Example.org:80/a/../b%7e/?utm_source=x&b=2&a=1#part",
    "https://müller.example/ä b;jsessionid=7#!/page",
    " ",
    "ftp://example.org",
    "https://www.example.org/index.html?PHPSESSID=1",
    "https://example.org/Case/?Q=A",
    "//example.org",
)

_MAY_DIFFER = {"max_cluster_rows", "max_loss", "save_duplicates", "save_index"}
"""Settings that decide about no row: those of alarms, and of what else is written."""


# Writing an index.


def without_unneeded(sketches: pa.RecordBatch) -> pa.RecordBatch:
    """Sketches without what only the run that made them needs."""
    return sketches.drop_columns([n for n in _NOT_NEEDED if n in sketches.schema.names])


def fingerprint(stage: "ShuffleStage") -> str:
    """A hash that changes when words, shingles, permutations or digests change: sketches of the probe texts."""
    keys = pa.array(range(len(_PROBES)), pa.uint64())
    asked = [[{"role": "user", "content": text}] for text in _PROBES]
    said = [[{"role": "assistant", "content": text[::-1]}] for text in _PROBES]
    talks = [one + other for one, other in zip(asked, said, strict=True)]
    kinds: dict[str, dict[str, Any]] = {
        "document": {"text": pa.array(_PROBES), getattr(stage.config, "field", "url"): pa.array(_URLS)},
        "conversation": {"messages": talks},
        "preference": {"prompt": asked, "chosen": said, "rejected": said[::-1]},
    }
    total = hashlib.sha256()
    for kind in stage.probe_kinds:
        typed = {n: pa.array(v, MESSAGES) if isinstance(v, list) else v for n, v in kinds[kind].items()}
        made = stage.sketch(pa.record_batch({"row_key": keys, "id": [str(k) for k in keys]} | typed))
        total.update(repr(without_unneeded(made).to_pydict()).encode())
    return total.hexdigest()[:16]


# Loading earlier indexes.


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """An earlier dedup run whose rows new rows are compared with: its index, and which of its rows are removed."""

    name: str
    """The dataset and the version, for people."""
    version: str
    folder: Path
    shards: tuple[Shard, ...]
    """The files of the index, relative to the folder."""
    removed: "RemovedRows"
    kept: int
    """Rows that the run kept."""

    @property
    def rows(self) -> int:
        """Rows in the index, removed ones included; more than one for a text that `dedup_repeats` cut in two."""
        return sum(shard.rows for shard in self.shards)

    def check_file(self, shard: Shard) -> None:
        """Compare every byte of a file of the index with its checksum in the manifest, before any of it is used.

        Raises:
            IntegrityError: it is missing, truncated or changed.
        """
        try:
            check_shards(self.folder, [shard])
        except IntegrityError as e:  # a run of the new dataset makes no index of the old one
            raise IntegrityError(f"{e}. The file is of the index of {self.name}; run that dedup again") from None

    def ids(self) -> Iterator[pa.Array]:
        """The ids in the index, batch by batch; each file is checked first."""
        for shard in self.shards:
            self.check_file(shard)
            with pa.memory_map(str(self.folder / shard.path)) as file:
                reader = pa.ipc.open_file(file)
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number).column("id")


def run_of(path: Path, stage: str) -> Parent:
    """The manifest of a stage that `path` is, or was made from.

    Raises:
        InputError: there is none.
    """
    found = next((run for run in _lineage(path) if run.manifest.stage == stage), None)
    if found is None:
        raise InputError(f"{path}: expected the manifest of a {stage} stage, or of one that came after it")
    return found


def _lineage(path: Path) -> list[Parent]:
    return [Parent(p, m) for p, m in ancestors(storage.pull_result(path))]


def earlier_runs(newest: Parent, stage: "ShuffleStage", kind: str) -> tuple[EarlierRun, ...]:
    """The run of a manifest and those that it was itself run against, oldest first.

    The result equals one run over all rows, the old rows before the new ones. So the settings must match.

    Raises:
        InputError: a run was made without save_index, or the manifest of one is missing.
        ConfigError: a setting that decides about rows differs.
        IntegrityError: a manifest, or a list of removed rows, is damaged.
    """
    found = list(_chain(newest))
    ours, mark = _settings(kind, resolved(stage.config), stage.resources()), fingerprint(stage)
    for run in found:
        _check_settings(run, ours, mark)
    return tuple(_earlier_run(run) for run in reversed(found))


def _chain(run: Parent) -> Iterator[Parent]:
    yield run
    for entry in run.manifest.parents:
        if entry.get("use") == AGAINST:
            place = find_parent(run.path, entry)
            if place is None or load(place).version != entry["version"]:
                raise InputError(
                    f"{run.path}: was run against the dedup {entry['version']}, whose manifest is not where it was. "
                    "Without it, duplicates of its rows would stay. Put it back"
                )
            yield from _chain(Parent(place, load(place)))


def _settings(kind: str, config: dict[str, Any], resources: dict[str, Any]) -> dict[str, Any]:
    """What decides about rows; models and tokenizers by their hashes, not by the names of their files."""
    shaping = {name: value for name, value in resources.items() if name not in COMPARED_WITH}
    return {"kind": kind} | {name: value for name, value in config.items() if name not in _MAY_DIFFER} | shaping


def _check_settings(run: Parent, ours: dict[str, Any], mark: str) -> None:
    path, manifest = run.path, run.manifest
    if "index" not in manifest.facts:
        raise InputError(f"{path}: that {manifest.stage} saved no index; run it again with --save-index")
    theirs = _settings(manifest.kind, manifest.config, manifest.facts.get("resources", {}))
    derived = ("num_bands", "rows_per_band")  # from the threshold, where they are not given
    for name in sorted(ours.keys() | theirs.keys(), key=lambda name: (name in derived, name)):
        if ours.get(name) != theirs.get(name):
            raise ConfigError(
                f"against {path}: it was made with {name} {theirs.get(name)!r}, and this run has {ours.get(name)!r}. "
                "Rows can only be compared under the same settings: give this run that value, or run both again"
            )
    found = manifest.facts["index"]["fingerprint"]
    if found != mark:
        raise ConfigError(
            f"against {path}: its index (fingerprint {found}) was made by a version of datakit that cuts or hashes "
            f"words differently from this one (fingerprint {mark}). Run that {manifest.stage} again"
        )


def _earlier_run(run: Parent) -> EarlierRun:
    folder = data_dir(run.path, run.manifest)
    made, removed = run.manifest, RemovedRows.read(folder)
    name = f"{made.dataset} {made.version}"
    return EarlierRun(name, made.version, folder, made.of_role("index"), removed, made.ledger.rows.kept)


# Rows that are removed from an index.

_FORMAT = "datakit.removed"
_FILE = "index/removed.json"


@dataclass(frozen=True, slots=True)
class RemovedRows:
    """Ids of removed rows, sorted and distinct. The index files do not change; later runs skip these rows."""

    ids: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        """Over the ids; it is part of what a run against this index depends on."""
        return digest(self.ids)

    @classmethod
    def read(cls, data: Path) -> "RemovedRows":
        """The list of the index in a data folder; empty where none was ever written.

        Raises:
            IntegrityError: the file is truncated or changed.
        """
        file = storage.refresh(data / _FILE)
        with contextlib.suppress(ValueError, KeyError, TypeError):
            if not file.exists():
                return cls()
            found: dict[str, Any] = json.loads(file.read_bytes())
            removed = cls(tuple(found["ids"]))
            if found["format"] == _FORMAT and found["sha256"] == removed.sha256:
                return removed
        raise IntegrityError(f"{file}: is damaged: it lists the rows that were removed from the index. Restore it")

    def write(self, data: Path) -> None:
        """Write the list beside the index."""
        body = {"format": _FORMAT, "ids": list(self.ids), "sha256": self.sha256}
        storage.write_whole(data / _FILE, (json.dumps(body, ensure_ascii=False, indent=0) + "\n").encode())


def remove(path: Path, ids: Iterable[str]) -> tuple[int, list[str]]:
    """Remove rows from the indexes of a dataset: (how many were in one until now, the ids that are in none).

    These are the indexes of the stage of the manifest `path` and of the stages before it. Each list lies beside its
    index. Later runs read it, and say so in their manifests.

    Raises:
        InputError: the manifest was made from no dedup, or none of them has an index.
        IntegrityError: an index is damaged.
        UsageError: a run is writing there.
    """
    runs = [run for run in _dedups(path) if "index" in run.manifest.facts]
    if not runs:
        raise InputError(f"{path}: no dedup of it saved an index, so there is nothing to remove rows from")
    wanted, known, new = set(ids), set[str](), set[str]()
    asked = pa.array(sorted(wanted), pa.string())
    for index in map(_earlier_run, runs):
        with storage.locked(index.folder):
            own = {name for found in index.ids() for name in found.filter(pc.is_in(found, asked)).to_pylist()}
            removed = {*RemovedRows.read(index.folder).ids}
            if own - removed:
                RemovedRows(tuple(sorted(removed | own))).write(index.folder)
        known, new = known | own, new | (own - removed)
    return len(new), sorted(wanted - known)


def _dedups(path: Path) -> list[Parent]:
    """The dedup stages of a manifest's history, the newest first.

    Raises:
        InputError: there is none.
    """
    found = [run for run in _lineage(path) if run.manifest.stage.startswith("dedup")]
    if not found:
        raise InputError(f"{path}: expected the manifest of a dedup stage, or of one that came after it")
    return found


def dropped_ids(path: Path, later: Path) -> Iterator[str]:
    """The ids of the rows that the stage of the manifest `later` dropped after the dedup of `path`.

    Raises:
        InputError: that stage did not come after that dedup.
    """
    dedup, lineage = _dedups(path)[0].manifest, _lineage(later)
    if dedup.version not in {run.manifest.version for run in lineage[1:]}:
        raise InputError(
            f"{later}: expected the manifest of a stage that came after the {dedup.stage} {dedup.version} of {path}"
        )
    newest = lineage[0]
    for shard in tables(newest.manifest, "dropped"):
        for batch in read_shard(data_dir(newest.path, newest.manifest), shard, ["id"]):
            yield from batch.column("id").to_pylist()
