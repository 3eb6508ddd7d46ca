"""The kinds of data: which file or function is read how."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mlfbuild.core import InputFileError, file_sha256
from mlfbuild.datasets.cases import Dataset
from mlfbuild.datasets.data_keys import DataKeys
from mlfbuild.datasets.npz import NpzData
from mlfbuild.library import TensorInfo


def open_data(keys: DataKeys, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo] = ()) -> Dataset:
    """Return the data of ``keys`` for a network with these ``inputs``; raises as the kind of data does.

    With ``outputs``, the data must have expected ones.
    """
    return NpzData(keys.source, inputs, outputs)


def data_files(keys: DataKeys) -> tuple[Path, ...]:
    """Return the files that decide the data of ``keys``."""
    return (keys.source,)


def data_digest(keys: DataKeys) -> str:
    """Return a hash of everything that decides the data of ``keys``; raises ``InputFileError``."""
    try:
        with keys.source.open("rb") as file:
            return file_sha256(file)
    except OSError as error:
        reason = error.strerror or "the file cannot be read"
        raise InputFileError("no-data-file", place=keys.source, reason=reason, hint="correct the path") from None
