"""What a module computes, operator by operator, and where each tensor lies meanwhile: what reports are made of.

Times are numbers of operators, in the order in which they run. Sizes and offsets are bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

ARENA, STATE, INPUT, OUTPUT, CONSTANT = MEMORIES = ("arena", "state", "input", "output", "constant")
"""Where tensors lie: in the module's workspace, its state, the caller's buffers, or flash."""


@dataclass(frozen=True)
class Scratch:
    """Memory in the arena that one operator takes while it runs."""

    offset: int
    size: int


@dataclass(frozen=True)
class NetworkTensor:
    """A value of the network; weights are none, they belong to their operator."""

    name: str
    """In the model."""
    dtype: str
    shape: tuple[int, ...]
    size: int
    memory: str
    """Of ``MEMORIES``."""
    offset: int | None
    """In the arena or the state; which of the module's inputs or outputs it is; ``None`` for a constant."""
    first: int
    """The operator that writes it; 0 for what is there before the run."""
    last: int
    """The last operator during which its bytes are needed: that of the network for an output."""


@dataclass(frozen=True)
class NetworkOperator:
    """A node of the network, or several that are computed together."""

    name: str
    """In the model; those of several nodes with `` + `` between them."""
    operator: str
    """What it computes, as ``CONV_2D``; of several nodes ``CONV_2D + ADD``."""
    function: str
    """The C function that is called; empty where nothing is to be done, as the bytes are in place already."""
    symbols: tuple[str, ...] = ()
    """Names in C of what else it needs: constants, and functions that its own calls."""
    macs: int | None = None
    """Multiply-accumulates of one run; ``None`` where nobody knows."""
    inputs: tuple[int, ...] = ()
    """Which of the network's tensors it reads."""
    outputs: tuple[int, ...] = ()
    """Which it writes."""
    scratch: Scratch | None = None


@dataclass(frozen=True)
class Network:
    """The operators of a module in the order of execution.

    A module for the graph executor has no tensors here: where they lie is planned when it is unpacked.
    """

    arena: int
    """Bytes that all tensors in the arena, and scratch memory, lie in."""
    tensors: tuple[NetworkTensor, ...]
    operators: tuple[NetworkOperator, ...]

    @property
    def macs(self) -> int | None:
        """Multiply-accumulates of one run; ``None`` where those of an operator are not known."""
        known = [operator.macs for operator in self.operators if operator.macs is not None]
        return sum(known) if len(known) == len(self.operators) else None

    @property
    def peak(self) -> int:
        """The first operator during which most bytes of the arena are in use; 0 where there is none."""
        return max(range(len(self.usage)), key=self.usage.__getitem__, default=0)

    @cached_property
    def usage(self) -> tuple[int, ...]:
        """The bytes of the arena that hold something while each operator runs; what has two names counts once."""
        beginning: dict[int, list[NetworkTensor]] = {}
        for tensor in self.tensors:
            if tensor.memory == ARENA:
                beginning.setdefault(tensor.first, []).append(tensor)
        usage, live = [], list[NetworkTensor]()
        for time, operator in enumerate(self.operators):
            live = [*(tensor for tensor in live if tensor.last >= time), *beginning.get(time, ())]
            places = [(tensor.offset or 0, tensor.size) for tensor in live]
            places += [] if operator.scratch is None else [(operator.scratch.offset, operator.scratch.size)]
            usage.append(_covered(places))
        return tuple(usage)

    def renamed(self, edit: Callable[[str], str]) -> Network:
        """Return the network with the names in C changed by ``edit``."""
        return replace(self, operators=tuple(_renamed(operator, edit) for operator in self.operators))


def _covered(places: Iterable[tuple[int, int]]) -> int:
    """Return the bytes that ``places``, (offset, size), take together."""
    size = end = 0
    for start, length in sorted(places):
        size += max(0, start + length - max(start, end))
        end = max(end, start + length)
    return size


def _renamed(operator: NetworkOperator, edit: Callable[[str], str]) -> NetworkOperator:
    symbols = tuple(edit(name) for name in operator.symbols)
    return replace(operator, function=edit(operator.function), symbols=symbols)
