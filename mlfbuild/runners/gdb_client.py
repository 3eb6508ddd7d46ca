"""GDB as a child process, controlled through its machine interface.

pygdbmi parses the records. Its controller is not used: it waits 0.2 s after each answer for more output, and it starts
GDB in the terminal's process group, so that Ctrl-C would end it before the device is released.
"""

from __future__ import annotations

import contextlib
import queue
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mlfbuild.core import ProcessFailedError, TimedOutError, pipe_of
from mlfbuild.runners.background import Background, background

# How long a wait for GDB goes on before it is checked whether GDB or the server has ended: a dead process sends no
# record.
_LOOK_SECONDS = 0.1
_SETTINGS = (
    "set confirm off",
    "set pagination off",
    "set auto-load off",  # the folder of an image may contain scripts that others wrote
    "set debuginfod enabled off",  # no network access
    "set mem inaccessible-by-default off",  # memory maps of servers omit peripherals and system registers
    "set breakpoint always-inserted on",  # otherwise GDB removes and inserts all of them at each stop
    "set mi-async on",  # GDB accepts a command while the device runs: -exec-interrupt
)
_CLOSED = re.compile(r"not being run|connection|communication error|target disconnected", re.IGNORECASE)

Answer = tuple[Mapping[str, Any], str]
"""The result of a command, and what GDB printed meanwhile."""


class GdbRefusal(ProcessFailedError):  # noqa: N818 - the name says what GDB did
    """GDB reported the error ``words`` for a command; ``output`` is what it printed before."""

    words = ""


class GdbClient:
    """A running GDB that controls the device ``name``, through ``server`` if that was started for it."""

    def __init__(self, name: str, server: Background | None) -> None:
        self.stop: Mapping[str, Any] | None = None
        """The record of the device's last stop; ``None`` while it runs."""
        self.printed = ""
        """The output of GDB since the last command."""
        self._name = name
        self._server = server
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._token = 0
        self._closed = False
        self._program: Background

    @contextlib.contextmanager
    def running(self, program: Path) -> Iterator[None]:
        """Start GDB for the block, without the user's settings."""
        settings = [word for setting in _SETTINGS for word in ("-iex", setting)]
        # -nx: a .gdbinit of the user could set breakpoints, or connect to another device. mi3 is the version of GDB 9
        # and later whose breakpoints have one format. -iex runs a setting before GDB loads any file.
        words = [str(program), "-nx", "-q", "--interpreter=mi3", *settings]
        with background(words, self._lines.put, stdin=subprocess.PIPE) as self._program:
            yield

    def ask(self, command: str, timeout: float, progress: Callable[[str], object] = str) -> Mapping[str, Any]:
        """Send ``command`` of GDB/MI, and return its result.

        Each record has to come within ``timeout`` seconds after the one before. ``progress`` is called with records
        that pygdbmi does not parse. Raises ``GdbRefusal`` if GDB reports an error, ``TimedOutError``, and
        ``ProcessFailedError`` if the connection has been closed.
        """
        # GDB/MI repeats the number in the answer, by which answers and requests are matched.
        self._token += 1
        self.printed = ""
        self._send(f"{self._token}{command}")
        while True:
            record = self._next(timeout)
            if record is None:
                reason = f"no answer to {_short(command)} within {timeout:g} s"
                hint = "check the board, or set a longer timeout in its runner"
                raise TimedOutError("device-silent", self.output, place=self._name, reason=reason, hint=hint)
            if record["type"] == "output":
                progress(record["payload"])
            # A late result of an earlier command that timed out has another token, and is passed over.
            elif record["type"] == "result" and record["token"] == self._token:
                payload: Mapping[str, Any] = record["payload"] or {}
                if record["message"] == "error":
                    raise self._refusal(command, " ".join(str(payload.get("msg", "")).split()))
                return payload

    def console(self, command: str, timeout: float) -> str:
        """Run a command of GDB's command line, and return what GDB printed. Raises as ``ask``.

        Servers print answers to ``monitor`` as text, and most print errors in the same way: see ``is_unknown``.
        """
        self.ask(f"-interpreter-exec console {mi_string(command)}", timeout)
        return self.printed

    def wait_for_stop(self, timeout: float) -> Mapping[str, Any] | None:
        """Wait until the device stops, and return the record of GDB/MI; ``None`` after ``timeout`` seconds.

        Raises ``ProcessFailedError`` (code ``connection-lost``) if the server or GDB has ended meanwhile.
        """
        deadline = time.monotonic() + timeout
        while self.stop is None:
            if self._closed:
                raise self.lost("the connection to the GDB server was closed")
            if self._next(deadline - time.monotonic()) is None:
                return None
        return self.stop

    @property
    def output(self) -> str:
        """The last lines of the server that was started, otherwise those of GDB."""
        return self._server.last_lines() if self._server is not None else self.printed

    def lost(self, reason: str) -> ProcessFailedError:
        """Return the error that the device or its server does not answer any more."""
        hint = "check the cable and the power of the board, then run it again"
        return ProcessFailedError("connection-lost", self.output, place=self._name, reason=reason, hint=hint)

    def _refusal(self, command: str, words: str) -> ProcessFailedError:
        # While GDB connects (no stop has been seen yet), such words mean that no server was reached, which _attach() of
        # gdb.py reports with another hint.
        if self._closed or (self.stop is not None and _CLOSED.search(words)):
            return self.lost("the connection to the GDB server was closed")
        reason = f"{_short(command)}: {words.rstrip('.')}"
        error = GdbRefusal("device-command-failed", self.printed, place=self._name, reason=reason)
        error.words = words.rstrip(".")
        return error

    def _send(self, line: str) -> None:
        pipe = pipe_of(self._program.process.stdin)
        try:
            pipe.write(f"{line}\n".encode())
            pipe.flush()
        except OSError:
            raise self.lost("GDB has ended") from None

    def _next(self, timeout: float) -> Mapping[str, Any] | None:
        """Return the next record, ``None`` after ``timeout`` seconds."""
        from pygdbmi.gdbmiparser import parse_response, response_is_finished

        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            try:
                line = self._lines.get(timeout=max(0.0, min(left, _LOOK_SECONDS)))
            except queue.Empty:
                if left <= 0:
                    return None
                self._check()
                continue
            if line and not response_is_finished(line):
                record: Mapping[str, Any] = parse_response(line)
                self._note(record)
                return record

    def _check(self) -> None:
        """Raise ``ProcessFailedError`` if the server or GDB has ended."""
        if self._server is not None and self._server.ended:
            raise self.lost(f"the GDB server has ended with exit status {self._server.process.returncode}")
        if self._program.ended:
            raise self.lost("GDB has ended")

    def _note(self, record: Mapping[str, Any]) -> None:
        if record["message"] == "running":  # first as a result, then as a notification
            self.stop = None
        elif record["type"] == "notify":
            # A stop without a frame says nothing about where the core is.
            if record["message"] == "stopped" and "frame" in record["payload"]:
                self.stop = record["payload"]
            elif record["message"] == "thread-group-exited":
                self._closed = True
        elif record["type"] in {"console", "log", "target"}:
            self.printed += record["payload"]


def mi_string(text: str) -> str:
    """Return ``text`` as a string of GDB/MI.

    The grammar of GDB/MI has C strings: backslashes and double quotes are escaped.
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _short(command: str) -> str:
    """Return ``command`` as GDB's command line has it, if it does."""
    return command.removeprefix("-interpreter-exec console ").strip('"').lstrip("-")[:60]
