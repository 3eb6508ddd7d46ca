"""Find the CMake package."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.targets import cmake_folder


def cmake_package_folder() -> Path:
    """Return the folder of mlfbuild's CMake package and toolchain files."""
    return cmake_folder()
