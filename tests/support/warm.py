"""Run ``python -m mlfbuild`` and ``python -m SCons`` in processes that need not import them first.

Tests start a thousand such processes, and half of the time of each is for imports. So each process of pytest has a
server, which forks a process for each command. It imports what these processes had to import, for the next ones, and
computes what follows from mlfbuild's own files alone, which no test changes: tests that do change a copy of them.
These processes see one core: two workers take a second to start, and the models of tests less to compile. Tests of
workers pass ``-j``.
Everything else is as in a new process: arguments, folder, environment, standard streams, exit status.

A command is started by itself if ``MLFBUILD_COLD`` is set (``make sweep`` does that), or if its environment differs in
what Python reads when it starts. Tests that send signals, or that measure a start, call ``subprocess`` themselves.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import io
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
from pathlib import Path
from typing import IO, Any

_REPOSITORY = Path(__file__).parents[2]
_LENGTH = 4
"""Bytes of the length of a request."""
_SECONDS = 600


def _read_at_start(environment: Any) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(("PYTHON", "LC_", "LANG")) and name != "PYTHONUNBUFFERED" and value
    }


_AT_START = _read_at_start(os.environ)
"""What a server was started with; a test may have changed the environment since then."""


def run(
    module: str,
    *arguments: object,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    merged: bool = False,
    check: bool = False,
    status: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m module arguments`` and return status and outputs; ``merged`` puts stderr into stdout.

    If ``status`` is given, check that the exit status is this.
    """
    environment = dict(os.environ if env is None else env)
    words = [module, *map(str, arguments)]
    command = [sys.executable, "-m", *words]
    with tempfile.TemporaryFile() as out, contextlib.ExitStack() as stack:
        err = out if merged else stack.enter_context(tempfile.TemporaryFile())
        if _cold(environment):
            pipes = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err}
            started = subprocess.run(command, cwd=cwd, env=environment, timeout=_SECONDS, check=False, **pipes)
            code = started.returncode
        else:
            with Path(os.devnull).open() as nothing, socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(_SECONDS)
                connection.connect(_server())
                files = [nothing.fileno(), out.fileno(), err.fileno()]
                _send(connection, [str(Path(cwd or ".").absolute()), words, environment], files)
                code = int(connection.recv(16))
        texts = ["" if file is None else _text(file) for file in (out, None if merged else err)]
    done = subprocess.CompletedProcess(command, code, *texts)
    if check:
        done.check_returncode()
    assert status in {None, code}, done
    return done


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return io.TextIOWrapper(io.BytesIO(file.read())).read()


def _cold(environment: dict[str, str]) -> bool:
    if "MLFBUILD_COLD" in os.environ or not hasattr(os, "pidfd_open"):
        return True
    return _read_at_start(environment) != _AT_START


@functools.cache
def _server() -> str:
    """Start the server, once in this process, and return the path of its socket."""
    place = f"{_folder().name}/socket"
    server = subprocess.Popen(
        [sys.executable, __file__, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "OPENBLAS_NUM_THREADS": "1", **_AT_START},
    )  # fmt: skip
    assert server.stdin is not None and server.stdout is not None
    assert server.stdout.readline() == b"ready\n"

    atexit.register(server.communicate)  # closes its stdin
    return place


@functools.cache
def command(module: str) -> Path:
    """Return the path of a program that runs ``python -m module``, for build systems and shells."""
    if "MLFBUILD_COLD" in os.environ or not hasattr(os, "pidfd_open"):
        text = f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n'
    else:
        text = _CLIENT.format(python=sys.executable, place=_server(), module=module, start=_AT_START)
    program = Path(_folder().name) / module.lower()
    program.write_text(text)
    program.chmod(0o755)
    return program


def programs() -> Path:
    """Return a folder with the commands ``mlfbuild`` and ``scons``, for ``PATH``."""
    command("mlfbuild")
    return command("SCons").parent


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="warm-")


_CLIENT = """\
#!{python} -IS
import marshal, posix, sys
from _socket import AF_UNIX, SCM_RIGHTS, SOL_SOCKET, socket

env = {{name.decode(): value.decode("utf-8", "surrogateescape") for name, value in posix.environ.items()}}
words = [{module!r}, *sys.argv[1:]]
read = {{
    name: value
    for name, value in env.items()
    if name.startswith(("PYTHON", "LC_", "LANG")) and name != "PYTHONUNBUFFERED" and value
}}
if read != {start!r}:
    posix.execv(sys.executable, [sys.executable, "-m", *words])
connection = socket(AF_UNIX)
connection.connect({place!r})
text = marshal.dumps([posix.getcwd(), words, env])
files = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
connection.sendmsg([len(text).to_bytes(4, "big")], [(SOL_SOCKET, SCM_RIGHTS, files)])
connection.sendall(text)
status = int(connection.recv(16))
if status < 0:
    posix.kill(posix.getpid(), -status)
posix._exit(status)
"""


def _send(connection: socket.socket, request: list[object], files: list[int]) -> None:
    import marshal

    text = marshal.dumps(request)
    socket.send_fds(connection, [len(text).to_bytes(_LENGTH, "big")], files)
    connection.sendall(text)


class _Server:
    """Fork a process for each request; ``serve`` returns only in such a process, with its request."""

    def __init__(self, place: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(place)
        self._listener.listen(64)
        self._running: dict[int, tuple[int, socket.socket, int]] = {}
        """By the pidfd of a running process: its id, the connection to its client, its pipe of imported modules."""
        self._clients: dict[socket.socket, int] = {}
        """The process of each client that waits."""

    def serve(self) -> list[Any]:
        while True:
            ready, _, _ = select.select([sys.stdin, self._listener, *self._running, *self._clients], [], [])
            for one in ready:
                if one is sys.stdin:  # the process of pytest ended
                    sys.exit()
                if one is self._listener:
                    request = self._fork(self._listener.accept()[0])
                    if request is not None:
                        return request
                elif one in self._running:
                    self._ended(one)
                elif one in self._clients:  # was killed
                    os.kill(self._clients.pop(one), signal.SIGKILL)

    def _fork(self, connection: socket.socket) -> list[Any] | None:
        """Return the request in the new process, and ``None`` in this one."""
        import marshal

        first, files, _, _ = socket.recv_fds(connection, _LENGTH, 3)
        length, text = int.from_bytes(first, "big"), b""
        while len(text) < length:
            text += connection.recv(length - len(text))
        names, end = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(names)
            for number, file in enumerate(files):
                os.dup2(file, number)
            self._listener.close()
            connection.detach()
            return [*marshal.loads(text), end]
        os.close(end)
        for file in files:
            os.close(file)
        self._running[os.pidfd_open(process)] = (process, connection, names)
        self._clients[connection] = process
        return None

    def _ended(self, descriptor: int) -> None:
        process, connection, names = self._running.pop(descriptor)
        self._clients.pop(connection, None)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        with os.fdopen(names, "rb") as pipe:
            imported = pipe.read().decode().split()
        os.close(descriptor)
        with connection, contextlib.suppress(BrokenPipeError):
            connection.send(str(status).encode())
        for name in imported:
            with contextlib.suppress(Exception):
                _prepare(importlib.import_module(name))
        gc.freeze()  # a collection in a new process would copy the pages of all these objects


def _prepare(module: Any) -> None:
    """Compute what ``module`` keeps for the life of a process: half of the time of a command that has nothing to do."""
    if module.__name__ == "mlfbuild.core.package":
        module.package_fingerprint()
    elif module.__name__ == "mlfbuild.jobs.tree.build_text":
        environment = module._environment()
        for template in environment.list_templates():
            environment.get_template(template)
    elif module.__name__ == "mlfbuild.project.validate":
        module._adapter(sys.modules["mlfbuild.project.specification"].Project)


def _imported(before: set[str]) -> list[str]:
    """Return the modules of Python, its packages and mlfbuild that this process imported; not those of a test."""
    folders = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), str(_REPOSITORY / "mlfbuild"))
    return [
        name
        for name, module in list(sys.modules.items())
        if name not in before
        and name != "__main__"
        and str(getattr(getattr(module, "__spec__", None), "origin", "")).startswith(folders)
    ]


def _main(place: str) -> None:
    del sys.path[0]  # this folder
    gc.set_threshold(200_000, 100, 100)  # as in tests/conftest.py
    server = _Server(place)
    print("ready", flush=True)
    folder, (module, *arguments), environment, end = server.serve()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path.insert(0, folder)
    sys.argv[:] = [module, *arguments]
    _open_streams(unbuffered="PYTHONUNBUFFERED" in environment)
    os.cpu_count = lambda: 1
    before = set(sys.modules)
    status = _status(module)
    threading._shutdown()
    atexit._run_exitfuncs()
    os.write(end, " ".join(_imported(before)).encode()[: 1 << 16])
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)  # it would take a third of the time to destroy all objects, which the server keeps


def _open_streams(*, unbuffered: bool) -> None:
    """Open stdout and stderr as Python does when it starts."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        old = getattr(sys, name)
        file = os.fdopen(number, "wb", 0 if unbuffered else -1, closefd=False)
        by_line = number == 2 or file.isatty()
        stream = io.TextIOWrapper(file, old.encoding, old.errors, line_buffering=by_line, write_through=unbuffered)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _status(module: str) -> int:
    """Run ``python -m module`` and return its exit status."""
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return int(end.code or 0) & 0xFF
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException:  # noqa: BLE001 - as Python does
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


if __name__ == "__main__":
    _main(sys.argv[1])
