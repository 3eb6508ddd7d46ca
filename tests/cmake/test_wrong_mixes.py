"""A compiler or toolchain file for another CPU than the target's stops the configuration with the reason."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.targets import cmake_folder
from support.cmake_repo import CMakeRepo, error_lines
from support.examples import first_on_push

TOOLCHAINS = cmake_folder() / "toolchains"
CPUS = {"m4": "cortex-m4", "soft": "cortex-m4+nofp", "m55": "cortex-m55", "pc": "host"}
PROJECT = "mlfbuild: 1\ntargets:\n" + "".join(f"  {name}: {{cpu: {cpu}}}\n" for name, cpu in CPUS.items()) + """\
models:
  alpha: {source: models/alpha.tflite}
"""  # fmt: skip
CMAKELISTS = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C)
find_package(mlfbuild CONFIG REQUIRED)
mlfbuild_models(mlfbuild.yml TARGET m4)
"""
DEVICE = """\
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
"""
"""Somebody's own toolchain file, without flags."""
M4 = "-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16"
GCC = "arm-none-eabi-gcc"
SOFTFP = (
    f"{GCC} passes floats in integer registers (soft or softfp) like cortex-m4+nofp, cortex-m4 in FPU registers (hard)"
)


LINKED = """\
{}add_library(cpu INTERFACE)
target_link_libraries(mlf_alpha PRIVATE cpu)
target_compile_options(cpu INTERFACE $<$<COMPILE_LANGUAGE:C,ASM>:@> $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>
  "SHELL:-mfloat-abi=softfp -g")
"""


@pytest.fixture
def repo(tmp_path: Path, tool: Callable[..., str]) -> CMakeRepo:
    tool("cmake", "ninja", "gcc", "arm-none-eabi-gcc")
    repo = CMakeRepo(tmp_path)
    repo.write("mlfbuild.yml", PROJECT)
    repo.write("CMakeLists.txt", CMAKELISTS)
    repo.write("device.cmake", DEVICE)
    return repo


def refusal(repo: CMakeRepo, toolchain: str, target: str = "m4", *arguments: str) -> str:
    """Return the reason why the configuration stops; empty if it does not."""
    repo.replace("CMakeLists.txt", "TARGET m4", f"TARGET {target}")
    chosen = [f"-DCMAKE_TOOLCHAIN_FILE={toolchain}"] if toolchain else []
    ran = repo.configure(*chosen, *arguments)
    lines = error_lines(ran.output)
    assert (ran.status == 0) == (not lines), ran.output
    if not lines:
        return ""
    assert ran.output.count("CMake Error") == 1
    (line,) = lines
    start = f"mlfbuild_models: target {target} ({CPUS[target]}) of {repo.root}/mlfbuild.yml: "
    advice = f"with -DCMAKE_TOOLCHAIN_FILE={TOOLCHAINS}/{CPUS[target]}.cmake"
    end = f"; configure an empty build folder {'without CMAKE_TOOLCHAIN_FILE' if target == 'pc' else advice}"
    assert line.startswith(start) and line.endswith(f"{end}, or choose another TARGET"), line
    return line[len(start) : -len(f"{end}, or choose another TARGET")]


@pytest.mark.parametrize(
    ("cpu", "target"), first_on_push([("cortex-m4", "m55"), ("cortex-m4", "pc"), ("cortex-m4+nofp", "m4")])
)
def test_toolchain_file_of_mlfbuild_for_another_cpu_is_rejected(repo: CMakeRepo, cpu: str, target: str) -> None:
    toolchain = f"{TOOLCHAINS}/{cpu}.cmake"
    assert refusal(repo, toolchain, target) == f"{toolchain} is for {cpu}"


def test_host_compiler_for_a_device_is_rejected(repo: CMakeRepo) -> None:
    assert refusal(repo, "").endswith(" does not compile for armv7e-m, the architecture of cortex-m4")


@pytest.mark.parametrize(
    ("target", "flags", "reason"),
    first_on_push([
        ("m4", f"{M4} -mfloat-abi=softfp", SOFTFP),
        ("soft", f"{M4} -mfloat-abi=softfp", ""),
        ("m4", "-mcpu=cortex-m33", f"{GCC} does not compile for armv7e-m, the architecture of cortex-m4"),
        ("m55", "-mcpu=cortex-m33", f"{GCC} compiles without MVE (Helium), which cortex-m55 has"),
        ("pc", M4, f"{GCC} compiles for bare metal, not for this machine"),
        ("m4", f"{M4} -mfloat-abi=hard", ""),
    ], 2),
)  # fmt: skip
def test_toolchain_file_of_the_project_is_checked(repo: CMakeRepo, target: str, flags: str, reason: str) -> None:
    found = refusal(repo, f"{repo.root}/device.cmake", target, f"-DCMAKE_C_FLAGS={flags}")
    assert found.rpartition("/")[2] == reason


@pytest.mark.parametrize(
    ("lines", "reason"),
    first_on_push(
        [
            ("add_compile_options(@ -mfloat-abi=softfp)\n{}", SOFTFP),
            ("{}target_compile_options(mlf_alpha PRIVATE @ -mfloat-abi=hard)\n", ""),
            ("{}target_compile_options(mlf_alpha PRIVATE @ -mfloat-abi=softfp)\n", SOFTFP),
            (LINKED, SOFTFP),
            ("{}target_compile_options(mlf_alpha PRIVATE $<$<CONFIG:Debug>:-mcpu=cortex-m3>)\n", ""),
        ],
        2,
    ),
    ids=["of the folder", "of the library", "of the library, wrong", "of what it links", "known to the generator only"],
)
def test_flags_are_checked_wherever_they_are_set(repo: CMakeRepo, lines: str, reason: str) -> None:
    call = "mlfbuild_models(mlfbuild.yml TARGET m4)\n"
    text = lines.replace("{}", call).replace("@", M4)
    repo.replace("CMakeLists.txt", call, text)
    assert refusal(repo, f"{repo.root}/device.cmake").rpartition("/")[2] == reason


def test_wrong_flags_in_the_toolchain_file_of_the_target_are_to_be_corrected_there(repo: CMakeRepo) -> None:
    repo.replace("mlfbuild.yml", "m4: {cpu: cortex-m4}", "m4: {cpu: cortex-m4, toolchain: device.cmake}")
    ran = repo.configure(f"-DCMAKE_TOOLCHAIN_FILE={repo.root}/device.cmake", "-DCMAKE_C_FLAGS=-mcpu=cortex-m33")
    (line,) = error_lines(ran.output)
    advice = f"correct the flags in {repo.root}/device.cmake or in CMakeLists.txt, or choose another TARGET"
    assert line.endswith(f" does not compile for armv7e-m, the architecture of cortex-m4; {advice}")
