"""Splitting archives: the inverse of merging."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

from mlfbuild.archive.conversion import convert
from mlfbuild.archive.load import open_archive, pack_archive, read_archive
from mlfbuild.archive.merge import merge
from mlfbuild.archive.merge.registry import parse_registry
from mlfbuild.archive.read import read_files
from mlfbuild.archive.split import split
from mlfbuild.core.errors import CheckFailedError
from mlfbuild.library import ArchiveFile, CodegenFile, ExternalDependency, Library, Module
from mlfbuild.library.cgen import registry_source
from support.libraries import OTHER_KERNEL, graph_library, native_library, native_module
from support.sound_archives import tiny_module, with_bundle
from support.tvm_archives import TVM_ARCHIVES
from support.tvm_headers import write_tvm_headers


@cache
def archive(shared: Path, name: str) -> Library:
    return open_archive(shared / f"archives/{name}.tar")


def merged(**libraries: Library) -> Library:
    return merge([(f"{name}.tar", library) for name, library in libraries.items()])


def assert_divided(both: Library, *originals: Library) -> None:
    """Check that ``both`` becomes ``originals``, byte by byte, and that merging these gives ``both`` again."""
    parts = split(both, "both.tar")
    assert list(parts) == [module.name for module in both.modules]
    expected = {library.modules[0].name: convert(library, 7) for library in originals}
    assert parts == expected
    assert {name: pack_archive(part) for name, part in parts.items()} == {
        name: pack_archive(library) for name, library in expected.items()
    }
    assert pack_archive(merged(**parts)) == pack_archive(both)


# Archives of TVM -----------------------------------------------------------------------------------------------------

TABLES = [
    ("conv-graph", "kws_int8-graph"),
    ("add-aotp", "conv-aotp"),
    ("v5-add-graph", "v5-kws_int8-graph"),
    ("conv-llvm_graph_m4", "many-graph"),
]


@pytest.mark.parametrize(
    ("left", "right"),
    [("add-aotc", "conv-aotc"), ("v5-add-aotc", "kws_int8-graph"), ("byoc-aotp", "conv-usmp_external")],
)
def test_merged_archives_become_the_originals(left: str, right: str, shared: Path) -> None:
    both = merged(left=archive(shared, left), right=archive(shared, right))
    assert_divided(both, archive(shared, left), archive(shared, right))


@pytest.mark.parametrize("name", [name for name in TVM_ARCHIVES if name.startswith("multi")])
def test_an_archive_of_several_modules_merges_to_itself(name: str, shared: Path) -> None:
    library = archive(shared, name)
    parts = split(library, name)
    for part in parts.values():
        assert read_archive(pack_archive(part), "part.tar") == part
    assert merged(**parts) == library
    assert pack_archive(merged(**parts)) == pack_archive(library)


@pytest.mark.parametrize("name", ["conv-aotp", "operator-add", "v5-add-graph"])
def test_one_module_does_not_change(name: str, shared: Path) -> None:
    library = archive(shared, name)
    assert split(library, name) == {library.modules[0].name: library}


def tables(module: Module) -> list[set[tuple[str, str]]]:
    texts = [file.data.decode() for file in module.codegen if file.path.suffix == ".c"]
    return [set(found.functions) for text in texts if (found := parse_registry(text))]


@pytest.mark.parametrize(("left", "right"), TABLES)
def test_each_module_gets_its_own_functions(left: str, right: str, shared: Path) -> None:
    originals = {archive(shared, name).modules[0].name: archive(shared, name) for name in (left, right)}
    both = merged(**originals)
    parts = split(both, "both.tar")
    for name, part in parts.items():
        (module,), (original,) = part.modules, convert(originals[name], 7).modules
        assert replace(module, codegen=()) == replace(original, codegen=())
        (table,) = tables(module)
        if not any(file.path.suffix == ".o" for file in original.codegen):
            paths = {file.path for file in module.codegen}
            assert paths == {file.path for file in original.codegen}, "the table is where TVM writes it"
            (expected,) = tables(original)
            renamed = {("__tvm_main__", "__tvm_main__"), (f"tvmgen_{name}___tvm_main__",) * 2}
            assert table ^ expected <= renamed
            rest = {file.path: file.data for file in original.codegen if file.path.name != f"{name}_lib0.c"}
            if "__tvm_main__" not in {each for each, _ in expected}:
                assert rest.items() <= {file.path: file.data for file in module.codegen}.items()
    assert pack_archive(merged(**parts)) == pack_archive(both)


@pytest.mark.parametrize(("left", "right"), TABLES[:3])
def test_the_code_of_each_module_compiles(
    left: str, right: str, shared: Path, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    include = write_tvm_headers(tmp_path / "tvm")
    both = merged(left=archive(shared, left), right=archive(shared, right))
    (module,) = split(both, "both.tar")[archive(shared, left).modules[0].name].modules
    objects = []
    for file in module.codegen:
        if file.path.suffix == ".c":
            (tmp_path / file.path.name).write_bytes(file.data)
            objects.append(tmp_path / f"{file.path.stem}.o")
            command = [tool("gcc"), "-std=gnu99", "-w", "-I", include, "-c", tmp_path / file.path.name, "-o"]
            subprocess.run([*command, objects[-1]], check=True)
    command = [tool("gcc"), "-nostdlib", "-r", *objects, "-o", tmp_path / "all.o"]
    subprocess.run(command, check=True)
    symbols = subprocess.run(["nm", tmp_path / "all.o"], check=True, capture_output=True, text=True).stdout
    assert " T TVMSystemLibEntryPoint" in symbols
    undefined = [line.split()[-1] for line in symbols.splitlines() if " U " in line]
    assert not [name for name in undefined if name.startswith("tvmgen_")]


def test_a_table_that_contradicts_the_code_gets_a_file(shared: Path) -> None:
    (module,) = archive(shared, "v5-add-graph").modules
    entry = b"int32_t tvmgen_add_fused_cast_multiply_add(void* args, void* resource_handle);\n;"
    files = tuple(
        replace(file, content=file.data.removesuffix(b";") + entry) if file.path.name == "add_lib0.c" else file
        for file in module.codegen
    )
    both = merged(add=Library((replace(module, codegen=files),), 5), many=archive(shared, "v5-kws_int8-graph"))
    parts = split(both, "both.tar")
    names = {file.path.name: file.data for file in parts["add"].modules[0].codegen}
    assert set(names) == {"add_lib0.c", "add_lib1.c", "add_lib2.c"}
    assert parse_registry(names["add_lib2.c"].decode()) is not None
    assert pack_archive(merged(**parts)) == pack_archive(both)


def test_a_shared_table_of_unknown_form_is_refused() -> None:
    source = registry_source([("tvmgen_a_f", "tvmgen_a_f")], 2, ["a"]).replace("return &", "return 0 ? 0 : &")
    shared = CodegenFile(PurePosixPath("host/src/table.c"), source.encode())
    modules = (replace(module, codegen=(*module.codegen, shared)) for module in native_library("a", "b").modules)
    with pytest.raises(CheckFailedError) as caught:
        split(Library(tuple(modules)), "both.tar")
    assert (caught.value.code, caught.value.place) == (
        "split-system-library-form",
        "both.tar: codegen/host/src/table.c",
    )


def test_a_function_that_no_module_defines_is_in_all_tables() -> None:
    source = registry_source([("outside", "outside"), ("tvmgen_a_run", "tvmgen_a_run")], 2, ["a", "b"])
    shared = CodegenFile(PurePosixPath("host/src/table.c"), source.encode())
    both = Library(tuple(replace(each, codegen=(*each.codegen, shared)) for each in native_library("a", "b").modules))
    parts = split(both, "both.tar")
    assert tables(parts["a"].modules[0]) == [{("outside", "outside"), ("tvmgen_a_run", "tvmgen_a_run")}]
    assert tables(parts["b"].modules[0]) == [{("outside", "outside")}]


# Code of mlfbuild, and files of no module ----------------------------------------------------------------------------


def test_kernels_of_two_versions_get_their_folder_back() -> None:
    one, two = Library((native_module("one"),)), Library((native_module("two", kernel=OTHER_KERNEL),))
    assert_divided(merged(one=one, two=two), one, two)
    assert_divided(merged(one=one, two=native_library("two")), one, native_library("two"))


def test_the_context_of_the_cplusplus_runtime_is_strong_again() -> None:
    both = {}
    for name in "ab":
        text = f"void* __tvm_module_ctx = NULL;\nint tvmgen_{name}_f(void) {{ return __tvm_module_ctx != NULL; }}\n"
        (module,) = graph_library(name).modules
        codegen = (*module.codegen, CodegenFile(PurePosixPath(f"host/src/{name}_lib2.c"), text.encode()))
        both[name] = Library((replace(module, codegen=codegen),))
    assert_divided(merged(**both), *both.values())


def with_runtime(name: str, **files: bytes) -> Library:
    crt = ExternalDependency("tvm_standalone_crt", "./runtime", "mlf_path", "0.14.0")
    others = tuple(ArchiveFile(PurePosixPath(path.replace("__", "/")), data) for path, data in files.items())
    return Library((replace(native_module(name), external_dependencies=(crt,)),), other_files=others)


def test_runtime_and_bundles_go_with_the_modules_that_require_them() -> None:
    files = {"runtime__include__a.h": b"a", "templates__crt_config.h": b"t"}
    bundling = read_files(with_bundle(tiny_module("c")), "c.tar")
    plain = native_library("d")
    originals = (with_runtime("a", **files), with_runtime("b", **files), bundling, plain)
    assert_divided(merged(a=originals[0], b=originals[1], c=bundling, d=plain), *originals)


def test_files_that_no_dependency_names_go_to_all_modules_unless_they_bear_a_name() -> None:
    files = ["runtime/a.h", "samples/x.h", "parameters/a.json", "src/a.txt", "README.md"]
    both = replace(native_library("a", "b"), other_files=tuple(ArchiveFile(PurePosixPath(path), b"") for path in files))
    parts = split(both, "both.tar")
    assert {str(file.path) for file in parts["a"].other_files} == set(files)
    assert {str(file.path) for file in parts["b"].other_files} == {"runtime/a.h", "samples/x.h", "README.md"}


def test_a_shared_file_is_copied() -> None:
    shared = CodegenFile(PurePosixPath("host/include/common.h"), b"#define COMMON 1\n")
    both = Library(tuple(replace(each, codegen=(*each.codegen, shared)) for each in native_library("a", "b").modules))
    for part in split(read_archive(pack_archive(both), "both.tar"), "both.tar").values():
        assert shared in part.modules[0].codegen
