"""Devices for tests: targets with a runner, and vectors of the library of ``hand_written_library``."""

from pathlib import Path

import numpy as np

from mlfbuild.jobs import TargetJob
from mlfbuild.project import RunnerKeys
from mlfbuild.targets import MCUS, cpu_called, toolchain_file

A = np.array([[1, 2, 3, 4], [-5, 6, 100, 8], [9, -10, 11, 12]], np.int8)
B = np.array([[1, 1, 1, 1], [2, 2, 2, 2], [-100, 3, 3, 3]], np.int8)
SUM = A + B
MEAN = (SUM[:, [0, 3]] / 2).astype(np.float32)
PLACE = "mlfbuild.yml: targets.desk.runner"


def target(cpu: str, keys: RunnerKeys, mcu: str | None = None) -> TargetJob:
    processor = cpu_called(cpu)
    toolchain = toolchain_file(processor)
    return TargetJob("desk", processor, None, toolchain, Path(), (), mcu=MCUS[mcu] if mcu else None, runner=keys)
