"""Fragments of trees, built with CMake, Ninja and the host's compiler from a firmware's CMakeLists.txt."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from mlfbuild.core import UsageError
from mlfbuild.jobs.tree import TreeSettings, unpack
from mlfbuild.jobs.tree.fragments import library_fragment, make_fragment, scons_fragment
from mlfbuild.jobs.tree.parts import Parts, parts_of
from mlfbuild.library import ArchiveFile, CodegenFile, Library, Module
from support import warm
from support.errors import raises
from support.libraries import graph_library, native_library, native_module

MAIN = """\
#include <stdio.h>
{includes}
int main(void)
{{
    int8_t x[4] = {{1, 2, 3, 4}};
    int8_t y[4];
{calls}
    return 0;
}}
"""
CALL = """\
    struct tvmgen_{0}_inputs in_{0} = {{x}};
    struct tvmgen_{0}_outputs out_{0} = {{y}};
    tvmgen_{0}_run(&in_{0}, &out_{0});
    printf("{0} %d\\n", y[3]);"""


class Project:
    """A small CMake project around unpacked trees, in a folder with a space in its name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "a firmware"
        self.build = self.folder / "build"
        self.folder.mkdir()

    def write(self, *modules: str, link: str, include: str, languages: str = "C") -> None:
        """Write sources that call ``modules`` and a CMakeLists.txt that includes ``include`` and links ``link``."""
        includes = "\n".join(f'#include "tvmgen_{name}.h"' for name in modules)
        calls = "\n".join(CALL.format(name) for name in modules)
        (self.folder / "main.c").write_text(MAIN.format(includes=includes, calls=calls))
        (self.folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.22)\n"
            f"project(app LANGUAGES {languages})\n"
            f"{include}\n"
            "add_executable(app main.c)\n"
            f"target_link_libraries(app PRIVATE {link})\n"
        )

    def configure(self) -> str:
        return run("cmake", "-S", self.folder, "-B", self.build, "-G", "Ninja")

    def make(self) -> str:
        return run("cmake", "--build", self.build)

    def output(self) -> str:
        return run(self.build / "app")


def run(*command: str | Path) -> str:
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True)
    text = done.stdout + done.stderr
    if done.returncode != 0:
        raise RuntimeError(" ".join(text.split()))  # CMake breaks the lines of messages anywhere
    return text


@pytest.fixture
def project(tmp_path: Path, tool: Callable[..., str]) -> Project:
    tool("cmake", "ninja", "gcc")
    return Project(tmp_path)


def included(*trees: str) -> str:
    return "\n".join(f"include({tree}/mlf.cmake)" for tree in trees)


# Text


def test_the_fragment_of_a_native_library(golden: Callable[[str, str], None]) -> None:
    golden(library_fragment(parts_of(native_library())), "mlf.cmake")


def test_fragment_of_a_graph_library_with_another_name(golden: Callable[[str, str], None]) -> None:
    golden(library_fragment(parts_of(graph_library(), "wake_word")), "mlf.cmake")


@pytest.mark.parametrize(
    ("parts", "name"),
    [(parts_of(native_library()), "native"), (parts_of(graph_library(), "wake_word"), "graph")],
    ids=["native", "graph"],
)
def test_the_fragments_for_make_and_scons(golden: Callable[[str, str], None], parts: Parts, name: str) -> None:
    golden(make_fragment(parts), f"{name}.mk")
    golden(scons_fragment(parts), f"{name}.SConscript")


def test_fragments_contain_no_absolute_paths(tmp_path: Path) -> None:
    unpack(native_library(), tmp_path, archive_id="a")
    assert not any(str(tmp_path) in (tmp_path / name).read_text() for name in ("mlf.cmake", "mlf.mk", "SConscript"))


def test_files_outside_the_usual_folders_add_no_include_folders() -> None:
    files = tuple(
        CodegenFile(PurePosixPath(path), b"") for path in ("x.h", "host/include", "host/include/x.h", "a/b/c.h")
    )
    text = library_fragment(parts_of(Library((replace(native_module(), codegen=files),))))
    assert "add_library(mlf_tiny INTERFACE)" in text
    assert text.count("target_include_directories") == 1 and "codegen/host/include" in text


# Builds


def test_two_models_in_one_firmware(project: Project) -> None:
    unpack(native_library("one"), project.folder / "mlf" / "one", archive_id="a")
    unpack(Library((native_module("two", 5),)), project.folder / "mlf" / "two", archive_id="b")
    project.write("one", "two", link="mlf::one mlf::two", include=included("mlf/one", "mlf/two", "mlf/one"))
    project.configure()
    project.make()
    assert project.output() == "one 7\ntwo 9\n"


def test_modules_of_one_archive_and_the_project_name_are_targets(project: Project) -> None:
    unpack(native_library("one", "two"), project.folder / "both", archive_id="a", settings=TreeSettings(model="pair"))
    project.write("one", "two", link="mlf::pair", include=included("both"))
    project.configure()
    project.make()
    assert project.output() == "one 7\ntwo 8\n"


def test_project_name_of_the_only_module_is_a_target(project: Project) -> None:
    unpack(native_library("default"), project.folder / "kws", archive_id="a", settings=TreeSettings(model="kws"))
    project.write("default", link="mlf::kws", include=included("kws"))
    project.configure()
    project.make()
    assert project.output() == "default 7\n"


def test_tree_can_be_moved(project: Project) -> None:
    unpack(native_library(), project.folder / "here", archive_id="a")
    shutil.move(project.folder / "here", project.folder / "over there")
    project.write("tiny", link="mlf::tiny", include='include("over there/mlf.cmake")')
    project.configure()
    project.make()
    assert project.output() == "tiny 7\n"


def with_sources(library: Library, *names: str) -> Library:
    (module,) = library.modules
    files = tuple(CodegenFile(PurePosixPath("host/src") / name, b"typedef int nothing;\n") for name in names)
    return Library((replace(module, codegen=(*module.codegen, *files)),))


def test_ninja_alone_follows_changes_of_the_tree(project: Project) -> None:
    tree = project.folder / "tiny"
    unpack(with_sources(native_library(), "tiny_lib1.c"), tree, archive_id="a")
    project.write("tiny", link="mlf::tiny", include=included("tiny"))
    project.configure()
    project.make()
    objects = [path.name for path in project.build.rglob("*.o")]
    assert sorted(objects) == ["main.c.o", "tiny_lib0.c.o", "tiny_lib1.c.o"]

    unpack(with_sources(native_library(), "tiny_lib1.c"), tree, archive_id="a")
    assert "no work to do" in project.make()

    unpack(native_library(), tree, archive_id="b")
    log = project.make()
    assert "Re-running CMake" in log and "tiny_lib0.c.o" not in log, "a source that is gone changes the list alone"
    assert "no work to do" in project.make()

    unpack(Library((native_module(offset=20),)), tree, archive_id="c")
    log = project.make()
    assert "Re-running CMake" not in log and "tiny_lib0.c.o" in log
    assert project.output() == "tiny 24\n"


def test_models_that_are_not_linked_are_not_built(project: Project) -> None:
    unpack(native_library("one"), project.folder / "one", archive_id="a")
    unpack(graph_library("two"), project.folder / "two", archive_id="b")
    project.write("one", link="mlf::one", include=included("one", "two"))
    project.configure()
    assert "two" not in project.make()


def test_objects_of_an_archive_are_linked(project: Project) -> None:
    unpack(native_library(), project.folder / "source", archive_id="a")
    codegen = project.folder / "source" / "codegen" / "host"
    compiled = project.folder / "tiny_lib0.o"
    run("gcc", "-c", codegen / "src" / "tiny_lib0.c", "-I", codegen / "include", "-o", compiled)
    module = native_module()
    headers = [file for file in module.codegen if file.path.suffix == ".h"]
    made = CodegenFile(PurePosixPath("host/lib/tiny_lib0.o"), compiled.read_bytes())
    unpack(Library((replace(module, codegen=(made, *headers)),)), project.folder / "tiny", archive_id="a")
    project.write("tiny", link="mlf::tiny", include=included("tiny"))
    project.configure()
    assert "tiny_lib0.c" not in project.make()
    assert project.output() == "tiny 7\n"


def test_runtime_headers_are_private_to_the_module(project: Project) -> None:
    def including(module: Module) -> Module:
        files = [
            replace(file, content=b"#include <tvm/runtime.h>\n" + file.data) if file.path.suffix == ".c" else file
            for file in module.codegen
        ]
        return replace(module, codegen=tuple(files))

    runtime = ArchiveFile(PurePosixPath("runtime/include/tvm/runtime.h"), b"typedef int tvm_type;\n")
    unpack(Library((including(native_module()),), other_files=(runtime,)), project.folder / "tiny", archive_id="a")
    project.write("tiny", link="mlf::tiny", include=included("tiny"))
    project.configure()
    project.make()
    assert project.output() == "tiny 7\n"
    assert "runtime/include" not in next(
        line
        for line in (project.build / "build.ninja").read_text().splitlines()
        if "tiny" in line and "app.dir" in line
    )


# Mistakes


def test_project_without_c_gets_a_hint(project: Project) -> None:
    unpack(native_library(), project.folder / "tiny", archive_id="a")
    project.write("tiny", link="mlf::tiny", include=included("tiny"), languages="NONE")
    with pytest.raises(RuntimeError, match=r"needs the language C: project\(<name> LANGUAGES C\)"):
        project.configure()


def test_sources_in_cxx_require_the_language(project: Project) -> None:
    unpack(with_sources(native_library(), "tiny_lib1.cc"), project.folder / "tiny", archive_id="a")
    project.write("tiny", link="mlf::tiny", include=included("tiny"))
    with pytest.raises(RuntimeError, match=r"needs the language CXX: project\(<name> LANGUAGES C CXX\)"):
        project.configure()


def test_same_module_in_two_archives_is_rejected(project: Project) -> None:
    unpack(native_library("default"), project.folder / "kws", archive_id="a", settings=TreeSettings(model="kws"))
    unpack(native_library("default"), project.folder / "vww", archive_id="a", settings=TreeSettings(model="vww"))
    project.write("default", link="mlf::kws mlf::vww", include=included("kws", "vww"))
    with pytest.raises(RuntimeError, match="another archive already defines the module default"):
        project.configure()


def test_a_misspelt_target_fails_at_configure_time(project: Project) -> None:
    unpack(native_library(), project.folder / "tiny", archive_id="a")
    project.write("tiny", link="mlf::tinny", include=included("tiny"))
    with pytest.raises(RuntimeError, match="mlf::tinny"):
        project.configure()


# Make and SCons


LEVELS = {"O2": "-O2", "Os": "-Os", "O3": "-O3", "inherit": "-O0"}
"""The level of a model's code in a build with -O0, by the key ``optimize``."""


def last_level(command: str) -> str:
    return [word for word in command.split() if word.startswith("-O")][-1]


def test_models_have_their_own_level_in_debug_builds(project: Project) -> None:
    for level in LEVELS:
        unpack(
            native_library(level.lower()), project.folder / level, archive_id="a", settings=TreeSettings(optimize=level)
        )
    names = [level.lower() for level in LEVELS]
    project.write(*names, link=" ".join(f"mlf::{name}" for name in names), include=included(*LEVELS))
    flags = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS=-O1", "-DCMAKE_C_FLAGS_DEBUG=-O0 -g"]
    run("cmake", "-S", project.folder, "-B", project.build, "-G", "Ninja", *flags)
    commands = run("ninja", "-C", project.build, "-t", "commands", "app").splitlines()
    found = {level: last_level(line) for level in LEVELS for line in commands if f"{level.lower()}_lib0.c.o -c" in line}
    assert found == LEVELS
    assert last_level(next(line for line in commands if "main.c.o -c" in line)) == "-O0"


def test_make_and_scons_have_the_level_of_the_model(project: Project, tool: Callable[..., str]) -> None:
    for level, option in LEVELS.items():
        unpack(
            native_library("net"), project.folder.parent / "net", archive_id="a", settings=TreeSettings(optimize=level)
        )
        (project.folder.parent / "Makefile").write_text("CFLAGS = -O0\ninclude net/mlf.mk\nall: $(MLF_LIBRARIES)\n")
        text = run(tool("make"), "-C", project.folder.parent, "all")
        (command,) = (line for line in text.splitlines() if " -c " in line)  # again with each level
        assert last_level(command) == option
        (project.folder.parent / "SConstruct").write_text(
            "env = Environment(CFLAGS='-O1', CCFLAGS='-O0')\nSConscript('net/SConscript', exports='env')\n"
        )
        text = run(warm.command("SCons"), "-C", project.folder.parent, "-Q", "-n")
        (command,) = (line for line in text.splitlines() if " -c " in line)
        assert last_level(command) == option


def test_a_level_for_compiled_objects_is_refused() -> None:
    module = native_module("pre")
    objects = CodegenFile(PurePosixPath("host/lib/pre.o"), b"")
    library = Library((replace(module, codegen=(objects,)),))
    assert "target_compile_options" not in library_fragment(parts_of(library))
    with raises(UsageError, "level-of-objects", "model pre: optimize: Os"):
        parts_of(library, optimize="Os")


@pytest.mark.parametrize("blobs", ["incbin", "array"])
def test_make_puts_graph_and_parameters_into_the_library(
    project: Project, tool: Callable[..., str], blobs: str
) -> None:
    unpack(graph_library(), project.folder / "tree", archive_id="a", settings=TreeSettings(model="wake_word"))
    makefile = "include tree/mlf.mk\nall: $(MLF_LIBRARIES_wake_word)\n"
    (project.folder / "Makefile").write_text(makefile)
    options = [f"MLF_BLOBS={blobs}", "MLF_BUILD=out"]
    run(tool("make"), "-C", project.folder, *options, "all")
    (library,) = (project.folder / "out").glob("*.a")
    name = library.stem.removeprefix("libmlf_")
    symbols = run("nm", library)
    assert f" R mlf_{name}_graph_json\n" in symbols and f" R mlf_{name}_params\n" in symbols
    before = library.stat().st_mtime_ns
    run(tool("make"), "-C", project.folder, *options, "all")
    assert library.stat().st_mtime_ns == before
    (graph,) = (project.folder / "tree/executor-config/graph").iterdir()
    os.utime(graph)
    run(tool("make"), "-C", project.folder, *options, "all")
    assert (library.stat().st_mtime_ns != before) == (blobs == "incbin")


def test_make_rejects_two_modules_with_the_same_name(project: Project, tool: Callable[..., str]) -> None:
    for tree in ("a", "b"):
        unpack(native_library(), project.folder / tree, archive_id=tree)
    (project.folder / "Makefile").write_text("include a/mlf.mk a/mlf.mk\nall: ;\n")
    run(tool("make"), "-C", project.folder)
    (project.folder / "Makefile").write_text("include a/mlf.mk b/mlf.mk\nall: ;\n")
    with pytest.raises(RuntimeError, match="b: module tiny is already defined by a; rename one of the modules"):
        run(tool("make"), "-C", project.folder)


def test_make_names_the_file_that_it_cannot_use(project: Project, tool: Callable[..., str]) -> None:
    unpack(with_sources(native_library(), "with space.c"), project.folder / "tree", archive_id="a")
    (project.folder / "Makefile").write_text("include tree/mlf.mk\nall: ;\n")
    with pytest.raises(RuntimeError, match=r"tree: codegen/host/src/with space\.c has a space in its name, which"):
        run(tool("make"), "-C", project.folder)


@pytest.mark.parametrize("blobs", ["incbin", "array"])
def test_scons_puts_graph_and_parameters_into_the_library(project: Project, blobs: str) -> None:
    unpack(graph_library(), project.folder / "tree", archive_id="a")
    (project.folder / "SConstruct").write_text(
        f"env = Environment(CPPPATH='elsewhere', LIBS='m', MLF_BLOBS={blobs!r})\n"  # strings: SCons also takes them
        "env.Append(**SConscript('tree/SConscript', exports='env', variant_dir='out', duplicate=False))\n"
    )
    command = [warm.command("SCons"), "-Q", "-C", project.folder]
    output = run(*command)
    (library,) = (project.folder / "out").glob("*.a")
    name = library.stem.removeprefix("libmlf_")
    symbols = run("nm", library)
    assert f" R mlf_{name}_graph_json\n" in symbols and f" R mlf_{name}_params\n" in symbols
    assert f"tree/blobs/{name}_blobs.{'S' if blobs == 'incbin' else 'c'}\n" in output
    assert "is up to date" in run(*command)
    (params,) = (project.folder / "tree/parameters").iterdir()
    params.write_bytes(params.read_bytes() + b"more")
    assert ("is up to date" in run(*command)) == (blobs == "array"), "the assembler reads the file itself"


def test_scons_lists_the_valid_forms_of_blobs(project: Project) -> None:
    unpack(graph_library(), project.folder / "tree", archive_id="a")
    (project.folder / "SConstruct").write_text(
        "env = Environment(MLF_BLOBS='hex')\nSConscript('tree/SConscript', exports='env')\n"
    )
    with pytest.raises(RuntimeError, match="MLF_BLOBS is 'hex'; it must be array or incbin"):
        run(warm.command("SCons"), "-Q", "-C", project.folder)


FOREIGN = b"""
#include <math.h>
float net_other(float x, int unused)
{
    int also_unused;
    char *text = (const char *)"";
    return expf(x) + (float)(text != 0);
}
"""
"""C as other compilers write it: it calls libm, and firmware with -Werror would not compile it."""
CALLS_FOREIGN = """\
float net_other(float x, int unused);
int main(int argc, char **argv) { (void)argv; return net_other((float)argc, 0) > 0.0f ? 0 : 1; }
"""
STRICT = "-Wall -Wextra -Werror"


@pytest.fixture
def foreign(project: Project) -> Project:
    """A project whose tree has code of another compiler; the library links libm itself."""
    module = native_module("net")
    sources = (
        replace(file, content=bytes(file.content) + FOREIGN) for file in module.codegen if file.path.suffix == ".c"
    )
    headers = (file for file in module.codegen if file.path.suffix != ".c")
    library = Library((replace(module, codegen=(*sources, *headers), model_id=""),))
    unpack(library, project.folder.parent / "net", archive_id="a")
    (project.folder.parent / "main.c").write_text(CALLS_FOREIGN)
    return project


def test_cmake_compiles_foreign_code_without_warnings_and_links_libm(foreign: Project) -> None:
    foreign.write("net", link="mlf::net", include=included("../net"))
    (foreign.folder / "main.c").write_text(CALLS_FOREIGN)
    run("cmake", "-S", foreign.folder, "-B", foreign.build, "-G", "Ninja", f"-DCMAKE_C_FLAGS={STRICT} -fno-builtin")
    assert "warning" not in foreign.make()
    commands = run("ninja", "-C", foreign.build, "-t", "commands", "app").splitlines()
    assert [" -w " in f"{line} " for line in commands if " -c " in line and "main.c" in line] == [False]
    foreign.output()


def test_make_compiles_foreign_code_without_warnings_and_links_libm(foreign: Project, tool: Callable[..., str]) -> None:
    top = foreign.folder.parent
    (top / "Makefile").write_text(
        f"CFLAGS = {STRICT} -fno-builtin\ninclude net/mlf.mk\n"
        "app: main.c $(MLF_LIBRARIES)\n\t$(CC) $(CFLAGS) $^ $(MLF_LDLIBS) -o $@\n"
    )
    assert "warning" not in run(tool("make"), "-C", top, "app")
    run(top / "app")


@pytest.mark.parametrize(
    "flags", [f"'{STRICT}'", f"Split('{STRICT}')", f"CLVar('{STRICT}')", f"tuple(Split('{STRICT}'))"]
)
def test_scons_compiles_foreign_code_without_warnings_and_links_libm(foreign: Project, flags: str) -> None:
    """``CCFLAGS`` has any form that SCons accepts."""
    top = foreign.folder.parent
    (top / "SConstruct").write_text(
        "from SCons.Util import CLVar\n"
        f"env = Environment(CCFLAGS={flags}, CFLAGS='-fno-builtin')\n"
        "env.Append(**SConscript('net/SConscript', exports='env', variant_dir='out', duplicate=False))\n"
        "env.Program('app', 'main.c')\n"
    )
    assert "warning" not in run(warm.command("SCons"), "-Q", "-C", top)
    run(top / "app")
