"""Serial ports through pyserial.

pyserial's URLs are also accepted: ``socket://host:4001`` for a raw TCP port, ``rfc2217://host:4001`` for ser2net.
labgrid's fork of pyserial has the same package name and works as well. ``serial_console`` is the port of a board whose
debugger is elsewhere: what the firmware prints.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import select
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mlfbuild.core import ConflictError, MlfError, ProcessFailedError, StorageError, ToolNotFoundError, require_extra

if TYPE_CHECKING:
    import serial

# Also how quickly a thread that reads notices that it should end.
_READ_SECONDS = 0.01
# A device with flow control that does not read would block a write for ever.
_WRITE_SECONDS = 5.0
_LARGEST_READ = 4096
_BUSY = {errno.EBUSY, errno.EAGAIN, errno.EWOULDBLOCK}
_FORBIDDEN = {errno.EACCES, errno.EPERM}


class SerialPort:
    """An open port. Methods raise ``OSError`` if it is gone; pyserial's own errors are of that class."""

    def __init__(self, url: str, baud: int, where: str) -> None:
        """Raise ``ToolNotFoundError`` without pyserial or the port, ``ConflictError`` if another program has it."""
        require_extra("serial", where, "a serial port")
        self._url, self._baud = url, baud
        self._port: serial.SerialBase | None = None
        try:
            self.reopen()
        except (OSError, ValueError) as error:
            raise _not_opened(url, where, error) from None

    def reopen(self) -> None:
        """Open the port, after closing it if it is open.

        Other programs cannot open a device file at the same time. Raises ``OSError`` if the port is missing, in use or
        forbidden, and ``ValueError`` for an invalid address or speed.
        """
        import serial

        self.close()
        # Without waiting in pyserial: `select` below waits, and returns as soon as one byte has arrived.
        settings: dict[str, Any] = {"timeout": 0, "write_timeout": _WRITE_SECONDS}
        # Only device files can be locked.
        if "://" not in self._url:
            settings["exclusive"] = True
        try:
            self._port = serial.serial_for_url(self._url, self._baud, **settings)
        except (OSError, ValueError):
            raise
        except Exception as error:  # noqa: BLE001 - termios.error is not an OSError
            raise OSError(*error.args) from None
        try:  # to take all that has arrived at once: URLs of sockets do not know how much that is
            self._descriptor: int | None = self._port.fileno()
        except (AttributeError, io.UnsupportedOperation):  # on Windows, and for rfc2217
            self._descriptor = None
            self._port.timeout = _READ_SECONDS

    def read(self) -> bytes:
        """Return what has arrived; wait a moment if nothing has."""
        port = self._open_port()
        # One byte with the time limit, then all that is there: reading a fixed number would wait for bytes that do not
        # come.
        if self._descriptor is None:
            data: bytes = port.read(1)
            return data + port.read(port.in_waiting) if data else data
        ready, _, _ = select.select([self._descriptor], [], [], _READ_SECONDS)
        return port.read(_LARGEST_READ) if ready else b""

    def write(self, data: bytes) -> None:
        """Send ``data``."""
        self._open_port().write(data)

    def close(self) -> None:
        """Close the port. It may be called twice."""
        port, self._port = self._port, None
        if port is not None:
            connection = getattr(port, "_socket", None)
            with contextlib.suppress(Exception):  # it may be gone
                port.close()
            if connection is not None:  # pyserial leaves a connection open that the other side has closed
                connection.close()

    def _open_port(self) -> serial.SerialBase:
        if self._port is None:
            raise OSError(errno.ENODEV, "the port is closed")
        return self._port


def _not_opened(url: str, where: str, error: OSError | ValueError) -> MlfError:
    number = getattr(error, "errno", None)
    if number in _BUSY:
        return ConflictError(
            "device-in-use",
            place=where,
            reason=f"another program uses {url}",
            hint="close it: a terminal, a serial monitor, or another mlfbuild",
        )
    if number in _FORBIDDEN:
        return StorageError(
            "serial-port-forbidden",
            place=where,
            reason=f"you may not open {url}",
            hint="add your user to the group of serial ports (Debian: dialout), and log in again",
        )
    if isinstance(error, ValueError):
        return ProcessFailedError(
            "serial-port-refused", place=where, reason=f"{url} cannot be opened: {error}", hint="change its address"
        )
    return ToolNotFoundError(
        "serial-port-not-found",
        place=where,
        reason=f"{url} cannot be opened: {os.strerror(number) if number else str(error).rpartition('] ')[2]}",
        hint=f"connect the device, or choose another port ({_ports()})",
    )


def _ports() -> str:
    """Return the names of the ports of this machine."""
    from serial.tools import list_ports

    names = sorted(port.device for port in list_ports.comports())
    return ", ".join(names) or "this machine has none now"


_MOST_TEXT = 1 << 20
"""Characters that are kept; a device that prints more before they are read loses the oldest."""


class SerialConsole:
    """A serial port, or URL of pyserial, that is only read.

    A thread does that, because the system keeps only 4 KiB while the debugger is waiting for the firmware.
    """

    def __init__(self, port: str, baud: int, place: str) -> None:
        """Open the port; raises what ``SerialPort`` raises."""
        self._name, self._port = port, SerialPort(port, baud, place)
        # Incremental, because a read may end in the middle of a UTF-8 sequence.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._lost: Exception | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()

    def _collect(self) -> None:
        try:
            while not self._ended.is_set():
                text = self._decoder.decode(self._port.read())
                with self._lock:
                    self._text = (self._text + text)[-_MOST_TEXT:]
        # An exception in this thread would otherwise only be printed. read() raises it after the text that came before
        # the loss has been returned.
        except Exception as error:  # noqa: BLE001 - pyserial raises several if the port goes away
            self._lost = error

    def read(self) -> str:
        """Return what has arrived since the last call.

        It is text of UTF-8, in which wrong bytes are replaced, and empty if nothing has arrived. Raises
        ``ProcessFailedError`` (code ``console-lost``) when the port is gone and all text before that has been returned.
        """
        with self._lock:
            text, self._text = self._text, ""
        if self._lost is not None and not text:
            reason = f"the connection was lost: {self._lost}"
            hint = "check the cable, then run it again"
            raise ProcessFailedError("console-lost", place=self._name, reason=reason, hint=hint)
        return text

    def close(self) -> None:
        """Close the port. It may be called twice."""
        self._ended.set()
        # The thread is in read(), which returns within 10 ms. Closing the port first would make it fail there.
        self._thread.join()
        self._port.close()


@contextlib.contextmanager
def serial_console(port: str, baud: int, place: str) -> Iterator[SerialConsole]:
    """Open ``port`` for the block."""
    console = SerialConsole(port, baud, place)
    with contextlib.closing(console):
        yield console
