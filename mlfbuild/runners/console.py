"""The serial port of a board whose debugger is elsewhere: what the firmware prints."""

from __future__ import annotations

import codecs
import contextlib
import threading
from collections.abc import Iterator

from mlfbuild.core import ProcessFailedError
from mlfbuild.runners.serial_port import SerialPort

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
