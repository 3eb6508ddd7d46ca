"""Sections in memory regions and constants in a file, if CMake builds the firmware with the package or a tree."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from mlfbuild.jobs.placement import linked_section
from mlfbuild.targets import cmake_folder
from support.cmake_repo import MOSTLY_NINJA, CMakeRepo, Ran, error_lines

PROJECT = """\
mlfbuild: 1
targets:
  m4: {cpu: cortex-m4, board: mps2-an386, regions: {.mlf_params: PSRAM}}
models:
  alpha: {source: models/alpha.tflite, placement: {params: .mlf_params}}
  beta: {source: models/beta.tflite}
"""
CMAKELISTS = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C ASM)
find_package(mlfbuild CONFIG REQUIRED)
mlfbuild_models(mlfbuild.yml TARGET m4)
add_executable(app src/main.c)
target_link_libraries(app PRIVATE mlf::models mlf::placement mlf::board)
mlf_params_binary(app OUTPUT app_params.bin)
"""
TOOLCHAIN = f"-DCMAKE_TOOLCHAIN_FILE={cmake_folder()}/toolchains/cortex-m4.cmake"
SCRIPT = "mlf/m4/placement/mlf_placement.ld"


@pytest.fixture(scope="module", params=MOSTLY_NINJA)
def repo(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]
) -> CMakeRepo:
    """A repository that was built; each test leaves it as it was, apart from files that the next build restores."""
    tool("arm-none-eabi-gcc", "cmake", "ninja", "make")
    repo = CMakeRepo(tmp_path_factory.mktemp("placed"), request.param)
    repo.write("mlfbuild.yml", PROJECT)
    repo.write("CMakeLists.txt", CMAKELISTS)
    repo.configure(TOOLCHAIN, status=0)
    assert "warning" not in repo.build().output
    return repo


def address(image: Path) -> int:
    with image.open("rb") as file:
        return int(ELFFile(file).get_section_by_name(".mlf_params")["sh_addr"])


def made(ran: Ran) -> set[str]:
    """Return the objects, images and files of constants that were written."""
    return {path for path in ran.written if path.endswith((".obj", ".elf", ".bin", "_placement.ld", ".tar"))}


def test_the_image_and_the_file(repo: CMakeRepo) -> None:
    image = repo.build_dir / "app.elf"
    assert address(image) == 0x21000000
    found = linked_section(image)
    assert (repo.build_dir / "app_params.bin").read_bytes() == found.data
    assert found.address == 0x21000000


@pytest.mark.sweep
def test_changes_rebuild_only_dependent_files(repo: CMakeRepo) -> None:
    assert made(repo.build()) == set()
    repo.replace("mlfbuild.yml", "PSRAM", "FLASH")
    ran = repo.build()
    assert made(ran) == {SCRIPT, "app.elf", "app_params.bin"}
    size = len(linked_section(repo.build_dir / "app.elf").data)
    assert f"app_params.bin: {size} bytes of .mlf_params for address 0x00" in ran.output
    assert address(repo.build_dir / "app.elf") < 4 * 1024 * 1024
    repo.replace("mlfbuild.yml", "beta.tflite", "beta.tflite, placement: {params: .mlf_params}")
    objects = {path for path in made(repo.build()) if path.endswith((".obj", ".tar"))}
    assert {Path(path).name for path in objects} == {"beta.tar", "beta_lib0.c.obj"}
    assert len(linked_section(repo.build_dir / "app.elf").data) > size
    repo.write("mlfbuild.yml", PROJECT)
    repo.build()
    assert made(repo.build()) == set()


def test_edited_script_is_restored(repo: CMakeRepo) -> None:
    script = repo.build_dir / SCRIPT
    text = script.read_text()
    script.write_text(text.replace("PSRAM", "FLASH"))
    repo.build()
    assert script.read_text() == text
    assert address(repo.build_dir / "app.elf") == 0x21000000


def test_section_that_the_image_does_not_have_is_reported(repo: CMakeRepo) -> None:
    repo.replace("CMakeLists.txt", "OUTPUT app_params.bin", "SECTION .weights OUTPUT app_params.bin")
    (repo.build_dir / "app_params.bin").unlink()
    ran = repo.run_build()
    assert ran.status != 0
    assert "app.elf: has no section .weights; link a model that places constants there" in ran.output
    assert not (repo.build_dir / "app_params.bin").exists()
    repo.write("CMakeLists.txt", CMAKELISTS)


@pytest.mark.parametrize("arguments", ["app", "nothing OUTPUT x.bin"])
def test_wrong_arguments_are_rejected(tmp_path: Path, tool: Callable[..., str], arguments: str) -> None:
    repo = CMakeRepo(tmp_path)
    repo.write("mlfbuild.yml", PROJECT)
    repo.write("CMakeLists.txt", CMAKELISTS.replace("app OUTPUT app_params.bin", arguments))
    tool("arm-none-eabi-gcc")
    ran = repo.configure(TOOLCHAIN)
    assert ran.status != 0
    words = "mlf_params_binary: write mlf_params_binary(<executable> [SECTION <section>] OUTPUT <file>)"
    assert any(words in line for line in error_lines(ran.output))


OTHER = """\
mlfbuild: 1
targets:
  m4: {cpu: cortex-m4, regions: {.far: PSRAM}}
models:
  gamma: {source: models/gamma.tflite, placement: {params: .far}}
"""


@pytest.mark.sweep
def test_two_project_files_must_have_the_same_placement(tmp_path: Path, tool: Callable[..., str]) -> None:
    repo = CMakeRepo(tmp_path)
    repo.write("mlfbuild.yml", PROJECT.replace(", board: mps2-an386", ""))
    repo.write("other.yml", OTHER)
    twice = "mlfbuild_models(mlfbuild.yml TARGET m4)\nmlfbuild_models(other.yml TARGET m4)\n"
    text = CMAKELISTS.replace("mlfbuild_models(mlfbuild.yml TARGET m4)\n", twice).replace(" mlf::board", "")
    repo.write("CMakeLists.txt", text)
    tool("arm-none-eabi-gcc")
    ran = repo.configure(TOOLCHAIN)
    assert ran.status != 0
    words = "mlfbuild_models: target m4 has other regions than a target before, and a link takes one placement"
    assert any(words in line for line in error_lines(ran.output)), ran.output
    repo.write("other.yml", OTHER.replace(".far", ".mlf_params"))
    repo.configure(TOOLCHAIN, status=0)


MAKEFILE = """\
CC := arm-none-eabi-gcc
TARGET_ARCH := -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 --specs=nano.specs
CFLAGS := -O2
MLF_BUILD := build/mlf-objects
include build/mlf/m4/mlf.mk
CPPFLAGS += $(MLF_INCLUDES)

all: build/app_params.bin

build/app.elf: src/main.c $(MLF_LIBRARIES) $(MLF_BOARD_OBJECTS) $(MLF_PLACEMENT)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(TARGET_ARCH) $(MLF_BOARD_LDFLAGS) $(MLF_PLACEMENT_LDFLAGS) $(filter-out %.ld,$^) -o $@

build/app_params.bin: build/app.elf
	$(call mlf_params_binary,$(SECTION))

SECTION := .mlf_params
"""


def test_make(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc")
    repo = CMakeRepo(tmp_path)
    repo.root = (tmp_path / "my firmware").rename(tmp_path / "firmware")
    repo.write("mlfbuild.yml", PROJECT)
    repo.write("Makefile", MAKEFILE)
    repo.mlfbuild("build", "-q")
    image, output = repo.root / "build/app.elf", repo.root / "build/app_params.bin"
    status, words = make(repo.root, ".weights")
    assert status != 0
    assert "build/app.elf: has no section .weights with bytes; link a model that places" in words
    assert address(image) == 0x21000000
    assert not output.exists()
    status, words = make(repo.root, ".mlf_params")
    assert status == 0, words
    assert "build/app_params.bin: section .mlf_params for address 0x21000000" in words
    assert output.read_bytes() == linked_section(image).data


def make(folder: Path, section: str) -> tuple[int, str]:
    done = subprocess.run(["make", f"SECTION={section}"], cwd=folder, text=True, capture_output=True)
    return done.returncode, done.stdout + done.stderr
