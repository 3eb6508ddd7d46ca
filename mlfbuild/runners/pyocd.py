"""Devices that pyOCD accesses as a library: a CMSIS-DAP, ST-LINK or J-Link probe, without a server and without GDB."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlfbuild.core import (
    MlfError,
    OnProgress,
    ProcessFailedError,
    TimedOutError,
    ToolNotFoundError,
    UsageError,
    listed,
    no_progress,
    require_extra,
    stops_held,
)
from mlfbuild.project import RunnerKeys
from mlfbuild.runners.calls import call_function
from mlfbuild.runners.firmware import read_firmware
from mlfbuild.runners.image_checks import MVFR0, check_image, check_size, not_written
from mlfbuild.runners.lock import device_lock
from mlfbuild.runners.serial_port import serial_console
from mlfbuild.targets import MemoryRegion

if TYPE_CHECKING:
    from pyocd.core.session import Session

_HALT_SECONDS = 2.0
"""Default of pyOCD for the time until a core halts."""
# pyOCD has no event for a halt, so the core is polled; a millisecond is about one transfer over USB.
_LOOK_SECONDS = 0.001
_CPUID = 0xE000ED00
# The last messages of pyOCD that an error shows.
_LINES = 20
_CORE_REGISTERS = (*(f"r{number}" for number in range(13)), "sp", "lr", "pc", "xpsr", "msp", "psp")
_CALL_CLOBBERS = (*(f"s{number}" for number in range(16)), "fpscr", "vpr")
"""Floating-point registers that a called function may change (AAPCS)."""


class PyOcd:
    """A device behind a probe that pyOCD drives; see ``Runner`` for what its methods do."""

    def __init__(self, keys: RunnerKeys, place: str, memory: Sequence[MemoryRegion]) -> None:
        """Connect to the device of ``keys``, whose probe pyOCD accesses, and halt it.

        ``place`` locates the keys in messages; ``memory`` are the memories that an image must fit into.

        Raises ``ToolNotFoundError`` without pyOCD or a probe, ``UsageError`` if several probes are connected or pyOCD
        does not know the part, ``ConflictError`` if another process uses the probe, and ``ProcessFailedError`` if the
        device does not answer.
        """
        self.name = f"pyocd {keys.address}"
        self.console: Callable[[], str] = str
        self._place = place
        self._memory = tuple(memory)
        self._halt_seconds = _HALT_SECONDS if keys.timeout is None else keys.timeout / 1e9
        self._messages = _Messages()
        self._breakpoints: set[int] = set()
        require_extra("pyocd", place, "the connection to a probe")
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._messages.kept())
            found = self._probe(keys.probe)
            # By the serial number of the probe, so that two targets of a project with different probes are used at the
            # same time.
            stack.enter_context(device_lock(f"probe {found.unique_id}", place))
            if keys.console:
                self.console = stack.enter_context(serial_console(keys.console, keys.baud, place)).read
            with self._errors():
                self._session = self._opened(found, keys.address)
            stack.callback(self._release)
            self._target: Any = self._session.target
            self._target.halt()
            self._stack = stack.pop_all()

    def _probe(self, serial_number: str | None) -> Any:
        from pyocd.core.helpers import ConnectHelper

        with self._errors():
            probes = ConnectHelper.get_all_connected_probes(blocking=False, unique_id=serial_number)
        if not probes:
            which = "no probe" if serial_number is None else f"no probe with the serial number {serial_number}"
            raise ToolNotFoundError(
                "probe-not-found",
                place=self._place,
                reason=f"{which} is connected",
                hint="connect it, and check that your user may access USB devices",
            )
        if len(probes) > 1:
            names = listed([str(probe.unique_id) for probe in probes])
            reason = f"several probes are connected: {names}"
            raise UsageError("several-probes", place=self._place, reason=reason, hint="choose one with the key probe")
        return probes[0]

    def _opened(self, probe: Any, target: str) -> Session:
        from pyocd.core.exceptions import TargetSupportError
        from pyocd.core.session import Session

        options = {
            "target_override": target,
            "hide_programming_progress": True,
            "reset.halt_timeout": self._halt_seconds,
        }
        try:
            session = Session(probe, options=options)
        except TargetSupportError as error:
            raise UsageError(
                "pyocd-target-unknown",
                place=self._place,
                reason=f"pyOCD does not know the target type {target}: {_first_line(error)}",
                hint=f"see `pyocd list --targets`, or install its pack: pyocd pack install {target}",
            ) from None
        try:
            session.open()
        # open() claims the USB interface before it talks to the device. Ctrl-C must also give it back, or the next run
        # finds the probe busy.
        except BaseException:
            session.close()
            raise
        return session

    def close(self) -> None:
        """Reset the device, let it run and release it. It may be called twice."""
        with stops_held():  # a second Ctrl-C must not leave the device halted
            self._stack.close()

    def _release(self) -> None:
        """Reset the device and let it run. Errors do not matter any more."""
        with contextlib.suppress(MlfError), self._errors():
            self._target.halt()
            self._set_breakpoints(())
            self._target.reset()
        with contextlib.suppress(MlfError), self._errors():
            self._session.close()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn errors of pyOCD and of its drivers into errors with an exit code."""
        from pyocd.core import exceptions

        try:
            yield
        except exceptions.FlashFailure as error:
            raise self._not_written(_first_line(error)) from None
        except exceptions.TransferFaultError as error:
            reason = f"the memory cannot be accessed: {_first_line(error)}"
            raise ProcessFailedError("device-memory-unreadable", place=self.name, reason=reason) from None
        except (exceptions.Error, OSError) as error:  # errors of libusb are of OSError
            hint = "check the cable and the power of the board, then run it again"
            reason = f"the probe or the device does not answer: {_first_line(error)}"
            text = self._messages.text
            raise ProcessFailedError("connection-lost", text, place=self.name, reason=reason, hint=hint) from None

    # Loading ---------------------------------------------------------------------------------------------------------

    def load(self, image: Path, on_progress: OnProgress = no_progress) -> None:
        """Write the segments of ``image``, compare what the device holds then, and reset it.

        pyOCD writes only pages that differ. Raises ``UnsupportedModelError`` if ``image`` is for another CPU or FPU or
        does not fit the memories, and ``ProcessFailedError`` if the device does not take it or holds something else
        afterwards.
        """
        from pyocd.flash.file_programmer import FileProgrammer

        firmware = read_firmware(image)
        cpuid, mvfr0 = (int.from_bytes(self.read(address, 4), "little") for address in (_CPUID, MVFR0))
        check_image(firmware, "arm", cpuid, mvfr0, self.name)
        check_size(firmware, self._memory, self.name)
        # pyOCD only logs a warning about data for which it knows no memory.
        check_size(firmware, self._known_memory(), self.name, all_memory=True)
        self.reset()
        done = 0

        def progress(fraction: float) -> None:  # pyOCD begins again for each memory
            nonlocal done
            done = max(done, round(fraction * firmware.size))
            on_progress("loading", done, firmware.size)

        progress(0)
        with self._errors():
            # trust_crc=False: pages are compared by their content. A CRC that happens to match would leave an old page
            # in place.
            FileProgrammer(self._session, progress=progress, trust_crc=False).program(str(image), file_format="elf")
        # Rule 1 of Runner: the whole image is compared, not only the pages that pyOCD has written.
        for origin, content in firmware.segments:
            if self.read(origin, len(content)) != content:
                reason = f"the memory from {origin:#x} to {origin + len(content):#x} does not contain what was written"
                raise self._not_written(reason)
        on_progress("loading", firmware.size, firmware.size)
        self.reset()

    def _known_memory(self) -> tuple[MemoryRegion, ...]:
        """Return the memories of the target type; adjacent ones are one, because an image may span them."""
        regions: list[MemoryRegion] = []
        for each in sorted(self._target.memory_map.regions, key=lambda region: region.start):
            if (each.is_flash or each.is_ram) and regions and regions[-1].origin + regions[-1].size == each.start:
                regions[-1] = MemoryRegion(regions[-1].name, regions[-1].origin, regions[-1].size + each.length)
            elif each.is_flash or each.is_ram:
                regions.append(MemoryRegion(f"the memory {each.name}", each.start, each.length))
        return tuple(regions)

    def _not_written(self, reason: str) -> ProcessFailedError:
        return not_written("the image", reason, self.name, self._messages.text)

    # Running ---------------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Reset the device and halt it before its first instruction."""
        with self._errors():
            self._target.reset_and_halt()
            self._wait_for_halt()

    def go(self, stops: Sequence[int], timeout: float) -> int:
        """Let the firmware run until it reaches one of ``stops``, and return that address.

        If it stands at one of them, it runs on from there.
        """
        with self._errors():
            here = self._target.read_core_register("pc")
            if here in stops:  # the core would halt at once
                self._set_breakpoints({*stops} - {here})
                self._target.step()
                here = self._target.read_core_register("pc")
                if here in stops:
                    return int(here)
            self._set_breakpoints(stops)
            self._target.resume()
            self._run(timeout)
            here = int(self._target.read_core_register("pc"))
        if here not in stops:
            reason = f"the firmware stopped at {here:#010x}"
            hint = "look for a bkpt instruction, such as a semihosting call or an assertion"
            raise ProcessFailedError("device-stopped", place=self.name, reason=reason, hint=hint)
        return here

    def _run(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not self._target.is_halted():
            if time.monotonic() >= deadline:
                self._target.halt()
                self._wait_for_halt()
                reason = f"the firmware did not stop within {timeout:g} s and was halted"
                hint = "look for an endless loop, or set a longer time limit"
                raise TimedOutError("device-timed-out", place=self.name, reason=reason, hint=hint)
            time.sleep(_LOOK_SECONDS)

    def _wait_for_halt(self) -> None:
        deadline = time.monotonic() + self._halt_seconds
        while not self._target.is_halted():
            if time.monotonic() >= deadline:
                reason = f"the core did not halt within {self._halt_seconds:g} s"
                hint = "check the board, or set a longer timeout in its runner"
                raise TimedOutError("device-silent", place=self.name, reason=reason, hint=hint)
            time.sleep(_LOOK_SECONDS)

    def _set_breakpoints(self, stops: Sequence[int] | set[int]) -> None:
        from pyocd.core.target import Target

        for address in self._breakpoints - {*stops}:
            self._target.remove_breakpoint(address)
        for address in {*stops} - self._breakpoints:
            if not self._target.set_breakpoint(address, Target.BreakpointType.HW):
                reason = f"the core has no hardware breakpoint left for {address:#010x}"
                raise ProcessFailedError("device-command-failed", place=self.name, reason=reason)
        self._breakpoints = {*stops}

    # Memory and registers --------------------------------------------------------------------------------------------

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes of memory."""
        with self._errors():
            return bytes(self._target.read_memory_block8(address, size)) if size else b""

    def write(self, address: int, data: bytes) -> None:
        """Change memory in RAM."""
        with self._errors():
            if data:
                self._target.write_memory_block8(address, list(data))
            # pyOCD defers writes. Without this, an error would be raised in a later call that has nothing to do with
            # it.
            self._target.flush()

    def registers(self) -> Mapping[str, int]:
        """Return the core's registers."""
        return self._values(_CORE_REGISTERS)

    def _values(self, names: Sequence[str]) -> dict[str, int]:
        with self._errors():
            return dict(zip(names, self._target.read_core_registers_raw(list(names)), strict=True))

    def set_registers(self, values: Mapping[str, int]) -> None:
        """Change registers."""
        with self._errors():
            self._target.write_core_registers_raw(list(values), list(values.values()))
            self._target.flush()

    def call(self, address: int, arguments: Sequence[int], timeout: float) -> int:
        """Call the function at ``address``; see ``call_function``. Floating-point registers are also restored."""
        known = self._target.selected_core.core_registers.by_name
        saved = self._values([name for name in _CALL_CLOBBERS if name in known])
        result = call_function(self, address, arguments, timeout)
        if saved:
            self.set_registers(saved)
        return result


class _Messages(logging.Handler):
    """The log of pyOCD, for errors; without a handler, Python would print it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lines: deque[str] = deque(maxlen=_LINES)

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(f"{record.levelname.lower()}: {record.getMessage()}")

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        logger = logging.getLogger("pyocd")
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).partition("\n")[0].rstrip(".")


connect = PyOcd
