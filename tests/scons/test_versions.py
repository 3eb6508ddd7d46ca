"""The oldest supported SCons, and one between it and the newest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

VERSIONS = ("4.4.0", "4.8.1")


@pytest.mark.sweep
@pytest.mark.parametrize("wanted", VERSIONS)
def test_tool_works_with_an_earlier_scons(wanted: str, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path, f"scons=={wanted}"]
    installed = subprocess.run(pip, capture_output=True, text=True, check=False)
    if installed.returncode != 0:
        pytest.skip(f"SCons {wanted} cannot be installed: {installed.stderr[-500:]}")
    path = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(path)}
    version = [sys.executable, "-m", "SCons", "--version"]
    told = subprocess.run(version, env=env, capture_output=True, text=True, check=True)
    assert f"SCons: v{wanted}" in told.stdout
    tests = [sys.executable, "-m", "pytest", "-q", "-m", "not sweep", Path(__file__).parent]
    ran = subprocess.run(tests, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
