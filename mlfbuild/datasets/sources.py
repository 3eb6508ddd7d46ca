"""Sources of data: the kind of each, and the files that decide its cases."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import InputFileError, file_sha256, open_binary, sha256
from mlfbuild.datasets.data_keys import DataKeys, case_files, data_kind, data_problems
from mlfbuild.datasets.functions import function_file

if TYPE_CHECKING:  # a build with nothing to do lists the files, and importing numpy takes 0.1 s
    from mlfbuild.datasets.cases import Dataset
    from mlfbuild.library import TensorInfo

_COARSEST = 3 * 10**9
_DIGESTS: dict[tuple[Path, int, int, int, int, int], str] = {}


def open_data(keys: DataKeys, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo] = ()) -> Dataset:
    """Return the data that ``keys`` name, for a network with these ``inputs``.

    ``outputs`` are those that expected outputs are looked for; without them, only labels are read. Raises
    ``UsageError`` for keys without effect, ``InputFileError`` if the source is missing, is of no known kind, or does
    not fit the network, and ``ToolNotFoundError`` if a library for the kind is not installed.
    """
    for key, mistake in data_problems(keys):
        raise mistake.error(f"{keys.source}: {key}") from None
    kind = data_kind(keys)
    # Each kind is imported when it is used: one needs a library, another the compiler's arithmetic.
    if kind == "function":
        from mlfbuild.datasets.yielded import YieldedData

        return YieldedData(keys, inputs, outputs)
    if kind == "npz":
        from mlfbuild.datasets.npz import NpzData

        return NpzData(keys.source, inputs, outputs)
    if keys.source.is_dir():
        from mlfbuild.datasets.folder import FolderData

        return FolderData(keys, kind, inputs, outputs)
    if not keys.source.exists():
        hint = "correct the path"
        raise InputFileError("no-data-file", place=keys.source, reason="there is no such file or folder", hint=hint)
    raise InputFileError(
        "data-kind-unknown",
        place=keys.source,
        reason="data are a .npz file, a folder of images or .wav files, or module:function",
        hint="write a .npz file with numpy.savez, or name the folder of the file",
    )


def data_files(keys: DataKeys) -> list[Path]:
    """Return the files that decide the cases, in order; they may be missing.

    What a function reads beside its own module and the key ``files`` is not known.
    """
    if keys.function:
        return [function_file(keys.source), *(file for path in keys.files for file in _files(path))]
    return list(_files(keys.source))


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from case_files(path)
    else:
        yield path


def data_digest(keys: DataKeys) -> str:
    """Return one SHA-256 of the preparation, and of the names and contents of the data's files.

    Names are relative to the source, because folders are labels. Raises ``InputFileError``.
    """
    prepared = {name: value for name, value in dataclasses.asdict(keys).items() if name not in ("source", "files")}
    lines = [f"{keys.function}\0{prepared}\n".encode()]
    for path in data_files(keys):
        name = path.relative_to(keys.source) if path.is_relative_to(keys.source) else path.name
        lines.append(f"{name}\0{_file_digest(path)}\n".encode())
    return sha256(lines)


def _file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, read once by a process: each CPU of a build asks for the same data."""
    with open_binary(path, "data") as file:
        about = os.fstat(file.fileno())
        state = (path, about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
        # A file that has just changed may change again without another time; the coarsest clock of disks has 2 s.
        if time.time_ns() - max(about.st_mtime_ns, about.st_ctime_ns) < _COARSEST:
            return file_sha256(file)
        if state not in _DIGESTS:
            _DIGESTS[state] = file_sha256(file)
        return _DIGESTS[state]
