"""`mlfbuild run --sandbox`: hostile code of an archive reaches nothing, and its answer is not trusted."""

import io
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild import verify
from mlfbuild.archive import pack_archive
from mlfbuild.core import ProcessFailedError
from mlfbuild.library import Library
from mlfbuild.native.graph import DType, Graph, Node, Tensor, ops
from mlfbuild.verify import sandbox
from support.command import Folder
from support.errors import raises
from support.native import compile_network

X = np.arange(8, dtype=np.float32).reshape(2, 1, 4)
HOSTILE = """
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
__attribute__((constructor)) static void attack(void) {
  struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(%(port)d)};
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (open("%(root)s/secret", O_RDONLY) >= 0) _exit(41);
  if (open("%(root)s/x.npz", O_WRONLY) >= 0) _exit(42);
  if (connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&place, sizeof place) == 0) _exit(43);
  if (kill(%(pid)d, 0) == 0) _exit(44);
  if (open("/usr/bin/sh", O_WRONLY) >= 0 || open("/usr/new", O_CREAT | O_WRONLY, 0600) >= 0) _exit(45);
  if (malloc((size_t)5 << 30)) _exit(46);
  struct rlimit time;
  if (getrlimit(RLIMIT_CPU, &time) != 0 || time.rlim_max > 600) _exit(48);
  if (open("/proc/sys/kernel/core_pattern", O_WRONLY) >= 0) _exit(49);
  if (access("/etc/passwd", F_OK) == 0 || access("%(home)s", F_OK) == 0 || access("/var", F_OK) == 0) _exit(47);
}
"""

BUSY = """
#include <signal.h>
#include <sys/resource.h>
__attribute__((constructor)) static void work(void) {
  const struct rlimit more = {RLIM_INFINITY, RLIM_INFINITY};
  signal(SIGXCPU, SIG_IGN);
  setrlimit(RLIMIT_CPU, &more);
  for (volatile int for_ever = 1; for_ever;) { }
}
"""


@pytest.fixture
def listener() -> Iterator[int]:
    """The port of a server on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def project(folder: Folder, tool: Callable[[str], str], listener: int, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A folder with ``net.tar``, which adds ``x`` to itself, and ``hostile.tar``, whose code attacks this machine."""
    tool("gcc")
    probe = [tool("bwrap"), "--unshare-all", "--ro-bind", "/", "/", "true"]
    if subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("this container forbids namespaces, so bubblewrap does not work")
    monkeypatch.chdir(folder.root)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.root / "cache"))
    tensors = [Tensor(name, (1, 4), DType.FLOAT32) for name in ("x", "y:0")]
    library = compile_network(Graph("net", tensors, [Node("sum", ops.Add(), ("x", "x"), ("y:0",))], ["x"], ["y:0"]))
    folder.write("net.tar", pack_archive(library))
    folder.write("secret", "secret")
    np.savez(folder.root / "x.npz", in0=X)
    home = next((path for path in Path.home().iterdir() if path.is_file()), folder.root / "secret")
    attack = HOSTILE % {"port": listener, "root": folder.root, "pid": os.getpid(), "home": home}
    folder.write("hostile.tar", archive_with(library, attack))
    folder.write("busy.tar", archive_with(library, BUSY))
    return folder


def archive_with(library: Library, code: str) -> bytes:
    """Return the archive of a library with more code in its C files."""
    (module,) = library.modules
    files = [
        replace(file, content=code.encode() + bytes(file.content)) if str(file.path).endswith(".c") else file
        for file in module.codegen
    ]
    return pack_archive(replace(library, modules=(replace(module, codegen=tuple(files)),)))


RUN = ("--inputs", "x.npz", "-o", "y.npz")


def test_an_attack_succeeds_without_a_sandbox_and_fails_in_one(project: Folder) -> None:
    status, code, _ = project.refused("run", "hostile.tar", *RUN)
    assert (status, code) == (7, "run-crashed")
    ended = project.run("run", "hostile.tar", *RUN, "--sandbox")
    assert (ended.status, ended.out, ended.err) == (0, "y.npz: 2 cases of net\n", "")
    np.testing.assert_array_equal(np.load(project.root / "y.npz")["y:0"], 2 * X)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("user", ["root", "nobody"])
def test_the_kernel_cannot_be_changed_in_a_sandbox(user: str) -> None:
    """Root stays root in it, so only the mounts and the missing capabilities protect /proc/sys."""
    if os.getuid() != 0 and user == "root":
        pytest.skip("only root can test as root")
    as_user = {"user": user} if os.getuid() == 0 else {}
    asked = "grep ^CapEff: /proc/self/status; echo changed > /proc/sys/kernel/hostname"
    walls = list(sandbox._walls([]))
    walls = walls[: walls.index("/tmp") + 1]  # without this Python, which may be in a folder of root
    words = ["bwrap", *walls, "--", "/bin/sh", "-c", asked]
    done = subprocess.run(words, capture_output=True, text=True, cwd="/", **as_user)  # type: ignore[call-overload]
    assert done.stdout == "CapEff:\t0000000000000000\n" and done.returncode != 0, done.stderr


@pytest.mark.sweep
def test_code_in_a_sandbox_gets_no_more_than_its_processor_time(
    project: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its code cannot raise the limit, and ignores the signal."""
    monkeypatch.setattr(sandbox, "CPU_SECONDS", 3)
    ended = project.run("run", "busy.tar", *RUN, "--sandbox", "--format", "json")
    assert (ended.status, ended.error["code"]) == (7, "run-crashed")
    assert "SIGKILL" in ended.error["reason"]
    assert not (project.root / "y.npz").exists()


def test_zeros_run_in_a_sandbox(project: Folder) -> None:
    ended = project.run("run", "net.tar", "--sandbox", "--format", "json")
    assert (ended.status, ended.json["inputs"]) == (0, "zeros")
    assert ended.json["values"] == {"y:0": [[[0.0] * 4]]}


def test_errors_in_a_sandbox_are_those_without_one(project: Folder) -> None:
    np.savez(project.root / "x.npz", in0=X[:, :, :3])
    expected = project.refused("run", "net.tar", *RUN)
    assert project.refused("run", "net.tar", *RUN, "--sandbox") == expected
    assert not (project.root / "y.npz").exists()


def test_without_bubblewrap_the_package_is_named(project: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFBUILD_BWRAP", "no-such-bwrap")
    ended = project.run("run", "hostile.tar", *RUN, "--sandbox", "--format", "json")
    assert (ended.status, ended.error["code"], ended.error["place"]) == (3, "program-not-found", "no-such-bwrap")
    assert "apt-get install bubblewrap" in ended.error["hint"]


def npz(**arrays: object) -> bytes:
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)  # type: ignore[arg-type]
    return data.getvalue()


@pytest.mark.parametrize(
    "answer",
    [b"", b"PK\x03\x04", npz(y=np.array([{}], object)), npz(y=np.zeros(1 << 20)), npz(y=X)[:-30]],
    ids=["nothing", "no-zip", "pickle", "bomb", "cut"],
)
def test_answers_are_not_trusted(answer: bytes) -> None:
    with raises(ProcessFailedError, "sandbox-answer-unreadable"):
        sandbox._arrays(answer, 1 << 16)


@pytest.mark.parametrize(
    "answer",
    [
        {}, {"y:0": X[:1]}, {"y:0": X.astype(str)}, {"y:0": X.astype(np.int32)}, {"y:0": X[:, :, :3]},
        {"y:0": X[0, 0, 0]}, {"y:0": X, "z": X}, {"z": X},
    ],
)  # fmt: skip
def test_an_answer_must_have_the_outputs(
    project: Folder, answer: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "run_in_sandbox", lambda *_, **__: answer)
    refused = project.refused("run", "net.tar", "--inputs", "x.npz", "--sandbox")
    assert refused == (7, "sandbox-answer-wrong", "sandbox")


@pytest.mark.parametrize("line", ["", "{", "[]", '{"kind": "odd"}', '{"event": "error", "kind": "usage"}'])
def test_an_end_without_a_known_error_is_a_failed_program(line: str) -> None:
    error = sandbox._error(line, 9)
    assert (type(error), error.code) == (ProcessFailedError, "sandbox-failed")


@pytest.mark.sweep
def test_an_emulated_board_in_a_sandbox(project: Folder, tool: Callable[[str], str]) -> None:
    tool("qemu-system-arm")
    ended = project.run("run", "net.tar", *RUN, "--sandbox", "--board", "mps2-an386")
    assert (ended.status, ended.err) == (0, "")
    np.testing.assert_array_equal(np.load(project.root / "y.npz")["y:0"], 2 * X)
