"""Manifests: what one run of one stage read, decided and wrote. Load, save, verify. Standard library only.

A manifest is canonical JSON (sorted keys, one-space indent, newline at the end), written aside and renamed, after
everything it names: if it exists, the stage is complete. It holds nothing of the machine that made it; time, host
and where inputs lay are in `<stage>.run.json` beside it.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Self

import datakit.storage as storage
from datakit.config import CRC, digest, digest_of, sha256_file
from datakit.errors import FormatVersionError, IntegrityError, ManifestError, ModelError
from datakit.storage import write_whole

FORMAT = "datakit.manifest"
FORMAT_VERSION = 2


ROLES = ("kept", "dropped", "quarantine", "signals", "matches", "index", "cuts")
"""What a shard holds: rows that stayed, rows that went, records that could not be read; what was measured of rows,
which rows hold which evaluation items; what a later run needs to know of the kept rows to find their duplicates; what
was cut out of texts."""

AGAINST = "against"
"""`use` of a parent manifest whose rows did not come in, but were compared with."""


COMPARED_WITH = (AGAINST, "removed")
"""`resources` of a stage that concern the comparison of rows alone, not the rows by themselves."""


class _Plain:
    """A part of a manifest that is a table of JSON there."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """The values as a manifest file holds them: `into` is called `in`, which Python reserves; no null place."""
        found: dict[str, Any] = asdict(self, dict_factory=_renamed)  # type: ignore[call-overload]
        return found


def _renamed(values: list[tuple[str, Any]]) -> dict[str, Any]:
    return {"in" if name == "into" else name: v for name, v in values if name != "first_file" or v is not None}


@dataclass(frozen=True, slots=True)
class Shard(_Plain):
    """One file that a stage wrote."""

    path: str
    """Relative to the data folder; its first part is one of `ROLES`."""
    rows: int
    bytes: int
    sha256: str
    content_sha256: str | None = None
    """Over the values alone, so that another Parquet version gives the same; None for files that are not tables."""
    first_file: int | None = None
    """The place, in the sorted list of input files, of the file that the rows come from (of several: of the first one);
    None where the rows have no `row_key`."""

    def __post_init__(self) -> None:
        parts = PurePosixPath(self.path).parts
        if not parts or parts[0] not in ROLES or ".." in parts or "\\" in self.path:
            raise ManifestError(f"shard path {self.path!r} leaves the data folder or names no role")

    @property
    def role(self) -> str:
        """One of `ROLES`."""
        return PurePosixPath(self.path).parts[0]


@dataclass(frozen=True, slots=True)
class Count(_Plain):
    """What became of the rows (or tokens) that went in."""

    into: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    """By reason."""
    quarantined: int = 0
    edited: int = 0
    """Among the kept: rows whose text was changed."""
    padding: int = 0
    """Beside the balance: tokens that only fill rows."""

    @property
    def balance(self) -> int:
        """In minus everything that came out; 0 for a ledger that adds up."""
        return self.into - self.kept - sum(self.dropped.values()) - self.quarantined

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Self:
        """The count of a manifest file."""
        values = dict(plain)
        return cls(into=values.pop("in"), **values)


@dataclass(frozen=True, slots=True)
class Ledger(_Plain):
    """The account of a stage: rows, tokens where there are tokens, and remarks that enter no balance."""

    rows: Count
    tokens: Count | None = None
    notes: dict[str, int] = field(default_factory=dict)
    """Counts beside the balance: `id_clashes`, `duplicate_of_dropped`, ..."""

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Self:
        """The ledger of a manifest file."""
        tokens = plain["tokens"]
        return cls(Count.from_json(plain["rows"]), None if tokens is None else Count.from_json(tokens), plain["notes"])

    def problems(self) -> Iterator[str]:
        """What does not add up."""
        for unit, count in (("rows", self.rows), ("tokens", self.tokens)):
            if count is not None and count.balance:
                yield f"ledger: {count.into} {unit} in, but {count.into - count.balance} accounted for"


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """One stage run. `version` is derived from all the other values."""

    dataset: str
    kind: str
    stage: str
    key: str
    """SHA-256 over parents, config, resources and code: two runs with one key give the same bytes."""
    parents: tuple[dict[str, Any], ...]
    """`{"manifest": stage, "version", "sha256"}`, with `"use": "against"` where its rows did not come in; or
    `{"raw": name, "bytes", "sha256"}`."""
    config: dict[str, Any]
    code: str
    ledger: Ledger
    shards: tuple[Shard, ...]
    facts: dict[str, Any] = field(default_factory=dict)
    """What else is true of the result: tokenizer, packed header, LSH curve, alarms, layouts of the inputs."""
    version: str = field(init=False)
    """The first 12 hex digits of the SHA-256 over everything else."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "version", digest(self._body())[:12])

    def _body(self) -> dict[str, Any]:
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "version"}
        made = {"ledger": self.ledger.to_json(), "shards": [s.to_json() for s in self.shards]}
        return {"format": FORMAT, "format_version": FORMAT_VERSION} | plain | made

    def to_bytes(self) -> bytes:
        """The manifest file's bytes."""
        body = self._body() | {"version": self.version}
        return (json.dumps(body, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()

    @classmethod
    @lru_cache(maxsize=64)  # a command looks at the same few manifests again and again
    def from_bytes(cls, data: bytes, where: str) -> Self:
        """Read a manifest file's bytes. Callers share what comes back, and leave its dictionaries as they are.

        Raises:
            ManifestError: not a manifest.
            FormatVersionError: of an earlier format version.
            IntegrityError: its bytes are not those that were written.
        """
        try:
            body = json.loads(data)
            found = (body.pop("format"), body.pop("format_version"))
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as e:
            raise ManifestError(f"{where}: not a datakit manifest ({type(e).__name__})") from None
        if found != (FORMAT, FORMAT_VERSION):
            if found[0] == FORMAT and isinstance(found[1], int) and found[1] < FORMAT_VERSION:
                versions = f"format version {found[1]}, expected {FORMAT_VERSION}"
                how = "Run its stage again; `datakit run` does it for a whole dataset."
                raise FormatVersionError(f"{where}: an earlier version of datakit wrote it ({versions}). {how}")
            raise ManifestError(f"{where}: expected {(FORMAT, FORMAT_VERSION)}, found {found}")
        try:
            version, ledger = body.pop("version"), body.pop("ledger")
            manifest = cls(
                **body
                | {
                    "parents": tuple(body["parents"]),
                    "shards": tuple(Shard(**s) for s in body["shards"]),
                    "ledger": Ledger.from_json(ledger),
                }
            )
        except (KeyError, TypeError, ValueError, AttributeError) as e:
            raise ManifestError(f"{where}: a manifest value is missing or of the wrong type ({e})") from None
        if data != manifest.to_bytes():
            why = f"it says version {version}, its values give {manifest.version}"
            how = "Restore it, or run the stage again."
            raise IntegrityError(f"{where}: the manifest was changed after it was written ({why}). {how}")
        return manifest

    def of_role(self, role: str) -> tuple[Shard, ...]:
        """The shards of one role, in order."""
        return tuple(s for s in self.shards if s.role == role)


def load(path: Path | str) -> Manifest:
    """Read a manifest file.

    Raises:
        ManifestError: missing, or not a manifest.
        IntegrityError: changed after it was written.
    """
    try:
        return Manifest.from_bytes(_at_hand(Path(path)).read_bytes(), str(path))
    except OSError as e:
        raise ManifestError(f"{path}: cannot read the manifest ({e.strerror}); has the stage run to its end?") from None


def _at_hand(path: Path) -> Path:
    """A small file, from the store where it is not on this machine; it may be missing there, too."""
    return path if path.is_file() else storage.refresh(path)


def load_readable(path: Path) -> Manifest | None:
    """`load`, and None for a manifest that an earlier version of datakit wrote."""
    try:
        return load(path)
    except FormatVersionError:
        return None


def is_manifest(path: Path) -> bool:
    """Whether a file looks like a manifest; cheap, for telling it from raw input."""
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open("rb") as f:
        head = f.read(4096)
    return head.startswith(b"{\n ") and b'"code": "' in head


def run_file(path: Path) -> Path:
    """The file beside a manifest that tells when, where and from what it was made."""
    return path.with_name(f"{path.stem}.run.json")


def load_run(path: Path) -> dict[str, Any]:
    """The run file of a manifest; empty where there is none."""
    try:
        run = json.loads(_at_hand(run_file(path)).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return run if isinstance(run, dict) else {}


def purged_on(path: Path, manifest: Manifest) -> str:
    """The day on which `datakit gc --purge` removed the shards of a manifest; empty where they should be there."""
    day: str = load_run(path).get("purged", "")
    folder = data_dir(path, manifest)
    own = folder == path.parent  # in an --output folder the manifest lies beside its shards
    there = any(storage.exists(folder / s.path) for s in manifest.shards) if own else storage.exists(folder)
    return day if day and not there else ""


def save(path: Path, manifest: Manifest, run: dict[str, Any]) -> None:
    """Write the run file, the copies in `history/`, and last the manifest itself; the caller holds the data folder."""
    for name in (f".{path.stem}.json", f".{path.stem}.run.json", f".{path.stem}-*.json"):
        for stale in path.parent.rglob(f"{name}.*.tmp"):  # of a run that was killed just here
            stale.unlink()
    data, kept = manifest.to_bytes(), _history(path, manifest.version)
    files = {run_file(path): run, path: None}
    if path.name != "manifest.json":
        places = {k: run[k] for k in ("parents", "raw") if k in run}
        deeper = run | {k: {name: _deeper(place) for name, place in found.items()} for k, found in places.items()}
        files = {run_file(kept): deeper, kept: None} | files
    for file, about in files.items():
        write_whole(file, data if about is None else (json.dumps(about, indent=1, sort_keys=True) + "\n").encode())


def _deeper(place: str) -> str:
    """A relative path as it is from a folder below."""
    return f"../{place}" if place and not os.path.isabs(place) and "://" not in place else place


def renew_run_file(path: Path, manifest: Manifest, locations: Mapping[str, Mapping[str, str]]) -> bool:
    """Write the run file again if it does not say that the inputs are in these `locations`; returns whether.

    It was lost or damaged, or the inputs were moved. What the run measured is taken from the copy in `history/`.
    """
    run = load_run(path)
    if all(run.get(kind) == places for kind, places in locations.items()):
        return False
    save(path, manifest, load_run(_history(path, manifest.version)) | run | dict(locations))
    return True


def data_dir(path: Path | str, manifest: Manifest) -> Path:
    """The folder that a manifest's shard paths are relative to.

    `DIR/manifest.json` lies in its data folder; `manifests/<dataset>/<stage>.json` (and its history) belongs to
    `data/<dataset>/<stage>/<key>/` beside `manifests`.
    """
    path = Path(path)
    if path.name == "manifest.json":
        return path.parent
    folder = path.parent.parent if path.parent.name == "history" else path.parent
    return folder.parent.parent / "data" / manifest.dataset / manifest.stage / manifest.key[:16]


def find_parent(path: Path, parent: dict[str, Any]) -> Path | None:
    """Where a parent manifest lies now: the place in the run file, or the history beside that place."""
    lay = load_run(path).get("parents", {}).get(parent["version"])
    if lay is None:
        return None
    place: Path = storage.local(lay) if "://" in lay else (path.parent / lay).resolve()
    history = _history(place, parent["version"])
    for candidate in (place, history):
        if _at_hand(candidate).is_file() and sha256_file(candidate) == parent["sha256"]:
            # a damaged file is not excused by its copy
            return candidate if candidate == place or _is_whole(place) else place
    return place if place.is_file() else None


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


def tables(manifest: Manifest, role: str) -> tuple[Shard, ...]:
    """The shards of a role that are tables of rows, in order."""
    return tuple(s for s in manifest.of_role(role) if s.path.endswith(".parquet"))


def check_shards(folder: Path, shards: Iterable[Shard]) -> None:
    """Compare every byte of some files with their checksums, before anything reads them.

    Raises:
        IntegrityError: a file is missing, truncated or changed.
    """
    for shard in shards:
        check_file(folder, shard.path, shard.bytes, shard.sha256)


def check_file(folder: Path, path: str, size: int, sha256: str) -> None:
    """Compare every byte of a file with its entry in a manifest or in a unit's record; fetch it if it is not here.

    Raises:
        IntegrityError: it is missing, truncated or changed.
    """
    file = storage.bring(folder / path, size, sha256)
    if problem := difference(file, size, sha256):
        raise IntegrityError(damaged(file, problem))


def difference(file: Path, size: int, sha256: str) -> str:
    """How a file differs from its entry in a manifest or in a unit's record; empty where it does not."""
    try:
        if (found := file.stat().st_size) != size:
            return f"expected {size} bytes, found {found}"
        with file.open("rb") as opened:
            found_sha256 = digest_of(opened, sha256)
    except FileNotFoundError:
        return "missing"
    except OSError as e:
        return f"cannot be read: {e.strerror}"
    return "" if found_sha256 == sha256 else f"expected sha256 {sha256}, found {found_sha256}"


def digest_of_work(file: Path, folder: Path) -> str:
    """The digest of a work file, which no result keeps: CRC-32, or SHA-256 where `folder` lies on an object store,
    whose answers are compared with it."""
    with file.open("rb") as opened:
        return digest_of(opened, CRC if storage.url_of(folder) is None else "")


def tokenizer_file(given: str | os.PathLike[str]) -> Path:
    """The tokenizer.json that is meant by a file, a folder with one, or a result that has one (its manifest or folder).

    A name that is neither is one of the Hugging Face Hub: see `hub_folder`.

    Raises:
        ModelError: none of these.
        IntegrityError: the files of the result's tokenizer were changed.
    """
    path = storage.here(given)
    if not path.exists() and (of_hub := hub_folder(str(given), "tokenizer.json", TOKENIZER_FILES)):
        path = of_hub
    file = path / "tokenizer.json" if path.is_dir() else path
    result = path / "manifest.json" if path.is_dir() and not file.is_file() else file
    if is_manifest(result):  # the manifest of a stage may be called tokenizer.json, too
        found = load(result)
        shards = [s for s in found.of_role("kept") if PurePosixPath(s.path).parent.name == "tokenizer"]
        files = [s.path for s in shards if s.path.endswith("/tokenizer.json")]
        if not files:
            raise ModelError(f"{result}: the result of {found.stage} has no tokenizer; that of tokenize has one")
        check_shards(data_dir(result, found), shards)
        return data_dir(result, found) / files[0]
    if not file.is_file():
        raise ModelError(
            f"{given}: expected a tokenizer.json, a folder with one, or a result that has one. Give --tokenizer"
        )
    return file


TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja")
"""What a tokenizer is read from."""


def hub_folder(name: str, file: str, fetch: Sequence[str] = ()) -> Path | None:
    """The folder of a repository of the Hugging Face Hub that has `file`; None if `name` names no repository.

    A name is `owner/repository` or `repository`, with `@revision` (a commit, a tag, a branch) for another one than
    `main`. What the cache of the Hub has is taken as it is, and nothing is asked, so that runs of one machine agree. Of
    what it does not have, the files `fetch` are fetched where huggingface_hub is installed.

    Raises:
        ModelError: neither; with the line that fetches it.
    """
    repository, _, revision = name.partition("@")
    if not re.fullmatch(r"[\w.-]*\w(/[\w.-]*\w)?", repository) or repository.endswith(".json"):
        return None
    home = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface"))
    cache = Path(os.environ.get("HF_HUB_CACHE", home / "hub")) / f"models--{repository.replace('/', '--')}"
    branch = cache / "refs" / (revision or "main")
    folder = cache / "snapshots" / (branch.read_text().strip() if branch.is_file() else revision or "main")
    if (folder / file).is_file():
        return folder
    problem = "nor in its cache"
    try:
        if fetch:
            from huggingface_hub import snapshot_download

            return Path(snapshot_download(repository, revision=revision or None, allow_patterns=[*fetch]))
    except ImportError:
        problem += "; huggingface_hub, which fetches it, is not installed (the extra `remote`)"
    except Exception as e:  # of its HTTP client, OSError, ValueError
        problem += f"; {str(e).strip().splitlines()[0]}"
    line = f"hf download {repository}" + (f" --revision {revision}" if revision else "")
    raise ModelError(
        f"{name}: expected a {file}, a folder with one, or a repository of the Hugging Face Hub with one; found no "
        f"such file or folder here, {problem}. Where there is a network, this line fetches it: `{line}`"
    )


def damaged(file: Path, problem: str) -> str:
    """The message about a file that differs from its manifest."""
    return (
        f"{file}: {problem}. The file was damaged or changed after datakit wrote it. Run `datakit run` again, "
        "or the same command: it makes the file anew. `datakit verify` on a manifest lists all that is damaged"
    )


def _history(path: Path, version: str) -> Path:
    folder = path.parent if path.parent.name == "history" else path.parent / "history"
    stem = path.stem.removesuffix(f"-{version}") if path.parent.name == "history" else path.stem
    return folder / f"{stem}-{version}.json"


def _is_whole(path: Path) -> bool:
    try:
        load(path)
    except IntegrityError:
        return False
    except ManifestError:
        return not path.exists()
    return True


Inspect = Callable[[Path, Shard], Iterator[str]]
"""Reads a shard of a data folder as a table and yields what differs from its entry; by whoever may import pyarrow."""


def verify(path: Path, inspect: Inspect | None = None) -> Iterator[tuple[str, str | None]]:
    """Recompute every checksum and count of a manifest and of all that it was made from.

    Yields one (name, problem) for each thing checked; problem is None where it is as the manifest says.
    """
    seen, waiting = set[Path](), [path]
    while waiting:
        path = waiting.pop()
        if path.resolve() in seen:
            continue
        seen.add(path.resolve())
        try:
            manifest = load(path)
        except ManifestError as e:
            yield str(path), str(e)
            continue
        yield str(path), "; ".join((*manifest.ledger.problems(), *_counts(manifest))) or None
        copy = _history(path, manifest.version)
        if copy != path and copy.is_file():
            yield str(copy), None if copy.read_bytes() == path.read_bytes() else f"differs from {path}"
        folder, purged = data_dir(path, manifest), purged_on(path, manifest)
        if purged:
            yield f"{path}: its {len(manifest.shards)} shards were purged on {purged}", None
        for shard in () if purged else manifest.shards:
            problem = difference(storage.refresh(folder / shard.path), shard.bytes, shard.sha256)
            if not problem and inspect is not None and shard.content_sha256 is not None:
                problem = "; ".join(inspect(folder, shard))
            yield str(folder / shard.path), problem or None
        for parent in manifest.parents:
            yield from (
                _verify_raw(path, parent) if "raw" in parent else _verify_parent(path, manifest, parent, waiting)
            )


def _counts(manifest: Manifest) -> Iterator[str]:
    expected = {"dropped": sum(manifest.ledger.rows.dropped.values()), "quarantine": manifest.ledger.rows.quarantined}
    kept = manifest.of_role("kept")
    if not kept or any(s.content_sha256 for s in kept):  # not the files of a stage that takes all rows at once
        expected["kept"] = manifest.ledger.rows.kept
    for role, rows in expected.items():
        found = sum(s.rows for s in manifest.of_role(role))
        if found != rows:
            yield f"ledger: {rows} rows {role}, but the shards hold {found}"


def _verify_raw(path: Path, parent: dict[str, Any]) -> Iterator[tuple[str, str | None]]:
    """What is wrong with a raw file; nothing of rows that came from memory."""
    lay, expected = load_run(path).get("raw", {}).get(parent["raw"]), parent["sha256"]
    if lay is None:
        why = f"cannot be checked, since {run_file(path)} is missing or damaged; `datakit run` writes it again"
        yield parent["raw"], f"raw input: {why}"
    if not lay:
        return
    remote = "://" in lay
    name = lay if remote else str(path.parent / lay)
    if remote and (lay.split("://")[0] not in storage.SCHEMES or "?" in lay):
        yield name, f"raw input: is remote; fetch it and compare its sha256 with {expected}"
        return
    try:
        found = storage.digest_of(lay) if remote else sha256_file(Path(name))
    except FileNotFoundError:
        yield name, f"raw input: missing; expected {parent['bytes']} bytes with sha256 {expected}"
    else:
        yield name, None if found == expected else f"raw input: expected sha256 {expected}, found {found}"


def _verify_parent(
    path: Path, manifest: Manifest, parent: dict[str, Any], waiting: list[Path]
) -> Iterator[tuple[str, str | None]]:
    """What is wrong with a parent manifest; a right one is put among those that wait to be verified."""
    place, name = find_parent(path, parent), f"{parent['manifest']} {parent['version']}"
    if place is None:
        file, expected = run_file(path), (load_run(path).get("parents") or {}).get(parent["version"])
        why = f"missing; {file.name} names {expected}" if expected else f"unknown: {file} is missing or damaged"
        yield name, f"parent manifest of {path}: {why}. `datakit run` makes what is missing again"
    elif sha256_file(place) != parent["sha256"]:
        yield str(place), f"is not the {name} that {path} was made from: changed, or run again since"
    else:
        took_in = parent["manifest"] != "tokenizer" and parent.get("use") != AGAINST
        given = load(place).ledger.rows.kept
        if took_in and given != manifest.ledger.rows.into:
            yield str(place), f"gives {given} rows, but {path} took in {manifest.ledger.rows.into}"
        waiting.append(place)
