"""Nodes of ONNX with random inputs, whose results in numpy and as C are compared with those of ONNX's evaluator."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper, numpy_helper

from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph import Graph
from mlfbuild.native.graph.nodes import evaluate
from support.host_c import run_many_on_host
from support.native import compile_network
from support.onnx_models import OPSET, reference

Array = npt.NDArray[Any]
Case = tuple[str, dict[str, Any], dict[str, Array], dict[str, Array]]
"""An operator, its attributes, its inputs, and its constants; the name of an absent constant begins with "no"."""

OPSETS = {"BitCast": 26, "RoiAlign": 22}


def file_of(case: Case, shape: Sequence[int | None], element: int = TensorProto.FLOAT) -> bytes:
    """Return the model of ``case``, whose output has a ``shape``."""
    operator, attributes, inputs, constants = case
    opset = helper.make_opsetid("", attributes.get("opset", OPSETS.get(operator, OPSET)))
    own = {name: value for name, value in attributes.items() if name != "opset"}
    names = [*inputs, *("" if name.startswith("no") else name for name in constants)]
    node = helper.make_node(operator, names, ["y"], **own)
    graph = helper.make_graph(
        [node], "graph",
        [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
         for name, value in inputs.items()],
        [helper.make_tensor_value_info("y", element, shape)],
        [numpy_helper.from_array(value, name) for name, value in constants.items() if name in names],
    )  # fmt: skip
    return bytes(helper.make_model(graph, opset_imports=[opset], ir_version=8).SerializeToString())


def written(case: Case) -> tuple[bytes, Array]:
    """Return the model of ``case`` and the result of ONNX's evaluator."""
    element = case[1].get("to", TensorProto.FLOAT)
    (wanted,) = reference(file_of(case, [], element), case[2])
    return file_of(case, wanted.shape, element), wanted


def parsed(data: bytes, name: str = "net") -> Graph:
    """Return the graph of a model."""
    return parse_onnx(data, name, f"{name}.onnx")


def check(cases: Mapping[str, Case]) -> None:
    """Compare all ``cases`` with ONNX's evaluator; their C is one program."""
    jobs, expected = [], []
    for number, (name, case) in enumerate(cases.items()):
        data, wanted = written(case)
        graph = parsed(data, f"net{number}")
        (result,) = (evaluate(graph, case[2])[name] for name in graph.outputs)
        _check_close(name, result, wanted)
        library = compile_network(graph)
        jobs.append((library, library.modules[0], [*case[2].values()]))
        expected.append(wanted)
    for name, (made, *_), wanted in zip(cases, run_many_on_host(jobs), expected, strict=True):
        _check_close(name, made, wanted)


def _check_close(name: str, made: Array, wanted: Array) -> None:
    made = made.reshape(wanted.shape)
    assert made.dtype == wanted.dtype
    if wanted.dtype.kind == "f" and not name.startswith("bits"):
        np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max(), err_msg=name)
    else:
        np.testing.assert_array_equal(made, wanted, err_msg=name)
