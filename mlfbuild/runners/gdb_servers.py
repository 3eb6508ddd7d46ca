"""GDB servers: how each resets a device, how GDB attaches to it, and how its answers differ from those of the others.

Sources, in the order of the table: OpenOCD's user guide ("GDB and OpenOCD", "Reset Command"); pyOCD's command
reference; SEGGER's wiki ("J-Link GDB Server", remote commands) and Zephyr's runner jlink.py; ST's user manual UM2576,
and gdb-server.c of st-util, where reset halts, too; gdb_server/target/monitor.rs of probe-rs; gdb_main.c and command.c
of Black Magic Debug, where reset ends the session and kill resets the device; QEMU's monitor. The tests run QEMU and
pyOCD.

Answers are from the same sources: OpenOCD and Black Magic Debug print their names at ``monitor version``, pyOCD and
probe-rs have no such command and refuse it in words of their own, and J-Link begins its help with its name. Only QEMU
knows the packet qqemu.sstepbits. ST's servers refuse all questions, so they are not recognised.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from types import MappingProxyType

from mlfbuild.core import ConflictError, UsageError, listed


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
    answer: str = ""
    """Regular expression for what only this server answers to one of ``_QUESTIONS``; empty if nothing is known."""


_BY_REGISTERS = ("set {unsigned int}0xe000edfc = 0x01000401", "set {unsigned int}0xe000ed0c = 0x05fa0004")
"""Halt the core after a reset (VC_CORERESET in DEMCR, beside what Black Magic Debug sets), and reset it (SYSRESETREQ in
AIRCR)."""
_RESET_HALT, _RESET, _GO = "monitor reset halt", "monitor reset", "monitor go"
GDB_SERVERS_BY_NAME: Mapping[str, GdbServer] = MappingProxyType(
    {
        server.name: server
        for server in (
            GdbServer("openocd", (_RESET_HALT,), ("monitor reset run",), 3333, ("openocd",), answer="Open On-Chip"),
            GdbServer("pyocd", (_RESET_HALT,), (_RESET,), None, ("pyocd",), answer="unrecognized command 'version'"),
            GdbServer("jlink", (_RESET,), (_RESET, _GO), 2331, ("jlink",), mode="remote", answer="J-Link GDB Server"),
            GdbServer("stlink", (_RESET,), (_RESET,), 61234, ("st-link", "st-util"), mode="remote"),
            GdbServer("probe-rs", (_RESET_HALT,), (_RESET,), 1337, ("probe-rs",), answer="info - print session"),
            GdbServer(
                "blackmagic", _BY_REGISTERS, ("kill",), None, ("blackmagic",), ("monitor swdp_scan", "attach 1"),
                answer="Black Magic",
            ),
            GdbServer(
                "qemu", ("monitor system_reset",), ("monitor system_reset",), 1234, ("qemu",), mode="remote",
                answer="ENABLE=",
            ),
        )
    }
)  # fmt: skip
"""Every server by its name in the project file."""

_QUESTIONS = ("maintenance packet qqemu.sstepbits", "monitor version", "monitor echo [version]", "monitor help")
"""Commands whose answers show the kind of a server, without an effect on the device. Some versions of OpenOCD lose the
result of a command unless it is echoed; its help is the last question because it has thousands of lines."""
_UNKNOWN_COMMAND = re.compile(
    "(unknown|unrecognized|invalid|unsupported)( remote)? command|does not support this command|Supported Commands:",
    re.IGNORECASE,
)


def recognised(ask: Callable[[str], str]) -> GdbServer | None:
    """Return the kind of the server that ``ask`` reaches, ``None`` if its answers do not show it.

    ``ask`` runs a command of GDB's command line and returns what is printed, also if the server refuses it.
    """
    for question in _QUESTIONS:
        printed = ask(question)
        for server in GDB_SERVERS_BY_NAME.values():
            if server.answer and re.search(server.answer, printed):
                return server
    return None


def is_unknown(printed: str) -> bool:
    """Return whether a server that ``printed`` this does not know the command; most servers print it as a success."""
    return _UNKNOWN_COMMAND.search(printed) is not None


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


def with_host(address: str) -> str:
    """Return ``address`` with the host that servers on this machine have if it has none."""
    return f"localhost{address}" if address.startswith(":") else address


def check_port_is_free(address: str, place: str) -> None:
    """Raise ``ConflictError`` if another program listens at ``address``: GDB would connect to that one."""
    host, _, port = with_host(address).rpartition(":")
    if not port.isdecimal() or host not in {"localhost", "127.0.0.1", "[::1]"}:
        return
    try:
        socket.create_server(("127.0.0.1", int(port))).close()
    except OSError:
        raise ConflictError(
            "gdb-port-in-use",
            place=place,
            reason=f"another program uses the port {port}, which the server of start should listen on",
            hint="stop that program, or choose another port in gdb and start",
        ) from None
