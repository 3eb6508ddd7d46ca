"""Call a function of firmware that is halted.

The host sets the registers as AAPCS (IHI 0042) requires, lets the core run, and stops it where it returns to. GDB's own
calls (``print f(1)``) do the same, but a call that hangs or faults leaves a frame inside GDB that only
``unwindonsignal`` removes, and no other way of reaching devices has them. This code works on every runner, with a time
limit and with stops at the fault handlers.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence

from mlfbuild.core import ProcessFailedError, TimedOutError, UsageError
from mlfbuild.runners.types import Runner

# Armv7-M and Armv8-M Architecture Reference Manuals (DDI 0403, DDI 0553), System Control Block. The register is
# optional in Armv6-M: a Cortex-M0 has no VTOR, and its table is at address 0.
_VECTOR_TABLE = 0xE000ED08
"""VTOR; it reads 0 on cores that have none."""
_HARD_FAULT, _USAGE_FAULT = 3, 6
"""First and last number of the exceptions for faults; cores of Armv6-M only have the first."""
_BREAKPOINTS = 4
"""Hardware breakpoints of a Cortex-M0+."""
# AAPCS: the first four words of arguments are in r0 to r3, the rest is on the stack.
_IN_REGISTERS = 4
# EPSR.T. M-profile cores only have Thumb code: an instruction that runs with T clear is a UsageFault.
_THUMB = 1 << 24
_KEPT = 0xF80001FF
"""Bits of xPSR that stay: flags and the exception number, but not the state of an interrupted instruction."""
_CLOBBERED = ("r0", "r1", "r2", "r3", "r12", "sp", "lr", "pc", "xpsr")


def call_function(runner: Runner, address: int, arguments: Sequence[int], timeout: float) -> int:
    """Call the function at ``address`` with 32-bit ``arguments``, and return its result in r0.

    The function returns to the instruction at which the device is halted, and the device is there again with the same
    registers afterwards. Arguments after the fourth are written below the stack pointer (AAPCS, IHI 0042), so the stack
    needs room for them and for the function. Floating-point registers are not saved, which matters only if the device
    is halted in the middle of a function that uses them. Negative arguments are passed in two's complement; the result
    is unsigned::

        sum_of = firmware.function("sum")
        total = call_function(runner, sum_of, [1, -2], timeout=1.0)   # 0xFFFFFFFF is -1

    Raises ``UsageError`` if the core is not a Cortex-M, ``TimedOutError`` after ``timeout`` seconds, and
    ``ProcessFailedError`` (code ``call-faulted``) if the function faults: the device is then halted before the first
    instruction of the handler.
    """
    before = runner.registers()
    # xPSR exists on M-profile cores only, and the steps below rely on Thumb state and on their exceptions.
    if "xpsr" not in before:
        reason = "calls of functions on devices are only known for Cortex-M cores"
        raise UsageError("runner-cannot", place=runner.name, reason=reason)
    # The return address is where the device stands now: it is certainly executable, and the call leaves no trap behind
    # in flash or RAM.
    home = before["pc"]
    # With the words that do not fit into registers; AAPCS requires a stack that is aligned to 8 bytes at a public call.
    stack = (before["sp"] - 4 * max(0, len(arguments) - _IN_REGISTERS)) & ~7
    if stack_words := arguments[_IN_REGISTERS:]:
        runner.write(stack, struct.pack(f"<{len(stack_words)}I", *(word & 0xFFFF_FFFF for word in stack_words)))
    changed = {f"r{index}": word & 0xFFFF_FFFF for index, word in enumerate(arguments[:_IN_REGISTERS])}
    state = before["xpsr"] & _KEPT | _THUMB
    runner.set_registers({**changed, "sp": stack, "lr": home | 1, "pc": address & ~1, "xpsr": state})
    # The handlers are read at each call, because firmware may install its own table in RAM while it starts.
    faults = _fault_handlers(runner)
    deadline = time.monotonic() + timeout
    while True:
        stop = runner.go([home, *faults], max(0.0, deadline - time.monotonic()))
        after = runner.registers()
        if stop in faults and after["xpsr"] & 0x1FF in range(_HARD_FAULT, _USAGE_FAULT + 1):
            raise ProcessFailedError(
                "call-faulted",
                place=runner.name,
                reason=f"the function at {address & ~1:#010x} caused a fault",
                hint="the device is halted in the handler",
            )
        # An interrupt, or the function itself, may run the instruction at home before the call ends.
        if stop == home and after["sp"] == stack:
            break
        if time.monotonic() >= deadline:
            reason = f"the function at {address & ~1:#010x} did not return within {timeout:g} s"
            raise TimedOutError("device-timed-out", place=runner.name, reason=reason, hint="set a longer time limit")
    # The called function has preserved r4 to r11 (AAPCS), so only the others are written back.
    runner.set_registers({name: before[name] for name in _CLOBBERED})
    return after["r0"]


def _fault_handlers(runner: Runner) -> list[int]:
    """Return the addresses of the handlers of faults, the common one first, as the running firmware has set them."""
    table = int.from_bytes(runner.read(_VECTOR_TABLE, 4), "little")
    # HardFault, MemManage, BusFault and UsageFault are neighbours in the vector table.
    size = 4 * (_USAGE_FAULT - _HARD_FAULT + 1)
    handlers = struct.unpack("<4I", runner.read(table + 4 * _HARD_FAULT, size))
    distinct = dict.fromkeys(handler & ~1 for handler in handlers if handler)
    # One breakpoint is for the return. HardFault comes first because the other faults escalate to it if their handlers
    # are not enabled.
    return list(distinct)[: _BREAKPOINTS - 1]
