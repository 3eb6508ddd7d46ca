"""The result of running two networks on the same inputs, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from mlfbuild.core import counted, quoted
from mlfbuild.library import TensorInfo, TracedTensor
from mlfbuild.verify.compare import ElementDifference
from mlfbuild.verify.compare_tensors import TensorPair


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
        """Return operator, name, type and function on one line."""
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
