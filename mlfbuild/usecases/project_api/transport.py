"""Byte streams to a running firmware: standard input and output of a program, or a serial port."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from mlfbuild.core import end_group, pipe_of, running
from mlfbuild.runners import SerialPort
from mlfbuild.usecases.project_api.rpc import timed_out, transport_closed

_AT_ONCE = 1 << 16
_LOOK_SECONDS = 0.5
"""Time between two looks at whether the client is still there."""


class Transport(Protocol):
    """A byte stream that is open. Methods raise ``RequestError``: the transport's errors of the Project API."""

    def read(self, size: int, seconds: float | None) -> bytes:
        """Return ``size`` bytes, or those that arrived within ``seconds`` if there are any; ``None`` waits forever."""

    def write(self, data: bytes, seconds: float | None) -> None:
        """Send all of ``data`` within ``seconds``."""

    def close(self) -> None:
        """Close it, and end the program behind it. It may be called twice."""


class _Clock:
    """The time that is left for a request; it ends early if ``gone()`` says that the client has closed its pipe."""

    def __init__(self, seconds: float | None, gone: Callable[[], bool]) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds
        self._gone = gone

    def left(self) -> float:
        """Return the seconds until the next look, 0 at the end."""
        if self._gone():
            raise transport_closed()
        return _LOOK_SECONDS if self._end is None else min(max(0.0, self._end - time.monotonic()), _LOOK_SECONDS)

    def over(self) -> bool:
        """Return whether the time is over."""
        return self._end is not None and time.monotonic() >= self._end


class ProgramTransport:
    """A program that runs the firmware, such as QEMU; its standard streams are those of the firmware."""

    def __init__(self, words: Sequence[str], gone: Callable[[], bool]) -> None:
        """Start the program; raises ``ProcessFailedError``. It ends with this process, however that ends."""
        self._stack = contextlib.ExitStack()
        errors = self._stack.enter_context(os.fdopen(os.dup(2), "wb"))
        start = running(words, stdin=subprocess.PIPE, stderr=errors, apart=True)
        self._process = self._stack.enter_context(start)
        self._in, self._out = (pipe_of(end).fileno() for end in (self._process.stdin, self._process.stdout))
        self._gone = gone
        if sys.platform != "win32":  # it has no server
            for descriptor in (self._in, self._out):
                os.set_blocking(descriptor, False)

    def read(self, size: int, seconds: float | None) -> bytes:
        """Read what the firmware prints."""
        clock, data = _Clock(seconds, self._gone), b""
        while len(data) < size:
            ready, _, _ = select.select([self._out], [], [], clock.left())
            chunk = os.read(self._out, min(size - len(data), _AT_ONCE)) if ready else None
            if chunk == b"":
                if not data:
                    raise transport_closed()
                break
            data += chunk or b""
            if chunk is None and clock.over():
                break
        if size and not data:
            raise timed_out()
        return data

    def write(self, data: bytes, seconds: float | None) -> None:
        """Write to the firmware's standard input."""
        clock, left = _Clock(seconds, self._gone), memoryview(data)
        while left:
            _, ready, _ = select.select([], [self._in], [], clock.left())
            if ready:
                try:
                    left = left[os.write(self._in, left[:_AT_ONCE]) :]
                except BrokenPipeError:
                    raise transport_closed() from None
            elif clock.over():
                raise timed_out()

    def close(self) -> None:
        """End the program and its children."""
        end_group(self._process)
        with contextlib.suppress(BrokenPipeError):
            self._stack.close()


class SerialTransport:
    """A serial port, or URL of pyserial, on which the firmware of a device answers."""

    def __init__(self, port: str, baud: int, place: str, gone: Callable[[], bool]) -> None:
        """Open the port; raises what ``SerialPort`` raises."""
        self._port = SerialPort(port, baud, place)
        self._gone = gone
        self._arrived = b""

    def read(self, size: int, seconds: float | None) -> bytes:
        """Read what the device sends."""
        clock = _Clock(seconds, self._gone)
        while len(self._arrived) < size:
            clock.left()
            try:
                self._arrived += self._port.read()
            except OSError:
                raise transport_closed() from None
            if clock.over():
                break
        data, self._arrived = self._arrived[:size], self._arrived[size:]
        if size and not data:
            raise timed_out()
        return data

    def write(self, data: bytes, seconds: float | None) -> None:
        """Send ``data``; the port has its own time limit."""
        del seconds
        try:
            self._port.write(data)
        except OSError:
            raise transport_closed() from None

    def close(self) -> None:
        """Close the port."""
        self._port.close()
