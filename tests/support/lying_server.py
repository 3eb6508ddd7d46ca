"""A cache server that does what a real one cannot be made to do: lie, never end, and send one byte at a time."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LyingServer(ThreadingHTTPServer):
    """``answers`` has a function for the beginning of a path, which writes the whole answer; all else is 404."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.requests: list[tuple[str, str]] = []
        """Method and path of each request."""
        self.sent = 0
        """Bytes of endless answers."""
        self.stop = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_: Any) -> None:
        """Ignore clients that closed the connection."""


class _Handler(BaseHTTPRequestHandler):
    server: LyingServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.requests.append((self.command, self.path))
        for beginning, answer in self.server.answers.items():
            if self.path.startswith(beginning):
                answer(self)
                return
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_PUT = do_GET  # noqa: N815 - the name that http.server looks for

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def sends(content: bytes, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """Return an answer with ``content``, and a true length unless ``headers`` has another one."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        for name, value in ({"Content_Length": str(len(content))} | headers).items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(content)
        handler.close_connection = True

    return answer


def refuses(status: int, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        handler.send_response(status)
        for name, value in ({"Content_Length": "0"} | headers).items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()

    return answer


def never_ends(handler: BaseHTTPRequestHandler) -> None:
    """Send zeros without a length until the client goes away."""
    handler.send_response(200)
    handler.end_headers()
    handler.close_connection = True
    server = handler.server
    assert isinstance(server, LyingServer)
    with contextlib.suppress(OSError):
        while not server.stop.is_set():
            server.sent += handler.wfile.write(bytes(1 << 16))


def is_silent(handler: BaseHTTPRequestHandler) -> None:
    """Take the request and send nothing."""
    assert isinstance(handler.server, LyingServer)
    handler.server.stop.wait(60)
    handler.close_connection = True


def trickles(first: bytes) -> Callable[[BaseHTTPRequestHandler], None]:
    """Return an answer that begins with ``first`` and goes on with a byte each 20 ms."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        assert isinstance(handler.server, LyingServer)
        handler.close_connection = True
        with contextlib.suppress(OSError):
            handler.wfile.write(first)
            while not handler.server.stop.wait(0.02):
                handler.wfile.write(b"x")

    return answer


@contextlib.contextmanager
def lying() -> Iterator[LyingServer]:
    """Serve until the ``with`` block ends."""
    with LyingServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.stop.set()
            server.shutdown()
            thread.join()
