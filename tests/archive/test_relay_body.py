"""The type of a network's result, inferred from the operators in its Relay text."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from mlfbuild.archive.interface import with_interface
from mlfbuild.archive.interface.relay import relay_signature
from mlfbuild.archive.load import open_archive
from mlfbuild.library import CodegenFile, MainMemory, Module, text_of
from support.examples import examples
from support.steps import assert_linear
from support.tvm_archives import TVM_ARCHIVES

X = "%x: Tensor[(1, 8, 6, 2), int8], %w: Tensor[(3, 12), int8], %k: Tensor[(3, 3, 2, 5), int8]"

BODIES = {
    "%x": ("int8", (1, 8, 6, 2)),
    "nn.relu(%x)": ("int8", (1, 8, 6, 2)),
    "cast(%x, dtype=\"float32\")": ("float32", (1, 8, 6, 2)),
    "qnn.dequantize(%x, 0.5f, -3)": ("float32", (1, 8, 6, 2)),
    "reshape(%x, newshape=[-1, 12])": ("int8", (8, 12)),
    "reshape(%x, newshape=[0, -1])": ("int8", (1, 96)),
    "reshape(%x, newshape=[2, 48], allowzero=1)": ("int8", None),
    "nn.batch_flatten(%x)": ("int8", (1, 96)),
    "transpose(%x, axes=[0, 3, 1, 2])": ("int8", (1, 2, 8, 6)),
    "transpose(%x, axes=[0, 3, 1, 1])": ("int8", None),
    "mean(%x, axis=[1, 2])": ("int8", (1, 2)),
    "mean(%x, axis=[1, -2], keepdims=True)": ("int8", (1, 1, 1, 2)),
    "max(%x)": ("int8", None),
    "squeeze(%x, axis=[0])": ("int8", (8, 6, 2)),
    "squeeze(%x)": ("int8", None),
    "add(%x, 2)": ("int8", (1, 8, 6, 2)),
    "multiply(%x, meta[relay.Constant][0])": ("int8", None),
    'nn.pad(%x, 0, pad_width=[[0, 0], [1, 1], [0, 2], [0, 0]])': ("int8", (1, 10, 8, 2)),
    'nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], layout="NHWC")': ("int8", (1, 4, 3, 2)),
    'nn.avg_pool2d(%x, pool_size=[3, 3], strides=[2, 2], layout="NHWC", ceil_mode=True)': ("int8", (1, 4, 3, 2)),
    'nn.global_avg_pool2d(%x, layout="NHWC")': ("int8", (1, 1, 1, 2)),
    'qnn.conv2d(%x, %k, 0, 0, 1f, 1f, strides=[2, 2], padding=[1, 1, 1, 1], channels=5, kernel_size=[3, 3], '
    'data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32")': ("int32", (1, 4, 3, 5)),
    'nn.conv2d(%x, %k, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO")': ("int8", (1, 6, 4, 5)),
    'nn.conv2d(%x, %k, kernel_size=[3, 3], data_layout="NHWC4c")': ("int8", None),
    "nn.conv2d(%x, %k, kernel_size=[9, 9], data_layout=\"NHWC\", channels=5)": ("int8", None),  # no room
    "unheard_of(%x)": None,
    "%y": None,
    "%x /* ty=Tensor[(7), bool] span=a/b:0:0 */": ("bool", (7,)),
    "unheard_of(%x /* ty=int32 */) /* from_string */ /* ty=Tensor[(1, 2), float32] */": ("float32", (1, 2)),
    "%0 = reshape(%x, newshape=[-1, 12]) /* span=a=b:0:0 */;\n  qnn.dense(%0, %w, units=3, out_dtype=\"int32\")":
    ("int32", (8, 3)),
    "%0 = reshape(%x, newshape=[-1, 12]);\n  nn.dense(%0, %w, units=None)": ("int8", (8, 3)),
    "let %a: Tensor[(5), int8] = unheard_of(%x);\n  let %b = nn.relu(%a);\n  %b": ("int8", (5,)),
    "%0 = (%x, %w);\n  %1 = %0.1;\n  nn.relu(%1)": ("int8", (3, 12)),
    "%0 = fn (%a: int8) -> int8 {\n    %1 = nn.relu(%a);\n    %1\n  };\n  %0(%x)": None,
}  # fmt: skip


@pytest.mark.parametrize("body", BODIES)
def test_type_of_the_result(body: str) -> None:
    found = relay_signature(f"def @main({X}) {{\n  {body}\n}}\n")
    assert found is not None
    outputs = None if found.outputs is None else [(each.dtype, each.shape) for each in found.outputs]
    assert outputs == (None if BODIES[body] is None else [BODIES[body]])


def test_unknown_results_in_a_tuple_may_be_tuples() -> None:
    found = relay_signature(f"def @main({X}) {{\n  %0 = unheard_of(%x);\n  (%x, %0)\n}}\n")
    assert found is not None
    assert found.outputs is None


def test_tuples_are_flattened() -> None:
    text = f'def @main({X}, output_tensor_names=["a", "b", "c"]) {{\n  %0 = (%w, %k);\n  (%x, %0)\n}}\n'
    found = relay_signature(text)
    assert found is not None
    expected = [("a", (1, 8, 6, 2)), ("b", (3, 12)), ("c", (3, 3, 2, 5))]
    assert [(each.name, each.shape) for each in found.outputs or ()] == expected


def test_tuples_in_tuples_are_flattened() -> None:
    found = relay_signature(f"def @main({X}) {{\n  %0 = nn.relu(%x);\n  (%0, (%w, (%k,)), %0)\n}}\n")
    assert found is not None
    expected = [(1, 8, 6, 2), (3, 12), (3, 3, 2, 5), (1, 8, 6, 2)]
    assert [each.shape for each in found.outputs or ()] == expected


@pytest.mark.parametrize("depth", [15, 1000])
def test_depth_of_tuples_is_limited(depth: int) -> None:
    found = relay_signature(f"def @main({X}) {{\n  {'(' * depth}%x{',)' * depth}\n}}\n")
    assert found is not None
    assert (found.outputs is None) == (depth > 15)


@pytest.mark.parametrize("name", [name for name in TVM_ARCHIVES if name != "operator-add"])
def test_shapes_are_those_of_the_vectors(shared: Path, name: str) -> None:
    """TVM's own executor returned these shapes; the first axis counts cases."""
    modules = open_archive(shared / "archives" / f"{name}.tar").modules
    for module in modules:
        suffix = f".{module.name}" if len(modules) > 1 else ""
        with np.load(shared / "archives" / f"{name}{suffix}.npz") as vectors:
            assert [tensor.shape for tensor in module.outputs] == [
                vectors[f"out{at}"].shape[1:] for at in range(len(module.outputs))
            ]
            assert {f"in_{each.name}": each.shape for each in module.inputs} == {
                key: vectors[key].shape[1:] for key in vectors.files if key.startswith("in_")
            }


def test_the_batch_follows_from_the_size_of_all(shared: Path) -> None:
    """Without the convolutions, the text of a TFLite model determines only 12 classes: TVM 0.8 gives the size."""
    (module,) = open_archive(shared / "archives" / "v5-kws_int8-graph.tar").modules
    text = text_of(module.source_text).replace("nn.avg_pool2d", "unheard_of")
    found = relay_signature(text)
    assert found is not None
    assert [(each.shape, each.dims) for each in found.outputs or ()] == [(None, (None, 12))]
    entry = (
        "int32_t tvmgen_kws_int8_run(void* args) { return tvmgen_kws_int8_run_model(args); }\n"
        "int32_t tvmgen_kws_int8_run_model(void* args) {\n  ((TVMValue*)args)[0].v_handle;\n"
        "  ((TVMValue*)args)[1].v_handle;\n}\n"
    )
    old = replace(
        module, executor="aot", graph_json=None, inputs=(), outputs=(), source_text=text.encode(),
        codegen=(CodegenFile(module.codegen[0].path, entry.encode()),),
    )  # fmt: skip
    done = with_interface(old, "a.tar")
    assert [(each.name, each.size, each.shape) for each in done.inputs] == [("input_1", 490, (1, 49, 10, 1))]
    assert [(each.dtype, each.size, each.shape) for each in done.outputs] == [("int8", 12, (1, 12))]
    newer = replace(
        old, codegen=(CodegenFile(module.codegen[0].path, entry.replace("run_model", "__tvm_main__").encode()),)
    )
    assert with_interface(newer, "a.tar").outputs == (), "TVM 0.9 adds intermediate results to the size of all"


HEADER = """\
struct tvmgen_net_inputs { void* x; };
struct tvmgen_net_outputs { void* y; };
#define TVMGEN_NET_X_SIZE 6
"""
MAIN = """\
int32_t tvmgen_net_run(struct tvmgen_net_inputs* inputs,struct tvmgen_net_outputs* outputs) {
return tvmgen_net___tvm_main__(inputs->x,outputs->y);
}
int32_t tvmgen_net___tvm_main__(int16_t* x_buffer_var, float* y_buffer_var) {
  return tvmgen_net_fused_add(x_buffer_var, y_buffer_var);
}
"""


@pytest.mark.parametrize(
    ("header", "main", "sizes"),
    [
        (HEADER, MAIN, [6, 12]),  # of 18 bytes, 12 remain
        (f"{HEADER}#define TVMGEN_NET_Y_SIZE 12\n", MAIN, [6, 12]),
        (f"{HEADER}#define TVMGEN_NET_Y_SIZE 94023\n", MAIN, []),  # as TVM 0.11 wrote it
        (HEADER.replace("X_SIZE", "Z_SIZE"), MAIN, []),
        (HEADER, MAIN.replace("int16_t*", "void*"), []),
        (HEADER, MAIN.replace("  return", "  tvmgen_net_fused_sub(x_buffer_var);\n  return"), []),  # 18 has more in it
    ],
)
def test_sizes_without_relay_text(header: str, main: str, sizes: list[int]) -> None:
    files = {"host/include/tvmgen_net.h": header, "host/src/net_lib0.c": main}
    codegen = tuple(CodegenFile(Path(path), text.encode()) for path, text in files.items())  # type: ignore[arg-type]
    found = with_interface(Module("net", "aot", (), (MainMemory(0, 0, 18),), (), codegen), "a.tar")
    assert [(each.size, each.shape) for each in (*found.inputs, *found.outputs)] == [(size, None) for size in sizes]


# Hostile text --------------------------------------------------------------------------------------------------------

FRAGMENTS = [
    "%0", "%x", " = ", "\n", "(", ")", ", ", "; ", "let ", ": ", "Tensor[(", "1, 2", "9" * 18, "), int8]", "/* ty=",
    "*/", '"', "reshape(%x, newshape=[-1, 12])", "add(%0, %x)", "nn.batch_flatten(%0)", ".0", "}", "{", "(%0, %0)",
    "nn.pad(%0, pad_width=[[1, 1], [1, 1], [1, 1], [1, 1]])", "qnn.dense(%0, %w)", "[-1, 0]", "newshape=",
    "strides=[0, 0]",
]  # fmt: skip


@settings(max_examples=examples(400))
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join))
def test_any_body_is_accepted(text: str) -> None:
    found = relay_signature(f"def @main({X}) {{\n{text}\n}}\n")
    for each in (found.outputs if found else None) or ():
        assert each.size is None or each.size >= 0


@pytest.mark.parametrize(
    "line",
    [
        *FRAGMENTS,
        "  %0 = add(%0, %0);\n",
        "  %0 = (%0, %0);\n",
        "  %0 = (%0,);\n",
        "  %0 = nn.batch_flatten(%0);\n  %1 = reshape(%0, newshape=[1, -1, 1]);\n  %0 = multiply(%0, %1);\n",
        "/**/",
        f"  {'(' * 1000}%0{')' * 1000}\n",
        "  %x = /* /* ty= */\n",
    ],
)
def test_hostile_text_takes_linear_time(line: str) -> None:
    parameters = f"{X}, %0: Tensor[({', '.join(['9' * 18] * 3)}), int8]"

    def work(size: int) -> None:
        text = line * (size // len(line))
        relay_signature(f"def @main({parameters}) {{\n{text}\n  %0\n}}\n")

    assert_linear(work, 25_000)
