"""Identify the C compiler that builds a target's firmware on this machine, for the lock file."""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mlfbuild.core import (
    HOST_COMPILER,
    RUN_BY_HAND,
    ProcessFailedError,
    ToolNotFoundError,
    file_sha256,
    find_tool,
    open_binary,
    run,
    sha256,
    shown,
    write_atomic,
)
from mlfbuild.jobs.model_job import TargetJob
from mlfbuild.requirements import LockedToolchain
from mlfbuild.targets import GCC, HOST_COMPILERS, compiler_path, compiler_program, cpu_of_toolchain, require_compiler

# For a compiler to print its version.
_SECONDS = 20
# A project that only asks CMake for its compiler: a toolchain file is a program of CMake, which nothing else can
# evaluate.
_PROBE = """\
cmake_minimum_required(VERSION 3.22)
project(compiler LANGUAGES C)
file(WRITE "${CMAKE_BINARY_DIR}/compiler" "${CMAKE_C_COMPILER}")
"""


def locked_toolchain(target: TargetJob, root: Path, definitions: Sequence[str] = ()) -> LockedToolchain:
    """Return the compilers for ``target`` on this machine with their versions, and the hash of the toolchain file.

    Compilers of the target's other devices are included. The version is the first line of ``--version``. It contains
    the package version of a distribution, so that it differs between rebuilt compilers and is the same on all machines
    with that package. CMake evaluates a toolchain file of the project; ``root`` is the project's folder.
    ``definitions`` are CMake cache entries as for ``require_compiler``. Raises ``ToolNotFoundError`` if a program is
    missing, and ``ProcessFailedError`` if CMake rejects the toolchain file.
    """
    host = _locked_host(target, root, definitions)
    return replace(host, programs={**host.programs, **_device_compilers(target)})


def _device_compilers(target: TargetJob) -> dict[str, str]:
    """Return the version of each compiler that the target's other devices name."""
    devices = next((job.devices for job in (*target.models, *target.others) if job.devices is not None), None)
    found = [tools for name in (devices.names if devices else ()) if devices and (tools := devices.tools(name))]
    paths = [find_tool(tools.compiler, os.environ.get(tools.variable)) for tools in found if tools.compiler]
    # Without their folders: a lock file is shared by machines that have the compilers in different places.
    return {path.name: _said(path) for path in paths}


def _locked_host(target: TargetJob, root: Path, definitions: Sequence[str]) -> LockedToolchain:
    if target.toolchain is None:
        return LockedToolchain({HOST_COMPILER: _said(_host_compiler())})
    # Toolchain files of mlfbuild name their compilers in a known way; asking CMake takes about a second.
    row = cpu_of_toolchain(target.toolchain)
    if row is None:
        compiler = _compiler_of(target.toolchain.absolute(), root.absolute(), tuple(definitions))
        return LockedToolchain({compiler.name: _said(compiler)}, _files_hash([target.toolchain]))
    require_compiler(target.toolchain, definitions)
    names = dict.fromkeys(compiler_program(row[0], family) for family in (row[1], GCC))  # clang links with gcc
    found = {name: _said(compiler_path(name, definitions)) for name in names}
    return LockedToolchain(found, _files_hash(target.toolchain_files))


def _host_compiler() -> Path:
    """Return the compiler that CMake uses for this machine; raises ``ToolNotFoundError``."""
    import shutil

    # Its error names the package to install, which the search below could not.
    require_compiler(None)
    chosen = os.environ.get("CC", "")
    names = (chosen, *chosen.split()[:1]) if chosen else HOST_COMPILERS  # a path with spaces, or a compiler with flags
    path = next((path for path in map(shutil.which, names) if path), None)
    if path is None:
        place = f"{HOST_COMPILER}: {chosen}"
        raise ToolNotFoundError(
            "program-not-found", place=place, reason="program not found", hint="correct or unset CC"
        )
    return Path(path)


@functools.cache
def _compiler_of(toolchain: Path, root: Path, definitions: tuple[str, ...]) -> Path:
    """Return the C compiler that CMake uses with the project's ``toolchain`` file, by configuring an empty project."""
    cmake, ninja = find_tool("cmake"), find_tool("ninja")
    entries = [
        f"CMAKE_TOOLCHAIN_FILE={toolchain}",
        f"MLFBUILD_SOURCE_ROOT={root}",
        f"CMAKE_MAKE_PROGRAM={ninja}",
        "CMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY",
        *definitions,
    ]
    with tempfile.TemporaryDirectory(prefix="mlfbuild-compiler-") as folder:
        place = Path(folder)
        write_atomic(place / "CMakeLists.txt", _PROBE.encode())
        words: list[str | Path] = ["-S", place, "-B", place / "build", "-G", "Ninja", "--no-warn-unused-cli"]
        run([cmake, *words, *(f"-D{entry}" for entry in entries)])
        return Path((place / "build" / "compiler").read_text())


@functools.cache
def _said(program: Path) -> str:
    """Return the first line that ``program --version`` prints, without the program's folder."""
    try:
        done = subprocess.run(
            [str(program), "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=_SECONDS, check=False, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        place = f"{program} --version"
        raise ProcessFailedError("program-not-started", place=place, reason=str(error), hint=RUN_BY_HAND) from None
    # Some compilers begin the line with the path by which they were called, which differs between machines.
    line = done.stdout.partition("\n")[0].replace(str(program), program.name).strip()
    if done.returncode != 0 or not line:
        raise ProcessFailedError(
            "program-without-version",
            done.stdout + done.stderr,
            place=f"{program} --version",
            reason="prints no version",
            hint=RUN_BY_HAND,
        )
    return shown(line)


def _files_hash(files: Sequence[Path]) -> str:
    """Return a hash of names and contents of toolchain files; for a single file, the hash of its content."""
    hashes = list(_hashes(files))
    return hashes[0][1] if len(hashes) == 1 else sha256(f"{name}\0{digest}\n".encode() for name, digest in hashes)


def _hashes(files: Sequence[Path]) -> Iterator[tuple[str, str]]:
    for path in files:
        with open_binary(path, "toolchain file") as file:
            yield path.name, file_sha256(file)
