"""The text and the JSON of ``inspect``."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, strategies as st

from mlfbuild.archive import open_archive, pack_archive, read_archive
from mlfbuild.archive.describe import describe, describe_text
from mlfbuild.archive.describe.readme import readme_text
from mlfbuild.core.text import printable
from mlfbuild.library import (
    ArchiveFile,
    CodegenFile,
    DeviceContext,
    ExternalDependency,
    LazyBytes,
    Library,
    MainMemory,
    Module,
    ModuleTarget,
    Network,
    NetworkOperator,
    OperatorBuffer,
    OperatorFunction,
    Pool,
    TensorInfo,
    TracedTensor,
    UnknownField,
)
from mlfbuild.library.other_devices import device_name
from support.libraries import graph_library, native_library, native_module

CRT = ExternalDependency("tvm_standalone_crt", "./runtime", "mlf_path", "0.14.0")
NPU = ExternalDependency("npu_driver", "https://example.org/npu.git", "git", "v1.2")


def rich_library() -> Library:
    native = replace(native_library().modules[0], external_dependencies=(CRT, NPU))
    runtime = ArchiveFile(PurePosixPath("runtime/CMakeLists.txt"), b"# nothing\n")
    return Library((native, *graph_library().modules), other_files=(runtime,))


def operator_module() -> Module:
    """Return an operator for two devices, with all fields of operators."""
    return Module(
        name="add",
        executor="",
        style="operator",
        targets=(ModuleTarget("c -keys=cpu", 1), ModuleTarget("ethos-u -accelerator_config=ethos-u55-256", 12)),
        main=(),
        operator_functions=(),
        codegen=(CodegenFile(PurePosixPath("host/src/lib0.c"), b"int x;\n"),),
        buffers=(OperatorBuffer("add", 2, (2,), "int8", "A"), OperatorBuffer("add", 200, (10, 20), "int8")),
        tir=((1, b"@add"), (12, b"@add_npu")),
    )


def planned_module() -> Module:
    """Return a module whose memory TVM planned: pools, a device that the caller passes, contexts."""
    return Module(
        name="npu",
        executor="aot",
        interface="c",
        targets=(ModuleTarget("c -keys=arm_cpu,cpu " + "-mattr=+feature " * 8),),
        main=(MainMemory(100, 20, 3), MainMemory(4096, 0, 0, device=12)),
        operator_functions=(OperatorFunction("tvmgen_npu_ethos_u_main_0", ((1, 16), (12, 4096))),),
        codegen=(CodegenFile(PurePosixPath("host/src/npu_lib0.c"), b"int x;\n"),),
        pools=(Pool("sram", "workspace", 4096, external=True), Pool("flash", "constant", None, external=False)),
        devices=("ethos_u",),
        contexts=(DeviceContext("cpu"), DeviceContext("ethos-u", 1, "ethos-u", '{"macs": 128}', "ethos-u -mcpu=u55")),
        external_dependencies=(
            ExternalDependency("nn", "https://example.org/nn", "git", "v7", (UnknownField("/licence", '"MIT"'),)),
        ),
        unknown=(UnknownField("/memory/banks", json.dumps(list(range(40)))), UnknownField("/tool", '"x\\u001b"')),
        trace=(TracedTensor(TensorInfo("relu", "int8", 64, (1, 64)), "RELU", "tvmgen_npu_relu"),),
    )


@pytest.mark.parametrize(
    "library",
    [
        rich_library(),
        Library((operator_module(),), version=4),
        Library((planned_module(),), unknown=(UnknownField("/exporter", "1"),)),
    ],
    ids=["two", "operator", "planned"],
)
def test_text_and_json(golden: Callable[[str, str], None], library: Library) -> None:
    golden(describe_text(library) + "\n", "inspect.txt")
    golden(json.dumps(describe(library), indent=2) + "\n", "inspect.json")


def module_with_lists(operators: int, files: int) -> Module:
    functions = tuple(OperatorFunction(f"op_{i}", ((1, 10 * i),)) for i in range(operators))
    sources = [CodegenFile(PurePosixPath(f"host/src/tiny_lib{i}.c"), b"x" * i) for i in range(files)]
    return replace(native_module(), operator_functions=functions, codegen=tuple(sources))


def test_long_lists_show_their_largest_entries() -> None:
    text = describe_text(Library((module_with_lists(operators=300, files=50),)))
    assert "op_299" in text and "op_292" in text and "op_291" not in text
    assert "2,910    largest of 292 more (-v shows all)" in text
    assert "861    42 more (-v shows all)" in text, "what the other files come to"
    assert "1,225  50 files" in text
    full = describe_text(Library((module_with_lists(operators=300, files=50),)), verbose=True)
    assert [line.split()[-1] for line in full.splitlines() if " op_" in line] == [f"op_{i}" for i in range(300)]
    assert "-v shows all" not in full


def test_a_list_with_one_more_entry_is_shown_in_full() -> None:
    assert "more" not in describe_text(Library((module_with_lists(operators=9, files=9),)))
    assert "of 2 more" in describe_text(Library((module_with_lists(operators=10, files=9),)))


@pytest.mark.sweep
def test_many_modules_get_one_line_each(golden: Callable[[str, str], None]) -> None:
    library = native_library(*(f"m{i:03}" for i in range(1000)))
    golden(describe_text(library) + "\n", "many.txt")
    assert len(describe(library)["modules"]) == 1000, "programs get all of them"
    assert describe_text(library, verbose=True).count("\nmodule m") == 1000


def test_operators_and_macs_of_a_network() -> None:
    operators = (NetworkOperator("a", "CONV_2D", "f", macs=12_000), NetworkOperator("b", "SOFTMAX", "g", macs=0))
    library = Library((replace(native_module(), network=Network(0, (), operators)),))
    assert describe(library)["modules"][0]["network"] == {"operators": 2, "macs": 12_000}
    assert "2 operators, 12,000 multiply-accumulates per run\n" in describe_text(library)
    unknown = Network(0, (), (*operators, NetworkOperator("c", "", "h")))
    library = Library((replace(native_module(), network=unknown),))
    assert "3 operators\n" in describe_text(library)


def test_constant_date_is_not_printed() -> None:
    again = read_archive(pack_archive(native_library("tiny")), "a.tar")
    assert describe(again)["modules"][0]["export_datetime"] == "1980-01-01 00:00:00Z"
    assert "1980" not in describe_text(again)
    real = replace(again.modules[0], export_datetime="2024-02-03 04:05:06Z")
    (line,) = [line for line in describe_text(Library((real,))).splitlines() if "exported" in line]
    assert line.split() == ["exported", "2024-02-03", "04:05:06Z"]


def test_unknown_inputs_and_outputs() -> None:
    lines = describe_text(Library((replace(native_module(), inputs=(), outputs=()),))).splitlines()
    assert [line.split() for line in lines if "unknown" in line] == [["input", "unknown"], ["output", "unknown"]]


def test_lines_have_at_most_100_columns() -> None:
    lines = describe_text(Library((planned_module(),))).splitlines()
    assert max(map(len, lines)) <= 100
    assert sum("-mattr=+feature" in line for line in lines) == 2, "a long target is wrapped"


class Unread(LazyBytes):
    """A content that must not be read."""

    def __len__(self) -> int:
        return 1 << 40

    def read(self, _offset: int, _size: int) -> bytes:
        raise AssertionError("inspect reads content that it does not need")


def test_content_that_is_not_needed_is_not_read() -> None:
    module = native_module()
    files = tuple(replace(file, content=Unread()) for file in module.codegen)
    module = replace(module, codegen=files, source_text=Unread())
    library = Library((module,), other_files=(ArchiveFile(PurePosixPath("runtime/x.h"), Unread()),))
    assert f"{3 << 40:,}  3 files" in describe_text(library)
    assert describe(library)["modules"][0]["source_text"] == {"size": 1 << 40}


def test_names_cannot_control_the_terminal() -> None:
    tensor = TensorInfo("x\x1b[2J\nfake", "int8", 4)
    text = describe_text(Library((replace(native_module(), inputs=(tensor,)),)))
    assert "\x1b" not in text and "\nfake" not in text
    assert "x\\x1b[2J\\nfake" in text


@given(st.text(), st.text())
def test_any_name_is_printable(name: str, other: str) -> None:
    dependency = ExternalDependency(name, other, other, name)
    module = replace(
        native_module(), inputs=(TensorInfo(name, other, 4),), targets=(ModuleTarget(name),), devices=(other,),
        external_dependencies=(dependency,), export_datetime=other, pools=(Pool(name, "workspace", None, True),),
    )  # fmt: skip
    library = Library((module,))
    for text in (describe_text(library), readme_text(library)):
        assert all(line.isprintable() for line in text.split("\n"))
    json.dumps(describe(library))


def test_facts_of_an_archive_of_tvm(shared: Path) -> None:
    facts = describe(open_archive(shared / "archives" / "multi-mixed.tar"))
    assert [(module["name"], module["executor"]) for module in facts["modules"]] == [("mod1", "aot"), ("mod2", "graph")]
    (data,) = facts["modules"][1]["inputs"]
    assert (data["name"], data["dtype"], data["size"], data["scale"]) == ("data", "float32", 12288, None)
    assert facts["modules"][1]["graph"] == {
        "size": 3720, "nodes": 8, "operators": 6, "storage_ids": 6, "storage_size": 58272,
    }  # fmt: skip
    assert sum(entry["size"] for entry in facts["modules"][1]["storage"]) == 66432, "as TVM's metadata has it"
    assert facts["modules"][0]["external_dependencies"] == [
        {"short_name": "tvm_standalone_crt", "url": "./runtime", "url_type": "mlf_path", "version_spec": "0.14.0",
         "in_archive": False, "bundle": None}
    ]  # fmt: skip
    json.dumps(facts)


def test_requirements_that_are_not_in_the_metadata(shared: Path) -> None:
    library = open_archive(shared / "archives/kws_int8-cmsisnn_m4.tar")
    assert describe(library)["modules"][0]["needs"] == [
        {"name": "cmsis-nn", "version": "v4.1.0", "exporter": "TVM 0.14.0", "declared": False, "url_type": "git",
         "url": "https://github.com/ARM-software/CMSIS-NN",
         "headers": ["arm_nnfunctions.h", "arm_nn_types.h", "arm_nn_math_types.h"]}
    ]  # fmt: skip
    rows = describe_text(library).split("  requires  ")[1].splitlines()
    assert [row.strip() for row in rows] == [
        "tvm_standalone_crt 0.14.0: folder ./runtime, not in this archive",
        "cmsis-nn v4.1.0: not in the metadata, but the code includes arm_nnfunctions.h,",
        "arm_nn_types.h, arm_nn_math_types.h",
        "TVM 0.14.0 was tested with version v4.1.0",
    ]


@pytest.mark.parametrize(
    ("crt", "exported"), [((replace(CRT, version_spec="0.11.1"),), " (TVM 0.11.1 exported the code)"), ((), "")]
)
def test_an_unknown_version_of_a_requirement(crt: tuple[ExternalDependency, ...], exported: str) -> None:
    source = CodegenFile(PurePosixPath("host/src/add_lib0.c"), b"#include <arm_nnfunctions.h>\n")
    module = replace(native_module("add"), model_id="", codegen=(source,), external_dependencies=crt)
    assert describe(Library((module,)))["modules"][0]["needs"][0]["version"] is None
    text = " ".join(describe_text(Library((module,))).split())
    assert "cmsis-nn: not in the metadata, but the code includes arm_nnfunctions.h" in text
    assert text.endswith(f"the version is unknown{exported}, set it in the project file")


def test_every_archive_of_tvm_has_a_page(shared: Path) -> None:
    for path in sorted((shared / "archives").glob("*.tar")):
        library = open_archive(path)
        text = describe_text(library)
        assert text.startswith(f"Model Library Format version {library.version}, "), path
        assert all(f"\nmodule {module.name}: " in text for module in library.modules), path
        assert "none" not in text.lower().split(), path


@pytest.mark.parametrize(
    ("text", "shown"), [("kws", "kws"), ("größe", "größe"), ("a\tb", "a\\tb"), ("\udc80", "\\udc80")]
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_device_names() -> None:
    assert [device_name(number) for number in (1, 12, 99)] == ["CPU", "extension device", "device 99"]
