"""External programs: found by name with a helpful answer when missing, run with their output kept."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO

from mlfbuild.core.errors import ProcessFailedError, TimedOutError, ToolNotFoundError
from mlfbuild.core.system_packages import DEBIAN

_OTHER_NAMES = {"clang": tuple(f"clang-{version}" for version in range(22, 13, -1))}
"""What Linux distributions call a program that they have several versions of; the first one there is taken."""

Tell = Callable[[str, int, int], None]
"""What long work calls with what it is doing, and how many of how many are done: 0 of 0 where nobody counts."""

LOOK = "see what it printed, below"
RUN_BY_HAND = "run it by hand to see why"
"""What to do about a program that failed: with a word, and without one."""

_NINJA_STEP = re.compile(r"\[(\d+)/(\d+)\] (.*)")


def tell_nobody(doing: str, done: int = 0, of: int = 0) -> None:
    """Do nothing."""


def tool_variable(name: str) -> str:
    """Return the environment variable that says where the program ``name`` is: ``MLFBUILD_QEMU_SYSTEM_ARM``."""
    return f"MLFBUILD_{name.upper().replace('-', '_')}"


def find_tool(name: str, chosen: str | None = None) -> Path:
    """Return the path of the program ``name``.

    ``chosen``, a name or path, comes before ``MLFBUILD_<NAME>`` in the environment, which comes before ``PATH``
    (``MLFBUILD_QEMU_SYSTEM_ARM=/opt/qemu/...``). Raises ``ToolNotFoundError`` with the Debian package to install and
    the variable to set.
    """
    variable = tool_variable(name)
    wanted = chosen or os.environ.get(variable) or name
    names = (wanted, *_OTHER_NAMES.get(name, ())) if wanted == name else (wanted,)
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        package = DEBIAN.packages.get(name, name)
        raise ToolNotFoundError(
            f"{wanted}: program not found; install it (Debian: apt-get install {package}) or set {variable} to its path"
        )
    return Path(found)


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> str:
    """Run ``command`` to its end and return stdout and stderr together.

    Raises ``ProcessFailedError`` with the output where it exits with another status than 0 or cannot be started, and
    ``TimedOutError`` with the output so far where it takes longer than ``timeout`` seconds.
    """
    words = [str(word) for word in command]
    try:
        with running(words, cwd=cwd, env=env) as process:
            output = _text(process.communicate(timeout=timeout)[0])
    except subprocess.TimeoutExpired as error:
        output = _text(error.output or b"")
        raise TimedOutError(f"{words[0]}: still running after {timeout:g} s, stopped; {RUN_BY_HAND}", output) from None
    _check_status(words[0], process.returncode, output)
    return output


def run_ninja(command: Sequence[str | Path], tell: Tell = tell_nobody) -> str:
    """Run ``command``, which runs Ninja, and return what it printed; ``tell`` is told of each of Ninja's steps.

    Raises ``ProcessFailedError`` as ``run`` does.
    """
    words = [str(word) for word in command]
    lines = []
    with running(words, end=signal.SIGTERM) as process:  # so that Ninja ends what it runs, too
        assert process.stdout is not None
        for line in map(_text, process.stdout):
            lines.append(line)
            _tell_step(line, tell)
    _check_status(words[0], process.returncode, "".join(lines))
    return "".join(lines)


def _tell_step(line: str, tell: Tell) -> None:
    step = _NINJA_STEP.match(line)
    if step is not None:
        tell("linking" if step[3].startswith("Linking") else "building", int(step[1]), int(step[2]))


def _check_status(program: str, status: int, output: str) -> None:
    if status != 0:
        advice = LOOK if output.strip() else RUN_BY_HAND
        raise ProcessFailedError(f"{Path(program).name}: failed with exit status {status}; {advice}", output)


def _text(output: bytes) -> str:
    """Return ``output`` as text; ends of lines are those of this system, whatever the program thinks."""
    return output.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")


@contextlib.contextmanager
def running(
    words: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    end: signal.Signals = signal.SIGKILL,
    stdin: IO[bytes] | None = None,
    stderr: IO[bytes] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the program ``words``, whose stdout and stderr are one pipe, for the ``with`` block, which waits for it.

    ``stdin`` and ``stderr`` are files that take the place of nothing to read and of that pipe.
    Whatever leaves the block early ends the program first, by the signal ``end``: an error, a timeout, an interrupt.
    Raises ``ProcessFailedError`` where it cannot be started.
    """
    with _interrupt_held() as let_go:
        try:
            process = subprocess.Popen(
                words,
                cwd=cwd,
                env=env,
                stdin=stdin or subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr or subprocess.STDOUT,
            )
        except OSError as error:
            raise ProcessFailedError(f"{words[0]}: cannot be started: {error.strerror}; {RUN_BY_HAND}") from None
        with process:
            try:
                let_go()
                yield process
            except BaseException:
                process.send_signal(end)
                raise


@contextlib.contextmanager
def _interrupt_held() -> Iterator[Callable[[], None]]:
    """Hold an interrupt (Ctrl-C) back until the function that the block gets is called, or else to the block's end.

    ``Popen`` returns a while after the program has begun to be; an interrupt in between would leave it to nobody. A
    handler that only notes the signal is set meanwhile, as a blocked signal would stay blocked in the program.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield lambda: None  # other threads are never interrupted, nor is who ignores it
        return
    held: list[FrameType | None] = []
    holding = True
    signal.signal(signal.SIGINT, lambda _number, frame: held.append(frame))

    def let_go() -> None:
        nonlocal holding
        holding = False
        signal.signal(signal.SIGINT, handler)
        if held:
            handler(signal.SIGINT, held.pop())

    try:
        yield let_go
    finally:
        if holding:
            let_go()
