"""A program that runs beside this process, such as a GDB server: its output, and its end."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from mlfbuild.core import end_group, pipe_of, running

_LINES = 30
"""The number of last lines of its output that an error shows."""
_PATIENCE = 3.0
"""Seconds that a program has to end after it was requested to."""


class Background:
    """A running program; ``last_lines`` is the end of its output."""

    def __init__(self, process: subprocess.Popen[bytes], line: Callable[[str], object] | None) -> None:
        self.process = process
        # Bounded: a server may print for hours, and only its last words explain why it ended.
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._line = line or self._lines.append
        # A thread reads all the time: a server whose output nothing reads stops as soon as the pipe is full, and with
        # it the device.
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    @property
    def ended(self) -> bool:
        """Whether the program is no longer running."""
        return self.process.poll() is not None

    def last_lines(self) -> str:
        """Return the last lines that the program printed, all of them if it has ended."""
        if self.ended:
            self.reader.join(_PATIENCE)
        return "\n".join(self._lines)

    def _read(self) -> None:
        for line in pipe_of(self.process.stdout):
            self._line(line.decode(errors="replace").rstrip("\r\n"))
        self._line("")  # so that a reader of lines learns of the end


@contextlib.contextmanager
def background(
    words: Sequence[str], line: Callable[[str], object] | None = None, *, stdin: int | None = None
) -> Iterator[Background]:
    """Run the program ``words`` until the end of the block; it and its children are ended then.

    It gets no signals of the terminal, so that a device can still be released after Ctrl-C. ``line`` is called with
    each line of its output, standard output and error together, without the end of the line and in another thread; by
    default the last lines are kept for ``last_lines``. An empty line follows the last one. ``stdin`` is as for
    ``subprocess.Popen``.

    Raises ``ProcessFailedError`` if the program cannot be started.
    """
    with running(words, stdin=stdin, apart=True) as process:
        program = Background(process, line)
        try:
            yield program
        finally:
            _end(process)
            program.reader.join(_PATIENCE)


def _end(process: subprocess.Popen[bytes]) -> None:
    # SIGTERM first: GDB servers release their probe when they are asked to end. end_group() below also ends children
    # that have outlived the program, such as a server that a script has started.
    if process.poll() is None:
        end_group(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
    end_group(process)
    process.wait()
