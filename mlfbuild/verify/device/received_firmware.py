"""Verify a model in the image that ships: call its run function there with each vector.

The image runs on the device from reset to ``main``, so that clocks, memories and constructors are as in the product.
There the core is halted, and the host calls the model's function as ``main`` would, with tensors in memory that the
image does not use. Nothing is built for it, and nothing of it changes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.core import (
    CheckFailedError,
    InputFileError,
    OnProgress,
    ProcessFailedError,
    TimedOutError,
    UnsupportedModelError,
    no_progress,
)
from mlfbuild.jobs.tree import Subject, subject_of
from mlfbuild.library import BLOB_ALIGNMENT, Module, struct_prefix
from mlfbuild.runners import Firmware, Runner, call_function, describe_fault, read_firmware, start_at_entry
from mlfbuild.verify.device.connection import Connection
from mlfbuild.verify.device.scratch_memory import Scratch, find_room
from mlfbuild.verify.module import report_of
from mlfbuild.verify.result import VerifyReport
from mlfbuild.verify.semihosting_io import SECONDS_A_CASE, runs_layout
from mlfbuild.verify.vectors import load_vectors

_RUNS = 2
_START_SECONDS = 30.0
"""Time from reset to main: clocks, oscillators, the constructors of C++."""
# Not 0 and not 0xFF, which erased or cleared memory has.
_PAINT, _STACK_PAINT = 0xA5, 0x5B
_WATCHED = 32
"""Bytes at the end of the free stack that must not change."""
_KEPT_REGISTERS = {f"r{number}": 0x4D4C4600 + number for number in range(4, 12)}
"""Registers that a function must preserve, with values by which a reset is noticed: the core is also at main then."""


def verify_shipped(
    connection: Connection,
    image: Path,
    subject: Subject,
    vectors: Path,
    *,
    flash: bool = True,
    timeout: float | None = None,
    parameters: bytes = b"",
    on_progress: OnProgress = no_progress,
) -> VerifyReport:
    """Check ``subject`` in the firmware ``image`` on the device of ``connection`` against the file ``vectors``.

    The image is loaded unless ``flash`` is false: then the device must hold it. A case may take ``timeout`` seconds.
    With ``parameters``, a blob, the firmware's own function is called first to use it, and decides about it.

    Raises ``InputFileError`` if the image has no function to call, ``UnsupportedModelError`` if the device has too
    little free memory, ``ProcessFailedError`` if the image does not reach ``main``, or if the connection is lost, and
    ``CheckFailedError`` if the firmware refuses the blob.
    """
    firmware = read_firmware(image)
    address, with_workspace = _run_function(firmware, subject)
    loaded = load_vectors(vectors, subject)
    if flash:
        connection.runner.load(image, on_progress)
    else:
        _check_is_held(connection.runner, firmware, address)
    _run_to_main(connection.runner, firmware)
    pointer = connection.runner.registers()["sp"]
    block = Scratch(subject, workspace=with_workspace)
    beside = block.size + -block.size % BLOB_ALIGNMENT
    size = beside + len(parameters) if parameters else block.size
    room = find_room(firmware, connection.device.ram, pointer, size)
    if parameters:
        _use_parameters(connection.runner, firmware, subject, room.base + beside, parameters)
    # The AAPCS demands a stack pointer that is a multiple of 8 at every call.
    calls = _Calls(connection.runner, firmware, subject, address, block, room.base, room.stack, pointer & ~7)
    cases = [[array[case].tobytes() for array in loaded.inputs] for case in range(loaded.cases)]
    runs, stopped = calls.run(cases, timeout or SECONDS_A_CASE, on_progress)
    # The workspace is neither painted nor read over the wire, which would take longer than the run itself.
    subject = replace(subject, takes_workspace=False)  # how much of it is used is not measured
    return report_of(subject, loaded, runs, stopped, f"{connection.name} in {image.name}")


def _use_parameters(runner: Runner, firmware: Firmware, subject: Subject, address: int, blob: bytes) -> None:
    """Write ``blob`` to ``address``, and let the firmware check and use it."""
    name = f"mlf_{struct_prefix(subject.name).removeprefix('tvmgen_')}_use_parameters"
    function = firmware.function(name)
    if function is None:
        raise InputFileError(
            "use-parameters-missing",
            place=firmware.path,
            reason=f"the image has no {name}",
            hint="compile the model with parameters: replaceable, and call the function in the firmware",
        )
    runner.write(address, blob)
    result = call_function(runner, function, [address, len(blob)], _START_SECONDS)
    if result:
        raise CheckFailedError(
            "parameters-refused",
            place=f"{firmware.path}: {name}",
            reason=f"returned {result - (1 << 32) if result >> 31 else result}",
            hint=f"see the macros MLF_{subject.name.upper()}_BLOB_* in the model's header",
        )


def shipped_subject(module: Module, device: str) -> Subject:
    """Return what checking ``module`` in an image that ships takes, on a device that is reached by the way ``device``.

    Raises ``UnsupportedModelError`` if the module has no C interface, or needs more than tensors of its caller.
    """
    subject = subject_of(module, device)
    if subject.pools or module.workspace_io:
        raise UnsupportedModelError(
            "module-needs-pools",
            place=module.name,
            reason="its caller provides memory pools, which mlfbuild cannot find in an image",
            hint="verify it in test firmware, without --in",
        )
    several = module.network is not None and bool(module.network.arenas)
    return replace(subject, takes_workspace=subject.takes_workspace and not several)


def _run_function(firmware: Firmware, subject: Subject) -> tuple[int, bool]:
    """Return the address of the module's run function, and whether its caller provides a workspace."""
    prefix = struct_prefix(subject.name)
    static, reentrant = f"{prefix}_run", f"mlf_{prefix.removeprefix('tvmgen_')}_run"
    # The static entry first: the firmware calls it with the workspace that was placed for it.
    for name, with_workspace in ((static, False), (reentrant, True)):
        address = firmware.function(name)
        # Not with a state, or with several workspaces: the block of the device has only one.
        if address is not None and not (with_workspace and (subject.state_size or not subject.takes_workspace)):
            return address, with_workspace
    if not firmware.functions:
        reason, hint = "the image has no symbol table", "name the ELF file before it is stripped"
    elif firmware.function(reentrant) is not None:
        reason = f"the image has only {reentrant}, whose caller keeps the model's state"
        hint = f"call {static} in it"
    else:
        reason = f"the image has neither {static} nor {reentrant}"
        hint = "call one of them in the firmware; link-time optimisation may inline it: build that file with -fno-lto"
    raise InputFileError("run-function-missing", place=firmware.path, reason=reason, hint=hint)


def _check_is_held(runner: Runner, firmware: Firmware, address: int) -> None:
    """Raise ``ProcessFailedError`` if the device holds another image than ``firmware``."""
    runner.reset()
    for origin, data in firmware.segments:
        if origin <= address < origin + len(data):
            start = address - origin
            # A part of the function is enough: another build nearly always has other code there, or the function
            # elsewhere.
            code = data[start : start + 256]
            if runner.read(address, len(code)) == code:
                return
    reason = f"the device does not hold {firmware.path.name}"
    hint = "omit --no-flash, or write the image to the device"
    raise ProcessFailedError("device-holds-another-image", place=runner.name, reason=reason, hint=hint)


def _run_to_main(runner: Runner, firmware: Firmware) -> None:
    main = firmware.function("main")
    if main is None:
        raise InputFileError(
            "main-missing",
            place=firmware.path,
            reason="the image has no symbol main, at which it would be halted",
            hint="name the ELF file before it is stripped",
        )
    vectors = firmware.vectors()
    # The HardFault handler, entry 3 of a vector table: without a stop there, a fault would look like a time limit.
    faults = [vectors[1][3] & ~1] if vectors is not None and vectors[1][3] else []
    start_at_entry(runner, firmware)
    try:
        at = runner.go([main, *faults], _START_SECONDS)
    except TimedOutError:
        where = firmware.place_of(runner.registers()["pc"] & ~1)
        reason = f"{firmware.path.name} does not reach main within {_START_SECONDS:g} s; it is in {where}"
        hint = "check that it starts on this device without a debugger"
        raise ProcessFailedError("main-not-reached", place=runner.name, reason=reason, hint=hint) from None
    if at != main:
        output = describe_fault(runner, firmware)
        reason = f"{firmware.path.name} faults before main"
        hint = "check that it starts on this device without a debugger, and makes no semihosting call before main"
        raise ProcessFailedError("main-not-reached", output, place=runner.name, reason=reason, hint=hint)


class _StoppedEarlyError(Exception):
    """A call did not return; the text says why."""


@dataclass(frozen=True)
class _Calls:
    """Calls of a run function on a device that is halted at ``main``."""

    _runner: Runner
    _firmware: Firmware
    _subject: Subject
    _address: int
    _block: Scratch
    _base: int
    _stack: int
    _pointer: int

    def run(
        self, cases: Sequence[Sequence[bytes]], timeout: float, on_progress: OnProgress
    ) -> tuple[npt.NDArray[Any], str | None]:
        """Run each case twice, or once if the module has a state; return the runs, and why they ended early."""
        layout = runs_layout(self._subject, _RUNS)
        done: list[npt.NDArray[Any]] = []
        paint, begin = _PAINT, time.monotonic()
        self._runner.set_registers(_KEPT_REGISTERS)
        on_progress("running", 0, len(cases))
        try:
            for inputs in cases:
                first = self._call(inputs, paint, timeout, measured=not done)
                # A second run would continue from the state of the first one, and the next case would start from
                # another state than in the vectors.
                second = first if self._subject.state_size else self._call(inputs, paint ^ 0xFF, timeout)
                done.append(np.frombuffer(first + second, layout))
                # Another paint for each case, so that output that is not written cannot be equal by chance to what was
                # there before. The sequence has the full period of 256 (Hull and Dobell).
                paint = (paint * 5 + 3) & 0xFF
                rate = len(done) / max(time.monotonic() - begin, 1e-3)
                on_progress(f"running ({rate:.1f} cases a second)", len(done), len(cases))
        except _StoppedEarlyError as error:
            return _joined(done, layout), str(error)
        return _joined(done, layout), None

    def _call(self, inputs: Sequence[bytes], paint: int, timeout: float, *, measured: bool = False) -> bytes:
        """Run a case and return its record and outputs, as the test firmware writes them."""
        pieces = self._block.pieces(self._base, inputs, paint)
        for address, data in pieces:
            self._runner.write(address, data)
        size = self._pointer - self._stack if measured else _WATCHED
        self._runner.write(self._stack, bytes([_STACK_PAINT]) * size)
        status = self._result(timeout)
        after = [self._runner.read(address, len(data)) for address, data in pieces]
        stack = self._runner.read(self._stack, size)
        # An overflow of the stack has changed other data of the image: nothing that follows could be trusted.
        if stack[:_WATCHED] != bytes([_STACK_PAINT]) * _WATCHED:
            raise _StoppedEarlyError(
                f"it uses more than the {self._pointer - self._stack:,} bytes of stack that are free"
            )
        used = len(stack.lstrip(bytes([_STACK_PAINT]))) if measured else 0
        damage, index = self._block.damage(self._base, pieces, after)
        record = np.array([status, damage, index, 0, used], np.uint32)
        return record.tobytes() + b"".join(self._block.outputs(after[0]))

    def _result(self, timeout: float) -> int:
        try:
            result = call_function(self._runner, self._address, self._block.arguments(self._base), timeout)
        except TimedOutError:
            where = self._firmware.place_of(self._runner.registers()["pc"] & ~1)
            raise _StoppedEarlyError(f"no result after {timeout:g} s, so it was stopped in {where}") from None
        except ProcessFailedError as error:
            if error.code != "call-faulted":
                raise
            fault = describe_fault(self._runner, self._firmware)
            raise _StoppedEarlyError(f"the firmware faulted\n{fault}") from None
        registers = self._runner.registers()
        if any(registers[name] != value for name, value in _KEPT_REGISTERS.items()):
            raise _StoppedEarlyError("the device was reset, for example by a watchdog or a dip of its supply")
        return result


def _joined(runs: Sequence[npt.NDArray[Any]], layout: np.dtype[Any]) -> npt.NDArray[Any]:
    return np.concatenate(runs) if runs else np.empty(0, layout)
