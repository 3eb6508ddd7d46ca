"""A module of the packed interface as a graph of one call: its entry function, with all inputs and outputs."""

from __future__ import annotations

from mlfbuild.library import Module, TensorInfo
from mlfbuild.library.data_type import element_size
from mlfbuild.library.graph_json import CALL, INPUT, ExecutorGraph, GraphNode, NodeEntry


def packed_name(module: Module) -> str:
    """Return what the module's packed entry function is called in firmware, where the C interface has its name."""
    return f"mlf_{module.name}_packed_run"


def packed_graph(module: Module) -> ExecutorGraph:
    """Return the graph that calls the entry function of ``module``."""
    tensors = (*module.inputs, *module.outputs)
    arguments = tuple(GraphNode(INPUT, tensor.name) for tensor in module.inputs)
    count = len(arguments)
    call = GraphNode(CALL, "run", tuple(NodeEntry(at) for at in range(count)), (("func_name", packed_name(module)),))
    return ExecutorGraph(
        nodes=(*arguments, call),
        arg_nodes=tuple(range(count)),
        heads=tuple(NodeEntry(count, at) for at in range(len(module.outputs))),
        node_row_ptr=(*range(count + 1), len(tensors)),
        shape=tuple(_shape(tensor) for tensor in tensors),
        dltype=tuple(tensor.dtype for tensor in tensors),
        storage_id=tuple(range(len(tensors))),
    )


def _shape(tensor: TensorInfo) -> tuple[int, ...]:
    """Return the shape, that of a vector where only the size is known."""
    return (tensor.size // (element_size(tensor.dtype) or 1),) if tensor.shape is None else tensor.shape
