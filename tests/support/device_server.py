"""GDB servers for tests of runners."""

import contextlib
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from support.processes import wait_for


def free_port() -> int:
    """Return a port on which no program listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def qemu(port: int, board: str = "mps2-an385") -> list[str]:
    """Return the command of an emulated board, halted, behind a GDB server at ``port``."""
    quiet = ["-display", "none", "-monitor", "none", "-serial", "none"]
    return ["qemu-system-arm", "-M", board, "-S", "-gdb", f"tcp:127.0.0.1:{port}", *quiet]


@contextlib.contextmanager
def device_server(port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server that mlfbuild has not started."""
    with subprocess.Popen(qemu(port)) as process:
        wait_for(lambda: f":{port:04X} 00000000:0000 0A" in Path("/proc/net/tcp").read_text())
        try:
            yield process
        finally:
            process.kill()
