"""Invalid files and broken machines: one line, the right exit status, no partial output."""

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.command import INTERRUPTED, Ended, Folder
from support.errors import assert_printed
from support.examples import first_on_push
from support.firmware_repo import tiny_network

MODEL = tiny_network(0)
COMPILE = ("compile", "broken.tflite", "--cpu", "cortex-m4", "-o", "out/a.tar")


def assert_one_line(ended: Ended, status: int) -> None:
    assert ended.status == status, ended
    assert ended.out == ""
    assert re.fullmatch(r"mlfbuild: [^\n]+\n", ended.err), ended.err


def noise(size: int) -> bytes:
    """Return ``size`` pseudo-random bytes, always the same."""
    return random.Random(size).randbytes(size)


def spoiled(seed: int) -> bytes:
    """Return the model with a few bytes changed."""
    chance = random.Random(seed)
    data = bytearray(MODEL)
    for _ in range(chance.randint(1, 8)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)


@pytest.mark.parametrize(
    "content",
    [b"", MODEL[:1], MODEL[:40], MODEL[: len(MODEL) // 2], MODEL[:-1][:200], noise(5000), b"\0" * 5000,
     b"x" * (1 << 20), b"mlfbuild: 1\n", b"PK\x03\x04" + MODEL],
    ids=["empty", "one-byte", "header", "half", "cut", "random", "zeros", "large", "text", "zip"],
)  # fmt: skip
def test_files_that_are_not_models(folder: Folder, content: bytes) -> None:
    folder.write("broken.tflite", content)
    assert_one_line(folder.run(*COMPILE), 5)
    assert not (folder.root / "out").exists()


@pytest.mark.parametrize("seed", range(60))
def test_damaged_model_compiles_or_is_refused_in_one_line(folder: Folder, seed: int) -> None:
    folder.write("broken.tflite", spoiled(seed))
    ended = folder.run(*COMPILE)
    assert ended.status in {0, 4, 5}
    if ended.status:
        assert_one_line(ended, ended.status)
        assert not (folder.root / "out").exists()


@pytest.mark.parametrize("content", [b"", MODEL, noise(3000), b"\x1f\x8b" + noise(500)])
def test_files_that_are_not_archives(folder: Folder, content: bytes) -> None:
    folder.write("broken.tar", content)
    assert_one_line(folder.run("unpack", "-o", "tree", "broken.tar"), 5)
    assert not (folder.root / "tree").exists()
    inspected = folder.run("inspect", "broken.tar")
    if content == MODEL:  # the content decides, not the name
        assert inspected.status == 0
    else:
        assert_one_line(inspected, 5)


def test_folder_as_a_source_is_refused(folder: Folder) -> None:
    assert_one_line(folder.run("compile", "models", "--cpu", "host", "-o", "a.tar"), 5)
    (folder.root / "models/beta.tflite").unlink()
    (folder.root / "models/beta.tflite").mkdir()
    assert folder.mistakes("build") == [("not-a-file", "mlfbuild.yml:6:18: models.beta.source")]


@pytest.mark.parametrize(
    ("content", "code", "place"),
    [
        (b"mlfbuild: 1\ntargets: {m4: {cpu: host}\n", "not-yaml", "mlfbuild.yml:3:1"),
        (b"\x89PNG\r\n\x1a\n", "not-utf8", "mlfbuild.yml:1:1"),
        (MODEL, "not-utf8", "mlfbuild.yml:1:57"),
        (b"", "project-file-empty", "mlfbuild.yml:1:1"),
    ],
    ids=["open-bracket", "png", "model", "empty"],
)
def test_files_that_are_not_project_files(folder: Folder, content: bytes, code: str, place: str) -> None:
    folder.write("mlfbuild.yml", content)
    assert folder.mistakes("build") == [(code, place)]
    assert folder.run("build").err.count("\n") == 1


@pytest.mark.parametrize("output", ["/proc/a.tar", "main.c/a.tar", "/dev/full/a.tar"])
def test_read_only_output_folder(folder: Folder, output: str) -> None:
    assert_one_line(folder.run("compile", "models/alpha.tflite", "--cpu", "host", "-o", output), 8)


def test_file_in_place_of_the_build_folder(folder: Folder) -> None:
    folder.write("build", "mine")
    assert folder.refused("build", "-q") == (8, "file-in-the-way", "build")
    assert (folder.root / "build").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "status"),
    [("main.c", 6), ("text.tar", 6), ("models/alpha.tflite", 2), ("alpha", 2), ("models", 2), (".", 2), ("..", 2)],
    ids=["own-c-file", "text", "model", "no-suffix", "folder", "this-folder", "parent-folder"],
)
def test_outputs_of_another_kind_are_not_overwritten(folder: Folder, name: str, status: int) -> None:
    folder.write("text.tar", "mine")
    before = {path: (folder.root / path).read_bytes() for path in folder.files()}
    assert_one_line(folder.run("compile", "models/alpha.tflite", "--cpu", "host", "-o", name), status)
    assert {path: (folder.root / path).read_bytes() for path in folder.files()} == before


def test_unpacking_over_other_files(folder: Folder) -> None:
    folder.run("compile", "models/alpha.tflite", "--cpu", "host", "-o", "a.tar")
    folder.write("tree/metadata.json", "mine")
    assert_one_line(folder.run("unpack", "a.tar", "-o", "tree"), 6)
    assert {path for path in folder.files() if path.startswith("tree/")} == {"tree/metadata.json"}


def test_missing_tool_is_reported_with_install_command(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    for name in ("CMAKE", "NINJA"):
        monkeypatch.delenv(f"MLFBUILD_{name}", raising=False)
    ended = folder.run("build", "-q")
    assert_one_line(ended, 3)
    assert "apt-get install" in ended.err


@pytest.mark.usefixtures("host_tools")
def test_output_of_a_failing_compiler_is_printed(folder: Folder) -> None:
    folder.write("main.c", "int main(void) { return undeclared; }\n")
    ended = folder.run("build", "-q", status=7)
    assert ended.err.startswith("mlfbuild: cmake: failed with exit status ")
    assert "undeclared" in ended.err
    assert "Traceback" not in ended.err


def test_full_disk_leaves_no_files(folder: Folder) -> None:
    def allow_files_of_1_kib() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

    command = ("compile", "models/alpha.tflite", "--cpu", "host", "-o", "out/a.tar")
    ended = folder.spawn(*command, prepare=allow_files_of_1_kib)
    assert_one_line(ended, 8)
    assert "File too large" in ended.err
    assert not list((folder.root / "out").iterdir())
    ended = folder.spawn("build", "-q", "-j", "2", prepare=allow_files_of_1_kib)
    assert ended.status == 8
    assert re.fullmatch(r"(mlfbuild: build/mlf/pc/\w+\.tar: cannot write: File too large[^\n]+\n){1,2}", ended.err)
    assert not [path for path in folder.files() if path.endswith((".tar", ".tmp"))]


@pytest.mark.usefixtures("host_tools")
def test_disk_that_fills_while_cmake_configures(folder: Folder) -> None:
    """The build folder of CMake is a disk of 32 KiB, on which CMake cannot check the compiler."""
    assert folder.run("build", "-q").status == 0
    shutil.rmtree(folder.root / "build/pc/app")
    (folder.root / "build/pc/app").mkdir()
    alone = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    small = 'mount -t tmpfs -o size=32k none build/pc/app && exec "$@"'
    if subprocess.run([*alone, small, "sh", "true"], cwd=folder.root, check=False).returncode != 0:
        pytest.skip("this machine lets no user mount a disk")
    command = [*alone, small, "sh", sys.executable, "-m", "mlfbuild", "build", "-q"]
    ended = subprocess.run(command, cwd=folder.root, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (8, "")
    assert_printed(ended.stderr, "disk-full", "mlfbuild: build/pc/app")


@pytest.mark.usefixtures("host_tools")
@pytest.mark.parametrize("character", [";", "$", "'", '"', "[", "\\"])
def test_folder_in_which_cmake_cannot_build_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], character: str
) -> None:
    root = tmp_path / f"a{character}b"
    root.mkdir()
    monkeypatch.chdir(root)
    inside = Folder(root, capsys)
    assert ("path-unsuited", "mlfbuild.yml:1:1") in inside.mistakes("check")
    assert inside.refused("build", "-j", "1") == (2, "path-unsuited", "firmware 'app' for target 'pc'")


@pytest.mark.usefixtures("host_tools")
def test_folder_with_unusual_characters_is_built_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "a (b) [c] #d,e"
    root.mkdir()
    monkeypatch.chdir(root)
    inside = Folder(root, capsys)
    assert inside.run("check").status == 0
    ended = inside.run("build", "-q", "-j", "1")
    assert ended.status == 0, ended.err


@pytest.mark.parametrize("arguments", [("schema",), ("--help",), ("check",), ("inspect", "a.tar")])
def test_results_to_a_full_disk(folder: Folder, arguments: tuple[str, ...]) -> None:
    folder.run("compile", "models/alpha.tflite", "--cpu", "host", "-o", "a.tar")
    with Path("/dev/full").open("w") as full:
        assert_one_line(folder.spawn(*arguments, stdout=full), 8)


def test_closed_pipe_ends_quietly(folder: Folder) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = folder.spawn("schema", stdout=writer)
    os.close(writer)
    assert (ended.status, ended.err) == (0, "")


def test_unprintable_text_is_escaped(folder: Folder) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    ended = folder.spawn("compile", "models/alpha.tflite", "--cpu", "host", "-o", "→.tar", env=environment)
    assert ended.status == 0 and ended.err.startswith("compile alpha for host: compiled (")
    assert ended.out.startswith("\\u2192.tar: model alpha")


def interrupted_after(folder: Folder, seconds: float, *arguments: str) -> Ended:
    """Send SIGINT, like Ctrl-C, to the group of a new process ``seconds`` after it has made its build folder."""
    with subprocess.Popen(
        [sys.executable, "-m", "mlfbuild", *arguments], cwd=folder.root, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        while not (folder.root / "build").exists():  # a busy machine takes long to start Python
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    return Ended(process.returncode, out, err)


@pytest.mark.usefixtures("host_tools")
@pytest.mark.parametrize(
    ("seconds", "jobs"), first_on_push([(0.3, "1"), (0.2, "2"), (0.0, "2"), (0.6, "2"), (1.2, "2")])
)
def test_interrupted_build_is_completed_later(folder: Folder, seconds: float, jobs: str) -> None:
    ended = interrupted_after(folder, seconds, "build", "-q", "-j", jobs)
    assert ended.status in {0, 130}
    assert "Traceback" not in ended.err
    if ended.status == 130:
        assert ended.err == INTERRUPTED
    assert not [path for path in folder.files() if "/." in path and path.endswith(".tmp")]
    for archive in folder.root.rglob("*.tar"):
        assert folder.run("inspect", str(archive)).status == 0
    assert folder.spawn("build", "-q").status == 0
    assert subprocess.run([folder.root / "build/pc/app/app"], check=True, capture_output=True).stdout


def test_long_build_can_be_interrupted(folder: Folder, tmp_path: Path) -> None:
    slow = tmp_path / "bin" / "cmake"
    folder.write("bin/cmake", f"#!/bin/sh\nsleep 60\ntouch '{slow.parent}/ended'\n")
    slow.chmod(0o755)
    os.environ["MLFBUILD_CMAKE"] = str(slow)
    try:
        ended = interrupted_after(folder, 2.0, "build", "-q", "-j", "1")
    finally:
        del os.environ["MLFBUILD_CMAKE"]
    assert (ended.status, ended.err) == (130, INTERRUPTED)
    assert not (slow.parent / "ended").exists(), "the program was ended"
