"""The C compiler of a target: selected in the project file, and rejected if it does not fit."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.core.errors import ProjectFileError, UsageError
from mlfbuild.jobs import firmware_jobs, load, target_jobs
from mlfbuild.jobs.model_job import FirmwareJob
from mlfbuild.targets import cmake_folder
from mlfbuild.usecases.build import build_firmware, build_project as build
from support.errors import raises
from support.firmware_repo import tiny_network

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
def test_toolchain_file_is_that_of_the_compiler(tmp_path: Path, cpu: str, c_compiler: str | None, name: str) -> None:
    chosen = {} if c_compiler is None else {"c-compiler": c_compiler}
    (target,) = target_jobs(load(write_project(tmp_path, cpu=cpu, **chosen)))
    assert target.toolchain == TOOLCHAINS / name
    assert target.toolchain in target.toolchain_files
    assert TOOLCHAINS / "bare-metal.cmake" in target.toolchain_files


def test_toolchain_file_of_another_cpu_is_rejected(tmp_path: Path) -> None:
    path = write_project(tmp_path, cpu="cortex-m55", toolchain=str(TOOLCHAINS / "cortex-m4.cmake"))
    with pytest.raises(ProjectFileError) as caught:
        load(path)
    (problem,) = caught.value.problems
    assert problem.code == "toolchain-of-another-cpu"
    assert problem.place.endswith("targets.t.toolchain")


def test_toolchain_file_of_the_cpu_is_accepted(tmp_path: Path) -> None:
    path = write_project(tmp_path, cpu="cortex-m4", toolchain=str(TOOLCHAINS / "cortex-m4-clang.cmake"))
    (target,) = target_jobs(load(path))
    assert target.toolchain == TOOLCHAINS / "cortex-m4-clang.cmake"


# Flags ---------------------------------------------------------------------------------------------------------------

DEVICE = """\
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_EXECUTABLE_SUFFIX_C .elf)
add_compile_options(@)
add_link_options(@ --specs=nosys.specs)
"""
"""Somebody's own toolchain file."""
M4 = "-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16"


@pytest.fixture
def firmware(tmp_path: Path, tool: Callable[..., str]) -> Callable[[str, str], FirmwareJob]:
    """Return a function that writes a firmware with flags for a CPU, unpacks its model, and returns the build's job."""
    tool("cmake", "ninja", "arm-none-eabi-gcc")

    def write(cpu: str, flags: str) -> FirmwareJob:
        folder = tmp_path / "my repo"
        folder.mkdir(exist_ok=True)
        (folder / "net.tflite").write_bytes(tiny_network(1))
        (folder / "main.c").write_text("int main(void) { return 0; }\n")
        (folder / "device.cmake").write_text(DEVICE.replace("@", flags))
        (folder / "mlfbuild.yml").write_text(
            f"mlfbuild: 1\ntargets: {{kit: {{cpu: {cpu}, toolchain: device.cmake}}}}\n"
            "models: {net: {source: net.tflite}}\nfirmware: {app: {sources: [main.c]}}\n"
        )
        project = load(folder / "mlfbuild.yml")
        targets = target_jobs(project)
        build(targets)
        (job,) = firmware_jobs(project, targets)
        return job

    return write


@pytest.mark.parametrize(
    ("cpu", "flags", "fact"),
    [
        ("cortex-m4", "-mcpu=cortex-m3 -mthumb", "armv7e-m"),
        ("cortex-m55", "-mcpu=cortex-m33 -mthumb", "MVE (Helium)"),
        ("host", M4, "bare metal"),
    ],
)  # fmt: skip
def test_flags_for_another_cpu_are_rejected_before_compilation(
    firmware: Callable[[str, str], FirmwareJob], cpu: str, flags: str, fact: str
) -> None:
    job = firmware(cpu, flags)
    for _ in range(2):
        with raises(UsageError, "flags-for-another-cpu", f"app: target kit ({cpu})") as caught:
            build_firmware(job)
        compiler, _, words = caught.value.reason.partition("arm-none-eabi-gcc ")
        assert compiler.startswith("/") and fact in words
        assert f"({job.root / 'device.cmake'})" in caught.value.hint
    assert not list(job.build.rglob("*.obj"))


def test_changed_flags_are_checked_again(firmware: Callable[[str, str], FirmwareJob]) -> None:
    job = firmware("cortex-m4", M4)
    build_firmware(job)
    assert job.elf.is_file()
    asked = (job.build / ".mlfbuild-flags").stat().st_mtime_ns
    build_firmware(job)
    assert (job.build / ".mlfbuild-flags").stat().st_mtime_ns == asked
    job = firmware("cortex-m4", M4.replace("=hard", "=softfp"))
    with raises(UsageError, "flags-for-another-cpu") as caught:
        build_firmware(job)
    assert "(soft or softfp)" in caught.value.reason
    firmware("cortex-m4", f"{M4} -O1")
    build_firmware(job)
