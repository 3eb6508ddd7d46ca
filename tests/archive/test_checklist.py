"""TVM's own tests of Model Library Format, each with the tests of mlfbuild that check the same.

The keys are the tests in ``tests/python/unittest/test_micro_model_library_format.py`` of TVM 0.14. TVM's tests export a
model and check the archive; mlfbuild's tests check archives from TVM's exporter and from mlfbuild. Facts that no other
test checks are tested below the table.
"""

import ast
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from mlfbuild.archive.layout import archive_files
from mlfbuild.archive.load import open_archive
from mlfbuild.archive.read import read_files
from mlfbuild.c_analysis.objects import object_symbols
from mlfbuild.core.errors import InputFileError
from mlfbuild.library import MainMemory, Module, OperatorFunction, TensorInfo, text_of
from mlfbuild.library.graph_json import parse_graph
from support.errors import raises
from support.sound_archives import METADATA, net, net_module, packed, tiny, tiny_module, with_runtime
from support.tvm_archives import tvm_files

TESTS = Path(__file__).parents[1]
HERE = "archive/test_checklist.py"

CHECKLIST: Mapping[str, tuple[str, ...]] = {
    "test_export_operator_model_library_format": (f"{HERE}::test_an_operator_of_tvm",
     "archive/test_versions.py::test_an_operator_of_each_version",
     "library/test_metadata.py::test_operator_is_one_line_in_order_of_tvm"),
    "test_export_multiple_operator_model_library_format": (
        "archive/test_convert.py::test_operator_with_other_modules_is_refused",
        "archive/test_merge.py::test_operator_is_refused",
    ),
    "test_export_model_library_format_c": (
        f"{HERE}::test_a_model_of_tvm_in_c",
        f"{HERE}::test_only_the_c_interface_has_a_header",
        f"{HERE}::test_a_graph_is_kept_as_text",
        "archive/test_versions.py::test_a_model_of_each_version",
        "library/test_params.py::test_loads_the_bytes_that_tvm_saves",
    ),
    "test_export_model_library_format_llvm": (f"{HERE}::test_a_model_of_tvm_in_objects",
     "c_analysis/test_symbols.py::test_objects_of_tvm_agree_with_nm"),
    "test_export_model_library_format_workspace": (f"{HERE}::test_memory_of_a_convolution",
     "archive/test_validate.py::test_sizes_of_storage_that_tvm_got_wrong"),
    "test_export_non_dso_exportable": ("archive/test_versions.py::test_unsupported_archives_are_refused",),
    "test_export_byoc_c_module": (f"{HERE}::test_code_of_another_code_generator",
     "archive/test_tar.py::test_names_modes_and_owners_equal_those_of_tvm"),
    "test_multiple_relay_modules_same_module_name": (f"{HERE}::test_modules_with_the_same_name_are_refused",
     "archive/test_merge.py::test_same_archive_twice_is_refused",
     "archive/test_merge.py::test_module_names_that_differ_only_in_case_are_refused"),
    "test_multiple_relay_modules_graph": (f"{HERE}::test_two_graphs_in_one_archive",
     "archive/test_merge.py::test_each_pair_merges_or_is_refused"),
    "test_multiple_relay_modules_c": (f"{HERE}::test_two_modules_with_the_c_interface",
     "archive/test_merge.py::test_equal_runtime_folders_are_merged"),
    "test_multiple_relay_modules_aot_graph": (f"{HERE}::test_modules_of_two_executors",),
    "test_output_name_single / _many": (f"{HERE}::test_outputs_are_named_and_flat",
     "archive/test_interface.py::test_signature_of_every_tvm_archive",
     "archive/test_interface.py::test_many_outputs_are_sorted_as_numbers"),
    "test_template_files": (f"{HERE}::test_both_templates_are_kept",
     "archive/test_versions.py::test_files_with_unknown_paths_are_kept"),
    "(history) test_export_model": (
        "archive/test_versions.py::test_a_model_of_each_version",
        "archive/test_versions.py::test_targets_by_device_are_in_device_order",
        "archive/test_convert.py::test_paths_of_files_in_each_version",
        "library/test_metadata.py::test_table_of_versions",
    ),
}  # fmt: skip


def test_every_test_of_tvm_has_existing_counterparts() -> None:
    assert len(CHECKLIST) == 14
    for line, tests in CHECKLIST.items():
        assert tests, line
        for test in tests:
            path, _, name = test.partition("::")
            assert name in names_in(TESTS / path), f"{line}: {test} does not exist"


def names_in(path: Path) -> set[str]:
    """Return the names of the test functions in a file."""
    tree = ast.parse(path.read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def opened(shared: Path, name: str) -> Module:
    (module,) = open_archive(shared / "archives" / f"{name}.tar").modules
    return module


def code(module: Module) -> list[str]:
    return [str(file.path) for file in module.codegen]


# Single modules


def test_an_operator_of_tvm(shared: Path) -> None:
    library = open_archive(shared / "archives/operator-add.tar")
    (module,) = library.modules
    assert (library.version, module.name, module.style, module.executor) == (7, "add", "operator", "")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", module.export_datetime)
    assert [target.text for target in module.targets] == ["c -keys=cpu "]
    assert [(item.dtype, item.shape, item.size) for item in module.buffers] == [
        ("int8", (2,), 2), ("int8", (1,), 1), ("int8", (2,), 2),
    ]  # fmt: skip
    assert code(module) == ["host/src/lib0.c", "host/src/lib1.c"]
    ((device, text),) = module.tir
    assert device == 1 and "add" in text_of(text)


@pytest.mark.parametrize("name", ["add-graph", "add-aotp", "add-aotc"])
def test_a_model_of_tvm_in_c(shared: Path, name: str) -> None:
    module = opened(shared, name)
    assert (module.name, module.executor) == ("add", "graph" if name == "add-graph" else "aot")
    assert module.main == (MainMemory(workspace_size=0, constants_size=8, io_size=18, device=1),)
    assert module.operator_functions == (OperatorFunction("tvmgen_add_fused_cast_multiply_add", ((1, 0),)),)
    assert {"host/src/add_lib0.c", "host/src/add_lib1.c"} <= set(code(module))
    assert [(tensor.name, tensor.dtype, tensor.size) for tensor in (*module.inputs, *module.outputs)] == [
        ("a", "uint8", 2), ("b", "float32", 8), ("output", "float32", 8),
    ]  # fmt: skip
    assert "def @main(%a: Tensor[(1, 2), uint8]" in text_of(module.source_text)
    assert list(module.params) == (["p0"] if name == "add-graph" else [])


@pytest.mark.parametrize(("name", "there"), [("add-graph", False), ("add-aotp", False), ("add-aotc", True)])
def test_only_the_c_interface_has_a_header(shared: Path, name: str, there: bool) -> None:
    module = opened(shared, name)
    assert ("host/include/tvmgen_add.h" in code(module)) == there == (module.interface == "c")


def test_a_graph_is_kept_as_text(shared: Path) -> None:
    module = opened(shared, "add-graph")
    assert module.graph_json == tvm_files(shared, "add-graph")["executor-config/graph/add.graph"]
    assert module.graph_json is not None
    graph = parse_graph(bytes(module.graph_json), "add.graph")
    assert [node.name for node in graph.nodes][:3] == ["a", "b", "p0"] and len(graph.nodes) == 4
    assert [(entry.storage_id, entry.size, entry.input_binding) for entry in module.storage] == [
        (0, 2, "a"), (1, 8, "b"), (2, 8, "p0"), (3, 8, None),
    ]  # fmt: skip


def test_a_model_of_tvm_in_objects(shared: Path) -> None:
    module = opened(shared, "conv-llvm_graph_m4")
    assert code(module) == ["host/lib/conv_lib0.o", "host/lib/conv_lib1.o"]
    assert module.targets[0].text.startswith("llvm ")
    defined = [object_symbols(file.data, file.path.name).defined for file in module.codegen]
    assert "TVMSystemLibEntryPoint" in defined[0]
    assert {function.name for function in module.operator_functions} <= defined[1]


def test_memory_of_a_convolution(shared: Path) -> None:
    graph, packed_calls = opened(shared, "conv-graph"), opened(shared, "conv-aotp")
    assert graph.main == (MainMemory(workspace_size=59760, constants_size=864, io_size=12320),)
    assert packed_calls.main == (MainMemory(workspace_size=58928, constants_size=864, io_size=65632),)
    for module in (graph, packed_calls):
        assert [(tensor.name, tensor.size) for tensor in (*module.inputs, *module.outputs)] == [
            ("data", 12288), ("output", 32),
        ]  # fmt: skip
    operators = {function.name: dict(function.workspace)[1] for function in graph.operator_functions}
    assert operators["tvmgen_conv_fused_nn_contrib_conv2d_NCHWc_nn_relu"] == 14640


def test_code_of_another_code_generator(shared: Path) -> None:
    module = opened(shared, "byoc-aotp")
    assert module.main == (MainMemory(workspace_size=400, constants_size=0, io_size=2000),)
    assert [(tensor.name, tensor.size) for tensor in module.inputs] == [("x", 400), ("w0", 400), ("w1", 400)]
    assert code(module)[-1] == "host/src/byoc_lib3.c"
    assert "tvmgen_byoc_ccompiler_main_0" in text_of(module.codegen[-1].content)


# Several modules


def test_modules_with_the_same_name_are_refused() -> None:
    text = packed(tiny_module("a"), tiny_module("b"))[METADATA].decode()
    assert text.count('"b": {') == 1
    with raises(InputFileError, "json-invalid", at="two.tar: metadata.json"):
        read_files({**tiny("a", "b"), METADATA: text.replace('"b": {', '"a": {').encode()}, "two.tar")


def test_two_graphs_in_one_archive() -> None:
    files = packed(net_module("mod1"), net_module("mod2"))
    assert {f"codegen/host/src/mod{n}_lib{lib}.c" for n in (1, 2) for lib in (0, 1)} <= files.keys()
    assert {f"executor-config/graph/mod{n}.graph" for n in (1, 2)} <= files.keys()
    document = json.loads(files[METADATA])
    assert document["version"] == 7
    assert {name: module["model_name"] for name, module in document["modules"].items()} == {
        "mod1": "mod1",
        "mod2": "mod2",
    }
    main = document["modules"]["mod2"]["memory"]["functions"]["main"]
    assert main == [
        {
            "device": 1, "workspace_size_bytes": 0, "constants_size_bytes": 8, "io_size_bytes": 16,
            "inputs": {"x": {"size": 8, "dtype": "float32"}}, "outputs": {"output": {"size": 8, "dtype": "float32"}},
        }
    ]  # fmt: skip


def test_two_modules_with_the_c_interface(shared: Path) -> None:
    library = open_archive(shared / "archives/multi-aotc.tar")
    assert [code(module) for module in library.modules] == [
        [f"host/include/tvmgen_mod{n}.h", f"host/src/mod{n}_lib0.c", f"host/src/mod{n}_lib1.c"] for n in (1, 2)
    ]
    files = with_runtime(packed(*library.modules))
    again = read_files(files, "multi.tar")
    assert [str(file.path) for file in again.other_files] == ["runtime/include/x.h"]
    assert again.modules == library.modules


def test_modules_of_two_executors(shared: Path) -> None:
    library = open_archive(shared / "archives/multi-mixed.tar")
    assert [(module.name, module.executor) for module in library.modules] == [("mod1", "aot"), ("mod2", "graph")]
    document = json.loads(bytes(archive_files(library)[METADATA]))
    assert document["version"] == 7
    assert {name: module["executors"] for name, module in document["modules"].items()} == {
        "mod1": ["aot"], "mod2": ["graph"],
    }  # fmt: skip


# Outputs and templates


def test_outputs_are_named_and_flat(shared: Path) -> None:
    assert [tensor.name for tensor in opened(shared, "kws_int8-graph").outputs] == ["Identity"]
    for name in ("many-aotc", "many-graph"):
        outputs = opened(shared, name).outputs
        assert [(tensor.name, tensor.size) for tensor in outputs] == [("output0", 32), ("output1", 32), ("output2", 32)]
    named = tuple(TensorInfo(name, "int8", size) for name, size in (("test0_a", 4), ("test1_a", 2), ("another", 1)))
    files = packed(tiny_module(outputs=named))
    (module,) = read_files(files, "named.tar").modules
    assert [(tensor.name, tensor.size) for tensor in module.outputs] == [("test0_a", 4), ("test1_a", 2), ("another", 1)]
    (entry,) = json.loads(files[METADATA])["modules"]["tiny"]["memory"]["functions"]["main"]
    assert {name: tensor["size"] for name, tensor in entry["outputs"].items()} == {
        "test0_a": 4, "test1_a": 2, "another": 1,
    }  # fmt: skip


def test_both_templates_are_kept() -> None:
    templates = {f"templates/{name}.template": name.encode() for name in ("crt_config.h", "platform.c")}
    library = read_files({**net(), **templates}, "net.tar")
    assert templates.items() <= archive_files(library).items()
    assert templates.items() <= archive_files(library, 5).items()
