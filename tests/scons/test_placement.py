"""Sections in memory regions and constants in a file, if SCons links the firmware itself."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from mlfbuild.cli.output.invocation import run
from mlfbuild.jobs.placement import linked_section
from support.errors import assert_printed
from support.firmware_repo import FirmwareRepo

PROJECT = """\
mlfbuild: 1
targets:
  product: {cpu: cortex-m4, regions: {.mlf_params: QSPI, .axi: AXI}}
models:
  alpha: {source: models/alpha.tflite, placement: {params: .mlf_params, workspace: .axi}}
  beta: {source: models/beta.tflite}
"""
SCONSTRUCT = """\
flags = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "--specs=nano.specs"]
env = Environment(
    tools=["default", "mlf"], CC="arm-none-eabi-gcc", AR="arm-none-eabi-ar", RANLIB="arm-none-eabi-ranlib",
    CCFLAGS=[*flags, "-O1"], LINKFLAGS=[*flags, "-nostartfiles", "-Tproduct.ld"],
)
models = env.MlfModels("mlfbuild.yml")
models.apply(env)
models.place(env)
models.place(env)
app = env.Program("build/app.elf", env.Object("build/main.o", "src/main.c"))
env.MlfParams("build/app_params.bin", app)
"""
PRODUCT = """\
MEMORY
{
  FLASH (rx)  : ORIGIN = 0x08000000, LENGTH = 256K
  RAM   (rwx) : ORIGIN = 0x20000000, LENGTH = 64K
  QSPI  (r)   : ORIGIN = 0x90000000, LENGTH = 8M
  OSPI  (r)   : ORIGIN = 0x70000000, LENGTH = 8M
  AXI   (rw)  : ORIGIN = 0x24000000, LENGTH = 64K
}
ENTRY(main)
SECTIONS
{
  .text : { *(.text .text.*) *(.rodata .rodata.*) } > FLASH
  .exidx : { *(.ARM.ex*) } > FLASH
  .data : { *(.data .data.*) } > RAM AT> FLASH
  .bss : { *(.bss .bss.*) *(COMMON) end = .; } > RAM
}
"""
MAIN = """\
#include "tvmgen_alpha.h"
#include "tvmgen_beta.h"
int main(void) { return tvmgen_alpha_run(0, 0) == tvmgen_beta_run(0, 0); }
"""


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> FirmwareRepo:
    tool("arm-none-eabi-gcc")
    repo = FirmwareRepo(tmp_path_factory.mktemp("placed"))
    files = {"mlfbuild.yml": PROJECT, "SConstruct": SCONSTRUCT, "product.ld": PRODUCT, "src/main.c": MAIN}
    for name, text in files.items():
        repo.write(name, text)
    ran = repo.build("-Q")
    assert ran.output.count("mlf_placement.ld") == 1, "the linker gets it once"
    return repo


def address(repo: FirmwareRepo) -> int:
    with (repo.root / "build/app.elf").open("rb") as file:
        return int(ELFFile(file).get_section_by_name(".mlf_params")["sh_addr"])


def made(repo: FirmwareRepo) -> set[str]:
    ran = repo.build("-Q")
    return {Path(path).name for path in ran.written if not path.endswith((".dblite", ".cmake", ".json", ".key"))}


def test_the_image_and_the_file(repo: FirmwareRepo) -> None:
    assert address(repo) == 0x90000000
    assert repo.read("build/app_params.bin") == linked_section(repo.root / "build/app.elf").data
    assert made(repo) == set()


@pytest.mark.sweep
def test_another_region_links_again(repo: FirmwareRepo) -> None:
    repo.replace("mlfbuild.yml", "QSPI", "OSPI")
    assert made(repo) == {"mlf_placement.ld", "app.elf", "app.elf.map"}, "the bytes of the file are the same"
    assert address(repo) == 0x70000000
    repo.replace("mlfbuild.yml", "OSPI", "QSPI")
    repo.build("-Q")


def test_another_section_compiles_its_model(repo: FirmwareRepo) -> None:
    repo.replace("mlfbuild.yml", "beta.tflite", "beta.tflite, placement: {params: .mlf_params}")
    beta = {"beta.tar", "beta_lib0.c", "beta_lib0.o", "libmlf_beta.a"}
    assert made(repo) - {"app.elf.map"} == {*beta, "app.elf", "app_params.bin"}
    repo.write("mlfbuild.yml", PROJECT)
    repo.build("-Q")


def test_edited_script_is_restored(repo: FirmwareRepo) -> None:
    script = repo.root / "build/mlf/product/placement/mlf_placement.ld"
    text = script.read_text()
    script.write_text(text.replace("QSPI", "OSPI"))
    repo.build("-Q")
    assert script.read_text() == text
    assert address(repo) == 0x90000000


def test_section_that_the_image_does_not_have_is_reported(repo: FirmwareRepo) -> None:
    repo.replace("SConstruct", 'params.bin", app)', 'weights.bin", app, MLFSECTION=".weights")')
    ran = repo.scons("-Q", status=2)
    place = "scons: *** [build/app_weights.bin] build/app.elf"
    assert_printed(ran.output, "image-without-section", place, ".weights (sections: ")
    assert "Traceback" not in ran.output
    repo.write("SConstruct", SCONSTRUCT)


def test_a_target_without_regions(repo: FirmwareRepo) -> None:
    repo.write("mlfbuild.yml", PROJECT.replace(", regions: {.mlf_params: QSPI, .axi: AXI}", ""))
    ran = repo.scons("-Q", status=2)
    assert_printed(ran.output, "regions-missing", "scons: *** target 'product'")
    repo.write("mlfbuild.yml", PROJECT)


WITHOUT_MLFBUILD = """\
flags = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "--specs=nano.specs"]
env = Environment(
    CC="arm-none-eabi-gcc", AR="arm-none-eabi-ar", RANLIB="arm-none-eabi-ranlib",
    CCFLAGS=[*flags, "-O1"], LINKFLAGS=[*flags, "-nostartfiles", "-Tproduct.ld"],
)
env.Append(**SConscript("models/SConscript", exports="env", variant_dir="build/models", duplicate=False))
env.Append(**SConscript("models/placement/SConscript", exports="env"))
env.Program("build/app.elf", env.Object("build/main.o", "src/main.c"))
"""


def test_a_committed_tree_needs_no_mlfbuild(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc")
    repo = FirmwareRepo(tmp_path)
    files = {"mlfbuild.yml": PROJECT, "SConstruct": WITHOUT_MLFBUILD, "product.ld": PRODUCT, "src/main.c": MAIN}
    for name, text in files.items():
        repo.write(name, text)
    # In this process: workers of an earlier test would be in its folder.
    assert run(["-C", str(tmp_path), "build", "-q", "-j1", "--tree", str(tmp_path / "models")]) == 0
    shutil.rmtree(tmp_path / "site_scons")
    repo.build("-Q")
    assert address(repo) == 0x90000000
    repo.replace("models/placement/mlf_placement.ld", "QSPI", "OSPI")
    repo.build("-Q")
    assert address(repo) == 0x70000000
    assert repo.scons("-Q").output == "scons: `.' is up to date.\n"


ON_BOARD = """\
mlfbuild: 1
targets:
  m4: {cpu: cortex-m4, board: mps2-an386, regions: {.mlf_params: PSRAM}}
models:
  alpha: {source: models/alpha.tflite, placement: {params: .mlf_params}}
  beta: {source: models/beta.tflite}
firmware:
  app: {cmake: ., params-binary: .mlf_params}
"""
CALLS = """\
#include "tvmgen_alpha.h"
int main(void) { return tvmgen_alpha_run(0, 0) == -1; }
"""


@pytest.mark.sweep
def test_firmware_that_cmake_links(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "cmake", "ninja")
    repo = FirmwareRepo(tmp_path)
    repo.write("mlfbuild.yml", ON_BOARD)
    repo.write("src/main.c", CALLS)
    ran = repo.scons("-Q")
    assert ran.status == 2, "as of every build that SCons stops"
    assert_printed(ran.output, "section-not-placed", "app.elf: .mlf_params", "PSRAM")
    repo.replace("CMakeLists.txt", "mlf::models", "mlf::models mlf::placement")
    repo.build("-Q")
    image = repo.root / "build/m4/app/app.elf"
    found = linked_section(image)
    assert (found.address, found.data) == (0x21000000, repo.read("build/m4/app/app_params.bin"))
    repo.replace("mlfbuild.yml", "PSRAM", "FLASH")
    ran = repo.build("-Q")
    assert linked_section(image).address < 4 * 1024 * 1024
    assert not ran.matching(".obj")
    assert not ran.matching(".tar")
    assert not ran.matching("app_params.bin")
    assert repo.build("-Q").matching("app.elf") == set()
