"""Test firmware around one module for a board, built without a project and kept under the user's cache folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import mlfbuild
from mlfbuild.build.tree import DEPENDENCIES_FOLDER, Record, dependency_files, module_header, tree_files, write_tree
from mlfbuild.compilers.fit import check_fit
from mlfbuild.core import ProcessFailedError, UsageError, cache_folder, find_tool, make_once, read_bytes, run, sha256
from mlfbuild.library import Content, Library, Module, ResolvedLibrary, chunks
from mlfbuild.targets import CPUS, RUNTIME, Board, Cpu, require_compiler, shared_toolchain_files, toolchain_file
from mlfbuild.verify.emulator.harness import build_harness

_HARNESS = ("board", "verify")
"""Folders of ``runtime`` that the image is made from, beside the module's tree."""
_VARIABLES = ("CFLAGS", "ASMFLAGS", "LDFLAGS")
"""Of the environment, which CMake adds to the toolchain file's flags."""


def board_image(module: Module, board: Board, where: str, libraries: Sequence[ResolvedLibrary] = ()) -> Path:
    """Return the image that runs ``module`` of the archive ``where`` on ``board``, built now unless the cache has it.

    ``libraries`` are what the module needs beside its archive. It runs each case once. Raises ``UsageError`` where the
    module's code is for another CPU, ``ToolNotFoundError``, ``UnsupportedModelError`` where the module cannot be called
    or does not fit the board, and ``ProcessFailedError`` where its code does not build.
    """
    library = Library((module,))
    cpu = fitting_cpu(library, board, where)
    toolchain = toolchain_file(cpu)
    require_compiler(toolchain)
    assert toolchain is not None  # boards are no hosts
    files = {f"tree/{path}": content for path, content in tree_files(library).items()}
    files |= {f"{DEPENDENCIES_FOLDER}/{path}": content for path, content in dependency_files(libraries).items()}
    path = cache_folder("board") / f"{_key(module, board, files, toolchain)}.elf"
    return make_once(path, lambda folder: _built(module, board, files, toolchain, folder))


def fitting_cpu(library: Library, board: Board, where: str) -> Cpu:
    """Return the CPU of the board for which the library's objects are, if need be with something left out.

    Raises ``UsageError`` where none is; ``where`` names the archive.
    """
    cpus = [cpu for cpu in CPUS.values() if board.takes(cpu)]
    refusals = [_refusal(library, cpu, where) for cpu in cpus]
    for cpu, refusal in zip(cpus, refusals, strict=True):
        if refusal is None:
            return cpu
    raise next(refusal for refusal in refusals if refusal)


def _refusal(library: Library, cpu: Cpu, where: str) -> UsageError | None:
    try:
        check_fit(library, cpu, where)
    except UsageError as error:
        return error
    return None


def _key(module: Module, board: Board, files: dict[str, Content], toolchain: Path) -> str:
    """Return the hash of all that decides the image."""
    own = [path for folder in _HARNESS for path in sorted((RUNTIME / folder).iterdir()) if path.is_file()]
    parts = [mlfbuild.__version__, run([find_tool("arm-none-eabi-gcc"), "--version"]), board.name]
    parts += [os.environ.get(name, "") for name in _VARIABLES]
    parts.append(module_header(module, board.name, twice=False))
    parts += [
        f"{path.name} {sha256(read_bytes(path, 'file'))}" for path in (*own, toolchain, *shared_toolchain_files())
    ]
    parts += [f"{path} {sha256(chunks(content))}" for path, content in sorted(files.items())]
    return sha256("\n".join(parts).encode())


def _built(module: Module, board: Board, files: dict[str, Content], toolchain: Path, folder: Path) -> Path:
    write_tree(folder, files, Record.of(files))
    try:
        return build_harness(folder / "tree", module, board, toolchain, folder, twice=False)
    except ProcessFailedError as error:
        raise ProcessFailedError(
            f"{module.name}: its C cannot be built for {board.name}; see the compiler's words, below", error.output
        ) from None
