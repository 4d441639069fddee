"""Rows that a person asked to remove: the list of a dataset, and what is left of them.

`manifests/<dataset>/removed.jsonl` names no row. It holds hashes of the id and of the content of each, salted with
`manifests/removal.salt`, and the day and the reason, which enter no key. The content decides: an id like `file:17` may
become another row's, and a row that occurs twice goes twice. Ingest drops the rows as `removed`, without id and text;
every later stage follows, because its input changes. `datakit gc --purge` takes the old versions from the disk.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

import datakit.storage as storage
from datakit.data import read_rows
from datakit.errors import IntegrityError, UsageError
from datakit.manifest import Manifest, data_dir, load, tables

FORMAT: Final = "datakit.removed_rows"
SALT: Final = "removal.salt"
_STAYS: Final = ("row_key", "id", "source", "lang", "lang_score", "segment_source")


# The list.


@dataclass(frozen=True, slots=True)
class RemovalList:
    """The removed rows of a dataset, as salted hashes."""

    salt: bytes = b""
    rows: dict[str, str] = field(default_factory=dict)
    """Hash of the id -> hash of the content."""

    @property
    def contents(self) -> frozenset[str]:
        """The hashes of the contents, which decide."""
        return frozenset(self.rows.values())

    @property
    def sha256(self) -> str:
        """Over the hashes of the contents: what the result of ingest depends on."""
        return hashlib.sha256("\n".join(sorted(self.contents)).encode()).hexdigest()

    def hash_of(self, value: str | bytes) -> str:
        """The salted hash of an id, or of the digest of a content; 32 hex digits (BLAKE2b)."""
        data = value.encode() if isinstance(value, str) else value
        return hashlib.blake2b(data, key=self.salt, digest_size=16).hexdigest()

    def holds(self, content_hashes: pa.Array) -> list[bool]:
        """For each `content_hash` (strings), whether rows with that content are removed."""
        contents = self.contents
        return [self.hash_of(value) in contents for value in content_hashes.to_pylist()]

    def blank(self, batch: pa.RecordBatch, removed: pa.Array, ids: pa.Array) -> dict[str, pa.Array]:
        """The columns of a batch without what the removed rows (bool[rows]) said; their ids become hashes of `ids`."""
        names = [f"removed:{self.hash_of(name)[:16]}" for name in ids.filter(removed).to_pylist()]
        columns = {"id": pc.replace_with_mask(ids, removed, pa.array(names, pa.string()))}
        for column, kept in zip(batch.schema, batch.columns, strict=True):
            if column.name not in _STAYS:
                nothing = pa.scalar(None if column.nullable else _empty(column.type), column.type)
                columns[column.name] = pc.if_else(removed, nothing, kept)
        return columns

    @classmethod
    def load(cls, path: Path) -> "RemovalList":
        """The list of a dataset; empty where there is none.

        Raises:
            IntegrityError: the list is damaged, or its salt is missing: removed rows would come back.
        """
        if not path.is_file():
            return cls()
        try:
            head, *rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
            found, mark = {row["id"]: row["content"] for row in rows}, head["salt"]
        except (OSError, ValueError, KeyError, TypeError):
            found, mark = {}, ""
        if not found:
            raise IntegrityError(f"{path}: the list of removed rows is damaged, and they would come back: restore it")
        salt_file = path.parents[1] / SALT
        salt = bytes.fromhex(salt_file.read_text()) if salt_file.is_file() else b""
        if mark != _salt_mark(salt):
            raise IntegrityError(
                f"{salt_file}: is not the salt of {path}: rows that were removed would not be found, and come back. "
                "Restore it"
            )
        return cls(salt, found)


def _empty(kind: pa.DataType) -> Any:
    return [] if pa.types.is_list(kind) else "" if pa.types.is_string(kind) else 0


def _salt_mark(salt: bytes) -> str:
    return hashlib.sha256(salt).hexdigest()[:16]


def list_of(root: Path, dataset: str) -> Path:
    """Where the list of a dataset is."""
    return root / "manifests" / dataset / "removed.jsonl"


@dataclass(frozen=True, slots=True)
class Removed:
    """What `remove` did."""

    added: int
    """Ids that are new on the list."""
    rows: int
    """Rows of the newest ingest that have the content of these ids."""
    before: int
    """Ids that were on the list already."""
    unknown: tuple[str, ...]
    """Ids that the newest ingest does not have."""


def remove(root: Path, dataset: str, ids: Sequence[str], why: str) -> Removed:
    """Put rows on the list of a dataset. Nothing else changes: the next run drops them.

    Raises:
        UsageError: the dataset has not been ingested, or none of the ids is known.
        InputError: the shards of its ingest are not there.
    """
    path, target = root / "manifests" / dataset / "ingest.json", list_of(root, dataset)
    if not path.is_file():
        raise UsageError(f"{path}: is not there; rows are found by their id in what was ingested")
    manifest, known = load(path), RemovalList.load(target)
    wanted, contents = set(ids), dict[str, str]()
    for batch in _kept(path, manifest, ["id", "content_hash"]):
        rows = batch.filter(pc.is_in(batch.column("id"), pa.array(sorted(wanted), pa.string())))
        contents |= dict(zip(rows["id"].to_pylist(), rows["content_hash"].to_pylist(), strict=True))
    made = RemovalList(known.salt or _project_salt(root), known.rows)
    listed = {name for name in wanted if made.hash_of(name) in known.rows}
    unknown = sorted(wanted - contents.keys() - listed)
    new = {made.hash_of(name): made.hash_of(contents[name]) for name in contents.keys() - listed}
    if not new and not listed:
        raise UsageError(f"{path}: its rows have none of these ids ({', '.join(map(repr, unknown[:3]))})")
    if new:
        head = [json.dumps({"format": FORMAT, "salt": _salt_mark(made.salt)})]
        lines = target.read_text(encoding="utf-8").splitlines() if target.exists() else head
        about = {"on": time.strftime("%Y-%m-%d", time.gmtime()), "why": why}
        lines += [json.dumps({"id": n, "content": c} | about, ensure_ascii=False) for n, c in sorted(new.items())]
        storage.write_whole(target, ("\n".join(lines) + "\n").encode())
    gone = pa.array(sorted(set(contents.values())), pa.string())
    counts = (pc.sum(pc.is_in(batch.column(0), gone)).as_py() or 0 for batch in _kept(path, manifest, ["content_hash"]))
    return Removed(len(new), sum(counts), len(listed), tuple(unknown))


def _kept(path: Path, manifest: Manifest, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Columns of the rows that a stage kept."""
    folder = data_dir(path, manifest)
    for shard in tables(manifest, "kept"):
        yield from read_rows(folder, shard, columns)


def _project_salt(root: Path) -> bytes:
    file = root / "manifests" / SALT
    if not file.is_file():
        storage.write_whole(file, (os.urandom(32).hex() + "\n").encode())
    return bytes.fromhex(file.read_text())
