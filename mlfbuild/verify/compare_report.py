"""The result of running two networks on the same inputs, tensor by tensor, as text and as JSON.

Inputs and outputs are paired by name if both networks use the same names, otherwise by position; their types must be
equal. Tensors that operators write are paired by name as far as both networks have the name. Two compilers seldom use
the same names, nor do they divide a network into the same operators. So the remaining tensors are paired in order among
those of the same type and shape, if both networks have the same number of them. That is a guess.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mlfbuild.archive.compare import distinct
from mlfbuild.core import UsageError, counted, quoted
from mlfbuild.library import TensorInfo, TracedTensor, sanitize_name
from mlfbuild.verify.compare import ElementDifference


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
        """Return distinct names of the tensors, without TVM's prefix of the module.

        They are in the order of ``tensors``; the second tensor with a name is ``<name>#2``.
        """
        return list(distinct(each.tensor.name.removeprefix(f"tvmgen_{self.name}_") for each in self.tensors))


def pair_traced(first: Traced, second: Traced) -> tuple[TensorPair, ...]:
    """Pair the tensors that operators of two networks write, in the order of the first; omit unpaired ones.

    Tensors are paired by name if type and size are equal. The rest is paired by order among tensors of one type and
    shape, in which dimensions of 1 do not count, if both networks have equally many of them. The numbers of a pair are
    positions in ``Traced.tensors``.
    """
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


@dataclass(frozen=True)
class TensorDifference:
    """A tensor of the first network whose values differ in the second."""

    tensor: TracedTensor
    """For an output, operator and function are empty."""
    by_name: bool
    """Whether the two tensors were paired by name; otherwise by their order."""
    case: int
    """The first case with a difference."""
    cases: int
    """The number of cases with a difference."""
    difference: ElementDifference
    """The difference in ``case``; the first network's element is the expected one."""

    def to_json(self) -> dict[str, Any]:
        """Return the difference as JSON-ready data."""
        tensor = self.tensor.tensor
        return {
            "name": tensor.name,
            "operator": self.tensor.operator or None,
            "function": self.tensor.function or None,
            "dtype": tensor.dtype,
            "shape": None if tensor.shape is None else list(tensor.shape),
            "by_name": self.by_name,
            "case": self.case,
            "cases": self.cases,
            "difference": asdict(self.difference),
        }

    def described(self) -> str:
        """Return operator, name, type and function on one line.

        The function is left out if it has the name of the tensor. Names come from archives and are quoted.
        """
        tensor, function = self.tensor.tensor, self.tensor.function
        called = f", function {quoted(function)}" if function and function != tensor.name else ""
        return f"{self.tensor.operator} {quoted(tensor.name)}, {_type(tensor)}{called}".lstrip()


def _type(tensor: TensorInfo) -> str:
    return tensor.dtype if tensor.shape is None else f"{tensor.dtype} {list(tensor.shape)}"


@dataclass(frozen=True)
class ComparedNetwork:
    """One of the two networks."""

    archive: str
    model: str
    tensors: int
    """The number of intermediate tensors that it exposes."""
    advice: str
    """The hint that makes it expose intermediate tensors, if it exposes none."""


@dataclass(frozen=True)
class RunComparison:
    """Equal and different tensors of two networks."""

    sides: tuple[ComparedNetwork, ComparedNetwork]
    cases: int
    by_position: tuple[str, ...]
    """``inputs`` and ``outputs`` if their names differ, so that they were paired by position."""
    outputs: int
    pairs: tuple[TensorPair, ...]
    """Pairs of tensors that operators write."""
    operator: TensorDifference | None
    """The first of these tensors that differs."""
    wrong_outputs: tuple[TensorDifference, ...]

    @property
    def equal(self) -> bool:
        """Whether all outputs are equal, and all tensors of the same name."""
        return not self.wrong_outputs and (self.operator is None or not self.operator.by_name)

    @property
    def by_name(self) -> int:
        """The number of pairs by name."""
        return sum(pair.by_name for pair in self.pairs)

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON-ready data."""
        return {
            "equal": self.equal,
            "archives": [side.archive for side in self.sides],
            "models": [side.model for side in self.sides],
            "cases": self.cases,
            "by_position": list(self.by_position),
            "outputs_compared": self.outputs,
            "tensors": [side.tensors for side in self.sides],
            "paired_by_name": self.by_name,
            "paired_by_order": len(self.pairs) - self.by_name,
            "operator": None if self.operator is None else self.operator.to_json(),
            "outputs": [output.to_json() for output in self.wrong_outputs],
        }

    def text(self) -> str:
        """Return the comparison as lines, without a line end after the last one."""
        return "\n".join([*self._compared(), *self._found()])

    def _compared(self) -> Iterator[str]:
        what = counted(self.outputs, "output")
        if self.pairs:
            what += f" and {counted(len(self.pairs), 'intermediate tensor')}"
        yield f"{self.sides[0].archive} and {self.sides[1].archive}: {counted(self.cases, 'case')}, {what} compared"
        if self.by_position:
            yield f"  {' and '.join(self.by_position)} were paired by position, because their names differ"
        by_order = len(self.pairs) - self.by_name
        if by_order:
            yield f"  paired by name: {self.by_name:,}, by order among tensors of the same type and shape: {by_order:,}"
        yield from (f"  {side.archive} exposes only its outputs: {side.advice}" for side in self.sides if side.advice)
        if all(side.tensors for side in self.sides):
            counts = [(side.tensors - len(self.pairs), side.archive) for side in self.sides]
            unpaired = [f"{count:,} of {archive}" for count, archive in counts if count]
            if unpaired:
                yield f"  not compared, because they have no counterpart: {' and '.join(unpaired)}"

    def _found(self) -> Iterator[str]:
        if self.operator is not None:
            sure = self.operator.by_name or self.wrong_outputs
            what = "the first operator that differs" if sure else "an operator differs, but no output does"
            yield f"{what}: {self.operator.described()}"
            yield from self._where(self.operator)
        for output in self.wrong_outputs:
            yield f"output {output.described()} differs"
            yield from self._where(output)
        if not self.wrong_outputs:
            yield "all outputs are equal"

    def _where(self, found: TensorDifference) -> Iterator[str]:
        yield f"  case {found.case}: {found.difference}"
        if self.cases > 1:
            yield f"  differs in {found.cases:,} of {counted(self.cases, 'case')}"
        if not found.by_name and found.tensor.function:
            yield "  paired by order, so these may be different tensors"
