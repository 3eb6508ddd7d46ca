"""Read and write files as a whole, and let one process at a time write.

A reader never sees half a file, and a failed write leaves the old one in place. Functions that take the role of a file
(``"model"``, ``"archive"``) turn ``OSError`` into the error with the right exit code, so that other modules do not need
to catch it.

A lock is ``flock`` on a file that contains the number of the process that has it; on Windows, it is a locked byte far
behind that number, because no other process can read locked bytes there. The system releases it when that process ends,
however it ends. The file is removed with the lock, so that build folders contain no trace of it. The package filelock
does the same, but leaves its files, and its import takes a tenth of the time of a build without work (46 ms).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import math
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from mlfbuild.core.errors import InputFileError, StorageError

SHA256 = re.compile(r"[0-9a-f]{64}")
"""The text of a digest."""
_DEVICES = Path("/dev")
_RANDOM_BYTES = 6
"""Random part of the name of a temporary file."""
_LFS = b"version https://git-lfs.github.com/spec/"
"""The first bytes of a pointer file (docs/spec.md of git-lfs)."""
LFS_HINT = "get the file with `git lfs pull`"
_CHUNK = 1024 * 1024
"""Bytes to read at a time from a file that may be large."""


def sha256(data: bytes | memoryview | Iterable[bytes]) -> str:
    """Return the SHA-256 of ``data``, whole or in parts, as 64 lower-case hexadecimal digits.

    Parts are hashed as if they were joined. Pass ``chunks(content)`` for a content that may be larger than memory.
    """
    digest = hashlib.sha256()
    for part in [data] if isinstance(data, (bytes, memoryview)) else data:
        digest.update(part)
    return digest.hexdigest()


def file_sha256(file: BinaryIO) -> str:
    """Return the SHA-256 of ``file`` from its current position on; raises ``OSError``.

    It reads 1 MiB at a time, and leaves the position at the end of the file.
    """
    return sha256(iter(lambda: file.read(_CHUNK), b""))


def read_bytes(path: Path, what: str) -> bytes:
    """Return the content of the file ``path``; ``what`` names its role ("model", "archive") in messages.

    Raises ``InputFileError`` if it is missing, a folder, a pointer of Git LFS, or not readable.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _input_error(path, what, error) from None
    if data.startswith(_LFS):
        raise _lfs_pointer(path, what)
    return data


def open_binary(path: Path, what: str) -> BinaryIO:
    """Open the file ``path`` for reading; ``what`` names its role in messages.

    Raises ``InputFileError`` if it is missing, not a regular file, a pointer of Git LFS, or not readable.
    """
    try:
        if path.is_fifo():  # opening one waits for a writer
            hint = f"save the {what} in a file first"
            raise InputFileError("input-is-pipe", place=path, reason="is a pipe, not a file", hint=hint)
        file = path.open("rb")
        if file.peek(len(_LFS)).startswith(_LFS):
            file.close()
            raise _lfs_pointer(path, what)
        return file
    except OSError as error:
        raise _input_error(path, what, error) from None


def read_regular(path: Path, what: str) -> bytes:
    """As ``read_bytes``, but raises ``InputFileError`` for a pipe, for whose end ``read_bytes`` would wait."""
    open_binary(path, what).close()
    return read_bytes(path, what)


def is_lfs_pointer(path: Path) -> bool:
    """Return whether the file ``path`` is a pointer of Git LFS; False if it cannot be read.

    Git LFS leaves such a text of about 130 bytes in place of each large file that was not downloaded. ``read_bytes``
    and ``open_binary`` refuse it; this function is for callers that only check a project.
    """
    try:
        with path.open("rb") as file:
            return file.read(len(_LFS)) == _LFS
    except OSError:
        return False


def _lfs_pointer(path: Path, what: str) -> InputFileError:
    reason = f"is a pointer of Git LFS, not the {what} itself"
    return InputFileError("git-lfs-pointer", place=path, reason=reason, hint=LFS_HINT)


def _input_error(path: Path, what: str, error: OSError) -> InputFileError:
    if isinstance(error, FileNotFoundError):
        return InputFileError("no-such-input", place=path, reason=f"no such {what}", hint="check the path")
    if isinstance(error, IsADirectoryError):
        article = "an" if what[0] in "aeiou" else "a"
        reason = f"is a folder, not {article} {what}"
        return InputFileError("input-is-folder", place=path, reason=reason, hint="name the file itself")
    reason = f"cannot read the {what}: {error.strerror or error}"
    return InputFileError("input-unreadable", place=path, reason=reason, hint="check its permissions")


def storage_error(path: Path, error: OSError) -> StorageError:
    """Return the ``StorageError`` for ``path``, which could not be written because of ``error``.

    It is returned, not raised, so that callers write ``raise storage_error(path, error) from None`` and type checkers
    see that control does not go on.
    """
    reason = f"cannot write: {error.strerror or error}"
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        hint = "move away the file where a folder is needed"
        return StorageError("file-in-the-way", place=path, reason=reason, hint=hint)
    return StorageError("cannot-write", place=path, reason=reason, hint="check free space and permissions")


def real_place(path: Path) -> Path:
    """Return ``path`` without symbolic links, whether it exists or not.

    Two paths name the same place if the results are equal: locks of one folder, and links that lead out of a folder,
    are recognised by that.
    """
    return Path(os.path.realpath(path))  # Path.resolve() of Python before 3.13 raises an error for a loop of links


def make_folder(path: Path) -> None:
    """Create the folder ``path`` and its parents; raises ``StorageError``.

    An existing folder is not an error. A file in its place, or in that of a parent, is one (``file-in-the-way``).
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        # pathlib raises this also for a folder that another process removes meanwhile, as the owner of a lock does.
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISDIR(path.lstat().st_mode):
                raise storage_error(path, error) from None
        make_folder(path)
    except OSError as error:
        raise storage_error(path, error) from None


def cache_folder(name: str) -> Path:
    """Return the folder ``name`` in the user's cache of mlfbuild, such as ``~/.cache/mlfbuild``, and create it.

    ``XDG_CACHE_HOME`` overrides the parent folder on every system. Raises ``StorageError``.
    """
    from platformdirs import user_cache_path  # few commands use a cache

    base = os.environ.get("XDG_CACHE_HOME")
    # Without appauthor=False, platformdirs adds a second folder on Windows, named as the program's author.
    folder = (Path(base).expanduser() / "mlfbuild" if base else user_cache_path("mlfbuild", appauthor=False)) / name
    make_folder(folder)
    return folder


def trusted_owners() -> set[int]:
    """Return the owners of files that this process may run: its own user and root; Windows reports 0 for all files.

    Used for programs and caches in folders that others may write to: a file of another user could have been planted.
    """
    if sys.platform == "win32":
        return {0}
    else:  # noqa: RET505 - mypy checks one of the branches for each system
        return {0, os.geteuid()}


def make_once(path: Path, make: Callable[[Path], Path]) -> Path:
    """Return ``path``; if it does not exist, have ``make`` produce it in an empty folder and move it there.

    It appears as a whole or not at all, even if several processes make it at the same time. It is made again if another
    user than root wrote it, because it may be a program. Raises ``StorageError``, and the errors of ``make``.
    """
    if not path.exists() or path.lstat().st_uid not in trusted_owners():
        # Next to the result, because a rename is atomic only within one file system.
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            made = make(Path(folder))
            try:
                made.replace(path)
            except OSError as error:
                raise storage_error(path, error) from None
    return path


def write_atomic(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write ``data``, whole or in parts, to ``path``: readers see the old or the new content. The mode is 644.

    The parent folder is created. A device, a pipe, or what stands in /dev for one, is written into and stays. Raises
    ``StorageError``, or the errors of the iterable, without leaving a temporary file.
    """
    if path.absolute().parent == _DEVICES or (path.exists() and not path.is_file() and not path.is_dir()):
        # A file that takes the place of /dev/null, as root can, breaks the whole machine.
        _write_into(path, data)
        return
    make_folder(path.parent)
    # The name is chosen before the file exists, so that the file is removed whenever Ctrl-C interrupts.
    temporary = path.with_name(f".{path.name}.{os.urandom(_RANDOM_BYTES).hex()}.tmp")
    try:
        with temporary.open("xb") as file:
            file.writelines([data] if isinstance(data, bytes) else data)
            temporary.chmod(0o644)
        temporary.replace(path)
    # Not only errors: Ctrl-C must not leave a temporary file either.
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise storage_error(path, error) from None
        raise


def _write_into(path: Path, data: bytes | Iterable[bytes]) -> None:
    try:
        with path.open("wb") as file:
            file.writelines([data] if isinstance(data, bytes) else data)
    except OSError as error:
        raise storage_error(path, error) from None


def abandoned(path: Path) -> list[Path]:
    """Return the temporary files of calls of ``write_atomic`` for ``path`` that were killed or are still running.

    The two have the same names, so remove a file only if no other process can be writing it.
    """
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{{2 * _RANDOM_BYTES}}}\.tmp")
    try:
        return sorted(entry for entry in path.parent.iterdir() if name.fullmatch(entry.name))
    except OSError:
        return []


def holds(path: Path, data: bytes | Iterable[bytes]) -> bool:
    """Return whether the content of the file ``path`` is ``data``, whole or in parts; False if it cannot be read.

    Reading ends at the first difference.
    """
    parts = [data] if isinstance(data, bytes) else data
    try:
        with path.open("rb") as file:
            # The last read finds a file that begins with the data and goes on.
            return all(file.read(len(part)) == part for part in parts) and not file.read(1)
    except OSError:
        return False


def write_if_changed(path: Path, data: bytes) -> bool:
    """Write ``data`` unless ``path`` already has that content; return True if written.

    An unchanged file keeps its modification time.
    """
    if holds(path, data):
        return False
    write_atomic(path, data)
    return True


_LOOK_SECONDS = 0.05
_LOCKED_BYTE = 2**30
"""Position of the byte that is locked on Windows; locks may be beyond the end of a file."""
_READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}
"""Writing to such a folder fails with its own error."""
_WITHOUT_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
"""Errors of network file systems that have no locks."""

Busy = Callable[[int | None], bool]
"""Called once if another process, whose number may be unknown, keeps the lock; returns whether to wait for it."""


@contextlib.contextmanager
def locked(
    path: Path, busy: Busy, patience: float = 1.0, unprotected: Callable[[], object] = lambda: None
) -> Iterator[None]:
    """Hold the lock ``path`` during the ``with`` block; ``busy`` is called if another has it for ``patience`` seconds.

    If ``busy`` returns false, the block runs without the lock. So it does in a read-only folder, and on a file system
    without locks, for which ``unprotected`` is called. Raises ``StorageError``, and what ``busy`` raises.
    """
    new = not path.parent.exists()
    try:
        descriptor = _acquired(path, busy, patience)
    except OSError as error:
        if error.errno not in _READ_ONLY | _WITHOUT_LOCKS:
            raise storage_error(path, error) from None
        descriptor = None
        if error.errno in _WITHOUT_LOCKS:
            with contextlib.suppress(OSError):  # of the attempt
                path.unlink()
            unprotected()
    try:
        yield
    finally:
        if descriptor is not None:
            _release(path, descriptor, new)


def _release(path: Path, descriptor: int, new: bool) -> None:
    if sys.platform == "win32":  # open files cannot be removed, so one that another process just locked stays
        os.close(descriptor)
    # Removed while it is still locked: afterwards it could be the lock of another process, which finds by samestat in
    # _tried that the file it waited for has gone.
    with contextlib.suppress(OSError):
        path.unlink()
        if new:
            path.parent.rmdir()  # fails if there is anything else
    if sys.platform != "win32":
        os.close(descriptor)


def _acquired(path: Path, busy: Busy, patience: float) -> int | None:
    deadline = time.monotonic() + patience
    while True:
        make_folder(path.parent)
        with contextlib.suppress(FileNotFoundError):  # the folder was removed in between
            # Attempts, because a blocking flock has no time limit and does not notice that its file was removed
            # meanwhile.
            descriptor, owner = _tried(path)
            if descriptor is not None:
                return descriptor
            late = time.monotonic() >= deadline
            if late and not busy(owner):
                return None
            deadline = math.inf if late else deadline
        time.sleep(_LOOK_SECONDS)


def _tried(path: Path) -> tuple[int | None, int | None]:
    """Return the locked file, or the number of the process that has the lock, if it is known."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _lock(descriptor)
        if os.path.samestat(os.fstat(descriptor), path.stat()):  # its last owner has not removed it
            with contextlib.suppress(OSError):  # on a full disk, only messages lack the number
                os.ftruncate(descriptor, 0)
                os.write(descriptor, str(os.getpid()).encode())
            return descriptor, None
    except BlockingIOError:
        text = os.read(descriptor, 20)
        os.close(descriptor)
        return None, int(text) if text.isdigit() else None
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None, None


def _lock(descriptor: int) -> None:
    """Lock the open file; raises ``BlockingIOError`` if another process has it, and ``OSError``."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:  # EACCES is its "already locked"
            raise BlockingIOError(error.errno, error.strerror) from None
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_ancestor(process: int) -> bool:
    """Return whether ``process`` started this process, directly or indirectly; False if the system does not tell.

    A build that starts another one in the same folder would wait for a lock that it has itself. Parents are read from
    ``/proc``, so the result is always False on macOS and Windows.
    """
    number = os.getpid()
    with contextlib.suppress(OSError, ValueError, IndexError):
        while number > 1:
            number = int(Path(f"/proc/{number}/stat").read_text("utf-8").rpartition(")")[2].split()[1])
            if number == process:
                return True
    return False
