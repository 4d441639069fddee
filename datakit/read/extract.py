"""Makes text of HTML pages in a process of its own, so that a page that never ends can be stopped.

The process runs this file and gets one page after the other over a pipe. It can be killed whatever it does, also within
a library's own code that keeps the interpreter; the next page gets a new one. It costs about 50 microseconds a page.
"""

import contextlib
import ctypes
import signal
import subprocess
import sys
import weakref
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

START_S: Final = 300
"""Seconds for the start of a process, which loads libraries from a disk that may be slow."""
PR_SET_PDEATHSIG: Final = 1
FAILED: Final = "extraction_failed"
TIMEOUT: Final = "page_timeout"


class Page(NamedTuple):
    """What is taken from a page."""

    text: str = ""
    title: str | None = None
    url: str | None = None
    """The URL that the page calls canonical (RFC 6596), if it is of the web."""


class Extraction:
    """An extractor, `resiliparse` or `trafilatura`, in a process that begins with the first page."""

    def __init__(self, extractor: str) -> None:
        self.extractor = extractor
        self._running: tuple[subprocess.Popen[bytes], Connection] | None = None

    def page(self, html: str, seconds: float, max_depth: int = 0) -> tuple[Page, str, str]:
        """What is taken from a page; and why it cannot be had, as a reason and a detail: it took more than so many
        seconds (`TIMEOUT`), the extractor failed or ended its process, or the tree is deeper than `max_depth`, which is
        looked at where it is not 0.

        Raises:
            InputError: the process does not start.
        """
        ended = ""
        for _ in range(2):  # a page that ends two processes did it; one may have been killed from outside
            process, pipe = self._started()
            try:
                pipe.send((html, max_depth))
                if pipe.poll(seconds):
                    page, *failed = pipe.recv()
                    return Page(*page), *failed
                self.close()
                return Page(), TIMEOUT, f"the page took more than the {seconds:g} s that page_timeout_s allows"
            except (EOFError, OSError):
                ended = self._ended(process)
        return Page(), FAILED, f"the extractor's process ended with {ended}"

    def _started(self) -> tuple[subprocess.Popen[bytes], Connection]:
        """The process, which has loaded its libraries, and the pipe to it."""
        if self._running is None:
            ours, theirs = Pipe()
            command = [sys.executable, "-P", __file__, self.extractor, str(theirs.fileno())]
            with theirs:  # what an extractor prints goes to standard error
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, pass_fds=[theirs.fileno()])
            self._running, self._finalizer = (process, ours), weakref.finalize(self, _end, process, ours)
            try:
                if ours.poll(START_S):
                    ours.recv()
            except (EOFError, OSError):
                from datakit.errors import InputError  # here: the process runs this file alone

                why = f"it ended with {self._ended(process)}"
                raise InputError(f"the process of the extractor {self.extractor} does not start: {why}") from None
        return self._running

    def _ended(self, process: subprocess.Popen[bytes]) -> str:
        """How a process ended whose pipe did."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        self.close()
        code = process.returncode
        return f"code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"

    def close(self) -> None:
        """End the process."""
        if self._running is not None:
            self._finalizer()
            self._running = None


def _end(process: subprocess.Popen[bytes], pipe: Connection) -> None:
    process.kill()
    process.wait()
    pipe.close()


# In the process.


def resiliparse(html: str, tree: Any) -> str:
    """The main content of a page (Bevendorff et al. 2018)."""
    from resiliparse.extract.html2text import extract_plain_text

    return str(extract_plain_text(tree, main_content=True, alt_texts=False))


def trafilatura(html: str, tree: Any) -> str:
    """The content of a page (Barbaresi 2021)."""
    from trafilatura import extract

    # `deduplicate` would remember the pages before, and so make the text depend on the workers
    return extract(html, favor_precision=True, include_comments=False, deduplicate=False) or ""


def _made(extractor: str, html: str, max_depth: int = 0) -> tuple[tuple[Any, ...], str, str]:
    """(the values of the `Page`, reason and detail of what failed)."""
    from resiliparse.parse.html import HTMLTree

    make: Any = {"resiliparse": resiliparse, "trafilatura": trafilatura}[extractor]
    try:
        tree: Any = HTMLTree.parse(html)
        # an extractor may need minutes for such a tree, and the parser does not
        if max_depth and tree.document.query_selector(" > ".join("*" * (max_depth + 1))):
            return (), "page_too_deep", f"its elements are nested more than {max_depth} deep"
        link = tree.document.query_selector('link[rel~="canonical" i][href]')
        title, url = " ".join((tree.title or "").split()), link["href"].strip() if link else ""
        url = url if url.lower().startswith(("http://", "https://")) else ""
        return (make(html, tree), title or None, url or None), "", ""
    except Exception as e:
        return (), FAILED, f"{type(e).__name__}: {e}"


def main(extractor: str, pipe: Connection) -> None:
    """Answer the pages of a pipe, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    if sys.platform == "linux":  # the parent may be killed while a page never ends
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if failed := _made(extractor, "<p>Loads the libraries.</p>")[2]:
        sys.exit(failed)
    pipe.send("ready")
    with contextlib.suppress(EOFError):
        while True:
            pipe.send(_made(extractor, *pipe.recv()))


if __name__ == "__main__":
    main(sys.argv[1], Connection(int(sys.argv[2])))
