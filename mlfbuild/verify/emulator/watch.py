"""Run a program with a time limit that starts again whenever its output file grows."""

from __future__ import annotations

import math
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mlfbuild.core import running

# How late a growth of the file is noticed; a look is one stat().
_LOOK_SECONDS = 0.25


def run_while_it_writes(
    command: Sequence[str],
    *,
    cwd: Path | None,
    timeout: float | None,
    written: Path | None,
    grown: Callable[[int], None] | None = None,
) -> tuple[int, bytes]:
    """Run ``command`` and return its exit status (negative: the signal that ended it) and its output.

    If it takes longer than ``timeout`` seconds it is stopped, and ``subprocess.TimeoutExpired`` raised with the output
    so far; the time starts again whenever the file ``written`` has grown. ``grown`` is called with the size of the file
    in bytes whenever that has changed. Raises ``ProcessFailedError`` if the program cannot be started.
    """
    with running(command, cwd=cwd) as process:
        output = _output(process, timeout, written, grown)
    return process.returncode, output


def _output(
    process: subprocess.Popen[bytes], timeout: float | None, written: Path | None, grown: Callable[[int], None] | None
) -> bytes:
    # Without a reason to look, one wait is enough, which never wakes up in between.
    if timeout is None and grown is None:
        return process.communicate()[0]
    allowed = math.inf if timeout is None else timeout
    report = grown or (lambda _size: None)
    size, deadline = _size(written), time.monotonic() + allowed
    while True:
        left = deadline - time.monotonic()
        try:
            return process.communicate(timeout=min(max(left, 0), _LOOK_SECONDS))[0]
        # `communicate` may be called again after this: no output is lost, as the documentation of subprocess says.
        except subprocess.TimeoutExpired as error:
            now = _size(written)
            if now != size:
                size, deadline = now, time.monotonic() + allowed
                report(size)
            elif left <= 0:
                raise subprocess.TimeoutExpired(process.args, allowed, error.output) from None


def _size(path: Path | None) -> int:
    try:
        return path.stat().st_size if path is not None else 0
    except OSError:
        return 0
