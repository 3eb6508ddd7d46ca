"""mlfbuild without the modules and functions that Python lacks on Windows; support/windows describes the simulation."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.firmware_repo import tiny_network

TESTS = Path(__file__).parent.parent
IMPORT_ALL = """
import importlib, pkgutil, sys, mlfbuild
names = [module.name for module in pkgutil.walk_packages(mlfbuild.__path__, "mlfbuild.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
assert {"mlfbuild.core.files", "mlfbuild.scons.model_nodes", "mlfbuild.verify.sandbox"} <= {*sys.modules}
import mlfbuild.core.processes as ours
assert ours.sys.platform == "win32" and not hasattr(ours.signal, "SIGKILL") and not hasattr(ours.os, "killpg")
print(sys.platform, len(names))
"""
HELD = """
import sys
from pathlib import Path
from mlfbuild.core import locked
owners = []
with locked(Path("build/lock"), lambda owner: owners.append(owner) or False, patience=0.0):
    print(*owners, Path("build/lock").exists(), flush=True)
    sys.stdin.read()
"""
UNIT_TESTS = (
    "tests/core", "tests/project", "tests/library", "tests/c_analysis", "tests/archive", "tests/requirements",
    "tests/usecases", "tests/jobs/test_locks.py", "tests/jobs/test_workers.py", "tests/jobs/test_tree.py",
    "tests/cli/test_check.py", "tests/cli/test_compile.py", "tests/cli/test_lock.py",
)  # fmt: skip
_FOR_LINUX = (
    "--deselect", "tests/usecases/test_doctor.py::test_machine_without_programs",
    "--ignore", "tests/core/test_keeper.py",
)  # fmt: skip
"""Expects `sudo`, which Windows does not have, and the keeper, a shell."""


def on_windows(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=3600)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(TESTS / "support/windows")}


def start(script: str, cwd: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", script], cwd=cwd, env=environment(), stdin=pipe, stdout=pipe, text=True
    )


def said(process: subprocess.Popen[str]) -> Sequence[str]:
    assert process.stdout is not None
    return process.stdout.readline().split()


def test_all_modules_import(tmp_path: Path) -> None:
    done = on_windows("-c", IMPORT_ALL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    system, count = done.stdout.split()
    assert system == sys.platform, "only mlfbuild sees Windows"
    assert int(count) > 500


def test_a_project_is_checked_and_its_models_are_built(tmp_path: Path) -> None:
    (tmp_path / "kws.tflite").write_bytes(tiny_network(1))
    (tmp_path / "mlfbuild.yml").write_text(
        "mlfbuild: 1\ntargets: {m4: {cpu: cortex-m4}}\nmodels: {kws: {source: kws.tflite}}\n"
    )
    for verb in ("check", "build", "lock"):
        done = on_windows("-m", "mlfbuild", verb, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "build/mlf/m4/mlf.cmake").is_file()
    assert b"\r" not in (tmp_path / "mlfbuild.lock").read_bytes()
    source = next((tmp_path / "build/mlf/m4/kws").rglob("*.c"))
    source.rename(tmp_path / "moved.c")
    source.symlink_to(tmp_path / "moved.c")
    assert on_windows("-m", "mlfbuild", "build", cwd=tmp_path).returncode == 6, "a link that mlfbuild did not write"


def test_a_lock_excludes_other_processes_until_its_owner_ends(tmp_path: Path) -> None:
    with start(HELD, tmp_path) as first:
        assert said(first) == ["True"]
        with start(HELD, tmp_path) as second:
            assert said(second) == [str(first.pid), "True"], "the number is readable while the byte is locked"
            second.communicate("")
        assert (tmp_path / "build/lock").exists()
        first.kill()
        first.wait(60)
        with start(HELD, tmp_path) as third:
            assert said(third) == ["True"]
            third.communicate("")
    assert not (tmp_path / "build/lock").exists()


@pytest.mark.sweep
def test_unit_tests_pass() -> None:
    chosen = ["-n0", "-q", "-m", "not sweep and not fuzz", "-p", "no:cacheprovider", *_FOR_LINUX, *UNIT_TESTS]
    done = on_windows("-m", "pytest", *chosen, cwd=TESTS.parent)
    assert done.returncode == 0, done.stdout[-8000:]
