"""Describe the compiled network for the archive: its operators, and the address and lifetime of each tensor."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import add
from typing import TYPE_CHECKING

from mlfbuild.core import UnsupportedModelError
from mlfbuild.library import (
    Network,
    NetworkConstant,
    NetworkKernel,
    NetworkMemory,
    NetworkOperator,
    NetworkPoint,
    NetworkScratch,
    NetworkTensor,
    RemovedChannels,
)
from mlfbuild.library.graph_json import CALL
from mlfbuild.native.graph import Graph, Node, Tensor
from mlfbuild.native.graph.ops import EthosU, Fused
from mlfbuild.native.lowering import Candidate, Constant, KernelCall
from mlfbuild.native.memory import Plan, PlannedMemory, PlannedStorage, StorageKind
from mlfbuild.native.printing import LinkedModel, ModelStep, tensor_lives

if TYPE_CHECKING:
    from mlfbuild.native.graph_executor import GraphProgram, PackedFunction

RemovedByOutput = Mapping[str, RemovedChannels]
"""Dead channels that were removed from layers, by the name of a layer's output."""


def removed_from_layers(whole: Graph, graph: Graph) -> dict[str, RemovedChannels]:
    """Return what ``graph`` lacks of the layers of ``whole``, from which dead channels were removed.

    The result is output of a layer -> channels, bytes of weights and multiply-accumulates that were removed. Layers
    that lost nothing are not in it. Both graphs have the same nodes in the same order.
    """
    found = {}
    for before, now in zip(whole.nodes, graph.nodes, strict=True):
        # The pass keeps the number and the order of nodes.
        macs = macs_of(whole, before) - macs_of(graph, now)
        weights, left = (_weights_of(*each) for each in ((whole, before), (graph, now)))
        if macs or weights != left:
            channels, of = (each.shape[-1] for each in (graph.tensor(now.outputs[0]), whole.tensor(before.outputs[0])))
            found[now.outputs[0]] = RemovedChannels(of - channels, of, weights - left, macs)
    return found


def _weights_of(graph: Graph, node: Node) -> int:
    """Return the bytes of the constant matrix or filter of a layer; 0 for other nodes."""
    weights = graph.inputs_of(node).optional(1)
    return weights.size if weights is not None and weights.constant and macs_of(graph, node) else 0


def compiled_network(program: LinkedModel, calls: Sequence[KernelCall], removed: RemovedByOutput) -> Network:
    """Return the network of ``program``, with an operator for each of its steps, which are ``calls``.

    ``removed`` is missing in nodes.
    """
    graph = program.graph
    lives = tensor_lives(program)
    numbers = {name: at for at, name in enumerate(lives)}
    several = len(program.plan.memories) > 1
    planned = {name: each for each in program.plan.storages if several for name in each.tensors}
    tensors = tuple(_tensor(program, graph.tensor(name), *life, planned.get(name)) for name, life in lives.items())
    constants = frozenset(constant.name for constant in program.constants)
    operators = tuple(
        _operator(program, step, call, numbers, constants, removed)
        for step, call in zip(program.steps, calls, strict=True)
    )
    memories = tuple(_memory(each) for each in program.plan.memories if several)
    origins = tuple(_origins(program.constants))
    curve = tuple(NetworkPoint(size, _cycles(waits)) for size, waits in program.plan.curve)
    return Network(program.plan.arena_size, tensors, operators, origins, memories, curve)


def _cycles(waits: int) -> int:
    """Return whole cycles of ``waits``, thousandths, rounded up so that only 0 becomes 0."""
    return -(-waits // 1000)


def _memory(planned: PlannedMemory) -> NetworkMemory:
    memory = planned.memory
    return NetworkMemory(memory.name, planned.size, memory.size, memory.load_wait, memory.store_wait, planned.state)


def notes_of_memories(plan: Plan) -> Iterator[str]:
    """Yield notes about a plan over several memories: speeds that are not known, and what is not proven."""
    if len(plan.memories) < 2:
        return
    if len({(each.memory.load_wait, each.memory.store_wait) for each in plan.memories}) == 1:
        names = ", ".join(each.memory.name for each in plan.memories)
        yield f"memories: {names} have no different waits, so the plan avoids accesses to those that are listed later"
    elif plan.waits_bound < plan.waits:
        waits, least = _cycles(plan.waits), _cycles(plan.waits_bound)
        yield f"memories: accesses wait {waits:,} cycles in a run by estimate, and at least {least:,} in any plan"


def memory_notes(arena: int, usual: int | None, network: Network | None = None) -> tuple[str, ...]:
    """Return a note if the option ``memory: smallest`` has no effect, with the reason if ``network`` knows it.

    ``arena`` is the size in bytes with the option, ``usual`` that with its default, or ``None`` without the option. The
    reason is the lower bound of the arena: the bytes that one operator needs at the same time.
    """
    if usual is None or arena < usual:
        return ()
    note = f"memory: smallest has no effect: the workspace takes {arena:,} bytes, as with balanced"
    if network is None or not network.operators:
        return (note,)
    # By its number, which reports list: names in TensorFlow Lite files are often longer than a line.
    where = f"operator {network.peak} ({network.operators[network.peak].operator})"
    return (f"{note}; its lower bound is {network.usage[network.peak]:,} bytes, in use while {where} runs",)


def _origins(constants: Iterable[Constant]) -> Iterator[NetworkConstant]:
    for constant in constants:
        if constant.origin is not None:
            yield NetworkConstant(constant.name, constant.origin.tensor, constant.origin.digest())


def graph_network(program: GraphProgram, lowered: Sequence[KernelCall], removed: RemovedByOutput) -> Network:
    """Return the operators of ``program``, one for each call of its graph; the executor places the tensors.

    ``lowered`` are the calls of all nodes of ``program.graph``.
    """
    constants = frozenset(constant.name for constant in program.constants)
    packed = {function.name: function for function in program.functions}
    calls = [node.function for node in program.executor_graph.nodes if node.op == CALL]
    return Network(
        arena=0,
        tensors=(),
        operators=tuple(
            _call(program.graph, program.graph.nodes[index], lowered[index], packed[name], constants, removed)
            for index, name in zip(program.storage.calls, calls, strict=True)
        ),
        constants=tuple(_origins(program.constants)),
    )


def _call(
    graph: Graph,
    node: Node,
    call: KernelCall,
    packed: PackedFunction,
    constants: frozenset[str],
    removed: RemovedByOutput,
) -> NetworkOperator:
    symbols = dict.fromkeys([packed.function.name, *_constants_in(packed.arguments, constants)])
    return NetworkOperator(
        node.name,
        node.operator.label,
        packed.name,
        tuple(symbols),
        macs_of(graph, node),
        removed=_removed(node, removed),
        kernels=considered(call),
        by_rows=call.by_rows,
    )


def _removed(node: Node, removed: RemovedByOutput) -> RemovedChannels | None:
    """Return what is missing in ``node``, or in the nodes of which a chain consists."""
    nodes = node.operator.part.nodes if isinstance(node.operator, Fused) else (node,)
    found = [removed[each.outputs[0]] for each in nodes if each.outputs[0] in removed]
    return functools.reduce(add, found) if found else None


def macs_of(graph: Graph, node: Node) -> int:
    """Return the multiply-accumulates of ``node``.

    Operators without products, such as a pool, have none. Those of a chain are the sum of its operators.
    """
    return node.operator.macs(graph.inputs_of(node), graph.outputs_of(node))


def _tensor(
    program: LinkedModel, tensor: Tensor, first: int, last: int, planned: PlannedStorage | None
) -> NetworkTensor:
    location, ports = program.plan.locations[tensor.name], program.interface
    offset = None if location.area is StorageKind.CONSTANT else location.position
    area = location.area.name.lower()
    side = {StorageKind.INPUT: ports.inputs, StorageKind.OUTPUT: ports.outputs}.get(location.area)
    port = side[location.position] if side else None
    name = port.name if port is not None and port.tensor.name == tensor.name else tensor.name  # or it is a view
    estimates = _estimates(planned)
    return NetworkTensor(name, tensor.dtype.value, tensor.shape, tensor.size, area, offset, first, last, *estimates)


def _estimates(planned: PlannedStorage | None) -> tuple[int | None, int | None]:
    """Return accesses, and what they save."""
    return (None, None) if planned is None else (planned.accesses, planned.saved // 1000)


def _operator(
    program: LinkedModel,
    step: ModelStep,
    call: KernelCall,
    numbers: Mapping[str, int],
    constants: frozenset[str],
    removed: RemovedByOutput,
) -> NetworkOperator:
    scratch = step.function.call.scratch if step.function is not None else 0
    plan, planned = program.plan, None
    if len(plan.memories) > 1:
        planned = next((each for each in plan.storages if not each.tensors and each.first == step.index), None)
    return NetworkOperator(
        name=step.node.name,
        operator=step.node.operator.label,
        function="" if step.function is None else step.function.name,
        symbols=tuple(dict.fromkeys([*_constants_in(step.arguments, constants), *step.copied])),
        macs=None if isinstance(step.node.operator, EthosU) else macs_of(program.graph, step.node),
        inputs=tuple(_numbers(step.node.inputs, numbers)),
        outputs=tuple(_numbers(step.node.outputs, numbers)),
        scratch=NetworkScratch(plan.scratch[step.index], scratch, *_estimates(planned)) if scratch else None,
        removed=_removed(step.node, removed),
        kernels=_IN_PLACE if step.function is None else considered(call),
        by_rows=None if step.function is None else call.by_rows,
    )


def _constants_in(arguments: tuple[str, ...], constants: frozenset[str]) -> Iterator[str]:
    """Yield the constants in the C expressions ``arguments``, which may be casts or addresses of them."""
    names = (argument.rpartition(")")[2].removeprefix("&") for argument in arguments)
    yield from (name for name in names if name in constants)


def _numbers(names: tuple[str | None, ...], numbers: Mapping[str, int]) -> Iterator[int]:
    yield from (numbers[name] for name in names if name is not None and name in numbers)


_ONLY = "the only kernel for this operator and its type"
_ONLY_HERE = "the only kernel for this operator and its type on this CPU"
_FIRST = "the first in the order of speed that serves the operator on this CPU"
_IN_PLACE = (NetworkKernel("none", chosen=True, reason="needs no code, because the bytes are already in place"),)
_SLOWER = "behind the chosen one in the order of speed"


def considered(call: KernelCall) -> tuple[NetworkKernel, ...]:
    """Return the kernels that ``lower`` tried for ``call``, then those that it would have tried, with their sizes.

    The latter are lowered here, because a build needs only the chosen call. For a chain, return those of each node:
    their workspace is that of the rows of a step.
    """
    if call.parts:
        several = len(call.parts) > 1
        parts = ((at if several else None, considered(part)) for at, part in enumerate(call.parts))
        return tuple(replace(each, node=at) for at, kernels in parts for each in kernels)
    if call.choice is None:
        return (_serving(call.header.removesuffix(".h"), call, _ONLY),)
    candidates, refused = call.choice.candidates, call.choice.refused
    later = [_later(candidate) for candidate in candidates[len(refused) + 1 :]]
    before = [NetworkKernel(each.kernel, False, reason) for each, reason in zip(candidates, refused, strict=False)]
    # All others have an obstacle that was known before lowering, mostly the CPU.
    here = [each.obstacle for each in candidates].count("") == 1
    chosen = _serving(candidates[len(refused)].kernel, call, _ONLY_HERE if here else _FIRST)
    return (*before, chosen, *later)


def _later(candidate: Candidate) -> NetworkKernel:
    """Return what ``candidate``, which is behind the chosen one, would have needed."""
    try:
        outcome = candidate.obstacle or candidate.lower()
    except UnsupportedModelError as error:
        outcome = error.reason
    if isinstance(outcome, str):
        return NetworkKernel(candidate.kernel, False, outcome)
    return replace(_serving(candidate.kernel, outcome, _SLOWER), chosen=False)


def _serving(kernel: str, call: KernelCall, reason: str) -> NetworkKernel:
    return NetworkKernel(kernel, True, reason, call.kernel, call.constants, call.scratch)
