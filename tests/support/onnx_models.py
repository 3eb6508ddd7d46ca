"""ONNX models that tests write, and what ONNX's own evaluator makes of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[Any]
Port = tuple[str, Sequence[int | str | None]]

OPSET = 21


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    constants: Mapping[str, Array] | None = None,
    opset: int = OPSET,
    element: int = TensorProto.FLOAT,
) -> bytes:
    """The file of a model whose inputs and outputs are of the type ``element``."""
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(name, element, shape) for name, shape in inputs],
        [helper.make_tensor_value_info(name, element, shape) for name, shape in outputs],
        [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return bytes(made.SerializeToString())


def reference(data: bytes, feeds: Mapping[str, Array]) -> list[Array]:
    """The outputs that ONNX's evaluator computes."""
    from onnx.reference import ReferenceEvaluator

    return [np.asarray(value) for value in ReferenceEvaluator(onnx.load_from_string(data)).run(None, dict(feeds))]


@dataclass(frozen=True)
class NodeTest:
    """A test of ONNX's own backend: a model of one operator, and what it makes of its inputs."""

    name: str
    model: onnx.ModelProto
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    rtol: float
    atol: float

    @property
    def operators(self) -> tuple[str, ...]:
        return tuple(node.op_type for node in self.model.graph.node)

    def with_parameters(self) -> onnx.ModelProto:
        """The model with all inputs but the first as constants: weights, which ONNX's tests feed."""
        made = onnx.ModelProto()
        made.CopyFrom(self.model)
        for port, value in list(zip(self.model.graph.input, self.inputs, strict=True))[1:]:
            made.graph.initializer.append(numpy_helper.from_array(np.asarray(value), port.name))
        return made


def node_tests() -> Iterable[NodeTest]:
    """ONNX's tests of single operators; those of the same operator written out as a function are left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package computes infinities on purpose
        from onnx.backend.test.case.node import collect_testcases

        cases = collect_testcases(None)
    for case in cases:
        if "_expanded" in case.name or not _plain(case):
            continue
        inputs, outputs = case.data_sets[0]
        yield NodeTest(case.name, case.model, tuple(inputs), tuple(outputs), case.rtol, case.atol)


def _plain(case: Any) -> bool:
    """Whether all inputs and outputs are arrays of numpy's own types."""
    inputs, outputs = case.data_sets[0]
    values = [*inputs, *outputs]
    return all(isinstance(value, np.ndarray | np.generic) and value.dtype.isbuiltin == 1 for value in values)
