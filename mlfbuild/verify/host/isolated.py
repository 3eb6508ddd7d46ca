"""Processes that the code of a model runs in: this one, or one that may crash or hang without affecting this one."""

from __future__ import annotations

import contextlib
import ctypes
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt

from mlfbuild.core import ProcessFailedError, TimedOutError, kept, pipe_of
from mlfbuild.library import Module, TensorInfo, dtype_called
from mlfbuild.verify.host.trace import traced_tensors

Array = npt.NDArray[Any]


class Machine(Protocol):
    """The process that a model's code runs in: this one or a child."""

    def run(self, inputs: list[Array]) -> tuple[int, list[Array]]:
        """Return the status and the outputs for inputs in call order, all checked."""

    def trace(self, inputs: list[Array]) -> tuple[int, list[Array], list[Array]]:
        """Run as ``run``; return also the tensors that operators wrote, in order of execution."""

    def run_cases(self, inputs: list[Array]) -> tuple[int, int, list[Array]]:
        """Run each case of ``inputs``, which are (cases, ...), from the initial state.

        Returns the status, the number of cases that ended well, and the outputs, of shape (cases, ...).
        """

    def reset(self) -> int:
        """Reset the state and return the status."""

    def close(self) -> None:
        """Release the resources of the model."""


def empty_output(tensor: TensorInfo) -> Array:
    """Return an array for an output: of its shape, or a vector if the archive does not record the shape."""
    dtype = dtype_called(tensor.dtype)
    return np.zeros(tensor.size // dtype.itemsize if tensor.shape is None else tensor.shape, dtype)


def empty_outputs(tensors: Sequence[TensorInfo], cases: int) -> list[Array]:
    """Return an array for each output of ``cases`` cases, as ``empty_output`` with the cases as its first axis."""
    ones = map(empty_output, tensors)
    return [np.zeros((cases, *one.shape), one.dtype) for one in ones]


class InProcess:
    """The shared object in this process: a copy for each model, because the module's memory is static."""

    def __init__(self, path: Path, module: Module) -> None:
        self._outputs = module.outputs
        self._traced = [traced.tensor for traced in traced_tensors(module)]
        # The static entry point is not reentrant, and ctypes releases the GIL while it runs.
        self._lock = threading.Lock()
        with tempfile.TemporaryDirectory() as folder:
            # dlopen() returns the same object for the same file, and both models would share one arena and one state.
            copy = Path(folder) / "module.so"
            shutil.copyfile(path, copy)
            self._code = ctypes.CDLL(str(copy))

    def run(self, inputs: list[Array]) -> tuple[int, list[Array]]:
        """Run once; as ``Machine``."""
        outputs = [empty_output(tensor) for tensor in self._outputs]
        with self._lock:
            status = int(self._code.mlf_host_run(_pointers(inputs), _pointers(outputs)))
        return status, outputs

    def trace(self, inputs: list[Array]) -> tuple[int, list[Array], list[Array]]:
        """Run once and return also the intermediate tensors; as ``Machine``."""
        outputs, traced = ([empty_output(tensor) for tensor in tensors] for tensors in (self._outputs, self._traced))
        with self._lock:
            status = int(self._code.mlf_host_trace(_pointers(inputs), _pointers(outputs), _pointers(traced)))
        return status, outputs, traced

    def run_cases(self, inputs: list[Array]) -> tuple[int, int, list[Array]]:
        """Run cases; as ``Machine``."""
        outputs = empty_outputs(self._outputs, len(inputs[0]))
        done = ctypes.c_uint64()
        with self._lock:
            status = self._code.mlf_host_run_cases(
                _pointers(inputs), _pointers(outputs), ctypes.c_uint64(len(inputs[0])), ctypes.byref(done)
            )
        return int(status), done.value, outputs

    def reset(self) -> int:
        """Reset the state; as ``Machine``."""
        with self._lock:
            return int(self._code.mlf_host_reset())

    def close(self) -> None:
        """Do nothing: a loaded C library cannot be unloaded."""


def _pointers(arrays: list[Array]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * max(1, len(arrays)))(*(array.ctypes.data for array in arrays))


_RUN, _TRACE, _RESET, _CASES = b"r", b"t", b"z", b"b"
_SECONDS = 1.0
"""About the time of one request with many cases, so that the time limit of a case also ends a batch that hangs."""
_BYTES = 1 << 22
"""About the size of one request, which is in the memory of both processes."""
_GROWTH = 64
"""The most by which a request has more cases than the one before it, whose time it is derived from."""


class RunStoppedError(Exception):
    """The case of a batch that crashed or hung, and how: internal to this folder."""

    def __init__(self, case: int, error: ProcessFailedError) -> None:
        super().__init__(case)
        self.case = case
        self.error = error


class Child:
    """The shared object in a child process, which is restarted after it crashed or was stopped."""

    def __init__(self, path: Path, module: Module, timeout: float) -> None:
        self._path = path
        self._module = module
        self._traced = [traced.tensor for traced in traced_tensors(module)]
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._at_once = 1
        self._kept = contextlib.ExitStack()

    def run(self, inputs: list[Array]) -> tuple[int, list[Array]]:
        """Run once; as ``Machine``. Raises ``ProcessFailedError`` after a crash, ``TimedOutError`` after a hang."""
        return self._run(_RUN, inputs, self._module.outputs)

    def trace(self, inputs: list[Array]) -> tuple[int, list[Array], list[Array]]:
        """Run once and return also the intermediate tensors; as ``Machine``. Raises as ``run``."""
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

    def run_cases(self, inputs: list[Array]) -> tuple[int, int, list[Array]]:
        """Run cases; as ``Machine``. Raises ``RunStoppedError`` after a crash or a hang.

        As many cases as fit into a second are one request. One that fails is repeated case by case, to find which.
        """
        cases, start, one_by_one = len(inputs[0]), 0, False
        outputs = empty_outputs(self._module.outputs, cases)
        most = max(1, _BYTES // sum(tensor.size for tensor in (*self._module.inputs, *self._module.outputs)))
        while start < cases:
            size = 1 if one_by_one else min(self._at_once, cases - start)
            began = time.monotonic()
            try:
                status, done = self._batch([array[start : start + size] for array in inputs], outputs, start)
            except ProcessFailedError as error:
                if size == 1:
                    raise RunStoppedError(start, error) from error
                one_by_one = True
                continue
            if status != 0:
                return status, start + done, outputs
            start += size
            wanted = size * _SECONDS / max(time.monotonic() - began, 1e-6)
            self._at_once = max(1, min(int(wanted), size * _GROWTH, most))
        return 0, cases, outputs

    def _batch(self, inputs: list[Array], outputs: list[Array], start: int) -> tuple[int, int]:
        """Run ``inputs`` as one request, and put the results into ``outputs`` from ``start``."""
        cases = len(inputs[0])
        request = _CASES + cases.to_bytes(8, "little") + b"".join(array.tobytes() for array in inputs)
        answer = self._ask(request, 12 + cases * sum(tensor.size for tensor in self._module.outputs))
        offset = 12
        for array in outputs:
            part = array[start : start + cases]
            part[...] = np.frombuffer(answer, array.dtype, part.size, offset).reshape(part.shape)
            offset += part.nbytes
        return int.from_bytes(answer[:4], "little", signed=True), int.from_bytes(answer[4:12], "little")

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
            # Not at the start: a child that hangs while it loads the object is then ended by the time limit of the
            # first run.
            # The child first reads three lines with the sizes of all tensors.
            groups = (self._module.inputs, self._module.outputs, self._traced)
            sizes = (" ".join(str(tensor.size) for tensor in tensors) for tensors in groups)
            request = "".join(f"{line}\n" for line in sizes).encode() + request
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
        # -I: no modules from the current folder or PYTHONPATH, and no user site.
        command = [sys.executable, "-I", str(Path(__file__).with_name("isolated_process.py")), str(self._path)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._kept.enter_context(kept(process))
        return process


def _exchange(process: subprocess.Popen[bytes], request: bytes, size: int, timeout: float) -> bytes:
    """Write ``request`` and read ``size`` bytes, fewer if the process ended."""
    answer: list[bytes] = []
    pipes = pipe_of(process.stdin), pipe_of(process.stdout)
    # A thread, because a pipe has no time limit on Windows, and both directions may block: the request is larger than a
    # pipe.
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
