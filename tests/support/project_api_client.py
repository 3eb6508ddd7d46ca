"""A client of the Project API, which starts the server in a folder as TVM does, and its errors as exceptions."""

import base64
import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mlfbuild.usecases.project_api.handler import Handler
from mlfbuild.usecases.project_api.rpc import Server

SECONDS = 60


class ServerError(Exception):
    """The ``error`` of a reply."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(error["message"])
        self.code, self.message, self.data = error["code"], error["message"], error["data"]


class Caller:
    """Sends requests, and waits for the reply of each."""

    _next = 0

    def send_line(self, line: str) -> Any:
        """Send one line, and return the reply."""
        raise NotImplementedError

    def call(self, method: str, **params: Any) -> Any:
        """Call a method; raises ``ServerError``."""
        self._next += 1
        request = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        reply = self.send_line(json.dumps(request))
        assert (reply["jsonrpc"], reply["id"]) == ("2.0", self._next)
        if "error" in reply:
            raise ServerError(reply["error"])
        return reply["result"]

    def read(self, size: int, seconds: float | None = SECONDS) -> bytes:
        return base64.b85decode(self.call("read_transport", n=size, timeout_sec=seconds)["data"])

    def write(self, data: bytes) -> None:
        self.call("write_transport", data=base64.b85encode(data).decode(), timeout_sec=SECONDS)


class LocalClient(Caller):
    """A server in this process."""

    def __init__(self, folder: Path) -> None:
        self._handler = Handler(folder, lambda: False)
        self.close = self._handler.close

    def send_line(self, line: str) -> Any:
        replies = io.StringIO()
        Server(self._handler.methods()).serve(io.StringIO(f"{line}\n"), replies)
        return json.loads(replies.getvalue())


class Client(Caller):
    """A server in a process of its own."""

    def __init__(self, process: subprocess.Popen[bytes], read_fd: int, write_fd: int) -> None:
        self.process = process
        self._replies = os.fdopen(read_fd)
        self._requests = os.fdopen(write_fd, "w")

    def send_line(self, line: str) -> Any:
        self.post(line)
        return json.loads(self._replies.readline())

    def post(self, line: str) -> None:
        """Send one line without waiting for a reply."""
        self._requests.write(f"{line}\n")
        self._requests.flush()

    def close(self) -> None:
        """Close both pipes, and wait for the end of the server."""
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()
        self._replies.close()
        self.process.wait(SECONDS)


@contextlib.contextmanager
def project_api(
    folder: Path, *, env: Mapping[str, str] | None = None, python: str = sys.executable
) -> Iterator[Client]:
    """Start the server of ``folder`` for the block."""
    server_read, client_write = os.pipe()
    client_read, server_write = os.pipe()
    words = [python, "microtvm_api_server.py", "--read-fd", str(server_read), "--write-fd", str(server_write)]
    process = subprocess.Popen(words, pass_fds=(server_read, server_write), cwd=folder, env=env)
    os.close(server_read)
    os.close(server_write)
    client = Client(process, client_read, client_write)
    try:
        yield client
    finally:
        client.close()
