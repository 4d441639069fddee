"""Progress for people: a bar with rows/s and MB/s on a terminal, plain lines elsewhere, nothing for the library."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from datakit.errors import UsageError
from datakit.terminal import printable, unguarded


class Progress:
    """The base class prints nothing: for `--json`, and for the library unless `progress=True`."""

    def start(self, title: str, units: int | None) -> None:
        """A phase begins; `units` is None if their number is not known yet."""

    def advance(self, rows: int, bytes: int, *, again: bool) -> None:
        """A unit is done; `again` if an earlier run already did it."""

    def line(self, text: str) -> None:
        """Show a message."""

    def close(self) -> None:
        """The work is over."""


class Lines(Progress):
    """Plain lines on standard error: one at the end of a phase, and one every few seconds of a long one.

    A phase that reads no rows and is over at once has no line.
    """

    every_s = 5.0
    least_s = 1.0

    def __init__(self) -> None:
        self._title = ""
        self._begin, self._said = time.monotonic(), 0.0
        self._done = self._again = self._rows = self._bytes = 0
        self._units: int | None = None

    def start(self, title: str, units: int | None) -> None:
        """End the previous phase and begin another."""
        self.close()
        self._title, self._units = title, units
        self._begin = self._said = time.monotonic()
        self._done = self._again = self._rows = self._bytes = 0

    def advance(self, rows: int, bytes: int, *, again: bool) -> None:
        """Count a unit."""
        self._done += 1
        if again:
            self._again += 1
        else:
            self._rows += rows
            self._bytes += bytes
        if time.monotonic() - self._said > self.every_s and self._done != self._units:
            self._say()

    def line(self, text: str) -> None:
        """Print a line; a phase whose units are all done has its own first."""
        if self._units is not None and self._done >= self._units:
            self.close()
        self._print(text)

    def close(self) -> None:
        """Print the totals of the last phase."""
        if self._title and self._done and (self._rows or time.monotonic() - self._begin > self.least_s):
            self._say()
        self._title = ""

    def _say(self) -> None:
        self._said = time.monotonic()
        seconds = max(self._said - self._begin, 1e-9)
        of = f"/{self._units}" if self._units else ""
        again = f" ({self._again} done before)" if self._again else ""
        speed = f", {self._rows:,} rows, {self._rows / seconds:,.0f} rows/s"
        speed += f", {self._bytes / seconds / 1e6:,.1f} MB/s" if self._bytes > 100_000 else ""
        self._print(f"{self._title}: {self._done}{of} units{again}{speed if self._rows else ''}, {seconds:.1f} s")

    @staticmethod
    def _print(text: str) -> None:
        print(printable(text), file=sys.stderr, flush=True)


class Bar(Progress):
    """A Rich progress bar; finished phases stay on the screen."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("{task.description:<18}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeElapsedColumn(),
            console=Console(file=unguarded(sys.stderr)),
        )
        self._bar.start()
        self._task: Any = None
        self._begin, self._rows, self._bytes = 0.0, 0, 0

    def start(self, title: str, units: int | None) -> None:
        """End the previous phase and begin another."""
        self._end()
        self._begin, self._rows, self._bytes = time.monotonic(), 0, 0
        self._task = self._bar.add_task(title, total=units, speed="")

    def advance(self, rows: int, bytes: int, *, again: bool) -> None:
        """Count a unit."""
        if not again:
            self._rows += rows
            self._bytes += bytes
        seconds = max(time.monotonic() - self._begin, 1e-9)
        speed = f"{self._rows / seconds:>11,.0f} rows/s {self._bytes / seconds / 1e6:>7,.1f} MB/s" if self._rows else ""
        self._bar.update(self._task, advance=1, speed=speed)

    def line(self, text: str) -> None:
        """Print a line above the bar."""
        self._bar.console.print(printable(text), markup=False, highlight=False)

    def close(self) -> None:
        """Finish the bar and give the terminal back."""
        self._end()
        self._bar.stop()

    def _end(self) -> None:
        if self._task is not None:
            done = self._bar.tasks[-1].completed
            self._bar.update(self._task, total=done or 1, completed=done or 1)


class JsonLog(Progress):
    """Passes everything on, and appends it to a file as JSON lines: `time` (UTC), `event`, and what it is about.

    Events are `begin` (of a phase: `title`, `units`), `unit` (`rows`, `bytes`, `again`), `message` (`text`), `end`.
    """

    def __init__(self, shown: Progress, path: Path) -> None:
        """Open the file.

        Raises:
            UsageError: it cannot be written.
        """
        self._shown = shown
        try:
            self._file = path.open("a", encoding="utf-8")
        except OSError as e:
            raise UsageError(f"--log {path}: cannot be written: {e.strerror}") from None
        self._title = ""

    def _write(self, event: str, **about: Any) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._file.write(json.dumps({"time": now, "event": event} | about, ensure_ascii=False) + "\n")
        self._file.flush()

    def start(self, title: str, units: int | None) -> None:
        """A phase begins."""
        self._title = title
        self._write("begin", title=title, units=units)
        self._shown.start(title, units)

    def advance(self, rows: int, bytes: int, *, again: bool) -> None:
        """A unit is done."""
        self._write("unit", title=self._title, rows=rows, bytes=bytes, again=again)
        self._shown.advance(rows, bytes, again=again)

    def line(self, text: str) -> None:
        """A message."""
        self._write("message", text=text)
        self._shown.line(text)

    def close(self) -> None:
        """The work is over."""
        self._write("end")
        self._file.close()
        self._shown.close()


def for_terminal(quiet: bool) -> Progress:
    """Progress on standard error: a bar on a terminal, lines elsewhere; nothing if `quiet`."""
    if quiet:
        return Progress()
    return Bar() if sys.stderr.isatty() else Lines()
