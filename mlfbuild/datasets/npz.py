"""Data in a ``.npz`` file: a ZIP file with an array (``.npy``) in each member, of which the first axis counts cases.

``numpy.load`` would read an array as a whole. A member is read from its beginning to its end instead, a batch at a
time: the format puts the last axis first in memory (C order), so that cases follow each other. Arrays in Fortran's
order, which interleave the cases, are refused.
"""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from mlfbuild.core import CheckFailedError, InputFileError, listed, printable, shown
from mlfbuild.datasets.cases import Array, Batch, fitted
from mlfbuild.library import TensorInfo

LABELS = "labels"
_SAVEZ = "write the file with numpy.savez"


@dataclass(frozen=True)
class _Header:
    member: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class NpzData:
    """The cases of one ``.npz`` file; see ``Dataset``."""

    classes: tuple[str, ...] = ()

    def __init__(self, path: Path, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo] = ()) -> None:
        """Read the headers of the file for a network with these ``inputs``.

        Raises ``InputFileError`` if the file cannot be read or lacks an input, and ``CheckFailedError`` without cases.
        """
        self._path = path
        self._inputs = tuple(inputs)
        with _readable(path), zipfile.ZipFile(path) as archive:
            headers = {name.removesuffix(".npy"): _header(archive, name) for name in archive.namelist()}
        self._taken = [headers[array_name(path, headers, "in", *each)] for each in enumerate(inputs)]
        self._labels = headers.pop(LABELS, None)
        self._outputs = [headers[array_name(path, headers, "out", *each)] for each in enumerate(outputs)]
        taken = [*self._taken, *self._outputs, *([self._labels] if self._labels else [])]
        counts = sorted({header.shape[0] if header.shape else 1 for header in taken})
        if len(counts) > 1:
            raise InputFileError(
                "data-case-counts",
                place=path,
                reason=f"the arrays hold different numbers of cases: {listed([str(count) for count in counts])}",
                hint="make the first axis of all arrays equally long",
            )
        if counts == [0]:
            raise CheckFailedError(
                "data-without-cases", place=path, reason="the file holds no cases", hint="add at least one case"
            )
        self.cases = counts[0]

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield all cases, ``size`` at a time; raises ``InputFileError``."""
        labels = [self._labels] if self._labels else []
        with _readable(self._path), contextlib.ExitStack() as stack, zipfile.ZipFile(self._path) as archive:
            # Each member gets a position of its own: zipfile keeps one for each open member.
            streams = [
                (header, stack.enter_context(_opened(archive, header)))
                for header in (*self._taken, *labels, *self._outputs)
            ]
            for start in range(0, self.cases, size):
                count = min(size, self.cases - start)
                arrays = [_read(self._path, header, stream, count) for header, stream in streams]
                inputs = tuple(
                    fitted(array, tensor, f"{self._path}: {shown(header.member)}")
                    for array, tensor, header in zip(arrays, self._inputs, self._taken, strict=False)
                )
                rest = arrays[len(inputs) :]
                classes = self._as_labels(rest.pop(0)) if labels else None
                yield Batch(inputs, classes, tuple(each.reshape(count, -1).astype(np.float32) for each in rest))

    def _as_labels(self, array: Array) -> Array:
        flat = array.reshape(len(array), -1)
        if array.dtype.kind not in "iu" or flat.shape[1] != 1:
            raise InputFileError(
                "data-labels",
                place=f"{self._path}: {LABELS}",
                reason=f"labels are {array.dtype} of shape {list(array.shape)}, not one integer for each case",
                hint="write the index of each case's class, such as numpy.argmax(one_hot, axis=1)",
            )
        return flat[:, 0].astype(np.int64)


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except InputFileError:
        raise
    except FileNotFoundError:
        raise InputFileError(
            "no-data-file", place=path, reason="there is no such file", hint="correct the path"
        ) from None
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, RuntimeError, NotImplementedError) as error:
        reason = printable(" ".join(str(error).split()) or type(error).__name__)
        raise InputFileError(
            "not-a-data-file",
            place=path,
            reason=f"the file is not a .npz file that can be read ({reason})",
            hint=_SAVEZ,
        ) from None


def _header(archive: zipfile.ZipFile, member: str) -> _Header:
    with archive.open(member) as stream:
        return _read_header(member, stream)


def _read_header(member: str, stream: IO[bytes]) -> _Header:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    if dtype.hasobject or (fortran and len(shape) > 1):
        raise ValueError(f"{member} holds {'objects' if dtype.hasobject else 'an array in Fortran order'}")
    return _Header(member, shape, dtype)


@contextlib.contextmanager
def _opened(archive: zipfile.ZipFile, header: _Header) -> Iterator[IO[bytes]]:
    with archive.open(header.member) as stream:
        _read_header(header.member, stream)
        yield stream


def _read(path: Path, header: _Header, stream: IO[bytes], cases: int) -> Array:
    shape = (cases, *header.shape[1:])
    wanted = int(np.prod(shape)) * header.dtype.itemsize
    data = stream.read(wanted)
    if len(data) != wanted:
        reason = f"the array {shown(header.member)} ends too early"
        raise InputFileError("not-a-data-file", place=path, reason=reason, hint=_SAVEZ)
    return np.frombuffer(data, header.dtype).reshape(shape)


def array_name(path: Path, known: Container[str], prefix: str, index: int, tensor: TensorInfo) -> str:
    """Return which of the ``known`` arrays in ``path`` is input or output (``in``, ``out``) ``index``, the ``tensor``.

    It has the position, ``in0``, or a name of the tensor, ``in_image`` or ``image``. Raises ``InputFileError`` if none
    has.
    """
    names = [f"{prefix}{index}", *(f"{prefix}_{name}" for name in tensor.names), *tensor.names]
    found = next((name for name in names if name in known), None)
    if found is None:
        raise InputFileError(
            "array-missing",
            place=path,
            reason=f"no array for {prefix}put {index} of the network",
            hint=f"add an array {names[0]} or {shown(names[1])}",
        )
    return found
