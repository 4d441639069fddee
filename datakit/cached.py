"""What the same sources always make, kept beside them: compiled kernels, tables. Standard library only."""

import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

_DIGEST = 32  # bytes of SHA-256 in front of what is kept


def cached(source: Path, made_from: Iterable[bytes], make: Callable[[], bytes]) -> bytes:
    """What `make` gives, made once for a source file and all that it was `made_from`.

    It lies in `__pycache__` beside the source, or in the user's cache where nothing can be written there. A file that
    is cut off or changed is made again, and one that cannot be written is no error.
    """
    total = hashlib.sha256()
    for part in made_from:
        total.update(hashlib.sha256(part).digest())
    name = f"{source.stem}.{total.hexdigest()[:24]}.made"
    places = [folder / name for folder in (source.parent / "__pycache__", _users())]
    for place in places:
        found = _read(place)
        if found is not None:
            return found
    made = make()
    any(_write(place, made) for place in places)
    return made


def _users() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "datakit" / "made"


def _read(place: Path) -> bytes | None:
    try:
        data = place.read_bytes()
    except OSError:
        return None
    digest, made = data[:_DIGEST], data[_DIGEST:]
    return made if hashlib.sha256(made).digest() == digest else None


def _write(place: Path, made: bytes) -> bool:
    aside = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(hashlib.sha256(made).digest() + made)
        aside.rename(place)
    except OSError:
        return False
    return True
