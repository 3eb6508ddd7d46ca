"""The protocol of a runner: what mlfbuild needs of a device, however it is reached.

**What.** A ``Runner`` is one device that is connected, and that no other process uses. Verification, measurement and
``run-firmware`` are written against it, so that the same code works with an emulator, a probe or a serial line, and a
new transport is one class and one key of the project file (``TRANSPORTS`` in ``mlfbuild.project``).

    key        class                               how memory is accessed
    qemu       qemu, which starts QEMU with gdb    GDB remote protocol
    gdb        gdb, which runs GDB (gdb_client)    GDB remote protocol, any server
    pyocd      pyocd                               pyOCD's library, without a server
    serial     serial over link and frames         the monitor in the firmware (runtime/serial)
    labgrid    labgrid, which acquires a place     one of the above, as the place offers
    run        command                             not at all: it only starts images

**State.** The device is *halted* between calls, with the exception of ``go``, which returns when it is halted again.
So no call races with the firmware: memory that one call reads does not change before the next one.

**Rules.**

1. ``load`` writes an image, compares what the device holds then, and resets. Nothing else writes flash. On a serial
   line the user's command ``flash`` writes it, and ``load`` only compares.
2. ``reset`` stops the core before its first instruction, so that breakpoints can be set before any code ran.
3. ``go`` is the only way to run. It ends at one of ``stops``, or after ``timeout`` seconds with ``TimedOutError``.
   A Cortex-M0+ has four hardware breakpoints, so callers pass at most four stops.
4. ``read`` and ``write`` see memory as the core does. ``write`` is for RAM: writing flash this way fails or is ignored.
5. ``close`` leaves the device running its own firmware, and ends every process that was started for it, also after an
   error. It may be called twice.
6. An answer that does not come is an error, never a wait without end: a device that was unplugged must not stop a CI.

**Example.** One call of the firmware to its host, as ``host_calls`` serves it:

    runner.reset()
    at = runner.go([stop, fault], timeout=10)           # mlf_host_stop, and the handler of hard faults
    block = runner.read(call, 8)                        # mlf_host_call: the operation and the address of its arguments
    runner.write(call, struct.pack("<I", result))       # what the operation returned; then go again

**What it does not do.** It knows neither models nor test firmware nor semihosting (``host_calls`` does), and it does
not find devices: the project file names one. There is no access while the core runs, because a serial line and several
probes do not offer it. Errors are those of ``mlfbuild.core``; libraries of transports never appear in them.
"""

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
        """Reset the device and halt it before its first instruction.

        Peripherals have their state after reset; RAM usually keeps its content.
        """

    def go(self, stops: Sequence[int], timeout: float) -> int:
        """Let the firmware run until it reaches one of the addresses ``stops``, and return that address.

        Addresses of Thumb code have bit 0 clear. Raises ``TimedOutError`` after ``timeout`` seconds; the device is
        halted then.
        """

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes of memory.

        Any address that the core can read is allowed, also that of a peripheral, whose register may change by being
        read.
        """

    def write(self, address: int, data: bytes) -> None:
        """Change memory in RAM.

        ``address`` and ``data`` may have any alignment. Writes outside of RAM fail or are ignored, as the transport
        decides.
        """

    def registers(self) -> Mapping[str, int]:
        """Return the core's registers by their names in GDB: ``r0`` to ``r12``, ``sp``, ``lr``, ``pc``, ``xpsr``.

        Values are unsigned and have 32 bits. ``msp`` and ``psp`` are included if the debugger has them. Raises
        ``UsageError`` if the device is reached by a serial line or by commands only.
        """

    def set_registers(self, values: Mapping[str, int]) -> None:
        """Change registers.

        Those that are not in ``values`` keep their content. The names are those that ``registers`` returns.
        """

    def console(self) -> str:
        """Return what the device has printed since the last call; empty if no console is connected.

        It does not wait. Text that arrives while the device runs is kept until it is read here.
        """

    def close(self) -> None:
        """Reset the device, let it run and release it; stop what was started for it. It may be called twice.

        Errors are ignored: the device may be the reason why the work ends. Memory that was written stays as it is until
        the firmware changes it.
        """
