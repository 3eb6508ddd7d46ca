"""Files are read whole and written whole: a reader never meets half a file, and a failed write leaves the old one.

``OSError`` is turned into the error with the right exit code here, once, so that no other module needs to catch it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from mlfbuild.core.errors import InputFileError, StorageError

_RANDOM_BYTES = 6
"""In the name of a temporary file."""
_CHUNK = 1024 * 1024
"""Bytes that are read at a time where a file may be large."""


def sha256(data: bytes | memoryview | Iterable[bytes]) -> str:
    """Return the SHA-256 of ``data``, whole or in parts, as 64 lower-case hexadecimal digits."""
    digest = hashlib.sha256()
    for part in [data] if isinstance(data, (bytes, memoryview)) else data:
        digest.update(part)
    return digest.hexdigest()


def file_sha256(file: BinaryIO) -> str:
    """Return the SHA-256 of what is left to read of ``file``; raises ``OSError``."""
    return sha256(iter(lambda: file.read(_CHUNK), b""))


def read_bytes(path: Path, what: str) -> bytes:
    """Return the content of the file ``path``; ``what`` names its role ("model", "archive") in messages.

    Raises ``InputFileError`` where it is missing, a folder, or not readable.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise _input_error(path, what, error) from None


def open_binary(path: Path, what: str) -> BinaryIO:
    """Open the file ``path`` for reading; ``what`` names its role in messages.

    Raises ``InputFileError`` where it is missing, no plain file, or not readable.
    """
    try:
        if path.is_fifo():  # opening one waits for somebody who writes
            raise InputFileError(f"{path}: is a pipe, not a file; save the {what} in a file first")
        return path.open("rb")
    except OSError as error:
        raise _input_error(path, what, error) from None


def _input_error(path: Path, what: str, error: OSError) -> InputFileError:
    if isinstance(error, FileNotFoundError):
        return InputFileError(f"{path}: no such {what}; check the path")
    if isinstance(error, IsADirectoryError):
        article = "an" if what[0] in "aeiou" else "a"
        return InputFileError(f"{path}: is a folder, not {article} {what}; name the file itself")
    return InputFileError(f"{path}: cannot read the {what}: {error.strerror or error}; check its permissions")


def storage_error(path: Path, error: OSError) -> StorageError:
    """Return the ``StorageError`` that tells why ``path`` could not be written."""
    in_the_way = isinstance(error, (FileExistsError, NotADirectoryError))
    advice = (
        "a file stands where a folder is needed: move it away" if in_the_way else "check free space and permissions"
    )
    return StorageError(f"{path}: cannot write: {error.strerror or error}; {advice}")


def real_place(path: Path) -> Path:
    """Return where ``path`` really is, whether it is there or not; no symbolic link hides what it lies in."""
    return Path(os.path.realpath(path))  # Path.resolve() of Python before 3.13 raises an error for a loop of links


def make_folder(path: Path) -> None:
    """Create the folder ``path`` and its parents; raises ``StorageError``."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(path, error) from None


def cache_folder(name: str) -> Path:
    """Return the folder ``name`` in the user's cache folder of mlfbuild (``~/.cache/mlfbuild`` on Linux), created.

    Raises ``StorageError``.
    """
    from platformdirs import user_cache_path  # few programs need it

    folder = user_cache_path("mlfbuild") / name
    make_folder(folder)
    return folder


def make_once(path: Path, make: Callable[[Path], Path]) -> Path:
    """Return ``path``; where it is not there, ``make`` makes it in the empty folder that it is given.

    It appears whole or not at all, whoever else makes the same. Raises ``StorageError``, and what ``make`` raises.
    """
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            made = make(Path(folder))
            try:
                made.replace(path)
            except OSError as error:
                raise storage_error(path, error) from None
    return path


def write_atomic(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write ``data``, whole or in parts, to ``path``: only the old or the new content is ever seen there, mode 644.

    The parent folder is created. Raises ``StorageError``, or what producing the parts does; nothing is left behind
    then.
    """
    make_folder(path.parent)
    # The name is ours before the file is there: whenever Ctrl-C strikes, we know what to remove.
    temporary = path.with_name(f".{path.name}.{os.urandom(_RANDOM_BYTES).hex()}.tmp")
    try:
        with temporary.open("xb") as file:
            file.writelines([data] if isinstance(data, bytes) else data)
            os.fchmod(file.fileno(), 0o644)
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise storage_error(path, error) from None
        raise


def abandoned(path: Path) -> list[Path]:
    """Return the temporary files beside ``path`` of calls of ``write_atomic`` that were killed, or still run."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{{2 * _RANDOM_BYTES}}}\.tmp")
    try:
        return sorted(entry for entry in path.parent.iterdir() if name.fullmatch(entry.name))
    except OSError:
        return []


def holds(path: Path, data: bytes | Iterable[bytes]) -> bool:
    """Whether the content of the file ``path`` is ``data``, whole or in parts; False where it cannot be read."""
    parts = [data] if isinstance(data, bytes) else data
    try:
        with path.open("rb") as file:
            return all(file.read(len(part)) == part for part in parts) and not file.read(1)
    except OSError:
        return False


def write_if_changed(path: Path, data: bytes) -> bool:
    """Write ``data`` unless ``path`` holds it already, so that an unchanged file keeps its time; True if written."""
    if holds(path, data):
        return False
    write_atomic(path, data)
    return True
