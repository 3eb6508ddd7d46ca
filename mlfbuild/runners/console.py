"""The serial port of a board whose debugger is elsewhere: what the firmware prints."""

from __future__ import annotations

import codecs
import contextlib
from collections.abc import Iterator

from mlfbuild.core import InputFileError, ProcessFailedError, require_extra


class SerialConsole:
    """A serial port, or URL of pyserial, that is only read."""

    def __init__(self, port: str, baud: int, place: str) -> None:
        require_extra("serial", place, "the console of the device")
        import serial

        self._port = port
        self._text = codecs.getincrementaldecoder("utf-8")("replace")
        try:
            self._serial = serial.serial_for_url(port, baudrate=baud, timeout=0)
        except (OSError, ValueError) as error:  # pyserial's own error is an OSError
            reason = f"the serial port {port} cannot be opened: {error}"
            hint = "check the name of the port and your permissions"
            raise InputFileError("console-not-opened", place=place, reason=reason, hint=hint) from None

    def read(self) -> str:
        """Return what has arrived since the last call."""
        try:
            data = b"".join(iter(lambda: self._serial.read(4096), b""))
        except OSError as error:
            reason = f"the connection was lost: {error}"
            hint = "check the cable, then run it again"
            raise ProcessFailedError("console-lost", place=self._port, reason=reason, hint=hint) from None
        return self._text.decode(data)

    def close(self) -> None:
        """Close the port."""
        self._serial.close()


@contextlib.contextmanager
def serial_console(port: str, baud: int, place: str) -> Iterator[SerialConsole]:
    """Open ``port`` for the block."""
    console = SerialConsole(port, baud, place)
    with contextlib.closing(console):
        yield console
