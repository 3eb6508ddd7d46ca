"""Quantise an .onnx file with ONNX Runtime: pairs of QuantizeLinear and DequantizeLinear (QDQ) around its operators.

The library first infers shapes and folds what can be folded, such as a batch normalisation into the convolution before
it. At the ends, the pairs are removed, so that inputs and outputs are integers.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import onnx
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantType, quantize_static
from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry
from onnxruntime.quantization.shape_inference import quant_pre_process

from mlfbuild.core import write_atomic
from mlfbuild.quantization.engine_request import EngineRequest, Node

_QUANTIZE, _DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
_STRIDE = 16
"""Cases that the library keeps in memory with all their tensors."""


def quantize_file(request: EngineRequest) -> dict[str, str]:
    """Write the quantised file; return why operators stay in float32, by output. Raises ``UsageError`` for names."""
    logging.disable(logging.WARNING)
    folder, keys = request.out.parent, request.keys
    named, prepared, made = (folder / f"{stage}.onnx" for stage in ("named", "prepared", "made"))
    source = _with_node_names(onnx.load(request.source))
    onnx.save(source, named)
    quant_pre_process(named, prepared, skip_symbolic_shape=True)
    nodes = list(_nodes(source.graph, onnx.load(prepared).graph))
    kept = request.kept(nodes)
    wide = keys.activations == "int16"
    quantize_static(
        prepared,
        made,
        _Cases(request),
        per_channel=keys.per_channel,
        activation_type=QuantType.QInt16 if wide else QuantType.QInt8,
        weight_type=QuantType.QInt8,
        nodes_to_exclude=[names[0] for _, names in kept],
        calibrate_method=request.method(methods()),
        extra_options={
            "ForceQuantizeNoInputCheck": True,  # also a pool at the input
            "ActivationSymmetric": wide,
            "CalibStridedMinMax": _stride(request.cases),
        },
    )
    model = onnx.load(made)
    if keys.io_type != "float32":
        _use_integers_at_ends(model)
    write_atomic(request.out, model.SerializeToString(deterministic=True))
    return request.reasons(nodes, {*QDQRegistry, *QLinearOpsRegistry}, "onnxruntime")


def _with_node_names(model: Any) -> Any:
    """Give names to the nodes that have none: the library excludes nodes by name."""
    taken = {node.name for node in model.graph.node}
    for index, node in enumerate(model.graph.node):
        if not node.name:
            node.name = next(name for name in (f"{node.op_type}_{index}", f"node {index}") if name not in taken)
    return model


def _nodes(source: Any, prepared: Any) -> Iterator[Node]:
    """Yield the kind and the names of each prepared node, with those of the nodes that were folded into it."""
    readers: dict[str, list[Any]] = defaultdict(list)
    for node in source.node:
        for name in node.input:
            readers[name].append(node)
    folded: dict[str, list[str]] = defaultdict(list)
    left = {name for node in prepared.node for name in node.output}
    for node in source.node:
        last = node
        while last.output[0] not in left and len(readers[last.output[0]]) == 1:
            last = readers[last.output[0]][0]
        if last is not node:
            folded[last.output[0]] += node.output
    for node in prepared.node:
        yield node.op_type, (node.name, *node.output, *folded[node.output[0]])


def methods() -> dict[str, Any]:
    """Return the library's methods by the words of project files."""
    # This one is for weights in float8.
    return {each.name.lower(): each for each in CalibrationMethod if each is not CalibrationMethod.Distribution}


def _stride(cases: int) -> int:
    """Return the most cases at a time that the number of all cases is a multiple of, as the library demands."""
    return next(size for size in range(_STRIDE, 0, -1) if cases % size == 0)


class _Cases(CalibrationDataReader):  # type: ignore[misc]
    """The cases as the library asks for them: it announces each range of them, and then takes them one by one."""

    def __init__(self, request: EngineRequest) -> None:
        self._request = request
        self._feeds: Iterator[tuple[Any, ...]] = request.feeds()
        self._names = [tensor.source_name or tensor.name for tensor in request.inputs]
        self._left = 0

    def __len__(self) -> int:
        return self._request.cases

    def set_range(self, start_index: int, end_index: int) -> None:
        """Begin the next range, which follows the one before."""
        self._left = end_index - start_index

    def get_next(self) -> dict[str, Any] | None:
        """Return the inputs of the next case, by name; ``None`` after the last one of the range."""
        if self._left == 0:
            return None
        self._left -= 1
        return dict(zip(self._names, next(self._feeds), strict=True))


def _use_integers_at_ends(model: Any) -> None:
    """Remove the first QuantizeLinear of each input and the last DequantizeLinear of each output."""
    graph = model.graph
    makers = {name: node for node in graph.node for name in node.output}
    types = {each.name: each.data_type for each in graph.initializer}
    for port in graph.input:
        readers = [node for node in graph.node if port.name in node.input]
        if len(readers) == 1 and readers[0].op_type == _QUANTIZE:
            _rename(graph, readers[0].output[0], port.name)
            graph.node.remove(readers[0])
            port.type.tensor_type.elem_type = types[readers[0].input[2]]
    for port in graph.output:
        last = makers[port.name]
        if last.op_type == _DEQUANTIZE and last.input[0] in makers:
            # Nodes that read the real number, which is no output any more, do it by another name.
            real = f"{port.name}_real"
            _rename(graph, port.name, real)
            _rename(graph, last.input[0], port.name)
            port.type.tensor_type.elem_type = types[last.input[2]]
            if not any(real in node.input for node in graph.node):
                graph.node.remove(last)


def _rename(graph: Any, old: str, new: str) -> None:
    for node in graph.node:
        for names in (node.input, node.output):
            for index, name in enumerate(names):
                if name == old:
                    names[index] = new
