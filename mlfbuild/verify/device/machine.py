"""Run a model on a device with inputs of the host: all cases of a file, or one call after the other.

The firmware is that of ``run_on_board``: it reads the inputs of one case, runs the model, and writes the outputs. For
single calls, the device stays halted between two cases, where it asks for its next input.
"""

from __future__ import annotations

import contextlib
import io
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from mlfbuild.core import OnProgress, ProcessFailedError, UnsupportedModelError, no_progress
from mlfbuild.jobs.tree import subject_of
from mlfbuild.library import Module, ResolvedLibrary
from mlfbuild.runners import HostCalls
from mlfbuild.verify.device.connection import Connection, connected
from mlfbuild.verify.device.layout import Device
from mlfbuild.verify.emulator.board_image import image_for_device
from mlfbuild.verify.emulator.run import outputs_of, shaped
from mlfbuild.verify.semihosting_io import case_size, flaws, runs_layout

Array = npt.NDArray[Any]

_INPUTS, _OUTPUTS = "inputs.bin", "outputs.bin"
_ENDLESS = 0x7FFF_FFFF
"""Length of a file whose next case is always to come."""


def run_on_device(
    module: Module,
    connection: Connection,
    toolchain: Path,
    inputs: Sequence[Array],
    where: str,
    timeout: float,
    libraries: Sequence[ResolvedLibrary] = (),
    on_progress: OnProgress = no_progress,
) -> tuple[Array, ...]:
    """Run every case of ``inputs`` once, in order, on the device of ``connection``; otherwise as ``run_on_board``.

    Raises as ``run_on_board``, and ``ProcessFailedError`` if the connection is lost.
    """
    device = connection.device
    image = image_for_device(module, device, toolchain, where, libraries)
    subject = subject_of(module, device.name, device.ram_for_data)
    return outputs_of(image, subject, inputs, timeout, connection=connection, on_progress=on_progress)


class _NextCase(io.RawIOBase):
    """The file of inputs: it holds the inputs of the next case, and never ends."""

    def __init__(self) -> None:
        super().__init__()
        self.data = b""

    def read(self, size: int = -1) -> bytes:
        """Return the next ``size`` bytes."""
        taken, self.data = self.data[:size], self.data[size:]
        return taken

    def tell(self) -> int:
        """Return a position; cases are read in order."""
        return 0

    def seek(self, position: int, whence: int = io.SEEK_SET) -> int:
        """Return the new position."""
        return _ENDLESS if whence == io.SEEK_END else position


class _Results(io.RawIOBase):
    """The file of outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.content = b""

    def write(self, data: Any) -> int:
        """Append ``data``."""
        self.content += bytes(data)
        return len(data)


class DeviceMachine:
    """The device that a model's code runs in; connected until ``close``, or until nothing refers to it."""

    def __init__(
        self,
        module: Module,
        device: Device,
        toolchain: Path,
        where: str,
        libraries: Sequence[ResolvedLibrary] = (),
        timeout: float = 60.0,
    ) -> None:
        self._image = image_for_device(module, device, toolchain, where, libraries)
        self._subject = subject_of(module, device.name, device.ram_for_data)
        self._timeout = timeout
        self._calls: HostCalls | None = None
        stack = contextlib.ExitStack()
        self._connection = stack.enter_context(connected(device))
        # A device must be released even if a notebook drops the model without closing it; __del__ may run too late,
        # when modules are already gone.
        self.close = weakref.finalize(self, stack.close)

    def run(self, inputs: list[Array]) -> tuple[int, list[Array]]:
        """Return the status and the outputs for inputs in call order.

        The first run loads the image, which may take seconds. A status other than 0 is that of the run function. A
        state continues from the last run. Raises ``ProcessFailedError`` if the firmware ends, faults, hangs or writes
        outside its buffers.
        """
        calls = self._calls = self._calls or self._start()
        self._next.data = b"".join(array.astype(array.dtype.newbyteorder("<")).tobytes() for array in inputs)
        self._results.content = b""
        size = case_size(self._subject, 1)
        # One step serves one call: the firmware opens, seeks, reads and writes in several. It then asks for its next
        # input and is halted there.
        while len(self._results.content) < size:
            ended = calls.step(self._timeout)
            if ended is not None:
                self._calls = None  # the next run starts again
                reason, _, output = (ended.stopped or f"it ended with exit status {ended.exit_status}").partition("\n")
                raise ProcessFailedError("run-failed", output, place=self._subject.name, reason=reason)
        (run,) = np.frombuffer(self._results.content, runs_layout(self._subject, 1))["run0"]
        status = int(run["status"])
        if status == 0 and (flaw := next(flaws(self._subject, run), None)) is not None:
            raise ProcessFailedError("run-failed", place=self._subject.name, reason=flaw)
        return status, [
            shaped(run[f"out{index}"][np.newaxis], tensor.shape)[0]
            for index, tensor in enumerate(self._subject.outputs)
        ]

    def run_cases(self, inputs: list[Array]) -> tuple[int, int, list[Array]]:
        """Run each case from the initial state, for which the firmware of a network with state starts again."""
        results: list[list[Array]] = []
        for case in zip(*inputs, strict=True):
            if self._subject.state_size:
                self.reset()
            status, outputs = self.run(list(case))
            if status != 0:
                return status, len(results), []
            results.append(outputs)
        return 0, len(results), [np.stack(output) for output in zip(*results, strict=True)]

    def trace(self, _inputs: list[Array]) -> tuple[int, list[Array], list[Array]]:
        """Raise ``UnsupportedModelError``: the firmware does not transfer intermediate tensors."""
        raise UnsupportedModelError(
            "module-not-traceable",
            place=self._subject.name,
            reason="intermediate tensors are not read from a device",
            hint="trace the model on this machine",
        )

    def reset(self) -> int:
        """Restart the firmware, so that the model has its initial state.

        It is loaded and started by the next ``run``. Returns 0, the status of a reset that succeeded.
        """
        self._calls = None
        return 0

    def _start(self) -> HostCalls:
        self._next, self._results = _NextCase(), _Results()
        files = {_INPUTS: self._next, _OUTPUTS: self._results}

        def opened(name: str, _mode: str) -> BinaryIO:
            if name not in files:
                raise FileNotFoundError(name)
            return cast("BinaryIO", files[name])

        return self._connection.calls(self._image, opened, [_INPUTS, _OUTPUTS])
