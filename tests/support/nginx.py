"""A real nginx on a port of this machine: a process of this user with its own folder, which ends with the test."""

import http.client
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support.processes import wait_for

_MAIN = """\
daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events {{}}
http {{
    log_format requests '$request_method $uri $status $connection "$http_authorization"';
    access_log access.log requests;
    client_body_temp_path body;
    proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
{config}
}}
"""


_LAST = "/last-request"


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


@dataclass
class Nginx:
    """A server whose configuration has ``listen 127.0.0.1:{port}``, and ``{tls}`` for a second port."""

    program: str
    folder: Path
    config: str
    port: int = field(default_factory=free_port)
    tls: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        config = self.config.replace("{port}", str(self.port)).replace("{tls}", str(self.tls))
        (self.folder / "nginx.conf").write_text(_MAIN.format(config=config.replace("{folder}", str(self.folder))))
        command = [self.program, "-p", self.folder, "-c", "nginx.conf", "-e", "error.log"]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        wait_for(self._answers)

    def _answers(self) -> bool:
        assert self.process is not None and self.process.poll() is None, (self.folder / "error.log").read_text()
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def requests(self) -> list[list[str]]:
        """Return method, path, status, connection and authorization of all requests so far, and forget them."""
        log = self.folder / "access.log"
        # nginx writes the line of a request after its answer, so the last one may be missing until the next request.
        client = http.client.HTTPConnection("127.0.0.1", self.port)
        client.request("GET", _LAST)
        client.getresponse().read()
        client.close()
        wait_for(lambda: _LAST in log.read_text())
        lines = [line.split(maxsplit=4) for line in log.read_text().splitlines()]
        os.truncate(log, 0)
        return [line for line in lines if line[1] != _LAST]


@contextmanager
def serving_nginx(program: str, folder: Path, config: str) -> Iterator[Nginx]:
    """Serve until the ``with`` block ends; the configuration may also name ``{folder}``."""
    server = Nginx(program, folder, config)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def write_certificate(folder: Path) -> Path:
    """Write ``key.pem`` and the self-signed ``cert.pem`` for 127.0.0.1; return the certificate."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += [
        "-keyout",
        "key.pem",
        "-out",
        "cert.pem",
        "-subj",
        "/CN=cache",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
    ]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem"
