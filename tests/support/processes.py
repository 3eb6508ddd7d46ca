"""Processes of this machine that tests started."""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def is_running(pid: int) -> bool:
    """Return whether the process runs; a zombie does not."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def session(number: int) -> list[int]:
    """Return the processes of a session, without those that ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, of = path.read_text().rpartition(")")[2].split()[:4]
            if int(of) == number and state != "Z":
                found.append(int(path.parent.name))
    return found


def wait_for(condition: Callable[[], T]) -> T:
    """Wait until ``condition`` returns something true, and return that.

    The limit only ends a test that hangs: no test depends on how fast the machine is.
    """
    for _ in range(15_000):
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError(f"still waiting after 300 s; load {os.getloadavg()[0]}")
