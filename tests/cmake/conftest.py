"""Fixtures that several tests of CMake builds use."""

import pytest

from support.cmake_repo import CMakeRepo
from support.snapshot import restore


@pytest.fixture
def repo(shared_repo: CMakeRepo) -> CMakeRepo:
    """The repository of the test module's fixture ``shared_repo``, as it was built."""
    restore(shared_repo.folder)
    return shared_repo
