"""The order in which a module takes its inputs and outputs, where an archive shows it.

``metadata.json`` as TVM writes it sorts tensors by name. The order of the arguments stands in the C interface's header
(the members of two structs) or, for the graph executor, in the graph.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from mlfbuild.library import Module, TensorInfo, text_of
from mlfbuild.library.graph_json import graph_arguments
from mlfbuild.library.names import sanitize_name

_MEMBER = re.compile(r"void\s*\*\s*(\w+)\s*;")
_NUMBERED = re.compile(r"output(\d+)")


def in_call_order(module: Module, where: str) -> Module:
    """Return ``module`` with the inputs and outputs of its entry function in call order.

    They keep the order of the metadata where the module shows no other, as one with TVM's packed interface. ``where``
    names the archive in messages. Raises ``InputFileError`` where the module's graph is not one.
    """
    graph = module.graph_json
    arguments = [] if graph is None else graph_arguments(bytes(graph), f"{where}: graph {module.name}")
    names = {tensor.name for tensor in module.inputs}
    inputs = _reordered(module.inputs, [name for name in arguments if name in names])
    outputs = _by_number(module.outputs)
    header = next((file for file in module.codegen if file.path.name == f"tvmgen_{module.name.lower()}.h"), None)
    if header is not None:
        text = text_of(header.content)
        inputs = _reordered(inputs, _struct_members(text, f"tvmgen_{module.name.lower()}_inputs"))
        outputs = _reordered(outputs, _struct_members(text, f"tvmgen_{module.name.lower()}_outputs"))
    return replace(module, inputs=inputs, outputs=outputs)


def _by_number(outputs: tuple[TensorInfo, ...]) -> tuple[TensorInfo, ...]:
    """Sort ``output0`` to ``output10`` as numbers; other names stay as they are."""
    numbers = [_NUMBERED.fullmatch(tensor.name) for tensor in outputs]
    if not all(numbers):
        return outputs
    return tuple(sorted(outputs, key=lambda tensor: (len(tensor.name), tensor.name)))


def _reordered(tensors: tuple[TensorInfo, ...], names: Sequence[str]) -> tuple[TensorInfo, ...]:
    """Return ``tensors`` in the order of ``names``, which may be sanitised, if that names each of them once."""
    by_name = {sanitize_name(tensor.name): tensor for tensor in tensors}
    wanted = [sanitize_name(name) for name in names]
    if sorted(wanted) != sorted(by_name) or len(by_name) != len(tensors):
        return tensors
    return tuple(by_name[name] for name in wanted)


def _struct_members(header: str, struct: str) -> list[str]:
    body = re.search(rf"struct\s+{re.escape(struct)}\s*\{{([^}}]*)\}}", header)
    return _MEMBER.findall(body[1]) if body else []
