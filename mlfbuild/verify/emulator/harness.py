"""Test firmware of one module: built with CMake from ``runtime/verify``, run on a board or on this machine."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
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
    folder = workdir / "build"
    own = {
        "MLF_TREE": str(tree.resolve()),
        "MLF_MODULE": module.name,
        "MLF_GENERATED": str(generated.resolve()),
        "MLF_BOARD": board.name if board else "",
        "MLF_PLACEMENT": str(placement.resolve()) if placement else "",
    }
    if counter:
        own["MLF_COUNTER"] = counter.upper()
    if device is not None:
        own |= device.definitions(generated.resolve())
    definitions = runtime_definitions(toolchain, own)
    _start_afresh_if(folder, "\n".join(f"{name}={value}" for name, value in definitions.items()))
    try:
        with writing_to(folder):
            run_cmake([], RUNTIME / "verify", folder, definitions, on_progress)
    except ProcessFailedError as error:
        # The output of the linker, which users would have to interpret, is replaced only for these two causes, which
        # they can act on.
        raise missing_header(module, error.output) or _overflow(module, name, error.output) or error from None
    return folder / "verify.elf"


def runtime_definitions(toolchain: Path | None, own: Mapping[str, str]) -> dict[str, str]:
    """Return the CMake variables of a project in ``RUNTIME``: those of ``own``, the build type and the tools.

    Raises ``ToolNotFoundError`` without Ninja.
    """
    # Optimised, as in a product; the debug information serves backtraces and does not change the code.
    found = {"CMAKE_MAKE_PROGRAM": str(find_tool("ninja")), "CMAKE_BUILD_TYPE": "RelWithDebInfo", **own}
    return found if toolchain is None else {**found, "CMAKE_TOOLCHAIN_FILE": str(toolchain.resolve())}


def run_cmake(
    options: Sequence[str], source: Path, build: Path, definitions: Mapping[str, str], on_progress: OnProgress
) -> None:
    """Configure and build the CMake project ``source`` in the folder ``build``.

    Raises ``ToolNotFoundError`` without CMake, and ``ProcessFailedError`` with the output if one of the steps fails.
    """
    cmake, variables = find_tool("cmake"), [f"-D{name}={value}" for name, value in definitions.items()]
    on_progress("configuring", 0, 0)
    run([cmake, *options, "-G", "Ninja", "-S", source, "-B", build, "--no-warn-unused-cli", *variables])
    run_ninja([cmake, "--build", build], on_progress)


def _overflow(module: Module, board: str, output: str) -> UnsupportedModelError | None:
    """Return the error for an image that exceeds the board's memory, if the linker's ``output`` has one."""
    found = _OVERFLOW.search(output)
    if found is None:
        return None
    reason = f"the test firmware exceeds the memory {found[1]} of {board} by {int(found[2]):,} bytes"
    hint = "choose a larger board or a smaller model"
    pools = sum(pool.size or 0 for pool in module.pools if pool.external and pool.kind == "workspace")
    # They come from the heap, with guards, also if firmware has them in a section of another memory.
    if pools:
        reason += f", with pools of {pools:,} bytes that it provides itself"
        hint = "verify the model on this machine: add a target with cpu: host to its targets"
    return UnsupportedModelError("board-too-small", place=module.name, reason=reason, hint=hint)


def _start_afresh_if(folder: Path, settings: str) -> None:
    """Empty the build folder if it was made with other settings: CMake reads a toolchain file only once."""
    record = folder / "settings.txt"
    if not holds(record, settings.encode()):
        shutil.rmtree(folder, ignore_errors=True)
        write_atomic(record, settings.encode())
