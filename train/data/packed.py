"""Packed rows of manifests, memory-mapped, with their tokenizer facts.

A `PackedSet` is one file with rows of one length. A `Mixture` is the training data of a run: the sets of all row
lengths and of all manifests, with rows numbered from 0 across sets.
"""

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import datakit.storage as storage
from datakit.config import file_mark
from datakit.errors import ConfigError, InputError, ManifestError
from datakit.manifest import check_shards, data_dir, load
from datakit.pack.format import SOURCE_DTYPE, Header, Packed
from train.data.order import Int64

Part = Literal["packed", "validation"]
FORMATS = ("bin2d", "bin")
"""Formats of packed sets that are trained on: rows with a stride, or without padding."""
VERIFY_HELP = "check every byte of the data against its checksum before the first step, at 1 GB/s a core or more"
SLOW_MB = 5000
"""Megabytes whose check is announced, because it takes seconds."""


def place_of(given: str) -> Path:
    """Where a manifest is on this machine, from its path, its URL or those of its folder; nothing is fetched yet."""
    path = storage.local(given)
    folder = path.suffix != ".json" if storage.is_url(given) else path.is_dir()
    return path / "manifest.json" if folder else path


def fetch(path: Path) -> None:
    """Bring the files of a pack manifest on an object store to this machine, whole; prints a line for each.

    Raises:
        IntegrityError: an object is missing or was changed after it was packed.
        MissingExtraError: obstore is not installed.
    """
    if storage.url_of(path) is None:
        return
    storage.pull_result(path)
    found = load(path)
    for shard in found.shards:
        print(f"[train] data: {path}: fetching {shard.path}, {shard.bytes / 1e6:,.1f} MB", flush=True)
        storage.bring(data_dir(path, found) / shard.path, shard.bytes, shard.sha256)


def bring(manifests: Sequence[Path], verify: bool = True) -> None:
    """Fetch pack manifests, and compare their files with the checksums: ids, labels, boundaries, sources, tokenizer.

    What was checked in this process and did not change since is not checked again.

    Raises:
        ManifestError: no manifest.
        IntegrityError: the manifest or a file was changed after it was written.
    """
    for path in dict.fromkeys(manifests):
        fetch(path)
        if not verify:
            continue
        found = load(path)
        folder = data_dir(path, found)
        marks = tuple(tuple(file_mark(folder / s.path)) if (folder / s.path).is_file() else () for s in found.shards)
        _verify(path, marks)


@lru_cache(maxsize=64)
def _verify(path: Path, marks: tuple[tuple[int, ...], ...]) -> None:
    found = load(path)
    folder, name, shards = data_dir(path, found), f"[train] data: {path} ({found.version})", found.shards
    size, begin = sum(s.bytes for s in shards) / 1e6, time.monotonic()
    if size > SLOW_MB:
        print(f"{name}: checking {size:,.0f} MB", flush=True)
    with ThreadPoolExecutor(min(len(shards), os.cpu_count() or 1) or 1) as pool:
        list(pool.map(lambda shard: check_shards(folder, [shard]), sorted(shards, key=lambda s: -s.bytes)))
    rate = size / max(time.monotonic() - begin, 1e-9)
    print(f"{name} is intact: {size:,.1f} MB, {rate:,.0f} MB/s", flush=True)


@dataclass(frozen=True, slots=True)
class PackedSet:
    """One file of packed rows, with the facts of its manifest."""

    manifest: Path
    version: str
    packed: Packed
    lengths: Int64
    """Real tokens of each row."""
    tokenizer: dict[str, Any]
    """Tokenizer facts of the manifest: sha256, vocab_size, special ids, chat_template_sha256."""
    tokenizer_files: tuple[Path, ...]

    @classmethod
    def open_all(
        cls, manifest: Path, part: Part = "packed", verify: bool = True, in_memory: bool = False
    ) -> list["PackedSet"]:
        """Map the rows of a pack manifest, one set per row length, shortest first; empty sets are skipped.

        `part` is the training data (`packed`) or the validation split, if there is one. With `in_memory` the files are
        read whole instead of mapped.

        Raises:
            ManifestError: not a pack manifest in format bin2d or bin, or no rows or labels.
            IntegrityError: files are missing or changed (`bring`).
        """
        fetch(manifest)
        found = load(manifest)
        packed = found.facts.get(part, {})
        if part == "validation" and found.stage == "pack" and not packed:
            raise ManifestError(f"{manifest}: has no validation rows; pack with, for example, --validation 0.01")
        headers = packed.get("buckets", [packed])
        if found.stage != "pack" or any(h.get("prefix") is None or h.get("format") not in FORMATS for h in headers):
            raise ManifestError(
                f"{manifest}: expected the manifest of a pack stage in format bin2d or bin, found stage "
                f"{found.stage!r} with format {packed.get('format')!r}; run `datakit pack --format bin2d` first"
            )
        folder = data_dir(manifest, found)
        bring([manifest], verify)
        tokenizer = dict(found.facts.get("tokenizer", {}))
        files = tuple(folder / f for f in tokenizer.pop("files", ()))
        mapped = [p for h in headers if (p := Packed.open(folder / h["prefix"])).header.num_samples]
        mapped = [_in_memory(p) for p in mapped] if in_memory else mapped
        if not mapped:
            raise ManifestError(f"{manifest}: has no rows, so there is nothing to train on")
        if not any(p.labels is None or len(p.labels) for p in mapped):
            raise ManifestError(f"{manifest}: no token is a label, so there is no loss; check the chat template")
        return [cls(manifest, found.version, p, _real_lengths(manifest, p), tokenizer, files) for p in mapped]

    @classmethod
    def of_sequences(
        cls, where: Path, version: str, sequences: Sequence[Sequence[int]], header: Header, tokenizer: dict[str, Any],
        tokenizer_files: tuple[Path, ...],
    ) -> "PackedSet":  # fmt: skip
        """A set in memory with one unlabelled sequence per row; `where` and `version` name it, as a manifest would.

        `header` is for the rows; its numbers of rows and tokens are set here.
        """
        lengths = np.array([len(s) for s in sequences], np.int64)
        header = replace(header, num_samples=len(lengths), seq_len=max(1, int(lengths.max()) - 1), labelled=False)
        ids = np.full((len(lengths), header.stride), header.pad_id, header.dtype)
        for row, sequence in zip(ids, sequences, strict=True):
            row[: len(sequence)] = sequence
        bounds = np.stack([np.zeros_like(lengths), lengths], 1).astype(np.int32).ravel()
        index = np.stack([np.arange(0, 2 * len(lengths), 2), np.full(len(lengths), 2)], 1).astype(np.uint64)
        sources = np.zeros(len(lengths), SOURCE_DTYPE)
        sources["row_key"] = sources["row"] = np.arange(len(lengths))
        sources["tokens"] = lengths
        packed = Packed(header, ids, bounds, index, None, None, sources)
        return cls(where, version, packed, lengths, tokenizer, tokenizer_files)

    @property
    def header(self) -> Header:
        """The header of the rows."""
        return self.packed.header


def _in_memory(packed: Packed) -> Packed:
    """The same rows, read into memory."""
    mapped = {f.name: getattr(packed, f.name) for f in fields(packed)}
    read: dict[str, Any] = {name: np.array(v) for name, v in mapped.items() if isinstance(v, np.ndarray)}
    return replace(packed, **read)


def _real_lengths(manifest: Path, packed: Packed) -> Int64:
    index = np.asarray(packed.segment_index).astype(np.int64)
    filled = (index[:, 1] >= 2).reshape(-1, packed.header.rows_per_unit).any(1)  # of a pair, one side may be missing
    if not filled.all():
        row = int(filled.argmin()) * packed.header.rows_per_unit
        raise InputError(f"{manifest}: packed row {row} has no sequence; pack the set again")
    return np.asarray(packed.segments[index.sum(1) - 1], dtype=np.int64)


@dataclass(frozen=True)
class Mixture:
    """The training data of a run: several sets, with rows numbered from 0 across sets."""

    sets: tuple[PackedSet, ...]
    of_manifest: tuple[int, ...] = field(init=False)
    """Number of the manifest of each set."""

    def __post_init__(self) -> None:
        places = list(dict.fromkeys(s.manifest for s in self.sets))
        object.__setattr__(self, "of_manifest", tuple(places.index(s.manifest) for s in self.sets))
        for other in self.sets[1:]:
            _check_alike(self.sets[0], other)

    @classmethod
    def open(cls, manifests: Sequence[Path], verify: bool = True, in_memory: bool = False) -> "Mixture":
        """Map the rows of several pack manifests.

        Raises:
            ManifestError: see `PackedSet.open_all`; or tokenizers, vocabularies or kinds of rows differ.
            IntegrityError: a file is missing or changed.
            ConfigError: a manifest is listed twice.
        """
        if len(set(manifests)) != len(manifests):
            raise ConfigError(f"--manifest has one manifest twice: {', '.join(map(str, manifests))}")
        return cls(tuple(s for m in manifests for s in PackedSet.open_all(m, "packed", verify, in_memory)))

    @property
    def manifests(self) -> list[Path]:
        """All manifests, each once, in order."""
        return list(dict.fromkeys(s.manifest for s in self.sets))

    @property
    def manifest(self) -> Path:
        """The first manifest."""
        return self.sets[0].manifest

    @property
    def name(self) -> str:
        """All manifests, for messages."""
        return ", ".join(map(str, self.manifests))

    @property
    def version(self) -> str:
        """The versions of all manifests."""
        return "+".join({s.manifest: s.version for s in self.sets}.values())

    @cached_property
    def header(self) -> Header:
        """The header of the set with the longest rows."""
        return max((s.header for s in self.sets), key=lambda h: h.seq_len)

    @property
    def tokenizer(self) -> dict[str, Any]:
        """Tokenizer facts of the first labelled set, whose chat template is in use; else of the first set."""
        return self._tokenizer_set.tokenizer

    @property
    def tokenizer_files(self) -> tuple[Path, ...]:
        """The tokenizer files to copy into checkpoints."""
        return self._tokenizer_set.tokenizer_files

    @property
    def _tokenizer_set(self) -> PackedSet:
        return next((s for s in self.sets if s.packed.labels is not None), self.sets[0])

    @cached_property
    def lengths(self) -> Int64:
        """Real tokens of each row."""
        return np.concatenate([s.lengths for s in self.sets])

    @cached_property
    def first_rows(self) -> Int64:
        """Number of the first row of each set, followed by the number of all rows."""
        return np.cumsum([0, *(len(s.lengths) for s in self.sets)])

    def unlabelled(self) -> "Mixture":
        """The same rows, with every target as label."""
        plain = (replace(s, packed=replace(s.packed, labels=None, label_index=None)) for s in self.sets)
        return Mixture(tuple(plain))

    def places(self, rows: Int64) -> list[tuple[PackedSet, Int64, npt.NDArray[np.bool_]]]:
        """Split `rows` by set: the set, the row numbers within it, and a mask over `rows`."""
        if len(self.sets) == 1:
            return [(self.sets[0], rows, np.ones(len(rows), np.bool_))] if len(rows) else []
        of_row = np.searchsorted(self.first_rows, rows, side="right") - 1
        found = []
        for i in np.unique(of_row):
            here = of_row == i
            found.append((self.sets[i], rows[here] - self.first_rows[i], here))
        return found

    def widths(self, bucket_sizes: tuple[int, ...]) -> Int64:
        """The bucket of each row: the smallest one with room for its input positions.

        The default buckets are the row lengths; for a single row length a quarter, a half and all of it.

        Raises:
            ConfigError: a row is longer than the largest bucket.
        """
        lengths = sorted({s.header.seq_len for s in self.sets})
        if len(lengths) == 1:
            lengths = sorted({max(1, lengths[0] // 4), max(1, lengths[0] // 2), lengths[0]})
        sizes = np.array(bucket_sizes or lengths)
        needed = np.maximum(self.lengths - 1, 1)
        if needed.max() > sizes[-1]:
            ((owner, (row,), _),) = self.places(np.array([needed.argmax()]))
            raise ConfigError(
                f"bucket_sizes {tuple(map(int, sizes))}: row {row} of {owner.manifest} needs "
                f"{int(needed.max())} positions; add a bucket of at least that size"
            )
        widths: Int64 = sizes[np.searchsorted(sizes, needed)].astype(np.int64)
        return widths

    def describe(self, rows: Int64) -> list[dict[str, Any]]:
        """Packed rows and their source rows, by manifest and row length, for messages."""
        found = []
        for data, own, _ in self.places(rows):
            sources = data.packed.sources
            keys = np.sort(sources["row_key"][np.isin(sources["row"], own)]).tolist()
            where = {"manifest": str(data.manifest), "seq_len": data.header.seq_len}
            found.append(where | {"packed_rows": own.tolist(), "row_keys": keys})
        return found


def _check_alike(a: PackedSet, b: PackedSet) -> None:
    """Refuse sets with different tokenizers, vocabularies or kinds of rows."""
    facts = [(f"tokenizer {k}", a.tokenizer.get(k), b.tokenizer.get(k)) for k in ("sha256", "pad_id", "eos_id")]
    facts += [(k, getattr(a.header, k), getattr(b.header, k)) for k in ("vocab_size", "rows_per_unit")]
    if a.packed.labels is not None and b.packed.labels is not None:
        templates = [s.tokenizer.get("chat_template_sha256") for s in (a, b)]
        facts.append(("chat_template_sha256", templates[0], templates[1]))
    for name, one, two in facts:
        if one != two:
            raise ManifestError(
                f"{a.manifest} has {name} {one!r}, but {b.manifest} has {two!r}: they cannot be mixed; "
                f"make both with the same tokenizer, template and kind of rows"
            )


def mixture(data: PackedSet | Mixture) -> Mixture:
    """A mixture of one set; a mixture is returned unchanged."""
    return data if isinstance(data, Mixture) else Mixture((data,))
