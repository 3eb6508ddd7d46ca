"""The graph executor's JSON as a typed value.

A graph is a list of *nodes*; each has one or more outputs, called *entries*, which are numbered through the graph:
``entry = node_row_ptr[node] + index``. Shapes, types and storage ids are lists with one item per entry.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from mlfbuild.library.data_type import tensor_size
from mlfbuild.library.value import TensorInfo

INPUT = "null"
"""``op`` of a node that is an input or a parameter."""
CALL = "tvm_op"
"""``op`` of a node that calls a function."""


@dataclass(frozen=True)
class NodeEntry:
    """One output of a node: ``[node, index, version]``."""

    node: int
    index: int = 0
    version: int = 0


@dataclass(frozen=True)
class GraphNode:
    """An input or a parameter (``op`` is ``null``), or a call (``tvm_op``)."""

    op: str
    name: str
    inputs: tuple[NodeEntry, ...] = ()
    attrs: tuple[tuple[str, str], ...] = ()
    """Attributes of a call in the order of the file: ``func_name``, ``num_inputs``, ``num_outputs``, and others."""
    control_deps: tuple[int, ...] = ()
    """Nodes that must run before this one; TVM's code generator writes none."""
    others: tuple[tuple[str, str], ...] = ()
    """Members that TVM's readers do not know: (name, JSON text)."""

    def attr(self, name: str) -> str | None:
        """Return the attribute ``name``, or ``None``."""
        return next((value for key, value in self.attrs if key == name), None)

    @property
    def function(self) -> str:
        """The function of a call: a symbol, ``__nop`` or ``__copy``; empty for an input."""
        return self.attr("func_name") or ""


@dataclass(frozen=True)
class ExecutorGraph:
    """A valid graph: all indices are in range, and lists by entry have one item per entry."""

    nodes: tuple[GraphNode, ...]
    arg_nodes: tuple[int, ...]
    """Inputs and parameters, in the executor's order."""
    heads: tuple[NodeEntry, ...]
    """Outputs."""
    node_row_ptr: tuple[int, ...]
    shape: tuple[tuple[int, ...], ...]
    dltype: tuple[str, ...]
    storage_id: tuple[int, ...]
    device_index: tuple[int, ...] | None = None
    """DLDeviceType by entry; ``None`` if the graph does not record it."""
    storage_scope: tuple[str, ...] | None = None
    """Memory scope by entry; TVM writes it only if one is not ``global``."""
    other_attrs: tuple[tuple[str, str], ...] = ()
    """Other attributes of the graph: (name, JSON text)."""
    others: tuple[tuple[str, str], ...] = ()
    """Other members of the file, such as ``metadata``: (name, JSON text)."""
    attr_order: tuple[str, ...] = ()
    """Names of the attributes in the order of the file; TVM writes them in the order of a hash table."""

    def entry(self, output: NodeEntry) -> int:
        """Return the number of the entry ``output``."""
        return self.node_row_ptr[output.node] + output.index

    def tensor(self, entry: int, name: str) -> TensorInfo:
        """Return type, size and shape of ``entry`` as a tensor called ``name``.

        The size is in bytes of a compact tensor. It is 0 if TVM does not know the type, which ``parse_graph``
        refuses.
        """
        shape, dtype = self.shape[entry], self.dltype[entry]
        return TensorInfo(name, dtype, tensor_size(dtype, shape) or 0, shape)

    @property
    def arguments(self) -> tuple[TensorInfo, ...]:
        """Inputs and parameters, in the executor's order."""
        return tuple(self.tensor(self.node_row_ptr[node], self.nodes[node].name) for node in self.arg_nodes)

    def inputs(self, params: Container[str]) -> tuple[TensorInfo, ...]:
        """Return the arguments that are not in ``params``: the inputs that the caller sets.

        ``params`` are the names of the parameters of the module. The order is that of the executor,
        ``arg_nodes``.
        """
        return tuple(tensor for tensor in self.arguments if tensor.name not in params)

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """Outputs in order. Graphs have no names for them; TVM's metadata calls them ``output`` or ``output<i>``."""
        entries = [self.entry(head) for head in self.heads]
        names = ["output"] if len(entries) == 1 else [f"output{index}" for index in range(len(entries))]
        return tuple(self.tensor(entry, name) for entry, name in zip(entries, names, strict=True))


def storage_bindings(graph: ExecutorGraph) -> dict[int, str]:
    """Return the input or parameter whose value each storage id holds first, by id; ids of results are left out.

    That is what the storage holds before the first call. TVM's metadata calls it ``input_binding``.
    """
    owners = {graph.node_row_ptr[node]: graph.nodes[node].name for node in graph.arg_nodes}
    first: dict[int, int] = {}
    for entry, storage in enumerate(graph.storage_id):
        first.setdefault(storage, entry)
    return {storage: owners[entry] for storage, entry in first.items() if entry in owners}


def storage_sizes(graph: ExecutorGraph) -> dict[int, int]:
    """Return the bytes that the executor allocates for each storage id, by id.

    If several entries share an id, the largest counts. The bytes of one element are rounded up; the bytes of a storage
    are not, although TVM's runtimes round them up to a multiple of four.
    """
    sizes: dict[int, int] = {}
    for entry, storage in enumerate(graph.storage_id):
        size = graph.tensor(entry, "").size
        sizes[storage] = max(sizes.get(storage, 0), size)
    return dict(sorted(sizes.items()))
