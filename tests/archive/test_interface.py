"""Finding a module's interface in its header, entry file, TVMMetadata, graph and Relay text."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given, strategies as st

from mlfbuild.archive.interface import with_interface
from mlfbuild.archive.interface.entry import entry_signature, entry_text, internal_pools
from mlfbuild.archive.interface.port_sources import metadata_signature
from mlfbuild.archive.interface.relay import relay_signature
from mlfbuild.archive.interface.signature import Argument, Signature, read_header
from mlfbuild.archive.load import open_archive
from mlfbuild.core.errors import InputFileError
from mlfbuild.library import CodegenFile, MainMemory, Module, Pool, TensorInfo, text_of
from support.errors import raises
from support.libraries import GRAPH_JSON, native_module
from support.steps import assert_linear


def module(name: str = "net", executor: str = "aot", relay: str = "", **files: str) -> Module:
    """Return a module with empty metadata; keys of ``files`` are ``lib0``, ``lib1`` and ``header``."""
    paths = {"header": f"host/include/tvmgen_{name}.h"}
    codegen = tuple(
        CodegenFile(PurePosixPath(paths.get(key, f"host/src/{name}_{key}.c")), text.encode())
        for key, text in files.items()
    )
    return Module(name, executor, (), (MainMemory(0, 0, 18),), (), codegen, source_text=relay.encode())


def shown(tensors: tuple[TensorInfo, ...]) -> list[tuple[str, str, int, tuple[int, ...] | None]]:
    return [(tensor.name, tensor.dtype, tensor.size, tensor.shape) for tensor in tensors]


# Archives of TVM ------------------------------------------------------------------------------------------------------

A_B = [("a", "uint8", 2, (1, 2)), ("b", "float32", 8, (1, 2))]
OUTPUT = [("output", "float32", 8, (1, 2))]
DATA = [("data", "float32", 12288, (1, 3, 32, 32))]
EIGHT = [("output", "float32", 32, (1, 8))]
WAVE = [("input_1", "int8", 490, (1, 49, 10, 1))]
X_Y = [("x", "float32", 32, (2, 4)), ("y", "float32", 32, (2, 4))]
THREE = [(f"output{index}", "float32", 32, (2, 4)) for index in range(3)]
X_W0_W1 = [(name, "float32", 400, (10, 10)) for name in ("x", "w0", "w1")]

SIGNATURES: dict[str, tuple[str, list[Any], list[Any]]] = {
    "add-aotc add": ("c", A_B, OUTPUT),
    "add-aotp add": ("packed", A_B, OUTPUT),
    "add-graph add": ("", A_B, OUTPUT),
    "byoc-aotp byoc": ("packed", X_W0_W1, [("output", "float32", 400, (10, 10))]),
    "conv-aotc conv": ("c", DATA, EIGHT),
    "conv-aotp conv": ("packed", DATA, EIGHT),
    "conv-graphlink conv": ("", DATA, EIGHT),
    "conv-llvm_graph_m4 conv": ("", DATA, EIGHT),
    "conv-usmp_external conv": ("c", DATA, EIGHT),
    "kws_int8-aotc kws_int8": ("c", WAVE, [("Identity", "int8", 12, (1, 12))]),  # from operators of its Relay text
    "kws_int8-cmsisnn_m4 kws_int8": ("c", WAVE, [("Identity", "int8", 12, (1, 12))]),
    "kws_int8-graph kws_int8": ("", WAVE, [("Identity", "int8", 12, (1, 12))]),
    "many-aotc many": ("c", X_Y, THREE),
    "many-graph many": ("", X_Y, THREE),
    "multi-aotc mod2": ("c", DATA, EIGHT),
    "multi-mixed mod1": ("packed", A_B, OUTPUT),
    "multi-mixed mod2": ("", DATA, EIGHT),
    "operator-add add": ("", [], []),
    "v5-add-aotc add": ("c", A_B, OUTPUT),
    "v5-add-graph add": ("", A_B, OUTPUT),
    "v5-kws_int8-graph kws_int8": ("", WAVE, [("output", "int8", 12, (1, 12))]),
    "v5-many-graphlink many": ("", X_Y, THREE[:2]),
}


@pytest.mark.parametrize("which", SIGNATURES)
def test_signature_of_every_tvm_archive(shared: Path, which: str) -> None:
    archive, name = which.split()
    found = open_archive(shared / "archives" / f"{archive}.tar").module(name)
    assert (found.interface, shown(found.inputs), shown(found.outputs)) == SIGNATURES[which]


@pytest.mark.parametrize(
    ("archive", "expected"),
    [
        ("add-aotc", [Pool("global_const_workspace", "constant", 8, external=False)]),
        ("byoc-aotp", [Pool("global_workspace", "workspace", 400, external=False)]),
        ("conv-aotp", [Pool("global_const_workspace", "constant", 864, external=False),
                       Pool("global_workspace", "workspace", 58928, external=False)]),
        ("conv-usmp_external", [Pool("sram", "workspace", 47408, external=True)]),
        ("kws_int8-cmsisnn_m4", [Pool("global_const_workspace", "constant", 33584, external=False),
                                 Pool("global_workspace", "workspace", 73152, external=False)]),
        ("conv-graph", []),
        ("v5-add-aotc", []),
    ],
)  # fmt: skip
def test_pools_of_tvm_archives(shared: Path, archive: str, expected: list[Pool]) -> None:
    (found,) = open_archive(shared / "archives" / f"{archive}.tar").modules
    assert found.pools == tuple(expected)


def test_size_of_constants_agrees_with_metadata_and_code(shared: Path) -> None:
    checked = 0
    for path in sorted((shared / "archives").glob("*.tar")):
        for found in open_archive(path).modules:
            for pool in found.pools:
                if pool.kind == "constant":
                    text = next(file.data.decode() for file in found.codegen if file.path.stem.endswith("lib0"))
                    comment = re.search(r"// of total size (\d+) bytes", text)
                    assert comment is not None
                    assert pool.size == int(comment[1]) == found.main[0].constants_size
                    checked += 1
    assert checked >= 8


def test_places_of_one_archive_agree(shared: Path) -> None:
    """All places have the same names, except for unnamed outputs."""
    (found,) = open_archive(shared / "archives" / "add-aotp.tar").modules
    entry = entry_signature(found, entry_text(found))
    relay = relay_signature(text_of(found.source_text))
    assert entry == Signature(None, None, 3)
    assert metadata_signature(found) == Signature(
        (Argument("a", "uint8", (1, 2)), Argument("b", "float32", (1, 2))), (Argument("output0", "float32", (1, 2)),)
    )
    assert relay is not None
    assert [argument.name for argument in relay.inputs or ()] == ["a", "b", "c"]


def test_finding_the_interface_twice_changes_nothing(shared: Path) -> None:
    for path in sorted((shared / "archives").glob("*.tar")):
        for found in open_archive(path).modules:
            assert with_interface(found, path.name) == found


def test_native_module_is_unchanged() -> None:
    assert with_interface(native_module(), "a.tar") == native_module()


# The header ----------------------------------------------------------------------------------------------------------

HEADER = """\
#ifndef TVMGEN_NET_H_
#define TVMGEN_NET_H_
#include <stdint.h>
/*!
 * \\brief struct tvmgen_net_inputs { void* none; };
 */
#define TVMGEN_NET_X_SIZE 8
struct tvmgen_net_inputs {
  void* serving_default_x_0;
  void* a;
};
struct tvmgen_net_outputs { void* y; };
struct tvmgen_net_devices {
  void* ethos_u;
  void* vela;
};
struct tvmgen_net_workspace_pools {
  void* sram;
  void* flash;
  void* other;
};
struct tvmgen_net_inputs tvmgen_net_map_inputs(struct tvmgen_net_workspace_pools* workspace_pools);
int32_t tvmgen_net_run(struct tvmgen_net_inputs* inputs, struct tvmgen_net_outputs* outputs);
#define TVMGEN_NET_SRAM_WORKSPACE_POOL_SIZE 128
#define TVMGEN_NET_FLASH_CONSTANT_POOL_SIZE 24
#define TVMGEN_NET_FLASH_CONSTANT_POOL_DATA \\
    0x01, 0x02, \\
    0x03
#endif // TVMGEN_NET_H_
"""


def test_header_with_all_parts() -> None:
    known = (TensorInfo("a", "int8", 4), TensorInfo("serving_default_x:0", "float32", 8))
    found = with_interface(replace(module(header=HEADER), inputs=known), "a.tar")
    assert [tensor.name for tensor in found.inputs] == ["serving_default_x:0", "a"]
    assert found.interface == "c"
    assert found.workspace_io
    assert found.devices == ("ethos_u", "vela")
    assert found.pools == (
        Pool("flash", "constant", 24, external=True),
        Pool("other", "workspace", None, external=True),
        Pool("sram", "workspace", 128, external=True),
    )
    header = read_header(module(header=HEADER))
    assert header is not None
    assert header.sizes["TVMGEN_NET_X_SIZE"] == 8


def test_header_of_a_module_name_with_capitals() -> None:
    text = HEADER.replace("NET", "MYNET").replace("tvmgen_net", "tvmgen_mynet")
    files = (CodegenFile(PurePosixPath("host/include/tvmgen_mynet.h"), text.encode()),)
    header = read_header(replace(module("MyNet"), codegen=files))
    assert header is not None
    assert header.structs["outputs"] == ("y",)
    assert header.pools[0].size == 128


def test_header_of_another_module_is_ignored() -> None:
    assert read_header(module("other", header=HEADER)) is not None  # by its file name,
    assert read_header(module("other", header=HEADER)).structs == {}  # type: ignore[union-attr]  # not its structs
    assert with_interface(module("other", lib0="int a;"), "a.tar").interface == "packed"


def test_old_header_is_completed_from_relay_text() -> None:
    relay = (
        "def @main(%x:0: Tensor[(4), int8], %a: Tensor[(2, 3), uint8], %w: Tensor[(9), int8]) -> Tensor[(2), bool] {"
    )
    header = "struct tvmgen_net_inputs { void* x_0; void* a; }; struct tvmgen_net_outputs { void* output; };"
    found = with_interface(module(header=header, relay=relay), "a.tar")
    assert shown(found.inputs) == [("x:0", "int8", 4, (4,)), ("a", "uint8", 6, (2, 3))]
    assert shown(found.outputs) == [("output", "bool", 2, (2,))]


def test_names_without_types_are_not_a_signature() -> None:
    header = "struct tvmgen_net_inputs { void* x; }; struct tvmgen_net_outputs { void* output; };"
    found = with_interface(module(header=header), "a.tar")
    assert (found.inputs, found.outputs, found.interface) == ((), (), "c")


# The entry file ------------------------------------------------------------------------------------------------------

C_ENTRY = """\
TVM_DLL int32_t tvmgen_net___tvm_main__(void* y,void* x,void* output0);
int32_t tvmgen_net_run(struct tvmgen_net_inputs* inputs,struct tvmgen_net_outputs* outputs) \
{return tvmgen_net___tvm_main__(inputs->y,inputs->x,outputs->out);
}
"""
UNPACKED_ENTRY = """\
TVM_DLL int32_t tvmgen_net___tvm_main__(void* y,void* x,void* output0,void* output1,uint8_t* global_workspace_0_var);
int32_t tvmgen_net_run(void* args, void* type_code, int num_args, void* out_value, void* out_type_code, void* h) {
return tvmgen_net___tvm_main__(((DLTensor*)(((TVMValue*)args)[0].v_handle))[0].data,\
((DLTensor*)(((TVMValue*)args)[1].v_handle))[0].data,((DLTensor*)(((TVMValue*)args)[2].v_handle))[0].data,\
((DLTensor*)(((TVMValue*)args)[3].v_handle))[0].data,&global_workspace);
}
"""


DESCRIPTOR = """\
TVM_DLL int32_t tvm__run_func(void* args, void* type_code, int num_args, void* out_value, void* out_type_code);
const tvm_model_t network = {
    .run_func = &tvm__run_func,
    .num_input_tensors = 2,
    .num_output_tensors = 1,
};
"""


def names(arguments: tuple[Argument, ...] | None) -> list[str] | None:
    return None if arguments is None else [argument.name for argument in arguments]


@pytest.mark.parametrize(
    ("text", "inputs", "outputs", "count"),
    [
        (C_ENTRY, ["y", "x"], ["out"], None),
        (UNPACKED_ENTRY, ["y", "x"], ["output0", "output1"], 4),
        (UNPACKED_ENTRY.replace("void* y", "void* arg0"), None, None, 4),
        (DESCRIPTOR, None, None, 3),
    ],
)
def test_signatures_in_entry_files(text: str, inputs: list[str] | None, outputs: list[str] | None, count: int) -> None:
    found = entry_signature(module(), text)
    assert found is not None
    assert (names(found.inputs), names(found.outputs), found.count) == (inputs, outputs, count)


@pytest.mark.parametrize(
    "text",
    ["", "int32_t tvmgen_net_run(void);", "int32_t tvmgen_net_run(", "int32_t tvmgen_network_run(int a) {}",
     "int32_t tvmgen_net_run(void* args) { return main(args); }", "tvm_model_t network = {.num_input_tensors = 2};"],
)  # fmt: skip
def test_entry_files_without_signature(text: str) -> None:
    assert entry_signature(module(), text) is None


def test_entry_file_orders_tensors_of_the_metadata() -> None:
    known = (TensorInfo("x", "int8", 1), TensorInfo("y", "int8", 2))
    found = with_interface(replace(module(lib0=UNPACKED_ENTRY), inputs=known), "a.tar")
    assert [tensor.name for tensor in found.inputs] == ["y", "x"]


POOLS = """\
static const char* text = "section(\\".rodata.tvm\\")";
__attribute__((section(".rodata.tvm"), ))
static const struct flash {
  float f[3] __attribute__((aligned(16))); // 12 bytes, aligned offset: 0
  int8_t i[5] __attribute__((packed, aligned(16))); // 5 bytes, aligned offset: 16
} flash = { .f = { 1, 2, 3 } };
__attribute__((section(".bss.noinit.tvm"), aligned(16)))
static uint8_t ram[1024];
__attribute__((section(".rodata.tvm"), aligned(16))) static const uint8_t kernel_constant[4] = {1, 2, 3, 4};
"""


def test_internal_pools() -> None:
    assert internal_pools(POOLS) == (
        Pool("flash", "constant", 21, external=False),
        Pool("ram", "workspace", 1024, external=False),
    )


@pytest.mark.parametrize(
    ("text", "size"),
    [("static uint8_t ram[N];", None), ("static uint8_t ram[];", None), ("static uint8_t ram[16];", 16)],
)
def test_length_of_a_workspace(text: str, size: int | None) -> None:
    assert internal_pools('__attribute__((section(".bss.noinit.tvm")))' + text) == (
        Pool("ram", "workspace", size, external=False),
    )


def test_unusual_struct_has_no_size() -> None:
    for member in ("q_t x[3];", "float x;", "float x[N];", "float x[3] __attribute__((aligned(0)));", "float x[3]"):
        text = f'__attribute__((section(".rodata.tvm"), )) static struct p {{ {member}'
        assert internal_pools(text) == (Pool("p", "constant", None, external=False),)


# TVMMetadata ---------------------------------------------------------------------------------------------------------

METADATA = """\
static const int64_t kTvmgenMetadata_inputs_0_shape[2] = {
1L,\x20
2L};
static const struct TVMTensorInfo kTvmgenMetadata_inputs[2] = {
{
"b" /* name*/,\x20
kTvmgenMetadata_inputs_0_shape,\x20
2L /* num_shape*/,\x20
{1, 8, 1} /* dtype*/}
,\x20
{
"a\\"" /* name*/, kTvmgenMetadata_inputs_1_shape, 0L /* num_shape*/, {1, 1, 1} /* dtype*/}
};
static const int64_t kTvmgenMetadata_inputs_1_shape[0] = {
};
static const struct TVMTensorInfo kTvmgenMetadata_outputs[1] = {
{"output0" /* name*/, kTvmgenMetadata_outputs_0_shape, 1L /* num_shape*/, {2, 32, 4} /* dtype*/}
};
static const int64_t kTvmgenMetadata_outputs_0_shape[1] = { 3L };
"""


def test_signature_in_metadata_struct() -> None:
    found = metadata_signature(module(lib0=";", lib1=METADATA))
    assert found == Signature(
        (Argument("b", "uint8", (1, 2)), Argument('a"', "bool", ())), (Argument("output0", "float32x4", (3,)),)
    )
    assert [argument.size for argument in (*(found.inputs or ()), *(found.outputs or ()))] == [2, 1, 48]


def test_metadata_struct_orders_a_packed_module() -> None:
    known = (TensorInfo('a"', "bool", 1), TensorInfo("b", "uint8", 2))
    found = with_interface(replace(module(lib1=METADATA), inputs=known), "a.tar")
    assert shown(found.inputs) == [("b", "uint8", 2, (1, 2)), ('a"', "bool", 1, ())]
    assert shown(found.outputs) == [("output0", "float32x4", 48, (3,))]


@pytest.mark.parametrize("cut", range(20, len(METADATA), 37))
def test_truncated_metadata_struct_is_ignored(cut: int) -> None:
    found = metadata_signature(module(lib0=METADATA[:cut]))
    assert found is None or len(found.inputs or ()) <= 2


# The graph -----------------------------------------------------------------------------------------------------------


def graph_module(change: Callable[[dict[str, Any]], None] = lambda _: None, **files: str) -> Module:
    document = json.loads(GRAPH_JSON)
    change(document)
    return replace(module(executor="graph", **files), graph_json=json.dumps(document).encode())


def test_linked_parameters_are_not_inputs_of_a_graph() -> None:
    linked = "static const float __tvm_param__p0[2] = {\n    0x1p+1   , 0x1p+2   \n};\n"
    assert [tensor.name for tensor in with_interface(graph_module(lib1=linked), "a.tar").inputs] == ["x"]
    assert [tensor.name for tensor in with_interface(graph_module(lib1=";"), "a.tar").inputs] == ["x", "p0"]


def test_an_invalid_graph_is_refused_even_if_it_is_not_needed() -> None:
    broken = graph_module(lambda document: document["heads"].append([9, 0, 0]))
    known = replace(
        broken, inputs=(TensorInfo("x", "float32", 8, (1, 2)),), outputs=(TensorInfo("y", "int8", 1, (1,)),)
    )
    for each in (broken, known):
        with raises(InputFileError, "graph-index-invalid", at="net.graph: heads[1]"):
            with_interface(each, "net.graph")


# The Relay text ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "inputs", "outputs"),
    [
        ("def @main(%x: Tensor[(64), int32]) -> Tensor[(1, 2), int8] {", [("x", "int32", (64,))],
         [("output", "int8", (1, 2))]),
        ("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(64), int32] /* ty=int32 span=a,)(:0:0 */) -> int8 {",
         [("x", "int32", (64,))], [("output", "int8", ())]),
        ("def @main(%s: float32, %m/x:0: Tensor[(2i64, 3), bfloat16x2]) -> (bool, (Tensor[(1), int8],)) {",
         [("s", "float32", ()), ("m/x:0", "bfloat16x2", (2, 3))],
         [("output0", "bool", ()), ("output1", "int8", (1,))]),
        ("def @main(%x[1]: Tensor[(1), int8], output_tensor_names=[\"b, c\", \"a\"], hash=\"(\") -> (int8, int8) {",
         [("x[1]", "int8", (1,))], [("b, c", "int8", ()), ("a", "int8", ())]),
        ("def @main(%x: Tensor[(?, 2), int8], %y) {", [("x", "int8", None), ("y", "", None)], None),
        ("def @main(%t: (int8, (bool, Tensor[(2), int8])), %u: int8) -> int8 {",
         [("t", "int8", ()), ("t2", "bool", ()), ("t3", "int8", (2,)), ("u", "int8", ())], [("output", "int8", ())]),
        ("def @main() -> int8 {", [], [("output", "int8", ())]),
        ("#[version = \"0.0.5\"]\nfn (%x: int8) -> bool {", [("x", "int8", ())], [("output", "bool", ())]),
        ("def @f(%z: int8) -> int8 {\n  %z\n}\n\ndef @main(%x: int8) -> int8 {", [("x", "int8", ())],
         [("output", "int8", ())]),
        ("def @main(%x: float32 {virtual_device=VirtualDevice(id=0)}, device=VirtualDevice(id=0), d=[D()]) -> int8 {",
         [("x", "float32", ())], [("output", "int8", ())]),
    ],
)  # fmt: skip
def test_forms_of_relay_text(text: str, inputs: list[Any], outputs: list[Any] | None) -> None:
    found = relay_signature(text + "\n  0\n}\n")
    assert found is not None
    assert [(a.name, a.dtype, a.shape) for a in found.inputs or ()] == inputs
    assert (None if found.outputs is None else [(a.name, a.dtype, a.shape) for a in found.outputs]) == outputs


@pytest.mark.parametrize(
    "text",
    ["", "@main", "%f = fn (%x: int8) -> int8 { %x }", "def @main(%x: Tensor[(1), int8]",
     "def @main(%x(1): int8) -> int8 {", "class Module:\n    def main(x): ...\n", "add 3\n"],
)  # fmt: skip
def test_relay_text_without_signature(text: str) -> None:
    assert relay_signature(text) is None


FORWARD = "void* h) { return tvmgen_net_run_model(args, h); }\n"
RELAY = "def @main(%a: Tensor[(1, 2), uint8], %b: Tensor[(1, 2), float32], %c: Tensor[(1, 2), float32]) -> {} {{\n"


@pytest.mark.parametrize(
    ("result", "lib0", "expected"),
    [
        ("Tensor[(1, 2), float32]", "", ["a", "b"]),  # 18 bytes, as the metadata records
        ("Tensor[(1), float32]", "", []),  # 14 bytes never fill up
        ("(int8, int8)", "", []),
        ("(int8, int8)", UNPACKED_ENTRY.replace("void* y", "void* arg0"), ["a", "b"]),  # four arguments
    ],
)
def test_relay_text_has_inputs_only_if_their_number_is_known(result: str, lib0: str, expected: list[str]) -> None:
    found = with_interface(module(relay=RELAY.format(result), lib0=lib0), "a.tar")
    assert [tensor.name for tensor in found.inputs] == expected
    assert found.interface == "packed"


@pytest.mark.parametrize(
    ("params", "io_size", "expected"),
    [
        ("%w: Tensor[(9), int8], %x: Tensor[(4), int8], %b: Tensor[(2), int8]", 8, ["x"]),
        ("%w: Tensor[(9), int8], %x: Tensor[(4), int8], %b: Tensor[(2), int8]", 13, ["w"]),
        ("%w: Tensor[(9), int8], %x: Tensor[(4), int8], %b: Tensor[(4), int8]", 8, []),  # x or b
        ("%w: Tensor[(9), int8], %x: Tensor[(4), int8], %b: Tensor[(2), int8]", 9, []),  # neither
    ],
)
def test_inputs_of_tvm_8_have_the_size_that_is_recorded(params: str, io_size: int, expected: list[str]) -> None:
    """The two outputs count twice: 2 * (1 + 1) bytes."""
    text = (
        "void* h) {\n  ((TVMValue*)args)[0].v_handle; ((TVMValue*)args)[1].v_handle; ((TVMValue*)args)[2].v_handle;\n}"
    )
    files = {
        "lib0": f"int32_t tvmgen_net_run(void* args, {FORWARD}",
        "lib1": f"int32_t tvmgen_net_run_model(void* args, {text}",
    }
    relay = f"def @main({params}) -> (int8, int8) {{\n"
    found = with_interface(replace(module(relay=relay, **files), main=(MainMemory(0, 0, io_size),)), "a.tar")
    assert [tensor.name for tensor in found.inputs] == expected


# All together --------------------------------------------------------------------------------------------------------


def test_relay_text_is_used_in_version_1() -> None:
    relay = "def @main(%z: Tensor[(2), int8], %a: Tensor[(3), int8]) -> Tensor[(2), int8] {\n"
    bare = replace(module(relay=relay), main=())
    assert [tensor.name for tensor in with_interface(bare, "a.tar").inputs] == ["z", "a"]
    counted = replace(module(relay=relay, lib0=DESCRIPTOR.replace("= 2", "= 1")), main=())
    assert [tensor.name for tensor in with_interface(counted, "a.tar").inputs] == ["z"], "the other became a constant"


def test_contradictory_places_do_not_change_the_metadata() -> None:
    known = (TensorInfo("p", "int8", 4), TensorInfo("q", "int8", 4))
    header = "struct tvmgen_net_inputs { void* q; void* r; };"
    found = with_interface(replace(module(header=header), inputs=known), "a.tar")
    assert found.inputs == known


def test_shape_with_another_size_is_ignored() -> None:
    relay = "def @main(%x: Tensor[(3), int8]) -> int8 {\n"
    found = with_interface(replace(module(relay=relay), inputs=(TensorInfo("x", "int8", 4),)), "a.tar")
    assert found.inputs == (TensorInfo("x", "int8", 4),)


def test_relay_prefix_of_names_is_recognised() -> None:
    relay = "def @main(%v_y: Tensor[(2), int8], %v1: Tensor[(3), int8]) -> int8 {\n"
    known = (TensorInfo("1", "int8", 3), TensorInfo("_y", "int8", 2))
    found = with_interface(replace(module(relay=relay), inputs=known), "a.tar")
    assert shown(found.inputs) == [("_y", "int8", 2, (2,)), ("1", "int8", 3, (3,))]


def test_named_outputs_of_a_packed_module_are_in_relay_order() -> None:
    relay = 'def @main(%x: int8, output_tensor_names=["z", "a"]) -> (int8, Tensor[(2), int8]) {\n'
    known = (TensorInfo("a", "int8", 2), TensorInfo("z", "int8", 1))
    found = with_interface(replace(module(relay=relay, lib1=METADATA), outputs=known), "a.tar")
    assert shown(found.outputs) == [("z", "int8", 1, ()), ("a", "int8", 2, (2,))]


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ("(int8, Tensor[(2), int8])", ["z", "a"]),
        ("(Tensor[(2), int8], int8)", ["a", "z"]),
        ("(int8, int8)", ["a", "z"]),  # of other types: the metadata's order
    ],
)
def test_named_outputs_are_ordered_by_type_if_names_are_unknown(results: str, expected: list[str]) -> None:
    known = (TensorInfo("a", "int8", 2), TensorInfo("z", "int8", 1))
    found = with_interface(replace(module(relay=f"def @main(%x: int8) -> {results} {{\n"), outputs=known), "a.tar")
    assert [tensor.name for tensor in found.outputs] == expected


def test_many_outputs_are_sorted_as_numbers() -> None:
    known = tuple(TensorInfo(f"output{index}", "int8", 1) for index in (0, 1, 10, 2))
    found = with_interface(replace(module(), outputs=known), "a.tar")
    assert [tensor.name for tensor in found.outputs] == ["output0", "output1", "output2", "output10"]


def test_names_that_sanitise_equally_keep_metadata_order() -> None:
    known = (TensorInfo("x-0", "int8", 1), TensorInfo("x.0", "int8", 2))
    header = "struct tvmgen_net_inputs { void* x_0; };"
    assert with_interface(replace(module(header=header), inputs=known), "a.tar").inputs == known


# Hostile text --------------------------------------------------------------------------------------------------------

FRAGMENTS = [
    "struct tvmgen_net_inputs {", "void* x;", "}", ";", "{", "(", ")", "[", "]", ",", "tvmgen_net_run(", "inputs->x",
    "tvmgen_net___tvm_main__(", "void* output0", "args)[", "0", '__attribute__((section(".rodata.tvm")', "struct p {",
    '__attribute__((section(".bss.noinit.tvm"))) static uint8_t w[', "kTvmgenMetadata_inputs[2] = {",
    "kTvmgenMetadata_outputs[1] = {", "kTvmgenMetadata_inputs_0_shape[] = {", '"a"', "1L", "/*", "*/", "//", "\n", " ",
    '"',
    "def @main(", "%x: ", "Tensor[(", "1, 2", "), int8]", "output_tensor_names=[", "->", "int8", "\\", "#define A 1\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=60).map("".join))
def test_any_text_is_accepted_as_header_and_source(text: str) -> None:
    found = with_interface(module(header=text, lib0=text, lib1=text, relay=text), "a.tar")
    assert found.interface == "c"
    assert with_interface(module(lib0=text, lib1=text, relay=text), "a.tar").interface == "packed"


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_hostile_text_takes_linear_time(fragment: str) -> None:
    def work(size: int) -> None:
        text = fragment * (size // len(fragment))
        with_interface(module(header=text, lib0=text, relay=text), "a.tar")
        with_interface(module(lib0=text, lib1="kTvmgenMetadata" + text, relay="def @main(" + text), "a.tar")

    assert_linear(work, 10_000)


def test_many_tensors_take_linear_time() -> None:
    def check(count: int) -> None:
        relay = "def @main(" + ", ".join(f"%x{index}: int8" for index in range(count)) + ") -> int8 {\n"
        known = tuple(TensorInfo(f"x{index}", "int8", 1) for index in reversed(range(count)))
        found = with_interface(replace(module(relay=relay), inputs=known), "a.tar")
        assert found.inputs == tuple(replace(tensor, shape=()) for tensor in reversed(known))

    assert_linear(check, 2_500)


def test_too_many_dimensions_are_not_a_shape() -> None:
    extents = ", ".join(["999999999999999999"] * 50_000)
    relay = f"def @main(%x: Tensor[({extents}), int8], %y: Tensor[(9223372036854775, 9999), int8]) -> int8 {{\n"
    found = relay_signature(relay)
    assert found is not None
    assert [argument.size for argument in found.inputs or ()] == [None, None]


def test_large_files_are_not_read() -> None:
    text = HEADER + " " * (16 * 1024 * 1024)
    found = with_interface(module(header=text, lib0=POOLS + text, relay=RELAY + text), "a.tar")
    assert (found.inputs, found.pools, found.interface) == ((), (), "c")
