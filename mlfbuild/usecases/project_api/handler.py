"""The methods of the Project API for one folder: a template without a project file, or a project.

The streams of bytes to a running firmware are standard input and output of a program, or a serial port.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mlfbuild.core import UsageError, end_group, pipe_of, running
from mlfbuild.jobs import Progress, Task, load, target_jobs
from mlfbuild.project import SOURCES, TEMPLATE_FILE, Project, source_suffix
from mlfbuild.runners import SerialPort, command_words
from mlfbuild.usecases.flash import flash_firmware
from mlfbuild.usecases.init import read_template
from mlfbuild.usecases.project_api import projects, rpc
from mlfbuild.usecases.run_firmware import ChosenImage, chosen_image
from mlfbuild.verify.emulator import emulator_command

# Bytes of one read or write, the usual capacity of a pipe on Linux.
_AT_ONCE = 1 << 16
_LOOK_SECONDS = 0.5
"""Time between two looks at whether the client is still there."""


class _Clock:
    """The time that is left for a request; it ends early if ``gone()`` says that the client has closed its pipe."""

    def __init__(self, seconds: float | None, gone: Callable[[], bool]) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds
        self._gone = gone

    def left(self) -> float:
        """Return the seconds until the next look, 0 at the end."""
        if self._gone():
            raise rpc.transport_closed()
        return _LOOK_SECONDS if self._end is None else min(max(0.0, self._end - time.monotonic()), _LOOK_SECONDS)

    def over(self) -> bool:
        """Return whether the time is over."""
        return self._end is not None and time.monotonic() >= self._end


class ProgramTransport:
    """A program that runs the firmware, such as QEMU; its standard streams are those of the firmware."""

    def __init__(self, words: Sequence[str], gone: Callable[[], bool]) -> None:
        """Start the program; raises ``ProcessFailedError``. It ends with this process, however that ends."""
        self._stack = contextlib.ExitStack()
        # A copy of standard error: the program writes there directly, and closing the copy leaves that of this process
        # open.
        errors = self._stack.enter_context(os.fdopen(os.dup(2), "wb"))
        start = running(words, stdin=subprocess.PIPE, stderr=errors, apart=True)
        self._process = self._stack.enter_context(start)
        self._in, self._out = (pipe_of(end).fileno() for end in (self._process.stdin, self._process.stdout))
        self._gone = gone
        if sys.platform != "win32":  # it has no server
            for descriptor in (self._in, self._out):
                # ``select`` promises room for a part only: a longer write would block, and neither the time limit nor
                # the look at the client would be heeded.
                os.set_blocking(descriptor, False)

    def read(self, size: int, seconds: float | None) -> bytes:
        """Return ``size`` bytes, or those that arrived within ``seconds`` if there are any; ``None`` waits forever.

        Raises ``RequestError``: ``IoTimeoutError`` if nothing has arrived, ``TransportClosedError`` if the firmware or
        the client is gone.
        """
        clock, data = _Clock(seconds, self._gone), b""
        while len(data) < size:
            ready, _, _ = select.select([self._out], [], [], clock.left())
            chunk = os.read(self._out, min(size - len(data), _AT_ONCE)) if ready else None
            if chunk == b"":
                # What arrived before the end is returned first; the next read reports the end.
                if not data:
                    raise rpc.transport_closed()
                break
            data += chunk or b""
            # Not while bytes arrive: those that are there when the time ends are still returned.
            if chunk is None and clock.over():
                break
        if size and not data:
            raise rpc.timed_out()
        return data

    def write(self, data: bytes, seconds: float | None) -> None:
        """Send all of ``data`` within ``seconds``; raises ``RequestError`` as ``read``, perhaps after a part."""
        clock, left = _Clock(seconds, self._gone), memoryview(data)
        while left:
            _, ready, _ = select.select([], [self._in], [], clock.left())
            if ready:
                try:
                    left = left[os.write(self._in, left[:_AT_ONCE]) :]
                except BrokenPipeError:
                    raise rpc.transport_closed() from None
            elif clock.over():
                raise rpc.timed_out()

    def close(self) -> None:
        """End the program and its children; it may be called twice."""
        end_group(self._process)
        # The program has ended, so closing its standard input may fail.
        with contextlib.suppress(BrokenPipeError):
            self._stack.close()


class SerialTransport:
    """A serial port, or URL of pyserial, on which the firmware of a device answers."""

    def __init__(self, port: str, baud: int, place: str, gone: Callable[[], bool]) -> None:
        """Open the port; raises what ``SerialPort`` raises."""
        self._port = SerialPort(port, baud, place)
        self._gone = gone
        self._arrived = b""

    def read(self, size: int, seconds: float | None) -> bytes:
        """Return what the device sends, as ``ProgramTransport.read``."""
        clock = _Clock(seconds, self._gone)
        while len(self._arrived) < size:
            clock.left()
            try:
                self._arrived += self._port.read()
            except OSError:
                raise rpc.transport_closed() from None
            if clock.over():
                break
        # A port returns what has arrived, which may be more than was asked for.
        data, self._arrived = self._arrived[:size], self._arrived[size:]
        if size and not data:
            raise rpc.timed_out()
        return data

    def write(self, data: bytes, seconds: float | None) -> None:
        """Send ``data``; the port has its own time limit."""
        del seconds
        try:
            self._port.write(data)
        except OSError:
            raise rpc.transport_closed() from None

    def close(self) -> None:
        """Close the port."""
        self._port.close()


Transport = ProgramTransport | SerialTransport
"""A byte stream that is open. Methods raise ``RequestError``: the transport's errors of the Project API."""
_PROTOCOL_VERSION = 1
_OLDEST = (0, 8)
"""The first release of TVM with the Project API."""
_TIMEOUTS = {
    "session_start_retry_timeout_sec": 2.0,
    "session_start_timeout_sec": 30.0,
    "session_established_timeout_sec": 300.0,
}
"""Seconds: a board that is emulated needs minutes for a large model."""
_LOG = logging.getLogger(__name__)
# The client chooses the size, and the reply is made in memory.
_LARGEST_READ = 1 << 24
_SECONDS = (int, float, type(None))


def serve_folder(folder: Path, read_fd: int, write_fd: int) -> None:
    """Serve the requests of the pipe ``read_fd`` for ``folder`` until the client closes it; then end the firmware.

    Raises ``UsageError`` on Windows, where TVM's client passes no pipes on.
    """
    gone = _hang_up(read_fd)
    with (
        os.fdopen(read_fd, encoding="utf-8", errors="replace") as requests,
        os.fdopen(write_fd, "w", encoding="utf-8") as replies,
        contextlib.closing(Handler(folder, gone)) as handler,
    ):
        rpc.Server(handler.methods()).serve(requests, replies)


class Handler:
    """The state of a server: the transport, if it is open."""

    def __init__(self, folder: Path, gone: Callable[[], bool]) -> None:
        self._file = folder / "mlfbuild.yml"
        self._gone = gone
        self._transport: Transport | None = None

    def methods(self) -> dict[str, tuple[dict[str, tuple[type, ...]], rpc.Method]]:
        """Return the methods by name, each with the names and types of its parameters."""
        options: dict[str, tuple[type, ...]] = {"options": (dict,)}
        paths = dict.fromkeys(("model_library_format_path", "standalone_crt_dir", "project_dir"), (str,))
        return {
            "server_info_query": ({"tvm_version": (str,)}, self._server_info),
            "generate_project": ({**paths, **options}, self._generate),
            "build": (options, self._build),
            "flash": (options, self._flash),
            "open_transport": (options, self._open),
            "close_transport": ({}, lambda _: self.close()),
            "read_transport": ({"n": (int,), "timeout_sec": _SECONDS}, self._read),
            "write_transport": ({"data": (str,), "timeout_sec": _SECONDS}, self._write),
        }

    def close(self) -> None:
        """Close the transport if it is open."""
        # Forgotten first, so that a second call after an error does not close it again.
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()

    def _server_info(self, given: rpc.Parameters) -> dict[str, Any]:
        version = re.match(r"(\d+)\.(\d+)", given["tvm_version"])
        if version is not None and (int(version[1]), int(version[2])) < _OLDEST:
            raise rpc.RequestError(rpc.SERVER_ERROR, "UnsupportedTVMVersionError")
        return {
            "protocol_version": _PROTOCOL_VERSION,
            "platform_name": "mlfbuild",
            "is_template": not self._file.is_file(),
            "model_library_format_path": str(_archive(load(self._file))) if self._file.is_file() else "",
            "project_options": projects.options_json((*projects.OPTIONS, *self._variables())),
        }

    def _generate(self, given: rpc.Parameters) -> None:
        variables = self._variables()
        options = projects.option_values(given["options"], (*projects.OPTIONS, *variables))
        if self._file.is_file():
            raise UsageError(
                "project-is-no-template",
                place=self._file.parent,
                reason="this folder is a project, not a template",
                hint="run `mlfbuild project-api DIR` with a new folder, and use that as the template",
            )
        archive, folder = Path(given["model_library_format_path"]), Path(given["project_dir"])
        kind, board = (None if options[name] is None else str(options[name]) for name in ("project_type", "board"))
        settings = {each.name: str(options[each.name]) for each in variables if options[each.name] is not None}
        projects.generate_project(archive, folder, kind, board, self._template, settings)

    @property
    def _template(self) -> Path | None:
        """The folder, if it is a user's template."""
        folder = self._file.parent
        return folder if (folder / TEMPLATE_FILE).is_file() and not self._file.is_file() else None

    def _variables(self) -> tuple[projects.ProjectOption, ...]:
        folder = self._template
        return () if folder is None else projects.template_options(read_template(folder, str(folder)).keys, folder)

    def _build(self, given: rpc.Parameters) -> None:
        self._image(given)

    def _flash(self, given: rpc.Parameters) -> None:
        """Write the image to the runner's device; an emulator and a command that runs images load it themselves."""
        image = self._image(given)
        runner = image.target.runner
        if runner is not None and not (runner.run and not runner.flash):
            flash_firmware(image)

    def _open(self, given: rpc.Parameters) -> dict[str, Any]:
        if self._transport is None:
            self._transport = _opened(self._image(given), self._gone)
        return {"timeouts": _TIMEOUTS}

    def _read(self, given: rpc.Parameters) -> dict[str, str]:
        size = min(max(given["n"], 0), _LARGEST_READ)
        return {"data": rpc.encoded(self._stream.read(size, given["timeout_sec"]))}

    def _write(self, given: rpc.Parameters) -> None:
        self._stream.write(rpc.decoded(given["data"]), given["timeout_sec"])

    @property
    def _stream(self) -> Transport:
        if self._transport is None:
            raise rpc.transport_closed()
        return self._transport

    def _image(self, given: rpc.Parameters) -> ChosenImage:
        """Build the firmware that the options name, unless it is up to date."""
        options = projects.option_values(given["options"])
        firmware, target = options["firmware"], options["target"]
        progress = _Steps() if options["verbose"] else Progress()
        targets = [] if target is None else [str(target)]
        name = None if firmware is None else str(firmware)
        return chosen_image(load(self._file), name, targets, jobs=os.cpu_count() or 1, progress=progress)


class _Steps(Progress):
    """Logs every finished step of a build."""

    def finish(self, task: Task, result: str) -> None:
        """Log the task and its result."""
        _LOG.info("%s: %s", task, result)


def _opened(image: ChosenImage, gone: Callable[[], bool]) -> Transport:
    """Start ``image`` where its target runs, or open the serial port of its device."""
    target = image.target
    runner = target.runner
    place = f"targets.{target.name}.runner"
    if runner is not None and (port := runner.console or runner.serial) is not None:
        return SerialTransport(port, runner.baud, place, gone)
    if runner is not None and runner.run:
        return ProgramTransport(command_words(runner.run, f"{place}.run", runner, image.elf), gone)
    if runner is None and target.board is not None:
        return ProgramTransport(emulator_command(image.elf, target.board), gone)
    if runner is None and target.toolchain is None:
        return ProgramTransport([str(image.elf)], gone)
    raise UsageError(
        "transport-unknown",
        place=f"targets.{target.name}" if runner is None else place,
        reason="there is no connection between the host and the firmware",
        hint="add a board that QEMU emulates, a runner with run:, or one with console: and a serial port",
    )


def _archive(project: Project) -> Path:
    """Return the archive of the project's first model: the source itself, or what a build writes."""
    model = next(iter(project.models.values()))
    if SOURCES.get(source_suffix(model.source.name)) == "archive":
        return (model.folder / model.source).resolve()
    jobs = [job for target in target_jobs(project, [], [model.name]) for job in target.models]
    return jobs[0].archive.resolve()


def _hang_up(descriptor: int) -> Callable[[], bool]:
    """Return a function that returns whether the other end of the pipe ``descriptor`` is closed."""
    if sys.platform == "win32":
        reason = "the server needs pipes of POSIX"
        raise UsageError("pipes-missing", place="--read-fd", reason=reason, hint="use WSL, or a Linux machine")
    else:  # noqa: RET506 - mypy checks one branch per system
        poll = select.poll()
        poll.register(descriptor, 0)  # POLLHUP is always reported
        return lambda: bool(poll.poll(0))
