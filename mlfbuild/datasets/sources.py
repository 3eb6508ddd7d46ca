"""Where data come from: which kind a source is, and the files that decide its cases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import InputFileError, file_sha256, open_binary, sha256
from mlfbuild.datasets.data_keys import DataKeys
from mlfbuild.library import TensorInfo

if TYPE_CHECKING:
    from mlfbuild.datasets.cases import Dataset


def open_data(keys: DataKeys, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo] = ()) -> Dataset:
    """Return the data that ``keys`` name, for a network with these ``inputs``.

    ``outputs`` are those that expected outputs are looked for; without them, only labels are read. Raises
    ``InputFileError`` if the source is missing, is of no known kind, or does not fit the network.
    """
    if keys.source.suffix.lower() == ".npz":
        from mlfbuild.datasets.npz import NpzData  # imports numpy, which a build with nothing to do does not need

        return NpzData(keys.source, inputs, outputs)
    raise InputFileError(
        "data-kind-unknown",
        place=keys.source,
        reason="data are a .npz file",
        hint="write one with numpy.savez",
    )


def data_files(keys: DataKeys) -> list[Path]:
    """Return the files that decide the cases, in order; they may be missing."""
    return [keys.source]


def data_digest(keys: DataKeys) -> str:
    """Return one SHA-256 of the names and contents of the data's files; raises ``InputFileError``."""
    lines = []
    for path in data_files(keys):
        with open_binary(path, "data") as file:
            lines.append(f"{path.name}\0{file_sha256(file)}\n".encode())
    return sha256(lines)
