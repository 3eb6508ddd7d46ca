"""Required libraries, built with CMake and Ninja, GNU Make, and SCons."""

import ast
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from mlfbuild.core.errors import InputFileError, UnsupportedModelError
from mlfbuild.jobs.tree import tree_damage
from mlfbuild.jobs.tree.fragments import library_fragment, make_fragment, scons_fragment
from mlfbuild.jobs.tree.library_folders import dependency_fragments, write_dependencies
from mlfbuild.jobs.tree.parts import parts_of
from mlfbuild.library import ExternalDependency, Library, ResolvedLibrary, short_name
from support.dependent_models import FILES, dependent_module, tiny_source, write_dependent_tree
from support.errors import raises
from support.tree_firmware import PROJECTS, scons

CALL = """\
    struct tvmgen_{0}_inputs in_{0} = {{x}};
    struct tvmgen_{0}_outputs out_{0} = {{y}};
    tvmgen_{0}_run(&in_{0}, &out_{0});
    printf("{0} %d\\n", y[3]);"""
WARNINGS = "-Wall -Wextra -Wconversion -Wsign-conversion -Werror"


def write_main(folder: Path, *models: str) -> None:
    """Write ``main.c``, which prints the last element of each model and cannot include the library's headers."""
    headers = "".join(f'#include "tvmgen_{name}.h"\n' for name in models)
    body = "\n".join(CALL.format(name) for name in models)
    (folder / "main.c").write_text(
        f"#include <stdio.h>\n{headers}"
        '#ifndef SEES_TINY\n#define SEES_TINY 0\n#endif\n#if __has_include("tiny.h") != SEES_TINY\n'
        "#error the headers of the library\n#endif\n"
        f"int main(void)\n{{\n    int8_t x[4] = {{1, 2, 3, 4}};\n    int8_t y[4];\n{body}\n    return 0;\n}}\n"
    )


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run([str(word) for word in command], cwd=folder, text=True, capture_output=True)
    text = done.stdout + done.stderr
    if done.returncode != 0:
        raise RuntimeError(" ".join(text.split()))  # CMake breaks the lines of messages anywhere
    return text


# Text


def test_the_fragments_of_a_library(golden: Callable[[str, str], None]) -> None:
    for name, content in dependency_fragments(tiny_source()).items():
        golden(content.decode(), name)


def test_the_fragments_of_a_package(golden: Callable[[str, str], None]) -> None:
    package = ResolvedLibrary("tiny", "", package="Tiny", target="Tiny::tiny", wanted="v1.0")
    golden(dependency_fragments(package)["tiny.cmake"].decode(), "tiny.cmake")


def test_fragments_of_a_model_that_requires_a_library(golden: Callable[[str, str], None]) -> None:
    parts = parts_of(Library((dependent_module("one"),)))
    golden(library_fragment(parts), "one.cmake")
    golden(make_fragment(parts), "one.mk")
    golden(scons_fragment(parts), "one.SConscript")


def test_library_names_cannot_escape_the_folder() -> None:
    for name in ("../tiny", "a/b", "tiny;x", "$(shell ls)"):
        needed = ExternalDependency(name, "https://example.org/tiny", "git", "v1")
        module = replace(dependent_module("one"), external_dependencies=(needed,))
        with raises(InputFileError, "requirement-name-not-buildable", at=ascii(short_name(name))):
            parts_of(Library((module,)))


def test_library_version_is_not_executed() -> None:
    needed = ExternalDependency("tiny", "https://example.org/tiny", "git", '1")\nmessage(FATAL_ERROR "x')
    module = replace(dependent_module("one"), external_dependencies=(needed,))
    assert 'FATAL_ERROR "x' not in library_fragment(parts_of(Library((module,))))


def test_file_names_that_build_files_cannot_contain_are_rejected(tmp_path: Path) -> None:
    source = tiny_source(files={**FILES, "src/a$b.c": b""})
    with raises(InputFileError, "source-name-not-buildable", at="tiny: 'src/a$b.c'"):
        write_dependencies(tmp_path / "dependencies", [source])
    assert not (tmp_path / "dependencies").exists()


# The folder


def test_copies_are_restored_and_pruned(tmp_path: Path) -> None:
    folder = tmp_path / "dependencies"
    assert "tiny/src/offset.c" in write_dependencies(folder, [tiny_source()]).written
    assert write_dependencies(folder, [tiny_source()]).written == ()
    (folder / "tiny/src/offset.c").write_text("edited")
    (folder / "tiny/inc/tiny.h").unlink()
    (folder / "notes.txt").write_text("somebody's")
    assert len(tree_damage(folder)) == 2
    healed = write_dependencies(folder, [tiny_source()])
    assert set(healed.written) == {"tiny/src/offset.c", "tiny/inc/tiny.h"} and healed.edited == ("tiny/src/offset.c",)
    files = {path: content for path, content in FILES.items() if path != "src/offset.c"}
    less = write_dependencies(folder, [tiny_source(files=files, sources=("src/add.c",))])
    assert less.removed == ("tiny/src/offset.c",)
    assert "tiny/src/add.c" in write_dependencies(folder, []).removed
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


# CMake


CMAKE = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C)
add_compile_options({warnings})
include_directories(other)
{before}
include({include})
add_executable(app main.c)
target_link_libraries(app PRIVATE {link})
"""


def write_cmake(folder: Path, include: str = "mlf/mlf.cmake", link: str = "mlf::models", before: str = "") -> None:
    (folder / "other").mkdir(exist_ok=True)
    (folder / "CMakeLists.txt").write_text(
        CMAKE.format(warnings=WARNINGS.replace(" ", ";"), include=include, link=link, before=before)
    )


def cmake(folder: Path, *options: str) -> str:
    log = run("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", *options, folder=folder)
    return log + run("cmake", "--build", folder / "build", folder=folder)


def cmake_app(folder: Path, *options: str) -> str:
    """Return what the application prints."""
    cmake(folder, *options)
    return run(folder / "build/app", folder=folder)


@pytest.fixture
def folder(tmp_path: Path, tool: Callable[..., str]) -> Path:
    tool("cmake", "ninja", "gcc", "make")
    write_main(tmp_path, "one", "two")
    return tmp_path


def test_one_library_for_two_models_in_cmake(folder: Path) -> None:
    write_dependent_tree(folder / "mlf", tiny_source())
    write_cmake(folder)
    log = cmake(folder)
    assert run(folder / "build/app", folder=folder) == "one 7\ntwo 7\n"
    assert sorted(path.name for path in folder.rglob("*tiny*.a")) == ["libmlf_dep_tiny.a"]
    assert "warning" not in log
    commands = run("ninja", "-C", folder / "build", "-t", "commands", folder=folder).splitlines()
    compiled = {re.search(r"-c (\S+)", line)[1].rpartition("/")[2]: line for line in commands if " -c " in line}  # type: ignore[index]
    assert set(compiled) == {"main.c", "one_lib0.c", "two_lib0.c", "add.c", "offset.c"}
    assert [name for name, line in compiled.items() if "OFFSET" in line] == ["add.c", "offset.c"]
    assert "no work to do" in run("cmake", "--build", folder / "build", folder=folder)


def test_headers_of_the_library_come_first(folder: Path) -> None:
    write_dependent_tree(folder / "mlf", tiny_source())
    write_cmake(folder)
    (folder / "other/own.h").write_text("#error another library's\n")
    assert cmake_app(folder) == "one 7\ntwo 7\n"


def test_public_headers_are_visible_to_the_application(folder: Path) -> None:
    write_dependent_tree(folder / "mlf", tiny_source(public_headers=True))
    write_cmake(folder, before="add_compile_definitions(SEES_TINY=1)")
    assert cmake_app(folder) == "one 7\ntwo 7\n"


def test_tree_of_one_model_finds_its_library(folder: Path) -> None:
    write_main(folder, "two")
    write_dependent_tree(folder / "mlf", tiny_source())
    write_cmake(folder, include="mlf/two/mlf.cmake", link="mlf::two")
    assert cmake_app(folder) == "two 7\n"


def test_tree_without_the_library_names_it(folder: Path) -> None:
    write_dependent_tree(folder / "mlf")
    write_cmake(folder, include="mlf/two/mlf.cmake", link="mlf::two")
    with pytest.raises(RuntimeError, match=r"mlf/two/mlf.cmake: two requires tiny v1.0, which is missing"):
        cmake(folder)


def test_library_of_the_firmware_is_not_built_again(folder: Path) -> None:
    write_dependent_tree(folder / "mlf", tiny_source())
    own = folder / "own"
    own.mkdir()
    (own / "tiny.h").write_bytes(FILES["inc/tiny.h"])
    (own / "tiny.c").write_text("#include <tiny.h>\nint8_t tiny_add(int8_t x) { return (int8_t)(x + 10); }\n")
    defined = "add_library(firmware_tiny own/tiny.c)\ntarget_include_directories(firmware_tiny PUBLIC own)\n"
    write_cmake(folder, before=f"{defined}add_library(mlf::dep::tiny ALIAS firmware_tiny)")
    assert cmake_app(folder) == "one 14\ntwo 14\n"
    assert not list(folder.rglob("*add.c.o"))


def test_two_trees_with_the_same_library_build_it_once(folder: Path) -> None:
    write_dependent_tree(folder / "a", tiny_source(), models=("one",))
    write_dependent_tree(folder / "b", tiny_source(), models=("two",))
    write_cmake(folder, include="a/one/mlf.cmake)\ninclude(b/two/mlf.cmake", link="mlf::one mlf::two")
    assert cmake_app(folder) == "one 7\ntwo 7\n"
    assert len(list(folder.rglob("*add.c.o"))) == 1


def test_two_trees_with_different_files_of_a_library_are_rejected(folder: Path) -> None:
    write_dependent_tree(folder / "a", tiny_source(), models=("one",))
    write_dependent_tree(folder / "b", tiny_source(4), models=("two",))
    write_cmake(folder, include="a/one/mlf.cmake)\ninclude(b/two/mlf.cmake", link="mlf::one mlf::two")
    with pytest.raises(RuntimeError, match=r"b/\S*tiny.cmake: has other files of tiny than \S*a/\S*tiny.cmake in the"):
        cmake(folder)


# A package of the firmware


TINY_CONFIG = """\
set(Tiny_VERSION {version})
add_library(Tiny::tiny STATIC IMPORTED)
set_target_properties(Tiny::tiny PROPERTIES IMPORTED_LOCATION "${{CMAKE_CURRENT_LIST_DIR}}/libtiny.a"
                      INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}")
"""


def install_tiny(folder: Path, version: str) -> str:
    """Install the library as a CMake package; return the option that lets CMake find it."""
    place = folder / "installed"
    place.mkdir(exist_ok=True)
    (place / "tiny.h").write_bytes(FILES["inc/tiny.h"])
    (place / "tiny.c").write_text('#include "tiny.h"\nint8_t tiny_add(int8_t x) { return (int8_t)(x + 20); }\n')
    run("gcc", "-c", "tiny.c", "-o", "tiny.o", folder=place)
    run("ar", "rcs", "libtiny.a", "tiny.o", folder=place)
    (place / "TinyConfig.cmake").write_text(TINY_CONFIG.format(version=version))
    return f"-DTiny_DIR={place}"


PACKAGE = ResolvedLibrary("tiny", "", package="Tiny", target="Tiny::tiny", wanted="v1.0")


def test_package_is_linked_and_not_compiled(folder: Path) -> None:
    write_dependent_tree(folder / "mlf", PACKAGE)
    write_cmake(folder)
    assert cmake_app(folder, install_tiny(folder, "1.0")) == "one 24\ntwo 24\n"
    assert not list(folder.rglob("*add.c*"))


def test_package_of_another_version_is_rejected(folder: Path) -> None:
    write_dependent_tree(folder / "mlf", PACKAGE)
    write_cmake(folder)
    with pytest.raises(RuntimeError, match=r"tiny: models require version 1.0, and the package Tiny is version"):
        cmake(folder, install_tiny(folder, "1.1"))


def test_missing_package_is_reported(folder: Path) -> None:
    write_dependent_tree(folder / "mlf", PACKAGE)
    write_cmake(folder)
    with pytest.raises(
        RuntimeError, match=r"neither the firmware nor find_package\(Tiny\) defines the target Tiny::tiny"
    ):
        cmake(folder)


def test_target_without_version_needs_a_stated_one(folder: Path) -> None:
    write_cmake(folder, before="add_library(t INTERFACE)\nadd_library(Tiny::tiny ALIAS t)")
    write_dependent_tree(folder / "mlf", PACKAGE)
    with pytest.raises(RuntimeError, match=r"tiny: models require version v1.0"):
        cmake(folder)
    write_dependent_tree(folder / "mlf", replace(PACKAGE, version="v1.0"))
    with pytest.raises(RuntimeError, match=r"tiny\.h: No such file"):  # of an empty target: configured, that is
        cmake(folder)


# GNU Make


MAKEFILE = """\
CFLAGS = {warnings}
{before}
include {include}
CPPFLAGS += $(MLF_INCLUDES)
app: main.o $(MLF_LIBRARIES)
\t$(CC) $^ -o $@
"""


def make(folder: Path, include: str = "mlf/mlf.mk", before: str = "") -> str:
    (folder / "Makefile").write_text(MAKEFILE.format(warnings=WARNINGS, include=include, before=before))
    return run("make", folder=folder)


def test_one_library_for_two_models_in_make(folder: Path) -> None:
    write_dependent_tree(folder / "mlf", tiny_source())
    log = make(folder)
    assert run(folder / "app", folder=folder) == "one 7\ntwo 7\n"
    assert log.count("add.c.o") == 2, "compiled once, and put into one library"
    assert "is up to date" in make(folder)


def test_make_of_a_single_tree_with_and_without_the_library(folder: Path) -> None:
    write_main(folder, "two")
    write_dependent_tree(folder / "mlf", tiny_source())
    make(folder, "mlf/two/mlf.mk")
    assert run(folder / "app", folder=folder) == "two 7\n"
    write_dependent_tree(folder / "mlf")
    with pytest.raises(RuntimeError, match=r"mlf/two: two requires tiny v1\.0, which is missing"):
        make(folder, "mlf/two/mlf.mk")
    with pytest.raises(RuntimeError, match=r"tiny\.h: No such file"):
        make(folder, "mlf/two/mlf.mk", "MLF_PROVIDED = tiny")


def test_make_rejects_packages(folder: Path) -> None:
    write_dependent_tree(folder / "mlf", PACKAGE)
    with pytest.raises(RuntimeError, match=r"tiny: is a CMake package, which make cannot find"):
        make(folder)


# SCons


SCONSTRUCT = """\
env = Environment(CCFLAGS="{warnings}".split())
{before}
models = SConscript("{script}", exports="env", variant_dir="build/models", duplicate=False)
env.Append(**models)
env.Program("app", ["main.c"])
"""


def build_with_scons(folder: Path, script: str = "mlf/SConscript", before: str = "") -> str:
    (folder / "SConstruct").write_text(SCONSTRUCT.format(warnings=WARNINGS, script=script, before=before))
    return scons(folder)


def test_one_library_for_two_models_in_scons(folder: Path) -> None:
    write_dependent_tree(folder / "mlf", tiny_source())
    log = build_with_scons(folder)
    assert run(folder / "app", folder=folder) == "one 7\ntwo 7\n"
    assert log.count("-o build/models/dependencies/tiny/src/add.o") == 1
    assert "warning" not in log
    assert "is up to date" in scons(folder)
    assert not list((folder / "mlf").rglob("*.o"))


def test_scons_of_a_single_tree_with_and_without_the_library(folder: Path) -> None:
    write_main(folder, "two")
    write_dependent_tree(folder / "mlf", tiny_source())
    build_with_scons(folder, "mlf/two/SConscript")
    assert run(folder / "app", folder=folder) == "two 7\n"
    write_dependent_tree(folder / "mlf")
    with pytest.raises(AssertionError, match=r"two requires tiny v1\.0, which is missing"):
        build_with_scons(folder, "mlf/two/SConscript")
    with pytest.raises(AssertionError, match=r"tiny\.h: No such file"):
        build_with_scons(folder, "mlf/two/SConscript", 'env.Append(MLF_PROVIDED=["tiny"])')


def test_scons_without_variant_dir(folder: Path) -> None:
    write_dependent_tree(folder / "mlf", tiny_source())
    (folder / "SConstruct").write_text(
        'env = Environment()\nenv.Append(**SConscript("mlf/SConscript", exports="env"))\n'
        'env.Program("app", ["main.c"])\n'
    )
    scons(folder)
    assert run(folder / "app", folder=folder) == "one 7\ntwo 7\n"


# Packages of other build systems


def test_zephyr_module_with_a_library(folder: Path) -> None:
    write_dependent_tree(folder / "models", tiny_source(), systems=["zephyr"])
    shutil.copy(PROJECTS / "zephyr-module/app/zephyr.cmake", folder)
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(app C)\ninclude(zephyr.cmake)\nset(CONFIG_MLF_ONE y)\n"
        f"add_compile_options({WARNINGS.replace(' ', ';')})\n"
        "set(CONFIG_MLF_TWO y)\nadd_subdirectory(models/zephyr)\n"
        "add_executable(app main.c)\nlink_zephyr_libraries(app)\n"
    )
    assert cmake_app(folder) == "one 7\ntwo 7\n"


def test_esp_idf_component_with_a_library(folder: Path) -> None:
    write_dependent_tree(folder / "models", tiny_source(), systems=["esp-idf"])
    text = (PROJECTS / "esp-idf-component/CMakeLists.txt").read_text()
    function = text[text.index("function(") : text.index("endfunction()")]
    (folder / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.22)\nproject(app C)\nadd_compile_options({WARNINGS.replace(' ', ';')})\n"
        f"{function}endfunction()\nadd_subdirectory(models)\nadd_executable(app main.c)\n"
        "target_link_libraries(app PRIVATE component)\n"
    )
    assert cmake_app(folder) == "one 7\ntwo 7\n"


def test_platformio_library_with_a_library(folder: Path) -> None:
    write_dependent_tree(folder / "models", tiny_source(compile_options=()), systems=["platformio"])
    build = json.loads((folder / "models/library.json").read_text())["build"]
    sources = [entry[2:-1] for entry in build["srcFilter"] if entry.startswith("+")]
    options = ("-DOFFSET=5", "-DSEES_TINY=1", *build["flags"])
    run("gcc", *options, folder / "main.c", *sources, "-o", folder / "app", folder=folder / "models")
    assert run(folder / "app", folder=folder) == "one 9\ntwo 9\n"
    with raises(UnsupportedModelError, "platformio-needs-same-flags", at="dependency 'tiny'"):
        write_dependent_tree(folder / "more", tiny_source(), systems=["platformio"])


def test_cmsis_toolbox_layer_with_a_library(folder: Path) -> None:
    write_dependent_tree(folder / "models", tiny_source(), systems=["cmsis-toolbox"])
    layer = yaml.safe_load((folder / "models/mlf_models.clayer.yml").read_text())["layer"]
    objects: list[str] = []
    for group in layer["groups"]:
        folders = [f"-I{path}" for path in (*layer["add-path"], *group.get("add-path", []))]
        options = group["misc"][0]["C-CPP"] if "misc" in group else []
        for entry in group["files"]:
            objects.append(f"{len(objects)}.o")
            run("gcc", *options, *folders, "-c", entry["file"], "-o", objects[-1], folder=folder / "models")
    assert [group["group"] for group in layer["groups"]] == ["Model one", "Model two", "Library tiny"]
    folders = [f"-I{path}" for path in layer["add-path"]]
    run("gcc", *folders, folder / "main.c", *objects, "-o", folder / "app", folder=folder / "models")
    assert run(folder / "app", folder=folder) == "one 7\ntwo 7\n"


def test_nuttx_application_with_a_library(folder: Path) -> None:
    write_dependent_tree(folder / "models", tiny_source(), systems=["nuttx"])
    for name in ("Make.defs", "Application.mk", "CMakeLists.txt"):
        shutil.copy(PROJECTS / "nuttx-app" / name, folder)
    (folder / "external").symlink_to("models/nuttx")
    (folder / ".config").write_text("CONFIG_MLF_MODELS=y\nCONFIG_MLF_ONE=y\nCONFIG_MLF_TWO=y\n")
    defs = (folder / "Make.defs").read_text().replace("arm-none-eabi-", "")
    (folder / "Make.defs").write_text(re.sub("^CFLAGS := .*", f"CFLAGS := {WARNINGS}", defs, flags=re.MULTILINE))
    places = [f"APPDIR={folder}", f"TOPDIR={folder}"]
    run("make", "-C", "external", *places, folder=folder)
    run("gcc", "-Imodels/one/codegen/host/include", "-Imodels/two/codegen/host/include", "main.c", "libapps.a", "-o",
        "app", folder=folder)  # fmt: skip
    assert run(folder / "app", folder=folder) == "one 7\ntwo 7\n"
    text = (folder / "CMakeLists.txt").read_text().partition("set_target_properties(app")
    more = 'target_include_directories(app PRIVATE "${include_dirs}")\ntarget_link_libraries(app PRIVATE nuttx)\n'
    (folder / "CMakeLists.txt").write_text(text[0].replace("src/main.c", "main.c") + more)
    assert cmake_app(folder) == "one 7\ntwo 7\n"


def test_rust_crate_compiles_a_library_for_its_models(folder: Path) -> None:
    write_dependent_tree(folder / "models", tiny_source(), systems=["rust"])
    text = (folder / "models/rust/build.rs").read_text()
    entry = text[text.index('name: "mlf_dep_tiny"') :].partition("},")[0]
    assert 'features: &["CARGO_FEATURE_ONE", "CARGO_FEATURE_TWO"]' in entry
    assert '"dependencies/tiny/src/add.c", "dependencies/tiny/src/offset.c"' in entry
    assert '"-DOFFSET=(3 + 0)"' in entry


def test_arduino_library_cannot_require_a_library(folder: Path) -> None:
    with raises(UnsupportedModelError, "library-in-arduino-library", at="dependency 'tiny'"):
        write_dependent_tree(folder / "models", tiny_source(), systems=["arduino"])


@pytest.mark.parametrize(("system", "code"), [("nuttx", "cmake-package-in-nuttx"), ("rust", "cmake-package-in-crate")])
def test_cmake_package_is_refused_by_systems_without_cmake(folder: Path, system: str, code: str) -> None:
    package = ResolvedLibrary("tiny", "1.0", package="Tiny", target="Tiny::tiny")
    with raises(UnsupportedModelError, code, at="dependency 'tiny'"):
        write_dependent_tree(folder / "models", package, systems=[system])


def test_rt_thread_defines_a_group_once(folder: Path) -> None:
    write_dependent_tree(folder / "models", tiny_source(), systems=["rt-thread"])
    (folder / "building.py").write_text(
        "def GetDepend(names):\n    return True\n\n\n"
        "def DefineGroup(name, src, depend, **parameters):\n"
        "    print('GROUP', repr((name, [file.path for file in src], parameters)))\n    return src\n"
    )
    (folder / "SConstruct").write_text(
        "import sys\nsys.path.insert(0, '.')\nimport building\nSConscript('models/SConscript')\n"
    )
    log = scons(folder, "-Q", "-n")
    groups = [ast.literal_eval(line.removeprefix("GROUP ")) for line in log.splitlines() if line.startswith("GROUP ")]
    assert [name for name, *_ in groups] == ["mlf_dep_tiny", "mlf_one", "mlf_two"]
    (_, sources, parameters), *_ = groups
    assert sources == ["models/dependencies/tiny/src/add.c", "models/dependencies/tiny/src/offset.c"]
    assert parameters["LOCAL_CFLAGS"] == " -O1 -DOFFSET=(3 + 0)"


def test_scons_rejects_packages(folder: Path) -> None:
    write_dependent_tree(folder / "mlf", PACKAGE)
    with pytest.raises(AssertionError, match=r"tiny: is a CMake package, which SCons cannot find"):
        build_with_scons(folder)
