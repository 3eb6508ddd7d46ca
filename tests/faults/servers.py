"""Fetch from hostile servers on this machine: HTTP servers that lie, and Git repositories that try to get out."""

import argparse
import contextlib
import hashlib
import io
import os
import socket
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from faults.tally import Tally
from support.firmware_repo import tiny_network
from support.git_remote import Remote, git, tree_object

_FETCH = """
import sys
from mlfbuild.requirements import archives
archives.MAX_SIZE, archives.SILENCE, archives.TOTAL_TIME = 1 << 22, 2.0, 6.0
from mlfbuild.cli import main
sys.exit(main(["fetch", "-q", *sys.argv[1:]]))
"""
_PROJECT = """\
mlfbuild: 1
targets: {pc: {cpu: host}}
models:
  a: {source: a.tflite}
dependencies:
"""
_SECRET = b"the content of a file that is not part of the project"
_OK = b"HTTP/1.1 200 OK\r\n"


class Server:
    """Answers each connection with the bytes that the present case yields, and remembers the requests."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.answers: Callable[[str], Iterator[bytes]] = lambda _: iter(())
        self.requests: list[str] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            request = b""
            while b"\r\n\r\n" not in request and (data := connection.recv(65536)):
                request += data
            self.requests.append(request.decode(errors="replace"))
            for data in self.answers(self.requests[-1]):
                connection.sendall(data)


class Client:
    """A project that fetches one library into an empty cache."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "project").mkdir(parents=True)
        (root / "home").mkdir()
        (root / "project/a.tflite").write_bytes(tiny_network(0))
        (root / "project/mlfbuild.yml").touch()
        (root / "secret").write_bytes(_SECRET)
        self.count = 0

    def fetch(self, place: str, *, patience: float = 60) -> tuple[int | None, str, Path]:
        """Fetch ``place``, keys of a provider; return status, output and the cache."""
        self.count += 1
        cache = self.root / f"caches/{self.count}"
        (self.root / "project/mlfbuild.yml").write_text(
            f"{_PROJECT}  lib: {{{place}, sources: [a.c], include-dirs: [.]}}\n"
        )
        environment = {"MLFBUILD_CACHE": str(cache), "HOME": str(self.root / "home"), "GIT_CONFIG_NOSYSTEM": "1"}
        try:
            done = subprocess.run(
                [sys.executable, "-c", _FETCH], cwd=self.root / "project", env={**os.environ, **environment},
                capture_output=True, text=True, errors="replace", timeout=patience,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return None, "", cache
        return done.returncode, done.stderr, cache

    def judge(self, tally: Tally, what: str, place: str, *, good: bool = False) -> None:
        """Count a fetch: of something hostile, it must be refused and leave nothing."""
        before = self._outside()
        status, output, cache = self.fetch(place)
        tally.end(what, status, output)
        if (status == 0) != good:
            tally.wrong.append(f"{what}: {status}: {output}")
        trees = list((cache / "trees").glob("*")) if (cache / "trees").is_dir() else []
        if not good and trees:
            tally.wrong.append(f"{what}: left {trees}")
        if self._outside() != before:
            tally.escaped.append(f"{what}: wrote {self._outside() - before}")
        if any(path.is_file() and _SECRET in path.read_bytes() for path in cache.rglob("*") if not path.is_symlink()):
            tally.escaped.append(f"{what}: read the secret")

    def _outside(self) -> set[Path]:
        return {path for path in self.root.rglob("*") if "caches" not in path.parts and ".git" not in path.suffixes}


def campaign(root: Path, chosen: str, _options: argparse.Namespace) -> Iterator[Tally]:
    """Every case once."""
    if chosen in "http":
        yield _http(Client(root / "http"), Server())
    if chosen in "git":
        yield _git(Client(root / "git"), Server())


# HTTP ----------------------------------------------------------------------------------------------------------------


def _archive(*members: tuple[str, bytes, str]) -> bytes:
    """Return a tar of (name, content or target of a link, kind)."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, content, kind in members:
            member = tarfile.TarInfo(name)
            member.type = {"file": tarfile.REGTYPE, "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE,
                           "device": tarfile.CHRTYPE, "pipe": tarfile.FIFOTYPE}[kind]  # fmt: skip
            if kind == "file":
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
            else:
                member.linkname = content.decode()
                archive.addfile(member)
    return data.getvalue()


_GOOD = _archive(("lib/a.c", b"int a;\n", "file"), ("lib/a.h", b"\n", "file"))


def _bomb() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(40):
            archive.writestr(f"lib/{number}", bytes(1 << 27))
    return data.getvalue()


def _endless(head: bytes) -> Iterator[bytes]:
    yield head
    while True:
        yield bytes(1 << 16)


def _dripping() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
    while True:
        threading.Event().wait(0.5)
        yield b"x"


def _silent(head: bytes) -> Iterator[bytes]:
    yield head
    threading.Event().wait(30)


def _answers(root: Path) -> Mapping[str, Callable[[str], Iterator[bytes]]]:
    """Return what a server may answer, by name."""
    size = len(_GOOD)
    plain: dict[str, bytes] = {
        "nothing": b"",
        "half a status line": b"HTTP/1.",
        "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
        "status 99999": b"HTTP/1.1 99999 ?\r\n\r\n",
        "status that is no number": b"HTTP/1.1 abc ?\r\n\r\n",
        "404": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        "401": b'HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm="x"\r\nContent-Length: 0\r\n\r\n',
        "407": b'HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm="x"\r\nContent-Length: 0\r\n\r\n',
        "500": b"HTTP/1.1 500 \x1b]0;x\x07\r\nContent-Length: 0\r\n\r\n",
        "204": b"HTTP/1.1 204 No Content\r\n\r\n",
        "an empty body": _OK + b"Content-Length: 0\r\n\r\n",
        "a page": _OK + b"Content-Type: text/html\r\n\r\n<html>log in</html>",
        "other bytes": _OK + b"Content-Length: %d\r\n\r\n" % size + _GOOD[:-1] + b"x",
        "fewer bytes": _OK + b"Content-Length: %d\r\n\r\n" % size + _GOOD[:1000],
        "fewer bytes and no length": _OK + b"\r\n" + _GOOD[:1000],
        "more bytes": _OK + b"\r\n" + _GOOD + b"more",
        "a length too small": _OK + b"Content-Length: 10\r\n\r\n" + _GOOD,
        "a length of 1 TB": _OK + b"Content-Length: 1000000000000\r\n\r\n" + _GOOD,
        "a part": b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-9/100\r\nContent-Length: 10\r\n\r\n0123456789",
        "broken chunks": _OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nx",
        "chunks that are no numbers": _OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n0\r\n\r\n",
        "negative chunks": _OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nx\r\n0\r\n\r\n",
        "long headers": _OK + b"X: " + b"x" * 200_000 + b"\r\n\r\n" + _GOOD,
        "many headers": _OK + b"X: y\r\n" * 5000 + b"\r\n" + _GOOD,
        "a compressed body": _OK + b"Content-Encoding: gzip\r\n\r\n" + b"\x1f\x8b" + bytes(100),
    }
    for scheme in (
        f"file://{root}/secret", f"FILE://{root}/secret", f"file:{root}/secret", "ftp://127.0.0.1/a", "data:,a",
        "gopher://127.0.0.1/", "javascript:1", "//", "http://", "http://[", "http://127.0.0.1:99999/", "\x00", "",
        "http://127.0.0.1:1/", "ext::sh -c id", "http:///a", "unix:///var/run/docker.sock", "netdoc:///etc/passwd",
        f"jar:file://{root}/secret!/", f"local_file://{root}/secret", f"url:file://{root}/secret",
    ):  # fmt: skip
        for status in (301, 302, 303, 307, 308):
            head = f"HTTP/1.1 {status} Moved\r\nLocation: {scheme}\r\nContent-Length: 0\r\n\r\n"
            plain[f"{status} to {scheme!r}"] = head.encode()
    plain["redirection without a place"] = b"HTTP/1.1 302 Moved\r\nContent-Length: 0\r\n\r\n"
    plain["redirection to itself"] = b"HTTP/1.1 302 Moved\r\nLocation: /a.tar\r\nContent-Length: 0\r\n\r\n"
    return {
        **{name: lambda _, data=data: iter([data]) for name, data in plain.items()},  # type: ignore[misc]
        "no answer": lambda _: _silent(b""),
        "a body that stops": lambda _: _silent(_OK + b"Content-Length: 1000\r\n\r\nx"),
        "a slow body": lambda _: _dripping(),
        "an endless body": lambda _: _endless(_OK + b"\r\n"),
        "endless headers": lambda _: _endless(_OK + b"X: "),
        "an endless status line": lambda _: _endless(b"HTTP/1.1 200 "),
        "endless chunks": lambda _: _endless(_OK + b"Transfer-Encoding: chunked\r\n\r\n10000000\r\n"),
    }


def _hostile_archives(root: Path) -> Mapping[str, bytes]:
    """Return archives whose hash is as requested, by what they try."""
    outside = f"{root}/escaped"
    good = ("lib/a.c", b"int a;\n", "file")
    members: dict[str, tuple[tuple[str, bytes, str], ...]] = {
        "an absolute path": ((outside, b"x", "file"),),
        "a path with ..": (("lib/../../../../escaped", b"x", "file"),),
        "a link and a file behind it": (("lib/l", str(root).encode(), "link"), ("lib/l/escaped", b"x", "file")),
        "a link to the secret": (("lib/l", f"{root}/secret".encode(), "link"),),
        "a relative link out": (("lib/l", b"../../../../../secret", "link"),),
        "a hard link to the secret": (("lib/l", f"{root}/secret".encode(), "hard"),),
        "a device": (("lib/d", b"", "device"),),
        "a pipe": (("lib/p", b"", "pipe"),),
        "a .git folder": (("lib/.git/hooks/post-checkout", b"#!/bin/sh\ntouch escaped", "file"),),
        "a name of 5000 characters": (("lib/" + "n" * 5000, b"x", "file"),),
    }
    archives = {name: _archive(good, *found) for name, found in members.items()}
    return {**archives, "a bomb": _bomb(), "no archive": b"hello", "a cut archive": _GOOD[:700], "nothing": b""}


def _http(client: Client, server: Server) -> Tally:
    tally = Tally("hostile HTTP servers")
    address = f"http://127.0.0.1:{server.port}/a.tar"

    def keys(data: bytes) -> str:
        return f"url: '{address}', sha256: '{hashlib.sha256(data).hexdigest()}'"

    def serve(data: bytes) -> None:
        server.answers = lambda _: iter([_OK + b"Content-Length: %d\r\n\r\n" % len(data), data])

    serve(_GOOD)
    client.judge(tally, "a good archive", keys(_GOOD), good=True)
    for name, answers in _answers(client.root).items():
        server.answers = answers
        client.judge(tally, name, keys(_GOOD))
    for name, data in _hostile_archives(client.root).items():
        serve(data)
        client.judge(tally, name, keys(data))
    _credentials(client, server, tally, keys(_GOOD))
    return tally


def _credentials(client: Client, server: Server, tally: Tally, keys: str) -> None:
    """Redirect a request with a password to another host, which must not get it."""
    (client.root / "home/.netrc").write_text("machine 127.0.0.1 login user password geheim\n")
    (client.root / "home/.netrc").chmod(0o600)

    def answers(request: str) -> Iterator[bytes]:
        if "Host: 127.0.0.1" in request:
            other = f"http://localhost:{server.port}/b"
            yield f"HTTP/1.1 302 Moved\r\nLocation: {other}\r\nContent-Length: 0\r\n\r\n".encode()
        else:
            yield _OK + b"Content-Length: %d\r\n\r\n" % len(_GOOD) + _GOOD

    server.answers = answers
    server.requests.clear()
    client.judge(tally, "a password and another host", keys, good=True)
    if not any("Authorization" in request for request in server.requests if "Host: 127.0.0.1" in request):
        tally.wrong.append("no password was sent to its own host")
    if any("Authorization" in request for request in server.requests if "Host: localhost" in request):
        tally.escaped.append("the password was sent to another host")


# Git -----------------------------------------------------------------------------------------------------------------


def _git(client: Client, server: Server) -> Tally:
    tally = Tally("hostile Git repositories")
    root, files = client.root, {"a.c": b"int a;\n"}
    for number, place in enumerate((
        f"ext::sh -c 'touch {root}/escaped'", f"ext::touch {root}/escaped", "--upload-pack=touch escaped", "-x",
        "fd::17", f"--config=core.sshCommand=touch {root}/escaped", "git@-oProxyCommand=touch:x", "ssh://-oProxyCommand=x/y",
        "file://", "http://", "https://127.0.0.1:1/x", "testgit::x", "::x", "a\\nb", "ssh://127.0.0.1:1/x",
    )):  # fmt: skip
        client.judge(tally, f"address {number}: {place}", f'git: "{place}", version: main')
    for number, location in enumerate((
        f"file://{root}/remote0.git", f"ext::touch {root}/escaped", "ftp://127.0.0.1/", "http://127.0.0.1:1/",
        "\x1b[2J",
    )):  # fmt: skip
        head = f"HTTP/1.1 302 Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()
        server.answers = lambda _, head=head: iter([head])  # type: ignore[misc]
        client.judge(tally, f"redirection {number}", f"git: 'http://127.0.0.1:{server.port}/x.git', version: main")
    for name, data in {"garbage": b"x" * 1000, "nothing": b"", "a page": _OK + b"\r\n<html>"}.items():
        server.answers = lambda _, data=data: iter([data])  # type: ignore[misc]
        client.judge(tally, f"HTTP: {name}", f"git: 'http://127.0.0.1:{server.port}/x.git', version: main")
    for number, path in enumerate(("..", ".git", ".GIT", "git~1", ".", "a/b")):
        remote = Remote(root / f"tree{number}.git")
        blob = remote.blob(b"#!/bin/sh\n")
        remote.commit_tree(tree_object(("100644", path, blob)))
        client.judge(tally, f"a file called {path}", f"git: '{remote.url}', version: main")
    for number, target in enumerate((f"{root}/secret", "../../../../../secret", "/etc/passwd")):
        remote = Remote(root / f"link{number}.git")
        remote.commit({**files, "l": target.encode()}, modes={"l": "120000"})
        client.judge(tally, f"a link to {target}", f"git: '{remote.url}', version: main")
    _hostile_trees(client, tally)
    _moved_tag(client, tally)
    _git_server(client, tally)
    return tally


def _hostile_trees(client: Client, tally: Tally) -> None:
    """Repositories whose files must have no effect on Git."""
    command = f"touch {client.root}/escaped"
    module = f'[submodule "s"]\n\tpath = s\n\turl = ext::{command}\n'
    contents = {
        "a submodule": {".gitmodules": module},
        "a submodule with a program": {".gitmodules": f"{module}\tupdate = !{command}\n"},
        "a filter": {".gitattributes": "* filter=lfs diff=x merge=x export-subst\n", ".gitconfig": f"!{command}\n"},
        "a file called HEAD": {"HEAD": "ref: refs/heads/main\n", "config": f"[core]\n\tfsmonitor = {command}\n"},
    }
    for number, (what, texts) in enumerate(contents.items()):
        remote = Remote(client.root / f"hostile{number}.git")
        files = {"a.c": b"int a;\n", **{name: text.encode() for name, text in texts.items()}}
        modes = {}
        if "submodule" in what:
            files["s"], modes["s"] = b"1" * 40, "160000"
        remote.commit(files, modes=modes)
        good = what != "a submodule with a program"  # Git's fsck refuses it
        client.judge(tally, what, f"git: '{remote.url}', version: main", good=good)


class GitServer(BaseHTTPRequestHandler):
    """Git's own server for HTTP; ``redirect`` answers requests for a pack with a redirection."""

    folder: Path
    redirect = ""

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _answer(self, body: bytes) -> None:
        if body and self.redirect:
            self.send_response(302)
            self.send_header("Location", self.redirect)
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        environment = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(self.folder), "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": self.command, "CONTENT_LENGTH": str(len(body)),
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
        }  # fmt: skip
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _git_server(client: Client, tally: Tally) -> None:
    """Fetch from a Git server that moves a tag, and redirects after its first answer."""
    remote = Remote(client.root / "served.git")
    remote.commit({"a.c": b"int first;\n"})
    remote.tag("v1")
    handler = type("Handler", (GitServer,), {"folder": client.root})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/served.git"
        client.judge(tally, "a tag of a server", f"git: '{address}', version: v1", good=True)
        _move_tag(client, tally, remote, address, "moved-on-server")
        for location in (f"file://{client.root}/served.git", f"ext::touch {client.root}/escaped", "ftp://127.0.0.1/x",
                         f"ssh://-oProxyCommand=touch {client.root}/escaped/x"):  # fmt: skip
            handler.redirect = location  # type: ignore[attr-defined]
            client.judge(tally, f"a pack at {location}", f"git: '{address}', version: v1")
        server.shutdown()


def _moved_tag(client: Client, tally: Tally) -> None:
    remote = Remote(client.root / "moved.git")
    remote.commit({"a.c": b"int first;\n"})
    remote.tag("v1")
    client.judge(tally, "a tag", f"git: '{remote.url}', version: v1", good=True)
    _move_tag(client, tally, remote, remote.url, "moved")


def _move_tag(client: Client, tally: Tally, remote: Remote, address: str, name: str) -> None:
    """Move a tag after it was fetched and locked: a frozen build must use the commit of the lock file."""
    first = remote.hash_of("refs/tags/v1")
    project = client.root / "project"
    cache = client.root / f"caches/{name}"
    environment = {**os.environ, "MLFBUILD_CACHE": str(cache), "HOME": str(client.root / "home")}

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "mlfbuild", *words]
        return subprocess.run(line, cwd=project, env=environment, capture_output=True, text=True, timeout=120)

    (project / "mlfbuild.lock").unlink(missing_ok=True)
    locked = command("lock", "-q")
    assert locked.returncode == 0, locked.stderr
    remote.commit({"a.c": b"int second;\n"})
    git(remote.folder, "update-ref", "refs/tags/v1", "refs/heads/main")
    ended = command("fetch", "-q")
    tally.end("a moved tag", ended.returncode, ended.stderr)
    trees = [path.read_bytes() for path in (cache / "trees").glob("*/a.c")]
    if trees != [b"int first;\n"]:
        tally.wrong.append(f"a moved tag of {address}: {ended.returncode}, {trees}, locked {first}")
    ended = command("build", "-q", "--frozen")
    tally.end("a frozen build", ended.returncode, ended.stderr)
    if ended.returncode != 0:
        tally.wrong.append(f"a frozen build after a tag moved: {ended.stderr}")
    (project / "mlfbuild.lock").unlink()
