"""The lower bounds of instructions for multiply-accumulates."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.targets import CPUS, fewest_instructions, macs_an_instruction


@pytest.mark.parametrize(
    ("cpu", "dtype", "at_once"),
    [
        ("cortex-m55", "int8", 16),
        ("cortex-m55", "int16", 8), ("cortex-m55", "float32", 4), ("cortex-m85", "int8", 16),
        ("cortex-m4", "int8", 2), ("cortex-m4", "int16", 2), ("cortex-m4", "int32", 1), ("cortex-m4", "float32", 1),
        ("cortex-m33", "int8", 2), ("cortex-m7", "float32", 1), ("cortex-m3", "int8", 2), ("cortex-m3", "int16", 1),
        ("cortex-m0plus", "int8", 1), ("cortex-m23", "int16", 0.5), ("rv32imc", "int8", 1),
        ("cortex-a9", "int8", 8), ("cortex-a9", "float32", 4),
        ("cortex-m4+nofp", "float32", None), ("cortex-m3", "float32", None), ("cortex-m4", "float16", None),
        ("cortex-m55", "int64", None), ("cortex-m55", "bool", None), ("rv32imc", "float32", None),
        ("host", "int8", None),
    ],
)  # fmt: skip
def test_macs_of_one_instruction(cpu: str, dtype: str, at_once: float | None) -> None:
    assert macs_an_instruction(CPUS[cpu], dtype) == at_once


def test_the_fewest_instructions() -> None:
    m55, m4, m0 = CPUS["cortex-m55"], CPUS["cortex-m4"], CPUS["cortex-m0plus"]
    assert [fewest_instructions(m55, "int8", macs) for macs in (0, 1, 16, 17)] == [0, 1, 1, 2]
    assert fewest_instructions(m4, "int8", 72_001) == 36_001
    assert fewest_instructions(m0, "int16", 100) == 200
    assert fewest_instructions(CPUS["cortex-m3"], "float32", 5) is None
    assert fewest_instructions(CPUS["cortex-m3"], "float32", 0) == 0


@pytest.mark.parametrize(
    ("cpu", "known", "unknown"),
    [
        ("cortex-m55", "vmladava.s8 r0, q0, q1\nvmladava.s16 r0, q0, q1\nvfma.f32 q0, q1, q2", ""),
        ("cortex-m4", "smlad r0, r1, r2, r3\nvfma.f32 s0, s1, s2", "vmladava.s8 r0, q0, q1"),
        ("cortex-m4+nofp", "smlad r0, r1, r2, r3", "vfma.f32 s0, s1, s2"),
        ("cortex-m3", "mla r0, r1, r2, r3", "smlad r0, r1, r2, r3"),
        ("cortex-m0plus", "muls r0, r1, r0", "mla r0, r1, r2, r3"),
        ("cortex-m23", "muls r0, r1, r0", "mla r0, r1, r2, r3"),
        ("cortex-a9", "vmlal.s8 q0, d2, d3\nvmlal.s16 q0, d2, d3", "vmladava.s8 r0, q0, q1"),
    ],
)
def test_the_assembler_knows_these_instructions(
    cpu: str, known: str, unknown: str, tool: Callable[[str], str], tmp_path: Path
) -> None:
    def assembles(text: str) -> bool:
        (tmp_path / "code.s").write_text(f".syntax unified\n.thumb\n{text}\n")
        command = [tool("arm-none-eabi-gcc"), *CPUS[cpu].flags, "-c", "code.s", "-o", "code.o"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0

    assert assembles(known)
    assert not unknown or not assembles(unknown)
