"""One process at a time has a device."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from mlfbuild.core import ConflictError, cache_folder, locked

# Seconds to wait for the lock: enough for a process that is just ending. A longer wait would look like a hang, because
# the other process may measure or verify for a long time.
_PATIENCE = 0.5


@contextlib.contextmanager
def device_lock(device: str, place: str) -> Iterator[None]:
    """Have ``device``, such as ``gdb localhost:3333``, for the block; raises ``ConflictError`` if a process has it.

    ``device`` must be the same text in every process that uses it; ``place`` locates the runner in messages. The system
    releases the lock if the process is killed.
    """

    def busy(owner: int | None) -> bool:
        raise ConflictError(
            "device-in-use",
            place=place,
            reason=f"{device} is in use by {_described(owner)}",
            hint="wait until it ends, or stop it",
        )

    # A name that people recognise in the folder, and a hash, because different devices can have the same readable part.
    readable = re.sub(r"[^A-Za-z0-9.-]+", "_", device)[:60]
    name = f"{readable}-{hashlib.sha256(device.encode()).hexdigest()[:8]}.lock"
    with locked(cache_folder("devices") / name, busy, _PATIENCE):
        yield


def _described(process: int | None) -> str:
    if process is None:
        return "another process"
    with contextlib.suppress(OSError):
        # Only Linux has it; elsewhere the number alone is printed.
        words = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")
        return f"process {process} ({' '.join(words).strip()[:100]})"
    return f"process {process}"
