"""The operators of a module in order of execution and the place of each tensor in memory; reports use them.

Times are indices of operators in order of execution. Sizes and offsets are bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from operator import add

ARENA, STATE, INPUT, OUTPUT, CONSTANT = MEMORIES = ("arena", "state", "input", "output", "constant")
"""Places of tensors: the module's workspace, its state, the caller's buffers, or flash."""

_BEHIND_ALL = 1 << 62
"""An offset behind every arena."""
_BOUNDS = {"LOGISTIC": 1, "SOFTMAX": 1, "TANH": 1}
"""Greatest magnitude of the outputs of operators."""
_MOVING = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE"})
"""Operators whose output has the values of their first input."""


@dataclass(frozen=True)
class NetworkScratch:
    """Memory in the arena that one operator uses while it runs."""

    offset: int
    """Of the first byte in the arena."""
    size: int
    accesses: int | None = None
    saved: int | None = None
    """Both as for a tensor."""


@dataclass(frozen=True)
class NetworkMemory:
    """A memory that the compiler could place tensors in."""

    name: str
    size: int
    """Bytes of the arena there; 0 if it has none."""
    limit: int
    """The most bytes that the module may take, for its arena and its state."""
    load_wait: int
    store_wait: int
    """Cycles that 1,000 loads, or stores, of a word wait on average."""
    state: int = 0
    """Bytes of the state there."""


@dataclass(frozen=True)
class NetworkPoint:
    """Modelled waits for the arenas with another size of the fastest memory."""

    size: int
    """The most bytes that the module may take of it."""
    waits: int
    """Cycles of waiting in a run by estimate; if all memories wait equally long, accesses, each as often as its memory
    has others before it."""


@dataclass(frozen=True)
class RemovedChannels:
    """Channels of a layer that the compiler removed: they are the same for every input, or nothing reads them."""

    channels: int
    """Output channels; 0 if only channels that the layer reads were removed."""
    of: int
    """Output channels of the layer in the model."""
    weights: int
    """Bytes of weights."""
    macs: int
    """Multiply-accumulates of one run."""

    def __add__(self, other: RemovedChannels) -> RemovedChannels:
        return RemovedChannels(*map(add, vars(self).values(), vars(other).values()))


@dataclass(frozen=True)
class NetworkKernel:
    """A kernel that the compiler considered for an operator, or for a node of several that are computed together."""

    kernel: str
    """Its name among the compiler's kernels, such as ``conv2d_dsp``."""
    chosen: bool
    reason: str
    """Why it was chosen, or why not; for people."""
    function: str = ""
    """The function in C; empty if the kernel does not serve the operator."""
    constants: int | None = None
    """Bytes of the constants that it passes, before equal ones are stored once; ``None`` if it does not serve."""
    workspace: int | None = None
    """Bytes of the arena that it uses beside tensors; ``None`` if it does not serve."""
    node: int | None = None
    """The position among the nodes that the operator is made of; ``None`` if it is a single node."""


@dataclass(frozen=True)
class NetworkRows:
    """The estimate by which the compiler decided to compute operators row by row instead of one after the other."""

    instructions: int
    """Instructions that the operators execute in addition; below 0 if they execute fewer."""
    memory: int
    """Bytes of the arena in use while they run."""
    memory_alone: int
    """Bytes of the arena that would be in use at most, if they ran one after the other."""


@dataclass(frozen=True)
class NetworkTensor:
    """A value of the network; weights are not among them, they belong to their operator."""

    name: str
    """The name in the model; that in the interface if the tensor is in the caller's buffer."""
    dtype: str
    shape: tuple[int, ...]
    size: int
    """Bytes."""
    memory: str
    """One of ``MEMORIES``."""
    offset: int | None
    """Offset in the arena or the state, index of the input or output, or ``None`` for a constant."""
    first: int
    """The operator that writes the tensor; 0 if it exists before the run."""
    last: int
    """The last operator that needs the tensor; the last operator of the network for an output."""
    accesses: int | None = None
    """Estimated loads and stores in a run, each of up to a word, of all tensors that share its bytes; ``None`` unless
    several memories were planned."""
    saved: int | None = None
    """Of these accesses, what they wait less than in the slowest memory, in the unit of ``NetworkPoint.waits``."""


@dataclass(frozen=True)
class NetworkOperator:
    """A node of the network, or several nodes that are computed together."""

    name: str
    """The name in the model; names of several nodes are joined with `` + ``."""
    operator: str
    """The kind of operator, for example ``CONV_2D``; ``CONV_2D + ADD`` for several nodes."""
    function: str
    """The C function that is called; empty if no call is needed because the bytes are already in place."""
    symbols: tuple[str, ...] = ()
    """Other symbols that it uses in C: constants, and functions that its function calls."""
    macs: int | None = None
    """Multiply-accumulates of one run; ``None`` if unknown."""
    inputs: tuple[int, ...] = ()
    """Indices of the tensors that it reads."""
    outputs: tuple[int, ...] = ()
    """Indices of the tensors that it writes."""
    scratch: NetworkScratch | None = None
    removed: RemovedChannels | None = None
    """Channels that the layers have in the model, but not here; ``None`` if they have all."""
    kernels: tuple[NetworkKernel, ...] = ()
    """The kernels that the compiler considered, in its order; empty if unknown. ``none`` is one: no call is needed."""
    by_rows: NetworkRows | None = None
    """``None`` if the operator is computed on whole tensors."""


DIGEST_LENGTH = 16
"""Hexadecimal digits of the hashes by which constants are compared."""


@dataclass(frozen=True)
class NetworkConstant:
    """A constant in C, and the part of the model that it is made of."""

    symbol: str
    """The name in C, which changes with the number of its operator."""
    tensor: str
    """The tensor in the model whose elements it holds in the order of its kernel, or the operator whose table it is."""
    source: str
    """A hash of that tensor and all others that determine the constant, regardless of the order of its elements."""


@dataclass(frozen=True)
class Network:
    """The operators of a module in order of execution.

    A module for the graph executor has no tensors here, because their memory is planned when it is unpacked.
    """

    arena: int
    """Size of the arena, which holds tensors and scratch memory; of all arenas if there are several ``memories``."""
    tensors: tuple[NetworkTensor, ...]
    operators: tuple[NetworkOperator, ...]
    constants: tuple[NetworkConstant, ...] = ()
    """The constants of known origin."""
    memories: tuple[NetworkMemory, ...] = ()
    """The memories that the arena is divided into, one after the other: offsets count from the beginning of the first.
    Empty if the arena is in one piece."""
    curve: tuple[NetworkPoint, ...] = ()
    """Sizes of the fastest memory from which on accesses wait less, as far as they were tried; with ``memories``."""

    @property
    def layers(self) -> int:
        """The operators in calls that sum products: rounding errors of floats grow with their number."""
        return sum(len(operator.operator.split(" + ")) for operator in self.operators if operator.macs)

    def bound(self, output: int, name: str) -> int:
        """Return the greatest magnitude that the float output with this index can have; 0 if that is unknown.

        ``name`` is its name in the model, by which it is found if outputs are in the arena. The result is 1 behind
        operators such as LOGISTIC. A network for the graph executor has no tensors here, so 0.
        """
        # Outputs in the caller's buffers are numbered; in the arena they are found by name.
        places = ((OUTPUT, output), (ARENA, name))
        found = (
            index
            for index, each in enumerate(self.tensors)
            if (each.memory, each.offset) in places or (each.memory, each.name) in places
        )
        tensor = next(found, None)
        # From the last operator back: one that only moves values leads to the operator that wrote them.
        for operator in reversed(self.operators):
            if tensor in operator.outputs:
                # Of operators that are computed together, the last one makes the output.
                kind = operator.operator.rpartition(" + ")[2]
                if kind not in _MOVING or not operator.inputs:
                    return _BOUNDS.get(kind, 0)
                tensor = operator.inputs[0]
        return 0

    @property
    def macs(self) -> int | None:
        """Multiply-accumulates of one run; ``None`` if those of an operator are unknown."""
        known = [operator.macs for operator in self.operators if operator.macs is not None]
        # A sum of the known ones would look like the work of the whole network.
        return sum(known) if len(known) == len(self.operators) else None

    @property
    def removed(self) -> RemovedChannels | None:
        """Channels that the compiler removed from all layers; ``None`` if it removed none."""
        known = [operator.removed for operator in self.operators if operator.removed is not None]
        return functools.reduce(add, known) if known else None

    @property
    def peak(self) -> int:
        """The first operator during which the most bytes of the arena are in use; 0 without operators."""
        return max(range(len(self.usage)), key=self.usage.__getitem__, default=0)

    @property
    def arenas(self) -> tuple[NetworkMemory, ...]:
        """The memories that have an arena, if there are several; the code then has a workspace for each of them."""
        used = tuple(memory for memory in self.memories if memory.size)
        return used if len(used) > 1 else ()

    @property
    def bases(self) -> tuple[int, ...]:
        """The offset at which the arena of each of ``memories`` begins."""
        return tuple(accumulate((memory.size for memory in self.memories), initial=0))[:-1]

    def usage_of(self, memory: int) -> tuple[int, ...]:
        """Return the bytes of the arena in ``memories[memory]`` in use while each operator runs."""
        start = self.bases[memory]
        return self._usage(start, start + self.memories[memory].size)

    @cached_property
    def usage(self) -> tuple[int, ...]:
        """The bytes of the arena in use while each operator runs; bytes that two tensors share count once."""
        return self._usage(0, _BEHIND_ALL)

    def _usage(self, start: int, end: int) -> tuple[int, ...]:
        # By first use, so that the sweep below looks at each tensor only when it begins and ends.
        beginning: dict[int, list[NetworkTensor]] = {}
        for tensor in self.tensors:
            if tensor.memory == ARENA:
                beginning.setdefault(tensor.first, []).append(tensor)
        usage, live = [], list[NetworkTensor]()
        for time, operator in enumerate(self.operators):
            # One sweep in order of time: each tensor begins and ends once, however many operators there are.
            live = [*(tensor for tensor in live if tensor.last >= time), *beginning.get(time, ())]
            places = [(tensor.offset or 0, tensor.size) for tensor in live]
            places += [] if operator.scratch is None else [(operator.scratch.offset, operator.scratch.size)]
            usage.append(_covered(each for each in places if start <= each[0] and sum(each) <= end))
        return tuple(usage)

    def renamed(self, edit: Callable[[str], str]) -> Network:
        """Return the network with ``edit`` applied to the names in C.

        These are the functions and symbols of operators and of constants. Names in the model and of tensors are
        kept.
        """
        operators = tuple(
            replace(each, function=edit(each.function), symbols=tuple(map(edit, each.symbols)))
            for each in self.operators
        )
        constants = tuple(replace(constant, symbol=edit(constant.symbol)) for constant in self.constants)
        return replace(self, operators=operators, constants=constants)


def _covered(places: Iterable[tuple[int, int]]) -> int:
    """Return the number of bytes in the union of ``places``, (offset, size)."""
    size = end = 0
    # Sorted by offset, so that only bytes above the highest end so far are new.
    for start, length in sorted(places):
        size += max(0, start + length - max(start, end))
        end = max(end, start + length)
    return size
