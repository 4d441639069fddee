"""Where results go: a project's `manifests/` and `data/`, or one self-contained folder given by `--output`."""

from dataclasses import dataclass
from pathlib import Path

from datakit.errors import IntegrityError, ManifestError, UsageError
from datakit.manifest import load


@dataclass(frozen=True, slots=True)
class Place:
    """The place of one dataset. With `output`, `final` lies in that folder and earlier stages in `parents/` of it."""

    root: Path
    dataset: str
    output: Path | None = None
    final: str = ""

    def manifest(self, stage: str) -> Path:
        """The manifest file of a stage."""
        if self.output is None:
            return self.root / "manifests" / self.dataset / f"{stage}.json"
        return (self.output if stage == self.final else self.output / "parents" / stage) / "manifest.json"

    def data(self, stage: str, key: str) -> Path:
        """The data folder of a run of a stage with a key."""
        if self.output is None:
            return self.root / "data" / self.dataset / stage / key[:16]
        return self.manifest(stage).parent

    def check(self) -> None:
        """Refuse an output folder that holds something else.

        Raises:
            UsageError: the folder has entries and no manifest or interrupted run of ours among them.
        """
        if self.output is None or not self.output.exists():
            return
        if not self.output.is_dir():
            raise UsageError(f"--output {self.output}: is a file; name a folder")
        entries = {e.name for e in self.output.iterdir()}
        if entries and not any(_is_ours(f) for f in (self.output, *self.output.glob("parents/*"))):
            raise UsageError(
                f"--output {self.output}: holds {sorted(entries)[0]!r}, not datakit output; name a new or empty folder"
            )


def _is_ours(folder: Path) -> bool:
    """Whether a run of ours has written to a folder: by the mark of an unfinished one, or by its manifest."""
    if (folder / ".work" / "key").is_file():
        return True
    try:
        load(folder / "manifest.json")
    except IntegrityError:
        return True  # ours, damaged
    except ManifestError:
        return False
    return True
