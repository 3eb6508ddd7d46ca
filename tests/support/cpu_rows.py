"""Parameters of tests for a CPU and a compiler."""

import pytest

from mlfbuild.targets import CPUS

ON_PUSH = {
    ("cortex-m0plus", "gcc"), ("cortex-m4", "clang"), ("cortex-m55", "gcc"), ("cortex-a9", "clang"), ("rv32imc", "gcc"),
}  # fmt: skip
"""Each instruction set that kernels use, and each compiler; the sweep has all rows."""

ROWS = [
    pytest.param(cpu, compiler, marks=[] if (cpu.name, compiler) in ON_PUSH else pytest.mark.sweep)
    for cpu in CPUS.values()
    for compiler in cpu.compilers
]
