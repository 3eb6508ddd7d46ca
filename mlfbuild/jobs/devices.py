"""The devices beside a target's host: with which compiler and options their code is built."""

from __future__ import annotations

import functools
import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from mlfbuild import compilers
from mlfbuild.core import ToolNotFoundError, UsageError, find_tool, run, tool_variable, write_atomic
from mlfbuild.jobs.tree.devices import DeviceTools
from mlfbuild.library import Library, device_code
from mlfbuild.project import COMPILER_WORD, DeviceKeys
from mlfbuild.targets import CLANG, CPUS, GCC, Cpu, compiler_program

_PROBE = """\
cmake_minimum_required(VERSION 3.22)
project(device LANGUAGES C)
add_library(device OBJECT device.c)
"""
# Options of a build, which CMake adds to the command for its own object and dependency files.
_WITH_VALUE = ("-o", "-MF", "-MT", "-MQ")
_OF_BUILDS = ("-c", "-MD", "-MMD")


@dataclass(frozen=True)
class TargetDevices:
    """The devices that a project file declares for a target; none for a target without a project file."""

    target: str
    cpu: Cpu
    """The host."""
    declared: Mapping[str, DeviceKeys] = field(default_factory=dict)
    root: Path = Path()
    """Folder of the project file."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the declared devices."""
        return tuple(self.declared)

    @property
    def toolchains(self) -> tuple[Path, ...]:
        """The toolchain files of the devices."""
        return tuple(keys.toolchain for keys in self.declared.values() if keys.toolchain is not None)

    def tools(self, name: str) -> DeviceTools | None:
        """Return how code of the device ``name`` is built; ``None`` if it is not declared.

        CMake evaluates a toolchain file. Raises ``ToolNotFoundError`` without CMake, ``ProcessFailedError`` for a
        toolchain file that CMake does not accept, and ``UsageError`` for one with options that build files cannot
        contain.
        """
        keys = self.declared.get(name)
        if keys is None:
            return None
        compiler, flags, variable = self._compiler(keys)
        # Without a known CPU, nothing shows that the machine and the ABI are those of the host, so it is not linked.
        own = None if keys.cpu is None else CPUS[keys.cpu]
        linked = own is not None and own.links_with(self.cpu) if keys.link is None else keys.link
        return DeviceTools(compiler, (*flags, *keys.flags), linked, keys.section, variable)

    def _compiler(self, keys: DeviceKeys) -> tuple[str, tuple[str, ...], str]:
        """Return the compiler, its options, and the environment variable with its path."""
        if keys.toolchain is not None:
            # Only an argument of the cache: the file may be edited while a process such as a notebook runs.
            modified = keys.toolchain.stat().st_mtime_ns if keys.toolchain.exists() else 0
            return (*_of_toolchain(keys.toolchain, modified), "")
        cpu = None if keys.cpu is None else CPUS[keys.cpu]
        # A toolchain file wins over cpu, and c-compiler over the compiler of cpu: the more explicit key decides.
        if keys.c_compiler is None:
            return ("", (), "") if cpu is None else _of_cpu(cpu)
        program = self._path(keys.c_compiler)
        # clang compiles for its own machine unless it is told otherwise; GCC has its target in its name.
        foreign = cpu is not None and cpu.is_arm and Path(program).name.startswith(CLANG)
        return program, (*(("--target=arm-none-eabi",) if foreign else ()), *(cpu.flags if cpu else ())), ""

    def _path(self, program: str) -> str:
        """Return ``program`` as written if it is looked up in ``PATH``; other paths start at the project file."""
        return program if "/" not in program else (self.root.absolute() / program).as_posix()

    def settings(self) -> dict[str, object]:
        """Return everything that determines how code of the devices is built, ready for JSON.

        Builds compare it with that of the last build. Raises as ``tools``.
        """
        return {name: asdict(tools) for name in self.declared if (tools := self.tools(name)) is not None}


def require_device_compilers(devices: TargetDevices, tree: Path) -> None:
    """Raise ``ToolNotFoundError`` if ``tree`` has sources for a device whose declared compiler is missing.

    ``tree`` is the unpacked tree of a model, which must exist. An environment variable of the compiler wins over
    ``PATH``. Raises as ``TargetDevices.tools``.
    """
    for name in devices.names:
        tools = devices.tools(name)
        if tools is None or not tools.compiler or not (tree / "codegen" / name / "src").is_dir():
            continue
        wanted = os.environ.get(tools.variable) or tools.compiler
        if shutil.which(wanted) is None:
            raise ToolNotFoundError(
                "program-not-found",
                place=f"targets.{devices.target}.devices.{name}",
                reason=f"program {wanted} not found",
                hint="install the compiler of the device, or correct cpu, toolchain or c-compiler",
            )


def check_device_objects(library: Library, devices: TargetDevices | None, where: str) -> None:
    """Raise ``UsageError`` if compiled objects of ``library`` do not run on the CPU that their device has.

    ``where`` names the archive. Raises ``InputFileError`` for an object that is damaged.
    """
    for module in library.modules if devices is not None and devices.declared else ():
        for code in device_code(module):
            keys = devices.declared.get(code.name) if devices is not None else None
            if keys is not None and keys.cpu is not None:
                own = replace(module, codegen=code.objects, device_files=(), targets=())
                compilers.check_fit(Library((own,)), CPUS[keys.cpu], where)


def _of_cpu(cpu: Cpu) -> tuple[str, tuple[str, ...], str]:
    if cpu.toolchain is None:
        return "cc", (), "CC"
    program = compiler_program(cpu, GCC)
    return program, cpu.flags, tool_variable(program)


@functools.cache
def _of_toolchain(toolchain: Path, _modified: int) -> tuple[str, tuple[str, ...]]:
    """Return the C compiler and the options with which CMake compiles a file with the ``toolchain`` file."""
    cmake, ninja = find_tool("cmake"), find_tool("ninja")
    entries = {
        "CMAKE_TOOLCHAIN_FILE": toolchain.absolute(),
        "CMAKE_MAKE_PROGRAM": ninja,
        "CMAKE_BUILD_TYPE": "",
        "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
        # CMake otherwise links a program to test the compiler, which fails for a device without start-up code.
        "CMAKE_C_COMPILER_WORKS": "1",
        "CMAKE_TRY_COMPILE_TARGET_TYPE": "STATIC_LIBRARY",
    }
    with tempfile.TemporaryDirectory(prefix="mlfbuild-device-") as folder:
        place = Path(folder)
        write_atomic(place / "CMakeLists.txt", _PROBE.encode())
        write_atomic(place / "device.c", b"")
        words: list[str | Path] = ["-S", place, "-B", place / "build", "-G", "Ninja", "--no-warn-unused-cli"]
        run([cmake, *words, *(f"-D{name}={value}" for name, value in entries.items())])
        (command,) = json.loads((place / "build/compile_commands.json").read_text())
        program, *options = shlex.split(command["command"])
        kept = tuple(_kept(options, place))
    # The words become part of Makefiles and CMake files, where some characters cannot be quoted.
    for word in (program, *kept):
        mistake = COMPILER_WORD.check(word)
        if mistake is not None:
            hint = "name the compiler with c-compiler, and its options with flags"
            raise UsageError(mistake.code, place=toolchain, reason=mistake.reason, hint=hint)
    # By its name if PATH leads to the same file, so that generated build files are equal on machines with the compiler
    # in different folders.
    found = shutil.which(Path(program).name)
    named = found is not None and Path(found).samefile(program)
    return (Path(program).name if named else Path(program).as_posix()), kept


def _kept(options: list[str], place: Path) -> list[str]:
    """Return the ``options`` without those of a build in the folder ``place``."""
    words = iter(options)
    kept = []
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif word not in _OF_BUILDS and str(place) not in word:
            kept.append(word)
    return kept
