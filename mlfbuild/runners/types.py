"""The protocol of a runner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from mlfbuild.core import OnProgress, no_progress


class Runner(Protocol):
    """A device that is connected, and that no other process uses until ``close``.

    The device is halted between calls. Every method raises ``ProcessFailedError`` (code ``connection-lost``) if the
    device or the server of its probe does not answer any more, and ``TimedOutError`` if an answer takes too long.
    A method that a way of reaching devices cannot offer raises ``UsageError`` (code ``runner-cannot``).
    """

    name: str
    """The device in messages: ``gdb localhost:3333``."""

    def load(self, image: Path, on_progress: OnProgress = no_progress) -> None:
        """Write the loadable segments of the ELF file ``image``, compare what the device holds then, and reset.

        ``on_progress("loading", bytes, total)`` is called with the progress. Raises ``UnsupportedModelError`` if the
        image is for another CPU or byte order, or larger than the device's memory, ``ProcessFailedError`` if the memory
        cannot be written.
        """

    def reset(self) -> None:
        """Reset the device and halt it before its first instruction."""

    def go(self, stops: Sequence[int], timeout: float) -> int:
        """Let the firmware run until it reaches one of the addresses ``stops``, and return that address.

        Addresses of Thumb code have bit 0 clear. Raises ``TimedOutError`` after ``timeout`` seconds; the device is
        halted then.
        """

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes of memory."""

    def write(self, address: int, data: bytes) -> None:
        """Change memory in RAM."""

    def registers(self) -> Mapping[str, int]:
        """Return the core's registers by their names in GDB: ``r0`` to ``r12``, ``sp``, ``lr``, ``pc``, ``xpsr``."""

    def set_registers(self, values: Mapping[str, int]) -> None:
        """Change registers."""

    def console(self) -> str:
        """Return what the device has printed since the last call; empty if no console is connected."""

    def close(self) -> None:
        """Reset the device, let it run and release it; stop what was started for it. It may be called twice."""
