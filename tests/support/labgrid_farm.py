"""A board farm on loopback: labgrid's coordinator and an exporter, with places of which a test decides."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.processes import wait_for


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


@dataclass(frozen=True)
class Farm:
    """A running coordinator with an exporter, which offers the group ``desk``."""

    address: str
    serial_port: int
    """TCP port of the NetworkSerialPort, at which nothing listens yet."""
    folder: Path

    def client(self, *words: str, user: str = "tester") -> str:
        """Run ``labgrid-client`` as ``user``; raises ``subprocess.CalledProcessError``."""
        command = [program("labgrid-client"), "-x", self.address, *words]
        env = {**os.environ, "LG_USERNAME": user}
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout

    def make_place(self, name: str, *tags: str, group: str = "desk") -> None:
        self.client("-p", name, "create")
        self.client("-p", name, "add-match", f"farm/{group}/*")
        if tags:
            self.client("-p", name, "set-tags", *tags)

    def holder(self, name: str) -> str | None:
        """Return the host and user that have acquired the place ``name``."""
        (line,) = [line for line in self.client("-p", name, "show").splitlines() if line.startswith("  acquired:")]
        words = line.split(":", 1)[1].strip()
        return None if words == "None" else words


@contextmanager
def farm(folder: Path) -> Iterator[Farm]:
    """Start a coordinator and an exporter in ``folder``, where the coordinator keeps its places."""
    address, serial_port = f"127.0.0.1:{free_port()}", free_port()
    config = folder / "exporter.yaml"
    service = "{address: 127.0.0.1, username: root}"
    port = f"{{host: 127.0.0.1, port: {serial_port}, speed: 115200, protocol: raw}}"
    config.write_text(
        f"desk:\n  NetworkSerialPort: {port}\n  NetworkService: {service}\nbare:\n  NetworkService: {service}\n"
    )
    commands = [
        [program("labgrid-coordinator"), "-l", address],
        [program("labgrid-exporter"), "-c", address, "--name", "farm", str(config)],
    ]
    processes = []
    try:
        for command, ready in zip(commands, ("Coordinator ready", "connected to coordinator"), strict=True):
            log = folder / f"{Path(command[0]).name}.log"
            with log.open("wb") as output:
                processes.append(subprocess.Popen(command, cwd=folder, stdout=output, stderr=output))
            wait_for(lambda log=log, ready=ready: ready in log.read_text())  # type: ignore[misc]  # bound now
        yield Farm(address, serial_port, folder)
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()
