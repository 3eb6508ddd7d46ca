"""Pair the tensors of two networks by name or by order.

Inputs and outputs are paired by name if both networks use the same names, otherwise by position; their types must be
equal. Tensors that operators write are paired by name as far as both networks have the name. Two compilers seldom use
the same names, nor do they divide a network into the same operators. So the remaining tensors are paired in order among
those of the same type and shape, if both networks have the same number of them. That is a guess.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlfbuild.archive.compare import distinct
from mlfbuild.core import UsageError, counted, quoted
from mlfbuild.library import TensorInfo, TracedTensor, sanitize_name


@dataclass(frozen=True)
class TensorPair:
    """The same tensor in two networks, by its number in each."""

    first: int
    second: int
    by_name: bool


def pair_ports(kind: str, first: Sequence[TensorInfo], second: Sequence[TensorInfo]) -> tuple[TensorPair, ...]:
    """Pair the inputs or the outputs (``kind`` is the word for messages: ``input``) of two networks.

    By name if both use the same names, otherwise by position. Raises ``UsageError`` if their numbers differ, or if the
    types or shapes of a pair differ.
    """
    if len(first) != len(second):
        raise UsageError(
            "port-counts-differ", reason=f"the first network has {counted(len(first), kind)}, the second {len(second)}"
        )
    names = [[sanitize_name(tensor.name) for tensor in side] for side in (first, second)]
    by_name = sorted(names[0]) == sorted(names[1]) and len(set(names[0])) == len(first)
    pairs = tuple(TensorPair(at, names[1].index(names[0][at]) if by_name else at, by_name) for at in range(len(first)))
    for pair in pairs:
        _check(kind, first[pair.first], second[pair.second])
    return pairs


def _check(kind: str, first: TensorInfo, second: TensorInfo) -> None:
    shapes = {tensor.shape for tensor in (first, second)} - {None}
    if (first.dtype, first.size) != (second.dtype, second.size) or len(shapes) > 1:
        raise UsageError(
            "port-types-differ",
            reason=f"{kind} {_described(first)} of the first network is {_described(second)} in the second",
        )


def _described(tensor: TensorInfo) -> str:
    shape = f"{tensor.size} bytes" if tensor.shape is None else str(list(tensor.shape))
    return f"{quoted(tensor.name)} {tensor.dtype} {shape}"


@dataclass(frozen=True)
class Traced:
    """The intermediate tensors of the network ``name``."""

    name: str
    tensors: Sequence[TracedTensor]

    def names(self) -> list[str]:
        """Return distinct names of the tensors, without TVM's prefix of the module."""
        return list(distinct(each.tensor.name.removeprefix(f"tvmgen_{self.name}_") for each in self.tensors))


def pair_traced(first: Traced, second: Traced) -> tuple[TensorPair, ...]:
    """Pair the tensors that operators of two networks write, in the order of the first; omit unpaired ones."""
    pairs = list(_by_name(first, second))
    taken = [{pair.first for pair in pairs}, {pair.second for pair in pairs}]
    pairs += _by_order(*(_groups(side.tensors, known) for side, known in zip((first, second), taken, strict=True)))
    return tuple(sorted(pairs, key=lambda pair: pair.first))


def _by_name(first: Traced, second: Traced) -> Iterator[TensorPair]:
    places = {name: at for at, name in enumerate(second.names())}
    for at, name in enumerate(first.names()):
        other = places.get(name)
        if other is not None and _same_type(first.tensors[at].tensor, second.tensors[other].tensor):
            yield TensorPair(at, other, by_name=True)


def _same_type(first: TensorInfo, second: TensorInfo) -> bool:
    return (first.dtype, first.size) == (second.dtype, second.size)


_Group = tuple[str, tuple[int, ...]]


def _groups(tensors: Sequence[TracedTensor], taken: set[int]) -> dict[_Group, list[int]]:
    """Return the numbers of the tensors except those ``taken``, by type and shape without dimensions of 1.

    Tensors that no function writes are omitted: they are views of others, which other compilers have no operator for.
    """
    groups = defaultdict(list)
    for at, traced in enumerate(tensors):
        # Dimensions of 1 do not count, because one compiler has the batch and the other has not.
        if at not in taken and traced.function:
            shape = tuple(size for size in traced.tensor.shape or () if size != 1)
            groups[traced.tensor.dtype, shape].append(at)
    return groups


def _by_order(first: dict[_Group, list[int]], second: dict[_Group, list[int]]) -> Iterator[TensorPair]:
    for group, numbers in first.items():
        others = second.get(group, [])
        # With different numbers, one network has tensors that the other fused away, and every pair behind the first of
        # them would be wrong.
        if len(numbers) == len(others):
            yield from (TensorPair(one, other, by_name=False) for one, other in zip(numbers, others, strict=True))
