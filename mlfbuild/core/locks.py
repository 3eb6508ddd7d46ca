"""Locks between processes.

A lock is ``flock`` on a file that contains the number of the process that has it; on Windows, it is a locked byte far
behind that number, because no other process can read locked bytes there. The system releases it when that process ends,
however it ends. The file is removed with the lock, so that build folders contain no trace of it.
The package filelock does the same, but leaves its files, and its import takes a tenth of the time of a build without
work (46 ms); the cache, which is locked only to fetch, uses it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from mlfbuild.core.files import make_folder, storage_error

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
            if sys.platform == "win32":  # open files cannot be removed, so one that another process just locked stays
                os.close(descriptor)
            with contextlib.suppress(OSError):
                path.unlink()
                if new:
                    path.parent.rmdir()  # fails if there is anything else
            if sys.platform != "win32":
                os.close(descriptor)


def _acquired(path: Path, busy: Busy, patience: float) -> int | None:
    deadline: float | None = time.monotonic() + patience
    while True:
        make_folder(path.parent)
        with contextlib.suppress(FileNotFoundError):  # the folder was removed in between
            descriptor, owner = _tried(path)
            if descriptor is not None:
                return descriptor
            if deadline is not None and time.monotonic() >= deadline:
                deadline = None
                if not busy(owner):
                    return None
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
    """Return whether ``process`` started this process, directly or indirectly; False if the system does not tell."""
    number = os.getpid()
    with contextlib.suppress(OSError, ValueError, IndexError):
        while number > 1:
            number = int(Path(f"/proc/{number}/stat").read_text("utf-8").rpartition(")")[2].split()[1])
            if number == process:
                return True
    return False
