"""Merging archives: the merged content, and the reasons for refusing."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import permutations
from pathlib import Path, PurePosixPath

import numpy as np
import pytest

from mlfbuild.archive.conversion import convert, rename_modules
from mlfbuild.archive.load import open_archive, pack_archive, read_archive
from mlfbuild.archive.merge import merge
from mlfbuild.core.errors import CheckFailedError, UsageError
from mlfbuild.library import OPERATOR, ArchiveFile, CodegenFile, ExternalDependency, Library, Module, UnknownField
from mlfbuild.library.cgen import registry_source
from support.errors import raises
from support.examples import first_on_push
from support.host_c import run_many_on_host
from support.libraries import OTHER_KERNEL, graph_library, native_library, native_module
from support.native import compile_bytes

# The archives of the test data, in pairs -----------------------------------------------------------------------------

# name: (modules, system library, release whose C runtime it needs). How the system library is written: as a "table" of
# TVM since 0.9 or of "0.8", or as an "object" of TVM since 0.9.
ARCHIVES: dict[str, tuple[set[str], str, str]] = {
    "add-aotc": ({"add"}, "", "0.14"), "add-aotp": ({"add"}, "table", "0.14"), "add-graph": ({"add"}, "table", ""),
    "byoc-aotp": ({"byoc"}, "", "0.14"), "conv-aotc": ({"conv"}, "", "0.14"),
    "conv-aotp": ({"conv"}, "table", "0.14"), "conv-graph": ({"conv"}, "table", ""),
    "conv-graphlink": ({"conv"}, "table", ""), "conv-llvm_graph_m4": ({"conv"}, "object", ""),
    "conv-usmp_external": ({"conv"}, "", "0.14"), "kws_int8-aotc": ({"kws_int8"}, "", "0.14"),
    "kws_int8-cmsisnn_m4": ({"kws_int8"}, "", "0.14"), "kws_int8-graph": ({"kws_int8"}, "table", ""),
    "many-aotc": ({"many"}, "", "0.14"), "many-graph": ({"many"}, "table", ""),
    "multi-aotc": ({"mod1", "mod2"}, "", "0.14"), "multi-mixed": ({"mod1", "mod2"}, "table", "0.14"),
    "operator-add": ({"add"}, "operator", ""), "v5-add-aotc": ({"add"}, "", ""), "v5-add-graph": ({"add"}, "0.8", ""),
    "v5-kws_int8-graph": ({"kws_int8"}, "0.8", ""), "v5-many-graphlink": ({"many"}, "0.8", ""),
}  # fmt: skip
LINKED = "v5-many-graphlink"
A_AND_B = "module a of a.tar and module b of b.tar"


def why_refused(left: str, right: str) -> str:
    """Return the code of the error for two archives; empty if they can be merged."""
    (modules, first, crt), (others, second, other_crt) = ARCHIVES[left], ARCHIVES[right]
    systems = {first, second}
    if "operator" in systems:
        return "merge-operator"
    if modules & others:
        return "merge-module-names"
    if "0.8" in systems and systems & {"table", "object"}:
        return "merge-system-library-releases"
    if "0.8" in systems and (crt or other_crt):
        return "merge-system-library-releases"
    if LINKED in {left, right} and systems == {"0.8"}:
        return "merge-linked-parameters"
    return ""


@cache
def archive(shared: Path, name: str) -> tuple[str, Library]:
    return f"{name}.tar", open_archive(shared / f"archives/{name}.tar")


def refusal(*libraries: tuple[str, Library]) -> tuple[str, str]:
    """Return code and place of the error for ``libraries``, which cannot be merged."""
    with pytest.raises(CheckFailedError) as caught:
        merge(libraries)
    assert "\n" not in str(caught.value)
    return caught.value.code, caught.value.place


def test_all_archives_are_listed(shared: Path) -> None:
    assert {path.stem for path in (shared / "archives").glob("*.tar")} == set(ARCHIVES)


@pytest.mark.parametrize("left", first_on_push(ARCHIVES, 3))
def test_each_pair_merges_or_is_refused(left: str, shared: Path) -> None:
    for right in [right for right in ARCHIVES if right > left]:
        pair = archive(shared, left), archive(shared, right)
        expected = why_refused(left, right)
        if expected:
            code, place = refusal(*pair)
            assert code == expected, f"{left} and {right}"
            if code != "merge-operator":
                assert f"{left}.tar" in place and f"{right}.tar" in place
            assert refusal(*reversed(pair)) == (code, place)
        else:
            check_merged(pair)


def check_merged(pair: tuple[tuple[str, Library], ...]) -> None:
    """Check that only code changed that had to, and that the written archive reads back equal."""
    merged = merge(pair)
    assert merged.version == 7
    assert merge(tuple(reversed(pair))) == merged
    assert read_archive(pack_archive(merged), "merged.tar") == merged
    originals = {module.name: module for _, library in pair for module in convert(library, 7).modules}
    assert [module.name for module in merged.modules] == sorted(originals)
    systems = [name for name, module in originals.items() if has_system_library(module)]
    for module in merged.modules:
        original = originals[module.name]
        assert replace(module, codegen=()) == replace(original, codegen=())
        own = [f"host/src/{module.name}_lib0.c"]
        if has_object(module):  # one is removed, and the other becomes the first
            own = ["host/lib/conv_lib0.o", "host/lib/conv_lib1.o"]
        rewritten = {PurePosixPath(path) for path in (*own, "host/src/mlfbuild_system_lib.c")}
        changed = {path for path, _ in set_of_files(module) ^ set_of_files(original)}
        assert changed == (rewritten if len(systems) > 1 and module.name in systems else set())


def set_of_files(module: Module) -> set[tuple[PurePosixPath, bytes]]:
    return {(file.path, bytes(file.data)) for file in module.codegen}


def has_system_library(module: Module) -> bool:
    return has_object(module) or any(b"TVMSystemLibEntryPoint(void) {" in file.data for file in module.codegen)


def has_object(module: Module) -> bool:
    return any(file.path.suffix == ".o" for file in module.codegen)


# Any number of archives ----------------------------------------------------------------------------------------------


def test_merging_no_archives_is_refused() -> None:
    with raises(UsageError, "merge-without-archives"):
        merge([])


def test_same_archive_twice_is_refused(shared: Path) -> None:
    with raises(UsageError, "merge-archive-twice", at="add-aotc.tar"):
        merge([archive(shared, "add-aotc"), archive(shared, "add-aotc")])


@pytest.mark.parametrize("name", [name for name in ARCHIVES if name != "operator-add"])
def test_one_archive_does_not_change(name: str, shared: Path) -> None:
    source, library = archive(shared, name)
    assert merge([(source, library)]) == convert(library, 7)


def test_hundred_archives_are_merged() -> None:
    names = [f"net{number}" for number in range(100)]
    merged = merge([(f"{name}.tar", native_library(name)) for name in names])
    assert [module.name for module in merged.modules] == sorted(names)
    assert read_archive(pack_archive(merged), "merged.tar") == merged


def test_the_order_of_archives_does_not_matter(shared: Path) -> None:
    libraries = [archive(shared, name) for name in ("add-graph", "conv-aotp", "many-graph")]
    packed = {pack_archive(merge(order)) for order in permutations(libraries)}
    assert len(packed) == 1


def test_merging_step_by_step_gives_the_same(shared: Path) -> None:
    first, second, third = (archive(shared, name) for name in ("add-graph", "conv-aotp", "many-graph"))
    at_once = pack_archive(merge([first, second, third]))
    for pair, other in ([(first, second), third], [(second, third), first], [(third, first), second]):
        between = read_archive(pack_archive(merge(pair)), "between.tar")
        assert pack_archive(merge([("between.tar", between), other])) == at_once


def test_merged_archive_merges_with_another() -> None:
    first, second, third = ((f"{name}.tar", single_operator(name)) for name in ("a", "b", "c"))
    between = read_archive(pack_archive(merge([first, second])), "between.tar")
    merged = merge([("between.tar", between), third])
    table = code(merged, "mlfbuild_system_lib.c")
    assert [
        name for name in ("__tvm_main__", "tvmgen_a___tvm_main__", "tvmgen_c_add") if f'"{name}\\000"' in table
    ] == [
        "__tvm_main__", "tvmgen_a___tvm_main__", "tvmgen_c_add",
    ]  # fmt: skip
    assert [path for path in paths(merged) if path.endswith("system_lib.c")] == ["host/src/mlfbuild_system_lib.c"] * 3


# Names, requirements and files --------------------------------------------------------------------------------------


def test_module_names_that_differ_only_in_case_are_refused() -> None:
    upper = replace(native_module("net"), name="NET")
    found = refusal(("a.tar", native_library("net")), ("b.tar", Library((upper,))))
    assert found == ("merge-module-names", "b.tar and a.tar")


def test_operator_is_refused() -> None:
    operator = replace(native_module("op"), style=OPERATOR, executor="")
    found = refusal(("a.tar", native_library("net")), ("b.tar", Library((operator,))))
    assert found == ("merge-operator", "b.tar: module op")


def with_dependency(name: str, **changes: str) -> Library:
    dependency = ExternalDependency("cmsis-nn", "https://example.com/nn.git", "git", "v4.1.0")
    module = replace(native_module(name), external_dependencies=(replace(dependency, **changes),))
    return Library((module,))


def test_equal_dependencies_are_kept_for_each_module() -> None:
    merged = merge([("a.tar", with_dependency("a")), ("b.tar", with_dependency("b"))])
    assert [len(module.external_dependencies) for module in merged.modules] == [1, 1]
    (crt,) = merged.modules[0].external_dependencies
    repeated = replace(native_module("c"), external_dependencies=(crt, crt))
    (module,) = merge([("c.tar", Library((repeated,)))]).modules
    assert module.external_dependencies == (crt,)


@pytest.mark.parametrize(
    "changes",
    [
        {"version_spec": "v5.0.0"},
        {"url": "https://other.org/nn.git"},
        {"url_type": "path"},
        {"short_name": "CMSIS_NN", "version_spec": "v5.0.0"},
    ],
)
def test_different_dependencies_are_refused(changes: dict[str, str]) -> None:
    found = refusal(("a.tar", with_dependency("a")), ("b.tar", with_dependency("b", **changes)))
    assert found == ("merge-dependencies-differ", A_AND_B)


def test_spelling_of_a_dependency_name_is_ignored() -> None:
    merged = merge([("a.tar", with_dependency("a")), ("b.tar", with_dependency("b", short_name="CMSIS_NN"))])
    assert [item.short_name for module in merged.modules for item in module.external_dependencies] == [
        "cmsis-nn", "CMSIS_NN",
    ]  # fmt: skip


def with_files(name: str, version: str = "0.14.0", **files: bytes) -> Library:
    crt = ExternalDependency("tvm_standalone_crt", "./runtime", "mlf_path", version)
    module = replace(native_module(name), external_dependencies=(crt,))
    others = tuple(ArchiveFile(PurePosixPath(path.replace("__", "/")), data) for path, data in files.items())
    return Library((module,), other_files=others)


def test_equal_runtime_folders_are_merged() -> None:
    files = {"runtime__include__a.h": b"a", "templates__crt_config.h": b"t"}
    merged = merge(
        [("a.tar", with_files("a", **files)), ("b.tar", with_files("b", **files)), ("c.tar", with_files("c"))]
    )
    assert [str(file.path) for file in merged.other_files] == ["runtime/include/a.h", "templates/crt_config.h"]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"runtime__a.h": b"a"}, {"runtime__a.h": b"b"}),
        ({"runtime__a.h": b"a"}, {"runtime__a.h": b"a", "runtime__b.h": b""}),
        ({"templates__a.c": b"a"}, {"templates__a.c": b"b"}),
    ],
)
def test_different_runtime_folders_are_refused(left: dict[str, bytes], right: dict[str, bytes]) -> None:
    found = refusal(("a.tar", with_files("a", **left)), ("b.tar", with_files("b", **right)))
    assert found == ("merge-runtimes-differ", "a.tar and b.tar")


def test_different_runtime_versions_are_refused() -> None:
    found = refusal(("a.tar", with_files("a")), ("b.tar", with_files("b", "0.13.0")))
    assert found == ("merge-dependencies-differ", A_AND_B)


def test_files_of_no_module_are_merged() -> None:
    merged = merge([("a.tar", with_files("a", x=b"1", y=b"2")), ("b.tar", with_files("b", x=b"1"))])
    assert [(str(file.path), file.data) for file in merged.other_files] == [("x", b"1"), ("y", b"2")]
    found = refusal(("a.tar", with_files("a", x=b"1")), ("b.tar", with_files("b", x=b"2")))
    assert found == ("merge-other-files-differ", "a.tar and b.tar")


def test_unknown_fields_of_the_metadata() -> None:
    (left, right), one = (native_library(name) for name in "ab"), UnknownField("/tool", "1")
    kept = replace(left.modules[0], unknown=(UnknownField("/bank", "7"),))
    left = Library((kept,), unknown=(one,))
    merged = merge([("a.tar", left), ("b.tar", replace(right, unknown=(one, UnknownField("/x", "2"))))])
    assert merged.module("a").unknown == kept.unknown
    assert merged.unknown == (one, UnknownField("/x", "2"))
    found = refusal(("a.tar", left), ("b.tar", replace(right, unknown=(UnknownField("/tool", "2"),))))
    assert found == ("merge-unknown-fields-differ", "a.tar and b.tar")


# Files of one name ---------------------------------------------------------------------------------------------------


def library_of(name: str, **files: str) -> Library:
    """Return a module called ``name`` with ``files``: path below ``codegen/host``, with ``__`` for ``/`` -> text."""
    codegen = tuple(
        CodegenFile(PurePosixPath("host") / path.replace("__", "/").replace("_dot_", "."), text.encode())
        for path, text in files.items()
    )
    return Library((replace(native_module(name), codegen=codegen, operator_functions=()),))


def paths(library: Library) -> list[str]:
    return [str(file.path) for module in library.modules for file in module.codegen]


def test_sources_with_the_same_name_are_renamed() -> None:
    left = library_of("a", src__extra_dot_c="int a_extra;\n", src__a_lib0_dot_c="int a0;\n")
    right = library_of("b", src__extra_dot_c="int b_extra;\n")
    assert paths(merge([("a.tar", left), ("b.tar", right)])) == [
        "host/src/a_extra.c", "host/src/a_lib0.c", "host/src/b_extra.c",
    ]  # fmt: skip


def test_equal_files_are_shared() -> None:
    kernel = {"include__k_dot_h": "int k(void);\n", "src__k_dot_c": '#include "k.h"\nint k(void) { return 1; }\n'}
    merged = merge([("a.tar", library_of("a", **kernel)), ("b.tar", library_of("b", **kernel))])
    assert paths(merged) == ["host/include/k.h", "host/src/k.c"] * 2
    assert paths(read_archive(pack_archive(merged), "merged.tar")) == paths(merged)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"include__k_dot_h": "int k;"}, {"include__k_dot_h": "long k;"}),
        ({"src__k_dot_c": "int a;\n", "src__a_lib0_dot_c": '#include "k.c"\n'}, {"src__k_dot_c": "int b;\n"}),
    ],
)
def test_included_files_with_the_same_name_are_refused(left: dict[str, str], right: dict[str, str]) -> None:
    found = refusal(("a.tar", library_of("a", **left)), ("b.tar", library_of("b", **right)))
    assert found == ("merge-file-conflict", A_AND_B)


def test_paths_that_differ_only_in_case_are_refused() -> None:
    left, right = library_of("a", include__K_dot_h="int k;"), library_of("b", include__k_dot_h="int k;")
    assert refusal(("a.tar", left), ("b.tar", right)) == ("merge-file-conflict", A_AND_B)
    found = refusal(("a.tar", with_files("a", X=b"1")), ("b.tar", with_files("b", x=b"1")))
    assert found == ("merge-paths-differ-in-case", "X (a file of no module) and x (a file of no module)")


# Symbols -------------------------------------------------------------------------------------------------------------

GRAPH_LIB0 = """
#include <tvm/runtime/crt/module.h>
#ifdef __cplusplus
extern "C"
#endif
TVM_DLL int32_t tvmgen_{name}_add(TVMValue* args, int* type_code, int num_args, TVMValue* out_value, int* out_type_code, void* resource_handle);
#ifdef __cplusplus
extern "C"
#endif
TVM_DLL int32_t __tvm_main__(TVMValue* args, int* type_code, int num_args, TVMValue* out_value, int* out_type_code, void* resource_handle);
static TVMBackendPackedCFunc _tvm_func_array[] = {{
    (TVMBackendPackedCFunc)tvmgen_{name}_add,
    (TVMBackendPackedCFunc)__tvm_main__,
}};
static const TVMFuncRegistry _tvm_func_registry = {{
    "\\002\\000tvmgen_{name}_add\\000__tvm_main__\\000",    _tvm_func_array,
}};
static const TVMModule _tvm_system_lib = {{
    &_tvm_func_registry,
}};
const TVMModule* TVMSystemLibEntryPoint(void) {{
    return &_tvm_system_lib;
}}
;"""  # noqa: E501 - as TVM writes it

GRAPH_LIB1 = """
#include "tvm/runtime/c_runtime_api.h"
TVM_DLL int32_t tvmgen_{name}_add(void* args, int32_t* arg_type_ids, int32_t num_args, void* out_ret_value, int32_t* out_ret_tcode, void* resource_handle) {{
  (void)args; (void)arg_type_ids; (void)out_ret_value; (void)out_ret_tcode; (void)resource_handle;
  return num_args + {offset};
}}
TVM_DLL int32_t __tvm_main__(void* args, int* arg_type_ids, int num_args, void* out_ret_value, int* out_ret_tcode, void* resource_handle) {{
  return tvmgen_{name}_add(args, arg_type_ids, num_args, out_ret_value, out_ret_tcode, resource_handle);
}}
"""  # noqa: E501 - as TVM writes it


def single_operator(name: str, offset: int = 0) -> Library:
    """Return a graph of one operator, for which TVM adds ``__tvm_main__``."""
    (module,) = graph_library(name).modules
    files = {
        f"host/src/{name}_lib0.c": GRAPH_LIB0.format(name=name),
        f"host/src/{name}_lib1.c": GRAPH_LIB1.format(name=name, offset=offset),
    }
    codegen = tuple(CodegenFile(PurePosixPath(path), text.encode()) for path, text in files.items())
    return Library((replace(module, codegen=codegen),))


def code(library: Library, name: str) -> str:
    """Return the text of the generated file called ``name``."""
    return next(file.data.decode() for module in library.modules for file in module.codegen if file.path.name == name)


def test_main_functions_of_single_operators_are_renamed() -> None:
    merged = merge([("a.tar", single_operator("a")), ("b.tar", single_operator("b"))])
    for name in "ab":
        text = code(merged, f"{name}_lib1.c")
        assert "int32_t __tvm_main__(" not in text
        assert f"int32_t tvmgen_{name}___tvm_main__(" in text
    table = code(merged, "mlfbuild_system_lib.c")
    assert '"\\004\\000"' in table
    assert table.count('"tvmgen_a___tvm_main__\\000"') == 1
    assert code(merged, "a_lib0.c") == "\n;"


def test_main_function_of_only_one_module_is_kept() -> None:
    other = Library((replace(single_operator("b").modules[0], codegen=graph_library("b").modules[0].codegen),))
    merged = merge([("a.tar", single_operator("a")), ("b.tar", other)])
    assert merged.module("a") == single_operator("a").modules[0]


def test_context_of_the_cplusplus_runtime_is_shared() -> None:
    text = "void* __tvm_module_ctx = NULL;\nint {0}(void) {{ return __tvm_module_ctx != NULL; }}\n"
    left, right = (library_of(name, **{f"src__{name}_lib1_dot_c": text.format(f"tvmgen_{name}_f")}) for name in "ab")
    merged = merge([("a.tar", left), ("b.tar", right)])
    for name in "ab":
        assert code(merged, f"{name}_lib1.c").startswith("__attribute__((weak)) void* __tvm_module_ctx = NULL;\n")
    assert merge([("a.tar", left), ("c.tar", native_library("c"))]).module("a") == left.modules[0]


OFFLOADED = """
static int32_t tvmgen_default_nn_main_0_helper(void) {{ return 1; }}
int32_t tvmgen_default_nn_main_0(void) {{ return tvmgen_default_nn_main_0_helper() + {0}; }}
"""
CALLING = "int32_t tvmgen_default_nn_main_0(void);\nint32_t {0}(void) {{ return tvmgen_default_nn_main_0(); }}\n"


def offloading(name: str, offset: int, **more: str) -> Library:
    """Return a module whose functions have TVM's default name, because its partitioner was called without a name."""
    files = {
        f"src__{name}_lib0_dot_c": CALLING.format(f"tvmgen_{name}_run"),
        f"src__{name}_lib1_dot_c": OFFLOADED.format(offset),
    }
    return library_of(name, **files, **more)


def test_functions_with_the_default_name_are_renamed() -> None:
    merged = merge([("a.tar", offloading("a", 1)), ("b.tar", offloading("b", 2))])
    for name, offset in (("a", 1), ("b", 2)):
        own = f"tvmgen_{name}_nn_main_0"
        expected = CALLING.format(f"tvmgen_{name}_run").replace("tvmgen_default_nn_main_0(", f"{own}(")
        assert code(merged, f"{name}_lib0.c") == expected
        assert f"int32_t {own}(void)" in code(merged, f"{name}_lib1.c")
        assert f"tvmgen_default_nn_main_0_helper() + {offset}" in code(merged, f"{name}_lib1.c"), "static: it can stay"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"include__{0}_dot_h": "int32_t tvmgen_default_nn_main_0(void);\n"}, "header"),
        ({"src__{0}_lib2_dot_c": "#define CALL tvmgen_default_nn_main_0()\n"}, "macro"),
        ({"src__{0}_lib2_dot_c": 'const char* tvmgen_{0}_x = "tvmgen_default_nn_main_0";\n'}, "looks it up"),
        ({"src__{0}_lib2_dot_c": "int32_t tvmgen_{0}_nn_main_0;\n"}, "taken"),
        ({"src__{0}_lib2_dot_c": "int tvmgen_{0}_x(struct s* p) {{ return p->tvmgen_default_nn_main_0; }}\n"},
         "member of a struct"),
    ],
)  # fmt: skip
def test_functions_that_other_code_uses_are_refused(more: dict[str, str], reason: str) -> None:
    left, right = (
        offloading(name, 1, **{path.format(name): text.format(name) for path, text in more.items()}) for name in "ab"
    )
    with raises(CheckFailedError, "merge-symbol-conflict", at=A_AND_B) as caught:
        merge([("a.tar", left), ("b.tar", right)])
    assert reason in caught.value.reason


def test_one_module_keeps_the_name() -> None:
    left = offloading("a", 1, include__a_dot_h="int32_t tvmgen_default_nn_main_0(void);\n")
    merged = merge([("a.tar", left), ("b.tar", offloading("b", 2))])
    assert merged.module("a") == left.modules[0]
    assert "int32_t tvmgen_b_nn_main_0(void)" in code(merged, "b_lib1.c")


def test_operators_called_by_a_graph_are_refused() -> None:
    (left,), (right,) = (graph_library(name).modules for name in "ab")
    text = b"int fused_add(void)\n{\n    return 0;\n}\n"
    modules = [
        replace(
            module,
            codegen=(
                CodegenFile(PurePosixPath(f"host/src/{module.name}_lib1.c"), text + module.name.encode() + b"_;"),
            ),
            graph_json=bytes(module.graph_json or b"").replace(f"tvmgen_{module.name}_add".encode(), b"fused_add"),
        )
        for module in (left, right)
    ]
    with raises(CheckFailedError, "merge-symbol-conflict", at=A_AND_B) as caught:
        merge([(f"{module.name}.tar", Library((module,))) for module in modules])
    assert "graph" in caught.value.reason


@pytest.mark.parametrize(
    ("symbol", "hint"),
    [
        ("get_c_metadata", "export one of them for the C runtime (crt)"),
        ("_lookup_linked_param", "export one of them without link-params"),
    ],
)
def test_functions_that_runtimes_look_up_are_refused(symbol: str, hint: str) -> None:
    left, right = (
        library_of(name, **{f"src__{name}_lib1_dot_c": f"int {symbol}(void) {{ return {number}; }}\n"})
        for number, name in enumerate("ab")
    )
    with raises(CheckFailedError, "merge-symbol-conflict", at=A_AND_B) as caught:
        merge([("a.tar", left), ("b.tar", right)])
    assert symbol in caught.value.reason and caught.value.hint == hint


def test_function_with_the_prefix_of_another_module_is_renamed() -> None:
    left = library_of("a", src__a_lib0_dot_c="int tvmgen_a_b_run(void) { return 1; }\n")
    right = library_of("a_b", src__a_b_lib0_dot_c="int tvmgen_a_b_run(void) { return 2; }\n")
    merged = merge([("a.tar", left), ("b.tar", right)])
    assert merged.module("a_b") == right.modules[0], "its entry function"
    assert code(merged, "a_lib0.c") == "int tvmgen_a_a_b_run(void) { return 1; }\n"


def of_tvm_0_8(library: Library, count: int) -> Library:
    """Return ``library`` with a table of TVM 0.8 that has ``count`` functions."""
    (module,) = library.modules
    functions = {name: name for name in (f"tvmgen_{module.name}_{number}" for number in range(count))}
    table = CodegenFile(
        PurePosixPath(f"host/src/{module.name}_lib0.c"), registry_source(functions.items(), 1, [module.name]).encode()
    )
    return Library((replace(module, codegen=(table,)),))


def test_too_many_functions_for_a_table_are_refused() -> None:
    assert merge([("a.tar", of_tvm_0_8(graph_library("a"), 200)), ("b.tar", of_tvm_0_8(graph_library("b"), 55))])
    found = refusal(("a.tar", of_tvm_0_8(graph_library("a"), 200)), ("b.tar", of_tvm_0_8(graph_library("b"), 56)))
    assert found == ("merge-too-many-functions", A_AND_B)


def test_system_library_of_unknown_form_is_refused() -> None:
    broken = single_operator("b").modules[0]
    codegen = tuple(
        CodegenFile(
            file.path, file.data.replace(b"static const TVMModule _tvm", b"int extra; static const TVMModule _tvm")
        )
        for file in broken.codegen
    )
    found = refusal(("a.tar", single_operator("a")), ("b.tar", Library((replace(broken, codegen=codegen),))))
    assert found == ("merge-system-library-form", "module b of b.tar and module a of a.tar")


def kernel_folders(library: Library) -> dict[str, set[str]]:
    """Return the folders of kernel headers of each module."""
    return {
        module.name: {str(file.path.parent) for file in module.codegen if file.path.name == "offset.h"}
        for module in library.modules
    }


def test_modules_share_equal_kernels() -> None:
    merged = merge([(f"{name}.tar", Library((native_module(name),))) for name in ("one", "two")])
    assert kernel_folders(merged) == {"one": {"host/src/mlfbuild"}, "two": {"host/src/mlfbuild"}}


@pytest.mark.parametrize("reverse", [False, True])
def test_kernels_of_two_versions_get_separate_folders(reverse: bool) -> None:
    one, two = Library((native_module("one"),)), Library((native_module("two", kernel=OTHER_KERNEL),))
    merged = merge([("a.tar", two), ("b.tar", one)] if reverse else [("a.tar", one), ("b.tar", two)])
    assert kernel_folders(merged) == {"one": {"host/src/mlfbuild_one"}, "two": {"host/src/mlfbuild_two"}}
    for module in merged.modules:
        (source,) = (file.data.decode() for file in module.codegen if file.path.suffix == ".c")
        assert f'#include "mlfbuild_{module.name}/offset.h"' in source
        assert '#include "mlfbuild/' not in source
    assert pack_archive(read_archive(pack_archive(merged), "merged.tar")) == pack_archive(merged)


def test_merged_archive_merges_with_kernels_of_a_third_version() -> None:
    one, two = Library((native_module("one"),)), Library((native_module("two", kernel=OTHER_KERNEL),))
    both = rename_modules(merge([("a.tar", one), ("b.tar", two)]), {"one": "four"})
    third = [Library((native_module(name, kernel=f"{OTHER_KERNEL}\n"),)) for name in ("three", "one")]
    again = merge([("both.tar", both), ("c.tar", third[0]), ("d.tar", third[1])])
    assert kernel_folders(again) == {
        "four": {"host/src/mlfbuild_one"}, "two": {"host/src/mlfbuild_two"},
        "three": {"host/src/mlfbuild"}, "one": {"host/src/mlfbuild"},
    }  # fmt: skip
    fifth = merge([("again.tar", again), ("e.tar", Library((native_module("five"),)))])
    assert kernel_folders(fifth)["one"] == {"host/src/mlfbuild_one_2"}


@pytest.mark.parametrize("folder", ["mlfbuild", "mlfbuild-000000000000"])
def test_two_native_archives_of_two_releases_run_in_one_program(tool: Callable[[str], str], folder: str) -> None:
    tool("gcc")
    names = ("iris", "wine")
    models = Path(__file__).parents[2] / "examples/two-models/models"
    first, second = (compile_bytes((models / f"{name}.tflite").read_bytes(), name) for name in names)
    merged = merge([("iris.tar", first), ("wine.tar", with_other_kernels(second, folder))])
    sources = {file.path.name: file.data.decode() for module in merged.modules for file in module.codegen}
    other = "mlfbuild_wine" if folder == "mlfbuild" else folder
    assert f'#include "{other}/compiler.h"' in sources["wine_lib0.c"]
    read = read_archive(pack_archive(merged), "merged.tar")
    inputs = {
        module.name: [
            np.random.default_rng(5).normal(0, 40, info.shape or ()).astype(info.dtype) for info in module.inputs
        ]
        for module in read.modules
    }
    apart = [
        run_many_on_host([(library, library.modules[0], inputs[library.modules[0].name])])
        for library in (first, second)
    ]
    together = run_many_on_host([(read, read.module(name), inputs[name]) for name in names])
    for (alone,), both in zip(apart, together, strict=True):
        assert all(np.array_equal(left, right) for left, right in zip(alone, both, strict=True))


def with_other_kernels(library: Library, folder: str) -> Library:
    """Return ``library`` with the kernels of another release of mlfbuild.

    Older releases have them in a folder of the public headers that is named after their hash.
    """
    (module,) = library.modules
    place = PurePosixPath("host/src" if folder == "mlfbuild" else "host/include", folder)

    def changed(file: CodegenFile) -> CodegenFile:
        if file.path.parent.name == "mlfbuild":
            return CodegenFile(place / file.path.name, file.data + b"/* of another release */\n")
        return CodegenFile(file.path, file.data.replace(b'"mlfbuild/', f'"{folder}/'.encode()))

    return Library((replace(module, codegen=tuple(changed(file) for file in module.codegen)),))
