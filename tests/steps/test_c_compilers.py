"""The C compiler of a target: chosen in the project file, and refused where it cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlfbuild.errors import ProjectFileError
from mlfbuild.steps.project import load, target_jobs
from mlfbuild.targets import cmake_folder

TOOLCHAINS = cmake_folder() / "toolchains"


def write_project(folder: Path, **target: str) -> Path:
    (folder / "net.tflite").touch()
    path = folder / "mlfbuild.yml"
    path.write_text(json.dumps({"mlfbuild": 1, "targets": {"t": target}, "models": {"net": {"source": "net.tflite"}}}))
    return path


@pytest.mark.parametrize(
    ("cpu", "c_compiler", "name"),
    [
        ("cortex-m4", None, "cortex-m4.cmake"),
        ("cortex-m4", "gcc", "cortex-m4.cmake"),
        ("cortex-m4+nofp", "clang", "cortex-m4+nofp-clang.cmake"),
        ("rv32imc", None, "rv32imc.cmake"),
    ],
)
def test_the_toolchain_file_is_that_of_the_compiler(
    tmp_path: Path, cpu: str, c_compiler: str | None, name: str
) -> None:
    chosen = {} if c_compiler is None else {"c-compiler": c_compiler}
    (target,) = target_jobs(load(write_project(tmp_path, cpu=cpu, **chosen)))
    assert target.toolchain == TOOLCHAINS / name
    assert target.toolchain in target.toolchain_files
    assert TOOLCHAINS / "bare-metal.cmake" in target.toolchain_files


def test_a_toolchain_file_of_another_cpu_is_refused(tmp_path: Path) -> None:
    path = write_project(tmp_path, cpu="cortex-m55", toolchain=str(TOOLCHAINS / "cortex-m4.cmake"))
    with pytest.raises(ProjectFileError) as caught:
        load(path)
    (problem,) = caught.value.problems
    assert problem.endswith(
        f"targets.t.toolchain: {TOOLCHAINS}/cortex-m4.cmake: is for cortex-m4, the target's cpu is cortex-m55; leave "
        "toolchain out"
    )


def test_a_toolchain_file_of_the_cpu_is_taken(tmp_path: Path) -> None:
    path = write_project(tmp_path, cpu="cortex-m4", toolchain=str(TOOLCHAINS / "cortex-m4-clang.cmake"))
    (target,) = target_jobs(load(path))
    assert target.toolchain == TOOLCHAINS / "cortex-m4-clang.cmake"
