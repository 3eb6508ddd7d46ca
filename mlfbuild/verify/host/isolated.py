"""A model in a separate process, which may crash or hang without affecting this one."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np

from mlfbuild.core import ProcessFailedError, TimedOutError, kept, pipe_of
from mlfbuild.library import Module, TensorInfo
from mlfbuild.verify.host.process import Array, empty_output
from mlfbuild.verify.host.trace import traced_tensors

_RUN, _TRACE, _RESET = b"r", b"t", b"z"


class Child:
    """The shared object in a child process, which is restarted after it crashed or was stopped."""

    def __init__(self, path: Path, module: Module, timeout: float) -> None:
        self._path = path
        self._module = module
        self._traced = [traced.tensor for traced in traced_tensors(module)]
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._kept = contextlib.ExitStack()

    def run(self, inputs: list[Array]) -> tuple[int, list[Array]]:
        """Run once; as ``Machine``. Raises ``ProcessFailedError`` after a crash, ``TimedOutError`` after a hang."""
        return self._run(_RUN, inputs, self._module.outputs)

    def trace(self, inputs: list[Array]) -> tuple[int, list[Array], list[Array]]:
        """Run once and return the intermediate tensors, too; as ``Machine``. Raises as ``run``."""
        status, arrays = self._run(_TRACE, inputs, (*self._module.outputs, *self._traced))
        count = len(self._module.outputs)
        return status, arrays[:count], arrays[count:]

    def _run(self, kind: bytes, inputs: list[Array], tensors: Sequence[TensorInfo]) -> tuple[int, list[Array]]:
        """Send a request of this ``kind``; return the status and the arrays of ``tensors`` from the answer."""
        request = kind + b"".join(array.tobytes() for array in inputs)
        answer = self._ask(request, 4 + sum(tensor.size for tensor in tensors))
        arrays, offset = [], 4
        for tensor in tensors:
            array = empty_output(tensor)
            piece = np.frombuffer(answer, array.dtype, array.size, offset)
            arrays.append(piece.reshape(array.shape).copy())
            offset += array.nbytes
        return int.from_bytes(answer[:4], "little", signed=True), arrays

    def reset(self) -> int:
        """Reset the state; as ``Machine``."""
        return int.from_bytes(self._ask(_RESET, 4), "little", signed=True)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
            self._kept.close()

    def _ask(self, request: bytes, size: int) -> bytes:
        if self._process is None:
            self._process = self._start()
            request = self._sizes() + request
        process = self._process
        try:
            answer = _exchange(process, request, size, self._timeout)
        except subprocess.TimeoutExpired:
            self.close()
            raise TimedOutError(
                "run-timed-out",
                place=self._module.name,
                reason=f"the run did not end within {self._timeout:g} s and was stopped",
                hint="set a longer --timeout",
            ) from None
        if len(answer) < size:
            status = process.wait()
            self.close()
            raise ProcessFailedError("run-crashed", place=self._module.name, reason=f"its code {_end(status)}")
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-I", str(Path(__file__).with_name("isolated_process.py")), str(self._path)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._kept.enter_context(kept(process))
        return process

    def _sizes(self) -> bytes:
        """Return the three lines that the child reads first."""
        groups = (self._module.inputs, self._module.outputs, self._traced)
        return "".join(f"{' '.join(str(tensor.size) for tensor in tensors)}\n" for tensors in groups).encode()


def _exchange(process: subprocess.Popen[bytes], request: bytes, size: int, timeout: float) -> bytes:
    """Write ``request`` and read ``size`` bytes, fewer if the process ended."""
    answer: list[bytes] = []
    pipes = pipe_of(process.stdin), pipe_of(process.stdout)
    worker = threading.Thread(target=_talk, args=(*pipes, request, size, answer), daemon=True)
    worker.start()
    worker.join(timeout)
    if worker.is_alive():
        raise subprocess.TimeoutExpired("module", timeout)
    return answer[0] if answer else b""


def _talk(to: IO[bytes], source: IO[bytes], request: bytes, size: int, answer: list[bytes]) -> None:
    try:
        to.write(request)
        to.flush()
        answer.append(source.read(size))
    except OSError:  # the process ended before it read the request
        return


def _end(status: int) -> str:
    """Return how a process ended, as a predicate."""
    if status < 0:
        try:
            return f"crashed ({signal.Signals(-status).name})"
        except ValueError:
            return f"was ended by signal {-status}"
    return f"ended the process with status {status}"
