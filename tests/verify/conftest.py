"""Firmware for the tests of this folder, built with CMake and the toolchain files of the product."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.targets import GCC, RUNTIME, Board, compiler_program, cpu_called, toolchain_file

PROJECT = """\
cmake_minimum_required(VERSION 3.20)
project(app {languages})
set(MLF_BOARD {board})
include({runtime}/board/board.cmake)
add_executable(app {sources})
target_link_libraries(app PRIVATE mlf::board m)
target_link_options(app PRIVATE -u _printf_float -Wl,--fatal-warnings)
foreach(target IN ITEMS app mlf_board)
  target_compile_options(
    ${{target}} PRIVATE $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Werror -Wshadow -Wconversion -Wpedantic -std=c99>)
endforeach()
"""

Build = Callable[..., Path]


def run_ok(*command: str | Path) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="session")
def build_firmware(tool: Callable[..., str]) -> Build:
    """Return a function that builds the sources in a folder for a board and returns the image."""
    tool("cmake", "ninja")

    def build(folder: Path, board: Board, sources: dict[str, str], *options: str) -> Path:
        tool(compiler_program(cpu_called(board.cpu), GCC))
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in sources.items():
            (folder / name).write_text(text)
        (folder / "CMakeLists.txt").write_text(
            PROJECT.format(
                board=board.name,
                runtime=RUNTIME,
                sources=" ".join(sources),
                languages="C CXX" if any(name.endswith(".cpp") for name in sources) else "C",
            )
        )
        toolchain = toolchain_file(cpu_called(board.cpu))
        output = folder / "build"
        run_ok("cmake", "-G", "Ninja", "-S", folder, "-B", output, f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", *options)
        run_ok("cmake", "--build", output, "-j", "2")
        return output / "app.elf"

    return build
