"""Link lowered calls to a model: give them functions, constants and arguments, and store equal ones once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mlfbuild.library.cgen import wrapped
from mlfbuild.native.c_calling_form import C_INTERFACE, CodeForm
from mlfbuild.native.graph import C_TYPES, Graph, Node, State
from mlfbuild.native.graph.ops import Reshape
from mlfbuild.native.lowering import Constant, KernelCall, Origin, ParameterBlock, ScratchBuffer
from mlfbuild.native.memory import Location, Plan, StorageKind, WeightBlock, WeightPlan
from mlfbuild.native.printing.arenas import arena_at, workspaces_of
from mlfbuild.native.printing.constant_sections import class_of
from mlfbuild.native.printing.functions import FunctionNames, NodeFunctions
from mlfbuild.native.printing.interface import Interface
from mlfbuild.native.printing.program import (
    LinkedModel,
    ModelStep,
    Reset,
    Written,
    included_headers,
    node_comment,
)
from mlfbuild.targets import Cpu

if TYPE_CHECKING:
    from mlfbuild.native.printing.blob_layout import BlobBuilder

_BYTE_POINTERS = frozenset(f"{const}{kind} *" for const in ("", "const ") for kind in ("int8_t", "uint8_t", "void"))


def link_calls(
    name: str,
    graph: Graph,
    calls: Sequence[KernelCall],
    plan: Plan,
    interface: Interface,
    *,
    trace: bool = False,
    hook: bool = False,
    form: CodeForm = C_INTERFACE,
    replaceable: Cpu | None = None,
    weights: WeightPlan | None = None,
) -> LinkedModel:
    """Return the linked model of ``graph``, whose nodes are lowered to ``calls``; equal functions are stored once.

    With ``trace``, it has a run function that passes every written tensor to a callback; with ``hook``, one that calls
    a hook before each operator. ``replaceable`` is the CPU if trained values are in a blob. ``weights`` are those
    in fast memory.
    """
    builder = None
    if replaceable is not None:
        from mlfbuild.native.printing.blob_layout import BlobBuilder  # few models need it

        builder = BlobBuilder(interface)
    linking = _Linking(name, graph, plan, interface, builder, weights)
    steps = tuple(
        linking.step(index, node, call) for index, (node, call) in enumerate(zip(graph.nodes, calls, strict=True))
    )
    steps = tuple(linking.handing_out(steps)) if trace else steps
    steps = tuple(linking.streaming(steps)) if weights is not None else steps
    copies = tuple(
        (linking.address(to), linking.place(tensor), graph.tensor(tensor).size) for tensor, to in plan.copies
    )
    resets = tuple(linking.reset(state) for state in graph.states)
    functions, constants = tuple(linking.functions), tuple(linking.constants)
    classes, blob = linking.classes, None
    copied = tuple((linking.name_of(each), at, each.size) for each, at in weights.copied) if weights else ()
    if builder is not None and replaceable is not None:
        blob = builder.blob(replaceable.name, included_headers(functions))
    return LinkedModel(
        name, constants, graph, interface, plan, functions, steps, copies, resets, classes, trace, hook, form, blob,
        weights, copied,
    )  # fmt: skip


class _Linking:
    """Collects functions and constants; equal ones are stored once."""

    def __init__(
        self,
        name: str,
        graph: Graph,
        plan: Plan,
        interface: Interface,
        blob: BlobBuilder | None = None,
        weights: WeightPlan | None = None,
    ) -> None:
        self.prefix = prefix = f"tvmgen_{name}"
        self.blob = blob
        self.model, self.weights = name, weights
        self.workspaces = workspaces_of(name, plan)
        self.graph = graph
        self.plan = plan
        self.interface = interface
        self.functions = NodeFunctions(FunctionNames(graph, prefix))
        self.constants: list[Constant] = []
        self.classes: dict[str, str] = {}
        self._names: dict[Constant, str] = {}

    def step(self, index: int, node: Node, call: KernelCall) -> ModelStep:
        """Return the step of the node at ``index``."""
        # Input and output are the same bytes.
        if index in self.plan.views or (isinstance(node.operator, Reshape) and self._same_place(node)):
            self._note(node, None)
            return ModelStep(index, node, None, ())
        self._note(node, call)
        function = self.functions.add(node, call)
        arguments = self._arguments(f"{self.prefix}_{call.operator}_{index}", call, self.plan.scratch[index], index)
        moved = [each.argument for each in call.parameters if isinstance(each.argument, Constant)]
        copied = tuple(self.name_of(each) for each in moved if self._in_fast_memory(index, each))
        return ModelStep(index, node, function, arguments, copied=copied)

    def _note(self, node: Node, call: KernelCall | None) -> None:
        if self.blob is not None:
            self.blob.note(node_comment(self.graph, node), call)

    def handing_out(self, steps: Iterable[ModelStep]) -> Iterator[ModelStep]:
        """Yield ``steps`` with the tensors that they write."""
        numbers = itertools.count()
        for step in steps:
            yield replace(
                step,
                written=tuple(
                    Written(next(numbers), tensor, self.address(self.plan.locations[tensor.name]))
                    for tensor in self.graph.outputs_of(step.node)
                ),
            )

    def streaming(self, steps: Iterable[ModelStep]) -> Iterator[ModelStep]:
        """Yield ``steps`` with the statements that copy blocks of weights."""
        blocks = () if self.weights is None else self.weights.blocks
        for step in steps:
            own = [block for block in blocks if block.step == step.index]
            starting = [block for block in blocks if block.starts == step.index]
            lines = [line for block in own if block in starting for line in self._starts(block)]
            lines += [f"mlf_{self.model}_copy_wait();"] if own else []
            lines += [line for block in starting if block not in own for line in self._starts(block)]
            yield replace(step, before=tuple(lines))

    def _starts(self, block: WeightBlock) -> Iterator[str]:
        for part, at in block.parts:
            arguments = [self._reserved(at), self.name_of(part), f"{part.size}u"]
            yield wrapped(f"mlf_{self.model}_copy_start(", arguments, ");", 4)

    def _in_fast_memory(self, index: int, value: Constant) -> str:
        """Return the address to which ``value`` is copied for the step ``index``; empty if it is read where it is."""
        if self.weights is None:
            return ""
        once = dict(self.weights.copied).get(value)
        if once is not None:
            return f"&{self.prefix}_fast_weights.uint8_elements[{once}]"
        at = self.weights.place(index, value)
        return "" if at is None else self._reserved(at)

    def _reserved(self, at: int) -> str:
        name = "" if self.weights is None else self.weights.memory.name
        return self._in_arena(next(each.end for each in self.plan.memories if each.memory.name == name) + at)

    def name_of(self, value: Constant) -> str:
        """Return the name of the constant ``value``, which has been added."""
        return self._names[replace(value, name=class_of(value))]

    def _same_place(self, node: Node) -> bool:
        return self.plan.locations[str(node.inputs[0])] == self.plan.locations[node.outputs[0]]

    def _arguments(self, prefix: str, call: KernelCall, scratch: int, index: int) -> tuple[str, ...]:
        arguments = []
        for parameter in call.parameters:
            value = parameter.argument
            if isinstance(value, Constant):
                name = self._constant(replace(value, name=f"{prefix}_{value.name}"), value)
                cast = f"({parameter.c_type})" if value.is_packed else ""
                usual = f"{cast}{name}" if value.length is not None else f"&{name}"
                place = self._in_fast_memory(index, value)
                arguments.append(_pointer(parameter.c_type, place) if place else usual)
            elif isinstance(value, ParameterBlock):
                assert self.blob is not None, "only code with a blob has blocks"
                arguments.append(f"&blob[{self.blob.add(value)}]")
            elif isinstance(value, ScratchBuffer):
                # Memory that a kernel would use if it were free may not exist, and there may be no arena.
                arguments.append(_pointer(parameter.c_type, self._in_arena(scratch)) if value.size else "NULL")
                # Several buffers of a call follow each other; kernels ask for multiples of their own alignment.
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
        """Return the C expression of a pointer to ``location``, which is not a constant."""
        if location.area is StorageKind.INPUT:
            return f"inputs->{self.interface.inputs[location.position].member}"
        if location.area is StorageKind.OUTPUT:
            return f"outputs->{self.interface.outputs[location.position].member}"
        if location.area is StorageKind.ARENA:
            return self._in_arena(location.position)
        return f"&state[{location.position}]"

    def _in_arena(self, position: int) -> str:
        arena = arena_at(self.workspaces, position)
        return f"&{arena.pointer}[{position - arena.base}]"

    def reset(self, state: State) -> Reset:
        """Return the initial value of ``state``."""
        offset, content = self.plan.locations[state.before].position, state.initial.tobytes()
        # A memset needs no constant in flash; most states begin as zeros or a zero point.
        one_byte = content.count(content[0]) == len(content)
        if self.blob is not None:
            stored = np.frombuffer(content[: 1 if one_byte else None], np.uint8)
            at = self.blob.add_state(self.graph.tensor(state.before), Constant.array("initial", "uint8_t", stored))
            place = f"blob[{at}]"
            return Reset(offset, len(content), place) if one_byte else Reset(offset, len(content), source=f"&{place}")
        if one_byte:
            return Reset(offset, len(content), content[0])
        value = Constant.array("initial", C_TYPES[self.graph.tensor(state.before).dtype], state.initial)
        name = self._constant(replace(value, name=f"{self.prefix}_initial_{offset}"), value)
        return Reset(offset, len(content), source=name)

    def _constant_tensor(self, name: str) -> str:
        tensor = self.graph.tensor(name)
        value = Constant.array("constant", C_TYPES[tensor.dtype], tensor.known)
        value = replace(value, origin=Origin(name, (tensor,)))
        if self.blob is not None:
            return f"(const {value.c_type} *)(const void *)&blob[{self.blob.add_tensor(name, value)}]"
        return self._constant(replace(value, name=f"{self.prefix}_constant_{len(self.constants)}"), value)

    def _constant(self, named: Constant, value: Constant) -> str:
        """Return the name of the constant of the same class that equals ``value``; if there is none, add ``named``."""
        key = replace(value, name=class_of(value))  # not shared with another class, which may be in other memory
        if key not in self._names:
            self._names[key] = named.name
            self.constants.append(named)
            self.classes[named.name] = key.name
        return self._names[key]


def _pointer(c_type: str, place: str) -> str:
    """Return the address ``place`` in the arena as a ``c_type``, via void if elements are larger than bytes."""
    through = "" if c_type in _BYTE_POINTERS else "(void *)"
    return f"({c_type}){through}{place}"
