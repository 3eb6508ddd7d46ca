"""Test firmware of one module: built with CMake from ``runtime/verify``, run on a board or on this machine."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from mlfbuild.core import (
    OnProgress,
    ProcessFailedError,
    UnsupportedModelError,
    find_tool,
    holds,
    no_progress,
    run,
    run_ninja,
    write_atomic,
    write_if_changed,
    writing_to,
)
from mlfbuild.executor import missing_header
from mlfbuild.jobs.tree import HOST, module_header
from mlfbuild.library import Module
from mlfbuild.targets import RUNTIME, Board, require_compiler
from mlfbuild.verify.device.layout import Device

_OVERFLOW = re.compile(r"region [`'](\w+)' overflowed by (\d+) bytes")
"""The message of GNU ld, and of LLVM's linker with other quotes."""


def build_harness(
    tree: Path,
    module: Module,
    board: Board | None,
    toolchain: Path | None,
    workdir: Path,
    *,
    twice: bool = True,
    placement: Path | None = None,
    device: Device | None = None,
    counter: str = "",
    on_progress: OnProgress = no_progress,
) -> Path:
    """Build the test firmware for ``module`` of the unpacked ``tree`` under ``workdir``; returns the image.

    It is linked for ``board``, for ``device``, or for this machine, and runs each case ``twice``, or once.
    ``placement`` is the fragment of ``mlf::placement``, if there is one. With a ``counter`` of cycles, the image takes
    the time of its runs with it. A second build compiles only changed files.
    Raises ``ToolNotFoundError``, ``StorageError``, ``UnsupportedModelError`` also if the code includes a header that is
    not in the archive, or if the image is larger than the board's memory, and ``ProcessFailedError`` with the
    compiler's output.
    """
    generated = workdir / "generated"
    name = device.name if device else board.name if board else HOST
    ram = device.ram_for_data if device else None
    header = module_header(module, name, twice=twice, ram=ram, timed=bool(counter))
    # An unchanged header keeps its time, so that Ninja compiles nothing again.
    write_if_changed(generated / "verify_module.h", header.encode())
    require_compiler(toolchain)
    cmake, ninja, folder = find_tool("cmake"), find_tool("ninja"), workdir / "build"
    definitions = {
        "CMAKE_MAKE_PROGRAM": str(ninja),
        # Optimised, as in a product; the debug information serves backtraces and does not change the code.
        "CMAKE_BUILD_TYPE": "RelWithDebInfo",
        "MLF_TREE": str(tree.resolve()),
        "MLF_MODULE": module.name,
        "MLF_GENERATED": str(generated.resolve()),
        "MLF_BOARD": board.name if board else "",
        "MLF_PLACEMENT": str(placement.resolve()) if placement else "",
    }
    if counter:
        definitions["MLF_COUNTER"] = counter.upper()
    if device is not None:
        definitions |= device.definitions(generated.resolve())
    if toolchain is not None:
        definitions["CMAKE_TOOLCHAIN_FILE"] = str(toolchain.resolve())
    _start_afresh_if(folder, "\n".join(f"{name}={value}" for name, value in definitions.items()))
    options = [f"-D{name}={value}" for name, value in definitions.items()]
    on_progress("configuring", 0, 0)
    try:
        with writing_to(folder):
            run([cmake, "-G", "Ninja", "-S", RUNTIME / "verify", "-B", folder, "--no-warn-unused-cli", *options])
            run_ninja([cmake, "--build", folder], on_progress)
    except ProcessFailedError as error:
        # The output of the linker, which users would have to interpret, is replaced only for these two causes, which
        # they can act on.
        raise missing_header(module, error.output) or _overflow(module, name, error.output) or error from None
    return folder / "verify.elf"


def _overflow(module: Module, board: str, output: str) -> UnsupportedModelError | None:
    """Return the error for an image that exceeds the board's memory, if the linker's ``output`` has one."""
    found = _OVERFLOW.search(output)
    if found is None:
        return None
    return UnsupportedModelError(
        "board-too-small",
        place=module.name,
        reason=f"the test firmware exceeds the memory {found[1]} of {board} by {int(found[2]):,} bytes",
        hint="choose a larger board or a smaller model",
    )


def _start_afresh_if(folder: Path, settings: str) -> None:
    """Empty the build folder if it was made with other settings: CMake reads a toolchain file only once."""
    record = folder / "settings.txt"
    if not holds(record, settings.encode()):
        shutil.rmtree(folder, ignore_errors=True)
        write_atomic(record, settings.encode())
