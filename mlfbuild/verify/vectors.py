"""Vectors: inputs and expected outputs of a module, from a ``.npz`` file that nobody vouches for.

Arrays are called ``in0`` or ``in_<name>``, ``out0`` or ``out_<name>``; the first axis counts cases.
"""

from __future__ import annotations

import io
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mlfbuild.core import CheckFailedError, InputFileError, read_bytes
from mlfbuild.library import TensorInfo, sanitize_name

Array = npt.NDArray[Any]

_LARGEST = 1 << 30
"""Bytes that a vectors file may unpack to."""

_UNREADABLE = (
    zipfile.BadZipFile, zlib.error, tokenize.TokenError, SyntaxError, ValueError, OSError, EOFError, KeyError,
    MemoryError, RuntimeError,
)  # fmt: skip
"""What zipfile and numpy's parser of headers raise for files that are broken, encrypted or made to confuse them."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """One array for each input and output of a module, in call order; ``array[case]`` is one tensor, flat."""

    cases: int
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]


class HasTensors(Protocol):
    """What vectors are for: a module, or what an image says of its module."""

    @property
    def name(self) -> str:
        """Its name, for messages."""

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """Its inputs, in call order."""

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """Its outputs, in call order."""


def load_vectors(path: Path, module: HasTensors) -> Vectors:
    """Read the vectors of ``module`` from ``path``.

    Raises ``InputFileError`` where the file is not what it should be or does not fit the module, and
    ``CheckFailedError`` where it holds no cases: a check of nothing must not pass.
    """
    arrays = _read(path)
    inputs = _arrays_of(path, arrays, "in", module.inputs)
    outputs = _arrays_of(path, arrays, "out", module.outputs)
    if arrays:
        raise InputFileError(
            f"{path}: {', '.join(sorted(arrays))}: no such input or output, {module.name} has "
            f"{_names('in', module.inputs)} and {_names('out', module.outputs)}; rename or remove it"
        )
    return Vectors(_cases(path, (*inputs, *outputs) if outputs else ()), inputs, outputs)


def load_inputs(path: Path, module: HasTensors) -> tuple[int, tuple[Array, ...]]:
    """Return the number of cases in ``path`` and the inputs of ``module`` there, as ``Vectors`` has them.

    An array may also be called as the input itself; expected outputs in the file are left alone. Raises as
    ``load_vectors``.
    """
    arrays = _read(path)
    for index, tensor in enumerate(module.inputs):
        for name in (tensor.name, sanitize_name(tensor.name)):
            if name in arrays and f"in{index}" not in arrays:
                arrays[f"in{index}"] = arrays.pop(name)
    inputs = _arrays_of(path, arrays, "in", module.inputs)
    return _cases(path, inputs), inputs


def _cases(path: Path, arrays: Sequence[Array]) -> int:
    counts = {len(array) for array in arrays}
    if len(counts) > 1:
        raise InputFileError(
            f"{path}: the arrays hold different numbers of cases: {sorted(counts)}; give all equally many"
        )
    if counts <= {0}:
        raise CheckFailedError(f"{path}: holds no cases, which the first axis of each array counts; add one at least")
    return counts.pop()


def _names(prefix: str, tensors: Sequence[TensorInfo]) -> str:
    return ", ".join(f"{prefix}{index}" for index in range(len(tensors))) or f"no {prefix}puts"


def _read(path: Path) -> dict[str, Array]:
    data = read_bytes(path, "vectors file")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(member.file_size for member in archive.infolist()) > _LARGEST:
                raise InputFileError(f"{path}: unpacks to more than {_LARGEST >> 20} MiB; split the vectors")
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that numpy reads in a slower way
            read = {name: arrays[name] for name in arrays.files}
    except _UNREADABLE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputFileError(
            f"{path}: not a .npz file that numpy reads without pickle: {reason}; write it with numpy.savez"
        ) from None
    for name, array in read.items():
        if not isinstance(array, np.ndarray):
            raise InputFileError(f"{path}: {name}: is not an array; write the file with numpy.savez")
    return read


def _arrays_of(path: Path, arrays: dict[str, Array], prefix: str, tensors: Iterable[TensorInfo]) -> tuple[Array, ...]:
    """Take the array of each tensor out of ``arrays``, checked and flattened to (cases, elements)."""
    taken = []
    for index, tensor in enumerate(tensors):
        keys = [f"{prefix}{index}", f"{prefix}_{tensor.name}", f"{prefix}_{sanitize_name(tensor.name)}"]
        key = next((key for key in keys if key in arrays), None)
        if key is None:
            raise InputFileError(
                f"{path}: has no {keys[0]} (or {keys[1]}) for {prefix}put {index} of the model; add it"
            )
        taken.append(_checked(f"{path}: {key}", arrays.pop(key), tensor))
    return tuple(taken)


def _checked(where: str, array: Array, tensor: TensorInfo) -> Array:
    if array.dtype.name != tensor.dtype:
        raise InputFileError(f"{where}: holds {array.dtype}, {tensor.name!r} is {tensor.dtype}; convert it")
    if not _shape_fits(array, tensor):
        shape = f"shape {list(tensor.shape)}" if tensor.shape is not None else f"{tensor.size} bytes"
        raise InputFileError(
            f"{where}: has shape {list(array.shape)}; the first axis counts cases, the others must be {tensor.name!r}, "
            f"which has {shape}"
        )
    elements = tensor.size // array.itemsize
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(len(array), elements)


def _shape_fits(array: Array, tensor: TensorInfo) -> bool:
    """Whether each case of ``array`` is ``tensor``; the model's batch axis may be left out where it is 1."""
    if array.ndim == 0:
        return False
    if tensor.shape is None:
        return int(np.prod(array.shape[1:])) * array.itemsize == tensor.size
    shapes = [tensor.shape, tensor.shape[1:]] if tensor.shape[:1] == (1,) else [tensor.shape]
    return array.shape[1:] in shapes
