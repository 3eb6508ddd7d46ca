"""Write ONNX models in tests, and run them in ONNX's evaluator."""

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


def integers(*values: int) -> Array:
    return np.array(values, np.int64)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    constants: Mapping[str, Array] | None = None,
    opset: int = OPSET,
    element: int = TensorProto.FLOAT,
    types: Mapping[str, int] | None = None,
) -> bytes:
    """Return the file of a model whose inputs and outputs have the type ``element``, or that of ``types``."""
    own = types or {}
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(name, own.get(name, element), shape) for name, shape in inputs],
        [helper.make_tensor_value_info(name, own.get(name, element), shape) for name, shape in outputs],
        [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return bytes(made.SerializeToString())


def reference(data: bytes, feeds: Mapping[str, Array]) -> list[Array]:
    """Return the outputs of ONNX's evaluator."""
    from onnx.reference import ReferenceEvaluator

    return [np.asarray(value) for value in ReferenceEvaluator(onnx.load_from_string(data)).run(None, dict(feeds))]


@dataclass(frozen=True)
class NodeTest:
    """A backend test of ONNX: a model of one operator, inputs and outputs."""

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
        """Return the model with all inputs except the first as constants; ONNX's tests feed weights as inputs."""
        made = onnx.ModelProto()
        made.CopyFrom(self.model)
        for port, value in list(zip(self.model.graph.input, self.inputs, strict=True))[1:]:
            made.graph.initializer.append(numpy_helper.from_array(np.asarray(value), port.name))
        return made


def node_tests() -> Iterable[NodeTest]:
    """Yield ONNX's tests of single operators, without those of expanded functions."""
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
    """Return whether all inputs and outputs are arrays of numpy's types."""
    inputs, outputs = case.data_sets[0]
    values = [*inputs, *outputs]
    return all(isinstance(value, np.ndarray | np.generic) and value.dtype.isbuiltin == 1 for value in values)


@dataclass(frozen=True)
class Scale:
    """A quantisation; several scales are one for each index of ``axis``."""

    scale: float | Sequence[float]
    zero_point: int
    dtype: str = "uint8"
    axis: int = 0


@dataclass
class QuantizedNetwork:
    """Writes a network in the form of exporters: float32 operators between QuantizeLinear and DequantizeLinear."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    outputs: list[onnx.ValueInfoProto] = field(default_factory=list)

    def parameters(self, name: str, scale: Scale) -> list[str]:
        """Add a scale and zero point; return their names."""
        scales = np.asarray(scale.scale, np.float32)
        self.constants[f"{name}_scale"] = scales
        self.constants[f"{name}_zero_point"] = np.full(scales.shape, scale.zero_point, scale.dtype)
        return [f"{name}_scale", f"{name}_zero_point"]

    def input(self, name: str, shape: Sequence[int], scale: Scale) -> str:
        """Add an integer input; return the name of its dequantised value."""
        element = helper.np_dtype_to_tensor_dtype(np.dtype(scale.dtype))
        self.inputs.append(helper.make_tensor_value_info(name, element, shape))
        return self.dequantized(name, scale)

    def dequantized(self, name: str, scale: Scale) -> str:
        """Add a DequantizeLinear of the integers ``name``; return the name of its output."""
        inputs = [name, *self.parameters(f"{name}_dq", scale)]
        self.nodes.append(helper.make_node("DequantizeLinear", inputs, [f"{name}_real"], axis=scale.axis))
        return f"{name}_real"

    def weights(self, name: str, stored: Array, scale: Scale) -> str:
        """Add constant integers; return the name of their dequantised value."""
        self.constants[name] = stored.astype(scale.dtype)
        return self.dequantized(name, scale)

    def add(self, operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def quantized(self, name: str, scale: Scale) -> str:
        """Add a QuantizeLinear of the real numbers ``name``; return the name of its output."""
        return self.add("QuantizeLinear", [name, *self.parameters(f"{name}_q", scale)], f"{name}_q")

    def requantized(self, name: str, scale: Scale) -> str:
        """Quantise and dequantise the real numbers ``name``; return the name of the result."""
        return self.dequantized(self.quantized(name, scale), scale)

    def output(self, name: str, rank: int, dtype: str = "uint8") -> None:
        """Make ``name`` an output."""
        element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.outputs.append(helper.make_tensor_value_info(name, element, [None] * rank))

    def bytes(self, opset: int = OPSET, domains: Sequence[str] = ()) -> bytes:
        """Return the file."""
        constants = [numpy_helper.from_array(value, name) for name, value in self.constants.items()]
        graph = helper.make_graph(self.nodes, "graph", self.inputs, self.outputs, constants)
        imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
        return bytes(helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString())
