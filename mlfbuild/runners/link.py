"""Requests to the monitor of ``runtime/serial/mlf_serial.h``, repeated until they are answered.

    Link.connect  ->  HELLO  ->  ask("R", address + size)  ->  bytes

Bytes may be lost or damaged on the way, and the line may break and come back: a request is sent again, with the same
sequence number, by which the firmware knows whether it has performed it. The firmware has no clock, so that only this
side repeats. Nothing here knows pyserial.
"""

from __future__ import annotations

import contextlib
import secrets
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from mlfbuild.core import MlfError, ProcessFailedError, TimedOutError, UsageError, printable, quoted
from mlfbuild.runners.frames import Damaged, Receiver, SerialFrame, encode

_T = TypeVar("_T")

VERSION = 1
"""Of the protocol."""
# 8 data bits with a start and a stop bit, which is what UARTs use by default.
_BITS_A_BYTE = 10
_FIRST_ROUND = 0.05
"""Seconds between the end of a request and its answer, before they are measured."""
_SHORTEST_PAUSE, _LONGEST_PAUSE, _RUNNING_PAUSE = 0.03, 0.25, 1.0
"""Seconds, beyond the time on the wire, after which a request is sent again: at first at least, later at most; and
while the firmware runs, so that it repeats a report that was lost."""
_HURRIED = 16
"""Immediate repetitions of a request after damaged bytes; later bytes are not taken for damaged answers."""
# The reset may come before its answer has been sent, so a long wait for the answer would be wasted.
_SECONDS_TO_RESET = 1.0
_LOOK_SECONDS = 0.1
_SECONDS_TO_RETURN = 5.0
"""Seconds that a port may be missing: a board with its own USB disconnects while it resets."""
# Little-endian, as all cores with the monitor are.
_HELLO = struct.Struct("<BBIIIII")
_STOPPED = struct.Struct("<III")
_CANNOT_RESET = 3
_REFUSED = {2: "a write outside RAM"}


class BytePort(Protocol):
    """A serial port; methods raise ``OSError`` if it is gone."""

    def read(self) -> bytes:
        """Return what has arrived; wait a moment if nothing has."""

    def write(self, data: bytes) -> None:
        """Send ``data``."""

    def reopen(self) -> None:
        """Close the port if it is open, and open it."""


class _NoAnswerError(Exception):
    """No answer has arrived after as many attempts as were allowed."""


@dataclass(frozen=True)
class Hello:
    """The description that the firmware gives of itself."""

    version: int
    data: int
    """Most bytes of memory in a frame."""
    session: int
    previous: int
    """The session before this one; 0 if this is the first one since the reset."""
    anchor: int
    """Address of the function ``mlf_serial_serve``."""
    ram_begin: int
    ram_end: int


@dataclass(frozen=True)
class Stop:
    """A stop of the firmware: where, and a copy of the memory at an address."""

    place: int
    address: int
    block: bytes


class Link:
    """The monitor at the other end of ``port``.

    ``name`` and ``where`` are for messages. An answer may take ``patience`` seconds, with all repetitions.
    """

    def __init__(self, port: BytePort, name: str, where: str, baud: int, patience: float) -> None:
        self._port, self._name, self._where, self._baud, self.patience = port, name, where, baud, patience
        self._receiver = Receiver()
        self._session = 0
        self._sequence = 0
        self._round = _FIRST_ROUND
        self._noise = b""
        self.repeated = 0
        """Number of frames that were sent again."""

    def text(self) -> str:
        """Return what the firmware has printed between frames since the last call."""
        return self._receiver.text()

    @property
    def connected(self) -> bool:
        """Whether a session has begun and was not lost."""
        return self._session != 0

    def leave(self) -> None:
        """End the session."""
        self._session = 0

    # Sessions ---------------------------------------------------------------------------------------------------------

    def connect(self, patience: float | None = None) -> Hello:
        """Begin a session. Raises ``ProcessFailedError`` if something else answers, ``TimedOutError`` if nothing.

        The firmware must be in its monitor, or reach it within ``patience`` seconds, by default those of the link. An
        earlier session of this link ends. Raises ``ProcessFailedError`` also for another version of the protocol.
        """
        seconds = self.patience if patience is None else patience
        # Random and never 0, so that an answer to an earlier process on the same line, which is still in a buffer, is
        # not taken for one to this.
        session = secrets.randbelow(0xFFFF_FFFF) + 1
        self._session, self._sequence, self._noise = 0, 0, b""

        def answer(got: SerialFrame) -> Hello | None:
            if got.kind != "h" or len(got.payload) != _HELLO.size:
                return None
            hello = Hello(*_HELLO.unpack(got.payload))
            return hello if hello.session == session else None

        # HELLO has sequence number 0, and the first request of the session has 1.
        frame = encode("H", 0, session.to_bytes(4, "little"))
        hello = self._exchange(frame, answer, seconds, lambda: self._nobody(seconds), _HELLO.size)
        if hello.version != VERSION:
            raise self._failed(
                "serial-version",
                f"the firmware speaks version {hello.version} of the protocol, not {VERSION}",
                "build it with the mlf_serial.c of this mlfbuild",
            )
        self._session = session
        return hello

    def _failed(self, code: str, reason: str, hint: str) -> ProcessFailedError:
        """Return the error about the device, at the place of the link."""
        return ProcessFailedError(code, place=self._where, reason=reason, hint=hint)

    def _nobody(self, seconds: float) -> MlfError:
        noise = self._receiver.text().encode() or self._noise or self._receiver.rest
        if noise:
            return self._failed(
                "serial-garbage",
                f"{self._name} sends {quoted(noise.decode('latin-1'), 40)} instead of answers",
                "check the key baud, and that the firmware contains mlf_serial.c",
            )
        return TimedOutError(
            "serial-silent",
            place=self._where,
            reason=f"{self._name} did not answer within {seconds:g} s",
            hint="check the wiring, and that firmware with mlf_serial.c runs; reset the device",
        )

    def reset(self, patience: float) -> Hello:
        """Reset the device, and begin a session with what runs then.

        Repeated until a firmware answers that has had no session since its reset. Raises ``ProcessFailedError`` (code
        ``device-not-reset``) if there is none within ``patience`` seconds, and as ``connect``; ``UsageError`` if the
        firmware has no way to reset.
        """
        deadline = time.monotonic() + patience
        while True:
            with contextlib.suppress(ProcessFailedError):  # lost, or the reset was faster than its answer
                self.ask("X", patience=_SECONDS_TO_RESET)
            hello = self.connect(max(deadline - time.monotonic(), _SECONDS_TO_RESET))
            # Only a device that has forgotten its session was reset; the answer to X may be lost, and does not show it.
            if hello.previous == 0:
                return hello
            if time.monotonic() >= deadline:
                raise self._failed(
                    "device-not-reset",
                    f"the device at {self._name} goes on after a request to reset",
                    "correct MLF_SERIAL_RESET in its firmware, or reset it by hand",
                )

    # Requests ---------------------------------------------------------------------------------------------------------

    def ask(self, kind: str, payload: bytes = b"", size: int = 0, patience: float | None = None) -> bytes:
        """Have the firmware perform a request, and return the payload of its answer.

        ``kind`` and ``payload`` are those of ``runtime/serial/mlf_serial.h``. ``size`` is about the number of bytes of
        the answer: from it follows how long the wire needs, and it must be exact for ``R``. ``link.ask("R", address +
        size, 16)`` reads 16 bytes.

        Raises ``ProcessFailedError`` if there is no answer within ``patience`` seconds (by default that of the link),
        if the firmware refuses the request, or if the device was reset meanwhile; ``UsageError`` if it cannot reset.
        """
        return self._asked(kind, payload, size, patience, None)

    def try_to_ask(self, kind: str, payload: bytes, size: int, attempts: int | None) -> bytes | None:
        """Do the same for PEEK and POKE, but return ``None`` if no answer has arrived after so many ``attempts``.

        The next request must then be for the first part of the same memory: it gets the same sequence number, and the
        firmware may have performed this one.
        """
        try:
            return self._asked(kind, payload, size, None, attempts)
        except _NoAnswerError:
            # The firmware may already have performed the request; with the same number it would answer, not perform it
            # again.
            self._sequence = (self._sequence - 1) % 256
            return None

    def _asked(self, kind: str, payload: bytes, size: int, patience: float | None, attempts: int | None) -> bytes:
        seconds = self.patience if patience is None else patience
        sequence = self._next()
        # The answer to a request is its letter in lower case, except that to QUERY, which is a report of a stop.
        kinds = {"s" if kind == "Q" else kind.lower(), "e"}

        def answer(got: SerialFrame) -> SerialFrame | None:
            # An answer to an earlier PEEK of this number (after 256 requests or try_to_ask) can have another length.
            fits = got.kind in kinds and (got.kind != "r" or len(got.payload) == size)
            return got if fits and got.sequence == sequence else None

        frame = encode(kind, sequence, payload)
        got = self._exchange(frame, answer, seconds, lambda: self._silent(seconds), size, attempts=attempts)
        if got.kind == "e":
            raise self._refusal(got.payload)
        return got.payload

    def query(self) -> Stop:
        """Return where the firmware has stopped; raises as ``ask``."""
        return _stop(self.ask("Q", size=_STOPPED.size))

    def go(self, timeout: float) -> Stop:
        """Let the firmware go, and return its next stop.

        Raises ``TimedOutError`` if it runs and has not stopped after ``timeout`` seconds, and ``ProcessFailedError`` if
        it does not answer, or was reset (code ``device-reset``).
        """
        sequence = self._next()
        runs = False

        def answer(got: SerialFrame) -> Stop | None:
            nonlocal runs
            runs |= got.kind == "g" and got.sequence == sequence
            return _stop(got.payload) if got.kind == "s" and got.sequence == sequence else None

        def late() -> MlfError:
            if not runs:
                return self._silent(timeout)
            return TimedOutError(
                "device-timed-out",
                place=self._where,
                reason=f"the firmware at {self._name} did not stop within {timeout:g} s",
                hint="set a longer time limit, or look for an endless loop; then reset the device",
            )

        return self._exchange(encode("G", sequence), answer, timeout, late, _STOPPED.size, lambda: runs)

    def _next(self) -> int:
        self._sequence = (self._sequence + 1) % 256
        return self._sequence

    def _silent(self, seconds: float) -> MlfError:
        return self._failed(
            "connection-lost",
            f"{self._name} has not answered for {seconds:g} s",
            "check the cable and the power of the device, and reset it",
        )

    def _refusal(self, payload: bytes) -> MlfError:
        refusal = payload[0] if payload else 0
        if refusal == _CANNOT_RESET:
            reason = f"the firmware at {self._name} cannot reset its device"
            return UsageError("runner-cannot", place=self._where, reason=reason, hint="define MLF_SERIAL_RESET in it")
        return self._failed(
            "serial-refused",
            f"the firmware at {self._name} refuses {_REFUSED.get(refusal, 'a request')}",
            "build it with the mlf_serial.c of this mlfbuild",
        )

    # Frames -----------------------------------------------------------------------------------------------------------

    def _exchange(
        self,
        frame: bytes,
        answer: Callable[[SerialFrame], _T | None],
        seconds: float,
        late: Callable[[], MlfError],
        size: int = 0,
        runs: Callable[[], bool] = lambda: False,
        attempts: int | None = None,
    ) -> _T:
        """Send ``frame`` until ``answer``, which is called with each frame, returns something.

        ``late`` makes the error after ``seconds``. After so many ``attempts``, raise ``_NoAnswerError``. The answer has
        about ``size`` bytes. While the firmware ``runs``, the frame is sent rarely, only to make the firmware repeat
        what was lost.
        """
        deadline = time.monotonic() + seconds
        # 16 more bytes for the frame around the answer: zero bytes, COBS, kind, sequence number and CRC.
        wire = (len(frame) + size + 16) * _BITS_A_BYTE / self._baud
        pause, repeated = max(_SHORTEST_PAUSE, 3 * self._round), 0
        while True:
            sent = time.monotonic()
            try:
                self._port.write(frame)
                found = self._awaited(answer, sent + wire, pause, runs, deadline, repeated < _HURRIED)
            except OSError as error:
                self._return(error, min(deadline, time.monotonic() + _SECONDS_TO_RETURN))
                found = None
            if found is not None:
                if not repeated and not runs():  # the answer to a repeated frame may be that to the first one
                    # A moving average, so that one slow answer does not slow down all requests that follow.
                    self._round += (max(time.monotonic() - sent - wire, 0) - self._round) / 4
                return found
            if time.monotonic() >= deadline:
                self.leave()
                raise late()
            self.repeated += 1
            repeated += 1
            if repeated == attempts:
                raise _NoAnswerError
            # Wait longer only after silence. After a damaged frame the line is alive, and repeating at once is right.
            if time.monotonic() >= sent + wire + pause:
                pause = min(2 * pause, max(pause, _LONGEST_PAUSE))

    def _awaited(
        self,
        answer: Callable[[SerialFrame], _T | None],
        start: float,
        pause: float,
        runs: Callable[[], bool],
        deadline: float,
        hurries: bool,
    ) -> _T | None:
        """Return the answer, or ``None`` if the frame should be sent again: ``pause`` seconds after ``start``.

        If it ``hurries``, this is also after a damaged frame, which may have been the answer.
        """
        while time.monotonic() < min(start + (_RUNNING_PAUSE if runs() else pause), deadline):
            for got in self._receiver.feed(self._port.read()):
                if isinstance(got, Damaged):
                    self._noise = got.data
                # A stop of another session was on its way when this one began.
                elif got.kind == "s" and not self._is_ours(got):
                    continue
                elif got.kind != "n":
                    if (found := answer(got)) is not None:
                        return found
                    continue
                if hurries:
                    return None
        return None

    def _is_ours(self, stop: SerialFrame) -> bool:
        """Return whether a report of a stop is of this session; raise ``ProcessFailedError`` if it is of none."""
        # A firmware that was just reset reports session 0: it has none yet.
        session = stop.payload[:4]
        if self._session and session == bytes(4):
            self._session = 0
            raise self._failed(
                "device-reset",
                f"the device at {self._name} was reset in the middle",
                "look for a watchdog, a fault or an unstable supply",
            )
        return bool(self._session) and session == self._session.to_bytes(4, "little")

    def _return(self, error: OSError, deadline: float) -> None:
        """Open the port again. What the firmware knows of the session decides whether it goes on."""
        # A board with its own USB goes away while it resets, and comes back under the same name. The session number
        # shows whether the firmware was reset or only the line was interrupted.
        while (again := self._reopened()) is not None:
            if time.monotonic() >= deadline:
                self._session = 0
                raise self._failed(
                    "connection-lost",
                    f"{self._name} was disconnected ({printable(str(error))})",
                    f"connect it again ({printable(str(again))})",
                )
            time.sleep(_LOOK_SECONDS)

    def _reopened(self) -> OSError | None:
        try:
            self._port.reopen()
        except OSError as error:
            return error
        return None


def _stop(payload: bytes) -> Stop:
    _, place, address = _STOPPED.unpack_from(payload)
    return Stop(place & ~1, address, payload[_STOPPED.size :])
