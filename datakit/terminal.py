"""What is printed: no text from data may move the cursor, hide what stands beside it or turn its direction.

`datakit` and `datakit-train` print through `guarded_output`, the one place where control characters are spelled out,
and where paths of the mirror of an object store become its URLs. Standard library only.
"""

import contextlib
import re
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from datakit.storage import shown

COLOURS = r"\x1b\[(?:[012]|3[0-7]|9[0-7])m"
"""Bold, dim, a colour and their end, which the command line writes itself."""
_CONTROL = re.compile(
    rf"(?!{COLOURS})[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""C0 but for tab and new line, DEL, C1, line separators, marks of direction; surrogates, which UTF-8 cannot hold."""


def printable(text: str, colours: bool = False) -> str:
    r"""The text with `\u001b` for ESC and so on; JSON stays JSON of the same values. `colours` leaves our own."""
    if not colours:
        text = text.replace("\x1b", r"\u001b")
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class PrintableStream:
    """A text stream that spells out control characters. All else is done by the stream below it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write the text without control characters; returns the number of characters it had."""
        self.stream.write(printable(shown(text), colours=True))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """Write each of them."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def unguarded(stream: Any) -> Any:
    """The stream below a `PrintableStream`, for what draws on the terminal; any other stream itself."""
    return stream.stream if isinstance(stream, PrintableStream) else stream


@contextlib.contextmanager
def guarded_output() -> Iterator[None]:
    """Let everything that is printed inside pass through `PrintableStream`."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (PrintableStream(unguarded(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
