import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.core.errors import ToolNotFoundError, UsageError
from mlfbuild.targets import (
    BOARDS,
    CPUS,
    RUNTIME,
    board_called,
    cmake_folder,
    cpu_called,
    cpu_of_toolchain,
    emulated_board,
    require_compiler,
    shared_toolchain_files,
    toolchain_file,
)
from mlfbuild.targets.cpus import toolchain_text
from mlfbuild.targets.types import Board, Cpu
from support.errors import raises

UNITS = {"K": 1024, "M": 1024 * 1024}


def linker_regions(board: Board) -> dict[str, tuple[int, int]]:
    """(origin, size) of each region that the board's linker script defines."""
    text = (RUNTIME / "board" / f"{board.name}.ld").read_text()
    lines = re.findall(r"^ +(\w+) +\(\w+\) +: ORIGIN = (0x\w+), LENGTH = (\d+)([KM])$", text, re.MULTILINE)
    return {name: (int(origin, 16), int(size) * UNITS[unit]) for name, origin, size, unit in lines}


@pytest.mark.parametrize("board", BOARDS.values(), ids=lambda board: board.name)
def test_memory_map_is_that_of_the_linker_script(board: Board) -> None:
    assert linker_regions(board) == {name: (region.origin, region.size) for name, region in board.regions.items()}


@pytest.mark.parametrize("board", BOARDS.values(), ids=lambda board: board.name)
def test_a_board_has_a_cpu_of_the_table(board: Board) -> None:
    assert CPUS[board.cpu].toolchain is not None


@pytest.mark.parametrize("cpu", CPUS.values(), ids=lambda cpu: cpu.name)
def test_code_runs_on_the_board_of_its_core_if_there_is_one(cpu: Cpu) -> None:
    own = [board for board in BOARDS.values() if board.cpu == cpu.core]
    taking = [board for board in BOARDS.values() if board.takes(cpu)]
    assert emulated_board(cpu) == next(iter(own or taking), None)
    assert set(own) <= set(taking)


ROWS = [(cpu, compiler) for cpu in CPUS.values() for compiler in cpu.compilers]


@pytest.mark.parametrize(("cpu", "compiler"), ROWS, ids=lambda value: getattr(value, "name", value))
def test_a_toolchain_file_is_what_the_table_says(cpu: Cpu, compiler: str) -> None:
    path = toolchain_file(cpu, compiler)
    assert path is not None
    text = path.read_text() if path.exists() else ""
    assert text == toolchain_text(cpu, compiler), f"{path.name} is outdated; run `make generate`"
    assert cpu_of_toolchain(path) == (cpu, compiler)


def test_every_toolchain_file_has_a_cpu() -> None:
    files = {path.name for path in (cmake_folder() / "toolchains").glob("*.cmake")}
    shared = {path.name for path in shared_toolchain_files()}
    assert files - shared == {cpu.toolchain_with(compiler) for cpu, compiler in ROWS}, "run `make generate`"
    assert shared == {
        "arm-none-eabi-clang.cmake", "arm-none-eabi-gcc.cmake", "bare-metal.cmake", "riscv64-unknown-elf-gcc.cmake",
    }  # fmt: skip


@pytest.mark.parametrize("cpu", [cpu for cpu in CPUS.values() if cpu.compilers], ids=lambda cpu: cpu.name)
def test_the_columns_of_the_table_are_consistent(cpu: Cpu) -> None:
    assert cpu.toolchain == f"{cpu.name}.cmake"
    if cpu.is_arm:
        assert f"-mcpu={cpu.name}" in cpu.flags and f"-mfloat-abi={cpu.float_abi}" in cpu.flags
    assert (cpu.float_abi == "hard") == ("fpu" in cpu.features)


def test_an_unknown_toolchain_file_has_no_cpu(tmp_path: Path) -> None:
    assert cpu_of_toolchain(tmp_path / "cortex-m4.cmake") is None


def test_the_host_has_no_toolchain_file() -> None:
    assert toolchain_file(cpu_called("host")) is None


@pytest.mark.parametrize(
    ("find", "name", "code", "near"),
    [
        (cpu_called, "cortex-m4f", "unknown-cpu", 'did you mean "cortex-m4"?'),
        (cpu_called, "m7", "unknown-cpu", 'did you mean "cortex-m7"?'),
        (board_called, "mps2_an386", "unknown-board", 'did you mean "mps2-an386"?'),
        (cpu_called, "x86", "unknown-cpu", "choose one of cortex-m0, "),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(
    find: Callable[[str], object], name: str, code: str, near: str
) -> None:
    with raises(UsageError, code, at=name) as caught:
        find(name)
    assert near in str(caught.value)


def toolchain_of(name: str, compiler: str | None = None) -> Path | None:
    return toolchain_file(cpu_called(name), compiler)


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLFBUILD_ARM_NONE_EABI_GCC", "/nowhere/gcc")
    for compiler in ("gcc", "clang"):
        with raises(ToolNotFoundError, "program-not-found", at="/nowhere/gcc") as caught:
            require_compiler(toolchain_of("cortex-m4", compiler))
        assert "gcc-arm-none-eabi" in caught.value.hint
    require_compiler(tmp_path / "another-toolchain.cmake")


@pytest.mark.parametrize("name", ["clang", "riscv64-unknown-elf-gcc"])
def test_a_missing_compiler_of_other_kinds_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    program(tmp_path / "arm-none-eabi-gcc")
    monkeypatch.setenv("PATH", str(tmp_path))
    toolchain = toolchain_of("cortex-m4", "clang") if name == "clang" else toolchain_of("rv32imc")
    with raises(ToolNotFoundError, "program-not-found", at=name) as caught:
        require_compiler(toolchain)
    assert re.search("apt-get install (gcc-riscv64|clang)", caught.value.hint)


def program(path: Path, script: str = "exit 0") -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_a_cmake_definition_of_the_compiler_has_precedence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiler = program(tmp_path / "my-gcc")
    monkeypatch.setenv("MLFBUILD_ARM_NONE_EABI_GCC", "/nowhere/gcc")
    for definition in ("MLFBUILD_ARM_NONE_EABI_GCC", "MLFBUILD_ARM_NONE_EABI_GCC:FILEPATH"):
        require_compiler(toolchain_of("cortex-m4"), ["OTHER=1", f"{definition}={compiler}"])
    with raises(ToolNotFoundError, "program-not-found", at="/not/here"):
        require_compiler(toolchain_of("cortex-m4"), ["MLFBUILD_ARM_NONE_EABI_GCC=/not/here"])


def test_clang_is_found_by_its_name_in_debian(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("arm-none-eabi-gcc", "clang-16"):
        program(tmp_path / name)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("MLFBUILD_CLANG", raising=False)
    require_compiler(toolchain_of("cortex-m4", "clang"))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_compiler_without_support_for_the_cpu_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, compiler: str
) -> None:
    known = program(tmp_path / "arm-none-eabi-gcc")
    old = program(tmp_path / f"old-{compiler}", 'case "$*" in *cortex-m85*) exit 1;; esac')
    monkeypatch.setenv("MLFBUILD_ARM_NONE_EABI_GCC", str(known))
    variable = "MLFBUILD_CLANG" if compiler == "clang" else "MLFBUILD_ARM_NONE_EABI_GCC"
    monkeypatch.setenv(variable, str(old))
    require_compiler(toolchain_of("cortex-m55", compiler))
    with pytest.raises(ToolNotFoundError) as caught:
        require_compiler(toolchain_of("cortex-m85", compiler))
    wanted, other = ("clang 15", "GCC 13") if compiler == "clang" else ("GCC 13", "clang 15")
    assert (caught.value.code, caught.value.place) == ("compiler-too-old", "cortex-m85")
    assert str(old) in caught.value.reason
    assert all(
        words in caught.value.hint for words in (f"{wanted} or later", variable, f"{other} or later", "clang-19")
    )


def test_a_missing_compiler_of_this_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CC", raising=False)
    with raises(ToolNotFoundError, "no-host-compiler", at="cc") as caught:
        require_compiler(None)
    assert "apt-get install gcc libc6-dev" in caught.value.hint
    monkeypatch.setenv("CC", "/opt/clang")
    require_compiler(None)


@pytest.mark.parametrize("cpu", CPUS.values(), ids=lambda cpu: cpu.name)
def test_a_cpu_can_be_pickled(cpu: Cpu) -> None:
    assert pickle.loads(pickle.dumps(cpu)) == cpu
