"""GDB servers of devices: find out which kind one is, by the project file, its program, its port or its answers.

The kinds are the table ``targets.GDB_SERVERS``. The tests run QEMU and pyOCD.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Sequence
from pathlib import PurePath

from mlfbuild.core import ConflictError, MlfError, ProcessFailedError, ToolNotFoundError, UsageError, listed
from mlfbuild.targets import GDB_SERVERS, GdbServer

_QUESTIONS = ("maintenance packet qqemu.sstepbits", "monitor version", "monitor echo [version]", "monitor help")
"""Commands whose answers show the kind of a server, without an effect on the device. Some versions of OpenOCD lose the
result of a command unless it is echoed; its help is the last question because it has thousands of lines."""
_UNKNOWN_COMMAND = re.compile(
    "(unknown|unrecognized|invalid|unsupported)( remote)? command|does not support this command|Supported Commands:",
    re.IGNORECASE,
)
# Messages of the C library that GDB prints: no server is there. Everything else is an answer of a server that does not
# work.
_NOT_THERE = re.compile(
    r"refused|cannot resolve|not known|no such (file|device)|no route|unreachable|timed out", re.IGNORECASE
)


def recognised(ask: Callable[[str], str]) -> GdbServer | None:
    """Return the kind of the server that ``ask`` reaches, ``None`` if its answers do not show it.

    ``ask`` runs a command of GDB's command line and returns what is printed, also if the server refuses it.
    """
    for question in _QUESTIONS:
        printed = ask(question)
        for server in GDB_SERVERS.values():
            if server.answer and re.search(server.answer, printed):
                return server
    return None


def is_unknown(printed: str) -> bool:
    """Return whether a server that ``printed`` this does not know the command; most servers print it as a success."""
    return _UNKNOWN_COMMAND.search(printed) is not None


def gdb_server(chosen: str | None, start: Sequence[str], address: str, place: str) -> GdbServer:
    """Return the kind of a GDB server: ``chosen`` if it is given, or by the program in ``start``, or by the port.

    ``gdb_server(None, (), "localhost:3333", place)`` is OpenOCD, whose default port this is; ``start`` decides before
    the port, because any program can be given any port.

    Raises ``UsageError``, with ``place`` as its place, if none of them shows the kind.
    """
    if chosen is not None:
        return GDB_SERVERS[chosen]
    program = PurePath(start[0].replace("\\", "/")).name.lower() if start else ""
    port = address.rpartition(":")[2]
    for server in GDB_SERVERS.values():
        if program and program.startswith(server.programs):
            return server
        if not program and port == str(server.port):
            return server
    # An address without a port is a device file such as /dev/ttyACM0. Only a Black Magic Probe has its GDB server
    # behind one.
    if not program and not port.isdecimal():
        return GDB_SERVERS["blackmagic"]
    reason = f"neither {program or address} shows which kind of GDB server it is, nor the key server"
    hint = f"add server: with one of {listed(list(GDB_SERVERS))}"
    raise UsageError("gdb-server-unknown", place=place, reason=reason, hint=hint)


def with_host(address: str) -> str:
    """Return ``address`` with the host that servers on this machine have if it has none.

    ``:3333`` becomes ``localhost:3333``; ``board.local:3333`` and the file ``/dev/ttyACM0`` stay as they are.
    """
    return f"localhost{address}" if address.startswith(":") else address


def unreachable(address: str, words: str, output: str, place: str, *, started: bool) -> MlfError:
    """Return the error of GDB, which printed ``words`` and ``output``, that it cannot connect to ``address``.

    It is ``ToolNotFoundError`` if no server is there and mlfbuild ``started`` none, otherwise ``ProcessFailedError``.
    """
    if not started and _NOT_THERE.search(words):
        return ToolNotFoundError(
            "gdb-server-not-running",
            place=place,
            reason=f"cannot connect to the GDB server {words}",
            hint="start the server, or add the key start with its command",
        )
    return ProcessFailedError(
        "gdb-server-failed",
        output,
        place=place,
        reason=f"GDB cannot connect to {address}: {words}",
        hint="check that the address is that of a GDB server, and that its board is connected",
    )


def check_port_is_free(address: str, place: str) -> None:
    """Raise ``ConflictError`` if another program listens at ``address``: GDB would connect to that one.

    ``place`` locates the runner in messages. Addresses of other machines and device files are not checked. The test
    listens and does not connect: a server that takes one client would end after it.
    """
    host, _, port = with_host(address).rpartition(":")
    if not port.isdecimal() or host not in {"localhost", "127.0.0.1", "[::1]"}:
        return
    try:
        # Listening is the test, not connecting: a connection would disturb the program that listens, and servers that
        # take one client end after it.
        socket.create_server(("127.0.0.1", int(port))).close()
    except OSError:
        raise ConflictError(
            "gdb-port-in-use",
            place=place,
            reason=f"another program uses the port {port}, which the server of start should listen on",
            hint="stop that program, or choose another port in gdb and start",
        ) from None
