"""The work of one stage run, unit by unit, so that an interrupted run goes on where it stopped.

Inside the data folder, `.work/` holds the key of the run and one JSON file for each unit of each phase that is done.
A unit's record is written after its files are on the disk; it names them, and it counts only while they are whole.
"""

import contextlib
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from datakit.errors import DatakitError, IntegrityError, UsageError
from datakit.execute.local import Local
from datakit.manifest import ROLES, lock, write_whole

Result = dict[str, Any]
"""What a unit reports, as JSON; `files` lists [path relative to the data folder, bytes] or [path, bytes, CRC-32] of
what must be whole for the unit to count as done, `rows` and `bytes` feed the progress report."""


class Progress(Protocol):
    """Hears how work goes on."""

    def start(self, title: str, units: int | None) -> None:
        """A phase begins; `units` is None where their number is not known beforehand."""

    def advance(self, rows: int, bytes: int, *, again: bool) -> None:
        """A unit is done; `again` where an earlier run had done it."""

    def line(self, text: str) -> None:
        """Something a person should read."""


class Work:
    """Exclusive use of a data folder for one run. `with Work(data, key) as work: work.phase(...)`."""

    def __init__(
        self,
        data: Path,
        key: str,
        executor: Local,
        progress: Progress,
        finished: Callable[[], bool] = lambda: False,
    ) -> None:
        self.data, self.folder = data, data / ".work"
        self._key, self._executor, self._progress, self._finished = key, executor, progress, finished

    def __enter__(self) -> Self:
        self.data.mkdir(parents=True, exist_ok=True)
        self._lock = lock(self.data)
        if self._lock is None:
            raise UsageError(f"{self.data}: another run is writing there; wait for it, or stop it")
        if self._finished():
            os.close(self._lock)
            raise UsageError(f"{self.data}: another run has just finished this; run the same command again")
        self.folder.mkdir(exist_ok=True)
        self._discard_other_key()
        for aside in self.data.rglob(".*.tmp"):
            aside.unlink(missing_ok=True)  # a worker of a killed run may still be putting its last one in place
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._lock is not None
        os.close(self._lock)

    def finish(self) -> None:
        """Remove the records: the manifest stands for them now."""
        done = self.data / ".done"
        shutil.rmtree(done, ignore_errors=True)
        # in one step, lest a run that is killed here leave half of the records, which would tell of another key
        with contextlib.suppress(FileNotFoundError):  # another run has seen the manifest, and swept
            self.folder.rename(done)
        shutil.rmtree(done, ignore_errors=True)

    @staticmethod
    def sweep(data: Path) -> None:
        """Remove what a run that was killed after its manifest left of its records."""
        shutil.rmtree(data / ".work", ignore_errors=True)
        shutil.rmtree(data / ".done", ignore_errors=True)

    def _discard_other_key(self) -> None:
        mark = self.folder / "key"
        if not mark.is_file() or mark.read_text() != self._key:
            # a self-contained folder is written again: its manifest goes first, so that it never names other shards
            (self.data / "manifest.json").unlink(missing_ok=True)
            for entry in self.data.iterdir():
                if entry.name in ROLES:
                    shutil.rmtree(entry)
            for entry in self.folder.iterdir():
                if entry.is_dir():
                    shutil.rmtree(entry)
            write_whole(mark, self._key.encode())

    def phase(
        self,
        name: str,
        work: Callable[[int, Any], Result],
        tasks: Iterable[tuple[int, Any]],
        *,
        title: str,
        units: int | None = None,
        processes: bool = False,
    ) -> list[Result]:
        """Do `work(index, payload)` for every task that no earlier run finished; results in the order of the index."""
        results: dict[int, Result] = {}
        self._progress.start(title, units)

        def to_do() -> Iterator[tuple[int, Any]]:
            for index, payload in tasks:
                done = self._done(name, index)
                if done is None:
                    yield index, payload
                else:
                    results[index] = done
                    self._progress.advance(done.get("rows", 0), done.get("bytes", 0), again=True)

        records = self.folder / name
        records.mkdir(exist_ok=True)
        for index, result in self._executor.map(partial(_perform, work, records), to_do(), processes=processes):
            results[index] = result
            self._progress.advance(result.get("rows", 0), result.get("bytes", 0), again=False)
        return [results[i] for i in sorted(results)]

    def _done(self, name: str, index: int) -> Result | None:
        try:
            result: Result = json.loads((self.folder / name / f"{index:05d}.json").read_text())
        except (OSError, ValueError):
            return None
        return None if any(harmed(self.data, entry) for entry in result.get("files", [])) else result


def harmed(data: Path, entry: Sequence[Any]) -> bool:
    """Whether a file is not as a unit's record has it: [path, bytes] or [path, bytes, CRC-32]."""
    path, size, *checksum = entry
    file = data / path
    return not file.is_file() or file.stat().st_size != size or checksum not in ([], [crc32(file)])


def insist(data: Path, entry: Sequence[Any]) -> None:
    """Read a file again that a unit wrote, before another phase believes it.

    Raises:
        IntegrityError: it is not what was written. The next run makes it again.
    """
    if harmed(data, entry):
        raise IntegrityError(
            f"{data / entry[0]}: is not what was written there a moment ago: the disk, the memory or another program "
            "changed it. Run the same command again, which makes it anew; if this comes back, look after the machine"
        )


def crc32(file: Path) -> int:
    """CRC-32 of a file's bytes: 4 GB/s, to notice what a crash or a bad disk has done to what lay there for a while."""
    total = 0
    with file.open("rb") as f:
        while block := f.read(1 << 20):
            total = zlib.crc32(block, total)
    return total


def _perform(work: Callable[[int, Any], Result], records: Path, task: tuple[int, Any]) -> tuple[int, Result]:
    index, payload = task
    try:
        result = work(index, payload)
        write_whole(records / f"{index:05d}.json", json.dumps(result).encode())
    except OSError as e:
        raise DatakitError(
            f"{e.filename or records}: {os.strerror(e.errno) if e.errno else e}. Finished work is kept: make room or "
            "mend the cause, and run the same command again to go on."
        ) from e
    return index, result
