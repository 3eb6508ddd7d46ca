"""Operators of a program and their C functions."""

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from mlfbuild.archive.load import open_archive
from mlfbuild.archive.program import GRAPH, RELAY, TIR, code_functions, function_text, program_operators
from mlfbuild.archive.program.operators import RelayCall, functions_of_calls, relay_calls
from mlfbuild.library import Module
from support.native import compile_bytes
from support.tvm_archives import TVM_ARCHIVES

TEXT = """\
#[version = "0.0.5"]
def @main(%x: Tensor[(1, 2), float32] /* ty=Tensor[(1, 2)] add(%y) */, %w: int8) -> Tensor[(1, 2), float32] {
  %0 = nn.conv2d(%x, meta[relay.Constant][0], padding=[1, 1], name="nn.relu(%0)") /* ty=
    add(%a) */;
  let %v: int8 = qnn.dense(nn.relu(%0), %w);
  %1 = fn (%p: int8, Primitive=1) {
    clip(%p)
  };
  %2 = %1(%v);
  @tvmgen_net_other_main_0(%2)
}

def @tvmgen_net_other_main_0(%i: int8) {
  abs(%i)
}
"""


@cache
def modules(shared: Path, name: str) -> tuple[Module, ...]:
    return open_archive(shared / f"archives/{name}.tar").modules


def test_calls_of_relay_text() -> None:
    assert [(call.name, call.line, call.inside) for call in relay_calls(TEXT)] == [
        ("nn.conv2d", 3, ""), ("qnn.dense", 5, ""), ("nn.relu", 5, ""), ("clip", 7, ""),
        ("@tvmgen_net_other_main_0", 10, ""), ("abs", 14, "tvmgen_net_other_main_0"),
    ]  # fmt: skip


def test_functions_of_calls_are_found_by_tvms_names() -> None:
    functions = [
        "tvmgen_net_fused_nn_contrib_conv2d_NCHWc_add_nn_relu", "tvmgen_net_fused_nn_dense",
        "tvmgen_net_fused_nn_dense_1", "tvmgen_net_fused_nn_bias_add", "tvmgen_net_other_main_0", "relu",
    ]  # fmt: skip
    names = ["nn.conv2d", "nn.relu", "add", "nn.bias_add", "qnn.dense", "@tvmgen_net_other_main_0", "abs", "@missing"]
    calls = [RelayCall(name, line, "") for line, name in enumerate(names)]
    inside = RelayCall("add", 9, "tvmgen_net_other_main_0")
    found = functions_of_calls([*calls, inside], functions)
    assert [found[call] for call in calls] == [
        (functions[0],), (functions[0],), (functions[0],), (functions[3],), (functions[1], functions[2]),
        (functions[4],), (), (),
    ]  # fmt: skip
    assert found[inside] == (functions[4],)


@given(st.text('@%/*"\\(){}[] def.nn_add\n', max_size=80))
def test_any_text_is_read(text: str) -> None:
    calls = list(relay_calls(text))
    assert all(1 <= call.line <= text.count("\n") + 1 for call in calls)
    functions_of_calls(calls, ["tvmgen_fused_nn_add"])


@pytest.mark.parametrize("piece", ["/*", '"', "a(", "_" * 50 + "(", "def @", '"\\'])
def test_long_texts_are_read_quickly(piece: str) -> None:
    calls = list(relay_calls(piece * 20_000))
    functions_of_calls(calls[:1000], [f"tvmgen_fused_{'a_' * 1000}{number}" for number in range(20)])


@pytest.mark.parametrize("name", TVM_ARCHIVES)
def test_every_call_of_a_graph_has_its_definition(name: str, shared: Path) -> None:
    for module in modules(shared, name):
        functions = code_functions(module, {})
        for part in (GRAPH,) if module.graph_json is not None else (TIR,) if module.tir else ():
            operators = program_operators(module, part, functions)
            assert operators
            for operator in operators:
                (function,) = operator.functions
                assert function.file or function.name in {"__nop", "__copy"}
                assert operator.inputs
                text = function_text(module, function)
                assert function.line is None or (text and f"{function.name}(".encode() in text)


def test_operators_of_the_native_compiler_have_their_functions() -> None:
    model = Path(__file__).parents[2] / "examples/digits/models/digits.tflite"
    (module,) = compile_bytes(model.read_bytes(), "digits").modules
    functions = code_functions(module, {})
    operators = program_operators(module, RELAY, functions)
    assert operators[0].name == "conv (CONV_2D)"
    for operator in operators:
        assert all(function.file == "codegen/host/src/digits_lib0.c" for function in operator.functions)
    assert all(operator.outputs and operator.functions for operator in operators)
