"""The lowered model: the functions, constants and calls that the C file, the header and the metadata are made of."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mlfbuild.cgen import C_TYPES
from mlfbuild.compilers.native.lowering import Constant, KernelCall, ScratchBuffer
from mlfbuild.compilers.native.memory import Location, Plan, StorageKind
from mlfbuild.compilers.native.printing.classes import class_of
from mlfbuild.compilers.native.printing.interface import Interface
from mlfbuild.graph import Graph, Node, State, Tensor
from mlfbuild.graph.ops import Fused, Reshape

_BYTE_POINTERS = frozenset(f"{const}{kind} *" for const in ("", "const ") for kind in ("int8_t", "uint8_t", "void"))


@dataclass(frozen=True)
class NodeFunction:
    """An operator function; nodes whose functions have equal text share it."""

    name: str
    call: KernelCall
    node: Node
    """The first node that calls it."""


@dataclass(frozen=True)
class Written:
    """A tensor that is handed out as soon as it is written."""

    number: int
    """In the order in which they are."""
    tensor: Tensor
    pointer: str
    """A C expression."""


@dataclass(frozen=True)
class ModelStep:
    """What is done for a node: a call with C expressions as arguments, or nothing."""

    index: int
    node: Node
    function: NodeFunction | None
    arguments: tuple[str, ...]
    written: tuple[Written, ...] = ()
    """What a traced run hands out after it; empty where the program is not compiled for that."""


@dataclass(frozen=True)
class Reset:
    """How a part of the state begins: as the constant called ``source``, or every byte as ``value``."""

    offset: int
    size: int
    value: int = 0
    source: str | None = None


@dataclass(frozen=True)
class LinkedModel:
    """A lowered model. Constants carry the names that they have in C."""

    name: str
    graph: Graph
    plan: Plan
    interface: Interface
    functions: tuple[NodeFunction, ...]
    constants: tuple[Constant, ...]
    steps: tuple[ModelStep, ...]
    copies: tuple[tuple[str, str, int], ...]
    """(to, from, bytes) of what is copied at the end, to and from as C expressions."""
    resets: tuple[Reset, ...] = ()
    """How the states begin, in the order of their places."""
    classes: Mapping[str, str] = field(default_factory=dict)
    """The class of each constant that a project may place: the first use decides."""
    trace: bool = False
    """Whether there is a run function that hands out what operators write."""
    hook: bool = False
    """Whether there is one that asks before each operator."""

    @property
    def prefix(self) -> str:
        """What every name of the C file starts with."""
        return f"tvmgen_{self.name}"

    @property
    def constants_size(self) -> int:
        """Bytes of all constants; gaps between them are not counted."""
        return sum(constant.size for constant in self.constants)

    @property
    def headers(self) -> tuple[str, ...]:
        """The kernel headers that functions include, in alphabetical order."""
        return included_headers(self.functions)


def included_headers(functions: Iterable[NodeFunction]) -> tuple[str, ...]:
    """Return the kernel headers that ``functions`` include, in alphabetical order."""
    calls = [function.call for function in functions]
    more = (header for call in calls for header in call.more_headers)
    return tuple(sorted({"compiler.h", *(call.header for call in calls), *more}))


def link_calls(
    name: str,
    graph: Graph,
    calls: Sequence[KernelCall],
    plan: Plan,
    interface: Interface,
    *,
    trace: bool = False,
    hook: bool = False,
) -> LinkedModel:
    """Return the program of the nodes of ``graph``, lowered to ``calls``: with addresses, equal parts once.

    With ``trace`` it can hand out what each node writes, with ``hook`` it can ask before each one.
    """
    linking = _Linking(f"tvmgen_{name}", graph, plan, interface)
    steps = tuple(
        linking.step(index, node, call) for index, (node, call) in enumerate(zip(graph.nodes, calls, strict=True))
    )
    steps = tuple(linking.handing_out(steps)) if trace else steps
    copies = tuple(
        (linking.address(to), linking.place(tensor), graph.tensor(tensor).size) for tensor, to in plan.copies
    )
    resets = tuple(linking.reset(state) for state in graph.states)
    functions, constants = tuple(linking.functions.values()), tuple(linking.constants)
    classes = linking.classes
    return LinkedModel(name, graph, plan, interface, functions, constants, steps, copies, resets, classes, trace, hook)


class _Linking:
    """Functions and constants so far, equal ones once."""

    def __init__(self, prefix: str, graph: Graph, plan: Plan, interface: Interface) -> None:
        self.prefix = prefix
        self.graph = graph
        self.plan = plan
        self.interface = interface
        self.functions: dict[tuple[object, ...], NodeFunction] = {}
        self.constants: list[Constant] = []
        self.classes: dict[str, str] = {}
        self._names: dict[Constant, str] = {}

    def step(self, index: int, node: Node, call: KernelCall) -> ModelStep:
        """Return what is done for the node at ``index``."""
        if index in self.plan.views or (isinstance(node.operator, Reshape) and self._same_place(node)):
            return ModelStep(index, node, None, ())
        function = self._function(index, node, call)
        arguments = self._arguments(f"{self.prefix}_{call.operator}_{index}", call, self.plan.scratch[index])
        return ModelStep(index, node, function, arguments)

    def handing_out(self, steps: Iterable[ModelStep]) -> Iterator[ModelStep]:
        """Yield ``steps`` with what they write, to be handed out."""
        numbers = itertools.count()
        for step in steps:
            yield replace(
                step,
                written=tuple(
                    Written(next(numbers), tensor, self.address(self.plan.locations[tensor.name]))
                    for tensor in self.graph.outputs_of(step.node)
                ),
            )

    def _same_place(self, node: Node) -> bool:
        return self.plan.locations[str(node.inputs[0])] == self.plan.locations[node.outputs[0]]

    def _function(self, index: int, node: Node, call: KernelCall) -> NodeFunction:
        declared = tuple((parameter.c_type, parameter.name) for parameter in call.parameters)
        new = NodeFunction(f"{self.prefix}_{call.operator}_{index}", call, node)
        return self.functions.setdefault((call.operator, declared, call.body), new)

    def _arguments(self, prefix: str, call: KernelCall, scratch: int) -> tuple[str, ...]:
        arguments = []
        for parameter in call.parameters:
            value = parameter.argument
            if isinstance(value, Constant):
                name = self._constant(replace(value, name=f"{prefix}_{value.name}"), value)
                cast = f"({parameter.c_type})" if value.is_packed else ""
                arguments.append(f"{cast}{name}" if value.length is not None else f"&{name}")
            elif isinstance(value, ScratchBuffer):
                arguments.append(_pointer(parameter.c_type, f"&arena[{scratch}]"))
                scratch += value.size
            else:
                arguments.append(self._tensor(parameter.c_type, value))
        return tuple(arguments)

    def _tensor(self, c_type: str, value: str) -> str:
        place = self.place(value)
        if self.plan.locations[value].area is StorageKind.CONSTANT:
            return place
        if self.plan.locations[value].area in {StorageKind.ARENA, StorageKind.STATE}:
            return _pointer(c_type, place)
        return f"({c_type}){place}"

    def place(self, tensor: str) -> str:
        """Return the C expression of a pointer to the tensor called ``tensor``."""
        location = self.plan.locations[tensor]
        return self._constant_tensor(tensor) if location.area is StorageKind.CONSTANT else self.address(location)

    def address(self, location: Location) -> str:
        """Return the C expression of a pointer to what lies at ``location``, which is no constant."""
        if location.area is StorageKind.INPUT:
            return f"inputs->{self.interface.inputs[location.position].member}"
        if location.area is StorageKind.OUTPUT:
            return f"outputs->{self.interface.outputs[location.position].member}"
        return f"&{location.area.name.lower()}[{location.position}]"

    def reset(self, state: State) -> Reset:
        """Return how ``state`` begins."""
        offset, content = self.plan.locations[state.before].position, state.initial.tobytes()
        if content.count(content[0]) == len(content):
            return Reset(offset, len(content), content[0])
        value = Constant.array("initial", C_TYPES[self.graph.tensor(state.before).dtype], state.initial)
        name = self._constant(replace(value, name=f"{self.prefix}_initial_{offset}"), value)
        return Reset(offset, len(content), source=name)

    def _constant_tensor(self, name: str) -> str:
        tensor = self.graph.tensor(name)
        assert tensor.data is not None
        value = Constant.array("constant", C_TYPES[tensor.dtype], tensor.data)
        return self._constant(replace(value, name=f"{self.prefix}_constant_{len(self.constants)}"), value)

    def _constant(self, named: Constant, value: Constant) -> str:
        """Return the name of a constant equal to ``value``, new or known, whatever it is to its operator."""
        key = replace(value, name="")
        if key not in self._names:
            self._names[key] = named.name
            self.constants.append(named)
            self.classes[named.name] = class_of(value)
        return self._names[key]


def _pointer(c_type: str, place: str) -> str:
    """Return the address ``place`` in the arena as a ``c_type``: through void where elements are larger than bytes."""
    through = "" if c_type in _BYTE_POINTERS else "(void *)"
    return f"({c_type}){through}{place}"


def node_comment(graph: Graph, node: Node) -> str:
    """Return operator, activation operands and result of ``node``, as ``CONV_2D int8[1,8,8,3] -> int8[1,8,8,16]``."""
    fused = node.operator if isinstance(node.operator, Fused) else None
    read = graph.inputs_of(node)[: None if fused is None else len(fused.part.inputs)]
    shapes = [_shape(tensor.dtype.value, tensor.shape) for tensor in read if tensor is not None]
    results = [_shape(tensor.dtype.value, tensor.shape) for tensor in graph.outputs_of(node)]
    return f"{operator_label(node)} {', '.join(shapes)} -> {', '.join(results)}"


def operator_label(node: Node) -> str:
    """Return what ``node`` computes: ``CONV_2D``, and ``CONV_2D + ADD`` where it is several that run together."""
    return node.operator.label if isinstance(node.operator, Fused) else node.operator.name


def _shape(dtype: str, sizes: Sequence[int]) -> str:
    return f"{dtype}[{','.join(str(size) for size in sizes)}]"
