"""GDB servers: how each resets a device, and how GDB attaches to it.

Sources, in the order of the table: OpenOCD's user guide ("Reset Command", "GDB and OpenOCD"); pyOCD's documentation
("Command reference"); SEGGER's wiki ("J-Link GDB Server", "Supported remote (monitor) commands"); ST's user manual
UM2576 ("ST-LINK GDB server"); the source of probe-rs (gdb_server/target/monitor.rs); the documentation of Black Magic
Debug ("GDB commands"); QEMU's documentation ("GDB usage", "QEMU monitor").
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
            GdbServer("blackmagic", (_RESET,), (_RESET,), None, ("blackmagic",), ("monitor swdp_scan", "attach 1")),
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
