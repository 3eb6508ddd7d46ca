"""Test firmware of one module for a board, built without a project and kept in the user's cache folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import mlfbuild
from mlfbuild.compilers import check_fit
from mlfbuild.core import ProcessFailedError, UsageError, cache_folder, find_tool, make_once, read_bytes, run, sha256
from mlfbuild.jobs.tree import DEPENDENCIES_FOLDER, Record, dependency_files, module_header, tree_files, write_tree
from mlfbuild.library import Content, Library, Module, ResolvedLibrary, chunks
from mlfbuild.targets import (
    CPUS,
    GCC,
    RUNTIME,
    Board,
    Cpu,
    compiler_program,
    require_compiler,
    shared_toolchain_files,
    toolchain_file,
)
from mlfbuild.verify.device.layout import Device
from mlfbuild.verify.devices import refuse_device_code
from mlfbuild.verify.emulator.harness import build_harness

_HARNESS = ("board", "serial", "verify")
"""Folders of ``runtime`` that are compiled into the image besides the module's tree."""
_VARIABLES = ("CFLAGS", "ASMFLAGS", "LDFLAGS")
"""Environment variables that CMake adds to the toolchain file's flags."""


def board_image(module: Module, board: Board, where: str, libraries: Sequence[ResolvedLibrary] = ()) -> Path:
    """Return the image that runs ``module`` of the archive ``where`` on ``board``; build it if it is not cached.

    ``libraries`` are the module's requirements. The image runs each case once. Raises ``UsageError`` if the module's
    code is for another CPU, ``ToolNotFoundError``, ``UnsupportedModelError`` if the module cannot be called or does not
    fit the board, and ``ProcessFailedError`` if its code does not build.
    """
    cpu = fitting_cpu(Library((module,)), board, where)
    toolchain = toolchain_file(cpu)
    assert toolchain is not None  # every board has one
    return _image(module, board, None, cpu, toolchain, libraries)


def image_for_device(
    module: Module, device: Device, toolchain: Path, where: str, libraries: Sequence[ResolvedLibrary] = ()
) -> Path:
    """Return the image that runs ``module`` on ``device``, compiled with ``toolchain``; see ``board_image``.

    Its memories and the stack are those of ``device.layout``, and it talks to its host as the runner requires. The
    image is cached by the hash of everything that goes into it. Raises as ``board_image``, also if the objects of the
    module are for another CPU.
    """
    check_fit(Library((module,)), device.cpu, where)
    return _image(module, None, device, device.cpu, toolchain, libraries)


def _image(
    module: Module,
    board: Board | None,
    device: Device | None,
    cpu: Cpu,
    toolchain: Path,
    libraries: Sequence[ResolvedLibrary],
) -> Path:
    refuse_device_code(module)
    require_compiler(toolchain)
    files = {f"tree/{path}": content for path, content in tree_files(Library((module,))).items()}
    files |= {f"{DEPENDENCIES_FOLDER}/{path}": content for path, content in dependency_files(libraries).items()}
    # A build takes seconds and its inputs rarely change, so images are kept by the hash of everything that goes in.
    path = cache_folder("board") / f"{_key(module, board, device, cpu, files, toolchain)}.elf"

    def built(folder: Path) -> Path:
        write_tree(folder, files, Record.of(files))
        try:
            return build_harness(folder / "tree", module, board, toolchain, folder, twice=False, device=device)
        except ProcessFailedError as error:
            raise ProcessFailedError(
                "module-not-built",
                error.output,
                place=module.name,
                reason=f"its C code does not compile for {board.name if board else toolchain.stem}",
                hint="see the output of the compiler below",
            ) from None

    return make_once(path, built)


def fitting_cpu(library: Library, board: Board, where: str) -> Cpu:
    """Return the first CPU of the board that can run the library's objects: its own one, unless it needs another.

    Raises ``UsageError`` if there is none; ``where`` names the archive.
    """
    # The sort is stable, so CPUs of the same core stay in the order of the table.
    cpus = sorted((cpu for cpu in CPUS.values() if board.takes(cpu)), key=lambda cpu: cpu.core != board.cpu)
    refusals = [_refusal(library, cpu, where) for cpu in cpus]
    for cpu, refusal in zip(cpus, refusals, strict=True):
        if refusal is None:
            return cpu
    # The first refusal is that of the board's own core, which the user most likely meant.
    raise next(refusal for refusal in refusals if refusal)


def _refusal(library: Library, cpu: Cpu, where: str) -> UsageError | None:
    try:
        check_fit(library, cpu, where)
    except UsageError as error:
        return error
    return None


def _key(
    module: Module,
    board: Board | None,
    device: Device | None,
    cpu: Cpu,
    files: dict[str, Content],
    toolchain: Path,
) -> str:
    """Return the hash of everything that determines the image."""
    own = [path for folder in _HARNESS for path in sorted((RUNTIME / folder).iterdir()) if path.is_file()]
    name = board.name if board else device.layout if device else ""
    # The version of the compiler is part of the key: another one may generate other code from the same files.
    parts = [mlfbuild.__version__, run([find_tool(compiler_program(cpu, GCC)), "--version"]), name]
    # CMake appends these to the flags, so equal files can give different images.
    parts += [os.environ.get(name, "") for name in _VARIABLES]
    ram = device.ram_for_data if device else None
    parts.append(module_header(module, device.name if device else name, twice=False, ram=ram))
    parts += [
        f"{path.name} {sha256(read_bytes(path, 'file'))}" for path in (*own, toolchain, *shared_toolchain_files())
    ]
    parts += [f"{path} {sha256(chunks(content))}" for path, content in sorted(files.items())]
    return sha256("\n".join(parts).encode())
