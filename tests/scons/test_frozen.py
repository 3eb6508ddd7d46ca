"""``MLFFROZEN``: SCons builds with the inputs in mlfbuild.lock, and stops at differences."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.scons.variables import flag
from support import warm
from support.errors import assert_printed
from support.firmware_repo import FirmwareRepo

RECORD = "build/mlf/m4/alpha/RECORD.json"


@pytest.fixture
def repo(tmp_path: Path, tool: Callable[..., str]) -> FirmwareRepo:
    tool("arm-none-eabi-gcc", "cmake", "ninja")
    repo = FirmwareRepo(tmp_path)
    lock(repo)
    return repo


def lock(repo: FirmwareRepo) -> None:
    warm.run("mlfbuild", "lock", "-q", "-j", "1", cwd=repo.root, check=True)


@pytest.mark.sweep
def test_frozen_and_other_builds(repo: FirmwareRepo) -> None:
    repo.build("MLFFROZEN=1")
    assert not repo.build("MLFFROZEN=1").written
    record = repo.read(RECORD)

    repo.replace("mlfbuild.yml", "alpha.tflite}", "alpha.tflite, options: {memory: smallest, trace: true}}")
    stopped = repo.scons("MLFFROZEN=1")
    assert stopped.status != 0
    assert "RECORD.json] " in stopped.output
    assert_printed(stopped.output, "archive-not-as-locked", "", "alpha")
    assert "Traceback" not in stopped.output
    assert not stopped.matching("m4/alpha/"), "nothing of it is unpacked"
    assert repo.read(RECORD) == record
    repo.build("MLFFROZEN=0")
    assert repo.read(RECORD) != record
    assert repo.scons("MLFFROZEN=yes").status != 0, "nor is taken what an unfrozen build left"
    lock(repo)
    repo.build("MLFFROZEN=1")


def test_changed_model_stops_scons_before_anything_is_made(repo: FirmwareRepo) -> None:
    repo.write_model("beta", seed=9)
    stopped = repo.scons("MLFFROZEN=1", status=2)
    assert_printed(stopped.output, "lock-drift", "scons: *** mlfbuild.lock", "model beta: file: locked ")
    assert not stopped.written
    assert repo.scons("MLFFROZEN=1", "-c").status == 0, "cleaning needs no lock"


def test_sconstruct_can_set_mlffrozen_and_the_compiler(repo: FirmwareRepo, tool: Callable[..., str]) -> None:
    real = tool("arm-none-eabi-gcc")
    compiler = repo.write(
        "tools/arm-none-eabi-gcc", f'#!/bin/sh\n[ "$1" = --version ] && echo "gcc 99" || {real} "$@"\n'
    )
    compiler.chmod(0o755)
    repo.replace("SConstruct", '"mlf"])', '"mlf"], MLFFROZEN=True)')
    assert repo.scons("-n").status == 0
    repo.replace("SConstruct", "=True)", f"=True, MLFCMAKEFLAGS=['MLFBUILD_ARM_NONE_EABI_GCC={compiler}'])")
    stopped = repo.scons("-n")
    assert "toolchain of m4: arm-none-eabi-gcc: locked " in stopped.output
    assert ", here gcc 99; " in stopped.output


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, True), (1, True), ("1", True), ("yes", True), ("On", True), (False, False), ("", False), ("0", False),
     ("No", False), ("false", False), ("off", False), (None, False)],
)  # fmt: skip
def test_values_on_the_command_line(value: object, expected: bool) -> None:
    assert flag({"MLFFROZEN": value}, "MLFFROZEN") is expected
