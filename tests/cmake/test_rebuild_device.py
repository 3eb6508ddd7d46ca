"""Changes of firmware code, linker script and toolchain file for a device rebuild the firmware, but never a model."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.targets import RUNTIME, cmake_folder
from support.cmake_repo import MOSTLY_NINJA, CMakeRepo
from support.examples import first_on_push
from support.snapshot import keep

CMAKELISTS = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C ASM)
find_package(mlfbuild CONFIG REQUIRED)
mlfbuild_models(mlfbuild.yml TARGET m4 MODELS alpha)
add_executable(app src/main.c)
target_link_libraries(app PRIVATE mlf::alpha mlf::board)
target_link_options(app PRIVATE -T ${CMAKE_SOURCE_DIR}/src/extra.ld)
set_target_properties(app PROPERTIES LINK_DEPENDS ${CMAKE_SOURCE_DIR}/src/extra.ld)
"""
MAIN = """\
#include "app.h"
#include "tvmgen_alpha.h"

int main(void) { return tvmgen_alpha_run(0, 0) == STATUS; }
"""
TOOLCHAIN = f'include("{cmake_folder()}/toolchains/cortex-m4.cmake")\n'


@pytest.fixture(scope="module", params=MOSTLY_NINJA)
def shared_repo(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]
) -> CMakeRepo:
    tool("arm-none-eabi-gcc", "cmake", "ninja", "make")
    repo = CMakeRepo(tmp_path_factory.mktemp("repo"), request.param)
    files = {
        "CMakeLists.txt": CMAKELISTS, "src/main.c": MAIN, "device.cmake": TOOLCHAIN, "src/extra.ld": "/* mine */\n",
    }  # fmt: skip
    for name, text in files.items():
        repo.write(name, text)
    repo.configure(f"-DCMAKE_TOOLCHAIN_FILE={repo.root}/device.cmake", status=0)
    for _ in range(3):
        if not repo.build().steps:
            break
    keep(repo.folder)
    return repo


APP = ["Building C object main.c.obj", "Linking C executable app.elf"]


@pytest.mark.parametrize(
    ("name", "text", "steps"),
    first_on_push(
        [
            ("src/main.c", MAIN.replace("==", "!="), APP),
            ("src/app.h", "#define STATUS 1\n", APP),
            ("src/extra.ld", "/* edited */\n", APP[1:]),
            ("build/mlf/m4/board/mps2-an386.ld", None, APP[1:]),
            ("src/app.h", None, APP),
        ],
        2,
    ),
    ids=["source", "header", "linker script", "linker script of the board", "header touched"],
)
def test_changed_firmware(repo: CMakeRepo, name: str, text: str | None, steps: list[str]) -> None:
    if text is None:
        (repo.root / name).touch()
    else:
        repo.write(name, text)
    ran = repo.build(explain=True)
    assert ran.steps == steps
    assert Path(name).name in ran.causes
    assert not ran.archives
    assert not ran.trees
    assert repo.build().steps == []


@pytest.mark.parametrize("change", first_on_push(["flag", "comment"]))
def test_changed_toolchain_file(repo: CMakeRepo, change: str) -> None:
    repo.write("device.cmake", TOOLCHAIN + {"comment": "# none\n", "flag": "add_compile_options(-fwrapv)\n"}[change])
    ran = repo.build()
    assert ran.configured
    assert not ran.archives
    assert not ran.trees
    built = {step.split()[-1] for step in ran.steps if step.startswith("Building")}
    if change == "comment":
        assert ran.steps == []
    else:
        assert {"alpha_lib0.c.obj", "main.c.obj"} <= built
        assert "Linking C executable app.elf" in ran.steps
    assert not {step for step in ran.steps if step.startswith(("Making", "Checking"))}
    assert repo.build().steps == []


def test_board_file_is_restored(repo: CMakeRepo) -> None:
    startup = repo.build_dir / "mlf/m4/board/startup.c"
    assert startup.read_bytes() == (RUNTIME / "board/startup.c").read_bytes()
    startup.write_bytes(b"")
    ran = repo.build()
    assert startup.read_bytes() == (RUNTIME / "board/startup.c").read_bytes()
    assert not ran.trees - {"board"}
    assert repo.build().steps == []


@pytest.mark.sweep
def test_deleted_build_folder(repo: CMakeRepo) -> None:
    shutil.rmtree(repo.build_dir)
    assert repo.configure(f"-DCMAKE_TOOLCHAIN_FILE={repo.root}/device.cmake").status == 0
    ran = repo.build()
    assert ran.archives == {"alpha"}
    assert (repo.build_dir / "app.elf").is_file()
