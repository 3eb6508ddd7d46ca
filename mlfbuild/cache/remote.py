"""The cache of a server, by the HTTP protocol that Bazel, bazel-remote, ccache and sccache share.

    GET <url>/ac/<key>       200 with an action result, or 404
    GET <url>/cas/<sha256>   200 with a blob, or 404
    PUT <url>/ac/<key>, PUT <url>/cas/<sha256>     200, 201 or 204

(https://bazel.build/remote/caching#http-caching). The client is requests: it finds proxies in the environment and
passwords in ``~/.netrc``, keeps connections, verifies TLS, and sends credentials to no other host after a redirection.
A token replaces the password; of the two, requests would otherwise prefer that of ``~/.netrc``.

**Limits.** A connection has 5 seconds, a silence 10, a whole request 120, and an answer no more bytes than it should
have. After a silence or a cut connection, which may just have been an old one, a request is sent once more. The library
limits only silences; a server that sends one byte each nine seconds, in a header or a body, would block a build for
days. So each request runs in a thread that is abandoned at the end of its time.

**Failures.** 404 is a miss. Any other failure would repeat: one line is printed, and the server is not asked again by
this object. If only sending fails with a status, because this user may not write or the disk of the server is full,
only sending ends. Messages have words of ours and of the system, never those of requests, which may quote headers.
"""

from __future__ import annotations

import contextlib
import io
import os
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from mlfbuild import __version__
from mlfbuild.cache.action_result import MAX_BLOBS, MAX_MESSAGE, ActionResult
from mlfbuild.core import lazy_module, sha256, shown

if TYPE_CHECKING:
    import requests
    import urllib3
else:
    requests = lazy_module("requests")  # 0.1 s, and most builds have no server
    urllib3 = lazy_module("urllib3")

T = TypeVar("T")

_CHUNK = 1 << 16
_MISSING = {404, 410}
_REDIRECTIONS = 5


@dataclass(frozen=True)
class TimeLimits:
    """Seconds that a server has."""

    connect: float = 5.0
    silence: float = 10.0
    """Until it sends something."""
    total: float = 120.0
    """For a request with its answer."""


class _RefusedError(Exception):
    """The server answered, but not as it should; the argument is the reason."""


class HttpCache:
    """A server, with a connection that is made when it is first asked."""

    def __init__(
        self, url: str, notify: Callable[[str], None], *, token: str = "", push: bool = False,
        limits: TimeLimits = TimeLimits(),
    ) -> None:  # fmt: skip
        """Use the server at ``url``, which ``remote_problem`` accepts; ``push``: also send results to it.

        ``token`` is sent instead of a password of ``~/.netrc``. ``notify`` gets a line for each failure.
        """
        self._url = url.rstrip("/")
        self._notify = notify
        self._token = token
        self._limits = limits
        self._reads = True
        self._writes = push
        self._made: tuple[int, requests.Session] | None = None
        self._lock = threading.Lock()

    def result(self, key: str) -> ActionResult | None:
        """Return the action result of ``key``; ``None`` if the server has none, or a damaged one."""
        data = self._get(f"ac/{key}", MAX_MESSAGE)
        if data is None:
            return None
        try:
            return ActionResult.from_bytes(data)
        except ValueError as error:
            self._notify(f"cache: {self._url}/ac/{key}: {error}; it is not used")
            return None

    def blob(self, digest: str, size: int | None = None) -> bytes | None:
        """Return the content with this SHA-256, and this size if it is known; ``None`` if the server does not have it.

        Other content is never returned: ``notify`` gets the digest.
        """
        content = self._get(f"cas/{digest}", MAX_BLOBS if size is None else size)
        if content is None:
            return None
        if sha256(content) != digest or size not in {None, len(content)}:
            self._notify(f"cache: {self._url}/cas/{digest}: the content does not match its digest; it is not used")
            return None
        return content

    def put_result(self, key: str, result: ActionResult) -> bool:
        """Send the action result of ``key``, whose blobs have been sent; return whether the server took it."""
        return self._put(f"ac/{key}", result.to_bytes())

    def put_blob(self, digest: str, content: bytes) -> bool:
        """Send ``content``, whose SHA-256 is ``digest``; return whether the server has it."""
        return not content or self._put(f"cas/{digest}", content)

    # Requests --------------------------------------------------------------------------------------------------------

    def _get(self, path: str, most: int) -> bytes | None:
        """Return at most ``most`` bytes, and one more of a longer answer, so that its size is another one."""

        def get() -> bytes | None:
            with self._session().get(f"{self._url}/{path}", **self._common()) as response:
                if response.url.startswith("http:") and not self._url.startswith("http:"):
                    raise _RefusedError("a redirection from https to http")
                if response.status_code != 200:
                    self._refused(response)
                    return None
                parts = bytearray()
                while len(parts) <= most and (part := response.raw.read(min(_CHUNK, most + 1 - len(parts)))):
                    parts += part
                return bytes(parts)

        return self._tried(get) if self._reads else None

    def _put(self, path: str, content: bytes) -> bool:
        def put() -> bool:
            # A file, because urllib3 sends bytes as a whole, for which there would be no more time than to connect.
            common = {**self._common(), "allow_redirects": False}  # a redirected PUT may become a GET
            with self._session().put(f"{self._url}/{path}", data=io.BytesIO(content), **common) as response:
                response.raw.read(_CHUNK)  # an answer that was not read would cost the connection
                if response.status_code not in {200, 201, 204}:
                    raise _RefusedError(f"HTTP status {response.status_code}")
                return True

        return bool(self._writes and self._tried(put, writing=True))

    def _common(self) -> dict[str, Any]:
        return {"timeout": (self._limits.connect, self._limits.silence), "stream": True}

    def _session(self) -> requests.Session:
        with self._lock:
            # A process that was forked must not use the connections of its parent.
            if self._made is None or self._made[0] != os.getpid():
                self._made = (os.getpid(), self._new_session())
            return self._made[1]

    def _new_session(self) -> requests.Session:
        session = requests.Session()
        # Once more, if the server closed an idle connection just now. Retry-After is ignored: it has no limit.
        retry = urllib3.Retry(1, connect=0, read=1, redirect=0, status=0, other=0, respect_retry_after_header=False)
        for scheme in ("http://", "https://"):
            session.mount(scheme, requests.adapters.HTTPAdapter(max_retries=retry))
        session.max_redirects = _REDIRECTIONS
        # identity: a compressed answer may become a thousand times larger than what is read of it.
        session.headers.update({"User-Agent": f"mlfbuild/{__version__}", "Accept-Encoding": "identity"})
        # requests would trust only the authorities that it bundles, not those that an administrator added to the
        # system. REQUESTS_CA_BUNDLE takes precedence over both.
        trusted = ssl.get_default_verify_paths()
        session.verify = trusted.cafile or trusted.capath or True
        if self._token:
            session.auth = self._with_token
        return session

    def _with_token(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request

    def _refused(self, response: requests.Response) -> None:
        """Return for a miss, and raise ``_RefusedError`` for any other status than success."""
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            response.raw.read(_CHUNK)  # a page that was not read would cost the connection
        if response.status_code not in _MISSING:
            raise _RefusedError(f"HTTP status {response.status_code}")

    def _tried(self, request: Callable[[], T], *, writing: bool = False) -> T | None:
        """Return the result of ``request``; ``None`` after a failure, which ends the use of the server."""
        try:
            return _within(self._limits.total, request)
        except _RefusedError as error:
            self._writes = False
            self._reads = self._reads and writing
            reason = str(error)
        except (OSError, urllib3.exceptions.HTTPError, ValueError) as error:
            self._reads = self._writes = False
            reason = self._reason(error)
        without = "continuing without it" if not self._reads else "results of this run are not sent to it"
        self._notify(f"cache: {self._url}: {reason}; {without}")
        return None

    def _reason(self, error: BaseException) -> str:
        """Return why a request failed, in words that contain nothing of the request."""
        causes = list(_causes(error))
        for cause in causes:
            if isinstance(cause, ssl.SSLError):
                words = getattr(cause, "verify_message", "") or cause.reason or "the connection failed"
                return f"TLS: {shown(words)}"
        if any(isinstance(cause, socket.gaierror) for cause in causes):
            return "the name of the host is unknown"
        numbers = [cause.errno for cause in causes if isinstance(cause, OSError) and cause.errno]
        if any(isinstance(cause, urllib3.exceptions.ProxyError) for cause in causes):
            return "the proxy does not answer"
        if any(isinstance(cause, requests.exceptions.TooManyRedirects) for cause in causes):
            return "too many redirections"
        if numbers:
            return os.strerror(numbers[0])
        # Last, because urllib3's error for a refused connection is one of its errors for timeouts.
        late = any(isinstance(cause, (TimeoutError, urllib3.exceptions.TimeoutError)) for cause in causes)
        return "no answer in time" if late else "the connection was interrupted"


def _causes(error: BaseException) -> list[BaseException]:
    """Return ``error`` and the exceptions that led to it, which requests and urllib3 pass in arguments."""
    found: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, BaseException) and each not in found:
            found.append(each)
            waiting += [*each.args, getattr(each, "reason", None), each.__cause__, each.__context__]
    return found


def _within(seconds: float, function: Callable[[], T]) -> T:
    """Return the result of ``function``; raises its exceptions, and ``TimeoutError`` if it takes longer.

    It then goes on in its thread until the server ends it, or this process ends.
    """
    done: list[T] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            done.append(function())
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)

    # A daemon, because the interpreter waits for other threads when it ends.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not done:
        raise TimeoutError
    return done[0]
