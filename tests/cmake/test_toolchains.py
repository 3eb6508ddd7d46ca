"""The toolchain files, used by CMake and Ninja as in a firmware repository."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.targets import RUNTIME, Cpu, cmake_folder
from mlfbuild.targets.cpus import advice
from support.cpu_rows import ROWS

TOOLCHAINS = cmake_folder() / "toolchains"

# What the assembler calls Arm's architectures in an object file.
ARCHITECTURE_TAGS = {
    "armv6s-m": "v6S-M", "armv7-m": "v7", "armv7e-m": "v7E-M", "armv7-a": "v7", "armv8-m.base": "v8-M.baseline",
    "armv8-m.main": "v8-M.mainline", "armv8.1-m.main": "v8.1-M.mainline",
}  # fmt: skip

LIBRARY = """\
cmake_minimum_required(VERSION 3.20)
project(library C)
add_library(library STATIC library.c)
"""
FIRMWARE = """\
cmake_minimum_required(VERSION 3.20)
project(firmware C CXX ASM)
set(MLF_BOARD mps2-an386)
include(board/board.cmake)
add_executable(app main.c assertions.cpp data.S)
target_include_directories(app PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
target_link_libraries(app PRIVATE mlf::board)
file(CONFIGURE OUTPUT generated.h CONTENT "static const char *where(void) { return __FILE__; }\\n" @ONLY)
set_property(SOURCE data.S PROPERTY COMPILE_DEFINITIONS "DATA=\\"${CMAKE_CURRENT_SOURCE_DIR}/data.bin\\"")
"""
MAIN_C = """\
#include <assert.h>
#include "generated.h"
extern const char data[];
int checked(int);
int main(int argc, char **argv) { assert(argv[0] != where()); return data[0] + checked(argc); }
"""
ASSERTIONS_CPP = """\
#include <cassert>
namespace { struct Value { int value; Value(int v) : value(v) {} ~Value() { value = 0; } } value(3); }
extern "C" int checked(int n) { static Value once(n); assert(n < 9); return value.value + once.value; }
"""
DATA_S = '.section .rodata.data,"a"\n.globl data\ndata: .incbin DATA\n.byte 0\n'


def run(*command: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **(env or {})}
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


def configure(
    source: Path, output: Path, toolchain: Path, *options: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    words = ["cmake", "-G", "Ninja", "-S", source, "-B", output, f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", *options]
    return run(*words, env=env)


def build(output: Path) -> str:
    done = run("cmake", "--build", output)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(autouse=True)
def tools(tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "cmake", "ninja")


def write_library(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "CMakeLists.txt").write_text(LIBRARY)
    (folder / "library.c").write_text("float half(float x) { return x / 2.0f; }\n")
    return folder


def write_firmware(folder: Path) -> Path:
    folder.mkdir(parents=True)
    shutil.copytree(RUNTIME / "board", folder / "board")
    files = {"CMakeLists.txt": FIRMWARE, "main.c": MAIN_C, "assertions.cpp": ASSERTIONS_CPP, "data.S": DATA_S}
    for name, text in {**files, "data.bin": "a"}.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(("cpu", "compiler"), ROWS, ids=lambda value: getattr(value, "name", value))
def test_code_is_for_the_cpu(
    cpu: Cpu, compiler: str, tmp_path: Path, tool: Callable[..., str], newest_clang: dict[str, str]
) -> None:
    gcc = "arm-none-eabi-gcc" if cpu.is_arm else "riscv64-unknown-elf-gcc"
    program = newest_clang["MLFBUILD_CLANG"] if compiler == "clang" else tool(gcc)
    source = write_library(tmp_path / "source")
    toolchain = TOOLCHAINS / cpu.toolchain_with(compiler)
    done = configure(source, tmp_path / "build", toolchain, env=newest_clang)
    if not knows(program, cpu):
        reason = f"{cpu.name}: {program} cannot compile for it; {advice(cpu, compiler)}"
        assert done.returncode != 0
        assert f"  {reason}\n" in done.stdout
        assert cpu.name == "cortex-m85", done.stdout
        return
    assert done.returncode == 0, done.stdout
    build(tmp_path / "build")
    listing = run(gcc.replace("gcc", "readelf"), "-A", "-h", tmp_path / "build" / "liblibrary.a").stdout
    if not cpu.is_arm:
        assert re.search(r'Tag_RISCV_arch: "rv32i\w+_m\w+_c\w+"\n', listing), listing
        assert "Class:                             ELF32\n" in listing and "soft-float ABI" in listing
        return
    assert f"Tag_CPU_arch: {ARCHITECTURE_TAGS[cpu.architecture]}\n" in listing, listing
    assert f"Tag_CPU_arch_profile: {'Application' if cpu.name == 'cortex-a9' else 'Microcontroller'}\n" in listing
    assert ("Tag_ABI_VFP_args: VFP registers" in listing) == (cpu.float_abi == "hard")
    assert ("Tag_FP_arch" in listing) == ("fpu" in cpu.features)
    assert ("Tag_MVE_arch" in listing) == ("mve" in cpu.features)
    assert ("Tag_Advanced_SIMD_arch" in listing) == ("neon" in cpu.features)
    assert "Tag_ABI_enum_size: small" in listing


def knows(compiler: str, cpu: Cpu) -> bool:
    """Return whether the compiler is new enough for the CPU."""
    text = run(compiler, "--version").stdout
    match = re.search(r"(?:version |\) )(\d+)\.", text)
    assert match, text
    return int(match[1]) >= cpu.compilers["clang" if "clang" in text else "gcc"]


@pytest.mark.usefixtures("cross_cxx", "without_ccache")
@pytest.mark.parametrize("build_type", ["", "Debug", "Release"])
def test_images_from_two_folders_are_identical(tmp_path: Path, build_type: str) -> None:
    images = []
    for folder in (tmp_path / "a", tmp_path / "somewhere else" / "much" / "longer"):
        source = write_firmware(folder)
        options = [f"-DCMAKE_BUILD_TYPE={build_type}"] if build_type else []
        done = configure(source, folder / "output", TOOLCHAINS / "cortex-m4.cmake", *options)
        assert done.returncode == 0, done.stdout
        build(folder / "output")
        images.append((folder / "output" / "app.elf").read_bytes())
    assert images[0] == images[1]
    assert str(tmp_path).encode() not in images[0]
    if build_type != "Release":
        assert b"/src/main.c" in images[0]


@pytest.mark.usefixtures("without_ccache")
def test_sources_outside_the_project_have_a_root(tmp_path: Path) -> None:
    source = write_library(tmp_path / "repo" / "cmake")
    (source / "library.c").rename(tmp_path / "repo" / "library.c")
    (source / "CMakeLists.txt").write_text(LIBRARY.replace("library.c", "../library.c"))
    root = f"-DMLFBUILD_SOURCE_ROOT={tmp_path / 'repo'}"
    assert configure(source, tmp_path / "build", TOOLCHAINS / "cortex-m4.cmake", root).returncode == 0
    build(tmp_path / "build")
    library = (tmp_path / "build" / "liblibrary.a").read_bytes()
    assert str(tmp_path).encode() not in library
    assert b"/src/library.c" in library


def test_an_edited_toolchain_file_rebuilds_with_the_new_flags(tmp_path: Path) -> None:
    source = write_library(tmp_path / "source")
    shutil.copytree(TOOLCHAINS, tmp_path / "toolchains")
    toolchain = tmp_path / "toolchains" / "cortex-m4.cmake"
    assert configure(source, tmp_path / "build", toolchain, "-DCMAKE_C_FLAGS=-DMINE").returncode == 0
    build(tmp_path / "build")
    assert "no work to do" in build(tmp_path / "build")
    toolchain.write_text(toolchain.read_text().replace("-mfpu=fpv4-sp-d16", "-mfpu=fpv4-sp-d16 -fwrapv"))
    assert "Building C object" in build(tmp_path / "build")
    commands = run("ninja", "-C", tmp_path / "build", "-t", "commands").stdout
    assert "-mfpu=fpv4-sp-d16 -fwrapv -ffunction-sections" in commands
    assert commands.count("-mcpu=cortex-m4") == 1


def test_flags_of_the_project_are_kept(tmp_path: Path) -> None:
    source = write_library(tmp_path / "source")
    done = configure(source, tmp_path / "build", TOOLCHAINS / "cortex-m4.cmake", "-DCMAKE_C_FLAGS=-DMINE")
    assert done.returncode == 0, done.stdout
    commands = run("ninja", "-C", tmp_path / "build", "-t", "commands").stdout
    assert "-DMINE" in commands and "-mcpu=cortex-m4" in commands


@pytest.mark.usefixtures("cross_cxx")
def test_edited_linker_script_links_again(tmp_path: Path) -> None:
    source = write_firmware(tmp_path / "firmware")
    assert configure(source, tmp_path / "build", TOOLCHAINS / "cortex-m4.cmake").returncode == 0
    build(tmp_path / "build")
    for name in ("mlf_board.ld", "mps2-an386.ld"):
        script = source / "board" / name
        script.write_text(script.read_text() + "/* edited */\n")
        output = build(tmp_path / "build")
        assert "Linking CXX executable app.elf" in output and "Building" not in output


def test_missing_compiler_error_has_a_hint(tmp_path: Path) -> None:
    source = write_library(tmp_path / "source")
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={TOOLCHAINS / 'cortex-m4.cmake'}"
    environment = {"MLFBUILD_ARM_NONE_EABI_GCC": "arm-missing-gcc"}
    done = run("cmake", "-G", "Ninja", "-S", source, "-B", tmp_path / "build", toolchain, env=environment)
    assert done.returncode != 0
    (line,) = (line.strip() for line in done.stdout.splitlines() if "arm-missing-gcc" in line)
    assert line.startswith("arm-missing-gcc: program not found; install it (Debian: apt-get install gcc-arm-none-eabi")
    assert line.endswith(" or set MLFBUILD_ARM_NONE_EABI_GCC to its path")


def test_compiler_can_be_selected(tmp_path: Path, tool: Callable[..., str]) -> None:
    for language in ("gcc", "g++"):
        (tmp_path / f"my-{language}").symlink_to(tool(f"arm-none-eabi-{language}"))
    source = write_library(tmp_path / "source")
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={TOOLCHAINS / 'cortex-m4.cmake'}"
    environment = {"MLFBUILD_ARM_NONE_EABI_GCC": str(tmp_path / "my-gcc")}
    done = run("cmake", "-G", "Ninja", "-S", source, "-B", tmp_path / "build", toolchain, env=environment)
    assert done.returncode == 0, done.stdout
    cache = (tmp_path / "build" / "CMakeCache.txt").read_text()
    assert f"MLFBUILD_ARM_NONE_EABI_GCC:FILEPATH={tmp_path / 'my-gcc'}" in cache


def test_unknown_board_is_reported(tmp_path: Path) -> None:
    source = write_firmware(tmp_path / "firmware")
    (source / "CMakeLists.txt").write_text(FIRMWARE.replace("mps2-an386", "mps9"))
    done = configure(source, tmp_path / "build", TOOLCHAINS / "cortex-m4.cmake")
    assert done.returncode != 0
    assert 'MLF_BOARD is "mps9"; set it to a board that has a linker script' in " ".join(done.stdout.split())


@pytest.mark.usefixtures("cross_cxx")
def test_clang_compiles_every_language(tmp_path: Path, newest_clang: dict[str, str]) -> None:
    source = write_firmware(tmp_path / "fire ware")
    done = configure(source, tmp_path / "build", TOOLCHAINS / "cortex-m4-clang.cmake", env=newest_clang)
    assert done.returncode == 0, done.stdout
    output = build(tmp_path / "build")
    assert "warning" not in output
    assert "no work to do" in build(tmp_path / "build")
    image = (tmp_path / "build" / "app.elf").read_bytes()
    assert b"/src/main.c" in image and str(tmp_path).encode() not in image
    assert b"clang version" in image


def test_clang_uses_newlib_nano_headers_with_its_libraries(tmp_path: Path, newest_clang: dict[str, str]) -> None:
    source = write_library(tmp_path / "source")
    shutil.copytree(RUNTIME / "board", source / "board")
    with_board = "set(MLF_BOARD mps2-an386)\ninclude(board/board.cmake)\ntarget_link_libraries(library mlf::board)\n"
    (source / "CMakeLists.txt").write_text(LIBRARY + with_board)
    (source / "library.c").write_text("#include <newlib.h>\n#ifndef _NANO_FORMATTED_IO\n#error newlib's own\n#endif\n")
    done = configure(source, tmp_path / "build", TOOLCHAINS / "cortex-m4-clang.cmake", env=newest_clang)
    assert done.returncode == 0, done.stdout
    build(tmp_path / "build")


def test_clang_without_gcc_is_reported(tmp_path: Path, newest_clang: dict[str, str]) -> None:
    source = write_library(tmp_path / "source")
    environment = {**newest_clang, "MLFBUILD_ARM_NONE_EABI_GCC": "arm-missing-gcc"}
    done = configure(source, tmp_path / "build", TOOLCHAINS / "cortex-m4-clang.cmake", env=environment)
    assert done.returncode != 0
    assert "arm-missing-gcc: program not found; install it (Debian: apt-get" in " ".join(done.stdout.split())
