"""Decode a fault of an M-profile core: what happened, and in which function and line.

The bits are those of the Armv7-M and Armv8-M Architecture Reference Manuals (DDI 0403, DDI 0553): CFSR, HFSR, MMFAR and
BFAR of the System Control Block. Cores of Armv6-M have none of them, and read 0.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from mlfbuild.core import MlfError
from mlfbuild.runners.firmware import Firmware
from mlfbuild.runners.types import Runner

_STATUS = 0xE000ED28
"""CFSR; HFSR, DFSR, MMFAR and BFAR follow it."""
# MemManage has bits 0 to 7 (MMFSR), BusFault 8 to 15 (BFSR), UsageFault 16 to 31 (UFSR).
_CAUSES = {
    0: "instruction fetch from protected memory",
    1: "access to protected memory",
    3: "protected memory while returning from an exception",
    4: "protected memory while entering an exception",
    5: "protected memory while saving floating-point registers",
    8: "bus error in an instruction fetch",
    9: "bus error",
    10: "bus error of an earlier write (imprecise)",
    11: "bus error while returning from an exception",
    12: "bus error while entering an exception",
    13: "bus error while saving floating-point registers",
    16: "undefined instruction",
    17: "invalid state, such as a call of an address without bit 0",
    18: "invalid return from an exception",
    19: "floating-point or vector instruction while the unit is off",
    20: "stack overflow",
    24: "unaligned access",
    25: "division by zero",
}
"""By bits of CFSR."""
_PROTECTED_ADDRESS, _BUS_ADDRESS = 7, 15
"""Bits of CFSR: MMFAR or BFAR holds the address of the access."""
_VECTOR_ERROR = 1
"""Bit of HFSR: the vector table could not be read."""
# Exception entry behaviour in both manuals. The frame with floating-point registers begins with the same eight words,
# so its length does not matter here.
_FRAME = struct.Struct("<8I")
"""r0 to r3, r12, lr, pc and xpsr, which the core stores at an exception."""
# lr holds EXC_RETURN at the first instruction of a handler; its bit 2 (SPSEL) shows which stack has the frame.
_ON_PROCESS_STACK = 1 << 2
"""Bit of EXC_RETURN."""
_NAMES = {2: "NMI", 3: "HardFault", 4: "MemManage fault", 5: "BusFault", 6: "UsageFault", 7: "SecureFault"}


def describe_fault(runner: Runner, firmware: Firmware) -> str:
    """Return lines about the fault in whose handler, before its first instruction, the device is halted.

    The first line names the exception and its causes, the next ones the function and line of pc and of lr, the last one
    CFSR, HFSR, MMFAR and BFAR for readers of the manual. Registers that the device does not show are omitted; no error
    is raised for them.
    """
    registers = runner.registers()
    number = registers["xpsr"] & 0x1FF
    name = _NAMES.get(number, f"exception {number}")
    # DFSR is between HFSR and MMFAR, and of no interest here: it is about debugging.
    status = struct.unpack("<5I", _read(runner, _STATUS, 20) or bytes(20))
    # At the handler's first instruction, sp is the main stack pointer.
    stack = registers.get("psp") if registers["lr"] & _ON_PROCESS_STACK else registers["sp"]
    frame = _read(runner, stack, _FRAME.size) if stack is not None and _is_plausible(firmware, stack) else None
    *_, lr, pc, _ = (0, 0, 0) if frame is None else _FRAME.unpack(frame)
    return _described(firmware, name, status[:2] + status[3:], stack, None if frame is None else (pc, lr))


def describe_printed_fault(output: str, firmware: Firmware) -> str | None:
    """Return the same lines about the fault that ``runtime/board/startup.c`` has printed at the end of ``output``.

    ``None`` if the output has no such report. The device need not be connected any more: all registers are in the text.
    """
    # The last one, because firmware can print the same words itself before it faults.
    head, found, report = output.rpartition("\nmlf_board: stopped by ")
    del head
    numbers = {name: int(value, 16) for name, value in re.findall(r"(\w+) +0x([0-9a-f]{8})", report)}
    if not found or not {"CFSR", "HFSR", "MMFAR", "BFAR", "sp"} <= numbers.keys():
        return None
    status = tuple(numbers[name] for name in ("CFSR", "HFSR", "MMFAR", "BFAR"))
    at = (numbers["pc"], numbers["lr"]) if {"pc", "lr"} <= numbers.keys() else None
    return _described(firmware, re.split("[:\n]", report)[0], status, numbers["sp"], at)


def _described(
    firmware: Firmware, name: str, status: tuple[int, ...], stack: int | None, at: tuple[int, int] | None
) -> str:
    """Return the lines; ``status`` are CFSR, HFSR, MMFAR and BFAR, ``at`` are pc and lr."""
    causes = ", ".join(_causes(*status))
    lines = [f"{name}: {causes}" if causes else name]
    if stack is None:
        lines.append("  the registers are on the process stack, whose pointer the debugger does not show")
    elif at is None:
        lines.append(f"  the stack pointer {stack:#010x} is outside the stack, which may be too small")
    else:
        pc, lr = at
        lines.append(f"  pc {_located(firmware, pc, pc)}")
        lines.append(f"  lr {_located(firmware, lr, (lr & ~1) - 2)}")  # it has bit 0 set, and points behind the call
    lines.append("  CFSR {:#010x}  HFSR {:#010x}  MMFAR {:#010x}  BFAR {:#010x}".format(*status))
    return "\n".join(lines)


def _causes(status: int, hard: int, protected: int, bus: int) -> Iterator[str]:
    for bit, cause in _CAUSES.items():
        if status >> bit & 1:
            address = {1: (_PROTECTED_ADDRESS, protected), 9: (_BUS_ADDRESS, bus)}.get(bit)
            # MMFAR and BFAR keep the address of an earlier fault; it belongs to this one only if MMARVALID or BFARVALID
            # is set.
            known = address is not None and status >> address[0] & 1
            yield f"{cause} at {address[1]:#010x}" if known and address else cause
    # Of HFSR only this bit is a cause of its own: FORCED says that the cause is in CFSR.
    if hard >> _VECTOR_ERROR & 1:
        yield "the vector table cannot be read"


def _located(firmware: Firmware, value: int, address: int) -> str:
    place = firmware.place_of(address)
    return f"{value:#010x}" if place.startswith("0x") else f"{value:#010x} in {place}"


def _is_plausible(firmware: Firmware, stack: int) -> bool:
    """Return whether ``stack`` is inside the stack, if the image has the symbols of mlfbuild's board support."""
    limits = [firmware.objects.get(name) for name in ("__stack_limit", "__stack_top")]
    low, high = limits
    # A stack overflow is one reason of faults. Its frame would be read from memory that belongs to something else, and
    # pc and lr would send the reader to the wrong function.
    return low is None or high is None or low <= stack <= high - _FRAME.size


def _read(runner: Runner, address: int, size: int) -> bytes | None:
    try:
        return runner.read(address, size)
    except MlfError:
        return None
