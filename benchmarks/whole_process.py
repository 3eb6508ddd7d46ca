"""Time and peak memory of a program, from fork to exit: what the benchmarks share."""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """One run of a program, from fork to exit."""

    seconds: float
    cpu_seconds: float
    """Of user and system together, which other work of the machine hardly changes."""
    mebibytes: float


def measure(command: list[str]) -> Run:
    """Run ``command`` without its output; return its wall time and peak resident memory; stops where it fails."""
    begin = time.perf_counter()
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    child = os.posix_spawn(command[0], command, os.environ, file_actions=silent)
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - begin
    if status != 0:
        sys.exit(f"{' '.join(command)}: failed with exit status {os.waitstatus_to_exitcode(status)}")
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss counts bytes on macOS, KiB on Linux
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit / 2**20)


def mlfbuild() -> str:
    """Return the path of the command that belongs to this interpreter, or the one on PATH."""
    beside = Path(sys.executable).with_name("mlfbuild")
    found = str(beside) if beside.exists() else shutil.which("mlfbuild")
    if found is None:
        sys.exit("mlfbuild: command not found; pip install -e . first")
    return found
