"""Find external programs by name, run them, and keep their output."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any, Literal

from mlfbuild.core.errors import ProcessFailedError, StorageError, TimedOutError, ToolNotFoundError
from mlfbuild.core.keeper import kept, start_keeper

_OTHER_NAMES = {
    # The newest first.
    "clang": tuple(f"clang-{version}" for version in range(22, 13, -1)),
    "gdb-multiarch": ("arm-none-eabi-gdb",),
}
"""Other names of a program that distributions package under several; the first that exists is used."""

OnProgress = Callable[[str, int, int], None]
"""Progress of long work: a description, the number of steps that are done and of all steps; 0 of 0 if not counted."""

LOOK = "see what it printed, below"
RUN_BY_HAND = "run it by hand to see why"
"""Hints for a program that failed, with and without output."""

STOP_SIGNALS: tuple[signal.Signals, ...] = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)
"""Ctrl-C, the end that a CI server requests, and a closed terminal: ``mlfbuild`` handles all as an interrupt.

Windows has SIGBREAK (Ctrl-Break, a closed console) instead of SIGHUP.
"""

_CREATE_NEW_PROCESS_GROUP = 0x200  # of Windows, whose constants Python has nowhere else
_APART: dict[str, Any] = (
    {"creationflags": _CREATE_NEW_PROCESS_GROUP} if sys.platform == "win32" else {"start_new_session": True}
)

_DISK = re.compile("No space left on device|File too large|Disk quota exceeded|Read-only file system")
_LITTLE_SPACE = 256 * 1024
"""Bytes: CMake removes the files of a check that failed for lack of space, and names the check instead of the cause."""

_NINJA_STEP = re.compile(r"\[(\d+)/(\d+)\] (.*)")


def no_progress(doing: str, done: int = 0, of: int = 0) -> None:
    """Do nothing.

    The default of parameters of the type ``OnProgress``: code that reports progress needs no case for callers that do
    not want it.
    """


def tool_variable(name: str) -> str:
    """Return the environment variable with the path of the program ``name``.

    For example, ``qemu-system-arm`` has ``MLFBUILD_QEMU_SYSTEM_ARM``. ``find_tool`` reads it, and its error names it.
    """
    return f"MLFBUILD_{name.upper().replace('-', '_')}"


def find_tool(name: str, chosen: str | None = None) -> Path:
    """Return the path of the program ``name``.

    ``chosen``, a name or path, has precedence over ``MLFBUILD_<NAME>`` in the environment, which has precedence over
    ``name`` itself. Names are looked up in ``PATH``. Raises ``ToolNotFoundError``.
    """
    variable = tool_variable(name)
    wanted = chosen or os.environ.get(variable) or name
    # Other names stand in for the default only: a program that was chosen must be that one.
    names = (wanted, *_OTHER_NAMES.get(name, ())) if wanted == name else (wanted,)
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        from mlfbuild.core.system_packages import SYSTEMS  # reads a table that only this error needs

        package = SYSTEMS["debian"].packages.get(name)
        where = f" (Debian: apt-get install {package})" if package else ""
        hint = f"install it{where} or set {variable} to its path"
        raise ToolNotFoundError("program-not-found", place=wanted, reason="program not found", hint=hint)
    return Path(found)


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> str:
    """Run ``command`` to its end and return stdout and stderr together.

    Raises ``ProcessFailedError`` with the output if its exit status is not 0 or it cannot be started, and
    ``TimedOutError`` with the output so far if it takes longer than ``timeout`` seconds.
    """
    words = [str(word) for word in command]
    try:
        with running(words, cwd=cwd, env=env) as process:
            output = _text(process.communicate(timeout=timeout)[0])
    except subprocess.TimeoutExpired as error:
        output = _text(error.output or b"")
        reason = f"still running after {timeout:g} s, stopped"
        raise TimedOutError("program-timed-out", output, place=words[0], reason=reason, hint=RUN_BY_HAND) from None
    _check_status(words[0], process.returncode, output)
    return output


def disk_problem(output: str) -> str:
    """Return the words of a program's ``output`` that blame the disk, or an empty string.

    Only the English messages of the C library are known: a program that translates them must run with ``LC_ALL=C``.
    """
    found = _DISK.search(output)
    return found[0] if found is not None else ""


@contextlib.contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Raise ``StorageError`` if a program that writes to ``folder`` fails because its disk is full or read-only.

    The output of a program often blames its own step instead of the disk, so a failure counts as a full disk if less
    than 256 KiB are free in ``folder``, whatever the output.
    """
    try:
        yield
    except ProcessFailedError as error:
        problem = disk_problem(error.output)
        with contextlib.suppress(OSError):
            if not problem and shutil.disk_usage(folder).free < _LITTLE_SPACE:
                problem = "No space left on device"
        if not problem:
            raise
        reason = f"{error.place} cannot write here: {problem}"
        raise StorageError("disk-full", place=folder, reason=reason, hint="check free space and permissions") from error


def run_ninja(command: Sequence[str | Path], on_progress: OnProgress = no_progress) -> str:
    """Run ``command``, which runs Ninja, and return its output; call ``on_progress`` for each of Ninja's steps.

    Raises ``ProcessFailedError`` as ``run`` does.
    """
    words = [str(word) for word in command]
    lines = []
    with running(words, end=signal.SIGTERM) as process:  # so that Ninja stops its own child processes
        for line in map(_text, pipe_of(process.stdout)):
            lines.append(line)
            if step := _NINJA_STEP.match(line):
                doing = "linking" if step[3].startswith("Linking") else "building"
                on_progress(doing, int(step[1]), int(step[2]))
    _check_status(words[0], process.returncode, "".join(lines))
    return "".join(lines)


def _check_status(program: str, status: int, output: str) -> None:
    if status != 0:
        hint = LOOK if output.strip() else RUN_BY_HAND
        reason = f"failed with exit status {status}"
        raise ProcessFailedError("program-failed", output, place=Path(program).name, reason=reason, hint=hint)


def _text(output: bytes) -> str:
    """Return ``output`` as text with a line feed at the end of each line."""
    return output.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")


def pipe_of(stream: IO[bytes] | None) -> IO[bytes]:
    """Return ``stream``, a pipe to a process; raises ``ValueError`` if the process was started without it.

    ``Popen`` types its streams as optional; this is the one place that narrows them. The stream is returned as it is,
    and stays open.
    """
    if stream is None:
        raise ValueError("the process was started without this pipe")
    return stream


@contextlib.contextmanager
def running(
    words: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    end: signal.Signals | None = None,
    stdin: IO[bytes] | int | None = None,
    stderr: IO[bytes] | None = None,
    apart: bool = False,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the program ``words`` for the ``with`` block, and wait for it at the end of the block.

    Its stdout is a pipe; so is its stderr, to the same pipe, unless ``stderr`` is a file. Without ``stdin``, it reads
    nothing. If an exception leaves the block (an error, a timeout, an interrupt), the program gets the signal ``end``,
    by default the one that kills it; if this process is killed, so is the program. With ``apart``, it leads a process
    group, which Ctrl-C in the terminal does not reach. Raises ``ProcessFailedError`` if it cannot be started.
    """
    start_keeper()
    with stops_held() as let_go:
        try:
            process = subprocess.Popen(
                words,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=subprocess.PIPE,
                stderr=stderr or subprocess.STDOUT,
                **(_APART if apart else {}),
            )
        except OSError as error:
            reason = f"cannot be started: {error.strerror}"
            raise ProcessFailedError("program-not-started", place=words[0], reason=reason, hint=RUN_BY_HAND) from None
        with kept(process, group=apart), process:
            try:
                let_go()
                yield process
            except BaseException:
                if end is None:
                    process.kill()
                else:
                    process.send_signal(end)
                raise


@contextlib.contextmanager
def stops_held() -> Iterator[Callable[[], None]]:
    """Delay an interrupt until the block calls the function that it gets, at the latest until the block's end.

    An interrupt is one of ``STOP_SIGNALS`` that this process handles. ``Popen`` returns some time after the process
    exists; an interrupt in between would leave the process running. A handler that only records the signal is set for
    that time, because a blocked signal would stay blocked in the program.
    """
    held: list[tuple[int, FrameType | None]] = []
    before: dict[int, Callable[[int, FrameType | None], Any]] = {}
    if threading.current_thread() is threading.main_thread():  # other threads are never interrupted
        for number in STOP_SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):  # the signal is neither ignored nor the end of the process
                before[number] = handler
                signal.signal(number, lambda got, frame: held.append((got, frame)))

    def let_go() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)
        if held:
            number, frame = held[0]
            held.clear()
            before[number](number, frame)

    try:
        yield let_go
    finally:
        let_go()


@contextlib.contextmanager
def signals_masked(how: Literal["block", "unblock"], numbers: Collection[int]) -> Iterator[Collection[int]]:
    """Block or unblock signals of this thread inside the ``with`` block, which gets the signals blocked before.

    Windows has no such mask, and nothing changes there.
    """
    if sys.platform == "win32":
        yield ()
    else:
        before = signal.pthread_sigmask(signal.SIG_BLOCK if how == "block" else signal.SIG_UNBLOCK, numbers)
        try:
            yield before
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_group(process: subprocess.Popen[bytes], number: signal.Signals | None = None) -> None:
    """Send ``number`` to a program with its own process group and to all its children; without it, kill them.

    Windows cannot send a signal to a program without a console: there, only killing has an effect, and children that
    outlive their parent continue.
    """
    if sys.platform == "win32":
        if number is None and process.poll() is None:
            words = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
            subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)
            process.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # all have ended
            os.killpg(process.pid, signal.SIGKILL if number is None else number)
