"""The test firmware around one module: built with CMake from ``runtime/verify``, run on a board or this machine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from mlfbuild.emulator.qemu import RunResult, run_elf
from mlfbuild.errors import ProcessFailedError, TimedOutError
from mlfbuild.files import holds, write_atomic, write_if_changed
from mlfbuild.firmware.verification import HOST, module_header
from mlfbuild.library import Module
from mlfbuild.process import find_tool, run
from mlfbuild.targets import RUNTIME, Board, require_compiler


def build_harness(tree: Path, module: Module, board: Board | None, toolchain: Path | None, workdir: Path) -> Path:
    """Build the test firmware for ``module`` of the unpacked ``tree`` under ``workdir``; returns the image.

    A second build does what changed. Raises ``ToolNotFoundError``, ``UnsupportedModelError``, ``StorageError``, and
    ``ProcessFailedError`` with the compiler's output.
    """
    generated = workdir / "generated"
    name = board.name if board else HOST
    write_if_changed(generated / "verify_module.h", module_header(module, name).encode())
    require_compiler(toolchain)
    cmake, ninja, folder = find_tool("cmake"), find_tool("ninja"), workdir / "build"
    definitions = {
        "CMAKE_MAKE_PROGRAM": str(ninja),
        "CMAKE_BUILD_TYPE": "RelWithDebInfo",
        "MLF_TREE": str(tree.resolve()),
        "MLF_MODULE": module.name,
        "MLF_GENERATED": str(generated.resolve()),
        "MLF_BOARD": board.name if board else "",
    }
    if toolchain is not None:
        definitions["CMAKE_TOOLCHAIN_FILE"] = str(toolchain.resolve())
    _start_afresh_if(folder, "\n".join(f"{name}={value}" for name, value in definitions.items()))
    options = [f"-D{name}={value}" for name, value in definitions.items()]
    run([cmake, "-G", "Ninja", "-S", RUNTIME / "verify", "-B", folder, "--no-warn-unused-cli", *options])
    run([cmake, "--build", folder])
    return folder / "verify.elf"


def _start_afresh_if(folder: Path, settings: str) -> None:
    """Empty the build folder where it was made with other settings: CMake takes a toolchain file only once."""
    record = folder / "settings.txt"
    if not holds(record, settings.encode()):
        shutil.rmtree(folder, ignore_errors=True)
        write_atomic(record, settings.encode())


def run_harness(image: Path, board: Board | None, workdir: Path, timeout: float) -> RunResult:
    """Run the test firmware on ``inputs.bin`` in ``workdir``; it writes ``outputs.bin``.

    On this machine a negative exit status is the signal that ended the run. Raises ``TimedOutError`` where the run
    takes longer than ``timeout`` seconds, ``ProcessFailedError`` where it cannot be started.
    """
    arguments = ["inputs.bin", "outputs.bin"]
    if board is not None:
        return run_elf(image, board, cwd=workdir, arguments=arguments, timeout=timeout)
    try:
        done = subprocess.run(
            [str(image.resolve()), *arguments], cwd=workdir, timeout=timeout, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise TimedOutError(f"{image}: still running after {timeout:g} s, stopped") from None
    except OSError as error:
        raise ProcessFailedError(f"{image}: cannot be started: {error.strerror}") from None
    return RunResult(done.stdout, done.returncode)
