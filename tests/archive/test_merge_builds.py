"""The code of merged archives compiles, links and finds its functions on this machine, with stubs of TVM's headers."""

import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

from mlfbuild.archive.load import open_archive, write_archive
from mlfbuild.archive.merge import merge
from mlfbuild.core.errors import CheckFailedError, InputFileError
from mlfbuild.jobs.model_builds import unpack_archive
from mlfbuild.library import CodegenFile, Library, Module
from support.libraries import native_library
from support.tvm_headers import write_tvm_headers

Tool = Callable[[str], str]

FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion", "-Wpedantic", "-Wmissing-prototypes")


@cache
def archive(shared: Path, name: str) -> tuple[str, Library]:
    return f"{name}.tar", open_archive(shared / f"archives/{name}.tar")


def renamed(pair: tuple[str, Library], old: str, new: str) -> tuple[str, Library]:
    """Return the archive that TVM would export for the same model under the name ``new``."""
    (module,) = pair[1].modules

    def text(data: bytes) -> bytes:
        return data.replace(f"tvmgen_{old}".encode(), f"tvmgen_{new}".encode())

    def file(item: CodegenFile) -> CodegenFile:
        name = item.path.name.replace(f"{old}_lib", f"{new}_lib").replace(f"tvmgen_{old}", f"tvmgen_{new}")
        return CodegenFile(item.path.with_name(name), text(item.data))

    graph = None if module.graph_json is None else text(bytes(module.graph_json))
    codegen = tuple(file(item) for item in module.codegen)
    return f"{new}.tar", Library((replace(module, name=new, codegen=codegen, graph_json=graph),))


def objects(library: Library, folder: Path, compiler: str, *flags: str) -> list[Path]:
    """Compile the code of ``library``, TVM's without warnings, mlfbuild's with all warnings as errors."""
    include = write_tvm_headers(folder / "tvm")
    files = {file.path: file.data for module in library.modules for file in module.codegen}
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    found = []
    for path in sorted(files):
        if path.suffix == ".c":
            own = FLAGS if path.name.startswith("mlfbuild_") else ("-std=gnu99", "-w")
            found.append(folder / f"{path.stem}.o")
            command = [compiler, *own, *flags, "-I", include, "-I", folder / "host/include", "-c", folder / path]
            run([*command, "-o", found[-1]])
        elif path.suffix == ".o":
            found.append(folder / path)
    return found


def run(command: Sequence[object]) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


PAIRS = [
    ("conv-graph", "kws_int8-graph"), ("add-graph", "conv-graphlink"), ("add-aotp", "conv-aotp"),
    ("add-aotp", "many-graph"), ("multi-mixed", "many-graph"), ("v5-add-graph", "v5-kws_int8-graph"),
    ("conv-aotc", "byoc-aotp"), ("kws_int8-cmsisnn_m4", "conv-llvm_graph_m4"), ("conv-llvm_graph_m4", "many-graph"),
    ("conv-llvm_graph_m4", "add-aotp"), ("conv-usmp_external", "multi-aotc"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_merged_code_links_without_duplicate_symbols(
    left: str, right: str, shared: Path, tmp_path: Path, tool: Tool
) -> None:
    merged = merge([archive(shared, left), archive(shared, right)])
    flags = ("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard")
    found = objects(merged, tmp_path, tool("arm-none-eabi-gcc"), *flags)
    run(["arm-none-eabi-gcc", *flags, "-r", "-nostdlib", *found, "-o", tmp_path / "all.o"])
    symbols = run(["arm-none-eabi-nm", "--defined-only", tmp_path / "all.o"]).split()
    assert "tvmgen_" not in run(["arm-none-eabi-nm", "--undefined-only", tmp_path / "all.o"])
    has_one = any(kind in left + right for kind in ("graph", "aotp", "mixed")) and "byoc" not in left + right
    assert symbols.count("TVMSystemLibEntryPoint") == has_one
    for module in merged.modules:
        if module.executor == "aot":
            assert f"tvmgen_{module.name}_run" in symbols


LOOKUP = r"""
#include <stdio.h>
#include <string.h>
#include <tvm/runtime/crt/module.h>

int main(void) {
    const TVMFuncRegistry *registry = TVMSystemLibEntryPoint()->registry;
    const unsigned char *count = (const unsigned char *)registry->names;
    const char *name = registry->names + WIDTH;
    int functions = count[0] + (WIDTH == 2 ? count[1] << 8 : 0);
    for (int i = 0; i < functions; i++) {
        printf("%s %d\n", name, registry->funcs[i] != NULL);
        name += strlen(name) + 1;
    }
    return *name; /* the names end with an empty one */
}
"""


@pytest.mark.parametrize(
    ("left", "right", "width"),
    [("conv-graph", "kws_int8-graph", 2), ("add-aotp", "conv-aotp", 2), ("v5-add-graph", "v5-kws_int8-graph", 1)],
)
def test_merged_registry_has_the_functions_of_both(
    left: str, right: str, width: int, shared: Path, tmp_path: Path, tool: Tool
) -> None:
    merged = merge([archive(shared, left), archive(shared, right)])
    (tmp_path / "main.c").write_text(LOOKUP)
    found = objects(merged, tmp_path, tool("gcc"))
    backend = tmp_path / "backend.c"
    backend.write_text(BACKEND)
    sources = [tmp_path / "main.c", backend]
    run(["gcc", f"-DWIDTH={width}", "-I", tmp_path / "tvm", *sources, *found, "-lm", "-o", tmp_path / "main"])
    lines = run([tmp_path / "main"]).splitlines()
    names = [line.removesuffix(" 1") for line in lines]
    assert names == sorted(names)
    assert set(names) == set(registered(archive(shared, left)[1], tmp_path / "left", width)) | set(
        registered(archive(shared, right)[1], tmp_path / "right", width)
    )


def registered(library: Library, folder: Path, width: int) -> list[str]:
    """Return the content of the registry of a TVM archive, read by the same program."""
    folder.mkdir()
    (folder / "main.c").write_text(LOOKUP)
    (folder / "backend.c").write_text(BACKEND)
    found = objects(library, folder, "gcc")
    sources = [folder / "main.c", folder / "backend.c"]
    run(["gcc", f"-DWIDTH={width}", "-I", folder / "tvm", *sources, *found, "-lm", "-o", folder / "main"])
    return [line.removesuffix(" 1") for line in run([folder / "main"]).splitlines()]


BACKEND = r"""
#include <stdlib.h>
#include <tvm/runtime/c_backend_api.h>
void *TVMBackendAllocWorkspace(int device, int id, uint64_t bytes, int code, int bits) {
    (void)device; (void)id; (void)code; (void)bits;
    return malloc(bytes);
}
int TVMBackendFreeWorkspace(int device, int id, void *memory) {
    (void)device; (void)id;
    free(memory);
    return 0;
}
"""

CALL = r"""
#include <stdio.h>
#include <string.h>
#include <tvm/runtime/crt/module.h>

static TVMBackendPackedCFunc find(const char *wanted) {
    const TVMFuncRegistry *registry = TVMSystemLibEntryPoint()->registry;
    const char *name = registry->names + 2;
    for (int i = 0; i < (unsigned char)registry->names[0]; i++) {
        if (strcmp(name, wanted) == 0) return registry->funcs[i];
        name += strlen(name) + 1;
    }
    printf("no %s\n", wanted);
    return NULL;
}

static void add(const char *wanted) {
    uint8_t a[2] = {3, 200};
    float b[2] = {1.5f, -2}, c[2] = {2, 4}, y[2] = {0, 0};
    void *data[4] = {a, b, c, y};
    int64_t shape[2] = {1, 2};
    DLTensor tensors[4];
    TVMValue args[4], result;
    int codes[4], code;
    for (int i = 0; i < 4; i++) {
        tensors[i] = (DLTensor){.data = data[i], .shape = shape, .ndim = 2, .device = {kDLCPU, 0}};
        args[i].v_handle = &tensors[i];
        codes[i] = kTVMDLTensorHandle;
    }
    TVMBackendPackedCFunc function = find(wanted);
    if (function) {
        int status = function(args, codes, 4, &result, &code, NULL);
        printf("%d %g %g\n", status, y[0], y[1]);
    }
}

int main(void) {
    add("tvmgen_add_fused_cast_multiply_add");
    add("tvmgen_sum_fused_cast_multiply_add");
    add("tvmgen_add___tvm_main__");
    add("tvmgen_sum___tvm_main__");
    add("__tvm_main__");
    return 0;
}
"""


def test_table_of_an_object_is_merged(shared: Path) -> None:
    merged = merge([archive(shared, "conv-llvm_graph_m4"), archive(shared, "many-graph")])
    assert [str(file.path) for file in merged.module("conv").codegen] == [
        "host/lib/conv_lib0.o",
        "host/src/mlfbuild_system_lib.c",
    ]
    original = archive(shared, "conv-llvm_graph_m4")[1].module("conv")
    assert merged.module("conv").codegen[0].data == original.codegen[1].data, "the object of the table is gone"
    table = merged.module("conv").codegen[1].data.decode()
    graphs = [bytes(module.graph_json or b"").decode() for module in merged.modules]
    called = {name for graph in graphs for name in re.findall(r'"func_name": "(tvmgen_\w+)"', graph)}
    assert len(called) == 4 + 3, "one function of the convolution is a copy that the graph leaves out"
    assert all(f'    "{name}\\000"\n' in table and f"    (TVMBackendPackedCFunc){name},\n" in table for name in called)


TABLE_AND_MORE = "int TVMSystemLibEntryPoint(void) { return 1; }\nint more(void) { return 2; }\n"
FUNCTION = "int tvmgen_net_f(void) { return 1; }\n"


def with_object(shared: Path, name: str, source: str, folder: Path, tool: Tool) -> tuple[str, Library]:
    """Return an archive with an object compiled from ``source``."""
    (folder / f"{name}.c").write_text(source)
    run([tool("arm-none-eabi-gcc"), "-c", folder / f"{name}.c", "-o", folder / f"{name}.o"])
    file = CodegenFile(PurePosixPath(f"host/lib/{name}_lib0.o"), (folder / f"{name}.o").read_bytes())
    return f"{name}.tar", Library((replace(with_source(shared, name, ""), codegen=(file,)),))


def test_objects_with_conflicting_symbols(shared: Path, tmp_path: Path, tool: Tool) -> None:
    functions = [with_object(shared, name, FUNCTION, tmp_path, tool) for name in "ab"]
    with pytest.raises(CheckFailedError) as caught:
        merge(functions)
    place = "module a of a.tar and module b of b.tar"
    assert (caught.value.code, caught.value.place) == ("merge-symbol-conflict", place)
    assert "with the target c" in caught.value.hint
    with pytest.raises(CheckFailedError) as caught:
        merge([with_object(shared, "a", TABLE_AND_MORE, tmp_path, tool), archive(shared, "conv-graph")])
    place = "module a of a.tar and module conv of conv-graph.tar"
    assert (caught.value.code, caught.value.place) == ("merge-system-library-form", place)


def test_damaged_object_is_refused(shared: Path) -> None:
    name, library = archive(shared, "conv-llvm_graph_m4")
    (module,) = library.modules
    codegen = tuple(CodegenFile(file.path, file.data[:1000]) for file in module.codegen)
    with pytest.raises(InputFileError) as caught:
        merge([(name, Library((replace(module, codegen=codegen),)))])
    assert str(caught.value).startswith("conv-llvm_graph_m4.tar: codegen/host/lib/conv_lib0.o: ")


def test_functions_called_through_the_merged_registry(shared: Path, tmp_path: Path, tool: Tool) -> None:
    first = archive(shared, "add-graph")
    merged = merge([first, renamed(first, "add", "sum")])
    found = objects(merged, tmp_path, tool("gcc"))
    (tmp_path / "main.c").write_text(CALL)
    run(["gcc", "-Wall", "-I", tmp_path / "tvm", tmp_path / "main.c", *found, "-o", tmp_path / "main"])
    assert run([tmp_path / "main"]).splitlines() == ["0 6 192"] * 4 + ["no __tvm_main__"], "a + b * c"


def test_the_context_of_the_cplusplus_runtime_links(shared: Path, tmp_path: Path, tool: Tool) -> None:
    text = """
#include "tvm/runtime/c_backend_api.h"
#ifdef __cplusplus
extern "C"
#endif
void* __tvm_module_ctx = NULL;
int32_t tvmgen_{0}_run(void) {{
  TVMFunctionHandle f;
  return TVMBackendGetFuncFromEnv(__tvm_module_ctx, "f", &f);
}}
"""
    libraries = [
        (f"{name}.tar", Library((with_source(shared, name, text.format(name)),))) for name in ("first", "second")
    ]
    found = objects(merge(libraries), tmp_path, tool("arm-none-eabi-gcc"))
    run(["arm-none-eabi-gcc", "-r", "-nostdlib", *found, "-o", tmp_path / "all.o"])
    lines = run(["arm-none-eabi-nm", tmp_path / "all.o"]).splitlines()
    assert [line.split()[1] for line in lines if "__tvm_module_ctx" in line] == ["V"]


def with_source(shared: Path, name: str, text: str) -> Module:
    (module,) = archive(shared, "add-aotp")[1].modules
    file = CodegenFile(PurePosixPath(f"host/src/{name}_lib0.c"), text.encode())
    return replace(module, name=name, codegen=(file,))


def test_offloaded_functions_with_the_default_name_link_and_run(shared: Path, tmp_path: Path, tool: Tool) -> None:
    def as_default(pair: tuple[str, Library]) -> tuple[str, Library]:
        (module,) = pair[1].modules
        own, default = f"tvmgen_{module.name}_ccompiler".encode(), b"tvmgen_default_ccompiler"
        codegen = tuple(CodegenFile(file.path, file.data.replace(own, default)) for file in module.codegen)
        return pair[0], Library((replace(module, codegen=codegen),))

    byoc = archive(shared, "byoc-aotp")
    merged = merge([as_default(byoc), as_default(renamed(byoc, "byoc", "other"))])
    assert merged.module("byoc") == byoc[1].module("byoc"), "the partitioner was only not told the name"
    found = objects(merged, tmp_path, tool("arm-none-eabi-gcc"))
    run(["arm-none-eabi-gcc", "-r", "-nostdlib", *found, "-o", tmp_path / "all.o"])


CMAKELISTS = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C)
include_directories(tvm)
add_compile_definitions(WIDTH=2)
include(tree/mlf.cmake)
add_library(backend STATIC backend.c)
add_executable(first main.c)
target_link_libraries(first mlf::conv mlf::tiny mlf::many backend m)
add_executable(second main.c)
target_link_libraries(second mlf::many mlf::conv mlf::tiny backend m)
"""


def test_unpacked_merged_archive_builds_with_cmake(shared: Path, tmp_path: Path, tool: Tool) -> None:
    merged = merge([archive(shared, "conv-graph"), archive(shared, "many-graph"), ("tiny.tar", native_library("tiny"))])
    write_archive(merged, tmp_path / "all.tar")
    unpack_archive(tmp_path / "all.tar", tmp_path / "tree")
    write_tvm_headers(tmp_path / "tvm")
    # A tree adds the module's name to global symbols; the last module has the registry of all.
    lookup = LOOKUP.replace("int main", "const TVMModule *TVMSystemLibEntryPoint_many(void);\n\nint main").replace(
        "TVMSystemLibEntryPoint()", "TVMSystemLibEntryPoint_many()"
    )
    for name, text in [("CMakeLists.txt", CMAKELISTS), ("main.c", lookup), ("backend.c", BACKEND)]:
        (tmp_path / name).write_text(text)
    run([tool("cmake"), "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja"])
    run([tool("ninja"), "-C", tmp_path / "build"])
    first, second = (run([tmp_path / f"build/{name}"]) for name in ("first", "second"))
    assert first == second, "the order of the libraries does not matter"
    assert len(first.splitlines()) == 6 + 3
