"""Faults that no emulated board reaches: the frame is on the stack of a task, of which QEMU 7 shows no pointer."""

import struct
from collections.abc import Mapping
from pathlib import Path

from mlfbuild.runners import describe_fault, read_firmware
from support.device_firmware import SOURCE, symbols

TASK_STACK = 0x20001000


class Halted:
    """A device that is halted in its HardFault handler, after a fault in a task."""

    name = "halted"

    def __init__(self, pc: int, lr: int, registers: Mapping[str, int]) -> None:
        self.frame = struct.pack("<8I", 0, 1, 2, 3, 12, lr, pc, 1 << 24)
        self.others = registers

    def registers(self) -> Mapping[str, int]:
        return {"sp": 0x20002000, "lr": 0xFFFFFFFD, "pc": 0x100, "xpsr": 3, **self.others}

    def read(self, address: int, size: int) -> bytes:
        known = {TASK_STACK: self.frame, 0xE000ED28: struct.pack("<5I", 1 << 25, 1 << 30, 0, 0, 0)}
        return known.get(address, bytes(size))[:size]


def test_the_frame_of_a_task_is_on_its_stack(image: Path) -> None:
    at = symbols(image)
    line = next(n for n, text in enumerate(SOURCE.splitlines(), 1) if "/* the fault */" in text)
    device = Halted(at["write_to"], at["Reset_Handler"] + 1 + 8, {"psp": TASK_STACK})
    text = describe_fault(device, read_firmware(image))  # type: ignore[arg-type]
    assert text.startswith("HardFault: division by zero\n")
    assert f"pc {at['write_to']:#010x} in write_to (app.c:" in text
    assert f":{line - 1})" in text or f":{line})" in text
    assert "in Reset_Handler" in text


def test_no_frame_is_shown_if_its_stack_is_not_known(image: Path) -> None:
    device = Halted(0x40, 0x41, {})
    text = describe_fault(device, read_firmware(image))  # type: ignore[arg-type]
    assert "pc 0x" not in text
    assert "process stack" in text
