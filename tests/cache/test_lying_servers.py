"""A server may lie, never end, send one byte at a time, or not exist: nothing wrong is used, and nothing hangs."""

import socket
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from cache.conftest import KEY, OUTPUTS, Notices
from mlfbuild.cache.action_result import MAX_MESSAGE, ActionResult, OutputFile
from mlfbuild.cache.remote import HttpCache, TimeLimits
from mlfbuild.cache.results import ResultCache, open_cache
from mlfbuild.cache.settings import CacheSettings
from mlfbuild.core import sha256
from support.lying_server import LyingServer, is_silent, lying, never_ends, refuses, sends, trickles

BLOB = b"archive" * 1000
RESULT = ActionResult((OutputFile("kws.tar", sha256(BLOB), len(BLOB)),))
AC, CAS = f"/ac/{KEY}", f"/cas/{sha256(BLOB)}"
Answer = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture
def server() -> Iterator[LyingServer]:
    with lying() as found:
        yield found


@pytest.fixture
def notices() -> Notices:
    return Notices()


def patient(server: LyingServer, notices: Notices, **limits: float) -> ResultCache:
    """Return a cache with short limits: a test that needed the usual ones would take minutes."""
    limits = {"connect": 5, "silence": 0.2, "total": 0.5, **limits}
    return ResultCache(None, HttpCache(server.url, notices, push=True, limits=TimeLimits(**limits)))


def test_honest_answers_are_used(server: LyingServer, notices: Notices) -> None:
    server.answers = {"/ac": sends(RESULT.to_bytes()), "/cas": sends(BLOB)}
    found = patient(server, notices, total=60).fetch(KEY)
    assert found is not None
    assert (dict(found.outputs), notices) == ({"kws.tar": BLOB}, [])


LIES = {
    "other content": sends(b"archivE" * 1000),
    "less": sends(BLOB[:-1]),
    "more": sends(BLOB + b"x"),
    "nothing": sends(b""),
    "an error page": sends(b"<html>not found</html>", Content_Type="text/html"),
    "compressed": sends(BLOB[:50], Content_Encoding="gzip"),
}


@pytest.mark.parametrize("lie", LIES)
def test_content_of_another_digest_is_never_used(server: LyingServer, notices: Notices, lie: str) -> None:
    server.answers = {"/ac": sends(RESULT.to_bytes()), "/cas": LIES[lie]}
    cache = patient(server, notices, total=60)
    assert cache.fetch(KEY) is None
    assert notices == [f"cache: {server.url}{CAS}: the content does not match its digest; it is not used"]


@pytest.mark.parametrize("message", [b"", b"<html>hello</html>", RESULT.to_bytes()[:-3], bytes(MAX_MESSAGE + 1)])
def test_other_messages_are_not_used(server: LyingServer, notices: Notices, message: bytes) -> None:
    server.answers = {"/ac": sends(message)}
    assert patient(server, notices, total=60).fetch(KEY) is None
    (notice,) = notices
    assert notice.startswith(f"cache: {server.url}{AC}: ")
    assert [path for _, path in server.requests] == [AC]


def test_an_endless_answer_is_read_up_to_its_size(server: LyingServer, notices: Notices) -> None:
    server.answers = {"/ac": sends(RESULT.to_bytes()), "/cas": never_ends}
    assert patient(server, notices, total=60).fetch(KEY) is None
    assert notices == [f"cache: {server.url}{CAS}: the content does not match its digest; it is not used"]
    server.stop.set()
    assert server.sent < 16 << 20  # buffers of the system


def test_an_endless_result_is_read_up_to_its_limit(server: LyingServer, notices: Notices) -> None:
    server.answers = {"/ac": never_ends}
    assert patient(server, notices, total=60).fetch(KEY) is None
    assert len(notices) == 1
    server.stop.set()
    assert server.sent < 16 << 20


SLOW = {
    "silent": is_silent,
    "one byte of a header at a time": trickles(b"HTTP/1.1 200 OK\r\nX: "),
    "one byte of the content at a time": trickles(b"HTTP/1.1 200 OK\r\nContent-Length: 7000\r\n\r\n"),
}


@pytest.mark.parametrize("slowness", SLOW)
def test_a_slow_server_is_asked_once(server: LyingServer, notices: Notices, slowness: str) -> None:
    server.answers = {"/": SLOW[slowness]}
    cache = patient(server, notices)
    assert [cache.fetch(KEY), cache.fetch(KEY)] == [None, None]
    cache.store(KEY, OUTPUTS)
    assert notices == [f"cache: {server.url}: no answer in time; continuing without it"]
    assert {path for _, path in server.requests} == {AC}


def test_a_connection_that_is_cut_is_reported_once(server: LyingServer, notices: Notices) -> None:
    server.answers = {"/ac": sends(RESULT.to_bytes()), "/cas": sends(BLOB[:100], Content_Length=str(len(BLOB)))}
    cache = patient(server, notices, total=60)
    assert [cache.fetch(KEY), cache.fetch(KEY)] == [None, None]
    assert notices == [f"cache: {server.url}: the connection was interrupted; continuing without it"]
    assert [path for _, path in server.requests] == [AC, CAS]


@pytest.mark.parametrize("status", [400, 403, 429, 500, 503])
def test_a_refusal_is_reported_once(server: LyingServer, notices: Notices, status: int) -> None:
    server.answers = {"/": refuses(status, Retry_After="3600")}
    cache = patient(server, notices, total=60)
    assert [cache.fetch(KEY), cache.fetch(KEY)] == [None, None]
    assert notices == [f"cache: {server.url}: HTTP status {status}; continuing without it"]
    assert len(server.requests) == 1


def test_a_full_server_is_still_read(server: LyingServer, notices: Notices) -> None:
    server.answers = {"/ac": sends(RESULT.to_bytes()), f"{CAS}": sends(BLOB), "/": refuses(507)}
    cache = patient(server, notices, total=60)
    for number in range(2):
        cache.store(KEY, {"a": b"%d" % number})
        assert cache.fetch(KEY) is not None
    assert notices == [f"cache: {server.url}: HTTP status 507; results of this run are not sent to it"]
    assert [path for method, path in server.requests if method == "PUT"] == [f"/cas/{sha256(b'0')}"]


def test_a_redirection_to_a_file_of_this_machine_is_a_failure(server: LyingServer, notices: Notices) -> None:
    server.answers = {"/": refuses(302, Location="file:///etc/passwd")}
    assert patient(server, notices, total=60).fetch(KEY) is None
    assert notices == [f"cache: {server.url}: the connection was interrupted; continuing without it"]


def test_no_server(notices: Notices) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nothing listens
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        cache = open_cache(CacheSettings(limit=0, remote=url, push="always"), notices)
        cache.store(KEY, OUTPUTS)
        assert [cache.fetch(KEY), cache.fetch(KEY)] == [None, None]
    assert notices == [f"cache: {url}: Connection refused; continuing without it"]


def test_an_unknown_host(notices: Notices) -> None:
    cache = open_cache(CacheSettings(limit=0, remote="http://cache.invalid"), notices)
    assert [cache.fetch(KEY), cache.fetch(KEY)] == [None, None]
    assert notices == ["cache: http://cache.invalid: the name of the host is unknown; continuing without it"]
