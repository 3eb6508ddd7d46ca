"""``mlfbuild run`` in a sandbox of bubblewrap, for archives that are not trusted.

The whole command runs inside: an archive could also attack the compiler, which includes any file that it names, and
firmware on an emulated board, which reads and writes files by semihosting. It sees the system's programs and libraries,
this Python, and the files that it is given, all read-only; an empty folder for temporary files in memory; no network,
no home folder, no other processes. Its only way out is a pipe, from which arrays are read without trusting them.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import mlfbuild
from mlfbuild.core import (
    LOOK,
    CheckFailedError,
    InputFileError,
    MlfError,
    ProcessFailedError,
    TimedOutError,
    ToolNotFoundError,
    UnsupportedModelError,
    UsageError,
    find_tool,
    pipe_of,
    printable,
    running,
)
from mlfbuild.targets import cmake_folder
from mlfbuild.verify.vectors import UNREADABLE

# For ulimit, in seconds and bytes: a loop or a bomb ends here.
CPU_SECONDS = 600
MEMORY = 4 * 1024**3
"""Limits of each process."""
DISK = 1024**3
"""Bytes of temporary files, which are in memory."""

_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/opt")
_SYSTEM_FILES = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
_OUTPUT = "/tmp/outputs.npz"  # noqa: S108 - a path inside the sandbox
_SHOWN = 64 * 1024
# Everything else of the environment stays outside: tokens, proxies, and variables that change what Python or the loader
# runs.
_KEPT = ("CC", "LANG", "LC_ALL", "PATH")
# The output goes through a pipe after the command has ended well. A file in a shared folder would be a way out, and its
# name could be a link.
_RUN = f'ulimit -t "$1" && ulimit -v "$2" && shift 2 && "$@" 1>&2 && cat {_OUTPUT}'
_ERRORS: tuple[type[MlfError], ...] = (
    UsageError,
    ToolNotFoundError,
    UnsupportedModelError,
    InputFileError,
    ProcessFailedError,
    TimedOutError,
    CheckFailedError,
)

Array = npt.NDArray[Any]


def run_in_sandbox(
    arguments: Sequence[str], readable: Sequence[Path], *, seconds: float, size: int
) -> dict[str, Array]:
    """Return the arrays that ``mlfbuild run`` with ``arguments`` writes in a sandbox, by their names.

    It can read the files ``readable``, by the same paths as outside. It is stopped after ``seconds``, and may return
    ``size`` bytes.

    Raises ``ToolNotFoundError`` if bubblewrap is not installed, the error that ended the command (its texts come from
    inside and are made printable), and ``ProcessFailedError`` for any other end and for an answer that is not arrays.
    """
    command = [sys.executable, "-m", "mlfbuild", "run", *arguments, "-o", _OUTPUT, "--format", "json"]
    # ulimit takes seconds for -t and kibibytes for -v.
    limits = [str(CPU_SECONDS), str(MEMORY // 1024)]
    words = [str(find_tool("bwrap")), *_walls(readable), "--", "/bin/sh", "-c", _RUN, "sh", *limits, *command]
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith("MLFBUILD_")}
    # A thread of OpenBLAS for each CPU reserves more memory than the limit.
    home = "/tmp"  # noqa: S108 - a path inside the sandbox
    environment = {**kept, "HOME": home, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryFile() as errors:
        with running(words, env=environment, stderr=errors) as process:
            # A timer, because the read below blocks until the pipe ends, and only the death of the process ends it.
            stop = threading.Timer(seconds, process.kill)
            stop.start()
            try:
                # One byte more, so that an answer that is too long is noticed without reading all of it.
                answer = pipe_of(process.stdout).read(size + 1)
            finally:
                stop.cancel()
            if len(answer) > size:
                process.kill()
        # stderr goes to a file because a second pipe would need a thread, and a full one would block the command.
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - _SHOWN))
        text = errors.read().decode(errors="replace")
    if process.returncode != 0:
        raise _error(text, process.returncode)
    return _arrays(answer, size)


def _walls(readable: Sequence[Path]) -> Iterator[str]:
    """Yield bubblewrap's options, in the order in which it mounts.

    If root runs it, it stays root inside: without capabilities, and with /proc read-only, because writing
    /proc/sys/kernel/core_pattern lets the kernel start any program outside.
    """
    # --new-session: without it, a process inside could push characters into the terminal (TIOCSTI), which the shell
    # outside then runs.
    yield from ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
    yield from ("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev")
    for folder in map(Path, _SYSTEM):
        if folder.is_symlink():  # /bin is /usr/bin
            yield from ("--symlink", str(folder.readlink()), str(folder))
        else:
            yield from ("--ro-bind-try", str(folder), str(folder))
    for name in _SYSTEM_FILES:
        yield from ("--ro-bind-try", name, name)
    yield from ("--size", str(DISK), "--tmpfs", "/tmp")  # noqa: S108 - a path inside the sandbox
    package = Path(mlfbuild.__file__).parent
    sites = (Path(entry) for entry in sys.path if entry.endswith(("site-packages", "dist-packages")))
    # A virtual environment links to the Python that it was made with, so both must be visible.
    for path in (Path(sys.base_prefix), Path(sys.prefix), *sites, package, cmake_folder(), *readable):
        if not path.absolute().is_relative_to("/usr"):
            yield from ("--ro-bind-try", str(path.absolute()), str(path.absolute()))
    here = str(Path.cwd())
    yield from ("--dir", here, "--chdir", here)


def _error(text: str, status: int) -> MlfError:
    """Return the error that the command reported last; the code that it ran may have written anything."""
    with contextlib.suppress(ValueError, LookupError, TypeError, AttributeError, StopIteration):
        event = json.loads(text.splitlines()[-1])
        fields = {name: printable(str(event.get(name, ""))) for name in ("place", "reason", "hint")}
        kind = next(kind for kind in _ERRORS if kind.kind() == event["kind"])
        if issubclass(kind, ProcessFailedError):
            return kind(printable(event["code"]), str(event.get("output", "")), **fields)
        return kind(printable(event["code"]), **fields)
    reason = f"ended with exit status {status}"
    return ProcessFailedError("sandbox-failed", text, place="sandbox", reason=reason, hint=LOOK)


def _arrays(answer: bytes, size: int) -> dict[str, Array]:
    try:
        with zipfile.ZipFile(io.BytesIO(answer)) as file:
            # The sum that the directory claims; numpy would otherwise unpack a bomb into memory.
            if sum(member.file_size for member in file.infolist()) > size:
                raise ValueError
        # Without pickles: they would run code of the sandbox outside of it.
        with np.load(io.BytesIO(answer), allow_pickle=False) as arrays:
            return dict(arrays)
    except UNREADABLE:
        reason = "returned no arrays of the expected size"
        raise ProcessFailedError("sandbox-answer-unreadable", place="sandbox", reason=reason) from None
