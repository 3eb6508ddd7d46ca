"""The graph executor's JSON as a typed value.

A graph is a list of *nodes*; each has one or more outputs, the *entries*, which are numbered through the graph:
``entry = node_row_ptr[node] + index``. Shapes, types and storage ids stand by entry.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from mlfbuild.library.data_type import tensor_size
from mlfbuild.library.memory import TensorInfo

INPUT = "null"
"""``op`` of a node that the caller or a parameter fills."""
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
    """Attributes of a call as they stand in the file: ``func_name``, ``num_inputs``, ``num_outputs``, and others."""
    control_deps: tuple[int, ...] = ()
    """Nodes that must have run before; TVM's code generator writes none."""
    others: tuple[tuple[str, str], ...] = ()
    """Members that no reader of TVM knows: (name, JSON text)."""

    def attr(self, name: str) -> str | None:
        """Return the attribute ``name``, ``None`` where there is none."""
        return next((value for key, value in self.attrs if key == name), None)

    @property
    def function(self) -> str:
        """The symbol that a call calls, ``__nop`` or ``__copy``; empty for an input."""
        return self.attr("func_name") or ""


@dataclass(frozen=True)
class ExecutorGraph:
    """A sound graph: indices point at what exists, lists have as many items as there are entries."""

    nodes: tuple[GraphNode, ...]
    arg_nodes: tuple[int, ...]
    """Inputs and parameters in the order in which the executor numbers them."""
    heads: tuple[NodeEntry, ...]
    """Outputs."""
    node_row_ptr: tuple[int, ...]
    shape: tuple[tuple[int, ...], ...]
    dltype: tuple[str, ...]
    storage_id: tuple[int, ...]
    device_index: tuple[int, ...] | None = None
    """DLDeviceType by entry; ``None`` where the graph does not say."""
    storage_scope: tuple[str, ...] | None = None
    """Memory scope by entry; TVM writes it only where one is not ``global``."""
    other_attrs: tuple[tuple[str, str], ...] = ()
    """Attributes of the graph that are none of the above: (name, JSON text)."""
    others: tuple[tuple[str, str], ...] = ()
    """Members of the file that are none of the above, as ``metadata``: (name, JSON text)."""
    attr_order: tuple[str, ...] = ()
    """Names of the attributes as they stand in the file: TVM's come out of a hash table."""

    def entry(self, output: NodeEntry) -> int:
        """Return the number of the entry that ``output`` names."""
        return self.node_row_ptr[output.node] + output.index

    def tensor(self, entry: int, name: str) -> TensorInfo:
        """Return what the graph knows of ``entry``, under the name ``name``."""
        shape, dtype = self.shape[entry], self.dltype[entry]
        return TensorInfo(name, dtype, tensor_size(dtype, shape) or 0, shape)

    @property
    def arguments(self) -> tuple[TensorInfo, ...]:
        """Inputs and parameters, in the executor's order."""
        return tuple(self.tensor(self.node_row_ptr[node], self.nodes[node].name) for node in self.arg_nodes)

    def inputs(self, params: Container[str]) -> tuple[TensorInfo, ...]:
        """Return the arguments that are none of ``params``: what the caller sets."""
        return tuple(tensor for tensor in self.arguments if tensor.name not in params)

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """Outputs in order. A graph does not name them; TVM's metadata calls them ``output`` or ``output<i>``."""
        entries = [self.entry(head) for head in self.heads]
        names = ["output"] if len(entries) == 1 else [f"output{index}" for index in range(len(entries))]
        return tuple(self.tensor(entry, name) for entry, name in zip(entries, names, strict=True))


def storage_sizes(graph: ExecutorGraph) -> dict[int, int]:
    """Return the bytes that the executor allocates for each storage id, by id.

    An id that several entries share is as large as the largest of them. Bytes of one element are rounded up, bytes of
    a storage are not; TVM's runtimes round those up to a multiple of four.
    """
    sizes: dict[int, int] = {}
    for entry, storage in enumerate(graph.storage_id):
        size = graph.tensor(entry, "").size
        sizes[storage] = max(sizes.get(storage, 0), size)
    return dict(sorted(sizes.items()))
