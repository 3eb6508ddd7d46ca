"""Processes that the code of a model runs in: the interface of them, and the present process."""

from __future__ import annotations

import ctypes
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mlfbuild.library import Module, TensorInfo, dtype_called
from mlfbuild.verify.host.trace import traced_tensors

Array = npt.NDArray[Any]


class Machine(Protocol):
    """The process that a model's code runs in: this one or a child."""

    def run(self, inputs: list[Array]) -> tuple[int, list[Array]]:
        """Return the status and the outputs for inputs in call order, all checked."""

    def trace(self, inputs: list[Array]) -> tuple[int, list[Array], list[Array]]:
        """Run as ``run``; return also the tensors that operators wrote, in order of execution."""

    def reset(self) -> int:
        """Reset the state and return the status."""

    def close(self) -> None:
        """Release the resources of the model."""


def empty_output(tensor: TensorInfo) -> Array:
    """Return an array for an output: of its shape, or a vector if the archive does not record the shape."""
    dtype = dtype_called(tensor.dtype)
    return np.zeros(tensor.size // dtype.itemsize if tensor.shape is None else tensor.shape, dtype)


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

    def reset(self) -> int:
        """Reset the state; as ``Machine``."""
        with self._lock:
            return int(self._code.mlf_host_reset())

    def close(self) -> None:
        """Do nothing: a loaded C library cannot be unloaded."""


def _pointers(arrays: list[Array]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * max(1, len(arrays)))(*(array.ctypes.data for array in arrays))
