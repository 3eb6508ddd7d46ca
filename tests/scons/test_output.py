"""The output of SCons has the same lines on a terminal and in a file."""

from pathlib import Path

import pytest

from support.errors import assert_printed
from support.firmware_repo import FirmwareRepo
from support.terminal import Terminal

SCONSTRUCT = """\
env = Environment(tools=["default", "mlf"], MLFUNPACKCOMSTR="Laying out $TARGET")
env.MlfModels("mlfbuild.yml", target="m4", models=["alpha"])
"""
MADE = """\
Compiling model models/alpha.tflite -> build/mlf/m4/alpha.tar
Laying out build/mlf/m4/alpha/RECORD.json
Writing build/mlf/m4/mlf.cmake
"""


@pytest.fixture
def repo(tmp_path: Path) -> FirmwareRepo:
    repo = FirmwareRepo(tmp_path)
    repo.write("SConstruct", SCONSTRUCT)
    return repo


@pytest.mark.sweep
def test_terminal_and_file_get_the_same_lines(repo: FirmwareRepo) -> None:
    seen = Terminal().run(repo.root, "-Q", "-j", "2", module="SCons")
    assert (seen.status, "\n".join([*seen.lines, ""])) == (0, MADE)
    assert "\x1b" not in seen.raw
    assert repo.build("-Q", "-c").removed
    assert repo.build("-Q", "-j", "2").output == MADE
    assert repo.build("-Q", "-c").removed
    assert repo.build("-Q", "-s").output == ""


def test_error_names_the_target_and_ends_with_a_hint(repo: FirmwareRepo) -> None:
    repo.write("models/alpha.tflite", b"no model")
    ran = repo.scons("-Q", "-s", status=2)
    assert_printed(ran.output, "tflite-malformed", "scons: *** [build/mlf/m4/alpha.tar] models/alpha.tflite: header")
    assert ran.output.count("\n") == 1
