"""GDB servers: how each resets a device, and how GDB attaches to it.

Sources, in the order of the table: OpenOCD's user guide ("GDB and OpenOCD", "Reset Command"); pyOCD's command
reference; SEGGER's wiki ("J-Link GDB Server", remote commands) and Zephyr's runner jlink.py; ST's user manual UM2576,
and gdb-server.c of st-util, where reset halts, too; gdb_server/target/monitor.rs of probe-rs; gdb_main.c and command.c
of Black Magic Debug, where reset ends the session and kill resets the device; QEMU's monitor. The tests run QEMU and
pyOCD.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from types import MappingProxyType

from mlfbuild.core import UsageError, listed


@dataclass(frozen=True)
class GdbServer:
    """A kind of GDB server; commands are those of GDB's command line."""

    name: str
    """The value of ``runner.server``."""
    halt: tuple[str, ...]
    """Commands that reset the device and halt it before its first instruction."""
    release: tuple[str, ...]
    """Commands that reset the device and let it run, before GDB detaches."""
    port: int | None
    """The port that it listens on by default."""
    programs: tuple[str, ...] = ()
    """Its programs, by the begin of their names in lower case."""
    attach: tuple[str, ...] = ()
    """Commands after GDB has connected."""
    mode: str = "extended-remote"


_BY_REGISTERS = ("set {unsigned int}0xe000edfc = 0x01000401", "set {unsigned int}0xe000ed0c = 0x05fa0004")
"""Halt the core after a reset (VC_CORERESET in DEMCR, beside what Black Magic Debug sets), and reset it (SYSRESETREQ in
AIRCR)."""
_RESET_HALT, _RESET, _GO = "monitor reset halt", "monitor reset", "monitor go"
GDB_SERVERS_BY_NAME: Mapping[str, GdbServer] = MappingProxyType(
    {
        server.name: server
        for server in (
            GdbServer("openocd", (_RESET_HALT,), ("monitor reset run",), 3333, ("openocd",)),
            GdbServer("pyocd", (_RESET_HALT,), (_RESET,), None, ("pyocd",)),
            GdbServer("jlink", (_RESET,), (_RESET, _GO), 2331, ("jlink",), mode="remote"),
            GdbServer("stlink", (_RESET,), (_RESET,), 61234, ("st-link", "st-util"), mode="remote"),
            GdbServer("probe-rs", (_RESET_HALT,), (_RESET,), 1337, ("probe-rs",)),
            GdbServer("blackmagic", _BY_REGISTERS, ("kill",), None, ("blackmagic",), ("monitor swdp_scan", "attach 1")),
            GdbServer("qemu", ("monitor system_reset",), ("monitor system_reset",), 1234, ("qemu",), mode="remote"),
        )
    }
)
"""Every server by its name in the project file."""


def gdb_server(chosen: str | None, start: Sequence[str], address: str, place: str) -> GdbServer:
    """Return the kind of the server: the one that is ``chosen``, or by the program in ``start``, or by its port."""
    if chosen is not None:
        return GDB_SERVERS_BY_NAME[chosen]
    program = PurePath(start[0].replace("\\", "/")).name.lower() if start else ""
    port = address.rpartition(":")[2]
    for server in GDB_SERVERS_BY_NAME.values():
        if program and program.startswith(server.programs):
            return server
        if not program and port == str(server.port):
            return server
    if not program and not port.isdecimal():
        return GDB_SERVERS_BY_NAME["blackmagic"]
    raise UsageError(
        "gdb-server-unknown",
        place=place,
        reason=f"neither {program or address} shows which kind of GDB server it is, nor the key server",
        hint=f"add server: with one of {listed(list(GDB_SERVERS_BY_NAME))}",
    )
