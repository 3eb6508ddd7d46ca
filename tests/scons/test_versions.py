"""The oldest SCons that is supported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

OLDEST = "4.4.0"


@pytest.mark.sweep
def test_the_tool_works_with_the_oldest_scons(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path, f"scons=={OLDEST}"]
    installed = subprocess.run(pip, capture_output=True, text=True, check=False)
    if installed.returncode != 0:
        pytest.skip(f"SCons {OLDEST} cannot be installed: {installed.stderr[-500:]}")
    path = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(path)}
    version = [sys.executable, "-m", "SCons", "--version"]
    told = subprocess.run(version, env=env, capture_output=True, text=True, check=True)
    assert f"SCons: v{OLDEST}" in told.stdout
    tests = [sys.executable, "-m", "pytest", "-q", "-m", "not sweep", Path(__file__).parent]
    ran = subprocess.run(tests, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
