"""End external programs if this process is killed.

A process that gets SIGKILL cannot end what it started: an emulator would run for ever, and Ninja would go on writing
into a build folder whose lock is free again. The keeper is a shell, one for each process that starts programs, which
reads their numbers from a pipe (``keeper.sh``). When this process ends, so does the pipe, and the keeper kills the
programs that are left, with their children. PR_SET_PDEATHSIG of Linux would not: it follows the thread that started a
program instead of the process, it needs Python code in the forked child, which is unsafe with threads, and it does not
reach the children of a program. Windows has no keeper.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

_lock = threading.Lock()


@contextlib.contextmanager
def kept(process: subprocess.Popen[bytes], *, group: bool = False) -> Iterator[None]:
    """Kill ``process`` and its children if this process is killed in the ``with`` block; with ``group``, its group.

    ``group`` is for a program that leads its own process group. Nothing happens on Windows, and nothing fails if the
    keeper itself was killed.
    """
    number = f"-{process.pid}" if group else str(process.pid)
    _tell(f"+ {number}\n")
    try:
        yield
    finally:
        _tell(f"- {number}\n")


def start_keeper() -> None:
    """Start the keeper before a program, so that it hears of the program as soon as that exists."""
    if sys.platform != "win32":
        with _lock:
            _keeper()


def _tell(line: str) -> None:
    start_keeper()
    if sys.platform != "win32":
        pipe = _keeper().stdin
        assert pipe is not None
        with contextlib.suppress(OSError):  # builds go on without a keeper that was killed
            pipe.write(line.encode())


@functools.cache
def _keeper() -> subprocess.Popen[bytes]:
    """Return the keeper, in a separate session, so that no signal to this process's group reaches it."""
    nothing, script = subprocess.DEVNULL, Path(__file__).with_suffix(".sh").read_text(encoding="utf-8")
    keeper = subprocess.Popen(
        ["/bin/sh", "-c", script], bufsize=0, stdin=subprocess.PIPE, stdout=nothing, stderr=nothing,
        start_new_session=True, cwd="/",
    )  # fmt: skip
    # At a normal end this closes the pipe and waits, so that no shell is left when the process has gone.
    atexit.register(keeper.communicate)
    return keeper
