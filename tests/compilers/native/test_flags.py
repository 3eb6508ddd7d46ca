"""Kernels under the flags of a compiler: right on the board at every level and with every instrumentation."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.targets import CPUS
from support.board_cases import Build, build_image, wrong_on_board
from support.host_c import run, write_tree
from support.kernel_networks import assembly_kernels, kernel_jobs

Tool = Callable[[str], str]

SSP = "-fstack-protector-all"


def check(cpu: str, folder: Path, tool: Tool, how: Build, *, few: bool = True) -> Path:
    """Build the networks of the core's kernels, run them, and return the image."""
    image = build_image(kernel_jobs(cpu, few=few), cpu, folder, tool, how)
    assert wrong_on_board(image, cpu, tool) == []
    return image


def functions(image: Path) -> set[str]:
    return {line.split()[0].split(".")[0] for line in run(["nm", "--format=posix", image]).splitlines()}


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_canaries_leave_assembly_alone(cpu: str, tmp_path: Path, tool: Tool) -> None:
    image = check(cpu, tmp_path, tool, Build(("-O2", SSP)))
    assert "__stack_chk_fail" in functions(image)
    assert len(functions(image) & assembly_kernels()) > 10


def test_a_compiler_that_puts_canaries_into_assembly_gets_kernels_in_c(tmp_path: Path, tool: Tool) -> None:
    """GCC before 11 lacks the attribute, and the macro that asks for it here, too."""
    old = ("-O2", "-U__has_attribute")
    check("cortex-m4", tmp_path, tool, Build((*old, SSP)))
    source = write_tree(kernel_jobs("cortex-m4", few=True)[0][0], tmp_path / "alone") / "host/src/net0_lib0.c"
    command = [tool("arm-none-eabi-gcc"), *CPUS["cortex-m4"].flags, *old, "-I", source.parents[1] / "include", "-S",
               "-o", "-", source]  # fmt: skip
    with_canaries, without = (
        subprocess.run([*command, *flags], capture_output=True, text=True, check=True) for flags in ([SSP], [])
    )
    assert with_canaries.stderr.count("note: '#pragma message: mlfbuild: slower kernels in C") == 1
    assert "smmlar" not in with_canaries.stdout
    assert "smmlar" in without.stdout
    assert "#pragma" not in without.stderr


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_registers_suffice_with_a_frame_pointer_and_no_optimisation(cpu: str, tmp_path: Path, tool: Tool) -> None:
    check(cpu, tmp_path, tool, Build(("-O0", "-fno-omit-frame-pointer", "-ffixed-r9")), few=False)
