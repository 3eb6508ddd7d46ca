"""Which tensors of two networks are the same one: by name, or by where they stand.

Inputs and outputs are paired by name where both networks have the same names, else by position; they must have the same
types. What operators write is paired by name as far as both have it. Two compilers seldom use the same names, nor do
they cut a network into the same operators: the others are paired in their order among those of one type and shape, if
both networks have equally many of these. That is a good guess, and no more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlfbuild.archive.compare import distinct
from mlfbuild.core import UsageError, counted, quoted
from mlfbuild.library import TensorInfo, TracedTensor, sanitize_name


@dataclass(frozen=True)
class Pair:
    """The same tensor in two networks, by its number in each."""

    first: int
    second: int
    by_name: bool


def pair_ports(kind: str, first: Sequence[TensorInfo], second: Sequence[TensorInfo]) -> tuple[Pair, ...]:
    """Pair the inputs or the outputs (as ``kind`` says) of two networks.

    Raises ``UsageError`` where there are not equally many, or where two that belong together have different types.
    """
    if len(first) != len(second):
        raise UsageError(f"the first has {counted(len(first), kind)}, the second {len(second)}")
    names = [[sanitize_name(tensor.name) for tensor in side] for side in (first, second)]
    by_name = sorted(names[0]) == sorted(names[1]) and len(set(names[0])) == len(first)
    pairs = tuple(Pair(at, names[1].index(names[0][at]) if by_name else at, by_name) for at in range(len(first)))
    for pair in pairs:
        _check(kind, first[pair.first], second[pair.second])
    return pairs


def _check(kind: str, first: TensorInfo, second: TensorInfo) -> None:
    shapes = {tensor.shape for tensor in (first, second)} - {None}
    if (first.dtype, first.size) != (second.dtype, second.size) or len(shapes) > 1:
        raise UsageError(f"{kind} {_described(first)} of the first is {_described(second)} in the second")


def _described(tensor: TensorInfo) -> str:
    shape = f"{tensor.size} bytes" if tensor.shape is None else str(list(tensor.shape))
    return f"{quoted(tensor.name)} {tensor.dtype} {shape}"


@dataclass(frozen=True)
class Traced:
    """What the network called ``name`` hands out."""

    name: str
    tensors: Sequence[TracedTensor]

    def names(self) -> list[str]:
        """Return the tensors' names, each another one, without what TVM puts before those of a module."""
        return list(distinct(each.tensor.name.removeprefix(f"tvmgen_{self.name}_") for each in self.tensors))


def pair_traced(first: Traced, second: Traced) -> tuple[Pair, ...]:
    """Pair what operators of two networks write, in the order of the first; what has no counterpart is left out."""
    pairs = list(_by_name(first, second))
    taken = [{pair.first for pair in pairs}, {pair.second for pair in pairs}]
    pairs += _by_order(*(_groups(side.tensors, known) for side, known in zip((first, second), taken, strict=True)))
    return tuple(sorted(pairs, key=lambda pair: pair.first))


def _by_name(first: Traced, second: Traced) -> Iterator[Pair]:
    places = {name: at for at, name in enumerate(second.names())}
    for at, name in enumerate(first.names()):
        other = places.get(name)
        if other is not None and _same_type(first.tensors[at].tensor, second.tensors[other].tensor):
            yield Pair(at, other, by_name=True)


def _same_type(first: TensorInfo, second: TensorInfo) -> bool:
    return (first.dtype, first.size) == (second.dtype, second.size)


_Group = tuple[str, tuple[int, ...]]


def _groups(tensors: Sequence[TracedTensor], taken: set[int]) -> dict[_Group, list[int]]:
    """Return the numbers of the tensors but those ``taken``, by type and shape without dimensions of 1.

    Where no function is called the tensor is another one's bytes, which other compilers have no operator for.
    """
    groups = defaultdict(list)
    for at, traced in enumerate(tensors):
        if at not in taken and traced.function:
            shape = tuple(size for size in traced.tensor.shape or () if size != 1)
            groups[traced.tensor.dtype, shape].append(at)
    return groups


def _by_order(first: dict[_Group, list[int]], second: dict[_Group, list[int]]) -> Iterator[Pair]:
    for group, numbers in first.items():
        others = second.get(group, [])
        if len(numbers) == len(others):
            yield from (Pair(one, other, by_name=False) for one, other in zip(numbers, others, strict=True))
