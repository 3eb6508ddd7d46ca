"""Whether a cross compiler has a C library for a core; Linux distributions pack it apart."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

_SECONDS = 60


def has_c_library(gcc: Path, flags: Sequence[str]) -> bool:
    """Return whether ``gcc`` finds a C library for the core that ``flags`` name: newlib, or picolibc by its specs."""
    return any(_finds(gcc, flags, name) for name in ("libc.a", "picolibc.specs"))


def _finds(gcc: Path, flags: Sequence[str], name: str) -> bool:
    """Return whether GCC knows the file ``name``: it prints the path of one that it finds, else the bare name."""
    command = [str(gcc), *flags, f"-print-file-name={name}"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return Path(done.stdout.strip()).is_absolute()
