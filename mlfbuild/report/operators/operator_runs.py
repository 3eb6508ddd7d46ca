"""A run of a module: instructions of each operator, with its multiply-accumulates and a lower bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlfbuild.core import shown
from mlfbuild.library import Network, NetworkOperator
from mlfbuild.report.operators.cycles import sum_of_cycles
from mlfbuild.targets import Cpu, fewest_instructions

if TYPE_CHECKING:
    from mlfbuild.report.operators.profile import Profile
    from mlfbuild.timing import CycleCount
    from mlfbuild.verify import CycleRuns, Spread


@dataclass(frozen=True)
class ModelRun:
    """One run of a module of a model on a board."""

    target: str
    model: str
    inputs: str
    """The vectors file whose first case was run; empty if the inputs were zeros."""
    profile: Profile
    operators: tuple[OperatorRun, ...]
    """The calls of the profile, each with its operator of the network."""
    measured: CycleRuns | None = None
    """Cycles that the device of the target measured."""
    settings: str = ""
    """The settings of the flash that the device had then, and those of the part's description if they differ."""

    @property
    def inputs_text(self) -> str:
        """The inputs, in words."""
        return f"the first case of {self.inputs}" if self.inputs else "zeros"


def figures_of(runs: Sequence[ModelRun]) -> dict[str, dict[str, int]]:
    """Return the figures of each model, the sum of its modules; the empty name has the sum of all models.

    Their keys are those of budgets of runs: instructions and, if they are modelled, cycles and latency in nanoseconds.
    """
    models = dict.fromkeys(run.model for run in runs)
    return {name: _figures([run for run in runs if name in {"", run.model}]) for name in ("", *models)}


def _figures(runs: Sequence[ModelRun]) -> dict[str, int]:
    figures = {"instructions": sum(run.profile.instructions for run in runs)}
    cycles = sum_of_cycles(run.profile.cycles for run in runs)
    part = runs[0].profile.part if runs else None
    if cycles is None or part is None:
        return figures
    return {**figures, "cycles": cycles.total, "latency": part.latency(cycles.total)}


_LONGEST_NAME = 60


@dataclass(frozen=True)
class OperatorRun:
    """A call of an operator's function in a run."""

    function: str
    """The C function."""
    instructions: int
    number: int | None = None
    """Index of the operator in the network; ``None`` if it is unknown, and then the next fields are also unknown."""
    name: str = ""
    """Name in the model."""
    operator: str = ""
    """Operator type, such as ``CONV_2D``."""
    macs: int | None = None
    """Multiply-accumulates."""
    bound: int | None = None
    """Lower bound of the instructions for them on the CPU."""
    cycles: CycleCount | None = None
    """Modelled cycles; ``None`` without a microcontroller."""
    measured: Spread | None = None
    """Cycles on the device of the target; ``None`` if they were not measured."""

    @property
    def title(self) -> str:
        """The operator in messages."""
        if self.name in {"", self.function}:  # the latter in graphs of TVM
            return shown(self.operator or self.function)
        return f"{short_name(self.name)} ({shown(self.operator)})"


def short_name(name: str) -> str:
    """Return the distinctive part of a name: ``conv2d/Relu`` of ``net/conv2d/Relu;net/conv2d/BiasAdd``.

    Converters join the names of layers that became one operator, the last one first, with their parents as prefixes.
    """
    parts = (part.partition(";")[0].split("/") for part in name.split(" + "))
    return shown(" + ".join("/".join(words[-2:]) for words in parts), _LONGEST_NAME)


def operator_runs(profile: Profile, network: Network | None, cpu: Cpu) -> tuple[OperatorRun, ...]:
    """Return the calls of a run with the operators of its ``network``, if that is known, in order of execution.

    Operators without a function have no call. If the calls do not match the network's operators, only their functions
    are known.
    """
    called = [] if network is None else [(at, each) for at, each in enumerate(network.operators) if each.function]
    # Without an equal sequence, a count could get the name of another operator.
    if network is None or [each.function for _, each in called] != [call.function for call in profile.calls]:
        return tuple(OperatorRun(call.function, call.instructions, cycles=call.cycles) for call in profile.calls)
    return tuple(
        OperatorRun(
            function=call.function,
            instructions=call.instructions,
            number=number,
            name=operator.name,
            operator=operator.operator,
            macs=operator.macs,
            bound=_bound(network, operator, cpu),
            cycles=call.cycles,
        )
        for call, (number, operator) in zip(profile.calls, called, strict=True)
    )


def _bound(network: Network, operator: NetworkOperator, cpu: Cpu) -> int | None:
    """Return the lower bound of instructions for the operator's MACs with the type of its first input."""
    if not operator.macs or not operator.inputs:
        return 0 if operator.macs == 0 else None
    return fewest_instructions(cpu, network.tensors[operator.inputs[0]].dtype, operator.macs)


def total(numbers: Sequence[int | None]) -> int | None:
    """Return the sum; ``None`` if one of the numbers is unknown."""
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None
