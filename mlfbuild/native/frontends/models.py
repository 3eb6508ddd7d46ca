"""Read a model file in the format that its suffix names.

The inputs and outputs that a project names become the network's own state.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from mlfbuild.core import UsageError, listed, read_bytes, require_extra, suggestion
from mlfbuild.native.frontends.choices import Choices
from mlfbuild.native.frontends.errors import naming_file
from mlfbuild.native.frontends.model_files import NetworkFiles, SourceFiles
from mlfbuild.native.graph import ConstantBudget, Graph, State, Tensor


def with_state(graph: Graph, state: Mapping[str, str]) -> Graph:
    """Return ``graph`` with the inputs in ``state`` as its own state, which the outputs replace after each run.

    The state begins with zeros, as numbers of the network. Raises ``UsageError`` if the tensors do not exist or differ.
    """
    if not state:
        return graph
    for kind, names, known in (("input", state.keys(), graph.inputs), ("output", state.values(), graph.outputs)):
        for name in names:
            if name not in known:
                near = suggestion(name, known) or f"; its {kind}s are {listed([*known])}"
                reason = f"the model has no {kind} {name!r}{near}"
                raise UsageError("state-unknown", place=_place(graph, state, name), reason=reason)
    outputs = list(state.values())
    for before, after in state.items():
        if outputs.count(after) > 1:
            reason = f"the output {after!r} is named twice"
            raise UsageError(
                "state-twice", place=_place(graph, state, before), reason=reason, hint="remove one of them"
            )
    return Graph(
        graph.name,
        list(graph.tensors.values()),
        graph.nodes,
        [name for name in graph.inputs if name not in state],
        [name for name in graph.outputs if name not in outputs],
        [*graph.states, *(_state(graph, before, after) for before, after in state.items())],
        graph.notes,
    )


def _place(graph: Graph, state: Mapping[str, str], name: str) -> str:
    before = next((key for key, after in state.items() if name in (key, after)), name)
    return f"{graph.name}: state.{before}"


def _state(graph: Graph, before: str, after: str) -> State:
    old, new = graph.tensor(before), graph.tensor(after)
    if _form(old) != _form(new):
        raise UsageError(
            "state-mismatch",
            place=f"{graph.name}: state.{before}",
            reason=f"the input {_described(old)} and the output {_described(new)} differ",
            hint="name two tensors of the same type, shape and quantisation",
        )
    # The stored value of the number 0.
    zero = 0 if old.quantization is None or old.quantization.per_channel else old.quantization.zero_point
    return State(before, after, np.full(old.shape, zero, old.dtype.numpy))


def _form(tensor: Tensor) -> tuple[object, ...]:
    return tensor.shape, tensor.dtype, tensor.quantization


def _described(tensor: Tensor) -> str:
    if tensor.quantization is None:
        return str(tensor)
    scales, zero_points = tensor.quantization.scales, tensor.quantization.zero_points
    return f"{tensor}, scales {list(scales)}, zero points {list(zero_points)}"


def read_model(path: Path, name: str, choices: Choices | None = None) -> Graph:
    """Read the model file ``path``, and the files with its weights, as a graph called ``name``.

    Raises ``InputFileError`` if the file is missing or not valid in its format, ``UnsupportedModelError`` for an
    operator, type or variant that is not supported, ``UsageError`` for ``choices`` that do not fit the model, and
    ``ToolNotFoundError`` for an .onnx file if the package onnx is not installed.
    """
    return parse_files(SourceFiles(path).read(), name, choices=choices)


def parse_model(data: bytes, name: str, path: Path) -> Graph:
    """Return the graph in ``data``, the content of the file ``path``; raises the errors of ``read_model``."""
    return parse_files(NetworkFiles(path, data), name)


def parse_files(
    files: NetworkFiles, name: str, budget: ConstantBudget | None = None, choices: Choices | None = None
) -> Graph:
    """Return the graph in ``files``; raises the errors of ``read_model``.

    ``budget`` limits the constants that are made in reading; the default is that of files of this size.
    """
    path, chosen = files.path, choices or Choices()
    budget = budget or ConstantBudget.of_file(files.size)
    if path.suffix.lower() == ".onnx":
        if chosen.signature is not None:
            raise UsageError(
                "signature-of-onnx",
                place=f"{name}: signature",
                reason="an ONNX model has no signatures",
                hint="remove signature",
            )
        require_extra("onnx", path, "reading an .onnx file")
        from mlfbuild.native.frontends.onnx import parse_onnx

        graph = parse_onnx(files.data, name, str(path), budget, files.weights, chosen.dims, chosen.numbers)
        return with_state(graph, chosen.state)
    if chosen.constants:
        raise UsageError(
            "constants-of-tflite",
            place=f"{name}: constants.{next(iter(chosen.constants))}",
            reason="inputs of a TensorFlow Lite model cannot be constant",
            hint="remove constants, or fix the input when you convert the model",
        )
    if chosen.dims:
        raise UsageError(
            "dims-of-tflite",
            place=f"{name}: dims.{next(iter(chosen.dims))}",
            reason="dimensions of a TensorFlow Lite model have no names and fixed sizes",
            hint="remove dims",
        )
    from mlfbuild.native.frontends.tflite import parse_tflite

    graph = parse_tflite(files.data, name, str(path), budget, chosen.signature, chosen.accelerator, chosen.absent)
    return with_state(graph, chosen.state)


def declared_ports(path: Path, choices: Choices) -> tuple[list[str], list[str]]:
    """Return the names of the inputs and outputs that the graph of the model file ``path`` will have, in call order.

    Weights are not read, and operators not converted. Those that ``choices`` makes constant or the network's own state
    are left out. Raises ``InputFileError`` for a file that is missing or damaged, ``UsageError`` if it has no such
    signature, and ``ToolNotFoundError`` without the package onnx.
    """
    data = read_bytes(path, "model")
    if path.suffix.lower() == ".onnx":
        require_extra("onnx", path, "reading an .onnx file")
        from mlfbuild.native.frontends.onnx.reader import port_names_of

        with naming_file(str(path), "onnx-malformed"):
            inputs, outputs = port_names_of(data)
    else:
        from mlfbuild.native.frontends.tflite.importer import port_names_in

        with naming_file(str(path), "tflite-malformed"):
            inputs, outputs = port_names_in(data, choices.signature, path.name)
    kept = {*choices.state.values()}
    gone = choices.state.keys() | choices.constants.keys()
    return [name for name in inputs if name not in gone], [name for name in outputs if name not in kept]
