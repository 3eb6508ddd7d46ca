"""The server of docs/ci.md, as its configuration stands there: for mlfbuild and for ccache."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cache.conftest import KEY, OUTPUTS, Notices
from mlfbuild.cache import CacheSettings, open_cache
from mlfbuild.core import sha256
from support.documents import REPOSITORY
from support.nginx import Nginx, serving_nginx

PAGE = (REPOSITORY / "docs/ci.md").read_text()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, nginx: str) -> Iterator[Nginx]:
    (config,) = re.findall(r"^```nginx\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    places = {
        "listen 8080": "listen 127.0.0.1:{port}",
        "/srv/cache": "{folder}/srv",
        "/etc/nginx/cache.passwd": "{folder}/passwd",
    }
    for documented, here in places.items():
        assert documented in config
        config = config.replace(documented, here)
    folder = tmp_path_factory.mktemp("nginx")
    for name in ("data", "tmp"):
        (folder / "srv" / name).mkdir(parents=True)
    (folder / "passwd").write_text("ci:{PLAIN}secret\n")
    with serving_nginx(nginx, folder, config) as started:
        yield started


def test_ci_writes_and_all_read(server: Nginx, tmp_path: Path) -> None:
    notices = Notices()
    settings = CacheSettings(limit=0, remote=server.url, push="always")
    open_cache(settings, notices).store(KEY, OUTPUTS)
    assert notices == [f"cache: {server.url}: HTTP status 401; results of this run are not sent to it"]
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login ci password secret\n")
    notices.clear()
    open_cache(settings, notices).store(KEY, OUTPUTS)
    (tmp_path / ".netrc").unlink()
    found = open_cache(settings, notices).fetch(KEY)
    assert found is not None
    assert (dict(found.outputs), notices) == (OUTPUTS, [])


def test_other_paths_do_not_exist(server: Nginx) -> None:
    import requests

    for path in ("", "tmp/", "cas/", f"cas/{KEY[:-1]}", f"other/{KEY}"):
        assert requests.get(f"{server.url}/{path}", timeout=60).status_code == 404
        assert requests.put(f"{server.url}/{path}", data=b"x", auth=("ci", "secret"), timeout=60).status_code in {
            404,
            405,
        }


def test_old_files_are_removed_by_the_documented_command(server: Nginx) -> None:
    (command,) = re.findall(r"`(find /srv/cache/data[^`]*)`", PAGE)
    data = server.folder / "srv/data/cas"
    data.mkdir(exist_ok=True)
    for name, days in (("old", 40), ("new", 20)):
        (data / sha256(name.encode())).write_text(name)
        status = (data / sha256(name.encode())).stat()
        os.utime(data / sha256(name.encode()), (status.st_atime - days * 86400, status.st_mtime))
    words = command.replace("/srv/cache", str(server.folder / "srv")).split()
    subprocess.run(words, check=True)
    assert [(data / sha256(name)).exists() for name in (b"old", b"new")] == [False, True]


def test_ccache_uses_the_same_server(server: Nginx, tmp_path: Path) -> None:
    ccache = shutil.which("ccache")
    if ccache is None:
        pytest.skip("ccache is not installed")
    (documented,) = re.findall(r"`CCACHE_REMOTE_STORAGE='(\S+)'`", PAGE)
    address = documented.replace("cache.example:8080", f"127.0.0.1:{server.port}")
    assert "`|read-only`" in PAGE
    (tmp_path / "a.c").write_text("int f(int x) { return x * 3; }\n")
    machines = {"ci": address.replace("http://", "http://ci:secret@"), "laptop": f"{address}|read-only"}
    server.requests()
    objects = []
    for machine, storage in machines.items():
        env = {**os.environ, "CCACHE_DIR": str(tmp_path / machine), "CCACHE_REMOTE_STORAGE": storage}
        for name in ("CCACHE_DISABLE", "CCACHE_CONFIGPATH"):
            env.pop(name, None)
        subprocess.run([ccache, "gcc", "-c", "a.c", "-o", f"{machine}.o"], cwd=tmp_path, env=env, check=True)
        objects.append((tmp_path / f"{machine}.o").read_bytes())
    log = [(method, status) for method, _, status, *_ in server.requests()]
    assert log[:2] == [("GET", "404")] * 2
    assert ("PUT", "201") in log
    assert log[-2:] == [("GET", "200")] * 2
    assert objects[0] == objects[1]
