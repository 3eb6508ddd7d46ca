"""A real server: nginx with WebDAV."""

import os
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from cache.conftest import KEY, OUTPUTS, Notices
from mlfbuild.cache import CacheSettings, open_cache
from mlfbuild.cache.action_result import ActionResult
from mlfbuild.core import sha256
from support.nginx import Nginx, serving_nginx, write_certificate

CONFIG = """
    server {
        listen 127.0.0.1:{port};
        listen 127.0.0.1:{tls} ssl;
        ssl_certificate {folder}/cert.pem;
        ssl_certificate_key {folder}/key.pem;
        client_max_body_size 1m;
        root {folder}/data;
        dav_methods PUT;
        create_full_put_path on;
        location /private/ { auth_basic cache; auth_basic_user_file {folder}/passwords; }
        location /written/ { limit_except GET { auth_basic cache; auth_basic_user_file {folder}/passwords; } }
        location /token/ { if ($http_authorization != "Bearer t0ken") { return 403; } }
        location /moved/ { return 307 http://localhost:{port}/open$request_uri; }
        location /downgraded/ { return 302 http://127.0.0.1:{port}/open$request_uri; }
        location /circle/ { return 302 $request_uri; }
        location /full/ { limit_except GET { deny all; } }
    }
"""
PASSWORD = "s3cret-pass"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory, nginx: str) -> Iterator[Nginx]:
    folder = tmp_path_factory.mktemp("nginx")
    write_certificate(folder)
    (folder / "data").mkdir()
    (folder / "passwords").write_text(f"ci:{{PLAIN}}{PASSWORD}\n")
    with serving_nginx(nginx, folder, CONFIG) as server:
        yield server


@pytest.fixture
def server(started: Nginx, caplog: pytest.LogCaptureFixture) -> Iterator[Nginx]:
    """The server with an empty log; no log of this process contains a password or a token, in any form."""
    started.requests()
    with caplog.at_level("DEBUG"):
        yield started
    for secret in (PASSWORD, "t0ken", b64encode(f"ci:{PASSWORD}".encode()).decode()):
        assert secret not in caplog.text


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    """A prefix of this test on the server."""
    return f"open/{request.node.name}"


def remote(url: str, notices: Notices, **settings: object) -> CacheSettings:
    assert notices == []
    return CacheSettings(**{"limit": 0, "remote": url, "push": "always", **settings})  # type: ignore[arg-type]


def netrc(folder: Path, text: str) -> None:
    (folder / ".netrc").write_text(text)
    (folder / ".netrc").chmod(0o600)


def test_a_result_of_one_machine_is_found_by_another(server: Nginx, place: str, tmp_path: Path) -> None:
    notices, url = Notices(), f"{server.url}/{place}"
    ci = open_cache(remote(url, notices), notices)
    assert ci.fetch(KEY) is None
    ci.store(KEY, OUTPUTS, worker="ci-3", seconds=1.5)
    found = open_cache(remote(f"{url}/", notices, push="never"), notices).fetch(KEY)
    assert found is not None
    assert (dict(found.outputs), found.where, found.worker, found.seconds) == (OUTPUTS, "remote", "ci-3", 1.5)
    laptop = open_cache(remote(url, notices, limit=1 << 20, folder=tmp_path / "results"), notices)
    assert [laptop.fetch(KEY).where, laptop.fetch(KEY).where] == ["remote", "local"]  # type: ignore[union-attr]
    assert notices == []
    # Blobs before the result, nothing for the empty one, and one connection for all requests of a process.
    requests = server.requests()
    digests = [sha256(content) for content in OUTPUTS.values() if content]
    assert [request[:3] for request in requests[:4]] == [
        ["GET", f"/{place}/ac/{KEY}", "404"],
        *(["PUT", f"/{place}/cas/{digest}", "201"] for digest in digests),
        ["PUT", f"/{place}/ac/{KEY}", "201"],
    ]
    assert len({request[3] for request in requests[:4]}) == 1
    assert len(requests) == 4 + 2 * 3


def test_files_on_the_server_are_those_of_the_protocol(server: Nginx, place: str) -> None:
    notices = Notices()
    open_cache(remote(f"{server.url}/{place}", notices), notices).store(KEY, OUTPUTS)
    data = server.folder / "data" / place
    result = ActionResult.from_bytes((data / "ac" / KEY).read_bytes())
    assert {file.path for file in result.outputs} == set(OUTPUTS)
    assert {path.name for path in (data / "cas").iterdir()} == {sha256(text) for text in OUTPUTS.values() if text}


def test_a_result_is_replaced(server: Nginx, place: str) -> None:
    notices = Notices()
    cache = open_cache(remote(f"{server.url}/{place}", notices), notices)
    for content in (b"old", b"new"):
        cache.store(KEY, {"a": content})
    assert dict(cache.fetch(KEY).outputs) == {"a": b"new"}  # type: ignore[union-attr]
    assert notices == []


@pytest.mark.parametrize(
    ("push", "ci", "sent"),
    [("never", "true", 0), ("ci", "", 0), ("ci", "false", 0), ("ci", "0", 0), ("ci", "true", 3), ("always", "", 3)],
)
def test_results_are_sent_if_the_settings_say_so(
    server: Nginx, place: str, monkeypatch: pytest.MonkeyPatch, push: str, ci: str, sent: int
) -> None:
    monkeypatch.setenv("CI", ci)
    notices = Notices()
    open_cache(remote(f"{server.url}/{place}", notices, push=push), notices).store(KEY, OUTPUTS)
    assert (len(server.requests()), notices) == (sent, [])


def test_a_blob_that_the_server_removed_is_a_miss(server: Nginx, place: str) -> None:
    notices = Notices()
    cache = open_cache(remote(f"{server.url}/{place}", notices), notices)
    cache.store(KEY, OUTPUTS)
    (server.folder / "data" / place / "cas" / sha256(b"{}")).unlink()
    assert (cache.fetch(KEY), notices) == (None, [])


def test_a_file_that_was_changed_on_the_server_is_never_used(server: Nginx, place: str, tmp_path: Path) -> None:
    notices = Notices()
    cache = open_cache(remote(f"{server.url}/{place}", notices, limit=1 << 20, folder=tmp_path / "results"), notices)
    cache.store(KEY, OUTPUTS)
    digest = sha256(OUTPUTS["kws.tar"])
    for name in ("ac", "cas"):
        for path in (tmp_path / "results" / name).rglob("*"):
            path.unlink() if path.is_file() else None
    (server.folder / "data" / place / "cas" / digest).write_bytes(b"archivE" * 1000)
    assert cache.fetch(KEY) is None
    address = f"{server.url}/{place}/cas/{digest}"
    assert notices == [f"cache: {address}: the content does not match its digest; it is not used"]
    cache.store(KEY, OUTPUTS)
    assert cache.fetch(KEY) is not None


def test_a_killed_server_is_asked_once_more_and_then_left_alone(tmp_path: Path, nginx: str) -> None:
    (tmp_path / "server/data").mkdir(parents=True)
    write_certificate(tmp_path / "server")
    (tmp_path / "server/passwords").touch()
    notices = Notices()
    with serving_nginx(nginx, tmp_path / "server", CONFIG) as server:
        cache = open_cache(remote(server.url, notices), notices)
        cache.store(KEY, OUTPUTS)
        assert len(server.requests()) == 3
        server.kill()
        server.start()
        assert cache.fetch(KEY) is not None  # the old connection is replaced
        assert (len(server.requests()), notices) == (3, [])
        server.kill()
        assert [cache.fetch(KEY), cache.fetch(KEY)] == [None, None]
        server.start()
        cache.store(KEY, OUTPUTS)
        assert server.requests() == []
    assert notices == [f"cache: {server.url}: Connection refused; continuing without it"]


def test_wrong_passwords_and_none(server: Nginx, tmp_path: Path) -> None:
    for text in ("", f"machine 127.0.0.1 login ci password wrong-{PASSWORD}\n"):
        netrc(tmp_path, text)
        notices = Notices()
        cache = open_cache(remote(f"{server.url}/private", notices), notices)
        cache.store(KEY, OUTPUTS)
        assert [cache.fetch(KEY), cache.fetch(KEY)] == [None, None]
        assert notices == [
            f"cache: {server.url}/private: HTTP status 401; results of this run are not sent to it",
            f"cache: {server.url}/private: HTTP status 401; continuing without it",
        ]
    assert [request[2] for request in server.requests()] == ["401"] * 4


def test_the_password_is_that_of_netrc(server: Nginx, tmp_path: Path) -> None:
    netrc(tmp_path, f"machine 127.0.0.1 login ci password {PASSWORD}\n")
    notices = Notices()
    cache = open_cache(remote(f"{server.url}/private", notices), notices)
    cache.store(KEY, OUTPUTS)
    assert (cache.fetch(KEY) is not None, notices) == (True, [])


def test_a_user_who_may_only_read_reads(server: Nginx) -> None:
    notices = Notices()
    cache = open_cache(remote(f"{server.url}/written", notices), notices)
    data = server.folder / "data/written"
    (data / "ac").mkdir(parents=True, exist_ok=True)
    (data / "ac" / KEY).write_bytes(ActionResult(()).to_bytes())
    for _ in range(2):
        cache.store(KEY, {"a": b"a"})
        assert cache.fetch(KEY) is not None
    assert notices == [f"cache: {server.url}/written: HTTP status 401; results of this run are not sent to it"]


def test_a_token_replaces_the_password(server: Nginx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc(tmp_path, f"machine 127.0.0.1 login ci password {PASSWORD}\n")
    monkeypatch.setenv("MLFBUILD_CACHE_TOKEN", "t0ken")
    notices = Notices()
    cache = open_cache(remote(f"{server.url}/token", notices), notices)
    cache.store(KEY, OUTPUTS)
    assert (cache.fetch(KEY) is not None, notices) == (True, [])
    monkeypatch.setenv("MLFBUILD_CACHE_TOKEN", "other")
    assert open_cache(remote(f"{server.url}/token", notices), notices).fetch(KEY) is None
    assert notices == [f"cache: {server.url}/token: HTTP status 403; continuing without it"]


@pytest.mark.parametrize("token", ["", "t0ken"])
def test_another_host_gets_no_credentials(
    server: Nginx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    netrc(tmp_path, f"machine 127.0.0.1 login ci password {PASSWORD}\n")
    monkeypatch.setenv("MLFBUILD_CACHE_TOKEN", token)
    notices = Notices()
    cache = open_cache(remote(f"{server.url}/moved", notices), notices)
    open_cache(remote(f"http://127.0.0.1:{server.port}/open/moved", notices), notices).store(KEY, OUTPUTS)
    server.requests()
    assert cache.fetch(KEY) is not None
    log = server.requests()
    first, second = ([line for line in log if line[1].startswith(f"/{name}")] for name in ("moved", "open"))
    assert len(first) == len(second) == 3
    assert all(line[4] != '"-"' for line in first)
    assert all(line[4] == '"-"' for line in second)
    # A redirected PUT could become a GET: it is a failure.
    cache.store(KEY, OUTPUTS)
    assert notices == [f"cache: {server.url}/moved: HTTP status 307; results of this run are not sent to it"]


def test_redirections_in_a_circle_end(server: Nginx) -> None:
    notices = Notices()
    assert open_cache(remote(f"{server.url}/circle", notices), notices).fetch(KEY) is None
    assert notices == [f"cache: {server.url}/circle: too many redirections; continuing without it"]
    assert len(server.requests()) == 6


def test_a_certificate_must_be_trusted(server: Nginx, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    notices, url = Notices(), f"https://127.0.0.1:{server.tls}"
    cache = open_cache(remote(f"{url}/{place}", notices), notices)
    cache.store(KEY, OUTPUTS)
    assert cache.fetch(KEY) is None
    (notice,) = notices
    assert notice.startswith(f"cache: {url}/{place}: TLS: self-signed certificate")
    assert server.requests() == []

    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(server.folder / "cert.pem"))
    notices.clear()
    cache = open_cache(remote(f"{url}/{place}", notices), notices)
    cache.store(KEY, OUTPUTS)
    assert (cache.fetch(KEY) is not None, notices) == (True, [])
    # Of another name: the certificate is for the address.
    other = f"https://localhost:{server.tls}/{place}"
    assert open_cache(remote(other, notices), notices).fetch(KEY) is None
    assert notices[0].startswith(f"cache: {other}: TLS: ")


def test_a_redirection_from_https_to_http_is_refused(server: Nginx, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(server.folder / "cert.pem"))
    notices, url = Notices(), f"https://127.0.0.1:{server.tls}/downgraded"
    open_cache(remote(f"{server.url}/open/downgraded", notices), notices).store(KEY, OUTPUTS)
    assert open_cache(remote(url, notices), notices).fetch(KEY) is None
    assert notices == [f"cache: {url}: a redirection from https to http; continuing without it"]


def test_too_large_results_are_not_sent(server: Nginx, place: str) -> None:
    """The server's own limit, as a full disk would be: reading goes on."""
    notices, url = Notices(), f"{server.url}/{place}"
    cache = open_cache(remote(url, notices), notices)
    cache.store(KEY, {"a": b"a"})
    cache.store(KEY, {"a": bytes(2 << 20)})
    assert (cache.fetch(KEY) is not None, len(notices)) == (True, 1)
    assert notices[0].startswith(f"cache: {url}: ")
    assert not (server.folder / "data" / place / "cas" / sha256(bytes(2 << 20))).exists()


def test_a_proxy_is_that_of_the_environment(server: Nginx, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """nginx takes the absolute address of a proxy's client as one of its own."""
    monkeypatch.setenv("http_proxy", f"http://user:{PASSWORD}@127.0.0.1:{server.port}")
    notices = Notices()
    cache = open_cache(remote(f"http://cache.invalid/{place}", notices), notices)
    cache.store(KEY, OUTPUTS)
    assert (cache.fetch(KEY) is not None, notices) == (True, [])
    monkeypatch.setenv("http_proxy", f"http://user:{PASSWORD}@127.0.0.1:1")
    assert open_cache(remote(f"http://cache.invalid/{place}", notices), notices).fetch(KEY) is None
    assert notices == [f"cache: http://cache.invalid/{place}: the proxy does not answer; continuing without it"]


def test_a_forked_process_has_its_own_connection(server: Nginx, place: str) -> None:
    notices = Notices()
    cache = open_cache(remote(f"{server.url}/{place}", notices), notices)
    cache.store(KEY, OUTPUTS)
    server.requests()
    child = os.fork()
    if child == 0:
        os._exit(0 if cache.fetch(KEY) is not None else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert cache.fetch(KEY) is not None
    log = server.requests()
    assert {len({line[3] for line in part}) for part in (log[:3], log[3:])} == {1}
    assert log[0][3] != log[-1][3]


def test_nginx_of_this_machine_has_webdav(nginx: str) -> None:
    done = subprocess.run([nginx, "-V"], capture_output=True, text=True, check=True)
    assert "--with-http_dav_module" in done.stderr
