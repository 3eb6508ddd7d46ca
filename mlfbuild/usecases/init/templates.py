"""The ways to build that a new project may have: one entry a template, with the files in ``mlfbuild/templates``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlfbuild.core import UsageError
from mlfbuild.project import suggestion

TREE = "mlf"
"""Folder of the committed tree."""
QEMU = "qemu"
"""Target of models where the firmware's own target has no board."""


@dataclass(frozen=True)
class Template:
    """One way to build, with all that differs between ways but the build files themselves."""

    files: Mapping[str, str]
    """File of the project -> template; names may hold words."""
    build: str
    run: str
    verify: str
    """Commands."""
    needs: str
    """What is to be installed, for people."""
    about: tuple[tuple[str, str], ...]
    """Lines of the table of files, what is special."""
    targets: str
    """Targets of the project file."""
    firmware: str = ""
    """What the project file says of the firmware, where mlfbuild builds it."""
    ignored: str = ""
    """Further lines of .gitignore."""
    commits_tree: bool = False
    """Whether the models' C is committed, so that the build needs no mlfbuild."""


TEMPLATES: Mapping[str, Template] = {
    "scons": Template(
        files={"SConstruct": "scons/SConstruct", "site_scons/site_tools/mlf.py": "scons/mlf.py.in"},
        build="scons",
        run="scons run",
        verify="scons verify",
        needs="The build needs mlfbuild, arm-none-eabi-gcc, CMake and Ninja, which SCons calls for the cross build.",
        about=(
            ("SConstruct", "the build; site_scons/ is where SCons finds mlfbuild"),
            ("build/", "all that is generated; `scons -c` removes it"),
        ),
        targets="  @TARGET@: {cpu: @CPU@, board: @BOARD@}   # a board that QEMU emulates",
        firmware="\nfirmware:\n  app: {sources: [src/main.c]}",
        ignored=".sconsign.dblite\n__pycache__/",
    ),
    "cmake": Template(
        files={
            "CMakeLists.txt": "cmake/CMakeLists.txt",
            "CMakePresets.json": "cmake/CMakePresets.json",
            "cmake/@CPU@.cmake": "cmake/toolchain.cmake",
        },
        build="cmake --preset @TARGET@ && cmake --build --preset @TARGET@",
        run="cmake --build --preset @TARGET@ --target run",
        verify="mlfbuild verify",
        needs="The build needs mlfbuild, arm-none-eabi-gcc, CMake 3.22 or later, and Ninja.",
        about=(
            ("CMakeLists.txt", "the build; models are made in it, when they are needed"),
            ("CMakePresets.json", "the board: toolchain, and the emulator that `run` and `ctest` use"),
            ("cmake/@CPU@.cmake", "the toolchain: compiler and its flags for the core"),
            ("build/", "all that is generated"),
        ),
        targets="  @TARGET@: {cpu: @CPU@, board: @BOARD@, toolchain: cmake/@CPU@.cmake}",
    ),
    "bare-metal": Template(
        files={"Makefile": "bare-metal/Makefile", ".gitattributes": "bare-metal/gitattributes"},
        build="make",
        run="make run",
        verify=f"mlfbuild verify --target {QEMU}",
        needs=(
            "The build needs GNU Make and arm-none-eabi-gcc: no mlfbuild, and no Python. mlfbuild is for those who "
            "change a\nmodel (`make models`) or check one (`verify`, which also needs CMake and Ninja)."
        ),
        about=(
            ("Makefile", "the build"),
            ("board/", "start-up code, linker scripts and console of the board, for you to change"),
            (f"{TREE}/", "the model as C, written by `make models`; commit it, and do not edit it"),
            ("build/", "all that is generated"),
        ),
        targets=(
            "  @TARGET@: {cpu: @CPU@}   # the firmware; board/ is its own\n"
            f"  {QEMU}: {{cpu: @CPU@, board: @BOARD@}}   # where `mlfbuild verify` runs the models"
        ),
        commits_tree=True,
    ),
}
"""Every template by its name; the first is the default."""


def template_called(name: str) -> Template:
    """Return the template called ``name``; raises ``UsageError`` with the nearest name there is."""
    if name not in TEMPLATES:
        hint = suggestion(name, TEMPLATES) or f" (known: {', '.join(TEMPLATES)})"
        raise UsageError(f"{name}: unknown template{hint}")
    return TEMPLATES[name]
