"""Run any firmware image on a device until it ends, and show what it prints meanwhile.

Firmware with mlfbuild's board support calls its host (``host_calls``). Any other firmware ends where its C library
does: at ``_exit`` or ``exit``, with the status in r0. Firmware that never ends runs until the time limit. A command of
the user that runs images ends with their status.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from mlfbuild.core import TimedOutError, UsageError, every
from mlfbuild.runners.command import Command
from mlfbuild.runners.faults import describe_fault
from mlfbuild.runners.firmware import Firmware, read_firmware
from mlfbuild.runners.host_calls import HostCalls, HostRun, counter, opener_in, start_at_entry
from mlfbuild.runners.types import Runner

# newlib and picolibc end in _exit, after the handlers of atexit; exit is for C libraries without it.
_ENDS = ("_exit", "exit")
_LOOK_SECONDS = 0.1


def run_to_end(runner: Runner, image: Path, timeout: float, printed: Callable[[str], object]) -> HostRun:
    """Run ``image``, which is loaded, from its reset to its end; ``printed`` is called with its output as it comes.

    The result has no exit status if the firmware faulted, was reset, or if its command was ended by a signal;
    ``stopped`` says which.

    Raises ``TimedOutError`` with the output if it has not ended after ``timeout`` seconds, ``UsageError`` for firmware
    on a serial line without mlfbuild's board support, ``InputFileError`` if the image cannot be read, and as
    ``Runner.go``.
    """
    if isinstance(runner, Command):
        ran = runner.run(image, timeout, printed)
        killed = f"the command was ended by signal {-ran.exit_status}" if ran.exit_status < 0 else ""
        return HostRun(ran.output, None if killed else ran.exit_status, killed)
    firmware = read_firmware(image)
    if firmware.function("mlf_host_stop") is not None:
        # Firmware that opens files gets an empty folder, not the current one: running an image must not change files of
        # the user.
        with tempfile.TemporaryDirectory(prefix="mlfbuild-files-") as folder:
            return HostCalls(runner, firmware, opener_in(Path(folder)), printed=printed).run(timeout)
    output: list[str] = []

    def keep(text: str) -> None:
        output.append(text)
        printed(text)

    start_at_entry(runner, firmware)
    if counter(runner) is None:
        raise UsageError(
            "runner-cannot",
            place=image,
            reason="on a serial line, only firmware with mlfbuild's board support has an end",
            hint="use a probe, or read the port with a terminal",
        )
    try:
        with _console_shown(runner, keep):
            status, stopped = _end(runner, firmware, timeout)
    except TimedOutError as error:
        error.output = "".join(output)
        raise
    return HostRun("".join(output), status, stopped)


def _end(runner: Runner, firmware: Firmware, timeout: float) -> tuple[int | None, str]:
    """Let the firmware run; return its exit status, or why it has none."""
    vectors = firmware.vectors()
    # Entry 3 of the vector table is HardFault.
    fault = None if vectors is None else vectors[1][3] & ~1
    # An image may lack both, if it never ends; it then runs until the time limit.
    ends = [at for name in _ENDS if (at := firmware.function(name)) is not None]
    at = runner.go([*ends, *([] if fault is None else [fault])], timeout)
    if at == fault:
        return None, describe_fault(runner, firmware)
    # The argument of exit(), of which a POSIX system keeps the low 8 bits.
    return runner.registers()["r0"] & 0xFF, ""


@contextlib.contextmanager
def _console_shown(runner: Runner, printed: Callable[[str], object]) -> Iterator[None]:
    """Call ``printed`` with the output of the device's console during the block, and with the rest at its end."""

    def show() -> None:
        if text := runner.console():
            printed(text)

    try:
        with every(_LOOK_SECONDS, show):  # a thread, because `go` blocks until the firmware stops
            yield
    finally:
        show()  # what arrived between the last look of the thread and its end
