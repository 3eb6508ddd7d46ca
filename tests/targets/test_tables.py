from __future__ import annotations

import re
from pathlib import Path

import pytest

from mlfbuild.errors import ToolNotFoundError, UsageError
from mlfbuild.targets import BOARDS, CPUS, RUNTIME, board_called, cpu_called, require_compiler, toolchain_file
from mlfbuild.targets.types import Board, Cpu

UNITS = {"K": 1024, "M": 1024 * 1024}


def linker_regions(board: Board) -> dict[str, tuple[int, int]]:
    """(origin, size) of each region that the board's linker script defines."""
    text = (RUNTIME / "board" / f"{board.name}.ld").read_text()
    lines = re.findall(r"^ +(\w+) +\(\w+\) +: ORIGIN = (0x\w+), LENGTH = (\d+)([KM])$", text, re.MULTILINE)
    return {name: (int(origin, 16), int(size) * UNITS[unit]) for name, origin, size, unit in lines}


@pytest.mark.parametrize("board", BOARDS.values(), ids=lambda board: board.name)
def test_memory_map_is_that_of_the_linker_script(board: Board) -> None:
    regions = linker_regions(board)
    assert regions["FLASH"] == (board.flash.origin, board.flash.size)
    assert regions["RAM"] == (board.ram.origin, board.ram.size)


@pytest.mark.parametrize("board", BOARDS.values(), ids=lambda board: board.name)
def test_a_board_has_a_cpu_of_the_table(board: Board) -> None:
    assert CPUS[board.cpu].toolchain is not None


@pytest.mark.parametrize("cpu", [cpu for cpu in CPUS.values() if cpu.toolchain], ids=lambda cpu: cpu.name)
def test_flags_are_those_of_the_toolchain_file(cpu: Cpu) -> None:
    path = toolchain_file(cpu)
    assert path is not None
    text = path.read_text()
    assert f"set(MLFBUILD_CPU_FLAGS {' '.join(cpu.flags)})" in text
    assert f"set(CMAKE_SYSTEM_PROCESSOR {cpu.name})" in text


def test_every_toolchain_file_has_a_cpu() -> None:
    path = toolchain_file(cpu_called("cortex-m4"))
    assert path is not None
    assert {file.name for file in path.parent.glob("cortex-*.cmake")} == {c.toolchain for c in CPUS.values()} - {None}


def test_the_host_has_no_toolchain_file() -> None:
    assert toolchain_file(cpu_called("host")) is None


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r'^cortex-m4f: unknown cpu \(did you mean "cortex-m4"\?\)$'):
        cpu_called("cortex-m4f")
    with pytest.raises(UsageError, match=r'^mps2_an386: unknown board \(did you mean "mps2-an386"\?\)$'):
        board_called("mps2_an386")


def test_a_name_like_no_other_is_answered_with_all() -> None:
    with pytest.raises(UsageError, match=r"^x86: unknown cpu \(known: cortex-m0plus, .*, host\)$"):
        cpu_called("x86")


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLFBUILD_ARM_NONE_EABI_GCC", "/nowhere/gcc")
    with pytest.raises(ToolNotFoundError, match=r"^/nowhere/gcc: program not found; .*gcc-arm-none-eabi"):
        require_compiler(toolchain_file(cpu_called("cortex-m4")))
    require_compiler(tmp_path / "toolchain-of-somebody-else.cmake")


def test_a_missing_compiler_of_this_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(ToolNotFoundError, match=r"^cc: no C compiler .*apt-get install gcc libc6-dev\) or set CC"):
        require_compiler(None)
    monkeypatch.setenv("CC", "/opt/clang")
    require_compiler(None)
