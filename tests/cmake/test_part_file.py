"""A file that describes the microcontroller: CMake configures again if it changes, and builds what the core decides."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.targets import cmake_folder
from support.cmake_repo import CMakeRepo

CMAKELISTS = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C)
find_package(mlfbuild CONFIG REQUIRED)
mlfbuild_models(mlfbuild.yml TARGET t)
add_library(app STATIC src/app.c)
target_link_libraries(app PRIVATE mlf::alpha)
"""
PART = """\
title = "Our part"
cpu = "cortex-m0plus"
[memory]
ram = {origin = 0x20000000, size = "32 KiB"}
flash = {origin = 0, size = "256 KiB"}
source = "our data sheet"
"""


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> CMakeRepo:
    tool("arm-none-eabi-gcc", "cmake", "ninja")
    repo = CMakeRepo(tmp_path_factory.mktemp("repo"))
    repo.write(
        "mlfbuild.yml",
        "mlfbuild: 1\ntargets: {t: {mcu: parts/our.toml}}\nmodels: {alpha: {source: models/alpha.tflite}}\n",
    )
    repo.write("CMakeLists.txt", CMAKELISTS)
    repo.write("src/app.c", '#include "tvmgen_alpha.h"\nint app(void) { return tvmgen_alpha_run(0, 0); }\n')
    repo.write("parts/our.toml", PART)
    # A toolchain file of the project may be for both cores.
    repo.write("device.cmake", f'include("{cmake_folder()}/toolchains/cortex-m0plus.cmake")\n')
    repo.configure(f"-DCMAKE_TOOLCHAIN_FILE={repo.root}/device.cmake", status=0)
    for _ in range(3):
        if not repo.build().steps:
            break
    return repo


def archive_core(repo: CMakeRepo) -> str:
    metadata: Path = repo.build_dir / "mlf/t/alpha/metadata.json"
    return "cortex-m0plus" if "cortex-m0plus" in metadata.read_text() else "cortex-m0"


def test_changes_rebuild_what_depends_on_them(repo: CMakeRepo) -> None:
    assert repo.build().steps == []
    repo.write("parts/our.toml", PART.replace("256 KiB", "128 KiB"))
    ran = repo.build()
    assert ran.configured and not ran.objects and not ran.trees
    assert archive_core(repo) == "cortex-m0plus"
    repo.write("parts/our.toml", PART.replace("cortex-m0plus", "cortex-m0"))
    ran = repo.build()
    assert ran.configured and ran.trees == {"alpha"}
    assert archive_core(repo) == "cortex-m0"
    for _ in range(3):
        if not repo.build().steps:
            break
    assert repo.build().steps == []


def test_mistake_stops_the_build_at_its_line(repo: CMakeRepo) -> None:
    repo.write("parts/our.toml", PART.replace("0x20000000", "-1"))
    ran = repo.run_build()
    assert ran.status != 0
    assert "our.toml:4: memory.ram.origin" in ran.output
