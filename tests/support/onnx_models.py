"""ONNX models that tests write, and what ONNX's own evaluator makes of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class Scale:
    """How integers stand for real numbers; several scales are one for each index of ``axis``."""

    scale: float | Sequence[float]
    zero_point: int
    dtype: str = "uint8"
    axis: int = 0


@dataclass
class QuantizedNetwork:
    """Writes a network as exporters do: float32 operators between pairs of QuantizeLinear and DequantizeLinear."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    outputs: list[onnx.ValueInfoProto] = field(default_factory=list)

    def parameters(self, name: str, scale: Scale) -> list[str]:
        """The names of a new scale and zero point."""
        scales = np.asarray(scale.scale, np.float32)
        self.constants[f"{name}_scale"] = scales
        self.constants[f"{name}_zero_point"] = np.full(scales.shape, scale.zero_point, scale.dtype)
        return [f"{name}_scale", f"{name}_zero_point"]

    def input(self, name: str, shape: Sequence[int], scale: Scale) -> str:
        """An integer input; returns the name of the real numbers that it means."""
        element = helper.np_dtype_to_tensor_dtype(np.dtype(scale.dtype))
        self.inputs.append(helper.make_tensor_value_info(name, element, shape))
        return self.dequantized(name, scale)

    def dequantized(self, name: str, scale: Scale) -> str:
        """The real numbers that the integers ``name`` mean."""
        inputs = [name, *self.parameters(f"{name}_dq", scale)]
        self.nodes.append(helper.make_node("DequantizeLinear", inputs, [f"{name}_real"], axis=scale.axis))
        return f"{name}_real"

    def weights(self, name: str, stored: Array, scale: Scale) -> str:
        """Constant integers; returns the name of the real numbers that they mean."""
        self.constants[name] = stored.astype(scale.dtype)
        return self.dequantized(name, scale)

    def add(self, operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        """A node; returns the name of its output."""
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def quantized(self, name: str, scale: Scale) -> str:
        """The integers that stand for the real numbers ``name``; returns their name."""
        return self.add("QuantizeLinear", [name, *self.parameters(f"{name}_q", scale)], f"{name}_q")

    def requantized(self, name: str, scale: Scale) -> str:
        """The real numbers ``name`` rounded to steps."""
        return self.dequantized(self.quantized(name, scale), scale)

    def output(self, name: str, rank: int, dtype: str = "uint8") -> None:
        """Make ``name`` an output."""
        element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.outputs.append(helper.make_tensor_value_info(name, element, [None] * rank))

    def bytes(self, opset: int = OPSET, domains: Sequence[str] = ()) -> bytes:
        """The file."""
        constants = [numpy_helper.from_array(value, name) for name, value in self.constants.items()]
        graph = helper.make_graph(self.nodes, "graph", self.inputs, self.outputs, constants)
        imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
        return bytes(helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString())
