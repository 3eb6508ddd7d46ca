"""Make packed functions, parameters and the nodes of an executor graph of the lowered calls of a network.

Arrays that kernels read become parameters of the graph, named ``p0``, ``p1`` and so on; equal arrays share one. Weights
have the layout that the kernel reads, and arrays of structs are stored as the words that they have in memory. A single
struct stays a constant in C. If a call would have more arguments than TVM's C runtime supports, its arrays are
concatenated in one parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mlfbuild.core import sha256
from mlfbuild.library.cgen import ALIGNMENT, aligned
from mlfbuild.library.graph_json import CALL, INPUT, ExecutorGraph, GraphNode, NodeEntry
from mlfbuild.native.graph import C_TYPES, Array, Graph, Node
from mlfbuild.native.graph_executor.storage import Shape, StoragePlan
from mlfbuild.native.lowering import Constant, KernelCall, Parameter, ScratchBuffer
from mlfbuild.native.printing import (
    FunctionNames,
    Interface,
    NodeFunction,
    NodeFunctions,
    PrintedProgram,
    included_headers,
    runtime_dtype,
    runtime_shape,
)

MOST_ARGUMENTS = 9
"""The most arguments of a call in TVM's C runtime: they must be fewer than TVM_CRT_MAX_ARGS, which is 10."""
_CPU_INDEX = 1
_ATTR_ORDER = ("dltype", "device_index", "storage_id", "shape")


@dataclass(frozen=True)
class PackedFunction:
    """A function that executors call by name: an operator function and the arguments that it passes to it."""

    name: str
    function: NodeFunction
    arguments: tuple[str, ...]
    """C expressions that use ``args``, the tensors that executors pass, and ``scratch``."""
    scratch: int
    """Bytes of scratch memory."""


@dataclass(frozen=True)
class GraphProgram(PrintedProgram):
    """A network for the graph executor."""

    storage: StoragePlan
    functions: tuple[PackedFunction, ...]
    params: dict[str, Array]
    executor_graph: ExecutorGraph

    @property
    def operators(self) -> tuple[NodeFunction, ...]:
        """The operator functions, each once."""
        return tuple({packed.function.name: packed.function for packed in self.functions}.values())

    @property
    def headers(self) -> tuple[str, ...]:
        """The kernel headers that functions include, in alphabetical order."""
        return included_headers(self.operators)


def make_nodes(
    name: str, graph: Graph, calls: Sequence[KernelCall], storage: StoragePlan, interface: Interface
) -> GraphProgram:
    """Return the program of ``graph``, whose nodes are lowered to ``calls``.

    ``storage`` decides which nodes become calls and which outputs share memory; ``interface`` has the names of the
    ports. Arrays of equal contents become one parameter of the graph.
    """
    making = _Making(name, graph, storage, interface)
    for index in storage.calls:
        making.add(index, graph.nodes[index], calls[index])
    return GraphProgram(
        name,
        tuple(making.constants),
        graph,
        interface,
        storage,
        tuple(making.packed.values()),
        {making.param_name(at): values for at, values in enumerate(making.params)},
        making.executor_graph(),
    )


@dataclass(frozen=True)
class _CallNode:
    """A node that calls ``function``; it writes the tensors ``outputs``."""

    name: str
    function: str
    inputs: tuple[str | int, ...]
    """Names of tensors, and numbers of parameters."""
    outputs: tuple[str, ...]


class _Making:
    """Collects functions, constants, parameters and nodes; equal ones are stored once."""

    def __init__(self, name: str, graph: Graph, storage: StoragePlan, interface: Interface) -> None:
        self.prefix = f"tvmgen_{name}"
        self.graph = graph
        self.storage = storage
        self.interface = interface
        self.packed: dict[tuple[object, ...], PackedFunction] = {}
        self.constants: list[Constant] = []
        self.params: list[Array] = []
        self._functions = NodeFunctions(FunctionNames(graph, self.prefix, "_operator"))
        self._names = FunctionNames(graph, self.prefix)
        self._constant_names: dict[Constant, str] = {}
        self._param_numbers: dict[tuple[str, Shape, str], int] = {}
        self._nodes: list[_CallNode] = []
        self._for_outputs = [self._source(output) for output in graph.outputs]

    def add(self, index: int, node: Node, call: KernelCall) -> None:
        """Add the call of the node at ``index``."""
        name = f"{self.prefix}_{call.operator}_{index}"
        call = replace(call, parameters=tuple(self._with_array(parameter) for parameter in call.parameters))
        arrays = [values for parameter in call.parameters if (values := _numbers(parameter)) is not None]
        read = [str(each.argument) for each in call.parameters if self._is_read(each, node)]
        # Only if necessary: separate parameters can be shared with other calls.
        joined = len(arrays) > 1 and len(read) + len(arrays) + len(node.outputs) > MOST_ARGUMENTS
        params = [self._joined(arrays)] if joined else [self._param(values) for values in arrays]
        inputs = (*(self._source(tensor) for tensor in read), *params)
        arguments = tuple(self._arguments(name, node, call, joined=joined))
        self._nodes.append(_CallNode(name, self._packed(node, call, arguments).name, inputs, node.outputs))

    def _with_array(self, parameter: Parameter) -> Parameter:
        """Return ``parameter``; if it names a constant tensor, with its elements instead of the name."""
        tensor = self.graph.tensors.get(parameter.argument) if isinstance(parameter.argument, str) else None
        if tensor is None or tensor.data is None:
            return parameter
        return replace(parameter, argument=Constant.array("constant", C_TYPES[tensor.dtype], tensor.data))

    @staticmethod
    def _is_read(parameter: Parameter, node: Node) -> bool:
        return isinstance(parameter.argument, str) and parameter.argument not in node.outputs

    def _source(self, tensor: str) -> str | int:
        """Return the name of the tensor that has the bytes of ``tensor``, or the number of the parameter that does."""
        root = self.graph.tensor(self.storage.roots[tensor])
        return root.name if root.data is None else self._param(root.data.reshape(-1), runtime_shape(root))

    def _arguments(self, name: str, node: Node, call: KernelCall, *, joined: bool) -> Iterator[str]:
        """Yield the arguments of the operator function: the node's inputs in order, then its outputs."""
        arrays = sum(_is_array(parameter) for parameter in call.parameters)
        tensors = sum(self._is_read(parameter, node) for parameter in call.parameters)
        first_output = tensors + (1 if joined else arrays)
        read, array, offset, scratch = 0, tensors, 0, 0
        for parameter in call.parameters:
            value = parameter.argument
            if isinstance(value, ScratchBuffer):
                yield _at("scratch", scratch, parameter.c_type) if value.size else "NULL"
                scratch += value.size
            elif isinstance(value, Constant) and value.numbers is None:
                yield f"&{self._constant(replace(value, name=f'{name}_{value.name}'), value)}"
            elif isinstance(value, Constant):
                yield _at(self._data(array), offset, parameter.c_type)
                array, offset = (array, offset + aligned(value.size)) if joined else (array + 1, 0)
            elif value in node.outputs:
                yield self._data(first_output + node.outputs.index(value))
            else:
                yield self._data(read)
                read += 1

    def _data(self, argument: int) -> str:
        return f"{self.prefix}_data(args, {argument})"

    def _packed(self, node: Node, call: KernelCall, arguments: tuple[str, ...]) -> PackedFunction:
        function = self._functions.add(node, call)
        key = (function.name, arguments, call.scratch)
        if key not in self.packed:
            name = self._names.add(node, call.operator)
            self.packed[key] = PackedFunction(name, function, arguments, call.scratch)
        return self.packed[key]

    def _constant(self, named: Constant, value: Constant) -> str:
        key = replace(value, name="")
        if key not in self._constant_names:
            self._constant_names[key] = named.name
            self.constants.append(named)
        return self._constant_names[key]

    def _joined(self, arrays: Sequence[Array]) -> int:
        parts = [values.view(np.uint8) for values in arrays]
        return self._param(np.concatenate([np.pad(part, (0, -part.size % ALIGNMENT)) for part in parts]))

    def _param(self, values: Array, shape: Shape | None = None) -> int:
        """Return the number of the parameter with these elements and ``shape``, by default that of ``values``."""
        # bool has no size in TVM's C runtime.
        values = (values.view(np.uint8) if values.dtype == np.bool_ else values).reshape(shape or values.shape)
        number = self._param_numbers.setdefault(
            (values.dtype.str, values.shape, sha256(values.tobytes())), len(self.params)
        )
        if number == len(self.params):
            self.params.append(values)
        return number

    # The graph

    def param_name(self, number: int) -> str:
        """Return the name of a parameter, such as ``p0``; underscores are appended if an input has that name."""
        name, taken = f"p{number}", {port.name for port in self.interface.inputs}
        # The name of an input is the user's, so the parameter gives way.
        while name in taken:
            name += "_"
        return name

    def executor_graph(self) -> ExecutorGraph:
        """Return the graph: inputs, parameters, then the calls in order."""
        # An input comes first, because TVM's C runtime requires that.
        inputs, params = self.graph.inputs, range(len(self.params))
        sources: list[str | int] = [*inputs, *params]
        entries = {source: NodeEntry(at) for at, source in enumerate(sources)}
        rows = list(range(len(sources) + 1))
        written: list[str] = []
        for node in self._nodes:
            entries |= {name: NodeEntry(len(rows) - 1, at) for at, name in enumerate(node.outputs)}
            rows.append(rows[-1] + len(node.outputs))
            written += node.outputs
        ports = [port.name for port in self.interface.inputs]
        names = [*ports, *(self.param_name(at) for at in params)]
        tensors = [self.graph.tensor(name) for name in (*inputs, *written)]
        types = [runtime_dtype(tensor.dtype) for tensor in tensors]
        shapes = [self.storage.shapes[tensor.name] for tensor in tensors]
        return ExecutorGraph(
            nodes=(*(GraphNode(INPUT, name) for name in names), *(_graph_node(node, entries) for node in self._nodes)),
            arg_nodes=tuple(range(len(sources))),
            heads=tuple(entries[output] for output in self._for_outputs),
            node_row_ptr=tuple(rows),
            shape=(*shapes[: len(inputs)], *(values.shape for values in self.params), *shapes[len(inputs) :]),
            dltype=(*types[: len(inputs)], *(values.dtype.name for values in self.params), *types[len(inputs) :]),
            storage_id=(*range(len(sources)), *(len(sources) + self.storage.groups[name] for name in written)),
            device_index=(_CPU_INDEX,) * rows[-1],
            attr_order=_ATTR_ORDER,
        )


def _graph_node(node: _CallNode, entries: dict[str | int, NodeEntry]) -> GraphNode:
    attrs = {
        "num_outputs": str(len(node.outputs)),
        "num_inputs": str(len(node.inputs)),
        "flatten_data": "0",
        "func_name": node.function,
    }
    return GraphNode(CALL, node.name, tuple(entries[source] for source in node.inputs), tuple(attrs.items()))


def _is_array(parameter: Parameter) -> bool:
    return isinstance(parameter.argument, Constant) and parameter.argument.numbers is not None


def _numbers(parameter: Parameter) -> Array | None:
    constant = parameter.argument
    if not isinstance(constant, Constant) or constant.numbers is None:
        return None
    return np.ascontiguousarray(constant.numbers()).reshape(-1)


def _at(pointer: str, offset: int, c_type: str) -> str:
    """Return the C expression of the address ``offset`` bytes after ``pointer``, as a ``c_type``."""
    return f"({c_type})(void *)((uint8_t *){pointer} + {offset})" if offset else pointer
