"""Attributes of operators and quantisation of tensors, for the page of a report.

Archives do not record them, because builds do not need them. They are read from the model's file again, and belong to
the operators and tensors of the archive that have the same names. A chain of operators has the attributes of each.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlfbuild.core import MlfError
from mlfbuild.jobs import CompileJob
from mlfbuild.native import Graph, Node, Tensor, read_network

_MODEL_FILES = {".tflite", ".onnx"}
_ROLES = ("input", "weights", "bias")


@dataclass(frozen=True)
class SourceFacts:
    """Facts of a model's file as JSON values, by name."""

    nodes: Mapping[str, Mapping[str, Any]]
    tensors: Mapping[str, Mapping[str, Any]]

    def of_operator(self, name: str) -> list[Mapping[str, Any]]:
        """Return the nodes of an operator, which may be a chain: its name joins theirs."""
        return [self.nodes[part] for part in name.split(" + ") if part in self.nodes]


def source_facts(job: CompileJob) -> SourceFacts:
    """Return the facts of the model's file; none if the source is an archive or cannot be read any more."""
    source = job.request.source
    if source.suffix.lower() in _MODEL_FILES:
        # The report is complete without these facts, and the model file may be gone.
        with contextlib.suppress(MlfError):
            graph, _ = read_network(job.request)
            nodes = {node.name: _node(graph, node) for node in graph.nodes}
            tensors = {name: _quantization(graph.tensor(name)) for name in graph.tensors}
            return SourceFacts(nodes, {name: facts for name, facts in tensors.items() if facts})
    return SourceFacts({}, {})


def _node(graph: Graph, node: Node) -> dict[str, Any]:
    inputs = graph.inputs_of(node).present
    tensors = [*_operands(inputs), *(("output", tensor) for tensor in graph.outputs_of(node))]
    return {
        "name": node.name,
        "operator": node.operator.name,
        "attributes": dict(_attributes(node, inputs)),
        "tensors": [
            {"role": role, "name": tensor.name, "dtype": tensor.dtype.value, **_quantization(tensor)}
            for role, tensor in tensors
        ],
    }


def _operands(inputs: Sequence[Tensor]) -> Iterator[tuple[str, Tensor]]:
    for index, tensor in enumerate(inputs):
        yield (_ROLES[index] if tensor.constant and index < len(_ROLES) else "input"), tensor


def _attributes(node: Node, inputs: Sequence[Tensor]) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that have a value; a filter's size comes from its weights."""
    fields = {field.name: getattr(node.operator, field.name) for field in dataclasses.fields(node.operator)}
    kernel = fields.pop("filter", None)
    if kernel is None and "stride" in fields and len(inputs) > 1 and len(inputs[1].shape) == 4:
        kernel = inputs[1].shape[1:3]
    if kernel is not None:
        yield "kernel", list(kernel)
    for name, value in fields.items():
        shown = _json(value)
        if shown is not None and shown is not False:
            yield name, shown


def _json(value: Any) -> Any:
    """Return a number, a text or nested lists of them; ``None`` for other values, such as tables."""
    if isinstance(value, enum.Enum):
        return value.name.lower()
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        parts = [_json(part) for part in value]
        return None if None in parts else parts
    return None


def _quantization(tensor: Tensor) -> dict[str, Any]:
    """Return the least and the greatest scale and zero point, and the number of channels."""
    found = tensor.quantization
    if found is None:
        return {}
    return {
        "scale": [min(found.scales), max(found.scales)],
        "zero_point": [min(found.zero_points), max(found.zero_points)],
        "channels": len(found.scales),
    }
