"""Find the program that a project file names, and run it with all processes that it starts.

The program gets a new process group, which is killed if the build is stopped: otherwise Ctrl-C, SIGTERM from a CI
server and a closed terminal do not reach it. Processes that outlive the program are also killed, because they could
still write to the archive while it is read.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from mlfbuild.core import (
    LOOK,
    RUN_BY_HAND,
    STOP_SIGNALS,
    ProcessFailedError,
    ToolNotFoundError,
    end_group,
    kept,
    signals_masked,
)

_LOOKING = 0.05  # seconds between two looks at the signals
_GRACE = 2.0  # seconds to clean up after itself
_SHOWN = 64 * 1024  # bytes of output that are kept for messages


def run_program(words: Sequence[str], what: str, *, folder: Path, env: Mapping[str, str] | None = None) -> str:
    """Run ``words`` in ``folder`` and return the end of its output; ``what`` names the program in messages.

    ``env`` is added to the environment. Raises ``ProcessFailedError`` with the output if the exit status is not 0, and
    ``ToolNotFoundError`` if the program cannot be started.
    """
    with tempfile.TemporaryFile() as output, _stop_signals() as received:
        # A signal may have arrived between installing the handlers and here; the program must not start any more.
        status = None if received else _status(words, what, folder, {**os.environ, **(env or {})}, output, received)
        text = _end_of(output)
    if received:
        raise ProcessFailedError("build-interrupted", place=what, reason="interrupted", hint="run the build again")
    if status:
        hint = LOOK if text.strip() else RUN_BY_HAND
        raise ProcessFailedError("program-failed", text, place=what, reason=_how_it_ended(status), hint=hint)
    return text


def _status(
    words: Sequence[str], what: str, folder: Path, env: Mapping[str, str], output: IO[bytes], received: list[int]
) -> int:
    try:
        process = subprocess.Popen(
            words, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        reason = f"{words[0]} cannot be started: {error.strerror}"
        raise ToolNotFoundError("program-cannot-start", place=what, reason=reason, hint=RUN_BY_HAND) from None
    # A group, because compilers are often scripts: killing only the shell would leave the compiler running.
    with kept(process, group=True):
        try:
            _wait(process, received)
        finally:
            _end(process, signal.SIGINT if received else None)
    return process.returncode


def _wait(process: subprocess.Popen[bytes], received: list[int]) -> None:
    """Wait for the end of ``process`` or a signal in ``received``."""
    # A single long wait would not end at a signal: its handler only records it, and Python then resumes the wait
    # (PEP 475).
    while process.poll() is None and not received:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LOOKING)


def _how_it_ended(status: int) -> str:
    if status >= 0:
        return f"failed with exit status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def _end(process: subprocess.Popen[bytes], first: signal.Signals | None) -> None:
    """Kill the program and its children; ``first`` is a signal on which it may clean up before."""
    if first is not None:
        end_group(process, first)
        deadline = time.monotonic() + _GRACE
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(_LOOKING)
    end_group(process)
    process.wait()


def _end_of(output: IO[bytes]) -> str:
    # A file instead of a pipe: a process that outlives the program could keep a pipe open, and reading it would not
    # end.
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _SHOWN))
    text = output.read().decode(errors="replace")
    return text if size <= _SHOWN else f"...{text}"


@contextlib.contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """Collect the signals that stop a build inside the ``with`` block, and answer the first of them after it."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # no other thread may set handlers, or is interrupted
        yield received
        return
    # Signals that the parent ignores stay ignored: `nohup` relies on that.
    before = {
        number: signal.signal(number, lambda got, _frame: received.append(got))
        for number in STOP_SIGNALS
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        with signals_masked("unblock", STOP_SIGNALS) as blocked:
            yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        if received:
            _answer(received[0], blocked)


def _answer(number: int, blocked: Collection[int]) -> None:
    """Handle the signal ``number`` as this process would have without us; returns if its handler does.

    Worker processes block SIGINT, because their parent handles it; the signal stays pending in them.
    """
    if signal.getsignal(number) is signal.SIG_DFL:
        raise SystemExit(128 + number)  # not killed by the signal, so that temporary files are removed
    signal.raise_signal(number)
    if number in blocked:
        raise KeyboardInterrupt


def find_program(word: str, folder: Path, what: str) -> str:
    """Return the absolute path of the program ``word``: a name is searched in PATH, a path is relative to ``folder``.

    Raises ``ToolNotFoundError``, whose place begins with ``what``, if there is no such executable.
    """
    if os.sep not in word:
        path = shutil.which(word)
        if path is None:
            raise ToolNotFoundError(
                "program-not-found",
                place=f"{what}: {word}",
                reason="program not found",
                hint="install it, or write its path",
            )
        return str(Path(path).absolute())
    path = str((folder / word).absolute())  # not resolved: the links of virtual environments matter
    if not Path(path).is_file():
        raise ToolNotFoundError(
            "program-not-found",
            place=f"{what}: {word}",
            reason="no such file",
            hint="write its path relative to the project file's folder",
        )
    if not os.access(path, os.X_OK):
        raise ToolNotFoundError(
            "program-not-executable",
            place=f"{what}: {word}",
            reason="is not executable",
            hint="run chmod +x, or name its interpreter first",
        )
    return path


def source_word(source: Path, folder: Path) -> str:
    """Return the word that names the file ``source`` to a program that runs in ``folder``.

    It is relative if possible, because the program may write it into its archive.
    """
    relative = os.path.relpath(source, folder)
    word = str(source.absolute()) if relative.startswith(os.pardir) else relative
    return f".{os.sep}{word}" if word.startswith("-") else word
