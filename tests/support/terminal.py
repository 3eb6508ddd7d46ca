"""Run the command on a real terminal (a pty), whose screen pyte renders."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyte

from support import warm

Size = tuple[int, int]
"""Columns and lines."""


@dataclass(frozen=True)
class Seen:
    """The result of a run, and the screens during it."""

    status: int
    raw: str
    """Every byte that the terminal got."""
    lines: list[str]
    """The text of the screen at the end, without trailing empty lines."""
    screens: list[list[str]]
    """The lines of the screen after each write."""
    cursor: bool
    """Whether the cursor is visible at the end."""


class Terminal:
    """A terminal that runs one command; ``on_screen`` is called with the screen and may act."""

    def __init__(self, size: Size = (100, 40)) -> None:
        self.master, self.slave = pty.openpty()
        self.screen = pyte.Screen(*size)
        self._set_size(size)
        self.process: subprocess.Popen[bytes] | None = None

    def _set_size(self, size: Size) -> None:
        columns, lines = size
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, size: Size) -> None:
        """Resize the window."""
        columns, lines = size
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def interrupt(self) -> None:
        """Press Ctrl-C: every process of the group gets the signal."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGINT)

    def run(
        self,
        folder: Path,
        *arguments: str,
        on_screen: Callable[[list[str]], None] | None = None,
        module: str = "mlfbuild",
        **environment: str,
    ) -> Seen:
        """Run the command, or another Python ``module``, in ``folder``; stdin, stdout and stderr are this terminal.

        With ``on_screen``, which may send signals, it is also the controlling terminal of the process.
        """
        command = [warm.command(module)] if on_screen is None else [sys.executable, "-m", module]
        kept = {name: value for name, value in os.environ.items() if name not in {"CI", "NO_COLOR", "COLUMNS", "LINES"}}
        stream, raw, screens = pyte.ByteStream(self.screen), b"", []
        with subprocess.Popen(
            [*command, *arguments], cwd=folder, stdin=self.slave, stdout=self.slave, stderr=self.slave,
            env={**kept, "TERM": "xterm", **environment}, start_new_session=True,
        ) as self.process:  # fmt: skip
            os.close(self.slave)
            while part := self._read():
                raw += part
                stream.feed(part)
                screens.append(self._lines())
                if on_screen is not None:
                    on_screen(screens[-1])
        os.close(self.master)
        return Seen(self.process.returncode, raw.decode(), self._lines(), screens, not self.screen.cursor.hidden)

    def _read(self) -> bytes:
        try:
            return os.read(self.master, 65536)
        except OSError:  # raised on Linux after the last writer closed the terminal
            return b""

    def _lines(self) -> list[str]:
        lines = [line.rstrip() for line in self.screen.display]
        while lines and not lines[-1]:
            lines.pop()
        return lines
