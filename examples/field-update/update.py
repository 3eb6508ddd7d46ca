"""Send a blob of parameters to the firmware of this example, on QEMU or on a serial port.

mlfbuild build
mlfbuild parameters models/digits-v2.tflite --for digits --target m4 --number 2 --self-test 3 -o digits-2.bin
python update.py mps2-an386 digits-2.bin         # an emulated board, which runs the image in build, or a third argument
python update.py /dev/ttyACM0 digits-2.bin       # needs pyserial
"""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

PIECE = 1024
IMAGES = {"mps2-an386": "build/m4/app/app.elf", "mps3-an547": "build/m55/app/app.elf"}
"""Emulated boards, and the image of each."""


class Device:
    """The firmware at the other end of a line."""

    def __init__(self, reading: BinaryIO, writing: BinaryIO) -> None:
        self._reading, self._writing = reading, writing

    def ask(self, kind: str, number: int = 0, data: bytes = b"") -> int:
        """Send a request of ``src/main.c``, and return the answer."""
        self._writing.write(struct.pack("<cI", kind.encode(), number) + data)
        self._writing.flush()
        (answer,) = struct.unpack("<i", self._reading.read(4))
        return int(answer)

    def send(self, blob: bytes, cut: int | None = None) -> int:
        """Send ``blob`` in pieces, and return the result; with ``cut``, stop after so many bytes and restart it.

        What follows the blob, such as a signature, is filled with 0xff to a multiple of 16 bytes: a unit of flash.
        """
        blob += b"\xff" * (-len(blob) % 16)
        result = self.ask("B", len(blob))
        sent = blob[:cut]
        for at in range(0, len(sent), PIECE):
            piece = sent[at : at + PIECE]
            result = result or self.ask("W", len(piece), piece)
        return self.ask("Z") if cut is not None else result or self.ask("E")

    def stop(self) -> None:
        """End the firmware."""
        self._writing.write(struct.pack("<cI", b"X", 0))
        self._writing.flush()


def start(board: str, image: Path) -> tuple[Device, subprocess.Popen[bytes]]:
    """Start ``image`` on the emulated ``board``, whose serial port is the standard input and output of QEMU."""
    words = ["qemu-system-arm", "-M", board, "-display", "none", "-monitor", "none", "-serial", "stdio"]
    words += ["-semihosting-config", "enable=on,target=native", "-kernel", str(image)]
    running = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert running.stdin is not None and running.stdout is not None
    return Device(running.stdout, running.stdin), running


def main() -> None:
    """Update a device, and print the versions before and after."""
    where, blob = sys.argv[1], Path(sys.argv[2]).read_bytes()
    running = None
    if where in IMAGES:
        device, running = start(where, Path(sys.argv[3]) if sys.argv[3:] else Path(__file__).parent / IMAGES[where])
    else:
        import serial

        port = serial.Serial(where, 115200)
        device = Device(port, port)
    print(f"version {device.ask('V')} in slot {device.ask('S')}")
    print(f"result {device.send(blob)}")
    print(f"version {device.ask('V')} in slot {device.ask('S')}")
    if running is not None:
        device.stop()
        running.wait(10)


if __name__ == "__main__":
    main()
