"""A server of files on this machine that records requests and can simulate network failures."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Source(ThreadingHTTPServer):
    """``files`` has the served content by path; the other attributes simulate failures."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self.requests: list[tuple[str, str | None]] = []
        """Path and Range of each request."""
        self.headers: list[dict[str, str]] = []
        self.cut_after: int | None = None
        """Bytes after which the connection ends."""
        self.stall_after: int | None = None
        """Bytes after which the connection stalls until ``go_on``."""
        self.ranges = True
        self.go_on = threading.Event()
        self.stalled = threading.Event()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{path}"

    def handle_error(self, *_: Any) -> None:
        """Ignore clients that closed the connection."""


class _Handler(BaseHTTPRequestHandler):
    server: Source

    def do_GET(self) -> None:
        path = self.path.lstrip("/").partition("?")[0]
        self.server.requests.append((path, self.headers.get("Range")))
        self.server.headers.append(dict(self.headers.items()))
        if path in self.server.redirects:
            self.send_response(302)
            self.send_header("Location", self.server.redirects[path])
            self.end_headers()
        elif path not in self.server.files:
            self.send_error(404)
        else:
            self._send(self.server.files[path])

    def _send(self, data: bytes) -> None:
        begin = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "") if self.server.ranges else None
        at = int(begin[1]) if begin else 0
        if begin and at >= len(data):
            self.send_error(416)
            return
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {at}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - at))
        self.end_headers()
        for limit in (self.server.cut_after, self.server.stall_after):
            if limit is not None:
                self.wfile.write(data[at : at + limit])
                self.wfile.flush()
                at += limit
                if limit is self.server.cut_after:
                    return
                self.server.stalled.set()
                self.server.go_on.wait(30)
        self.wfile.write(data[at:])

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def serving() -> Iterator[Source]:
    """Serve until the ``with`` block ends."""
    with Source() as source:
        thread = threading.Thread(target=source.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield source
        finally:
            source.go_on.set()
            source.shutdown()
            thread.join()
