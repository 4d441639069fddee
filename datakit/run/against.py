"""The earlier datasets that a dedup run compares its rows with: found by a manifest, like in everything that counts."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from datakit.config import resolved
from datakit.dedup.config import DedupConfig
from datakit.dedup.index import Earlier, fingerprint
from datakit.dedup.removed import Removed
from datakit.errors import ConfigError, InputError, UsageError
from datakit.manifest import AGAINST, Manifest, data_dir, find_parent, load
from datakit.engine.runner import ancestors, tables
from datakit.engine.store import lock
from datakit.text.characters import UNICODE_VERSION
from datakit.data import read_shard

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


def earlier(path: Path, config: DedupConfig, kind: str) -> tuple[Earlier, ...]:
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


def _refuse_other(path: Path, manifest: Manifest, config: DedupConfig, kind: str) -> None:
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


def _deciding(config: DedupConfig, kind: str) -> dict[str, Any]:
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
