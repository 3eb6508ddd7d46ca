"""A model that the build quantises, with SCons: what runs again after which change."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support.firmware_repo import FirmwareRepo
from support.float_networks import calibration, float_tflite

pytestmark = pytest.mark.sweep
PROJECT = """\
mlfbuild: 1
targets:
  pc: {cpu: host}
models:
  alpha: {source: models/alpha.tflite, quantize: {calibration: data.npz}}
"""
SCONSTRUCT = 'env = Environment(tools=["default", "mlf"])\nenv.MlfModels("mlfbuild.yml")\n'
MADE = "build/quantized/alpha.tflite"


@pytest.fixture
def repo(tmp_path: Path, tool: Callable[[str], str]) -> FirmwareRepo:
    tool("gcc")
    repo = FirmwareRepo(tmp_path / "repo")
    repo.write("mlfbuild.yml", PROJECT)
    repo.write("SConstruct", SCONSTRUCT)
    repo.write("models/alpha.tflite", float_tflite())
    calibration(repo.root / "data.npz")
    return repo


def did(repo: FirmwareRepo, *arguments: str) -> tuple[bool, bool]:
    """Build; return whether SCons quantised, and whether it compiled."""
    output = repo.build(*arguments).output
    return f"-> {MADE}" in output, "Compiling model" in output


def test_changes_make_what_depends_on_them(repo: FirmwareRepo) -> None:
    assert did(repo, "-j2") == (True, True)
    assert did(repo) == (False, False)
    assert repo.scons("-q").status == 0
    calibration(repo.root / "data.npz", seed=1)
    assert did(repo) == (True, True)
    with np.load(repo.root / "data.npz") as known:
        np.savez(repo.root / "data.npz", in0=known["in0"][::-1])
    assert did(repo) == (True, False)
    repo.replace("mlfbuild.yml", "data.npz}", "data.npz, per-channel: false}")
    assert did(repo) == (True, True)
    (repo.root / MADE).unlink()
    assert did(repo) == (True, False)
    (repo.root / MADE).write_bytes(b"edited")
    assert did(repo) == (True, False)
    assert did(repo) == (False, False)
    repo.scons("-c", status=0)
    assert not (repo.root / MADE).exists()
