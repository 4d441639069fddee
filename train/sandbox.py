"""Python code and its tests in a process of their own, which the kernel keeps from doing harm.

`passes` starts this file as a script. Before the code runs, the process gives up, for good: time, memory and file size
(resource limits), writing outside of its folder and looking into other processes (Landlock, Linux 5.13), new processes,
sockets and signals (seccomp, Linux 3.5). What a kernel does not have is left out. This keeps mistakes of a model from
doing harm. It is no prison for an attacker, and the code could deceive tests that share its process.

It starts once for each answer, so it imports the standard library alone.
"""

import contextlib
import ctypes
import json
import math
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
from typing import Any

FORBIDDEN = {
    "x86_64": (0xC000003E, 41, 56, 57, 58, 59, 62, 101, 129, 200, 234, 272, 297, 308, 310, 311, 322),
    "aarch64": (0xC00000B7, 97, 117, 129, 130, 131, 138, 198, 220, 221, 240, 268, 270, 271, 281),
}
"""By processor: its number, and those of its calls socket, clone, fork, execve, kill, ptrace and their relatives."""


def passes(code: str, tests: str, timeout_s: float) -> bool:
    """Whether `tests` end without an error after `code`, both Python.

    Functions `test...` and unittest's classes that the tests define are called, as pytest does it.
    """
    token = os.urandom(16).hex()  # the code cannot end well by leaving early: this comes after the tests
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as said:
        asked.write(json.dumps([code, tests, token, math.ceil(timeout_s)]).encode())
        asked.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__], stdin=asked, stdout=said, stderr=subprocess.DEVNULL, cwd=folder,
            env={}, start_new_session=True)  # fmt: skip
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said.seek(0)
        return process.returncode == 0 and said.read(len(token) + 1) == token.encode()


def confine(seconds: int) -> None:
    """Give up what the code must not do."""
    libc = ctypes.CDLL(None)
    most = {"CPU": seconds, "AS": 1 << 30, "FSIZE": 1 << 20, "NPROC": 0, "CORE": 0}
    for name, value in most.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
    if os.uname().sysname != "Linux":
        return
    libc.prctl(38, 1, 0, 0, 0)  # no new privileges, which both of the following need; of root's, only reading any file
    libc.capset(struct.pack("Ii", 0x20080522, 0), struct.pack("6I", 4, 4, 0, 0, 0, 0))
    if (version := libc.syscall(444, None, 0, 1)) >= 1:  # Landlock
        change = 0b1_1111_1111_0010 | (version >= 2) << 13 | (version >= 3) << 14
        handled = struct.pack("Q", change | 1)  # 1: start programs
        rules = libc.syscall(444, handled, len(handled), 0)
        for path, allowed in ((".", change), (os.devnull, change & (1 << 1 | 1 << 14))):
            libc.syscall(445, rules, 1, struct.pack("=Qi", allowed, os.open(path, os.O_PATH)), 0)
        libc.syscall(446, rules, 0)
    if os.uname().machine not in FORBIDDEN:
        return
    processor, *calls = FORBIDDEN[os.uname().machine]
    calls += [424, 425, 434, 435]  # pidfd_send_signal, io_uring_setup, pidfd_open, clone3
    load, equal, larger, answer = 0x20, 0x15, 0x35, 0x06  # seccomp's steps, with how many to skip if true and if not
    steps = [(load, 0, 0, 4), (equal, 0, len(calls) + 3, processor), (load, 0, 0, 0)]
    steps += [(equal, len(calls) + 1 - i, 0, call) for i, call in enumerate(calls)]
    steps += [(larger, 1, 0, 1 << 30), (answer, 0, 0, 0x7FFF0000), (answer, 0, 0, 0x00050001)]  # allow; not permitted
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    libc.prctl(22, 2, struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(program)), 0, 0)


def judge(code: str, tests: str) -> None:
    """Run the code, then its tests; an error of either goes up."""
    space: dict[str, Any] = {"__name__": "answer"}
    exec(compile(code, "answer", "exec"), space)
    before, cases = dict(space), tuple[Any, ...]()
    if "unittest" in tests:
        for name in [name for name in sys.modules if name.partition(".")[0] == "unittest"]:
            del sys.modules[name]  # the code may have changed it
        import unittest

        unittest.main = lambda *_, **__: None  # type: ignore[assignment]
        cases = (unittest.TestCase,)
    exec(compile(tests, "tests", "exec"), space)
    for name, found in [(name, found) for name, found in space.items() if before.get(name) is not found]:
        if isinstance(found, type) and issubclass(found, cases):
            suite = unittest.defaultTestLoader.loadTestsFromTestCase(found)
            if not suite.run(unittest.TestResult()).wasSuccessful():
                raise AssertionError(name)
        elif name.startswith("test") and callable(found):
            found()


if __name__ == "__main__":
    code, tests, token, seconds = json.load(sys.stdin)
    answer, nothing = os.dup(1), os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nothing, stream)
    confine(seconds)
    judge(code, tests)
    os.write(answer, token.encode())
    os._exit(0)
