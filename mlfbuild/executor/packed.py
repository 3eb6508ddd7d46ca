"""Plan calls of packed functions: the entry of a module with the packed interface, or the functions of an operator.

Each plan has one call, with all inputs and outputs in the caller's buffers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlfbuild.core import InputFileError, quoted
from mlfbuild.executor.graph_plan import Area, GraphPlan, PackedCall, PlannedTensor, TensorPlace
from mlfbuild.executor.kernels import Kernels
from mlfbuild.library import Module, TensorInfo, element_size, parse_dtype, symbol_prefix
from mlfbuild.library.graph_json import ExecutorGraph

_FIRST_ENTRY = "tvm__run_func"
"""The function that the descriptor ``tvm_model_t network`` points to in versions 1 and 2 of the format."""


def packed_name(module: Module) -> str:
    """Return the unique name that the packed function of ``module`` gets in firmware.

    Models in one image must not share global symbols, and before TVM 0.8 all packed functions have one name.
    """
    return f"mlf_{module.name}_packed_run"


def packed_entry(kernels: Kernels) -> dict[str, str]:
    """Return the new names of the packed entry function of a module and of its descriptor.

    Before TVM 0.8, these names do not contain the module's name. Raises ``CheckFailedError`` if the module has no entry
    function.
    """
    name = packed_name(kernels.module)
    if kernels.defines(_FIRST_ENTRY):
        return {_FIRST_ENTRY: name, "network": f"mlf_{kernels.module.name}_network"}
    entry = f"{symbol_prefix(kernels.module.name)}_run"
    kernels.require(entry, "firmware")
    return {entry: name}


def packed_plan(functions: Sequence[Module]) -> GraphPlan:
    """Return the plan with one call for the packed function of each of ``functions``, in order.

    Its arguments are the module's inputs, then its outputs; an operator's are in the order of its buffers. Raises
    ``InputFileError`` for an argument whose type TVM does not have.
    """
    arguments = [list(_arguments(function)) for function in functions]
    for function, its in zip(functions, arguments, strict=True):
        _check_types(function, [tensor for tensor, _ in its])
    tensors = [tensor for its in arguments for tensor, _ in its]
    # A graph without nodes: the static executor needs only shapes and types of the tensors, which it passes as
    # DLTensor.
    graph = ExecutorGraph(
        nodes=(),
        arg_nodes=(),
        heads=(),
        node_row_ptr=(0,),
        shape=tuple(_shape(tensor) for tensor in tensors),
        dltype=tuple(tensor.dtype for tensor in tensors),
        storage_id=tuple(range(len(tensors))),
    )
    entries = iter(range(len(tensors)))
    calls = (
        PackedCall(packed_name(function), tuple(PlannedTensor(next(entries), place) for _, place in its))
        for function, its in zip(functions, arguments, strict=True)
    )
    return GraphPlan(graph, tuple(calls), 0)


def _arguments(function: Module) -> Iterator[tuple[TensorInfo, TensorPlace]]:
    both = ((Area.INPUT, function.inputs), (Area.OUTPUT, function.outputs))
    found = [(tensor, TensorPlace(area, at)) for area, tensors in both for at, tensor in enumerate(tensors)]
    # An operator's arguments may be in any order, such as an output before an input; a network's are not.
    if function.buffers:
        order = [buffer.input_binding for buffer in function.buffers]
        found.sort(key=lambda argument: order.index(argument[0].name))
    return iter(found)


def _check_types(function: Module, tensors: Sequence[TensorInfo]) -> None:
    for tensor in tensors:
        if parse_dtype(tensor.dtype) is None:
            raise InputFileError(
                "tensor-type-unknown",
                place=function.name,
                reason=f"{quoted(tensor.name)} has the type {quoted(tensor.dtype, 40)}, which TVM does not have",
            )


def _shape(tensor: TensorInfo) -> tuple[int, ...]:
    """Return the shape; if only the size is known, that of a vector."""
    return (tensor.size // (element_size(tensor.dtype) or 1),) if tensor.shape is None else tensor.shape
