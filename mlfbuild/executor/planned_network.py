"""Describe the network of a module as it is built: the static plan gives the tensors of a graph their addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from mlfbuild.executor.arguments import GraphArguments, graph_arguments
from mlfbuild.executor.graph_plan import NO_CALL, Area, PackedCall, TensorPlace, plan_graph
from mlfbuild.executor.graph_source import parameter_name
from mlfbuild.executor.kernel_workspace import kernel_workspace
from mlfbuild.executor.kernels import Kernels
from mlfbuild.library import (
    ARENA,
    INPUT,
    LINKED_ARRAY,
    OUTPUT,
    Module,
    Network,
    NetworkOperator,
    NetworkScratch,
    NetworkTensor,
    symbol_prefix,
)
from mlfbuild.library.graph_json import CALL, ExecutorGraph, GraphNode, parse_graph

_MEMORIES = {Area.INPUT: INPUT, Area.OUTPUT: OUTPUT, Area.STORAGE: ARENA}


def module_network(module: Module) -> Network | None:
    """Return the operators of ``module`` and the addresses of its tensors in firmware; ``None`` if unknown.

    They are unknown for modules that TVM compiled for its AOT executor, and for single operators. Operators of a graph
    of TVM have the names of their functions, and their multiply-accumulates are unknown. Raises as ``executable``.
    """
    # Modules of the native compiler already have the addresses that their C uses.
    if module.executor != "graph" or module.graph_json is None:
        return module.network
    kernels = Kernels(module)
    graph = parse_graph(bytes(module.graph_json), f"{module.name}.graph")
    return _Planned(module, graph, graph_arguments(graph, kernels), kernel_workspace(kernels)).network()


class _Planned:
    """The calls of a graph, and its tensors by root: the entry that has the bytes of an entry."""

    def __init__(self, module: Module, graph: ExecutorGraph, arguments: GraphArguments, kernel_bytes: int) -> None:
        self._module, self._graph, self._arguments, self._kernel_bytes = module, graph, arguments, kernel_bytes
        self._plan = plan_graph(graph, arguments.params, module.name, arguments.linked)
        # The same nodes in the same order as in the plan, so that both can be zipped.
        self._nodes = [node for node in graph.nodes if node.op == CALL and node.function != NO_CALL]
        self._calls = self._plan.calls[: len(self._nodes)]
        """The calls without the copies of outputs, which follow them in the plan."""

    def network(self) -> Network:
        """Return the network: an operator for each call."""
        names, times = _names(self._module, self._graph), self._times()
        tensors = tuple(self._tensor(root, place, names[root], times[root]) for root, place in self._places.items())
        operators = (self._operator(at, *pair) for at, pair in enumerate(zip(self._nodes, self._calls, strict=True)))
        constants = self._module.network.constants if self._module.network else ()
        return Network(self._plan.storage_size + self._kernel_bytes, tensors, tuple(operators), constants)

    # Tensors

    @cached_property
    def _roots(self) -> list[int]:
        roots = list(range(len(self._graph.shape)))
        for index, node in enumerate(self._graph.nodes):
            if node.function == NO_CALL:
                roots[self._graph.node_row_ptr[index]] = roots[self._graph.entry(node.inputs[0])]
        return roots

    @cached_property
    def _places(self) -> dict[int, TensorPlace]:
        """Root -> its location, without parameters: the caller's inputs first, then what calls write."""
        known = self._arguments.params | self._arguments.linked
        inputs = [node for node in self._graph.arg_nodes if self._graph.nodes[node].name not in known]
        places = {self._graph.node_row_ptr[node]: TensorPlace(Area.INPUT, at) for at, node in enumerate(inputs)}
        linked = {*self._plan.linked}
        for tensor in (tensor for call in self._calls for tensor in call.tensors):
            root = self._roots[tensor.entry]
            if tensor.place.area is not Area.CONSTANT and root not in linked:
                places.setdefault(root, tensor.place)
        return places

    @cached_property
    def _numbers(self) -> dict[int, int]:
        return {root: at for at, root in enumerate(self._places)}

    def _times(self) -> Mapping[int, list[int]]:
        """Return the calls that use each root; outputs are also in use at the last call."""
        times: dict[int, list[int]] = {root: [] for root in range(len(self._roots))}
        # Inputs are written before the first call, whichever call reads them first.
        for root in (root for root, place in self._places.items() if place.area is Area.INPUT):
            times[root].append(0)
        for at, call in enumerate(self._calls):
            for tensor in call.tensors:
                times[self._roots[tensor.entry]].append(at)
        # The caller reads outputs after the run, so nothing may take their place after they are written.
        for head in self._graph.heads:
            times[self._roots[self._graph.entry(head)]].append(max(len(self._calls) - 1, 0))
        return times

    def _tensor(self, root: int, place: TensorPlace, name: str, times: list[int]) -> NetworkTensor:
        info, memory = self._graph.tensor(root, name), _MEMORIES[place.area]
        shape = self._graph.shape[root]
        return NetworkTensor(name, info.dtype, shape, info.size, memory, place.position, min(times), max(times))

    # Operators

    def _operator(self, at: int, node: GraphNode, call: PackedCall) -> NetworkOperator:
        function, described = call.function or "", self._described(at, call)
        prefix = f"{symbol_prefix(self._module.name)}_"
        tensors = [self._numbers.get(self._roots[tensor.entry]) for tensor in call.tensors]
        read, written = tensors[: len(node.inputs)], tensors[len(node.inputs) :]
        return NetworkOperator(
            name=described.name if described else node.name,
            operator=described.operator if described else node.function.removeprefix(prefix),
            function=function,
            symbols=tuple(dict.fromkeys([*(described.symbols if described else ()), *self._parameters(call)])),
            macs=described.macs if described else None,
            inputs=tuple(number for number in read if number is not None),
            outputs=tuple(number for number in written if number is not None),
            scratch=self._scratch(function),
            removed=described.removed if described else None,
            kernels=described.kernels if described else (),
            by_rows=described.by_rows if described else None,
        )

    def _described(self, at: int, call: PackedCall) -> NetworkOperator | None:
        """Return the compiler's description of a call, if the archive describes these calls."""
        described = self._module.network.operators if self._module.network else ()
        return described[at] if len(described) == len(self._calls) and described[at].function == call.function else None

    def _parameters(self, call: PackedCall) -> Iterator[str]:
        """Yield the C names of the parameters that ``call`` reads."""
        for tensor in call.tensors:
            if tensor.place.area is Area.CONSTANT:
                yield parameter_name(tensor.place.position)
            elif tensor.entry in self._plan.linked:
                node = self._graph.node_row_ptr.index(tensor.entry)
                yield f"{LINKED_ARRAY}{self._graph.nodes[node].name}"

    def _scratch(self, function: str) -> NetworkScratch | None:
        """Return the scratch memory of ``function`` in the workspace, which follows the tensors, by the metadata."""
        known = [each.workspace for each in self._module.operator_functions if each.name == function]
        taken = max((size for workspace in known for _, size in workspace), default=0)
        # The metadata may count more than the plan reserves, but the buffer is in the workspace.
        taken = min(taken, self._kernel_bytes)
        return NetworkScratch(self._plan.storage_size, taken) if taken else None


def _names(module: Module, graph: ExecutorGraph) -> dict[int, str]:
    """Return the name of each entry: its name in the model if recorded, else that of the node that writes it."""
    nodes: dict[int, GraphNode] = {}
    names: dict[int, str] = {}
    for index, node in enumerate(graph.nodes):
        first, end = graph.node_row_ptr[index : index + 2]
        nodes |= dict.fromkeys(range(first, end), node)
        names |= {at: node.name if end - first == 1 else f"{node.name}:{at - first}" for at in range(first, end)}
    # The metadata lists traced tensors in the order in which calls write them.
    written = [entry for entry, node in nodes.items() if node.op == CALL]
    if len(written) == len(module.trace):
        names |= {entry: traced.tensor.name for entry, traced in zip(written, module.trace, strict=True)}
    return names
