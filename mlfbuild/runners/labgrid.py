"""A place of a labgrid coordinator: acquired, reached through what it offers, and released.

    runner: {labgrid: nucleo}  ->  acquire  ->  {gdb: "farm:3333", console: "socket://farm:4001"}  ->  release

A place names its GDB server in the tag ``gdb``: ``labgrid-client -p nucleo set-tags gdb=farm:3333``, or only ``:3333``
if the place has a NetworkService, whose address is used. A NetworkSerialPort is the console of such a place. If the
project file has a command ``flash``, the NetworkSerialPort is the way itself, for firmware with mlf_serial.c.

The coordinator is that of labgrid's own tools: the environment variable ``LG_COORDINATOR``, or this machine. A place
that the same user has acquired on this machine before is used and stays acquired.

It does not switch power, and it transfers no files: the exporter runs the GDB server.
"""

from __future__ import annotations

import getpass
import logging
import os
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mlfbuild.core import ConflictError, ProcessFailedError, ToolNotFoundError, UsageError, quoted, require_extra, run
from mlfbuild.project import RunnerKeys

# Default of labgrid's own tools.
_COORDINATOR = "127.0.0.1:20408"
# For labgrid-client, which waits for the coordinator and for exporters.
_SECONDS = 30.0


@dataclass(frozen=True)
class LabgridPlace:
    """A place as the coordinator describes it."""

    name: str
    tags: Mapping[str, str]
    acquired: str | None
    """``host/user`` that has acquired it."""
    resources: Mapping[str, Mapping[str, Any]]
    """Parameters of the acquired resources by their class: ``NetworkSerialPort`` -> ``host``, ``port``, ``speed``."""


@contextmanager
def acquired(keys: RunnerKeys, where: str) -> Iterator[RunnerKeys]:
    """Acquire the place ``keys.labgrid`` for the block, and give the keys that reach its device.

    The given keys have no ``labgrid`` but ``serial`` or ``gdb``, with the console of the place. A place that the same
    user has acquired before stays acquired at the end; any other is released. ``where`` is the place for messages.

    Raises ``ToolNotFoundError`` without labgrid or a coordinator, ``UsageError`` if there is no such place or it offers
    no way to its device, ``ConflictError`` if someone else has acquired it, and ``ProcessFailedError`` if labgrid
    fails.
    """
    require_extra("labgrid", where, "a place of labgrid")
    place = _place(keys.address, where)
    # Someone who has acquired the place for a session of work keeps it: releasing it here would give it away under
    # their hands.
    ours = place.acquired == _own_name()
    if place.acquired and not ours:
        raise ConflictError(
            "place-acquired",
            place=where,
            reason=f"the place {quoted(place.name)} is acquired by {place.acquired}",
            hint="wait until it is released, or choose another place",
        )
    if not ours:
        _client(place.name, "acquire", where)
    try:
        # Asked again after acquiring: the coordinator lists resources only then.
        yield _reached(keys, _place(place.name, where), where)
    finally:
        if not ours:
            _client(place.name, "release", where)


def _own_name() -> str:
    """Return the name of this client for the coordinator, as labgrid's tools choose it."""
    return f"{os.environ.get('LG_HOSTNAME', socket.gethostname())}/{os.environ.get('LG_USERNAME', getpass.getuser())}"


def _address() -> str:
    return os.environ.get("LG_COORDINATOR") or _COORDINATOR


def _place(name: str, where: str) -> LabgridPlace:
    """Return what the coordinator knows about the place ``name``."""
    from labgrid.remote.client import Error, start_session

    logging.disable()  # labgrid logs what the error says
    try:
        session = start_session(_address())
    except Error:
        raise ToolNotFoundError(
            "no-labgrid-coordinator",
            place=where,
            reason=f"no coordinator of labgrid answers at {_address()}",
            hint="start it with labgrid-coordinator, or set LG_COORDINATOR to its address",
        ) from None
    finally:
        logging.disable(logging.NOTSET)
    loop = session.loop
    try:
        found = session.places.get(name)
        if found is None:
            known = ", ".join(sorted(session.places)) or "none"
            raise UsageError(
                "unknown-labgrid-place",
                place=where,
                reason=f"the coordinator {_address()} has no place {quoted(name)}",
                hint=f"use one of its places ({known}), or make it with labgrid-client",
            )
        resources = {}
        # A place has resources only while it is acquired, and those of a place that someone else has are not used.
        if found.acquired == _own_name():
            resources = {kind: dict(entry.params) for (_, kind), entry in session.get_target_resources(found).items()}
        return LabgridPlace(name, dict(found.tags), found.acquired, resources)
    except Error as error:
        raise ProcessFailedError("labgrid-failed", place=where, reason=str(error), hint="look at the place") from None
    finally:
        loop.run_until_complete(session.stop())
        loop.run_until_complete(session.close())


def _client(place: str, verb: str, where: str) -> None:
    """Run ``labgrid-client -p place verb``; it checks what the coordinator does not: matches and reservations."""
    # The program of the same environment first: another version in PATH may speak another protocol with the
    # coordinator.
    beside = Path(sys.executable).with_name("labgrid-client")
    program = str(beside) if beside.exists() else shutil.which("labgrid-client")
    if program is None:
        hint = "install labgrid with its programs"
        raise ToolNotFoundError("tool-not-found", place=where, reason="labgrid-client was not found", hint=hint)
    try:
        run([program, "-x", _address(), "-p", place, verb], timeout=_SECONDS)
    except ProcessFailedError as error:
        if "already acquired" in error.output:
            reason = error.output.strip().splitlines()[-1].removeprefix("labgrid-client: Error: ")
            hint = "wait until it is released, or choose another place"
            raise ConflictError("place-acquired", place=where, reason=reason, hint=hint) from None
        raise


def _reached(keys: RunnerKeys, place: LabgridPlace, where: str) -> RunnerKeys:
    """Return keys with the way to the device that ``place`` offers."""
    port = _serial_url(place)
    if keys.over_serial and port is not None:
        baud = _parameters(place, "NetworkSerialPort").get("speed", keys.baud)
        return replace(keys, labgrid=None, serial=port, baud=baud)
    remote = place.tags.get("gdb")
    if keys.over_serial or remote is None:
        missing = "NetworkSerialPort" if keys.over_serial else "tag gdb"
        raise UsageError(
            "labgrid-place-without-way",
            place=where,
            reason=f"the place {quoted(place.name)} has no {missing}",
            hint="export its serial port"
            if keys.over_serial
            else f"name its GDB server: labgrid-client -p {place.name} set-tags gdb=HOST:PORT",
        )
    host = _parameters(place, "NetworkService").get("address", "localhost")
    remote = f"{host}{remote}" if remote.startswith(":") else f"{host}:{remote}" if remote.isdigit() else remote
    server = keys.server or place.tags.get("gdb-server")
    return replace(keys, labgrid=None, gdb=remote, server=server, console=port)


def _parameters(place: LabgridPlace, kind: str) -> Mapping[str, Any]:
    return place.resources.get(kind, {})


def _serial_url(place: LabgridPlace) -> str | None:
    """Return the URL of the place's serial port for pyserial."""
    port = _parameters(place, "NetworkSerialPort")
    if not port:
        return None
    scheme = "socket" if port.get("protocol") == "raw" else "rfc2217"
    return f"{scheme}://{port['host']}:{port['port']}"
