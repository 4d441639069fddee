"""Rows of an index that count no more, because their dataset has lost them since: a list beside the index."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datakit.config import digest
from datakit.errors import IntegrityError
from datakit.manifest import write_whole

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
