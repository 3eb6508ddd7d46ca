"""Vectors: inputs and expected outputs of a module, from an untrusted ``.npz`` file.

Arrays are called ``in0``, ``in_<name>`` or ``<name>``, ``out0`` or ``out_<name>``, with the name of the interface or
the one in the model file; the first axis counts cases. The number ``tolerance`` replaces the tolerance of floats that
follows from the network.

``mlfbuild vectors`` and ``mlfbuild init`` note where the expected outputs come from, as JSON in the comment of the
``.npz`` file, which is a ZIP archive; other readers ignore it::

    {"mlfbuild_vectors": 1, "judge": "TensorFlow Lite Micro 0.1.2", "checked": true, "seed": 0,
     "model": "<SHA-256 of the model's files>", "arrays": "<SHA-256 of the arrays>"}

``numpy.savez`` writes no comment, and arrays that were changed have another hash: such a file is the user's own, which
mlfbuild never replaces.
"""

from __future__ import annotations

import hashlib
import io
import json
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mlfbuild.core import CheckFailedError, InputFileError, MlfError, listed, printable, quoted, read_bytes, shown
from mlfbuild.datasets import array_name
from mlfbuild.executor import check_described
from mlfbuild.library import Module, TensorInfo, dtype_called

Array = npt.NDArray[Any]

NOTE = "mlfbuild_vectors"
"""The first key of the comment in files that mlfbuild wrote; the page of this module describes it."""
_OF_THE_MODEL = frozenset({
    "array-missing", "vectors-array-shape", "vectors-array-type", "vectors-unknown-array",
})  # fmt: skip
"""Reasons why vectors do not fit a model."""
_SAVEZ = "write the file with numpy.savez"
_LARGEST = 1 << 30
"""Maximum unpacked bytes of a vectors file."""

UNREADABLE = (
    zipfile.BadZipFile, zlib.error, tokenize.TokenError, SyntaxError, ValueError, OSError, EOFError, LookupError,
    MemoryError, RuntimeError, TypeError,
)  # fmt: skip
"""Exceptions of zipfile and of numpy's header parser for files that are damaged, encrypted or malicious."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """One array for each input and output of a module, in call order; ``array[case]`` is one tensor, flat."""

    cases: int
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    tolerance: float | None = None
    """The part of the greatest value by which floats of an output may differ; ``None`` if the file sets none."""


class HasTensors(Protocol):
    """A module, or the description of a module in an image."""

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

    Raises ``InputFileError`` if the file is damaged or does not fit the module, ``UnsupportedModelError`` if the
    archive does not record its tensors, and ``CheckFailedError`` if the file holds no cases: a check of nothing must
    not pass.
    """
    try:
        if isinstance(module, Module):
            check_described(module)
        arrays = read_arrays(path)
        inputs = _arrays_of(path, arrays, "in", module.inputs)
        outputs = _arrays_of(path, arrays, "out", module.outputs)
        tolerance = _tolerance(path, arrays.pop("tolerance", None))
        # A misspelled name would otherwise be an output that is never compared.
        if arrays:
            raise InputFileError(
                "vectors-unknown-array",
                place=f"{path}: {listed([shown(name) for name in sorted(arrays)])}",
                reason=f"no such input or output, {module.name} has {_names('in', module.inputs)} and "
                f"{_names('out', module.outputs)}",
                hint="rename or remove the array",
            )
        return Vectors(_cases(path, (*inputs, *outputs) if outputs else ()), inputs, outputs, tolerance)
    except InputFileError as error:
        if error.code in _OF_THE_MODEL and _is_from_mlfbuild(path):
            error.hint = "the model has changed since: run `mlfbuild vectors`, which computes them again"
        raise


def _is_from_mlfbuild(path: Path) -> bool:
    with zipfile.ZipFile(path) as archive:
        return archive.comment.startswith(f'{{"{NOTE}"'.encode())


def count_cases(path: Path) -> int:
    """Return the number of cases in ``path``, whatever module they are for; raises as ``load_vectors``.

    A scalar counts as one case, and the array ``tolerance`` is not an input. Raises ``CheckFailedError`` if there are
    no cases, and ``InputFileError`` if the arrays have different numbers of them.
    """
    arrays = read_arrays(path)
    arrays.pop("tolerance", None)
    return _cases(path, [array if array.ndim else array.reshape(1) for array in arrays.values()])


def _tolerance(path: Path, array: Array | None) -> float | None:
    if array is None:
        return None
    if array.shape != () or array.dtype.kind not in "fiu" or not 0 <= array < np.inf:
        raise InputFileError(
            "vectors-tolerance",
            place=f"{path}: tolerance",
            reason="the tolerance is not a finite number of at least 0",
            hint="write one number, the part of an output's greatest value by which floats may differ",
        )
    return float(array)


def load_inputs(path: Path, module: HasTensors) -> tuple[int, tuple[Array, ...]]:
    """Return the number of cases in ``path`` and the inputs of ``module``, in the form of ``Vectors``.

    Expected outputs in the file are ignored. Each input is an array (cases, elements), little-endian and contiguous.
    Raises as ``load_vectors``.
    """
    if isinstance(module, Module):
        check_described(module)
    arrays = read_arrays(path)
    inputs = _arrays_of(path, arrays, "in", module.inputs)
    return _cases(path, inputs), inputs


def generated_inputs(module: HasTensors, seed: int | None = None) -> tuple[Array, ...]:
    """Return one case for each input of ``module``, as ``load_inputs``: zeros, or random numbers of the ``seed``.

    Raises as ``check_described``.
    """
    if isinstance(module, Module):
        check_described(module)
    sides = [(dtype_called(tensor.dtype), (1, tensor.size // dtype_called(tensor.dtype).itemsize))
             for tensor in module.inputs]  # fmt: skip
    if seed is None:
        return tuple(np.zeros(shape, dtype) for dtype, shape in sides)
    random = np.random.RandomState(seed)
    return tuple(random_array(random, dtype, shape) for dtype, shape in sides)


def random_array(random: np.random.RandomState, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Return numbers for an input, the same for a seed on every machine.

    Integers of 8 and 16 bits have their whole range, floats are from -1 to 1, and larger integers, which are usually
    indices, 0 or 1. ``RandomState`` is the generator whose numbers numpy promises not to change.
    """
    if dtype.kind == "f":
        return random.uniform(-1, 1, shape).astype(dtype)
    if dtype.kind in "iu" and dtype.itemsize <= 2:
        limits = np.iinfo(dtype)
        return random.randint(limits.min, limits.max + 1, shape).astype(dtype)
    return random.randint(0, 2, shape).astype(dtype)


def _cases(path: Path, arrays: Sequence[Array]) -> int:
    counts = {len(array) for array in arrays}
    if len(counts) > 1:
        reason = f"the arrays hold different numbers of cases: {listed([str(count) for count in sorted(counts)])}"
        hint = "make the first axis of all arrays equally long"
        raise InputFileError("vectors-case-counts", place=path, reason=reason, hint=hint)
    # No arrays at all, or arrays without cases.
    if counts <= {0}:
        raise CheckFailedError(
            "vectors-without-cases",
            place=path,
            reason="the file holds no cases, which the first axis of each array counts",
            hint="add at least one case",
        )
    return counts.pop()


def _names(prefix: str, tensors: Sequence[TensorInfo]) -> str:
    return ", ".join(f"{prefix}{index}" for index in range(len(tensors))) or f"no {prefix}puts"


def read_arrays(path: Path) -> dict[str, Array]:
    """Return the arrays in ``path`` by name.

    Raises ``InputFileError`` if it cannot be read, is no ``.npz`` file without pickled objects, or unpacks to more than
    1 GiB.
    """
    data = read_bytes(path, "vectors file")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            # A small ZIP file can unpack to more than the memory. The directory may understate a size, but zipfile then
            # stops at it.
            if sum(member.file_size for member in archive.infolist()) > _LARGEST:
                raise InputFileError(
                    "vectors-too-large",
                    place=path,
                    reason=f"the file unpacks to more than {_LARGEST >> 20} MiB",
                    hint="split the vectors into several files",
                )
        # A pickle in the file would run code of its author.
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers that numpy reads in a slower way
            read = {name: arrays[name] for name in arrays.files}
    except UNREADABLE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputFileError(
            "not-a-vectors-file",
            place=path,
            reason=f"the file is not a .npz file that numpy reads without pickle ({printable(reason)})",
            hint=_SAVEZ,
        ) from None
    for name, array in read.items():
        if not isinstance(array, np.ndarray):
            raise InputFileError(
                "not-a-vectors-file", place=f"{path}: {shown(name)}", reason="this member is not an array", hint=_SAVEZ
            )
    return read


def _arrays_of(path: Path, arrays: dict[str, Array], prefix: str, tensors: Iterable[TensorInfo]) -> tuple[Array, ...]:
    """Take the array of each tensor out of ``arrays``, checked and flattened to (cases, elements)."""
    taken = []
    for index, tensor in enumerate(tensors):
        key = array_name(path, arrays, prefix, index, tensor)
        taken.append(_checked(f"{path}: {shown(key)}", arrays.pop(key), tensor))
    return tuple(taken)


def _converted(array: Array, tensor: TensorInfo) -> str:
    if array.dtype.kind == "f" and tensor.scale is not None:
        stored = f"round(number / {tensor.scale:.9g}) + {tensor.zero_point}"
        return f"write numbers as the network stores them, {stored}, or compute the file with `mlfbuild vectors`"
    return f"convert the array to {tensor.dtype}"


def _checked(where: str, array: Array, tensor: TensorInfo) -> Array:
    if array.dtype.name != tensor.dtype:
        raise InputFileError(
            "vectors-array-type",
            place=where,
            reason=f"the array has the type {array.dtype}, but {quoted(tensor.name)} is {tensor.dtype}",
            hint=_converted(array, tensor),
        )
    if not _shape_fits(array, tensor):
        wanted = f"the shape {list(tensor.shape)}" if tensor.shape is not None else f"{tensor.size} bytes"
        raise InputFileError(
            "vectors-array-shape",
            place=where,
            reason=f"the array has the shape {list(array.shape)}, but a case of {quoted(tensor.name)} has {wanted}",
            hint="let the first axis count cases and the others be one case",
        )
    elements = tensor.size // array.itemsize
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(len(array), elements)


def _shape_fits(array: Array, tensor: TensorInfo) -> bool:
    """Return whether a case of ``array`` has the shape of ``tensor``; a batch axis of 1 may be omitted."""
    if array.ndim == 0:
        return False
    if tensor.shape is None:
        return int(np.prod(array.shape[1:])) * array.itemsize == tensor.size
    # Data sets usually have no batch axis, models have one of 1.
    shapes = [tensor.shape, tensor.shape[1:]] if tensor.shape[:1] == (1,) else [tensor.shape]
    return array.shape[1:] in shapes


@dataclass(frozen=True)
class VectorsOrigin:
    """The origin of a vectors file: the program that computed the outputs, the model and the inputs."""

    judge: str
    """Name and version of the implementation."""
    checked: bool
    """Whether it is another implementation than mlfbuild's own."""
    seed: int | None
    """Seed of the random inputs; ``None`` for data of the user."""
    model: str
    """SHA-256 of the model's files, the ``model_id`` of archives."""
    arrays: str = ""
    """SHA-256 of names, types, shapes and bytes of the arrays."""


def vectors_file(inputs: Sequence[Array], outputs: Sequence[Array], origin: VectorsOrigin) -> bytes:
    """Return the bytes of a vectors file (``.npz``) with ``origin``; same arrays, same bytes.

    The first axis of each array counts cases. ``in0``, ``in1``, ... and ``out0``, ... are their names in the file; the
    hash of the arrays is added to the origin.
    """
    arrays = {f"in{index}": array for index, array in enumerate(inputs)}
    arrays |= {f"out{index}": array for index, array in enumerate(outputs)}
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stubs take a name for the option allow_pickle
    # In the comment, because readers would take an additional member for an array.
    with zipfile.ZipFile(file, "a") as archive:
        # A ZIP comment has at most 65,535 bytes; the note has some hundred bytes.
        noted = {NOTE: 1, **asdict(replace(origin, arrays=_digest(arrays)))}
        archive.comment = json.dumps(noted).encode()
    return file.getvalue()


def vectors_origin(path: Path) -> VectorsOrigin | None:
    """Return the origin of the vectors at ``path``, ``None`` if mlfbuild did not write them as they are.

    Raises ``InputFileError`` if they cannot be read.
    """
    arrays = read_arrays(path)
    with zipfile.ZipFile(path) as archive:
        comment = archive.comment
    try:
        fields = json.loads(comment)
        if fields.pop(NOTE) != 1:
            return None
        origin = VectorsOrigin(**fields)
    # Any program can write a comment. One of another form is simply not a note of mlfbuild.
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return None
    return origin if origin.arrays == _digest(arrays) else None


def vectors_remarks(path: Path, model: str) -> tuple[str, ...]:
    """Return what a report says about the vectors at ``path`` beside a result for ``model``, the ``model_id``.

    Empty if there is nothing to say, if mlfbuild did not write the file, or if it cannot be read, which the comparison
    itself reports. ``model`` may be empty if it is not known.
    """
    try:
        origin = vectors_origin(path)
    except MlfError:
        return ()
    if origin is None:
        return ()
    remarks = []
    if model and origin.model != model:
        remarks.append(f"{path.name} was computed for another version of the model: run `mlfbuild vectors`")
    if not origin.checked:
        remarks.append(f"no second implementation checked the outputs in {path.name}: mlfbuild computed them itself")
    return tuple(remarks)


def _digest(arrays: Mapping[str, Array]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        # ascontiguousarray() makes a vector of a scalar, so the shape is that of the array as it was given.
        digest.update(f"{name} {array.dtype.str} {list(arrays[name].shape)}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
