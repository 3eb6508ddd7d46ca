"""Builds of one project at the same time: one waits for the other, and steps of Ninja run in parallel."""

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlfbuild.archive import write_archive
from mlfbuild.cli.output.invocation import run as main
from mlfbuild.core import files as core_files, locked
from mlfbuild.jobs import LOCKED_VARIABLE, tree_locked
from support.firmware_repo import SITE_TOOL
from support.libraries import native_library

HOLDS = """
import subprocess, sys
from pathlib import Path
from mlfbuild.jobs import folder_locked
with folder_locked(Path("build"), print):
    if sys.argv[1:]:
        sys.exit(subprocess.run(sys.argv[1:]).returncode)
    print("held", flush=True)
    sys.stdin.read()
"""
SCONSTRUCT = """\
import os
env = Environment(ENV=os.environ, tools=["default", "mlf"])
env.MlfModels("mlfbuild.yml")
"""
PROJECT = """\
mlfbuild: 1
targets: {pc: {cpu: host}}
models:
  one: {source: models/tiny.h5, compiler: command, command: [sh, compile.sh, one, two, "{output}"]}
  two: {source: models/tiny.h5, compiler: command, command: [sh, compile.sh, two, one, "{output}"]}
"""
COMPILE = """\
echo $1 >> calls
touch $1.begun
i=0
while [ ! -e $2.begun ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i + 1)); done
[ -e $2.begun ] && cp $1.tar "$3"
"""
MLFBUILD = [sys.executable, "-m", "mlfbuild"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project whose compiler makes each of two models only while it makes the other."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models/tiny.h5").write_bytes(b"tiny")
    (tmp_path / "mlfbuild.yml").write_text(PROJECT)
    (tmp_path / "compile.sh").write_text(COMPILE)
    for name in ("one", "two"):
        write_archive(native_library(name), tmp_path / f"{name}.tar")
    return tmp_path


@pytest.fixture
def holder(root: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the lock of the build folder."""
    command = [sys.executable, "-c", HOLDS]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
        process.kill()


def start(root: Path, *arguments: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([*MLFBUILD, *arguments], cwd=root, stdout=pipe, stderr=pipe, text=True)


def locks(root: Path) -> list[Path]:
    return [path for path in root.rglob(".*") if path.suffix == ".lock"]


def test_a_build_waits_for_another_and_names_it(root: Path, holder: subprocess.Popen[str]) -> None:
    with start(root, "build", "-j", "2") as second:
        assert second.stderr is not None
        expected = f"build: waiting for another build (process {holder.pid})\n"
        assert second.stderr.readline() == expected
        assert not (root / "calls").exists()
        holder.send_signal(signal.SIGKILL)  # the system releases the lock
        assert second.wait(60) == 0, second.stderr.read()
    assert locks(root) == []


def test_no_wait_fails_at_once(root: Path, holder: subprocess.Popen[str]) -> None:
    with start(root, "build", "--no-wait") as second:
        out, err = second.communicate(timeout=60)
    assert (second.returncode, out) == (6, "")
    assert f"(process {holder.pid})" in err
    assert not (root / "calls").exists()


@pytest.mark.parametrize("clean", [pytest.param([], marks=pytest.mark.sweep), ["-c"]], ids=["build", "clean"])
def test_scons_stops_at_once_too(root: Path, holder: subprocess.Popen[str], clean: list[str]) -> None:
    """SCons has its own exit code for every error; `scons -c` removes files, so it needs the folder as well."""
    (root / "SConstruct").write_text(SCONSTRUCT)
    (root / "site_scons/site_tools").mkdir(parents=True)
    (root / "site_scons/site_tools/mlf.py").write_text(SITE_TOOL)
    command = [sys.executable, "-m", "SCons", "-Q", "MLFNOWAIT=1", *clean]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"scons: *** build: another build is using this folder (process {holder.pid})" in done.stderr
    assert "MLFNOWAIT" in done.stderr
    assert not (root / "calls").exists()


def test_unpacking_waits_for_another_that_writes_the_same_tree(root: Path) -> None:
    with tree_locked(root / "out/tree", print):
        second = start(root, "unpack", "one.tar", "-o", "out/tree")
        assert second.stderr is not None
        assert second.stderr.readline() == f"waiting for another build (process {os.getpid()})\n"
        assert not (root / "out/tree").exists()
    second.communicate(timeout=60)
    assert second.returncode == 0
    assert (root / "out/tree/RECORD.json").is_file()
    assert locks(root) == []


@pytest.mark.parametrize("error", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_noted_once(
    root: Path, error: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lock(_descriptor: int) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(core_files, "_lock", lock)
    monkeypatch.chdir(root)
    (root / "one.begun").touch()
    (root / "two.begun").touch()
    assert main(["build", "-j", "1", "--no-wait"]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "locks" in line]
    assert notes == ["build: this file system has no locks: run only one build at a time here"]
    assert main(["build", "-j", "1", "-q"]) == 0
    assert main(["generate", "--model", "one", "--stamp", "stamp", "-q"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["generate", "--model", "one", "--stamp", "stamp"]) == 0
    assert "build: this file system has no locks" in capsys.readouterr().err
    assert locks(root) == []


def test_steps_of_ninja_run_in_parallel_while_a_build_has_the_folder(root: Path, holder: subprocess.Popen[str]) -> None:
    steps = [start(root, "generate", "--model", model, "--stamp", f"{model}.stamp") for model in ("one", "two", "one")]
    for step in steps:
        _, err = step.communicate(timeout=120)
        assert step.returncode == 0, err
    assert holder.poll() is None
    assert sorted((root / "calls").read_text().split()) == ["one", "two"], "the third waited for the first"
    assert (root / "build/mlf/pc/one/RECORD.json").is_file()
    assert [path.name for path in locks(root)] == [".mlfbuild.lock"]


@pytest.mark.parametrize("environment", [[], ["env", "-u", LOCKED_VARIABLE]], ids=["inherited", "removed"])
def test_children_of_a_build_do_not_wait_for_it(root: Path, environment: list[str]) -> None:
    command = [sys.executable, "-c", HOLDS, *environment, *MLFBUILD, "build", "--no-wait", "-q", "-j", "2"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert locks(root) == []


def test_a_lock_that_its_owner_removes_excludes_all_others(tmp_path: Path) -> None:
    inside = wrong = done = 0

    def count() -> None:
        nonlocal inside, wrong, done
        for _ in range(30):
            with locked(tmp_path / "new/lock", lambda _: True):
                inside += 1
                wrong += inside != 1
                os.sched_yield()
                inside -= 1
                done += 1

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (wrong, done) == (0, 120)
    assert not (tmp_path / "new/lock").exists()
