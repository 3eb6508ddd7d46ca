"""``mlfbuild cmake-dir``."""

from __future__ import annotations

from mlfbuild.cli.options import SharedOptions, verb
from mlfbuild.cli.output.printing import show, show_json


@verb("format")
def cmake_dir(options: SharedOptions) -> None:
    """Print the folder of the CMake package and toolchain files."""
    from mlfbuild.usecases import cmake_package_folder

    folder = cmake_package_folder()
    if options.json:
        show_json({"cmake_dir": folder})
    else:
        show(str(folder))
