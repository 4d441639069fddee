"""The index of a dedup run, and `--against`: comparing new rows with the kept rows of earlier runs.

A run with `save_index` writes, for each shard, one Arrow IPC file with the id of each kept row and what others are
compared by, in row order: the digest, bands and shingles of a document, the hashes of the lines that were not cut out
of it, ... A later run loads the indexes of an earlier run and of all runs which that one was compared with, checks that
the settings match, and compares its rows with theirs.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import datakit.storage as storage
from datakit.config import resolved
from datakit.data import MESSAGES
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
    kept: int
    """Rows that the run kept."""

    @property
    def rows(self) -> int:
        """Rows in the index; more than one for a text that `dedup_repeats` cut in two."""
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
    made = run.manifest
    name = f"{made.dataset} {made.version}"
    return EarlierRun(name, made.version, folder, made.of_role("index"), made.ledger.rows.kept)
