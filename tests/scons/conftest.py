"""Fixtures that several tests of the SCons tool use."""

import shutil
from pathlib import Path

import pytest

import mlfbuild


@pytest.fixture
def package_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for ``PYTHONPATH`` with a copy of mlfbuild that a test may change."""
    folder = tmp_path_factory.mktemp("package")
    package = Path(mlfbuild.__file__).parent
    shutil.copytree(package, folder / "mlfbuild")  # with its compiled modules
    shutil.copytree(package.parent / "cmake", folder / "cmake")
    return folder
