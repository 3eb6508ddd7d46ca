"""Hide what Python lacks on Windows from mlfbuild: every Python process with this folder in PYTHONPATH imports this.

Only code of mlfbuild sees the difference, because the standard library of this machine needs its own system:
``import os`` in a module of mlfbuild returns a view of the module. Locked bytes are those of Linux (OFD locks), and
``Path.unlink`` refuses files that have one. ``taskkill`` in this folder is the program of that name. Paths and files
stay those of Linux, so tests of messages do not change; mypy checks the same code with the declarations for Windows
(``make lint``).
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import os
import pathlib
import signal
import struct
import sys
from types import ModuleType
from typing import Any

_import = builtins.__import__
_unlink_on_linux = pathlib.Path.unlink

MISSING_MODULES = {
    "_posixsubprocess", "crypt", "curses", "fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "spwd",
    "syslog", "termios", "tty",
}  # fmt: skip
_OPEN_FLAGS = {"O_APPEND", "O_CREAT", "O_EXCL", "O_RDONLY", "O_RDWR", "O_TRUNC", "O_WRONLY"}
_SIGNALS = {"SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM"}
_NO_FUNCTIONS = {
    "os": {
        "chown", "chroot", "ctermid", "fchdir", "fchmod", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid",
        "getgroups", "getloadavg", "getpgid", "getpgrp", "getpriority", "getsid", "getuid", "initgroups", "killpg",
        "lchown", "lockf", "major", "minor", "mkfifo", "mknod", "nice", "openpty", "pathconf", "posix_spawn", "pread",
        "pwrite", "sched_yield", "sendfile", "setgid", "setpgid", "setpriority", "setsid", "setuid", "statvfs",
        "sysconf", "tcgetpgrp", "ttyname", "uname", "wait", "wait3", "wait4", "waitid", "WIFSIGNALED", "WTERMSIG",
        "sched_getaffinity", "sched_setaffinity", "register_at_fork", "memfd_create", "eventfd", "O_NOFOLLOW",
    },
    "signal": {
        "alarm", "getitimer", "pause", "pthread_kill", "pthread_sigmask", "setitimer", "siginterrupt", "sigpending",
        "sigtimedwait", "sigwait", "sigwaitinfo", "SIG_BLOCK", "SIG_UNBLOCK", "SIG_SETMASK",
    },
}  # fmt: skip


class View(ModuleType):
    """A module without some names and with others; setting a name sets it in the module."""

    def __init__(self, of: ModuleType, **others: Any) -> None:
        super().__init__(of.__name__)
        vars(self).update(others)
        vars(self)["_of"] = of

    def __getattr__(self, name: str) -> Any:
        if _is_missing(self.__name__, name):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} on Windows")
        return getattr(vars(self)["_of"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)["_of"], name, value)


def _is_missing(module: str, name: str) -> bool:
    if name in _NO_FUNCTIONS.get(module, ()):
        return True
    if module == "os":
        return name.startswith("O_") and name not in _OPEN_FLAGS
    return module == "signal" and name.startswith("SIG") and name[3:4] != "_" and name not in _SIGNALS


def _locking(descriptor: int, mode: int, count: int) -> None:
    """Lock ``count`` bytes from the file's position; the open file has the lock, not the process, as on Windows."""
    assert mode == _LK_NBLCK
    flock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_CUR, 0, count, 0)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, flock)
    except OSError as error:
        raise PermissionError(errno.EACCES, "Permission denied") from error


def _unlink(path: pathlib.Path, missing_ok: bool = False) -> None:
    """Remove ``path``, unless another open file has a lock on it: on Windows, open files cannot be removed."""
    if not path.name.endswith("lock") or not path.is_file():
        return _unlink_on_linux(path, missing_ok)
    with path.open("r+b") as file:
        file.seek(_LOCKED_BYTE)
        _locking(file.fileno(), _LK_NBLCK, 1)
        return _unlink_on_linux(path, missing_ok)


_LOCKED_BYTE = 2**30  # of mlfbuild/core/files.py
_LK_NBLCK = 2
_MSVCRT = ModuleType("msvcrt")
vars(_MSVCRT).update(LK_NBLCK=_LK_NBLCK, locking=_locking)
_VIEWS = {
    "os": View(os, name="nt", O_BINARY=0),
    "signal": View(signal, SIGBREAK=signal.SIGUSR1),
    "sys": View(sys, platform="win32"),
    "msvcrt": _MSVCRT,
}


def _import_on_windows(
    name: str,
    globals: Any = None,  # noqa: A002 - as __import__
    locals: Any = None,  # noqa: A002
    fromlist: Any = (),
    level: int = 0,
) -> Any:
    importer = (globals or {}).get("__name__") or ""
    if level == 0 and importer.partition(".")[0] == "mlfbuild":
        if name in MISSING_MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if name in _VIEWS:
            return _VIEWS[name]
    return _import(name, globals, locals, fromlist, level)


builtins.__import__ = _import_on_windows
pathlib.Path.unlink = _unlink  # type: ignore[method-assign]
os.environ["PATH"] = os.pathsep.join([os.path.dirname(__file__), os.environ.get("PATH", os.defpath)])  # noqa: PTH120
