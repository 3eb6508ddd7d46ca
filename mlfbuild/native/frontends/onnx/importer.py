"""Convert a model that was read from a file to a graph, node by node.

    RawModel -> [check operators] -> [expand, fold] -> [find scales] -> for each node: fold | convert -> Graph

Data: ``RawModel`` holds plain nodes, ports and constants. While nodes are imported, a name is one of two things: an
array in ``Constants``, which is known now, or a ``Value``, a tensor of the graph under construction with ONNX's type
and the order in which its dimensions are stored. A constant becomes a tensor only when a converter requests it: those
that are only parameters, such as the shape of a Reshape, are not in the compiled network.

Rules for a node, in this order:

1. If it reads a tensor that was refused, it is skipped: one error is enough for a chain of nodes.
2. An If, Loop or Scan is replaced by the nodes that it runs (``control_flow``), and each follows these rules.
3. If a parameter is computed at run time but the declared shapes determine it (``declared_shapes``), a constant takes
   its place. If they leave a few values, one node is made for each, and the result is selected (``alternatives``).
4. If all inputs are constant, it is computed now (``folding``). The shape of a value is also constant.
5. If a tensor without elements is among its inputs, the result is computed, or the tensor is left out (``empty``).
6. Otherwise the converter of its operator (``operators``) gets an ``OpContext`` and returns a value for each output.

Errors are collected by ``Refusals`` and raised at the end, so that the user sees all unsupported nodes of a model at
once. An error in one output does not stop nodes that do not depend on it.

Example: ``y = Relu(Reshape(x, Concat([1], [-1])))`` with x [2, 3].

    Concat   both inputs are constant      constant [1, -1]
    Reshape  converter in ``movement``     Value of a RESHAPE, [1, 6]; the constant is a parameter, not a tensor
    Relu     converter in ``activations``  Value of a RELU, which the output y names

In a quantised network the first loop over the nodes, backwards, finds the scale that each float32 tensor has later
(``targets``), before any node is converted. The importer does not fuse or reorder nodes: passes over the graph do.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import onnx

from mlfbuild.core import UnsupportedModelError, listed, shown
from mlfbuild.native.frontends.node_budget import MOST_NODES, NodeBudget
from mlfbuild.native.frontends.onnx.affine import Constants, Quantized, check_scales
from mlfbuild.native.frontends.onnx.batch_folding import with_folded_batches
from mlfbuild.native.frontends.onnx.builder import GraphBuilder
from mlfbuild.native.frontends.onnx.control_flow import CONTROL_FLOW, decided, flow
from mlfbuild.native.frontends.onnx.declared_shapes import Choice, Shapes, all_declared, implied, one_of, parameters
from mlfbuild.native.frontends.onnx.dimensions import fits, fixed_shape, shape_text
from mlfbuild.native.frontends.onnx.empty import (
    Operand,
    declared_empty,
    empty_results,
    evaluated,
    inputs_without_elements,
    without_elements,
)
from mlfbuild.native.frontends.onnx.expansion import written_out
from mlfbuild.native.frontends.onnx.float_operators import FloatOperator, float_operator, is_quantized, notes, stretched
from mlfbuild.native.frontends.onnx.folding import fold, is_foldable
from mlfbuild.native.frontends.onnx.inlining import Body, Surroundings
from mlfbuild.native.frontends.onnx.layout import Value, as_onnx
from mlfbuild.native.frontends.onnx.normalise import DOMAINS, ML_DOMAIN
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.frontends.onnx.operators import converter
from mlfbuild.native.frontends.onnx.raw_graph import ELEMENT_TYPES, RawModel, RawNode, RawPort, Size
from mlfbuild.native.frontends.onnx.refused import (
    REFUSED,
    SEE,
    Refusals,
    check_operators,
    is_supported,
    unsupported_operators,
)
from mlfbuild.native.frontends.onnx.tabulation import tabulated
from mlfbuild.native.frontends.onnx.targets import affine_of, sources, targets
from mlfbuild.native.graph import Array, ConstantBudget, DType, Graph, GraphError, OperatorError


def import_graph(raw: RawModel, name: str, budget: ConstantBudget, notes: Sequence[str] = ()) -> Graph:
    """Return ``raw`` as a graph called ``name`` with ``notes``; raises ``GraphError`` and ``UnsupportedModelError``."""
    refusals = Refusals()
    check_operators(raw, refusals)
    with np.errstate(all="ignore"), refusals.all_at_once():  # NaN and infinity are part of the model
        importer = _Importer(raw, budget, refusals)
        graph = tabulated(importer.graph(name))
        return graph.with_notes([*notes, *importer.unread, *importer.notes(graph)])


class _Importer:
    """Converts nodes in order; keeps constants as arrays and other results as values of the graph."""

    def __init__(self, raw: RawModel, budget: ConstantBudget, refusals: Refusals) -> None:
        self._raw = raw
        self._refusals = refusals
        self._budget = budget
        self._builder = GraphBuilder([port.name for port in (*raw.inputs, *raw.outputs)], budget)
        self._constants = Constants({**raw.constants, **inputs_without_elements(raw)})
        self._values: dict[str, Value] = {}
        self._taken = {port.name for port in raw.inputs}.union(raw.constants, *(node.outputs for node in raw.nodes))
        self.unread: list[str] = []
        """Notes about parameters that the network does not read."""
        self._shapes = all_declared(raw.nodes, raw.shapes)
        self._around = Surroundings(
            raw.opset, self._constants, self._taken, self._shape, self._shapes, self.unread,
            NodeBudget(MOST_NODES - raw.expanded),
        )  # fmt: skip
        self._outputs = {port.name for port in raw.outputs}
        self._floats: list[FloatOperator] = []
        self._nodes = with_folded_batches(tuple(self._unknown(raw.nodes)), self._constants, self._outputs)
        self._quantized = is_quantized(self._nodes)
        self._targets = targets(self._nodes, self._constants, self._outputs)
        self._meanings = sources(self._nodes, self._constants)

    def _unknown(self, nodes: Iterable[RawNode]) -> Iterator[RawNode]:
        """Yield the nodes, with integer operators expanded, except nodes that can be computed first.

        A branch that is known to be run takes the place of its If.
        """
        for node in nodes:
            if not is_supported(node):
                self._refusals.add_operator(node, unsupported_operators([node]))
                continue
            with self._refusals.collected(node.outputs):
                yield from self._unknown_parts(node)

    def _unknown_parts(self, node: RawNode) -> Iterator[RawNode]:
        for part in written_out(node, self._constants, self._taken):
            if decided(part, self._constants):
                yield from self._unknown(flow(part, self._around))
            elif not self._fold(part):
                yield part

    def graph(self, name: str) -> Graph:
        """Return the whole network."""
        for port in self._raw.inputs:
            with self._refusals.collected([port.name]):
                self._add_input(port)
        self._import(self._nodes)
        if not self._raw.outputs:
            raise GraphError("the model", "has no outputs")
        self._refusals.check()
        outputs = [(port.name, self._output(port)) for port in self._raw.outputs]
        outputs += self._builder.reported
        return self._builder.graph(name, [port.name for port in self._raw.inputs], outputs)

    def _add_input(self, port: RawPort) -> None:
        """Add an input of the model, in the quantised form that the network gives it."""
        shape, dtype = fixed_shape(port), _type(port)
        if 0 in shape:
            self._builder.input_without_elements(port.name, without_elements(port.name, shape, dtype.numpy))
            self.unread.append(f"input {port.name!r} has no elements")
            return
        affine = self._meanings.get(port.name)
        exact = affine is not None and affine.exact and affine.zero_points.dtype == dtype.numpy
        held = affine.held() if affine is not None and exact else None
        if dtype is DType.UINT8 and held is not None:
            self._values[port.name] = self._builder.unsigned_input(port.name, shape, held)
        else:
            self._values[port.name] = self._builder.input(port.name, shape, dtype, held)

    def _import(self, nodes: Iterable[RawNode]) -> None:
        for node in nodes:
            with self._refusals.collected(node.outputs):
                self._import_node(node)

    def _import_node(self, node: RawNode) -> None:
        if self._refusals.hide(node):
            return
        if node.operator in CONTROL_FLOW and node.domain in DOMAINS:
            self._import(self._unknown(flow(node, self._around)))
        else:
            for whole in self._with_parameter(node):
                if not self._fold(whole) and not self._compute_from_nothing(whole):
                    self._convert(whole)
            self._check_shapes(node)

    def _check_shapes(self, node: RawNode) -> None:
        """Raise ``GraphError`` if the file declares another shape for an inner result of ``node`` than it has."""
        for name in filter(None, node.outputs):
            declared, found = self._raw.shapes.get(name), self._shape(name)
            # Outputs are checked with their names of dimensions in ``_output``.
            if name not in self._outputs and declared is not None and found is not None and declared != found:
                shapes = f"has the shape {list(found)}, but the file declares {list(declared)}"
                raise GraphError(node.place, f"{name!r} {shapes}")

    def _with_parameter(self, node: RawNode) -> Iterator[RawNode]:
        """Yield ``node`` with a constant parameter if that is not constant, but the declared shapes determine it.

        If they leave several values, yield the nodes that compute each and select one.
        """
        for index in parameters(node.operator) if node.domain in DOMAINS else ():
            name = node.inputs[index] if index < len(node.inputs) else ""
            if not name or name in self._constants:
                continue
            shapes = tuple(map(self._shape, node.inputs)), tuple(map(self._shapes.get, node.outputs))
            found = implied(Shapes(node, *shapes), index)
            if isinstance(found, Choice):
                yield from one_of(Body(node, self._around), index, found)
                return
            if found is not None:
                known = self._add_constant(f"{node.outputs[0]}/{name}", found)
                unread = f"{name!r} is not read, because the file declares the shape of the result"
                self.unread.append(f"{node.place}: {unread}")
                node = replace(node, inputs=(*node.inputs[:index], known, *node.inputs[index + 1 :]))
        yield node

    def _shape(self, name: str) -> tuple[int, ...] | None:
        value = self._values.get(name)
        return self._constants.shape(name) if value is None else value.shape

    def _fold(self, node: RawNode) -> bool:
        """Compute ``node`` if all its inputs are constant; return whether they were."""
        known: list[Array | None]
        if node.operator in {"Shape", "Size"} and node.inputs[0] in self._values:
            shape = self._values[node.inputs[0]].shape
            known = [np.broadcast_to(np.int8(0), shape)]  # takes no memory, regardless of the shape
        elif node.operator == "DequantizeLinear":
            return self._keep_quantized(node)
        elif node.written is None and all(name in self._constants for name in node.inputs if name):
            known = [self._constants.get(name) for name in node.inputs]
            if not is_foldable(node, known):
                return False
        else:
            return False
        for name, value in zip(node.outputs, fold(node, known, self._raw.opset, self._budget), strict=True):
            self._constants.add(name, value)
        return True

    def _keep_quantized(self, node: RawNode) -> bool:
        stored = self._constants.get(node.inputs[0])
        affine = None if stored is None else affine_of(node, self._constants, stored.dtype)
        if stored is None or affine is None:
            return False
        check_scales(node.place, affine.scales)
        if not affine.fits(stored.shape):
            raise GraphError(node.place, f"{affine.scales.size} scales do not fit {list(stored.shape)}")
        self._constants.add_quantized(node.outputs[0], Quantized(stored, affine))
        return True

    def _compute_from_nothing(self, node: RawNode) -> bool:
        """Compute ``node`` if it reads tensors without elements and the result does not depend on others."""
        shapes = [self._constants.shape(name) for name in node.inputs if name]
        if node.domain not in DOMAINS or not any(shape is not None and 0 in shape for shape in shapes):
            return False
        if self._vanishes(node):
            return True
        if None in shapes or node.operator == "Constant":
            return False
        results = evaluated(node, self._operands(node), self._raw.opset, self._budget)
        for name, value in zip(filter(None, node.outputs), results, strict=True):
            self._constants.add(name, value)
        return True

    def _vanishes(self, node: RawNode) -> bool:
        """Return whether no result of ``node`` has elements; those without elements become constants."""
        operands = self._operands(node)
        declared = {port.name: port.shape for port in self._raw.outputs}
        results = declared_empty(node, operands, declared) or empty_results(node, operands, self._raw.opset)
        for name, value in zip(node.outputs, results, strict=True):
            if value is not None:
                self._constants.add(name, value)
        return all(value is not None for name, value in zip(node.outputs, results, strict=True) if name)

    def _rest(self, node: RawNode) -> RawNode | None:
        """Return ``node`` without tensors that have no elements; ``None`` if its results have none.

        It is ``node`` itself if such tensors cannot be left out.
        """
        if self._vanishes(node):
            return None
        if node.operator == "Concat":
            inputs = tuple(name for name in node.inputs if 0 not in (self._shape(name) or ()))
            return node if inputs == node.inputs else replace(node, inputs=inputs)
        lengths = self._constants.get(node.inputs[1]) if node.operator == "Split" and len(node.inputs) == 2 else None
        outputs = tuple(name for name in node.outputs if name not in self._constants)
        if lengths is None or outputs == node.outputs:
            return node
        known = self._add_constant(f"{outputs[0]}/lengths", lengths[lengths > 0])
        attributes = {name: value for name, value in node.attributes.items() if name != "num_outputs"}
        return replace(node, inputs=(node.inputs[0], known), outputs=outputs, attributes=attributes)

    def _add_constant(self, name: str, value: Array) -> str:
        """Add a constant called ``name``, or more if that is taken; return its name."""
        while name in self._taken:
            name += "_"
        self._constants.add(name, value)
        return name

    def _operands(self, node: RawNode) -> list[Operand]:
        found: list[Operand] = []
        for name in filter(None, dict.fromkeys(node.inputs)):
            data = self._constants.get(name)
            if data is None:
                value = self._value(node.place, name)
                found.append((name, value.shape, value.dtype.numpy, None))
            else:
                found.append((name, data.shape, data.dtype, data))
        return found

    def _convert(self, node: RawNode) -> None:
        convert = converter(node.operator)
        if convert is None:
            raise UnsupportedModelError(
                "input-not-constant",
                place=node.place,
                reason="the operator is supported only if its inputs are constant",
                hint=REFUSED.get(node.operator, ("", SEE))[1],
            )
        find, name = functools.partial(self._value, node.place), node.outputs[0]
        dequantized = name in self._meanings and name not in self._outputs
        shapes = tuple(map(self._shapes.get, node.outputs))
        op = OpContext(
            node, self._builder, self._raw.opset, self._constants, find, self._targets.get(name), dequantized, shapes,
            self.unread,
        )  # fmt: skip
        # Whatever the converter emits is counted from here, for the notes about operators that run in float32.
        before = self._builder.count
        try:
            self._values.update(zip(node.outputs, convert(op), strict=False))
        except UnsupportedModelError as error:
            rest = self._rest(node) if error.code == "tensor-empty" and node.domain in DOMAINS else node
            if rest is node:
                raise
            if rest is not None:
                self._convert(rest)
            return
        except OperatorError as error:
            raise UnsupportedModelError(
                "operator-variant-unsupported", place=node.place, reason=error.reason, hint=SEE
            ) from None
        found = float_operator(op, *self._builder.nodes_since(before)) if self._quantized else None
        if found is not None:
            self._floats.append(found)

    def notes(self, graph: Graph) -> list[str]:
        """Return what a user should know about ``graph``, made of this model."""
        halves = listed([shown(name) for name in self._raw.halves])
        wide = [f"{halves}: float16 in the model file, float32 in the compiled network"] if halves else []
        filled = [
            f"the output {shown(name)}, which the model file does not have, is the number of rows before those of -1"
            for name, _ in self._builder.reported
        ]
        activations = [affine for name, affine in self._meanings.items() if name not in self._constants]
        return [*wide, *filled, *stretched(activations), *notes(self._floats, graph, self._builder.renamed)]

    def _value(self, place: str, name: str) -> Value:
        if name in self._values:
            return self._values[name]
        quantized = self._constants.quantized(name)
        value = None if quantized is None else self._builder.held_constant(name, quantized)
        self._values[name] = value or self._constant(place, name)
        return self._values[name]

    def _constant(self, place: str, name: str) -> Value:
        data = self._constants.get(name)
        if data is None:
            raise GraphError(place, f"reads {name!r} before anything wrote it (a cycle, or nodes out of order)")
        return Value(self._builder.constant(name, data), as_onnx(data.ndim))

    def _output(self, port: RawPort) -> Value:
        data = self._constants.get(port.name)
        if data is not None and data.size == 0:
            self.unread.append(f"output {port.name!r} has no elements")
            value = self._builder.without_elements(port.name, data)
        else:
            value = self._value("the model's outputs", port.name)
        if port.type in ELEMENT_TYPES and ELEMENT_TYPES[port.type] is not value.dtype:
            raise GraphError(
                f"output {port.name!r}", f"is declared {_type_name(port.type)}, but is {value.dtype.value}"
            )
        if not port.is_map and not fits(self._declared(port), value.shape):
            raise GraphError(
                f"output {port.name!r}", f"is declared {shape_text(port.shape)}, but is {list(value.shape)}"
            )
        return value

    def _declared(self, port: RawPort) -> Sequence[Size]:
        """Return the shape of an output; skl2onnx declares one target for forests that have several."""
        one_target = len(port.shape) == 2 and port.shape[1] == 1
        if one_target and any(node.domain == ML_DOMAIN for node in self._raw.nodes):
            return (port.shape[0], None)
        return port.shape


def _type(port: RawPort) -> DType:
    if port.type not in ELEMENT_TYPES:
        raise UnsupportedModelError(
            "type-unsupported", place=f"input {port.name!r}",
            reason=f"the type {_type_name(port.type)} is not supported", hint="use another type, such as FLOAT or INT8",
        )  # fmt: skip
    return ELEMENT_TYPES[port.type]


def _type_name(code: int) -> str:
    names = onnx.TensorProto.DataType
    return names.Name(code) if code in names.values() else str(code)
