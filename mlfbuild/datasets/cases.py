"""Data sets for the inputs of one network: what all kinds have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mlfbuild.core import InputFileError, UsageError, counted, quoted
from mlfbuild.datasets.data_keys import DataKeys
from mlfbuild.library import TensorInfo, dtype_called

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some cases, in order."""

    inputs: tuple[Array, ...]
    """One array for each input of the network, in call order, of shape (cases, *shape of the input): float32 for real
    numbers, or the integer type of the input."""
    labels: Array | None = None
    """The class of each case, int64 of shape (cases,); ``None`` if the data have none."""
    outputs: tuple[Array, ...] = ()
    """The expected outputs, float32 of shape (cases, elements); empty if the data have none."""

    def __len__(self) -> int:
        """Return the number of cases."""
        return len(self.inputs[0])


class Dataset(Protocol):
    """Cases of one network."""

    @property
    def cases(self) -> int | None:
        """The number of cases; ``None`` if it is known only after the last one."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the labels, in the order of their numbers; empty if they have none."""

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield all cases in order, ``size`` at a time, the last batch with the rest.

        Raises ``InputFileError`` where the data are damaged or do not fit the network.
        """


def case_shape(tensor: TensorInfo) -> tuple[int, ...]:
    """Return the shape of one case of ``tensor``, flat if the archive records no shape."""
    return (tensor.size // dtype_called(tensor.dtype).itemsize,) if tensor.shape is None else tensor.shape


def fitted(array: Array, tensor: TensorInfo, where: str) -> Array:
    """Return ``array`` (cases, ...) as the input ``tensor`` takes it: (cases, *shape), float32 or its integers.

    Raises ``InputFileError`` for another shape, for numbers that are not numbers, and for a type that is neither.
    """
    shape = case_shape(tensor)
    if array.shape[1:] not in ({shape, shape[1:]} if shape[:1] == (1,) else {shape}):
        raise InputFileError(
            "data-shape",
            place=where,
            reason=f"a case has the shape {list(array.shape[1:])}, but {quoted(tensor.name)} has {list(shape)}",
            hint="let the first axis count cases and the others be one case",
        )
    array = array.reshape(len(array), *shape)
    if array.dtype.name == tensor.dtype and array.dtype.kind in "iub":
        return np.ascontiguousarray(array)
    if array.dtype.kind != "f" and not (array.dtype.kind in "iu" and tensor.dtype.startswith("float")):
        raise InputFileError(
            "data-type",
            place=where,
            reason=f"the array has the type {array.dtype}, but {quoted(tensor.name)} takes {tensor.dtype}",
            hint=f"convert the array to float32 for real numbers, or to {tensor.dtype}",
        )
    real = np.ascontiguousarray(array, np.float32)
    if not np.isfinite(real).all():
        case = int(np.argmin(np.isfinite(real.reshape(len(real), -1)).all(axis=1)))
        raise InputFileError(
            "data-not-finite",
            place=where,
            reason=f"{f'case {case} of this part' if len(real) > 1 else 'the case'} has NaN or infinity",
            hint="remove the case, or mend the numbers",
        )
    return real


def normalised(values: Array, keys: DataKeys, channels: int) -> Array:
    """Return ``(values - mean) / std`` in float32, with numbers for all channels or for each on the last axis.

    Raises ``UsageError`` if there are others.
    """
    for name, numbers in (("mean", keys.mean), ("std", keys.std)):
        if len(numbers) > 1 and len(numbers) != channels:
            raise UsageError(
                f"data-{name}",
                place=f"{keys.source}: {name}",
                reason=f"{len(numbers)} numbers for {counted(channels, 'channel')}",
                hint="write one number, or one for each channel",
            )
    mean, std = (np.array(numbers or (usual,), np.float32) for numbers, usual in ((keys.mean, 0), (keys.std, 1)))
    return np.asarray((np.asarray(values, np.float32) - mean) / std)
