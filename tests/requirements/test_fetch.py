"""`mlfbuild fetch` when killed, run concurrently and on full disks; and builds, which do not use the network."""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from mlfbuild.archive import pack_archive
from mlfbuild.cli.output.invocation import run
from mlfbuild.library import CodegenFile, ExternalDependency, Library
from mlfbuild.requirements.archives import archive_root
from mlfbuild.requirements.cache import Cache
from mlfbuild.requirements.git import fetched_pin, git_root
from support import warm
from support.examples import first_on_push
from support.firmware_repo import tiny_network
from support.git_remote import FILES, Remote
from support.http_source import Source, serving
from support.libraries import native_module
from support.processes import wait_for

LARGE = {f"Source/f{number}.c": random.Random(number).randbytes(3000) for number in range(100)}
SLOW_SSH = Path(__file__).parents[1] / "support/slow_ssh.py"


class Repo:
    """A project with dependencies and a separate cache."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.cache = Cache(root / "cache")
        self.remote = Remote(root / "remote.git")
        (root / "a.tflite").write_bytes(tiny_network(0))
        monkeypatch.setenv("MLFBUILD_CACHE", str(self.cache.root))
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
        monkeypatch.chdir(root)

    def depend(self, **places: str) -> None:
        lines = [f"  {name}: {{{place}}}\n" for name, place in places.items()]
        self.write(f"dependencies:\n{''.join(lines)}" if lines else "")

    def write(self, more: str) -> None:
        project = "mlfbuild: 1\ntargets:\n  pc: {cpu: host}\nmodels:\n  a: {source: a.tflite}\n"
        (self.root / "mlfbuild.yml").write_text(project + more)

    def start(self, **environment: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "mlfbuild", "fetch"]
        return subprocess.Popen(
            command,
            cwd=self.root,
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def fetch(self, **environment: str) -> tuple[int, str, str]:
        """Run the verb in a separate process and return status, stdout and stderr."""
        done = warm.run("mlfbuild", "fetch", cwd=self.root, env=os.environ | environment)
        return done.returncode, done.stdout, done.stderr

    def slow_ssh(self, stall_after: int = 1 << 30) -> dict[str, str]:
        """Return variables that make Git use an ssh that stalls after some bytes until the file ``go-on`` exists."""
        return {
            "GIT_SSH_COMMAND": f"{sys.executable} {SLOW_SSH}",
            "GIT_SSH_VARIANT": "simple",
            "MLF_STALL_FOLDER": str(self.root),
            "MLF_STALL_AFTER": str(stall_after),
        }

    def check(self, url: str, files: dict[str, bytes], version: str = "main") -> None:
        """Check that the cache has the version, and that all files are intact."""
        pin = fetched_pin(url, version, self.cache)
        assert pin is not None
        root = git_root(url, pin, self.cache)
        assert {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()} == files
        for tree in (path for path in (self.cache.root / "trees").iterdir() if path.is_dir()):
            assert self.cache.is_intact(tree.name, self.cache.written_hash(tree.name))


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: Callable[[str], str]) -> Iterator[Repo]:
    tool("git")
    yield Repo(tmp_path, monkeypatch)
    (tmp_path / "go-on").touch()  # for processes that still wait for it


@pytest.fixture
def source() -> Iterator[Source]:
    with serving() as source:
        yield source


def archive(repo: Repo) -> tuple[bytes, str]:
    """Return an archive of the library, and its hash."""
    command = ["git", f"--git-dir={repo.remote.folder}", "archive", "--format=tar.gz", "--prefix=lib-1/", "main"]
    data = subprocess.run(command, check=True, capture_output=True, timeout=60).stdout
    return data, hashlib.sha256(data).hexdigest()


# What it prints ------------------------------------------------------------------------------------------------------


def test_fetch_prints_each_source(repo: Repo, source: Source, capsys: pytest.CaptureFixture[str]) -> None:
    commit = repo.remote.commit()
    source.files["lib.tgz"], digest = archive(repo)
    repo.depend(
        lib="git: remote.git, version: main",
        other=f"url: '{source.url('lib.tgz')}', sha256: '{digest}'",
        here="path: ., version: '1.0'",
        there="package: There",
    )
    assert run(["fetch"]) == 0
    out, err = capsys.readouterr()
    assert out == f"lib: main, commit {commit[:12]}\nother: archive {digest[:12]}\n"
    assert [line.rpartition(" (")[0] for line in err.splitlines()] == [
        f"fetch lib: fetched main, commit {commit[:12]}",
        f"fetch other: fetched archive {digest[:12]}",
    ]
    assert run(["fetch"]) == 0
    out, err = capsys.readouterr()
    assert out == f"lib: main, commit {commit[:12]}, already fetched\nother: archive {digest[:12]}, already fetched\n"
    assert err == "nothing to fetch: 2 jobs up to date\n"
    assert run(["fetch", "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    assert run(["fetch", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    lib, other = json.loads(out)
    tree = repo.cache.written_hash(commit)
    assert lib == {
        "name": "lib", "kind": "git", "from": "remote.git", "version": "main", "commit": commit, "sha256": None,
        "tree": tree, "folder": str(repo.cache.tree(commit)), "fetched": False,
    }  # fmt: skip
    assert (other["kind"], other["sha256"], other["commit"], other["fetched"]) == ("url", digest, None, False)
    assert Path(other["folder"], "Include/lib.h").read_bytes() == FILES["Include/lib.h"]
    assert {json.loads(line)["event"] for line in err.splitlines()} >= {"job-started", "job-finished"}


def test_nothing_to_fetch(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    repo.depend()
    assert run(["fetch"]) == 0
    assert capsys.readouterr() == ("nothing to fetch: no provider is a repository or an archive on a server\n", "")
    assert not repo.cache.root.exists()


def test_fetch_does_not_need_models(repo: Repo) -> None:
    repo.remote.commit()
    repo.depend(lib="git: remote.git, version: main")
    (repo.root / "a.tflite").unlink()
    assert run(["fetch", "-q"]) == 0


def test_errors_do_not_stop_other_downloads(repo: Repo, source: Source, capsys: pytest.CaptureFixture[str]) -> None:
    commit = repo.remote.commit()
    repo.remote.tag("v7.0.0")
    url = source.url("lib.tgz")
    repo.depend(
        gone=f"url: '{url}', sha256: '{'0' * 64}'",
        wrong="git: remote.git, version: v7.0.1",
        right="git: remote.git, version: v7.0.0",
    )
    assert run(["fetch"]) == 7
    out, err = capsys.readouterr()
    assert out == ""
    wrong, gone = [line for line in err.splitlines() if not line.startswith("fetch ")]
    assert wrong.startswith(f"mlfbuild.yml:8:3: dependencies.wrong: {repo.remote.folder}: ") and '"v7.0.0"' in wrong
    assert gone.startswith(f"mlfbuild: {url}: ") and "404" in gone
    assert repo.cache.tree(commit).is_dir()
    repo.depend(wrong="git: remote.git, version: v7.0.1")
    assert run(["fetch"]) == 2


# Builds --------------------------------------------------------------------------------------------------------------


def test_builds_do_not_access_the_network(repo: Repo, source: Source) -> None:
    repo.remote.commit()
    source.files["lib.tgz"], digest = archive(repo)
    repo.depend(lib="git: remote.git, version: main", other=f"url: '{source.url('lib.tgz')}', sha256: '{digest}'")
    repo.remote.remove()
    for verb in (["check"], ["plan"], ["build"]):
        assert run([*verb, "-q"]) == 0
    assert source.requests == [] and not repo.cache.root.exists()


def test_builds_fail_without_fetched_sources(
    repo: Repo, source: Source, tool: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    tool("gcc")
    repo.remote.commit()
    source.files["lib.tgz"], digest = archive(repo)
    code = CodegenFile(PurePosixPath("host/src/a_lib1.c"), b'#include "lib.h"\nint g(void) { return f(); }\n')
    needy = native_module("a")
    requirement = ExternalDependency("lib", "https://example.org/lib", "git", "1")
    module = replace(needy, model_id="", codegen=(*needy.codegen, code), external_dependencies=(requirement,))
    (repo.root / "a.tar").write_bytes(pack_archive(Library((module,))))
    url = source.url("lib.tgz")
    repo.depend(lib=f"url: '{url}', version: '1', sha256: '{digest}', sources: [Source/*.c], include-dirs: [Include]")
    project = repo.root / "mlfbuild.yml"
    project.write_text(project.read_text().replace("a.tflite", "a.tar"))
    assert run(["build", "-q"]) == 3
    assert capsys.readouterr().err.startswith(f"mlfbuild: {url}: ")
    assert source.requests == []
    assert run(["fetch", "-q"]) == 0
    assert run(["build", "-q"]) == 0
    assert (repo.root / "build/mlf/pc/dependencies/lib/Source/f.c").read_bytes() == FILES["Source/f.c"]
    (repo.cache.tree(digest) / "Source/f.c").write_text("int f(void) { return 2; }\n")
    shutil.rmtree(repo.root / "build")
    assert run(["build", "-q"]) == 0
    assert (repo.root / "build/mlf/pc/dependencies/lib/Source/f.c").read_bytes() == FILES["Source/f.c"]
    assert len(source.requests) == 1, "builds ask no server"


# Killed --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "after", first_on_push([150_000, 0, 200, 5000]), ids=["halfway", "at once", "asking", "beginning"]
)
def test_fetch_continues_after_kill_during_git_transfer(repo: Repo, after: int) -> None:
    repo.remote.commit(LARGE)
    url = f"ssh://host{repo.remote.folder}"
    repo.depend(lib=f"git: '{url}', version: main")
    with repo.start(**repo.slow_ssh(after)) as process:
        wait_for((repo.root / "stalled").exists)
        process.kill()
        process.communicate()
    # The Git process that it started still waits.
    status, out, err = repo.fetch(**repo.slow_ssh())
    assert (status, out.startswith("lib: main, commit ")) == (0, True), err
    repo.check(url, LARGE)
    (repo.root / "go-on").touch()
    time.sleep(0.3)
    repo.check(url, LARGE)
    assert repo.fetch(**repo.slow_ssh())[0] == 0
    assert list((repo.cache.root / "tmp").glob("*/*")) == []


def test_fetch_continues_after_interrupt(repo: Repo) -> None:
    repo.remote.commit(LARGE)
    repo.depend(lib=f"git: 'ssh://host{repo.remote.folder}', version: main")
    ssh = repo.slow_ssh(150_000)
    with repo.start(**ssh) as process:
        wait_for((repo.root / "stalled").exists)
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1].startswith("mlfbuild: interrupted; run the command again")
    assert list((repo.cache.root / "tmp").iterdir()) == []


@pytest.mark.parametrize("sight", first_on_push(["tmp/*/tree/Source/f5*", "tmp/*/repository", "trees/*"]))
def test_fetch_continues_after_kill_during_checkout(repo: Repo, sight: str) -> None:
    files = {**LARGE, **{f"more/{number}.h": b"%d" % number for number in range(1000)}}
    repo.remote.commit(files)
    repo.depend(lib=f"git: '{repo.remote.url}', version: main")
    with repo.start() as process:
        wait_for(lambda: any(repo.cache.root.glob(sight)) or process.poll() is not None)
        process.kill()
        process.communicate()
    assert repo.fetch()[0] == 0
    repo.check(repo.remote.url, files)
    assert list((repo.cache.root / "tmp").iterdir()) == []


def test_killed_download_starts_again(repo: Repo, source: Source) -> None:
    repo.remote.commit(LARGE)
    data, digest = archive(repo)
    source.files["lib.tgz"] = data
    source.stall_after = 100_000
    repo.depend(lib=f"url: '{source.url('lib.tgz')}', sha256: '{digest}'")
    with repo.start() as process:
        assert source.stalled.wait(30)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    source.stall_after = None
    assert repo.fetch()[0] == 0
    assert (archive_root("", digest, repo.cache) / "Source/f1.c").read_bytes() == LARGE["Source/f1.c"]
    assert list((repo.cache.root / "tmp").iterdir()) == []


# At the same time ----------------------------------------------------------------------------------------------------


def test_concurrent_fetches_on_an_empty_cache(repo: Repo, source: Source) -> None:
    repo.remote.commit(LARGE)
    source.files["lib.tgz"], digest = archive(repo)
    repo.depend(
        lib=f"git: '{repo.remote.url}', version: main", other=f"url: '{source.url('lib.tgz')}', sha256: '{digest}'"
    )
    processes = [repo.start() for _ in range(8)]
    ended = [(process.communicate(timeout=60), process.returncode) for process in processes]
    assert [status for _, status in ended] == [0] * 8, ended
    repo.check(repo.remote.url, LARGE)
    assert source.requests == [("lib.tgz", None)], "one downloads, and the others wait for it"
    assert sum("fetch lib: fetched" in err for (_, err), _ in ended) == 1
    assert list((repo.cache.root / "tmp").iterdir()) == []


def test_waiting_fetch_prints_a_message(repo: Repo, source: Source) -> None:
    repo.remote.commit()
    source.files["lib.tgz"], digest = archive(repo)
    repo.depend(lib=f"url: '{source.url('lib.tgz')}', sha256: '{digest}'")
    seen: list[str] = []
    with repo.cache.work(digest), subprocess.Popen(
        [sys.executable, "-m", "mlfbuild", "fetch", "--format", "json"],
        cwd=repo.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        while "waiting" not in (line := process.stderr.readline()):
            seen.append(line)
        assert json.loads(line) == {"event": "job-progress", "job": 1, "doing": "waiting for another mlfbuild"}
        process.kill()
    assert source.requests == []


# Disks ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(repo: Repo) -> Iterator[Callable[[str], None]]:
    """Put the cache on a disk of 200 KiB; yield a function that mounts it again with other options."""
    folder = repo.cache.root
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=200k", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("only root may mount a small disk")
    try:
        yield lambda options: subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True) and None
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_full_disk_and_read_only_disk(
    repo: Repo, small_disk: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    repo.remote.commit(LARGE)
    repo.depend(lib=f"git: '{repo.remote.url}', version: main")
    assert run(["fetch", "-q"]) == 8
    assert capsys.readouterr().err.startswith(f"mlfbuild: {repo.remote.url}: ")
    assert list((repo.cache.root / "tmp").iterdir()) == []
    small_disk("size=20m")
    assert run(["fetch", "-q"]) == 0
    small_disk("ro")
    repo.check(repo.remote.url, LARGE)
    pin = fetched_pin(repo.remote.url, "main", repo.cache)
    assert pin is not None and git_root(repo.remote.url, pin, repo.cache).is_dir()
    repo.remote.commit()
    assert run(["fetch", "-q"]) == 8
    assert capsys.readouterr().err.startswith(f"mlfbuild: {repo.cache.root}/locks: cannot write: Read-only")


def test_cache_that_cannot_be_created(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repo.remote.commit()
    repo.depend(lib="git: remote.git, version: main")
    (repo.root / "file").touch()
    monkeypatch.setenv("MLFBUILD_CACHE", "file")
    assert run(["fetch", "-q"]) == 8
    assert capsys.readouterr().err.startswith(f"mlfbuild: {repo.root}/file/locks: ")


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from mlfbuild.requirements.cache import default_cache

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("MLFBUILD_CACHE", raising=False)
    assert default_cache().root == tmp_path / ".cache/mlfbuild"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert default_cache().root == tmp_path / "x/mlfbuild"
    monkeypatch.setenv("MLFBUILD_CACHE", "~/mine")
    assert default_cache().root == tmp_path / "mine"
