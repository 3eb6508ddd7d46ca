"""Budgets in CMake builds: every link of an executable with models is checked, in all folders, until it passes."""

import re
from collections.abc import Callable

import pytest

from mlfbuild.targets import cmake_folder
from support.cmake_repo import MOSTLY_NINJA, CMakeRepo

PROJECT = """\
mlfbuild: 1
targets: {m4: {cpu: cortex-m4, board: mps2-an386}}
models:
  alpha: {source: models/alpha.tflite, budget: {flash: LIMIT, stack: 1k, instructions: 1 M}}
firmware:
  app: {cmake: ., budget: {flash: LIMIT}}
"""
CMAKELISTS = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C)
find_package(mlfbuild CONFIG REQUIRED)
mlfbuild_models(mlfbuild.yml TARGET m4)
add_link_options(-nostartfiles LINKER:-e,main)
set_property(GLOBAL PROPERTY RULE_LAUNCH_LINK "\\"${CMAKE_COMMAND}\\" -E env")
add_library(between STATIC src/main.c)
target_link_libraries(between PUBLIC mlf::alpha)
add_executable(app src/main.c)
target_link_libraries(app PRIVATE mlf::alpha)
add_executable(none src/none.c)
add_subdirectory(part)
"""
PART = """\
add_executable(indirect ../src/none.c)
target_link_libraries(indirect PRIVATE -Wl,--whole-archive between -Wl,--no-whole-archive)
target_link_options(indirect PRIVATE "-Wl,--cref,-Map=my own.map" LINKER:-e,_start)
set_target_properties(indirect PROPERTIES OUTPUT_NAME other)
"""
MAIN = '#include "tvmgen_alpha.h"\nint main(void) { return tvmgen_alpha_run(0, 0); }\n'
SCRIPT = """\
MEMORY { RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 64K }
SECTIONS { .text : { *(.text*) *(.rodata*) } >RAM .bss : { *(.bss) } >RAM end = .; }
"""
UNCHECKED = "not checked: instructions of model alpha: run `mlfbuild profile --target m4 --model alpha`"


@pytest.fixture(scope="module", params=MOSTLY_NINJA)
def repo(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]
) -> CMakeRepo:
    """A repository, in which no test depends on what another one built, except on the checks of the compiler."""
    tool("arm-none-eabi-gcc", "cmake", "ninja", "make")
    repo = CMakeRepo(tmp_path_factory.mktemp("budgets"), request.param)
    repo.write("CMakeLists.txt", CMAKELISTS)
    repo.write("part/CMakeLists.txt", PART)
    repo.write("src/main.c", MAIN)
    repo.write("src/none.c", "void _start(void) {}\n")
    return repo


def configure(repo: CMakeRepo) -> str:
    ran = repo.configure(f"-DCMAKE_TOOLCHAIN_FILE={cmake_folder() / 'toolchains/cortex-m4.cmake'}", status=0)
    return ran.output


def over_budget(output: str) -> set[str]:
    """Return the subjects that are over a budget: image and model."""
    return set(re.findall(r"^(?:mlfbuild: )?(\S+) for m4: (?:model )?(alpha|the image): takes ", output, re.MULTILINE))


def test_every_link_is_checked(repo: CMakeRepo) -> None:
    repo.write("mlfbuild.yml", PROJECT.replace("LIMIT", "64"))
    configure(repo)
    images = {repo.build_dir / name for name in ("app", "part/other")}
    ran = repo.run_build("--", "-k0" if repo.generator == "Ninja" else "-k")
    assert over_budget(ran.output) == {("app.elf", "alpha"), ("app.elf", "the image"), ("other.elf", "alpha")}
    for image in images:
        assert image.with_suffix(".failed.elf").is_file() and not image.with_suffix(".elf").exists()
    assert (repo.build_dir / "none.elf").is_file()
    ran = repo.run_build("--target", "app")
    assert ran.status != 0 and ("app.elf", "alpha") in over_budget(ran.output), "it fails until it is repaired"

    repo.write("mlfbuild.yml", PROJECT.replace("LIMIT", "10 KiB"))
    ran = repo.build()
    linked = {path for path in ran.written if path.endswith(".elf")}
    assert linked == {"app.elf", "part/other.elf"}
    assert {line for line in ran.output.splitlines() if "mlfbuild:" in line} == {
        f"mlfbuild: {name}: {UNCHECKED}" for name in ("app.elf", "other.elf")
    }
    assert (repo.build_dir / ("part/my own.map" if repo.generator != "Ninja" else "my own.map")).is_file()
    assert not any(image.with_suffix(".failed.elf").exists() for image in images)
    assert not repo.build().written & linked


def test_a_link_that_cannot_be_checked_is_a_warning(repo: CMakeRepo) -> None:
    repo.write("mlfbuild.yml", PROJECT.replace("LIMIT", "10 KiB"))
    repo.write(
        "CMakeLists.txt", CMAKELISTS.replace("add_link_options", "set(CMAKE_C_COMPILER_ID IAR)\nadd_link_options")
    )
    output = configure(repo)
    assert output.count("CMake Warning") == 2
    assert "mlfbuild: links of indirect are not checked, because the linker map of the compiler IAR" in output
    (budgets,) = (repo.build_dir / "mlf/.cmake").glob("m4.*.budgets.json")
    assert f'report --fail-over-budget --budgets "{budgets}" --model alpha --elf <image>' in output


def test_a_committed_tree_is_checked_with_the_package_and_else_prints_the_command(repo: CMakeRepo) -> None:
    repo.write("mlfbuild.yml", PROJECT.replace("LIMIT", "64"))
    repo.mlfbuild("-q", "build", "--target", "m4", "--tree", "trees")
    models = "mlfbuild_models(mlfbuild.yml TARGET m4)"
    repo.write("CMakeLists.txt", CMAKELISTS.replace(models, "mlfbuild_tree(trees)"))
    assert "does not check budgets" not in configure(repo)
    ran = repo.run_build("--target", "app")
    assert ran.status != 0 and ("app.elf", "alpha") in over_budget(ran.output), ran.output
    repo.write("CMakeLists.txt", CMAKELISTS.replace(models, "include(trees/mlf.cmake)"))
    ran = repo.run_build("--target", "app")
    assert ran.status == 0, ran.output
    command = f"mlfbuild report --elf <image> --fail-over-budget --budgets {repo.root}/trees/budgets.json"
    assert (
        f"-- mlfbuild: this build does not check budgets; check each image with: {command}" in ran.output.splitlines()
    )


def test_a_tree_without_budgets_and_the_tree_of_one_model_are_checked_with_the_package(repo: CMakeRepo) -> None:
    models = "mlfbuild_models(mlfbuild.yml TARGET m4)"
    repo.write("mlfbuild.yml", PROJECT.replace("LIMIT", "64"))
    repo.mlfbuild("-q", "build", "--target", "m4", "--tree", "trees")
    repo.write("CMakeLists.txt", CMAKELISTS.replace(models, "mlfbuild_tree(trees/alpha)"))
    configure(repo)
    ran = repo.run_build("--target", "app")
    assert over_budget(ran.output) == {("app.elf", "alpha"), ("app.elf", "the image")}, ran.output

    repo.write("mlfbuild.yml", re.sub(r", budget: {.*}}", "}", PROJECT))
    repo.mlfbuild("-q", "build", "--target", "m4", "--tree", "trees")
    assert not (repo.root / "trees/budgets.json").exists()
    repo.write("fault.ld", SCRIPT)
    repo.write(
        "src/main.c", f"char _sbrk(void);\nchar _sbrk(void) {{ return 0; }}\n{MAIN}".replace("run(0", "run(_sbrk()")
    )
    cmake = CMAKELISTS.replace(models, "mlfbuild_tree(trees)")
    repo.write("CMakeLists.txt", cmake.replace("LINKER:-e", "-T${CMAKE_SOURCE_DIR}/fault.ld LINKER:-e"))
    ran = repo.run_build("--target", "app")
    assert ran.status != 0
    assert re.search(r"^mlfbuild: app.elf: model alpha: .* overlap the heap", ran.output, re.MULTILINE), ran.output


@pytest.mark.parametrize("flags", ['-T \\"${CMAKE_SOURCE_DIR}/own.ld\\"', "-Wl,-Ttext=0x8000,--script=../own.ld"])
def test_a_changed_linker_script_links_and_checks_again(flags: str, repo: CMakeRepo) -> None:
    repo.write("mlfbuild.yml", PROJECT.replace("LIMIT", "10 KiB"))
    repo.write(
        "CMakeLists.txt", CMAKELISTS.replace("add_link", f'string(APPEND CMAKE_EXE_LINKER_FLAGS " {flags}")\nadd_link')
    )
    script = (
        "SECTIONS { .text : { *(.text*) *(.rodata*) } .bss : { *(.bss*) } _estack = 8192; _Min_Stack_Size = 4096; }\n"
    )
    repo.write("own.ld", script)
    configure(repo)
    repo.build("--target", "app")
    assert "app.elf" not in repo.build("--target", "app").written
    repo.write("own.ld", script.replace("4096", "4"))
    ran = repo.run_build("--target", "app")
    assert ran.status != 0 and "app.elf: model alpha: needs " in ran.output, ran.output
