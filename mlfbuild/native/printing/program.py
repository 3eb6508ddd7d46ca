"""A linked model: the functions, constants and calls of which C, header and metadata are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from mlfbuild.native.c_calling_form import C_INTERFACE, CodeForm
from mlfbuild.native.graph import Graph, Node, Tensor
from mlfbuild.native.graph.ops import Fused, TreeEnsemble
from mlfbuild.native.lowering import Constant
from mlfbuild.native.memory import Plan, WeightPlan, arena_alignment
from mlfbuild.native.printing.arenas import PrintedWorkspace, workspaces_of
from mlfbuild.native.printing.functions import NodeFunction
from mlfbuild.native.printing.interface import Interface

if TYPE_CHECKING:
    from mlfbuild.native.printing.blob_layout import Blob


@dataclass(frozen=True)
class Written:
    """A tensor that a traced run passes to the callback after it was written."""

    number: int
    """Its position in the order of the callback's calls."""
    tensor: Tensor
    pointer: str
    """A C expression."""


@dataclass(frozen=True)
class ModelStep:
    """The call of a node's function with C expressions as arguments, or no call."""

    index: int
    node: Node
    function: NodeFunction | None
    arguments: tuple[str, ...]
    written: tuple[Written, ...] = ()
    """The tensors that a traced run passes to the callback after this step; empty without the option ``trace``."""
    before: tuple[str, ...] = ()
    """Statements before the call: copies of weights begin and end."""
    copied: tuple[str, ...] = ()
    """Constants that the call reads in another place, to which they are copied."""


@dataclass(frozen=True)
class Reset:
    """The initial value of a part of the state: the constant ``source``, or ``value`` in every byte; both as C text."""

    offset: int
    size: int
    value: int | str = 0
    source: str | None = None


@dataclass(frozen=True)
class PrintedProgram:
    """The common part of all forms of a lowered model; constants have their names in C."""

    name: str
    constants: tuple[Constant, ...]
    graph: Graph
    interface: Interface

    @property
    def prefix(self) -> str:
        """The prefix of every name in the C files."""
        return f"tvmgen_{self.name}"


@dataclass(frozen=True)
class LinkedModel(PrintedProgram):
    """A lowered model with addresses.

    Made by ``link_calls`` and printed by the modules of this room, which decide nothing about memory or kernels any
    more. Sizes and offsets are in bytes.
    """

    plan: Plan
    functions: tuple[NodeFunction, ...]
    steps: tuple[ModelStep, ...]
    copies: tuple[tuple[str, str, int], ...]
    """(destination, source, bytes) of the copies at the end of a run, as C expressions."""
    resets: tuple[Reset, ...] = ()
    """The initial values of the states, in the order of their addresses."""
    classes: Mapping[str, str] = field(default_factory=dict)
    """Constant -> its class for placement; the first use of a constant determines it."""
    trace: bool = False
    """Whether there is a run function that passes every written tensor to a callback."""
    hook: bool = False
    """Whether there is a run function that calls a hook before each operator."""
    form: CodeForm = C_INTERFACE
    """The interface that firmware calls."""
    blob: Blob | None = None
    """The places of trained values, if these are in a blob instead of ``constants``."""
    weights: WeightPlan | None = None
    """The weights that are copied to fast memory."""
    copied: tuple[tuple[str, int, int], ...] = ()
    """(constant, offset, bytes) of those that are copied once."""

    @cached_property
    def workspaces(self) -> tuple[PrintedWorkspace, ...]:
        """The arenas in the order of parameters; a single one may be empty."""
        return workspaces_of(self.name, self.plan)

    @property
    def alignment(self) -> int:
        """Bytes to which arenas are aligned."""
        return arena_alignment(self.graph)

    @property
    def tensor_structs(self) -> tuple[str, ...]:
        """The parameters of reentrant run functions that point to structs of tensors; none if the arena has these."""
        return () if self.form.arena_io else ("inputs", "outputs")

    @property
    def constants_size(self) -> int:
        """Bytes of all constants; gaps between them are not counted."""
        return sum(constant.size for constant in self.constants) + (0 if self.blob is None else self.blob.size)

    @property
    def may_fail(self) -> bool:
        """Whether an operator can fail."""
        return any(function.call.may_fail for function in self.functions)

    @property
    def npu_memory(self) -> int:
        """Bytes of the NPU's own memory, 0 if the network needs none."""
        return max((function.call.device_memory for function in self.functions), default=0)

    @property
    def headers(self) -> tuple[str, ...]:
        """The kernel headers that functions include, in alphabetical order."""
        return included_headers(self.functions, () if self.blob is None else ("parameters.h",))


def reentrant_lines(program: LinkedModel) -> list[str]:
    """Return the lines of a header with the first parameters of the reentrant run functions, those without options."""
    structs = [f"  const struct {program.prefix}_{kind}* {kind}," for kind in program.tensor_structs]
    arenas = [f"  void* {each.parameter}," for each in program.workspaces]
    return [*structs, *arenas, *(["  void* kept,"] if program.resets else [])]


def included_headers(functions: Iterable[NodeFunction], others: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the kernel headers that ``functions`` include, and ``others``, in alphabetical order.

    ``compiler.h`` is always among them, as the code of a network without operators uses its macros.
    """
    calls = [function.call for function in functions]
    more = (header for call in calls for header in call.more_headers)
    return tuple(sorted({"compiler.h", *others, *(call.header for call in calls), *more}))


def tensor_lives(program: LinkedModel) -> dict[str, tuple[int, int]]:
    """Return the first and last operator that needs each tensor: graph inputs and states first, then as written.

    Operators are numbers of steps. Outputs of the network live until the last step, whichever step wrote them.
    Constants are not in the result.
    """
    graph, end = program.graph, max(len(program.steps) - 1, 0)
    lives = dict.fromkeys(graph.sources, (0, 0))
    for step in program.steps:
        for tensor in (*graph.inputs_of(step.node).present, *graph.outputs_of(step.node)):
            if not tensor.constant:
                lives[tensor.name] = (lives.get(tensor.name, (step.index, 0))[0], step.index)
    # Outputs are needed until the run returns, whichever step wrote them.
    for name in graph.results:
        lives[name] = (lives.get(name, (0, 0))[0], end)
    return lives


def node_comment(graph: Graph, node: Node) -> str:
    """Return operator, operands and results of ``node``, such as ``CONV_2D int8[1,8,8,3] -> int8[1,8,8,16]``.

    Shapes have no spaces. Constants are listed like other operands; a chain has only the operands that come from
    outside. Tables of trees are left out: their sizes depend on training.
    """
    fused = node.operator if isinstance(node.operator, Fused) else None
    count = 1 if isinstance(node.operator, TreeEnsemble) else None if fused is None else len(fused.part.inputs)
    read = graph.inputs_of(node)[:count]
    shapes = [_shape(tensor.dtype.value, tensor.shape) for tensor in read.present]
    results = [_shape(tensor.dtype.value, tensor.shape) for tensor in graph.outputs_of(node)]
    return f"{node.operator.label} {', '.join(shapes)} -> {', '.join(results)}"


def _shape(dtype: str, sizes: Sequence[int]) -> str:
    return f"{dtype}[{','.join(str(size) for size in sizes)}]"
