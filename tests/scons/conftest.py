"""Fixtures that several tests of the SCons tool use."""

import shutil
from pathlib import Path

import pytest

import mlfbuild
from support.firmware_repo import FirmwareRepo
from support.snapshot import restore


@pytest.fixture
def repo(built: FirmwareRepo) -> FirmwareRepo:
    """The repository of the test module's fixture ``built``, as it was built."""
    restore(built.root)
    return built


@pytest.fixture
def package_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for ``PYTHONPATH`` with a copy of mlfbuild that a test may change."""
    folder = tmp_path_factory.mktemp("package")
    package = Path(mlfbuild.__file__).parent
    shutil.copytree(package, folder / "mlfbuild")  # with its compiled modules
    shutil.copytree(package.parent / "cmake", folder / "cmake")
    return folder
