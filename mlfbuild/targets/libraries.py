"""Find out whether a cross compiler has a C library for a core; Linux distributions package it separately."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

_SECONDS = 60


def has_c_library(gcc: Path, flags: Sequence[str]) -> bool:
    """Return whether ``gcc`` with ``flags`` for a core finds a C library: newlib, or picolibc by its specs file.

    False also if the compiler does not start, which other checks report.
    """
    # With the flags of a core, GCC searches the folder of its multilib first.
    return any(_finds(gcc, flags, name) for name in ("libc.a", "picolibc.specs"))


def _finds(gcc: Path, flags: Sequence[str], name: str) -> bool:
    """Return whether GCC finds the file ``name``: it prints the path of a file that it finds, or else the bare name."""
    command = [str(gcc), *flags, f"-print-file-name={name}"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return Path(done.stdout.strip()).is_absolute()
