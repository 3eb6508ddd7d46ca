"""A connection to a device, on which images are loaded and run one after the other."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mlfbuild.core import OnProgress, no_progress
from mlfbuild.runners import FileOpener, HostCalls, HostRun, Runner, open_runner, opener_in, read_firmware
from mlfbuild.verify.device.layout import Device


class Connection:
    """An open connection to ``device``."""

    def __init__(self, device: Device, runner: Runner) -> None:
        self.device, self.runner = device, runner

    @property
    def name(self) -> str:
        """The device in reports: ``gdb localhost:3333``."""
        return self.runner.name

    def calls(
        self, image: Path, opener: FileOpener, arguments: Sequence[str] = (), on_progress: OnProgress = no_progress
    ) -> HostCalls:
        """Load ``image``, and return the host's side of its calls, which has not started yet.

        The firmware may open the files of ``opener`` and gets ``arguments``; ``on_progress`` receives the progress of
        loading. Raises as ``Runner.load`` and ``HostCalls``.
        """
        self.runner.load(image, on_progress)
        return HostCalls(self.runner, read_firmware(image), opener, arguments)

    def run(
        self,
        image: Path,
        arguments: Sequence[str],
        folder: Path,
        timeout: float,
        grown: Callable[[int], None] | None = None,
        on_progress: OnProgress = no_progress,
    ) -> HostRun:
        """Load ``image`` and run it to its end, with the files in ``folder``; the last of ``arguments`` is written.

        ``grown`` is called with the size of that file whenever it has changed. Raises as ``Runner`` and ``HostCalls``.
        """
        written, size = folder / arguments[-1], 0

        # Called between the firmware's calls: the growth of its output file is the only sign of progress that a device
        # gives.
        def served() -> None:
            nonlocal size
            now = written.stat().st_size if written.exists() else 0
            if now != size and grown is not None:
                size = now
                grown(now)

        return self.calls(image, opener_in(folder), arguments, on_progress).run(timeout, served)


@contextlib.contextmanager
def connected(device: Device) -> Iterator[Connection]:
    """Connect to ``device`` for the block; it is reset and released at the end. Raises as ``open_runner``.

    No other process can use the device meanwhile (``ConflictError``).
    """
    with open_runner(device.keys, device.place, device.memory) as runner:
        yield Connection(device, runner)
