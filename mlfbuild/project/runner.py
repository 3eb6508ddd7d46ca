"""The device that runs a target's firmware, in a project file: how it is reached, and the checks between its keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from mlfbuild import targets
from mlfbuild.core import Mistake, in_quotes, unknown
from mlfbuild.core.keys import NOT_EMPTY, Count, Duration, Keys, ProjectPath, Rule, not_blank, one_of
from mlfbuild.project import rules
from mlfbuild.project.problems import KeyPath
from mlfbuild.targets import DeviceMemoryKeys

if TYPE_CHECKING:
    from mlfbuild.project.document import Document

CYCLE_COUNTERS: Mapping[str, str] = {"dwt": "DWT", "pmu": "PMU", "systick": "SysTick"}
"""Counters of cycles in cores, with their names in messages."""
_ONLY_WITH: Mapping[str, tuple[str, ...]] = {
    "start": ("gdb",),
    "server": ("gdb",),
    "flash": ("serial", "labgrid", "run"),
    "uart": ("serial", "labgrid"),
    "baud": ("serial", "gdb", "pyocd", "labgrid"),
    "console": ("gdb", "pyocd"),
}
_ADDRESS = re.compile(r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:]+\])?:[0-9]{1,5}|/dev/\S+|COM[0-9]+")
_LAST_PORT = 65535


def _remote(value: str) -> Mistake | None:
    if _ADDRESS.fullmatch(value):
        port = value.rpartition(":")[2]
        # A serial port has no number behind a colon.
        if not port.isdecimal() or 0 < int(port) <= _LAST_PORT:
            return None
        hint = f"use a port from 1 to {_LAST_PORT}"
        return Mistake("invalid-gdb-address", reason=f"there is no port {port}", hint=hint)
    reason = f"{in_quotes(value)} is not the address of a GDB server"
    return Mistake("invalid-gdb-address", reason=reason, hint="write host:port, such as localhost:3333")


_Words = Annotated[tuple[Annotated[str, Rule(not_blank("a word"))], ...], NOT_EMPTY]
_SERVER = Rule(
    lambda value: None if value in targets.GDB_SERVERS else unknown("GDB server", value, targets.GDB_SERVERS),
    lambda: {"enum": list(targets.GDB_SERVERS)},
)
_Port = Annotated[str, Rule(not_blank("a serial port"))]


@dataclass(frozen=True)
class TransportKeys(Keys):
    """The connection to a device; a runner has exactly one of the keys."""

    qemu: Annotated[str, rules.BOARD] | None = None
    """Board that QEMU emulates, driven through its GDB stub like a device."""
    gdb: Annotated[str, Rule(_remote)] | None = None
    """GDB server to connect to: localhost:3333, or the serial port of a Black Magic Probe."""
    pyocd: Annotated[str, Rule(not_blank("a target type"))] | None = None
    """Target type of pyOCD, which accesses the probe without a server: stm32f446re. auto: that of the target's part."""
    serial: _Port | None = None
    """Serial port, or URL of pyserial, of firmware that contains mlf_serial.c: /dev/ttyACM0"""
    labgrid: Annotated[str, Rule(not_blank("a place"))] | None = None
    """Place of a labgrid coordinator, reached through its GDB server, or with `flash` through its serial port."""
    run: _Words = ()
    """Your command to run the image {elf}; its exit status is that of the firmware."""


TRANSPORTS = tuple(TransportKeys.fields())
_EACH_TRANSPORT = [{"required": [key]} for key in TRANSPORTS]
_NO_TRANSPORT: Mapping[str, Any] = {"not": {"anyOf": _EACH_TRANSPORT}}
"""Of a runner that gets ``gdb`` from its target's board or microcontroller."""


@dataclass(frozen=True)
class RunnerKeys(TransportKeys):
    """A device that runs firmware, reached by one of `qemu`, `gdb`, `pyocd`, `serial`, `labgrid` or `run`."""

    TITLE = "runner"
    SCHEMA: ClassVar[Mapping[str, Any]] = {
        "oneOf": [*_EACH_TRANSPORT, _NO_TRANSPORT],
        "dependentSchemas": {
            key: {"anyOf": [*({"required": [one]} for one in only), *([_NO_TRANSPORT] if "gdb" in only else [])]}
            for key, only in _ONLY_WITH.items()
        },
    }

    start: _Words = ()
    """With `gdb`: command that starts the server; mlfbuild stops it at the end. Default: that of `server` alone."""
    server: Annotated[str, _SERVER] | None = None
    """Kind of the GDB server, which decides how it resets the device. Alone, it stands for `gdb` and `start` of the
    target's part. Default: taken from `start`."""
    flash: _Words = ()
    """With `serial`, `labgrid` or `run`: your command to write the image {elf} to the device."""
    uart: ProjectPath | None = None
    """With `serial` or `labgrid`: your C file with mlf_serial_get and mlf_serial_put, for test firmware."""
    probe: Annotated[str, Rule(not_blank("a serial number"))] | None = None
    """Serial number of the probe, if several are connected; {probe} in `start`, `flash` and `run`."""
    baud: Count = 115_200
    """Bits per second of the serial port."""
    console: _Port | None = None
    """With `gdb` or `pyocd`: serial port, or URL of pyserial, whose output `run-firmware` shows; auto: the board's."""
    memory: DeviceMemoryKeys | None = None
    """Memories for test firmware. Default: those of the target's `mcu`."""
    counter: Annotated[str, one_of("counter", tuple(CYCLE_COUNTERS))] | None = None
    """Counter that `profile` reads. Default: dwt (M3, M4, M7, M33), pmu (M55, M85), systick (other cores)."""
    setup: ProjectPath | None = None
    """C file with `void mlf_board_setup(void)`: clocks, wait states and caches for test firmware. Default: as reset."""
    timeout: Duration | None = None
    """Longest time that one answer of the device may take: 30 s"""

    @property
    def transport(self) -> str:
        """The key that says how the device is reached: one of ``TRANSPORTS``.

        The reader of a project file has checked that there is exactly one; for keys that were made otherwise,
        ``StopIteration`` is a defect of the caller.
        """
        return next(key for key in TRANSPORTS if getattr(self, key))

    @property
    def address(self) -> str:
        """The value of that key: an address, a port, a board, a place, or the name of a program."""
        return self.run[0] if self.run else str(getattr(self, self.transport))

    @property
    def over_serial(self) -> bool:
        """Whether the firmware itself talks to mlfbuild over a serial line; otherwise a debugger accesses it.

        Such firmware contains ``mlf_serial.c`` and answers requests. A place of labgrid counts as serial if the runner
        has ``flash``.
        """
        return self.serial is not None or (self.labgrid is not None and bool(self.flash))


def check_runners(document: Document) -> None:
    """Add every mistake between the keys of runners to the problems of ``document``.

    These are: no key or several keys that say how the device is reached, and keys that belong to another way. Mistakes
    in single values are those of ``RunnerKeys``.
    """
    for name, target in document.entries("targets"):
        runner = target.get("runner")
        if isinstance(runner, dict):
            _check(document, ("targets", name, "runner"), runner)


def _check(document: Document, path: KeyPath, keys: Mapping[str, object]) -> None:
    transports = [key for key in TRANSPORTS if key in keys]
    if not transports:
        reason = "does not say how the device is reached"
        document.report(path, "runner-without-way", reason, f"add one of {', '.join(TRANSPORTS)}", at_key=True)
    elif len(transports) > 1:
        reason = f"has {' and '.join(transports)}"
        document.report(path, "runner-with-two-ways", reason, "keep one of them", at_key=True)
    for key, companions in _ONLY_WITH.items():
        if key in keys and transports and not {*companions} & {*transports}:
            reason = f"is only accepted together with {' or '.join(companions)}"
            document.add((*path, key), Mistake("misplaced-key", reason=reason, hint=f"remove {key}"), at_key=True)
