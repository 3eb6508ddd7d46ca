"""`mlfbuild cmake-dir`."""

import json
from pathlib import Path

from support.command import Folder


def test_the_folder_has_the_package_and_the_toolchain_files(folder: Folder) -> None:
    path = Path(folder.run("cmake-dir").out.removesuffix("\n"))
    assert (path / "mlfbuild-config.cmake").is_file()
    assert (path / "toolchains/cortex-m4.cmake").is_file()
    assert json.loads(folder.run("cmake-dir", "--format", "json").out) == {"cmake_dir": str(path)}
