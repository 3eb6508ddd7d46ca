"""One process at a time has a device."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from mlfbuild.core import ConflictError, cache_folder, locked

_PATIENCE = 0.5


@contextlib.contextmanager
def device_lock(device: str, place: str) -> Iterator[None]:
    """Have ``device``, such as ``gdb localhost:3333``, for the block; raises ``ConflictError`` if a process has it."""

    def busy(owner: int | None) -> bool:
        raise ConflictError(
            "device-in-use",
            place=place,
            reason=f"{device} is in use by {_described(owner)}",
            hint="wait until it ends, or stop it",
        )

    readable = re.sub(r"[^A-Za-z0-9.-]+", "_", device)[:60]
    name = f"{readable}-{hashlib.sha256(device.encode()).hexdigest()[:8]}.lock"
    with locked(cache_folder("devices") / name, busy, _PATIENCE):
        yield


def _described(process: int | None) -> str:
    if process is None:
        return "another process"
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")
        return f"process {process} ({' '.join(words).strip()[:100]})"
    return f"process {process}"
