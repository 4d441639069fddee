"""The index of a run: what a later one must know of the rows that this one kept to find them again in new ones.

Per shard one Arrow IPC file with the id, digest, bands and set of shingles of each kept row, in row order.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import digest, resolved, sha256_file
from datakit.data import MESSAGES, read_shard
from datakit.dedup.minhash import Sketches, sketch
from datakit.errors import ConfigError, InputError, IntegrityError, UsageError
from datakit.manifest import AGAINST, Manifest, Shard, ancestors, data_dir, find_parent, load, lock, tables, write_whole
from datakit.text.characters import UNICODE_VERSION

if TYPE_CHECKING:
    from datakit.dedup.stage import DedupConfig


_FORMAT = "datakit.removed"
_FILE = "index/removed.json"


@dataclass(frozen=True, slots=True)
class Removed:
    """Ids of rows, sorted and distinct. The index files stay as the manifest has them; a later run leaves these out."""

    ids: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        """Over the ids: what a result that was made with this list depends on."""
        return digest(self.ids)

    def plus(self, ids: Iterable[str]) -> "Removed":
        """The list with more ids."""
        return Removed(tuple(sorted({*self.ids, *ids})))

    @classmethod
    def read(cls, data: Path) -> "Removed":
        """The list of the index in a data folder; empty where none was ever written.

        Raises:
            IntegrityError: the file is cut or changed.
        """
        file = data / _FILE
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
        """Put the list in its place."""
        body = {"format": _FORMAT, "ids": list(self.ids), "sha256": self.sha256}
        write_whole(data / _FILE, (json.dumps(body, ensure_ascii=False, indent=0) + "\n").encode())


_NOT_NEEDED = ("source", "lang", "rank")  # alarms are about new rows, and policy `first` ranks nothing

_PROBES = (
    "The quick brown fox jumps over the lazy dog, and then: it does so again! Straße, ﬁne, I\u0307stanbul 2026 \u00bd",
    "我们正在寻找一种更好的方法 ภาษาไทยเขียนติดกัน 日本語の文章も一文字ずつ カタカナ ကမ္ဘာ ភាសាខ្មែរ ພາສາລາວ",
    "كلمةٌ عربية طويلة جدا في جملة واحدة e\u0301te\u0301 हिन्दी में लिखा हुआ एक वाक्य है",
    "too short",
)
"""Texts that tell whether two versions of our code see the same words and shingles."""


def index_rows(sketches: pa.RecordBatch, kept: npt.NDArray[np.bool_]) -> pa.RecordBatch:
    """What the index says of the kept rows of a batch of sketches.

    A row that policy `first` keeps is the first of its text, so its sketch holds the shingles.
    """
    return sketches.drop_columns([n for n in _NOT_NEEDED if n in sketches.schema.names]).filter(pa.array(kept))


@lru_cache(maxsize=8)
def fingerprint(config: "DedupConfig") -> str:
    """Changes when what rows are compared by does: the words, shingles, permutations and digests that code makes."""
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


@dataclass(frozen=True, slots=True)
class Earlier:
    """A dataset that new rows are compared with: the index of its dedup run, and which of its rows count no more."""

    name: str
    """The dataset and the version, for people."""
    version: str
    folder: Path
    shards: tuple[Shard, ...]
    """The files of the index, relative to the folder."""
    removed: Removed

    @property
    def rows(self) -> int:
        """Rows in the index, removed ones included."""
        return sum(shard.rows for shard in self.shards)

    @property
    def paths(self) -> list[Path]:
        """The index files, in row order."""
        return [self.folder / shard.path for shard in self.shards]

    def check(self, workers: int) -> None:
        """Compare every byte of the index with the checksums in its manifest, before any of it is believed.

        Raises:
            IntegrityError: a file is missing, cut or changed.
        """
        with ThreadPoolExecutor(workers) as pool:
            for shard, problem in zip(self.shards, pool.map(self._problem, self.shards), strict=True):
                if problem:
                    raise IntegrityError(
                        f"{self.folder / shard.path}: {problem}; the index of {self.name} is damaged. Restore the "
                        "file, or run that dedup again with save_index"
                    )

    def _problem(self, shard: Shard) -> str:
        file = self.folder / shard.path
        if not file.is_file():
            return "missing"
        if file.stat().st_size != shard.bytes:
            return f"expected {shard.bytes} bytes, found {file.stat().st_size}"
        found = sha256_file(file)
        return "" if found == shard.sha256 else f"expected sha256 {shard.sha256}, found {found}"

    def ids(self) -> Iterator[pa.Array]:
        """The ids in the index, file by file."""
        for path in self.paths:
            with pa.memory_map(str(path)) as file:
                reader = pa.ipc.open_file(file)
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number).column("id")


def live_rows(sketches: Sketches, earlier: tuple[Earlier, ...]) -> npt.NDArray[np.int64]:
    """The numbers of the earlier rows that still count, in order; the sketches begin with all rows of all indexes."""
    live, begin = [np.empty(0, np.int64)], 0
    for one in earlier:
        rows = np.arange(begin, begin + one.rows)
        if one.removed.ids:
            gone = pa.array(one.removed.ids, pa.string())
            rows = rows[~_among(sketches, begin, begin + one.rows, gone)]
        live.append(rows)
        begin += one.rows
    return np.concatenate(live)


def _among(sketches: Sketches, begin: int, end: int, ids: pa.Array) -> npt.NDArray[np.bool_]:
    found = [
        pc.is_in(batch.column("id"), ids).to_numpy(zero_copy_only=False)
        for batch, first in zip(sketches.batches, sketches.begins, strict=True)
        if begin <= first < end
    ]
    return np.concatenate(found) if found else np.empty(0, np.bool_)


_FREE = {
    *("max_cluster_rows", "max_source_loss", "min_alarm_rows"),  # alarms
    *("save_signatures", "save_index"),  # what is written besides
    *("max_num_perm", "false_negative_weight"),  # how the bands were chosen, which are compared themselves
}
"""Values that may differ: they decide about no row."""


def dedup_of(path: Path) -> tuple[Path, Manifest]:
    """The dedup manifest that `path` is, or was made from.

    Raises:
        InputError: there is none.
    """
    path = path / "manifest.json" if path.is_dir() else path
    found = next(((p, m) for p, m in ancestors(path) if m.stage == "dedup"), None)
    if found is None:
        raise InputError(f"{path}: expected the manifest of a dedup stage, or of one that came after it")
    return found


def earlier(path: Path, config: "DedupConfig", kind: str) -> tuple[Earlier, ...]:
    """The dataset at `path` and those that its own dedup was run against, oldest first.

    Comparing with them equals a joint run, the old rows before the new ones, so all must be alike.

    Raises:
        InputError: the manifest is of no dedup, was run without save_index, or one before it is missing.
        ConfigError: a value that decides about rows differs.
        IntegrityError: a manifest, or a list of removed rows, is damaged.
    """
    found = list(_chain(*dedup_of(path)))
    for place, manifest in found:
        _refuse_other(place, manifest, config, kind)
    return tuple(_earlier(*one) for one in reversed(found))


def _chain(path: Path, manifest: Manifest) -> Iterator[tuple[Path, Manifest]]:
    yield path, manifest
    for parent in manifest.parents:
        if parent.get("use") == AGAINST:
            place = find_parent(path, parent)
            if place is None or load(place).version != parent["version"]:
                raise InputError(
                    f"{path}: was run against the dedup {parent['version']}, whose manifest is not where it was: what "
                    "repeats its rows would stay. Bring it back"
                )
            yield from _chain(place, load(place))


def _refuse_other(path: Path, manifest: Manifest, config: "DedupConfig", kind: str) -> None:
    if "index" not in manifest.facts:
        raise InputError(f"{path}: that dedup saved no index; run it again with --save-index")
    unicode = manifest.facts["resources"]["unicode"]
    wanted, theirs = _deciding(config, kind), {"kind": manifest.kind, "unicode": unicode} | manifest.config
    for name in sorted(wanted.keys() | theirs.keys() - _FREE):
        if wanted.get(name) != theirs.get(name):
            raise ConfigError(
                f"against {path}: it was made with {name} {theirs.get(name)!r}, and this run has {wanted.get(name)!r}. "
                "Rows can only be compared under the same values: give this run that one, or run both again"
            )
    print_found = manifest.facts["index"]["fingerprint"]
    if print_found != fingerprint(config):
        raise ConfigError(
            f"against {path}: its index (fingerprint {print_found}) was made by a version of datakit that cuts or "
            f"hashes words otherwise than this one (fingerprint {fingerprint(config)}). Run that dedup again"
        )


def _deciding(config: "DedupConfig", kind: str) -> dict[str, Any]:
    values = {"kind": kind, "unicode": UNICODE_VERSION} | resolved(config)
    return {name: value for name, value in values.items() if name not in _FREE}


def _earlier(path: Path, manifest: Manifest) -> Earlier:
    folder = data_dir(path, manifest)
    return Earlier(
        name=f"{manifest.dataset} {manifest.version}",
        version=manifest.version,
        folder=folder,
        shards=manifest.of_role("index"),
        removed=Removed.read(folder),
    )


def dropped_ids(path: Path, later: Path) -> Iterator[str]:
    """The ids of the rows that the stage of the manifest `later` dropped after the dedup of `path`.

    Raises:
        InputError: that stage did not come after that dedup.
    """
    later = later / "manifest.json" if later.is_dir() else later
    dedup, lineage = dedup_of(path)[1], ancestors(later)
    if dedup.version not in {manifest.version for _, manifest in lineage[1:]}:
        raise InputError(
            f"{later}: expected the manifest of a stage that came after the dedup {dedup.version} of {path}"
        )
    for shard in tables(lineage[0][1], "dropped"):
        for batch in read_shard(data_dir(later, lineage[0][1]) / shard.path, ["id"]):
            yield from batch.column("id").to_pylist()


def remove(path: Path, ids: Iterable[str]) -> tuple[int, list[str]]:
    """Take rows out of the index of a dedup run: (how many it counted until now, the ids that it does not hold).

    The list lies beside the index; runs from now on read it, and say so in their manifests.

    Raises:
        InputError: the manifest is of no dedup, or was run without save_index.
        IntegrityError: the index is damaged.
        UsageError: a run is writing there.
    """
    path, manifest = dedup_of(path)
    if "index" not in manifest.facts:
        raise InputError(f"{path}: that dedup saved no index, so there is nothing to remove rows from")
    wanted = set(ids)
    index = _earlier(path, manifest)
    index.check(1)
    held = lock(index.folder)
    if held is None:
        raise UsageError(f"{index.folder}: a run is writing there; wait for it")
    try:
        asked, known = pa.array(sorted(wanted), pa.string()), set[str]()
        for found in index.ids():
            known.update(found.filter(pc.is_in(found, asked)).to_pylist())
        removed = Removed.read(index.folder)
        removed.plus(known).write(index.folder)
    finally:
        os.close(held)
    return len(known - set(removed.ids)), sorted(wanted - known)
