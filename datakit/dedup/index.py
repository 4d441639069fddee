"""The index of a dedup run, and `--against`: comparing new rows with the kept rows of earlier runs.

A run with `save_index` writes, for each shard, one Arrow IPC file with the id, digest, bands and set of shingles of
each kept row, in row order. A later run loads the indexes of an earlier run and of all runs which that one was compared
with, checks that the settings match, and compares its rows with theirs. Rows that an earlier dataset has lost since are
listed in a file beside its index, and left out.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import datakit.storage as storage
from datakit.config import digest, resolved
from datakit.data import MESSAGES, read_shard
from datakit.dedup.minhash import Sketches, sketch
from datakit.dedup.stage import DedupConfig
from datakit.errors import ConfigError, InputError, IntegrityError, UsageError
from datakit.manifest import (
    AGAINST,
    Shard,
    ancestors,
    check_shards,
    data_dir,
    find_parent,
    load,
    lock,
    make_folder,
    tables,
    write_whole,
)
from datakit.stage import Parent
from datakit.text.words import UNICODE_VERSION

_NOT_NEEDED = ("source", "lang", "rank")  # alarms are about new rows, and policy `first` needs no rank

_PROBES = (
    "The quick brown fox jumps over the lazy dog, and then: it does so again! Straße, ﬁne, I\u0307stanbul 2026 \u00bd",
    "我们正在寻找一种更好的方法 ภาษาไทยเขียนติดกัน 日本語の文章も一文字ずつ カタカナ ကမ္ဘာ ភាសាខ្មែរ ພາສາລາວ",
    "كلمةٌ عربية طويلة جدا في جملة واحدة e\u0301te\u0301 हिन्दी में लिखा हुआ एक वाक्य है",
    "too short",
)
"""Texts that show whether two versions of our code find the same words and shingles."""

_MAY_DIFFER = {
    *("max_cluster_rows", "max_loss", "min_alarm_rows"),  # alarms
    *("save_signatures", "save_duplicates", "save_index"),  # what else is written
}
"""Settings that decide about no row."""


# Writing an index.


def index_rows(sketches: pa.RecordBatch, kept: pa.Array) -> pa.RecordBatch:
    """The index of the kept rows (bool[rows]) of a batch of sketches.

    A row that policy `first` keeps is the first one with its text, so its sketch holds the shingles.
    """
    return sketches.drop_columns([n for n in _NOT_NEEDED if n in sketches.schema.names]).filter(kept)


@lru_cache(maxsize=8)
def fingerprint(config: DedupConfig) -> str:
    """A hash that changes when words, shingles, permutations or digests change: sketches of the probe texts."""
    keys = pa.array(range(len(_PROBES)), pa.uint64())
    asked = [[{"role": "user", "content": text}] for text in _PROBES]
    said = [[{"role": "assistant", "content": text[::-1]}] for text in _PROBES]
    talks = [one + other for one, other in zip(asked, said, strict=True)]
    pair = {"prompt": asked, "chosen": said, "rejected": said[::-1]}
    kinds = {"text": pa.array(_PROBES)}, {"messages": talks}, pair
    total = hashlib.sha256()
    for columns in kinds:
        typed = {n: pa.array(v, MESSAGES) if isinstance(v, list) else v for n, v in columns.items()}
        made = sketch(pa.record_batch({"row_key": keys, "id": [str(k) for k in keys]} | typed), config)
        total.update(repr(made.drop_columns(_NOT_NEEDED).to_pydict()).encode())
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

    @property
    def rows(self) -> int:
        """Rows in the index, removed ones included."""
        return sum(shard.rows for shard in self.shards)

    @property
    def paths(self) -> list[Path]:
        """The index files, in row order."""
        return [self.folder / shard.path for shard in self.shards]

    def check(self, workers: int) -> None:
        """Compare every byte of the index with the checksums in its manifest, before any of it is used.

        Raises:
            IntegrityError: a file is missing, truncated or changed.
        """
        try:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(lambda shard: check_shards(self.folder, [shard]), self.shards))
        except IntegrityError as e:  # a run of the new dataset makes no index of the old one
            raise IntegrityError(f"{e}. The file is of the index of {self.name}; run that dedup again") from None

    def ids(self) -> Iterator[pa.Array]:
        """The ids in the index, batch by batch."""
        for path in self.paths:
            with pa.memory_map(str(path)) as file:
                reader = pa.ipc.open_file(file)
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number).column("id")


def dedup_of(path: Path) -> Parent:
    """The dedup manifest that `path` is, or was made from.

    Raises:
        InputError: there is none.
    """
    path = storage.pull_result(path)
    found = next((Parent(p, m) for p, m in ancestors(path) if m.stage == "dedup"), None)
    if found is None:
        raise InputError(f"{path}: expected the manifest of a dedup stage, or of one that came after it")
    return found


def earlier_runs(newest: Parent, config: DedupConfig, kind: str) -> tuple[EarlierRun, ...]:
    """The dedup run of a manifest and those that it was itself run against, oldest first.

    The result equals one run over all rows, the old rows before the new ones. So the settings must match.

    Raises:
        InputError: a run was made without save_index, or the manifest of one is missing.
        ConfigError: a setting that decides about rows differs.
        IntegrityError: a manifest, or a list of removed rows, is damaged.
    """
    found = list(_chain(newest))
    for run in found:
        _check_settings(run, config, kind)
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


def _check_settings(run: Parent, config: DedupConfig, kind: str) -> None:
    path, manifest = run.path, run.manifest
    if "index" not in manifest.facts:
        raise InputError(f"{path}: that dedup saved no index; run it again with --save-index")
    ours = {"kind": kind, "unicode": UNICODE_VERSION} | resolved(config)
    theirs = {"kind": manifest.kind, "unicode": manifest.facts["resources"]["unicode"]} | manifest.config
    derived = ("num_bands", "rows_per_band")  # from the threshold, where they are not given
    for name in sorted((ours.keys() | theirs.keys()) - _MAY_DIFFER, key=lambda name: (name in derived, name)):
        if ours.get(name) != theirs.get(name):
            raise ConfigError(
                f"against {path}: it was made with {name} {theirs.get(name)!r}, and this run has {ours.get(name)!r}. "
                "Rows can only be compared under the same settings: give this run that value, or run both again"
            )
    found = manifest.facts["index"]["fingerprint"]
    if found != fingerprint(config):
        raise ConfigError(
            f"against {path}: its index (fingerprint {found}) was made by a version of datakit that cuts or hashes "
            f"words differently from this one (fingerprint {fingerprint(config)}). Run that dedup again"
        )


def _earlier_run(run: Parent) -> EarlierRun:
    folder = data_dir(run.path, run.manifest)
    return EarlierRun(
        name=f"{run.manifest.dataset} {run.manifest.version}",
        version=run.manifest.version,
        folder=folder,
        shards=run.manifest.of_role("index"),
        removed=RemovedRows.read(folder),
    )


def live_rows(sketches: Sketches, earlier: tuple[EarlierRun, ...]) -> npt.NDArray[np.int64]:
    """The numbers of the earlier rows that are not removed, in order; sketches begin with the rows of all indexes."""
    live, begin = [np.empty(0, np.int64)], 0
    for run in earlier:
        rows = np.arange(begin, begin + run.rows)
        if run.removed.ids:
            removed = pa.array(run.removed.ids, pa.string())
            known = [
                pc.is_in(batch.column("id"), removed).to_numpy(zero_copy_only=False)
                for batch, first in zip(sketches.batches, sketches.begins, strict=False)
                if begin <= first < begin + run.rows
            ]
            rows = rows[~np.concatenate([np.empty(0, np.bool_), *known])]
        live.append(rows)
        begin += run.rows
    return np.concatenate(live)


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

    def plus(self, ids: Iterable[str]) -> "RemovedRows":
        """The list with more ids."""
        return RemovedRows(tuple(sorted({*self.ids, *ids})))

    @classmethod
    def read(cls, data: Path) -> "RemovedRows":
        """The list of the index in a data folder; empty where none was ever written.

        Raises:
            IntegrityError: the file is truncated or changed.
        """
        file = storage.refresh(data / _FILE)
        try:
            found: dict[str, Any] = json.loads(file.read_bytes())
            removed = cls(tuple(found["ids"]))
            whole = found["format"] == _FORMAT and found["sha256"] == removed.sha256
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, KeyError, TypeError):
            whole = False
        if not whole:
            raise IntegrityError(f"{file}: is damaged: it lists the rows that were removed from the index. Restore it")
        return removed

    def write(self, data: Path) -> None:
        """Write the list beside the index."""
        body = {"format": _FORMAT, "ids": list(self.ids), "sha256": self.sha256}
        write_whole(data / _FILE, (json.dumps(body, ensure_ascii=False, indent=0) + "\n").encode())


def remove(path: Path, ids: Iterable[str]) -> tuple[int, list[str]]:
    """Remove rows from the index of a dedup run: (how many were not removed before, the ids that it does not hold).

    The list lies beside the index. Later runs read it, and say so in their manifests.

    Raises:
        InputError: the manifest is of no dedup, or was made without save_index.
        IntegrityError: the index is damaged.
        UsageError: a run is writing there.
    """
    run = dedup_of(path)
    if "index" not in run.manifest.facts:
        raise InputError(f"{run.path}: that dedup saved no index, so there is nothing to remove rows from")
    wanted = set(ids)
    index = _earlier_run(run)
    index.check(1)
    make_folder(index.folder)
    held = lock(index.folder)
    if held is None:
        raise UsageError(f"{index.folder}: a run is writing there; wait for it")
    try:
        asked, known = pa.array(sorted(wanted), pa.string()), set[str]()
        for found in index.ids():
            known.update(found.filter(pc.is_in(found, asked)).to_pylist())
        removed = RemovedRows.read(index.folder)
        removed.plus(known).write(index.folder)
    finally:
        os.close(held)
    return len(known - set(removed.ids)), sorted(wanted - known)


def dropped_ids(path: Path, later: Path) -> Iterator[str]:
    """The ids of the rows that the stage of the manifest `later` dropped after the dedup of `path`.

    Raises:
        InputError: that stage did not come after that dedup.
    """
    later = storage.pull_result(later)
    dedup, lineage = dedup_of(path).manifest, ancestors(later)
    if dedup.version not in {manifest.version for _, manifest in lineage[1:]}:
        raise InputError(
            f"{later}: expected the manifest of a stage that came after the dedup {dedup.version} of {path}"
        )
    for shard in tables(lineage[0][1], "dropped"):
        for batch in read_shard(data_dir(later, lineage[0][1]), shard, ["id"]):
            yield from batch.column("id").to_pylist()
